//! The table of apps by clusters, one character a cell.

use taffrail_api::API_VERSION;
use taffrail_api::hub::{Matrix, MatrixColumn, MatrixLegend, MatrixRow, PageExtent};
use taffrail_apps::{Freshness, FreshnessState};
use taffrail_status::Status;

use super::filter::{AppFilter, InCluster};
use super::names::NameId;
use super::pair::Place;
use super::view::{FleetView, PairNow};

/// The greatest number of columns, one for each cluster; further clusters are left out and counted.
const MAX_COLUMNS: usize = 10_000;

/// The greatest number of cells; with many columns a page has fewer rows, but at least one.
const MAX_CELLS: usize = 1_000_000;

/// The characters of cells, in the order of their meanings: by status, then freshness, then without or with a problem.
const CODES: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The states of freshness, in the order in which characters are given to them.
const FRESHNESS: [FreshnessState; 3] = [FreshnessState::Live, FreshnessState::Stale, FreshnessState::Lost];

impl FleetView {
    /// Returns the table of the apps (rows, by key) and clusters (columns) that `filter` admits; apps with an unknown
    /// target are left out, and a cell shows the worst app of its key. A column has the value of `label`, if that is
    /// given. A page has at most `limit` rows (fewer beyond
    /// [`MAX_CELLS`] cells), those with keys after `after`; [`PageExtent::next`] is its last key if others follow.
    pub(crate) fn matrix(
        &self,
        filter: &AppFilter,
        label: Option<&str>,
        limit: usize,
        after: Option<&str>,
    ) -> Matrix {
        // Indexed by the place of a cluster.
        let mut column_of: Vec<Option<usize>> = vec![None; self.fleet().clusters.len()];
        let mut columns = Vec::new();
        let mut columns_omitted = 0;
        for (place, cluster) in self.admitted(filter) {
            if columns.len() == MAX_COLUMNS {
                columns_omitted += 1;
                continue;
            }
            let source = self.speaker(cluster);
            let freshness = source.map_or(Freshness::never(), |source| self.freshness(source)).state;
            if let Some(column) = column_of.get_mut(place) {
                *column = Some(columns.len());
            }
            let group = label.map(|label| self.group_of(place, label));
            columns.push(MatrixColumn { cluster: self.name(cluster).to_owned(), freshness, group });
        }
        let rows = limit.min(MAX_CELLS / columns.len().max(1)).max(1);
        let names = &self.fleet().names;
        let prepared = filter.prepare(self);
        let column = |within: &InCluster<'_, '_>| column_of.get(within.place).copied().flatten();
        // An app whose target is not known has no column.
        let parts = prepared.in_parts(self, |clusters| {
            let mut is_used = vec![false; names.len()];
            for within in clusters.filter(|within| column(within).is_some()) {
                for (_, listed, _) in within.pairs().filter(|(_, listed, _)| !listed.class.is_stray) {
                    if let Some(is_used) = is_used.get_mut(listed.summary.key as usize) {
                        *is_used = true;
                    }
                }
            }
            is_used
        });
        let is_used = |at: usize| parts.iter().any(|part| part.get(at) == Some(&true));
        let ids = (0..).zip(0..names.len()).filter(|(_, at)| is_used(*at));
        let mut keys: Vec<NameId> = ids.map(|(id, _)| id).collect();
        let total = keys.len();
        keys.retain(|id| after.is_none_or(|after| names.text(*id) > after));
        keys.sort_unstable_by_key(|id| names.rank(*id));
        let is_cut = keys.len() > rows;
        keys.truncate(rows);
        // Indexed by the number of a name.
        let mut row_of: Vec<Option<u32>> = vec![None; names.len()];
        for (row, id) in (0..).zip(&keys) {
            if let Some(slot) = row_of.get_mut(*id as usize) {
                *slot = Some(row);
            }
        }
        // Of each cell its character, and the rank of the app that it shows: the least is the worst. The cells of a
        // cluster lie together, as its apps do.
        let empty = (Matrix::EMPTY as u8, u8::MAX);
        let parts = prepared.in_parts(self, |clusters| {
            let of_cluster = |within: InCluster<'_, '_>| {
                let column = column(&within)?;
                let mut cells = vec![empty; keys.len()];
                for (_, listed, now) in within.pairs().filter(|(_, listed, _)| !listed.class.is_stray) {
                    let row = row_of.get(listed.summary.key as usize).copied().flatten();
                    let Some(cell) = row.and_then(|row| cells.get_mut(row as usize)) else { continue };
                    let rank = now.effective as u8 + if now.is_pressing() { 0 } else { 16 };
                    if rank < cell.1 {
                        *cell = (code(now), rank);
                    }
                }
                Some((column, cells))
            };
            clusters.filter_map(of_cluster).collect::<Vec<_>>()
        });
        let mut cells = vec![vec![Matrix::EMPTY as u8; columns.len()]; keys.len()];
        for (column, of_column) in parts.into_iter().flatten() {
            for (row, (code, _)) in cells.iter_mut().zip(of_column) {
                if let Some(cell) = row.get_mut(column) {
                    *cell = code;
                }
            }
        }
        let mut used = [false; CODES.len()];
        let mut is_met = [false; 256];
        for cell in cells.iter().flatten() {
            if let Some(is_met) = is_met.get_mut(usize::from(*cell)) {
                *is_met = true;
            }
        }
        for (code, used) in CODES.iter().zip(&mut used) {
            *used = is_met.get(usize::from(*code)) == Some(&true);
        }
        let next = keys.last().filter(|_| is_cut).map(|id| names.text(*id).to_owned());
        let rows = keys.iter().zip(cells).map(|(id, cells)| MatrixRow {
            key: names.text(*id).to_owned(),
            cells: String::from_utf8_lossy(&cells).into_owned(),
        });
        Matrix {
            api_version: API_VERSION.into(),
            kind: Matrix::KIND.into(),
            columns,
            columns_omitted,
            rows: rows.collect(),
            legend: legend().filter(|(number, _)| used.get(*number) == Some(&true)).map(|it| it.1).collect(),
            history_since: None,
            extent: PageExtent { total, next },
            coverage: self.coverage(filter),
        }
    }

    /// Returns the value of a label of the cluster at `place`; empty if it has no such label.
    pub(crate) fn group_of(&self, place: Place, label: &str) -> String {
        let labels = self.fleet().cluster(place).and_then(|cluster| self.labels(cluster));
        labels.and_then(|labels| labels.get(label)).cloned().unwrap_or_default()
    }
}

/// Returns the character for the state of a pair: its last observed health, its observed freshness, and whether it
/// has a problem that is more than a notice.
fn code(now: PairNow) -> u8 {
    matrix_code(now.health, now.observed, now.is_pressing())
}

/// Returns the character for an app with this last observed health and freshness, and with or without a problem.
pub(crate) fn matrix_code(health: Status, freshness: FreshnessState, problem: bool) -> u8 {
    CODES.get(number(health, freshness, problem)).copied().unwrap_or(Matrix::EMPTY as u8)
}

/// Returns the meanings of the characters for which `is_used` returns true.
pub(crate) fn matrix_legend(is_used: impl Fn(u8) -> bool) -> Vec<MatrixLegend> {
    let used = legend().filter(|(number, _)| CODES.get(*number).is_some_and(|code| is_used(*code)));
    used.map(|(_, meaning)| meaning).collect()
}

fn number(health: Status, freshness: FreshnessState, problem: bool) -> usize {
    health as usize * 6 + freshness as usize * 2 + usize::from(problem)
}

fn legend() -> impl Iterator<Item = (usize, MatrixLegend)> {
    Status::ALL.into_iter().flat_map(|health| {
        FRESHNESS.into_iter().flat_map(move |freshness| {
            [false, true].map(|problem| {
                let number = number(health, freshness, problem);
                let code = CODES.get(number).map_or(Matrix::EMPTY, |code| char::from(*code));
                let effective = Freshness { state: freshness, observed_at: None }.effective(health);
                (number, MatrixLegend { code, health, effective, freshness, problem })
            })
        })
    })
}
