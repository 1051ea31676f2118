//! The rules that come with the program.

use crate::layer::{Layer, Origin};
use crate::set::RuleSet;

/// The groups in `library/`, and the texts of their rules.
const GROUPS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/library.rs"));

impl RuleSet {
    /// The library, and what is built in. The rules of a group are read when an object of it is judged first.
    pub fn shipped() -> RuleSet {
        RuleSet::bare().with(Layer::lazy(Origin::Shipped, GROUPS))
    }
}
