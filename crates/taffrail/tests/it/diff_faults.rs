//! `taffrail diff` with manifests, rights, webhooks, schemas and servers that are not as they should be.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_sim::{Fault, Trouble};
use taffrail_testkit::objects;
use taffrail_testkit::server::{Reply, Request, Server, core_discovery};

use super::bad_clusters::kubeconfig;
use super::served::Served;
use super::{Answer, taffrail};

const GOOD: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: good, namespace: shop}
data: {colour: blue}
";

/// A cluster with a ConfigMap that the manifest changes.
fn served() -> Served {
    Served::start_with_managers(&["eu"], |_, cluster| {
        cluster.apply(objects::namespace("shop")).unwrap();
        cluster.apply(config_map("good", &json!({"colour": "red"}))).unwrap();
    })
}

fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": name}, "data": data})
}

/// Compares these files with the cluster.
fn diff(served: &Served, files: &[(&str, &str)], more: &[&str]) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let answer = taffrail(&served.all(&[&["diff", "-f", path], more].concat()), "");
    let shown = |text: &str| text.replace(path, "deploy");
    Answer { stdout: shown(&answer.stdout), stderr: shown(&answer.stderr), code: answer.code }
}

#[test]
fn what_exceeds_a_limit_is_refused_by_name_and_line() {
    let served = served();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let named = |name: &str, data: &str| GOOD.replace("good", name).replace("{colour: blue}", data);
    write("deep.yaml", &named("deep", &format!("{{a: {}1{}}}", "[".repeat(200), "]".repeat(200))));
    write("large.yaml", &named("large", &format!("{{a: {}}}", "x".repeat(3 << 20))));
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..9 {
        let below = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [below.as_str(); 9].join(",")));
    }
    write("bomb.yaml", &bomb);
    fs::File::create(folder.path().join("long.yaml")).unwrap().set_len((64 << 20) + 1).unwrap();
    write("good.yaml", GOOD);
    let path = folder.path().to_str().unwrap();
    let answer = taffrail(&served.all(&["diff", "-f", path]), "");
    let told = answer.stderr.replace(path, "deploy");
    for line in [
        "error: deploy/bomb.yaml:4: the YAML aliases expand to too much data",
        "error: deploy/deep.yaml:4: lists and maps are nested deeper than 200 levels",
        "error: deploy/large.yaml:1: ConfigMap shop/large: the object is larger than 3 MiB",
        "error: deploy/long.yaml:1: the file is larger than 64 MiB",
    ] {
        assert!(told.lines().any(|told| told.starts_with(line)), "{line}\n{told}");
    }
    assert_eq!((answer.code, &*answer.stdout, told.lines().count()), (3, "", 4), "{told}");
}

#[test]
fn a_set_of_too_many_objects_is_refused() {
    let served = served();
    let node = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}"#;
    let many = format!("{{\"kind\":\"List\",\"items\":[{}{node}]}}", format!("{node},").repeat(100_000));
    let answer = diff(&served, &[("many.json", &many)], &[]);
    assert!(answer.stderr.contains("the set has more than 100000 objects"), "{}", answer.stderr);
    assert_eq!((answer.code, &*answer.stdout), (3, ""));
}

#[test]
fn unknown_kinds_missing_rights_and_refusals_are_told_at_once() {
    let served = served();
    let reader = served.clusters[0].add_user("reader", &[]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"},
        "rules": [{"apiGroups": ["", "apps"], "resources": ["*"], "verbs": ["get"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["patch", "create"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}]});
    let unreadable =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "one"}});
    for object in [role, binding, unreadable] {
        served.clusters[0].apply(object).unwrap();
    }
    fs::write(&served.kubeconfig, served.clusters[0].kubeconfig_for(&reader)).unwrap();
    let refused = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"replicas": "three"}});
    let manifests = format!(
        "{GOOD}---\n{refused}\n---\napiVersion: example.com/v1\nkind: Wdiget\nmetadata: {{name: one, namespace: shop}}\n---\n\
         apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: one, namespace: shop}}\nspec: {{minAvailable: 1}}\n"
    );
    let answer = diff(&served, &[("all.yaml", &manifests)], &[]);
    let expected = "\
~ ConfigMap shop/good changes (deploy/all.yaml:1)
    merged without the server: you have no right to apply it
";
    assert!(answer.stdout.starts_with(expected), "{}{}", answer.stdout, answer.stderr);
    let refused = "! Deployment shop/web is refused (deploy/all.yaml:6)\n";
    assert!(answer.stdout.contains(refused) && answer.stdout.contains(".spec.replicas"), "{}", answer.stdout);
    for line in [
        "error: deploy/all.yaml:8: Wdiget shop/one: the server has no kind Wdiget in example.com, and its CRD is not in the set",
        "error: PodDisruptionBudget shop/one: ",
    ] {
        assert!(answer.stderr.lines().any(|told| told.starts_with(line)), "{line}\n{}", answer.stderr);
    }
    assert_eq!(answer.code, 3, "{}", answer.stderr);
}

#[test]
fn misspelt_kind_is_unknown_in_a_dump_that_does_not_tell_the_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let list =
        json!({"apiVersion": "v1", "kind": "List", "items": [config_map("good", &json!({"colour": "red"}))]});
    fs::write(place("eu.yaml"), list.to_string()).unwrap();
    fs::write(place("all.yaml"), format!("{GOOD}---\n{}", GOOD.replace("ConfigMap", "ConfigMapp"))).unwrap();
    let answer = taffrail(&["diff", "-f", &place("all.yaml"), "--from", &place("eu.yaml")], "");
    assert!(answer.stdout.contains("~ ConfigMap shop/good changes"), "{}{}", answer.stdout, answer.stderr);
    let told = "all.yaml:6: ConfigMapp shop/good: the server has no kind ConfigMapp in the core group";
    assert!(
        answer.stderr.contains(told) && answer.stderr.contains("did you mean ConfigMap"),
        "{}",
        answer.stderr
    );
    assert_eq!(answer.code, 3);
}

#[test]
fn webhooks_that_are_slow_cost_their_objects_alone() {
    let served = served();
    let more = format!("{GOOD}---\n{}", objects::namespace("later"));
    for trouble in [Trouble::LateWebhook(Duration::from_millis(200)), Trouble::Hang] {
        let fault =
            served.clusters[0].fault(Fault::new(trouble.clone()).verb("patch").resource("configmaps"));
        let started = Instant::now();
        let answer = diff(&served, &[("all.yaml", &more)], &["--request-timeout", "2s"]);
        assert!(answer.stdout.contains("+ Namespace later is created"), "{}{}", answer.stdout, answer.stderr);
        assert!(answer.stderr.contains("error: ConfigMap shop/good: "), "{trouble:?}: {}", answer.stderr);
        assert_eq!(answer.code, 3, "{}", answer.stderr);
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
        served.clusters[0].heal(fault);
    }
    assert_eq!(diff(&served, &[("all.yaml", &more)], &[]).code, 1);
}

#[test]
fn open_api_documents_that_are_broken_or_missing_leave_the_built_in_types() {
    let served = served();
    let web = |image: &str, protocol: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": "web"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
                "containers": [{"name": "log", "image": "log:1"}, {"name": "web", "image": image,
                    "ports": [{"containerPort": 53, "protocol": protocol}]}]}}}})
    };
    served.clusters[0].apply(objects::widgets()).unwrap();
    served.clusters[0].apply(web("web:1", "UDP")).unwrap();
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"namespace": "shop", "name": "one"}, "spec": {"a": 1}});
    let manifests = format!("{}\n---\n{widget}\n", web("web:2", "UDP"));
    for trouble in [
        Trouble::Garbage,
        Trouble::Cut(100),
        Trouble::ServerError("no schema".to_owned()),
        Trouble::Latency(Duration::ZERO),
    ] {
        let fault = served.clusters[0].fault(Fault::new(trouble.clone()).path("/openapi/v3"));
        let answer = diff(&served, &[("all.yaml", &manifests)], &[]);
        let expected = "\
~ Deployment shop/web changes (deploy/all.yaml:1)
  ~ spec.template.spec.containers[name=web].image: \"web:1\" -> \"web:2\"";
        assert!(answer.stdout.starts_with(expected), "{trouble:?}: {}{}", answer.stdout, answer.stderr);
        assert!(answer.stdout.contains("+ Widget shop/one is created"), "{trouble:?}: {}", answer.stdout);
        assert_eq!(answer.code, 1, "{trouble:?}: {}", answer.stderr);
        served.clusters[0].heal(fault);
    }
}

/// Compares `GOOD` and a Secret with a server that has both, and answers writes and OpenAPI by a script.
fn scripted(script: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static, more: &[&str]) -> Answer {
    let server = Server::start(move |request| {
        if let Some(reply) = script(request) {
            return reply;
        }
        let found = core_discovery(request, &[("configmaps", "ConfigMap"), ("secrets", "Secret")]);
        found.unwrap_or_else(|| match request.path.as_str() {
            "/api/v1/namespaces/shop/configmaps/good" => Reply::json(200, live("red").to_string()),
            _ => Reply::status(404, "NotFound", "not found"),
        })
    });
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(place("config"), kubeconfig(&[("eu", &server.url())])).unwrap();
    fs::write(place("all.yaml"), GOOD).unwrap();
    taffrail(&[&["diff", "-f", &place("all.yaml"), "--kubeconfig", &place("config")], more].concat(), "")
}

/// The live object of `GOOD` with another colour.
fn live(colour: &str) -> Value {
    let mut object = config_map("good", &json!({"colour": colour}));
    object["metadata"]["uid"] = json!("one");
    object["metadata"]["resourceVersion"] = json!("7");
    object
}

/// Answers applies alone.
fn applied(
    reply: impl Fn() -> Reply + Send + Sync + 'static,
) -> impl Fn(&Request) -> Option<Reply> + Send + Sync {
    move |request| (request.method == "PATCH").then(&reply)
}

#[test]
fn webhooks_that_refuse_or_are_dead_are_told_with_their_message() {
    let answer = scripted(applied(|| Reply::json(200, live("blue").to_string())), &[]);
    assert!(
        answer.code == 1 && answer.stdout.contains("~ data.colour: \"red\" -> \"blue\""),
        "{}",
        answer.stderr
    );
    let denied = "admission webhook \"guard.example.com\" denied the request: not on a Friday";
    for (code, reason) in [(400, "BadRequest"), (403, "Forbidden"), (422, "Invalid")] {
        let answer = scripted(applied(move || Reply::status(code, reason, denied)), &[]);
        assert!(
            answer.stdout.starts_with("! ConfigMap shop/good is refused"),
            "{code}: {}{}",
            answer.stdout,
            answer.stderr
        );
        assert!(answer.stdout.contains(denied) && answer.code == 3, "{code}: {}", answer.stdout);
    }
    let dead = "Internal error occurred: failed calling webhook \"guard.example.com\": failed to call webhook: \
        Post \"https://guard.shop.svc:443/?timeout=10s\": dial tcp 10.0.0.9:443: connect: connection refused";
    let answer = scripted(applied(move || Reply::status(500, "InternalError", dead)), &[]);
    assert!(
        answer.stderr.contains("failed calling webhook \"guard.example.com\""),
        "{}{}",
        answer.stdout,
        answer.stderr
    );
    assert_eq!((answer.code, &*answer.stdout), (3, ""));
}

#[test]
fn a_dry_run_that_is_answered_with_something_else_is_never_unchanged() {
    let other = |pointer: &str, value: &str| {
        // The object as if nothing differed, but for one part.
        let mut object = live("red");
        *object.pointer_mut(pointer).unwrap() = json!(value);
        object.to_string()
    };
    let answers = [
        other("/metadata/name", "other"),
        other("/metadata/namespace", "test"),
        other("/metadata/uid", "two"),
        other("/kind", "Secret"),
        other("/apiVersion", "v2"),
        json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}).to_string(),
        json!({"kind": "ConfigMapList", "apiVersion": "v1", "items": [live("red")]}).to_string(),
        "{}".to_owned(),
        "[]".to_owned(),
        "null".to_owned(),
        String::new(),
        "<html>Please log in</html>".to_owned(),
        live("red").to_string().replace('}', ""),
        format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"good\"}},\"data\":{}1{}}}",
            "[".repeat(300),
            "]".repeat(300)
        ),
    ];
    for body in answers {
        let sent = body.clone();
        let answer = scripted(applied(move || Reply::json(200, sent.clone())), &[]);
        assert_eq!(answer.code, 3, "{body}: {}{}", answer.stdout, answer.stderr);
        let is_told = answer.stdout.starts_with("? ConfigMap shop/good is unknown")
            || answer.stderr.starts_with("error: ConfigMap shop/good: ");
        assert!(is_told, "{body}: {}{}", answer.stdout, answer.stderr);
    }
}

#[test]
fn open_api_documents_that_are_huge_or_change_are_left_out() {
    let index = json!({"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=A1"}}}).to_string();
    let script = |document: fn(&Request) -> Reply| {
        let index = index.clone();
        move |request: &Request| match request.path.as_str() {
            "/openapi/v3" => Some(Reply::json(200, index.clone())),
            "/openapi/v3/api/v1" => Some(document(request)),
            _ => (request.method == "PATCH").then(|| Reply::json(200, live("blue").to_string())),
        }
    };
    let huge: fn(&Request) -> Reply =
        |_| Reply::flood(&"{\"components\": {\"schemas\": {\"a\": ".repeat(400));
    // It changes again and again between the list and the read.
    let changing: fn(&Request) -> Reply =
        |_| Reply::Whole(301, vec![("location", "/openapi/v3/api/v1?hash=B2".to_owned())], Vec::new());
    // A type in which nothing that the object has is declared.
    let wrong: fn(&Request) -> Reply = |_| {
        let kind = json!([{"group": "", "kind": "ConfigMap", "version": "v1"}]);
        let schema = json!({"type": "object", "properties": {"data": {"type": "string"}}, "x-kubernetes-group-version-kind": kind});
        Reply::json(200, json!({"components": {"schemas": {"ConfigMap": schema}}}).to_string())
    };
    for document in [huge, changing, wrong] {
        let answer = scripted(script(document), &[]);
        assert!(
            answer.stdout.contains("~ data.colour: \"red\" -> \"blue\""),
            "{}{}",
            answer.stdout,
            answer.stderr
        );
        assert_eq!(answer.code, 1, "{}", answer.stderr);
    }
}
