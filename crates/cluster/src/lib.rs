//! A client for one Kubernetes API server: discovery, lists, watches and patches.
//!
//! [`Kubeconfig`] lists the clusters, [`Cluster::connect`] opens the one connection to a cluster, [`Cluster::discover`]
//! lists its kinds, and [`Cluster::list`] and [`Cluster::get`] read objects as JSON text, unchanged except that each
//! gets its `apiVersion` and `kind`. [`Cluster::open_api`] reads the schemas of kinds. [`Cluster::log`] reads the log of a container. [`Cluster::patch`] changes one
//! object, [`Cluster::apply`] applies one and [`Cluster::delete`] deletes one, and [`Cluster::write_group_status`] writes
//! the one status that an agent may write. Every call ends by a
//! [`Deadline`], every failure has a [`Reason`], and every request is counted ([`Cluster::requests`]) and traced.
//!
//! A cluster is read in two ways: `read` lists once. [`Watcher`] follows *scopes* (a kind, perhaps in one namespace or
//! selected by labels or fields): each is a list that continues as a watch, in a task of its own, and passes text to one
//! reader, who decodes it where it is used. [`BootClock`] measures how long the server was silent; it runs on while the
//! machine sleeps, so that after a sleep nothing is live until the server has answered a new request and each watch is
//! reopened.

mod apply;
mod aside;
mod clock;
mod connect;
mod connection_pool;
mod costs;
mod deadline;
mod discovery;
mod error;
mod exec_plugin;
mod field_conflict;
mod found;
mod group_status;
mod identity;
mod kubeconfig;
mod log;
mod memory;
mod open_api;
mod own_secret;
mod proxy;
mod read;
mod request;
mod traffic;
mod watcher;
mod write;

pub use apply::{ApplyRequest, DeleteOutcome, DeletePropagation, DeleteRequest, ManagersRequest};
pub use aside::{aside, aside_if_large};
pub use clock::{BootClock, Moment};
pub use connect::Cluster;
pub use connection_pool::Protocol;
pub use costs::{Cost, Costs, Purpose};
pub use deadline::Deadline;
pub use discovery::{BrokenGroup, Discovery, ServedResource};
pub use error::{ConnectError, Fault, Phase, ReadError, Reason, TimeLimit, add_causes, chain, one_line};
pub use exec_plugin::Plugins;
pub use field_conflict::{FieldConflict, FieldOwner};
pub use found::{
    AddressClass, AddressGuard, ArgoClusterSecret, MAX_SECRET_KUBECONFIG_BYTES, Resolution, SecretCluster,
    SecretClusterError,
};
pub use group_status::{AGENT_FIELD_MANAGER, GroupStatusWrite, resource_groups};
pub use kubeconfig::{Context, Kubeconfig, KubeconfigError};
pub use log::{LogRequest, LogStream};
pub use memory::{Held, Memory};
pub use open_api::{OpenApiCache, OpenApiDocument, OpenApiIndex, OpenApiReadError};
pub use own_secret::{OwnSecret, OwnSecretRead};
pub use proxy::{EnvironmentProxies, tunnel};
pub use read::{ListPage, ListRequest, Listing, MalformedItem, copy_members};
pub use taffrail_object::ApiResource;
pub use traffic::Requests;
pub use watcher::{
    Batch, Change, Connectivity, ListStrategy, Scope, ScopeId, WatchEvent, WatchEvents, WatchSettings,
    WatchState, Watcher, went_back,
};
pub use write::{CreateRequest, FIELD_MANAGER, PatchRequest, PatchType, WriteError};
