//! The hub that is tested: a process, asked by HTTP.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use taffrail_testkit::exchange;

use crate::ground::Ground;

/// The maximum time of an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A running hub, which is killed on drop.
pub(crate) struct Hub {
    child: Child,
    address: SocketAddr,
    bearer: String,
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
        let mut child = Command::new(program)
            .args(["hub", "serve", "--all-contexts", "--listen", "127.0.0.1:0"])
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .arg("--data")
            .arg(folder.join("data"))
            .args(more)
            .env("XDG_CONFIG_HOME", folder.join("settings"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let lines =
            BufReader::new(child.stdout.take().context("the output of the hub is not a pipe")?).lines();
        let told: Vec<String> = lines.take(2).collect::<Result<_, _>>()?;
        let [first, second] = told.as_slice() else { anyhow::bail!("the hub did not start: {told:?}") };
        let between = |text: &str, from: &str, to: char| {
            let rest =
                text.split_once(from).map(|(_, rest)| rest.split(to).next().unwrap_or(rest).to_owned());
            rest.with_context(|| format!("the hub says `{text}`"))
        };
        let address = between(first, "http://", '/')?.parse()?;
        let bearer = format!("Authorization: Bearer {}\r\n", between(second, "TAFFRAIL_HUB_TOKEN=", ' ')?);
        Ok(Hub { child, address, bearer })
    }

    fn get(&self, path: &str) -> Result<Value> {
        let (status, body) = exchange(self.address, &format!("GET {path}"), &self.bearer, "", PATIENCE)?;
        ensure!(status == 200, "{path}: {status}: {body}");
        Ok(serde_json::from_str(&body)?)
    }

    /// Asks for all pairs.
    pub(crate) fn shown(&self) -> Result<Shown> {
        let list = self.get("/api/v1/apps?limit=500")?;
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
        let list = self.get("/api/v1/apps?limit=500").unwrap_or_default();
        let rows = list["items"].as_array().into_iter().flatten();
        let row = rows.filter(|row| row["name"] == name).map(|row| {
            let fields =
                ["cluster", "health", "effective", "freshness", "message"].map(|key| row[key].to_string());
            format!("{} sync {} {}", fields.join(" "), row["sync"]["effective"], row["sync"]["freshness"])
        });
        row.collect::<Vec<_>>().join("; ")
    }

    /// Puts the process to sleep, or wakes it.
    pub(crate) fn sleep(&self, is_asleep: bool) -> Result<()> {
        let signal = if is_asleep { Signal::STOP } else { Signal::CONT };
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
