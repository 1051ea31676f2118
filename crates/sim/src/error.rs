//! Errors: [`ApiError`] for clients, with kube-apiserver's texts; [`SimError`] for the program that owns the fleet.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use taffrail_object::yaml::YamlError;

use crate::kinds::Resource;

/// The errors of operations on a fleet by the program that owns it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// No port can be opened on 127.0.0.1.
    #[error("cannot open a port on 127.0.0.1 for the API server of a simulated cluster")]
    Listen(#[source] std::io::Error),
    /// The fleet's certificates cannot be created.
    #[error("cannot create the certificates of the simulated fleet: {0}")]
    Certificates(String),
    /// The name of a new cluster is taken.
    #[error("cannot add the simulated cluster {0}: the fleet has one of this name already")]
    NameTaken(String),
    /// A text of objects is not YAML.
    #[error("the objects for a simulated cluster are not YAML: {0}")]
    Yaml(YamlError),
    /// The API server refused an object, as it would for any client.
    #[error("the simulated API server refused {object}: {message}")]
    Refused {
        /// The object, as `Kind namespace/name`.
        object: String,
        /// The message of the `Status`.
        message: String,
        /// The HTTP status code.
        code: u16,
    },
    /// The history has fewer changes than were to be reverted; all that it has were reverted.
    #[error("cannot revert {wanted} changes: the history had only {kept}, and they were reverted")]
    TooFarBack {
        /// The number of changes to revert.
        wanted: usize,
        /// The number of changes in the history.
        kept: usize,
    },
}

/// One of the reasons why an object is invalid: the field and the message.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cause {
    reason: &'static str,
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    field: String,
}

impl Cause {
    pub(crate) fn required(field: impl Into<String>, what: &str) -> Cause {
        let message =
            if what.is_empty() { "Required value".to_owned() } else { format!("Required value: {what}") };
        Cause { reason: "FieldValueRequired", message, field: field.into() }
    }

    pub(crate) fn invalid(field: impl Into<String>, value: &Value, what: &str) -> Cause {
        Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {}: {what}", shown(value)),
            field: field.into(),
        }
    }

    /// Builds the cause for a value of the wrong JSON type, as structural schemas refuse it.
    pub(crate) fn wrong_type(field: impl Into<String>, found: &str, what: &str) -> Cause {
        Cause {
            reason: "FieldValueTypeInvalid",
            message: format!("Invalid value: \"{found}\": {what}"),
            field: field.into(),
        }
    }

    pub(crate) fn forbidden(field: impl Into<String>, what: &str) -> Cause {
        Cause { reason: "FieldValueForbidden", message: format!("Forbidden: {what}"), field: field.into() }
    }

    pub(crate) fn too_long(field: impl Into<String>, most: usize) -> Cause {
        Cause {
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {most} bytes"),
            field: field.into(),
        }
    }

    pub(crate) fn unsupported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Cause {
        let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        Cause {
            reason: "FieldValueNotSupported",
            message: format!(
                "Unsupported value: {}: supported values: {}",
                shown(value),
                supported.join(", ")
            ),
            field: field.into(),
        }
    }
}

/// Formats a value as JSON, as error messages about fields do.
fn shown(value: &Value) -> String {
    value.to_string()
}

/// An error answer: a `Status` with `status: Failure`.
#[derive(Debug, Clone, Default)]
pub(crate) struct ApiError {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// The `details` of the `Status`; `None` if it has none. They are boxed, so that a result stays small.
    pub(crate) details: Option<Box<Details>>,
    /// A token with which a client can continue a list after 410 Gone; `None` for other errors.
    pub(crate) r#continue: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Details {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) group: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) causes: Vec<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_seconds: Option<u64>,
}

/// The result of handling a request: a value, or the error for the client.
pub(crate) type Answered<T> = Result<T, ApiError>;

impl ApiError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> ApiError {
        ApiError { code, reason, message: message.into(), details: None, r#continue: None }
    }

    fn with_details(self, details: Details) -> ApiError {
        ApiError { details: Some(Box::new(details)), ..self }
    }

    fn about(self, resource: &Resource, name: &str) -> ApiError {
        self.with_details(Details {
            name: name.to_owned(),
            group: resource.group.to_string(),
            kind: resource.plural.to_string(),
            ..Details::default()
        })
    }

    pub(crate) fn not_found(resource: &Resource, name: &str) -> ApiError {
        let message = format!("{} {name:?} not found", resource.full_name());
        ApiError::new(404, "NotFound", message).about(resource, name)
    }

    pub(crate) fn no_namespace(name: &str) -> ApiError {
        let details = Details { name: name.into(), kind: "namespaces".into(), ..Details::default() };
        ApiError::new(404, "NotFound", format!("namespaces {name:?} not found")).with_details(details)
    }

    /// Builds the error 404 for a path whose resource the server does not have.
    pub(crate) fn no_resource() -> ApiError {
        ApiError::new(404, "NotFound", "the server could not find the requested resource")
            .with_details(Details::default())
    }

    pub(crate) fn already_exists(resource: &Resource, name: &str) -> ApiError {
        let message = format!("{} {name:?} already exists", resource.full_name());
        ApiError::new(409, "AlreadyExists", message).about(resource, name)
    }

    pub(crate) fn conflict(resource: &Resource, name: &str, why: &str) -> ApiError {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.full_name());
        ApiError::new(409, "Conflict", message).about(resource, name)
    }

    pub(crate) fn modified(resource: &Resource, name: &str) -> ApiError {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        ApiError::conflict(resource, name, why)
    }

    /// Builds the error 409 for a failed precondition of a deletion: its message has the kind instead of the resource.
    pub(crate) fn precondition(resource: &Resource, name: &str, why: &str) -> ApiError {
        let kind = match &*resource.group {
            "" => resource.kind.to_string(),
            group => format!("{}.{group}", resource.kind),
        };
        let message = format!("Operation cannot be fulfilled on {kind} {name:?}: {why}");
        let (group, kind) = (resource.group.to_string(), resource.kind.to_string());
        let details = Details { name: name.to_owned(), group, kind, ..Details::default() };
        ApiError::new(409, "Conflict", message).with_details(details)
    }

    pub(crate) fn invalid(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> ApiError {
        let told: Vec<String> = causes
            .iter()
            .map(|cause| match cause.field.as_str() {
                "" => format!("<nil>: {}", cause.message),
                field => format!("{field}: {}", cause.message),
            })
            .collect();
        let told = match told.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let full = if group.is_empty() { Cow::Borrowed(kind) } else { Cow::Owned(format!("{kind}.{group}")) };
        ApiError::new(422, "Invalid", format!("{full} {name:?} is invalid: {told}")).with_details(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            causes,
            retry_after_seconds: None,
        })
    }

    /// Builds the error 422 for options of a request that are not supported or contradict each other; `kind` is that of
    /// the options, such as `ListOptions`.
    pub(crate) fn invalid_options(kind: &str, causes: Vec<Cause>) -> ApiError {
        ApiError::invalid("meta.k8s.io", kind, "", causes)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> ApiError {
        ApiError::new(400, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> ApiError {
        ApiError::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn forbidden(resource: &Resource, name: &str, why: &str) -> ApiError {
        let what = match name {
            "" => resource.full_name().into_owned(),
            name => format!("{} {name:?}", resource.full_name()),
        };
        ApiError::new(403, "Forbidden", format!("{what} is forbidden: {why}")).about(resource, name)
    }

    pub(crate) fn forbidden_path(why: String) -> ApiError {
        ApiError::new(403, "Forbidden", format!("forbidden: {why}")).with_details(Details::default())
    }

    /// Builds the error 429 for an eviction that the PodDisruptionBudget `budget` does not allow; `why` is the part of
    /// the message that follows its name.
    pub(crate) fn disrupts(budget: &str, why: &str) -> ApiError {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let cause = Cause {
            reason: "DisruptionBudget",
            message: format!("The disruption budget {budget} {why}"),
            field: String::new(),
        };
        let details = Details { causes: vec![cause], ..Details::default() };
        ApiError::new(429, "TooManyRequests", message).with_details(details)
    }

    pub(crate) fn method_not_allowed() -> ApiError {
        let message = "the server does not allow this method on the requested resource";
        ApiError::new(405, "MethodNotAllowed", message).with_details(Details::default())
    }

    pub(crate) fn not_acceptable() -> ApiError {
        let message = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                       application/vnd.kubernetes.protobuf";
        ApiError::new(406, "NotAcceptable", message).with_details(Details::default())
    }

    /// Builds the error 415 for a form of patch that this resource does not support.
    pub(crate) fn unsupported_patch() -> ApiError {
        ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
            .with_details(Details::default())
    }

    pub(crate) fn unsupported_body() -> ApiError {
        let message = "the body of the request was in an unknown format - accepted media types include: \
                       application/json, application/yaml, application/vnd.kubernetes.protobuf";
        ApiError::new(415, "UnsupportedMediaType", message)
    }

    /// Builds the error 409 for an apply that would take fields of other managers; the causes are messages and paths.
    pub(crate) fn apply_conflict(message: String, causes: Vec<(String, String)>) -> ApiError {
        let causes = causes.into_iter().map(|(message, field)| Cause {
            reason: "FieldManagerConflict",
            message,
            field,
        });
        let details = Details { causes: causes.collect(), ..Details::default() };
        ApiError::new(409, "Conflict", message).with_details(details)
    }

    pub(crate) fn patch_fails() -> ApiError {
        ApiError::new(422, "Invalid", "the server rejected our request due to an error in our request")
            .with_details(Details::default())
    }

    pub(crate) fn too_large_body() -> ApiError {
        ApiError::new(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")
    }

    /// Builds the error 504 for a resourceVersion that this server has not reached.
    pub(crate) fn too_large_version(wanted: u64, current: u64) -> ApiError {
        let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        let cause = Cause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        let details = Details { causes: vec![cause], retry_after_seconds: Some(1), ..Details::default() };
        ApiError::new(504, "Timeout", message).with_details(details)
    }

    /// Builds the error 410 for a state or a version that is no longer in the history.
    pub(crate) fn expired(message: impl Into<String>) -> ApiError {
        ApiError::new(410, "Expired", message)
    }

    pub(crate) fn too_many_requests(seconds: u64) -> ApiError {
        let message = "too many requests, please try again later.";
        let details = Details { retry_after_seconds: Some(seconds), ..Details::default() };
        ApiError::new(429, "TooManyRequests", message).with_details(details)
    }

    pub(crate) fn internal(message: &str) -> ApiError {
        let message = format!("Internal error occurred: {message}");
        ApiError::new(500, "InternalError", message)
    }

    /// Builds an error with only a code and a message, as some old parts of kube-apiserver return.
    pub(crate) fn plain(code: u16, message: &str) -> ApiError {
        ApiError::new(code, "", message)
    }

    /// Returns the `Status` object for the client.
    pub(crate) fn status(&self) -> Value {
        let mut metadata = json!({});
        if let Some(token) = &self.r#continue {
            metadata["continue"] = json!(token);
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = json!(details);
        }
        status
    }
}
