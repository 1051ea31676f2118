//! Changes of single objects, and new ones.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, StatusCode};
use kube::client::Body;
use percent_encoding::utf8_percent_encode;
use taffrail_object::json::Parser;
use taffrail_object::{ApiResource, Projection};

use crate::connect::Cluster;
use crate::error::{ReadError, Reason};
use crate::read::{ESCAPED, ObjectBytes, Owner, is_secret, path_of};
use crate::request::{Ask, JSON, refused, retry_after};

/// Who writes, as `metadata.managedFields` names it.
pub const FIELD_MANAGER: &str = "taffrail";

/// How the names of requests begin that make objects.
const CREATE: &str = "create ";

/// The form of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchType {
    /// A JSON merge patch (RFC 7386): `null` takes a member away, a list is replaced as a whole.
    Merge,
    /// A JSON patch (RFC 6902): a list of operations.
    Json,
}

/// What to change of one object.
#[derive(Debug, Clone, Copy)]
pub struct PatchRequest<'a> {
    /// Its resource.
    pub resource: &'a ApiResource,
    /// Its namespace; none for objects that have none.
    pub namespace: Option<&'a str>,
    /// Its name.
    pub name: &'a str,
    /// Which part of the object is meant: `status` where that is a resource of its own; the object itself without.
    pub subresource: Option<&'a str>,
    /// The form of `body`.
    pub patch_type: PatchType,
    /// The patch. Where the change depends on what was read, a merge patch names that version in
    /// `metadata.resourceVersion`: it is then refused as [`WriteError::Conflict`] if anything was written since.
    pub body: &'a [u8],
    /// Whether the server is only to say what would come of it: it checks and admits, and keeps nothing.
    pub dry_run: bool,
}

/// An object to make.
#[derive(Debug, Clone, Copy)]
pub struct CreateRequest<'a> {
    /// Its resource.
    pub resource: &'a ApiResource,
    /// Its namespace; none for objects that have none.
    pub namespace: Option<&'a str>,
    /// The object as JSON; with `metadata.generateName` the server makes its name.
    pub body: &'a [u8],
    /// Whether the server is only to say what would come of it: it checks and admits, and keeps nothing.
    pub dry_run: bool,
}

/// Why an object was not changed or made, or perhaps was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Secrets are never written: what a patch says would be in logs and on screens.
    #[error("{what}: Secrets are never written")]
    Secret {
        /// What was to be done.
        what: String,
    },
    /// It was changed by somebody else since it was read; or one of that name is there already, where one was to be made.
    #[error("{what}: {message}")]
    Conflict {
        /// What was being done.
        what: String,
        /// What the server says, on one line.
        message: String,
    },
    /// We may not.
    #[error("{what}: {message}")]
    Forbidden {
        /// What was being done.
        what: String,
        /// What the server says, on one line.
        message: String,
    },
    /// There is no such object any more, or its kind has gone.
    #[error("{what}: {message}")]
    NotFound {
        /// What was being done.
        what: String,
        /// What the server says, on one line.
        message: String,
    },
    /// The kind has no such field, in the version that is served.
    #[error("{what}: {message}")]
    UnknownField {
        /// What was being done.
        what: String,
        /// What the server says, on one line; it names the fields.
        message: String,
    },
    /// The server, or a webhook of it, does not accept the object that would come of it.
    #[error("{what}: {message}")]
    Invalid {
        /// What was being done.
        what: String,
        /// What the server says, on one line.
        message: String,
    },
    /// No answer came, or one that says nothing: the object may have been changed, or not.
    #[error("{0}; nobody knows whether it was done")]
    Uncertain(#[source] ReadError),
    /// It was refused, or never sent, for a reason that reading has as well.
    #[error(transparent)]
    Refused(ReadError),
}

impl WriteError {
    /// The class of this failure.
    pub fn reason(&self) -> Reason {
        match self {
            WriteError::Secret { .. } => Reason::BadRequest,
            WriteError::Conflict { .. } => Reason::Conflict,
            WriteError::Forbidden { .. } => Reason::Forbidden,
            WriteError::NotFound { .. } => Reason::NotFound,
            WriteError::UnknownField { .. } | WriteError::Invalid { .. } => Reason::Invalid,
            WriteError::Uncertain(error) | WriteError::Refused(error) => error.reason(),
        }
    }

    /// What a person may do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            WriteError::Secret { .. } => "change it where it comes from",
            WriteError::Forbidden { what, .. } if what.starts_with(CREATE) => {
                "ask for a role that allows `create` on this; `kubectl auth can-i create` says who may"
            }
            WriteError::Forbidden { .. } => {
                "ask for a role that allows `patch` on this; `kubectl auth can-i patch` says who may"
            }
            WriteError::NotFound { .. } => "was it deleted meanwhile?",
            WriteError::UnknownField { .. } => {
                "the tool that serves this kind is older, or newer, than what knows this field"
            }
            WriteError::Uncertain(_) => "look at the object before trying again",
            WriteError::Conflict { .. } | WriteError::Invalid { .. } | WriteError::Refused(_) => {
                self.reason().hint()
            }
        }
    }
}

impl Cluster {
    /// Changes one object, and returns it as it is then; of a dry run, as it would be.
    ///
    /// Nothing is tried twice but what the server has put off (429): a change whose answer got lost is
    /// [`WriteError::Uncertain`]. Fields that the kind does not have are refused by servers from 1.27 on, and dropped
    /// by older ones.
    ///
    /// # Errors
    /// When the object is not changed, or it is not known whether it is.
    pub async fn patch(&self, request: &PatchRequest<'_>) -> Result<ObjectBytes, WriteError> {
        let PatchRequest { resource, name, subresource, .. } = *request;
        let namespace = request.namespace.filter(|_| resource.namespaced);
        let part = subresource.map_or(String::new(), |part| format!("/{part}"));
        let content_type = match request.patch_type {
            PatchType::Merge => "application/merge-patch+json",
            PatchType::Json => "application/json-patch+json",
        };
        let write = Write {
            what: format!("patch {}/{name}{part}", resource.full_name()),
            path: format!("{}/{}{part}", path_of(resource, namespace), utf8_percent_encode(name, ESCAPED)),
            resource,
            namespace,
            method: Method::PATCH,
            content_type,
            body: request.body,
            dry_run: request.dry_run,
        };
        self.write(write).await
    }

    /// Makes an object, and returns it as it is then; of a dry run, as it would be.
    ///
    /// As [`Cluster::patch`], nothing is tried twice but what the server has put off.
    ///
    /// # Errors
    /// When the object is not made, or it is not known whether it is. One of that name that is there already is a
    /// [`WriteError::Conflict`].
    pub async fn create(&self, request: &CreateRequest<'_>) -> Result<ObjectBytes, WriteError> {
        let CreateRequest { resource, body, dry_run, .. } = *request;
        let namespace = request.namespace.filter(|_| resource.namespaced);
        let write = Write {
            what: format!("{CREATE}{}", resource.full_name()),
            path: path_of(resource, namespace),
            resource,
            namespace,
            method: Method::POST,
            content_type: "application/json",
            body,
            dry_run,
        };
        self.write(write).await
    }

    async fn write(&self, write: Write<'_>) -> Result<ObjectBytes, WriteError> {
        let Write { mut what, path, resource, namespace, method, content_type, body, dry_run } = write;
        if let Some(namespace) = namespace {
            what.push_str(&format!(" in namespace {namespace}"));
        }
        if dry_run {
            what.push_str(" (dry run)");
        }
        if is_secret(resource) {
            return Err(WriteError::Secret { what });
        }
        let all = if dry_run { "&dryRun=All" } else { "" };
        let path = format!("{path}?fieldManager={FIELD_MANAGER}&fieldValidation=Strict{all}");
        let ask = Ask { what, path, accept: JSON };
        let body = Bytes::copy_from_slice(body);
        loop {
            let builder = Request::builder()
                .method(method.clone())
                .uri(&ask.path)
                .header(CONTENT_TYPE, HeaderValue::from_static(content_type));
            let answer = match self.exchange(&ask, builder, Body::from(body.clone())).await {
                Ok(answer) => answer,
                // A dry run changes nothing, whatever became of it.
                Err(lost) if lost.sent && !dry_run => return Err(WriteError::Uncertain(lost.error)),
                Err(lost) => return Err(WriteError::Refused(lost.error)),
            };
            if answer.status.is_success() {
                return written(&ask, &answer.body, resource)
                    .map_err(|problem| WriteError::Uncertain(answer.unreadable(&ask.what, problem)));
            }
            if answer.status == StatusCode::TOO_MANY_REQUESTS {
                let wait = retry_after(&answer.headers).unwrap_or(std::time::Duration::from_secs(1));
                if wait < self.deadline.remaining() {
                    tokio::time::sleep(wait).await;
                    continue;
                }
            }
            return Err(classified(refused(&ask, &answer).error, dry_run));
        }
    }
}

/// One request that writes.
struct Write<'a> {
    what: String,
    path: String,
    resource: &'a ApiResource,
    namespace: Option<&'a str>,
    method: Method,
    content_type: &'static str,
    body: &'a [u8],
    dry_run: bool,
}

/// The object that a write answers.
fn written(ask: &Ask, body: &[u8], resource: &ApiResource) -> Result<ObjectBytes, String> {
    let mut parser = Parser::new();
    let document = parser.parse(body).map_err(|error| format!("the answer is malformed: {error}"))?;
    let api_version = resource.api_version();
    let owner = Owner { api_version: &api_version, kind: &resource.kind, secret: false };
    let object = owner.object(document.root(), Projection::Full)?;
    let kind = document.root().get("kind");
    match kind.is_none_or(|kind| kind.is_str(&resource.kind)) {
        true => Ok(object),
        false => Err(format!("{} was answered with something else than the object", ask.what)),
    }
}

fn classified(error: ReadError, dry_run: bool) -> WriteError {
    let ReadError::Refused { what, code, message } = error else { return WriteError::Refused(error) };
    match code {
        400 if message.contains("unknown field") => WriteError::UnknownField { what, message },
        403 => WriteError::Forbidden { what, message },
        404 => WriteError::NotFound { what, message },
        409 => WriteError::Conflict { what, message },
        422 => WriteError::Invalid { what, message },
        // It was asked before anything was written.
        500 if message.contains("failed calling webhook") => {
            WriteError::Refused(ReadError::Refused { what, code, message })
        }
        // A gateway that gave up does not say how far the server behind it had come.
        500.. if !dry_run => WriteError::Uncertain(ReadError::Refused { what, code, message }),
        _ => WriteError::Refused(ReadError::Refused { what, code, message }),
    }
}
