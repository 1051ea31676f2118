//! Asks for confirmation before a write that may affect more than the user named.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::cli::DryRun;
use crate::command_error::CommandError;
use crate::output::answer::Console;
use crate::output::printable;
use crate::phrase;

/// Maximum number of names that a question lists; the others are counted.
const MAX_NAMED: usize = 10;

/// Asks for confirmation before a write to several things, of which the user did not name each. `what` is the verb,
/// `names` the things, and `of` their noun, such as `clusters`. Asks nothing for less than two names, with `yes`, or in
/// a dry run. At a terminal it calls `show` before the question.
///
/// # Errors
///
/// Returns an error if the user declines, or if there is no terminal to ask at.
pub(crate) fn confirm(
    what: &str,
    of: &str,
    names: &[String],
    yes: bool,
    dry_run: DryRun,
    console: &Console,
    show: impl FnOnce(),
) -> Result<(), CommandError> {
    if names.len() <= 1 || yes || dry_run != DryRun::None {
        return Ok(());
    }
    let mut told: Vec<&str> = names.iter().map(String::as_str).take(MAX_NAMED).collect();
    let rest = format!("and {} more", names.len().saturating_sub(MAX_NAMED));
    if names.len() > MAX_NAMED {
        told.push(&rest);
    }
    let question = format!("this would {what} {} {of}: {}", names.len(), told.join(", "));
    ask(&question, "confirm with --yes, or check first with --dry-run=client", console, show)
}

/// Asks for confirmation before writing to the sources `names`, which are in other namespaces than the apps that name
/// them: other apps may use them. `what` is the verb. Asks nothing without `names`, with `yes`, or in a dry run. At a
/// terminal it calls `show` before the question.
///
/// # Errors
///
/// Returns an error if the user declines, or if there is no terminal to ask at.
pub(crate) fn confirm_elsewhere(
    what: &str,
    names: &[String],
    yes: bool,
    dry_run: DryRun,
    console: &Console,
    show: impl FnOnce(),
) -> Result<(), CommandError> {
    if names.is_empty() || yes || dry_run != DryRun::None {
        return Ok(());
    }
    let mut told = names.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMED {
        told.push_str(&format!(" and {} more", names.len() - MAX_NAMED));
    }
    let question =
        format!("this would {what} sources in other namespaces than the apps that name them: {told}");
    ask(
        &question,
        "confirm with --yes, leave --with-source out, or check first with --dry-run=client",
        console,
        show,
    )
}

/// Asks for confirmation before the deletion of the objects `names`. Asks nothing without `names`, or with `yes`.
///
/// # Errors
///
/// Returns an error if the user declines, or if there is no terminal to ask at.
pub(crate) fn confirm_deletions(names: &[String], yes: bool, console: &Console) -> Result<(), CommandError> {
    if names.is_empty() || yes {
        return Ok(());
    }
    let mut told: Vec<&str> = names.iter().map(String::as_str).take(MAX_NAMED).collect();
    let rest = format!("and {} more", names.len().saturating_sub(MAX_NAMED));
    if names.len() > MAX_NAMED {
        told.push(&rest);
    }
    let objects = if names.len() == 1 { "object" } else { "objects" };
    let question = format!("this would delete {} {objects}: {}", names.len(), told.join(", "));
    ask(&question, "confirm with --yes, or check first with --dry-run", console, || {})
}

fn ask(question: &str, hint: &str, console: &Console, show: impl FnOnce()) -> Result<(), CommandError> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(CommandError::usage(format!("{question}; that needs a confirmation")).hint(hint));
    }
    show();
    console.tell(phrase!("{}\nContinue? [y/N] ", printable(question)));
    let _ = io::stderr().flush();
    let mut reply = String::new();
    // An unreadable answer is not a yes.
    let _ = io::stdin().lock().read_line(&mut reply);
    if matches!(reply.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(CommandError::usage("the command was not confirmed, so nothing was written").hint(hint))
}
