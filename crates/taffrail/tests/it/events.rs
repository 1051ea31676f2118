//! `taffrail events` on dumps.

use super::{assert_shown, of_case, str};

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
