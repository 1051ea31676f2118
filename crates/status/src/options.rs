//! Choices of the user about statuses.

use crate::costs::Patience;
use crate::teaching::Trust;

/// The meaning of a PodDisruptionBudget for the Deployment whose Pods it protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Budgets {
    /// None: a Deployment wants all its replicas.
    #[default]
    Advisory,
    /// A Deployment with as many updated and available replicas as its budget wants healthy is Current.
    Sufficient,
}

/// Choices of the user, and bounds on the cost of an answer.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The meaning of a PodDisruptionBudget.
    pub pdb: Budgets,
    /// Time limit for judging the objects of a cluster; `None` for no limit.
    pub patience: Option<Patience>,
    /// The namespaces and clusters that the user trusts beyond what clusters prove.
    pub trust: Trust,
}

impl Options {
    /// The defaults.
    pub const DEFAULT: &'static Options = &Options {
        pdb: Budgets::Advisory,
        patience: None,
        trust: Trust { argocd: Vec::new(), homes: Vec::new() },
    };
}
