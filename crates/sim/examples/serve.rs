//! Serves simulated clusters until it is stopped: `cargo run -p taffrail-sim --example serve -- [--bare] KUBECONFIG
//! [FILE…]`.
//!
//! Writes a kubeconfig with the contexts `sim-1` and `sim-2`, and applies the objects of the files to both. With `--bare`
//! the clusters have neither nodes nor controllers of workloads, but field managers, as tests of an API server need it.
#![expect(clippy::print_stdout, reason = "it says where it listens")]

use taffrail_sim::{Cluster, Fleet};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let is_bare = arguments.next_if(|argument| argument == "--bare").is_some();
    let kubeconfig = arguments.next().ok_or("name a file for the kubeconfig")?;
    let fleet = match is_bare {
        true => Fleet::builder().controllers(false).managers(true),
        false => Fleet::builder().nodes(3),
    };
    let fleet = fleet.start().await?;
    let mut clusters = Vec::new();
    for name in ["sim-1", "sim-2"] {
        clusters.push(fleet.cluster(name).await?);
    }
    for file in arguments {
        let text = std::fs::read_to_string(&file)?;
        for cluster in &clusters {
            cluster.apply_yaml(&text)?;
        }
    }
    std::fs::write(&kubeconfig, Cluster::kubeconfig_of(&clusters))?;
    for cluster in &clusters {
        println!("{}  {}", cluster.name(), cluster.url());
    }
    println!("export KUBECONFIG={kubeconfig}");
    tokio::signal::ctrl_c().await?;
    Ok(())
}
