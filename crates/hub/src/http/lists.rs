//! The handlers of the list endpoints: apps, one app, clusters, matrix, attention, changes.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use taffrail_api::filter::SortField;
use taffrail_api::hub::{AppChange, AppGroup, HubList, PageExtent};
use taffrail_api::{API_VERSION, AppRow, ClusterRow, List, ListItem};
use taffrail_status::Status;

use super::app_path::AppPath;
use super::body::json;
use super::cursor;
use super::past;
use super::problem::Refusal;
use super::query::Query;
use super::request::Request;
use crate::index::page::{AppQueryPage, PageKey};
use crate::index::{AppFilter, FleetView, GroupBy, ManagedClusters};

/// Answers with a page of apps; of groups of apps if the query has `group-by`; of past states if it has `at`.
pub(super) fn apps(request: &Request<'_>) -> Result<Vec<u8>, Refusal> {
    let Request { hub, view, query, .. } = request;
    let Query { filter, sort, limit, .. } = query;
    if let Some(at) = query.at {
        return past::apps(request, at);
    }
    if let Some(by) = &query.group_by {
        return groups(request, by);
    }
    let after: Option<PageKey> = request.cursor("apps")?;
    if after.as_ref().is_some_and(|after| !after.is_of(*sort)) {
        return Err(Refusal::cursor());
    }
    let page = view.page(&AppQueryPage { filter, sort: *sort, limit: *limit, after: after.as_ref() });
    let rows: Vec<AppRow> = page.pairs.iter().map(|(_, pair)| view.row(pair)).collect();
    let next = page.next.and_then(|key| cursor::write(&hub.instance, "apps", key));
    let extent = PageExtent { total: page.total, next };
    match query.fields.is_empty() {
        true => json(&list(view, filter, rows, extent)),
        false => json(&list_of(AppRow::LIST, view, filter, cut(&rows, &query.fields), extent)),
    }
}

/// Converts rows to JSON objects with only these `fields`.
fn cut(rows: &[AppRow], fields: &[&str]) -> Vec<Value> {
    let row = |row: &AppRow| {
        let mut row = serde_json::to_value(row).unwrap_or_default();
        if let Some(row) = row.as_object_mut() {
            row.retain(|name, _| fields.contains(&&**name));
        }
        row
    };
    rows.iter().map(row).collect()
}

fn groups(request: &Request<'_>, by: &GroupBy) -> Result<Vec<u8>, Refusal> {
    let Request { hub, view, query, .. } = request;
    let kind = format!("groups by {by:?}");
    let after: Option<String> = request.cursor(&kind)?;
    let groups = view.groups(&query.filter, by);
    let total = groups.len();
    let following =
        groups.into_iter().filter(|group| after.as_ref().is_none_or(|after| group.group > *after));
    let mut groups: Vec<AppGroup> = following.take(query.limit + 1).collect();
    let is_cut = groups.len() > query.limit;
    groups.truncate(query.limit);
    let last = groups.last().filter(|_| is_cut);
    let next = last.and_then(|group| cursor::write(&hub.instance, &kind, &group.group));
    json(&list(view, &query.filter, groups, PageExtent { total, next }))
}

/// Answers with a list that holds the one app of the path; refuses if no app matches, or several.
pub(super) fn app(request: &Request<'_>) -> Result<Vec<u8>, Refusal> {
    let view = &request.view;
    let path = AppPath::of(request)?;
    let mut rows = Vec::new();
    let mut homes = Vec::new();
    path.each(request, |pair| {
        rows.push(view.row(pair));
        homes.push(pair.app.home.0.clone());
    });
    match rows.len() {
        1 => json(&list(view, &path.filter(), rows, PageExtent { total: 1, next: None })),
        0 => Err(path.not_found(request)),
        _ => Err(AppPath::ambiguous(&homes)),
    }
}

/// The sort key of a cluster, which a cursor holds: status and name are `None` if the list is not sorted by them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ClusterKey {
    #[serde(rename = "s")]
    status: Option<Status>,
    #[serde(rename = "n")]
    name: Option<String>,
    #[serde(rename = "p")]
    place: usize,
}

/// Answers with a page of the clusters that match the filter's clusters, text and status; of past numbers of apps if
/// the query has `at`. Refuses an order other than by name, cluster or status; with `at` any order.
pub(super) fn clusters(request: &Request<'_>) -> Result<Vec<u8>, Refusal> {
    let Request { hub, view, query, .. } = request;
    let Query { filter, sort, limit, .. } = query;
    if let Some(at) = query.at {
        return past::clusters(request, at);
    }
    if matches!(sort, Some(SortField::Since | SortField::Delivery)) {
        return Err(Refusal::parameter("sort", "clusters can be sorted only by name, cluster or status"));
    }
    let kind = format!("clusters by {sort:?}");
    let after: Option<ClusterKey> = request.cursor(&kind)?;
    let words: Vec<String> = filter.words().collect();
    let needs_status = filter.status.is_some() || *sort == Some(SortField::Status);
    let mut keys: Vec<ClusterKey> = Vec::new();
    for (place, cluster) in view.admitted(filter) {
        let name = view.name(cluster);
        let lower = name.to_lowercase();
        if !words.iter().all(|word| lower.contains(word)) {
            continue;
        }
        let status = if needs_status { view.cluster_status(place) } else { None };
        let admits = |(status, problems): (Status, usize)| {
            filter.status.as_ref().is_none_or(|wanted| wanted.admits_row(status, problems > 0))
        };
        if needs_status && !status.is_some_and(admits) {
            continue;
        }
        keys.push(ClusterKey {
            status: status.map(|it| it.0).filter(|_| *sort == Some(SortField::Status)),
            name: matches!(sort, Some(SortField::Name | SortField::Cluster)).then(|| name.to_owned()),
            place,
        });
    }
    keys.sort();
    let total = keys.len();
    let mut following =
        keys.into_iter().filter(|key| after.as_ref().is_none_or(|after| key > after)).peekable();
    let page: Vec<ClusterKey> = following.by_ref().take(*limit).collect();
    let last = page.last().filter(|_| following.peek().is_some());
    let next = last.and_then(|last| cursor::write(&hub.instance, &kind, last));
    let managed = ManagedClusters::of(view);
    let row = |key: &ClusterKey| {
        let mut row = view.cluster_row(key.place)?;
        managed.put_into(key.place, &mut row);
        Some(row)
    };
    let rows: Vec<ClusterRow> = page.iter().filter_map(row).collect();
    json(&list(view, filter, rows, PageExtent { total, next }))
}

/// Answers with a page of the table of apps by clusters; of past states if the query has `at`.
pub(super) fn matrix(request: &Request<'_>) -> Result<Vec<u8>, Refusal> {
    let Request { hub, view, query, .. } = request;
    if let Some(at) = query.at {
        return past::matrix(request, at);
    }
    let after: Option<String> = request.cursor("matrix")?;
    let mut matrix = view.matrix(&query.filter, query.label.as_deref(), query.limit, after.as_deref());
    matrix.extent.next = matrix.extent.next.and_then(|key| cursor::write(&hub.instance, "matrix", key));
    json(&matrix)
}

/// Answers with the worst problems of the matching apps, grouped by cause: at most `limit` causes.
pub(super) fn attention(request: &Request<'_>) -> Result<Vec<u8>, Refusal> {
    json(&request.view.attention(&request.query.filter, request.query.limit))
}

/// Answers with a page of the last changes of apps, the latest first: those that the filter's clusters, deliveries,
/// namespaces and names admit.
pub(super) fn changes(request: &Request<'_>) -> Result<Vec<u8>, Refusal> {
    let Request { hub, view, query, .. } = request;
    let before: Option<u64> = request.cursor("changes")?;
    let filter = &query.filter;
    // Names of clusters at the time of the change.
    let is_any = filter.clusters.is_empty() && filter.cluster_labels.is_none();
    let mut called: HashSet<&str> = HashSet::new();
    if !is_any {
        called.extend(view.admitted(filter).map(|(_, cluster)| view.name(cluster)));
    }
    if filter.cluster_labels.is_none() {
        called.extend(filter.clusters.iter().map(String::as_str));
    }
    let admits = |change: &AppChange| {
        let AppChange { cluster, delivery, namespace, name, .. } = change;
        (is_any || called.contains(&**cluster)) && filter.admits_name(*delivery, namespace, name)
    };
    let all = hub.index.recent(None);
    let total = all.iter().filter(|(_, change)| admits(change)).count();
    let mut older = all
        .into_iter()
        .filter(|(number, change)| before.is_none_or(|before| *number < before) && admits(change));
    let page: Vec<_> = older.by_ref().take(query.limit).collect();
    let last = page.last().map(|(number, _)| *number).filter(|_| older.next().is_some());
    let next = last.and_then(|number| cursor::write(&hub.instance, "changes", number));
    let rows = page.into_iter().map(|(_, change)| AppChange::clone(&change)).collect();
    json(&list(view, filter, rows, PageExtent { total, next }))
}

fn list<T: ListItem>(view: &FleetView, filter: &AppFilter, items: Vec<T>, extent: PageExtent) -> HubList<T> {
    list_of(T::LIST, view, filter, items, extent)
}

fn list_of<T>(
    kind: &'static str,
    view: &FleetView,
    filter: &AppFilter,
    items: Vec<T>,
    extent: PageExtent,
) -> HubList<T> {
    let (errors, errors_omitted) = view.errors_of(filter);
    let list = List { api_version: API_VERSION.into(), kind: kind.into(), items, errors };
    HubList { list, errors_omitted, extent, coverage: view.coverage(filter) }
}
