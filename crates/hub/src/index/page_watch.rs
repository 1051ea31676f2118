//! The first page of a query, kept up to date from the changed pairs alone.

use std::collections::HashSet;
use std::sync::Arc;

use taffrail_api::filter::SortField;
use taffrail_api::report::AppId;
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use super::ViewDifferences;
use super::filter::AppFilter;
use super::page::{AppQueryPage, PageKey};
use super::pair::{JudgedPair, ListedPair, Pair, Place};
use super::view::{FleetView, PairNow};

/// The greatest number of rows kept beyond the page, so that a row that leaves it is replaced without a search.
const SPARE: usize = 64;

/// If more apps changed that the filter may admit than a quarter of the number of the fleet's pairs, plus 64, the page
/// is searched again instead of updated.
const MAX_SHARE: usize = 4;

/// The counts of the apps that match a filter, and the first ones in an order, kept up to date.
#[derive(Debug)]
pub(crate) struct PageWatch {
    filter: AppFilter,
    sort: Option<SortField>,
    limit: usize,
    /// The result of [`AppFilter::places`] in the view that the page shows.
    places: Option<Vec<Place>>,
    /// The first pairs in order: those of the page, and up to 64 beyond it.
    window: Vec<WatchedPair>,
    /// True if the window holds all pairs that match.
    is_all: bool,
    counts: [usize; Status::ALL.len()],
    problems: usize,
    /// The number of searches so far, for tests.
    pub(crate) searches: usize,
}

/// A pair in the window of a page, with its sort key and its state when it was found.
#[derive(Debug, Clone)]
pub(crate) struct WatchedPair {
    key: PageKey,
    pub(crate) place: Place,
    pub(crate) pair: Arc<Pair>,
    pub(crate) now: PairNow,
}

impl PageWatch {
    /// Makes the watch of the first `limit` apps of `view` that match `filter`, ordered by `sort`, and searches them.
    pub(crate) fn new(
        filter: AppFilter,
        sort: Option<SortField>,
        limit: usize,
        view: &FleetView,
    ) -> PageWatch {
        let mut watch = PageWatch {
            filter,
            sort,
            limit,
            places: None,
            window: Vec::new(),
            is_all: false,
            counts: [0; Status::ALL.len()],
            problems: 0,
            searches: 0,
        };
        watch.search(view);
        watch
    }

    /// Returns the pairs of the page in order, at most `limit`.
    pub(crate) fn page(&self) -> &[WatchedPair] {
        self.window.get(..self.limit).unwrap_or(&self.window)
    }

    /// Returns the number of all apps that match, by present status.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        Status::ALL.into_iter().zip(self.counts).for_each(|(status, count)| counts.add_many(status, count));
        counts
    }

    /// Returns the number of all apps that match and have a problem that is more than a notice.
    pub(crate) fn problems(&self) -> usize {
        self.problems
    }

    /// Updates the page from the view `old`, which it shows, to the later view `new`. `differences` are those of all
    /// publications between them. Searches the page again if they are `None` or too many, a cluster was renamed, or too
    /// few rows are left. Returns false if the page and its counts are as before.
    pub(crate) fn follow(
        &mut self,
        old: &FleetView,
        new: &FleetView,
        differences: Option<&[Arc<ViewDifferences>]>,
    ) -> bool {
        let are_renamed = |all: &&[Arc<ViewDifferences>]| all.iter().any(|it| it.are_renamed);
        let Some(differences) = differences.filter(|all| !are_renamed(all)) else {
            self.search(new);
            return true;
        };
        let before = self.places.clone();
        // Without other clusters or names the filter names the same clusters as before.
        let are_other = differences.iter().any(|it| it.has_other_facts);
        if are_other {
            self.places = self.filter.places(new);
        }
        let turned: HashSet<Place> = differences.iter().flat_map(|it| &it.places).copied().collect();
        let may_admit_at = |watch: &PageWatch, place: Place| {
            let is_in = |places: &Option<Vec<Place>>| is_among(places.as_deref(), place);
            let has_strays = |view: &FleetView| {
                view.fleet().cluster(place).is_some_and(|cluster| cluster.pairs.strays > 0)
            };
            is_in(&watch.places) || is_in(&before) || has_strays(old) || has_strays(new)
        };
        // Most changes concern other pages: the name and the class of a pair decide without a look at the fleet.
        let (mut is_changed, mut changes) = (false, 0);
        let limit = new.fleet().pairs() / MAX_SHARE + SPARE;
        let mut apps: HashSet<(Place, &AppId)> = HashSet::new();
        for (place, sides) in differences.iter().flat_map(|it| it.judged()) {
            let Some(pair) = sides.iter().flatten().next().map(|judged| judged.pair) else { continue };
            if !self.filter.may_admit(&pair.app.app) || !may_admit_at(self, place) {
                continue;
            }
            changes += 1;
            // Where nothing turned both views judge a pair equally, so that its changes need no order.
            if are_other || turned.contains(&place) || turned.contains(&pair.home.cluster) {
                apps.insert((place, &pair.app));
            } else {
                is_changed |= self.replace(new, place, sides);
            }
        }
        let shown = new.fleet().with_hosts(turned.iter().copied()).filter(|_| !turned.is_empty());
        for (place, cluster) in shown.filter(|(place, _)| may_admit_at(self, *place)) {
            let is_turned = turned.contains(&place);
            let own = cluster.pairs.pairs.iter().filter(|pair| {
                (is_turned || turned.contains(&pair.home.cluster)) && self.filter.may_admit(&pair.app.app)
            });
            apps.extend(own.map(|pair| (place, &*pair.app)));
        }
        if changes + apps.len() > limit {
            self.search(new);
            return true;
        }
        for (place, app) in apps {
            let listed = [old, new].map(|view| view.fleet().cluster(place)?.pairs.listed_of(app));
            let [gone, found] = listed.map(|listed| listed.map(ListedPair::judged));
            let is_old =
                gone.is_some_and(|gone| self.remove(old, (place, is_among(before.as_deref(), place)), gone));
            let is_new = found.is_some_and(|found| self.insert(new, place, found));
            is_changed |= is_old || is_new;
        }
        if self.window.len() < self.limit && !self.is_all {
            self.search(new);
            is_changed = true;
        }
        is_changed
    }

    /// Updates the page for a pair that changed from the first to the second of `sides`, each judged at the moment of
    /// `view`. Returns false if the filter admits neither.
    fn replace(&mut self, view: &FleetView, place: Place, sides: [Option<JudgedPair<'_>>; 2]) -> bool {
        let [before, after] = sides;
        let is_admitted = is_among(self.places.as_deref(), place);
        let is_old = before.is_some_and(|before| self.remove(view, (place, is_admitted), before));
        let is_new = after.is_some_and(|after| self.insert(view, place, after));
        is_old || is_new
    }

    /// Removes a pair that the cluster at `place` showed; `is_admitted` says if the filter named it. Returns false if
    /// the filter did not admit the pair.
    fn remove(&mut self, view: &FleetView, place: (Place, bool), pair: JudgedPair<'_>) -> bool {
        let Some(now) = self.filter.admits(view, place, pair) else { return false };
        self.count(now, false);
        self.window.retain(|watched| watched.place != place.0 || watched.pair.app != pair.pair.app);
        true
    }

    /// Adds a pair that the cluster at `place` shows. Returns false if the filter does not admit it.
    fn insert(&mut self, view: &FleetView, place: Place, pair: JudgedPair<'_>) -> bool {
        let Some(new) = self.watched(view, place, pair) else { return false };
        self.count(new.now, true);
        let at = self.window.partition_point(|watched| watched.key < new.key);
        if at < self.window.len() || self.is_all {
            self.window.insert(at, new);
        }
        if self.window.len() > self.limit + SPARE {
            self.window.truncate(self.limit + SPARE);
            self.is_all = false;
        }
        true
    }

    /// Makes the row of the window for a pair that the cluster at `place` shows; `None` if the filter does not admit it.
    fn watched(&self, view: &FleetView, place: Place, pair: JudgedPair<'_>) -> Option<WatchedPair> {
        let is_admitted = is_among(self.places.as_deref(), place);
        let now = self.filter.admits(view, (place, is_admitted), pair)?;
        let key = PageKey::of(view, self.sort, place, pair);
        Some(WatchedPair { key, place, pair: Arc::clone(pair.pair), now })
    }

    fn count(&mut self, now: PairNow, is_more: bool) {
        let step =
            |number: &mut usize| *number = if is_more { *number + 1 } else { number.saturating_sub(1) };
        self.counts.get_mut(now.effective as usize).map(step);
        if now.is_pressing() {
            step(&mut self.problems);
        }
    }

    fn search(&mut self, view: &FleetView) {
        self.searches += 1;
        let limit = self.limit + SPARE;
        let page = view.page(&AppQueryPage { filter: &self.filter, sort: self.sort, limit, after: None });
        self.is_all = page.next.is_none();
        self.problems = page.problems;
        self.counts = Status::ALL.map(|status| page.counts.get(status));
        self.places = self.filter.places(view);
        let found = page.pairs.iter().filter_map(|(place, pair)| {
            let listed = view.fleet().cluster(*place)?.pairs.listed_of(&pair.app)?;
            self.watched(view, *place, listed.judged())
        });
        self.window = found.collect();
    }
}

/// Returns true if a cluster is at one of the sorted `places`, or they are `None`, for all.
fn is_among(places: Option<&[Place]>, place: Place) -> bool {
    places.is_none_or(|places| places.binary_search(&place).is_ok())
}
