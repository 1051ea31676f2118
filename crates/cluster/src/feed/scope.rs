//! The task of one scope: list, watch, and begin again where that ends.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use percent_encoding::utf8_percent_encode;
use taffrail_status::json::{Parser, Part};
use tokio::sync::oneshot;

use super::contact::renew;
use super::decode::{Travelling, went_back};
use super::pace::{Pause, Purpose};
use super::stream::{Refusal, Stream, open};
use super::{Batch, Delivery, Followed, Lists, Message, Scope, ScopeState, Shared};
use crate::error::{ReadError, Reason};
use crate::read::{ESCAPED, Form, METADATA, METADATA_LIST, WHOLE, path_of};
use crate::request::{Ask, JSON};

/// Objects in a page.
const PAGE: u32 = 500;

/// A server nearer than this streams its lists: each further page would cost less than the compression of one.
const NEAR: Duration = Duration::from_millis(15);

/// How much of a watch is handed over at once while more is there already.
const CHUNK: usize = 512 << 10;

/// Answers are kept whole; more than this is not a page of a list.
const LARGEST_PAGE: usize = 1 << 30;

/// The reader is gone.
pub(super) struct Unread;

/// Why a list or watch ended.
enum Ended {
    /// As planned: the watch goes on from where it was.
    Closed,
    /// It was silent for too long.
    Silent,
    /// What was known is void.
    Expired,
    /// It failed.
    Failed(Refusal),
}

impl From<ReadError> for Ended {
    fn from(error: ReadError) -> Ended {
        Ended::Failed(error.into())
    }
}

/// Whether lists are read as streams.
pub(super) fn streams(shared: &Shared) -> bool {
    !shared.no_streams.load(Ordering::Relaxed)
        && match shared.settings.lists {
            Lists::Streams => true,
            Lists::Pages => false,
            Lists::Measured => shared.connection().cluster.round_trip() < NEAR,
        }
}

struct Task<'a> {
    shared: &'a Shared,
    followed: &'a Arc<Followed>,
    what: String,
    state: Option<ScopeState>,
    /// The last watch did not end as planned: the server may be another one than it was.
    doubtful: bool,
}

pub(super) async fn follow(shared: &Shared, followed: &Arc<Followed>) -> Result<(), Unread> {
    let mut task = Task { shared, followed, what: what(&followed.scope), state: None, doubtful: false };
    let mut pause = Pause::new(shared.settings.longest_pause);
    let mut epoch = shared.epoch.subscribe();
    let mut returned = shared.returned.subscribe();
    let mut listed_before = false;
    let mut unreadable = 0;
    loop {
        returned.mark_unchanged();
        let ended = tokio::select! {
            // What became void during a pause is void.
            biased;
            _ = epoch.changed() => Ended::Expired,
            ended = task.round(&mut listed_before) => ended?,
        };
        task.doubtful = matches!(ended, Ended::Silent | Ended::Failed(_));
        let refusal = match ended {
            Ended::Closed => {
                pause.reset();
                unreadable = 0;
                continue;
            }
            Ended::Silent => {
                shared.costs.silence();
                shared.doubted.notify_one();
                continue;
            }
            Ended::Expired => {
                // What is still under way is of the state that is void.
                task.read().await?;
                task.forget();
                continue;
            }
            Ended::Failed(refusal) => refusal,
        };
        let reason = refusal.error.reason();
        let message = refusal.error.to_string();
        let mut wait = pause.next();
        match reason {
            // The version is no longer kept.
            Reason::Gone => {
                task.forget();
                continue;
            }
            Reason::Forbidden => {
                task.forget();
                task.tell(ScopeState::Forbidden { message }).await?;
                wait = shared.settings.forbidden_pause.mul_f64(0.75 + 0.5 * fastrand::f64());
            }
            Reason::NotFound => {
                task.forget();
                task.tell(ScopeState::Absent).await?;
                wait = shared.settings.forbidden_pause.mul_f64(0.75 + 0.5 * fastrand::f64());
            }
            Reason::Unauthorized => {
                let generation = shared.connection().generation;
                let renewed = renew(shared, generation).await;
                let message = renewed.err().map_or(message.clone(), |why| format!("{message}; {why}"));
                task.tell(ScopeState::Broken { reason: reason.as_str(), message }).await?;
            }
            Reason::UnexpectedAnswer | Reason::NotJson => {
                unreadable += 1;
                // A watch that brings what cannot be read may go on well after it; if it does not, the list may.
                if unreadable > 1 {
                    task.forget();
                }
                task.tell(ScopeState::Broken { reason: reason.as_str(), message }).await?;
            }
            _ => {
                // Whether it is this scope or the server is for the server to say.
                shared.doubted.notify_one();
                task.tell(ScopeState::Broken { reason: reason.as_str(), message }).await?;
            }
        }
        if let Some(asked) = refusal.retry_after {
            wait = asked.max(wait);
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            // Nobody sends the server's return without its handle.
            _ = returned.changed() => {
                // Those who return together do not ask together.
                tokio::time::sleep(Duration::from_millis(fastrand::u64(0..500))).await;
            }
        }
    }
}

/// What is being done, in the words of an error message.
fn what(scope: &Scope) -> String {
    let mut what = format!("watch {}", scope.resource.full_name());
    if let Some(namespace) = &scope.namespace {
        // Writing to a string cannot fail.
        let _ = write!(what, " in namespace {namespace}");
    }
    what
}

fn path(scope: &Scope, parameters: &[(&str, &str)]) -> String {
    let mut path = path_of(&scope.resource, scope.namespace.as_deref());
    let selectors = [("labelSelector", &scope.labels), ("fieldSelector", &scope.fields)]
        .map(|(key, it)| (key, it.as_deref()));
    let selectors = selectors.iter().filter_map(|(key, it)| it.map(|it| (*key, it)));
    for (at, (key, value)) in parameters.iter().copied().chain(selectors).enumerate() {
        let separator = if at == 0 { '?' } else { '&' };
        let _ = write!(path, "{separator}{key}={}", utf8_percent_encode(value, ESCAPED));
    }
    path
}

impl Task<'_> {
    async fn send(&self, delivery: Delivery) -> Result<(), Unread> {
        self.shared.outbox.send(Message::Delivery(delivery)).await.map_err(|_| Unread)
    }

    async fn tell(&mut self, state: ScopeState) -> Result<(), Unread> {
        if self.state.as_ref() == Some(&state) {
            return Ok(());
        }
        self.state = Some(state.clone());
        self.send(Delivery::State(self.followed.id, state)).await
    }

    async fn batch(&self, text: Vec<u8>, form: Travelling) -> Result<(), Unread> {
        self.send(Delivery::Batch(Batch { followed: self.followed.clone(), text, form })).await
    }

    /// Waits until everything that was sent has been read.
    async fn read(&self) -> Result<(), Unread> {
        let (answer, read) = oneshot::channel();
        self.shared.outbox.send(Message::Barrier(answer)).await.map_err(|_| Unread)?;
        read.await.map_err(|_| Unread)
    }

    /// From the beginning, the next time.
    fn forget(&self) {
        *self.followed.progress() = super::Progress::default();
    }

    /// A list where there is none yet, and a watch.
    async fn round(&mut self, listed_before: &mut bool) -> Result<Ended, Unread> {
        let complete = self.followed.progress().complete;
        if complete {
            if self.doubtful
                && let Some(ended) = self.went_back().await?
            {
                return Ok(ended);
            }
            return self.watch(false).await;
        }
        if std::mem::replace(listed_before, true) {
            self.shared.costs.relist();
        }
        self.forget();
        if streams(self.shared) {
            let ended = self.watch(true).await?;
            match &ended {
                Ended::Failed(refusal) if refuses_streams(refusal) => {
                    self.shared.no_streams.store(true, Ordering::Relaxed);
                }
                _ => return Ok(ended),
            }
        }
        match self.list().await? {
            Ended::Closed => self.watch(false).await,
            ended => Ok(ended),
        }
    }

    /// Asks at which version the server is, before a watch goes on from a later one: a server that was restored from a
    /// backup does not say so, it is only silent until it has come as far again.
    async fn went_back(&mut self) -> Result<Option<Ended>, Unread> {
        let scope = &self.followed.scope;
        let ask =
            Ask { what: self.what.clone(), path: path(scope, &[("limit", "1")]), accept: METADATA_LIST };
        let mut stream = match open(self.shared, &ask, Purpose::Probe, true).await {
            Ok(stream) => stream,
            Err(refusal) => return Ok(Some(Ended::Failed(refusal))),
        };
        let mut page = Vec::new();
        loop {
            let next = tokio::time::timeout(self.shared.settings.silence, stream.next(self.shared)).await;
            match next {
                Err(_) => return Ok(Some(Ended::Silent)),
                Ok(None) => break,
                Ok(Some(Ok(bytes))) if page.len() + bytes.len() <= LARGEST_PAGE => {
                    page.extend_from_slice(&bytes)
                }
                Ok(Some(Ok(_))) => break,
                Ok(Some(Err(error))) => return Ok(Some(error.into())),
            }
        }
        let mut found = None;
        let read = Parser::new().envelope(&page, |part| {
            if let Part::Member(b"metadata", metadata) = part {
                found = metadata.get("resourceVersion").and_then(|it| it.as_str()).map(|it| it.into_owned());
            }
        });
        if let Err(error) = read {
            let problem = format!("the answer is malformed: {error}");
            return Ok(Some(ReadError::Unexpected { what: ask.what, problem }.into()));
        }
        let before = self.followed.progress().resource_version.clone();
        Ok(found.filter(|found| went_back(&before, found)).map(|_| Ended::Expired))
    }

    /// Reads a list page by page.
    async fn list(&mut self) -> Result<Ended, Unread> {
        // The semaphore is never closed.
        let Ok(_place) = self.shared.lists.acquire().await else { return Err(Unread) };
        self.tell(ScopeState::CatchingUp).await?;
        self.send(Delivery::Began(self.followed.id)).await?;
        let scope = &self.followed.scope;
        let accept = if scope.form == Form::Metadata { METADATA_LIST } else { JSON };
        let limit = PAGE.to_string();
        let mut continued: Option<String> = None;
        loop {
            let mut parameters = vec![("limit", limit.as_str())];
            if let Some(token) = &continued {
                parameters.push(("continue", token));
            }
            let ask = Ask { what: self.what.clone(), path: path(scope, &parameters), accept };
            let mut stream = match open(self.shared, &ask, Purpose::List, true).await {
                Ok(stream) => stream,
                Err(refusal) => return Ok(Ended::Failed(refusal)),
            };
            let mut page = Vec::new();
            loop {
                let Ok(next) =
                    tokio::time::timeout(self.shared.settings.silence, stream.next(self.shared)).await
                else {
                    return Ok(Ended::Silent);
                };
                match next {
                    None => break,
                    Some(Ok(bytes)) if page.len() + bytes.len() <= LARGEST_PAGE => {
                        page.extend_from_slice(&bytes)
                    }
                    Some(Ok(_)) => {
                        let problem = format!("the answer is larger than {} MiB", LARGEST_PAGE >> 20);
                        return Ok(ReadError::Unexpected { what: ask.what, problem }.into());
                    }
                    Some(Err(error)) => return Ok(error.into()),
                }
            }
            drop(stream);
            self.batch(page, Travelling::Page).await?;
            self.read().await?;
            let mut progress = self.followed.progress();
            if let Some(problem) = progress.unreadable.take() {
                return Ok(ReadError::Unexpected { what: ask.what, problem }.into());
            }
            let next = progress.continued.take();
            drop(progress);
            match next {
                None => break,
                // The same page again would be the same page for ever.
                Some(token) if continued.as_ref() == Some(&token) => {
                    let problem = "the server repeats a page".to_owned();
                    return Ok(ReadError::Unexpected { what: ask.what, problem }.into());
                }
                Some(token) => continued = Some(token),
            }
        }
        self.tell(ScopeState::Live).await?;
        Ok(Ended::Closed)
    }

    /// Watches until that ends; `initial` begins with everything that is there.
    async fn watch(&mut self, initial: bool) -> Result<Ended, Unread> {
        // So long that most end by other causes, and each a little different.
        let seconds = (300 + fastrand::u32(0..300)).to_string();
        let version = self.followed.progress().resource_version.clone();
        let mut parameters =
            vec![("watch", "1"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", seconds.as_str())];
        let place = if initial {
            parameters.extend([("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]);
            // The semaphore is never closed.
            let Ok(place) = self.shared.lists.acquire().await else { return Err(Unread) };
            Some(place)
        } else {
            parameters.push(("resourceVersion", &version));
            None
        };
        let scope = &self.followed.scope;
        let accept = if scope.form == Form::Metadata { METADATA } else { JSON };
        let ask = Ask { what: self.what.clone(), path: path(scope, &parameters), accept };
        let mut stream = match open(self.shared, &ask, Purpose::Watch, !streams(self.shared)).await {
            Ok(stream) => stream,
            Err(refusal) => return Ok(Ended::Failed(refusal)),
        };
        if initial {
            self.tell(ScopeState::CatchingUp).await?;
            self.send(Delivery::Began(self.followed.id)).await?;
        } else {
            self.tell(ScopeState::Live).await?;
        }
        let ended = self.lines(&mut stream, place).await?;
        drop(stream);
        self.read().await?;
        let mut progress = self.followed.progress();
        if progress.expired.take().is_some() {
            return Ok(Ended::Expired);
        }
        if let Some((code, message)) = progress.refused.take() {
            return Ok(ReadError::Refused { what: ask.what, code, message }.into());
        }
        if let Some(problem) = progress.unreadable.take() {
            return Ok(ReadError::Unexpected { what: ask.what, problem }.into());
        }
        if !progress.complete && matches!(ended, Ended::Closed) {
            let problem = "the server ended a list before it was complete".to_owned();
            return Ok(ReadError::Unexpected { what: ask.what, problem }.into());
        }
        Ok(ended)
    }

    /// Hands over the lines of a watch. `place` is kept until the list in it is complete.
    async fn lines(
        &mut self,
        stream: &mut Stream,
        mut place: Option<tokio::sync::SemaphorePermit<'_>>,
    ) -> Result<Ended, Unread> {
        let longest = self.shared.settings.longest_line;
        let mut held: Vec<u8> = Vec::new();
        // Of a line that is too long, only its end is looked for.
        let mut skipping = false;
        loop {
            let next = tokio::time::timeout(self.shared.settings.silence, stream.next(self.shared)).await;
            let mut next = match next {
                Ok(next) => next,
                Err(_) => return Ok(Ended::Silent),
            };
            let mut ended = None;
            // What is here already goes in one batch.
            loop {
                match next {
                    None => ended = Some(Ended::Closed),
                    Some(Err(error)) => ended = Some(error.into()),
                    Some(Ok(bytes)) => {
                        let bytes = if skipping { after_newline(&bytes, &mut skipping) } else { bytes };
                        held.extend_from_slice(&bytes);
                    }
                }
                if ended.is_some() || held.len() >= CHUNK {
                    break;
                }
                match stream.ready(self.shared) {
                    Some(more) => next = Some(more),
                    None => break,
                }
            }
            if let Some(end) = memchr::memrchr(b'\n', &held) {
                let rest = held.split_off(end + 1);
                let lines = std::mem::replace(&mut held, rest);
                self.batch(lines, Travelling::Lines).await?;
                if place.is_some() {
                    // The list is complete only for who has read it.
                    self.read().await?;
                    if self.followed.progress().complete {
                        place = None;
                        self.tell(ScopeState::Live).await?;
                    }
                }
                let progress = self.followed.progress();
                if progress.expired.is_some() || progress.refused.is_some() || progress.unreadable.is_some() {
                    return Ok(Ended::Closed);
                }
            } else if held.len() > longest {
                held.truncate(400);
                self.batch(std::mem::take(&mut held), Travelling::TooLong { limit: longest }).await?;
                skipping = true;
            }
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }
}

/// What follows the first newline; as long as none comes, the skipping goes on.
fn after_newline(bytes: &Bytes, skipping: &mut bool) -> Bytes {
    match memchr::memchr(b'\n', bytes) {
        Some(at) => {
            *skipping = false;
            bytes.slice(at + 1..)
        }
        None => Bytes::new(),
    }
}

/// Whether the server has no streamed lists: it says that the request is invalid.
fn refuses_streams(refusal: &Refusal) -> bool {
    match &refusal.error {
        ReadError::Refused { code, .. } => matches!(code, 400 | 422),
        ReadError::Unexpected { problem, .. } => problem == WHOLE,
        _ => false,
    }
}
