//! A hub that runs as a process, asked by HTTP.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::exchange;
use crate::running::{HubAccess, Running};

/// The maximum time of an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum time between two parts of the answer to a document, such as the events of an operation.
const LONG_PATIENCE: Duration = Duration::from_secs(60);

/// A running `taffrail hub serve` on loopback, which is killed on drop.
pub struct Hub {
    process: Running,
    address: SocketAddr,
    token: String,
    bearer: String,
}

impl Hub {
    /// Starts a hub with this command, and waits until it tells its address.
    ///
    /// # Errors
    /// If the command cannot be run, ends before, or listens at no address of this machine.
    pub fn start(command: &mut Command) -> Result<Hub> {
        let (process, HubAccess { url, token }) = Running::start(command, HubAccess::find)?;
        let address = url.strip_prefix("http://").with_context(|| format!("the hub is at {url}"))?.parse()?;
        let bearer = format!("Authorization: Bearer {token}\r\n");
        Ok(Hub { process, address, token, bearer })
    }

    /// Returns the address at which the hub listens, and the token that it printed.
    pub fn access(&self) -> (SocketAddr, &str) {
        (self.address, &self.token)
    }

    /// Returns the process id.
    pub fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// Kills the process at once, while requests to it may be under way.
    ///
    /// # Errors
    /// If the process has ended before.
    pub fn kill(&self) -> Result<()> {
        kill_process(self.pid(), Signal::KILL).context("cannot kill the hub")
    }

    /// Sends a document with the hub's own token, and returns the status and the body of the answer, of which each part
    /// may take a minute.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn post(&self, path: &str, document: &Value) -> Result<(u16, String)> {
        self.post_as(&self.bearer, path, document)
    }

    /// Does what [`Hub::post`] does, with `token`.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn post_with(&self, token: &str, path: &str, document: &Value) -> Result<(u16, String)> {
        self.post_as(&format!("Authorization: Bearer {token}\r\n"), path, document)
    }

    fn post_as(&self, bearer: &str, path: &str, document: &Value) -> Result<(u16, String)> {
        exchange(self.address, &format!("POST {path}"), bearer, &document.to_string(), LONG_PATIENCE)
    }

    /// Returns the text with which the hub answers `GET path`.
    ///
    /// # Errors
    /// If there is no answer within 5 s, or its status is not 200.
    pub fn text(&self, path: &str) -> Result<String> {
        let (status, body) = exchange(self.address, &format!("GET {path}"), &self.bearer, "", PATIENCE)?;
        ensure!(status == 200, "{path}: {status}: {body}");
        Ok(body)
    }

    /// Returns the JSON with which the hub answers `GET path`.
    ///
    /// # Errors
    /// If [`Hub::text`] fails, or the answer is no JSON.
    pub fn get(&self, path: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.text(path)?)?)
    }

    /// Returns true if all changes that the hub knew of when it answered are in its store.
    ///
    /// # Errors
    /// If [`Hub::text`] fails.
    pub fn has_saved(&self) -> Result<bool> {
        Ok(self.text("/metrics")?.contains("taffrail_hub_store_pending 0\n"))
    }
}
