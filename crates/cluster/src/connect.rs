//! The connection to one API server.
//!
//! kube's own client speaks HTTP/1.1 only, so forty concurrent lists are forty TCP and TLS handshakes. Here one HTTP/2
//! connection carries them all: kube's layers for addresses and credentials stand over a connector that offers HTTP/2.
//! The first connection is opened separately, before any request: hyper's pool learns the protocol only from an open
//! connection, and would open one for each of the first requests.

use std::collections::BTreeSet;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, Write};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::proxy::SocksV5;
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use jiff::SignedDuration;
use kube::client::{Body, ConfigExt};
use kube::config::Config;
use rustls::ClientConfig;
use rustls::client::Resumption;
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_http::decompression::DecompressionLayer;
use tracing::debug;

use crate::connection_pool::{ConnectionPool, Protocol};
use crate::deadline::Deadline;
use crate::error::{BoxError, ConnectError, Fault, Phase, ReadError};
use crate::exec_plugin::{self, PluginError};
use crate::kubeconfig::Context;
use crate::memory::{Charge, Held};
use crate::proxy::{proxy_user, tunnel};
use crate::traffic::{Requests, Traffic};

/// Flow-control window of each HTTP/2 stream, in bytes. With HTTP/2's default of 64 KiB a page of a list takes seventy
/// round trips.
const STREAM_WINDOW: u32 = 2 << 20;

/// Flow-control window of an HTTP/2 connection, which all of its streams share, in bytes.
const CONNECTION_WINDOW: u32 = 8 << 20;

/// Maximum size of the HTTP/2 frames that the server may send, in bytes.
const MAX_FRAME: u32 = 256 << 10;

/// Interval of HTTP/2 pings on a connection with open streams. They detect a dead connection: one with only watches may
/// be silent for minutes.
const PING_INTERVAL: Duration = Duration::from_secs(15);

/// Interval of HTTP/2 pings on a connection that is kept small ([`Context::with_one_connection`]).
const RARE_PING_INTERVAL: Duration = Duration::from_secs(60);

/// Time limit for the answer to an HTTP/2 ping; a connection that exceeds it is closed.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for opening each connection after the first one, which has the caller's deadline.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to one API server as one user.
///
/// Clones share the connection and its counters. All requests end by the deadline, except logs that are followed and
/// those of a [`crate::Watcher`]. Text read is charged to the cluster's share of the [memory](crate::Memory) until the
/// last of the clones that are charged together is dropped.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) shared: Arc<Shared>,
    pub(crate) deadline: Deadline,
    pub(crate) charge: Arc<Charge>,
}

/// The connection that the clones of a [`Cluster`] share, and the facts learned by connecting.
pub(crate) struct Shared {
    pub(crate) pool: ConnectionPool,
    pub(crate) traffic: Traffic,
    context: String,
    namespace: String,
    server: String,
    unverified: Option<&'static str>,
    authorities: Option<BTreeSet<Vec<u8>>>,
    protocol: Protocol,
    connecting: Duration,
    compresses: bool,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("context", &self.shared.context).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Connects to the server of `context`, and gets credentials from its exec plugin if it has one. The deadline holds
    /// for this and for all later requests, as [`Cluster`] tells.
    ///
    /// Resolving names uses a thread that cannot be interrupted. If a resolver hangs, dropping a runtime waits for that
    /// thread: a program that must end in time shuts its runtime down in the background.
    ///
    /// # Errors
    ///
    /// Returns an error if credentials, name resolution, connection or TLS handshake fail or take too long. Only the
    /// first request shows whether the server accepts the credentials.
    pub async fn connect(context: &Context, deadline: Deadline) -> Result<Cluster, ConnectError> {
        // The process may have installed a provider; that one stays.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        }
        let mut config = (*context.config).clone();
        if let Some(exec) = &context.exec {
            exec_plugin::authenticate(exec, &context.plugins, &mut config.auth_info, deadline)
                .await
                .map_err(|error| match error {
                    PluginError::TimedOut(after) => {
                        ConnectError::Timeout { server: context.server(), phase: Phase::ExecPlugin, after }
                    }
                    PluginError::Failed { what, not_found, source } => ConnectError::ExecPlugin {
                        context: context.name.clone(),
                        command: exec.command.clone().unwrap_or_default(),
                        what,
                        install_hint: exec.install_hint.clone().filter(|_| not_found),
                        source,
                    },
                })?;
        }

        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let begun = tokio::time::Instant::now();
        let proxy = config.proxy_url.clone();
        let attempt = Attempt { context, config, deadline };
        let (pool, protocol) = match proxy {
            // A Secret's kubeconfig with a proxy is refused before.
            _ if context.guard.is_some() => {
                let guard = context.guard.clone().unwrap_or_default();
                attempt.connect(guard.connector()).await?
            }
            None => attempt.connect(tcp).await?,
            Some(proxy) if proxy.scheme_str() == Some("socks5") => {
                let mut socks = SocksV5::new(proxy.clone(), tcp);
                if let Some((user, password)) = proxy_user(&proxy) {
                    socks = socks.with_auth(user, password);
                }
                attempt.connect(socks).await?
            }
            Some(proxy) if proxy.scheme_str() == Some("https") => {
                // An HTTPS proxy has a certificate of its own, not signed by the cluster's authority.
                let tls = attempt.usable(
                    "the operating system's trusted certificates, needed for its HTTPS proxy, cannot be used",
                    Config::new(proxy.clone()).rustls_client_config(),
                )?;
                let tls = HttpsConnectorBuilder::new()
                    .with_tls_config(tls)
                    .https_or_http()
                    .enable_http1()
                    .wrap_connector(tcp);
                attempt.connect(tunnel(&proxy, tls)).await?
            }
            Some(proxy) => attempt.connect(tunnel(&proxy, tcp)).await?,
        };
        let connecting = begun.elapsed();
        debug!(cluster = context.name, ?protocol, took = ?connecting, "connected");
        Ok(Cluster {
            shared: Arc::new(Shared {
                pool,
                traffic: Traffic::new(),
                context: context.name.clone(),
                namespace: context.namespace.clone(),
                server: context.server(),
                unverified: context.unverified(),
                authorities: context.authorities(),
                protocol,
                connecting,
                compresses: context.compresses(),
            }),
            deadline,
            charge: Arc::new(Charge::new(Arc::new(context.memory.share()))),
        })
    }

    /// Returns a clone with a later deadline, so that a slow read does not take the time of later ones: half of the
    /// remaining extra time ([`Deadline::with_extra`]) from now, unless the present deadline is later still. Its reads
    /// are charged together with those of this one.
    #[must_use]
    pub fn with_more_time(&self) -> Cluster {
        Cluster { deadline: self.deadline.extended(), ..self.clone() }
    }

    /// Returns a clone whose deadline is `timeout` from now, and whose reads are charged separately from those of this
    /// one. The time limit of one request stays.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Cluster {
        let deadline = Deadline::after(timeout).with_request_timeout(self.request_timeout());
        Cluster { shared: self.shared.clone(), deadline, charge: Arc::new(self.charge.another()) }
    }

    /// Returns a clone whose deadline is `timeout` from now, or that of this one if it is earlier, and whose reads are
    /// charged separately.
    #[must_use]
    pub fn within(&self, timeout: Duration) -> Cluster {
        let within = self.with_timeout(timeout);
        Cluster { deadline: self.deadline.earlier(within.deadline), ..within }
    }

    /// Returns the time limit of one request, if [`Deadline::with_request_timeout`] set one.
    pub fn request_timeout(&self) -> Option<Duration> {
        self.deadline.request_timeout()
    }

    /// Returns this connection, charged to the memory share of `other`, a connection to the same cluster.
    pub(crate) fn sharing(self, other: &Cluster) -> Cluster {
        Cluster { charge: Arc::new(other.charge.another()), ..self }
    }

    /// Checks that the deadline has not passed while a response is parsed; `what` names the operation in the error.
    ///
    /// # Errors
    ///
    /// Returns an error if the deadline has passed.
    pub fn in_time(&self, what: &str) -> Result<(), ReadError> {
        self.deadline.check(what)
    }

    /// Charges the cluster for `bytes` of text that are kept; `what` names the operation in the error.
    ///
    /// # Errors
    ///
    /// Returns an error if that exceeds the cluster's share of the memory.
    pub fn charge(&self, what: &str, bytes: u64) -> Result<(), ReadError> {
        self.charge.take(what, bytes)
    }

    /// Returns a handle that charges the cluster's memory share for text that is kept longer than one read.
    pub fn hold(&self) -> Held {
        Held::new(&self.charge)
    }

    /// Returns the context's name.
    pub fn context(&self) -> &str {
        &self.shared.context
    }

    /// Returns the context's namespace.
    pub fn namespace(&self) -> &str {
        &self.shared.namespace
    }

    /// Returns the server's address.
    pub fn server(&self) -> &str {
        &self.shared.server
    }

    /// Returns the reason why the server's identity is not verified; `None` if it is, or if plain HTTP leads to a
    /// server on this machine. See [`Context::unverified`].
    pub fn unverified(&self) -> Option<&'static str> {
        self.shared.unverified
    }

    /// Returns true if both servers are verified, and by exactly the same certificate authorities of their kubeconfigs;
    /// false if these name none. A bundle with one more authority is another one: its owner could vouch for any server.
    pub fn is_verified_like(&self, other: &Cluster) -> bool {
        self.shared.authorities.is_some() && self.shared.authorities == other.shared.authorities
    }

    /// Returns the HTTP version in use.
    pub fn protocol(&self) -> Protocol {
        self.shared.protocol
    }

    /// Returns the number of clients that were made for connections: one for all requests that end by themselves, which
    /// opens several with HTTP/1.1, and further ones for watches and followed logs. The newest may not have connected
    /// yet.
    pub fn connections(&self) -> usize {
        self.shared.pool.connections()
    }

    /// Returns the time that name resolution, TCP connection and TLS handshake of the first connection took.
    pub fn connecting(&self) -> Duration {
        self.shared.connecting
    }

    /// Returns an upper bound of the round-trip time: the smaller of the fastest response, and a third of the
    /// connection time, which is three round trips (four with TLS 1.2). Either alone is long while the machine is busy.
    pub fn round_trip(&self) -> Duration {
        self.shared.traffic.shortest().min(self.shared.connecting / 3)
    }

    /// Returns true if requests ask the server to compress responses.
    pub fn compresses(&self) -> bool {
        self.shared.compresses
    }

    /// Returns the counters of all requests that have ended, except the lists, watches and version checks of a
    /// [`crate::Watcher`].
    pub fn requests(&self) -> Requests {
        self.shared.traffic.read()
    }

    /// Returns the lead of the server's clock over the local one, accurate to some seconds; negative if it is behind.
    /// Takes the smallest, by absolute value, of the leads that the responses showed; `None` if no response had a valid
    /// `Date`.
    pub fn clock_ahead(&self) -> Option<SignedDuration> {
        self.shared.traffic.clock_ahead()
    }
}

/// The parameters of one attempt to connect.
struct Attempt<'a> {
    context: &'a Context,
    config: Config,
    deadline: Deadline,
}

impl Attempt<'_> {
    fn usable<T>(&self, what: &'static str, result: kube::Result<T>) -> Result<T, ConnectError> {
        result.map_err(|error| ConnectError::Unusable {
            context: self.context.name.clone(),
            what,
            source: Some(error.into()),
        })
    }

    /// Opens a connection over `tcp` and builds a client with kube's layers on it; returns its pool and the negotiated
    /// protocol.
    async fn connect<C>(self, tcp: C) -> Result<(ConnectionPool, Protocol), ConnectError>
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: Connection + Read + Write + Send + Unpin + 'static,
        C::Future: Send + 'static,
        C::Error: Into<BoxError>,
    {
        let mut tls = self.usable("its certificates cannot be used", self.config.rustls_client_config())?;
        if self.context.is_one_connection {
            tls.resumption = Resumption::disabled();
        }
        let opened = Arc::new(AtomicBool::new(false));
        let note = opened.clone();
        let tcp = tcp.map_response(move |stream| {
            note.store(true, Ordering::Relaxed);
            stream
        });
        let mut connector = self.connector(tls, tcp)?;

        let connecting = async {
            std::future::poll_fn(|cx| connector.poll_ready(cx)).await?;
            connector.call(origin(&self.config.cluster_url)).await
        };
        let stream = match self.deadline.limit_request(connecting).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(source)) => {
                let mut fault = Fault::of(source.as_ref());
                // Before TLS began the proxy must have failed.
                if self.config.proxy_url.is_some() && !opened.load(Ordering::Relaxed) {
                    fault = Fault::Proxy;
                }
                return Err(ConnectError::Transport { server: self.context.server(), fault, source });
            }
            Err(after) => {
                let phase = if opened.load(Ordering::Relaxed) { Phase::Handshake } else { Phase::Connect };
                return Err(ConnectError::Timeout { server: self.context.server(), phase, after });
            }
        };
        let http2 = stream.connected().is_negotiated_h2();

        let protocol = if http2 { Protocol::Http2 } else { Protocol::Http1 };
        let first = Opened { connector: connector.clone(), first: Arc::new(Mutex::new(Some(stream))) };
        let client = self.client(first, protocol, !self.context.compresses())?;
        let Attempt { context, config, deadline } = self;
        if context.is_one_connection && http2 {
            return Ok((ConnectionPool::new(client, protocol, None), protocol));
        }
        let context = context.clone();
        let open = move || {
            let further = Attempt { context: &context, config: config.clone(), deadline };
            let connector = Opened { connector: connector.clone(), first: Arc::new(Mutex::new(None)) };
            // Servers do not compress watches. Decompressing a response that was compressed uninvited would have no
            // bound.
            further.client(connector, protocol, true).map_err(BoxError::from)
        };
        Ok((ConnectionPool::new(client, protocol, Some(Box::new(open))), protocol))
    }

    /// Creates a client over `connector` with kube's layers for addresses and credentials; with `is_plain` it does not
    /// decompress responses.
    fn client<C>(
        &self,
        connector: C,
        protocol: Protocol,
        is_plain: bool,
    ) -> Result<kube::Client, ConnectError>
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: Connection + Read + Write + Send + Unpin + 'static,
        C::Future: Send + Unpin + 'static,
        C::Error: Into<BoxError>,
    {
        let ping_interval = if self.context.is_one_connection { RARE_PING_INTERVAL } else { PING_INTERVAL };
        let http = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_only(protocol == Protocol::Http2)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_max_frame_size(MAX_FRAME)
            .http2_keep_alive_interval(ping_interval)
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .build::<_, Body>(connector);
        let service = ServiceBuilder::new()
            .layer(self.config.base_uri_layer())
            .layer(DecompressionLayer::new().no_br().no_deflate().no_zstd().gzip(!is_plain))
            .option_layer(self.usable("its credentials cannot be used", self.config.auth_layer())?)
            .layer(self.usable(
                "its settings for acting as another user (as, as-groups) cannot be used",
                self.config.extra_headers_layer(),
            )?)
            .map_err(BoxError::from)
            .service(http);
        Ok(kube::Client::new(service, self.config.default_namespace.clone()))
    }

    fn connector<C>(&self, tls: ClientConfig, tcp: C) -> Result<HttpsConnector<C>, ConnectError> {
        let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        if let Some(name) = &self.config.tls_server_name {
            let name = name.clone().try_into().map_err(|error| ConnectError::Unusable {
                context: self.context.name.clone(),
                what: "its tls-server-name is not a valid server name",
                source: Some(Box::new(error)),
            })?;
            builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
        }
        Ok(builder.enable_all_versions().wrap_connector(tcp))
    }
}

/// Returns `url` with the path `/` and without a query.
fn origin(url: &Uri) -> Uri {
    let mut parts = url.clone().into_parts();
    parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
    Uri::from_parts(parts).unwrap_or_else(|_| url.clone())
}

/// A connector that hands out the open connection `first` once, if there is one, and after that opens others, each
/// within [`CONNECT_TIMEOUT`].
struct Opened<C, S> {
    connector: C,
    first: Arc<Mutex<Option<S>>>,
}

impl<C: Clone, S> Clone for Opened<C, S> {
    fn clone(&self) -> Self {
        Opened { connector: self.connector.clone(), first: self.first.clone() }
    }
}

impl<C, S> Service<Uri> for Opened<C, S>
where
    C: Service<Uri, Response = S>,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
    S: Send + 'static,
{
    type Response = S;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        match first {
            Some(stream) => Box::pin(std::future::ready(Ok(stream))),
            None => {
                let connecting = self.connector.call(uri);
                Box::pin(async move {
                    // A server that accepts connections and never answers must not hold up all callers.
                    match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
                        Ok(connected) => connected.map_err(Into::into),
                        Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
                    }
                })
            }
        }
    }
}
