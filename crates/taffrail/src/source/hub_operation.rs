//! Runs operations by a hub.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures::TryStreamExt as _;
use taffrail_api::operations::{OperationEvent, OperationQuestion, Reply, RunRequest};

use super::hub_events::{EventQuestion, MAX_OPERATION_EVENT, NoEvents, hub_events};
use crate::cli::HubFiles;
use crate::command_error::CommandError;
use crate::hub_url::HubUrl;

/// The time in which a hub must begin to run a plan.
const PATIENCE: Duration = Duration::from_secs(12);

/// The number of times that a lost connection is opened again, and the pause before.
const REOPENED: (usize, Duration) = (10, Duration::from_secs(1));

/// Asks the hub at `url` to run a plan, and calls `take` with each event of the run until its end, or until `take` returns
/// [`Reply::Stop`]. Opens a lost connection again: the identifier keeps the hub from running the plan twice.
///
/// # Errors
/// [`NoEvents::Refused`] if the hub has sent nothing to a cluster, and will not; [`NoEvents::Broken`] if it no longer tells
/// of the run, which may go on.
pub(crate) async fn hub_operation(
    url: &HubUrl,
    files: &HubFiles,
    request: &RunRequest,
    mut take: impl FnMut(OperationEvent) -> Reply,
) -> Result<(), NoEvents> {
    let asked = EventQuestion {
        path: "/api/v1/operations",
        command: match &request.question {
            OperationQuestion::Verb(question) => question.verb.as_str(),
            OperationQuestion::Action(_) => "action",
        },
        time: PATIENCE,
        is_endless: true,
        event: MAX_OPERATION_EVENT,
    };
    let mut seen = Seen::default();
    let (most, pause) = REOPENED;
    let (mut lost, mut was_asked) = (0, false);
    loop {
        let is_first = !std::mem::replace(&mut was_asked, true);
        let outcome = async {
            let events = hub_events(url, files, asked, request).await?;
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.try_next().await.map_err(NoEvents::Broken)? {
                match event {
                    OperationEvent::Done => return Ok(true),
                    OperationEvent::Refused { message, hint } => {
                        let refused = CommandError::unreadable(message).maybe_hint(hint);
                        return Err(NoEvents::Refused(refused));
                    }
                    event => {
                        if seen.is_new(&event) {
                            lost = 0;
                            if take(event) == Reply::Stop {
                                return Ok(true);
                            }
                        }
                    }
                }
            }
            Ok(false)
        };
        let why = match outcome.await {
            Ok(true) => return Ok(()),
            Ok(false) => "the hub ended its answer".to_owned(),
            // A refusal of a later request, such as for want of a place, is none of the run.
            Err(NoEvents::Refused(error)) if is_first => return Err(NoEvents::Refused(error)),
            Err(error) => error.error().to_string(),
        };
        if lost == most {
            let told =
                format_args!("operation {} may go on in the hub, which tells no more: {why}", request.id);
            let hint = "its result is in the history of each app: taffrail history APP --hub URL";
            return Err(NoEvents::Broken(CommandError::unreadable(told).hint(hint)));
        }
        lost += 1;
        tokio::time::sleep(pause).await;
    }
}

/// The events that were taken, by which those that a hub repeats are known.
#[derive(Default)]
struct Seen {
    has_begun: bool,
    taken: HashSet<(&'static str, usize, usize)>,
    /// The number of events about sent writes of each item, in this connection.
    writing: HashMap<usize, usize>,
}

impl Seen {
    fn is_new(&mut self, event: &OperationEvent) -> bool {
        match event {
            OperationEvent::Started { .. } => {
                self.writing.clear();
                !std::mem::replace(&mut self.has_begun, true)
            }
            OperationEvent::Begins { item } => self.taken.insert(("begins", *item, 0)),
            OperationEvent::Writing { item, .. } => {
                let count = self.writing.entry(*item).or_default();
                *count += 1;
                self.taken.insert(("writing", *item, *count))
            }
            OperationEvent::Written { item, write, .. } => self.taken.insert(("written", *item, *write)),
            OperationEvent::Ended { item, .. } => self.taken.insert(("ended", *item, 0)),
            OperationEvent::Waiting { .. } => true,
            OperationEvent::Refused { .. } | OperationEvent::Done | OperationEvent::Alive => false,
        }
    }
}
