//! The hub that is tested: a process that is asked what it shows, and the processes through which it knows its clusters.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use taffrail_testkit::agents::{AgentProcess, AgentsHub};
use taffrail_testkit::hub::Hub as HubProcess;
use taffrail_testkit::proxy::{Line, Proxy};
use tokio::runtime::Handle;

use crate::ground::Ground;

/// The way by which the hub knows its clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It reaches in.
    ReachIn,
    /// An agent of each cluster reports it.
    Agents,
}

/// A running hub, which is killed on drop.
pub(crate) struct Hub {
    processes: Processes,
    sleep: Sleep,
}

enum Processes {
    ReachIn(Box<HubProcess>),
    Agents { hub: Box<AgentsHub>, reporters: Vec<Reporter> },
}

/// The agent of a cluster, and its way to the hub.
struct Reporter {
    cluster: String,
    kubeconfig: PathBuf,
    folder: PathBuf,
    line: Proxy,
    /// `None` while it is killed.
    process: Option<AgentProcess>,
    /// True while it is stopped, whether or not the machine sleeps.
    is_stopped: bool,
}

/// A trouble of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentTrouble {
    /// Its process is stopped.
    Stopped,
    /// Its process is killed, and started again later.
    Killed,
    /// All bytes between it and the hub are swallowed.
    Swallowed,
    /// Its connection with the hub is closed, and no other one is accepted.
    Closed,
}

/// The sleep of the machine, as the hub and the agents see it.
struct Sleep {
    library: PathBuf,
    /// The file from which `sleep.c` reads the nanoseconds of all sleeps so far.
    file: PathBuf,
    /// The sum of the sleeps that are over.
    slept: Duration,
    /// The beginning of the present sleep; `None` while the machine is awake.
    begun: Option<Instant>,
}

impl Sleep {
    /// Builds `sleep.c`.
    fn built(folder: &Path) -> Result<Sleep> {
        let library = folder.join("sleep.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/faults/sleep.c");
        let built =
            Command::new("cc").args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
        ensure!(built.context("sleep.c needs the C compiler cc")?.success(), "cc cannot build sleep.c");
        let sleep = Sleep { library, file: folder.join("slept"), slept: Duration::ZERO, begun: None };
        sleep.tell()?;
        Ok(sleep)
    }

    fn tell(&self) -> Result<()> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&self.file)?;
        let slept = i64::try_from(self.slept.as_nanos())?;
        // In place: the processes have mapped the file.
        Ok(file.write_all_at(&slept.to_ne_bytes(), 0)?)
    }

    /// Returns a function that makes commands of the program that see the sleep.
    fn commands(
        &self,
        program: &Path,
        folder: &Path,
    ) -> impl Fn(&[&str]) -> Command + Send + Sync + use<> + 'static {
        let (program, settings) = (program.to_owned(), folder.join("settings"));
        let (library, file) = (self.library.clone(), self.file.clone());
        move |arguments: &[&str]| {
            let mut command = Command::new(&program);
            command
                .args(arguments)
                .env("XDG_CONFIG_HOME", &settings)
                .env("LD_PRELOAD", &library)
                .env("SLEPT", &file);
            command
        }
    }
}

/// A pair as the hub shows it: each side green or not, in the order of [`SIDES`](crate::world::SIDES).
pub(crate) type Shown = HashMap<String, [bool; 2]>;

impl Hub {
    /// Starts a hub that knows all clusters behind their doors.
    pub(crate) fn start(
        runtime: &Handle,
        program: &Path,
        ground: &Ground,
        way: Way,
        more: &[&str],
    ) -> Result<Hub> {
        let folder = ground.folder();
        let sleep = Sleep::built(folder)?;
        let commands = sleep.commands(program, folder);
        let processes = match way {
            Way::ReachIn => {
                let all: Vec<usize> = (0..ground.names().len()).collect();
                let kubeconfig = folder.join("kubeconfig");
                fs::write(&kubeconfig, ground.kubeconfig(&all))?;
                let mut command = commands(&["hub", "serve", "--all-contexts", "--listen", "127.0.0.1:0"]);
                command
                    .arg("--kubeconfig")
                    .arg(&kubeconfig)
                    .arg("--data")
                    .arg(folder.join("data"))
                    .args(more);
                Processes::ReachIn(Box::new(HubProcess::start(&mut command)?))
            }
            Way::Agents => {
                let hub = AgentsHub::start_with(commands, more)?;
                let mut reporters = Vec::new();
                for (number, cluster) in ground.names().iter().enumerate() {
                    let folder = folder.join(cluster).join("agent");
                    fs::create_dir_all(&folder)?;
                    let kubeconfig = folder.join("kubeconfig");
                    fs::write(&kubeconfig, ground.kubeconfig(&[number]))?;
                    let line = runtime.block_on(Proxy::open(hub.address()?))?;
                    let cluster = cluster.clone();
                    let mut reporter =
                        Reporter { cluster, kubeconfig, folder, line, process: None, is_stopped: false };
                    reporter.start(&hub)?;
                    reporters.push(reporter);
                }
                Processes::Agents { hub: Box::new(hub), reporters }
            }
        };
        Ok(Hub { processes, sleep })
    }

    /// Asks for the rows of all pairs.
    fn rows(&self) -> Result<Vec<Value>> {
        let mut list = match &self.processes {
            Processes::ReachIn(hub) => hub.get("/api/v1/apps?limit=500")?,
            Processes::Agents { hub, .. } => {
                let answer = hub.ask(&["get", "apps", "-o", "json"])?;
                let told = || String::from_utf8_lossy(&answer.stderr).into_owned();
                serde_json::from_slice(&answer.stdout).with_context(told)?
            }
        };
        match list["items"].take() {
            Value::Array(rows) => Ok(rows),
            _ => anyhow::bail!("the hub answered with no list"),
        }
    }

    /// Asks for all pairs.
    pub(crate) fn shown(&self) -> Result<Shown> {
        let mut shown = Shown::new();
        for row in self.rows()? {
            let sides = shown.entry(row["name"].as_str().unwrap_or_default().to_owned()).or_default();
            // Of several rows of one app a green one counts.
            sides[0] |= row["effective"] == "Current";
            sides[1] |= row["sync"]["effective"] == "Synced";
        }
        Ok(shown)
    }

    /// Asks for the statuses, the freshness and the message of one pair, for a failure.
    pub(crate) fn told_of(&self, name: &str) -> String {
        let rows = self.rows().unwrap_or_default();
        let row = rows.iter().filter(|row| row["name"] == name).map(|row| {
            let fields =
                ["cluster", "health", "effective", "freshness", "message"].map(|key| row[key].to_string());
            format!("{} sync {} {}", fields.join(" "), row["sync"]["effective"], row["sync"]["freshness"])
        });
        row.collect::<Vec<_>>().join("; ")
    }

    /// Returns the ids of the processes that see the sleep of the machine, without those that are stopped anyway.
    fn pids(&self) -> Vec<Pid> {
        match &self.processes {
            Processes::ReachIn(hub) => vec![hub.pid()],
            Processes::Agents { hub, reporters } => {
                let running = reporters.iter().filter(|it| !it.is_stopped);
                let agents = running.filter_map(|it| it.process.as_ref()?.pid());
                hub.pid().into_iter().chain(agents).collect()
            }
        }
    }

    /// Lets the machine sleep, as far as the hub and the agents can tell: they stand still, and so does the clock of their
    /// timers.
    pub(crate) fn sleep(&mut self) -> Result<()> {
        self.sleep.begun = Some(Instant::now());
        self.pids().into_iter().try_for_each(|pid| Ok(kill_process(pid, Signal::STOP)?))
    }

    /// Wakes them from their sleep.
    pub(crate) fn wake(&mut self) -> Result<()> {
        self.sleep.slept += self.sleep.begun.take().map_or(Duration::ZERO, |begun| begun.elapsed());
        self.sleep.tell()?;
        self.pids().into_iter().try_for_each(|pid| Ok(kill_process(pid, Signal::CONT)?))
    }

    /// Begins a trouble of the agent of a cluster.
    pub(crate) fn trouble(&mut self, cluster: usize, trouble: AgentTrouble) -> Result<()> {
        let (_, reporter) = self.reporter(cluster)?;
        match trouble {
            AgentTrouble::Stopped => {
                reporter.is_stopped = true;
                reporter.signal(Signal::STOP)?;
            }
            AgentTrouble::Killed => drop(reporter.process.take()),
            AgentTrouble::Swallowed => reporter.line.set(Line::Dead),
            AgentTrouble::Closed => reporter.line.set(Line::Closed),
        }
        Ok(())
    }

    /// Ends a trouble of the agent of a cluster.
    pub(crate) fn heal(&mut self, cluster: usize, trouble: AgentTrouble) -> Result<()> {
        let is_asleep = self.sleep.begun.is_some();
        let (hub, reporter) = self.reporter(cluster)?;
        match trouble {
            AgentTrouble::Stopped => {
                reporter.is_stopped = false;
                // One of a machine that sleeps wakes with it.
                if is_asleep { Ok(()) } else { reporter.signal(Signal::CONT) }
            }
            AgentTrouble::Killed => reporter.start(hub),
            AgentTrouble::Swallowed | AgentTrouble::Closed => {
                reporter.line.set(Line::Open);
                Ok(())
            }
        }
    }

    fn reporter(&mut self, cluster: usize) -> Result<(&AgentsHub, &mut Reporter)> {
        let Processes::Agents { hub, reporters } = &mut self.processes else {
            anyhow::bail!("the hub has no agents");
        };
        Ok((hub, reporters.get_mut(cluster).context("there is no such cluster")?))
    }
}

impl Reporter {
    /// Starts the agent; the first time it enrols, and this waits until it reports.
    fn start(&mut self, hub: &AgentsHub) -> Result<()> {
        let text = |path: &Path| path.display().to_string();
        let (kubeconfig, folder) = (text(&self.kubeconfig), text(&self.folder));
        let is_first = !self.folder.join("enrolled").exists();
        let mut more = vec!["--data", &folder, "--name", &self.cluster];
        let token = match is_first {
            true => hub.token(&format!("token-of-{}", self.cluster), &[])?,
            false => String::new(),
        };
        if is_first {
            more.extend(["--token-file", &token]);
        }
        let mut process = hub.agent_through(self.line.address.port(), &kubeconfig, &self.cluster, &more)?;
        if is_first {
            process.until("Connected")?;
            fs::write(self.folder.join("enrolled"), "")?;
        }
        self.process = Some(process);
        Ok(())
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self.process.as_ref().and_then(AgentProcess::pid).context("the agent does not run")?;
        Ok(kill_process(pid, signal)?)
    }
}
