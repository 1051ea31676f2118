//! `taffrail get` on dumps.

use std::fs;

use super::{golden_apps, taffrail};

pub(super) fn case(name: &str) -> (String, String) {
    let folder = golden_apps().join(name);
    let one = folder.join("cluster.yaml");
    let from = if one.exists() { one } else { folder.join("clusters") };
    let now = fs::read_to_string(folder.join("now")).unwrap().trim().to_owned();
    (from.to_str().unwrap().to_owned(), now)
}

fn get(what: &str, name: &str, arguments: &[&str]) -> super::Answer {
    let (from, now) = case(name);
    taffrail(&[&["get", what, "--from", &from, "--now", &now], arguments].concat(), "")
}

#[test]
fn apps_of_a_dump() {
    let answer = get("apps", "flux-in-motion", &[]);
    assert_eq!(
        answer.stdout,
        "\
NAMESPACE     NAME     DELIVERY   STATUS              SINCE   SYNC        APPLIED              MESSAGE
flux-system   config   ks         Ready, OutOfSync    40m     OutOfSync   main@sha1:0e260ed7   the source has main@sha1:cd484da3, and its controller has not applied it
flux-system   db       ks         Ready (suspended)   -       Suspended   main@sha1:0e260ed7   its delivery tool was told to leave it alone; the source has main@sha1:cd484da3
flux-system   web      ks         InProgress          35s     Syncing     main@sha1:0e260ed7   containers with unready status: [web]
web           cache    hr         InProgress          20s     Syncing     20.0.3               Running 'upgrade' action with timeout of 5m0s
"
    );
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
}

#[test]
fn namespaces_filter_by_where_an_app_is_declared() {
    let names =
        |arguments: &[&str]| get("apps", "flux-in-motion", &[&["-o", "name"], arguments].concat()).stdout;
    assert_eq!(names(&["-n", "web"]), "flux-helmrelease/web/cache\n");
    assert_eq!(names(&["-A"]).lines().count(), 4);
    let none = get("apps", "flux-in-motion", &["-n", "nobody"]);
    assert_eq!((none.stdout.as_str(), none.code), ("", 0));
    assert_eq!(none.stderr, "No apps found declared in namespace nobody.\n");
}

#[test]
fn a_dump_without_objects_is_not_green() {
    let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    let clusters =
        taffrail(&["get", "clusters", "--from", file.path().to_str().unwrap(), "-o", "json"], "").json();
    assert_eq!(clusters["items"][0]["status"], "Unknown");
    assert_eq!(clusters["items"][0]["message"], "it holds no objects");
}

#[test]
fn clusters_and_resources_of_a_dump() {
    let clusters = get("clusters", "flux-in-motion", &["-o", "json"]).json();
    assert_eq!(clusters["kind"], "ClusterList");
    assert_eq!(
        (&clusters["items"][0]["status"], &clusters["items"][0]["apps"]),
        (&"InProgress".into(), &4.into())
    );
    let resources = get("resources", "flux-in-motion", &["-n", "web", "-o", "json"]).json();
    assert_eq!(resources["kind"], "ResourceList");
    assert_eq!(resources["items"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_wrong_in_a_dump_is_told_and_the_rest_is_shown() {
    let answer = get("apps", "helm-secret-damaged", &[]);
    assert!(answer.stderr.contains("sh.helm.release.v1.cart.v2"), "{}", answer.stderr);
    assert!(answer.stdout.contains("fine"), "{}", answer.stdout);
    assert_eq!(get("apps", "flux-in-motion", &["--exit-status"]).code, 1);
    assert_eq!(get("apps", "flux-kustomization-well", &["--exit-status"]).code, 0);
}

#[test]
fn a_part_of_a_dump_that_cannot_be_read_turns_nothing_green() {
    let (from, now) = case("flux-kustomization-well");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prod.yaml");
    // Half of the Deployment is lost.
    let dump = fs::read_to_string(from).unwrap().replacen("    spec:\n      containers:", "    spec: [\n", 2);
    fs::write(&file, dump).unwrap();
    let answer =
        taffrail(&["get", "apps", "--from", file.to_str().unwrap(), "--now", &now, "-o", "json"], "");
    assert_eq!(answer.code, 3);
    let json = answer.json();
    let shop = json["items"].as_array().unwrap().iter().find(|app| app["name"] == "shop").unwrap().clone();
    assert_eq!(shop["health"], "Unknown", "{shop}");
    assert!(json["errors"][0]["message"].as_str().unwrap().contains("prod.yaml:"), "{json}");
}

#[test]
fn dumps_that_are_not_there() {
    let answer = taffrail(&["get", "apps", "--from", "nowhere.yaml"], "");
    assert_eq!(answer.code, 3);
    assert!(answer.stdout.contains("nowhere"), "a row says why: {}", answer.stdout);
    assert!(answer.stderr.contains("cannot read nowhere.yaml: No such file"), "{}", answer.stderr);
}
