//! The rules and the actions that are part of Taffrail.

#[cfg(feature = "lua")]
use std::collections::BTreeSet;

use crate::layer::Layer;
#[cfg(feature = "lua")]
use crate::lua::Customizations;
use crate::origin::Origin;
use crate::set::RuleSet;

/// The groups in `library/`: names and texts of their rules.
const GROUPS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/library.rs"));

impl RuleSet {
    /// Returns the rule set with the rules in YAML that are part of Taffrail; [`taffrail_status`] decides where these
    /// do not. The rules of a group are parsed when an object of it is first judged.
    pub fn shipped() -> RuleSet {
        RuleSet::bare().with(Layer::lazy(Origin::Shipped, GROUPS))
    }
}

/// The scripts in `actions/`: their paths there, and their texts.
#[cfg(feature = "lua")]
const ACTIONS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/actions.rs"));

/// Returns the action scripts that are part of Taffrail, for widely used kinds.
#[cfg(feature = "lua")]
pub fn shipped_actions() -> Customizations {
    Customizations::of_folder(Origin::Shipped, ACTIONS.iter().copied())
}

/// Returns the groups and kinds that have actions that are part of Taffrail.
#[cfg(feature = "lua")]
pub fn shipped_action_kinds() -> BTreeSet<(&'static str, &'static str)> {
    // `GROUP/KIND/actions/…`
    let kind = |path: &'static str| path.split_once("/actions/")?.0.split_once('/');
    ACTIONS.iter().filter_map(|(path, _)| kind(path)).collect()
}

/// Returns the names of the actions that are part of Taffrail, of all kinds together, such as `restart`.
#[cfg(feature = "lua")]
pub fn shipped_action_names() -> BTreeSet<&'static str> {
    // `GROUP/KIND/actions/NAME/action.lua`
    let names = ACTIONS.iter().filter_map(|(path, _)| path.strip_suffix("/action.lua")?.rsplit('/').next());
    names.collect()
}
