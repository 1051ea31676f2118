//! Logs of containers. Containers do not run here, so the annotation `taffrail.dev/logs` of a Pod has their lines;
//! without it, some lines are invented that fit the container's status.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::header;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Frame;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Asked;
use super::answer::Answer;
use crate::clock::{later, stamp};
use crate::error::{Answered, ApiError};
use crate::state::Inner;
use crate::target::Target;

const LINES: &str = "taffrail.dev/logs";

/// The time between two lines of a container that is ready, in seconds.
const EVERY: i64 = 30;
/// The greatest number of lines that a ready container wrote every 30 seconds in a log: the newest; older ones are left
/// out.
const MAX_REPEATED: i64 = 5;
/// The real time between two checks for new lines of a log that a client follows.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(250);

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

pub(super) fn answer(inner: &Arc<Inner>, asked: &Asked, target: &Target) -> Answered<Answer> {
    let pod = inner.tree(target).ok_or_else(|| ApiError::not_found(&target.resource, &target.name))?;
    let query = &asked.query;
    let container = container(&pod, query.get("container"), &target.name)?;
    // A container that does not run yet has no log.
    if text(&pod["spec"], "nodeName").is_empty() {
        return Ok(Answer::text(204, ""));
    }
    let run = run(&pod, &container, query.is_true("previous"), &target.name)?;
    let now = inner.fleet.clock.now();
    let mut lines = run.lines(now);
    if let Ok(seconds) = query.get("sinceSeconds").parse::<i64>() {
        lines.retain(|(at, _)| at.is_none_or(|at| now.duration_since(at).as_secs() < seconds));
    }
    let skipped = query.get("tailLines").parse::<usize>().map_or(0, |tail| lines.len().saturating_sub(tail));
    let timestamps = query.is_true("timestamps");
    let mut written = written(lines.get(skipped..).unwrap_or_default(), timestamps);
    if query.is_true("follow") && run.is_running {
        let followed =
            ClientLog { inner: inner.clone(), target: target.clone(), container, run, timestamps, told: now };
        return Ok(followed.answer(written));
    }
    if let Ok(limit) = query.get("limitBytes").parse::<usize>() {
        let end = (0..=limit.min(written.len())).rev().find(|end| written.is_char_boundary(*end));
        written.truncate(end.unwrap_or_default());
    }
    Ok(plain(Answer::text(200, &written)))
}

fn plain(answer: Answer) -> Answer {
    answer.of_type("text/plain").header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
}

fn written(lines: &[(Option<Timestamp>, String)], timestamps: bool) -> String {
    let mut written = String::new();
    for (at, line) in lines {
        if let Some(at) = at.filter(|_| timestamps) {
            written.push_str(&stamp(at));
            written.push(' ');
        }
        written.push_str(line);
        written.push('\n');
    }
    written
}

/// The run of a container whose log is read.
#[derive(Clone, PartialEq)]
struct Run {
    since: Option<Timestamp>,
    is_running: bool,
    /// The first lines, written at its start.
    first: Vec<String>,
    /// True if the container is ready and the Pod has no lines of its own: it then writes a line every 30 seconds.
    is_ready: bool,
}

impl Run {
    /// Returns the lines written until `now`, with their times; of those written from time to time only the last ones.
    fn lines(&self, now: Timestamp) -> Vec<(Option<Timestamp>, String)> {
        let mut lines: Vec<_> = self.first.iter().map(|line| (self.since, line.clone())).collect();
        if let Some(since) = self.since.filter(|_| self.is_running && self.is_ready) {
            let told = now.duration_since(since).as_secs() / EVERY;
            let at = |number: i64| later(since, SignedDuration::from_secs(number * EVERY));
            let from = (told - MAX_REPEATED).max(0) + 1;
            lines.extend((from..=told).map(|number| (Some(at(number)), "GET /healthz 200".to_owned())));
        }
        lines
    }
}

/// Returns the current run of a container, or the one before, with `previous` or while it waits for its next start;
/// fails if there is none. `name` is the Pod's, for messages.
fn run(pod: &Value, container: &str, previous: bool, name: &str) -> Answered<Run> {
    let status = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"]
        .into_iter()
        .flat_map(|list| pod["status"][list].as_array().into_iter().flatten())
        .find(|status| status["name"] == *container);
    let nothing = Value::Null;
    let status = status.unwrap_or(&nothing);
    let ended = &status["lastState"]["terminated"];
    let (started, end) = if previous {
        if !ended.is_object() {
            return Err(ApiError::bad_request(format!(
                "previous terminated container {container:?} in pod {name:?} not found"
            )));
        }
        (text(ended, "startedAt"), ended)
    } else if status["state"]["running"].is_object() {
        (text(&status["state"]["running"], "startedAt"), &nothing)
    } else if status["state"]["terminated"].is_object() {
        let ended = &status["state"]["terminated"];
        (text(ended, "startedAt"), ended)
    } else if ended.is_object() {
        (text(ended, "startedAt"), ended)
    } else {
        let reason = match text(&status["state"]["waiting"], "reason") {
            "" => "ContainerCreating",
            "ErrImagePull" | "ImagePullBackOff" => "trying and failing to pull image",
            reason => reason,
        };
        return Err(ApiError::bad_request(format!(
            "container {container:?} in pod {name:?} is waiting to start: {reason}"
        )));
    };
    let is_running = end.is_null();
    Ok(Run {
        since: started.parse().ok(),
        is_running,
        first: told(pod, status, end),
        is_ready: status["ready"] == true && pod["metadata"]["annotations"][LINES].is_null(),
    })
}

/// A log that a client follows.
struct ClientLog {
    inner: Arc<Inner>,
    target: Target,
    container: String,
    run: Run,
    timestamps: bool,
    /// The time up to which lines of the log were sent to the client.
    told: Timestamp,
}

impl ClientLog {
    fn answer(self, written: String) -> Answer {
        let first = Some(written).filter(|written| !written.is_empty());
        let first = futures::stream::iter(first);
        let rest = futures::stream::unfold(self, |mut followed| async move {
            let more = followed.next().await?;
            Some((more, followed))
        });
        let frames = first.chain(rest).map(|text| Ok(Frame::data(Bytes::from(text))));
        plain(Answer::stream(UnsyncBoxBody::new(StreamBody::new(frames))))
    }

    /// Waits for the next lines; returns `None` when the run of the container has ended.
    async fn next(&mut self) -> Option<String> {
        loop {
            tokio::time::sleep(FOLLOW_INTERVAL).await;
            let pod = self.inner.tree(&self.target);
            let run = pod.and_then(|pod| run(&pod, &self.container, false, &self.target.name).ok());
            let run = run.filter(|run| run.is_running && run.since == self.run.since)?;
            self.run = run;
            let now = self.inner.fleet.clock.now();
            let lines = self.run.lines(now).into_iter();
            let new: Vec<_> = lines.filter(|(at, _)| at.is_some_and(|at| at > self.told)).collect();
            self.told = now;
            if !new.is_empty() {
                return Some(written(&new, self.timestamps));
            }
        }
    }
}

/// Returns the name of the container `wanted`, or of the only one if that is empty; fails if there is none or
/// several.
fn container(pod: &Value, wanted: &str, name: &str) -> Answered<String> {
    let names = |list: &str| -> Vec<String> {
        let all = pod["spec"][list].as_array().into_iter().flatten();
        all.map(|container| text(container, "name").to_owned()).collect()
    };
    let (main, init, extra) = (names("containers"), names("initContainers"), names("ephemeralContainers"));
    if wanted.is_empty() {
        if let ([only], true, true) = (main.as_slice(), init.is_empty(), extra.is_empty()) {
            return Ok(only.clone());
        }
        let all = [init, main, extra].concat().join(" ");
        return Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{all}]"
        )));
    }
    if main.iter().chain(&init).chain(&extra).any(|known| known == wanted) {
        return Ok(wanted.to_owned());
    }
    Err(ApiError::bad_request(format!("container {wanted} is not valid for pod {name}")))
}

fn told(pod: &Value, status: &Value, ended: &Value) -> Vec<String> {
    if let Some(lines) = pod["metadata"]["annotations"][LINES].as_str() {
        return lines.lines().map(str::to_owned).collect();
    }
    let mut lines = vec![format!("starting {}", text(status, "image"))];
    match ended["exitCode"].as_i64() {
        Some(0) => lines.push("done".to_owned()),
        Some(code) => lines.push(format!("fatal: giving up with exit code {code}")),
        None if status["ready"] == true => lines.push("ready".to_owned()),
        None => lines.push("not ready yet".to_owned()),
    }
    lines
}
