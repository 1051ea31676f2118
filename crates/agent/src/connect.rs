//! Connections to a hub: through a proxy or directly, by TLS, for HTTP/2.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, OtherError, RootCertStore,
    SignatureScheme,
};
use taffrail_api::agent_protocol::KeyHash;
use taffrail_cluster::{EnvironmentProxies, tunnel};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tonic::body::Body;
use tower::Service as _;

use crate::error::AgentError;
use crate::identity::Identity;

/// Time limit for name resolution, connecting and the TLS handshake.
const CONNECTING: Duration = Duration::from_secs(20);

/// Interval of HTTP/2 pings, which find a connection that broke without a word.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// Time limit for the answer to an HTTP/2 ping.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// The bytes of one connection that wait to be read, or to be sent.
const WINDOW: u32 = 64 * 1024;

/// The address of a hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubAddress {
    /// The host, as its certificate names it.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl HubAddress {
    /// Returns the URL of the hub.
    pub(crate) fn uri(&self) -> Result<Uri, http::Error> {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        Uri::builder().scheme("https").authority(format!("{host}:{}", self.port)).path_and_query("/").build()
    }
}

/// The certificates by which an agent recognises its hub.
#[derive(Debug, Clone, Default)]
pub enum HubTrust {
    /// The certificates that the enrolment token, and later the hub, name; if these name none, those that the machine
    /// trusts.
    #[default]
    Enrolled,
    /// The given authorities alone.
    Authorities(Vec<CertificateDer<'static>>),
    /// The given authorities alone, which vouch for a proxy that ends TLS before the hub.
    Proxy(Vec<CertificateDer<'static>>),
}

impl HubTrust {
    /// Reads authorities from a PEM file.
    ///
    /// # Errors
    /// If the file cannot be read, or holds none.
    pub fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, AgentError> {
        let unreadable = |source| AgentError::Certificates { path: path.to_owned(), source };
        let read = CertificateDer::pem_file_iter(path).map_err(unreadable)?;
        let read = read.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
        match read.is_empty() {
            true => Err(unreadable(rustls::pki_types::pem::Error::NoItemsFound)),
            false => Ok(read),
        }
    }

    /// Returns true if a proxy ends TLS before the hub.
    pub(crate) fn is_proxy(&self) -> bool {
        matches!(self, HubTrust::Proxy(_))
    }
}

/// An error of connecting to a hub.
pub(crate) type ConnectError = Box<dyn std::error::Error + Send + Sync>;

/// A connection to a hub, which a task of its own drives until this is dropped.
pub(crate) struct Connection {
    pub(crate) sender: SendRequest<Body>,
    driver: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Opens a connection to the hub at `address`, through the proxy that the environment names for it, and verifies the
/// hub. The agent shows its certificate, unless a proxy ends TLS, or the certificate has expired.
///
/// Must be called in a Tokio runtime.
pub(crate) async fn connect(
    address: &HubAddress,
    trust: &HubTrust,
    proxies: &EnvironmentProxies,
    identity: &Identity,
    shows_certificate: bool,
) -> Result<Connection, ConnectError> {
    let config = config(trust, identity, shows_certificate)?;
    let name = ServerName::try_from(address.host.clone())?;
    let connecting = async {
        let stream = dial(address, proxies).await?;
        let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        connected.map_err(|error| distrust(&error).unwrap_or_else(|| error.into()))
    };
    let late = || format!("the hub did not answer within {} s", CONNECTING.as_secs());
    let stream = timeout(CONNECTING, connecting).await.map_err(|_| late())??;
    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        return Err(
            "the server does not speak the protocol of agents (HTTP/2): it is not a hub that serves agents"
                .into(),
        );
    }
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(WINDOW as usize)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(async move { drop(connection.await) });
    Ok(Connection { sender, driver })
}

/// Returns the reason why the agent does not trust the server, if that made the TLS handshake fail: the error of TLS
/// tells it in the words of a programmer.
fn distrust(error: &std::io::Error) -> Option<ConnectError> {
    match error.get_ref()?.downcast_ref::<TlsError>()? {
        TlsError::InvalidCertificate(CertificateError::Other(OtherError(why))) => {
            Some(why.to_string().into())
        }
        _ => None,
    }
}

async fn dial(address: &HubAddress, proxies: &EnvironmentProxies) -> Result<TcpStream, ConnectError> {
    let uri = address.uri()?;
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_keepalive(Some(Duration::from_secs(60)));
    let stream = match proxies.proxy_of(&uri) {
        None => connector.call(uri).await?,
        // Others would get the password of the proxy in clear.
        Some(proxy) if proxy.scheme_str() != Some("http") => {
            let scheme = proxy.scheme_str().unwrap_or_default();
            return Err(format!(
                "an agent goes through proxies at http URLs alone, and HTTPS_PROXY has one at {scheme}"
            )
            .into());
        }
        Some(proxy) => {
            let shown = format!("{}:{}", proxy.host().unwrap_or_default(), proxy.port_u16().unwrap_or(80));
            let connected = tunnel(&proxy, connector).call(uri).await;
            connected.map_err(|error| format!("the proxy {shown} does not lead to the hub: {error}"))?
        }
    };
    Ok(stream.into_inner())
}

/// Makes the TLS configuration of a connection.
fn config(
    trust: &HubTrust,
    identity: &Identity,
    shows_certificate: bool,
) -> Result<ClientConfig, ConnectError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = HubVerifier::new(trust, &identity.pins, &provider)?;
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match identity.for_tls().filter(|_| shows_certificate && !trust.is_proxy()) {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key)?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

/// Verifies a hub: by a certificate of its chain that the agent was told of, or by the authorities that it trusts.
#[derive(Debug)]
struct HubVerifier {
    pins: Vec<KeyHash>,
    /// The verifier by authorities; `None` if the pins alone count.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl HubVerifier {
    fn new(
        trust: &HubTrust,
        pins: &[KeyHash],
        provider: &Arc<CryptoProvider>,
    ) -> Result<HubVerifier, ConnectError> {
        let (pins, roots) = match trust {
            HubTrust::Enrolled if pins.is_empty() => (Vec::new(), Some(native_roots()?)),
            HubTrust::Enrolled => (pins.to_vec(), None),
            HubTrust::Authorities(given) | HubTrust::Proxy(given) => {
                let mut roots = RootCertStore::empty();
                for certificate in given {
                    roots.add(certificate.clone())?;
                }
                (Vec::new(), Some(roots))
            }
        };
        let verifier = |roots| {
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build()
        };
        Ok(HubVerifier {
            pins,
            authorities: roots.map(verifier).transpose()?,
            provider: Arc::clone(provider),
        })
    }
}

fn native_roots() -> Result<RootCertStore, ConnectError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match roots.is_empty() {
        true => Err("this machine trusts no certificate authority; name one with --hub-ca-file FILE".into()),
        false => Ok(roots),
    }
}

impl ServerCertVerifier for HubVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        if let Some(authorities) = &self.authorities {
            return authorities.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            );
        }
        let is_pinned = |certificate: &&CertificateDer<'_>| {
            let parsed = ParsedCertificate::try_from(*certificate);
            parsed.is_ok_and(|parsed| {
                self.pins.contains(&KeyHash::of(parsed.subject_public_key_info().as_ref()))
            })
        };
        let mut roots = RootCertStore::empty();
        for certificate in [end_entity].into_iter().chain(intermediates).filter(is_pinned) {
            roots.add(certificate.clone().into_owned())?;
        }
        if roots.is_empty() {
            return Err(TlsError::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(
                NotPinned,
            )))));
        }
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider));
        let verifier = verifier.build().map_err(|error| TlsError::General(error.to_string()))?;
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The reason why a hub is not trusted whose certificates the agent was not told of.
#[derive(Debug, thiserror::Error)]
#[error(
    "the server shows none of the certificates by which the agent recognises its hub: it is another server, or a proxy \
     ends TLS (--proxy-ca-file FILE)"
)]
struct NotPinned;
