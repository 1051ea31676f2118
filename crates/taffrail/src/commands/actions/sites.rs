//! The object that is meant, in each cluster that has it, and the scripts that the cluster itself has.

use std::sync::Arc;

use futures::future::join;
use taffrail_apps::{ObjectKey, Objects, filter};
use taffrail_cluster::{ApiResource, Cluster, Discovery, Form, ListRequest, ReadError};
use taffrail_rules::Origin;
use taffrail_rules::lua::Customizations;
use taffrail_status::json::{OwnedDocument, Value};
use taffrail_status::{Object, ObjectError};

use super::arguments::{WhichArguments, Word};
use crate::complaint::{Complaint, chain};
use crate::reasons;
use crate::source::{self, Asking, Failure, Live, Members};

/// By which the ConfigMap with the scripts of an Argo CD is found, wherever it is installed.
const CONFIG_MAP: &str = "app.kubernetes.io/name=argocd-cm";

/// The object in one cluster.
pub(super) struct Site {
    /// The name of the cluster.
    pub(super) cluster: String,
    object: OwnedDocument,
    /// The scripts of the Argo CD in the cluster.
    pub(super) scripts: Vec<Customizations>,
    /// How to reach it; of a dump there is no way.
    pub(super) live: Option<Reach>,
}

/// The way to an object.
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

fn of_clusters(arguments: &WhichArguments) -> Result<Sites, Complaint> {
    let Members { members, mut complaints } = source::members(&arguments.source)?;
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let word = Arc::new((arguments.object.clone(), arguments.namespace.clone()));
    let asking = Asking::start()?;
    let answers = asking.each(members, arguments.source.timeout, |live| {
        let word = word.clone();
        async move { of_cluster(live, &word.0, word.1.as_deref()).await }
    })?;
    let mut sites = Vec::new();
    for (name, answer) in names.into_iter().zip(answers) {
        match answer {
            Ok((site, notes)) => {
                sites.extend(site.map(|site| Site { cluster: name.clone(), ..site }));
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

/// What one cluster has, and what cannot be said of it.
async fn of_cluster(
    live: Live,
    word: &Word,
    namespace: Option<&str>,
) -> Result<(Option<Site>, Option<String>), Failure> {
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
    let (object, scripts) =
        join(cluster.get(&resource, place, name, Form::Body), scripts(&cluster, &discovery)).await;
    let Some(text) = object.map_err(|error| of_read(&error))? else { return Ok((None, None)) };
    let object = OwnedDocument::parse(text).map_err(|error| other(error.to_string()))?;
    let (scripts, note) = match scripts {
        Ok(scripts) => (scripts, None),
        Err(error) => {
            (Vec::new(), Some(format!("whether its Argo CD has actions is not known: {}", chain(&error))))
        }
    };
    let live = Some(Reach { cluster, discovery, resource });
    Ok((Some(Site { cluster: String::new(), object, scripts, live }), note))
}

/// The scripts of the Argo CD that runs in a cluster, where one does.
async fn scripts(cluster: &Cluster, discovery: &Discovery) -> Result<Vec<Customizations>, ReadError> {
    let config_maps = discovery.kind("", "ConfigMap").map(|it| it.preferred());
    let (Some(_), Some(config_maps)) = (discovery.kind("argoproj.io", "Application"), config_maps) else {
        return Ok(Vec::new());
    };
    let request = ListRequest { label_selector: Some(CONFIG_MAP), ..ListRequest::all(&config_maps) };
    let listing = cluster.list(&request).await?;
    let documents = listing.objects.into_iter().filter_map(|text| OwnedDocument::parse(text).ok());
    Ok(documents.filter_map(|document| of_config_map(document.root())).collect())
}

/// The scripts of an Argo CD, if it has any.
fn of_config_map(object: Value<'_>) -> Option<Customizations> {
    Customizations::of_config_map_object(Origin::Cluster, object)
}

fn of_read(error: &ReadError) -> Failure {
    Failure { reason: error.reason().as_str().to_owned(), message: chain(error) }
}

fn of_dumps(arguments: &WhichArguments) -> Result<Sites, Complaint> {
    let fleet = source::dumps(&arguments.source)?;
    let mut sites = Vec::new();
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
        let is_own =
            |key: &ObjectKey| key.group.is_empty() && key.kind == "ConfigMap" && key.name == "argocd-cm";
        for observed in snapshot.all().filter(|observed| is_meant(observed.key)) {
            let text = observed.object.root().text().unwrap_or_default();
            let Ok(object) = OwnedDocument::parse(text) else { continue };
            let config_maps = snapshot.all().filter(|observed| is_own(observed.key));
            let scripts = config_maps.filter_map(|it| of_config_map(it.object.root())).collect();
            sites.push(Site { cluster: snapshot.name().to_owned(), object, scripts, live: None });
        }
    }
    Ok(Sites { sites, asking: None, complaints: fleet.complaints })
}
