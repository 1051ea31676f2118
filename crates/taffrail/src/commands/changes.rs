//! The differences between an answer and the one that was printed last, for views that add to their output.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use taffrail_api::ErrorRow;
use taffrail_api::diff::{Comparable, KeyedRow, RowChange, diff};

use super::rows::NamedRow;
use crate::output::answer::Console;
use crate::output::names::Names;
use crate::output::table::{Cell, Table};

/// Returns the answer to print, and stores it in `printed`; `None` if it says the same as `printed`, the one that was
/// printed last.
pub(super) fn news<T: Comparable>(printed: &mut Option<T>, answer: T) -> Option<&T> {
    match printed.as_ref().is_none_or(|printed| answer.differs(printed)) {
        true => Some(printed.insert(answer)),
        false => None,
    }
}

/// The list that `-w` printed last, to print only what changed since.
pub(crate) struct Printed<T> {
    /// The list; `None` if it was not printed yet.
    list: Option<(Vec<T>, Vec<ErrorRow>)>,
    /// The titles of the columns of the printed table; empty if no table was printed.
    pub(super) columns: Vec<&'static str>,
}

/// A printed row that the new list no longer has.
pub(super) struct Removed<'p, T> {
    /// The row as it was printed.
    pub(super) old: &'p T,
    /// The present row, if only filters exclude it now.
    pub(super) now: Option<T>,
    /// True if the new list has another row of the same name: of several apps that list an object, one still does.
    pub(super) is_still_named: bool,
}

impl<T> Default for Printed<T> {
    fn default() -> Printed<T> {
        Printed { list: None, columns: Vec::new() }
    }
}

impl<T: KeyedRow> Printed<T> {
    fn rows(&self) -> &[T] {
        self.list.as_ref().map_or(&[], |(rows, _)| rows)
    }

    /// Returns the errors of the printed list: scopes that could not be read.
    pub(super) fn errors(&self) -> &[ErrorRow] {
        self.list.as_ref().map_or(&[], |(_, errors)| errors)
    }

    /// Returns true if `rows` or `errors` differ from those of the printed list, or if none was printed yet.
    pub(super) fn is_other(&self, rows: &[T], errors: &[ErrorRow]) -> bool {
        self.list.is_none() || self.errors() != errors || !diff(self.rows(), rows).is_empty()
    }

    /// Records that this list is printed now.
    pub(super) fn set(&mut self, rows: Vec<T>, errors: Vec<ErrorRow>) {
        self.list = Some((rows, errors));
    }

    /// Returns the rows that are new, and those that look different now: `look` returns what is printed of a row.
    pub(super) fn changed<L: PartialEq>(
        &self,
        rows: &[T],
        look: impl Fn(&T) -> L,
    ) -> impl Iterator<Item = L> {
        let known: BTreeMap<T::Key, &T> = self.rows().iter().map(|row| (row.key(), row)).collect();
        diff(self.rows(), rows).into_iter().filter_map(move |change| match change {
            RowChange::Added(row) => Some(look(&row)),
            RowChange::Changed(row) => {
                let (old, row) = (known.get(&row.key()).map(|old| look(old)), look(&row));
                (old.as_ref() != Some(&row)).then_some(row)
            }
            RowChange::Removed(_) => None,
        })
    }

    /// Adds to `table` the rows to print: all of them, or below a header that `is_known` those that changed.
    pub(super) fn fill<W: Write>(
        &self,
        table: &mut Table<W>,
        rows: &[T],
        is_known: bool,
        cells: impl Fn(&T) -> Vec<Cell>,
    ) -> io::Result<()> {
        if !is_known {
            return rows.iter().try_for_each(|row| table.row(cells(row)));
        }
        rows.iter().try_for_each(|row| table.measure(cells(row)))?;
        self.changed(rows, cells).try_for_each(|row| table.row(row))
    }
}

impl<T: NamedRow> Printed<T> {
    /// Returns the printed rows that are not in `rows`; `all` are the rows without filters.
    pub(super) fn removed(&self, rows: &[T], all: &[T]) -> Vec<Removed<'_, T>> {
        let keys: BTreeSet<T::Key> = rows.iter().map(T::key).collect();
        let gone: Vec<&T> = self.rows().iter().filter(|row| !keys.contains(&row.key())).collect();
        if gone.is_empty() {
            return Vec::new();
        }
        let names: BTreeSet<String> = rows.iter().map(|row| row.name(true)).collect();
        let all: BTreeMap<T::Key, &T> = all.iter().map(|row| (row.key(), row)).collect();
        let removed = |old| {
            let (now, is_still_named) =
                (all.get(&T::key(old)).map(|row| T::clone(row)), names.contains(&T::name(old, true)));
            Removed { old, now, is_still_named }
        };
        gone.into_iter().map(removed).collect()
    }

    /// Prints the names that are new in `list`, and for each name that it no longer has a note: `Left` if the
    /// filters exclude it now, `Gone` if it does not exist any more. `several` adds the cluster to names.
    pub(super) fn names(&self, rows: &[T], all: &[T], several: bool, console: &Console) -> io::Result<()> {
        let known: BTreeSet<String> = self.rows().iter().map(|row| row.name(several)).collect();
        let mut out = Names::new(console);
        let names = rows.iter().map(|row| row.name(several)).filter(|name| !known.contains(name));
        names.into_iter().try_for_each(|name| out.write(&name))?;
        // What several apps list stays while one of them does.
        for Removed { old, now, .. } in self.removed(rows, all).into_iter().filter(|it| !it.is_still_named) {
            // Its name alone would read as if it had come.
            out.note(&old.name(several), if now.is_some() { "Left" } else { "Gone" })?;
        }
        out.finish()
    }
}
