//! `taffrail actions` and `taffrail action`: lists the actions of an object, and runs one.
//!
//! [`taffrail_observe::operations`] finds the object and its scripts, plans the writes and sends them; this module
//! asks, and prints the plan and the results.

mod arguments;
mod list;
mod located;
mod run;

use std::collections::BTreeMap;
use std::path::Path;

use taffrail_api::operations::ActionQuestion;
use taffrail_observe::operations::ActionScripts;

use crate::command_error::CommandError;
use crate::rule_source;

use arguments::WhichArguments;
pub(crate) use arguments::{ActionArguments, ActionsArguments};
pub(crate) use list::list;
#[cfg(feature = "hub")]
pub(crate) use list::offered;
pub(crate) use run::run;

/// Returns the question about the actions of the object that the arguments name, for a hub. That about one action also has
/// its name and parameters.
fn question(which: &WhichArguments) -> ActionQuestion {
    ActionQuestion {
        action: String::new(),
        object: which.object.to_arg(),
        namespace: which.namespace.clone(),
        all_namespaces: which.all_namespaces,
        parameters: BTreeMap::new(),
        allow_create: Vec::new(),
    }
}

/// Loads the action scripts in `folder`, if one is given, and after them Taffrail's own.
fn scripts(folder: Option<&Path>) -> Result<ActionScripts, CommandError> {
    let own = folder.map(rule_source::scripts_in_lua).transpose();
    let own = own.map_err(|error| {
        CommandError::unreadable("cannot read the action scripts in the folder of --rules")
            .with_source(&error)
    })?;
    Ok(ActionScripts::new(own))
}
