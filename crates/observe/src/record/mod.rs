//! Reads a cluster page by page and writes it in the form of [`crate::recording`], each page before the next ones are
//! read.

mod secrets;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::join;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use serde::Serialize;
use taffrail_apps::KindCatalog;
use taffrail_cluster::{ApiResource, Cluster, ListRequest, ReadError, Reason, chain};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{Object, Projection};
use tokio::sync::mpsc;

use crate::connector::ClusterConnector;
use crate::error::Failure;
use crate::look::catalog;
use crate::recording::{
    Broken, CLOSING, Closing, GROUP, Lost, Name, OPENING, Opening, RecordedScope, State, Unread, VERSION,
};
use secrets::{KeptValues, SecretsToRead};

/// Maximum number of concurrent requests to a cluster that is dumped; further ones wait.
const MAX_PARALLEL: usize = 4;

/// Maximum number of kinds in a dump; further ones are recorded as left out, with the reason `TooMany`.
const MAX_KINDS: usize = 5_000;

/// Maximum number of Secrets of a cluster read one by one for a dump; further ones are recorded as unread, with the
/// reason `TooMany`.
const MAX_SECRETS: usize = 10_000;

/// Maximum time of all pages of one list, as a multiple of the timeout of one request; a list that takes longer
/// fails.
const MAX_ANSWERS: u32 = 40;

/// Maximum length of a recorded message, in characters; a longer one is cut and ends in `…`.
const MAX_MESSAGE: usize = 4 << 10;

/// The objects to record of a cluster.
#[derive(Debug, Clone)]
pub struct RecordRequest {
    /// The only namespace to read, beside cluster-scoped objects; `None` for all.
    pub namespace: Option<String>,
    /// Size of the recorded objects, in bytes, from which on no further page is read; kinds not read to their end are
    /// recorded as failed.
    pub max_bytes: u64,
    /// True to record a cluster that does not answer too, with the reason.
    pub records_lost: bool,
}

/// The state of writing one cluster's dump.
struct Dump<'d> {
    cluster: &'d Cluster,
    /// The time for one request.
    timeout: Duration,
    namespace: Option<&'d str>,
    max_bytes: u64,
    lines: mpsc::Sender<Vec<u8>>,
    bytes: AtomicU64,
    count: AtomicU64,
    wanted: Mutex<SecretsToRead>,
}

/// Records a cluster: sends the lines of a dump to `lines`, several in one text, and an empty text as the last one,
/// without which the dump is incomplete. A cluster that does not answer has no lines, unless `request` asks for them.
/// Returns the last line, and the connection if there is one.
///
/// # Errors
/// Fails if the cluster or its kinds cannot be read.
pub async fn record(
    connector: &ClusterConnector,
    request: &RecordRequest,
    lines: mpsc::Sender<Vec<u8>>,
) -> (Result<Closing, Failure>, Option<Cluster>) {
    let cluster = match connector.connect().await {
        Ok(cluster) => cluster,
        Err(failure) => return (Err(lost(connector, request, &lines, failure).await), None),
    };
    let closing = record_connected(connector, &cluster, request, lines).await;
    (closing, Some(cluster))
}

/// Sends the lines of a dump of a cluster that did not answer, if `request` wants them, so that readers of the dump
/// know the cluster and why its apps are Unknown. Returns `failure`.
async fn lost(
    connector: &ClusterConnector,
    request: &RecordRequest,
    lines: &mpsc::Sender<Vec<u8>>,
    failure: Failure,
) -> Failure {
    if request.records_lost {
        let server =
            connector.member.context.as_ref().map_or_else(|_| String::new(), |context| context.server());
        let opening = opening(connector, server, request, Timestamp::now());
        let Failure { reason, message } = &failure;
        let lost = Some(Lost { reason: reason.clone(), message: cut(message) });
        let closing = Closing { lost, ..closing(&opening) };
        for line in [json_line(&opening), json_line(&closing), Vec::new()] {
            // The writer reports its own errors.
            let _ = lines.send(line).await;
        }
    }
    failure
}

/// Returns the first line of a dump, without the version and kinds that the server reports.
fn opening(
    connector: &ClusterConnector,
    server: String,
    request: &RecordRequest,
    observed_at: Timestamp,
) -> Opening {
    Opening {
        api_version: VERSION.to_owned(),
        kind: OPENING.to_owned(),
        metadata: Name { name: connector.member.name.clone() },
        server,
        version: None,
        observed_at: observed_at.to_string(),
        clock_ahead_seconds: None,
        namespace: request.namespace.clone(),
        kinds: Vec::new(),
        broken: Vec::new(),
    }
}

/// Returns the last line of a dump without objects.
fn closing(opening: &Opening) -> Closing {
    Closing {
        api_version: VERSION.to_owned(),
        kind: CLOSING.to_owned(),
        metadata: opening.metadata.clone(),
        lines: 0,
        scopes: Vec::new(),
        unread: Vec::new(),
        lost: None,
    }
}

fn json_line(line: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text
}

async fn record_connected(
    connector: &ClusterConnector,
    cluster: &Cluster,
    request: &RecordRequest,
    lines: mpsc::Sender<Vec<u8>>,
) -> Result<Closing, Failure> {
    let observed_at = Timestamp::now();
    let (discovery, version) = join(cluster.discover(), cluster.version()).await;
    let discovery = match discovery {
        Ok(discovery) => discovery,
        Err(error) => return Err(lost(connector, request, &lines, Failure::of_read(&error)).await),
    };
    let kinds = catalog(&discovery);
    let opening = Opening {
        version: version.ok(),
        clock_ahead_seconds: cluster.clock_ahead().map(|ahead| ahead.as_secs()),
        kinds: kinds.iter().filter(|kind| is_kept(&kind.group)).cloned().collect(),
        broken: kinds
            .broken_groups()
            .map(|(group, reason)| Broken { group: group.to_owned(), reason: cut(reason) })
            .collect(),
        ..opening(connector, cluster.server().to_owned(), request, observed_at)
    };
    let dump = Dump {
        cluster,
        timeout: connector.limits.request.unwrap_or(Duration::MAX),
        namespace: request.namespace.as_deref(),
        max_bytes: request.max_bytes,
        lines,
        bytes: AtomicU64::new(0),
        count: AtomicU64::new(0),
        wanted: Mutex::new(SecretsToRead::default()),
    };
    Ok(dump.all(&opening, &kinds).await)
}

/// Returns true if a dump includes the kinds of a group. It omits metrics, the second copy of Events in
/// `events.k8s.io`, and Taffrail's own [`GROUP`].
fn is_kept(group: &str) -> bool {
    group != GROUP
        && group != "events.k8s.io"
        && group != "metrics.k8s.io"
        && !group.ends_with(".metrics.k8s.io")
}

/// Returns the resource, in version `v1`, of the kind of the core group with this plural, `namespaced` or not.
fn core(kind: &str, plural: &str, namespaced: bool) -> ApiResource {
    let (group, version) = (String::new(), "v1".to_owned());
    ApiResource { group, version, kind: kind.to_owned(), plural: plural.to_owned(), namespaced }
}

impl Dump<'_> {
    /// Reads all kinds that can be listed and that a dump includes, and sends their objects to the writer; returns the
    /// last line.
    async fn all(&self, opening: &Opening, kinds: &KindCatalog) -> Closing {
        self.line(opening).await;
        let listable = kinds.iter().filter(|kind| kind.is_listable() && is_kept(&kind.group));
        let mut lists = Vec::new();
        for (at, kind) in listable.enumerate() {
            lists.push(async move { (at, self.list_within_bounds(at, &kind.resource()).await) });
        }
        let mut scopes: Vec<(usize, RecordedScope)> =
            stream::iter(lists).buffer_unordered(MAX_PARALLEL).collect().await;
        scopes.sort_unstable_by_key(|(at, _)| *at);
        let scopes: Vec<RecordedScope> = scopes.into_iter().map(|(_, scope)| scope).collect();
        let unread = self.identity(&scopes).await;
        let unread = unread.into_iter().chain(self.secrets(&scopes).await).collect();
        let lines = self.count.load(Ordering::Relaxed);
        let closing = Closing { lines, scopes, unread, ..closing(opening) };
        self.line(&closing).await;
        let _ = self.lines.send(Vec::new()).await;
        closing
    }

    async fn line(&self, line: &impl Serialize) {
        // The writer reports its own errors.
        let _ = self.lines.send(json_line(line)).await;
    }

    /// Returns the connection with a deadline at twice the time of one request from now, so that a request can be
    /// repeated.
    fn asked(&self) -> Cluster {
        // Each attempt has the time of a request.
        self.cluster.within(self.timeout.saturating_mul(2))
    }

    fn scope(&self, resource: &ApiResource) -> RecordedScope {
        RecordedScope {
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
            plural: resource.plural.clone(),
            namespace: self.namespace.filter(|_| resource.namespaced).map(str::to_owned),
            state: State::Read,
            reason: String::new(),
            message: String::new(),
            objects: 0,
        }
    }

    fn left_out(&self, resource: &ApiResource, reason: &str, message: &str) -> RecordedScope {
        let message = format!("{} were not read: {message}", resource.full_name());
        RecordedScope { state: State::Failed, reason: reason.to_owned(), message, ..self.scope(resource) }
    }

    async fn list_within_bounds(&self, at: usize, resource: &ApiResource) -> RecordedScope {
        match at < MAX_KINDS {
            true => self.list(resource).await,
            false => self.left_out(resource, "TooMany", "the cluster serves more kinds than a dump holds"),
        }
    }

    /// Lists a kind, and sends each page to the writer. Returns its scope, with the reason if the list was not read to
    /// its end or had items that are not objects.
    async fn list(&self, resource: &ApiResource) -> RecordedScope {
        let request = ListRequest { namespace: self.namespace, ..ListRequest::all(resource) };
        let mut scope = self.scope(resource);
        let mut token: Option<String> = None;
        let (mut pages, mut asked) = (0, Duration::ZERO);
        loop {
            if self.bytes.load(Ordering::Relaxed) >= self.max_bytes || self.lines.is_closed() {
                let left = self.left_out(resource, "TooLarge", "the dump has reached its --max-size");
                return RecordedScope { objects: scope.objects, ..left };
            }
            if let Err(error) = goes_on(&request, pages, asked, self.timeout) {
                return of_error(scope, &error);
            }
            pages += 1;
            let begun = Instant::now();
            let page = self.asked().list_page(&request, token.as_deref()).await;
            asked += begun.elapsed();
            let page = match page {
                Ok(page) => page,
                Err(error) => return of_error(scope, &error),
            };
            if let Some(item) = page.malformed.first() {
                scope.state = State::Failed;
                scope.reason = "Malformed".to_owned();
                let name = item.name.clone().unwrap_or_else(|| format!("item {}", item.index));
                scope.message = cut(&format!("{} {name} is left out: {}", resource.full_name(), item.reason));
            }
            let sent = self.send(&page.objects).await;
            if sent < page.objects.len() as u64 {
                scope.state = State::Failed;
                scope.reason = "Malformed".to_owned();
                scope.message = format!(
                    "items of the list of {} that are not objects were left out",
                    resource.full_name()
                );
            }
            scope.objects += sent;
            token = page.next;
            if token.is_none() {
                return scope;
            }
        }
    }

    /// Sends `objects` to the writer, each on one line and without the annotations in which tools keep a copy of it,
    /// and returns their number; leaves out values that are not objects. Records which Secrets to read because of them.
    async fn send(&self, objects: &[OwnedDocument]) -> u64 {
        let mut sent = 0;
        let mut text = Vec::with_capacity(objects.iter().map(|object| object.text().len() + 1).sum());
        for document in objects {
            let Ok(object) = Object::new(document.root()) else { continue };
            // In valid JSON a line break stands only between tokens.
            text.extend(secrets::without_copies(&object).iter().map(|&byte| match byte {
                b'\n' | b'\r' => b' ',
                byte => byte,
            }));
            text.push(b'\n');
            sent += 1;
            self.wanted.lock().unwrap_or_else(PoisonError::into_inner).see(&object);
        }
        self.count.fetch_add(sent, Ordering::Relaxed);
        self.bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
        // An empty text would be the last one.
        if !text.is_empty() {
            let _ = self.lines.send(text).await;
        }
        sent
    }

    /// Reads the Namespace kube-system, whose UID identifies the cluster, into the dump if Namespaces could not be
    /// listed; returns its entry for the unread objects if reading it failed, else `None`.
    async fn identity(&self, scopes: &[RecordedScope]) -> Option<Unread> {
        let scope = scopes.iter().find(|scope| scope.group.is_empty() && scope.kind == "Namespace")?;
        if scope.state == State::Read {
            return None;
        }
        let resource = core("Namespace", "namespaces", false);
        match self.asked().get(&resource, None, "kube-system", Projection::Metadata).await {
            Ok(Some(object)) => drop(self.send(&[object]).await),
            Ok(None) => {}
            Err(error) => return Some(unread("Namespace", "", "kube-system", &error)),
        }
        None
    }

    /// Reads the Secrets of which the dump keeps more than metadata, up to [`MAX_SECRETS`], and sends them to the
    /// writer; returns those that could not be read or are too many.
    async fn secrets(&self, scopes: &[RecordedScope]) -> Vec<Unread> {
        let all_listed = scopes
            .iter()
            .any(|scope| (&*scope.group, &*scope.kind, scope.state) == ("", "Secret", State::Read));
        let wanted = std::mem::take(&mut *self.wanted.lock().unwrap_or_else(PoisonError::into_inner));
        let wanted = wanted.list(all_listed);
        let resource = &core("Secret", "secrets", true);
        let mut reads = Vec::new();
        for (namespace, name, kept) in wanted.iter().take(MAX_SECRETS) {
            reads.push(self.secret(resource, namespace, name, kept));
        }
        let read: Vec<Option<Unread>> = stream::iter(reads).buffer_unordered(MAX_PARALLEL).collect().await;
        let left = wanted.iter().skip(MAX_SECRETS).map(|(namespace, name, _)| Unread {
            group: String::new(),
            kind: "Secret".to_owned(),
            namespace: namespace.clone(),
            name: name.clone(),
            reason: "TooMany".to_owned(),
            message: format!(
                "Secret {namespace}/{name} was not read: there are more Secrets than a dump may contain"
            ),
        });
        read.into_iter().flatten().chain(left).collect()
    }

    async fn secret(
        &self,
        resource: &ApiResource,
        namespace: &str,
        name: &str,
        kept: &KeptValues,
    ) -> Option<Unread> {
        if self.namespace.is_some_and(|own| own != namespace) || self.lines.is_closed() {
            return None;
        }
        // It is charged for what it sent until that is written.
        let asked = self.asked();
        let object = match asked.get(resource, Some(namespace), name, Projection::Full).await {
            Ok(object) => object?,
            Err(error) => return Some(unread("Secret", namespace, name, &error)),
        };
        let secret = secrets::masked(&Object::new(object.root()).ok()?, kept)?;
        self.send(&[secret]).await;
        None
    }
}

/// Checks that a list may read another page: fails after [`ListRequest::PAGES`] pages, or if the reading took longer
/// than [`MAX_ANSWERS`] times `timeout`.
fn goes_on(
    request: &ListRequest<'_>,
    pages: usize,
    asked: Duration,
    timeout: Duration,
) -> Result<(), ReadError> {
    if pages >= ListRequest::PAGES {
        return Err(request.too_many_pages());
    }
    match asked > timeout.saturating_mul(MAX_ANSWERS) {
        true => Err(request.too_slow(asked)),
        false => Ok(()),
    }
}

fn unread(kind: &str, namespace: &str, name: &str, error: &ReadError) -> Unread {
    Unread {
        group: String::new(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        reason: error.reason().as_str().to_owned(),
        message: cut(&chain(error)),
    }
}

fn of_error(scope: RecordedScope, error: &ReadError) -> RecordedScope {
    let state = match error.reason() {
        Reason::Forbidden => State::Forbidden,
        Reason::NotFound if scope.objects == 0 => State::NotServed,
        _ => State::Failed,
    };
    RecordedScope { state, reason: error.reason().as_str().to_owned(), message: cut(&chain(error)), ..scope }
}

/// Cuts a server's message after [`MAX_MESSAGE`] characters, and marks the cut with `…`.
fn cut(message: &str) -> String {
    match message.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_end_by_their_pages_and_by_their_time() {
        let resource = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            plural: "configmaps".to_owned(),
            namespaced: true,
        };
        let request = ListRequest::all(&resource);
        let second = Duration::from_secs(1);
        let reason = |pages, asked| goes_on(&request, pages, asked, second).err().map(|error| error.reason());
        assert_eq!(reason(300, second * 30), None);
        assert_eq!(reason(ListRequest::PAGES, second), Some(Reason::OverLimit));
        assert_eq!(reason(300, second * 41), Some(Reason::Timeout));
    }
}
