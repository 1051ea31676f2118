//! Questions about the followed clusters.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::fleet::FleetSnapshot;
use crate::follow::FleetWatcher;

/// A question: a function that gets the fleet, and sends its answer to the asker.
pub type Inquiry = Box<dyn FnOnce(&FleetSnapshot) + Send>;

/// Maximum time for which a question waits until all clusters were read for the first time.
const FIRST: Duration = Duration::from_secs(4);

/// Maximum time for which a later question waits until the evidence about a change is read.
const EVIDENCE: Duration = Duration::from_secs(1);

/// Interval of the checks whether a waiting question can be answered.
const TICK: Duration = Duration::from_millis(50);

/// Maximum number of questions that wait; others stay in the channel.
const MAX_WAITING: usize = 64;

/// The questions that wait for an answer.
#[derive(Default)]
pub(super) struct Inquiries {
    /// The channel of new questions; `None` once its senders are gone.
    coming: Option<mpsc::Receiver<Inquiry>>,
    /// The questions, with the moment at which each came.
    waiting: Vec<(Instant, Inquiry)>,
    /// True once all clusters were read, or a question has waited long enough for those that do not answer.
    were_read: bool,
}

impl Inquiries {
    pub(super) fn of(coming: mpsc::Receiver<Inquiry>) -> Inquiries {
        Inquiries { coming: Some(coming), ..Inquiries::default() }
    }

    /// Waits for the next question. No question is lost if the future is dropped.
    pub(super) async fn come(&mut self) {
        let Some(coming) = self.coming.as_mut().filter(|_| self.waiting.len() < MAX_WAITING) else {
            return std::future::pending().await;
        };
        match coming.recv().await {
            Some(inquiry) => self.waiting.push((Instant::now(), inquiry)),
            None => self.coming = None,
        }
    }

    /// Returns `tick`, or less if questions wait.
    pub(super) fn tick(&self, tick: Duration) -> Duration {
        if self.waiting.is_empty() { tick } else { tick.min(TICK) }
    }

    /// Answers the questions that need not wait any longer.
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
