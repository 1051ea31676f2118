//! The results that concern a cluster in which anything may have changed.

use std::collections::BTreeSet;

use super::{Declaring, KeptRow, LastRows};
use crate::delivery::DeclaredPart;

/// The results to compute again.
#[derive(Debug, Default)]
pub(super) struct Renewed {
    /// The numbers of the rows.
    pub(super) rows: BTreeSet<u32>,
    /// The kept declarations.
    pub(super) parts: Vec<DeclaredPart>,
}

/// Returns what concerns the clusters with the indexes `renewed` in the fleet: the rows with one of them as home or
/// target, and the rows and kept declarations of each home with an app there. A row, and a declaration, looks only into
/// its home and its target. The label groups of the renewed clusters are not among the results.
pub(super) fn concerned(kept: &LastRows, renewed: &BTreeSet<usize>) -> Renewed {
    if renewed.is_empty() {
        return Renewed::default();
    }
    let LastRows { found, rows, part_nodes, .. } = kept;
    let there = found.all().filter(|app| app.cluster().is_some_and(|cluster| renewed.contains(&cluster)));
    let homes: BTreeSet<usize> = there.map(|app| app.home).chain(renewed.iter().copied()).collect();
    let home = |row: &KeptRow| match &row.declaring {
        Declaring::Tool(place) => found.get(*place).map(|app| app.home),
        Declaring::Labels((home, ..)) => Some(*home),
    };
    let is_concerned =
        |row: &&KeptRow| renewed.contains(&row.cluster) || home(row).is_none_or(|home| homes.contains(&home));
    let is_of_home = |part: &&DeclaredPart| {
        let (DeclaredPart::Object(home, _) | DeclaredPart::ArgoHomes(home) | DeclaredPart::Helm(home)) = part;
        homes.contains(home)
    };
    Renewed {
        rows: rows.iter().filter(is_concerned).map(|row| row.number).collect(),
        parts: part_nodes.keys().filter(is_of_home).cloned().collect(),
    }
}
