//! Questions that agents answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use taffrail_agent::{AgentSettings, AnswerParts, AnswerQuestions, Answering, AskedQuestion};
use taffrail_api::agent_protocol::{AnswerFault, QuestionKind};
use taffrail_api::logs::{LogEvent, LogsQuestion};
use taffrail_api::operations::{
    OperationEvent, OperationPlan, OperationQuestion, OperationTarget, RunRequest, UncertainWrite, WriteTrace,
};
use taffrail_api::question::{ClustersView, QuestionError, ViewAnswer, ViewQuestion};
use taffrail_api::report::{ClusterReport, Content};
use taffrail_hub::{AskError, LogBounds};
use tempfile::TempDir;

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
    fn answer(&self, asked: AskedQuestion, parts: AnswerParts) -> Answering {
        let (answer, running) = (self.answer.clone(), Arc::clone(&self.running));
        running.fetch_add(1, Ordering::SeqCst);
        let running = Running(running);
        Box::pin(async move {
            let _running = running;
            match (asked.kind, answer) {
                (_, None) => std::future::pending().await,
                (_, Some(Err(fault))) => Err(fault),
                (QuestionKind::View, Some(Ok(answer))) => {
                    let _: ViewQuestion = serde_json::from_slice(&asked.question).unwrap();
                    parts.send_whole(&answer).await
                }
                (_, Some(Ok(answer))) => parts.send(&answer).await,
            }
        })
    }
}

/// A hub, and an agent that answers as a test says and has read its cluster.
struct Asked {
    hub: TestHub,
    _agent: TestAgent,
    _folder: TempDir,
    running: Arc<AtomicUsize>,
}

impl Asked {
    async fn start(answer: Option<Result<Vec<u8>, AnswerFault>>, allows_actions: bool) -> Asked {
        let hub = TestHub::start().await;
        let folder = tempfile::tempdir().unwrap();
        let running = Arc::new(AtomicUsize::new(0));
        let answerer = Arc::new(Scripted { answer, running: Arc::clone(&running) });
        let token = Some(hub.token(None, 3600).await);
        let settings = hub.settings(folder.path(), "uid-1", "eu-1");
        let settings = AgentSettings { token, allows_actions, ..settings };
        let mut agent = TestAgent::answering(settings, Some(answerer));
        agent.connected().await;
        let question = ViewQuestion::Clusters(ClustersView::default());
        let early = hub.agents.ask("eu-1", &question, Duration::from_secs(2)).await;
        assert!(
            matches!(early, Err(AskError::OfAgent { why, .. }) if why.contains("not read its cluster yet"))
        );
        agent.open().await;
        let facts = ClusterReport { id: Some("uid-1".to_owned()), ..ClusterReport::default() };
        agent.report(Content::Cluster { facts: Box::new(facts), errors: Vec::new() }).await;
        hub.until(|_| hub.index.identities().contains_key("eu-1")).await;
        Asked { hub, _agent: agent, _folder: folder, running }
    }

    /// Waits until no work goes on for an answer.
    async fn until_idle(&self) {
        let ended = async {
            while self.running.load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(LONG, ended).await.expect("the agent goes on");
    }
}

/// Asks an agent that answers as `answer` says, and returns what the hub returns.
async fn ask(answer: Option<Result<Vec<u8>, AnswerFault>>) -> Result<ViewAnswer, AskError> {
    let asked = Asked::start(answer, false).await;
    let question = ViewQuestion::Clusters(ClustersView::default());
    let answer = asked.hub.agents.ask("eu-1", &question, Duration::from_secs(2)).await;
    // Whether it was answered or not.
    asked.until_idle().await;
    let unknown = asked.hub.agents.ask("eu-2", &question, Duration::from_secs(2)).await;
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

fn lines(events: &[Value]) -> Option<Result<Vec<u8>, AnswerFault>> {
    Some(Ok(events.iter().map(|event| format!("{event}\n")).collect::<String>().into_bytes()))
}

const BOUNDS: LogBounds = LogBounds { patience: Duration::from_secs(20), bytes: 1 << 20 };

/// Returns the events that a hub gets of logs in the cluster of an agent that sends these.
async fn logs_of(events: &[Value], follow: bool) -> Vec<LogEvent> {
    let asked = Asked::start(lines(events), false).await;
    let question = LogsQuestion { what: "shop".to_owned(), follow, ..LogsQuestion::default() };
    let mut answer = asked.hub.agents.logs("eu-1", &question, BOUNDS).await.unwrap();
    let mut told = Vec::new();
    while let Some(event) = answer.next().await {
        told.push(event);
    }
    asked.until_idle().await;
    told
}

#[tokio::test]
async fn logs_come_line_by_line_and_are_of_the_agents_cluster_alone() {
    let subject = |cluster: &str| {
        json!({"event": "logs", "subjects": [{"cluster": cluster, "namespace": "shop", "pod": "web",
            "container": "web", "status": "Failed"}]})
    };
    let text = "x".repeat(100_000);
    let line = json!({"event": "lines", "log": 0, "leftOut": 0, "lines": [{"text": text}]});
    let done = json!({"event": "done"});
    for follow in [false, true] {
        let told = logs_of(&[subject("eu-1"), line.clone(), done.clone()], follow).await;
        assert!(
            matches!(&told[..], [LogEvent::Logs { .. }, LogEvent::Lines { lines, .. }, LogEvent::Done]
            if lines[0].text == text),
            "{told:?}"
        );
        // What is of another cluster, or no event, ends the answer, which then is not whole.
        let told = logs_of(&[line.clone(), subject("us-1"), done.clone()], follow).await;
        assert!(matches!(&told[..], [LogEvent::Lines { .. }]), "{told:?}");
        let told = logs_of(&[line.clone(), json!({"event": "later"}), done.clone()], follow).await;
        assert!(matches!(&told[..], [LogEvent::Lines { .. }]), "{told:?}");
    }
}

#[tokio::test]
async fn logs_that_nobody_reads_any_more_end_at_the_agent() {
    let asked = Asked::start(None, false).await;
    let question = LogsQuestion { what: "shop".to_owned(), follow: true, ..LogsQuestion::default() };
    let bounds = LogBounds { patience: Duration::from_millis(500), ..BOUNDS };
    let late = asked.hub.agents.logs("eu-1", &question, bounds).await;
    assert!(matches!(late, Err(AskError::Late)), "{late:?}");
    asked.until_idle().await;
}

pub(crate) fn suspend() -> OperationQuestion {
    serde_json::from_value(json!({"verb": "suspend", "names": ["shop"]})).unwrap()
}

#[tokio::test]
async fn an_agent_that_does_not_allow_operations_is_asked_for_none() {
    let asked = Asked::start(lines(&[]), false).await;
    let planned = asked.hub.agents.plan("eu-1", suspend(), None, Duration::from_secs(2)).await;
    let Err(AskError::Invalid(why)) = planned else { panic!("{planned:?}") };
    assert_eq!(why, "its agent runs no operations, as it was started without --allow-actions: cluster eu-1");
}

#[tokio::test]
async fn a_plan_for_another_cluster_is_not_believed() {
    let item = |cluster: &str| {
        let app = json!({"home": cluster, "target": cluster, "delivery": "flux-kustomization",
            "namespace": "flux-system", "name": "shop"});
        json!({"cluster": "eu-1", "target": app, "writes": [], "warnings": [], "unchanged": ""})
    };
    for (cluster, is_believed) in [("eu-1", true), ("us-1", false)] {
        let mut plan = json!({"operation": "suspend", "items": [item(cluster)], "refused": []});
        let typed: OperationPlan<OperationTarget> = serde_json::from_value(plan.clone()).unwrap();
        let fleet = json!({"now": "2026-03-01T00:00:00Z", "clusters": 1});
        plan = json!({"fleet": fleet, "plannedAt": "2026-03-01T00:00:00Z", "digest": typed.digest(),
            "plan": plan, "errors": []});
        let asked = Asked::start(Some(Ok(plan.to_string().into_bytes())), true).await;
        let planned = asked.hub.agents.plan("eu-1", suspend(), None, Duration::from_secs(2)).await;
        assert_eq!(planned.is_ok(), is_believed, "{planned:?}");
    }
}

/// Returns writes whose results are not known, each of so many bytes.
pub(crate) fn uncertain(count: usize, bytes: usize) -> Vec<UncertainWrite> {
    let object = json!({"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web"});
    let change = json!({"create": {"body": {"text": "x".repeat(bytes)}}});
    let write = json!({"object": object, "change": change, "lines": []});
    let write = json!({"cluster": "eu-1", "write": write, "since": "2026-03-01T00:00:00Z"});
    vec![serde_json::from_value(write).unwrap(); count]
}

pub(crate) fn run_request() -> RunRequest {
    let plan = json!({"operation": "suspend", "items": [], "refused": []});
    let plan: OperationPlan<OperationTarget> = serde_json::from_value(plan).unwrap();
    let request = json!({"id": "0123456789abcdef0", "question": suspend(), "plannedAt": "2026-03-01T00:00:00Z",
        "digest": plan.digest(), "timeoutMillis": 60_000});
    serde_json::from_value(request).unwrap()
}

#[tokio::test]
async fn what_writes_left_is_told_for_each_of_them() {
    let patience = Duration::from_secs(20);
    let answer = json!([["made", ""], ["unread", "forbidden"]]).to_string().into_bytes();
    // Also by an agent that runs no operations any more.
    let asked = Asked::start(Some(Ok(answer)), false).await;
    let traces = asked.hub.agents.trace("eu-1", &uncertain(2, 10), patience).await.unwrap();
    assert_eq!(traces, [(WriteTrace::Made, String::new()), (WriteTrace::Unread, "forbidden".to_owned())]);
    let traces = asked.hub.agents.trace("eu-1", &uncertain(3, 10), patience).await;
    assert!(
        matches!(&traces, Err(AskError::OfAgent { why, .. }) if why.contains("each write")),
        "{traces:?}"
    );
    // One that is too long for a message ends no session.
    let traces = asked.hub.agents.trace("eu-1", &uncertain(20, 30_000), patience).await;
    assert!(matches!(&traces, Err(AskError::Invalid(why)) if why.contains("511 KiB")), "{traces:?}");
    assert!(asked.hub.agents.trace("eu-1", &uncertain(2, 200_000), patience).await.is_ok());
}

/// Runs an operation at an agent that answers as `answer` says; returns the events, and the error of the run.
async fn run(answer: Option<Result<Vec<u8>, AnswerFault>>) -> (Vec<OperationEvent>, Result<(), AskError>) {
    let asked = Asked::start(answer, true).await;
    let mut told = Vec::new();
    let take = |event| {
        told.push(event);
        true
    };
    let ended = asked.hub.agents.run("eu-1", &run_request(), take).await;
    asked.until_idle().await;
    (told, ended)
}

#[tokio::test]
async fn events_that_a_later_agent_tells_end_no_run() {
    let begins = json!({"event": "begins", "item": 0});
    let later = json!({"event": "rested", "for": [1]});
    let (told, ended) = run(lines(&[begins.clone(), later, begins.clone()])).await;
    assert_eq!((told.len(), ended.is_ok()), (2, true), "{told:?}");
    // What has the name of an event is one.
    let (told, _) = run(lines(&[begins.clone(), json!({"event": "begins"}), begins])).await;
    assert_eq!(told.len(), 1, "{told:?}");
}

#[tokio::test]
async fn a_run_that_does_not_begin_tells_why() {
    let (told, ended) = run(Some(Err(AnswerFault::Failed("no".to_owned())))).await;
    assert!(
        told.is_empty() && matches!(&ended, Err(AskError::OfAgent { why, .. }) if why == "no"),
        "{ended:?}"
    );
    let asked = Asked::start(lines(&[]), false).await;
    let ended = asked.hub.agents.run("eu-2", &run_request(), |_| true).await;
    assert!(matches!(ended, Err(AskError::Unconnected(_))), "{ended:?}");
    let ended = asked.hub.agents.run("eu-1", &run_request(), |_| true).await;
    assert!(matches!(ended, Err(AskError::Invalid(_))), "{ended:?}");
}
