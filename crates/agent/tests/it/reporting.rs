//! Reports of agents, also after a connection broke.

use taffrail_agent::AgentEvent;
use taffrail_api::AppName;
use taffrail_api::report::{AppId, ClusterReport, Content, DeclaredHalf, Half, HalfBody, ObservedHalf};
use taffrail_apps::{ClusterId, Delivery, SyncState};
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use crate::hub::{TestAgent, TestHub};

/// Returns the halves of an app of `home` whose objects are in `target`.
pub(crate) fn halves(home: &str, target: &str, name: &str) -> Vec<Half> {
    let app = AppName { delivery: Delivery::Kpt, namespace: "shop".to_owned(), name: name.to_owned() };
    let app = AppId { home: ClusterId(home.to_owned()), app };
    let declared = DeclaredHalf::new(name.to_owned(), ClusterId(target.to_owned()), SyncState::Synced);
    let counts = Counts { current: 1, ..Counts::default() };
    let observed = ObservedHalf::new(Status::Current, counts);
    let half = |fingerprint, body| Half { app: app.clone(), fingerprint, body };
    vec![half(1, HalfBody::Declared(Box::new(declared))), half(2, HalfBody::Observed(Box::new(observed)))]
}

/// Returns a snapshot of all halves.
pub(crate) fn snapshot(halves: Vec<Half>) -> Content {
    Content::Snapshot { buckets: u64::MAX, part: 0, is_last: true, halves }
}

/// Opens a stream, and reports facts and one app of the cluster `uid`.
pub(crate) async fn report_one_app(agent: &mut TestAgent, uid: &str) {
    agent.open().await;
    let facts = ClusterReport { name: "agents-own-word".to_owned(), ..ClusterReport::default() };
    agent.report(Content::Cluster { facts: Box::new(facts), errors: Vec::new() }).await;
    agent.report(snapshot(halves(uid, uid, "web"))).await;
}

#[tokio::test]
async fn an_enrolled_agent_reports_its_cluster_under_the_name_of_its_enrolment() {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut agent = hub.enrolled(folder.path(), "uid-1", "eu-1").await;
    report_one_app(&mut agent, "uid-1").await;
    hub.until(|view| view.fleet().pairs() == 1 && view.counts().current == 1).await;
    let names = hub.index.identities();
    assert_eq!(names.get("eu-1"), Some(&ClusterId("uid-1".to_owned())));
    assert!(!names.contains_key("agents-own-word"), "{names:?}");
}

#[tokio::test]
async fn an_agent_dials_again_and_opens_another_stream() {
    let mut hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut agent = hub.enrolled(folder.path(), "uid-1", "eu-1").await;
    report_one_app(&mut agent, "uid-1").await;
    hub.until(|view| view.fleet().pairs() == 1).await;
    hub.stop_serving().await;
    assert!(matches!(agent.event().await, AgentEvent::Disconnected { .. }));
    hub.serve().await;
    agent.connected().await;
    // The stream of before has ended.
    let refused = agent.refused().await;
    agent.open().await;
    agent.report(snapshot(halves("uid-1", "uid-1", "db"))).await;
    agent.report(Content::Changes { changed: halves("uid-1", "uid-1", "web"), gone: Vec::new() }).await;
    hub.until(|view| view.fleet().pairs() == 2).await;
    assert!(refused > 0);
}

#[tokio::test]
async fn an_agent_that_restarts_needs_no_token() {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    drop(hub.enrolled(folder.path(), "uid-1", "eu-1").await);
    let mut agent = TestAgent::start(hub.settings(folder.path(), "uid-1", "another-name"));
    let connected = AgentEvent::Connected { name: "eu-1".to_owned(), is_proxied: false };
    assert_eq!(agent.event().await, connected);
    report_one_app(&mut agent, "uid-1").await;
    hub.until(|view| view.fleet().pairs() == 1).await;
}

#[tokio::test]
async fn a_declaration_for_another_home_changes_no_row_of_that() {
    let hub = TestHub::start().await;
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut honest = hub.enrolled(folders[0].path(), "uid-1", "eu-1").await;
    report_one_app(&mut honest, "uid-1").await;
    let mut lying = hub.enrolled(folders[1].path(), "uid-2", "eu-2").await;
    lying.open().await;
    lying
        .report(snapshot(
            [
                halves("uid-1", "uid-1", "web"),
                halves("uid-1", "uid-1", "new"),
                halves("uid-2", "uid-2", "own"),
            ]
            .concat(),
        ))
        .await;
    hub.until(|view| view.fleet().pairs() >= 2).await;
    // The app that the honest agent reported, and the lying one's own.
    assert_eq!(hub.index.view().fleet().pairs(), 2);
}
