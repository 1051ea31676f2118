//! The rules that judge in tests.

use taffrail_observe::FleetRules;
use taffrail_rules::RuleSet;
use taffrail_status::ActiveRules;
use taffrail_status::assess::Options;

/// The rules that are built into the program.
#[derive(Debug)]
pub(crate) struct Shipped(RuleSet);

impl Default for Shipped {
    fn default() -> Shipped {
        Shipped(RuleSet::shipped())
    }
}

impl FleetRules for Shipped {
    fn active(&self) -> ActiveRules<'_> {
        self.0.active(Options::DEFAULT)
    }
}
