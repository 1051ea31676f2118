//! Sorted pages of the apps of a fleet, each beginning after the key of the last app of the page before.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};
use taffrail_api::filter::SortField;
use taffrail_api::report::AppId;
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use super::classes::CountedClass;
use super::filter::{AppFilter, InCluster};
use super::pair::{JudgedPair, ListedPair, Pair, Place, order};
use super::view::{FleetView, PairNow};

/// The sort key of an app for one sort field, with all values that decide its position, so that a page can begin after
/// an app that has changed or gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PageKey {
    /// The sort field, as the number of its variant; `None` for the default order.
    #[serde(rename = "s")]
    sort: Option<u8>,
    #[serde(rename = "n")]
    numbers: [i64; 3],
    #[serde(rename = "t")]
    texts: [String; 2],
    #[serde(rename = "p")]
    place: Place,
    #[serde(rename = "a")]
    app: AppId,
}

/// The sort key of a pair within one published fleet, in which ranks stand for texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    /// The values of the sort field: numbers, or the ranks of texts.
    numbers: [i64; 3],
    place: Place,
    /// The index among the pairs of the cluster.
    at: usize,
}

/// A query for one page of apps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppQueryPage<'q> {
    pub(crate) filter: &'q AppFilter,
    /// The field to sort by; `None` for the default order: by cluster, the first opened first, namespace, name,
    /// delivery, home.
    pub(crate) sort: Option<SortField>,
    pub(crate) limit: usize,
    /// The key of the last app of the page before; `None` for the first page.
    pub(crate) after: Option<&'q PageKey>,
}

/// A page of apps.
#[derive(Debug, Default)]
pub(crate) struct AppPage<'v> {
    /// The apps in order, each with the place of the cluster that shows it.
    pub(crate) pairs: Vec<(Place, &'v Pair)>,
    /// The key of the last app if others follow, else `None`.
    pub(crate) next: Option<PageKey>,
    /// The number of all apps that match, on any page.
    pub(crate) total: usize,
    /// The number of all apps that match, by present status.
    pub(crate) counts: Counts,
    /// The number of all apps that match and have a problem that is more than a notice.
    pub(crate) problems: usize,
}

impl Ord for PageKey {
    fn cmp(&self, other: &PageKey) -> Ordering {
        (self.numbers.cmp(&other.numbers))
            .then_with(|| self.texts.cmp(&other.texts))
            .then_with(|| self.place.cmp(&other.place))
            .then_with(|| order(&self.app, &other.app))
    }
}

impl PartialOrd for PageKey {
    fn partial_cmp(&self, other: &PageKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PageKey {
    /// Makes the key of a pair that the cluster at `place` shows, for the order by `sort`.
    pub(crate) fn of(
        view: &FleetView,
        sort: Option<SortField>,
        place: Place,
        judged: JudgedPair<'_>,
    ) -> PageKey {
        let pair = judged.pair;
        let app = &pair.app.app;
        let (numbers, texts) = match sort {
            Some(SortField::Name) => ([0; 3], [app.name.clone(), app.namespace.clone()]),
            Some(SortField::Cluster) => ([0; 3], [shown_name(view, place, pair).to_owned(), String::new()]),
            _ => {
                let now = view.now(place, judged.class);
                (numbers(view, sort, judged, now), [String::new(), String::new()])
            }
        };
        PageKey { sort: sort.map(number), numbers, texts, place, app: AppId::clone(&pair.app) }
    }

    /// Returns true if the key was made for the order by `sort`.
    pub(crate) fn is_of(&self, sort: Option<SortField>) -> bool {
        self.sort == sort.map(number)
    }

    /// Returns the least position in this view that comes after the key.
    fn after(&self, view: &FleetView, sort: Option<SortField>, clusters: &ClusterRanks<'_>) -> Position {
        let pairs = view.fleet().cluster(self.place).map(|cluster| &cluster.pairs);
        let at = pairs.map_or(0, |pairs| pairs.after(&self.app));
        let [one, two] = &self.texts;
        let names = &view.fleet().names;
        let numbers = match sort {
            Some(SortField::Name) => [names.rank_of(one), names.rank_of(two), 0],
            Some(SortField::Cluster) => [clusters.rank_of(one), 0, 0],
            _ => self.numbers,
        };
        Position { numbers, place: self.place, at }
    }
}

fn number(sort: SortField) -> u8 {
    sort as u8
}

/// Returns the cluster name in the row of a pair: that of its target, or the target's identity if the fleet does not
/// have it.
fn shown_name<'v>(view: &'v FleetView, place: Place, pair: &'v Pair) -> &'v str {
    match pair.target {
        Some(_) => view.fleet().cluster(place).map_or("", |cluster| view.name(cluster)),
        None => &pair.declared.body.target.0,
    }
}

/// Returns the values by which a pair is sorted by status, time or delivery; zeros for the other orders.
fn numbers(view: &FleetView, sort: Option<SortField>, judged: JudgedPair<'_>, now: PairNow) -> [i64; 3] {
    // Rows without a time come last.
    let since = || view.since(judged, now).unwrap_or(i64::MAX);
    match sort {
        Some(SortField::Status) => [now.effective as i64, severity(now), since()],
        Some(SortField::Since) => [since(), 0, 0],
        Some(SortField::Delivery) => [judged.class.delivery as i64, 0, 0],
        None | Some(SortField::Name | SortField::Cluster) => [0; 3],
    }
}

/// The distinct names of all clusters, sorted; empty unless rows are sorted by cluster.
struct ClusterRanks<'v>(Vec<&'v str>);

impl<'v> ClusterRanks<'v> {
    /// Collects the names of all clusters, sorted and each once, if `sort` is by cluster; else none.
    fn new(view: &'v FleetView, sort: Option<SortField>) -> ClusterRanks<'v> {
        let is_used = sort == Some(SortField::Cluster);
        let clusters = view.fleet().all().filter(|_| is_used);
        let mut names: Vec<&str> = clusters.map(|(_, cluster)| view.name(cluster)).collect();
        names.sort_unstable();
        names.dedup();
        ClusterRanks(names)
    }

    /// Returns twice the place of a name among the sorted names; for another text the odd number between its
    /// neighbours'.
    fn rank_of(&self, name: &str) -> i64 {
        let (at, odd) = match self.0.binary_search(&name) {
            Ok(at) => (at, 0),
            Err(at) => (at, 1),
        };
        2 * i64::try_from(at).unwrap_or(i64::MAX / 2) - odd
    }
}

/// The order of the pairs of one cluster among those of the fleet.
struct ClusterOrder<'v> {
    view: &'v FleetView,
    sort: Option<SortField>,
    clusters: &'v ClusterRanks<'v>,
    place: Place,
    /// The rank of the cluster's name; 0 unless pairs are sorted by it.
    rank: i64,
}

impl<'v> ClusterOrder<'v> {
    fn new(
        view: &'v FleetView,
        sort: Option<SortField>,
        clusters: &'v ClusterRanks<'v>,
        within: &InCluster<'_, '_>,
    ) -> ClusterOrder<'v> {
        let rank = match sort {
            Some(SortField::Cluster) => clusters.rank_of(view.name(within.cluster)),
            _ => 0,
        };
        ClusterOrder { view, sort, clusters, place: within.place, rank }
    }

    /// Returns the position of the pair with the index `at`.
    fn position(&self, at: usize, listed: ListedPair<'_>, now: PairNow) -> Position {
        let ListedPair { pair, summary, class } = listed;
        let names = &self.view.fleet().names;
        let numbers = match self.sort {
            Some(SortField::Name) => [names.rank(summary.name), names.rank(summary.namespace), 0],
            Some(SortField::Cluster) if class.is_stray => {
                [self.clusters.rank_of(&pair.declared.body.target.0), 0, 0]
            }
            Some(SortField::Cluster) => [self.rank, 0, 0],
            sort => numbers(self.view, sort, listed.judged(), now),
        };
        Position { numbers, place: self.place, at }
    }

    /// Returns a position that is not after that of any pair whose class `within` admits.
    fn least(&self, within: &InCluster<'_, '_>) -> Position {
        let of_class = |(CountedClass { class, .. }, now): (&CountedClass, PairNow)| match self.sort {
            Some(SortField::Status) => [now.effective as i64, severity(now), i64::MIN],
            // A pair without a problem sorts last.
            Some(SortField::Since) if class.severity.is_none() && !now.is_dark() => [i64::MAX, 0, 0],
            Some(SortField::Delivery) => [class.delivery as i64, 0, 0],
            Some(SortField::Cluster) if !class.is_stray => [self.rank, 0, 0],
            Some(SortField::Since | SortField::Cluster | SortField::Name) => [i64::MIN; 3],
            None => [0; 3],
        };
        let least = within.classes().map(of_class).min();
        Position { numbers: least.unwrap_or([i64::MIN; 3]), place: self.place, at: 0 }
    }
}

impl AppPage<'_> {
    fn add(&mut self, other: &AppPage<'_>) {
        self.total += other.total;
        self.problems += other.problems;
        Status::ALL.into_iter().for_each(|status| self.counts.add_many(status, other.counts.get(status)));
    }

    fn count(&mut self, now: PairNow, pairs: usize) {
        self.total += pairs;
        self.counts.add_many(now.effective, pairs);
        self.problems += if now.is_pressing() { pairs } else { 0 };
    }
}

/// Returns the severity of the worst problem as a number to sort by, the worst first; without a problem the greatest.
fn severity(now: PairNow) -> i64 {
    now.severity.map_or(i64::MAX, |severity| severity as i64)
}

impl FleetView {
    /// Calls `found` for each pair that matches, in the default order, with the place of its cluster, its index there and
    /// its present state.
    pub(crate) fn each<'v>(
        &'v self,
        filter: &AppFilter,
        mut found: impl FnMut((Place, usize), ListedPair<'v>, PairNow),
    ) {
        for within in filter.prepare(self).clusters(self) {
            for (at, listed, now) in within.pairs() {
                found((within.place, at), listed, now);
            }
        }
    }

    /// Returns the page of apps that `query` describes, with the counts of all that match. Searches on all processors.
    pub(crate) fn page(&self, query: &AppQueryPage<'_>) -> AppPage<'_> {
        let AppQueryPage { filter, sort, limit, after } = *query;
        let prepared = filter.prepare(self);
        let ranks = ClusterRanks::new(self, sort);
        let after = after.map(|key| key.after(self, sort, &ranks));
        let search = Search { view: self, sort, limit, after, ranks: &ranks };
        let mut page = AppPage::default();
        let (mut found, mut is_cut) = (Vec::new(), false);
        for part in prepared.in_parts(self, |clusters| search.among(clusters)) {
            page.add(&part.page);
            is_cut |= part.is_cut;
            found.extend(part.best);
        }
        found.sort_unstable();
        is_cut |= found.len() > limit;
        found.truncate(limit);
        if let Some((position, HeapPair(listed))) = found.last().filter(|_| is_cut) {
            page.next = Some(PageKey::of(self, sort, position.place, listed.judged()));
        }
        page.pairs =
            found.into_iter().map(|(position, HeapPair(listed))| (position.place, &**listed.pair)).collect();
        page
    }
}

/// The search for the pairs of a page.
struct Search<'s, 'v> {
    view: &'v FleetView,
    sort: Option<SortField>,
    limit: usize,
    /// The least position in the page; `None` for any.
    after: Option<Position>,
    ranks: &'s ClusterRanks<'v>,
}

/// The results of a search in a part of the clusters.
struct FoundPart<'v> {
    /// The counts of all pairs that match; no pairs.
    page: AppPage<'v>,
    /// The first pairs of the part, at most as many as the page has.
    best: BinaryHeap<(Position, HeapPair<'v>)>,
    /// True if the part has more pairs for the page or a later one.
    is_cut: bool,
}

impl<'v> Search<'_, 'v> {
    fn among<'p>(&self, clusters: &mut dyn Iterator<Item = InCluster<'p, 'v>>) -> FoundPart<'v> {
        let mut part = FoundPart { page: AppPage::default(), best: BinaryHeap::new(), is_cut: false };
        clusters.for_each(|within| self.within(&within, &mut part));
        part
    }

    fn within(&self, within: &InCluster<'_, 'v>, part: &mut FoundPart<'v>) {
        let FoundPart { page, best, is_cut } = part;
        let order = ClusterOrder::new(self.view, self.sort, self.ranks, within);
        if within.is_decided {
            within.classes().for_each(|(counted, now)| page.count(now, counted.pairs));
            let least = order.least(within);
            if best.len() >= self.limit && best.peek().is_none_or(|(last, _)| *last < least) {
                *is_cut = true;
                return;
            }
        }
        for (at, listed, now) in within.pairs() {
            if !within.is_decided {
                page.count(now, 1);
            }
            let position = order.position(at, listed, now);
            if self.after.is_some_and(|after| position < after) {
                continue;
            }
            let is_full = best.len() >= self.limit;
            *is_cut |= is_full;
            if !is_full {
                best.push((position, HeapPair(listed)));
            } else if best.peek().is_some_and(|(last, _)| *last > position)
                && let Some(mut last) = best.peek_mut()
            {
                *last = (position, HeapPair(listed));
            }
        }
    }
}

/// A pair beside its position in a heap. All are equal, so that only positions are compared.
struct HeapPair<'v>(ListedPair<'v>);

impl PartialEq for HeapPair<'_> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for HeapPair<'_> {}

impl PartialOrd for HeapPair<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for HeapPair<'_> {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}
