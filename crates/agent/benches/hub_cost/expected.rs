//! The answers that a hub must give, found by looking at every app of the model.

use std::collections::{BTreeMap, BTreeSet};

use taffrail_api::AppRow;
use taffrail_api::hub::{AppGroup, Matrix};
use taffrail_apps::{FreshnessState, SyncState};
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use crate::model::{self, APPS, AppState, Model, NAMES, NAMESPACES};

/// A query for rows of apps.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowQuery {
    /// The numbers of the clusters; empty for all.
    clusters: Vec<usize>,
    /// The numbers of the namespaces; empty for all.
    namespaces: Vec<usize>,
    /// The status that apps must have, or must not have if it is negated.
    status: Option<(Status, bool)>,
    is_out_of_sync: bool,
    has_problem: bool,
    text: Option<String>,
    sort: Option<&'static str>,
}

/// The rows of an app with its cluster's and its own number, in the order of a query.
type Found = ([i64; 3], usize, usize);

impl RowQuery {
    /// Makes a query of random conditions.
    pub(crate) fn random(clusters: usize) -> RowQuery {
        let some = |of: usize| fastrand::usize(0..of.max(1));
        let mut query = RowQuery::default();
        match fastrand::u8(0..10) {
            0..2 => query.clusters = vec![some(clusters)],
            2 => query.clusters = (0..20).map(|_| some(clusters)).collect(),
            _ => {}
        }
        query.clusters.sort_unstable();
        query.clusters.dedup();
        if fastrand::u8(0..10) < 3 {
            query.namespaces = vec![some(NAMESPACES)];
        }
        query.status = match fastrand::u8(0..10) {
            0 => Some((Status::Failed, false)),
            1 => Some((Status::InProgress, false)),
            2 => Some((Status::Current, false)),
            3..5 => Some((Status::Current, true)),
            _ => None,
        };
        query.is_out_of_sync = fastrand::u8(0..10) == 0;
        query.has_problem = fastrand::u8(0..10) == 0;
        query.text = match fastrand::u8(0..12) {
            0 => NAMES.get(some(NAMES.len())).map(|name| (*name).to_owned()),
            1 => Some("restarts again".to_owned()),
            2 => Some(format!("prod-{:04}", some(clusters) / 10)),
            _ => None,
        };
        let sorts = [None, Some("name"), Some("status"), Some("cluster"), Some("since"), Some("delivery")];
        query.sort = sorts.get(some(sorts.len())).copied().flatten();
        query
    }

    /// Makes a query for all apps of a random namespace, which is a team's in every cluster.
    pub(crate) fn of_team() -> RowQuery {
        RowQuery { namespaces: vec![fastrand::usize(0..NAMESPACES)], ..RowQuery::default() }
    }

    /// Returns the query as parameters of a path.
    pub(crate) fn parameters(&self) -> String {
        let mut all = Vec::new();
        if !self.clusters.is_empty() {
            let names: Vec<String> = self.clusters.iter().map(|it| model::cluster_name(*it)).collect();
            all.push(format!("cluster={}", names.join(",")));
        }
        if !self.namespaces.is_empty() {
            let names: Vec<String> =
                self.namespaces.iter().map(|it| model::namespace(it * NAMES.len())).collect();
            all.push(format!("namespace={}", names.join(",")));
        }
        if let Some((status, is_negated)) = self.status {
            all.push(format!("status={}{}", if is_negated { "!" } else { "" }, status.word()));
        }
        if self.is_out_of_sync {
            all.push("sync=OutOfSync".to_owned());
        }
        if self.has_problem {
            all.push("problems=".to_owned());
        }
        all.extend(self.text.iter().map(|text| format!("text={}", text.replace(' ', "%20"))));
        all.extend(self.sort.iter().map(|sort| format!("sort={sort}")));
        all.join("&")
    }

    /// Returns the apps that match, each with the numbers of its cluster and of itself, in the order of the query: the
    /// first `most`; and the number of all that match.
    pub(crate) fn find(&self, model: &Model, most: usize) -> (Vec<(usize, usize)>, usize) {
        let text = self.text.as_deref();
        let has = |name: &str| text.is_none_or(|text| name.contains(text));
        let in_app: Vec<bool> = (0..APPS)
            .map(|app| has(&model::key(app)) || has(&model::namespace(app)) || has(model::name(app)))
            .collect();
        let names: Vec<String> = (0..model.clusters).map(model::cluster_name).collect();
        let in_cluster: Vec<bool> = names.iter().map(|name| has(name)).collect();
        let mut ranks: Vec<usize> = (0..model.clusters).collect();
        ranks.sort_by_key(|cluster| names.get(*cluster));
        let mut rank = vec![0; model.clusters];
        for (at, cluster) in ranks.into_iter().enumerate() {
            if let Some(slot) = rank.get_mut(cluster) {
                *slot = i64::try_from(at).unwrap_or_default();
            }
        }
        let mut found: Vec<Found> = Vec::new();
        for (cluster, app, state) in model.all() {
            if !self.clusters.is_empty() && !self.clusters.contains(&cluster) {
                continue;
            }
            if !self.namespaces.is_empty() && !self.namespaces.contains(&(app / NAMES.len())) {
                continue;
            }
            let (status, severity) = (state.status(), state.severity());
            let has_status = |(wanted, is_negated): (Status, bool)| match is_negated {
                // An app that is Ready but has a problem is not well.
                true => status != wanted || severity.is_some(),
                false => status == wanted && (status != Status::Current || severity.is_none()),
            };
            let is_found = || {
                in_app.get(app) == Some(&true)
                    || in_cluster.get(cluster) == Some(&true)
                    || state.problem_message(cluster, app).is_some_and(|it| has(&it.to_lowercase()))
            };
            let matches = self.status.is_none_or(has_status)
                && (!self.is_out_of_sync || state.sync() == SyncState::OutOfSync)
                && (!self.has_problem || severity.is_some())
                && (text.is_none() || is_found());
            if !matches {
                continue;
            }
            let since = match severity {
                Some(_) => state.since(cluster, app).as_microsecond(),
                None => i64::MAX,
            };
            let severity = severity.map_or(i64::MAX, |severity| severity as i64);
            let key = match self.sort {
                Some("name") => {
                    [app % NAMES.len(), app / NAMES.len(), 0].map(|it| i64::try_from(it).unwrap_or_default())
                }
                Some("status") => [status as i64, severity, since],
                Some("cluster") => [rank.get(cluster).copied().unwrap_or_default(), 0, 0],
                Some("since") => [since, 0, 0],
                Some("delivery") => [model::delivery(app) as i64, 0, 0],
                _ => [0; 3],
            };
            found.push((key, cluster, app));
        }
        let total = found.len();
        if total > most && most > 0 {
            found.select_nth_unstable(most - 1);
            found.truncate(most);
        }
        found.sort_unstable();
        (found.into_iter().map(|(_, cluster, app)| (cluster, app)).collect(), total)
    }
}

/// Returns the first difference between a row and the app that it must show; `None` if there is none.
pub(crate) fn difference(row: &AppRow, model: &Model, cluster: usize, app: usize) -> Option<String> {
    let state = model.app(cluster, app);
    let is_live = row.freshness.is_live() && row.sync.freshness.is_live();
    let problem = row.problem.as_ref();
    let told = problem.map(|problem| (problem.message.to_string(), problem.severity, problem.since));
    let wanted = state.problem_message(cluster, app).zip(state.severity());
    let wanted = wanted.map(|(message, severity)| (message, severity, Some(state.since(cluster, app))));
    let parts = [
        ("cluster", row.cluster == model::cluster_name(cluster) && row.home == row.cluster),
        ("namespace", row.namespace == model::namespace(app)),
        ("name", row.name == model::name(app)),
        ("delivery", row.delivery == model::delivery(app)),
        ("key", row.key == model::key(app)),
        ("health", row.health == state.status()),
        ("effective", row.effective == if is_live { state.status() } else { Status::Unknown }),
        ("sync", row.sync.state == state.sync()),
        ("revision", row.sync.applied == Some(model::revision(state))),
        ("message", &*row.message == state.message(cluster, app).as_str()),
        ("problem", !is_live || told == wanted),
    ];
    let wrong = parts.into_iter().find(|(_, is_right)| !is_right)?.0;
    Some(format!("the {wrong} of {} in {} differs", model::key(app), model::cluster_name(cluster)))
}

/// Returns the groups of all live apps by a value that they share, in the order of its text.
pub(crate) fn groups(model: &Model, by: &str) -> Vec<AppGroup> {
    let mut groups: BTreeMap<String, AppGroup> = BTreeMap::new();
    let clusters: Vec<String> = (0..model.clusters).map(model::cluster_name).collect();
    let fixed: Vec<[String; 4]> = (0..APPS)
        .map(|app| {
            let delivery = model::delivery(app).to_string();
            [model::namespace(app), model::name(app).to_owned(), model::key(app), delivery]
        })
        .collect();
    for (cluster, app, state) in model.all() {
        let AppState { is_out_of_sync, .. } = state;
        let of_app = |at: usize| fixed.get(app).and_then(|it| it.get(at)).map_or("", String::as_str);
        let value = match by {
            "cluster" | "home" => clusters.get(cluster).map_or("", String::as_str),
            "namespace" => of_app(0),
            "name" => of_app(1),
            "key" => of_app(2),
            "delivery" => of_app(3),
            "status" => state.status().as_str(),
            "sync" => state.sync().as_str(),
            "problem" if state.status() != Status::Current => "health",
            "problem" if is_out_of_sync => "sync",
            _ => "",
        };
        if !groups.contains_key(value) {
            let counts = Counts::default();
            let (group, worst) = (value.to_owned(), None);
            groups.insert(
                value.to_owned(),
                AppGroup { group, apps: 0, problems: 0, counts, worst, stale: 0, lost: 0 },
            );
        }
        let Some(group) = groups.get_mut(value) else { continue };
        group.apps += 1;
        group.problems += usize::from(state.severity().is_some());
        group.counts.add(state.status());
        group.worst = [group.worst, Some(state.status())].into_iter().flatten().min();
    }
    groups.into_values().collect()
}

/// Returns the first difference between a matrix of all keys and the model, in which all apps are live; `None` if there
/// is none.
pub(crate) fn matrix_difference(matrix: &Matrix, model: &Model) -> Option<String> {
    let clusters: Vec<String> = (0..model.clusters).map(model::cluster_name).collect();
    let columns: Vec<&String> = matrix.columns.iter().map(|column| &column.cluster).collect();
    if matrix.columns_omitted != 0 || !columns.iter().copied().eq(&clusters) {
        return Some("the columns of the matrix differ".to_owned());
    }
    let apps: BTreeMap<String, usize> = (0..APPS).map(|app| (model::key(app), app)).collect();
    if matrix.extent.total != APPS
        || !matrix.rows.iter().map(|row| &row.key).eq(apps.keys().take(matrix.rows.len()))
    {
        return Some("the rows of the matrix differ".to_owned());
    }
    let meaning: BTreeMap<char, _> =
        matrix.legend.iter().map(|it| (it.code, (it.health, it.freshness, it.problem))).collect();
    for row in &matrix.rows {
        let app = apps.get(&row.key).copied()?;
        if row.cells.chars().count() != model.clusters {
            return Some(format!("the row of {} has {} cells", row.key, row.cells.len()));
        }
        for (cluster, cell) in row.cells.chars().enumerate() {
            let state = model.app(cluster, app);
            let wanted = (state.status(), FreshnessState::Live, state.severity().is_some());
            if meaning.get(&cell) != Some(&wanted) {
                let name = model::cluster_name(cluster);
                return Some(format!("the cell of {} in {name} is {cell}", row.key));
            }
        }
    }
    None
}

/// Returns the numbers of `count` different ones of so many clusters, or of all if these are fewer.
pub(crate) fn some_clusters(clusters: usize, count: usize) -> BTreeSet<usize> {
    let mut all: Vec<usize> = (0..clusters).collect();
    fastrand::shuffle(&mut all);
    all.into_iter().take(count).collect()
}
