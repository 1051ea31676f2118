//! Cursors of pages: the position of the last row, as text that clients do not read.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::problem::Refusal;

/// The contents of a cursor: a position in one list of one run of the hub.
#[derive(Serialize, Deserialize)]
struct Envelope<K> {
    /// The identity of the run of the hub.
    #[serde(rename = "i")]
    instance: String,
    /// The name of the list, of clusters with its order: `clusters by None`.
    #[serde(rename = "l")]
    list: String,
    #[serde(rename = "k")]
    key: K,
}

/// Encodes the position `key` in `list` as a cursor of the run `instance` of the hub; `None` if `key` cannot be
/// serialized.
pub(crate) fn write(instance: &str, list: &str, key: impl Serialize) -> Option<String> {
    let envelope = Envelope { instance: instance.to_owned(), list: list.to_owned(), key };
    Some(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&envelope).ok()?))
}

/// Decodes a cursor and returns its position. Refuses a text that is not a cursor, and a cursor of another run of the
/// hub than `instance` or of another list than `list`.
pub(crate) fn read<K: DeserializeOwned>(instance: &str, list: &str, text: &str) -> Result<K, Refusal> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| Refusal::cursor())?;
    let envelope: Envelope<K> = serde_json::from_slice(&bytes).map_err(|_| Refusal::cursor())?;
    let is_own = envelope.instance == instance && envelope.list == list;
    if is_own { Ok(envelope.key) } else { Err(Refusal::cursor()) }
}
