//! The table of apps by clusters, one character a cell.

use std::collections::{BTreeMap, BTreeSet};

use taffrail_api::API_VERSION;
use taffrail_api::hub::{Matrix, MatrixColumn, MatrixLegend, MatrixRow, PageExtent};
use taffrail_apps::{Freshness, FreshnessState};
use taffrail_status::Status;

use super::filter::AppFilter;
use super::pair::Place;
use super::view::{FleetView, PairNow};

/// The greatest number of columns.
const MAX_COLUMNS: usize = 10_000;

/// The greatest number of cells; with many columns a page has fewer rows.
const MAX_CELLS: usize = 1_000_000;

/// The character of the first meaning; each further one has the next character.
const CODES: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The states of freshness.
const FRESHNESS: [FreshnessState; 3] = [FreshnessState::Live, FreshnessState::Stale, FreshnessState::Lost];

impl FleetView {
    /// Returns a page of the matrix: the keys after `after`, at most `limit`. [`PageExtent::next`] is the last key, if
    /// others follow.
    pub(crate) fn matrix(&self, filter: &AppFilter, limit: usize, after: Option<&str>) -> Matrix {
        let shown = self.fleet().all().filter(|(_, cluster)| filter.admits_cluster(self, cluster));
        let mut places: BTreeMap<Place, usize> = BTreeMap::new();
        let mut columns = Vec::new();
        let mut columns_omitted = 0;
        for (place, cluster) in shown {
            if columns.len() == MAX_COLUMNS {
                columns_omitted += 1;
                continue;
            }
            let source = self.speaker(cluster);
            let freshness = source.map_or(Freshness::never(), |source| self.freshness(source)).state;
            places.insert(place, columns.len());
            columns.push(MatrixColumn { cluster: self.name(cluster).to_owned(), freshness });
        }
        let rows = limit.min(MAX_CELLS / columns.len().max(1)).max(1);
        let mut keys: BTreeSet<&str> = BTreeSet::new();
        // An app whose target is not known has no column.
        self.each(filter, |(place, _), pair, summary, _| {
            if !summary.is_stray && places.contains_key(&place) {
                keys.insert(&pair.declared.body.key);
            }
        });
        let total = keys.len();
        let is_after = |key: &&&str| after.is_none_or(|after| **key > after);
        let following = keys.iter().filter(is_after).count();
        let keys: BTreeMap<&str, usize> =
            keys.iter().filter(is_after).take(rows).enumerate().map(|(row, key)| (*key, row)).collect();
        let mut cells: Vec<Vec<u8>> = vec![vec![Matrix::EMPTY as u8; columns.len()]; keys.len()];
        let mut worst: BTreeMap<(usize, usize), (bool, Status)> = BTreeMap::new();
        let mut used = [false; CODES.len()];
        self.each(filter, |(place, _), pair, summary, now| {
            let row = keys.get(&*pair.declared.body.key).filter(|_| !summary.is_stray);
            let (Some(row), Some(column)) = (row, places.get(&place)) else { return };
            let Some(cell) = cells.get_mut(*row).and_then(|row| row.get_mut(*column)) else { return };
            let rank = (!now.is_pressing(), now.effective);
            if *cell != Matrix::EMPTY as u8 && worst.get(&(*row, *column)).is_some_and(|worst| *worst <= rank)
            {
                return;
            }
            *cell = code(now);
            // Two apps of one key in a cluster are rare.
            worst.insert((*row, *column), rank);
        });
        for cell in cells.iter().flatten() {
            let number = CODES.iter().position(|code| code == cell);
            if let Some(used) = number.and_then(|number| used.get_mut(number)) {
                *used = true;
            }
        }
        let next = (following > keys.len()).then(|| keys.keys().next_back().map(|key| (*key).to_owned()));
        let rows = keys.into_keys().zip(cells).map(|(key, cells)| MatrixRow {
            key: key.to_owned(),
            cells: String::from_utf8_lossy(&cells).into_owned(),
        });
        Matrix {
            api_version: API_VERSION.into(),
            kind: Matrix::KIND.into(),
            columns,
            columns_omitted,
            rows: rows.collect(),
            legend: legend().filter(|(number, _)| used.get(*number) == Some(&true)).map(|it| it.1).collect(),
            extent: PageExtent { total, next: next.flatten() },
            coverage: self.coverage(filter),
        }
    }
}

/// Returns the character of the present state of an app.
fn code(now: PairNow) -> u8 {
    let number = number(now.health, now.observed, now.is_pressing());
    CODES.get(number).copied().unwrap_or(Matrix::EMPTY as u8)
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
