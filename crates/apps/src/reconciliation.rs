//! The source of an app and the state of its delivery, as its tool reports them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_object::ObjectKey;
use taffrail_object::json::Value;
use taffrail_status::{Observed, Presence};

use crate::app::App;
use crate::delivery::{self, argo, author, flux, suspending_field, written};
use crate::identity::Delivery;
use crate::objects::Objects;
use crate::sync::{Source, SyncState};

/// The source of an app. Fields that its tool does not provide are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApplicationDetails {
    /// The branch, tag, version or range that the app follows; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The URL of the source of the app that delivers the declaring object; left out if no app does, or it is not
    /// known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_url: Option<String>,
    /// The type of the delivered content: `kustomize`, `helm`, `kpt`, …; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_type: Option<String>,
    /// The part of the source that is delivered, a folder or a chart; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The type of the source: `git`, `oci`, `helm`, `bucket`, …; left out for an app without a source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_type: Option<String>,
    /// The URL of the source; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The state of an app's delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReconciliationDetails {
    /// The time of the last successful sync; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success: Option<Timestamp>,
    /// The sources of the app, or of the app that delivers in its place; a source of a source comes first.
    pub sources: Vec<ReconciledRow>,
    /// The objects by which the tool delivers the app, then those of the app that delivers in its place; empty if there
    /// are none.
    pub delivery: Vec<ReconciledRow>,
}

impl ReconciliationDetails {
    /// Returns the details as they are known now: if the home cluster is not live, each `ready` that is set becomes
    /// `Unknown`.
    fn known_now(mut self, app: &App) -> ReconciliationDetails {
        if !app.home_freshness.is_live() {
            let rows = self.sources.iter_mut().chain(&mut self.delivery);
            rows.filter_map(|row| row.ready.as_mut()).for_each(|ready| "Unknown".clone_into(ready));
        }
        self
    }
}

/// A source of an app, or an object by which a tool delivers it, with its readiness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReconciledRow {
    /// Kind of the object, of the source if no object describes it, or `Release`.
    pub kind: String,
    /// Namespace of the object or Helm release; empty for a cluster-scoped object, and for a source without an object.
    pub namespace: String,
    /// Name of the object, of the Helm release, or of the repository.
    pub name: String,
    /// The object; left out if none describes the source, or declares the Helm release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKey>,
    /// The readiness: `True`, `False` or `Unknown`; left out if the tool does not report it, or suspends an app that is
    /// not of Flux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// The message that the object or its tool reports, or the reason why it is out of sync or its state is not known;
    /// may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The revision that the source has, or that the delivery has applied; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// True if the object is suspended; left out if it cannot be suspended, or was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<bool>,
    /// The suspension of the object; left out if it is not suspended, or if managed fields tell neither who suspended
    /// it nor when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,
}

/// The act by which somebody suspended an app or a source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Suspension {
    /// The field manager that wrote the field, such as `kubectl-patch`; left out if the API server recorded none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The time at which it last wrote any field of the object; left out if the API server recorded none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

impl Suspension {
    /// Returns the suspension of `app`, which is declared in the cluster `home`; `None` if it is not suspended, or if
    /// managed fields do not tell.
    pub fn of(app: &App, home: Option<&dyn Objects>) -> Option<Suspension> {
        let declaring = found(home, app.declaring.as_ref()).filter(|_| app.suspended)?;
        Suspension::at(&declaring, suspending_field(app.app.delivery))
    }

    fn at(observed: &Observed<'_>, field: &[&str]) -> Option<Suspension> {
        let (by, at) = (author(&observed.object, field), written(&observed.object, field));
        (by.is_some() || at.is_some()).then_some(Suspension { by, at })
    }
}

/// A cache of the parsed Flux sources in one cluster, for several calls of [`FluxSources::of`].
#[derive(Debug, Default)]
pub struct FluxSources(flux::sources::Sources);

impl FluxSources {
    /// Returns the sources of a Flux object in the cluster `home`, a source of a source first; none for other
    /// objects.
    pub fn of<'a>(&self, home: &'a dyn Objects, declaring: &Observed<'a>) -> Vec<ObjectKey> {
        let is_flux = declaring.key.group.ends_with(".toolkit.fluxcd.io");
        if is_flux { flux::sources_by(&self.0, home, declaring) } else { Vec::new() }
    }
}

fn found<'a>(home: Option<&'a dyn Objects>, key: Option<&ObjectKey>) -> Option<Observed<'a>> {
    match home?.get(key?.as_ref()) {
        Presence::Present(observed) => Some(observed),
        Presence::Absent | Presence::Unobserved(_) => None,
    }
}

/// Returns URL, branch, path and types of the source of an app whose declaring object is in `home`, and the source URL
/// of `parent`, the app that delivers that object.
pub fn application_details(
    app: &App,
    parent: Option<&App>,
    home: Option<&dyn Objects>,
) -> ApplicationDetails {
    let source = app.source.as_ref();
    let branch = source.and_then(|source| source.reference.clone());
    let deployment_type = match app.app.delivery {
        Delivery::FluxKustomization => Some("kustomize".to_owned()),
        Delivery::FluxHelmRelease | Delivery::Helm => Some("helm".to_owned()),
        Delivery::ArgoApplication => {
            let object = found(home, app.declaring.as_ref()).map(|observed| observed.object);
            object.and_then(|object| argo::source_types(&object)).map(|says| says.to_lowercase())
        }
        Delivery::ConfigSync => Some("config-sync".to_owned()),
        Delivery::Kpt => Some("kpt".to_owned()),
        Delivery::Porch => Some("porch".to_owned()),
        Delivery::Label | Delivery::Taffrail => None,
    };
    ApplicationDetails {
        branch,
        config_url: parent.and_then(|parent| parent.source.as_ref()?.url.clone()),
        deployment_type,
        path: source.and_then(|source| source.path.clone()),
        source_type: source.map(source_type),
        url: source.and_then(|source| source.url.clone()),
    }
}

fn source_type(source: &Source) -> String {
    match source.kind.as_str() {
        "GitRepository" => "git",
        "OCIRepository" => "oci",
        "HelmRepository" | "HelmChart" => "helm",
        "Bucket" => "bucket",
        "ExternalArtifact" => "external",
        other => other,
    }
    .to_owned()
}

/// Returns the time of the last successful sync of an app whose declaring object is in `home`, its sources, and the
/// objects by which it is delivered. With `via`, the app (with its home) that delivers in place of the app's own tool,
/// the sources are those of `via`, and its delivering objects follow.
pub fn reconciliation_details(
    app: &App,
    home: Option<&dyn Objects>,
    via: Option<(&App, Option<&dyn Objects>)>,
) -> ReconciliationDetails {
    let carried = via.map(|(via, home)| delivery(via, home)).unwrap_or_default();
    let details = ReconciliationDetails {
        last_success: app.sync.last_success,
        sources: via.map_or_else(|| sources(app, home), |(via, home)| sources(via, home)),
        delivery: [delivery(app, home), carried].concat(),
    };
    details.known_now(app)
}

fn is_flux(app: &App) -> bool {
    matches!(app.app.delivery, Delivery::FluxKustomization | Delivery::FluxHelmRelease)
}

fn sources(app: &App, home: Option<&dyn Objects>) -> Vec<ReconciledRow> {
    let declaring = found(home, app.declaring.as_ref());
    if is_flux(app) {
        let Some((objects, declaring)) = home.zip(declaring) else { return Vec::new() };
        return flux::sources(objects, &declaring).iter().map(|key| flux_row(objects, key, None)).collect();
    }
    // An Application with several sources has a revision for each, in the same order.
    let several = declaring.as_ref().filter(|_| app.app.delivery == Delivery::ArgoApplication);
    let several = several.map(|declaring| argo::sources(&declaring.object)).unwrap_or_default();
    let sources = if several.is_empty() { app.source.iter().cloned().collect() } else { several };
    let desired = app.sync.desired.as_deref();
    let revisions: Vec<&str> = desired.map(|desired| desired.split(',').collect()).unwrap_or_default();
    let error = declaring.and_then(|observed| delivery::source_error(app.app.delivery, &observed.object));
    let ready = match (&error, desired) {
        (Some(_), _) => Some("False"),
        // Porch has written there; it is not known if the source can be read.
        _ if app.app.delivery == Delivery::Porch => None,
        (None, Some(_)) => Some("True"),
        (None, None) => None,
    };
    let row = |(place, source): (usize, &Source)| {
        let url = source.url.as_deref()?.trim_end_matches('/');
        let name = url.rsplit('/').next().unwrap_or(url);
        let own = if sources.len() == revisions.len() { revisions.get(place).copied() } else { desired };
        Some(ReconciledRow {
            kind: source.kind.clone(),
            namespace: String::new(),
            name: name.strip_suffix(".git").unwrap_or(name).to_owned(),
            object: None,
            ready: ready.map(str::to_owned),
            message: error.clone().unwrap_or_default(),
            revision: own.map(str::to_owned),
            suspended: None,
            suspension: None,
        })
    };
    sources.iter().enumerate().filter_map(row).collect()
}

fn delivery(app: &App, home: Option<&dyn Objects>) -> Vec<ReconciledRow> {
    let revision = app.sync.applied.clone();
    if let (true, Some(objects), Some(key)) = (is_flux(app), home, &app.declaring) {
        return vec![flux_row(objects, key, Some(revision))];
    }
    let kind = match (app.app.delivery, &app.declaring) {
        (Delivery::Label | Delivery::Taffrail, _) => return Vec::new(),
        (_, Some(declaring)) => declaring.kind.clone(),
        (_, None) => "Release".to_owned(),
    };
    let ready = match app.sync.state {
        SyncState::Synced => Some("True"),
        SyncState::OutOfSync | SyncState::Failed => Some("False"),
        SyncState::Syncing | SyncState::Unknown => Some("Unknown"),
        SyncState::Suspended => None,
    };
    let message = match (app.sync.state, &app.sync.desired) {
        (SyncState::OutOfSync, desired @ Some(_)) if *desired == app.sync.applied => {
            let which = match argo::which(&app.unsynced) {
                which if which.is_empty() => "the objects in the cluster differ".to_owned(),
                which => format!("{which} {}", if app.unsynced.len() == 1 { "differs" } else { "differ" }),
            };
            format!("OutOfSync: the desired revision is applied, but {which}")
        }
        (SyncState::OutOfSync, Some(desired)) => format!("OutOfSync: the desired revision is {desired}"),
        _ => app.delivery_message.clone(),
    };
    vec![ReconciledRow {
        kind,
        namespace: app.app.namespace.clone(),
        name: app.declaring.as_ref().map_or(&app.app.name, |declaring| &declaring.name).clone(),
        object: app.declaring.clone(),
        ready: ready.map(str::to_owned),
        message,
        revision,
        suspended: (app.app.delivery == Delivery::ArgoApplication).then_some(app.suspended),
        suspension: Suspension::of(app, home),
    }]
}

/// Makes the row of a Flux object from its conditions. Its readiness is `False` if it does not exist, and `Unknown` if
/// it was not observed or has no condition Ready; left out for a HelmRepository of OCI charts without one.
///
/// For a delivery, `revision` is the revision to show, if known; for a source it is `None`, and the row shows the
/// revision of the source's artifact.
fn flux_row(objects: &dyn Objects, key: &ObjectKey, revision: Option<Option<String>>) -> ReconciledRow {
    let row = ReconciledRow {
        kind: key.kind.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        object: Some(key.clone()),
        ready: None,
        message: String::new(),
        revision: None,
        suspended: None,
        suspension: None,
    };
    let observed = match objects.get(key.as_ref()) {
        Presence::Present(observed) => observed,
        Presence::Absent => {
            let message = format!("{} {} not found", key.kind, key.path());
            return ReconciledRow { ready: Some("False".to_owned()), message, ..row };
        }
        Presence::Unobserved(why) => {
            let message = format!("{} {} was not observed: {why}", key.kind, key.path());
            return ReconciledRow { ready: Some("Unknown".to_owned()), message, ..row };
        }
    };
    let object = &observed.object;
    let text = |path: &[&str]| Some(object.text(path).into_owned()).filter(|text| !text.is_empty());
    let suspended = object.at(&["spec", "suspend"]).and_then(Value::as_bool).unwrap_or_default();
    let revision = revision.unwrap_or_else(|| text(&["status", "artifact", "revision"]));
    let suspension = suspended.then(|| Suspension::at(&observed, &["spec", "suspend"])).flatten();
    let row = ReconciledRow { revision, suspended: Some(suspended), suspension, ..row };
    let Some(ready) = object.condition("Ready") else {
        // A repository of OCI charts is never fetched as a whole, so it has no conditions.
        if key.kind == "HelmRepository" && object.text(&["spec", "type"]) == "oci" {
            let message = "an OCI registry: Flux fetches each chart on its own".to_owned();
            return ReconciledRow { message, ..row };
        }
        let message = "waiting to be reconciled".to_owned();
        return ReconciledRow { ready: Some("Unknown".to_owned()), message, ..row };
    };
    let says = |key| ready.get(key).and_then(Value::as_str).unwrap_or_default().into_owned();
    ReconciledRow { ready: Some(says("status")), message: says("message"), ..row }
}
