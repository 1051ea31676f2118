//! The results of scripts: the health of an object, its actions, and the changes of an action.

use serde_json::Value as Tree;
use taffrail_object::words;
use taffrail_status::Status;

/// The health of an object, as a script returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Argo CD's word.
    pub word: HealthWord,
    /// The reason, for people; may be empty.
    pub message: String,
}

/// Argo CD's words for health.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HealthWord {
    /// The object is healthy.
    Healthy,
    /// The object is not healthy yet, and may become so.
    Progressing,
    /// The object failed, or cannot become healthy.
    Degraded,
    /// The object is suspended on purpose.
    Suspended,
    /// The object does not exist.
    Missing,
    /// The health cannot be determined.
    Unknown,
}

words! { HealthWord { Healthy, Progressing, Degraded, Suspended, Missing, Unknown } }

impl HealthWord {
    /// Parses a word; the case of letters matters. Returns `None` if it is not one of Argo CD's.
    pub fn read(text: &str) -> Option<HealthWord> {
        HealthWord::ALL.into_iter().find(|word| word.as_str() == text)
    }

    /// Converts the word to a status. `Suspended` becomes `Current`; the verdict marks it as suspended.
    pub fn status(self) -> Status {
        match self {
            HealthWord::Healthy | HealthWord::Suspended => Status::Current,
            HealthWord::Progressing => Status::InProgress,
            HealthWord::Degraded => Status::Failed,
            HealthWord::Missing => Status::NotFound,
            HealthWord::Unknown => Status::Unknown,
        }
    }
}

/// An action on an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Action {
    /// The name by which the action is run.
    pub name: String,
    /// True if the action is not applicable to the object as it is.
    pub disabled: bool,
    /// The name for people; empty if the action has none.
    pub display_name: String,
    /// The CSS class of the icon in Argo CD's pages; empty if the action has none.
    pub icon_class: String,
    /// The parameters of the action.
    pub params: Vec<Parameter>,
}

/// A parameter of an action. Scripts receive its value as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameter {
    /// The name in `actionParams`.
    pub name: String,
    /// The current value; empty if the script does not state it.
    pub value: String,
    /// The type of the value; empty if the script does not state it.
    pub kind: String,
    /// The default for a user interface; empty if the script does not state it. Scripts do not receive it by
    /// themselves.
    pub default: String,
}

/// A change that an action makes to one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The way the object is written.
    pub operation: Operation,
    /// The whole object after the change.
    pub object: Tree,
}

/// The ways to write an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Creates the object.
    Create,
    /// Patches the object: the differences from the current one are written.
    Patch,
}
