//! Measures a simulated fleet: memory for each cluster and object, time to start, CPU time at rest.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use taffrail_testkit::binary;

/// Measure a fleet of simulated clusters in one process: memory per cluster and object, time to start, CPU time at
/// rest.
#[derive(Args)]
pub(crate) struct Sim {
    /// Number of clusters.
    #[arg(long, default_value_t = 200, value_name = "N")]
    clusters: usize,
    /// Number of objects in each cluster.
    #[arg(long, default_value_t = 2000, value_name = "N")]
    objects: usize,
    /// Number of seconds without any change, for the CPU time at rest.
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    idle: usize,
}

impl Sim {
    pub(super) fn run(self) -> Result<()> {
        let program = binary::build_bench("taffrail-sim", "scale")?;
        let output = Command::new(program)
            .args([self.clusters, self.objects, self.idle].map(|number| number.to_string()))
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run the bench `scale`")?;
        ensure!(output.status.success(), "the bench `scale` failed ({})", output.status);
        let found: Value =
            serde_json::from_slice(&output.stdout).context("the bench `scale` printed no JSON")?;
        let figure = |key: &str| found[key].as_f64().unwrap_or_default();
        let (clusters, objects) = (figure("clusters").max(1.0), figure("objects").max(1.0));
        let grown = |from: &str, to: &str| (figure(to) - figure(from)).max(0.0);
        println!("clusters                {clusters:>12}");
        println!("objects in all          {objects:>12}");
        println!("text of an object       {:>12.0} bytes", figure("text_bytes") / objects);
        println!(
            "memory of an object     {:>12.0} bytes",
            grown("resident_clusters", "resident_objects") / objects
        );
        println!(
            "memory of a cluster     {:>12.1} KiB",
            grown("resident_before", "resident_clusters") / clusters / 1024.0
        );
        println!("memory in all           {:>12.1} MiB", figure("resident_objects") / 1024.0 / 1024.0);
        println!("start of all clusters   {:>12.2} s", figure("start_seconds"));
        println!("filling of all clusters {:>12.2} s", figure("fill_seconds"));
        println!(
            "CPU at rest             {:>12.2} %",
            100.0 * figure("idle_cpu_seconds") / figure("idle_seconds").max(1.0)
        );
        Ok(())
    }
}
