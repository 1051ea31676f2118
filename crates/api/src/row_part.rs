//! Parts of an app's row that a source of reports cannot tell.

use serde::{Deserialize, Serialize};
use taffrail_apps::App;

/// A part of an app's row that its source did not observe, because it has no way to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum RowPart {
    /// The health of the objects: `health` is that of the declaring object, as its delivery tool reports it, or Unknown.
    Health,
    /// The number of declared objects and their statuses: `counts` and `objects` are 0.
    Objects,
    /// The sync state.
    Sync,
    /// The revision that is desired, and the one of the last sync that was tried.
    Revisions,
    /// The revision that is applied.
    Applied,
    /// The suspension: `suspended` is false.
    Suspended,
    /// The Git repository, OCI artifact or chart.
    Source,
    /// The messages of the objects and of the delivery tool.
    Message,
}

impl RowPart {
    /// All parts.
    pub const ALL: [RowPart; 8] = [
        RowPart::Health,
        RowPart::Objects,
        RowPart::Sync,
        RowPart::Revisions,
        RowPart::Applied,
        RowPart::Suspended,
        RowPart::Source,
        RowPart::Message,
    ];
}

/// A set of parts of a row that its source did not observe; empty by default, as for sources that read API servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(from = "Vec<RowPart>", into = "Vec<RowPart>")]
pub struct Unobserved(u8);

impl Unobserved {
    /// Returns true if the source observed all parts.
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// Returns true if the set has `part`.
    pub fn has(self, part: RowPart) -> bool {
        self.0 & (1 << part as u8) != 0
    }

    /// Returns the set without `part`.
    #[must_use]
    pub fn without(self, part: RowPart) -> Unobserved {
        Unobserved(self.0 & !(1 << part as u8))
    }

    /// Returns the parts that are in this set or in `other`.
    #[must_use]
    pub fn union(self, other: Unobserved) -> Unobserved {
        Unobserved(self.0 | other.0)
    }

    /// Iterates over the parts in the set, in their order.
    pub fn iter(self) -> impl Iterator<Item = RowPart> {
        RowPart::ALL.into_iter().filter(move |part| self.has(*part))
    }
}

impl FromIterator<RowPart> for Unobserved {
    fn from_iter<I: IntoIterator<Item = RowPart>>(parts: I) -> Unobserved {
        Unobserved(parts.into_iter().fold(0, |set, part| set | 1 << part as u8))
    }
}

impl From<Vec<RowPart>> for Unobserved {
    fn from(parts: Vec<RowPart>) -> Unobserved {
        parts.into_iter().collect()
    }
}

impl From<Unobserved> for Vec<RowPart> {
    fn from(set: Unobserved) -> Vec<RowPart> {
        set.iter().collect()
    }
}

/// Returns the parts of an app's row that were not observed, because the cluster of its objects is read lightly; none
/// if it is not.
pub(crate) fn unobserved_parts(app: &App) -> Unobserved {
    let Some(unread) = &app.unread else { return Unobserved::default() };
    let parts: Unobserved = [RowPart::Health, RowPart::Objects].into_iter().collect();
    if unread.is_said { parts.without(RowPart::Health) } else { parts }
}

/// Returns true if the health of an app's objects is what a controller says of objects that were not read.
pub(crate) fn is_said(app: &App) -> bool {
    app.unread.as_ref().is_some_and(|unread| unread.is_said)
}
