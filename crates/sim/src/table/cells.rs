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
    let template = "containers:/spec/template/spec images:/spec/template/spec selector:/spec/selector";
    Some(match &*full {
        "pods" => cells.pod(),
        "deployments.apps" => {
            let fixed = "name ? number:/status/updatedReplicas number:/status/availableReplicas age";
            cells.row(&format!("{fixed} {template}"), [cells.ready()])
        }
        "replicasets.apps" | "replicationcontrollers" => {
            let fixed = "name number:/spec/replicas number:/status/replicas number:/status/readyReplicas age";
            cells.row(&format!("{fixed} {template}"), [])
        }
        "statefulsets.apps" => {
            cells.row("name ? age containers:/spec/template/spec images:/spec/template/spec", [cells.ready()])
        }
        "daemonsets.apps" => {
            let fixed = "name number:/status/desiredNumberScheduled number:/status/currentNumberScheduled \
                number:/status/numberReady number:/status/updatedNumberScheduled number:/status/numberAvailable \
                selector:/spec/template/spec/nodeSelector age";
            cells.row(&format!("{fixed} {template}"), [])
        }
        "services" => cells.service(),
        "nodes" => cells.node(),
        "namespaces" => cells.row("name text:/status/phase age", []),
        "configmaps" => {
            cells.row("name ? age", [json!(cells.members("/data") + cells.members("/binaryData"))])
        }
        "secrets" => cells.row("name text:/type members:/data age", []),
        "serviceaccounts" => cells.row("name items:/secrets age", []),
        "events" => cells.event(),
        "jobs.batch" => cells.row(&format!("name ? ? ? age {template}"), cells.job()),
        "cronjobs.batch" => cells.cron_job(),
        "persistentvolumeclaims" => cells.claim(),
        "persistentvolumes" => cells.volume(),
        "ingresses.networking.k8s.io" => cells.ingress(),
        "horizontalpodautoscalers.autoscaling" => cells.autoscaler(),
        "poddisruptionbudgets.policy" => cells.budget(),
        "endpoints" => cells.row("name ? age", [json!(cells.addresses())]),
        "endpointslices.discovery.k8s.io" => cells.slice(),
        "customresourcedefinitions.apiextensions.k8s.io"
        | "clusterroles.rbac.authorization.k8s.io"
        | "roles.rbac.authorization.k8s.io" => cells.row("name value:/metadata/creationTimestamp", []),
        "rolebindings.rbac.authorization.k8s.io" | "clusterrolebindings.rbac.authorization.k8s.io" => {
            let role = format!("{}/{}", cells.plain("/roleRef/kind"), cells.plain("/roleRef/name"));
            cells.row("name ? age", [json!(role)])
        }
        "leases.coordination.k8s.io" => cells.row("name text:/spec/holderIdentity age", []),
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

    /// Returns the cells that a row's words describe: `name`, `age`, `?` for the next of the `computed` ones, or what to
    /// show of a field, such as `text:/status/phase`.
    fn row(&self, words: &str, computed: impl IntoIterator<Item = Value>) -> Vec<Value> {
        let mut computed = computed.into_iter();
        let cell = |word: &str| match word.split_once(':') {
            None if word == "name" => self.at("/metadata/name").clone(),
            None if word == "age" => json!(age_of(self.at("/metadata/creationTimestamp"), self.now)),
            None => computed.next().unwrap_or_default(),
            Some(("value", at)) => self.at(at).clone(),
            Some(("text", at)) => json!(self.plain(at)),
            Some(("number", at)) => json!(self.number(at)),
            Some(("items", at)) => json!(self.items(at).count()),
            Some(("members", at)) => json!(self.members(at)),
            Some(("containers", at)) => self.containers(at, "name"),
            Some(("images", at)) => self.containers(at, "image"),
            Some(("selector", at)) => match self.at(at) {
                Value::Null => json!("<none>"),
                selector => json!(text_of(selector)),
            },
            Some((absent, at)) => match self.at(at).as_str() {
                Some(text) if !text.is_empty() => json!(text),
                _ => json!(format!("<{absent}>")),
            },
        };
        words.split(' ').map(cell).collect()
    }

    /// Returns the text at a JSON pointer of the object; empty if there is no text.
    fn plain(&self, pointer: &str) -> String {
        self.at(pointer).as_str().unwrap_or_default().to_owned()
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

    fn containers(&self, spec: &str, key: &str) -> Value {
        let containers = self.at(spec)["containers"].as_array().into_iter().flatten();
        json!(containers.filter_map(|container| container[key].as_str()).collect::<Vec<_>>().join(","))
    }

    /// Returns true if the object has a condition of the type `kind` whose field `key` is `value`.
    fn has_condition(&self, kind: &str, key: &str, value: &str) -> bool {
        self.items("/status/conditions").any(|condition| condition["type"] == kind && condition[key] == value)
    }

    fn ready(&self) -> Value {
        json!(format!("{}/{}", self.number("/status/readyReplicas"), self.number("/spec/replicas")))
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
        let gates: Vec<&str> =
            self.items("/spec/readinessGates").filter_map(|gate| gate["conditionType"].as_str()).collect();
        let met = |gate: &&&str| self.has_condition(gate, "status", "True");
        let readiness = match gates.len() {
            0 => "<none>".to_owned(),
            all => format!("{}/{all}", gates.iter().filter(met).count()),
        };
        let ready = format!("{ready}/{total}");
        let words = "name ? ? ? age none:/status/podIP none:/spec/nodeName none:/status/nominatedNodeName ?";
        self.row(words, [ready, self.pod_status(&statuses), restarts, readiness].map(Value::from))
    }

    /// Returns the `STATUS` of a Pod, as kubectl shows it.
    fn pod_status(&self, statuses: &[&Value]) -> String {
        let mut reason = self.plain("/status/phase");
        let own = self.plain("/status/reason");
        if !own.is_empty() {
            reason = own.clone();
        }
        if self.has_condition("PodScheduled", "reason", "SchedulingGated") {
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
                let ready = self.has_condition("Ready", "status", "True");
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
        let balancers = self.balancers();
        let external = match kind.as_str() {
            "ExternalName" => self.plain("/spec/externalName"),
            "LoadBalancer" if balancers.is_empty() => "<pending>".to_owned(),
            "LoadBalancer" => balancers,
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
        let words = "name text:/spec/type none:/spec/clusterIP ? ? age selector:/spec/selector";
        self.row(words, [external, ports].map(Value::from))
    }

    fn balancers(&self) -> String {
        let ingress = self.items("/status/loadBalancer/ingress");
        ingress
            .filter_map(|one| one["ip"].as_str().or(one["hostname"].as_str()))
            .collect::<Vec<_>>()
            .join(",")
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
        let words = "name ? ? age text:/status/nodeInfo/kubeletVersion ? ? unknown:/status/nodeInfo/osImage \
            unknown:/status/nodeInfo/kernelVersion unknown:/status/nodeInfo/containerRuntimeVersion";
        let computed = [json!(status), json!(roles), address("InternalIP"), address("ExternalIP")];
        self.row(words, computed)
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
        let words = "? text:/type text:/reason ? text:/involvedObject/fieldPath ? ? ? ? name";
        let [last, first] = ["/lastTimestamp", "/firstTimestamp"].map(|at| since([at, "/eventTime"]));
        let (message, count) = (json!(self.plain("/message").trim()), json!(self.number("/count").max(1)));
        self.row(words, [last, json!(object), json!(source), message, first, count])
    }

    /// Returns the status of a Job, its completions and its duration.
    fn job(&self) -> [Value; 3] {
        let condition = |kind: &str| self.has_condition(kind, "status", "True");
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
        let [started, ended] = ["/status/startTime", "/status/completionTime"]
            .map(|at| self.at(at).as_str().and_then(|text| text.parse::<Timestamp>().ok()));
        let duration =
            started.map(|started| age(ended.unwrap_or(self.now).duration_since(started).as_secs()));
        [json!(status), json!(completions), json!(duration.unwrap_or_default())]
    }

    fn cron_job(&self) -> Vec<Value> {
        let last = match self.at("/status/lastScheduleTime") {
            Value::Null => "<none>".to_owned(),
            time => age_of(time, self.now),
        };
        let suspended = if self.at("/spec/suspend") == true { "True" } else { "False" };
        let words = "name text:/spec/schedule none:/spec/timeZone ? items:/status/active ? age \
            containers:/spec/jobTemplate/spec/template/spec images:/spec/jobTemplate/spec/template/spec \
            selector:/spec/selector";
        self.row(words, [json!(suspended), json!(last)])
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
        let words =
            "name ? text:/spec/volumeName ? ? text:/spec/storageClassName ? age none:/spec/volumeMode";
        self.row(words, [phase, capacity, modes, "<unset>".to_owned()].map(Value::from))
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
        let words = "name text:/spec/capacity/storage ? text:/spec/persistentVolumeReclaimPolicy text:/status/phase ? \
            text:/spec/storageClassName ? text:/status/reason age none:/spec/volumeMode";
        self.row(words, [self.modes("/spec/accessModes"), claim, "<unset>".to_owned()].map(Value::from))
    }

    fn ingress(&self) -> Vec<Value> {
        let hosts: Vec<&str> = self.items("/spec/rules").filter_map(|rule| rule["host"].as_str()).collect();
        let hosts = if hosts.is_empty() { "*".to_owned() } else { hosts.join(",") };
        let ports = if self.items("/spec/tls").next().is_some() { "80, 443" } else { "80" };
        let computed = [hosts, self.balancers(), ports.to_owned()];
        self.row("name none:/spec/ingressClassName ? ? ? age", computed.map(Value::from))
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
        let least = self.number("/spec/minReplicas").max(1).to_string();
        let words = "name ? ? ? number:/spec/maxReplicas number:/status/currentReplicas age";
        self.row(words, [reference, targets, least].map(Value::from))
    }

    fn budget(&self) -> Vec<Value> {
        let or_na = |pointer: &str| match self.at(pointer) {
            Value::Null => json!("N/A"),
            Value::String(text) => json!(text),
            number => json!(number.to_string()),
        };
        let bounds = [or_na("/spec/minAvailable"), or_na("/spec/maxUnavailable")];
        self.row("name ? ? number:/status/disruptionsAllowed age", bounds)
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
        some_of(&all, "<none>")
    }

    fn slice(&self) -> Vec<Value> {
        let ports: Vec<String> = self.items("/ports").map(|port| port["port"].to_string()).collect();
        let address = |endpoint: &Value| endpoint["addresses"][0].as_str().map(str::to_owned);
        let addresses: Vec<String> = self.items("/endpoints").filter_map(address).collect();
        let computed = [ports, addresses].map(|texts| json!(some_of(&texts, "<unset>")));
        self.row("name text:/addressType ? ? age", computed)
    }
}

/// Joins texts with commas; of more than three it joins the first three and adds the number of the others. Returns
/// `none` if there are no texts.
fn some_of(texts: &[String], none: &str) -> String {
    match texts {
        [] => none.to_owned(),
        [_] | [_, _] | [_, _, _] => texts.join(","),
        [first @ .., _] => {
            format!("{} + {} more...", first.get(..3).unwrap_or(first).join(","), texts.len() - 3)
        }
    }
}
