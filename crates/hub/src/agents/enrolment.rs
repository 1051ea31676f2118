//! Enrolment: an agent exchanges a one-time token for being known.

use taffrail_api::agent_protocol::{EnrolReply, EnrolRequest, KeyHash, enrolment_to_sign};
use taffrail_api::report::MAX_NAME;
use taffrail_apps::ClusterId;
use tonic::Status;

use super::Agents;
use super::authority::AgentKey;
use crate::index::lock;
use crate::store::{AgentRecord, TokenHash};

impl Agents {
    /// Enrols an agent, and returns its certificate.
    ///
    /// # Errors
    /// The errors that the protocol documents for `Enrol`.
    pub(super) async fn enrol(&self, request: EnrolRequest) -> Result<EnrolReply, Status> {
        let EnrolRequest { token, public_key, cluster, name, version, proof } = request;
        let key = AgentKey::read(&public_key).ok_or_else(|| {
            Status::invalid_argument("the public key of the agent is not an ECDSA key on P-256")
        })?;
        for (what, text) in [("identity of the cluster", &cluster), ("version", &version)] {
            if !is_fit(text) {
                return Err(Status::invalid_argument(format!(
                    "the {what} is empty, too long, or not plain text"
                )));
            }
        }
        if !key.has_signed(&enrolment_to_sign(&token, &cluster), &proof) {
            return Err(Status::unauthenticated("the proof was not signed with the agent's key"));
        }
        let refused = || {
            Status::unauthenticated(
                "the enrolment token is unknown, used or expired; create another one: taffrail hub token create --agent",
            )
        };
        let hash = TokenHash::of(&token);
        let now = self.index.clock().time().now;
        let found = self.store.enrolment(hash).await.map_err(unavailable)?;
        let found = found.filter(|found| found.used.is_none() && now < found.expires).ok_or_else(refused)?;
        let cluster = ClusterId(cluster);
        let is_named = found.cluster.is_some();
        let name = found.cluster.unwrap_or(name);
        let _turn = self.enrolling.turn(&name, &cluster).await;
        let is_revoked = |agent: AgentRecord| agent.revoked.is_some();
        if self.known(KeyHash::of(&public_key)).is_some_and(is_revoked) {
            return Err(Status::permission_denied("the agent's key was revoked; enrol with another one"));
        }
        self.admit(&cluster, &name, is_named)?;
        let (certificate, expires) = self.authority.issue(&key, &cluster.0, now).map_err(unavailable)?;
        let agent = AgentRecord {
            public_key,
            cluster,
            name: name.clone(),
            version,
            enrolled: now,
            seen: now,
            expires,
            is_proxied: false,
            revoked: None,
        };
        if !self.store.enrol(hash, agent.clone()).await.map_err(unavailable)? {
            return Err(refused());
        }
        lock(&self.known).insert(agent.key(), agent);
        Ok(EnrolReply { certificate, name, pins: self.told_pins() })
    }

    /// Checks that the hub may list the cluster as `name`, which the token names if `is_named` is true, else the agent.
    ///
    /// # Errors
    /// If another cluster has the name, or the cluster is known and the token does not name it.
    fn admit(&self, cluster: &ClusterId, name: &str, is_named: bool) -> Result<(), Status> {
        if !is_fit(name) {
            return Err(Status::invalid_argument(
                "the name of the cluster is empty, too long, or not plain text",
            ));
        }
        let identities = self.index.identities();
        let agents = lock(&self.known);
        let of_agents = agents.values().filter(|agent| agent.revoked.is_none());
        let all = || {
            let followed = identities.iter().map(|(name, id)| (name.as_str(), id));
            followed.chain(of_agents.clone().map(|agent| (agent.name.as_str(), &agent.cluster)))
        };
        if all().any(|(known, id)| known == name && id != cluster) {
            return Err(Status::already_exists(format!(
                "another cluster is listed as '{name}'; choose another name: taffrail agent --name NAME"
            )));
        }
        let known: Vec<&str> = all().filter(|(_, id)| *id == cluster).map(|(known, _)| known).collect();
        match known.first() {
            None => Ok(()),
            Some(_) if is_named && known.contains(&name) => Ok(()),
            Some(known) => Err(Status::already_exists(format!(
                "the hub lists this cluster as '{known}'; to let an agent report it, create a token for it: \
                 taffrail hub token create --agent --cluster {known}"
            ))),
        }
    }

    /// Returns the keys by which agents recognise the hub, as messages tell them.
    pub(super) fn told_pins(&self) -> Vec<Vec<u8>> {
        self.pins.borrow().iter().map(|pin| pin.0.to_vec()).collect()
    }
}

/// Returns true for a text that can be a name or an identity.
fn is_fit(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= MAX_NAME && !text.chars().any(char::is_control)
}

/// The status for an agent that can try again later.
fn unavailable(error: impl std::error::Error) -> Status {
    Status::unavailable(format!("the hub cannot do this now: {error}"))
}
