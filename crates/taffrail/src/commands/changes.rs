//! The differences between an answer and the one that was printed last, for views that add to their output.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use taffrail_api::ErrorRow;
use taffrail_api::diff::{Comparable, KeyedRow, RowChange, diff};

use super::rows::{NamedRow, Row};
use crate::output::answer::Console;
use crate::output::names::NameWriter;
use crate::output::table::{Cell, Table};

/// Stores `answer` in `printed` and returns it, if it differs from the one printed last, which `printed` holds; else
/// returns `None`.
pub(super) fn news<T: Comparable>(printed: &mut Option<T>, answer: T) -> Option<&T> {
    match printed.as_ref().is_none_or(|printed| answer.differs(printed)) {
        true => Some(printed.insert(answer)),
        false => None,
    }
}

/// The list that `-w` printed last, so that only changes since then are printed.
pub(crate) struct Printed<T> {
    /// The rows and errors of the list; `None` if no list was printed yet.
    list: Option<(Vec<T>, Vec<ErrorRow>)>,
    /// The titles of the columns of the printed table; empty if no table was printed, or the last list had no rows.
    pub(super) columns: Vec<&'static str>,
    /// The printed rows about clusters that are known only in part.
    pub(super) partial: Vec<Row>,
}

/// A printed row that the new list no longer has.
pub(super) struct Removed<'p, T> {
    /// The row as it was printed.
    pub(super) old: &'p T,
    /// The row as it is now, if it still exists and only filters exclude it; else `None`.
    pub(super) now: Option<T>,
    /// True if the new list has another row of the same name: of several apps that list an object, one still does.
    pub(super) is_still_named: bool,
}

impl<T> Default for Printed<T> {
    fn default() -> Printed<T> {
        Printed { list: None, columns: Vec::new(), partial: Vec::new() }
    }
}

impl<T: KeyedRow> Printed<T> {
    fn rows(&self) -> &[T] {
        self.list.as_ref().map_or(&[], |(rows, _)| rows)
    }

    /// Returns the errors of the printed list; empty if none was printed.
    pub(super) fn errors(&self) -> &[ErrorRow] {
        self.list.as_ref().map_or(&[], |(_, errors)| errors)
    }

    /// Returns true if `rows` or `errors` differ from those of the printed list, or if none was printed yet.
    pub(super) fn is_other(&self, rows: &[T], errors: &[ErrorRow]) -> bool {
        self.list.is_none() || self.errors() != errors || !diff(self.rows(), rows).is_empty()
    }

    /// Stores this list as the one printed last.
    pub(super) fn set(&mut self, rows: Vec<T>, errors: Vec<ErrorRow>) {
        self.list = Some((rows, errors));
    }

    /// Returns `look(row)`, what is printed of a row, for each row that is new, or whose `look` differs from that of
    /// the printed row with its key, in the order of `rows`.
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

    /// Adds `rows` to `table`: all of them, or, if its header was printed before (`is_known`), only new and changed
    /// ones.
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
    /// Returns the printed rows whose keys are not among those of `rows`; `all` has the rows that filters on state
    /// exclude, too.
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

    /// Prints the names that are new in `rows`, and for each printed name that `rows` has no more a note: `Left` if the
    /// row is in `all`, that is, only filters exclude it, else `Gone`. With `several`, names begin with the cluster.
    pub(super) fn names(&self, rows: &[T], all: &[T], several: bool, console: &Console) -> io::Result<()> {
        let known: BTreeSet<String> = self.rows().iter().map(|row| row.name(several)).collect();
        let mut out = NameWriter::new(console);
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
