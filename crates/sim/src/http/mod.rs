//! The HTTP server: connections, and the steps of each request.

mod answer;
mod discovery;
mod list;
mod log;
mod negotiate;
mod object;
mod openapi;
mod path;
mod watch;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::access::Wish;
use crate::behaviour::Behaviour;
use crate::error::{Answered, ApiError};
use crate::fault::Trouble;
use crate::state::{Inner, User};

use path::{Path, Resourceful};

pub(crate) use answer::Answer;
pub(crate) use path::Query;

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// The maximum length of a request's body in bytes, as in kube-apiserver; a longer one is refused. Applies only with
/// the behaviour `BodyLimit`, without it 64 MiB.
const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// The name of the webhook in the messages of its troubles.
const WEBHOOK: &str = "webhook.taffrail.dev";

/// A request whose body was read completely.
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) user: User,
    /// The patches by which webhooks change what the request writes.
    pub(crate) mutations: Vec<Value>,
}

impl Asked {
    pub(crate) fn header(&self, name: header::HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// Accepts connections on `listener` until the task is aborted, which also closes them.
pub(crate) async fn serve(inner: Arc<Inner>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(inner.clone(), stream));
                }
                // Usually the process is out of file descriptors: an immediate retry would only burn time.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

async fn connection(inner: Arc<Inner>, stream: TcpStream) {
    let mut cut = inner.cut.subscribe();
    cut.mark_unchanged();
    let acceptor = match inner.faults.connection() {
        Some(Trouble::Unreachable) => return,
        Some(Trouble::Blackhole) => {
            let _ = cut.changed().await;
            return;
        }
        Some(_) => inner.fleet.tls.expired.clone(),
        None => inner.fleet.tls.good.clone(),
    };
    let _ = stream.set_nodelay(true);
    let serving = async {
        let Ok(stream) = acceptor.accept(stream).await else { return };
        let service = service_fn(|request| {
            let inner = inner.clone();
            async move { Ok::<_, Infallible>(handle(inner, request).await) }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new());
        builder.http2().timer(TokioTimer::new()).max_concurrent_streams(100);
        // A client that disconnects is not an error of the server.
        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
    };
    // First the cut: of what happens after it nothing is sent.
    tokio::select! {
        biased;
        _ = cut.changed() => {}
        () = serving => {}
    }
}

async fn handle(inner: Arc<Inner>, request: Request<Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let path = Path::parse(parts.uri.path());
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let (verb, resource) = path.named(&parts.method, &query);
    let troubles = inner.faults.hit(verb, &resource, parts.uri.path());
    let is_write = matches!(verb, "create" | "update" | "patch" | "delete" | "deletecollection");
    for trouble in &troubles {
        match trouble {
            Trouble::WebhookWithoutDryRun if is_write && !query.get("dryRun").is_empty() => {
                let refused = format!("admission webhook {WEBHOOK:?} does not support dry run");
                return finish(Answer::from(ApiError::bad_request(refused)), &troubles);
            }
            Trouble::LateWebhook(time) if is_write => {
                tokio::time::sleep(*time).await;
                let late = format!(
                    "failed calling webhook {WEBHOOK:?}: failed to call webhook: Post \"https://{WEBHOOK}/?timeout=10s\": \
                     context deadline exceeded"
                );
                return finish(Answer::from(ApiError::internal(&late)), &troubles);
            }
            Trouble::Latency(time) => tokio::time::sleep(*time).await,
            Trouble::Hang => std::future::pending().await,
            Trouble::TooManyRequests(seconds) => {
                return finish(Answer::from(ApiError::too_many_requests(*seconds)), &troubles);
            }
            Trouble::ServerError(message) => {
                return finish(Answer::from(ApiError::internal(message)), &troubles);
            }
            Trouble::Garbage => {
                return finish(Answer::text(200, "<html>502 Bad Gateway</html>\n"), &troubles);
            }
            Trouble::Expired if verb == "watch" => {
                let gone = ApiError::expired("too old resource version: 1 (2)");
                return finish(Answer::from(gone), &troubles);
            }
            Trouble::SilentWatch if verb == "watch" => return silence(),
            _ => {}
        }
    }
    let limit = if inner.does.on(Behaviour::BodyLimit) { MAX_BODY_BYTES } else { 64 << 20 };
    let body = match Limited::new(body, limit).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return finish(Answer::from(ApiError::too_large_body()), &troubles),
    };
    let user =
        match inner.authenticate(parts.headers.get(header::AUTHORIZATION).and_then(|it| it.to_str().ok())) {
            Ok(user) => user,
            Err(error) => return finish(Answer::from(error), &troubles),
        };
    let user = match inner.impersonated(&parts.headers, user, &wish(&path, verb, parts.uri.path())) {
        Ok(user) => user,
        Err(error) => return finish(Answer::from(error), &troubles),
    };
    let asked = Asked {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query,
        headers: parts.headers,
        body,
        user,
        mutations: troubles.iter().filter_map(Trouble::mutation).cloned().collect(),
    };
    let answer = match answer(&inner, &asked, &path).await {
        Ok(answer) => answer,
        Err(error) => Answer::from(error),
    };
    if asked.method != Method::GET {
        inner.fleet.run_due();
    }
    let answer = if inner.does.on(Behaviour::Compression) {
        answer.compressed(asked.header(header::ACCEPT_ENCODING))
    } else {
        answer
    };
    finish(answer, &troubles)
}

/// Turns an answer into an HTTP response; with a [`Trouble::Cut`] among `troubles`, its body breaks off after that
/// number of bytes.
fn finish(answer: Answer, troubles: &[Trouble]) -> Response<Body> {
    let cut = troubles.iter().find_map(|trouble| match trouble {
        Trouble::Cut(bytes) => Some(*bytes),
        _ => None,
    });
    let mut response = answer.into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    let Some(cut) = cut else { return response };
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response.map(|body| {
        let mut left = cut;
        let frames = http_body_util::BodyStream::new(body).flat_map(move |frame| {
            let data = frame.and_then(|frame| frame.into_data().map_err(|_| io::Error::other("no data")));
            let cut = |data: Bytes| {
                let kept = data.slice(..data.len().min(left));
                left -= kept.len();
                // A watch may stay silent for long: it is cut off as soon as its bytes are used up.
                let end = (kept.len() < data.len()).then(|| Err(io::Error::other("cut")));
                (Some(Ok(Frame::data(kept))), end)
            };
            let (kept, end) = data.map_or_else(|error| (Some(Err(error)), None), cut);
            futures::stream::iter(kept.into_iter().chain(end)).then(async |frame| {
                if frame.is_err() {
                    // The kept bytes are sent first.
                    tokio::task::yield_now().await;
                }
                frame
            })
        });
        // Behind the allowed bytes comes an error, even if the whole answer was one frame.
        let end = futures::stream::once(async {
            tokio::task::yield_now().await;
            Err(io::Error::other("cut"))
        });
        UnsyncBoxBody::new(StreamBody::new(frames.chain(end)))
    })
}

/// Builds the response of a watch that never sends anything.
fn silence() -> Response<Body> {
    let stream = futures::stream::pending::<Result<Frame<Bytes>, io::Error>>();
    let mut response = Response::new(UnsyncBoxBody::new(StreamBody::new(stream)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn whole(bytes: impl Into<Bytes>) -> Body {
    UnsyncBoxBody::new(Full::new(bytes.into()).map_err(|never: Infallible| match never {}))
}

async fn answer(inner: &Arc<Inner>, asked: &Asked, path: &Path) -> Answered<Answer> {
    if let Path::Resource(wanted) = path {
        return resourceful(inner, asked, wanted).await;
    }
    let wish = wish(path, "get", &asked.path);
    inner.authorize(&inner.store(), &asked.user, &wish)?;
    if asked.method != Method::GET && asked.method != Method::HEAD {
        return Err(ApiError::method_not_allowed());
    }
    match path {
        Path::Discovery { group, version } => {
            discovery::answer(inner, asked, group.as_deref(), version.as_deref())
        }
        Path::OpenApi(rest) => openapi::answer(inner, rest),
        Path::OpenApiV2 => openapi::answer_v2(inner, asked.header(header::ACCEPT)),
        Path::Version if inner.does.on(Behaviour::ServerVersion) => Ok(Answer::json(200, &version(inner))),
        Path::Health(name) if inner.does.on(Behaviour::Health) => Ok(health(inner, name, asked)),
        Path::Root if inner.does.on(Behaviour::RootPaths) => Ok(Answer::json(200, &discovery::paths(inner))),
        _ => Ok(Answer::not_found()),
    }
}

/// Builds the parts of a request on which permission depends.
fn wish<'a>(path: &'a Path, verb: &'a str, text: &'a str) -> Wish<'a> {
    let Path::Resource(wanted) = path else {
        return Wish { verb, path: text, ..Wish::default() };
    };
    Wish {
        verb,
        group: &wanted.group,
        resource: &wanted.plural,
        subresource: &wanted.subresource,
        // For permissions, a namespace is inside itself.
        namespace: if wanted.group.is_empty() && wanted.plural == "namespaces" {
            &wanted.name
        } else {
            &wanted.namespace
        },
        name: &wanted.name,
        path: "",
    }
}

fn version(inner: &Inner) -> Value {
    let version = &inner.fleet.options.version;
    let mut numbers = version.trim_start_matches('v').split('.');
    serde_json::json!({
        "major": numbers.next().unwrap_or_default(), "minor": numbers.next().unwrap_or_default(),
        "gitVersion": version, "gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "rustc", "platform": "linux/amd64",
    })
}

fn health(inner: &Inner, name: &str, asked: &Asked) -> Answer {
    if asked.query.has("verbose") && inner.does.on(Behaviour::VerboseHealth) {
        return Answer::text(200, &format!("[+]ping ok\n[+]log ok\n[+]etcd ok\n{name} check passed\n"));
    }
    Answer::text(200, "ok")
}

/// Answers a request for a resource: checks access, and calls the handler.
async fn resourceful(inner: &Arc<Inner>, asked: &Asked, wanted: &Resourceful) -> Answered<Answer> {
    let path = Path::Resource(wanted.clone());
    let (verb, _) = path.named(&asked.method, &asked.query);
    let wish = wish(&path, verb, &asked.path);
    let target = {
        let store = inner.store();
        inner.authorize(&store, &asked.user, &wish)?;
        let Some(target) = wanted.target(&store) else {
            let group_is_known =
                store.resources().any(|(_, resource)| *resource.group == *wanted.group && resource.served);
            return if group_is_known { Err(ApiError::no_resource()) } else { Ok(Answer::not_found()) };
        };
        target
    };
    let answered = match (verb, wanted.subresource.as_str()) {
        ("list", "") => list::answer(inner, asked, &target),
        ("watch", "") => watch::answer(inner, asked, &target),
        (verb, _)
            if !wanted.subresource.is_empty()
                || !wanted.name.is_empty()
                || verb == "create"
                || verb == "deletecollection" =>
        {
            object::answer(inner, asked, &target, verb, &wanted.subresource)
        }
        _ => Err(ApiError::method_not_allowed()),
    };
    let warning = target.resource.version(&target.version).and_then(|version| version.warning.clone());
    match (answered, warning) {
        // Clients that read a deprecated version are warned like those that write it.
        (Ok(answer), Some(warning)) if asked.method == Method::GET && inner.does.on(Behaviour::Warnings) => {
            Ok(answer.warned([warning]))
        }
        (answered, _) => answered,
    }
}
