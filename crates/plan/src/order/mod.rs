//! The order of a sync: which objects are applied, run as hooks or deleted in which step.
//!
//! [`order`] sorts the objects of a set into [`SyncStep`]s by the rules of a [`Dialect`], the order that users of one delivery
//! tool know. A step begins when the objects of all steps before it are ready, and the pruned ones gone. Rules that only a
//! tool implies (such as a default wave) give way to what a manifest states; what manifests state and what contradicts
//! itself is an error that names each line.
//!
//! | dialect | steps, in this order |
//! |---|---|
//! | `argo` | phases, waves; in a wave first what is pruned, then kinds in Argo CD's order. A Namespace or CRD is pulled before the first object that needs it |
//! | `flux` | CRDs, Namespaces and ClusterRoles; classes; all others; what is pruned. In a step the kinds in Flux' order |
//! | `kpt` | levels of `depends-on` and of fields that take their values from others, Namespaces and CRDs before what needs them; then what is pruned, by the same levels in reverse |
//! | `kapp` | levels of change rules, those that manifests state and kapp's own; what is pruned takes part. All of a level goes together |

mod by_changes;
mod graph;
mod kapp;
mod kinds;
mod levels;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

use serde_json::{Map, Value};
use taffrail_object::{GroupKind, ObjectKey, words};

use crate::manifests::{
    CHANGE_RULE, DeclaredObject, FileLine, HookPhase, Setting, StatedChanges, SyncOptions, defined_kind,
};
use kapp::{Changes, MAX_PAIRS};

/// The delivery tool whose implied order holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Dialect {
    /// Argo CD, with the hooks of Helm that it reads.
    #[default]
    Argo,
    /// Flux' kustomize-controller.
    Flux,
    /// kpt, with cli-utils.
    Kpt,
    /// kapp, of Carvel.
    Kapp,
}

words! { Dialect { Argo = "argo", Flux = "flux", Kpt = "kpt", Kapp = "kapp" } }

impl Dialect {
    /// Returns the dialect whose tool reads an annotation; `None` for keys of no tool.
    pub fn of_annotation(key: &str) -> Option<Dialect> {
        Some(match key.split_once('/')?.0 {
            "argocd.argoproj.io" | "helm.sh" => Dialect::Argo,
            "kustomize.toolkit.fluxcd.io" => Dialect::Flux,
            "config.kubernetes.io" | "client.lifecycle.config.k8s.io" | "cli-utils.sigs.k8s.io" => {
                Dialect::Kpt
            }
            "kapp.k14s.io" => Dialect::Kapp,
            _ => return None,
        })
    }
}

/// An object that is to be deleted, since it is not declared any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrunedObject {
    /// Its key.
    pub key: ObjectKey,
    /// The wave that the live object states.
    pub wave: i64,
    /// True if it is deleted after all others were applied.
    pub is_last: bool,
    /// The objects on which the live object says that it depends.
    pub depends_on: Vec<ObjectKey>,
    /// The kind that it defines, if it is a CustomResourceDefinition.
    pub defines: Option<GroupKind>,
    /// kapp's statements on the live object.
    pub changes: StatedChanges,
}

impl PrunedObject {
    /// Returns the live object with this key as one to delete, with what its annotations say about the order.
    pub fn of_live(key: ObjectKey, live: &Value) -> PrunedObject {
        let nothing = Map::new();
        let metadata = live.get("metadata").and_then(Value::as_object).unwrap_or(&nothing);
        let SyncOptions { wave, prune_last, depends_on, substitutions, changes, .. } =
            SyncOptions::of_live(metadata);
        let sources = substitutions.into_iter().flat_map(|it| it.value).flat_map(|it| {
            // A live object does not tell the scope of its source.
            let near = Some(ObjectKey { namespace: key.namespace.clone(), ..it.source.clone() });
            [near.filter(|_| it.source.namespace.is_empty()), Some(it.source)]
        });
        PrunedObject {
            wave: wave.map_or(0, |it| it.value),
            is_last: prune_last.is_some_and(|it| it.value),
            depends_on: depends_on.into_iter().flat_map(|it| it.value).chain(sources.flatten()).collect(),
            defines: defined_kind(&key, live),
            changes,
            key,
        }
    }
}

/// The objects of a sync, and the rules by which they are ordered.
#[derive(Clone, Copy)]
pub struct OrderInput<'a> {
    /// The declared objects.
    pub objects: &'a [DeclaredObject],
    /// The objects to delete.
    pub pruned: &'a [PrunedObject],
    /// The dialect whose implied order holds.
    pub dialect: Dialect,
    /// The dialects whose annotations hold besides its own.
    pub annotations: &'a [Dialect],
    /// True if the set is removed: of the declared objects only the hooks before and after the deletion run.
    pub destroys: bool,
    /// Returns true if an object that is not declared exists in the cluster.
    pub exists: &'a dyn Fn(&ObjectKey) -> bool,
}

/// A step's work on one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    /// Deletes the object with this index in [`OrderInput::pruned`].
    Prune(usize),
    /// Runs the object with this index in [`OrderInput::objects`] as a hook.
    Hook(usize),
    /// Applies the object with this index in [`OrderInput::objects`].
    Apply(usize),
}

/// The tasks that are done between two waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncStep {
    /// The phase; always [`HookPhase::Sync`] but with Argo CD's dialect.
    pub phase: HookPhase,
    /// The wave; always 0 but with Argo CD's dialect.
    pub wave: i64,
    /// The tasks in batches: those of one batch are sent together, and the next batch when all were answered.
    pub batches: Vec<Vec<Task>>,
    /// The objects outside of the set that must be ready before this step begins.
    pub needs: Vec<ObjectKey>,
}

/// An annotation that holds in another dialect only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadAnnotation {
    /// The index of the object.
    pub object: usize,
    /// The key of the annotation.
    pub key: &'static str,
    /// The line of that key, from 1.
    pub line: u64,
}

/// The order of a sync.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncOrder {
    /// The steps.
    pub steps: Vec<SyncStep>,
    /// The steps after a failure.
    pub after_failure: Vec<SyncStep>,
    /// The annotations about order that do not hold.
    pub unread: Vec<UnreadAnnotation>,
    /// For each declared object the indices of those that it comes after: that it states to depend on, its Namespace, and the
    /// definition of its kind. What kapp's own rules order besides is no dependency.
    pub after: Vec<Vec<usize>>,
    /// For each pruned object the indices of the pruned ones that must be gone before it is deleted: those that depend on it,
    /// the objects in a Namespace, and those of a defined kind. Empty with the dialects of Argo CD and Flux, in which none
    /// waits for another.
    pub pruned_after: Vec<Vec<usize>>,
    /// The pairs of an applied and a pruned object of which one comes after the other by a rule of kapp.
    pub across: Vec<TaskPair>,
}

/// Two tasks of which one comes after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskPair {
    /// The task that comes later.
    pub later: Task,
    /// The task that comes first.
    pub first: Task,
}

/// A statement of a manifest that one object comes after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedOrder {
    /// The object that comes later, whose manifest states it.
    pub object: ObjectKey,
    /// The object that comes first.
    pub after: ObjectKey,
    /// The annotation.
    pub key: &'static str,
    /// The place of the annotation.
    pub place: FileLine,
}

/// Formats `deploy/web.yaml:12: apps/Deployment/shop/web comes after /ConfigMap/shop/settings`.
impl fmt::Display for StatedOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} comes after {}", self.place, self.object, self.after)
    }
}

/// A reason why a set has no order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// An object comes after one that nobody declares and that does not exist.
    #[error("{0}, which is neither in the manifests nor in the cluster")]
    UnknownObject(Box<StatedOrder>),
    /// An object comes after one that the same sync deletes.
    #[error("{0}, which is not declared any more and will be deleted")]
    PrunedObject(Box<StatedOrder>),
    /// An object comes after a hook that no sync runs before it.
    #[error("{0}, which runs only after a failure or with a deletion")]
    LateHook(Box<StatedOrder>),
    /// Objects come after each other in a circle.
    #[error("objects depend on each other in a circle: {}", texts(.0))]
    Circle(Vec<StatedOrder>),
    /// Rules about groups order too many pairs of objects.
    #[error("the rules about groups of changes order more than {MAX_PAIRS} pairs of objects")]
    TooManyPairs,
}

fn texts(edges: &[StatedOrder]) -> String {
    edges.iter().map(StatedOrder::to_string).collect::<Vec<_>>().join("; ")
}

/// Sorts the objects of a sync into steps.
///
/// # Errors
/// All objects that come after unknown ones, all circles, and too many pairs that rules order.
pub fn order(input: &OrderInput<'_>) -> Result<SyncOrder, Vec<OrderError>> {
    let mut set = Set::of(input)?;
    set.find_levels()?;
    Ok(match input.dialect {
        Dialect::Argo => set.by_waves(),
        Dialect::Flux => set.by_stages(),
        Dialect::Kpt => set.by_levels(),
        Dialect::Kapp => set.by_changes(),
    })
}

/// A task with its place in the order.
#[derive(Debug, Clone)]
struct Placed {
    task: Task,
    phase: HookPhase,
    wave: i64,
    /// The number of steps within the wave before this one.
    level: usize,
}

/// The objects of a sync, and who must come before whom.
struct Set<'a> {
    input: &'a OrderInput<'a>,
    by_key: HashMap<&'a ObjectKey, usize>,
    /// For each object the others that it states to come after. In kapp's dialect the pruned ones stand behind the declared
    /// ones, and have rules too.
    stated: Vec<Vec<(usize, StatedOrder)>>,
    /// For each object the ones outside of the set that it states to come after.
    outside: Vec<Vec<ObjectKey>>,
    unread: Vec<UnreadAnnotation>,
    /// The kinds that the set itself defines, with the object that does.
    definitions: HashMap<GroupKind, usize>,
    /// kapp's groups, if its rules hold.
    changes: Option<Changes<'a>>,
    /// For each object the ones that it needs: its namespace, and the definition of its kind.
    implied: Vec<Vec<usize>>,
    /// The level of each object.
    levels: Vec<usize>,
}

impl<'a> Set<'a> {
    fn of(input: &'a OrderInput<'a>) -> Result<Set<'a>, Vec<OrderError>> {
        let by_key = input.objects.iter().enumerate().map(|(at, object)| (&object.key, at)).collect();
        let mut count = input.objects.len();
        if input.dialect == Dialect::Kapp {
            count += input.pruned.len();
        }
        let mut set = Set {
            input,
            by_key,
            stated: vec![Vec::new(); count],
            outside: vec![Vec::new(); count],
            unread: Vec::new(),
            definitions: input
                .objects
                .iter()
                .enumerate()
                .filter_map(|(at, object)| Some((object.defines()?, at)))
                .collect(),
            changes: None,
            implied: Vec::new(),
            levels: Vec::new(),
        };
        set.implied = set.find_implied(count);
        let pruned: HashSet<&ObjectKey> = input.pruned.iter().map(|it| &it.key).collect();
        let mut errors = Vec::new();
        for (at, object) in input.objects.iter().enumerate() {
            set.note_unread(at, object);
            let depends_on = object.options.depends_on.iter();
            let depends_on =
                depends_on.flat_map(|it| it.value.iter().map(move |key| (key, it.stated_by, it.line)));
            let sources = object.options.substitutions.iter();
            let sources =
                sources.flat_map(|it| it.value.iter().map(move |one| (&one.source, it.stated_by, it.line)));
            let mut known = HashSet::new();
            for (after, key, line) in depends_on.chain(sources) {
                if !set.holds(key) || !known.insert(after) {
                    continue;
                }
                let place = FileLine { line, ..object.place.clone() };
                let stated = StatedOrder { object: object.key.clone(), after: after.clone(), key, place };
                let is_pruned = || pruned.contains(after);
                match set.by_key.get(after) {
                    Some(&first) if set.is_late(first) => errors.push(OrderError::LateHook(Box::new(stated))),
                    Some(&first) => set.stated[at].push((first, stated)),
                    None if is_pruned() => errors.push(OrderError::PrunedObject(Box::new(stated))),
                    None if (input.exists)(after) => set.outside[at].push(after.clone()),
                    None => errors.push(OrderError::UnknownObject(Box::new(stated))),
                }
            }
        }
        if set.holds(CHANGE_RULE) {
            errors.extend(set.add_change_rules().err());
        }
        if errors.is_empty() { Ok(set) } else { Err(errors) }
    }

    /// Returns true if an annotation of this key holds.
    fn holds(&self, key: &str) -> bool {
        Dialect::of_annotation(key)
            .is_some_and(|of| of == self.input.dialect || self.input.annotations.contains(&of))
    }

    /// Returns true if no sync that succeeds runs an object.
    fn is_late(&self, at: usize) -> bool {
        let is_of_sync = |phase| matches!(phase, HookPhase::PreSync | HookPhase::Sync | HookPhase::PostSync);
        !self.tasks(at).iter().any(|(phase, _)| is_of_sync(*phase))
    }

    fn note_unread(&mut self, at: usize, object: &DeclaredObject) {
        fn place<T>(setting: Option<&Setting<T>>) -> Option<(&'static str, u64)> {
            setting.map(|it| (it.stated_by, it.line))
        }
        let options = &object.options;
        let stated = [
            place(options.hook.as_ref()),
            place(options.wave.as_ref()),
            place(options.depends_on.as_ref()),
            place(options.substitutions.as_ref()),
        ];
        let rules = options.changes.rules.iter().map(|it| (it.stated_by, it.line));
        for (key, line) in stated.into_iter().flatten().chain(rules) {
            if !self.holds(key) {
                self.unread.push(UnreadAnnotation { object: at, key, line });
            }
        }
    }

    /// Finds the level of each object: 0 for those that come after none, else one more than the highest that it comes
    /// after. Implied edges that would close a circle are left out.
    fn find_levels(&mut self) -> Result<(), Vec<OrderError>> {
        let stated = self.stated_edges();
        let circles = levels::circles(&stated);
        if !circles.is_empty() {
            let told = circles.iter().map(|circle| OrderError::Circle(self.circle(circle)));
            return Err(told.collect());
        }
        self.levels = levels::of(&stated, &self.implied);
        Ok(())
    }

    /// Returns for each object the indices of those that it states to come after.
    fn stated_edges(&self) -> Vec<Vec<usize>> {
        self.stated.iter().map(|edges| edges.iter().map(|(first, _)| *first).collect()).collect()
    }

    /// Returns the statements between the objects of a circle.
    fn circle(&self, members: &[usize]) -> Vec<StatedOrder> {
        let within: BTreeSet<usize> = members.iter().copied().collect();
        let edges = members.iter().flat_map(|at| &self.stated[*at]);
        edges.filter(|(first, _)| within.contains(first)).map(|(_, stated)| stated.clone()).collect()
    }

    fn find_implied(&self, count: usize) -> Vec<Vec<usize>> {
        let objects = self.input.objects;
        let namespaces = objects.iter().enumerate().filter(|(_, object)| is_namespace(&object.key));
        let namespaces: HashMap<&str, usize> = namespaces.map(|(at, it)| (&*it.key.name, at)).collect();
        let needs = |object: &DeclaredObject| {
            let namespace =
                namespaces.get(&*object.key.namespace).filter(|_| !object.key.namespace.is_empty());
            namespace.into_iter().chain(self.definitions.get(&object.key.group_kind())).copied().collect()
        };
        let mut implied: Vec<Vec<usize>> = objects.iter().map(needs).collect();
        implied.resize(count, Vec::new());
        implied
    }

    /// Returns the phases in which an object is applied or runs as a hook, with the task of each.
    fn tasks(&self, at: usize) -> Vec<(HookPhase, Task)> {
        let hook = self.input.objects[at].options.hook.as_ref().filter(|hook| self.holds(hook.stated_by));
        match hook {
            Some(hook) => {
                let mut phases = hook.value.clone();
                phases.sort_unstable();
                phases.dedup();
                phases.into_iter().map(|phase| (phase, Task::Hook(at))).collect()
            }
            None => vec![(HookPhase::Sync, Task::Apply(at))],
        }
    }

    /// Returns the wave that an object states, if that holds.
    fn stated_wave(&self, at: usize) -> Option<i64> {
        let wave = self.input.objects[at].options.wave.as_ref()?;
        self.holds(wave.stated_by).then_some(wave.value)
    }

    fn key_of(&self, task: Task) -> &ObjectKey {
        match task {
            Task::Prune(at) => &self.input.pruned[at].key,
            Task::Hook(at) | Task::Apply(at) => &self.input.objects[at].key,
        }
    }

    /// Sorts by phase, wave, kind and name, as Argo CD does.
    fn by_waves(self) -> SyncOrder {
        let mut placed = self.placed(|_| 0);
        placed.sort_by(|a, b| self.argo_order(a).cmp(&self.argo_order(b)));
        self.pull(
            &mut placed,
            |object| is_namespace(&object.key).then(|| object.key.name.clone()),
            |object| Some(object.key.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        );
        self.pull(&mut placed, DeclaredObject::defines, |object| Some(object.key.group_kind()));
        if self.stated.iter().any(|edges| !edges.is_empty()) {
            self.push_back(&mut placed, 0);
        }
        let waves = mirrored(self.input.pruned.iter().map(|pruned| pruned.wave));
        let applied = placed.iter().filter(|it| it.phase == HookPhase::Sync).map(|it| it.wave);
        // As in Argo CD, whose last wave is never below 0.
        let last = applied.chain(waves.values().copied()).fold(0, i64::max);
        placed.extend(self.input.pruned.iter().enumerate().map(|(at, pruned)| {
            let wave = match pruned.is_last {
                true => last.saturating_add(1),
                false => waves.get(&pruned.wave).copied().unwrap_or(pruned.wave),
            };
            Placed { task: Task::Prune(at), phase: HookPhase::Sync, wave, level: 0 }
        }));
        self.finish(placed, kinds::argo)
    }

    fn argo_order(&self, placed: &Placed) -> (HookPhase, i64, i32, &str) {
        let key = self.key_of(placed.task);
        (placed.phase, placed.wave, kinds::argo(key), &key.name)
    }

    /// Moves each object that others need, such as a Namespace, before the first of them, into its phase and wave.
    fn pull<K: std::hash::Hash + Eq>(
        &self,
        placed: &mut Vec<Placed>,
        provides: impl Fn(&DeclaredObject) -> Option<K>,
        needs: impl Fn(&DeclaredObject) -> Option<K>,
    ) {
        let object = |placed: &Placed| match placed.task {
            Task::Prune(_) => None,
            Task::Hook(at) | Task::Apply(at) => self.input.objects.get(at),
        };
        let mut first: HashMap<K, usize> = HashMap::new();
        for (at, it) in placed.iter().enumerate() {
            if let Some(need) = object(it).filter(|it| provides(it).is_none()).and_then(&needs) {
                first.entry(need).or_insert(at);
            }
        }
        // Each is put before the one that needs it; those that need nothing stay where they are.
        let mut before: BTreeMap<usize, Vec<Placed>> = BTreeMap::new();
        let mut moved = vec![false; placed.len()];
        for (at, it) in placed.iter().enumerate() {
            let Some(&needed) = object(it).and_then(&provides).as_ref().and_then(|key| first.get(key)) else {
                continue;
            };
            if needed < at {
                let Placed { phase, wave, .. } = placed[needed];
                before.entry(needed).or_default().push(Placed { phase, wave, ..it.clone() });
                moved[at] = true;
            }
        }
        let rest = std::mem::take(placed);
        for (at, it) in rest.into_iter().enumerate() {
            placed.extend(before.remove(&at).into_iter().flatten());
            if !moved[at] {
                placed.push(it);
            }
        }
    }

    /// Moves each object behind those that it comes after: to their phase and wave, and in it to a later step. What an object
    /// needs by its kind or namespace alone is `implied_steps` before it: with 0 it may be applied in the same step, since its
    /// kind comes first there.
    fn push_back(&self, placed: &mut [Placed], implied_steps: usize) {
        let mut order: Vec<usize> = (0..placed.len()).collect();
        let level_of = |it: &Placed| match it.task {
            Task::Prune(_) => 0,
            Task::Hook(at) | Task::Apply(at) => self.levels.get(at).copied().unwrap_or(0),
        };
        order.sort_by_key(|at| level_of(&placed[*at]));
        let mut of_object: HashMap<usize, (HookPhase, i64, usize)> = HashMap::new();
        for at in order {
            let (Task::Hook(object) | Task::Apply(object)) = placed[at].task else { continue };
            let stated = self.stated[object].iter().map(|(first, _)| (first, 1));
            let implied = self.implied[object].iter().map(|first| (first, implied_steps));
            let mut place = (placed[at].phase, placed[at].wave, placed[at].level);
            for (first, steps) in stated.chain(implied) {
                // Those of a higher level are not placed yet: their edge would close a circle.
                if let Some((phase, wave, level)) = of_object.get(first) {
                    place = place.max((*phase, *wave, level + steps));
                }
            }
            (placed[at].phase, placed[at].wave, placed[at].level) = place;
            // What comes after a hook of several phases comes after its first run.
            let first = of_object.entry(object).or_insert(place);
            *first = place.min(*first);
        }
    }

    /// Returns the tasks of all objects, each in the phase and wave that it states, at the level that `level` returns.
    fn placed(&self, level: impl Fn(&ObjectKey) -> usize) -> Vec<Placed> {
        let of_object = |(at, object): (usize, &DeclaredObject)| {
            let (wave, level) = (self.stated_wave(at).unwrap_or(0), level(&object.key));
            self.tasks(at).into_iter().map(move |(phase, task)| Placed { task, phase, wave, level })
        };
        self.input.objects.iter().enumerate().flat_map(of_object).collect()
    }

    /// Sorts into definitions, classes and the others, as Flux does.
    fn by_stages(self) -> SyncOrder {
        let mut placed = self.placed(kinds::flux_stage);
        self.push_back(&mut placed, 0);
        self.finish_with_prunes_last(placed, kinds::flux)
    }

    /// Sorts into levels of what objects come after, as kpt does.
    fn by_levels(self) -> SyncOrder {
        let mut placed = self.placed(|_| 0);
        self.push_back(&mut placed, 1);
        self.finish_with_prunes_last(placed, kinds::kpt)
    }

    /// Adds what is pruned after all that is applied, by levels in reverse.
    fn finish_with_prunes_last(self, mut placed: Vec<Placed>, rank: fn(&ObjectKey) -> i32) -> SyncOrder {
        let pruned = self.input.pruned;
        let end = placed.iter().filter(|it| it.phase == HookPhase::Sync).map(|it| (it.wave, it.level)).max();
        let (wave, first) = end.map_or((0, 0), |(wave, level)| (wave, level + 1));
        let (depths, pruned_after) = match self.input.dialect {
            Dialect::Kpt => pruned_levels(pruned),
            _ => (vec![0; pruned.len()], Vec::new()),
        };
        let deepest = depths.iter().copied().max().unwrap_or(0);
        placed.extend(depths.into_iter().enumerate().map(|(at, depth)| {
            let level = first + (deepest - depth);
            Placed { task: Task::Prune(at), phase: HookPhase::Sync, wave, level }
        }));
        let mut result = self.finish(placed, rank);
        result.pruned_after = pruned_after;
        result
    }

    /// Makes steps and batches of placed tasks.
    fn finish(self, placed: Vec<Placed>, rank: fn(&ObjectKey) -> i32) -> SyncOrder {
        self.finish_with(placed, |set, tasks| set.batches(tasks, rank))
    }

    fn finish_with(
        self,
        mut placed: Vec<Placed>,
        batches: impl Fn(&Set<'_>, Vec<Placed>) -> Vec<Vec<Task>>,
    ) -> SyncOrder {
        let destroys = self.input.destroys;
        let is_of_deletion = |phase| matches!(phase, HookPhase::PreDelete | HookPhase::PostDelete);
        placed.retain(|it| matches!(it.task, Task::Prune(_)) || is_of_deletion(it.phase) == destroys);
        // Before a deletion come its hooks, whose phases are after those of a sync.
        let turn = |phase| (destroys && phase != HookPhase::PreDelete, phase == HookPhase::PostDelete, phase);
        let mut places: BTreeMap<_, Vec<Placed>> = BTreeMap::new();
        for it in placed {
            places.entry((turn(it.phase), it.wave, it.level)).or_default().push(it);
        }
        let mut result = SyncOrder::default();
        for (((_, _, phase), wave, _), tasks) in places {
            let step = SyncStep { phase, wave, needs: self.needs(&tasks), batches: batches(&self, tasks) };
            match phase {
                HookPhase::SyncFail => result.after_failure.push(step),
                _ => result.steps.push(step),
            }
        }
        let declared = 0..self.input.objects.len();
        let after = |at: usize| {
            let stated =
                self.stated[at].iter().map(|(first, _)| *first).filter(|first| declared.contains(first));
            // What is implied and closes a circle with what is stated does not hold.
            let implied =
                self.implied[at].iter().copied().filter(|first| self.levels[*first] < self.levels[at]);
            let all: BTreeSet<usize> = stated.chain(implied).collect();
            all.into_iter().collect()
        };
        result.after = declared.clone().map(after).collect();
        result.unread = self.unread;
        result
    }

    fn needs(&self, tasks: &[Placed]) -> Vec<ObjectKey> {
        let of_task = |it: &Placed| match it.task {
            Task::Prune(_) => &[],
            Task::Hook(at) | Task::Apply(at) => &*self.outside[at],
        };
        tasks.iter().flat_map(of_task).cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the tasks of a step in batches: first what is pruned, in reverse order, then each kind. A kind that the set
    /// defines comes after its definition, also where a built-in kind of its name would come before.
    fn batches(&self, tasks: Vec<Placed>, rank: fn(&ObjectKey) -> i32) -> Vec<Vec<Task>> {
        let mut batches: BTreeMap<(bool, i32, bool, GroupKind), Vec<Task>> = BTreeMap::new();
        for Placed { task, .. } in tasks {
            let key = self.key_of(task);
            let kind = key.group_kind();
            let place = match (task, self.definitions.get(&kind)) {
                (Task::Prune(_), _) => (false, rank(key).saturating_neg(), false),
                (_, None) => (true, rank(key), false),
                (_, Some(&at)) => (true, rank(key).max(rank(&self.input.objects[at].key)), true),
            };
            let (is_applied, rank, is_defined) = place;
            batches.entry((is_applied, rank, is_defined, kind)).or_default().push(task);
        }
        let mut batches: Vec<Vec<Task>> = batches.into_values().collect();
        batches.iter_mut().for_each(|batch| self.sort(batch));
        batches
    }

    /// Sorts by namespace and name.
    fn sort(&self, batch: &mut [Task]) {
        batch.sort_by(|a, b| {
            let name = |task: &Task| {
                let key = self.key_of(*task);
                (&*key.namespace, &*key.name)
            };
            name(a).cmp(&name(b)).then(a.cmp(b))
        });
    }
}

/// Returns the level of each pruned object among the pruned ones, those that others depend on lowest, and for each the ones
/// that must be gone before it.
fn pruned_levels(pruned: &[PrunedObject]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let by_key: HashMap<&ObjectKey, usize> =
        pruned.iter().enumerate().map(|(at, it)| (&it.key, at)).collect();
    let stated =
        |it: &PrunedObject| it.depends_on.iter().filter_map(|key| by_key.get(key)).copied().collect();
    let implied = pruned_needs(pruned);
    // Whoever prunes cannot mend what live objects state: a circle has no order, and all of it goes at once.
    let stated = levels::without_circles(pruned.iter().map(stated).collect());
    let levels = levels::of(&stated, &implied);
    let edges = stated.iter().zip(&implied).enumerate();
    let edges =
        edges.flat_map(|(at, (stated, implied))| stated.iter().chain(implied).map(move |on| (at, *on)));
    let after = reversed(edges.filter(|(at, on)| levels[*on] < levels[*at]), pruned.len());
    (levels, after)
}

/// Returns for each pruned object the pruned ones that it needs: its Namespace, and the definition of its kind.
fn pruned_needs(pruned: &[PrunedObject]) -> Vec<Vec<usize>> {
    let namespaces = pruned.iter().enumerate().filter(|(_, it)| is_namespace(&it.key));
    let namespaces: HashMap<&str, usize> = namespaces.map(|(at, it)| (&*it.key.name, at)).collect();
    let definitions = pruned.iter().enumerate().filter_map(|(at, it)| Some((it.defines.clone()?, at)));
    let definitions: HashMap<GroupKind, usize> = definitions.collect();
    let needs = |it: &PrunedObject| {
        let namespace = namespaces.get(&*it.key.namespace).filter(|_| !it.key.namespace.is_empty());
        namespace.into_iter().chain(definitions.get(&it.key.group_kind())).copied().collect()
    };
    pruned.iter().map(needs).collect()
}

/// Returns for each of `count` objects those that have an edge to it, each once.
fn reversed(edges: impl Iterator<Item = (usize, usize)>, count: usize) -> Vec<Vec<usize>> {
    let mut reversed = vec![Vec::new(); count];
    for (from, to) in edges {
        reversed[to].push(from);
    }
    for froms in &mut reversed {
        froms.sort_unstable();
        froms.dedup();
    }
    reversed
}

/// Returns for each wave the one that takes its place when objects are deleted: the lowest changes places with the highest.
fn mirrored(waves: impl Iterator<Item = i64>) -> BTreeMap<i64, i64> {
    let waves: Vec<i64> = waves.collect::<BTreeSet<_>>().into_iter().collect();
    waves.iter().copied().zip(waves.iter().rev().copied()).collect()
}

fn is_namespace(key: &ObjectKey) -> bool {
    key.group.is_empty() && key.kind == "Namespace"
}
