//! A hub for agents, and agents that report to it, as processes.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Pid;
use tempfile::TempDir;

/// The time in which everything here happens, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(90);

/// Makes the command `taffrail` with these arguments.
type Taffrail = Box<dyn Fn(&[&str]) -> Command + Send + Sync>;

/// A hub for agents, which serves by TLS at a free port of this machine, and is killed on drop.
pub struct AgentsHub {
    taffrail: Taffrail,
    child: Child,
    url: String,
    /// Further arguments of `hub serve`.
    more: Vec<String>,
    folder: TempDir,
}

impl Drop for AgentsHub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl AgentsHub {
    /// Starts a hub with a certificate and an access token of its own, which may read logs and act. `taffrail` makes the
    /// command with the given arguments.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(taffrail: impl Fn(&[&str]) -> Command + Send + Sync + 'static) -> Result<AgentsHub> {
        AgentsHub::start_with(taffrail, &[])
    }

    /// Does what [`AgentsHub::start`] does, with `more` arguments of `hub serve`; it follows no cluster itself unless
    /// `--clusters-from` is among them.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start_with(
        taffrail: impl Fn(&[&str]) -> Command + Send + Sync + 'static,
        more: &[&str],
    ) -> Result<AgentsHub> {
        let taffrail: Taffrail = Box::new(taffrail);
        let more: Vec<String> = more.iter().map(|argument| (*argument).to_owned()).collect();
        let folder = TempDir::new()?;
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
        std::fs::write(folder.path().join("tls.crt"), made.cert.pem())?;
        std::fs::write(folder.path().join("tls.key"), made.signing_key.serialize_pem())?;
        let created = taffrail(&["hub", "token", "create", "ci", "--logs", "--act", "--data"])
            .arg(folder.path().join("data"))
            .output()?;
        ensure!(created.status.success(), "no token was made: {created:?}");
        std::fs::write(folder.path().join("token"), created.stdout)?;
        let (child, url) = serve(&taffrail, folder.path(), "127.0.0.1:0", &more)?;
        Ok(AgentsHub { taffrail, child, url, more, folder })
    }

    /// Ends the hub without notice.
    pub fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends the hub without notice, if it runs, and starts it again at its address.
    ///
    /// # Errors
    /// If it does not start again.
    pub fn restart(&mut self) -> Result<()> {
        self.stop();
        let port = self.url.rsplit(':').next().unwrap_or_default();
        let listen = format!("127.0.0.1:{port}");
        let (child, url) = serve(&self.taffrail, self.folder.path(), &listen, &self.more)?;
        self.child = child;
        ensure!(url == self.url, "the hub is at {url} instead of {}", self.url);
        Ok(())
    }

    /// Returns the URL of the hub.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the process id of the hub.
    pub fn pid(&self) -> Option<Pid> {
        pid_of(&self.child)
    }

    /// Returns the address at which the hub listens.
    ///
    /// # Errors
    /// If its URL names no port.
    pub fn address(&self) -> Result<SocketAddr> {
        let port = self.url.rsplit(':').next().unwrap_or_default();
        Ok((Ipv4Addr::LOCALHOST, port.parse()?).into())
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
        AgentProcess::start(self.agent_command(kubeconfig, context, more))
    }

    /// Starts an agent of the cluster of a context that dials another port of this machine, which leads to the hub.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn agent_through(
        &self,
        port: u16,
        kubeconfig: &str,
        context: &str,
        more: &[&str],
    ) -> Result<AgentProcess> {
        AgentProcess::start(self.agent_at(&format!("https://localhost:{port}"), kubeconfig, context, more))
    }

    /// Returns the command of an agent of the cluster of a context, with these further arguments.
    pub fn agent_command(&self, kubeconfig: &str, context: &str, more: &[&str]) -> Command {
        self.agent_at(&self.url, kubeconfig, context, more)
    }

    fn agent_at(&self, url: &str, kubeconfig: &str, context: &str, more: &[&str]) -> Command {
        let fixed = ["agent", "--hub", url, "--context", context, "--kubeconfig", kubeconfig];
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

fn serve(taffrail: &Taffrail, folder: &Path, listen: &str, more: &[String]) -> Result<(Child, String)> {
    let path = |name: &str| folder.join(name).display().to_string();
    let (certificate, key, data) = (path("tls.crt"), path("tls.key"), path("data"));
    let mut command = taffrail(&["hub", "serve", "--listen", listen, "--host", "localhost"]);
    command.args(["--tls-cert-file", &certificate, "--tls-key-file", &key, "--data", &data]);
    if !more.iter().any(|argument| argument == "--clusters-from") {
        command.args(["--clusters-from", "none"]);
    }
    let mut child = command.args(more).stdout(Stdio::piped()).stdin(Stdio::null()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("its output cannot be read")?).lines();
    let first = lines.next().context("the hub ended before it was ready")??;
    let url = first.split_once(", and answers at ").and_then(|(_, url)| url.strip_suffix("/api/v1"));
    let url = url.with_context(|| format!("the hub says '{first}'"))?.to_owned();
    Ok((child, url))
}

fn pid_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

/// A running agent, which is killed on drop.
pub struct AgentProcess {
    child: Child,
    /// The lines that it writes to stderr.
    lines: mpsc::Receiver<String>,
    seen: Vec<String>,
}

impl AgentProcess {
    fn start(mut command: Command) -> Result<AgentProcess> {
        let mut child = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn()?;
        let stderr = BufReader::new(child.stderr.take().context("its errors cannot be read")?);
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Ok(AgentProcess { child, lines, seen: Vec::new() })
    }

    /// Returns the process id.
    pub fn pid(&self) -> Option<Pid> {
        pid_of(&self.child)
    }

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
