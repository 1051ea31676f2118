//! A command that goes on, and what it prints meanwhile.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Ends with the test.
pub(super) struct Going {
    child: Child,
    lines: Receiver<String>,
    patience: Duration,
    /// All lines that were taken so far.
    pub(super) seen: Vec<String>,
}

impl Going {
    /// Starts a command of which each line comes within `patience`.
    pub(super) fn start(mut command: Command, patience: Duration) -> Going {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // The test may have seen enough.
                let _ = sender.send(line);
            }
        });
        Going { child, lines, patience, seen: Vec::new() }
    }

    /// Takes lines until one has this in it, and returns that.
    #[track_caller]
    pub(super) fn until(&mut self, wanted: &str) -> String {
        self.until_line(&format!("{wanted:?}"), |line| line.contains(wanted))
    }

    /// Takes lines until one is `wanted`, of which `holds` tells, and returns that.
    #[track_caller]
    pub(super) fn until_line(&mut self, wanted: &str, holds: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let left = self.patience.saturating_sub(begun.elapsed());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("{wanted} is not among {:#?}", self.seen)
            };
            self.seen.push(line.clone());
            if holds(&line) {
                return line;
            }
        }
    }

    /// Waits for its end, and returns the exit code.
    #[track_caller]
    pub(super) fn end(mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            match self.lines.recv_timeout(self.patience.saturating_sub(begun.elapsed())) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => return self.child.wait().unwrap().code(),
                Err(RecvTimeoutError::Timeout) => panic!("it goes on for ever: {:#?}", self.seen),
            }
        }
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
