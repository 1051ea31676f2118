//! Child processes: started detached, recognised by pid and command line, ended and awaited without polling.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Starts a program with its standard input closed and its output in a file, in a process group of its own.
///
/// A child with the caller's pipes would keep their readers waiting, and a child in the caller's group would get the
/// caller's Ctrl-C.
pub(super) fn spawn(command: &mut Command, log: &Path) -> Result<Child> {
    let output = File::options()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("cannot write the log {}", log.display()))?;
    let errors = output.try_clone().with_context(|| format!("cannot write the log {}", log.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .process_group(0)
        .env_remove("KUBECONFIG")
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    await_command_line(&mut child)?;
    Ok(child)
}

/// Waits until the kernel shows the command line of a new process, which [`is_ours`] needs.
fn await_command_line(child: &mut Child) -> Result<()> {
    while command_line(child.id()).is_empty() {
        if child.try_wait().context("cannot wait for a child process")?.is_some() {
            break;
        }
        std::thread::yield_now();
    }
    Ok(())
}

/// Returns true if this process is still the program that was started for this folder, rather than another with the
/// same pid.
///
/// Every program of a control plane has the control plane's folder among its arguments.
pub(super) fn is_ours(pid: u32, program: &str, folder: &Path) -> bool {
    let line = command_line(pid);
    let named = line.split('\0').next().is_some_and(|path| path.rsplit('/').next() == Some(program));
    named && line.contains(&*folder.to_string_lossy())
}

/// Returns program and arguments with NUL after each; empty for a process that has ended, reaped or not.
fn command_line(pid: u32) -> String {
    fs::read(format!("/proc/{pid}/cmdline"))
        .map_or_else(|_| String::new(), |line| String::from_utf8_lossy(&line).into_owned())
}

/// Sends a signal to the process if it is still ours; returns true if it was.
pub(super) fn signal(pid: u32, program: &str, folder: &Path, signal: Signal) -> Result<bool> {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(false) };
    // The descriptor is opened before the command line is read, so both refer to the same process.
    match pidfd_open(raw, PidfdFlags::empty()) {
        Ok(descriptor) if is_ours(pid, program, folder) => match pidfd_send_signal(&descriptor, signal) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(error) => Err(error).with_context(|| format!("cannot signal process {pid} ({program})")),
        },
        Ok(_) | Err(Errno::SRCH) => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot watch process {pid} ({program})")),
    }
}

/// Kills the process if it is still ours, and waits until it is gone; returns true if it was ours.
pub(super) fn end(pid: u32, program: &str, folder: &Path) -> Result<bool> {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(false) };
    // The descriptor is opened before the command line is read, so both refer to the same process.
    let descriptor = match pidfd_open(raw, PidfdFlags::empty()) {
        Ok(descriptor) => descriptor,
        Err(Errno::SRCH) => return Ok(false),
        Err(error) => return Err(error).with_context(|| format!("cannot watch process {pid} ({program})")),
    };
    if !is_ours(pid, program, folder) {
        return Ok(false);
    }
    // Without a graceful shutdown: the data is thrown away, and kube-apiserver takes its time.
    match pidfd_send_signal(&descriptor, Signal::KILL) {
        Ok(()) => {}
        Err(Errno::SRCH) => return Ok(false),
        Err(error) => return Err(error).with_context(|| format!("cannot end process {pid} ({program})")),
    }
    let mut watched = [PollFd::new(&descriptor, PollFlags::IN)];
    let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
    loop {
        match poll(&mut watched, Some(&patience)) {
            Ok(0) => bail!("process {pid} ({program}) was killed and is still there after 10 s"),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot wait for process {pid} ({program})"));
            }
        }
    }
}

/// A process that kills others when this one is gone, for any reason.
///
/// It reads pids from a pipe that only this process can write to. When the pipe closes, it kills those that still have
/// the folder among their arguments, and removes the folder and its lock.
#[derive(Debug)]
pub(super) struct Guard {
    child: Child,
}

impl Guard {
    const SCRIPT: &str = r#"
pids=
while read -r pid; do pids="$pids $pid"; done
for pid in $pids; do
  if grep -q -a -F -e "$1" "/proc/$pid/cmdline" 2>/dev/null; then kill -9 "$pid" 2>/dev/null; fi
done
rm -rf -- "$1" "$1.lock"
"#;

    /// Starts a guard for the control plane in a folder.
    pub(super) fn watch(folder: &Path) -> Result<Self> {
        let child = Command::new("sh")
            .args(["-c", Self::SCRIPT, "taffrail-guard"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot start `sh`, which would end the control plane if this process were killed")?;
        Ok(Self { child })
    }

    /// Adds a process that the guard kills when this process is gone.
    pub(super) fn add(&mut self, pid: u32) -> Result<()> {
        watch_over(&mut self.child, pid)
    }

    /// Returns the guard's process, which must be stopped last.
    pub(super) fn into_child(self) -> Child {
        self.child
    }
}

/// Sends `pid` to the guard process `guard`, which then kills that process too when this process is gone.
pub(super) fn watch_over(guard: &mut Child, pid: u32) -> Result<()> {
    let pipe = guard.stdin.as_mut().context("the pipe to the guard of the control plane is closed")?;
    writeln!(pipe, "{pid}").and_then(|()| pipe.flush()).context("the guard of the control plane has died")
}

/// Returns the last `lines` lines of a text; all if it has fewer.
pub(super) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Returns the last 6 lines of a log file, or, in parentheses, why there are none.
pub(super) fn log_tail(log: &Path) -> String {
    match fs::read(log) {
        Ok(text) => tail(&String::from_utf8_lossy(&text), 6),
        Err(error) if error.kind() == io::ErrorKind::NotFound => "(it wrote nothing)".to_owned(),
        Err(error) => format!("({}: {error})", log.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process for a test, stopped when the value is dropped.
    struct Started(Child);

    impl Started {
        fn new(program: &str, arguments: &[&str]) -> Self {
            let mut command = Command::new(program);
            // Inherited pipes would keep the reader of a failed test's output waiting.
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().expect("the program starts");
            await_command_line(&mut child).expect("it is looked after");
            Self(child)
        }
    }

    impl Drop for Started {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn reused_pid_is_not_killed() {
        let mut child = Started::new("sleep", &["600"]);
        let pid = child.0.id();
        assert!(!is_ours(pid, "etcd", Path::new("600")), "another program");
        assert!(!is_ours(pid, "sleep", Path::new("/somewhere")), "another folder");
        assert!(!end(pid, "etcd", Path::new("600")).expect("not ours is no error"));
        assert!(child.0.try_wait().expect("wait").is_none(), "it must still run");
        assert!(end(pid, "sleep", Path::new("600")).expect("ours is ended"));
        assert!(!child.0.wait().expect("wait").success());
        assert!(!end(pid, "sleep", Path::new("600")).expect("the second time there is nothing"));
    }

    #[test]
    fn guard_kills_its_processes_when_its_pipe_closes() {
        let folder = std::env::temp_dir().join(format!("taffrail-guard-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let named = folder.join("x").display().to_string();
        let mut watched = Started::new("tail", &["-f", "/dev/null", &named]);
        let mut other = Started::new("sleep", &["600"]);
        let mut guard = Guard::watch(&folder).expect("a guard");
        guard.add(watched.0.id()).expect("watched");
        guard.add(other.0.id()).expect("watched");
        let mut guard = guard.into_child();
        drop(guard.stdin.take());
        assert!(guard.wait().expect("the guard ends").success());
        assert!(!watched.0.wait().expect("it is gone").success());
        assert!(other.0.try_wait().expect("wait").is_none(), "it does not name the folder");
        assert!(!folder.exists());
    }

    #[test]
    fn tail_returns_the_last_lines() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
        assert_eq!(tail("", 2), "");
    }
}
