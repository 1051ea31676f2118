//! Errors and warnings about manifests, each with its place.

use serde_json::Value;
use taffrail_object::names::InvalidObjectName;

use super::{FileLine, MAX_FILE_BYTES, MAX_NESTING, MAX_OBJECT_BYTES, MAX_OBJECTS};

/// The maximum number of errors that [`ManifestErrors`] lists; further ones are only counted.
pub(super) const MAX_LISTED: usize = 1_000;

/// All errors of a set of manifests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} in the manifests", self.counted())]
pub struct ManifestErrors {
    /// The errors by file and line, at most 1,000.
    pub errors: Vec<ManifestError>,
    /// The number of errors beyond those listed; reading stops at about 100,000.
    pub more: usize,
}

impl ManifestErrors {
    fn counted(&self) -> String {
        match self.errors.len().saturating_add(self.more) {
            1 => "1 error".to_owned(),
            number => format!("{number} errors"),
        }
    }
}

/// An error in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {}{kind}", object.as_ref().map(|object| format!("{object}: ")).unwrap_or_default())]
pub struct ManifestError {
    /// The line of the error.
    pub place: FileLine,
    /// The object that has it, as `Deployment shop/web`; `None` outside of objects.
    pub object: Option<String>,
    /// The error.
    pub kind: ManifestErrorKind,
}

impl ManifestError {
    /// Returns the advice to a person who must mend it.
    pub fn hint(&self) -> String {
        self.kind.hint()
    }
}

/// The kinds of errors in manifests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestErrorKind {
    /// A file exceeds [`MAX_FILE_BYTES`].
    #[error("the file is larger than {} MiB", MAX_FILE_BYTES >> 20)]
    FileTooLarge,
    /// A file is neither JSON nor UTF-8.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// A document is not YAML.
    #[error("not YAML: {0}")]
    Yaml(String),
    /// A line begins with `---` and holds more than a comment.
    #[error("the separator --- has content in its line")]
    Separator,
    /// A document is not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// A document exceeds [`MAX_NESTING`].
    #[error("lists and maps are nested deeper than {MAX_NESTING} levels")]
    TooDeep,
    /// The aliases of a document expand to too much.
    #[error("the YAML aliases expand to too much data")]
    Aliases,
    /// A document would take too much memory.
    #[error("the document has too many values")]
    TooManyValues,
    /// An object exceeds [`MAX_OBJECT_BYTES`].
    #[error("the object is larger than {} MiB", MAX_OBJECT_BYTES >> 20)]
    ObjectTooLarge,
    /// The set exceeds [`MAX_OBJECTS`].
    #[error("the set has more than {MAX_OBJECTS} objects")]
    TooManyObjects,
    /// A document or an item of a list is no map.
    #[error("not an object, but {found}")]
    NotAnObject {
        /// The sort of value: `a list`.
        found: &'static str,
    },
    /// A field is missing or empty.
    #[error("{field} is missing")]
    Missing {
        /// The path of the field.
        field: &'static str,
    },
    /// A field has a value of another type.
    #[error("{field} is {found}, not {expected}")]
    WrongType {
        /// The path of the field, or the key of the annotation.
        field: String,
        /// The sort of the value.
        found: &'static str,
        /// The sort that the API demands.
        expected: &'static str,
    },
    /// `apiVersion` is neither a version nor a group and a version.
    #[error("'{0}' is not an apiVersion")]
    ApiVersion(String),
    /// The API server would refuse the name, namespace, kind or group.
    #[error(transparent)]
    Name(#[from] InvalidObjectName),
    /// An object that is not a hook has `metadata.generateName` instead of a name.
    #[error("metadata.name is missing, and metadata.generateName is for hooks only")]
    GenerateName,
    /// Neither the cluster nor the set defines the kind.
    #[error("the server has no kind {kind} in {}, and its CRD is not in the set", if group.is_empty() { "the core group" } else { group })]
    UnknownKind {
        /// The API group; empty for the core group.
        group: String,
        /// The kind.
        kind: String,
        /// A similar kind with its apiVersion, if there is one.
        nearest: Option<String>,
    },
    /// An object is declared a second time.
    #[error("declared a second time; first at {first}")]
    Duplicate {
        /// The place of its first declaration.
        first: FileLine,
    },
    /// A CRD of the set states no valid scope.
    #[error("spec.scope is not the scope of a kind")]
    CrdScope,
    /// The key of an annotation is almost one of a delivery tool.
    #[error("the annotation {annotation} is unknown")]
    UnknownAnnotation {
        /// The annotation.
        annotation: String,
        /// The known annotation that is most similar.
        nearest: String,
    },
    /// An annotation states an option that does not exist.
    #[error("{annotation}: the option '{option}' is unknown")]
    UnknownOption {
        /// The annotation.
        annotation: &'static str,
        /// The option.
        option: String,
        /// The option that is most similar.
        nearest: Option<&'static str>,
        /// The options that exist.
        known: String,
    },
    /// An annotation or one of its options has a value that does not exist.
    #[error("{annotation}: '{value}' is not {expected}")]
    InvalidValue {
        /// The annotation.
        annotation: &'static str,
        /// The value.
        value: String,
        /// The sort of value that is expected.
        expected: String,
        /// The value that is most similar.
        nearest: Option<&'static str>,
    },
    /// An option is set to two values.
    #[error("{annotation}: {option} is set to two values")]
    Contradiction {
        /// The annotation that states the second value.
        annotation: &'static str,
        /// The option.
        option: &'static str,
    },
    /// The name of a group of changes is not one, or not one on this object.
    #[error("{annotation}: '{group}' is not the name of a group, since {reason}")]
    InvalidGroup {
        /// The annotation.
        annotation: &'static str,
        /// The name, with its placeholders.
        group: String,
        /// The reason, as a clause.
        reason: String,
    },
    /// The annotation that fills fields from live objects is not a list of substitutions.
    #[error("{annotation}: {reason}")]
    InvalidSubstitutions {
        /// The annotation.
        annotation: &'static str,
        /// The reason.
        reason: String,
    },
}

impl ManifestErrorKind {
    fn hint(&self) -> String {
        use ManifestErrorKind as Kind;

        let did_you_mean = |nearest: &str| format!("did you mean {nearest}?");
        match self {
            Kind::FileTooLarge | Kind::TooManyValues => "split the file".into(),
            Kind::NotUtf8 => "save the file as UTF-8".into(),
            Kind::Yaml(_) => {
                "check indentation, quotes and brackets; documents are separated by lines of --- alone".into()
            }
            Kind::Separator => "move the content to the next line".into(),
            Kind::Json(_) => {
                "a text that begins with '{' is JSON; only its first or second document may be YAML instead"
                    .into()
            }
            Kind::TooDeep | Kind::ObjectTooLarge => "no API server stores such an object".into(),
            Kind::Aliases => "write the values out instead of repeating them by aliases".into(),
            Kind::TooManyObjects => "name fewer files".into(),
            Kind::NotAnObject { .. } => {
                "each document is a map with apiVersion, kind and metadata; leave other files out".into()
            }
            Kind::Missing { field } => format!("add {field}"),
            Kind::WrongType { expected: "a string", .. } => "quote the value".into(),
            Kind::WrongType { expected, .. } => format!("write {expected}"),
            Kind::ApiVersion(_) => "write a version, such as v1, or group/version, such as apps/v1".into(),
            Kind::Name(_) => {
                "use lower-case letters, digits, '-' and '.' in names, and letters and digits in kinds".into()
            }
            Kind::GenerateName => "add metadata.name, or make the object a hook".into(),
            Kind::UnknownKind { nearest: Some(nearest), .. } => did_you_mean(nearest),
            Kind::UnknownKind { .. } => "add the CRD to the set, or install it first".into(),
            Kind::Duplicate { .. } => "remove one of them".into(),
            Kind::CrdScope => "write Namespaced or Cluster".into(),
            Kind::UnknownAnnotation { nearest, .. } => did_you_mean(nearest),
            Kind::UnknownOption { nearest: Some(nearest), .. } => did_you_mean(nearest),
            Kind::UnknownOption { known, .. } => format!("the options are {known}"),
            Kind::InvalidValue { nearest: Some(nearest), .. } => did_you_mean(nearest),
            Kind::InvalidValue { expected, .. } => format!("write {expected}"),
            Kind::Contradiction { option, .. } => format!("state {option} once"),
            Kind::InvalidGroup { .. } => {
                "write a name such as apps.example.com/migrations; {crd-group} and {crd-kind} are for CRDs, and \
                 {namespace} for kinds that have one"
                    .into()
            }
            Kind::InvalidSubstitutions { .. } => {
                "write a YAML list of maps with sourceRef, sourcePath, targetPath and perhaps token".into()
            }
        }
    }
}

/// A statement in a manifest that has no effect and was hardly meant so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestWarning {
    /// The line of the statement.
    pub place: FileLine,
    /// The object that has it, as `Deployment shop/web`; `None` outside of objects.
    pub object: Option<String>,
    /// The warning.
    pub kind: ManifestWarningKind,
}

/// Formats as [`ManifestError`] does.
impl std::fmt::Display for ManifestWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let object = self.object.as_ref().map(|object| format!("{object}: ")).unwrap_or_default();
        write!(f, "{}: {object}{}", self.place, self.kind)
    }
}

/// The kinds of warnings about manifests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestWarningKind {
    /// Argo CD has no such annotation.
    #[error("Argo CD knows no annotation {0}")]
    UnknownAnnotation(String),
    /// The option works in the `syncPolicy` of an Application only.
    #[error("Argo CD reads {0} in an Application's syncOptions only, not on an object")]
    OptionOfApps(&'static str),
    /// A key stands twice at the top of a document; the last value counts.
    #[error("the key {0} stands twice, and its last value counts")]
    RepeatedKey(String),
}

/// Returns words for the sort of a value.
pub(super) fn sort(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
