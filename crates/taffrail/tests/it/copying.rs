//! Commands that are printed for copying read what their reader has read, and work as they stand.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::served::Served;
use super::{Answer, assert_shown, command, run, str, taffrail};

/// A dump with an app that has more unwell objects than a text names, and a suspended one.
fn dump() -> String {
    let pod = |number: usize| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{namespace: shop, name: p{number}, labels: \
             {{app.kubernetes.io/instance: shop}}}}\nspec: {{containers: [{{name: a}}]}}\nstatus: {{phase: Failed}}\n"
        )
    };
    let other = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: media, name: c}\n";
    let suspended = "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n\
        metadata: {namespace: flux-system, name: web, generation: 1}\n\
        spec: {suspend: true, sourceRef: {kind: GitRepository, name: fleet}}\n\
        status: {observedGeneration: 1, lastAppliedRevision: 'main@sha1:1', conditions: [{type: Ready, status: 'True'}], \
        inventory: {entries: [{id: media_c__ConfigMap, v: v1}]}}\n";
    (0..9).map(pod).chain([other, suspended].map(str::to_owned)).collect()
}

/// Returns the commands of Taffrail that a text has between backticks, and at the ends of lines, without the program.
fn commands(text: &str) -> Vec<String> {
    let pattern = regex::Regex::new(r"`taffrail ([^`]*)`|(?:^ *|> |: )taffrail (.*)$").unwrap();
    let found = text.lines().flat_map(|line| pattern.captures_iter(line));
    found.filter_map(|found| Some(found.get(1).or(found.get(2))?.as_str().to_owned())).collect()
}

/// Has a shell run a command that was copied.
fn paste(command_line: &str, folder: &Path) -> Answer {
    let mut shell = Command::new("sh");
    super::clean(&mut shell);
    let script = format!("\"$0\" {command_line}");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_taffrail")]).current_dir(folder);
    run(shell, b"")
}

#[test]
fn commands_read_the_dumps_that_were_read() {
    let folder = tempfile::tempdir().unwrap();
    let dumps = folder.path().join("it's of prod");
    std::fs::create_dir(&dumps).unwrap();
    std::fs::write(dumps.join("prod.yaml"), dump()).unwrap();
    let mut copied = Vec::new();
    for view in [
        &["explain", "shop"][..],
        &["explain", "pod/p1", "-n", "elsewhere"],
        &["get", "resources", "-n", "media"],
        &["trust", "--category", "suspended"],
        &["app", "nothing-like-it"],
        &["reconcile", "web", "--dry-run"],
        &["suspend", "label/shop/shop", "--dry-run"],
    ] {
        let mut asked =
            command(&[view, &["--from", "it's of prod", "--now", "2026-03-01T12:00:00Z"]].concat());
        asked.current_dir(folder.path());
        let Answer { stdout, stderr, .. } = run(asked, b"");
        let found = commands(&format!("{stdout}{stderr}"));
        assert!(!found.is_empty(), "{view:?}: {stdout}{stderr}");
        copied.extend(found);
    }
    copied.sort();
    copied.dedup();
    assert_shown(
        &copied.join("\n"),
        str![[r#"
app label/shop/shop --from 'it'\''s of prod' --now [TIME]
explain pod/p1 -n shop --from 'it'\''s of prod' --now [TIME]
get apps --suspended --delivery flux-kustomization --from 'it'\''s of prod' --now [TIME]
get apps -o name --from 'it'\''s of prod' --now [TIME]
get resources --in-namespace media --from 'it'\''s of prod' --now [TIME]
resume flux-kustomization/flux-system/web --from 'it'\''s of prod' --now [TIME]
"#]],
    );
    for line in copied {
        // Nothing is written to a dump.
        if line.starts_with("resume") {
            continue;
        }
        let answer = paste(&line, folder.path());
        assert!(answer.code < 2 && !answer.stdout.is_empty(), "{line}: {}{}", answer.stdout, answer.stderr);
    }
}

#[test]
fn commands_read_the_clusters_that_were_read() {
    let served = Served::start(&["one", "two"], |name, cluster| {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "web",
            "labels": {"app.kubernetes.io/instance": "shop"}}, "spec": {"containers": [{"name": "a", "image": "a"}]},
            "status": {"phase": if name == "one" { "Failed" } else { "Succeeded" }}});
        cluster.apply(taffrail_testkit::objects::namespace("shop")).unwrap();
        cluster.apply(pod).unwrap();
    });
    let at = |view: &[&str]| {
        let chosen = ["--context", "one,tw*", "--kubeconfig", &served.kubeconfig, "--request-timeout", "0"];
        let answer = taffrail(&[view, &chosen].concat(), "");
        format!("{}{}", answer.stdout, answer.stderr)
    };
    let explained = at(&["explain", "shop", "--cluster", "one"]);
    let (_, next) = explained.split_once("Next steps\n").unwrap_or_else(|| panic!("{explained}"));
    assert_shown(
        next,
        str![[r#"
  kubectl describe pod web -n shop --context one --kubeconfig [TMP]/config

"#]],
    );
    assert_shown(
        &at(&["app", "nothing-like-it"]),
        str![[r#"
error: there is no app 'nothing-like-it'
 hint: `taffrail get apps -o name --context 'one,tw*' --kubeconfig [TMP]/config` lists all apps; an app that another cluster declares needs the context of that cluster, too

"#]],
    );
    assert_shown(
        &at(&["actions", "pod/web", "-n", "default"]),
        str![[r#"
error: there is no pod 'web' in namespace default
 hint: choose the object's namespace with -n NAMESPACE, or search all: `taffrail actions pod/web -A --context 'one,tw*' --kubeconfig [TMP]/config`

"#]],
    );
    assert_shown(
        &at(&["logs", "pod/web", "-n", "default"]),
        str![[r#"
error: there is no pod 'web'
 hint: choose the object's namespace with -n NAMESPACE, or search all: `taffrail logs pod/web -A --context 'one,tw*' --kubeconfig [TMP]/config`

"#]],
    );
    let hinted = at(&["wait", "shop", "-n", "shop", "--timeout", "5s"]);
    let hint = hinted.lines().find(|line| line.contains("taken for a kind"));
    assert_shown(
        hint.unwrap_or_else(|| panic!("{hinted}")),
        str![
            " hint: 'shop' is taken for a kind of objects; for the app of that name: `taffrail wait app/shop -n shop --context 'one,tw*' --kubeconfig [TMP]/config`"
        ],
    );
    let told = at(&["actions", "pod/web", "-n", "default"]);
    for line in commands(&told) {
        let answer = paste(&line, served.folder.path());
        assert!(
            answer.code == 0 && answer.stdout.contains("shop/web"),
            "{line}: {}{}",
            answer.stdout,
            answer.stderr
        );
    }
}

#[test]
fn commands_ask_the_hub_without_its_token() {
    let answer = taffrail(&["app", "web", "--hub", "http://127.0.0.1:1/#secret", "--timeout", "1s"], "");
    assert!(answer.code == 3 && !answer.stderr.contains("secret"), "{}", answer.stderr);
}
