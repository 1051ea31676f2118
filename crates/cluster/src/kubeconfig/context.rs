//! A context: the address of its cluster and the credentials for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug, Formatter};
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use kube::config::{AuthInfo, Cluster, Config, ExecConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;
use serde_json::{Map, Value};
use taffrail_object::selector::{MAX_LABELS, invalid_label};

use super::IN_CLUSTER;
use super::error::KubeconfigError;
use super::file::{Named, without_values};
use crate::error::{BoxError, one_line};
use crate::exec_plugin::Plugins;
use crate::found::AddressGuard;
use crate::memory::Memory;
use crate::proxy::{EnvironmentProxies, is_loopback, proxy_uri};

/// The name under which every cluster serves its API to its Pods; the server's certificate includes it.
const IN_CLUSTER_SERVER: &str = "https://kubernetes.default.svc";

/// The name of the extension of a context whose value, a map of texts, has the labels of its cluster.
const LABELS: &str = "taffrail.dev/labels";

/// The settings for connecting to one cluster as one user.
#[derive(Clone)]
pub struct Context {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// Settings for kube's layers. Its `auth_info` never has an exec plugin: kube would run that on the calling thread,
    /// several times and without a limit.
    ///
    /// Shared by all copies of the context, of which each cluster has several.
    pub(crate) config: Arc<Config>,
    pub(crate) exec: Option<ExecConfig>,
    pub(crate) memory: Memory,
    pub(crate) plugins: Plugins,
    /// The check of each address that is dialled; `None` where the user's own kubeconfig names the server.
    pub(crate) guard: Option<AddressGuard>,
    /// True if lasting requests share the connection of the others; see [`Context::with_one_connection`].
    pub(crate) is_one_connection: bool,
}

// The configuration contains credentials.
impl Debug for Context {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("name", &self.name)
            .field("server", &self.server())
            .finish_non_exhaustive()
    }
}

impl Context {
    /// Returns the context's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the default namespace of commands: the context's own, or `default`.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the server's address as scheme, host, port and path, without user information.
    pub fn server(&self) -> String {
        let url = &self.config.cluster_url;
        let host = url.authority().map(|authority| authority.as_str().rsplit('@').next().unwrap_or_default());
        let path = url.path().trim_end_matches('/');
        format!("{}://{}{path}", url.scheme_str().unwrap_or("https"), host.unwrap_or_default())
    }

    /// Returns in a few words why the server's identity is not verified: the part of [`Context::warning`] before its
    /// colon. `None` if it is verified, or if plain HTTP leads to a server on this machine.
    pub fn unverified(&self) -> Option<&'static str> {
        Some(self.warning()?.split(':').next().unwrap_or_default())
    }

    /// Returns a warning if the server's certificate is not verified, or if the connection is plain HTTP and crosses
    /// the network; else `None`.
    pub fn warning(&self) -> Option<&'static str> {
        match self.config.cluster_url.scheme_str() {
            Some("http") if is_open(&self.config) => Some(
                "its server is reached over plain http: no credentials are sent, and anyone on the network may forge its answers",
            ),
            Some("https") if self.config.accept_invalid_certs => Some(
                "its server is not verified (insecure-skip-tls-verify): anyone on the network may forge its answers and obtain the credentials",
            ),
            _ => None,
        }
    }

    /// Returns true if `other` has the same server address, TLS server name, proxy and trusted certificates, and both
    /// or neither come from a Secret: a connection with the credentials of either reaches the same server.
    pub fn is_same_server(&self, other: &Context) -> bool {
        let place = |context: &Context| {
            let Config { cluster_url, root_cert, accept_invalid_certs, tls_server_name, proxy_url, .. } =
                (*context.config).clone();
            (cluster_url, root_cert, accept_invalid_certs, tls_server_name, proxy_url)
        };
        self.guard.is_some() == other.guard.is_some() && place(self) == place(other)
    }

    /// Returns the certificate authorities that alone may vouch for the server; `None` if the kubeconfig names none, or
    /// if the server is not verified.
    pub(crate) fn authorities(&self) -> Option<BTreeSet<Vec<u8>>> {
        let is_verified =
            self.config.cluster_url.scheme_str() == Some("https") && !self.config.accept_invalid_certs;
        let named = self.config.root_cert.as_ref().filter(|_| is_verified)?;
        Some(named.iter().cloned().collect())
    }

    /// Replaces the memory budget, by default that of the process.
    #[must_use]
    pub fn with_memory(self, memory: &Memory) -> Context {
        Context { memory: memory.clone(), ..self }
    }

    /// Has watches share the one connection of all other requests, if the server speaks HTTP/2, and keeps that
    /// connection small: responses are not compressed, TLS sessions are not resumed, and HTTP/2 pings are a minute
    /// apart. For clusters of which little is read and so many that connections are what they cost.
    #[must_use]
    pub fn with_one_connection(self) -> Context {
        Context { is_one_connection: true, ..self }
    }

    /// Returns true if responses may be compressed.
    pub(crate) fn compresses(&self) -> bool {
        !self.config.disable_compression && !self.is_one_connection
    }

    /// Replaces the registry of exec plugins, by default that of the process.
    #[must_use]
    pub fn with_plugins(self, plugins: &Plugins) -> Context {
        Context { plugins: plugins.clone(), ..self }
    }

    /// Sends requests through the proxy that the environment names, as kubectl does, unless the context has a
    /// `proxy-url`. Servers that a Secret names are never reached through a proxy.
    #[must_use]
    pub fn with_environment_proxies(mut self, proxies: &EnvironmentProxies) -> Context {
        if self.config.proxy_url.is_none() && self.guard.is_none() {
            let proxy = proxies.proxy_of(&self.config.cluster_url);
            Arc::make_mut(&mut self.config).proxy_url = proxy;
        }
        self
    }
}

/// Returns true if requests would cross the network unencrypted; then no credentials are sent, as in client-go.
pub(super) fn is_open(config: &Config) -> bool {
    let url = &config.cluster_url;
    url.scheme_str() == Some("http") && !(is_loopback(url) && config.proxy_url.is_none())
}

/// An entry of a kubeconfig and the context that uses it, for error messages.
pub(super) struct EntryPlace<'a> {
    pub(super) context: &'a str,
    pub(super) entry: &'a Named,
}

impl EntryPlace<'_> {
    pub(super) fn fails(&self, what: impl Into<String>) -> KubeconfigError {
        KubeconfigError::Unusable {
            context: self.context.to_owned(),
            file: self.entry.file.to_path_buf(),
            line: self.entry.line,
            what: what.into(),
            source: None,
        }
    }

    pub(super) fn caused(&self, what: impl Into<String>, cause: impl Into<BoxError>) -> KubeconfigError {
        let mut error = self.fails(what);
        if let KubeconfigError::Unusable { source, .. } = &mut error {
            *source = Some(cause.into());
        }
        error
    }

    /// Deserializes the body of the entry; fails if its name is defined twice or its body is malformed. `list` is
    /// `cluster` or `user`, for messages.
    pub(super) fn form<T: for<'de> Deserialize<'de>>(&self, list: &str) -> Result<T, KubeconfigError> {
        let name = &self.entry.name;
        if self.entry.twice {
            return Err(self.fails(format!("{list} \"{name}\" is defined twice in this file")));
        }
        T::deserialize(&self.entry.body).map_err(|error| {
            self.fails(format!("{list} \"{name}\" is malformed: {}", without_values(&error.to_string())))
        })
    }

    /// Returns the labels that the entry, of a context, gives to its cluster by the extension [`LABELS`]; none without
    /// it. Fails if their value is not a map of valid labels, or has more than [`MAX_LABELS`].
    pub(super) fn labels(&self) -> Result<BTreeMap<String, String>, KubeconfigError> {
        let extensions = self.entry.body.get("extensions").and_then(Value::as_array);
        let is_own = |extension: &&Value| extension.get("name").and_then(Value::as_str) == Some(LABELS);
        let own = extensions.and_then(|all| all.iter().find(is_own));
        let Some(labels) = own.and_then(|own| own.get("extension")) else { return Ok(BTreeMap::new()) };
        let labels: BTreeMap<String, String> = BTreeMap::deserialize(labels).map_err(|_| {
            self.fails(format!("its extension {LABELS} is not a map of texts, such as region: eu"))
        })?;
        if labels.len() > MAX_LABELS {
            return Err(self.fails(format!("its extension {LABELS} has more than {MAX_LABELS} labels")));
        }
        let invalid = labels.iter().find_map(|(name, value)| Some((name, invalid_label(name, value)?)));
        match invalid {
            Some((name, why)) => {
                Err(self.fails(format!("the label {name} of its extension {LABELS}: {why}")))
            }
            None => Ok(labels),
        }
    }

    /// Returns the folder of the kubeconfig file that contains this entry, from which its relative paths start.
    fn folder(&self) -> &Path {
        self.entry.file.parent().unwrap_or(Path::new(""))
    }

    fn read(&self, field: &str, file: &str) -> Result<Vec<u8>, KubeconfigError> {
        let file = self.folder().join(file);
        std::fs::read(&file)
            .map_err(|error| self.caused(format!("cannot read {field} {}", file.display()), error))
    }

    /// Returns the base64-decoded `data` of the field `field`-data, or else the content of `file`, which `field`
    /// names; `None` if both are absent.
    fn data(
        &self,
        field: &str,
        data: Option<&str>,
        file: Option<&str>,
    ) -> Result<Option<Vec<u8>>, KubeconfigError> {
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            let text: String = data.split_ascii_whitespace().collect();
            return match STANDARD.decode(text) {
                Ok(bytes) => Ok(Some(bytes)),
                // The decoder's error would show a byte of what may be a key.
                Err(_) => {
                    Err(self.fails(format!("{field}-data of \"{}\" is not valid base64", self.entry.name)))
                }
            };
        }
        file.filter(|file| !file.is_empty()).map(|file| self.read(field, file)).transpose()
    }

    pub(super) fn server(&self, cluster: &mut Cluster) -> Result<Config, KubeconfigError> {
        let name = &self.entry.name;
        let server = cluster.server.as_deref().unwrap_or_default().trim();
        if server.is_empty() {
            return Err(self.fails(format!("cluster \"{name}\" has no server")));
        }
        let authorities = self.data(
            "certificate-authority",
            cluster.certificate_authority_data.as_deref(),
            cluster.certificate_authority.as_deref(),
        )?;
        let insecure = cluster.insecure_skip_tls_verify.unwrap_or(false);

        // Messages must not contain a password.
        let shown = server.rsplit('@').next().unwrap_or_default();
        // As in client-go, an address without a scheme uses TLS if any TLS option is set.
        let url = match server.contains("://") {
            true => server.to_owned(),
            false if insecure || authorities.is_some() => format!("https://{server}"),
            false => format!("http://{server}"),
        };
        let uri = url
            .parse::<Uri>()
            .map_err(|error| self.caused(format!("server \"{shown}\" is not a URL"), error))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
            return Err(self.fails(format!("server \"{shown}\" is not an http or https URL")));
        }

        let mut config = Config::new(uri);
        config.accept_invalid_certs = insecure;
        config.tls_server_name = cluster.tls_server_name.clone().filter(|name| !name.is_empty());
        config.disable_compression = cluster.disable_compression.unwrap_or(false);
        if insecure && authorities.is_some() {
            return Err(self.fails(format!(
                "cluster \"{name}\" has both insecure-skip-tls-verify and a certificate-authority: only one can be meant"
            )));
        }
        if let Some(pem) = authorities {
            let found: Vec<Vec<u8>> = CertificateDer::pem_slice_iter(&pem)
                .flatten()
                .map(|certificate| certificate.to_vec())
                .collect();
            if found.is_empty() {
                return Err(
                    self.fails(format!("certificate-authority of \"{name}\" holds no PEM certificate"))
                );
            }
            config.root_cert = Some(found);
            // The exec plugin receives this as part of the cluster's description.
            cluster.certificate_authority_data = Some(STANDARD.encode(&pem));
        }
        if let Some(proxy) = cluster.proxy_url.as_deref().filter(|proxy| !proxy.is_empty()) {
            config.proxy_url = Some(proxy_uri(proxy).ok_or_else(|| {
                self.fails(format!("proxy-url of \"{name}\" is not an http, https or socks5 URL"))
            })?);
        }
        Ok(config)
    }

    /// Checks the user's credentials. Replaces the names of certificate and key files by their contents, and starts the
    /// paths of the token file and of the exec plugin at the kubeconfig's folder.
    pub(super) fn credentials(&self, user: &mut AuthInfo) -> Result<(), KubeconfigError> {
        let name = &self.entry.name;
        if let Some(provider) = &user.auth_provider
            && provider.name != "oidc"
        {
            return Err(self.fails(format!(
                "user \"{name}\" has auth-provider \"{}\", which Kubernetes has replaced by exec plugins",
                one_line(&provider.name, 40)
            )));
        }
        if let Some(file) = user.token_file.take().filter(|file| !file.is_empty()) {
            if user.token.is_none() {
                self.read("tokenFile", &file)?;
            }
            user.token_file = Some(self.folder().join(file).to_string_lossy().into_owned());
        }
        let certificate = self.data(
            "client-certificate",
            user.client_certificate_data.as_deref(),
            user.client_certificate.as_deref(),
        )?;
        let key_data = self.entry.body.get("client-key-data").and_then(Value::as_str);
        let key = self.data("client-key", key_data, user.client_key.as_deref())?;
        match (certificate, key) {
            (None, None) => {}
            (Some(_), None) => {
                return Err(self.fails(format!("user \"{name}\" has a client certificate and no key")));
            }
            (None, Some(_)) => {
                return Err(self.fails(format!("user \"{name}\" has a client key and no certificate")));
            }
            (Some(certificate), Some(key)) => {
                if !CertificateDer::pem_slice_iter(&certificate).any(|found| found.is_ok()) {
                    return Err(
                        self.fails(format!("client-certificate of \"{name}\" holds no PEM certificate"))
                    );
                }
                if PrivateKeyDer::from_pem_slice(&key).is_err() {
                    return Err(self.fails(format!("client-key of \"{name}\" holds no PEM key")));
                }
                user.client_certificate_data = Some(STANDARD.encode(certificate));
                user.client_key_data = Some(STANDARD.encode(key).into());
            }
        }
        if let Some(exec) = &mut user.exec {
            let Some(command) = exec.command.as_deref().filter(|command| !command.is_empty()) else {
                return Err(self.fails(format!("exec of user \"{name}\" has no command")));
            };
            // A bare name is found on PATH; anything else is relative to the kubeconfig.
            if command.contains(std::path::MAIN_SEPARATOR) {
                exec.command = Some(self.folder().join(command).to_string_lossy().into_owned());
            }
        }
        Ok(())
    }
}

/// Returns the context of the cluster whose Pod this process runs in; `folder` contains the service account's files.
pub(super) fn in_cluster(folder: &Path) -> Result<Context, KubeconfigError> {
    let token = folder.join("token");
    let namespace = std::fs::read_to_string(folder.join("namespace")).unwrap_or_default();
    let entry = Named {
        name: IN_CLUSTER.to_owned(),
        file: Arc::from(token.as_path()),
        line: 1,
        body: Value::Object(Map::new()),
        twice: false,
    };
    let place = EntryPlace { context: IN_CLUSTER, entry: &entry };
    place.read("token", "token")?;
    let mut cluster = Cluster {
        server: Some(IN_CLUSTER_SERVER.to_owned()),
        certificate_authority: Some("ca.crt".to_owned()),
        ..Cluster::default()
    };
    let mut config = place.server(&mut cluster)?;
    // kube rereads both files when they are rotated.
    config.root_cert_file = Some(folder.join("ca.crt"));
    config.auth_info.token_file = Some(token.to_string_lossy().into_owned());
    let namespace = if namespace.trim().is_empty() { "default" } else { namespace.trim() }.to_owned();
    config.default_namespace = namespace.clone();
    let (memory, plugins) = (Memory::process(), Plugins::process());
    let config = Arc::new(config);
    Ok(Context {
        name: IN_CLUSTER.to_owned(),
        namespace,
        config,
        exec: None,
        memory,
        plugins,
        guard: None,
        is_one_connection: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environments_proxy_is_for_other_machines() {
        let context = |server: &str| Context {
            name: "a".to_owned(),
            namespace: "default".to_owned(),
            config: Arc::new(Config::new(server.parse().unwrap())),
            exec: None,
            memory: Memory::process(),
            plugins: Plugins::process(),
            guard: None,
            is_one_connection: false,
        };
        let proxies = EnvironmentProxies {
            https: "http://u:p@proxy:3128".to_owned(),
            no_proxy: "inside.example".to_owned(),
            ..EnvironmentProxies::default()
        };
        let proxy = |server: &str| {
            let context = context(server).with_environment_proxies(&proxies);
            context.config.proxy_url.as_ref().map(ToString::to_string)
        };
        assert_eq!(proxy("https://api.example:6443").as_deref(), Some("http://u:p@proxy:3128/"));
        assert_eq!(proxy("https://api.inside.example:6443"), None);
        assert_eq!(proxy("https://127.0.0.1:6443"), None);
        assert_eq!(proxy("http://api.example:8080"), None);
    }
}
