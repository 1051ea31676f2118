//! Asks the hub, and follows its stream.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use clap::FromArgMatches;
use taffrail_api::AppRow;
use taffrail_api::hub::{AppChange, HubList, StreamFrame};
use taffrail_api::operations::{OperationEvent, OperationQuestion, PlanAnswer, Reply, RunRequest};
use taffrail_observe::operations::random_id;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::actions;
use super::question::{
    Answer, AppPlace, Event, LogPiece, ObjectPart, ObjectPlace, Part, PartAnswer, Question, Request, RunEnd,
    encoded,
};
use crate::cli::{HubFiles, HubSource, ViewArguments};
use crate::command_error::{CommandError, Exit};
use crate::commands::{self, Cli, Command, named, watch};
use crate::hub_url::HubUrl;
use crate::output::answer::Console;
use crate::runtime;
use crate::source::{self, HubBudget, NoEvents, read_stream};

/// The pages of the stream: what a terminal shows of the whole fleet, and the number of its state.
const STREAM: &str =
    "/api/v1/stream?subscribe=news:changes&subscribe=clusters:clusters&subscribe=fleet:counts";
/// Time limit of an answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// The time in which apps become ready after an operation, as that of the commands.
const RUN: Duration = Duration::from_secs(300);
/// The time that a hub has for the writes of an action, as that of the command.
const ACTION_RUN: Duration = Duration::from_secs(30);
/// Maximum length of an answer, in bytes.
const MAX_ANSWER: usize = 16 << 20;
/// The pause before a stream that has ended is opened again.
const RETRY: Duration = Duration::from_secs(1);
/// Maximum length of an event, in bytes.
const MAX_EVENT: usize = 1 << 20;
/// The number of lines of each container's log that are shown, or shown first if it is followed.
const LOG_LINES: &str = "200";
/// Maximum number of pieces of a followed log that wait for the model; the hub is not read further meanwhile.
const LOG_PIECES: usize = 4;

/// The hub that is asked.
#[derive(Debug)]
pub(super) struct Hub {
    pub(super) url: HubUrl,
    pub(super) files: HubFiles,
}

/// Sends a request in a thread of its own; its answer is an event.
pub(super) fn ask(hub: &Arc<Hub>, request: Request, events: &Sender<Event>) {
    let (hub, events) = (Arc::clone(hub), events.clone());
    std::thread::spawn(move || {
        let answer = hub.answer(&request.question).map_err(|error| told(&error));
        // After the end nobody waits for it.
        let _ = events.send(Event::Answer(Box::new((request, answer))));
    });
}

/// Has the hub plan an operation, in a thread of its own.
pub(super) fn plan(hub: &Arc<Hub>, number: u64, question: OperationQuestion, events: &Sender<Event>) {
    let (hub, events) = (Arc::clone(hub), events.clone());
    std::thread::spawn(move || {
        let answer = match source::ask_hub_at(&hub.url, &hub.files, source::PLANS, &question, PATIENCE) {
            Ok(Ok(answer)) => Ok(Box::new(answer)),
            Ok(Err(error)) => Err(told(&named::refused_by_hub(command_of(&question), &error))),
            Err(error) => Err(told(&error)),
        };
        // After the end nobody waits for it.
        let _ = events.send(Event::Planned(number, answer));
    });
}

/// Has the hub run a plan, and passes its events on.
pub(super) fn run(
    hub: &Arc<Hub>,
    number: u64,
    question: OperationQuestion,
    plan: &PlanAnswer,
    events: &Sender<Event>,
) {
    let (hub, events) = (Arc::clone(hub), events.clone());
    let (waits, time) = match &question {
        OperationQuestion::Verb(_) => (true, RUN),
        OperationQuestion::Action(_) => (false, ACTION_RUN),
    };
    let request = RunRequest { waits, ..RunRequest::new(random_id(), question, plan, time) };
    runtime::spawn(async move {
        let take = |event: OperationEvent| match events.send(Event::Ran(number, Box::new(event))) {
            Ok(()) => Reply::Continue,
            Err(_) => Reply::Stop,
        };
        let end = match source::hub_operation(&hub.url, &hub.files, &request, take).await {
            Ok(()) => RunEnd::Done,
            Err(NoEvents::Refused(error)) => RunEnd::Refused(told(&error)),
            Err(NoEvents::Broken(error)) => RunEnd::Lost(told(&error)),
        };
        let _ = events.send(Event::RunEnded(number, end));
    });
}

/// Returns the command that asks the same, for hints.
fn command_of(question: &OperationQuestion) -> &'static str {
    match question {
        OperationQuestion::Verb(question) => question.verb.as_str(),
        OperationQuestion::Action(_) => "actions",
    }
}

/// Follows the log of the app or object called `name`. Its lines and its end are events; a task that is aborted sends
/// none.
pub(super) fn follow_log(
    hub: &Arc<Hub>,
    number: u64,
    name: String,
    events: &Sender<Event>,
) -> Option<AbortHandle> {
    let (hub, events) = (Arc::clone(hub), events.clone());
    runtime::spawn(async move {
        let end = hub.follow_log(number, &name, &events).await.map_err(|error| told(&error));
        let _ = events.send(Event::LogEnded(number, end));
    })
}

fn told(error: &CommandError) -> String {
    match &error.hint {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

/// Follows the stream of the hub until the program ends, and opens it again whenever it breaks.
pub(super) fn follow(hub: &Arc<Hub>, events: &Sender<Event>) {
    let (hub, events) = (Arc::clone(hub), events.clone());
    runtime::spawn(async move {
        loop {
            let mut stream = EventStream::default();
            let read = read_stream(&hub.url, &hub.files, STREAM, |bytes| {
                for frame in stream.take(bytes) {
                    let _ = events.send(Event::Frame(Box::new(frame)));
                }
            });
            let why = match read.await {
                Ok(()) => "the hub ended the stream of changes".to_owned(),
                Err(error) => error.to_string(),
            };
            if events.send(Event::Away(why)).is_err() {
                return;
            }
            sleep(RETRY).await;
        }
    });
}

/// A parser of the frames of an event stream.
#[derive(Debug, Default)]
struct EventStream {
    /// The line that has not ended yet.
    line: Vec<u8>,
}

impl EventStream {
    /// Parses the next bytes, and returns the frames that end in them. Skips what is not a frame.
    fn take(&mut self, bytes: &[u8]) -> Vec<StreamFrame> {
        let mut frames = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + part.len() <= MAX_EVENT {
                self.line.extend_from_slice(part);
            }
            if part.last() == Some(&b'\n') {
                let line = std::mem::take(&mut self.line);
                let data = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii);
                frames.extend(data.and_then(|data| serde_json::from_slice::<StreamFrame>(data).ok()));
            }
        }
        frames
    }
}

impl Hub {
    fn answer(&self, question: &Question) -> Result<Answer, CommandError> {
        Ok(match question {
            Question::Attention => {
                let attention = self.get("/api/v1/attention?limit=100")?;
                let lost = self.get::<HubList<_>>("/api/v1/clusters?status=Unknown&limit=100")?;
                let changes = self.get::<HubList<AppChange>>("/api/v1/changes?limit=30")?;
                Answer::Attention { attention, lost: lost.list.items, changes: changes.list.items }
            }
            Question::Apps(query, cursor) => {
                let cursor = cursor.as_ref().map(|cursor| format!("&cursor={}", encoded(cursor)));
                Answer::Apps(self.get(&format!("/api/v1/apps?{query}{}", cursor.unwrap_or_default()))?)
            }
            Question::Clusters(query) => Answer::Clusters(self.get(&format!("/api/v1/clusters?{query}"))?),
            Question::Matrix(query) => Answer::Matrix(self.get(&format!("/api/v1/matrix?{query}"))?),
            Question::App(app, part, is_unwell) => {
                let row = match self.get::<HubList<AppRow>>(&app.path()) {
                    Ok(list) => list.list.items.into_iter().next().map(Box::new),
                    // The hub knows no such app any more; its history is kept.
                    Err(error) if error.exit == Exit::Usage => None,
                    Err(error) => return Err(error),
                };
                Answer::App(row, self.part(app, *part, *is_unwell)?)
            }
            Question::Object(_, ObjectPart::Logs) => Answer::Followed,
            Question::Object(object, part) => {
                let name = object.full_name();
                let lines: &[&str] = if *part == ObjectPart::Yaml { &[] } else { &["--tail", LOG_LINES] };
                let console = Console::memory();
                let printed = self.run(&[part.command(), lines, &["--", &name]].concat(), &console);
                let (text, messages) = console.kept();
                printed?;
                match part {
                    ObjectPart::Yaml => Answer::Object(text, messages),
                    _ => Answer::ObjectLogs(with_messages(text, &messages)),
                }
            }
            Question::Actions(object) => {
                let asked = actions::question(object, "", BTreeMap::new());
                let (url, files) = (&self.url, &self.files);
                let answer = source::ask_hub_at(url, files, source::ACTIONS, &asked, PATIENCE)?;
                Answer::Actions(answer.map_err(|error| named::refused_by_hub("actions", &error))?)
            }
        })
    }

    fn get<A: serde::de::DeserializeOwned>(&self, path: &str) -> Result<A, CommandError> {
        source::get(&self.url, &self.files, path, &mut HubBudget::new(PATIENCE, MAX_ANSWER))
    }

    fn part(&self, app: &AppPlace, part: Part, is_unwell: bool) -> Result<PartAnswer, CommandError> {
        if part == Part::Clusters {
            let path = format!("/api/v1/apps?sort=status&limit=500&text={}", encoded(&app.key));
            let mut rows = self.get::<HubList<AppRow>>(&path)?.list.items;
            rows.retain(|row| row.key == app.key);
            return Ok(PartAnswer::Rows(rows));
        }
        if part == Part::Logs {
            return Ok(PartAnswer::Followed);
        }
        let name = app.full_name();
        let mut words = part.command().to_vec();
        match part {
            Part::Objects if is_unwell => words.extend(["--status", "!Ready"]),
            Part::Objects => words.push("--all"),
            Part::PreviousLogs => words.extend(["--tail", LOG_LINES]),
            _ => {}
        }
        words.extend(["--", &name]);
        let console = Console::memory();
        let printed = self.run(&words, &console);
        let (text, messages) = console.kept();
        printed?;
        let text = with_messages(text, &messages);
        let objects = console.noted_objects();
        if objects.is_empty() {
            return Ok(PartAnswer::Text(text));
        }
        let place = |(cluster, key)| ObjectPlace { cluster, key };
        Ok(PartAnswer::Objects(text, objects.into_iter().map(|object| object.map(place)).collect()))
    }

    /// Follows the log of the app or object called `name`, and sends its lines as they come.
    async fn follow_log(&self, number: u64, name: &str, events: &Sender<Event>) -> Result<(), CommandError> {
        let words = [Part::Logs.command(), &["--tail", LOG_LINES, "--", name]].concat();
        let Command::Logs(mut of) = parsed(&words)? else { return Err(unknown("logs")) };
        of.source.timeout = PATIENCE;
        let console = Console::memory();
        let places = Arc::new(Semaphore::new(LOG_PIECES));
        let printed = || async {
            let (mut text, messages) = console.kept();
            messages.iter().for_each(|message| text.push_str(message));
            if !text.is_empty() {
                let place = Arc::clone(&places).acquire_owned().await.ok();
                let _ = events.send(Event::Logged(number, LogPiece { text, _place: place }));
            }
        };
        let end = commands::logs::by_hub(&of, &self.url, &console, printed).await;
        // The messages after the last line.
        printed().await;
        end.map(drop)
    }

    /// Makes a view ask this hub.
    fn set(&self, source: &mut HubSource, view: &mut ViewArguments) {
        (source.hub, source.files) = (Some(Box::new(self.url.clone())), self.files.clone());
        view.source.timeout = PATIENCE;
    }

    /// Runs a command of Taffrail over this hub, and prints its answer into `console`.
    fn run(&self, words: &[&str], console: &Console) -> Result<Exit, CommandError> {
        let url = || Some(Box::new(self.url.clone()));
        match parsed(words)? {
            Command::Explain(mut of) => {
                self.set(&mut of.hub, &mut of.view);
                watch::view(&of.view, of.form(), console, |from, printed, console| {
                    commands::explain::run(&of, printed, from, console)
                })
            }
            Command::Tree(mut of) => {
                self.set(&mut of.hub, &mut of.view);
                watch::view(&of.view, of.form(), console, |from, printed, console| {
                    commands::tree::run(&of, printed, from, console)
                })
            }
            Command::Object(mut of) => {
                self.set(&mut of.hub, &mut of.view);
                watch::view(&of.view, of.form(), console, |from, printed, console| {
                    commands::object::run(&of, printed, from, console)
                })
            }
            Command::Events(mut of) => {
                self.set(&mut of.hub, &mut of.view);
                watch::view(&of.view, of.form(), console, |from, printed, console| {
                    commands::events::run(&of, printed, from, console)
                })
            }
            Command::Trust(mut of) => {
                self.set(&mut of.hub, &mut of.view);
                watch::view(&of.view, of.form(), console, |from, printed, console| {
                    commands::trust::run(&of, printed, from, console)
                })
            }
            Command::History(mut of) => {
                (of.hub, of.files, of.timeout) = (url(), self.files.clone(), PATIENCE);
                commands::history::run(&of, console)
            }
            Command::Logs(mut of) => {
                (of.hub.hub, of.hub.files, of.source.timeout) = (url(), self.files.clone(), PATIENCE);
                commands::logs::run(&of, console)
            }
            _ => Err(unknown(words.first().copied().unwrap_or_default())),
        }
    }
}

/// Returns the output of a command, and below it its messages.
fn with_messages(mut text: String, messages: &[String]) -> String {
    for message in messages {
        text.push('\n');
        text.push_str(message);
    }
    text
}

/// Parses a command of Taffrail.
fn parsed(words: &[&str]) -> Result<Command, CommandError> {
    let name = words.first().copied().unwrap_or_default();
    let wrong = |error: clap::Error| CommandError::usage(format_args!("taffrail {name}: {error}"));
    let root = Cli::command_for(name).ok_or_else(|| unknown(name))?;
    let line = std::iter::once("taffrail").chain(words.iter().copied());
    let matches = root.try_get_matches_from(line).map_err(wrong)?;
    Ok(Cli::from_arg_matches(&matches).map_err(wrong)?.command)
}

fn unknown(command: &str) -> CommandError {
    CommandError::usage(format_args!("there is no command {command}"))
}

#[cfg(test)]
mod tests {
    use super::EventStream;

    #[test]
    fn frames_are_found_however_the_stream_is_cut() {
        let stream = b"event: reset\ndata: {\"asOf\":\"2026-03-01T12:00:00Z\",\"pages\":[{\"name\":\"news\",\"version\":3}]}\n\nevent: alive\ndata: {}\n\n";
        for size in 1..stream.len() {
            let mut events = EventStream::default();
            let frames: Vec<_> = stream.chunks(size).flat_map(|part| events.take(part)).collect();
            assert_eq!(frames.len(), 1, "{size}");
            assert_eq!(frames[0].pages[0].version, Some(3));
        }
        // A line without end takes no more memory than an event may.
        let mut events = EventStream::default();
        for _ in 0..64 {
            assert!(events.take(&[b'x'; 1 << 16]).is_empty());
        }
        assert!(events.line.len() <= super::MAX_EVENT);
    }
}
