//! The demo without a terminal: a line for each change.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::changes::{Concern, News};
use super::overview::{exports, summary};
use crate::output::answer::Console;
use crate::output::printable;
use crate::say;

/// Output of the demo without a terminal: one line per change.
pub(super) struct Lines {
    kubeconfig: PathBuf,
    console: Console,
    /// Number of changes printed; `None` before the first call.
    told: Option<usize>,
}

impl Lines {
    pub(super) fn new(kubeconfig: &Path, console: &Console) -> Lines {
        Lines { kubeconfig: kubeconfig.to_owned(), console: console.clone(), told: None }
    }

    /// Prints the changes since the last call; at the first call the state of each app that has a problem.
    pub(super) fn show(&mut self, news: &News) -> io::Result<()> {
        let mut out = self.console.people();
        if self.told.is_none() {
            say!(out, "{}", printable(&anstream::adapter::strip_str(&summary(news, None)).to_string()))?;
            exports(&self.kubeconfig).iter().try_for_each(|export| say!(out, "{}", printable(export)))?;
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
