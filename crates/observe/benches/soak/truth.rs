//! The server's objects, and how the index differs from them.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use serde_json::Value;
use taffrail_cluster::{ApiResource, Cluster, Deadline, Kubeconfig, ListRequest};
use taffrail_index::{ObjectRef, ScopeState, Snapshot};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{Object, Projection};
use taffrail_status::assess::{Dump, assess};
use taffrail_status::{ActiveRules, Status};

use crate::Outcome;

/// The kinds that are not compared: they are not followed, or change all the time.
const LEFT_OUT: [&str; 3] = ["Lease", "Event", "Endpoints"];

/// Maximum time of a list; a server that was just killed does not answer.
const LISTED_WITHIN: Duration = Duration::from_secs(5);

/// Maximum number of kubectl processes at one time.
const AT_ONCE: usize = 3;

/// Approximate number of kinds that kubectl lists although they did not change, other ones each time.
const IN_TURN: usize = 4;

/// Reads the server's objects without the index that is tested.
pub(crate) struct Reader {
    cluster: Cluster,
    kubeconfig: PathBuf,
    kubectl: Option<PathBuf>,
    /// The hash of each kind's list when kubectl last agreed with the index, by the name of the kind.
    asked: HashMap<String, u64>,
    /// The hashes of the lists of the kinds that kubectl read in the last comparison.
    last: Vec<(String, u64)>,
    turn: usize,
}

impl Reader {
    pub(crate) async fn connect(kubeconfig: &Path, kubectl: Option<PathBuf>) -> Outcome<Reader> {
        let context = Kubeconfig::load(Some(kubeconfig), None, None)?.current()?;
        let cluster = Cluster::connect(&context, Deadline::after(crate::PATIENCE)).await?;
        Ok(Reader {
            cluster,
            kubeconfig: kubeconfig.to_owned(),
            kubectl,
            asked: HashMap::new(),
            last: Vec::new(),
            turn: 0,
        })
    }

    pub(crate) fn has_kubectl(&self) -> bool {
        self.kubectl.is_some()
    }

    pub(crate) fn name(&self) -> &'static str {
        if self.has_kubectl() { "kubectl get --raw" } else { "a list of this process" }
    }

    async fn resources(&self) -> Outcome<Vec<ApiResource>> {
        let discovery = self.cluster.with_timeout(LISTED_WITHIN).discover().await?;
        let served = discovery.resources().iter();
        // What cannot be watched is not followed.
        let can_watch = |verbs: &[String]| verbs.iter().any(|verb| verb == "watch");
        let served =
            served.filter(|it| it.can_list() && can_watch(&it.verbs) && !LEFT_OUT.contains(&&*it.kind));
        Ok(served.map(|served| served.preferred()).collect())
    }

    async fn listed(&self, resource: &ApiResource) -> Outcome<Vec<OwnedDocument>> {
        Ok(self.cluster.with_timeout(LISTED_WITHIN).list(&ListRequest::all(resource)).await?.objects)
    }

    /// Reads all objects by this process alone, which costs little.
    pub(crate) async fn own(&self) -> Outcome<Truth> {
        let mut truth = Truth::default();
        for resource in self.resources().await? {
            for text in self.listed(&resource).await? {
                truth.add(text)?;
            }
        }
        Ok(truth)
    }

    /// Reads the objects for the comparison that counts: by kubectl those of each kind that changed since kubectl last
    /// read it, and of some others in turn; by this process the rest, or all if there is no kubectl.
    pub(crate) async fn decisive(&mut self) -> Outcome<Truth> {
        let Some(kubectl) = &self.kubectl else { return self.own().await };
        let mut truth = Truth::default();
        let resources = self.resources().await?;
        let mut to_ask = Vec::new();
        for (at, resource) in resources.iter().enumerate() {
            let texts = self.listed(resource).await?;
            let mut hasher = DefaultHasher::new();
            texts.iter().for_each(|document| document.text().hash(&mut hasher));
            let (name, now) = (resource.full_name(), hasher.finish());
            let is_its_turn = (at + self.turn).is_multiple_of(resources.len().div_ceil(IN_TURN));
            if is_its_turn || self.asked.get(&name) != Some(&now) {
                to_ask.push((resource, name, now));
            } else {
                texts.into_iter().try_for_each(|text| truth.add(text))?;
            }
        }
        let mut answers = futures::stream::iter(&to_ask)
            .map(|(resource, ..)| self.raw(kubectl, resource))
            .buffer_unordered(AT_ONCE);
        while let Some(answer) = answers.next().await {
            answer?.into_iter().try_for_each(|text| truth.add(text))?;
        }
        drop(answers);
        self.last = to_ask.into_iter().map(|(_, name, now)| (name, now)).collect();
        Ok(truth)
    }

    /// Records that the objects read last were equal to those of the index.
    pub(crate) fn agreed(&mut self) {
        self.turn += 1;
        self.asked.extend(std::mem::take(&mut self.last));
    }

    async fn raw(&self, kubectl: &Path, resource: &ApiResource) -> Outcome<Vec<OwnedDocument>> {
        let base =
            if resource.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", resource.group) };
        let path = format!("{base}/{}/{}", resource.version, resource.plural);
        let output = tokio::process::Command::new(kubectl)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(["get", "--raw", &path])
            .env("KUBECACHEDIR", std::env::temp_dir().join("taffrail-soak-cache"))
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(LISTED_WITHIN, output).await??;
        if !output.status.success() {
            return Err(format!("{path}: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
        }
        let mut list: Value = serde_json::from_slice(&output.stdout)?;
        let Value::Array(items) = list["items"].take() else {
            return Err(format!("{path}: no items").into());
        };
        let api_version = resource.api_version();
        // Items of lists do not say what they are.
        let typed = items.into_iter().map(|mut item| {
            item["apiVersion"] = api_version.clone().into();
            item["kind"] = resource.kind.clone().into();
            OwnedDocument::parse(item.to_string().into_bytes())
        });
        Ok(typed.collect::<Result<_, _>>()?)
    }
}

/// Group, kind, namespace and name of an object.
type Key = (String, String, String, String);

/// The objects that the server has.
#[derive(Default)]
pub(crate) struct Truth {
    objects: BTreeMap<Key, OwnedDocument>,
}

/// A difference between the index and the server.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) what: String,
    /// True if the index shows the object as ready and live although it is not ready.
    pub(crate) green: bool,
}

impl Truth {
    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    fn add(&mut self, document: OwnedDocument) -> Outcome<()> {
        let object = Object::new(document.root())?;
        let key = (
            object.group().to_owned(),
            object.kind().to_owned(),
            object.namespace().into_owned(),
            object.name().into_owned(),
        );
        self.objects.insert(key, document);
        Ok(())
    }

    /// Returns the differences between these objects and the index. `before` and `snapshot` are the index before and
    /// after the objects were read: an object counts as wrongly ready only if both show it so, in one version.
    pub(crate) fn compare(&self, before: &Snapshot, snapshot: &Snapshot) -> Vec<Difference> {
        let mut differences = Vec::new();
        for (kind, namespace, scope) in snapshot.scopes() {
            if scope.state != ScopeState::Live {
                let kind = snapshot.resource(kind).map(|resource| resource.full_name()).unwrap_or_default();
                let what = format!("{kind} {namespace:?} is {:?}: {}", scope.state, scope.reason);
                differences.push(Difference { what, green: false });
            }
        }
        let is_live = |group: &str, kind: &str, namespace: &str| {
            let kind = snapshot.find_kind(group, kind);
            kind.is_some_and(|kind| snapshot.scope(kind, namespace).state == ScopeState::Live)
        };
        let is_shown = |known: &ObjectRef<'_>| {
            let it = known.object_name();
            let earlier = before.find(&it.group, &it.kind, &it.namespace, &it.name);
            earlier.is_some_and(|earlier| {
                earlier.resource_version() == known.resource_version() && earlier.status() == Status::Current
            }) && known.status() == Status::Current
                && is_live(&it.group, &it.kind, &it.namespace)
        };
        let parsed = self.objects.values().filter_map(|document| Object::new(document.root()).ok());
        let dump = Dump::new(parsed);
        let now = Timestamp::now();
        for ((group, kind, namespace, name), document) in &self.objects {
            let Ok(object) = Object::new(document.root()) else { continue };
            let named = format!("{group}/{kind}/{namespace}/{name}");
            let Some(known) = snapshot.find(group, kind, namespace, name) else {
                differences.push(Difference { what: format!("{named} is missing"), green: false });
                continue;
            };
            let judged = kind != "Secret" && known.projection() == Projection::Full;
            let right = judged.then(|| assess(&object, &dump, &ActiveRules::default(), now).verdict.status);
            let wrong = right.filter(|right| known.status() != *right);
            let shown = is_shown(&known);
            let version = object.text(&["metadata", "resourceVersion"]);
            if known.resource_version() != version {
                let what = format!("{named} is of version {}, not {version}", known.resource_version());
                differences.push(Difference { what, green: shown && wrong.is_some() });
            } else if let Some(right) = wrong {
                let what = format!("{named} is {}, not {right}, at version {version}", known.status());
                differences.push(Difference { what, green: shown });
            }
        }
        for object in snapshot.all() {
            let it = object.object_name();
            let key = (it.group.clone(), it.kind.clone(), it.namespace.clone(), it.name.clone());
            if !self.objects.contains_key(&key) {
                let shown = is_shown(&object);
                let what = format!("{it} of version {} is gone", object.resource_version());
                differences.push(Difference { what, green: shown });
            }
        }
        differences
    }
}
