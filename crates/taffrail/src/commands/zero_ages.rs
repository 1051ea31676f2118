//! The hidden switch `--zero-ages`, with which `cargo xtask bench faults` must find clusters that are wrongly shown as well.

use std::time::Duration;

use taffrail_api::report::{Content, HalfBody, SourceMessage};
use tokio::sync::mpsc;

/// Returns a receiver of the same messages, each as if it was about a server that answers at this moment, and a future that
/// passes them on until there are no more.
pub(super) fn without_ages(
    mut messages: mpsc::Receiver<SourceMessage>,
) -> (mpsc::Receiver<SourceMessage>, impl Future<Output = ()> + Send) {
    let (outbox, passed) = mpsc::channel(messages.max_capacity());
    let passing = async move {
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
    };
    (passed, passing)
}
