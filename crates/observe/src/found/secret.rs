//! Reads one Secret that names a cluster.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use taffrail_apps::{ClusterSecret, ClusterSecretTool, Read, Target, cluster_labels};
use taffrail_cluster::{
    AddressGuard, ArgoClusterSecret, Cluster, Context, MAX_SECRET_KUBECONFIG_BYTES, ReadError, Reason,
    SecretCluster, SecretClusterError,
};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{Object, Projection};

use crate::error::Failure;
use crate::read::read_one;

/// The result of reading a Secret that names a cluster.
#[derive(Debug)]
pub(super) enum SecretRead {
    /// The Secret does not exist.
    Absent,
    /// The Secret names the cluster that contains it.
    Home,
    /// The Secret names another cluster. The fingerprint is a hash of the values that name it: the kubeconfig, or Argo
    /// CD's server and config.
    Other { context: Box<Context>, fingerprint: u64 },
    /// The Secret cannot be used, or names a cluster to which Taffrail does not connect.
    Refused(Failure),
    /// The Secret could not be read.
    Failed { failure: Failure, is_forbidden: bool },
}

/// Reads a Secret through `home`, the connection to the cluster that contains it; `guard` checks the address of the
/// cluster that it names, and `hasher` makes the fingerprint. Returns with the result the labels of the Secret; `None` if
/// it was not read.
pub(super) async fn read_secret(
    home: Cluster,
    secret: ClusterSecret,
    guard: AddressGuard,
    hasher: RandomState,
) -> (SecretRead, Option<BTreeMap<String, String>>) {
    let read = Read {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        plural: "secrets".to_owned(),
        namespace: Some(secret.secret.namespace.clone()),
        target: Target::Object(secret.secret.name.clone()),
        projection: Projection::Full,
    };
    let failed = |error: &ReadError| SecretRead::Failed {
        failure: told(&secret, Failure::new(error.reason(), error, error.hint())),
        is_forbidden: error.reason() == Reason::Forbidden,
    };
    let document = match read_one(&home, &read).await {
        Ok(None) => return (SecretRead::Absent, None),
        Ok(Some((documents, _))) => documents.into_iter().next(),
        Err(error) => return (failed(&error), None),
    };
    let Some(document) = document else { return (SecretRead::Absent, None) };
    let labels = Object::new(document.root()).ok().map(|object| cluster_labels(&object));
    let read = named(&secret, &document, &guard, &hasher).unwrap_or_else(|error| {
        let failure = Failure::new(error.reason(), &error, Some(error.hint()));
        SecretRead::Refused(told(&secret, failure))
    });
    (read, labels)
}

/// Returns the failure with the name of the Secret.
fn told(secret: &ClusterSecret, failure: Failure) -> Failure {
    let message = format!("Secret {}: {}", secret.secret.path(), failure.message);
    Failure { message, ..failure }
}

/// Returns the cluster that a Secret names.
fn named(
    secret: &ClusterSecret,
    document: &OwnedDocument,
    guard: &AddressGuard,
    hasher: &RandomState,
) -> Result<SecretRead, SecretClusterError> {
    let unusable = |what: String| SecretClusterError::Unusable(what);
    let object = Object::new(document.root()).map_err(|error| unusable(error.to_string()))?;
    let value = |key: &str| decoded(&object, key);
    let (cluster, fingerprint) = match secret.tool {
        ClusterSecretTool::ArgoCd => {
            let server = value("server")?.unwrap_or_default();
            let server = String::from_utf8(server)
                .map_err(|_| unusable("the key server of the Secret is not text".to_owned()))?;
            // Argo CD takes a Secret without it for one without credentials.
            let config = value("config")?.unwrap_or_else(|| b"{}".to_vec());
            let fingerprint = hasher.hash_one((&server, &config));
            let named = ArgoClusterSecret { server: &server, config: &config };
            (named.cluster(&secret.name, guard)?, fingerprint)
        }
        ClusterSecretTool::ClusterApi | ClusterSecretTool::Flux => {
            let mut kubeconfig = None;
            for key in &secret.keys {
                kubeconfig = value(key)?;
                if kubeconfig.is_some() {
                    break;
                }
            }
            let Some(kubeconfig) = kubeconfig else {
                return Err(unusable(format!("the Secret has no key {}", secret.keys.join(" or "))));
            };
            let cluster = SecretCluster::from_kubeconfig(&secret.name, &kubeconfig, guard)?;
            (cluster, hasher.hash_one(&kubeconfig))
        }
    };
    Ok(match cluster {
        SecretCluster::Other(context) => SecretRead::Other { context, fingerprint },
        SecretCluster::Home => SecretRead::Home,
        // A sort that this version does not know.
        _ => SecretRead::Absent,
    })
}

/// Returns the value of a key of a Secret; `None` if it has no such key. Fails if the value is too large or not base64.
fn decoded(secret: &Object<'_>, key: &str) -> Result<Option<Vec<u8>>, SecretClusterError> {
    let Some(encoded) = secret.at(&["data", key]).and_then(|value| value.as_str()) else { return Ok(None) };
    let encoded = encoded.trim();
    let bytes = encoded.len() / 4 * 3;
    // Padding counts up to two bytes.
    if bytes > MAX_SECRET_KUBECONFIG_BYTES + 2 {
        return Err(SecretClusterError::TooLarge { bytes });
    }
    let decoded = STANDARD.decode(encoded);
    decoded
        .map(Some)
        .map_err(|_| SecretClusterError::Unusable(format!("the key {key} of the Secret is not base64")))
}
