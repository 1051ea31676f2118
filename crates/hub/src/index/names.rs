//! The table of the names, namespaces and keys of apps. Pairs hold the numbers of their names, so that filters, groups
//! and sorts compare numbers instead of texts.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// The number of a name: its index in the [`NameTable`].
pub(crate) type NameId = u32;

/// The names of a published fleet.
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    texts: Vec<Arc<str>>,
    /// The numbers of all names sorted by text, and, indexed by number, the place of each name in that order; computed
    /// at the first use.
    order: OnceLock<(Vec<NameId>, Vec<u32>)>,
}

impl Clone for NameTable {
    fn clone(&self) -> NameTable {
        NameTable { texts: self.texts.clone(), order: OnceLock::new() }
    }
}

impl NameTable {
    /// Returns the number of names; their numbers are those below it.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns the text of a name; empty if the table has no name of this number.
    pub(crate) fn text(&self, id: NameId) -> &str {
        self.texts.get(id as usize).map_or("", |text| text)
    }

    /// Returns the rank of a name: twice its place among all names sorted by text, so that
    /// [`rank_of`](NameTable::rank_of) has odd numbers for other texts. `i64::MAX` if the table has no name of this
    /// number.
    pub(crate) fn rank(&self, id: NameId) -> i64 {
        self.order().1.get(id as usize).map_or(i64::MAX, |rank| 2 * i64::from(*rank))
    }

    /// Returns the [`rank`](NameTable::rank) of the name with this text; if there is none, the odd number between the
    /// ranks of the names around it.
    pub(crate) fn rank_of(&self, text: &str) -> i64 {
        let order = &self.order().0;
        let before = order.partition_point(|id| self.text(*id) < text);
        let is_there = order.get(before).is_some_and(|id| self.text(*id) == text);
        let rank = 2 * i64::try_from(before).unwrap_or(i64::MAX / 2);
        if is_there { rank } else { rank - 1 }
    }

    /// Returns the number of the name with this text; `None` if the table does not have it.
    pub(crate) fn find(&self, text: &str) -> Option<NameId> {
        let order = &self.order().0;
        order.binary_search_by(|id| self.text(*id).cmp(text)).ok().and_then(|at| order.get(at)).copied()
    }

    /// Returns, indexed by the number of a name, true if the name contains `text` (in lower case), ignoring case.
    pub(crate) fn containing(&self, text: &str) -> Vec<bool> {
        self.texts.iter().map(|name| contains(name, text)).collect()
    }

    fn order(&self) -> &(Vec<NameId>, Vec<u32>) {
        self.order.get_or_init(|| {
            let mut sorted: Vec<NameId> = (0..).take(self.texts.len()).collect();
            sorted.sort_unstable_by(|one, other| self.text(*one).cmp(self.text(*other)));
            let mut ranks = vec![0; self.texts.len()];
            for (rank, id) in (0..).zip(&sorted) {
                if let Some(own) = ranks.get_mut(*id as usize) {
                    *own = rank;
                }
            }
            (sorted, ranks)
        })
    }
}

/// Returns true if `name` contains `text`, ignoring case; `text` must be in lower case.
pub(crate) fn contains(name: &str, text: &str) -> bool {
    match name.is_ascii() && !name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => memchr::memmem::find(name.as_bytes(), text.as_bytes()).is_some(),
        false => name.to_lowercase().contains(text),
    }
}

/// The growing table of names, with the way from text to number.
#[derive(Debug, Default)]
pub(crate) struct Names {
    ids: HashMap<Arc<str>, NameId>,
    table: Arc<NameTable>,
}

impl Names {
    /// Returns the number of a name; adds the name if it is new. Names beyond the largest number share that number.
    pub(crate) fn id(&mut self, name: &str) -> NameId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        // More names than numbers have no apps: a hub has a million, and 20,000 of a cluster.
        let id = NameId::try_from(self.table.len()).unwrap_or(NameId::MAX);
        let name: Arc<str> = name.into();
        let table = Arc::make_mut(&mut self.table);
        table.texts.push(Arc::clone(&name));
        table.order = OnceLock::new();
        self.ids.insert(name, id);
        id
    }

    /// Returns the table of all names added so far. Names added later do not change it.
    pub(crate) fn table(&self) -> Arc<NameTable> {
        Arc::clone(&self.table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_the_order_of_texts() {
        let mut names = Names::default();
        let ids = ["web", "db", "web", "Queue"].map(|name| names.id(name));
        assert_eq!(ids, [0, 1, 0, 2]);
        let table = names.table();
        assert_eq!(ids.map(|id| table.rank(id)), [4, 2, 4, 0]);
        assert_eq!(["", "Queue", "app", "db", "x"].map(|text| table.rank_of(text)), [-1, 0, 1, 2, 5]);
        assert_eq!((table.find("db"), table.find("dc")), (Some(1), None));
        assert_eq!(table.containing("ue"), [false, false, true]);
        names.id("app");
        assert_eq!((table.len(), names.table().rank(3), names.table().rank(1)), (3, 2, 4));
    }
}
