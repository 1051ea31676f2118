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
use super::pair::{Pair, Place};
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
        // Most changes concern other pages, and names are compared faster than pairs are found.
        let admitted = [old, new].map(|view| (view, self.filter.places(view)));
        let may_admit_at = |place: Place| {
            admitted.iter().any(|(view, places)| {
                let is_admitted = places.as_ref().is_none_or(|places| places.binary_search(&place).is_ok());
                is_admitted || view.fleet().cluster(place).is_some_and(|cluster| cluster.pairs.strays > 0)
            })
        };
        let mut apps: HashSet<(Place, &AppId)> = HashSet::new();
        for change in differences.iter().flat_map(|it| it.changes.iter()).filter(|it| may_admit_at(it.place))
        {
            let pair = change.after.as_ref().or(change.before.as_ref());
            let app = pair.map(|pair| &*pair.app).filter(|app| self.filter.may_admit(&app.app));
            apps.extend(app.map(|app| (change.place, app)));
        }
        let turned: HashSet<Place> = differences.iter().flat_map(|it| &it.places).copied().collect();
        let shown = new.fleet().with_hosts(turned.iter().copied()).filter(|_| !turned.is_empty());
        for (place, cluster) in shown.filter(|(place, _)| may_admit_at(*place)) {
            let is_turned = turned.contains(&place);
            let own = cluster.pairs.pairs.iter().filter(|pair| {
                (is_turned || turned.contains(&pair.home.cluster)) && self.filter.may_admit(&pair.app.app)
            });
            apps.extend(own.map(|pair| (place, &*pair.app)));
        }
        if apps.len() > new.fleet().pairs() / MAX_SHARE + SPARE {
            self.search(new);
            return true;
        }
        let mut is_changed = false;
        for (place, app) in apps {
            is_changed |= self.change(old, new, place, app);
        }
        if self.window.len() < self.limit && !self.is_all {
            self.search(new);
            is_changed = true;
        }
        is_changed
    }

    /// Updates the page for an app that changed. Returns false if neither view has it, or the filter admits it in
    /// neither.
    fn change(&mut self, old: &FleetView, new: &FleetView, place: Place, app: &AppId) -> bool {
        let before = self.find(old, place, app);
        if let Some(old) = &before {
            self.count(old.now, false);
            self.window.retain(|watched| watched.place != place || *watched.pair.app != *app);
        }
        let Some(new) = self.find(new, place, app) else { return before.is_some() };
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

    /// Looks up an app among the pairs that the cluster at `place` shows in `view`; `None` if it is not there or does
    /// not match the filter.
    fn find(&self, view: &FleetView, place: Place, app: &AppId) -> Option<WatchedPair> {
        let pairs = &view.fleet().cluster(place)?.pairs;
        let listed = pairs.get(pairs.find(app)?)?;
        let now = self.filter.admits(view, place, listed)?;
        let key = PageKey::of(view, self.sort, place, listed);
        Some(WatchedPair { key, place, pair: Arc::clone(listed.pair), now })
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
        let apps: Vec<(Place, Arc<AppId>)> =
            page.pairs.iter().map(|(place, pair)| (*place, pair.app.clone())).collect();
        self.window = apps.iter().filter_map(|(place, app)| self.find(view, *place, app)).collect();
    }
}
