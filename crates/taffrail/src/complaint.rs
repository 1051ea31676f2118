//! What goes wrong, told to the user, and how the process ends.

use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;

use taffrail_cluster::add_causes;
pub(crate) use taffrail_cluster::chain;

use taffrail_observe::{ErrorLevel, ObserveError};

use crate::output::{Phrase, printable};
use crate::phrase;

/// How a command ended. The greater of two wins, in the order: usage, incomplete, no, yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Answered; where a question was asked, the answer is yes.
    Yes,
    /// The answer is no.
    No,
    /// Something that was asked for could not be read.
    Incomplete,
    /// The command line makes no sense.
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

/// Something that failed: what, on what, why, and what to do about it.
#[derive(Debug)]
pub(crate) struct Complaint {
    pub(crate) exit: Exit,
    what: String,
    pub(crate) hint: Option<String>,
}

impl Complaint {
    /// Something that was asked for and could not be read.
    pub(crate) fn unreadable(what: impl Display) -> Complaint {
        Complaint { exit: Exit::Incomplete, what: what.to_string(), hint: None }
    }

    /// A command line that makes no sense.
    pub(crate) fn usage(what: impl Display) -> Complaint {
        Complaint { exit: Exit::Usage, what: what.to_string(), hint: None }
    }

    /// Worth telling, but everything was read.
    pub(crate) fn harmless(self) -> Complaint {
        Complaint { exit: Exit::Yes, ..self }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Complaint {
        Complaint { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn maybe_hint(self, hint: Option<String>) -> Complaint {
        Complaint { hint: hint.or(self.hint), ..self }
    }

    /// Adds `error` and everything that caused it.
    pub(crate) fn because(mut self, error: &dyn Error) -> Complaint {
        add_causes(&mut self.what, Some(error));
        self
    }

    /// Tells it on stderr.
    pub(crate) fn print(&self) {
        crate::output::answer::tell(self.text());
    }

    /// As it is told.
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

/// Tells on stderr what may be done next, where the answer says itself what is wrong.
pub(crate) fn advise(hint: &str) {
    crate::output::answer::tell(hinted(hint));
}

impl Display for Complaint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl From<&ObserveError> for Complaint {
    fn from(error: &ObserveError) -> Complaint {
        let exit = match error.level() {
            ErrorLevel::Warning => Exit::Yes,
            ErrorLevel::Unreadable => Exit::Incomplete,
            ErrorLevel::Usage => Exit::Usage,
        };
        Complaint { exit, what: chain(error), hint: error.hint() }
    }
}

impl From<ObserveError> for Complaint {
    fn from(error: ObserveError) -> Complaint {
        Complaint::from(&error)
    }
}

/// The end of the reader of our output is the end of the work, not a failure.
pub(crate) fn written(result: std::io::Result<()>) -> Result<(), Complaint> {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Complaint::unreadable("cannot write the answer").because(&error))
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
    fn what_the_other_side_says_is_cut_to_a_line() {
        let said = "\u{1b}[31mgo\n away ".repeat(4000);
        let error = told("list pods", Some(told(&format!("http2 error: {said}"), Some(told(&said, None)))));
        for text in [chain(&error), Complaint::unreadable("prod").because(&error).to_string()] {
            assert!(text.contains("list pods: http2 error: [31mgo away"), "{text}");
            assert!(text.chars().count() < 450, "{} characters", text.chars().count());
            assert!(!text.contains('\n'), "{text}");
        }
        let short = told("list pods", Some(told("connection refused", None)));
        assert_eq!(chain(&short), "list pods: connection refused");
    }
}
