//! A person at the terminal UI: presses keys, and reads the screen through a terminal emulator.

use std::num::NonZeroU16;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use taffrail_testkit::terminal::{Output, Terminal};
use vt100::{Callbacks, Parser, Screen};

/// The size of the terminal, in columns and rows.
const SIZE: (u16, u16) = (120, 40);
/// The maximum time until the screen shows what is awaited.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time between two looks at a screen that does not change.
const POLL: Duration = Duration::from_millis(50);

/// The part of the screen from which an answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Region {
    /// The sentence below the names of the views.
    Sentence,
    /// All lines between the sentence and the last line.
    Body,
    /// The row with the cursor.
    Cursor,
    /// The last line.
    Foot,
}

/// A screen as the person reads it.
pub(super) struct View {
    /// All lines, without spaces at their ends.
    pub(super) lines: Vec<String>,
    /// The number of the line with the cursor, which is shown in reverse.
    cursor: Option<usize>,
}

impl View {
    /// Returns the row with the cursor; empty without one.
    pub(super) fn cursor(&self) -> &str {
        self.cursor.map_or("", |at| &self.lines[at])
    }

    /// Returns true if any line contains `text`.
    pub(super) fn has(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.contains(text))
    }

    /// Returns the first line that contains all of `texts`.
    pub(super) fn line_with(&self, texts: &[&str]) -> Option<&str> {
        self.lines.iter().map(String::as_str).find(|line| texts.iter().all(|text| line.contains(text)))
    }

    /// Returns the numbers of the lines of a region.
    fn region(&self, region: Region) -> std::ops::Range<usize> {
        let foot = self.lines.len() - 1;
        match region {
            Region::Sentence => 1..2,
            Region::Body => 2..foot,
            Region::Cursor => self.cursor.map_or(0..0, |at| at..at + 1),
            Region::Foot => foot..foot + 1,
        }
    }

    /// Returns the view of a region alone, without its lines if they are withheld.
    fn only(self, region: Region, is_withheld: bool) -> View {
        let range = self.region(region);
        let keep = |(at, line): (usize, String)| match range.contains(&at) && !is_withheld {
            true => line,
            false => String::new(),
        };
        View { lines: self.lines.into_iter().enumerate().map(keep).collect(), cursor: self.cursor }
    }
}

/// Events of the terminal beside its cells.
#[derive(Default)]
struct Heard {
    /// True within an update, of which a part of the cells are old.
    is_amid: bool,
    /// The text that was copied last.
    clipboard: String,
}

impl Callbacks for Heard {
    fn copy_to_clipboard(&mut self, _: &mut Screen, _: &[u8], data: &[u8]) {
        let text = STANDARD.decode(data).unwrap_or_default();
        self.clipboard = String::from_utf8_lossy(&text).into_owned();
    }

    fn unhandled_csi(
        &mut self,
        _: &mut Screen,
        mark: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        end: char,
    ) {
        if mark == Some(b'?') && params == [&[2026]] {
            self.is_amid = end == 'h';
        }
    }
}

/// The error that the screen does not show the answer.
#[derive(Debug)]
pub(super) struct NotShown(String);

impl std::fmt::Display for NotShown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the screen does not show the answer: {}", self.0)
    }
}

impl std::error::Error for NotShown {}

/// A person at the terminal UI.
pub(super) struct Person {
    terminal: Terminal,
    parser: Parser<Heard>,
    /// The number of key presses since the last task began; a typed word counts as one.
    pub(super) presses: u32,
    /// The number of answers that were read since the last task began.
    pub(super) answers: u32,
    /// The number of the answer whose lines are blank; `None` to read all.
    pub(super) withheld: Option<u32>,
}

impl Person {
    /// Starts a terminal UI with this command.
    pub(super) fn start(mut command: Command) -> Result<Person> {
        command.env("TERM", "xterm-256color");
        let terminal = Terminal::start(command, SIZE.0, SIZE.1)?;
        let size = |number| NonZeroU16::new(number).context("a terminal without cells");
        let parser = Parser::new_with_callbacks(size(SIZE.1)?, size(SIZE.0)?, 0, Heard::default());
        Ok(Person { terminal, parser, presses: 0, answers: 0, withheld: None })
    }

    /// Presses keys: `Enter`, `Escape`, `Space`, or a character.
    pub(super) fn press(&mut self, keys: &[&str]) {
        for key in keys {
            self.presses += 1;
            self.terminal.type_in(match *key {
                "Enter" => "\r",
                "Escape" => "\x1b",
                "Space" => " ",
                character => character,
            });
        }
    }

    /// Types words, each of which counts as one press.
    pub(super) fn type_in(&mut self, words: &str) {
        self.presses += u32::try_from(words.split_whitespace().count()).unwrap_or(u32::MAX);
        self.terminal.type_in(words);
    }

    /// Goes to the first view, which is no part of a task, and begins to count.
    pub(super) fn begin(&mut self) -> Result<()> {
        // Closes what an interrupted task left open.
        for _ in 0..8 {
            self.press(&["Escape"]);
            self.look(POLL)?;
        }
        self.press(&["g", "a"]);
        self.until("first view", |view| {
            view.lines[1].contains(" app") && view.has("/ search  z problems only")
        })?;
        (self.presses, self.answers) = (0, 0);
        Ok(())
    }

    /// Returns the text that was copied last.
    pub(super) fn clipboard(&self) -> &str {
        &self.parser.callbacks().clipboard
    }

    /// Reads the screen, after at most this time without output.
    pub(super) fn look(&mut self, time: Duration) -> Result<View> {
        let mut time = time;
        loop {
            match self.terminal.take(time) {
                Output::Bytes(bytes) => {
                    self.parser.process(&bytes);
                    time = if self.parser.callbacks().is_amid { POLL } else { Duration::ZERO };
                }
                Output::Silence => break,
                Output::End => bail!("the terminal UI ended: {}", self.parser.screen().contents()),
            }
        }
        self.terminal.text.clear();
        let screen = self.parser.screen();
        let lines = screen.rows(0, SIZE.0).map(|line| line.trim_end().to_owned()).collect();
        let is_reversed =
            |row: &u16| screen.cell(*row, 1).is_some_and(vt100::Cell::inverse) && *row + 1 < SIZE.1;
        Ok(View { lines, cursor: (0..SIZE.1).find(is_reversed).map(usize::from) })
    }

    /// Waits until the screen is as `holds` says, and returns it.
    pub(super) fn until(&mut self, what: &str, holds: impl Fn(&View) -> bool) -> Result<View> {
        let begun = Instant::now();
        loop {
            let view = self.look(POLL)?;
            if holds(&view) {
                return Ok(view);
            }
            ensure!(begun.elapsed() < PATIENCE, "no {what} on the screen:\n{}", view.lines.join("\n"));
        }
    }

    /// Presses a key until the row with the cursor is as `holds` says.
    pub(super) fn press_until(
        &mut self,
        key: &str,
        what: &str,
        holds: impl Fn(&str) -> bool,
    ) -> Result<View> {
        let mut view = self.until("cursor", |view| view.cursor.is_some())?;
        while !holds(view.cursor()) {
            let before = view.cursor;
            self.press(&[key]);
            view = self
                .until("other row with the cursor", |view| view.cursor.is_some() && view.cursor != before)
                .with_context(|| format!("{key} does not lead to {what}"))?;
        }
        Ok(view)
    }

    /// Reads an answer from a region of the screen: waits until `check`, which compares it with what the hub says now,
    /// finds nothing missing.
    pub(super) fn answer(
        &mut self,
        region: Region,
        check: impl Fn(&View) -> Result<(), String>,
    ) -> Result<()> {
        self.answers += 1;
        let is_withheld = self.withheld == Some(self.answers);
        // Withheld, it never comes.
        let patience = if is_withheld { Duration::from_secs(1) } else { PATIENCE };
        let begun = Instant::now();
        loop {
            let view = self.look(POLL)?;
            let whole = view.lines.join("\n");
            let Err(missing) = check(&view.only(region, is_withheld)) else { return Ok(()) };
            if begun.elapsed() > patience {
                let screen = if is_withheld { String::new() } else { format!("\n{whole}") };
                return Err(NotShown(format!("{missing}{screen}")).into());
            }
        }
    }
}
