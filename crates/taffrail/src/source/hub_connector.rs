//! Connects to hubs: by http on this machine, by https anywhere.

use std::io;
use std::path::Path;
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_rustls::ConfigBuilderExt as _;
use hyper_util::rt::TokioIo;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::cli::HubFiles;
use crate::command_error::CommandError;
use crate::hub_url::{HubUrl, Scheme};

/// An error of connecting to a hub, or of a request to it.
pub(super) type SendError = Box<dyn std::error::Error + Send + Sync>;

/// Returns true if no trusted authority issued the hub's certificate.
pub(super) fn is_of_unknown_issuer(error: &SendError) -> bool {
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    let tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(tls, Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)))
}

/// A stream of bytes in both directions.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection to a hub, which a task of its own drives until this is dropped.
pub(super) struct HubConnection {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Drop for HubConnection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl HubConnection {
    /// Sends a request, and returns the head of the response. The body can be read as long as the connection lives.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, SendError> {
        self.sender.send_request(request).await.map_err(|error| {
            if error.is_canceled() || error.is_incomplete_message() {
                return "the hub closed the connection before it had answered".into();
            }
            error.into()
        })
    }
}

/// The way to connect to a hub.
pub(super) enum Connector {
    /// Without TLS, for a hub on this machine.
    Http,
    /// With TLS; holds the configuration with the trusted certificate authorities.
    Https(TlsConnector),
}

impl Connector {
    /// Returns the connector for a URL. For https it reads the certificate authorities that are trusted: those in
    /// `--hub-ca-file`, else those of the system.
    ///
    /// # Errors
    /// Fails if these cannot be read, and for `--hub-ca-file` with an http URL.
    pub(super) fn of(url: &HubUrl, files: &HubFiles) -> Result<Connector, CommandError> {
        match (url.scheme, &files.hub_ca_file) {
            (Scheme::Https, authorities) => {
                let config = config(authorities.as_deref())?;
                Ok(Connector::Https(TlsConnector::from(Arc::new(config))))
            }
            (Scheme::Http, None) => Ok(Connector::Http),
            (Scheme::Http, Some(_)) => {
                let error = CommandError::usage("--hub-ca-file works only with a hub at an https URL");
                Err(error.hint("write --hub https://HOST:PORT, or leave --hub-ca-file out"))
            }
        }
    }

    /// Opens a connection to the hub at `url`; with TLS also verifies its certificate.
    ///
    /// Must be called in a Tokio runtime.
    pub(super) async fn connect(self, url: &HubUrl) -> Result<HubConnection, SendError> {
        let stream = TcpStream::connect((&*url.host, url.port)).await?;
        stream.set_nodelay(true)?;
        let stream: Box<dyn Stream> = match self {
            Connector::Http => Box::new(stream),
            Connector::Https(connector) => {
                let name = ServerName::try_from(url.host.clone())?;
                Box::new(connector.connect(name, stream).await?)
            }
        };
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // The response, or its body, tells its error, too.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(HubConnection { sender, driver })
    }
}

/// Makes the TLS configuration that trusts the certificate authorities in the PEM file `authorities`, or those of the
/// system if it is `None`.
fn config(authorities: Option<&Path>) -> Result<ClientConfig, CommandError> {
    let unusable = |error: &dyn std::error::Error| {
        CommandError::unreadable("cannot set up TLS for the hub").with_source(error)
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| unusable(&error))?;
    let builder = match authorities {
        None => builder.with_native_roots().map_err(|error| {
            unusable(&error)
                .hint("name a PEM file with the certificate authority of the hub: --hub-ca-file FILE")
        })?,
        Some(path) => {
            let mut roots = RootCertStore::empty();
            let unreadable = |error: &dyn std::error::Error| {
                let what = format_args!(
                    "cannot read the certificate authorities in {} (--hub-ca-file)",
                    path.display()
                );
                CommandError::usage(what).with_source(error)
            };
            let read = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))?;
            for certificate in read {
                let certificate = certificate.map_err(|error| unreadable(&error))?;
                roots.add(certificate).map_err(|error| unreadable(&error))?;
            }
            if roots.is_empty() {
                let what = format_args!("{} (--hub-ca-file) holds no certificate", path.display());
                return Err(CommandError::usage(what)
                    .hint("name a PEM file with the certificate authority of the hub: --hub-ca-file FILE"));
            }
            builder.with_root_certificates(roots)
        }
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
