//! The destination of the answer: stdout, a pager once it is longer than the screen, or memory.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anstream::ColorChoice;
use taffrail_object::ObjectKey;
use unicode_width::UnicodeWidthStr;

use super::{Phrase, Sieve};

/// The destination of an answer and of the messages beside it. Clones have the same destination.
#[derive(Clone)]
pub(crate) struct Console {
    sink: Arc<Mutex<Sink>>,
    /// True while a pager runs; separate from the sink, whose lock [`Console::finish`] holds until the pager ends.
    is_paging: Arc<AtomicBool>,
}

/// The destination of an answer, and what was collected for it so far.
struct Sink {
    place: OutputPlace,
    /// Messages for stderr that are printed when the answer has ended, so that they do not disturb the pager.
    later: Vec<String>,
    /// For each row of the last table in the answer: true if it has a problem. Empty for other answers.
    problems: Vec<bool>,
    /// For each line of the answer: the cluster and the key of the object that it shows. Empty for most answers.
    objects: Vec<Option<(String, ObjectKey)>>,
}

/// The place to which an answer is written.
enum OutputPlace {
    Stdout,
    /// Output that is kept until it has as many rows as the screen; then a pager gets it.
    Held(PagedOutput),
    Pager(Child),
    /// Kept in memory.
    Memory(Vec<u8>),
}

/// The part of an answer that is kept until it is clear whether it needs a pager.
struct PagedOutput {
    pager: String,
    text: Vec<u8>,
    /// Width of the screen in columns.
    columns: usize,
    rows: usize,
    /// The number of screen rows that the complete lines in `text` take.
    used: usize,
    /// The byte offset in `text` where the lines counted in `used` end.
    counted: usize,
}

/// Returns true if the first word of `pager` is an installed program, other than `cat` and words that mean none, such
/// as `never`.
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

impl Console {
    /// Returns the console of the process: stdout and stderr.
    pub(crate) fn process() -> Console {
        Console::new(OutputPlace::Stdout)
    }

    /// Returns a console that keeps the answer in memory for [`Console::kept`].
    pub(crate) fn memory() -> Console {
        Console::new(OutputPlace::Memory(Vec::new()))
    }

    fn new(place: OutputPlace) -> Console {
        Console {
            sink: Arc::new(Mutex::new(Sink {
                place,
                later: Vec::new(),
                problems: Vec::new(),
                objects: Vec::new(),
            })),
            is_paging: Arc::default(),
        }
    }

    /// Makes an answer with at least as many rows as the screen go to `pager`, a shell command. Does nothing if stdout
    /// is not a terminal, `$TERM` is `dumb`, or [`is_pager`] is false for `pager`.
    pub(crate) fn page_with(&self, pager: &str) {
        let Some((columns, rows)) = terminal_size::terminal_size_of(io::stdout()) else { return };
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if is_dumb || !io::stdout().is_terminal() || !is_pager(pager) {
            return;
        }
        self.sink().place = OutputPlace::Held(PagedOutput {
            pager: pager.to_owned(),
            text: Vec::new(),
            columns: usize::from(columns.0).max(1),
            rows: usize::from(rows.0),
            used: 0,
            counted: 0,
        });
    }

    /// Removes and returns the answer kept in memory (empty for a console that keeps none) and the messages kept for
    /// stderr.
    pub(crate) fn kept(&self) -> (String, Vec<String>) {
        let mut sink = self.sink();
        let text = match &mut sink.place {
            OutputPlace::Memory(text) => std::mem::take(text),
            OutputPlace::Stdout | OutputPlace::Held(_) | OutputPlace::Pager(_) => Vec::new(),
        };
        (String::from_utf8_lossy(&text).into_owned(), std::mem::take(&mut sink.later))
    }

    /// Stores for each row of the printed table if it has a problem, for a view that cannot show all rows.
    pub(crate) fn note_problems(&self, problems: Vec<bool>) {
        self.sink().problems = problems;
    }

    /// Removes and returns what [`Console::note_problems`] stored.
    pub(crate) fn noted_problems(&self) -> Vec<bool> {
        std::mem::take(&mut self.sink().problems)
    }

    /// Stores for each line of the answer the object that it shows, for a view in which an object can be chosen.
    pub(crate) fn note_objects(&self, objects: Vec<Option<(String, ObjectKey)>>) {
        self.sink().objects = objects;
    }

    /// Removes and returns what [`Console::note_objects`] stored.
    #[cfg(feature = "tui")]
    pub(crate) fn noted_objects(&self) -> Vec<Option<(String, ObjectKey)>> {
        std::mem::take(&mut self.sink().objects)
    }

    /// Returns true while a pager runs.
    pub(crate) fn is_paging(&self) -> bool {
        self.is_paging.load(Ordering::Acquire)
    }

    /// Ends the answer: prints what is held back, or waits until the reader of the pager quits; then prints the kept
    /// messages. An answer kept in memory is dropped.
    pub(crate) fn finish(&self) {
        let mut sink = self.sink();
        match std::mem::replace(&mut sink.place, OutputPlace::Stdout) {
            OutputPlace::Stdout | OutputPlace::Memory(_) => {}
            OutputPlace::Held(held) => {
                // A closed stdout is not an error.
                let _ = io::stdout().write_all(&held.text).and_then(|()| io::stdout().flush());
            }
            OutputPlace::Pager(mut child) => {
                drop(child.stdin.take());
                // The pager's exit code does not matter.
                let _ = child.wait();
                self.is_paging.store(false, Ordering::Release);
            }
        }
        for line in std::mem::take(&mut sink.later) {
            let _ = anstream::stderr().write_all(line.as_bytes());
        }
    }

    /// Prints `line` to stderr, as [`Console::message`] does.
    pub(crate) fn tell(&self, line: Phrase) {
        self.message(line.as_str());
    }

    /// Prints a text to stderr at once; if the answer is held back for a pager, goes to one or is kept in memory, keeps
    /// the text instead until the answer has ended.
    pub(crate) fn message(&self, line: &str) {
        let line = Sieve::clean(line, true);
        let mut sink = self.sink();
        match sink.place {
            // A closed stderr cannot be reported.
            OutputPlace::Stdout => drop(anstream::stderr().write_all(line.as_bytes())),
            OutputPlace::Held(_) | OutputPlace::Pager(_) | OutputPlace::Memory(_) => sink.later.push(line),
        }
    }

    /// Returns a writer of the answer for people: only visible text, with colours if they are enabled.
    pub(crate) fn people(&self) -> Answer {
        let colours = anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        self.writer(Some(Sieve::of_people(colours)))
    }

    /// Returns a writer of the answer for programs: filtered by [`Sieve::of_programs`] if stdout is a terminal, else
    /// unchanged.
    pub(crate) fn programs(&self) -> Answer {
        self.writer(io::stdout().is_terminal().then(Sieve::of_programs))
    }

    /// Returns a writer for text that was formatted for people by another console that kept it in memory: it keeps
    /// colours, and replaces other control characters only if stdout is a terminal.
    pub(crate) fn again(&self) -> Answer {
        self.writer(io::stdout().is_terminal().then(|| Sieve::of_people(true)))
    }

    fn writer(&self, sieve: Option<Sieve>) -> Answer {
        Answer { console: self.clone(), sieve }
    }

    fn sink(&self) -> MutexGuard<'_, Sink> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A writer of an answer to the destination of its console.
pub(crate) struct Answer {
    console: Console,
    sieve: Option<Sieve>,
}

impl Write for Answer {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let passed = self.sieve.as_mut().map(|sieve| sieve.pass(text));
        self.console.sink().place.write(passed.as_deref().unwrap_or(text), &self.console.is_paging)?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.console.sink().place {
            OutputPlace::Stdout => io::stdout().flush(),
            OutputPlace::Held(_) | OutputPlace::Pager(_) | OutputPlace::Memory(_) => Ok(()),
        }
    }
}

impl OutputPlace {
    fn write(&mut self, text: &[u8], is_paging: &AtomicBool) -> io::Result<()> {
        match self {
            OutputPlace::Stdout => io::stdout().write_all(text),
            OutputPlace::Memory(kept) => kept.write_all(text),
            OutputPlace::Pager(child) => match &mut child.stdin {
                Some(pipe) => pipe.write_all(text),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            },
            OutputPlace::Held(held) => {
                held.text.extend_from_slice(text);
                // The shell's prompt needs a row too.
                if held.rows() < held.rows {
                    return Ok(());
                }
                let (text, child) = (std::mem::take(&mut held.text), held.start());
                is_paging.store(child.is_ok(), Ordering::Release);
                *self = child.map_or(OutputPlace::Stdout, OutputPlace::Pager);
                self.write(&text, is_paging)
            }
        }
    }
}

impl PagedOutput {
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
        let mut held = PagedOutput {
            pager: String::new(),
            text: Vec::new(),
            columns: 10,
            rows: 24,
            used: 0,
            counted: 0,
        };
        held.text.extend_from_slice(b"one\n\n\x1b[31m1234567890\x1b[0m\n12345678901\nno end");
        assert_eq!(held.rows(), 5);
        held.text.extend_from_slice(b" yet\n");
        assert_eq!(held.rows(), 6);
    }
}
