//! The hub that is tested: a process, asked by HTTP.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use taffrail_testkit::exchange;
use taffrail_testkit::running::{HubAccess, Running};

use crate::ground::Ground;

/// The maximum time of an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A running hub, which is killed on drop.
pub(crate) struct Hub {
    process: Running,
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
        let mut command = Command::new(program);
        command
            .args(["hub", "serve", "--all-contexts", "--listen", "127.0.0.1:0"])
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .arg("--data")
            .arg(folder.join("data"))
            .args(more)
            .env("XDG_CONFIG_HOME", folder.join("settings"));
        let (process, HubAccess { url, token }) = Running::start(&mut command, HubAccess::find)?;
        let address = url.strip_prefix("http://").with_context(|| format!("the hub is at {url}"))?.parse()?;
        Ok(Hub { process, address, bearer: format!("Authorization: Bearer {token}\r\n") })
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
        Ok(kill_process(self.process.pid(), signal)?)
    }
}
