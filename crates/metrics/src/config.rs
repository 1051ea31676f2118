//! The file that lists the metrics servers, and how to read each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};
use serde::Deserialize;
use serde_saphyr::Spanned;
use taffrail_apps::{Delivery, SyncState, is_check_name};
use taffrail_object::yaml::{self, YamlError};
use taffrail_status::Status;

use crate::template::Template;

/// The interval at which a server is read, unless the configuration sets another one.
const INTERVAL: Duration = Duration::from_secs(15);

/// The shortest and the longest interval at which a server may be read.
const INTERVALS: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(60)];

/// The interval at which a check is evaluated, unless the configuration sets another one; the shortest and the longest one.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
const CHECK_INTERVALS: [Duration; 2] = [Duration::from_secs(15), Duration::from_secs(3_600)];

/// The maximum number of queries for checks that a server gets in a minute, unless the configuration sets another one, and the
/// greatest one that it may set.
const CHECKS_PER_MINUTE: u32 = 60;
const MAX_CHECKS_PER_MINUTE: u32 = 6_000;

/// The maximum number of servers, of checks, and of mappings of one server.
const MAX_LISTED: usize = 100;

/// The maximum size of the file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The servers to read, and the checks that they evaluate.
#[derive(Debug, Clone, Default)]
pub struct MetricsConfig {
    /// The servers, in the order of the file.
    pub servers: Vec<ServerConfig>,
    /// The checks that apps may name.
    pub(crate) checks: Vec<CheckConfig>,
}

impl MetricsConfig {
    /// Returns true if there are checks that apps may name.
    pub fn has_checks(&self) -> bool {
        !self.checks.is_empty()
    }
}

/// A check that apps may name.
#[derive(Debug, Clone)]
pub(crate) struct CheckConfig {
    pub(crate) name: String,
    pub(crate) template: Template,
    /// The bound below which the value must be, if there is one.
    pub(crate) below: Option<f64>,
    /// The bound above which the value must be, if there is one.
    pub(crate) above: Option<f64>,
    /// The interval between two evaluations.
    pub(crate) interval: Duration,
    /// The names of the servers that evaluate it; empty for all.
    pub(crate) servers: BTreeSet<String>,
    /// The label with the cluster; `None` for that of the server.
    pub(crate) cluster_label: Option<String>,
}

/// A server, and how to read it.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The name by which messages and the hub call the server.
    pub name: String,
    /// The address of the API, with a path before `/api/v1` if the server has one.
    pub(crate) url: Uri,
    pub(crate) login: Option<Login>,
    pub(crate) tls: TlsFiles,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) cluster_label: String,
    /// The name of the cluster of series without the label; `None` to refuse such series.
    pub(crate) cluster: Option<String>,
    /// The interval between the starts of two reads.
    pub(crate) interval: Duration,
    /// Label matchers that are added to each query; may be empty.
    pub(crate) matchers: String,
    pub(crate) families: BTreeSet<Family>,
    /// The names of clusters by the addresses of their API servers, as Argo CD names destinations.
    pub(crate) destinations: BTreeMap<String, String>,
    pub(crate) mappings: Vec<Mapping>,
    /// The maximum number of queries for checks in a minute.
    pub(crate) checks_per_minute: u32,
}

/// The way in which a server knows the hub.
#[derive(Debug, Clone)]
pub(crate) enum Login {
    /// A file with a bearer token.
    Bearer(PathBuf),
    /// A user name, and a file with the password.
    Basic(String, PathBuf),
}

/// The files for TLS, all in PEM.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TlsFiles {
    /// The certificate authorities to trust instead of those of the system.
    pub(crate) ca_file: Option<PathBuf>,
    /// The certificate of the hub, with those of its issuers.
    pub(crate) cert_file: Option<PathBuf>,
    /// The private key of that certificate.
    pub(crate) key_file: Option<PathBuf>,
}

/// A family of metrics whose meaning is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// The metrics of another hub of Taffrail.
    Taffrail,
    /// The metrics of Argo CD's application controller.
    ArgoCd,
    /// The metrics of Flux, by its controllers or by kube-state-metrics.
    Flux,
    /// The metrics of Config Sync.
    ConfigSync,
    /// Custom resource state of kube-state-metrics.
    KubeStateMetrics,
}

impl Family {
    /// All families.
    pub const ALL: [Family; 5] =
        [Family::Taffrail, Family::ArgoCd, Family::Flux, Family::ConfigSync, Family::KubeStateMetrics];

    /// The families that are read unless the configuration names some. Not that of other hubs: their exporters name the
    /// cluster of each series themselves, so whatever is scraped could speak for every cluster.
    pub const USUAL: [Family; 4] =
        [Family::ArgoCd, Family::Flux, Family::ConfigSync, Family::KubeStateMetrics];

    /// Returns the name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Family::Taffrail => "taffrail",
            Family::ArgoCd => "argo-cd",
            Family::Flux => "flux",
            Family::ConfigSync => "config-sync",
            Family::KubeStateMetrics => "kube-state-metrics",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The meaning of a metric of another tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Mapping {
    /// The name of the metric.
    pub(crate) metric: Spanned<String>,
    /// Further label matchers; may be empty.
    #[serde(default)]
    pub(crate) matchers: String,
    /// The delivery of the apps.
    #[serde(deserialize_with = "delivery")]
    pub(crate) delivery: Delivery,
    pub(crate) labels: MappedLabels,
    pub(crate) health: Option<MappedWord<Status>>,
    pub(crate) sync: Option<MappedWord<SyncState>>,
    /// The label with the applied revision.
    pub(crate) revision: Option<String>,
    pub(crate) suspended: Option<MappedWord<bool>>,
}

/// The labels that name an app.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MappedLabels {
    /// The label with the cluster; `None` for that of the server.
    pub(crate) cluster: Option<String>,
    /// The label with the namespace; `None` for apps without one.
    pub(crate) namespace: Option<String>,
    /// The label with the name.
    pub(crate) name: String,
}

/// The meaning of the values of a label, or of the sample if there is no label. Samples of a label count only with the
/// value 1.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, bound(deserialize = "T: Deserialize<'de>"))]
pub(crate) struct MappedWord<T> {
    pub(crate) label: Option<String>,
    pub(crate) values: BTreeMap<String, T>,
}

fn delivery<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Delivery, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

/// The reason why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the list of metrics servers in {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not YAML, or has a field that is unknown, missing or of another type.
    #[error("the list of metrics servers in {} is not valid", path.display())]
    Yaml {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: YamlError,
    },
    /// A value cannot be used.
    #[error("the list of metrics servers in {}:{line}: {message}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The error, with the value.
        message: String,
        /// The right form, for the user.
        hint: String,
    },
}

impl ConfigError {
    /// Returns what the user may write instead.
    pub fn hint(&self) -> String {
        match self {
            ConfigError::File { .. } => "name a file that lists servers: --metrics-from FILE".to_owned(),
            ConfigError::Yaml { .. } => "docs/metrics.md lists the fields and their values".to_owned(),
            ConfigError::Value { hint, .. } => hint.clone(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenConfig {
    servers: Vec<Spanned<WrittenServer>>,
    #[serde(default)]
    checks: Vec<WrittenCheck>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenCheck {
    name: Spanned<String>,
    query: Spanned<String>,
    below: Option<f64>,
    above: Option<f64>,
    interval: Option<Spanned<String>>,
    #[serde(default)]
    servers: BTreeSet<String>,
    cluster_label: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenServer {
    name: Spanned<String>,
    url: Spanned<String>,
    bearer_token_file: Option<PathBuf>,
    basic_auth: Option<WrittenBasic>,
    #[serde(default)]
    tls: TlsFiles,
    #[serde(default)]
    headers: BTreeMap<String, Spanned<String>>,
    cluster_label: Option<Spanned<String>>,
    cluster: Option<String>,
    interval: Option<Spanned<String>>,
    #[serde(default)]
    matchers: String,
    families: Option<BTreeSet<Family>>,
    #[serde(default)]
    destinations: BTreeMap<String, String>,
    #[serde(default)]
    mappings: Vec<Mapping>,
    checks_per_minute: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenBasic {
    username: String,
    password_file: PathBuf,
}

/// An error in a value: its line, the message and the hint.
type Fault = (u64, String, String);

impl MetricsConfig {
    /// Reads the file `path`. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// If the file cannot be read, or has a field or a value that cannot be used.
    pub fn read(path: &Path) -> Result<MetricsConfig, ConfigError> {
        let file = |source| ConfigError::File { path: path.to_owned(), source };
        let size = std::fs::metadata(path).map_err(file)?.len();
        if size > MAX_FILE {
            return Err(file(std::io::Error::other(format!("the file is longer than {MAX_FILE} bytes"))));
        }
        MetricsConfig::parse(&std::fs::read_to_string(path).map_err(file)?, path)
    }

    /// Parses the text of the file `path`.
    ///
    /// # Errors
    /// If it has a field or a value that cannot be used.
    pub fn parse(text: &str, path: &Path) -> Result<MetricsConfig, ConfigError> {
        let written: WrittenConfig =
            yaml::read_strict(text).map_err(|source| ConfigError::Yaml { path: path.to_owned(), source })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        servers(written, folder).map_err(|(line, message, hint)| ConfigError::Value {
            path: path.to_owned(),
            line,
            message,
            hint,
        })
    }
}

fn servers(written: WrittenConfig, folder: &Path) -> Result<MetricsConfig, Fault> {
    let mut servers: Vec<ServerConfig> = Vec::new();
    if written.servers.is_empty() {
        return Err((
            1,
            "there is no server".to_owned(),
            "list servers, each with a name and a url".to_owned(),
        ));
    }
    for server in written.servers {
        let line = server.referenced.line();
        if servers.len() >= MAX_LISTED {
            return Err((
                line,
                format!("there are more than {MAX_LISTED} servers"),
                "use several hubs".to_owned(),
            ));
        }
        let server = server_config(server.value, line, folder)?;
        if servers.iter().any(|other| other.name == server.name) {
            let message = format!("two servers have the name '{}'", server.name);
            return Err((line, message, "give each server a name of its own".to_owned()));
        }
        servers.push(server);
    }
    let mut checks: Vec<CheckConfig> = Vec::new();
    for check in written.checks {
        let line = check.name.referenced.line();
        let check = check_config(check, &servers)?;
        if checks.len() >= MAX_LISTED {
            return Err((
                line,
                format!("there are more than {MAX_LISTED} checks"),
                "let several checks be one with parameters".to_owned(),
            ));
        }
        if checks.iter().any(|other| other.name == check.name) {
            let message = format!("two checks have the name '{}'", check.name);
            return Err((line, message, "give each check a name of its own".to_owned()));
        }
        checks.push(check);
    }
    Ok(MetricsConfig { servers, checks })
}

fn check_config(written: WrittenCheck, servers: &[ServerConfig]) -> Result<CheckConfig, Fault> {
    let WrittenCheck { name, query, below, above, interval, servers: asked, cluster_label } = written;
    let line = name.referenced.line();
    let name = name.value;
    if !is_check_name(&name) {
        let hint = "use up to 63 letters, digits, '-', '.' and '_'".to_owned();
        return Err((line, format!("'{name}' is not a name of a check"), hint));
    }
    let template = Template::parse(&query.value).map_err(|reason| {
        let message = format!("the query of the check '{name}' cannot be used: {reason}");
        let hint = "docs/metrics.md says what a query may have".to_owned();
        (query.referenced.line(), message, hint)
    })?;
    let bounds = [below, above];
    if bounds == [None, None] || bounds.into_iter().flatten().any(|bound| !bound.is_finite()) {
        let message = format!("the check '{name}' has no bound that is a number");
        return Err((line, message, "add below: NUMBER, above: NUMBER, or both".to_owned()));
    }
    let interval = match interval {
        None => CHECK_INTERVAL,
        Some(text) => duration(&text.value, CHECK_INTERVALS).ok_or_else(|| {
            let message = format!("'{}' is not an interval of a check", text.value);
            (text.referenced.line(), message, "write 15s to 1h".to_owned())
        })?,
    };
    if let Some(unknown) = asked.iter().find(|name| !servers.iter().any(|server| server.name == **name)) {
        let message =
            format!("the check '{name}' names the server '{unknown}', which the file does not list");
        return Err((line, message, "name servers of the file".to_owned()));
    }
    let cluster_label = match cluster_label {
        Some(label) if !is_label(&label.value) => {
            return Err(not_a_label(label.referenced.line(), &label.value));
        }
        label => label.map(|label| label.value),
    };
    Ok(CheckConfig { name, template, below, above, interval, servers: asked, cluster_label })
}

fn server_config(written: WrittenServer, line: u64, folder: &Path) -> Result<ServerConfig, Fault> {
    let WrittenServer {
        name,
        url,
        bearer_token_file,
        basic_auth,
        tls,
        headers,
        cluster_label,
        cluster,
        interval,
        matchers,
        families,
        destinations,
        mappings,
        checks_per_minute,
    } = written;
    let at = |path: PathBuf| folder.join(path);
    let is_name = |text: &str| {
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        !text.is_empty() && text.len() <= 63 && text.bytes().all(is_fit)
    };
    if !is_name(&name.value) {
        let message = format!("'{}' is not a name of a server", name.value);
        let hint = "use up to 63 letters, digits, '-', '.' and '_'".to_owned();
        return Err((name.referenced.line(), message, hint));
    }
    let address = uri(&url.value).ok_or_else(|| {
        let message = format!("'{}' is not the URL of a metrics server", without_login(&url.value));
        let hint = "write https://HOST[:PORT][/PATH], without user, query and the final /api/v1".to_owned();
        (url.referenced.line(), message, hint)
    })?;
    let login = match (bearer_token_file, basic_auth) {
        (Some(_), Some(_)) => {
            let message = format!("the server '{}' has both bearerTokenFile and basicAuth", name.value);
            return Err((line, message, "leave one of them out".to_owned()));
        }
        (Some(file), None) => Some(Login::Bearer(at(file))),
        (None, Some(basic)) => Some(Login::Basic(basic.username, at(basic.password_file))),
        (None, None) => None,
    };
    if tls.cert_file.is_some() != tls.key_file.is_some() {
        let message = format!("the server '{}' has only one of certFile and keyFile", name.value);
        return Err((line, message, "set both, or none".to_owned()));
    }
    let tls = TlsFiles {
        ca_file: tls.ca_file.map(at),
        cert_file: tls.cert_file.map(at),
        key_file: tls.key_file.map(at),
    };
    let headers = headers.into_iter().map(|(key, value)| header(&key, value)).collect::<Result<_, _>>()?;
    let cluster_label = match cluster_label {
        None => "cluster".to_owned(),
        Some(label) if is_label(&label.value) => label.value,
        Some(label) => return Err(not_a_label(label.referenced.line(), &label.value)),
    };
    let interval = match interval {
        None => INTERVAL,
        Some(text) => duration(&text.value, INTERVALS).ok_or_else(|| {
            let message = format!("'{}' is not an interval", text.value);
            (text.referenced.line(), message, "write 5s to 60s".to_owned())
        })?,
    };
    if mappings.len() > MAX_LISTED {
        return Err((
            line,
            format!("the server '{}' has more than {MAX_LISTED} mappings", name.value),
            "name the server twice, with a part of them each".to_owned(),
        ));
    }
    mappings.iter().try_for_each(check_mapping)?;
    let checks_per_minute = match checks_per_minute {
        None => CHECKS_PER_MINUTE,
        Some(number) if (1..=MAX_CHECKS_PER_MINUTE).contains(&number.value) => number.value,
        Some(number) => {
            let message = format!("checksPerMinute is {}", number.value);
            let hint = format!("write a number from 1 to {MAX_CHECKS_PER_MINUTE}");
            return Err((number.referenced.line(), message, hint));
        }
    };
    Ok(ServerConfig {
        name: name.value,
        url: address,
        login,
        tls,
        headers,
        cluster_label,
        cluster: cluster.filter(|cluster| !cluster.is_empty()),
        interval,
        matchers,
        families: families.unwrap_or_else(|| Family::USUAL.into()),
        destinations,
        mappings,
        checks_per_minute,
    })
}

fn check_mapping(mapping: &Mapping) -> Result<(), Fault> {
    let line = mapping.metric.referenced.line();
    let metric = &mapping.metric.value;
    if !is_metric(metric) {
        let message = format!("'{metric}' is not the name of a metric");
        return Err((
            line,
            message,
            "use letters, digits, '_' and ':', and put the rest into matchers".to_owned(),
        ));
    }
    let Mapping { labels, health, sync, suspended, revision, .. } = mapping;
    if health.is_none() && sync.is_none() && suspended.is_none() {
        let message = format!("the mapping of '{metric}' tells nothing");
        return Err((line, message, "add health, sync or suspended".to_owned()));
    }
    let words = [
        health.as_ref().and_then(|it| it.label.as_ref()),
        sync.as_ref().and_then(|it| it.label.as_ref()),
        suspended.as_ref().and_then(|it| it.label.as_ref()),
        revision.as_ref(),
        labels.cluster.as_ref(),
        labels.namespace.as_ref(),
        Some(&labels.name),
    ];
    match words.into_iter().flatten().find(|label| !is_label(label)) {
        Some(label) => Err(not_a_label(line, label)),
        None => Ok(()),
    }
}

fn not_a_label(line: u64, label: &str) -> Fault {
    let message = format!("'{label}' is not the name of a label");
    (line, message, "use letters, digits and '_', and no digit at the start".to_owned())
}

/// Returns true if a text can be the name of a metric that a query has without quotes.
pub(crate) fn is_metric(text: &str) -> bool {
    is_label(&text.replace(':', "_"))
}

fn is_label(text: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.bytes().all(is_fit) && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

/// Parses the address of a server; `None` if it is not one, or names a user or a query.
fn uri(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok()?;
    let is_plain = uri.query().is_none() && !uri.authority()?.as_str().contains('@');
    let is_known = matches!(uri.scheme_str(), Some("http" | "https"));
    (is_known && is_plain && uri.host().is_some_and(|host| !host.is_empty())).then_some(uri)
}

/// Returns a URL without the user and the password in it, for messages.
fn without_login(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://…@{rest}"),
        _ => url.to_owned(),
    }
}

fn header(key: &str, value: Spanned<String>) -> Result<(HeaderName, HeaderValue), Fault> {
    let line = value.referenced.line();
    let name = HeaderName::from_bytes(key.as_bytes());
    let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_str(&value.value)) else {
        let message = format!("the header '{key}' has a name or a value that HTTP does not allow");
        return Err((line, message, "write names and values in printable ASCII".to_owned()));
    };
    const OWN: [HeaderName; 5] = [
        http::header::AUTHORIZATION,
        http::header::HOST,
        http::header::CONTENT_LENGTH,
        http::header::CONTENT_TYPE,
        http::header::TRANSFER_ENCODING,
    ];
    if OWN.contains(&name) {
        let message = format!("the header '{key}' cannot be set");
        return Err((line, message, "name secrets by bearerTokenFile or basicAuth".to_owned()));
    }
    // It may be a key after all.
    value.set_sensitive(true);
    Ok((name, value))
}

fn duration(text: &str, [least, most]: [Duration; 2]) -> Option<Duration> {
    let read: jiff::SignedDuration = text.parse().ok()?;
    let read = Duration::try_from(read).ok()?;
    (least..=most).contains(&read).then_some(read)
}
