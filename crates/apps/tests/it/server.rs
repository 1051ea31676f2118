//! An API server in memory, which answers reads as a real one does and counts them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taffrail_apps::{
    Answer, KindCatalog, Objects as _, Read, ReadQuery, Rounds, ServedKind, Snapshot, Target, plan_reads,
};
use taffrail_object::{LabelSelector, Projection};
use taffrail_status::ActiveRules;

use super::dump::NOW;

pub(crate) struct Server {
    pub(crate) objects: Vec<Value>,
    /// Kinds that are refused: `group/Kind`, `get group/Kind` for single objects, or `list group/Kind` for lists of all
    /// namespaces.
    pub(crate) forbidden: Vec<&'static str>,
    /// Versions other than those that the objects have, by `group/Kind`: the only ones that are served.
    pub(crate) versions: BTreeMap<&'static str, &'static str>,
}

/// The requests to a server, round by round.
pub(crate) struct Log(pub(crate) Vec<Vec<Read>>);

fn text(value: &Value, path: &str) -> String {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn group_version(object: &Value) -> (String, String) {
    let version = text(object, "/apiVersion");
    match version.split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), version),
    }
}

/// A part of a field selector: `path=value` or `path!=value`.
struct Field<'t> {
    path: &'t str,
    value: &'t str,
    is_equal: bool,
}

impl Field<'_> {
    fn of(text: &str) -> Field<'_> {
        let (path, value) = text.split_once('=').unwrap();
        match path.strip_suffix('!') {
            Some(path) => Field { path, value, is_equal: false },
            None => Field { path, value, is_equal: true },
        }
    }

    fn chooses(&self, object: &Value) -> bool {
        let found = text(object, &format!("/{}", self.path.replace('.', "/")));
        (found == self.value) == self.is_equal
    }
}

impl Server {
    pub(crate) fn new(objects: Vec<Value>) -> Server {
        Server { objects, forbidden: Vec::new(), versions: BTreeMap::new() }
    }

    fn version(&self, object: &Value) -> String {
        let (group, version) = group_version(object);
        let kind = format!("{group}/{}", text(object, "/kind"));
        self.versions.get(kind.as_str()).map_or(version, |served| (*served).to_owned())
    }

    /// Returns the kinds of all objects, and a few more built-in ones.
    pub(crate) fn catalog(&self) -> KindCatalog {
        let served = |group: &str, version: &str, kind: &str, namespaced: bool| ServedKind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
            namespaced,
            verbs: ["get", "list", "watch"].map(str::to_owned).to_vec(),
            has_status_subresource: false,
        };
        let mut kinds = vec![
            served("", "v1", "ConfigMap", true),
            served("", "v1", "Event", true),
            served("", "v1", "Pod", true),
            served("", "v1", "Secret", true),
            served("apps", "v1", "ReplicaSet", true),
            served("coordination.k8s.io", "v1", "Lease", true),
        ];
        for object in &self.objects {
            let (group, _) = group_version(object);
            let namespaced = !text(object, "/metadata/namespace").is_empty();
            kinds.push(served(&group, &self.version(object), &text(object, "/kind"), namespaced));
        }
        KindCatalog::new(kinds, [])
    }

    pub(crate) fn answer(&self, read: &Read) -> Answer {
        let kind = format!("{}/{}", read.group, read.kind);
        let single = matches!(read.target, Target::Object(_)).then(|| format!("get {kind}"));
        let is_wide = read.namespace.is_none() && single.is_none();
        let wide = is_wide.then(|| format!("list {kind}"));
        let refused = |forbidden: &&str| {
            *forbidden == kind || [&single, &wide].iter().any(|it| it.as_deref() == Some(*forbidden))
        };
        if self.forbidden.iter().any(refused) {
            return Answer::Forbidden { message: format!("{} is forbidden", read.plural) };
        }
        let of_kind =
            |object: &&Value| group_version(object).0 == read.group && text(object, "/kind") == read.kind;
        let served = self.objects.iter().filter(of_kind).any(|object| self.version(object) == read.version);
        let built_in = self.catalog().iter().any(|served| {
            served.group == read.group && served.kind == read.kind && served.version == read.version
        });
        if !served && !built_in {
            return Answer::NotFound;
        }
        let here = |object: &&Value| {
            let inside = |namespace: &String| text(object, "/metadata/namespace") == *namespace;
            read.namespace.as_ref().is_none_or(inside)
        };
        let chosen = |object: &&Value| match &read.target {
            Target::List { labels, fields } => {
                let labels = labels.iter().map(|labels| labels.parse::<LabelSelector>().unwrap());
                let own = object.pointer("/metadata/labels").map(Into::into);
                let fields = fields.iter().flat_map(|fields| fields.split(','));
                labels.into_iter().all(|labels| labels.matches_labels(own))
                    && fields.map(Field::of).all(|field| field.chooses(object))
            }
            Target::Object(name) => text(object, "/metadata/name") == *name,
        };
        let objects: Vec<_> = self.objects.iter().filter(of_kind).filter(here).filter(chosen).collect();
        if objects.is_empty() && matches!(read.target, Target::Object(_)) {
            return Answer::NotFound;
        }
        let item = |object: &&Value| {
            let mut object = (*object).clone();
            let keys = object.as_object_mut().unwrap();
            match read.projection {
                Projection::Full => keys.retain(|key, _| key != "apiVersion" && key != "kind"),
                Projection::Metadata => {
                    keys.retain(|key, _| key == "metadata");
                    keys.insert("apiVersion".to_owned(), json!("meta.k8s.io/v1"));
                    keys.insert("kind".to_owned(), json!("PartialObjectMetadata"));
                }
            }
            read.document((&object).into()).unwrap()
        };
        Answer::Objects(objects.iter().map(item).collect())
    }

    /// Reads everything that the plan names.
    pub(crate) fn read(&self, name: &str, asked: &ReadQuery) -> (Snapshot, Log) {
        let mut snapshot = Snapshot::live(name, NOW);
        let log = self.go_on(&mut snapshot, asked);
        (snapshot, log)
    }

    /// Reads what the plan still lacks.
    pub(crate) fn go_on(&self, snapshot: &mut Snapshot, asked: &ReadQuery) -> Log {
        self.go_on_by(snapshot, asked, &ActiveRules::default())
    }

    /// Reads what the plan by these rules still lacks.
    pub(crate) fn go_on_by(
        &self,
        snapshot: &mut Snapshot,
        asked: &ReadQuery,
        rules: &ActiveRules<'_>,
    ) -> Log {
        let (mut log, mut rounds) = (Log(Vec::new()), Rounds::default());
        loop {
            let reads = plan_reads(snapshot, asked, rules, &mut rounds);
            if reads.is_empty() {
                rounds.report(snapshot);
                return log;
            }
            assert!(log.0.len() < 20, "the plan has no end: {reads:?}");
            for read in &reads {
                snapshot.answer(read, self.answer(read));
            }
            if snapshot.kinds().is_none() {
                snapshot.set_kinds(self.catalog());
            }
            log.0.push(reads);
        }
    }
}

impl Log {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Read> {
        self.0.iter().flatten()
    }

    /// Returns the reads of each round but the first.
    pub(crate) fn paths(&self) -> Vec<Vec<String>> {
        self.0.iter().skip(1).map(|reads| reads.iter().map(Read::path).collect()).collect()
    }

    /// Checks that no kind is listed twice in a namespace, and no object is read twice.
    pub(crate) fn assert_no_repetition(&self) {
        let mut reads: Vec<&Read> = self.all().collect();
        reads.sort_by_key(|read| matches!(read.target, Target::Object(_)));
        for (at, read) in reads.iter().enumerate() {
            for other in &reads[at + 1..] {
                let same_kind = (&read.group, &read.kind) == (&other.group, &other.kind);
                let other_version = read.version != other.version;
                if !same_kind || other_version {
                    continue;
                }
                match (&read.target, &other.target) {
                    (Target::List { .. }, Target::List { .. }) => {
                        let apart = read.namespace.is_some()
                            && other.namespace.is_some()
                            && read.namespace != other.namespace;
                        let apart = apart || excludes(read, other) || excludes(other, read);
                        // Some are few, and no list of all can leave them out.
                        let apart = apart || is_of_few(read) || is_of_few(other);
                        assert!(apart, "listed twice: {read:?} and {other:?}");
                    }
                    (Target::Object(one), Target::Object(two)) => {
                        assert!(one != two || read.namespace != other.namespace, "read twice: {read:?}");
                    }
                    (Target::List { labels: None, fields: None }, Target::Object(_))
                        if read.projection == Projection::Full && other.projection == Projection::Full =>
                    {
                        let apart = read.namespace.is_some() && read.namespace != other.namespace;
                        assert!(apart, "read by name though it was listed: {other:?}");
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Returns true if a list leaves out controlled objects, or is of Helm's storage.
fn is_of_few(read: &Read) -> bool {
    labels(read).iter().any(|label| label == "!pod-template-hash" || label == "owner=helm")
}

fn labels(read: &Read) -> Vec<String> {
    match &read.target {
        Target::List { labels: Some(labels), .. } => {
            labels.parse::<LabelSelector>().unwrap().requirements().map(ToString::to_string).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns true if the selectors of one list exclude all objects of the other one.
fn excludes(read: &Read, other: &Read) -> bool {
    let fields = |read: &Read| match &read.target {
        Target::List { fields: Some(fields), .. } => fields.split(',').map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let (own, own_labels) = (fields(read), labels(read));
    let opposite = |field: &String| own.contains(&field.replacen('=', "!=", 1));
    let forbidden = |label: &String| own_labels.contains(&format!("!{label}"));
    fields(other).iter().any(opposite) || labels(other).iter().any(forbidden)
}
