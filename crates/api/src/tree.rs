//! The answer of `tree`: an app, the objects that it declares, and their dependents.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_apps::{
    self as apps, App, Axis, Freshness, ObjectSync, ObjectSyncState, Objects, Problem, Resource, SUSPENDED,
    Words, dependents, members, suffices,
};
use taffrail_object::kinds::plural;
use taffrail_object::{ObjectKey, ObjectKeyRef};
use taffrail_status::assess::{Costs, Evidence, assess_dependent};
use taffrail_status::{ActiveRules, Observed, Presence, Status};

use crate::filter::StatusFilter;
use crate::{AppName, List, ListItem, text};

/// The maximum number of levels of a tree: apps that deliver apps, and objects that own objects. Nodes below are left
/// out, and the last node says so. Real trees have ten levels, but a cluster may hold circular references.
const DEEPEST: usize = 50;

/// The maximum number of nodes of an answer that repeat an object or app of another tree; further repetitions are left
/// out. An author who may list one object may do so in many apps.
const MOST_REPEATED: usize = 10_000;

/// The number of equal children without a note that have a line of their own; the others share one if they are at least
/// two.
const SHOWN: usize = 3;

/// The options that decide which nodes a tree shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeOptions {
    /// True to show only the app and the apps that it delivers, without other objects.
    pub compact: bool,
    /// True to fold: of five or more children that are alike, all but the first three share a line; of two or more with
    /// the same note, all do.
    pub fold: bool,
    /// True to show also the objects of the apps that the app delivers.
    pub nest: bool,
}

impl Default for TreeOptions {
    fn default() -> TreeOptions {
        TreeOptions { compact: false, fold: true, nest: true }
    }
}

/// The trees of an app, one for each cluster that it is in.
pub type TreeList = List<AppTree>;

impl ListItem for AppTree {
    const LIST: &'static str = "TreeList";
}

/// The tree of an app in one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AppTree {
    /// Name of the cluster that holds the objects of the app.
    pub cluster: String,
    /// Name of the cluster that holds the declaring object.
    pub home: String,
    /// The number of nodes that `--status` leaves out; not written if it is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// The node of the app, with all others below it.
    pub root: TreeNode,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl AppTree {
    /// Removes the nodes that `status` does not admit, except for the root and the nodes above an admitted one, and
    /// counts them in `left_out`. Must be called before [`AppTree::fold`].
    pub fn keep(&mut self, status: &StatusFilter) {
        let is_pressing = self.root.is_pressing();
        let children = &mut self.root.children;
        children.retain_mut(|child| keep(child, status, is_pressing, &mut self.left_out));
    }

    /// Replaces siblings that are alike by a shared line, at all levels: of five or more all but the first three, of
    /// two or more with the same note all.
    pub fn fold(&mut self) {
        fold(&mut self.root);
    }
}

/// Removes the nodes below `node` that `status` does not admit and that have no admitted node below; returns true if
/// `node` itself stays. Adds the number of nodes that do not stay, `node` included, to `left_out`. `is_pressing` is
/// true if the app above has a problem that is more than a notice: an object that is not synced then does not count as
/// Ready, as in `get resources`.
fn keep(node: &mut TreeNode, status: &StatusFilter, is_pressing: bool, left_out: &mut usize) -> bool {
    let of_children = if node.app.is_some() { node.is_pressing() } else { is_pressing };
    let has_problem = node.is_pressing() || is_pressing && node.sync.is_some();
    node.children.retain_mut(|child| keep(child, status, of_children, left_out));
    let stays = !node.children.is_empty() || status.admits_row(node.status, has_problem);
    *left_out += usize::from(!stays);
    stays
}

/// The relation of a node to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Relation {
    /// The node is the root: the app itself.
    App,
    /// The app of the node above declares the object or the app.
    Declared,
    /// The object of the node above owns the object.
    Owned,
}

/// A node of the tree, which is one line of text: an app, an object, or several objects that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TreeNode {
    /// The relation of the node to its parent.
    pub relation: Relation,
    /// The app, if the node is one or its object declares one; else left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<AppName>,
    /// The object; for an app its declaring object. Left out for a shared line, and for apps without a declaring
    /// object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKey>,
    /// The status of the app or object when it was last observed.
    pub health: Status,
    /// The status now: `health` if the objects of the app are observed live, else Unknown.
    pub effective: Status,
    /// Always equal to `effective`.
    pub status: Status,
    /// The message of the app, or of the object's status, in one line; may be empty.
    #[serde(default, skip_serializing_if = "Words::is_empty")]
    pub message: Words,
    /// The worst problem of the app, notices included; left out for an app without problems, and for objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// The state that the delivery tool reports for an object that is not synced: `OutOfSync`, `SyncFailed`, …;
    /// left out for a synced one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<ObjectSyncState>,
    /// The message of the tool's last operation about the object, if that could not sync it; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sync_message: String,
    /// The time since when the object is not well, if known; left out for apps, whose `problem` tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The creation time of the object, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// A note for people, such as `suspended`, `unconfirmed`, why the node has no children, or what a shared line
    /// contains; left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// For a shared line, the kind and number of its objects; else left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folded: Option<Collapsed>,
    /// The nodes below this one.
    pub children: Vec<TreeNode>,
}

impl TreeList {
    /// Makes the trees of the apps `asked`, in this order, with the nodes that `shape` selects. `list` has all apps of
    /// `clusters`, among them `asked`.
    pub fn new<'a>(
        asked: &[&'a App],
        list: &'a apps::AppList,
        clusters: &[&'a dyn Objects],
        rules: &'a ActiveRules<'a>,
        now: Timestamp,
        shape: TreeOptions,
    ) -> TreeList {
        let forest = Forest::new(list, clusters, rules, now, shape);
        let tree = |app: &&'a App| {
            let root = forest.tree(app);
            let (cluster, home) = (app.app.target.clone(), app.app.home.clone());
            let mut tree = AppTree { cluster, home, left_out: 0, root };
            if shape.fold {
                tree.fold();
            }
            tree
        };
        List::of(asked.iter().map(tree).collect(), &list.errors)
    }
}

/// The objects that share a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Collapsed {
    /// The kind of the objects.
    pub kind: String,
    /// Number of objects.
    pub count: usize,
}

impl TreeNode {
    /// Makes a node with this relation to its parent and this health, and without an app, an object and children.
    pub(super) fn new(relation: Relation, health: Status, freshness: Freshness) -> TreeNode {
        let effective = freshness.effective(health);
        TreeNode {
            relation,
            app: None,
            object: None,
            health,
            effective,
            status: effective,
            message: Words::default(),
            problem: None,
            sync: None,
            sync_message: String::new(),
            since: None,
            created: None,
            note: None,
            folded: None,
            children: Vec::new(),
        }
    }

    /// Returns the node with the sync state and message that the delivery tool reports for its object; unchanged for
    /// `None`.
    fn with(self, sync: Option<&ObjectSync>) -> TreeNode {
        match sync {
            Some(own) => TreeNode { sync: Some(own.state), sync_message: own.message.clone(), ..self },
            None => self,
        }
    }

    /// Returns true if the node is an app with a problem that is more than a notice.
    fn is_pressing(&self) -> bool {
        self.problem.as_ref().is_some_and(Problem::is_pressing)
    }

    /// Returns the worst problem of an app whose status is Ready, to be shown beside it; `None` if the node is not
    /// Ready or has no problem, or if that is a suspension.
    pub fn besides(&self) -> Option<&Problem> {
        let is_ready = self.status == Status::Current;
        self.problem.as_ref().filter(|problem| is_ready && problem.state != SUSPENDED)
    }

    /// Returns the message to show to people: that of the problem of [`TreeNode::besides`]; for an app that is Unknown
    /// only because its objects are not live, the cluster that is not live and the last message, as
    /// [`text::last_message`]; else [`text::object_message`], with an empty message for a Ready object.
    pub fn told(&self) -> Cow<'_, str> {
        let own = if self.health == Status::Current { "" } else { &*self.message };
        let silence = self.problem.as_ref().filter(|it| self.was_other() && it.axis == Axis::Freshness);
        match (self.besides(), silence) {
            (Some(problem), _) => (*problem.message).into(),
            (None, Some(_)) => {
                // What is said of an app that was Ready is what its delivery tool says.
                let is_old = self.health != Status::Current;
                text::last_message(&self.message, silence, is_old).into_owned().into()
            }
            (None, None) => text::object_message(self.health, own, &self.sync_message),
        }
    }

    /// Returns the cluster in which the nodes below this one are, which is in `cluster` itself: an app may deliver into
    /// another cluster than the one with its declaring object.
    pub fn cluster_below<'n>(&'n self, cluster: &'n str) -> &'n str {
        let note = self.note.as_deref().filter(|_| self.app.is_some() && self.relation != Relation::App);
        let place = note.and_then(|note| {
            let note =
                note.strip_prefix(SUSPENDED_NOTE).map_or(note, |rest| rest.trim_start_matches([',', ' ']));
            note.strip_prefix(IN_CLUSTER)
        });
        place.unwrap_or(cluster)
    }

    /// Returns true if the status is Unknown because the last observation, of another status, is too old.
    fn was_other(&self) -> bool {
        self.status != self.health
    }

    /// Returns the status in words, with the problem of [`TreeNode::besides`] or else the sync state of the object
    /// after it: `Ready`, `Ready, OutOfSync`; `Unknown (was Ready)` if the last observation is too old.
    pub fn words(&self) -> String {
        let besides = self.besides().map(Problem::words);
        let seen = match self.was_other() {
            true => format!("{} (was {})", self.status.word(), self.health.word()),
            false => self.status.word().to_owned(),
        };
        match besides.filter(|words| !words.is_empty()) {
            Some(words) => format!("{seen}, {words}"),
            None => text::with_sync(seen, self.status, self.sync),
        }
    }
}

/// The apps and objects that a tree contains so far. Each is expanded once, so that circular ownership cannot make the
/// tree endless, nor overlapping apps make it huge.
#[derive(Default)]
struct TreeContents<'a> {
    apps: HashSet<*const App>,
    /// The objects, each with its cluster; the value is true for a dependent, false for a declared object.
    objects: HashMap<(&'a str, ObjectKeyRef<'a>), bool>,
    owners: Owners<'a>,
}

impl<'a> TreeContents<'a> {
    /// Adds an object of `cluster` to those of the tree, as a dependent or as a declared one; if the tree already
    /// contained it, changes nothing and returns false.
    fn add(&mut self, cluster: &'a str, key: ObjectKeyRef<'a>, is_dependent: bool) -> bool {
        match self.objects.entry((cluster, key)) {
            Entry::Vacant(place) => {
                place.insert(is_dependent);
                true
            }
            Entry::Occupied(_) => false,
        }
    }
}

/// The apps and objects that the trees of the answer contain so far, and the number of repeated ones.
#[derive(Default)]
struct AnswerContents<'a> {
    apps: HashSet<*const App>,
    objects: HashSet<(&'a str, ObjectKeyRef<'a>)>,
    /// The objects of the last tree, as in [`TreeContents::objects`]; its dependents are added to `objects` when
    /// another tree follows.
    last: HashMap<(&'a str, ObjectKeyRef<'a>), bool>,
    repeated: usize,
}

/// The owners whose dependents were already returned, by cluster, UID and namespace: several objects may have one UID.
#[derive(Default)]
struct Owners<'a>(HashSet<(&'a str, String, String)>);

impl<'a> Owners<'a> {
    /// Returns the dependents of `owner` in its cluster; none if they were returned before.
    fn dependents(
        &mut self,
        objects: &'a dyn Objects,
        owner: &Observed<'_>,
    ) -> impl Iterator<Item = Observed<'a>> + use<'a> {
        let mut found = dependents(objects, owner).peekable();
        let is_new = found.peek().is_some() && {
            let uid = owner.object.text(&["metadata", "uid"]).into_owned();
            self.0.insert((objects.name(), uid, owner.key.namespace.to_owned()))
        };
        is_new.then_some(found).into_iter().flatten()
    }
}

/// The objects that [`Forest::objects`] has collected, so that an object that several apps list is examined once.
#[derive(Default)]
pub(super) struct Walked<'a> {
    objects: HashSet<(&'a str, ObjectKey)>,
    owners: Owners<'a>,
}

/// The clusters, apps, rules and options from which the trees of an answer are built.
pub(super) struct Forest<'a> {
    clusters: HashMap<&'a str, Ground<'a>>,
    /// The apps by their declaring object and its cluster.
    declaring: HashMap<(&'a str, &'a ObjectKey), &'a App>,
    rules: &'a ActiveRules<'a>,
    now: Timestamp,
    shape: TreeOptions,
    told: RefCell<AnswerContents<'a>>,
}

/// A cluster of which trees are built, and the costs of judging its dependents.
struct Ground<'a> {
    objects: &'a dyn Objects,
    costs: Costs,
}

impl<'a> Forest<'a> {
    pub(super) fn new(
        list: &'a apps::AppList,
        clusters: &[&'a dyn Objects],
        rules: &'a ActiveRules<'a>,
        now: Timestamp,
        shape: TreeOptions,
    ) -> Forest<'a> {
        let ground = |objects: &'a dyn Objects| Ground { objects, costs: Costs::default() };
        let members = members(clusters);
        let declaring =
            list.apps.iter().filter_map(|app| Some(((&*app.app.home, app.declaring.as_ref()?), app)));
        Forest {
            clusters: members.iter().map(|member| (member.objects.name(), ground(member.objects))).collect(),
            declaring: declaring.collect(),
            rules,
            now,
            shape,
            told: RefCell::default(),
        }
    }

    /// Returns the cluster state of the cluster called `name`; `None` if there is none.
    pub(super) fn cluster(&self, name: &str) -> Option<&'a dyn Objects> {
        self.clusters.get(name).map(|ground| ground.objects)
    }

    /// Returns the objects that an app declares and on which its claim is confirmed (or, if `unconfirmed`, those on
    /// which it is not), and their dependents at all levels, each with its cluster; none if the target cluster was not
    /// queried. Leaves out objects in `walked`, to which it adds those that it returns, and the objects of apps that
    /// this app delivers.
    pub(super) fn objects(
        &self,
        app: &'a App,
        unconfirmed: bool,
        walked: &mut Walked<'a>,
    ) -> Vec<(&'a str, ObjectKey)> {
        let mut found = Vec::new();
        if !app.in_reach {
            return found;
        }
        let cluster = &*app.app.target;
        let ground = self.clusters.get(cluster);
        let asked = app.resources.iter().filter(|resource| resource.unconfirmed == unconfirmed);
        let mut waiting: Vec<ObjectKey> = asked.map(|resource| (*resource.key).clone()).collect();
        while let Some(key) = waiting.pop() {
            if !walked.objects.insert((cluster, key.clone())) {
                continue;
            }
            if let Some(ground) = ground
                && let Some(observed) = self::found(ground.objects, &key)
            {
                let below = walked.owners.dependents(ground.objects, &observed);
                waiting.extend(below.map(|it| it.key.to_owned()));
            }
            found.push((cluster, key));
        }
        found
    }

    /// Returns true if a dependent may be shown: no earlier tree contains it, or at most [`MOST_REPEATED`] nodes were
    /// repeated, this one included.
    fn tells(&self, cluster: &'a str, key: ObjectKeyRef<'a>) -> bool {
        let mut told = self.told.borrow_mut();
        if !told.objects.contains(&(cluster, key)) {
            return true;
        }
        told.repeated += 1;
        told.repeated <= MOST_REPEATED
    }

    /// Records an app as part of a tree, and returns true if its objects may be shown: no tree contained it, or at most
    /// [`MOST_REPEATED`] nodes were repeated, its own included.
    fn tells_app(&self, app: &App) -> bool {
        let mut told = self.told.borrow_mut();
        if told.apps.insert(std::ptr::from_ref(app)) {
            return true;
        }
        told.repeated += 1 + app.resources.len();
        told.repeated <= MOST_REPEATED
    }

    /// Returns the root of the tree of an app, in which each object has a node of its own.
    pub(super) fn tree(&self, app: &'a App) -> TreeNode {
        let last = std::mem::take(&mut self.told.borrow_mut().last);
        let dependents = last.into_iter().filter(|(_, is_dependent)| *is_dependent);
        self.told.borrow_mut().objects.extend(dependents.map(|(object, _)| object));
        // Most declared objects have a few dependents.
        let objects = HashMap::with_capacity(app.resources.len().saturating_mul(4));
        let mut seen = TreeContents { objects, ..TreeContents::default() };
        let root = self.app(app, Relation::App, &mut seen, 0);
        self.told.borrow_mut().last = seen.objects;
        root
    }

    fn app(&self, app: &'a App, relation: Relation, seen: &mut TreeContents<'a>, depth: usize) -> TreeNode {
        let home = self.clusters.get(&*app.app.home);
        let created = app.declaring.as_ref().and_then(|key| created_at(found(home?.objects, key).as_ref()?));
        let mut node = TreeNode {
            app: Some(AppName::from(&app.app)),
            object: app.declaring.clone(),
            message: app.message.clone(),
            problem: app.problem().cloned(),
            created,
            note: app.suspended.then(|| SUSPENDED_NOTE.to_owned()),
            ..TreeNode::new(relation, app.health, app.freshness)
        };
        if relation != Relation::App && !self.shape.nest {
            return node;
        }
        if !seen.apps.insert(std::ptr::from_ref(app)) || !self.tells_app(app) && relation != Relation::App {
            node.note = Some("shown above".to_owned());
            return node;
        }
        if depth == DEEPEST {
            node.note = Some(TOO_DEEP.to_owned());
            return node;
        }
        if relation != Relation::App && app.app.target != app.app.home {
            let place = format!("{IN_CLUSTER}{}", app.app.target);
            node.note = Some(node.note.map_or(place.clone(), |note| format!("{note}, {place}")));
        }
        let cluster = &*app.app.target;
        let ground = self.clusters.get(cluster).filter(|_| app.in_reach);
        let declared: HashSet<_> =
            app.resources.iter().map(|resource| ObjectKey::as_ref(&resource.key)).collect();
        let syncs = app.syncs();
        for resource in &app.resources {
            // An app that delivers its own declaring object is the root of the tree, not a branch.
            let is_self = Some(&*resource.key) == app.declaring.as_ref() && app.app.home == cluster;
            if is_self && app.in_reach {
                continue;
            }
            let sync = syncs.get(&*resource.key).copied();
            let inner = ground.and_then(|_| self.declaring.get(&(cluster, &resource.key)));
            if let Some(inner) = inner {
                node.children.push(self.app(inner, Relation::Declared, seen, depth + 1).with(sync));
            } else if !self.shape.compact {
                let mut child = declared_node(app, resource).with(sync);
                if let Some(ground) = ground {
                    let observed = found(ground.objects, &resource.key);
                    child.created = observed.as_ref().and_then(created_at);
                    if let Some(observed) = &observed
                        && seen.add(cluster, ObjectKey::as_ref(&resource.key), false)
                    {
                        let below = Below { forest: self, app, ground, declared: &declared };
                        below.add(&mut child, observed, seen, depth + 1);
                    }
                }
                node.children.push(child);
            }
        }
        node
    }
}

/// The note of an app that is suspended.
const SUSPENDED_NOTE: &str = "suspended";

/// The beginning of the note of an app below the root that delivers into another cluster than the one that declares it.
const IN_CLUSTER: &str = "in cluster ";

const TOLD_ABOVE: &str = "its dependents are shown above";

const TOO_DEEP: &str = "its dependents are left out: too many levels";

/// Builds the nodes of the dependents of the declared objects of one app.
struct Below<'b, 'a> {
    forest: &'b Forest<'a>,
    app: &'a App,
    ground: &'b Ground<'a>,
    declared: &'b HashSet<ObjectKeyRef<'a>>,
}

impl<'a> Below<'_, 'a> {
    fn add(&self, node: &mut TreeNode, owner: &Observed<'_>, seen: &mut TreeContents<'a>, depth: usize) {
        let cluster = &*self.app.app.target;
        let below = seen.owners.dependents(self.ground.objects, owner);
        // A dependent that is declared as well has its own branch.
        for observed in below.filter(|it| !self.declared.contains(&it.key)) {
            if depth == DEEPEST {
                node.note = Some(TOO_DEEP.to_owned());
                return;
            }
            if seen.add(cluster, observed.key, true) {
                if !self.forest.tells(cluster, observed.key) {
                    let is_told = node.note.as_ref().is_some_and(|note| note.ends_with(TOLD_ABOVE));
                    let note = node.note.take();
                    node.note = Some(match note {
                        Some(note) if is_told => note,
                        Some(note) => format!("{note}, {TOLD_ABOVE}"),
                        None => TOLD_ABOVE.to_owned(),
                    });
                    continue;
                }
                let mut child = self.owned(&observed);
                self.add(&mut child, &observed, seen, depth + 1);
                node.children.push(child);
            }
        }
    }

    fn owned(&self, observed: &Observed<'_>) -> TreeNode {
        let (status, message, since) = if suffices(observed) {
            let Forest { rules, now, .. } = *self.forest;
            let evidence = Evidence::of(self.ground.objects).at_cost(&self.ground.costs);
            let assessment = assess_dependent(&observed.object, evidence, rules, now);
            (assessment.verdict.status, Words::from(assessment.message), assessment.since)
        } else {
            (Status::Unknown, "only the object's metadata was read".into(), None)
        };
        let key = observed.key;
        let replicas = observed.object.at(&["spec", "replicas"]).and_then(|replicas| replicas.as_i64());
        let is_old = key.group == "apps" && key.kind == "ReplicaSet" && replicas == Some(0);
        TreeNode {
            object: Some(key.to_owned()),
            message,
            since,
            created: created_at(observed),
            note: is_old.then(|| SCALED_TO_0.to_owned()),
            ..TreeNode::new(Relation::Owned, status, self.app.freshness)
        }
    }
}

/// The note of a declared object on which the claim of the app is unconfirmed.
const UNCONFIRMED: &str = "unconfirmed";

/// The note of a ReplicaSet that wants no Pods, such as an old one that a Deployment keeps for rollbacks.
const SCALED_TO_0: &str = "scaled to 0";

fn declared_node(app: &App, resource: &Resource) -> TreeNode {
    TreeNode {
        object: Some((*resource.key).clone()),
        message: resource.message.clone(),
        since: resource.since,
        note: resource.unconfirmed.then(|| UNCONFIRMED.to_owned()),
        ..TreeNode::new(Relation::Declared, resource.status, app.freshness)
    }
}

fn found<'a>(objects: &'a dyn Objects, key: &ObjectKey) -> Option<Observed<'a>> {
    match objects.get(key.as_ref()) {
        Presence::Present(observed) => Some(observed),
        Presence::Absent | Presence::Unobserved(_) => None,
    }
}

fn created_at(observed: &Observed<'_>) -> Option<Timestamp> {
    observed.object.text(&["metadata", "creationTimestamp"]).parse().ok()
}

/// Replaces children that are alike by a shared line, at all levels below `node`. Of children without a note the first
/// [`SHOWN`] keep a line of their own; one child is never replaced by one line.
pub(super) fn fold(node: &mut TreeNode) {
    node.children.iter_mut().for_each(fold);
    if node.children.len() < 2 {
        return;
    }
    let likenesses: Vec<Option<Likeness<'_>>> = node.children.iter().map(likeness).collect();
    let mut groups: HashMap<&Likeness<'_>, AlikeChildren> = HashMap::new();
    for likeness in likenesses.iter().flatten() {
        groups.entry(likeness).or_default().count += 1;
    }
    let fates = likenesses.iter().map(|likeness| {
        let Some((likeness, group)) = likeness.as_ref().and_then(|it| Some((it, groups.get_mut(it)?))) else {
            return Fate::Kept;
        };
        let kept = if likeness.note.is_some() { 0 } else { SHOWN };
        group.met += 1;
        // One line in place of one line is no gain.
        if group.count < kept + 2 || group.met <= kept {
            Fate::Kept
        } else if group.met == kept + 1 {
            Fate::Collapsed { count: group.count - kept, kept }
        } else {
            Fate::Gone
        }
    });
    let fates: Vec<Fate> = fates.collect();
    let children = std::mem::take(&mut node.children).into_iter().zip(fates);
    node.children = children
        .filter_map(|(child, fate)| match fate {
            Fate::Kept => Some(child),
            Fate::Collapsed { count, kept } => Some(folded(child, count, kept)),
            Fate::Gone => None,
        })
        .collect();
}

/// A group of children that are alike: their total number, and the number handled so far.
#[derive(Default)]
struct AlikeChildren {
    count: usize,
    met: usize,
}

/// The decision about a child of a node when children that are alike are folded.
enum Fate {
    Kept,
    /// A line for `count` children replaces this child and all later ones that are alike; `kept` earlier ones have
    /// lines of their own.
    Collapsed {
        count: usize,
        kept: usize,
    },
    Gone,
}

/// The properties in which children are equal that share a line; texts are compared without digits and the object's own
/// name, and the messages of Ready objects not at all.
#[derive(PartialEq, Eq, Hash)]
struct Likeness<'n> {
    relation: Relation,
    group: &'n str,
    kind: &'n str,
    namespace: &'n str,
    status: Status,
    sync: Option<ObjectSyncState>,
    message: String,
    sync_message: String,
    note: Option<&'n str>,
    has_children: bool,
}

/// Returns the properties by which a node is compared with its siblings; `None` for nodes that never share a line:
/// apps, and objects above an app or above an object that is not Ready or not synced.
fn likeness(node: &TreeNode) -> Option<Likeness<'_>> {
    let object = node.object.as_ref()?;
    if node.app.is_some() || !node.children.iter().all(is_well) {
        return None;
    }
    // Numbers and the object's own name differ where all else is the same.
    let alike = |text: &str| text.replace(&object.name, "").replace(|digit: char| digit.is_ascii_digit(), "");
    let message = if node.status == Status::Current { String::new() } else { alike(&node.message) };
    Some(Likeness {
        relation: node.relation,
        group: &object.group,
        kind: &object.kind,
        namespace: &object.namespace,
        status: node.status,
        sync: node.sync,
        message,
        sync_message: alike(&node.sync_message),
        note: node.note.as_deref(),
        has_children: !node.children.is_empty(),
    })
}

/// Returns true if a node and all nodes below it are objects (not apps) that are Ready and synced.
fn is_well(node: &TreeNode) -> bool {
    let is_ready = node.status == Status::Current && node.sync.is_none();
    node.app.is_none() && is_ready && node.children.iter().all(is_well)
}

/// Makes the shared line for `count` children that are like `child`; `kept` others have lines of their own.
fn folded(child: TreeNode, count: usize, kept: usize) -> TreeNode {
    let kind = child.object.as_ref().map(|object| object.kind.as_str()).unwrap_or_default();
    let more = if kept == 0 { "" } else { "more " };
    let more = format!("{count} {more}{}", plural(kind));
    let note = match &child.note {
        Some(note) => format!("{more} {note}"),
        None => more,
    };
    TreeNode {
        object: None,
        since: None,
        created: None,
        note: Some(note),
        folded: Some(Collapsed { kind: kind.to_owned(), count }),
        children: Vec::new(),
        ..child
    }
}
