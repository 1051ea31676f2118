//! Selection of the form of an answer by the `Accept` header.

use crate::behaviour::{Behaviour, Behaviours};
use crate::error::{Answered, ApiError};

/// The forms in which objects can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Whole objects.
    Whole,
    /// Only their metadata, as PartialObjectMetadata.
    Partial,
    /// Rows of a Table.
    Table,
}

/// Returns the first form in the `Accept` header that the server supports in JSON, and whole objects without that
/// header; fails with 406 if there is none.
pub(super) fn form(accept: &str, does: &Behaviours) -> Answered<Form> {
    if accept.trim().is_empty() {
        return Ok(Form::Whole);
    }
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        if !matches!(media, "application/json" | "*/*" | "application/*") {
            continue;
        }
        let mut wanted = None;
        let mut of_meta = true;
        for part in parts {
            match part.split_once('=') {
                Some(("as", value)) => wanted = Some(value),
                Some(("g", group)) => of_meta &= group == "meta.k8s.io",
                Some(("v", version)) => of_meta &= matches!(version, "v1" | "v1beta1"),
                _ => {}
            }
        }
        match wanted {
            None => return Ok(Form::Whole),
            Some("Table") if of_meta && does.on(Behaviour::Tables) => return Ok(Form::Table),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList")
                if of_meta && does.on(Behaviour::MetadataOnly) =>
            {
                return Ok(Form::Partial);
            }
            Some(_) => {}
        }
    }
    if does.on(Behaviour::NotAcceptable) { Err(ApiError::not_acceptable()) } else { Ok(Form::Whole) }
}
