//! Apps of Flux, declared by a `Kustomization` or `HelmRelease`.

pub(crate) mod definitions;
pub(crate) mod releases;
pub(crate) mod sources;
pub(super) mod stored;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKeyRef, duration, names};
use taffrail_status::{ObjectContext, Observed, Rules, Status, Taffrail};

use super::declared::{Declared, Declaring};
use super::destination::{Addresses, Target};
use super::notes::Notes;
use super::{
    AppliedRevision, Condition, Declaration, Destination, ObjectKeys, helm_storage, late, one_after_another,
    span, text, time, written,
};
use crate::agreement::{Claimant, Mark};
use crate::fleet::Fleet;
use crate::identity::{AppKey, Delivery};
use crate::inventory_id;
use crate::noting::elapsed;
use crate::objects::Objects;
use crate::problem::{self, Axis, MAX_UNTRIED_TIME, Problem, ProblemSeverity};
use crate::sync::{Source, Sync, SyncState, shorten};

use releases::ReleaseName;
use sources::{Artifact, KnownSource, Origin, Sources};
use stored::DeclaredRelease;
use taffrail_object::ObjectKey;

pub(crate) const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io";
pub(crate) const HELM: &str = "helm.toolkit.fluxcd.io";
const SOURCE: &str = "source.toolkit.fluxcd.io";

/// The kinds of Flux's sources; objects of other kinds that an author names as a source are not read.
const SOURCES: [&str; 6] =
    ["Bucket", "ExternalArtifact", "GitRepository", "HelmChart", "HelmRepository", "OCIRepository"];

/// The maximum number of history entries from which revisions and names of releases are taken; of more, those with the
/// highest versions, or the first ones if they have none. Flux itself keeps about five.
const MAX_HISTORY: usize = 20;

/// Returns the app that a Kustomization or HelmRelease declares.
pub(super) fn declare(declaring: &Declaring<'_, '_>, notes: &mut Notes) -> Declared {
    let Declaring { home, objects, observed, sources, addresses, now, .. } = *declaring;
    let reader = Reader { home, objects, observed, now, sources };
    let target = reader.target(addresses);
    let (app, release) = match observed.key.kind {
        "HelmRelease" => {
            let (app, release) = reader.helm_release(notes);
            (app, Some(release))
        }
        _ => (reader.kustomization(notes), None),
    };
    Declared { app, target, release }
}

/// Returns the Kustomization or else the HelmRelease that an object's labels name as the one that applied it; `None` if
/// they name none.
pub(crate) fn owner(object: &Object<'_>) -> Option<ObjectKey> {
    let of = |group: &str, kind: &str| {
        let label =
            |field: &str| object.text(&["metadata", "labels", &format!("{group}/{field}")]).into_owned();
        let (name, namespace) = (label("name"), label("namespace"));
        let is_named = !name.is_empty() && !namespace.is_empty();
        is_named.then(|| ObjectKey::new(group, kind, namespace, name))
    };
    of(KUSTOMIZE, "Kustomization").or_else(|| of(HELM, "HelmRelease"))
}

/// Returns the objects that a Kustomization or HelmRelease names in `spec.dependsOn`, each once, at most `most`, and the
/// number of further entries. Leaves out entries that cannot name an object.
pub(crate) fn depends_on(observed: &Observed<'_>, most: usize) -> (Vec<ObjectKey>, usize) {
    let ObjectKeyRef { group, kind, namespace, .. } = observed.key;
    let entries = observed.object.at(&["spec", "dependsOn"]).and_then(Value::items).into_iter().flatten();
    let named = entries.filter_map(|entry| {
        let namespace = text(entry, &["namespace"]).unwrap_or_else(|| namespace.to_owned());
        let key = ObjectKey::new(group, kind, namespace, text(entry, &["name"])?);
        names::check(&key).is_ok().then_some(key)
    });
    let (mut found, mut left_out) = (Vec::new(), 0);
    for key in named {
        if found.contains(&key) {
            continue;
        }
        match found.len() < most {
            true => found.push(key),
            false => left_out += 1,
        }
    }
    (found, left_out)
}

/// Returns true if the object is of a source kind of Flux. A Kustomization or HelmRelease may name any object as its
/// source, so a key that it names need not be of such a kind.
pub(crate) fn is_source(key: &ObjectKey) -> bool {
    key.group == SOURCE && SOURCES.contains(&&*key.kind)
}

/// Returns the sources of a Kustomization or HelmRelease: last the one whose artifact it applies, before that the one
/// from which Flux makes a HelmChart.
///
/// They may be of any kind: see [`is_source`].
pub(crate) fn sources<'a>(objects: &'a dyn Objects, observed: &Observed<'a>) -> Vec<ObjectKey> {
    sources_by(&Sources::default(), objects, observed)
}

/// Returns the sources like [`sources()`]; `known` is a cache of those in this cluster.
pub(crate) fn sources_by<'a>(
    known: &Sources,
    objects: &'a dyn Objects,
    observed: &Observed<'a>,
) -> Vec<ObjectKey> {
    Reader { home: 0, objects, observed, now: Timestamp::UNIX_EPOCH, sources: known }.sources()
}

/// Returns the time at which Flux fetched the present artifact of a source; `None` if it is not known.
pub(crate) fn fetched_by(known: &Sources, objects: &dyn Objects, key: &ObjectKey) -> Option<Timestamp> {
    known.read(objects, 0, key).fetched
}

/// Returns the revisions to which a Kustomization or HelmRelease changed, the oldest first, from its history: for a
/// HelmRelease also changes of its values alone, and a failed upgrade in place of its rollback. The revision tried last
/// is added if its source still has it.
pub(crate) fn applied<'a>(fleet: &Fleet<'a>, home: usize, observed: &Observed<'a>) -> Vec<AppliedRevision> {
    let (objects, sources) = (fleet.objects(home), &fleet.sources);
    let reader = Reader { home, objects, observed, now: Timestamp::UNIX_EPOCH, sources };
    match observed.key.kind {
        "HelmRelease" => reader.releases(),
        _ => reader.reconciliations(),
    }
}

/// Returns the problems of a Flux app, apart from a failed sync: those of its sources, a spec or revision that its
/// controller has left untried, and, while it is suspended, the failure that it would have otherwise. While it is being
/// deleted, only those of its sources.
pub(crate) fn problems(
    fleet: &Fleet<'_>,
    home: usize,
    declaring: &Observed<'_>,
    sync: &Sync,
    now: Timestamp,
) -> Vec<Problem> {
    let (objects, sources) = (fleet.objects(home), &fleet.sources);
    let mut keys = Reader { home, objects, observed: declaring, now, sources }.sources();
    keys.retain(is_source);
    let mut found: Vec<Problem> =
        keys.iter().filter_map(|key| sources.problem(objects, home, key, now)).collect();
    let fetched = keys.last().and_then(|key| sources.read(objects, home, key).fetched);
    // The controller of an app that is being deleted applies no revisions.
    if text(declaring.object.root(), &["metadata", "deletionTimestamp"]).is_some() {
        return found;
    }
    if sync.state == SyncState::Suspended {
        // A suspended app keeps the problem that it had.
        found.extend(failure(&declaring.object, now).map(|message| {
            let problem = Problem::new(Axis::Sync, "Failed", ProblemSeverity::Error);
            problem.since(failed_at(&declaring.object)).says(message).about(declaring.key)
        }));
    } else if sync.state == SyncState::OutOfSync && is_unseen(declaring, sync) {
        // Without a time the change may have been made a moment ago.
        let since = written(&declaring.object, &["spec"]);
        let severity = match since {
            Some(since) if elapsed(objects, since, MAX_UNTRIED_TIME, now) >= MAX_UNTRIED_TIME => {
                Some(ProblemSeverity::Error)
            }
            Some(_) => None,
            None => Some(ProblemSeverity::Waiting),
        };
        let message = "the controller of the app has not observed its newest spec";
        let problem = severity.map(|severity| problem::untried(severity, since));
        found.extend(problem.map(|problem| problem.says(message).about(declaring.key)));
    } else if let Some(fetched) = fetched
        && sync.state == SyncState::OutOfSync
        && !waits(&declaring.object, now)
        // An app that was created or resumed after that has had less time.
        && let since = began(&declaring.object).map_or(fetched, |began| began.max(fetched))
        && elapsed(objects, since, MAX_UNTRIED_TIME, now) >= MAX_UNTRIED_TIME
    {
        let desired = sync.desired.as_deref().map(shorten).unwrap_or_default();
        let message = format!("the source has {desired}, and the controller of the app has not applied it");
        let problem = problem::untried(ProblemSeverity::Error, Some(since));
        found.push(problem.says(message).about(declaring.key));
    }
    found
}

/// Returns the time of the last write to an object's spec, or of its creation, whichever is later; `None` if neither is
/// known.
fn began(object: &Object<'_>) -> Option<Timestamp> {
    written(object, &["spec"]).max(time(object.at(&["metadata", "creationTimestamp"])))
}

/// Returns the message of the failure, perhaps empty, of a Kustomization or HelmRelease that has failed; `None` if it
/// has not.
fn failure(object: &Object<'_>, now: Timestamp) -> Option<String> {
    // The rules know if a reason means failing or waiting; other rules than these may change health, but not sync.
    let verdict = Taffrail.judge(object, &ObjectContext::default(), now).ok()?;
    if verdict.status != Status::Failed {
        return None;
    }
    // For a remedied release the message is that of the failure, not of the rollback.
    let is_remedied = Condition::find(object, "Remediated").is_some_and(|it| it.is("True"));
    let failed = is_remedied.then(|| failed_release(object)).flatten();
    Some(failed.map_or_else(|| verdict.message.into_owned(), |condition| condition.text("message")))
}

/// Returns the condition by which a HelmRelease reports that an installation, upgrade or test failed; `None` if none
/// did.
pub(super) fn failed_release<'a>(object: &Object<'a>) -> Option<Condition<'a>> {
    let mut conditions =
        ["Released", "TestSuccess"].into_iter().filter_map(|name| Condition::find(object, name));
    conditions.find(|condition| condition.is("False"))
}

/// Returns the last transition of the condition `Ready` of a Kustomization or HelmRelease; `None` if the condition is
/// true, missing or without a time.
pub(crate) fn failed_at(object: &Object<'_>) -> Option<Timestamp> {
    // A condition that is True changed when all was well.
    Condition::find(object, "Ready").filter(|ready| !ready.is("True"))?.since()
}

/// Returns true if a Flux object waits for a dependency: it is in progress, and its condition `Ready` is false.
fn waits(object: &Object<'_>, now: Timestamp) -> bool {
    let is_in_progress = Taffrail
        .judge(object, &ObjectContext::default(), now)
        .is_ok_and(|it| it.status == Status::InProgress);
    is_in_progress && Condition::find(object, "Ready").is_some_and(|ready| ready.is("False"))
}

/// Returns the desired revision if it differs from the applied one, which may be its chart version (see
/// [`is_chart_of`]); `None` if it does not, or if either is unknown.
pub(crate) fn newer(sync: &Sync) -> Option<&str> {
    let (applied, desired) = (sync.applied.as_deref()?, sync.desired.as_deref()?);
    (!is_chart_of(applied, desired)).then_some(desired)
}

/// Returns true if the desired revision is applied but the controller has not observed the newest spec.
pub(crate) fn is_unseen(declaring: &Observed<'_>, sync: &Sync) -> bool {
    let is_applied = sync.applied.is_some() && sync.desired.is_some() && newer(sync).is_none();
    let number = |value: Option<Value<'_>>| value.and_then(Value::as_i64);
    let generation = number(declaring.object.at(&["metadata", "generation"]));
    let ready = declaring.object.condition("Ready");
    let observed = [
        number(declaring.object.at(&["status", "observedGeneration"])),
        number(ready.and_then(|ready| ready.get("observedGeneration"))),
    ];
    is_applied && observed.into_iter().flatten().any(|observed| Some(observed) < generation)
}

/// A reader of one Flux object that declares an app.
struct Reader<'r, 'a> {
    home: usize,
    objects: &'a dyn Objects,
    observed: &'r Observed<'a>,
    now: Timestamp,
    sources: &'r Sources,
}

impl<'a> Reader<'_, 'a> {
    fn object(&self) -> &Object<'a> {
        &self.observed.object
    }

    fn text(&self, path: &[&str]) -> Option<String> {
        text(self.object().root(), path)
    }

    /// Returns the keys of the sources that the object names: see [`sources()`].
    fn sources(&self) -> Vec<ObjectKey> {
        let named = |path: &[&str]| self.object().at(path).and_then(|reference| self.reference(reference));
        match self.observed.key.kind {
            "HelmRelease" if named(&["spec", "chartRef"]).is_none() => {
                named(&["spec", "chart", "spec", "sourceRef"]).into_iter().chain(self.chart()).collect()
            }
            "HelmRelease" => {
                let chart = named(&["spec", "chartRef"]);
                let of_chart = chart.as_ref().and_then(|chart| {
                    let is_chart = chart.kind == "HelmChart" && is_source(chart);
                    self.source(chart).filter(|_| is_chart)?.origin.as_ref().map(|origin| origin.key.clone())
                });
                of_chart.into_iter().chain(chart).collect()
            }
            _ => named(&["spec", "sourceRef"]).into_iter().collect(),
        }
    }

    /// Returns the parsed source `key`; `None` if its kind is not one of Flux's sources.
    fn source(&self, key: &ObjectKey) -> Option<Arc<KnownSource>> {
        is_source(key).then(|| self.sources.read(self.objects, self.home, key))
    }

    /// Describes a source by kind, namespace and name; if it is a Flux source, also by URL and reference.
    fn describe(&self, key: &ObjectKey) -> Source {
        match self.source(key) {
            Some(known) => known.describe(key),
            None => undescribed(key),
        }
    }

    fn is_suspended(&self) -> bool {
        self.object().at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true)
    }

    fn kustomization(&self, notes: &mut Notes) -> Declaration {
        let source = self.object().at(&["spec", "sourceRef"]).and_then(|reference| self.reference(reference));
        let artifact = self.artifact(source.as_ref(), notes);
        let applied = self.text(&["status", "lastAppliedRevision"]);
        let attempted = self.text(&["status", "lastAttemptedRevision"]);
        let last_success = self.last_success();
        let (state, trouble) =
            self.sync(&artifact, applied.as_deref(), attempted.as_deref(), |one, two| one == two);
        let sync = Sync { state, desired: artifact.revision(), attempted, applied, last_success };
        let source = source.map(|key| Source { path: self.text(&["spec", "path"]), ..self.describe(&key) });
        Declaration {
            objects: self.inventory(notes).unwrap_or_default().into(),
            ..self.declaration(Delivery::FluxKustomization, sync, trouble, source)
        }
    }

    fn helm_release(&self, notes: &mut Notes) -> (Declaration, DeclaredRelease) {
        let artifact = self.artifact(self.chart().as_ref(), notes);
        let deployed = self.newest(|status| matches!(status, "deployed" | "superseded"));
        // Versions of the API before v2 have no history.
        let applied = match deployed {
            Some(snapshot) => text(snapshot, &["chartVersion"]),
            None if self.object().at(&["status", "history"]).is_none_or(Value::is_null) => {
                self.text(&["status", "lastAppliedRevision"])
            }
            None => None,
        };
        let attempted = self.text(&["status", "lastAttemptedRevision"]);
        let last_success = deployed.and_then(|snapshot| time(snapshot.get("lastDeployed")));
        let (state, trouble) = self.sync(&artifact, applied.as_deref(), attempted.as_deref(), is_chart_of);
        let sync = Sync { state, desired: artifact.revision(), attempted, applied, last_success };
        let inventory = self.inventory(notes);
        let own = self.observed.key.namespace;
        let release = DeclaredRelease {
            names: self.release_names().collect(),
            storage_namespace: self.storage_namespace(),
            delivered: self.text(&["spec", "targetNamespace"]).unwrap_or_else(|| own.to_owned()),
            has_inventory: inventory.is_some(),
            latest: self.latest_stored(),
        };
        let app = Declaration {
            objects: inventory.unwrap_or_default().into(),
            ..self.declaration(Delivery::FluxHelmRelease, sync, trouble, self.chart_source())
        };
        (app, release)
    }

    fn declaration(
        &self,
        delivery: Delivery,
        sync: Sync,
        trouble: Option<String>,
        source: Option<Source>,
    ) -> Declaration {
        let ObjectKeyRef { namespace, name, .. } = self.observed.key;
        let message = Condition::find(self.object(), "Ready").map(|ready| ready.text("message"));
        Declaration {
            home: self.home,
            destination: Destination::Cluster(self.home),
            delivery,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            key: AppKey::of(delivery, namespace, name, Some(self.object())),
            declaring: Some(self.observed.key.to_owned()),
            objects: ObjectKeys::default(),
            never_reconciled: false,
            unreadable: None,
            sync,
            suspended: self.is_suspended(),
            message: message.unwrap_or_default(),
            trouble,
            source,
            delivered_by: None,
            checks: Vec::new(),
            claimant: Claimant::in_namespace(
                self.home,
                namespace,
                vec![Mark::of_kustomization(namespace, name)],
            ),
        }
    }

    /// Returns the cluster that the object names as its target: that of its kubeconfig, else of its ConfigMap, else its
    /// own.
    fn target(&self, addresses: &Addresses) -> Target {
        let place = |kind, name: String| ObjectKey::new("", kind, &*self.observed.key.namespace, name);
        let config = |path: &[&str]| self.text(&[&["spec", "kubeConfig"], path].concat());
        if let Some(name) = config(&["secretRef", "name"]) {
            let (secret, key) = (place("Secret", name), config(&["secretRef", "key"]));
            return addresses.of_kubeconfig(self.objects, self.home, &secret, key.as_deref());
        }
        if let Some(name) = config(&["configMapRef", "name"]) {
            return addresses.of_config_map(self.objects, self.home, &place("ConfigMap", name));
        }
        Target::Home
    }

    /// Returns the objects in the status inventory; `None` without an inventory. Malformed entries are
    /// reported in `notes`.
    fn inventory(&self, notes: &mut Notes) -> Option<Vec<ObjectKey>> {
        let entries = self.object().at(&["status", "inventory", "entries"]);
        if entries.is_none() && self.object().at(&["status", "inventory"]).is_none_or(Value::is_null) {
            return None;
        }
        let mut bad = super::Malformed::of(self.home, self.observed.key);
        let entries = super::entries(entries, self.home, self.observed.key, notes);
        let objects = super::gather(entries.filter_map(|entry| {
            let id = text(entry, &["id"]).unwrap_or_default();
            let key = inventory_id::parse(&id).map_err(|error| error.to_string());
            let named = key.and_then(|key| match names::check(&key) {
                Ok(()) => Ok(key),
                Err(error) => Err(format!("an inventory entry is not a valid object reference: {error}")),
            });
            named.map_err(|what| bad.add(what, notes)).ok()
        }));
        bad.finish(notes);
        Some(objects)
    }

    /// Returns the sync state, and if it is Failed or Unknown, Flux's message or the reason why the desired revision is
    /// not known. `is_same` is called with an applied or tried revision and the desired one.
    fn sync(
        &self,
        artifact: &Artifact,
        applied: Option<&str>,
        attempted: Option<&str>,
        is_same: fn(&str, &str) -> bool,
    ) -> (SyncState, Option<String>) {
        let ready = Condition::find(self.object(), "Ready");
        if self.is_suspended() {
            return (SyncState::Suspended, None);
        }
        if let Some(message) = failure(self.object(), self.now) {
            return (SyncState::Failed, Some(message));
        }
        let verdict = Taffrail.judge(self.object(), &ObjectContext::default(), self.now).ok();
        let status = verdict.map(|verdict| verdict.status);
        // `Reconciling` is true also of an app that waits for a dependency: there `Ready` says so.
        let progressing =
            |ready: &Condition<'_>| ready.is("Unknown") || ready.text("reason") == "Progressing";
        let reconciling = Condition::find(self.object(), "Reconciling").is_some_and(|it| it.is("True"));
        let waiting = ready.as_ref().is_some_and(|ready| ready.is("False") && !progressing(ready));
        if status == Some(Status::InProgress)
            && !waiting
            && (reconciling || ready.as_ref().is_some_and(progressing))
        {
            return (SyncState::Syncing, None);
        }
        let desired = match artifact {
            Artifact::Revision(revision) => revision,
            // The message of its last success is not a reason.
            Artifact::Nothing => {
                let own = ready.as_ref().filter(|ready| !ready.is("True")).map(|ready| ready.text("message"));
                let trouble = own.unwrap_or_else(|| "the source of the app has no artifact".to_owned());
                return (SyncState::Unknown, Some(trouble));
            }
            Artifact::Unknown(why) => return (SyncState::Unknown, Some(why.clone())),
        };
        let holds = |revision: Option<&str>| revision.is_some_and(|revision| is_same(revision, desired));
        // An app that waits may have nothing else to do: then it is out of sync only if its newest spec was
        // not observed.
        let seen = match status {
            Some(Status::InProgress) => waiting && self.was_observed(),
            Some(Status::Terminating) => ready.as_ref().is_some_and(|ready| ready.is("True")),
            _ => true,
        };
        if holds(applied) && (attempted.is_none() || holds(attempted)) && seen {
            (SyncState::Synced, None)
        } else {
            (SyncState::OutOfSync, None)
        }
    }

    /// Returns true if the controller has observed the newest generation of the spec.
    fn was_observed(&self) -> bool {
        let number = |path: &[&str]| self.object().at(path).and_then(Value::as_i64);
        number(&["status", "observedGeneration"]) == number(&["metadata", "generation"])
    }

    fn last_success(&self) -> Option<Timestamp> {
        let succeeded = |entry: &Value<'_>| {
            entry.get("lastReconciledStatus").is_some_and(|status| status.is_str("ReconciliationSucceeded"))
        };
        let history = self.history().into_iter().filter(succeeded);
        let newest = history.filter_map(|entry| time(entry.get("lastReconciled"))).max();
        newest.or_else(|| Condition::find(self.object(), "Ready").filter(|ready| ready.is("True"))?.since())
    }

    /// Returns the entries of `status.history` in their order; of more than [`MAX_HISTORY`] only those with the highest
    /// versions, the highest first.
    fn history(&self) -> Vec<Value<'a>> {
        let history = self.object().at(&["status", "history"]).and_then(Value::items);
        let mut history: Vec<_> = history.into_iter().flatten().collect();
        if history.len() > MAX_HISTORY {
            let version = |entry: &Value<'a>| entry.get("version").and_then(Value::as_i64);
            history.sort_by_cached_key(|entry| Reverse(version(entry)));
            history.truncate(MAX_HISTORY);
        }
        history
    }

    /// Returns the entry of [`history`](Self::history) with the highest version among those whose status `wanted`
    /// accepts; `None` if there is none.
    fn newest(&self, wanted: impl Fn(&str) -> bool) -> Option<Value<'a>> {
        let version = |snapshot: &Value<'_>| snapshot.get("version").and_then(Value::as_i64);
        let is_wanted = |snapshot: &Value<'_>| wanted(&text(*snapshot, &["status"]).unwrap_or_default());
        self.history().into_iter().filter(is_wanted).max_by_key(version)
    }

    /// Returns the revision that was tried last and the time at which its source was fetched; `None` if `is_it`, called
    /// with that revision and the source's present one, is false, or if one of these is not known.
    fn fetched(
        &self,
        source: Option<ObjectKey>,
        is_it: impl Fn(&str, &str) -> bool,
    ) -> Option<(Timestamp, String)> {
        let attempted = self.text(&["status", "lastAttemptedRevision"])?;
        let source = self.source(&source?)?;
        source.artifact.revision().filter(|revision| is_it(&attempted, revision))?;
        Some((source.fetched?, attempted))
    }

    fn reconciliations(&self) -> Vec<AppliedRevision> {
        let read = |entry: Value<'a>| {
            let first = time(entry.get("firstReconciled"))?;
            let is_first = entry.get("totalReconciliations").and_then(Value::as_i64) == Some(1);
            let took = text(entry, &["lastReconciledDuration"]).filter(|_| is_first);
            let took = took.and_then(|took| duration::parse(&took)).unwrap_or_default();
            Some((first.checked_sub(took).unwrap_or(first), text(entry, &["metadata", "revision"])?))
        };
        let past: Vec<_> = self.history().into_iter().filter_map(read).collect();
        let source = self.object().at(&["spec", "sourceRef"]).and_then(|reference| self.reference(reference));
        let Some((when, to)) = self.fetched(source, |one, other| one == other) else {
            return one_after_another(past);
        };
        let applied = self.text(&["status", "lastAppliedRevision"]).filter(|applied| *applied != to);
        let older: Vec<_> = past.into_iter().filter(|(_, revision)| *revision != to).collect();
        let from = applied.or_else(|| older.iter().max().map(|(_, revision)| revision.clone()));
        let mut found = one_after_another(older);
        found.push(AppliedRevision { when, from, to: Some(to), fields: Vec::new() });
        found
    }

    fn releases(&self) -> Vec<AppliedRevision> {
        let number = |snapshot: &Value<'a>| snapshot.get("version").and_then(Value::as_i64);
        let is =
            |snapshot: &Value<'a>, status: &str| snapshot.get("status").is_some_and(|own| own.is_str(status));
        let mut past = self.history();
        past.sort_by_key(number);
        // The failed upgrade that helm-controller rolled back is the change, not the rollback.
        let is_remedied = Condition::find(self.object(), "Remediated").is_some_and(|it| it.is("True"));
        let mut before: Option<Value<'a>> = None;
        if is_remedied
            && let [.., failed, restored] = past.as_slice()
            && is(failed, "failed")
        {
            // The history does not keep the restored version, but the entry that restored it shows it.
            before = Some(*restored).filter(|_| past.len() == 2);
            past.pop();
        }
        let mut found: Vec<AppliedRevision> = Vec::new();
        for snapshot in past {
            let to = text(snapshot, &["chartVersion"]);
            let from = before.and_then(|before| text(before, &["chartVersion"]));
            let configured = |snapshot: Value<'a>| text(snapshot, &["configDigest"]);
            let other_values = before.is_some_and(|before| configured(before) != configured(snapshot));
            if let Some(when) = time(snapshot.get("lastDeployed"))
                && (from != to || other_values)
            {
                let fields = if other_values { vec!["values".to_owned()] } else { Vec::new() };
                found.push(AppliedRevision { when, from, to, fields });
            }
            before = Some(snapshot);
        }
        let newest = before.and_then(|snapshot| text(snapshot, &["chartVersion"]));
        if let Some((when, to)) = self.fetched(self.chart(), is_chart_of)
            && newest.as_ref() != Some(&to)
            && found.iter().all(|applied| applied.to.as_ref() != Some(&to))
        {
            found.push(AppliedRevision { when, from: newest, to: Some(to), fields: Vec::new() });
        }
        found
    }

    /// Returns the object that `reference` names, by default in the namespace of this object; `None` if it
    /// names none.
    fn reference(&self, reference: Value<'_>) -> Option<ObjectKey> {
        self::reference(reference, self.observed.key.namespace)
    }

    fn artifact(&self, source: Option<&ObjectKey>, notes: &mut Notes) -> Artifact {
        let Some(key) = source else { return Artifact::Unknown("the app names no source".to_owned()) };
        if !is_source(key) {
            return Artifact::Unknown(format!("{} {} is not a Flux source", key.group_kind(), key.path()));
        }
        let known = self.sources.read(self.objects, self.home, key);
        if known.is_unobserved {
            notes.lacking.insert_for(self.observed.key.namespace, (self.home, key.clone()));
        }
        known.artifact.clone()
    }

    /// Returns the HelmChart or OCIRepository whose artifact is the chart of a HelmRelease; `None` if its `chartRef`
    /// names no object.
    fn chart(&self) -> Option<ObjectKey> {
        if let Some(reference) = self.object().at(&["spec", "chartRef"]) {
            return self.reference(reference);
        }
        let own = self.observed.key.namespace;
        let named = self.text(&["status", "helmChart"]);
        let (namespace, name) = match named.as_deref().and_then(|named| named.split_once('/')) {
            Some((namespace, name)) => (namespace.to_owned(), name.to_owned()),
            None => {
                let namespace = self.text(&["spec", "chart", "spec", "sourceRef", "namespace"]);
                (namespace.unwrap_or_else(|| own.to_owned()), format!("{own}-{}", self.observed.key.name))
            }
        };
        Some(ObjectKey::new(SOURCE, "HelmChart", namespace, name))
    }

    fn chart_source(&self) -> Option<Source> {
        if let Some(reference) = self.object().at(&["spec", "chartRef"]) {
            let key = self.reference(reference)?;
            let known = self.source(&key);
            let origin = known.as_ref().and_then(|known| known.origin.as_ref());
            return Some(match origin {
                Some(Origin { key, chart, version }) => {
                    Source { path: chart.clone(), reference: version.clone(), ..self.describe(key) }
                }
                None => self.describe(&key),
            });
        }
        let chart = self.object().at(&["spec", "chart", "spec"])?;
        let key = self.reference(chart.get("sourceRef")?)?;
        let (path, reference) = (text(chart, &["chart"]), text(chart, &["version"]));
        Some(Source { path, reference, ..self.describe(&key) })
    }

    /// Returns the names that the HelmRelease's Helm release has, or had according to its history; the present name
    /// first, each once.
    fn release_names(&self) -> impl Iterator<Item = ReleaseName> {
        let past = self.history().into_iter().filter_map(|snapshot| text(snapshot, &["name"]));
        let mut known = HashSet::new();
        [ReleaseName::of(self.object())]
            .into_iter()
            .chain(past.map(ReleaseName::Exact))
            .filter(move |name| known.insert(name.clone()))
    }

    fn storage_namespace(&self) -> String {
        let named = [["status", "storageNamespace"], ["spec", "storageNamespace"]];
        let named = named.iter().find_map(|path| self.text(path));
        named.unwrap_or_else(|| self.observed.key.namespace.to_owned())
    }

    /// Returns the Secret that stores the newest version of the HelmRelease's release by its status; `None` if the
    /// status has no version. Its name has a `…` if the status does not tell the name of the release, and that is too
    /// long to know.
    fn latest_stored(&self) -> Option<ObjectKey> {
        let latest = self.newest(|_| true);
        let version = latest.and_then(|snapshot| snapshot.get("version")).and_then(Value::as_i64);
        let version = version.or_else(|| self.object().at(&["status", "lastReleaseRevision"])?.as_i64());
        let version = version.filter(|version| *version > 0)?;
        let name = match latest.and_then(|snapshot| text(snapshot, &["name"])) {
            Some(name) => name,
            None => match ReleaseName::of(self.object()) {
                ReleaseName::Exact(name) => name,
                ReleaseName::Shortened(kept) => format!("{kept}…"),
            },
        };
        Some(helm_storage::storage_key(&self.storage_namespace(), &name, version))
    }
}

/// Returns the problem of a Flux app whose reconciliation has taken [`MAX_UNTRIED_TIME`] or longer, or began at an
/// unknown time; `None` before, or if it has ended. It is an error after [`late::MAX_SYNC_TIME`], or after the timeout
/// in the spec if that is longer.
pub(crate) fn syncing(home: &dyn Objects, object: &Object<'_>, now: Timestamp) -> Option<Problem> {
    let timeout = object.at(&["spec", "timeout"]).and_then(Value::as_str);
    let timeout = timeout.and_then(|timeout| span(&timeout)).unwrap_or(late::MAX_SYNC_TIME);
    let ready = Condition::find(object, "Ready").filter(|ready| !ready.is("True"));
    let condition =
        ready.or_else(|| Condition::find(object, "Reconciling").filter(|condition| condition.is("True")))?;
    let problem = late::problem(home, condition.since(), late::MAX_SYNC_TIME.max(timeout), now)?;
    let says = late::because("the reconciliation of the app takes long", &condition.text("message"));
    Some(problem.says(says))
}

/// Returns true if the chart version that helm-controller reports is that of an artifact with this revision.
///
/// For a chart from an OCI repository, whose artifact's revision is `tag@sha256:<digest>` or a bare digest,
/// helm-controller writes the version with the start of the digest as build metadata.
fn is_chart_of(version: &str, revision: &str) -> bool {
    if version == revision {
        return true;
    }
    let (tag, digest) = match revision.split_once('@') {
        Some((tag, digest)) => (tag, digest),
        None => ("", revision),
    };
    let Some((_, digest)) = digest.split_once(':') else { return false };
    match version.split_once('+') {
        Some((_, metadata)) if metadata.len() >= 7 => digest.starts_with(metadata),
        Some(_) => false,
        None => version == tag,
    }
}

/// Returns the object that a source reference names, in `namespace` unless it names another; `None` if it names
/// none.
fn reference(reference: Value<'_>, namespace: &str) -> Option<ObjectKey> {
    let [version, own, kind, name] = reference.pick(["apiVersion", "namespace", "kind", "name"]);
    let field = |value: Option<Value<'_>>| value.and_then(|value| text(value, &[]));
    let version = field(version).unwrap_or_default();
    let group = version.split_once('/').map_or(SOURCE, |(group, _)| group);
    let namespace = field(own).unwrap_or_else(|| namespace.to_owned());
    Some(ObjectKey::new(group, field(kind).unwrap_or_default(), namespace, field(name)?))
}

/// Describes a source by kind, namespace and name alone.
fn undescribed(key: &ObjectKey) -> Source {
    Source {
        kind: key.kind.clone(),
        namespace: Some(key.namespace.clone()),
        name: Some(key.name.clone()),
        url: None,
        path: None,
        reference: None,
    }
}
