//! The table of texts: each text is saved once, and other tables refer to it by id.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io;

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};
use sha2::{Digest, Sha256};
use sqlx::SqliteConnection;

use super::error::failed;
use crate::store::StoreError;

/// The greatest number of texts whose ids one statement looks up or saves; more take several.
const MAX_TEXTS: usize = 10_000;

/// Collects the texts that a group of writes needs, and then maps them to their ids.
#[derive(Debug, Default)]
pub(super) struct TextIds {
    wanted: HashSet<String>,
    ids: HashMap<String, i64>,
}

impl TextIds {
    /// Returns the id of a text if [`resolve`](TextIds::resolve) found it; else records that it is needed, and returns
    /// 0.
    pub(super) fn id(&mut self, text: &str) -> i64 {
        let text = &*saved_form(text);
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        if !self.wanted.contains(text) {
            self.wanted.insert(text.to_owned());
        }
        0
    }

    /// Finds the ids of the recorded texts in the database, and saves the texts that are new.
    pub(super) async fn resolve(&mut self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        let wanted: Vec<String> = self.wanted.drain().collect();
        for texts in wanted.chunks(MAX_TEXTS) {
            let hashed: Vec<(i64, &str)> = texts.iter().map(|text| (hash(text), text.as_str())).collect();
            let hashes: Vec<i64> = hashed.iter().map(|(hash, _)| *hash).collect();
            let known: Vec<(i64, String)> = sqlx::query_as(
                "SELECT t.id, t.text FROM json_each(?1) e CROSS JOIN texts t ON t.hash = e.value",
            )
            .bind(encode(&hashes)?)
            .fetch_all(&mut *connection)
            .await
            .map_err(failed("look up texts"))?;
            self.ids.extend(known.into_iter().map(|(id, text)| (text, id)));
            let last: i64 = sqlx::query_scalar("SELECT coalesce(max(id), 0) FROM texts")
                .fetch_one(&mut *connection)
                .await
                .map_err(failed("look up texts"))?;
            let new = hashed.iter().filter(|(_, text)| !self.ids.contains_key(*text));
            let new: Vec<(i64, i64, &str)> =
                new.zip(last + 1..).map(|((hash, text), id)| (id, *hash, *text)).collect();
            if new.is_empty() {
                continue;
            }
            sqlx::query(
                "INSERT INTO texts (id, hash, text) SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?1)",
            )
            .bind(encode(&new)?)
            .execute(&mut *connection)
            .await
            .map_err(failed("save texts"))?;
            self.ids.extend(new.into_iter().map(|(id, _, text)| (text.to_owned(), id)));
        }
        Ok(())
    }
}

/// Texts by their ids.
#[derive(Debug, Default)]
pub(super) struct Texts(FxHashMap<i64, String>);

impl Texts {
    /// Reads the texts with these ids, in any order; leaves out ids that the database does not have.
    pub(super) async fn read(
        connection: &mut SqliteConnection,
        mut ids: Vec<i64>,
    ) -> Result<Texts, StoreError> {
        ids.sort_unstable();
        ids.dedup();
        // One array of JSON costs less than many rows.
        let found: String = sqlx::query_scalar(
            "SELECT json_group_array(json_array(t.id, t.text))
             FROM json_each(?1) e CROSS JOIN texts t ON t.id = e.value",
        )
        .bind(encode(&ids)?)
        .fetch_one(connection)
        .await
        .map_err(failed("read texts"))?;
        let found: Vec<(i64, String)> = serde_json::from_str(&found)
            .map_err(|error| StoreError::damaged(format!("the table of texts has other columns: {error}")))?;
        Ok(Texts(found.into_iter().collect()))
    }

    /// Returns the text of an id; the error that the store is damaged if it was not read.
    pub(super) fn get(&self, id: i64) -> Result<&str, StoreError> {
        let text = self.0.get(&id).map(String::as_str);
        text.ok_or_else(|| {
            StoreError::damaged(format!("a row refers to the text with the id {id}, which is missing"))
        })
    }
}

/// Returns a text with each NUL replaced by U+FFFD: PostgreSQL cannot hold NUL, and SQLite ends JSON texts at it.
pub(super) fn saved_form(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{FFFD}")) } else { Cow::Borrowed(text) }
}

/// Formats values as JSON, with each NUL in their texts replaced as by [`saved_form`].
pub(super) fn encode(values: &impl Serialize) -> Result<String, StoreError> {
    let mut text = Vec::new();
    let error = |error: String| StoreError::damaged(format!("a value cannot be written as JSON: {error}"));
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, WithoutNul);
    values.serialize(&mut serializer).map_err(|why| error(why.to_string()))?;
    String::from_utf8(text).map_err(|why| error(why.to_string()))
}

/// Compact JSON with U+FFFD in place of NUL.
struct WithoutNul;

impl Formatter for WithoutNul {
    fn write_char_escape<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        match escape {
            CharEscape::AsciiControl(0) => writer.write_all("\u{FFFD}".as_bytes()),
            other => CompactFormatter.write_char_escape(writer, other),
        }
    }
}

/// Returns the hash of a text. It resists texts that are made to have equal hashes, which would make look-ups slow.
pub(super) fn hash(text: &str) -> i64 {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(8).fold(0, |hash, byte| hash << 8 | i64::from(*byte))
}
