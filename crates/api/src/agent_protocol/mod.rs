//! The protocol between agents and a hub, as `proto/taffrail/agent/v1/agent.proto` documents it, and the conversion of
//! its reports from and to those of [`crate::report`].
//!
//! `cargo xtask docs` generates the types of the messages from that file, and the stubs of the service in the crates
//! that use them.

#[allow(
    missing_docs,
    clippy::all,
    clippy::allow_attributes_without_reason,
    reason = "the documentation of this generated code is that of its source"
)]
mod generated;
mod read;
mod write;

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use generated::*;
pub use read::InvalidMessage;

use crate::operations::OperationQuestion;
use crate::question::QuestionError;

/// The maximum length of a message that an agent sends, in bytes, unless a single half or the facts about a cluster are
/// longer.
pub const MAX_MESSAGE: usize = 64 * 1024;

/// The maximum length of a message that a hub or an agent accepts, in bytes. The largest half that the limits of a
/// report allow fits.
pub const MAX_ACCEPTED: usize = 512 << 10;

/// The maximum number of entries in one message of a spool.
pub const MAX_SPOOLED: usize = 512;

/// The length of the texts of the failures of a cluster in one message, in bytes; the others are only counted.
const MAX_ERRORS: usize = 256 << 10;

/// The name of the metadata that tells an error of a hub from one that a proxy made.
pub const REFUSED: &str = "taffrail-refused";

/// The question of [`QuestionKind::Plan`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanRequest {
    /// The question of the operation.
    pub question: OperationQuestion,
    /// The time that the writes shall contain; `None` for the present.
    pub planned_at: Option<Timestamp>,
}

/// The reason why an agent gave no answer to a question, as [`Answer::error`] holds it in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AnswerFault {
    /// The question names something that the cluster does not have.
    Question(QuestionError),
    /// The cluster did not answer in time.
    Late,
    /// Another reason, for people.
    Failed(String),
}

impl AnswerFault {
    /// Reads the text of [`Answer::error`]; one of a later release is the reason for people.
    pub fn read(text: &str) -> AnswerFault {
        serde_json::from_str(text).unwrap_or_else(|_| AnswerFault::Failed(text.to_owned()))
    }
}

/// Formats as [`AnswerFault::read`] reads it.
impl std::fmt::Display for AnswerFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| std::fmt::Error)?)
    }
}

/// Returns the bytes that an agent signs to enrol: they tie the token to the cluster.
pub fn enrolment_to_sign(token: &str, cluster: &str) -> Vec<u8> {
    [b"taffrail-enrol".as_slice(), token.as_bytes(), cluster.as_bytes()].join(&0)
}

/// Returns the bytes that an agent signs to answer a challenge of a hub.
pub fn challenge_to_sign(nonce: &[u8], cluster: &str) -> Vec<u8> {
    let mut signed = b"taffrail-session\0".to_vec();
    signed.extend(nonce);
    signed.extend(cluster.as_bytes());
    signed
}

/// The SHA-256 hash of a public key in its DER form (SubjectPublicKeyInfo), by which agents recognise hubs, and hubs
/// recognise agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub [u8; 32]);

impl KeyHash {
    /// Computes the hash of a public key.
    pub fn of(public_key: &[u8]) -> KeyHash {
        KeyHash(Sha256::digest(public_key).into())
    }

    /// Parses 64 hexadecimal digits; `None` for other texts.
    pub fn parse(text: &str) -> Option<KeyHash> {
        let mut hash = [0; 32];
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, at) in hash.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        Some(KeyHash(hash))
    }
}

/// Formats as 64 hexadecimal digits.
impl std::fmt::Display for KeyHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| f.write_fmt(format_args!("{byte:02x}")))
    }
}

/// A token with which one agent can enrol, and the keys by which it recognises the hub.
///
/// Its text is `TOKEN` or `TOKEN.PIN,PIN`: the pins are those of [`Welcome::pins`]. Without any the agent trusts the
/// certificates that its machine trusts.
#[derive(Clone, PartialEq, Eq)]
pub struct EnrolmentToken {
    /// The secret part, which the hub knows by its hash alone.
    pub token: String,
    /// The keys of the hub's certificate and of its issuers.
    pub pins: Vec<KeyHash>,
}

impl EnrolmentToken {
    /// Parses the text of a token; `None` if a pin is malformed, or the secret part is empty or has other letters
    /// than the hub makes tokens of.
    pub fn parse(text: &str) -> Option<EnrolmentToken> {
        let (token, pins) = text.split_once('.').map_or((text, None), |(token, pins)| (token, Some(pins)));
        let pins = pins.into_iter().flat_map(|pins| pins.split(',')).map(KeyHash::parse);
        let pins = pins.collect::<Option<Vec<_>>>()?;
        let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_token = !token.is_empty() && token.bytes().all(is_of_token);
        is_token.then(|| EnrolmentToken { token: token.to_owned(), pins })
    }
}

/// Formats as the text that [`EnrolmentToken::parse`] parses.
impl std::fmt::Display for EnrolmentToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.token)?;
        for (at, pin) in self.pins.iter().enumerate() {
            f.write_char(if at == 0 { '.' } else { ',' })?;
            write!(f, "{pin}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
