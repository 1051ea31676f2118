//! Scopes: the parts of a cluster that an error concerns.

use std::fmt;

use serde::{Deserialize, Serialize};
use taffrail_object::{GroupKind, ObjectKey};

/// The smallest part of a cluster that a failure concerns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// The whole cluster.
    Cluster,
    /// An API group.
    Group(String),
    /// The objects of a kind, in one namespace or in all.
    Kind {
        /// The kind.
        kind: GroupKind,
        /// The namespace; `None` for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
    },
    /// The objects of all kinds in the namespace of this name; the cluster-scoped objects if the name is empty.
    Namespace(String),
    /// One object.
    Object(ObjectKey),
    /// A part of a dump, or another input, in words: a file, a line in it.
    Input(String),
}

impl Scope {
    /// Returns true if the object `key` is in this scope.
    pub(crate) fn holds(&self, key: &ObjectKey) -> bool {
        match self {
            Scope::Cluster => true,
            Scope::Group(group) => *group == key.group,
            Scope::Kind { kind, namespace } => {
                kind.group == key.group
                    && kind.kind == key.kind
                    && namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
            }
            Scope::Namespace(namespace) => *namespace == key.namespace,
            Scope::Object(object) => object == key,
            Scope::Input(_) => false,
        }
    }
}

/// Formats as `cluster`, `group metrics.k8s.io`, `apps/Deployment`, `apps/Deployment in shop`, `namespace
/// shop`, `objects without namespace`, the key of an object, or the words of an input.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Cluster => f.write_str("cluster"),
            Scope::Group(group) => write!(f, "group {group}"),
            Scope::Kind { kind, namespace: None } => kind.fmt(f),
            Scope::Kind { kind, namespace: Some(namespace) } => write!(f, "{kind} in {namespace}"),
            Scope::Namespace(namespace) if namespace.is_empty() => f.write_str("objects without namespace"),
            Scope::Namespace(namespace) => write!(f, "namespace {namespace}"),
            Scope::Object(key) => key.fmt(f),
            Scope::Input(place) => f.write_str(place),
        }
    }
}

/// A failure, with the smallest scope that it concerns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScopeError {
    /// The smallest scope that the failure affects: unreadable, malformed, claimed by several apps, over a limit, or
    /// not judged.
    pub scope: Scope,
    /// The reason in one CamelCase word: `Forbidden`, `Timeout`, `Malformed`, …
    pub reason: String,
    /// The message, for people.
    pub message: String,
}

/// The reasons of errors in which the server sent no answer.
const SILENT: [&str; 6] =
    ["ConnectionFailed", "ConnectionLost", "ConnectionRefused", "NameNotResolved", "ProxyFailed", "Timeout"];

/// Returns the message for a cluster that could not be read; if it sent no answer, the message begins with "does
/// not answer".
pub fn silence(error: &ScopeError) -> String {
    let silent = if is_silence(error) { "does not answer: " } else { "" };
    format!("{silent}{}", error.message)
}

/// Returns true if the reason of an error says that the server sent no answer, see [`SILENT`].
pub(crate) fn is_silence(error: &ScopeError) -> bool {
    SILENT.contains(&&*error.reason)
}

/// Returns `errors`, those of one cluster, without the ones that only repeat for a part why the whole cluster could not
/// be read: those of the same reason, or in which the server sent no answer either.
pub(crate) fn without_repeats(errors: &[ScopeError]) -> impl Iterator<Item = &ScopeError> {
    let whole = errors.iter().find(|error| error.scope == Scope::Cluster);
    let is_repeated = move |error: &&ScopeError| {
        let repeats =
            |whole: &ScopeError| error.reason == whole.reason || is_silence(error) && is_silence(whole);
        error.scope != Scope::Cluster && whole.is_some_and(repeats)
    };
    errors.iter().filter(move |error| !is_repeated(error))
}
