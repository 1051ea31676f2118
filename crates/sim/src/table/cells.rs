//! The cells of built-in kinds: Kubernetes' `pkg/printers/internalversion/printers.go`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{age, age_of};
use crate::kinds::Resource;
use crate::selector::text_of;

/// Returns the cells of an object, in the order of its columns; `None` for kinds without cells of their own.
pub(super) fn of(resource: &Resource, object: &Value, now: Timestamp) -> Option<Vec<Value>> {
    let cells = Cells { object, now };
    let full = resource.full_name();
    Some(match &*full {
        "pods" => cells.pod(),
        "deployments.apps" => cells.deployment(),
        "replicasets.apps" | "replicationcontrollers" => cells.replicas(),
        "statefulsets.apps" => cells.stateful_set(),
        "daemonsets.apps" => cells.daemon_set(),
        "services" => cells.service(),
        "nodes" => cells.node(),
        "namespaces" => vec![cells.name(), cells.text("/status/phase"), cells.age()],
        "configmaps" => {
            vec![cells.name(), json!(cells.members("/data") + cells.members("/binaryData")), cells.age()]
        }
        "secrets" => vec![cells.name(), cells.text("/type"), json!(cells.members("/data")), cells.age()],
        "serviceaccounts" => vec![cells.name(), json!(cells.items("/secrets").count()), cells.age()],
        "events" => cells.event(),
        "jobs.batch" => cells.job(),
        "cronjobs.batch" => cells.cron_job(),
        "persistentvolumeclaims" => cells.claim(),
        "persistentvolumes" => cells.volume(),
        "ingresses.networking.k8s.io" => cells.ingress(),
        "horizontalpodautoscalers.autoscaling" => cells.autoscaler(),
        "poddisruptionbudgets.policy" => cells.budget(),
        "endpoints" => vec![cells.name(), json!(cells.addresses()), cells.age()],
        "endpointslices.discovery.k8s.io" => cells.slice(),
        "customresourcedefinitions.apiextensions.k8s.io" => {
            vec![cells.name(), object["metadata"]["creationTimestamp"].clone()]
        }
        "clusterroles.rbac.authorization.k8s.io" | "roles.rbac.authorization.k8s.io" => {
            vec![cells.name(), object["metadata"]["creationTimestamp"].clone()]
        }
        "rolebindings.rbac.authorization.k8s.io" | "clusterrolebindings.rbac.authorization.k8s.io" => {
            let role = format!("{}/{}", cells.plain("/roleRef/kind"), cells.plain("/roleRef/name"));
            vec![cells.name(), json!(role), cells.age()]
        }
        "leases.coordination.k8s.io" => vec![cells.name(), cells.text("/spec/holderIdentity"), cells.age()],
        _ => return None,
    })
}

struct Cells<'a> {
    object: &'a Value,
    now: Timestamp,
}

impl Cells<'_> {
    fn at(&self, pointer: &str) -> &Value {
        self.object.pointer(pointer).unwrap_or(&Value::Null)
    }

    fn name(&self) -> Value {
        self.at("/metadata/name").clone()
    }

    fn age(&self) -> Value {
        json!(age_of(self.at("/metadata/creationTimestamp"), self.now))
    }

    /// Returns a text, or an empty one.
    fn plain(&self, pointer: &str) -> String {
        self.at(pointer).as_str().unwrap_or_default().to_owned()
    }

    /// Returns a text as a cell.
    fn text(&self, pointer: &str) -> Value {
        json!(self.plain(pointer))
    }

    fn or_none(&self, pointer: &str) -> Value {
        match self.at(pointer).as_str() {
            Some(text) if !text.is_empty() => json!(text),
            _ => json!("<none>"),
        }
    }

    fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).as_i64().unwrap_or_default()
    }

    fn items(&self, pointer: &str) -> impl Iterator<Item = &Value> {
        self.at(pointer).as_array().into_iter().flatten()
    }

    fn members(&self, pointer: &str) -> usize {
        self.at(pointer).as_object().map_or(0, serde_json::Map::len)
    }

    fn containers(&self, pointer: &str, key: &str) -> Value {
        let texts: Vec<&str> = self.items(pointer).filter_map(|container| container[key].as_str()).collect();
        json!(texts.join(","))
    }

    fn selector(&self) -> Value {
        match self.at("/spec/selector") {
            Value::Null => json!("<none>"),
            selector => json!(text_of(selector)),
        }
    }

    fn template(&self) -> [Value; 3] {
        let containers = "/spec/template/spec/containers";
        [self.containers(containers, "name"), self.containers(containers, "image"), self.selector()]
    }

    fn deployment(&self) -> Vec<Value> {
        let ready = format!("{}/{}", self.number("/status/readyReplicas"), self.number("/spec/replicas"));
        let updated = json!(self.number("/status/updatedReplicas"));
        let mut cells = vec![self.name(), json!(ready), updated];
        cells.extend([json!(self.number("/status/availableReplicas")), self.age()]);
        cells.extend(self.template());
        cells
    }

    fn replicas(&self) -> Vec<Value> {
        let mut cells = vec![self.name()];
        cells.extend(
            ["/spec/replicas", "/status/replicas", "/status/readyReplicas"].map(|at| json!(self.number(at))),
        );
        cells.push(self.age());
        cells.extend(self.template());
        cells
    }

    fn stateful_set(&self) -> Vec<Value> {
        let ready = format!("{}/{}", self.number("/status/readyReplicas"), self.number("/spec/replicas"));
        let [containers, images, _] = self.template();
        vec![self.name(), json!(ready), self.age(), containers, images]
    }

    fn daemon_set(&self) -> Vec<Value> {
        let figures = [
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
        ];
        let mut cells = vec![self.name()];
        cells.extend(figures.map(|figure| json!(self.number(&format!("/status/{figure}")))));
        let nodes = match self.at("/spec/template/spec/nodeSelector") {
            Value::Null => json!("<none>"),
            selector => json!(text_of(selector)),
        };
        cells.extend([nodes, self.age()]);
        cells.extend(self.template());
        cells
    }

    fn pod(&self) -> Vec<Value> {
        let statuses: Vec<&Value> = self.items("/status/containerStatuses").collect();
        let total = self.items("/spec/containers").count();
        let ready = statuses.iter().filter(|status| status["ready"] == true).count();
        let restarts: i64 = statuses.iter().filter_map(|status| status["restartCount"].as_i64()).sum();
        let last = statuses
            .iter()
            .filter_map(|status| {
                status["lastState"]["terminated"]["finishedAt"].as_str()?.parse::<Timestamp>().ok()
            })
            .max();
        let restarts = match last {
            Some(last) if restarts > 0 => {
                format!("{restarts} ({} ago)", age(self.now.duration_since(last).as_secs()))
            }
            _ => restarts.to_string(),
        };
        let mut cells =
            vec![self.name(), json!(format!("{ready}/{total}")), json!(self.pod_status(&statuses))];
        cells.extend([
            json!(restarts),
            self.age(),
            self.or_none("/status/podIP"),
            self.or_none("/spec/nodeName"),
        ]);
        cells.push(self.or_none("/status/nominatedNodeName"));
        let gates: Vec<&str> =
            self.items("/spec/readinessGates").filter_map(|gate| gate["conditionType"].as_str()).collect();
        let met = |gate: &&&str| {
            self.items("/status/conditions")
                .any(|condition| condition["type"] == **gate && condition["status"] == "True")
        };
        let readiness = match gates.len() {
            0 => "<none>".to_owned(),
            all => format!("{}/{all}", gates.iter().filter(met).count()),
        };
        cells.push(json!(readiness));
        cells
    }

    /// Returns the `STATUS` of a Pod, as kubectl shows it.
    fn pod_status(&self, statuses: &[&Value]) -> String {
        let mut reason = self.plain("/status/phase");
        let own = self.plain("/status/reason");
        if !own.is_empty() {
            reason = own.clone();
        }
        let gated = self
            .items("/status/conditions")
            .any(|condition| condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated");
        if gated {
            reason = "SchedulingGated".to_owned();
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let inits = self.items("/status/initContainerStatuses").count();
        let mut initialising = false;
        for (index, status) in self.items("/status/initContainerStatuses").enumerate() {
            let state = &status["state"];
            let terminated = &state["terminated"];
            if terminated["exitCode"] == 0 || status["started"] == true {
                continue;
            }
            let waiting = text(&state["waiting"]["reason"]);
            reason = if terminated.is_object() {
                match text(&terminated["reason"]).as_str() {
                    "" => format!("Init:ExitCode:{}", terminated["exitCode"]),
                    why => format!("Init:{why}"),
                }
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{inits}")
            };
            initialising = true;
            break;
        }
        if !initialising {
            let mut running = false;
            for status in statuses.iter().rev() {
                let state = &status["state"];
                let (waiting, terminated) = (text(&state["waiting"]["reason"]), &state["terminated"]);
                if !waiting.is_empty() {
                    reason = waiting;
                } else if terminated.is_object() {
                    reason = match text(&terminated["reason"]).as_str() {
                        "" => format!("ExitCode:{}", terminated["exitCode"]),
                        why => why.to_owned(),
                    };
                } else if status["ready"] == true && state["running"].is_object() {
                    running = true;
                }
            }
            if reason == "Completed" && running {
                let ready = self
                    .items("/status/conditions")
                    .any(|one| one["type"] == "Ready" && one["status"] == "True");
                reason = if ready { "Running" } else { "NotReady" }.to_owned();
            }
        }
        let finished = matches!(self.plain("/status/phase").as_str(), "Succeeded" | "Failed");
        if self.at("/metadata/deletionTimestamp").is_string() {
            if own == "NodeLost" {
                return "Unknown".to_owned();
            }
            if !finished {
                return "Terminating".to_owned();
            }
        }
        reason
    }

    fn service(&self) -> Vec<Value> {
        let kind = self.plain("/spec/type");
        let balancers: Vec<&str> = self
            .items("/status/loadBalancer/ingress")
            .filter_map(|one| one["ip"].as_str().or(one["hostname"].as_str()))
            .collect();
        let external = match kind.as_str() {
            "ExternalName" => self.plain("/spec/externalName"),
            "LoadBalancer" if balancers.is_empty() => "<pending>".to_owned(),
            "LoadBalancer" => balancers.join(","),
            _ => "<none>".to_owned(),
        };
        let port = |port: &Value| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match port["nodePort"].as_i64() {
                Some(node) if node > 0 => format!("{}:{node}/{protocol}", port["port"]),
                _ => format!("{}/{protocol}", port["port"]),
            }
        };
        let ports: Vec<String> = self.items("/spec/ports").map(port).collect();
        let ports = if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") };
        let mut cells = vec![self.name(), json!(kind), self.or_none("/spec/clusterIP"), json!(external)];
        cells.extend([json!(ports), self.age(), self.selector()]);
        cells
    }

    fn node(&self) -> Vec<Value> {
        let ready = self.items("/status/conditions").find(|condition| condition["type"] == "Ready");
        let mut status = match ready.map(|condition| condition["status"] == "True") {
            Some(true) => "Ready".to_owned(),
            Some(false) => "NotReady".to_owned(),
            None => "Unknown".to_owned(),
        };
        if self.at("/spec/unschedulable") == true {
            status.push_str(",SchedulingDisabled");
        }
        let labels = self.at("/metadata/labels").as_object();
        let roles: Vec<&str> = labels
            .into_iter()
            .flatten()
            .filter_map(|(key, _)| {
                key.strip_prefix("node-role.kubernetes.io/").filter(|role| !role.is_empty())
            })
            .collect();
        let roles = if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") };
        let address = |kind: &str| {
            let found = self.items("/status/addresses").find(|address| address["type"] == kind);
            json!(found.and_then(|address| address["address"].as_str()).unwrap_or("<none>"))
        };
        let info =
            |key: &str| json!(self.at(&format!("/status/nodeInfo/{key}")).as_str().unwrap_or("<unknown>"));
        let mut cells = vec![
            self.name(),
            json!(status),
            json!(roles),
            self.age(),
            self.text("/status/nodeInfo/kubeletVersion"),
        ];
        cells.extend([address("InternalIP"), address("ExternalIP"), info("osImage"), info("kernelVersion")]);
        cells.push(info("containerRuntimeVersion"));
        cells
    }

    fn event(&self) -> Vec<Value> {
        let since = |pointers: [&str; 2]| {
            let found = pointers.into_iter().map(|pointer| self.at(pointer)).find(|value| value.is_string());
            json!(age_of(found.unwrap_or(&Value::Null), self.now))
        };
        let kind = self.plain("/involvedObject/kind").to_lowercase();
        let object = format!("{kind}/{}", self.plain("/involvedObject/name"));
        let component = [self.plain("/source/component"), self.plain("/source/host")];
        let source: Vec<&str> =
            component.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let source = if source.is_empty() { self.plain("/reportingComponent") } else { source.join(", ") };
        vec![
            since(["/lastTimestamp", "/eventTime"]),
            self.text("/type"),
            self.text("/reason"),
            json!(object),
            self.text("/involvedObject/fieldPath"),
            json!(source),
            json!(self.plain("/message").trim()),
            since(["/firstTimestamp", "/eventTime"]),
            json!(self.number("/count").max(1)),
            self.name(),
        ]
    }

    fn job(&self) -> Vec<Value> {
        let condition = |kind: &str| {
            self.items("/status/conditions")
                .any(|condition| condition["type"] == kind && condition["status"] == "True")
        };
        let status = match () {
            () if condition("Complete") => "Complete",
            () if condition("Failed") => "Failed",
            () if self.at("/metadata/deletionTimestamp").is_string() => "Terminating",
            () if condition("Suspended") => "Suspended",
            () if condition("FailureTarget") => "FailureTarget",
            () if condition("SuccessCriteriaMet") => "SuccessCriteriaMet",
            () => "Running",
        };
        let completions =
            format!("{}/{}", self.number("/status/succeeded"), self.number("/spec/completions").max(1));
        let started = self.at("/status/startTime").as_str().and_then(|text| text.parse::<Timestamp>().ok());
        let ended =
            self.at("/status/completionTime").as_str().and_then(|text| text.parse::<Timestamp>().ok());
        let duration =
            started.map(|started| age(ended.unwrap_or(self.now).duration_since(started).as_secs()));
        let mut cells = vec![self.name(), json!(status), json!(completions)];
        cells.extend([json!(duration.unwrap_or_default()), self.age()]);
        cells.extend(self.template());
        cells
    }

    fn cron_job(&self) -> Vec<Value> {
        let last = match self.at("/status/lastScheduleTime") {
            Value::Null => "<none>".to_owned(),
            time => age_of(time, self.now),
        };
        let suspended = if self.at("/spec/suspend") == true { "True" } else { "False" };
        let containers = "/spec/jobTemplate/spec/template/spec/containers";
        vec![
            self.name(),
            self.text("/spec/schedule"),
            self.or_none("/spec/timeZone"),
            json!(suspended),
            json!(self.items("/status/active").count()),
            json!(last),
            self.age(),
            self.containers(containers, "name"),
            self.containers(containers, "image"),
            self.selector(),
        ]
    }

    fn modes(&self, pointer: &str) -> String {
        let short = |mode: &Value| match mode.as_str() {
            Some("ReadWriteOnce") => "RWO",
            Some("ReadOnlyMany") => "ROX",
            Some("ReadWriteMany") => "RWX",
            _ => "RWOP",
        };
        self.items(pointer).map(short).collect::<Vec<_>>().join(",")
    }

    fn claim(&self) -> Vec<Value> {
        let phase = match self.at("/metadata/deletionTimestamp") {
            Value::Null => self.plain("/status/phase"),
            _ => "Terminating".to_owned(),
        };
        let bound = self.at("/spec/volumeName").is_string();
        let capacity = if bound { self.plain("/status/capacity/storage") } else { String::new() };
        let modes = if bound { self.modes("/status/accessModes") } else { String::new() };
        vec![
            self.name(),
            json!(phase),
            self.text("/spec/volumeName"),
            json!(capacity),
            json!(modes),
            self.text("/spec/storageClassName"),
            json!("<unset>"),
            self.age(),
            self.or_none("/spec/volumeMode"),
        ]
    }

    fn volume(&self) -> Vec<Value> {
        let claim = match self.at("/spec/claimRef") {
            Value::Null => String::new(),
            claim => format!(
                "{}/{}",
                claim["namespace"].as_str().unwrap_or_default(),
                claim["name"].as_str().unwrap_or_default()
            ),
        };
        vec![
            self.name(),
            self.text("/spec/capacity/storage"),
            json!(self.modes("/spec/accessModes")),
            self.text("/spec/persistentVolumeReclaimPolicy"),
            self.text("/status/phase"),
            json!(claim),
            self.text("/spec/storageClassName"),
            json!("<unset>"),
            self.text("/status/reason"),
            self.age(),
            self.or_none("/spec/volumeMode"),
        ]
    }

    fn ingress(&self) -> Vec<Value> {
        let hosts: Vec<&str> = self.items("/spec/rules").filter_map(|rule| rule["host"].as_str()).collect();
        let hosts = if hosts.is_empty() { "*".to_owned() } else { hosts.join(",") };
        let addresses: Vec<&str> = self
            .items("/status/loadBalancer/ingress")
            .filter_map(|one| one["ip"].as_str().or(one["hostname"].as_str()))
            .collect();
        let ports = if self.items("/spec/tls").next().is_some() { "80, 443" } else { "80" };
        let class = self.or_none("/spec/ingressClassName");
        vec![self.name(), class, json!(hosts), json!(addresses.join(",")), json!(ports), self.age()]
    }

    fn autoscaler(&self) -> Vec<Value> {
        let reference = format!(
            "{}/{}",
            self.plain("/spec/scaleTargetRef/kind"),
            self.plain("/spec/scaleTargetRef/name")
        );
        let targets: Vec<String> = self
            .items("/spec/metrics")
            .enumerate()
            .map(|(index, metric)| {
                let name = metric["resource"]["name"].as_str().unwrap_or("metric");
                let now =
                    &self.at(&format!("/status/currentMetrics/{index}/resource/current/averageUtilization"));
                let now = now.as_i64().map_or("<unknown>".to_owned(), |now| format!("{now}%"));
                format!("{name}: {now}/{}%", metric["resource"]["target"]["averageUtilization"])
            })
            .collect();
        let targets = if targets.is_empty() { "<none>".to_owned() } else { targets.join(", ") };
        let mut cells = vec![self.name(), json!(reference), json!(targets)];
        let least = self.number("/spec/minReplicas").max(1).to_string();
        cells.extend([json!(least), json!(self.number("/spec/maxReplicas"))]);
        cells.extend([json!(self.number("/status/currentReplicas")), self.age()]);
        cells
    }

    fn budget(&self) -> Vec<Value> {
        let or_na = |pointer: &str| match self.at(pointer) {
            Value::Null => json!("N/A"),
            Value::String(text) => json!(text),
            number => json!(number.to_string()),
        };
        let allowed = json!(self.number("/status/disruptionsAllowed"));
        vec![self.name(), or_na("/spec/minAvailable"), or_na("/spec/maxUnavailable"), allowed, self.age()]
    }

    fn addresses(&self) -> String {
        let mut all = Vec::new();
        for subset in self.items("/subsets") {
            let ports: Vec<&Value> = subset["ports"].as_array().into_iter().flatten().collect();
            for address in subset["addresses"].as_array().into_iter().flatten() {
                let ip = address["ip"].as_str().unwrap_or_default();
                all.extend(ports.iter().map(|port| format!("{ip}:{}", port["port"])));
            }
        }
        match all.len() {
            0 => "<none>".to_owned(),
            1..=3 => all.join(","),
            more => format!("{} + {} more...", all.get(..3).unwrap_or_default().join(","), more - 3),
        }
    }

    fn slice(&self) -> Vec<Value> {
        let join = |texts: Vec<String>| match texts.len() {
            0 => "<unset>".to_owned(),
            1..=3 => texts.join(","),
            more => format!("{} + {} more...", texts.get(..3).unwrap_or_default().join(","), more - 3),
        };
        let ports = self.items("/ports").map(|port| port["port"].to_string()).collect();
        let addresses = self
            .items("/endpoints")
            .filter_map(|endpoint| endpoint["addresses"][0].as_str().map(str::to_owned))
            .collect();
        vec![self.name(), self.text("/addressType"), json!(join(ports)), json!(join(addresses)), self.age()]
    }
}
