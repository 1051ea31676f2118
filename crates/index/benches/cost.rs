//! What the index of a cluster of 100,000 objects costs: bytes an object, time to take one, to walk a tree, to publish.
//!
//! `cargo bench -p taffrail-index --bench cost -- [NAMESPACES [ROUNDS]]`; 200 namespaces of 500 objects
//! and one round of updates are the default.
//! The objects are shaped as those of a real cluster: of each namespace 5 apps with 8 Deployments, 10 ReplicaSets and 40 Pods
//! (95 % ready, 2 % crashing, 3 % pending), 5 Services with their EndpointSlices, 15 ConfigMaps, 10 Secrets and others.

#![allow(clippy::print_stdout, reason = "that is what it is for")]
#![allow(clippy::disallowed_methods, reason = "a measurement reads clocks and files")]
#![allow(clippy::expect_used, reason = "a measurement that fails is none")]
#![allow(clippy::disallowed_methods, reason = "the crate is pure, who measures it is not")]

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use taffrail_index::{Handle, Index, IndexSettings, KindId};
use taffrail_object::ApiResource;
use taffrail_object::json::Parser;
use taffrail_object::{Object, Projection};
use taffrail_status::Status;

/// Writes objects one after the other into one buffer.
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

    /// Begins an object; the caller ends it from `spec` on.
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

fn api_version(kind: &str) -> &'static str {
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

/// Calls `each` with the kind and the text of every object.
fn generate(namespaces: usize, each: &mut dyn FnMut(&str, &str)) {
    let mut make = Generator { text: String::with_capacity(1 << 16), number: 0 };
    for home in 0..namespaces {
        let namespace = format!("team-{home:03}");
        for app in 0..5 {
            one_app(&mut make, home, &namespace, app, each);
        }
    }
}

/// Makes an object that nobody owns; kind, name and UID.
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

/// Time that this thread was on a processor: others may be at work beside it.
fn busy() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

fn kind(index: &mut Index, kind: &str) -> KindId {
    let (group, version) = api_version(kind).split_once('/').unwrap_or(("", "v1"));
    index.kind(&ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced: true,
    })
}

fn micros(duration: Duration, count: usize) -> f64 {
    duration.as_secs_f64() * 1e6 / count.max(1) as f64
}

fn main() {
    let namespaces = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(200);
    let now: Timestamp = "2026-11-01T11:00:00Z".parse().expect("a time");
    let mut bytes = 0;
    let mut parser = Parser::new();
    // What the measurement itself needs is not the index's.
    let mut texts = Vec::new();
    generate(2, &mut |_, text| texts.push(text.to_owned()));
    texts.iter().for_each(|text| bytes += parser.parse(text.as_bytes()).map_or(0, |_| text.len()));
    drop(texts);
    let before = resident();
    let mut index = Index::new(IndexSettings {
        mark: Arc::new(|object, add| {
            add(&object.text(&["metadata", "labels", "app.kubernetes.io/instance"]))
        }),
        ..IndexSettings::default()
    });
    let (mut parsing, mut applying, mut settling) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let (mut count, mut loaded) = (0, 0);
    bytes = 0;
    let mut some: Vec<(KindId, Projection, String)> = Vec::new();
    let mut take = |some: &mut Vec<(KindId, Projection, String)>, index: &mut Index| {
        let begun = busy();
        for (.., text) in some.iter() {
            std::hint::black_box(parser.parse(text.as_bytes()).expect("JSON"));
        }
        let parsed = busy() - begun;
        let begun = busy();
        for (kind, projection, text) in some.iter() {
            let document = parser.parse(text.as_bytes()).expect("JSON");
            let object = Object::new(document.root()).expect("an object");
            index.apply(*kind, &object, *projection, now).expect("taken");
        }
        loaded += 1;
        parsing += parsed;
        applying += (busy() - begun).saturating_sub(parsed);
        some.clear();
        // As the owner of an index does while it loads.
        if loaded % 5 == 0 {
            let begun = busy();
            index.publish(now);
            settling += busy() - begun;
        }
    };
    generate(namespaces, &mut |name, text| {
        let projection =
            if matches!(name, "Secret" | "ConfigMap") { Projection::Metadata } else { Projection::Full };
        some.push((kind(&mut index, name), projection, text.to_owned()));
        count += 1;
        bytes += text.len();
        if some.len() == 1_000 {
            take(&mut some, &mut index);
        }
    });
    take(&mut some, &mut index);
    drop(some);
    println!("objects            {count} of {} B on average", bytes / count);
    println!("parse              {:.2} µs an object", micros(parsing, count));
    println!("apply              {:.2} µs an object", micros(applying, count));
    println!("settle, publish    {:.2} µs an object", micros(settling, count));
    let begun = busy();
    let snapshot = index.publish(now);
    println!("publish, once      {:.0} µs", micros(busy() - begun, 1));
    println!("resident           {} B an object", (resident() - before) / count);
    println!("sizes              {:?}", index.sizes());
    let statuses: Vec<_> =
        Status::ALL.iter().map(|status| (status.word(), snapshot.counts().get(*status))).collect();
    println!("statuses           {statuses:?}");
    walk(&snapshot);
    drop(snapshot);
    // Again and again, for those who look with a profiler.
    for _ in 0..std::env::args().nth(2).and_then(|text| text.parse().ok()).unwrap_or(1) {
        update(&mut index, now);
    }
}

fn walk(snapshot: &taffrail_index::Snapshot) {
    let deployments = snapshot.find_kind("apps", "Deployment").expect("Deployments");
    let roots: Vec<Handle> = snapshot.of_kind(deployments, None).map(|object| object.handle()).collect();
    let (mut nodes, rounds) = (0, 20);
    let begun = busy();
    for _ in 0..rounds {
        for root in &roots {
            nodes += snapshot.tree(std::slice::from_ref(root)).count();
        }
    }
    println!(
        "tree, cold caches  {:.1} ns a node ({} trees)",
        (busy() - begun).as_secs_f64() * 1e9 / nodes as f64,
        roots.len()
    );
    let marks: Vec<String> = snapshot.marks().map(|(name, _)| name.to_owned()).collect();
    let app = &marks[marks.len() / 2];
    let managed: Vec<Handle> = snapshot
        .marked(app)
        .filter(|object| object.owners().next().is_none())
        .map(|object| object.handle())
        .collect();
    let mut nodes = 0;
    let begun = busy();
    for _ in 0..1_000 {
        nodes += snapshot.tree(&managed).count();
    }
    println!(
        "tree of an app     {:.1} ns a node warm ({} nodes)",
        (busy() - begun).as_secs_f64() * 1e9 / nodes as f64,
        nodes / 1_000
    );
    let begun = busy();
    let found: usize = marks.iter().map(|mark| snapshot.marked(mark).count()).sum();
    println!(
        "objects of an app  {:.1} µs ({} each)",
        micros(busy() - begun, marks.len()),
        found / marks.len().max(1)
    );
    let keys: Vec<_> = snapshot.all().step_by(37).map(|object| object.object_name()).collect();
    let begun = busy();
    let found = keys
        .iter()
        .filter(|name| snapshot.find(&name.group, &name.kind, &name.namespace, &name.name).is_some())
        .count();
    println!("lookup by name     {:.2} µs ({found})", micros(busy() - begun, keys.len()));
}

/// Status updates of Pods, with a snapshot after each few, while a reader holds the last one.
fn update(index: &mut Index, now: Timestamp) {
    let mut parser = Parser::new();
    let mut texts = Vec::new();
    generate(4, &mut |kind, text| {
        if kind == "Pod" {
            texts.push(text.to_owned());
        }
    });
    for (label, batch) in [("one by one", 1), ("by 20", 20)] {
        let pods = kind(index, "Pod");
        let (mut applying, mut publishing, mut slowest) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let mut held = index.publish(now);
        for (at, text) in texts.iter().enumerate() {
            let ready = if batch == 1 { "False" } else { "True" };
            let text = text.replace(
                r#"{"type":"Ready","status":"True""#,
                &format!(r#"{{"type":"Ready","status":"{ready}""#),
            );
            let document = parser.parse(text.as_bytes()).expect("JSON");
            let object = Object::new(document.root()).expect("an object");
            let begun = busy();
            index.apply(pods, &object, Projection::Full, now).expect("taken");
            applying += busy() - begun;
            if at % batch == 0 {
                let begun = busy();
                held = index.publish(now);
                publishing += busy() - begun;
                slowest = slowest.max(busy() - begun);
            }
        }
        println!(
            "updates, {label:<10} {:.1} µs apply, {:.1} µs settle and publish (at most {:.0} µs)",
            micros(applying, texts.len()),
            micros(publishing, texts.len().div_ceil(batch)),
            micros(slowest, 1)
        );
        drop(held);
    }
}
