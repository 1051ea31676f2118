//! Access tokens: random texts of which the hub keeps only hashes.

use std::collections::BTreeSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::StoreError;

/// The number of random bytes of a token.
const RANDOM_BYTES: usize = 32;

/// The text before the random part of a token, by which scanners for leaked secrets find it.
const PREFIX: &str = "taffrail_";

/// The right to read the logs of containers, beyond the status of the fleet, as [`TokenRecord::rights`] names it.
pub const LOGS_RIGHT: &str = "logs";

/// The right to run operations, such as to suspend apps, as [`TokenRecord::rights`] names it.
pub const ACT_RIGHT: &str = "act";

/// A new access token in clear text. It is shown once and saved nowhere; `Debug` does not print it.
pub struct Token(String);

impl Token {
    /// Makes a token from 256 random bits of the operating system, which a URL can have in its fragment, and which with
    /// the URL of a hub on this machine fits into 80 columns.
    ///
    /// # Errors
    /// If the operating system gives no random bytes.
    pub fn generate() -> Result<Token, StoreError> {
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random).map_err(|error| StoreError::NoRandomness(error.to_string()))?;
        Ok(Token(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random))))
    }

    /// Returns the token in clear text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Makes the record of the token, which does not expire and has no further rights.
    pub fn record(&self, name: impl Into<String>, created: Timestamp) -> TokenRecord {
        let hash = TokenHash::of(&self.0);
        let id = hex(hash.0.get(..4).unwrap_or_default());
        TokenRecord { id, name: name.into(), hash, rights: BTreeSet::new(), created, expires: None }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The SHA-256 hash of an access token. A token has 256 random bits, so that a slow hash would add nothing.
#[derive(Clone, Copy)]
pub struct TokenHash(pub(crate) [u8; 32]);

impl TokenHash {
    /// Computes the hash of a token in clear text.
    pub fn of(token: &str) -> TokenHash {
        TokenHash(Sha256::digest(token.as_bytes()).into())
    }
}

/// Compares in a time that does not depend on the contents.
impl PartialEq for TokenHash {
    fn eq(&self, other: &TokenHash) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        std::hint::black_box(pairs.fold(0, |differs, (own, other)| differs | (own ^ other))) == 0
    }
}

impl Eq for TokenHash {}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// An access token, as the hub keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// The identity, by which a token is listed and revoked: 8 hexadecimal digits of the hash.
    pub id: String,
    /// The name that the user gave the token.
    pub name: String,
    /// The hash of the token.
    pub hash: TokenHash,
    /// The rights beyond reading the status of the fleet: [`LOGS_RIGHT`], [`ACT_RIGHT`], or what a later release knows.
    pub rights: BTreeSet<String>,
    /// The time of its creation.
    pub created: Timestamp,
    /// The time at which it becomes invalid; `None` if it stays valid until it is revoked.
    pub expires: Option<Timestamp>,
}

impl TokenRecord {
    /// Returns true if `token` is this token and it has not expired at `now`.
    pub fn admits(&self, token: &str, now: Timestamp) -> bool {
        TokenHash::of(token) == self.hash && self.is_valid(now)
    }

    /// Returns true if the token may read the logs of containers.
    pub fn reads_logs(&self) -> bool {
        self.rights.contains(LOGS_RIGHT)
    }

    /// Returns true if the token may run operations.
    pub fn acts(&self) -> bool {
        self.rights.contains(ACT_RIGHT)
    }

    /// Returns true if the token has not expired at `now`.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_admits_until_it_expires() {
        let token = Token::generate().unwrap();
        let record = token.record("ci", Timestamp::UNIX_EPOCH);
        assert!(record.admits(token.as_str(), Timestamp::MAX));
        assert!(!record.admits("taffrail_", Timestamp::UNIX_EPOCH));
        assert_eq!(token.as_str().len(), PREFIX.len() + 43);
        assert_eq!(record.id.len(), 8);
        let expiring = TokenRecord { expires: Some(Timestamp::UNIX_EPOCH), ..record };
        assert!(!expiring.admits(token.as_str(), Timestamp::UNIX_EPOCH));
        assert!(!format!("{token:?} {expiring:?}").contains(&token.as_str()[PREFIX.len()..]));
    }
}
