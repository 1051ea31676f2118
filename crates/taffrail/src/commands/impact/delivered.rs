//! The apps that are delivered from folders of the repository, and how.

use std::collections::{BTreeMap, BTreeSet};

use taffrail_apps::{App, Delivery, Snapshot, Source};
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, Projection};
use taffrail_plan::manifests::{ApplyMode, Removal, SyncOptions};
use taffrail_status::{ClusterState as _, Observed, Status};

use super::super::diff::{TRACKING, ToolMarks};
use super::folder::{Extent, Folder, Tree};
use super::git::{self, GitError};

/// The fields of a Kustomization of Flux by which it changes what is in its folder.
const FLUX_CHANGES: [&str; 10] = [
    "targetNamespace",
    "namePrefix",
    "nameSuffix",
    "commonMetadata",
    "images",
    "patches",
    "patchesStrategicMerge",
    "patchesJson6902",
    "postBuild",
    "decryption",
];

/// The label by which Argo CD knows its objects, unless its settings name another one.
const INSTANCE: &str = "app.kubernetes.io/instance";

/// The fields of an Application's source by which Argo CD makes manifests with another tool.
const ARGO_TOOLS: [&str; 4] = ["chart", "helm", "kustomize", "plugin"];

/// The fields of `directory` of an Application's source that select or make manifests.
const ARGO_SELECTIONS: [&str; 4] = ["include", "exclude", "jsonnet", "disableExtensionFilter"];

/// An app that is delivered from a folder as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Delivered {
    /// The files of the folder that its tool reads.
    pub(super) extent: Extent,
    /// The namespace of objects without one.
    pub(super) namespace: String,
    /// The field manager of its tool.
    pub(super) manager: &'static str,
    /// The marks that its tool puts on objects.
    pub(super) marks: ToolMarks,
    /// A text in a manifest because of which its tool leaves out the file, or objects of it.
    pub(super) untold_marker: &'static str,
    /// The prefix of the annotations and labels that its tool reads.
    pub(super) own_marks: &'static str,
    /// True if its tool applies the folder without being told to.
    pub(super) is_automatic: bool,
    /// True if its tool deletes what is no longer in the folder.
    pub(super) prunes: bool,
    /// True if its tool does so even if there are no manifests left.
    pub(super) prunes_all: bool,
}

/// The relation of an app to the change of a folder.
pub(super) enum Concern {
    /// The change does not reach it.
    None,
    /// It is delivered from the folder as it is.
    Delivered(Delivered),
    /// The change may reach it, and what it will have cannot be told. Holds the reason, for people.
    Untold(String),
}

/// Returns the folder of the repository at one of `places` that an app is delivered from, the root for one of whose several
/// sources another is that repository; `None` for apps without such a source.
pub(super) fn folder_of(app: &App, home: &Snapshot, places: &BTreeSet<String>) -> Option<Folder> {
    let is_here = |url: &str| git::place(url).is_some_and(|place| places.contains(&place));
    let source = app.source.as_ref();
    if let Some(Source { url: Some(url), path, .. }) = source
        && is_here(url)
    {
        return Folder::new(path.as_deref().unwrap_or_default());
    }
    let object = declaring(app, home).filter(|_| app.app.delivery == Delivery::ArgoApplication)?.object;
    let sources = object.at(&["spec", "sources"]).and_then(Value::items).into_iter().flatten();
    let dry = object.at(&["spec", "sourceHydrator", "drySource"]);
    let urls = sources.chain(dry).filter_map(|source| source.get("repoURL").and_then(Value::as_str));
    urls.into_iter().any(|url| is_here(&url)).then(Folder::root)
}

/// Returns the declaring object of an app, if it was read whole.
fn declaring<'s>(app: &App, home: &'s Snapshot) -> Option<Observed<'s>> {
    let observed = app.declaring.as_ref().and_then(|key| home.get(key.as_ref()).present());
    observed.filter(|observed| observed.projection == Projection::Full)
}

/// Returns the relation of an app that is delivered from `folder` to the paths that changed: of one that the cluster `home`
/// declares and that has its objects in `target`. `trees` are the files before and after the change.
///
/// # Errors
/// [`GitError`] if a file cannot be read.
pub(super) fn concern(
    app: &App,
    folder: &Folder,
    (home, target): (&Snapshot, &Snapshot),
    changed: &BTreeSet<String>,
    trees: [&Tree; 2],
) -> Result<Concern, GitError> {
    let is_changed = changed.iter().any(|path| folder.touches(path));
    let told = match (app.app.delivery, declaring(app, home)) {
        (Delivery::FluxKustomization, Some(observed)) => flux(&observed.object, app, home, folder, trees),
        (Delivery::ArgoApplication, Some(observed)) => argo(&observed.object, app, target, folder, trees),
        (delivery, _) => {
            Err(Untold::OfRepository(format!("what {delivery} makes of the repository is not known")))
        }
    };
    let (is_reached, why) = match told {
        Ok(delivered) if is_changed => return Ok(Concern::Delivered(delivered)),
        Ok(_) => return Ok(Concern::None),
        Err(Untold::OfFolder(why)) => (is_changed, why),
        Err(Untold::OfRepository(why)) => (true, why),
        Err(Untold::Kustomize(why)) => {
            let mut is_reached = is_changed;
            for tree in trees {
                is_reached = is_reached || tree.may_reach(folder, changed)?;
            }
            (is_reached, why)
        }
    };
    Ok(if is_reached { Concern::Untold(why) } else { Concern::None })
}

/// The reason why it cannot be told what an app will have.
enum Untold {
    /// Something changes or selects what is in the folder.
    OfFolder(String),
    /// Kustomize makes the objects, also of what is in other folders.
    Kustomize(String),
    /// A tool makes the objects, of whatever files of the repository.
    OfRepository(String),
}

fn flux(
    object: &Object<'_>,
    app: &App,
    home: &Snapshot,
    folder: &Folder,
    trees: [&Tree; 2],
) -> Result<Delivered, Untold> {
    if set(object, &["spec"], &["components"]).is_some() {
        return Err(Untold::OfRepository(
            "spec.components of the Kustomization adds to the folder".to_owned(),
        ));
    }
    if let Some(path) = trees.iter().find_map(|tree| tree.kustomization(folder, true)) {
        return Err(Untold::Kustomize(format!("kustomize makes its objects ({path})")));
    }
    if let Some(field) = set(object, &["spec"], &FLUX_CHANGES) {
        return Err(Untold::OfFolder(format!(
            "spec.{field} of the Kustomization changes what is in the folder"
        )));
    }
    if let Some(path) = trees.iter().find_map(|tree| tree.source_ignore(folder)) {
        return Err(Untold::OfFolder(format!("{path} decides which files are delivered")));
    }
    without_links(folder, trees)?;
    let source = app.source.as_ref().and_then(|source| {
        let (namespace, name) = (source.namespace.as_ref()?, source.name.as_ref()?);
        let key = ObjectKey::new("source.toolkit.fluxcd.io", &*source.kind, &**namespace, &**name);
        home.get(key.as_ref()).present()
    });
    let source = source.filter(|source| source.projection == Projection::Full);
    let Some(source) = source else {
        return Err(Untold::OfFolder("its source could not be read, which may leave out files".to_owned()));
    };
    if let Some(field) = set(&source.object, &["spec"], &["ignore", "include", "sparseCheckout"]) {
        return Err(Untold::OfFolder(format!(
            "spec.{field} of its source decides which files are delivered"
        )));
    }
    Ok(Delivered {
        extent: Extent::BelowAsFlux(&["yaml", "yml"]),
        namespace: "default".to_owned(),
        manager: "kustomize-controller",
        marks: ToolMarks {
            labels: BTreeMap::from([
                ("kustomize.toolkit.fluxcd.io/name", app.app.name.clone()),
                ("kustomize.toolkit.fluxcd.io/namespace", app.app.namespace.clone()),
            ]),
            tracking: None,
        },
        // Kustomize leaves out such objects.
        untold_marker: "config.kubernetes.io/local-config",
        own_marks: "kustomize.toolkit.fluxcd.io/",
        is_automatic: true,
        prunes: object.at(&["spec", "prune"]).and_then(Value::as_bool) == Some(true),
        prunes_all: true,
    })
}

fn without_links(folder: &Folder, trees: [&Tree; 2]) -> Result<(), Untold> {
    match trees.iter().find_map(|tree| tree.other(folder)) {
        Some(path) => Err(Untold::OfRepository(format!("{path} is a symbolic link or a submodule"))),
        None => Ok(()),
    }
}

fn argo(
    object: &Object<'_>,
    app: &App,
    target: &Snapshot,
    folder: &Folder,
    trees: [&Tree; 2],
) -> Result<Delivered, Untold> {
    let sources = object.at(&["spec", "sources"]).and_then(Value::items).into_iter().flatten();
    let is_hydrated = object.at(&["spec", "sourceHydrator"]).is_some_and(|it| !it.is_null());
    if sources.count() > 0 || is_hydrated {
        return Err(Untold::OfRepository("it has several sources, or its manifests are hydrated".to_owned()));
    }
    let source = ["spec", "source"];
    if let Some(path) = trees.iter().find_map(|tree| tree.kustomization(folder, false)) {
        return Err(Untold::Kustomize(format!("kustomize makes its objects ({path})")));
    }
    if let Some(path) = trees.iter().find_map(|tree| tree.chart(folder)) {
        return Err(Untold::OfRepository(format!("Helm makes its objects ({path})")));
    }
    if let Some(field) = set(object, &source, &ARGO_TOOLS) {
        return Err(Untold::OfRepository(format!(
            "spec.source.{field} of the Application makes its objects"
        )));
    }
    let kind = object.text(&["status", "sourceType"]);
    if !matches!(&*kind, "" | "Directory") {
        return Err(Untold::OfRepository(format!("{} makes its objects", short(&kind))));
    }
    let directory = ["spec", "source", "directory"];
    if let Some(field) = set(object, &directory, &ARGO_SELECTIONS) {
        let why = format!("spec.source.directory.{field} of the Application selects its files");
        return Err(Untold::OfFolder(why));
    }
    let makes = |name: &str| name.ends_with(".jsonnet") || name.starts_with(".argocd-source");
    if let Some(path) = trees.iter().find_map(|tree| tree.file_named(folder, makes)) {
        return Err(Untold::OfRepository(format!("{path} makes or changes its objects")));
    }
    without_links(folder, trees)?;
    let is_deep =
        object.at(&["spec", "source", "directory", "recurse"]).and_then(Value::as_bool) == Some(true);
    let endings: &[&str] = &["yaml", "yml", "json"];
    let automated = ["spec", "syncPolicy", "automated"];
    let flag = |name| object.at(&automated).and_then(|it| it.get(name)).and_then(Value::as_bool);
    let options = object.at(&["spec", "syncPolicy", "syncOptions"]).and_then(Value::items);
    let options = options.into_iter().flatten().filter_map(Value::as_str);
    // Without a confirmation, nothing is deleted.
    let keeps_all =
        options.into_iter().any(|option| matches!(option.trim(), "Prune=false" | "Prune=confirm"));
    Ok(Delivered {
        extent: if is_deep { Extent::Below(endings) } else { Extent::Folder(endings) },
        namespace: Some(object.text(&["spec", "destination", "namespace"]).into_owned())
            .filter(|namespace| !namespace.is_empty())
            .unwrap_or_else(|| "default".to_owned()),
        manager: "argocd-controller",
        marks: argo_marks(app, target),
        untold_marker: "+argocd:skip-file-rendering",
        own_marks: "argocd.argoproj.io/",
        is_automatic: object.at(&automated).is_some_and(|it| !it.is_null()) && flag("enabled") != Some(false),
        prunes: flag("prune") == Some(true) && flag("enabled") != Some(false) && !keeps_all,
        prunes_all: flag("allowEmpty") == Some(true),
    })
}

/// Returns the marks that Argo CD puts on the objects of an app: those that its live objects have, since its settings choose
/// between label and annotation.
fn argo_marks(app: &App, target: &Snapshot) -> ToolMarks {
    let mut marks = ToolMarks::default();
    let names = [app.app.name.clone(), format!("{}_{}", app.app.namespace, app.app.name)];
    let (mut objects, mut labelled) = (0, 0);
    for resource in app.resources.iter().filter(|resource| !resource.unconfirmed) {
        let Some(observed) = target.get(ObjectKey::as_ref(&resource.key)).present() else { continue };
        let mark = |part: &str, name: &str| observed.object.text(&["metadata", part, name]).into_owned();
        let (instance, tracking) = (mark("labels", INSTANCE), mark("annotations", TRACKING));
        objects += 1;
        labelled += usize::from(names.contains(&instance));
        if let Some((of_app, _)) = tracking.split_once(':')
            && names.iter().any(|name| name == of_app)
        {
            marks.tracking = Some(of_app.to_owned());
        }
        if labelled == objects {
            marks.labels.insert(INSTANCE, instance);
        }
    }
    // A label of the manifests themselves is not on all objects.
    if labelled < objects {
        marks.labels.clear();
    }
    marks
}

/// Returns the first of `fields` that an object has at `path`, and not empty.
fn set<'f>(object: &Object<'_>, path: &[&str], fields: &[&'f str]) -> Option<&'f str> {
    let is_set = |field: &&&str| {
        object.at(path).and_then(|at| at.get(field)).is_some_and(|value| {
            let is_empty = value.items().is_some_and(|mut items| items.next().is_none())
                || value.members().is_some_and(|mut members| members.next().is_none())
                || value.as_str().is_some_and(|text| text.is_empty());
            !value.is_null() && !is_empty
        })
    };
    fields.iter().find(is_set).copied()
}

/// Returns the objects of an app that exist and that its tool would find no longer in its folder, if `declared` is there,
/// each with the reason why it stays; `None` for those that the tool deletes.
pub(super) fn removed<'a>(
    app: &'a App,
    target: &Snapshot,
    delivered: &Delivered,
    declared: &BTreeSet<ObjectKey>,
) -> Vec<(&'a ObjectKey, Option<String>)> {
    let is_removed = |key: &ObjectKey| !declared.contains(key);
    let resources = app.resources.iter().filter(|it| it.status != Status::NotFound && is_removed(&it.key));
    let stays = |key: &ObjectKey, is_unconfirmed: bool| match () {
        () if !delivered.prunes => Some("its app does not prune".to_owned()),
        () if is_unconfirmed => Some("it may belong to another app".to_owned()),
        () => kept_by(target, key, delivered.own_marks).map(|mark| format!("{mark} keeps it")),
    };
    resources.map(|it| (&*it.key, stays(&it.key, it.unconfirmed))).collect()
}

/// Returns the annotation or label that keeps the tool from deleting a live object, of those with the prefix `own`; `None` if
/// there is none.
fn kept_by(target: &Snapshot, key: &ObjectKey, own: &str) -> Option<&'static str> {
    let observed = target.get(key.as_ref()).present()?;
    let mut metadata = observed.object.metadata()?.to_tree().ok()?;
    for part in ["annotations", "labels"] {
        if let Some(marks) = metadata.get_mut(part).and_then(serde_json::Value::as_object_mut) {
            marks.retain(|mark, _| mark.starts_with(own));
        }
    }
    let options = SyncOptions::of_live(metadata.as_object()?);
    let prune = options.prune.filter(|prune| prune.value != Removal::Allowed).map(|prune| prune.stated_by);
    prune.or_else(|| Some(options.apply_mode.filter(|mode| mode.value == ApplyMode::Ignore)?.stated_by))
}

/// Returns the beginning of a text that somebody wrote into a cluster.
fn short(text: &str) -> String {
    text.chars().take(64).collect()
}
