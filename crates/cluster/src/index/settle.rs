//! What changes mean for the status of objects.

use jiff::Timestamp;
use rustc_hash::FxHashSet;

use super::Index;
use super::events::About;

/// What is not settled yet.
#[derive(Debug, Default)]
pub(super) struct Settling {
    roots: FxHashSet<u32>,
}

impl Index {
    pub(super) fn unsettle(&mut self, place: u32) {
        self.settling.roots.insert(place);
    }

    pub(super) fn unsettle_gone(&mut self, place: u32) {
        self.settling.roots.remove(&place);
    }

    pub(super) fn unsettle_told(&mut self, about: &About) {
        let _ = about;
    }

    pub(super) fn unsettle_scope(&mut self, kind: super::KindId) {
        let _ = kind;
    }

    /// todo
    pub fn settle(&mut self, now: Timestamp) {
        let _ = now;
    }
}
