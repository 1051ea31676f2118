//! Makes a cluster equal to its manifests, and keeps a record of what it applied.
//!
//! * `record` keeps the record of a set in the cluster, for one process at a time.
