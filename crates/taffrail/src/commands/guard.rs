//! The one question before writes that may mean more than somebody thinks.

use std::io::{self, BufRead, IsTerminal, Write};

use super::verbs::DryRun;
use crate::complaint::Complaint;
use crate::output::{answer, printable};
use crate::phrase;

/// How many names are told.
const TOLD: usize = 10;

/// Asks before something is done to several things that were not named one by one: `what` would be done to `names`, which are
/// `of` a sort, such as `clusters`. Nothing is asked for one, with `--yes`, or where nothing is written. Whoever is asked at a terminal
/// is shown first what `show` shows.
///
/// # Errors
/// When the answer is no, or when there is no terminal to ask at.
pub(crate) fn confirm(
    what: &str,
    of: &str,
    names: &[String],
    yes: bool,
    dry_run: DryRun,
    show: impl FnOnce(),
) -> Result<(), Complaint> {
    if names.len() <= 1 || yes || dry_run != DryRun::None {
        return Ok(());
    }
    let mut told: Vec<&str> = names.iter().map(String::as_str).take(TOLD).collect();
    let rest = format!("and {} more", names.len().saturating_sub(TOLD));
    if names.len() > TOLD {
        told.push(&rest);
    }
    let question = format!("this would {what} {} {of}: {}", names.len(), told.join(", "));
    ask(&question, "say --yes if all of them are meant, or look first with --dry-run=client", show)
}

/// Asks before an object is written to that an app names in another namespace than its own: others may live on it.
///
/// # Errors
/// When the answer is no, or when there is no terminal to ask at.
pub(crate) fn confirm_elsewhere(
    what: &str,
    names: &[String],
    yes: bool,
    dry_run: DryRun,
    show: impl FnOnce(),
) -> Result<(), Complaint> {
    if names.is_empty() || yes || dry_run != DryRun::None {
        return Ok(());
    }
    let mut told = names.iter().take(TOLD).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > TOLD {
        told.push_str(&format!(" and {} more", names.len() - TOLD));
    }
    let question =
        format!("this would {what} sources in other namespaces than the apps that name them: {told}");
    ask(
        &question,
        "say --yes if they are meant, leave --with-source out, or look first with --dry-run=client",
        show,
    )
}

fn ask(question: &str, hint: &str, show: impl FnOnce()) -> Result<(), Complaint> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Complaint::usage(question).hint(hint));
    }
    show();
    answer::tell(phrase!("{}\nGo on? [y/N] ", printable(question)));
    let _ = io::stderr().flush();
    let mut reply = String::new();
    // Who cannot be heard has not agreed.
    let _ = io::stdin().lock().read_line(&mut reply);
    if matches!(reply.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Complaint::usage("nothing was written").hint(hint))
}
