//! The form of the dumps that `taffrail dump` writes: lines of JSON. The first line says of which cluster they are and
//! which kinds it serves, the last one which scopes were read; between them is a line for each object.

use serde::{Deserialize, Serialize};
use taffrail_apps::{KindCatalog, Read, ServedKind, Target, needs_body};
use taffrail_object::Projection;

/// The API version of the first and the last line.
pub const VERSION: &str = "cli.taffrail.dev/v1alpha1";

/// The API group of [`VERSION`]. Dumps contain no objects of this group except their own first and last line.
pub const GROUP: &str = "cli.taffrail.dev";

/// The `kind` of the first line of a dump.
pub const OPENING: &str = "Dump";

/// The `kind` of the last line of a dump.
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
    /// The version of the API server; `None` if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The time of the first request, by the clock of the machine that wrote the dump.
    pub observed_at: String,
    /// Seconds by which the clock of the API server was ahead of that machine; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead_seconds: Option<i64>,
    /// The only namespace that was read, beside cluster-scoped objects; absent if all namespaces were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The kinds that the API server serves, except metrics and those of `events.k8s.io`.
    pub kinds: Vec<ServedKind>,
    /// Groups whose kinds could not be discovered.
    #[serde(default)]
    pub broken: Vec<Broken>,
}

/// The name of the cluster, as its context has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Name {
    /// The name of the cluster.
    pub name: String,
}

/// An API group whose kinds could not be discovered when the dump was written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Broken {
    /// The group, empty for the core one; [`KindCatalog::ALL_GROUPS`] for all others, or an unknown one.
    pub group: String,
    /// The reason why the group's kinds could not be discovered, on one line.
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
    /// Single objects that had to be read by name (Secrets whose values the dump keeps, the Namespace `kube-system`)
    /// and could not be.
    #[serde(default)]
    pub unread: Vec<Unread>,
    /// The reason why nothing was read; absent unless the cluster did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
}

/// The reason why a cluster did not answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Lost {
    /// The reason why the cluster did not answer, as one word in CamelCase.
    pub reason: String,
    /// The reason why the cluster did not answer, as a sentence for people.
    pub message: String,
}

/// A kind, in one namespace or all, with the result of listing it for the dump.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedScope {
    /// The group, empty for the core one.
    pub group: String,
    /// The API version in which it was read.
    pub version: String,
    /// The name of the kind.
    pub kind: String,
    /// The plural name of the kind, as in URLs.
    pub plural: String,
    /// The namespace; absent if all namespaces were listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The result of listing the kind.
    pub state: State,
    /// The reason for a failure, as one word in CamelCase; empty after a success.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The reason for a failure, as a sentence for people; empty after a success.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The number of objects of this scope in the dump.
    pub objects: u64,
}

/// The result of listing a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// The kind was listed, and the dump contains all of its objects in the scope.
    Read,
    /// The API server does not serve the kind.
    NotServed,
    /// The API server refused the list: the user may not list the kind.
    Forbidden,
    /// The list failed, was not read to its end, or had items that are not objects.
    Failed,
}

/// A single object that had to be read by name for the dump and could not be: a Secret, or the Namespace `kube-system`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Unread {
    /// The group, empty for the core one.
    pub group: String,
    /// The name of the object's kind.
    pub kind: String,
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The reason why the object could not be read, as one word in CamelCase.
    pub reason: String,
    /// The reason why the object could not be read, as a sentence for people.
    pub message: String,
}

impl Opening {
    /// Parses the first line of a dump; `None` for any other line.
    pub fn read(line: &[u8]) -> Option<Opening> {
        let opening: Opening = serde_json::from_slice(line).ok()?;
        (opening.api_version == VERSION && opening.kind == OPENING).then_some(opening)
    }

    /// Returns the kinds of the server as they were discovered for the dump.
    pub fn catalog(&self) -> KindCatalog {
        let broken = self.broken.iter().map(|broken| (broken.group.clone(), broken.reason.clone()));
        KindCatalog::new(self.kinds.iter().cloned(), broken)
    }
}

impl RecordedScope {
    /// Returns the read of the plan that the scope answers: the list of the kind, in its namespace or all, with the
    /// bodies of the objects only if their verdict needs them.
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

    /// Returns true if the scope is of the same group and kind as `read`, and of all namespaces or of the same one.
    pub fn covers(&self, read: &Read) -> bool {
        self.group == read.group
            && self.kind == read.kind
            && (self.namespace.is_none() || self.namespace == read.namespace)
    }
}
