//! `taffrail history`: what a hub recorded of an app.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use snapbox::str;
use taffrail_sim::Trouble;
use taffrail_testkit::fake_hub::{FakeHub, send_json};

use super::hub::{Hub, ask_until, wait_for};
use super::served::Served;
use super::{Answer, assert_shown, logs, run, taffrail};

/// A hub of simulated clusters, which keeps what it learns in a folder.
struct Kept {
    served: Served,
    hub: Hub,
    _data: tempfile::TempDir,
}

impl Kept {
    /// Starts a hub of clusters that have the app `shop`, and waits until all of it is on disk.
    fn start(names: &[&str]) -> Kept {
        let served = logs::shop(names);
        let data = tempfile::tempdir().unwrap();
        let more = ["--data", data.path().to_str().unwrap()];
        let hub = Hub::serving(&served.kubeconfig, names.len(), "127.0.0.1:0", &more);
        hub.wait_until_complete();
        hub.until_saved();
        Kept { served, hub, _data: data }
    }

    /// Asks the hub.
    fn ask(&self, arguments: &[&str]) -> Answer {
        let url = self.hub.url();
        let mut command = super::command(&[arguments, &["--hub", &url, "--timeout", "60s"]].concat());
        command.env("TAFFRAIL_HUB_TOKEN", self.hub.token());
        run(command, b"")
    }

    /// Asks the hub until an answer is as wanted.
    fn ask_until(&self, arguments: &[&str], is_wanted: impl Fn(&Answer) -> bool) -> Answer {
        let url = format!("{}#{}", self.hub.url(), self.hub.token());
        ask_until(&[arguments, &["--hub", &url, "--timeout", "60s"]].concat(), is_wanted)
    }

    /// Mends the Deployment of the app in a cluster.
    fn mend(&self, cluster: usize) {
        let cluster = &self.served.clusters[cluster];
        let mut deployment = cluster.get("apps/v1", "Deployment", "shop", "web").unwrap();
        deployment["status"] = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2,
            "readyReplicas": 2, "availableReplicas": 2,
            "conditions": [{"type": "Available", "status": "True"}]});
        cluster.apply(deployment).unwrap();
    }

    /// Lets the delivery tool record two syncs of two days ago, the second of which failed. Returns the time at which the
    /// first began.
    fn sync(&self, cluster: usize) -> String {
        let cluster = &self.served.clusters[cluster];
        let mut app =
            cluster.get("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "shop").unwrap();
        // A hub keeps no syncs from before the last 30 days.
        let began = Timestamp::now().as_second() - 2 * 86_400;
        let at = |seconds: i64| Timestamp::from_second(began + seconds).unwrap().to_string();
        let entry = |letter: &str, result: &str, first: i64, last: i64| {
            json!({"digest": format!("sha256:{letter}"), "firstReconciled": at(first), "lastReconciled": at(last),
                "lastReconciledDuration": format!("{}s", last - first), "totalReconciliations": 1,
                "lastReconciledStatus": format!("Reconciliation{result}"),
                "metadata": {"revision": format!("main@sha1:{}", letter.repeat(40))}})
        };
        app["status"]["history"] = json!([entry("b", "Failed", 300, 309), entry("a", "Succeeded", 0, 4)]);
        cluster.apply(app).unwrap();
        at(0)
    }
}

#[test]
fn only_a_hub_keeps_history() {
    let answer = taffrail(&["history", "shop"], "");
    assert_eq!((answer.code, &*answer.stdout), (2, ""));
    assert_shown(
        &answer.stderr,
        str![[r#"
error: only a hub keeps history: --hub is missing
 hint: name a hub with --hub URL; `taffrail hub serve` starts one, and prints its URL

"#]],
    );
}

#[test]
fn history_shows_the_changes_and_syncs_of_an_app() {
    let kept = Kept::start(&["eu", "us"]);
    let began = kept.sync(0);
    kept.mend(0);
    let is_whole =
        |answer: &Answer| answer.stdout.contains("Ready/") && answer.stdout.matches("1:aaaa").count() == 1;
    let answer = kept.ask_until(&["history", "shop", "--cluster", "eu"], is_whole);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert!(
        lines[0].split_whitespace().eq(["TIME", "FROM", "TO", "REVISION", "RESULT", "TOOK", "MESSAGE"]),
        "{}",
        lines[0]
    );
    let line = |part: &str| {
        *lines.iter().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{}", answer.stdout))
    };
    let words = |part: &str| line(part).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert!(words("Ready/")[1].starts_with("Failed/"), "{}", answer.stdout);
    assert_eq!(words("main@sha1:aaaaaaa")[0], began);
    assert!(line("main@sha1:aaaaaaa").contains(" Succeeded "), "{}", answer.stdout);
    // The latest comes first.
    let times: Vec<&str> = lines[1..].iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert!(times.is_sorted_by(|one, other| one >= other), "{times:?}");
    let both = kept.ask(&["history", "shop"]);
    assert_eq!(both.code, 0, "{}", both.stderr);
    assert!(
        both.stdout.lines().any(|line| line.contains(" us ")) && both.stdout.starts_with("TIME"),
        "{}",
        both.stdout
    );
    let cut = kept.ask(&["history", "shop", "--cluster", "eu", "--limit", "1", "--no-headers"]);
    assert_eq!((cut.code, cut.stdout.lines().count()), (0, 1), "{}", cut.stdout);
    assert_eq!(cut.stderr, "Older entries than the latest 1 are left out (--limit).\n");
    let recent = kept.ask(&["history", "shop", "--cluster", "eu", "--since", "24h"]);
    assert!(!recent.stdout.contains("main@sha1:aaaaaaa"), "{}", recent.stdout);
    for (arguments, why) in [
        (&["no-such-app"][..], "there is no app 'no-such-app'"),
        (&["shop", "--cluster", "moon"], "there is no cluster 'moon'"),
        (
            &["eu/flux-kustomization/flux-system/gone"],
            "cluster 'eu' has no app flux-kustomization/flux-system/gone",
        ),
        (&["shop", "-n", "shop"], "there is no app 'shop'"),
    ] {
        let refused = kept.ask(&[&["history"], arguments].concat());
        assert_eq!((refused.code, &*refused.stdout), (2, ""), "{arguments:?} {}", refused.stderr);
        assert!(refused.stderr.starts_with(&format!("error: {why}")), "{}", refused.stderr);
    }
}

/// The history of an app as JSON: with more entries than asked for, and of an app whose cluster went dark; and the apps
/// of a past time.
pub(super) fn samples() -> Vec<Answer> {
    let kept = Kept::start(&["eu"]);
    kept.sync(0);
    kept.mend(0);
    let json = ["history", "shop", "-o", "json"];
    let types = |answer: &Answer| {
        let items = answer.json()["items"][0]["items"].as_array().cloned().unwrap_or_default();
        let ends = items.iter().filter(|item| item["ended"].is_string()).count();
        let changes = items.iter().filter(|item| item["before"].is_object()).count();
        ends > 0 && changes > 0
    };
    let whole = kept.ask_until(&json, types);
    let page = kept.ask(&[&json[..], &["--limit", "1"]].concat());
    kept.served.clusters[0].trouble(Trouble::Unreachable);
    let dark = kept.ask_until(&json, |answer| answer.json()["items"][0]["missing"][0]["since"].is_string());
    assert_eq!(dark.code, 3, "{}", dark.stderr);
    kept.hub.until_saved();
    let past = kept.ask(&["get", "apps", "-o", "json", "--at", &Timestamp::now().to_string()]);
    assert_eq!(past.code, 3, "{}", past.stderr);
    vec![whole, page, dark, past]
}

#[test]
fn history_of_an_app_that_is_gone_needs_its_full_name() {
    let kept = Kept::start(&["eu"]);
    let cluster = &kept.served.clusters[0];
    assert!(cluster.delete("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "shop"));
    let gone = kept.ask_until(&["history", "eu/flux-kustomization/flux-system/shop"], |answer| {
        answer.stdout.contains(" gone ")
    });
    assert_eq!(gone.code, 0, "{}", gone.stderr);
}

#[test]
fn apps_at_a_past_time_are_asked_of_a_hub_alone() {
    let url = "http://127.0.0.1:1#none";
    let of_hub = |arguments: &[&str]| taffrail(&[arguments, &["--hub", url]].concat(), "");
    let alone = taffrail(&["get", "apps", "--at", "2h"], "");
    assert_eq!((alone.code, &*alone.stdout), (2, ""));
    assert_shown(
        &alone.stderr,
        str![[r#"
error: --at needs --hub: only a hub knows what was
 hint: name a hub with --hub URL; `taffrail hub serve` starts one, and prints its URL

"#]],
    );
    for (arguments, why) in [
        (&["get", "clusters", "--at", "2h"][..], "--at applies to apps"),
        (&["get", "apps", "--at", "2h", "-w"], "cannot be used with"),
        (&["get", "apps", "--at", "2h", "--exit-status"], "cannot be used with"),
        (&["get", "apps", "--at", "2h", "-l", "team=web"], "cannot be used with"),
        (&["get", "apps", "--at", "2h", "--problems=sync"], "history does not keep it"),
        (&["get", "apps", "--at", "2h", "--sort", "since"], "history does not keep it"),
        (&["get", "apps", "--at", "2h", "--columns", "name,objects"], "column 'objects' does not apply"),
        (&["get", "apps", "--at", "9999-01-01T00:00:00Z"], "is in the future"),
        (&["get", "apps", "--at", "2026-03-01"], "a time must be in RFC 3339"),
        (&["get", "apps", "--at", "2y"], "the time has an unknown unit"),
    ] {
        let refused = of_hub(arguments);
        assert_eq!((refused.code, &*refused.stdout), (2, ""), "{arguments:?} {}", refused.stderr);
        assert!(refused.stderr.contains(why), "{arguments:?} {}", refused.stderr);
    }
}

#[test]
fn apps_are_shown_as_they_were_and_unknown_where_nothing_was_recorded() {
    let kept = Kept::start(&["eu", "us"]);
    let failed = Timestamp::now().to_string();
    kept.mend(0);
    let until = |effective: &str| {
        let is_so = |list: &Value| list["items"][0]["effective"] == effective;
        wait_for(&kept.hub, "/api/v1/apps?cluster=eu", is_so);
        kept.hub.until_saved();
    };
    until("Current");
    let mended = Timestamp::now().to_string();
    let before = kept.ask(&["get", "apps", "--at", &failed]);
    assert_eq!(before.code, 0, "{}", before.stderr);
    let moment = failed.split('.').next().unwrap();
    assert_eq!(before.stderr, format!("As of {moment}Z, by the history of the hub.\n"));
    assert_shown(
        &before.stdout,
        str![[r#"
CLUSTER   NAMESPACE     NAME   DELIVERY   STATUS   SYNC      MESSAGE
eu        flux-system   shop   ks         Failed   Unknown   -
us        flux-system   shop   ks         Failed   Unknown   -

"#]],
    );
    let after = kept.ask(&["get", "apps", "--at", &mended]);
    assert_shown(
        &after.stdout,
        str![[r#"
CLUSTER   NAMESPACE     NAME   DELIVERY   STATUS   SYNC      MESSAGE
eu        flux-system   shop   ks         Ready    Unknown   source not found
us        flux-system   shop   ks         Failed   Unknown   -

"#]],
    );
    let narrowed =
        kept.ask(&["get", "apps", "us/flux-kustomization/flux-system/shop", "--at", &mended, "-o", "name"]);
    assert_eq!(narrowed.stdout, "us/flux-kustomization/flux-system/shop\n", "{}", narrowed.stderr);
    let none = kept.ask(&["get", "apps", "--status", "Ready", "--at", &failed]);
    assert_eq!((none.code, &*none.stdout), (0, ""), "{}", none.stderr);
    assert!(none.stderr.ends_with("No apps found.\n"), "{}", none.stderr);
    let unknown = kept.ask(&["get", "apps", "moon", "--at", &failed]);
    assert_eq!((unknown.code, &*unknown.stdout), (2, ""), "{}", unknown.stderr);
    assert!(unknown.stderr.starts_with("error: there was no app 'moon' at "), "{}", unknown.stderr);

    // A cluster that nobody observed is not green.
    kept.served.clusters[0].trouble(Trouble::Unreachable);
    until("Unknown");
    let dark = kept.ask(&["get", "apps", "--at", &Timestamp::now().to_string()]);
    assert_eq!(dark.code, 3, "{}", dark.stderr);
    assert_shown(
        &dark.stdout,
        str![[r#"
CLUSTER   NAMESPACE     NAME   DELIVERY   STATUS    SYNC      MESSAGE
eu        flux-system   shop   ks         Unknown   Unknown   lost; was Ready
us        flux-system   shop   ks         Failed    Unknown   -

"#]],
    );
    assert!(dark.stderr.contains("error: eu: the cluster was not observed then\n"), "{}", dark.stderr);
    // Before the hub ran, nothing is known at all.
    let early = kept.ask(&["get", "apps", "--at", "24h"]);
    assert_eq!((early.code, &*early.stdout), (3, ""), "{}", early.stderr);
    assert!(
        early.stderr.starts_with(
            "error: the hub refuses the question: parameter 'at': the hub keeps no history before "
        ),
        "{}",
        early.stderr
    );
}

/// The answer of a hub about an app in one cluster, and a page of its history.
fn row() -> Value {
    json!({
        "key": "k", "cluster": "eu", "home": "eu", "delivery": "flux-kustomization", "namespace": "flux-system",
        "name": "shop", "health": "Current", "effective": "Current", "message": "", "counts": counts(), "objects": 0,
        "sync": {"state": "Synced", "effective": "Synced", "freshness": {"state": "live"}}, "suspended": false,
        "freshness": {"state": "live"},
    })
}

fn counts() -> Value {
    json!({"Current": 0, "InProgress": 0, "Failed": 0, "Terminating": 0, "NotFound": 0, "Unknown": 0})
}

fn page(items: usize, next: Option<&str>, message: &str) -> Value {
    let item = json!({"type": "sync", "at": "2026-03-01T11:00:00Z", "result": "Failed", "revision": "main", "message": message});
    let mut page = json!({
        "apiVersion": "cli.taffrail.dev/v1alpha1", "kind": "AppHistory", "cluster": "eu", "home": "eu",
        "delivery": "flux-kustomization", "namespace": "flux-system", "name": "shop", "items": vec![item; items],
        "state": "complete", "asOf": "2026-03-01T12:00:00Z", "clusters": 1, "missing": [],
    });
    if let Some(next) = next {
        page["next"] = next.into();
    }
    page
}

/// Asks a hub that answers each request for a page with what `page` returns.
fn of_fake(arguments: &[&str], page: impl Fn() -> Value + Send + Sync + 'static) -> Answer {
    let hub = FakeHub::start(move |path, _, stream| match path.starts_with("/api/v1/history/") {
        true => send_json(stream, &page()),
        false => {
            let fleet = json!({"now": "2026-03-01T12:00:00Z", "clusters": 1, "only": "eu"});
            send_json(stream, &json!({"fleet": fleet, "items": [row()], "isWell": true}));
        }
    })
    .unwrap();
    taffrail(&[&["history", "shop", "--hub", &hub.url], arguments].concat(), "")
}

#[test]
fn a_hostile_hub_costs_no_more_than_was_asked_for() {
    let more = of_fake(&["--limit", "3"], || page(4, None, ""));
    assert_eq!((more.code, &*more.stdout), (3, ""), "{}", more.stderr);
    assert_eq!(more.stderr, "error: eu: the hub sent more entries than it was asked for\n");
    let empty = of_fake(&[], || page(0, Some("again"), ""));
    assert_eq!(empty.code, 3);
    assert!(empty.stderr.contains("the hub sent an empty page that is not the last one"), "{}", empty.stderr);
    // Page after page is read until there are as many entries as were asked for.
    let pages = of_fake(&["--limit", "5", "--no-headers"], || page(1, Some("again"), "\u{1b}[2Jgone"));
    assert_eq!((pages.code, pages.stdout.lines().count()), (0, 5), "{}", pages.stderr);
    assert!(!pages.stdout.contains('\u{1b}'), "{}", pages.stdout);
    // All pages together have one budget of bytes.
    let begun = Instant::now();
    let long = "x".repeat(1 << 20);
    let heavy = of_fake(&["--limit", "1000", "--timeout", "50s"], move || page(1, Some("again"), &long));
    assert_eq!(heavy.code, 3);
    assert!(heavy.stderr.contains("length limit exceeded"), "{}", heavy.stderr);
    assert!(begun.elapsed() < Duration::from_secs(50));
}
