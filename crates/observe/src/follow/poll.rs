//! Polling of objects that the user may read but not watch; a note says so.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::look::take;
use crate::read::{Outcome, read_one};
use taffrail_apps::{Answer, Read, Snapshot};
use taffrail_cluster::{Cluster, Reason, ScopeId};
use taffrail_object::{Object, ObjectKey};

/// Interval at which an object that cannot be watched is read again.
const INTERVAL: Duration = Duration::from_secs(5);

/// The objects of one cluster that are polled.
#[derive(Default)]
pub(super) struct PollFallback(BTreeMap<ScopeId, PolledObject>);

/// One object that is polled because it may be read but not watched.
struct PolledObject {
    read: Read,
    key: ObjectKey,
    /// The server's message that refuses the watch.
    refusal: String,
    /// The object's resource version at the last successful read; empty if the object did not exist then, `None` before
    /// the first successful read.
    version: Option<String>,
}

/// The result of polling an object.
pub(super) struct PollOutcome {
    /// True if the object must be polled again; false once the server refuses to let the user read it.
    pub(super) goes_on: bool,
    /// True if the snapshot changed: the object's resource version, its presence, or the error of reading it.
    pub(super) is_news: bool,
}

impl PollFallback {
    /// Starts to poll an object that may be read but not watched; returns false if it is already polled.
    pub(super) fn begin(&mut self, id: ScopeId, read: &Read, key: ObjectKey, refusal: String) -> bool {
        let is_new = !self.0.contains_key(&id);
        self.0.entry(id).or_insert_with(|| PolledObject { read: read.clone(), key, refusal, version: None });
        is_new
    }

    /// Stops polling the object of this scope, if it is polled.
    pub(super) fn end(&mut self, id: ScopeId) {
        self.0.remove(&id);
    }

    /// Returns the read to repeat for a scope; `None` if it is no longer polled.
    pub(super) fn read(&self, id: ScopeId) -> Option<Read> {
        self.0.get(&id).map(|turn| turn.read.clone())
    }

    /// Puts the result of a read into the snapshot; returns `None` if the scope is no longer polled. A refusal ends the
    /// polling; another failure after a successful read changes nothing.
    pub(super) fn take(
        &mut self,
        id: ScopeId,
        snapshot: &mut Snapshot,
        outcome: Outcome,
    ) -> Option<PollOutcome> {
        let turn = self.0.get_mut(&id)?;
        let version = match &outcome {
            Ok(found) => found.as_ref().map_or_else(String::new, |(documents, _)| {
                let object = documents.first().and_then(|document| Object::new(document.root()).ok());
                object.map(|it| it.text(&["metadata", "resourceVersion"]).into_owned()).unwrap_or_default()
            }),
            Err(error) if error.reason() == Reason::Forbidden => {
                let (read, message) = (turn.read.clone(), std::mem::take(&mut turn.refusal));
                self.0.remove(&id);
                snapshot.retract_read(&read);
                snapshot.answer(&read, Answer::Forbidden { message });
                return Some(PollOutcome { goes_on: false, is_news: true });
            }
            // What was known goes on to be shown while it is tried again; that the server is gone is told by others.
            Err(_) if turn.version.is_some() => return Some(PollOutcome { goes_on: true, is_news: false }),
            Err(_) => {
                take(snapshot, &turn.read, outcome);
                return Some(PollOutcome { goes_on: true, is_news: true });
            }
        };
        let is_news = turn.version.as_ref() != Some(&version);
        if is_news {
            if version.is_empty() {
                snapshot.remove(&turn.key);
            }
            snapshot.retract_read(&turn.read);
            take(snapshot, &turn.read, outcome);
            turn.version = Some(version);
        }
        Some(PollOutcome { goes_on: true, is_news })
    }

    /// Returns a note for the user about each polled object that was read successfully.
    pub(super) fn notes<'a>(&'a self, cluster: &'a str) -> impl Iterator<Item = String> + 'a {
        let read = self.0.values().filter(|turn| turn.version.is_some());
        read.map(move |PolledObject { key, .. }| {
            format!(
                "{cluster}: {} {} may be read but not watched, so it is read again every {} s",
                key.kind,
                key.path(),
                INTERVAL.as_secs()
            )
        })
    }
}

/// Reads an object at once if `is_first`, else after [`INTERVAL`]; gives up `timeout` after that.
pub(super) async fn once_more(cluster: Cluster, timeout: Duration, read: Read, is_first: bool) -> Outcome {
    if !is_first {
        tokio::time::sleep(INTERVAL).await;
    }
    read_one(&cluster.with_timeout(timeout), &read).await
}
