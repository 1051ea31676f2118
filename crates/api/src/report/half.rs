//! The halves of a row: what the home cluster declares of an app, and what the target cluster observes of its objects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_apps::{
    App, AppRef, Axis, ClusterId, DeclaredCheck, Freshness, FreshnessState, Problem, RelationType, Resource,
    Source, Sync, SyncAttempt, SyncState, Upstream, UpstreamProblem, Words, health_problem,
    unconfirmed_problem, unread_problem,
};
use taffrail_object::ObjectKey;
use taffrail_status::Status;
use taffrail_status::rollup::{Counts, worst_of_app};

use super::AppId;
use crate::Unobserved;
use crate::row_part::{is_said, unobserved_parts};

/// One half of an app's row: the part that its home cluster or its target cluster reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Half {
    /// The app.
    pub app: AppId,
    /// A hash of the half, with a key that only the source knows. Halves of one stream that differ at most in the age
    /// of their observation have equal fingerprints.
    pub fingerprint: u64,
    /// The contents.
    pub body: HalfBody,
}

/// The contents of a half: a declaration or an observation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HalfBody {
    /// The declaration of the app, reported by its home cluster.
    Declared(Box<DeclaredHalf>),
    /// The state of the app's objects, reported by its target cluster.
    Observed(Box<ObservedHalf>),
}

/// One of the two sides of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HalfSide {
    /// The half that the home cluster declares.
    Declared,
    /// The half that the target cluster observes.
    Observed,
}

/// The identity of a half.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HalfId {
    /// The app.
    pub app: AppId,
    /// The side.
    pub side: HalfSide,
}

impl HalfBody {
    /// Returns about how many bytes the contents take, as [`Half::size`] counts them.
    pub(super) fn size(&self) -> usize {
        match self {
            HalfBody::Declared(body) => body.size(),
            HalfBody::Observed(body) => body.size(),
        }
    }

    /// Returns the side of the row that these contents are of.
    pub fn side(&self) -> HalfSide {
        match self {
            HalfBody::Declared(_) => HalfSide::Declared,
            HalfBody::Observed(_) => HalfSide::Observed,
        }
    }
}

impl Half {
    /// Returns about how many bytes the half takes in a message: the length of its texts, and 16 bytes for each other
    /// field.
    pub fn size(&self) -> usize {
        let app = &self.app.app;
        48 + self.app.home.0.len() + app.namespace.len() + app.name.len() + self.body.size()
    }

    /// Returns the identity of the half: its app and its side.
    pub fn id(&self) -> HalfId {
        HalfId { app: self.app.clone(), side: self.body.side() }
    }
}

/// The declaration of an app, as its home cluster reports it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeclaredHalf {
    /// A text that identifies the app in all clusters: the name in its annotation `taffrail.dev/app`, its
    /// ApplicationSet or its package, or else its delivery, namespace and name.
    pub key: String,
    /// The cluster that holds the app's objects; the home cluster if that one is not known.
    pub target: ClusterId,
    /// The sync state, with the desired, attempted and applied revisions.
    pub sync: Sync,
    /// True if the app is suspended in its delivery tool: by `spec.suspend` of Flux, or because Argo CD skips it or its
    /// policy for automated sync is switched off.
    pub suspended: bool,
    /// The Git repository, OCI artifact or chart that the app is made from; `None` if none is known.
    pub source: Option<Arc<Source>>,
    /// The labels of the declaring object.
    pub labels: Arc<BTreeMap<String, String>>,
    /// The message of the delivery tool about the app; may be empty.
    pub message: Words,
    /// The declaring object, or the one that lists the app's objects, if its status is worse than those of all objects
    /// of the app; else `None`.
    pub own: Option<Box<Speaker>>,
    /// The problems of the app except those of its objects and of freshness: with sync and source, and those that the
    /// delivery tool reports; the worst first.
    pub problems: Vec<Problem>,
    /// The syncs that the delivery tool remembers, the latest first, at most [`MAX_SYNCS`](taffrail_apps::MAX_SYNCS). A
    /// hub takes them out of the half: its history keeps them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub syncs: Vec<SyncAttempt>,
    /// The apps upstream of this one; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstreams: Option<Arc<HalfUpstreams>>,
    /// The freshness of the half as its source reports it; `None` if the half is live, or as fresh as its cluster,
    /// whose freshness then counts.
    pub not_live: Option<NotLive>,
    /// The parts that the source cannot tell.
    #[serde(default, skip_serializing_if = "Unobserved::is_empty")]
    pub unobserved: Unobserved,
    /// The checks that the declaring object names, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<DeclaredCheck>,
}

/// The apps upstream of one app, in a report.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HalfUpstreams {
    /// The apps.
    pub apps: Vec<HalfUpstream>,
    /// Number of further apps on which the app depends.
    pub left_out: usize,
}

/// An app upstream of another one, in a report.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HalfUpstream {
    /// The type of the relation.
    pub relation: RelationType,
    /// The app upstream.
    pub app: AppId,
    /// True if the cluster that would declare it was read, and does not.
    pub is_missing: bool,
}

impl ObservedHalf {
    /// Makes the half of objects with this health and these counts, all live and confirmed, without one that is the worst.
    pub fn new(health: Status, counts: Counts) -> ObservedHalf {
        ObservedHalf {
            health,
            worst: None,
            counts,
            unconfirmed: 0,
            unmarked: None,
            not_live: None,
            unobserved: Unobserved::default(),
            said: false,
        }
    }

    pub(super) fn size(&self) -> usize {
        96 + sum(self.worst.as_deref(), Speaker::size) + sum(self.unmarked.as_deref(), problem_size)
    }
}

impl DeclaredHalf {
    /// Makes the half of an app with objects in `target` and this sync state, of which nothing else is known.
    pub fn new(key: String, target: ClusterId, state: SyncState) -> DeclaredHalf {
        DeclaredHalf {
            key,
            target,
            sync: Sync { state, ..Sync::unknown() },
            suspended: false,
            source: None,
            labels: Arc::default(),
            message: Words::default(),
            own: None,
            problems: Vec::new(),
            syncs: Vec::new(),
            upstreams: None,
            not_live: None,
            unobserved: Unobserved::default(),
            checks: Vec::new(),
        }
    }

    pub(super) fn size(&self) -> usize {
        let DeclaredHalf {
            key,
            target,
            sync,
            source,
            labels,
            message,
            own,
            problems,
            syncs,
            upstreams,
            checks,
            ..
        } = self;
        let revisions = [&sync.desired, &sync.attempted, &sync.applied];
        let source_size = |source: &Arc<Source>| {
            let Source { kind, namespace, name, url, path, reference } = &**source;
            kind.len() + sum([namespace, name, url, path, reference].into_iter().flatten(), String::len)
        };
        96 + key.len()
            + target.0.len()
            + message.len()
            + sum(revisions.into_iter().flatten(), String::len)
            + sum(source, source_size)
            + sum(labels.iter(), |(name, value)| 8 + name.len() + value.len())
            + sum(own.as_deref(), Speaker::size)
            + sum(problems, problem_size)
            + sum(syncs, |sync| 48 + sync.revision.len() + sync.message.len())
            + sum(upstreams.iter().flat_map(|it| &it.apps), |upstream| {
                let AppId { home, app } = &upstream.app;
                32 + home.0.len() + app.namespace.len() + app.name.len()
            })
            + sum(checks, DeclaredCheck::size)
    }
}

impl Speaker {
    fn size(&self) -> usize {
        16 + self.rule.len() + problem_size(&self.problem)
    }
}

fn problem_size(problem: &Problem) -> usize {
    let Problem { state, message, object, upstream, .. } = problem;
    let object_size = |object: &Option<ObjectKey>| {
        sum(object, |key| 16 + key.group.len() + key.kind.len() + key.namespace.len() + key.name.len())
    };
    let upstream = sum(upstream.as_deref(), |upstream: &UpstreamProblem| {
        let UpstreamProblem { app, state, message, object, .. } = upstream;
        48 + app.namespace.len() + app.name.len() + state.len() + message.len() + object_size(object)
    });
    32 + state.len() + message.len() + object_size(object) + upstream
}

fn sum<T>(items: impl IntoIterator<Item = T>, of: impl Fn(T) -> usize) -> usize {
    items.into_iter().map(of).sum()
}

/// The state of an app's objects, as its target cluster reports it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservedHalf {
    /// The status of the worst declared object; `Current` if the app has none.
    pub health: Status,
    /// The worst declared object; `None` if all are `Current`.
    pub worst: Option<Box<Speaker>>,
    /// Number of declared objects by the status that was last observed.
    pub counts: Counts,
    /// Number of declared objects that exist outside of the author's own namespace and carry no mark of this app.
    pub unconfirmed: usize,
    /// The notice that the claim of this app on some declared objects is unconfirmed; `None` if there are none.
    pub unmarked: Option<Box<Problem>>,
    /// The freshness of the half as its source reports it; `None` if the half is live, or as fresh as its cluster,
    /// whose freshness then counts.
    pub not_live: Option<NotLive>,
    /// The parts that the source cannot tell.
    #[serde(default, skip_serializing_if = "Unobserved::is_empty")]
    pub unobserved: Unobserved,
    /// True if `health` is what a controller says of objects that the source did not read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub said: bool,
}

/// An object that decides the status of an app or of a half, with its status and its problem.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Speaker {
    /// The status of the object.
    pub status: Status,
    /// The name of the rule that decided the status; empty if there was no object to judge.
    pub rule: String,
    /// True if the object exists outside of the author's own namespace and carries no mark of this app.
    pub unconfirmed: bool,
    /// The problem of the object: its key, the message of the root cause in one line, and the time since when it
    /// exists.
    pub problem: Problem,
}

/// The freshness of a half or a cluster that is not live, because its source could not read everything lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotLive {
    /// `Stale` or `Lost`, never `Live`.
    pub state: FreshnessState,
    /// The age of the observation at the time of the report; `None` if there never was one.
    pub age: Option<Duration>,
}

impl NotLive {
    /// Converts the freshness of an observation at the time `now`; returns `None` for a live one.
    pub fn of(freshness: Freshness, now: Timestamp) -> Option<NotLive> {
        let Freshness { state, observed_at } = freshness;
        let age = observed_at.map(|at| Duration::try_from(now.duration_since(at)).unwrap_or_default());
        (state != FreshnessState::Live).then_some(NotLive { state, age })
    }
}

/// Splits an app, as a source knows it at `now`, into its identity, its declared half and its observed half.
///
/// `id` returns the identity of the cluster of a name; `labels` are those of the declaring object. The declared half
/// has an empty list of syncs; both have the freshness of the app even where it is that of the cluster.
pub fn halves(
    app: &App,
    id: impl Fn(&str) -> ClusterId,
    labels: BTreeMap<String, String>,
    now: Timestamp,
) -> (AppId, DeclaredHalf, ObservedHalf) {
    let AppRef { home, target, .. } = &app.app;
    let whole = app.unread.as_ref().map(|unread| &unread.health);
    let worst = whole.or_else(|| worst_of_app(&app.resources, []));
    let worst = worst.filter(|worst| worst.status != Status::Current);
    let own = app.speaker.as_ref().filter(|speaker| worst.is_none_or(|worst| speaker.status < worst.status));
    let (of_health, of_tool): (Vec<Problem>, Vec<Problem>) = app
        .problems
        .iter()
        .filter(|problem| !matches!(problem.axis, Axis::Freshness | Axis::Check))
        .cloned()
        .partition(|problem| problem.axis == Axis::Health && !problem.is_beside_health());
    // An object that does not decide has no entry among the problems of the app.
    let of_health = of_health.into_iter().next();
    let speaker = |resource: &Resource| {
        let known = of_health.clone().filter(|problem| problem.object.as_ref() == Some(&resource.key));
        Speaker {
            status: resource.status,
            rule: resource.rule.to_string(),
            unconfirmed: resource.unconfirmed,
            problem: known.unwrap_or_else(|| match &app.unread {
                Some(unread) if unread.health == *resource => unread_problem(unread),
                _ => health_problem(resource),
            }),
        }
    };
    let unmarked = unconfirmed_problem(&app.resources);
    let of_tool = of_tool.into_iter().filter(|problem| Some(problem) != unmarked.as_ref()).collect();
    let upstream = |upstream: &Upstream| HalfUpstream {
        relation: upstream.relation,
        app: AppId { home: id(&upstream.home), app: upstream.app.clone() },
        is_missing: upstream.is_missing,
    };
    let upstreams = (!app.upstreams.apps.is_empty()).then(|| HalfUpstreams {
        apps: app.upstreams.apps.iter().map(upstream).collect(),
        left_out: app.upstreams.left_out,
    });
    let declared = DeclaredHalf {
        key: app.key.to_string(),
        target: id(target),
        sync: app.sync.clone(),
        suspended: app.suspended,
        source: app.source.clone().map(Arc::new),
        labels: Arc::new(labels),
        message: app.delivery_message.as_str().into(),
        own: own.map(speaker).map(Box::new),
        problems: of_tool,
        syncs: Vec::new(),
        upstreams: upstreams.map(Arc::new),
        not_live: NotLive::of(app.home_freshness, now),
        unobserved: Unobserved::default(),
        checks: app.declared_checks.clone(),
    };
    let observed = ObservedHalf {
        health: worst.map_or(Status::Current, |worst| worst.status),
        worst: worst.map(speaker).map(Box::new),
        counts: app.counts,
        unconfirmed: app.unconfirmed(),
        unmarked: unmarked.map(Box::new),
        not_live: NotLive::of(app.freshness, now),
        unobserved: unobserved_parts(app),
        said: is_said(app),
    };
    (AppId::new(id(home), &app.app), declared, observed)
}
