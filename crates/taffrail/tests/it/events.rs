//! `taffrail events` on dumps.

use serde_json::json;

use super::{assert_shown, of_case, str, taffrail};

#[test]
fn warnings_of_one_app_and_of_all() {
    let answer = of_case(&["events", "shop"], "flux-bad-image", &[]);
    assert_shown(
        &answer.stdout,
        str![[r#"
LAST SEEN   FIRST SEEN   COUNT   OBJECT                         REASON    MESSAGE
2 min ago   7 min ago    9       Pod shop/web-mhjt7bmjd-rk6mb   BackOff   Back-off pulling image "ghcr.io/acme/web:1.5.0-rc"
2 min ago   7 min ago    9       Pod shop/web-mhjt7bmjd-rk6mb   Failed    Error: ImagePullBackOff

"#]],
    );
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    let all = of_case(&["events", "--no-headers"], "flux-bad-image", &[]).stdout;
    assert_eq!(all.lines().count(), 2);
    assert!(all.contains("flux-system/shop"), "{all}");
}

#[test]
fn empty_events_are_reported_on_stderr() {
    let answer = of_case(&["events", "docs"], "flux-bad-image", &[]);
    assert_eq!((answer.stdout.as_str(), answer.code), ("", 0));
    assert_eq!(answer.stderr, "No warnings about 'docs'.\n");
    let json = of_case(&["events", "docs", "-o", "json"], "flux-bad-image", &[]).json();
    assert_eq!((&json["kind"], &json["items"]), (&"EventList".into(), &serde_json::json!([])));
}

/// The warnings of a Pod that crashed and was replaced are what a user looks for after the fact.
#[test]
fn warnings_of_pods_that_are_gone_count_for_their_workload() {
    let event = |name: &str, kind: &str, object: &str, at: &str, message: &str| {
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "shop", "name": name}, "type": "Warning",
            "reason": "BackOff", "message": message, "count": 2, "firstTimestamp": "2026-03-01T11:00:00Z", "lastTimestamp": at,
            "involvedObject": {"apiVersion": if kind == "Pod" { "v1" } else { "apps/v1" }, "kind": kind, "namespace": "shop", "name": object}})
    };
    let items = [
        json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"namespace": "apps", "name": "shop"},
            "status": {"inventory": {"entries": [{"id": "shop_web_apps_Deployment", "v": "v1"}]}}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": "web", "uid": "web",
            "labels": {"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "apps"}}}),
        event(
            "a",
            "Pod",
            "web-7f9c-x2k4p",
            "2026-03-01T11:58:00Z",
            "Back-off restarting failed container web in pod web-7f9c-x2k4p_shop(0ae07f3c-6f3e-4f0e-9d5a-7a1f5f0c8a11)",
        ),
        event(
            "b",
            "Pod",
            "web-7f9c-zz4p2",
            "2026-03-01T11:59:00Z",
            "Back-off restarting failed container web in pod web-7f9c-zz4p2_shop(5be07f3c-6f3e-4f0e-9d5a-7a1f5f0c8a12)",
        ),
        event("c", "Pod", "web2-7f9c-zz4p2", "2026-03-01T11:59:00Z", "of another workload"),
        event("d", "ReplicaSet", "web-7f9c", "2026-03-01T11:20:00Z", "pods \"web-7f9c-\" is forbidden"),
    ];
    let dump = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let events = |more: &[&str]| {
        let asked = ["events", "--from", "-", "--now", "2026-03-01T12:00:00Z"];
        taffrail(&[&asked[..], more].concat(), &dump)
    };
    assert_shown(
        &events(&["shop"]).stdout,
        str![[r#"
LAST SEEN    FIRST SEEN   COUNT   OBJECT                            REASON    MESSAGE
40 min ago   1 h ago      2       ReplicaSet shop/web-7f9c (gone)   BackOff   pods "web-7f9c-" is forbidden
1 min ago    1 h ago      4       2 Pods shop/web-* (gone)          BackOff   Back-off restarting failed container web in pod web-7f9c-zz4p2_shop([UID])

"#]],
    );
    let lately = events(&["--since", "10m", "-o", "json"]).json();
    assert_eq!(lately["items"].as_array().unwrap().len(), 1);
    assert_eq!((&lately["items"][0]["isGone"], &lately["items"][0]["madeBy"]), (&json!(true), &json!("web")));
    // What occurred before does not count.
    let latest = events(&["--since", "90s", "-o", "json"]).json();
    assert_eq!(latest["items"][0]["count"], 2);
    assert_eq!(events(&["shop", "--since", "30s"]).stderr, "No warnings about 'shop' in the last 30 s.\n");
}
