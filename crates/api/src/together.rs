//! Joins entries of an answer that are the same in many clusters.
//!
//! Entries are joined only if all that they say is equal but for times, numbers, generated names and UIDs in messages,
//! and commands. So no cluster can hide what another one reports: all clusters of a joined entry are named, and
//! different entries stay apart.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_apps::{App, ByAddress, Words};
use taffrail_object::ObjectKey;
use taffrail_status::Status;
use taffrail_status::assess::CauseStep;

use crate::Explanation;

/// The clusters that an entry of an answer is about: one cluster, or all those with an equal entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum InClusters {
    /// One cluster.
    One {
        /// The name of the cluster.
        cluster: String,
    },
    /// Several clusters with the same entry.
    Several {
        /// The names of the clusters. The details of an explanation or finding are those of the first cluster; those of
        /// an event are of the newest warning.
        clusters: Vec<String>,
    },
}

impl InClusters {
    pub(super) fn one(name: &str) -> InClusters {
        InClusters::One { cluster: name.to_owned() }
    }

    pub(super) fn new(names: Vec<String>) -> InClusters {
        match <[String; 1]>::try_from(names) {
            Ok([cluster]) => InClusters::One { cluster },
            Err(clusters) => InClusters::Several { clusters },
        }
    }

    /// Returns the names of all clusters of the entry.
    pub fn names(&self) -> &[String] {
        match self {
            InClusters::One { cluster } => std::slice::from_ref(cluster),
            InClusters::Several { clusters } => clusters,
        }
    }

    /// Returns the name of the first cluster, from which the details of an explanation or finding come, such as its
    /// commands (not those of an event); empty if there is none.
    pub fn first(&self) -> &str {
        self.names().first().map_or("", String::as_str)
    }

    /// Returns true for [`InClusters::Several`].
    pub fn are_several(&self) -> bool {
        matches!(self, InClusters::Several { .. })
    }

    /// Returns the number of clusters.
    pub fn count(&self) -> usize {
        self.names().len()
    }

    /// Returns the names of the clusters for a line of text: up to four of them, of more the first three and the number
    /// of the others: `a, b, c and 12 more`.
    ///
    /// ```
    /// use taffrail_api::InClusters;
    ///
    /// let clusters = ["a", "b", "c", "d", "e"].map(str::to_owned);
    /// assert_eq!(InClusters::Several { clusters: clusters[..4].to_vec() }.words(), "a, b, c, d");
    /// assert_eq!(InClusters::Several { clusters: clusters.to_vec() }.words(), "a, b, c and 2 more");
    /// ```
    pub fn words(&self) -> String {
        match self.names() {
            [a, b, c, _, rest @ ..] if !rest.is_empty() => {
                format!("{a}, {b}, {c} and {} more", rest.len() + 1)
            }
            names => names.join(", "),
        }
    }
}

/// Groups entries with equal keys of different clusters; the groups are in the order of their first entries.
///
/// `like` returns the cluster and the key of an entry. Two entries of one cluster are never in the same group: the
/// second one with a key is grouped with the second ones of other clusters.
pub(super) fn grouped<T, K: Clone + Eq + Hash>(
    items: Vec<T>,
    like: impl Fn(&T) -> (String, K),
) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    let mut places: HashMap<(K, usize), usize> = HashMap::new();
    let mut seen: HashMap<(String, K), usize> = HashMap::new();
    for item in items {
        let (cluster, key) = like(&item);
        let nth = seen.entry((cluster, key.clone())).or_default();
        let place = *places.entry((key, *nth)).or_insert(groups.len());
        *nth += 1;
        match groups.get_mut(place) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// Groups entries with the same cluster and the same key; the groups are in the order of their first entries.
///
/// `like` returns the cluster and the key of an entry.
pub(super) fn grouped_in_one<T, K: Eq + Hash>(
    items: Vec<T>,
    like: impl Fn(&T) -> (String, K),
) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    let mut places: HashMap<(String, K), usize> = HashMap::new();
    for item in items {
        let place = *places.entry(like(&item)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// Returns the earlier of two times; if only one is known, that one; `None` if neither is.
pub(super) fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    [one, other].into_iter().flatten().min()
}

/// Returns the later of two times; if only one is known, that one; `None` if neither is.
pub(super) fn later(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    [one, other].into_iter().flatten().max()
}

/// Returns a message in which each word that is a number or a duration, such as `5m0s`, is replaced by `#`, and each
/// run of white space by one blank.
pub fn likeness(message: &str) -> String {
    let in_span = |character: char| character.is_ascii_digit() || "hmsnuµ.:,()".contains(character);
    let is_span =
        |word: &str| word.contains(|character: char| character.is_ascii_digit()) && word.chars().all(in_span);
    let words = message.split_whitespace().map(|word| if is_span(word) { "#" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// The parts of an explanation that must be equal to join it with one of another cluster; among them the objects of the
/// app that are not ready.
///
/// Texts and cause steps are given by the numbers that [`Alikes`] assigns: equal ones have the same number.
#[derive(PartialEq, Eq, Hash)]
struct Alike {
    own: Explanation,
    message: usize,
    problems: Vec<usize>,
    chain: Vec<usize>,
    others: Vec<(ObjectKey, Status, usize)>,
}

/// Joins explanations of one app in different clusters that are equal but for times, commands, numbers, generated names
/// and UIDs. The details of a joined one are those of the cluster in which the problem began first. Returns each
/// explanation with the index in `explained` of the one whose details it has, in the order of the first ones.
pub fn explained_together(explained: Vec<(&App, Explanation)>) -> Vec<(usize, Explanation)> {
    let items: Vec<_> = explained.into_iter().enumerate().collect();
    let alikes = RefCell::new(Alikes::default());
    let groups = grouped(items, |(_, (app, own))| {
        (own.place.first().to_owned(), Rc::new(alikes.borrow_mut().of(app, own)))
    });
    let told = groups.into_iter().filter_map(|mut group| {
        group.sort_by_cached_key(|(_, (_, own))| {
            let began = began(own);
            (began.is_none(), began)
        });
        let names = group.iter().map(|(_, (_, own))| own.place.first().to_owned()).collect();
        let (place, (_, first)) = group.into_iter().next()?;
        Some((place, Explanation { place: InClusters::new(names), ..first }))
    });
    told.collect()
}

/// Returns the earliest time at which a cause step or a problem of an explanation began; `None` if no time is known.
fn began(own: &Explanation) -> Option<Timestamp> {
    let of_chain = own.chain.iter().filter_map(|link| link.since);
    let of_problems = own.problems.iter().filter_map(|problem| problem.since);
    of_chain.chain(of_problems).min()
}

/// A pool that gives equal texts and equal cause steps the same number, so that those that many explanations share are
/// examined once and not copied.
#[derive(Default)]
struct Alikes {
    /// A number for each different text.
    texts: HashMap<String, usize>,
    /// A number for each different cause step, whose texts are numbers, too.
    links: HashMap<AlikeLink, usize>,
    /// A number for each different set of generated object names.
    names: HashMap<Generated, usize>,
    /// The numbers of texts that were examined before, by their memory address and the number of the generated
    /// names that are replaced in them.
    known_texts: HashMap<(ByAddress<str>, usize), usize>,
    /// The numbers of cause steps that were examined before, by their memory address and the number of the
    /// generated names.
    known_links: HashMap<(ByAddress<CauseStep>, usize), usize>,
}

/// The parts of a cause step that must be equal to join explanations; its texts are numbers of [`Alikes`].
#[derive(PartialEq, Eq, Hash)]
struct AlikeLink {
    object: ObjectKey,
    status: Status,
    reason: String,
    message: usize,
    rule: String,
    facts: Vec<usize>,
}

impl Alikes {
    fn of(&mut self, app: &App, own: &Explanation) -> Alike {
        let names = Generated::of(&own.chain);
        let place = number(&mut self.names, names.clone());
        let message = self.words(&own.message, &names, place);
        let problems =
            own.problems.iter().map(|problem| self.words(&problem.message, &names, place)).collect();
        let chain = own.chain.iter().map(|link| self.link(link, &names, place)).collect();
        let others = app.resources.iter().filter(|other| other.status != Status::Current);
        let others = others.map(|other| {
            let names = Generated::of(&other.chain);
            let place = number(&mut self.names, names.clone());
            ((*other.key).clone(), other.status, self.words(&other.message, &names, place))
        });
        let others = others.collect();
        let mut own = Explanation {
            place: InClusters::one(""),
            next: Vec::new(),
            last_changed: Vec::new(),
            message: Words::default(),
            chain: Vec::new(),
            ..own.clone()
        };
        for problem in &mut own.problems {
            problem.since = None;
            problem.message = Words::default();
            names.rename(problem.object.iter_mut());
        }
        names.rename(own.object.iter_mut());
        for change in &mut own.changed {
            change.when = None;
            names.rename([&mut change.object].into_iter());
        }
        Alike { own, message, problems, chain, others }
    }

    fn words(&mut self, words: &Words, names: &Generated, place: usize) -> usize {
        let key = (ByAddress(words.shared().clone()), place);
        if let Some(known) = self.known_texts.get(&key) {
            return *known;
        }
        let text = self.text(words, names);
        self.known_texts.insert(key, text);
        text
    }

    fn text(&mut self, text: &str, names: &Generated) -> usize {
        number(&mut self.texts, names.without(text))
    }

    fn link(&mut self, link: &Arc<CauseStep>, names: &Generated, place: usize) -> usize {
        let key = (ByAddress(link.clone()), place);
        if let Some(known) = self.known_links.get(&key) {
            return *known;
        }
        let mut object = link.object.clone();
        names.rename([&mut object].into_iter());
        let alike = AlikeLink {
            object,
            status: link.status,
            reason: link.reason.clone(),
            message: self.text(&link.message, names),
            rule: link.rule.clone(),
            facts: link.facts.iter().map(|fact| self.text(fact, names)).collect(),
        };
        let link = number(&mut self.links, alike);
        self.known_links.insert(key, link);
        link
    }
}

/// Returns the number of `own` in `known`; a new value is added with the next number, from 0.
fn number<T: Eq + Hash>(known: &mut HashMap<T, usize>, own: T) -> usize {
    let next = known.len();
    *known.entry(own).or_insert(next)
}

/// The kinds whose object names controllers generate, by group and kind.
const MADE_UP: [(&str, &str); 3] = [("", "Pod"), ("apps", "ReplicaSet"), ("batch", "Job")];

/// The generated object names in a cause chain, each with its pattern, such as `web-7d9f-x2k` with `web-*`.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Generated {
    names: Vec<(ObjectKey, String)>,
}

impl Generated {
    fn of(chain: &[impl Deref<Target = CauseStep>]) -> Generated {
        let mut names: Vec<(ObjectKey, String)> = Vec::new();
        for pair in chain.windows(2) {
            let [above, link] = pair else { continue };
            let own = &link.object;
            let is_made_up = MADE_UP.contains(&(&*own.group, &*own.kind))
                && own.namespace == above.object.namespace
                && own.name.strip_prefix(&*above.object.name).is_some_and(|rest| rest.starts_with('-'));
            if is_made_up {
                let name = above.object.clone();
                let stem = names.iter().find(|(known, _)| *known == name).map(|(_, stem)| stem.clone());
                names.push((own.clone(), stem.unwrap_or_else(|| format!("{}-*", name.name))));
            }
        }
        // The name of a Pod begins with that of its controller.
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.name.len()));
        Generated { names }
    }

    fn rename<'o>(&self, objects: impl Iterator<Item = &'o mut ObjectKey>) {
        for object in objects {
            if let Some((_, stem)) = self.names.iter().find(|(name, _)| name == object) {
                object.name.clone_from(stem);
            }
        }
    }

    /// Returns `text` with these names replaced by their patterns, and UIDs, numbers and durations by `#`.
    fn without(&self, text: &str) -> String {
        let named =
            self.names.iter().fold(without_uids(text), |text, (name, stem)| text.replace(&*name.name, stem));
        likeness(&named)
    }
}

/// The lengths of the parts of a UID in characters.
const UID_PARTS: [usize; 5] = [8, 4, 4, 4, 12];

/// Returns `text` with each UID, such as those of Pods in messages of the kubelet, replaced by `#`.
pub(super) fn without_uids(text: &str) -> String {
    let is_uid = |text: &str| {
        let mut parts = text.split('-');
        let is_part = |length: &usize| {
            parts.next().is_some_and(|part| {
                part.len() == *length && part.bytes().all(|byte| byte.is_ascii_hexdigit())
            })
        };
        UID_PARTS.iter().all(is_part)
    };
    let length = UID_PARTS.iter().sum::<usize>() + UID_PARTS.len() - 1;
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        match rest.get(..length).filter(|text| is_uid(text)) {
            Some(uid) => {
                told.push('#');
                rest = &rest[uid.len()..];
            }
            None => {
                told.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    told
}
