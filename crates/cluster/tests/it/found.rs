//! Tests of clusters that the Secrets of another cluster name.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use taffrail_cluster::{
    AddressGuard, ArgoClusterSecret, Cluster, ConnectError, Deadline, EnvironmentProxies, Fault, ListRequest,
    Reason, SecretCluster, SecretClusterError,
};
use taffrail_testkit::server::{Reply, Server};

use crate::connecting::{Authority, empty, resource, tls};
use crate::contexts::{LONG, context, kubeconfig};

/// Returns the guard of a home at this address.
fn home(server: &str) -> AddressGuard {
    AddressGuard::of_home(&context(&format!("server: {server}"), ""))
}

fn at_loopback() -> AddressGuard {
    home("https://127.0.0.1:6443")
}

fn elsewhere() -> AddressGuard {
    home("https://api.example:6443")
}

async fn connect(found: Result<SecretCluster, SecretClusterError>) -> Result<Cluster, ConnectError> {
    match found.unwrap() {
        SecretCluster::Other(context) => Cluster::connect(&context, Deadline::after(LONG)).await,
        other => panic!("{other:?}"),
    }
}

fn argo(server: &str, config: &Value, guard: &AddressGuard) -> Result<SecretCluster, SecretClusterError> {
    ArgoClusterSecret { server, config: config.to_string().as_bytes() }.cluster("home/argocd/edge", guard)
}

#[tokio::test]
async fn a_cluster_of_a_secret_is_read_with_its_token() {
    let authority = Authority::new();
    let config = tls(&authority.issue("127.0.0.1", None), &["h2"], None);
    let server = Server::start_tls(config, Duration::ZERO, empty);
    let of_flux = kubeconfig(&format!("server: {}\n{}", server.url(), authority.trusted()), "token: s3cret");
    let of_flux = SecretCluster::from_kubeconfig("home/team/edge", of_flux.as_bytes(), &at_loopback());
    let of_argo =
        json!({"bearerToken": "s3cret", "tlsClientConfig": {"caData": STANDARD.encode(&authority.pem)}});
    let of_argo = argo(&server.url(), &of_argo, &at_loopback());
    for (found, name) in [(of_flux, "home/team/edge"), (of_argo, "home/argocd/edge")] {
        assert!(!format!("{found:?}").contains("s3cret"));
        let cluster = connect(found).await.unwrap();
        assert_eq!((cluster.context(), cluster.unverified()), (name, None));
        cluster.list(&ListRequest::all(&resource("things"))).await.unwrap();
        assert_eq!(server.requests().last().unwrap().authorization.as_deref(), Some("Bearer s3cret"));
    }
}

#[tokio::test]
async fn a_cluster_of_a_secret_is_read_with_its_client_certificate() {
    let authority = Authority::new();
    let config = tls(&authority.issue("127.0.0.1", None), &["h2"], Some(&authority));
    let server = Server::start_tls(config, Duration::ZERO, empty);
    let client = authority.issue("alice", None);
    let (certificate, key) = (STANDARD.encode(client.certificate), STANDARD.encode(client.key));
    let of_capi = kubeconfig(
        &format!("server: {}\n{}", server.url(), authority.trusted()),
        &format!("client-certificate-data: {certificate}\nclient-key-data: {key}"),
    );
    let of_capi = SecretCluster::from_kubeconfig("home/team/edge", of_capi.as_bytes(), &at_loopback());
    let ca = STANDARD.encode(&authority.pem);
    let of_argo = json!({"tlsClientConfig": {"caData": ca, "certData": certificate, "keyData": key}});
    for found in [of_capi, argo(&server.url(), &of_argo, &at_loopback())] {
        connect(found).await.unwrap().list(&ListRequest::all(&resource("things"))).await.unwrap();
    }
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn credentials_of_a_secret_follow_no_redirect() {
    let authority = Authority::new();
    let identity = authority.issue("127.0.0.1", None);
    let other = Server::start_tls(tls(&identity, &["h2"], None), Duration::ZERO, empty);
    let to = format!("{}/api/v1/things", other.url());
    let server = Server::start_tls(tls(&identity, &["h2"], None), Duration::ZERO, move |_| {
        Reply::json(307, "{}").header("location", &to)
    });
    let text = kubeconfig(&format!("server: {}\n{}", server.url(), authority.trusted()), "token: s3cret");
    let found = SecretCluster::from_kubeconfig("a", text.as_bytes(), &at_loopback());
    let cluster = connect(found).await.unwrap();
    cluster.list(&ListRequest::all(&resource("things"))).await.unwrap_err();
    assert!(!server.requests().is_empty());
    assert_eq!(other.traffic().connections, 0);
}

#[tokio::test]
async fn the_environments_proxy_gets_no_credentials_of_a_secret() {
    let authority = Authority::new();
    let server =
        Server::start_tls(tls(&authority.issue("api.example", None), &["h2"], None), Duration::ZERO, empty);
    let address = format!("https://api.example:{}", server.address().port());
    let text = kubeconfig(&format!("server: {address}\n{}", authority.trusted()), "token: t");
    let guard = at_loopback().with_resolver(|_| Ok(vec![IpAddr::from([127, 0, 0, 1])]));
    let found = SecretCluster::from_kubeconfig("a", text.as_bytes(), &guard).unwrap();
    let SecretCluster::Other(context) = found else { panic!("{found:?}") };
    let https = "http://127.0.0.1:1".to_owned();
    let context =
        context.with_environment_proxies(&EnvironmentProxies { https, ..EnvironmentProxies::default() });
    Cluster::connect(&context, Deadline::after(LONG)).await.unwrap();
}

/// Returns the error of dialling a name that resolves to these addresses.
async fn dialled(guard: AddressGuard, addresses: &[&str]) -> ConnectError {
    let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
    let guard = guard.with_resolver(move |_| Ok(addresses.clone()));
    let text = kubeconfig("server: https://api.example:1", "token: t");
    connect(SecretCluster::from_kubeconfig("a", text.as_bytes(), &guard)).await.unwrap_err()
}

#[tokio::test]
async fn a_name_that_resolves_to_a_refused_address_is_not_dialled() {
    for addresses in [
        &["169.254.169.254"][..],
        &["127.0.0.1"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::a9fe:a9fe"],
        // One ordinary address beside it does not help.
        &["192.0.2.1", "fe80::1"],
    ] {
        let error = dialled(elsewhere(), addresses).await;
        assert_eq!(error.reason(), Reason::BadKubeconfig, "{addresses:?}: {error:?}");
        assert_eq!(
            error.to_string(),
            "cannot connect to https://api.example:1: a Secret names it, and its address is one that such a cluster \
             must not have (loopback, link-local, metadata service or reserved)"
        );
    }
    // A home on this machine allows loopback addresses, and nothing more.
    let fault = async |address| match dialled(at_loopback(), &[address]).await {
        ConnectError::Transport { fault, .. } => fault,
        other => panic!("{other:?}"),
    };
    assert_eq!(fault("127.0.0.1").await, Fault::Refused);
    assert_eq!(fault("169.254.169.254").await, Fault::AddressRefused);
    assert_eq!(fault("169.254.1.1").await, Fault::AddressRefused);
}

/// A name that resolves to an allowed address at first, and later to another one, is checked at each dial.
#[tokio::test]
async fn dns_rebinding_reaches_no_refused_address() {
    let authority = Authority::new();
    let config = tls(&authority.issue("api.example", None), &["http/1.1"], None);
    let server = Server::start_tls(config, Duration::from_millis(50), empty);
    let resolved = Arc::new(AtomicUsize::new(0));
    let count = resolved.clone();
    let guard = at_loopback().with_resolver(move |_| {
        let first = count.fetch_add(1, Ordering::SeqCst) == 0;
        Ok(vec![IpAddr::from(if first { [127, 0, 0, 1] } else { [169, 254, 169, 254] })])
    });
    let address = format!("server: https://api.example:{}", server.address().port());
    let text = kubeconfig(&format!("{address}\n{}", authority.trusted()), "token: t");
    let cluster = connect(SecretCluster::from_kubeconfig("a", text.as_bytes(), &guard)).await.unwrap();
    let resource = resource("things");
    let request = ListRequest::all(&resource);
    // HTTP/1.1 needs a second connection for two requests at the same time.
    let (a, b) = futures::future::join(cluster.list(&request), cluster.list(&request)).await;
    let error = a.and(b).unwrap_err();
    assert_eq!(error.reason(), Reason::BadKubeconfig, "{error:?}");
    assert!(resolved.load(Ordering::SeqCst) > 1);
    assert_eq!(server.traffic().connections, 1);
}

/// Returns what a user sees of a refusal.
fn refusal(found: Result<SecretCluster, SecretClusterError>) -> String {
    let error = found.unwrap_err();
    assert!(!error.hint().is_empty());
    assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
    error.to_string()
}

#[test]
fn kubeconfigs_of_secrets_that_reach_beyond_are_refused() {
    let ok = "server: https://api.example";
    let key = STANDARD.encode("no key");
    for (cluster, user, message) in [
        (
            ok,
            "exec: {command: sh}",
            "the field exec runs a program for credentials, and a Secret must not run programs here",
        ),
        (
            ok,
            "exec: {}",
            "the field exec runs a program for credentials, and a Secret must not run programs here",
        ),
        (
            ok,
            "auth-provider: {name: gcp, config: {cmd-path: sh}}",
            "the field auth-provider runs a program for credentials, and a Secret must not run programs here",
        ),
        (
            ok,
            "tokenFile: /etc/passwd",
            "the field tokenFile names a file, and a Secret must not read files here",
        ),
        (
            ok,
            "client-certificate: /a\nclient-key-data: aGk=",
            "the field client-certificate names a file, and a Secret must not read files here",
        ),
        (ok, "client-key: /a", "the field client-key names a file, and a Secret must not read files here"),
        (
            "server: https://api.example\ncertificate-authority: /a",
            "",
            "the field certificate-authority names a file, and a Secret must not read files here",
        ),
        (
            "server: https://api.example\nproxy-url: socks5://10.0.0.1",
            "",
            "the field proxy-url names a proxy, and credentials from a Secret go only to the server itself",
        ),
        ("server: http://api.example", "token: s3cret", "the server in the Secret is not an https URL"),
        ("server: http://127.0.0.1:1", "token: s3cret", "the server in the Secret is not an https URL"),
        ("server: api.example", "", "the server in the Secret is not an https URL"),
        ("{}", "", "the server in the Secret is not an https URL"),
        ("server: https://u:s3cret@api.example", "", "the URL of the server in the Secret contains a user"),
        (
            "server: https://169.254.169.254",
            "",
            "the server in the Secret has the address of a cloud's metadata service",
        ),
        (
            "server: https://[fd00:ec2::254]",
            "",
            "the server in the Secret has the address of a cloud's metadata service",
        ),
        ("server: https://127.0.0.1:6443", "", "the server in the Secret has a loopback address"),
        ("server: https://[::ffff:127.0.0.1]", "", "the server in the Secret has a loopback address"),
        ("server: https://[fe80::1]", "", "the server in the Secret has a link-local address"),
        ("server: https://0.0.0.0", "", "the server in the Secret has the unspecified address"),
        (
            "server: https://api.example\ninsecure-skip-tls-verify: true\ncertificate-authority-data: aGk=",
            "",
            "cluster \"it\" has both insecure-skip-tls-verify and a certificate-authority: only one can be meant",
        ),
        (
            "server: https://api.example\ncertificate-authority-data: aGk=",
            "",
            "certificate-authority of \"it\" holds no PEM certificate",
        ),
        (ok, &format!("client-key-data: {key}"), "user \"it\" has a client key and no certificate"),
        (ok, "token: [s3cret]", "user \"it\" is malformed: invalid type: sequence, expected a string"),
    ] {
        let text = kubeconfig(cluster, user);
        let found = SecretCluster::from_kubeconfig("a", text.as_bytes(), &elsewhere());
        assert_eq!(refusal(found), message, "{cluster} {user}");
    }
    for (text, message) in [
        ("", "the kubeconfig is empty"),
        ("\u{0}", "the kubeconfig is not text"),
        (
            &"#".repeat((256 << 10) + 1),
            "the cluster configuration in the Secret is 262145 bytes long, more than 256 KiB",
        ),
        (
            &format!("users: [{}]", "{name: a},".repeat(1_001)),
            "the kubeconfig in the Secret has more than 1000 contexts, clusters or users",
        ),
        ("contexts: []", "the kubeconfig in the Secret has 0 contexts and no current-context"),
        (
            "contexts: [{name: a}, {name: b}]",
            "the kubeconfig in the Secret has 2 contexts and no current-context",
        ),
        ("{contexts: [{name: a}], current-context: b}", "the kubeconfig does not define its current-context"),
        (
            "contexts: [{name: a, context: {cluster: b}}]",
            "the kubeconfig does not define the cluster of its context",
        ),
    ] {
        let found = SecretCluster::from_kubeconfig("a", text.as_bytes(), &elsewhere());
        assert_eq!(refusal(found), message);
    }
}

/// An alias could repeat a long text so often that it fills the memory.
#[test]
fn kubeconfigs_of_secrets_with_aliases_are_refused() {
    let text = "a: &a s3cret\ncontexts: [*a, *a]";
    let message = refusal(SecretCluster::from_kubeconfig("a", text.as_bytes(), &elsewhere()));
    assert!(message.starts_with("line ") && message.contains(" of the kubeconfig: "), "{message}");
}

#[test]
fn cluster_secrets_of_argo_cd_that_reach_beyond_are_refused() {
    let ok = "https://api.example";
    for (server, config, message) in [
        (
            ok,
            json!({"execProviderConfig": {"command": "argocd-k8s-auth"}}),
            "the field execProviderConfig runs a program for credentials, and a Secret must not run programs here",
        ),
        (
            ok,
            json!({"awsAuthConfig": {"clusterName": "a"}}),
            "the field awsAuthConfig runs a program for credentials, and a Secret must not run programs here",
        ),
        (
            ok,
            json!({"proxyUrl": "http://10.0.0.1"}),
            "the field proxyUrl names a proxy, and credentials from a Secret go only to the server itself",
        ),
        ("http://api.example", json!({}), "the server in the Secret is not an https URL"),
        (
            "https://169.254.169.254",
            json!({}),
            "the server in the Secret has the address of a cloud's metadata service",
        ),
        (
            ok,
            json!({"bearerToken": ["s3cret"]}),
            "the key config of the Secret is not the JSON of a cluster (line 1)",
        ),
        (
            ok,
            json!({"tlsClientConfig": {"insecure": true, "caData": "aGk="}}),
            "cluster \"it\" has both insecure-skip-tls-verify and a certificate-authority: only one can be meant",
        ),
    ] {
        assert_eq!(refusal(argo(server, &config, &elsewhere())), message, "{server} {config}");
    }
}

#[test]
fn the_address_inside_a_cluster_means_the_home() {
    let text = kubeconfig("server: https://kubernetes.default.svc", "");
    let flux = SecretCluster::from_kubeconfig("a", text.as_bytes(), &elsewhere()).unwrap();
    let argo = argo("https://kubernetes.default.svc:443/", &json!({}), &elsewhere()).unwrap();
    for found in [flux, argo] {
        assert!(matches!(found, SecretCluster::Home), "{found:?}");
    }
}
