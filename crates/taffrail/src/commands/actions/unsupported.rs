//! `taffrail actions` and `taffrail action` in a build without Lua: both return an error.

mod arguments;

use crate::command_error::{CommandError, Exit};
use crate::output::answer::Console;
use crate::rule_source::WITHOUT_LUA;

pub(crate) use arguments::{ActionArguments, ActionsArguments};

pub(crate) fn list(_: &ActionsArguments, _: &Console) -> Result<Exit, CommandError> {
    Err(CommandError::usage(format!("cannot list actions: {WITHOUT_LUA}")))
}

pub(crate) fn run(_: &ActionArguments, _: &Console) -> Result<Exit, CommandError> {
    Err(CommandError::usage(format!("cannot run an action: {WITHOUT_LUA}")))
}
