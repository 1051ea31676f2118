//! The record that a hub keeps of a run, and what objects tell of its writes.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_apps::verbs::Patch;
use taffrail_status::Presence;

use super::{
    OperationEvent, OperationId, OperationTarget, Outcome, PlanAnswer, PlanDigest, PlannedChange,
    PlannedItem, PlannedWrite, RunRequest,
};

/// The evidence that an object has of a write whose answer is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum WriteTrace {
    /// The object has the change, and it is Taffrail's.
    Made,
    /// The object is as it was before the change.
    NotMade,
    /// The object shows neither.
    Unknown,
    /// The object could not be read.
    Unread,
}

impl WriteTrace {
    /// Looks in the object, as it is now, for the change of a write that was planned at the moment `since`.
    pub fn of(write: &PlannedWrite, found: &Presence<'_>, since: Timestamp) -> WriteTrace {
        match (&write.change, found) {
            (_, Presence::Unobserved(_)) => WriteTrace::Unread,
            (PlannedChange::Patch { patch, alternative }, Presence::Present(found)) => {
                let found_in = |patch: &Patch| patch.found_in(&found.object, since);
                match (found_in(patch), alternative.as_ref().and_then(found_in)) {
                    (Some(true), _) | (_, Some(true)) => WriteTrace::Made,
                    (Some(false), _) => WriteTrace::NotMade,
                    (None, _) => WriteTrace::Unknown,
                }
            }
            // It may have been changed or created, and then deleted; or created by another client.
            (PlannedChange::Patch { .. }, Presence::Absent) | (PlannedChange::Create { .. }, _) => {
                WriteTrace::Unknown
            }
        }
    }
}

/// A write whose result is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UncertainWrite {
    /// The name of the cluster.
    pub cluster: String,
    /// The write.
    pub write: PlannedWrite,
    /// The time at which it was planned.
    pub since: Timestamp,
}

/// A run of an operation, as a hub records it: who asked for it, what was written, and the results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OperationRecord {
    /// The identifier of the run.
    pub id: OperationId,
    /// The name of the token with which it was asked for; left out for the token in the URL that a hub prints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The time at which it began.
    pub began: Timestamp,
    /// The time at which it was planned, which its writes may contain.
    pub planned_at: Timestamp,
    /// The time at which it ended; left out while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// True if the servers only checked the writes.
    pub dry_run: bool,
    /// The name of the operation: `reconcile`, `suspend`, `resume`, or that of an action.
    pub operation: String,
    /// The digest of its plan.
    pub digest: PlanDigest,
    /// The apps or objects of its plan.
    pub items: Vec<RecordedItem>,
}

/// The part of a recorded operation that concerns one app or object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RecordedItem {
    /// The cluster that is written to.
    pub cluster: String,
    /// The app or object.
    pub target: OperationTarget,
    /// The writes, in order.
    pub writes: Vec<RecordedWrite>,
    /// The result; left out while it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// A write of a recorded operation, and how far it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RecordedWrite {
    /// The write.
    pub write: PlannedWrite,
    /// The last state of the write that was recorded.
    pub state: WriteState,
}

/// The progress of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum WriteState {
    /// It was planned.
    Planned,
    /// It was sent, and its answer is not known.
    Sent,
    /// The server accepted it, in a dry run.
    Accepted,
    /// The server stored it.
    Stored,
}

impl OperationRecord {
    /// Makes the record of a run that begins now with `plan`.
    pub fn new(
        request: &RunRequest,
        by: Option<String>,
        began: Timestamp,
        plan: &PlanAnswer,
    ) -> OperationRecord {
        let item = |item: &PlannedItem<OperationTarget>| {
            let planned =
                |write: &PlannedWrite| RecordedWrite { write: write.clone(), state: WriteState::Planned };
            RecordedItem {
                cluster: item.cluster.clone(),
                target: item.target.clone(),
                writes: item.writes.iter().map(planned).collect(),
                outcome: None,
            }
        };
        OperationRecord {
            id: request.id.clone(),
            by,
            began,
            planned_at: request.planned_at,
            ended: None,
            dry_run: request.dry_run,
            operation: plan.plan.operation.clone(),
            digest: plan.digest.clone(),
            items: plan.plan.items.iter().map(item).collect(),
        }
    }

    /// Adds what an event tells.
    pub fn note(&mut self, event: &OperationEvent) {
        match event {
            OperationEvent::Writing { item, write, .. } => {
                let Some(item) = self.items.get_mut(*item) else { return };
                let is_open = |recorded: &&mut RecordedWrite| {
                    recorded.state != WriteState::Stored && recorded.write.object == write.object
                };
                if let Some(open) = item.writes.iter_mut().find(is_open) {
                    *open = RecordedWrite { write: write.clone(), state: WriteState::Sent };
                }
            }
            OperationEvent::Written { item, write, is_stored, name } => {
                let item = self.items.get_mut(*item);
                let Some(recorded) = item.and_then(|item| item.writes.get_mut(*write)) else { return };
                recorded.state = if *is_stored { WriteState::Stored } else { WriteState::Accepted };
                // A dry run generates a name that the object does not get.
                if let (Some(name), true) = (name, *is_stored) {
                    recorded.write.object.name.clone_from(name);
                }
            }
            OperationEvent::Ended { item, outcome } => {
                if let Some(item) = self.items.get_mut(*item) {
                    item.outcome = Some(outcome.clone());
                }
            }
            OperationEvent::Started { .. }
            | OperationEvent::Begins { .. }
            | OperationEvent::Waiting { .. }
            | OperationEvent::Refused { .. }
            | OperationEvent::Done
            | OperationEvent::Alive => {}
        }
    }

    /// Returns the events that tell what is recorded, for a client that asks later.
    pub fn events(&self) -> Vec<OperationEvent> {
        let (id, digest) = (self.id.clone(), self.digest.clone());
        let mut events = vec![OperationEvent::Started { id, digest }];
        for (item, recorded) in self.items.iter().enumerate() {
            for (write, RecordedWrite { write: planned, state }) in recorded.writes.iter().enumerate() {
                if *state == WriteState::Planned {
                    continue;
                }
                events.push(OperationEvent::Writing { item, write: planned.clone(), is_alternative: false });
                if *state != WriteState::Sent {
                    let is_stored = *state == WriteState::Stored;
                    events.push(OperationEvent::Written { item, write, is_stored, name: None });
                }
            }
            events.extend(recorded.outcome.clone().map(|outcome| OperationEvent::Ended { item, outcome }));
        }
        events.extend(self.ended.map(|_| OperationEvent::Done));
        events
    }
}
