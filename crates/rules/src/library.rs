//! The rules and the actions that come with the program.

#[cfg(feature = "lua")]
use std::collections::BTreeSet;

use crate::layer::{Layer, Origin};
#[cfg(feature = "lua")]
use crate::lua::Customizations;
use crate::set::RuleSet;

/// The groups in `library/`, and the texts of their rules.
const GROUPS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/library.rs"));

impl RuleSet {
    /// The library, and what is built in. The rules of a group are read when an object of it is judged first.
    pub fn shipped() -> RuleSet {
        RuleSet::bare().with(Layer::lazy(Origin::Shipped, GROUPS))
    }
}

/// The scripts in `actions/`: their paths there, and their texts.
#[cfg(feature = "lua")]
const ACTIONS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/actions.rs"));

/// The actions that come with the program: what can be done with objects of the kinds that people run.
#[cfg(feature = "lua")]
pub fn shipped_actions() -> Customizations {
    Customizations::of_folder(Origin::Shipped, ACTIONS.iter().copied())
}

/// Returns the names of the actions that come with the program, for all kinds together.
#[cfg(feature = "lua")]
pub fn shipped_action_names() -> BTreeSet<&'static str> {
    // `GROUP/KIND/actions/NAME/action.lua`
    let names = ACTIONS.iter().filter_map(|(path, _)| path.strip_suffix("/action.lua")?.rsplit('/').next());
    names.collect()
}
