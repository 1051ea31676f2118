//! A fleet of Kubernetes API servers in one process, for demos, tests and scale.
//!
//! Each [`Cluster`] of a [`Fleet`] serves HTTP/1.1 and HTTP/2 over TLS on a loopback port of its own, as kube-apiserver
//! does: discovery, lists with paging, watches, writes, patches, deletion with finalizers and propagation,
//! subresources, selectors, custom resources, access control. It needs no process, no disk and no kubelet; a cluster
//! takes a few kilobytes, and an object little more than its text.
//!
//! Time is the fleet's own ([`Clock`]): real, scaled, or stepped by hand. A [`Timeline`] has the events; small
//! controllers react only if a user scales, deletes or applies. With one seed and a stepped clock, the same calls give
//! the same objects.
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
//! # Modules
//!
//! * `store` keeps objects as JSON text. One log of changes per cluster serves watches, pages and older versions; one
//!   agenda per fleet (`fleet_state`) is its only timer.
//! * `write` is the registry of kube-apiserver, `http` its front end, `control` the controllers.
//! * `prometheus` is a stand-in for Prometheus, which answers queries about the metrics that its owner gives it.
//! * The suite in `tests/it/conformance` runs against the real kube-apiserver too. Each behaviour can be switched off
//!   (`behaviour`), and then the cases about it fail.
//! * `bench/peers/clientgo` shows what programs over client-go do with an API server; tests run it against both servers.
//!   It also writes the table of fields (`crates/object/src/protobuf/messages.tsv`) by which Protobuf bodies are read.
//! * `apply` and `managed` merge objects and record who owns their fields, by the crate `merge`, which also has the schemas
//!   of built-in kinds.
//!
//! # Limits
//!
//! * Server-side apply works on objects and their status, not on `scale`; an object is applied in the `apiVersion` in
//!   which it was stored. Bodies may be Protobuf, except of CustomResourceDefinitions and APIServices; answers with
//!   objects are always JSON, which clients that prefer Protobuf accept as well.
//!
//! * Objects of built-in kinds are not checked against their schemas, and only the fields that clients wait for are
//!   defaulted; some of the fields that cannot change are refused (`immutable`). Field managers exist on request
//!   ([`FleetBuilder::managers`]), in complete recordings ([`FleetBuilder::verbatim`]), and once an object was applied.
//!
//! * `exec`, `attach`, `portforward`, `proxy`, ephemeral containers, tokens of ServiceAccounts and `metrics.k8s.io` do
//!   not exist, nor do `events.k8s.io` and `autoscaling/v1`, which are second views of `v1` and `autoscaling/v2`.
//!
//! * The log of a container is the annotation `taffrail.dev/logs` of its Pod or, without it, two lines about its state;
//!   a container that is ready adds a line each 30 s. A log that is followed ends with the run of its container.
//!
//! * Controllers do not adopt orphans, and count indexes of Jobs like other completions. Pod failure policies, the
//!   retention of a StatefulSet's claims, the surge of a DaemonSet and autoscalers are not implemented.
//!
//! * OpenAPI describes fields and their types, without descriptions; v2 has definitions and no paths.
//! * There are no webhooks, and no admission plug-ins except those for namespaces. Quotas limit only the number of Pods
//!   that ReplicaSets create.

mod access;
mod admission;
mod apply;
mod behaviour;
mod clock;
mod cluster;
mod control;
mod crd;
mod defaults;
mod error;
mod fault;
mod fleet;
mod fleet_state;
mod http;
mod immutable;
mod kept;
mod kinds;
mod managed;
mod object_type;
mod patch;
mod prometheus;
mod schema;
mod selector;
mod state;
mod store;
mod table;
mod target;
mod task;
mod timeline;
mod tls;
mod validate;
mod write;

#[doc(hidden)]
pub use behaviour::Behaviour;
pub use clock::{Clock, Pace};
pub use cluster::{Cluster, objects};
pub use error::SimError;
pub use fault::{Fault, FaultId, Trouble};
pub use fleet::{Fleet, FleetBuilder};
pub use prometheus::{PrometheusApi, QueryFault, Scrapes, seconds_now};
pub use state::User;
pub use timeline::{Timeline, TimelineError, TimelineWrite};
