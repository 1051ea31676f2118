//! Draws frames on the terminal, each in place of the one before.
//!
//! It uses the alternate screen: the old content returns at the end, frames of any height replace each other cleanly,
//! and nothing accumulates in the scrollback. Only changed lines are written, and all of them as one update (mode 2026)
//! if the terminal supports that, so nothing flickers.
//!
//! [`restore`] undoes everything however the process ends by itself: it is called when a [`Screen`] is dropped, before
//! a panic is reported, and on interrupts.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use anstream::ColorChoice;
use rustix::termios::{self, LocalModes, OptionalActions, Termios};
use unicode_width::UnicodeWidthChar;

use super::Sieve;

/// The state of the terminal before a screen was opened; `None` while none is open. A thread holds the lock
/// while it draws.
static BEFORE: Mutex<Option<Before>> = Mutex::new(None);

/// The state of the terminal before the screen was drawn on it.
struct Before {
    /// The settings of stdin; `None` if it is not a terminal.
    input: Option<Termios>,
    /// The control sequences that undo what was switched on.
    leave: &'static [u8],
}

/// The control sequences that switch to the alternate screen and clear it, hide the cursor, and make the terminal cut
/// long lines.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
/// The control sequence that makes the terminal report clicks and the wheel, with positions in decimal numbers; and
/// [`LEAVE`] with the one that ends that.
#[cfg(feature = "tui")]
const ENTER_MOUSE: &[u8] = b"\x1b[?1000h\x1b[?1006h";
#[cfg(feature = "tui")]
const LEAVE_MOUSE: &[u8] = b"\x1b[?1006l\x1b[?1000l\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
/// The control sequences around changes that the terminal shows as one update.
pub(crate) const BEGIN_UPDATE: &str = "\x1b[?2026h";
pub(crate) const END_UPDATE: &str = "\x1b[?2026l";

/// The terminal on stdout while frames are drawn on it.
pub(crate) struct Screen {
    /// The lines that the screen shows now.
    shown: Vec<String>,
    size: (usize, usize),
    coloured: bool,
}

impl Screen {
    /// Switches the terminal to the alternate screen, and turns off its echo and line editing of input. Returns `None`,
    /// and does nothing, if [`is_capable`] returns false.
    pub(crate) fn open() -> io::Result<Option<Screen>> {
        if !is_capable() {
            return Ok(None);
        }
        restore_on_panic();
        enter(LEAVE)?;
        let coloured = anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        Ok(Some(Screen { shown: Vec::new(), size: (0, 0), coloured }))
    }

    /// Returns the present number of columns and rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        dimensions()
    }

    /// Draws these lines, which may have colours, from the top, and clears the rows below. Cuts lines that are too
    /// wide, and leaves out those for which there are no rows. Fails after a panic of any thread.
    pub(crate) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        check()?;
        let (columns, rows) = self.size();
        let mut out = String::new();
        if (columns, rows) != self.size {
            // The terminal may have reflowed its content.
            self.size = (columns, rows);
            self.shown.clear();
            out.push_str("\x1b[0m\x1b[2J");
        }
        let fresh: Vec<String> = lines.iter().take(rows).map(|line| self.line(line, columns)).collect();
        for row in 0..fresh.len().max(self.shown.len()).min(rows) {
            let line = fresh.get(row).map_or("", String::as_str);
            if self.shown.get(row).map_or("", String::as_str) != line {
                // Erase before writing: after a full line the cursor still stands on the last column.
                out.push_str(&format!("\x1b[{};1H\x1b[0m\x1b[K{line}", row + 1));
            }
        }
        self.shown = fresh;
        if out.is_empty() {
            return Ok(());
        }
        write(format!("{BEGIN_UPDATE}{out}{END_UPDATE}").as_bytes())
    }

    fn line(&self, line: &str, columns: usize) -> String {
        // A line may not contain line breaks.
        cut(&Sieve::clean(line, self.coloured).replace('\n', " "), columns)
    }

    /// Restores the terminal, stops the process as Ctrl-Z does, and opens the screen again once the process continues.
    #[cfg(feature = "demo")]
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        stop_process()?;
        self.size = (0, 0);
        enter(LEAVE)
    }
}

/// The terminal on stdout while another one than [`Screen`] draws on it, and reads keys and the mouse from it.
#[cfg(feature = "tui")]
pub(crate) struct Canvas;

#[cfg(feature = "tui")]
impl Canvas {
    /// Does as [`Screen::open`], and makes the terminal report the mouse.
    pub(crate) fn open() -> io::Result<Option<Canvas>> {
        if !is_capable() {
            return Ok(None);
        }
        restore_on_panic();
        Canvas::enter()?;
        Ok(Some(Canvas))
    }

    /// Restores the terminal, stops the process as Ctrl-Z does, and switches to the alternate screen again once the
    /// process continues.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        stop_process()?;
        Canvas::enter()
    }

    fn enter() -> io::Result<()> {
        enter(LEAVE_MOUSE)?;
        write(ENTER_MOUSE)
    }
}

#[cfg(feature = "tui")]
impl Drop for Canvas {
    fn drop(&mut self) {
        restore();
    }
}

/// True after a panic of any thread since a screen was first opened.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Fails after a panic of any thread, by which the terminal was restored: what goes on can draw no more.
pub(crate) fn check() -> io::Result<()> {
    match PANICKED.load(Ordering::Relaxed) {
        true => Err(io::Error::other("a part of the program failed")),
        false => Ok(()),
    }
}

/// Restores the terminal before a panic is reported.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let next = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICKED.store(true, Ordering::Relaxed);
            restore();
            next(panic);
        }));
    });
}

/// Restores the terminal, and stops the process as Ctrl-Z does; returns once the process continues.
#[cfg(any(feature = "demo", feature = "tui"))]
fn stop_process() -> io::Result<()> {
    restore();
    Ok(rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?)
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Returns true if stdout is a terminal of known size whose type (`$TERM`) is set and not `dumb`.
pub(crate) fn is_capable() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    !dumb && io::stdout().is_terminal() && measured().is_some()
}

/// Returns the present number of columns and rows of the terminal; 80 and 24 if they are not known.
pub(crate) fn dimensions() -> (usize, usize) {
    measured().unwrap_or((80, 24))
}

fn measured() -> Option<(usize, usize)> {
    let (columns, rows) = terminal_size::terminal_size_of(io::stdout())?;
    (columns.0 > 0 && rows.0 > 0).then(|| (usize::from(columns.0), usize::from(rows.0)))
}

fn enter(leave: &'static [u8]) -> io::Result<()> {
    let stdin = io::stdin();
    let input = termios::tcgetattr(&stdin).ok();
    if let Some(input) = &input {
        // Echoed input would appear inside the frame. Ctrl-C and Ctrl-Z still work.
        let mut silent = input.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
        termios::tcsetattr(&stdin, OptionalActions::Now, &silent)?;
    }
    *before() = Some(Before { input, leave });
    write(ENTER)
}

fn before() -> MutexGuard<'static, Option<Before>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes to the terminal while a screen is open; does nothing after [`restore`], so that no frame of a thread that goes
/// on appears on the screen of the shell.
pub(crate) fn write(bytes: &[u8]) -> io::Result<()> {
    let open = before();
    if open.is_none() {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// Restores the terminal to its state before the screen was opened; does nothing if none is open.
pub(crate) fn restore() {
    // Held until the end: another thread draws before, or not at all.
    let mut open = before();
    let Some(before) = open.take() else { return };
    // A panicking or interrupted thread may hold the lock of stdout; and a closed stdout cannot be reported.
    if let Ok(terminal) = rustix::io::dup(io::stdout()) {
        let _ = std::fs::File::from(terminal).write_all(before.leave);
    }
    if let Some(input) = before.input {
        // Input typed meanwhile was not meant for the shell.
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Flush, &input);
    }
}

/// Returns a line, which may have colours, cut to this many columns, with an ellipsis at the end if it was longer.
fn cut(line: &str, columns: usize) -> String {
    // The position of the ellipsis, once the line is known to be full.
    let mut kept = None;
    let mut width = 0;
    let mut characters = line.char_indices();
    while let Some((at, character)) = characters.next() {
        if character == '\x1b' {
            // Colour sequences end with a letter and take no columns.
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
    fn frames_pass_only_colours() {
        let line = "\x1b[1mweb\x1b[0m \x1b[2J\x1b]0;t\x07\u{202e}a\nb";
        let screen = |coloured| Screen { shown: Vec::new(), size: (0, 0), coloured };
        assert_eq!(
            screen(true).line(line, 80),
            "\x1b[1mweb\x1b[0m \u{fffd}[2J\u{fffd}]0;t\u{fffd}\u{fffd}a b"
        );
        assert_eq!(screen(false).line(line, 80), "web \u{fffd}[2J\u{fffd}]0;t\u{fffd}\u{fffd}a b");
    }

    #[test]
    fn lines_are_cut_by_display_width() {
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
