//! Kubernetes objects as text: reading them, and naming them.
//!
//! This crate reads objects exactly as Go's API machinery does, in their text: it builds no tree of an object to read
//! its fields. It does no I/O, reads no clock, and no input makes it panic or run without bound.
//!
//! ```
//! use taffrail_object::{Object, json::Parser};
//!
//! let mut parser = Parser::new();
//! let document = parser.parse(br#"{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}"#)?;
//! let object = Object::new(document.root())?;
//! assert_eq!((&*object.group(), &*object.kind(), &*object.name()), ("apps", "Deployment", "web"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * [`json`] validates every byte of a document the way Go's decoder does, and reads values in place: it builds no
//!   tree.
//! * [`protobuf`] converts the Protobuf of API servers to such a document.
//! * [`yaml`] reads YAML, as Go does or by the strict rules of Taffrail's own files.
//! * [`Object`] is a document with a kind, and [`ItemKind`] gives the items of a list their kind; [`ObjectKey`] names
//!   an object of a cluster.
//! * [`kinds`] has the names and scopes of the built-in kinds, and finds the kind that a person's word names. Scope,
//!   plural and short names come from `kinds.tsv`, which is kube-apiserver's discovery; the simulation uses it as well.
//! * [`names`] checks the parts of a key by the rules of the API server.
//! * [`LabelSelector`] is parsed from text or read from an object, matched against labels, and printed.
//! * [`Predicate`] is an expression about objects in a language such as CEL.
//! * [`LiveToken`] tells if an object changed since it was last looked at.
//! * [`JsonPath`] finds fields as kubectl does, [`Glob`] matches names as Argo CD does, and [`duration`] parses spans of
//!   time as Go does.

pub mod duration;
mod glob;
pub mod json;
mod jsonpath;
mod key;
pub mod kinds;
mod lines;
pub mod names;
mod object;
mod own_server;
mod predicate;
pub mod protobuf;
mod resource;
mod secret;
pub mod selector;
mod token;
mod words;
pub mod yaml;

pub use glob::Glob;
pub use jsonpath::{JsonPath, JsonPathError};
pub use key::{
    AsObjectKey, GroupKind, InvalidObjectKey, InventoryEntry, ObjectKey, ObjectKeyRef, Projection,
};
pub use lines::Lines;
pub use object::{ItemKind, LAST_APPLIED, LEADER, Object, ObjectError};
pub use own_server::is_own_server;
pub use predicate::{Predicate, PredicateAnswer};
pub use resource::ApiResource;
pub use secret::may_show_annotation;
pub use selector::LabelSelector;
pub use token::{InvalidToken, LiveToken, ObjectDigest, TokenSeed, declared_digest};
