//! Problems of apps grouped by cause: same severity, axis, state and similar message.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use jiff::Timestamp;
use taffrail_apps::{Axis, FreshnessState, Problem, ProblemCause, ProblemSeverity};
use taffrail_object::ObjectKey;

use crate::hub::AttentionEntry;
use crate::likeness;

/// The greatest number of apps, and of clusters, that an entry lists by name; it only counts further ones.
const MAX_NAMED: usize = 5;

/// The key by which problems are grouped: those with equal parts count as one cause.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Cause {
    severity: ProblemSeverity,
    axis: Axis,
    state: String,
    message: String,
}

/// The problems that share one cause.
struct CauseGroup<'p, C> {
    cause: Cause,
    message: String,
    /// The object that all these problems name; `None` if they name different ones or none.
    object: Option<&'p ObjectKey>,
    since: Option<Timestamp>,
    count: usize,
    keys: Vec<&'p str>,
    all_keys: HashSet<&'p str>,
    clusters: Vec<C>,
    all_clusters: HashSet<C>,
}

/// The place of a group in [`CauseGroups`].
#[derive(Debug, Clone, Copy)]
pub struct CausePlace(usize);

/// The facts about a cluster that is not live, for [`CauseGroups::silence`].
#[derive(Debug, Clone, Copy)]
pub struct Silence<'s> {
    /// The name of the cluster.
    pub name: &'s str,
    /// True if the cluster as a whole is live, and only a part of it is not.
    pub is_part: bool,
    /// The reason why the cluster is not live; empty if it is not known.
    pub message: &'s str,
}

/// Problems of apps, grouped by cause. `C` identifies a cluster.
pub struct CauseGroups<'p, C> {
    groups: Vec<CauseGroup<'p, C>>,
    of_cause: HashMap<Cause, usize>,
    /// The groups of problems by their exact texts: most messages were met before, and their likeness need not be found
    /// again.
    of_text: HashMap<(ProblemSeverity, Axis, &'p str, &'p str, Option<C>), usize>,
    of_silence: HashMap<(C, FreshnessState), usize>,
}

impl<C> Default for CauseGroups<'_, C> {
    fn default() -> Self {
        CauseGroups {
            groups: Vec::new(),
            of_cause: HashMap::new(),
            of_text: HashMap::new(),
            of_silence: HashMap::new(),
        }
    }
}

impl<'p, C: Copy + Eq + Hash> CauseGroups<'p, C> {
    /// Returns the group of a problem in the cluster of this name: that of the problem of the app upstream, if one is the
    /// cause.
    pub fn problem(&mut self, problem: &'p Problem, cluster: C, name: &str) -> CausePlace {
        let ProblemCause { severity, axis, state, message, object } = problem.cause();
        // A message that does not name its cluster says the same in each.
        let own = Some(cluster).filter(|_| message.contains(name));
        let text = (severity, axis, state, message, own);
        if let Some(place) = self.of_text.get(&text) {
            return CausePlace(*place);
        }
        let likeness = likeness(&without(message, name));
        let cause = Cause { severity, axis, state: state.to_owned(), message: likeness };
        let place = self.group(cause, message, object);
        self.of_text.insert(text, place);
        CausePlace(place)
    }

    /// Returns the group that all apps of a cluster share whose observation has this freshness, which is not live.
    /// `silence` returns the facts about the cluster; it is called for the first such app.
    pub fn silence<'s>(
        &mut self,
        cluster: C,
        state: FreshnessState,
        silence: impl FnOnce() -> Silence<'s>,
    ) -> CausePlace {
        if let Some(place) = self.of_silence.get(&(cluster, state)) {
            return CausePlace(*place);
        }
        let Silence { name, is_part, message } = silence();
        let why = if message.is_empty() { String::new() } else { format!(": {}", without(message, name)) };
        let part = if is_part { "a part of the cluster" } else { "the cluster" };
        let message = format!("{part} {}{why}", state.predicate());
        let word = if state == FreshnessState::Lost { "Lost" } else { "Stale" };
        let (severity, axis) = (ProblemSeverity::Error, Axis::Freshness);
        let cause = Cause { severity, axis, state: word.to_owned(), message: likeness(&message) };
        let place = self.group(cause, &message, None);
        self.of_silence.insert((cluster, state), place);
        CausePlace(place)
    }

    /// Returns the place of the group of `cause`; a new one gets `message` and `object`.
    fn group(&mut self, cause: Cause, message: &str, object: Option<&'p ObjectKey>) -> usize {
        if let Some(place) = self.of_cause.get(&cause) {
            return *place;
        }
        let place = self.groups.len();
        self.of_cause.insert(cause.clone(), place);
        self.groups.push(CauseGroup {
            cause,
            message: message.to_owned(),
            object,
            since: None,
            count: 0,
            keys: Vec::new(),
            all_keys: HashSet::new(),
            clusters: Vec::new(),
            all_clusters: HashSet::new(),
        });
        place
    }

    /// Adds to a group a row: the app with this key in a cluster, the object that the cause of its problem names, and the time since
    /// when it has the problem.
    pub fn add(
        &mut self,
        place: CausePlace,
        key: &'p str,
        cluster: C,
        object: Option<&'p ObjectKey>,
        since: Option<Timestamp>,
    ) {
        let Some(group) = self.groups.get_mut(place.0) else { return };
        group.count += 1;
        if group.object != object {
            group.object = None;
        }
        if group.all_keys.insert(key) && group.keys.len() < MAX_NAMED {
            group.keys.push(key);
        }
        group.add_cluster(cluster, since);
    }

    /// Adds to a group a cluster without apps, and the time since when it has the problem.
    pub fn add_cluster(&mut self, place: CausePlace, cluster: C, since: Option<Timestamp>) {
        if let Some(group) = self.groups.get_mut(place.0) {
            group.add_cluster(cluster, since);
        }
    }

    /// Adds the rows of `other`, as if they had been added after those of this one.
    pub fn append(&mut self, other: CauseGroups<'p, C>) {
        let mut places = Vec::with_capacity(other.groups.len());
        for group in other.groups {
            let place = self.group(group.cause.clone(), &group.message, group.object);
            places.push(place);
            if let Some(known) = self.groups.get_mut(place) {
                known.append(group);
            }
        }
        let here = |place: usize| places.get(place).copied();
        self.of_text.extend(other.of_text.into_iter().filter_map(|(text, at)| Some((text, here(at)?))));
        let silent = other.of_silence.into_iter();
        self.of_silence.extend(silent.filter_map(|(cluster, at)| Some((cluster, here(at)?))));
    }

    /// Returns the number of groups, and the entries of the first `limit`: the most severe first, and of one severity
    /// those with most rows. `name` returns the name of a cluster.
    pub fn entries<'n>(mut self, limit: usize, name: impl Fn(C) -> &'n str) -> (usize, Vec<AttentionEntry>) {
        self.groups.sort_by_key(|group| (group.cause.severity, std::cmp::Reverse(group.count)));
        let total = self.groups.len();
        let entry = |group: CauseGroup<'_, C>| AttentionEntry {
            severity: group.cause.severity,
            axis: group.cause.axis,
            state: group.cause.state,
            message: group.message,
            object: group.object.cloned(),
            since: group.since,
            count: group.count,
            keys: group.keys.into_iter().map(str::to_owned).collect(),
            key_count: group.all_keys.len(),
            clusters: group.clusters.into_iter().map(|cluster| name(cluster).to_owned()).collect(),
            cluster_count: group.all_clusters.len(),
        };
        (total, self.groups.into_iter().take(limit).map(entry).collect())
    }
}

impl<C: Copy + Eq + Hash> CauseGroup<'_, C> {
    /// Adds the rows of another group of the same cause.
    fn append(&mut self, other: Self) {
        self.count += other.count;
        if self.object != other.object {
            self.object = None;
        }
        append_named((&mut self.keys, &mut self.all_keys), (other.keys, other.all_keys));
        append_named((&mut self.clusters, &mut self.all_clusters), (other.clusters, other.all_clusters));
        self.since = [self.since, other.since].into_iter().flatten().min();
    }

    fn add_cluster(&mut self, cluster: C, since: Option<Timestamp>) {
        self.since = [self.since, since].into_iter().flatten().min();
        if self.all_clusters.insert(cluster) && self.clusters.len() < MAX_NAMED {
            self.clusters.push(cluster);
        }
    }
}

/// Adds to the values that a group has, of which it names the first, those of another group.
fn append_named<T: Copy + Eq + Hash>(
    (named, all): (&mut Vec<T>, &mut HashSet<T>),
    (others, all_others): (Vec<T>, HashSet<T>),
) {
    named.extend(others.into_iter().filter(|other| !all.contains(other)));
    named.truncate(MAX_NAMED);
    all.extend(all_others);
}

/// Returns a message with `…` in place of its cluster's name; unchanged if the name has fewer than 3 bytes.
fn without(message: &str, name: &str) -> String {
    // A short name may be a part of other words.
    match name.len() {
        ..3 => message.to_owned(),
        _ => message.replace(name, "…"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row {
        problem: Problem,
        key: String,
        cluster: usize,
        since: Option<Timestamp>,
    }

    impl Row {
        fn of(number: usize) -> Row {
            let object = ObjectKey::new("apps", "Deployment", "shop", ["web", "api"][number / 25]);
            let problem = Problem {
                axis: Axis::Health,
                state: "Failed".to_owned(),
                severity: ProblemSeverity::Error,
                since: None,
                message: ["no image", "no node", "no quota"][number * number % 3].into(),
                object: Some(object),
                upstream: None,
            };
            let since = Timestamp::from_second(1_000 + i64::try_from(number * 37 % 50).unwrap()).ok();
            Row { problem, key: format!("app-{}", number * 5 % 13), cluster: number / 4, since }
        }
    }

    fn groups(rows: &[Row]) -> CauseGroups<'_, usize> {
        let mut groups = CauseGroups::default();
        for Row { problem, key, cluster, since } in rows {
            let silence = || Silence { name: "", is_part: false, message: "" };
            let place = match cluster % 5 {
                0 => groups.silence(*cluster, FreshnessState::Lost, silence),
                _ => groups.problem(problem, *cluster, "edge"),
            };
            groups.add(place, key, *cluster, problem.object.as_ref(), *since);
        }
        groups
    }

    #[test]
    fn groups_of_two_parts_are_those_of_the_whole() {
        let rows: Vec<Row> = (0..50).map(Row::of).collect();
        let entries = |groups: CauseGroups<'_, usize>| {
            let (total, entries) = groups.entries(10, |cluster| ["a", "b", "c", "d", "e"][cluster % 5]);
            (total, serde_json::to_value(entries).unwrap())
        };
        let whole = entries(groups(&rows));
        for split in 0..=rows.len() {
            let mut parts = groups(&rows[..split]);
            parts.append(groups(&rows[split..]));
            assert_eq!(entries(parts), whole, "{split}");
        }
    }
}
