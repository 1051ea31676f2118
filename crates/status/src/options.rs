//! The user's settings for statuses.

use crate::costs::Patience;
use crate::teaching::Trust;

/// The effect of a PodDisruptionBudget on the status of the Deployment whose Pods it protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Budgets {
    /// No effect: a Deployment is Current only with all its replicas.
    #[default]
    Advisory,
    /// A Deployment in progress that has budgets is Current if it has as many updated and available replicas as each of
    /// its budgets requires healthy Pods.
    Sufficient,
}

/// The user's settings for judging objects, and the time limit.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The effect of a PodDisruptionBudget on its Deployment.
    pub pdb: Budgets,
    /// The time limit for judging the objects of a cluster; `None` for no limit.
    pub patience: Option<Patience>,
    /// The namespaces and clusters whose rules the user trusts explicitly.
    pub trust: Trust,
}

impl Options {
    /// The default options: disruption budgets have no effect, there is no time limit, and no explicit trust.
    pub const DEFAULT: &'static Options = &Options {
        pdb: Budgets::Advisory,
        patience: None,
        trust: Trust { argocd: Vec::new(), homes: Vec::new() },
    };
}
