//! The writers of the fields of an object, as its managed fields record them.

use std::cmp::Reverse;

use jiff::Timestamp;
use taffrail_object::Object;

use super::{short, text, time};

/// A field manager that wrote a field.
pub(crate) struct Writer {
    /// The name of the manager; empty if the entry has none.
    pub(crate) manager: String,
    /// True if the writer used server-side apply, so that it will set the field again.
    pub(crate) applies: bool,
    /// The time of its last write of any field; `None` if the entry has none.
    pub(crate) at: Option<Timestamp>,
}

/// Returns the writers of the field at `path`, the latest first, those without a time last.
pub(crate) fn writers(object: &Object<'_>, path: &[&str]) -> Vec<Writer> {
    let fields: Vec<String> = path.iter().map(|key| format!("f:{key}")).collect();
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let wrote =
        object.managed_fields().filter(|entry| entry.get("fieldsV1").and_then(|it| it.at(&fields)).is_some());
    let mut writers: Vec<Writer> = wrote
        .map(|entry| Writer {
            manager: text(entry, &["manager"]).unwrap_or_default(),
            applies: entry.get("operation").is_some_and(|it| it.is_str("Apply")),
            at: time(entry.get("time")),
        })
        .collect();
    writers.sort_by_key(|writer| Reverse(writer.at));
    writers
}

/// Returns the time of the latest write by a manager that wrote the field at `path`; `None` if managed fields do not
/// tell. That write may have changed other fields only.
pub(crate) fn written(object: &Object<'_>, path: &[&str]) -> Option<Timestamp> {
    writers(object, path).first()?.at
}

/// Returns the field manager that wrote the field at `path`, of several the one with the latest write; `None` if
/// managed fields do not tell.
pub(crate) fn author(object: &Object<'_>, path: &[&str]) -> Option<String> {
    let last = writers(object, path).into_iter().next()?;
    Some(last.manager).filter(|manager| !manager.is_empty()).map(short)
}

/// Returns the field manager that last wrote the field at `path`, for messages: ` (by kubectl)`, or an empty
/// text.
pub(crate) fn by(object: &Object<'_>, path: &[&str]) -> String {
    author(object, path).map(|author| format!(" (by {author})")).unwrap_or_default()
}
