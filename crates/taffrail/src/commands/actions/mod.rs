//! `taffrail actions` and `taffrail action`: lists the actions of an object, and runs one.
//!
//! [`taffrail_observe::operations`] finds the object and its scripts, plans the writes and sends them; this module
//! asks, and prints the plan and the results.

mod arguments;
mod list;
mod located;
mod run;

use std::path::Path;

use taffrail_observe::operations::ActionScripts;

use crate::command_error::CommandError;
use crate::rule_source;

pub(crate) use arguments::{ActionArguments, ActionsArguments};
pub(crate) use list::list;
pub(crate) use run::run;

/// Loads the action scripts in `folder`, if one is given, and after them Taffrail's own.
fn scripts(folder: Option<&Path>) -> Result<ActionScripts, CommandError> {
    let own = folder.map(rule_source::scripts_in_lua).transpose();
    let own = own.map_err(|error| {
        CommandError::unreadable("cannot read the action scripts in the folder of --rules")
            .with_source(&error)
    })?;
    Ok(ActionScripts::new(own))
}
