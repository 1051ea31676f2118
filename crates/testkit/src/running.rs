//! Programs that run beside a test or a task, and print when they are ready.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result, bail};
use rustix::process::Pid;

/// A program that is killed on drop. Its output is read to the end.
pub struct Running {
    child: Child,
    reader: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts a program without input, and waits for the first line of its output of which `find` returns a value.
    ///
    /// # Errors
    /// If the program cannot be run, or ends before it prints such a line.
    pub fn start<T>(command: &mut Command, find: impl Fn(&str) -> Option<T>) -> Result<(Running, T)> {
        let named = format!("{command:?}");
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let child = started.with_context(|| format!("cannot run {named}"))?;
        let mut running = Running { child, reader: None };
        let output = running.child.stdout.take().context("the output of a program cannot be read")?;
        let mut lines = BufReader::new(output).lines();
        for line in lines.by_ref() {
            if let Some(found) = find(&line.with_context(|| format!("cannot read {named}"))?) {
                // A program whose output nobody reads waits for ever.
                running.reader = Some(std::thread::spawn(move || lines.for_each(drop)));
                return Ok((running, found));
            }
        }
        bail!("{named} ended before it was ready")
    }

    /// Returns true if the program has not ended.
    ///
    /// # Errors
    /// If the operating system does not tell.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait().context("cannot ask for the state of a program")?.is_none())
    }

    /// Returns the process id.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// The access to a hub on this machine, as `taffrail hub serve` and `taffrail ui` print it.
pub struct HubAccess {
    /// The URL of the hub, without a path: `http://127.0.0.1:7655`.
    pub url: String,
    /// The token of this run.
    pub token: String,
}

impl HubAccess {
    /// Parses the line that tells how to ask the hub; `None` for another line.
    pub fn find(line: &str) -> Option<HubAccess> {
        if let Some((url, token)) = line.trim().split_once("/#").filter(|(url, _)| url.starts_with("http://"))
        {
            return Some(HubAccess { url: url.to_owned(), token: token.to_owned() });
        }
        let token = line.split_once("TAFFRAIL_HUB_TOKEN=")?.1.split(' ').next()?;
        let url = line.split_once("--hub ")?.1;
        Some(HubAccess { url: url.to_owned(), token: token.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_access_is_that_of_the_line_that_tells_it() {
        for line in [
            "ask it with: TAFFRAIL_HUB_TOKEN=abc taffrail get apps --hub http://127.0.0.1:1",
            "  http://127.0.0.1:1/#abc",
        ] {
            let HubAccess { url, token } = HubAccess::find(line).expect("a line with the access");
            assert_eq!((&*url, &*token), ("http://127.0.0.1:1", "abc"));
        }
        assert!(HubAccess::find("follows 2 clusters, and answers at http://127.0.0.1:1/api/v1").is_none());
    }

    #[test]
    fn a_program_that_ends_before_it_is_ready_is_an_error() {
        let started =
            Running::start(Command::new("echo").arg("other"), |line| (line == "ready").then_some(()));
        assert!(started.is_err());
    }
}
