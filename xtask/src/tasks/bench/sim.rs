//! Measures a simulated fleet: memory for each cluster and object, time to start, CPU time at rest.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use taffrail_testkit::binary;

/// The greatest memory of a fleet with field managers, as a multiple of the same fleet without.
const MAX_MANAGED: f64 = 1.25;

/// Measure a fleet of simulated clusters in one process: memory per cluster and object, with and without field managers,
/// time to start, CPU time at rest.
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
        let plain = self.measure(&program, false)?;
        let managed = self.measure(&program, true)?;
        let figure = |key: &str| plain[key].as_f64().unwrap_or_default();
        let (clusters, objects) = (figure("clusters").max(1.0), figure("objects").max(1.0));
        let grown = |from: &str, to: &str| (figure(to) - figure(from)).max(0.0);
        let resident = |found: &Value| found["resident_objects"].as_f64().unwrap_or_default();
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
        println!("memory in all           {:>12.1} MiB", resident(&plain) / 1024.0 / 1024.0);
        println!("  with field managers   {:>12.1} MiB", resident(&managed) / 1024.0 / 1024.0);
        println!("start of all clusters   {:>12.2} s", figure("start_seconds"));
        println!("filling of all clusters {:>12.2} s", figure("fill_seconds"));
        println!("  with field managers   {:>12.2} s", managed["fill_seconds"].as_f64().unwrap_or_default());
        println!(
            "CPU at rest             {:>12.2} %",
            100.0 * figure("idle_cpu_seconds") / figure("idle_seconds").max(1.0)
        );
        let ratio = resident(&managed) / resident(&plain).max(1.0);
        println!("memory with field managers / without: {ratio:.2} (at most {MAX_MANAGED})");
        ensure!(
            ratio <= MAX_MANAGED,
            "a fleet with field managers needs {ratio:.2} times the memory of the same without, more than {MAX_MANAGED}"
        );
        Ok(())
    }

    /// Runs the bench, with or without field managers, and returns what it prints.
    fn measure(&self, program: &Path, managers: bool) -> Result<Value> {
        let mut command = Command::new(program);
        command.args([self.clusters, self.objects, self.idle].map(|number| number.to_string()));
        if managers {
            command.env("MANAGERS", "1");
        } else {
            command.env_remove("MANAGERS");
        }
        let output = command
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run the bench `scale`")?;
        ensure!(output.status.success(), "the bench `scale` failed ({})", output.status);
        serde_json::from_slice(&output.stdout).context("the bench `scale` printed no JSON")
    }
}
