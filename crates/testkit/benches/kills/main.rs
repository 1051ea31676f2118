//! Kills a hub again and again while apps change, and checks that it lost nothing that it had acknowledged:
//! `kills TAFFRAIL [--kills N] [--moments N] [--seed N]`.
//!
//! `taffrail hub serve` runs as a process, and follows simulated clusters of this one, whose apps change in bursts. It
//! is killed (SIGKILL) at random moments, every other time right after it acknowledged something new. After each restart
//! its history is compared with all that it had acknowledged: what it showed as history, and what it showed as changes
//! before it said that nothing is unsaved. No entry may be missing, doubled, half-written or out of order, and the
//! state before each transition is the one after the transition before it.
//!
//! Then the hub runs on for a while, and the states of random apps at random moments are compared with the log of the
//! changes that the bench made, once as the hub runs, once after another kill, and once after `hub backup` and
//! `hub restore`; so is each sync that the apps' tools recorded.
//!
//! The program ends with one line of JSON, and with exit code 1 if anything was wrong. `cargo xtask bench kills` runs
//! it.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it answers on standard output, and tells how far it is"
)]

mod ledger;
mod load;
mod past;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use jiff::{SignedDuration, Timestamp};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use taffrail_testkit::hub::Hub;

use ledger::{Findings, Ledger, history};
use load::Load;

/// The number of simulated clusters, and of the apps of each.
const CLUSTERS: usize = 4;
const APPS: usize = 8;

/// The longest time for which a hub runs before it is killed, in milliseconds.
const LIFE: u64 = 1500;

/// The longest time in which a hub that starts may be without an answer.
const START: Duration = Duration::from_secs(15);

/// The time for which the hub runs undisturbed after the kills.
const CALM: Duration = Duration::from_secs(25);

/// The number of kills after which all of history is compared, not only its last part.
const WHOLE: usize = 50;

struct Arguments {
    program: PathBuf,
    kills: usize,
    moments: usize,
    seed: u64,
}

impl Arguments {
    fn parse() -> Result<Arguments> {
        // Cargo adds it to what it runs as a bench.
        let mut all = std::env::args().skip(1).filter(|argument| argument != "--bench");
        let program = all.next().context("the path of the binary taffrail is missing")?.into();
        let mut arguments = Arguments { program, kills: 200, moments: 1000, seed: 1 };
        while let Some(argument) = all.next() {
            let value = all.next().with_context(|| format!("{argument} needs a value"))?;
            match &*argument {
                "--kills" => arguments.kills = value.parse()?,
                "--moments" => arguments.moments = value.parse()?,
                "--seed" => arguments.seed = value.parse()?,
                other => bail!("unknown argument {other}"),
            }
        }
        Ok(arguments)
    }
}

/// The files of a run, removed on drop.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // They are of no use afterwards.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("XDG_CONFIG_HOME", self.0.join("settings"));
        command
    }

    /// Starts a hub, and returns it with the time until it answered with all apps.
    fn hub(&self, program: &Path, data: &str) -> Result<(Hub, Duration)> {
        let began = Instant::now();
        let mut command = self.command(program);
        command
            .args(["hub", "serve", "--all-contexts", "--listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(self.0.join("kubeconfig"))
            .arg("--data")
            .arg(self.0.join(data));
        let hub = Hub::start(&mut command)?;
        while hub.get("/api/v1/apps?limit=500")?["total"] != CLUSTERS * APPS {
            ensure!(began.elapsed() < START, "the hub shows not all apps");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok((hub, began.elapsed()))
    }
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let folder = Folder(std::env::temp_dir().join(format!("taffrail-kills-{}", std::process::id())));
    fs::create_dir_all(&folder.0)?;
    let mut load = Load::start(runtime.handle(), arguments.seed, CLUSTERS, APPS)?;
    fs::write(folder.0.join("kubeconfig"), load.kubeconfig())?;
    let mut random = fastrand::Rng::with_seed(arguments.seed);
    let mut ledger = Ledger::default();
    let mut findings = Findings::default();
    let mut slowest = Duration::ZERO;
    let (mut hub, _) = folder.hub(&arguments.program, "data")?;
    let begun = Timestamp::now();
    for number in 1..=arguments.kills {
        let from = Timestamp::now();
        live_and_die(&hub, &load, &mut ledger, &mut random)?;
        drop(hub);
        let taken;
        (hub, taken) = folder.hub(&arguments.program, "data")?;
        slowest = slowest.max(taken);
        // The last seconds before the kill may hold transitions of the run before.
        let from = from.checked_sub(SignedDuration::from_secs(1))?.to_string();
        let from = if number % WHOLE == 0 || number == arguments.kills { "" } else { &*from };
        compare(&hub, &load, &ledger, from, &mut findings)?;
        if number % 10 == 0 {
            eprintln!(
                "{number} kills: {} acknowledged transitions, {} comparisons, {} lost, slowest start {:.1} s",
                ledger.len(),
                findings.checked,
                findings.lost,
                slowest.as_secs_f64()
            );
        }
    }
    let acknowledged = ledger.len();
    let past = past::check(&arguments, &folder, &mut load, hub, begun, &mut random)?;
    findings.examples.iter().chain(&past.examples).for_each(|example| println!("{example}"));
    println!(
        "{} kills, {acknowledged} acknowledged transitions, compared {} times: {} lost, {} doubled, {} out of order, {} \
         with another state before, {} half-written; slowest start {:.2} s",
        arguments.kills,
        findings.checked,
        findings.lost,
        findings.duplicates,
        findings.disordered,
        findings.broken,
        findings.half_written,
        slowest.as_secs_f64()
    );
    println!(
        "{} states of random apps at random moments, {} known, {} wrong; {} syncs, {} of them failed, {} without exactly \
         one entry",
        past.asked, past.known, past.wrong, past.syncs, past.failed, past.odd_syncs
    );
    println!(
        "{}",
        json!({"bench": "kills", "kills": arguments.kills, "acknowledged": acknowledged, "compared": findings.checked,
            "lost": findings.lost, "doubled": findings.duplicates, "disordered": findings.disordered,
            "broken": findings.broken, "halfWritten": findings.half_written,
            "slowestStart": slowest.as_secs_f64(), "moments": past.asked, "known": past.known, "wrong": past.wrong,
            "syncs": past.syncs, "failedSyncs": past.failed, "oddSyncs": past.odd_syncs})
    );
    let is_right = findings.is_clean() && past.wrong + past.odd_syncs == 0;
    // A run that checked nothing proves nothing.
    let is_told = (arguments.kills == 0 || findings.checked > 0) && past.syncs > 0;
    Ok(if is_right && is_told { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Asks a hub until it is killed: at a random moment, or right after it acknowledged something new.
fn live_and_die(hub: &Hub, load: &Load, ledger: &mut Ledger, random: &mut fastrand::Rng) -> Result<()> {
    let (pid, life) = (hub.pid(), Duration::from_millis(random.u64(50..LIFE)));
    let waits_for_news = random.bool();
    let apps = load.apps();
    let end = Instant::now() + life;
    let killer = (!waits_for_news).then(|| std::thread::spawn(move || kill_after(pid, life)));
    // A hub that acknowledges nothing for long is killed, too.
    let last = end + Duration::from_secs(10);
    let mut asked: Result<bool> = Ok(false);
    while Instant::now() < last {
        asked = ledger.changes(hub);
        match &asked {
            Ok(true) if waits_for_news && Instant::now() >= end => break,
            Ok(_) => {}
            Err(_) => break,
        }
        let app = &apps[random.usize(..apps.len())];
        // Once the hub is dead it answers no more.
        if ledger.history(hub, load, app).is_err() {
            break;
        }
    }
    match killer {
        Some(killer) => killer.join().ok().context("no kill")??,
        None => {
            asked.context("the hub answered no more before it was killed")?;
            kill_process(pid, Signal::KILL)?;
        }
    }
    Ok(())
}

fn kill_after(pid: Pid, life: Duration) -> Result<()> {
    std::thread::sleep(life);
    Ok(kill_process(pid, Signal::KILL)?)
}

/// Compares the history of all apps since `from`, or all of it, with what was acknowledged.
fn compare(hub: &Hub, load: &Load, ledger: &Ledger, from: &str, findings: &mut Findings) -> Result<()> {
    for app in load.apps() {
        let rows = history(hub, load, &app, from)?;
        ledger.compare(&app, &rows, from, findings);
    }
    Ok(())
}
