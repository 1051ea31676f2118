//! Objects by kind and namespace.
//!
//! A *cell* is the list of the objects of one kind in one namespace. Those of a kind, and those in a namespace, are the
//! cells of it, one after the other.

use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use super::KindId;
use super::chunked::Vacant;
use super::contents::{Contents, counts};
use super::pool::NONE;
use super::record::{Cell, List, NamespaceHead, Neighbours};

impl Contents {
    /// How many objects of a kind have each status, in one namespace (empty: in none) or wherever they are.
    pub fn counts_of_kind(&self, kind: KindId, namespace: Option<&str>) -> Counts {
        let one = namespace.and_then(|namespace| self.cells.get(self.cell(kind, namespace)?));
        let all = namespace.is_none().then(|| self.cells_of_kind(kind)).into_iter().flatten();
        let mut sum = [0; Status::ALL.len()];
        for cell in one.into_iter().chain(all) {
            sum.iter_mut().zip(cell.counts).for_each(|(sum, count)| *sum += count);
        }
        counts(&sum)
    }

    fn hash_of_cell(&self, kind: u32, namespace: &str) -> u64 {
        self.seed.bytes(namespace.as_bytes()) ^ u64::from(kind).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn rehash_cell(&self, at: u32) -> u64 {
        let cell = self.cells.get(at);
        cell.map_or(0, |cell| self.hash_of_cell(cell.kind, self.name_of_namespace(cell.namespace)))
    }

    pub(super) fn cell(&self, kind: KindId, namespace: &str) -> Option<u32> {
        let is_it = |at| {
            let cell = self.cells.get(at);
            cell.is_some_and(|own| own.kind == kind.0 && self.name_of_namespace(own.namespace) == namespace)
        };
        self.by_cell.find(self.hash_of_cell(kind.0, namespace), is_it)
    }

    fn namespace(&self, name: &str) -> Option<u32> {
        let is_it = |at| self.name_of_namespace(at) == name;
        self.by_namespace.find(self.seed.bytes(name.as_bytes()), is_it)
    }

    pub(super) fn cell_or_new(&mut self, vacant: &mut CellVacant, kind: KindId, namespace: &str) -> u32 {
        if let Some(at) = self.cell(kind, namespace) {
            return at;
        }
        let home = match namespace {
            "" => NONE,
            name => self.namespace(name).unwrap_or_else(|| self.new_namespace(vacant, name)),
        };
        let at = vacant.cells.take(&mut self.cells);
        let kind_head = self.kind_heads.get(kind.0).copied().unwrap_or(NONE);
        let home_head = self.namespaces.get(home).and_then(Option::as_ref).map_or(NONE, |head| head.cells);
        let first_of = |next| Neighbours { next, previous: NONE };
        if let Some(cell) = self.cells.get_mut(at) {
            *cell = Cell {
                kind: kind.0,
                namespace: home,
                of_kind: first_of(kind_head),
                of_namespace: first_of(home_head),
                ..Cell::default()
            };
        }
        if let Some(second) = self.cells.get_mut(kind_head) {
            second.of_kind.previous = at;
        }
        if let Some(second) = self.cells.get_mut(home_head) {
            second.of_namespace.previous = at;
        }
        if let Some(head) = self.kind_heads.get_mut(kind.0) {
            *head = at;
        }
        if let Some(Some(head)) = self.namespaces.get_mut(home) {
            head.cells = at;
        }
        let hash = self.hash_of_cell(kind.0, namespace);
        let mut table = std::mem::take(&mut self.by_cell);
        table.insert(hash, at, |at| self.rehash_cell(at));
        self.by_cell = table;
        at
    }

    fn new_namespace(&mut self, vacant: &mut CellVacant, name: &str) -> u32 {
        let at = vacant.namespaces.take(&mut self.namespaces);
        if let Some(place) = self.namespaces.get_mut(at) {
            *place = Some(NamespaceHead { name: name.into(), cells: NONE });
        }
        let mut table = std::mem::take(&mut self.by_namespace);
        let rehash = |at| self.seed.bytes(self.name_of_namespace(at).as_bytes());
        table.insert(self.seed.bytes(name.as_bytes()), at, rehash);
        self.by_namespace = table;
        at
    }

    pub(super) fn free_cell_if_empty(&mut self, vacant: &mut CellVacant, at: u32) {
        let Some(cell) = self.cells.get(at).copied().filter(|cell| cell.head == NONE) else { return };
        let hash = self.rehash_cell(at);
        let mut table = std::mem::take(&mut self.by_cell);
        table.remove(hash, at, |at| self.rehash_cell(at));
        self.by_cell = table;
        for (which, neighbours) in [(false, cell.of_kind), (true, cell.of_namespace)] {
            let Neighbours { next, previous } = neighbours;
            let mut of = |at: u32, change: &dyn Fn(&mut Neighbours)| {
                if let Some(cell) = self.cells.get_mut(at) {
                    change(if which { &mut cell.of_namespace } else { &mut cell.of_kind });
                }
            };
            of(next, &|own| own.previous = previous);
            of(previous, &|own| own.next = next);
        }
        if cell.of_kind.previous == NONE
            && let Some(head) = self.kind_heads.get_mut(cell.kind)
        {
            *head = cell.of_kind.next;
        }
        if cell.of_namespace.previous == NONE
            && let Some(Some(head)) = self.namespaces.get_mut(cell.namespace)
        {
            head.cells = cell.of_namespace.next;
            if head.cells == NONE {
                let hash = self.seed.bytes(self.name_of_namespace(cell.namespace).as_bytes());
                let mut table = std::mem::take(&mut self.by_namespace);
                let rehash = |at| self.seed.bytes(self.name_of_namespace(at).as_bytes());
                table.remove(hash, cell.namespace, rehash);
                self.by_namespace = table;
                if let Some(place) = self.namespaces.get_mut(cell.namespace) {
                    *place = None;
                }
                vacant.namespaces.give(cell.namespace);
            }
        }
        if let Some(place) = self.cells.get_mut(at) {
            *place = Cell::default();
        }
        vacant.cells.give(at);
    }

    pub(super) fn enter_cell(&mut self, at: u32, place: u32, status: Status) {
        let mut head = self.cells.get(at).map_or(NONE, |cell| cell.head);
        self.push(List::Cell, &mut head, place);
        if let Some(cell) = self.cells.get_mut(at) {
            cell.head = head;
            cell.counts[status as usize] += 1;
        }
    }

    pub(super) fn leave_cell(&mut self, at: u32, place: u32, status: Status) {
        let mut head = self.cells.get(at).map_or(NONE, |cell| cell.head);
        self.unlink(List::Cell, &mut head, place);
        if let Some(cell) = self.cells.get_mut(at) {
            cell.head = head;
            cell.counts[status as usize] -= 1;
        }
    }

    pub(super) fn enter_status(&mut self, place: u32, status: Status) {
        let mut head = self.status_heads[status as usize];
        self.push(List::Status, &mut head, place);
        self.status_heads[status as usize] = head;
        self.counts[status as usize] += 1;
    }

    pub(super) fn leave_status(&mut self, place: u32, status: Status) {
        let mut head = self.status_heads[status as usize];
        self.unlink(List::Status, &mut head, place);
        self.status_heads[status as usize] = head;
        self.counts[status as usize] -= 1;
    }

    pub(super) fn change_status(&mut self, place: u32, at: u32, before: Status, after: Status) {
        self.leave_status(place, before);
        self.enter_status(place, after);
        if let Some(cell) = self.cells.get_mut(at) {
            cell.counts[before as usize] -= 1;
            cell.counts[after as usize] += 1;
        }
    }

    /// The cells of a kind.
    pub(super) fn cells_of_kind(&self, kind: KindId) -> impl Iterator<Item = &Cell> {
        let cell = |at: u32| self.cells.get(at);
        let first = self.kind_heads.get(kind.0).and_then(|head| cell(*head));
        std::iter::successors(first, move |own| cell(own.of_kind.next))
    }

    /// The cells of a namespace.
    pub(super) fn cells_of_namespace<'s>(
        &'s self,
        namespace: &str,
    ) -> impl Iterator<Item = &'s Cell> + use<'s> {
        let cell = |at: u32| self.cells.get(at);
        let head = self.namespace(namespace).and_then(|at| self.namespaces.get(at)?.as_ref());
        std::iter::successors(head.and_then(|head| cell(head.cells)), move |own| cell(own.of_namespace.next))
    }

    /// The places in a cell.
    pub(super) fn places(&self, cell: &Cell) -> impl Iterator<Item = u32> + use<'_> {
        self.list(List::Cell, cell.head)
    }
}

/// Vacant places of cells and namespaces.
#[derive(Debug, Default)]
pub(super) struct CellVacant {
    cells: Vacant,
    namespaces: Vacant,
}
