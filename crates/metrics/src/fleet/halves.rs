//! Makes halves of rows, and reports of clusters, from the facts that are held.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use taffrail_api::report::{
    AppId, ClusterReport, DeclaredHalf, HalfBody, HalfId, LIVE, LostCluster, MAX_WINDOW, NotLive,
    ObservedHalf, ReportStreams, Speaker,
};
use taffrail_api::{AppName, RowPart, Unobserved};
use taffrail_apps::{
    AppKey, Axis, ClusterId, Delivery, FreshnessState, Problem, ProblemSeverity, SUSPENDED, SyncState, Words,
};
use taffrail_object::ObjectKey;
use taffrail_status::Status;

use super::{
    HeldFact, MAX_CLUSTER_APPS, MetricsApp, MetricsFleet, ScopeFailure, ServerFacts, identity, is_metrics_id,
};
use crate::families::{is_of_one_app, sync_rank};

/// The time for which an app may be out of sync before that is a problem.
const MAX_UNSYNCED: Duration = Duration::from_secs(600);

/// The parts that an observed half can tell; a declared half can tell all others.
const OBSERVED: [RowPart; 2] = [RowPart::Health, RowPart::Objects];

/// A fact with its metric and its freshness at one moment, and true if it would be live without gaps in answers.
type FreshFact<'f> = (&'f str, &'f HeldFact, NotLive, bool);

impl MetricsFleet {
    /// Passes the present halves and the reports of all clusters to `streams`; `known` has the identities of clusters
    /// that closer sources know, by name. Returns the longest window of a cluster.
    pub(crate) fn tell(
        &mut self,
        streams: &mut ReportStreams,
        known: &HashMap<String, ClusterId>,
        server: &ServerFacts,
        now: Duration,
    ) -> Duration {
        let mut ids: BTreeMap<Box<str>, ClusterId> =
            self.clusters.keys().map(|name| (name.clone(), identity(name, known))).collect();
        for app in self.clusters.values().flat_map(|cluster| cluster.apps.values()) {
            let named = app.facts.iter().filter_map(|(_, held)| held.fact.destination.as_ref());
            for name in named {
                if !ids.contains_key(name) {
                    ids.insert(name.clone(), identity(name, known));
                }
            }
        }
        let wanted: HashSet<&ClusterId> = ids.values().collect();
        let gone: Vec<ClusterId> = streams.clusters().filter(|id| !wanted.contains(id)).cloned().collect();
        gone.iter().for_each(|id| streams.close(id));
        wanted.iter().for_each(|id| streams.begin(id, now));
        // A cluster may stand under its name and under its identity.
        let are_several = wanted.len() < ids.len();
        let mut told: HashSet<HalfId> = HashSet::new();
        let mut windows: HashMap<&ClusterId, Duration> = HashMap::new();
        streams.begin_pass();
        let names: Vec<Box<str>> = self.clusters.keys().cloned().collect();
        for name in &names {
            let Some(home) = ids.get(name) else { continue };
            let Some(mut held) = self.clusters.remove(name) else { continue };
            for (app, facts) in &mut held.apps {
                let is_foreign = facts
                    .facts
                    .iter()
                    .any(|(_, held)| held.fact.key.as_ref().is_some_and(|key| !is_of_one_app(key, app)));
                // The closer source knows the app by another identity.
                if is_foreign && !is_metrics_id(home) {
                    continue;
                }
                // That source knows whether the app is gone; here it stays for a while.
                let is_told = facts.facts.iter().any(|(_, held)| held.absent.is_none());
                if !is_told && !is_metrics_id(home) {
                    continue;
                }
                let window = windows.entry(home).or_insert(LIVE);
                *window = (*window).max(self.window_of(facts, now));
                let (target, declared, observed) = self.halves(app, facts, home, &ids, now);
                let target_id = target.unwrap_or(home);
                let window = *window;
                let of_target = windows.entry(target_id).or_insert(LIVE);
                *of_target = (*of_target).max(window);
                let bodies = [
                    (home, Some(HalfBody::Declared(Box::new(declared)))),
                    (target_id, observed.map(|half| HalfBody::Observed(Box::new(half)))),
                ];
                for (cluster, body) in bodies {
                    let Some(body) = body else { continue };
                    let side = body.side();
                    let id = HalfId { app: AppId { home: home.clone(), app: app.clone() }, side };
                    if !are_several || told.insert(id.clone()) {
                        streams.set(cluster, id, body, now);
                    }
                }
            }
            self.clusters.insert(name.clone(), held);
        }
        streams.end_pass(now);
        self.tell_clusters(streams, &ids, &windows, server, now);
        windows.values().copied().max().unwrap_or(LIVE)
    }

    /// Passes the reports of the clusters, and the moments of their last signs of life, to `streams`.
    fn tell_clusters(
        &mut self,
        streams: &mut ReportStreams,
        ids: &BTreeMap<Box<str>, ClusterId>,
        windows: &HashMap<&ClusterId, Duration>,
        server: &ServerFacts,
        now: Duration,
    ) {
        let blinding = server.failures.iter().find(|failure| failure.is_blinding);
        let blind = blinding.map(|failure| format!("{}: {}", failure.scope, failure.message));
        let mut newest: HashMap<&ClusterId, f64> = HashMap::new();
        // The objects of an app are heard of where the app is declared.
        for (name, held) in &self.clusters {
            let Some(home) = ids.get(name) else { continue };
            let mut hear = |id, at: f64| {
                let held = newest.entry(id).or_insert(at);
                *held = held.max(at);
            };
            hear(home, held.newest);
            for app in held.apps.values() {
                for (_, held) in &app.facts {
                    let target = held.fact.destination.as_ref().and_then(|name| ids.get(name));
                    // What a tool elsewhere says of a cluster is no sign of life of one that another source reads.
                    let target = target.filter(|id| is_metrics_id(id));
                    target.into_iter().for_each(|target| hear(target, held.fact.at));
                }
            }
        }
        let heard = newest.iter().map(|(id, at)| (ClusterId::clone(id), *at)).collect();
        let before = std::mem::replace(&mut self.heard, heard);
        for (place, (name, id)) in ids.iter().enumerate() {
            let is_news = newest.get(id) > before.get(id);
            let age = newest.get(id).map(|at| self.age(*at, now));
            let window = windows.get(id).copied().unwrap_or(LIVE).min(MAX_WINDOW);
            let is_dark = age.is_none_or(|age| age > window);
            let lost = server.lost.as_ref().filter(|_| is_dark).map(|message| LostCluster {
                message: format!("metrics server {}: {message}", server.name),
                silence: format!("is not told of by metrics server {}", server.name),
            });
            let crowded = self.crowded.contains(name).then(|| {
                let message =
                    format!("only {MAX_CLUSTER_APPS} apps of the cluster are read, and there are more");
                ScopeFailure::new("apps".to_owned(), "TooManyApps", message, None)
            });
            let facts = ClusterReport {
                name: name.to_string(),
                id: Some(id.0.clone()).filter(|_| !is_metrics_id(id)),
                blind: crowded.as_ref().map(|crowded| crowded.message.clone()).or_else(|| blind.clone()),
                lost,
                live_window: (window > LIVE).then_some(window),
                ..ClusterReport::default()
            };
            // Once for the server, not for each of its clusters.
            let of_server = server.failures.iter().filter(|_| place == 0);
            let own = self.refused.get(name).into_iter().flatten();
            let errors = of_server.chain(own).chain(&crowded).map(|failure| failure.row(name)).collect();
            streams.set_facts(id, facts, errors, now);
            streams.set_heard(id, age.and_then(|age| now.checked_sub(age)));
            if is_news {
                streams.beat(id, now);
            }
        }
    }

    /// Returns the longest window of the live facts of an app.
    fn window_of(&self, app: &MetricsApp, now: Duration) -> Duration {
        let live = app
            .facts
            .iter()
            .filter(|(_, held)| self.freshness(&held.fact, now).state == FreshnessState::Live);
        live.map(|(_, held)| self.window(&held.fact.target)).max().unwrap_or(LIVE)
    }

    /// Makes the halves of an app: the cluster that holds its objects, if that is another one, the declared half, and the
    /// observed one if any fact tells the health.
    fn halves<'i>(
        &self,
        app: &AppName,
        held: &mut MetricsApp,
        home: &ClusterId,
        ids: &'i BTreeMap<Box<str>, ClusterId>,
        now: Duration,
    ) -> (Option<&'i ClusterId>, DeclaredHalf, Option<ObservedHalf>) {
        let mut facts: Vec<FreshFact<'_>> = held
            .facts
            .iter()
            .filter(|(_, it)| is_metrics_id(home) || it.absent.is_none())
            .map(|(name, it)| {
                let (fresh, is_recent) = (self.freshness(&it.fact, now), self.is_recent(&it.fact, now));
                (&*name.metric, it, fresh, is_recent)
            })
            .collect();
        // The freshest first.
        facts.sort_by(|(one_name, one, one_fresh, _), (name, other, fresh, _)| {
            let by_state = one_fresh.state.cmp(&fresh.state);
            by_state.then(other.fact.at.total_cmp(&one.fact.at)).then(one_name.cmp(name))
        });
        let target = facts.iter().find_map(|(_, it, ..)| it.fact.destination.as_ref());
        let target = target.and_then(|name| ids.get(name)).filter(|id| *id != home);
        let (observed, unseen) = observed(app, &facts);
        let (declared, is_unsynced) =
            declared(app, &facts, target.unwrap_or(home), unseen, held.unsynced, now);
        held.unsynced = is_unsynced.then(|| held.unsynced.unwrap_or(now));
        (target, declared, observed)
    }
}

/// Returns the facts that tell something, and are live or would be without gaps in answers: such a one may be the worst, and is not
/// displaced by a live one. If none is live, returns only the newest.
fn best<'f, 'h, T>(
    facts: &'f [FreshFact<'h>],
    told: impl Fn(&'f HeldFact) -> Option<T>,
) -> Vec<(&'f FreshFact<'h>, T)> {
    let mut telling = facts.iter().filter_map(|fact| Some((fact, told(fact.1)?)));
    let Some(first) = telling.next() else { return Vec::new() };
    let is_live = first.0.2.state == FreshnessState::Live;
    let others = telling.filter(|(fact, _)| is_live && fact.3);
    std::iter::once(first).chain(others.collect::<Vec<_>>()).collect()
}

/// Makes the observed half, with the worst health that live facts tell; `None` if none tells it. Returns the parts that are
/// not observed beside it.
fn observed(app: &AppName, facts: &[FreshFact<'_>]) -> (Option<ObservedHalf>, Unobserved) {
    let all: Unobserved = OBSERVED.into_iter().collect();
    let telling = best(facts, |held| held.fact.told.health.as_ref());
    // The objects of an app are worse than its declaring object, or tell more.
    let worst = telling.into_iter().min_by(|(_, one), (_, other)| {
        one.status.cmp(&other.status).then_with(|| match (one.is_of_objects, other.is_of_objects) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => Ordering::Equal,
        })
    });
    let Some(((metric, held, fresh, _), health)) = worst else { return (None, all) };
    let counts = held.fact.told.counts;
    let unobserved = if health.is_of_objects { all.without(RowPart::Health) } else { all };
    let unobserved = if counts.is_some() { unobserved.without(RowPart::Objects) } else { unobserved };
    // A declaring object that is ready says nothing of objects that nobody looked at.
    let is_unseen = health.status == Status::Current && !health.is_of_objects;
    let (status, words) = match is_unseen {
        true => {
            (Status::Unknown, "the declaring object is ready, and the objects are not observed".to_owned())
        }
        false => (health.status, health.words.clone()),
    };
    let severity = match status {
        Status::InProgress | Status::Terminating => ProblemSeverity::Waiting,
        _ => ProblemSeverity::Error,
    };
    let speaker = || Speaker {
        status,
        rule: format!("metrics/{metric}"),
        unconfirmed: false,
        problem: Problem {
            axis: Axis::Health,
            state: status.as_str().to_owned(),
            severity,
            since: None,
            message: Words::from(format!("{metric}: {words}").as_str()),
            object: (!health.is_of_objects).then(|| declaring(app)).flatten(),
            upstream: None,
        },
    };
    let half = ObservedHalf {
        worst: (status != Status::Current).then(|| Box::new(speaker())),
        not_live: not_live(*fresh),
        unobserved,
        ..ObservedHalf::new(status, counts.unwrap_or_default())
    };
    (Some(half), Unobserved::default())
}

/// Makes the declared half; also returns whether the app is out of sync now.
fn declared(
    app: &AppName,
    facts: &[FreshFact<'_>],
    target: &ClusterId,
    unseen: Unobserved,
    unsynced: Option<Duration>,
    now: Duration,
) -> (DeclaredHalf, bool) {
    let declared = RowPart::ALL.into_iter().filter(|part| !OBSERVED.contains(part));
    let mut unobserved = declared.collect::<Unobserved>().union(unseen);
    let syncs = best(facts, |held| held.fact.told.sync);
    // A suspension tells nothing of the sync before.
    let suspension = best(facts, |held| held.fact.told.suspended);
    let suspended = suspension.iter().any(|(_, is_suspended)| *is_suspended);
    let worst = syncs.iter().min_by_key(|(_, state)| sync_rank(*state));
    let mut by = worst.map(|(fact, _)| **fact);
    let mut state = worst.map(|(_, state)| *state);
    let failing = best(facts, |held| held.is_last_sync_failed);
    if let Some((fact, true)) = failing.first().map(|(fact, is_failed)| (**fact, *is_failed))
        && state.is_none_or(|state| matches!(state, SyncState::OutOfSync | SyncState::Unknown))
    {
        (state, by) = (Some(SyncState::Failed), Some(fact));
    }
    if suspended {
        (state, by) = (Some(SyncState::Suspended), suspension.first().map(|(fact, _)| **fact).or(by));
    }
    let applied =
        best(facts, |held| held.fact.told.applied.as_ref()).first().map(|(_, revision)| (*revision).clone());
    let source =
        best(facts, |held| held.fact.told.source.as_ref()).first().map(|(_, source)| (*source).clone());
    for (part, is_told) in [
        (RowPart::Sync, state.is_some()),
        (RowPart::Applied, applied.is_some()),
        (RowPart::Suspended, !suspension.is_empty()),
        (RowPart::Source, source.is_some()),
    ] {
        unobserved = if is_told { unobserved.without(part) } else { unobserved };
    }
    let is_unsynced = state.is_some_and(super::is_unsynced);
    let is_late = is_unsynced && unsynced.is_some_and(|since| now.saturating_sub(since) >= MAX_UNSYNCED);
    let metric = by.map_or("", |(metric, ..)| metric);
    let problem = |state: &str, severity, message: String| Problem {
        axis: Axis::Sync,
        state: state.to_owned(),
        severity,
        since: None,
        message: Words::from(message.as_str()),
        object: declaring(app),
        upstream: None,
    };
    let problems = match state {
        Some(SyncState::Failed) => {
            vec![problem("Failed", ProblemSeverity::Error, format!("{metric}: the last sync failed"))]
        }
        Some(SyncState::OutOfSync) if is_late => {
            vec![problem(
                "OutOfSync",
                ProblemSeverity::Error,
                format!("{metric}: out of sync for 10 minutes"),
            )]
        }
        Some(SyncState::Suspended) => {
            vec![problem(SUSPENDED, ProblemSeverity::Notice, format!("{metric}: the app is suspended"))]
        }
        _ => Vec::new(),
    };
    let own =
        || AppKey::Own { delivery: app.delivery, namespace: app.namespace.clone(), name: app.name.clone() };
    let key = facts.iter().find_map(|(_, held, ..)| held.fact.key.clone());
    let fresh = by.or(facts.first().copied()).map(|(_, _, fresh, _)| fresh);
    let key = key.unwrap_or_else(|| own().to_string());
    let mut half = DeclaredHalf {
        suspended,
        source: source.map(Arc::new),
        problems,
        not_live: fresh.and_then(not_live),
        unobserved,
        ..DeclaredHalf::new(key, target.clone(), state.unwrap_or(SyncState::Unknown))
    };
    half.sync.applied = applied;
    (half, is_unsynced)
}

fn not_live(fresh: NotLive) -> Option<NotLive> {
    (fresh.state != FreshnessState::Live).then_some(fresh)
}

/// Returns the key of the object that declares an app, if its delivery tells the kind.
fn declaring(app: &AppName) -> Option<ObjectKey> {
    let (group, kind) = match app.delivery {
        Delivery::FluxKustomization => ("kustomize.toolkit.fluxcd.io", "Kustomization"),
        Delivery::FluxHelmRelease => ("helm.toolkit.fluxcd.io", "HelmRelease"),
        Delivery::ArgoApplication => ("argoproj.io", "Application"),
        Delivery::Kpt => ("kpt.dev", "ResourceGroup"),
        _ => return None,
    };
    Some(ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: app.namespace.clone(),
        name: app.name.clone(),
    })
}
