//! Limits of the sizes of the parts of a report that a hub keeps: whoever controls a cluster, or a namespace of one,
//! writes their texts.
//!
//! A text that is too long is cut, because a tenant can write it: to refuse its half would make the digests of the
//! whole cluster differ. Only an app whose identity is too long, which no API server accepts, is left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use taffrail_apps::{
    AppName, Axis, ClusterId, MAX_SYNCS, MAX_UPSTREAMS, Nodes, Problem, Source, Sync, SyncAttempt,
    UnreadyNode, UpstreamProblem, Words, bound_checks,
};
use taffrail_object::ObjectKey;
use taffrail_object::selector::MAX_LABELS;
use taffrail_status::{MAX_MESSAGE, cut};

use super::AppId;
use super::cluster::ClusterReport;
use super::half::{DeclaredHalf, HalfBody, HalfUpstream, HalfUpstreams, ObservedHalf, Speaker};
use super::managed;
use crate::ErrorRow;

/// The maximum length in bytes of names, keys, revisions and all other texts but messages and scopes; longer ones are
/// cut, but labels with a longer name or value are dropped, and an app with a longer part of its identity is left out.
pub const MAX_NAME: usize = 512;

/// The maximum number of problems that are kept of a declared half, the first ones, which are the worst; the others are
/// dropped.
const MAX_PROBLEMS: usize = 16;

/// The maximum number of apps upstream that are kept of an app, the first ones; the others are counted.
const MAX_RELATED: usize = MAX_UPSTREAMS + 2;

/// The maximum number of further names that are kept of a cluster, and of its scopes that are not live; the others are
/// dropped.
const MAX_LISTED: usize = 256;

/// A part of a report whose size the hub limits before it keeps the part.
pub(super) trait Limited {
    /// Shortens texts and drops items beyond the limits; returns true if a text was shortened or an item dropped,
    /// dropped syncs aside.
    fn limit(&mut self) -> bool;
}

impl HalfBody {
    /// Cuts messages to 4 KiB and other texts to [`MAX_NAME`]; drops labels beyond 64 or with longer names or values,
    /// problems beyond 16, apps upstream beyond 66, and syncs beyond [`MAX_SYNCS`]. Returns true if it cut or dropped anything, dropped syncs
    /// aside.
    pub fn limit(&mut self) -> bool {
        match self {
            HalfBody::Declared(declared) => declared.limit(),
            HalfBody::Observed(observed) => observed.limit(),
        }
    }
}

impl AppId {
    /// Returns true if no part of the identity is longer than [`MAX_NAME`].
    pub fn is_short(&self) -> bool {
        [&self.home.0, &self.app.namespace, &self.app.name].into_iter().all(|text| text.len() <= MAX_NAME)
    }
}

impl DeclaredHalf {
    /// Returns true if [`HalfBody::limit`] would keep all labels.
    pub fn has_short_labels(&self) -> bool {
        are_short(&self.labels)
    }

    /// Returns true if [`HalfBody::limit`] would keep all apps upstream as they are.
    pub fn has_short_upstreams(&self) -> bool {
        self.upstreams.as_deref().is_none_or(are_short_upstreams)
    }

    /// Returns true if there is no source, or no text of it is longer than [`MAX_NAME`].
    pub fn has_short_source(&self) -> bool {
        self.source.as_deref().is_none_or(is_short_source)
    }
}

fn are_short(labels: &BTreeMap<String, String>) -> bool {
    labels.len() <= MAX_LABELS && labels.iter().all(is_short_label)
}

/// Drops labels with a name or value longer than [`MAX_NAME`], and those beyond the first [`MAX_LABELS`] by name.
fn limit_labels(labels: &mut BTreeMap<String, String>) {
    labels.retain(|name, value| is_short_label((name, value)));
    while labels.len() > MAX_LABELS {
        labels.pop_last();
    }
}

fn is_short_label((name, value): (&String, &String)) -> bool {
    name.len() <= MAX_NAME && value.len() <= MAX_NAME
}

fn are_short_upstreams(upstreams: &HalfUpstreams) -> bool {
    upstreams.apps.len() <= MAX_RELATED && upstreams.apps.iter().all(|upstream| upstream.app.is_short())
}

fn is_short_source(source: &Source) -> bool {
    let Source { kind, namespace, name, url, path, reference } = source;
    let texts = [namespace, name, url, path, reference].into_iter().flatten();
    texts.chain([kind]).all(|text| text.len() <= MAX_NAME)
}

impl Limited for DeclaredHalf {
    fn limit(&mut self) -> bool {
        let has_short_labels = self.has_short_labels();
        let DeclaredHalf {
            key,
            target,
            sync,
            source,
            labels,
            message,
            own,
            problems,
            syncs,
            upstreams,
            checks,
            ..
        } = self;
        // Most labels are short, and shared with other halves.
        if !has_short_labels {
            limit_labels(Arc::make_mut(labels));
        }
        let is_cut = !has_short_labels || problems.len() > MAX_PROBLEMS;
        let is_cut = bound_checks(checks) || is_cut;
        // Only a hub has results of checks.
        problems.retain(|problem| problem.axis != Axis::Check);
        problems.truncate(MAX_PROBLEMS);
        // The tool itself forgets old ones.
        syncs.truncate(MAX_SYNCS);
        let texts = cut_name(key) | target.limit() | sync.limit() | source.limit() | message.limit();
        is_cut | texts | own.limit() | problems.limit() | syncs.limit() | upstreams.limit()
    }
}

impl Limited for Arc<HalfUpstreams> {
    fn limit(&mut self) -> bool {
        !are_short_upstreams(self) && Arc::make_mut(self).limit()
    }
}

impl Limited for HalfUpstreams {
    fn limit(&mut self) -> bool {
        let HalfUpstreams { apps, left_out } = self;
        let more = apps.len().saturating_sub(MAX_RELATED);
        apps.truncate(MAX_RELATED);
        *left_out = left_out.saturating_add(more);
        apps.limit() || more > 0
    }
}

impl Limited for HalfUpstream {
    fn limit(&mut self) -> bool {
        self.app.home.limit() | self.app.app.limit()
    }
}

impl Limited for AppName {
    fn limit(&mut self) -> bool {
        cut_name(&mut self.namespace) | cut_name(&mut self.name)
    }
}

impl Limited for UpstreamProblem {
    fn limit(&mut self) -> bool {
        cut_name(&mut self.state) | self.message.limit() | self.object.limit() | self.app.limit()
    }
}

impl Limited for ObservedHalf {
    fn limit(&mut self) -> bool {
        self.worst.limit() | self.unmarked.limit()
    }
}

impl Limited for Speaker {
    fn limit(&mut self) -> bool {
        cut_name(&mut self.rule) | self.problem.limit()
    }
}

impl Limited for Problem {
    fn limit(&mut self) -> bool {
        let own = cut_name(&mut self.state) | self.message.limit() | self.object.limit();
        own | self.upstream.limit()
    }
}

impl Limited for ObjectKey {
    fn limit(&mut self) -> bool {
        let ObjectKey { group, kind, namespace, name: own } = self;
        cut_name(group) | cut_name(kind) | cut_name(namespace) | cut_name(own)
    }
}

impl Limited for Sync {
    fn limit(&mut self) -> bool {
        let revisions = [&mut self.desired, &mut self.attempted, &mut self.applied];
        revisions.into_iter().flatten().fold(false, |is_cut, revision| is_cut | cut_name(revision))
    }
}

impl Limited for SyncAttempt {
    fn limit(&mut self) -> bool {
        cut_name(&mut self.revision) | self.message.limit()
    }
}

impl Limited for Arc<Source> {
    fn limit(&mut self) -> bool {
        !is_short_source(self) && Arc::make_mut(self).limit()
    }
}

impl Limited for Source {
    fn limit(&mut self) -> bool {
        let Source { kind, namespace, name: own, url, path, reference } = self;
        let texts = [namespace, own, url, path, reference].into_iter().flatten();
        texts.fold(cut_name(kind), |is_cut, text| is_cut | cut_name(text))
    }
}

impl Limited for ClusterId {
    fn limit(&mut self) -> bool {
        cut_name(&mut self.0)
    }
}

impl Limited for Words {
    fn limit(&mut self) -> bool {
        let is_long = self.len() > MAX_MESSAGE;
        if is_long {
            *self = cut(self.as_str()).into();
        }
        is_long
    }
}

impl Limited for ClusterReport {
    fn limit(&mut self) -> bool {
        let ClusterReport {
            name: own,
            aliases,
            twin_of,
            id,
            version,
            labels,
            unverified,
            lost,
            blind,
            reading,
            nodes,
            nodes_unobserved,
            managed,
            servers,
            ..
        } = self;
        let mut is_cut = aliases.len() > MAX_LISTED || !are_short(labels);
        aliases.truncate(MAX_LISTED);
        limit_labels(labels);
        let names = [twin_of, id, version].into_iter().flatten().chain(aliases).chain([own]);
        is_cut |= names.fold(false, |is_cut, text| is_cut | cut_name(text));
        let lost = lost.iter_mut().flat_map(|lost| [&mut lost.message, &mut lost.silence]);
        let messages = [unverified, blind, nodes_unobserved].into_iter().flatten().chain(lost);
        is_cut |= messages.fold(false, |is_cut, text| is_cut | cut_message(text));
        servers.retain(|server| server.len() <= MAX_NAME);
        servers.truncate(MAX_LISTED);
        is_cut |= nodes.limit() | managed::limit(managed);
        let Some(reading) = reading else { return is_cut };
        for text in [&mut reading.lists, &mut reading.protocol] {
            if text.len() > MAX_NAME {
                is_cut |= cut_name(text.to_mut());
            }
        }
        is_cut |= reading.not_live.len() > MAX_LISTED;
        reading.not_live.truncate(MAX_LISTED);
        let rows = reading.not_live.iter_mut();
        rows.fold(is_cut, |is_cut, row| is_cut | cut_message(&mut row.scope) | cut_message(&mut row.message))
    }
}

impl Limited for Nodes {
    fn limit(&mut self) -> bool {
        self.ready = self.ready.min(self.total);
        let Some(UnreadyNode { name: own, reason, message, .. }) = &mut self.unready else { return false };
        cut_name(own) | cut_name(reason) | cut_message(message)
    }
}

impl Limited for ErrorRow {
    fn limit(&mut self) -> bool {
        let ErrorRow { cluster, scope, reason, message: own } = self;
        cut_name(cluster) | cut_message(scope) | cut_name(reason) | cut_message(own)
    }
}

impl<T: Limited> Limited for Option<T> {
    fn limit(&mut self) -> bool {
        self.as_mut().is_some_and(T::limit)
    }
}

impl<T: Limited> Limited for Box<T> {
    fn limit(&mut self) -> bool {
        T::limit(self)
    }
}

impl<T: Limited> Limited for Vec<T> {
    fn limit(&mut self) -> bool {
        self.iter_mut().fold(false, |is_cut, item| is_cut | item.limit())
    }
}

/// Shortens a text that is not a message to [`MAX_NAME`] bytes, with `…` at its end; returns true if it was longer.
fn cut_name(text: &mut String) -> bool {
    let is_long = text.len() > MAX_NAME;
    if is_long {
        text.truncate(text.floor_char_boundary(MAX_NAME - '…'.len_utf8()));
        text.push('…');
        text.shrink_to_fit();
    }
    is_long
}

/// Shortens a message to 4 KiB; returns true if it was longer.
fn cut_message(text: &mut String) -> bool {
    let is_long = text.len() > MAX_MESSAGE;
    if is_long {
        *text = cut(text.as_str()).into_owned();
    }
    is_long
}
