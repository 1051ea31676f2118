//! The origins of rules: the user, the cluster, and Taffrail itself.

use taffrail_object::words;

/// The origins of rules, in the order in which they are consulted; the first that decides wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// Rules of the user.
    User,
    /// Rules of the cluster: of its Argo CD, or of the app that owns the object.
    Cluster,
    /// Rules that are part of Taffrail.
    Shipped,
}

words! { Origin { User = "user", Cluster = "cluster", Shipped = "shipped" } }
