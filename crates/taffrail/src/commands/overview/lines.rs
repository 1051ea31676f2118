//! The overview without a terminal: a line for each change.

use std::io::{self, Write};

use super::frame::summary;
use super::news::{Concern, News};
use crate::output::answer::Console;
use crate::output::printable;
use crate::say;

/// The overview as lines: first the problems, then one line per change.
#[derive(Debug, Default)]
pub(in crate::commands) struct Lines {
    /// Number of changes printed; `None` before the first call.
    told: Option<usize>,
}

impl Lines {
    /// Prints the changes since the last call, the oldest first; at the first call before them the summary, `head` and
    /// each problem.
    pub(in crate::commands) fn show(
        &mut self,
        name: &str,
        news: &News,
        head: &[String],
        console: &Console,
    ) -> io::Result<()> {
        let mut out = console.people();
        if self.told.is_none() {
            say!(
                out,
                "{}",
                printable(&anstream::adapter::strip_str(&summary(name, news, None)).to_string())
            )?;
            head.iter().try_for_each(|line| say!(out, "{}", printable(line)))?;
            for concern in &news.concerns {
                let Concern { clusters, apps, state, message, .. } = concern;
                let line = format!("{} {} is {state}: {message}", clusters.join(" "), apps.join(" "));
                say!(out, "{}", printable(&line))?;
            }
        }
        let told = self.told.replace(news.changed).unwrap_or_default();
        let fresh = news.changed.saturating_sub(told).min(news.changes.len());
        for change in news.changes.iter().take(fresh).rev() {
            let apps = change.apps.join(" ");
            let apps = if apps.is_empty() { String::new() } else { format!(" {apps}") };
            let message =
                if change.message.is_empty() { String::new() } else { format!(": {}", change.message) };
            let at = change.at.strftime("%Y-%m-%dT%H:%M:%SZ");
            let (before, after) = (&change.before, &change.after);
            let line = format!("{at} {}{apps} {before} -> {after}{message}", change.clusters.join(" "));
            say!(out, "{}", printable(&line))?;
        }
        out.flush()
    }
}
