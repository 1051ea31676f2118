//! Confirmation of an app's claims on objects by the marks that the objects carry.
//!
//! An author who may write into one namespace can list any object in an inventory there. So a claim counts in
//! full in the namespace and cluster of its author, who could set marks there as well, and elsewhere only
//! where the object carries the mark that the tool writes for that app.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef};
use taffrail_status::Presence;

use crate::identity::{APP_ANNOTATION, Delivery};
use crate::object_keys::ObjectKeys;
use crate::sets::SetName;

/// The default label by which Argo CD tracks objects that carry no tracking id.
pub(crate) const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";

/// The only namespace in which Config Sync reads RootSyncs.
pub(crate) const CONFIG_SYNC: &str = "config-management-system";

/// The number of characters to which Argo CD cuts the name of an app in a tracking label.
const MAX_LABEL_LENGTH: usize = 63;

/// The labels by which Flux marks objects: namespace and name of a Kustomization, and of a HelmRelease.
const FLUX_LABELS: [&str; 4] = [
    "kustomize.toolkit.fluxcd.io/namespace",
    "kustomize.toolkit.fluxcd.io/name",
    "helm.toolkit.fluxcd.io/namespace",
    "helm.toolkit.fluxcd.io/name",
];

/// The annotations in which Helm, Argo CD, Config Sync, kpt and Taffrail name the app of an object.
const TOOL_ANNOTATIONS: [&str; 6] = [
    "meta.helm.sh/release-name",
    "meta.helm.sh/release-namespace",
    "argocd.argoproj.io/tracking-id",
    "configsync.gke.io/manager",
    "config.k8s.io/owning-inventory",
    "taffrail.dev/set",
];

/// Lists the annotations that must be kept of an object to find its app: those in which tools name the app, those that
/// mark hooks, and [`APP_ANNOTATION`].
pub(crate) fn annotations_of_apps() -> impl Iterator<Item = &'static str> {
    let hooks = ["argocd.argoproj.io/hook", "helm.sh/hook"];
    TOOL_ANNOTATIONS.into_iter().chain(hooks).chain([APP_ANNOTATION])
}

/// The tool that writes a mark, and the label or annotation that it writes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Tool {
    Kustomization,
    HelmRelease,
    Helm,
    /// Helm, for a release whose name helm-controller shortened: the mark is compared only with the start of the
    /// release's name.
    HelmCut,
    Tracking,
    /// A tracking label of Argo CD, by its key.
    Label(String),
    Inventory,
    Manager,
    Set,
}

/// A mark: the label or annotation by which an object names the app that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Mark {
    tool: Tool,
    /// The namespace of the app; empty where the tool writes namespace and name as one text.
    namespace: String,
    name: String,
}

impl Mark {
    fn new(tool: Tool, namespace: &str, name: &str) -> Mark {
        Mark { tool, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Returns the mark that kustomize-controller writes on the objects of the Kustomization
    /// `namespace`/`name`.
    pub(crate) fn of_kustomization(namespace: &str, name: &str) -> Mark {
        Mark::new(Tool::Kustomization, namespace, name)
    }

    /// Returns the mark that helm-controller writes on the objects of the HelmRelease `namespace`/`name`.
    pub(crate) fn of_helm_release(namespace: &str, name: &str) -> Mark {
        Mark::new(Tool::HelmRelease, namespace, name)
    }

    /// Returns the mark that Helm writes on the objects of the release `name` in `namespace`.
    pub(crate) fn of_release(namespace: &str, name: &str) -> Mark {
        Mark::new(Tool::Helm, namespace, name)
    }

    /// Returns the mark that Helm writes for a release whose name helm-controller shortened; `kept` is the
    /// start of the name.
    pub(crate) fn of_cut_release(namespace: &str, kept: &str) -> Mark {
        Mark::new(Tool::HelmCut, namespace, kept)
    }

    /// Returns the marks that Argo CD may write for an Application: a tracking id and the label `label`, its value cut
    /// to 63 characters, with `namespace_name`; and, unless `is_elsewhere`, both with the bare name.
    ///
    /// `is_elsewhere` is true for an Application outside of Argo CD's own namespace.
    pub(crate) fn of_application(namespace: &str, name: &str, is_elsewhere: bool, label: &str) -> Vec<Mark> {
        let with_namespace = format!("{namespace}_{name}");
        let names = if is_elsewhere { vec![with_namespace] } else { vec![name.to_owned(), with_namespace] };
        let both = |name: &String| {
            let end = name.char_indices().map(|(at, _)| at).nth(MAX_LABEL_LENGTH).unwrap_or(name.len());
            [Mark::new(Tool::Tracking, "", name), Mark::new(Tool::Label(label.to_owned()), "", &name[..end])]
        };
        names.iter().flat_map(both).collect()
    }

    /// Returns the mark that kpt writes on the objects of an inventory; `None` for an empty id.
    pub(crate) fn of_inventory(id: &str) -> Option<Mark> {
        (!id.is_empty()).then(|| Mark::new(Tool::Inventory, "", id))
    }

    /// Returns the mark that Taffrail writes on the objects of a set.
    pub(crate) fn of_set(set: &SetName) -> Mark {
        Mark::new(Tool::Set, "", &set.to_string())
    }

    /// Returns the marks that Config Sync writes for the RootSync or RepoSync (`kind`) of this namespace and name: its
    /// name as manager, except for a RootSync outside of [`CONFIG_SYNC`], and the id of its inventory.
    pub(crate) fn of_sync(kind: &str, namespace: &str, name: &str) -> Vec<Mark> {
        let manager = match (kind, name) {
            ("RootSync", _) if namespace != CONFIG_SYNC => None,
            ("RootSync", "root-sync") => Some(":root".to_owned()),
            ("RootSync", name) => Some(format!(":root_{name}")),
            (_, "repo-sync") => Some(namespace.to_owned()),
            (_, name) => Some(format!("{namespace}_{name}")),
        };
        let manager = manager.map(|manager| Mark::new(Tool::Manager, "", &manager));
        manager.into_iter().chain(Mark::of_inventory(&format!("{namespace}_{name}"))).collect()
    }

    /// Returns the marks that `object` carries, the strongest first. `labels` are the label keys by which
    /// Argo CD may track; these labels count only if the object has no tracking id.
    pub(crate) fn all(key: ObjectKeyRef<'_>, object: &Object<'_>, labels: &[&str]) -> Vec<Mark> {
        let Some(metadata) = object.at(&["metadata"]) else { return Vec::new() };
        let [own_labels, annotations] = metadata.pick(["labels", "annotations"]);
        let [of_kustomization, kustomization, of_helm_release, helm_release] = words(own_labels, FLUX_LABELS);
        let [release, of_release, tracking, manager, inventory, set] = words(annotations, TOOL_ANNOTATIONS);
        let both = |namespace: Option<Cow<'_, str>>, name: Option<Cow<'_, str>>, tool| {
            namespace.zip(name).map(|(namespace, name)| Mark::new(tool, &namespace, &name))
        };
        let of_flux = both(of_helm_release, helm_release, Tool::HelmRelease);
        // helm-controller cuts at 40 characters, and writes a dash and 12 digits of a hash.
        let kept = release.as_deref().filter(|name| name.len() == 53 && of_flux.is_none());
        let kept = kept.and_then(|name| name.get(..41)).zip(of_release.as_deref());
        let cut = kept.map(|(kept, namespace)| Mark::of_cut_release(namespace, kept));
        let is_tracked = tracking.is_some();
        let app = tracking.as_deref().and_then(|id| tracked(id, key));
        let marks = [
            both(of_kustomization, kustomization, Tool::Kustomization),
            of_flux,
            both(of_release, release, Tool::Helm),
            cut,
            app.map(|app| Mark::new(Tool::Tracking, "", app)),
            manager.map(|name| Mark::new(Tool::Manager, "", &name)),
            inventory.and_then(|id| Mark::of_inventory(&id)),
            set.map(|name| Mark::new(Tool::Set, "", &name)),
        ];
        let mut marks: Vec<Mark> = marks.into_iter().flatten().collect();
        if !is_tracked {
            let named = labels.iter().filter_map(|key| Some((*key, word(own_labels, key)?)));
            marks.extend(named.map(|(key, name)| Mark::new(Tool::Label(key.to_owned()), "", &name)));
        }
        marks
    }

    /// Returns the mark of the release to which a Helm hook seems to belong, as hooks carry no mark: the release that
    /// the label `app.kubernetes.io/instance` names, in the namespace of the hook.
    ///
    /// `None` if the object is not a Helm hook, or lacks this label or `app.kubernetes.io/managed-by: Helm`.
    pub(crate) fn of_hook(key: ObjectKeyRef<'_>, object: &Object<'_>) -> Option<Mark> {
        let metadata = object.at(&["metadata"])?;
        let [labels, annotations] = metadata.pick(["labels", "annotations"]);
        let is_hook = word(annotations, "helm.sh/hook").is_some()
            && word(labels, "app.kubernetes.io/managed-by").is_some_and(|by| by == "Helm");
        let release = word(labels, INSTANCE_LABEL).filter(|_| is_hook)?;
        Some(Mark::of_release(key.namespace, &release))
    }

    /// Returns true for a mark that helm-controller (not Helm) writes on the objects of a HelmRelease.
    pub(crate) fn is_of_helm_release(&self) -> bool {
        self.tool == Tool::HelmRelease
    }

    /// Returns true for a mark that Helm writes on the objects of a release.
    pub(crate) fn is_of_release(&self) -> bool {
        matches!(self.tool, Tool::Helm | Tool::HelmCut)
    }

    /// Returns true for a tracking label of Argo CD, which other tools and users write as well.
    pub(crate) fn is_label(&self) -> bool {
        matches!(self.tool, Tool::Label(_))
    }

    /// Returns true if only the delivery tool writes such a mark: false for a tracking label of Argo CD, which any
    /// user may set, and for the start of a shortened release name.
    pub(crate) fn is_written_by_tool(&self) -> bool {
        !matches!(self.tool, Tool::Label(_) | Tool::HelmCut)
    }

    /// Returns true if the mark names `namespace`, so that an author in another namespace could not choose it for an
    /// app: as its namespace, or before a `_` in a tracking label, inventory id or set.
    ///
    /// True as well for tracking ids and for Config Sync's annotation of the manager, which an author cannot choose.
    pub(crate) fn is_bound_to(&self, namespace: &str) -> bool {
        match self.tool {
            Tool::Kustomization | Tool::HelmRelease | Tool::Helm | Tool::HelmCut => {
                self.namespace == namespace
            }
            Tool::Label(_) | Tool::Inventory | Tool::Set => {
                self.name.strip_prefix(namespace).is_some_and(|rest| rest.starts_with('_'))
            }
            // A tracking id names the object as well, and a bare name in it counts beside Argo CD only.
            Tool::Tracking | Tool::Manager => true,
        }
    }

    /// Returns the namespace and name of the Application that a mark of Argo CD names; `None` for marks of
    /// other tools.
    ///
    /// The namespace is `None` where the mark leaves it out, the name where it was cut.
    pub(crate) fn application(&self) -> Option<(Option<&str>, Option<&str>)> {
        let is_whole = match self.tool {
            Tool::Tracking => true,
            Tool::Label(_) => self.name.chars().count() < MAX_LABEL_LENGTH,
            _ => return None,
        };
        let (namespace, name) = match self.name.split_once('_') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, &*self.name),
        };
        Some((namespace, Some(name).filter(|_| is_whole)))
    }

    /// Returns the delivery and the name of the app that the mark names, as `namespace/name`: of Argo CD perhaps
    /// without the namespace, for a shortened release with only the start of the name, of Config Sync as its annotation
    /// names the manager. For an inventory id the delivery is `None`, and the name is the id.
    pub(crate) fn app(&self) -> (Option<Delivery>, String) {
        let Mark { tool, namespace, name } = self;
        let both = || format!("{namespace}/{name}");
        match tool {
            Tool::Kustomization => (Some(Delivery::FluxKustomization), both()),
            Tool::HelmRelease => (Some(Delivery::FluxHelmRelease), both()),
            Tool::Helm | Tool::HelmCut => (Some(Delivery::Helm), both()),
            Tool::Tracking | Tool::Label(_) => (Some(Delivery::ArgoApplication), name.replacen('_', "/", 1)),
            Tool::Manager => (Some(Delivery::ConfigSync), name.clone()),
            Tool::Inventory => (None, name.clone()),
            Tool::Set => (Some(Delivery::Taffrail), name.replacen('_', "/", 1)),
        }
    }
}

/// Formats like [`crate::AppRef`], `helm shop/web`, or as `the inventory ID` for a mark of kpt.
impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.app() {
            (Some(delivery), name) => write!(f, "{delivery} {name}"),
            (None, name) => write!(f, "the inventory {name}"),
        }
    }
}

/// Returns the text under `key` in `place`, which are the labels or annotations of an object; `None` if it is
/// missing, empty or longer than 1,024 bytes.
fn word<'a>(place: Option<Value<'a>>, key: &str) -> Option<Cow<'a, str>> {
    let [word] = words(place, [key]);
    word
}

/// Returns the texts under `keys` in `place`, which are the labels or annotations of an object, in one pass; `None`
/// for each that is missing, empty or longer than 1,024 bytes.
fn words<'a, const N: usize>(place: Option<Value<'a>>, keys: [&str; N]) -> [Option<Cow<'a, str>>; N] {
    let found = place.map_or([None; N], |place| place.pick(keys));
    found.map(|value| value?.as_str().filter(|text| !text.is_empty() && text.len() <= 1024))
}

/// Returns the app in a tracking id `<app>:<group>/<Kind>:<namespace>/<name>`; `None` if the id is malformed, or names
/// another object than `key`.
fn tracked<'i>(id: &'i str, key: ObjectKeyRef<'_>) -> Option<&'i str> {
    let (app, object) = id.split_once(':')?;
    let (kind, name) = object.split_once(':')?;
    let (group, kind) = kind.split_once('/')?;
    let (namespace, name) = name.split_once('/')?;
    let is_it = group == key.group
        && kind == key.kind
        && name == key.name
        && (key.namespace.is_empty() || namespace == key.namespace);
    (is_it && !app.is_empty()).then_some(app)
}

/// The minimum size of a large object, in bytes of its JSON text; the marks of smaller objects are parsed at each call
/// and not cached.
const LARGE_OBJECT_BYTES: usize = 16 << 10;

/// Returns true if the object is so large that its marks are parsed once and cached.
pub(crate) fn is_large(object: &Object<'_>) -> bool {
    object.root().text().is_some_and(|text| text.len() >= LARGE_OBJECT_BYTES)
}

/// A key of [`LargeMarks`]: the index of a cluster, an object in it, and the tracking labels of a claimant.
type Carrying = (usize, ObjectKey, Vec<String>);

/// A cache of the marks of large objects, for all apps that list them.
#[derive(Debug, Default)]
pub(crate) struct LargeMarks(RefCell<HashMap<Carrying, Rc<[Mark]>>>);

impl LargeMarks {
    /// Calls `ask` with the marks of an object in the cluster with this index, and returns its result. The marks of
    /// large objects are parsed once.
    fn ask(
        &self,
        (cluster, key): (usize, &ObjectKey),
        object: &Object<'_>,
        labels: &[&str],
        ask: impl FnOnce(&[Mark]) -> bool,
    ) -> bool {
        if !is_large(object) {
            return ask(&Mark::all(key.as_ref(), object, labels));
        }
        let place = (cluster, key.clone(), labels.iter().map(|label| (*label).to_owned()).collect());
        let mut known = self.0.borrow_mut();
        ask(known.entry(place).or_insert_with(|| Mark::all(key.as_ref(), object, labels).into()))
    }
}

/// The author of an app's claims on objects, and the marks by which an object confirms such a claim.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Claimant {
    /// The index of the cluster and the namespace in which claims need no mark; `None` if no claim needs one.
    pub(crate) place: Option<(usize, String)>,
    /// The marks of the app; an object that carries any of them confirms the claim.
    pub(crate) marks: Vec<Mark>,
    /// Hooks of the tool's operations, which the app claims but does not declare: they come and go.
    pub(crate) hooks: ObjectKeys,
}

impl Claimant {
    /// Makes the claimant for an author who may write into one namespace of the cluster with index `cluster`.
    pub(crate) fn in_namespace(cluster: usize, namespace: &str, marks: Vec<Mark>) -> Claimant {
        Claimant { place: Some((cluster, namespace.to_owned())), marks, hooks: ObjectKeys::default() }
    }

    /// Returns true if a claim on the object `key` of the cluster with this index needs no mark: the object is in the
    /// author's own namespace and cluster, or the claimant has no [`place`](Claimant::place). Otherwise false for
    /// cluster-scoped objects.
    pub(crate) fn owns_place_of(&self, cluster: usize, key: ObjectKeyRef<'_>) -> bool {
        let is_inside = |(own, namespace): &(usize, String)| *own == cluster && *namespace == key.namespace;
        self.place.as_ref().is_none_or(|place| !key.namespace.is_empty() && is_inside(place))
    }

    /// Returns true if the claimant is a HelmRelease.
    pub(crate) fn is_helm_release(&self) -> bool {
        self.marks.iter().any(Mark::is_of_helm_release)
    }

    /// Returns true if one of `marks`, those that an object carries, is a mark of this claimant. False if this
    /// claimant is a HelmRelease and the object carries the mark of another HelmRelease.
    pub(crate) fn is_named(&self, marks: &[Mark]) -> bool {
        let flux = |mark: &&Mark| mark.tool == Tool::HelmRelease;
        // The mark of a HelmRelease is more reliable than the name of a release, which several may choose.
        let of_another = self.marks.iter().any(|mark| flux(&mark))
            && marks.iter().any(|mark| flux(&mark) && !self.marks.contains(mark));
        marks.iter().any(|mark| self.marks.contains(mark)) && !of_another
    }

    /// Returns true if a claim on this object is unconfirmed: the object exists outside of the author's namespace
    /// and carries no mark of this claimant.
    ///
    /// Objects that are absent or were not observed need no agreement.
    pub(crate) fn lacks_agreement(
        &self,
        cluster: usize,
        key: &ObjectKey,
        found: &Presence<'_>,
        large: &LargeMarks,
    ) -> bool {
        if self.owns_place_of(cluster, key.as_ref()) {
            return false;
        }
        match found {
            Presence::Present(observed) => {
                let is_named = |marks: &[Mark]| self.is_named(marks);
                !large.ask((cluster, key), &observed.object, &self.labels(), is_named)
            }
            Presence::Absent | Presence::Unobserved(_) => false,
        }
    }

    /// Returns true if health rules of the claimant may give this object a better status than the default rules do.
    ///
    /// True for an object in the claimant's own namespace, and for one that carries a mark of the claimant. The
    /// author of a HelmRelease chooses the name of the release, so for it only the mark that helm-controller writes
    /// counts.
    pub(crate) fn may_better(
        &self,
        cluster: usize,
        key: &ObjectKey,
        found: &Presence<'_>,
        large: &LargeMarks,
    ) -> bool {
        if self.owns_place_of(cluster, key.as_ref()) {
            return true;
        }
        let Presence::Present(observed) = found else { return false };
        large.ask((cluster, key), &observed.object, &self.labels(), |carried| {
            let mut own = self.marks.iter().filter(|mark| mark.is_of_helm_release()).peekable();
            match own.peek() {
                Some(_) => own.any(|mark| carried.contains(mark)),
                None => self.is_named(carried),
            }
        })
    }

    /// Returns the keys of the Argo CD tracking labels among the claimant's marks.
    pub(crate) fn labels(&self) -> Vec<&str> {
        let keys = self.marks.iter().filter_map(|mark| match &mark.tool {
            Tool::Label(key) => Some(key.as_str()),
            _ => None,
        });
        let mut keys: Vec<&str> = keys.collect();
        keys.dedup();
        keys
    }
}
