//! The file that lists the servers.

use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use snapbox::{assert_data_eq, str};
use taffrail_metrics::MetricsConfig;
use tokio_rustls::TlsAcceptor;

use crate::prometheus::FakePrometheus;
use crate::stage::Stage;

/// Returns the error about a file, with its causes and the hint.
fn refusal(text: &str) -> String {
    let error = MetricsConfig::parse(text, Path::new("metrics.yaml")).expect_err(text);
    let mut whole = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        whole += &format!(": {error}");
        cause = error.source();
    }
    format!("{whole}\n  {}\n", error.hint())
}

#[test]
fn unknown_fields_and_wrong_values_are_refused_with_line_and_hint() {
    let server = "servers:\n- name: prom\n  url: https://prom.example\n";
    let with = |more: &str| format!("{server}  {more}\n");
    let texts = [
        "servers: []".to_owned(),
        "server: []".to_owned(),
        with("colour: red"),
        with("interval: 1s"),
        with("clusterLabel: a-b"),
        with("families: [flux, helm]"),
        with("headers: {Authorization: 'Bearer x'}"),
        with("headers: {X-Scope-OrgID: \"a\\nb\"}"),
        with("tls: {certFile: a}"),
        with("bearerTokenFile: a\n  basicAuth: {username: u, passwordFile: p}"),
        with("mappings: [{metric: m, delivery: tool, labels: {name: n}}]"),
        with("mappings: [{metric: m, delivery: label, labels: {name: n}}]"),
        with("mappings: [{metric: 'm{}', delivery: label, labels: {name: n}, health: {values: {}}}]"),
        with("mappings: [{metric: m, delivery: label, labels: {name: n}, health: {values: {'1': Green}}}]"),
        format!("{server}- name: prom\n  url: http://other\n"),
        server.replace("https://", "https://user:password@"),
        server.replace("https://", "ftp://"),
        server.replace("name: prom", "name: a/b"),
        with("checksPerMinute: 0"),
        format!("{server}checks: [{{name: a, query: up}}]\n"),
        format!("{server}checks: [{{name: a b, query: up, below: 1}}]\n"),
        format!("{server}checks: [{{name: a, query: 'up > ${{x}}', below: 1}}]\n"),
        format!("{server}checks: [{{name: a, query: up, below: 1, interval: 1s}}]\n"),
        format!("{server}checks: [{{name: a, query: up, below: 1, servers: [other]}}]\n"),
        format!("{server}checks: [{{name: a, query: up, below: .inf}}]\n"),
        format!("{server}checks:\n- {{name: a, query: up, below: 1}}\n- {{name: a, query: up, above: 1}}\n"),
    ];
    let refusals: String = texts.iter().map(|text| refusal(text)).collect();
    assert!(!refusals.contains("password@"));
    assert_data_eq!(
        refusals,
        str![[r#"
the list of metrics servers in metrics.yaml:1: there is no server
  list servers, each with a name and a url
the list of metrics servers in metrics.yaml is not valid: at line 1: unknown field `server`, expected one of servers, checks at line 1, column 1
  docs/metrics.md lists the fields and their values
the list of metrics servers in metrics.yaml is not valid: at line 4: unknown field `colour`, expected one of name, url, bearerTokenFile, basicAuth, tls, headers, clusterLabel, cluster, interval, matchers, families, destinations, mappings, checksPerMinute at line 4, column 3
  docs/metrics.md lists the fields and their values
the list of metrics servers in metrics.yaml:4: '1s' is not an interval
  write 5s to 60s
the list of metrics servers in metrics.yaml:4: 'a-b' is not the name of a label
  use letters, digits and '_', and no digit at the start
the list of metrics servers in metrics.yaml is not valid: at line 4: unknown variant `helm`, expected one of taffrail, argo-cd, flux, config-sync, kube-state-metrics at line 4, column 20
  docs/metrics.md lists the fields and their values
the list of metrics servers in metrics.yaml:4: the header 'Authorization' cannot be set
  name secrets by bearerTokenFile or basicAuth
the list of metrics servers in metrics.yaml:4: the header 'X-Scope-OrgID' has a name or a value that HTTP does not allow
  write names and values in printable ASCII
the list of metrics servers in metrics.yaml:2: the server 'prom' has only one of certFile and keyFile
  set both, or none
the list of metrics servers in metrics.yaml:2: the server 'prom' has both bearerTokenFile and basicAuth
  leave one of them out
the list of metrics servers in metrics.yaml is not valid: at line 4: 'tool' is not a way of delivery; write one of flux-kustomization (ks), flux-helmrelease (hr), argo-application (argo), config-sync, kpt, porch, helm, label, taffrail at line 4, column 36
  docs/metrics.md lists the fields and their values
the list of metrics servers in metrics.yaml:4: the mapping of 'm' tells nothing
  add health, sync or suspended
the list of metrics servers in metrics.yaml:4: 'm{}' is not the name of a metric
  use letters, digits, '_' and ':', and put the rest into matchers
the list of metrics servers in metrics.yaml is not valid: at line 4: unknown variant `Green`, expected one of Failed, NotFound, Unknown, Terminating, InProgress, Current at line 4, column 85
  docs/metrics.md lists the fields and their values
the list of metrics servers in metrics.yaml:4: two servers have the name 'prom'
  give each server a name of its own
the list of metrics servers in metrics.yaml:3: 'https://…@prom.example' is not the URL of a metrics server
  write https://HOST[:PORT][/PATH], without user, query and the final /api/v1
the list of metrics servers in metrics.yaml:3: 'ftp://prom.example' is not the URL of a metrics server
  write https://HOST[:PORT][/PATH], without user, query and the final /api/v1
the list of metrics servers in metrics.yaml:2: 'a/b' is not a name of a server
  use up to 63 letters, digits, '-', '.' and '_'
the list of metrics servers in metrics.yaml:4: checksPerMinute is 0
  write a number from 1 to 6000
the list of metrics servers in metrics.yaml:4: the check 'a' has no bound that is a number
  add below: NUMBER, above: NUMBER, or both
the list of metrics servers in metrics.yaml:4: 'a b' is not a name of a check
  use up to 63 letters, digits, '-', '.' and '_'
the list of metrics servers in metrics.yaml:4: the query of the check 'a' cannot be used: a placeholder stands only in the quoted value of a matcher, such as service="${service}", at '${x}'
  docs/metrics.md says what a query may have
the list of metrics servers in metrics.yaml:4: '1s' is not an interval of a check
  write 15s to 1h
the list of metrics servers in metrics.yaml:4: the check 'a' names the server 'other', which the file does not list
  name servers of the file
the list of metrics servers in metrics.yaml:4: the check 'a' has no bound that is a number
  add below: NUMBER, above: NUMBER, or both
the list of metrics servers in metrics.yaml:6: two checks have the name 'a'
  give each check a name of its own

"#]]
    );
}

#[tokio::test]
async fn secrets_and_headers_are_sent_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, "first\n").unwrap();
    let path = file.display();
    let text = "argocd_app_info{namespace=\"a\",name=\"b\",health_status=\"Healthy\"} 1";
    let bearer = format!("  bearerTokenFile: {path}\n  headers: {{X-Scope-OrgID: fleet}}\n");
    let basic = format!("  basicAuth: {{username: me, passwordFile: {path}}}\n");
    // `me:first` and `me:second`, in Base64.
    for (more, [first, second]) in [
        (&bearer, ["authorization: Bearer first", "authorization: Bearer second"]),
        (&basic, ["authorization: Basic bWU6Zmlyc3Q=", "authorization: Basic bWU6c2Vjb25k"]),
    ] {
        std::fs::write(&file, "first\n").unwrap();
        let mut stage = Stage::with(more, &[]).await;
        stage.scrape(text).await;
        assert_eq!(stage.rows().len(), 1);
        let sent = stage.prometheus.state().requests.concat();
        assert!(sent.contains(first) && sent.starts_with("POST /api/v1/query "), "{sent}");
        assert_eq!(sent.contains("x-scope-orgid: fleet"), more == &bearer);
        std::fs::write(&file, "second").unwrap();
        stage.pass(60);
        stage.read().await;
        assert!(stage.prometheus.state().requests.concat().contains(second));
        std::fs::write(&file, "").unwrap();
        stage.pass(60);
        stage.read().await;
        assert!(stage.errors()[0].message.contains("is empty"), "{:?}", stage.errors());
    }
}

/// An authority, and the certificates that it issues, in PEM.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// Returns a certificate for `localhost`, and its private key.
    fn issue(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

#[tokio::test]
async fn server_and_hub_know_each_other_by_certificates() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (certificate, key) = authority.issue();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let (own, own_key) = authority.issue();
    let (own, own_key) = (write("own", &own), write("key", &own_key));
    let (ca, other) = (write("ca", &authority.pem), write("other", &stranger.pem));
    let pair = format!("certFile: {own}, keyFile: {own_key}");
    for (tls, is_known) in [
        (format!("{{caFile: {ca}, {pair}}}"), true),
        (format!("{{caFile: {ca}}}"), false),
        (format!("{{caFile: {other}, {pair}}}"), false),
    ] {
        let prometheus = FakePrometheus::with_tls(Some(acceptor.clone())).await;
        let url = prometheus.url.clone();
        let mut stage = Stage::of(prometheus, &url, &format!("  tls: {tls}\n"), &[]);
        stage.scrape("argocd_app_info{namespace=\"a\",name=\"b\",health_status=\"Healthy\"} 1").await;
        assert_eq!(stage.rows().len(), usize::from(is_known), "{tls}: {:?}", stage.events);
        assert_eq!(stage.events.is_empty(), is_known);
    }
    // A file that is missing is told with its name.
    let prometheus = FakePrometheus::with_tls(Some(acceptor)).await;
    let url = prometheus.url.clone();
    let mut stage = Stage::of(prometheus, &url, "  tls: {caFile: /nowhere/ca.pem}\n", &[]);
    stage.read().await;
    assert!(format!("{:?}", stage.events).contains("/nowhere/ca.pem"), "{:?}", stage.events);
}
