//! Measures the cost of a hub. `cargo xtask bench hub` runs this program as the hub and as what surrounds it, and reads
//! its cost from the kernel.
//!
//! `hub_cost serve SOCKET STORE CLUSTERS [AGENTS]` is a hub, wired as the binary wires it, but for its source: that is
//! another process, which sends messages through the Unix socket SOCKET; or with the file AGENTS, the agents that are
//! named there, which dial it by TLS. `hub_cost write CLUSTERS SEED` is that process: it
//! knows a fleet of CLUSTERS clusters, reports it to the hub, reads from the hub by HTTP, and compares each answer with
//! one of its own. `hub_cost peer CLUSTERS SEED` knows the same fleet, and writes it as objects to a Kubernetes API
//! server, the peer of the hub. All report in a line of JSON that they are ready, and then obey the commands on standard
//! input, one per line.
//!
//! A message on the socket is JSON after its length in bytes, a big-endian number of 32 bits.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it answers on standard output")]

mod agents;
mod client;
mod expected;
mod frames;
mod model;
mod peer;
mod serve;
mod source;
mod watched;
mod writer;

use std::error::Error;
use std::io::BufRead as _;

use serde_json::Value;

/// The allocator of the shipped program. `main` starts its threads as the commands that follow clusters do.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

type Failure = Box<dyn Error + Send + Sync>;

fn say(what: &Value) {
    println!("{what}");
}

/// Says something to people, on standard error.
fn say_aside(what: &str) {
    eprintln!("{what}");
}

/// Starts to read the commands on standard input, one per line; the channel is closed at the end of the input.
fn commands() -> tokio::sync::mpsc::Receiver<String> {
    let (sender, lines) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

fn main() -> Result<(), Failure> {
    tikv_jemalloc_ctl::background_thread::write(true)?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // As many threads as the shipped program has.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(threads.clamp(2, 4)).enable_all().build()?;
    match arguments.as_slice() {
        ["serve", socket, store, clusters] => {
            runtime.block_on(serve::run(socket.as_ref(), store.as_ref(), clusters.parse()?, None))
        }
        ["serve", socket, store, clusters, agents] => {
            let agents = Some(agents.as_ref());
            runtime.block_on(serve::run(socket.as_ref(), store.as_ref(), clusters.parse()?, agents))
        }
        ["write", clusters, seed] => runtime.block_on(writer::run(clusters.parse()?, seed.parse()?)),
        ["peer", clusters, seed] => runtime.block_on(peer::run(clusters.parse()?, seed.parse()?)),
        _ => {
            Err("usage: hub_cost serve SOCKET STORE CLUSTERS [AGENTS], or hub_cost write|peer CLUSTERS SEED"
                .into())
        }
    }
}
