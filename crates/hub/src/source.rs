//! Receives the messages of a source, such as the observer in the same process, and replies to them.

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use taffrail_api::report::{SourceMessage, SourceReply};
use tokio::sync::mpsc;

use crate::fleet::Tells;
use crate::index::FleetIndex;

impl FleetIndex {
    /// Applies the `messages` of the source called `source`, which reports the halves `tells`, and sends it `replies`.
    /// Ends when either channel is closed; the source's reports stay, and become stale with time.
    ///
    /// Accepts a stream only once its epoch is in the store, so that a later run of the hub gives greater ones. While
    /// the store cannot be written it accepts at once.
    pub async fn receive(
        &self,
        source: &str,
        tells: Tells,
        mut messages: mpsc::Receiver<SourceMessage>,
        replies: mpsc::Sender<SourceReply>,
    ) {
        let mut accepted = FuturesUnordered::new();
        loop {
            let reply = tokio::select! {
                biased;
                Some(reply) = accepted.next(), if !accepted.is_empty() => Some(reply),
                message = messages.recv() => match message {
                    None => break,
                    Some(SourceMessage::Open(cluster)) => {
                        let epoch = self.open(&cluster, source, tells);
                        accepted.push(async move {
                            self.saved().await;
                            SourceReply::Accepted { cluster, epoch }
                        });
                        None
                    }
                    Some(SourceMessage::Report(report)) => {
                        let (cluster, position) = (report.cluster.clone(), report.position);
                        let taken = self.take(source, *report);
                        SourceReply::to_report(&cluster, position, taken.as_ref().ok())
                    }
                    Some(SourceMessage::Close(cluster)) => {
                        self.forget(&cluster, source);
                        None
                    }
                },
            };
            if let Some(reply) = reply
                && replies.send(reply).await.is_err()
            {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use taffrail_api::report::{Content, Report, StreamPosition};
    use taffrail_apps::ClusterId;

    use super::*;
    use crate::clock::{HubClock, HubTime};

    #[tokio::test]
    async fn a_source_is_told_its_epoch_and_which_reports_are_refused() {
        let time = HubTime { at: Duration::ZERO, now: Timestamp::UNIX_EPOCH };
        let index = FleetIndex::new(HubClock::new(move || time));
        let (outbox, messages) = mpsc::channel(8);
        let (replies, mut inbox) = mpsc::channel(8);
        let cluster = ClusterId("eu".to_owned());
        let heartbeat = |epoch: u64| {
            let position = StreamPosition { epoch, seq: 1 };
            let content = Content::Heartbeat;
            Report { cluster: cluster.clone(), position, age: Some(Duration::ZERO), content }
        };
        outbox.send(SourceMessage::Report(Box::new(heartbeat(7)))).await.unwrap();
        outbox.send(SourceMessage::Open(cluster.clone())).await.unwrap();
        outbox.send(SourceMessage::Report(Box::new(heartbeat(7)))).await.unwrap();
        drop(outbox);
        index.receive("observer", Tells::ALL, messages, replies).await;
        let mut told = Vec::new();
        while let Some(reply) = inbox.recv().await {
            told.push(reply);
        }
        let refused = SourceReply::Refused { cluster: cluster.clone(), epoch: 7 };
        assert_eq!(told, [refused.clone(), SourceReply::Accepted { cluster, epoch: 1 }, refused]);
    }
}
