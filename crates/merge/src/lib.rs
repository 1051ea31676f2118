//! Server-side apply, as the Kubernetes API server does it ([KEP-555]): which manager owns which field of an object, what
//! an apply or an update changes, and with whom it conflicts.
//!
//! A [`Schema`] says of each list and map if its items are owned one by one or as a whole. An [`Updater`] applies what a
//! manager wants to a live object, or records an update; it returns the object and the fields of all [`Managers`]. Fields
//! are sets of paths ([`FieldSet`]), which `metadata.managedFields` holds in the form `FieldsV1`.
//!
//! The results are those of the library that the API server uses, structured-merge-diff v6, also where that is lenient.
//! All functions are pure, and end on every input: values that are nested deeper than [`MAX_DEPTH`] are refused.
//!
//! [KEP-555]: https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/555-server-side-apply

mod built_in;
mod compare;
mod defaults;
mod fields_v1;
mod holds;
mod item;
mod managed;
mod merge;
mod openapi;
mod path;
mod reconcile;
mod remove;
mod schema;
mod set;
mod typed;
mod update;
mod validate;
mod values;

pub use built_in::{built_in, built_in_document};
pub use compare::Comparison;
pub use fields_v1::FieldsError;
pub use managed::{ManagedEntry, ManagersError};
pub use openapi::{GroupVersionKind, OpenApi, OpenApiError};
pub use path::{Path, PathElement, PathText};
pub use schema::{Atom, ListType, MapField, MapType, Relationship, Scalar, Schema, TypeRef};
pub use set::FieldSet;
pub use typed::{Invalid, MAX_DEPTH, Type, Violation};
pub use update::{ApplyResult, Conflict, ManagedFields, Managers, UpdateError, Updater};
pub use values::equal;
