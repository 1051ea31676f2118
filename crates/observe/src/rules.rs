//! The rules by which a fleet is judged.

use std::fmt::Debug;

use taffrail_status::ActiveRules;

/// The rules by which a fleet is judged, for as long as it is read.
pub trait FleetRules: Debug + Send + Sync {
    /// Returns the rules in force.
    fn active(&self) -> ActiveRules<'_>;
}
