//! Prints the events of an answer to `logs`, whether the command read the logs itself or a hub did.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

use futures::{Stream, StreamExt};
use taffrail_api::logs::{LogEvent, LogLine, LogSubject};
use taffrail_apps::AppError;
use taffrail_cluster::{LogRequest, Phase, ReadError, Reason, TimeLimit, chain};
use taffrail_observe::logs::MAX_FOLLOWED;

use super::super::get::complaints;
use super::LogsArguments;
use crate::command_error::{CommandError, Exit, advise, written};
use crate::output::answer::{Answer, Console};
use crate::output::{Printable, Sieve, printable, style};
use crate::{phrase, reasons, say};

/// Maximum number of failed logs that are printed one by one; the others are counted.
const MAX_TOLD: usize = 5;
/// Maximum number of errors, and of logs, of an answer; a hub that sends more is not believed.
const MAX_FOUND: usize = 20_000;

/// The log of one container, and how it is printed.
struct ShownLog {
    subject: LogSubject,
    /// The name before each line; empty for a single log without `--prefix`.
    prefix: String,
    /// The name of the log: `POD/CONTAINER`, after cluster and namespace where these differ.
    name: String,
}

impl ShownLog {
    /// Prints a line of the log, after its prefix in the colour of the container's status, if it has one.
    fn print(&self, line: &LogLine, out: &mut impl Write) -> io::Result<()> {
        let line = shown(&line.text, line.left_out);
        if self.prefix.is_empty() {
            return say!(out, "{}", line);
        }
        let colour = style(self.subject.status);
        say!(out, "{}{}{:#} {}", colour, printable(&self.prefix), colour, line)
    }
}

/// Sets the name and the prefix of each log; names begin with cluster and namespace only if the logs differ in these.
fn name(logs: &mut [ShownLog], prefix: bool) {
    let is_one = |part: &dyn Fn(&LogSubject) -> String| {
        logs.iter().map(|log| part(&log.subject)).collect::<BTreeSet<_>>().len() < 2
    };
    let one_cluster = is_one(&|log| log.cluster.clone());
    let one_namespace = is_one(&|log| log.namespace.clone());
    let several = logs.len() > 1;
    for log in logs {
        let LogSubject { cluster, namespace, pod, container, .. } = &log.subject;
        let cluster = if one_cluster { String::new() } else { format!("{cluster}/") };
        let namespace = if one_namespace { String::new() } else { format!("{namespace}/") };
        log.name = format!("{cluster}{namespace}{pod}/{container}");
        if several || prefix {
            log.prefix = log.name.clone();
        }
    }
}

/// Returns the hint for a log that could not be read for a reason, given as its word.
pub(in crate::commands) fn hint(reason: &str) -> Option<&'static str> {
    let is = |known: Reason| reason == known.as_str();
    if is(Reason::Forbidden) {
        return Some("ask for a role that allows `get` on `pods/log`");
    }
    if is(Reason::NotFound) {
        return Some("the Pod is gone; run the command again to find its successor");
    }
    if is(Reason::BadRequest) {
        return Some(
            "a container that has not started has no log, and one that never ended no previous log; `taffrail explain` \
             tells why it does not start",
        );
    }
    if is(Reason::ServerError) {
        return Some("the API server could not get the log from the Pod's node: is its kubelet reachable?");
    }
    reasons::hint(reason)
}

/// Returns a line of a log without colours, with four spaces for each tab, and with U+FFFD for other control and
/// invisible characters. If `left_out` is not 0, the line ends with the note that so many bytes are missing.
pub(in crate::commands) fn shown(line: &str, left_out: u64) -> Printable<'static> {
    let mut text = Sieve::clean(&line.replace('\t', "    "), false);
    if left_out > 0 {
        text.push_str(&format!(" … {left_out} more bytes left out"));
    }
    printable(&text).into_owned()
}

fn is_closed(result: &io::Result<()>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::BrokenPipe)
}

/// The error about an answer of a hub that is not one.
fn malformed() -> CommandError {
    CommandError::unreadable("the answer of the hub does not have the expected form")
        .hint("use the same release of Taffrail as the hub")
}

/// Prints the logs: lines to stdout, and what could not be read, or was left out, to stderr. Returns the exit code when
/// the last event was printed or stdout is closed.
///
/// # Errors
/// Fails with the error of the events, and if they end without [`LogEvent::Done`].
pub(crate) async fn print(
    events: impl Stream<Item = Result<LogEvent, CommandError>>,
    arguments: &LogsArguments,
    console: &Console,
) -> Result<Exit, CommandError> {
    let mut printer = Printer {
        arguments,
        console,
        out: console.people(),
        logs: Vec::new(),
        errors: Vec::new(),
        unobserved: BTreeSet::new(),
        exit: Exit::Yes,
        failures: 0,
    };
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let is_last = event.and_then(|event| printer.take(event));
        match is_last {
            Ok(false) => {}
            Ok(true) => return Ok(printer.exit()),
            Err(error) => {
                printer.print_errors();
                printer.exit();
                return Err(error);
            }
        }
    }
    // The command prints the lines that came, and says that the log is not whole.
    printer.exit();
    Err(CommandError::unreadable("the hub ended its answer before all logs were sent"))
}

struct Printer<'a> {
    arguments: &'a LogsArguments,
    console: &'a Console,
    out: Answer,
    logs: Vec<ShownLog>,
    /// The failures to read apps that were not printed yet.
    errors: Vec<AppError>,
    unobserved: BTreeSet<String>,
    exit: Exit,
    /// The number of logs that could not be read.
    failures: usize,
}

impl Printer<'_> {
    /// Prints an event. Returns true if it was the last one, or stdout is closed.
    fn take(&mut self, event: LogEvent) -> Result<bool, CommandError> {
        match event {
            LogEvent::Problem(problem) => CommandError::from(&problem).print(self.console),
            LogEvent::Note { text } => CommandError::unreadable(text).harmless().print(self.console),
            LogEvent::Error { error, is_unobserved } => {
                if is_unobserved {
                    self.unobserved.insert(error.cluster.clone());
                }
                self.errors.push(error);
                if self.errors.len() > MAX_FOUND {
                    return Err(malformed());
                }
            }
            LogEvent::Unread { cluster, reason, message } => {
                self.print_errors();
                let complaint = CommandError::unreadable(message);
                let complaint = complaint.maybe_hint(reasons::hint(&reason).map(str::to_owned));
                complaint.print_about(&format!("{cluster}: "), self.console);
                self.exit = self.exit.max(complaint.exit);
            }
            LogEvent::Logs { subjects } => {
                let log = |subject| ShownLog { subject, prefix: String::new(), name: String::new() };
                self.logs.extend(subjects.into_iter().map(log));
                if self.logs.len() > MAX_FOUND {
                    return Err(malformed());
                }
            }
            LogEvent::Chosen { well, left_out } => self.begin(well, left_out),
            LogEvent::Unfollowed { containers } => {
                let what = format!(
                    "{containers} more containers are left out: with -f at most {MAX_FOLLOWED} in a cluster"
                );
                self.warn(what, "to print fewer logs, name a Pod, or a container with -c");
            }
            LogEvent::Lines { log, left_out, lines } => {
                let log = self.logs.get(log).ok_or_else(malformed)?;
                let printed = print_lines(log, left_out, &lines, &mut self.out);
                if is_closed(&printed) {
                    // The reader of the output is gone, so that failures of other logs are not printed.
                    (self.exit, self.failures) = (Exit::Yes, 0);
                    return Ok(true);
                }
                written(printed)?;
            }
            LogEvent::Waits { log } => {
                let log = self.logs.get(log).ok_or_else(malformed)?;
                self.console.tell(phrase!("{} has ended; waiting for its next run\n", printable(&log.name)));
            }
            LogEvent::Cut { log, bytes } => {
                let log = self.logs.get(log).ok_or_else(malformed)?;
                let limit = match bytes >> 20 {
                    0 => format!("{} KiB", bytes >> 10),
                    limit => format!("{limit} MiB"),
                };
                let what = format!("{}: the log is longer than {limit}: newer lines are left out", log.name);
                self.warn(what, "print less of the log with --tail or --since");
            }
            LogEvent::Failed { log, reason, message } => self.fail(log, &reason, &message)?,
            LogEvent::Ended { log } => {
                let log = self.logs.get(log).ok_or_else(malformed)?;
                if self.arguments.follow {
                    self.console.tell(phrase!("{} has ended\n", printable(&log.name)));
                }
            }
            LogEvent::TooLate { log, millis } => {
                for late in log..self.logs.len() {
                    let (reason, message) = self.timed_out(late, Duration::from_millis(millis));
                    self.fail(late, &reason, &message)?;
                }
                if log >= self.logs.len() {
                    return Err(CommandError::unreadable("the hub had no time to send all that it found"));
                }
                return Ok(true);
            }
            LogEvent::Full { log, bytes } => {
                let log = self.logs.get(log).ok_or_else(malformed)?;
                let what = format!(
                    "the rest of the log of {}, and all logs after it, are left out: an answer of a hub has at most {} MiB",
                    log.name,
                    bytes >> 20
                );
                let complaint = CommandError::unreadable(what);
                let complaint = complaint.hint("print less of the logs with --tail or --since");
                complaint.print(self.console);
                self.exit = self.exit.max(complaint.exit);
                return Ok(true);
            }
            LogEvent::Alive => {}
            LogEvent::Refused { message } => return Err(CommandError::unreadable(message)),
            LogEvent::Done => return Ok(true),
        }
        Ok(false)
    }

    fn print_errors(&mut self) {
        for complaint in complaints(&std::mem::take(&mut self.errors), &self.unobserved) {
            complaint.print(self.console);
            self.exit = self.exit.max(complaint.exit);
        }
    }

    fn warn(&self, what: String, hint: &str) {
        CommandError::unreadable(what).harmless().hint(hint).print(self.console);
    }

    /// Tells what is left out of the logs, of which now all are known.
    fn begin(&mut self, well: usize, left_out: usize) {
        self.print_errors();
        if self.logs.is_empty() {
            if self.exit == Exit::Yes {
                self.console.tell(phrase!("{} has no Pods.\n", printable(&self.arguments.what)));
            }
            return;
        }
        name(&mut self.logs, self.arguments.prefix);
        if well > 0 && self.arguments.container.is_none() {
            let others = match well {
                1 => "1 other Pod is well".to_owned(),
                _ => format!("{well} other Pods are well"),
            };
            advise(&format!("{others}; --all-pods prints the logs of all"), self.console);
        }
        if left_out > 0 {
            let what = format!("the logs of {left_out} more containers are left out");
            self.warn(what, "to print fewer logs, name a Pod, or a container with -c");
        }
    }

    /// Counts a log that could not be read, and prints the first [`MAX_TOLD`] failures.
    fn fail(&mut self, log: usize, reason: &str, message: &str) -> Result<(), CommandError> {
        let log = self.logs.get(log).ok_or_else(malformed)?;
        self.failures += 1;
        if self.failures <= MAX_TOLD {
            let complaint = CommandError::unreadable(message).maybe_hint(hint(reason).map(str::to_owned));
            complaint.print_about(&format!("{}: ", log.subject.cluster), self.console);
        }
        Ok(())
    }

    /// Returns the reason and the message of a log that was not read in `time`.
    fn timed_out(&self, log: usize, time: Duration) -> (String, String) {
        let subject = self.logs.get(log).map(|log| log.subject.clone());
        let (namespace, pod, container) =
            subject.map(|subject| (subject.namespace, subject.pod, subject.container)).unwrap_or_default();
        let request = LogRequest {
            namespace,
            pod,
            container,
            previous: self.arguments.previous,
            follow: false,
            timestamps: false,
            tail: None,
            since: None,
        };
        let error =
            ReadError::Timeout { what: request.what(), phase: Phase::Body, after: TimeLimit::All(time) };
        (error.reason().as_str().to_owned(), chain(&error))
    }

    /// Returns the exit code, and prints the number of failures that were not printed one by one.
    fn exit(&mut self) -> Exit {
        if self.failures > MAX_TOLD {
            let more = format!("{} more logs could not be read", self.failures - MAX_TOLD);
            CommandError::unreadable(more).print(self.console);
        }
        if self.failures > 0 { self.exit.max(Exit::Incomplete) } else { self.exit }
    }
}

fn print_lines(log: &ShownLog, left_out: u64, lines: &[LogLine], out: &mut impl Write) -> io::Result<()> {
    if left_out > 0 {
        let lines = if left_out == 1 { "line" } else { "lines" };
        say!(out, "… {} {} of {} left out", left_out, lines, printable(&log.name))?;
    }
    lines.iter().try_for_each(|line| log.print(line, out))?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_containers_cannot_move_the_cursor_or_hide_text() {
        let shown = |text: &str, left_out| shown(text, left_out).to_string();
        assert_eq!(shown("\tat main \x1b[31mred\x1b[0m", 0), "    at main red");
        assert_eq!(
            shown("\x1b[2Jgone\x07 \u{202e}evil\rover", 0),
            "\u{fffd}[2Jgone\u{fffd} \u{fffd}evil\u{fffd}over"
        );
        assert_eq!(shown("\x1b]0;title", 0), "\u{fffd}]0;title");
        assert_eq!(shown("long", 7), "long … 7 more bytes left out");
    }
}
