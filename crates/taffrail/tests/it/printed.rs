//! Texts of a tenant that try to break out of a dump in YAML: nobody else loses a row.

use super::taffrail;

/// A dump as kubectl prints it, with something of a tenant between the deployments and an app that is not well.
fn dump(tenant: &str) -> String {
    let spec = "      path: ./x\n";
    format!(
        "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: a\n    namespace: flux-system\n{tenant}\
         - apiVersion: kustomize.toolkit.fluxcd.io/v1\n  kind: Kustomization\n  metadata:\n    generation: 1\n    name: red\n    \
         namespace: flux-system\n  spec:\n{spec}  status:\n    conditions:\n    - message: broken\n      reason: BuildFailed\n      \
         status: \"False\"\n      type: Ready\n    observedGeneration: 1\nkind: List\nmetadata:\n  resourceVersion: \"\"\n"
    )
    .replace("      path", "    path")
}

fn rows(dump: &str) -> (String, i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prod.yaml");
    std::fs::write(&file, dump).unwrap();
    let answer = taffrail(&["get", "apps", "-A", "--exit-status", "--from", file.to_str().unwrap()], "");
    (answer.stdout, answer.code, answer.stderr)
}

#[test]
fn tenant_objects_hide_nothing_in_a_dump() {
    let honest = rows(&dump(""));
    assert_eq!(honest.1, 1, "{honest:?}");
    assert!(honest.0.contains("Failed"), "{honest:?}");
    let note = |note: &str| {
        format!(
            "- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    annotations:\n      note: {note}\n    name: t\n    namespace: tenant\n"
        )
    };
    let spec = |spec: &str| {
        format!(
            "- apiVersion: e.org/v1\n  kind: Widget\n  metadata:\n    name: t\n    namespace: tenant\n  spec:\n    {spec}\n"
        )
    };
    for tenant in [
        note("|2-\n\u{2028}        a\n        b"),
        note("'a\u{2028}        b'"),
        note("1e999"),
        spec("note: |-\n      p\n\u{2028}      q:"),
        spec("note: |-\n      p\n\u{2029}\u{85}      q:"),
        spec("note: |\n      a\n\u{2028}").trim_end_matches('\n').to_owned(),
        spec("values:\n      <<: v"),
        spec("values:\n      <<:\n        a: b"),
    ] {
        assert_eq!(rows(&dump(&tenant)), honest, "{tenant}");
    }
}

#[test]
fn unreadable_objects_of_a_tenant_are_reported_alone() {
    let honest = rows(&dump(""));
    let tenant =
        "- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: t\n    namespace: tenant\n  zzz: 'a\n";
    let (rows, code, told) = rows(&dump(tenant));
    assert_eq!((rows, code), (honest.0, 3), "{told}");
    assert!(told.contains("prod.yaml:14: not YAML: item ConfigMap tenant/t: "), "{told}");
    // Of a list that is cut in a text in quotes the last item is told once.
    let cut = dump(tenant);
    let cut = &cut[..cut.find("  zzz: 'a\n").unwrap() + "  zzz: 'a\n".len()];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cut.yaml");
    std::fs::write(&file, cut).unwrap();
    let answer = taffrail(&["status", "-f", file.to_str().unwrap()], "");
    assert_eq!(answer.stderr.lines().count(), 1, "{}", answer.stderr);
    assert!(answer.stderr.contains("the list is cut"), "{}", answer.stderr);
    assert!(answer.stdout.contains("flux-system"), "{}", answer.stdout);
}
