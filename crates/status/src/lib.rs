//! The status of Kubernetes objects.
//!
//! [`Rules`] judge an object alone, [`Kstatus`] exactly as [kstatus] does: they return one of six statuses with a
//! message, the standard conditions, and the rule that decided. [`assess`] also uses evidence: the objects behind it,
//! and events. The crate does no I/O and reads no clock: the current time is a parameter. No input makes it panic or
//! run without bound.
//!
//! ```
//! use taffrail_status::{Kstatus, Object, ObjectContext, Rules, Status, json::Parser};
//!
//! let mut parser = Parser::new();
//! let doc = parser.parse(br#"{
//!     "apiVersion": "apps/v1", "kind": "Deployment",
//!     "metadata": {"name": "web", "generation": 2},
//!     "spec": {"replicas": 3},
//!     "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 2}
//! }"#)?;
//! let now = jiff::Timestamp::UNIX_EPOCH;
//! let verdict = Kstatus::default().judge(&Object::new(doc.root())?, &ObjectContext::default(), now)?;
//! assert_eq!(verdict.status, Status::InProgress);
//! assert_eq!(verdict.message, "Available: 2/3");
//! assert_eq!(verdict.rule, "builtin/apps/Deployment");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * [`json`] reads objects the way the API machinery does, without building trees; [`protobuf`] converts Protobuf to
//!   JSON.
//! * [`Rules`] judges an object; [`Kstatus`] exactly as kstatus, [`Taffrail`] as Taffrail shows it.
//! * `compute` has kstatus' rules, a file for each API group; `flux` and `adverse` have the exceptions that
//!   [`Taffrail`] makes.
//! * [`ClusterState`] is the one interface by which a cluster is queried, and [`Presence`] the result of looking up one
//!   object; a snapshot, the index, a dump and a single file implement it.
//! * [`assess`] uses evidence: the objects that an object owns and names, and events; it returns the cause, too. It has
//!   a file for each family of kinds and one table of edges. Its `Evidence` decides in one place that metadata alone
//!   proves nothing about a body, and its `changes` finds the changes before a failure.
//! * [`augment()`] adds the standard conditions to an object; [`aggregate`] is kstatus' own roll-up.
//! * [`rollup`] finds the worst of many objects, and counts them by status.
//!
//! [kstatus]: https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus

mod adverse;
pub mod assess;
mod augment;
mod cluster_state;
mod compute;
mod config_sync;
mod costs;
mod event;
mod flux;
mod named_cluster;
mod options;
pub mod rollup;
mod rules;
mod teaching;
mod unseen;
mod verdict;

pub use augment::{AugmentError, augment};
pub use cluster_state::{ClusterState, Listing, Observed, Presence};
pub use compute::{BUILT_IN, Fork};
pub use named_cluster::{ClusterNames, NamedCluster};
pub use rollup::aggregate;
pub use rules::{ActiveRules, ClusterRules, FIRST_STATUS_RULE, Kstatus, ObjectContext, Rules, Taffrail};
pub use taffrail_object::{Object, ObjectError, json, protobuf};
pub use teaching::{Payer, Strikes, Teacher, Teaching, TeachingTime, Trust, Voice};
pub use unseen::is_unseen;
pub use verdict::{ComputeError, Condition, ConditionType, MAX_MESSAGE, Status, UnknownStatus, Verdict, cut};
