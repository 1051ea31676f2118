//! Objects of a snapshot that watches deliver both as metadata and whole.

use taffrail_object::json::OwnedDocument;
use taffrail_object::{Object, ObjectKey, Projection};

use super::{InsertError, Snapshot, is_answer_to};
use crate::reads::read::Read;

impl Snapshot {
    /// Inserts an object that a watch delivered, like [`Snapshot::insert_asked`].
    ///
    /// Metadata that is newer than the stored whole object replaces it, unless another watch will deliver the new
    /// whole object (`brings_body`).
    ///
    /// # Errors
    ///
    /// As [`Snapshot::insert_asked`].
    pub fn insert_followed(
        &mut self,
        read: &Read,
        key: &ObjectKey,
        document: OwnedDocument,
        brings_body: bool,
    ) -> Result<(), InsertError> {
        if read.projection == Projection::Metadata
            && !brings_body
            && is_answer_to(read, &document)
            && let Some(known) = self.objects.get(key).filter(|stored| stored.projection == Projection::Full)
            && is_newer(&document, &known.document)
        {
            self.remove(key);
            // If it is needed, it is read again.
            self.forget(key);
        }
        self.insert_asked(read, document)
    }

    /// Reduces a stored object to its metadata, because the rest may be outdated.
    pub fn forget_body(&mut self, key: &ObjectKey) {
        let known = self.objects.get_key_value(key);
        let known = known.filter(|(_, stored)| stored.projection == Projection::Full);
        let metadata = known.and_then(|(key, stored)| Some((key.clone(), stored.metadata()?)));
        if let Some((key, metadata)) = metadata {
            self.store(key, metadata);
        }
    }
}

/// Returns true if `one` has a higher resource version than `other`, an object of the same name. Of versions
/// that are not numbers, a different one counts as higher.
fn is_newer(one: &OwnedDocument, other: &OwnedDocument) -> bool {
    let version = |document: &OwnedDocument| {
        let object = Object::new(document.root()).ok();
        object.map(|it| it.text(&["metadata", "resourceVersion"]).into_owned()).unwrap_or_default()
    };
    let (one, other) = (version(one), version(other));
    match (one.parse::<u128>(), other.parse::<u128>()) {
        (Ok(one), Ok(other)) => one > other,
        _ => one != other && !one.is_empty(),
    }
}
