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
use taffrail_cluster::{BootClock, Moment};
use tokio::sync::{mpsc, watch};
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
    /// The number of operations that run.
    runs: watch::Sender<usize>,
}

/// The reasons why the agent refuses operations in a session; `None` for what it does not refuse.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Refusals {
    /// Operations, and their plans.
    pub(crate) operations: Option<&'static str>,
    /// The search for what operations wrote.
    pub(crate) traces: Option<&'static str>,
}

/// Counts an operation as long as it runs.
struct Run(watch::Sender<usize>);

impl Run {
    fn begin(runs: &watch::Sender<usize>) -> Run {
        runs.send_modify(|count| *count += 1);
        Run(runs.clone())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// The answers of one session that are under way; the work for them ends when this is dropped.
pub(crate) struct AnswersOfSession {
    answerer: Option<Arc<dyn AnswerQuestions>>,
    is_allowed: Arc<AtomicBool>,
    refusals: Refusals,
    runs: watch::Sender<usize>,
    /// The moment at which the hub's welcome came.
    clock: BootClock,
    welcomed: Moment,
    outbox: mpsc::Sender<AgentMessage>,
    tasks: JoinSet<()>,
    running: HashMap<u64, AbortHandle>,
}

impl Answers {
    pub(crate) fn new(answerer: Option<Arc<dyn AnswerQuestions>>) -> Answers {
        Answers { answerer, is_allowed: Arc::default(), runs: watch::Sender::default() }
    }

    /// Allows answers, now that the cluster has told who it is.
    pub(crate) fn allow(&self) {
        self.is_allowed.store(true, Ordering::Release);
    }

    /// Begins a session that the hub has welcomed now, and whose answers go to `outbox`.
    pub(crate) fn session(&self, outbox: mpsc::Sender<AgentMessage>, refusals: Refusals) -> AnswersOfSession {
        let clock = BootClock::default();
        AnswersOfSession {
            answerer: self.answerer.clone(),
            is_allowed: Arc::clone(&self.is_allowed),
            refusals,
            runs: self.runs.clone(),
            welcomed: clock.now(),
            clock,
            outbox,
            tasks: JoinSet::new(),
            running: HashMap::new(),
        }
    }

    /// Waits until no operation runs.
    pub(crate) async fn until_no_run(&self) {
        drop(self.runs.subscribe().wait_for(|runs| *runs == 0).await);
    }
}

impl AnswersOfSession {
    /// Begins to answer a question.
    pub(crate) fn begin(&mut self, asked: Question) {
        while self.tasks.try_join_next().is_some() {}
        self.running.retain(|_, task| !task.is_finished());
        let (id, kind) = (asked.id, QuestionKind::try_from(asked.kind));
        let patience = Duration::from_millis(asked.patience_millis.into());
        // Nobody waits for what comes after its time, least of all for an operation.
        let late = asked.sent_millis.map(|sent| {
            let passed = self.clock.now().since(self.welcomed);
            passed.saturating_sub(Duration::from_millis(sent))
        });
        let patience = patience.saturating_sub(late.unwrap_or_default());
        let answerer = self.answerer_of(kind.ok());
        let run = matches!(answerer, Ok((_, QuestionKind::Run))).then(|| Run::begin(&self.runs));
        let parts = AnswerParts { id, outbox: self.outbox.clone() };
        let own = AnswerParts { id, outbox: self.outbox.clone() };
        let question = asked.question;
        let task = self.tasks.spawn(async move {
            let _run = run;
            let answered = match answerer {
                Ok(_) if patience.is_zero() => Err(AnswerFault::Late),
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
        let refusal = match kind {
            QuestionKind::Plan | QuestionKind::Run => self.refusals.operations,
            QuestionKind::Trace => self.refusals.traces,
            QuestionKind::View | QuestionKind::Logs | QuestionKind::Actions => None,
        };
        if let Some(why) = refusal {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers nothing, and counts what it is asked.
    #[derive(Default)]
    struct Silent(Arc<std::sync::Mutex<Vec<(QuestionKind, Duration)>>>);

    impl AnswerQuestions for Silent {
        fn answer(&self, question: AskedQuestion, _parts: AnswerParts) -> Answering {
            self.0.lock().unwrap().push((question.kind, question.patience));
            Box::pin(std::future::pending())
        }
    }

    const KINDS: [QuestionKind; 4] =
        [QuestionKind::View, QuestionKind::Plan, QuestionKind::Run, QuestionKind::Trace];

    fn question(kind: QuestionKind, sent_millis: Option<u64>) -> Question {
        let id = kind as u64;
        Question { id, question: Vec::new(), patience_millis: 10_000, kind: kind.into(), sent_millis }
    }

    /// Returns the error that is sent for each kind.
    async fn errors(refusals: Refusals) -> Vec<String> {
        let answers = Answers::new(None);
        answers.allow();
        let (outbox, mut sent) = mpsc::channel(16);
        let mut session = answers.session(outbox, refusals);
        let mut errors = Vec::new();
        for kind in KINDS {
            session.begin(question(kind, None));
            let Some(agent_message::Message::Answer(answer)) = sent.recv().await.unwrap().message else {
                panic!()
            };
            let AnswerFault::Failed(why) = AnswerFault::read(&answer.error) else { panic!() };
            errors.push(why);
        }
        errors
    }

    #[tokio::test]
    async fn operations_and_their_traces_are_refused_where_they_could_be_forged() {
        let none = "the agent answers no questions";
        assert_eq!(errors(Refusals::default()).await, [none; 4]);
        let forged = Refusals { operations: Some("forged"), traces: Some("forged") };
        assert_eq!(errors(forged).await, [none, "forged", "forged", "forged"]);
        let not_allowed = Refusals { operations: Some("off"), traces: None };
        assert_eq!(errors(not_allowed).await, [none, "off", "off", none]);
    }

    #[tokio::test]
    async fn a_question_that_comes_after_its_time_is_not_begun() {
        let silent = Silent::default();
        let begun = Arc::clone(&silent.0);
        let answers = Answers::new(Some(Arc::new(silent)));
        answers.allow();
        let (outbox, mut sent) = mpsc::channel(16);
        let mut session = answers.session(outbox, Refusals::default());
        session.clock.sleep(Duration::from_secs(100));
        // It was sent 11 s ago, as both sides count from the welcome.
        session.begin(question(QuestionKind::Run, Some(89_000)));
        let Some(agent_message::Message::Answer(answer)) = sent.recv().await.unwrap().message else {
            panic!()
        };
        assert_eq!(AnswerFault::read(&answer.error), AnswerFault::Late);
        assert!(begun.lock().unwrap().is_empty());
        // What is on time has the rest of its time; an earlier hub does not tell when it asked.
        for (sent, left) in [(Some(96_000), 4..=6), (Some(500_000), 10..=10), (None, 10..=10)] {
            session.begin(question(QuestionKind::Run, sent));
            while begun.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            let (_, patience) = begun.lock().unwrap().remove(0);
            assert!(left.contains(&patience.as_secs()), "{sent:?}: {patience:?}");
            session.cancel(QuestionKind::Run as u64);
        }
    }

    #[tokio::test]
    async fn the_end_of_all_operations_can_be_awaited() {
        let answers = Answers::new(Some(Arc::new(Silent::default())));
        answers.allow();
        answers.until_no_run().await;
        let (outbox, _sent) = mpsc::channel(16);
        let mut session = answers.session(outbox, Refusals::default());
        session.begin(question(QuestionKind::View, None));
        answers.until_no_run().await;
        session.begin(question(QuestionKind::Run, None));
        let mut waits = std::pin::pin!(answers.until_no_run());
        assert!(futures::poll!(&mut waits).is_pending());
        session.cancel(QuestionKind::Run as u64);
        waits.await;
        // A session that ends ends its operations.
        session.begin(question(QuestionKind::Run, None));
        drop(session);
        answers.until_no_run().await;
    }
}
