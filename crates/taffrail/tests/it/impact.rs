//! `taffrail impact` in a repository that apps of simulated clusters are delivered from.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use taffrail_cluster::{ApiResource, ApplyRequest, Cluster, Deadline, Kubeconfig};
use taffrail_testkit::objects::{self, anything, applications, definition, kustomizations};

use super::served::Served;
use super::{Answer, command, run};

const URL: &str = "https://git.example.com/example/fleet.git";

const SETTINGS: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {colour: red}
";

const WEB: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'nginx:1.27'}]}
";

const OLD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old, namespace: shop}\n";
const TILL: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: till}\ndata: {open: 'yes'}\n";
const DRAWER: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: drawer}\n";
const KUSTOMIZATION: &str = "resources: [../../base]\n";

/// A Git repository of a test.
pub(super) struct Repository(tempfile::TempDir);

impl Repository {
    pub(super) fn new() -> Repository {
        let repository = Repository(tempfile::tempdir().unwrap());
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository.git(&["remote", "add", "origin", "git@git.example.com:example/fleet"]);
        repository
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn git(&self, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=test", "-c", "user.email=test@example.com"]).args(arguments);
        git.current_dir(self.path()).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        let output = git.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Writes these files, removes those without content, and commits.
    pub(super) fn commit(&self, files: &[(&str, Option<&str>)]) {
        for (path, content) in files {
            let path = self.path().join(path);
            match content {
                Some(content) => {
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, content).unwrap();
                }
                None => std::fs::remove_file(path).unwrap(),
            }
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "test"]);
    }

    /// Commits the manifests that the clusters have, and then a change on the branch `change`.
    fn changed() -> Repository {
        let repository = Repository::new();
        repository.commit(&[
            ("clusters/web/settings.yaml", Some(SETTINGS)),
            ("clusters/web/parts/web.yaml", Some(WEB)),
            ("clusters/web/old.yml", Some(OLD)),
            ("clusters/web/README.md", Some("The web.\n")),
            ("clusters/rendered/kustomization.yaml", Some(KUSTOMIZATION)),
            ("base/kustomization.yaml", Some("resources: [base.yaml]\n")),
            ("base/base.yaml", Some(OLD)),
            ("till/till.yaml", Some(TILL)),
            ("till/drawer.yaml", Some(DRAWER)),
            ("quiet/quiet.yaml", Some(OLD)),
        ]);
        repository.git(&["checkout", "--quiet", "-b", "change"]);
        repository.commit(&[
            ("clusters/web/settings.yaml", Some(&SETTINGS.replace("red", "blue"))),
            ("clusters/web/parts/web.yaml", Some(&WEB.replace("1.27", "1.28"))),
            ("clusters/web/old.yml", None),
            ("clusters/web/new.yaml", Some(&OLD.replace("old", "new"))),
            ("base/base.yaml", Some(&OLD.replace("old", "other"))),
            ("till/till.yaml", Some(&TILL.replace("yes", "no"))),
            ("till/drawer.yaml", None),
        ]);
        repository
    }
}

fn kustomization(name: &str, path: &str, inventory: &[&str]) -> Value {
    let entries: Vec<Value> = inventory.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "flux-system", "name": name, "generation": 1},
        "spec": {"path": path, "prune": true, "interval": "10m", "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
        "status": {"observedGeneration": 1, "inventory": {"entries": entries}, "lastAppliedRevision": "main@sha1:1",
            "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "observedGeneration": 1}]},
    })
}

fn till() -> Value {
    let object = |name: &str| json!({"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": name, "status": "Synced"});
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"namespace": "argocd", "name": "till"},
        "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
            "source": {"repoURL": URL, "path": "till", "targetRevision": "main"}},
        "status": {"sync": {"status": "Synced", "revision": "1"}, "health": {"status": "Healthy"},
            "resources": [object("till"), object("drawer")]},
    })
}

/// Two clusters whose apps are delivered from the repository, but for its change.
fn served() -> Served {
    let served = Served::start_with_managers(&["eu", "us"], |name, cluster| {
        for object in [
            kustomizations(),
            applications(),
            definition("source.toolkit.fluxcd.io", "v1", "GitRepository", anything()),
            objects::namespace("shop"),
            objects::namespace("flux-system"),
            objects::namespace("argocd"),
        ] {
            cluster.apply(object).unwrap();
        }
        if name == "us" {
            return cluster.apply(till()).unwrap();
        }
        let source = json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"namespace": "flux-system", "name": "fleet", "generation": 1},
            "spec": {"url": URL, "ref": {"branch": "main"}},
            "status": {"observedGeneration": 1, "artifact": {"revision": "main@sha1:1"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "observedGeneration": 1}]}});
        cluster.apply(source).unwrap();
        let of_web = ["shop_settings__ConfigMap", "shop_web_apps_Deployment", "shop_old__ConfigMap"];
        for app in [
            kustomization("web", "./clusters/web", &of_web),
            kustomization("rendered", "clusters/rendered", &[]),
            kustomization("quiet", "./quiet", &[]),
        ] {
            cluster.apply(app).unwrap();
        }
    });
    served.runtime.block_on(async {
        for (manifest, context, manager) in [
            (SETTINGS, "eu", "kustomize-controller"),
            (WEB, "eu", "kustomize-controller"),
            (OLD, "eu", "kustomize-controller"),
            (TILL, "us", "argocd-controller"),
            (DRAWER, "us", "argocd-controller"),
        ] {
            apply(&served.kubeconfig, context, manifest, manager).await;
        }
    });
    served
}

/// Applies a manifest as a delivery tool does.
async fn apply(kubeconfig: &str, context: &str, manifest: &str, manager: &str) {
    let config = Kubeconfig::load(Some(kubeconfig.as_ref()), None, None).unwrap();
    let context = config.context(context).unwrap();
    let cluster = Cluster::connect(&context, Deadline::after(Duration::from_secs(60))).await.unwrap();
    let mut object: Value = taffrail_object::yaml::read(manifest).unwrap();
    object["metadata"]["namespace"] = json!("shop");
    let labels = json!({"kustomize.toolkit.fluxcd.io/name": "web", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"});
    match manager {
        "kustomize-controller" => object["metadata"]["labels"] = labels,
        _ => {
            let id = format!("till:/ConfigMap:shop/{}", object["metadata"]["name"].as_str().unwrap());
            object["metadata"]["annotations"] = json!({"argocd.argoproj.io/tracking-id": id});
        }
    }
    let is_core = object["apiVersion"] == "v1";
    let kind = object["kind"].as_str().unwrap().to_owned();
    let resource = ApiResource {
        group: if is_core { String::new() } else { "apps".to_owned() },
        version: "v1".to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
        kind,
        namespaced: true,
    };
    let body = object.to_string();
    let request = ApplyRequest {
        resource: &resource,
        namespace: Some("shop"),
        name: object["metadata"]["name"].as_str().unwrap(),
        subresource: None,
        body: body.as_bytes(),
        manager,
        force: true,
        dry_run: false,
        allow_secret: false,
    };
    cluster.apply(&request).await.unwrap();
}

pub(super) fn impact(served: &Served, repository: &Repository, more: &[&str]) -> Answer {
    let mut command = command(&served.all(&[&["impact"], more].concat()));
    command.current_dir(repository.path());
    run(command, b"")
}

/// The answers of `impact` that have all of its fields.
pub(super) fn samples() -> Vec<Answer> {
    let (served, repository) = (served(), Repository::changed());
    let answers = vec![impact(&served, &repository, &["main..change", "-o", "json"])];
    drifted(&repository);
    answers.into_iter().chain([impact(&served, &repository, &["main..one", "-o", "json"])]).collect()
}

/// Makes a branch `one`, which leaves an object as it is on `main`, and that one differs from the cluster.
fn drifted(repository: &Repository) {
    repository.git(&["checkout", "--quiet", "main"]);
    repository.commit(&[("clusters/web/settings.yaml", Some(&SETTINGS.replace("red", "green")))]);
    repository.git(&["checkout", "--quiet", "-B", "one"]);
    repository.commit(&[("clusters/web/old.yml", None)]);
}

/// Replaces the ages of changes by other managers.
fn without_ages(shown: &str) -> String {
    let line = |line: &str| match line.split_once("(conflict: argocd-controller, ") {
        Some((start, _)) => format!("{start}(conflict: argocd-controller, AGE)\n"),
        None => format!("{line}\n"),
    };
    shown.lines().map(line).collect()
}

#[test]
fn impact_tells_what_becomes_of_the_objects_of_apps() {
    let (served, repository) = (served(), Repository::changed());
    let answer = impact(&served, &repository, &["main...change"]);
    let expected = "\
eu  flux-kustomization flux-system/web (clusters/web)
+ ConfigMap shop/new is created (clusters/web/new.yaml:1)
~ Deployment shop/web changes (clusters/web/parts/web.yaml:1)
  ~ spec.template.spec.containers[name=web].image: \"nginx:1.27\" -> \"nginx:1.28\"
    its Pods are replaced
~ ConfigMap shop/settings changes (clusters/web/settings.yaml:1)
  ~ data.colour: \"red\" -> \"blue\"
- ConfigMap shop/old is deleted

us  argo-application argocd/till (till)
~ ConfigMap shop/till changes (till/till.yaml:1)
  ~ data.open: \"yes\" -> \"no\"
= ConfigMap shop/drawer is no longer declared, and stays (its app does not prune)
";
    assert_eq!(answer.stdout, expected, "{}", answer.stderr);
    let untold = "\
1 to create, 3 to change (1 replaces its Pods), 1 to delete, 1 no longer declared; not all can be told
warning: us: argo-application argocd/till has no automated sync: its objects change when somebody syncs it
error: eu: flux-kustomization flux-system/rendered: kustomize makes its objects (clusters/rendered/kustomization.yaml)
 hint: render what another tool makes by that tool: kustomize build deploy/eu | taffrail diff -f - --context eu
";
    assert_eq!((answer.code, answer.stderr.as_str()), (3, untold));
    // The app whose folder has no change is not asked about, nor is one by another path.
    let of_till = impact(&served, &repository, &["main...change", "--path", "till"]);
    assert!(of_till.stdout.starts_with("us  argo-application argocd/till (till)\n"), "{}", of_till.stdout);
    let counted = of_till.stderr.lines().next();
    assert_eq!((of_till.code, counted), (0, Some("1 to change, 1 no longer declared")));
}

#[test]
fn impact_is_told_as_markdown() {
    let (served, repository) = (served(), Repository::changed());
    let answer = impact(&served, &repository, &["main..", "-o", "markdown"]);
    let (heading, rest) = answer.stdout.split_once('\n').unwrap();
    assert!(heading.starts_with("### What changes from ` ") && heading.contains(" ` to ` "), "{heading}");
    let expected = "
1 to create, 3 to change (1 replaces its Pods), 1 to delete, 1 no longer declared; not all can be told

#### Not told

- ` eu ` ` flux-kustomization flux-system/rendered `: ` kustomize makes its objects (clusters/rendered/kustomization.yaml) `
- ` us: argo-application argocd/till has no automated sync: its objects change when somebody syncs it `

#### ` eu  flux-kustomization flux-system/web (clusters/web) `

| | object | |
|---|---|---|
| 🟢 | ` ConfigMap shop/new ` | is created |
| 🔁 | ` Deployment shop/web ` | changes, and its Pods are replaced<br>` spec.template.spec.containers[name=web].image `: ` \"nginx:1.27\" ` → ` \"nginx:1.28\" ` |
| 🟡 | ` ConfigMap shop/settings ` | changes<br>` data.colour `: ` \"red\" ` → ` \"blue\" ` |
| 🔴 | ` ConfigMap shop/old ` | is deleted |

#### ` us  argo-application argocd/till (till) `

| | object | |
|---|---|---|
| 🟡 | ` ConfigMap shop/till ` | changes<br>` data.open `: ` \"yes\" ` → ` \"no\" ` |
| ⚪ | ` ConfigMap shop/drawer ` | is no longer declared, and stays (` its app does not prune `) |
";
    assert_eq!(rest, expected, "{}", answer.stderr);
}

#[test]
fn without_an_app_of_the_repository_changed_manifests_are_compared_with_each_cluster() {
    let (served, repository) = (served(), Repository::changed());
    repository.git(&["remote", "set-url", "origin", "https://git.example.com/example/other"]);
    let answer = impact(&served, &repository, &["main..", "--path", "till", "--default-namespace", "shop"]);
    let expected = "\
eu
+ ConfigMap shop/till is created (till/till.yaml:1)

us
~ ConfigMap shop/till changes (till/till.yaml:1)
  ~ data.open: \"yes\" -> \"no\"  (conflict: argocd-controller, AGE)
= ConfigMap shop/drawer is no longer declared, and stays (no app is known that would delete it)
";
    assert_eq!(without_ages(&answer.stdout), expected, "{}", answer.stderr);
    let told = "\
1 to create, 1 to change, 1 no longer declared
warning: no app is delivered from git.example.com/example/other: the changed manifests are compared with each cluster (--path names the folder of one)
";
    assert_eq!((answer.code, answer.stderr.as_str()), (0, told));
}

/// Returns the code and the first line of stderr after a commit of these files on a branch from `main`.
fn told_of(
    served: &Served,
    repository: &Repository,
    files: &[(&str, Option<&str>)],
    more: &[&str],
) -> (i32, String) {
    repository.git(&["checkout", "--quiet", "-B", "one", "main"]);
    repository.commit(files);
    let answer = impact(served, repository, &[&["main..one"], more].concat());
    let line = |start: &str| answer.stderr.lines().find(|line| line.starts_with(start));
    let line = line("error").or_else(|| line("warning: us: argo-application argocd/till follows"));
    (answer.code, line.unwrap_or(&answer.stdout).to_owned())
}

#[test]
fn impact_says_where_a_tool_makes_something_else_of_the_files() {
    let (served, repository) = (served(), Repository::changed());
    let marked = format!("# +argocd:skip-file-rendering\n{TILL}");
    let local = SETTINGS.replace(
        "namespace: shop",
        "namespace: shop, annotations: {config.kubernetes.io/local-config: 'true'}",
    );
    for (path, content, told) in [
        ("till/till.yaml", &*marked, "argocd/till: till/till.yaml has '+argocd:skip-file-rendering'"),
        ("till/more.jsonnet", "{}", "argocd/till: till/more.jsonnet makes or changes its objects"),
        (
            "till/.argocd-source.yaml",
            "path: x",
            "argocd/till: till/.argocd-source.yaml makes or changes its objects",
        ),
        (
            "clusters/web/settings.yaml",
            &*local,
            "flux-system/web: clusters/web/settings.yaml has 'config.kubernetes.io/local-config'",
        ),
        (
            "clusters/.sourceignore",
            "*.yaml",
            "flux-system/web: clusters/.sourceignore decides which files are delivered",
        ),
    ] {
        // A change of the folder itself, so that it is looked at.
        let folder = if path.starts_with("till") { "till/drawer.yaml" } else { "clusters/web/old.yml" };
        let (code, line) = told_of(&served, &repository, &[(folder, None), (path, Some(content))], &[]);
        assert!(code == 3 && line.ends_with(told), "{path}: {code} {line}");
    }
    // Flux takes no such file from any source, so the object of the renamed one is deleted.
    let renamed = [("clusters/web/old.yml", None), ("clusters/web/cloudbuild.yaml", Some(OLD))];
    let (code, shown) = told_of(&served, &repository, &renamed, &[]);
    assert!(code == 0 && shown.contains("- ConfigMap shop/old is deleted"), "{shown}");
    // Without a manifest, but with another file, everything is deleted.
    let all = ["settings.yaml", "parts/web.yaml", "old.yml"].map(|name| format!("clusters/web/{name}"));
    let (code, shown) = told_of(&served, &repository, &all.each_ref().map(|path| (&**path, None)), &[]);
    assert_eq!((code, shown.matches("is deleted").count()), (0, 3), "{shown}");
    let (code, line) =
        told_of(&served, &repository, &[("till/till.yaml", None), ("till/drawer.yaml", None)], &[]);
    assert!(code == 3 && line.contains("no manifests are left in till"), "{line}");
    // An app that follows something else is not reached yet.
    let other = [("till/till.yaml", Some(&*TILL.replace("yes", "no")))];
    let (code, line) = told_of(&served, &repository, &other, &["--branch", "release"]);
    assert!(
        code == 0 && line.contains("argocd/till follows main, so the change does not reach it yet"),
        "{line}"
    );
}

#[test]
fn what_differs_already_is_not_told_as_the_change() {
    let (served, repository) = (served(), Repository::changed());
    drifted(&repository);
    let answer = impact(&served, &repository, &["main..one"]);
    let expected = "\
eu  flux-kustomization flux-system/web (clusters/web)
~ ConfigMap shop/settings changes (clusters/web/settings.yaml:1)
  ~ data.colour: \"red\" -> \"green\"
    it differs already: the change leaves its manifest as it was
- ConfigMap shop/old is deleted
";
    assert_eq!(answer.stdout, expected, "{}", answer.stderr);
    assert_eq!(answer.stderr, "1 to change, 1 of them differs already, 1 to delete, 1 unchanged\n");
    let json: Value = impact(&served, &repository, &["main..one", "-o", "json"]).json();
    let already = json["items"].as_array().unwrap().iter().filter(|row| row["differsAlready"] == true);
    let names: Vec<&Value> = already.map(|row| &row["object"]["name"]).collect();
    assert_eq!(names, ["settings"]);
}

#[test]
fn commits_that_cannot_be_merged_name_their_files() {
    let (served, repository) = (served(), Repository::changed());
    repository.git(&["checkout", "--quiet", "main"]);
    repository.commit(&[("clusters/web/settings.yaml", Some(&SETTINGS.replace("red", "green")))]);
    let answer = impact(&served, &repository, &["main...change"]);
    let expected = "\
error: the commits cannot be merged without a conflict in clusters/web/settings.yaml
 hint: merge the base into the branch first, or use BASE..HEAD
";
    assert_eq!((answer.code, answer.stderr.as_str()), (2, expected));
}

#[test]
fn impact_of_a_merge_leaves_what_the_other_branch_added() {
    let (served, repository) = (served(), Repository::changed());
    repository.git(&["checkout", "--quiet", "main"]);
    repository.commit(&[("clusters/web/more.yaml", Some(&OLD.replace("old", "more")))]);
    let commits = |range: &str| impact(&served, &repository, &[range, "--path", "clusters/web"]).stdout;
    assert!(commits("main...change").contains("+ ConfigMap shop/more is created"));
    // As the branch has it alone.
    assert!(!commits("main..change").contains("more"));
}

#[test]
fn impact_says_what_is_wrong_with_its_range() {
    let (served, repository) = (served(), Repository::changed());
    for (range, message) in [
        ("main", "'main' is no range of commits"),
        ("main..--output=x", "there is no commit '--output=x' in this repository"),
        ("nowhere..main", "there is no commit 'nowhere' in this repository"),
    ] {
        let answer = impact(&served, &repository, &[range]);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{range}");
        assert!(answer.stderr.contains(message), "{range}: {}", answer.stderr);
    }
    let mistyped = impact(&served, &repository, &["main..change", "--path", "tilll"]);
    assert_eq!((mistyped.code, mistyped.stdout.as_str()), (2, ""));
    assert!(mistyped.stderr.contains("neither commit has 'tilll'"), "{}", mistyped.stderr);
    let nothing = impact(&served, &repository, &["main..main"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (0, ""), "{}", nothing.stderr);
}
