//! Access to fields with the strictness, and the laxness, of kstatus.

use crate::compute::ComputeError;
use crate::json::{Kind, Value};
use crate::object::Object;

/// The keys of a section and of a field in it.
type Path = &'static [&'static str; 2];

/// The value at `path`, or `None` where a part of it is missing or the section is `null`.
///
/// # Errors
/// When the section is neither an object nor `null`.
#[inline(always)]
fn nested<'a>(object: &Object<'a>, path: Path) -> Result<Option<Value<'a>>, ComputeError> {
    let Some(section) = object.section(path[0]) else { return Ok(None) };
    match section.kind() {
        Kind::Object => Ok(section.get(path[1])),
        Kind::Null => Ok(None),
        found => Err(ComputeError::WrongType { path: &path[..1], expected: "an object", found }),
    }
}

/// The string at `path`.
///
/// # Errors
/// When there is a value of another type, `null` included.
#[inline(always)]
pub(super) fn string<'a>(object: &Object<'a>, path: Path) -> Result<Option<Value<'a>>, ComputeError> {
    match nested(object, path)? {
        Some(value) if value.kind() != Kind::String => {
            Err(ComputeError::WrongType { path, expected: "a string", found: value.kind() })
        }
        value => Ok(value),
    }
}

/// The whole number at `path`.
///
/// # Errors
/// When there is a value of another type, `null` included.
#[inline(always)]
pub(super) fn integer(object: &Object<'_>, path: Path) -> Result<Option<i64>, ComputeError> {
    let Some(value) = nested(object, path)? else { return Ok(None) };
    match value.as_i64() {
        Some(number) => Ok(Some(number)),
        None => Err(ComputeError::WrongType { path, expected: "a whole number", found: value.kind() }),
    }
}

/// The array at `path`.
///
/// # Errors
/// When there is a value of another type, `null` included.
pub(super) fn array<'a>(object: &Object<'a>, path: Path) -> Result<Option<Value<'a>>, ComputeError> {
    match nested(object, path)? {
        Some(value) if value.kind() != Kind::Array => {
            Err(ComputeError::WrongType { path, expected: "an array", found: value.kind() })
        }
        value => Ok(value),
    }
}

/// The whole number called `key` in `section`, or `default` when it is missing or something else.
#[inline(always)]
pub(super) fn count(section: Option<Value<'_>>, key: &str, default: i64) -> i64 {
    section.and_then(|section| section.get(key)).and_then(Value::as_i64).unwrap_or(default)
}

/// A condition of an object with the four fields that kstatus reads.
#[derive(Clone, Copy)]
pub(super) struct ObjectCondition<'a> {
    kind: Option<Value<'a>>,
    status: Option<Value<'a>>,
    reason: Option<Value<'a>>,
    message: Option<Value<'a>>,
}

impl<'a> ObjectCondition<'a> {
    #[inline]
    pub(super) fn is(&self, kind: &str, status: &str) -> bool {
        self.is_type(kind) && self.has_status(status)
    }

    #[inline]
    pub(super) fn is_type(&self, kind: &str) -> bool {
        self.kind.is_some_and(|value| value.is_str(kind))
    }

    #[inline]
    pub(super) fn has_status(&self, status: &str) -> bool {
        self.status.is_some_and(|value| value.is_str(status))
    }

    #[inline]
    pub(super) fn has_reason(&self, reason: &str) -> bool {
        self.reason.is_some_and(|value| value.is_str(reason))
    }

    pub(super) fn reason(&self) -> String {
        owned(self.reason)
    }

    pub(super) fn message(&self) -> String {
        owned(self.message)
    }
}

fn owned(value: Option<Value<'_>>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().into_owned()
}

/// `status.conditions`.
///
/// # Errors
/// When `status`, the list, a condition or one of its fields has another type than it should; `null`
/// counts as absent.
pub(super) fn conditions<'a>(object: &Object<'a>) -> Result<Vec<ObjectCondition<'a>>, ComputeError> {
    const STATUS: &[&str] = &["status"];
    const CONDITIONS: &[&str] = &["status", "conditions"];

    let present = |value: Option<Value<'a>>| value.filter(|value| !value.is_null());
    let Some(status) = present(object.section("status")) else { return Ok(Vec::new()) };
    if status.kind() != Kind::Object {
        return Err(ComputeError::WrongType { path: STATUS, expected: "an object", found: status.kind() });
    }
    let Some(list) = present(status.get("conditions")) else { return Ok(Vec::new()) };
    let Some(rows) = list.rows(CONDITION) else {
        return Err(ComputeError::WrongType { path: CONDITIONS, expected: "an array", found: list.kind() });
    };
    let mut conditions = Vec::with_capacity(6);
    for row in rows {
        let fields = match row {
            Ok(fields) => fields.map(present),
            Err(value) if value.is_null() => [None; 4],
            Err(value) => return Err(ComputeError::BadCondition { field: None, found: value.kind() }),
        };
        for (name, value) in CONDITION.into_iter().zip(fields) {
            if let Some(value) = value
                && value.kind() != Kind::String
            {
                return Err(ComputeError::BadCondition { field: Some(name), found: value.kind() });
            }
        }
        let [kind, status, reason, message] = fields;
        conditions.push(ObjectCondition { kind, status, reason, message });
    }
    Ok(conditions)
}

/// The fields of a condition that kstatus reads.
const CONDITION: [&str; 4] = ["type", "status", "reason", "message"];
