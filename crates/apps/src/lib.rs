//! The apps of a fleet of clusters: their declared objects and their state.
//!
//! An *app* is what one declaring object delivers: a Flux `Kustomization` or `HelmRelease`, an Argo CD
//! `Application`, a `RootSync` or `RepoSync` of Config Sync, a kpt `ResourceGroup`, a package of Porch that
//! one of these delivers, a Helm release, or the objects of one `app.kubernetes.io/instance` or
//! `app.kubernetes.io/part-of` label. This crate finds the apps of a fleet of clusters, judges their objects,
//! rolls them up and says which revision is wanted and which is applied. It does no I/O and reads no clock.
//!
//! ```
//! use taffrail_apps::{Snapshot, apps};
//! use taffrail_object::{Projection, json::OwnedDocument};
//! use taffrail_status::{ActiveRules, Status};
//!
//! let now = "2026-03-01T12:00:00Z".parse()?;
//! let mut cluster = Snapshot::dump("prod", now);
//! let web = br#"{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": "web",
//!     "labels": {"app.kubernetes.io/instance": "shop"}}, "status": {"replicas": 0}}"#;
//! cluster.insert(OwnedDocument::parse(web.as_slice())?, Projection::Full)?;
//!
//! let list = apps(&[&cluster], &ActiveRules::default(), now);
//! assert_eq!(list.apps[0].app.to_string(), "label shop/shop");
//! assert_eq!(list.apps[0].health, Status::InProgress);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * `delivery` has a file for each tool that delivers apps.
//! * [`Objects`] is the interface to the objects of one cluster; [`Snapshot`] holds them in memory.
//! * [`plan_reads`] plans what to read of a live cluster, and [`plan_watches`] what to follow of one. Neither has a
//!   list of the evidence to read: objects that `assess` looks up and does not find are read next.
//! * [`AppRows`] keeps the rows of apps up to date while clusters are followed: `questions` records each lookup made in
//!   a cluster while a row is judged, `rows/changed.rs` turns a batch of changes (`snapshot/batch.rs`) into the lookups
//!   that may have another result now, and `rows/graph.rs` knows which rows depend on them.
//! * [`wait`] evaluates the condition that a command waits for, and names the objects that do not meet it.
//! * [`verbs`] computes the patches that make a tool reconcile, suspend or resume an app, and recognises that the tool
//!   has handled them; a file for each tool.
//! * [`trust`] looks for signs that a green status is wrong, a file for each sort. What only it needs (leases, the
//!   workloads of delivery tools) is read only for it.
//! * `upstream` has the relations of apps to each other; `relations` finds them and names the cause of an app that waits
//!   for another one.
//! * [`apps()`] computes the apps.

mod agreement;
mod app;
mod apps;
mod changes;
mod checks;
mod claimants;
mod claims;
mod cluster_facts;
pub mod command;
mod declaration;
mod delivery;
mod errors;
mod find;
mod fleet;
mod freshness;
mod hosting;
mod identity;
mod indexed;
pub mod inventories;
pub mod inventory_id;
mod keyed;
mod kinds;
mod memo;
mod nodes;
mod noting;
mod object_keys;
mod objects;
mod orphans;
mod owners;
mod ownership;
mod problem;
mod problems;
mod questions;
mod read_errors;
mod reading;
mod reads;
mod reconciliation;
mod relations;
mod round_robin;
mod rows;
mod scope;
mod secret_clusters;
pub mod sets;
mod snapshot;
mod sync;
mod teachers;
pub mod text;
pub mod trust;
mod unread;
mod upstream;
pub mod verbs;
pub mod wait;
mod words;

pub use app::{App, AppError, AppList, OUT_OF_REACH, Resource, UNOBSERVED, UNREADABLE, UnreadObjects};
pub use apps::{apps, apps_by, declared, declared_each};
pub use changes::{changes, changes_of_each, last_changes};
pub use checks::{
    CHECKS_ANNOTATION, CheckAnswer, CheckFilter, CheckResult, DeclaredCheck, InvalidCheckFilter, MAX_CHECKS,
    MetricValue, bound_checks, declared_checks, is_check_name,
};
pub use cluster_facts::ClusterFacts;
pub use delivery::argo::health_status as argo_health_status;
pub use delivery::argo::installs::{Standing, argo_standing};
pub use delivery::controllers::RESOURCE_GROUP_CONTROLLER;
pub use delivery::fields::differing_fields;
pub use delivery::group_status::{
    GroupStatusOwner, GroupStatusTooLarge, group_status, group_status_owner, has_group_status,
};
pub use delivery::{
    AppLabel, AppLabels, InvalidAppLabel, MAX_SYNCS, SyncAttempt, SyncResult, argo_delivers, argo_names,
    syncs,
};
pub use find::{AppQuery, FindError, InvalidAppQuery, full_name};
pub use fleet::{FleetMember, Renewals, Sameness, aliases, members, server_address};
pub use freshness::{Freshness, FreshnessState};
pub use hosting::{
    HostedCluster, Hosting, HostingObject, HostingShares, MAX_HOSTING, StandingObject, hosting,
    secret_cluster, standing,
};
pub use identity::{APP_ANNOTATION, AppKey, AppName, AppRef, ClusterId, Delivery, UnknownDelivery};
pub use indexed::{IndexedCluster, index_settings};
pub use kinds::{KindCatalog, ServedKind, needs_body};
pub use nodes::{Nodes, UnreadyNode, nodes};
pub use objects::{Objects, suffices};
pub use orphans::{Orphan, Orphans};
pub use owners::{controllers, dependents};
pub use ownership::{NOT_SHOWN, Ownership, Ownerships};
pub use problem::{
    Axis, CONTROLLER_STOPPED, Problem, ProblemCause, ProblemSeverity, SUSPENDED, UpstreamProblem,
    order_problems,
};
pub use problems::{freshness_problem, health_problem, unconfirmed_problem};
pub use questions::QuestionLog;
pub use reading::{NotLiveScope, NotLiveState, ReadStats, ReadingCost, WatchStats};
pub use reads::declaring::{declares_apps, declaring_kinds};
pub use reads::{
    Changes, Dependents, Elsewhere, Excess, LeftOut, NamedBy, NamedObject, Read, ReadMode, ReadPlan,
    ReadQuery, Rounds, Target, Turns, elsewhere, plan_reads, plan_watches, still_wanted, wanted_elsewhere,
};
pub use reconciliation::{
    ApplicationDetails, FluxSources, ReconciledRow, ReconciliationDetails, Suspension, application_details,
    reconciliation_details,
};
pub use round_robin::round_robin;
pub use rows::{AppRows, ChangedRows, Propagation, RowWork};
pub use scope::{Scope, ScopeError, silence};
pub use secret_clusters::{
    ClusterSecret, ClusterSecretTool, ClusterSecrets, MAX_CLUSTER_SECRETS, cluster_labels, cluster_secrets,
};
pub use snapshot::{Answer, Aside, ChangeBatch, InsertError, NOT_IN_DUMP, Snapshot};
pub use sync::{
    DifferingFields, ObjectSync, ObjectSyncState, Source, Sync, SyncState, UnknownSyncState, shorten,
};
pub use teachers::Unheard;
pub use unread::unread_problem;
pub use upstream::{MAX_UPSTREAMS, RelationType, Upstream, Upstreams};
pub use words::{ByAddress, Words};

/// Names of the objects that configure an Argo CD, and of those by which it is recognised.
pub mod argo_objects {
    pub use crate::delivery::argo::installs::{BINDING, CONTROLLERS, PARAMETERS, ROLE, SETTINGS, WORKLOADS};
}
