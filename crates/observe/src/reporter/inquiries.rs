//! Questions about the watched clusters, answered by the task that watches them.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::fleet::FleetSnapshot;
use crate::follow::FleetWatcher;

/// A question: a function that the reporter calls with the fleet, and that sends its own answer to the asker.
pub type Inquiry = Box<dyn FnOnce(&FleetSnapshot) + Send>;

/// Maximum time for which a question waits for the first read of all clusters; then it is answered with what was read.
const FIRST: Duration = Duration::from_secs(4);

/// Maximum time for which a question after the first read waits for evidence about a change; then it is answered
/// without it.
const EVIDENCE: Duration = Duration::from_secs(1);

/// Interval at which the reporter checks if it can answer a waiting question.
const TICK: Duration = Duration::from_millis(50);

/// Maximum number of questions that wait for an answer; further ones stay in the channel.
const MAX_WAITING: usize = 64;

/// The questions that wait for an answer.
#[derive(Default)]
pub(super) struct Inquiries {
    /// The channel of new questions; `None` once its senders are gone.
    coming: Option<mpsc::Receiver<Inquiry>>,
    /// The questions, with the moment at which each came.
    waiting: Vec<(Instant, Inquiry)>,
    /// True once all clusters were read or a question was answered: later questions wait at most [`EVIDENCE`].
    were_read: bool,
}

impl Inquiries {
    pub(super) fn of(coming: mpsc::Receiver<Inquiry>) -> Inquiries {
        Inquiries { coming: Some(coming), ..Inquiries::default() }
    }

    /// Waits for a question from the channel and keeps it; never returns while [`MAX_WAITING`] questions wait or the
    /// channel is closed. No question is lost if the future is dropped.
    pub(super) async fn come(&mut self) {
        let Some(coming) = self.coming.as_mut().filter(|_| self.waiting.len() < MAX_WAITING) else {
            return std::future::pending().await;
        };
        match coming.recv().await {
            Some(inquiry) => self.waiting.push((Instant::now(), inquiry)),
            None => self.coming = None,
        }
    }

    /// Returns `tick`, but at most 50 ms while questions wait.
    pub(super) fn tick(&self, tick: Duration) -> Duration {
        if self.waiting.is_empty() { tick } else { tick.min(TICK) }
    }

    /// Answers all waiting questions if everything needed is read, else those that have waited for the maximum time.
    pub(super) fn answer(&mut self, watcher: &mut FleetWatcher) {
        if self.waiting.is_empty() {
            return;
        }
        let is_whole = watcher.is_whole();
        self.were_read |= is_whole;
        let patience = if self.were_read { EVIDENCE } else { FIRST };
        let now = Instant::now();
        let is_due =
            |(came, _): &mut (Instant, Inquiry)| is_whole || now.saturating_duration_since(*came) >= patience;
        let due: Vec<(Instant, Inquiry)> = self.waiting.extract_if(.., is_due).collect();
        if !due.is_empty() {
            self.were_read = true;
            let fleet = watcher.fleet();
            due.into_iter().for_each(|(_, inquiry)| inquiry(fleet));
        }
    }
}
