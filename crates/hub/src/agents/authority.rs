//! The authority that issues the certificates by which agents identify themselves.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SignatureAlgorithm, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::store::{AuthorityRecord, Store, StoreError};

/// The time for which the certificate of an agent is valid.
pub(crate) const VALIDITY: Duration = Duration::from_secs(24 * 3600);

/// The time for which the certificate of the authority is valid.
const AUTHORITY_VALIDITY: Duration = Duration::from_secs(20 * 365 * 86_400);

/// The time before its issue from which a certificate is valid, because clocks differ.
const EARLIER: Duration = Duration::from_secs(3600);

/// The bytes before the point in the SubjectPublicKeyInfo of an ECDSA key on P-256 (RFC 5480).
const P256_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// The length of an uncompressed point on P-256.
const P256_POINT: usize = 65;

/// The reason why a certificate could not be issued, or the authority not be made.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The store of the hub could not be read or written.
    #[error("cannot read or save the authority that issues the certificates of agents")]
    Store(#[from] StoreError),
    /// The key in the store cannot be used, or a certificate cannot be made.
    #[error("cannot issue certificates for agents")]
    Certificate(#[from] rcgen::Error),
    /// The certificate in the store is not PEM.
    #[error("the certificate of the authority that issues those of agents cannot be read")]
    Malformed(#[source] rustls::pki_types::pem::Error),
}

/// The authority that issues the certificates of agents.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate, in PEM.
    pem: String,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("pem", &self.pem).finish_non_exhaustive()
    }
}

impl Authority {
    /// Reads the authority from the store, and makes it first if there is none.
    pub(crate) async fn load(store: &dyn Store, now: Timestamp) -> Result<Authority, AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = own();
        set_validity(&mut params, now, AUTHORITY_VALIDITY);
        let certificate = params.self_signed(&key)?.pem();
        let record = store.authority(AuthorityRecord { key: key.serialize_pem(), certificate }).await?;
        let key = KeyPair::from_pem(&record.key)?;
        Ok(Authority { issuer: Issuer::new(own(), key), pem: record.certificate })
    }

    /// Returns the certificate of the authority.
    pub(crate) fn certificate(&self) -> Result<CertificateDer<'static>, AuthorityError> {
        CertificateDer::from_pem_slice(self.pem.as_bytes()).map_err(AuthorityError::Malformed)
    }

    /// Issues a certificate for the agent of `cluster` with the given key, and returns it in PEM, and the time at which
    /// it expires.
    pub(crate) fn issue(
        &self,
        key: &AgentKey,
        cluster: &str,
        now: Timestamp,
    ) -> Result<(String, Timestamp), AuthorityError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, cluster);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        set_validity(&mut params, now, VALIDITY);
        let pem = params.signed_by(key, &self.issuer)?.pem();
        let expires = now.saturating_add(SignedDuration::try_from(VALIDITY).unwrap_or_default());
        Ok((pem, expires.unwrap_or(Timestamp::MAX)))
    }
}

/// Returns what the authority's own certificate says, but for its time: the same in each run, so that certificates of
/// all runs name the same issuer.
fn own() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Taffrail agents");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// Sets from when until when a certificate that is issued at `now` is valid.
fn set_validity(params: &mut CertificateParams, now: Timestamp, validity: Duration) {
    let now = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default());
    let moment = |since: Duration| date_time_ymd(1970, 1, 1) + since;
    params.not_before = moment(now.saturating_sub(EARLIER));
    params.not_after = moment(now + validity);
}

/// The public key of an agent: ECDSA on P-256.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentKey([u8; P256_POINT]);

impl AgentKey {
    /// Reads a SubjectPublicKeyInfo in DER; `None` if it is of another kind.
    pub(crate) fn read(der: &[u8]) -> Option<AgentKey> {
        let point: [u8; P256_POINT] = der.strip_prefix(&P256_HEAD)?.try_into().ok()?;
        // Uncompressed.
        (point.first() == Some(&4)).then_some(AgentKey(point))
    }

    /// Returns true if `signature` (ECDSA with SHA-256, in DER) is one of `signed` by this key.
    pub(crate) fn has_signed(&self, signed: &[u8], signature: &[u8]) -> bool {
        use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, self.0).verify(signed, signature).is_ok()
    }
}

impl PublicKeyData for AgentKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}
