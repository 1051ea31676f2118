//! Tests of reading and following logs of containers.

use std::time::{Duration, Instant};

use taffrail_cluster::{Cluster, Deadline, LogRequest, ReadError, Reason};
use taffrail_testkit::server::{Reply, Server};

use crate::contexts::{LONG, context};

const SHORT: Duration = Duration::from_millis(300);

fn request(follow: bool) -> LogRequest {
    LogRequest {
        namespace: "shop".to_owned(),
        pod: "web-1".to_owned(),
        container: "web".to_owned(),
        previous: false,
        follow,
        timestamps: false,
        tail: None,
        since: None,
    }
}

async fn connected(server: &Server, deadline: Duration) -> Cluster {
    let context = context(&format!("server: {}", server.url()), "");
    Cluster::connect(&context, Deadline::after(deadline)).await.unwrap()
}

fn text(text: &str) -> Reply {
    Reply::Whole(200, vec![("content-type", "text/plain".to_owned())], text.into())
}

async fn whole(cluster: &Cluster, request: &LogRequest) -> Result<String, ReadError> {
    let mut stream = cluster.log(request).await?;
    let mut all = Vec::new();
    while let Some(part) = stream.next().await? {
        all.extend_from_slice(&part);
    }
    Ok(String::from_utf8(all).unwrap())
}

#[tokio::test]
async fn log_requests_have_the_parameters_of_kubectl() {
    let server = Server::start(|_| text("one\ntwo\n"));
    let cluster = connected(&server, LONG).await;
    assert_eq!(whole(&cluster, &request(false)).await.unwrap(), "one\ntwo\n");
    let all = LogRequest {
        previous: true,
        timestamps: true,
        tail: Some(0),
        since: Some(Duration::from_millis(1200)),
        container: "a/b".to_owned(),
        ..request(true)
    };
    assert_eq!(whole(&cluster, &all).await.unwrap(), "one\ntwo\n");
    let targets: Vec<String> = server.requests().iter().map(|it| it.target()).collect();
    let path = "/api/v1/namespaces/shop/pods/web-1/log?container=";
    assert_eq!(
        targets,
        [
            format!("{path}web"),
            format!("{path}a%2Fb&previous=true&follow=true&timestamps=true&tailLines=0&sinceSeconds=2"),
        ]
    );
    assert_eq!(cluster.requests().cost.requests, 2);
}

#[tokio::test]
async fn refusals_have_their_reason_and_message() {
    for (reply, reason, said) in [
        (
            Reply::status(403, "Forbidden", "pods \"web-1\" is forbidden"),
            Reason::Forbidden,
            "is forbidden (HTTP 403)",
        ),
        (
            Reply::status(404, "NotFound", "pods \"web-1\" not found"),
            Reason::NotFound,
            "not found (HTTP 404)",
        ),
        (
            Reply::status(
                400,
                "BadRequest",
                "container \"web\" in pod \"web-1\" is waiting to start: ContainerCreating",
            ),
            Reason::BadRequest,
            "waiting to start: ContainerCreating",
        ),
        (Reply::status(500, "InternalError", "dial tcp: refused"), Reason::ServerError, "dial tcp: refused"),
        (
            Reply::Whole(200, vec![("content-type", "text/html".to_owned())], b"<html>Log in".to_vec()),
            Reason::NotJson,
            "Log in",
        ),
    ] {
        let reply = std::sync::Mutex::new(Some(reply));
        let server = Server::start(move |_| reply.lock().unwrap().take().unwrap_or(Reply::Silence));
        let cluster = connected(&server, LONG).await;
        let error = whole(&cluster, &request(true)).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[tokio::test]
async fn only_logs_that_are_not_followed_end_by_their_deadline() {
    let server = Server::start(|request| match request.query.contains("follow") {
        true => Reply::staged("one\n", async {
            tokio::time::sleep(SHORT * 3).await;
            "two\n".to_owned()
        }),
        false => Reply::stuck("one\n"),
    });
    let cluster = connected(&server, SHORT).await;
    assert_eq!(whole(&cluster, &request(true)).await.unwrap(), "one\ntwo\n");

    let cluster = cluster.with_timeout(SHORT);
    let mut stream = cluster.log(&request(false)).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "one\n");
    let error = stream.next().await.unwrap_err();
    assert_eq!(error.reason(), Reason::Timeout, "{error}");
    let silent = Server::hanging();
    let cluster = connected(&silent, SHORT).await;
    let begun = Instant::now();
    assert_eq!(cluster.log(&request(false)).await.unwrap_err().reason(), Reason::Timeout);
    assert!(begun.elapsed() < LONG / 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_log_closes_its_request() {
    let server = Server::start(|_| Reply::stuck("one\n"));
    let cluster = connected(&server, LONG).await;
    let mut stream = cluster.log(&request(true)).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "one\n");
    server.until(|traffic| traffic.open.len() == 1);
    drop(stream);
    server.until(|traffic| traffic.open.is_empty());
}
