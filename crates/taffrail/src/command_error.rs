//! Errors and warnings for the user, and exit codes.

use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;

use taffrail_cluster::add_causes;
pub(crate) use taffrail_cluster::chain;

use taffrail_api::operations::OperationError;
use taffrail_api::question::{ErrorLevel, FleetProblem};
use taffrail_observe::ObserveError;

use crate::output::answer::Console;
use crate::output::{Phrase, printable};
use crate::phrase;

/// The result of a command as an exit code. Of several results the greatest counts: usage, incomplete, no, yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// The command answered; if it tests a condition, the condition holds.
    Yes,
    /// The command answered, and the condition that it tests does not hold.
    No,
    /// Some requested data could not be read or written.
    Incomplete,
    /// The command cannot run as given: an invalid argument or setting, a name without a match, a declined
    /// confirmation.
    Usage,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Yes => 0,
            Exit::No => 1,
            Exit::Usage => 2,
            Exit::Incomplete => 3,
        })
    }
}

impl From<ErrorLevel> for Exit {
    fn from(level: ErrorLevel) -> Exit {
        match level {
            ErrorLevel::Warning => Exit::Yes,
            ErrorLevel::Unreadable => Exit::Incomplete,
            ErrorLevel::Usage => Exit::Usage,
        }
    }
}

/// An error or warning for the user: what failed, on what, why, and what to do about it.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) exit: Exit,
    what: String,
    pub(crate) hint: Option<String>,
}

impl CommandError {
    /// Creates an error about something that could not be read, written or started: exit code 3.
    pub(crate) fn unreadable(what: impl Display) -> CommandError {
        CommandError { exit: Exit::Incomplete, what: what.to_string(), hint: None }
    }

    /// Creates an error about a command that cannot run as given, such as for an invalid argument or setting, or a name
    /// without a match: exit code 2.
    pub(crate) fn usage(what: impl Display) -> CommandError {
        CommandError { exit: Exit::Usage, what: what.to_string(), hint: None }
    }

    /// Turns the error into a warning that leaves the exit code at 0.
    pub(crate) fn harmless(self) -> CommandError {
        CommandError { exit: Exit::Yes, ..self }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> CommandError {
        CommandError { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn maybe_hint(self, hint: Option<String>) -> CommandError {
        CommandError { hint: hint.or(self.hint), ..self }
    }

    /// Appends `: ` and the texts of `error` and of its causes to the message.
    pub(crate) fn with_source(mut self, error: &dyn Error) -> CommandError {
        add_causes(&mut self.what, Some(error));
        self
    }

    /// Returns the message alone, as it was made: it is not printable yet.
    pub(crate) fn message(&self) -> &str {
        &self.what
    }

    /// Prints the error, or the warning if its exit code is 0, and its hint to stderr.
    pub(crate) fn print(&self, console: &Console) {
        console.tell(self.text());
    }

    /// Prints the error like [`CommandError::print`], with `place`, such as `prod: `, before the message:
    /// `error: prod: …`.
    pub(crate) fn print_about(&self, place: &str, console: &Console) {
        let what = format!("{place}{}", self.what);
        CommandError { exit: self.exit, what, hint: self.hint.clone() }.print(console);
    }

    /// Returns the text that [`CommandError::print`] prints.
    pub(crate) fn text(&self) -> Phrase {
        let (word, colour) = match self.exit {
            Exit::Yes => ("warning", anstyle::AnsiColor::Yellow),
            _ => ("error", anstyle::AnsiColor::Red),
        };
        let style = colour.on_default().bold();
        let what = printable(&self.what);
        let hint = self.hint.as_deref().map_or_else(|| phrase!(""), hinted);
        phrase!("{}{}{:#}: {}\n{}", style, word, style, what, hint)
    }
}

fn hinted(hint: &str) -> Phrase {
    let style = anstyle::Style::new().bold();
    phrase!("{} hint{:#}: {}\n", style, style, printable(hint))
}

/// Prints a hint line alone to stderr, if the answer on stdout has already stated the problem.
pub(crate) fn advise(hint: &str, console: &Console) {
    console.tell(hinted(hint));
}

impl Display for CommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl From<&ObserveError> for CommandError {
    fn from(error: &ObserveError) -> CommandError {
        CommandError::from(&error.told())
    }
}

impl From<&FleetProblem> for CommandError {
    fn from(problem: &FleetProblem) -> CommandError {
        let FleetProblem { level, message, hint } = problem.clone();
        CommandError { exit: Exit::from(level), what: message, hint }
    }
}

impl From<&OperationError> for CommandError {
    fn from(error: &OperationError) -> CommandError {
        let OperationError { level, message, hint, .. } = error.clone();
        CommandError { exit: Exit::from(level), what: message, hint }
    }
}

impl From<ObserveError> for CommandError {
    fn from(error: ObserveError) -> CommandError {
        CommandError::from(&error)
    }
}

/// Converts the result of writing to stdout: `Ok` also if stdout was closed, since that ends the command without an
/// error.
pub(crate) fn written(result: std::io::Result<()>) -> Result<(), CommandError> {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CommandError::unreadable("cannot write the answer to stdout").with_source(&error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Told {
        text: String,
        #[source]
        cause: Option<Box<Told>>,
    }

    fn told(text: &str, cause: Option<Told>) -> Told {
        Told { text: text.to_owned(), cause: cause.map(Box::new) }
    }

    #[test]
    fn peer_messages_are_cut_to_one_line() {
        let said = "\u{1b}[31mgo\n away ".repeat(4000);
        let error = told("list pods", Some(told(&format!("http2 error: {said}"), Some(told(&said, None)))));
        for text in [chain(&error), CommandError::unreadable("prod").with_source(&error).to_string()] {
            assert!(text.contains("list pods: http2 error: [31mgo away"), "{text}");
            assert!(text.chars().count() < 450, "{} characters", text.chars().count());
            assert!(!text.contains('\n'), "{text}");
        }
        let short = told("list pods", Some(told("connection refused", None)));
        assert_eq!(chain(&short), "list pods: connection refused");
    }
}
