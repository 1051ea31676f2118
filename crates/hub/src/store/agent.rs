//! Agents that enrolled, the tokens for enrolling, and the authority that issues their certificates.

use jiff::Timestamp;
use taffrail_api::agent_protocol::KeyHash;
use taffrail_apps::ClusterId;

use super::TokenHash;

/// An agent that enrolled, as the hub keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRecord {
    /// The agent's public key, a SubjectPublicKeyInfo in DER.
    pub public_key: Vec<u8>,
    /// The identity of the cluster that the agent reports.
    pub cluster: ClusterId,
    /// The name under which the hub lists the cluster.
    pub name: String,
    /// The version of the agent when it last connected.
    pub version: String,
    /// The time at which the agent enrolled.
    pub enrolled: Timestamp,
    /// The time at which the agent last connected, or was last seen connected.
    pub seen: Timestamp,
    /// The time at which the agent's last certificate expires.
    pub expires: Timestamp,
    /// True if the last connection passed a proxy that ends TLS.
    pub is_proxied: bool,
    /// The time at which the agent was revoked; `None` if it was not.
    pub revoked: Option<Timestamp>,
}

impl AgentRecord {
    /// Returns the hash of the agent's public key, which identifies the agent.
    pub fn key(&self) -> KeyHash {
        KeyHash::of(&self.public_key)
    }
}

/// A one-time token for enrolling an agent, as the hub keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnrolmentRecord {
    /// The hash of the token.
    pub hash: TokenHash,
    /// The name of the cluster that the agent reports; `None` if the agent chooses it, which must then be new.
    pub cluster: Option<String>,
    /// The time of its creation.
    pub created: Timestamp,
    /// The time at which it becomes invalid.
    pub expires: Timestamp,
    /// The time at which an agent enrolled with it; `None` if none did.
    pub used: Option<Timestamp>,
}

/// The key of the authority that issues the certificates of agents. `Debug` does not print the private key.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthorityRecord {
    /// The private key, in PEM.
    pub key: String,
    /// The authority's own certificate, in PEM.
    pub certificate: String,
}

impl std::fmt::Debug for AuthorityRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthorityRecord").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}
