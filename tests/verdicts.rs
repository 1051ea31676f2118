//! Compares the verdicts about the objects of one cluster: those of an index that received the objects one by one,
//! those of a single read, and those of `explain`. The default rules judge all objects; in the rows of apps, the rules
//! that the cluster contains judge them, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use taffrail_apps::{
    Answer, Freshness, IndexedCluster, KindCatalog, Objects, Read, ServedKind, Snapshot, Target, apps,
    declared_each, index_settings,
};
use taffrail_index::{Index, IndexSettings, KindId};
use taffrail_object::json::OwnedDocument;
use taffrail_object::kinds::built_in;
use taffrail_object::{ApiResource, GroupKind, Object, ObjectKey, Projection};
use taffrail_rules::RuleSet;
use taffrail_rules::cel::{InvalidExpression, Names, Predicate, PredicateAnswer, Program, Reading};
use taffrail_status::assess::{Options, assess_named};
use taffrail_status::{ActiveRules, Status};

/// The numbers of compared objects and rows, and the differences between them.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    pub(crate) objects: usize,
    pub(crate) rows: usize,
    /// Number of objects in rows of apps that rules of their own cluster judged.
    pub(crate) taught: usize,
    pub(crate) differences: Vec<String>,
}

impl Compared {
    pub(crate) fn add(&mut self, other: Compared) {
        self.objects += other.objects;
        self.rows += other.rows;
        self.taught += other.taught;
        self.differences.extend(other.differences);
    }

    /// Prints the numbers, with `what` before them, and panics if there are differences.
    #[track_caller]
    pub(crate) fn assert_equal(&self, what: &str) {
        let Compared { objects, rows, taught, differences } = self;
        println!(
            "{what}: {objects} objects and {rows} rows of apps compared, {taught} objects judged by rules of their cluster, {} \
             differences",
            differences.len()
        );
        let shown = &differences[..differences.len().min(8)];
        assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), shown.join("\n"));
    }
}

/// A CEL expression, as text and parsed, that is evaluated on the thread of the test.
#[derive(Debug)]
struct Here(String, Program);

impl Predicate for Here {
    fn text(&self) -> &str {
        &self.0
    }

    fn evaluate(&self, variables: &[(&str, &Value)]) -> PredicateAnswer {
        self.1.evaluate(variables)
    }
}

/// Returns the rules that are built into the program; they also accept the rules that clusters contain.
pub(crate) fn shipped() -> RuleSet {
    let read = |text: &str, names: Names| -> Result<Box<dyn Predicate>, InvalidExpression> {
        Ok(Box::new(Here(text.to_owned(), Program::read(text, names)?)))
    };
    RuleSet::shipped()
        .teachable(move |text, names| Reading { expression: read(text, names), took: Duration::ZERO })
}

/// The objects of a cluster at one moment, for which the verdicts are compared.
pub(crate) struct Moment<'m> {
    pub(crate) label: String,
    pub(crate) objects: &'m [Value],
    pub(crate) now: Timestamp,
    /// True if the served kinds are known; custom resources then have a status subresource.
    pub(crate) is_discovered: bool,
    /// The kinds for which the cluster contains rules.
    pub(crate) taught_kinds: Vec<GroupKind>,
    pub(crate) seed: u64,
}

fn text<'v>(object: &'v Value, path: &str) -> &'v str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn resource(group: &str, version: &str, kind: &str, namespaced: bool) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced,
    }
}

fn document(object: &Value) -> OwnedDocument {
    OwnedDocument::parse(object.to_string().into_bytes()).unwrap()
}

impl<'m> Moment<'m> {
    /// Makes a moment of a recorded cluster, whose index already has the objects.
    fn recorded(label: String, objects: &'m [Value], now: Timestamp) -> Moment<'m> {
        Moment { label, objects, now, is_discovered: true, taught_kinds: Vec::new(), seed: 0 }
    }

    /// Returns the kinds that are read, by group and name: those that every server has, and those of the objects.
    fn kinds(&self) -> BTreeMap<(String, String), ApiResource> {
        let known =
            built_in().iter().map(|kind| resource(kind.group, kind.version, kind.kind, kind.namespaced));
        let own = self.objects.iter().map(|object| {
            let api_version = text(object, "/apiVersion");
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            resource(group, version, text(object, "/kind"), !text(object, "/metadata/namespace").is_empty())
        });
        known.chain(own).map(|kind| ((kind.group.clone(), kind.kind.clone()), kind)).collect()
    }

    /// Returns a snapshot with the objects, as a single read of the cluster returns it.
    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::live("one", self.now);
        let kinds = self.kinds();
        if self.is_discovered {
            let served = kinds.values().map(|kind| ServedKind {
                group: kind.group.clone(),
                version: kind.version.clone(),
                kind: kind.kind.clone(),
                plural: kind.plural.clone(),
                namespaced: kind.namespaced,
                verbs: vec!["get".to_owned(), "list".to_owned(), "watch".to_owned()],
                has_status_subresource: true,
            });
            snapshot.set_kinds(KindCatalog::new(served, []));
        }
        for kind in kinds.values() {
            let is_it = |object: &&Value| {
                let group = text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
                (group, text(object, "/kind")) == (&*kind.group, &*kind.kind)
            };
            let read = Read {
                group: kind.group.clone(),
                version: kind.version.clone(),
                kind: kind.kind.clone(),
                plural: kind.plural.clone(),
                namespace: None,
                target: Target::List { labels: None, fields: None },
                projection: Projection::Full,
            };
            snapshot
                .answer(&read, Answer::Objects(self.objects.iter().filter(is_it).map(document).collect()));
        }
        snapshot
    }

    /// Returns an index that received the objects one by one in a random order: first older versions of them and
    /// objects that are deleted later, then the present ones.
    fn index(&self, settings: IndexSettings) -> taffrail_index::Snapshot {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut index = Index::new(settings);
        index.set_kept_kinds(self.taught_kinds.iter().cloned());
        let at = |before: i64| self.now - SignedDuration::from_secs(before);
        let mut ids: BTreeMap<(String, String), KindId> = BTreeMap::new();
        for (name, kind) in self.kinds() {
            let id = index.kind(&kind);
            index.set_status_subresource(id, self.is_discovered.then_some(true));
            index.begin(id, None, at(900));
            ids.insert(name, id);
        }
        let id = |object: &Value| {
            let group = text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
            ids[&(group.to_owned(), text(object, "/kind").to_owned())]
        };
        let tell = |index: &mut Index, object: &Value, when: Timestamp| {
            let document = document(object);
            let object_read = Object::new(document.root()).unwrap();
            index.apply(id(object), &object_read, Projection::Full, when).unwrap();
        };
        let objects: Vec<&Value> = self.objects.iter().filter(|it| text(it, "/kind") != "Event").collect();
        let mut before: Vec<Value> = objects.iter().flat_map(|object| earlier(object)).collect();
        random.shuffle(&mut before);
        for object in &before {
            if random.u8(..3) > 0 {
                tell(&mut index, object, at(600));
            }
            if random.u8(..8) == 0 {
                index.publish(at(500));
            }
        }
        let mut all: Vec<&Value> = self.objects.iter().collect();
        random.shuffle(&mut all);
        for object in all {
            tell(&mut index, object, at(2));
            if random.u8(..8) == 0 {
                index.publish(at(1));
            }
        }
        for object in before.iter().filter(|object| text(object, "/metadata/name").ends_with("-gone")) {
            let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
            index.remove(id(object), namespace, name);
        }
        for id in ids.values() {
            index.end(*id, None, self.now);
        }
        index.set_discovered(self.is_discovered.then(BTreeSet::new));
        index.publish(self.now)
    }

    /// Compares the verdicts about all objects, with an index that [`Moment::index`] makes.
    pub(crate) fn compare(&self, rules: &Arc<RuleSet>) -> Compared {
        let index = self.index(index_settings(Arc::clone(rules) as Arc<dyn taffrail_status::Rules>));
        self.compare_with(rules, &index)
    }

    /// Compares the verdicts about all objects. `index` has received every change up to this moment.
    fn compare_with(&self, rules: &Arc<RuleSet>, index: &taffrail_index::Snapshot) -> Compared {
        let options = Options::default();
        let active = rules.active(&options);
        let snapshot = self.snapshot();
        let (label, mut compared) = (&self.label, Compared::default());
        let keys: BTreeSet<ObjectKey> = snapshot
            .all()
            .filter(|observed| observed.key.kind != "Event")
            .map(|observed| observed.key.to_owned())
            .collect();
        let keys: Vec<ObjectKey> = keys.into_iter().collect();
        let explained = declared_each(&snapshot, &keys, &active, self.now);
        for key in &keys {
            compared.objects += 1;
            let look = assess_named(key, &snapshot, &active, self.now);
            let look = (look.verdict.status, look.message.as_str(), &*look.verdict.rule, look.since);
            let Some(shown) = index.find(&key.group, &key.kind, &key.namespace, &key.name) else {
                compared.differences.push(format!("{label}: {key} is not in the index"));
                continue;
            };
            let shown = (shown.status(), shown.message(), shown.rule(), shown.unwell_since());
            if shown != look {
                compared.differences.push(format!("{label}: {key}\n  index {shown:?}\n  look  {look:?}"));
            }
            let asked = index.assess(key, self.now);
            let asked = (asked.verdict.status, asked.message.as_str(), &*asked.verdict.rule, asked.since);
            if asked != look {
                compared.differences.push(format!("{label}: {key}\n  asked {asked:?}\n  look  {look:?}"));
            }
            let mut resources = explained.apps.iter().flat_map(|app| &app.resources);
            let Some(resource) = resources.find(|resource| *resource.key == *key) else {
                compared.differences.push(format!("{label}: {key} is not explained"));
                continue;
            };
            let message = resource.message.to_string();
            let explained = (resource.status, &*message, &*resource.rule, resource.since);
            let is_well = |status: Status| status == Status::Current;
            let is_same =
                explained == look || is_well(look.0) && (explained.0, explained.2) == (look.0, look.2);
            if !is_same {
                compared
                    .differences
                    .push(format!("{label}: {key}\n  explain {explained:?}\n  look    {look:?}"));
            }
        }
        compared.add(self.compare_rows(rules, &snapshot, index));
        compared
    }

    /// Compares the rows of apps and their objects, which the rules of the cluster judge, too.
    fn compare_rows(
        &self,
        rules: &Arc<RuleSet>,
        snapshot: &Snapshot,
        index: &taffrail_index::Snapshot,
    ) -> Compared {
        let options = Options::default();
        let mut cluster = IndexedCluster::live("one", index, Freshness::live(self.now));
        // An observer reads releases and addresses one by one, and what may make an Argo CD known.
        const READ_ALONE: [&str; 4] = ["ConfigMap", "Secret", "ClusterRole", "ClusterRoleBinding"];
        let is_read_alone = |object: &&Value| READ_ALONE.contains(&text(object, "/kind"));
        for object in self.objects.iter().filter(is_read_alone) {
            cluster.add_body(document(object)).unwrap();
        }
        if let Some(kinds) = snapshot.kinds() {
            cluster.set_kinds(kinds.clone());
        }
        let recorded = index.rules().with_reader(&**rules);
        let by_index = ActiveRules { rules: &recorded, cluster_rules: Some(&recorded), options: &options };
        let looked = apps(&[snapshot as &dyn Objects], &rules.active(&options), self.now);
        let indexed = apps(&[&cluster as &dyn Objects], &by_index, self.now);
        let mut compared = Compared { rows: looked.apps.len(), ..Compared::default() };
        for row in &looked.apps {
            let is_taught = |rule: &str| rule.starts_with("cluster/");
            compared.taught += row.resources.iter().filter(|resource| is_taught(&resource.rule)).count();
            let label = &self.label;
            match indexed.apps.iter().find(|other| other.app == row.app) {
                None => compared.differences.push(format!("{label}: {} is no row of the index", row.app)),
                Some(other) if other != row => {
                    compared
                        .differences
                        .push(format!("{label}: {}\n  index {other:?}\n  look  {row:?}", row.app));
                }
                Some(_) => {}
            }
        }
        if looked.apps.len() != indexed.apps.len() {
            compared.differences.push(format!("{}: another number of rows", self.label));
        }
        compared
    }
}

/// Returns an older version of the object, which has no status, and another object, which is deleted later.
fn earlier(object: &Value) -> [Value; 2] {
    let mut before = object.clone();
    before.as_object_mut().unwrap().remove("status");
    before["metadata"]["resourceVersion"] = json!("1");
    if let Some(metadata) = before["metadata"].as_object_mut() {
        metadata.remove("deletionTimestamp");
        metadata.remove("ownerReferences");
    }
    let mut gone = object.clone();
    gone["metadata"]["name"] = format!("{}-gone", text(object, "/metadata/name")).into();
    gone["metadata"]["uid"] = format!("{}-gone", text(object, "/metadata/uid")).into();
    [before, gone]
}

/// A change of one object of a recorded cluster.
pub(crate) struct Change {
    pub(crate) at: Timestamp,
    /// The change as JSON: `object` with the whole object; or `patch` with its key and `with` with a merge patch; or
    /// `delete` with its key.
    pub(crate) step: Value,
}

/// Returns the key of an object in a recording: group, kind, namespace and name.
fn recorded_key(object: &Value) -> [String; 4] {
    let group = text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
    let [kind, namespace, name] =
        ["/kind", "/metadata/namespace", "/metadata/name"].map(|path| text(object, path).to_owned());
    [group.to_owned(), kind, namespace, name]
}

/// Applies a merge patch (RFC 7386) to a value.
fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        match value {
            Value::Null => drop(target.as_object_mut().unwrap().remove(key)),
            _ => merge(&mut target[key], value),
        }
    }
}

/// Applies every change of a recorded cluster to an index, and compares the verdicts about all objects at each of the
/// moments.
pub(crate) fn compare_recording(
    label: &str,
    rules: &Arc<RuleSet>,
    seeded: &[Value],
    changes: &[Change],
    moments: &[Timestamp],
) -> Compared {
    let mut index = Index::new(index_settings(Arc::clone(rules) as Arc<dyn taffrail_status::Rules>));
    let first = changes.first().map_or(moments[0], |change| change.at);
    let steps = changes.iter().filter_map(|change| change.step.get("object").cloned());
    let all: Vec<Value> = seeded.iter().cloned().chain(steps).collect();
    let label = |number: usize| format!("{label} at moment {number}");
    let mut ids: BTreeMap<(String, String), KindId> = BTreeMap::new();
    for (name, kind) in Moment::recorded(label(0), &all, first).kinds() {
        let id = index.kind(&kind);
        index.set_status_subresource(id, Some(true));
        index.begin(id, None, first);
        index.end(id, None, first);
        ids.insert(name, id);
    }
    index.set_discovered(Some(BTreeSet::new()));
    let mut held: BTreeMap<[String; 4], Value> = BTreeMap::new();
    let tell = |index: &mut Index, held: &mut BTreeMap<[String; 4], Value>, object: Value, at| {
        let document = document(&object);
        let key = recorded_key(&object);
        let id = ids[&(key[0].clone(), key[1].clone())];
        index.apply(id, &Object::new(document.root()).unwrap(), Projection::Full, at).unwrap();
        held.insert(key, object);
    };
    for object in seeded {
        tell(&mut index, &mut held, object.clone(), first);
    }
    let (mut compared, mut changes) = (Compared::default(), changes.iter().peekable());
    for (number, now) in moments.iter().enumerate() {
        while let Some(Change { at, step }) = changes.next_if(|change| change.at <= *now) {
            if let Some(object) = step.get("object") {
                tell(&mut index, &mut held, object.clone(), *at);
            } else if let Some(gone) = step.get("delete") {
                let key = recorded_key(gone);
                index.remove(ids[&(key[0].clone(), key[1].clone())], &key[2], &key[3]);
                held.remove(&key);
            } else if let Some(mut object) = held.get(&recorded_key(&step["patch"])).cloned() {
                merge(&mut object, &step["with"]);
                tell(&mut index, &mut held, object, *at);
            }
            if index.next_deadline().is_some_and(|deadline| deadline <= *at) {
                index.publish(*at);
            }
        }
        let published = index.publish(*now);
        let objects: Vec<Value> = held.values().cloned().collect();
        compared.add(Moment::recorded(label(number), &objects, *now).compare_with(rules, &published));
    }
    compared
}
