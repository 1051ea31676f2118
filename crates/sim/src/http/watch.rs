//! Watch requests: a position in the log of changes, and the stream that follows it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::header;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Frame;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Asked;
use super::answer::{Answer, write_status};
use super::list::{check_options, key_prefix};
use super::negotiate::{Form, form};
use crate::behaviour::Behaviour;
use crate::error::{Answered, ApiError};
use crate::selector::Selector;
use crate::state::Inner;
use crate::store::Object;
use crate::table;
use crate::target::Target;

/// The duration of a watch whose client sets no timeout; kube-apiserver chooses 30 to 60 minutes.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(45 * 60);

struct Watch {
    inner: Arc<Inner>,
    target: Target,
    selector: Selector,
    prefix: String,
    form: Form,
    include: String,
    start: String,
    /// The resourceVersion up to which the changes were sent, or left out because they do not match.
    at: u64,
    /// The existing objects that are sent before changes.
    initial: Vec<Arc<Object>>,
    /// True to send a bookmark after the initial objects, if the client wants bookmarks.
    ends_initial: bool,
    bookmarks: bool,
    changed: watch::Receiver<u64>,
    deadline: Instant,
    next_bookmark: Option<Instant>,
    columns_told: bool,
    over: bool,
}

pub(super) fn answer(inner: &Arc<Inner>, asked: &Asked, target: &Target) -> Answered<Answer> {
    let query = &asked.query;
    let does = &inner.does;
    let form = form(asked.header(header::ACCEPT), does)?;
    check_options(query, true, inner)?;
    let selector = Selector::parse(
        query.get("labelSelector"),
        query.get("fieldSelector"),
        &target.resource,
        &target.version,
        does,
    )?;
    let text = query.get("resourceVersion");
    let version = match text {
        "" => 0,
        text => text.parse::<u64>().map_err(|_| {
            let why = format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax");
            ApiError::plain(500, &why)
        })?,
    };
    let streaming = query.is_true("sendInitialEvents") && does.on(Behaviour::StreamingLists);
    let refused = query.has("sendInitialEvents") && !query.is_true("sendInitialEvents");
    let mut store = inner.store();
    if streaming && version > store.version() {
        return Err(ApiError::too_large_version(version, store.version()));
    }
    let prefix =
        if does.on(Behaviour::WatchNamespaced) { key_prefix(&target.namespace) } else { String::new() };
    let from_now = version == 0 || streaming;
    let at = if from_now { store.version() } else { version };
    let tells_initial = (from_now && !refused && does.on(Behaviour::WatchFromNowTells)) || streaming;
    let initial = if tells_initial {
        let all = store.range(target.shelf, &prefix, None).map(|(_, object)| object.clone());
        all.filter(|object| selector.matches(object)).collect()
    } else {
        Vec::new()
    };
    let changed = store.subscribe(target.shelf).ok_or_else(ApiError::no_resource)?;
    drop(store);
    let seconds = query.get("timeoutSeconds").parse::<u64>().ok().filter(|seconds| *seconds > 0);
    let asked_for = seconds.filter(|_| does.on(Behaviour::WatchTimeout)).map(Duration::from_secs);
    let now = Instant::now();
    let deadline = now + asked_for.unwrap_or(DEFAULT_TIMEOUT).min(Duration::from_secs(86_400));
    let mut watch = Watch {
        inner: inner.clone(),
        start: target.item_start(),
        target: target.clone(),
        selector,
        prefix,
        form,
        include: query.get("includeObject").to_owned(),
        at,
        initial,
        ends_initial: streaming,
        bookmarks: query.is_true("allowWatchBookmarks") || !does.on(Behaviour::BookmarksOnRequest),
        changed,
        deadline,
        next_bookmark: None,
        columns_told: false,
        over: false,
    };
    watch.plan_bookmark(now);
    let events = stream::unfold(watch, |mut watch| async move {
        let text = watch.next().await?;
        Some((Ok(Frame::data(Bytes::from(text))), watch))
    });
    Ok(Answer::stream(UnsyncBoxBody::new(StreamBody::new(events))))
}

impl Watch {
    /// Waits for changes and returns the next lines to send; `None` at the end of the watch.
    async fn next(&mut self) -> Option<Vec<u8>> {
        if self.over {
            return None;
        }
        let mut out = Vec::new();
        for object in std::mem::take(&mut self.initial) {
            self.write("ADDED", &object, &mut out);
        }
        if std::mem::take(&mut self.ends_initial) && self.bookmarks {
            self.write_bookmark(&mut out, true);
        }
        loop {
            // Before looking, so that a change during the look counts as a new one.
            self.changed.mark_unchanged();
            self.collect(&mut out);
            if !out.is_empty() || self.over {
                return Some(out);
            }
            let bookmark = self.next_bookmark;
            tokio::select! {
                changed = self.changed.changed() => {
                    if changed.is_err() {
                        // The resource is no longer served.
                        return None;
                    }
                }
                () = tokio::time::sleep_until(self.deadline) => return None,
                () = sleep_until(bookmark) => {
                    self.write_bookmark(&mut out, false);
                    self.plan_bookmark(Instant::now());
                    return Some(out);
                }
            }
        }
    }

    /// Appends the changes since the last call to `out`. Ends the watch if the resource is no longer served, or, with
    /// an error in `out`, if the log does not reach back so far.
    fn collect(&mut self, out: &mut Vec<u8>) {
        let inner = self.inner.clone();
        let does = &inner.does;
        let events = {
            let store = inner.store();
            if store.resource(self.target.shelf).is_none() {
                self.over = true;
                return;
            }
            let found = store.after(self.target.shelf, self.at).map(|events| {
                events.filter(|event| event.key.starts_with(&self.prefix)).cloned().collect::<Vec<_>>()
            });
            match found {
                Ok(events) => {
                    self.at = store.version().max(self.at);
                    events
                }
                Err(forgotten) => {
                    self.over = true;
                    if does.on(Behaviour::WatchTooOld) {
                        let message = format!("too old resource version: {} ({})", self.at, forgotten.oldest);
                        out.extend_from_slice(b"{\"type\":\"ERROR\",\"object\":");
                        write_status(&ApiError::expired(message), out);
                        out.extend_from_slice(b"}\n");
                    }
                    return;
                }
            }
        };
        for event in events {
            let before = event.before.as_deref().is_some_and(|before| self.selector.matches(before));
            let now = !event.deleted && self.selector.matches(&event.object);
            let kind = match (before, now) {
                (false, true) => "ADDED",
                (true, true) if does.on(Behaviour::WatchModified) => "MODIFIED",
                (true, false) if event.deleted && does.on(Behaviour::WatchDeleted) => "DELETED",
                (true, false) if !event.deleted && does.on(Behaviour::WatchLeaving) => "DELETED",
                _ => continue,
            };
            if kind == "ADDED"
                && (!does.on(Behaviour::WatchAdded)
                    || event.before.is_some() && !does.on(Behaviour::WatchEntering))
            {
                continue;
            }
            self.write(kind, &event.object, out);
        }
    }

    fn write(&mut self, kind: &str, object: &Object, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{{\"type\":\"{kind}\",\"object\":").as_bytes());
        match self.form {
            Form::Whole => object.write(&self.start, out),
            Form::Partial => object.write_partial(out),
            Form::Table => {
                let first = !std::mem::replace(&mut self.columns_told, true);
                let with_columns = first || !self.inner.does.on(Behaviour::WatchColumnsOnce);
                table::write_one(out, &self.inner, &self.target, object, &self.include, with_columns);
            }
        }
        out.extend_from_slice(b"}\n");
    }

    fn write_bookmark(&self, out: &mut Vec<u8>, ends_initial: bool) {
        let mut metadata = json!({"resourceVersion": self.at.to_string(), "creationTimestamp": null});
        if ends_initial && self.inner.does.on(Behaviour::InitialEventsEnd) {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let (kind, api_version) = match self.form {
            Form::Whole => (self.target.resource.kind.to_string(), self.target.api_version()),
            Form::Partial => ("PartialObjectMetadata".to_owned(), "meta.k8s.io/v1".to_owned()),
            Form::Table => ("Table".to_owned(), "meta.k8s.io/v1".to_owned()),
        };
        let mut object = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        if self.form == Form::Table {
            object["columnDefinitions"] = json!(null);
            object["rows"] = json!([]);
        }
        out.extend_from_slice(format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n").as_bytes());
    }

    /// Sets the time of the next bookmark: after the regular interval, or 2 s before the watch ends if that is earlier;
    /// `None` if the client wants no bookmarks.
    fn plan_bookmark(&mut self, now: Instant) {
        if !self.bookmarks || !self.inner.does.on(Behaviour::Bookmarks) {
            self.next_bookmark = None;
            return;
        }
        let regular = now + self.inner.fleet.options.bookmark_every;
        let farewell = self.deadline.checked_sub(Duration::from_secs(2)).filter(|at| *at > now);
        self.next_bookmark = Some(farewell.map_or(regular, |farewell| farewell.min(regular)));
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
