//! Apps of Argo CD, declared by an `Application`.

pub(super) mod homes;
pub(crate) mod installs;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef, Projection, is_own_server, names};
use taffrail_status::{Observed, Presence, Status, cut};

use super::declared::{Declared, Declaring};
use super::destination::{Addresses, Target};
use super::notes::Notes;
use super::{
    AppliedRevision, Declaration, Destination, declared_objects, entries, is_blank, late, one_after_another,
    text, time, written,
};
use crate::agreement::{Claimant, INSTANCE_LABEL, Mark};
use crate::declaration::SaidHealth;
use crate::fleet::Fleet;
use crate::identity::{AppKey, Delivery};
use crate::noting::elapsed;
use crate::objects::Objects;
use crate::problem::{self, Axis, MAX_UNTRIED_TIME, Problem, ProblemSeverity};
use crate::sync::{ObjectSync, ObjectSyncState, Source, Sync, SyncState, shorten};
use crate::text::listed;
use homes::{Homes, instance_label};

pub(crate) const GROUP: &str = "argoproj.io";

/// The age of Argo CD's last comparison of an Application from which what it says of the app does not count. By default
/// Argo CD compares every two to three minutes.
pub(crate) const MAX_COMPARISON_AGE: SignedDuration = SignedDuration::from_mins(30);

/// The time by which a comparison may be in the future.
const MAX_CLOCK_LEAD: SignedDuration = SignedDuration::from_mins(5);

/// The name of the cluster in which Argo CD runs, unless a Secret gives it another one.
const IN_CLUSTER_NAME: &str = "in-cluster";

/// The annotation by which Argo CD skips an Application, if its value is `true`.
pub(crate) const SKIP: &str = "argocd.argoproj.io/skip-reconcile";

/// The annotation in which `taffrail suspend` keeps the policy for automated sync, for versions of Argo CD without
/// `spec.syncPolicy.automated.enabled`.
pub(crate) const SUSPENDED: &str = "taffrail.dev/suspended-automated";

/// Returns true if an Application's policy for automated sync says `enabled: false`, or if it has no policy but a
/// non-empty annotation [`SUSPENDED`]. Argo CD still compares the Application.
fn is_held(object: &Object<'_>) -> bool {
    match object.at(&["spec", "syncPolicy", "automated"]).filter(|policy| !policy.is_null()) {
        Some(policy) => policy.get("enabled").and_then(Value::as_bool) == Some(false),
        None => !object.text(&["metadata", "annotations", SUSPENDED]).is_empty(),
    }
}

/// Returns true if an Application is suspended: the annotation [`SKIP`] makes Argo CD skip it, or its policy for
/// automated sync is switched off. An Application that merely has no such policy is not suspended.
pub(crate) fn is_kept_off(object: &Object<'_>) -> bool {
    object.text(&["metadata", "annotations", SKIP]) == "true" || is_held(object)
}

/// The maximum number of controller namespaces that count of those that the Applications of one namespace name: those
/// named most often. So one tenant cannot use up the limit of all.
const MAX_CONTROLLERS_PER_NAMESPACE: usize = 2;

/// The maximum number of controller namespaces that are read in a cluster; those named from the most namespaces come
/// first, and the others are not read.
const MAX_CONTROLLERS: usize = 200;

/// Returns the namespace of the Argo CD controller that an Application's status names; `None` if it names none, the
/// Application's own namespace, or a text that cannot be the name of a namespace.
///
/// Any author who may write the Application can write that field.
pub(crate) fn controller(object: &Object<'_>) -> Option<String> {
    let controller = object.text(&["status", "controllerNamespace"]);
    let is_label = (1..=63).contains(&controller.len())
        && controller.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    (is_label && controller != object.namespace()).then(|| controller.into_owned())
}

/// Returns the keys of the ConfigMaps of Argo CD that may exist in a cluster and were not read whole: `argocd-cm` in
/// the searched namespaces with Applications, and `argocd-cm` and `argocd-cmd-params-cm` in the controller namespaces
/// that [`looked_at`] chooses. `controllers` counts, for each namespace, how often its Applications name each
/// controller namespace.
pub(super) fn unread(
    objects: &dyn Objects,
    homes: &Homes,
    controllers: BTreeMap<String, BTreeMap<String, usize>>,
) -> Vec<ObjectKey> {
    let map = |namespace: &str, name| ObjectKey::new("", "ConfigMap", namespace, name);
    let mut maps: BTreeSet<ObjectKey> =
        homes.all.looked_into.iter().map(|namespace| map(namespace, installs::SETTINGS)).collect();
    for namespace in looked_at(controllers) {
        maps.extend([installs::SETTINGS, installs::PARAMETERS].map(|name| map(&namespace, name)));
    }
    // A list of metadata does not show the settings.
    let is_unread = |key: &ObjectKey| match objects.get(key.as_ref()) {
        Presence::Present(observed) => observed.projection != Projection::Full,
        Presence::Absent => false,
        Presence::Unobserved(_) => true,
    };
    maps.into_iter().filter(is_unread).collect()
}

/// Returns at most [`MAX_CONTROLLERS`] controller namespaces to read, those first that most namespaces name. `named`
/// has, for each namespace, the controller namespaces that its Applications name, and how often; only the
/// [`MAX_CONTROLLERS_PER_NAMESPACE`] named most often count.
fn looked_at(named: BTreeMap<String, BTreeMap<String, usize>>) -> Vec<String> {
    let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
    for controllers in named.into_values() {
        let mut controllers: Vec<(String, usize)> = controllers.into_iter().collect();
        controllers.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        for (controller, _) in controllers.into_iter().take(MAX_CONTROLLERS_PER_NAMESPACE) {
            *wanted.entry(controller).or_default() += 1;
        }
    }
    let mut wanted: Vec<(String, usize)> = wanted.into_iter().collect();
    wanted.sort_by_key(|(_, namespaces)| std::cmp::Reverse(*namespaces));
    wanted.into_iter().take(MAX_CONTROLLERS).map(|(namespace, _)| namespace).collect()
}

/// Returns the app that an Application declares, and the cluster that it names as its target. The app's objects are
/// those that the status of the Application lists, except hooks. `notes` gets the malformed entries, and the namespace
/// of the controller that the Application names.
pub(super) fn declare(declaring: &Declaring<'_, '_>, notes: &mut Notes) -> Declared {
    let Declaring { home, objects, observed, addresses, homes, .. } = *declaring;
    let (key, object) = (observed.key, &observed.object);
    notes.controller = controller(object);
    let is_skipped = object.text(&["metadata", "annotations", SKIP]) == "true";
    let (sync, trouble) = sync(object, is_skipped);
    let message = match (sync.state, &sync.desired, &sync.applied) {
        (SyncState::Synced, Some(revision), _) | (_, _, Some(revision)) => {
            format!("Synced to {}", shorten(revision))
        }
        _ => text(object.root(), &["status", "operationState", "message"]).unwrap_or_default(),
    };
    // Objects of hooks come and go; objects that wait for pruning still exist.
    let managed =
        |(_, resource): &(usize, Value<'_>)| resource.get("hook").and_then(Value::as_bool) != Some(true);
    let target = target(objects, home, object, homes, addresses);
    let claimant = Claimant { hooks: hooks(object).into(), ..claimant(home, key, object, homes) };
    let resources = entries(object.at(&["status", "resources"]), home, key, notes).enumerate();
    let app = Declaration {
        home,
        destination: Destination::Cluster(home),
        delivery: Delivery::ArgoApplication,
        namespace: key.namespace.to_owned(),
        name: key.name.to_owned(),
        key: AppKey::of(Delivery::ArgoApplication, key.namespace, key.name, Some(object)),
        declaring: Some(key.to_owned()),
        never_reconciled: object.at(&["status"]).is_none_or(is_blank),
        objects: declared_objects(resources.filter(managed), home, key, notes).into(),
        unreadable: None,
        sync,
        suspended: is_kept_off(object),
        message,
        trouble,
        source: source(object),
        delivered_by: None,
        checks: Vec::new(),
        claimant,
    };
    Declared { app, target, release: None }
}

/// Returns the claimant (author and marks) for the objects that an Application manages.
///
/// If an Argo CD is installed in the Application's namespace and the Application names no other controller, the bare
/// name is a mark as well, and the tracking label is that of this Argo CD; else marks have the namespace of the
/// Application, and the label is [`INSTANCE_LABEL`].
fn claimant(home: usize, key: ObjectKeyRef<'_>, object: &Object<'_>, homes: &Homes) -> Claimant {
    let beside = homes.namespaces.get(key.namespace).filter(|_| controller(object).is_none());
    let label = beside.map_or(INSTANCE_LABEL, String::as_str);
    let marks = Mark::of_application(key.namespace, key.name, beside.is_none(), label);
    Claimant::in_namespace(home, key.namespace, marks)
}

/// Returns the marks of the objects of an Application, if an Argo CD is in its namespace where the settings of one are.
pub(crate) fn claims_of(objects: &dyn Objects, key: ObjectKeyRef<'_>, object: &Object<'_>) -> Vec<Mark> {
    let settings = ObjectKey::new("", "ConfigMap", key.namespace, installs::SETTINGS);
    let is_beside = matches!(objects.get(settings.as_ref()), Presence::Present(_));
    let beside = (key.namespace.to_owned(), instance_label(objects, key.namespace));
    let namespaces = is_beside.then_some(beside).into_iter().collect();
    claimant(0, key, object, &Homes { namespaces, all: installs::Namespaces::default() }).marks
}

/// Returns true if an Application delivers to the cluster that it is in.
pub(crate) fn is_in_cluster(object: &Object<'_>) -> bool {
    let [server, name] = ["server", "name"].map(|field| object.text(&["spec", "destination", field]));
    is_own_server(&server) || server.is_empty() && name == IN_CLUSTER_NAME
}

/// Returns the Applications that an object's marks name to the Argo CD in the namespace `argo`: the namespace of each
/// (`argo` if the mark has none), and its name, which is `None` if a label holds only the start of it. Names that no
/// Application can have are left out. The Applications must be read before [`argo_delivers`] can answer.
pub fn argo_names(objects: &dyn Objects, argo: &str, object: &Object<'_>) -> Vec<(String, Option<String>)> {
    let label = instance_label(objects, argo);
    let marks = Mark::all(ObjectKey::of(object).as_ref(), object, &[&label]);
    let named = marks
        .iter()
        .filter_map(Mark::application)
        .map(|(namespace, name)| (namespace.unwrap_or(argo).to_owned(), name.map(str::to_owned)));
    let can_be = |(namespace, name): &(String, Option<String>)| {
        let name = name.as_deref().unwrap_or("any");
        names::check(&ObjectKey::new(GROUP, "Application", &**namespace, name)).is_ok()
    };
    named.filter(can_be).collect()
}

/// Returns true if the Argo CD in the namespace `argo` delivers this object in its own cluster: an Application that it
/// serves, and that targets this cluster, lists the object, which carries the mark of that Application.
pub fn argo_delivers(objects: &dyn Objects, argo: &str, object: &Object<'_>) -> bool {
    let key = ObjectKey::of(object);
    let label = instance_label(objects, argo);
    let marks = Mark::all(key.as_ref(), object, &[&label]);
    let fleet = Fleet::new(&[objects]);
    let namespaces = BTreeMap::from([(argo.to_owned(), label.clone())]);
    let homes = Homes { namespaces, all: installs::Namespaces::default() };
    objects.of_kind(GROUP, "Application", None).any(|observed| {
        let ObjectKeyRef { namespace, name, .. } = observed.key;
        let application = &observed.object;
        let is_elsewhere = namespace != argo;
        let own = Mark::of_application(namespace, name, is_elsewhere, &label);
        own.iter().any(|mark| marks.contains(mark))
            && controller(application).is_none_or(|controller| is_elsewhere && controller == argo)
            && (!is_elsewhere || installs::serves(objects, argo, namespace))
            && lists(application, &key)
            && fleet.find(0, target(objects, 0, application, &homes, &fleet.addresses))
                == Destination::Cluster(0)
    })
}

/// Returns true if the status of an Application lists an object of this group, kind, namespace and name, hooks
/// included; a field that is missing there counts as empty.
fn lists(application: &Object<'_>, key: &ObjectKey) -> bool {
    let mut resources = application.at(&["status", "resources"]).and_then(Value::items).into_iter().flatten();
    resources.any(|resource| {
        let is = |field: &str, word: &str| match resource.get(field) {
            Some(value) => value.is_str(word),
            None => word.is_empty(),
        };
        is("group", &key.group)
            && is("kind", &key.kind)
            && is("namespace", &key.namespace)
            && is("name", &key.name)
    })
}

/// The maximum number of hooks of an operation that are read; those after them are ignored.
const MAX_HOOKS: usize = 200;

/// Returns the first [`MAX_HOOKS`] hooks that the last operation of an Application lists, without those whose keys the
/// API server would not accept.
fn hooks(object: &Object<'_>) -> Vec<ObjectKey> {
    let results = object.at(&["status", "operationState", "syncResult", "resources"]);
    let listed = results.and_then(Value::items).into_iter().flatten();
    let hook = |result: Value<'_>| {
        let field = |name| text(result, &[name]).unwrap_or_default();
        let key = ObjectKey::new(field("group"), field("kind"), field("namespace"), field("name"));
        (!field("hookType").is_empty() && names::check(&key).is_ok()).then_some(key)
    };
    listed.filter_map(hook).take(MAX_HOOKS).collect()
}

/// Returns the cluster that an Application names as its target, by server address or else by name: its own for
/// `in-cluster`; an unknown target if it names neither, or a name that no cluster Secret beside its controller has. If
/// it names no controller, Secrets in its own namespace count first, then those beside each installed Argo CD.
fn target(
    objects: &dyn Objects,
    home: usize,
    object: &Object<'_>,
    homes: &Homes,
    addresses: &Addresses,
) -> Target {
    let field = |name| text(object.root(), &["spec", "destination", name]);
    if let Some(server) = field("server") {
        return Target::at(&server);
    }
    match field("name") {
        None => Target::unknown("an unnamed cluster"),
        Some(name) if name == IN_CLUSTER_NAME => Target::Home,
        Some(name) => {
            let (controller, own) = (controller(object), object.namespace());
            // An Application that names its controller is served by that alone.
            let places: Vec<&str> = match &controller {
                Some(controller) => vec![controller],
                None => [&*own].into_iter().chain(homes.namespaces.keys().map(String::as_str)).collect(),
            };
            addresses.of_argo_cluster(objects, home, &name, &places)
        }
    }
}

/// Returns the revision in `value`, a part of an Application's status; several revisions are joined by commas.
/// `None` if there is none.
pub(super) fn revisions(value: Option<Value<'_>>) -> Option<String> {
    let value = value?;
    let several = value.get("revisions").and_then(Value::items).into_iter().flatten();
    let several: Vec<_> = several.filter_map(Value::as_str).collect();
    if several.is_empty() { text(value, &["revision"]) } else { Some(several.join(",")) }
}

/// Returns the types of an Application's sources (`Helm`, `Kustomize`, …), joined by commas, equal neighbours once;
/// `None` if it states none.
pub(crate) fn source_types(object: &Object<'_>) -> Option<String> {
    if let Some(only) = text(object.root(), &["status", "sourceType"]) {
        return Some(only);
    }
    let several = object.at(&["status", "sourceTypes"]).and_then(Value::items)?;
    let mut types: Vec<_> = several.filter_map(Value::as_str).filter(|it| !it.is_empty()).collect();
    types.dedup();
    (!types.is_empty()).then(|| types.join(","))
}

/// The openings of the messages by which Argo CD says that it cannot fetch a source or make manifests from it
/// (`controller/state.go`, `util/argo/argo.go`). Others are about the target cluster or the Application itself.
const OF_SOURCE: [&str; 2] = ["Failed to load target state: ", "repository not accessible: "];

/// Returns Argo CD's message that it cannot fetch a source of an Application or make manifests from it, if that is why
/// it cannot compare the Application; else `None`.
pub(crate) fn source_error(object: &Object<'_>) -> Option<String> {
    let message = condition(object, &INCOMPARABLE)?;
    OF_SOURCE.iter().any(|opening| message.starts_with(opening)).then_some(message)
}

/// Returns the sync state of an Application, Suspended if `is_skipped`: Argo CD ignores it. The text is Argo CD's
/// message that it failed, has given up or cannot compare, perhaps empty; `None` for a failed operation without a
/// message, and for other states.
fn sync(object: &Object<'_>, is_skipped: bool) -> (Sync, Option<String>) {
    let compared = object.at(&["status", "sync"]);
    let operation = object.at(&["status", "operationState"]);
    let desired = revisions(compared);
    let asked = operation.and_then(|operation| operation.at(&["operation", "sync"]));
    let attempted =
        revisions(operation.and_then(|operation| operation.get("syncResult"))).or_else(|| revisions(asked));
    let history = object.at(&["status", "history"]).and_then(Value::items).into_iter().flatten();
    let newest = history.max_by_key(|entry| entry.get("id").and_then(Value::as_i64));

    let phase = operation.and_then(|operation| text(operation, &["phase"])).unwrap_or_default();
    let requested = object.at(&["operation"]).is_some_and(|operation| !operation.is_null());
    let compares = compared.and_then(|compared| text(compared, &["status"])).unwrap_or_default();
    let error = condition(object, &INCOMPARABLE);
    let given_up = condition(object, &GIVEN_UP);
    let failed = matches!(&*phase, "Failed" | "Error") && (attempted.is_none() || attempted == desired);
    let (state, trouble) = match &*compares {
        _ if is_skipped => (SyncState::Suspended, None),
        _ if requested || matches!(&*phase, "Running" | "Terminating") => (SyncState::Syncing, None),
        _ if error.is_some() => (SyncState::Unknown, error),
        "Synced" | "OutOfSync" if failed => {
            (SyncState::Failed, operation.and_then(|operation| text(operation, &["message"])))
        }
        _ if given_up.is_some() => (SyncState::Failed, given_up),
        "Synced" => (SyncState::Synced, None),
        "OutOfSync" => (SyncState::OutOfSync, None),
        _ => (SyncState::Unknown, None),
    };
    let applied = revisions(newest);
    let last_success = newest.and_then(|entry| time(entry.get("deployedAt")));
    (Sync { state, desired, attempted, applied, last_success }, trouble)
}

/// Returns the revisions in the history of an Application, and that of its last operation unless this succeeded, the
/// oldest first. Leaves out each that equals the one before it, and those without a time.
pub(crate) fn applied(object: &Object<'_>) -> Vec<AppliedRevision> {
    let begun = |entry: Value<'_>| {
        time(entry.get("deployStartedAt"))
            .or_else(|| time(entry.get("deployedAt")))
            .zip(revisions(Some(entry)))
    };
    let history = object.at(&["status", "history"]).and_then(Value::items).into_iter().flatten();
    let mut past: Vec<_> = history.filter_map(begun).collect();
    let operation = object.at(&["status", "operationState"]);
    let tried = operation.and_then(|operation| {
        let is_over = text(operation, &["phase"]).is_some_and(|phase| phase == "Succeeded");
        let asked = operation.at(&["operation", "sync"]);
        let revision = revisions(operation.get("syncResult")).or_else(|| revisions(asked));
        time(operation.get("startedAt")).filter(|_| !is_over).zip(revision)
    });
    past.extend(tried);
    one_after_another(past)
}

/// The conditions that mean that Argo CD cannot compare, so that the sync state is not known.
const INCOMPARABLE: [&str; 3] = ["ComparisonError", "InvalidSpecError", "UnknownError"];

/// The conditions that mean that Argo CD has stopped trying: automatic sync has given up, or a deletion
/// failed.
const GIVEN_UP: [&str; 2] = ["SyncError", "DeletionError"];

/// Returns the first condition of an Application with one of these types, which is true as long as it is there; `None`
/// without one.
fn complaint<'a>(object: &Object<'a>, types: &[&str]) -> Option<Value<'a>> {
    let mut conditions = object.at(&["status", "conditions"]).and_then(Value::items)?;
    conditions.find(|condition| text(*condition, &["type"]).is_some_and(|kind| types.contains(&&*kind)))
}

/// Returns the message of the first condition with one of these types, empty if it has none; `None` without such a
/// condition.
fn condition(object: &Object<'_>, types: &[&str]) -> Option<String> {
    complaint(object, types).map(|condition| text(condition, &["message"]).unwrap_or_default())
}

/// Returns the time since when Argo CD cannot compare an Application; `None` if it can, or the time is not known.
pub(crate) fn incomparable_since(object: &Object<'_>) -> Option<Timestamp> {
    time(complaint(object, &INCOMPARABLE)?.get("lastTransitionTime"))
}

/// Returns the first source of an Application with a path or chart, for the others only hold values; the first of all
/// if none has one, and `None` if there is no source.
fn source(object: &Object<'_>) -> Option<Source> {
    let sources = sources(object);
    let first = sources.iter().position(|source| source.path.is_some()).unwrap_or_default();
    sources.into_iter().nth(first)
}

/// Returns all sources of an Application, in the order in which its status lists their revisions: with `sourceHydrator`
/// only the branch of the hydrated manifests, else `spec.sources`, or `spec.source` if that list is empty.
pub(crate) fn sources(object: &Object<'_>) -> Vec<Source> {
    if let Some(hydrator) = object.at(&["spec", "sourceHydrator"]) {
        // Hydrated manifests are written to a branch of the same repository, and applied from there.
        return vec![Source {
            kind: "git".to_owned(),
            namespace: None,
            name: None,
            url: text(hydrator, &["drySource", "repoURL"]),
            path: text(hydrator, &["syncSource", "path"]),
            reference: text(hydrator, &["syncSource", "targetBranch"]),
        }];
    }
    let read = |source: Value<'_>| {
        let chart = text(source, &["chart"]);
        Source {
            kind: if chart.is_some() { "helm" } else { "git" }.to_owned(),
            namespace: None,
            name: None,
            url: text(source, &["repoURL"]),
            path: chart.or_else(|| text(source, &["path"])),
            reference: text(source, &["targetRevision"]),
        }
    };
    let several = object.at(&["spec", "sources"]).and_then(Value::items).into_iter().flatten();
    let several: Vec<Source> = several.map(read).collect();
    match object.at(&["spec", "source"]) {
        Some(only) if several.is_empty() => vec![read(only)],
        _ => several,
    }
}

/// Returns the time at which the last operation of an Application ended, or else started. If there is none, or it did
/// not fail, and Argo CD has given up (see [`GIVEN_UP`]), returns the time of that.
pub(crate) fn failed_at(object: &Object<'_>) -> Option<Timestamp> {
    let given_up = || time(complaint(object, &GIVEN_UP)?.get("lastTransitionTime"));
    let Some(operation) = object.at(&["status", "operationState"]) else { return given_up() };
    let is_over = text(operation, &["phase"]).is_some_and(|phase| matches!(&*phase, "Failed" | "Error"));
    let ended = time(operation.get("finishedAt")).or_else(|| time(operation.get("startedAt")));
    given_up().filter(|_| !is_over).or(ended)
}

/// Returns true while an operation of the Application is in the phase `Running` or `Terminating`.
pub(super) fn runs(object: &Object<'_>) -> bool {
    let phase = text(object.root(), &["status", "operationState", "phase"]);
    phase.is_some_and(|phase| matches!(&*phase, "Running" | "Terminating"))
}

/// Returns the start of the running operation of an Application, or the time at which the waiting one was requested, by
/// managed fields; `None` without one, or if its time is not known.
pub(super) fn begun(object: &Object<'_>) -> Option<Timestamp> {
    match runs(object) {
        true => time(object.at(&["status", "operationState", "startedAt"])),
        false => written(object, &["operation"]),
    }
}

/// The maximum number of objects of an Application that are reported as not synced; further ones are left out, first
/// those that did not fail.
const MAX_UNSYNCED: usize = 1000;

/// Returns at most [`MAX_UNSYNCED`] objects that Argo CD reports as not synced: first those that the last operation
/// failed on, if it ended with a failure, then those that differ from the wanted state or wait for pruning; each with
/// the message of that operation for the object, if it could not sync it.
pub(crate) fn unsynced(object: &Object<'_>) -> Vec<ObjectSync> {
    let key = |entry: Value<'_>| {
        let field = |name| text(entry, &[name]);
        let (group, namespace) = (field("group").unwrap_or_default(), field("namespace").unwrap_or_default());
        Some(ObjectKey { group, kind: field("kind")?, namespace, name: field("name")? })
    };
    let list = |path: &[&str]| object.at(path).and_then(Value::items).into_iter().flatten();
    let is = |entry: Value<'_>, key: &str, word: &str| entry.get(key).is_some_and(|it| it.is_str(word));
    let is_over = object
        .at(&["status", "operationState", "phase"])
        .is_some_and(|phase| phase.is_str("Failed") || phase.is_str("Error"));
    let results = || list(&["status", "operationState", "syncResult", "resources"]);
    let message = |entry: Value<'_>| cut(text(entry, &["message"]).unwrap_or_default()).into_owned();
    let failed = results().filter_map(|entry| {
        let state = if is(entry, "status", "SyncFailed") {
            ObjectSyncState::SyncFailed
        } else if ["Failed", "Error"].iter().any(|word| is(entry, "hookPhase", word)) {
            ObjectSyncState::HookFailed
        } else {
            return None;
        };
        let (key, message) = (key(entry)?, message(entry));
        Some(ObjectSync { key, state, message, differs: Vec::new(), incomplete: false })
    });
    let mut found: Vec<ObjectSync> = failed.filter(|_| is_over).take(MAX_UNSYNCED).collect();
    let differing = list(&["status", "resources"]).filter_map(|entry| {
        let state = match entry.get("requiresPruning").and_then(Value::as_bool) {
            Some(true) => ObjectSyncState::RequiresPruning,
            _ if is(entry, "status", "OutOfSync") => ObjectSyncState::OutOfSync,
            _ => return None,
        };
        Some(ObjectSync {
            key: key(entry)?,
            state,
            message: String::new(),
            differs: Vec::new(),
            incomplete: false,
        })
    });
    let failed = found.len();
    let room = MAX_UNSYNCED.saturating_sub(failed);
    let told: HashSet<ObjectKey> = found.iter().map(|it| it.key.clone()).collect();
    found.extend(differing.filter(|it| !told.contains(&it.key)).take(room));
    // A failed operation that Argo CD will retry is still running, and one that succeeded may have skipped objects.
    let mut silent: HashMap<ObjectKey, &mut ObjectSync> =
        found.iter_mut().skip(failed).map(|own| (own.key.clone(), own)).collect();
    let is_unsuccessful =
        |entry: &Value<'_>| ["SyncFailed", "PruneSkipped"].iter().any(|word| is(*entry, "status", word));
    for entry in results().filter(is_unsuccessful) {
        if silent.is_empty() {
            break;
        }
        if let Some(own) = key(entry).and_then(|key| silent.remove(&key)) {
            own.message = message(entry);
        }
    }
    found
}

/// Returns at most one sync problem of an Application that its sync state alone does not show: for a Failed one the
/// first of `unsynced` that failed with a message, or that it is OutOfSync (see [`out_of_sync`]). While Argo CD skips
/// the Application, the sync problem that it would have otherwise, unless it would be OutOfSync.
///
/// `own` is its sync state. `home` and `target` are indices of clusters; `target`, that of the objects, is `None` if it
/// was not queried.
pub(crate) fn problems(
    declaring: &Observed<'_>,
    own: &Sync,
    unsynced: &[ObjectSync],
    fleet: &Fleet<'_>,
    (home, target): (usize, Option<usize>),
    now: Timestamp,
) -> Vec<Problem> {
    let home = fleet.objects(home);
    let object = &declaring.object;
    let is_skipped = own.state == SyncState::Suspended;
    // A suspended Application keeps the problem that it had.
    let (sync, trouble) = if is_skipped { sync(object, false) } else { (own.clone(), None) };
    let mut found = Vec::new();
    match sync.state {
        SyncState::Failed => {
            let failed = unsynced.iter().filter(|it| it.state.is_failed());
            if let Some(failed) = failed.into_iter().find(|it| !it.message.is_empty()) {
                let message = format!("{} {}: {}", failed.key.kind, failed.key.path(), failed.message);
                let problem = Problem::new(Axis::Sync, "Failed", ProblemSeverity::Error);
                found.push(problem.since(failed_at(object)).says(message).about(&failed.key));
            } else if is_skipped {
                let problem = Problem::new(Axis::Sync, "Failed", ProblemSeverity::Error);
                let message = trouble.unwrap_or_default();
                found.push(problem.since(failed_at(object)).says(message).about(declaring.key));
            }
        }
        SyncState::Unknown if is_skipped && trouble.is_some() => {
            let problem = Problem::new(Axis::Sync, "Unknown", ProblemSeverity::Error);
            let problem = problem.since(incomparable_since(object));
            found.push(problem.says(trouble.unwrap_or_default()).about(declaring.key));
        }
        SyncState::Syncing if is_skipped => {
            found.extend(syncing(home, object, now).map(|problem| problem.about(declaring.key)));
        }
        SyncState::OutOfSync if !is_skipped => {
            let drifted = |synced| fleet.writes.since(unsynced, fleet.objects(target?), target?, synced, now);
            found.extend(out_of_sync(home, declaring, &sync, unsynced, drifted, now));
        }
        _ => {}
    }
    found
}

/// Returns the problem of an Application whose operation has been running, or waiting to run, for [`MAX_UNTRIED_TIME`]
/// or longer, or since an unknown time; `None` before. It is an error after [`late::MAX_SYNC_TIME`].
pub(crate) fn syncing(home: &dyn Objects, object: &Object<'_>, now: Timestamp) -> Option<Problem> {
    let says = match runs(object) {
        true => {
            let message = text(object.root(), &["status", "operationState", "message"]).unwrap_or_default();
            late::because("the sync operation of the Application is still running", &message)
        }
        false => "an operation of the Application was requested, but Argo CD has not started it".to_owned(),
    };
    late::problem(home, begun(object), late::MAX_SYNC_TIME, now).map(|problem| problem.says(says))
}

/// Returns the problem of an Application that is OutOfSync: a notice if Argo CD will not sync it (automatic sync is
/// off, or the desired revision was tried and `selfHeal` is off). Else it is waiting, and an error once the first
/// change in the cluster, else the last operation (for a revision that was not tried: the last comparison) is
/// [`MAX_UNTRIED_TIME`] old. `None` if automatic sync has neither tried the desired revision nor given up, and the last
/// operation ended less than that time ago: the revision is younger than that.
fn out_of_sync(
    home: &dyn Objects,
    declaring: &Observed<'_>,
    sync: &Sync,
    unsynced: &[ObjectSync],
    drifted: impl Fn(Timestamp) -> Option<Timestamp>,
    now: Timestamp,
) -> Option<Problem> {
    let object = &declaring.object;
    let policy = object.at(&["spec", "syncPolicy", "automated"]).filter(|policy| !policy.is_null());
    let flag = |name| policy.and_then(|policy| policy.get(name)).and_then(Value::as_bool);
    let is_manual = is_manual(object);
    let is_tried = sync.attempted.is_some() && sync.attempted == sync.desired;
    let which = which(unsynced);
    // Argo CD does not record the time: its last operation was before, and its last comparison only found it
    // so. Only the field managers of the objects show it.
    let drifted = || drifted(failed_at(object)?);
    let compared = compared_at(object);
    let ended = object.at(&["status", "operationState", "finishedAt"]).map(Some).and_then(time);
    let is_long = |at: Timestamp| elapsed(home, at, MAX_UNTRIED_TIME, now) >= MAX_UNTRIED_TIME;
    let (severity, since, says) = if is_manual {
        let since = is_tried.then(drifted).flatten();
        (ProblemSeverity::Notice, since, "automatic sync is off".to_owned())
    } else if is_tried && flag("selfHeal") != Some(true) {
        let says = "automatic sync does not revert changes made in the cluster (selfHeal is off)";
        (ProblemSeverity::Notice, drifted(), says.to_owned())
    } else if is_tried {
        let since = drifted();
        let is_old = since.or_else(|| failed_at(object)).is_some_and(is_long);
        let severity = if is_old { ProblemSeverity::Error } else { ProblemSeverity::Waiting };
        (
            severity,
            since,
            "the desired revision was synced, but these objects still differ from it".to_owned(),
        )
    } else if complaint(object, &GIVEN_UP).is_none() && ended.is_some_and(|at| !is_long(at)) {
        return None;
    } else {
        let is_old = compared.is_some_and(is_long);
        let severity = if is_old { ProblemSeverity::Error } else { ProblemSeverity::Waiting };
        (severity, None, "Argo CD has not tried to sync the desired revision".to_owned())
    };
    let colon = if which.is_empty() { String::new() } else { format!(": {which}") };
    let problem = problem::untried(severity, since);
    Some(problem.says(format!("OutOfSync{colon}; {says}")).about(declaring.key))
}

/// Returns true if Argo CD syncs an Application only on request: it has no policy for automated sync, or one with
/// `enabled: false`.
pub(crate) fn is_manual(object: &Object<'_>) -> bool {
    let policy = object.at(&["spec", "syncPolicy", "automated"]).filter(|policy| !policy.is_null());
    policy.is_none_or(|policy| policy.get("enabled").and_then(Value::as_bool) == Some(false))
}

/// Returns a phrase with kind and name of the first three objects of `unsynced` and the number of the others; empty if
/// there are none.
pub(crate) fn which(unsynced: &[ObjectSync]) -> String {
    const MAX_NAMED: usize = 3;
    listed(unsynced.iter().map(|it| format!("{} {}", it.key.kind, it.key.path())), MAX_NAMED)
}

/// Returns the problem that Argo CD calls an Application `Degraded` or `Missing`, for one whose objects report no
/// problem; `None` for any other health.
///
/// It is an error if `lists_nothing`, the Application has no objects; otherwise a notice.
pub(crate) fn unwell(declaring: &Observed<'_>, lists_nothing: bool) -> Option<Problem> {
    let object = &declaring.object;
    let word = health_word(object).filter(|word| matches!(&**word, "Degraded" | "Missing"))?;
    let (severity, says) = match lists_nothing {
        true => (ProblemSeverity::Error, "and it lists no objects"),
        false => (ProblemSeverity::Notice, "although its objects report no problem"),
    };
    let since = time(object.at(&["status", "health", "lastTransitionTime"]));
    let problem = Problem::new(Axis::Health, &*word, severity).since(since);
    Some(problem.says(format!("Argo CD calls the app {word}, {says}")).about(declaring.key))
}

/// Returns the status that stands for `word`, the health that Argo CD says an Application has, where it says that its
/// sync is `sync`; empty texts if it says nothing.
///
/// Argo CD keeps the last health of an Application whose cluster it cannot reach, and then says that it cannot compare
/// it (`Unknown`), so `Healthy` beside that is Unknown.
pub fn health_status(word: &str, sync: &str) -> Status {
    match word {
        "Healthy" if sync == "Unknown" => Status::Unknown,
        "Healthy" => Status::Current,
        "Progressing" | "Suspended" => Status::InProgress,
        "Degraded" => Status::Failed,
        "Missing" => Status::NotFound,
        _ => Status::Unknown,
    }
}

/// Returns the time at which Argo CD last compared an Application with its source and looked at its objects; `None` if
/// it did not.
pub(crate) fn compared_at(object: &Object<'_>) -> Option<Timestamp> {
    time(object.at(&["status", "reconciledAt"]))
}

/// Returns the health that Argo CD says the objects of an Application have; `None` if it says nothing.
///
/// What is not worse than Unknown is Unknown once Argo CD's last comparison is older than [`MAX_COMPARISON_AGE`], and
/// if there was none: an Argo CD that has stopped leaves its last word.
pub(crate) fn said_health(home: &dyn Objects, object: &Object<'_>, now: Timestamp) -> Option<SaidHealth> {
    let word = health_word(object)?;
    let sync = object.text(&["status", "sync", "status"]);
    let status = health_status(&word, &sync);
    // One in the future is no proof of anything; the clocks of two machines may differ a little.
    let is_recent = |at| {
        let age = elapsed(home, at, MAX_COMPARISON_AGE, now);
        age > -MAX_CLOCK_LEAD && age < MAX_COMPARISON_AGE
    };
    let is_old = status > Status::Unknown && !compared_at(object).is_some_and(is_recent);
    let why = text(object.root(), &["status", "health", "message"]).map(super::short);
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let doubt = match status {
        _ if is_old => ", but has not compared it for more than 30 min",
        Status::Unknown if word == "Healthy" => ", and its sync is Unknown",
        _ => "",
    };
    let status = if is_old { Status::Unknown } else { status };
    let since = time(object.at(&["status", "health", "lastTransitionTime"]));
    let message = format!("Argo CD says that the app is {word}{doubt}{why}");
    Some(SaidHealth { status, message, since: since.filter(|_| status != Status::Current && !is_old) })
}

/// Returns the health status that Argo CD reports for an Application: `Healthy`, `Degraded`, …; `None` if it reports
/// none.
pub(crate) fn health_word(object: &Object<'_>) -> Option<String> {
    text(object.root(), &["status", "health", "status"]).map(super::short)
}
