//! Runs operations by a hub.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures::TryStreamExt as _;
use taffrail_api::operations::{OperationEvent, Reply, RunRequest};

use super::hub_events::{EventQuestion, NoEvents, hub_events};
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
/// Fails as [`hub_events`] does if the hub refuses, and if it no longer tells of the run.
pub(crate) async fn hub_operation(
    url: &HubUrl,
    files: &HubFiles,
    request: &RunRequest,
    mut take: impl FnMut(OperationEvent) -> Reply,
) -> Result<(), CommandError> {
    let asked = EventQuestion {
        path: "/api/v1/operations",
        command: request.question.verb.as_str(),
        time: PATIENCE,
        is_endless: true,
    };
    let mut seen = Seen::default();
    let (most, pause) = REOPENED;
    let mut reopened = 0;
    loop {
        let outcome = async {
            let events = hub_events(url, files, asked, request).await?;
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.try_next().await.map_err(NoEvents::Broken)? {
                if event == OperationEvent::Done {
                    return Ok(true);
                }
                if seen.is_new(&event) && take(event) == Reply::Stop {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        let why = match outcome.await {
            Ok(true) => return Ok(()),
            Ok(false) => "the hub ended its answer".to_owned(),
            Err(NoEvents::Refused(error)) if !seen.has_begun => return Err(error),
            Err(error) => error.error().to_string(),
        };
        if reopened == most {
            let lost =
                format_args!("operation {} may go on in the hub, which tells no more: {why}", request.id);
            return Err(CommandError::unreadable(lost)
                .hint("its result is in the history of each app: taffrail history APP --hub URL"));
        }
        reopened += 1;
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
            OperationEvent::Waiting { .. } | OperationEvent::Done | OperationEvent::Alive => true,
        }
    }
}
