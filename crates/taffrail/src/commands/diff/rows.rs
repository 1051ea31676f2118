//! Makes the row of a compared object.

use taffrail_api::{DiffClass, DiffFieldRow, DiffIgnoredRow, DiffMethod, DiffOwnerRow, DiffResult, DiffRow};
use taffrail_plan::diff::{
    DiffBasis, DiffOutcome, DifferenceClass, FieldDifference, FieldManager, NoDryRun, ObjectDiff,
};
use taffrail_plan::manifests::DeclaredObject;

/// Makes the row of an object that was compared in `cluster`.
pub(super) fn row(cluster: &str, declared: &DeclaredObject, compared: ObjectDiff) -> DiffRow {
    let (diff, reason) = method(&compared.basis);
    let unknown = compared.reasons.iter().map(ToString::to_string);
    let notes = compared.notes.iter().map(ToString::to_string);
    DiffRow {
        cluster: cluster.to_owned(),
        object: declared.key.clone(),
        place: declared.place.to_string(),
        result: match compared.outcome {
            DiffOutcome::Create => DiffResult::Create,
            DiffOutcome::Change => DiffResult::Change,
            DiffOutcome::Unchanged => DiffResult::Unchanged,
            DiffOutcome::NotWanted | DiffOutcome::Unknown => DiffResult::Unknown,
        },
        diff,
        reason,
        notes: unknown.chain(notes).collect(),
        ignored: compared
            .ignored
            .iter()
            .map(|it| DiffIgnoredRow { path: it.path.to_string(), rule: it.rule.clone() })
            .collect(),
        rewritten: compared.rewritten.iter().map(ToString::to_string).collect(),
        fields_left_out: compared.omitted,
        fields: compared.differences.into_iter().map(field).collect(),
    }
}

fn method(basis: &DiffBasis) -> (DiffMethod, Option<String>) {
    match basis {
        DiffBasis::Server { .. } => (DiffMethod::Server, None),
        DiffBasis::Merged { why } => {
            let why = match why {
                // The user asked for it.
                NoDryRun::Offline => None,
                NoDryRun::NoRight => Some("you have no right to apply it"),
                NoDryRun::Webhook => Some("a webhook takes no part in dry runs"),
            };
            (DiffMethod::Merged, why.map(str::to_owned))
        }
        DiffBasis::CreatedLater { needs } => (DiffMethod::CreatedLater, Some(format!("{needs} comes first"))),
        DiffBasis::Refused { message } => (DiffMethod::Refused, Some(message.clone())),
    }
}

fn field(difference: FieldDifference) -> DiffFieldRow {
    DiffFieldRow {
        path: difference.path.to_string(),
        class: match difference.class {
            DifferenceClass::Change => DiffClass::Change,
            DifferenceClass::Drift => DiffClass::Drift,
            DifferenceClass::Conflict => DiffClass::Conflict,
        },
        wanted: difference.wanted,
        live: difference.live,
        owners: difference.owners.into_iter().map(owner).collect(),
    }
}

fn owner(FieldManager { manager, subresource, since, .. }: FieldManager) -> DiffOwnerRow {
    DiffOwnerRow { manager, subresource: Some(subresource).filter(|it| !it.is_empty()), since }
}
