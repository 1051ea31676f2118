//! Plans of changes: what must change in a cluster so that it is as its manifests declare.
//!
//! * [`manifests`] reads the objects that a set of texts declares, with the options of delivery tools on them.
//! * [`diff`] says of each object which fields differ from the live one, and whose they are.
//! * [`order`] sorts a sync into steps, by the rules that users of Argo CD, Flux, kpt or kapp know.
//! * [`prune`] decides which objects are deleted, since they are not declared any more.
//! * [`sync`] carries a run through these steps: it says what to do next, and what the run waits for.
//! * [`unchanged`] remembers which objects need not be compared again.
//!
//! All functions are pure, and end on every input.

pub mod diff;
pub mod manifests;
pub mod order;
pub mod prune;
pub mod sync;
pub mod unchanged;
