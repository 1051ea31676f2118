//! The content of the overview: the state of the fleet, its problems, and the latest changes.

use std::collections::{BTreeMap, HashMap, VecDeque};

use jiff::Timestamp;
use taffrail_api::question::OverviewAnswer;
use taffrail_api::{AppRow, text};
use taffrail_apps::{AppRef, FreshnessState, Problem, ProblemSeverity, Scope, SyncState, full_name};
use taffrail_status::{Status, rollup};

/// Maximum number of changes that are kept; beyond it the oldest are dropped.
const REMEMBERED: usize = 50;

/// A group of apps that are counted together: one status, or apps that are Ready with a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Tally {
    /// Apps with this status; for Ready only those without a problem that is more than a notice.
    Of(Status),
    /// Apps that are Ready, with a problem on another axis that is more than a notice.
    Problem,
}

/// The number of apps in each category; empty categories are left out.
pub(in crate::commands) type Counts = Vec<(Tally, usize)>;

/// The state of one cluster.
#[derive(Debug, Clone)]
pub(in crate::commands) struct ClusterNews {
    pub(in crate::commands) name: String,
    /// The region; empty if the fleet has none.
    pub(in crate::commands) region: String,
    pub(in crate::commands) counts: Counts,
    /// If the cluster is not live: the message of its error (empty if there is none), and the time at which it was last
    /// observed.
    pub(in crate::commands) lost: Option<(String, Option<Timestamp>)>,
}

/// A problem. Equal problems of several apps or clusters are one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) struct Concern {
    pub(in crate::commands) severity: ProblemSeverity,
    pub(in crate::commands) status: Status,
    /// The state in words: `Failed`, `Ready, OutOfSync`.
    pub(in crate::commands) state: String,
    pub(in crate::commands) apps: Vec<String>,
    /// The full name of the first app; empty for a cluster.
    pub(in crate::commands) full_name: String,
    pub(in crate::commands) clusters: Vec<String>,
    pub(in crate::commands) since: Option<Timestamp>,
    pub(in crate::commands) message: String,
    pub(in crate::commands) kind: Kind,
    /// True if the app is declared in another cluster than the one where its objects are.
    pub(in crate::commands) is_remote: bool,
}

/// The kind of a problem, in the order in which problems of one severity and status are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::commands) enum Kind {
    /// Apps that are not ready.
    Unwell,
    /// A cluster that does not answer.
    Lost,
    /// Apps that are ready but have a problem with their sync or source, or are suspended.
    Unsynced,
}

impl Concern {
    /// Returns the problem in one or two words: the state of an app or cluster; for a ready app only its problem, such
    /// as `OutOfSync` or `Suspended`.
    pub(in crate::commands) fn word(&self) -> &str {
        match self.kind {
            Kind::Unwell | Kind::Lost => &self.state,
            Kind::Unsynced => self.state.rsplit(", ").next().map_or("", |word| match word {
                "Ready (suspended)" => "Suspended",
                "sync failed" => "Sync failed",
                "sync unknown" => "Sync unknown",
                "source failed" => "Source failed",
                "delivery stopped" => "Delivery stopped",
                word => word,
            }),
        }
    }
}

/// A change of the state of apps or clusters.
#[derive(Debug, Clone)]
pub(in crate::commands) struct Change {
    pub(in crate::commands) at: Timestamp,
    pub(in crate::commands) apps: Vec<String>,
    pub(in crate::commands) clusters: Vec<String>,
    pub(in crate::commands) before: String,
    pub(in crate::commands) after: String,
    /// The status after the change.
    pub(in crate::commands) status: Status,
    pub(in crate::commands) message: String,
}

/// The state of an app when the fleet was read last, to detect changes.
struct Known {
    state: String,
    /// The time at which the app was first seen in this state; `None` if it already was so at the start.
    since: Option<Timestamp>,
    is_lost: bool,
}

/// The state of the fleet, updated by each read.
pub(in crate::commands) struct News {
    regions: Vec<String>,
    pub(in crate::commands) clusters: Vec<ClusterNews>,
    pub(in crate::commands) counts: Counts,
    pub(in crate::commands) concerns: Vec<Concern>,
    /// The latest changes, newest first.
    pub(in crate::commands) changes: VecDeque<Change>,
    /// The total number of changes, those no longer kept included.
    pub(in crate::commands) changed: usize,
    known: HashMap<AppRef, Known>,
    /// For each cluster: true if it does not answer, and the time at which that was seen to begin.
    lost: BTreeMap<String, (bool, Option<Timestamp>)>,
}

impl News {
    /// Creates the state before the first read; `regions` has the region of each cluster, in their order, or nothing if
    /// there are no regions.
    pub(in crate::commands) fn new(regions: &[String]) -> News {
        News {
            regions: regions.to_vec(),
            clusters: Vec::new(),
            counts: Vec::new(),
            concerns: Vec::new(),
            changes: VecDeque::new(),
            changed: 0,
            known: HashMap::new(),
            lost: BTreeMap::new(),
        }
    }

    /// Updates the state from an answer about the fleet, and records the changes since the last one.
    pub(in crate::commands) fn look(&mut self, answer: &OverviewAnswer) {
        let OverviewAnswer { fleet, clusters, apps, errors } = answer;
        let counts = |apps: &mut dyn Iterator<Item = &AppRow>| -> Counts {
            let (besides, others): (Vec<&AppRow>, Vec<&AppRow>) =
                apps.partition(|app| app.effective == Status::Current && is_pressing(app));
            let counts: rollup::Counts = others.into_iter().map(|app| app.effective).collect();
            let of = |status: &Status| (Tally::Of(*status), counts.get(*status));
            let besides = std::iter::once((Tally::Problem, besides.len()));
            let all = ALL.iter().map(of).chain(besides);
            all.filter(|(_, count)| *count > 0).collect()
        };
        let mut by_cluster: HashMap<&str, Vec<&AppRow>> = HashMap::new();
        for app in apps {
            by_cluster.entry(&app.cluster).or_default().push(app);
        }
        self.counts = counts(&mut apps.iter());
        let regions = self.regions.iter().cloned().chain(std::iter::repeat(String::new()));
        let clusters = clusters.iter().zip(regions).map(|(row, region)| {
            let is_lost = !row.freshness.is_live();
            let error = errors.iter().find(|it| it.cluster == row.name && it.error.scope == Scope::Cluster);
            let mut own = by_cluster.get(&*row.name).into_iter().flatten().copied();
            let message = error.map(|error| error.error.message.clone()).unwrap_or_default();
            let seen = row.freshness.observed_at;
            ClusterNews {
                name: row.name.clone(),
                region,
                counts: counts(&mut own),
                lost: is_lost.then_some((message, seen)),
            }
        });
        self.clusters = clusters.collect();
        self.compare(apps, fleet.now);
        self.concerns = self.concerns_of(apps);
    }

    /// Records the changes of clusters and apps since the last read. Leaves out the apps of clusters that come or go,
    /// those that were not read before, and those that are gone.
    fn compare(&mut self, apps: &[AppRow], now: Timestamp) {
        let is_first = self.known.is_empty() && self.lost.is_empty();
        let mut changes: Vec<Change> = Vec::new();
        for cluster in &self.clusters {
            let is_lost = cluster.lost.is_some();
            let before = self.lost.get(&cluster.name).copied();
            if is_first || before.is_some_and(|(was_lost, _)| was_lost == is_lost) {
                self.lost.entry(cluster.name.clone()).or_insert((is_lost, None));
                continue;
            }
            self.lost.insert(cluster.name.clone(), (is_lost, is_lost.then_some(now)));
            let (before, after, status, message) = match &cluster.lost {
                Some((message, _)) => ("in reach", "no answer", Status::Unknown, message.clone()),
                None => ("no answer", "in reach", Status::Current, String::new()),
            };
            changes.push(Change {
                at: now,
                apps: Vec::new(),
                clusters: vec![cluster.name.clone()],
                before: before.to_owned(),
                after: after.to_owned(),
                status,
                message,
            });
        }
        let mut known = HashMap::with_capacity(apps.len());
        for app in apps {
            let state = state(app);
            let is_lost = app.freshness.state != FreshnessState::Live;
            let name = named(app);
            let before = self.known.remove(&name);
            // What was Unknown from the start has only now been read.
            let was_unread =
                |before: &Known| before.since.is_none() && before.state.starts_with(Status::Unknown.word());
            let since = match &before {
                Some(before) if before.state == state || was_unread(before) => before.since,
                None if is_first => None,
                _ => Some(now),
            };
            // Apps of a cluster that comes or goes are not told one by one.
            if let Some(before) = &before
                && before.state != state
                && !before.is_lost
                && !is_lost
                && !was_unread(before)
            {
                note(&mut changes, app, &before.state, &state, now);
            }
            known.insert(name, Known { state, since, is_lost });
        }
        self.known = known;
        self.changed += changes.len();
        changes.into_iter().for_each(|change| self.changes.push_front(change));
        self.changes.truncate(REMEMBERED);
    }

    /// Returns the problems of those `apps` whose observation is live, and of the clusters that do not answer, the most
    /// severe first. Equal problems of one app in several clusters, or of several apps in one, are merged.
    fn concerns_of(&self, apps: &[AppRow]) -> Vec<Concern> {
        let mut concerns: Vec<Concern> = Vec::new();
        for cluster in &self.clusters {
            if let Some((message, seen)) = &cluster.lost {
                let own = apps.iter().filter(|app| app.cluster == cluster.name);
                let was: rollup::Counts = own.map(|app| app.health).collect();
                let total = was.total();
                let was = match was.get(Status::Current) {
                    // Apps that were never observed were nothing.
                    _ if was.get(Status::Unknown) == total => String::new(),
                    well if well == total => "all were Ready: ".to_owned(),
                    well => format!("{well} of {total} were Ready: "),
                };
                concerns.push(Concern {
                    severity: ProblemSeverity::Error,
                    status: Status::Unknown,
                    state: Status::Unknown.word().to_owned(),
                    apps: vec![format!("{total} apps")],
                    full_name: String::new(),
                    clusters: vec![cluster.name.clone()],
                    // It was read last some time before it went dark: nothing need have changed there.
                    since: self.lost.get(&cluster.name).and_then(|(_, since)| *since).or(*seen),
                    message: format!("{was}{message}"),
                    kind: Kind::Lost,
                    is_remote: false,
                });
            }
        }
        let live = apps.iter().filter(|app| app.freshness.state == FreshnessState::Live);
        for (app, problem) in live.filter_map(|app| Some((app, app.problem.as_ref()?))) {
            let seen = self.known.get(&named(app)).and_then(|known| known.since);
            let state = state(app);
            let (name, cluster) = (app.name.clone(), app.cluster.clone());
            let since = problem.since.or(seen);
            let message = message(app);
            let kind = if app.health == Status::Current { Kind::Unsynced } else { Kind::Unwell };
            let known = concerns.iter_mut().find(|known| {
                // Either one app in several clusters, or several apps in one.
                let fits = known.apps == [name.as_str()] || known.clusters == [cluster.as_str()];
                fits && known.kind == kind && known.state == state && known.message == message
            });
            match known {
                Some(known) => {
                    if !known.apps.contains(&name) {
                        known.apps.push(name);
                    }
                    if !known.clusters.contains(&cluster) {
                        known.clusters.push(cluster);
                    }
                    known.since = known.since.min(since).or(since);
                }
                None => concerns.push(Concern {
                    severity: problem.severity,
                    status: app.health,
                    state,
                    apps: vec![name],
                    full_name: full_name(&named(app)),
                    clusters: vec![cluster],
                    since,
                    message,
                    kind,
                    is_remote: app.home != app.cluster,
                }),
            }
        }
        concerns.sort_by(|one, other| {
            (one.severity, one.status, one.kind, one.since.is_none(), one.since).cmp(&(
                other.severity,
                other.status,
                other.kind,
                other.since.is_none(),
                other.since,
            ))
        });
        concerns
    }
}

/// Adds the change of an app from state `before` to `after`. The same change of one app in several clusters, or of
/// several apps of one cluster, shares an entry.
fn note(changes: &mut Vec<Change>, app: &AppRow, before: &str, after: &str, at: Timestamp) {
    let (name, cluster) = (app.name.clone(), app.cluster.clone());
    let message = message(app);
    let same = changes.iter_mut().find(|change| {
        let fits = change.apps == [name.as_str()] || change.clusters == [cluster.as_str()];
        fits && !change.apps.is_empty() && change.before == before && change.after == after
    });
    match same {
        Some(change) => {
            if !change.apps.contains(&name) {
                change.apps.push(name);
            }
            if !change.clusters.contains(&cluster) {
                change.clusters.push(cluster);
            }
        }
        None => changes.push(Change {
            at,
            apps: vec![name],
            clusters: vec![cluster],
            before: before.to_owned(),
            after: after.to_owned(),
            status: app.effective,
            message: if app.problem.is_some() { message } else { String::new() },
        }),
    }
}

const ALL: [Status; 6] = [
    Status::Current,
    Status::Failed,
    Status::NotFound,
    Status::Unknown,
    Status::Terminating,
    Status::InProgress,
];

fn named(app: &AppRow) -> AppRef {
    AppRef {
        home: app.home.clone(),
        target: app.cluster.clone(),
        delivery: app.delivery,
        namespace: app.namespace.clone(),
        name: app.name.clone(),
    }
}

/// Returns true if the worst problem of an app is more than a notice.
pub(super) fn is_pressing(app: &AppRow) -> bool {
    app.problem.as_ref().is_some_and(Problem::is_pressing)
}

/// Returns the state of an app in words, such as `Failed`, `Ready, OutOfSync` or `Ready (suspended)`.
fn state(app: &AppRow) -> String {
    let word = app.health.word();
    match app.problem.as_ref().filter(|_| app.health == Status::Current) {
        Some(problem) if !problem.words().is_empty() && problem.words() != "suspended" => {
            format!("{word}, {}", problem.words())
        }
        _ if app.suspended => format!("{word} (suspended)"),
        _ => word.to_owned(),
    }
}

fn message(app: &AppRow) -> String {
    let revisions = |applied: &str, desired: &str| {
        format!("runs {}, but {} is declared", text::revision(applied), text::revision(desired))
    };
    let message = match (app.health, app.sync.effective, &app.sync.applied, &app.sync.desired) {
        (Status::Current, SyncState::OutOfSync | SyncState::Suspended, Some(applied), Some(desired))
            if applied != desired =>
        {
            revisions(applied, desired)
        }
        (Status::Current, SyncState::OutOfSync, ..) => {
            "the running objects were changed, and differ from the declared ones".to_owned()
        }
        (Status::Current, ..) if app.problem.is_some() => {
            text::line(app.problem.as_ref().map_or("", |problem| &problem.message))
        }
        _ => text::line(&app.message),
    };
    text::revision(&message).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// The news after looks at a cluster at these seconds, at which it answers or does not; it was read last at second
    /// 0.
    fn after(looks: &[(i64, bool)]) -> News {
        let mut news = News::new(&[]);
        for &(second, answers) in looks {
            let lost = (!answers).then(|| ("cannot connect".to_owned(), Some(at(0))));
            news.clusters = vec![ClusterNews {
                name: "ap-2".to_owned(),
                region: "ap".to_owned(),
                counts: Counts::new(),
                lost,
            }];
            news.compare(&[], at(second));
            news.concerns = news.concerns_of(&[]);
        }
        news
    }

    #[test]
    fn a_cluster_is_dark_since_it_was_seen_to_go_and_not_since_it_was_read() {
        let since = |looks: &[(i64, bool)]| after(looks).concerns.first().map(|concern| concern.since);
        assert_eq!(since(&[(230, true)]), None);
        assert_eq!(since(&[(230, true), (240, false), (250, false)]), Some(Some(at(240))));
        assert_eq!(since(&[(230, true), (240, false), (250, true), (260, false)]), Some(Some(at(260))));
        assert_eq!(since(&[(240, false), (250, false)]), Some(Some(at(0))), "dark from the start");
        assert_eq!(after(&[(230, true), (240, false)]).changes.len(), 1);
    }
}
