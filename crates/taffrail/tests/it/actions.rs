//! `taffrail actions` and `taffrail action` on simulated clusters and on dumps.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use taffrail_sim::{Cluster, Fault, Trouble};
use taffrail_testkit::objects::{
    self, applications, definition, namespace, with_spec_and_status, with_status_subresource,
};

use super::served::Served;
use super::{Answer, assert_shown, command, str, taffrail};

/// The definition of Argo's Rollouts.
fn rollouts() -> Value {
    with_status_subresource(definition("argoproj.io", "v1alpha1", "Rollout", with_spec_and_status()))
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "web:1"}]}}}})
}

fn cron_job() -> Value {
    json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"namespace": "shop", "name": "night"},
        "spec": {"schedule": "0 1 * * *", "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "run", "image": "night:1"}]}}}}}})
}

pub(super) fn served(names: &[&str]) -> Served {
    let served = Served::start(names, |_, cluster| {
        cluster.apply(namespace("shop")).unwrap();
        cluster.apply(rollouts()).unwrap();
        cluster.apply(deployment()).unwrap();
        cluster.apply(cron_job()).unwrap();
        cluster
            .apply(json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
                "metadata": {"namespace": "shop", "name": "api"},
                "spec": {"paused": true, "strategy": {"canary": {"steps": [{"pause": {}}]}}},
                "status": {"currentPodHash": "new", "stableRS": "old", "pauseConditions": [{"reason": "CanaryPauseStep"}]}}))
            .unwrap();
    });
    served.asked_with(&["-n", "shop", "--timeout", "30s"])
}

impl Served {
    /// Scripts of somebody's own for Deployments.
    fn scripts(&self, files: &[(&str, &str)]) -> String {
        let root = self.folder.path().join("scripts");
        for (name, text) in files {
            let file = root.join("apps/Deployment/actions").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        root.to_str().unwrap().to_owned()
    }
}

pub(super) fn web(cluster: &Cluster) -> Value {
    cluster.get("apps/v1", "Deployment", "shop", "web").unwrap()
}

fn api(cluster: &Cluster) -> Value {
    cluster.get("argoproj.io/v1alpha1", "Rollout", "shop", "api").unwrap()
}

#[test]
fn actions_are_listed() {
    let served = served(&["one"]);
    let answer = served.ask(&["actions", "deploy/web"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_shown(
        &answer.stdout,
        str![[r#"
Deployment shop/web in one
ACTION    FROM      NOW   PARAMETERS   DOES
pause     shipped   yes   -            Hold its rollout
restart   shipped   yes   -            Replace its Pods, as its strategy says
resume    shipped   no    -            Go on with its rollout
scale     shipped   yes   replicas=2   Set how many Pods it has

"#]],
    );
    let names = served.ask(&["actions", "apps/Deployment/shop/web", "-o", "name"]).stdout;
    assert_eq!(names, "pause\nrestart\nresume\nscale\n");
    let answer = served.ask(&["actions", "namespace/shop"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stdout.ends_with("No actions for this object.\n"), "{}", answer.stdout);
}

#[test]
fn missing_object_has_no_actions() {
    let served = served(&["one"]);
    for command in [&["actions"][..], &["action", "restart"]] {
        let answer = served.ask(&[command, &["deploy/shop"]].concat());
        assert_eq!(answer.code, 2, "{}", answer.stdout);
        assert!(answer.stderr.contains("there is no deploy 'shop' in namespace shop"), "{}", answer.stderr);
        let answer = served.ask(&[command, &["gadget/web"]].concat());
        assert_eq!(answer.code, 3, "{}", answer.stdout);
        assert!(answer.stderr.contains("no kind called gadget"), "{}", answer.stderr);
        assert_eq!(served.ask(&[command, &["web"]].concat()).code, 2);
    }
}

#[test]
fn action_shows_and_writes_its_change() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    let answer = served.ask(&["action", "scale", "deploy/web", "--param", "replicas=5"]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    assert_shown(
        &answer.stdout,
        str![[r#"
Deployment shop/web in one
  spec:
-   replicas: 2
+   replicas: 5
scale: changed Deployment shop/web

"#]],
    );
    assert_eq!(web(cluster)["spec"]["replicas"], 5);
    let answer = served.ask(&["action", "scale", "deploy/web", "--param", "replicas=5"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(answer.stdout, "Deployment shop/web already has this state: nothing to do\n");

    let answer = served.ask(&["action", "restart", "deploy/web", "--now", "2026-03-01T12:00:00Z"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let annotation =
        &web(cluster)["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"];
    assert_eq!(annotation, "2026-03-01T12:00:00Z");
}

#[test]
fn names_of_lists_of_objects_are_taken() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    let mut labelled = deployment();
    labelled["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "web"});
    cluster.apply(labelled).unwrap();
    let names = served.ask(&["get", "resources", "--kind", "deployment", "-o", "name"]).stdout;
    let name = names.trim_end();
    assert_eq!(name, "apps/Deployment/shop/web");
    let answer = served.ask(&["action", "scale", name, "--param", "replicas=4"]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    assert_eq!(web(cluster)["spec"]["replicas"], 4);
    assert_eq!(served.ask(&["actions", name, "-o", "name"]).code, 0);
}

#[test]
fn names_of_objects_of_several_clusters_are_taken_by_every_command_about_objects() {
    let served = served(&["one", "two"]);
    let mut labelled = deployment();
    labelled["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "web"});
    for cluster in &served.clusters {
        cluster.apply(labelled.clone()).unwrap();
    }
    // Without the namespace: the names say it.
    let ask = |words: &[&str]| super::taffrail(&served.all(&[words, &["--timeout", "30s"]].concat()), "");
    let names = ask(&["get", "resources", "--kind", "deployment", "-o", "name"]).stdout;
    assert_eq!(names, "one/apps/Deployment/shop/web\ntwo/apps/Deployment/shop/web\n");
    let name = names.lines().last().unwrap_or_default();
    for command in ["status", "explain", "actions"] {
        let answer = ask(&[command, name]);
        let is_of_two = answer.stdout.contains("two") && !answer.stdout.contains("one");
        assert!(is_of_two && answer.code == 0, "{command}: {}{}", answer.stdout, answer.stderr);
    }
    let waited = ask(&["wait", name, "--for", "exists", "-o", "lines"]);
    assert_eq!(waited.code, 0, "{}{}", waited.stdout, waited.stderr);
    assert!(waited.stdout.contains("two") && !waited.stdout.contains("one"), "{}", waited.stdout);
    let done = ask(&["action", "scale", name, "--param", "replicas=4"]);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    let replicas = |at: usize| web(&served.clusters[at])["spec"]["replicas"].clone();
    assert_eq!((replicas(0), replicas(1)), (labelled["spec"]["replicas"].clone(), json!(4)));
    for command in [&["status"][..], &["explain"], &["wait"], &["actions"]] {
        let wrong = ask(&[command, &["three/apps/Deployment/shop/web"]].concat());
        assert_eq!(wrong.code, 2, "{command:?}: {}", wrong.stderr);
        assert!(wrong.stderr.contains("there is no cluster 'three'"), "{command:?}: {}", wrong.stderr);
    }
}

#[test]
fn new_objects_are_made() {
    let served = served(&["one"]);
    let now = ["--now", "2026-03-01T12:00:00Z"];
    let create = ["action", "create-job", "cronjob/night"];
    let job = || served.clusters[0].get("batch/v1", "Job", "shop", "night-120000");
    let answer = served.ask(&[&create[..], &now, &["--dry-run"]].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stdout.starts_with("Job shop/night-120000 in one, new\n"), "{}", answer.stdout);
    assert!(answer.stdout.contains("+ kind: Job\n"), "{}", answer.stdout);
    assert!(answer.stdout.ends_with("nothing was sent (dry run)\n"), "{}", answer.stdout);
    let answer = served.ask(&[&create[..], &now, &["--dry-run=server"]].concat());
    assert!(
        answer.stdout.ends_with("the server accepts the change; nothing was written (dry run)\n"),
        "{}",
        answer.stdout
    );
    assert_eq!(job(), None);
    let answer = served.ask(&[&create[..], &now].concat());
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stdout.ends_with("create-job: created Job shop/night-120000\n"), "{}", answer.stdout);
    assert_eq!(job().unwrap()["metadata"]["ownerReferences"][0]["name"], "night");
    let answer = served.ask(&[&create[..], &now].concat());
    assert_eq!(answer.code, 3, "{}", answer.stdout);
    assert!(answer.stderr.contains("already exists"), "{}", answer.stderr);
}

#[test]
fn status_subresource_is_patched_separately() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    let before = cluster.resource_version();
    let answer = served.ask(&["action", "resume", "rollout/api", "--dry-run=server"]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    assert_eq!(cluster.resource_version(), before);
    let answer = served.ask(&["action", "resume", "rollout/api"]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    let now = api(cluster);
    assert_eq!(
        (&now["spec"]["paused"], now["status"].get("pauseConditions")),
        (&json!(false), None),
        "{now:#}"
    );
    // Of a kind whose status is a field as any other.
    served.clusters[0]
        .apply({
            let mut plain = rollouts();
            plain["spec"]["versions"][0].as_object_mut().unwrap().remove("subresources");
            plain
        })
        .unwrap();
    let answer = served.ask(&["action", "abort", "rollout/api"]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    assert_eq!(api(cluster)["status"]["abort"], true);
}

#[test]
fn invalid_action_usage_is_refused() {
    let served = served(&["one"]);
    let before = served.clusters[0].resource_version();
    for (arguments, why) in [
        (
            &["resume", "deploy/web"][..],
            "'resume' is disabled for the current state of Deployment shop/web in one",
        ),
        (&["explode", "deploy/web"], "the actions are: pause, restart, resume, scale"),
        (&["scale", "deploy/web"], "'scale' refuses: replicas must be a whole number"),
        (
            &["scale", "deploy/web", "--param", "replicas=some"],
            "'scale' refuses: replicas must be a whole number",
        ),
        (&["scale", "deploy/web", "--param", "size=3"], "'scale' has no parameter 'size'"),
        (&["restart", "namespace/shop"], "no rules define actions for Namespace"),
        (&["scale", "deploy/web", "--param", "replicas"], "NAME=VALUE"),
    ] {
        let answer = served.ask(&[&["action"], arguments].concat());
        assert_eq!(answer.code, 2, "{arguments:?}: {}{}", answer.stdout, answer.stderr);
        assert!(answer.stderr.contains(why), "{arguments:?}: {}", answer.stderr);
    }
    assert_eq!(served.clusters[0].resource_version(), before);
}

#[test]
fn writing_to_several_clusters_needs_confirmation() {
    let served = served(&["one", "two"]);
    let scale = ["action", "scale", "deploy/web", "-p", "replicas=0"];
    let answer = served.ask(&scale);
    assert_eq!(answer.code, 2, "{}", answer.stdout);
    assert!(answer.stderr.contains("this would scale in 2 clusters: one, two"), "{}", answer.stderr);
    let answer = served.ask(&[&scale[..], &["--yes"]].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(served.clusters.iter().all(|cluster| web(cluster)["spec"]["replicas"] == 0));
}

/// Makes a ConfigMap with actions for Deployments in a namespace.
pub(super) fn config_map(cluster: &Cluster, namespace: &str, name: &str, actions: &str) {
    cluster.apply(with_status_subresource(applications())).unwrap();
    cluster.apply(objects::namespace(namespace)).unwrap();
    cluster
        .apply(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name,
                "labels": {"app.kubernetes.io/name": "argocd-cm", "app.kubernetes.io/part-of": "argocd"}},
            "data": {"resource.customizations.actions.apps_Deployment": actions}}),
        )
        .unwrap();
}

/// Starts the controller of an Argo CD in a namespace, as whoever may write there can.
pub(super) fn controller(cluster: &Cluster, namespace: &str) {
    let labels = json!({"app.kubernetes.io/component": "application-controller"});
    cluster
        .apply(json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"namespace": namespace, "name": "controller", "labels": labels},
            "spec": {"serviceName": "controller", "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"serviceAccountName": "gitops", "containers": [{"name": "app", "image": "argocd:3"}]}}}}))
        .unwrap();
}

/// Gives it its rights, which only who rules the cluster can.
pub(super) fn binding(cluster: &Cluster, namespace: &str) {
    let group = "rbac.authorization.k8s.io";
    cluster
        .apply(
            json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "gitops"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}),
        )
        .unwrap();
    cluster
        .apply(json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "gitops"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "gitops"},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": "gitops"}]}))
        .unwrap();
}

/// Has the Argo CD of a namespace deliver the Deployment: an Application there lists it, and it carries the mark.
pub(super) fn delivered(cluster: &Cluster, namespace: &str) {
    cluster.apply(application(namespace, "shop")).unwrap();
    cluster.apply(marked("shop")).unwrap();
}

/// An Application that lists the Deployment.
pub(super) fn application(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}},
        "status": {"resources": [{"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop",
            "name": "web", "status": "Synced"}]}})
}

/// The Deployment as Argo CD marks it for an app.
pub(super) fn marked(app: &str) -> Value {
    let mut object = deployment();
    let id = format!("{app}:apps/Deployment:shop/web");
    object["metadata"]["annotations"] = json!({"argocd.argoproj.io/tracking-id": id});
    object
}

/// An action that does what a script of Lua says.
pub(super) fn action(script: &str) -> String {
    let script = script.replace('\n', "\n    ");
    format!(
        "discovery.lua: |\n  return {{ paint = {{}} }}\ndefinitions:\n- name: paint\n  action.lua: |\n    {script}\n"
    )
}

/// A served cluster with a known Argo CD that has this action.
fn painted(script: &str) -> Served {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    config_map(cluster, "gitops", "argocd-cm", &action(script));
    controller(cluster, "gitops");
    binding(cluster, "gitops");
    delivered(cluster, "gitops");
    served
}

pub(super) fn names(answer: &Answer) -> Vec<String> {
    let items = answer.json()["items"].as_array().unwrap().clone();
    let name =
        |item: &Value| format!("{} {}", item["name"].as_str().unwrap(), item["origin"].as_str().unwrap());
    items.iter().map(name).collect()
}

#[test]
fn only_the_actions_of_a_known_argo_cd_are_offered_and_none_takes_another_s_place() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    let discovery = "return { restart = { displayName = 'Restart it our way' } }";
    let folder = served.scripts(&[
        ("discovery.lua", discovery),
        ("restart/action.lua", "obj.metadata.labels = { restarted = 'yes' }\nreturn obj"),
    ]);
    let of_cluster = "\
discovery.lua: |
  return { restart = {}, paint = { params = { { name = 'colour', default = 'red' } } } }
definitions:
- name: paint
  action.lua: |
    obj.metadata.annotations = { colour = actionParams['colour'] }
    return obj
- name: restart
  action.lua: |
    obj.spec.replicas = 0
    return obj
";
    let ask = || served.ask(&["actions", "deploy/web", "-o", "json", "--rules", &folder]);
    let without = ["pause shipped", "restart user", "resume shipped", "scale shipped"];
    // A tenant makes all this in a namespace of its own.
    config_map(cluster, "tenant", "argocd-cm", of_cluster);
    config_map(cluster, "tenant", "mine", of_cluster);
    cluster.apply(application("tenant", "shop")).unwrap();
    controller(cluster, "tenant");
    let answer = ask();
    assert_eq!(names(&answer), without);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stderr.contains("the setting argocd: [tenant] confirms it"), "{}", answer.stderr);
    let answer = served.ask(&["action", "paint", "deploy/web", "--yes"]);
    assert_eq!(answer.code, 2, "{}", answer.stdout);

    // That of the cluster's people is labelled or not, and is known by its rights.
    config_map(cluster, "gitops", "argocd-cm", of_cluster);
    controller(cluster, "gitops");
    delivered(cluster, "gitops");
    assert_eq!(names(&ask()), without);
    binding(cluster, "gitops");
    let all = [&without[..], &["cluster/paint cluster", "cluster/restart cluster"]].concat();
    assert_eq!(names(&ask()), all);
    let answer = served.ask(&["action", "restart", "deploy/web", "--rules", &folder]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    assert_eq!(web(cluster)["metadata"]["labels"]["restarted"], "yes");
    let answer = served.ask(&["action", "restart", "deploy/web", "--dry-run=client"]);
    assert!(answer.stdout.contains("restartedAt"), "the shipped one: {}", answer.stdout);

    let paint = ["action", "cluster/paint", "deploy/web"];
    let before = cluster.resource_version();
    for form in [&[][..], &["-o", "json"]] {
        let answer = served.ask(&[&paint[..], form].concat());
        assert_eq!(answer.code, 2, "{}", answer.stdout);
        assert!(answer.stderr.contains("is a script of the cluster"), "{}", answer.stderr);
        assert!(answer.stderr.contains("--yes"), "{}", answer.stderr);
    }
    assert_eq!(cluster.resource_version(), before);
    let answer = served.ask(&[&paint[..], &["--yes"]].concat());
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    let first = answer.stdout.lines().next().unwrap();
    assert_eq!(first, "cluster/paint is a script of the cluster: ConfigMap gitops/argocd-cm in one");
    assert_eq!(web(cluster)["metadata"]["annotations"]["colour"], "red", "what it is told by default");
}

#[test]
fn cluster_actions_apply_only_to_objects_of_their_argo_cd() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    let paint = "obj.metadata.annotations['colour'] = 'red'\nreturn obj";
    config_map(cluster, "gitops", "argocd-cm", &action(paint));
    controller(cluster, "gitops");
    binding(cluster, "gitops");
    let ask = || served.ask(&["actions", "deploy/web", "-o", "json"]);
    let is_offered = || names(&ask()).contains(&"cluster/paint cluster".to_owned());
    let refused = |why: &str| {
        assert!(!is_offered(), "{why}");
        let before = cluster.resource_version();
        let answer = served.ask(&["action", "cluster/paint", "deploy/web", "--yes"]);
        assert_eq!(answer.code, 2, "{why}: {}{}", answer.stdout, answer.stderr);
        let says = "there is no action 'cluster/paint' for Deployment shop/web in one: the actions in ConfigMap \
            gitops/argocd-cm are only for objects that its Argo CD delivers";
        assert!(answer.stderr.contains(says), "{why}: {}", answer.stderr);
        assert!(answer.stderr.contains("argocd.argoproj.io/tracking-id"), "{why}: {}", answer.stderr);
        assert_eq!(cluster.resource_version(), before, "{why}");
    };
    refused("nothing says that it is delivered");
    cluster.apply(application("gitops", "shop")).unwrap();
    refused("it carries no mark");
    cluster.apply(marked("stage")).unwrap();
    refused("the mark names another Application");
    let mut lists_another = application("gitops", "stage");
    lists_another["status"]["resources"][0]["name"] = json!("api");
    cluster.apply(lists_another).unwrap();
    refused("the Application that the mark names lists something else");
    cluster.apply(namespace("tenant")).unwrap();
    cluster.apply(application("tenant", "web")).unwrap();
    cluster.apply(marked("tenant_web")).unwrap();
    refused("its Argo CD does not serve that namespace");
    let mut elsewhere = application("gitops", "far");
    elsewhere["spec"]["destination"]["server"] = json!("https://far.example.com");
    cluster.apply(elsewhere).unwrap();
    cluster.apply(marked("far")).unwrap();
    refused("the Application delivers to another cluster");

    cluster.apply(marked("shop")).unwrap();
    assert!(is_offered(), "{}", ask().stderr);
    let answer = served.ask(&["action", "cluster/paint", "deploy/web", "--yes"]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    assert_eq!(web(cluster)["metadata"]["annotations"]["colour"], "red");
    let mut labelled = deployment();
    labelled["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "shop"});
    cluster.apply(labelled).unwrap();
    assert!(is_offered(), "tracked by label: {}", ask().stderr);
    cluster
        .apply(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "gitops", "name": "argocd-cmd-params-cm"},
            "data": {"application.namespaces": "ten*"}}))
        .unwrap();
    cluster.apply(marked("tenant_web")).unwrap();
    assert!(is_offered(), "its Argo CD serves that namespace: {}", ask().stderr);
}

#[test]
fn cluster_scripts_create_only_harmless_objects_in_their_namespace() {
    let made = |resource: &str, arguments: &[&str]| {
        let served = painted(&format!("return {{ {{ operation = 'create', resource = {resource} }} }}"));
        let before = served.clusters[0].resource_version();
        let answer = served.ask(&[&["action", "cluster/paint", "deploy/web", "--yes"], arguments].concat());
        let is_written = served.clusters[0].resource_version() != before;
        assert_eq!(is_written, answer.code == 0, "{}", answer.stderr);
        answer
    };
    let map = |namespace: &str| {
        format!(
            "{{ apiVersion = 'v1', kind = 'ConfigMap', metadata = {{ name = 'a', namespace = '{namespace}' }} }}"
        )
    };
    let answer = made(&map("shop"), &[]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let answer = made(&map("kube-system"), &[]);
    assert!(answer.stderr.contains("only objects in the namespace of the object"), "{}", answer.stderr);
    let answer = made("{ apiVersion = 'v1', kind = 'Namespace', metadata = { name = 'a' } }", &[]);
    assert!(answer.stderr.contains("only objects in the namespace of the object"), "{}", answer.stderr);
    let secret = "{ apiVersion = 'v1', kind = 'ServiceAccount', metadata = { name = 'a' } }";
    let answer = made(secret, &[]);
    assert!(answer.stderr.contains("--allow-create ServiceAccount"), "{}", answer.stderr);
    let answer = made(secret, &["--allow-create", "Secret"]);
    assert_eq!(answer.code, 3, "{}", answer.stdout);
    let answer = made(secret, &["--allow-create", "serviceaccount"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let other = "{ apiVersion = 'v1', kind = 'ConfigMap', metadata = { name = 'a', namespace = 'shop' } }";
    let served = painted(&format!("return {{ {{ operation = 'patch', resource = {other} }} }}"));
    let answer = served.ask(&["action", "cluster/paint", "deploy/web", "--yes"]);
    assert!(answer.stderr.contains("would change ConfigMap shop/a"), "{}", answer.stderr);
}

const TWO: &str = "return {
  { operation = 'create', resource = { apiVersion = 'v1', kind = 'ConfigMap', metadata = { name = 'a' } } },
  { operation = 'create', resource = { apiVersion = 'v1', kind = 'ConfigMap', metadata = { name = 'b' } } },
}";

#[test]
fn refused_step_prevents_all_writes() {
    let served = painted(TWO);
    let cluster = &served.clusters[0];
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "shop"}});
    cluster.apply(map).unwrap();
    let answer = served.ask(&["action", "cluster/paint", "deploy/web", "--yes"]);
    assert_eq!(answer.code, 3, "{}", answer.stdout);
    assert!(cluster.get("v1", "ConfigMap", "shop", "a").is_none(), "{}", answer.stdout);
    assert!(!answer.stdout.contains("written before"), "{}", answer.stdout);
}

#[test]
fn writes_before_a_failed_step_are_listed() {
    // Either would be taken where nothing is there yet.
    let served = painted(&TWO.replace("'b'", "'a'"));
    let cluster = &served.clusters[0];
    let answer = served.ask(&["action", "cluster/paint", "deploy/web", "--yes"]);
    assert_eq!(answer.code, 3, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stdout.contains("partly written: created ConfigMap shop/a"), "{}", answer.stdout);
    assert!(cluster.get("v1", "ConfigMap", "shop", "a").is_some());
}

#[test]
fn failing_script_hides_only_its_own_actions() {
    let served = served(&["one"]);
    let folder = served.scripts(&[("discovery.lua", "return nothing.there")]);
    let answer = served.ask(&["actions", "deploy/web", "--rules", &folder]);
    assert_eq!(answer.code, 3, "{}", answer.stdout);
    assert!(answer.stdout.contains("restart   shipped"), "{}", answer.stdout);
    assert!(answer.stderr.contains("apps/Deployment/actions/discovery.lua:1"), "{}", answer.stderr);
    let list = served.ask(&["actions", "deploy/web", "--rules", &folder, "-o", "json"]).json();
    let error = &list["errors"][0];
    assert_eq!(
        (&error["cluster"], &error["scope"], &error["reason"]),
        (&json!("one"), &json!("apps/Deployment/shop/web"), &json!("ScriptFailed"))
    );
    assert!(error["message"].as_str().unwrap().contains("discovery.lua:1"), "{error}");
    let answer = served.ask(&["action", "restart", "deploy/web", "--rules", &folder, "--dry-run"]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    let answer = served.ask(&["action", "paint", "deploy/web", "--rules", &folder, "--dry-run"]);
    assert_eq!(answer.code, 3, "nobody knows what it would have offered: {}", answer.stderr);

    let other = "return { { operation = 'patch', resource = { apiVersion = 'v1', kind = 'Node', metadata = { name = 'a' } } } }";
    let folder =
        served.scripts(&[("discovery.lua", "return { restart = {} }"), ("restart/action.lua", other)]);
    let answer = served.ask(&["action", "restart", "deploy/web", "--rules", &folder]);
    assert_eq!(answer.code, 3, "{}", answer.stdout);
    assert!(answer.stderr.contains("would change Node a"), "{}", answer.stderr);
}

#[test]
fn forbidden_action_is_reported() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    let alice = cluster.add_user("alice", &[]);
    let group = "rbac.authorization.k8s.io";
    cluster
        .apply(
            json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "look"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]}),
        )
        .unwrap();
    cluster
        .apply(json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "look"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "look"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}]}))
        .unwrap();
    let file = served.folder.path().join("alice");
    fs::write(&file, cluster.kubeconfig_for(&alice)).unwrap();
    let own = ["-n", "shop", "--kubeconfig", file.to_str().unwrap()];
    let answer = taffrail(&[&["action", "restart", "deploy/web"][..], &own].concat(), "");
    assert_eq!(answer.code, 3, "{}", answer.stdout);
    assert!(answer.stderr.contains("cannot restart Deployment shop/web"), "{}", answer.stderr);
    assert!(answer.stderr.contains("allows `patch`"), "{}", answer.stderr);
    let answer = taffrail(&[&["action", "create-job", "cronjob/night"][..], &own].concat(), "");
    assert_eq!(answer.code, 3, "{}", answer.stdout);
    assert!(answer.stderr.contains("allows `create`"), "{}", answer.stderr);
}

/// Scales while a change comes between what was read and what is written.
fn meanwhile(served: &Served, change: impl FnOnce(&Cluster)) -> Answer {
    let cluster = &served.clusters[0];
    // Long enough to write what makes the request one of the past.
    cluster.fault(Fault::new(Trouble::Latency(Duration::from_secs(2))).verb("patch").times(1));
    let arguments = [
        "action",
        "scale",
        "deploy/web",
        "-p",
        "replicas=5",
        "-n",
        "shop",
        "--kubeconfig",
        &served.kubeconfig,
    ];
    let mut child = command(&arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut stdout = String::new();
    // What is going to be written is told before it is written.
    lines.read_line(&mut stdout).unwrap();
    change(cluster);
    lines.read_to_string(&mut stdout).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Answer { stdout, stderr, code: output.status.code().unwrap() }
}

#[test]
fn concurrent_changes_are_not_overwritten() {
    let served = served(&["one"]);
    let answer = meanwhile(&served, |cluster| {
        let mut object = web(cluster);
        object["metadata"]["labels"] = json!({"team": "web"});
        cluster.apply(object).unwrap();
    });
    assert_eq!(answer.code, 0, "what does not matter: {}{}", answer.stdout, answer.stderr);
    assert_eq!(web(&served.clusters[0])["spec"]["replicas"], 5);
    assert_eq!(web(&served.clusters[0])["metadata"]["labels"]["team"], "web");

    let served = self::served(&["one"]);
    let answer = meanwhile(&served, |cluster| {
        let mut object = web(cluster);
        object["spec"]["replicas"] = json!(9);
        cluster.apply(object).unwrap();
    });
    assert_eq!(answer.code, 3, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stderr.contains("Deployment shop/web was changed meanwhile"), "{}", answer.stderr);
    assert_eq!(web(&served.clusters[0])["spec"]["replicas"], 9);
}

#[test]
fn a_dump_shows_what_would_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.yaml");
    fs::write(&file, deployment().to_string()).unwrap();
    let from = ["--from", file.to_str().unwrap()];
    let answer = taffrail(&[&["actions", "deploy/web", "-o", "name"][..], &from].concat(), "");
    assert_eq!(answer.stdout, "pause\nrestart\nresume\nscale\n", "{}", answer.stderr);
    let answer = taffrail(&[&["action", "pause", "deploy/web"][..], &from].concat(), "");
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("the objects of a dump (--from) cannot be changed"), "{}", answer.stderr);
    let answer = taffrail(&[&["action", "pause", "deploy/web", "--dry-run=client"][..], &from].concat(), "");
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_shown(
        &answer.stdout,
        str![[r#"
Deployment shop/web in one
  spec:
+   paused: true
nothing was sent (dry run)

"#]],
    );
}

#[test]
fn documents_name_clusters_that_cannot_be_read() {
    let served = served(&["one", "two"]);
    served.runtime.block_on(async { served.clusters[1].trouble(Trouble::Unreachable) });
    for question in [&["actions", "deploy/web"][..], &["action", "pause", "deploy/web", "--dry-run=client"]] {
        let answer = served.ask(&[question, &["-o", "json"]].concat());
        let told = answer.json();
        assert_eq!((answer.code, &told["items"][0]["cluster"]), (3, &json!("one")), "{told}");
        let error = &told["errors"][0];
        assert_eq!((&error["cluster"], &error["scope"]), (&json!("two"), &json!("cluster")), "{told}");
    }
}

/// Answers for programs.
pub(super) fn samples() -> Vec<Answer> {
    let served = served(&["one"]);
    let odd = "return { restart = { params = { { name = 'how', value = 'a', type = 'string', default = 'b' } }, \
        displayName = 'x', iconClass = 'y' } }";
    let folder = served.scripts(&[("discovery.lua", odd), ("restart/action.lua", "return obj")]);
    vec![
        served.ask(&["actions", "deploy/web", "-o", "json", "--rules", &folder]),
        served.ask(&["action", "create-job", "cronjob/night", "-o", "json"]),
        served.ask(&["action", "pause", "deploy/web", "--dry-run=server", "-o", "json"]),
        served.ask(&["action", "resume", "deploy/web", "-o", "json"]),
    ]
}

#[test]
fn programs_are_told_in_one_document() {
    let served = served(&["one"]);
    let told = served.ask(&["action", "pause", "deploy/web", "-o", "json"]).json();
    assert_eq!(
        (&told["kind"], &told["action"], &told["dryRun"]),
        (&json!("ActionRun"), &json!("pause"), &json!("none"))
    );
    let item = &told["items"][0];
    assert_eq!(
        (&item["result"], &item["origin"], &item["cluster"]),
        (&json!("Done"), &json!("shipped"), &json!("one"))
    );
    let change = &item["changes"][0];
    assert_eq!(
        (&change["operation"], &change["body"]),
        (&json!("patch"), &json!({"spec": {"paused": true}}))
    );
    assert_eq!(change["written"], true);
    let answer = served.ask(&["action", "pause", "deploy/web", "-o", "json"]);
    assert_eq!(answer.code, 2, "{}", answer.stdout);
    let item = &answer.json()["items"][0];
    assert_eq!(item["result"], "Refused");
    assert!(item["hint"].as_str().is_some_and(|hint| hint.contains("resume")), "{item}");
}

#[test]
fn object_in_several_namespaces_needs_confirmation() {
    let served = served(&["one"]);
    let mut other = deployment();
    other["metadata"]["namespace"] = json!("docs");
    served.clusters[0].apply(namespace("docs")).unwrap();
    served.clusters[0].apply(other).unwrap();
    let ask = |arguments: &[&str]| {
        let all = [arguments, &["-A", "--kubeconfig", &served.kubeconfig, "--timeout", "30s"]];
        taffrail(&all.concat(), "")
    };
    let list = ask(&["actions", "deploy/web", "-o", "json"]).json();
    let of = |name: &str| {
        let items = list["items"].as_array().unwrap().iter().filter(|item| item["name"] == name);
        items.map(|item| item["object"]["namespace"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of("restart"), ["docs", "shop"]);
    let refused = ask(&["action", "pause", "deploy/web"]);
    assert_eq!(refused.code, 2, "{}", refused.stdout);
    assert!(
        refused.stderr.contains("pause 2 objects: docs/web in one, shop/web in one"),
        "{}",
        refused.stderr
    );
    let done = ask(&["action", "pause", "deploy/web", "--yes", "-o", "json"]).json();
    let results = done["items"].as_array().unwrap().iter().map(|item| item["result"].as_str().unwrap());
    assert_eq!(results.collect::<Vec<_>>(), ["Done", "Done"]);
    // What is in one namespace only is asked about no more than without.
    let night = ask(&["action", "suspend", "cronjob/night", "-o", "json"]).json();
    assert_eq!(night["items"][0]["object"]["namespace"], "shop");
}
