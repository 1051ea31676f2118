//! What one Kubernetes API server holds now.
//!
//! [`Kubeconfig`] says which clusters there are, [`Cluster::connect`] opens the one connection to one of
//! them, [`Cluster::discover`] tells its kinds, and [`Cluster::list`] and [`Cluster::get`] read objects as
//! JSON text, untouched except that each carries its `apiVersion` and `kind`. [`Cluster::patch`] changes
//! one object. Everything ends by a
//! [`Deadline`], every failure has a [`Reason`], and every request is counted ([`Cluster::requests`]).

mod aside;
mod channels;
mod clock;
mod connect;
mod deadline;
mod discovery;
mod error;
mod exec_plugin;
mod feed;
mod identity;
pub mod index;
mod kubeconfig;
mod live;
mod memory;
mod read;
mod record;
mod request;
mod write;

pub use aside::aside;
pub use clock::{Clock, Moment};
pub use connect::{Cluster, Protocol};
pub use deadline::Deadline;
pub use discovery::{ApiResource, BrokenGroup, Discovery, ServedResource};
pub use error::{ConnectError, Fault, Phase, ReadError, Reason, one_line};
pub use exec_plugin::Plugins;
pub use feed::{
    Batch, Change, Contact, Cost, Costs, Delivery, FeedSettings, Feeds, Inbox, Lists, Purpose, Scope,
    ScopeId, ScopeState,
};
pub use kubeconfig::{Context, Kubeconfig, KubeconfigError};
pub use live::{ColdStart, KindSettings, Live, LiveSettings, write_saved};
pub use memory::{Held, Memory};
pub use read::{ListPage, ListRequest, Listing, MalformedItem, ObjectBytes, copy_members};
pub use record::RequestRecord;
pub use write::{CreateRequest, FIELD_MANAGER, PatchRequest, PatchType, WriteError};
