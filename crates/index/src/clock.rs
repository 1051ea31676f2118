//! Handles a wall clock that is set back.

use jiff::Timestamp;

use super::record::{flag, millis};
use super::{Index, KindId};

/// Milliseconds up to which a step back of the wall clock is ignored: a synchronised clock makes such steps in
/// regular operation.
const SLEWED: i64 = 1_000;

impl Index {
    /// Returns true if [`reassess`](Index::reassess) may have work although nothing changed: a deadline has passed
    /// (even one that was put off since), or the clock was set back by more than a second.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.next_deadline().is_some_and(|at| at <= now) || self.was_set_back(millis(now))
    }

    fn was_set_back(&self, now: i64) -> bool {
        self.reassessment.newest.saturating_sub(now) > SLEWED
    }

    /// Records the time `now`, in milliseconds. If the clock was set back by more than [`SLEWED`], moves every `since`
    /// of an object or a scope that is in the future to `now`, and returns the slots of all objects whose status
    /// evidence may change, to judge them again; else returns none.
    pub(super) fn notice_time(&mut self, now: i64) -> Vec<u32> {
        if !self.was_set_back(now) {
            self.reassessment.newest = self.reassessment.newest.max(now);
            return Vec::new();
        }
        self.reassessment.newest = now;
        let mut judged_early = Vec::new();
        for slot in 0..self.contents.records.len() {
            let Some(record) = self.contents.record(slot) else { continue };
            if !record.has(flag::PLAIN) {
                judged_early.push(slot);
            }
            if record.since > now
                && let Some(Some(record)) = self.contents.records.get_mut(slot)
            {
                record.since = now;
                if let Some(past) = &mut record.past {
                    let past = std::sync::Arc::make_mut(past);
                    past.iter_mut().flatten().for_each(|(_, since)| *since = now.min(*since));
                }
            }
        }
        let ahead = |(kind, namespace, scope): (KindId, Option<&str>, &super::Scope)| {
            scope.since.is_some_and(|since| millis(since) > now).then(|| (kind, namespace.map(str::to_owned)))
        };
        let scopes: Vec<_> = self.contents.scopes().filter_map(ahead).collect();
        for (kind, namespace) in scopes {
            if let Some(scope) = self.contents.scope_mut(kind, namespace.as_deref()) {
                scope.since = Timestamp::from_millisecond(now).ok();
            }
        }
        judged_early
    }
}
