//! The Go programs with which answers and measurements are compared; see `bench/peers`. They are built once for each
//! state of their sources and kept in the user's cache, as compiling client-go takes minutes.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};

use crate::binary::workspace;
use crate::kube::cache;

/// Returns true if Go is installed, so that peers can be built.
pub fn can_build() -> bool {
    Command::new("go")
        .arg("version")
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Returns the reason the peer called `name` is neither cached nor can be built; `None` if it is available.
///
/// # Errors
/// If its sources cannot be read.
pub fn unavailable(name: &str) -> Result<Option<String>> {
    if place(name)?.is_file() || can_build() {
        return Ok(None);
    }
    Ok(Some(format!("`{name}` is not in the cache, and `go`, which builds it, is not installed")))
}

/// Returns the reason why nothing that needs Go itself can run; `None` if it is installed.
pub fn without_go() -> Option<String> {
    (!can_build()).then(|| "`go` is not installed (https://go.dev/dl)".to_owned())
}

/// Returns true if there is a reason why a test cannot run, after it printed that the test is skipped and why.
///
/// # Errors
/// If there is one and `CI` is `true`: there, a skipped test is a failure.
pub fn skips(test: &str, why: Option<String>) -> Result<bool> {
    let Some(why) = why else { return Ok(false) };
    if std::env::var("CI").is_ok_and(|value| value == "true") {
        bail!("{test} cannot run: {why}");
    }
    let _ = writeln!(std::io::stderr(), "{test}: skipped: {why}");
    Ok(true)
}

/// Builds the peer called `name`, unless it is cached, and returns its path. After it built one, deletes those of its
/// binaries that were not used for a week.
///
/// # Errors
/// If Go is missing, or the program does not compile.
pub fn build(name: &str) -> Result<PathBuf> {
    let target = place(name)?;
    let folder = target.parent().with_context(|| format!("{} is in no folder", target.display()))?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let lock = folder.join(format!("{name}.lock"));
    let lock = File::create(&lock).with_context(|| format!("cannot create {}", lock.display()))?;
    lock.lock().context("cannot lock the cache of peers")?;
    if target.is_file() {
        touch(&target);
        return Ok(target);
    }
    let unfinished = target.with_extension("building");
    let source = source(name);
    let status = Command::new("go")
        .args(["build", "-trimpath", "-o"])
        .arg(&unfinished)
        .arg(".")
        .current_dir(&source)
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .status()
        .context("cannot run `go`, which builds the peer: install Go 1.26 or later from go.dev/dl")?;
    if !status.success() {
        bail!("`go build` in {} failed ({status})", source.display());
    }
    fs::rename(&unfinished, &target)
        .with_context(|| format!("cannot move {} to {}", unfinished.display(), target.display()))?;
    touch(&target);
    forget_old(folder, name);
    Ok(target)
}

/// A peer that answers lines with lines, in a process of its own, which ends with this.
#[derive(Debug)]
pub struct Process {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Builds the peer called `name`, unless it is cached, and starts it.
    ///
    /// # Errors
    /// If it cannot be built or started.
    pub fn start(name: &str) -> Result<Process> {
        let mut process = Command::new(build(name)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start the peer {name}"))?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (input, output) = pipes.with_context(|| format!("the peer {name} has no pipes"))?;
        Ok(Process { process, input, output: BufReader::new(output) })
    }

    /// Sends a line and returns the answer.
    ///
    /// # Errors
    /// If the peer ended.
    pub fn ask(&mut self, line: &str) -> Result<String> {
        self.input.write_all(format!("{line}\n").as_bytes()).context("a peer reads no more")?;
        let mut answer = String::new();
        self.output.read_line(&mut answer).context("the answer of a peer cannot be read")?;
        ensure!(!answer.is_empty(), "a peer ended before it answered");
        Ok(answer)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn source(name: &str) -> PathBuf {
    workspace().join("bench/peers").join(name)
}

/// Returns the path of the peer, with a hash of its sources in the name.
fn place(name: &str) -> Result<PathBuf> {
    let folder = source(name);
    let unread = || format!("cannot read {}", folder.display());
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .with_context(unread)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .with_context(unread)?;
    files.retain(|file| {
        let kind = file.extension().and_then(|extension| extension.to_str());
        matches!(kind, Some("go" | "mod" | "sum"))
    });
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in &files {
        file.file_name().hash(&mut hasher);
        fs::read(file).with_context(|| format!("cannot read {}", file.display()))?.hash(&mut hasher);
    }
    Ok(cache()?.join("peers").join(format!("{name}-{:016x}", hasher.finish())))
}

/// Returns a hash of one file of the peer called `name`, as a cache key for its results.
///
/// # Errors
/// If it cannot be read.
pub fn content(name: &str, file: &str) -> Result<String> {
    let path = source(name).join(file);
    let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// The time for which an unused program is kept: other checkouts have other states of the sources.
const UNUSED_PEER_TTL: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Marks a program as used. If that fails, it will be rebuilt some day.
fn touch(program: &Path) {
    let _ = File::open(program).and_then(|file| file.set_modified(SystemTime::now()));
}

/// Deletes the built programs of the peer `name` that were not used for [`UNUSED_PEER_TTL`]; ignores failures.
fn forget_old(folder: &Path, name: &str) {
    let ours = |file: &Path| {
        let file = file.file_name().and_then(|file| file.to_str()).unwrap_or_default();
        let hash = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
        hash.is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let used = entry.metadata().and_then(|metadata| metadata.modified());
        let old = used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > UNUSED_PEER_TTL));
        if old && ours(&entry.path()) {
            // A failure only wastes disk space.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_path_depends_on_name_and_sources() {
        let place = place("kstatus").expect("its sources are here");
        assert_eq!(place, super::place("kstatus").expect("still"));
        assert!(place.file_name().is_some_and(|name| name.to_string_lossy().starts_with("kstatus-")));
        assert!(super::place("no-such-peer").is_err());
    }
}
