//! Pages of the apps of a fleet, in an order, from a key on.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};
use taffrail_api::filter::SortField;
use taffrail_api::report::AppId;
use taffrail_status::rollup::Counts;

use super::filter::AppFilter;
use super::pair::{Pair, Place, Summary, order};
use super::view::{FleetView, PairNow};

/// The position of an app in an order: all that decides it, so that it stands there whatever comes and goes around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PageKey {
    /// The sort field, as the number of its variant; `None` for the order of the fleet.
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

/// The position of a pair of one published fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position<'f> {
    numbers: [i64; 3],
    texts: [&'f str; 2],
    place: Place,
    /// The position within the cluster.
    at: usize,
}

/// The apps of a fleet to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppQueryPage<'q> {
    pub(crate) filter: &'q AppFilter,
    /// The field to sort by; `None` for the order of the fleet.
    pub(crate) sort: Option<SortField>,
    pub(crate) limit: usize,
    /// The key of the last app of the page before.
    pub(crate) after: Option<&'q PageKey>,
}

/// A page of apps.
#[derive(Debug)]
pub(crate) struct AppPage<'v> {
    /// The apps, with the places of the clusters that show them.
    pub(crate) pairs: Vec<(Place, &'v Pair)>,
    /// The key of the last app, if others follow.
    pub(crate) next: Option<PageKey>,
    /// The number of all apps that match.
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
    /// Makes the key of a pair.
    pub(crate) fn of(
        view: &FleetView,
        sort: Option<SortField>,
        place: Place,
        pair: &Pair,
        summary: &Summary,
    ) -> PageKey {
        let Position { numbers, texts, .. } =
            position(view, sort, (place, 0), pair, summary, view.now(place, summary));
        let texts = texts.map(str::to_owned);
        PageKey { sort: sort.map(number), numbers, texts, place, app: pair.app.clone() }
    }

    /// Returns true if the key is one of the order by `sort`.
    pub(crate) fn is_of(&self, sort: Option<SortField>) -> bool {
        self.sort == sort.map(number)
    }

    /// Returns the position after that of the key.
    fn after<'k>(&'k self, view: &FleetView) -> Position<'k> {
        let pairs = view.fleet().cluster(self.place).map(|cluster| &cluster.pairs);
        let at = pairs.map_or(0, |pairs| pairs.after(&self.app));
        let [one, two] = &self.texts;
        Position { numbers: self.numbers, texts: [one, two], place: self.place, at }
    }
}

fn number(sort: SortField) -> u8 {
    sort as u8
}

fn position<'f>(
    view: &'f FleetView,
    sort: Option<SortField>,
    (place, at): (Place, usize),
    pair: &'f Pair,
    summary: &Summary,
    now: PairNow,
) -> Position<'f> {
    // Rows without a time come last.
    let since = || view.since(pair, summary, now).unwrap_or(i64::MAX);
    let name = || match pair.target {
        Some(place) => view.fleet().cluster(place).map_or("", |cluster| view.name(cluster)),
        None => &pair.declared.body.target.0,
    };
    let (numbers, texts) = match sort {
        None => ([0; 3], [""; 2]),
        Some(SortField::Name) => ([0; 3], [&*pair.app.app.name, &*pair.app.app.namespace]),
        Some(SortField::Status) => {
            let severity = now.severity.map_or(i64::MAX, |severity| severity as i64);
            ([now.effective as i64, severity, since()], [""; 2])
        }
        Some(SortField::Cluster) => ([0; 3], [name(), ""]),
        Some(SortField::Since) => ([since(), 0, 0], [""; 2]),
        Some(SortField::Delivery) => ([summary.delivery as i64, 0, 0], [""; 2]),
    };
    Position { numbers, texts, place, at }
}

impl FleetView {
    /// Calls `found` for each pair that matches, in the order of the fleet, with its place and position.
    pub(crate) fn each<'v>(
        &'v self,
        filter: &AppFilter,
        mut found: impl FnMut((Place, usize), &'v Pair, &'v Summary, PairNow),
    ) {
        for (place, cluster) in self.fleet().all() {
            let Some(within) = filter.within(self, place, cluster) else { continue };
            for (at, (pair, summary)) in cluster.pairs.iter().enumerate() {
                if let Some(now) = within.admits(self, at, pair, summary) {
                    found((place, at), pair, summary, now);
                }
            }
        }
    }

    /// Returns a page of apps.
    pub(crate) fn page(&self, query: &AppQueryPage<'_>) -> AppPage<'_> {
        let AppQueryPage { filter, sort, limit, after } = *query;
        let after = after.map(|key| key.after(self));
        let mut page =
            AppPage { pairs: Vec::new(), next: None, total: 0, counts: Counts::default(), problems: 0 };
        let mut best: BinaryHeap<(Position<'_>, Found<'_>)> = BinaryHeap::new();
        let mut is_cut = false;
        self.each(filter, |at, pair, summary, now| {
            page.total += 1;
            page.counts.add(now.effective);
            page.problems += usize::from(now.is_pressing());
            // In the order of the fleet nothing that follows can belong to the page.
            if sort.is_none() && is_cut {
                return;
            }
            let position = position(self, sort, at, pair, summary, now);
            if after.is_some_and(|after| position < after) {
                return;
            }
            let is_full = best.len() >= limit;
            is_cut |= is_full;
            if is_full {
                match best.peek_mut() {
                    Some(mut last) if last.0 > position => *last = (position, Found(pair, summary)),
                    _ => {}
                }
            } else {
                best.push((position, Found(pair, summary)));
            }
        });
        let sorted = best.into_sorted_vec();
        if let Some((position, Found(pair, summary))) = sorted.last().filter(|_| is_cut) {
            page.next = Some(PageKey::of(self, sort, position.place, pair, summary));
        }
        page.pairs = sorted.into_iter().map(|(position, Found(pair, _))| (position.place, pair)).collect();
        page
    }
}

/// A pair that was found; it adds nothing to the order of its position.
struct Found<'v>(&'v Pair, &'v Summary);

impl PartialEq for Found<'_> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Found<'_> {}

impl PartialOrd for Found<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Found<'_> {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}
