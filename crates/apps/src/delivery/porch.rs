//! Porch: `PackageRevision`s of deployment repositories.
//!
//! Porch writes packages into Git and delivers nothing: Config Sync or Flux does, in any cluster. So a
//! package is joined with the app that syncs its folder, by the address of the repository, the branch and the
//! folder. Its objects are those that this app claims: of a RootSync or RepoSync the objects whose
//! `configmanagement.gke.io/source-path` is in the folder of the package.
//!
//! The shapes are those of Porch at `74d82d5`: `api/porch/v1alpha1` and `v1alpha2` (in which the revision may
//! be in the status), `api/porchconfig/v1alpha1` for the Repository.

mod carriers;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use carriers::{Carrier, Carriers, Choice, DividedObjects, Ground, PackageFolders};
use jiff::Timestamp;
use taffrail_object::json::Value;
use taffrail_object::{ObjectKey, ObjectKeyRef, names};
use taffrail_status::{Observed, Presence};

use super::{Declaration, Declarations, Destination, MOST_MALFORMED, ObjectKeys, short, text, time};
use crate::agreement::Claimant;
use crate::checks::declared_checks;
use crate::fleet::Fleet;
use crate::identity::{AppKey, Delivery};
use crate::objects::Objects;
use crate::scope::{Scope, ScopeError};
use crate::sync::{Source, Sync, SyncState, shorten, without_password};

/// The maximum number of apps that a message names if several seem to deliver a package; it counts the others.
const MAX_NAMED: usize = 3;

/// The number of characters that a message shows of a path that is too long.
const MAX_SHOWN: usize = 60;

pub(crate) const GROUP: &str = "porch.kpt.dev";
pub(crate) const KIND: &str = "PackageRevision";
pub(crate) const REPOSITORY: (&str, &str) = ("config.porch.kpt.dev", "Repository");

/// Adds the packages of all clusters to `found`, which must already hold the apps that may deliver them.
pub(crate) fn declare(fleet: &Fleet<'_>, found: &mut Declarations) {
    let mut apps = Vec::new();
    let packages: Vec<_> =
        (0..fleet.members.len()).map(|home| packages(fleet.objects(home), home, found)).collect();
    if packages.iter().all(Vec::is_empty) {
        return;
    }
    let carriers = Carrier::all(fleet, &found.apps);
    let carriers = Carriers::of(fleet, &carriers, &found.apps);
    for packages in &packages {
        let folders = PackageFolders::of(packages);
        let mut parted = HashMap::new();
        for package in packages {
            apps.extend(package.declarations(fleet, &carriers, &folders, &mut parted, &found.apps));
        }
    }
    found.apps.extend(apps.into_iter().map(Arc::new));
}

/// A PackageRevision that is published.
struct Revision<'a> {
    observed: Observed<'a>,
    number: i64,
    lifecycle: String,
    published_at: Option<Timestamp>,
    /// The folder in Git that holds the revision; `None` if its status states none.
    directory: Option<String>,
    /// The commit in Git that holds the revision; `None` if its status states none.
    commit: Option<String>,
    deployment: bool,
}

impl<'a> Revision<'a> {
    /// Returns the revision if it is published, even if its deletion is proposed, and has a number from 0; `None` for
    /// other objects.
    ///
    /// Drafts and proposals are in no branch that is synced. A package as it is on the branch itself has the revision
    /// `-1`, in older versions of Porch `main`.
    fn published(observed: Observed<'a>) -> Option<Revision<'a>> {
        let root = observed.object.root();
        let lifecycle = text(root, &["spec", "lifecycle"])?;
        let number = [["status", "revision"], ["spec", "revision"]].iter().find_map(|path| {
            let value = root.at(path)?;
            value.as_i64().or_else(|| value.as_str()?.trim_start_matches('v').parse().ok())
        })?;
        let is_published = matches!(&*lifecycle, "Published" | "DeletionProposed") && number >= 0;
        let lock = |field| text(root, &["status", "selfLock", "git", field]);
        let at = [["status", "publishedAt"], ["status", "publishTimestamp"]];
        is_published.then(|| Revision {
            number,
            lifecycle,
            published_at: at.iter().find_map(|path| time(root.at(path))),
            directory: lock("directory"),
            commit: lock("commit"),
            deployment: root.at(&["status", "deployment"]).and_then(Value::as_bool) == Some(true),
            observed,
        })
    }

    /// Returns the name of the revision as in Porch's tags: `v3`.
    fn name(&self) -> String {
        format!("v{}", self.number)
    }
}

/// A deployment repository: a Git repository from which packages are delivered.
struct Repository {
    url: String,
    /// The normalised URL, by which repositories are compared; see [`address`].
    address: String,
    branch: String,
    directory: String,
    /// The commit at the head of the branch at Porch's last sync of the repository, with the time of that sync;
    /// `None` if Porch does not state it.
    head: Option<(String, Timestamp)>,
}

impl Repository {
    /// Parses a Repository object; `None` if it is not a deployment repository in Git.
    fn of(repository: &Observed<'_>) -> Option<Repository> {
        let root = repository.object.root();
        let is_deployment = root.at(&["spec", "deployment"]).and_then(Value::as_bool) == Some(true);
        let git = |field| text(root, &["spec", "git", field]);
        let head = text(root, &["status", "gitCommitHash"]);
        is_deployment.then_some(())?;
        let url = short(git("repo")?);
        Some(Repository {
            address: address(&url),
            url,
            branch: short(git("branch").unwrap_or_else(|| "main".to_owned())),
            directory: short(git("directory").unwrap_or_default()),
            head: head.map(short).zip(time(root.at(&["status", "lastFullSyncTime"]))),
        })
    }
}

/// A package with at least one revision published in a deployment repository.
struct Package<'a> {
    home: usize,
    namespace: &'a str,
    /// The name of the repository, and the name of the package.
    name: (String, String),
    /// The repository; or an object and a reason: the Repository cannot be read, or the newest revision states a folder
    /// whose path is too long.
    repository: Result<Rc<Repository>, (ObjectKey, String)>,
    /// The folder of the package in the repository.
    directory: String,
    /// The published revisions, at least one, the newest last.
    revisions: Vec<Revision<'a>>,
}

fn packages<'a>(objects: &'a dyn Objects, home: usize, found: &mut Declarations) -> Vec<Package<'a>> {
    let mut all: BTreeMap<(&str, String, String), Vec<Revision<'a>>> = BTreeMap::new();
    let mut malformed: BTreeMap<&str, Vec<ObjectKeyRef<'_>>> = BTreeMap::new();
    for observed in objects.of_kind(GROUP, KIND, None) {
        let (namespace, root) = (observed.key.namespace, observed.object.root());
        let named = |field| text(root, &["spec", field]);
        if let (Some(repository), Some(package)) = (named("repository"), named("packageName"))
            && let Some(revision) = Revision::published(observed)
        {
            // They become the name of the app, and the API accepts any text for them.
            if !names::is_subdomain(&repository)
                || !names::is_short(&package)
                || !package.split('/').all(names::is_subdomain)
            {
                malformed.entry(namespace).or_default().push(revision.observed.key);
                continue;
            }
            all.entry((namespace, repository, package)).or_default().push(revision);
        }
    }
    for keys in malformed.into_values() {
        let (told, more) = keys.split_at(keys.len().min(MOST_MALFORMED));
        let one = "the name of its repository or package is not a DNS-1123 subdomain".to_owned();
        let says = told.iter().map(|key| (key, one.clone()));
        let rest = more.first().map(|key| {
            let more = more.len();
            let what = "name a repository or package that is not a DNS-1123 subdomain";
            (key, format!("{more} {KIND}s in its namespace beyond those listed {what}"))
        });
        for (key, what) in says.chain(rest) {
            let message = format!("{KIND} {}: {what}", key.path());
            let scope = Scope::Object((*key).to_owned());
            found.report(home, ScopeError { scope, reason: "Malformed".to_owned(), message });
        }
    }
    let mut packages = Vec::new();
    let mut repositories: HashMap<ObjectKey, Option<Rc<Repository>>> = HashMap::new();
    for ((namespace, repository, package), mut revisions) in all {
        revisions.sort_by_key(|revision| revision.number);
        let key = ObjectKey::new(REPOSITORY.0, REPOSITORY.1, namespace, &*repository);
        let of = match objects.get(key.as_ref()) {
            Presence::Present(object) => {
                let read = || Repository::of(&object).map(Rc::new);
                match repositories.entry(key).or_insert_with(read) {
                    Some(repository) => Ok(repository.clone()),
                    None => continue,
                }
            }
            _ if !revisions.last().is_some_and(|newest| newest.deployment) => continue,
            Presence::Absent => Err((key.clone(), format!("Repository {} not found", key.path()))),
            Presence::Unobserved(why) => {
                let message = format!("Repository {} cannot be read: {why}", key.path());
                found.lacking.insert((home, key.clone()));
                Err((key, message))
            }
        };
        let locked = revisions.last().and_then(|newest| newest.directory.as_deref());
        let directory = match (locked, &of) {
            (Some(directory), _) => folder(directory).to_owned(),
            (None, Ok(of)) => folder(&format!("{}/{package}", folder(&of.directory))).to_owned(),
            (None, Err(_)) => package.clone(),
        };
        let newest = revisions.last().filter(|_| carriers::is_too_long(&directory));
        let (directory, of) = match newest {
            None => (directory, of),
            Some(newest) => {
                let shown: String = directory.chars().take(MAX_SHOWN).collect();
                let why = format!("the path of the package's folder, {shown}…, is too long");
                (short(directory), Err((newest.observed.key.to_owned(), why)))
            }
        };
        let name = (repository, package);
        packages.push(Package { home, namespace, name, repository: of, directory, revisions });
    }
    packages
}

impl Package<'_> {
    fn newest(&self) -> Option<&Revision<'_>> {
        self.revisions.last()
    }

    /// Returns an app of the package for each cluster into which apps that sync its folder deliver; one app without a
    /// cluster if there are none, or the repository is not known. If no evidence confirms that they deliver the
    /// package, it has no objects and the reason.
    fn declarations(
        &self,
        fleet: &Fleet<'_>,
        carriers: &Carriers<'_>,
        folders: &PackageFolders<'_>,
        parted: &mut HashMap<usize, DividedObjects>,
        apps: &[Arc<Declaration>],
    ) -> Vec<Declaration> {
        let Some(newest) = self.newest() else { return Vec::new() };
        let said = format!("{} ({})", newest.name(), newest.lifecycle);
        let key = newest.observed.key;
        let unknown = |destination: Destination, unreadable: (ObjectKey, String)| {
            let sync = Sync { desired: Some(newest.name()), ..Sync::unknown() };
            let trouble = Some(unreadable.1.clone());
            let app = self.app(newest, destination, sync, said.clone());
            Declaration { unreadable: Some(unreadable), trouble, ..app }
        };
        let alone = |unreadable: (ObjectKey, String)| {
            let place = "an unknown cluster".to_owned();
            vec![unknown(Destination::OutOfReach(place), unreadable)]
        };
        let repository = match &self.repository {
            Ok(repository) => repository,
            Err((key, why)) => return alone((key.clone(), format!("{said}: {why}"))),
        };
        let directory = self.directory.as_str();
        let bringing = carriers.of_folder(repository, directory, (self.home, self.namespace));
        if bringing.is_empty() {
            let Repository { url, branch, .. } = &**repository;
            let why = format!(
                "no app that was read syncs {directory} of {}, branch {branch}",
                without_password(url)
            );
            return alone((key.to_owned(), format!("{said}: {why}")));
        }
        let mut delivered = |carrier: &Carrier, by: &Declaration| {
            let known = carrier.objects(fleet, by, (repository, directory), folders, parted);
            let (sync, trouble) = self.sync(newest, repository, by);
            let revision = by.sync.applied.as_deref().map(shorten);
            let at = revision.map(|revision| format!(" at {revision}")).unwrap_or_default();
            let notice = known.notice.map(|notice| format!("; {notice}")).unwrap_or_default();
            let message = format!("{said}, synced by {}{at}{notice}", by.declaring_name());
            // An author of a Repository can name the address of another's. Config Sync writes on each object
            // which file declares it; otherwise only apps in the package's own namespace are believed.
            let is_beside = by.home == self.home && by.namespace == self.namespace;
            let claimant = match is_beside || by.delivery == Delivery::ConfigSync {
                true => Claimant { hooks: ObjectKeys::default(), ..by.claimant.clone() },
                false => Claimant::in_namespace(self.home, self.namespace, Vec::new()),
            };
            Declaration {
                objects: known.objects,
                unreadable: known.doubt,
                trouble,
                delivered_by: Some(carrier.app),
                suspended: by.suspended,
                claimant,
                ..self.app(newest, by.destination.clone(), sync, message)
            }
        };
        // The address of a repository is widely known, and an author in any namespace can make an app that
        // names it.
        let chosen = |choice: Choice<'_>| {
            let Choice { ground, carrier, named, count, is_of_one } = choice;
            let by = &**apps.get(carrier.app)?;
            if ground >= Ground::Admin || ground == Ground::Marked && is_of_one {
                return Some(delivered(carrier, by));
            }
            let names =
                named.iter().filter_map(|carrier| apps.get(carrier.app)).map(|by| by.declaring_name());
            let (names, left) = (names.collect::<Vec<_>>().join(", "), count.saturating_sub(MAX_NAMED));
            let more = if left > 0 { format!(" and {left} more") } else { String::new() };
            let why = match (ground, count) {
                (Ground::Marked, _) => "objects carry the marks of each of them",
                (_, 1) => {
                    "it is not in the namespace of the package, and no object outside of its own namespace carries its mark"
                }
                (..) => "none of them is in the namespace of the package",
            };
            let claim = if count == 1 { "claims" } else { "claim" };
            let why = format!(
                "{said}: {names}{more} {claim} to sync {directory}, which cannot be confirmed: {why}"
            );
            Some(unknown(by.destination.clone(), (key.to_owned(), why)))
        };
        bringing.into_iter().filter_map(chosen).collect()
    }

    fn app(
        &self,
        newest: &Revision<'_>,
        destination: Destination,
        sync: Sync,
        message: String,
    ) -> Declaration {
        // Porch names the revisions of a package in a folder like this.
        let name = format!("{}.{}", self.name.0, self.name.1.replace('/', "."));
        let repository = self.repository.as_ref().ok();
        Declaration {
            home: self.home,
            destination,
            delivery: Delivery::Porch,
            namespace: self.namespace.to_owned(),
            key: AppKey::of(Delivery::Porch, self.namespace, &name, Some(&newest.observed.object)),
            name,
            declaring: Some(newest.observed.key.to_owned()),
            never_reconciled: false,
            objects: ObjectKeys::default(),
            unreadable: None,
            sync,
            suspended: false,
            message,
            trouble: None,
            source: Some(Source {
                kind: "git".to_owned(),
                namespace: None,
                name: None,
                url: repository.map(|repository| repository.url.clone()),
                path: Some(self.directory.clone()),
                reference: repository.map(|repository| repository.branch.clone()),
            }),
            delivered_by: None,
            checks: declared_checks(&newest.observed.object),
            claimant: Claimant::default(),
        }
    }

    /// Returns the sync state of a package, by comparing the commit that the app `by` applied with those of the
    /// package's revisions; and a message if the state is Failed or Unknown.
    ///
    /// The contents of any other commit are not known, unless it is the head that Porch found on the branch
    /// after it had published there.
    fn sync(
        &self,
        newest: &Revision<'_>,
        repository: &Repository,
        by: &Declaration,
    ) -> (Sync, Option<String>) {
        let synced = by.sync.applied.as_deref().map(commit);
        let is_synced = |revision: &&Revision<'_>| synced.is_some() && revision.commit.as_deref() == synced;
        let is_head = repository.head.as_ref().is_some_and(|(head, read_at)| {
            Some(head.as_str()) == synced
                && newest.published_at.is_some_and(|published| published <= *read_at)
        });
        let applied = match self.revisions.iter().rev().find(is_synced) {
            Some(revision) => Some(revision.name()),
            None => is_head.then(|| newest.name()),
        };
        let is_newest = applied.as_ref() == Some(&newest.name());
        let state = match by.sync.state {
            SyncState::Synced | SyncState::OutOfSync if is_newest => SyncState::Synced,
            SyncState::Synced | SyncState::OutOfSync if applied.is_some() => SyncState::OutOfSync,
            SyncState::Synced | SyncState::OutOfSync => SyncState::Unknown,
            other => other,
        };
        let trouble = match (state, synced) {
            (SyncState::Failed, _) => by.trouble.clone(),
            (SyncState::Unknown, Some(synced)) if applied.is_none() => {
                let (synced, newest) = (shorten(synced), newest.name());
                Some(format!(
                    "commit {synced} is synced; cannot tell whether it contains {newest} of the package"
                ))
            }
            (SyncState::Unknown, _) => by.trouble.clone(),
            _ => None,
        };
        let last_success = by.sync.last_success.filter(|_| is_newest);
        let desired = Some(newest.name());
        (Sync { state, desired, attempted: None, applied, last_success }, trouble)
    }
}

/// Returns the commit in `revision`, which is `<commit>` (Config Sync) or `branch@sha1:<commit>` (Flux).
fn commit(revision: &str) -> &str {
    revision.rsplit(':').next().unwrap_or(revision)
}

/// Normalises the path of a folder: without leading `./` and outer slashes; empty for the root.
fn folder(path: &str) -> &str {
    let path = path.trim_matches('/');
    let path = path.strip_prefix("./").unwrap_or(path);
    if path == "." { "" } else { path.trim_matches('/') }
}

/// Normalises the URL of a repository to `host/path`, without scheme, user, default port and `.git`, to compare
/// URLs.
fn address(url: &str) -> String {
    let url = url.trim();
    let (host, path) = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/').unwrap_or((rest, "")),
        // git@host:path
        None => url.split_once(':').or_else(|| url.split_once('/')).unwrap_or((url, "")),
    };
    let host = host.rsplit('@').next().unwrap_or(host).to_ascii_lowercase();
    let host = [":443", ":80", ":22"].iter().find_map(|port| host.strip_suffix(port)).unwrap_or(&host);
    let path = path.trim_matches('/');
    format!("{host}/{}", path.strip_suffix(".git").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::{address, carriers, folder};

    #[test]
    fn spellings_of_one_repository_address_are_equal() {
        let one = address("https://git.example.com/nephio/edge1.git");
        for other in [
            "https://git.example.com/nephio/edge1",
            "https://user:token@Git.example.com:443/nephio/edge1.git/",
            "ssh://git@git.example.com:22/nephio/edge1.git",
            "git@git.example.com:nephio/edge1.git",
        ] {
            assert_eq!(address(other), one, "{other}");
        }
        for other in [
            "https://git.example.com/nephio/Edge1.git",
            "https://git.example.com/nephio/edge",
            "https://git.example.com:3000/nephio/edge1.git",
            "https://example.com/nephio/edge1.git",
            "",
        ] {
            assert_ne!(address(other), one, "{other}");
        }
    }

    #[test]
    fn folders_are_compared_by_their_parts() {
        for (path, directory, expected) in [
            ("shop", "", true),
            ("shop/web.yaml", "./shop/", true),
            ("/shop", "shop", true),
            ("shopping/web.yaml", "shop", false),
            ("a/shop", "shop", false),
            ("", "shop", false),
            ("./", "/", true),
        ] {
            assert_eq!(carriers::is_in(folder(path), folder(directory)), expected, "{path} in {directory}");
        }
    }
}
