//! Measures `taffrail ui` on a laptop: a cold start over many simulated clusters, its memory, and its CPU time at rest.
//!
//! The clusters run in another process (the bench `scale` of `taffrail-sim`), and share the processors with the hub. Of
//! every ten of their objects two are apps' controllers and three Pods; apps are known by their labels.
//!
//! The bars hold for 100 clusters of 1,800 objects. A figure beyond its bar is printed as missed and fails nothing,
//! because a busy machine shows in it; an app too few fails.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use taffrail_testkit::binary::{self, Profile};
use taffrail_testkit::hub::Hub;

use super::measure::{load, verdict};
use super::subject::{Subject, Usage};

/// Measure `taffrail ui` over many simulated clusters: time to the first and to all rows, memory, CPU time at rest.
#[derive(Args)]
pub(crate) struct Ui {
    /// Number of clusters.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    clusters: u32,
    /// Number of objects in each cluster.
    #[arg(long, default_value_t = 1800, value_name = "N", value_parser = clap::value_parser!(u32).range(10..))]
    objects: u32,
    /// Number of seconds for which CPU time at rest is measured.
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    rest: u32,
}

/// The time between two questions for rows.
const POLL: Duration = Duration::from_millis(20);

/// The maximum time until all rows are there.
const PATIENCE: Duration = Duration::from_secs(120);

/// The time for which the hub rests before its CPU time is measured.
const QUIET: Duration = Duration::from_secs(20);

/// The number of objects of each app of the bench `scale`.
const OBJECTS_OF_APP: u32 = 10;

impl Ui {
    pub(super) fn run(self) -> Result<()> {
        let program = binary::build(Profile::Release)?;
        let scale = binary::build_bench("taffrail-sim", "scale")?;
        let folder = binary::workspace().join("target/bench/ui");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        let kubeconfig = folder.join("kubeconfig");
        let path = kubeconfig.to_str().context("the path of the kubeconfig is not valid UTF-8")?;
        let numbers = [self.clusters.to_string(), self.objects.to_string()];
        let _fleet = Subject::start(&scale, &[&numbers[0], &numbers[1], "1", path])?;
        println!("{} clusters of {} objects; load {}", self.clusters, self.objects, load());

        let begun = Instant::now();
        let mut command = Command::new(program);
        command.args(["ui", "--all-contexts", "--listen", "127.0.0.1:0", "--kubeconfig", path]);
        command.env("XDG_CONFIG_HOME", folder.join("settings"));
        let hub = Hub::start(&mut command)?;
        let listens = begun.elapsed();
        let expected = u64::from(self.clusters * ((self.objects - 1) / OBJECTS_OF_APP));
        let (mut first, mut last) = (None, Value::Null);
        let all = loop {
            last = hub.get("/api/v1/apps?limit=1").unwrap_or(last);
            let total = last["total"].as_u64().unwrap_or_default();
            first = first.or((total > 0).then(|| begun.elapsed()));
            if total >= expected && last["state"] == "complete" {
                break begun.elapsed();
            }
            ensure!(begun.elapsed() < PATIENCE, "only {total} of {expected} apps are there: {last}");
            sleep(POLL);
        };
        let first = first.context("there is no app")?;
        let pid = u32::try_from(hub.pid().as_raw_nonzero().get())?;
        sleep(QUIET);
        let before = Usage::of(pid)?;
        sleep(Duration::from_secs(u64::from(self.rest)));
        let after = Usage::of(pid)?;

        println!("  it listens after {:.2} s, {} apps", listens.as_secs_f64(), last["total"]);
        bar("s to the first rows", first.as_secs_f64(), 1.0);
        bar("s to all rows", all.as_secs_f64(), 5.0);
        bar("MiB of memory at most", after.peak, 250.0);
        println!("  {:.0} MiB at rest", after.resident);
        bar("% of a core at rest", (after.cpu - before.cpu) / f64::from(self.rest) * 100.0, 3.0);
        let _ = fs::remove_dir_all(&folder);
        Ok(())
    }
}

fn bar(what: &str, figure: f64, bar: f64) {
    println!("{what:28} {figure:>8.2} (bar {bar}: {})", verdict(figure < bar));
}
