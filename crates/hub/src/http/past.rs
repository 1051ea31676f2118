//! Answers from the store's history: the changes of one app, and the states of all apps at a past time.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_api::API_VERSION;
use taffrail_api::hub::{
    AnswerState, AppHistory, Coverage, HistoryRow, Matrix, MatrixColumn, MatrixRow, PageExtent, PairState,
    PastApp, PastCluster, PastList,
};
use taffrail_api::report::AppId;
use taffrail_apps::{AppKey, ClusterId, Delivery, FreshnessState};

use super::app_path::AppPath;
use super::body::json;
use super::cursor;
use super::problem::Refusal;
use super::query::Query;
use super::request::Request;
use crate::index::{FleetView, PublishedCluster, UNRECORDED, matrix_code, matrix_legend, past_freshness};
use crate::store::{Answer, Cursor, HistoryEntry, HistoryRange, PageQuery, PairId, Store, StoreError};

/// The number of pairs of which one read of the store returns the states.
const PAGE: NonZeroUsize = NonZeroUsize::new(5_000).unwrap();

/// The bound of the cells of the matrix of a past time: a page has at most as many rows as this number divided by that
/// of its columns, but at least one.
const MAX_CELLS: usize = 1_000_000;

fn store<'r>(request: &'r Request<'_>) -> Result<&'r Arc<dyn Store>, Refusal> {
    let none = || {
        let refusal = Refusal::not_found("the hub keeps no history");
        refusal.hint("start the hub with a data folder: taffrail hub serve --data DIR")
    };
    request.hub.store.as_ref().ok_or_else(none)
}

/// Blocks this thread until the store answers, and converts its error to a refusal. Call it only on a thread for
/// blocking work.
pub(super) fn wait<T>(answer: Answer<'_, T>) -> Result<T, Refusal> {
    let answer = tokio::runtime::Handle::current().block_on(answer);
    answer.map_err(|error| match error {
        StoreError::HistoryDropped { .. } => Refusal::parameter("at", error),
        StoreError::InvalidCursor(_) => Refusal::cursor(),
        _ => Refusal::busy("the store of the hub cannot be read"),
    })
}

/// Answers with a page of the transitions, syncs and operations of one app in one cluster from `from` to `to`, the latest first.
/// Refuses (404) an app that is not in the fleet now and has no history.
pub(super) fn history(request: &Request<'_>) -> Result<Vec<u8>, Refusal> {
    let Request { hub, view, query, .. } = request;
    let store = store(request)?;
    let path = AppPath::of(request)?;
    let pair = path.pair(request)?;
    let after: Option<String> = request.cursor("history")?;
    let range = query.from.unwrap_or(Timestamp::MIN)..query.to.unwrap_or(Timestamp::MAX);
    if range.is_empty() {
        return Err(Refusal::parameter("to", "the time is not after 'from'"));
    }
    let limit = NonZeroUsize::new(query.limit).unwrap_or(NonZeroUsize::MIN);
    let page = PageQuery { limit, after: after.clone().map(Cursor::new) };
    let found = wait(store.history(pair.clone(), range, page))?;
    let is_known = || {
        let place = view.fleet().places.get(&pair.cluster);
        let shown = place.and_then(|place| view.fleet().cluster(*place));
        shown.is_some_and(|cluster| cluster.pairs.find(&pair.app).is_some())
    };
    if found.items.is_empty() && after.is_none() && !is_known() {
        let limit = PageQuery::first(NonZeroUsize::MIN);
        // Nothing in the range is not nothing at all.
        if wait(store.history(pair.clone(), Timestamp::MIN..Timestamp::MAX, limit))?.items.is_empty() {
            return Err(path.not_found(request));
        }
    }
    let row = |entry: HistoryEntry| match entry {
        HistoryEntry::Transition(it) => {
            HistoryRow::Transition { at: it.at, before: it.before, after: it.after }
        }
        HistoryEntry::Sync(it) => HistoryRow::Sync {
            at: it.began,
            ended: it.ended,
            result: it.result,
            revision: it.revision,
            message: it.message,
        },
        HistoryEntry::Operation(operation) => HistoryRow::Operation { operation },
    };
    let next = found.next.and_then(|next| cursor::write(&hub.instance, "history", next.as_str()));
    let name = |id: &ClusterId| cluster_name(view, id);
    let AppId { home, app } = &pair.app;
    json(&AppHistory {
        api_version: API_VERSION.into(),
        kind: AppHistory::KIND.into(),
        cluster: name(&pair.cluster),
        home: name(home),
        delivery: app.delivery,
        namespace: app.namespace.clone(),
        name: app.name.clone(),
        history_since: wait(store.recorded())?.since,
        items: found.items.into_iter().map(row).collect(),
        next,
        coverage: view.coverage(&path.filter()),
    })
}

/// Returns the present name of a cluster; its identity if the hub no longer knows the cluster, or it has no name.
fn cluster_name(view: &FleetView, id: &ClusterId) -> String {
    let place = view.fleet().places.get(id);
    let cluster = place.and_then(|place| view.fleet().cluster(*place));
    let name = cluster.map(|cluster| view.name(cluster)).filter(|name| !name.is_empty());
    name.unwrap_or(&id.0).to_owned()
}

/// A query about a past time: reads the states of all pairs from the store, page by page.
struct Past<'r, 'q> {
    request: &'r Request<'q>,
    store: &'r Arc<dyn Store>,
    at: Timestamp,
    range: HistoryRange,
    /// The present place and name of each cluster that the hub knows now.
    clusters: HashMap<ClusterId, (usize, String)>,
    /// The clusters that the filter admits and that had a pair then, and how much is known of their pairs: of those
    /// met so far.
    seen: BTreeMap<ClusterId, AnswerState>,
}

/// A pair at a past time.
struct PastPair {
    id: PairId,
    state: PairState,
    /// The present place of the cluster; `usize::MAX` if the hub no longer knows it.
    place: usize,
    cluster: String,
    key: String,
}

impl<'r, 'q> Past<'r, 'q> {
    fn new(request: &'r Request<'q>, at: Timestamp) -> Result<Past<'r, 'q>, Refusal> {
        let store = store(request)?;
        let Query { filter, sort, fields, group_by, .. } = &request.query;
        let untold = [
            ("suspended", filter.suspended),
            ("selector", filter.labels.is_some()),
            ("problems", filter.problems.as_ref().is_some_and(|axes| !axes.is_empty())),
            ("check", !filter.checks.is_empty()),
            ("sort", sort.is_some()),
            ("fields", !fields.is_empty()),
            ("group-by", group_by.is_some()),
        ];
        if let Some((name, _)) = untold.into_iter().find(|(_, is_given)| *is_given) {
            return Err(Refusal::parameter(
                name,
                "the history does not record what this parameter selects by: omit it in a request with 'at'",
            ));
        }
        if at > request.view.moment().now {
            return Err(Refusal::parameter("at", "the time is in the future"));
        }
        let range = wait(store.recorded())?;
        if range.since.is_none() {
            return Err(Refusal::parameter("at", "no history is recorded yet"));
        }
        let view = &request.view;
        let named = |(place, cluster): (usize, &Arc<PublishedCluster>)| {
            (cluster.id.clone(), (place, view.name(cluster).to_owned()))
        };
        let clusters = view.fleet().all().map(named).collect();
        Ok(Past { request, store, at, range, clusters, seen: BTreeMap::new() })
    }

    /// Calls `take` with each pair that existed then and that the filter admits, in no particular order, until `take`
    /// returns `Break`.
    fn each(&mut self, mut take: impl FnMut(PastPair) -> ControlFlow<()>) -> Result<(), Refusal> {
        let view = &self.request.view;
        let filter = &self.request.query.filter;
        let words: Vec<String> = filter.words().collect();
        let mut query = PageQuery::first(PAGE);
        loop {
            let page = wait(self.store.states_at(self.at, query.clone()))?;
            for (id, state) in page.items {
                let app = &id.app.app;
                let known = self.clusters.get(&id.cluster);
                let shown = known.and_then(|(place, _)| view.fleet().cluster(*place));
                let is_called = |name: &String| {
                    *name == id.cluster.0 || shown.is_some_and(|cluster| view.is_called(cluster, name))
                };
                // History does not keep labels: the present ones count, and an unknown cluster has none.
                let labels = shown.and_then(|cluster| view.labels(cluster));
                if !filter.clusters.is_empty() && !filter.clusters.iter().any(is_called)
                    || !filter.admits_labels(labels)
                {
                    continue;
                }
                let own = match state.problem.as_deref() {
                    Some(UNRECORDED) => AnswerState::Partial,
                    _ if past_freshness(&state) != FreshnessState::Live => AnswerState::Stale,
                    _ => AnswerState::Complete,
                };
                // Also of a pair that the filter omits: what it was is not known.
                match self.seen.get_mut(&id.cluster) {
                    Some(worst) => *worst = own.max(*worst),
                    None => drop(self.seen.insert(id.cluster.clone(), own)),
                }
                let is_admitted = filter.admits_name(app.delivery, &app.namespace, &app.name)
                    && filter.sync.as_ref().is_none_or(|it| it.admits_state(app.delivery, state.sync, false))
                    && (filter.problems.is_none() || state.problem.is_some())
                    && filter
                        .status
                        .as_ref()
                        .is_none_or(|it| it.admits_row(state.effective, state.problem.is_some()));
                if !is_admitted {
                    continue;
                }
                let (place, cluster) = known.cloned().unwrap_or((usize::MAX, id.cluster.0.clone()));
                let own = || {
                    let (delivery, namespace, name) = (app.delivery, app.namespace.clone(), app.name.clone());
                    AppKey::Own { delivery, namespace, name }.to_string()
                };
                let pair = shown.and_then(|it| it.pairs.get(it.pairs.find(&id.app)?));
                let key = pair.map_or_else(own, |it| it.pair.declared.body.key.clone());
                let texts =
                    [&*cluster, &*key, &*app.namespace, &*app.name, state.problem.as_deref().unwrap_or("")];
                let is_found = |word: &String| texts.iter().any(|it| it.to_lowercase().contains(word));
                if !words.iter().all(is_found) {
                    continue;
                }
                if take(PastPair { id, state, place, cluster, key }).is_break() {
                    return Ok(());
                }
            }
            let Some(next) = page.next else { return Ok(()) };
            query = query.next(next);
        }
    }

    fn coverage(&self) -> Coverage {
        let Request { view, query, .. } = self.request;
        view.past_coverage(&query.filter, &self.seen, self.at)
    }

    fn list<T: Serialize>(
        &self,
        kind: &'static str,
        items: Vec<T>,
        extent: PageExtent,
    ) -> Result<Vec<u8>, Refusal> {
        json(&PastList {
            api_version: API_VERSION.into(),
            kind: kind.into(),
            items,
            history_since: self.range.since,
            extent,
            coverage: self.coverage(),
        })
    }

    /// Returns the name that cursors of `list` at this past time carry.
    fn cursors(&self, list: &str) -> String {
        format!("{list} at {}", self.at)
    }
}

/// The sort key of a pair at a past time: place and identity of its cluster, namespace, name, delivery, home.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct AppPlace(usize, ClusterId, String, String, Delivery, ClusterId);

/// Adds an entry to a page, and drops the greatest key beyond `limit` + 1 entries; the extra entry tells that others
/// follow.
fn keep<K: Ord, V>(page: &mut BTreeMap<K, V>, limit: usize, key: K, value: V) {
    page.insert(key, value);
    if page.len() > limit + 1 {
        page.pop_last();
    }
}

/// Removes the last entry if there are more than `limit`, as [`keep`] keeps one extra. Returns the others, and the
/// key of the last of them if one was removed, else `None`.
fn cut<K: Ord + Clone, V>(mut page: BTreeMap<K, V>, limit: usize) -> (Vec<V>, Option<K>) {
    let is_cut = page.len() > limit;
    if is_cut {
        page.pop_last();
    }
    let last = page.last_key_value().filter(|_| is_cut).map(|(key, _)| key.clone());
    (page.into_values().collect(), last)
}

/// Answers with a page of the states that the apps which the filter admits had at the past time `at`. Refuses the
/// parameters that history does not record, such as `sort`.
pub(super) fn apps(request: &Request<'_>, at: Timestamp) -> Result<Vec<u8>, Refusal> {
    let mut past = Past::new(request, at)?;
    let (cursors, limit) = (past.cursors("apps"), request.query.limit);
    let after: Option<AppPlace> = request.cursor(&cursors)?;
    let mut page = BTreeMap::new();
    let mut total = 0;
    let view = &request.view;
    past.each(|PastPair { id, state, place, cluster, key }| {
        total += 1;
        let PairId { cluster: target, app: AppId { home, app } } = id;
        let name = (app.namespace.clone(), app.name.clone());
        let place = AppPlace(place, target, name.0, name.1, app.delivery, home.clone());
        if after.as_ref().is_none_or(|after| place > *after) {
            let home = cluster_name(view, &home);
            let (namespace, name, delivery) = (app.namespace, app.name, app.delivery);
            let row = PastApp { key, cluster, home, delivery, namespace, name, state };
            keep(&mut page, limit, place, row);
        }
        ControlFlow::Continue(())
    })?;
    let (items, last) = cut(page, limit);
    let next = last.and_then(|last| cursor::write(&request.hub.instance, &cursors, last));
    past.list("PastAppList", items, PageExtent { total, next })
}

/// Answers with a page of the clusters that had apps which the filter admits at a past time, each with the numbers of
/// these apps by status. Refuses the parameters that history does not record, `status` among them.
pub(super) fn clusters(request: &Request<'_>, at: Timestamp) -> Result<Vec<u8>, Refusal> {
    let filter = &request.query.filter;
    if filter.status.is_some() {
        return Err(Refusal::parameter(
            "status",
            "the history does not record what this parameter selects by: omit it in a request with 'at'",
        ));
    }
    let mut past = Past::new(request, at)?;
    let (cursors, limit) = (past.cursors("clusters"), request.query.limit);
    let after: Option<(usize, ClusterId)> = request.cursor(&cursors)?;
    let mut all: BTreeMap<(usize, ClusterId), PastCluster> = BTreeMap::new();
    past.each(|PastPair { id, state, place, cluster, .. }| {
        let row = all.entry((place, id.cluster)).or_insert_with(|| PastCluster::new(cluster));
        row.add(&state);
        ControlFlow::Continue(())
    })?;
    let total = all.len();
    let following = all.into_iter().filter(|(key, _)| after.as_ref().is_none_or(|after| key > after));
    let (items, last) = cut(following.take(limit + 1).collect(), limit);
    let next = last.and_then(|last| cursor::write(&request.hub.instance, &cursors, last));
    past.list("PastClusterList", items, PageExtent { total, next })
}

/// Answers with a page of the matrix at a past time. Its columns are the clusters that then had apps which the filter
/// admits.
pub(super) fn matrix(request: &Request<'_>, at: Timestamp) -> Result<Vec<u8>, Refusal> {
    let mut past = Past::new(request, at)?;
    let cursors = past.cursors("matrix");
    let after: Option<String> = request.cursor(&cursors)?;
    let most = |columns: usize| request.query.limit.min(MAX_CELLS / columns.max(1)).max(1);
    let hasher = RandomState::new();
    let mut keys: HashSet<u64> = HashSet::new();
    let mut columns: BTreeMap<(usize, ClusterId), MatrixColumn> = BTreeMap::new();
    // Of each cell its character, and the rank of the app that it shows: the least is the worst.
    let mut rows: BTreeMap<String, HashMap<ClusterId, (u8, u8)>> = BTreeMap::new();
    past.each(|PastPair { id, state, place, cluster, key }| {
        keys.insert(hasher.hash_one(&key));
        let freshness = past_freshness(&state);
        let column = columns.entry((place, id.cluster.clone())).or_insert_with(|| {
            let group = request.query.label.as_ref().map(|label| request.view.group_of(place, label));
            MatrixColumn { cluster, freshness, group }
        });
        column.freshness = column.freshness.min(freshness);
        // With more columns it only becomes less.
        let limit = most(columns.len());
        let is_problem = state.problem.is_some();
        let rank = state.effective as u8 + if is_problem { 0 } else { 16 };
        let code = matrix_code(state.health, freshness, is_problem);
        let is_within = rows.len() <= limit || rows.last_key_value().is_none_or(|(last, _)| key <= *last);
        if is_within && after.as_ref().is_none_or(|after| key > *after) {
            let cell = rows.entry(key).or_default().entry(id.cluster).or_insert((code, rank));
            if rank < cell.1 {
                *cell = (code, rank);
            }
        }
        while rows.len() > limit + 1 {
            rows.pop_last();
        }
        ControlFlow::Continue(())
    })?;
    let is_cut = rows.len() > most(columns.len());
    if is_cut {
        rows.pop_last();
    }
    let next = rows.last_key_value().filter(|_| is_cut).map(|(key, _)| key.clone());
    let mut met: HashSet<u8> = HashSet::new();
    let row = |(key, cells): (String, HashMap<ClusterId, (u8, u8)>)| {
        let cell = |(_, id): &(usize, ClusterId)| match cells.get(id) {
            Some((code, _)) => {
                met.insert(*code);
                char::from(*code)
            }
            None => Matrix::EMPTY,
        };
        MatrixRow { key, cells: columns.keys().map(cell).collect() }
    };
    let rows: Vec<MatrixRow> = rows.into_iter().map(row).collect();
    json(&Matrix {
        api_version: API_VERSION.into(),
        kind: Matrix::KIND.into(),
        columns: columns.into_values().collect(),
        columns_omitted: 0,
        rows,
        legend: matrix_legend(|code| met.contains(&code)),
        history_since: past.range.since,
        extent: PageExtent {
            total: keys.len(),
            next: next.and_then(|next| cursor::write(&request.hub.instance, &cursors, next)),
        },
        coverage: past.coverage(),
    })
}

impl AppPath<'_> {
    /// Returns the identity of the one pair now in the fleet that the path names. If there is none, returns the
    /// identity that a former pair would have, with the home of the query, else the cluster itself as home. Refuses if
    /// several match.
    fn pair(&self, request: &Request<'_>) -> Result<PairId, Refusal> {
        let view = &request.view;
        let mut found: BTreeSet<(ClusterId, ClusterId)> = BTreeSet::new();
        self.each(request, |pair| {
            found.insert((pair.declared.body.target.clone(), pair.app.home.clone()));
        });
        let app = taffrail_api::AppName {
            delivery: self.delivery,
            namespace: self.namespace.to_owned(),
            name: self.name.to_owned(),
        };
        let id = |name: &str| {
            let known = view.called(name).next().and_then(|place| view.fleet().cluster(place));
            known.map_or_else(|| ClusterId(name.to_owned()), |cluster| cluster.id.clone())
        };
        let (cluster, home) = match found.len() {
            0 => {
                let cluster = id(self.cluster);
                let home = request.query.home.as_deref().map_or_else(|| cluster.clone(), id);
                (cluster, home)
            }
            1 => found.pop_first().unwrap_or_else(|| (id(self.cluster), id(self.cluster))),
            _ => {
                let homes: Vec<String> = found.into_iter().map(|(_, home)| home.0).collect();
                return Err(AppPath::ambiguous(&homes));
            }
        };
        Ok(PairId { cluster, app: AppId { home, app } })
    }
}
