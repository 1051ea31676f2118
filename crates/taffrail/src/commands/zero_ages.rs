//! The hidden switch `--zero-ages`, with which `cargo xtask bench faults` must find clusters that are wrongly shown as well.

use std::time::Duration;

use taffrail_api::report::{Content, HalfBody, SourceMessage};
use tokio::sync::mpsc;

/// Returns a receiver of the same messages; if `has_ages` is false, each as if it was about a server that answers at this
/// moment.
pub(super) fn aged(
    mut messages: mpsc::Receiver<SourceMessage>,
    has_ages: bool,
) -> mpsc::Receiver<SourceMessage> {
    if has_ages {
        return messages;
    }
    let (outbox, passed) = mpsc::channel(messages.max_capacity());
    // The task ends with the sender or with the receiver.
    tokio::spawn(async move {
        while let Some(mut message) = messages.recv().await {
            if let SourceMessage::Report(report) = &mut message {
                report.age = Some(Duration::ZERO);
                match &mut report.content {
                    Content::Changes { changed: halves, .. } | Content::Snapshot { halves, .. } => {
                        for half in halves {
                            match &mut half.body {
                                HalfBody::Declared(body) => body.not_live = None,
                                HalfBody::Observed(body) => body.not_live = None,
                            }
                        }
                    }
                    Content::Cluster { facts, .. } => facts.not_live = None,
                    Content::Digest(_) | Content::Heartbeat => {}
                }
            }
            if outbox.send(message).await.is_err() {
                break;
            }
        }
    });
    passed
}
