//! The tasks that controllers plan for themselves.

/// A task of a controller, which runs once however often it is planned before it is due.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    Namespace(String),
    Definition(String),
    /// Deletes or releases the dependents of the owner with this UID, which is being deleted or is gone.
    Dependents(String),
    /// Deletes this object if all of its owners are gone, and else its references to those that are.
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
    /// Plans the reconciliation of all DaemonSets, because a node changed.
    Nodes,
    /// Updates the budgets of this namespace.
    Budgets(String),
    /// Removes the protection of PersistentVolumeClaims in this namespace that are being deleted and that no unfinished
    /// Pod uses.
    Claims(String),
    /// Updates the endpoints of the Services in this namespace.
    Services(String),
    Node(String),
    /// Removes the Pods of a deleted node.
    NodeGone(String),
    /// Deletes a Pod from a lost node if it does not tolerate that any longer: namespace, name.
    Eviction(String, String),
    /// Updates the used amounts of the quotas in this namespace.
    Quotas(String),
    /// Retries the creation of Pods of the ReplicaSets in this namespace, because a quota may have room now.
    QuotaChanged(String),
    /// Removes an Event whose time to live has passed: namespace, name.
    Event(String, String),
    /// Renews the Leases of all live nodes and controllers.
    RenewLeases,
}

impl Task {
    /// Returns the task that reconciles an object of this kind, if a controller creates other objects for it; `None`
    /// for other kinds.
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
