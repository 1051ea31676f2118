//! The agent: reports one cluster to a hub that cannot reach it.
//!
//! An agent dials the hub, and keeps one stream open, through an HTTP proxy if the environment names one. The first time
//! it enrols with a one-time token; from then on its [`Identity`] says who it is. What it reports is made by
//! `taffrail_observe::Reporter`, whose channels [`Agent::run`] joins with the stream: while the hub cannot be reached, changes
//! are collected, and the hub gets the state of the cluster as it is when it can be reached again.
//!
//! * `identity` is the key and the certificate of an agent, and the file or the Secret that keeps them.
//! * `connect` opens a connection to a hub, through a proxy and by TLS, and decides which hub is trusted.
//! * `answers` has questions of the hub answered from the cluster.
//! * `link` keeps a stream open: it enrols, proves the identity, passes messages on, and dials again.
//! * `metrics` serves the metrics of the agent, of its cluster and its apps.
//! * `spool` keeps the transitions of apps while the hub may not hear of them.
//!
//! The protocol is that of `crates/api/proto/taffrail/agent/v1/agent.proto`.

mod answers;
mod connect;
mod error;
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::allow_attributes_without_reason,
    reason = "generated from the definition of the protocol"
)]
mod generated;
mod identity;
mod link;
mod metrics;
mod private_files;
mod spool;

pub use answers::{AnswerParts, AnswerQuestions, Answering, AskedQuestion};
pub use connect::{HubAddress, HubTrust};
pub use error::AgentError;
pub use identity::{Identity, IdentityFile, IdentitySecret, KeepError, KeepIdentity};
pub use link::{Agent, AgentEvent, AgentPauses, AgentSettings, AgentState};
pub use metrics::{agent_metrics, serve_metrics};
pub use spool::{Spool, SpoolCounts, SpoolError};
