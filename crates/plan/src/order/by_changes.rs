//! kapp's order: levels of the graph of changes.
//!
//! Taffrail differs from kapp in this:
//!
//! * A rule that a manifest states may contradict that a Namespace or a definition comes before what needs it; kapp refuses it.
//! * A rule that only a live object states gives way, since nobody can mend it in the manifests; kapp refuses a circle of it.
//! * An object that is as declared takes part, so that the order does not depend on what changed; kapp leaves it out.

use std::collections::{BTreeSet, HashMap};

use super::graph::{Graph, with_wishes};
use super::kapp::{Changes, MAX_PAIRS};
use super::{OrderError, Placed, Set, StatedOrder, SyncOrder, Task, TaskPair, pruned_needs, reversed};
use crate::manifests::{FileLine, HookPhase};

/// The phase, wave and level of a change.
type Place = (HookPhase, i64, usize);

/// Notes a change, with its place, that comes after another one; keeps the first of them.
fn note(first_behind: &mut HashMap<usize, (Place, usize)>, at: usize, behind: (Place, usize)) {
    let known = first_behind.entry(at).or_insert(behind);
    *known = behind.min(*known);
}

impl Set<'_> {
    /// Returns true if rules are about the change of an object: they are not about what nobody upserts.
    fn takes_part(&self, at: usize) -> bool {
        match self.input.objects.get(at) {
            Some(object) => object.options.changes.is_left_alone.is_none() && !self.is_late(at),
            None => true,
        }
    }

    /// Adds the edges of the rules that manifests state.
    pub(super) fn add_change_rules(&mut self) -> Result<(), OrderError> {
        let changes = Changes::of(self.input, |at| self.takes_part(at));
        let mut pairs = 0;
        let objects: Vec<usize> = (0..self.input.objects.len()).filter(|at| self.takes_part(*at)).collect();
        for at in objects {
            let object = &self.input.objects[at];
            for (number, is_before, group) in changes.stated_rules(at) {
                let members = &changes.groups[group];
                pairs += members.len();
                if pairs > MAX_PAIRS {
                    return Err(OrderError::TooManyPairs);
                }
                let rule = &object.options.changes.rules[number];
                for &member in members {
                    let (later, first) = if is_before { (member, at) } else { (at, member) };
                    // Only kapp orders what is pruned among what is applied.
                    if later.max(first) >= self.stated.len() {
                        continue;
                    }
                    let key = |at| changes.get(at).map(|it| it.key.clone());
                    let (Some(object_key), Some(after)) = (key(later), key(first)) else { continue };
                    let place = FileLine { line: rule.line, ..object.place.clone() };
                    let stated = StatedOrder { object: object_key, after, key: rule.stated_by, place };
                    self.stated[later].push((first, stated));
                }
            }
        }
        self.changes = Some(changes);
        Ok(())
    }

    /// Sorts into levels of the graph of changes, as kapp does.
    pub(super) fn by_changes(mut self) -> SyncOrder {
        let Some(changes) = self.changes.take() else { return SyncOrder::default() };
        let declared = self.input.objects.len();
        let graph = self.graph(&changes);
        let (placed, places) = self.places(&graph);
        self.need_foreign(&graph, &places);
        let task = |at: usize| match at.checked_sub(declared) {
            Some(pruned) => Some(Task::Prune(pruned)),
            None => self.tasks(at).first().map(|(_, task)| *task),
        };
        let is_in_order =
            |later: usize, first: usize| places[first].is_some() && places[first] < places[later];

        // What rules of manifests and of live objects state, as pairs.
        let mut pairs: BTreeSet<(usize, usize)> = BTreeSet::new();
        for (later, edges) in self.stated.iter().enumerate() {
            pairs.extend(edges.iter().map(|(first, _)| (later, *first)));
        }
        // Nobody can mend what live objects state, so that too many pairs are no error: the last ones do not count.
        let of_live = (declared..changes.len()).flat_map(|at| {
            let rules = changes.stated_rules(at);
            let groups = &changes.groups;
            rules.flat_map(move |(_, is_before, group)| {
                let members = groups[group].iter();
                members.map(move |member| if is_before { (*member, at) } else { (at, *member) })
            })
        });
        pairs.extend(of_live.take(MAX_PAIRS));
        pairs.retain(|(later, first)| is_in_order(*later, *first));
        let is_across = |(later, first): &&(usize, usize)| (*later < declared) != (*first < declared);
        let pair =
            |(later, first): &(usize, usize)| Some(TaskPair { later: task(*later)?, first: task(*first)? });
        let across = pairs.iter().filter(is_across).filter_map(pair).collect();
        let both = pairs.iter().filter(|(later, first)| *later.min(first) >= declared);
        let both = both.map(|(later, first)| (first - declared, later - declared));
        let needs = pruned_needs(self.input.pruned);
        let needs =
            needs.iter().enumerate().flat_map(|(at, needs)| needs.iter().map(move |need| (at, *need)));
        let needs = needs.filter(|(at, need)| is_in_order(need + declared, at + declared));
        let pruned_after = reversed(both.chain(needs), self.input.pruned.len());

        let mut result = self.finish_with(placed, |set, tasks| {
            let mut batch: Vec<Task> = tasks.into_iter().map(|it| it.task).collect();
            set.sort(&mut batch);
            vec![batch]
        });
        (result.across, result.pruned_after) = (across, pruned_after);
        result
    }

    /// Returns the graph of all changes: of what is stated, and of what is implied and does not contradict it.
    fn graph(&mut self, changes: &Changes<'_>) -> Graph {
        for (at, implied) in self.implied.iter_mut().enumerate() {
            let skips = changes.get(at).is_some_and(|it| it.stated.skips_default_rules.is_some());
            let is_left_alone =
                |at: usize| changes.get(at).is_some_and(|it| it.stated.is_left_alone.is_some());
            if skips || is_left_alone(at) {
                implied.clear();
            }
            implied.retain(|first| !is_left_alone(*first));
        }
        let mut edges = self.stated_edges();
        let levels = super::levels::of(&edges, &self.implied);
        for (at, implied) in self.implied.iter().enumerate() {
            edges[at].extend(implied.iter().copied().filter(|first| levels[*first] < levels[at]));
        }
        self.levels = levels;
        with_wishes(edges, &changes.wishes(|at| self.takes_part(at)), &changes.groups)
    }

    /// Returns the tasks of all changes with their places, and the place of each node of the graph, which is that of its first
    /// task. A change stands one level behind the highest that comes before it, or where it states to stand if that is later.
    fn places(&self, graph: &Graph) -> (Vec<Placed>, Vec<Option<Place>>) {
        let declared = self.input.objects.len();
        let mut places: Vec<Option<Place>> = vec![None; graph.after.len()];
        let mut placed = Vec::new();
        for at in graph.sorted() {
            let behind = |first: &usize| {
                let (phase, wave, level) = places[*first]?;
                Some((phase, wave, level + usize::from(*first < graph.changes)))
            };
            let bound: Option<Place> = graph.after[at].iter().filter_map(behind).max();
            let tasks = match at {
                _ if at >= graph.changes => {
                    places[at] = bound;
                    continue;
                }
                _ if at >= declared => vec![(HookPhase::Sync, Task::Prune(at - declared))],
                _ => self.tasks(at),
            };
            let wave = if at < declared { self.stated_wave(at).unwrap_or(0) } else { 0 };
            for (phase, task) in tasks {
                let place = bound.map_or((phase, wave, 0), |bound| bound.max((phase, wave, 0)));
                let (phase, wave, level) = place;
                placed.push(Placed { task, phase, wave, level });
                places[at] = Some(places[at].map_or(place, |first| first.min(place)));
            }
        }
        (placed, places)
    }

    /// Lets the first step with a change that comes after an object which somebody else writes wait for that object.
    fn need_foreign(&mut self, graph: &Graph, places: &[Option<Place>]) {
        let objects = self.input.objects;
        let is_foreign =
            |at: usize| objects.get(at).is_some_and(|it| it.options.changes.is_foreign.is_some());
        // For each object and group the first change that comes after it.
        let mut first_behind: HashMap<usize, (Place, usize)> = HashMap::new();
        for (at, place) in places.iter().enumerate().take(objects.len()) {
            let Some(place) = place else { continue };
            for &first in graph.after[at].iter().filter(|it| **it >= graph.changes || is_foreign(**it)) {
                note(&mut first_behind, first, (*place, at));
            }
        }
        for (group, firsts) in graph.after.iter().enumerate().skip(graph.changes) {
            let Some(behind) = first_behind.get(&group).copied() else { continue };
            for &first in firsts.iter().filter(|first| is_foreign(**first)) {
                note(&mut first_behind, first, behind);
            }
        }
        for (foreign, (_, at)) in first_behind.into_iter().filter(|(at, _)| is_foreign(*at)) {
            self.outside[at].push(objects[foreign].key.clone());
        }
    }
}
