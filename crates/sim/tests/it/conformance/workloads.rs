//! Cases about controllers, as clients see them, and about the subresources of Pods: logs and evictions.

use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::api::{Api, MERGE};

super::cases! { "workloads":
    StatefulSets a_stateful_set_counts_its_pods,
    StatefulSets a_stateful_set_is_scaled_from_the_end,
    StatefulSets a_stateful_set_is_updated_from_the_end,
    DaemonSets a_daemon_set_has_a_pod_on_each_node,
    DaemonSets a_daemon_set_is_updated,
    Jobs a_job_completes,
    Jobs a_suspended_job_waits,
    Jobs pods_of_a_job_are_labelled,
    CronJobs cron_job_starts_due_jobs,
    CronJobs cron_job_with_forbid_starts_one_job_at_a_time,
    DisruptionBudgets disruption_budget_counts_healthy_pods,
    DisruptionBudgets eviction_that_violates_a_budget_is_refused,
    PodLogs logs_of_an_absent_pod,
    PodLogs logs_of_several_containers_require_a_name,
    PodLogs unscheduled_pod_has_no_logs,
}

fn template(app: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": app}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "example.com/main:1"}]},
    })
}

fn set(kind: &str, name: &str, more: &Value) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": name}}, "template": template(name)});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// Waits until the object at `path` has all these values, each at its JSON pointer, and returns it.
async fn says(api: &Api, path: &str, wanted: &[(&str, Value)]) -> Result<Value> {
    let what = format!("{path} has {wanted:?}");
    api.until(&what, || async {
        let reply = api.get(path).await?;
        Ok(reply.code == 200 && wanted.iter().all(|(pointer, value)| reply.at(pointer) == value))
    })
    .await?;
    Ok(api.get(path).await?.ok()?.body)
}

async fn stateful_set(api: &Api, more: &Value) -> Result<(String, String)> {
    let namespace = api.namespace().await?;
    let sets = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets");
    api.post(&sets, set("StatefulSet", "db", more)).await?.ok()?;
    Ok((format!("{sets}/db"), format!("/api/v1/namespaces/{namespace}/pods")))
}

async fn a_stateful_set_counts_its_pods(api: &Api) -> Result<()> {
    let (path, pods) = stateful_set(api, &json!({"replicas": 2, "serviceName": "db"})).await?;
    let settled = [
        ("/status/replicas", json!(2)),
        ("/status/readyReplicas", json!(2)),
        ("/status/availableReplicas", json!(2)),
        ("/status/updatedReplicas", json!(2)),
        ("/status/currentReplicas", json!(2)),
        ("/status/observedGeneration", json!(1)),
        ("/status/collisionCount", json!(0)),
    ];
    let found = says(api, &path, &settled).await?;
    let revision = found["status"]["updateRevision"].clone();
    ensure!(found["status"]["currentRevision"] == revision && revision.is_string(), "{found}");
    let list = api.get(&pods).await?.ok()?;
    ensure!(list.names() == ["db-0", "db-1"], "{:?}", list.names());
    let first = &list.items()[0];
    let labels = &first["metadata"]["labels"];
    ensure!(labels["apps.kubernetes.io/pod-index"] == "0", "{labels}");
    ensure!(labels["statefulset.kubernetes.io/pod-name"] == "db-0", "{labels}");
    ensure!(labels["controller-revision-hash"] == revision, "{labels}");
    ensure!(first["spec"]["hostname"] == "db-0" && first["spec"]["subdomain"] == "db", "{first}");
    let made: Vec<&str> =
        list.items().iter().filter_map(|pod| pod["metadata"]["creationTimestamp"].as_str()).collect();
    ensure!(made.is_sorted(), "{made:?}");
    Ok(())
}

async fn a_stateful_set_is_scaled_from_the_end(api: &Api) -> Result<()> {
    let (path, pods) = stateful_set(api, &json!({"replicas": 2, "podManagementPolicy": "Parallel"})).await?;
    says(api, &path, &[("/status/readyReplicas", json!(2))]).await?;
    api.patch(&format!("{path}/scale"), MERGE, json!({"spec": {"replicas": 1}})).await?.ok()?;
    says(api, &path, &[("/status/replicas", json!(1)), ("/status/observedGeneration", json!(2))]).await?;
    api.until("the last Pod is gone", || async { Ok(api.get(&pods).await?.ok()?.names() == ["db-0"]) }).await
}

async fn a_stateful_set_is_updated_from_the_end(api: &Api) -> Result<()> {
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}});
    let more = json!({"replicas": 2, "podManagementPolicy": "Parallel", "updateStrategy": rolling});
    let (path, pods) = stateful_set(api, &more).await?;
    let before = says(api, &path, &[("/status/readyReplicas", json!(2))]).await?;
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {"restarted": "now"}}}}});
    api.patch(&path, MERGE, patch).await?.ok()?;
    let old = before["status"]["currentRevision"].clone();
    let settled = [
        ("/status/readyReplicas", json!(2)),
        ("/status/updatedReplicas", json!(1)),
        ("/status/currentReplicas", json!(1)),
        ("/status/currentRevision", old.clone()),
    ];
    let after = says(api, &path, &settled).await?;
    ensure!(after["status"]["updateRevision"] != old, "{after}");
    let label = "/metadata/labels/controller-revision-hash";
    api.get(&format!("{pods}/db-0")).await?.ok()?.is(label, old)?;
    api.get(&format!("{pods}/db-1")).await?.ok()?.is(label, after["status"]["updateRevision"].clone())?;
    let namespace = after["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    let revisions =
        api.get(&format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions")).await?.ok()?;
    let turns: Vec<i64> = revisions.items().iter().filter_map(|one| one["revision"].as_i64()).collect();
    ensure!(turns.len() == 2 && turns.contains(&1) && turns.contains(&2), "{turns:?}");
    let data = &revisions.items()[0]["data"]["spec"]["template"];
    ensure!(data["$patch"] == "replace" && data["spec"]["containers"].is_array(), "{data}");
    Ok(())
}

async fn daemon_set(api: &Api) -> Result<(String, String, usize)> {
    let nodes = api.get("/api/v1/nodes").await?.ok()?.items().len();
    let namespace = api.namespace().await?;
    let sets = format!("/apis/apps/v1/namespaces/{namespace}/daemonsets");
    api.post(&sets, set("DaemonSet", "agent", &json!({}))).await?.ok()?;
    Ok((format!("{sets}/agent"), format!("/api/v1/namespaces/{namespace}/pods"), nodes))
}

fn on_all(nodes: usize) -> [(&'static str, Value); 6] {
    [
        ("/status/desiredNumberScheduled", json!(nodes)),
        ("/status/currentNumberScheduled", json!(nodes)),
        ("/status/updatedNumberScheduled", json!(nodes)),
        ("/status/numberReady", json!(nodes)),
        ("/status/numberAvailable", json!(nodes)),
        ("/status/numberMisscheduled", json!(0)),
    ]
}

async fn a_daemon_set_has_a_pod_on_each_node(api: &Api) -> Result<()> {
    let (path, pods, nodes) = daemon_set(api).await?;
    let found = says(api, &path, &on_all(nodes)).await?;
    ensure!(found["status"].get("numberUnavailable").is_none(), "{found}");
    ensure!(found["status"]["observedGeneration"] == 1, "{found}");
    let list = api.get(&pods).await?.ok()?;
    ensure!(list.items().len() == nodes, "{:?}", list.names());
    let pod = &list.items()[0];
    ensure!(pod["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet", "{pod}");
    ensure!(pod["metadata"]["labels"]["controller-revision-hash"].is_string(), "{pod}");
    let term = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0";
    ensure!(pod.pointer(&format!("{term}/key")) == Some(&json!("metadata.name")), "{pod}");
    Ok(())
}

async fn a_daemon_set_is_updated(api: &Api) -> Result<()> {
    let (path, pods, nodes) = daemon_set(api).await?;
    says(api, &path, &on_all(nodes)).await?;
    let before = api.get(&pods).await?.ok()?.items()[0]["metadata"]["uid"].clone();
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {"restarted": "now"}}}}});
    api.patch(&path, MERGE, patch).await?.ok()?;
    api.until("the Pods are new", || async {
        let list = api.get(&pods).await?.ok()?;
        let new = |pod: &Value| {
            pod["metadata"]["uid"] != before && pod["metadata"]["annotations"]["restarted"] == "now"
        };
        Ok(list.items().len() == nodes && list.items().iter().all(new))
    })
    .await?;
    says(api, &path, &on_all(nodes)).await?;
    Ok(())
}

async fn job(api: &Api, more: &Value) -> Result<(String, String)> {
    let namespace = api.namespace().await?;
    let jobs = format!("/apis/batch/v1/namespaces/{namespace}/jobs");
    let mut spec = json!({"template": template("once")});
    spec["template"]["spec"]["restartPolicy"] = json!("Never");
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": spec});
    api.post(&jobs, job).await?.ok()?;
    Ok((format!("{jobs}/once"), format!("/api/v1/namespaces/{namespace}/pods")))
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|one| one["type"] == kind).unwrap_or(&Value::Null)
}

async fn a_job_completes(api: &Api) -> Result<()> {
    let (path, _) = job(api, &json!({})).await?;
    let found = says(api, &path, &[("/status/succeeded", json!(1)), ("/status/ready", json!(0))]).await?;
    let found = if condition(&found, "Complete").is_null() {
        api.until("it says so", || async {
            Ok(!condition(&api.get(&path).await?.ok()?.body, "Complete").is_null())
        })
        .await?;
        api.get(&path).await?.ok()?.body
    } else {
        found
    };
    for kind in ["SuccessCriteriaMet", "Complete"] {
        let one = condition(&found, kind);
        ensure!(one["status"] == "True" && one["reason"] == "CompletionsReached", "{found}");
    }
    let status = &found["status"];
    ensure!(status["startTime"].is_string() && status["completionTime"].is_string(), "{status}");
    ensure!(status.get("active").is_none() && status["uncountedTerminatedPods"] == json!({}), "{status}");
    Ok(())
}

async fn a_suspended_job_waits(api: &Api) -> Result<()> {
    let (path, pods) = job(api, &json!({"suspend": true})).await?;
    api.until("it says so", || async {
        let found = api.get(&path).await?.ok()?;
        Ok(condition(&found.body, "Suspended")["status"] == "True")
    })
    .await?;
    let found = api.get(&path).await?.ok()?;
    ensure!(condition(&found.body, "Suspended")["reason"] == "JobSuspended", "{}", found.text);
    ensure!(found.at("/status/startTime").is_null(), "{}", found.text);
    ensure!(api.get(&pods).await?.ok()?.items().is_empty());
    api.patch(&path, MERGE, json!({"spec": {"suspend": false}})).await?.ok()?;
    api.until("it goes on", || async {
        let found = api.get(&path).await?.ok()?;
        Ok(condition(&found.body, "Suspended")["status"] == "False"
            && found.at("/status/startTime").is_string())
    })
    .await
}

async fn pods_of_a_job_are_labelled(api: &Api) -> Result<()> {
    let (path, pods) = job(api, &json!({"parallelism": 2, "completions": 2})).await?;
    let made = api.get(&path).await?.ok()?;
    let uid = made.text_at("/metadata/uid");
    made.is("/spec/selector/matchLabels", json!({"batch.kubernetes.io/controller-uid": uid}))?;
    let labels = made.at("/spec/template/metadata/labels");
    ensure!(labels["job-name"] == "once" && labels["batch.kubernetes.io/job-name"] == "once", "{labels}");
    ensure!(labels["controller-uid"] == *uid, "{labels}");
    let by_name = format!("{pods}?labelSelector=job-name%3Donce");
    api.until("there are both", || async { Ok(api.get(&by_name).await?.ok()?.items().len() == 2) }).await
}

/// Creates a suspended CronJob; returns it with its path and that of Jobs beside it.
async fn cron_job(api: &Api, policy: &str) -> Result<(Value, String, String)> {
    let namespace = api.namespace().await?;
    let base = format!("/apis/batch/v1/namespaces/{namespace}");
    let mut pods = template("tick");
    pods["spec"]["restartPolicy"] = json!("Never");
    let spec = json!({
        "schedule": "* * * * *", "suspend": true, "concurrencyPolicy": policy,
        // They are suspended, so that they stay active.
        "jobTemplate": {"spec": {"template": pods, "suspend": true}},
    });
    let cron =
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": spec});
    let cron = api.post(&format!("{base}/cronjobs"), cron).await?.ok()?.body;
    Ok((cron, format!("{base}/cronjobs/tick"), format!("{base}/jobs")))
}

/// Resumes a CronJob as if it had last been due two minutes ago, and had started these Jobs.
async fn overdue(api: &Api, path: &str, active: &[Value]) -> Result<()> {
    let past = Timestamp::now() - SignedDuration::from_mins(2);
    let past = past.strftime("%Y-%m-%dT%H:%M:00Z").to_string();
    let status = json!({"status": {"lastScheduleTime": past, "active": active}});
    api.patch(&format!("{path}/status"), MERGE, status).await?.ok()?;
    api.patch(path, MERGE, json!({"spec": {"suspend": false}})).await?.ok()?;
    Ok(())
}

async fn cron_job_starts_due_jobs(api: &Api) -> Result<()> {
    let (_, path, jobs) = cron_job(api, "Allow").await?;
    overdue(api, &path, &[]).await?;
    api.until("a Job is there", || async { Ok(!api.get(&jobs).await?.ok()?.items().is_empty()) }).await?;
    let list = api.get(&jobs).await?.ok()?;
    let job = &list.items()[0];
    let name = job["metadata"]["name"].as_str().unwrap_or_default();
    let scheduled = &job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    let due: Timestamp = scheduled.as_str().unwrap_or_default().parse()?;
    ensure!(name == format!("tick-{}", due.as_second() / 60), "{job}");
    ensure!(job["metadata"]["ownerReferences"][0]["kind"] == "CronJob", "{job}");
    api.until("it is active", || async {
        let found = api.get(&path).await?.ok()?;
        let listed = found.at("/status/active").as_array().is_some_and(|all| !all.is_empty());
        Ok(listed && found.at("/status/lastScheduleTime") == scheduled)
    })
    .await
}

async fn cron_job_with_forbid_starts_one_job_at_a_time(api: &Api) -> Result<()> {
    let (cron, path, jobs) = cron_job(api, "Forbid").await?;
    let owner = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": cron["metadata"]["uid"], "controller": true,
    });
    let mut job = cron["spec"]["jobTemplate"].clone();
    job["metadata"] = json!({"name": "earlier", "ownerReferences": [owner]});
    let earlier = api.post(&jobs, job).await?.ok()?.body;
    let metadata = &earlier["metadata"];
    let reference = json!({
        "apiVersion": "batch/v1", "kind": "Job", "namespace": metadata["namespace"], "name": "earlier", "uid": metadata["uid"],
    });
    overdue(api, &path, &[reference]).await?;
    let namespace = metadata["namespace"].as_str().unwrap_or_default().to_owned();
    let events = format!("/api/v1/namespaces/{namespace}/events?fieldSelector=reason%3DJobAlreadyActive");
    api.until("it says so", || async { Ok(!api.get(&events).await?.ok()?.items().is_empty()) }).await?;
    ensure!(api.get(&jobs).await?.ok()?.names() == ["earlier"]);
    Ok(())
}

/// Creates a ReplicaSet of two Pods that are ready, and a PodDisruptionBudget for them with the fields `budget`;
/// returns the path of the budget and that of Pods.
async fn guarded(api: &Api, budget: &Value) -> Result<(String, String)> {
    let namespace = api.namespace().await?;
    let sets = format!("/apis/apps/v1/namespaces/{namespace}/replicasets");
    api.post(&sets, set("ReplicaSet", "web", &json!({"replicas": 2}))).await?.ok()?;
    says(api, &format!("{sets}/web"), &[("/status/readyReplicas", json!(2))]).await?;
    let budgets = format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets");
    let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}});
    for (key, value) in budget.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec});
    api.post(&budgets, budget).await?.ok()?;
    Ok((format!("{budgets}/b"), format!("/api/v1/namespaces/{namespace}/pods")))
}

async fn disruption_budget_counts_healthy_pods(api: &Api) -> Result<()> {
    let (path, _) = guarded(api, &json!({"minAvailable": "50%"})).await?;
    let settled = [
        ("/status/currentHealthy", json!(2)),
        ("/status/desiredHealthy", json!(1)),
        ("/status/expectedPods", json!(2)),
        ("/status/disruptionsAllowed", json!(1)),
        ("/status/observedGeneration", json!(1)),
    ];
    let found = says(api, &path, &settled).await?;
    let allowed = condition(&found, "DisruptionAllowed");
    ensure!(allowed["status"] == "True" && allowed["reason"] == "SufficientPods", "{found}");
    api.patch(&path, MERGE, json!({"spec": {"minAvailable": 2}})).await?.ok()?;
    let found = says(api, &path, &[("/status/disruptionsAllowed", json!(0))]).await?;
    ensure!(condition(&found, "DisruptionAllowed")["reason"] == "InsufficientPods", "{found}");
    Ok(())
}

async fn eviction_that_violates_a_budget_is_refused(api: &Api) -> Result<()> {
    let (path, pods) = guarded(api, &json!({"maxUnavailable": 0})).await?;
    says(api, &path, &[("/status/currentHealthy", json!(2)), ("/status/disruptionsAllowed", json!(0))])
        .await?;
    let list = api.get(&pods).await?.ok()?;
    let name = list.names()[0];
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let refused = api.post(&format!("{pods}/{name}/eviction"), eviction.clone()).await?;
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    refused.fails(429, "TooManyRequests", message)?;
    refused.is("/details/causes/0/reason", "DisruptionBudget")?;
    let why = "The disruption budget b needs 2 healthy pods and has 2 currently";
    refused.is("/details/causes/0/message", why)?;
    api.delete(&path).await?.ok()?;
    api.post(&format!("{pods}/{name}/eviction"), eviction).await?.code(201)?;
    Ok(())
}

async fn logs_of_an_absent_pod(api: &Api) -> Result<()> {
    let path = format!("/api/v1/namespaces/{}/pods/absent/log", api.namespace().await?);
    api.get(&path).await?.fails(404, "NotFound", "pods \"absent\" not found")?;
    Ok(())
}

/// Creates a Pod with two containers and an init container that no node accepts; returns the path of its log.
async fn nowhere(api: &Api) -> Result<String> {
    let pods = format!("/api/v1/namespaces/{}/pods", api.namespace().await?);
    let mut pod = template("nowhere");
    pod["metadata"]["name"] = json!("nowhere");
    pod["spec"]["nodeSelector"] = json!({"no-such": "node"});
    pod["spec"]["containers"] =
        json!([{"name": "a", "image": "example.com/a:1"}, {"name": "b", "image": "example.com/b:1"}]);
    pod["spec"]["initContainers"] = json!([{"name": "first", "image": "example.com/c:1"}]);
    api.post(&pods, pod).await?.ok()?;
    Ok(format!("{pods}/nowhere/log"))
}

async fn logs_of_several_containers_require_a_name(api: &Api) -> Result<()> {
    let path = nowhere(api).await?;
    let message = "a container name must be specified for pod nowhere, choose one of: [first a b]";
    api.get(&path).await?.fails(400, "BadRequest", message)?;
    let message = "container c is not valid for pod nowhere";
    api.get(&format!("{path}?container=c")).await?.fails(400, "BadRequest", message)?;
    Ok(())
}

async fn unscheduled_pod_has_no_logs(api: &Api) -> Result<()> {
    let path = nowhere(api).await?;
    for container in ["a", "first"] {
        let reply = api.get(&format!("{path}?container={container}")).await?;
        ensure!(reply.code(204)?.text.is_empty(), "{reply:?}");
    }
    Ok(())
}
