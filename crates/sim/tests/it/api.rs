//! A plain HTTP client, for the simulated server and the real one alike.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
pub(crate) const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
pub(crate) const PARTIALS: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The maximum time to wait for an expected event.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);

type Sender = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// An API server and two of its users: an administrator, and `reader` of the group `readers`, without roles.
#[derive(Clone)]
pub(crate) struct Api {
    client: Sender,
    pub(crate) url: String,
    pub(crate) admin: String,
    pub(crate) reader: String,
    authority: String,
    next: Arc<AtomicUsize>,
    pub(crate) patience: Duration,
}

/// A request to send.
#[derive(Clone)]
pub(crate) struct Call<'a> {
    api: &'a Api,
    method: Method,
    path: String,
    headers: Vec<(&'static str, String)>,
    token: Option<String>,
    body: Vec<u8>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) bytes: Bytes,
    pub(crate) body: Value,
    what: String,
}

/// An open watch.
pub(crate) struct Watch {
    body: Incoming,
    rest: Vec<u8>,
    pub(crate) headers: HeaderMap,
    patience: Duration,
}

impl Api {
    pub(crate) fn new(url: &str, authority: &str, admin: &str, reader: &str) -> Api {
        Api::speaking(url, authority, admin, reader, &[b"h2", b"http/1.1"])
    }

    pub(crate) fn speaking(
        url: &str,
        authority: &str,
        admin: &str,
        reader: &str,
        protocols: &[&[u8]],
    ) -> Api {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let tls = tls.with_root_certificates(roots).with_no_client_auth();
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_only();
        let connector = match protocols {
            [_, _] => builder.enable_http1().enable_http2().build(),
            [one] if *one == b"h2" => builder.enable_http2().build(),
            _ => builder.enable_http1().build(),
        };
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Api {
            client,
            url: url.to_owned(),
            admin: admin.to_owned(),
            reader: reader.to_owned(),
            authority: authority.to_owned(),
            next: Arc::default(),
            patience: MAX_WAIT,
        }
    }

    /// Returns a client of the same server with connections of its own.
    pub(crate) fn apart(&self) -> Api {
        let fresh = Api::new(&self.url, &self.authority, &self.admin, &self.reader);
        Api { client: fresh.client, ..self.clone() }
    }

    /// Returns a name that begins with `prefix` and is unique among all tests.
    pub(crate) fn unique(&self, prefix: &str) -> String {
        format!("{prefix}-{}-{}", std::process::id(), self.next.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn call(&self, method: Method, path: &str) -> Call<'_> {
        let path = path.to_owned();
        Call {
            api: self,
            method,
            path,
            headers: Vec::new(),
            token: Some(self.admin.clone()),
            body: Vec::new(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Reply> {
        self.call(Method::GET, path).send().await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Result<Reply> {
        self.call(Method::GET, path).header("accept", accept).send().await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Result<Reply> {
        self.call(Method::POST, path).json(body).send().await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Result<Reply> {
        self.call(Method::PUT, path).json(body).send().await
    }

    pub(crate) async fn patch(&self, path: &str, form: &'static str, body: Value) -> Result<Reply> {
        self.call(Method::PATCH, path).body(form, body.to_string()).send().await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Reply> {
        self.call(Method::DELETE, path).send().await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: Value) -> Result<Reply> {
        self.call(Method::DELETE, path).json(options).send().await
    }

    pub(crate) async fn watch(&self, path: &str) -> Result<Watch> {
        self.watch_as(path, JSON).await
    }

    pub(crate) async fn watch_as(&self, path: &str, accept: &str) -> Result<Watch> {
        let call = self.call(Method::GET, path).header("accept", accept);
        let response = call.open().await?;
        ensure!(response.status() == 200, "watch {path}: {}", response.status());
        let headers = response.headers().clone();
        Ok(Watch { body: response.into_body(), rest: Vec::new(), headers, patience: self.patience })
    }

    /// Creates a namespace and returns its name.
    pub(crate) async fn namespace(&self) -> Result<String> {
        let name = self.unique("conf");
        self.post("/api/v1/namespaces", json!({"metadata": {"name": name}})).await?.ok()?;
        Ok(name)
    }

    /// Returns the path of the ConfigMaps of a new namespace.
    pub(crate) async fn maps(&self) -> Result<String> {
        Ok(format!("/api/v1/namespaces/{}/configmaps", self.namespace().await?))
    }

    /// Defines a kind `Widget` in a group of its own and waits until it is served; `change` may change the definition
    /// before. Returns the names, and the path of its version `v1` in a new namespace.
    pub(crate) async fn widgets(&self, change: impl FnOnce(&mut Value)) -> Result<Widgets> {
        let group = format!("{}.example.com", self.unique("g"));
        let mut definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("widgets.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["wd"]},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {
                                "size": {"type": "integer", "minimum": 0}, "color": {"type": "string", "enum": ["red", "blue"]},
                                "shape": {"type": "string", "default": "round"}, "replicas": {"type": "integer"},
                            }},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        },
                    }},
                }],
            },
        });
        change(&mut definition);
        let name = definition["metadata"]["name"].as_str().unwrap().to_owned();
        self.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await?.ok()?;
        let namespace = self.namespace().await?;
        let path = format!("/apis/{group}/v1/namespaces/{namespace}/widgets");
        self.until("the kind is served", || async { Ok(self.get(&path).await?.code == 200) }).await?;
        Ok(Widgets { group, name, namespace, path })
    }

    /// Calls `test` every 25 ms until it returns true; fails after the time limit of this client with a message that
    /// contains `what`.
    pub(crate) async fn until<F: Future<Output = Result<bool>>>(
        &self,
        what: &str,
        test: impl Fn() -> F,
    ) -> Result<()> {
        let wait = async {
            while !test().await? {
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
            Ok(())
        };
        match tokio::time::timeout(self.patience, wait).await {
            Ok(done) => done,
            Err(_) => bail!("waited in vain until {what}"),
        }
    }
}

/// A custom resource for a test.
pub(crate) struct Widgets {
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) path: String,
}

impl Widgets {
    pub(crate) fn widget(&self, name: &str, spec: Value) -> Value {
        json!({"apiVersion": format!("{}/v1", self.group), "kind": "Widget", "metadata": {"name": name}, "spec": spec})
    }
}

impl Call<'_> {
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn body(self, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        let mut call = self.header("content-type", content_type);
        call.body = body.into();
        call
    }

    pub(crate) fn json(self, body: Value) -> Self {
        self.body(JSON, body.to_string())
    }

    /// Sets the bearer token to send; `None` for none.
    pub(crate) fn by(mut self, token: Option<&str>) -> Self {
        self.token = token.map(str::to_owned);
        self
    }

    pub(crate) fn by_reader(self) -> Self {
        let token = self.api.reader.clone();
        self.by(Some(&token))
    }

    async fn open(self) -> Result<http::Response<Incoming>> {
        let mut request =
            Request::builder().method(self.method).uri(format!("{}{}", self.api.url, self.path));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(self.body)))?;
        let answer = tokio::time::timeout(self.api.patience, self.api.client.request(request)).await;
        answer.with_context(|| format!("no answer for {}", self.path))?.with_context(|| self.path.clone())
    }

    pub(crate) async fn send(self) -> Result<Reply> {
        let begun = std::time::Instant::now();
        loop {
            let reply = self.clone().send_once().await?;
            // A kind that was defined a moment ago may return this for a moment; clients retry.
            let is_early = reply.code == 429 && reply.text.contains("storage is (re)initializing");
            if !is_early || begun.elapsed() > self.api.patience {
                return Ok(reply);
            }
            tokio::task::yield_now().await;
        }
    }

    async fn send_once(self) -> Result<Reply> {
        let what = format!("{} {}", self.method, self.path);
        let patience = self.api.patience;
        let response = self.open().await?;
        let (parts, body) = response.into_parts();
        let bytes = tokio::time::timeout(patience, body.collect())
            .await
            .context("the answer does not end")??
            .to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Reply { code: parts.status.as_u16(), headers: parts.headers, text, bytes, body, what })
    }
}

impl Reply {
    /// Fails unless the HTTP status is one of success (200 to 299).
    pub(crate) fn ok(self) -> Result<Reply> {
        ensure!((200..300).contains(&self.code), "{}: {} {}", self.what, self.code, self.text);
        Ok(self)
    }

    pub(crate) fn code(&self, code: u16) -> Result<&Reply> {
        ensure!(self.code == code, "{}: want {code}, got {} {}", self.what, self.code, self.text);
        Ok(self)
    }

    /// Fails unless the answer is a Status with this code and reason whose message contains `message`; an empty reason
    /// is not compared.
    pub(crate) fn fails(&self, code: u16, reason: &str, message: &str) -> Result<&Reply> {
        self.code(code)?.is("/kind", "Status")?.is("/status", "Failure")?.is("/code", code)?;
        if !reason.is_empty() {
            self.is("/reason", reason)?;
        }
        let found = self.at("/message").as_str().unwrap_or_default();
        ensure!(found.contains(message), "{}: message {found:?} has no {message:?}", self.what);
        Ok(self)
    }

    pub(crate) fn at(&self, pointer: &str) -> &Value {
        self.body.pointer(pointer).unwrap_or(&Value::Null)
    }

    pub(crate) fn is(&self, pointer: &str, want: impl Into<Value>) -> Result<&Reply> {
        let want = want.into();
        ensure!(
            *self.at(pointer) == want,
            "{}: {pointer}: want {want}, got {} in {}",
            self.what,
            self.at(pointer),
            self.text
        );
        Ok(self)
    }

    pub(crate) fn text_at(&self, pointer: &str) -> String {
        self.at(pointer).as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn version(&self) -> String {
        self.text_at("/metadata/resourceVersion")
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub(crate) fn items(&self) -> &[Value] {
        self.at("/items").as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the names of the items of the list that was answered.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.items().iter().filter_map(|item| item["metadata"]["name"].as_str()).collect()
    }

    /// Returns the first item of the list at `pointer` whose field `key`, a path with dots, is `name`; fails if there
    /// is none.
    pub(crate) fn find<'a>(&'a self, pointer: &str, key: &str, name: &str) -> Result<&'a Value> {
        let items = self.at(pointer).as_array().with_context(|| format!("{}: no {pointer}", self.what))?;
        let path: Vec<&str> = key.split('.').collect();
        let found = items.iter().find(|item| path.iter().fold(*item, |value, key| &value[*key]) == name);
        found.with_context(|| format!("{}: nothing in {pointer} whose {key} is {name}", self.what))
    }
}

impl Watch {
    /// Waits for the next event and returns it; `None` at the end of the watch. Fails after the time limit of this
    /// client.
    pub(crate) async fn next(&mut self) -> Result<Option<Value>> {
        let patience = self.patience;
        tokio::time::timeout(patience, self.read()).await.context("the watch says nothing")?
    }

    async fn read(&mut self) -> Result<Option<Value>> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                let event = serde_json::from_slice(&line);
                return event.map(Some).with_context(|| String::from_utf8_lossy(&line).into_owned());
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.rest.extend_from_slice(&data);
                    }
                }
            }
        }
    }

    /// Returns the object of the next event; fails unless the event has the type `kind`, and the object this name. A server
    /// may send a bookmark at any time; only the one that ends the initial events has a place.
    pub(crate) async fn expect(&mut self, kind: &str, name: &str) -> Result<Value> {
        let is_plain_bookmark = |event: &Value| {
            event["type"] == "BOOKMARK"
                && event["object"]["metadata"]["annotations"][INITIAL_EVENTS_END].is_null()
        };
        let event = loop {
            let event = self.next().await?.context("the watch ended")?;
            if !is_plain_bookmark(&event) {
                break event;
            }
        };
        ensure!(
            event["type"] == kind && event["object"]["metadata"]["name"] == name,
            "want {kind} {name}, got {event}"
        );
        Ok(event["object"].clone())
    }

    /// Returns all events up to the end.
    pub(crate) async fn rest(&mut self) -> Result<Vec<Value>> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await? {
            events.push(event);
        }
        Ok(events)
    }
}

/// The annotation of the bookmark that ends the initial events of a watch.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Returns a ConfigMap with the data `a: "1"`.
pub(crate) fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

/// Returns a ConfigMap with these labels and the data `a: "1"`.
pub(crate) fn labelled(name: &str, labels: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}})
}

/// Returns a Deployment without replicas.
pub(crate) fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": 0, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "example.com/main:1"}]},
            },
        },
    })
}
