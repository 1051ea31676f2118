//! A graph of computed results and of the lookups made to compute them.
//!
//! If a lookup may find something else, the graph names the results that have to be computed again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use jiff::Timestamp;
use taffrail_status::assess::ExcessSteps;

use crate::questions::QuestionRecord;

/// The number of a computed result in the graph.
pub(super) type Node = u32;

/// A hasher for integer keys that are already hashes: it only repeats them in the upper half.
#[derive(Debug, Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = u64::from(number) << 32 | u64::from(number);
    }
}

/// A set of nodes, usually one. The rare large one is behind a pointer to save memory.
#[derive(Debug)]
enum Nodes {
    One(Node),
    #[expect(clippy::box_collection, reason = "the set itself is six times as large as a pointer")]
    Many(Box<HashSet<Node>>),
}

impl Nodes {
    fn insert(&mut self, node: Node) {
        match self {
            Nodes::One(one) if *one == node => {}
            Nodes::One(one) => *self = Nodes::Many(Box::new(HashSet::from([*one, node]))),
            Nodes::Many(all) => drop(all.insert(node)),
        }
    }

    /// Removes a node from the set; returns true if no other is left, and the caller has to drop the set.
    fn remove(&mut self, node: Node) -> bool {
        match self {
            Nodes::One(one) => *one == node,
            Nodes::Many(all) => {
                all.remove(&node);
                all.is_empty()
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = Node> {
        let (one, many) = match self {
            Nodes::One(one) => (Some(*one), None),
            Nodes::Many(all) => (None, Some(&**all)),
        };
        one.into_iter().chain(many.into_iter().flatten().copied())
    }
}

/// The identity of a result in the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject<S> {
    /// A result with the name that the user of the graph gave it.
    Own(S),
    /// A cached value that several results used.
    Shared,
}

/// A result, or a cached value that results used, with the lookups on which it depends.
#[derive(Debug)]
struct ResultNode<S> {
    subject: Subject<S>,
    questions: Vec<u32>,
    /// The nodes of cached values that this result used.
    below: Vec<Node>,
    /// The nodes of results that used this cached value; `None` if no result did.
    above: Option<Nodes>,
    next: Option<Timestamp>,
    excess: ExcessSteps,
}

/// The dependency graph: the lookups that each result depends on, and the results that depend on each lookup.
#[derive(Debug)]
pub(super) struct Graph<S> {
    nodes: Vec<Option<ResultNode<S>>>,
    free: Vec<Node>,
    /// Numbers of nodes that this update removed. They are not reused before its end, because references to them
    /// may remain.
    given_up: Vec<Node>,
    /// For each lookup, the result that depends on it, or one of several.
    askers: HashMap<u32, Node, BuildHasherDefault<AsIs>>,
    /// The other results that depend on a lookup, for the few lookups that several results depend on.
    other_askers: HashMap<u32, HashSet<Node>, BuildHasherDefault<AsIs>>,
    /// The times at which results may change without a change of an object, each with the node of its result.
    moments: BTreeSet<(Timestamp, Node)>,
    /// The nodes of the cached values of this update, by the address of their record.
    shared: HashMap<usize, (Arc<QuestionRecord>, Node)>,
    excess: ExcessSteps,
    /// True in a test that shows the errors without tracking of cached values.
    pub(super) forgets_shared: bool,
}

impl<S> Default for Graph<S> {
    fn default() -> Graph<S> {
        Graph {
            nodes: Vec::new(),
            free: Vec::new(),
            given_up: Vec::new(),
            askers: HashMap::default(),
            other_askers: HashMap::default(),
            moments: BTreeSet::new(),
            shared: HashMap::new(),
            excess: ExcessSteps::default(),
            forgets_shared: false,
        }
    }
}

impl<S: Clone> Graph<S> {
    fn get(&self, node: Node) -> Option<&ResultNode<S>> {
        self.nodes.get(usize::try_from(node).ok()?)?.as_ref()
    }

    fn get_mut(&mut self, node: Node) -> Option<&mut ResultNode<S>> {
        self.nodes.get_mut(usize::try_from(node).ok()?)?.as_mut()
    }

    /// Adds a result named `subject` with the lookups that its computation made; returns its node.
    pub(super) fn add(&mut self, subject: S, asked: QuestionRecord) -> Node {
        self.insert(Subject::Own(subject), asked)
    }

    /// Replaces the lookups, the time of change and the cost of a result by those of its new computation.
    pub(super) fn set(&mut self, node: Node, asked: QuestionRecord) {
        let QuestionRecord { questions, remembered, next, excess } = asked;
        let (below, next) = self.share(remembered, next);
        let Some(found) = self.get_mut(node) else { return };
        let old_below = std::mem::replace(&mut found.below, below.clone());
        let old_next = std::mem::replace(&mut found.next, next);
        let old_excess = std::mem::replace(&mut found.excess, excess.clone());
        let is_same = found.questions == questions;
        if !is_same {
            let old = std::mem::replace(&mut found.questions, questions);
            self.forget_questions(node, &old);
            self.note_questions(node);
        }
        for below in below {
            self.rest(node, below);
        }
        let kept: HashSet<Node> = self.get(node).into_iter().flat_map(|it| it.below.clone()).collect();
        for below in old_below.into_iter().filter(|below| !kept.contains(below)) {
            self.release(node, below);
        }
        if old_next != next {
            self.moments.extend(next.map(|next| (next, node)));
            if let Some(old) = old_next {
                self.moments.remove(&(old, node));
            }
        }
        self.excess.subtract(&old_excess);
        self.excess.add(&excess);
    }

    /// Removes a result from the graph, and the cached values that no other result uses.
    pub(super) fn remove(&mut self, node: Node) {
        let place = usize::try_from(node).ok().and_then(|at| self.nodes.get_mut(at));
        let Some(found) = place.and_then(Option::take) else { return };
        self.forget_questions(node, &found.questions);
        for below in found.below {
            self.release(node, below);
        }
        if let Some(next) = found.next {
            self.moments.remove(&(next, node));
        }
        self.excess.subtract(&found.excess);
        self.given_up.push(node);
    }

    /// Ends an update: cached values of the next update get new nodes, and the numbers of removed nodes may be reused.
    pub(super) fn finish(&mut self) {
        self.shared = HashMap::new();
        self.free.append(&mut self.given_up);
    }

    /// Returns the first time at which a result may change though no object does; `None` if none will.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.moments.first().map(|(next, _)| *next)
    }

    /// Returns true if all computations together stay within their cost limits, so that their order does not matter.
    pub(super) fn is_within_bounds(&self) -> bool {
        self.excess.is_within_bounds()
    }

    /// Appends to `found` the results whose time of change, without a change of an object, is `now` or earlier.
    pub(super) fn due(&self, now: Timestamp, found: &mut Vec<S>) {
        let mut seen = HashSet::new();
        for (_, node) in self.moments.iter().take_while(|(next, _)| *next <= now) {
            self.climb(*node, &mut seen, found);
        }
    }

    /// Appends to `found` the results that depend on the lookup with the number `question`, directly or by a cached
    /// value. Leaves out the nodes in `seen`, and adds the visited ones to it.
    pub(super) fn askers(&self, question: u32, seen: &mut HashSet<Node>, found: &mut Vec<S>) {
        let others = self.other_askers.get(&question).into_iter().flatten();
        for node in self.askers.get(&question).into_iter().chain(others) {
            self.climb(*node, seen, found);
        }
    }

    fn climb(&self, node: Node, seen: &mut HashSet<Node>, found: &mut Vec<S>) {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            if !seen.insert(node) {
                continue;
            }
            let Some(own) = self.get(node) else { continue };
            if let Subject::Own(subject) = &own.subject {
                found.push(subject.clone());
            }
            if !self.forgets_shared {
                open.extend(own.above.iter().flat_map(Nodes::iter));
            }
        }
    }

    fn insert(&mut self, subject: Subject<S>, asked: QuestionRecord) -> Node {
        let QuestionRecord { questions, remembered, next, excess } = asked;
        let (below, next) = self.share(remembered, next);
        self.excess.add(&excess);
        let found = ResultNode { subject, questions, below: below.clone(), above: None, next, excess };
        let node = match self.free.pop() {
            Some(node) => node,
            None => {
                self.nodes.push(None);
                Node::try_from(self.nodes.len() - 1).unwrap_or(Node::MAX)
            }
        };
        if let Some(place) = usize::try_from(node).ok().and_then(|at| self.nodes.get_mut(at)) {
            *place = Some(found);
        }
        self.note_questions(node);
        for below in below {
            self.rest(node, below);
        }
        self.moments.extend(next.map(|next| (next, node)));
        node
    }

    /// Returns the nodes of the cached values `all`, adding those that are missing. Also returns the earliest of `next`
    /// and the times at which these values may change; `None` if there is no such time.
    fn share(
        &mut self,
        all: Vec<Arc<QuestionRecord>>,
        next: Option<Timestamp>,
    ) -> (Vec<Node>, Option<Timestamp>) {
        let mut nodes = Vec::with_capacity(all.len());
        let mut first = next;
        for asked in all {
            let place = Arc::as_ptr(&asked).addr();
            let known = self.shared.get(&place).map(|(_, node)| *node);
            // A shared result that nothing depends on any more was removed.
            let node = known.filter(|node| self.get(*node).is_some()).unwrap_or_else(|| {
                let QuestionRecord { questions, remembered, next, excess } = &*asked;
                let (questions, remembered) = (questions.clone(), remembered.clone());
                let copy = QuestionRecord { questions, remembered, next: *next, excess: excess.clone() };
                self.insert(Subject::Shared, copy)
            });
            self.shared.insert(place, (asked, node));
            let own = self.get(node).and_then(|it| it.next);
            first = [first, own].into_iter().flatten().min();
            nodes.push(node);
        }
        nodes.sort_unstable();
        nodes.dedup();
        (nodes, first)
    }

    fn note_questions(&mut self, node: Node) {
        let Some(found) =
            self.nodes.get(usize::try_from(node).unwrap_or(usize::MAX)).and_then(Option::as_ref)
        else {
            return;
        };
        for question in &found.questions {
            if *self.askers.entry(*question).or_insert(node) != node {
                self.other_askers.entry(*question).or_default().insert(node);
            }
        }
    }

    fn forget_questions(&mut self, node: Node, questions: &[u32]) {
        for question in questions {
            let mut others = self.other_askers.remove(question).unwrap_or_default();
            if !others.remove(&node) && self.askers.get(question) == Some(&node) {
                let next = others.iter().next().copied();
                match next.and_then(|next| others.take(&next)) {
                    Some(next) => self.askers.insert(*question, next),
                    None => self.askers.remove(question),
                };
            }
            if !others.is_empty() {
                self.other_askers.insert(*question, others);
            }
        }
    }

    fn rest(&mut self, node: Node, below: Node) {
        let Some(found) = self.get_mut(below) else { return };
        match &mut found.above {
            Some(above) => above.insert(node),
            None => found.above = Some(Nodes::One(node)),
        }
    }

    fn release(&mut self, node: Node, below: Node) {
        let Some(found) = self.get_mut(below) else { return };
        if found.above.as_mut().is_none_or(|above| above.remove(node)) {
            found.above = None;
            self.remove(below);
        }
    }
}
