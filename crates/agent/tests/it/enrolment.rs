//! Enrolment of agents, and the reasons for which the hub refuses it.

use serde_json::Value;
use taffrail_agent::{AgentError, AgentEvent, AgentSettings};
use taffrail_api::agent_protocol::{EnrolmentToken, KeyHash};

use crate::hub::{TestAgent, TestHub, edit, saved};
use crate::reporting::report_one_app;

/// Returns the hub's reason for refusing to enrol an agent.
async fn refused(settings: AgentSettings) -> String {
    match TestAgent::start(settings).error().await {
        AgentError::EnrolmentRefused(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_token_is_good_for_one_agent() {
    let hub = TestHub::start().await;
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let token = hub.token(None, 3600).await;
    let with_token = |folder: usize, uid: &str, name: &str| AgentSettings {
        token: Some(token.clone()),
        ..hub.settings(folders[folder].path(), uid, name)
    };
    // Two at once.
    let agents = [with_token(0, "uid-1", "eu-1"), with_token(1, "uid-2", "eu-2")].map(TestAgent::start);
    let [one, two] = agents;
    let outcome = async |mut agent: TestAgent| {
        tokio::select! {
            biased;
            event = agent.event() => matches!(event, AgentEvent::Enrolled { .. }).then_some(agent),
        }
    };
    let one = tokio::spawn(async move { outcome(one).await });
    let two = tokio::spawn(async move { outcome(two).await });
    let enrolled = [one.await.is_ok_and(|it| it.is_some()), two.await.is_ok_and(|it| it.is_some())];
    assert!(enrolled[0] != enrolled[1], "{enrolled:?}");
    // A third one later.
    let reason = refused(with_token(2, "uid-3", "eu-3")).await;
    assert!(reason.contains("unknown, used or expired"), "{reason}");
}

#[tokio::test]
async fn missing_unknown_and_expired_tokens_are_refused() {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let error = TestAgent::start(hub.settings(folder.path(), "uid-1", "eu-1")).error().await;
    assert!(matches!(error, AgentError::NotEnrolled), "{error:?}");
    let known = hub.token(None, 3600).await;
    let unknown = EnrolmentToken { token: "taffrail_x".to_owned(), ..known.clone() };
    let expired = hub.token(None, 0).await;
    for token in [unknown, expired] {
        let folder = tempfile::tempdir().unwrap();
        let settings = AgentSettings { token: Some(token), ..hub.settings(folder.path(), "uid-1", "eu-1") };
        let reason = refused(settings).await;
        assert!(reason.contains("unknown, used or expired"), "{reason}");
    }
    // An hour later the good one is none any more.
    hub.wait_days(1);
    let settings = AgentSettings { token: Some(known), ..hub.settings(folder.path(), "uid-1", "eu-1") };
    assert!(refused(settings).await.contains("expired"));
}

#[tokio::test]
async fn names_and_clusters_that_the_hub_knows_need_a_token_that_names_them() {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut first = hub.enrolled(folder.path(), "uid-1", "eu-1").await;
    report_one_app(&mut first, "uid-1").await;
    hub.until(|view| view.fleet().pairs() == 1).await;
    let enrol = async |uid: &str, name: &str, cluster: Option<&str>| {
        let folder = tempfile::tempdir().unwrap();
        let token = Some(hub.token(cluster, 3600).await);
        refused(AgentSettings { token, ..hub.settings(folder.path(), uid, name) }).await
    };
    // Another cluster under a known name, and a known cluster under another name, or under its own.
    let reason = enrol("uid-2", "eu-1", None).await;
    assert!(reason.contains("another cluster is listed as 'eu-1'"), "{reason}");
    let reason = enrol("uid-2", "whatever", Some("eu-1")).await;
    assert!(reason.contains("another cluster is listed as 'eu-1'"), "{reason}");
    for name in ["eu-1", "eu-9"] {
        let reason = enrol("uid-1", name, None).await;
        assert!(reason.contains("--agent --cluster eu-1"), "{reason}");
    }
    let reason = enrol("uid-1", "eu-9", Some("eu-9")).await;
    assert!(reason.contains("lists this cluster as 'eu-1'"), "{reason}");
    for name in ["", " ", "a\u{1b}[2J", &"x".repeat(600)] {
        assert!(enrol("uid-3", name, None).await.contains("name of the cluster"), "{name:?}");
    }
    // With a token for it, another agent takes the cluster over.
    let folder = tempfile::tempdir().unwrap();
    let token = Some(hub.token(Some("eu-1"), 3600).await);
    let mut second =
        TestAgent::start(AgentSettings { token, ..hub.settings(folder.path(), "uid-1", "eu-9") });
    assert_eq!(second.event().await, AgentEvent::Enrolled { name: "eu-1".to_owned() });
    second.connected().await;
    first.waits().await;
}

#[tokio::test]
async fn an_agent_enrols_only_at_the_hub_that_its_token_names() {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let token = hub.token(None, 3600).await;
    let foreign = EnrolmentToken { pins: vec![KeyHash([9; 32])], ..token.clone() };
    let settings = AgentSettings { token: Some(foreign), ..hub.settings(folder.path(), "uid-1", "eu-1") };
    let mut agent = TestAgent::start(settings);
    let AgentEvent::Disconnected { reason, .. } = agent.event().await else { panic!() };
    assert!(reason.contains("none of the certificates by which the agent recognises its hub"), "{reason}");
    drop(agent);
    // Nor at one with another name.
    let mut settings = AgentSettings { token: Some(token), ..hub.settings(folder.path(), "uid-1", "eu-1") };
    settings.hub.host = "127.0.0.1".to_owned();
    let AgentEvent::Disconnected { reason, .. } = TestAgent::start(settings).event().await else { panic!() };
    assert!(reason.contains("not valid for name"), "{reason}");
}

#[tokio::test]
async fn an_answer_that_got_lost_does_not_cost_the_token() {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let token = hub.token(None, 3600).await;
    let settings =
        || AgentSettings { token: Some(token.clone()), ..hub.settings(folder.path(), "uid-1", "eu-1") };
    let mut agent = TestAgent::start(settings());
    agent.connected().await;
    drop(agent);
    // As if the agent had ended before it had saved the answer.
    edit(folder.path(), |saved| {
        saved["certificate"] = "".into();
        saved["expires"] = Value::Null;
    });
    TestAgent::start(settings()).connected().await;
    assert!(!saved(folder.path()).await.certificate.is_empty());
}
