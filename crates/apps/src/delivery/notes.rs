//! Errors in declarations, and the objects that must still be read to complete them.

use std::sync::Arc;

use taffrail_object::{ObjectKey, ObjectKeyRef};

use super::complaints::Subject;
use super::release::{Release, ReleaseError};
use super::{Declaration, Lacking};
use crate::fleet::Fleet;
use crate::scope::{Scope, ScopeError};

/// Errors about one declaring object or release, of which a namespace may report only some.
#[derive(Debug)]
pub(super) struct Complaint {
    pub(super) cluster: usize,
    pub(super) key: ObjectKey,
    pub(super) subject: Subject,
    pub(super) errors: Vec<ScopeError>,
}

/// The object to which reported errors about a stored Helm release refer.
#[derive(Debug)]
pub(super) struct ReleaseErrors {
    /// The index of the cluster that holds the object.
    cluster: usize,
    key: ObjectKey,
    /// The words before each message; empty if the object is the stored release itself.
    prefix: String,
}

impl ReleaseErrors {
    /// Makes errors refer to the object `key` of a cluster, which stores the release.
    pub(super) fn of_storage(cluster: usize, key: ObjectKeyRef<'_>) -> ReleaseErrors {
        ReleaseErrors { cluster, key: key.to_owned(), prefix: String::new() }
    }

    /// Makes errors refer to the object that declares `app`, in another cluster than `target`, which stores the
    /// release: any author in one cluster can name a release of another one, which is not at fault. `None` if no
    /// object declares `app`.
    pub(super) fn of_claim(app: &Declaration, target: &str) -> Option<ReleaseErrors> {
        let key = app.declaring.clone()?;
        let prefix = format!("{}: in cluster {target}, ", app.declaring_name());
        Some(ReleaseErrors { cluster: app.home, key, prefix })
    }
}

/// The errors in some declarations, and what is missing to read them in full.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// The errors in the order in which they were found, before the limits of each namespace are applied.
    pub(super) complaints: Vec<Complaint>,
    /// Objects whose body is needed and was not read, each with the index of its cluster.
    pub(super) lacking: Lacking,
    /// The index of the cluster into which a HelmRelease delivers the objects of a stored release; `None` if no such
    /// release was read.
    pub(super) definitions: Option<usize>,
    /// The namespace of the controller that an Application names; `None` if it names none but its own, and for other
    /// objects.
    pub(super) controller: Option<String>,
    /// True if a limit that all releases of a namespace share affected a release, so that the order of reading
    /// matters.
    pub(super) is_limited: bool,
}

impl Notes {
    /// Returns true if the same declarations, read at another time among others, have the same result and
    /// no errors.
    pub(super) fn is_repeatable(&self) -> bool {
        !self.is_limited && self.complaints.is_empty()
    }

    /// Adds an error about the object `key` of the cluster with this index; it counts towards the limit for apps.
    pub(super) fn complain(&mut self, cluster: usize, key: ObjectKeyRef<'_>, reason: &str, message: &str) {
        let (scope, reason) = (Scope::Object(key.to_owned()), reason.to_owned());
        let errors = vec![ScopeError { scope, reason, message: message.to_owned() }];
        self.complaints.push(Complaint { cluster, key: key.to_owned(), subject: Subject::Apps, errors });
    }

    /// Adds the errors `malformed` in a Helm release as errors about the object in `of`, with its prefix; they count
    /// towards the limit for releases.
    pub(super) fn report_release(&mut self, of: &ReleaseErrors, malformed: &[ScopeError]) {
        if malformed.is_empty() {
            return;
        }
        let told = |error: &ScopeError| ScopeError {
            scope: Scope::Object(of.key.clone()),
            reason: error.reason.clone(),
            message: format!("{}{}", of.prefix, error.message),
        };
        let errors = malformed.iter().map(told).collect();
        let (cluster, key) = (of.cluster, of.key.clone());
        self.complaints.push(Complaint { cluster, key, subject: Subject::Releases, errors });
    }

    /// Parses a release of Helm's storage for an app of the namespace `asker`; an unread body is recorded as
    /// needed by that namespace.
    ///
    /// `delivered` is the namespace into which the HelmRelease of the release delivers; see
    /// [`ReadReleases::read`](super::release::ReadReleases::read).
    pub(super) fn release(
        &mut self,
        asker: &str,
        fleet: &Fleet<'_>,
        cluster: usize,
        key: ObjectKeyRef<'_>,
        delivered: Option<&str>,
    ) -> Result<Arc<Release>, Arc<ReleaseError>> {
        let (release, is_limited) = fleet.releases.read(cluster, fleet.objects(cluster), key, delivered);
        self.is_limited |= is_limited;
        let error = release.as_ref().err().map(|error| &**error);
        if let Some(ReleaseError::MetadataOnly | ReleaseError::Unobserved(_)) = error {
            self.lacking.insert_for(asker, (cluster, key.to_owned()));
        }
        release
    }

    /// Returns the message about a release that cannot be read, and adds it as an error unless it was only
    /// not read yet.
    pub(super) fn unreadable(
        &mut self,
        of: &ReleaseErrors,
        key: ObjectKeyRef<'_>,
        error: &ReleaseError,
    ) -> String {
        let message = format!("Helm release {} cannot be read: {error}", key.path());
        if !matches!(error, ReleaseError::Unobserved(_) | ReleaseError::MetadataOnly) {
            self.complain(of.cluster, of.key.as_ref(), "Unreadable", &format!("{}{message}", of.prefix));
        }
        message
    }
}
