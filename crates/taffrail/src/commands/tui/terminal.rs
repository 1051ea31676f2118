//! The terminal on which the UI is drawn: only cells that changed are written, and what was before returns at the end.

use std::io::{self, Write};
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
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::AbortHandle;

use super::feed::{self, Hub};
use super::model::Model;
use super::paint::Colours;
use super::question::{Effect, Event};
use crate::command_error::CommandError;
use crate::output::screen::{BEGIN_UPDATE, Canvas, END_UPDATE, dimensions};
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
            Effect::Follow(number, app) => {
                log.end();
                log.0 = app.and_then(|app| feed::follow_log(hub, number, &app, events));
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

    /// Writes what differs from what the terminal shows, as one update; nothing if nothing does.
    fn draw(&mut self, model: &Model) -> io::Result<()> {
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
        std::mem::swap(&mut self.shown, &mut self.next);
        write(&out)
    }

    /// Puts a text into the clipboard of the terminal (OSC 52), which may be on another machine.
    #[expect(clippy::unused_self, reason = "only who holds the terminal may write to it")]
    fn copy(&mut self, text: &str) -> io::Result<()> {
        use base64::Engine;
        let text = base64::engine::general_purpose::STANDARD.encode(text);
        write(format!("\x1b]52;c;{text}\x07").as_bytes())
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}
