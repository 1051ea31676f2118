//! Patches of single objects, and creation; the one way in which every write is sent.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, StatusCode};
use kube::client::Body;
use percent_encoding::utf8_percent_encode;
use taffrail_object::json::{OwnedDocument, Value};
use taffrail_object::{ApiResource, Projection};

use crate::connect::Cluster;
use crate::error::{ReadError, Reason};
use crate::field_conflict::FieldConflict;
use crate::read::{ESCAPED, MAX_OBJECT_BYTES, Owner, is_secret, path_of};
use crate::request::{Answer, Ask, JSON, refused, too_large};

/// The field manager of all writes that users ask for, as in `metadata.managedFields`.
pub const FIELD_MANAGER: &str = "taffrail";

/// The first word of the operation of create requests, by which hints tell them from patches.
const CREATE: &str = "create ";

/// The first word of the operation of deletions, by which hints tell them from patches.
pub(crate) const DELETE: &str = "delete ";

/// The text in place of what a server says of the values of a Secret.
const UNSHOWN: &str = "its message is not shown, because it may quote values of the Secret";

/// Begins the API server's message if an applied object does not fit the schema of its kind.
const UNTYPED: &str = "failed to create typed patch object";

/// The form of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchType {
    /// A JSON merge patch (RFC 7386): `null` removes a member, a list is replaced as a whole.
    Merge,
    /// A JSON patch (RFC 6902): a list of operations.
    Json,
}

/// A patch of one object.
#[derive(Debug, Clone, Copy)]
pub struct PatchRequest<'a> {
    /// The object's resource.
    pub resource: &'a ApiResource,
    /// The object's namespace; `None` for cluster-scoped objects.
    pub namespace: Option<&'a str>,
    /// The object's name.
    pub name: &'a str,
    /// The subresource to patch, such as `status`; `None` for the object itself.
    pub subresource: Option<&'a str>,
    /// The form of `body`.
    pub patch_type: PatchType,
    /// The patch. If it depends on the state read, a merge patch includes `metadata.resourceVersion`, and the server
    /// refuses it with [`WriteError::Conflict`] if the object has changed since.
    pub body: &'a [u8],
    /// True for a server-side dry run: the server validates and admits the change, and stores nothing.
    pub dry_run: bool,
}

/// An object to create.
#[derive(Debug, Clone, Copy)]
pub struct CreateRequest<'a> {
    /// The object's resource.
    pub resource: &'a ApiResource,
    /// The object's namespace; `None` for cluster-scoped objects.
    pub namespace: Option<&'a str>,
    /// The object as JSON; with `metadata.generateName` the server generates its name.
    pub body: &'a [u8],
    /// True for a server-side dry run: the server validates and admits the object, and stores nothing.
    pub dry_run: bool,
}

/// The reason why an object was not written, or may not have been.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Secrets are never patched or created, because logs and terminals show patches; except an agent's own, which has a
    /// function of its own. They are only applied and deleted where the request allows that.
    #[error("cannot {what}: Taffrail writes Secrets only as parts of a declared set")]
    Secret {
        /// The operation, such as `patch secrets/x`.
        what: String,
    },
    /// Another client changed the object since it was read, or the object to create exists already.
    #[error("{what}: {message}")]
    Conflict {
        /// The operation.
        what: String,
        /// The server's message, on one line.
        message: String,
    },
    /// Other field managers own fields that an apply without force would change.
    #[error("{what}: {message}")]
    FieldConflict {
        /// The operation.
        what: String,
        /// The server's message, on one line.
        message: String,
        /// The fields, with their owners; at least one.
        conflicts: Vec<FieldConflict>,
    },
    /// The server answered 403: usually the user lacks a role that allows the operation.
    #[error("{what}: {message}")]
    Forbidden {
        /// The operation.
        what: String,
        /// The server's message, on one line.
        message: String,
    },
    /// The object, its kind, or the namespace of an object to create does not exist.
    #[error("{what}: {message}")]
    NotFound {
        /// The operation.
        what: String,
        /// The server's message, on one line.
        message: String,
    },
    /// The served version of the kind has no such field.
    #[error("{what}: {message}")]
    UnknownField {
        /// The operation.
        what: String,
        /// The server's message, which names the unknown fields, on one line.
        message: String,
    },
    /// The server rejects the resulting object with the status 422, or one of its admission webhooks denies the request
    /// with any status.
    #[error("{what}: {message}")]
    Invalid {
        /// The operation.
        what: String,
        /// The server's message, on one line.
        message: String,
    },
    /// The response is missing, unusable or a server error (5xx): the object may have been changed, or not. Never the
    /// error of a dry run.
    #[error("the API server did not confirm the write, and the change may or may not have been made")]
    Uncertain(#[source] ReadError),
    /// The server refused, or the request was not sent, for a reason that reads have too.
    #[error(transparent)]
    Refused(ReadError),
}

impl WriteError {
    /// Returns the class of this failure.
    pub fn reason(&self) -> Reason {
        match self {
            WriteError::Secret { .. } => Reason::BadRequest,
            WriteError::Conflict { .. } | WriteError::FieldConflict { .. } => Reason::Conflict,
            WriteError::Forbidden { .. } => Reason::Forbidden,
            WriteError::NotFound { .. } => Reason::NotFound,
            WriteError::UnknownField { .. } | WriteError::Invalid { .. } => Reason::Invalid,
            WriteError::Uncertain(error) | WriteError::Refused(error) => error.reason(),
        }
    }

    /// Returns true if the server refused because the user lacks a right. What the user has a right to may be forbidden too,
    /// as by a quota or by admission.
    pub fn is_missing_right(&self) -> bool {
        matches!(self, WriteError::Forbidden { message, .. } if tells_missing_right(message))
    }

    /// Returns a hint for the user: one about writes, or else that of the reason.
    pub fn hint(&self) -> &'static str {
        match self {
            WriteError::Secret { .. } => "change the Secret where it is made, such as in Git or with kubectl",
            WriteError::Forbidden { what, .. } if what.starts_with(CREATE) => {
                "ask for a role that allows `create` on the object's kind; check with `kubectl auth can-i create`"
            }
            WriteError::Forbidden { what, .. } if what.starts_with(DELETE) => {
                "ask for a role that allows `delete` on the object; check with `kubectl auth can-i delete`"
            }
            WriteError::Forbidden { .. } => {
                "ask for a role that allows `patch` on the object; check with `kubectl auth can-i patch`"
            }
            WriteError::NotFound { .. } => {
                "check that the object and its namespace exist, and that its kind is installed"
            }
            WriteError::UnknownField { .. } => {
                "check the version of the tool that defines this kind: it is too old, or too new, for this field"
            }
            WriteError::Uncertain(_) => "check the object before trying again",
            WriteError::FieldConflict { .. } => {
                "leave these fields to their owners, or take them from them by force"
            }
            WriteError::Conflict { .. } | WriteError::Invalid { .. } | WriteError::Refused(_) => {
                self.reason().hint()
            }
        }
    }
}

impl Cluster {
    /// Patches an object, and returns the result; for a dry run, the result that it would have.
    ///
    /// Retries only requests that the server has deferred (429): a change whose response got lost is
    /// [`WriteError::Uncertain`]. Servers from 1.27 on reject unknown fields, and older ones drop them.
    ///
    /// # Errors
    ///
    /// Returns an error if the object is not changed, or if that is uncertain; [`WriteError::Secret`] for every Secret.
    pub async fn patch(&self, request: &PatchRequest<'_>) -> Result<OwnedDocument, WriteError> {
        let writing = Writing::patch(request);
        writing.refuse_secret()?;
        self.send(writing).await
    }

    /// Creates an object, and returns the result; for a dry run, the result that it would have.
    ///
    /// Like [`Cluster::patch`] it retries only deferred requests.
    ///
    /// # Errors
    ///
    /// Returns an error if the object is not created, or if that is uncertain: [`WriteError::Secret`] for every Secret,
    /// [`WriteError::Conflict`] if an object of that name exists.
    pub async fn create(&self, request: &CreateRequest<'_>) -> Result<OwnedDocument, WriteError> {
        let writing = Writing::create(request);
        writing.refuse_secret()?;
        self.send(writing).await
    }

    /// Sends a write, and returns the object that the server answers.
    pub(crate) async fn send(&self, writing: Writing<'_>) -> Result<OwnedDocument, WriteError> {
        self.object_of(&self.deliver(writing).await?)
    }

    /// Reads the object that a successful answer must be.
    pub(crate) fn object_of(&self, written: &Written<'_>) -> Result<OwnedDocument, WriteError> {
        let Written { what, answer, resource, dry_run } = written;
        let read = self
            .read_object(what, &answer.body, |object| object_in(what, object, resource))
            .and_then(|read| read.map_err(|problem| answer.unreadable(what, problem)));
        let unread = if *dry_run { WriteError::Refused } else { WriteError::Uncertain };
        read.map_err(|error| unread(if is_secret(resource) { unquoting(error) } else { error }))
    }

    /// Sends a write until the server has not deferred it, and returns the successful answer.
    pub(crate) async fn deliver<'a>(&self, writing: Writing<'a>) -> Result<Written<'a>, WriteError> {
        let Writing { what, path, resource, method, content_type, body, dry_run } = writing;
        let ask = Ask { what, path, accept: JSON };
        let body = Bytes::copy_from_slice(body);
        let mut attempt = 0;
        loop {
            attempt += 1;
            let builder = Request::builder()
                .method(method.clone())
                .uri(&ask.path)
                .header(CONTENT_TYPE, HeaderValue::from_static(content_type));
            let answer = match self.exchange(&ask, builder, Body::from(body.clone()), attempt).await {
                Ok(answer) => answer,
                // A dry run changes nothing, even if its response is lost.
                Err(lost) if lost.sent && !dry_run => return Err(WriteError::Uncertain(lost.error)),
                Err(lost) => return Err(WriteError::Refused(lost.error)),
            };
            if answer.status.is_success() {
                return Ok(Written { what: ask.what, answer, resource, dry_run });
            }
            if answer.status == StatusCode::TOO_MANY_REQUESTS
                && self.pause_before_retry(&answer, attempt).await
            {
                continue;
            }
            return Err(failure(&ask, &answer, resource, dry_run));
        }
    }
}

/// The parts of a writing request: method, path, body.
pub(crate) struct Writing<'a> {
    /// The operation, for errors.
    pub(crate) what: String,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) resource: &'a ApiResource,
    pub(crate) method: Method,
    pub(crate) content_type: &'static str,
    pub(crate) body: &'a [u8],
    pub(crate) dry_run: bool,
}

/// The successful answer to a write.
pub(crate) struct Written<'a> {
    what: String,
    pub(crate) answer: Answer,
    resource: &'a ApiResource,
    dry_run: bool,
}

impl<'a> Writing<'a> {
    pub(crate) fn patch(request: &PatchRequest<'a>) -> Writing<'a> {
        Writing::patch_by(request, FIELD_MANAGER)
    }

    /// Forms a patch by another field manager than [`FIELD_MANAGER`].
    pub(crate) fn patch_by(request: &PatchRequest<'a>, manager: &str) -> Writing<'a> {
        let PatchRequest { resource, name, subresource, body, dry_run, .. } = *request;
        let namespace = request.namespace.filter(|_| resource.namespaced);
        let part = subresource.map_or(String::new(), |part| format!("/{part}"));
        Writing {
            what: told(format!("patch {}/{name}{part}", resource.full_name()), namespace, dry_run),
            path: format!("{}{part}{}", path_to(resource, namespace, name), query(manager, "", dry_run)),
            resource,
            method: Method::PATCH,
            content_type: match request.patch_type {
                PatchType::Merge => "application/merge-patch+json",
                PatchType::Json => "application/json-patch+json",
            },
            body,
            dry_run,
        }
    }

    pub(crate) fn create(request: &CreateRequest<'a>) -> Writing<'a> {
        let CreateRequest { resource, body, dry_run, .. } = *request;
        let namespace = request.namespace.filter(|_| resource.namespaced);
        Writing {
            what: told(format!("{CREATE}{}", resource.full_name()), namespace, dry_run),
            path: format!("{}{}", path_of(resource, namespace), query(FIELD_MANAGER, "", dry_run)),
            resource,
            method: Method::POST,
            content_type: "application/json",
            body,
            dry_run,
        }
    }

    /// Refuses to write a Secret.
    pub(crate) fn refuse_secret(&self) -> Result<(), WriteError> {
        match is_secret(self.resource) {
            true => Err(WriteError::Secret { what: self.what.clone() }),
            false => Ok(()),
        }
    }
}

pub(crate) fn path_to(resource: &ApiResource, namespace: Option<&str>, name: &str) -> String {
    format!("{}/{}", path_of(resource, namespace), utf8_percent_encode(name, ESCAPED))
}

/// Returns the query of a write by this field manager; `more` are further parameters.
pub(crate) fn query(manager: &str, more: &str, dry_run: bool) -> String {
    let all = if dry_run { "&dryRun=All" } else { "" };
    let manager = utf8_percent_encode(manager, ESCAPED);
    format!("?fieldManager={manager}&fieldValidation=Strict{more}{all}")
}

/// Returns the operation as errors tell it.
pub(crate) fn told(mut what: String, namespace: Option<&str>, dry_run: bool) -> String {
    if let Some(namespace) = namespace {
        what.push_str(&format!(" in namespace {namespace}"));
    }
    if dry_run {
        what.push_str(" (dry run)");
    }
    what
}

/// Extracts the object from the response to a write, or returns the reason why there is none.
fn object_in(what: &str, answer: Value<'_>, resource: &ApiResource) -> Result<OwnedDocument, String> {
    let api_version = resource.api_version();
    let owner = Owner { api_version: &api_version, kind: &resource.kind, secret: false };
    let object = owner.object(answer, Projection::Full)?;
    let kind = answer.get("kind");
    match kind.is_none_or(|kind| kind.is_str(&resource.kind)) {
        true => Ok(object),
        false => Err(format!("the answer to {what} is not the object")),
    }
}

/// Returns true if the server's message says that an admission webhook denied the request. The webhook chooses the
/// status.
fn is_denial(message: &str) -> bool {
    message.starts_with("admission webhook \"") && message.contains("\" denied the request")
}

/// Returns the error for an answer that is no success.
fn failure(ask: &Ask, answer: &Answer, resource: &ApiResource, dry_run: bool) -> WriteError {
    if answer.body.len() > MAX_OBJECT_BYTES {
        // The status is known all the same.
        let error = too_large(&ask.what, MAX_OBJECT_BYTES);
        let is_server_error = answer.status.is_server_error();
        return if is_server_error && !dry_run {
            WriteError::Uncertain(error)
        } else {
            WriteError::Refused(error)
        };
    }
    let error = match classified(refused(ask, answer).error, dry_run) {
        WriteError::Conflict { what, message } => match FieldConflict::among(answer.causes()) {
            conflicts if conflicts.is_empty() => WriteError::Conflict { what, message },
            conflicts => return WriteError::FieldConflict { what, message, conflicts },
        },
        other => other,
    };
    if is_secret(resource) { masked(error) } else { error }
}

/// Returns true if the message of a 403 is that of the API server's check of rights.
fn tells_missing_right(message: &str) -> bool {
    message.contains(" is forbidden: User \"")
}

/// Removes the server's message from an error of a Secret where the server, or a webhook of it, may quote the values.
fn masked(error: WriteError) -> WriteError {
    match error {
        WriteError::Invalid { what, .. } => {
            WriteError::Invalid { what, message: format!("the Secret is invalid or was denied; {UNSHOWN}") }
        }
        WriteError::UnknownField { what, .. } => {
            WriteError::UnknownField { what, message: format!("the Secret has an unknown field; {UNSHOWN}") }
        }
        // Rights are checked before the Secret is read.
        WriteError::Forbidden { what, message } if !tells_missing_right(&message) => {
            WriteError::Forbidden { what, message: format!("the server forbids it; {UNSHOWN}") }
        }
        WriteError::Uncertain(error) => WriteError::Uncertain(unquoting(error)),
        WriteError::Refused(error) => WriteError::Refused(unquoting(error)),
        // The others are the API server's own, which name objects, managers and fields.
        error => error,
    }
}

/// Removes the server's text from an error.
fn unquoting(error: ReadError) -> ReadError {
    match error {
        ReadError::Refused { what, code, .. } => {
            ReadError::Refused { what, code, message: format!("the server refused the Secret; {UNSHOWN}") }
        }
        ReadError::NotJson { what, code, content_type, .. } => {
            ReadError::NotJson { what, code, content_type, start: "…".to_owned() }
        }
        ReadError::Unexpected { what, .. } => ReadError::Unexpected {
            what,
            problem: "the answer is not the Secret; it is not shown, because it may have its values"
                .to_owned(),
        },
        error => error,
    }
}

fn classified(error: ReadError, dry_run: bool) -> WriteError {
    let ReadError::Refused { what, code, message } = error else { return WriteError::Refused(error) };
    match code {
        _ if is_denial(&message) => WriteError::Invalid { what, message },
        400 if message.contains("unknown field") => WriteError::UnknownField { what, message },
        403 => WriteError::Forbidden { what, message },
        404 => WriteError::NotFound { what, message },
        409 => WriteError::Conflict { what, message },
        422 => WriteError::Invalid { what, message },
        // The applied object was compared with its schema before anything was written.
        500 if message.starts_with(UNTYPED) => match message.contains("field not declared in schema") {
            true => WriteError::UnknownField { what, message },
            false => WriteError::Invalid { what, message },
        },
        // Webhooks are called before anything is written.
        500 if message.contains("failed calling webhook") => {
            WriteError::Refused(ReadError::Refused { what, code, message })
        }
        // A gateway that gave up does not know how far the server had come.
        500.. if !dry_run => WriteError::Uncertain(ReadError::Refused { what, code, message }),
        _ => WriteError::Refused(ReadError::Refused { what, code, message }),
    }
}
