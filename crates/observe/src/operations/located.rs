//! The objects that a user names, in each cluster that has them, and the actions that the clusters' Argo CDs have for
//! them.

use futures::future::join;
use jiff::Timestamp;
use taffrail_apps::argo_objects::{BINDING, CONTROLLERS, PARAMETERS, ROLE, SETTINGS, WORKLOADS};
use taffrail_apps::text::listed;
use taffrail_apps::{Objects, Read, Snapshot, Standing, Target, argo_delivers, argo_names, argo_standing};
use taffrail_cluster::{ApiResource, Cluster, Discovery, ReadError, chain};
use taffrail_object::json::{OwnedDocument, Value};
use taffrail_object::kinds::names_kind;
use taffrail_object::{Object, ObjectError, ObjectKey, ObjectKeyRef, Projection};
use taffrail_rules::Origin;
use taffrail_rules::lua::Customizations;
use taffrail_status::{ClusterState as _, Presence, Trust};

use crate::connector::ClusterConnector;
use crate::error::Failure;
use crate::look::{begun, take};
use crate::object_arg::{MAX_NAMESPACES, ObjectArg, beyond_namespaces};
use crate::read::read_one;

/// Maximum number of trusted Argo CDs of a cluster that are searched for actions, and of others whose proof
/// (workloads and roles) is read; a note names further ones.
const MAX_ARGOS: usize = 16;
/// Maximum number of namespaces that a note about Argo CDs names; it counts the rest.
const MAX_NAMED: usize = 3;

/// A request to find an object that the user names, in one cluster.
#[derive(Debug, Clone)]
pub struct LocateRequest {
    /// The object to find.
    pub object: ObjectArg,
    /// The namespace of an object named by kind and name; `None` for that of the context, and for any in a dump.
    pub namespace: Option<String>,
    /// True to find an object named by kind and name in all namespaces of a live cluster.
    pub all_namespaces: bool,
    /// The Argo CDs that the user trusts.
    pub trust: Trust,
}

/// The objects that [`locate`] found in one cluster.
#[derive(Debug, Default)]
pub struct Located {
    /// The objects that were found, each with its action scripts.
    pub objects: Vec<LocatedObject>,
    /// Warnings about namespaces or Argo CDs that were left out or could not be read.
    pub notes: Vec<String>,
}

/// An object in a cluster, with the scripts for it.
#[derive(Debug)]
pub struct LocatedObject {
    /// The name of the cluster.
    pub cluster: String,
    document: OwnedDocument,
    pub(super) scripts: LocatedScripts,
    /// The connection to write the object; `None` in a dump.
    pub(super) live: Option<LiveObject>,
}

/// The action scripts of a cluster's trusted Argo CDs, for one object.
#[derive(Debug, Default)]
pub struct LocatedScripts {
    /// The scripts of the Argo CDs that deliver the object, each with its ConfigMap, such as `ConfigMap
    /// argocd/argocd-cm`.
    pub(super) delivered_by: Vec<(Customizations, String)>,
    /// The ConfigMaps of Argo CDs that have scripts and do not deliver the object, such as `ConfigMap
    /// argocd/argocd-cm`.
    pub(super) not_for_it: Vec<String>,
}

/// The connection and the API resource with which an object can be written.
#[derive(Debug, Clone)]
pub(super) struct LiveObject {
    pub(super) cluster: Cluster,
    pub(super) discovery: Discovery,
    pub(super) resource: ApiResource,
}

impl LocatedObject {
    /// Parses the object.
    ///
    /// # Errors
    ///
    /// Fails if the server sent something else than an object.
    pub fn object(&self) -> Result<Object<'_>, ObjectError> {
        Object::new(self.document.root())
    }

    /// Returns the key of the object; an empty key if the server sent something else than an object.
    pub fn key(&self) -> ObjectKey {
        self.object().map_or_else(|_| ObjectKey::new("", "", "", ""), |object| ObjectKey::of(&object))
    }

    /// Returns the connection to its cluster; `None` for a dump.
    pub fn connection(&self) -> Option<&Cluster> {
        Some(&self.live.as_ref()?.cluster)
    }
}

/// Reads the objects that `request` names from a live cluster, and what is needed to find the actions that its Argo
/// CDs define for them.
///
/// # Errors
///
/// Fails if the cluster or the objects cannot be read, and if the server does not have the kind.
pub async fn locate(connector: &ClusterConnector, request: &LocateRequest) -> Result<Located, Failure> {
    let LocateRequest { object: named, namespace, all_namespaces, trust } = request;
    let cluster = connector.connect().await?;
    let discovery = cluster.discover().await.map_err(|error| Failure::of_read(&error))?;
    let other = |message: String| Failure { reason: String::new(), message };
    let (resource, kind, namespace, name) = match named {
        ObjectArg::Key { key, .. } => {
            let resource = discovery.kind(&key.group, &key.kind).map(|it| it.preferred());
            (resource, &key.kind, &*key.namespace, &*key.name)
        }
        ObjectArg::Named { kind, name } => {
            let namespace = namespace.as_deref().unwrap_or(cluster.namespace());
            (discovery.resolve(kind), kind, namespace, &**name)
        }
    };
    let resource = resource.ok_or_else(|| other(format!("the server has no kind called {kind}")))?;
    let reader = Reader { cluster: &cluster, discovery: &discovery };
    let is_everywhere = *all_namespaces && resource.namespaced && matches!(named, ObjectArg::Named { .. });
    let objects = async {
        match is_everywhere {
            true => reader.in_all_namespaces(&resource, name).await,
            false => Ok((reader.object(&resource, namespace, name).await?.into_iter().collect(), None)),
        }
    };
    let mut snapshot = begun(&connector.member.name, &cluster, Timestamp::UNIX_EPOCH);
    let (objects, argos) = join(objects, reader.argos(&mut snapshot, trust)).await;
    let (objects, more) = objects.map_err(|error| Failure::of_read(&error))?;
    let mut notes = Vec::from_iter(more);
    let mut argos = argos;
    for object in &objects {
        let own = Object::new(object.root()).map_err(|error| other(error.to_string()))?;
        if argos.is_ok() {
            argos = reader.applications(&mut snapshot, &own, trust).await;
        }
    }
    if let (Err(error), false) = (&argos, objects.is_empty()) {
        notes.push(format!("cannot tell if an Argo CD defines actions for the object: {}", chain(error)));
    }
    let live = LiveObject { cluster: cluster.clone(), discovery: discovery.clone(), resource };
    let mut located = Vec::new();
    for document in objects {
        let own = Object::new(document.root()).map_err(|error| other(error.to_string()))?;
        let mut scripts = LocatedScripts::default();
        if argos.is_ok() {
            let more;
            (scripts, more) = scripts_for(&snapshot, &own, trust);
            tell(&mut notes, more);
        }
        let cluster = connector.member.name.clone();
        located.push(LocatedObject { cluster, document, scripts, live: Some(live.clone()) });
    }
    Ok(Located { objects: located, notes })
}

/// Returns the objects of a dump that `request` names.
pub fn locate_in_dump(snapshot: &Snapshot, request: &LocateRequest) -> Located {
    let LocateRequest { object, namespace, trust, .. } = request;
    let is_named = |key: ObjectKeyRef<'_>| match object {
        ObjectArg::Key { key: own, .. } => own.as_ref() == key,
        ObjectArg::Named { kind, name } => {
            let is_there =
                namespace.as_ref().is_none_or(|it| key.namespace.is_empty() || *it == key.namespace);
            *name == key.name && is_there && names_kind(kind, key.group, key.kind)
        }
    };
    let mut located = Located::default();
    for observed in snapshot.all().filter(|observed| is_named(observed.key)) {
        let Ok(document) = observed.object.to_document() else { continue };
        let (scripts, notes) = scripts_for(snapshot, &observed.object, trust);
        tell(&mut located.notes, notes);
        let cluster = snapshot.name().to_owned();
        located.objects.push(LocatedObject { cluster, document, scripts, live: None });
    }
    located
}

/// Adds those of `more` to `notes` that are not among them.
fn tell(notes: &mut Vec<String>, more: Vec<String>) {
    for note in more {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// A connection to one cluster with its kinds, for the reads of [`locate`].
struct Reader<'c> {
    cluster: &'c Cluster,
    discovery: &'c Discovery,
}

impl Reader<'_> {
    fn read(&self, of: &ApiResource, namespace: Option<&str>, target: Target) -> Read {
        let ApiResource { group, version, kind, plural, namespaced } = of.clone();
        let namespace = namespace.filter(|_| namespaced).map(str::to_owned);
        Read { group, version, kind, plural, namespace, target, projection: Projection::Full }
    }

    /// Returns the API resource of a kind; `None` if the server does not serve it.
    fn resource(&self, (group, kind): (&str, &str)) -> Option<ApiResource> {
        self.discovery.kind(group, kind).map(|it| it.preferred())
    }

    async fn documents(&self, read: &Read) -> Result<Vec<OwnedDocument>, ReadError> {
        Ok(read_one(self.cluster, read).await?.map(|(documents, _)| documents).unwrap_or_default())
    }

    async fn object(
        &self,
        resource: &ApiResource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<OwnedDocument>, ReadError> {
        let read = self.read(resource, Some(namespace), Target::Object(name.to_owned()));
        Ok(self.documents(&read).await?.pop())
    }

    /// Reads the objects with this name in the first [`MAX_NAMESPACES`] namespaces that have one, sorted by name, each
    /// by itself because a list lacks the values of Secrets. The second value is a note about further ones; `None` if
    /// there are none.
    async fn in_all_namespaces(
        &self,
        resource: &ApiResource,
        name: &str,
    ) -> Result<(Vec<OwnedDocument>, Option<String>), ReadError> {
        let list = self.read(resource, None, by_name(name));
        let listed = self.documents(&Read { projection: Projection::Metadata, ..list }).await?;
        let namespace = |document: OwnedDocument| {
            let object = Object::new(document.root()).ok()?;
            (object.name() == name).then(|| object.namespace().into_owned())
        };
        let mut namespaces: Vec<String> = listed.into_iter().filter_map(namespace).collect();
        namespaces.sort();
        namespaces.dedup();
        let more = beyond_namespaces(name, namespaces.len());
        let mut objects = Vec::new();
        for namespace in namespaces.iter().take(MAX_NAMESPACES) {
            objects.extend(self.object(resource, namespace, name).await?);
        }
        Ok((objects, more))
    }

    /// Sends a read and puts the result into `snapshot`.
    async fn add(&self, snapshot: &mut Snapshot, read: Read) -> Result<(), ReadError> {
        let documents = self.documents(&read).await?;
        take(snapshot, &read, Ok(Some((documents, Vec::new()))));
        Ok(())
    }

    /// Reads all ConfigMaps that may define actions and, in the first [`MAX_ARGOS`] namespaces with actions that the
    /// user does not list as those of an Argo CD, the objects that prove that one runs there. Does nothing if the
    /// server has no Applications.
    async fn argos(&self, snapshot: &mut Snapshot, trust: &Trust) -> Result<(), ReadError> {
        let list = |labels: Option<&str>| Target::List { labels: labels.map(str::to_owned), fields: None };
        let (Some(_), Some(config_maps)) =
            (self.resource(("argoproj.io", "Application")), self.resource(("", "ConfigMap")))
        else {
            return Ok(());
        };
        self.add(snapshot, self.read(&config_maps, None, by_name(SETTINGS))).await?;
        let mut doubtful = with_actions(snapshot);
        doubtful.retain(|namespace| !trust.names_argocd(snapshot.name(), namespace));
        doubtful.truncate(MAX_ARGOS);
        // A forbidden read proves nothing: that Argo CD stays unknown, and a note says so.
        for namespace in &doubtful {
            for workload in WORKLOADS.into_iter().filter_map(|kind| self.resource(kind)) {
                let read = self.read(&workload, Some(namespace), list(Some(CONTROLLERS)));
                let _ = self.add(snapshot, read).await;
            }
        }
        let rights = [BINDING, ROLE].into_iter().filter(|_| !doubtful.is_empty());
        for resource in rights.filter_map(|kind| self.resource(kind)) {
            let _ = self.add(snapshot, self.read(&resource, None, list(None))).await;
        }
        Ok(())
    }

    /// Reads the Applications of trusted Argo CDs that the marks of `object` may name, and, for each Argo CD with some
    /// in other namespaces than its own, the settings that say which namespaces it serves.
    async fn applications(
        &self,
        snapshot: &mut Snapshot,
        object: &Object<'_>,
        trust: &Trust,
    ) -> Result<(), ReadError> {
        let (Some(applications), Some(config_maps)) =
            (self.resource(("argoproj.io", "Application")), self.resource(("", "ConfigMap")))
        else {
            return Ok(());
        };
        for argo in Argos::of(snapshot, trust).known {
            let named = argo_names(snapshot, &argo, object);
            if named.iter().any(|(namespace, _)| *namespace != argo) {
                let parameters = Target::Object(PARAMETERS.to_owned());
                self.add(snapshot, self.read(&config_maps, Some(&argo), parameters)).await?;
            }
            for (namespace, name) in named {
                let target = match name {
                    Some(name) => Target::Object(name),
                    None => Target::List { labels: None, fields: None },
                };
                self.add(snapshot, self.read(&applications, Some(&namespace), target)).await?;
            }
        }
        Ok(())
    }
}

fn by_name(name: &str) -> Target {
    Target::List { labels: None, fields: Some(format!("metadata.name={name}")) }
}

/// Returns the namespaces whose ConfigMap `argocd-cm` has a key that may define actions: one that begins with
/// `resource.customizations.actions.`, or `resource.customizations`.
fn with_actions(snapshot: &Snapshot) -> Vec<String> {
    let has_any = |object: &Object<'_>| {
        let mut keys = object.at(&["data"]).and_then(Value::members).into_iter().flatten();
        keys.any(|(key, _)| {
            key.starts_with("resource.customizations.actions.") || *key == *"resource.customizations"
        })
    };
    let maps = snapshot.of_kind("", "ConfigMap", None);
    let maps = maps.filter(|it| it.key.name == SETTINGS && has_any(&it.object));
    maps.map(|it| it.key.namespace.to_owned()).collect()
}

/// The namespaces of the Argo CDs with actions in a cluster.
struct Argos {
    /// The namespaces of trusted Argo CDs, at most [`MAX_ARGOS`].
    known: Vec<String>,
    /// The namespaces of trusted Argo CDs beyond [`MAX_ARGOS`], whose actions are left out.
    left_out: Vec<String>,
    /// The namespaces without a trusted Argo CD.
    others: Vec<String>,
}

impl Argos {
    fn of(snapshot: &Snapshot, trust: &Trust) -> Argos {
        let namespaces = with_actions(snapshot).into_iter();
        let (mut known, others): (Vec<String>, Vec<String>) =
            namespaces.partition(|namespace| argo_standing(snapshot, namespace, trust) == Standing::Known);
        let left_out = known.split_off(known.len().min(MAX_ARGOS));
        Argos { known, left_out, others }
    }
}

/// Returns the scripts of trusted Argo CDs for an object, and notes that name the ConfigMaps whose Argo CDs are not
/// trusted or left out.
fn scripts_for(snapshot: &Snapshot, object: &Object<'_>, trust: &Trust) -> (LocatedScripts, Vec<String>) {
    let Argos { known, left_out, others } = Argos::of(snapshot, trust);
    let mut scripts = LocatedScripts::default();
    for namespace in known {
        let key = ObjectKey::new("", "ConfigMap", &*namespace, SETTINGS);
        let Presence::Present(observed) = snapshot.get(key.as_ref()) else { continue };
        let called = format!("ConfigMap {}", key.path());
        if !argo_delivers(snapshot, &namespace, object) {
            scripts.not_for_it.push(called);
            continue;
        }
        let own = Customizations::of_config_map_object(Origin::Cluster, observed.object.root());
        scripts.delivered_by.extend(own.map(|own| (own, called)));
    }
    let unproven = (!others.is_empty()).then(|| {
        let first = others.get(..MAX_NAMED).unwrap_or(&others).join(", ");
        format!(
            "actions of the ConfigMap {SETTINGS} in {} are not offered: cannot tell whether an Argo CD runs there; the \
             setting argocd: [{first}] confirms it",
            listed(&others, MAX_NAMED)
        )
    });
    let beyond = (!left_out.is_empty()).then(|| {
        format!(
            "actions of the ConfigMap {SETTINGS} in {} are not offered: Taffrail reads those of at most {MAX_ARGOS} \
             Argo CDs in a cluster",
            listed(&left_out, MAX_NAMED)
        )
    });
    (scripts, unproven.into_iter().chain(beyond).collect())
}
