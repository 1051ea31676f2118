//! The server: HTTP/1 for readers, and HTTP/2 for agents. Bounds the number of connections, and the time that a client
//! may take.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use futures::future::join_all;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Sleep;
use tower::Service as _;

use super::limits::Limits;
use super::request::HubApi;
use super::routes::router;
use super::tls::{Accepted, Tls};
use crate::agents::{Admission, AdmittedBody, AgentService, Agents, ProvedKey};

/// The greatest time for which [`serve`] waits for running requests after `end` completed; then they are aborted.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// The greatest number of requests of one connection of an agent at one time: its session, and room for another one.
const MAX_AGENT_REQUESTS: u32 = 2;

/// The bytes of one connection of an agent that wait to be read, or to be sent.
const AGENT_WINDOW: u32 = 64 * 1024;

/// The time in which an agent must have proved who it is, or enrolled.
const INTRODUCTION: Duration = Duration::from_secs(20);

/// The interval of HTTP/2 pings of a connection of an agent, and the time limit for their answers.
const AGENT_PINGS: Duration = Duration::from_secs(30);

/// A socket at which clients of a hub come in.
#[derive(Debug)]
pub struct Door {
    /// The socket.
    pub listener: TcpListener,
    /// The certificate with which it serves by TLS; `None` to serve without, on a loopback address.
    pub tls: Option<Arc<Tls>>,
}

/// Serves the API over HTTP/1 at all `doors` until `end` completes, and up to a second longer for running requests. By TLS
/// also serves the agents of the hub, over HTTP/2. The limits of the hub hold for all doors together.
///
/// # Errors
/// If other machines can reach the address of a door without TLS.
pub async fn serve(
    doors: impl IntoIterator<Item = Door>,
    hub: Arc<HubApi>,
    end: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut doors: Vec<(Door, JoinSet<()>)> = doors.into_iter().map(|door| (door, JoinSet::new())).collect();
    for (door, _) in &doors {
        let address = door.listener.local_addr()?;
        if door.tls.is_none() && !is_loopback(address) {
            let why = format!(
                "cannot serve at {address} without TLS: other machines can reach it, and a hub there needs TLS"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
    }
    let reception = Reception::new(hub);
    // Each door accepts for itself: many clients at one of them make no other one wait.
    let accepting = join_all(doors.iter_mut().map(|(door, tasks)| reception.accept(door, tasks)));
    tokio::select! {
        // It ends only where there is no door.
        _ = accepting => {}
        () = end => {}
    }
    let mut tasks: Vec<JoinSet<()>> = doors.into_iter().map(|(_, tasks)| tasks).collect();
    let last = join_all(tasks.iter_mut().map(|tasks| async { while tasks.join_next().await.is_some() {} }));
    drop(tokio::time::timeout(LAST_ANSWERS, last).await);
    Ok(())
}

/// The state that the doors of a hub share.
struct Reception {
    /// The places of connections that are not those of admitted agents.
    connections: Arc<Semaphore>,
    agents: Option<Arc<Agents>>,
    /// The places of admitted agents.
    places: Arc<Semaphore>,
    builder: Arc<http1::Builder>,
    service: TowerToHyperService<Router>,
    time: Duration,
}

impl Reception {
    fn new(hub: Arc<HubApi>) -> Reception {
        let Limits { connections, time, headers, agents: most_agents, .. } = hub.limits;
        // Without HTTP/2: no browser speaks it without TLS, and a client that takes nothing of its streams but answers
        // pings would keep places for ever.
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(time)
            // The URL and what the guard refuses with a reason fit, too.
            .max_buf_size(headers.saturating_mul(2).max(16 * 1024));
        Reception {
            connections: Arc::new(Semaphore::new(connections)),
            agents: hub.agents.clone(),
            places: Arc::new(Semaphore::new(most_agents)),
            builder: Arc::new(builder),
            service: TowerToHyperService::new(router(hub)),
            time,
        }
    }

    /// Accepts connections at a door, for ever, and serves each in a task of its own.
    async fn accept(&self, door: &Door, tasks: &mut JoinSet<()>) {
        let Reception { connections, agents, places, builder, service, time } = self;
        let time = *time;
        loop {
            let accepted = door.listener.accept().await;
            // Tasks that ended are forgotten.
            while tasks.try_join_next().is_some() {}
            let Ok((stream, _)) = accepted else {
                // Too many open files, or a client that has gone already.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            // Only then, so that no door takes a place for which nobody has come.
            let permit = Arc::clone(connections).acquire_owned().await;
            // A head and the body behind it, or two frames of a stream, would wait 40 ms for the client's
            // acknowledgement.
            let _ = stream.set_nodelay(true);
            let (builder, service) = (Arc::clone(builder), service.clone());
            let (tls, agents, places) = (door.tls.clone(), agents.clone(), Arc::clone(places));
            tasks.spawn(async move {
                let stream = Timed { stream, limit: 3 * time, waiting: None };
                // A connection that breaks off concerns nobody else.
                let Some(tls) = tls else {
                    drop(builder.serve_connection(TokioIo::new(stream), service).await);
                    return;
                };
                let Ok(Ok(accepted)) = tokio::time::timeout(time, tls.accept(stream)).await else { return };
                match (accepted, agents) {
                    (Accepted::Reader(stream), _) => {
                        drop(builder.serve_connection(TokioIo::new(stream), service).await);
                    }
                    (Accepted::Agent(stream, proved), Some(agents)) => {
                        let admission = Arc::new(Admission::new(permit.ok(), places));
                        serve_agent(TokioIo::new(stream), proved, admission, agents).await;
                    }
                    (Accepted::Agent(..), None) => {}
                }
            });
        }
    }
}

/// Serves one connection of an agent, whose client certificate proves the key `proved`, until it ends, or until an agent
/// has not proved in time who it is.
async fn serve_agent(
    stream: impl hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    proved: ProvedKey,
    admission: Arc<Admission>,
    agents: Arc<Agents>,
) {
    let service = AgentService::server(agents);
    let admitting = Arc::clone(&admission);
    let service = hyper::service::service_fn(move |mut request: http::Request<Incoming>| {
        request.extensions_mut().insert(proved);
        request.extensions_mut().insert(Arc::clone(&admitting));
        let request = request.map(|body| AdmittedBody::new(body, Arc::clone(&admitting)));
        let mut service = service.clone();
        async move { service.call(request).await }
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_AGENT_REQUESTS)
        .initial_stream_window_size(AGENT_WINDOW)
        .initial_connection_window_size(AGENT_WINDOW)
        .max_send_buf_size(AGENT_WINDOW as usize)
        .max_header_list_size(8 * 1024)
        .keep_alive_interval(AGENT_PINGS)
        .keep_alive_timeout(AGENT_PINGS);
    let serving = builder.serve_connection(stream, service);
    let unknown = async {
        tokio::time::sleep(INTRODUCTION).await;
        if admission.is_admitted() {
            std::future::pending::<()>().await;
        }
    };
    let closed = async {
        admission.closed().await;
        // What was sent last is on its way.
        tokio::time::sleep(LAST_ANSWERS).await;
    };
    tokio::select! {
        // A connection that breaks off concerns nobody else.
        served = serving => drop(served),
        () = unknown => {}
        () = closed => {}
    }
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// A connection on which a write fails if the client reads nothing for `limit`.
struct Timed {
    stream: TcpStream,
    limit: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Timed {
    /// Returns `polled`, or the error `TimedOut` if it has been pending for `limit` since it was last ready.
    fn within<T>(&mut self, polled: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waiting = None;
            return polled;
        }
        let limit = self.limit;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Timed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Timed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within(polled, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.within(polled, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.within(polled, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.within(polled, context)
    }
}
