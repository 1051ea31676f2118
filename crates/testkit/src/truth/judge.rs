//! Kubernetes' own verdict on an app, and the comparison of a look with it.
//!
//! The verdict follows Kubernetes' own rules and uses nothing of Taffrail's: for Deployments those of `kubectl rollout
//! status` (k8s.io/kubectl, polymorphichelpers/rollout_status.go), for Jobs their conditions (k8s.io/api, batch/v1). A
//! paused Deployment, for which `kubectl rollout status` waits forever, is complete while all its replicas are
//! available and of one ReplicaSet: then nothing is in progress and nothing is missing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::scenes::Kind;
use super::watch::World;

/// The state of an app, by one version of its object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", content = "why")]
pub(super) enum State {
    Complete,
    Underway(String),
    Failed(String),
    Absent,
}

/// The result of comparing Taffrail's answer on an app with Kubernetes' own verdicts of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Opinion {
    Right,
    /// Shown as failed or missing, but it was not so; or shown with any other health, such as unknown, or not at all.
    WrongRed,
    /// Shown as ready, but it was not.
    WrongGreen,
    /// Shown as in progress, but it was complete or had failed.
    WrongAmber,
}

/// The reasons of waiting containers with which a Pod never becomes ready by waiting.
const HARD: [&str; 6] = [
    "CrashLoopBackOff",
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
];

/// Returns the states that Kubernetes itself gives an app in `worlds`, the objects at each of a number of moments in
/// their order: by the objects of each moment, and by the app's object of one moment with Pods that began to fail at a
/// later one.
pub(super) fn states(kind: Kind, name: &str, worlds: &[World]) -> Vec<State> {
    let mut states: Vec<State> = Vec::new();
    let mut add = |state: State| {
        if !states.contains(&state) {
            states.push(state);
        }
    };
    let mut objects: Vec<Option<&Arc<Value>>> = Vec::new();
    let mut is_hard: HashMap<*const Value, bool> = HashMap::new();
    let mut before: HashSet<*const Value> = HashSet::new();
    for world in worlds {
        let pods = world.of_kind(Kind::Pod);
        let failing =
            pods.filter(|pod| *is_hard.entry(Arc::as_ptr(pod)).or_insert_with(|| hard(pod).is_some()));
        let failing: HashSet<*const Value> = failing.map(Arc::as_ptr).collect();
        if !failing.is_subset(&before) {
            objects.iter().for_each(|object| add(state(kind, *object, world)));
        }
        before = failing;
        let object = world.get(kind, name);
        add(state(kind, object, world));
        if objects.last().map(|last| last.map(Arc::as_ptr)) != Some(object.map(Arc::as_ptr)) {
            objects.push(object);
        }
    }
    states
}

/// Returns the state of the app with this object, `None` if it does not exist, by the ReplicaSets and Pods in `world`.
fn state(kind: Kind, object: Option<&Arc<Value>>, world: &World) -> State {
    match (kind, object) {
        (_, None) => State::Absent,
        (Kind::Deployment, Some(object)) => {
            deployment(object, world.of_kind(Kind::ReplicaSet), world.of_kind(Kind::Pod))
        }
        (Kind::Job, Some(object)) => job(object),
        (Kind::ReplicaSet | Kind::Pod, Some(_)) => State::Underway("no app is one".to_owned()),
    }
}

fn count(object: &Value, field: &str) -> i64 {
    object["status"][field].as_i64().unwrap_or(0)
}

fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == name)
}

fn is_true(object: &Value, name: &str) -> bool {
    condition(object, name).is_some_and(|condition| condition["status"] == "True")
}

fn deployment<'w>(
    deployment: &Value,
    sets: impl Iterator<Item = &'w Arc<Value>> + Clone,
    mut pods: impl Iterator<Item = &'w Arc<Value>>,
) -> State {
    let wanted = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    let underway = |why: String| State::Underway(why);
    if deployment["metadata"]["generation"].as_i64() > deployment["status"]["observedGeneration"].as_i64() {
        return underway("the newest spec is not observed".to_owned());
    }
    if condition(deployment, "Progressing").is_some_and(|it| it["reason"] == "ProgressDeadlineExceeded") {
        return State::Failed("exceeded its progress deadline".to_owned());
    }
    if is_true(deployment, "ReplicaFailure") {
        return State::Failed("may not create its Pods".to_owned());
    }
    let revision =
        |object: &Value| object["metadata"]["annotations"]["deployment.kubernetes.io/revision"].clone();
    let owner = |object: &Value| object["metadata"]["ownerReferences"][0]["uid"].clone();
    let mut sets = sets.filter(|set| owner(set) == deployment["metadata"]["uid"]);
    // Pods of an older template do not matter any more.
    let newest = sets.clone().find(|set| revision(set) == revision(deployment));
    let of_newest = |pod: &&Arc<Value>| newest.is_some_and(|set| owner(pod) == set["metadata"]["uid"]);
    if let Some(why) = pods.find_map(|pod| if of_newest(&pod) { hard(pod) } else { None }) {
        return State::Failed(why);
    }
    let [replicas, updated, available] =
        ["replicas", "updatedReplicas", "availableReplicas"].map(|field| count(deployment, field));
    if deployment["spec"]["paused"] == true {
        let runs = |set: &&Arc<Value>| {
            set["spec"]["replicas"].as_i64().unwrap_or(1) > 0 || count(set, "replicas") > 0
        };
        let is_one = sets.by_ref().filter(runs).count() <= 1;
        return if is_one && replicas == wanted && available == wanted {
            State::Complete
        } else {
            underway(format!("paused with {available} of {wanted} available, one ReplicaSet: {is_one}"))
        };
    }
    if updated < wanted {
        underway(format!("{updated} of {wanted} updated"))
    } else if replicas > updated {
        underway(format!("{} old replicas are pending termination", replicas - updated))
    } else if available < updated {
        underway(format!("{available} of {updated} updated replicas are available"))
    } else {
        State::Complete
    }
}

/// Returns the reason a Pod will not become ready by itself: that of a container in [`HARD`], or `Unschedulable`;
/// `None` if it may, is being deleted or has failed.
fn hard(pod: &Value) -> Option<String> {
    if pod["metadata"]["deletionTimestamp"].is_string() || pod["status"]["phase"] == "Failed" {
        return None;
    }
    let of = |list: &str| pod["status"][list].as_array().cloned().unwrap_or_default();
    let mut statuses = of("initContainerStatuses").into_iter().chain(of("containerStatuses"));
    let waiting = statuses.find_map(|status| {
        let reason = status["state"]["waiting"]["reason"].as_str()?;
        HARD.contains(&reason).then(|| reason.to_owned())
    });
    waiting.or_else(|| {
        condition(pod, "PodScheduled")
            .filter(|it| it["reason"] == "Unschedulable")
            .map(|_| "Unschedulable".to_owned())
    })
}

fn job(job: &Value) -> State {
    if is_true(job, "Failed") {
        State::Failed("no tries are left".to_owned())
    } else if is_true(job, "Complete") {
        State::Complete
    } else {
        State::Underway(format!("{} active, {} failed", count(job, "active"), count(job, "failed")))
    }
}

/// Compares the health that Taffrail showed (`None`: no such app) with the states that the app had while `taffrail`
/// ran; one match is enough.
pub(super) fn judge(shown: Option<&str>, states: &[State]) -> Opinion {
    let had = |is_so: fn(&State) -> bool| states.iter().any(is_so);
    let (right, wrong) = match shown {
        Some("Current") => (had(|state| *state == State::Complete), Opinion::WrongGreen),
        Some("InProgress") => (had(|state| matches!(state, State::Underway(_))), Opinion::WrongAmber),
        Some("Failed") => (had(|state| matches!(state, State::Failed(_))), Opinion::WrongRed),
        Some("NotFound") => (had(|state| *state == State::Absent), Opinion::WrongRed),
        _ => (false, Opinion::WrongRed),
    };
    if right { Opinion::Right } else { wrong }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn web(spec: &Value, status: &Value) -> Value {
        json!({"metadata": {"name": "web", "uid": "u", "generation": 2}, "spec": spec, "status": status})
    }

    #[test]
    fn deployment_is_complete_when_kubectl_rollout_status_ends() {
        let told = |status: &Value| deployment(&web(&json!({"replicas": 3}), status), [].iter(), [].iter());
        let is_underway = |status: &Value| matches!(told(status), State::Underway(_));
        let all =
            json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3});
        assert_eq!(told(&all), State::Complete);
        for (field, value) in
            [("observedGeneration", 1), ("updatedReplicas", 2), ("replicas", 4), ("availableReplicas", 2)]
        {
            let mut status = all.clone();
            status[field] = json!(value);
            assert!(is_underway(&status), "{field}");
        }
        let mut late = all;
        late["conditions"] =
            json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
        assert!(matches!(told(&late), State::Failed(_)));
        let zero = web(&json!({"replicas": 0}), &json!({"observedGeneration": 2}));
        assert_eq!(deployment(&zero, [].iter(), [].iter()), State::Complete);
    }

    #[test]
    fn paused_deployment_is_complete_with_one_replica_set() {
        let set = |replicas: i64| json!({"metadata": {"ownerReferences": [{"uid": "u"}]}, "spec": {"replicas": replicas}, "status": {}});
        let status = json!({"observedGeneration": 2, "replicas": 2, "availableReplicas": 2});
        let paused = web(&json!({"replicas": 2, "paused": true}), &status);
        let told = |sets: &[Value]| {
            let sets: Vec<_> = sets.iter().cloned().map(Arc::new).collect();
            deployment(&paused, sets.iter(), [].iter())
        };
        assert_eq!(told(&[set(2), set(0)]), State::Complete);
        assert!(matches!(told(&[set(1), set(1)]), State::Underway(_)));
    }

    #[test]
    fn only_pods_of_the_newest_template_fail_a_deployment() {
        let annotated = |revision: &str| json!({"deployment.kubernetes.io/revision": revision});
        let mut web = web(&json!({"replicas": 1}), &json!({"observedGeneration": 2}));
        web["metadata"]["annotations"] = annotated("2");
        let set = |uid: &str, revision: &str| {
            let metadata =
                json!({"uid": uid, "annotations": annotated(revision), "ownerReferences": [{"uid": "u"}]});
            Arc::new(json!({"metadata": metadata}))
        };
        let told = |owner: &str| {
            let waiting = json!([{"state": {"waiting": {"reason": "ErrImagePull"}}}]);
            let pod = json!({"metadata": {"ownerReferences": [{"uid": owner}]}, "status": {"containerStatuses": waiting}});
            let sets = [set("old", "1"), set("new", "2")];
            deployment(&web, sets.iter(), [Arc::new(pod)].iter())
        };
        assert_eq!(told("new"), State::Failed("ErrImagePull".to_owned()));
        assert!(matches!(told("old"), State::Underway(_)));
    }

    #[test]
    fn app_of_one_moment_is_judged_by_the_pods_of_later_ones_only() {
        let annotations = json!({"deployment.kubernetes.io/revision": "1"});
        let set = json!({"metadata": {"uid": "set", "annotations": annotations, "ownerReferences": [{"uid": "u"}]}});
        let mut app = web(&json!({"replicas": 1}), &json!({"observedGeneration": 2}));
        app["metadata"]["annotations"] = annotations;
        let mut changed = app.clone();
        changed["metadata"]["generation"] = json!(3);
        let waiting = json!([{"state": {"waiting": {"reason": "ErrImagePull"}}}]);
        let pod = json!({"metadata": {"ownerReferences": [{"uid": "set"}]}, "status": {"containerStatuses": waiting}});
        let world = |app: &Arc<Value>, pod: Option<&Value>| {
            let mut objects = vec![
                ((Kind::Deployment, "web".to_owned()), Arc::clone(app)),
                ((Kind::ReplicaSet, "set".to_owned()), Arc::new(set.clone())),
            ];
            objects.extend(pod.map(|pod| ((Kind::Pod, "pod".to_owned()), Arc::new(pod.clone()))));
            World(objects.into_iter().collect())
        };
        let [app, changed] = [app, changed].map(Arc::new);
        let failed = State::Failed("ErrImagePull".to_owned());
        let told = |worlds: &[World]| states(Kind::Deployment, "web", worlds);

        let pod_last = [world(&app, None), world(&changed, None), world(&changed, Some(&pod))];
        assert!(told(&pod_last).contains(&failed));
        let pod_first = [world(&changed, Some(&pod)), world(&app, None)];
        assert!(!told(&pod_first).contains(&failed));
    }

    #[test]
    fn look_is_right_if_it_matches_one_moment() {
        let underway = State::Underway(String::new());
        let failed = State::Failed(String::new());
        assert_eq!(judge(Some("Current"), &[underway.clone(), State::Complete]), Opinion::Right);
        assert_eq!(judge(Some("Current"), std::slice::from_ref(&underway)), Opinion::WrongGreen);
        assert_eq!(judge(Some("Failed"), std::slice::from_ref(&underway)), Opinion::WrongRed);
        assert_eq!(judge(Some("Failed"), &[underway.clone(), failed]), Opinion::Right);
        assert_eq!(judge(Some("InProgress"), &[State::Complete]), Opinion::WrongAmber);
        assert_eq!(judge(Some("Unknown"), std::slice::from_ref(&underway)), Opinion::WrongRed);
        assert_eq!(judge(None, &[underway]), Opinion::WrongRed);
    }
}
