//! Questions of views that agents answer from their clusters. Nothing of them is stored.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use taffrail_api::ObjectActionList;
use taffrail_api::agent_protocol::{
    Answer, AnswerFault, Cancel, HubMessage, MAX_ACCEPTED, PlanRequest, Question, QuestionKind, hub_message,
};
use taffrail_api::logs::{LogEvent, LogsQuestion};
use taffrail_api::operations::{
    ActionQuestion, OperationEvent, OperationQuestion, OperationTarget, PlanAnswer, RunRequest,
    UncertainWrite, WriteTrace,
};
use taffrail_api::question::{ViewAnswer, ViewQuestion};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::Agents;
use super::follow::dropping_oldest;
use crate::ask::{AskError, LogAnswer, LogBounds};
use crate::index::lock;

/// Maximum number of questions that an agent answers at one time; further ones wait.
const MAX_AT_ONCE: usize = 32;

/// Maximum length of one answer, in bytes.
const MAX_ANSWER: usize = 16 << 20;

/// Maximum length of all answers of an agent that are on their way, in bytes. An agent that sends more gets none of them
/// answered.
const MAX_ON_THEIR_WAY: usize = 32 << 20;

/// Maximum length of a question, in bytes: an agent ends a session with a longer message.
const MAX_QUESTION: usize = MAX_ACCEPTED - 1024;

/// The time for which a question waits for its turn, at most.
const TURN: Duration = Duration::from_secs(2);

/// The members of an answer that hold what users wrote; their contents may say anything.
const WRITTEN_BY_USERS: [&str; 6] = ["object", "labels", "annotations", "patch", "alternative", "body"];

/// Maximum number of answers of an agent that are followed logs, and of those that are runs of operations.
const MAX_LINES_AT_ONCE: usize = 8;

/// Maximum length of the lines of an answer that wait to be taken, in bytes; an answer with more ends.
const MAX_QUEUED: usize = 8 << 20;

/// Maximum length of one line of an answer, in bytes.
const MAX_LINE: usize = 1 << 20;

/// The way to ask a connected agent.
#[derive(Clone)]
pub(super) struct Questions {
    orders: mpsc::Sender<Order>,
    /// The questions whose answers nobody waits for any more; none gets lost, and each was asked once.
    cancelled: mpsc::UnboundedSender<u64>,
    turns: Arc<Semaphore>,
    /// The turns of answers that go on: followed logs, and runs.
    followed: Arc<Semaphore>,
    runs: Arc<Semaphore>,
}

/// A question that the session of an agent is to ask.
struct Order {
    question: Question,
    answer: Sink,
    /// The moment from which its patience counts.
    asked: Duration,
}

/// The questions of one session, and the answers that are on their way.
pub(super) struct Inquirer {
    orders: tokio::sync::Mutex<(mpsc::Receiver<Order>, mpsc::UnboundedReceiver<u64>)>,
    waiting: Mutex<HashMap<u64, Sink>>,
}

/// The place to which the parts of an answer go.
enum Sink {
    /// The answer is taken when it is whole.
    Whole { answer: oneshot::Sender<Result<Vec<u8>, AnswerFault>>, parts: Vec<u8> },
    /// Each line of the answer is taken as it comes.
    Lines {
        lines: mpsc::UnboundedSender<Result<Vec<u8>, AnswerFault>>,
        rest: Vec<u8>,
        queued: Arc<AtomicUsize>,
    },
    /// A place that drops all parts, until the agent is told that nobody waits for them.
    Closed,
}

impl Sink {
    /// Returns the number of bytes that wait for the rest of the answer, or to be taken.
    fn held(&self) -> usize {
        match self {
            Sink::Whole { parts, .. } => parts.len(),
            Sink::Lines { queued, .. } => queued.load(Ordering::Relaxed),
            Sink::Closed => 0,
        }
    }

    /// Returns true if nobody waits for the answer.
    fn is_abandoned(&self) -> bool {
        match self {
            Sink::Whole { answer, .. } => answer.is_closed(),
            Sink::Lines { lines, .. } => lines.is_closed(),
            Sink::Closed => true,
        }
    }

    /// Adds a part, if there is `room` for that many bytes; returns the place for the next one.
    fn take(self, part: &[u8], room: usize) -> Sink {
        match self {
            Sink::Whole { answer, mut parts } => {
                if parts.len() + part.len() > MAX_ANSWER || part.len() > room {
                    // One that nobody waits for any more goes with it.
                    let long = AnswerFault::Failed("the answer of the agent is too long".to_owned());
                    let _ = answer.send(Err(long));
                    return Sink::Closed;
                }
                parts.extend(part);
                Sink::Whole { answer, parts }
            }
            Sink::Lines { lines, mut rest, queued } => {
                let is_long = queued.fetch_add(part.len(), Ordering::Relaxed) + part.len() > MAX_QUEUED;
                if is_long || part.len() > room {
                    return Sink::Closed;
                }
                for piece in part.split_inclusive(|byte| *byte == b'\n') {
                    rest.extend(piece);
                    if rest.len() > MAX_LINE
                        || rest.ends_with(b"\n") && lines.send(Ok(std::mem::take(&mut rest))).is_err()
                    {
                        return Sink::Closed;
                    }
                }
                Sink::Lines { lines, rest, queued }
            }
            Sink::Closed => Sink::Closed,
        }
    }

    /// Ends the answer.
    fn end(self, fault: Option<AnswerFault>) {
        // Nobody may wait for it any more.
        match (self, fault) {
            (Sink::Whole { answer, parts }, fault) => drop(answer.send(fault.map_or(Ok(parts), Err))),
            (Sink::Lines { lines, .. }, Some(fault)) => drop(lines.send(Err(fault))),
            (Sink::Lines { lines, .. }, None) => drop(lines.send(Ok(Vec::new()))),
            (Sink::Closed, _) => {}
        }
    }
}

/// Makes the two ends of asking an agent: that for those who ask, and that for its session.
pub(super) fn questions() -> (Questions, Inquirer) {
    let (orders, receiver) = mpsc::channel(2 * MAX_AT_ONCE);
    let (cancelled, are_cancelled) = mpsc::unbounded_channel();
    let turns = |count| Arc::new(Semaphore::new(count));
    let questions = Questions {
        orders,
        cancelled,
        turns: turns(MAX_AT_ONCE),
        followed: turns(MAX_LINES_AT_ONCE),
        runs: turns(MAX_LINES_AT_ONCE),
    };
    let orders = tokio::sync::Mutex::new((receiver, are_cancelled));
    (questions, Inquirer { orders, waiting: Mutex::default() })
}

impl Inquirer {
    /// Waits for the next message to the agent, whose session was welcomed at the moment `welcomed`; `None` once nobody can
    /// ask any more.
    pub(super) async fn next(&self, welcomed: Duration) -> Option<HubMessage> {
        let mut orders = self.orders.lock().await;
        let (orders, cancelled) = &mut *orders;
        loop {
            let message = tokio::select! {
                biased;
                Some(id) = cancelled.recv() => match lock(&self.waiting).remove(&id) {
                    // It was answered, or not asked yet.
                    None => continue,
                    Some(_) => hub_message::Message::Cancel(Cancel { id }),
                },
                order = orders.recv() => {
                    let Order { question, answer, asked } = order?;
                    if answer.is_abandoned() {
                        continue;
                    }
                    lock(&self.waiting).insert(question.id, answer);
                    let sent = u64::try_from(asked.saturating_sub(welcomed).as_millis());
                    hub_message::Message::Question(Question { sent_millis: sent.ok(), ..question })
                }
            };
            return Some(HubMessage { message: Some(message) });
        }
    }

    /// Takes a part of an answer; returns false for one to a question that nobody asks. An answer that is too long fails.
    pub(super) fn take(&self, part: Answer) -> bool {
        let Answer { id, part, is_last, error } = part;
        let mut waiting = lock(&self.waiting);
        let before: usize = waiting.values().map(Sink::held).sum();
        let Some(own) = waiting.remove(&id) else { return false };
        let sink = own.take(&part, MAX_ON_THEIR_WAY.saturating_sub(before));
        match is_last || !error.is_empty() {
            true => sink.end((!error.is_empty()).then(|| AnswerFault::read(&error))),
            false => drop(waiting.insert(id, sink)),
        }
        true
    }
}

/// A question that was asked; it is cancelled when this is dropped.
struct Asked {
    cancelled: mpsc::UnboundedSender<u64>,
    id: u64,
    /// Its turn.
    _turn: OwnedSemaphorePermit,
}

impl Drop for Asked {
    fn drop(&mut self) {
        // The session may have ended.
        let _ = self.cancelled.send(self.id);
    }
}

/// The lines of an answer, as they come.
pub(super) struct AnswerLines {
    name: String,
    lines: mpsc::UnboundedReceiver<Result<Vec<u8>, AnswerFault>>,
    queued: Arc<AtomicUsize>,
    /// True once the agent sent a line.
    is_begun: bool,
    _asked: Asked,
}

impl AnswerLines {
    /// Waits for the next line, and reads it; `None` at the end of the answer.
    ///
    /// # Errors
    /// If the agent says why there are no more, is gone, or speaks of another cluster.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, AskError> {
        let line = self.lines.recv().await.ok_or_else(|| AskError::Unconnected(self.name.clone()))?;
        let line = line.map_err(|fault| faulty(&self.name, fault))?;
        self.queued.fetch_sub(line.len(), Ordering::Relaxed);
        if line.is_empty() {
            return Ok(None);
        }
        self.is_begun = true;
        checked(&self.name, &line)?;
        serde_json::from_slice(&line).map(Some).map_err(|error| wrong(&self.name, error))
    }

    /// Waits for the next event of a run, as [`next`](AnswerLines::next) does, and leaves out those that a later release
    /// made.
    async fn next_of_run(&mut self) -> Result<Option<OperationEvent>, AskError> {
        loop {
            let Some(told) = self.next::<serde_json::Value>().await? else { return Ok(None) };
            let name = told.get("event").and_then(serde_json::Value::as_str);
            if name.is_none_or(|name| OperationEvent::NAMES.contains(&name)) {
                return serde_json::from_value(told).map(Some).map_err(|error| wrong(&self.name, error));
            }
        }
    }

    /// Waits for the next event of logs, as [`next`](AnswerLines::next) does.
    ///
    /// # Errors
    /// Also if the event names another cluster, in whichever form.
    async fn next_of_log(&mut self) -> Result<Option<LogEvent>, AskError> {
        let event: Option<LogEvent> = self.next().await?;
        let is_own = match &event {
            Some(LogEvent::Logs { subjects }) => subjects.iter().all(|it| it.cluster == self.name),
            Some(LogEvent::Unread { cluster, .. }) => *cluster == self.name,
            Some(LogEvent::Error { error, .. }) => error.cluster == self.name,
            _ => true,
        };
        if is_own { Ok(event) } else { Err(wrong(&self.name, "it tells of the log of another cluster")) }
    }
}

fn wrong(name: &str, why: impl fmt::Display) -> AskError {
    AskError::OfAgent { cluster: name.to_owned(), why: why.to_string() }
}

fn faulty(name: &str, fault: AnswerFault) -> AskError {
    match fault {
        AnswerFault::Question(error) => AskError::Question(error),
        AnswerFault::Late => AskError::Late,
        AnswerFault::Failed(why) => wrong(name, why),
    }
}

/// Refuses an answer of the agent of the cluster `name` that speaks of another one.
fn checked(name: &str, answer: &[u8]) -> Result<(), AskError> {
    match other_cluster(answer, name).map_err(|error| wrong(name, error))? {
        Some(other) => Err(wrong(name, format_args!("its answer is about another cluster, '{other}'"))),
        None => Ok(()),
    }
}

/// The class of a question, which decides how many are asked at one time.
#[derive(Clone, Copy)]
enum Turn {
    Question,
    Followed,
    Run,
}

impl Agents {
    /// Asks the agent of the cluster that is listed as `name`; `sink` makes the place for the answer of the question.
    async fn begin(
        &self,
        name: &str,
        (kind, question): (QuestionKind, Vec<u8>),
        turn: Turn,
        patience: Duration,
        answer: Sink,
    ) -> Result<Asked, AskError> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let gone = || AskError::Unconnected(name.to_owned());
        let questions = {
            let connected = lock(&self.connected);
            let agent = connected.values().find(|agent| agent.name == name).ok_or_else(gone)?;
            let refusal = match kind {
                QuestionKind::Plan | QuestionKind::Run => agent.refusals.operations,
                QuestionKind::Trace => agent.refusals.traces,
                QuestionKind::View | QuestionKind::Logs | QuestionKind::Actions => None,
            };
            if let Some(why) = refusal {
                return Err(AskError::Invalid(format!("{why}: cluster {name}")));
            }
            agent.questions.clone()
        };
        if question.len() > MAX_QUESTION {
            return Err(AskError::Invalid(format!(
                "the question is longer than the {} KiB that an agent takes: cluster {name}",
                MAX_QUESTION / 1024
            )));
        }
        let asked = self.index.clock().time().at;
        let Questions { orders, cancelled, turns, followed, runs } = questions;
        let turns = match turn {
            Turn::Question => turns,
            Turn::Followed => followed,
            Turn::Run => runs,
        };
        let turn = timeout(TURN.min(patience / 2), turns.acquire_owned()).await;
        let turn = turn.map_err(|_| AskError::Busy(name.to_owned()))?.map_err(|_| gone())?;
        let id = NUMBER.fetch_add(1, Ordering::Relaxed);
        let patience_millis = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
        let question = Question { id, question, patience_millis, kind: kind.into(), sent_millis: None };
        let order = Order { question, answer, asked };
        orders.try_send(order).map_err(|_| AskError::Busy(name.to_owned()))?;
        Ok(Asked { cancelled, id, _turn: turn })
    }

    /// Has a question answered by the agent of the cluster that is listed as `name`, and reads the whole answer with
    /// `read`.
    async fn whole<T: Send + 'static>(
        &self,
        name: &str,
        (kind, question): (QuestionKind, &(impl Serialize + Sync)),
        patience: Duration,
        read: impl FnOnce(&[u8]) -> Result<T, serde_json::Error> + Send + 'static,
    ) -> Result<T, AskError> {
        let question = serde_json::to_vec(question).map_err(|error| AskError::Invalid(error.to_string()))?;
        let (answer, answered) = oneshot::channel();
        let sink = Sink::Whole { answer, parts: Vec::new() };
        let _asked = self.begin(name, (kind, question), Turn::Question, patience, sink).await?;
        let answered = timeout(patience, answered).await.map_err(|_| AskError::Late)?;
        let bytes = answered.map_err(|_| AskError::Unconnected(name.to_owned()))?;
        let bytes = bytes.map_err(|fault| faulty(name, fault))?;
        let name = name.to_owned();
        let read = tokio::task::spawn_blocking(move || {
            checked(&name, &bytes)?;
            read(&bytes).map_err(|error| wrong(&name, error))
        });
        read.await.map_err(|_| AskError::Ended)?
    }

    /// Has a question answered by the agent of the cluster that is listed as `name`, and returns the lines of the answer.
    async fn lines(
        &self,
        name: &str,
        (kind, question): (QuestionKind, &(impl Serialize + Sync)),
        turn: Turn,
        patience: Duration,
    ) -> Result<AnswerLines, AskError> {
        let question = serde_json::to_vec(question).map_err(|error| AskError::Invalid(error.to_string()))?;
        let (sender, lines) = mpsc::unbounded_channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let sink = Sink::Lines { lines: sender, rest: Vec::new(), queued: Arc::clone(&queued) };
        let asked = self.begin(name, (kind, question), turn, patience, sink).await?;
        Ok(AnswerLines { name: name.to_owned(), lines, queued, is_begun: false, _asked: asked })
    }

    /// Has a question about the cluster that is listed as `name` answered by its agent.
    ///
    /// # Errors
    /// [`AskError::Late`] if the agent does not answer within `patience`, [`AskError::Unconnected`] if it is not
    /// connected, and what the agent says.
    pub async fn ask(
        &self,
        name: &str,
        question: &ViewQuestion,
        patience: Duration,
    ) -> Result<ViewAnswer, AskError> {
        let own = question.clone();
        self.whole(name, (QuestionKind::View, question), patience, move |bytes| own.read_answer(bytes)).await
    }

    /// Has the agent of the cluster that is listed as `name` list the actions of an object.
    ///
    /// # Errors
    /// The errors of [`ask`](Agents::ask).
    pub async fn actions(
        &self,
        name: &str,
        question: &ActionQuestion,
        patience: Duration,
    ) -> Result<ObjectActionList, AskError> {
        let read = |bytes: &[u8]| serde_json::from_slice(bytes);
        self.whole(name, (QuestionKind::Actions, question), patience, read).await
    }

    /// Has the agent of the cluster that is listed as `name` plan an operation, with writes that contain the time
    /// `planned_at`, or the present one.
    ///
    /// # Errors
    /// The errors of [`ask`](Agents::ask), and one if the agent runs no operations, or speaks of another cluster's apps.
    pub async fn plan(
        &self,
        name: &str,
        question: OperationQuestion,
        planned_at: Option<Timestamp>,
        patience: Duration,
    ) -> Result<PlanAnswer, AskError> {
        let request = PlanRequest { question, planned_at };
        let read = |bytes: &[u8]| serde_json::from_slice(bytes);
        let answer: PlanAnswer = self.whole(name, (QuestionKind::Plan, &request), patience, read).await?;
        let is_own = |target: &OperationTarget| match target {
            OperationTarget::App(app) => app.home == name && app.target == name,
            OperationTarget::Object(object) => object.cluster == name,
        };
        let targets = answer.plan.items.iter().map(|item| &item.target);
        let mut targets = targets.chain(answer.plan.refused.iter().map(|refused| &refused.target));
        let is_own = targets.all(is_own)
            && answer.plan.items.iter().all(|item| item.cluster == name)
            && answer.errors.iter().all(|error| error.cluster == name);
        if !is_own || answer.plan.digest() != answer.digest {
            return Err(wrong(name, "its plan is not about its cluster alone, or has another digest"));
        }
        if planned_at.is_some_and(|planned_at| planned_at != answer.planned_at) {
            return Err(wrong(name, "it planned for another time"));
        }
        Ok(answer)
    }

    /// Has the agent of the cluster that is listed as `name` run an operation, and passes the events to `take` until the
    /// answer ends, or `take` returns false. What the agent did not tell is not known.
    ///
    /// # Errors
    /// The reason why the agent was not asked, or began nothing: then nothing was sent, and nothing will be.
    pub async fn run(
        &self,
        name: &str,
        request: &RunRequest,
        mut take: impl FnMut(OperationEvent) -> bool + Send,
    ) -> Result<(), AskError> {
        let mut lines = self.lines(name, (QuestionKind::Run, request), Turn::Run, RUN_BEGINS).await?;
        let begins = Instant::now() + RUN_BEGINS;
        let ends = begins + Duration::from_millis(request.timeout_millis) + RUN_BEGINS;
        let mut until = begins;
        loop {
            let event = match timeout_at(until, lines.next_of_run()).await {
                Ok(Ok(Some(event))) => event,
                // An agent whose session ended may have begun.
                Ok(Err(error)) if !lines.is_begun && !matches!(error, AskError::Unconnected(_)) => {
                    return Err(error);
                }
                Ok(_) | Err(_) => return Ok(()),
            };
            if !take(event) {
                return Ok(());
            }
            until = ends;
        }
    }

    /// Has the agent of the cluster that is listed as `name` look for what writes left.
    ///
    /// # Errors
    /// The errors of [`ask`](Agents::ask).
    pub async fn trace(
        &self,
        name: &str,
        writes: &[UncertainWrite],
        patience: Duration,
    ) -> Result<Vec<(WriteTrace, String)>, AskError> {
        let read = |bytes: &[u8]| serde_json::from_slice::<Vec<(WriteTrace, String)>>(bytes);
        let traces = self.whole(name, (QuestionKind::Trace, &writes), patience, read).await?;
        match traces.len() == writes.len() {
            true => Ok(traces),
            false => Err(wrong(name, "it did not tell of each write")),
        }
    }

    /// Has the agent of the cluster that is listed as `name` read or follow logs, within `bounds`.
    ///
    /// # Errors
    /// The errors of [`ask`](Agents::ask).
    pub async fn logs(
        self: &Arc<Self>,
        name: &str,
        question: &LogsQuestion,
        bounds: LogBounds,
    ) -> Result<LogAnswer, AskError> {
        let begun = Instant::now();
        let turn = if question.follow { Turn::Followed } else { Turn::Question };
        let mut lines = self.lines(name, (QuestionKind::Logs, question), turn, bounds.patience).await?;
        let first = timeout(bounds.patience, lines.next_of_log()).await.map_err(|_| AskError::Late)??;
        let rest = futures::stream::unfold(lines, async |mut lines| {
            let event = lines.next_of_log().await.ok().flatten()?;
            Some((event, lines))
        });
        let events = futures::stream::iter(first).chain(rest);
        if question.follow {
            return Ok(LogAnswer::follow(dropping_oldest(events)));
        }
        Ok(LogAnswer::read(events, bounds.patience, begun + bounds.patience, bounds.bytes))
    }
}

/// The time in which the run of an operation must have its turn.
const RUN_BEGINS: Duration = Duration::from_secs(10);

/// Returns the name of a cluster in an answer, as JSON, that is not `name`: an agent speaks of its own cluster alone.
fn other_cluster(answer: &[u8], name: &str) -> Result<Option<String>, serde_json::Error> {
    let mut found = None;
    let mut json = serde_json::Deserializer::from_slice(answer);
    ClusterNames { name, found: &mut found, is_name: false }.deserialize(&mut json)?;
    json.end()?;
    Ok(found)
}

/// Searches a JSON value for the names of other clusters, without keeping it.
struct ClusterNames<'n> {
    name: &'n str,
    found: &'n mut Option<String>,
    /// True if the value is that of a member `cluster`.
    is_name: bool,
}

impl ClusterNames<'_> {
    /// Returns the search of a part of the value.
    fn part(&mut self, is_name: bool) -> ClusterNames<'_> {
        ClusterNames { name: self.name, found: self.found, is_name }
    }
}

impl<'de> DeserializeSeed<'de> for ClusterNames<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ClusterNames<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if self.is_name && text != self.name {
            *self.found = Some(text.to_owned());
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self.part(false))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        while let Some(member) = members.next_key::<Cow<'_, str>>()? {
            match WRITTEN_BY_USERS.contains(&&*member) {
                true => drop(members.next_value::<IgnoredAny>()?),
                false => members.next_value_seed(self.part(member == "cluster"))?,
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_may_name_no_other_cluster_but_in_what_users_wrote() {
        let answer = json!({"items": [{"cluster": "eu", "object": {"spec": {"cluster": "us"}}}]});
        let other = |answer: &serde_json::Value, name| {
            other_cluster(&serde_json::to_vec(answer).unwrap(), name).unwrap()
        };
        assert_eq!(other(&answer, "eu"), None);
        assert_eq!(other(&answer, "us").as_deref(), Some("eu"));
        let lying = json!({"items": [{"detail": {"row": {"cluster": "us"}}}]});
        assert_eq!(other(&lying, "eu").as_deref(), Some("us"));
        assert!(other_cluster(b"{\"cluster\":", "eu").is_err());
    }

    #[tokio::test]
    async fn long_answers_fail_and_hold_nothing() {
        let (questions, inquirer) = questions();
        let mut answers = Vec::new();
        for id in 0..3 {
            let (answer, answered) = oneshot::channel();
            let question = Question { id, ..Question::default() };
            let answer = Sink::Whole { answer, parts: Vec::new() };
            let order = Order { question, answer, asked: Duration::from_secs(5) };
            questions.orders.try_send(order).unwrap_or_else(|_| panic!());
            inquirer.next(Duration::from_secs(3)).await.unwrap();
            answers.push(answered);
        }
        let part = |id, bytes| Answer { id, part: vec![0; bytes], is_last: false, error: String::new() };
        // One alone, and two in sum.
        inquirer.take(part(0, MAX_ANSWER + 1));
        assert!(matches!(answers.remove(0).await, Ok(Err(AnswerFault::Failed(_)))));
        inquirer.take(part(1, MAX_ANSWER));
        inquirer.take(part(2, MAX_ANSWER));
        inquirer.take(part(2, 1));
        assert!(matches!(answers.remove(1).await, Ok(Err(AnswerFault::Failed(_)))));
        inquirer.take(Answer { id: 1, part: Vec::new(), is_last: true, error: String::new() });
        assert!(matches!(answers.remove(0).await, Ok(Ok(bytes)) if bytes.len() == MAX_ANSWER));
        assert_eq!(lock(&inquirer.waiting).values().map(Sink::held).sum::<usize>(), 0);
        // Parts that nobody asked for are dropped.
        assert!(!inquirer.take(part(7, 10)));
        // Those that failed go when the agent is told.
        for id in [0, 2] {
            questions.cancelled.send(id).unwrap_or_else(|_| panic!());
            inquirer.next(Duration::ZERO).await.unwrap();
        }
        assert!(lock(&inquirer.waiting).is_empty());
    }

    #[tokio::test]
    async fn a_question_that_was_cancelled_while_the_agent_takes_none_is_never_asked() {
        let (questions, inquirer) = questions();
        let ask = |id| {
            let (answer, answered) = oneshot::channel();
            let question = Question { id, ..Question::default() };
            let answer = Sink::Whole { answer, parts: Vec::new() };
            let order = Order { question, answer, asked: Duration::from_secs(5) };
            questions.orders.try_send(order).map(|()| answered)
        };
        let _first = ask(0).unwrap();
        let told = inquirer.next(Duration::from_secs(3)).await.unwrap().message.unwrap();
        let hub_message::Message::Question(told) = told else { panic!("{told:?}") };
        assert_eq!((told.id, told.sent_millis), (0, Some(2_000)));
        // As many as have room, of which nobody waits for any.
        let mut id = 0;
        while let Ok(answered) = ask(id + 1) {
            drop(answered);
            id += 1;
            questions.cancelled.send(id).unwrap();
        }
        // Nor for the one that was asked.
        questions.cancelled.send(0).unwrap();
        let told = inquirer.next(Duration::ZERO).await.unwrap().message;
        assert_eq!(told, Some(hub_message::Message::Cancel(Cancel { id: 0 })));
        drop(questions);
        assert_eq!(inquirer.next(Duration::ZERO).await, None);
        assert!(lock(&inquirer.waiting).is_empty());
    }

    #[tokio::test]
    async fn an_answer_by_lines_is_taken_as_it_comes_and_ends_beyond_its_bounds() {
        let (sender, mut taken) = mpsc::unbounded_channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let mut sink = Sink::Lines { lines: sender, rest: Vec::new(), queued: Arc::clone(&queued) };
        for part in [&b"{\"a\":"[..], b"1}\n{\"a\"", b":2}\n{"] {
            sink = sink.take(part, usize::MAX);
        }
        assert_eq!(taken.recv().await, Some(Ok(b"{\"a\":1}\n".to_vec())));
        assert_eq!(taken.recv().await, Some(Ok(b"{\"a\":2}\n".to_vec())));
        assert_eq!(queued.load(Ordering::Relaxed), 17);
        assert!(matches!(sink.take(&vec![b'x'; MAX_LINE], usize::MAX), Sink::Closed));
        assert!(taken.recv().await.is_none());
    }
}
