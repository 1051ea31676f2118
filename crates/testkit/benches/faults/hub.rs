//! The hub that is tested: a process that is asked what it shows, and the processes through which it knows its clusters.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use taffrail_testkit::agents::{AgentProcess, AgentsHub};
use taffrail_testkit::hub::Hub as HubProcess;
use taffrail_testkit::proxy::{Line, Proxy};
use tokio::runtime::Handle;

use crate::ground::Ground;
use crate::metrics::{Metrics, MetricsTrouble};
use crate::world::Pair;

/// The way by which the hub knows its clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It reaches in.
    ReachIn,
    /// An agent of each cluster reports it.
    Agents,
    /// It reaches into the first cluster, the agent of the second one reports it, and of the third one metrics tell.
    Each,
}

impl Way {
    /// Returns the source by which the hub knows a cluster.
    pub(crate) fn source(self, cluster: usize) -> Source {
        match (self, cluster) {
            (Way::ReachIn, _) | (Way::Each, 0) => Source::ReachIn,
            (Way::Agents, _) | (Way::Each, 1) => Source::Agent,
            (Way::Each, _) => Source::Metrics,
        }
    }
}

/// The source by which the hub knows a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    ReachIn,
    Agent,
    /// A Prometheus, and behind it an agent that reports to another hub.
    Metrics,
}

impl Source {
    /// Returns the time that its window is longer than that of the others: what Prometheus has scraped is live for 45 s
    /// (three intervals between scrapes, but at least that), and the agent that it scrapes sees its cluster as the others
    /// do.
    pub(crate) fn more(self) -> Duration {
        match self {
            Source::ReachIn | Source::Agent => Duration::ZERO,
            Source::Metrics => Duration::from_secs(45),
        }
    }
}

/// A running hub, which is killed on drop.
pub(crate) struct Hub {
    names: Vec<String>,
    process: Process,
    /// The agents, by the number of their cluster.
    reporters: HashMap<usize, Reporter>,
    /// The way of the metrics, where one is tested, and the hub of the agent that tells them.
    metrics: Option<(Metrics, Box<AgentsHub>)>,
    sleep: Sleep,
}

enum Process {
    /// A hub on loopback.
    Loopback(Box<HubProcess>),
    /// A hub for agents, too.
    Tls(Box<AgentsHub>),
}

/// The agent of a cluster, and its way to the hub.
struct Reporter {
    cluster: String,
    kubeconfig: PathBuf,
    folder: PathBuf,
    line: Proxy,
    /// Further arguments of its command.
    more: Vec<String>,
    /// The address at which it tells its metrics, if they are read.
    listens: Option<SocketAddr>,
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

/// The pairs as the hub shows them, by cluster and name: each side green or not, in the order of
/// [`SIDES`](crate::world::SIDES).
pub(crate) type Shown = HashMap<(String, String), [bool; 2]>;

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
        let commands = || sleep.commands(program, folder);
        let of = |source| -> Vec<usize> {
            (0..ground.names().len()).filter(|cluster| way.source(*cluster) == source).collect()
        };
        let mut arguments: Vec<String> = more.iter().map(|argument| (*argument).to_owned()).collect();
        let reached = of(Source::ReachIn);
        if !reached.is_empty() {
            let kubeconfig = folder.join("kubeconfig");
            fs::write(&kubeconfig, ground.kubeconfig(&reached))?;
            let fixed = ["--clusters-from", "kubeconfig", "--all-contexts", "--kubeconfig"];
            arguments.extend(fixed.map(str::to_owned));
            arguments.push(kubeconfig.display().to_string());
        }
        let (mut reporters, mut metrics) = (HashMap::new(), None);
        for cluster in of(Source::Metrics) {
            let other = AgentsHub::start(commands())?;
            let mut reporter = Reporter::new(runtime, ground, cluster, &other, more)?;
            let address = reporter.listen()?;
            reporter.start(&other)?;
            reporters.insert(cluster, reporter);
            let told = Metrics::start(runtime, address)?;
            arguments.extend(["--metrics-from".to_owned(), told.write_config(folder)?.display().to_string()]);
            metrics = Some((told, Box::new(other)));
        }
        let process = if way == Way::ReachIn {
            let mut command = commands()(&["hub", "serve", "--listen", "127.0.0.1:0"]);
            command.args(&arguments).arg("--data").arg(folder.join("data"));
            Process::Loopback(Box::new(HubProcess::start(&mut command)?))
        } else {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let hub = AgentsHub::start_with(commands(), &arguments)?;
            for cluster in of(Source::Agent) {
                let mut reporter = Reporter::new(runtime, ground, cluster, &hub, more)?;
                reporter.start(&hub)?;
                reporters.insert(cluster, reporter);
            }
            Process::Tls(Box::new(hub))
        };
        Ok(Hub { names: ground.names().to_vec(), process, reporters, metrics, sleep })
    }

    /// Asks for the rows of all pairs.
    fn rows(&self) -> Result<Vec<Value>> {
        let mut list = match &self.process {
            Process::Loopback(hub) => hub.get("/api/v1/apps?limit=500")?,
            Process::Tls(hub) => {
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
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            let sides = shown.entry((text("cluster"), text("name"))).or_default();
            // Of several rows of one app a green one counts.
            sides[0] |= row["effective"] == "Current";
            sides[1] |= row["sync"]["effective"] == "Synced";
        }
        Ok(shown)
    }

    /// Returns the sides of a pair as they were shown; `None` if the hub does not list it.
    pub(crate) fn pair_in(&self, shown: &Shown, pair: &Pair) -> Option<[bool; 2]> {
        let rows = shown.iter().filter(|((cluster, name), _)| self.is_of(pair, cluster, name));
        rows.map(|(_, sides)| *sides).reduce(|all, sides| [all[0] | sides[0], all[1] | sides[1]])
    }

    /// Returns true if a row is one of a pair: of an app that lands in its home there is one in each cluster.
    fn is_of(&self, pair: &Pair, cluster: &str, name: &str) -> bool {
        name == pair.name && (pair.home != pair.target || cluster == self.names[pair.target])
    }

    /// Asks for the statuses, the freshness and the message of one pair, for a failure.
    pub(crate) fn told_of(&self, pair: &Pair) -> String {
        let rows = self.rows().unwrap_or_default();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let rows = rows.iter().filter(|row| self.is_of(pair, &text(row, "cluster"), &text(row, "name")));
        let rows = rows.map(|row| {
            let fields =
                ["cluster", "health", "effective", "freshness", "message"].map(|key| row[key].to_string());
            format!("{} sync {} {}", fields.join(" "), row["sync"]["effective"], row["sync"]["freshness"])
        });
        rows.collect::<Vec<_>>().join("; ")
    }

    /// Returns what the command line shows of the clusters, and of one app in all of them; `None` for a hub without TLS.
    pub(crate) fn tables(&self, app: &str) -> Result<Option<String>> {
        let Process::Tls(hub) = &self.process else { return Ok(None) };
        let mut tables = String::new();
        for arguments in [&["get", "clusters", "-o", "wide"][..], &["get", "apps", app]] {
            tables.push_str(&String::from_utf8_lossy(&hub.ask(arguments)?.stdout));
        }
        Ok(Some(tables))
    }

    /// Returns the number of changes to another health than Current that history has of a pair since `begun`.
    pub(crate) fn turns_in_history(&self, pair: &Pair, begun: Timestamp) -> Result<usize> {
        let Process::Tls(hub) = &self.process else { anyhow::bail!("the hub has no agents") };
        let cluster = &self.names[pair.target];
        let answer = hub.ask(&["history", &pair.name, "--cluster", cluster, "-o", "json"])?;
        let told = || String::from_utf8_lossy(&answer.stderr).into_owned();
        let list: Value = serde_json::from_slice(&answer.stdout).with_context(told)?;
        let entries = list["items"][0]["items"].as_array().cloned().unwrap_or_default();
        let is_turn = |entry: &&Value| {
            let at = entry["at"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
            let health = |state: &str| entry[state]["health"].as_str().unwrap_or_default().to_owned();
            at.is_some_and(|at| at >= begun)
                && health("before") == "Current"
                && !["", "Current", "Unknown"].contains(&&*health("after"))
        };
        Ok(entries.iter().filter(is_turn).count())
    }

    /// Returns the ids of the processes that see the sleep of the machine, without those that are stopped anyway.
    fn pids(&self) -> Vec<Pid> {
        let hub = match &self.process {
            Process::Loopback(hub) => Some(hub.pid()),
            Process::Tls(hub) => hub.pid(),
        };
        let running = self.reporters.values().filter(|it| !it.is_stopped);
        let agents = running.filter_map(|it| it.process.as_ref()?.pid());
        hub.into_iter().chain(agents).collect()
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

    /// Begins a trouble on the way of metrics.
    pub(crate) fn trouble_metrics(&mut self, trouble: MetricsTrouble) -> Result<()> {
        let (metrics, _) = self.metrics.as_mut().context("the hub reads no metrics")?;
        metrics.trouble(trouble)
    }

    /// Ends a trouble on the way of metrics.
    pub(crate) fn heal_metrics(&mut self, trouble: MetricsTrouble) -> Result<()> {
        let (metrics, _) = self.metrics.as_mut().context("the hub reads no metrics")?;
        metrics.heal(trouble)
    }

    fn reporter(&mut self, cluster: usize) -> Result<(&AgentsHub, &mut Reporter)> {
        let reporter = self.reporters.get_mut(&cluster).context("the cluster has no agent")?;
        let hub = match (&self.metrics, &self.process) {
            (Some((_, other)), _) if reporter.listens.is_some() => other,
            (_, Process::Tls(hub)) => hub,
            (_, Process::Loopback(_)) => anyhow::bail!("the hub has no agents"),
        };
        Ok((hub, reporter))
    }
}

impl Reporter {
    fn new(
        runtime: &Handle,
        ground: &Ground,
        cluster: usize,
        hub: &AgentsHub,
        more: &[&str],
    ) -> Result<Reporter> {
        let name = ground.names()[cluster].clone();
        let folder = ground.folder().join(&name).join("agent");
        fs::create_dir_all(&folder)?;
        let kubeconfig = folder.join("kubeconfig");
        fs::write(&kubeconfig, ground.kubeconfig(&[cluster]))?;
        let line = runtime.block_on(Proxy::open(hub.address()?))?;
        let more = more.iter().map(|argument| (*argument).to_owned()).collect();
        Ok(Reporter {
            cluster: name,
            kubeconfig,
            folder,
            line,
            more,
            listens: None,
            process: None,
            is_stopped: false,
        })
    }

    /// Lets the agent tell its metrics at the address that is returned.
    fn listen(&mut self) -> Result<SocketAddr> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        self.listens = Some(address);
        self.more.extend(["--metrics-listen".to_owned(), address.to_string()]);
        Ok(address)
    }

    /// Starts the agent; the first time it enrols, and this waits until it reports.
    fn start(&mut self, hub: &AgentsHub) -> Result<()> {
        let text = |path: &Path| path.display().to_string();
        let (kubeconfig, folder) = (text(&self.kubeconfig), text(&self.folder));
        let is_first = !self.folder.join("enrolled").exists();
        let mut more = vec!["--data", &folder, "--name", &self.cluster];
        more.extend(self.more.iter().map(String::as_str));
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
