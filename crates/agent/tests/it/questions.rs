//! Questions that agents answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use taffrail_agent::{AgentSettings, AnswerQuestions, Answering};
use taffrail_api::agent_protocol::AnswerFault;
use taffrail_api::question::{ClustersView, QuestionError, ViewAnswer, ViewQuestion};
use taffrail_api::report::{ClusterReport, Content};
use taffrail_hub::AskError;

use crate::hub::{LONG, TestAgent, TestHub};

/// Answers each question with the same JSON, or never.
struct Scripted {
    answer: Option<Result<Vec<u8>, AnswerFault>>,
    /// The number of questions that are being answered.
    running: Arc<AtomicUsize>,
}

/// Counts a question as long as it lives.
struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl AnswerQuestions for Scripted {
    fn answer(&self, question: Vec<u8>, _patience: Duration) -> Answering {
        let (answer, running) = (self.answer.clone(), Arc::clone(&self.running));
        running.fetch_add(1, Ordering::SeqCst);
        let running = Running(running);
        Box::pin(async move {
            let _running = running;
            let _: ViewQuestion = serde_json::from_slice(&question).unwrap();
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }
}

/// Asks an agent that answers as `answer` says, and returns what the hub returns.
async fn ask(answer: Option<Result<Vec<u8>, AnswerFault>>) -> Result<ViewAnswer, AskError> {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let running = Arc::new(AtomicUsize::new(0));
    let answerer = Arc::new(Scripted { answer, running: Arc::clone(&running) });
    let token = Some(hub.token(None, 3600).await);
    let settings = AgentSettings { token, ..hub.settings(folder.path(), "uid-1", "eu-1") };
    let mut agent = TestAgent::answering(settings, Some(answerer));
    agent.connected().await;
    let question = ViewQuestion::Clusters(ClustersView::default());
    let early = hub.agents.ask("eu-1", &question, Duration::from_secs(2)).await;
    assert!(matches!(early, Err(AskError::OfAgent { why, .. }) if why.contains("not read its cluster yet")));
    agent.open().await;
    let facts = ClusterReport { id: Some("uid-1".to_owned()), ..ClusterReport::default() };
    agent.report(Content::Cluster { facts: Box::new(facts), errors: Vec::new() }).await;
    hub.until(|_| hub.index.identities().contains_key("eu-1")).await;
    let answer = hub.agents.ask("eu-1", &question, Duration::from_secs(2)).await;
    // Whether it was answered or not, no work goes on for it.
    let ended = async {
        while running.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, ended).await.expect("the agent goes on");
    let unknown = hub.agents.ask("eu-2", &question, Duration::from_secs(2)).await;
    assert!(matches!(unknown, Err(AskError::Unconnected(name)) if name == "eu-2"));
    answer
}

fn answer(items: Value) -> Option<Result<Vec<u8>, AnswerFault>> {
    let fleet = json!({"now": "2026-03-01T00:00:00Z", "clusters": 1});
    let padding = "x".repeat(200_000);
    let answer = json!({"fleet": fleet, "items": items, "isWell": true, "padding": padding});
    Some(Ok(serde_json::to_vec(&answer).unwrap()))
}

#[tokio::test]
async fn an_answer_comes_in_parts_as_it_was_given() {
    let Ok(ViewAnswer::Clusters(answer)) = ask(answer(json!([]))).await else { panic!() };
    assert!(answer.is_well && answer.items.is_empty());
}

#[tokio::test]
async fn an_agent_that_speaks_of_another_cluster_is_not_believed() {
    let row = json!({"name": "us-1", "cluster": "us-1"});
    let Err(AskError::OfAgent { cluster, why }) = ask(answer(json!([row]))).await else { panic!() };
    assert_eq!((&*cluster, &*why), ("eu-1", "its answer is about another cluster, 'us-1'"));
}

#[tokio::test]
async fn faults_of_the_question_come_back_and_others_name_the_agent() {
    let error = QuestionError::UnknownCluster { name: "x".to_owned(), known: Vec::new() };
    let answered = ask(Some(Err(AnswerFault::Question(error.clone())))).await;
    assert!(matches!(answered, Err(AskError::Question(found)) if found == error));
    let answered = ask(Some(Err(AnswerFault::Failed("no".to_owned())))).await;
    assert!(matches!(answered, Err(AskError::OfAgent { why, .. }) if why == "no"));
    for garbage in [&b"{"[..], b"{}", b"[]"] {
        let answered = ask(Some(Ok(garbage.to_vec()))).await;
        assert!(matches!(answered, Err(AskError::OfAgent { .. })), "{garbage:?}");
    }
}

#[tokio::test]
async fn a_question_that_is_not_answered_in_time_is_cancelled() {
    assert!(matches!(ask(None).await, Err(AskError::Late)));
}
