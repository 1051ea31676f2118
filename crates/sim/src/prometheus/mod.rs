//! A stand-in for Prometheus: answers instant queries by its HTTP API about what the owner lets it scrape.

mod query;
mod scrapes;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

use crate::error::SimError;
use crate::http::Query as Parameters;
pub use query::QueryFault;
pub use scrapes::Scrapes;

/// The maximum number of open connections; further ones wait.
const MAX_CONNECTIONS: usize = 32;

/// The maximum length of the body of a request, in bytes; a longer one is refused.
const MAX_BODY: usize = 64 * 1024;

/// The time that a client has for the head of a request, and for its body.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server on a loopback port that answers `/api/v1/query` as Prometheus does, by GET and by POST with a form: `time()`,
/// selectors, and `timestamp()` of a selector. It ends when this is dropped.
#[derive(Debug)]
pub struct PrometheusApi {
    address: SocketAddr,
    scrapes: Arc<Mutex<Scrapes>>,
    server: AbortHandle,
}

impl PrometheusApi {
    /// Starts the server, on the current Tokio runtime.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn start() -> Result<PrometheusApi, SimError> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(SimError::Listen)?;
        let address = listener.local_addr().map_err(SimError::Listen)?;
        let scrapes: Arc<Mutex<Scrapes>> = Arc::default();
        let server = tokio::spawn(serve(listener, Arc::clone(&scrapes))).abort_handle();
        Ok(PrometheusApi { address, scrapes, server })
    }

    /// Returns the URL of the server, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Locks what was scraped. The guard must not be held across an await.
    pub fn scrapes(&self) -> MutexGuard<'_, Scrapes> {
        lock(&self.scrapes)
    }
}

impl Drop for PrometheusApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn lock(scrapes: &Mutex<Scrapes>) -> MutexGuard<'_, Scrapes> {
    scrapes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the time of this machine in seconds, as Prometheus writes it.
pub fn seconds_now() -> f64 {
    Timestamp::now().as_millisecond() as f64 / 1_000.0
}

/// Accepts connections on `listener` until the task is aborted, which also closes them.
async fn serve(listener: TcpListener, scrapes: Arc<Mutex<Scrapes>>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let accepted = listener.accept().await;
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                let scrapes = Arc::clone(&scrapes);
                connections.spawn(async move {
                    connection(stream, scrapes).await;
                    drop(place);
                });
            }
            // Usually the process is out of file descriptors: an immediate retry would only burn time.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn connection(stream: TcpStream, scrapes: Arc<Mutex<Scrapes>>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let scrapes = Arc::clone(&scrapes);
        async move { Ok::<_, Infallible>(answer(request, &scrapes).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    // A client that disconnects is not an error of the server.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>, scrapes: &Mutex<Scrapes>) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    if parts.uri.path() != "/api/v1/query" {
        return fault(StatusCode::NOT_FOUND, "not_found", "only /api/v1/query is served");
    }
    let in_url = Parameters::parse(parts.uri.query().unwrap_or_default());
    let in_form = match parts.method {
        Method::GET => Parameters::default(),
        Method::POST => {
            let read = tokio::time::timeout(PATIENCE, Limited::new(body, MAX_BODY).collect()).await;
            let Ok(Ok(read)) = read else {
                return fault(StatusCode::BAD_REQUEST, "bad_data", "the form is too long, or not complete");
            };
            Parameters::parse(&String::from_utf8_lossy(&read.to_bytes()))
        }
        _ => return fault(StatusCode::METHOD_NOT_ALLOWED, "bad_data", "use GET or POST"),
    };
    let parameter = |name: &str| match in_form.get(name) {
        "" => in_url.get(name).to_owned(),
        value => value.to_owned(),
    };
    let time = match &*parameter("time") {
        "" => Some(seconds_now()),
        time => time.parse().ok().filter(|time: &f64| time.is_finite()),
    };
    let Some(time) = time else {
        return fault(StatusCode::BAD_REQUEST, "bad_data", "the time is not a number of seconds");
    };
    let answered = lock(scrapes).answer(&parameter("query"), time);
    match answered {
        Ok(answer) => json_response(StatusCode::OK, &answer),
        Err(error) => fault(StatusCode::BAD_REQUEST, "bad_data", &error.to_string()),
    }
}

fn fault(status: StatusCode, kind: &str, message: &str) -> Response<Full<Bytes>> {
    json_response(status, &json!({"status": "error", "errorType": kind, "error": message}))
}

fn json_response(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Sends a request, and returns the status and the body of the answer.
    async fn ask(api: &PrometheusApi, request: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(api.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
    }

    #[tokio::test]
    async fn queries_are_answered_by_get_and_by_post() {
        let api = PrometheusApi::start().await.unwrap();
        api.scrapes().scrape(r#"job="argocd""#, r#"argocd_app_info{name="shop"} 1"#, 90.0).unwrap();
        let get = |query: &str| {
            format!("GET /api/v1/query?{query} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        };
        let (status, got) = ask(&api, &get("query=argocd_app_info%7Bname%3D%22shop%22%7D&time=100")).await;
        assert_eq!(status, 200, "{got}");
        let series = json!({"__name__": "argocd_app_info", "job": "argocd", "name": "shop"});
        assert_eq!(got["data"]["result"], json!([{"metric": series, "value": [100.0, "1"]}]));

        let form = "query=timestamp(argocd_app_info)&time=100";
        let post = format!(
            "POST /api/v1/query HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        );
        let (_, posted) = ask(&api, &post).await;
        assert_eq!(posted["data"]["result"][0]["value"], json!([100.0, "90"]));

        let (_, now) = ask(&api, &get("query=time()")).await;
        let now: f64 = now["data"]["result"][1].as_str().unwrap().parse().unwrap();
        assert!((seconds_now() - now).abs() < 60.0, "{now}");

        for (query, part) in
            [("query=sum(up)", "sum(up)"), ("query=up&time=yesterday", "not a number"), ("", "empty")]
        {
            let (status, refused) = ask(&api, &get(query)).await;
            assert_eq!((status, &refused["errorType"]), (400, &json!("bad_data")), "{query}");
            assert!(refused["error"].as_str().unwrap().contains(part), "{refused}");
        }
        let (status, _) = ask(&api, &get("").replace("query?", "labels?")).await;
        assert_eq!(status, 404);
    }
}
