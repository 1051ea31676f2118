//! `tree`: an app, what it declares, and what controllers made of that.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde::Serialize;
use taffrail_object::kinds::plural;
use taffrail_object::{ObjectKey, ObjectKeyRef};
use taffrail_status::assess::{Costs, Evidence, assess_dependent};
use taffrail_status::{ActiveRules, Observed, Presence, Status};

use super::{API_VERSION, AppName, ErrorRow, ProblemView, text, time};
use crate::apps::{self, App, Resource};
use crate::fleet::Fleet;
use crate::objects::{Objects, suffices};
use crate::owners::dependents;
use crate::problem::{self, SUSPENDED};
use crate::sync::ObjectSync;
use crate::words::Words;

/// How far apps deliver apps and objects own objects before a tree is cut. Real ones have ten levels; what a
/// cluster holds may be wrong.
const DEEPEST: usize = 50;

/// How many nodes below objects are told again in the trees of other apps that list the same objects: whoever may list one
/// object may do so in many apps.
const MOST_REPEATED: usize = 10_000;

/// How many of equal children are shown before the others share a line.
const SHOWN: usize = 3;

/// What of a tree is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeShape {
    /// Only apps, and the apps that they deliver.
    pub compact: bool,
    /// Whether equal children share a line.
    pub fold: bool,
    /// Whether an app that is delivered by another one shows its own objects too.
    pub nest: bool,
}

impl Default for TreeShape {
    fn default() -> TreeShape {
        TreeShape { compact: false, fold: true, nest: true }
    }
}

/// The trees of an app, one for each cluster that it is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeList {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `TreeList`.
    pub kind: &'static str,
    /// The apps that were asked for.
    pub items: Vec<AppTree>,
    /// What could not be read, cannot be right, or is claimed twice.
    pub errors: Vec<ErrorRow>,
}

/// The tree of an app in one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppTree {
    /// The cluster that its objects land in.
    pub cluster: String,
    /// The cluster that holds the declaring object.
    pub home: String,
    /// The app.
    pub root: TreeNode,
}

/// What binds a node to the one above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Relation {
    /// It is the app itself.
    App,
    /// The app declares it.
    Declared,
    /// The object above controls it.
    Owned,
}

/// An app, an object, or several equal objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeNode {
    /// What binds it to the node above.
    pub relation: Relation,
    /// The app that it declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<AppName>,
    /// The object; several equal ones and apps without a declaring object have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKey>,
    /// What may be said of its status now.
    pub status: &'static str,
    /// Why, in one line.
    #[serde(skip_serializing_if = "Words::is_empty")]
    pub message: Words,
    /// What there is to look at in the app; absent of an app that is well, and of objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<ProblemView>,
    /// What the delivery tool says of the sync of the object, where it is not synced: `OutOfSync`, `SyncFailed`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<&'static str>,
    /// Since when it is not well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// When it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// What else there is to say: why nothing is below it, or what it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Of how many equal objects it speaks, where that is not one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folded: Option<Folded>,
    /// What is below it.
    pub children: Vec<TreeNode>,
}

impl TreeList {
    /// The trees of `asked`, which are apps of `list`, which are those of `clusters`.
    pub fn new<'a>(
        asked: &[&'a App],
        list: &'a apps::AppList,
        clusters: &[&'a dyn Objects],
        rules: &'a ActiveRules<'a>,
        now: Timestamp,
        shape: TreeShape,
    ) -> TreeList {
        let forest = Forest::new(list, clusters, rules, now, shape);
        let tree = |app: &&'a App| {
            let mut seen = Seen::default();
            let mut root = forest.app(app, Relation::App, &mut seen, 0);
            if shape.fold {
                fold(&mut root);
            }
            AppTree { cluster: app.app.target.clone(), home: app.app.home.clone(), root }
        };
        TreeList {
            api_version: API_VERSION,
            kind: "TreeList",
            items: asked.iter().map(tree).collect(),
            errors: list.errors.iter().map(ErrorRow::from).collect(),
        }
    }
}

/// Equal objects that share a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Folded {
    /// Their kind.
    pub kind: String,
    /// How many they are.
    pub count: usize,
}

impl TreeNode {
    /// A node that says nothing itself.
    pub(super) fn bare(relation: Relation, children: Vec<TreeNode>) -> TreeNode {
        TreeNode {
            relation,
            app: None,
            object: None,
            status: Status::Unknown.as_str(),
            message: Words::default(),
            problem: None,
            sync: None,
            since: None,
            created: None,
            note: None,
            folded: None,
            children,
        }
    }

    /// Returns the problem of an app that its status does not say: that of one that is Ready. That it is suspended is its note.
    pub fn besides(&self) -> Option<&ProblemView> {
        let is_ready = self.status == Status::Current.as_str();
        self.problem.as_ref().filter(|problem| is_ready && problem.state != SUSPENDED)
    }

    /// Returns its status in words: `Ready`, `Ready, OutOfSync`.
    pub fn words(&self) -> String {
        let status: Status = self.status.parse().unwrap_or(Status::Unknown);
        let besides = self.besides().map(|it| problem::words(it.axis, &it.state));
        match besides.filter(|words| !words.is_empty()) {
            Some(words) => format!("{}, {words}", status.word()),
            None => text::object_status(status, self.sync),
        }
    }
}

/// What is in a tree already: each app and each object has its branches once, so that no ring of owners or
/// apps makes a tree without end, and no overlap one of endless size.
#[derive(Default)]
struct Seen<'a> {
    apps: HashSet<*const App>,
    objects: HashSet<(&'a str, ObjectKeyRef<'a>)>,
    owners: Owners<'a>,
}

/// What is in any tree already, and how much of it was told more than once.
#[derive(Default)]
struct Told<'a> {
    apps: HashSet<*const App>,
    objects: HashSet<(&'a str, ObjectKeyRef<'a>)>,
    repeated: usize,
}

/// Those whose dependents were looked at: the cluster, the UID, and the namespace. Several objects may give one UID.
#[derive(Default)]
struct Owners<'a>(HashSet<(&'a str, String, String)>);

impl<'a> Owners<'a> {
    /// Returns the objects that controllers made of an object, unless they were asked for before.
    fn dependents(
        &mut self,
        objects: &'a dyn Objects,
        owner: &Observed<'_>,
    ) -> impl Iterator<Item = Observed<'a>> + use<'a> {
        let uid = owner.object.text(&["metadata", "uid"]).into_owned();
        let is_new = self.0.insert((objects.name(), uid, owner.key.namespace.to_owned()));
        is_new.then(|| dependents(objects, owner)).into_iter().flatten()
    }
}

/// What was found of apps so far: an object that several of them list is walked once.
#[derive(Default)]
pub(super) struct Walked<'a> {
    objects: HashSet<(&'a str, ObjectKey)>,
    owners: Owners<'a>,
}

/// What trees grow from.
pub(super) struct Forest<'a> {
    clusters: HashMap<&'a str, Ground<'a>>,
    /// The apps by their declaring object and its cluster.
    declaring: HashMap<(&'a str, &'a ObjectKey), &'a App>,
    rules: &'a ActiveRules<'a>,
    now: Timestamp,
    shape: TreeShape,
    told: RefCell<Told<'a>>,
}

/// One cluster.
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
        shape: TreeShape,
    ) -> Forest<'a> {
        let ground = |objects: &'a dyn Objects| Ground { objects, costs: Costs::default() };
        let members = Fleet::new(clusters).members;
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

    /// The cluster of a name.
    pub(super) fn cluster(&self, name: &str) -> Option<&'a dyn Objects> {
        self.clusters.get(name).map(|ground| ground.objects)
    }

    /// The objects that an app declares and those that controllers made of them, each with its cluster, as far as they are not
    /// among what was `walked` before. Apps that it delivers speak for their own.
    pub(super) fn objects(&self, app: &'a App, walked: &mut Walked<'a>) -> Vec<(&'a str, ObjectKey)> {
        let mut found = Vec::new();
        if !app.in_reach {
            return found;
        }
        let cluster = &*app.app.target;
        let ground = self.clusters.get(cluster);
        let mut waiting: Vec<ObjectKey> = app.resources.iter().map(|resource| resource.key.clone()).collect();
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

    /// Notes that an object stands in a tree. Returns false where it stood in others before and enough was told again.
    fn tells(&self, cluster: &'a str, key: ObjectKeyRef<'a>) -> bool {
        let mut told = self.told.borrow_mut();
        if told.objects.insert((cluster, key)) {
            return true;
        }
        told.repeated += 1;
        told.repeated <= MOST_REPEATED
    }

    /// Notes that the objects of an app stand in a tree, as [`tells`](Forest::tells) does.
    fn tells_app(&self, app: &App) -> bool {
        let mut told = self.told.borrow_mut();
        if told.apps.insert(std::ptr::from_ref(app)) {
            return true;
        }
        told.repeated += 1 + app.resources.len();
        told.repeated <= MOST_REPEATED
    }

    /// The tree of an app without folding.
    pub(super) fn tree(&self, app: &'a App) -> TreeNode {
        self.app(app, Relation::App, &mut Seen::default(), 0)
    }

    fn app(&self, app: &'a App, relation: Relation, seen: &mut Seen<'a>, depth: usize) -> TreeNode {
        let home = self.clusters.get(&*app.app.home);
        let created = app.declaring.as_ref().and_then(|key| created_at(found(home?.objects, key).as_ref()?));
        let mut node = TreeNode {
            relation,
            app: Some(AppName::from(&app.app)),
            object: app.declaring.clone(),
            status: app.effective().as_str(),
            message: app.message.clone(),
            problem: app.problem().map(ProblemView::from),
            sync: None,
            since: None,
            created: created.map(time),
            note: app.suspended.then(|| "suspended".to_owned()),
            folded: None,
            children: Vec::new(),
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
            let place = format!("in cluster {}", app.app.target);
            node.note = Some(node.note.map_or(place.clone(), |note| format!("{note}, {place}")));
        }
        let cluster = &*app.app.target;
        let ground = self.clusters.get(cluster).filter(|_| app.in_reach);
        let declared: HashSet<_> = app.resources.iter().map(|resource| resource.key.as_ref()).collect();
        let syncs = app.syncs();
        for resource in &app.resources {
            // Who is told to deliver itself is the root of the tree, no branch.
            let is_self = Some(&resource.key) == app.declaring.as_ref() && app.app.home == cluster;
            if is_self && app.in_reach {
                continue;
            }
            let inner = ground.and_then(|_| self.declaring.get(&(cluster, &resource.key)));
            if let Some(inner) = inner {
                node.children.push(self.app(inner, Relation::Declared, seen, depth + 1));
            } else if !self.shape.compact {
                let mut child = declared_node(app, resource, syncs.get(&resource.key).copied());
                if let Some(ground) = ground {
                    let observed = found(ground.objects, &resource.key);
                    child.created = observed.as_ref().and_then(created_at).map(time);
                    if let Some(observed) = &observed
                        && seen.objects.insert((cluster, resource.key.as_ref()))
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

const TOLD_ABOVE: &str = "what is below is shown above";

const TOO_DEEP: &str = "what is below is left out: too many levels";

/// What grows below the declared objects of one app.
struct Below<'b, 'a> {
    forest: &'b Forest<'a>,
    app: &'a App,
    ground: &'b Ground<'a>,
    declared: &'b HashSet<ObjectKeyRef<'a>>,
}

impl<'a> Below<'_, 'a> {
    fn add(&self, node: &mut TreeNode, owner: &Observed<'_>, seen: &mut Seen<'a>, depth: usize) {
        let cluster = &*self.app.app.target;
        let below = seen.owners.dependents(self.ground.objects, owner);
        // What is declared as well has its own branch.
        for observed in below.filter(|it| !self.declared.contains(&it.key)) {
            if depth == DEEPEST {
                node.note = Some(TOO_DEEP.to_owned());
                return;
            }
            if seen.objects.insert((cluster, observed.key)) {
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
            (Status::Unknown, "only its metadata was read".into(), None)
        };
        let key = observed.key;
        let replicas = observed.object.at(&["spec", "replicas"]).and_then(|replicas| replicas.as_i64());
        let is_old = key.group == "apps" && key.kind == "ReplicaSet" && replicas == Some(0);
        TreeNode {
            relation: Relation::Owned,
            app: None,
            object: Some(key.to_owned()),
            status: self.app.freshness.effective(status).as_str(),
            message,
            problem: None,
            sync: None,
            since: since.map(time),
            created: created_at(observed).map(time),
            note: is_old.then(|| SCALED_TO_0.to_owned()),
            folded: None,
            children: Vec::new(),
        }
    }
}

/// What an app lists that does not say that it is this app's.
const UNCONFIRMED: &str = "unconfirmed";

/// What a Deployment keeps to be able to go back.
const SCALED_TO_0: &str = "scaled to 0";

fn declared_node(app: &App, resource: &Resource, sync: Option<&ObjectSync>) -> TreeNode {
    TreeNode {
        relation: Relation::Declared,
        app: None,
        object: Some(resource.key.clone()),
        status: app.freshness.effective(resource.status).as_str(),
        message: resource.message.clone(),
        problem: None,
        sync: sync.map(|own| own.state),
        since: resource.since.map(time),
        created: None,
        note: resource.unconfirmed.then(|| UNCONFIRMED.to_owned()),
        folded: None,
        children: Vec::new(),
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

/// Lets equal children share a line, at all levels.
pub(super) fn fold(node: &mut TreeNode) {
    node.children.iter_mut().for_each(fold);
    let likenesses: Vec<Option<Likeness<'_>>> = node.children.iter().map(likeness).collect();
    let mut groups: HashMap<&Likeness<'_>, Group> = HashMap::new();
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
            Fate::Folded { count: group.count - kept, kept }
        } else {
            Fate::Gone
        }
    });
    let fates: Vec<Fate> = fates.collect();
    let children = std::mem::take(&mut node.children).into_iter().zip(fates);
    node.children = children
        .filter_map(|(child, fate)| match fate {
            Fate::Kept => Some(child),
            Fate::Folded { count, kept } => Some(folded(child, count, kept)),
            Fate::Gone => None,
        })
        .collect();
}

/// Children that are alike: how many there are, and how many of them were met.
#[derive(Default)]
struct Group {
    count: usize,
    met: usize,
}

/// What becomes of a child when equal ones share a line.
enum Fate {
    Kept,
    /// It makes room for the line for `count`, where `kept` have their own.
    Folded {
        count: usize,
        kept: usize,
    },
    Gone,
}

/// What children have in common that share a line.
#[derive(PartialEq, Eq, Hash)]
struct Likeness<'n> {
    relation: Relation,
    group: &'n str,
    kind: &'n str,
    namespace: &'n str,
    status: &'static str,
    sync: Option<&'static str>,
    message: String,
    note: Option<&'n str>,
    has_children: bool,
}

/// `None` of a child that is like no other: an app, or an object with something below that is not well.
fn likeness(node: &TreeNode) -> Option<Likeness<'_>> {
    let object = node.object.as_ref()?;
    if node.app.is_some() || !node.children.iter().all(is_well) {
        return None;
    }
    let message = match node.status == Status::Current.as_str() {
        true => String::new(),
        // Numbers and the own name differ where all else is the same.
        false => node.message.replace(&object.name, "").replace(|digit: char| digit.is_ascii_digit(), ""),
    };
    Some(Likeness {
        relation: node.relation,
        group: &object.group,
        kind: &object.kind,
        namespace: &object.namespace,
        status: node.status,
        sync: node.sync,
        message,
        note: node.note.as_deref(),
        has_children: !node.children.is_empty(),
    })
}

/// Whether a node and all below it are as they should be. Lines that speak of several are well or not as these are.
fn is_well(node: &TreeNode) -> bool {
    let is_ready = node.status == Status::Current.as_str() && node.sync.is_none();
    node.app.is_none() && is_ready && node.children.iter().all(is_well)
}

/// The line for `count` children like this one, of which `kept` have lines of their own.
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
        folded: Some(Folded { kind: kind.to_owned(), count }),
        children: Vec::new(),
        ..child
    }
}
