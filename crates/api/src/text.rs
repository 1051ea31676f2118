//! The texts of table cells.

use std::borrow::Cow;

use jiff::Timestamp;
use taffrail_apps::{
    App, Axis, CheckResult, Delivery, Freshness, FreshnessState, Nodes, ObjectSyncState, Problem, Suspension,
};
use taffrail_status::Status;
use taffrail_status::assess::{Change, ChangeKind};

use crate::{AppRow, ClusterRow, ImageUse, ResourceRow, SyncRow};

pub use taffrail_apps::shorten as revision;
pub use taffrail_apps::text::{age, ago, line, span};

/// The text of a table cell without a value.
pub const NONE: &str = "-";

/// Returns the time from `at` to `now` in the words of [`ago`]; empty if `at` is `None`.
pub fn since(at: Option<Timestamp>, now: Timestamp) -> String {
    at.map(|at| ago(at, now)).unwrap_or_default()
}

/// Returns the text of an app's STATUS cell: its effective status and its worst other problem, as [`AppRow::words`].
pub fn health(app: &App, now: Timestamp) -> String {
    AppRow::from(app).words(now)
}

/// Returns the effective status in words: the status `last` while `freshness` is live, else `Unknown`, with `last` and
/// its age if it was ever observed: `Unknown (was Ready, 12 min ago)`; of one that was unknown before, the age alone.
pub fn status(last: Status, freshness: Freshness, now: Timestamp) -> String {
    match (freshness.state, freshness.observed_at) {
        (FreshnessState::Live, _) => last.word().to_owned(),
        (FreshnessState::Stale | FreshnessState::Lost, None) => Status::Unknown.word().to_owned(),
        (FreshnessState::Stale | FreshnessState::Lost, Some(at)) if last == Status::Unknown => {
            format!("{} ({})", last.word(), ago(at, now))
        }
        (FreshnessState::Stale | FreshnessState::Lost, Some(at)) => {
            format!("{} (was {}, {})", Status::Unknown.word(), last.word(), ago(at, now))
        }
    }
}

/// Returns the message of a row whose cluster is not live because of `silence`: which cluster that is, and behind it
/// `last`: `eu-1 does not answer; before: Pod is Ready`, without `before:` if `is_old` is false, because `last` is not of
/// that cluster but what its delivery tool says elsewhere. Leaves out `last` if it is empty or the cluster was never
/// observed, and returns it alone if `silence` is `None`.
pub fn last_message<'t>(last: &'t str, silence: Option<&'t Problem>, is_old: bool) -> Cow<'t, str> {
    let Some(silence) = silence else { return last.into() };
    let message = silence.message.strip_prefix("cluster ").unwrap_or(&silence.message);
    // Why is told once, in the row of the cluster and below the table.
    let ends = [FreshnessState::Lost, FreshnessState::Stale].map(FreshnessState::predicate);
    let end = ends.iter().find_map(|end| Some(message.find(end)? + end.len())).unwrap_or(message.len());
    let silent = message.get(..end).unwrap_or(message);
    match silence.since {
        Some(_) if !last.is_empty() && is_old => format!("{silent}; before: {last}").into(),
        Some(_) if !last.is_empty() => format!("{silent}; {last}").into(),
        _ => silent.into(),
    }
}

/// Returns `problem`, the worst problem of an app, if it is on the axis freshness and `freshness`, that of the app's
/// objects, is not live; `None` otherwise.
pub(crate) fn silence(freshness: Freshness, problem: Option<&Problem>) -> Option<&Problem> {
    problem.filter(|problem| !freshness.is_live() && problem.axis == Axis::Freshness)
}

/// Returns the images of an object as a table cell: `acme/web:2 (in spec, in no Pod), acme/web:1 (3 Pods, not in
/// spec)`; of a Pod their names alone.
pub fn images(row: &ResourceRow) -> String {
    let told = row.images.iter().map(|ImageUse { image, in_spec, pods }| {
        if (&*row.group, &*row.kind) == ("", "Pod") {
            return image.clone();
        }
        let pods = match pods {
            None => "its Pods were not read".to_owned(),
            Some(0) => "in no Pod".to_owned(),
            Some(1) => "1 Pod".to_owned(),
            Some(count) => format!("{count} Pods"),
        };
        if *in_spec { format!("{image} (in spec, {pods})") } else { format!("{image} ({pods}, not in spec)") }
    });
    told.collect::<Vec<_>>().join(", ")
}

/// Returns who suspended an app and when, to follow a word: ` by kubectl-patch, 5 min ago`, without the part that is
/// not known.
pub fn by_at(suspension: &Suspension, now: Timestamp) -> String {
    let by = suspension.by.as_ref().map(|by| format!(" by {by}"));
    let at = suspension.at.map(|at| format!(", {}", ago(at, now)));
    by.into_iter().chain(at).collect()
}

/// Returns the text of an app's SYNC cell, as [`SyncRow::words`].
pub fn sync(app: &App) -> Cow<'static, str> {
    SyncRow::from(app).words()
}

/// Returns `words`, which tell the `status` of an object, and after them the sync state that its delivery tool reports,
/// if it reports one: `Ready, OutOfSync`.
///
/// An object that does not exist cannot be in sync, so OutOfSync is left out for it.
pub(crate) fn with_sync(words: String, status: Status, sync: Option<ObjectSyncState>) -> String {
    match sync.filter(|sync| status != Status::NotFound || *sync != ObjectSyncState::OutOfSync) {
        Some(sync) => format!("{words}, {}", sync.words()),
        None => words,
    }
}

/// Returns the message to show for an object: `message; sync_message`, or only one of the two if it contains the other
/// or the other is empty. `sync_message` is that of the delivery tool's last operation about the object.
///
/// The message of an object that is well, or does not exist, does not tell why the tool could not sync it: for such an
/// object a `sync_message` replaces `message`.
pub fn object_message<'t>(status: Status, message: &'t str, sync_message: &'t str) -> Cow<'t, str> {
    let is_telling = !matches!(status, Status::Current | Status::NotFound);
    if sync_message.is_empty() || is_telling && message.contains(sync_message) {
        message.into()
    } else if !is_telling || sync_message.contains(message) {
        sync_message.into()
    } else {
        format!("{message}; {sync_message}").into()
    }
}

/// Returns the name of a delivery tool as tables show it: `ks`, `hr`, `argo`, or the full name of another one.
pub fn delivery(delivery: Delivery) -> &'static str {
    match delivery {
        Delivery::FluxKustomization => "ks",
        Delivery::FluxHelmRelease => "hr",
        Delivery::ArgoApplication => "argo",
        other => other.as_str(),
    }
}

/// Returns the first three of the fields that a change names, and how many more there are: `replicas, strategy.type and
/// 2 more`, or `at least 2 more` if it names as many as it can; `None` if it names none.
fn few_fields(fields: &[String]) -> Option<String> {
    const MAX_NAMED: usize = 3;
    let named = fields.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let least = if fields.len() < Change::MAX_FIELDS { "" } else { "at least " };
    match fields.len().saturating_sub(MAX_NAMED) {
        0 => (!named.is_empty()).then_some(named),
        more => Some(format!("{named} and {least}{more} more")),
    }
}

/// Returns a change of an object in words: what changed, who changed it, and the old and new values, as far as each is
/// known: `image of container web, by helm: web:1 → web:2`.
pub fn change(change: &Change) -> String {
    // The only field that a manager wrote, with its present value.
    let is_only = change.to.is_some() && change.from.is_none() && change.fields.len() == 1;
    let what = match (change.what, &change.container) {
        (ChangeKind::Image, Some(container)) => &*format!("image of container {container}"),
        (ChangeKind::Template, _) => "Pod template",
        (ChangeKind::Config, _) => "contents",
        (ChangeKind::Metadata, _) => "metadata",
        (ChangeKind::Node, _) => "lost",
        (ChangeKind::Quota, _) => "used up",
        (ChangeKind::Spec, _) if is_only => change.fields.first().map_or("spec", String::as_str),
        (what, _) => what.as_str(),
    };
    let shown = |text: &Option<String>| text.as_deref().map(|text| revision(text).into_owned());
    let values = match (shown(&change.from), shown(&change.to)) {
        (Some(from), Some(to)) if from == to => Some(to),
        (Some(from), to) => Some(format!("{from} → {}", to.as_deref().unwrap_or("nothing"))),
        (None, to) => to,
    };
    let mut more: Vec<String> = values.into_iter().collect();
    match change.what {
        ChangeKind::Spec if is_only => {}
        ChangeKind::Spec => more.extend(few_fields(&change.fields)),
        _ => more.extend(change.fields.iter().cloned()),
    }
    let more = more.join(", ");
    let by = change.by.as_ref().map(|by| format!(", by {by}")).unwrap_or_default();
    let colon = if more.is_empty() { "" } else { ": " };
    format!("{what}{by}{colon}{more}")
}

/// Returns the results of checks for a table cell: `error-rate=false,latency=nodata`, the worst first.
pub fn checks(results: &[CheckResult]) -> String {
    let mut results: Vec<&CheckResult> = results.iter().collect();
    results.sort_by_key(|result| result.result);
    let texts: Vec<String> =
        results.into_iter().map(|result| format!("{}={}", result.name, result.result)).collect();
    texts.join(",")
}

/// Formats the nodes of a cluster: how many are ready, and the one that has not been for longest, `2/3, n-3
/// NodeStatusUnknown`; after `was`, if the cluster is not live. `Unknown` if a live cluster could be asked for them and they
/// are not known; `None` if nothing tells of its nodes.
pub fn nodes(cluster: &ClusterRow) -> Option<String> {
    let Some(Nodes { ready, total, unready }) = &cluster.nodes else {
        let is_asked = cluster.nodes_unobserved.is_some() && cluster.reading.is_some();
        return is_asked.then(|| Status::Unknown.word().to_owned());
    };
    let was = if cluster.freshness.is_live() { "" } else { "was " };
    let unready = unready.as_ref().map(|it| format!(", {} {}", it.name, it.reason));
    Some(format!("{was}{ready}/{total}{}", unready.unwrap_or_default().trim_end()))
}
