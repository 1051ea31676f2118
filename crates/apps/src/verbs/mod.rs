//! Plans for reconciling, suspending or resuming apps: the objects to patch, the patches, and the signs that
//! the tool has handled them.
//!
//! This module writes nothing. [`plan`] computes the patches, [`Step::progress`] reads from an object if the tool has
//! handled its patch, and [`settled`] reads from an app if it is ready. For a verb that a tool does not support,
//! [`plan`] returns a [`Refusal`] with a hint.

mod argo;
mod flux;
mod patch;
mod unsupported;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_object::{Object, ObjectKey, ObjectKeyRef, Projection};
use taffrail_status::{Presence, Status};

use crate::app::{App, AppList};
use crate::command::quoted;
use crate::delivery::writers;
use crate::find::{AppQuery, full_name};
use crate::identity::{AppKey, AppRef, Delivery};
use crate::objects::Objects;
use crate::sync::SyncState;
use crate::{delivery, identity};

pub use patch::{Change, DiffLine, Patch};

/// An operation on an app: reconcile, suspend or resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Verb {
    /// Requests that Flux reconcile the app now, or that Argo CD refresh or sync it.
    Reconcile(Reconcile),
    /// Makes the app's delivery tool apply no changes by itself: Flux no longer reconciles the app, Argo CD no longer
    /// syncs it automatically.
    Suspend,
    /// Ends a suspension, and requests that Flux reconcile the app or that Argo CD refresh it.
    Resume,
}

impl Verb {
    /// Returns the name of the command: `reconcile`, `suspend` or `resume`.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Reconcile(_) => "reconcile",
            Verb::Suspend => "suspend",
            Verb::Resume => "resume",
        }
    }
}

/// Options of a reconciliation; options that the app's tool does not support are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Reconcile {
    /// Flux: true to fetch the app's sources first.
    pub with_source: bool,
    /// Flux HelmRelease: true to install or upgrade even if nothing changed.
    pub force: bool,
    /// Flux HelmRelease: true to reset the count of failures.
    pub reset: bool,
    /// Argo CD: true to render the manifests again, without the cache.
    pub hard: bool,
    /// Argo CD: true to sync, even if automatic sync is off, in place of a refresh; with `hard` the app is refreshed as
    /// well.
    pub sync: bool,
}

impl Reconcile {
    /// Returns the name of the first option that is set although it is not in `known`; `None` if all are known.
    fn beyond(self, known: &[&str]) -> Option<&'static str> {
        let given = [
            (self.with_source, "--with-source"),
            (self.force, "--force"),
            (self.reset, "--reset"),
            (self.hard, "--hard"),
            (self.sync, "--sync"),
        ];
        given.iter().find(|(given, name)| *given && !known.contains(name)).map(|(_, name)| *name)
    }
}

/// The patches that a verb writes for one app, and the messages about them.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The steps in order: each begins once the tool has handled the one before.
    pub steps: Vec<Step>,
    /// Warnings for the user, such as that another tool may revert the change.
    pub warnings: Vec<String>,
    /// The reason why there is nothing to do; `None` if there are steps.
    pub nothing: Option<String>,
}

impl Plan {
    fn of(steps: Vec<Step>) -> Plan {
        Plan { steps, warnings: Vec::new(), nothing: None }
    }

    fn nothing(why: impl Into<String>) -> Plan {
        Plan { steps: Vec::new(), warnings: Vec::new(), nothing: Some(why.into()) }
    }
}

/// An object to patch, and the sign by which the patch counts as handled.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The object, in the app's home cluster.
    pub object: ObjectKey,
    /// The patch.
    pub patch: Patch,
    /// The patch to send instead if the server does not know a field of `patch`; `None` if there is none.
    pub alternative: Option<Patch>,
    until: StepSign,
}

/// The sign by which a step counts as handled by the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StepSign {
    /// The write itself: no sign is awaited.
    Written,
    /// Flux has copied this value of the annotation to the status.
    Flux(String),
    /// Argo CD has removed the request; with `syncs`, the sync has ended, too.
    Argo { syncs: bool },
}

/// The progress of a delivery tool with a step, or of an app towards readiness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Not done yet; holds the current state, for people.
    Waiting(String),
    /// The step is handled, or the app is ready.
    Done,
    /// Failed; holds the reason. The tool may still try again.
    Failed(String),
}

impl Step {
    /// Returns `Done` if the object in `home` shows that the delivery tool has handled this step, `Failed` if that
    /// failed or the object was deleted, otherwise `Waiting` with a message.
    ///
    /// `version` is the resource version of the object after the patch; an Application with an older one is `Waiting`.
    /// A step that only writes a field is `Done` as soon as the object is read.
    pub fn progress(&self, home: &dyn Objects, version: &str) -> Progress {
        let ObjectKey { kind, .. } = &self.object;
        let name = format!("{kind} {}", self.object.path());
        let observed = match home.get(self.object.as_ref()) {
            Presence::Present(observed) => observed,
            Presence::Absent => return Progress::Failed(format!("{name} was deleted")),
            Presence::Unobserved(why) => return Progress::Waiting(format!("{name} cannot be read: {why}")),
        };
        match &self.until {
            StepSign::Written => Progress::Done,
            StepSign::Flux(requested) => flux::progress(&observed.object, &name, requested),
            StepSign::Argo { .. } if !is_as_new(&observed.object, version) => {
                Progress::Waiting(format!("no newer version of {name} was read since the change"))
            }
            StepSign::Argo { syncs } => argo::progress(&observed.object, &name, *syncs),
        }
    }
}

/// Returns true if an object is not older than the resource version `version`, which Taffrail's write created. Versions
/// that are not numbers must be equal.
fn is_as_new(object: &Object<'_>, version: &str) -> bool {
    let own = object.text(&["metadata", "resourceVersion"]);
    match (own.parse::<u64>(), version.parse::<u64>()) {
        (Ok(own), Ok(written)) => own >= written,
        _ => *own == *version,
    }
}

/// The reason why a verb cannot be applied to an app: its tool does not support it, or its state does not allow it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The message: why the verb cannot be applied to the app, or to its source.
    pub message: String,
    /// The next step for the user, with commands between backticks, or the reason why nothing was changed.
    pub hint: String,
}

impl Refusal {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Refusal {
        Refusal { message: message.into(), hint: hint.into() }
    }
}

/// The deliveries of Flux and Argo CD, which take requests to reconcile, suspend and resume an app.
pub const TAKE_REQUESTS: [Delivery; 3] =
    [Delivery::FluxKustomization, Delivery::FluxHelmRelease, Delivery::ArgoApplication];

/// Returns true for a delivery of [`TAKE_REQUESTS`].
pub fn takes_requests(delivery: Delivery) -> bool {
    TAKE_REQUESTS.contains(&delivery)
}

/// Plans the patches that apply `verb` to `app`, which is an app of `list`; `home` is the cluster of its declaring
/// object.
///
/// # Errors
/// When the tool does not support the verb, or the state of the object does not allow it.
pub fn plan(
    app: &App,
    verb: Verb,
    home: &dyn Objects,
    list: &AppList,
    now: Timestamp,
) -> Result<Plan, Refusal> {
    let known: &[&str] = match app.app.delivery {
        Delivery::FluxKustomization => &["--with-source"],
        Delivery::FluxHelmRelease => &["--with-source", "--force", "--reset"],
        Delivery::ArgoApplication => &["--hard", "--sync"],
        _ => &[],
    };
    let declaring = app.declaring.as_ref().filter(|_| takes_requests(app.app.delivery));
    let Some(declaring) = declaring else { return Err(unsupported::refusal(app, verb)) };
    if let Verb::Reconcile(how) = verb
        && let Some(option) = how.beyond(known)
    {
        let hint = format!(
            "for an app of {}, use only these options of taffrail reconcile: {}",
            app.app.delivery,
            known.join(", ")
        );
        return Err(Refusal::new(format!("{option} does not apply to {}", app.app), hint));
    }
    let unread = |why: &str| {
        let message = format!("{} {} cannot be read: {why}", declaring.kind, declaring.path());
        Refusal::new(message, "nothing was changed, because the present state of the object is not known")
    };
    let observed = match home.get(declaring.as_ref()) {
        Presence::Present(observed) if observed.projection == Projection::Full => observed,
        Presence::Present(_) => return Err(unread("only its metadata was read")),
        Presence::Absent => return Err(unread("it no longer exists")),
        Presence::Unobserved(why) => return Err(unread(&why)),
    };
    let requested = now.to_string();
    let mut plan = match app.app.delivery {
        Delivery::ArgoApplication => argo::plan(app, verb, &observed)?,
        _ => flux::plan(app, verb, home, &observed, &requested)?,
    };
    if !matches!(verb, Verb::Reconcile(_)) {
        for step in &mut plan.steps {
            // What another client has changed since it was read is not overwritten.
            step.patch = step.patch.clone().based_on(&observed.object);
        }
        for step in &plan.steps {
            let fields = step
                .patch
                .changes()
                .iter()
                .filter(|change| change.path.first().is_some_and(|key| key == "spec"));
            let fields: Vec<&[String]> = fields.map(|change| change.path.as_slice()).collect();
            plan.warnings.extend(undoing(app, &observed.object, &fields, list));
        }
    }
    Ok(plan)
}

/// Returns a warning if a write to `fields` of `object`, the declaring object of `app`, may be reverted: by the
/// ApplicationSet that made the object, or by another app, not suspended, that declares it; else `None`.
fn undoing(app: &App, object: &Object<'_>, fields: &[&[String]], list: &AppList) -> Option<String> {
    let field = fields.first()?;
    let path = field.join(".");
    let name = format!("{} {}", object.kind(), app.declaring.as_ref()?.path());
    if let Some(set) = identity::application_set(object) {
        let pointer: Vec<&str> = field.iter().take(2).map(String::as_str).collect();
        return Some(format!(
            "ApplicationSet {}/{set} makes {name}: when it reconciles next, it sets {path} to what its template says. \
             Change spec.template.{path} of the ApplicationSet instead, or keep it from writing the field: add \
             /{} to the jsonPointers in its spec.ignoreApplicationDifferences",
            object.namespace(),
            pointer.join("/")
        ));
    }
    let declares = |other: &&App| {
        other.app != app.app
            && other.in_reach
            && !other.suspended
            && other.app.target == app.app.home
            // Any author can list it.
            && other.resources.iter().any(|resource| {
                Some(&*resource.key) == app.declaring.as_ref() && !resource.unconfirmed
            })
    };
    let parent = list.apps.iter().find(declares)?;
    let field: Vec<&str> = field.iter().map(String::as_str).collect();
    let applied = writers(object, &field).into_iter().find(|writer| writer.applies);
    Some(match applied {
        Some(writer) => format!(
            "{} will revert the change: it declares {name}, and its field manager {} sets {path}",
            parent.app, writer.manager
        ),
        None => {
            format!("{} declares {name}, and will revert the change if its source sets {path}", parent.app)
        }
    })
}

/// Returns the last writer of the field at `path` and the time, as far as known: ` by kubectl-edit since
/// 2026-03-01T12:00:00Z`. Empty if managed fields do not tell the writer.
fn by_whom(object: &Object<'_>, path: &[&str]) -> String {
    let Some(writer) = writers(object, path).into_iter().next() else { return String::new() };
    let since = writer.at.map(|at| format!(" since {at}")).unwrap_or_default();
    format!(" by {}{since}", writer.manager)
}

/// Returns `Done` if an app is Ready now and is not being synced, `Failed` with a message if its sync or health has
/// failed, otherwise `Waiting` with its state, also while its home cluster is not live.
pub fn settled(app: &App) -> Progress {
    if !app.home_freshness.is_live() {
        let predicate = app.home_freshness.state.predicate();
        return Progress::Waiting(format!("the home cluster {} of the app {predicate}", app.app.home));
    }
    match (app.effective(), app.sync.state) {
        (_, SyncState::Failed) => Progress::Failed(app.delivery_message.clone()),
        (Status::Failed, _) => Progress::Failed(app.message.to_string()),
        (Status::Current, SyncState::Syncing) => Progress::Waiting("the app is being synced".to_owned()),
        (Status::Current, _) => Progress::Done,
        (status, _) if app.message.is_empty() => Progress::Waiting(format!("the app is {}", status.word())),
        (status, _) => Progress::Waiting(format!("the app is {}: {}", status.word(), app.message)),
    }
}

/// Returns the sources of the Flux apps that match any of `names`, or of all Flux apps if `names` is empty. A source is
/// repeated for each app that names it; objects that are not Flux sources are left out.
pub fn sources(objects: &dyn Objects, names: &[AppQuery]) -> Vec<ObjectKey> {
    let kinds = [
        (delivery::flux::KUSTOMIZE, "Kustomization", Delivery::FluxKustomization),
        (delivery::flux::HELM, "HelmRelease", Delivery::FluxHelmRelease),
    ];
    let mut found = Vec::new();
    for (group, kind, delivery) in kinds {
        for observed in objects.of_kind(group, kind, None) {
            let ObjectKeyRef { namespace, name, .. } = observed.key;
            let key = AppKey::of(delivery, namespace, name, Some(&observed.object));
            if names.is_empty() || names.iter().any(|query| query.means(&key, delivery, namespace, name)) {
                let sources = delivery::flux::sources(objects, &observed);
                found.extend(sources.into_iter().filter(delivery::flux::is_source));
            }
        }
    }
    found
}

/// Returns the command `taffrail WORDS APP` with the full name of an app and the backticks around it, for a hint.
fn command(words: &str, app: &AppRef) -> String {
    format!("`taffrail {words} {}`", quoted(&full_name(app)))
}

/// Returns the value at a path of keys as a JSON tree; `None` if it is missing, null or nested too deeply.
fn tree(object: &Object<'_>, path: &[&str]) -> Option<serde_json::Value> {
    object.at(path).filter(|value| !value.is_null()).and_then(|value| value.to_tree().ok())
}
