//! The object that is meant, in each cluster that has it, and the scripts that the cluster itself has.

use std::sync::Arc;

use futures::future::join;
use jiff::Timestamp;
use taffrail_apps::{Body, Lookup, ObjectKey, Objects, Snapshot, Standing, argo_standing, filter};
use taffrail_cluster::{ApiResource, Cluster, Discovery, Form, ListRequest, ReadError};
use taffrail_rules::Origin;
use taffrail_rules::lua::Customizations;
use taffrail_status::json::{OwnedDocument, Value};
use taffrail_status::{Object, ObjectError};

use super::OfCluster;
use super::arguments::{WhichArguments, Word};
use crate::complaint::{Complaint, chain};
use crate::reasons;
use crate::ruling::trusted;
use crate::source::{self, Asking, Failure, Live, Members};

/// The ConfigMap with the scripts of an Argo CD; nothing else is heard, whatever its labels say.
const CONFIG_MAP: &str = "argocd-cm";

/// By which it is found, wherever one is installed.
const BY_NAME: &str = "metadata.name=argocd-cm";

/// By which the workload of an Argo CD is found.
const CONTROLLERS: &str = "app.kubernetes.io/component=application-controller";

/// So many Argo CDs of a cluster are looked at, and so many that are not known are named.
const LOOKED_AT: usize = 16;
const NAMED: usize = 3;

/// The object in one cluster.
pub(super) struct Site {
    /// The name of the cluster.
    pub(super) cluster: String,
    object: OwnedDocument,
    /// The scripts of the known Argo CDs in the cluster.
    pub(super) scripts: Arc<[OfCluster]>,
    /// How to reach it; of a dump there is no way.
    pub(super) live: Option<Reach>,
}

/// The way to an object.
#[derive(Clone)]
pub(super) struct Reach {
    pub(super) cluster: Cluster,
    pub(super) discovery: Discovery,
    pub(super) resource: ApiResource,
}

impl Site {
    pub(super) fn object(&self) -> Result<Object<'_>, ObjectError> {
        Object::new(self.object.root())
    }

    pub(super) fn key(&self) -> ObjectKey {
        self.object().map_or_else(|_| ObjectKey::new("", "", "", ""), |object| ObjectKey::of(&object))
    }
}

/// All that were found.
pub(super) struct Sites {
    pub(super) sites: Vec<Site>,
    /// Connections end with it; there is none where dumps were read.
    pub(super) asking: Option<Asking>,
    /// What could not be read.
    pub(super) complaints: Vec<Complaint>,
}

impl Sites {
    pub(super) fn read(arguments: &WhichArguments) -> Result<Sites, Complaint> {
        let found = match arguments.source.from.is_empty() {
            true => of_clusters(arguments)?,
            false => of_dumps(arguments)?,
        };
        if found.sites.is_empty() && found.complaints.is_empty() {
            let place = match (&arguments.object, &arguments.namespace) {
                (Word::Named { .. }, Some(namespace)) => format!(" in namespace {namespace}"),
                _ => String::new(),
            };
            let complaint = Complaint::usage(format!("there is no {}{place}", arguments.object));
            return Err(complaint
                .hint("-n NAMESPACE says where to look; group/Kind/namespace/name names an object in full"));
        }
        Ok(found)
    }
}

/// The clusters that were asked, each once.
pub(super) fn clusters(sites: &[Site]) -> impl Iterator<Item = &Cluster> {
    let is_first = |at: usize| at == 0 || sites[at - 1].cluster != sites[at].cluster;
    let first = sites.iter().enumerate().filter(move |(at, _)| is_first(*at));
    first.filter_map(|(_, site)| Some(&site.live.as_ref()?.cluster))
}

fn of_clusters(arguments: &WhichArguments) -> Result<Sites, Complaint> {
    let Members { members, mut complaints } = source::members(&arguments.source)?;
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let everywhere = arguments.all_namespaces;
    let word = Arc::new((arguments.object.clone(), arguments.namespace.clone()));
    let asking = Asking::start()?;
    let answers = asking.each(members, arguments.source.timeout, |live| {
        let word = word.clone();
        async move { of_cluster(live, &word.0, word.1.as_deref(), everywhere).await }
    })?;
    let mut sites = Vec::new();
    for (name, answer) in names.into_iter().zip(answers) {
        match answer {
            Ok((found, notes)) => {
                sites.extend(found.into_iter().map(|site| Site { cluster: name.clone(), ..site }));
                let notes = notes.into_iter().map(|note| Complaint::unreadable(format!("{name}: {note}")));
                complaints.extend(notes.map(Complaint::harmless));
            }
            Err(failure) => {
                let complaint = Complaint::unreadable(format!("{name}: {}", failure.message));
                complaints.push(complaint.maybe_hint(reasons::hint(&failure.reason).map(str::to_owned)));
            }
        }
    }
    Ok(Sites { sites, asking: Some(asking), complaints })
}

/// What one cluster has, and what cannot be said of it; `everywhere` stands for all namespaces.
async fn of_cluster(
    live: Live,
    word: &Word,
    namespace: Option<&str>,
    everywhere: bool,
) -> Result<(Vec<Site>, Vec<String>), Failure> {
    let cluster = live.connect().await?;
    let discovery = cluster.discover().await.map_err(|error| of_read(&error))?;
    let other = |message: String| Failure { reason: String::new(), message };
    let (resource, namespace, name) = match word {
        Word::Key(key) => {
            (discovery.kind(&key.group, &key.kind).map(|it| it.preferred()), &*key.namespace, &key.name)
        }
        Word::Named { kind, name } => {
            (discovery.resolve(kind), namespace.unwrap_or(cluster.namespace()), name)
        }
    };
    let Some(resource) = resource else {
        let kind = match word {
            Word::Key(key) => &key.kind,
            Word::Named { kind, .. } => kind,
        };
        return Err(other(format!("the server has no kind called {kind}")));
    };
    let place = Some(namespace).filter(|_| resource.namespaced);
    let is_everywhere = everywhere && resource.namespaced && matches!(word, Word::Named { .. });
    let objects = async {
        if is_everywhere {
            return of_all_namespaces(&cluster, &resource, name).await;
        }
        let object = cluster.get(&resource, place, name, Form::Body).await?;
        Ok((object.into_iter().collect(), None))
    };
    let (objects, scripts) = join(objects, scripts(&live.member.name, &cluster, &discovery)).await;
    let (objects, more) = objects.map_err(|error| of_read(&error))?;
    if objects.is_empty() {
        return Ok((Vec::new(), more.into_iter().collect()));
    }
    let (scripts, note) = match scripts {
        Ok(found) => found,
        Err(error) => {
            (Vec::new(), Some(format!("whether its Argo CD has actions is not known: {}", chain(&error))))
        }
    };
    let scripts: Arc<[OfCluster]> = scripts.into();
    let reach = Reach { cluster, discovery, resource };
    let mut sites = Vec::new();
    for text in objects {
        let object = OwnedDocument::parse(text).map_err(|error| other(error.to_string()))?;
        let (scripts, live) = (scripts.clone(), Some(reach.clone()));
        sites.push(Site { cluster: String::new(), object, scripts, live });
    }
    Ok((sites, note.into_iter().chain(more).collect()))
}

/// In so many namespaces an object is looked for by its name.
const NAMESPACES: usize = 50;

/// The objects of a name, and a sentence about those that were left out. Each is read by itself: a list has no values of
/// Secrets.
async fn of_all_namespaces(
    cluster: &Cluster,
    resource: &ApiResource,
    name: &str,
) -> Result<(Vec<Box<[u8]>>, Option<String>), ReadError> {
    let by_name = format!("metadata.name={name}");
    let request =
        ListRequest { field_selector: Some(&by_name), form: Form::Metadata, ..ListRequest::all(resource) };
    let listed = cluster.list(&request).await?.objects;
    let mut namespaces: Vec<String> = listed
        .into_iter()
        .filter_map(|text| OwnedDocument::parse(text).ok())
        .filter_map(|document| {
            let object = Object::new(document.root()).ok()?;
            (object.name() == name).then(|| object.namespace().into_owned())
        })
        .collect();
    namespaces.sort();
    namespaces.dedup();
    let more = namespaces.len().saturating_sub(NAMESPACES);
    let more = (more > 0).then(|| format!("{name} is in {more} more namespaces, which were left out"));
    let mut objects = Vec::new();
    for namespace in namespaces.iter().take(NAMESPACES) {
        objects.extend(cluster.get(resource, Some(namespace), name, Form::Body).await?);
    }
    Ok((objects, more))
}

/// The scripts of the Argo CDs that are known in a cluster, and those of whom they are not heard.
async fn scripts(
    name: &str,
    cluster: &Cluster,
    discovery: &Discovery,
) -> Result<(Vec<OfCluster>, Option<String>), ReadError> {
    let kind = |group: &str, kind: &str| discovery.kind(group, kind).map(|it| it.preferred());
    let (Some(_), Some(config_maps)) = (kind("argoproj.io", "Application"), kind("", "ConfigMap")) else {
        return Ok((Vec::new(), None));
    };
    let request = ListRequest { field_selector: Some(BY_NAME), ..ListRequest::all(&config_maps) };
    let mut snapshot = Snapshot::dump(name, Timestamp::UNIX_EPOCH);
    insert(&mut snapshot, cluster.list(&request).await?.objects);
    let namespaces = with_actions(&snapshot);
    let doubtful = namespaces.iter().filter(|namespace| !trusted().names_argocd(name, namespace));
    let doubtful: Vec<&String> = doubtful.take(LOOKED_AT).collect();
    // What may not be read proves nothing; then those are not heard, and that is told.
    for namespace in &doubtful {
        for workload in ["Deployment", "StatefulSet"].into_iter().filter_map(|name| kind("apps", name)) {
            let request = ListRequest {
                namespace: Some(namespace.as_str()),
                label_selector: Some(CONTROLLERS),
                ..ListRequest::all(&workload)
            };
            if let Ok(listing) = cluster.list(&request).await {
                insert(&mut snapshot, listing.objects);
            }
        }
    }
    let rights = ["ClusterRoleBinding", "ClusterRole"].into_iter().filter(|_| !doubtful.is_empty());
    for resource in rights.filter_map(|name| kind("rbac.authorization.k8s.io", name)) {
        if let Ok(listing) = cluster.list(&ListRequest::all(&resource)).await {
            insert(&mut snapshot, listing.objects);
        }
    }
    Ok(known(&snapshot))
}

fn insert(snapshot: &mut Snapshot, objects: Vec<Box<[u8]>>) {
    for document in objects.into_iter().filter_map(|text| OwnedDocument::parse(text).ok()) {
        // What is no object is no Argo CD.
        let _ = snapshot.insert(document, Body::Whole);
    }
}

/// The namespaces in which an `argocd-cm` has actions.
fn with_actions(snapshot: &Snapshot) -> Vec<String> {
    let has_any = |object: &Object<'_>| {
        let mut keys = object.at(&["data"]).and_then(Value::members).into_iter().flatten();
        keys.any(|(key, _)| {
            key.starts_with("resource.customizations.actions.") || *key == *"resource.customizations"
        })
    };
    let maps =
        snapshot.of_kind("", "ConfigMap").filter(|it| it.key.name == CONFIG_MAP && has_any(&it.object));
    maps.map(|it| it.key.namespace.clone()).collect()
}

/// The actions of the Argo CDs that are known, and a sentence about the others.
fn known(snapshot: &Snapshot) -> (Vec<OfCluster>, Option<String>) {
    let namespaces = with_actions(snapshot);
    let (known, others): (Vec<String>, Vec<String>) = namespaces
        .into_iter()
        .partition(|namespace| argo_standing(snapshot, namespace, trusted()) == Standing::Known);
    let scripts = known.iter().take(LOOKED_AT).filter_map(|namespace| {
        let key = ObjectKey::new("", "ConfigMap", &**namespace, CONFIG_MAP);
        let Lookup::Found(observed) = snapshot.get(&key) else { return None };
        let scripts = Customizations::of_config_map_object(Origin::Cluster, observed.object.root())?;
        Some(OfCluster { scripts, called: format!("ConfigMap {}", key.path()) })
    });
    let note = (!others.is_empty()).then(|| {
        let named: Vec<&str> = others.iter().take(NAMED).map(String::as_str).collect();
        let more = match others.len().saturating_sub(NAMED) {
            0 => String::new(),
            number => format!(" and {number} more"),
        };
        format!(
            "actions of the ConfigMap {CONFIG_MAP} in {}{more} are not offered: whether an Argo CD runs there is not \
             known; the setting argocd: [{}] says so",
            named.join(", "),
            named.join(", ")
        )
    });
    (scripts.collect(), note)
}

fn of_read(error: &ReadError) -> Failure {
    Failure { reason: error.reason().as_str().to_owned(), message: chain(error) }
}

fn of_dumps(arguments: &WhichArguments) -> Result<Sites, Complaint> {
    let fleet = source::dumps(&arguments.source)?;
    let mut sites = Vec::new();
    let mut complaints = fleet.complaints;
    let is_meant = |key: &ObjectKey| match &arguments.object {
        Word::Key(own) => own == key,
        Word::Named { kind, name } => {
            let is_there = arguments
                .namespace
                .as_ref()
                .is_none_or(|it| key.namespace.is_empty() || *it == key.namespace);
            *name == key.name && is_there && filter::is_kind(kind, key)
        }
    };
    for snapshot in &fleet.snapshots {
        for observed in snapshot.all().filter(|observed| is_meant(observed.key)) {
            let text = observed.object.root().text().unwrap_or_default();
            let Ok(object) = OwnedDocument::parse(text) else { continue };
            let (scripts, note) = known(snapshot);
            let scripts = scripts.into();
            let note = note.map(|note| Complaint::unreadable(format!("{}: {note}", snapshot.name())));
            complaints.extend(note.map(Complaint::harmless));
            sites.push(Site { cluster: snapshot.name().to_owned(), object, scripts, live: None });
        }
    }
    Ok(Sites { sites, asking: None, complaints })
}
