//! The TLS certificates of a fleet: an authority, one for all API servers, and an expired one.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use crate::error::SimError;

/// The TLS configurations of a fleet's API servers.
pub(crate) struct Tls {
    /// The certificate of the authority, in PEM.
    pub(crate) authority: String,
    pub(crate) good: TlsAcceptor,
    pub(crate) expired: TlsAcceptor,
}

impl Tls {
    pub(crate) fn new() -> Result<Tls, SimError> {
        let wrong = |error: &dyn std::fmt::Display| SimError::Certificates(error.to_string());
        let key = KeyPair::generate().map_err(|error| wrong(&error))?;
        let mut params = CertificateParams::new(Vec::new()).map_err(|error| wrong(&error))?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "taffrail-sim certificate authority");
        let authority = params.self_signed(&key).map_err(|error| wrong(&error))?.pem();
        let issuer = Issuer::from_params(&params, &key);
        let issue = |last_year: Option<i32>| -> Result<TlsAcceptor, SimError> {
            let own = KeyPair::generate().map_err(|error| wrong(&error))?;
            let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
            let mut params = CertificateParams::new(names).map_err(|error| wrong(&error))?;
            params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(last_year.unwrap_or(2120), 12, 31);
            let certificate = params.signed_by(&own, &issuer).map_err(|error| wrong(&error))?;
            let chain = vec![CertificateDer::from(certificate.der().to_vec())];
            let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.serialize_der()));
            let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(|error| wrong(&error))?
                .with_no_client_auth()
                .with_single_cert(chain, key)
                .map_err(|error| wrong(&error))?;
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            Ok(TlsAcceptor::from(Arc::new(config)))
        };
        Ok(Tls { authority, good: issue(None)?, expired: issue(Some(2021))? })
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}
