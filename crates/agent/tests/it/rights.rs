//! Revocation, absence, and certificates that expire.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use serde_json::Value;
use taffrail_agent::{AgentError, AgentEvent, AgentSettings, Identity, KeepError, KeepIdentity};
use taffrail_api::agent_protocol::KeyHash;
use taffrail_api::report::SourceMessage;
use taffrail_apps::ClusterId;
use taffrail_hub::store::{Store as _, TokenHash};

use crate::hub::{TestAgent, TestHub, edit, saved};
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
    edit(folder.path(), |saved| {
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
    edit(folder.path(), |saved| saved["cluster"] = "uid-2".into());
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
        let before = saved(folder.path()).await;
        edit(folder.path(), |saved| saved["expires"] = "1970-01-01T00:00:00Z".into());
        let mut agent = TestAgent::start(settings);
        if is_known {
            // The first session renews, and the next one shows the certificate.
            assert!(!agent.connected().await, "{days} days");
            let renewed = saved(folder.path()).await;
            assert!(renewed.certificate != before.certificate && renewed.expires > before.expires);
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

/// A place that keeps an identity in memory, and takes another one only while it may.
#[derive(Debug, Default)]
struct Keeper {
    kept: Mutex<Option<Vec<u8>>>,
    fails: AtomicBool,
}

impl KeepIdentity for Keeper {
    fn place(&self) -> String {
        "memory".to_owned()
    }

    fn read(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, KeepError>> {
        ready(Ok(self.kept.lock().unwrap().clone())).boxed()
    }

    fn write<'k>(&'k self, identity: &'k [u8]) -> BoxFuture<'k, Result<(), KeepError>> {
        let fails = self.fails.load(Ordering::Relaxed);
        let written = if fails { Err("it is full".into()) } else { Ok(()) };
        if !fails {
            *self.kept.lock().unwrap() = Some(identity.to_vec());
        }
        ready(written).boxed()
    }
}

#[tokio::test]
async fn an_agent_reports_though_its_new_certificate_cannot_be_saved() {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let keeper = Arc::new(Keeper::default());
    let settings = || AgentSettings {
        keeper: Arc::clone(&keeper) as Arc<dyn KeepIdentity>,
        ..hub.settings(folder.path(), "uid-1", "eu-1")
    };
    let token = Some(hub.token(None, 3600).await);
    TestAgent::start(AgentSettings { token, ..settings() }).connected().await;
    let mut old: Value = serde_json::from_slice(&keeper.read().await.unwrap().unwrap()).unwrap();
    old["expires"] = "1970-01-01T00:00:00Z".into();
    *keeper.kept.lock().unwrap() = Some(serde_json::to_vec(&old).unwrap());

    keeper.fails.store(true, Ordering::Relaxed);
    let mut agent = TestAgent::start(settings());
    let AgentEvent::NotSaved { reason } = agent.event().await else { panic!("it was saved") };
    assert_eq!(reason, "cannot save the identity of the agent in memory: it is full");
    agent.connected().await;
    report_one_app(&mut agent, "uid-1").await;
    hub.until(|view| view.fleet().pairs() == 1).await;
    drop(agent);

    // What was not saved is got again.
    keeper.fails.store(false, Ordering::Relaxed);
    TestAgent::start(settings()).connected().await;
    let renewed = Identity::read(&*keeper).await.unwrap().unwrap();
    assert!(renewed.expires > Some(jiff::Timestamp::now()), "{renewed:?}");
}
