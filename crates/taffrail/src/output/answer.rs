//! The destination of the answer: stdout, or a pager once it is longer than the screen.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anstream::ColorChoice;
use unicode_width::UnicodeWidthStr;

use super::{Phrase, Sieve};

static SINK: Mutex<Sink> = Mutex::new(Sink { place: Place::Stdout, later: Vec::new() });

/// True while a pager runs. It is not part of [`SINK`], whose lock is held while the pager runs.
static PAGING: AtomicBool = AtomicBool::new(false);

struct Sink {
    place: Place,
    /// Messages for stderr, printed when the answer has ended so that they do not disturb the pager.
    later: Vec<String>,
}

enum Place {
    Stdout,
    /// Output that is kept until it is longer than the screen; then a pager gets it.
    Held(Held),
    Pager(Child),
    /// Output that is kept in memory for the caller, which compares and prints it itself.
    Kept(Vec<u8>),
}

struct Held {
    pager: String,
    text: Vec<u8>,
    /// Width of the screen in columns.
    columns: usize,
    rows: usize,
    /// The number of screen rows that the complete lines in `text` take; the field `counted` is the byte offset
    /// where these lines end.
    used: usize,
    counted: usize,
}

/// Returns true if `pager` is an installed program; `never` and `cat` are not pagers.
fn is_pager(pager: &str) -> bool {
    match pager.split_whitespace().next() {
        None | Some("never" | "false" | "no" | "off" | "cat") => false,
        Some(program) => is_on_path(program),
    }
}

fn is_on_path(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Sends answers longer than the screen to `pager`, a shell command, from now on. Does nothing if stdout is not a
/// terminal or the pager does not exist.
pub(crate) fn page_with(pager: &str) {
    let Some((columns, rows)) = terminal_size::terminal_size_of(io::stdout()) else { return };
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if is_dumb || !io::stdout().is_terminal() || !is_pager(pager) {
        return;
    }
    sink().place = Place::Held(Held {
        pager: pager.to_owned(),
        text: Vec::new(),
        columns: usize::from(columns.0).max(1),
        rows: usize::from(rows.0),
        used: 0,
        counted: 0,
    });
}

/// Keeps all further output in memory, until [`kept`] takes it.
pub(crate) fn keep() {
    sink().place = Place::Kept(Vec::new());
}

/// Returns the output since [`keep`], and the messages meant for stderr, and empties both.
pub(crate) fn kept() -> (Vec<u8>, Vec<String>) {
    let mut sink = sink();
    let text = match std::mem::replace(&mut sink.place, Place::Stdout) {
        Place::Kept(text) => text,
        Place::Stdout | Place::Held(_) | Place::Pager(_) => Vec::new(),
    };
    (text, std::mem::take(&mut sink.later))
}

/// Returns true while a pager runs.
pub(crate) fn is_paging() -> bool {
    PAGING.load(Ordering::Acquire)
}

/// Ends the answer; if there is a pager, waits until its reader quits.
pub(crate) fn finish() {
    let mut sink = sink();
    match std::mem::replace(&mut sink.place, Place::Stdout) {
        Place::Stdout | Place::Kept(_) => {}
        Place::Held(held) => {
            // A closed stdout is not an error.
            let _ = io::stdout().write_all(&held.text).and_then(|()| io::stdout().flush());
        }
        Place::Pager(mut child) => {
            drop(child.stdin.take());
            // The pager's exit code does not matter.
            let _ = child.wait();
            PAGING.store(false, Ordering::Release);
        }
    }
    for line in std::mem::take(&mut sink.later) {
        let _ = anstream::stderr().write_all(line.as_bytes());
    }
}

/// Prints a line to stderr: at once, or after the answer while a pager shows it.
pub(crate) fn tell(line: Phrase) {
    retell(line.as_str());
}

/// Prints a line to stderr that was made printable before and [kept].
pub(crate) fn retell(line: &str) {
    let line = Sieve::clean(line, true);
    let mut sink = sink();
    match sink.place {
        // A closed stderr cannot be reported.
        Place::Stdout => drop(anstream::stderr().write_all(line.as_bytes())),
        _ => sink.later.push(line),
    }
}

/// Prints a trace line to stderr: at once, or after the output if a pager shows it.
pub(crate) fn trace(line: &str) {
    let line = Sieve::clean(line, true);
    let mut sink = sink();
    match sink.place {
        // A closed stderr cannot be reported.
        Place::Stdout | Place::Kept(_) => drop(anstream::stderr().write_all(line.as_bytes())),
        Place::Held(_) | Place::Pager(_) => sink.later.push(line),
    }
}

fn sink() -> MutexGuard<'static, Sink> {
    SINK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a writer to stdout for people, with colours if they are enabled.
pub(crate) fn people() -> Answer {
    let colours = anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never;
    Answer { sieve: Some(Sieve::of_people(colours)) }
}

/// Returns a writer to stdout for programs; on a terminal it removes control characters.
pub(crate) fn programs() -> Answer {
    Answer { sieve: io::stdout().is_terminal().then(Sieve::of_programs) }
}

/// Returns a writer to stdout for text that [`people`] formatted and that was [kept].
pub(crate) fn again() -> Answer {
    Answer { sieve: io::stdout().is_terminal().then(|| Sieve::of_people(true)) }
}

/// A writer of the command's answer to stdout or a pager.
pub(crate) struct Answer {
    sieve: Option<Sieve>,
}

impl Write for Answer {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut sink = sink();
        match &mut self.sieve {
            None => sink.place.write(text)?,
            Some(sieve) => sink.place.write(&sieve.pass(text))?,
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut sink().place {
            Place::Stdout => io::stdout().flush(),
            Place::Held(_) | Place::Pager(_) | Place::Kept(_) => Ok(()),
        }
    }
}

impl Place {
    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        match self {
            Place::Stdout => io::stdout().write_all(text),
            Place::Kept(kept) => kept.write_all(text),
            Place::Pager(child) => match &mut child.stdin {
                Some(pipe) => pipe.write_all(text),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            },
            Place::Held(held) => {
                held.text.extend_from_slice(text);
                // The shell's prompt needs a row too.
                if held.rows() < held.rows {
                    return Ok(());
                }
                let (text, child) = (std::mem::take(&mut held.text), held.start());
                PAGING.store(child.is_ok(), Ordering::Release);
                *self = child.map_or(Place::Stdout, Place::Pager);
                self.write(&text)
            }
        }
    }
}

impl Held {
    fn rows(&mut self) -> usize {
        while let Some(end) = self.text[self.counted..].iter().position(|byte| *byte == b'\n') {
            let line = &self.text[self.counted..self.counted + end];
            let line = String::from_utf8(anstream::adapter::strip_bytes(line).into_vec());
            let width = line.map_or(0, |line| line.width());
            self.used += width.div_ceil(self.columns).max(1);
            self.counted += end + 1;
        }
        self.used
    }

    fn start(&self) -> io::Result<Child> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.pager).stdin(Stdio::piped());
        // Like git: colours pass, and short answers stay on the screen. Options set by the user win.
        for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
            if std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        command.spawn()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_pagers_are_ignored() {
        assert!(is_pager("sh -c cat"));
        for none in ["", "never", "off", "cat", "no-such-pager -R"] {
            assert!(!is_pager(none), "{none}");
        }
    }

    #[test]
    fn rows_are_counted_as_the_screen_wraps_them() {
        let mut held =
            Held { pager: String::new(), text: Vec::new(), columns: 10, rows: 24, used: 0, counted: 0 };
        held.text.extend_from_slice(b"one\n\n\x1b[31m1234567890\x1b[0m\n12345678901\nno end");
        assert_eq!(held.rows(), 5);
        held.text.extend_from_slice(b" yet\n");
        assert_eq!(held.rows(), 6);
    }
}
