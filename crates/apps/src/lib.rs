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
//! * [`Objects`] is the interface to the objects of one cluster; [`Snapshot`] holds them in memory.
//! * [`next_reads`] plans what to read of a live cluster, and [`plan_reads`] what to follow of one.
//! * [`wait`] evaluates the condition that a command waits for, and names the objects that do not meet it.
//! * [`verbs`] computes the patches that make a tool reconcile, suspend or resume an app.
//! * [`trust`] looks for signs that a green status is wrong.
//! * [`apps()`] computes the apps.

mod agreement;
mod apps;
mod belonging;
mod changes;
mod claims;
pub mod command;
mod delivery;
mod find;
mod fleet;
mod freshness;
mod identity;
mod indexed;
pub mod inventory;
mod keyed;
mod kinds;
mod memo;
mod names;
mod objects;
mod owners;
mod problem;
mod questions;
mod reading;
mod reads;
mod reconciliation;
mod rows;
mod snapshot;
mod sync;
mod teachers;
pub mod text;
pub mod trust;
pub mod verbs;
pub mod wait;
mod words;

pub use apps::{
    App, AppError, AppList, OUT_OF_REACH, Resource, UNOBSERVED, UNREADABLE, apps, apps_by, declared,
    declared_each,
};
pub use belonging::{Belonging, Belongings};
pub use changes::{changes, changes_of_each, last_changes};
pub use delivery::{AppLabel, AppLabels, InvalidAppLabel, argo_delivers, argo_names};
pub use find::{AppQuery, FindError, InvalidAppQuery, full_name};
pub use fleet::{FleetMember, Renewals, Sameness, aliases, members};
pub use freshness::{Freshness, FreshnessState};
pub use identity::{APP_ANNOTATION, AppKey, AppRef, ClusterId, Delivery, UnknownDelivery};
pub use indexed::{IndexedCluster, index_settings};
pub use kinds::{KindCatalog, ServedKind, needs_body};
pub use objects::{Objects, Scope, ScopeError, suffices};
pub use owners::{controllers, dependents};
pub use problem::{Axis, CONTROLLER_STOPPED, Problem, ProblemSeverity, SUSPENDED, silence};
pub use questions::QuestionLog;
pub use reading::{Following, NotLive, Reading, ReadingCost, ScopeState};
pub use reads::{
    Asked, Changes, Dependents, Elsewhere, Excess, LeftOut, Read, ReadMode, ReadPlan, Rounds, Target, Turns,
    declares_apps, elsewhere, next_reads, plan_reads, still_wanted, wanted_elsewhere,
};
pub use reconciliation::{
    ApplicationDetails, FluxSources, ReconciledRow, ReconciliationDetails, application_details,
    reconciliation_details,
};
pub use rows::{AppRows, Looked, Propagation};
pub use snapshot::{Answer, Aside, ChangeBatch, InsertError, NOT_IN_DUMP, Snapshot};
pub use sync::{ObjectSync, ObjectSyncState, Source, Sync, SyncState, UnknownSyncState, shorten};
pub use teachers::{Standing, Unheard, argo_standing};
pub use words::{ByAddress, Words};
