//! Proxies between an agent and its hub.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use taffrail_agent::{AgentEvent, AgentSettings, HubTrust};
use taffrail_cluster::EnvironmentProxies;
use taffrail_hub::AskError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::hub::{ServerAuthority, TestAgent, TestHub};
use crate::questions::{run_request, suspend, uncertain};
use crate::reporting::report_one_app;

/// A proxy that ends with the test.
struct Proxy {
    address: SocketAddr,
    /// The heads of the requests that it got.
    heads: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts an HTTP proxy that opens tunnels to `target`, whatever host is asked for, for those with the right password.
async fn tunnelling(target: SocketAddr) -> Proxy {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&heads);
    let task = tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = client.read_u8().await else { return };
                    head.push(byte);
                }
                let head = String::from_utf8(head).unwrap();
                // ann:s3cret
                let is_known = head.contains("Basic YW5uOnMzY3JldA==");
                seen.lock().unwrap().push(head);
                let answer = if is_known { "200 OK" } else { "407 Proxy Authentication Required" };
                let _ = client.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).await;
                if is_known && let Ok(mut onward) = TcpStream::connect(target).await {
                    let _ = copy_bidirectional(&mut client, &mut onward).await;
                }
            });
        }
    });
    Proxy { address, heads, task }
}

/// Starts a proxy that ends TLS with a certificate of `authority`, and speaks TLS with the hub.
async fn ending_tls(hub: &TestHub, authority: &ServerAuthority) -> Proxy {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let (chain, key) = authority.issue();
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let mut server = server.with_no_client_auth().with_single_cert(chain, key).unwrap();
    server.alpn_protocols = vec![b"h2".to_vec()];
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(hub.authority.pem.as_bytes()).unwrap()).unwrap();
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut client = client.with_root_certificates(roots).with_no_client_auth();
    client.alpn_protocols = vec![b"h2".to_vec()];
    let (acceptor, connector) = (TlsAcceptor::from(Arc::new(server)), TlsConnector::from(Arc::new(client)));
    let target = hub.address;
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, connector) = (acceptor.clone(), connector.clone());
            tokio::spawn(async move {
                let mut own = acceptor.accept(stream).await.ok()?;
                let onward = TcpStream::connect(target).await.ok()?;
                let mut onward =
                    connector.connect(ServerName::try_from("localhost").ok()?, onward).await.ok()?;
                copy_bidirectional(&mut own, &mut onward).await.ok()
            });
        }
    });
    Proxy { address, heads: Arc::default(), task }
}

#[tokio::test]
async fn an_agent_reaches_its_hub_through_the_proxy_that_the_environment_names() {
    let hub = TestHub::start().await;
    let proxy = tunnelling(hub.address).await;
    let folder = tempfile::tempdir().unwrap();
    let settings = async |user: &str, no_proxy: &str| {
        let mut settings = hub.settings(folder.path(), "uid-1", "eu-1");
        // No such machine: only the proxy leads there.
        settings.hub.host = "hub.example".to_owned();
        settings.proxies = EnvironmentProxies {
            https: format!("http://{user}{}", proxy.address),
            no_proxy: no_proxy.to_owned(),
            ..EnvironmentProxies::default()
        };
        settings
    };
    let mut agent = TestAgent::start(AgentSettings {
        token: Some(hub.token(None, 3600).await),
        ..settings("ann:s3cret@", "").await
    });
    let AgentEvent::Disconnected { reason, .. } = agent.event().await else { panic!() };
    // The tunnel led to the hub, whose certificate has another name.
    assert!(reason.contains("not valid for name"), "{reason}");
    let head = proxy.heads.lock().unwrap()[0].clone();
    assert!(head.starts_with(&format!("CONNECT hub.example:{} HTTP/1.1\r\n", hub.address.port())), "{head}");
    drop(agent);
    let token = Some(hub.token(None, 3600).await);
    let mut agent = TestAgent::start(AgentSettings { token, ..settings("", "").await });
    let AgentEvent::Disconnected { reason, .. } = agent.event().await else { panic!() };
    assert!(reason.contains(&format!("the proxy {} does not lead to the hub", proxy.address)), "{reason}");
    drop(agent);
    let seen = proxy.heads.lock().unwrap().len();
    let token = Some(hub.token(None, 3600).await);
    let mut encrypted = AgentSettings { token, ..settings("", "").await };
    encrypted.proxies.https = format!("https://ann:s3cret@{}", proxy.address);
    let mut agent = TestAgent::start(encrypted);
    let AgentEvent::Disconnected { reason, .. } = agent.event().await else { panic!() };
    assert!(reason.contains("proxies at http URLs alone"), "{reason}");
    drop(agent);
    assert_eq!(proxy.heads.lock().unwrap().len(), seen, "the password is not sent");
    let token = Some(hub.token(None, 3600).await);
    let mut agent = TestAgent::start(AgentSettings { token, ..settings("ann:s3cret@", ".example").await });
    assert!(matches!(agent.event().await, AgentEvent::Disconnected { .. }));
    assert_eq!(proxy.heads.lock().unwrap().len(), seen, "NO_PROXY names the hub");
}

#[tokio::test]
async fn an_agent_behind_a_proxy_that_ends_tls_is_known_by_its_signature_and_marked() {
    let hub = TestHub::start().await;
    let authority = ServerAuthority::new();
    let proxy = ending_tls(&hub, &authority).await;
    let folder = tempfile::tempdir().unwrap();
    let mut through = hub.settings(folder.path(), "uid-1", "eu-1");
    through.hub.port = proxy.address.port();
    through.token = Some(hub.token(None, 3600).await);
    let trusting = AgentSettings {
        trust: HubTrust::Proxy(vec![CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()]),
        token: through.token.clone(),
        allows_actions: true,
        ..hub.settings(folder.path(), "uid-1", "eu-1")
    };
    let trusting = AgentSettings { hub: through.hub.clone(), ..trusting };
    // Without --proxy-ca-file the proxy is another server.
    let AgentEvent::Disconnected { reason, .. } = TestAgent::start(through).event().await else { panic!() };
    assert!(reason.contains("--proxy-ca-file FILE"), "{reason}");
    let mut agent = TestAgent::start(trusting);
    assert!(agent.connected().await, "it is marked");
    report_one_app(&mut agent, "uid-1").await;
    hub.until(|view| view.fleet().pairs() == 1).await;
    use taffrail_hub::store::Store as _;
    assert!(hub.store.agents().await.unwrap()[0].is_proxied);
    // It is asked for nothing that the proxy could forge.
    let patience = Duration::from_secs(2);
    let planned = hub.agents.plan("eu-1", suspend(), None, patience).await.map(drop);
    let run = hub.agents.run("eu-1", &run_request(), |_| true).await;
    let traced = hub.agents.trace("eu-1", &uncertain(1, 10), patience).await.map(drop);
    for refused in [planned, run, traced] {
        let Err(AskError::Invalid(why)) = refused else { panic!("{refused:?}") };
        assert!(why.starts_with("a proxy ends TLS before the hub"), "{why}");
    }
}
