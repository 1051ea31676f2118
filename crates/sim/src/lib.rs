//! A fleet of Kubernetes API servers in one process, for demos, tests and scale.
//!
//! Each [`Cluster`] of a [`Fleet`] answers HTTP/1.1 and HTTP/2 over TLS on a loopback port of its own, as
//! kube-apiserver does: discovery, lists with paging, watches, writes, patches, deletion with finalizers and
//! propagation, subresources, selectors, custom resources, access. What differs is the price: no process, no
//! disk, no kubelet, a few kilobytes for a cluster and little more than its text for an object.
//!
//! Time is the fleet's own ([`Clock`]): real, scaled, or stepped by hand. What happens in it is a
//! [`Timeline`]; small controllers only do what must follow when somebody scales, deletes or applies.
//! From one seed and one stepped clock the same calls give the same objects.
//!
//! ```
//! use taffrail_sim::Fleet;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let fleet = Fleet::builder().seed(7).start().await?;
//! let cluster = fleet.cluster("dublin").await?;
//! cluster.apply_yaml("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")?;
//! assert!(cluster.url().starts_with("https://127.0.0.1:"));
//! // With the last handle the server ends.
//! drop(cluster);
//! # Ok::<(), taffrail_sim::SimError>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does not do
//!
//! * Server-side apply is answered with 415. Bodies may be Protobuf but for CustomResourceDefinitions and APIServices;
//!   answers are JSON, which clients that ask for Protobuf take as well.
//! * Objects of built-in kinds are not checked against their schemas, and only the fields that clients wait for
//!   are defaulted. `managedFields` are kept only of what was recorded ([`FleetBuilder::verbatim`]).
//! * `exec`, `attach`, `portforward`, `proxy`, ephemeral containers, tokens of ServiceAccounts and `metrics.k8s.io` do
//!   not exist; neither do `events.k8s.io` and `autoscaling/v1`, which are second views of what `v1` and
//!   `autoscaling/v2` hold.
//! * Nothing is written to a container's log but what the annotation `taffrail.dev/logs` of its Pod says or, without,
//!   two lines about how it fares; who follows it is at its end.
//! * Controllers adopt no orphans, and Jobs count indexes no more than other completions; pod failure policies,
//!   StatefulSets' retention of claims, DaemonSets' surge and autoscalers are not looked after.
//! * OpenAPI describes fields and their types, without prose; v2 has definitions and no paths.
//! * There are no webhooks and no admission plug-ins but those for namespaces; quotas bound how many Pods ReplicaSets
//!   make, and nothing else.

mod access;
mod admission;
mod behaviour;
mod clock;
mod cluster;
mod control;
mod crd;
mod discovery;
mod error;
mod fault;
mod fleet;
mod http;
mod kinds;
mod managed;
mod openapi;
mod patch;
mod schema;
mod selector;
mod store;
mod table;
mod timeline;
mod tls;
mod write;

#[doc(hidden)]
pub use behaviour::Behaviour;
pub use clock::{Clock, Pace};
pub use cluster::{Cluster, User, objects};
pub use error::SimError;
pub use fault::{Fault, FaultId, Trouble};
pub use fleet::{Fleet, FleetBuilder};
pub use timeline::{Timeline, TimelineError, TimelineWrite};
