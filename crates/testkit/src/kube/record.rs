//! Operations on a control plane for recording a cluster's history.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use serde_json::Value;

use super::{ControlPlane, process};
use crate::binary::workspace;

/// The programs that change a cluster by themselves.
const ACTORS: [&str; 3] = ["kube-controller-manager", "kube-scheduler", "kwok"];

/// Returns the resource version, `None` without one. Those of one cluster's objects and lists tell which was written
/// later; Kubernetes guarantees it since 1.35 (KEP-5504).
pub fn version(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

/// The controllers of a control plane, paused until this is dropped.
#[derive(Debug)]
pub struct Held<'a>(&'a ControlPlane);

impl ControlPlane {
    /// Pauses controllers, schedulers and kubelets until the returned value is dropped, so that only clients change
    /// anything.
    ///
    /// The pause must not be longer than a few seconds, as leases expire.
    pub fn hold(&self) -> Result<Held<'_>> {
        let held = Held(self);
        self.signal_actors(Signal::STOP)?;
        Ok(held)
    }

    fn signal_actors(&self, signal: Signal) -> Result<()> {
        for it in self.processes().iter().filter(|it| ACTORS.contains(&&*it.program)) {
            process::signal(it.pid, &it.program, &self.state.folder, signal)?;
        }
        Ok(())
    }

    /// Returns the newest revision of a cluster: that of the last change of any of its objects. The clusters of one
    /// control plane share the counter.
    pub fn revision(&self, context: &str) -> Result<u64> {
        let text = self.kubectl(context, &["get", "--raw", "/api/v1/namespaces?limit=1"])?;
        let list: Value = serde_json::from_str(&text).context("the API server wrote no JSON")?;
        version(&list).context("the list of namespaces has no resourceVersion")
    }

    /// Returns a command that records a cluster. The caller adds two arguments: the number of seconds and the output
    /// file.
    pub fn recorder(&self, context: &str) -> Result<Command> {
        let Some(member) = self.members().iter().find(|member| member.context == context) else {
            bail!("{} has no cluster {context}; it has {}", self.name(), self.contexts().join(", "));
        };
        let tokens = member.folder.join("tokens.csv");
        let text =
            fs::read_to_string(&tokens).with_context(|| format!("cannot read {}", tokens.display()))?;
        let token = text.lines().find(|line| line.split(',').nth(1) == Some("admin"));
        let token = token
            .and_then(|line| line.split(',').next())
            .with_context(|| format!("cannot find the token of the administrator in {}", tokens.display()))?;
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["run", "--quiet", "--package", "taffrail-sim", "--example", "record", "--"]);
        command.args([&member.server, &member.folder.join("ca.crt").display().to_string()]);
        command.env("TOKEN", token).current_dir(workspace());
        Ok(command)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // A failure means that the process is gone, which the user of the control plane will notice.
        let _ = self.0.signal_actors(Signal::CONT);
    }
}
