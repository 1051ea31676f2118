//! Answers to questions of the hub, which are given from the cluster.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use taffrail_api::agent_protocol::{AgentMessage, Answer, AnswerFault, MAX_MESSAGE, Question, agent_message};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// Maximum number of questions that are answered at one time; further ones are refused.
const MAX_AT_ONCE: usize = 32;

/// Maximum length of an answer, in bytes; a longer one is refused.
const MAX_ANSWER: usize = 16 << 20;

/// The length of a part of an answer, in bytes.
const PART: usize = MAX_MESSAGE / 2;

/// The future of an answer: as JSON, or the reason why there is none.
pub type Answering = Pin<Box<dyn Future<Output = Result<Vec<u8>, AnswerFault>> + Send>>;

/// Answers questions of views about the cluster.
pub trait AnswerQuestions: Send + Sync {
    /// Returns a future that answers a question, which is the body of `POST /api/v1/questions`, within `patience`.
    /// Dropping it ends the work for the answer.
    fn answer(&self, question: Vec<u8>, patience: Duration) -> Answering;
}

/// The way in which an agent answers.
pub(crate) struct Answers {
    answerer: Option<Arc<dyn AnswerQuestions>>,
    /// True once it is known that the cluster at the address is that of the agent.
    is_allowed: Arc<AtomicBool>,
}

/// The answers of one session that are under way; the work for them ends when this is dropped.
pub(crate) struct AnswersOfSession {
    answerer: Option<Arc<dyn AnswerQuestions>>,
    is_allowed: Arc<AtomicBool>,
    outbox: mpsc::Sender<AgentMessage>,
    tasks: JoinSet<()>,
    running: HashMap<u64, AbortHandle>,
}

impl Answers {
    pub(crate) fn new(answerer: Option<Arc<dyn AnswerQuestions>>) -> Answers {
        Answers { answerer, is_allowed: Arc::default() }
    }

    /// Allows answers, now that the cluster has told who it is.
    pub(crate) fn allow(&self) {
        self.is_allowed.store(true, Ordering::Release);
    }

    /// Begins a session, whose answers go to `outbox`.
    pub(crate) fn session(&self, outbox: mpsc::Sender<AgentMessage>) -> AnswersOfSession {
        let (answerer, is_allowed) = (self.answerer.clone(), Arc::clone(&self.is_allowed));
        AnswersOfSession { answerer, is_allowed, outbox, tasks: JoinSet::new(), running: HashMap::new() }
    }
}

impl AnswersOfSession {
    /// Begins to answer a question.
    pub(crate) fn begin(&mut self, question: Question) {
        while self.tasks.try_join_next().is_some() {}
        self.running.retain(|_, task| !task.is_finished());
        let Question { id, question, patience_millis } = question;
        let is_room = self.running.len() < MAX_AT_ONCE;
        let is_allowed = self.is_allowed.load(Ordering::Acquire);
        let (answerer, outbox) =
            (self.answerer.clone().filter(|_| is_room && is_allowed), self.outbox.clone());
        let task = self.tasks.spawn(async move {
            let patience = Duration::from_millis(patience_millis.into());
            let answered = match answerer {
                None if !is_room => {
                    Err(AnswerFault::Failed("the agent answers as many other questions as it may".to_owned()))
                }
                None if !is_allowed => {
                    Err(AnswerFault::Failed("the agent has not read its cluster yet".to_owned()))
                }
                None => Err(AnswerFault::Failed("the agent answers no questions".to_owned())),
                Some(answerer) => answerer.answer(question, patience).await,
            };
            let answered = answered.and_then(|answer| match answer.len() > MAX_ANSWER {
                true => Err(AnswerFault::Failed("the answer is too long".to_owned())),
                false => Ok(answer),
            });
            let send = async |part: &[u8], is_last, error| {
                let answer = Answer { id, part: part.to_vec(), is_last, error };
                let message = AgentMessage { message: Some(agent_message::Message::Answer(answer)) };
                outbox.send(message).await
            };
            match answered {
                Err(fault) => drop(send(&[], true, fault.to_string()).await),
                Ok(answer) => {
                    let mut parts = answer.chunks(PART).peekable();
                    while let Some(part) = parts.next() {
                        // A session that has ended needs no answer.
                        if send(part, parts.peek().is_none(), String::new()).await.is_err() {
                            return;
                        }
                    }
                }
            }
        });
        self.running.insert(id, task);
    }

    /// Ends the work for an answer that nobody waits for.
    pub(crate) fn cancel(&mut self, id: u64) {
        if let Some(task) = self.running.remove(&id) {
            task.abort();
        }
    }
}
