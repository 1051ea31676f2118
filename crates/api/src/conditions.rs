//! Conditions of clusters, which a hub writes into the objects that stand for them in management clusters.

/// The condition that tells if the API server of the cluster answers.
pub const LIVE: &str = "taffrail.dev/Live";

/// The condition that tells if all apps of the cluster are ready.
pub const APPS_READY: &str = "taffrail.dev/AppsReady";

/// The status of a condition, as in the Kubernetes API conventions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// It does not hold.
    False,
    /// The hub does not know if it holds.
    Unknown,
}

impl ConditionStatus {
    /// Returns the word of the API conventions.
    pub fn as_str(self) -> &'static str {
        match self {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        }
    }
}

/// A condition of a cluster. It has no names of apps, since others may read the management cluster than the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterCondition {
    /// The type: [`LIVE`] or [`APPS_READY`].
    pub condition_type: &'static str,
    /// The status.
    pub status: ConditionStatus,
    /// The reason, one word.
    pub reason: &'static str,
    /// The message, for people.
    pub message: String,
}

impl ClusterCondition {
    /// Returns true if the change from this condition to `other` is a transition: another status or reason.
    pub fn turns_into(&self, other: &ClusterCondition) -> bool {
        (self.status, self.reason) != (other.status, other.reason)
    }
}

/// The result of a write of conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConditionsWritten {
    /// The object has them now; also if it had them already.
    Done,
    /// The object is gone, or was written by another client at the same moment.
    Outdated,
    /// The object cannot take conditions beside those of others. Holds the reason.
    Unsuited(String),
    /// The API server refused, and would refuse again. Holds its message.
    Refused(String),
    /// The API server did not answer, or not in time. Holds the reason.
    Unanswered(String),
}
