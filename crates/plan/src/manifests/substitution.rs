//! Fields that take their values from live objects when their object is applied: kpt's annotation `apply-time-mutation`.
//!
//! The annotation comes with manifests that anybody may have written. So a path is refused that could match more than once
//! by being written so (`..`, lists in brackets, paths from the root in filters), and the mutated manifest keeps to the bounds
//! of every manifest.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use taffrail_object::{GroupKind, JsonPath, ObjectKey, names, yaml};

use super::errors::{ManifestErrorKind as Kind, sort};
use super::near::{nearest, shown};
use super::objects::is_too_large;
use super::{KindScope, MAX_NESTING, MAX_OBJECT_BYTES};

/// The maximum number of substitutions on one object; more are an error.
const MAX_SUBSTITUTIONS: usize = 100;

/// The fields by which the API server tells an object from others.
const IDENTITY: [&str; 5] =
    ["/apiVersion", "/kind", "/metadata/name", "/metadata/generateName", "/metadata/namespace"];

/// A field of a manifest that takes its value, or a part of it, from a field of a live object.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldSubstitution {
    /// The object that has the value. It may be a Secret, as in cli-utils: its value then stands where the target has it, in
    /// a form that nothing masks.
    pub source: ObjectKey,
    /// The path of the value in the live object.
    pub source_path: JsonPath,
    /// The path of the field in the manifest; the field exists there.
    pub target_path: JsonPath,
    /// The part of the field's text that the value replaces; `None` if it replaces the whole field.
    pub token: Option<String>,
}

/// Paths with the same text are the same.
impl Eq for FieldSubstitution {}

/// The reason why a manifest cannot be completed from live objects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubstitutionError {
    /// The object with the value does not exist.
    #[error("the source object {0} does not exist")]
    NoSource(Box<ObjectKey>),
    /// A path matches no field, or several.
    #[error("the path {path} matches {found} fields of {object}, not one")]
    NotOneField {
        /// The path.
        path: String,
        /// The object: the source, or the target.
        object: Box<ObjectKey>,
        /// The number of fields.
        found: usize,
    },
    /// A path cannot be evaluated on an object.
    #[error("the path {path} cannot be evaluated on {object}")]
    Path {
        /// The path.
        path: String,
        /// The object.
        object: Box<ObjectKey>,
    },
    /// The target field has no text in which a token could be replaced.
    #[error("the field {path} is {found}, in which no token can be replaced")]
    NotText {
        /// The path of the target field.
        path: String,
        /// The sort of its value.
        found: &'static str,
    },
    /// The text of the target field does not have the token.
    #[error("the field {path} does not contain the token '{token}'")]
    NoToken {
        /// The path of the target field.
        path: String,
        /// The token.
        token: String,
    },
    /// The manifest would declare another object.
    #[error("with the value for {path} the manifest declares another object")]
    OtherObject {
        /// The path of the target field.
        path: String,
    },
    /// The mutated manifest exceeds [`MAX_OBJECT_BYTES`].
    #[error("with the value for {path} the object is larger than {} MiB", MAX_OBJECT_BYTES >> 20)]
    TooLarge {
        /// The path of the target field.
        path: String,
    },
    /// The mutated manifest exceeds [`MAX_NESTING`].
    #[error("with the value for {path} the object is nested deeper than {MAX_NESTING} levels")]
    TooDeep {
        /// The path of the target field.
        path: String,
    },
}

/// Returns a manifest with all substitutions carried out one after another, as cli-utils does: without a token the field takes
/// the value as it is, and with one each occurrence of the token is replaced by the value as text, lists and maps as JSON.
///
/// `target` is the key of the manifest, and `sources` has the live objects. A token that the manifest does not contain is an
/// error; cli-utils takes it as replaced already.
///
/// # Errors
/// The first substitution that cannot be carried out. No error quotes a value of a source.
pub fn substitute(
    target: &ObjectKey,
    manifest: &Value,
    substitutions: &[FieldSubstitution],
    sources: &BTreeMap<ObjectKey, Value>,
) -> Result<Value, SubstitutionError> {
    let mut mutated = manifest.clone();
    for substitution in substitutions {
        let FieldSubstitution { source, source_path, target_path, token } = substitution;
        let path = || shown(target_path.text()).into_owned();
        let live =
            sources.get(source).ok_or_else(|| SubstitutionError::NoSource(Box::new(source.clone())))?;
        let value = only_match(source_path, live, source)?;
        let old = only_match(target_path, &mutated, target)?;
        let pointer = pointer_of(&mutated, old).unwrap_or_default();
        let new = match token {
            None => value.clone(),
            Some(token) => Value::String(replaced(old, token, value, &path)?),
        };
        if pointer.matches('/').count() + depth(&new) > MAX_NESTING {
            return Err(SubstitutionError::TooDeep { path: path() });
        }
        if let Some(field) = mutated.pointer_mut(&pointer) {
            *field = new;
        }
        // What is ordered, compared and recorded is the object of the manifest, and no value may choose another one.
        if IDENTITY.iter().any(|field| mutated.pointer(field) != manifest.pointer(field)) {
            return Err(SubstitutionError::OtherObject { path: path() });
        }
        if is_too_large(&mutated) {
            return Err(SubstitutionError::TooLarge { path: path() });
        }
    }
    Ok(mutated)
}

/// Returns the only value that a path matches in an object.
fn only_match<'v>(
    path: &JsonPath,
    tree: &'v Value,
    object: &ObjectKey,
) -> Result<&'v Value, SubstitutionError> {
    let (text, object) = (shown(path.text()).into_owned(), Box::new(object.clone()));
    match path.find(tree) {
        Ok(found) => match found[..] {
            [only] => Ok(only),
            _ => Err(SubstitutionError::NotOneField { path: text, object, found: found.len() }),
        },
        Err(_) => Err(SubstitutionError::Path { path: text, object }),
    }
}

/// Returns the text of a field with each occurrence of the token replaced.
fn replaced(
    old: &Value,
    token: &str,
    value: &Value,
    path: &dyn Fn() -> String,
) -> Result<String, SubstitutionError> {
    let Value::String(text) = old else {
        return Err(SubstitutionError::NotText { path: path(), found: sort(old) });
    };
    let inserted = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let count = text.matches(token).count();
    if count == 0 {
        return Err(SubstitutionError::NoToken { path: path(), token: shown(token).into_owned() });
    }
    if count.saturating_mul(inserted.len()) > MAX_OBJECT_BYTES {
        return Err(SubstitutionError::TooLarge { path: path() });
    }
    Ok(text.replace(token, &inserted))
}

/// Returns the JSON pointer of a value, which is a part of `tree` itself.
fn pointer_of(tree: &Value, part: &Value) -> Option<String> {
    if std::ptr::eq(tree, part) {
        return Some(String::new());
    }
    match tree {
        Value::Array(items) => items.iter().enumerate().find_map(|(at, item)| {
            let below = pointer_of(item, part)?;
            Some(format!("/{at}{below}"))
        }),
        Value::Object(members) => members.iter().find_map(|(key, member)| {
            let below = pointer_of(member, part)?;
            Some(format!("/{}{below}", key.replace('~', "~0").replace('/', "~1")))
        }),
        _ => None,
    }
}

/// Returns the number of lists and maps around the deepest value.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

impl FieldSubstitution {
    /// Gives the source the namespace that the scope of its kind demands: that of the target if it states none.
    pub(super) fn set_namespace(&mut self, scope: KindScope, target: &str) {
        let namespace = &mut self.source.namespace;
        match scope {
            KindScope::Cluster => namespace.clear(),
            KindScope::Namespaced if namespace.is_empty() => target.clone_into(namespace),
            KindScope::Namespaced => {}
        }
    }

    pub(super) fn source_kind(&self) -> GroupKind {
        self.source.group_kind()
    }
}

/// Reads the value of the annotation, which is YAML: a list of `{sourceRef, sourcePath, targetPath, token}`.
pub(super) fn read(annotation: &'static str, text: &str) -> Result<Vec<FieldSubstitution>, Kind> {
    let list: Value = yaml::read_strict_without_aliases(text)
        .map_err(|error| Kind::InvalidSubstitutions { annotation, reason: error.to_string() })?;
    let reader = ItemReader { annotation };
    let Value::Array(items) = list else {
        return Err(reader.wrong_type("", &list, "a list"));
    };
    if items.len() > MAX_SUBSTITUTIONS {
        let reason = format!("there are more than {MAX_SUBSTITUTIONS} substitutions");
        return Err(Kind::InvalidSubstitutions { annotation, reason });
    }
    items.iter().map(|item| reader.item(item)).collect()
}

/// Reads the items of one annotation.
struct ItemReader {
    annotation: &'static str,
}

impl ItemReader {
    fn item(&self, item: &Value) -> Result<FieldSubstitution, Kind> {
        const FIELDS: [&str; 4] = ["sourceRef", "sourcePath", "targetPath", "token"];
        let members = self.members(item, "", &FIELDS)?;
        let source = match members.get("sourceRef") {
            Some(reference) => self.source(reference)?,
            None => return Err(self.invalid("sourceRef is missing")),
        };
        let path = |field| self.path(field, self.text(members, field)?);
        let token = self.text(members, "token")?;
        Ok(FieldSubstitution {
            source,
            source_path: path("sourcePath")?,
            target_path: path("targetPath")?,
            token: Some(token.to_owned()).filter(|token| !token.is_empty()),
        })
    }

    /// Reads the reference to an object; its group may stand in `group` or in `apiVersion`.
    fn source(&self, reference: &Value) -> Result<ObjectKey, Kind> {
        const FIELDS: [&str; 5] = ["group", "apiVersion", "kind", "name", "namespace"];
        let members = self.members(reference, "sourceRef", &FIELDS)?;
        let text = |field| self.text(members, field);
        let (stated, api_version) = (text("group")?, text("apiVersion")?);
        let of_version = api_version.split_once('/').map_or("", |(group, _)| group);
        if !stated.is_empty() && !api_version.is_empty() && stated != of_version {
            return Err(self.invalid("group and apiVersion of sourceRef name different groups"));
        }
        let group = if stated.is_empty() { of_version } else { stated };
        let key = ObjectKey::new(group, text("kind")?, text("namespace")?, text("name")?);
        match names::check(&key) {
            Ok(()) => Ok(key),
            Err(error) => Err(self.invalid(&format!("sourceRef: {error}"))),
        }
    }

    fn path(&self, field: &str, text: &str) -> Result<JsonPath, Kind> {
        let path = text.starts_with('$').then(|| text.parse().ok()).flatten();
        match path.filter(|_| is_single(text)) {
            Some(path) => Ok(path),
            None if text.is_empty() => Err(self.invalid(&format!("{field} is missing"))),
            None => {
                let what = "is not the path of one field, such as $.status.phase";
                Err(self.invalid(&format!("{field} '{}' {what}", shown(text))))
            }
        }
    }

    /// Returns the members of a map that has no others than `known`.
    fn members<'v>(
        &self,
        value: &'v Value,
        field: &str,
        known: &[&'static str],
    ) -> Result<&'v Map<String, Value>, Kind> {
        let Value::Object(members) = value else { return Err(self.wrong_type(field, value, "a map")) };
        match members.keys().find(|key| !known.contains(&&***key)) {
            None => Ok(members),
            Some(key) => Err(Kind::UnknownOption {
                annotation: self.annotation,
                option: shown(key).into_owned(),
                nearest: nearest(key, known.iter().copied()),
                known: known.join(", "),
            }),
        }
    }

    /// Returns the text of a field, which is empty if the field is missing.
    fn text<'v>(&self, members: &'v Map<String, Value>, field: &str) -> Result<&'v str, Kind> {
        match members.get(field) {
            Some(Value::String(text)) => Ok(text),
            None => Ok(""),
            Some(other) => Err(self.wrong_type(field, other, "a string")),
        }
    }

    fn wrong_type(&self, field: &str, found: &Value, expected: &'static str) -> Kind {
        let dot = if field.is_empty() { "" } else { ": " };
        let field = format!("{}{dot}{field}", self.annotation);
        Kind::WrongType { field, found: sort(found), expected }
    }

    fn invalid(&self, reason: &str) -> Kind {
        Kind::InvalidSubstitutions { annotation: self.annotation, reason: reason.to_owned() }
    }
}

/// Returns true if a path visits each value of a tree at most once for each of its parts: it has no `..`, no list in brackets,
/// and no path from the root but itself.
fn is_single(path: &str) -> bool {
    let (mut quote, mut is_escaped, mut last) = (None, false, '$');
    for character in path.chars().skip(1) {
        match quote {
            Some(open) => {
                if character == open && !is_escaped {
                    quote = None;
                }
                is_escaped = character == '\\' && !is_escaped;
            }
            None => match character {
                ',' | '$' => return false,
                '.' if last == '.' => return false,
                '\'' | '"' => quote = Some(character),
                _ => {}
            },
        }
        last = character;
    }
    quote.is_none()
}
