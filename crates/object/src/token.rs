//! Tokens of live objects: they tell if an object changed since it was last looked at, without keeping it.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::json::Value;
use crate::{LAST_APPLIED, LEADER, Object, Projection};

/// The seed of digests. It is random, so that no author of objects can craft a change that keeps a digest; digests with
/// different seeds cannot be compared.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenSeed(u64);

impl TokenSeed {
    /// Draws a seed.
    pub fn random() -> TokenSeed {
        TokenSeed(RandomState::new().hash_one(0_u64))
    }

    /// Returns the seed as a number.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Returns the seed with this number.
    pub fn of_number(number: u64) -> TokenSeed {
        TokenSeed(number)
    }

    /// Returns a digest of `parts`; that of other parts, or of the same ones in another order, is another one.
    pub fn digest<'p>(self, parts: impl IntoIterator<Item = &'p [u8]>) -> ObjectDigest {
        let mut digester = Digester::new(self);
        parts.into_iter().for_each(|part| digester.add(part));
        digester.finish()
    }
}

impl fmt::Debug for TokenSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Who knows it can craft collisions.
        f.write_str("TokenSeed(_)")
    }
}

impl From<TokenSeed> for String {
    fn from(seed: TokenSeed) -> String {
        format!("{:016x}", seed.0)
    }
}

impl TryFrom<String> for TokenSeed {
    type Error = InvalidToken;

    fn try_from(text: String) -> Result<TokenSeed, InvalidToken> {
        hexadecimal(&text, 16).and_then(|bits| u64::try_from(bits).ok()).map(TokenSeed).ok_or(InvalidToken)
    }
}

/// A seeded digest in 128 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
// Two halves: a number of 128 bits wants places that are multiples of its size.
pub struct ObjectDigest([u64; 2]);

impl ObjectDigest {
    /// Returns the digest as a number.
    pub fn bits(self) -> u128 {
        let [high, low] = self.0;
        (u128::from(high) << 64) | u128::from(low)
    }

    /// Returns the digest with this number.
    pub fn of_bits(bits: u128) -> ObjectDigest {
        ObjectDigest([(bits >> 64) as u64, bits as u64])
    }
}

impl fmt::Display for ObjectDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.bits())
    }
}

impl From<ObjectDigest> for String {
    fn from(digest: ObjectDigest) -> String {
        digest.to_string()
    }
}

impl TryFrom<String> for ObjectDigest {
    type Error = InvalidToken;

    fn try_from(text: String) -> Result<ObjectDigest, InvalidToken> {
        hexadecimal(&text, 32).map(ObjectDigest::of_bits).ok_or(InvalidToken)
    }
}

/// The error for a text that is not a token, a digest or a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text is not a token of an object")]
pub struct InvalidToken;

fn hexadecimal(text: &str, digits: usize) -> Option<u128> {
    let is_usual = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_usual.then(|| u128::from_str_radix(text, 16).ok())?
}

struct Digester(Xxh3);

impl Digester {
    fn new(seed: TokenSeed) -> Digester {
        Digester(Xxh3::with_seed(seed.0))
    }

    fn add(&mut self, part: &[u8]) {
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    fn add_value(&mut self, value: Value<'_>) {
        match value.text() {
            Some(text) => self.add(text),
            None => {
                let mut text = Vec::new();
                value.write(&mut text);
                self.add(&text);
            }
        }
    }

    fn finish(self) -> ObjectDigest {
        ObjectDigest::of_bits(self.0.digest128())
    }
}

/// Returns a digest of what is declared of an object: labels, annotations, finalizers, owners, and all fields except other
/// metadata and status; and of the fact that it is being deleted.
///
/// It is computed from the API server's text, which always has the members of an object in the same order. The annotation with
/// a leader, which nobody declares, is left out. kubectl's copy of the object counts, since it decides what an apply removes.
/// The digest covers neither that copy nor any other field of a Secret, only `spec.holderIdentity` of a Lease, and only the
/// generation of an object of which only the metadata was read: see [`LiveToken`] for these.
pub fn declared_digest(object: &Object<'_>, projection: Projection, seed: TokenSeed) -> ObjectDigest {
    let mut digester = Digester::new(seed);
    digester.add(&[u8::from(projection == Projection::Metadata)]);
    let is_secret = (object.group(), object.kind()) == ("", "Secret");
    // The copy of a Secret has its values.
    let has_copy = projection == Projection::Full && !is_secret;
    // Each field is three parts, the first of which says where it is: what moves to another place is a change.
    let mut add = |place: &str, key: &str, value: Value<'_>| {
        digester.add(place.as_bytes());
        digester.add(key.as_bytes());
        digester.add_value(value);
    };
    for (key, value) in object.metadata().and_then(Value::members).into_iter().flatten() {
        match &*key {
            "labels" | "finalizers" | "ownerReferences" | "deletionTimestamp" => add("metadata", &key, value),
            "annotations" => {
                for (name, value) in value.members().into_iter().flatten() {
                    if name != LEADER && (name != LAST_APPLIED || has_copy) {
                        add("annotations", &name, value);
                    }
                }
            }
            _ => {}
        }
    }
    match (object.group(), object.kind()) {
        _ if projection == Projection::Metadata => {
            let generation = object.at(&["metadata", "generation"]).and_then(Value::as_i64);
            digester.add(&generation.unwrap_or(0).to_le_bytes());
        }
        _ if is_secret => {}
        ("coordination.k8s.io", "Lease") => {
            if let Some(holder) = object.at(&["spec", "holderIdentity"]) {
                add("", "spec", holder);
            }
        }
        _ => {
            for (key, value) in object.root().members().into_iter().flatten() {
                if !matches!(&*key, "apiVersion" | "kind" | "metadata" | "status") {
                    add("", &key, value);
                }
            }
        }
    }
    digester.finish()
}

/// The state of a live object in a few bytes: as long as it stays the same, nothing changed that a manifest can declare,
/// except a status and the annotation that [`declared_digest`] leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LiveToken {
    /// The [digest](declared_digest) of an object that was read whole.
    Digest(ObjectDigest),
    /// The `metadata.resourceVersion` of an object whose content the digest leaves out: any write makes it another one.
    Version(String),
}

impl LiveToken {
    /// Returns the token of an object; `None` if it has no resource version where one is needed.
    pub fn of(object: &Object<'_>, projection: Projection, seed: TokenSeed) -> Option<LiveToken> {
        let digest = || declared_digest(object, projection, seed);
        let version = object.text(&["metadata", "resourceVersion"]);
        LiveToken::new(object.group(), object.kind(), projection, digest, &version)
    }

    /// Returns the token of an object of a kind, of which `projection` was read, from its digest and its resource version;
    /// `None` if it has no resource version where one is needed.
    pub fn new(
        group: &str,
        kind: &str,
        projection: Projection,
        digest: impl FnOnce() -> ObjectDigest,
        version: &str,
    ) -> Option<LiveToken> {
        let is_whole = projection == Projection::Full
            && !matches!((group, kind), ("", "Secret") | ("coordination.k8s.io", "Lease"));
        match (is_whole, version) {
            (true, _) => Some(LiveToken::Digest(digest())),
            (false, "") => None,
            (false, version) => Some(LiveToken::Version(version.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn token(object: &serde_json::Value, projection: Projection, seed: TokenSeed) -> Option<LiveToken> {
        let object = Object::new(Value::from(object)).unwrap();
        LiveToken::of(&object, projection, seed)
    }

    #[test]
    fn seeds_and_digests_are_read_as_they_were_written() {
        let seed = TokenSeed::random();
        let text = serde_json::to_string(&seed).unwrap();
        assert_eq!(serde_json::from_str::<TokenSeed>(&text).unwrap(), seed);
        let digest = seed.digest([&b"a"[..], b"b"]);
        let text = serde_json::to_string(&LiveToken::Digest(digest)).unwrap();
        assert_eq!(serde_json::from_str::<LiveToken>(&text).unwrap(), LiveToken::Digest(digest));
        assert_ne!(seed.digest([&b"ab"[..]]), digest);
        assert_ne!(TokenSeed::of_number(!seed.number()).digest([&b"a"[..], b"b"]), digest);
        for odd in ["", "+0000000000000000000000000000000", "é", &"0".repeat(33)] {
            assert_eq!(ObjectDigest::try_from(odd.to_owned()), Err(InvalidToken), "{odd}");
        }
        assert_eq!(format!("{seed:?}"), "TokenSeed(_)");
    }

    #[test]
    fn what_a_digest_leaves_out_is_known_by_its_version() {
        let seed = TokenSeed::random();
        for (api_version, kind, projection, is_digest) in [
            ("v1", "ConfigMap", Projection::Full, true),
            ("v1", "ConfigMap", Projection::Metadata, false),
            ("v1", "Secret", Projection::Full, false),
            ("coordination.k8s.io/v1", "Lease", Projection::Full, false),
        ] {
            let mut object = json!({"apiVersion": api_version, "kind": kind,
                "metadata": {"name": "a", "resourceVersion": "7"}, "data": {"a": "b"}});
            let before = token(&object, projection, seed).unwrap();
            assert_eq!(matches!(before, LiveToken::Digest(_)), is_digest, "{kind}");
            object["metadata"]["resourceVersion"] = json!("8");
            assert_eq!(token(&object, projection, seed).unwrap() == before, is_digest, "{kind}");
            object["metadata"]["resourceVersion"] = json!("");
            assert_eq!(token(&object, projection, seed).is_some(), is_digest, "{kind}");
        }
    }
}
