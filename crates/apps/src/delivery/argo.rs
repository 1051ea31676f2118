//! Argo CD: `Application`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use jiff::Timestamp;
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, Projection};
use taffrail_status::{Observed, Presence, Trust, cut};

use super::{
    Applied, Declaration, Declarations, Destination, declared_objects, destination, entries, is_blank, late,
    one_after_another, text, time, written,
};
use crate::agreement::{Claimant, INSTANCE_LABEL, Mark};
use crate::fleet::Fleet;
use crate::identity::{AppKey, Delivery};
use crate::names;
use crate::objects::Objects;
use crate::problem::{self, Axis, Problem, ProblemSeverity, UNTRIED};
use crate::rows::elapsed;
use crate::sync::{ObjectSync, Source, Sync, SyncState, shorten};
use crate::teachers::{self, INSTALLED, Standing, argo_standing};

pub(crate) const GROUP: &str = "argoproj.io";

/// The name that Argo CD gives to the cluster that it runs in, unless a Secret gives it another one.
const IN_CLUSTER_NAME: &str = "in-cluster";

/// The annotation that tells Argo CD to leave an Application alone.
pub(crate) const SKIP: &str = "argocd.argoproj.io/skip-reconcile";

/// The annotation that keeps the policy of an Application that was suspended where Argo CD does not know
/// `spec.syncPolicy.automated.enabled`.
pub(crate) const SUSPENDED: &str = "taffrail.dev/suspended-automated";

/// Whether Argo CD would sync an Application by itself, and was told not to. It goes on comparing.
fn is_held(object: &Object<'_>) -> bool {
    match object.at(&["spec", "syncPolicy", "automated"]).filter(|policy| !policy.is_null()) {
        Some(policy) => policy.get("enabled").and_then(Value::as_bool) == Some(false),
        None => !object.text(&["metadata", "annotations", SUSPENDED]).is_empty(),
    }
}

/// Whether Argo CD was told to leave an Application alone, or not to sync it by itself.
pub(crate) fn is_kept_off(object: &Object<'_>) -> bool {
    object.text(&["metadata", "annotations", SKIP]) == "true" || is_held(object)
}

/// How many namespaces of controllers the Applications of one namespace may name: each tenant has as many, whatever others write.
const CONTROLLERS: usize = 2;

/// How many namespaces of controllers are looked at in a cluster, those first that are named from the most namespaces.
const ALL_CONTROLLERS: usize = 200;

/// The other namespace in which the controller of an Application runs, by what the Application says: anybody who may write it can
/// write that.
pub(crate) fn controller(object: &Object<'_>) -> Option<String> {
    let controller = object.text(&["status", "controllerNamespace"]);
    let is_label = (1..=63).contains(&controller.len())
        && controller.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    (is_label && controller != object.namespace()).then(|| controller.into_owned())
}

/// The namespaces of a cluster in which Argo CD itself runs: an Application there is named by its bare name in marks, which anyone
/// can give to an Application elsewhere.
pub(crate) struct Homes {
    /// Each with the label by which it tracks objects that carry no tracking id.
    namespaces: BTreeMap<String, String>,
    /// Those with Applications.
    all: teachers::Namespaces,
    /// Whether the people of all clusters are trusted by the user as those of this one.
    is_trusted: bool,
}

impl Homes {
    /// Finds those that are known, or else the one of the installer: people of the cluster make that, and tenants do not.
    pub(crate) fn of(fleet: &Fleet<'_>, home: usize, trust: &Trust) -> Homes {
        let objects = fleet.objects(home);
        let all = teachers::Namespaces::of(objects, trust);
        let mut namespaces = all.looked_into.clone();
        namespaces.retain(|namespace| argo_standing(objects, namespace, trust) == Standing::Known);
        if namespaces.is_empty() {
            namespaces.insert(INSTALLED.to_owned());
        }
        let with_label = |namespace: String| {
            let label = instance_label(objects, &namespace);
            (namespace, label)
        };
        let namespaces = namespaces.into_iter().map(with_label).collect();
        Homes { namespaces, all, is_trusted: fleet.trusts(home, trust) }
    }
}

/// Reads the Applications of one cluster.
pub(crate) fn declare(fleet: &Fleet<'_>, home: usize, homes: &Homes, found: &mut Declarations) {
    let objects = fleet.objects(home);
    let settings = |namespace: &String| ObjectKey::new("", "ConfigMap", &**namespace, teachers::SETTINGS);
    let mut maps: BTreeSet<ObjectKey> = homes.all.looked_into.iter().map(settings).collect();
    homes.all.error().into_iter().for_each(|error| found.report(home, error));
    let mut controllers: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for observed in objects.of_kind(GROUP, "Application", None) {
        if let Some(controller) = controller(&observed.object) {
            let named = controllers.entry(observed.key.namespace.clone()).or_default();
            *named.entry(controller).or_default() += 1;
        }
        let app = application(fleet, home, &observed, homes, found);
        found.apps.push(app);
    }
    for namespace in looked_at(controllers) {
        let map = |name| ObjectKey::new("", "ConfigMap", &*namespace, name);
        maps.extend([teachers::SETTINGS, teachers::PARAMETERS].map(map));
    }
    // That a list told of its metadata says nothing of what is set.
    let is_unread = |key: &ObjectKey| match objects.get(key.as_ref()) {
        Presence::Present(observed) => observed.projection != Projection::Full,
        Presence::Absent => false,
        Presence::Unobserved(_) => true,
    };
    found.lacking.extend(maps.into_iter().filter(is_unread).map(|key| (home, key)));
}

/// The namespaces of controllers to look at, of those that the Applications of each namespace name so many times.
fn looked_at(named: BTreeMap<String, BTreeMap<String, usize>>) -> Vec<String> {
    let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
    for controllers in named.into_values() {
        let mut controllers: Vec<(String, usize)> = controllers.into_iter().collect();
        controllers.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        for (controller, _) in controllers.into_iter().take(CONTROLLERS) {
            *wanted.entry(controller).or_default() += 1;
        }
    }
    let mut wanted: Vec<(String, usize)> = wanted.into_iter().collect();
    wanted.sort_by_key(|(_, namespaces)| std::cmp::Reverse(*namespaces));
    wanted.into_iter().take(ALL_CONTROLLERS).map(|(namespace, _)| namespace).collect()
}

fn application(
    fleet: &Fleet<'_>,
    home: usize,
    observed: &Observed<'_>,
    homes: &Homes,
    found: &mut Declarations,
) -> Declaration {
    let (key, object) = (observed.key, &observed.object);
    let is_skipped = object.text(&["metadata", "annotations", SKIP]) == "true";
    let (sync, trouble) = sync(object, is_skipped);
    let message = match (sync.state, &sync.desired, &sync.applied) {
        (SyncState::Synced, Some(revision), _) | (_, _, Some(revision)) => {
            format!("Synced to {}", shorten(revision))
        }
        _ => text(object.root(), &["status", "operationState", "message"]).unwrap_or_default(),
    };
    // What a hook made comes and goes; what waits for pruning is still there.
    let managed =
        |(_, resource): &(usize, Value<'_>)| resource.get("hook").and_then(Value::as_bool) != Some(true);
    let destination = place(fleet, home, object, homes, found);
    let mut claimant = claimant(home, key, object, homes);
    if destination != Destination::Cluster(home) && !homes.is_trusted {
        claimant.marks.retain(|mark| !mark.is_label());
    }
    claimant.hooks = hooks(object).into();
    let resources = entries(object.at(&["status", "resources"]), home, key, found).enumerate();
    Declaration {
        home,
        destination,
        delivery: Delivery::ArgoApplication,
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        key: AppKey::of(Delivery::ArgoApplication, &key.namespace, &key.name, Some(object)),
        declaring: Some(key.clone()),
        unseen: object.at(&["status"]).is_none_or(is_blank),
        objects: declared_objects(resources.filter(managed), home, key, found).into(),
        unreadable: None,
        sync,
        suspended: is_kept_off(object),
        message,
        trouble,
        source: source(object),
        via: None,
        claimant,
    }
}

/// Who claims what an Application manages. Outside of the namespace of Argo CD its marks say in which namespace it is; the
/// label by which it tracks is told by settings beside Argo CD.
fn claimant(home: usize, key: &ObjectKey, object: &Object<'_>, homes: &Homes) -> Claimant {
    let beside = homes.namespaces.get(&key.namespace).filter(|_| controller(object).is_none());
    let label = beside.map_or(INSTANCE_LABEL, String::as_str);
    let marks = Mark::of_application(&key.namespace, &key.name, beside.is_none(), label);
    Claimant::in_namespace(home, &key.namespace, marks)
}

/// The label by which the Argo CD in a namespace tracks objects without a tracking id.
fn instance_label(objects: &dyn Objects, namespace: &str) -> String {
    let settings = ObjectKey::new("", "ConfigMap", namespace, teachers::SETTINGS);
    let told = match objects.get(settings.as_ref()) {
        Presence::Present(settings) => {
            text(settings.object.root(), &["data", "application.instanceLabelKey"])
        }
        Presence::Absent | Presence::Unobserved(_) => None,
    };
    let told = told.filter(|label| label.parse::<super::AppLabel>().is_ok());
    told.unwrap_or_else(|| INSTANCE_LABEL.to_owned())
}

/// The Applications of the Argo CD in the namespace `argo` that an object says it is of: the namespace of each, and its name
/// unless a label holds only the start of it. They are to be looked at before [`argo_delivers`] can say anything.
pub fn argo_names(objects: &dyn Objects, argo: &str, object: &Object<'_>) -> Vec<(String, Option<String>)> {
    let label = instance_label(objects, argo);
    let marks = Mark::all(&ObjectKey::of(object), object, &[&label]);
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

/// Returns true where the Argo CD in the namespace `argo` delivers an object into its own cluster: an Application that it serves
/// lists the object, and the object carries the mark of that Application.
pub fn argo_delivers(objects: &dyn Objects, argo: &str, object: &Object<'_>) -> bool {
    let key = ObjectKey::of(object);
    let label = instance_label(objects, argo);
    let marks = Mark::all(&key, object, &[&label]);
    let fleet = Fleet::new(&[objects]);
    let mut found = Declarations::default();
    let namespaces = BTreeMap::from([(argo.to_owned(), label.clone())]);
    let homes = Homes { namespaces, all: teachers::Namespaces::default(), is_trusted: false };
    objects.of_kind(GROUP, "Application", None).any(|observed| {
        let ObjectKey { namespace, name, .. } = observed.key;
        let application = &observed.object;
        let is_elsewhere = namespace != argo;
        let own = Mark::of_application(namespace, name, is_elsewhere, &label);
        own.iter().any(|mark| marks.contains(mark))
            && controller(application).is_none_or(|controller| is_elsewhere && controller == argo)
            && (!is_elsewhere || teachers::serves(objects, argo, namespace))
            && lists(application, &key)
            && place(&fleet, 0, application, &homes, &mut found) == Destination::Cluster(0)
    })
}

/// Returns true where an Application says that it manages an object.
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

/// How many hooks of an operation are known.
const MOST_HOOKS: usize = 200;

/// The hooks that the last operation of an Application lists.
fn hooks(object: &Object<'_>) -> Vec<ObjectKey> {
    let results = object.at(&["status", "operationState", "syncResult", "resources"]);
    let listed = results.and_then(Value::items).into_iter().flatten();
    let hook = |result: Value<'_>| {
        let field = |name| text(result, &[name]).unwrap_or_default();
        let key = ObjectKey::new(field("group"), field("kind"), field("namespace"), field("name"));
        (!field("hookType").is_empty() && names::check(&key).is_ok()).then_some(key)
    };
    listed.filter_map(hook).take(MOST_HOOKS).collect()
}

fn place(
    fleet: &Fleet<'_>,
    home: usize,
    object: &Object<'_>,
    homes: &Homes,
    found: &mut Declarations,
) -> Destination {
    let field = |name| text(object.root(), &["spec", "destination", name]);
    if let Some(server) = field("server") {
        return destination::at(fleet, home, &server);
    }
    match field("name") {
        None => Destination::OutOfReach("a cluster that is not named".to_owned()),
        Some(name) if name == IN_CLUSTER_NAME => Destination::Cluster(home),
        Some(name) => {
            let (controller, own) = (controller(object), object.namespace());
            // One that names its controller is served by that alone.
            let places: Vec<&str> = match &controller {
                Some(controller) => vec![controller],
                None => [&*own].into_iter().chain(homes.namespaces.keys().map(String::as_str)).collect(),
            };
            destination::of_argo_cluster(fleet, home, found, &name, &places)
        }
    }
}

/// One revision, or several joined by commas, of a part of an Application.
fn revisions(value: Option<Value<'_>>) -> Option<String> {
    let value = value?;
    let several = value.get("revisions").and_then(Value::items).into_iter().flatten();
    let several: Vec<_> = several.filter_map(Value::as_str).collect();
    if several.is_empty() { text(value, &["revision"]) } else { Some(several.join(",")) }
}

/// What makes objects of the sources of an Application, each once.
pub(crate) fn source_types(object: &Object<'_>) -> Option<String> {
    if let Some(only) = text(object.root(), &["status", "sourceType"]) {
        return Some(only);
    }
    let several = object.at(&["status", "sourceTypes"]).and_then(Value::items)?;
    let mut types: Vec<_> = several.filter_map(Value::as_str).filter(|it| !it.is_empty()).collect();
    types.dedup();
    (!types.is_empty()).then(|| types.join(","))
}

/// What is wrong with the source of an Application, if anything is: what cannot be fetched cannot be compared.
pub(crate) fn source_error(object: &Object<'_>) -> Option<String> {
    condition(object, &["ComparisonError", "InvalidSpecError"])
}

/// Where the app stands, and what Argo CD says of it when that is Failed or Unknown.
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

/// The revisions that an Application was synced to, and the one that is being tried or failed.
pub(crate) fn applied(object: &Object<'_>) -> Vec<Applied> {
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

/// The conditions by which Argo CD says that it cannot compare, so that the sync is not known.
const INCOMPARABLE: [&str; 3] = ["ComparisonError", "InvalidSpecError", "UnknownError"];

/// The conditions by which Argo CD says that it does not go on: automatic sync has given up, or a deletion failed.
const GIVEN_UP: [&str; 2] = ["SyncError", "DeletionError"];

/// Returns the first condition of one of these types; Argo CD has a condition only while it is true.
fn complaint<'a>(object: &Object<'a>, types: &[&str]) -> Option<Value<'a>> {
    let mut conditions = object.at(&["status", "conditions"]).and_then(Value::items)?;
    conditions.find(|condition| text(*condition, &["type"]).is_some_and(|kind| types.contains(&&*kind)))
}

/// Returns the message of the first condition of one of these types.
fn condition(object: &Object<'_>, types: &[&str]) -> Option<String> {
    complaint(object, types).map(|condition| text(condition, &["message"]).unwrap_or_default())
}

/// Returns since when Argo CD cannot compare an Application: its last operation tells of something else.
pub(crate) fn incomparable_since(object: &Object<'_>) -> Option<Timestamp> {
    time(complaint(object, &INCOMPARABLE)?.get("lastTransitionTime"))
}

/// The first source that delivers something: one that is only referred to, for values, does not.
fn source(object: &Object<'_>) -> Option<Source> {
    let sources = sources(object);
    let first = sources.iter().position(|source| source.path.is_some()).unwrap_or_default();
    sources.into_iter().nth(first)
}

/// All sources, in the order in which their revisions are listed.
pub(crate) fn sources(object: &Object<'_>) -> Vec<Source> {
    if let Some(hydrator) = object.at(&["spec", "sourceHydrator"]) {
        // What is hydrated is written to a branch of the same repository, and applied from there.
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

/// Returns the end, or else the beginning, of the operation that failed; where none did, when Argo CD gave up.
pub(crate) fn failed_at(object: &Object<'_>) -> Option<Timestamp> {
    let given_up = || time(complaint(object, &GIVEN_UP)?.get("lastTransitionTime"));
    let Some(operation) = object.at(&["status", "operationState"]) else { return given_up() };
    let is_over = text(operation, &["phase"]).is_some_and(|phase| matches!(&*phase, "Failed" | "Error"));
    let ended = time(operation.get("finishedAt")).or_else(|| time(operation.get("startedAt")));
    given_up().filter(|_| !is_over).or(ended)
}

/// Returns true while an operation runs.
pub(super) fn runs(object: &Object<'_>) -> bool {
    let phase = text(object.root(), &["status", "operationState", "phase"]);
    phase.is_some_and(|phase| matches!(&*phase, "Running" | "Terminating"))
}

/// Returns when the operation that runs began, or when the one that waits was asked for.
pub(super) fn begun(object: &Object<'_>) -> Option<Timestamp> {
    match runs(object) {
        true => time(object.at(&["status", "operationState", "startedAt"])),
        false => written(object, &["operation"]),
    }
}

/// The most objects that are told one by one of an Application.
const MAX_UNSYNCED: usize = 1000;

/// Returns the objects that Argo CD calls not synced: those that the last operation failed on, with its message, and
/// those that differ from what is wanted.
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
    let results = list(&["status", "operationState", "syncResult", "resources"]);
    let failed = results.filter_map(|entry| {
        let state = if is(entry, "status", "SyncFailed") {
            "SyncFailed"
        } else if ["Failed", "Error"].iter().any(|word| is(entry, "hookPhase", word)) {
            "HookFailed"
        } else {
            return None;
        };
        let message = cut(text(entry, &["message"]).unwrap_or_default()).into_owned();
        Some(ObjectSync { key: key(entry)?, state, message })
    });
    let mut found: Vec<ObjectSync> = failed.filter(|_| is_over).take(MAX_UNSYNCED).collect();
    let differing = list(&["status", "resources"]).filter_map(|entry| {
        let state = match entry.get("requiresPruning").and_then(Value::as_bool) {
            Some(true) => "RequiresPruning",
            _ if is(entry, "status", "OutOfSync") => "OutOfSync",
            _ => return None,
        };
        Some(ObjectSync { key: key(entry)?, state, message: String::new() })
    });
    let room = MAX_UNSYNCED.saturating_sub(found.len());
    let told: HashSet<ObjectKey> = found.iter().map(|it| it.key.clone()).collect();
    found.extend(differing.filter(|it| !told.contains(&it.key)).take(room));
    found
}

/// Returns what Argo CD says that makes an Application not well beyond a sync that failed or cannot be known.
///
/// `home` is the cluster of the Application, `target` that of its objects, where that was asked.
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
            if let Some(failed) = unsynced.iter().find(|it| !it.message.is_empty()) {
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
            found
                .extend(late::problem_of_argo(home, object, now).map(|problem| problem.about(declaring.key)));
        }
        SyncState::OutOfSync if !is_skipped => {
            let drifted = |synced| fleet.writes.since(unsynced, fleet.objects(target?), target?, synced);
            found.push(out_of_sync(home, declaring, &sync, unsynced, drifted, now));
        }
        _ => {}
    }
    found
}

/// Returns the problem of an Application that is OutOfSync: how heavy it is depends on what will sync it.
fn out_of_sync(
    home: &dyn Objects,
    declaring: &Observed<'_>,
    sync: &Sync,
    unsynced: &[ObjectSync],
    drifted: impl Fn(Timestamp) -> Option<Timestamp>,
    now: Timestamp,
) -> Problem {
    let object = &declaring.object;
    let policy = object.at(&["spec", "syncPolicy", "automated"]).filter(|policy| !policy.is_null());
    let flag = |name| policy.and_then(|policy| policy.get(name)).and_then(Value::as_bool);
    let is_manual = is_manual(object);
    let is_tried = sync.attempted.is_some() && sync.attempted == sync.desired;
    let which = which(unsynced);
    // Argo CD does not say since when: its last operation was before, its last comparison at least found it so. Only who
    // wrote the objects since then does.
    let drifted = || drifted(failed_at(object)?);
    let compared = object.at(&["status", "reconciledAt"]).map(Some).and_then(time);
    let is_long = |at: Timestamp| elapsed(home, at, UNTRIED, now) >= UNTRIED;
    let (severity, since, says) = if is_manual {
        let since = is_tried.then(drifted).flatten();
        (ProblemSeverity::Notice, since, "automatic sync is off".to_owned())
    } else if is_tried && flag("selfHeal") != Some(true) {
        let says = "automatic sync does not put changes in the cluster right (selfHeal is off)";
        (ProblemSeverity::Notice, drifted(), says.to_owned())
    } else if is_tried {
        let since = drifted();
        let is_old = since.or_else(|| failed_at(object)).is_some_and(is_long);
        let severity = if is_old { ProblemSeverity::Error } else { ProblemSeverity::Waiting };
        (severity, since, "it was synced, and differs nevertheless".to_owned())
    } else {
        let is_old = compared.is_some_and(is_long);
        let severity = if is_old { ProblemSeverity::Error } else { ProblemSeverity::Waiting };
        (severity, None, "Argo CD has not tried the wanted revision".to_owned())
    };
    let colon = if which.is_empty() { String::new() } else { format!(": {which}") };
    problem::untried(severity, since).says(format!("OutOfSync{colon}; {says}")).about(declaring.key)
}

/// Returns true where Argo CD syncs an Application only when it is told to.
pub(crate) fn is_manual(object: &Object<'_>) -> bool {
    let policy = object.at(&["spec", "syncPolicy", "automated"]).filter(|policy| !policy.is_null());
    policy.is_none_or(|policy| policy.get("enabled").and_then(Value::as_bool) == Some(false))
}

/// Names the first objects that differ.
pub(crate) fn which(unsynced: &[ObjectSync]) -> String {
    const NAMED: usize = 3;
    let names = unsynced.iter().take(NAMED).map(|it| format!("{} {}", it.key.kind, it.key.path()));
    let names = names.collect::<Vec<_>>().join(", ");
    match unsynced.len().saturating_sub(NAMED) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

/// Returns what Argo CD says of an Application whose objects are well: without objects it alone knows, else it is a doubt.
pub(crate) fn unwell(declaring: &Observed<'_>, lists_nothing: bool) -> Option<Problem> {
    let object = &declaring.object;
    let word = health_word(object).filter(|word| matches!(&**word, "Degraded" | "Missing"))?;
    let (severity, says) = match lists_nothing {
        true => (ProblemSeverity::Error, "and lists no objects"),
        false => (ProblemSeverity::Notice, "and by what its objects say they are well"),
    };
    let since = time(object.at(&["status", "health", "lastTransitionTime"]));
    let problem = Problem::new(Axis::Health, &*word, severity).since(since);
    Some(problem.says(format!("Argo CD calls it {word}, {says}")).about(declaring.key))
}

/// Returns what Argo CD says of the health of an Application.
pub(crate) fn health_word(object: &Object<'_>) -> Option<String> {
    text(object.root(), &["status", "health", "status"]).map(super::short)
}
