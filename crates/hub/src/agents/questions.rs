//! Questions of views that agents answer from their clusters. Nothing of them is stored.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use taffrail_api::agent_protocol::{Answer, AnswerFault, Cancel, HubMessage, Question, hub_message};
use taffrail_api::question::{ViewAnswer, ViewQuestion};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use super::Agents;
use crate::ask::AskError;
use crate::index::lock;

/// Maximum number of questions that an agent answers at one time; further ones wait.
const MAX_AT_ONCE: usize = 32;

/// Maximum length of one answer, in bytes.
const MAX_ANSWER: usize = 16 << 20;

/// Maximum length of all answers of an agent that are on their way, in bytes. An agent that sends more gets none of them
/// answered.
const MAX_ON_THEIR_WAY: usize = 32 << 20;

/// The time for which a question waits for its turn, at most.
const TURN: Duration = Duration::from_secs(2);

/// The members of an answer that hold what users wrote; their contents may say anything.
const WRITTEN_BY_USERS: [&str; 3] = ["object", "labels", "annotations"];

/// The way to ask a connected agent.
#[derive(Clone)]
pub(super) struct Questions {
    orders: mpsc::Sender<Order>,
    turns: Arc<Semaphore>,
}

/// Something that the session of an agent is to do about a question.
enum Order {
    Ask {
        id: u64,
        question: Vec<u8>,
        patience: Duration,
        answer: oneshot::Sender<Result<Vec<u8>, AnswerFault>>,
    },
    /// The hub waits no longer for the answer.
    Cancel(u64),
}

/// The questions of one session, and the answers that are on their way.
pub(super) struct Inquirer {
    orders: tokio::sync::Mutex<mpsc::Receiver<Order>>,
    waiting: Mutex<HashMap<u64, Waiting>>,
}

struct Waiting {
    answer: oneshot::Sender<Result<Vec<u8>, AnswerFault>>,
    parts: Vec<u8>,
}

/// Makes the two ends of asking an agent: that for those who ask, and that for its session.
pub(super) fn questions() -> (Questions, Inquirer) {
    let (orders, receiver) = mpsc::channel(2 * MAX_AT_ONCE);
    let turns = Arc::new(Semaphore::new(MAX_AT_ONCE));
    let inquirer = Inquirer { orders: tokio::sync::Mutex::new(receiver), waiting: Mutex::default() };
    (Questions { orders, turns }, inquirer)
}

impl Inquirer {
    /// Waits for the next message to the agent; `None` once nobody can ask any more.
    pub(super) async fn next(&self) -> Option<HubMessage> {
        let mut orders = self.orders.lock().await;
        loop {
            let message = match orders.recv().await? {
                Order::Ask { id, question, patience, answer } => {
                    lock(&self.waiting).insert(id, Waiting { answer, parts: Vec::new() });
                    let patience_millis = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
                    hub_message::Message::Question(Question { id, question, patience_millis })
                }
                Order::Cancel(id) => match lock(&self.waiting).remove(&id) {
                    // It was answered.
                    None => continue,
                    Some(_) => hub_message::Message::Cancel(Cancel { id }),
                },
            };
            return Some(HubMessage { message: Some(message) });
        }
    }

    /// Takes a part of an answer; returns false for one to a question that nobody asks. An answer that is too long fails.
    pub(super) fn take(&self, part: Answer) -> bool {
        let Answer { id, part, is_last, error } = part;
        let mut waiting = lock(&self.waiting);
        let before: usize = waiting.values().map(|it| it.parts.len()).sum();
        let Some(mut own) = waiting.remove(&id) else { return false };
        let answer = match error.is_empty() {
            false => Err(AnswerFault::read(&error)),
            true if own.parts.len() + part.len() > MAX_ANSWER || before + part.len() > MAX_ON_THEIR_WAY => {
                Err(AnswerFault::Failed("the answer of the agent is too long".to_owned()))
            }
            true => {
                own.parts.extend(part);
                if !is_last {
                    waiting.insert(id, own);
                    return true;
                }
                Ok(std::mem::take(&mut own.parts))
            }
        };
        // One that nobody waits for any more goes with it.
        let _ = own.answer.send(answer);
        true
    }
}

/// A question that was asked; it is cancelled when this is dropped.
struct Asked<'q> {
    questions: &'q Questions,
    id: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        // The session may have ended, or take no orders any more and end soon.
        let _ = self.questions.orders.try_send(Order::Cancel(self.id));
    }
}

impl Agents {
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
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let questions = lock(&self.connected)
            .values()
            .find(|agent| agent.name == name)
            .map(|agent| agent.questions.clone());
        let gone = || AskError::Unconnected(name.to_owned());
        let questions = questions.ok_or_else(gone)?;
        let turn = timeout(TURN.min(patience / 2), questions.turns.acquire()).await;
        let _turn = turn.map_err(|_| AskError::Busy(name.to_owned()))?.map_err(|_| gone())?;
        let id = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let asked = serde_json::to_vec(question).map_err(|error| AskError::Invalid(error.to_string()))?;
        let order = Order::Ask { id, question: asked, patience, answer };
        questions.orders.try_send(order).map_err(|_| AskError::Busy(name.to_owned()))?;
        let _asked = Asked { questions: &questions, id };
        let answered = timeout(patience, answered).await.map_err(|_| AskError::Late)?.map_err(|_| gone())?;
        let bytes = answered.map_err(|fault| match fault {
            AnswerFault::Question(error) => AskError::Question(error),
            AnswerFault::Late => AskError::Late,
            AnswerFault::Failed(why) => AskError::OfAgent { cluster: name.to_owned(), why },
        })?;
        let (name, question) = (name.to_owned(), question.clone());
        let read = tokio::task::spawn_blocking(move || {
            let wrong = |why: String| AskError::OfAgent { cluster: name.clone(), why };
            let other = other_cluster(&bytes, &name).map_err(|error| wrong(error.to_string()))?;
            match other {
                Some(other) => Err(wrong(format!("its answer is about another cluster, '{other}'"))),
                None => question.read_answer(&bytes).map_err(|error| wrong(error.to_string())),
            }
        });
        read.await.map_err(|_| AskError::Ended)?
    }
}

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
            let order = Order::Ask { id, question: Vec::new(), patience: Duration::ZERO, answer };
            questions.orders.try_send(order).unwrap_or_else(|_| panic!());
            inquirer.next().await.unwrap();
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
        assert!(lock(&inquirer.waiting).is_empty());
        // Parts that nobody asked for are dropped.
        inquirer.take(part(7, 10));
        assert!(lock(&inquirer.waiting).is_empty());
    }
}
