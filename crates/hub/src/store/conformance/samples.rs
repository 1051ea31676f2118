//! Pairs as fleets have them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use taffrail_api::AppName;
use taffrail_api::report::{
    AppId, DeclaredHalf, HalfUpstream, HalfUpstreams, NotLive, ObservedHalf, Speaker,
};
use taffrail_apps::{
    Axis, ClusterId, Delivery, FreshnessState, Problem, ProblemSeverity, RelationType, Source, Sync,
    SyncState,
};
use taffrail_object::ObjectKey;
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use super::at;
use crate::store::{Batch, PairId, PairRecord, PairTransition, SavedHalf};

/// The number of apps of a cluster.
const APPS: usize = 100;

/// Returns the identity of the pair `number` of a fleet: 100 apps in each cluster.
pub(crate) fn pair_id(number: usize) -> PairId {
    let (cluster, app) = (number / APPS, number % APPS);
    let id = ClusterId(format!("{cluster:08x}-5b1c-4a55-9d0e-{cluster:012x}"));
    let name = AppName {
        delivery: Delivery::FluxKustomization,
        namespace: "flux-system".to_owned(),
        name: format!("team-{app:02}"),
    };
    PairId { cluster: id.clone(), app: AppId { home: id, app: name } }
}

/// Makes the pair `number` of a fleet at a revision; one of 20 is not well.
pub(crate) fn pair(number: usize, revision: usize) -> PairRecord {
    let id = pair_id(number);
    let app = number % APPS;
    let is_well = number % 20 != 7;
    let hash = format!("main@sha1:{:040x}", (revision as u128 + 1) * 0x9e37_79b9_7f4a_7c15);
    let object = ObjectKey::new("apps", "Deployment", format!("team-{app:02}"), "web");
    let problem = Problem {
        axis: Axis::Health,
        state: "Failed".to_owned(),
        severity: ProblemSeverity::Error,
        since: Some(at(1_700_000_000_000_000)),
        message: format!(
            "container app of Pod web-{number} is in CrashLoopBackOff: exit code 1, restarted many times"
        )
        .into(),
        object: Some(object),
        upstream: None,
    };
    let speaker = Speaker {
        status: Status::Failed,
        rule: "builtin/apps/Deployment".to_owned(),
        unconfirmed: false,
        problem,
    };
    let counts = Counts { current: 12, failed: usize::from(!is_well), ..Counts::default() };
    let source = Source {
        kind: "GitRepository".to_owned(),
        namespace: Some("flux-system".to_owned()),
        name: Some("fleet".to_owned()),
        url: Some("ssh://git@git.example/fleet".to_owned()),
        path: Some(format!("./apps/team-{app:02}")),
        reference: Some("main".to_owned()),
    };
    let root = pair_id(number - app).app;
    let declared = DeclaredHalf {
        key: format!("flux-kustomization/flux-system/team-{app:02}"),
        target: id.cluster.clone(),
        sync: Sync {
            state: SyncState::Synced,
            desired: Some(hash.clone()),
            attempted: Some(hash.clone()),
            applied: Some(hash.clone()),
            last_success: Some(at(1_700_000_000_000_000 + number as i64 * 1_000_000)),
        },
        suspended: number % 50 == 3,
        source: Some(Arc::new(source)),
        labels: Arc::new(BTreeMap::from([("team".to_owned(), format!("team-{app:02}"))])),
        message: format!("Applied revision: {hash}").into(),
        own: None,
        problems: Vec::new(),
        syncs: Vec::new(),
        upstreams: (app != 0).then(|| {
            let upstream =
                HalfUpstream { relation: RelationType::CreatedBy, app: root.clone(), is_missing: false };
            Arc::new(HalfUpstreams { apps: vec![upstream], left_out: number % 2 })
        }),
        not_live: None,
        unobserved: Default::default(),
        checks: Vec::new(),
    };
    let observed = ObservedHalf {
        health: if is_well { Status::Current } else { Status::Failed },
        worst: (!is_well).then(|| Box::new(speaker)),
        counts,
        unconfirmed: 0,
        unmarked: None,
        not_live: None,
        unobserved: Default::default(),
        said: false,
    };
    let received = at(1_764_000_000_000_000 + number as i64);
    PairRecord {
        id,
        declared: Some(SavedHalf {
            body: Box::new(declared),
            fingerprint: Some(u64::MAX - number as u64),
            received,
        }),
        observed: Some(SavedHalf {
            body: Box::new(observed),
            fingerprint: number.is_multiple_of(2).then_some(number as u64 + 1),
            received,
        }),
    }
}

/// Makes a pair of another home cluster, with `text` in many of its texts, and with values in fields that are rarely
/// set.
pub(super) fn unusual_pair(text: &str) -> PairRecord {
    let mut pair = pair(7, 1);
    pair.id.app.home = ClusterId(format!("home {text}"));
    pair.id.app.app.delivery = Delivery::ArgoApplication;
    let declared = &mut pair.declared.as_mut().unwrap().body;
    let worst = pair.observed.as_mut().unwrap().body.worst.clone().unwrap();
    let problem = Problem { axis: Axis::Sync, message: text.into(), object: None, ..worst.problem.clone() };
    declared.target = ClusterId(format!("target {text}"));
    declared.own = Some(Box::new(Speaker { status: Status::Terminating, unconfirmed: true, ..*worst }));
    declared.problems = vec![problem.clone(), Problem { since: None, ..problem.clone() }];
    declared.not_live = Some(NotLive { state: FreshnessState::Lost, age: None });
    declared.sync.last_success = Some(jiff::Timestamp::new(1_700_000_000, 123_456_789).unwrap());
    declared.sync.desired = None;
    let parameters = BTreeMap::from([("service".to_owned(), text.to_owned())]);
    let fault = Some(text.to_owned());
    declared.checks = vec![taffrail_apps::DeclaredCheck { name: "error-rate".to_owned(), parameters, fault }];
    Arc::make_mut(&mut declared.labels).insert(text.to_owned(), text.to_owned());
    declared.message = text.into();
    let observed = &mut pair.observed.as_mut().unwrap().body;
    observed.unmarked = Some(Box::new(problem));
    observed.unconfirmed = 3;
    observed.counts = Counts {
        current: 1,
        in_progress: 2,
        failed: 3,
        terminating: 4,
        not_found: 5,
        unknown: usize::MAX / 2,
    };
    observed.not_live =
        Some(NotLive { state: FreshnessState::Stale, age: Some(Duration::from_millis(1_234)) });
    pair
}

/// Makes a batch that writes the pair `number`, with a transition at the microsecond `micros`.
pub(crate) fn batch_of(number: usize, micros: i64) -> Batch {
    let record = pair(number, usize::try_from(micros).unwrap_or_default());
    let state = super::history::state_of(number);
    let transition =
        PairTransition { pair: record.id.clone(), at: at(micros), before: None, after: Some(state) };
    Batch { pairs: vec![record], transitions: vec![transition], ..Batch::default() }
}
