//! Clusters that the Secrets of another cluster, their *home*, name: kubeconfigs of Flux and Cluster API, and the
//! cluster Secrets of Argo CD.
//!
//! The authors of these Secrets are not trusted. What a Secret says runs no program, reads no file and uses no proxy,
//! and its credentials go, by https, only to its own server, whose address must not be one of this machine, its link or
//! its cloud. [`SecretCluster::from_kubeconfig`] and [`ArgoClusterSecret::cluster`] return a [`Context`] that holds to
//! that, so [`crate::Cluster::connect`] needs no other care. Credentials stay in memory, and `Debug` prints none.

pub(crate) mod address;
mod dial;
mod error;

use http::Uri;
use serde::Deserialize;
use serde_json::{Map, Value};
use taffrail_object::is_own_server;

pub use address::AddressClass;
pub use dial::{AddressGuard, Resolution};
pub use error::SecretClusterError;

use crate::error::one_line;
use crate::kubeconfig::{Context, Entries, KubeconfigError, NotChosen};

/// Maximum length in bytes of a kubeconfig, or of the configuration of an Argo CD cluster, in a Secret; a longer one
/// is refused unparsed.
pub const MAX_SECRET_KUBECONFIG_BYTES: usize = 256 << 10;

/// Maximum number of characters of a message about a defect, which may quote the Secret; a longer one is cut.
const MAX_MESSAGE: usize = 300;

/// The fields of a kubeconfig's cluster that are used; all others are removed unread.
const CLUSTER_FIELDS: [&str; 5] = [
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority-data",
    "disable-compression",
];

/// The fields of a kubeconfig's user that are used; all others are removed unread.
const USER_FIELDS: [&str; 9] = [
    "token",
    "username",
    "password",
    "client-certificate-data",
    "client-key-data",
    "as",
    "as-uid",
    "as-groups",
    "as-user-extra",
];

/// The cluster that a Secret names.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SecretCluster {
    /// The cluster that holds the Secret: the address is the one under which each cluster serves its own Pods.
    Home,
    /// Another cluster.
    Other(Box<Context>),
}

impl SecretCluster {
    /// Returns the cluster of a kubeconfig in a Secret: that of its current context, or, if it sets none, of its only
    /// context. `name` becomes the name of the context, and `guard` checks the addresses of the server.
    ///
    /// # Errors
    ///
    /// Returns an error if the kubeconfig is too long or malformed, names a program, a file or a proxy, or a server
    /// that is not reached by https, has a user in its URL or an address that does not pass `guard`.
    pub fn from_kubeconfig(
        name: &str,
        kubeconfig: &[u8],
        guard: &AddressGuard,
    ) -> Result<SecretCluster, SecretClusterError> {
        check_length(kubeconfig)?;
        let entries = Entries::choose(kubeconfig).map_err(|error| match error {
            NotChosen::Kubeconfig(error) => unusable(&error),
            NotChosen::Ambiguous(contexts) => SecretClusterError::Ambiguous { contexts },
            NotChosen::Broken(what) => SecretClusterError::Unusable(what.to_owned()),
            NotChosen::TooMany(most) => SecretClusterError::Unusable(format!(
                "the kubeconfig in the Secret has more than {most} contexts, clusters or users"
            )),
        })?;
        let is_set = |fields: &Map<String, Value>, field: &str| {
            fields.get(field).is_some_and(|value| !value.is_null() && value != "")
        };
        for program in ["exec", "auth-provider"] {
            if is_set(&entries.user, program) {
                return Err(SecretClusterError::Program(program));
            }
        }
        for file in ["tokenFile", "client-certificate", "client-key"] {
            if is_set(&entries.user, file) {
                return Err(SecretClusterError::File(file));
            }
        }
        if is_set(&entries.cluster, "certificate-authority") {
            return Err(SecretClusterError::File("certificate-authority"));
        }
        if is_set(&entries.cluster, "proxy-url") {
            return Err(SecretClusterError::Proxy("proxy-url"));
        }
        of_entries(name, entries, guard)
    }
}

/// The data of a cluster Secret of Argo CD, decoded from base64.
#[derive(Clone, Copy)]
pub struct ArgoClusterSecret<'a> {
    /// The value of the key `server`: the URL of the API server.
    pub server: &'a str,
    /// The value of the key `config`: JSON with credentials and TLS settings.
    pub config: &'a [u8],
}

// The configuration contains credentials.
impl std::fmt::Debug for ArgoClusterSecret<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArgoClusterSecret").finish_non_exhaustive()
    }
}

/// The JSON in the key `config` of a cluster Secret, Argo CD's `ClusterConfig`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct ArgoConfig {
    username: Option<String>,
    password: Option<String>,
    bearer_token: Option<String>,
    tls_client_config: Option<ArgoTls>,
    aws_auth_config: Option<Value>,
    exec_provider_config: Option<Value>,
    disable_compression: Option<bool>,
    proxy_url: Option<String>,
}

/// The TLS settings in it, Argo CD's `TLSClientConfig`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct ArgoTls {
    insecure: Option<bool>,
    server_name: Option<String>,
    cert_data: Option<String>,
    key_data: Option<String>,
    ca_data: Option<String>,
}

impl ArgoClusterSecret<'_> {
    /// Returns the cluster that this Secret names. `name` becomes the name of the context, and `guard` checks the
    /// addresses of the server. A Secret of the home itself needs no configuration.
    ///
    /// # Errors
    ///
    /// The same as for [`SecretCluster::from_kubeconfig`].
    pub fn cluster(&self, name: &str, guard: &AddressGuard) -> Result<SecretCluster, SecretClusterError> {
        if is_own_server(self.server) {
            return Ok(SecretCluster::Home);
        }
        check_length(self.config)?;
        // The decoder's error may quote a credential.
        let config: ArgoConfig = serde_json::from_slice(self.config).map_err(|error| {
            SecretClusterError::Unusable(format!(
                "the key config of the Secret is not the JSON of a cluster (line {})",
                error.line()
            ))
        })?;
        for (field, value) in
            [("execProviderConfig", &config.exec_provider_config), ("awsAuthConfig", &config.aws_auth_config)]
        {
            if value.is_some() {
                return Err(SecretClusterError::Program(field));
            }
        }
        if config.proxy_url.is_some_and(|proxy| !proxy.is_empty()) {
            return Err(SecretClusterError::Proxy("proxyUrl"));
        }
        let tls = config.tls_client_config.unwrap_or_default();
        let fields = |list: Vec<(&str, Option<Value>)>| -> Map<String, Value> {
            let set = list.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?)));
            set.collect()
        };
        let text = |value: Option<String>| value.filter(|text| !text.is_empty()).map(Value::String);
        let cluster = fields(vec![
            ("server", Some(Value::String(self.server.to_owned()))),
            ("tls-server-name", text(tls.server_name)),
            ("insecure-skip-tls-verify", tls.insecure.map(Value::Bool)),
            ("certificate-authority-data", text(tls.ca_data)),
            ("disable-compression", config.disable_compression.map(Value::Bool)),
        ]);
        let user = fields(vec![
            ("token", text(config.bearer_token)),
            ("username", text(config.username)),
            ("password", text(config.password)),
            ("client-certificate-data", text(tls.cert_data)),
            ("client-key-data", text(tls.key_data)),
        ]);
        of_entries(name, Entries { cluster, user }, guard)
    }
}

fn check_length(text: &[u8]) -> Result<(), SecretClusterError> {
    match text.len() {
        bytes if bytes > MAX_SECRET_KUBECONFIG_BYTES => Err(SecretClusterError::TooLarge { bytes }),
        _ => Ok(()),
    }
}

/// Returns the cluster of checked entries, of which only the known fields are used; fails if its URL is not https,
/// contains a user, or has an address that `guard` refuses.
fn of_entries(
    name: &str,
    mut entries: Entries,
    guard: &AddressGuard,
) -> Result<SecretCluster, SecretClusterError> {
    entries.cluster.retain(|field, _| CLUSTER_FIELDS.contains(&field.as_str()));
    entries.user.retain(|field, _| USER_FIELDS.contains(&field.as_str()));
    let server = entries.cluster.get("server").and_then(Value::as_str).unwrap_or_default().trim();
    if is_own_server(server) {
        return Ok(SecretCluster::Home);
    }
    let url: Option<Uri> = server.parse().ok();
    let url = url
        .filter(|url| url.scheme_str() == Some("https") && url.host().is_some_and(|host| !host.is_empty()));
    let url = url.ok_or(SecretClusterError::NotHttps)?;
    if url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(SecretClusterError::UserInUrl);
    }
    guard.check_literal(&url).map_err(|refused| SecretClusterError::Address(refused.class))?;
    let context = entries.context(name).map_err(|error| unusable(&error))?;
    Ok(SecretCluster::Other(Box::new(Context { guard: Some(guard.clone()), ..context })))
}

/// Makes the error about a defect of a kubeconfig, without the name of a file, which there is not.
fn unusable(error: &KubeconfigError) -> SecretClusterError {
    let what = match error {
        KubeconfigError::Malformed { line, what, .. } => format!("line {line} of the kubeconfig: {what}"),
        KubeconfigError::Unusable { what, .. } => what.clone(),
        KubeconfigError::NotText(_) => "the kubeconfig is not text".to_owned(),
        KubeconfigError::Empty(_) => "the kubeconfig is empty".to_owned(),
        other => other.to_string(),
    };
    SecretClusterError::Unusable(one_line(&what, MAX_MESSAGE))
}
