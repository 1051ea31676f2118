//! Lies to a hub about its clusters, and counts the seconds for which it shows wrongly green:
//! `faults TAFFRAIL [--sim] [--agents | --each] [--minutes N] [--rounds N] [--seed N] [--zero-ages] [FAULT…]`.
//!
//! `taffrail hub serve` runs as a process, and follows two real API servers, or with `--sim` four simulated ones,
//! through proxies that this process owns; apps of one cluster land in another. With `--agents` an agent of each cluster
//! reports it, through the same proxies and another one before the hub, and each app lands in its own cluster. With
//! `--each` there are three real API servers: one that the hub reaches, one whose agent reports it, and one of which a
//! Prometheus tells that scrapes an agent. Faults make the servers silent, dead or wrong. Behind the hub's back the truth changes in the stores of the servers, which are read and written without
//! them. Each second, the hub is asked for all pairs of an app and a cluster.
//!
//! A second is wrongly green for a pair if the hub shows one of its sides green (the health that is observed in the
//! cluster it lands in, the sync state that its home declares) though for longer than the window that side was not
//! well, or nobody could know how it is. The window is 45 s, and 100 s where a single watch fell silent; that of metrics
//! is 45 s longer. After a fault between an agent and its hub, history must have what happened meanwhile.
//!
//! The program ends with one line of JSON, and with exit code 1 if any second was wrongly green, or a fault turned
//! nothing. `cargo xtask bench faults` runs it.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it answers on standard output, and tells how far it is"
)]

mod ground;
mod hub;
mod judge;
mod metrics;
mod scripted;
mod seeded;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use ground::Ground;
use hub::{Hub, Source, Way};
use judge::{Judge, Tally};
use scripted::{Row, Script};
use seeded::Seeded;
use world::{Harm, Side, World};

/// The number of simulated clusters.
const SIMULATED: usize = 4;

/// The maximum time until the hub lists the apps of which metrics tell.
const LISTED_WITHIN: Duration = Duration::from_secs(90);

/// The number of apps that each cluster declares for itself, and for another one.
const APPS: usize = 4;

struct Arguments {
    program: PathBuf,
    is_simulated: bool,
    way: Way,
    time: Duration,
    rounds: u32,
    seed: u64,
    has_ages: bool,
    only: Vec<String>,
}

impl Arguments {
    fn parse() -> Result<Arguments> {
        // Cargo adds it to what it runs as a bench.
        let mut all = std::env::args().skip(1).filter(|argument| argument != "--bench");
        let mut arguments = Arguments {
            program: all.next().context("the path of the binary taffrail is missing")?.into(),
            is_simulated: false,
            way: Way::ReachIn,
            time: Duration::from_secs(1800),
            rounds: 1,
            seed: 1,
            has_ages: true,
            only: Vec::new(),
        };
        while let Some(argument) = all.next() {
            let mut value = || all.next().with_context(|| format!("{argument} needs a value"));
            match &*argument {
                "--sim" => arguments.is_simulated = true,
                "--agents" => arguments.way = Way::Agents,
                "--each" => arguments.way = Way::Each,
                "--minutes" => arguments.time = Duration::from_secs_f64(value()?.parse::<f64>()? * 60.0),
                "--rounds" => arguments.rounds = value()?.parse()?,
                "--seed" => arguments.seed = value()?.parse()?,
                "--zero-ages" => arguments.has_ages = false,
                name => arguments.only.push(name.to_owned()),
            }
        }
        Ok(arguments)
    }
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let more: &[&str] = if arguments.has_ages { &[] } else { &["--zero-ages"] };
    let hub = |ground: &Ground| Hub::start(runtime.handle(), &arguments.program, ground, arguments.way, more);
    // An agent cannot know what the apps of other clusters declare for its own.
    let is_far = arguments.way == Way::ReachIn;
    let way = arguments.way;
    let is_right = if arguments.is_simulated {
        ensure!(way != Way::Each, "--each needs real API servers");
        let ground = Ground::simulated(runtime.handle(), arguments.seed, SIMULATED)?;
        let far: Vec<_> =
            (0..SIMULATED).map(|home| (home, (home + 1) % SIMULATED)).cycle().take(2 * SIMULATED).collect();
        let world = World::furnish(&ground, way, APPS, if is_far { &far } else { &[] })?;
        seeded(&arguments, &ground, &world, &mut hub(&ground)?)?
    } else {
        let ground = Ground::real(runtime.handle(), if way == Way::Each { 3 } else { 2 })?;
        let world = World::furnish(&ground, way, APPS, if is_far { &[(0, 1); APPS] } else { &[] })?;
        let of_metrics = world.known_by(way, Source::Metrics);
        // What is well is in no metric until it was listed as unwell.
        for pair in &of_metrics {
            world.set(&ground, *pair, Side::Observed, Some(Harm::NotReady))?;
        }
        let mut hub = hub(&ground)?;
        until_listed(&hub, &world, &of_metrics)?;
        for pair in &of_metrics {
            world.set(&ground, *pair, Side::Observed, None)?;
        }
        scripted(&arguments, &ground, &world, &mut hub)?
    };
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Waits until the hub lists these pairs.
fn until_listed(hub: &Hub, world: &World, pairs: &[usize]) -> Result<()> {
    let begun = Instant::now();
    loop {
        let shown = hub.shown()?;
        let Some(missing) = pairs.iter().find(|pair| hub.pair_in(&shown, &world.pairs[**pair]).is_none())
        else {
            return Ok(());
        };
        ensure!(begun.elapsed() < LISTED_WITHIN, "{} is not listed", world.pairs[*missing].name);
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn scripted(arguments: &Arguments, ground: &Ground, world: &World, hub: &mut Hub) -> Result<bool> {
    println!(
        "{:28} {:>7} {:>12} {:>11} {:>10} {:>9} {:>6}",
        "fault", "seconds", "pair-seconds", "wrong green", "turned in", "healed in", "turned"
    );
    let judge = Judge::new(world, arguments.way, ground.names().len());
    let faults = scripted::all(arguments.way);
    let rows = Script { ground, world, hub, judge, way: arguments.way }.run(
        &faults,
        &arguments.only,
        arguments.seed,
        arguments.rounds,
    )?;
    let mut total = Tally::default();
    rows.iter().for_each(|row| total.add(&row.tally));
    let lost: usize = rows.iter().map(|row| row.lost).sum();
    let idle: Vec<&str> =
        rows.iter().filter(|row| row.tally.turned.is_empty()).map(|row| &*row.name).collect();
    let figures: Vec<_> = rows
        .iter()
        .map(|row| {
            let turned = row.tally.turned.iter().map(Duration::as_secs_f64);
            json!({"fault": row.name, "seconds": row.seconds, "pairSeconds": row.tally.pair_seconds,
                "wrongGreen": row.tally.wrong, "turned": row.tally.turned.len(), "healed": row.healed,
                "notInHistory": row.lost,
                "soonest": turned.clone().reduce(f64::min), "latest": turned.reduce(f64::max)})
        })
        .collect();
    println!(
        "{} pairs, {} pair-seconds watched, {} wrongly green; faults that turned nothing: {}; {lost} changes are not in \
         history; {} seconds without an answer",
        world.pairs.len(),
        total.pair_seconds,
        total.wrong,
        if idle.is_empty() { "none".to_owned() } else { idle.join(", ") },
        total.unanswered
    );
    println!(
        "{}",
        json!({"bench": "faults", "clusters": "real", "pairSeconds": total.pair_seconds, "wrongGreen": total.wrong,
            "unanswered": total.unanswered, "notInHistory": lost, "turnedNothing": idle, "faults": figures})
    );
    Ok(total.wrong == 0 && lost == 0 && idle.is_empty())
}

/// Prints what the hub shows while all is well.
pub(crate) fn print_tables(tables: &str) {
    println!("{tables}");
}

/// Prints the outcome of a fault.
pub(crate) fn print_row(row: &Row) {
    println!(
        "{:28} {:>7.0} {:>12} {:>11} {:>10} {:>7.0} s {:>6}",
        row.name,
        row.seconds,
        row.tally.pair_seconds,
        row.tally.wrong,
        row.tally.turns(),
        row.healed,
        row.tally.turned.len()
    );
}

fn seeded(arguments: &Arguments, ground: &Ground, world: &World, hub: &mut Hub) -> Result<bool> {
    let judge = Judge::new(world, arguments.way, ground.names().len());
    let random = fastrand::Rng::with_seed(arguments.seed);
    let (total, counts, healed) =
        Seeded { ground, world, hub, way: arguments.way, judge, random }.run(arguments.time)?;
    for (name, count) in &counts {
        println!("{name:28} {count:>4}");
    }
    println!(
        "seed {}: {} pairs, {} pair-seconds watched, {} wrongly green; {} turned in {}; {} pair-seconds pale; all \
         green {healed:.0} s after the last fault; {} seconds without an answer",
        arguments.seed,
        world.pairs.len(),
        total.pair_seconds,
        total.wrong,
        total.turned.len(),
        total.turns(),
        total.pale,
        total.unanswered
    );
    println!(
        "{}",
        json!({"bench": "faults", "clusters": "simulated", "seed": arguments.seed, "pairSeconds": total.pair_seconds,
            "wrongGreen": total.wrong, "turned": total.turned.len(), "pale": total.pale, "healed": healed,
            "unanswered": total.unanswered, "faults": counts})
    );
    Ok(total.wrong == 0 && !total.turned.is_empty())
}
