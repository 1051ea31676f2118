//! Follows a cluster through disturbances: `soak [--kubeconfig FILE] [--kubectl PROGRAM] MINUTES [SEED]`.
//!
//! 200 times a second, an object is created, changed or deleted. Meanwhile connections are cut, answers are delayed or
//! dropped, and the server is killed, stopped for a while, or set back to an older state. At the end of each round of a
//! few seconds, the writes and the disturbances stop, and the index is compared with what the server lists: every
//! object, its version, and its status with all evidence. With `--kubectl` the lists are those of `kubectl get --raw`.
//! The program ends with one line of JSON, and with exit code 1 if anything was not as promised.
//!
//! Without `--kubeconfig` the server is simulated; it then also sends garbage and silent watches. With it, the server
//! is a real one behind a proxy in this process. What is to be done to its processes is written to standard output, and
//! the answer is read from standard input: `cargo xtask bench soak` runs it like this.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it answers on standard output, and tells how far it is"
)]

mod ground;
mod real;
mod simulated;
mod truth;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use taffrail_cluster::{Cluster, Connectivity, Deadline, Kubeconfig};
use taffrail_index::ScopeState;
use taffrail_observe::{Live, LiveSettings};

use ground::{Change, Ground};
use truth::{Difference, Reader};

/// The allocator of programs that follow clusters for long.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const WRITES_A_SECOND: u64 = 200;
const ROUND: Duration = Duration::from_secs(3);

/// Maximum time until the index must equal the server again; after it, differences are counted.
const PATIENCE: Duration = Duration::from_secs(90);

/// Maximum time for which an object that is not ready may be shown as ready without a message about it.
const SLOW_GREEN: Duration = Duration::from_secs(10);

/// Time by which a busy machine may exceed the promised time until it notices that the server is silent.
const SLACK: Duration = Duration::from_secs(1);

struct Arguments {
    kubeconfig: Option<PathBuf>,
    kubectl: Option<PathBuf>,
    time: Duration,
    seed: u64,
}

impl Arguments {
    fn parse() -> Outcome<Arguments> {
        let mut all = std::env::args().skip(1);
        let mut arguments =
            Arguments { kubeconfig: None, kubectl: None, time: Duration::from_secs(60), seed: 1 };
        let mut numbers = Vec::new();
        while let Some(argument) = all.next() {
            match &*argument {
                "--kubeconfig" => arguments.kubeconfig = all.next().map(PathBuf::from),
                "--kubectl" => arguments.kubectl = all.next().map(PathBuf::from),
                number => numbers.push(number.parse::<f64>()?),
            }
        }
        if let Some(minutes) = numbers.first() {
            arguments.time = Duration::from_secs_f64(minutes * 60.0);
        }
        arguments.seed = numbers.get(1).map_or(1, |seed| *seed as u64);
        Ok(arguments)
    }
}

fn main() -> Outcome<ExitCode> {
    let arguments = Arguments::parse()?;
    tikv_jemalloc_ctl::background_thread::write(true)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let mut random = fastrand::Rng::with_seed(arguments.seed);
        let ground = match &arguments.kubeconfig {
            None => Ground::Simulated(simulated::Simulated::start(arguments.seed).await?),
            Some(file) => Ground::Real(real::Real::start(file).await?),
        };
        let ground = Arc::new(ground);
        ground.furnish(&mut random).await?;
        let mut soak = Soak::start(ground, &arguments, random).await?;
        let begun = Instant::now();
        while begun.elapsed() < arguments.time {
            soak.round().await?;
        }
        soak.report().await
    })
}

/// The measurements so far.
#[derive(Default)]
struct Seen {
    writes: Arc<AtomicU64>,
    writing: Duration,
    comparisons: u64,
    objects: usize,
    differences: usize,
    slowest: Duration,
    /// Maximum time for which an object that is not ready was shown as ready, after all disturbances of a round ended.
    longest_green: Duration,
    /// Sum of the times by which that, and the noticing of a silent server, exceeded what is promised.
    wrong_green: Duration,
    darknesses: u64,
    slowest_dark: Duration,
    late: u64,
    after_a_minute: Option<u64>,
}

struct Soak {
    ground: Arc<Ground>,
    live: Live,
    reader: Reader,
    random: fastrand::Rng,
    begun: Instant,
    seen: Seen,
    /// Maximum time until a silent server must be noticed.
    dark_within: Duration,
    /// Maximum time until a watch that brings nothing any more must be noticed.
    noticed_within: Duration,
}

impl Soak {
    async fn start(ground: Arc<Ground>, arguments: &Arguments, random: fastrand::Rng) -> Outcome<Soak> {
        let context = Kubeconfig::load(Some(ground.followed()), None, None)?.current()?;
        let connected = Cluster::connect(&context, Deadline::after(PATIENCE)).await?;
        let feeds = ground.settings();
        let (dark_within, noticed_within) =
            (feeds.probe_after + feeds.probe_timeout, ground.noticed_within());
        let reader = Reader::connect(ground.kubeconfig(), arguments.kubectl.clone()).await?;
        let live =
            Live::start(connected, Some(context), LiveSettings { feeds, ..LiveSettings::default() }).await?;
        let seen = Seen::default();
        Ok(Soak { ground, live, reader, random, begun: Instant::now(), seen, dark_within, noticed_within })
    }

    async fn round(&mut self) -> Outcome<()> {
        let begun = Instant::now();
        let writers = Writers::start(&self.ground, self.random.u64(..), &self.seen.writes);
        let mut story = Vec::new();
        while begun.elapsed() < ROUND {
            tokio::time::sleep(Duration::from_millis(self.random.u64(100..1200))).await;
            if self.random.u8(0..20) == 0 {
                story.push(self.darkness().await?);
            } else {
                story.push(self.ground.trouble(&mut self.random).await?);
            }
        }
        writers.end().await;
        self.seen.writing += begun.elapsed();
        self.ground.heal().await?;
        story.extend(self.ground.finish_round(&mut self.random).await?);
        let differences = self.compare(&story).await?;
        let seen = &mut self.seen;
        if !differences.is_empty() {
            eprintln!(
                "after {:?}: {} differ; trouble was {story:?}",
                self.begun.elapsed(),
                differences.len()
            );
            differences.iter().take(8).for_each(|difference| eprintln!("  {}", difference.what));
        }
        seen.differences += differences.len();
        if self.begun.elapsed() >= Duration::from_secs(60) && seen.after_a_minute.is_none() {
            seen.after_a_minute = Some(resident()?);
        }
        if seen.comparisons.is_multiple_of(20) {
            eprintln!(
                "{:?}: {} comparisons, {} writes, {} KiB",
                self.begun.elapsed(),
                seen.comparisons,
                seen.writes.load(Ordering::Relaxed),
                resident()? / 1024
            );
        }
        Ok(())
    }

    /// Makes the server silent, and checks that this is noticed and shown in time. Returns the name of the disturbance.
    async fn darkness(&mut self) -> Outcome<String> {
        let mut contact = self.live.contact();
        // What was dark already is not timed.
        let was_live = *contact.borrow_and_update() == Connectivity::Live;
        let begun = Instant::now();
        let what = self.ground.darken(&mut self.random).await?;
        let least = self.dark_within + SLACK;
        let lost =
            tokio::time::timeout(least * 3, contact.wait_for(|it| matches!(it, Connectivity::Lost { .. })))
                .await;
        let took = begun.elapsed();
        if was_live {
            self.seen.darknesses += 1;
            self.seen.slowest_dark = self.seen.slowest_dark.max(took);
            if took > least || lost.is_err() {
                self.seen.late += 1;
                self.seen.wrong_green += took.saturating_sub(least);
                eprintln!("after {:?}: noticed {what} only after {took:?}", self.begun.elapsed());
            } else {
                // What is told with the contact is shown with the next snapshot.
                tokio::time::sleep(Duration::from_millis(700)).await;
                let snapshot = self.live.snapshot();
                let green = snapshot.scopes().filter(|(.., scope)| scope.state == ScopeState::Live).count();
                if green > 0 && matches!(*self.live.contact().borrow(), Connectivity::Lost { .. }) {
                    self.seen.late += 1;
                    eprintln!(
                        "after {:?}: {green} scopes were shown as live in {what}",
                        self.begun.elapsed()
                    );
                }
            }
        }
        self.ground.lighten(begun).await?;
        Ok(what)
    }

    /// Waits until the index equals what the server lists, or [`PATIENCE`] is over; returns the differences at the end.
    /// `story` has the disturbances of the round.
    async fn compare(&mut self, story: &[String]) -> Outcome<Vec<Difference>> {
        let quiet = Instant::now();
        let mut last_green = Duration::ZERO;
        let mut green = Vec::new();
        let mut decisive = false;
        let differences = loop {
            let began = quiet.elapsed();
            let before = self.live.snapshot();
            // What controllers and time still move is not still: it is looked again until nothing differs.
            let read = if decisive { self.reader.decisive().await } else { self.reader.own().await };
            let differences = match read {
                Ok(truth) => {
                    self.seen.objects = truth.len();
                    truth.compare(&before, &self.live.snapshot())
                }
                // The server may still be starting.
                Err(error) => vec![Difference { what: format!("cannot be compared: {error}"), green: false }],
            };
            if differences.iter().any(|difference| difference.green) {
                last_green = began;
                green = differences.iter().filter(|it| it.green).take(5).map(|it| it.what.clone()).collect();
            }
            match differences.is_empty() {
                true if decisive || !self.reader.has_kubectl() => break Vec::new(),
                is_empty => decisive = is_empty,
            }
            if quiet.elapsed() > PATIENCE {
                if differences.is_empty() {
                    let what = "kubectl never agreed".to_owned();
                    break vec![Difference { what, green: false }];
                }
                break differences;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        if differences.is_empty() {
            self.reader.agreed();
        }
        if last_green > SLOW_GREEN {
            eprintln!(
                "after {:?}: shown ready for {last_green:?}: {green:#?}; trouble was {story:?}",
                self.begun.elapsed()
            );
        }
        self.seen.comparisons += 1;
        self.seen.slowest = self.seen.slowest.max(quiet.elapsed());
        self.seen.longest_green = self.seen.longest_green.max(last_green);
        self.seen.wrong_green += last_green.saturating_sub(self.noticed_within);
        Ok(differences)
    }

    async fn report(self) -> Outcome<ExitCode> {
        let costs = self.live.costs().await;
        let seen = self.seen;
        let writes = seen.writes.load(Ordering::Relaxed);
        let at_end = resident()?;
        let after_a_minute = seen.after_a_minute.unwrap_or(at_end);
        // What is there at the end is not the same as after a minute, and allocators keep some.
        let is_back = at_end <= after_a_minute + after_a_minute / 4 + (8 << 20);
        let round = |time: Duration| (time.as_secs_f64() * 1000.0).round() / 1000.0;
        println!(
            "{}",
            json!({
                "seconds": self.begun.elapsed().as_secs(), "comparisons": seen.comparisons,
                "compared_with": self.reader.name(), "objects": seen.objects, "differences": seen.differences,
                "writes": writes, "writes_a_second": (writes as f64 / seen.writing.as_secs_f64()).round(),
                "wrong_green_seconds": round(seen.wrong_green), "longest_green_seconds": round(seen.longest_green),
                "noticed_within_seconds": round(self.noticed_within),
                "slowest_to_agree_seconds": round(seen.slowest),
                "dark": seen.darknesses, "slowest_to_turn_stale_seconds": round(seen.slowest_dark),
                "stale_within_seconds": round(self.dark_within), "late_to_turn_stale": seen.late,
                "relists": costs.relists, "silences": costs.silences, "trouble": self.ground.counts(),
                "resident_after_a_minute": after_a_minute, "resident_at_end": at_end, "memory_is_back": is_back,
            })
        );
        let is_good = seen.differences == 0 && seen.late == 0 && seen.wrong_green.is_zero() && is_back;
        Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Tasks that write until they are ended.
struct Writers {
    over: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Writers {
    fn start(ground: &Arc<Ground>, seed: u64, written: &Arc<AtomicU64>) -> Writers {
        let over = Arc::new(AtomicBool::new(false));
        let many = ground.writers();
        let tasks = (0..many).map(|own| {
            let (ground, over, written) = (ground.clone(), over.clone(), written.clone());
            let mut random = fastrand::Rng::with_seed(seed.wrapping_add(own));
            tokio::spawn(async move {
                let mut tick = tokio::time::interval(Duration::from_millis(1000 * many / WRITES_A_SECOND));
                // What a busy server holds up is made up for.
                tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
                while !over.load(Ordering::Relaxed) {
                    tick.tick().await;
                    // A server that is away takes nothing.
                    if ground.write(Change::random(&mut random)).await.is_ok() {
                        written.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        });
        Writers { tasks: tasks.collect(), over }
    }

    async fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        for task in self.tasks {
            // A writer that panicked has said so.
            let _ = task.await;
        }
    }
}

fn resident() -> Outcome<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split_whitespace().nth(1).ok_or("no resident size")?.parse()?;
    Ok(pages * 4096)
}
