//! Runs a process that takes commands line by line, and reads its cost from the kernel.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The memory and the CPU time of a process so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// User and system time, in seconds.
    pub(super) cpu: f64,
    /// Resident memory, in MiB.
    pub(super) resident: f64,
    /// Resident memory that does not belong to a file, such as the program itself, in MiB.
    pub(super) anonymous: f64,
    /// Maximum of resident memory so far, in MiB.
    pub(super) peak: f64,
}

impl Usage {
    /// Reads the usage of a running process from `/proc`.
    pub(super) fn of(pid: u32) -> Result<Usage> {
        let read = |file: &str| {
            let path = format!("/proc/{pid}/{file}");
            fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
        };
        let status = read("status")?;
        let mebibytes = |key: &str| -> Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let line = line.with_context(|| format!("/proc/{pid}/status has no line {key}"))?;
            let kibibytes: f64 = line
                .split_whitespace()
                .next()
                .with_context(|| format!("the line {key} of /proc/{pid}/status has no number"))?
                .parse()?;
            Ok(kibibytes / 1024.0)
        };
        let stat = read("stat")?;
        // The name in parentheses may hold anything.
        let (_, rest) = stat
            .rsplit_once(')')
            .with_context(|| format!("/proc/{pid}/stat has no process name in parentheses"))?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks =
            |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
        Ok(Usage {
            // The kernel tells these two in hundredths of a second, whatever its own clock.
            cpu: (ticks(11) + ticks(12)) / 100.0,
            resident: mebibytes("VmRSS:")?,
            anonymous: mebibytes("RssAnon:")?,
            peak: mebibytes("VmHWM:")?,
        })
    }
}

/// Returns the number of open sockets of a process; 0 if it cannot be read.
pub(super) fn sockets(pid: u32) -> usize {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

/// A running process that takes commands on its standard input; it is killed on drop.
pub(super) struct Subject {
    child: Child,
    words: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// The JSON that it printed when it was ready: one that follows a cluster had read everything.
    pub(super) synced: Value,
    /// The time from its start until it was ready, in seconds.
    pub(super) wall: f64,
    /// Its usage when it was ready.
    pub(super) first: Usage,
}

impl Subject {
    /// Starts the program and waits until it is ready.
    pub(super) fn start(program: &Path, arguments: &[&str]) -> Result<Subject> {
        Subject::spawn(Command::new(program).args(arguments))
    }

    /// Starts a program in Go that runs on one thread at a time, its garbage collection included.
    pub(super) fn start_on_one_thread(program: &Path, arguments: &[&str]) -> Result<Subject> {
        Subject::spawn(Command::new(program).args(arguments).env("GOMAXPROCS", "1"))
    }

    fn spawn(command: &mut Command) -> Result<Subject> {
        let (program, begun) = (command.get_program().to_os_string(), Instant::now());
        let shown = || program.to_string_lossy();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", shown()))?;
        let words = child.stdin.take().context("the standard input of the program is not a pipe")?;
        let answers =
            BufReader::new(child.stdout.take().context("the standard output of the program is not a pipe")?);
        let mut subject =
            Subject { child, words, answers, synced: Value::Null, wall: 0.0, first: Usage::default() };
        let unready = || format!("`{}` did not report that it is ready", shown());
        subject.synced = subject.answer().with_context(unready)?;
        subject.wall = begun.elapsed().as_secs_f64();
        subject.first = subject.usage()?;
        Ok(subject)
    }

    fn answer(&mut self) -> Result<Value> {
        let mut line = String::new();
        ensure!(self.answers.read_line(&mut line)? > 0, "the measured program ended without an answer");
        serde_json::from_str(&line)
            .with_context(|| format!("the answer of the measured program is not JSON: {line}"))
    }

    pub(super) fn tell(&mut self, line: &str) -> Result<Value> {
        writeln!(self.words, "{line}")?;
        self.answer()
            .with_context(|| format!("the command '{}' to the measured program failed", line.trim_end()))
    }

    pub(super) fn usage(&self) -> Result<Usage> {
        Usage::of(self.child.id())
    }

    /// Kills the program, as a failure of the machine would end it.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the objects, trees and managed objects of the program as JSON, for comparison with another program.
    pub(super) fn answers(&mut self, folder: &Path) -> Result<Value> {
        let file = folder.join("answers.json");
        self.tell(&format!("answers {}", file.display()))?;
        Ok(serde_json::from_slice(&fs::read(&file)?)?)
    }

    /// Returns the times at which it saw the events since the command `events`, in nanoseconds since 1970, by event.
    pub(super) fn report(&mut self, folder: &Path) -> Result<HashMap<String, i128>> {
        let file = folder.join("report.txt");
        self.tell(&format!("report {}", file.display()))?;
        let text = fs::read_to_string(&file)?;
        let line = |line: &str| -> Option<(String, i128)> {
            let (name, at) = line.split_once(' ')?;
            Some((name.to_owned(), at.parse().ok()?))
        };
        Ok(text.lines().filter_map(line).collect())
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
