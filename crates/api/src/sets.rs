//! The history of a set, as its record has it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_apps::sets::{RunObject, RunResults, SetName, SetRun, SetSummary};
use taffrail_object::ObjectKey;

use crate::ListItem;

/// The history of a set in one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetHistory {
    /// Name of the cluster.
    pub cluster: String,
    /// The namespace of the set.
    pub namespace: String,
    /// The name of the set.
    pub set: String,
    /// The revision that the last good run applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<String>,
    /// The time at which that run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<Timestamp>,
    /// The person or program whose process holds the set now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Number of objects that the set has.
    pub objects: usize,
    /// The last runs, newest first.
    pub runs: Vec<SetRunRow>,
}

impl ListItem for SetHistory {
    const LIST: &'static str = "SetHistoryList";
}

/// One run of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetRunRow {
    /// The number of the run in its set.
    pub number: u64,
    /// The command: `sync`, `prune`, `rollback` or `destroy`.
    pub verb: String,
    /// The state: `Running`, `Succeeded`, `Failed`, `Terminated` or `Superseded`.
    pub result: String,
    /// The revision of the manifests, as the caller named it; empty if it named none.
    pub revision: String,
    /// The person or program that started it.
    pub by: String,
    /// The time at which it began.
    pub started: Timestamp,
    /// The time at which it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// The reason why it failed, or what it waits for; empty if there is nothing to tell.
    pub message: String,
    /// Number of objects of each result.
    pub counts: Vec<SetCountRow>,
    /// True if a rollback can return to this run.
    pub is_kept: bool,
    /// The objects that the run changed, could not change or left as they were, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<Vec<SetObjectRow>>,
}

/// The number of objects with one result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetCountRow {
    /// The result, such as `Created`.
    pub result: String,
    /// Number of objects.
    pub objects: usize,
}

/// The result of a run for one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetObjectRow {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectKey,
    /// The result, such as `Created`.
    pub result: String,
    /// The reason; empty if there is nothing to tell.
    pub message: String,
}

impl SetHistory {
    /// Returns the history of a set with `objects` objects; with the number of a run, that run alone, with its objects.
    pub fn of(
        cluster: &str,
        set: &SetName,
        (summary, objects, results): (&SetSummary, usize, &[RunResults]),
        run: Option<u64>,
    ) -> SetHistory {
        let runs = summary.runs.iter().filter(|it| run.is_none_or(|run| run == it.number));
        let objects_of = |number: u64| {
            run?;
            let found = results.iter().find(|it| it.number == number);
            Some(found.map(|it| it.objects.iter().map(SetObjectRow::of).collect()).unwrap_or_default())
        };
        SetHistory {
            cluster: cluster.to_owned(),
            namespace: set.namespace.clone(),
            set: set.name.clone(),
            applied: summary.applied.clone(),
            applied_at: summary.applied_at,
            holder: summary.holder.as_ref().map(|holder| holder.actor.clone()),
            objects,
            runs: runs.map(|run| SetRunRow::of(run, objects_of(run.number))).collect(),
        }
    }
}

impl SetRunRow {
    fn of(run: &SetRun, objects: Option<Vec<SetObjectRow>>) -> SetRunRow {
        let counts = run
            .counts
            .iter()
            .map(|(result, objects)| SetCountRow { result: result.clone(), objects: *objects });
        SetRunRow {
            number: run.number,
            verb: run.verb.as_str().to_owned(),
            result: run.phase.as_str().to_owned(),
            revision: run.revision.clone(),
            by: run.actor.clone(),
            started: run.started,
            ended: run.ended,
            message: run.message.clone(),
            counts: counts.collect(),
            is_kept: run.is_kept,
            objects,
        }
    }
}

impl SetObjectRow {
    fn of(object: &RunObject) -> SetObjectRow {
        SetObjectRow {
            object: object.object.clone(),
            result: object.result.as_str().to_owned(),
            message: object.message.clone(),
        }
    }
}
