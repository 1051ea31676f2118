//! Rows kept up to date: the apps of a fleet, of which a change recomputes only what it may have changed.
//!
//! While declarations are read and rows are judged, each lookup made in a cluster is recorded
//! ([`crate::questions`]), like in build systems that trace which files a target reads. A batch of changes is turned
//! into the lookups that may find something else ([`changed`]); results that depend on one of them are
//! computed again ([`graph`]). So the list equals that of [`apps_by`](crate::apps_by) after any sequence of
//! changes, at a cost in proportion to the change:
//!
//! * A row depends on its objects, their evidence and events, and the sources and controllers of its tool. It
//!   is judged again when one of these may have changed, or at the time at which time alone changes it: each
//!   comparison with the present time records when its result will change ([`elapsed`](crate::noting::elapsed)).
//! * The declaration of an object is read again when an object that it reads changes; those of other objects
//!   are kept ([`DeclaredParts`]). Rows with an unchanged declaration stay. If no more than one app can be concerned,
//!   the others are not looked at. If only the objects that apps claim differ, these objects are assigned to label
//!   groups again; if the apps or their marks differ, all objects are.
//! * If anything may have changed in a cluster, as when it was read for the first time, the rows with that cluster as
//!   home or target are judged again, and so are those of each home with an app there; the others stay ([`renewed`]).
//! * Otherwise the labels of an object are examined when that object changes, or its controller comes or goes.
//!
//! A result that several rows share has a node of its own, so that many rows with one object do not each hold
//! the lookups made for it. If a computation may reach the limits of
//! [`Costs`](taffrail_status::assess::Costs), the order in which objects are judged matters: then all rows
//! are judged at each change, as long as that is so.
//!
//! The relations between rows (which app creates which, which waits for which) are found from the rows: after a
//! change of some, only those that depend on them are looked at ([`crate::relations`]).
//!
//! The freshness of a cluster is written into its rows without judging them again.

mod changed;
mod changes;
mod declarations;
mod graph;
mod renewed;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use changes::RowLog;
use declarations::{is_left_out, leave_out, moved_claims, note_declared, note_parts, reconcile};
use graph::{Graph, Node};
use jiff::Timestamp;
use renewed::{Identity, Renewed};
use taffrail_object::ObjectKey;
use taffrail_status::{ActiveRules, Observed};

use crate::app::{App, AppList, Resource};
use crate::apps::{Judge, errors, of_objects, order};
use crate::claims::{ClaimIndex, Claims};
use crate::delivery::labels::{self, GroupSearch, LabelGroups};
use crate::delivery::most_apps::ExcessApps;
use crate::delivery::{AppLabels, Declarations, DeclaredPart, DeclaredParts};
use crate::fleet::Fleet;
use crate::freshness::{Freshness, FreshnessState};
use crate::identity::AppRef;
use crate::noting::Noting;
use crate::objects::{Objects, freshness_of, freshness_of_home};
use crate::questions::{Question, QuestionLog, QuestionRecord};
use crate::relations::Relations;
use crate::scope::Scope;
use crate::snapshot::ChangeBatch;

pub use changes::ChangedRows;

/// The amount of work that an update of the rows took, for tests and benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowWork {
    /// Number of rows that were judged.
    pub judged: usize,
    /// Number of declarations that were read.
    pub declared: usize,
    /// True if everything was computed without using earlier results.
    pub is_whole: bool,
}

/// A way in which a change of an object affects a row. A test disables each to show that the rows are then wrong.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Propagation {
    Object,
    Metadata,
    Kind,
    Keys,
    IsNamespaced,
    Controlled,
    Owned,
    Users,
    Pods,
    Budgets,
    Leaving,
    Definition,
    Namespace,
    Events,
    Lists,
    Storage,
    ArgoControllers,
    Errors,
    Freshness,
    /// By cached values that several rows share.
    Shared,
    /// By the labels of a changed object.
    Labels,
    /// By a controller that came or went, to the labelled objects that name its UID.
    Controllers,
    /// By the names of PersistentVolumeClaims that StatefulSets create.
    ClaimTemplates,
    /// From a declaring object to its kept declaration.
    Declared,
    /// By the claims of tools, to label groups.
    Claims,
    /// By time alone.
    Time,
    /// From a row to those that it creates, and to those that wait for it.
    Relations,
}

impl Question<'_> {
    fn propagation(&self) -> Propagation {
        match self {
            Question::Object(_) => Propagation::Object,
            Question::Metadata(_) => Propagation::Metadata,
            Question::Kind(..) | Question::All => Propagation::Kind,
            Question::Keys(..) => Propagation::Keys,
            Question::IsNamespaced(..) => Propagation::IsNamespaced,
            Question::Controlled(_) => Propagation::Controlled,
            Question::Owned(_) => Propagation::Owned,
            Question::Users(..) => Propagation::Users,
            Question::Pods(_) => Propagation::Pods,
            Question::Budgets(..) => Propagation::Budgets,
            Question::Leaving(_) => Propagation::Leaving,
            Question::Definition(..) => Propagation::Definition,
            Question::Namespace(_) => Propagation::Namespace,
            Question::Events(..) => Propagation::Events,
            Question::Lists(..) => Propagation::Lists,
            Question::Storage => Propagation::Storage,
            Question::ArgoControllers(_) => Propagation::ArgoControllers,
            Question::ClaimTemplates => Propagation::ClaimTemplates,
            Question::Errors => Propagation::Errors,
            Question::Freshness => Propagation::Freshness,
        }
    }
}

/// The identity of a result in the dependency graph.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Subject {
    /// The declarations of all delivery tools.
    Tools,
    /// A declaration that is kept on its own.
    Declared(DeclaredPart),
    /// The label group of one object: index of its cluster, and its key.
    Labelled(usize, ObjectKey),
    /// A row, by its number.
    Row(u32),
}

/// The apps of a fleet, updated at a cost in proportion to the changes.
#[derive(Debug)]
pub struct AppRows {
    labels: AppLabels,
    log: QuestionLog,
    kept: Option<LastRows>,
    list: AppList,
    changed: RowLog,
    without: Option<Propagation>,
}

/// The rows after the last update, and the results from which they were computed.
#[derive(Debug)]
struct LastRows {
    identity: Vec<Identity>,
    /// The latest time at which the rows were updated.
    now: Timestamp,
    found: Declarations,
    /// The declarations from which `found` was put together; their nodes are in `part_nodes`.
    parts: DeclaredParts,
    part_nodes: HashMap<DeclaredPart, Node>,
    claims: Arc<ClaimIndex>,
    /// The label groups of each cluster, by the index of the cluster in the fleet.
    groups: Vec<LabelGroups>,
    /// The apps and groups without a row, because their cluster has too many.
    left_out: ExcessApps,
    labelled: HashMap<(usize, ObjectKey), Node>,
    tools: Node,
    graph: Graph<Subject>,
    /// The rows in the order of the list, each with its declaration and node.
    rows: Vec<KeptRow>,
    /// The index of each row in `rows`, by the row's number; `None` for a removed row.
    places: Vec<Option<usize>>,
    relations: Relations,
    /// The numbers of the rows of label groups, by the name of the group.
    by_labels: HashMap<GroupName, u32>,
    freshness: Vec<ClusterFreshness>,
    /// True if a computation came near a cost limit, so that the order of judging matters and all rows are judged
    /// at each change.
    is_bounded: bool,
}

/// The freshness of a cluster, and its scopes that were observed earlier, each with the time.
type ClusterFreshness = (Freshness, Vec<(Scope, Timestamp)>);

/// The name of a label group: index of the cluster, namespace and app.
type GroupName = (usize, String, String);

/// The declaration from which a row was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Declaring {
    /// The declaration of a tool, by its index in [`Declarations::apps`].
    Tool(usize),
    Labels(GroupName),
}

impl Declaring {
    /// Returns the index of the cluster that declares the row; `None` if the declaration no longer exists.
    fn home(&self, found: &Declarations) -> Option<usize> {
        match self {
            Declaring::Tool(place) => found.get(*place).map(|app| app.home),
            Declaring::Labels((home, ..)) => Some(*home),
        }
    }
}

/// A row, and the declaration from which it was made.
#[derive(Debug)]
struct KeptRow {
    number: u32,
    node: Node,
    declaring: Declaring,
    /// The index of the cluster in which the row is shown.
    cluster: usize,
}

/// The changes of the list in an update: the rows to judge again and to remove, and the declarations to add.
#[derive(Debug, Default)]
struct Plan {
    again: BTreeSet<u32>,
    gone: HashSet<u32>,
    fresh: Vec<Declaring>,
}

impl AppRows {
    /// Makes an empty list; `labels` are the labels that name the apps of objects that no tool declares.
    pub fn new(labels: AppLabels) -> AppRows {
        let (log, list, changed) = (QuestionLog::default(), AppList::default(), RowLog::default());
        AppRows { labels, log, kept: None, list, changed, without: None }
    }

    /// Returns the apps as of the last update, equal to those that [`apps_by`](crate::apps_by) would compute.
    pub fn list(&self) -> &AppList {
        &self.list
    }

    /// Returns the first time at which a row may change without a change of an object; `None` if none will, and before
    /// the first update.
    pub fn next_moment(&self) -> Option<Timestamp> {
        self.kept.as_ref()?.graph.next()
    }

    /// Returns the rows that may differ since the last call. The first call, and one after an update without earlier
    /// results, sets only [`ChangedRows::is_all`]. A new time of observation alone does not make a live row differ.
    pub fn take_changed(&mut self) -> ChangedRows {
        let places = self.kept.as_ref().map(|kept| &kept.places);
        let place = |number| places?.get(usize::try_from(number).ok()?).copied().flatten();
        self.changed.take(&self.list.apps, place)
    }

    /// Disables a propagation, for a test.
    #[doc(hidden)]
    pub fn leave_out(&mut self, propagation: Propagation) {
        self.without = Some(propagation);
    }

    /// Updates the rows at the time `now`. `changes` has, in the order of `clusters`, the changes in each since the
    /// last update. The rules must be those of the last update.
    ///
    /// If anything may have changed in a cluster, this computes its rows and declarations again. It computes all rows
    /// without earlier results if that is so in every cluster, if `changes` has another number of entries, if other
    /// clusters were given before, if `now` is before the last update, or if a cost limit makes the order of judging
    /// matter.
    pub fn look(
        &mut self,
        clusters: &[&dyn Objects],
        changes: &[ChangeBatch],
        rules: &ActiveRules<'_>,
        now: Timestamp,
    ) -> RowWork {
        let log = std::mem::take(&mut self.log);
        let noting: Vec<Noting<'_>> =
            clusters.iter().enumerate().map(|(place, objects)| Noting::new(*objects, place, &log)).collect();
        let noted: Vec<&dyn Objects> = noting.iter().map(|it| it as &dyn Objects).collect();
        let fleet = Fleet::new(&noted);
        let look = RowUpdate { rows: self, log: &log, clusters: &noted, fleet: &fleet, rules, now };
        let looked = look.take(changes);
        self.log = log;
        looked
    }
}

/// One update of the rows in progress.
struct RowUpdate<'l, 'a> {
    rows: &'l mut AppRows,
    log: &'a QuestionLog,
    /// The clusters, in the order of the change batches.
    clusters: &'l [&'a dyn Objects],
    fleet: &'l Fleet<'a>,
    rules: &'l ActiveRules<'l>,
    now: Timestamp,
}

impl RowUpdate<'_, '_> {
    fn take(self, changes: &[ChangeBatch]) -> RowWork {
        let identity = renewed::identities(self.fleet, self.clusters);
        let kept = self.rows.kept.take().filter(|kept| {
            !kept.is_bounded
                && kept.identity.iter().map(Identity::place).eq(identity.iter().map(Identity::place))
                && kept.now <= self.now
                && changes.len() == self.clusters.len()
                && !changes.iter().all(|batch| batch.is_all)
        });
        let Some(mut kept) = kept else { return self.whole(identity) };
        let before = std::mem::replace(&mut kept.identity, identity);
        let is_renewed = |(place, batch): (usize, &ChangeBatch)| {
            let is_renewed = batch.is_all || before.get(place) != kept.identity.get(place);
            is_renewed.then(|| kept.identity.get(place)?.place).flatten()
        };
        let renewed: BTreeSet<usize> = changes.iter().enumerate().filter_map(is_renewed).collect();
        self.update(kept, changes, &renewed)
    }

    fn goes(&self, propagation: Propagation) -> bool {
        self.rows.without != Some(propagation)
    }

    /// Computes declarations, label groups and rows without using earlier results.
    fn whole(self, identity: Vec<Identity>) -> RowWork {
        let RowUpdate { log, fleet, rules, now, .. } = self;
        let mut parts = DeclaredParts::kept();
        let ((found, claims), asked) =
            log.record(|| Declarations::by_tools(fleet, &rules.options.trust, now, &mut parts));
        let mut graph = Graph::default();
        graph.forgets_shared = !self.goes(Propagation::Shared);
        let tools = graph.add(Subject::Tools, asked);
        let mut labelled = HashMap::new();
        let strong = Claims::new(found.claiming(), &claims);
        let homes = 0..fleet.members.len();
        let groups: Vec<LabelGroups> =
            homes.map(|home| self.groups(home, &strong, &mut graph, &mut labelled)).collect();
        let names = groups.iter().enumerate().flat_map(|(home, groups)| {
            groups.names().map(move |(namespace, name)| (home, namespace.to_owned(), name.to_owned()))
        });
        let by_tools = (0..found.apps.len()).map(Declaring::Tool);
        let left_out = ExcessApps::of(&found, &groups);
        let all = by_tools.chain(names.map(Declaring::Labels));
        let fresh = all.filter(|declaring| !is_left_out(&left_out, declaring)).collect();
        let mut kept = LastRows {
            identity,
            now,
            found,
            parts,
            part_nodes: HashMap::new(),
            claims,
            groups,
            left_out,
            labelled,
            tools,
            graph,
            rows: Vec::new(),
            places: Vec::new(),
            relations: Relations::default(),
            by_labels: HashMap::new(),
            freshness: self.freshness(),
            is_bounded: false,
        };
        let declared = note_parts(&mut kept);
        self.rows.list = AppList::default();
        self.rows.changed.note_all();
        let plan = Plan { fresh, ..Plan::default() };
        let looked = RowWork { declared, is_whole: true, ..RowWork::default() };
        self.judge(kept, plan, true, looked)
    }

    /// Judges the rows of `plan` and sorts the list; with `has_errors`, also collects the errors again. If a cost limit
    /// makes the order of judging matter, computes everything instead.
    fn judge(mut self, mut kept: LastRows, plan: Plan, has_errors: bool, mut looked: RowWork) -> RowWork {
        let judge = Judge::new(self.fleet, self.rules, self.now);
        let Plan { again, gone, fresh } = plan;
        let AppList { mut apps, errors: mut told, mut left_out } = std::mem::take(&mut self.rows.list);
        looked.judged = again.len() + fresh.len();
        let mut is_bounded = false;
        let mut is_in_order = gone.is_empty() && fresh.is_empty();
        let mut numbers: Vec<u32> = again.iter().copied().collect();
        for number in again {
            let place =
                usize::try_from(number).ok().and_then(|number| kept.places.get(number).copied().flatten());
            let Some((place, row)) = place.and_then(|place| Some((place, kept.rows.get_mut(place)?))) else {
                continue;
            };
            let Some((cluster, app, asked)) = self.judged(&judge, &kept.found, &kept.groups, &row.declaring)
            else {
                continue;
            };
            is_bounded |= app.is_unjudged();
            self.rows.changed.note(number);
            kept.graph.set(row.node, asked);
            let is_moved = std::mem::replace(&mut row.cluster, cluster) != cluster;
            if let Some(old) = apps.get_mut(place) {
                if old.app != app.app {
                    self.rows.changed.note_gone(&old.app);
                    is_in_order = false;
                }
                is_in_order &= !is_moved;
                *old = app;
            }
        }
        for declaring in fresh {
            let judged = self.judged(&judge, &kept.found, &kept.groups, &declaring);
            let Some((cluster, app, asked)) = judged else { continue };
            is_bounded |= app.is_unjudged();
            let number = u32::try_from(kept.places.len()).unwrap_or(u32::MAX);
            numbers.push(number);
            self.rows.changed.note(number);
            kept.places.push(None);
            if let Declaring::Labels(name) = &declaring {
                kept.by_labels.insert(name.clone(), number);
            }
            let node = kept.graph.add(Subject::Row(number), asked);
            kept.rows.push(KeptRow { number, node, declaring, cluster });
            apps.push(app);
        }
        if !is_in_order {
            arrange(&mut kept, &mut apps, &gone, &mut self.rows.changed);
        }
        if looked.is_whole || self.goes(Propagation::Relations) {
            let LastRows { relations, places, .. } = &mut kept;
            let place = |number| places.get(usize::try_from(number).ok()?).copied().flatten();
            let differing = relations.update(&mut apps, place, &numbers, &gone);
            differing.into_iter().for_each(|number| self.rows.changed.note(number));
        }
        let is_over = judge.is_over();
        if has_errors || is_over {
            told = errors(self.fleet, &kept.found, &kept.left_out.errors, &judge);
            left_out = kept.left_out.names(self.fleet);
        }
        self.rows.list = AppList { apps, errors: told, left_out };
        self.freshen(&mut kept);
        is_bounded |= is_over || !kept.graph.is_within_bounds();
        if is_bounded && !looked.is_whole {
            return self.whole(kept.identity);
        }
        kept.is_bounded = is_bounded;
        kept.now = self.now;
        kept.graph.finish();
        self.rows.kept = Some(kept);
        looked
    }

    /// Judges the app of a declaration. Returns the app with the index of the cluster that shows it, and the record of
    /// the lookups made for it; `None` if the declaration no longer exists.
    fn judged(
        &self,
        judge: &Judge<'_, '_>,
        found: &Declarations,
        groups: &[LabelGroups],
        declaring: &Declaring,
    ) -> Option<(usize, App, QuestionRecord)> {
        let declaration = match declaring {
            Declaring::Tool(place) => found.get(*place)?.clone(),
            Declaring::Labels((home, namespace, name)) => groups.get(*home)?.declaration(namespace, name)?,
        };
        let via = declaration.delivered_by.and_then(|place| found.get(place));
        let ((cluster, app), asked) = self.log.record(|| judge.row(declaration, via));
        Some((cluster, app, asked))
    }

    /// Writes the freshness of the clusters into the rows, without judging them again.
    fn freshen(&mut self, kept: &mut LastRows) {
        let freshness = self.freshness();
        if freshness == kept.freshness {
            return;
        }
        for (app, row) in self.rows.list.apps.iter_mut().zip(&kept.rows) {
            let home = row.declaring.home(&kept.found);
            let [target, home] = [row.cluster, home.unwrap_or(row.cluster)].map(|at| self.fleet.objects(at));
            let freshness = freshness_of(target, app.resources.iter().flat_map(Resource::grounds));
            let AppRef { delivery, namespace, .. } = &app.app;
            let of_home = freshness_of_home(home, *delivery, namespace, app.declaring.as_ref());
            let is_live = |one: Freshness, other: Freshness| one.is_live() && other.is_live();
            let freshness = of_objects(freshness, of_home, app.unread.as_ref());
            let halves = [(app.freshness, freshness), (app.home_freshness, of_home)];
            if halves.into_iter().any(|(old, new)| old != new && !is_live(old, new)) {
                self.rows.changed.note(row.number);
            }
            (app.freshness, app.home_freshness) = (freshness, of_home);
        }
        kept.freshness = freshness;
    }

    /// Computes the label groups in the cluster with the index `home` in the fleet. Adds the objects whose group
    /// depends on lookups to `graph`, and their nodes to `labelled`.
    fn groups(
        &self,
        home: usize,
        claims: &Claims<'_>,
        graph: &mut Graph<Subject>,
        labelled: &mut HashMap<(usize, ObjectKey), Node>,
    ) -> LabelGroups {
        let objects = self.fleet.objects(home);
        let mut groups = LabelGroups::new(self.fleet, home);
        let mut members = Vec::new();
        let keys = self.rows.labels.keys();
        for observed in objects.labelled_uncontrolled(&keys) {
            let Some((place, asked)) = self.place(&groups, objects, claims, &observed) else { continue };
            if !asked.questions.is_empty() {
                let node = graph.add(Subject::Labelled(home, observed.key.to_owned()), asked);
                labelled.insert((home, observed.key.to_owned()), node);
            }
            if let GroupSearch::In(app, named) = place {
                members.push((observed.key, app, named));
            }
        }
        groups.fill(objects, members);
        groups
    }

    /// Returns the label group of an object, with the record of the lookups made to find it; `None` if the object's
    /// labels name no app.
    fn place(
        &self,
        groups: &LabelGroups,
        objects: &dyn Objects,
        claims: &Claims<'_>,
        observed: &Observed<'_>,
    ) -> Option<(GroupSearch, QuestionRecord)> {
        let labels = &self.rows.labels;
        labels::named(labels, observed.key, &observed.object)?;
        let (place, mut asked) = self.log.record(|| groups.place(objects, labels, claims, observed));
        // The only lookup is that of the controller. Most objects of a cluster have one, so `regroup` finds those
        // that a controller leaves behind by its UID instead.
        if matches!(place, GroupSearch::Controlled) && asked.questions.len() == 1 {
            asked.questions = Vec::new();
        }
        Some((place, asked))
    }

    fn freshness(&self) -> Vec<ClusterFreshness> {
        self.clusters.iter().map(|objects| (objects.freshness(), objects.stale_scopes().to_vec())).collect()
    }

    /// Returns the results to compute again because of `changes`, or because the time has come at which they may
    /// change.
    fn dirty(&self, kept: &LastRows, changes: &[ChangeBatch]) -> Vec<Subject> {
        let (mut seen, mut dirty) = (HashSet::new(), Vec::new());
        let mut tell = |cluster: usize, question: Question<'_>| {
            if self.goes(question.propagation()) {
                kept.graph.askers(self.log.number(cluster, &question), &mut seen, &mut dirty);
            }
        };
        for (cluster, (batch, objects)) in changes.iter().zip(self.clusters).enumerate() {
            for (key, old) in batch.objects() {
                let new = objects.get(key.as_ref()).present();
                changed::questions(key, old.as_ref(), new.as_ref(), &mut |question| tell(cluster, question));
            }
            for kind in &batch.kinds {
                tell(cluster, Question::Lists(&kind.group, &kind.kind));
            }
            for key in &batch.sought {
                tell(cluster, Question::Object(key.as_ref()));
            }
            if batch.has_errors {
                tell(cluster, Question::Errors);
            }
            let is_live = |it: &Freshness| it.state == FreshnessState::Live;
            let after = objects.freshness();
            let is_same = kept.freshness.get(cluster).is_some_and(|(before, stale)| {
                (*before == after || is_live(before) && is_live(&after)) && stale == objects.stale_scopes()
            });
            if !is_same {
                tell(cluster, Question::Freshness);
            }
        }
        if self.goes(Propagation::Time) {
            kept.graph.due(self.now, &mut dirty);
        }
        dirty
    }

    /// Computes again only the results that `changes` or the time may have changed. `renewed` has the indexes in the
    /// fleet of the clusters in which anything may have changed.
    fn update(self, mut kept: LastRows, changes: &[ChangeBatch], renewed: &BTreeSet<usize>) -> RowWork {
        let mut looked = RowWork::default();
        let Renewed { rows, mut parts } = renewed::concerned(&kept, renewed);
        let mut plan = Plan { again: rows, ..Plan::default() };
        let mut objects: BTreeSet<(usize, ObjectKey)> = BTreeSet::new();
        let mut relist = !renewed.is_empty();
        for subject in self.dirty(&kept, changes) {
            match subject {
                Subject::Tools => relist = true,
                Subject::Declared(part) => parts.push(part),
                Subject::Labelled(home, key) => drop(objects.insert((home, key))),
                Subject::Row(number) => drop(plan.again.insert(number)),
            }
        }
        if !self.goes(Propagation::Declared) {
            parts.clear();
        }
        note_declared(&kept, &parts, &mut self.rows.changed);
        let is_put_together = !self.redeclare(&mut kept, &parts, relist, &mut plan);
        let mut has_claims = false;
        if is_put_together {
            let RowUpdate { log, fleet, rules, now, .. } = self;
            let ((found, claims), asked) =
                log.record(|| Declarations::by_tools(fleet, &rules.options.trust, now, &mut kept.parts));
            kept.graph.set(kept.tools, asked);
            let old = std::mem::replace(&mut kept.found, found);
            let before = std::mem::replace(&mut kept.claims, claims);
            if self.goes(Propagation::Claims) && !Arc::ptr_eq(&before, &kept.claims) {
                match moved_claims(old.claiming(), kept.found.claiming()) {
                    Some(moved) => objects.extend(moved),
                    None => has_claims = true,
                }
            }
            reconcile(&mut kept, &old, &mut plan);
        }
        looked.declared = note_parts(&mut kept);
        let is_whole = |home: usize| has_claims || renewed.contains(&home);
        for name in self.regroup(&mut kept, changes, objects, &is_whole) {
            let (home, namespace, app) = &name;
            let is_there = kept.groups.get(*home).is_some_and(|it| it.has(namespace, app));
            match kept.by_labels.get(&name) {
                Some(number) if is_there => drop(plan.again.insert(*number)),
                Some(number) => drop(plan.gone.insert(*number)),
                None if is_there => plan.fresh.push(Declaring::Labels(name)),
                None => {}
            }
        }
        let is_cut_otherwise = leave_out(&mut kept, &mut plan);
        plan.again.retain(|number| !plan.gone.contains(number));
        let has_errors = is_put_together || is_cut_otherwise || changes.iter().any(|batch| batch.has_errors);
        self.judge(kept, plan, has_errors, looked)
    }

    /// Reads the declarations `dirty` again, each on its own; adds their rows to `plan`.
    ///
    /// Returns false if `relist` (the list of declaring objects changed), or if one of them may change more than its
    /// own app: then all have to be put together again, and those of `dirty` that were not read are dropped.
    fn redeclare(&self, kept: &mut LastRows, dirty: &[DeclaredPart], relist: bool, plan: &mut Plan) -> bool {
        let RowUpdate { fleet, rules, now, .. } = *self;
        let LastRows { found, parts, rows, .. } = kept;
        let mut places = HashSet::new();
        let mut is_local = !relist;
        for part in dirty {
            let place = match part {
                DeclaredPart::Object(home, key) if is_local => {
                    found.redeclare(fleet, &rules.options.trust, now, parts, (*home, key))
                }
                _ => {
                    parts.forget(part);
                    None
                }
            };
            is_local &= place.is_some();
            places.extend(place);
        }
        if !places.is_empty() {
            let is_changed =
                |row: &&KeptRow| matches!(row.declaring, Declaring::Tool(place) if places.contains(&place));
            plan.again.extend(rows.iter().filter(is_changed).map(|row| row.number));
        }
        is_local
    }

    /// Computes the label groups of objects again where they may have changed: of those in `dirty`, of those whose
    /// labels, other metadata or controllers `changes` concern, and of all in a cluster where a StatefulSet names its
    /// claims otherwise, or for whose index in the fleet `is_whole` returns true. Returns the names of the groups that
    /// differ now.
    fn regroup(
        &self,
        kept: &mut LastRows,
        changes: &[ChangeBatch],
        dirty: BTreeSet<(usize, ObjectKey)>,
        is_whole: &dyn Fn(usize) -> bool,
    ) -> BTreeSet<GroupName> {
        let LastRows { identity, found, claims, groups, labelled, graph, .. } = kept;
        let claims = Claims::new(found.claiming(), claims);
        let mut touched = BTreeSet::new();
        for ((identity, batch), objects) in identity.iter().zip(changes).zip(self.clusters) {
            let Some(home) = identity.place else { continue };
            let Some(own) = groups.get_mut(home) else { continue };
            let new = |key: &ObjectKey| objects.get(key.as_ref()).present();
            let templates = |set: Option<Observed<'_>>| set.map(|set| labels::claim_templates(&set));
            let is_set = |key: &ObjectKey| key.group == "apps" && key.kind == "StatefulSet";
            let mut sets = batch.objects().filter(|(key, _)| is_set(key));
            let is_named_otherwise = self.goes(Propagation::ClaimTemplates)
                && sets.any(|(key, old)| {
                    templates(old).unwrap_or_default() != templates(new(key)).unwrap_or_default()
                });
            if is_whole(home) || is_named_otherwise {
                labelled.retain(|(place, _), node| {
                    if *place == home {
                        graph.remove(*node);
                    }
                    *place != home
                });
                let before = std::mem::replace(own, self.groups(home, &claims, graph, labelled));
                let differing = own.differing(&before).into_iter();
                touched.extend(differing.map(|(namespace, name)| (home, namespace, name)));
                continue;
            }
            let mut looked_at: BTreeMap<&ObjectKey, Option<String>> = BTreeMap::new();
            let app = |key: &ObjectKey, it: Option<&Observed<'_>>| {
                let app = it.and_then(|it| labels::named(&self.rows.labels, key.as_ref(), &it.object));
                app.map(std::borrow::Cow::into_owned)
            };
            if self.goes(Propagation::Labels) {
                for (key, old) in batch.objects() {
                    let new = new(key);
                    let before = app(key, old.as_ref());
                    let is_labelled = before.is_some() || app(key, new.as_ref()).is_some();
                    if is_labelled && changed::is_marked_otherwise(old.as_ref(), new.as_ref()) {
                        looked_at.insert(key, before);
                    }
                }
            }
            let orphaned: Vec<ObjectKey> = match self.goes(Propagation::Controllers) {
                true => {
                    batch.objects().flat_map(|(key, old)| changed::left_behind(*objects, key, old)).collect()
                }
                false => Vec::new(),
            };
            let dirty = dirty.iter().filter(|(place, _)| *place == home).map(|(_, key)| key);
            for key in dirty.chain(&orphaned) {
                looked_at.entry(key).or_insert_with(|| app(key, new(key).as_ref()));
            }
            for (key, before) in looked_at {
                let new = new(key);
                let found = new.as_ref().and_then(|it| self.place(own, *objects, &claims, it));
                let (place, asked) = found.unwrap_or((GroupSearch::None, QuestionRecord::default()));
                let node = labelled.remove(&(home, key.clone()));
                match (node, asked.questions.is_empty()) {
                    (Some(node), true) => graph.remove(node),
                    (Some(node), false) => {
                        graph.set(node, asked);
                        labelled.insert((home, key.clone()), node);
                    }
                    (None, true) => {}
                    (None, false) => {
                        let node = graph.add(Subject::Labelled(home, key.clone()), asked);
                        labelled.insert((home, key.clone()), node);
                    }
                }
                let was = before.and_then(|app| Some((own.remove(key, &app)?, app)));
                let is = match place {
                    GroupSearch::In(app, named) => {
                        own.insert(objects.share(key.as_ref()), app.clone(), named.clone());
                        Some((named, app))
                    }
                    GroupSearch::None | GroupSearch::Controlled | GroupSearch::Unknown(_) => None,
                };
                if was != is {
                    let apps = [was, is].into_iter().flatten().map(|(_, app)| app);
                    touched.extend(apps.map(|app| (home, key.namespace.clone(), app)));
                }
            }
        }
        touched
    }
}

/// Sorts rows and apps, and removes the rows whose numbers are in `gone`, whose names it records in `changed`.
fn arrange(kept: &mut LastRows, apps: &mut Vec<App>, gone: &HashSet<u32>, changed: &mut RowLog) {
    let mut all: Vec<(App, KeptRow)> = apps.drain(..).zip(kept.rows.drain(..)).collect();
    all.retain(|(app, row)| {
        let is_gone = gone.contains(&row.number);
        if is_gone {
            changed.note_gone(&app.app);
            kept.graph.remove(row.node);
            if let Declaring::Labels(name) = &row.declaring {
                kept.by_labels.remove(name);
            }
        }
        !is_gone
    });
    all.sort_by_cached_key(|(app, row)| {
        let place = match &row.declaring {
            Declaring::Tool(place) => *place,
            Declaring::Labels(_) => usize::MAX,
        };
        (order(row.cluster, &app.app), place)
    });
    kept.places.iter_mut().for_each(|place| *place = None);
    for (place, (app, row)) in all.into_iter().enumerate() {
        if let Some(own) = usize::try_from(row.number).ok().and_then(|number| kept.places.get_mut(number)) {
            *own = Some(place);
        }
        apps.push(app);
        kept.rows.push(row);
    }
}
