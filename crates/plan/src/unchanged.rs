//! Remembers which objects were equal to their manifests, so that those which nobody changed since need no request.
//!
//! An object is taken as unchanged if its UID, the digest of what is wanted, and the [token](LiveToken) of what is live are
//! those of the time at which the API server last said that nothing differs. Who owns a field may change without a trace in
//! a token: so each object is asked about again after [`UnchangedRules::verify_every`], and all of them when the API server
//! has another version.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use taffrail_object::{LAST_APPLIED, LEADER, LiveToken, ObjectDigest, ObjectKey, TokenSeed};

/// The time after which an object is asked about again, unless another one is chosen.
pub const VERIFY_EVERY: SignedDuration = SignedDuration::from_hours(24);

/// The live object as it is seen without a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveState {
    /// `metadata.uid`.
    pub uid: String,
    /// The token of its state, with the seed of the [`VerifiedObjects`] that it is compared with.
    pub token: LiveToken,
}

/// The facts that decide how long a verified object is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnchangedRules<'a> {
    /// The version of the API server, as it states it.
    pub server: &'a str,
    /// The time after which an object is asked about again.
    pub verify_every: SignedDuration,
    /// The time of this look.
    pub now: Timestamp,
}

/// The objects of a set that were equal to their manifests when the API server was last asked.
///
/// It holds no value of an object. It is kept beside the set; what cannot be read is the same as an empty one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerifiedObjects {
    /// The seed of all digests in it.
    seed: TokenSeed,
    /// The version of the API server that was asked.
    server: String,
    #[serde(with = "as_list")]
    objects: BTreeMap<ObjectKey, VerifiedObject>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct VerifiedObject {
    uid: String,
    wanted: ObjectDigest,
    live: LiveToken,
    at: Timestamp,
}

impl Default for VerifiedObjects {
    /// Returns an empty one with a seed of its own.
    fn default() -> VerifiedObjects {
        VerifiedObjects::with_seed(TokenSeed::random())
    }
}

impl VerifiedObjects {
    /// Returns an empty one that compares tokens of this seed.
    pub fn with_seed(seed: TokenSeed) -> VerifiedObjects {
        VerifiedObjects { seed, server: String::new(), objects: BTreeMap::new() }
    }

    /// Returns the seed that tokens must have to be compared.
    pub fn seed(&self) -> TokenSeed {
        self.seed
    }

    /// Returns true if nothing can differ between an object and its manifest, so that the API server need not be asked.
    /// `wanted` is the object of the manifest, and `applied_as` names all else that decides what an apply makes of it: the
    /// field manager, options, rules that ignore fields.
    pub fn is_unchanged(
        &self,
        key: &ObjectKey,
        wanted: &Value,
        applied_as: &[&str],
        live: &LiveState,
        rules: &UnchangedRules<'_>,
    ) -> bool {
        let Some(verified) = self.objects.get(key) else { return false };
        let age = rules.now.duration_since(verified.at);
        self.server == rules.server
            && verified.uid == live.uid
            && verified.live == live.token
            // A clock that was set back proves nothing about an age.
            && (SignedDuration::ZERO..rules.verify_every).contains(&age)
            && self.digest_of(wanted, applied_as) == Some(verified.wanted)
    }

    /// Remembers that the API server said of an object, in the state `live`, that it does not differ from its manifest. An
    /// object whose manifest has what tokens leave out is not remembered.
    pub fn verify(
        &mut self,
        key: &ObjectKey,
        wanted: &Value,
        applied_as: &[&str],
        live: LiveState,
        rules: &UnchangedRules<'_>,
    ) {
        if self.server != rules.server {
            self.objects.clear();
            rules.server.clone_into(&mut self.server);
        }
        match self.digest_of(wanted, applied_as) {
            Some(digest) if !live.uid.is_empty() => {
                let LiveState { uid, token } = live;
                let verified = VerifiedObject { uid, wanted: digest, live: token, at: rules.now };
                self.objects.insert(key.clone(), verified);
            }
            _ => self.forget(key),
        }
    }

    /// Forgets an object: it differs, or is not wanted any more.
    pub fn forget(&mut self, key: &ObjectKey) {
        self.objects.remove(key);
    }

    /// Forgets the objects for which `is_wanted` returns false.
    pub fn retain(&mut self, mut is_wanted: impl FnMut(&ObjectKey) -> bool) {
        self.objects.retain(|key, _| is_wanted(key));
    }

    /// Returns the digest of a manifest; `None` if it declares a field that no token covers.
    fn digest_of(&self, wanted: &Value, applied_as: &[&str]) -> Option<ObjectDigest> {
        let annotations = wanted.pointer("/metadata/annotations").and_then(Value::as_object);
        let is_covered = wanted.get("status").is_none()
            && !annotations.is_some_and(|all| [LAST_APPLIED, LEADER].iter().any(|it| all.contains_key(*it)));
        let text = wanted.to_string();
        let parts = std::iter::once(text.as_bytes()).chain(applied_as.iter().map(|part| part.as_bytes()));
        is_covered.then(|| self.seed.digest(parts))
    }
}

/// Keys are objects in JSON, which cannot be names of members.
mod as_list {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use taffrail_object::ObjectKey;

    use super::VerifiedObject;

    #[derive(Serialize, Deserialize)]
    struct Entry<K, V> {
        object: K,
        verified: V,
    }

    pub(super) fn serialize<S: Serializer>(
        objects: &BTreeMap<ObjectKey, VerifiedObject>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(objects.iter().map(|(object, verified)| Entry { object, verified }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<ObjectKey, VerifiedObject>, D::Error> {
        let entries = Vec::<Entry<ObjectKey, VerifiedObject>>::deserialize(deserializer)?;
        Ok(entries.into_iter().map(|entry| (entry.object, entry.verified)).collect())
    }
}
