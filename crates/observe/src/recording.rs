//! The form of the dumps that `taffrail dump` writes: lines of JSON. The first line says of which cluster they are and
//! which kinds it serves, the last one which scopes were read; between them is a line for each object.

use serde::{Deserialize, Serialize};
use taffrail_apps::{KindCatalog, Read, ServedKind, Target, needs_body};
use taffrail_object::Projection;

/// The API version of the first and the last line.
pub const VERSION: &str = "cli.taffrail.dev/v1alpha1";

/// The group of [`VERSION`]: objects of it are the dump's own lines, and no others are in a dump.
pub const GROUP: &str = "cli.taffrail.dev";

/// The kind of the first line.
pub const OPENING: &str = "Dump";

/// The kind of the last line.
pub const CLOSING: &str = "DumpEnd";

/// The first line of a dump.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Opening {
    /// The API version, [`VERSION`].
    pub api_version: String,
    /// The kind, [`OPENING`].
    pub kind: String,
    /// The name of the cluster.
    pub metadata: Name,
    /// The address of the API server.
    pub server: String,
    /// The version of the API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The time of the first request, by the clock of the machine that wrote the dump.
    pub observed_at: String,
    /// Seconds by which the clock of the API server was ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead_seconds: Option<i64>,
    /// The only namespace that was read; absent if all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The kinds that the API server serves.
    pub kinds: Vec<ServedKind>,
    /// Groups whose kinds could not be discovered.
    #[serde(default)]
    pub broken: Vec<Broken>,
}

/// The name of the cluster, as its context has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Name {
    /// The name.
    pub name: String,
}

/// A group whose kinds could not be discovered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Broken {
    /// The group, empty for the core one.
    pub group: String,
    /// One word in CamelCase.
    pub reason: String,
}

/// The last line of a dump.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Closing {
    /// The API version, [`VERSION`].
    pub api_version: String,
    /// The kind, [`CLOSING`].
    pub kind: String,
    /// The name of the cluster.
    pub metadata: Name,
    /// The number of lines between the first and the last one.
    pub lines: u64,
    /// The scopes that were read, or tried.
    pub scopes: Vec<RecordedScope>,
    /// Single objects whose bodies were needed and could not be read.
    #[serde(default)]
    pub unread: Vec<Unread>,
    /// The reason why nothing was read, of a cluster that did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
}

/// The reason why a cluster did not answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Lost {
    /// One word in CamelCase.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

/// A kind, in one namespace or in all, and the result of listing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedScope {
    /// The group, empty for the core one.
    pub group: String,
    /// The preferred version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural name, as it stands in paths.
    pub plural: String,
    /// The namespace; absent for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The outcome of listing it.
    pub state: State,
    /// One word in CamelCase, where it could not be read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The number of objects of it in the dump.
    pub objects: u64,
}

/// The result of listing a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// The dump holds all of its objects.
    Read,
    /// The API server does not serve it.
    NotServed,
    /// The API server refused.
    Forbidden,
    /// It could not be read, or not to its end.
    Failed,
}

/// A single object that could not be read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Unread {
    /// The group, empty for the core one.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace, empty where the kind has none.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// One word in CamelCase.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl Opening {
    /// Parses the first line of a dump; `None` for any other line.
    pub fn read(line: &[u8]) -> Option<Opening> {
        let opening: Opening = serde_json::from_slice(line).ok()?;
        (opening.api_version == VERSION && opening.kind == OPENING).then_some(opening)
    }

    /// Returns the kinds of the server, as discovered.
    pub fn catalog(&self) -> KindCatalog {
        let broken = self.broken.iter().map(|broken| (broken.group.clone(), broken.reason.clone()));
        KindCatalog::new(self.kinds.iter().cloned(), broken)
    }
}

impl RecordedScope {
    /// Returns the list that it stands for.
    pub fn read(&self) -> Read {
        let projection =
            if needs_body(&self.group, &self.kind) { Projection::Full } else { Projection::Metadata };
        Read {
            group: self.group.clone(),
            version: self.version.clone(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
            namespace: self.namespace.clone(),
            target: Target::List { labels: None, fields: None },
            projection,
        }
    }

    /// Returns true if `read` requests objects of it.
    pub fn covers(&self, read: &Read) -> bool {
        self.group == read.group
            && self.kind == read.kind
            && (self.namespace.is_none() || self.namespace == read.namespace)
    }
}
