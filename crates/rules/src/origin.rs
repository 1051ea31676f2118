//! The origins of rules.

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

impl Origin {
    /// Returns the prefix of the rule names in verdicts.
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::User => "user",
            Origin::Cluster => "cluster",
            Origin::Shipped => "shipped",
        }
    }
}
