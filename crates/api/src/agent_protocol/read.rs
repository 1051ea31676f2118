//! Reports read from messages of the protocol.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use taffrail_apps::{
    Axis, ClusterId, DeclaredCheck, Delivery, FreshnessState, Nodes, NotLiveState, Problem, ProblemSeverity,
    RelationType, Source, Sync, SyncAttempt, SyncResult, SyncState, UnreadyNode, UpstreamProblem,
};
use taffrail_object::ObjectKey;
use taffrail_status::{ClusterNames, NamedCluster, Status, rollup::Counts};

use super::generated as wire;
use crate::report::{
    AppId, AppTransition, Buckets, ClusterReport, Content, DeclaredHalf, Half, HalfBody, HalfId, HalfSide,
    HalfThen, HalfUpstream, HalfUpstreams, LostCluster, ManagedCluster, NotLive, ObservedHalf, Report,
    Speaker, StreamPosition,
};
use crate::{AppName, ErrorRow, NotLiveRow, ReadingView, Unobserved};

/// The reason why a message breaks the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMessage {
    /// A part that the protocol requires is missing; holds its name.
    #[error("the message has no {0}")]
    Missing(&'static str),
    /// A time is beyond the years that Taffrail knows; holds the name of the field.
    #[error("the {0} of the message is not a time between the years -9999 and 9999")]
    Time(&'static str),
}

impl wire::Report {
    /// Converts the report, which an agent of `cluster` sent, whom the hub lists as `name`. Leaves out halves of a
    /// delivery that this version does not know.
    ///
    /// # Errors
    /// If a required part is missing, or a time is out of range.
    pub fn read(self, cluster: &ClusterId, name: &str) -> Result<Report, InvalidMessage> {
        use wire::report::Content as Wire;
        let wire::Report { epoch, seq, age_millis, content } = self;
        let content = match content {
            None => Content::Heartbeat,
            Some(Wire::Digest(digest)) => Content::Digest(Buckets::from(digest.buckets)),
            Some(Wire::Changes(wire::Changes { changed, gone })) => {
                let gone = gone.into_iter().filter_map(|id| half_id(id, cluster).transpose());
                Content::Changes { changed: halves(changed, cluster)?, gone: gone.collect::<Result<_, _>>()? }
            }
            Some(Wire::Snapshot(wire::Snapshot { buckets, part, is_last, halves: sent })) => {
                Content::Snapshot { buckets, part, is_last, halves: halves(sent, cluster)? }
            }
            Some(Wire::Cluster(facts)) => {
                let (facts, errors) = cluster_facts(facts, cluster, name)?;
                Content::Cluster { facts: Box::new(facts), errors }
            }
        };
        let position = StreamPosition { epoch, seq };
        Ok(Report { cluster: cluster.clone(), position, age: age_millis.map(Duration::from_millis), content })
    }
}

impl wire::Transition {
    /// Converts the transition, which an agent of `cluster` noted, and cuts it to the limits of halves. Returns `None` if
    /// this version does not know the app's delivery, or the app's name is too long.
    ///
    /// # Errors
    /// If a required part is missing, or a time is out of range.
    pub fn read(self, cluster: &ClusterId) -> Result<Option<AppTransition>, InvalidMessage> {
        let wire::Transition { app, declared: own, declared_gone, observed: seen, observed_gone } = self;
        let app = app_id(app.ok_or(InvalidMessage::Missing("app"))?, cluster);
        let Some(app) = app.filter(AppId::is_short) else { return Ok(None) };
        let own = own.map(|half| declared(half, cluster)).transpose()?;
        let seen = seen.map(observed).transpose()?;
        let (declared, observed) = (then(own, declared_gone), then(seen, observed_gone));
        let mut transition = AppTransition { app, declared, observed };
        transition.limit();
        Ok(Some(transition))
    }
}

/// Joins the contents of a half that changed, and the mark of one that is gone.
fn then<T>(half: Option<T>, is_gone: bool) -> Option<HalfThen<T>> {
    match (half, is_gone) {
        (Some(half), _) => Some(HalfThen::Is(Box::new(half))),
        (None, true) => Some(HalfThen::Gone),
        (None, false) => None,
    }
}

fn halves(halves: Vec<wire::Half>, cluster: &ClusterId) -> Result<Vec<Half>, InvalidMessage> {
    halves.into_iter().filter_map(|it| half(it, cluster).transpose()).collect()
}

fn half(half: wire::Half, cluster: &ClusterId) -> Result<Option<Half>, InvalidMessage> {
    let wire::Half { app, fingerprint, body } = half;
    let Some(app) = app_id(app.ok_or(InvalidMessage::Missing("app"))?, cluster) else { return Ok(None) };
    let body = match body.ok_or(InvalidMessage::Missing("half"))? {
        wire::half::Body::Declared(body) => HalfBody::Declared(Box::new(declared(*body, cluster)?)),
        wire::half::Body::Observed(body) => HalfBody::Observed(Box::new(observed(*body)?)),
    };
    Ok(Some(Half { app, fingerprint, body }))
}

fn half_id(id: wire::HalfId, cluster: &ClusterId) -> Result<Option<HalfId>, InvalidMessage> {
    let app = app_id(id.app.ok_or(InvalidMessage::Missing("app"))?, cluster);
    let side = if id.is_observed { HalfSide::Observed } else { HalfSide::Declared };
    Ok(app.map(|app| HalfId { app, side }))
}

/// Returns the identity of an app; `None` if this version does not know its delivery.
fn app_id(id: wire::AppId, cluster: &ClusterId) -> Option<AppId> {
    let delivery = match id.delivery() {
        wire::Delivery::Unspecified => return None,
        wire::Delivery::FluxKustomization => Delivery::FluxKustomization,
        wire::Delivery::FluxHelmRelease => Delivery::FluxHelmRelease,
        wire::Delivery::ArgoApplication => Delivery::ArgoApplication,
        wire::Delivery::ConfigSync => Delivery::ConfigSync,
        wire::Delivery::Kpt => Delivery::Kpt,
        wire::Delivery::Porch => Delivery::Porch,
        wire::Delivery::Helm => Delivery::Helm,
        wire::Delivery::Label => Delivery::Label,
        wire::Delivery::Taffrail => Delivery::Taffrail,
    };
    let wire::AppId { home, namespace, name, .. } = id;
    Some(AppId { home: or_own(home, cluster), app: AppName { delivery, namespace, name } })
}

/// Returns the identity of a cluster: `own` for an empty one.
fn or_own(id: String, own: &ClusterId) -> ClusterId {
    if id.is_empty() { own.clone() } else { ClusterId(id) }
}

fn declared(half: wire::Declared, cluster: &ClusterId) -> Result<DeclaredHalf, InvalidMessage> {
    let wire::Declared {
        key,
        target,
        sync,
        suspended,
        source,
        labels,
        message,
        own,
        problems,
        syncs,
        not_live,
        upstreams,
        upstreams_left_out,
        checks,
    } = half;
    let upstreams = HalfUpstreams {
        apps: upstreams
            .into_iter()
            .filter_map(|it| upstream(it, cluster).transpose())
            .collect::<Result<_, _>>()?,
        left_out: upstreams_left_out as usize,
    };
    let sync = sync.unwrap_or_default();
    let state = match sync.state() {
        wire::SyncState::Synced => SyncState::Synced,
        wire::SyncState::OutOfSync => SyncState::OutOfSync,
        wire::SyncState::Syncing => SyncState::Syncing,
        wire::SyncState::Failed => SyncState::Failed,
        wire::SyncState::Suspended => SyncState::Suspended,
        wire::SyncState::Unknown | wire::SyncState::Unspecified => SyncState::Unknown,
    };
    let source = source.map(|source| {
        let wire::Source { kind, namespace, name, url, path, reference } = source;
        Arc::new(Source { kind, namespace, name, url, path, reference })
    });
    Ok(DeclaredHalf {
        key,
        target: or_own(target, cluster),
        sync: Sync {
            state,
            desired: sync.desired,
            attempted: sync.attempted,
            applied: sync.applied,
            last_success: sync.last_success.map(|at| time(at, "last success")).transpose()?,
        },
        suspended,
        source,
        labels: Arc::new(labels.into_iter().collect()),
        message: message.into(),
        own: own.map(speaker).transpose()?.map(Box::new),
        problems: problems.into_iter().map(problem).collect::<Result<_, _>>()?,
        syncs: syncs.into_iter().map(attempt).collect::<Result<_, _>>()?,
        upstreams: (upstreams != HalfUpstreams::default()).then(|| Arc::new(upstreams)),
        not_live: not_live.map(freshness),
        unobserved: Unobserved::default(),
        checks: checks.into_iter().map(check).collect(),
    })
}

/// Returns an app upstream; `None` if this version does not know the type of the relation, or the delivery.
fn upstream(upstream: wire::Upstream, cluster: &ClusterId) -> Result<Option<HalfUpstream>, InvalidMessage> {
    let relation = match upstream.r#type() {
        wire::RelationType::Unspecified => return Ok(None),
        wire::RelationType::DependsOn => RelationType::DependsOn,
        wire::RelationType::CreatedBy => RelationType::CreatedBy,
        wire::RelationType::DeliveredBy => RelationType::DeliveredBy,
        wire::RelationType::HostedBy => RelationType::HostedBy,
    };
    let wire::Upstream { app, is_missing, .. } = upstream;
    let app = app_id(app.ok_or(InvalidMessage::Missing("app upstream"))?, cluster);
    Ok(app.map(|app| HalfUpstream { relation, app, is_missing }))
}

fn check(check: wire::Check) -> DeclaredCheck {
    let wire::Check { name, parameters, fault } = check;
    DeclaredCheck { name, parameters: parameters.into_iter().collect(), fault }
}

fn attempt(sync: wire::SyncAttempt) -> Result<SyncAttempt, InvalidMessage> {
    let result = match sync.result() {
        wire::SyncResult::Running | wire::SyncResult::Unspecified => SyncResult::Running,
        wire::SyncResult::Succeeded => SyncResult::Succeeded,
        wire::SyncResult::Failed => SyncResult::Failed,
    };
    Ok(SyncAttempt {
        revision: sync.revision,
        began: time(sync.began.ok_or(InvalidMessage::Missing("time of a sync"))?, "time of a sync")?,
        ended: sync.ended.map(|at| time(at, "end of a sync")).transpose()?,
        result,
        message: sync.message.into(),
    })
}

fn observed(half: wire::Observed) -> Result<ObservedHalf, InvalidMessage> {
    let health = status(half.health());
    let wire::Observed { worst, counts, unconfirmed, unmarked, not_live, .. } = half;
    let wire::Counts { failed, not_found, unknown, terminating, in_progress, current } =
        counts.unwrap_or_default();
    Ok(ObservedHalf {
        health,
        worst: worst.map(speaker).transpose()?.map(Box::new),
        counts: Counts {
            current: current as usize,
            in_progress: in_progress as usize,
            failed: failed as usize,
            terminating: terminating as usize,
            not_found: not_found as usize,
            unknown: unknown as usize,
        },
        unconfirmed: unconfirmed as usize,
        unmarked: unmarked.map(problem).transpose()?.map(Box::new),
        not_live: not_live.map(freshness),
        unobserved: Unobserved::default(),
        said: false,
    })
}

fn speaker(speaker: wire::Speaker) -> Result<Speaker, InvalidMessage> {
    let status = status(speaker.status());
    let wire::Speaker { rule, unconfirmed, problem: its, .. } = speaker;
    let problem = problem(its.ok_or(InvalidMessage::Missing("problem of an object"))?)?;
    Ok(Speaker { status, rule, unconfirmed, problem })
}

fn problem(problem: wire::Problem) -> Result<Problem, InvalidMessage> {
    let axis = axis(problem.axis());
    let severity = severity(problem.severity());
    let wire::Problem { state, since, message, object, upstream, .. } = problem;
    let since = since.map(|at| time(at, "begin of a problem")).transpose()?;
    let upstream = upstream.and_then(upstream_problem).map(Box::new);
    let object = object.map(object_key);
    Ok(Problem { axis, state, severity, since, message: message.into(), object, upstream })
}

/// Returns the problem of an app upstream; `None` if this version does not know the delivery of the app.
fn upstream_problem(problem: wire::UpstreamProblem) -> Option<UpstreamProblem> {
    let (axis, severity) = (axis(problem.axis()), severity(problem.severity()));
    let wire::UpstreamProblem { app, state, message, object, .. } = problem;
    let AppId { app, .. } = app_id(app?, &ClusterId(String::new()))?;
    let (message, object) = (message.into(), object.map(object_key));
    Some(UpstreamProblem { app, axis, state, severity, message, object })
}

fn axis(axis: wire::Axis) -> Axis {
    match axis {
        wire::Axis::Freshness => Axis::Freshness,
        wire::Axis::Health | wire::Axis::Unspecified => Axis::Health,
        wire::Axis::Sync => Axis::Sync,
        wire::Axis::Source => Axis::Source,
    }
}

fn severity(severity: wire::Severity) -> ProblemSeverity {
    match severity {
        wire::Severity::Error | wire::Severity::Unspecified => ProblemSeverity::Error,
        wire::Severity::Waiting => ProblemSeverity::Waiting,
        wire::Severity::Notice => ProblemSeverity::Notice,
    }
}

fn object_key(key: wire::ObjectKey) -> ObjectKey {
    let wire::ObjectKey { group, kind, namespace, name } = key;
    ObjectKey { group, kind, namespace, name }
}

fn status(status: wire::Status) -> Status {
    match status {
        wire::Status::Failed => Status::Failed,
        wire::Status::NotFound => Status::NotFound,
        wire::Status::Unknown | wire::Status::Unspecified => Status::Unknown,
        wire::Status::Terminating => Status::Terminating,
        wire::Status::InProgress => Status::InProgress,
        wire::Status::Current => Status::Current,
    }
}

fn cluster_facts(
    facts: wire::ClusterFacts,
    cluster: &ClusterId,
    name: &str,
) -> Result<(ClusterReport, Vec<ErrorRow>), InvalidMessage> {
    let wire::ClusterFacts {
        version,
        labels,
        unverified,
        lost,
        blind,
        not_live,
        reading,
        errors,
        nodes,
        nodes_unobserved,
        managed,
    } = facts;
    let report = ClusterReport {
        name: name.to_owned(),
        id: Some(cluster.0.clone()),
        version,
        labels: labels.into_iter().collect(),
        unverified,
        lost: lost.map(|wire::LostCluster { message, silence }| LostCluster { message, silence }),
        blind,
        not_live: not_live.map(freshness),
        reading: reading.map(statistics).transpose()?,
        nodes: nodes.map(numbers_of_nodes).transpose()?,
        nodes_unobserved,
        managed: managed.into_iter().filter_map(managed_cluster).collect(),
        ..ClusterReport::default()
    };
    let error = |wire::ScopeError { scope, reason, message }| ErrorRow {
        cluster: name.to_owned(),
        scope,
        reason,
        message,
    };
    Ok((report, errors.into_iter().map(error).collect()))
}

/// Returns an object that stands for another cluster; `None` if the message does not name the object.
fn managed_cluster(managed: wire::ManagedCluster) -> Option<ManagedCluster> {
    let status = status(managed.status());
    let wire::ManagedCluster { object, message, observed, claimed, .. } = managed;
    let names = |names: Option<wire::ClusterNames>| {
        let wire::ClusterNames { ids, addresses, names } = names.unwrap_or_default();
        ClusterNames { ids, addresses, names }
    };
    let named = NamedCluster { observed: names(observed), claimed: names(claimed) };
    Some(ManagedCluster { object: object_key(object?), status, message, named })
}

fn numbers_of_nodes(nodes: wire::Nodes) -> Result<Nodes, InvalidMessage> {
    let unready = |unready: wire::UnreadyNode| {
        let wire::UnreadyNode { name, reason, message, since } = unready;
        let since = since.map(|at| time(at, "time of a node")).transpose()?;
        Ok(UnreadyNode { name, reason, message, since })
    };
    let wire::Nodes { ready, total, unready: oldest } = nodes;
    let oldest = oldest.map(unready).transpose()?;
    Ok(Nodes { ready: ready as usize, total: total as usize, unready: oldest })
}

fn statistics(reading: wire::Reading) -> Result<ReadingView, InvalidMessage> {
    use wire::scope_state::State;
    let row = |scope: wire::ScopeState| {
        let state = match scope.state() {
            State::CatchingUp => NotLiveState::CatchingUp,
            State::Forbidden => NotLiveState::Forbidden,
            State::Broken | State::Unspecified => NotLiveState::Broken,
            State::Absent => NotLiveState::Absent,
        };
        let since = time(scope.since.unwrap_or_default(), "time of a scope")?;
        Ok(NotLiveRow { scope: scope.scope, state, message: scope.message, since })
    };
    let wire::Reading { lists, protocol, round_trip_micros, requests, bytes, live_since, scopes, not_live } =
        reading;
    Ok(ReadingView {
        lists: Cow::Owned(lists),
        protocol: Cow::Owned(protocol),
        round_trip_micros,
        requests,
        bytes,
        live_since: live_since.map(|at| time(at, "time of a cluster")).transpose()?,
        scopes: scopes.map(|scopes| scopes as usize),
        not_live: not_live.into_iter().map(row).collect::<Result<_, InvalidMessage>>()?,
    })
}

fn freshness(not_live: wire::NotLive) -> NotLive {
    let wire::NotLive { is_lost, age_millis } = not_live;
    let state = if is_lost { FreshnessState::Lost } else { FreshnessState::Stale };
    NotLive { state, age: age_millis.map(Duration::from_millis) }
}

fn time(time: wire::Time, field: &'static str) -> Result<Timestamp, InvalidMessage> {
    Timestamp::new(time.seconds, time.nanos).map_err(|_| InvalidMessage::Time(field))
}
