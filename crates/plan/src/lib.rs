//! What must change for a cluster to be as manifests say.
//!
//! * [`diff`] says of each object which fields differ from the live one, and whose they are.
//!
//! All functions are pure, and end on every input.

pub mod diff;
