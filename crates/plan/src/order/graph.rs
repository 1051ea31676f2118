//! The graph of a sync's changes: stated edges, and wishes that give way where they would close a circle.
//!
//! A wish is about a whole group, so that its edges go through a node that stands for the group: as many edges as objects, not
//! as many as pairs. Only within a circle each pair is looked at.

use std::collections::HashSet;

use super::kapp::Wish;
use super::levels;

/// The number of edges to look at for the wishes within circles; what is left then gives way unseen.
const MAX_WORK: usize = 5_000_000;

/// A graph without circles.
pub(super) struct Graph {
    /// For each node those that come before it. The first nodes are the changes, the others stand for groups.
    pub(super) after: Vec<Vec<usize>>,
    /// The number of changes.
    pub(super) changes: usize,
}

/// The nodes of a group: its changes come before those who wish to be after it, and after those who wish to be before it.
#[derive(Clone, Copy)]
struct Nodes {
    /// The node between the group and the changes that come after it; then that of the members outside of a circle.
    end: [usize; 2],
    /// The node between the changes that come before the group and the group; then that of those outside of a circle.
    start: [usize; 2],
}

/// Adds wishes to stated edges without circles; the first wishes count most.
pub(super) fn with_wishes(stated: Vec<Vec<usize>>, wishes: &[Wish], groups: &[Vec<usize>]) -> Graph {
    let changes = stated.len();
    let nodes = |group: usize| {
        let first = changes + 4 * group;
        Nodes { end: [first, first + 1], start: [first + 2, first + 3] }
    };
    let count = changes + 4 * groups.len();
    let mut all = stated.clone();
    all.resize(count, Vec::new());
    for (group, members) in groups.iter().enumerate() {
        all[nodes(group).end[0]].clone_from(members);
        for &member in members {
            all[member].push(nodes(group).start[0]);
        }
    }
    for wish in wishes {
        let Nodes { end, start } = nodes(wish.group);
        match wish.is_before {
            true => all[start[0]].push(wish.subject),
            false => all[wish.subject].push(end[0]),
        }
    }
    // An edge between two components is in no circle, whichever others are left out.
    let component = levels::components(&all);
    let mut after = stated;
    after.resize(count, Vec::new());
    for (group, members) in groups.iter().enumerate() {
        let Nodes { end, start } = nodes(group);
        let is_outside = |member: &&usize| component[**member] != component[end[0]];
        after[end[1]] = members.iter().filter(is_outside).copied().collect();
        after[end[0]].clone_from(members);
        for &member in members {
            let is_within = component[member] == component[start[0]];
            after[member].push(start[usize::from(is_within)]);
        }
    }
    let mut within = Vec::new();
    for wish in wishes {
        let Nodes { end, start } = nodes(wish.group);
        let node = if wish.is_before { start } else { end };
        let is_within = component[wish.subject] == component[node[0]];
        match wish.is_before {
            true => {
                after[start[0]].push(wish.subject);
                if !is_within {
                    after[start[1]].push(wish.subject);
                }
            }
            false => after[wish.subject].push(end[usize::from(is_within)]),
        }
        if is_within {
            within.push(*wish);
        }
    }
    grant(&mut after, &component, &within, groups, changes);
    Graph { after, changes }
}

/// Adds the edges of wishes within components, one wish after another, but those that close a circle.
fn grant(
    after: &mut [Vec<usize>],
    component: &[usize],
    wishes: &[Wish],
    groups: &[Vec<usize>],
    changes: usize,
) {
    if wishes.is_empty() {
        return;
    }
    // The edges within components, in both directions.
    let (mut firsts, mut laters) = (vec![Vec::new(); changes], vec![Vec::new(); changes]);
    let mut known = HashSet::new();
    for at in 0..changes {
        let within =
            after[at].iter().filter(|first| **first < changes && component[**first] == component[at]);
        for &first in within {
            if known.insert((at, first)) {
                firsts[at].push(first);
                laters[first].push(at);
            }
        }
    }
    let mut work = MAX_WORK;
    let mut seen = vec![usize::MAX; changes];
    for (number, wish) in wishes.iter().enumerate() {
        let Wish { subject, is_before, group } = *wish;
        // All that an edge of this wish must not lead to: adding one of them changes nothing about the others.
        let next = if is_before { &firsts } else { &laters };
        let mut open = vec![subject];
        seen[subject] = number;
        while let Some(at) = open.pop() {
            work = work.saturating_sub(1 + next[at].len());
            for &other in &next[at] {
                if std::mem::replace(&mut seen[other], number) != number {
                    open.push(other);
                }
            }
        }
        work = work.saturating_sub(groups[group].len());
        if work == 0 {
            return;
        }
        for &member in &groups[group] {
            let is_free = component[member] == component[subject] && seen[member] != number;
            let (later, first) = if is_before { (member, subject) } else { (subject, member) };
            if is_free && known.insert((later, first)) {
                firsts[later].push(first);
                laters[first].push(later);
                after[later].push(first);
            }
        }
    }
}

impl Graph {
    /// Returns all nodes, each after those that come before it.
    pub(super) fn sorted(&self) -> Vec<usize> {
        let (mut later, mut missing) = (vec![Vec::new(); self.after.len()], vec![0_usize; self.after.len()]);
        for (at, firsts) in self.after.iter().enumerate() {
            for &first in firsts {
                later[first].push(at);
                missing[at] += 1;
            }
        }
        let mut ready: Vec<usize> = (0..self.after.len()).filter(|at| missing[*at] == 0).collect();
        let mut sorted = Vec::with_capacity(self.after.len());
        while let Some(first) = ready.pop() {
            sorted.push(first);
            for &at in &later[first] {
                missing[at] -= 1;
                if missing[at] == 0 {
                    ready.push(at);
                }
            }
        }
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if a change comes after another one.
    fn comes_after(graph: &Graph, later: usize, first: usize) -> bool {
        let mut open = graph.after[later].clone();
        let mut seen = HashSet::new();
        while let Some(at) = open.pop() {
            if at == first {
                return true;
            }
            if seen.insert(at) {
                open.extend(&graph.after[at]);
            }
        }
        false
    }

    #[test]
    fn random_wishes_close_no_circle_and_as_many_hold_as_kapp_grants() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..500 {
            let count = random.usize(1..9);
            let mut stated: Vec<Vec<usize>> = vec![Vec::new(); count];
            for _ in 0..random.usize(..count) {
                stated[random.usize(..count)].push(random.usize(..count));
            }
            let stated = levels::without_circles(stated);
            let groups: Vec<Vec<usize>> =
                (0..3).map(|_| (0..count).filter(|_| random.bool()).collect()).collect();
            let wish = |random: &mut fastrand::Rng| Wish {
                subject: random.usize(..count),
                is_before: random.bool(),
                group: random.usize(..groups.len()),
            };
            let wishes: Vec<Wish> = (0..random.usize(..6)).map(|_| wish(&mut random)).collect();
            let graph = with_wishes(stated.clone(), &wishes, &groups);
            assert_eq!(
                graph.sorted().len(),
                graph.after.len(),
                "no circle: {stated:?} {wishes:?} {groups:?}"
            );
            // kapp's own way: each pair of each wish in turn, unless it closes a circle.
            let mut plain = Graph { after: stated.clone(), changes: count };
            for Wish { subject, is_before, group } in &wishes {
                for member in &groups[*group] {
                    let (later, first) = if *is_before { (*member, *subject) } else { (*subject, *member) };
                    if later != first && !comes_after(&plain, first, later) {
                        plain.after[later].push(first);
                    }
                }
            }
            for later in 0..count {
                for first in 0..count {
                    let (ours, kapps) =
                        (comes_after(&graph, later, first), comes_after(&plain, later, first));
                    assert_eq!(ours, kapps, "{later} after {first}: {stated:?} {wishes:?} {groups:?}");
                }
            }
        }
    }
}
