//! Objects of a snapshot that are told of again and again, by reads of both bodies.

use taffrail_object::json::OwnedDocument;
use taffrail_object::{Object, ObjectKey, Projection};

use super::{InsertError, Snapshot, is_answer_to};
use crate::reads::Read;

impl Snapshot {
    /// As [`Snapshot::insert_asked`], of an object that is followed. Metadata that is newer than the whole copy that is known takes its
    /// place, so that the rest is not told as if it were of now, unless another read `brings_body`: then that one says what it is.
    ///
    /// # Errors
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
            // If it is wanted, it is read again.
            self.forget(key);
        }
        self.insert_asked(read, document)
    }

    /// Keeps of an object no more than its metadata: the rest is no longer told.
    pub fn forget_body(&mut self, key: &ObjectKey) {
        let known = self.objects.get_key_value(key);
        let known = known.filter(|(_, stored)| stored.projection == Projection::Full);
        let metadata = known.and_then(|(key, stored)| Some((key.clone(), stored.metadata()?)));
        if let Some((key, metadata)) = metadata {
            self.store(key, metadata);
        }
    }
}

/// Whether an object is of a later time than another of its name. What numbers them otherwise than API servers do may be.
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
