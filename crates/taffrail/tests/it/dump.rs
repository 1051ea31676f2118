//! `taffrail dump`, and what `--from` makes of it.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use taffrail_sim::{Fault, Trouble};
use taffrail_testkit::objects::{
    self, anything, applications, definition, kustomizations, namespace, with_status_subresource,
};
use taffrail_testkit::server::{Reply, Server, core_discovery};
use tempfile::TempDir;

use super::bad_clusters::kubeconfig;
use super::served::Served;
use super::{Answer, clean, command, taffrail};

const FLUX: &str = "kustomize.toolkit.fluxcd.io/v1";

/// Clusters with an app of Flux, one of Helm, one by labels.
fn served(names: &[&str]) -> Served {
    Served::start(names, |_, cluster| {
        for object in objects() {
            cluster.apply(object).unwrap();
        }
    })
}

fn deployment(namespace: &str, name: &str, available: i64) -> Value {
    let mut object = objects::deployment(namespace, name, available);
    object["metadata"]["labels"] = json!({"kustomize.toolkit.fluxcd.io/name": "shop",
        "kustomize.toolkit.fluxcd.io/namespace": "flux-system"});
    object
}

fn objects() -> Vec<Value> {
    let release = json!({"name": "cart", "namespace": "shop", "version": 1, "info": {"status": "deployed", "last_deployed": "2026-01-01T00:00:00Z"},
        "chart": {"metadata": {"name": "cart", "version": "1.2.3"}},
        "manifest": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: cart\n"});
    // What is not packed, Helm's decoder reads as it is: twice in base64.
    let twice = |text: &str| BASE64.encode(BASE64.encode(text));
    vec![
        namespace("shop"),
        namespace("flux-system"),
        with_status_subresource(kustomizations()),
        json!({"apiVersion": FLUX, "kind": "Kustomization",
            "metadata": {"namespace": "flux-system", "name": "shop", "generation": 1},
            "spec": {"sourceRef": {"kind": "GitRepository", "name": "fleet"}},
            "status": {"observedGeneration": 1, "lastAppliedRevision": "main@sha1:1",
                "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "Applied revision: main@sha1:1", "observedGeneration": 1}],
                "inventory": {"entries": [{"id": "shop_web_apps_Deployment", "v": "v1"}, {"id": "shop_gone__ConfigMap", "v": "v1"},
                    {"id": "shop_pass__Secret", "v": "v1"}]}}}),
        deployment("shop", "web", 1),
        deployment("shop", "cart", 2),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": "pass"},
            "data": {"password": "aHVzaC1odXNo"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
            "metadata": {"namespace": "shop", "name": "sh.helm.release.v1.cart.v1", "labels": {"owner": "helm", "name": "cart", "version": "1"}},
            "data": {"release": twice(&release.to_string())}}),
        json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"namespace": "shop", "name": "sh.helm.release.v1.forged.v1", "labels": {"owner": "helm"}},
            "data": {"release": "aHVzaC1odXNo"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "notes",
            "labels": {"app.kubernetes.io/instance": "notes"}}, "data": {"a": "b"}}),
    ]
}

impl Served {
    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Dumps all clusters into a folder.
    #[track_caller]
    fn dump(&self, arguments: &[&str]) -> String {
        let folder = self.path("dumps/");
        let answer = self.ask(&[&["dump", "-o", &folder], arguments].concat());
        assert_eq!((answer.code, &*answer.stderr, &*answer.stdout), (0, "", ""));
        folder
    }
}

/// A list without what differs between two looks.
fn timeless(mut list: Value) -> Value {
    fn forget(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.remove("freshness");
                map.remove("observedAt");
                map.remove("reading");
                // A command that asks a cluster names its context.
                map.remove("next");
                map.values_mut().for_each(forget);
            }
            Value::Array(items) => items.iter_mut().for_each(forget),
            _ => {}
        }
    }
    forget(&mut list);
    list
}

#[test]
fn a_dump_read_back_answers_as_the_clusters_did() {
    let served = served(&["one", "two"]);
    let dumps = served.dump(&[]);
    for view in [
        &["get", "apps", "-o", "json"][..],
        &["get", "resources", "-o", "json"],
        &["get", "clusters", "-o", "json"],
        &["explain", "-o", "json"],
        &["tree", "flux-system/shop", "-o", "json"],
    ] {
        let live = served.ask(view);
        let back = taffrail(&[view, &["--from", &dumps]].concat(), "");
        assert_eq!(timeless(back.json()), timeless(live.json()), "{view:?}");
        assert_eq!((back.code, &back.stderr), (live.code, &live.stderr), "{view:?}");
    }
    let apps = taffrail(&["get", "apps", "-o", "json", "--from", &dumps], "").json();
    let shop = apps["items"].as_array().unwrap().iter().find(|app| app["name"] == "shop").unwrap();
    assert_eq!(
        (&shop["cluster"], &shop["counts"]["NotFound"], &shop["counts"]["InProgress"]),
        (&json!("one"), &json!(1), &json!(1)),
        "{shop}"
    );
    assert!(
        apps["items"]
            .as_array()
            .unwrap()
            .iter()
            .any(|app| app["delivery"] == "helm" && app["health"] == "Current"),
        "{apps}"
    );
}

#[test]
fn a_dump_has_no_values_of_secrets_and_only_its_owner_may_read_it() {
    let served = served(&["one"]);
    let path = served.path("one.jsonl");
    let answer = served.ask(&["dump", "-o", &path]);
    assert_eq!((answer.code, &*answer.stderr), (0, ""));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"pass\"") && !text.contains("aHVzaC1odXNo"), "values of Secrets are left out");
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    let mode = |path: &str| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    let folder = served.dump(&[]);
    assert_eq!((mode(&folder), mode(&format!("{folder}one.jsonl"))), (0o700, 0o600));
    // Nothing is left beside it.
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn unread_scopes_of_a_dump_are_unknown() {
    let served = served(&["one"]);
    served.clusters[0].fault(Fault::new(Trouble::ServerError("no etcd".to_owned())).resource("configmaps"));
    let path = served.path("one.jsonl");
    let answer = served.ask(&["dump", "-o", &path]);
    assert_eq!(answer.code, 3);
    assert!(answer.stderr.contains("one: list configmaps"), "{}", answer.stderr);
    let view = &["get", "apps", "-o", "json"];
    let (live, back) = (served.ask(view), taffrail(&["get", "apps", "-o", "json", "--from", &path], ""));
    assert_eq!(timeless(back.json()), timeless(live.json()));
    assert_eq!(back.code, 3);
    let apps = back.json();
    let shop = apps["items"].as_array().unwrap().iter().find(|app| app["name"] == "shop").unwrap();
    assert_eq!((&shop["counts"]["NotFound"], &shop["counts"]["Unknown"]), (&json!(0), &json!(1)), "{shop}");
}

#[test]
fn dump_of_one_namespace_leaves_others_unknown() {
    let served = served(&["one"]);
    let path = served.path("one.jsonl");
    let answer = served.ask(&["dump", "-n", "flux-system", "-o", &path]);
    assert_eq!((answer.code, &*answer.stderr), (0, ""));
    let apps = taffrail(&["get", "apps", "-o", "json", "--from", &path], "").json();
    let shop = &apps["items"][0];
    assert_eq!(
        (&shop["name"], &shop["counts"]["NotFound"], &shop["counts"]["Unknown"]),
        (&json!("shop"), &json!(0), &json!(3)),
        "{apps}"
    );
}

#[test]
fn a_dump_that_was_cut_proves_nothing_absent() {
    let served = served(&["one"]);
    let path = served.path("one.jsonl");
    assert_eq!(served.ask(&["dump", "-o", &path]).code, 0);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let without_last = lines[..lines.len() - 1].join("\n") + "\n";
    let lost = lines.iter().filter(|line| !line.contains("\"pass\"")).map(|line| format!("{line}\n"));
    for (cut, why) in [(without_last, "the dump is cut"), (lost.collect(), "objects of the")] {
        std::fs::write(&path, cut).unwrap();
        let answer = taffrail(&["get", "apps", "-o", "json", "--from", &path], "");
        assert_eq!(answer.code, 3, "{why}");
        let apps = answer.json();
        assert!(apps["errors"].to_string().contains(why), "{apps}");
        let told = apps["errors"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["scope"].as_str().unwrap().contains(".jsonl"));
        assert_eq!(told.count(), 1, "told once: {apps}");
        let shop = apps["items"].as_array().unwrap().iter().find(|app| app["name"] == "shop").unwrap();
        assert_eq!(shop["counts"]["NotFound"], 0, "{shop}");
    }
}

#[test]
fn dump_reports_objects_beyond_its_limit() {
    let served = served(&["one"]);
    let path = served.path("one.jsonl");
    let answer = served.ask(&["dump", "-o", &path, "--max-size", "0"]);
    assert_eq!(answer.code, 3);
    assert!(
        answer.stderr.contains("--max-size") && answer.stderr.contains("more kinds could not be read"),
        "{}",
        answer.stderr
    );
    let apps = taffrail(&["get", "apps", "--from", &path], "");
    assert_eq!(apps.code, 3);
    assert!(!apps.stdout.contains("Ready"), "{}", apps.stdout);
}

#[test]
fn a_cluster_that_does_not_answer_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let answer = taffrail(&["dump", "-o", path.to_str().unwrap(), "--kubeconfig", "/nowhere/config"], "");
    assert_eq!(answer.code, 3);
    assert!(!Path::new(&path).exists());
}

#[test]
fn a_cluster_that_does_not_answer_is_lost_when_a_folder_is_read_back() {
    let served = served(&["one", "two"]);
    served.clusters[0].apply(applications()).unwrap();
    let there = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"namespace": "shop", "name": "there"},
        "spec": {"project": "default", "source": {"repoURL": "https://git.example/a", "path": "a", "targetRevision": "main"},
            "destination": {"server": served.clusters[1].url(), "namespace": "shop"}},
        "status": {"sync": {"status": "Synced", "revision": "1"}, "health": {"status": "Healthy"},
            "resources": [{"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "web"}]}});
    served.clusters[0].apply(there).unwrap();
    served.clusters[1].fault(Fault::new(Trouble::ServerError("no etcd".to_owned())));
    let folder = served.path("dumps/");
    let answer = served.ask(&["dump", "-o", &folder]);
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
    let view = &["get", "apps", "-o", "json"][..];
    let (live, back) = (served.ask(view), taffrail(&[view, &["--from", &folder]].concat(), ""));
    assert_eq!(timeless(back.json()), timeless(live.json()));
    assert_eq!(back.code, 3);
    let apps = back.json();
    let there = apps["items"].as_array().unwrap().iter().find(|app| app["name"] == "there").unwrap();
    let message = there["message"].as_str().unwrap();
    assert_eq!((&there["cluster"], &there["effective"]), (&json!("two"), &json!("Unknown")), "{there}");
    let why = there["problem"]["message"].as_str().unwrap();
    assert!(why.contains("no etcd") && !message.contains("--context"), "{there}");
    let view = &["get", "clusters", "-o", "json"][..];
    let (live, back) = (served.ask(view), taffrail(&[view, &["--from", &folder]].concat(), ""));
    assert_eq!((timeless(back.json()), back.code), (timeless(live.json()), 3));
}

#[test]
fn a_dump_replaces_files_alone() {
    let served = served(&["one"]);
    let (pipe, link, file) = (served.path("pipe"), served.path("link"), served.path("file"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    std::fs::write(&file, "older").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    // A pipe has two ends.
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let answer = served.ask(&["dump", "-o", &pipe]);
    assert_eq!((answer.code, &*answer.stderr), (0, ""));
    assert!(std::fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo(), "the pipe was replaced");
    assert!(reader.join().unwrap().contains("\"pass\""));

    assert_eq!(served.ask(&["dump", "-o", &link]).code, 0);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink(), "the link was replaced");
    let written = std::fs::metadata(&file).unwrap();
    assert!(written.len() > 1000 && written.permissions().mode() & 0o777 == 0o600);
}

#[test]
fn several_clusters_need_a_folder() {
    let served = served(&["one", "two"]);
    let answer = served.ask(&["dump"]);
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    assert!(answer.stderr.contains("-o DIR"), "{}", answer.stderr);
    let file = served.path("config");
    assert_eq!(served.ask(&["dump", "-o", &file]).code, 2);
}

#[test]
fn a_dump_has_no_copies_of_values_of_secrets() {
    const COPY: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let served = served(&["one"]);
    let config = "current-context: a\ncontexts: [{name: a, context: {cluster: b}}]\n\
        clusters: [{name: b, cluster: {server: 'https://u:hush@flux.example'}}]\n";
    let copies = json!({COPY: "{\"stringData\":{\"p\":\"hush\"}}", "kapp.k14s.io/original": "hush", "note": "hush",
        "meta.helm.sh/release-name": "cart", "taffrail.dev/set": "kept"});
    let fields = json!([{"manager": "hush", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]);
    let secret = |name: &str, labels: Value, data: Value| {
        json!({"apiVersion": "v1", "kind": "Secret", "data": data, "metadata": {"namespace": "flux-system",
            "name": name, "labels": labels, "annotations": copies, "managedFields": fields}})
    };
    let server = BASE64.encode("https://u:hush@argo.example:6443/a");
    for object in [
        secret("plain", json!({"mine": "yes"}), json!({"p": BASE64.encode("hush")})),
        secret("argo", json!({"argocd.argoproj.io/secret-type": "cluster"}), json!({"server": server})),
        secret("flux", json!({}), json!({"value": BASE64.encode(config)})),
        json!({"apiVersion": FLUX, "kind": "Kustomization", "metadata": {"namespace": "flux-system", "name": "far"},
            "spec": {"kubeConfig": {"secretRef": {"name": "flux"}}}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "generated",
            "annotations": {"note": "kept", COPY: "{\"data\":{\"p\":\"hush\"}}"}}, "data": {"big": "12345678901234567890"}}),
    ] {
        served.clusters[0].apply(object).unwrap();
    }
    let path = served.path("one.jsonl");
    let answer = served.ask(&["dump", "-o", &path]);
    assert_eq!((answer.code, &*answer.stderr), (0, ""));
    let text = std::fs::read_to_string(&path).unwrap();
    let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let secrets = objects.iter().filter(|object| object["kind"] == "Secret");
    for object in secrets.filter(|object| object["metadata"]["namespace"] == "flux-system") {
        let annotations = json!({"meta.helm.sh/release-name": "cart", "taffrail.dev/set": "kept"});
        assert_eq!(object["metadata"]["annotations"], annotations, "{object}");
        assert_eq!(object["metadata"]["managedFields"], Value::Null, "{object}");
        for value in object["data"].as_object().into_iter().flatten().map(|(_, value)| value) {
            let value = String::from_utf8(BASE64.decode(value.as_str().unwrap()).unwrap()).unwrap();
            assert!(value.contains(".example") && !value.contains("hush"), "{value}");
        }
    }
    let named = |name: &str| {
        objects.iter().filter(move |object| object["metadata"]["name"] == name).collect::<Vec<_>>()
    };
    assert_eq!(named("plain")[0]["metadata"]["labels"], json!({"mine": "yes"}));
    let argo = BASE64.encode("https://argo.example:6443/a");
    assert!(
        named("argo").iter().any(|argo_cd| argo_cd["data"]["server"] == argo.as_str()),
        "{:?}",
        named("argo")
    );
    assert_eq!(named("flux").iter().filter(|flux| flux["data"]["value"].is_string()).count(), 1);
    let generated = named("generated")[0];
    assert_eq!(generated["metadata"]["annotations"], json!({"note": "kept"}));
    assert_eq!(generated["data"]["big"], "12345678901234567890");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("hush")).collect();
    // The password that is in plain sight in `objects` is a value that is left out as well.
    assert!(lines.is_empty(), "{lines:?}");
}

/// A cluster that serves ConfigMaps only; a list of them is what `answer` makes of the path; nothing where it is to hang.
fn of_config_maps(
    answer: impl Fn(&str) -> Option<Value> + Send + Sync + 'static,
) -> (Server, TempDir, String) {
    let server = Server::start(move |request| {
        if let Some(reply) = core_discovery(request, &[("configmaps", "ConfigMap")]) {
            return reply;
        }
        let found = match request.path.as_str() {
            "/api/v1/configmaps" => answer(&request.target()),
            _ => {
                Some(json!({"metadata": {"name": "kube-system", "uid": "1"}, "apiVersion": "meta.k8s.io/v1",
                "kind": "PartialObjectMetadata"}))
            }
        };
        found.map_or(Reply::Silence, |found| Reply::json(200, found.to_string()))
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    std::fs::write(&file, kubeconfig(&[("one", &server.url())])).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (server, folder, file)
}

#[test]
fn a_list_without_end_ends_as_one_that_could_not_be_read() {
    let pages = std::sync::atomic::AtomicUsize::new(0);
    let (_server, folder, config) = of_config_maps(move |_| {
        let page = pages.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // The test ends where the program would not.
        let next = if page < 20_000 { format!("x{page}") } else { String::new() };
        let item = json!({"metadata": {"namespace": "shop", "name": format!("a{page}")}});
        Some(
            json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"continue": next}, "items": [item]}),
        )
    });
    let path = folder.path().join("one.jsonl");
    let answer = taffrail(&["dump", "-o", path.to_str().unwrap(), "--kubeconfig", &config], "");
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    assert!(
        answer.stderr.contains("configmaps") && answer.stderr.contains("10000 pages"),
        "{}",
        answer.stderr
    );
    let text = std::fs::read_to_string(&path).unwrap();
    let end: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&end["scopes"][0]["state"], &end["scopes"][0]["reason"]),
        (&json!("Failed"), &json!("OverLimit")),
        "{end}"
    );
}

#[test]
fn lists_that_trickle_are_unread_when_the_time_of_their_cluster_is_over() {
    const SLOW: [(&str, &str); 6] = [
        ("pods", "Pod"),
        ("services", "Service"),
        ("endpoints", "Endpoints"),
        ("limitranges", "LimitRange"),
        ("resourcequotas", "ResourceQuota"),
        ("podtemplates", "PodTemplate"),
    ];
    let kinds = [&[("configmaps", "ConfigMap")][..], &SLOW].concat();
    let server = Server::start(move |request| {
        let item = json!({"metadata": {"namespace": "shop", "name": "a"}});
        let maps = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}, "items": [item]});
        core_discovery(request, &kinds).unwrap_or_else(|| match &*request.path {
            "/api/v1/configmaps" => Reply::json(200, maps.to_string()),
            _ => Reply::trickle(" "),
        })
    });
    let folder = tempfile::tempdir().unwrap();
    let (config, path) = (folder.path().join("config"), folder.path().join("one.jsonl"));
    std::fs::write(&config, kubeconfig(&[("one", &server.url())])).unwrap();
    let dump = ["dump", "--timeout", "2s", "--request-timeout", "0", "-o", path.to_str().unwrap()];
    let answer = taffrail(&[&dump[..], &["--kubeconfig", config.to_str().unwrap()]].concat(), "");
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    assert!(answer.stderr.contains("2.0 s: gave up in the middle of the answer"), "{}", answer.stderr);
    let text = std::fs::read_to_string(&path).unwrap();
    let end: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let scopes = end["scopes"].as_array().unwrap().iter();
    let states: Vec<_> = scopes.map(|scope| (&scope["state"], &scope["reason"])).collect();
    let unread = (&json!("Failed"), &json!("Timeout"));
    assert_eq!((states[0].0, &states[1..]), (&json!("Read"), &[unread; SLOW.len()][..]), "{end}");
    // What was not asked by then is not asked any more.
    let asked = SLOW.iter().filter(|(plural, _)| server.traffic().count(plural) > 0).count();
    assert_eq!(asked, 4);

    let back = taffrail(&["get", "resources", "-A", "--from", path.to_str().unwrap(), "-o", "json"], "");
    assert_eq!(back.code, 3, "{}", back.stderr);
    let errors = back.json()["errors"].to_string();
    assert!(errors.contains("podtemplates") && errors.contains("Timeout"), "{errors}");
}

#[test]
fn items_of_another_kind_than_was_asked_for_are_not_written() {
    let forged = json!([
        {"apiVersion": "cli.taffrail.dev/v1alpha1", "kind": "Dump", "metadata": {"name": "prod"}, "server": "https://prod.example"},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": "forged"}, "data": {"a": "Yg=="}},
        {"apiVersion": "cli.taffrail.dev/v1alpha1", "metadata": {"namespace": "shop", "name": "half"}},
        {"metadata": {"namespace": "shop", "name": "good"}}]);
    // What the list is called makes nothing of its items.
    let list = json!({"kind": "DumpList", "apiVersion": "cli.taffrail.dev/v1alpha1", "metadata": {}, "items": forged});
    let (_server, folder, config) = of_config_maps(move |_| Some(list.clone()));
    let path = folder.path().join("one.jsonl");
    let answer = taffrail(&["dump", "-o", path.to_str().unwrap(), "--kubeconfig", &config], "");
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    assert!(answer.stderr.contains("requested"), "{}", answer.stderr);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let written: Vec<(&Value, &Value)> =
        lines[1..lines.len() - 1].iter().map(|line| (&line["kind"], &line["metadata"]["name"])).collect();
    let good = (&json!("ConfigMap"), &json!("good"));
    assert_eq!(written, [good, (&json!("Namespace"), &json!("kube-system"))][..written.len().max(1)]);
}

#[test]
fn an_interrupt_leaves_no_part_of_a_dump() {
    for signal in [Signal::TERM, Signal::INT] {
        let (_server, folder, config) = of_config_maps(|_| None);
        let path = folder.path().join("dumps");
        std::fs::create_dir(&path).unwrap();
        let file = path.join("one.jsonl");
        let mut dump = command(&[
            "dump",
            "--request-timeout",
            "60s",
            "--kubeconfig",
            &config,
            "-o",
            file.to_str().unwrap(),
        ]);
        clean(&mut dump);
        let mut child = dump.stderr(std::process::Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while std::fs::read_dir(&path).unwrap().count() == 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing is written");
            std::thread::sleep(Duration::from_millis(10));
        }
        rustix::process::kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(128 + signal.as_raw()));
        let left: Vec<_> = std::fs::read_dir(&path).unwrap().flatten().map(|file| file.file_name()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// A list as kubectl prints it.
const LIST: &str = "\
apiVersion: v1
items:
- apiVersion: v1
  data:
    key: value
  kind: ConfigMap
  metadata:
    creationTimestamp: \"2026-01-01T00:00:00Z\"
    labels:
      app.kubernetes.io/instance: web
    name: settings
    namespace: shop
    uid: u1
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    creationTimestamp: \"2026-01-01T00:00:00Z\"
    generation: 1
    labels:
      app.kubernetes.io/instance: web
    name: web
    namespace: shop
    uid: u2
  spec:
    replicas: 1
  status:
    observedGeneration: 1
kind: List
metadata:
  resourceVersion: \"\"
";

/// Reads a dump of a cluster.
fn apps_of(folder: &TempDir, dump: &str) -> Answer {
    let file = folder.path().join("prod.yaml");
    std::fs::write(&file, dump).unwrap();
    taffrail(&["get", "apps", "--from", file.to_str().unwrap(), "-o", "json"], "")
}

#[test]
fn a_list_that_was_cut_between_two_lines_is_told() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(apps_of(&folder, LIST).code, 0);
    let end = LIST.find("kind: List").unwrap();
    for (at, _) in LIST.match_indices('\n') {
        let answer = apps_of(&folder, &LIST[..=at]);
        let is_whole = at >= end;
        assert_eq!(answer.code, if is_whole { 0 } else { 3 }, "{}\n{}", &LIST[..=at], answer.stdout);
        let is_all_well = answer.json()["errors"].as_array().is_none_or(Vec::is_empty);
        assert_eq!(is_all_well, is_whole, "{}\n{}", &LIST[..=at], answer.stdout);
    }
    // What is whole is shown, the last is not taken for whole.
    let cut = apps_of(&folder, &LIST[..LIST.find("    replicas").unwrap()]).json();
    assert_eq!(cut["items"][0]["objects"], 1, "{cut}");
    let message = cut["errors"][0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("the list is cut"), "{message}");
}

#[test]
fn documents_of_which_the_last_was_cut_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) =
        LIST["apiVersion: v1\nitems:\n".len()..LIST.find("kind: List").unwrap()].split_once("\n- ").unwrap();
    let document = |text: &str| text.trim_end().trim_start_matches("- ").replace("\n  ", "\n") + "\n";
    let (first, second) = (document(first), document(second));
    let whole = format!("{first}---\n{second}");
    assert_eq!(apps_of(&folder, &whole).code, 0);
    let start = first.len() + "---\n".len();
    let last_field = whole.find("\nstatus:").unwrap() + 1;
    for (at, _) in whole.match_indices('\n').filter(|(at, _)| (start..last_field).contains(at)) {
        let answer = apps_of(&folder, &whole[..=at]);
        assert_eq!(answer.code, 3, "{}\n{}", &whole[..=at], answer.stdout);
    }
    // Of dumps from which somebody took such fields out nothing follows.
    let without = |text: &str| text.replace("status:\n  observedGeneration: 1\n", "");
    let bare = without(&format!("{second}---\n{}", second.replace("web", "api")));
    assert_eq!(apps_of(&folder, &bare).code, 0);
    let undated =
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, creationTimestamp: \"2026-01-01T00:00:00Z\"}\n";
    assert_ne!(apps_of(&folder, undated).code, 3);
    let manifests = whole.replace("creationTimestamp: \"2026-01-01T00:00:00Z\"", "annotations: {}");
    assert_eq!(apps_of(&folder, &without(&manifests.replace("  uid: u2\n", ""))).code, 0);
}

#[test]
fn incomplete_last_object_does_not_cut_a_dump() {
    let folder = tempfile::tempdir().unwrap();
    let bare = |kind: &str, version: &str, last: &str| {
        format!(
            "- apiVersion: {version}\n  kind: {kind}\n  metadata:\n    creationTimestamp: \"2026-01-01T00:00:00Z\"\n    \
             name: x\n    namespace: tenant\n    uid: u9\n{last}"
        )
    };
    let kustomization = bare("Kustomization", "kustomize.toolkit.fluxcd.io/v1", "");
    let release = bare("HelmRelease", "helm.toolkit.fluxcd.io/v2", "");
    // No API server prints this, but a list of which the end is there is whole.
    let pod = bare("Pod", "v1", "");
    let end = LIST.find("kind: List").unwrap();
    for last in [&kustomization, &release, &pod] {
        let list = format!("{}{last}{}", &LIST[..end], &LIST[end..]);
        let answer = apps_of(&folder, &list).json();
        assert_eq!(answer["errors"], json!([]), "{answer}");
    }
    let document = |item: &str| item.trim_start_matches("- ").replace("\n  ", "\n");
    for last in [&kustomization, &release] {
        let dump = format!("{}---\n{}", document(&bare("ConfigMap", "v1", "")), document(last));
        let answer = apps_of(&folder, &dump).json();
        assert_eq!(answer["errors"], json!([]), "{answer}");
    }
}

#[test]
fn complete_dumps_are_not_taken_for_cut_ones() {
    let mut files = Vec::new();
    let mut folders = vec![super::golden_apps().to_owned(), Path::new(EXAMPLE).to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_dump = path.extension().is_some_and(|extension| extension == "yaml");
            if path.is_dir() {
                folders.push(path);
            } else if is_dump && path.file_stem().is_none_or(|name| name != "expect") {
                files.push(path);
            }
        }
    }
    assert!(files.len() > 30, "{}", files.len());
    for file in files {
        let answer = taffrail(&["get", "clusters", "--from", file.to_str().unwrap()], "");
        let is_taken = ["may be cut", "the list is cut"].iter().any(|told| answer.stderr.contains(told));
        assert!(!is_taken, "{}: {}", file.display(), answer.stderr);
    }
}

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/example");

/// The kubeconfig of a user who may read one namespace and nothing else.
fn of_reader(served: &Served, namespace: &str) -> String {
    let cluster = &served.clusters[0];
    let nell = cluster.add_user("nell", &[]);
    let group = "rbac.authorization.k8s.io";
    let named = json!({"namespace": namespace, "name": "look"});
    let role = json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": named,
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]});
    let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": named,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "look"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "nell"}]});
    let releases = definition("helm.toolkit.fluxcd.io", "v2", "HelmRelease", anything());
    for object in [role, binding, releases] {
        cluster.apply(object).unwrap();
    }
    let path = served.path("nell");
    std::fs::write(&path, cluster.kubeconfig_for(&nell)).unwrap();
    path
}

#[test]
fn namespace_reader_gets_equal_answers_from_a_dump() {
    let served = served(&["one"]);
    let kubeconfig = of_reader(&served, "shop");
    let path = served.path("one.jsonl");
    let live = |arguments: &[&str]| taffrail(&[arguments, &["--kubeconfig", &kubeconfig]].concat(), "");
    let back = |arguments: &[&str]| taffrail(&[arguments, &["--from", &path]].concat(), "");
    let written = live(&["dump", "-n", "shop", "-o", &path, "--request-timeout", "60s"]);
    assert!(!written.stderr.contains("namespaces in namespace"), "{}", written.stderr);

    let status = ["status", "deploy/web", "-n", "shop"];
    assert_eq!((live(&status).code, &*back(&status).stderr), (0, ""));
    assert_eq!(live(&status).stdout, back(&status).stdout);

    let apps = ["get", "apps", "-n", "shop", "--timeout", "60s", "--request-timeout", "0"];
    let (seen, held) = (live(&apps), back(&["get", "apps", "-n", "shop"]));
    assert_eq!((seen.code, held.code), (0, 0), "{}{}", seen.stderr, held.stderr);
}

#[test]
fn namespace_reader_gets_an_app_explained() {
    let served = served(&["one"]);
    let kubeconfig = of_reader(&served, "shop");
    let live = |arguments: &[&str]| taffrail(&[arguments, &["--kubeconfig", &kubeconfig]].concat(), "");
    let names = live(&["get", "apps", "-n", "shop", "-o", "name"]);
    let name = names.stdout.lines().next().and_then(|name| name.rsplit('/').next()).unwrap();
    let answer = live(&["explain", name, "-n", "shop"]);
    assert_eq!((answer.code, &*answer.stderr), (0, ""), "{}", answer.stdout);
    assert!(answer.stdout.contains(&format!("shop/{name} is ")), "{}", answer.stdout);
}

#[test]
fn former_name_of_the_request_timeout_is_accepted_with_a_warning() {
    let served = served(&["one"]);
    let path = served.path("one.jsonl");
    let dump = |timeout: &[&str]| {
        let words = ["dump", "--kubeconfig", &served.kubeconfig, "-o", &path];
        taffrail(&[&words, timeout].concat(), "")
    };
    for (flag, warns) in [("--request-timeout", false), ("--timeout", true)] {
        let answer = dump(&[flag, "60s"]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        assert_eq!(answer.stderr.contains("is now called --request-timeout"), warns, "{}", answer.stderr);
    }
    let both = dump(&["--request-timeout", "60s", "--timeout", "60s"]);
    assert_eq!((both.code, both.stderr.contains("warning")), (0, false), "{}", both.stderr);
}

#[test]
fn missing_kinds_of_a_dump_are_named() {
    let served = served(&["one"]);
    let path = served.path("one.jsonl");
    served.ask(&["dump", "-n", "flux-system", "-o", &path]);
    let answer = taffrail(&["get", "apps", "--from", &path], "");
    let lines: Vec<&str> =
        answer.stderr.lines().filter(|line| line.contains("does not contain it")).collect();
    assert!(lines.iter().all(|line| line.contains(": list ") || line.contains(": get ")), "{lines:?}");
}

#[test]
fn explain_reads_where_it_was_asked_to_look() {
    let served = served(&["one"]);
    let kubeconfig = of_reader(&served, "shop");
    let explain = |arguments: &[&str]| {
        taffrail(
            &[
                &["explain", "--kubeconfig", &kubeconfig, "--timeout", "60s", "--request-timeout", "0"],
                arguments,
            ]
            .concat(),
            "",
        )
    };
    let inside = explain(&["-n", "shop"]);
    assert_eq!(inside.code, 0, "{}", inside.stderr);
    assert!(!inside.stderr.contains("No apps found"), "{}", inside.stderr);
    let all = explain(&[]);
    assert_eq!(all.code, 3, "{}", all.stderr);
    assert!(!all.stderr.contains("No apps found."), "{}", all.stderr);
    assert!(all.stderr.contains("No apps found, but not everything could be read"), "{}", all.stderr);
}
