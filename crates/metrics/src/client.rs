//! Sends instant queries to one server, within bounds of time and bytes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::config::{Login, ServerConfig, TlsFiles};
use crate::error::{QueryError, ServerError, shown};
use crate::reply::{Reply, ReplyReader};

/// Time limit of a query, from the connection to the last byte of the answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// The interval at which certificates and secrets are read from their files again.
const FRESH: Duration = Duration::from_secs(60);

/// The maximum size of an answer, in bytes.
pub(crate) const MAX_REPLY: usize = 64 << 20;

/// The maximum size of an answer that is an error.
const MAX_ERROR: usize = 16 << 10;

/// The maximum size of a file with a token or a password.
const MAX_SECRET: u64 = 64 << 10;

type HttpClient = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A client of one server.
pub(crate) struct Client {
    http: HttpClient,
    config: Arc<ServerConfig>,
    reader: ReplyReader,
    /// The header that identifies the hub; `None` if the server needs none.
    login: Option<HeaderValue>,
    uri: Uri,
}

impl Client {
    /// Makes a client with the certificates and secrets that the files have now.
    ///
    /// Blocks while it reads files.
    ///
    /// # Errors
    /// If a file cannot be read, or its contents cannot be used.
    pub(crate) fn new(config: Arc<ServerConfig>, reader: ReplyReader) -> Result<Client, ServerError> {
        let builder = HttpsConnectorBuilder::new()
            .with_tls_config(tls(&config.tls, config.url.scheme_str() == Some("https"))?);
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let connector = builder.https_or_http().enable_http1().wrap_connector(tcp);
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(Duration::from_secs(90))
            .pool_max_idle_per_host(2)
            .build(connector);
        let login = login(config.login.as_ref())?;
        let uri = query_uri(&config.url);
        Ok(Client { http, config, reader, login, uri })
    }

    /// Sends an instant query for the time `time`, in seconds by the server's clock; `None` for the present.
    ///
    /// # Errors
    /// If there is no whole answer within the bounds.
    pub(crate) async fn query(&self, query: &str, time: Option<f64>) -> Result<Reply, QueryError> {
        self.query_within(query, time, MAX_REPLY).await
    }

    /// Sends an instant query as [`query`](Client::query) does, and reads an answer of at most `max` bytes.
    ///
    /// # Errors
    /// If there is no whole answer within the bounds.
    pub(crate) async fn query_within(
        &self,
        query: &str,
        time: Option<f64>,
        max: usize,
    ) -> Result<Reply, QueryError> {
        let body = tokio::time::timeout(TIMEOUT, self.send(query, time, max))
            .await
            .unwrap_or(Err(QueryError::Timeout { seconds: TIMEOUT.as_secs() }))?;
        let reader = self.reader.clone();
        // Tens of megabytes would else keep other tasks waiting.
        let read = tokio::task::spawn_blocking(move || reader.read(&body)).await;
        read.unwrap_or_else(|error| Err(QueryError::Broken(Box::new(error))))
    }

    async fn send(&self, query: &str, time: Option<f64>, max: usize) -> Result<Bytes, QueryError> {
        let mut request = Request::new(Full::new(Bytes::from(form(query, time))));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static("taffrail"));
        for (name, value) in &self.config.headers {
            headers.insert(name.clone(), value.clone());
        }
        if let Some(login) = &self.login {
            headers.insert(AUTHORIZATION, login.clone());
        }
        let response = self.http.request(request).await.map_err(QueryError::Unreachable)?;
        let status = response.status();
        if status != StatusCode::OK {
            let body = whole(response, MAX_ERROR).await.unwrap_or_default();
            return Err(QueryError::Status { status, message: error_text(&body) });
        }
        whole(response, max).await
    }
}

/// A client of one server that is made again once a minute, with the certificates and secrets that its files have then.
pub(crate) struct FreshClient {
    config: Arc<ServerConfig>,
    replies: ReplyReader,
    made: Option<(Arc<Client>, Duration)>,
}

impl FreshClient {
    pub(crate) fn new(config: Arc<ServerConfig>, replies: ReplyReader) -> FreshClient {
        FreshClient { config, replies, made: None }
    }

    /// Returns the client at the moment `now`.
    ///
    /// # Errors
    /// The errors of [`Client::new`].
    pub(crate) async fn get(&mut self, now: Duration) -> Result<Arc<Client>, ServerError> {
        if let Some((client, made)) = &self.made
            && now.saturating_sub(*made) < FRESH
        {
            return Ok(Arc::clone(client));
        }
        self.made = None;
        let (config, replies) = (Arc::clone(&self.config), self.replies.clone());
        let made = tokio::task::spawn_blocking(move || Client::new(config, replies)).await;
        let client = Arc::new(made.map_err(|error| ServerError::Roots(std::io::Error::other(error)))??);
        self.made = Some((Arc::clone(&client), now));
        Ok(client)
    }

    /// Has the next client made again.
    pub(crate) fn forget(&mut self) {
        self.made = None;
    }
}

/// Returns the body of a query.
fn form(query: &str, time: Option<f64>) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("query", query);
    if let Some(time) = time {
        form.append_pair("time", &format!("{time:.3}"));
    }
    form.finish()
}

/// Reads a body of at most `max` bytes.
async fn whole(response: Response<Incoming>, max: usize) -> Result<Bytes, QueryError> {
    let read = Limited::new(response.into_body(), max).collect().await;
    read.map(http_body_util::Collected::to_bytes).map_err(|error| match error.is::<LengthLimitError>() {
        true => QueryError::TooLong { max },
        false => QueryError::Broken(error),
    })
}

/// Returns the error in the body of an answer: that of the API if it is JSON, else its text.
fn error_text(body: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct ApiError {
        error: String,
    }
    let text = match serde_json::from_slice::<ApiError>(body) {
        Ok(ApiError { error }) => shown(&error),
        Err(_) => shown(&String::from_utf8_lossy(body)),
    };
    if text.is_empty() { "the server does not say why".to_owned() } else { text }
}

/// Returns the address of queries below the address of a server.
fn query_uri(url: &Uri) -> Uri {
    let mut parts = url.clone().into_parts();
    let path = url.path().trim_end_matches('/').trim_end_matches("/api/v1");
    parts.path_and_query = format!("{path}/api/v1/query").parse().ok();
    // The path of a valid address stays valid with more at its end.
    Uri::from_parts(parts).unwrap_or_else(|_| url.clone())
}

fn login(login: Option<&Login>) -> Result<Option<HeaderValue>, ServerError> {
    let (text, path) = match login {
        None => return Ok(None),
        Some(Login::Bearer(path)) => (format!("Bearer {}", secret(path)?), path),
        Some(Login::Basic(user, path)) => {
            (format!("Basic {}", STANDARD.encode(format!("{user}:{}", secret(path)?))), path)
        }
    };
    let unfit = |_| ServerError::SecretText { path: path.clone() };
    let mut value = HeaderValue::from_str(&text).map_err(unfit)?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// Reads a token or a password from a file, without the line end after it.
fn secret(path: &Path) -> Result<String, ServerError> {
    let unreadable = |source| ServerError::Secret { path: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > MAX_SECRET {
        return Err(unreadable(std::io::Error::other(format!("the file is longer than {MAX_SECRET} bytes"))));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(ServerError::SecretText { path: path.to_owned() }),
        text => Ok(text.to_owned()),
    }
}

/// Makes the TLS configuration. The system's authorities are read only if it `needs_roots`.
fn tls(files: &TlsFiles, needs_roots: bool) -> Result<ClientConfig, ServerError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(ServerError::Tls)?;
    let builder = match &files.ca_file {
        None if !needs_roots => builder.with_root_certificates(RootCertStore::empty()),
        None => builder.with_native_roots().map_err(ServerError::Roots)?,
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates(path)? {
                roots.add(authority).map_err(ServerError::Tls)?;
            }
            builder.with_root_certificates(roots)
        }
    };
    match (&files.cert_file, &files.key_file) {
        (Some(certificate), Some(key)) => {
            let unreadable = |source| ServerError::TlsFile { path: key.clone(), source };
            let key = PrivateKeyDer::from_pem_file(key).map_err(unreadable)?;
            builder.with_client_auth_cert(certificates(certificate)?, key).map_err(ServerError::Tls)
        }
        _ => Ok(builder.with_no_client_auth()),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServerError> {
    let unreadable = |source| ServerError::TlsFile { path: path.to_owned(), source };
    let read = CertificateDer::pem_file_iter(path).map_err(unreadable)?;
    let read = read.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    match read.is_empty() {
        true => Err(unreadable(rustls::pki_types::pem::Error::NoItemsFound)),
        false => Ok(read),
    }
}
