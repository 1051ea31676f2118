//! The terminal on which the UI is drawn: only cells that changed are written, and what was before returns at the end.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use anstream::ColorChoice;
use jiff::Timestamp;
use ratatui_core::backend::Backend;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::event::{self, Event as Input};
use ratatui_crossterm::crossterm::style::force_color_output;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::AbortHandle;

use super::feed::{self, Hub};
use super::model::Model;
use super::paint::Colours;
use super::question::{Effect, Event};
use crate::command_error::CommandError;
use crate::output::screen::{self, BEGIN_UPDATE, Canvas, END_UPDATE, dimensions};
use crate::runtime;

/// The time between two looks at the clock, for ages.
const TICK: Duration = Duration::from_secs(1);
/// Events that come within this time after one are drawn with it.
const SWARM: Duration = Duration::from_millis(8);

/// Returns the colours of the terminal: those that `--color` or the environment allow, as many as `$TERM` names.
fn colours() -> Colours {
    if anstream::AutoStream::choice(&io::stdout()) == ColorChoice::Never {
        return Colours::None;
    }
    let has = |name: &str, parts: &[&str]| {
        std::env::var(name).is_ok_and(|value| parts.iter().any(|part| value.contains(part)))
    };
    match has("TERM", &["256color", "direct"]) || has("COLORTERM", &["truecolor", "24bit"]) {
        true => Colours::Many,
        false => Colours::Sixteen,
    }
}

/// Returns the error that there is no terminal to draw on.
pub(super) fn none() -> CommandError {
    let error = CommandError::usage("'taffrail tui' needs a terminal");
    error.hint("'taffrail overview' prints what needs attention, and 'taffrail get apps' all apps")
}

fn cannot_draw(error: &io::Error) -> CommandError {
    CommandError::unreadable("cannot draw on the terminal").with_source(error)
}

/// Draws the UI of `hub` until the user quits, or a part of the program fails. `origin` are the flags that commands need
/// to read the same.
pub(super) fn run(
    hub: &Arc<Hub>,
    origin: Vec<String>,
    events: &Sender<Event>,
    incoming: &Receiver<Event>,
) -> Result<(), CommandError> {
    let canvas = Canvas::open().map_err(|error| cannot_draw(&error))?;
    let mut canvas = canvas.ok_or_else(none)?;
    listen(events);
    feed::follow(hub, events);
    // crossterm would leave the numbers of colours out where NO_COLOR is set, also for --color always.
    force_color_output(true);
    let mut model = Model::new(size(), colours(), origin, Timestamp::now());
    let mut paper = Paper::new();
    let mut log = FollowedLog(None);
    let mut ticked = Instant::now();
    act(model.update(Event::Tick(Timestamp::now())), hub, events, &mut paper, &mut log)?;
    loop {
        paper.draw(&model).map_err(|error| cannot_draw(&error))?;
        let mut wait = TICK.saturating_sub(ticked.elapsed());
        let begun = Instant::now();
        loop {
            let event = match incoming.recv_timeout(wait) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) if ticked.elapsed() >= TICK => {
                    ticked = Instant::now();
                    Event::Tick(Timestamp::now())
                }
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            match &event {
                Event::Stop => {
                    canvas.stop().map_err(|error| cannot_draw(&error))?;
                    paper.forget();
                    model.update(Event::Input(resized()));
                }
                Event::Broken(why) => return Err(CommandError::unreadable(why)),
                _ => {}
            }
            if act(model.update(event), hub, events, &mut paper, &mut log)? {
                return Ok(());
            }
            wait = SWARM.saturating_sub(begun.elapsed());
            if wait.is_zero() {
                break;
            }
        }
    }
}

/// Does what the model wants done; returns true if that is to end.
fn act(
    effects: Vec<Effect>,
    hub: &Arc<Hub>,
    events: &Sender<Event>,
    paper: &mut Paper,
    log: &mut FollowedLog,
) -> Result<bool, CommandError> {
    for effect in effects {
        match effect {
            Effect::Ask(request) => feed::ask(hub, request, events),
            Effect::Plan(number, question) => feed::plan(hub, number, *question, events),
            Effect::Run(number, question, plan) => feed::run(hub, number, *question, &plan, events),
            Effect::Follow(number, name) => {
                log.end();
                log.0 = name.and_then(|name| feed::follow_log(hub, number, name, events));
            }
            Effect::Copy(text) => paper.copy(&text).map_err(|error| cannot_draw(&error))?,
            Effect::Quit => return Ok(true),
        }
    }
    Ok(false)
}

/// The task that follows a log, which ends with it.
struct FollowedLog(Option<AbortHandle>);

impl FollowedLog {
    fn end(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
        }
    }
}

impl Drop for FollowedLog {
    fn drop(&mut self) {
        self.end();
    }
}

fn size() -> (u16, u16) {
    let (columns, rows) = dimensions();
    (u16::try_from(columns).unwrap_or(u16::MAX), u16::try_from(rows).unwrap_or(u16::MAX))
}

fn resized() -> Input {
    let (columns, rows) = size();
    Input::Resize(columns, rows)
}

/// Starts to read keys and the mouse, and to listen to Ctrl-Z.
fn listen(events: &Sender<Event>) {
    let inputs = events.clone();
    std::thread::spawn(move || {
        loop {
            match event::read() {
                Ok(input) => {
                    if inputs.send(Event::Input(input)).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let _ = inputs.send(Event::Broken(format!("cannot read from the terminal: {error}")));
                    return;
                }
            }
        }
    });
    let stops = events.clone();
    runtime::spawn(async move {
        let stop = SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw());
        let Ok(mut stop) = signal(stop) else { return };
        while stop.recv().await.is_some() {
            if stops.send(Event::Stop).is_err() {
                return;
            }
        }
    });
}

/// The cells that the terminal shows, and the next ones, so that only those that differ are written.
struct Paper {
    shown: Buffer,
    next: Buffer,
}

impl Paper {
    fn new() -> Paper {
        Paper { shown: Buffer::empty(Rect::ZERO), next: Buffer::empty(Rect::ZERO) }
    }

    /// Takes the terminal to be in an unknown state.
    fn forget(&mut self) {
        self.shown = Buffer::empty(Rect::ZERO);
    }

    /// Writes what differs from what the terminal shows, as one update; nothing if nothing does. Fails after a panic.
    fn draw(&mut self, model: &Model) -> io::Result<()> {
        screen::check()?;
        let area = Rect::new(0, 0, model.size.0, model.size.1);
        let is_new = self.shown.area() != &area;
        if is_new {
            self.shown = Buffer::empty(area);
        }
        self.next.resize(area);
        model.draw(&mut self.next);
        let changes = self.shown.diff(&self.next);
        if changes.is_empty() && !is_new {
            return Ok(());
        }
        let mut out = Vec::new();
        out.extend_from_slice(BEGIN_UPDATE.as_bytes());
        if is_new {
            out.extend_from_slice(b"\x1b[0m\x1b[2J");
        }
        CrosstermBackend::new(&mut out).draw(changes.into_iter())?;
        out.extend_from_slice(END_UPDATE.as_bytes());
        if model.colours == Colours::Sixteen {
            out = with_basic_colours(&out);
        }
        std::mem::swap(&mut self.shown, &mut self.next);
        screen::write(&out)
    }

    /// Puts a text into the clipboard of the terminal (OSC 52), which may be on another machine.
    #[expect(clippy::unused_self, reason = "only who holds the terminal may write to it")]
    fn copy(&mut self, text: &str) -> io::Result<()> {
        use base64::Engine;
        let text = base64::engine::general_purpose::STANDARD.encode(text);
        screen::write(format!("\x1b]52;c;{text}\x07").as_bytes())
    }
}

/// Returns `output` with the control sequences for the first sixteen colours that every terminal with colours knows:
/// `31` in place of `38;5;1`, of which a terminal without 256 colours may make another style.
fn with_basic_colours(output: &[u8]) -> Vec<u8> {
    let mut basic = Vec::with_capacity(output.len());
    let mut rest = output;
    while let Some(at) = memchr::memmem::find(rest, b"\x1b[") {
        let (before, sequence) = rest.split_at(at + 2);
        basic.extend_from_slice(before);
        let length = sequence.iter().take_while(|byte| matches!(byte, b'0'..=b';')).count();
        let (numbers, after) = sequence.split_at(length);
        match after.first() {
            Some(b'm') => basic.extend_from_slice(basic_style(numbers).as_bytes()),
            _ => basic.extend_from_slice(numbers),
        }
        rest = after;
    }
    basic.extend_from_slice(rest);
    basic
}

/// Returns the numbers of a control sequence for a style with those of the first sixteen colours.
fn basic_style(numbers: &[u8]) -> String {
    let numbers = String::from_utf8_lossy(numbers);
    let mut words = numbers.split(';');
    let mut basic: Vec<String> = Vec::new();
    while let Some(word) = words.next() {
        let base = match word {
            "38" => 30_u16,
            "48" => 40,
            other => {
                basic.push(other.to_owned());
                continue;
            }
        };
        let colour = words.nth(1).and_then(|number| number.parse::<u16>().ok()).unwrap_or_default();
        basic.push((base + if colour < 8 { colour } else { 60 - 8 + colour }).to_string());
    }
    basic.join(";")
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::mpsc::channel;

    use rustix::process::Signal;
    use taffrail_testkit::fake_hub::ManyApps;
    use taffrail_testkit::terminal::Terminal;

    use super::*;
    use crate::cli::HubFiles;
    use crate::hub_url::HubUrl;

    /// Names the part that fails to the process that [`a_panic_restores_the_terminal`] starts.
    const VICTIM: &str = "TAFFRAIL_TEST_PANIC";

    /// Draws on the terminal until a part of the program panics.
    #[test]
    fn victim() {
        let Ok(part) = std::env::var(VICTIM) else { return };
        if part == "drawing" {
            let _canvas = Canvas::open().unwrap();
            panic!("a part failed: drawing");
        }
        let many = ManyApps::start(3).unwrap();
        let hub = Hub { url: *HubUrl::parse(&many.url).unwrap(), files: HubFiles::default() };
        let (told, tells) = channel();
        runtime::spawn(async move {
            let mut asked = signal(SignalKind::user_defined1()).unwrap();
            asked.recv().await.unwrap();
            if part == "task" {
                panic!("a part failed: task");
            }
            told.send(()).unwrap();
        });
        std::thread::spawn(move || tells.recv().map(|()| panic!("a part failed: thread")));
        let (events, incoming) = channel();
        let end = run(&Arc::new(hub), Vec::new(), &events, &incoming);
        assert!(end.unwrap_err().to_string().contains("cannot draw"));
    }

    #[test]
    fn a_panic_restores_the_terminal() {
        for part in ["drawing", "task", "thread"] {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--exact", "commands::tui::terminal::tests::victim", "--nocapture"])
                .env(VICTIM, part);
            let mut terminal = Terminal::start(command, 80, 24).unwrap();
            let before = terminal.settings().unwrap();
            if part != "drawing" {
                terminal.wait_for("live");
                assert_ne!(terminal.settings().unwrap(), before, "{part}");
                terminal.send(Signal::USR1);
            }
            terminal.child.wait().unwrap();
            assert_eq!(terminal.settings().unwrap(), before, "{part}");
            let (text, _) = terminal.end();
            let (drawn, after) = text.split_once("\u{1b}[?1049l").unwrap();
            assert!(drawn.contains("\u{1b}[?1049h") && drawn.contains("\u{1b}[?1000l"), "{part}: {text:?}");
            // What failed is read where it was typed, and nothing is drawn over it.
            assert!(after.contains(&format!("a part failed: {part}")), "{part}: {text:?}");
            assert!(!after.contains("\u{1b}[?"), "{part}: {text:?}");
        }
    }

    #[test]
    fn sixteen_colours_are_set_by_their_own_numbers() {
        let basic = |text: &str| String::from_utf8(with_basic_colours(text.as_bytes())).unwrap();
        assert_eq!(
            basic("\x1b[3;1H\x1b[1m\x1b[38;5;1;49m✕ 38;5;1\x1b[39m"),
            "\x1b[3;1H\x1b[1m\x1b[31;49m✕ 38;5;1\x1b[39m"
        );
        assert_eq!(basic("\x1b[38;5;8;48;5;12mx\x1b[m\x1b["), "\x1b[90;104mx\x1b[m\x1b[");
        assert_eq!(basic("\x1b[?2026h\x1b[0m"), "\x1b[?2026h\x1b[0m");
    }
}
