//! Clusters that are found in Secrets of the clusters of the kubeconfig, their *homes*, and followed.
//!
//! The objects that decide which Secrets name clusters are watched with each home ([`ReadQuery::cluster_secrets`]), so
//! the watch notices a Secret that comes, changes or goes, and the Secret is read then. Secrets that cannot be watched
//! are read again every ten seconds, or less often if there are many. The authors of the Secrets are not trusted: a
//! found cluster has no name and no address of the kubeconfig, and its identity contains its name.
//!
//! [`ReadQuery::cluster_secrets`]: taffrail_apps::ReadQuery::cluster_secrets

mod secret;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::RandomState;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use taffrail_apps::{
    ClusterSecret, ClusterSecretTool, ClusterSecrets, MAX_CLUSTER_SECRETS, Objects, Scope, ScopeError,
    Snapshot, aliases, cluster_secrets, server_address,
};
use taffrail_cluster::{AddressGuard, Reason};
use taffrail_status::{ClusterState as _, Trust};
use tokio::sync::{Semaphore, watch};

use crate::connector::Task;
use crate::error::Failure;
use crate::follow::FleetWatcher;
use crate::members::{FleetMembers, Member};
use secret::{SecretRead, read_secret};

/// Interval at which a Secret is read again that cannot be watched, or that could not be read.
const AGAIN: Duration = Duration::from_secs(10);

/// Number of Secrets of a home by which the interval [`AGAIN`] grows once more: with 100 Secrets it is twice as long,
/// with 250 three times.
const OFTEN: u32 = 100;

/// Minimum interval between two searches for Secrets that name clusters.
const MIN_SEARCH_INTERVAL: Duration = Duration::from_millis(500);

/// Pause after a search for Secrets that name clusters, as a multiple of the time that it took.
const RESTS: u32 = 10;

/// Maximum pause after a search for Secrets that name clusters, however long it took.
const LONGEST_REST: Duration = Duration::from_secs(3);

/// Maximum number of Secrets of one home that are read at one time; further reads wait.
const AT_ONCE: usize = 8;

/// Maximum number of Secrets of all homes that are read at one time; further reads wait.
const MOST_AT_ONCE: usize = 64;

/// Maximum time for which a read Secret waits for others, so that clusters are added together.
const TOGETHER: Duration = Duration::from_millis(300);

/// Maximum number of namespaces for each of which an error says that Secrets are left out; for further ones there is
/// none.
const TOLD_NAMESPACES: usize = 50;

/// The API groups, beside the core one, whose kinds tell which Secrets name clusters.
const GROUPS: [&str; 5] = [
    "apps",
    "cluster.x-k8s.io",
    "helm.toolkit.fluxcd.io",
    "kustomize.toolkit.fluxcd.io",
    "rbac.authorization.k8s.io",
];

type SecretReads = FuturesUnordered<Pin<Box<dyn Future<Output = FinishedRead> + Send>>>;

/// The clusters that Secrets of the kubeconfig's clusters name.
///
/// Their credentials are kept in memory only.
pub struct FoundClusters {
    tools: Vec<ClusterSecretTool>,
    trust: Trust,
    /// The clusters of the kubeconfig: the homes, in the order of the watcher, which begins with them.
    reserved: FleetMembers,
    /// The addresses of the kubeconfig's clusters.
    addresses: HashSet<String>,
    homes: Vec<SearchedHome>,
    reads: SecretReads,
    finished: Vec<FinishedRead>,
    /// The moment at which the first read of `finished` ended; `None` if `finished` is empty.
    finished_at: Option<Instant>,
    /// The permits for concurrent reads of Secrets of all homes.
    turns: Arc<Semaphore>,
    /// The moment before which no home is searched for Secrets.
    rested: Instant,
    tickets: u64,
    hasher: RandomState,
    members: watch::Sender<FleetMembers>,
}

/// A cluster of the kubeconfig (a home), and the clusters that its Secrets name.
#[derive(Debug)]
struct SearchedHome {
    /// The check of the addresses of found clusters; `None` if the context of the home cannot be used.
    guard: Option<AddressGuard>,
    /// The clusters that Secrets of the home name, by the name of the cluster.
    found: BTreeMap<String, FoundCluster>,
    /// The names of the found clusters whose Secret is gone, and that are still watched.
    gone: Vec<String>,
    /// For each namespace of the home, the number of its Secrets that are left out because too many name clusters.
    left_out: BTreeMap<String, usize>,
    /// The errors about Secrets of the home that were reported last.
    told: Vec<ScopeError>,
    progress: SearchProgress,
    /// True if a cluster of `found` may have other labels than its member.
    may_be_relabelled: bool,
    /// The permits for concurrent reads of Secrets of this home.
    turns: Arc<Semaphore>,
}

/// The progress of the search for clusters in the Secrets of a home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchProgress {
    /// It is not known which Secrets name clusters.
    Begun,
    /// It is known which Secrets name clusters.
    Chosen,
    /// Each Secret that names a cluster was read, even if that failed, and the home was returned once in
    /// [`MemberChanges::complete`].
    Complete,
}

/// A cluster that a Secret names.
#[derive(Debug)]
struct FoundCluster {
    secret: ClusterSecret,
    /// UID and resource version of the Secret; `None` if the home's snapshot does not have it, as when the Secrets of
    /// its namespace cannot be listed.
    version: Option<[String; 2]>,
    /// The `version` of the Secret when its last read began, which runs or has ended; `None` before the first read.
    read: Option<Option<[String; 2]>>,
    /// The moment at which the last read of the Secret ended; `None` if none has.
    read_at: Option<Instant>,
    /// The number of the running read of the Secret; `None` if none is running.
    ticket: Option<u64>,
    /// The failure of the last read of the Secret, and true if the user may not read it; `None` if the read succeeded.
    failed: Option<(Failure, bool)>,
    /// The labels of the Secret at its last read; `None` before the first, and for Cluster API.
    labels: Option<BTreeMap<String, String>>,
    /// The found cluster as it is watched; `None` if it is not watched.
    member: Option<Member>,
    fingerprint: Option<u64>,
}

/// A finished read of a Secret.
struct FinishedRead {
    home: usize,
    name: String,
    ticket: u64,
    read: SecretRead,
    /// The labels of the Secret; `None` if it was not read.
    labels: Option<BTreeMap<String, String>>,
}

/// A change of the watched clusters.
#[derive(Debug, Default)]
pub(crate) struct MemberChanges {
    /// The names of the found clusters that are watched after the change.
    pub(crate) found: HashSet<String>,
    /// The names of clusters that are read from the beginning because their Secret changed.
    pub(crate) restarted: Vec<String>,
    /// The homes all of whose Secrets were read for the first time in this run, if only in vain, each with the names of
    /// all clusters that its Secrets name.
    pub(crate) complete: Vec<(String, HashSet<String>)>,
}

impl FoundClusters {
    /// Makes the search for the clusters that `tools` reach by Secrets of the clusters `members`, which are those of
    /// the kubeconfig; `trust` has the Argo CDs that are known. Returns it with a channel that holds the present list
    /// of all clusters: `members`, followed by those that are found and watched.
    ///
    /// The watcher of the clusters must be asked to read [`ReadQuery::cluster_secrets`] for the same tools.
    ///
    /// [`ReadQuery::cluster_secrets`]: taffrail_apps::ReadQuery::cluster_secrets
    pub fn new(
        members: FleetMembers,
        tools: Vec<ClusterSecretTool>,
        trust: Trust,
    ) -> (FoundClusters, watch::Receiver<FleetMembers>) {
        let contexts = members.members.iter().map(|member| member.context.as_ref().ok());
        let turns = |at_once| Arc::new(Semaphore::new(at_once));
        let home = |guard| SearchedHome {
            guard,
            found: BTreeMap::new(),
            gone: Vec::new(),
            left_out: BTreeMap::new(),
            told: Vec::new(),
            progress: SearchProgress::Begun,
            may_be_relabelled: false,
            turns: turns(AT_ONCE),
        };
        let homes = contexts.clone().map(|context| home(context.map(|it| AddressGuard::of_home(it))));
        let homes = homes.collect();
        let addresses = contexts.flatten().map(|context| server_address(&context.server())).collect();
        let (sender, receiver) = watch::channel(members.clone());
        let found = FoundClusters {
            tools,
            trust,
            reserved: members,
            addresses,
            homes,
            reads: FuturesUnordered::new(),
            finished: Vec::new(),
            finished_at: None,
            turns: turns(MOST_AT_ONCE),
            rested: Instant::now(),
            tickets: 0,
            hasher: RandomState::new(),
            members: sender,
        };
        (found, receiver)
    }

    /// Searches the homes that are due for Secrets that name clusters, starts to read those that are new, have changed
    /// or are due again, and reports those that are left out. Does nothing during the pause after the last search.
    pub(crate) fn search(&mut self, watcher: &mut FleetWatcher) {
        let now = Instant::now();
        if now < self.rested {
            return;
        }
        let due: Vec<bool> = (0..self.homes.len())
            .map(|at| self.is_to_search(at, watcher) && watcher.take_may_name_others(at))
            .collect();
        let is_alias = if due.contains(&true) { self.aliases(watcher) } else { Vec::new() };
        for (at, is_due) in due.into_iter().enumerate() {
            if let Some(snapshot) = watcher.snapshots().get(at).filter(|_| is_due) {
                // A home with two names is one home, and of one that is read lightly no Secrets are known.
                let secrets = match is_alias.get(at) {
                    _ if snapshot.is_light() => ClusterSecrets::default(),
                    Some(true) => ClusterSecrets::default(),
                    _ => cluster_secrets(snapshot, &self.trust, &self.tools),
                };
                self.homes[at].choose(secrets, snapshot);
            }
            self.begin_reads(at, watcher, now);
        }
        let FoundClusters { homes, reserved, .. } = self;
        let names = reserved.members.iter().map(|member| &*member.name).collect();
        for (at, home) in homes.iter_mut().enumerate() {
            let errors = home.errors(&names);
            watcher.report_errors(at, &home.told, &errors);
            home.told = errors;
        }
        let rest = (now.elapsed() * RESTS).clamp(MIN_SEARCH_INTERVAL, LONGEST_REST);
        self.rested = Instant::now() + rest;
    }

    /// Waits until there are finished reads for [`FoundClusters::apply`], gathered for at most [`TOGETHER`]; for ever
    /// if none is running or finished. Nothing is lost if the future is dropped.
    pub(crate) async fn come(&mut self) {
        loop {
            let left = match self.finished_at {
                Some(_) if self.is_to_apply() => return,
                Some(at) => TOGETHER.saturating_sub(at.elapsed()),
                None if self.reads.is_empty() => return std::future::pending().await,
                None => Duration::MAX,
            };
            if let Ok(Some(finished)) = tokio::time::timeout(left, self.reads.next()).await {
                self.finished_at.get_or_insert_with(Instant::now);
                self.finished.push(finished);
            }
        }
    }

    /// Returns true if a read finished, and either no other one is running or the first result has waited for
    /// [`TOGETHER`].
    fn is_to_apply(&self) -> bool {
        self.finished_at.is_some_and(|at| self.reads.is_empty() || at.elapsed() >= TOGETHER)
    }

    /// Applies finished reads: starts to watch new clusters, renews the credentials of known ones or, if their server
    /// changed, reads them from the beginning, and ends the watches of those that no Secret names any more. Returns the
    /// change; `None` if no watched cluster changed and no home became complete.
    pub(crate) fn apply(&mut self, watcher: &mut FleetWatcher) -> Option<MemberChanges> {
        let mut is_changed = false;
        let mut restarted = Vec::new();
        for at in 0..self.homes.len() {
            for name in std::mem::take(&mut self.homes[at].gone) {
                watcher.remove_member(&name);
                is_changed = true;
            }
        }
        let finished = match self.is_to_apply() {
            true => std::mem::take(&mut self.finished),
            false => Vec::new(),
        };
        self.finished_at = self.finished_at.filter(|_| !self.finished.is_empty());
        for finished in finished {
            let FinishedRead { home: at, name, ticket, read, labels } = finished;
            let is_reserved = self.names().contains(&*name);
            let home = &mut self.homes[at];
            let Some(found) = home.found.get_mut(&name).filter(|found| found.ticket == Some(ticket)) else {
                continue;
            };
            if labels.is_some() && found.secret.tool != ClusterSecretTool::ClusterApi {
                found.labels = labels;
                home.may_be_relabelled = true;
            }
            let Some(member) = found.take(read, &name, is_reserved, &self.addresses) else { continue };
            let before = std::mem::replace(&mut found.member, member);
            match &found.member {
                Some(member) => {
                    let member = member.clone();
                    is_changed = true;
                    if !watcher.renew_member(&member) {
                        restarted.extend(before.map(|_| name.clone()));
                        watcher.set_member(member, self.place_of(at, &name));
                    }
                }
                None => {
                    if before.is_some() {
                        watcher.remove_member(&name);
                        is_changed = true;
                    }
                }
            }
        }
        is_changed |= self.relabel(watcher);
        let complete = self.newly_complete();
        if !is_changed && complete.is_empty() {
            return None;
        }
        let FleetMembers { members, problems } = &self.reserved;
        let found: Vec<Member> = self.watched().cloned().collect();
        let names = found.iter().map(|member| member.name.clone()).collect();
        let members = members.iter().cloned().chain(found).collect();
        self.members.send_replace(FleetMembers { members, problems: problems.clone() });
        Some(MemberChanges { found: names, restarted, complete })
    }

    /// Gives the watched clusters the present labels of their Secrets; returns true if any had others.
    fn relabel(&mut self, watcher: &mut FleetWatcher) -> bool {
        let mut is_changed = false;
        for home in &mut self.homes {
            if !std::mem::take(&mut home.may_be_relabelled) {
                continue;
            }
            for found in home.found.values_mut() {
                let labels = found.present_labels();
                if let Some(member) = found.member.as_mut().filter(|member| member.labels != labels) {
                    watcher.label_member(&member.name, &labels);
                    member.labels = labels;
                    is_changed = true;
                }
            }
        }
        is_changed
    }

    /// Returns the homes all of whose Secrets have been read for the first time, if only in vain, each home once, with
    /// the names of all clusters that its Secrets name.
    fn newly_complete(&mut self) -> Vec<(String, HashSet<String>)> {
        let mut complete = Vec::new();
        for (home, member) in self.homes.iter_mut().zip(&self.reserved.members) {
            let is_read = |found: &FoundCluster| found.read_at.is_some();
            if home.progress == SearchProgress::Chosen && home.found.values().all(is_read) {
                home.progress = SearchProgress::Complete;
                complete.push((member.name.clone(), home.found.keys().cloned().collect()));
            }
        }
        complete
    }

    /// Iterates over the found clusters that are watched, by home and name.
    fn watched(&self) -> impl Iterator<Item = &Member> {
        self.homes.iter().flat_map(|home| home.found.values()).filter_map(|found| found.member.as_ref())
    }

    /// Returns the index of a found cluster among all clusters: after those of the kubeconfig, by home and name.
    fn place_of(&self, home: usize, name: &str) -> usize {
        let is_watched = |found: &&FoundCluster| found.member.is_some();
        let of = |home: &SearchedHome| home.found.values().filter(is_watched).count();
        let before: usize = self.homes.iter().take(home).map(of).sum();
        let beside = self.homes.get(home).map_or(0, |home| {
            let smaller = home.found.range::<str, _>((Bound::Unbounded, Bound::Excluded(name)));
            smaller.filter(|(_, found)| found.member.is_some()).count()
        });
        self.reserved.members.len() + before + beside
    }

    /// Returns the names of the kubeconfig's clusters.
    fn names(&self) -> BTreeSet<&str> {
        self.reserved.members.iter().map(|member| &*member.name).collect()
    }

    /// Returns, for each home, true if it is another name of an earlier one.
    fn aliases(&self, watcher: &FleetWatcher) -> Vec<bool> {
        let homes = watcher.snapshots().iter().take(self.homes.len());
        let homes: Vec<&dyn Objects> = homes.map(|snapshot| snapshot as &dyn Objects).collect();
        aliases(&homes)
    }

    /// Returns true if a home can be searched for Secrets: it is settled and live, no failure hides which Secrets
    /// count, and no running comparison may show that it is another name of an earlier home.
    fn is_to_search(&self, at: usize, watcher: &FleetWatcher) -> bool {
        let Some(snapshot) = watcher.snapshots().get(at) else { return false };
        let before = watcher.snapshots().iter().take(at);
        let may_be_alias =
            || snapshot.id().is_some() && before.clone().any(|before| before.id() == snapshot.id());
        watcher.is_settled(at)
            && snapshot.freshness().is_live()
            && is_certain(snapshot)
            && !(watcher.is_comparing() && may_be_alias())
    }

    /// Starts to read the Secrets of a home that were not read in their present version, and those that are due again.
    fn begin_reads(&mut self, at: usize, watcher: &FleetWatcher, now: Instant) {
        let Some(home) = self.homes.get_mut(at) else { return };
        let Some(guard) = home.guard.clone() else { return };
        let Some(name) = self.reserved.members.get(at).map(|member| &*member.name) else { return };
        let Some((cluster, timeout)) = watcher.connection(name) else { return };
        let again = AGAIN * (1 + u32::try_from(home.found.len()).unwrap_or(u32::MAX) / OFTEN);
        for (name, found) in home.found.iter_mut().filter(|(_, found)| found.is_to_read(now, again)) {
            self.tickets += 1;
            let ticket = self.tickets;
            (found.ticket, found.read) = (Some(ticket), Some(found.version.clone()));
            let (cluster, secret) = (cluster.clone(), found.secret.clone());
            let (guard, hasher) = (guard.clone(), self.hasher.clone());
            let turns = [&home.turns, &self.turns].map(Arc::clone);
            let task = Task::spawn(async move {
                let [of_home, of_all] = turns;
                let _turns = (of_home.acquire_owned().await, of_all.acquire_owned().await);
                read_secret(cluster.with_timeout(timeout), secret, guard, hasher).await
            });
            let name = name.clone();
            self.reads.push(Box::pin(async move {
                let lost = |error: tokio::task::JoinError| {
                    let reason = Reason::ConnectionFailed.as_str().to_owned();
                    let failure = Failure { reason, message: error.to_string() };
                    SecretRead::Failed { failure, is_forbidden: false }
                };
                let (read, labels) = task.await.unwrap_or_else(|error| (lost(error), None));
                FinishedRead { home: at, name, ticket, read, labels }
            }));
        }
    }
}

impl SearchedHome {
    /// Sets the Secrets that name clusters, as `snapshot` of the home has them; the watched clusters of other Secrets
    /// are added to `gone`.
    fn choose(&mut self, secrets: ClusterSecrets, snapshot: &Snapshot) {
        self.left_out = secrets.left_out;
        self.may_be_relabelled = true;
        if self.progress == SearchProgress::Begun {
            self.progress = SearchProgress::Chosen;
        }
        let mut before = std::mem::take(&mut self.found);
        for secret in secrets.secrets {
            let object = snapshot.get(secret.secret.as_ref()).present();
            let version = object.map(|observed| {
                ["uid", "resourceVersion"]
                    .map(|field| observed.object.text(&["metadata", field]).into_owned())
            });
            let known = before.remove(&secret.name);
            let found = match known {
                Some(found) if found.secret.is_same(&secret) => FoundCluster { version, secret, ..found },
                // Another Secret has the name now; its cluster takes the place of the one before.
                known => FoundCluster::new(secret, version, known.and_then(|known| known.member)),
            };
            self.found.insert(found.secret.name.clone(), found);
        }
        self.gone.extend(before.into_values().filter_map(|found| found.member).map(|member| member.name));
    }

    /// Returns the errors about Secrets that name clusters which are not shown. Each error is about one namespace, so
    /// that an author of Secrets in one namespace casts no doubt on the others. `reserved` has the names of the
    /// kubeconfig's clusters.
    fn errors(&self, reserved: &BTreeSet<&str>) -> Vec<ScopeError> {
        let error = |namespace: &str, reason: &str, message: String| ScopeError {
            scope: Scope::Namespace(namespace.to_owned()),
            reason: reason.to_owned(),
            message,
        };
        let mut errors = Vec::new();
        for (namespace, number) in self.left_out.iter().take(TOLD_NAMESPACES) {
            let message = format!(
                "of the Secrets in namespace {namespace} that name clusters, {number} are left out: the clusters of \
                {MAX_CLUSTER_SECRETS} Secrets are followed, of each namespace in turn"
            );
            errors.push(error(namespace, "OverLimit", message));
        }
        let more = |number: usize| match number {
            0 | 1 => String::new(),
            2 => "; the same holds for 1 more Secret".to_owned(),
            number => format!("; the same holds for {} more Secrets", number - 1),
        };
        let is_forbidden = |found: &&FoundCluster| matches!(&found.failed, Some((_, true)));
        let mut forbidden = self.found.values().filter(is_forbidden);
        if let Some(first) = forbidden.next()
            && let Some((failure, _)) = &first.failed
        {
            let message = format!("{}{}", failure.message, more(1 + forbidden.count()));
            errors.push(error(&first.secret.secret.namespace, "Forbidden", message));
        }
        let mut taken = self.found.values().filter(|found| reserved.contains(&*found.secret.name));
        if let Some(first) = taken.next() {
            let message = format!(
                "the cluster of Secret {} is not followed: its name {} is that of a context of the kubeconfig{}",
                first.secret.secret.path(),
                first.secret.name,
                more(1 + taken.count())
            );
            errors.push(error(&first.secret.secret.namespace, "NameTaken", message));
        }
        errors
    }
}

impl FoundCluster {
    fn new(secret: ClusterSecret, version: Option<[String; 2]>, member: Option<Member>) -> FoundCluster {
        FoundCluster {
            secret,
            version,
            read: None,
            read_at: None,
            ticket: None,
            failed: None,
            labels: None,
            member,
            fingerprint: None,
        }
    }

    /// Returns the labels of the cluster as far as they are known.
    fn present_labels(&self) -> BTreeMap<String, String> {
        self.secret.labels.as_ref().or(self.labels.as_ref()).cloned().unwrap_or_default()
    }

    /// Returns true if the Secret must be read and is not being read: it was not read in this version; or its version
    /// is not known or its last read failed, and that read ended `again` ago or earlier.
    fn is_to_read(&self, now: Instant, again: Duration) -> bool {
        let is_due = self.read_at.is_none_or(|at| now.saturating_duration_since(at) >= again);
        let is_doubtful = self.version.is_none() || self.failed.is_some();
        self.ticket.is_none() && (self.read.as_ref() != Some(&self.version) || is_doubtful && is_due)
    }

    /// Applies a finished read, and returns the member to watch from now on, `Some(None)` for none; `None` if that does
    /// not change. `is_reserved` is true if a cluster of the kubeconfig has the name; `addresses` are those of the
    /// kubeconfig.
    fn take(
        &mut self,
        read: SecretRead,
        name: &str,
        is_reserved: bool,
        addresses: &HashSet<String>,
    ) -> Option<Option<Member>> {
        (self.ticket, self.read_at, self.failed) = (None, Some(Instant::now()), None);
        let fingerprint = match &read {
            SecretRead::Other { fingerprint, .. } => Some(*fingerprint),
            _ => None,
        };
        let is_same = fingerprint.is_some() && fingerprint == self.fingerprint;
        let context = match read {
            _ if is_reserved => None,
            SecretRead::Absent | SecretRead::Home => None,
            SecretRead::Other { .. } if is_same => return None,
            // That one is followed with the credentials of the kubeconfig.
            SecretRead::Other { context, .. } if addresses.contains(&server_address(&context.server())) => {
                None
            }
            SecretRead::Other { context, .. } => Some(Ok(context)),
            SecretRead::Refused(failure) => Some(Err(failure)),
            SecretRead::Failed { failure, is_forbidden } => {
                self.failed = Some((failure.clone(), is_forbidden));
                // What was known before is used until it is known to have changed.
                if is_forbidden || matches!(self.member, Some(Member { context: Ok(_), .. })) {
                    return None;
                }
                Some(Err(failure))
            }
        };
        self.fingerprint = fingerprint;
        let is_told = |known: &Member, failure: &Failure| {
            known.context.as_ref().is_err_and(|known| known.message == failure.message)
        };
        match (context, &self.member) {
            (None, None) => None,
            (Some(Err(failure)), Some(known)) if is_told(known, &failure) => None,
            (context, _) => Some(context.map(|context| {
                let labels = self.present_labels();
                Member { name: name.to_owned(), context, labels }
            })),
        }
    }
}

/// Returns true if the cluster's snapshot has no error that may hide which Secrets name clusters. A missing permission
/// is no such error: it is known what the user may not read.
fn is_certain(snapshot: &Snapshot) -> bool {
    let hides = |error: &ScopeError| match &error.scope {
        Scope::Cluster => true,
        Scope::Group(group) => GROUPS.contains(&&**group),
        Scope::Kind { kind, .. } => {
            GROUPS.contains(&&*kind.group) || kind.group.is_empty() && kind.kind == "Secret"
        }
        Scope::Namespace(_) | Scope::Object(_) | Scope::Input(_) => false,
    };
    !snapshot.errors().iter().any(|error| hides(error) && error.reason != "Forbidden")
}
