//! Inquiries: functions that read the watched clusters, called by the task that watches them.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::fleet::FleetSnapshot;
use crate::follow::FleetWatcher;

/// A function that the reporter calls once with the fleet. It sends its result to its caller itself.
pub type Inquiry = Box<dyn FnOnce(&FleetSnapshot) + Send>;

/// Maximum time for which an inquiry waits for the first read of all clusters; then it is called with what was read.
const FIRST: Duration = Duration::from_secs(4);

/// Maximum time for which an inquiry after the first read waits for evidence about a change; then it is called without
/// the evidence.
const EVIDENCE: Duration = Duration::from_secs(1);

/// Interval at which the reporter checks if it can call a waiting inquiry.
const TICK: Duration = Duration::from_millis(50);

/// Maximum number of waiting inquiries; further ones stay in the channel.
const MAX_WAITING: usize = 64;

/// The inquiries that wait to be called.
#[derive(Default)]
pub(super) struct Inquiries {
    /// The channel of new inquiries; `None` once its senders are gone.
    coming: Option<mpsc::Receiver<Inquiry>>,
    /// The waiting inquiries, each with the moment at which it came.
    waiting: Vec<(Instant, Inquiry)>,
    /// True once all clusters were read or an inquiry was called: later inquiries wait at most [`EVIDENCE`].
    were_read: bool,
}

impl Inquiries {
    pub(super) fn of(coming: mpsc::Receiver<Inquiry>) -> Inquiries {
        Inquiries { coming: Some(coming), ..Inquiries::default() }
    }

    /// Waits for an inquiry from the channel and keeps it, or until the channel is closed; after that, and while
    /// [`MAX_WAITING`] inquiries wait, never returns. No inquiry is lost if the future is dropped.
    pub(super) async fn come(&mut self) {
        let Some(coming) = self.coming.as_mut().filter(|_| self.waiting.len() < MAX_WAITING) else {
            return std::future::pending().await;
        };
        match coming.recv().await {
            Some(inquiry) => self.waiting.push((Instant::now(), inquiry)),
            None => self.coming = None,
        }
    }

    /// Returns `tick`, but at most [`TICK`] while inquiries wait.
    pub(super) fn tick(&self, tick: Duration) -> Duration {
        if self.waiting.is_empty() { tick } else { tick.min(TICK) }
    }

    /// Calls all waiting inquiries if the fleet is read as [`FleetWatcher::is_whole`] tells, else those that have
    /// waited for the maximum time.
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
            watcher.take_unread();
            let fleet = watcher.fleet();
            due.into_iter().for_each(|(_, inquiry)| inquiry(fleet));
        }
    }
}
