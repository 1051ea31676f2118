//! `taffrail actions` and `taffrail action` in a build without Lua: both return an error.

mod arguments;

use crate::complaint::{Complaint, Exit};
use crate::rule_source::WITHOUT_LUA;

pub(crate) use arguments::{ActionArguments, ActionsArguments};

pub(crate) fn list(_: &ActionsArguments) -> Result<Exit, Complaint> {
    Err(Complaint::usage(format!("cannot list actions: {WITHOUT_LUA}")))
}

pub(crate) fn run(_: &ActionArguments) -> Result<Exit, Complaint> {
    Err(Complaint::usage(format!("cannot run an action: {WITHOUT_LUA}")))
}
