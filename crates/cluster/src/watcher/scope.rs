//! The task of one scope: lists, watches, and starts again when that ends.

use std::fmt::Write;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use percent_encoding::utf8_percent_encode;
use taffrail_object::json::{Parser, Part};
use taffrail_object::protobuf::schema::of_kind;
use taffrail_object::{ApiResource, Projection};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::backoff::Backoff;
use super::connectivity::renew;
use super::decode::{WireFormat, split, went_back};
use super::skipping::Skipping;
use super::stream::{Refusal, Stream, open};
use super::unread::Unread;
use super::{Batch, ListStrategy, Message, ReaderGone, Scope, ScopeWatch, Shared, WatchEvent, WatchState};
use crate::costs::Purpose;
use crate::error::{Phase, ReadError, Reason};
use crate::memory::Held;
use crate::read::{
    ESCAPED, ListRequest, MAX_OBJECT_BYTES, METADATA, METADATA_LIST, METADATA_PROTOBUF, PROTOBUF, WHOLE,
    cost_while_parsed, index_cost, path_of,
};
use crate::request::{Ask, JSON, MAX_RESPONSE as MAX_PAGE_BYTES, too_large};

/// Number of objects per page of the first list.
const FIRST_PAGE: u32 = 500;
/// Factor by which the pages grow after each list that was too slow for its pages' token.
const PAGE_GROWTH: u32 = 8;
/// Maximum number of objects per page: the size of pages grows after each list that was too slow, up to this.
const MAX_PAGE: u32 = 32_000;

/// Round-trip time below which lists are streamed: further pages then cost less than compressing one.
const NEAR_ROUND_TRIP: Duration = Duration::from_millis(15);

/// Size of received watch events, in bytes, from which they are delivered as a batch though more are available at
/// once.
const MAX_CHUNK: usize = 512 << 10;

/// Maximum number of bytes of a response in progress for which the cluster's memory share is not charged; a larger
/// response is charged whole.
const MAX_UNCHARGED: usize = 16 << 10;

/// A watch that ends earlier than planned by more than this was ended by the server or a proxy.
const END_TOLERANCE: Duration = Duration::from_secs(10);

/// A watch that ends sooner than this has ended at once: the next one waits for the backoff, whatever it brought.
const MIN_WATCH: Duration = Duration::from_secs(1);

/// Number of consecutive watches that may end at once, without a change, before that is reported as a failure: a server
/// that shuts down ends one.
const MAX_EARLY_ENDS: u32 = 1;
/// Number of consecutive watches that may end at once although they brought changes, before that is reported as a
/// failure: such a watch works, though badly.
const MAX_EARLY_ENDS_WITH_CHANGES: u32 = 4;

/// Time after which a new watch is regarded as caught up: a server sends the events since a version at once, but does
/// not mark their end.
const CATCH_UP_TIME: Duration = Duration::from_millis(500);

/// The reason why a list or watch ended.
enum Ended {
    /// The list is complete, or the watch ended as planned; the next watch continues from its position.
    Closed,
    /// The watch ended without an error, but long before the planned end: the server may be shutting down, end every
    /// watch, or be overloaded.
    Early {
        /// True if the watch ended as soon as it began.
        at_once: bool,
        /// True if the watch delivered a change or a bookmark with another resource version before it ended.
        moved: bool,
    },
    /// The list or watch was silent for too long.
    Silent,
    /// The process or its machine was asleep: the watch may not deliver events any more.
    Woken,
    /// The server no longer keeps the resource version of the list or watch, or its state went back in time.
    Expired,
    /// The request failed, or its response could not be read.
    Failed(Refusal),
}

impl From<ReadError> for Ended {
    fn from(error: ReadError) -> Ended {
        Ended::Failed(error.into())
    }
}

/// Returns true if lists are read as streams, by the settings and the distance of the server; false if the server has
/// refused them.
pub(super) fn streams(shared: &Shared) -> bool {
    !shared.no_streams.load(Ordering::Relaxed)
        && match shared.settings.lists {
            ListStrategy::Streams => true,
            ListStrategy::Pages => false,
            ListStrategy::Auto => shared.connection().cluster.round_trip() < NEAR_ROUND_TRIP,
        }
}

/// The suspicion that the server's state may have gone back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// The last watch ended as planned, expired, or was ended after a sleep, or there was none.
    None,
    /// The last watch ended early, but had worked.
    Slight,
    /// The last watch failed, was silent for too long, or ended at once without a change.
    Grave,
}

/// The task that lists and watches one scope.
struct ScopeTask<'a> {
    shared: &'a Shared,
    followed: &'a Arc<ScopeWatch>,
    what: String,
    /// The state of the scope that was reported last, and the value of `opened` then; `None` before the first report.
    state: Option<(WatchState, u64)>,
    woken: watch::Receiver<u64>,
    /// The value of `Shared::woken` when the last request was sent.
    opened: u64,
    /// The suspicion that the last watch left.
    doubt: Doubt,
    /// The epoch in which the current list or watch began.
    epoch: u64,
    /// True if the objects of this scope are, or by their kind may be, in another store than those of other scopes.
    /// They are if a complete list had an earlier resource version than another scope had received before the list
    /// began.
    is_foreign: bool,
    /// True if objects come as Protobuf, fixed at the last list because digests are of one form.
    protobuf: bool,
    /// Number of consecutive lists of the scope whose token expired before their last page.
    outpaced: u32,
    backoff: Backoff,
    returned: watch::Receiver<u64>,
}

pub(super) async fn follow(shared: &Shared, followed: &Arc<ScopeWatch>) -> Result<(), ReaderGone> {
    let mut task = ScopeTask {
        shared,
        followed,
        what: what(&followed.scope),
        state: None,
        woken: shared.woken.subscribe(),
        opened: 0,
        doubt: Doubt::None,
        epoch: 0,
        is_foreign: followed.newest.is_none(),
        protobuf: shared.settings.protobuf && streams(shared),
        outpaced: 0,
        backoff: Backoff::new(shared.settings.longest_pause),
        returned: shared.returned.subscribe(),
    };
    let mut epoch = shared.epoch.subscribe();
    let mut listed_before = false;
    // Counts since the last period without problems.
    let (mut unreadable, mut early, mut expired) = (0, 0, 0);
    let mut silent_in_a_row = 0_u32;
    loop {
        task.returned.mark_unchanged();
        task.epoch = *epoch.borrow();
        let begun = Instant::now();
        let ended = tokio::select! {
            // A change of epoch during a pause counts first.
            biased;
            _ = epoch.changed() => Ended::Expired,
            ended = task.round(&mut listed_before) => ended?,
        };
        if begun.elapsed() > shared.settings.longest_pause {
            task.backoff.reset();
            (unreadable, early, expired) = (0, 0, 0);
        }
        task.doubt = match ended {
            Ended::Closed | Ended::Expired | Ended::Woken => Doubt::None,
            Ended::Early { at_once: true, moved: false } | Ended::Silent | Ended::Failed(_) => Doubt::Grave,
            Ended::Early { .. } => Doubt::Slight,
        };
        silent_in_a_row = if matches!(ended, Ended::Silent) { silent_in_a_row + 1 } else { 0 };
        let refusal = match ended {
            Ended::Closed | Ended::Woken => continue,
            Ended::Early { at_once: false, .. } => continue,
            Ended::Early { at_once: true, moved } => {
                early += 1;
                let problem = "the server ends the watch as soon as it begins".to_owned();
                let error = ReadError::Unexpected { what: task.what.clone(), problem };
                if early > if moved { MAX_EARLY_ENDS_WITH_CHANGES } else { MAX_EARLY_ENDS } {
                    let (reason, message) = (error.reason().as_str(), error.to_string());
                    task.tell(WatchState::Broken { reason, message }).await?;
                }
                task.rest(None).await;
                continue;
            }
            Ended::Silent => {
                shared.costs.silence();
                shared.doubted.notify_one();
                // What swallows one watch may swallow each, and answer all else: only a list tells what was missed.
                if silent_in_a_row.is_multiple_of(2) || task.followed.progress().is_bookmarked {
                    task.forget();
                    task.tell(WatchState::CatchingUp).await?;
                }
                continue;
            }
            Ended::Expired => {
                task.expire(&mut expired).await?;
                continue;
            }
            Ended::Failed(refusal) => refusal,
        };
        let reason = refusal.error.reason();
        let message = refusal.error.to_string();
        let mut forbidden = None;
        match reason {
            // The server no longer keeps the version.
            Reason::Gone => {
                task.expire(&mut expired).await?;
                continue;
            }
            Reason::Forbidden => {
                task.forget();
                task.tell(WatchState::Forbidden { message }).await?;
                forbidden = Some(shared.settings.forbidden_pause.mul_f64(0.75 + 0.5 * fastrand::f64()));
            }
            Reason::NotFound => {
                task.forget();
                task.tell(WatchState::Absent).await?;
                forbidden = Some(shared.settings.forbidden_pause.mul_f64(0.75 + 0.5 * fastrand::f64()));
            }
            Reason::OverLimit => {
                task.forget();
                task.tell(WatchState::Broken { reason: reason.as_str(), message }).await?;
                forbidden = Some(shared.settings.forbidden_pause.mul_f64(0.75 + 0.5 * fastrand::f64()));
            }
            Reason::Unauthorized => {
                let reason = reason.as_str();
                // The report comes first, because renewing credentials may take long.
                task.tell(WatchState::Broken { reason, message: message.clone() }).await?;
                let generation = refusal.generation.unwrap_or_else(|| shared.connection().generation);
                if let Err(why) = renew(shared, generation).await {
                    let message = format!("{message}; {why}");
                    task.tell(WatchState::Broken { reason, message }).await?;
                }
            }
            Reason::UnexpectedAnswer | Reason::NotJson => {
                unreadable += 1;
                // The watch may continue well after an unreadable event; if not, a new list may help.
                if unreadable > 1 {
                    task.forget();
                }
                task.tell(WatchState::Broken { reason: reason.as_str(), message }).await?;
            }
            _ => {
                // A probe tells whether this scope or the whole server fails.
                shared.doubted.notify_one();
                task.tell(WatchState::Broken { reason: reason.as_str(), message }).await?;
            }
        }
        task.rest(refusal.retry_after.max(forbidden)).await;
    }
}

/// Returns the operation for error messages, such as `watch pods in namespace shop`.
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

impl<'a> ScopeTask<'a> {
    async fn send(&self, event: WatchEvent) -> Result<(), ReaderGone> {
        self.shared.send(Message::Event(event)).await
    }

    async fn tell(&mut self, state: WatchState) -> Result<(), ReaderGone> {
        let told = Some((state.clone(), self.opened));
        if self.state == told {
            return Ok(());
        }
        self.state = told;
        self.send(WatchEvent::State(self.followed.id, state)).await
    }

    async fn batch(&self, text: Vec<u8>, form: WireFormat) -> Result<(), ReaderGone> {
        let (followed, epoch) = (self.followed.clone(), self.epoch);
        self.send(WatchEvent::Batch(Batch { followed, text, form, epoch })).await
    }

    /// Waits until the receiver of events has read everything sent.
    async fn read(&self) -> Result<(), ReaderGone> {
        let (answer, read) = oneshot::channel();
        self.shared.send(Message::Barrier(answer)).await?;
        read.await.map_err(|_| ReaderGone)
    }

    /// Forgets the resource version and all other progress but that the server sends bookmarks, so that the next round
    /// begins with a list.
    fn forget(&self) {
        let mut progress = self.followed.progress();
        let is_bookmarked = progress.is_bookmarked;
        *progress = super::ScopeProgress { is_bookmarked, ..super::ScopeProgress::default() };
    }

    /// Waits before the next attempt: the backoff, or `least` if that is longer. Ends within 500 ms once the server is
    /// back or [`super::Watcher::try_now`] is called.
    async fn rest(&mut self, least: Option<Duration>) {
        let wait = self.backoff.next().max(least.unwrap_or_default());
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            // The sender lives as long as `shared`.
            _ = self.returned.changed() => {
                // A random delay keeps scopes from retrying at the same time.
                tokio::time::sleep(Duration::from_millis(fastrand::u64(0..500))).await;
            }
        }
    }

    /// Starts over after the resource version expired: drops the progress and reports [`WatchState::CatchingUp`].
    /// Counts this in `before`, and waits with backoff from the second time on.
    async fn expire(&mut self, before: &mut u32) -> Result<(), ReaderGone> {
        // Events under way belong to the void state.
        self.read().await?;
        self.forget();
        self.tell(WatchState::CatchingUp).await?;
        *before += 1;
        if *before > 1 {
            self.rest(None).await;
        }
        Ok(())
    }

    /// Lists the scope if it is not completely known yet and then watches it; else watches it, and in doubt checks
    /// whether the server's state went back. Returns the reason why that ended. A list sets `listed_before`; one that
    /// finds it set is counted as a relist.
    async fn round(&mut self, listed_before: &mut bool) -> Result<Ended, ReaderGone> {
        let complete = self.followed.progress().complete;
        if complete {
            return match self.doubt {
                Doubt::None => self.watch(false, "").await,
                Doubt::Slight => {
                    // The watch starts in parallel: on a server that went back it brings nothing.
                    let mut check = pin!(self.version_check().ask());
                    let mut watch = pin!(self.watch(false, ""));
                    tokio::select! {
                        ended = &mut watch => {
                            let ended = ended?;
                            Ok(check.await.unwrap_or(ended))
                        }
                        answer = &mut check => match answer {
                            Some(ended) => Ok(ended),
                            None => watch.await,
                        },
                    }
                }
                Doubt::Grave => match self.version_check().ask().await {
                    Some(ended) => Ok(ended),
                    None => self.watch(false, "").await,
                },
            };
        }
        if std::mem::replace(listed_before, true) {
            self.shared.costs.relist();
        }
        self.forget();
        let newest = newest(self.shared);
        let streams = streams(self.shared);
        self.protobuf = self.shared.settings.protobuf && streams;
        if streams {
            let ended = self.watch(true, &newest).await?;
            match &ended {
                Ended::Failed(refusal) if refuses_streams(refusal) => {
                    self.shared.no_streams.store(true, Ordering::Relaxed);
                    self.protobuf = false;
                }
                _ => return Ok(ended),
            }
        }
        match self.list().await? {
            Ended::Closed => {
                self.compare(&newest);
                self.watch(false, &newest).await
            }
            ended => Ok(ended),
        }
    }

    fn version_check(&self) -> VersionCheck<'a> {
        VersionCheck {
            shared: self.shared,
            scope: &self.followed.scope,
            what: self.what.clone(),
            newest: newest(self.shared),
            version: self.followed.progress().resource_version.clone(),
            is_foreign: self.is_foreign,
        }
    }

    /// Compares the version of a complete list with `newest`, the newest version before the list began, to find out
    /// if the two are in different stores.
    fn compare(&mut self, newest: &str) {
        let behind = went_back(newest, &self.followed.progress().resource_version);
        self.is_foreign = behind || self.followed.newest.is_none();
    }

    /// Reads a list page by page. Returns [`Ended::Closed`] when the list is complete, else why reading stopped.
    async fn list(&mut self) -> Result<Ended, ReaderGone> {
        // The semaphore is never closed.
        let Ok(_place) = self.shared.lists.acquire().await else { return Err(ReaderGone) };
        self.opened = *self.woken.borrow_and_update();
        self.tell(WatchState::CatchingUp).await?;
        self.send(WatchEvent::InitStarted(self.followed.id)).await?;
        let scope = &self.followed.scope;
        let accept = if scope.projection == Projection::Metadata { METADATA_LIST } else { JSON };
        let limit =
            PAGE_GROWTH.saturating_pow(self.outpaced).saturating_mul(FIRST_PAGE).min(MAX_PAGE).to_string();
        let mut continued: Option<String> = None;
        let mut pages = 0;
        self.followed.progress().malformed = 0;
        loop {
            pages += 1;
            if pages > ListRequest::PAGES {
                let limit = format!("the list has more than {} pages", ListRequest::PAGES);
                return Ok(ReadError::OverLimit { what: self.what.clone(), limit }.into());
            }
            let mut parameters = vec![("limit", limit.as_str())];
            if let Some(token) = &continued {
                parameters.push(("continue", token));
            }
            let ask = Ask { what: self.what.clone(), path: path(scope, &parameters), accept };
            let mut stream = match open(self.shared, &ask, Purpose::List, true).await {
                Ok(stream) => stream,
                Err(refusal) => {
                    let too_late = continued.is_some() && refusal.error.reason() == Reason::Gone;
                    self.outpaced += u32::from(too_late);
                    return Ok(Ended::Failed(refusal));
                }
            };
            let mut held = self.shared.connection().cluster.hold();
            let page = match read_whole(self.shared, &self.what, &mut stream, MAX_PAGE_BYTES, &mut held).await
            {
                Ok(page) => page,
                Err(ended) => return Ok(ended),
            };
            drop(stream);
            if let Some(ended) = self.page(page, held).await? {
                return Ok(ended);
            }
            let mut progress = self.followed.progress();
            if let Some(problem) = progress.unreadable.take() {
                return Ok(ReadError::Unexpected { what: ask.what, problem }.into());
            }
            let next = progress.continued.take();
            drop(progress);
            match next {
                None => break,
                // A repeated token would repeat the same page for ever.
                Some(token) if continued.as_ref() == Some(&token) => {
                    let problem = "the server repeats a page".to_owned();
                    return Ok(ReadError::Unexpected { what: ask.what, problem }.into());
                }
                Some(token) => continued = Some(token),
            }
        }
        self.outpaced = 0;
        self.tell(WatchState::Live).await?;
        Ok(Ended::Closed)
    }

    /// Delivers a page in batches, and charges `held` for it meanwhile; returns the reason to end the list if the page
    /// cannot be read, else `None`.
    async fn page(&self, page: Vec<u8>, mut held: Held) -> Result<Option<Ended>, ReaderGone> {
        let projection = self.followed.scope.projection;
        let length = page.len() as u64;
        let kept = length.saturating_add(index_cost(&page));
        // Until the page is split, it is held beside the objects that are copied from it.
        if let Err(over) = held.set(&self.what, length.saturating_add(cost_while_parsed(&page)), 0) {
            return Ok(Some(over.into()));
        }
        // Splitting a large page must not block other tasks.
        let split = tokio::task::spawn_blocking(move || split(&page, projection)).await;
        let Ok((parts, end)) = split else {
            let problem = "the page could not be read".to_owned();
            return Ok(Some(ReadError::Unexpected { what: self.what.clone(), problem }.into()));
        };
        // Charging less always succeeds.
        let _ = held.set(&self.what, kept, 0);
        for items in parts {
            self.batch(Vec::new(), WireFormat::Items(items)).await?;
            // The reader takes turns between clusters.
            self.read().await?;
            if let Some(problem) = self.followed.progress().unreadable.take() {
                return Ok(Some(ReadError::Unexpected { what: self.what.clone(), problem }.into()));
            }
        }
        self.batch(Vec::new(), WireFormat::PageEnd(end)).await?;
        self.read().await?;
        Ok(None)
    }

    /// Watches until the watch ends, and returns the reason; with `initial` it begins with a streamed list. `newest` is
    /// the newest resource version before.
    async fn watch(&mut self, initial: bool, newest: &str) -> Result<Ended, ReaderGone> {
        // Long enough that most watches end by other causes, and randomised.
        let planned = 300 + fastrand::u32(0..300);
        let seconds = planned.to_string();
        let version = self.followed.progress().resource_version.clone();
        let mut parameters =
            vec![("watch", "1"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", seconds.as_str())];
        let place = if initial {
            parameters.extend([("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]);
            // The semaphore is never closed.
            let Ok(place) = self.shared.lists.acquire().await else { return Err(ReaderGone) };
            Some(place)
        } else {
            parameters.push(("resourceVersion", &version));
            None
        };
        let scope = &self.followed.scope;
        let accept = accepted(scope, self.protobuf);
        let ask = Ask { what: self.what.clone(), path: path(scope, &parameters), accept };
        self.opened = *self.woken.borrow_and_update();
        let mut stream = match open(self.shared, &ask, Purpose::Watch, false).await {
            Ok(stream) => stream,
            Err(refusal) => return Ok(Ended::Failed(refusal)),
        };
        if initial {
            self.tell(WatchState::CatchingUp).await?;
            self.send(WatchEvent::InitStarted(self.followed.id)).await?;
        }
        // Where it was not live for a while, what happened meanwhile comes first.
        let is_live = matches!(self.state, Some((WatchState::Live, _)));
        if !initial && is_live {
            self.tell(WatchState::Live).await?;
        }
        let begun = Instant::now();
        let behind = (!initial && !is_live).then_some(CATCH_UP_TIME);
        let ended = self.lines(&mut stream, place, newest, behind).await?;
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
        drop(progress);
        let lived = begun.elapsed();
        if matches!(ended, Ended::Closed) && lived + END_TOLERANCE < Duration::from_secs(planned.into()) {
            let moved = self.followed.progress().resource_version != version;
            return Ok(Ended::Early { at_once: lived < MIN_WATCH, moved });
        }
        Ok(ended)
    }

    /// Delivers the lines of a watch, and returns the reason why it ended. `place` is the permit of its initial list,
    /// released when the list is complete; `newest` is the newest resource version before; `behind` is the time after
    /// which a watch without initial list counts as caught up.
    async fn lines(
        &mut self,
        stream: &mut Stream,
        mut place: Option<tokio::sync::SemaphorePermit<'_>>,
        newest: &str,
        mut behind: Option<Duration>,
    ) -> Result<Ended, ReaderGone> {
        let longest = self.shared.settings.longest_line;
        let mut held = Unread::default();
        let mut charged = self.shared.connection().cluster.hold();
        // A line that is too long is skipped up to its end.
        let mut skipping = Skipping::Nothing;
        let form = if stream.is_protobuf { WireFormat::Frames } else { WireFormat::Lines };
        // One timer for all lines: resetting it costs next to nothing, while a new one is inserted and removed each
        // time.
        let mut silent = pin!(tokio::time::sleep(self.shared.settings.silence));
        let mut level = pin!(tokio::time::sleep(behind.unwrap_or_default()));
        loop {
            let mut next = tokio::select! {
                next = stream.next(self.shared) => next,
                // Text after a fatal event is of no use.
                () = self.followed.ended.notified() => {
                    if self.followed.progress().is_over() {
                        return Ok(Ended::Closed);
                    }
                    continue;
                }
                () = &mut silent => return Ok(Ended::Silent),
                () = &mut level, if behind.is_some() => {
                    behind = None;
                    self.tell(WatchState::Live).await?;
                    continue;
                }
                _ = self.woken.changed() => {
                    self.tell(WatchState::CatchingUp).await?;
                    return Ok(Ended::Woken);
                }
            };
            silent.as_mut().reset(Instant::now() + self.shared.settings.silence);
            let mut ended = None;
            // Data that has already arrived goes into one batch.
            loop {
                match next {
                    None => ended = Some(Ended::Closed),
                    Some(Err(error)) => ended = Some(error.into()),
                    Some(Ok(bytes)) => {
                        held.push(&skipping.rest(bytes));
                    }
                }
                if ended.is_some() || held.len() >= MAX_CHUNK {
                    break;
                }
                match stream.ready(self.shared) {
                    Some(more) => next = Some(more),
                    None => break,
                }
            }
            if let Err(over) = charge(&mut charged, &self.what, held.len()) {
                return Ok(over.into());
            }
            if let Some(events) = held.take_complete(&form) {
                self.batch(events, form.clone()).await?;
                // Charging less always succeeds.
                let _ = charge(&mut charged, &self.what, held.len());
                if place.is_some() {
                    // The list is complete once the reader has read it.
                    self.read().await?;
                    if self.followed.progress().complete {
                        place = None;
                        self.compare(newest);
                        self.tell(WatchState::Live).await?;
                    }
                }
                if self.followed.progress().is_over() {
                    return Ok(Ended::Closed);
                }
            } else {
                let length = held.begun(&form);
                if length > longest {
                    skipping = match form {
                        WireFormat::Frames => Skipping::Bytes(length.saturating_sub(held.len())),
                        _ => Skipping::Line,
                    };
                    let mut begin = held.take_begin(400);
                    // Protobuf contains names as plain text, and other bytes between them.
                    begin.iter_mut().filter(|byte| !byte.is_ascii_graphic()).for_each(|byte| *byte = b' ');
                    self.batch(begin, WireFormat::TooLong { limit: longest }).await?;
                }
            }
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }
}

/// A request for the server's resource version before a watch continues from a later one: a server restored from a
/// backup does not report that, but is silent until its version has caught up. It captures the versions known before
/// the request, because those that arrive meanwhile may be newer than the answer.
struct VersionCheck<'a> {
    shared: &'a Shared,
    scope: &'a Scope,
    what: String,
    newest: String,
    version: String,
    is_foreign: bool,
}

impl VersionCheck<'_> {
    /// Sends the request; returns `None` if the watch may continue, else the reason to end it. If the server's state
    /// went back, voids all watches and never returns: the change of epoch ends this watch.
    async fn ask(self) -> Option<Ended> {
        let VersionCheck { shared, scope, what, newest, version, is_foreign } = self;
        let ask = Ask { what, path: path(scope, &[("limit", "1")]), accept: METADATA_LIST };
        let mut stream = match open(shared, &ask, Purpose::Probe, true).await {
            Ok(stream) => stream,
            // A user who may watch may not be allowed to list.
            Err(refusal) if refusal.error.reason() == Reason::Forbidden => return None,
            Err(refusal) => return Some(Ended::Failed(refusal)),
        };
        let mut held = shared.connection().cluster.hold();
        let page = match read_whole(shared, &ask.what, &mut stream, MAX_OBJECT_BYTES, &mut held).await {
            Ok(page) => page,
            Err(ended) => return Some(ended),
        };
        let mut found = None;
        let read = Parser::new().envelope(&page, |part| {
            if let Part::Member(b"metadata", metadata) = part {
                found = metadata.get("resourceVersion").and_then(|it| it.as_str()).map(|it| it.into_owned());
            }
        });
        if let Err(error) = read {
            let problem = format!("the answer is malformed: {error}");
            return Some(ReadError::Unexpected { what: ask.what, problem }.into());
        }
        let found = found?;
        if is_foreign {
            return went_back(&version, &found).then_some(Ended::Expired);
        }
        if went_back(&version, &found) || went_back(&newest, &found) {
            shared.void();
            // The change of epoch ends this round.
            return std::future::pending().await;
        }
        None
    }
}

/// Returns the newest resource version that any scope of the server's own store has received in this epoch; empty if
/// there is none.
fn newest(shared: &Shared) -> String {
    let newest = shared.newest.lock().unwrap_or_else(PoisonError::into_inner);
    if newest.version > 0 { newest.version.to_string() } else { String::new() }
}

/// Reads a complete response of at most `largest` bytes, and charges `held` for it. Fails if it is longer, breaks off,
/// exceeds the cluster's memory, is silent for too long or exceeds the time limit of the request.
async fn read_whole(
    shared: &Shared,
    what: &str,
    stream: &mut Stream,
    largest: usize,
    held: &mut Held,
) -> Result<Vec<u8>, Ended> {
    let mut page = Vec::new();
    loop {
        let silent = Instant::now() + shared.settings.silence;
        let over = stream.ends.map(|(limit, at)| (limit, Instant::from_std(at)));
        let over = over.filter(|(_, at)| *at < silent);
        let until = over.map_or(silent, |(_, at)| at);
        let next = tokio::time::timeout_at(until, stream.next(shared)).await;
        match next.map_err(|_| match over {
            None => Ended::Silent,
            Some((after, _)) => {
                ReadError::Timeout { what: what.to_owned(), phase: Phase::Body, after }.into()
            }
        })? {
            None => return Ok(page),
            Some(Ok(bytes)) if page.len() + bytes.len() <= largest => {
                page.extend_from_slice(&bytes);
                charge(held, what, page.len())?;
            }
            Some(Ok(_)) => return Err(too_large(what, largest).into()),
            Some(Err(error)) => return Err(error.into()),
        }
    }
}

/// Charges the cluster for `bytes` of a response in progress, if they exceed [`MAX_UNCHARGED`].
fn charge(held: &mut Held, what: &str, bytes: usize) -> Result<(), ReadError> {
    held.set(what, if bytes > MAX_UNCHARGED { bytes as u64 } else { 0 }, 0)
}

/// Returns the `Accept` header for a scope's objects. Protobuf requires that the fields of the kind are known here.
fn accepted(scope: &Scope, protobuf: bool) -> &'static str {
    let ApiResource { group, version, kind, .. } = &scope.resource;
    match scope.projection {
        Projection::Metadata if protobuf => METADATA_PROTOBUF,
        Projection::Metadata => METADATA,
        Projection::Full if protobuf && of_kind(group, version, kind).is_some() => PROTOBUF,
        Projection::Full => JSON,
    }
}

/// Returns true if the server has no streamed lists: it rejects the request as invalid, or sends whole objects where
/// only metadata was requested.
fn refuses_streams(refusal: &Refusal) -> bool {
    match &refusal.error {
        ReadError::Refused { code, .. } => matches!(code, 400 | 422),
        ReadError::Unexpected { problem, .. } => problem == WHOLE,
        _ => false,
    }
}
