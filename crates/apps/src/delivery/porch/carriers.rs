//! Carriers: the apps (of Config Sync or Flux) that sync a folder of a Git repository, and so deliver the Porch
//! packages in it.
//!
//! Authors may make many packages and many such apps, so both are found by address and folder, and the
//! objects of an app are divided among packages once.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use taffrail_object::ObjectKey;
use taffrail_status::{Observed, Presence};

use super::super::{Declaration, ObjectKeys, flux, text};
use super::{MAX_NAMED, Package, Repository, address, folder};
use crate::agreement::{CONFIG_SYNC, Mark};
use crate::fleet::Fleet;
use crate::identity::Delivery;
use crate::objects::Objects;

/// The annotation with the file in the repository that declares an object of Config Sync.
const SOURCE_PATH: &str = "configmanagement.gke.io/source-path";

/// The maximum length of a folder's path, in bytes; see [`is_too_long`].
const MAX_FOLDER: usize = 1024;
/// The maximum number of parts of a folder's path; see [`is_too_long`].
const MAX_PARTS: usize = 64;

/// Returns true for a path of more than [`MAX_FOLDER`] bytes or [`MAX_PARTS`] parts: an app that syncs it is not a
/// carrier, and the objects of a package in it are not known. Authors may write any text.
pub(super) fn is_too_long(directory: &str) -> bool {
    directory.len() > MAX_FOLDER || parts(directory).count() > MAX_PARTS
}

/// A tree of the folders in repositories, in which each folder has a number.
#[derive(Default)]
struct Folders<'p> {
    roots: HashMap<&'p str, usize>,
    steps: HashMap<(usize, &'p str), usize>,
    count: usize,
}

impl<'p> Folders<'p> {
    /// Adds a folder and its parents; returns their numbers, the root first.
    fn insert(&mut self, address: &'p str, directory: &'p str) -> Vec<usize> {
        let Folders { roots, steps, count } = self;
        let mut next = || {
            *count += 1;
            *count
        };
        let mut at = *roots.entry(address).or_insert_with(&mut next);
        let mut way = vec![at];
        for part in parts(directory) {
            at = *steps.entry((at, part)).or_insert_with(&mut next);
            way.push(at);
        }
        way
    }

    /// Returns the numbers of the folders in the tree that contain a path or are at it, the root first.
    fn above(&self, address: &str, path: &str) -> Vec<usize> {
        let Some(&root) = self.roots.get(address) else { return Vec::new() };
        let step = |at: &mut usize, part: &str| {
            *at = *self.steps.get(&(*at, part))?;
            Some(*at)
        };
        [root].into_iter().chain(parts(path).scan(root, step)).collect()
    }
}

/// Splits a path, in the form of [`folder`], into its parts.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|_| !path.is_empty())
}

#[cfg(test)]
pub(super) fn is_in(path: &str, directory: &str) -> bool {
    let mut folders = Folders::default();
    let own = folders.insert("a", directory).pop();
    own.is_some_and(|own| folders.above("a", path).contains(&own))
}

/// The folders of the packages that one cluster declares.
#[derive(Default)]
pub(super) struct PackageFolders<'p> {
    folders: Folders<'p>,
    own: HashSet<usize>,
    /// The numbers of package folders that contain folders of other packages.
    outer: HashSet<usize>,
}

impl<'p> PackageFolders<'p> {
    pub(super) fn of(packages: &'p [Package<'_>]) -> PackageFolders<'p> {
        let mut all = PackageFolders::default();
        for package in packages {
            let Ok(repository) = &package.repository else { continue };
            let way = all.folders.insert(&repository.address, &package.directory);
            if let Some((own, above)) = way.split_last() {
                all.own.insert(*own);
                all.outer.extend(above);
            }
        }
        all
    }

    /// Returns the number of the innermost package folder that contains a path; `None` if none does.
    fn owner(&self, address: &str, path: &str) -> Option<usize> {
        self.folders.above(address, path).into_iter().rev().find(|folder| self.own.contains(folder))
    }
}

/// The evidence that an app really delivers a package, from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ground {
    /// No proof: only the declaring object of the app states the folder, which any author could write.
    Said,
    /// At least one object outside of the app's own namespace carries the app's mark, which the app's author alone
    /// could not bring about.
    Marked,
    /// The app is a RootSync in Config Sync's own namespace, into which only administrators may write.
    Admin,
    /// The app is in the same namespace as the package.
    Beside,
}

/// An app that syncs a folder of a Git repository, and may so deliver the packages in it.
pub(super) struct Carrier {
    /// The index of the app among the declarations.
    pub(super) app: usize,
    cluster: Option<usize>,
    url: String,
    /// The branch that the app follows; `None` if it follows a commit, tag or version range instead.
    branch: Option<String>,
    pub(super) directory: String,
    /// For Config Sync, each object with the file that declares it, or the reason why the file is not known.
    files: OnceCell<Vec<(ObjectKey, Result<String, Missing>)>>,
}

/// The objects of a package, as far as they are known.
#[derive(Default)]
pub(super) struct PackageObjects {
    pub(super) objects: ObjectKeys,
    /// The reason why objects of the package may be missing from `objects`, with an object that it is about, such as
    /// one that was not observed; `None` if all objects of the package are known.
    pub(super) doubt: Option<(ObjectKey, String)>,
    /// A remark about an object that may belong to the package but does not make its objects doubtful; `None` if there
    /// is none.
    pub(super) notice: Option<String>,
}

/// The objects of a carrier whose files are in the folder of a package.
struct CarrierPart {
    objects: ObjectKeys,
    /// The namespaces of these objects.
    namespaces: BTreeSet<String>,
    /// The first object that names the folder although its namespace is not one of the package; `None` if there is
    /// none.
    stranger: Option<ObjectKey>,
}

/// The objects of a carrier, divided by package folder.
pub(super) struct DividedObjects {
    by_folder: HashMap<usize, CarrierPart>,
    /// The first object of the carrier that was not observed, with the reason; `None` if all were.
    unobserved: Option<(ObjectKey, String)>,
    /// For each namespace, the first object of the carrier that does not exist there, with the reason.
    absent: BTreeMap<String, (ObjectKey, String)>,
}

impl DividedObjects {
    /// Returns the known objects of the package in the folder with the number `own`, and the reason to doubt that they
    /// are all.
    ///
    /// The author of a namespace may delete its objects, so an absent object is a reason only for packages with objects
    /// in the same namespace, or without any.
    fn known(
        &self,
        own: Option<usize>,
        app: &Declaration,
        declaring: &ObjectKey,
        directory: &str,
    ) -> PackageObjects {
        let part = own.and_then(|own| self.by_folder.get(&own));
        let objects = part.map(|part| part.objects.clone()).unwrap_or_default();
        let places = part.into_iter().flat_map(|part| part.namespaces.iter().map(String::as_str));
        let beside = || places.chain([""]).filter_map(|namespace| self.absent.get(namespace)).min();
        let absent = || if objects.is_empty() { self.absent.values().next() } else { beside() };
        let nothing = || {
            let name = app.declaring_name();
            (declaring.clone(), format!("no object that {name} delivers is known to belong to {directory}"))
        };
        let doubt = self.unobserved.clone().or_else(|| absent().cloned());
        let doubt = doubt.or_else(|| objects.is_empty().then(nothing));
        let elsewhere = || Some(self.absent.values().next()?.1.clone());
        let stranger = part.and_then(|part| part.stranger.as_ref()).map(|key| {
            let path = key.path();
            format!("{} {path} says that it belongs to this package too, which is not confirmed", key.kind)
        });
        PackageObjects { notice: stranger.or_else(elsewhere).filter(|_| doubt.is_none()), objects, doubt }
    }
}

impl Carrier {
    pub(super) fn all(fleet: &Fleet<'_>, apps: &[Arc<Declaration>]) -> Vec<Carrier> {
        let carrier = |(place, app): (usize, &Arc<Declaration>)| {
            let objects = fleet.objects(app.home);
            let declaring = app.declaring.as_ref()?;
            let (url, branch, directory) = match app.delivery {
                Delivery::ConfigSync => of_config_sync(&objects.get(declaring.as_ref()).present()?)?,
                Delivery::FluxKustomization => {
                    of_flux(fleet, app.home, &objects.get(declaring.as_ref()).present()?)?
                }
                _ => return None,
            };
            if is_too_long(&directory) {
                return None;
            }
            Some(Carrier {
                app: place,
                cluster: app.cluster(),
                url: address(&url),
                branch,
                directory: folder(&directory).to_owned(),
                files: OnceCell::new(),
            })
        };
        apps.iter().enumerate().filter_map(carrier).collect()
    }

    /// Returns the evidence that `app`, the app of this carrier, really delivers packages of other namespaces.
    fn ground(&self, fleet: &Fleet<'_>, app: &Declaration) -> Ground {
        let is_root = app.declaring.as_ref().is_some_and(|key| key.kind == "RootSync");
        if app.delivery == Delivery::ConfigSync && is_root && app.namespace == CONFIG_SYNC {
            return Ground::Admin;
        }
        let Some(cluster) = app.cluster() else { return Ground::Said };
        let objects = fleet.objects(cluster);
        let is_marked = |key: &&ObjectKey| {
            !app.claimant.owns_place_of(cluster, key.as_ref())
                && objects.get(key.as_ref()).present().is_some_and(|observed| {
                    app.claimant.is_named(&Mark::all(key.as_ref(), &observed.object, &[]))
                })
        };
        if app.objects.iter().any(|key| is_marked(&key)) { Ground::Marked } else { Ground::Said }
    }

    /// Returns the objects of `app`, the app of this carrier, that belong to `package`, a folder of a repository: all
    /// if it syncs just that folder (for Config Sync, if no other package is inside it) or its objects are unreadable,
    /// else those whose file is there. An app of Flux does not record files: then none and the doubt. `parted` caches
    /// the division of the app's objects.
    pub(super) fn objects(
        &self,
        fleet: &Fleet<'_>,
        app: &Declaration,
        package: (&Repository, &str),
        folders: &PackageFolders<'_>,
        parted: &mut HashMap<usize, DividedObjects>,
    ) -> PackageObjects {
        let narrows = app.delivery == Delivery::ConfigSync;
        let (repository, directory) = package;
        let own = folders.owner(&repository.address, directory);
        let has_inside = own.is_some_and(|own| folders.outer.contains(&own));
        if app.unreadable.is_some() || (self.directory == directory && (!has_inside || !narrows)) {
            return PackageObjects {
                objects: app.objects.clone(),
                doubt: app.unreadable.clone(),
                notice: None,
            };
        }
        let Some(declaring) = &app.declaring else { return PackageObjects::default() };
        if !narrows {
            let name = app.declaring_name();
            let why = format!(
                "{name} delivers several packages, {directory} among them, and does not record which objects \
                    belong to it"
            );
            return PackageObjects { doubt: Some((declaring.clone(), why)), ..PackageObjects::default() };
        }
        let Some(cluster) = app.cluster() else { return PackageObjects::default() };
        let parted = parted.entry(self.app).or_insert_with(|| {
            let files = self.files.get_or_init(|| files(fleet.objects(cluster), &app.objects));
            part(files, &self.url, folders)
        });
        parted.known(own, app, declaring, directory)
    }
}

fn part(
    files: &[(ObjectKey, Result<String, Missing>)],
    address: &str,
    folders: &PackageFolders<'_>,
) -> DividedObjects {
    let mut all: HashMap<usize, Vec<&ObjectKey>> = HashMap::new();
    let mut parted = DividedObjects { by_folder: HashMap::new(), unobserved: None, absent: BTreeMap::new() };
    for (key, file) in files {
        let doubt = |why: &str| {
            (key.clone(), format!("{} {} {why}; it may belong to this package", key.kind, key.path()))
        };
        match file {
            Ok(file) => {
                if let Some(owner) = folders.owner(address, file) {
                    all.entry(owner).or_default().push(key);
                }
            }
            Err(Missing::Absent) => {
                let namespace = parted.absent.entry(key.namespace.clone());
                namespace.or_insert_with(|| doubt("not found"));
            }
            Err(Missing::Unobserved(why)) => {
                parted.unobserved.get_or_insert_with(|| doubt(&format!("was not observed: {why}")));
            }
        }
    }
    parted.by_folder = all.into_iter().map(|(folder, keys)| (folder, of_package(&keys))).collect();
    parted
}

/// Divides the objects that name a folder into those of its package and others.
///
/// The author of a namespace may write annotations of its objects, and so name any folder. Cluster-scoped objects
/// belong to the package, and so do the objects in each namespace whose Namespace object is in the package; if there is
/// none, those in the namespaces with most of the objects.
fn of_package(keys: &[&ObjectKey]) -> CarrierPart {
    let spaces: HashSet<&str> = keys
        .iter()
        .filter(|key| (&*key.group, &*key.kind) == ("", "Namespace"))
        .map(|key| &*key.name)
        .collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for key in keys.iter().filter(|key| !key.namespace.is_empty()) {
        *counts.entry(&key.namespace).or_default() += 1;
    }
    let is_proved = counts.keys().any(|namespace| spaces.contains(namespace));
    let most = counts.values().max().copied();
    let is_own = |namespace: &str| match is_proved {
        true => spaces.contains(namespace),
        false => counts.get(namespace).copied() == most,
    };
    let is_of_package = |key: &&&ObjectKey| key.namespace.is_empty() || is_own(&key.namespace);
    let own: Vec<ObjectKey> = keys.iter().filter(is_of_package).map(|key| (*key).clone()).collect();
    let stranger = keys.iter().find(|key| !is_of_package(key)).map(|key| (*key).clone());
    let namespaces = own.iter().map(|key| key.namespace.clone()).collect();
    CarrierPart { objects: own.into(), namespaces, stranger }
}

/// Several carriers (apps that deliver a package) of one folder, or of the folders above a package, with equal
/// evidence: the facts that a choice among them needs.
#[derive(Default)]
struct CarrierGroup<'c> {
    /// The first, in the order of the apps, of the carriers whose folder is the innermost; `None` in an empty group.
    first: Option<&'c Carrier>,
    /// The first [`MAX_NAMED`] carriers, by the order of the apps.
    named: Vec<&'c Carrier>,
    count: usize,
    /// The home and namespace of all carriers; `None` if they are of several.
    author: Option<(usize, &'c str)>,
}

impl<'c> CarrierGroup<'c> {
    fn add(&mut self, carrier: &'c Carrier, app: &'c Declaration) {
        let of = Some((app.home, &*app.namespace));
        let one = CarrierGroup { first: Some(carrier), named: vec![carrier], count: 1, author: of };
        self.join(&one);
    }

    /// Adds the carriers of the same folder or of one inside of it.
    fn join(&mut self, inner: &CarrierGroup<'c>) {
        self.author =
            if self.count == 0 { inner.author } else { self.author.filter(|_| self.author == inner.author) };
        self.count += inner.count;
        let rank = |carrier: &Carrier| (Reverse(carrier.directory.len()), carrier.app);
        self.first = self.first.into_iter().chain(inner.first).min_by_key(|carrier| rank(carrier));
        self.named.extend(&inner.named);
        self.named.sort_unstable_by_key(|carrier| carrier.app);
        self.named.truncate(MAX_NAMED);
    }
}

/// The carriers of one folder and branch that deliver into one cluster, grouped by their evidence and by their author.
#[derive(Default)]
struct FolderCarriers<'c> {
    by_ground: BTreeMap<Ground, CarrierGroup<'c>>,
    /// The carriers by the home and namespace that declare them.
    by_author: HashMap<(usize, &'c str), CarrierGroup<'c>>,
}

/// The carriers of one folder and branch, by the cluster into which they deliver.
type Sites<'c> = BTreeMap<Option<usize>, FolderCarriers<'c>>;

/// The carriers that sync the folder of a package into one cluster with the strongest evidence that they deliver it.
pub(super) struct Choice<'c> {
    pub(super) ground: Ground,
    /// The carrier of the innermost folder, by the order of the apps.
    pub(super) carrier: &'c Carrier,
    /// The first [`MAX_NAMED`] carriers, by the order of the apps.
    pub(super) named: Vec<&'c Carrier>,
    /// The number of these carriers.
    pub(super) count: usize,
    /// True if all the carriers are declared in one namespace of one cluster.
    pub(super) is_of_one: bool,
}

/// An index of carriers by the repository, branch and folder that they sync.
///
/// The carriers of each folder are grouped once: authors may make many carriers of one folder, and many packages in it.
pub(super) struct Carriers<'c> {
    folders: Folders<'c>,
    by_branch: HashMap<(usize, Option<&'c str>), Sites<'c>>,
}

impl<'c> Carriers<'c> {
    pub(super) fn of(fleet: &Fleet<'_>, all: &'c [Carrier], apps: &'c [Arc<Declaration>]) -> Carriers<'c> {
        let mut carriers = Carriers { folders: Folders::default(), by_branch: HashMap::new() };
        for carrier in all {
            let Some(app) = apps.get(carrier.app) else { continue };
            let way = carriers.folders.insert(&carrier.url, &carrier.directory);
            let Some(folder) = way.last() else { continue };
            let sites = carriers.by_branch.entry((*folder, carrier.branch.as_deref())).or_default();
            let site = sites.entry(carrier.cluster).or_default();
            site.by_ground.entry(carrier.ground(fleet, app)).or_default().add(carrier, app);
            site.by_author.entry((app.home, &app.namespace)).or_default().add(carrier, app);
        }
        carriers
    }

    /// Returns the carriers that sync a folder or one of its parents, from the repository's branch or a fixed revision,
    /// and have the strongest evidence that they deliver the package in it, which the namespace `author` declares: one
    /// choice per cluster.
    pub(super) fn of_folder(
        &self,
        repository: &Repository,
        directory: &str,
        author: (usize, &str),
    ) -> Vec<Choice<'c>> {
        let mut by_cluster: BTreeMap<Option<usize>, Vec<&FolderCarriers<'c>>> = BTreeMap::new();
        for folder in self.folders.above(&repository.address, directory) {
            for branch in [None, Some(repository.branch.as_str())] {
                for (cluster, site) in self.by_branch.get(&(folder, branch)).into_iter().flatten() {
                    by_cluster.entry(*cluster).or_default().push(site);
                }
            }
        }
        by_cluster.into_values().filter_map(|sites| chosen(&sites, author)).collect()
    }
}

fn chosen<'c>(sites: &[&FolderCarriers<'c>], author: (usize, &str)) -> Option<Choice<'c>> {
    let beside = sites.iter().any(|site| site.by_author.contains_key(&author));
    let best = || sites.iter().filter_map(|site| site.by_ground.keys().next_back()).max().copied();
    let ground = if beside { Ground::Beside } else { best()? };
    let mut all = CarrierGroup::default();
    for site in sites {
        let group = if beside { site.by_author.get(&author) } else { site.by_ground.get(&ground) };
        group.into_iter().for_each(|group| all.join(group));
    }
    let CarrierGroup { first, named, count, author } = all;
    Some(Choice { ground, carrier: first?, named, count, is_of_one: author.is_some() })
}

/// The reason why the file of an object is not known.
enum Missing {
    Absent,
    Unobserved(String),
}

/// Returns each object with the file that declares it, by Config Sync's annotation (empty without it), or with the
/// reason why the file is not known.
fn files(objects: &dyn Objects, keys: &ObjectKeys) -> Vec<(ObjectKey, Result<String, Missing>)> {
    let file = |key: &ObjectKey| match objects.get(key.as_ref()) {
        Presence::Present(observed) => {
            Ok(folder(&observed.object.text(&["metadata", "annotations", SOURCE_PATH])).to_owned())
        }
        Presence::Absent => Err(Missing::Absent),
        Presence::Unobserved(why) => Err(Missing::Unobserved(why.into_owned())),
    };
    keys.iter().map(|key| (key.clone(), file(key))).collect()
}

type Followed = (String, Option<String>, String);

/// Returns the URL of the repository, the branch and the folder that a RootSync or RepoSync syncs (`v1beta1`, which
/// defaults to `master` and the root). The branch is `None` if it is pinned to a revision; the result is `None` if it
/// names no Git repository.
fn of_config_sync(sync: &Observed<'_>) -> Option<Followed> {
    let git = |field| text(sync.object.root(), &["spec", "git", field]);
    let is_pinned = git("revision").is_some_and(|revision| revision != "HEAD");
    let branch = (!is_pinned).then(|| git("branch").unwrap_or_else(|| "master".to_owned()));
    Some((git("repo")?, branch, git("dir").unwrap_or_default()))
}

/// Returns the URL of the repository, the branch (`None` if pinned) and the folder that a Kustomization syncs, from it
/// and its GitRepository; `None` if its source is not a GitRepository with a known URL.
fn of_flux(fleet: &Fleet<'_>, home: usize, kustomization: &Observed<'_>) -> Option<Followed> {
    let objects = fleet.objects(home);
    let source = flux::sources(objects, kustomization).into_iter().find(|key| key.kind == "GitRepository")?;
    let known = fleet.sources.read(objects, home, &source);
    let path = text(kustomization.object.root(), &["spec", "path"]).unwrap_or_default();
    Some((known.url.clone()?, known.branch.clone(), path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many carriers of one folder and many packages in it must not be multiplied.
    #[test]
    fn a_folder_of_many_carriers_gives_a_choice_of_bounded_size() {
        let carrier = |app: usize, directory: &str| Carrier {
            app,
            cluster: Some(0),
            url: "g/r".to_owned(),
            branch: None,
            directory: directory.to_owned(),
            files: OnceCell::new(),
        };
        let many: Vec<Carrier> = (0..1_000).map(|at| carrier(at, "")).collect();
        let inner = [carrier(2_000, "a"), carrier(1_500, "a")];
        let mut all = CarrierGroup::default();
        for (carrier, namespace) in many.iter().zip(std::iter::repeat("aaa")) {
            all.join(&CarrierGroup {
                first: Some(carrier),
                named: vec![carrier],
                count: 1,
                author: Some((0, namespace)),
            });
        }
        assert_eq!((all.count, all.named.len(), all.author), (1_000, MAX_NAMED, Some((0, "aaa"))));
        for carrier in &inner {
            all.join(&CarrierGroup {
                first: Some(carrier),
                named: vec![carrier],
                count: 1,
                author: Some((0, "b")),
            });
        }
        let named: Vec<usize> = all.named.iter().map(|carrier| carrier.app).collect();
        assert_eq!((all.count, named, all.author), (1_002, vec![0, 1, 2], None));
        assert_eq!(all.first.map(|carrier| carrier.app), Some(1_500));
    }
}
