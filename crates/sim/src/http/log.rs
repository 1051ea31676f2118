//! Logs of containers. Containers do not run here, so the annotation `taffrail.dev/logs` of a Pod has their lines;
//! without it, two lines are invented that fit the container's status.

use http::header;
use serde_json::Value;

use super::Asked;
use super::answer::Answer;
use crate::error::{Answered, ApiError};
use crate::state::Inner;
use crate::target::Target;

const LINES: &str = "taffrail.dev/logs";

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

pub(super) fn answer(inner: &Inner, asked: &Asked, target: &Target) -> Answered<Answer> {
    let pod = inner.tree(target).ok_or_else(|| ApiError::not_found(&target.resource, &target.name))?;
    let query = &asked.query;
    let container = container(&pod, query.get("container"), &target.name)?;
    // A container that does not run yet has no log.
    if text(&pod["spec"], "nodeName").is_empty() {
        return Ok(Answer::text(204, ""));
    }
    let previous = query.is_true("previous");
    let status = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"]
        .into_iter()
        .flat_map(|list| pod["status"][list].as_array().into_iter().flatten())
        .find(|status| status["name"] == *container);
    let nothing = Value::Null;
    let status = status.unwrap_or(&nothing);
    let ended = &status["lastState"]["terminated"];
    let waiting = &status["state"]["waiting"];
    let (since, lines) = if previous {
        if !ended.is_object() {
            return Err(ApiError::bad_request(format!(
                "previous terminated container {container:?} in pod {:?} not found",
                target.name
            )));
        }
        (text(ended, "startedAt"), told(&pod, status, ended))
    } else if status["state"]["running"].is_object() {
        (text(&status["state"]["running"], "startedAt"), told(&pod, status, &nothing))
    } else if status["state"]["terminated"].is_object() {
        let ended = &status["state"]["terminated"];
        (text(ended, "startedAt"), told(&pod, status, ended))
    } else if ended.is_object() {
        (text(ended, "startedAt"), told(&pod, status, ended))
    } else {
        let reason = match text(waiting, "reason") {
            "" => "ContainerCreating",
            "ErrImagePull" | "ImagePullBackOff" => "trying and failing to pull image",
            reason => reason,
        };
        return Err(ApiError::bad_request(format!(
            "container {container:?} in pod {:?} is waiting to start: {reason}",
            target.name
        )));
    };
    let skipped = query.get("tailLines").parse::<usize>().map_or(0, |tail| lines.len().saturating_sub(tail));
    let mut written = String::new();
    for line in lines.iter().skip(skipped) {
        if query.is_true("timestamps") && !since.is_empty() {
            written.push_str(since);
            written.push(' ');
        }
        written.push_str(line);
        written.push('\n');
    }
    if let Ok(limit) = query.get("limitBytes").parse::<usize>() {
        let end = (0..=limit.min(written.len())).rev().find(|end| written.is_char_boundary(*end));
        written.truncate(end.unwrap_or_default());
    }
    Ok(plain(written))
}

/// Builds the answer with a complete log; a client that follows it reaches the end at once.
fn plain(written: String) -> Answer {
    Answer::text(200, &written).of_type("text/plain").header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
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
