//! Measures a cold start of `taffrail ui` over many simulated clusters, its memory, and its CPU time at rest.
//!
//! The clusters run in another process (the bench `scale` of `taffrail-sim`), and share the processors with the hub. Of
//! every ten of their objects two are apps' controllers and three Pods; apps are known by their labels. An app too few
//! fails.

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use taffrail_testkit::binary::{self, Profile};
use taffrail_testkit::hub::Hub;

use crate::tasks::bench::measure::{bar, load};
use crate::tasks::bench::subject::{Subject, Usage};

/// The time between two questions for rows.
const POLL: Duration = Duration::from_millis(20);

/// The maximum time until all rows are there.
const PATIENCE: Duration = Duration::from_secs(120);

/// The time for which the hub rests before its CPU time is measured.
const QUIET: Duration = Duration::from_secs(20);

/// The number of objects of each app of the bench `scale`.
const OBJECTS_OF_APP: u32 = 10;

/// Simulated clusters, and a hub that follows them. Both end on drop.
pub(super) struct Served {
    pub(super) hub: Hub,
    /// The time at which the hub was started.
    begun: Instant,
    _fleet: Subject,
}

/// Starts so many clusters with so many objects each, and `taffrail ui` over them, with its settings in `folder`. One app
/// has ten objects `times` times.
pub(super) fn serve(folder: &Path, clusters: u32, objects: u32, times: u32) -> Result<Served> {
    let program = binary::build(Profile::Release)?;
    let scale = binary::build_bench("taffrail-sim", "scale")?;
    let kubeconfig = folder.join("kubeconfig");
    let path = kubeconfig.to_str().context("the path of the kubeconfig is not valid UTF-8")?;
    let numbers = [clusters, objects, times].map(|number| number.to_string());
    let fleet = Subject::start(&scale, &[&numbers[0], &numbers[1], "1", path, &numbers[2]])?;
    println!("{clusters} clusters of {objects} objects; load {}", load());
    let begun = Instant::now();
    let mut command = Command::new(program);
    command.args(["ui", "--all-contexts", "--listen", "127.0.0.1:0", "--kubeconfig", path]);
    command.env("XDG_CONFIG_HOME", folder.join("settings"));
    Ok(Served { hub: Hub::start(&mut command)?, begun, _fleet: fleet })
}

impl Served {
    /// Waits until the hub has so many apps, and returns the times until it had the first and all.
    pub(super) fn settle(&self, apps: u32) -> Result<[Duration; 2]> {
        let (mut first, mut last) = (None, Value::Null);
        loop {
            last = self.hub.get("/api/v1/apps?limit=1").unwrap_or(last);
            let total = last["total"].as_u64().unwrap_or_default();
            first = first.or((total > 0).then(|| self.begun.elapsed()));
            if total >= u64::from(apps) && last["state"] == "complete" {
                return Ok([first.context("there is no app")?, self.begun.elapsed()]);
            }
            ensure!(self.begun.elapsed() < PATIENCE, "only {total} of {apps} apps are there: {last}");
            sleep(POLL);
        }
    }
}

/// Measures the hub over so many clusters with so many objects each, and at rest for so many seconds.
pub(super) fn measure(folder: &Path, clusters: u32, objects: u32, rest: u32) -> Result<()> {
    let served = serve(folder, clusters, objects, 1)?;
    let listens = served.begun.elapsed();
    let apps = clusters * ((objects - 1) / OBJECTS_OF_APP);
    let [first, all] = served.settle(apps)?;
    let pid = u32::try_from(served.hub.pid().as_raw_nonzero().get())?;
    sleep(QUIET);
    let before = Usage::of(pid)?;
    sleep(Duration::from_secs(u64::from(rest)));
    let after = Usage::of(pid)?;

    println!("  it listens after {:.2} s, {apps} apps", listens.as_secs_f64());
    bar("s to the first rows", first.as_secs_f64(), 1.0);
    bar("s to all rows", all.as_secs_f64(), 5.0);
    bar("MiB of memory at most", after.peak, 250.0);
    println!("  {:.0} MiB at rest", after.resident);
    bar("% of a core at rest", (after.cpu - before.cpu) / f64::from(rest) * 100.0, 3.0);
    Ok(())
}
