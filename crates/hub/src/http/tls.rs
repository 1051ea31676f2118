//! TLS: the certificate and private key of a hub, whose files are read again every minute.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

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
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads the certificate, followed by those of its issuers, and the private key; both are PEM files.
    ///
    /// # Errors
    /// [`TlsError`] if a file cannot be read, or the key is not that of the certificate.
    pub fn read(certificate: &Path, key: &Path) -> Result<Tls, TlsError> {
        let config = RwLock::new(config(certificate, key)?);
        Ok(Tls { certificate: certificate.to_owned(), key: key.to_owned(), config })
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
        if let Ok(config) = config(&self.certificate, &self.key) {
            *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        }
    }

    /// Returns the acceptor of connections that begin now.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
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
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(unusable)?.with_no_client_auth();
    let mut config = builder.with_single_cert(chain, private).map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
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
        let config = || Arc::clone(tls.acceptor().config());
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
}
