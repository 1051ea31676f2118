//! `-w --hub`: a hub that is asked again when its event stream tells of a change.

use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use taffrail_api::question::{QuestionError, ViewQuestion};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::hub::{self, HubResponse};
use super::hub_connector::SendError;
use super::hub_stream::read_stream;
use crate::cli::HubFiles;
use crate::command_error::CommandError;
use crate::hub_url::HubUrl;
use crate::runtime::block_on;

/// The path of the event stream that tells of changes, and of nothing else.
const STREAM: &str = "/api/v1/stream?subscribe=news:changes";

/// The pause before a stream that has ended is opened again.
const RETRY: Duration = Duration::from_secs(1);

/// The time after which a hub is asked again, for anything but a list of apps or clusters, although it told of no
/// change: it tells of changes of apps, and an answer may hold more.
const REFRESH: Duration = Duration::from_secs(5);

/// The time after which a hub is asked again for a list of apps or clusters although it told of no change.
const REFRESH_LISTS: Duration = Duration::from_secs(30);

/// A hub that is asked the same question again and again, with its last answer.
#[derive(Default)]
pub(crate) struct HubWatch {
    news: Option<HubNews>,
    /// The last response, an answer or the reason why the question has none, with the moment at which it came; `None`
    /// before the first, and if the hub could not be asked or sent another error.
    last: Option<(HubResponse, Instant)>,
    refresh: Duration,
}

impl HubWatch {
    /// Sends `question` to the hub and returns its answer, or the hub's reason why the question has none. With
    /// `is_held` returns the last answer again instead, with longer ages, if there is one.
    ///
    /// # Errors
    /// Fails if the token or the certificate authorities cannot be read, and if the hub cannot be reached, does not
    /// answer within `time`, or answers with another error.
    pub(super) fn ask<A: DeserializeOwned>(
        &mut self,
        url: &HubUrl,
        files: &HubFiles,
        question: &ViewQuestion,
        time: Duration,
        is_held: bool,
    ) -> Result<Result<A, QuestionError>, CommandError> {
        if let Some((sent, at)) = self.last.as_ref().filter(|_| is_held) {
            return hub::understood(url, &sent.aged(at.elapsed()));
        }
        if self.news.is_none() {
            let (url, files) = (url.clone(), files.clone());
            self.news = Some(block_on(async { HubNews::listen(url, files) })?);
        }
        let is_list = matches!(question, ViewQuestion::Apps(_) | ViewQuestion::Clusters(_));
        self.refresh = if is_list { REFRESH_LISTS } else { REFRESH };
        self.last = None;
        let sent = hub::fetch(url, files, question, time)?;
        let answer = hub::understood(url, &sent);
        if answer.is_ok() {
            self.last = Some((sent, Instant::now()));
        }
        answer
    }

    /// Pauses for `pause`, and then until the hub has told of a change, for `time` at most. Returns true if it told of
    /// one since the last call, or its event stream ended; before the first [`HubWatch::ask`] always, after `time`.
    pub(crate) fn rest(&mut self, pause: Duration, time: Duration) -> Result<bool, CommandError> {
        let Some(HubNews { news, .. }) = &mut self.news else {
            block_on(async { sleep(time).await })?;
            return Ok(true);
        };
        block_on(async {
            sleep(pause).await;
            matches!(timeout(time, news.changed()).await, Ok(Ok(())))
        })
    }

    /// Returns true if there is a last answer that is not older than [`REFRESH`] or [`REFRESH_LISTS`], so that the hub
    /// need not be asked again before something changes.
    pub(crate) fn stands(&self) -> bool {
        self.last.as_ref().is_some_and(|(_, at)| at.elapsed() < self.refresh)
    }
}

/// A task that reads the event stream of a hub, and opens it again whenever it ends.
struct HubNews {
    /// The number of changes of which the hub told, or that may have been missed because the stream ended.
    news: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Drop for HubNews {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl HubNews {
    /// Starts to read the event stream of the hub at `url`; `files` are read again for each connection.
    fn listen(url: HubUrl, files: HubFiles) -> HubNews {
        let (sender, news) = watch::channel(0);
        let task = tokio::spawn(async move {
            loop {
                // Why a stream ends is told by the answer to the next question.
                drop(follow(&url, &files, &sender).await);
                sender.send_modify(|number| *number += 1);
                sleep(RETRY).await;
            }
        });
        HubNews { news, task }
    }
}

/// Reads the event stream until it ends, and adds one to `news` for each piece of it that tells of changes.
async fn follow(url: &HubUrl, files: &HubFiles, news: &watch::Sender<u64>) -> Result<(), SendError> {
    let mut events = EventNames::default();
    read_stream(url, files, STREAM, |bytes| {
        if events.tell_of_change(bytes) {
            news.send_modify(|number| *number += 1);
        }
    })
    .await
}

/// A parser of an event stream that keeps only the beginning of the present line.
#[derive(Debug, Default)]
struct EventNames {
    /// The beginning of the present line, which has not ended yet.
    line: Vec<u8>,
}

impl EventNames {
    /// Maximum number of bytes of a line that are kept: the names of events are shorter.
    const KEPT: usize = 32;

    /// Parses the next bytes of the stream, and returns true if the name of an event that tells of a change ends in
    /// them.
    fn tell_of_change(&mut self, bytes: &[u8]) -> bool {
        let mut is_news = false;
        for byte in bytes {
            match byte {
                b'\n' => {
                    is_news |= matches!(self.line.as_slice(), b"event: reset" | b"event: frame");
                    self.line.clear();
                }
                _ if self.line.len() < EventNames::KEPT => self.line.push(*byte),
                _ => {}
            }
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::EventNames;

    #[test]
    fn events_that_tell_of_changes_are_found_however_the_stream_is_cut() {
        let stream = b"id: a-1\nevent: reset\ndata: {\"x\":\"event: frame\"}\n\nevent: alive\ndata: {}\n\nevent: frame\n\n";
        for size in 1..stream.len() {
            let mut events = EventNames::default();
            let told = stream.chunks(size).filter(|part| events.tell_of_change(part)).count();
            assert!((1..=2).contains(&told), "{size}: {told}");
        }
        let mut events = EventNames::default();
        assert!(!events.tell_of_change(b"event: alive\ndata: {}\n\n"));
        assert!(!events.tell_of_change(&[b'x'; 1 << 20]) && events.line.len() <= EventNames::KEPT);
    }
}
