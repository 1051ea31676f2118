//! Levels of objects that come after each other: how many others must come first, one after another.
//!
//! Edges are lists by object: `after[a]` has each `b` that comes before `a`.

/// Returns the groups of objects that come after each other in a circle, each sorted; an object that comes after itself is a
/// group of its own.
pub(super) fn circles(after: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let component = components(after);
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); component.iter().max().map_or(0, |last| last + 1)];
    for (at, of) in component.iter().enumerate() {
        members[*of].push(at);
    }
    let is_circle =
        |members: &Vec<usize>| members.len() > 1 || members.iter().any(|at| after[*at].contains(at));
    let mut circles: Vec<Vec<usize>> = members.into_iter().filter(is_circle).collect();
    circles.sort_unstable();
    circles
}

/// Removes all edges within circles.
pub(super) fn without_circles(mut after: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let component = components(&after);
    for (at, edges) in after.iter_mut().enumerate() {
        edges.retain(|first| component[*first] != component[at]);
    }
    after
}

/// Returns the level of each object by `stated` edges, which have no circle, and by those `implied` ones that close none with
/// them.
pub(super) fn of(stated: &[Vec<usize>], implied: &[Vec<usize>]) -> Vec<usize> {
    let both: Vec<Vec<usize>> =
        stated.iter().zip(implied).map(|(stated, implied)| [&stated[..], implied].concat()).collect();
    let component = components(&both);
    let (mut later, mut missing) = (vec![Vec::new(); both.len()], vec![0_usize; both.len()]);
    for (at, edges) in both.iter().enumerate() {
        for (number, &first) in edges.iter().enumerate() {
            // Within a circle only what is stated counts.
            if number < stated[at].len() || component[first] != component[at] {
                later[first].push(at);
                missing[at] += 1;
            }
        }
    }
    let mut levels = vec![0; both.len()];
    let mut ready: Vec<usize> = (0..both.len()).filter(|at| missing[*at] == 0).collect();
    while let Some(first) = ready.pop() {
        for &at in &later[first] {
            levels[at] = levels[at].max(levels[first] + 1);
            missing[at] -= 1;
            if missing[at] == 0 {
                ready.push(at);
            }
        }
    }
    levels
}

/// Returns the number of the strongly connected component of each object, by Tarjan's algorithm without recursion: sets of
/// objects may be deep.
pub(super) fn components(after: &[Vec<usize>]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let count = after.len();
    let (mut index, mut low, mut component) = (vec![NONE; count], vec![0; count], vec![NONE; count]);
    let (mut open, mut next, mut found) = (Vec::new(), 0, 0);
    for root in 0..count {
        if index[root] != NONE {
            continue;
        }
        // Objects that are being visited, each with the number of its next edge.
        let mut path = vec![(root, 0)];
        while let Some((at, edge)) = path.pop() {
            if edge == 0 {
                (index[at], low[at]) = (next, next);
                next += 1;
                open.push(at);
            }
            let unseen = after[at].iter().skip(edge).position(|first| index[*first] == NONE);
            if let Some(skipped) = unseen {
                path.push((at, edge + skipped + 1));
                path.push((after[at][edge + skipped], 0));
                continue;
            }
            // All that this object comes after was visited.
            for &first in &after[at] {
                if component[first] == NONE {
                    low[at] = low[at].min(low[first]);
                }
            }
            if low[at] == index[at] {
                while let Some(member) = open.pop() {
                    component[member] = found;
                    if member == at {
                        break;
                    }
                }
                found += 1;
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_count_what_comes_first() {
        let stated = vec![vec![], vec![0], vec![1, 0], vec![]];
        assert_eq!(of(&stated, &vec![Vec::new(); 4]), [0, 1, 2, 0]);
        assert_eq!(of(&stated, &[vec![3], vec![], vec![], vec![]]), [1, 2, 3, 0]);
        // An implied edge gives way where it would close a circle.
        assert_eq!(of(&stated, &[vec![2], vec![], vec![], vec![2]]), [0, 1, 2, 3]);
    }

    #[test]
    fn circles_are_found() {
        let stated = vec![vec![1], vec![2], vec![0], vec![0], vec![4], vec![]];
        assert_eq!(circles(&stated), [vec![0, 1, 2], vec![4]]);
        assert_eq!(circles(&[vec![], vec![0, 0]]), Vec::<Vec<usize>>::new());
        assert_eq!(of(&without_circles(stated), &vec![Vec::new(); 6]), [0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let count = 100_000;
        let chain: Vec<Vec<usize>> =
            (0..count).map(|at| if at + 1 < count { vec![at + 1] } else { Vec::new() }).collect();
        assert_eq!(of(&chain, &vec![Vec::new(); count])[0], count - 1);
        assert!(circles(&chain).is_empty());
    }

    #[test]
    fn random_edges_have_levels_that_rise() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..500 {
            let count = random.usize(1..12);
            let mut edges = || -> Vec<Vec<usize>> {
                (0..count).map(|_| (0..random.usize(..3)).map(|_| random.usize(..count)).collect()).collect()
            };
            let (stated, implied) = (without_circles(edges()), edges());
            assert!(circles(&stated).is_empty());
            let levels = of(&stated, &implied);
            for (at, firsts) in stated.iter().enumerate() {
                assert!(firsts.iter().all(|first| levels[*first] < levels[at]), "{stated:?} {implied:?}");
            }
            // Without circles at all, implied edges count as stated ones.
            let both: Vec<Vec<usize>> =
                stated.iter().zip(&implied).map(|(one, other)| [&one[..], other].concat()).collect();
            if circles(&both).is_empty() {
                assert_eq!(levels, of(&both, &vec![Vec::new(); count]));
            }
        }
    }
}
