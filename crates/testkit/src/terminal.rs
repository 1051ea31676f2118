//! A program on a terminal of its own.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::fs::{Mode, OFlags};
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

/// A program on a pseudoterminal. It is killed on drop.
pub struct Terminal {
    /// The program.
    pub child: Child,
    input: File,
    output: Receiver<Vec<u8>>,
    /// The text that the program wrote to the terminal so far.
    pub text: String,
}

/// The output of a program within some time.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// Some bytes.
    Bytes(Vec<u8>),
    /// Nothing within the time.
    Silence,
    /// Nothing any more: all processes that held the terminal have closed it.
    End,
}

impl Terminal {
    /// Starts a program on a terminal of this size. `$TERM` is `xterm` unless the command sets it.
    ///
    /// # Errors
    /// If the system gives no terminal, or the program cannot be run.
    pub fn start(mut command: Command, columns: u16, rows: u16) -> Result<Terminal> {
        let (master, slave) = open(columns, rows).context("cannot open a terminal")?;
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm");
        }
        let copy = || slave.try_clone().context("cannot copy a terminal");
        command.stdin(copy()?).stdout(copy()?).stderr(copy()?);
        let child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
        // They hold copies of the terminal's end, which would keep it open.
        drop((command, slave));
        let (sender, output) = channel();
        let mut master = File::from(master);
        let input = master.try_clone().context("cannot copy a terminal")?;
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The other end being closed is an error on some systems.
            while let Ok(read @ 1..) = master.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Ok(Terminal { child, input, output, text: String::new() })
    }

    /// Types on the terminal. Has no effect once the program has ended.
    pub fn type_in(&mut self, text: &str) {
        let _ = self.input.write_all(text.as_bytes());
    }

    /// Returns the settings of the terminal, for comparison.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn settings(&self) -> Result<String> {
        let settings =
            rustix::termios::tcgetattr(&self.input).context("cannot read a terminal's settings")?;
        Ok(format!("{settings:?}"))
    }

    /// Changes the size of the terminal, and tells the program. Has no effect once the program has ended.
    pub fn resize(&self, columns: u16, rows: u16) {
        let _ = rustix::termios::tcsetwinsize(&self.input, size(columns, rows));
        self.send(Signal::WINCH);
    }

    /// Sends a signal to the program. Has no effect once the program has ended.
    pub fn send(&self, signal: Signal) {
        let _ = rustix::process::kill_process(Pid::from_child(&self.child), signal);
    }

    /// Takes the next output that comes within this time.
    pub fn take(&mut self, time: Duration) -> Output {
        match self.output.recv_timeout(time) {
            Ok(more) => {
                self.text.push_str(&String::from_utf8_lossy(&more));
                Output::Bytes(more)
            }
            Err(RecvTimeoutError::Timeout) => Output::Silence,
            Err(RecvTimeoutError::Disconnected) => Output::End,
        }
    }

    /// Takes the output that comes within this time, and returns its number of bytes.
    pub fn read_for(&mut self, time: Duration) -> usize {
        let until = Instant::now() + time;
        let mut length = 0;
        while let Output::Bytes(more) = self.take(until.saturating_duration_since(Instant::now())) {
            length += more.len();
        }
        length
    }

    /// Waits until the program has written `wanted`.
    ///
    /// # Panics
    /// If the program ends before.
    #[track_caller]
    #[expect(clippy::panic, reason = "a test whose program ended fails")]
    pub fn wait_for(&mut self, wanted: &str) {
        while !self.text.contains(wanted) {
            if self.take(Duration::MAX) == Output::End {
                panic!("it ended without {wanted:?}: {:?}", self.text);
            }
        }
    }

    /// Waits for the end of the program, and returns all that it wrote, and its exit code.
    pub fn end(mut self) -> (String, Option<i32>) {
        while self.take(Duration::MAX) != Output::End {}
        let code = self.child.wait().ok().and_then(|status| status.code());
        (std::mem::take(&mut self.text), code)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Opens a pseudoterminal, and returns the end of the person and that of the program.
fn open(columns: u16, rows: u16) -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    // A terminal that another child process holds open as well never ends.
    rustix::io::fcntl_setfd(&master, FdFlags::CLOEXEC)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    rustix::termios::tcsetwinsize(&master, size(columns, rows))?;
    let name = rustix::pty::ptsname(&master, Vec::new())?;
    let slave = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((master, slave))
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
