//! The real Prometheus, from Debian's package, without installing it: an installed one starts a service.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Pid;

use crate::kube::cache;

/// The name of the package, and of its program.
const NAME: &str = "prometheus";

/// The name of the file with the configuration.
const CONFIG: &str = "prometheus.yml";

/// The maximum time until a started Prometheus answers.
const READY: Duration = Duration::from_secs(30);

/// A running Prometheus, which ends when this is dropped.
pub struct Prometheus {
    child: Child,
    folder: PathBuf,
    address: SocketAddr,
    /// The address of its API.
    pub url: String,
}

impl Prometheus {
    /// Starts a Prometheus with this configuration, at a free port of this machine.
    ///
    /// # Errors
    /// If the program can be neither found nor unpacked, or does not become ready.
    pub fn start(config: &str) -> Result<Prometheus> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let program = program()?;
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("taffrail-prometheus-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let file = folder.join(CONFIG);
        fs::write(&file, config).with_context(|| format!("cannot write {}", file.display()))?;
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = port.context("no free port on 127.0.0.1")?;
        let child = spawn(&program, &folder, address)?;
        let mut running = Prometheus { child, folder, address, url: format!("http://{address}") };
        running.until_ready()?;
        Ok(running)
    }

    /// Returns the address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the process id.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Kills it; what it has stored stays.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Kills it if it runs, and starts it again at its address, with what it has stored.
    ///
    /// # Errors
    /// If it does not become ready.
    pub fn restart(&mut self) -> Result<()> {
        self.kill();
        self.child = spawn(&program()?, &self.folder, self.address)?;
        self.until_ready()
    }

    fn until_ready(&mut self) -> Result<()> {
        let began = Instant::now();
        while !is_ready(self.address) {
            let ended = self.child.try_wait().context("cannot wait for Prometheus")?;
            if ended.is_some() || began.elapsed() > READY {
                let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                bail!("Prometheus did not become ready: {log}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Runs the program with the configuration and the data in `folder`.
fn spawn(program: &Path, folder: &Path, address: SocketAddr) -> Result<Child> {
    let log = fs::OpenOptions::new().create(true).append(true).open(folder.join("log"));
    Command::new(program)
        .arg(format!("--config.file={}", folder.join(CONFIG).display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
        .arg(format!("--web.listen-address={address}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log.context("cannot write the log of Prometheus")?)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))
}

/// Returns true if the server at `address` says that it is ready.
fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let request = format!("GET /-/ready HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}

/// Returns the path of the program: that on `PATH`, else the one in the cache, which the package is unpacked into first.
fn program() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(found) =
        std::env::split_paths(&path).map(|folder| folder.join(NAME)).find(|file| file.is_file())
    {
        return Ok(found);
    }
    let parent = cache()?;
    let folder = parent.join(NAME);
    let program = folder.join("usr/bin").join(NAME);
    if program.is_file() {
        return Ok(program);
    }
    fs::create_dir_all(&parent).with_context(|| format!("cannot create {}", parent.display()))?;
    // Two processes may unpack it at the same time; the first one that is done wins.
    let unpacked = parent.join(format!("{NAME}-{}", std::process::id()));
    let done = unpack(&unpacked);
    if done.is_ok() && fs::rename(&unpacked, &folder).is_err() {
        ensure!(program.is_file(), "cannot create {}", folder.display());
    }
    let _ = fs::remove_dir_all(&unpacked);
    done.map(|()| program)
}

/// Downloads the package, and unpacks it into `folder`.
fn unpack(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    run(Command::new("apt-get").args(["download", "-qq", NAME]).current_dir(folder))?;
    let files = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let package =
        files.flatten().map(|file| file.path()).find(|path| path.extension().is_some_and(|it| it == "deb"));
    let package = package.context("apt-get downloaded no package")?;
    run(Command::new("dpkg").arg("-x").arg(&package).arg(folder))?;
    fs::remove_file(&package).with_context(|| format!("cannot remove {}", package.display()))
}

fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().display().to_string();
    let ended = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    ensure!(ended.status.success(), "{name} failed: {}", String::from_utf8_lossy(&ended.stderr).trim());
    Ok(())
}
