//! Views that go on: `-w`.

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_sim::Trouble;
use taffrail_testkit::objects::{self, applications, namespace};

use super::going::Going;
use super::served::Served;
use super::{assert_shown, command, str, taffrail};

/// Long enough for a busy machine; nothing waits for it that works.
const PATIENCE: Duration = Duration::from_secs(60);

/// A Deployment of which so many of two replicas are available; nobody else writes its status.
pub(super) fn app(generation: i64, available: i64) -> Value {
    let mut object = objects::deployment("shop", "web", available);
    object["metadata"]["generation"] = json!(generation);
    object["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "shop"});
    object["status"]["observedGeneration"] = json!(generation);
    object
}

/// Two clusters with an app each.
pub(super) fn served() -> Served {
    Served::start(&["one", "two"], |_, cluster| {
        let namespace = namespace("shop");
        cluster.apply(namespace).unwrap();
        cluster.apply(app(1, 2)).unwrap();
    })
}

/// The first answer of `get clusters -w -o json` for somebody who may see nothing.
pub(crate) fn forbidden_everything() -> String {
    let served = served();
    let user = served.clusters[0].add_user("nobody", &[]);
    std::fs::write(&served.kubeconfig, served.clusters[0].kubeconfig_for(&user)).unwrap();
    begin(&served, &["get", "clusters", "-w", "-o", "json"]).until_line("the line", |_| true)
}

#[test]
fn watch_notes_describe_how_a_cluster_is_followed() {
    let served = served();
    let mut going = begin(&served, &["get", "clusters", "-w", "-o", "wide"]);
    let header = going.until_line("the line", |line| line.starts_with("CLUSTER"));
    for column in ["READ", "ROUND TRIP", "REQUESTS", "RECEIVED", "LIVE SINCE", "NOT LIVE"] {
        assert!(header.contains(column), "{header}");
    }
    // Until all is live, rows tell what is not.
    let live = |line: &str| line.starts_with("one ") && !line.contains(" KB   - ");
    let line = going.until_line("the line of a live cluster", live);
    assert!(line.contains(", HTTP/2 ") && line.contains(" KB "), "{line}");
    let quiet = going.seen.len();
    // That bytes come is no news, what they say is.
    served.clusters[0].apply(app(1, 1)).unwrap();
    let line = going.until_line("the line", |line| line.starts_with("one "));
    assert!(line.contains(" InProgress "), "{line}");
    assert!(going.seen[quiet..].iter().all(|line| !line.starts_with("one ") || line.contains("InProgress")));

    let nobody: Value = serde_json::from_str(&forbidden_everything()).unwrap();
    let reading = &nobody["items"][0]["reading"];
    let not_live = reading["notLive"].as_array().unwrap();
    let secrets =
        not_live.iter().find(|scope| scope["scope"] == "/Secret").unwrap_or_else(|| panic!("{reading}"));
    assert_eq!(secrets["state"], "Forbidden", "{secrets}");
}

fn begin(served: &Served, arguments: &[&str]) -> Going {
    Going::start(command(&served.all(arguments)), PATIENCE)
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn rows_are_added_as_they_change() {
    let served = served();
    let mut going = begin(&served, &["get", "apps", "-w"]);
    going.until_line("the line", |line| line.starts_with("CLUSTER"));
    going.until_line("the line", |line| words(line).starts_with(&["one", "shop", "shop", "label", "Ready"]));
    going.until_line("the line", |line| words(line).starts_with(&["two", "shop", "shop", "label", "Ready"]));
    let quiet = going.seen.len();

    served.clusters[0].apply(app(1, 1)).unwrap();
    going.until_line("the line", |line| {
        words(line).starts_with(&["one", "shop", "shop", "label", "InProgress"])
    });
    served.clusters[0].apply(app(1, 2)).unwrap();
    going.until_line("the line", |line| words(line).starts_with(&["one", "shop", "shop", "label", "Ready"]));
    let news = &going.seen[quiet..];
    assert!(
        news.iter().all(|line| line.starts_with("one ")),
        "what did not change is not told again: {news:#?}"
    );
}

/// Returns the ReplicaSet that the Deployment of [`app`] rolled out, and its one Pod in this state.
fn made(pod: &Value) -> [Value; 2] {
    let owner = |kind: &str, name: &str, uid: &Value| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true}]);
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web-a", "namespace": "shop", "uid": "u-set", "ownerReferences": owner("Deployment", "web", &json!("u-web"))},
        "spec": {"replicas": 1}, "status": {"replicas": 1}});
    let mut one = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web-a-1", "namespace": "shop", "uid": "u-pod", "ownerReferences": owner("ReplicaSet", "web-a", &json!("u-set"))},
        "spec": {"containers": [{"name": "c", "image": "web:2"}]}});
    one["status"] = pod.clone();
    [set, one]
}

/// A Deployment that rolls out, with a UID that is known.
fn rolling() -> Value {
    let mut rolling = app(2, 1);
    rolling["metadata"]["uid"] = json!("u-web");
    rolling
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({"phase": "Pending", "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": reason, "message": message}}}]})
}

#[test]
fn a_pod_that_fails_changes_its_app_at_once() {
    let served = served();
    let one = &served.clusters[0];
    one.delete("apps/v1", "Deployment", "shop", "web");
    one.apply(rolling()).unwrap();
    made(&waiting("ContainerCreating", "")).into_iter().for_each(|object| one.apply(object).unwrap());
    let mut going = begin(&served, &["get", "apps", "-w"]);
    going.until_line("the line", |line| {
        words(line).starts_with(&["one", "shop", "shop", "label", "InProgress"])
    });
    going.until_line("the line", |line| words(line).starts_with(&["two", "shop", "shop", "label", "Ready"]));
    let quiet = going.seen.len();

    // Nobody writes the Deployment: the one event is about the Pod.
    let [_, failing] = made(&waiting("ImagePullBackOff", "no such image: web:2"));
    one.apply(failing).unwrap();
    let line = going.until_line("the line", |line| line.starts_with("one "));
    assert_eq!(words(&line)[4], "Failed", "{line}");
    assert!(line.contains("no such image: web:2"), "{line}");
    assert_eq!(going.seen.len(), quiet + 1, "nothing was shown in between: {:#?}", going.seen);
}

#[test]
fn time_alone_turns_an_app_red() {
    let served = served();
    let one = &served.clusters[0];
    one.delete("apps/v1", "Deployment", "shop", "web");
    one.apply(rolling()).unwrap();
    // Nobody fails to be scheduled before 15 s are over: it is of now, and nothing more happens to it.
    let unschedulable = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient cpu.", "lastTransitionTime": jiff::Timestamp::now().to_string()}]});
    made(&unschedulable).into_iter().for_each(|object| one.apply(object).unwrap());
    let written = one.resource_version();
    let mut going = begin(&served, &["get", "apps", "-w"]);
    going.until_line("the line", |line| {
        words(line).starts_with(&["one", "shop", "shop", "label", "InProgress"])
    });
    let line = going
        .until_line("the line", |line| words(line).starts_with(&["one", "shop", "shop", "label", "Failed"]));
    assert!(line.contains("Insufficient cpu"), "{line}");
    assert_eq!(one.resource_version(), written, "nothing came but time");
}

#[test]
fn deleted_objects_are_reported() {
    let served = served();
    let mut going = begin(&served, &["get", "apps", "-w"]);
    going.until_line("the line", |line| words(line).starts_with(&["two", "shop", "shop", "label", "Ready"]));
    served.clusters[1].delete("apps/v1", "Deployment", "shop", "web");
    going.until_line("the line", |line| words(line) == ["two", "shop", "shop", "label", "Gone"]);
    served.clusters[1].apply(app(1, 2)).unwrap();
    going.until_line("the line", |line| words(line).starts_with(&["two", "shop", "shop", "label", "Ready"]));
    let mut names = begin(&served, &["get", "apps", "-w", "-o", "name"]);
    names.until_line("the line", |line| line.contains("shop"));
}

#[test]
fn statuses_of_objects_go_on() {
    let served = served();
    let cluster = &served.clusters[0];
    let mut named = begin(&served, &["status", "deploy/web", "deploy/late", "-n", "shop", "-w"]);
    let row = |line: &str, wanted: [&str; 5]| words(line).starts_with(&wanted);
    named.until_line("the line", |line| row(line, ["one", "shop", "Deployment", "web", "Ready"]));
    named.until_line("the line", |line| row(line, ["two", "shop", "Deployment", "web", "Ready"]));
    cluster.apply(app(1, 1)).unwrap();
    named.until_line("the line", |line| row(line, ["one", "shop", "Deployment", "web", "InProgress"]));
    let mut late = app(1, 2);
    late["metadata"]["name"] = json!("late");
    cluster.apply(late.clone()).unwrap();
    named.until_line("the line", |line| row(line, ["one", "shop", "Deployment", "late", "Ready"]));

    let mut all = begin(&served, &["status", "deploy", "-n", "shop", "-w"]);
    let mut lines = begin(&served, &["status", "deploy", "-n", "shop", "-w", "-o", "jsonl"]);
    all.until_line("the line", |line| row(line, ["one", "shop", "Deployment", "late", "Ready"]));
    lines.until_line("the line", |line| line.contains("\"late\""));
    cluster.delete("apps/v1", "Deployment", "shop", "late");
    all.until_line("the line", |line| words(line) == ["one", "shop", "Deployment", "late", "Gone"]);
    named.until_line("the line", |line| row(line, ["one", "shop", "Deployment", "late", "NotFound"]));
    lines.until_line("the line", |line| line.contains("\"late\"") && line.contains("NotFound"));

    let away = served.runtime.block_on(async { cluster.trouble(Trouble::Blackhole) });
    named.until_line("the line", |line| row(line, ["one", "shop", "Deployment", "web", "Unknown"]));
    cluster.heal(away);
    named.until_line("the line", |line| row(line, ["one", "shop", "Deployment", "web", "InProgress"]));

    for (arguments, said) in
        [(vec!["status", "-w", "-f", "-"], "cannot be used"), (vec!["status", "-w"], "required")]
    {
        let answer = taffrail(&arguments, "");
        assert_eq!(answer.code, 2, "{arguments:?}");
        assert!(answer.stderr.contains(said) || answer.stderr.contains("required"), "{}", answer.stderr);
    }
}

#[test]
fn programs_get_a_document_a_line() {
    let served = served();
    let mut going = begin(&served, &["get", "apps", "-w", "-o", "json"]);
    let parsed = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
    let first = parsed(&going.until_line("the line", |_| true));
    assert_eq!(first["items"].as_array().unwrap().len(), 2);
    served.clusters[1].delete("apps/v1", "Deployment", "shop", "web");
    going.until_line("the line", |line| parsed(line)["items"].as_array().unwrap().len() == 1);
}

#[test]
fn a_cluster_that_goes_away_is_unknown_and_comes_back() {
    let served = served();
    let mut going = begin(&served, &["get", "apps", "-w"]);
    going.until_line("the line", |line| words(line).starts_with(&["two", "shop", "shop", "label", "Ready"]));
    let away = served.runtime.block_on(async { served.clusters[1].trouble(Trouble::Blackhole) });
    let line = going
        .until_line("the line", |line| words(line).starts_with(&["two", "shop", "shop", "label", "Unknown"]));
    assert!(line.contains("was Ready"), "{line}");
    served.clusters[1].heal(away);
    going.until_line("the line", |line| words(line).starts_with(&["two", "shop", "shop", "label", "Ready"]));
}

#[test]
fn every_view_can_watch() {
    let served = served();
    for (view, first, then) in [
        (vec!["app", "shop", "-w"], "Ready", "InProgress"),
        (vec!["tree", "shop", "-w"], "Ready", "InProgress"),
        (vec!["get", "clusters", "-w"], "Ready", "InProgress"),
        (vec!["get", "resources", "-w"], "Ready", "InProgress"),
        (vec!["explain", "-w", "shop"], "Ready", "InProgress"),
    ] {
        let mut going = begin(&served, &view);
        going.until_line("the line", |line| line.contains(first));
        served.clusters[0].apply(app(1, 1)).unwrap();
        going.until_line("the line", |line| line.contains(then));
        served.clusters[0].apply(app(1, 2)).unwrap();
    }
}

#[test]
fn invalid_usage_fails_at_once() {
    let answer = taffrail(&["get", "apps", "-w", "--from", "somewhere"], "");
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("--from"), "{}", answer.stderr);
}

#[test]
fn closed_stdout_ends_watching() {
    let served = served();
    let all = ["get", "apps", "-w", "--all-contexts", "--kubeconfig", &served.kubeconfig];
    let mut child = command(&all).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut byte = [0];
    stdout.read_exact(&mut byte).unwrap();
    drop(stdout);
    served.clusters[0].apply(app(1, 0)).unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("it goes on for nobody");
        }
        std::thread::yield_now();
    }
}

#[test]
fn recovered_rows_are_updated_and_only_deleted_ones_removed() {
    let served = served();
    served.clusters[1].apply(app(1, 1)).unwrap();
    let mut going = begin(&served, &["get", "apps", "-w", "--status", "!Ready"]);
    going.until_line("the line", |line| {
        words(line).starts_with(&["two", "shop", "shop", "label", "InProgress"])
    });
    served.clusters[1].apply(app(1, 2)).unwrap();
    let line =
        going.until_line("the line", |line| words(line).starts_with(&["two", "shop", "shop", "label"]));
    assert!(words(&line)[4] == "Ready", "{line}");
    served.clusters[1].apply(app(1, 1)).unwrap();
    going.until_line("the line", |line| {
        words(line).starts_with(&["two", "shop", "shop", "label", "InProgress"])
    });
    served.clusters[1].delete("apps/v1", "Deployment", "shop", "web");
    going.until_line("the line", |line| words(line) == ["two", "shop", "shop", "label", "Gone"]);
}

#[test]
fn names_that_leave_the_filter_are_not_gone() {
    let served = served();
    served.clusters[1].apply(app(1, 1)).unwrap();
    let mut going = begin(&served, &["get", "apps", "-w", "--status", "!Ready", "-o", "name"]);
    going.until_line("the name", |line| line == "two/label/shop/shop");
    served.clusters[1].apply(app(1, 2)).unwrap();
    going.until_line("the name", |line| line == "two/label/shop/shop  Left");
    served.clusters[1].apply(app(1, 1)).unwrap();
    going.until_line("the name", |line| line == "two/label/shop/shop");
    served.clusters[1].delete("apps/v1", "Deployment", "shop", "web");
    going.until_line("the name", |line| line == "two/label/shop/shop  Gone");
    assert_eq!(going.seen.len(), 4, "{:#?}", going.seen);
}

#[test]
fn rows_without_headers_are_gone_too() {
    let served = served();
    let mut going = begin(&served, &["get", "resources", "-w", "--no-headers"]);
    going.until_line("the row", |line| {
        words(line).starts_with(&["two", "shop", "Deployment", "web", "Ready"])
    });
    served.clusters[1].delete("apps/v1", "Deployment", "shop", "web");
    going.until_line("the row", |line| words(line) == ["two", "shop", "Deployment", "web", "Gone"]);
}

#[test]
fn a_confirmed_row_is_gone_though_another_app_lists_the_object() {
    let entries = json!([{"id": "shop_web_apps_Deployment", "v": "v1"}]);
    let served = Served::start(&["one"], |_, cluster| {
        cluster.apply(objects::kustomizations()).unwrap();
        ["shop", "tenant"].into_iter().for_each(|name| cluster.apply(namespace(name)).unwrap());
        // The object carries no mark of this app, so the app's row is unconfirmed.
        let lists = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"namespace": "tenant", "name": "zz", "generation": 1},
            "status": {"observedGeneration": 1, "inventory": {"entries": entries},
                "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded"}]}});
        cluster.apply(lists).unwrap();
        cluster.apply(app(1, 2)).unwrap();
    });
    let mut table = begin(&served, &["get", "resources", "-w"]);
    let mut wide = begin(&served, &["get", "resources", "-w", "-o", "wide"]);
    let mut names = begin(&served, &["get", "resources", "-w", "-o", "name"]);
    table.until_line("the confirmed row", |line| line.contains(" shop/shop"));
    wide.until_line("the confirmed row", |line| line.contains(" shop/shop"));
    names.until_line("the name", |line| line == "apps/Deployment/shop/web");
    let mut unlabelled = app(1, 2);
    unlabelled["metadata"]["labels"] = json!({});
    served.clusters[0].apply(unlabelled).unwrap();
    let gone = |line: &str| words(line).contains(&"Gone");
    let line = table.until_line("the row that is gone", gone);
    assert_eq!(words(&line), ["shop", "Deployment", "web", "Gone", "shop/shop"]);
    let line = wide.until_line("the row that is gone", gone);
    assert_eq!(words(&line), ["shop", "Deployment", "apps", "web", "Gone", "label", "shop/shop"]);
    // Its name stays until no app lists it.
    served.clusters[0].delete("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "tenant", "zz");
    let line = table.until_line("the last row that is gone", gone);
    assert_eq!(words(&line), ["shop", "Deployment", "web", "Gone"]);
    names.until_line("the name that is gone", |line| line == "apps/Deployment/shop/web  Gone");
}

#[test]
fn dark_cluster_shows_its_age_and_last_state() {
    let served = served();
    let mut going = begin(&served, &["get", "clusters", "-w"]);
    going.until_line("the line", |line| words(line).starts_with(&["two", "Ready"]));
    served.runtime.block_on(async { served.clusters[1].trouble(Trouble::Blackhole) });
    let line = going.until_line("the line", |line| words(line).starts_with(&["two", "Unknown"]));
    assert!(line.contains("last seen 20") && line.contains("with 1 of 1 apps Ready"), "{line}");
}

#[test]
fn dark_cluster_keeps_its_rows() {
    let served = served();
    let [hub, target] = [&served.clusters[0], &served.clusters[1]];
    hub.apply(applications()).unwrap();
    hub.apply(namespace("argocd")).unwrap();
    hub.apply(json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"namespace": "argocd", "name": "far"},
        "spec": {"destination": {"server": target.url(), "namespace": "shop"}, "source": {"repoURL": "https://git.example.com/far", "path": "far", "targetRevision": "main"}},
        "status": {"sync": {"status": "Synced", "revision": "1"}, "health": {"status": "Healthy"},
            "resources": [{"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "web", "status": "Synced"}]}}))
        .unwrap();
    // It never answers: neither to a look nor to who follows it.
    served.runtime.block_on(async { target.trouble(Trouble::Unreachable) });
    let list = ["get", "apps", "-o", "json", "--all-contexts", "--kubeconfig", &served.kubeconfig];
    let once = taffrail(&list, "").json();
    let far = |list: &Value| {
        list["items"].as_array().unwrap().iter().find(|app| app["name"] == "far").unwrap().clone()
    };
    let followed = begin(&served, &["get", "apps", "-w", "-o", "json"])
        .until_line("the line", |line| line.contains("\"far\""));
    let followed: Value = serde_json::from_str(&followed).unwrap();
    for row in [far(&once), far(&followed)] {
        assert_eq!((&row["cluster"], &row["effective"]), (&json!("two"), &json!("Unknown")), "{row}");
        assert!(!row["message"].to_string().contains("none of the clusters"), "{row}");
    }
}

/// A cluster with an app, whose generation is as it is applied.
fn one_served() -> Served {
    Served::start_verbatim(&["one"], |_, cluster| {
        cluster.apply(namespace("shop")).unwrap();
        cluster.apply(app(1, 2)).unwrap();
    })
}

impl Going {
    /// Takes lines until one is `wanted`, and returns those that came since the last call: of times and widths of
    /// columns, which depend on the time of the test, nothing is left.
    #[track_caller]
    fn news(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        let known = self.seen.len();
        self.until_line("the news", wanted);
        let text = self.seen[known..].join("\n") + "\n";
        let times = r"just now|\d+ (s|min)( ago)?|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC";
        let text = regex::Regex::new(times).unwrap().replace_all(&text, "[AGE]").into_owned();
        regex::Regex::new(" {2,}").unwrap().replace_all(&text, "  ").into_owned()
    }
}

/// A warning about the Deployment of [`app`].
fn warning(name: &str, reason: &str, count: i64) -> Value {
    json!({"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "shop", "name": name}, "type": "Warning",
        "reason": reason, "message": format!("it says {reason}"), "count": count,
        "involvedObject": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}})
}

#[test]
fn events_are_added_as_they_come_and_as_they_are_repeated() {
    let served = one_served();
    let one = &served.clusters[0];
    one.apply(warning("a", "Early", 1)).unwrap();
    let mut going = begin(&served, &["events", "-w"]);
    assert_shown(
        &going.news(|line| line.contains("Early")),
        str![[r#"
LAST SEEN  FIRST SEEN  COUNT  APP  OBJECT  REASON  MESSAGE
[AGE]  [AGE]  1  shop/shop  Deployment shop/web  Early  it says Early

"#]],
    );
    one.apply(warning("b", "Late", 1)).unwrap();
    assert_shown(
        &going.news(|line| line.contains("Late")),
        str![[r#"
[AGE]  [AGE]  1  shop/shop  Deployment shop/web  Late  it says Late

"#]],
    );
    one.apply(warning("a", "Early", 7)).unwrap();
    assert_shown(
        &going.news(|line| line.contains("Early")),
        str![[r#"
[AGE]  [AGE]  7  shop/shop  Deployment shop/web  Early  it says Early

"#]],
    );
}

#[test]
fn the_row_of_an_object_is_added_when_its_status_changes() {
    let served = one_served();
    let one = &served.clusters[0];
    let mut other = app(1, 2);
    other["metadata"]["name"] = json!("a-longer-name");
    one.apply(other.clone()).unwrap();
    let status = ["status", "deploy", "-n", "shop", "-w"];
    let [mut table, mut names, mut lines, mut list] =
        [&[][..], &["-o", "name"], &["-o", "jsonl"], &["-o", "json"]]
            .map(|form: &[&str]| begin(&served, &[&status, form].concat()));
    let is_last = |line: &str| line.contains("web");
    assert_shown(
        &table.news(is_last),
        str![[r#"
NAMESPACE  KIND  NAME  STATUS  MESSAGE
shop  Deployment  a-longer-name  Ready  Deployment is available. Replicas: 2
shop  Deployment  web  Ready  Deployment is available. Replicas: 2

"#]],
    );
    assert_shown(
        &names.news(is_last),
        str![[r#"
apps/Deployment/shop/a-longer-name
apps/Deployment/shop/web

"#]],
    );
    assert_shown(
        &lines.news(is_last),
        str![[r#"
{"group":"apps","version":"v1","kind":"Deployment","namespace":"shop","name":"a-longer-name","status":"Current","message":"Deployment is available. Replicas: 2","conditions":[],"rule":"builtin/apps/Deployment"}
{"group":"apps","version":"v1","kind":"Deployment","namespace":"shop","name":"web","status":"Current","message":"Deployment is available. Replicas: 2","conditions":[],"rule":"builtin/apps/Deployment"}

"#]],
    );
    list.until_line("the list", is_last);

    one.apply(app(1, 1)).unwrap();
    assert_shown(
        &table.news(is_last),
        str![[r#"
shop  Deployment  web  InProgress  Available: 1/2

"#]],
    );
    assert_shown(
        &lines.news(is_last),
        str![[r#"
{"group":"apps","version":"v1","kind":"Deployment","namespace":"shop","name":"web","status":"InProgress","message":"Available: 1/2","conditions":[{"type":"Reconciling","status":"True","reason":"LessAvailable","message":"Available: 1/2"}],"rule":"builtin/apps/Deployment"}

"#]],
    );
    assert_shown(
        &list.news(is_last),
        str![[r#"
{"apiVersion": "cli.taffrail.dev/v1alpha1","kind": "StatusList","items": [{"conditions": [],"group": "apps","kind": "Deployment","message": "Deployment is available. Replicas: 2","name": "a-longer-name","namespace": "shop","rule": "builtin/apps/Deployment","status": "Current","version": "v1"},{"conditions": [{"message": "Available: 1/2","reason": "LessAvailable","status": "True","type": "Reconciling"}],"group": "apps","kind": "Deployment","message": "Available: 1/2","name": "web","namespace": "shop","rule": "builtin/apps/Deployment","status": "InProgress","version": "v1"}],"errors": []}

"#]],
    );

    one.delete("apps/v1", "Deployment", "shop", "a-longer-name");
    let is_gone = |line: &str| line.contains("a-longer-name");
    assert_shown(
        &table.news(is_gone),
        str![[r#"
shop  Deployment  a-longer-name  Gone

"#]],
    );
    assert_shown(
        &names.news(is_gone),
        str![[r#"
apps/Deployment/shop/a-longer-name  Gone

"#]],
    );
    assert_shown(
        &lines.news(is_gone),
        str![[r#"
{"group":"apps","version":"v1","kind":"Deployment","namespace":"shop","name":"a-longer-name","status":"NotFound","message":"Resource not found","conditions":[],"rule":"reader"}

"#]],
    );
}

#[test]
fn a_text_is_printed_again_when_what_it_tells_changes() {
    let served = one_served();
    let one = &served.clusters[0];
    let [mut tree, mut detail, mut cause] =
        [["tree", "shop", "-w"], ["app", "shop", "-w"], ["explain", "shop", "-w"]]
            .map(|view| begin(&served, &view));
    tree.until("Deployment shop/web");
    detail.until_line("its object", |line| words(line).starts_with(&["Deployment", "web", "Ready"]));
    cause.until("is Ready");
    one.apply(app(1, 1)).unwrap();
    let is_waiting = |line: &str| line.contains("web") && line.contains("InProgress");
    assert_shown(
        &tree.news(is_waiting),
        str![[r#"

OBJECT  STATUS  AGE  MESSAGE
label shop/shop  InProgress  Available: 1/2
└── Deployment shop/web  InProgress  [AGE]  Available: 1/2

"#]],
    );
    assert_shown(
        &detail.news(is_waiting),
        str![[r#"

label shop/shop: InProgress
Deployment shop/web: Available: 1/2

Application details:
  Branch:  -
  config_url:  -
  deployment_type:  -
  Path:  -
  source_type:  -
  URL:  -

Reconciliation details:
Last successful reconciliation: -

NAME  READY  MESSAGE  REVISION  SUSPENDED
-  -  -  -  -

NAME  READY  MESSAGE  REVISION  SUSPENDED
-  -  -  -  -

Deployment details:
KIND  NAME  STATUS  NAMESPACE  MESSAGE
Deployment  web  InProgress  shop  Available: 1/2

"#]],
    );
    assert_shown(
        &cause.news(|line| line.contains("kubectl")),
        str![[r#"

label shop/shop is InProgress

Cause
  Deployment shop/web: LessAvailable, not ready for [AGE]
  Available: 1/2

Next steps
  kubectl describe deployment.apps web -n shop --context one --kubeconfig [TMP]/config

"#]],
    );
}

#[test]
fn trust_is_told_again_only_when_a_finding_changes() {
    let served = one_served();
    let one = &served.clusters[0];
    let trust = ["trust", "-w"];
    let [mut text, mut list, mut names] = [&[][..], &["-o", "json"], &["-o", "name"]]
        .map(|form: &[&str]| begin(&served, &[&trust, form].concat()));
    let is_last = |line: &str| line.starts_with("No leases");
    assert_shown(
        &text.news(is_last),
        str![[r#"
Nothing proves that green is right
  unread  Deployment shop/web
  1 workload reports ready Pods, but no Pods of their namespaces were read: Ready rests on their own status alone
  Green app: shop/shop

Green covers less than it seems to
  fallback  label
  1 app is known only by its labels: a missing object would go unnoticed
  Green app: shop/shop

Checked as of [AGE]: 1 app (1 green), 1 object, 0 Pods and 0 leases.
No leases were read: dead nodes and controllers would go unnoticed.

"#]],
    );
    list.until("TrustReport");
    assert_shown(
        &names.news(|line| line.starts_with("fallback")),
        str![[r#"
unread/NoPods/one//Pod
fallback/NoInventory/one/label

"#]],
    );
    // The time of the check alone is no news.
    std::thread::sleep(Duration::from_millis(2500));
    let mut paused = app(1, 2);
    paused["spec"]["paused"] = json!(true);
    one.apply(paused).unwrap();
    assert_shown(
        &text.news(is_last),
        str![[r#"

Nothing proves that green is right
  unread  Deployment shop/web
  1 workload reports ready Pods, but no Pods of their namespaces were read: Ready rests on their own status alone
  Green app: shop/shop

Green covers less than it seems to
  suspended  Deployment shop/web
  the Deployment is paused: a changed template is not rolled out
  Green app: shop/shop
  > kubectl get deployment.apps web -o yaml -n shop --context one --kubeconfig [TMP]/config
  fallback  label
  1 app is known only by its labels: a missing object would go unnoticed
  Green app: shop/shop

Checked as of [AGE]: 1 app (1 green), 1 object, 0 Pods and 0 leases.
No leases were read: dead nodes and controllers would go unnoticed.

"#]],
    );
    list.until("paused");
    assert_eq!(list.seen.len(), 2, "{:#?}", list.seen);
    assert_shown(
        &names.news(|_| true),
        str![[r#"
suspended/Paused/one/apps/Deployment/shop/web

"#]],
    );
    one.apply(app(1, 2)).unwrap();
    assert_shown(
        &names.news(|_| true),
        str![[r#"
suspended/Paused/one/apps/Deployment/shop/web  Gone

"#]],
    );
}
