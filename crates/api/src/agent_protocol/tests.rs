use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use prost::Message as _;
use taffrail_apps::{
    Axis, ClusterId, DeclaredCheck, Delivery, FreshnessState, Nodes, NotLiveState, Problem, ProblemSeverity,
    RelationType, Source, Sync, SyncAttempt, SyncResult, SyncState, UnreadyNode, UpstreamProblem,
};
use taffrail_object::ObjectKey;
use taffrail_status::rollup::Counts;
use taffrail_status::{ClusterNames, NamedCluster, Status};

use super::*;
use crate::report::{
    Buckets, ClusterReport, Content, DeclaredHalf, Half, HalfBody, HalfId, HalfSide, HalfUpstream,
    HalfUpstreams, LostCluster, ManagedCluster, NotLive, ObservedHalf, SourceMessage, SourceReply, Speaker,
    StreamPosition,
};
use crate::{AppName, ErrorRow, NotLiveRow, ReadingView};

fn own() -> ClusterId {
    ClusterId("7d2f".to_owned())
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::new(1_800_000_000 + seconds, 123_456_789).unwrap()
}

fn problem(axis: Axis, severity: ProblemSeverity) -> Problem {
    Problem {
        axis,
        state: "FetchFailed".to_owned(),
        severity,
        since: Some(at(-1)),
        message: "öß \u{202e}\u{0} \"".into(),
        object: Some(ObjectKey {
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
        }),
        upstream: (axis == Axis::Sync).then(|| {
            Box::new(UpstreamProblem {
                app: AppName {
                    delivery: Delivery::ConfigSync,
                    namespace: "a".to_owned(),
                    name: "b".to_owned(),
                },
                axis: Axis::Source,
                state: "Failed".to_owned(),
                severity: ProblemSeverity::Error,
                message: "no access".into(),
                object: Some(ObjectKey::new("g", "K", "n", "o")),
            })
        }),
    }
}

fn speaker(status: Status) -> Speaker {
    let problem = Problem { since: None, object: None, ..problem(Axis::Health, ProblemSeverity::Error) };
    Speaker { status, rule: "builtin/apps/Deployment".to_owned(), unconfirmed: true, problem }
}

fn stale(millis: Option<u64>) -> Option<NotLive> {
    let state = if millis.is_some() { FreshnessState::Stale } else { FreshnessState::Lost };
    Some(NotLive { state, age: millis.map(Duration::from_millis) })
}

/// Returns halves in which each delivery, state and option occurs.
fn halves() -> Vec<Half> {
    let mut halves = Vec::new();
    let axes = [Axis::Freshness, Axis::Health, Axis::Sync, Axis::Source];
    let severities = [ProblemSeverity::Error, ProblemSeverity::Waiting, ProblemSeverity::Notice];
    let relations =
        [RelationType::DependsOn, RelationType::CreatedBy, RelationType::DeliveredBy, RelationType::HostedBy];
    let results = [SyncResult::Running, SyncResult::Succeeded, SyncResult::Failed];
    for (at_place, delivery) in Delivery::ALL.into_iter().enumerate() {
        let number = at_place as i64;
        let home = if at_place % 2 == 0 { own() } else { ClusterId("other".to_owned()) };
        let app = AppName { delivery, namespace: format!("ns-{number}"), name: "shop".to_owned() };
        let app = crate::report::AppId { home: home.clone(), app };
        let some = |text: &str| (at_place % 3 != 0).then(|| text.to_owned());
        let attempt = |result| SyncAttempt {
            revision: "main@sha1:abc".to_owned(),
            began: at(number),
            ended: (result != SyncResult::Running).then(|| at(number + 1)),
            result,
            message: "applied".into(),
        };
        let declared = DeclaredHalf {
            key: "shop".to_owned(),
            target: if at_place % 3 == 0 { own() } else { ClusterId("target".to_owned()) },
            sync: Sync {
                state: SyncState::ALL[at_place % SyncState::ALL.len()],
                desired: some("d"),
                attempted: some("t"),
                applied: some(""),
                last_success: some("x").map(|_| at(-number)),
            },
            suspended: at_place % 2 == 1,
            source: some("x").map(|url| {
                let kind = "GitRepository".to_owned();
                Arc::new(Source {
                    kind,
                    namespace: None,
                    name: some("n"),
                    url: Some(url),
                    path: None,
                    reference: some("r"),
                })
            }),
            labels: Arc::new(BTreeMap::from([("app".to_owned(), "shop".to_owned())])),
            message: "Applied revision".into(),
            own: (at_place % 2 == 0).then(|| Box::new(speaker(Status::ALL[at_place % 6]))),
            problems: axes.map(|axis| problem(axis, severities[at_place % 3])).into(),
            syncs: results.map(attempt).into(),
            upstreams: (at_place % 2 == 0).then(|| {
                let upstream = |relation| HalfUpstream {
                    relation,
                    app: app.clone(),
                    is_missing: relation == RelationType::DependsOn,
                };
                Arc::new(HalfUpstreams { apps: relations.map(upstream).into(), left_out: at_place })
            }),
            not_live: if at_place % 2 == 0 { None } else { stale(Some(1_500)) },
            unobserved: Default::default(),
            checks: vec![
                DeclaredCheck {
                    name: "error-rate".to_owned(),
                    parameters: BTreeMap::from([("service".to_owned(), "web\"}".to_owned())]),
                    fault: None,
                },
                DeclaredCheck {
                    name: "latency".to_owned(),
                    parameters: BTreeMap::new(),
                    fault: some("the check has more than 16 parameters"),
                },
            ],
        };
        let counts =
            Counts { current: 1, in_progress: 2, failed: 3, terminating: 4, not_found: 5, unknown: 6 };
        let observed = ObservedHalf {
            health: Status::ALL[at_place % 6],
            worst: (at_place % 2 == 1).then(|| Box::new(speaker(Status::Failed))),
            counts,
            unconfirmed: at_place,
            unmarked: (at_place % 2 == 1).then(|| Box::new(problem(Axis::Health, ProblemSeverity::Notice))),
            not_live: if at_place % 2 == 1 { None } else { stale(None) },
            unobserved: Default::default(),
            said: false,
        };
        for (fingerprint, body) in
            [(1, HalfBody::Declared(Box::new(declared))), (u64::MAX, HalfBody::Observed(Box::new(observed)))]
        {
            halves.push(Half { app: app.clone(), fingerprint, body });
        }
    }
    halves
}

fn contents() -> Vec<Content> {
    let gone =
        [HalfSide::Declared, HalfSide::Observed].map(|side| HalfId { app: halves()[2].app.clone(), side });
    let states =
        [NotLiveState::CatchingUp, NotLiveState::Forbidden, NotLiveState::Broken, NotLiveState::Absent];
    let row = |state| NotLiveRow { scope: "Pod".to_owned(), state, message: "m".to_owned(), since: at(4) };
    let facts = ClusterReport {
        name: "eu".to_owned(),
        id: Some(own().0),
        version: Some("v1.36.3".to_owned()),
        labels: BTreeMap::from([("region".to_owned(), "eu".to_owned())]),
        unverified: Some("insecure".to_owned()),
        lost: Some(LostCluster { message: "refused".to_owned(), silence: "does not answer".to_owned() }),
        blind: Some("forbidden".to_owned()),
        not_live: stale(Some(60_000)),
        reading: Some(ReadingView {
            lists: "streams".into(),
            protocol: "HTTP/2".into(),
            round_trip_micros: 250,
            requests: Some(7),
            bytes: None,
            live_since: Some(at(0)),
            scopes: Some(40),
            not_live: states.map(row).into(),
        }),
        nodes: Some(Nodes {
            ready: 2,
            total: 3,
            unready: Some(UnreadyNode {
                name: "n-3".to_owned(),
                reason: "NodeStatusUnknown".to_owned(),
                message: "Kubelet stopped posting node status.".to_owned(),
                since: Some(at(5)),
            }),
        }),
        nodes_unobserved: Some("not asked".to_owned()),
        managed: vec![ManagedCluster {
            object: ObjectKey::new("cluster.x-k8s.io", "Cluster", "fleet", "one"),
            status: Status::InProgress,
            message: "no machine".to_owned(),
            named: NamedCluster {
                observed: ClusterNames { ids: vec!["u-1".to_owned()], ..ClusterNames::default() },
                claimed: ClusterNames {
                    addresses: vec!["https://one.example.com".to_owned()],
                    names: vec!["one".to_owned(), "1".to_owned()],
                    ..ClusterNames::default()
                },
            },
        }],
        ..ClusterReport::default()
    };
    let error = ErrorRow {
        cluster: "eu".to_owned(),
        scope: "Secret in shop".to_owned(),
        reason: "Forbidden".to_owned(),
        message: "no".to_owned(),
    };
    vec![
        Content::Changes { changed: halves(), gone: gone.into() },
        Content::Snapshot { buckets: u64::MAX, part: 3, is_last: true, halves: halves() },
        Content::Cluster { facts: Box::new(facts), errors: vec![error] },
        Content::Digest(Buckets::from((0..64).map(|n| u64::MAX - n).collect::<Vec<_>>())),
        Content::Heartbeat,
    ]
}

/// Sends a report as bytes, and returns what the hub reads.
fn sent(report: crate::report::Report) -> crate::report::Report {
    let message = AgentMessage::from(SourceMessage::Report(Box::new(report)));
    let read = AgentMessage::decode(&*message.encode_to_vec()).unwrap();
    let Some(agent_message::Message::Report(report)) = read.message else { panic!("{read:?}") };
    report.read(&own(), "eu").unwrap()
}

#[test]
fn each_report_arrives_as_it_was_sent() {
    for (seq, content) in (1..).zip(contents()) {
        let position = StreamPosition { epoch: 9, seq };
        for age in [None, Some(Duration::ZERO), Some(Duration::from_millis(1_234))] {
            let report = crate::report::Report { cluster: own(), position, age, content: content.clone() };
            assert_eq!(sent(report.clone()), report);
        }
    }
}

#[test]
fn the_hub_decides_name_and_identity_of_the_cluster() {
    let facts = ClusterReport {
        name: "somebody-else".to_owned(),
        aliases: vec!["another".to_owned()],
        id: Some("another".to_owned()),
        twin_of: Some("another".to_owned()),
        ..ClusterReport::default()
    };
    let error = ErrorRow {
        cluster: "another".to_owned(),
        scope: "cluster".to_owned(),
        reason: "Unreachable".to_owned(),
        message: "no".to_owned(),
    };
    let content = Content::Cluster { facts: Box::new(facts), errors: vec![error] };
    let position = StreamPosition { epoch: 1, seq: 1 };
    let read = sent(crate::report::Report { cluster: own(), position, age: None, content });
    let Content::Cluster { facts, errors } = read.content else { panic!("{read:?}") };
    let wanted = ClusterReport { name: "eu".to_owned(), id: Some(own().0), ..ClusterReport::default() };
    assert_eq!((*facts, &*errors[0].cluster), (wanted, "eu"));
}

#[test]
fn replies_are_told_without_the_cluster_which_the_stream_has() {
    let cluster = own();
    for reply in [
        SourceReply::Accepted { cluster: cluster.clone(), epoch: 3 },
        SourceReply::Resend { cluster: cluster.clone(), epoch: 3, buckets: 5 },
        SourceReply::Refused { cluster, epoch: 3 },
    ] {
        let bytes = HubMessage::from(reply.clone()).encode_to_vec();
        let read = HubMessage::decode(&*bytes).unwrap().message.unwrap();
        let told = match (&reply, read) {
            (SourceReply::Accepted { epoch, .. }, hub_message::Message::Accepted(it)) => it.epoch == *epoch,
            (SourceReply::Resend { epoch, buckets, .. }, hub_message::Message::Resend(it)) => {
                (it.epoch, it.buckets) == (*epoch, *buckets)
            }
            (SourceReply::Refused { epoch, .. }, hub_message::Message::Refused(it)) => it.epoch == *epoch,
            _ => false,
        };
        assert!(told, "{reply:?}");
    }
}

/// Appends fields that only a later release knows: a number, and a text.
fn with_later_fields(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend([0xf8, 0x3f, 0x07]);
    bytes.extend([0xfa, 0x3f, 0x02, b'h', b'i']);
    bytes
}

#[test]
fn fields_and_values_of_a_later_release_do_no_harm() {
    let mut half: super::Half =
        match AgentMessage::from(SourceMessage::Report(Box::new(crate::report::Report {
            cluster: own(),
            position: StreamPosition { epoch: 1, seq: 1 },
            age: None,
            content: Content::Changes { changed: vec![halves().remove(0)], gone: Vec::new() },
        })))
        .message
        {
            Some(agent_message::Message::Report(super::Report {
                content: Some(report::Content::Changes(it)),
                ..
            })) => it.changed[0].clone(),
            other => panic!("{other:?}"),
        };
    let Some(half::Body::Declared(declared)) = &mut half.body else { panic!("{half:?}") };
    declared.sync.as_mut().unwrap().state = 99;
    declared.problems[0].axis = 99;
    declared.problems[0].severity = 99;
    let mut later = half.clone();
    later.app.as_mut().unwrap().delivery = 99;
    let changes = Changes { changed: vec![half, later], gone: Vec::new() };
    let report = super::Report {
        epoch: 1,
        seq: 1,
        age_millis: None,
        content: Some(report::Content::Changes(changes)),
    };
    let message = AgentMessage { message: Some(agent_message::Message::Report(report)) };
    let read = AgentMessage::decode(&*with_later_fields(message.encode_to_vec())).unwrap();
    let Some(agent_message::Message::Report(report)) = read.message else { panic!("{read:?}") };
    let Content::Changes { changed, .. } = report.read(&own(), "eu").unwrap().content else { panic!() };
    // What nobody here can name is left out, and the rest is never better than it was said.
    let [Half { body: HalfBody::Declared(declared), .. }] = &*changed else { panic!("{changed:?}") };
    assert_eq!(declared.sync.state, SyncState::Unknown);
    assert_eq!(
        (declared.problems[0].axis, declared.problems[0].severity),
        (Axis::Health, ProblemSeverity::Error)
    );

    // A message of a later release alone is none that is known.
    let unknown = AgentMessage::decode(&*with_later_fields(Vec::new())).unwrap();
    assert_eq!(unknown.message, None);
}

#[test]
fn a_transition_arrives_as_it_was_noted() {
    use crate::report::{AppTransition, HalfThen};
    for half in halves() {
        let (app, body) = (half.app, half.body);
        let (declared, observed) = match body {
            HalfBody::Declared(half) => (Some(HalfThen::Is(half)), Some(HalfThen::Gone)),
            HalfBody::Observed(half) => (None, Some(HalfThen::Is(half))),
        };
        let noted = AppTransition { app, declared, observed };
        let bytes = Transition::of(noted.clone(), &own()).encode_to_vec();
        let later = with_later_fields(bytes);
        let read = Transition::decode(&*later).unwrap().read(&own()).unwrap();
        assert_eq!(read, Some(noted));
    }
    assert_eq!(Transition::default().read(&own()), Err(InvalidMessage::Missing("app")));
}

#[test]
fn missing_parts_and_impossible_times_are_refused() {
    let read = |half: super::Half| {
        let changes = Changes { changed: vec![half], gone: Vec::new() };
        let content = Some(report::Content::Changes(changes));
        super::Report { epoch: 1, seq: 1, age_millis: None, content }.read(&own(), "eu")
    };
    assert_eq!(read(super::Half::default()), Err(InvalidMessage::Missing("app")));
    let app = Some(super::AppId { delivery: super::Delivery::Kpt as i32, ..super::AppId::default() });
    assert_eq!(
        read(super::Half { app: app.clone(), ..super::Half::default() }),
        Err(InvalidMessage::Missing("half"))
    );
    let sync =
        super::Sync { last_success: Some(Time { seconds: i64::MAX, nanos: 0 }), ..super::Sync::default() };
    let body = Some(half::Body::Declared(Box::new(Declared { sync: Some(sync), ..Declared::default() })));
    assert_eq!(
        read(super::Half { app, body, ..super::Half::default() }),
        Err(InvalidMessage::Time("last success"))
    );
}

#[test]
fn a_token_carries_the_keys_of_the_hub() {
    let pins = vec![KeyHash([1; 32]), KeyHash::of(b"key")];
    for pins in [pins, Vec::new()] {
        let token = EnrolmentToken { token: "taffrail_abc-_".to_owned(), pins };
        assert!(EnrolmentToken::parse(&token.to_string()) == Some(token));
    }
    for wrong in ["", ".", "a b", "a.", "a.xyz", &format!("a.{},", KeyHash([1; 32]))] {
        assert!(EnrolmentToken::parse(wrong).is_none(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_hub_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(AgentMessage { message: Some(agent_message::Message::Report(report)) }) = AgentMessage::decode(&*bytes) {
            let _ = report.read(&own(), "eu");
        }
    }

    #[test]
    fn no_changed_byte_makes_the_hub_panic(at in 0.0..1.0f64, byte: u8, content in 0..4usize) {
        let position = StreamPosition { epoch: 1, seq: 1 };
        let content = contents().swap_remove(content);
        let report = crate::report::Report { cluster: own(), position, age: None, content };
        let mut bytes = AgentMessage::from(SourceMessage::Report(Box::new(report))).encode_to_vec();
        let place = (bytes.len() as f64 * at) as usize;
        bytes[place] = byte;
        if let Ok(AgentMessage { message: Some(agent_message::Message::Report(report)) }) = AgentMessage::decode(&*bytes) {
            let _ = report.read(&own(), "eu");
        }
    }
}
