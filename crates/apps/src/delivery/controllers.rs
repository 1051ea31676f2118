//! The controllers that deliver apps, and the detection of stopped ones.

use jiff::Timestamp;
use taffrail_object::json::Value;
use taffrail_object::{ObjectKey, Projection};
use taffrail_status::Observed;

use super::{Declaration, argo, by, time, written};
use crate::identity::Delivery;
use crate::memo::Memo;
use crate::objects::Objects;
use crate::problem::{Axis, CONTROLLER_STOPPED, Problem, ProblemSeverity};
use crate::sync::SyncState;

/// A controller of a delivery tool, with the apps that need it and the consequence if it stops.
pub(crate) struct Controller {
    pub(crate) name: &'static str,
    /// The tools whose apps need the controller.
    pub(crate) of: &'static [Delivery],
    /// The consequence if the controller does not run, as a phrase for messages.
    pub(crate) means: &'static str,
    /// The axis of the problem of an app whose controller does not run; `None` if that is not a problem of apps.
    axis: Option<Axis>,
    /// The namespace into which the tool's own installer puts the controller.
    pub(crate) namespace: &'static str,
}

const FLUX: &[Delivery] = &[Delivery::FluxKustomization, Delivery::FluxHelmRelease];

/// The namespace and the name of the Deployment of Config Sync's ResourceGroup controller, which writes the status of
/// each ResourceGroup of its cluster.
pub const RESOURCE_GROUP_CONTROLLER: (&str, &str) =
    ("resource-group-system", "resource-group-controller-manager");

pub(crate) const CONTROLLERS: [Controller; 7] = [
    Controller {
        name: "source-controller",
        of: FLUX,
        means: "sources are not fetched, so new commits go unnoticed",
        axis: Some(Axis::Source),
        namespace: "flux-system",
    },
    Controller {
        name: "kustomize-controller",
        of: &[Delivery::FluxKustomization],
        means: "Kustomizations are not reconciled, so their status is out of date",
        axis: Some(Axis::Sync),
        namespace: "flux-system",
    },
    Controller {
        name: "helm-controller",
        of: &[Delivery::FluxHelmRelease],
        means: "HelmReleases are not reconciled, so their status is out of date",
        axis: Some(Axis::Sync),
        namespace: "flux-system",
    },
    Controller {
        name: "argocd-application-controller",
        of: &[Delivery::ArgoApplication],
        means: "Applications are not compared, so their status is out of date",
        axis: Some(Axis::Sync),
        namespace: "argocd",
    },
    Controller {
        name: "argocd-repo-server",
        of: &[Delivery::ArgoApplication],
        means: "sources of Applications are not fetched, so new revisions go unnoticed",
        axis: Some(Axis::Source),
        namespace: "argocd",
    },
    Controller {
        name: "reconciler-manager",
        of: &[Delivery::ConfigSync],
        means: "the reconcilers of RootSyncs and RepoSyncs are not managed",
        axis: None,
        namespace: "config-management-system",
    },
    Controller {
        name: RESOURCE_GROUP_CONTROLLER.1,
        of: &[Delivery::ConfigSync, Delivery::Kpt],
        means: "the statuses of ResourceGroups are not updated",
        axis: None,
        namespace: RESOURCE_GROUP_CONTROLLER.0,
    },
];

/// The workload of a controller that does not run.
#[derive(Debug, Clone)]
pub(crate) struct StoppedController {
    pub(crate) key: ObjectKey,
    /// The time since when the controller does not run; `None` if it is not known.
    pub(crate) since: Option<Timestamp>,
    /// The reason, as a phrase that follows the name of the controller.
    pub(crate) how: String,
}

/// A key of [`Stops`]: names of a cluster, a controller and a namespace.
type StopsKey = (String, &'static str, String);

/// A cache of the workloads found of each controller in each namespace: one entry per workload, `None` if it runs.
#[derive(Debug, Default)]
pub(crate) struct Stops(Memo<StopsKey, Vec<Option<StoppedController>>>);

impl Controller {
    /// Returns the controller's workload, a Deployment or StatefulSet, if it is scaled to 0 or has no available Pod;
    /// `None` if it runs or was not read whole. If there are both kinds, both must be stopped.
    ///
    /// The workload in the namespace `preferred` decides, otherwise that in the installer's namespace. A workload
    /// elsewhere proves nothing: any author can give a Deployment the name of a controller.
    pub(crate) fn stopped(
        &self,
        objects: &dyn Objects,
        preferred: Option<&str>,
        stops: &Stops,
    ) -> Option<StoppedController> {
        // This runs for each app: a search through all workloads would take time in proportion to apps times
        // workloads.
        let inside = |namespace: &str| -> Vec<Option<StoppedController>> {
            let place = (objects.name().to_owned(), self.name, namespace.to_owned());
            stops.0.get(objects, place, || {
                let named =
                    |kind| objects.get(ObjectKey::new("apps", kind, namespace, self.name).as_ref()).present();
                let named = ["Deployment", "StatefulSet"].into_iter().filter_map(named);
                let named = named.filter(|it| it.projection == Projection::Full);
                named.map(|observed| stopped(objects, &observed)).collect()
            })
        };
        let mut asked = preferred.map(&inside).unwrap_or_default();
        if asked.is_empty() {
            asked = inside(self.namespace);
        }
        let stopped: Option<Vec<StoppedController>> = asked.into_iter().collect();
        stopped?.into_iter().next()
    }
}

fn stopped(objects: &dyn Objects, observed: &Observed<'_>) -> Option<StoppedController> {
    let object = &observed.object;
    let number = |path: &[&str]| object.at(path).and_then(Value::as_i64);
    let available = number(&["status", "availableReplicas"]).unwrap_or(0);
    let wanted = number(&["spec", "replicas"]).unwrap_or(1);
    if wanted != 0 && available != 0 {
        return None;
    }
    let replicas = ["spec", "replicas"];
    let (since, how) = match wanted {
        // A workload scaled to 0 counts as available, so its condition does not show this.
        0 => {
            let since = written(object, &replicas).or_else(|| scaled_at(objects, observed));
            (since, format!("is scaled to 0{}", by(object, &replicas)))
        }
        _ => {
            let available = object
                .condition("Available")
                .filter(|it| it.get("status").is_some_and(|it| it.is_str("False")));
            let since = available.and_then(|it| time(it.get("lastTransitionTime")));
            (since, "has no available Pod".to_owned())
        }
    };
    Some(StoppedController { key: observed.key.to_owned(), since, how })
}

/// Returns the time when a workload was last scaled, by its events; `None` if they tell none.
fn scaled_at(objects: &dyn Objects, workload: &Observed<'_>) -> Option<Timestamp> {
    let events = objects.events(&workload.object).into_iter();
    events.filter(|event| event.reason == "ScalingReplicaSet").filter_map(|event| event.last).max()
}

/// Returns the problem of an app whose controller is stopped, so that nothing will sync it or fetch its source. `None`
/// if no stopped controller is known; of several, the one with the first [`Axis`] counts.
pub(crate) fn problem(
    home: &dyn Objects,
    app: &Declaration,
    declaring: &Observed<'_>,
    stops: &Stops,
) -> Option<Problem> {
    let preferred = (app.delivery == Delivery::ArgoApplication)
        .then(|| argo::controller(&declaring.object).unwrap_or_else(|| app.namespace.clone()));
    let preferred = preferred.as_deref();
    let of_app = CONTROLLERS.iter().filter(|controller| controller.of.contains(&app.delivery));
    let stopped = of_app.filter_map(|controller| {
        let axis = controller.axis?;
        let stopped = controller.stopped(home, preferred, stops)?;
        let behind = match (axis, app.sync.state) {
            (Axis::Sync, SyncState::OutOfSync) => "; it is OutOfSync, and nothing will sync it",
            (Axis::Sync, _) => "; nothing will sync it",
            _ => "",
        };
        let message = format!("{} {}: {}{behind}", controller.name, stopped.how, controller.means);
        let problem = Problem::new(axis, CONTROLLER_STOPPED, ProblemSeverity::Error);
        Some(problem.since(stopped.since).says(message).about(&stopped.key))
    });
    stopped.min_by_key(|problem| problem.axis)
}
