//! A hub for agents, and agents that report to it, as processes.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;

/// The time in which everything here happens, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(90);

/// Makes the command `taffrail` with these arguments.
pub type Taffrail = fn(&[&str]) -> Command;

/// A hub for agents alone, which serves by TLS at a free port of this machine, and is killed on drop.
pub struct AgentsHub {
    taffrail: Taffrail,
    child: Child,
    url: String,
    folder: TempDir,
}

impl Drop for AgentsHub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl AgentsHub {
    /// Starts a hub with a certificate and an access token of its own, which may read logs and act.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(taffrail: Taffrail) -> Result<AgentsHub> {
        let folder = TempDir::new()?;
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
        std::fs::write(folder.path().join("tls.crt"), made.cert.pem())?;
        std::fs::write(folder.path().join("tls.key"), made.signing_key.serialize_pem())?;
        let created = taffrail(&["hub", "token", "create", "ci", "--logs", "--act", "--data"])
            .arg(folder.path().join("data"))
            .output()?;
        ensure!(created.status.success(), "no token was made: {created:?}");
        std::fs::write(folder.path().join("token"), created.stdout)?;
        let (child, url) = serve(taffrail, folder.path(), "127.0.0.1:0")?;
        Ok(AgentsHub { taffrail, child, url, folder })
    }

    /// Ends the hub without notice, and starts it again at its address.
    ///
    /// # Errors
    /// If it does not start again.
    pub fn restart(&mut self) -> Result<()> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let port = self.url.rsplit(':').next().unwrap_or_default();
        let (child, url) = serve(self.taffrail, self.folder.path(), &format!("127.0.0.1:{port}"))?;
        self.child = child;
        ensure!(url == self.url, "the hub is at {url} instead of {}", self.url);
        Ok(())
    }

    /// Returns the URL of the hub.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the path of a file or folder beside those of the hub.
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Runs `taffrail hub` with these arguments and the hub's data.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn manage(&self, arguments: &[&str]) -> Result<Output> {
        let data = self.path("data");
        Ok((self.taffrail)(&[&["hub"], arguments, &["--data", &data]].concat()).output()?)
    }

    /// Makes a token for an agent, with these further arguments, and returns the file of this name that holds it.
    ///
    /// # Errors
    /// If the hub makes none.
    pub fn token(&self, name: &str, arguments: &[&str]) -> Result<String> {
        let created = self.manage(&[&["token", "create", "--agent"], arguments].concat())?;
        ensure!(created.status.success(), "no token was made: {created:?}");
        let file = self.path(name);
        std::fs::write(&file, &created.stdout)?;
        Ok(file)
    }

    /// Starts an agent of the cluster of a context.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn agent(&self, kubeconfig: &str, context: &str, more: &[&str]) -> Result<AgentProcess> {
        let mut command = self.agent_command(kubeconfig, context, more);
        let mut child = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn()?;
        let stderr = BufReader::new(child.stderr.take().context("its errors cannot be read")?);
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Ok(AgentProcess { child, lines, seen: Vec::new() })
    }

    /// Returns the command of an agent of the cluster of a context, with these further arguments.
    pub fn agent_command(&self, kubeconfig: &str, context: &str, more: &[&str]) -> Command {
        let fixed = ["agent", "--hub", &self.url, "--context", context, "--kubeconfig", kubeconfig];
        (self.taffrail)(&[&fixed, more].concat())
    }

    /// Asks the hub with a command of views.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn ask(&self, arguments: &[&str]) -> Result<Output> {
        Ok(self.ask_command(arguments).stdin(Stdio::null()).output()?)
    }

    /// Returns the command that asks the hub.
    pub fn ask_command(&self, arguments: &[&str]) -> Command {
        let (token, authority) = (self.path("token"), self.path("tls.crt"));
        let by_hub = ["--hub", &self.url, "--hub-token-file", &token, "--hub-ca-file", &authority];
        (self.taffrail)(&[arguments, &by_hub].concat())
    }

    /// Asks the hub until the answer is as `is_expected` says.
    ///
    /// # Errors
    /// If that does not happen; tells the last answer.
    pub fn ask_until(&self, arguments: &[&str], is_expected: impl Fn(&Output) -> bool) -> Result<Output> {
        let begun = Instant::now();
        loop {
            let answer = self.ask(arguments)?;
            if is_expected(&answer) {
                return Ok(answer);
            }
            if begun.elapsed() > PATIENCE {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                bail!("{arguments:?} still gives {}{}", text(&answer.stdout), text(&answer.stderr));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn serve(taffrail: Taffrail, folder: &Path, listen: &str) -> Result<(Child, String)> {
    let path = |name: &str| folder.join(name).display().to_string();
    let (certificate, key, data) = (path("tls.crt"), path("tls.key"), path("data"));
    let mut child = taffrail(&[
        "hub",
        "serve",
        "--clusters-from",
        "none",
        "--listen",
        listen,
        "--host",
        "localhost",
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--data",
        &data,
    ])
    .stdout(Stdio::piped())
    .stdin(Stdio::null())
    .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("its output cannot be read")?).lines();
    let first = lines.next().context("the hub ended before it was ready")??;
    let url =
        first.strip_prefix("follows 0 clusters, and answers at ").and_then(|url| url.strip_suffix("/api/v1"));
    let url = url.with_context(|| format!("the hub says '{first}'"))?.to_owned();
    Ok((child, url))
}

/// A running agent, which is killed on drop.
pub struct AgentProcess {
    child: Child,
    /// The lines that it writes to stderr.
    lines: mpsc::Receiver<String>,
    seen: Vec<String>,
}

impl AgentProcess {
    /// Waits for a line on stderr that begins with `text`, and returns it.
    ///
    /// # Errors
    /// If none comes; tells the lines that came.
    pub fn until(&mut self, text: &str) -> Result<String> {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line =
                line.with_context(|| format!("the agent did not write '{text}', but {:#?}", self.seen))?;
            self.seen.push(line.clone());
            if line.starts_with(text) {
                return Ok(line);
            }
        }
    }

    /// Returns the lines that [`until`](AgentProcess::until) read.
    pub fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Waits until the agent ends.
    ///
    /// # Errors
    /// If the operating system does not tell.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        Ok(self.child.wait()?)
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
