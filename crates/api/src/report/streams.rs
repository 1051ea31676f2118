//! The streams of reports about all clusters; the message that is due first is sent first.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::RandomState;
use std::time::Duration;

use crate::ErrorRow;
use crate::report::{ClusterReport, HalfBody, HalfId, SourceMessage, SourceReply};
use taffrail_apps::ClusterId;

use super::stream::Stream;
use super::summary::ClusterSummary;
use super::transition::Noted;

/// The streams of reports of one source.
///
/// Moments are durations since some start, by a clock that runs on while the machine sleeps. A message is made only
/// when the caller takes it; until then the newest state of each half is kept.
#[derive(Debug, Default)]
pub struct ReportStreams {
    /// The random key with which fingerprints of halves are hashed.
    key: RandomState,
    streams: HashMap<ClusterId, Stream>,
    /// The moment at which the next message of each stream is due.
    due: BTreeSet<(Duration, ClusterId)>,
    /// The clusters that are no longer reported, and for which the closing message was not sent yet.
    closed: VecDeque<ClusterId>,
    is_noting: bool,
}

impl ReportStreams {
    /// Calls `change` with the stream of a cluster, and updates the moment at which it is due. Does nothing if there is
    /// no such stream.
    fn with(&mut self, cluster: &ClusterId, change: impl FnOnce(&mut Stream, &RandomState)) {
        let Some(stream) = self.streams.get_mut(cluster) else { return };
        let before = stream.next_due();
        change(stream, &self.key);
        let after = stream.next_due();
        if before != after {
            if let Some(due) = before {
                self.due.remove(&(due, cluster.clone()));
            }
            if let Some(due) = after {
                self.due.insert((due, cluster.clone()));
            }
        }
    }

    /// Iterates over the clusters that are reported.
    pub fn clusters(&self) -> impl Iterator<Item = &ClusterId> {
        self.streams.keys()
    }

    /// Returns the states of all clusters that are reported at the moment `now`.
    pub fn summaries(&self, now: Duration) -> Vec<ClusterSummary> {
        self.streams.values().filter_map(|stream| stream.summary(now)).collect()
    }

    /// Returns true if the cluster is reported.
    pub fn has(&self, cluster: &ClusterId) -> bool {
        self.streams.contains_key(cluster)
    }

    /// Adds the stream of a cluster, unless there is one. It sends nothing before its facts are set.
    pub fn begin(&mut self, cluster: &ClusterId, now: Duration) {
        self.closed.retain(|closed| closed != cluster);
        let new = || Stream::new(cluster.clone(), now, self.is_noting);
        self.streams.entry(cluster.clone()).or_insert_with(new);
    }

    /// Notes the transitions of the apps of clusters that are added after the call, until they are taken.
    pub fn note_transitions(&mut self) {
        self.is_noting = true;
    }

    /// Removes and returns the notes about each cluster that were made since the last call. The caller calls it after each
    /// time at which it set all halves that changed.
    pub fn take_noted(&mut self) -> Vec<(ClusterId, Noted)> {
        if !self.is_noting {
            return Vec::new();
        }
        let noted = self.streams.iter_mut();
        noted.filter_map(|(cluster, stream)| Some((cluster.clone(), stream.take_noted()?))).collect()
    }

    /// Sets if a cluster was read in this run. While false, only facts and heartbeats are sent of it, no halves.
    pub fn set_read(&mut self, cluster: &ClusterId, is_read: bool) {
        self.with(cluster, |stream, _| stream.set_read(is_read));
    }

    /// Removes the stream of a cluster, and informs the hub if that may know the cluster.
    pub fn close(&mut self, cluster: &ClusterId) {
        let Some(stream) = self.streams.remove(cluster) else { return };
        if let Some(due) = stream.next_due() {
            self.due.remove(&(due, cluster.clone()));
        }
        // However often a cluster changes its identity, only as many wait here as the hub took.
        if stream.is_known() {
            self.closed.push_back(cluster.clone());
        }
    }

    /// Informs the hub that a cluster of an earlier run, of which no stream was begun in this one, is gone.
    pub fn forget(&mut self, cluster: &ClusterId) {
        if !self.has(cluster) && !self.closed.contains(cluster) {
            self.closed.push_back(cluster.clone());
        }
    }

    /// Begins a pass over all halves of all clusters; [`ReportStreams::end_pass`] removes those that were not set.
    pub fn begin_pass(&mut self) {
        self.streams.values_mut().for_each(Stream::begin_pass);
    }

    /// Ends a pass: removes the halves that were not set since [`ReportStreams::begin_pass`].
    pub fn end_pass(&mut self, now: Duration) {
        for cluster in self.streams.keys().cloned().collect::<Vec<_>>() {
            self.with(&cluster, |stream, _| stream.end_pass(now));
        }
    }

    /// Sets a half that `cluster` reports.
    pub fn set(&mut self, cluster: &ClusterId, id: HalfId, body: HalfBody, now: Duration) {
        self.with(cluster, |stream, key| stream.set(id, body, key, now));
    }

    /// Removes a half that `cluster` reported.
    pub fn remove(&mut self, cluster: &ClusterId, id: &HalfId, now: Duration) {
        self.with(cluster, |stream, _| stream.remove(id, now));
    }

    /// Sets the facts about the cluster as a whole.
    pub fn set_facts(
        &mut self,
        cluster: &ClusterId,
        facts: ClusterReport,
        errors: Vec<ErrorRow>,
        now: Duration,
    ) {
        self.with(cluster, |stream, _| stream.set_facts(facts, errors, now));
    }

    /// Sets the moment of the last sign of life of a cluster's API server.
    pub fn set_heard(&mut self, cluster: &ClusterId, heard: Option<Duration>) {
        if let Some(stream) = self.streams.get_mut(cluster) {
            stream.set_heard(heard);
        }
    }

    /// Makes a heartbeat of a cluster due at the moment `now`: a source that learns of signs of life only now and then passes
    /// each on at once.
    pub fn beat(&mut self, cluster: &ClusterId, now: Duration) {
        self.with(cluster, |stream, _| stream.beat(now));
    }

    /// Delays reports of a cluster's changed halves until the moment `until`.
    pub fn hold(&mut self, cluster: &ClusterId, until: Duration) {
        self.with(cluster, |stream, _| stream.hold(until));
    }

    /// Returns true if apps of some cluster were left out for which there is room now: then a pass is needed.
    pub fn needs_pass(&self) -> bool {
        self.streams.values().any(Stream::has_room)
    }

    /// Applies a reply of the hub to the stream that it names.
    pub fn take(&mut self, reply: &SourceReply, now: Duration) {
        match reply {
            SourceReply::Accepted { cluster, epoch } => {
                self.with(cluster, |stream, _| stream.accepted(*epoch, now));
            }
            SourceReply::Resend { cluster, epoch, buckets } => {
                self.with(cluster, |stream, _| stream.resend(*epoch, *buckets, now));
            }
            SourceReply::Refused { cluster, epoch } => {
                self.with(cluster, |stream, _| stream.refused(*epoch, now));
            }
        }
    }

    /// Returns the message to send at the moment `now`: closing messages first, then the one that is due first; `None`
    /// if none is due.
    pub fn next_message(&mut self, now: Duration) -> Option<SourceMessage> {
        if let Some(cluster) = self.closed.pop_front() {
            return Some(SourceMessage::Close(cluster));
        }
        let (_, cluster) = self.due.first().filter(|(due, _)| *due <= now)?.clone();
        let mut message = None;
        self.with(&cluster, |stream, _| message = stream.next_message(now));
        message
    }

    /// Returns the moment at which the next message is due, 0 for a closing message; `None` if there is nothing to
    /// send.
    pub fn next_deadline(&self) -> Option<Duration> {
        if self.closed.is_empty() { self.due.first().map(|(due, _)| *due) } else { Some(Duration::ZERO) }
    }
}

#[cfg(test)]
mod tests;
