//! Messages of the protocol made from reports.

use std::time::Duration;

use jiff::Timestamp;
use taffrail_apps::{
    Axis, ClusterId, Delivery, FreshnessState, Nodes, NotLiveState, ProblemSeverity, RelationType,
    SyncResult, SyncState, UnreadyNode, UpstreamProblem,
};
use taffrail_status::{ClusterNames, NamedCluster, Status, rollup::Counts};

use super::MAX_ERRORS;
use super::generated as wire;
use crate::report::{
    AppId, AppTransition, ClusterReport, Content, DeclaredHalf, Half, HalfBody, HalfId, HalfSide, HalfThen,
    HalfUpstream, ManagedCluster, NotLive, ObservedHalf, Report, SourceMessage, SourceReply, Speaker,
};
use crate::{ErrorRow, ReadingView};

impl From<SourceMessage> for wire::AgentMessage {
    fn from(message: SourceMessage) -> wire::AgentMessage {
        use wire::agent_message::Message;
        let message = match message {
            SourceMessage::Open(_) => Message::Open(wire::Open {}),
            SourceMessage::Close(_) => Message::Close(wire::Close {}),
            SourceMessage::Report(report) => Message::Report((*report).into()),
        };
        wire::AgentMessage { message: Some(message) }
    }
}

impl From<SourceReply> for wire::HubMessage {
    fn from(reply: SourceReply) -> wire::HubMessage {
        use wire::hub_message::Message;
        let message = match reply {
            SourceReply::Accepted { epoch, .. } => Message::Accepted(wire::Accepted { epoch }),
            SourceReply::Resend { epoch, buckets, .. } => Message::Resend(wire::Resend { epoch, buckets }),
            SourceReply::Refused { epoch, .. } => Message::Refused(wire::Refused { epoch }),
        };
        wire::HubMessage { message: Some(message) }
    }
}

impl From<Report> for wire::Report {
    fn from(report: Report) -> wire::Report {
        use wire::report::Content as Wire;
        let Report { cluster, position, age, content } = report;
        let halves = |halves: Vec<Half>| halves.into_iter().map(|it| half(it, &cluster)).collect();
        let content = match content {
            Content::Heartbeat => None,
            Content::Digest(digest) => {
                Some(Wire::Digest(wire::Digest { buckets: digest.as_slice().to_vec() }))
            }
            Content::Changes { changed, gone } => {
                let gone = gone.into_iter().map(|id| half_id(id, &cluster)).collect();
                Some(Wire::Changes(wire::Changes { changed: halves(changed), gone }))
            }
            Content::Snapshot { buckets, part, is_last, halves: sent } => {
                Some(Wire::Snapshot(wire::Snapshot { buckets, part, is_last, halves: halves(sent) }))
            }
            Content::Cluster { facts, errors } => Some(Wire::Cluster(cluster_facts(*facts, errors))),
        };
        wire::Report { epoch: position.epoch, seq: position.seq, age_millis: age.map(millis), content }
    }
}

impl wire::Transition {
    /// Converts a transition that a source in `cluster` noted.
    pub fn of(transition: AppTransition, cluster: &ClusterId) -> wire::Transition {
        let AppTransition { app, declared: own, observed: seen } = transition;
        let (own, is_undeclared) = present(own);
        let (seen, is_unobserved) = present(seen);
        wire::Transition {
            app: Some(app_id(app, cluster)),
            declared: own.map(|half| declared(*half, cluster)),
            declared_gone: is_undeclared,
            observed: seen.map(|half| observed(*half)),
            observed_gone: is_unobserved,
        }
    }
}

/// Returns the contents of a half that changed, and true if it is gone.
fn present<T>(half: Option<HalfThen<T>>) -> (Option<Box<T>>, bool) {
    match half {
        None => (None, false),
        Some(HalfThen::Gone) => (None, true),
        Some(HalfThen::Is(half)) => (Some(half), false),
    }
}

fn half(half: Half, cluster: &ClusterId) -> wire::Half {
    let Half { app, fingerprint, body } = half;
    let body = match body {
        HalfBody::Declared(body) => wire::half::Body::Declared(Box::new(declared(*body, cluster))),
        HalfBody::Observed(body) => wire::half::Body::Observed(Box::new(observed(*body))),
    };
    wire::Half { app: Some(app_id(app, cluster)), fingerprint, body: Some(body) }
}

fn half_id(id: HalfId, cluster: &ClusterId) -> wire::HalfId {
    wire::HalfId { app: Some(app_id(id.app, cluster)), is_observed: id.side == HalfSide::Observed }
}

fn app_id(id: AppId, cluster: &ClusterId) -> wire::AppId {
    let AppId { home, app } = id;
    let delivery = match app.delivery {
        Delivery::FluxKustomization => wire::Delivery::FluxKustomization,
        Delivery::FluxHelmRelease => wire::Delivery::FluxHelmRelease,
        Delivery::ArgoApplication => wire::Delivery::ArgoApplication,
        Delivery::ConfigSync => wire::Delivery::ConfigSync,
        Delivery::Kpt => wire::Delivery::Kpt,
        Delivery::Porch => wire::Delivery::Porch,
        Delivery::Helm => wire::Delivery::Helm,
        Delivery::Label => wire::Delivery::Label,
        Delivery::Taffrail => wire::Delivery::Taffrail,
    };
    wire::AppId {
        home: elsewhere(home, cluster),
        delivery: delivery.into(),
        namespace: app.namespace,
        name: app.name,
    }
}

/// Returns the identity of a cluster; empty for `own`.
fn elsewhere(id: ClusterId, own: &ClusterId) -> String {
    if id == *own { String::new() } else { id.0 }
}

fn declared(half: DeclaredHalf, cluster: &ClusterId) -> wire::Declared {
    let DeclaredHalf {
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
        upstreams,
        not_live,
        // An agent reads an API server, which tells all.
        unobserved: _,
        checks,
    } = half;
    let state = match sync.state {
        SyncState::Synced => wire::SyncState::Synced,
        SyncState::OutOfSync => wire::SyncState::OutOfSync,
        SyncState::Syncing => wire::SyncState::Syncing,
        SyncState::Failed => wire::SyncState::Failed,
        SyncState::Suspended => wire::SyncState::Suspended,
        SyncState::Unknown => wire::SyncState::Unknown,
    };
    let sync = wire::Sync {
        state: state.into(),
        desired: sync.desired,
        attempted: sync.attempted,
        applied: sync.applied,
        last_success: sync.last_success.map(time),
    };
    let source = source.map(|source| {
        let taffrail_apps::Source { kind, namespace, name, url, path, reference } = (*source).clone();
        wire::Source { kind, namespace, name, url, path, reference }
    });
    let attempt = |sync: taffrail_apps::SyncAttempt| {
        let result = match sync.result {
            SyncResult::Running => wire::SyncResult::Running,
            SyncResult::Succeeded => wire::SyncResult::Succeeded,
            SyncResult::Failed => wire::SyncResult::Failed,
        };
        wire::SyncAttempt {
            revision: sync.revision,
            began: Some(time(sync.began)),
            ended: sync.ended.map(time),
            result: result.into(),
            message: sync.message.as_str().to_owned(),
        }
    };
    wire::Declared {
        key,
        target: elsewhere(target, cluster),
        sync: Some(sync),
        suspended,
        source,
        labels: labels.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        message: message.as_str().to_owned(),
        own: own.map(|own| speaker(*own)),
        problems: problems.into_iter().map(problem).collect(),
        syncs: syncs.into_iter().map(attempt).collect(),
        not_live: not_live.map(freshness),
        upstreams_left_out: upstreams.as_ref().map_or(0, |it| count(it.left_out)),
        upstreams: upstreams.iter().flat_map(|it| &it.apps).map(|it| upstream(it, cluster)).collect(),
        checks: checks.into_iter().map(check).collect(),
    }
}

fn upstream(upstream: &HalfUpstream, cluster: &ClusterId) -> wire::Upstream {
    let HalfUpstream { relation, app, is_missing } = upstream.clone();
    let relation = match relation {
        RelationType::DependsOn => wire::RelationType::DependsOn,
        RelationType::CreatedBy => wire::RelationType::CreatedBy,
        RelationType::DeliveredBy => wire::RelationType::DeliveredBy,
        RelationType::HostedBy => wire::RelationType::HostedBy,
    };
    wire::Upstream { r#type: relation.into(), app: Some(app_id(app, cluster)), is_missing }
}

fn check(check: taffrail_apps::DeclaredCheck) -> wire::Check {
    let taffrail_apps::DeclaredCheck { name, parameters, fault } = check;
    wire::Check { name, parameters: parameters.into_iter().collect(), fault }
}

fn observed(half: ObservedHalf) -> wire::Observed {
    // Agents read their own cluster in full.
    let ObservedHalf { health, worst, counts, unconfirmed, unmarked, not_live, unobserved: _, said: _ } =
        half;
    let Counts { current, in_progress, failed, terminating, not_found, unknown } = counts;
    wire::Observed {
        health: status(health).into(),
        worst: worst.map(|worst| speaker(*worst)),
        counts: Some(wire::Counts {
            failed: count(failed),
            not_found: count(not_found),
            unknown: count(unknown),
            terminating: count(terminating),
            in_progress: count(in_progress),
            current: count(current),
        }),
        unconfirmed: count(unconfirmed),
        unmarked: unmarked.map(|unmarked| problem(*unmarked)),
        not_live: not_live.map(freshness),
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn speaker(speaker: Speaker) -> wire::Speaker {
    let Speaker { status: of, rule, unconfirmed, problem: its } = speaker;
    wire::Speaker { status: status(of).into(), rule, unconfirmed, problem: Some(problem(its)) }
}

fn problem(problem: taffrail_apps::Problem) -> wire::Problem {
    let taffrail_apps::Problem { axis, state, severity, since, message, object, upstream } = problem;
    wire::Problem {
        axis: axis_code(axis).into(),
        state,
        severity: severity_code(severity).into(),
        since: since.map(time),
        message: message.as_str().to_owned(),
        object: object.map(object_key),
        upstream: upstream.map(|upstream| upstream_problem(*upstream)),
    }
}

fn upstream_problem(problem: UpstreamProblem) -> wire::UpstreamProblem {
    let UpstreamProblem { app, axis, state, severity, message, object } = problem;
    let own = ClusterId(String::new());
    wire::UpstreamProblem {
        app: Some(app_id(AppId { home: own.clone(), app }, &own)),
        axis: axis_code(axis).into(),
        state,
        severity: severity_code(severity).into(),
        message: message.as_str().to_owned(),
        object: object.map(object_key),
    }
}

fn axis_code(axis: Axis) -> wire::Axis {
    match axis {
        Axis::Freshness => wire::Axis::Freshness,
        Axis::Health => wire::Axis::Health,
        Axis::Sync => wire::Axis::Sync,
        Axis::Source => wire::Axis::Source,
        // Only a hub has results of checks.
        Axis::Check => wire::Axis::Unspecified,
    }
}

fn severity_code(severity: ProblemSeverity) -> wire::Severity {
    match severity {
        ProblemSeverity::Error => wire::Severity::Error,
        ProblemSeverity::Waiting => wire::Severity::Waiting,
        ProblemSeverity::Notice => wire::Severity::Notice,
    }
}

fn object_key(key: taffrail_object::ObjectKey) -> wire::ObjectKey {
    let taffrail_object::ObjectKey { group, kind, namespace, name } = key;
    wire::ObjectKey { group, kind, namespace, name }
}

fn status(status: Status) -> wire::Status {
    match status {
        Status::Failed => wire::Status::Failed,
        Status::NotFound => wire::Status::NotFound,
        Status::Unknown => wire::Status::Unknown,
        Status::Terminating => wire::Status::Terminating,
        Status::InProgress => wire::Status::InProgress,
        Status::Current => wire::Status::Current,
    }
}

fn cluster_facts(facts: ClusterReport, errors: Vec<ErrorRow>) -> wire::ClusterFacts {
    // The hub knows the names and the identity of the cluster by its enrolment.
    let ClusterReport {
        version,
        labels,
        unverified,
        lost,
        blind,
        not_live,
        reading,
        nodes,
        nodes_unobserved,
        managed,
        ..
    } = facts;
    let error = |ErrorRow { scope, reason, message, .. }| wire::ScopeError { scope, reason, message };
    let (count, mut bytes) = (errors.len(), 0);
    let mut errors: Vec<wire::ScopeError> = errors.into_iter().map(error).collect();
    let kept = errors.iter().take_while(|error| {
        bytes += error.scope.len() + error.reason.len() + error.message.len();
        bytes <= MAX_ERRORS
    });
    let kept = kept.count();
    errors.truncate(kept);
    if errors.len() < count {
        errors.push(wire::ScopeError {
            scope: "cluster".to_owned(),
            reason: "TooManyErrors".to_owned(),
            message: format!("{} more failures of this cluster are not shown", count - errors.len()),
        });
    }
    wire::ClusterFacts {
        version,
        labels: labels.into_iter().collect(),
        unverified,
        lost: lost.map(|lost| wire::LostCluster { message: lost.message, silence: lost.silence }),
        blind,
        not_live: not_live.map(freshness),
        reading: reading.map(statistics),
        errors,
        nodes: nodes.map(numbers_of_nodes),
        nodes_unobserved,
        managed: managed.into_iter().map(managed_cluster).collect(),
    }
}

fn managed_cluster(managed: ManagedCluster) -> wire::ManagedCluster {
    let ManagedCluster { object, status: own, message, named: NamedCluster { observed, claimed } } = managed;
    let names = |ClusterNames { ids, addresses, names }: ClusterNames| {
        Some(wire::ClusterNames { ids, addresses, names })
    };
    wire::ManagedCluster {
        object: Some(object_key(object)),
        status: status(own).into(),
        message,
        observed: names(observed),
        claimed: names(claimed),
    }
}

fn numbers_of_nodes(Nodes { ready, total, unready }: Nodes) -> wire::Nodes {
    let unready = unready.map(|UnreadyNode { name, reason, message, since }| wire::UnreadyNode {
        name,
        reason,
        message,
        since: since.map(time),
    });
    wire::Nodes { ready: count(ready), total: count(total), unready }
}

fn statistics(reading: ReadingView) -> wire::Reading {
    use wire::scope_state::State;
    let ReadingView { lists, protocol, round_trip_micros, requests, bytes, live_since, scopes, not_live } =
        reading;
    let row = |row: crate::NotLiveRow| {
        let state = match row.state {
            NotLiveState::CatchingUp => State::CatchingUp,
            NotLiveState::Forbidden => State::Forbidden,
            NotLiveState::Broken => State::Broken,
            NotLiveState::Absent => State::Absent,
        };
        wire::ScopeState {
            scope: row.scope,
            state: state.into(),
            message: row.message,
            since: Some(time(row.since)),
        }
    };
    wire::Reading {
        lists: lists.into_owned(),
        protocol: protocol.into_owned(),
        round_trip_micros,
        requests,
        bytes,
        live_since: live_since.map(time),
        scopes: scopes.map(count),
        not_live: not_live.into_iter().map(row).collect(),
    }
}

fn freshness(not_live: NotLive) -> wire::NotLive {
    let NotLive { state, age } = not_live;
    wire::NotLive { is_lost: state == FreshnessState::Lost, age_millis: age.map(millis) }
}

fn millis(age: Duration) -> u64 {
    u64::try_from(age.as_millis()).unwrap_or(u64::MAX)
}

fn time(time: Timestamp) -> wire::Time {
    wire::Time { seconds: time.as_second(), nanos: time.subsec_nanosecond() }
}
