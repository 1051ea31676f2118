//! What scripts answer.

use std::fmt;

use serde_json::Value as Tree;
use taffrail_status::Status;

/// How an object is, as a script says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// In Argo CD's word.
    pub word: HealthWord,
    /// Why, for people; may be empty.
    pub message: String,
}

/// Argo CD's words for health.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HealthWord {
    /// All is well.
    Healthy,
    /// Not yet healthy, and may become so.
    Progressing,
    /// It failed, or cannot become healthy.
    Degraded,
    /// It rests because somebody wants so.
    Suspended,
    /// It is not there.
    Missing,
    /// That cannot be said.
    Unknown,
}

impl HealthWord {
    /// All of them.
    pub const ALL: [HealthWord; 6] = [
        HealthWord::Healthy,
        HealthWord::Progressing,
        HealthWord::Degraded,
        HealthWord::Suspended,
        HealthWord::Missing,
        HealthWord::Unknown,
    ];

    /// As scripts write it.
    pub fn as_str(self) -> &'static str {
        match self {
            HealthWord::Healthy => "Healthy",
            HealthWord::Progressing => "Progressing",
            HealthWord::Degraded => "Degraded",
            HealthWord::Suspended => "Suspended",
            HealthWord::Missing => "Missing",
            HealthWord::Unknown => "Unknown",
        }
    }

    /// The word that is written so, in this case of letters.
    pub fn read(text: &str) -> Option<HealthWord> {
        HealthWord::ALL.into_iter().find(|word| word.as_str() == text)
    }

    /// What it means in ours. What is suspended is `Current`, and marked as suspended beside.
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

impl fmt::Display for HealthWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Something that can be done with an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Action {
    /// Its name, by which it is run.
    pub name: String,
    /// Whether it makes no sense with the object as it is.
    pub disabled: bool,
    /// Its name for people; empty where it has none of its own.
    pub display_name: String,
    /// The class of an icon in Argo CD's pages; empty where it has none.
    pub icon_class: String,
    /// What it wants to be told.
    pub params: Vec<Parameter>,
}

/// Something that an action wants to be told. Scripts get it as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in `actionParams`.
    pub name: String,
    /// The value it has now; empty where the script does not say.
    pub value: String,
    /// What sort of value it is; empty where the script does not say.
    pub kind: String,
    /// What to take where nothing is told; empty where the script does not say. It is for who asks people: scripts do not get it
    /// by themselves.
    pub default: String,
}

/// What an action does to one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Whether it is new.
    pub operation: Operation,
    /// The object as it shall be, whole.
    pub object: Tree,
}

/// What is done with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It is made.
    Create,
    /// It is changed to what is given: what differs from before is written.
    Patch,
}
