//! Connections of those that are no agents, and agents that break the protocol.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use taffrail_agent::AgentEvent;
use taffrail_api::report::{Content, StreamPosition};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::hub::{LONG, TestAgent, TestHub};
use crate::reporting::{halves, report_one_app, snapshot};

/// Opens a TLS connection that speaks the protocols `alpn`, without a client certificate.
async fn connect(hub: &TestHub, alpn: &[&str]) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(hub.authority.pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut client = client.with_root_certificates(roots).with_no_client_auth();
    client.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(hub.address).await.unwrap();
    TlsConnector::from(Arc::new(client))
        .connect(ServerName::try_from("localhost").unwrap(), stream)
        .await
        .unwrap()
}

#[tokio::test]
async fn readers_and_agents_share_one_port() {
    let hub = TestHub::start().await;
    for alpn in [&["http/1.1"][..], &["h2", "http/1.1"], &[]] {
        let mut reader = connect(&hub, alpn).await;
        reader
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        let _ = reader.read_to_string(&mut answer).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{alpn:?}: {answer}");
    }
    // An agent's connection answers nothing else.
    let mut agent = connect(&hub, &["h2"]).await;
    agent.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(LONG, agent.read_to_end(&mut answer)).await.expect("the hub closes it");
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
}

#[tokio::test]
async fn garbage_on_an_agents_connection_ends_it_and_harms_nobody() {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut agent = hub.enrolled(folder.path(), "uid-1", "eu-1").await;
    report_one_app(&mut agent, "uid-1").await;
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..200 {
        let mut stranger = connect(&hub, &["h2"]).await;
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend((0..random.usize(..2_000)).map(|_| random.u8(..)));
        let _ = stranger.write_all(&bytes).await;
        let _ = stranger.shutdown().await;
    }
    agent.report(Content::Changes { changed: halves("uid-1", "uid-1", "db"), gone: Vec::new() }).await;
    hub.until(|view| view.fleet().pairs() == 2).await;
}

#[tokio::test]
async fn a_report_of_an_old_epoch_changes_nothing_and_is_refused() {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut agent = hub.enrolled(folder.path(), "uid-1", "eu-1").await;
    report_one_app(&mut agent, "uid-1").await;
    let old = agent.position();
    agent.open().await;
    let present = agent.position();
    agent.set_position(StreamPosition { seq: old.seq + 1, ..old });
    agent.report(snapshot(Vec::new())).await;
    assert_eq!(agent.refused().await, old.epoch);
    agent.set_position(present);
    agent.report(snapshot([halves("uid-1", "uid-1", "web"), halves("uid-1", "uid-1", "db")].concat())).await;
    hub.until(|view| view.fleet().pairs() == 2).await;
}

#[tokio::test]
async fn an_agent_that_floods_waits_for_its_turn_and_others_do_not() {
    let hub = TestHub::start().await;
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut flooding = hub.enrolled(folders[0].path(), "uid-1", "eu-1").await;
    flooding.open().await;
    let flood = tokio::spawn(async move {
        loop {
            flooding.report(Content::Heartbeat).await;
        }
    });
    let mut other = hub.enrolled(folders[1].path(), "uid-2", "eu-2").await;
    report_one_app(&mut other, "uid-2").await;
    hub.until(|view| view.fleet().pairs() == 1).await;
    assert!(!flood.is_finished());
    flood.abort();
}

#[tokio::test]
async fn who_has_not_said_who_it_is_may_send_little() {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut long = hub.settings(folder.path(), "uid-1", &"x".repeat(20_000));
    long.token = Some(hub.token(None, 3600).await);
    let mut agent = TestAgent::start(long);
    assert!(matches!(agent.event().await, AgentEvent::Disconnected { .. }));
    // Once it has, a report may be long.
    let folder = tempfile::tempdir().unwrap();
    let mut agent = hub.enrolled(folder.path(), "uid-1", "eu-1").await;
    agent.open().await;
    let all = (0..300).flat_map(|number| halves("uid-1", "uid-1", &format!("app-{number}"))).collect();
    agent.report(snapshot(all)).await;
    hub.until(|view| view.fleet().pairs() == 300).await;
}
