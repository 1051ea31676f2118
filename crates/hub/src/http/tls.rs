//! TLS: the certificate and private key of a hub, whose files are read again every minute.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{Acceptor, ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, RootCertStore, ServerConfig};
use taffrail_api::agent_protocol::KeyHash;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use crate::agents::ProvedKey;

/// The protocol that agents speak, as TLS names it.
const AGENT_PROTOCOL: &[u8] = b"h2";

/// The protocol that readers speak, as TLS names it.
const READER_PROTOCOL: &[u8] = b"http/1.1";

/// The interval in which the files of the certificate and its private key are read again: issuers renew certificates
/// days before they expire.
const INTERVAL: Duration = Duration::from_secs(60);

/// The reason why a certificate or private key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds no PEM of its kind.
    #[error("cannot read {what} in {}", path.display())]
    Unreadable {
        /// The contents that the file should have: `the certificate` or `the private key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: PemError,
    },
    /// The private key is not that of the certificate, or is of an unknown kind, or the certificate is malformed.
    #[error("cannot use the private key in {} with the certificate in {}", key.display(), certificate.display())]
    Unusable {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the private key.
        key: PathBuf,
        /// The cause.
        source: rustls::Error,
    },
}

/// The certificate and private key with which a hub accepts TLS connections, and the files that hold them.
#[derive(Debug)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    /// The certificate of the authority that issues those of agents; `None` if no agents are served.
    authority: Option<CertificateDer<'static>>,
    present: RwLock<Arc<Present>>,
}

/// The contents of the files at present.
#[derive(Debug)]
struct Present {
    readers: Arc<ServerConfig>,
    agents: Option<Arc<ServerConfig>>,
    pins: Vec<KeyHash>,
    /// The certificate, and those of its issuers that are in the file.
    chain: Vec<CertificateDer<'static>>,
}

/// An accepted connection.
pub(super) enum Accepted<S> {
    /// A connection of a client that reads, and speaks HTTP/1.
    Reader(TlsStream<S>),
    /// A connection of an agent, with the key that its certificate proves.
    Agent(TlsStream<S>, ProvedKey),
}

impl Tls {
    /// Reads the certificate, followed by those of its issuers, and the private key; both are PEM files.
    ///
    /// # Errors
    /// [`TlsError`] if a file cannot be read, or the key is not that of the certificate.
    pub fn read(certificate: &Path, key: &Path) -> Result<Tls, TlsError> {
        let present = RwLock::new(Arc::new(present(certificate, key, None)?));
        Ok(Tls { certificate: certificate.to_owned(), key: key.to_owned(), authority: None, present })
    }

    /// Admits agents whose certificates `authority` issued, and such without certificates.
    ///
    /// # Errors
    /// [`TlsError`] if the files cannot be read any more, or the certificate of the authority cannot be used.
    pub fn with_agents(self, authority: CertificateDer<'static>) -> Result<Tls, TlsError> {
        let present = RwLock::new(Arc::new(present(&self.certificate, &self.key, Some(&authority))?));
        Ok(Tls { authority: Some(authority), present, ..self })
    }

    /// Returns the keys by which agents recognise the hub: those of the issuers of its certificate that are in the file,
    /// and that of the certificate itself if it is its own issuer. Empty if another issuer, which the file does not have, vouches
    /// for it: then agents trust the authorities of their machines.
    pub fn pins(&self) -> Vec<KeyHash> {
        self.present().pins.clone()
    }

    /// Returns the reason why clients that call the hub by `host` (`HOST[:PORT]`) refuse its certificate, though they trust the
    /// issuer; `None` if none is known.
    pub fn fault(&self, host: &str) -> Option<String> {
        let present = self.present();
        let (own, issuers) = present.chain.split_first()?;
        let mut roots = RootCertStore::empty();
        roots.add(issuers.last().unwrap_or(own).clone()).ok()?;
        let name = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
        let name = name.map_or(host, |(name, _)| name).trim_start_matches('[').trim_end_matches(']');
        let server = ServerName::try_from(name.to_owned()).ok()?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().ok()?;
        let refused = verifier.verify_server_cert(own, issuers, &server, &[], UnixTime::now()).err()?;
        let rustls::Error::InvalidCertificate(why) = refused else { return Some(refused.to_string()) };
        match why {
            // Only clients know all issuers.
            CertificateError::UnknownIssuer => None,
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                Some("it has expired".to_owned())
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Some("it is not valid yet".to_owned())
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Some(format!("it does not name the host '{name}'"))
            }
            CertificateError::Other(why) => Some(format!(
                "{why}; the certificate of an authority (CA:TRUE), such as openssl makes where nothing else is asked for, \
                 cannot be that of a server"
            )),
            other => Some(rustls::Error::InvalidCertificate(other).to_string()),
        }
    }

    /// Reads the files again each minute, for ever. Connections that begin later have the new certificate; while the
    /// files cannot be used, for instance because one of them is about to be written, the former ones stay.
    pub async fn keep_fresh(&self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            self.refresh();
        }
    }

    fn refresh(&self) {
        if let Ok(present) = present(&self.certificate, &self.key, self.authority.as_ref()) {
            *self.present.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(present);
        }
    }

    fn present(&self) -> Arc<Present> {
        Arc::clone(&self.present.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Accepts a connection. A client that speaks HTTP/2 alone is an agent: only of those a certificate is requested,
    /// for which browsers would ask their users.
    pub(super) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> io::Result<Accepted<S>> {
        let present = self.present();
        let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let offered: Vec<Vec<u8>> =
            start.client_hello().alpn().into_iter().flatten().map(<[u8]>::to_vec).collect();
        let is_agent = offered == [AGENT_PROTOCOL];
        match present.agents.as_ref().filter(|_| is_agent) {
            None => Ok(Accepted::Reader(start.into_stream(Arc::clone(&present.readers)).await?)),
            Some(agents) => {
                let stream = start.into_stream(Arc::clone(agents)).await?;
                let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
                let proved = ProvedKey(certificate.and_then(key_of));
                Ok(Accepted::Agent(stream, proved))
            }
        }
    }
}

/// Returns the hash of the public key of a certificate; `None` for one that cannot be parsed.
fn key_of(certificate: &CertificateDer<'_>) -> Option<KeyHash> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    Some(KeyHash::of(parsed.subject_public_key_info().as_ref()))
}

fn present(
    certificate: &Path,
    key: &Path,
    authority: Option<&CertificateDer<'static>>,
) -> Result<Present, TlsError> {
    let unreadable = |what, path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::Unreadable { what, path, source }
    };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain =
        chain.and_then(|chain| if chain.is_empty() { Err(PemError::NoItemsFound) } else { Ok(chain) });
    let chain = chain.map_err(unreadable("the certificate", certificate))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(unreadable("the private key", key))?;
    let unusable =
        |source| TlsError::Unusable { certificate: certificate.to_owned(), key: key.to_owned(), source };
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = || {
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        builder.with_safe_default_protocol_versions().map_err(unusable)
    };
    let agents = match authority {
        None => None,
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.clone()).map_err(unusable)?;
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            let verifier = verifier.allow_unauthenticated().build();
            let verifier = verifier.map_err(|error| unusable(rustls::Error::General(error.to_string())))?;
            let builder = builder()?.with_client_cert_verifier(verifier);
            let mut config =
                builder.with_single_cert(chain.clone(), private.clone_key()).map_err(unusable)?;
            config.alpn_protocols = vec![AGENT_PROTOCOL.to_vec()];
            Some(Arc::new(config))
        }
    };
    let pins = pins(&chain, &provider);
    let readers = builder()?.with_no_client_auth().with_single_cert(chain.clone(), private);
    let mut readers = readers.map_err(unusable)?;
    readers.alpn_protocols = vec![READER_PROTOCOL.to_vec()];
    Ok(Present { readers: Arc::new(readers), agents, pins, chain })
}

/// Returns the keys of the issuers in `chain`, and of its first certificate if that is its own issuer.
fn pins(chain: &[CertificateDer<'_>], provider: &Arc<CryptoProvider>) -> Vec<KeyHash> {
    let [own, issuers @ ..] = chain else { return Vec::new() };
    let own = Some(own).filter(|own| is_own_issuer(own, provider));
    own.into_iter().chain(issuers).filter_map(key_of).collect()
}

fn is_own_issuer(certificate: &CertificateDer<'_>, provider: &Arc<CryptoProvider>) -> bool {
    let mut roots = RootCertStore::empty();
    let Ok(name) = ServerName::try_from("localhost") else { return false };
    let Ok(()) = roots.add(certificate.clone().into_owned()) else { return false };
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let Ok(verifier) = verifier.build() else { return false };
    let verified = verifier.verify_server_cert(certificate, &[], &name, &[], UnixTime::now());
    // Another name or time says nothing of the issuer.
    !matches!(verified, Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        std::fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
        std::fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
    }

    #[test]
    fn renewed_files_are_used_and_broken_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        let error = Tls::read(&certificate, &key).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot read the certificate in {}", certificate.display()));
        write(folder.path(), "one.example.com");
        let tls = Tls::read(&certificate, &key).unwrap();
        let config = || tls.present();
        let first = config();
        std::fs::write(&key, "").unwrap();
        tls.refresh();
        assert!(Arc::ptr_eq(&first, &config()));
        let error = Tls::read(&certificate, &key).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot read the private key in {}", key.display()));
        write(folder.path(), "two.example.com");
        tls.refresh();
        assert!(!Arc::ptr_eq(&first, &config()));
        let other = tempfile::tempdir().unwrap();
        write(other.path(), "three.example.com");
        let error = Tls::read(&certificate, &other.path().join("tls.key")).unwrap_err();
        assert!(matches!(error, TlsError::Unusable { .. }), "{error}");
    }

    #[test]
    fn a_certificate_that_clients_refuse_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        let fault = |host: &str| Tls::read(&certificate, &key).unwrap().fault(host);
        write(folder.path(), "hub.example.com");
        assert_eq!(fault("hub.example.com:7655"), None);
        let other = fault("hub.example.org");
        assert_eq!(other.as_deref(), Some("it does not name the host 'hub.example.org'"));
        let made = rcgen::KeyPair::generate().unwrap();
        let write = |change: &dyn Fn(&mut rcgen::CertificateParams)| {
            let mut params = rcgen::CertificateParams::new(vec!["hub.example.com".to_owned()]).unwrap();
            change(&mut params);
            std::fs::write(&certificate, params.self_signed(&made).unwrap().pem()).unwrap();
            std::fs::write(&key, made.serialize_pem()).unwrap();
        };
        write(&|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
        assert_eq!(fault("hub.example.com").as_deref(), Some("it has expired"));
        write(&|params| params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained));
        assert!(fault("hub.example.com").unwrap().contains("CA:TRUE"));
    }
}
