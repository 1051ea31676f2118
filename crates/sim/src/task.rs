//! The planned work of controllers.

/// A task of a controller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    Namespace(String),
    Definition(String),
    /// Deals with the dependents of the owner with this UID, which is being deleted or is gone.
    Dependents(String),
    /// Checks that the owners of this object exist.
    Owners {
        group: String,
        plural: String,
        namespace: String,
        name: String,
    },
    Deployment(String, String),
    ReplicaSet(String, String),
    StatefulSet(String, String),
    DaemonSet(String, String),
    Job(String, String),
    CronJob(String, String),
    Pod(String, String),
    /// Schedules Pods on nodes.
    Nodes,
    /// Updates the budgets of this namespace.
    Budgets(String),
    /// Releases claims of this namespace whose Pods are gone.
    Claims(String),
    /// Updates the endpoints of the Services in this namespace.
    Services(String),
    Node(String),
    /// Removes the Pods of a deleted node.
    NodeGone(String),
    /// Evicts a Pod from a lost node if it does not tolerate it any longer.
    Eviction(String, String),
    /// Updates the used amounts of the quotas in this namespace.
    Quotas(String),
    /// Retries the creation of Pods that a quota of this namespace refused.
    QuotaChanged(String),
    /// Removes an Event that is old enough.
    Event(String, String),
    /// Renews the Leases.
    RenewLeases,
}

impl Task {
    /// Returns the task that reconciles an owner of this kind.
    pub(crate) fn of(kind: &str, namespace: String, name: String) -> Option<Task> {
        Some(match kind {
            "Deployment" => Task::Deployment(namespace, name),
            "ReplicaSet" => Task::ReplicaSet(namespace, name),
            "StatefulSet" => Task::StatefulSet(namespace, name),
            "DaemonSet" => Task::DaemonSet(namespace, name),
            "Job" => Task::Job(namespace, name),
            "CronJob" => Task::CronJob(namespace, name),
            _ => return None,
        })
    }
}
