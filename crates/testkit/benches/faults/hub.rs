//! The hub that is tested: a process, asked by HTTP.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Signal, kill_process};
use taffrail_testkit::hub::Hub as HubProcess;

use crate::ground::Ground;

/// A running hub, which is killed on drop.
pub(crate) struct Hub {
    process: HubProcess,
    sleep: Sleep,
}

/// The sleep of the machine, as the hub sees it.
struct Sleep {
    /// The file from which `sleep.c` reads the nanoseconds of all sleeps so far.
    file: PathBuf,
    /// The sum of the sleeps that are over.
    slept: Duration,
    /// The beginning of the present sleep; `None` while the machine is awake.
    begun: Option<Instant>,
}

impl Sleep {
    /// Builds `sleep.c`, and lets `command` run with it.
    fn of(command: &mut Command, folder: &Path) -> Result<Sleep> {
        let library = folder.join("sleep.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/faults/sleep.c");
        let built =
            Command::new("cc").args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
        ensure!(built.context("sleep.c needs the C compiler cc")?.success(), "cc cannot build sleep.c");
        let sleep = Sleep { file: folder.join("slept"), slept: Duration::ZERO, begun: None };
        sleep.tell()?;
        command.env("LD_PRELOAD", library).env("SLEPT", &sleep.file);
        Ok(sleep)
    }

    fn tell(&self) -> Result<()> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&self.file)?;
        let slept = i64::try_from(self.slept.as_nanos())?;
        // In place: the hub has mapped the file.
        Ok(file.write_all_at(&slept.to_ne_bytes(), 0)?)
    }
}

/// A pair as the hub shows it: each side green or not, in the order of [`SIDES`](crate::world::SIDES).
pub(crate) type Shown = HashMap<String, [bool; 2]>;

impl Hub {
    /// Starts a hub of all clusters behind their doors.
    pub(crate) fn start(program: &Path, ground: &Ground, more: &[&str]) -> Result<Hub> {
        let folder = ground.folder();
        let all: Vec<usize> = (0..ground.names().len()).collect();
        let kubeconfig = folder.join("kubeconfig");
        fs::write(&kubeconfig, ground.kubeconfig(&all))?;
        let mut command = Command::new(program);
        command
            .args(["hub", "serve", "--all-contexts", "--listen", "127.0.0.1:0"])
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .arg("--data")
            .arg(folder.join("data"))
            .args(more)
            .env("XDG_CONFIG_HOME", folder.join("settings"));
        let sleep = Sleep::of(&mut command, folder)?;
        Ok(Hub { process: HubProcess::start(&mut command)?, sleep })
    }

    /// Asks for all pairs.
    pub(crate) fn shown(&self) -> Result<Shown> {
        let list = self.process.get("/api/v1/apps?limit=500")?;
        let mut shown = Shown::new();
        for row in list["items"].as_array().context("the hub answered with no list")? {
            let sides = shown.entry(row["name"].as_str().unwrap_or_default().to_owned()).or_default();
            // Of several rows of one app a green one counts.
            sides[0] |= row["effective"] == "Current";
            sides[1] |= row["sync"]["effective"] == "Synced";
        }
        Ok(shown)
    }

    /// Asks for the statuses, the freshness and the message of one pair, for a failure.
    pub(crate) fn told_of(&self, name: &str) -> String {
        let list = self.process.get("/api/v1/apps?limit=500").unwrap_or_default();
        let rows = list["items"].as_array().into_iter().flatten();
        let row = rows.filter(|row| row["name"] == name).map(|row| {
            let fields =
                ["cluster", "health", "effective", "freshness", "message"].map(|key| row[key].to_string());
            format!("{} sync {} {}", fields.join(" "), row["sync"]["effective"], row["sync"]["freshness"])
        });
        row.collect::<Vec<_>>().join("; ")
    }

    /// Lets the machine sleep, as far as the hub can tell: it stands still, and so does the clock of its timers.
    pub(crate) fn sleep(&mut self) -> Result<()> {
        self.sleep.begun = Some(Instant::now());
        Ok(kill_process(self.process.pid(), Signal::STOP)?)
    }

    /// Wakes the hub from its sleep.
    pub(crate) fn wake(&mut self) -> Result<()> {
        self.sleep.slept += self.sleep.begun.take().map_or(Duration::ZERO, |begun| begun.elapsed());
        self.sleep.tell()?;
        Ok(kill_process(self.process.pid(), Signal::CONT)?)
    }
}
