//! One read request to a cluster.

use std::borrow::Cow;

use taffrail_object::json::{self, DocumentBuilder, Kind, OwnedDocument, Value};
use taffrail_object::{GroupKind, ItemKind, ObjectKey, Projection};

use crate::scope::Scope;

/// The objects of a kind that a read returns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// All objects of the kind that match the selectors.
    List {
        /// The label selector; `None` for no restriction.
        labels: Option<String>,
        /// The field selector; `None` for no restriction.
        fields: Option<String>,
    },
    /// The object of this name.
    Object(String),
}

/// One read request of the plan; a list in pages counts as one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Read {
    /// API group; empty for the core group.
    pub group: String,
    /// The API version without the group: `v1`.
    pub version: String,
    /// Name of the kind: `Deployment`.
    pub kind: String,
    /// The name of the kind in URLs: `deployments`.
    pub plural: String,
    /// The namespace; `None` for all namespaces and for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// The objects to read.
    pub target: Target,
    /// The part of each object to read: metadata or the whole.
    pub projection: Projection,
}

impl Read {
    /// Returns the path of the request's URL, without the query.
    pub fn path(&self) -> String {
        let Read { group, version, plural, .. } = self;
        let mut path =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        if let Some(namespace) = &self.namespace {
            path = format!("{path}/namespaces/{namespace}");
        }
        match &self.target {
            Target::List { .. } => format!("{path}/{plural}"),
            Target::Object(name) => format!("{path}/{plural}/{name}"),
        }
    }

    /// Returns the scope to report if the read fails.
    pub fn scope(&self) -> Scope {
        match &self.target {
            Target::List { .. } => {
                let kind = GroupKind::new(&*self.group, &*self.kind);
                Scope::Kind { kind, namespace: self.namespace.clone() }
            }
            Target::Object(name) => {
                let namespace = self.namespace.clone().unwrap_or_default();
                Scope::Object(ObjectKey::new(&*self.group, &*self.kind, namespace, &**name))
            }
        }
    }

    /// Returns true for the list of all nodes.
    ///
    /// Many users may not list nodes, and without them no app is known less well: a refusal is told where nodes are shown.
    pub(crate) fn is_of_nodes(&self) -> bool {
        let is_whole = matches!(self.target, Target::List { labels: None, fields: None });
        is_whole && self.group.is_empty() && self.kind == "Node"
    }

    /// Copies an object in the answer into a document that has its `apiVersion` and `kind`, without parsing it again.
    ///
    /// The API server leaves these fields out of the items of typed lists, and in metadata-only answers they describe
    /// the form of the answer.
    ///
    /// # Errors
    /// When the copy would be 4 GiB long or more.
    pub fn document(&self, object: Value<'_>) -> Result<OwnedDocument, json::Error> {
        let version = match &*self.group {
            "" => Cow::Borrowed(&*self.version),
            group => Cow::Owned(format!("{group}/{}", self.version)),
        };
        match self.is_of_nodes() {
            true => node(object, &version),
            false => ItemKind::new(&version, &self.kind).document(object),
        }
    }
}

/// Copies a Node without the list of its images, which is most of it and which nothing reads.
fn node(object: Value<'_>, version: &str) -> Result<OwnedDocument, json::Error> {
    let status = object.get("status").filter(|status| status.kind() == Kind::Object);
    let Some(status) = status else { return ItemKind::new(version, "Node").document(object) };
    let copied = |value: Value<'_>, without: &str| {
        let mut copy = DocumentBuilder::new(value.text().map_or(0, <[u8]>::len));
        for (key, member) in value.members().into_iter().flatten() {
            if key != without {
                copy.value(&key, member);
            }
        }
        copy
    };
    let status = copied(status, "images").finish()?;
    let mut copy = copied(object, "status");
    copy.value("status", status.root());
    copy.string("apiVersion", version);
    copy.string("kind", "Node");
    copy.finish()
}
