//! A frame on the terminal that is drawn again and again in its place.
//!
//! It uses the alternate screen: what stood on the terminal is there again when it ends, frames of any height replace each
//! other cleanly, and nothing piles up in what can be scrolled back. Only lines that changed are written, and all of
//! them as one update (mode 2026) where the terminal knows that, so nothing flickers.
//!
//! However the process ends, as long as it ends by itself, [`restore`] takes everything back: it is called when a
//! [`Screen`] is dropped, before a panic is told, and on interrupts.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, Once, PoisonError};

use anstream::ColorChoice;
use rustix::termios::{self, LocalModes, OptionalActions, Termios};
use unicode_width::UnicodeWidthChar;

use super::Sieve;

/// What the terminal was like; there while a screen is open.
static BEFORE: Mutex<Option<Before>> = Mutex::new(None);

struct Before {
    /// How stdin took what was typed; nothing where it is no terminal.
    input: Option<Termios>,
}

/// Alternate screen, no cursor, lines that are too long are cut.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
const BEGIN_UPDATE: &str = "\x1b[?2026h";
const END_UPDATE: &str = "\x1b[?2026l";

/// The screen of the terminal that stdout is.
pub(crate) struct Screen {
    /// What stands there.
    shown: Vec<String>,
    size: (usize, usize),
    coloured: bool,
}

impl Screen {
    /// Takes the screen; `None` where stdout is no terminal, or one that cannot do this.
    pub(crate) fn open() -> io::Result<Option<Screen>> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if dumb || !io::stdout().is_terminal() || measured().is_none() {
            return Ok(None);
        }
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let next = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                next(panic);
            }));
        });
        enter()?;
        let coloured = anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        Ok(Some(Screen { shown: Vec::new(), size: (0, 0), coloured }))
    }

    /// How many columns and rows there are now.
    pub(crate) fn size(&self) -> (usize, usize) {
        measured().unwrap_or((80, 24))
    }

    /// Shows these lines, which may have colours, from the top; the rest is blank. What does not fit is cut.
    pub(crate) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let (columns, rows) = self.size();
        let mut out = String::new();
        if (columns, rows) != self.size {
            // The terminal may have moved anything.
            self.size = (columns, rows);
            self.shown.clear();
            out.push_str("\x1b[0m\x1b[2J");
        }
        let fresh: Vec<String> = lines.iter().take(rows).map(|line| self.line(line, columns)).collect();
        for row in 0..fresh.len().max(self.shown.len()).min(rows) {
            let line = fresh.get(row).map_or("", String::as_str);
            if self.shown.get(row).map_or("", String::as_str) != line {
                // First erased, then written: behind a full line the cursor still stands on its last column.
                out.push_str(&format!("\x1b[{};1H\x1b[0m\x1b[K{line}", row + 1));
            }
        }
        self.shown = fresh;
        if out.is_empty() {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(format!("{BEGIN_UPDATE}{out}{END_UPDATE}").as_bytes())?;
        stdout.flush()
    }

    fn line(&self, line: &str, columns: usize) -> String {
        // A line here is one line there.
        cut(&Sieve::clean(line, self.coloured).replace('\n', " "), columns)
    }

    /// Gives the screen back for as long as the process is stopped, as by Ctrl-Z, and takes it again afterwards.
    #[cfg(feature = "demo")]
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        restore();
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
        self.size = (0, 0);
        enter()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn measured() -> Option<(usize, usize)> {
    let (columns, rows) = terminal_size::terminal_size_of(io::stdout())?;
    (columns.0 > 0 && rows.0 > 0).then(|| (usize::from(columns.0), usize::from(rows.0)))
}

fn enter() -> io::Result<()> {
    let stdin = io::stdin();
    let input = termios::tcgetattr(&stdin).ok();
    if let Some(input) = &input {
        // What is typed would stand in the middle of the frame. Ctrl-C and Ctrl-Z work as ever.
        let mut silent = input.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
        termios::tcsetattr(&stdin, OptionalActions::Now, &silent)?;
    }
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Before { input });
    let mut stdout = io::stdout().lock();
    stdout.write_all(ENTER)?;
    stdout.flush()
}

/// Gives the terminal back as it was found, if a screen is open.
pub(crate) fn restore() {
    let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    // Whoever panics or is interrupted may hold the lock of stdout; and nobody is left to be told that it is closed.
    if let Ok(terminal) = rustix::io::dup(io::stdout()) {
        let _ = std::fs::File::from(terminal).write_all(LEAVE);
    }
    if let Some(input) = before.input {
        // What was typed meanwhile was not meant for the shell.
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Flush, &input);
    }
}

/// Cuts a line that may have colours to so many columns; what is cut ends with an ellipsis.
fn cut(line: &str, columns: usize) -> String {
    // The place of what may stand left of the ellipsis, once the line is known to be full.
    let mut kept = None;
    let mut width = 0;
    let mut characters = line.char_indices();
    while let Some((at, character)) = characters.next() {
        if character == '\x1b' {
            // Colours end with a letter and take no room.
            for (_, character) in characters.by_ref() {
                if character.is_ascii_alphabetic() {
                    break;
                }
            }
            continue;
        }
        let own = character.width().unwrap_or(0);
        if width + own >= columns && own > 0 {
            kept.get_or_insert(at);
        }
        if width + own > columns {
            return format!("{}…", &line[..kept.unwrap_or(at)]);
        }
        width += own;
    }
    line.to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Screen, cut};

    #[test]
    fn a_frame_lets_nothing_but_colours_through() {
        let line = "\x1b[1mweb\x1b[0m \x1b[2J\x1b]0;t\x07\u{202e}a\nb";
        let screen = |coloured| Screen { shown: Vec::new(), size: (0, 0), coloured };
        assert_eq!(
            screen(true).line(line, 80),
            "\x1b[1mweb\x1b[0m \u{fffd}[2J\u{fffd}]0;t\u{fffd}\u{fffd}a b"
        );
        assert_eq!(screen(false).line(line, 80), "web \u{fffd}[2J\u{fffd}]0;t\u{fffd}\u{fffd}a b");
    }

    #[test]
    fn lines_are_cut_by_what_is_seen_of_them() {
        assert_eq!(cut("1234567890", 10), "1234567890");
        assert_eq!(cut("12345678901", 10), "123456789…");
        assert_eq!(cut("\x1b[31m12345\x1b[0m67890", 10), "\x1b[31m12345\x1b[0m67890");
        assert_eq!(cut("\x1b[31m12345\x1b[0m678901", 10), "\x1b[31m12345\x1b[0m6789…");
        assert_eq!(cut("größer als", 7), "größer…");
        // Wide characters are not halved.
        assert_eq!(cut("ab漢字漢", 5), "ab漢…");
        assert_eq!(cut("", 0), "");
    }
}
