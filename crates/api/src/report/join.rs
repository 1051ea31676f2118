//! Joins the two halves of a row.

use taffrail_apps::{ClusterId, Freshness, Problem, Upstream, Words, freshness_problem, order_problems};
use taffrail_status::Status;

use super::{AppId, DeclaredHalf, HalfUpstream, ObservedHalf, Speaker};
use crate::checks::ToldChecks;
use crate::{AppRow, RowPart, SyncRow};

/// The facts about a cluster that the row of an app in it needs.
#[derive(Debug, Clone, Copy)]
pub struct ClusterView<'c> {
    /// The name of the cluster.
    pub name: &'c str,
    /// True if the cluster as a whole is live; then a half that is not live is so because a part of the cluster could
    /// not be read.
    pub is_live: bool,
    /// The message of the failure because of which the cluster as a whole cannot be read now; `None` if there is none.
    pub silence: Option<&'c str>,
}

/// A half that the hub holds, with its freshness and the cluster that reported it; `T` is the type of its contents.
#[derive(Debug)]
pub struct HeldHalf<'h, T> {
    /// The contents.
    pub body: &'h T,
    /// The freshness of the half.
    pub freshness: Freshness,
    /// The cluster that reported the half.
    pub cluster: ClusterView<'h>,
}

impl<T> Clone for HeldHalf<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for HeldHalf<'_, T> {}

/// The message of an app without an observed half and without a worse declaring object.
const UNOBSERVED: &str = "the target cluster has not reported the objects of the app";

/// The message of such an app if its source has no way to tell the health.
const UNTOLD: &str = "the source of the row does not tell the health of the app";

/// Returns the problems of an app, the worst first, one for each axis and state: that a half is not live (of two such
/// halves only the observed one), that of the object that decides its status, those of its declaration, and the notice
/// about objects without its mark. `target` is the cluster that should have reported the `observed` half.
fn problems(
    declared: HeldHalf<'_, DeclaredHalf>,
    observed: Option<HeldHalf<'_, ObservedHalf>>,
    target: ClusterView<'_>,
    checks: Option<&ToldChecks>,
) -> Vec<Problem> {
    let freshness = observed.map_or(Freshness::never(), |half| half.freshness);
    let seen = observed.map(|half| half.body);
    let dark = [(target, freshness), (declared.cluster, declared.freshness)].into_iter().find_map(
        |(cluster, freshness)| freshness_problem(cluster.name, freshness, cluster.is_live, cluster.silence),
    );
    let dark = dark.map(|problem| match is_untold(declared.body, seen) {
        true => Problem { message: Words::from(UNTOLD), ..problem },
        false => problem,
    });
    let of_objects = speaker(declared.body, seen).map(|speaker| speaker.problem.clone());
    let unmarked = seen.and_then(|seen| seen.unmarked.as_deref().cloned());
    let found = dark.into_iter().chain(of_objects).chain(declared.body.problems.iter().cloned());
    let of_checks = checks.into_iter().flat_map(|checks| &checks.problems).cloned();
    order_problems(found.chain(of_checks).collect(), unmarked)
}

/// Returns the object that decides the status of an app: the declaring one (or the one that lists the objects) if its
/// status is worse than the health of the `observed` half, which is Unknown without one; else the worst observed
/// object. `None` if both halves are Ready, or if nothing was observed and the declaring object is not worse than
/// Unknown.
pub fn speaker<'h>(declared: &'h DeclaredHalf, observed: Option<&'h ObservedHalf>) -> Option<&'h Speaker> {
    let health = health(observed);
    let own = declared.own.as_deref().filter(|own| own.status < health);
    own.or(observed.and_then(|observed| observed.worst.as_deref()))
}

fn health(observed: Option<&ObservedHalf>) -> Status {
    observed.map_or(Status::Unknown, |observed| observed.health)
}

/// Returns the health of an app when it was last observed: the worse one of the health of the `observed` half (Unknown
/// without one) and of the status of its declaring object (or the one that lists its objects), if that is known to be
/// worse than the objects.
pub fn last_health(declared: &DeclaredHalf, observed: Option<&ObservedHalf>) -> Status {
    let own = declared.own.as_ref().map(|own| own.status);
    health(observed).min(own.unwrap_or(Status::Current))
}

/// Returns true if the health was not observed because the source of the declared half has no way to tell it.
fn is_untold(declared: &DeclaredHalf, observed: Option<&ObservedHalf>) -> bool {
    observed.is_none() && declared.unobserved.has(RowPart::Health)
}

/// Joins the halves of an app to its row. Without the `observed` half the health is Unknown, or worse if the declaring
/// object is; `target` is the cluster that should have reported it. `name` returns the name of another cluster, by which
/// it is listed.
pub fn join(
    app: &AppId,
    declared: HeldHalf<'_, DeclaredHalf>,
    observed: Option<HeldHalf<'_, ObservedHalf>>,
    target: ClusterView<'_>,
    checks: Option<&ToldChecks>,
    name: impl Fn(&ClusterId) -> Option<String>,
) -> AppRow {
    let never = Freshness::never();
    let (freshness, seen) = observed.map_or((never, None), |half| (half.freshness, Some(half.body)));
    let DeclaredHalf { key, sync, suspended, source, message, upstreams, .. } = declared.body;
    let speaker = speaker(declared.body, seen);
    let health = last_health(declared.body, seen);
    let problems = problems(declared, observed, target, checks);
    let problem = problems.first().cloned();
    let message = match (speaker, seen) {
        (Some(speaker), _) => speaker.problem.message.clone(),
        (None, Some(_)) => message.clone(),
        (None, None) if is_untold(declared.body, None) => Words::from(UNTOLD),
        (None, None) => Words::from(UNOBSERVED),
    };
    let name = |id: &ClusterId| match *id == app.home {
        true => declared.cluster.name.to_owned(),
        false => name(id).unwrap_or_else(|| id.0.clone()),
    };
    let upstream = |upstream: &HalfUpstream| Upstream {
        relation: upstream.relation,
        home: name(&upstream.app.home),
        app: upstream.app.app.clone(),
        is_missing: upstream.is_missing,
    };
    let counts = seen.map(|seen| seen.counts).unwrap_or_default();
    AppRow {
        key: key.clone(),
        cluster: target.name.to_owned(),
        home: declared.cluster.name.to_owned(),
        delivery: app.app.delivery,
        namespace: app.app.namespace.clone(),
        name: app.app.name.clone(),
        health,
        effective: freshness.effective(health),
        since: problem.as_ref().and_then(|problem| problem.since),
        problem,
        problems,
        message,
        worst: speaker.and_then(|speaker| speaker.problem.object.clone()),
        worst_unconfirmed: speaker.is_some_and(|speaker| speaker.unconfirmed),
        counts,
        objects: counts.total(),
        unconfirmed: seen.map_or(0, |seen| seen.unconfirmed),
        sync: SyncRow {
            state: sync.state,
            effective: declared.freshness.effective_sync(sync.state),
            desired: sync.desired.clone(),
            attempted: sync.attempted.clone(),
            applied: sync.applied.clone(),
            last_success: sync.last_success,
            freshness: declared.freshness,
        },
        suspended: *suspended,
        freshness,
        source: source.as_deref().cloned(),
        upstreams: upstreams.iter().flat_map(|it| &it.apps).map(upstream).collect(),
        upstreams_left_out: upstreams.as_ref().map_or(0, |it| it.left_out),
        checks: checks.map(|checks| checks.results.clone()).unwrap_or_default(),
        unobserved: seen
            .map_or(declared.body.unobserved, |seen| declared.body.unobserved.union(seen.unobserved))
            .into(),
        said: seen.is_some_and(|seen| seen.said),
    }
}
