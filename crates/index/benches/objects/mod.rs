//! Objects shaped as those of a real cluster: of each namespace 5 apps with 8 Deployments, 10 ReplicaSets and 40 Pods
//! (95 % ready, 2 % crashing, 3 % pending), 5 Services with their EndpointSlices, 15 ConfigMaps, 10 Secrets and others.

use std::fmt::Write as _;

/// Writes objects as JSON, one after the other into one buffer, each with a UID of its own.
struct Generator {
    text: String,
    number: u64,
}

const MANAGED: &str = r#"{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-11-01T10:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:podIP":{},"f:startTime":{}}},"subresource":"status"}"#;

impl Generator {
    fn uid(&mut self) -> String {
        self.number += 1;
        uid(self.number)
    }

    /// Begins the text of an object and returns its UID; the caller appends the members from `spec` on and the last
    /// brace.
    fn begin(
        &mut self,
        kind: &str,
        namespace: &str,
        name: &str,
        labels: &str,
        owner: Option<&(String, String, String)>,
    ) -> String {
        let version = api_version(kind);
        let uid = self.uid();
        self.text.clear();
        let text = &mut self.text;
        let _ = write!(
            text,
            r#"{{"apiVersion":"{version}","kind":"{kind}","metadata":{{"name":"{name}","namespace":"{namespace}","uid":"{uid}","resourceVersion":"{}","generation":1,"creationTimestamp":"2026-11-01T10:00:00Z","labels":{{{labels}}}"#,
            self.number + 10_000
        );
        if let Some((kind, name, uid)) = owner {
            let _ = write!(
                text,
                r#","ownerReferences":[{{"apiVersion":"{}","kind":"{kind}","name":"{name}","uid":"{uid}","controller":true,"blockOwnerDeletion":true}}]"#,
                api_version(kind)
            );
        }
        let _ = write!(text, r#","managedFields":[{MANAGED},{MANAGED},{MANAGED}]}}"#);
        uid
    }
}

fn uid(number: u64) -> String {
    let bits = u128::from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64 | u128::from(number);
    let text = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}

/// Returns the `apiVersion` of a kind.
pub(crate) fn api_version(kind: &str) -> &'static str {
    match kind {
        "Deployment" | "ReplicaSet" => "apps/v1",
        "EndpointSlice" => "discovery.k8s.io/v1",
        "Ingress" => "networking.k8s.io/v1",
        "HorizontalPodAutoscaler" => "autoscaling/v2",
        "Database" | "Queue" | "Certificate" => "example.dev/v1",
        _ => "v1",
    }
}

const CONTAINERS: &str = r#"{"name":"app","image":"registry.example/team/app:1.2.3","env":[{"name":"A","value":"1"},{"name":"B","valueFrom":{"configMapKeyRef":{"name":"settings","key":"b"}}},{"name":"C","valueFrom":{"secretKeyRef":{"name":"key","key":"c"}}}],"resources":{"limits":{"cpu":"1","memory":"512Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},"ports":[{"containerPort":8080,"protocol":"TCP"}],"livenessProbe":{"httpGet":{"path":"/live","port":8080,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"volumeMounts":[{"name":"config","mountPath":"/etc/app"},{"name":"kube-api-access","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"},{"name":"sidecar","image":"registry.example/mesh/proxy:4.5.6","args":["--a","--b"],"resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}"#;
const VOLUMES: &str = r#"{"name":"config","configMap":{"name":"settings","defaultMode":420}},{"name":"kube-api-access","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}"#;

fn pod_status(number: u64, ready: bool, pending: bool) -> String {
    if pending {
        return r#"{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","lastProbeTime":null,"lastTransitionTime":"2026-11-01T10:00:00Z","reason":"Unschedulable","message":"0/100 nodes are available: 100 Insufficient cpu."}],"qosClass":"Burstable"}"#.to_owned();
    }
    let (flag, state) = if ready {
        ("True", r#"{"running":{"startedAt":"2026-11-01T10:00:05Z"}}"#.to_owned())
    } else {
        let message = format!("back-off 5m0s restarting failed container=app pod=app-{number}");
        ("False", format!(r#"{{"waiting":{{"reason":"CrashLoopBackOff","message":"{message}"}}}}"#))
    };
    let condition = |name: &str, flag: &str| {
        format!(
            r#"{{"type":"{name}","status":"{flag}","lastProbeTime":null,"lastTransitionTime":"2026-11-01T10:00:{:02}Z"}}"#,
            number % 60
        )
    };
    format!(
        r#"{{"phase":"Running","conditions":[{},{},{},{}],"hostIP":"10.1.2.3","podIP":"10.2.{}.{}","startTime":"2026-11-01T10:00:00Z","containerStatuses":[{{"name":"app","state":{state},"lastState":{{}},"ready":{ready},"restartCount":{},"image":"registry.example/team/app:1.2.3","imageID":"registry.example/team/app@sha256:0123456789abcdef","containerID":"containerd://{number:064}","started":true}},{{"name":"sidecar","state":{{"running":{{"startedAt":"2026-11-01T10:00:05Z"}}}},"lastState":{{}},"ready":true,"restartCount":0,"image":"x","imageID":"y","containerID":"containerd://{number:064}","started":true}}],"qosClass":"Burstable"}}"#,
        condition("Initialized", "True"),
        condition("Ready", flag),
        condition("ContainersReady", flag),
        condition("PodScheduled", "True"),
        number % 250,
        number / 250 % 250,
        if ready { 0 } else { 17 },
    )
}

/// Calls `each` with the kind and the JSON text of every object of that many namespaces.
pub(crate) fn generate(namespaces: usize, each: &mut dyn FnMut(&str, &str)) {
    let mut make = Generator { text: String::with_capacity(1 << 16), number: 0 };
    for home in 0..namespaces {
        let namespace = format!("team-{home:03}");
        for app in 0..5 {
            one_app(&mut make, home, &namespace, app, each);
        }
    }
}

/// Makes an object without owner from the members `rest`, and calls `each` with it; returns its kind, name and UID.
fn plain(
    make: &mut Generator,
    namespace: &str,
    each: &mut dyn FnMut(&str, &str),
    kind: &str,
    name: String,
    labels: &str,
    rest: &str,
) -> (String, String, String) {
    let uid = make.begin(kind, namespace, &name, labels, None);
    make.text.push_str(rest);
    make.text.push('}');
    each(kind, &make.text);
    (kind.to_owned(), name, uid)
}

fn one_app(make: &mut Generator, home: usize, namespace: &str, app: usize, each: &mut dyn FnMut(&str, &str)) {
    let instance = format!("app-{home:03}-{app}");
    let own = format!(
        r#""app.kubernetes.io/instance":"{instance}","app.kubernetes.io/name":"shop","app.kubernetes.io/managed-by":"argocd""#
    );
    for number in 0..15 {
        let data = "x".repeat(300);
        plain(
            make,
            namespace,
            each,
            "ConfigMap",
            format!("{instance}-config-{number}"),
            &own,
            &format!(r#","data":{{"application.yaml":"{data}"}}"#),
        );
    }
    for number in 0..10 {
        plain(
            make,
            namespace,
            each,
            "Secret",
            format!("{instance}-secret-{number}"),
            &own,
            r#","type":"Opaque""#,
        );
    }
    for number in 0..2 {
        plain(make, namespace, each, "ServiceAccount", format!("{instance}-account-{number}"), &own, "");
    }
    let ready = r#","spec":{"size":3},"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-11-01T10:00:00Z","reason":"Ok","message":"all is well"}]}"#;
    for kind in ["Database", "Queue", "Certificate"] {
        plain(make, namespace, each, kind, format!("{instance}-{}", kind.to_lowercase()), &own, ready);
    }
    plain(
        make,
        namespace,
        each,
        "Ingress",
        format!("{instance}-web"),
        &own,
        r#","spec":{"rules":[]},"status":{"loadBalancer":{}}"#,
    );
    let scaled = r#","spec":{"scaleTargetRef":{"kind":"Deployment","name":"web"}},"status":{"conditions":[{"type":"AbleToScale","status":"True","reason":"ReadyForNewScale"},{"type":"ScalingActive","status":"True","reason":"ValidMetricFound"}]}"#;
    plain(make, namespace, each, "HorizontalPodAutoscaler", format!("{instance}-web"), &own, scaled);
    let services: Vec<_> = (0..5)
        .map(|number| {
            plain(
                make,
                namespace,
                each,
                "Service",
                format!("{instance}-service-{number}"),
                &own,
                r#","spec":{"type":"ClusterIP","clusterIP":"None"},"status":{"loadBalancer":{}}"#,
            )
        })
        .collect();
    let mut pods = Vec::new();
    for number in 0..8 {
        let name = format!("{instance}-deployment-{number}");
        let labels = format!(r#"{own},"component":"c{number}""#);
        let well = r#","spec":{"replicas":5,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[CONTAINERS],"volumes":[VOLUMES]}}},"status":{"observedGeneration":1,"replicas":5,"updatedReplicas":5,"readyReplicas":5,"availableReplicas":5,"conditions":[{"type":"Available","status":"True","lastTransitionTime":"2026-11-01T10:00:00Z"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}"#;
        let well = well.replace("CONTAINERS", CONTAINERS).replace("VOLUMES", VOLUMES);
        let deployment = plain(make, namespace, each, "Deployment", name.clone(), &labels, &well);
        let sets = if number < 2 { 2 } else { 1 };
        for set in 0..sets {
            let hash = format!("{:09x}", make.number * 7919 % 0xf_ffff_ffff);
            let name = format!("{name}-{hash}");
            let labels = format!(r#"{labels},"pod-template-hash":"{hash}""#);
            let uid = make.begin("ReplicaSet", namespace, &name, &labels, Some(&deployment));
            let replicas = if set == 0 { 5 } else { 0 };
            let rest = r#","spec":{"replicas":COUNT,"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[CONTAINERS],"volumes":[VOLUMES]}}},"status":{"observedGeneration":1,"replicas":COUNT,"fullyLabeledReplicas":COUNT,"readyReplicas":COUNT,"availableReplicas":COUNT}}"#;
            let rest = rest
                .replace("CONTAINERS", CONTAINERS)
                .replace("VOLUMES", VOLUMES)
                .replace("COUNT", &replicas.to_string());
            make.text.push_str(&rest);
            each("ReplicaSet", &make.text);
            let owner = ("ReplicaSet".to_owned(), name.clone(), uid);
            for pod in 0..replicas {
                let pod_name = format!("{name}-{:05x}", make.number * 31 % 0xf_ffff + pod);
                let uid = make.begin("Pod", namespace, &pod_name, &labels, Some(&owner));
                let fate = make.number * 2_654_435_761 % 100;
                let status = pod_status(make.number, fate >= 5, (2..5).contains(&fate));
                let node = if (2..5).contains(&fate) {
                    String::new()
                } else {
                    format!(r#""nodeName":"node-{}","#, make.number % 100)
                };
                let _ = write!(
                    make.text,
                    r#","spec":{{"volumes":[{VOLUMES}],"containers":[{CONTAINERS}],{node}"restartPolicy":"Always","serviceAccountName":"{instance}-account-0"}},"status":{status}}}"#
                );
                each("Pod", &make.text);
                pods.push((pod_name, uid));
            }
        }
    }
    for (number, service) in services.iter().enumerate() {
        let labels = format!(
            r#""kubernetes.io/service-name":"{}","endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io""#,
            service.1
        );
        make.begin(
            "EndpointSlice",
            namespace,
            &format!("{}-{:05x}", service.1, number * 7),
            &labels,
            Some(service),
        );
        let endpoints: Vec<_> = pods
            .chunks(8)
            .nth(number)
            .into_iter()
            .flatten()
            .map(|(name, uid)| format!(r#"{{"addresses":["10.2.3.4"],"conditions":{{"ready":true}},"targetRef":{{"kind":"Pod","namespace":"{namespace}","name":"{name}","uid":"{uid}"}}}}"#))
            .collect();
        let _ = write!(make.text, r#","addressType":"IPv4","endpoints":[{}]}}"#, endpoints.join(","));
        each("EndpointSlice", &make.text);
    }
}
