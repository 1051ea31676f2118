//! Credentials from an exec plugin, a program that the kubeconfig names.
//!
//! kube runs such a program on the calling thread, once for the certificate and once for the token, and waits without a
//! limit. Here it runs once and asynchronously; when the deadline passes or the caller is dropped, it is killed
//! together with its child processes.

use std::collections::BTreeSet;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use taffrail_object::yaml;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use crate::deadline::Deadline;
use crate::error::{TimeLimit, one_line};

/// Maximum number of bytes kept of a plugin's stdout, and of its stderr; the rest is read and dropped. A credential
/// is never longer.
const MAX_OUTPUT: u64 = 1 << 20;

/// The running exec plugins.
///
/// Each has a process group of its own, which neither a terminal's interrupt nor the end of this process reaches: code
/// that ends the process must call [`Plugins::end`].
#[derive(Debug, Clone, Default)]
pub struct Plugins(Arc<Mutex<Running>>);

/// The process groups of the plugins that run; once `ended`, none may start.
#[derive(Debug, Default)]
struct Running {
    groups: BTreeSet<i32>,
    ended: bool,
}

impl Plugins {
    /// Returns the one registry of running exec plugins that all contexts of this process use by default.
    pub fn process() -> Plugins {
        static PROCESS: LazyLock<Plugins> = LazyLock::new(Plugins::default);
        PROCESS.clone()
    }

    /// Kills all running plugins and their child processes, which is possible on Unix only, and prevents further ones
    /// from starting.
    pub fn end(&self) {
        let mut running = self.running();
        running.ended = true;
        for group in std::mem::take(&mut running.groups) {
            kill(group);
        }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a plugin and returns it with its process group; fails with `Interrupted` after [`Plugins::end`].
    fn spawn(&self, command: &mut Command) -> io::Result<(Child, PluginGroup)> {
        // The lock makes `end` wait until this group is known.
        let mut running = self.running();
        if running.ended {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let child = command.spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok());
        running.groups.extend(group);
        Ok((child, PluginGroup { plugins: self.clone(), group }))
    }
}

#[cfg(unix)]
fn kill(group: i32) {
    if let Some(group) = rustix::process::Pid::from_raw(group) {
        // The process may just have ended by itself.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill(_: i32) {}

/// The reason why a plugin gave no credentials.
#[derive(Debug)]
pub(crate) enum PluginError {
    TimedOut(TimeLimit),
    Failed { what: String, not_found: bool, source: Option<io::Error> },
}

fn failed(what: impl Into<String>) -> PluginError {
    PluginError::Failed { what: what.into(), not_found: false, source: None }
}

#[derive(Deserialize)]
struct ExecCredential {
    status: Option<Status>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Runs the plugin and stores its token, its client certificate or both in `user`, where they replace those of the
/// kubeconfig. Fails if the plugin demands a terminal, cannot be run, exits with an error, misses the deadline, or
/// prints no complete credentials.
pub(crate) async fn authenticate(
    exec: &ExecConfig,
    plugins: &Plugins,
    user: &mut AuthInfo,
    deadline: Deadline,
) -> Result<(), PluginError> {
    // Many plugins may run at once, and stdin may contain manifests, so none gets it.
    if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
        return Err(failed("asks for a terminal, but Taffrail runs it without one"));
    }
    let (status, stdout, stderr) =
        deadline.limit(run(command(exec), plugins)).await.map_err(PluginError::TimedOut)?.map_err(
            |source| {
                let not_found = source.kind() == io::ErrorKind::NotFound;
                let what = if not_found { "was not found" } else { "could not be run" };
                PluginError::Failed { what: what.to_owned(), not_found, source: Some(source) }
            },
        )?;
    if !status.success() {
        let said = String::from_utf8_lossy(&stderr);
        let last = said.lines().rev().map(|line| one_line(line, 200)).find(|line| !line.is_empty());
        let last = last.map(|line| format!(": {line}")).unwrap_or_default();
        return Err(failed(format!("failed ({status}){last}")));
    }
    let status = parse(&stdout).ok_or_else(|| failed("printed something that is not an ExecCredential"))?;
    let status = status.status.ok_or_else(|| failed("printed an ExecCredential without status"))?;
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let (token, certificate, key) =
        (given(status.token), given(status.client_certificate_data), given(status.client_key_data));
    match (&certificate, &key) {
        (None, None) if token.is_none() => {
            return Err(failed("printed an ExecCredential with neither a token nor a client certificate"));
        }
        (Some(_), None) | (None, Some(_)) => {
            return Err(failed(
                "printed an ExecCredential with only one of clientCertificateData and clientKeyData",
            ));
        }
        _ => {}
    }
    // Each replaces the kubeconfig's own value, as in client-go.
    if let Some(token) = token {
        user.token = Some(token.into());
    }
    if let (Some(certificate), Some(key)) = (certificate, key) {
        user.client_certificate_data = Some(STANDARD.encode(certificate));
        user.client_key_data = Some(STANDARD.encode(key).into());
    }
    Ok(())
}

fn command(exec: &ExecConfig) -> Command {
    // Parsing the context has checked that there is a command.
    let mut command = Command::new(exec.command.as_deref().unwrap_or_default());
    command.args(exec.args.iter().flatten());
    for variable in exec.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    let mut spec = json!({ "interactive": false });
    if let (Some(cluster), Value::Object(spec)) = (&exec.cluster, &mut spec) {
        spec.insert("cluster".to_owned(), json!(cluster));
    }
    let info = json!({ "kind": "ExecCredential", "apiVersion": exec.api_version, "spec": spec });
    command.env("KUBERNETES_EXEC_INFO", info.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // The process group lets child processes be killed too.
    #[cfg(unix)]
    command.process_group(0);
    command
}

async fn run(mut command: Command, plugins: &Plugins) -> io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
    let (mut child, mut group) = plugins.spawn(&mut command)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr, status) =
        futures::future::join3(bounded(stdout), bounded(stderr), child.wait()).await;
    group.ended();
    Ok((status?, stdout?, stderr?))
}

/// Reads `pipe` to its end and returns the first [`MAX_OUTPUT`] bytes, so that the plugin never blocks on a full
/// pipe.
async fn bounded(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    if let Some(mut pipe) = pipe {
        (&mut pipe).take(MAX_OUTPUT).read_to_end(&mut kept).await?;
        tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    }
    Ok(kept)
}

/// The process group of a running plugin. On drop it is killed, unless the plugin has ended and all its output was
/// read: a child process may hold the output open after the plugin has ended.
struct PluginGroup {
    plugins: Plugins,
    group: Option<i32>,
}

impl PluginGroup {
    /// Marks the group as ended, so that drop does not kill it: the system may reuse its number.
    fn ended(&mut self) {
        if let Some(group) = self.group.take() {
            self.plugins.running().groups.remove(&group);
        }
    }
}

impl Drop for PluginGroup {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            self.ended();
            kill(group);
        }
    }
}

/// Parses the output of a plugin as JSON, or as YAML like client-go; `None` if neither gives an `ExecCredential`. The
/// decoders' errors are dropped because they may quote the token.
fn parse(output: &[u8]) -> Option<ExecCredential> {
    serde_json::from_slice(output).ok().or_else(|| yaml::read(std::str::from_utf8(output).ok()?).ok())
}
