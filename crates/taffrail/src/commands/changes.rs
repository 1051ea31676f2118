//! The changes of a list since it was printed, for views that add to their output.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use taffrail_api::diff::{RowChange, diff};
use taffrail_api::{ErrorRow, List};

use super::rows::ListRow;
use crate::output::answer;
use crate::output::names::Names;
use crate::output::table::Cell;

/// The list that `-w` printed last, to print only what changed since.
pub(super) struct Printed<T> {
    /// The list; `None` if it was not printed yet.
    pub(super) list: Option<List<T>>,
    /// The titles of the columns of the printed table; empty if no table was printed.
    pub(super) columns: Vec<&'static str>,
}

impl<T> Default for Printed<T> {
    fn default() -> Printed<T> {
        Printed { list: None, columns: Vec::new() }
    }
}

impl<T: ListRow> Printed<T> {
    fn rows(&self) -> &[T] {
        self.list.as_ref().map_or(&[], |list| &list.items)
    }

    /// Returns the errors of the printed list: scopes that could not be read.
    pub(super) fn errors(&self) -> &[ErrorRow] {
        self.list.as_ref().map_or(&[], |list| &list.errors)
    }

    /// Returns true if `list` differs from the printed list in a row or an error, or if none was printed yet.
    pub(super) fn is_other(&self, list: &List<T>) -> bool {
        self.list.is_none() || self.errors() != list.errors || !diff(self.rows(), &list.items).is_empty()
    }

    /// Returns the cells of the rows of `list` that are new, and of those that look different now.
    pub(super) fn changed(
        &self,
        list: &List<T>,
        cells: impl Fn(&T) -> Vec<Cell>,
    ) -> impl Iterator<Item = Vec<Cell>> {
        let known: BTreeMap<T::Key, &T> = self.rows().iter().map(|row| (row.key(), row)).collect();
        diff(self.rows(), &list.items).into_iter().filter_map(move |change| match change {
            RowChange::Added(row) => Some(cells(&row)),
            RowChange::Changed(row) => {
                let (old, row) = (known.get(&row.key()).map(|old| cells(old)), cells(&row));
                (old.as_ref() != Some(&row)).then_some(row)
            }
            RowChange::Removed(_) => None,
        })
    }

    /// Returns the printed rows that `list` no longer has, each with its present row if `all`, the list without
    /// filters, still has it.
    pub(super) fn removed(&self, list: &List<T>, all: &dyn Fn() -> Vec<T>) -> Vec<(&T, Option<T>)> {
        let names: BTreeSet<String> = list.items.iter().map(|row| row.name(true)).collect();
        // What several apps list stays while one of them does.
        let gone: Vec<&T> = self.rows().iter().filter(|row| !names.contains(&row.name(true))).collect();
        if gone.is_empty() {
            return Vec::new();
        }
        let all: BTreeMap<T::Key, T> = all().into_iter().map(|row| (row.key(), row)).collect();
        gone.into_iter().map(|row| (row, all.get(&row.key()).cloned())).collect()
    }

    /// Prints the names that are new in `list`, and for each name that it no longer has a note: `Left` if the
    /// filters exclude it now, `Gone` if it does not exist any more. `several` adds the cluster to names.
    pub(super) fn names(&self, list: &List<T>, all: &dyn Fn() -> Vec<T>, several: bool) -> io::Result<()> {
        let known: BTreeSet<String> = self.rows().iter().map(|row| row.name(several)).collect();
        let mut out = Names::new(Box::new(answer::programs()));
        let names = list.items.iter().map(|row| row.name(several)).filter(|name| !known.contains(name));
        names.into_iter().try_for_each(|name| out.write(&name))?;
        for (old, now) in self.removed(list, all) {
            // Its name alone would read as if it had come.
            out.note(&old.name(several), if now.is_some() { "Left" } else { "Gone" })?;
        }
        out.finish()
    }
}
