//! Tests of connections, certificates and credentials.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Version;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use taffrail_cluster::{ApiResource, ConnectError, ListRequest, Phase, Protocol, Reason};
use taffrail_testkit::server::{Reply, Request, Server};

use crate::contexts::{LONG, connect};

/// A certificate authority.
pub(crate) struct Authority {
    params: CertificateParams,
    key: KeyPair,
    pub(crate) pem: String,
}

/// A certificate and its key, in PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { params, key, pem }
    }

    pub(crate) fn issue(&self, name: &str, last_year: Option<i32>) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        if let Some(year) = last_year {
            params.not_before = rcgen::date_time_ymd(year, 1, 1);
            params.not_after = rcgen::date_time_ymd(year, 12, 31);
        }
        let issuer = Issuer::from_params(&self.params, &self.key);
        let certificate = params.signed_by(&key, &issuer).unwrap().pem();
        Identity { certificate, key: key.serialize_pem() }
    }

    /// Returns the line for a kubeconfig's cluster that makes clients trust this authority.
    pub(crate) fn trusted(&self) -> String {
        format!("certificate-authority-data: {}", STANDARD.encode(&self.pem))
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        Arc::new(roots)
    }
}

/// Returns a server's TLS settings with this identity and these ALPN protocols. With `clients`, clients must present a
/// certificate of that authority.
pub(crate) fn tls(identity: &Identity, protocols: &[&str], clients: Option<&Authority>) -> ServerConfig {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let builder = match clients {
        None => ServerConfig::builder().with_no_client_auth(),
        Some(authority) => {
            let verifier = WebPkiClientVerifier::builder(authority.roots()).build().unwrap();
            ServerConfig::builder().with_client_cert_verifier(verifier)
        }
    };
    let chain = vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
    let mut config = builder.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    config
}

pub(crate) fn resource(plural: &str) -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Thing".to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
    }
}

pub(crate) fn empty(_: &Request) -> Reply {
    Reply::json(200, r#"{"kind":"ThingList","apiVersion":"v1","items":[]}"#)
}

#[tokio::test]
async fn many_lists_at_once_share_one_http2_connection_and_90_streams() {
    let authority = Authority::new();
    let config = tls(&authority.issue("127.0.0.1", None), &["h2", "http/1.1"], None);
    let server = Server::start_tls(config, Duration::from_millis(50), empty);
    let cluster = format!("server: {}\n{}", server.url(), authority.trusted());
    let cluster = connect(&cluster, "", LONG).await.unwrap();
    assert_eq!(cluster.protocol(), Protocol::Http2);

    let resources: Vec<ApiResource> = (0..200).map(|i| resource(&format!("things{i}"))).collect();
    let requests: Vec<ListRequest<'_>> = resources.iter().map(ListRequest::all).collect();
    for listing in futures::future::join_all(requests.iter().map(|request| cluster.list(request))).await {
        listing.unwrap();
    }
    assert_eq!(server.traffic().connections, 1);
    assert!(server.requests().iter().all(|seen| seen.version == Version::HTTP_2));
    let most = server.traffic().most_under_way;
    assert!(most <= 90, "{most}");
    assert_eq!(cluster.requests().cost.requests, 200);
}

#[tokio::test]
async fn a_server_without_http2_is_read_over_http1() {
    let authority = Authority::new();
    let config = tls(&authority.issue("127.0.0.1", None), &["http/1.1"], None);
    let server = Server::start_tls(config, Duration::ZERO, empty);
    let cluster = format!("server: {}\n{}", server.url(), authority.trusted());
    let cluster = connect(&cluster, "", LONG).await.unwrap();
    assert_eq!(cluster.protocol(), Protocol::Http1);
    let resource = resource("things");
    let request = ListRequest::all(&resource);
    let (a, b) = futures::future::join(cluster.list(&request), cluster.list(&request)).await;
    assert!(a.is_ok() && b.is_ok());
}

#[tokio::test]
async fn certificates_that_cannot_be_trusted_say_why() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let reason = async |identity: Identity, extra: &str| {
        let server = Server::start_tls(tls(&identity, &["h2"], None), Duration::ZERO, empty);
        connect(&format!("server: {}\n{extra}", server.url()), "", LONG).await.map(drop).map_err(|error| {
            let hint = error.hint().unwrap();
            if error.reason() == Reason::CertificateInvalid {
                // One hint for a wrong authority, a wrong name and a certificate that is not valid yet.
                for word in ["certificate-authority", "tls-server-name", "clock"] {
                    assert!(hint.contains(word), "{hint}");
                }
            }
            (error.reason(), error.to_string().rsplit(": ").next().unwrap().to_owned())
        })
    };
    let good = || authority.issue("127.0.0.1", None);
    assert_eq!(reason(good(), &authority.trusted()).await, Ok(()));
    assert_eq!(
        reason(good(), &stranger.trusted()).await,
        Err((
            Reason::CertificateInvalid,
            "the server's certificate is not signed by a trusted authority".to_owned()
        ))
    );
    assert_eq!(
        reason(authority.issue("127.0.0.1", Some(2020)), &authority.trusted()).await,
        Err((Reason::CertificateExpired, "the server's certificate has expired".to_owned()))
    );
    assert_eq!(
        reason(authority.issue("127.0.0.1", Some(4000)), &authority.trusted()).await.unwrap_err().0,
        Reason::CertificateInvalid
    );
    let elsewhere = || authority.issue("api.example", None);
    assert_eq!(
        reason(elsewhere(), &authority.trusted()).await,
        Err((Reason::CertificateInvalid, "the server's certificate is for another name".to_owned()))
    );
    let named = format!("{}\ntls-server-name: api.example", authority.trusted());
    assert_eq!(reason(elsewhere(), &named).await, Ok(()));
    assert_eq!(reason(elsewhere(), "insecure-skip-tls-verify: true").await, Ok(()));
}

#[tokio::test]
async fn client_certificates_are_sent_and_missing_ones_reported() {
    let authority = Authority::new();
    let config = tls(&authority.issue("127.0.0.1", None), &["h2"], Some(&authority));
    let server = Server::start_tls(config, Duration::ZERO, empty);
    let cluster = format!("server: {}\n{}", server.url(), authority.trusted());
    let client = authority.issue("alice", None);
    let user = format!(
        "client-certificate-data: {}\nclient-key-data: {}",
        STANDARD.encode(client.certificate),
        STANDARD.encode(client.key)
    );
    let resource = resource("things");
    let known = connect(&cluster, &user, LONG).await.unwrap();
    known.list(&ListRequest::all(&resource)).await.unwrap();

    // In TLS 1.3 the client is done before the server has seen that no certificate came, and the server's
    // complaint may be lost with the connection.
    let nobody = connect(&cluster, "", LONG).await.unwrap();
    let error = nobody.list(&ListRequest::all(&resource)).await.unwrap_err();
    assert!(matches!(error.reason(), Reason::Unauthorized | Reason::ConnectionLost), "{error:?}");
}

#[tokio::test]
async fn tls_to_a_plain_server_is_reported() {
    let server = Server::start(empty);
    let error = connect(&format!("server: https://{}", server.address()), "", LONG).await.unwrap_err();
    assert_eq!(error.reason(), Reason::ConnectionFailed);
    assert!(error.to_string().ends_with("the other end does not speak TLS"), "{error}");
}

#[tokio::test]
async fn unreachable_addresses_report_the_reason() {
    let address = {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        listener.local_addr().unwrap()
    };
    let refused = connect(&format!("server: https://{address}"), "", LONG).await.unwrap_err();
    assert_eq!(refused.reason(), Reason::ConnectionRefused);
    assert_eq!(refused.to_string(), format!("cannot connect to https://{address}: connection refused"));

    let unknown = connect("server: https://no-such-host.invalid", "", LONG).await.unwrap_err();
    assert_eq!(unknown.reason(), Reason::NameNotResolved, "{unknown:?}");

    let proxied = format!("server: https://api.example\nproxy-url: http://u:s3cret@{address}");
    let proxied = connect(&proxied, "", LONG).await.unwrap_err();
    assert_eq!(proxied.reason(), Reason::ProxyFailed, "{proxied:?}");
}

#[tokio::test]
async fn a_server_that_accepts_and_hangs_is_given_up_in_its_handshake() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let cluster = format!("server: https://{}", listener.local_addr().unwrap());
    let begun = Instant::now();
    let error = connect(&cluster, "", Duration::from_millis(300)).await.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(matches!(error, ConnectError::Timeout { phase: Phase::Handshake, .. }), "{error:?}");
    assert!(error.to_string().contains("s: gave up in the TLS handshake"), "{error}");
}

#[tokio::test]
async fn proxies_open_a_tunnel() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let authority = Authority::new();
    let config = tls(&authority.issue("api.example", None), &["h2"], None);
    let server = Server::start_tls(config, Duration::ZERO, empty);
    let proxy = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let cluster = format!(
        "server: https://api.example:6443\n{}\nproxy-url: http://user:p%40ss@{}",
        authority.trusted(),
        proxy.local_addr().unwrap()
    );
    let through = tokio::spawn(async move {
        let (mut client, _) = proxy.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(client.read_u8().await.unwrap());
        }
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let mut onward = tokio::net::TcpStream::connect(server.address()).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut client, &mut onward).await;
        (String::from_utf8(head).unwrap(), server)
    });
    let cluster = connect(&cluster, "", LONG).await.unwrap();
    assert_eq!(cluster.protocol(), Protocol::Http2);
    cluster.list(&ListRequest::all(&resource("things"))).await.unwrap();
    drop(cluster);
    let (head, _server) = through.await.unwrap();
    assert!(head.starts_with("CONNECT api.example:6443 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&STANDARD.encode("user:p@ss")), "{head}");
}

#[tokio::test]
async fn every_sort_of_credential_is_sent() {
    let server = Server::start(empty);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "from-file").unwrap();
    let resource = resource("things");
    for (user, expected) in [
        ("token: abc".to_owned(), Some("Bearer abc".to_owned())),
        (format!("tokenFile: {}", file.path().display()), Some("Bearer from-file".to_owned())),
        ("username: u\npassword: p".to_owned(), Some(format!("Basic {}", STANDARD.encode("u:p")))),
        (String::new(), None),
    ] {
        let cluster = connect(&format!("server: {}", server.url()), &user, LONG).await.unwrap();
        cluster.list(&ListRequest::all(&resource)).await.unwrap();
        assert_eq!(server.requests().last().unwrap().authorization, expected);
    }
}

/// Returns the lines for a kubeconfig's user whose exec plugin is this shell script.
fn plugin(script: &str) -> String {
    let script = script.replace('\n', "; ");
    format!(
        "exec:\n  apiVersion: client.authentication.k8s.io/v1\n  command: sh\n  args: [\"-c\", {}]\n  env: [{{name: WHO, value: me}}]\n  installHint: install it",
        serde_json::Value::from(script)
    )
}

#[cfg(unix)]
#[tokio::test]
async fn an_exec_plugin_gives_a_token_and_runs_once() {
    let server = Server::start(empty);
    let runs = tempfile::NamedTempFile::new().unwrap();
    let script = format!(
        "echo run >> {}\necho \"{{\\\"kind\\\":\\\"ExecCredential\\\",\\\"apiVersion\\\":\\\"client.authentication.k8s.io/v1\\\",\\\"status\\\":{{\\\"token\\\":\\\"for-$WHO\\\"}}}}\"",
        runs.path().display()
    );
    let cluster = connect(&format!("server: {}", server.url()), &plugin(&script), LONG).await.unwrap();
    cluster.list(&ListRequest::all(&resource("things"))).await.unwrap();
    assert_eq!(server.requests()[0].authorization.as_deref(), Some("Bearer for-me"));
    assert_eq!(std::fs::read_to_string(runs.path()).unwrap(), "run\n");
}

#[cfg(unix)]
#[tokio::test]
async fn failed_exec_plugin_reports_only_its_last_line() {
    let why = async |script: &str| {
        let error = connect("server: http://127.0.0.1:1", &plugin(script), LONG).await.unwrap_err();
        assert_eq!(error.reason(), Reason::ExecPluginFailed);
        let text = format!("{error} {error:?}");
        assert!(!text.contains("s3cret"), "{text}");
        error.to_string()
    };
    assert_eq!(
        why("echo s3cret\necho 'SSO session\texpired' >&2\necho >&2\nexit 3").await,
        "context \"test\": exec plugin \"sh\" failed (exit status: 3): SSO session expired"
    );
    assert!(why("echo s3cret").await.ends_with("printed something that is not an ExecCredential"));
    assert!(
        why("echo '{\"status\":{\"token\":{\"a\":\"s3cret\"}}}'").await.ends_with("is not an ExecCredential")
    );
    assert!(why("echo '{\"status\":{}}'").await.ends_with("neither a token nor a client certificate"));

    let missing = "exec:\n  apiVersion: client.authentication.k8s.io/v1\n  command: no-such-plugin-here\n  installHint: install it";
    let error = connect("server: http://127.0.0.1:1", missing, LONG).await.unwrap_err();
    assert_eq!(error.to_string(), "context \"test\": exec plugin \"no-such-plugin-here\" was not found");
    assert_eq!(error.hint(), Some("install it"));
}

#[cfg(unix)]
#[tokio::test]
async fn an_exec_plugin_that_hangs_is_killed_with_what_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let script = format!("sleep 600 & echo $! > {0}.new\nmv {0}.new {0}\nwait", pids.display());
    let begun = Instant::now();
    let error =
        connect("server: http://127.0.0.1:1", &plugin(&script), Duration::from_secs(2)).await.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(matches!(error, ConnectError::Timeout { phase: Phase::ExecPlugin, .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("plugin"));

    let child: i32 = std::fs::read_to_string(&pids).unwrap().trim().parse().unwrap();
    let alive = || {
        let state = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        // A killed process stays as a zombie until its new parent looks.
        !state.is_empty() && !state.contains(") Z ")
    };
    tokio::time::timeout(Duration::from_secs(10), async {
        while alive() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the child of the plugin outlives the deadline");
}
