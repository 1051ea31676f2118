//! Answers to questions of the hub, which are given from the cluster.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use taffrail_api::agent_protocol::{
    AgentMessage, Answer, AnswerFault, MAX_MESSAGE, Question, QuestionKind, agent_message,
};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// Maximum number of questions that are answered at one time, followed logs among them; further ones are refused.
const MAX_AT_ONCE: usize = 48;

/// Maximum length of a whole answer, in bytes; a longer one is refused.
const MAX_ANSWER: usize = 16 << 20;

/// The length of a part of an answer, in bytes.
const PART: usize = MAX_MESSAGE / 2;

/// A question of the hub about the cluster.
#[derive(Debug)]
pub struct AskedQuestion {
    /// The kind of the question.
    pub kind: QuestionKind,
    /// The question, as JSON.
    pub question: Vec<u8>,
    /// The time within which the answer must come; that of logs and runs must begin in it.
    pub patience: Duration,
}

/// The future of an answer, which sends it, or returns the reason why there is none.
pub type Answering = Pin<Box<dyn Future<Output = Result<(), AnswerFault>> + Send>>;

/// Answers questions about the cluster.
pub trait AnswerQuestions: Send + Sync {
    /// Returns a future that answers a question. Dropping it ends the work for the answer.
    fn answer(&self, question: AskedQuestion, parts: AnswerParts) -> Answering;
}

/// The way of an answer to the hub.
#[derive(Debug)]
pub struct AnswerParts {
    id: u64,
    outbox: mpsc::Sender<AgentMessage>,
}

impl AnswerParts {
    /// Sends the whole answer.
    ///
    /// # Errors
    /// If it is longer than 16 MiB, or the session has ended.
    pub async fn send_whole(&self, answer: &[u8]) -> Result<(), AnswerFault> {
        if answer.len() > MAX_ANSWER {
            return Err(AnswerFault::Failed("the answer is too long".to_owned()));
        }
        self.send(answer).await
    }

    /// Sends the next bytes of the answer, and waits until there is room for them.
    ///
    /// # Errors
    /// If the session has ended.
    pub async fn send(&self, bytes: &[u8]) -> Result<(), AnswerFault> {
        for part in bytes.chunks(PART) {
            self.send_part(part.to_vec(), false, String::new()).await?;
        }
        Ok(())
    }

    async fn send_part(&self, part: Vec<u8>, is_last: bool, error: String) -> Result<(), AnswerFault> {
        let answer = Answer { id: self.id, part, is_last, error };
        let message = AgentMessage { message: Some(agent_message::Message::Answer(answer)) };
        let sent = self.outbox.send(message).await;
        sent.map_err(|_| AnswerFault::Failed("the session with the hub has ended".to_owned()))
    }

    async fn end(&self, answered: Result<(), AnswerFault>) {
        let error = answered.err().map(|fault| fault.to_string()).unwrap_or_default();
        // A session that has ended needs no answer.
        let _ = self.send_part(Vec::new(), true, error).await;
    }
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
    /// The reason why operations are refused; `None` if they are run.
    refuses_operations: Option<&'static str>,
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

    /// Begins a session, whose answers go to `outbox`, and which refuses operations for the given reason.
    pub(crate) fn session(
        &self,
        outbox: mpsc::Sender<AgentMessage>,
        refuses_operations: Option<&'static str>,
    ) -> AnswersOfSession {
        let (answerer, is_allowed) = (self.answerer.clone(), Arc::clone(&self.is_allowed));
        let (tasks, running) = (JoinSet::new(), HashMap::new());
        AnswersOfSession { answerer, is_allowed, refuses_operations, outbox, tasks, running }
    }
}

impl AnswersOfSession {
    /// Begins to answer a question.
    pub(crate) fn begin(&mut self, asked: Question) {
        while self.tasks.try_join_next().is_some() {}
        self.running.retain(|_, task| !task.is_finished());
        let (id, kind) = (asked.id, QuestionKind::try_from(asked.kind));
        let patience = Duration::from_millis(asked.patience_millis.into());
        let answerer = self.answerer_of(kind.ok());
        let parts = AnswerParts { id, outbox: self.outbox.clone() };
        let own = AnswerParts { id, outbox: self.outbox.clone() };
        let question = asked.question;
        let task = self.tasks.spawn(async move {
            let answered = match answerer {
                Ok((answerer, kind)) => {
                    answerer.answer(AskedQuestion { kind, question, patience }, parts).await
                }
                Err(why) => Err(AnswerFault::Failed(why.to_owned())),
            };
            own.end(answered).await;
        });
        self.running.insert(id, task);
    }

    /// Returns what answers a question of this kind, which is `None` for one of a later release.
    ///
    /// # Errors
    /// The reason why none does.
    fn answerer_of(
        &self,
        kind: Option<QuestionKind>,
    ) -> Result<(Arc<dyn AnswerQuestions>, QuestionKind), &'static str> {
        let kind = kind.ok_or("the agent is older than the hub, and does not know this question")?;
        if self.running.len() >= MAX_AT_ONCE {
            return Err("the agent answers as many other questions as it may");
        }
        if !self.is_allowed.load(Ordering::Acquire) {
            return Err("the agent has not read its cluster yet");
        }
        let is_operation = matches!(kind, QuestionKind::Plan | QuestionKind::Run);
        if let Some(why) = self.refuses_operations.filter(|_| is_operation) {
            return Err(why);
        }
        let answerer = self.answerer.clone().ok_or("the agent answers no questions")?;
        Ok((answerer, kind))
    }

    /// Ends the work for an answer that nobody waits for.
    pub(crate) fn cancel(&mut self, id: u64) {
        if let Some(task) = self.running.remove(&id) {
            task.abort();
        }
    }
}
