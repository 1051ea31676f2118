//! Measures the page in Chromium, beside an empty page of the same hub.
//!
//! `web/scripts/bench.mjs` drives the browser and takes the times, each up to the frame that shows what was waited for.
//! The fleet of many apps is that of `cargo xtask bench hub`: its hub and the process that reports to it stand still while
//! paint is measured, the hub as soon as it has answered.

use std::fmt::Display;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use taffrail_testkit::binary::{self, workspace};

use super::Ui;
use super::start::serve;
use crate::tasks::bench::hub::{Bench, rows};
use crate::tasks::bench::measure::{bar, figure, load};
use crate::tasks::bench::subject::Subject;
use crate::tasks::page;

/// The number of changes a second while the page follows.
const RATE: u32 = 200;

/// The number of times that the matrix, and a graph, are drawn.
const DRAWN: u32 = 5;

/// The numbers of objects of the apps whose graphs are drawn, each with the greatest number of milliseconds.
const GRAPHS: [(u32, f64); 2] = [(500, 300.0), (12_000, 2_000.0)];

/// The number of objects of the bench `scale` that make one app, or one of several equal parts of it.
const PART: u32 = 10;

/// Starts the script that drives the browser, for a hub and the processes that stand still while paint is measured.
fn start(address: impl Display, token: &str, processes: &[u32]) -> Result<Subject> {
    if let Some(why) = page::missing() {
        anyhow::bail!("cannot measure the page: {why}");
    }
    let web = workspace().join("web");
    page::install(&web)?;
    let script = web.join("scripts/bench.mjs");
    let script = script.to_str().context("the path of the script is not valid UTF-8")?;
    let address = format!("http://{address}");
    let processes: Vec<String> = processes.iter().map(ToString::to_string).collect();
    let arguments = [script, &address, token].into_iter().chain(processes.iter().map(String::as_str));
    Subject::start(Path::new("node"), &arguments.collect::<Vec<_>>())
}

/// Measures the page over many apps.
pub(super) fn measure(folder: &Path, sizes: &Ui) -> Result<()> {
    let program = binary::build_bench("taffrail-agent", "hub_cost")?;
    let rows = rows(sizes.page_clusters);
    let mut fleet = Bench::start(&program, &folder.join("hub.db"), sizes.page_clusters, sizes.seed)?;
    println!("{rows} apps in {} clusters; load {}", sizes.page_clusters, load());
    fleet.load(rows)?;
    let (address, token) = fleet.access()?;
    let mut browser = start(address, token, &[fleet.hub.pid(), fleet.writer.pid()])?;

    let bytes = browser.tell("weigh")?;
    bar("kB of the first load, compressed", figure(&bytes["bytes"]) / 1e3, 120.0);

    let paint = browser.tell(&format!("paint {}", sizes.rounds))?;
    let empty = figure(&paint["empty"]["median"]);
    println!("an empty page is painted after {empty:.0} ms (median of {})", sizes.rounds);
    for view in ["attention", "apps"] {
        let median = figure(&paint[view]["median"]);
        bar(&format!("ms until '{view}' is painted, median"), median, 1_000.0);
        bar(&format!("  times the empty page ({} longest)", paint[view]["longest"]), median / empty, 4.0);
    }

    let steps = browser.tell("interact")?;
    let (shown, idle) = (figure(&steps["page"]["p98"]), figure(&steps["empty"]["p98"]));
    bar(&format!("ms of an interaction, p98 of {}", steps["steps"]), shown, 100.0);
    bar(&format!("  times the empty page ({idle:.1} ms)"), shown / idle, 3.0);
    println!(
        "  median {:.1} ms; the longest of each part: {}",
        figure(&steps["page"]["median"]),
        steps["slow"]
    );

    let matrix = browser.tell(&format!("matrix {DRAWN}"))?;
    bar("ms to draw the matrix of all pairs, longest", figure(&matrix["drawn"]["longest"]), 1_000.0);
    bar("ms of a step of its zoom, longest", figure(&matrix["zooms"]["longest"]), 50.0);
    bar("kB sent for it", figure(&matrix["sent"]) / 1e3, 300.0);

    let seconds = sizes.changes;
    let (told, changed) = std::thread::scope(|scope| {
        let writer = &mut fleet.writer;
        // It begins before the browser counts, and ends after that.
        let changing = scope.spawn(move || writer.tell(&format!("change {RATE} {}", seconds + 30)));
        let told = browser.tell(&format!("follow {seconds}"));
        (told, changing.join())
    });
    let told = told?;
    changed.map_err(|_| anyhow::anyhow!("the writer panicked"))??;
    println!("{seconds} s at {RATE} changes a second; on an empty page {}", told["empty"]);
    for view in ["/", "/apps", "/matrix"] {
        let of_view = &told[view];
        let allowed = figure(&told["empty"]["longest"]).max(100.0);
        bar(
            &format!("ms of the longest task of {view}, of {} over 50", of_view["tasks"]),
            figure(&of_view["longest"]),
            allowed,
        );
        let (before, after) = (figure(&of_view["before"]), figure(&of_view["after"]));
        bar(&format!("  MB of its heap, from {before:.2}, within 10 %"), after, before * 1.1);
    }
    Ok(())
}

/// Measures the graph and the tree table of apps with many objects.
pub(super) fn measure_objects(folder: &Path) -> Result<()> {
    for (objects, most) in GRAPHS {
        let served = serve(folder, 1, objects + 1, objects / PART)?;
        served.settle(1)?;
        let (address, token) = served.hub.access();
        let mut browser = start(address, token, &[])?;
        let told = browser.tell(&format!("objects {DRAWN}"))?;
        println!("an app of {objects} objects: {}", told["graph"]["shown"]);
        bar("ms until its graph is painted, longest", figure(&told["graph"]["longest"]), most);
        bar("ms of a step in it, longest", figure(&told["graph"]["step"]), 100.0);
        println!(
            "  {} rows of the tree table, painted after {:.0} ms, longest; at its end after {:.0} ms",
            told["tree"]["rows"],
            figure(&told["tree"]["longest"]),
            figure(&told["tree"]["end"])
        );
        let rows = figure(&told["tree"]["rows"]);
        ensure!(rows >= f64::from(objects / 2), "the tree table has {rows} rows of {objects} objects");
    }
    Ok(())
}
