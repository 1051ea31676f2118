//! What it means to reconcile, suspend or resume an app: which objects to patch, how, and how to tell that the tool has
//! taken note.
//!
//! Nothing is done here. [`plan`] says what to write, [`Step::progress`] reads from the objects how far the tool is, and
//! [`settled`] whether the app has arrived. What a tool cannot do is a [`Refusal`], which says what to do instead.

mod argo;
mod flux;
mod patch;
mod without;

use jiff::Timestamp;
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, Projection};
use taffrail_status::{Presence, Status};

use crate::apps::{App, AppList};
use crate::find::{AppQuery, full_name};
use crate::identity::{AppKey, AppRef, Delivery};
use crate::objects::Objects;
use crate::sync::SyncState;
use crate::view::quoted;
use crate::{delivery, identity};

pub use patch::{Change, Line, Patch};

/// What shall be done with an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Its tool shall look at it now.
    Reconcile(Reconcile),
    /// Its tool shall leave it alone.
    Suspend,
    /// Its tool shall take care of it again.
    Resume,
}

impl Verb {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Reconcile(_) => "reconcile",
            Verb::Suspend => "suspend",
            Verb::Resume => "resume",
        }
    }
}

/// How a reconciliation is meant; what a tool does not know is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reconcile {
    /// Flux: first what it is made from.
    pub with_source: bool,
    /// Flux HelmRelease: install or upgrade even if nothing changed.
    pub force: bool,
    /// Flux HelmRelease: forget the failures so far.
    pub reset: bool,
    /// Argo CD: render the manifests anew too.
    pub hard: bool,
    /// Argo CD: sync, also where nobody syncs by himself.
    pub sync: bool,
}

impl Reconcile {
    /// The first of the options given that are none of `known`.
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

/// What is to be written, and what to say of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// One after the other: each waits until the tool has handled the one before.
    pub steps: Vec<Step>,
    /// What people should know besides: who may undo it.
    pub warnings: Vec<String>,
    /// Why there is nothing to do, where there are no steps.
    pub nothing: Option<String>,
}

impl Plan {
    /// Returns the sources of other namespaces than that of `app` that are patched: apps of others may come from them too.
    pub fn sources_elsewhere<'p>(&'p self, app: &'p AppRef) -> impl Iterator<Item = &'p ObjectKey> {
        self.steps.iter().map(|step| &step.object).filter(|key| key.namespace != app.namespace)
    }

    fn of(steps: Vec<Step>) -> Plan {
        Plan { steps, warnings: Vec::new(), nothing: None }
    }

    fn nothing(why: impl Into<String>) -> Plan {
        Plan { steps: Vec::new(), warnings: Vec::new(), nothing: Some(why.into()) }
    }
}

/// One object to patch.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Which, in the app's home.
    pub object: ObjectKey,
    /// What to change of it.
    pub patch: Patch,
    /// What to change instead where the kind has no such field.
    pub otherwise: Option<Patch>,
    until: Until,
}

/// How it is seen that the tool has taken note.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Until {
    /// There is nothing to see.
    Written,
    /// Flux repeats what was requested.
    Flux(String),
    /// Argo CD takes the request away; whether that is one for a sync.
    Argo { syncs: bool },
}

/// How far something is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Not yet; for what it waits, for people.
    Waiting(String),
    /// There.
    Done,
    /// It will not get there by itself; why.
    Failed(String),
}

impl Step {
    /// How far the tool is, by what `home` holds now; `version` is the resource version that the patch made.
    pub fn progress(&self, home: &dyn Objects, version: &str) -> Progress {
        let ObjectKey { kind, .. } = &self.object;
        let name = format!("{kind} {}", self.object.path());
        let observed = match home.get(self.object.as_ref()) {
            Presence::Present(observed) => observed,
            Presence::Absent => return Progress::Failed(format!("{name} was deleted")),
            Presence::Unobserved(why) => return Progress::Waiting(format!("{name}: {why}")),
        };
        match &self.until {
            Until::Written => Progress::Done,
            Until::Flux(requested) => flux::progress(&observed.object, &name, requested),
            Until::Argo { .. } if !is_as_new(&observed.object, version) => {
                Progress::Waiting(format!("nothing has been heard of {name} since"))
            }
            Until::Argo { syncs } => argo::progress(&observed.object, &name, *syncs),
        }
    }
}

/// Whether an object is as new as what was written, so that what is not there was taken away.
fn is_as_new(object: &Object<'_>, version: &str) -> bool {
    let own = object.text(&["metadata", "resourceVersion"]);
    match (own.parse::<u64>(), version.parse::<u64>()) {
        (Ok(own), Ok(written)) => own >= written,
        _ => *own == *version,
    }
}

/// A verb that means nothing to the tool of an app.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Why.
    pub message: String,
    /// What to do instead.
    pub hint: String,
}

impl Refusal {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Refusal {
        Refusal { message: message.into(), hint: hint.into() }
    }
}

/// What is to be written so that `verb` happens to `app`, which is one of `list`; `home` is the cluster of the object
/// that declares it.
///
/// # Errors
/// When the tool has no such thing, or the object is in no state for it.
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
    let declaring = match app.app.delivery {
        Delivery::FluxKustomization | Delivery::FluxHelmRelease | Delivery::ArgoApplication => {
            app.declaring.as_ref()
        }
        _ => None,
    };
    let Some(declaring) = declaring else { return Err(without::refusal(app, verb)) };
    if let Verb::Reconcile(how) = verb
        && let Some(option) = how.beyond(known)
    {
        let hint = format!("of {} there is {}", app.app.delivery, known.join(", "));
        return Err(Refusal::new(format!("{option} means nothing to {}", app.app), hint));
    }
    let unread = |why: &str| {
        let message = format!("{} {} cannot be read: {why}", declaring.kind, declaring.path());
        Refusal::new(message, "without knowing it nothing is changed")
    };
    let observed = match home.get(declaring.as_ref()) {
        Presence::Present(observed) if observed.projection == Projection::Full => observed,
        Presence::Present(_) => return Err(unread("only its metadata is known")),
        Presence::Absent => return Err(unread("it is not there any more")),
        Presence::Unobserved(why) => return Err(unread(&why)),
    };
    let requested = now.to_string();
    let mut plan = match app.app.delivery {
        Delivery::ArgoApplication => argo::plan(app, verb, &observed)?,
        _ => flux::plan(app, verb, home, &observed, &requested)?,
    };
    if !matches!(verb, Verb::Reconcile(_)) {
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

/// Who may set back what was written to `fields` of the object that declares `app`.
fn undoing(app: &App, object: &Object<'_>, fields: &[&[String]], list: &AppList) -> Option<String> {
    let field = fields.first()?;
    let path = field.join(".");
    let name = format!("{} {}", object.kind(), app.declaring.as_ref()?.path());
    if let Some(set) = identity::application_set(object) {
        return Some(format!(
            "ApplicationSet {}/{set} makes {name} and will set {path} back, unless its \
             spec.ignoreApplicationDifferences leaves it alone",
            object.namespace()
        ));
    }
    let declares = |other: &&App| {
        other.app != app.app
            && other.in_reach
            && !other.suspended
            && other.app.target == app.app.home
            // Anybody may list it.
            && other.resources.iter().any(|resource| {
                Some(&resource.key) == app.declaring.as_ref() && !resource.unconfirmed
            })
    };
    let parent = list.apps.iter().find(declares)?;
    let applied = writers(object, field).into_iter().find(|writer| writer.applies);
    Some(match applied {
        Some(writer) => format!(
            "{} declares {name} and its source says what {path} is ({} applies it): it will be set back",
            parent.app, writer.manager
        ),
        None => format!(
            "{} declares {name}: where its source says what {path} is, it will be set back",
            parent.app
        ),
    })
}

/// Who wrote a field, by the API server's notes.
struct Writer {
    manager: String,
    /// By server-side apply: whoever does goes on doing so.
    applies: bool,
    at: Option<Timestamp>,
}

/// Who wrote a field, the last first.
fn writers(object: &Object<'_>, path: &[String]) -> Vec<Writer> {
    let fields: Vec<String> = path.iter().map(|key| format!("f:{key}")).collect();
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let entries = object.at(&["metadata", "managedFields"]).and_then(Value::items).into_iter().flatten();
    let wrote = entries.filter(|entry| entry.get("fieldsV1").and_then(|it| it.at(&fields)).is_some());
    let mut writers: Vec<Writer> = wrote
        .map(|entry| Writer {
            manager: entry.get("manager").and_then(Value::as_str).unwrap_or_default().into_owned(),
            applies: entry.get("operation").is_some_and(|it| it.is_str("Apply")),
            at: delivery::time(entry.get("time")),
        })
        .collect();
    writers.sort_by_key(|writer| std::cmp::Reverse(writer.at));
    writers
}

/// ` by kubectl-edit since 2026-03-01T12:00:00Z`, as far as it is known.
fn by_whom(object: &Object<'_>, path: &[&str]) -> String {
    let path: Vec<String> = path.iter().map(|key| (*key).to_owned()).collect();
    let Some(writer) = writers(object, &path).into_iter().next() else { return String::new() };
    let since = writer.at.map(|at| format!(" since {at}")).unwrap_or_default();
    format!(" by {}{since}", writer.manager)
}

/// Whether an app has arrived, after its tool has handled what was asked.
pub fn settled(app: &App) -> Progress {
    if !app.home_freshness.is_live() {
        let predicate = app.home_freshness.state.predicate();
        return Progress::Waiting(format!("its home cluster {} {predicate}", app.app.home));
    }
    match (app.effective(), app.sync.state) {
        (_, SyncState::Failed) => Progress::Failed(app.said.clone()),
        (Status::Failed, _) => Progress::Failed(app.message.to_string()),
        (Status::Current, SyncState::Syncing) => Progress::Waiting("it is being synced".to_owned()),
        (Status::Current, _) => Progress::Done,
        (status, _) if app.message.is_empty() => Progress::Waiting(format!("it is {}", status.word())),
        (status, _) => Progress::Waiting(format!("it is {}: {}", status.word(), app.message)),
    }
}

/// The objects from which the Flux apps that one of `names` may mean take what they apply, as far as `objects` tell;
/// with no names, of all.
pub fn sources(objects: &dyn Objects, names: &[AppQuery]) -> Vec<ObjectKey> {
    let kinds = [
        (delivery::flux::KUSTOMIZE, "Kustomization", Delivery::FluxKustomization),
        (delivery::flux::HELM, "HelmRelease", Delivery::FluxHelmRelease),
    ];
    let mut found = Vec::new();
    for (group, kind, delivery) in kinds {
        for observed in objects.of_kind(group, kind, None) {
            let ObjectKey { namespace, name, .. } = observed.key;
            let key = AppKey::of(delivery, namespace, name, Some(&observed.object));
            if names.is_empty() || names.iter().any(|query| query.means(&key, delivery, namespace, name)) {
                let sources = delivery::flux::sources(objects, &observed);
                found.extend(sources.into_iter().filter(delivery::flux::is_source));
            }
        }
    }
    found
}

/// The command that does `verb` to an app.
fn command(verb: &str, app: &AppRef) -> String {
    format!("taffrail {verb} {}", quoted(&full_name(app)))
}

/// The value at a path of an object, as a tree; too deep is as if it were not there.
fn tree(object: &Object<'_>, path: &[&str]) -> Option<serde_json::Value> {
    object.at(path).filter(|value| !value.is_null()).and_then(|value| value.to_tree().ok())
}
