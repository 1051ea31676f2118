//! Revocation, absence, and certificates that expire.

use std::time::{Duration, Instant};

use serde_json::Value;
use taffrail_agent::{AgentError, AgentEvent, AgentSettings};
use taffrail_api::agent_protocol::KeyHash;
use taffrail_api::report::SourceMessage;
use taffrail_apps::ClusterId;
use taffrail_hub::store::{Store as _, TokenHash};

use crate::hub::{TestAgent, TestHub, edit};
use crate::reporting::report_one_app;

#[tokio::test]
async fn revocation_ends_the_stream_and_the_agent() {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut agent = hub.enrolled(folder.path(), "uid-1", "eu-1").await;
    report_one_app(&mut agent, "uid-1").await;
    let revoked = hub.store.revoke_agents("eu-1".to_owned(), jiff::Timestamp::now()).await.unwrap();
    assert_eq!(revoked, 1);
    let begun = Instant::now();
    let error = agent.error().await;
    assert!(matches!(&error, AgentError::Refused(reason) if reason == "the agent was revoked"), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    // Nor does it come back, but with a new token it gets another key.
    let error = TestAgent::start(hub.settings(folder.path(), "uid-1", "eu-1")).error().await;
    assert!(matches!(error, AgentError::Refused(_)), "{error:?}");
    assert_eq!(hub.store.revoke_agents("eu-1".to_owned(), jiff::Timestamp::now()).await.unwrap(), 0);
    let token = Some(hub.token(Some("eu-1"), 3600).await);
    let settings = AgentSettings { token, ..hub.settings(folder.path(), "uid-1", "eu-1") };
    TestAgent::start(settings).connected().await;
    // A token that is not needed is not used.
    let token = hub.token(Some("eu-1"), 3600).await;
    let settings =
        AgentSettings { token: Some(token.clone()), ..hub.settings(folder.path(), "uid-1", "eu-1") };
    TestAgent::start(settings).connected().await;
    let kept = hub.store.enrolment(TokenHash::of(&token.token)).await.unwrap().unwrap();
    assert_eq!(kept.used, None);
}

#[tokio::test]
async fn an_agent_that_the_hub_does_not_know_is_refused() {
    let (hub, other) = (TestHub::start().await, TestHub::start().await);
    let folder = tempfile::tempdir().unwrap();
    drop(other.enrolled(folder.path(), "uid-1", "eu-1").await);
    let settings = hub.settings(folder.path(), "uid-1", "eu-1");
    // It trusts this hub, but its certificate is of another authority.
    let pins: Vec<String> = hub.store.pins().await.unwrap().iter().map(KeyHash::to_string).collect();
    edit(&settings.file, |saved| {
        saved["pins"] = pins.into();
        saved["expires"] = Value::Null;
    });
    let error = TestAgent::start(settings).error().await;
    assert!(matches!(&error, AgentError::Refused(reason) if reason.contains("does not know")), "{error:?}");
}

#[tokio::test]
async fn an_identity_is_of_one_cluster() {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    drop(hub.enrolled(folder.path(), "uid-1", "eu-1").await);
    let error = TestAgent::start(hub.settings(folder.path(), "uid-2", "eu-1")).error().await;
    assert!(matches!(error, AgentError::OtherCluster { .. }), "{error:?}");
    // An agent that lies about it is refused by the hub.
    let settings = hub.settings(folder.path(), "uid-2", "eu-1");
    edit(&settings.file, |saved| saved["cluster"] = "uid-2".into());
    let error = TestAgent::start(settings).error().await;
    assert!(matches!(&error, AgentError::Refused(reason) if reason.contains("another cluster")), "{error:?}");
}

#[tokio::test]
async fn agents_that_were_away_renew_their_certificates_for_90_days() {
    for (days, is_known) in [(3, true), (89, true), (91, false)] {
        let hub = TestHub::start().await;
        let folder = tempfile::tempdir().unwrap();
        // TLS looks at the clock of the machine, so the past is that of the enrolment.
        hub.wait_days(-days);
        let token = Some(hub.token(None, 3600).await);
        let settings = AgentSettings { token, ..hub.settings(folder.path(), "uid-1", "eu-1") };
        assert!(matches!(TestAgent::start(settings).event().await, AgentEvent::Enrolled { .. }));
        hub.wait_days(days);
        // By the clock of the agent its certificate has expired, too.
        let settings = hub.settings(folder.path(), "uid-1", "eu-1");
        let saved = settings.file.read().unwrap().unwrap();
        edit(&settings.file, |saved| saved["expires"] = "1970-01-01T00:00:00Z".into());
        let file = settings.file.clone();
        let mut agent = TestAgent::start(settings);
        if is_known {
            // The first session renews, and the next one shows the certificate.
            assert!(!agent.connected().await, "{days} days");
            let renewed = file.read().unwrap().unwrap();
            assert!(renewed.certificate != saved.certificate && renewed.expires > saved.expires);
        } else {
            let error = agent.error().await;
            assert!(matches!(&error, AgentError::Refused(reason) if reason.contains("90 days")), "{error:?}");
        }
    }
}

#[tokio::test]
async fn two_agents_of_one_cluster_settle() {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut first = hub.enrolled(folder.path(), "uid-1", "eu-1").await;
    report_one_app(&mut first, "uid-1").await;
    // As a Pod that was moved, while the old one still runs.
    let mut second = TestAgent::start(hub.settings(folder.path(), "uid-1", "eu-1"));
    second.connected().await;
    first.waits().await;
    second.open().await;
    // The old one asks again, and does not take over; the new one stays.
    first.waits().await;
    report_one_app(&mut second, "uid-1").await;
    hub.until(|view| view.fleet().pairs() == 1).await;
    // Once the new one is gone, the old one goes on, and takes the place of nobody but another later one.
    drop(second);
    first.connected().await;
    let mut third = TestAgent::start(hub.settings(folder.path(), "uid-1", "eu-1"));
    third.connected().await;
    first.waits().await;
}

#[tokio::test]
async fn another_cluster_at_the_same_address_ends_the_agent_and_changes_nothing() {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut agent = hub.enrolled(folder.path(), "uid-1", "eu-1").await;
    report_one_app(&mut agent, "uid-1").await;
    hub.until(|view| view.fleet().pairs() == 1).await;
    // As a reporter tells that the cluster has another identity now.
    agent.send(SourceMessage::Close(ClusterId("uid-1".to_owned()))).await;
    agent.send(SourceMessage::Open(ClusterId("uid-2".to_owned()))).await;
    let error = agent.error().await;
    assert!(matches!(error, AgentError::OtherCluster { .. }), "{error:?}");
    assert_eq!(hub.index.view().fleet().pairs(), 1);
}
