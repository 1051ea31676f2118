//! Makes a cluster equal to its manifests, and keeps a record of what it applied.
//!
//! [`sync`] carries out a [`SyncRequest`] in one cluster: it takes the set, compares each object by a dry run, asks its
//! [caller](SyncCaller), and steps a [run](taffrail_plan::sync) until all objects are ready. All state is in the record of the
//! set, so that another process continues a run that was interrupted.
//!
//! | module | holds |
//! |---|---|
//! | `run` | the driver: saves each step of a run, then carries it out |
//! | `view` | the objects as they are now, watched and judged as in all views |
//! | `compare`, `write`, `options`, `migration` | the dry run of an object, the one way to write it, and the fields that it may take |
//! | `prune`, `live`, `inventory` | decisions about what is not declared any more; what is read for them; the inventories of other tools |
//! | `record`, `results` | the record of a set, for one process at a time, and what a run notes in it |

mod compare;
mod error;
mod inventory;
mod live;
mod migration;
mod options;
mod prune;
mod record;
mod request;
mod results;
mod run;
mod view;
mod write;

pub use compare::{Coming, Types, dry_run_of};
pub use error::{EngineError, RefusedObject};
pub use inventory::{InventoryPrune, prune_inventory};
pub use record::{HolderTimes, RecordError, RecordStore, SetRecord, history};
pub use request::{
    ManifestText, Manifests, PlannedObject, PruneConsent, Stop, SyncCaller, SyncEvent, SyncPlan, SyncReport,
    SyncRequest,
};
pub use run::sync;
