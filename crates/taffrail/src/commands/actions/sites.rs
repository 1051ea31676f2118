//! The object that is meant, in each cluster that has it, and the scripts that the cluster itself has.

use std::sync::Arc;

use futures::future::join;
use jiff::Timestamp;
use taffrail_apps::{Objects, Snapshot, Standing, argo_delivers, argo_names, argo_standing};
use taffrail_cluster::{ApiResource, Cluster, Discovery, ListRequest, ReadError};
use taffrail_object::json::{OwnedDocument, Value};
use taffrail_object::kinds::names_kind;
use taffrail_object::{Object, ObjectError, ObjectKey, ObjectKeyRef, Projection};
use taffrail_observe::{ClusterConnector, Failure, FleetMembers};
use taffrail_rules::Origin;
use taffrail_rules::lua::Customizations;
use taffrail_status::{ClusterState as _, Presence, Trust};

use super::OfCluster;
use super::arguments::{WhichArguments, Word};
use crate::commands::get::unknown_cluster;
use crate::complaint::{Complaint, chain};
use crate::reasons;
use crate::source;

/// The ConfigMap with the scripts of an Argo CD; nothing else is heard, whatever its labels say.
const CONFIG_MAP: &str = "argocd-cm";

/// The ConfigMap that says which namespaces an Argo CD serves beside its own.
const PARAMETERS: &str = "argocd-cmd-params-cm";

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
    /// The scripts of the known Argo CDs in the cluster that deliver the object.
    pub(super) scripts: Vec<OfCluster>,
    /// The ConfigMaps of those that are known, have scripts, and do not deliver it.
    pub(super) not_for_it: Vec<String>,
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
    let FleetMembers { mut members, problems } = source::members(&arguments.source)?;
    let mut complaints: Vec<Complaint> = problems.iter().map(Complaint::from).collect();
    if let Some(cluster) = arguments.object.cluster() {
        let known: Vec<&str> = members.iter().map(|member| &*member.name).collect();
        unknown_cluster(std::iter::once(cluster), &known).map_or(Ok(()), Err)?;
        members.retain(|member| member.name == cluster);
    }
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let everywhere = arguments.all_namespaces;
    let word = Arc::new((arguments.object.clone(), arguments.namespace.clone()));
    let answers = source::each(members, arguments.source.timeout, |live| {
        let (word, trust) = (word.clone(), arguments.source.trust.clone());
        async move { of_cluster(live, &word.0, word.1.as_deref(), everywhere, &trust).await }
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
    Ok(Sites { sites, complaints })
}

/// What one cluster has, and what cannot be said of it; `everywhere` stands for all namespaces.
async fn of_cluster(
    live: ClusterConnector,
    word: &Word,
    namespace: Option<&str>,
    everywhere: bool,
    trust: &Trust,
) -> Result<(Vec<Site>, Vec<String>), Failure> {
    let cluster = live.connect().await?;
    let discovery = cluster.discover().await.map_err(|error| of_read(&error))?;
    let other = |message: String| Failure { reason: String::new(), message };
    let (resource, namespace, name) = match word {
        Word::Key { key, .. } => {
            (discovery.kind(&key.group, &key.kind).map(|it| it.preferred()), &*key.namespace, &key.name)
        }
        Word::Named { kind, name } => {
            (discovery.resolve(kind), namespace.unwrap_or(cluster.namespace()), name)
        }
    };
    let Some(resource) = resource else {
        let kind = match word {
            Word::Key { key, .. } => &key.kind,
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
        let object = cluster.get(&resource, place, name, Projection::Full).await?;
        Ok((object.into_iter().collect(), None))
    };
    let (objects, argos) = join(objects, argos(&live.member.name, &cluster, &discovery, trust)).await;
    let (objects, more) = objects.map_err(|error| of_read(&error))?;
    let mut argos = if objects.is_empty() { Err(None) } else { argos.map_err(Some) };
    for object in &objects {
        let Ok(snapshot) = argos else { break };
        let own = Object::new(object.root()).map_err(|error| other(error.to_string()))?;
        argos = with_applications(snapshot, &own, &cluster, &discovery, trust).await.map_err(Some);
    }
    let reach = Reach { cluster, discovery, resource };
    let mut sites = Vec::new();
    let mut notes: Vec<String> = more.into_iter().collect();
    if let Err(Some(error)) = &argos {
        notes.push(format!("whether its Argo CD has actions is not known: {}", chain(error)));
    }
    for object in objects {
        let own = Object::new(object.root()).map_err(|error| other(error.to_string()))?;
        let heard = argos.as_ref().map_or_else(|_| Heard::default(), |snapshot| known(snapshot, &own, trust));
        let Heard { scripts, not_for_it, note } = heard;
        notes.extend(note.filter(|note| !notes.contains(note)));
        sites.push(Site { cluster: String::new(), object, scripts, not_for_it, live: Some(reach.clone()) });
    }
    Ok((sites, notes))
}

/// In so many namespaces an object is looked for by its name.
const NAMESPACES: usize = 50;

/// The objects of a name, and a sentence about those that were left out. Each is read by itself: a list has no values of
/// Secrets.
async fn of_all_namespaces(
    cluster: &Cluster,
    resource: &ApiResource,
    name: &str,
) -> Result<(Vec<OwnedDocument>, Option<String>), ReadError> {
    let by_name = format!("metadata.name={name}");
    let request = ListRequest {
        field_selector: Some(&by_name),
        projection: Projection::Metadata,
        ..ListRequest::all(resource)
    };
    let listed = cluster.list(&request).await?.objects;
    let mut namespaces: Vec<String> = listed
        .into_iter()
        .filter_map(|document| {
            let object = Object::new(document.root()).ok()?;
            (object.name() == name).then(|| object.namespace().into_owned())
        })
        .collect();
    namespaces.sort();
    namespaces.dedup();
    let more = namespaces.len().saturating_sub(NAMESPACES);
    let more = (more > 0)
        .then(|| format!("{name} is in {more} more namespaces; Taffrail reads at most {NAMESPACES}"));
    let mut objects = Vec::new();
    for namespace in namespaces.iter().take(NAMESPACES) {
        objects.extend(cluster.get(resource, Some(namespace), name, Projection::Full).await?);
    }
    Ok((objects, more))
}

/// Reads what has actions in a cluster, and what shows that an Argo CD is known there.
async fn argos(
    name: &str,
    cluster: &Cluster,
    discovery: &Discovery,
    trust: &Trust,
) -> Result<Snapshot, ReadError> {
    let kind = |group: &str, kind: &str| discovery.kind(group, kind).map(|it| it.preferred());
    let mut snapshot = Snapshot::dump(name, Timestamp::UNIX_EPOCH);
    let (Some(_), Some(config_maps)) = (kind("argoproj.io", "Application"), kind("", "ConfigMap")) else {
        return Ok(snapshot);
    };
    let request = ListRequest { field_selector: Some(BY_NAME), ..ListRequest::all(&config_maps) };
    insert(&mut snapshot, cluster.list(&request).await?.objects);
    let namespaces = with_actions(&snapshot);
    let doubtful = namespaces.iter().filter(|namespace| !trust.names_argocd(name, namespace));
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
    Ok(snapshot)
}

/// Reads the Applications that an object says it is of, and which namespaces their Argo CDs serve.
async fn with_applications(
    mut snapshot: Snapshot,
    object: &Object<'_>,
    cluster: &Cluster,
    discovery: &Discovery,
    trust: &Trust,
) -> Result<Snapshot, ReadError> {
    let kind = |group: &str, kind: &str| discovery.kind(group, kind).map(|it| it.preferred());
    let (Some(applications), Some(config_maps)) = (kind("argoproj.io", "Application"), kind("", "ConfigMap"))
    else {
        return Ok(snapshot);
    };
    for argo in standing(&snapshot, trust).0 {
        let named = argo_names(&snapshot, &argo, object);
        if named.iter().any(|(namespace, _)| *namespace != argo) {
            let parameters = cluster.get(&config_maps, Some(&argo), PARAMETERS, Projection::Full).await?;
            insert(&mut snapshot, parameters);
        }
        for (namespace, name) in named {
            match name {
                Some(name) => {
                    let found = cluster.get(&applications, Some(&namespace), &name, Projection::Full).await?;
                    insert(&mut snapshot, found);
                }
                None => {
                    let all = ListRequest { namespace: Some(&namespace), ..ListRequest::all(&applications) };
                    insert(&mut snapshot, cluster.list(&all).await?.objects);
                }
            }
        }
    }
    Ok(snapshot)
}

fn insert(snapshot: &mut Snapshot, objects: impl IntoIterator<Item = OwnedDocument>) {
    for document in objects {
        // What is no object is no Argo CD.
        let _ = snapshot.insert(document, Projection::Full);
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
        snapshot.of_kind("", "ConfigMap", None).filter(|it| it.key.name == CONFIG_MAP && has_any(&it.object));
    maps.map(|it| it.key.namespace.to_owned()).collect()
}

/// What the Argo CDs of a cluster have for an object.
#[derive(Default)]
struct Heard {
    scripts: Vec<OfCluster>,
    /// The ConfigMaps of those that are known and do not deliver it.
    not_for_it: Vec<String>,
    /// A sentence about those that are not known.
    note: Option<String>,
}

/// The namespaces of the Argo CDs with actions that are known, so many as are looked at, and those of the others.
fn standing(snapshot: &Snapshot, trust: &Trust) -> (Vec<String>, Vec<String>) {
    let namespaces = with_actions(snapshot).into_iter();
    let (mut known, others): (Vec<String>, Vec<String>) =
        namespaces.partition(|namespace| argo_standing(snapshot, namespace, trust) == Standing::Known);
    known.truncate(LOOKED_AT);
    (known, others)
}

/// The actions that the Argo CDs that are known have for what they deliver, if an object is of that.
fn known(snapshot: &Snapshot, object: &Object<'_>, trust: &Trust) -> Heard {
    let (known, others) = standing(snapshot, trust);
    let (mut scripts, mut not_for_it) = (Vec::new(), Vec::new());
    for namespace in known {
        let key = ObjectKey::new("", "ConfigMap", &*namespace, CONFIG_MAP);
        let Presence::Present(observed) = snapshot.get(key.as_ref()) else { continue };
        let called = format!("ConfigMap {}", key.path());
        if !argo_delivers(snapshot, &namespace, object) {
            not_for_it.push(called);
            continue;
        }
        let own = Customizations::of_config_map_object(Origin::Cluster, observed.object.root());
        scripts.extend(own.map(|scripts| OfCluster { scripts, called }));
    }
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
    Heard { scripts, not_for_it, note }
}

fn of_read(error: &ReadError) -> Failure {
    Failure { reason: error.reason().as_str().to_owned(), message: chain(error) }
}

fn of_dumps(arguments: &WhichArguments) -> Result<Sites, Complaint> {
    let fleet = source::dumps(&arguments.source)?;
    let mut sites = Vec::new();
    let mut complaints: Vec<Complaint> = fleet.problems.iter().map(Complaint::from).collect();
    let is_meant = |key: ObjectKeyRef<'_>| match &arguments.object {
        Word::Key { key: own, .. } => own.as_ref() == key,
        Word::Named { kind, name } => {
            let is_there = arguments
                .namespace
                .as_ref()
                .is_none_or(|it| key.namespace.is_empty() || *it == key.namespace);
            *name == key.name && is_there && names_kind(kind, key.group, key.kind)
        }
    };
    let wanted = arguments.object.cluster();
    let known_names: Vec<&str> = fleet.snapshots.iter().map(Objects::name).collect();
    unknown_cluster(wanted.into_iter(), &known_names).map_or(Ok(()), Err)?;
    for snapshot in fleet.snapshots.iter().filter(|it| wanted.is_none_or(|name| name == it.name())) {
        for observed in snapshot.all().filter(|observed| is_meant(observed.key)) {
            let Ok(object) = observed.object.to_document() else { continue };
            let Heard { scripts, not_for_it, note } =
                known(snapshot, &observed.object, &arguments.source.trust);
            let note = note.map(|note| Complaint::unreadable(format!("{}: {note}", snapshot.name())));
            complaints.extend(note.map(Complaint::harmless));
            let cluster = snapshot.name().to_owned();
            sites.push(Site { cluster, object, scripts, not_for_it, live: None });
        }
    }
    Ok(Sites { sites, complaints })
}
