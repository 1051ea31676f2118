//! Rows that are kept up to date equal those that are found from nothing, after whatever changes.

use std::collections::HashMap;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use taffrail_apps::{
    Answer, App, AppLabels, AppList, AppRef, AppRows, ChangeBatch, ChangedRows, Freshness, FreshnessState,
    Objects, Read, RowWork, Scope, ScopeError, Snapshot, Target, apps_by,
};
use taffrail_object::{Object, ObjectKey, Projection};
use taffrail_status::{ActiveRules, ClusterState as _};

use crate::dump::{NOW, document};
use crate::golden;
use crate::random::Random;

/// Clusters that change, and the rows that follow.
struct World {
    random: Random,
    snapshots: Vec<Snapshot>,
    gone: Vec<(usize, Value)>,
    now: Timestamp,
    rows: AppRows,
    /// The rows as somebody knows them who only takes those that changed.
    taken: HashMap<AppRef, Vec<App>>,
    /// The steps since the last look.
    told: Vec<String>,
}

fn key_of(object: &Value) -> ObjectKey {
    ObjectKey::of(&Object::new(object.into()).unwrap())
}

fn tree(snapshot: &Snapshot, key: &ObjectKey) -> Option<Value> {
    snapshot.get(key.as_ref()).present()?.object.root().to_tree().ok()
}

fn list_of(key: &ObjectKey, name: Option<&str>, projection: Projection) -> Read {
    let target = match name {
        Some(name) => Target::Object(name.to_owned()),
        None => Target::List { labels: None, fields: None },
    };
    Read {
        group: key.group.clone(),
        version: "v1".to_owned(),
        kind: key.kind.clone(),
        plural: format!("{}s", key.kind.to_lowercase()),
        namespace: name.map(|_| key.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        projection,
        target,
    }
}

/// The labels and annotations by which objects belong to apps.
const MARKS: [(&str, &str); 12] = [
    ("labels", "app.kubernetes.io/instance"),
    ("labels", "app.kubernetes.io/part-of"),
    ("labels", "kustomize.toolkit.fluxcd.io/name"),
    ("labels", "kustomize.toolkit.fluxcd.io/namespace"),
    ("labels", "helm.toolkit.fluxcd.io/name"),
    ("labels", "helm.toolkit.fluxcd.io/namespace"),
    ("annotations", "meta.helm.sh/release-name"),
    ("annotations", "meta.helm.sh/release-namespace"),
    ("annotations", "argocd.argoproj.io/tracking-id"),
    ("annotations", "config.k8s.io/owning-inventory"),
    ("annotations", "configsync.gke.io/manager"),
    ("annotations", "helm.sh/hook"),
];

/// The lists in which apps name their objects.
const LISTS: [&str; 4] =
    ["/status/inventory/entries", "/status/resources", "/spec/resources", "/status/history"];

impl World {
    fn new(seed: u64, snapshots: Vec<Snapshot>) -> World {
        World {
            random: Random::new(seed),
            snapshots,
            gone: Vec::new(),
            now: NOW,
            rows: AppRows::new(AppLabels::default()),
            taken: HashMap::new(),
            told: Vec::new(),
        }
    }

    fn clusters(&self) -> Vec<&dyn Objects> {
        self.snapshots.iter().map(|snapshot| snapshot as &dyn Objects).collect()
    }

    fn look(&mut self) -> RowWork {
        let changes: Vec<ChangeBatch> = self.snapshots.iter_mut().map(Snapshot::take_changes).collect();
        let clusters: Vec<&dyn Objects> = self.snapshots.iter().map(|it| it as &dyn Objects).collect();
        self.rows.look(&clusters, &changes, &ActiveRules::default(), self.now)
    }

    /// Takes the rows that changed. Of rows with one name, the indexes of all count.
    fn take_changed(&mut self) -> ChangedRows {
        let changed = self.rows.take_changed();
        let apps = &self.rows.list().apps;
        if changed.is_all {
            self.taken.clear();
        }
        changed.gone.iter().for_each(|app| drop(self.taken.remove(app)));
        let all = if changed.is_all { (0..apps.len()).collect() } else { changed.changed.clone() };
        for place in all {
            let name = &apps[place].app;
            let of_name = apps.iter().filter(|app| app.app == *name).cloned().collect();
            self.taken.insert(name.clone(), of_name);
        }
        changed
    }

    /// Compares the rows that were taken with the list, apart from the time at which live ones were observed.
    fn check_taken(&self) {
        let timeless = |app: &App| {
            let mut app = app.clone();
            for freshness in [&mut app.freshness, &mut app.home_freshness] {
                freshness.observed_at = freshness.observed_at.filter(|_| !freshness.is_live());
            }
            app
        };
        let mut listed: HashMap<AppRef, Vec<App>> = HashMap::new();
        for app in &self.rows.list().apps {
            listed.entry(app.app.clone()).or_default().push(timeless(app));
        }
        let taken: HashMap<AppRef, Vec<App>> = (self.taken.iter())
            .map(|(name, apps)| (name.clone(), apps.iter().map(timeless).collect()))
            .collect();
        assert_eq!(taken, listed, "{:?}", self.told);
    }

    fn whole(&self) -> AppList {
        apps_by(&AppLabels::default(), &self.clusters(), &ActiveRules::default(), self.now)
    }

    fn insert(&mut self, cluster: usize, object: &Value) {
        let projection = match self.random.below(20) {
            0 => Projection::Metadata,
            _ => Projection::Full,
        };
        // Metadata never replaces a whole object.
        if projection == Projection::Metadata {
            self.snapshots[cluster].remove(&key_of(object));
        }
        self.snapshots[cluster].insert(document(object), projection).unwrap();
    }

    /// Picks an object of a cluster.
    fn pick(&mut self) -> Option<(usize, ObjectKey, Value)> {
        let cluster = self.random.below(self.snapshots.len());
        let snapshot = &self.snapshots[cluster];
        let keys: Vec<ObjectKey> = snapshot.all().map(|observed| observed.key.to_owned()).collect();
        if keys.is_empty() {
            return None;
        }
        let key = self.random.pick(&keys).clone();
        let object = tree(&self.snapshots[cluster], &key)?;
        Some((cluster, key, object))
    }

    /// Picks another object of the kind of one.
    fn pick_alike(&mut self, cluster: usize, key: &ObjectKey) -> Option<Value> {
        let snapshot = &self.snapshots[cluster];
        let keys: Vec<ObjectKey> = snapshot
            .of_kind(&key.group, &key.kind, None)
            .map(|observed| observed.key.to_owned())
            .filter(|own| own != key)
            .collect();
        let other = (!keys.is_empty()).then(|| self.random.pick(&keys).clone())?;
        tree(&self.snapshots[cluster], &other)
    }

    fn moment(&mut self) -> String {
        let ago = *self.random.pick(&[0, 5, 14, 16, 100, 170, 290, 550, 590, 700, 3_500, 4_000]);
        (self.now - SignedDuration::from_secs(ago)).to_string()
    }

    fn step(&mut self) {
        let what = self.random.below(20);
        if what == 0 {
            let seconds = *self.random.pick(&[1, 9, 10, 15, 60, 180, 300, 600, 3_600]);
            self.now += SignedDuration::from_secs(seconds);
            return self.told.push(format!("{seconds} seconds pass"));
        }
        if what == 1 && self.random.below(6) == 0 {
            self.now -= SignedDuration::from_secs(30);
            return self.told.push("the clock goes back".to_owned());
        }
        if what == 3 && self.random.below(5) == 0 {
            return self.read_again();
        }
        if what == 2
            && let Some((cluster, object)) = self.gone.pop()
        {
            self.told.push(format!("{} comes back", key_of(&object)));
            return self.insert(cluster, &object);
        }
        let Some((cluster, key, mut object)) = self.pick() else { return };
        if what < 5 {
            return self.scope_changes(cluster, &key);
        }
        match what {
            5 | 6 => self.status_changes(&mut object),
            7 | 8 => self.mark_moves(&mut object),
            9 => {
                // A part of another object of its kind.
                let Some(other) = self.pick_alike(cluster, &key) else { return };
                let part = *self.random.pick(&["status", "spec", "data"]);
                match other.get(part) {
                    Some(value) => object[part] = value.clone(),
                    None => drop(object.as_object_mut().unwrap().remove(part)),
                }
            }
            10 | 11 => {
                self.told.push(format!("{key} goes"));
                self.snapshots[cluster].remove(&key);
                return self.gone.push((cluster, object));
            }
            12 => {
                let Some((_, owner_key, owner)) = self.pick() else { return };
                let uid = owner["metadata"]["uid"].clone();
                let version = owner["apiVersion"].clone();
                object["metadata"]["ownerReferences"] = match self.random.below(3) {
                    0 => json!([]),
                    at => json!([{"apiVersion": version, "kind": owner_key.kind, "name": owner_key.name,
                        "uid": uid, "controller": at == 1}]),
                };
            }
            13 => {
                let (when, which) = (self.moment(), self.random.below(2));
                let metadata = object["metadata"].as_object_mut().unwrap();
                match which {
                    0 => drop(metadata.insert("deletionTimestamp".to_owned(), json!(when))),
                    _ => drop(metadata.remove("deletionTimestamp")),
                }
                metadata.insert("creationTimestamp".to_owned(), json!(when));
            }
            14 | 15 => {
                // An entry of one list goes to another.
                let list = *self.random.pick(&LISTS);
                let Some(entries) = object.pointer_mut(list).and_then(Value::as_array_mut) else { return };
                if entries.is_empty() {
                    return;
                }
                let entry = entries.remove(self.random.below(entries.len()));
                let Some(mut other) = self.pick_alike(cluster, &key) else { return };
                if let Some(entries) = other.pointer_mut(list).and_then(Value::as_array_mut) {
                    entries.push(entry);
                    let other_key = key_of(&other);
                    self.told.push(format!("{other_key} gets an entry"));
                    self.insert(cluster, &other);
                }
            }
            16 | 17 => {
                let when = self.moment();
                let number = self.random.below(5);
                let (reason, message) = *self.random.pick(&[
                    ("BackOff", "Back-off restarting failed container"),
                    ("FailedCreate", "exceeded quota"),
                    ("FailedMount", "cannot mount"),
                    ("ScalingReplicaSet", "Scaled down"),
                    ("TriggeredScaleUp", "pod triggered scale-up"),
                ]);
                let namespace = match &*key.namespace {
                    "" => "default",
                    namespace => namespace,
                };
                object = json!({"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": reason,
                    "message": message, "lastTimestamp": when, "count": 4,
                    "metadata": {"namespace": namespace, "name": format!("e{number}")},
                    "involvedObject": {"kind": key.kind, "namespace": key.namespace, "name": key.name}});
            }
            18 => {
                let flag = *self.random.pick(&["suspend", "paused"]);
                let is_set = self.random.below(2) == 0;
                match object.get_mut("spec").and_then(Value::as_object_mut) {
                    Some(spec) => drop(spec.insert(flag.to_owned(), json!(is_set))),
                    None => object["spec"] = json!({flag: is_set}),
                }
            }
            _ => {
                let generation = self.random.below(3);
                object["metadata"]["generation"] = json!(generation);
                if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
                    status.insert("observedGeneration".to_owned(), json!(self.random.below(3)));
                }
            }
        }
        self.told.push(format!("{what}: {}", key_of(&object)));
        self.insert(cluster, &object);
    }

    /// Reads a cluster again, with an object fewer.
    fn read_again(&mut self) {
        let Some((cluster, key, object)) = self.pick() else { return };
        self.told.push(format!("{cluster} is read again, without {key}"));
        self.snapshots[cluster] = self.snapshots[cluster].copied();
        self.snapshots[cluster].remove(&key);
        self.gone.push((cluster, object));
    }

    fn status_changes(&mut self, object: &mut Value) {
        let when = self.moment();
        let status = *self.random.pick(&["True", "False", "Unknown"]);
        if let Some(conditions) = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut)
            && !conditions.is_empty()
        {
            let at = self.random.below(conditions.len());
            conditions[at]["status"] = json!(status);
            conditions[at]["lastTransitionTime"] = json!(when);
        }
        if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
            for (name, value) in status {
                if let Value::Number(_) = value {
                    *value = json!(self.random.below(4));
                } else if name == "phase" {
                    *value = json!(self.random.pick(&[
                        "Running",
                        "Pending",
                        "Failed",
                        "Succeeded",
                        "Bound",
                        "Lost"
                    ]));
                }
            }
        }
        if let Some(state) = object.pointer_mut("/status/sync/status") {
            *state = json!(self.random.pick(&["Synced", "OutOfSync", "Unknown"]));
        }
        if let Some(revision) = object.pointer_mut("/status/artifact/revision") {
            *revision = json!(format!("main@sha1:{}", self.random.below(3)));
        }
    }

    fn mark_moves(&mut self, object: &mut Value) {
        let Some((_, _, other)) = self.pick() else { return };
        for (place, name) in MARKS {
            let value = other["metadata"][place].get(name).cloned();
            let metadata = object["metadata"].as_object_mut().unwrap();
            let marks = metadata.entry(place).or_insert_with(|| json!({}));
            if let Some(marks) = marks.as_object_mut() {
                match value {
                    Some(value) => drop(marks.insert(name.to_owned(), value)),
                    None if self.random.below(2) == 0 => drop(marks.remove(name)),
                    None => {}
                }
            }
        }
    }

    /// Changes what is known of more than one object.
    fn scope_changes(&mut self, cluster: usize, key: &ObjectKey) {
        let (at, which) = (self.now, self.random.below(9));
        let projection = *self.random.pick(&[Projection::Full, Projection::Metadata]);
        self.told.push(format!("scope {which} of {key}"));
        let snapshot = &mut self.snapshots[cluster];
        let (list, one) = (list_of(key, None, projection), list_of(key, Some(&key.name), projection));
        let refused = || Answer::Forbidden { message: "forbidden".to_owned() };
        match which {
            0 => snapshot.answer(&list, refused()),
            1 => snapshot.answer(&list, Answer::NotFound),
            2 => snapshot.answer(&list, Answer::Objects(Vec::new())),
            3 => snapshot.answer(&one, refused()),
            4 => snapshot.answer(&one, Answer::NotFound),
            5 => snapshot.forget(key),
            6 => snapshot.report(ScopeError {
                scope: Scope::Object(key.clone()),
                reason: "Timeout".to_owned(),
                message: "it took too long".to_owned(),
            }),
            7 => snapshot.forget_body(key),
            _ => {
                let state = *self.random.pick(&[FreshnessState::Live, FreshnessState::Lost]);
                snapshot.set_freshness(Freshness { state, observed_at: Some(at) });
                let scope = Scope::Kind { kind: key.group_kind(), namespace: None };
                let is_stale = *self.random.pick(&[true, false]);
                snapshot.set_stale_scopes(if is_stale { vec![(scope, at)] } else { Vec::new() });
            }
        }
    }
}

/// Returns how two lists differ, in words; nothing where they are equal.
pub(crate) fn difference(kept: &AppList, whole: &AppList) -> Option<String> {
    if kept == whole {
        return None;
    }
    let pairs = kept.apps.iter().zip(&whole.apps).find(|(kept, whole)| kept != whole);
    let words = match pairs {
        Some((kept, whole)) => format!("kept {kept:#?}\nfrom nothing {whole:#?}"),
        None if kept.apps.len() != whole.apps.len() => {
            let names = |list: &AppList| list.apps.iter().map(|app| app.app.to_string()).collect::<Vec<_>>();
            format!("kept {:?}\nfrom nothing {:?}", names(kept), names(whole))
        }
        None => format!("kept {:#?}\nfrom nothing {:#?}", kept.errors, whole.errors),
    };
    Some(words)
}

pub(crate) fn stays_equal(seed: u64, snapshots: Vec<Snapshot>, batches: usize) -> (usize, usize) {
    let mut world = World::new(seed, snapshots);
    world.look();
    world.take_changed();
    let (mut judged, mut all) = (0, 0);
    for batch in 0..batches {
        for _ in 0..=world.random.below(4) {
            world.step();
        }
        let looked = world.look();
        let whole = world.whole();
        if !looked.is_whole {
            judged += looked.judged;
            all += whole.apps.len();
        }
        if let Some(difference) = difference(world.rows.list(), &whole) {
            panic!("seed {seed}, batch {batch}, {:?}: {difference}", world.told);
        }
        // Changes add up where they are not taken each time.
        if world.random.below(3) > 0 {
            world.take_changed();
            world.check_taken();
        }
        world.told.clear();
    }
    (judged, all)
}

/// The same clusters, as if they had been read live.
pub(crate) fn live(dumps: Vec<Snapshot>) -> Vec<Snapshot> {
    let live = |dump: Snapshot| {
        let mut snapshot = Snapshot::live(dump.name(), NOW);
        dump.servers().iter().for_each(|server| snapshot.add_server(server.clone()));
        for observed in dump.all() {
            let object = observed.object.root().to_tree().unwrap();
            snapshot.insert(document(&object), Projection::Full).unwrap();
            snapshot.answer(&list_of(&key_of(&object), None, Projection::Full), Answer::Objects(Vec::new()));
        }
        snapshot
    };
    dumps.into_iter().map(live).collect()
}

fn rows_stay_equal(case: &Path) {
    stays_equal(2, golden::clusters(case), 40);
    stays_equal(3, live(golden::clusters(case)), 40);
}

mod apps {
    golden_apps!(super::rows_stay_equal);
}

#[test]
fn labels_of_a_declaring_object_change_its_row_alone() {
    let case = golden::cases().into_iter().find(|case| case.ends_with("sixty-apps")).unwrap();
    let mut world = World::new(1, golden::clusters(&case));
    world.look();
    assert!(world.take_changed().is_all);
    world.look();
    assert_eq!(world.take_changed(), ChangedRows::default());
    let (place, key) = {
        let apps = &world.rows.list().apps;
        let place = apps.iter().position(|app| app.declaring.is_some()).unwrap();
        (place, apps[place].declaring.clone().unwrap())
    };
    let mut object = tree(&world.snapshots[0], &key).unwrap();
    object["metadata"]["labels"]["team"] = json!("blue");
    world.snapshots[0].insert(document(&object), Projection::Full).unwrap();
    world.look();
    let changed = ChangedRows { changed: vec![place], ..ChangedRows::default() };
    assert_eq!(world.take_changed(), changed);
}

#[test]
fn most_rows_are_kept() {
    let (mut judged, mut all) = (0, 0);
    for case in golden::cases() {
        let (own, rows) = stays_equal(5, golden::clusters(&case), 15);
        judged += own;
        all += rows;
    }
    println!("{judged} of {all} rows were judged again");
    assert!(judged * 3 < all, "{judged} of {all} rows were judged again");
}

/// A timeline that was recorded on Kubernetes: what happened in each cluster, in its order.
fn timeline(text: &str) -> (Timestamp, Vec<(SignedDuration, usize, Value)>, Vec<String>) {
    let (mut names, mut steps): (Vec<String>, Vec<_>) = Default::default();
    let mut begin = NOW;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("=== cluster ") {
            names.push(name.to_owned());
        } else if let Some(step) = line.strip_prefix("- ") {
            let step: Value = serde_json::from_str(step).unwrap();
            let at: f64 = step["at"].as_str().unwrap().trim_end_matches('s').parse().unwrap();
            let at = SignedDuration::from_micros((at * 1e6) as i64);
            steps.push((at, names.len() - 1, step));
        } else if line.starts_with("{\"begin\"") {
            let head: Value = serde_json::from_str(line).unwrap();
            begin = head["begin"].as_str().unwrap().parse().unwrap();
        }
    }
    steps.sort_by_key(|(at, ..)| *at);
    (begin, steps, names)
}

/// Applies a merge patch.
fn merge(object: &mut Value, with: &Value) {
    let Value::Object(with) = with else { return *object = with.clone() };
    if !object.is_object() {
        *object = json!({});
    }
    for (name, value) in with {
        match value {
            Value::Null => drop(object.as_object_mut().unwrap().remove(name)),
            value => merge(&mut object[name], value),
        }
    }
}

/// The most looks at the clusters of a recording.
const LOOKS: usize = 60;

/// Follows recorded clusters; returns how many rows were shown in all looks, and how many of them were judged.
fn recording_stays_equal(file: &Path) -> [usize; 2] {
    let (begin, steps, names) = timeline(&std::fs::read_to_string(file).unwrap());
    let mut snapshots: Vec<Snapshot> = names.iter().map(|name| Snapshot::dump(name, begin)).collect();
    let labels =
        || AppLabels::from(vec!["app.kubernetes.io/instance".parse().unwrap(), "app".parse().unwrap()]);
    let mut rows = AppRows::new(labels());
    let (mut all, mut judged) = (0, 0);
    let each = steps.len().div_ceil(LOOKS).max(1);
    for steps in steps.chunks(each) {
        let mut now = begin;
        for (at, cluster, step) in steps {
            now = begin + *at;
            let snapshot = &mut snapshots[*cluster];
            if let Some(object) = step.get("object") {
                snapshot.insert(document(object), Projection::Full).unwrap();
            } else if let Some(object) = step.get("patch") {
                let Some(mut patched) = tree(snapshot, &key_of(object)) else { continue };
                merge(&mut patched, &step["with"]);
                snapshot.insert(document(&patched), Projection::Full).unwrap();
            } else if let Some(object) = step.get("delete") {
                snapshot.remove(&key_of(object));
            }
        }
        let changes: Vec<ChangeBatch> = snapshots.iter_mut().map(Snapshot::take_changes).collect();
        let clusters: Vec<&dyn Objects> = snapshots.iter().map(|it| it as &dyn Objects).collect();
        let looked = rows.look(&clusters, &changes, &ActiveRules::default(), now);
        let whole = apps_by(&labels(), &clusters, &ActiveRules::default(), now);
        if let Some(difference) = difference(rows.list(), &whole) {
            panic!("{} at {now}: {difference}", file.display());
        }
        all += whole.apps.len();
        judged += looked.judged;
    }
    [all, judged]
}

#[test]
fn rows_of_recorded_clusters_stay_equal() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/e2e/timelines");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| !file.ends_with("base.timeline"));
    files.sort();
    let (mut all, mut judged) = (0, 0);
    for file in &files {
        let [own, again] = recording_stays_equal(file);
        println!("{}: {own} rows in all looks, {again} judged", file.file_stem().unwrap().to_string_lossy());
        all += own;
        judged += again;
    }
    println!("{} recordings: {all} rows, {judged} judged", files.len());
    assert!(files.len() >= 30 && all > 500, "{} recordings, {all} rows", files.len());
}
