//! The statuses of ResourceGroups that an agent writes: which, and when.
//!
//! A group is looked at when its row may have changed. If it then has another status than the one that Taffrail finds,
//! [`group_write`](super::group_write) writes that, unless the status is somebody else's. Only the names of groups wait,
//! and a status is computed just before it is written, one after another: so neither many groups nor large ones need
//! memory at the same time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use taffrail_apps::{
    App, AppList, ChangedRows, Delivery, GroupStatusTooLarge, Objects as _, group_status, round_robin,
};
use taffrail_cluster::Cluster;
use taffrail_object::{ObjectKey, Projection};
use taffrail_status::ClusterState as _;

use super::group_write::{GroupWrite, Written};
use crate::connector::Task;
use crate::fleet::FleetSnapshot;
use crate::follow::FleetWatcher;

/// Minimum time between two writes of one group.
const PAUSE: Duration = Duration::from_secs(5);

/// Minimum time between two writes of any groups.
const GAP: Duration = Duration::from_millis(200);

/// Maximum time for which a change waits for objects that are still being read; then those are Unknown.
const READING: Duration = Duration::from_secs(5);

/// Maximum time for all requests of one write.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time without writes after the server did not answer one, and without a write of that group: twice as long each time, up
/// to [`AFTER_REFUSAL`], since the server may be unable to store what it gets.
const AFTER_SILENCE: Duration = Duration::from_secs(30);

/// Time without a write of a group that the server refused, and of all groups while Config Sync's controller runs.
const AFTER_REFUSAL: Duration = Duration::from_secs(600);

/// The time for which it holds that Config Sync's controller does not run.
const WITHOUT_CONTROLLER: Duration = Duration::from_secs(60);

/// Maximum number of groups that are looked at in one turn of the reporter.
const AT_ONCE: usize = 16;

/// Maximum number of remembered pairs of a group and one that lists it; beyond it, a group is looked at again only when its
/// own row changes.
const MAX_LISTED: usize = 20_000;

/// Maximum number of groups that are remembered of those that one group lists, so that no group takes all room.
const MAX_LISTED_BY_ONE: usize = 500;

/// Maximum number of [`GroupStatusEvent`]s about single groups; then one tells that there are more.
const MAX_TOLD: usize = 100;

/// The reason why an agent does not write a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupStatusEvent {
    /// Config Sync's ResourceGroup controller runs in the cluster, so the agent writes none there.
    ControllerRuns,
    /// Another field manager owns the status of a group, or a part of it: the agent leaves it alone from now on.
    Owned {
        /// Namespace and name of the ResourceGroup, such as `shop/inventory`.
        group: String,
        /// The field manager.
        manager: String,
        /// True if the agent has written the status before, so that the other one took over.
        is_taken_over: bool,
    },
    /// The status of a group was not written.
    NotWritten {
        /// Namespace and name of the ResourceGroup.
        group: String,
        /// The reason, for people.
        reason: String,
    },
    /// Further groups are not written, and no more of them are told.
    More,
}

/// Namespace and name of a ResourceGroup.
type GroupName = (String, String);

/// The packages of kpt in one cluster whose rows may have changed.
#[derive(Debug, Default)]
pub(super) struct ChangedGroups {
    cluster: String,
    /// True if any that is not in `changed` may be gone.
    is_all: bool,
    changed: BTreeSet<GroupName>,
    gone: Vec<GroupName>,
}

impl ChangedGroups {
    pub(super) fn of(cluster: String) -> ChangedGroups {
        ChangedGroups { cluster, ..ChangedGroups::default() }
    }

    /// Adds the rows of `list` that `changed` names; with `is_all`, all rows.
    pub(super) fn note(&mut self, list: &AppList, changed: &ChangedRows, is_all: bool) {
        if is_all {
            *self = ChangedGroups { is_all, ..ChangedGroups::of(std::mem::take(&mut self.cluster)) };
            self.changed = list.apps.iter().filter_map(|app| name_in(&self.cluster, app)).collect();
            return;
        }
        let rows = changed.changed.iter().filter_map(|place| list.apps.get(*place));
        self.changed.extend(rows.filter_map(|app| name_in(&self.cluster, app)));
        let is_here = |delivery: Delivery, home: &str| delivery == Delivery::Kpt && home == self.cluster;
        let gone = changed.gone.iter().filter(|app| is_here(app.delivery, &app.home));
        self.gone.extend(gone.map(|app| (app.namespace.clone(), app.name.clone())));
    }
}

/// Returns the name of the ResourceGroup that declares a row of `cluster`; `None` for other rows.
fn name_in(cluster: &str, app: &App) -> Option<GroupName> {
    is_package(cluster, app).then(|| (app.app.namespace.clone(), app.app.name.clone()))
}

/// Returns true if a ResourceGroup of `cluster` declares a row.
fn is_package(cluster: &str, app: &App) -> bool {
    app.app.delivery == Delivery::Kpt && app.app.home == cluster && app.app.target == cluster
}

/// The packages of kpt in one cluster, by namespace and name.
type Packages<'l> = HashMap<(&'l str, &'l str), &'l App>;

/// Writes the statuses of the ResourceGroups of one cluster.
pub(super) struct GroupStatuses {
    cluster: String,
    tell: Box<dyn Fn(GroupStatusEvent) + Send + Sync>,
    /// Number of the events about single groups.
    told: usize,
    /// The groups that are to be looked at, each with the moment since which it waits.
    waiting: BTreeMap<GroupName, Duration>,
    known: HashMap<GroupName, KnownGroup>,
    /// Groups that others list, each with one that lists it.
    listed: BTreeSet<(GroupName, GroupName)>,
    running: Option<RunningWrite>,
    finished: Option<(RunningWrite, Written)>,
    /// The moment until which nothing is written.
    rests_until: Duration,
    /// The group whose write the server did not answer, if it has answered none since.
    unanswered: Option<GroupName>,
    /// The last moment at which Config Sync's controller was looked for and not found.
    without_controller: Option<Duration>,
    /// True if the controller was found when it was looked for last, which was told.
    is_controlled: bool,
}

/// A write that was begun.
struct RunningWrite {
    group: GroupName,
    looks_for_controller: bool,
    task: Task<Written>,
}

/// A group of which something was written, or could not be.
#[derive(Debug, Default)]
struct KnownGroup {
    uid: String,
    /// The moment before which it is not written.
    next: Duration,
    /// The number of writes in sequence that the server did not answer.
    unanswered: u32,
    was_written: bool,
    /// True if the status is somebody else's.
    is_left: bool,
    /// True if it was told why it is not written, and it has not been written since.
    was_told: bool,
}

/// The next step for a group.
enum Todo {
    Nothing,
    Write(Box<GroupWrite>),
    Refuse(GroupStatusTooLarge),
}

impl GroupStatuses {
    pub(super) fn new(
        cluster: String,
        tell: impl Fn(GroupStatusEvent) + Send + Sync + 'static,
    ) -> GroupStatuses {
        GroupStatuses {
            cluster,
            tell: Box::new(tell),
            told: 0,
            waiting: BTreeMap::new(),
            known: HashMap::new(),
            listed: BTreeSet::new(),
            running: None,
            finished: None,
            rests_until: Duration::ZERO,
            unanswered: None,
            without_controller: None,
            is_controlled: false,
        }
    }

    /// Waits until the write that runs has ended; never returns if none runs. Nothing is lost if the future is dropped.
    pub(super) async fn come(&mut self) {
        let Some(running) = &mut self.running else { return std::future::pending().await };
        let written = (&mut running.task).await;
        let written = written.unwrap_or_else(|error| Written::Unanswered(error.to_string()));
        self.finished = self.running.take().map(|running| (running, written));
    }

    /// Takes the result of the last write, and begins the next one that is due.
    pub(super) fn go_on(&mut self, watcher: &mut FleetWatcher, changed: &mut ChangedGroups, now: Duration) {
        self.take_changed(changed, now);
        if let Some((ended, written)) = self.finished.take() {
            self.finish(ended, written, now);
        }
        if self.running.is_some() || self.rests_until > now || self.waiting.is_empty() {
            return;
        }
        let Some(connection) = watcher.cluster(&self.cluster) else { return };
        let is_settled = watcher.is_settled_in(&self.cluster);
        let due: Vec<GroupName> = {
            let is_due = |(group, since): &(&GroupName, &Duration)| {
                (is_settled || **since + READING <= now)
                    && self.known.get(*group).is_none_or(|known| known.next <= now)
            };
            // Those that wait for longest come first, and namespaces take turns: many groups of one displace none of others.
            let mut due: Vec<_> = self.waiting.iter().filter(is_due).collect();
            due.sort_by_key(|(_, since)| **since);
            let due = round_robin(due, |((namespace, _), _)| namespace);
            due.into_iter().take(AT_ONCE).map(|(group, _)| group.clone()).collect()
        };
        if due.is_empty() {
            return;
        }
        let fleet = watcher.fleet();
        let begun = fleet.kept_apps(|list| {
            let packages: Packages<'_> = list
                .apps
                .iter()
                .filter(|app| is_package(&self.cluster, app))
                .map(|app| ((&*app.app.namespace, &*app.app.name), app))
                .collect();
            for group in due {
                self.waiting.remove(&group);
                match self.look(fleet, &packages, &group, &connection, now) {
                    Todo::Nothing => {}
                    Todo::Write(write) => return Some((group, write)),
                    Todo::Refuse(error) => self.refuse(&group, error.to_string(), now),
                }
            }
            None
        });
        if let Some((group, write)) = begun.flatten() {
            let looks_for_controller = write.looks_for_controller;
            let task = Task::spawn(async move {
                let written = write.run().await;
                tokio::time::sleep(GAP).await;
                written
            });
            self.running = Some(RunningWrite { group, looks_for_controller, task });
        }
    }

    fn take_changed(&mut self, changed: &mut ChangedGroups, now: Duration) {
        let ChangedGroups { is_all, changed, gone, .. } =
            std::mem::replace(changed, ChangedGroups::of(self.cluster.clone()));
        for group in gone {
            self.waiting.remove(&group);
            self.known.remove(&group);
            self.listed.retain(|(_, by)| *by != group);
        }
        if is_all {
            self.waiting.retain(|group, _| changed.contains(group));
            self.known.retain(|group, _| changed.contains(group));
            self.listed.retain(|(_, by)| changed.contains(by));
        }
        for group in self.with_those_above(changed) {
            self.waiting.entry(group).or_insert(now);
        }
    }

    /// Adds the groups that list one of `groups`, and those that list these: the status of a group tells how the objects of
    /// all groups below it are, whoever writes the statuses of those.
    fn with_those_above(&self, mut groups: BTreeSet<GroupName>) -> BTreeSet<GroupName> {
        let mut rising: Vec<GroupName> = groups.iter().cloned().collect();
        while let Some(group) = rising.pop() {
            let first = (group.clone(), GroupName::default());
            let above = self.listed.range(first..).take_while(|(listed, _)| *listed == group);
            for (_, by) in above {
                if groups.insert(by.clone()) {
                    rising.push(by.clone());
                }
            }
        }
        groups
    }

    /// Remembers the groups that `group`, which declares `app`, lists.
    fn note_listed(&mut self, group: &GroupName, app: &App) {
        self.listed.retain(|(_, by)| by != group);
        let keys = app.resources.iter().map(|resource| &*resource.key);
        let is_group = |key: &&ObjectKey| {
            app.declaring.as_ref().is_some_and(|own| (&own.group, &own.kind) == (&key.group, &key.kind))
        };
        let groups = keys.filter(is_group);
        let room = MAX_LISTED.saturating_sub(self.listed.len()).min(MAX_LISTED_BY_ONE);
        self.listed
            .extend(groups.take(room).map(|key| ((key.namespace.clone(), key.name.clone()), group.clone())));
    }

    /// Compares the status of a group with what Taffrail finds.
    fn look(
        &mut self,
        fleet: &FleetSnapshot,
        packages: &Packages<'_>,
        group: &GroupName,
        connection: &Cluster,
        now: Duration,
    ) -> Todo {
        let find = |namespace: &str, name: &str| packages.get(&(namespace, name)).copied();
        let snapshot = fleet.snapshots.iter().find(|snapshot| snapshot.name() == self.cluster);
        let Some((snapshot, app)) = snapshot.zip(find(&group.0, &group.1)) else { return Todo::Nothing };
        let observed = app.declaring.as_ref().and_then(|key| snapshot.get(key.as_ref()).present());
        let Some(observed) = observed.filter(|observed| observed.projection == Projection::Full) else {
            return Todo::Nothing;
        };
        self.note_listed(group, app);
        let object = &observed.object;
        let text = |field: &str| object.text(&["metadata", field]).into_owned();
        let uid = text("uid");
        let known = self.known.get(group).filter(|known| known.uid == uid);
        let is_known = known.is_some();
        if known.is_some_and(|known| known.is_left) {
            return Todo::Nothing;
        }
        let status = match group_status(object, app, snapshot, &find, fleet.now) {
            Ok(Some(status)) => status,
            Ok(None) => return Todo::Nothing,
            Err(error) => return Todo::Refuse(error),
        };
        if !is_known {
            self.known.insert(group.clone(), KnownGroup { uid: uid.clone(), ..KnownGroup::default() });
        }
        let looks_for_controller = self.without_controller.is_none_or(|at| at + WITHOUT_CONTROLLER <= now);
        let version = object.version().to_owned();
        let (namespace, name) = group.clone();
        Todo::Write(Box::new(GroupWrite {
            cluster: connection.within(PATIENCE),
            version,
            namespace,
            name,
            uid,
            resource_version: text("resourceVersion"),
            status,
            looks_for_controller,
        }))
    }

    /// Notes the result of a write, and tells why there was none.
    fn finish(&mut self, ended: RunningWrite, written: Written, now: Duration) {
        let RunningWrite { group, looks_for_controller, .. } = ended;
        // A refusal, or no answer, may be about the controller.
        let has_looked = !matches!(written, Written::Unanswered(_) | Written::Refused(_));
        if looks_for_controller && has_looked {
            self.without_controller = Some(now);
            self.is_controlled &= matches!(written, Written::ControllerRuns);
        }
        let was_unanswered = self.unanswered.take();
        if matches!(written, Written::Unanswered(_)) {
            self.unanswered = Some(group.clone());
        }
        // One that is gone meanwhile is not remembered.
        let Some(known) = self.known.get_mut(&group) else { return };
        match written {
            Written::Done => {
                known.next = now + PAUSE;
                (known.was_written, known.was_told, known.unanswered) = (true, false, 0);
            }
            // Its change is noted once the watch brings it.
            Written::Outdated => {}
            Written::ControllerRuns => {
                self.without_controller = None;
                self.rests_until = now + AFTER_REFUSAL;
                self.waiting.entry(group).or_insert(now);
                if !std::mem::replace(&mut self.is_controlled, true) {
                    (self.tell)(GroupStatusEvent::ControllerRuns);
                }
            }
            Written::Owned(manager) => {
                let is_taken_over = known.was_written;
                self.leave(&group, |group| GroupStatusEvent::Owned { group, manager, is_taken_over });
            }
            Written::NotRecorded => {
                let reason = "it has a status, and its managed fields do not tell who wrote it".to_owned();
                self.leave(&group, |group| GroupStatusEvent::NotWritten { group, reason });
            }
            Written::NotKept => {
                let reason = "the server, or a webhook, stored another status".to_owned();
                self.leave(&group, |group| GroupStatusEvent::NotWritten { group, reason });
            }
            Written::Conflict(reason) => {
                known.next = now + PAUSE;
                self.tell_once(&group, |group| GroupStatusEvent::NotWritten { group, reason });
            }
            Written::Refused(reason) => self.refuse(&group, reason, now),
            Written::Unanswered(reason) => {
                let pause = AFTER_SILENCE * 2_u32.saturating_pow(known.unanswered.min(10));
                known.next = now + pause.min(AFTER_REFUSAL);
                known.unanswered += 1;
                // A server that answers nothing is left alone; one that cannot store one group can store others.
                if was_unanswered.as_ref() != Some(&group) {
                    self.rests_until = now + AFTER_SILENCE;
                }
                self.waiting.entry(group.clone()).or_insert(now);
                self.tell_once(&group, |group| GroupStatusEvent::NotWritten { group, reason });
            }
        }
    }

    /// Leaves the status of a group alone from now on, and tells why, whatever was told of it before.
    fn leave(&mut self, group: &GroupName, event: impl FnOnce(String) -> GroupStatusEvent) {
        if let Some(known) = self.known.get_mut(group) {
            (known.is_left, known.was_told) = (true, false);
        }
        self.tell_once(group, event);
    }

    /// Lets a group wait after a refusal, which may end when somebody grants a right.
    fn refuse(&mut self, group: &GroupName, reason: String, now: Duration) {
        self.known.entry(group.clone()).or_default().next = now + AFTER_REFUSAL;
        self.waiting.entry(group.clone()).or_insert(now);
        self.tell_once(group, |group| GroupStatusEvent::NotWritten { group, reason });
    }

    /// Tells something about a group that was not told since it was last written; of all groups, the first
    /// [`MAX_TOLD`].
    fn tell_once(&mut self, group: &GroupName, event: impl FnOnce(String) -> GroupStatusEvent) {
        let Some(known) = self.known.get_mut(group) else { return };
        if std::mem::replace(&mut known.was_told, true) || self.told > MAX_TOLD {
            return;
        }
        self.told += 1;
        (self.tell)(match self.told > MAX_TOLD {
            true => GroupStatusEvent::More,
            false => event(format!("{}/{}", group.0, group.1)),
        });
    }
}
