//! The result of a comparison.

use serde::Serialize;
use serde_json::Value;
use taffrail_object::ObjectKey;

use super::mask::Redactor;
use super::{DifferenceClass, DryRun, FailedRule, FieldManager, FieldPath, NoDryRun};

/// The differences between the wanted and the live form of one object. Values that must not be shown are masked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectDiff {
    /// The object.
    pub object: ObjectKey,
    /// The object that the live one was compared with, and the reason for it.
    pub basis: DiffBasis,
    /// The result.
    pub outcome: DiffOutcome,
    /// The reasons why the result is unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<UnknownReason>,
    /// The fields that differ, sorted by path; at most [`MAX_DIFFERENCES`](super::MAX_DIFFERENCES).
    pub differences: Vec<FieldDifference>,
    /// The number of further differences.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// The fields that differ and that a rule ignores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<IgnoredDifference>,
    /// The fields of the manifest that the API server, or a webhook, would not store as the manifest has them: after an apply
    /// they may still differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rewritten: Vec<FieldPath>,
    /// Limits of the comparison.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<DiffNote>,
    /// The source of the classes of differences.
    pub classified_by: ClassifiedBy,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DiffOutcome {
    /// The object does not exist, and would be created.
    Create,
    /// The object would change.
    Change,
    /// The object would not change.
    Unchanged,
    /// The object exists, and no manifest has it.
    NotWanted,
    /// The comparison was not possible.
    Unknown,
}

/// The object that the live one was compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "diff", rename_all = "kebab-case")]
pub enum DiffBasis {
    /// The API server's answer to a dry run.
    Server {
        /// True if the server was asked again with force because of conflicts.
        forced: bool,
    },
    /// A merge of the manifest into the live object.
    Merged {
        /// The reason why there is no dry run.
        why: NoDryRun,
    },
    /// The manifest alone: its namespace or kind comes with the set.
    CreatedLater {
        /// The object that comes first.
        needs: String,
    },
    /// Nothing: the API server refused the object.
    Refused {
        /// The message of the server.
        message: String,
    },
}

impl DiffBasis {
    pub(super) fn of(dry_run: &DryRun) -> DiffBasis {
        match dry_run {
            DryRun::Answered { conflicts, .. } => DiffBasis::Server { forced: !conflicts.is_empty() },
            DryRun::NotRun(why) => DiffBasis::Merged { why: *why },
            DryRun::CreatedLater { needs } => DiffBasis::CreatedLater { needs: needs.clone() },
            DryRun::Refused { message } => DiffBasis::Refused { message: message.clone() },
        }
    }
}

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldDifference {
    /// Its path.
    pub path: FieldPath,
    /// The value that an apply would leave; `None` if it would remove the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Value>,
    /// The live value; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<Value>,
    /// The managers other than our own that own the field, or a part of it.
    pub owners: Vec<FieldManager>,
    /// The relation of other managers to the field.
    pub class: DifferenceClass,
}

/// A field that differs and that a rule ignores.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IgnoredDifference {
    /// Its path.
    pub path: FieldPath,
    /// The rule, such as `ignoreDifferences[0]`.
    pub rule: String,
    /// The managers other than our own that own the field, or a part of it.
    pub owners: Vec<FieldManager>,
}

/// The source of the classes of differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ClassifiedBy {
    /// The fields that the set applied last time, and `metadata.managedFields`.
    LastApply,
    /// `metadata.managedFields` alone: drift that another manager's write made is not told apart from a conflict, and none is
    /// seen where a field was removed.
    ManagedFields,
}

/// A limit of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "note", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum DiffNote {
    /// A manager owns fields at another `apiVersion`.
    #[error("'{manager}' owns fields at {api_version}: which of them differ cannot be told")]
    OwnedAtOtherVersion {
        /// The manager.
        manager: String,
        /// The `apiVersion`.
        api_version: String,
    },
    /// The managers of the live object cannot be read.
    #[error("the owners of fields are not known: {message}")]
    ManagersUnreadable {
        /// The reason.
        message: String,
    },
    /// The copy of what was applied on the client's side cannot be used.
    #[error(
        "what was last applied on the client's side cannot be read: fields that the manifest no longer has may be missed"
    )]
    LastAppliedUnreadable,
    /// Nothing is known of earlier applies.
    #[error("nothing is known of earlier applies: fields that the manifest no longer has are missed")]
    NoHistory,
    /// A side of the object is not of its type, so that lists were compared as a whole.
    #[error("the object is not of its type, so that lists were compared as a whole: {message}")]
    NotOfItsType {
        /// The reason.
        message: String,
    },
    /// Live lists or maps that are owned as a whole have fields that the manifest does not have: defaults, or fields that an
    /// apply would remove.
    #[error("without the server, defaults cannot be told apart from removed fields in {}", texts(.paths))]
    Undecided {
        /// Their paths.
        paths: Vec<FieldPath>,
    },
}

/// The reason why a comparison was not possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum UnknownReason {
    /// The API server refused the object.
    #[error("the API server refused the object")]
    Refused,
    /// A rule that ignores fields could not be asked.
    #[error("{}: jq '{}': {}", .0.rule, .0.expression, .0.message)]
    IgnoreRule(FailedRule),
    /// The live object is at another `apiVersion` than the manifest.
    #[error("the live object was read at {live}, and the manifest has {wanted}")]
    OtherVersion {
        /// The `apiVersion` of the live object.
        live: String,
        /// The `apiVersion` of the manifest.
        wanted: String,
    },
    /// The live object is of another kind.
    #[error("the live object is of another kind than the manifest")]
    OtherObject,
    /// The API server answered with another object.
    #[error("the API server answered the dry run with another object")]
    OtherAnswer,
    /// Our own manager applied the object at another `apiVersion`.
    #[error(
        "the object was last applied at {api_version}: which of its fields an apply removes only the server can tell"
    )]
    AppliedAtOtherVersion {
        /// The `apiVersion`.
        api_version: String,
    },
    /// The managers of the live object cannot be read.
    #[error("the owners of fields are not known: {message}")]
    ManagersUnreadable {
        /// The reason.
        message: String,
    },
    /// The manifest cannot be merged into the live object.
    #[error("the manifest cannot be merged into the live object: {message}")]
    NotMergeable {
        /// The reason.
        message: String,
    },
    /// Only the server can tell if live lists and maps that are owned as a whole differ.
    #[error("without the server, defaults cannot be told apart from removed fields in {}", texts(.paths))]
    Undecided {
        /// Their paths.
        paths: Vec<FieldPath>,
    },
    /// Lists and maps are nested too deeply, or the paths of all fields are too long in sum.
    #[error("lists and maps are nested too deeply, or the names of fields are too long")]
    TooDeep,
}

fn texts(paths: &[FieldPath]) -> String {
    paths.iter().map(FieldPath::to_string).collect::<Vec<_>>().join(", ")
}

impl ObjectDiff {
    /// Masks the values that messages quote.
    pub(super) fn redact(&mut self, redactor: &Redactor) {
        if let DiffBasis::Refused { message } = &mut self.basis {
            *message = redactor.redact(message);
        }
        for reason in &mut self.reasons {
            if let UnknownReason::IgnoreRule(FailedRule { message, .. })
            | UnknownReason::ManagersUnreadable { message }
            | UnknownReason::NotMergeable { message } = reason
            {
                *message = redactor.redact(message);
            }
        }
        for note in &mut self.notes {
            if let DiffNote::ManagersUnreadable { message } | DiffNote::NotOfItsType { message } = note {
                *message = redactor.redact(message);
            }
        }
    }

    /// Removes the server's message.
    pub(super) fn forget_message(&mut self) {
        if let DiffBasis::Refused { message } = &mut self.basis {
            message.clear();
        }
    }
}
