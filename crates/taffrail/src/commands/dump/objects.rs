//! Reads a cluster for its dump, writing each page before it reads the next ones.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::{join, join_all};
use jiff::Timestamp;
use serde::Serialize;
use taffrail_apps::KindCatalog;
use taffrail_cluster::{ApiResource, Cluster, ListRequest, ReadError, Reason};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{Object, Projection};
use taffrail_observe::recording::{
    Broken, CLOSING, Closing, GROUP, Lost, Name, OPENING, Opening, RecordedKind, RecordedScope, State,
    Unread, VERSION,
};
use taffrail_observe::{ClusterConnector, Failure, catalog};
use tokio::sync::mpsc;

use super::file::{Output, Target};
use super::secrets::{self, Kept, Wanted};
use crate::complaint::chain;

/// Bounds of a dump.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) bytes: u64,
    pub(super) kinds: usize,
    /// Maximum number of Secrets read one by one.
    pub(super) secrets: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: 4 << 30, kinds: 5_000, secrets: 10_000 }
    }
}

/// Number of concurrent requests.
const MAX_PARALLEL: usize = 4;

/// Maximum number of pages that wait to be written.
const MAX_WAITING: usize = 4;

/// Maximum time of all pages of one list, as a multiple of the timeout of one request.
const MAX_ANSWERS: u32 = 40;

/// Maximum length of a recorded message, in characters.
const MAX_MESSAGE: usize = 4 << 10;

/// The result of a dump.
pub(super) struct Written {
    pub(super) scopes: Vec<RecordedScope>,
    /// Number of objects that could not be read in full.
    pub(super) unread: usize,
}

/// The state of one cluster's dump.
struct Dump<'d> {
    cluster: &'d Cluster,
    live: &'d ClusterConnector,
    namespace: Option<&'d str>,
    limits: Limits,
    lines: mpsc::Sender<Vec<u8>>,
    bytes: AtomicU64,
    count: AtomicU64,
    wanted: Mutex<Wanted>,
}

/// Writes the dump of a cluster.
pub(super) async fn write(
    live: &ClusterConnector,
    target: Target,
    namespace: Option<String>,
    limits: Limits,
) -> (Result<Written, Failure>, Option<Cluster>) {
    match live.connect().await {
        Ok(cluster) => {
            let written = written(live, &cluster, target, namespace, limits).await;
            (written, Some(cluster))
        }
        Err(failure) => (Err(lost(live, &target, namespace, failure)), None),
    }
}

/// Writes the dump of a cluster that did not answer into the folder, so that `--from` knows the cluster and why its
/// apps are Unknown. Returns the failure, extended if that write fails too.
fn lost(live: &ClusterConnector, target: &Target, namespace: Option<String>, failure: Failure) -> Failure {
    if !matches!(target, Target::File { in_folder: true, .. }) {
        return failure;
    }
    let name = Name { name: live.member.name.clone() };
    let server = live.member.context.as_ref().map_or_else(|_| String::new(), |context| context.server());
    let opening = Opening {
        api_version: VERSION.to_owned(),
        kind: OPENING.to_owned(),
        metadata: name.clone(),
        server,
        version: None,
        observed_at: Timestamp::now().to_string(),
        clock_ahead_seconds: None,
        namespace,
        kinds: Vec::new(),
        broken: Vec::new(),
    };
    let closing = Closing {
        api_version: VERSION.to_owned(),
        kind: CLOSING.to_owned(),
        metadata: name,
        lines: 0,
        scopes: Vec::new(),
        unread: Vec::new(),
        lost: Some(Lost { reason: failure.reason.clone(), message: cut(&failure.message) }),
    };
    let put = || {
        let mut output = Output::open(target)?;
        output.write(&json_line(&opening))?;
        output.write(&json_line(&closing))?;
        output.finish()
    };
    match put() {
        Ok(()) => failure,
        Err(error) => Failure {
            message: format!("{}; {}", failure.message, unwritable(target, &error).message),
            ..failure
        },
    }
}

fn unwritable(target: &Target, error: &std::io::Error) -> Failure {
    let place = match target {
        Target::Stdout => "stdout".to_owned(),
        Target::File { path, .. } => path.display().to_string(),
    };
    Failure { reason: String::new(), message: format!("cannot write {place}: {error}") }
}

fn json_line(line: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text
}

async fn written(
    live: &ClusterConnector,
    cluster: &Cluster,
    target: Target,
    namespace: Option<String>,
    limits: Limits,
) -> Result<Written, Failure> {
    let observed_at = Timestamp::now();
    let (discovery, version) = join(cluster.discover(), cluster.version()).await;
    let discovery = match discovery {
        Ok(discovery) => discovery,
        Err(error) => return Err(lost(live, &target, namespace, failure(&error))),
    };
    let kinds = catalog(&discovery);
    let name = Name { name: live.member.name.clone() };
    let opening = Opening {
        api_version: VERSION.to_owned(),
        kind: OPENING.to_owned(),
        metadata: name.clone(),
        server: cluster.server().to_owned(),
        version: version.ok(),
        observed_at: observed_at.to_string(),
        clock_ahead_seconds: cluster.clock_ahead().map(|ahead| ahead.as_secs()),
        namespace: namespace.clone(),
        kinds: kinds.iter().filter(|kind| is_kept(&kind.group)).map(RecordedKind::from).collect(),
        broken: kinds
            .broken_groups()
            .map(|(group, reason)| Broken { group: group.to_owned(), reason: cut(reason) })
            .collect(),
    };

    let (lines, mut waiting) = mpsc::channel::<Vec<u8>>(MAX_WAITING);
    let place = target.clone();
    let writer = tokio::task::spawn_blocking(move || {
        let mut output = Output::open(&place)?;
        let mut last = false;
        while let Some(text) = waiting.blocking_recv() {
            last = text.is_empty();
            output.write(&text)?;
        }
        // Without the final empty line the dump is incomplete.
        match last {
            true => output.finish(),
            false => Err(std::io::Error::other("it was not read to its end")),
        }
    });
    let dump = Dump {
        cluster,
        live,
        namespace: namespace.as_deref(),
        limits,
        lines,
        bytes: AtomicU64::new(0),
        count: AtomicU64::new(0),
        wanted: Mutex::new(Wanted::default()),
    };
    let closing = dump.all(&opening, &kinds).await;
    drop(dump);
    let end = writer.await.map_err(|error| Failure { reason: String::new(), message: error.to_string() })?;
    end.map_err(|error| unwritable(&target, &error))?;
    Ok(Written { unread: closing.unread.len(), scopes: closing.scopes })
}

/// Returns true if a dump includes a group. Metrics are left out, and events' second copy in `events.k8s.io`.
fn is_kept(group: &str) -> bool {
    group != GROUP
        && group != "events.k8s.io"
        && group != "metrics.k8s.io"
        && !group.ends_with(".metrics.k8s.io")
}

impl Dump<'_> {
    /// Reads everything and sends it to the writer.
    async fn all(&self, opening: &Opening, kinds: &KindCatalog) -> Closing {
        self.line(opening).await;
        let listable = kinds.iter().filter(|kind| kind.is_listable() && is_kept(&kind.group));
        let resources: Vec<ApiResource> = listable
            .map(|kind| ApiResource {
                group: kind.group.clone(),
                version: kind.version.clone(),
                kind: kind.kind.clone(),
                plural: kind.plural.clone(),
                namespaced: kind.namespaced,
            })
            .collect();
        let next = AtomicUsize::new(0);
        let workers = (0..MAX_PARALLEL).map(|_| self.lists(&resources, &next));
        let mut scopes: Vec<(usize, RecordedScope)> = join_all(workers).await.concat();
        scopes.sort_unstable_by_key(|(at, _)| *at);
        let scopes: Vec<RecordedScope> = scopes.into_iter().map(|(_, scope)| scope).collect();
        let unread = self.identity(&scopes).await;
        let unread = unread.into_iter().chain(self.secrets().await).collect();
        let closing = Closing {
            api_version: VERSION.to_owned(),
            kind: CLOSING.to_owned(),
            metadata: opening.metadata.clone(),
            lines: self.count.load(Ordering::Relaxed),
            scopes,
            unread,
            lost: None,
        };
        self.line(&closing).await;
        // Marks the end: a dump without it is incomplete.
        let _ = self.lines.send(Vec::new()).await;
        closing
    }

    async fn line(&self, line: &impl Serialize) {
        // The writer reports its own errors.
        let _ = self.lines.send(json_line(line)).await;
    }

    /// Returns the client with the timeout of one request.
    fn asked(&self) -> Cluster {
        self.cluster.with_timeout(self.live.timeout)
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

    /// Lists kinds until none is left; each worker takes the next one.
    async fn lists(&self, resources: &[ApiResource], next: &AtomicUsize) -> Vec<(usize, RecordedScope)> {
        let mut scopes = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(resource) = resources.get(at) else { return scopes };
            let scope = match at < self.limits.kinds {
                true => self.list(resource).await,
                false => {
                    self.left_out(resource, "TooMany", "the cluster serves more kinds than a dump holds")
                }
            };
            scopes.push((at, scope));
        }
    }

    /// Lists a kind, and sends each page to the writer.
    async fn list(&self, resource: &ApiResource) -> RecordedScope {
        let request = ListRequest { namespace: self.namespace, ..ListRequest::all(resource) };
        let mut scope = self.scope(resource);
        let mut token: Option<String> = None;
        let (mut pages, mut asked) = (0, Duration::ZERO);
        loop {
            if self.bytes.load(Ordering::Relaxed) >= self.limits.bytes || self.lines.is_closed() {
                let left = self.left_out(resource, "TooLarge", "the dump has reached its --max-size");
                return RecordedScope { objects: scope.objects, ..left };
            }
            if let Err(error) = goes_on(&request, pages, asked, self.live.timeout) {
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
                scope.message = cut(&format!("{}: {name}: {}", resource.full_name(), item.reason));
            }
            let sent = self.send(&page.objects).await;
            if sent < page.objects.len() as u64 {
                scope.state = State::Failed;
                scope.reason = "Malformed".to_owned();
                scope.message = format!("{}: items that are no objects were left out", resource.full_name());
            }
            scope.objects += sent;
            token = page.next;
            if token.is_none() {
                return scope;
            }
        }
    }

    /// Sends objects to the writer, and returns their number.
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
        let _ = self.lines.send(text).await;
        sent
    }

    /// Reads the Namespace kube-system, whose UID identifies the cluster, if Namespaces cannot be listed.
    async fn identity(&self, scopes: &[RecordedScope]) -> Option<Unread> {
        let scope = scopes.iter().find(|scope| scope.group.is_empty() && scope.kind == "Namespace")?;
        if scope.state == State::Read {
            return None;
        }
        let resource = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            plural: "namespaces".to_owned(),
            namespaced: false,
        };
        match self.asked().get(&resource, None, "kube-system", Projection::Metadata).await {
            Ok(Some(object)) => drop(self.send(&[object]).await),
            Ok(None) => {}
            Err(error) => return Some(unread("Namespace", "", "kube-system", &error)),
        }
        None
    }

    /// Reads the Secrets of which more than metadata is kept.
    async fn secrets(&self) -> Vec<Unread> {
        let wanted = std::mem::take(&mut *self.wanted.lock().unwrap_or_else(PoisonError::into_inner)).list();
        let next = AtomicUsize::new(0);
        let workers = (0..MAX_PARALLEL).map(|_| self.each_secret(&wanted, &next));
        let read: Vec<Vec<Unread>> = join_all(workers).await;
        let left = wanted.iter().skip(self.limits.secrets).map(|(namespace, name, _)| Unread {
            group: String::new(),
            kind: "Secret".to_owned(),
            namespace: namespace.clone(),
            name: name.clone(),
            reason: "TooMany".to_owned(),
            message: format!("Secret {namespace}/{name}: there are more than a dump holds"),
        });
        read.into_iter().flatten().chain(left).collect()
    }

    /// Reads Secrets until none is left; each worker takes the next one.
    async fn each_secret(&self, wanted: &[(String, String, Kept)], next: &AtomicUsize) -> Vec<Unread> {
        let resource = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            plural: "secrets".to_owned(),
            namespaced: true,
        };
        let mut unread = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((namespace, name, kept)) = wanted.get(at).filter(|_| at < self.limits.secrets) else {
                return unread;
            };
            unread.extend(self.secret(&resource, namespace, name, kept).await);
        }
    }

    async fn secret(
        &self,
        resource: &ApiResource,
        namespace: &str,
        name: &str,
        kept: &Kept,
    ) -> Option<Unread> {
        if self.namespace.is_some_and(|own| own != namespace) || self.lines.is_closed() {
            return None;
        }
        let object = match self.asked().get(resource, Some(namespace), name, Projection::Full).await {
            Ok(object) => object?,
            Err(error) => return Some(unread("Secret", namespace, name, &error)),
        };
        let secret = secrets::masked(&Object::new(object.root()).ok()?, kept)?;
        let secret = OwnedDocument::parse(secret.to_string().into_bytes()).ok()?;
        self.send(&[secret]).await;
        None
    }
}

/// Returns an error once a list has used up its pages or its time.
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

fn failure(error: &ReadError) -> Failure {
    Failure { reason: error.reason().as_str().to_owned(), message: chain(error) }
}

/// Cuts a server's message to [`MAX_MESSAGE`] characters.
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
