//! Findings: an app is Ready but has a problem with its sync, its source or the freshness of its home cluster.

use std::collections::HashMap;

use taffrail_object::ObjectKey;

use super::cluster_context::ClusterContext;
use super::{Finding, FindingCategory, Severity, is_green};
use crate::app::App;
use crate::delivery::argo;
use crate::identity::Delivery;
use crate::problem::{Axis, CONTROLLER_STOPPED, Problem, ProblemSeverity, SUSPENDED};

pub(super) fn look(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut unready = HashMap::new();
    let mut findings = Vec::new();
    let apps = cluster.list.apps.iter().enumerate();
    for (place, app) in apps.filter(|(_, app)| app.app.home == cluster.name() && is_green(app)) {
        let problems = app.problems.iter().filter(|problem| !is_told(cluster, &mut unready, app, problem));
        findings.extend(problems.filter_map(|problem| finding(cluster, place, app, problem)));
    }
    findings
}

/// The sources that were looked at, each with true if it reports that it is not ready. They are kept because
/// many apps have the same source.
type Unready<'a> = HashMap<&'a ObjectKey, bool>;

/// Returns true if another finding reports this problem of `app` in more detail.
fn is_told<'a>(
    cluster: &ClusterContext<'_>,
    unready: &mut Unready<'a>,
    app: &App,
    problem: &'a Problem,
) -> bool {
    match &*problem.state {
        SUSPENDED | CONTROLLER_STOPPED => true,
        // A controller that left the revision untried is reported as silent.
        "OutOfSync" if app.app.delivery == Delivery::ArgoApplication => {
            let declaring =
                app.declaring.as_ref().and_then(|key| super::cluster_context::found(cluster.objects, key));
            declaring.is_some_and(|declaring| argo::is_manual(&declaring.object))
        }
        // Sources that are not Ready are reported with all the apps that they hold up.
        _ if problem.axis == Axis::Source => problem.object.as_ref().is_some_and(|key| {
            *unready.entry(key).or_insert_with(|| {
                let source = super::cluster_context::found(cluster.objects, key);
                source.is_some_and(|source| source.object.condition_is("Ready", "False"))
            })
        }),
        "OutOfSync" => app.app.delivery != Delivery::ConfigSync && app.app.delivery != Delivery::Kpt,
        _ => false,
    }
}

fn finding(cluster: &ClusterContext<'_>, place: usize, app: &App, problem: &Problem) -> Option<Finding> {
    let (category, reason) = match (problem.axis, &*problem.state) {
        // A check says nothing of the objects.
        (Axis::Health | Axis::Check, _) => return None,
        (Axis::Freshness, _) => (FindingCategory::Unread, "HomeNotLive"),
        (Axis::Sync, "Failed") => (FindingCategory::Disagreeing, "SyncFailed"),
        (Axis::Sync, "Unknown") => (FindingCategory::Disagreeing, "SyncUnknown"),
        (Axis::Sync, "Syncing") => (FindingCategory::Silent, "StillSyncing"),
        (Axis::Sync, _) => (FindingCategory::Disagreeing, "OutOfSync"),
        (Axis::Source, _) => (FindingCategory::Silent, "SourceFailed"),
    };
    let severity = match problem.severity {
        ProblemSeverity::Error => Severity::High,
        ProblemSeverity::Waiting => Severity::Medium,
        ProblemSeverity::Notice => Severity::Low,
    };
    let own = ObjectKey::new("", "App", &*app.app.namespace, &*app.app.name);
    let key = problem.object.as_ref().or(app.declaring.as_ref()).unwrap_or(&own);
    let next = cluster.explain(app);
    let finding = Finding::new(category, severity, reason).object(key, problem.since);
    Some(finding.says(problem.message.lines().next().unwrap_or_default()).of([place]).next(next))
}
