//! Errors of an agent that do not end by themselves.

use std::error::Error;
use std::path::PathBuf;

/// The reason why an agent cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The identity of the agent cannot be read or written.
    #[error("cannot {action} the identity of the agent in {place}")]
    Kept {
        /// The action, as a verb: `read`.
        action: &'static str,
        /// The place that keeps it, such as the path of a file.
        place: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The place that keeps the identity of the agent has other contents.
    #[error("{place} does not hold the identity of an agent")]
    Malformed {
        /// The place.
        place: String,
        /// The cause, if a parser found it.
        source: Option<serde_json::Error>,
    },
    /// The identity is that of the agent of another cluster.
    #[error(
        "the identity in {place} is that of the agent of another cluster ({enrolled}), and this cluster is {found}"
    )]
    OtherCluster {
        /// The place that keeps the identity.
        place: String,
        /// The cluster for which the agent enrolled.
        enrolled: String,
        /// The cluster that the agent observes.
        found: String,
    },
    /// The agent has no identity, and no token to get one.
    #[error("the agent is not enrolled at the hub")]
    NotEnrolled,
    /// The hub refused to enrol the agent; holds the hub's reason.
    #[error("the hub refused to enrol the agent: {0}")]
    EnrolmentRefused(String),
    /// The hub refuses the agent for good; holds the hub's reason.
    #[error("the hub refuses the agent: {0}")]
    Refused(String),
    /// The certificates by which the hub is recognised cannot be read.
    #[error("cannot read certificates in {}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rustls::pki_types::pem::Error,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS for the hub")]
    Tls(#[source] rustls::Error),
    /// A key cannot be made or used.
    #[error("cannot make or use the key of the agent")]
    Key,
    /// The task that follows the cluster has ended.
    #[error("the agent no longer follows its cluster")]
    Ended,
}
