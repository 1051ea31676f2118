//! The border to where objects come from: a live cluster, a dump, an index.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use taffrail_object::{GroupKind, ObjectKey, ObjectKeyRef, Projection};
use taffrail_status::{ClusterState, Listing, Observed};

use crate::freshness::Freshness;
use crate::identity::ClusterId;
use crate::kinds;
use crate::reading::Reading;
use crate::rows::QuestionLog;

/// Whether what was read of an object is enough to judge it.
pub(crate) fn suffices(observed: &Observed<'_>) -> bool {
    observed.projection == Projection::Full
        || !kinds::needs_body(observed.key.group, observed.key.kind)
        || !observed.object.text(&["metadata", "deletionTimestamp"]).is_empty()
}

/// The smallest part of a cluster that a failure concerns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// All of it.
    Cluster,
    /// An API group.
    Group(String),
    /// The objects of a kind, in one namespace or in all.
    Kind {
        /// Which kind.
        kind: GroupKind,
        /// Which namespace; `None` for all.
        namespace: Option<String>,
    },
    /// The objects in a namespace, of whatever kinds; empty for those that have none.
    Namespace(String),
    /// One object.
    Object(ObjectKey),
    /// A part of a dump: a file, a document in it.
    Input(String),
}

impl Scope {
    /// Returns true for a scope of objects that has this one.
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

/// Written `cluster`, `group metrics.k8s.io`, `apps/Deployment`, `apps/Deployment in shop`, `namespace shop`, or as the object's key.
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

/// A failure, on the smallest scope that it concerns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeError {
    /// What could not be read, or is wrong.
    pub scope: Scope,
    /// One word in CamelCase: `Forbidden`, `Timeout`, `Malformed`, …
    pub reason: String,
    /// For people.
    pub message: String,
}

/// The facts about a cluster as a whole, beside the state of its objects.
pub trait Objects: ClusterState + Send + Sync {
    /// The name by which people asked for the cluster: a context, a file's name.
    fn name(&self) -> &str;

    /// Which cluster it is, where that is known.
    fn id(&self) -> Option<&ClusterId>;

    /// Returns true if it is proved to be the cluster of that name, which gives the same identity, false if it is proved to be
    /// another; `None` where neither is.
    fn is_same_as(&self, name: &str) -> Option<bool> {
        let _ = name;
        None
    }

    /// Why anybody may have answered for its server, if that was not verified.
    fn unverified(&self) -> Option<&str> {
        None
    }

    /// The addresses by which other clusters name this one.
    fn servers(&self) -> &[String];

    /// The version of its API server, where that is known.
    fn version(&self) -> Option<&str>;

    /// When the objects were observed.
    fn freshness(&self) -> Freshness;

    /// The scopes that are known less well than the rest of a live cluster, and when they were observed last.
    fn stale_scopes(&self) -> &[(Scope, Timestamp)] {
        &[]
    }

    /// All objects, as far as they were read.
    fn all(&self) -> Listing<'_>;

    /// Whether they were written down by somebody who may have left out whole kinds, and not read for what is
    /// asked.
    fn is_dump(&self) -> bool;

    /// Whether objects of a kind live in namespaces; `None` where nothing says so.
    fn is_namespaced(&self, group: &str, kind: &str) -> Option<bool>;

    /// Returns true if the server serves a kind; `None` where it did not say so.
    fn is_served(&self, group: &str, kind: &str) -> Option<bool> {
        let _ = (group, kind);
        None
    }

    /// Returns true if the server lets objects of a kind be listed, and not only be read one by one; `None` where it did not say so.
    fn is_listable(&self, group: &str, kind: &str) -> Option<bool> {
        let _ = (group, kind);
        None
    }

    /// The objects that were there more than once, and differently; the last of each counts.
    fn repeated(&self) -> &[ObjectKey];

    /// What could not be read.
    fn errors(&self) -> &[ScopeError];

    /// Whether it is known when the objects were read. Of a dump nobody knows, unless whoever made it says so.
    fn is_dated(&self) -> bool {
        true
    }

    /// How far the clock of the API server is ahead of the reader's, where both were looked at; negative where it
    /// is behind.
    fn clock_ahead(&self) -> Option<SignedDuration> {
        None
    }

    /// The log in which questions are noted, and the place of this cluster in it; nothing where they are not.
    #[doc(hidden)]
    fn question_log(&self) -> Option<(&QuestionLog, usize)> {
        None
    }

    /// How it is read, where it is a live cluster that answered.
    fn reading(&self) -> Option<&Reading> {
        None
    }
}

/// Why an object of which only metadata is known was not read whole, if that was tried.
pub(crate) fn why_unread(objects: &dyn Objects, key: ObjectKeyRef<'_>) -> Option<String> {
    let is_it = |error: &&ScopeError| matches!(&error.scope, Scope::Object(object) if object.as_ref() == key);
    objects.errors().iter().find(is_it).map(|error| error.message.clone())
}
