//! A newcomer in the demo: each verb and action on the apps of each tool, the authors of changes, and flags as one guesses them.

use super::demo::Demo;

/// A cluster, the contexts that have what is about it, and an app in it.
type Place = (&'static str, &'static str, &'static str);

fn ask(demo: &Demo, place: Place, words: &[&str]) -> super::Answer {
    let (cluster, contexts, app) = place;
    let mut all = [words, &[app, "--context", contexts, "--cluster", cluster]].concat();
    // Those that write have a time of their own.
    let timeout = match words[0] {
        "reconcile" | "suspend" | "resume" => "--request-timeout",
        _ => "--timeout",
    };
    all.extend([timeout, "60s"]);
    demo.ask_plainly(&all)
}

fn is_suspended(demo: &Demo, place: Place) -> bool {
    let answer = ask(demo, place, &["get", "apps"]);
    let (_, contexts, name) = place;
    let row = answer.stdout.lines().find(|line| line.contains(name));
    let row = row.unwrap_or_else(|| panic!("{contexts}: {}{}", answer.stdout, answer.stderr));
    row.to_lowercase().contains("suspended")
}

#[test]
fn each_verb_works_on_what_each_tool_of_the_demo_delivers() {
    let demo = Demo::start(&["--skip", "60s", "--hold"]);
    // A Kustomization, a HelmRelease, an Application for its own cluster and one for another.
    for place in [
        ("eu-1", "eu-1", "search"),
        ("eu-1", "eu-1", "cache"),
        ("eu-hub", "eu-hub", "dashboards"),
        ("ap-1", "eu-hub,ap-1", "gateway-ap-1"),
    ] {
        let works = |words: &[&str]| {
            let answer = ask(&demo, place, words);
            assert_eq!(answer.code, 0, "{words:?} {place:?}: {}{}", answer.stdout, answer.stderr);
        };
        works(&["reconcile", "--dry-run"]);
        works(&["reconcile", "--dry-run=server"]);
        works(&["reconcile"]);
        works(&["suspend", "--dry-run"]);
        assert!(!is_suspended(&demo, place), "{place:?}");
        works(&["suspend"]);
        assert!(is_suspended(&demo, place), "{place:?}");
        let explained = ask(&demo, place, &["explain"]);
        let next = explained.stdout.lines().find_map(|line| line.trim().strip_prefix("taffrail resume "));
        let next = next.unwrap_or_else(|| panic!("{place:?}: {}{}", explained.stdout, explained.stderr));
        // The demo of a test adds its own kubeconfig.
        let named = next.split(' ').take_while(|word| *word != "--kubeconfig");
        let words: Vec<&str> = named.chain(["--request-timeout", "60s"]).collect();
        let resumed = demo.ask_plainly(&[&["resume"][..], &words].concat());
        assert_eq!(resumed.code, 0, "{next} {place:?}: {}{}", resumed.stdout, resumed.stderr);
        assert!(!is_suspended(&demo, place), "{place:?}");
    }
    // Nothing waits for objects in a cluster that is not asked.
    let elsewhere = ("eu-hub", "eu-hub", "gateway-ap-1");
    let suspended = ask(&demo, elsewhere, &["suspend"]);
    assert_eq!(suspended.code, 0, "{}{}", suspended.stdout, suspended.stderr);
    let resumed = ask(&demo, elsewhere, &["resume"]);
    assert_eq!(resumed.code, 3, "{}{}", resumed.stdout, resumed.stderr);
    let told = "resumed, but whether it is ready is not known: it deploys to ";
    assert!(resumed.stdout.contains(told), "{}", resumed.stdout);
    // What has no controller that could be told says so.
    for place in [
        ("us-edge", "us-edge", "tills"),
        ("us-edge", "us-edge", "telemetry"),
        ("eu-1", "eu-1", "prometheus"),
        ("eu-1", "eu-1", "feedback"),
    ] {
        for verb in ["reconcile", "suspend", "resume"] {
            let answer = ask(&demo, place, &[verb]);
            assert_eq!(answer.code, 2, "{verb} {place:?}: {}{}", answer.stdout, answer.stderr);
            assert!(answer.stderr.contains("error:"), "{verb} {place:?}: {}", answer.stderr);
        }
    }
}

#[test]
fn an_app_out_of_sync_says_since_when_and_is_synced_by_its_next_step() {
    let demo = Demo::start(&["--skip", "155s", "--hold"]);
    let place = ("ap-3", "eu-hub,ap-3", "gateway-ap-3");
    let since = ask(&demo, place, &["get", "apps", "-o", "json"]).json()["items"][0]["since"].clone();
    assert!(since.is_string(), "{since}");
    let explained = ask(&demo, place, &["explain"]);
    assert!(explained.stdout.contains("kubectl-edit wrote data.LOG_LEVEL"), "{}", explained.stdout);
    let start = "taffrail reconcile --sync ";
    let next = explained.stdout.lines().find_map(|line| line.trim().strip_prefix(start));
    let next = next.unwrap_or_else(|| panic!("{}{}", explained.stdout, explained.stderr));
    // The demo of a test adds its own kubeconfig.
    let named = next.split(' ').take_while(|word| *word != "--kubeconfig");
    let words: Vec<&str> = ["reconcile", "--sync"].into_iter().chain(named).collect();
    let synced = demo.ask_plainly(&[&words[..], &["--request-timeout", "60s"]].concat());
    assert_eq!(synced.code, 0, "{next}: {}{}", synced.stdout, synced.stderr);
    let state = ask(&demo, place, &["get", "apps", "-o", "json"]).json()["items"][0]["sync"]["state"].clone();
    assert_eq!(state, "Synced");
}

/// Does each action that is offered for an object; a parameter gets a value that fits all of them.
fn do_all(demo: &Demo, context: &str, namespace: &str, object: &str, wanted: &[&str]) {
    let where_from = ["-n", namespace, "--context", context, "--timeout", "60s", "--request-timeout", "0"];
    for action in wanted {
        let params: &[&str] = if *action == "scale" { &["--param", "replicas=3"] } else { &[] };
        for dry_run in [&["--dry-run"][..], &["--dry-run=server"], &[]] {
            let words = [&["action", action, object], params, dry_run, &where_from].concat();
            let mut answer = demo.ask_plainly(&words);
            // The tool may take note of the action before, between the look and the write; the plan is another one then.
            for _ in 0..20 {
                if answer.code == 0 || !answer.stderr.contains("was changed meanwhile") {
                    break;
                }
                answer = demo.ask_plainly(&words);
            }
            assert_eq!(answer.code, 0, "{words:?}: {}{}", answer.stdout, answer.stderr);
        }
    }
}

#[test]
fn each_action_works_on_what_each_tool_of_the_demo_delivers() {
    let demo = Demo::start(&["--skip", "60s", "--hold"]);
    for (context, namespace, object) in [
        ("eu-1", "search", "deploy/query"),
        ("eu-1", "cache", "deploy/valkey"),
        ("ap-1", "gateway", "deploy/envoy"),
        ("us-edge", "tills", "deploy/till"),
        ("us-edge", "telemetry", "deploy/collector"),
        ("eu-1", "monitoring", "deploy/prometheus-server"),
        ("eu-1", "feedback", "deploy/feedback"),
    ] {
        do_all(&demo, context, namespace, object, &["restart", "scale", "pause", "resume"]);
    }
    let verbs = ["reconcile", "suspend", "resume"];
    do_all(&demo, "eu-1", "flux-system", "kustomization/search", &verbs);
    do_all(&demo, "eu-1", "cache", "helmrelease/cache", &verbs);
    do_all(&demo, "eu-1", "flux-system", "gitrepository/search", &verbs);
    do_all(&demo, "eu-1", "flux-system", "helmrepository/charts", &verbs);
    do_all(&demo, "eu-1", "flux-system", "helmchart/cache-cache", &verbs);
    let offered = demo.ask_plainly(&[
        "actions",
        "application/dashboards",
        "-n",
        "argocd",
        "--context",
        "eu-hub",
        "-o",
        "json",
        "--timeout",
        "60s",
    ]);
    let offered = offered.json();
    let items = offered["items"].as_array().unwrap_or_else(|| panic!("{offered}"));
    let names: Vec<&str> = items.iter().filter_map(|action| action["name"].as_str()).collect();
    assert_eq!(names.len(), 2, "{offered}");
    do_all(&demo, "eu-hub", "argocd", "application/dashboards", &names);
}

#[test]
fn demo_objects_have_last_writers() {
    // Somebody has scaled a controller of Flux to nothing by hand.
    let demo = Demo::start(&["--skip", "225s", "--hold"]);
    let trust = |context: &str| {
        let answer = demo.ask_plainly(&["trust", "--context", context, "--timeout", "60s", "-o", "json"]);
        assert!(answer.code < 2, "{}", answer.stderr);
        answer.stdout
    };
    let doubts = trust("eu-3");
    assert!(doubts.contains("kustomize-controller is scaled to 0 (by kubectl)"), "{doubts}");
    let doubts = trust("us-2");
    assert!(doubts.contains("is suspended (by flux)"), "{doubts}");
    let scaled = demo.ask_plainly(&[
        "action",
        "scale",
        "deploy/kustomize-controller",
        "-n",
        "flux-system",
        "--context",
        "eu-1",
        "--param",
        "replicas=0",
        "--timeout",
        "60s",
    ]);
    assert_eq!(scaled.code, 0, "{}", scaled.stderr);
    let doubts = trust("eu-1");
    assert!(doubts.contains("kustomize-controller is scaled to 0 (by taffrail)"), "{doubts}");
}

#[test]
fn guessed_names_and_flags_work() {
    let demo = Demo::start(&["--skip", "2s", "--hold"]);
    let ask =
        |words: &[&str]| demo.ask_plainly(&[words, &["--timeout", "60s", "--request-timeout", "0"]].concat());
    // Two apps in the same namespace of different clusters, delivered in different ways, are one name in one cluster.
    let tree = ask(&["tree", "telemetry", "--context", "ap-1,us-edge", "--cluster", "us-edge", "-o", "json"]);
    assert_eq!(tree.code, 0, "{}", tree.stderr);
    assert_eq!(tree.json()["items"].as_array().map(Vec::len), Some(1), "{}", tree.stdout);
    let both = ask(&[
        "get",
        "apps",
        "shop",
        "flux-helmrelease/cache/cache",
        "-A",
        "--context",
        "eu-1,eu-2",
        "-o",
        "json",
    ]);
    let both = both.json();
    let names: Vec<&str> =
        both["items"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names.len(), 4, "{both}");
    assert!(names.iter().all(|name| ["shop", "cache"].contains(name)), "{both}");
    // What a list names, every command takes.
    let named = ask(&["get", "apps", "cache", "-o", "name", "--context", "eu-1,eu-2"]).stdout;
    assert_eq!(named, "eu-1/flux-helmrelease/cache/cache\neu-2/flux-helmrelease/cache/cache\n");
    let name = named.lines().last().unwrap();
    for command in ["app", "tree", "trust", "events", "explain"] {
        let answer = ask(&[command, name, "--context", "eu-1,eu-2", "-o", "json"]);
        assert!(answer.code < 2, "{command}: {}", answer.stderr);
        // `trust` says of each cluster that it was looked at.
        let is_of_other = answer.stdout.contains("\"cluster\": \"eu-1\"");
        assert!(command == "trust" || !is_of_other, "{command}: {}", answer.stdout);
    }
    let none = ask(&["get", "apps", "shpo", "--context", "eu-1"]);
    assert_eq!(none.code, 2, "{}", none.stderr);
    assert!(none.stderr.contains("did you mean"), "{}", none.stderr);
    for words in
        [["app", "shop"], ["tree", "shop"], ["trust", "shop"], ["events", "shop"], ["explain", "shop"]]
    {
        let answer = ask(&[&words[..], &["-A", "--context", "eu-1"]].concat());
        assert!(answer.code < 2, "{words:?}: {}", answer.stderr);
    }
    let wrong = ask(&["get", "apps", "--context", "eu-1,nowhere"]);
    assert_eq!(wrong.code, 3, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("nowhere"), "{}", wrong.stderr);
    // Of a cluster that no one can reach, so that it is told before anything is heard of one.
    let hinted = super::taffrail(&["wait", "shop", "--kubeconfig", "/nonexistent"], "");
    assert!(hinted.stderr.contains("app/shop"), "{}", hinted.stderr);
    let plain = super::taffrail(&["wait", "deploy", "--kubeconfig", "/nonexistent"], "");
    assert!(!plain.stderr.contains("app/deploy"), "{}", plain.stderr);
}

#[test]
fn a_namespace_that_does_not_exist_is_told_and_is_not_well() {
    let served = super::served::Served::start(&["one", "two"], |name, cluster| {
        if name == "one" {
            cluster.apply(taffrail_testkit::objects::namespace("shop")).unwrap();
        }
    });
    for arguments in [
        &["get", "apps"][..],
        &["get", "resources"],
        &["get", "resources", "--orphaned"],
        &["status", "pods"],
    ] {
        let ask = |namespace: &str, more: &[&str]| {
            let kubeconfig = ["--kubeconfig", &served.kubeconfig];
            super::taffrail(&[arguments, &["-n", namespace], more, &kubeconfig].concat(), "")
        };
        let told = ask("shpo", &["--exit-status", "--context", "one"]);
        let warning = format!(
            "warning: cluster one has no namespace 'shpo'\n hint: `kubectl get namespaces --context one --kubeconfig {}` lists",
            served.kubeconfig
        );
        assert!(told.stderr.contains(&warning), "{arguments:?}: {}", told.stderr);
        assert_eq!(told.code, 1, "{arguments:?}: {}", told.stderr);
        assert_eq!(ask("shpo", &["--context", "one"]).code, 0, "{arguments:?}");
        let told = ask("shop", &["--exit-status", "--context", "one"]);
        assert!(!told.stderr.contains("has no namespace"), "{arguments:?}: {}", told.stderr);
        assert_eq!(told.code, 0, "{arguments:?}: {}", told.stderr);
        // One of the clusters has it.
        assert_eq!(ask("shop", &["--exit-status", "--all-contexts"]).code, 0, "{arguments:?}");
        let told = ask("shpo", &["--exit-status", "--all-contexts"]);
        assert!(told.stderr.contains("none of 2 clusters has a namespace 'shpo'"), "{}", told.stderr);

        let dump = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
        let of_dump = |namespace: &str| {
            super::taffrail(&[arguments, &["-n", namespace, "--exit-status", "--from", "-"]].concat(), dump)
        };
        let told = of_dump("shpo");
        assert!(
            told.stderr.contains("warning: the dumps have no namespace 'shpo', and no object in it"),
            "{arguments:?}: {}",
            told.stderr
        );
        assert_eq!(told.code, 1, "{arguments:?}: {}", told.stderr);
        assert_eq!(of_dump("shop").code, 0, "{arguments:?}: {}", of_dump("shop").stderr);
    }
}

/// Returns what `explain` prints about all apps of a cluster.
fn explained(demo: &Demo, cluster: &str) -> String {
    let asked = ["explain", "--all-contexts", "--cluster", cluster, "--timeout", "60s"];
    demo.ask_plainly(&asked).stdout
}

#[test]
fn apps_that_one_cause_explains_share_an_explanation() {
    let demo = Demo::start(&["--skip", "140s", "--hold"]);
    let told = explained(&demo, "ap-1");
    assert_eq!(told.matches("\nCause\n").count(), 1, "{told}");
    assert_eq!(told.matches("Kubelet stopped posting node status.").count(), 1, "{told}");
    for app in ["catalog-ap-1", "gateway-ap-1", "orders-ap-1", "cert-manager", "feedback", "prometheus"] {
        let is_headline = |line: &str| line.contains(app) && line.ends_with(" in ap-1 is Failed");
        assert!(told.lines().any(is_headline), "{app}: {told}");
    }
    assert!(told.contains("\nCause chain of argo-application argocd/catalog-ap-1 of eu-hub\n"), "{told}");
    assert_eq!(told.matches("kubectl describe node node-2 --context ap-1").count(), 1, "{told}");
    // A named app is explained alone.
    let named =
        demo.ask_plainly(&["explain", "feedback", "prometheus", "--context", "ap-1", "--timeout", "60s"]);
    assert_eq!(named.stdout.matches("\nCause\n").count(), 2, "{}", named.stdout);
}

#[test]
fn an_app_with_more_to_tell_has_an_explanation_of_its_own() {
    let demo = Demo::start(&["--skip", "225s", "--hold"]);
    let told = explained(&demo, "eu-3");
    let sections: Vec<&str> = told.split("\nSync\n").collect();
    let [first, between, last] = sections.as_slice() else { panic!("{told}") };
    assert!(first.lines().count() > 2 && !first.contains("shop"), "{told}");
    assert!(between.contains("flux-system/shop in eu-3 is Ready"), "{told}");
    assert!(last.contains("it is OutOfSync, and nothing will sync it"), "{told}");
}

#[test]
fn apps_of_a_cluster_that_does_not_answer_share_an_explanation() {
    let demo = Demo::start(&["--skip", "75s", "--hold"]);
    let told = explained(&demo, "ap-2");
    let cause = "\nCause\n  cluster ap-2 does not answer: cannot connect to ";
    assert_eq!(told.matches(cause).count(), 1, "{told}");
    assert_eq!(told.matches(" of eu-hub in ap-2 is Unknown\n").count(), 3, "{told}");
    assert!(told.contains("\n  nothing is known of their objects\n"), "{told}");
    assert!(told.contains("\nSync\n  Application argocd/catalog-ap-2: Unknown, for "), "{told}");
}
