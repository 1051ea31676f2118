//! Chooses the containers whose logs are read: those with the worst status.

use std::collections::{BTreeSet, HashMap};

use taffrail_object::Object;
use taffrail_object::json::Value;
use taffrail_status::Status;

/// Maximum number of containers that are chosen; further ones are left out and counted.
const MAX_TARGETS: usize = 100;

/// A container whose log can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogTarget {
    /// The namespace of the Pod.
    pub namespace: String,
    /// The name of the Pod.
    pub pod: String,
    /// The name of the container.
    pub container: String,
    /// The status of the container: `Failed` if it crashed and is not ready again, or cannot start; `Current` if it is
    /// ready or ended well, and always for an ephemeral container; else `InProgress`.
    pub status: Status,
    /// True if the container's last run failed and another one runs, or will.
    /// [`LogRequest::previous`](taffrail_cluster::LogRequest) then reads the log of the failed run.
    pub has_crashed: bool,
    /// Number of times that the container was started again.
    pub restarts: i64,
    /// True if the container runs.
    pub is_running: bool,
    /// True if the container runs or ran, so that it has a log.
    pub has_started: bool,
}

/// The user's choice among the containers of Pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogChoice {
    /// The name of the container; `None` to choose by status, as [`choose`] describes.
    pub container: Option<String>,
    /// True to choose containers of all Pods, even if some of them fail.
    pub all_pods: bool,
}

/// The containers that [`choose`] chose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogTargets {
    /// The containers, sorted by the status of their Pod, the worst first; of equal ones that of the newest Pod first.
    pub targets: Vec<LogTarget>,
    /// The worst status of a Pod, chosen or not; `None` if there are no Pods. If [`LogChoice::container`] is set, only
    /// Pods with such a container count.
    pub status: Option<Status>,
    /// Number of Pods that are left out because their status is better than that of others.
    pub well: usize,
    /// Number of containers that are left out because there are too many.
    pub left_out: usize,
    /// The names of all containers of the Pods, sorted.
    pub known: Vec<String>,
}

/// Chooses the containers of `pods` whose logs are read, in the Pods with the worst status, or with
/// [`LogChoice::all_pods`] in all: those that have the status of their Pod, or, if that is Current, its main
/// containers. If [`LogChoice::container`] is set, chooses those with that name, and ignores Pods that have none.
/// Otherwise leaves out containers that have not started if others of the Pod have.
pub fn choose(pods: &[Object<'_>], choice: &LogChoice) -> LogTargets {
    let mut found: Vec<Pod> = pods.iter().map(Pod::of).collect();
    forgive(&mut found);
    found.sort_by(|one, other| {
        let newest = other.created.cmp(&one.created);
        one.status.cmp(&other.status).then(newest).then_with(|| one.name.cmp(&other.name))
    });
    let names = found.iter().flat_map(|pod| pod.containers.iter().map(|it| it.target.container.clone()));
    let known = names.collect::<BTreeSet<String>>().into_iter().collect();
    if let Some(name) = &choice.container {
        found.retain(|pod| pod.containers.iter().any(|it| *name == it.target.container));
    }
    let status = found.first().map(|pod| pod.status);
    let mut chosen = LogTargets { known, status, ..LogTargets::default() };
    if !choice.all_pods
        && let Some(worst) = status.filter(|worst| *worst != Status::Current)
    {
        let all = found.len();
        found.retain(|pod| pod.status == worst);
        chosen.well = all - found.len();
    }
    for pod in found {
        let status = pod.status;
        let is_chosen = |it: &Container| match &choice.container {
            Some(name) => *name == it.target.container,
            None if status != Status::Current => it.target.status == status,
            None => it.is_main,
        };
        let mut own: Vec<LogTarget> =
            pod.containers.into_iter().filter(is_chosen).map(|it| it.target).collect();
        // Those that wait for another container say nothing yet.
        if choice.container.is_none() && own.iter().any(|it| it.has_started) {
            own.retain(|it| it.has_started);
        }
        chosen.targets.extend(own);
    }
    chosen.left_out = chosen.targets.len().saturating_sub(MAX_TARGETS);
    chosen.targets.truncate(MAX_TARGETS);
    chosen
}

/// Sets Pods that ended to Current if their controller has a newer Pod, because their work was tried again.
fn forgive(pods: &mut [Pod]) {
    let mut newest: HashMap<String, String> = HashMap::new();
    for pod in pods.iter().filter(|pod| !pod.owner.is_empty()) {
        let known = newest.entry(pod.owner.clone()).or_default();
        *known = std::mem::take(known).max(pod.created.clone());
    }
    for pod in pods.iter_mut().filter(|pod| pod.has_ended) {
        if newest.get(&pod.owner).is_some_and(|newest| *newest > pod.created) {
            pod.status = Status::Current;
        }
    }
}

/// A Pod of the object whose logs are read, with its containers.
struct Pod {
    name: String,
    /// The UID of the Pod's controller; empty if it has none.
    owner: String,
    created: String,
    has_ended: bool,
    /// The worst status of the Pod's containers; `Current` if [`forgive`] set it.
    status: Status,
    containers: Vec<Container>,
}

/// A container whose log may be chosen.
struct Container {
    is_main: bool,
    target: LogTarget,
}

impl Pod {
    fn of(pod: &Object<'_>) -> Pod {
        let lists = [
            ("initContainers", "initContainerStatuses", false),
            ("containers", "containerStatuses", true),
            ("ephemeralContainers", "ephemeralContainerStatuses", false),
        ];
        let has_ended = matches!(&*pod.text(&["status", "phase"]), "Succeeded" | "Failed");
        let mut containers = Vec::new();
        for (specs, statuses, is_main) in lists {
            let all = |path: [&str; 2]| pod.at(&path).and_then(Value::items).into_iter().flatten();
            for spec in all(["spec", specs]) {
                let Some(name) = spec.get("name").and_then(Value::as_str) else { continue };
                let is_it = |status: &Value<'_>| status.get("name").is_some_and(|own| own.is_str(&name));
                let state = all(["status", statuses]).find(is_it);
                let status = state.map_or(Status::InProgress, status);
                let has = |part: &str, kind: &str| {
                    state.and_then(|state| state.get(part)?.get(kind)).filter(|it| !it.is_null())
                };
                // Ephemeral containers are not part of what the Pod is for.
                let status = if specs == "ephemeralContainers" { Status::Current } else { status };
                let target = LogTarget {
                    namespace: pod.namespace().into_owned(),
                    pod: pod.name().into_owned(),
                    container: name.into_owned(),
                    status,
                    has_crashed: has("state", "terminated").is_none()
                        && has("lastState", "terminated").is_some_and(has_failed),
                    restarts: state.and_then(|state| state.get("restartCount")?.as_i64()).unwrap_or_default(),
                    is_running: has("state", "running").is_some(),
                    has_started: has("state", "running")
                        .or_else(|| has("state", "terminated"))
                        .or_else(|| has("lastState", "terminated"))
                        .is_some(),
                };
                containers.push(Container { is_main, target });
            }
        }
        // Containers that wait for another one to fail or to be done say nothing.
        let status = containers.iter().map(|it| it.target.status).min().unwrap_or(Status::Current);
        let created = pod.text(&["metadata", "creationTimestamp"]).into_owned();
        let mut owners =
            pod.at(&["metadata", "ownerReferences"]).and_then(Value::items).into_iter().flatten();
        let owner = owners.find(|it| it.get("controller").and_then(Value::as_bool) == Some(true));
        let owner = owner.and_then(|owner| owner.get("uid")?.as_str()).unwrap_or_default().into_owned();
        Pod { name: pod.name().into_owned(), owner, created, has_ended, status, containers }
    }
}

/// Returns the status of a container, from its entry in the Pod's status: `Failed` if it crashed and is not ready
/// again, or cannot start; `Current` if it is ready or ended well; else `InProgress`.
fn status(state: Value<'_>) -> Status {
    let of = |part: &str, kind: &str| state.get(part)?.get(kind).filter(|it| !it.is_null());
    let has_crashed = of("lastState", "terminated").is_some_and(has_failed);
    if let Some(end) = of("state", "terminated") {
        return if has_failed(end) { Status::Failed } else { Status::Current };
    }
    if let Some(waiting) = of("state", "waiting") {
        let reason = waiting.get("reason").and_then(Value::as_str).unwrap_or_default();
        let is_starting = matches!(&*reason, "" | "ContainerCreating" | "PodInitializing");
        return if is_starting && !has_crashed { Status::InProgress } else { Status::Failed };
    }
    match state.get("ready").and_then(Value::as_bool) {
        Some(true) => Status::Current,
        // Between two crashes.
        _ if has_crashed => Status::Failed,
        _ => Status::InProgress,
    }
}

fn has_failed(end: Value<'_>) -> bool {
    end.get("exitCode").and_then(Value::as_i64).unwrap_or_default() != 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use taffrail_object::json::OwnedDocument;

    use super::*;

    /// Returns a Pod with these containers: name of the container, list of the Pod that contains it, and entry of its
    /// status.
    fn pod(
        name: &str,
        second: u8,
        phase: &str,
        containers: &[(&str, &str, serde_json::Value)],
    ) -> OwnedDocument {
        let mut object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "shop", "name": name, "creationTimestamp": format!("2026-03-01T12:00:{second:02}Z"),
                "ownerReferences": [{"controller": true, "uid": "u"}]},
            "spec": {"containers": [], "initContainers": []},
            "status": {"phase": phase, "containerStatuses": [], "initContainerStatuses": []},
        });
        for (name, list, status) in containers {
            let mut status = status.clone();
            status["name"] = json!(name);
            let statuses = if *list == "containers" { "containerStatuses" } else { "initContainerStatuses" };
            object["spec"][list].as_array_mut().unwrap().push(json!({"name": name}));
            object["status"][statuses].as_array_mut().unwrap().push(status);
        }
        OwnedDocument::parse(object.to_string().as_bytes()).unwrap()
    }

    fn ready() -> serde_json::Value {
        json!({"ready": true, "state": {"running": {"startedAt": "2026-03-01T12:00:00Z"}}})
    }

    fn crashing() -> serde_json::Value {
        json!({"ready": false, "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1}}})
    }

    fn chosen(pods: &[OwnedDocument], choice: &LogChoice) -> (Vec<String>, usize) {
        let objects: Vec<Object<'_>> = pods.iter().map(|pod| Object::new(pod.root()).unwrap()).collect();
        let found = choose(&objects, choice);
        (found.targets.iter().map(|it| format!("{}/{}", it.pod, it.container)).collect(), found.well)
    }

    #[test]
    fn failing_containers_are_chosen_before_all_others() {
        let main = "containers";
        let pods = [
            pod("a", 1, "Running", &[("web", main, ready()), ("proxy", main, ready())]),
            pod("b", 2, "Running", &[("web", main, crashing()), ("proxy", main, ready())]),
            pod("c", 3, "Running", &[("web", main, ready()), ("proxy", main, ready())]),
        ];
        let of = |choice: LogChoice| chosen(&pods, &choice);
        assert_eq!(of(LogChoice::default()), (vec!["b/web".to_owned()], 2));
        let all = ["b/web", "c/web", "c/proxy", "a/web", "a/proxy"].map(str::to_owned).to_vec();
        assert_eq!(of(LogChoice { all_pods: true, container: None }), (all, 0));
        let proxy = Some("proxy".to_owned());
        assert_eq!(of(LogChoice { all_pods: false, container: proxy }), (vec!["b/proxy".to_owned()], 2));
        let (all, well) = chosen(&pods[..1], &LogChoice::default());
        assert_eq!((all.len(), well), (2, 0));
    }

    #[test]
    fn a_pod_without_the_named_container_hides_none_that_has_it() {
        let main = "containers";
        let pods = [
            pod("a", 1, "Running", &[("nginx", main, ready())]),
            pod("b", 2, "Running", &[("web", main, crashing())]),
        ];
        let nginx = LogChoice { all_pods: false, container: Some("nginx".to_owned()) };
        assert_eq!(chosen(&pods, &nginx), (vec!["a/nginx".to_owned()], 0));
    }

    #[test]
    fn init_containers_are_chosen_while_they_hold_the_pod_up() {
        let waits = json!({"ready": false, "state": {"waiting": {"reason": "PodInitializing"}}});
        let runs = json!({"ready": false, "state": {"running": {}}});
        let pods = [pod(
            "a",
            1,
            "Pending",
            &[("migrate", "initContainers", runs), ("web", "containers", waits.clone())],
        )];
        assert_eq!(chosen(&pods, &LogChoice::default()).0, ["a/migrate"]);
        let done = json!({"ready": true, "state": {"terminated": {"exitCode": 0}}});
        let pods =
            [pod("a", 1, "Running", &[("migrate", "initContainers", done), ("web", "containers", ready())])];
        assert_eq!(chosen(&pods, &LogChoice::default()).0, ["a/web"]);
        // Nothing has started: the server says why.
        let pods = [pod("a", 1, "Pending", &[("web", "containers", waits)])];
        assert_eq!(chosen(&pods, &LogChoice::default()).0, ["a/web"]);
    }

    #[test]
    fn pods_that_failed_count_only_without_a_successor() {
        let failed = json!({"ready": false, "state": {"terminated": {"exitCode": 1}}});
        let failed = |name, second| pod(name, second, "Failed", &[("job", "containers", failed.clone())]);
        let done = json!({"ready": false, "state": {"terminated": {"exitCode": 0}}});
        let done = pod("c", 3, "Succeeded", &[("job", "containers", done)]);
        assert_eq!(
            chosen(&[failed("a", 1), failed("b", 2)], &LogChoice::default()),
            (vec!["b/job".to_owned()], 1)
        );
        assert_eq!(chosen(&[failed("a", 1), done], &LogChoice::default()).0, ["c/job", "a/job"]);
    }
}
