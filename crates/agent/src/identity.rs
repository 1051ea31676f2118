//! The identity of an agent: its key, its certificate, and the keys by which it recognises the hub.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use jiff::Timestamp;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};
use taffrail_api::agent_protocol::KeyHash;
use taffrail_cluster::{Cluster, ConnectError, Context, Deadline, OwnSecret, WriteError};

use crate::error::AgentError;
use crate::private_files;

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
    ///
    /// # Errors
    /// If the key is malformed.
    pub fn public_key(&self) -> Result<Vec<u8>, AgentError> {
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

/// The error of a place that keeps an identity.
pub type KeepError = Box<dyn Error + Send + Sync>;

/// The place that keeps the identity of an agent while it does not run.
pub trait KeepIdentity: fmt::Debug + Send + Sync {
    /// Returns the name of the place, for messages.
    fn place(&self) -> String;

    /// Reads what [`write`](KeepIdentity::write) wrote; `None` if there is nothing.
    fn read(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, KeepError>>;

    /// Writes the identity, and replaces an earlier one; a crash leaves the one or the other.
    fn write<'k>(&'k self, identity: &'k [u8]) -> BoxFuture<'k, Result<(), KeepError>>;
}

impl Identity {
    /// Reads the identity that is kept; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read, or the place has other contents.
    pub async fn read(keeper: &dyn KeepIdentity) -> Result<Option<Identity>, AgentError> {
        let read = keeper.read().await;
        let text =
            read.map_err(|source| AgentError::Kept { action: "read", place: keeper.place(), source })?;
        let Some(text) = text else { return Ok(None) };
        match Identity::parse(&text) {
            Ok(identity) => Ok(Some(identity)),
            Err(source) => Err(AgentError::Malformed { place: keeper.place(), source }),
        }
    }

    /// Has the identity kept.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn write(&self, keeper: &dyn KeepIdentity) -> Result<(), AgentError> {
        let written = match self.to_json() {
            Ok(text) => keeper.write(&text).await,
            Err(error) => Err(error.into()),
        };
        written.map_err(|source| AgentError::Kept { action: "save", place: keeper.place(), source })
    }

    fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        let Identity { cluster, name, certificate, expires, pins, key } = self.clone();
        let pins = pins.iter().map(KeyHash::to_string).collect();
        serde_json::to_vec_pretty(&Saved {
            cluster,
            name,
            certificate,
            expires,
            pins,
            key: STANDARD.encode(key),
        })
    }

    /// Fails with the cause, if a parser found it.
    fn parse(text: &[u8]) -> Result<Identity, Option<serde_json::Error>> {
        let Saved { cluster, name, certificate, expires, pins, key } =
            serde_json::from_slice(text).map_err(Some)?;
        let pins = pins.iter().map(|pin| KeyHash::parse(pin)).collect::<Option<Vec<_>>>();
        let (Some(pins), Ok(key)) = (pins, STANDARD.decode(key)) else { return Err(None) };
        let identity = Identity { cluster, name, certificate, expires, pins, key };
        identity.pair().map_err(|_| None)?;
        Ok(identity)
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
}

impl KeepIdentity for IdentityFile {
    fn place(&self) -> String {
        self.0.display().to_string()
    }

    fn read(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, KeepError>> {
        let read = match fs::read(&self.0) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        };
        ready(read).boxed()
    }

    fn write<'k>(&'k self, identity: &'k [u8]) -> BoxFuture<'k, Result<(), KeepError>> {
        ready(replace(&self.0, identity).map_err(KeepError::from)).boxed()
    }
}

/// Writes a file that only its owner can read, and replaces an earlier one.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        private_files::create_folder(folder)?;
    }
    let new = path.with_extension("json.new");
    let mut file = private_files::create(&new)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

/// The Secret that keeps the identity of an agent, so that a Pod that is made anew on another node goes on with it.
pub struct IdentitySecret {
    context: Box<Context>,
    namespace: String,
    name: String,
    /// The version of the Secret as it was read or written last; `None` if there was none.
    version: Mutex<Option<String>>,
}

impl fmt::Debug for IdentitySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdentitySecret({}/{})", self.namespace, self.name)
    }
}

/// The time in which the API server must answer with the Secret, or take it.
const SECRET_PATIENCE: Duration = Duration::from_secs(10);

impl IdentitySecret {
    /// Returns the Secret `name` of a namespace in the cluster of `context`; without a namespace, in that of the
    /// context.
    pub fn new(context: Box<Context>, namespace: Option<String>, name: String) -> IdentitySecret {
        let namespace = namespace.unwrap_or_else(|| context.namespace().to_owned());
        IdentitySecret { context, namespace, name, version: Mutex::default() }
    }

    fn secret(&self) -> OwnSecret<'_> {
        OwnSecret { namespace: &self.namespace, name: &self.name, key: NAME, ..OwnSecret::default() }
    }

    fn version(&self) -> MutexGuard<'_, Option<String>> {
        self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read_from(&self, cluster: &Cluster) -> Result<Option<Vec<u8>>, KeepError> {
        let found = cluster.read_own_secret(&self.secret()).await?;
        let (version, value) = found.map(|found| (found.version, found.value)).unzip();
        *self.version() = version;
        Ok(value.flatten())
    }

    async fn write_to(&self, cluster: &Cluster, identity: &[u8]) -> Result<(), WriteError> {
        let read = self.version().clone();
        let written = cluster.write_own_secret(&self.secret(), identity, read.as_deref()).await?;
        *self.version() = Some(written);
        Ok(())
    }

    /// Writes an identity, unless another agent wrote its own since this one read the Secret.
    async fn replace(&self, identity: &[u8]) -> Result<(), KeepError> {
        let cluster = self.connect().await?;
        match self.write_to(&cluster, identity).await {
            Err(WriteError::Conflict { .. }) => {}
            written => return Ok(written?),
        }
        // What this agent wrote may be what is newer, if the answer got lost.
        let found = self.read_from(&cluster).await?;
        let key = |text: &[u8]| Identity::parse(text).ok().map(|identity| identity.key);
        if found.is_some_and(|found| key(&found) != key(identity)) {
            return Err(
                "another agent has put its key there; start this one again, to go on with that".into()
            );
        }
        Ok(self.write_to(&cluster, identity).await?)
    }

    async fn connect(&self) -> Result<Cluster, ConnectError> {
        Cluster::connect(&self.context, Deadline::after(SECRET_PATIENCE)).await
    }
}

impl KeepIdentity for IdentitySecret {
    fn place(&self) -> String {
        format!("the Secret {} in namespace {}", self.name, self.namespace)
    }

    fn read(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, KeepError>> {
        async { self.read_from(&self.connect().await?).await }.boxed()
    }

    fn write<'k>(&'k self, identity: &'k [u8]) -> BoxFuture<'k, Result<(), KeepError>> {
        self.replace(identity).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn identity_comes_back_from_its_file_which_others_cannot_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = IdentityFile::in_folder(&folder.path().join("of/agent"));
        assert_eq!(Identity::read(&file).await.unwrap(), None);
        let identity = Identity::generate("uid".to_owned(), vec![KeyHash([7; 32])]).unwrap();
        identity.write(&file).await.unwrap();
        let enrolled = Identity { name: "eu".to_owned(), ..identity };
        enrolled.write(&file).await.unwrap();
        assert_eq!(Identity::read(&file).await.unwrap(), Some(enrolled.clone()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!(!format!("{enrolled:?}").contains("key"));
    }

    #[tokio::test]
    async fn other_contents_are_refused_with_the_name_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = IdentityFile::in_folder(folder.path());
        for text in [
            "",
            "{}",
            r#"{"cluster":"a","name":"b","certificate":"","pins":["x"],"key":""}"#,
            r#"{"cluster":"a","name":"b","certificate":"","pins":[],"key":"AAAA"}"#,
        ] {
            fs::write(file.path(), text).unwrap();
            let error = Identity::read(&file).await.unwrap_err().to_string();
            assert_eq!(error, format!("{} does not hold the identity of an agent", file.path().display()));
        }
    }
}
