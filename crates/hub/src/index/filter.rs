//! Filters of the apps of a fleet.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use taffrail_api::AppName;
use taffrail_api::filter::{StatusFilter, SyncFilter};
use taffrail_apps::{Axis, CheckFilter, ClusterId, Delivery};
use taffrail_object::LabelSelector;

use super::classes::CountedClass;
use super::names::{NameId, contains};
use super::pair::{JudgedPair, ListedPair, MessagesHash, Pair, PairClass, Place, lasting_problems};
use super::published::PublishedCluster;
use super::view::{FleetView, PairNow};
use crate::parallel::in_parts;

/// The least number of clusters for which a search takes another processor: a thread costs as much as some hundred.
/// Tests have few clusters, and split them too.
const MIN_CLUSTERS: usize = if cfg!(test) { 1 } else { 512 };

/// The number of clusters whose memory is waited for at the same time.
const BLOCK: usize = 16;

/// Reads a byte of each part of these clusters that a search reads first. The reads of one cluster do not depend on those
/// of another, so that the processor waits for all of them at once, and not for one after the other while it searches.
fn touch(clusters: &[(Place, &Arc<PublishedCluster>)]) {
    let first = |(_, cluster): &(Place, &Arc<PublishedCluster>)| {
        let name = cluster.sources.first().and_then(|source| source.facts.name.bytes().next());
        let class = cluster.pairs.summaries.first().map_or(0, |summary| summary.class);
        u32::from(name.unwrap_or_default()) ^ class
    };
    std::hint::black_box(clusters.iter().fold(0, |all, cluster| all ^ first(cluster)));
}

/// The conditions that an app must meet; the default matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppFilter {
    /// The present statuses of which an app must have one, or none if they are negated; `None` for any. A healthy app
    /// with a problem that is more than a notice does not count as Ready.
    pub status: Option<StatusFilter>,
    /// The axes on at least one of which an app must have a problem, notices included. An empty set stands for any
    /// axis; `None` also keeps apps without problems.
    pub problems: Option<BTreeSet<Axis>>,
    /// The sync states of which an app must have one, or none if they are negated; `None` for any.
    pub sync: Option<SyncFilter>,
    /// The conditions on checks of which an app must meet one; empty for any.
    pub checks: Vec<CheckFilter>,
    /// The deliveries of which an app must have one; empty for any.
    pub deliveries: Vec<Delivery>,
    /// True to keep only apps whose delivery is suspended.
    pub suspended: bool,
    /// The selector for labels of the declaring object; `None` for any.
    pub labels: Option<LabelSelector>,
    /// The identities, names or aliases of the target clusters (of one that the hub does not know, the identity); empty
    /// for all.
    pub clusters: Vec<String>,
    /// The selector for labels of the target clusters; `None` for any. A cluster that the hub does not know has none.
    pub cluster_labels: Option<LabelSelector>,
    /// The namespaces of declaring objects; empty for all.
    pub namespaces: Vec<String>,
    /// The names of which an app must have one; empty for all.
    pub names: Vec<NameFilter>,
    /// Words, separated by spaces, each of which the key, namespace or name of an app, the name of the cluster that lists
    /// it, or the message of a problem on another axis than freshness must contain, ignoring case; empty for any. Words
    /// after the first eight do not count.
    pub text: String,
}

/// A filter for the names of apps, written `NAME`, `NAMESPACE/NAME` or `DELIVERY/NAMESPACE/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameFilter {
    delivery: Option<Delivery>,
    namespace: Option<String>,
    name: String,
}

/// The error of parsing a [`NameFilter`]; holds the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not the name of an app; write NAME, NAMESPACE/NAME or DELIVERY/NAMESPACE/NAME")]
pub struct InvalidName(pub String);

impl FromStr for NameFilter {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<NameFilter, InvalidName> {
        let invalid = || InvalidName(text.to_owned());
        let parts: Vec<&str> = text.split('/').collect();
        let (delivery, namespace, name) = match parts.as_slice() {
            [name] => (None, None, *name),
            [namespace, name] => (None, Some(*namespace), *name),
            [delivery, namespace, name] => {
                let delivery = Delivery::of_word(delivery).map_err(|_| invalid())?;
                (Some(delivery), Some(*namespace), *name)
            }
            _ => return Err(invalid()),
        };
        let is_empty = name.is_empty() || namespace.is_some_and(str::is_empty);
        let filter = NameFilter { delivery, namespace: namespace.map(str::to_owned), name: name.to_owned() };
        if is_empty { Err(invalid()) } else { Ok(filter) }
    }
}

impl NameFilter {
    fn admits(&self, delivery: Delivery, namespace: &str, name: &str) -> bool {
        self.name == name
            && self.namespace.as_ref().is_none_or(|wanted| wanted == namespace)
            && self.delivery.is_none_or(|wanted| wanted == delivery)
    }
}

/// An [`AppFilter`] whose names are looked up in one published fleet, so that it compares numbers instead of texts.
pub(crate) struct PreparedFilter<'f> {
    filter: &'f AppFilter,
    /// The result of [`AppFilter::places`].
    places: Option<Vec<Place>>,
    /// The numbers of the filter's namespaces; those that no app has are left out.
    namespaces: Vec<NameId>,
    names: Vec<(Option<Delivery>, Option<NameId>, NameId)>,
    /// At most [`MAX_WORDS`].
    words: Vec<SearchedWord>,
}

/// The greatest number of words of a filter's text that count.
const MAX_WORDS: usize = 8;

/// A word of a filter's text, looked up in one published fleet.
struct SearchedWord {
    /// The word in lower case.
    text: String,
    /// Indexed by the number of a name: true if the name contains the word.
    named: Vec<bool>,
    /// True if any name contains the word.
    is_in_names: bool,
    messages: SearchedMessages,
}

/// For the messages that were searched last, whether they contain a word. Many pairs of a fleet have
/// equal messages, and to read one takes longer than all else that decides about a pair.
struct SearchedMessages(Box<[AtomicU64]>);

/// The number of answers that are kept.
const MAX_SEARCHED: u64 = 4096;

impl SearchedMessages {
    fn new() -> SearchedMessages {
        SearchedMessages((0..MAX_SEARCHED).map(|_| AtomicU64::new(0)).collect())
    }

    /// Returns the answer for messages with this hash, or else that of `search`.
    fn get(&self, MessagesHash(hash): MessagesHash, search: impl FnOnce() -> bool) -> bool {
        let Some(slot) = usize::try_from((hash >> 1) & (MAX_SEARCHED - 1)).ok().and_then(|at| self.0.get(at))
        else {
            return search();
        };
        // The last bit of a slot is the answer, the others are those of the hash; 0 stands for none.
        let known = slot.load(Ordering::Relaxed);
        if known != 0 && known | 1 == hash | 1 {
            return known & 1 == 1;
        }
        let is_told = search();
        slot.store((hash & !1) | u64::from(is_told), Ordering::Relaxed);
        is_told
    }
}

/// A [`PreparedFilter`] applied to the pairs that one cluster shows.
pub(crate) struct InCluster<'p, 'v> {
    prepared: &'p PreparedFilter<'p>,
    pub(crate) place: Place,
    pub(crate) cluster: &'v PublishedCluster,
    /// The present state of the pairs of each class, by its number; `None` for a class whose pairs cannot match.
    states: Vec<Option<PairNow>>,
    /// True if the filter's clusters include this one.
    is_admitted: bool,
    /// The words of the filter that the cluster's name does not contain, so that a pair must.
    wanted: Vec<&'p SearchedWord>,
    /// True if the class of a pair decides whether it matches.
    pub(crate) is_decided: bool,
}

impl AppFilter {
    /// Iterates over the words of the text that count, in lower case.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        self.text.split_whitespace().take(MAX_WORDS).map(str::to_lowercase)
    }

    /// Returns the places of the clusters that the filter names by identity, name or alias, or selects by labels,
    /// sorted and each once; `None`, for all, if it does neither.
    pub(crate) fn places(&self, view: &FleetView) -> Option<Vec<Place>> {
        let mut places: Vec<Place> = match self.clusters.is_empty() {
            true if self.cluster_labels.is_none() => return None,
            true => view.fleet().all().map(|(place, _)| place).collect(),
            false => self.clusters.iter().flat_map(|name| view.called(name)).collect(),
        };
        if let Some(selector) = &self.cluster_labels {
            let labels = |place: Place| view.fleet().cluster(place).and_then(|it| view.labels(it));
            places.retain(|place| labels(*place).is_some_and(|labels| selector.matches_map(labels)));
        }
        places.sort_unstable();
        places.dedup();
        Some(places)
    }

    /// Returns true if the filter admits a cluster that the hub does not know by this identity.
    fn admits_unknown(&self, id: &ClusterId) -> bool {
        (self.clusters.is_empty() || self.clusters.contains(&id.0)) && self.admits_labels(None)
    }

    /// Returns true if the filter admits a cluster with these labels; an unknown cluster has `None`, as if it had none.
    pub(crate) fn admits_labels(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        let none = BTreeMap::new();
        self.cluster_labels.as_ref().is_none_or(|selector| selector.matches_map(labels.unwrap_or(&none)))
    }

    /// Returns true if an app of this name meets the conditions on delivery, namespace and name.
    pub(crate) fn may_admit(&self, app: &AppName) -> bool {
        self.names_nothing() || self.admits_name(app.delivery, &app.namespace, &app.name)
    }

    fn names_nothing(&self) -> bool {
        self.deliveries.is_empty() && self.namespaces.is_empty() && self.names.is_empty()
    }

    /// Returns true if an app meets the conditions on delivery, namespace and name; ignores all others.
    pub(crate) fn admits_name(&self, delivery: Delivery, namespace: &str, name: &str) -> bool {
        (self.deliveries.is_empty() || self.deliveries.contains(&delivery))
            && (self.namespaces.is_empty() || self.namespaces.iter().any(|wanted| wanted == namespace))
            && (self.names.is_empty() || self.names.iter().any(|it| it.admits(delivery, namespace, name)))
    }

    /// Looks up the filter's names in the fleet of `view`.
    pub(crate) fn prepare(&self, view: &FleetView) -> PreparedFilter<'_> {
        let table = &view.fleet().names;
        let name = |filter: &NameFilter| {
            let namespace = match &filter.namespace {
                Some(namespace) => Some(table.find(namespace)?),
                None => None,
            };
            Some((filter.delivery, namespace, table.find(&filter.name)?))
        };
        let word = |text: String| {
            let named = table.containing(&text);
            SearchedWord {
                is_in_names: named.contains(&true),
                named,
                messages: SearchedMessages::new(),
                text,
            }
        };
        PreparedFilter {
            filter: self,
            places: self.places(view),
            namespaces: self.namespaces.iter().filter_map(|namespace| table.find(namespace)).collect(),
            names: self.names.iter().filter_map(name).collect(),
            words: self.words().map(word).collect(),
        }
    }

    /// Returns the present state of a pair that the cluster at `place` shows, or showed until now, if it matches, else
    /// `None`; `is_admitted` says if the cluster is one of those that the filter names. Cheaper than
    /// [`prepare`](AppFilter::prepare) for a single pair.
    pub(crate) fn admits(
        &self,
        view: &FleetView,
        (place, is_admitted): (Place, bool),
        judged: JudgedPair<'_>,
    ) -> Option<PairNow> {
        let JudgedPair { pair, class, .. } = judged;
        let cluster = view.fleet().cluster(place)?;
        let is_named = || self.may_admit(&pair.app.app);
        let is_found = || {
            let names = [&pair.declared.body.key, &pair.app.app.namespace, &pair.app.app.name];
            self.words().all(|word| {
                contains(view.name(cluster), &word)
                    || names.iter().any(|name| contains(name, &word))
                    || is_told(pair, &word)
            })
        };
        let now = self.admits_class(view, place, class)?;
        self.admits_pair(pair, class, is_admitted, is_named, is_found).then_some(now)
    }

    /// Returns the present state of the pairs of a class if it meets the conditions on status, problems, sync, delivery
    /// and suspension, else `None`.
    fn admits_class(&self, view: &FleetView, place: Place, class: &PairClass) -> Option<PairNow> {
        let AppFilter { status, problems, sync, deliveries, suspended, .. } = self;
        let now = view.now(place, class);
        let has_problem = |axes: &BTreeSet<Axis>| match axes.is_empty() {
            true => !now.axes.is_empty(),
            false => axes.iter().any(|axis| now.axes.has(*axis)),
        };
        let matches = (!suspended || class.is_suspended)
            && (deliveries.is_empty() || deliveries.contains(&class.delivery))
            && status.as_ref().is_none_or(|it| it.admits_row(now.effective, now.is_pressing()))
            && sync.as_ref().is_none_or(|it| it.admits_state(class.delivery, now.sync, class.is_suspended))
            && problems.as_ref().is_none_or(has_problem);
        matches.then_some(now)
    }

    /// Returns true if a pair meets the other conditions than [`admits_class`](AppFilter::admits_class). The caller says
    /// if the cluster (`is_admitted`, ignored if the target is unknown), the delivery, namespace and name (`is_named`)
    /// and the text (`is_found`) do.
    fn admits_pair(
        &self,
        pair: &Pair,
        class: &PairClass,
        is_admitted: bool,
        is_named: impl FnOnce() -> bool,
        is_found: impl FnOnce() -> bool,
    ) -> bool {
        let label = |selector: &LabelSelector| selector.matches_map(&pair.declared.body.labels);
        let is_in = match class.is_stray {
            true => self.admits_unknown(&pair.declared.body.target),
            false => is_admitted,
        };
        let results = pair.checks.as_ref().map(|checks| &*checks.results).unwrap_or_default();
        let is_checked = self.checks.is_empty() || self.checks.iter().any(|check| check.admits(results));
        is_in && is_named() && is_checked && self.labels.as_ref().is_none_or(label) && is_found()
    }
}

impl FleetView {
    /// Iterates over the clusters that `filter` admits, the first opened first.
    pub(crate) fn admitted(
        &self,
        filter: &AppFilter,
    ) -> impl Iterator<Item = (Place, &Arc<PublishedCluster>)> {
        self.fleet().among(filter.places(self))
    }
}

/// Returns true if the message of any problem of the pair, except those of freshness, contains `text` (in lower case),
/// ignoring case.
fn is_told(pair: &Pair, text: &str) -> bool {
    lasting_problems(pair).any(|problem| contains(&problem.message, text))
}

impl PreparedFilter<'_> {
    /// Applies the filter to each cluster of the view for which it was prepared. Leaves out those in which no pair can
    /// match.
    pub(crate) fn clusters<'p, 'v>(
        &'p self,
        view: &'v FleetView,
    ) -> impl Iterator<Item = InCluster<'p, 'v>> + use<'p, 'v> {
        self.places(view).filter_map(move |(place, cluster)| self.within(view, place, cluster))
    }

    /// Iterates over the clusters of the view for which the filter was prepared in which a pair may match, the first
    /// opened first, with their places.
    pub(crate) fn places<'v>(
        &self,
        view: &'v FleetView,
    ) -> impl Iterator<Item = (Place, &'v Arc<PublishedCluster>)> {
        // A pair whose target the fleet does not have may be in the list of any cluster.
        let places = self.places.as_ref().filter(|_| view.fleet().strays == 0);
        view.fleet().among(places.map(|places| places.iter().copied()))
    }

    /// Splits the clusters of the view for which the filter was prepared into parts, the first opened first, and calls
    /// `work` on all processors, each time with those of one part in which a pair may match. Returns the results in the
    /// order of the parts.
    pub(crate) fn in_parts<'p, 'v, R: Send>(
        &'p self,
        view: &'v FleetView,
        work: impl Fn(&mut dyn Iterator<Item = InCluster<'p, 'v>>) -> R + Sync,
    ) -> Vec<R> {
        let clusters: Vec<(Place, &Arc<PublishedCluster>)> = self.places(view).collect();
        in_parts(&clusters, MIN_CLUSTERS, |clusters| {
            let blocks = clusters.chunks(BLOCK).inspect(|block| touch(block));
            let mut found =
                blocks.flatten().filter_map(|(place, cluster)| self.within(view, *place, cluster));
            work(&mut found)
        })
    }

    /// Applies the filter to one of its [`places`](PreparedFilter::places); `None` if no pair can match there.
    pub(crate) fn within<'p, 'v>(
        &'p self,
        view: &FleetView,
        place: Place,
        cluster: &'v PublishedCluster,
    ) -> Option<InCluster<'p, 'v>> {
        let is_admitted = self.places.as_ref().is_none_or(|places| places.binary_search(&place).is_ok());
        if !is_admitted && cluster.pairs.strays == 0 {
            return None;
        }
        let name = view.name(cluster);
        let wanted: Vec<&SearchedWord> =
            self.words.iter().filter(|word| !contains(name, &word.text)).collect();
        // A pair without a problem has no message to search.
        let is_searched =
            |class: &PairClass| class.severity.is_some() || wanted.iter().all(|word| word.is_in_names);
        let state = |it: &CountedClass| {
            let has_pairs = it.pairs > 0 && (is_admitted || it.class.is_stray) && is_searched(&it.class);
            has_pairs.then(|| self.filter.admits_class(view, place, &it.class)).flatten()
        };
        let states: Vec<Option<PairNow>> = cluster.pairs.classes.iter().map(state).collect();
        if states.iter().all(Option::is_none) {
            return None;
        }
        let AppFilter { labels, namespaces, names, checks, .. } = self.filter;
        let is_in = self.places.is_none() || cluster.pairs.strays == 0;
        let is_any = namespaces.is_empty() && names.is_empty() && labels.is_none() && checks.is_empty();
        let is_decided = is_in && is_any && wanted.is_empty();
        Some(InCluster { prepared: self, place, cluster, states, is_admitted, wanted, is_decided })
    }

    fn is_named(&self, ListedPair { summary, class, .. }: ListedPair<'_>) -> bool {
        let AppFilter { namespaces, names, .. } = self.filter;
        let is_called = |(delivery, namespace, name): &(Option<Delivery>, Option<NameId>, NameId)| {
            *name == summary.name
                && namespace.is_none_or(|namespace| namespace == summary.namespace)
                && delivery.is_none_or(|delivery| delivery == class.delivery)
        };
        (namespaces.is_empty() || self.namespaces.contains(&summary.namespace))
            && (names.is_empty() || self.names.iter().any(is_called))
    }
}

impl<'v> InCluster<'_, 'v> {
    /// Iterates over the classes whose pairs may match, each with the number of its pairs and their present state.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (&'v CountedClass, PairNow)> {
        let classes = self.cluster.pairs.classes.iter();
        classes.zip(&self.states).filter_map(|(counted, state)| Some((counted, (*state)?)))
    }

    /// Iterates over the pairs that match, each with its index and its present state.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (usize, ListedPair<'v>, PairNow)> {
        self.pairs_of(|_, _| true)
    }

    /// Iterates as [`pairs`](InCluster::pairs) does, but leaves out the pairs of the classes for which `is_wanted`
    /// returns false, without looking at them.
    pub(crate) fn pairs_of(
        &self,
        is_wanted: impl Fn(&PairClass, PairNow) -> bool,
    ) -> impl Iterator<Item = (usize, ListedPair<'v>, PairNow)> {
        let pairs = &self.cluster.pairs;
        let classes = pairs.classes.iter().zip(&self.states);
        let state = |(counted, state): (&CountedClass, &Option<PairNow>)| {
            state.filter(|now| is_wanted(&counted.class, *now))
        };
        let states: Vec<Option<PairNow>> = classes.map(state).collect();
        pairs.summaries.iter().enumerate().filter_map(move |(at, summary)| {
            let now = states.get(summary.class as usize).copied().flatten()?;
            let listed = pairs.get(at)?;
            (self.is_decided || self.admits(listed)).then_some((at, listed, now))
        })
    }

    /// Returns true if a pair of this cluster matches whose class may match.
    fn admits(&self, listed: ListedPair<'_>) -> bool {
        let (ListedPair { pair, summary, class }, prepared) = (listed, self.prepared);
        let is_found = || {
            self.wanted.iter().all(|SearchedWord { text, named, messages, .. }| {
                let has = |name: NameId| named.get(name as usize).copied().unwrap_or_default();
                let is_told = || messages.get(summary.messages, || is_told(pair, text));
                has(summary.key)
                    || has(summary.namespace)
                    || has(summary.name)
                    || (class.severity.is_some() && is_told())
            })
        };
        let is_named = || prepared.is_named(listed);
        prepared.filter.admits_pair(pair, class, self.is_admitted, is_named, is_found)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn equal_messages_are_searched_once_and_others_for_themselves() {
        let searches = Cell::new(0);
        let ask = |searched: &SearchedMessages, hash: u64, is_told: bool| {
            let search = || {
                searches.set(searches.get() + 1);
                is_told
            };
            assert_eq!(searched.get(MessagesHash(hash), search), is_told, "{hash:x}");
        };
        let searched = SearchedMessages::new();
        let (one, same_slot) = (0xabc0, 0xabc0 + (MAX_SEARCHED << 1));
        for (hash, is_told) in [(one, true), (one, true), (0, false), (0xabc4, false), (0xabc4, false)] {
            ask(&searched, hash, is_told);
        }
        assert_eq!(searches.get(), 3);
        for (hash, is_told) in [(same_slot, false), (one, true), (same_slot, false)] {
            ask(&searched, hash, is_told);
        }
        assert_eq!(searches.get(), 6);
    }
}
