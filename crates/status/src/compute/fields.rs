//! Reads fields of objects with the type checks that kstatus makes, and no others.

use taffrail_object::Object;
use taffrail_object::json::{Kind, Value};

use crate::verdict::ComputeError;

/// The path of a field: the key of a section of the object, and the key in the section.
type Path = &'static [&'static str; 2];

/// Returns the values of `keys` in a section; all `None` if the section is missing or `null`.
///
/// # Errors
///
/// Returns an error if the section is neither an object nor `null`.
#[inline(always)]
fn picked<'a, const N: usize>(
    object: &Object<'a>,
    section: &'static [&'static str; 1],
    keys: [&'static str; N],
) -> Result<[Option<Value<'a>>; N], ComputeError> {
    let Some(value) = object.section(section[0]) else { return Ok([None; N]) };
    match value.kind() {
        Kind::Object => Ok(value.pick(keys)),
        Kind::Null => Ok([None; N]),
        found => Err(ComputeError::WrongType { path: section, expected: "an object", found }),
    }
}

/// The fields of `metadata` that the rules for every kind read, found in one pass.
pub(super) struct Metadata<'a> {
    deletion: Option<Value<'a>>,
    generation: Option<Value<'a>>,
}

impl<'a> Metadata<'a> {
    /// Reads the fields from `object`.
    ///
    /// # Errors
    ///
    /// Returns an error if `metadata` is neither an object nor `null`.
    #[inline]
    pub(super) fn of(object: &Object<'a>) -> Result<Metadata<'a>, ComputeError> {
        let [deletion, generation] = picked(object, &["metadata"], ["deletionTimestamp", "generation"])?;
        Ok(Metadata { deletion, generation })
    }

    /// Returns true if the object is being deleted: if its `deletionTimestamp` is a string that is not empty.
    ///
    /// # Errors
    ///
    /// Returns an error if `deletionTimestamp` is there and not a string.
    #[inline]
    pub(super) fn is_deleted(&self) -> Result<bool, ComputeError> {
        const PATH: Path = &["metadata", "deletionTimestamp"];
        match self.deletion {
            Some(time) if time.kind() != Kind::String => {
                Err(ComputeError::WrongType { path: PATH, expected: "a string", found: time.kind() })
            }
            time => Ok(time.is_some_and(|time| !time.is_str(""))),
        }
    }

    /// Returns `metadata.generation`; `None` if it is absent.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not a whole number.
    #[inline]
    pub(super) fn generation(&self) -> Result<Option<i64>, ComputeError> {
        integer(self.generation, &["metadata", "generation"])
    }
}

/// The fields of `status` that the rules for every kind read, found in one pass.
pub(super) struct ObjectStatus<'a> {
    observed_generation: Option<Value<'a>>,
    conditions: Option<Value<'a>>,
}

impl<'a> ObjectStatus<'a> {
    /// Reads the fields from `object`.
    ///
    /// # Errors
    ///
    /// Returns an error if `status` is neither an object nor `null`.
    #[inline]
    pub(super) fn of(object: &Object<'a>) -> Result<ObjectStatus<'a>, ComputeError> {
        let [observed_generation, conditions] =
            picked(object, &["status"], ["observedGeneration", "conditions"])?;
        Ok(ObjectStatus { observed_generation, conditions })
    }

    /// Returns `status.observedGeneration`; `None` if it is absent.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not a whole number.
    #[inline]
    pub(super) fn observed_generation(&self) -> Result<Option<i64>, ComputeError> {
        integer(self.observed_generation, &["status", "observedGeneration"])
    }

    /// Returns the items of `status.conditions`; none if it is absent or `null`.
    ///
    /// # Errors
    ///
    /// Returns an error if the list, a condition or one of its fields has the wrong type; `null` counts as absent.
    #[inline]
    pub(super) fn conditions(&self) -> Result<Vec<ObjectCondition<'a>>, ComputeError> {
        match self.conditions {
            Some(list) if !list.is_null() => conditions(list),
            _ => Ok(Vec::new()),
        }
    }
}

/// Converts a value to a whole number; `None` if it is absent. `path` names the field in the error.
///
/// # Errors
///
/// Returns an error if the value, `null` included, is not a whole number.
#[inline]
fn integer(value: Option<Value<'_>>, path: Path) -> Result<Option<i64>, ComputeError> {
    let Some(value) = value else { return Ok(None) };
    match value.as_i64() {
        Some(number) => Ok(Some(number)),
        None => Err(ComputeError::WrongType { path, expected: "a whole number", found: value.kind() }),
    }
}

/// Returns `status.containerStatuses`; `None` if it is absent.
///
/// # Errors
///
/// Returns an error if it is not an array, `null` included, or `status` is neither an object nor `null`.
pub(super) fn container_statuses<'a>(object: &Object<'a>) -> Result<Option<Value<'a>>, ComputeError> {
    const PATH: Path = &["status", "containerStatuses"];
    let [list] = picked(object, &["status"], ["containerStatuses"])?;
    match list {
        Some(value) if value.kind() != Kind::Array => {
            Err(ComputeError::WrongType { path: PATH, expected: "an array", found: value.kind() })
        }
        list => Ok(list),
    }
}

/// Returns the whole number `key` in `section`, or `default` if it is missing or of another type.
#[inline(always)]
pub(super) fn count(section: Option<Value<'_>>, key: &str, default: i64) -> i64 {
    section.and_then(|section| section.get(key)).and_then(Value::as_i64).unwrap_or(default)
}

/// A condition of an object, with the four fields that kstatus reads.
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

fn conditions(list: Value<'_>) -> Result<Vec<ObjectCondition<'_>>, ComputeError> {
    const CONDITIONS: Path = &["status", "conditions"];

    let Some(rows) = list.rows(CONDITION) else {
        return Err(ComputeError::WrongType { path: CONDITIONS, expected: "an array", found: list.kind() });
    };
    // Most objects have at most six; a larger block would not come from the allocator's cache of small ones.
    let mut conditions = Vec::with_capacity(6);
    for row in rows {
        let mut fields = match row {
            Ok(fields) => fields,
            Err(value) if value.is_null() => [None; 4],
            Err(value) => return Err(ComputeError::BadCondition { field: None, found: value.kind() }),
        };
        for (name, field) in CONDITION.into_iter().zip(&mut fields) {
            let Some(value) = field else { continue };
            match value.kind() {
                Kind::String => {}
                Kind::Null => *field = None,
                found => return Err(ComputeError::BadCondition { field: Some(name), found }),
            }
        }
        let [kind, status, reason, message] = fields;
        conditions.push(ObjectCondition { kind, status, reason, message });
    }
    Ok(conditions)
}

/// The fields of a condition that kstatus reads.
const CONDITION: [&str; 4] = ["type", "status", "reason", "message"];
