//! The parameters of an action, which the user edits one after the other.

use std::collections::BTreeMap;

use taffrail_api::operations::ActionQuestion;
use taffrail_api::{ActionParameter, ObjectActionRow};

use super::operation::Change;
use super::question::ObjectPlace;

/// Returns the value of a parameter that is offered: the current one, which tells more than the default.
pub(super) fn present(parameter: &ActionParameter) -> &str {
    if parameter.value.is_empty() { &parameter.default } else { &parameter.value }
}

/// Returns the question about an action of an object; about all of them if `action` is empty.
pub(super) fn question(
    object: &ObjectPlace,
    action: &str,
    parameters: BTreeMap<String, String>,
) -> ActionQuestion {
    ActionQuestion {
        action: action.to_owned(),
        object: object.full_name(),
        namespace: None,
        all_namespaces: false,
        parameters,
        allow_create: Vec::new(),
    }
}

/// An action whose parameters the user edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ActionForm {
    object: ObjectPlace,
    action: String,
    parameters: Vec<ActionParameter>,
    /// The values that the user has confirmed, in the order of the parameters.
    values: Vec<String>,
    /// The value of the next parameter, as far as it is typed.
    pub(super) text: String,
}

impl ActionForm {
    pub(super) fn new(object: ObjectPlace, action: &ObjectActionRow) -> ActionForm {
        let parameters = action.parameters.clone();
        let text = parameters.first().map(present).unwrap_or_default().to_owned();
        ActionForm { object, action: action.name.clone(), parameters, values: Vec::new(), text }
    }

    /// Returns true while a parameter lacks its value.
    pub(super) fn is_open(&self) -> bool {
        self.values.len() < self.parameters.len()
    }

    /// Returns the form with the typed value, at its next parameter.
    pub(super) fn next(mut self) -> ActionForm {
        self.values.push(std::mem::take(&mut self.text));
        if let Some(parameter) = self.parameters.get(self.values.len()) {
            present(parameter).clone_into(&mut self.text);
        }
        self
    }

    /// Returns the text before the value: `scale: replicas (1 of 2) = `.
    pub(super) fn title(&self) -> String {
        let name = self.parameters.get(self.values.len()).map_or("", |parameter| &parameter.name);
        match self.parameters.len() {
            0 | 1 => format!("{}: {name} = ", self.action),
            all => format!("{}: {name} ({} of {all}) = ", self.action, self.values.len() + 1),
        }
    }

    /// Returns the change that the action makes with these values.
    pub(super) fn change(self) -> Change {
        let names = self.parameters.into_iter().map(|parameter| parameter.name);
        // A parameter without a value has its default.
        let parameters = names.zip(self.values).filter(|(_, value)| !value.is_empty()).collect();
        let question = Box::new(question(&self.object, &self.action, parameters));
        Change::Action { object: self.object, question }
    }
}
