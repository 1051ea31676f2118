//! The source of the rules by which a fleet is judged.

use std::fmt::Debug;

use taffrail_status::ActiveRules;

/// The rules that judge objects, kept for as long as a fleet is read or watched.
pub trait FleetRules: Debug + Send + Sync {
    /// Returns the rules and their options.
    fn active(&self) -> ActiveRules<'_>;
}
