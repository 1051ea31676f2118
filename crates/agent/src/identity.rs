//! The identity of an agent: its key, its certificate, and the keys by which it recognises the hub.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};
use taffrail_api::agent_protocol::KeyHash;

use crate::error::AgentError;

/// The identity of an agent. `Debug` does not print the private key.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The cluster for which the agent enrolled.
    pub cluster: String,
    /// The name under which the hub lists the cluster; empty before the agent enrolled.
    pub name: String,
    /// The certificate and those of its issuers, in PEM; empty before the agent enrolled.
    pub certificate: String,
    /// The time at which the certificate expires, by the clock of the agent; `None` before the agent enrolled.
    pub expires: Option<Timestamp>,
    /// The keys by which the agent recognises the hub.
    pub pins: Vec<KeyHash>,
    /// The private key: PKCS #8 in DER, ECDSA on P-256.
    pub(crate) key: Vec<u8>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("cluster", &self.cluster)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The form of an identity in its file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Saved {
    cluster: String,
    name: String,
    certificate: String,
    expires: Option<Timestamp>,
    /// Each as 64 hexadecimal digits.
    pins: Vec<String>,
    /// In Base64.
    key: String,
}

impl Identity {
    /// Makes the identity of an agent of `cluster` that has not enrolled yet, with a new key, which recognises the hub by
    /// `pins`.
    ///
    /// # Errors
    /// If no key can be made.
    pub fn generate(cluster: String, pins: Vec<KeyHash>) -> Result<Identity, AgentError> {
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new());
        let key = key.map_err(|_| AgentError::Key)?.as_ref().to_vec();
        Ok(Identity { cluster, name: String::new(), certificate: String::new(), expires: None, pins, key })
    }

    fn pair(&self) -> Result<EcdsaKeyPair, AgentError> {
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &self.key).map_err(|_| AgentError::Key)
    }

    /// Returns the public key: a SubjectPublicKeyInfo in DER.
    pub(crate) fn public_key(&self) -> Result<Vec<u8>, AgentError> {
        let pair = self.pair()?;
        let der: PublicKeyX509Der<'_> = pair.public_key().as_der().map_err(|_| AgentError::Key)?;
        Ok(der.as_ref().to_vec())
    }

    /// Signs bytes with the private key: ECDSA with SHA-256, in DER.
    pub(crate) fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>, AgentError> {
        let signature = self.pair()?.sign(&SystemRandom::new(), bytes).map_err(|_| AgentError::Key)?;
        Ok(signature.as_ref().to_vec())
    }

    /// Returns the certificate and the private key for TLS; `None` before the agent enrolled.
    pub(crate) fn for_tls(&self) -> Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let chain: Vec<_> =
            CertificateDer::pem_slice_iter(self.certificate.as_bytes()).collect::<Result<_, _>>().ok()?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.clone()));
        (!chain.is_empty()).then_some((chain, key))
    }
}

/// The file that keeps the identity of an agent, which only its owner can read.
#[derive(Debug, Clone)]
pub struct IdentityFile(PathBuf);

/// The name of the file in its folder.
const NAME: &str = "agent.json";

impl IdentityFile {
    /// Returns the file in the folder `folder`.
    pub fn in_folder(folder: &Path) -> IdentityFile {
        IdentityFile(folder.join(NAME))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the identity; `None` if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read, or has other contents.
    pub fn read(&self) -> Result<Option<Identity>, AgentError> {
        let text = match fs::read(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(AgentError::File { action: "read", path: self.0.clone(), source }),
        };
        let malformed = |source| AgentError::Malformed { path: self.0.clone(), source };
        let saved: Saved = serde_json::from_slice(&text).map_err(|error| malformed(Some(error)))?;
        let Saved { cluster, name, certificate, expires, pins, key } = saved;
        let pins = pins.iter().map(|pin| KeyHash::parse(pin)).collect::<Option<Vec<_>>>();
        let pins = pins.ok_or_else(|| malformed(None))?;
        let key = STANDARD.decode(key).map_err(|_| malformed(None))?;
        let identity = Identity { cluster, name, certificate, expires, pins, key };
        identity.pair().map_err(|_| malformed(None))?;
        Ok(Some(identity))
    }

    /// Writes the identity, and replaces an earlier one; a crash leaves the one or the other.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, identity: &Identity) -> Result<(), AgentError> {
        let failed = |source| AgentError::File { action: "save", path: self.0.clone(), source };
        let Identity { cluster, name, certificate, expires, pins, key } = identity.clone();
        let pins = pins.iter().map(KeyHash::to_string).collect();
        let saved = Saved { cluster, name, certificate, expires, pins, key: STANDARD.encode(key) };
        let text = serde_json::to_vec_pretty(&saved).map_err(|error| failed(error.into()))?;
        if let Some(folder) = self.0.parent() {
            create_folder(folder).map_err(failed)?;
        }
        let new = self.0.with_extension("json.new");
        let written = (|| {
            let mut file = create_private(&new)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&new, &self.0)
        })();
        written.map_err(failed)
    }
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Creates a file that only its owner can read.
fn create_private(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_comes_back_from_its_file_which_others_cannot_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = IdentityFile::in_folder(&folder.path().join("of/agent"));
        assert_eq!(file.read().unwrap(), None);
        let identity = Identity::generate("uid".to_owned(), vec![KeyHash([7; 32])]).unwrap();
        file.write(&identity).unwrap();
        let enrolled = Identity { name: "eu".to_owned(), ..identity };
        file.write(&enrolled).unwrap();
        assert_eq!(file.read().unwrap(), Some(enrolled.clone()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!(!format!("{enrolled:?}").contains("key"));
    }

    #[test]
    fn other_contents_are_refused_with_the_name_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = IdentityFile::in_folder(folder.path());
        for text in [
            "",
            "{}",
            r#"{"cluster":"a","name":"b","certificate":"","pins":["x"],"key":""}"#,
            r#"{"cluster":"a","name":"b","certificate":"","pins":[],"key":"AAAA"}"#,
        ] {
            fs::write(file.path(), text).unwrap();
            let error = file.read().unwrap_err().to_string();
            assert_eq!(error, format!("{} does not hold the identity of an agent", file.path().display()));
        }
    }
}
