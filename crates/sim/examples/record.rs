//! Records the changes in a cluster as a timeline: `cargo xtask kube record NAME` runs it.
//!
//! Arguments: address, certificate authority file, seconds, output file; the token is in `TOKEN`. Every change of every
//! object is written with its time. Uids, addresses and host names are replaced, the same one always by the same; times
//! become relative to the beginning; values of Secrets are blanked, except those of Helm's releases if `KEEP_HELM` is
//! set.
//!
//! With `-` for the seconds it writes a history instead, until its standard input ends: a line of JSON for each change
//! in the order of their revisions, with original times and names. Details of this machine and secrets are removed
//! nevertheless. It prints `ready` once all watches are open.
#![expect(clippy::print_stdout, reason = "it says what it recorded")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::sync::mpsc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The plural names of kinds that a recording leaves out, because they say nothing about apps.
const NOISE: [&str; 3] = ["flowschemas", "prioritylevelconfigurations", "servicecidrs"];

/// The path of the list of Leases, which a recording of some seconds leaves out, because they change all the time.
const LEASES: &str = "/apis/coordination.k8s.io/v1/leases";

#[derive(Clone)]
struct Server {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    url: String,
    token: String,
}

/// A change of an object.
struct Change {
    /// The API path of the list of the object's kind.
    path: String,
    time: Timestamp,
    deleted: bool,
    object: Value,
    /// True if the object existed at the beginning.
    initial: bool,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, authority, seconds, file] = arguments.as_slice() else {
        return Err("arguments: URL CA-FILE SECONDS OUTPUT".into());
    };
    let server = Server::new(url, authority)?;
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let mut kinds = server.kinds().await?;
    if seconds == "-" {
        return history(&server, &kinds, file).await;
    }
    kinds.retain(|path| path != LEASES);
    let begun = Timestamp::now();
    for path in &kinds {
        let (server, path, sender) = (server.clone(), path.clone(), sender.clone());
        tokio::spawn(async move { server.follow(&path, &sender).await });
    }
    drop(sender);
    let mut changes: Vec<Change> = Vec::new();
    let end = tokio::time::sleep(Duration::from_secs(seconds.parse()?));
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut end => break,
            change = receiver.recv() => match change {
                Some(change) => changes.push(change),
                None => break,
            },
        }
    }
    // Kinds that others depend on come first, then the objects that existed at the beginning.
    changes.sort_by_key(|change| (!change.initial, if change.initial { rank(&change.object) } else { 0 }));
    let names = Names::of(&changes);
    let mut text = String::from("# Recorded by cargo xtask kube record.\n");
    for change in &changes {
        let at = if change.initial { 0.0 } else { change.time.duration_since(begun).as_secs_f64().max(0.0) };
        let object = names.anonymous(&change.object, begun);
        let step = if change.deleted {
            let metadata =
                json!({"name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"]});
            json!({"delete": {"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": metadata}})
        } else {
            json!({ "object": object })
        };
        let step = step.to_string();
        // JSON is valid YAML; a line for each step keeps diffs readable.
        let _ = writeln!(text, "- {{\"at\": \"{at:.3}s\", {}", step.get(1..).unwrap_or_default());
    }
    std::fs::write(file, text)?;
    let initial = changes.iter().filter(|change| change.initial).count();
    println!("{initial} objects and {} changes of {} kinds in {file}", changes.len() - initial, kinds.len());
    Ok(())
}

/// Writes all changes until standard input ends.
async fn history(server: &Server, kinds: &[String], file: &str) -> Result<(), Failure> {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let patience = tokio::time::Instant::now() + Duration::from_secs(30);
    for path in kinds {
        let (list, body) = loop {
            match server.list_and_watch(path).await {
                Ok(watch) => break watch,
                // A new custom resource is not served for a moment.
                Err(_) if tokio::time::Instant::now() < patience => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Err(error) => return Err(error),
            }
        };
        let (server, path, sender) = (server.clone(), path.clone(), sender.clone());
        tokio::spawn(async move { server.follow_on(&path, &list, body, &sender).await });
    }
    drop(sender);
    println!("ready");
    tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await??;

    let mut changes: Vec<Change> = Vec::new();
    let patience = tokio::time::Instant::now() + Duration::from_secs(30);
    while let Some(behind) = behind(server, kinds, &changes).await? {
        if tokio::time::Instant::now() > patience {
            return Err(format!("the watch of {behind} does not catch up with the list").into());
        }
        while let Ok(change) = receiver.try_recv() {
            changes.push(change);
        }
    }
    changes.sort_by_key(|change| {
        (!change.initial, if change.initial { rank(&change.object).into() } else { revision(&change.object) })
    });
    let machine = Machine {
        name: std::fs::read_to_string("/proc/sys/kernel/hostname")?.trim().to_owned(),
        address: server.url.trim_start_matches("https://").to_owned(),
    };
    let mut text = String::new();
    for change in &changes {
        let line = json!({
            "revision": revision(&change.object), "time": change.time, "initial": change.initial, "deleted": change.deleted,
            "object": machine.hidden(bare(change.object.clone())),
        });
        let _ = writeln!(text, "{line}");
    }
    std::fs::write(file, text)?;
    Ok(())
}

/// Returns the path of a kind that has an object whose current revision `changes` does not contain yet, or a deletion
/// that it lacks; `None` if there is none.
async fn behind<'a>(
    server: &Server,
    kinds: &'a [String],
    changes: &[Change],
) -> Result<Option<&'a str>, Failure> {
    let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    for path in kinds {
        let mut known = BTreeMap::new();
        for change in changes.iter().filter(|change| change.path == *path) {
            let version = revision(&change.object);
            match change.deleted {
                true => known.remove(&uid(&change.object)),
                false => known.insert(uid(&change.object), version),
            };
        }
        let list = server.json(path, "application/json").await?;
        for item in list["items"].as_array().into_iter().flatten() {
            if known.remove(&uid(item)).is_none_or(|version| version < revision(item)) {
                return Ok(Some(path));
            }
        }
        if known.values().any(|version| *version <= revision(&list)) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Returns the revision of an object or a list.
fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}

/// The strings that identify the machine of a recording.
struct Machine {
    name: String,
    /// The address of the API server, without scheme.
    address: String,
}

impl Machine {
    /// Returns `value` with the name and the address of the machine replaced in all its texts, and with empty texts in
    /// place of PEM blocks; leaves Secrets as they are.
    fn hidden(&self, value: Value) -> Value {
        match value {
            Value::String(text) if text.starts_with("-----BEGIN ") => json!(""),
            Value::String(text) => json!(self.hidden_in(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.hidden(item)).collect(),
            // Helm's data are encoded, and text in them that looks like a name is not one.
            Value::Object(members) if members.get("kind").is_some_and(|kind| kind == "Secret") => {
                Value::Object(members)
            }
            Value::Object(members) => {
                members.into_iter().map(|(key, value)| (key, self.hidden(value))).collect()
            }
            other => other,
        }
    }

    fn hidden_in(&self, text: &str) -> String {
        // API servers use a hash of the machine's name as their identity, 26 letters long.
        let text = match text.strip_prefix("apiserver-").and_then(|rest| rest.get(26..)) {
            Some(rest) => format!("apiserver-1{rest}"),
            None => text.replace(&self.address, "127.0.0.1:6443"),
        };
        if self.name.is_empty() {
            return text;
        }
        let in_word =
            |character: Option<char>| character.is_some_and(|character| character.is_ascii_alphanumeric());
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find(&self.name) {
            let end = at + self.name.len();
            let before = rest[..at].chars().next_back().or(out.chars().next_back());
            let is_word = !in_word(before) && !in_word(rest[end..].chars().next());
            out.push_str(&rest[..at]);
            out.push_str(if is_word { "host" } else { &self.name });
            rest = &rest[end..];
        }
        out + rest
    }
}

/// Removes the resourceVersion of an object, and blanks the values in `data` of a Secret; keeps those of Helm's
/// releases if the variable `KEEP_HELM` is set.
fn bare(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    let keep = object["type"] == "helm.sh/release.v1" && std::env::var_os("KEEP_HELM").is_some();
    if object["kind"] == "Secret" && !keep {
        for value in object["data"].as_object_mut().into_iter().flat_map(|data| data.values_mut()) {
            *value = json!("");
        }
    }
    object
}

fn rank(object: &Value) -> u8 {
    match object["kind"].as_str() {
        Some("CustomResourceDefinition") => 0,
        Some("Namespace") => 1,
        _ => 2,
    }
}

impl Server {
    fn new(url: &str, authority: &str) -> Result<Server, Failure> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority)?)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let tls = tls.with_root_certificates(roots).with_no_client_auth();
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http2().build();
        let client = Client::builder(TokioExecutor::new()).http2_only(true).build(connector);
        Ok(Server { client, url: url.to_owned(), token: std::env::var("TOKEN")? })
    }

    async fn open(&self, path: &str, accept: &str) -> Result<Incoming, Failure> {
        let request = Request::builder().uri(format!("{}{path}", self.url)).header("accept", accept);
        let request = request.header("authorization", format!("Bearer {}", self.token)).body(Empty::new())?;
        let response = self.client.request(request).await?;
        if !response.status().is_success() {
            return Err(format!("{path}: {}", response.status()).into());
        }
        Ok(response.into_body())
    }

    async fn json(&self, path: &str, accept: &str) -> Result<Value, Failure> {
        let body = self.open(path, accept).await?.collect().await?.to_bytes();
        Ok(serde_json::from_slice(&body)?)
    }

    /// Lists the paths of everything that can be watched, each kind once.
    async fn kinds(&self) -> Result<Vec<String>, Failure> {
        const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let mut paths = Vec::new();
        for (root, prefix) in [("/api", "/api"), ("/apis", "/apis")] {
            let found = self.json(root, AGGREGATED).await?;
            for group in found["items"].as_array().into_iter().flatten() {
                let name = group["metadata"]["name"].as_str().unwrap_or_default();
                // Events are served twice; the preferred version of each group is the first.
                let version = &group["versions"][0];
                for resource in version["resources"].as_array().into_iter().flatten() {
                    let plural = resource["resource"].as_str().unwrap_or_default();
                    let watched = resource["verbs"]
                        .as_array()
                        .is_some_and(|verbs| verbs.iter().any(|verb| verb == "watch"));
                    if !watched || NOISE.contains(&plural) || name == "events.k8s.io" {
                        continue;
                    }
                    let version = version["version"].as_str().unwrap_or_default();
                    paths.push(match name {
                        "" => format!("{prefix}/{version}/{plural}"),
                        name => format!("{prefix}/{name}/{version}/{plural}"),
                    });
                }
            }
        }
        Ok(paths)
    }

    /// Sends each object of the list at `path`, and then every change of them, until the receiver is closed; sends
    /// nothing if the kind cannot be watched.
    async fn follow(&self, path: &str, sender: &mpsc::UnboundedSender<Change>) {
        // A kind that cannot be watched is left out; the others are recorded nevertheless.
        if let Ok((list, body)) = self.list_and_watch(path).await {
            let _ = self.follow_on(path, &list, body, sender).await;
        }
    }

    /// Requests the list at `path`, and opens a watch that continues from its revision; returns both.
    async fn list_and_watch(&self, path: &str) -> Result<(Value, Incoming), Failure> {
        let list = self.json(path, "application/json").await?;
        let body = self.watch(path, revision(&list)).await?;
        Ok((list, body))
    }

    async fn watch(&self, path: &str, since: u64) -> Result<Incoming, Failure> {
        self.open(&format!("{path}?watch=1&resourceVersion={since}"), "application/json").await
    }

    async fn follow_on(
        &self,
        path: &str,
        list: &Value,
        mut body: Incoming,
        sender: &mpsc::UnboundedSender<Change>,
    ) -> Result<(), Failure> {
        let send = |initial, deleted, object| {
            sender.send(Change { path: path.to_owned(), time: Timestamp::now(), deleted, object, initial })
        };
        let kind = list["kind"].as_str().unwrap_or_default().trim_end_matches("List");
        for item in list["items"].as_array().into_iter().flatten() {
            let mut object = item.clone();
            object["kind"] = json!(kind);
            object["apiVersion"] = list["apiVersion"].clone();
            send(true, false, object)?;
        }
        let mut since = revision(list);
        loop {
            let mut rest = Vec::new();
            while let Some(Ok(frame)) = body.frame().await {
                if let Ok(data) = frame.into_data() {
                    rest.extend_from_slice(&data);
                }
                while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = rest.drain(..=end).collect();
                    let event: Value = serde_json::from_slice(&line)?;
                    let deleted = event["type"] == "DELETED";
                    if deleted || event["type"] == "ADDED" || event["type"] == "MODIFIED" {
                        since = revision(&event["object"]);
                        send(false, deleted, event["object"].clone())?;
                    } else if event["type"] == "ERROR" {
                        return Err(format!("{path}: {}", event["object"]).into());
                    }
                }
            }
            // The server ends watches whose initial objects are read too slowly.
            body = self.watch(path, since).await?;
        }
    }
}

/// The replacements of uids, addresses and names of nodes, by the original text.
struct Names(BTreeMap<String, String>);

impl Names {
    fn of(changes: &[Change]) -> Names {
        let mut names = BTreeMap::new();
        let mut nodes = 0;
        for change in changes {
            if change.object["kind"] == "Node" {
                let node = change.object["metadata"]["name"].as_str().unwrap_or_default();
                names.entry(node.to_owned()).or_insert_with(|| {
                    nodes += 1;
                    format!("node-{nodes}")
                });
            }
            collect(&change.object, &mut names);
        }
        Names(names)
    }

    /// Returns an object with its uids, addresses and names of nodes replaced, with times relative to `begun`, and
    /// without resourceVersion, managedFields and the values of Secrets.
    fn anonymous(&self, object: &Value, begun: Timestamp) -> Value {
        let mut object = bare(self.replaced(object, begun));
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        object
    }

    fn replaced(&self, value: &Value, begun: Timestamp) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text, begun)),
            Value::Array(items) => items.iter().map(|item| self.replaced(item, begun)).collect(),
            Value::Object(members) => {
                members.iter().map(|(key, value)| (key.clone(), self.replaced(value, begun))).collect()
            }
            plain => plain.clone(),
        }
    }

    fn text(&self, text: &str, begun: Timestamp) -> String {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        if text.starts_with("-----BEGIN ") {
            return String::new();
        }
        // Times become relative to the beginning, so that a replay can begin at any time.
        if text.len() >= 20
            && text.ends_with('Z')
            && let Ok(time) = text.parse::<Timestamp>()
        {
            let seconds = time.duration_since(begun).as_secs();
            let sign = if seconds < 0 { '-' } else { '+' };
            return format!("${{START{sign}{}s}}", seconds.abs());
        }
        // Messages contain uids and addresses too.
        let long = self.0.iter().filter(|(name, _)| name.len() >= 7 && text.contains(name.as_str()));
        long.fold(text.to_owned(), |text, (name, other)| text.replace(name.as_str(), other))
    }
}

/// Adds to `names` a replacement for each uid and each IPv4 address in the texts of `value`, at any depth.
fn collect(value: &Value, names: &mut BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            let number = names.len();
            let parts: Vec<&str> = text.split('-').collect();
            let hex = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
            let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
            if lengths == [8, 4, 4, 4, 12] && parts.iter().all(hex) {
                names.entry(text.clone()).or_insert_with(|| format!("00000000-0000-4000-8000-{number:012x}"));
            } else if let Ok(address) = text.parse::<std::net::Ipv4Addr>()
                && !address.is_unspecified()
                && !address.is_loopback()
            {
                let (high, low) = (number / 250 % 250, number % 250 + 1);
                names.entry(text.clone()).or_insert_with(|| format!("10.200.{high}.{low}"));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Object(members) => members.values().for_each(|value| collect(value, names)),
        _ => {}
    }
}
