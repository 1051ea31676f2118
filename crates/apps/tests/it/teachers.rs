//! Health rules in the cluster, and the trust that they get.

use std::collections::BTreeSet;
use std::sync::Mutex;

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_api::TrustReport;
use taffrail_apps::trust::TrustShape;
use taffrail_apps::{App, Objects, ReadQuery, apps};
use taffrail_object::Object;
use taffrail_status::assess::Options;
use taffrail_status::{
    ActiveRules, ClusterRules, ComputeError, ObjectContext, Payer, Rules, Status, Taffrail, Teacher,
    TeachingTime, Trust, Verdict, Voice,
};

use super::dump::{NOW, holding};
use super::reads::object;
use super::server::Server;

/// Rules that record who would teach them.
#[derive(Default)]
struct Listening {
    heard: Mutex<Vec<(String, Voice, Payer)>>,
}

impl ClusterRules for Listening {
    fn with_cluster_rules<'r>(
        &'r self,
        teachers: &[Teacher<'_>],
        _: &'r TeachingTime,
    ) -> Option<Box<dyn Rules + 'r>> {
        let name = |teacher: &Teacher<'_>| {
            let object = &teacher.object;
            format!("{} {}/{}", teacher.home, object.namespace(), object.name())
        };
        let settings = teachers.iter().filter(|teacher| teacher.object.kind() != "Application");
        let heard = settings.map(|teacher| (name(teacher), teacher.voice, teacher.payer));
        self.heard.lock().unwrap().extend(heard);
        None
    }
}

/// The rules of this project, and those of clusters as `cluster_rules` read them.
fn with<'r>(cluster_rules: &'r dyn ClusterRules, options: &'r Options) -> ActiveRules<'r> {
    ActiveRules { cluster_rules: Some(cluster_rules), options, ..ActiveRules::default() }
}

fn trusting(trust: Trust) -> Options {
    Options { trust, ..Options::default() }
}

/// Returns the teachers and their trust in clusters with these objects.
fn heard(clusters: &[&dyn Objects], trust: Trust) -> Vec<(String, Voice, Payer)> {
    let rules = Listening::default();
    apps(clusters, &with(&rules, &trusting(trust)), NOW);
    rules.heard.into_inner().unwrap()
}

fn application(namespace: &str, controller: Option<&str>) -> Value {
    let mut app = object("argoproj.io/v1alpha1", "Application", namespace, "shop");
    app["spec"] = json!({"destination": {"server": "https://kubernetes.default.svc"}});
    app["status"] = json!({"controllerNamespace": controller});
    app
}

fn argocd_cm(namespace: &str) -> Value {
    let mut map = object("v1", "ConfigMap", namespace, "argocd-cm");
    map["data"] = json!({"resource.customizations.health.apps_Deployment": "return {status = 'Healthy'}"});
    map
}

pub(crate) fn controller(namespace: &str) -> Value {
    let mut workload = object("apps/v1", "StatefulSet", namespace, "gitops-controller");
    workload["metadata"]["labels"] = json!({"app.kubernetes.io/component": "application-controller"});
    workload["spec"] = json!({"template": {"spec": {"serviceAccountName": "gitops"}}});
    workload
}

pub(crate) fn binding(namespace: &str, account: &str) -> Value {
    let mut binding = object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "gitops");
    binding["roleRef"] =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gitops"});
    binding["subjects"] = json!([
        {"kind": "Group", "name": "admins", "apiGroup": "rbac.authorization.k8s.io"},
        {"kind": "ServiceAccount", "namespace": namespace, "name": account},
    ]);
    binding
}

/// The role of such a binding.
pub(crate) fn role(groups: &str, verbs: &[&str]) -> Value {
    let mut role = object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "gitops");
    role["rules"] = json!([{"apiGroups": [groups], "resources": ["*"], "verbs": verbs}]);
    role
}

fn of(objects: &[Value], trust: Trust) -> Vec<(String, Voice, Payer)> {
    heard(&[&holding("hub", objects)], trust)
}

#[test]
fn an_argo_cd_is_known_by_the_binding_of_its_controller_or_by_the_settings() {
    let known = vec![("hub argocd/argocd-cm".to_owned(), Voice::Full, Payer::Object)];
    let seen = vec![("hub argocd/argocd-cm".to_owned(), Voice::OnlyWorse, Payer::Teacher)];
    let mut objects = vec![application("argocd", None), argocd_cm("argocd")];
    assert_eq!(of(&objects, Trust::default()), [], "a ConfigMap alone proves nothing");
    let argocd = |name: &str| Trust { argocd: vec![name.to_owned()], homes: Vec::new() };
    assert_eq!(of(&objects, argocd("argocd")), known);
    assert_eq!(of(&objects, argocd("hub/argocd")), known);
    assert_eq!(of(&objects, argocd("other/argocd")), []);

    objects.push(controller("argocd"));
    assert_eq!(of(&objects, Trust::default()), seen, "anybody can start a workload");
    for (namespace, account) in [("argocd", "default"), ("other", "gitops")] {
        let bound = [&objects[..], &[binding(namespace, account), role("*", &["*"])]].concat();
        assert_eq!(of(&bound, Trust::default()), seen, "{namespace} {account}");
    }
    // Every Pod of a namespace may run as this.
    let mut as_default = controller("argocd");
    as_default["spec"]["template"]["spec"]["serviceAccountName"] = json!("default");
    let bound = [&objects[..2], &[as_default, binding("argocd", "default"), role("*", &["*"])]].concat();
    assert_eq!(of(&bound, Trust::default()), seen);
    objects.push(binding("argocd", "gitops"));
    assert_eq!(of(&objects, Trust::default()), seen, "what the role allows is not known");
    // Many a workload of a tenant may read all of the cluster, or rules a kind of its own.
    for few in [role("*", &["get", "list", "watch"]), role("example.com", &["*"])] {
        assert_eq!(of(&[&objects[..], &[few]].concat(), Trust::default()), seen);
    }
    for much in [role("*", &["*"]), role("*", &["get", "patch"])] {
        assert_eq!(of(&[&objects[..], &[much]].concat(), Trust::default()), known);
    }
}

#[test]
fn only_the_config_map_argocd_cm_teaches() {
    let mut other = argocd_cm("argocd");
    other["metadata"]["name"] = json!("mine");
    other["metadata"]["labels"] = json!({"app.kubernetes.io/name": "argocd-cm"});
    let objects = [
        application("argocd", None),
        other,
        controller("argocd"),
        binding("argocd", "gitops"),
        role("*", &["*"]),
    ];
    assert_eq!(of(&objects, Trust::default()), []);
}

#[test]
fn a_controller_namespace_counts_only_if_its_argo_cd_serves_the_application() {
    let listing = |namespaces: &str| {
        let mut map = object("v1", "ConfigMap", "argocd", "argocd-cmd-params-cm");
        map["data"] = json!({"application.namespaces": namespaces});
        map
    };
    let of_argo = [argocd_cm("argocd"), controller("argocd"), binding("argocd", "gitops"), role("*", &["*"])];
    let of_team = |more: &[Value]| {
        let app = [application("team-a", Some("argocd"))];
        of(&[&app[..], &of_argo, more].concat(), Trust::default())
    };
    assert_eq!(of_team(&[]), []);
    assert_eq!(of_team(&[listing("team-b, other-*")]), []);
    let known = [("hub argocd/argocd-cm".to_owned(), Voice::Full, Payer::Object)];
    assert_eq!(of_team(&[listing("other, team-*")]), known);
    // The tenant's own, of whatever name, is heard for its own namespace alone.
    let own = [argocd_cm("tenant"), controller("tenant")];
    let seen = [("hub tenant/argocd-cm".to_owned(), Voice::OnlyWorse, Payer::Teacher)];
    assert_eq!(of(&[&[application("tenant", None)][..], &own].concat(), Trust::default()), seen);
    let elsewhere = [application("shop", Some("tenant"))];
    assert_eq!(of(&[&elsewhere[..], &own].concat(), Trust::default()), []);
}

#[test]
fn a_home_makes_objects_of_another_cluster_only_worse_unless_it_is_trusted() {
    let mut app = application("argocd", None);
    app["spec"]["destination"] = json!({"server": "https://prod.example.com"});
    let objects =
        [app, argocd_cm("argocd"), controller("argocd"), binding("argocd", "gitops"), role("*", &["*"])];
    let hub = holding("hub", &objects);
    let mut prod = holding("prod", &[]);
    prod.add_server("https://prod.example.com");
    let heard = |homes: &[&str]| {
        let homes = homes.iter().map(|home| (*home).to_owned()).collect();
        heard(&[&hub, &prod], Trust { argocd: Vec::new(), homes })
    };
    let name = || "hub argocd/argocd-cm".to_owned();
    assert_eq!(heard(&[]), [(name(), Voice::OnlyWorse, Payer::Teacher)]);
    assert_eq!(heard(&["prod"]), [(name(), Voice::OnlyWorse, Payer::Teacher)]);
    assert_eq!(heard(&["hub"]), [(name(), Voice::Full, Payer::Object)]);
}

#[test]
fn bindings_are_read_and_required_only_with_health_scripts() {
    let with_scripts = || {
        let objects = vec![
            application("argocd", None),
            argocd_cm("argocd"),
            controller("argocd"),
            binding("argocd", "gitops"),
            role("*", &["*"]),
        ];
        Server::new(objects)
    };
    let (live, log) = with_scripts().read("hub", &ReadQuery { label_groups: false, ..ReadQuery::default() });
    assert_eq!(
        heard(&[&live], Trust::default()),
        [("hub argocd/argocd-cm".to_owned(), Voice::Full, Payer::Object)]
    );
    assert!(log.0.len() <= 4, "{:?}", log.paths());
    log.assert_no_repetition();

    let mut without = with_scripts();
    without.objects.retain(|object| object["metadata"]["name"] != "argocd-cm");
    let (_, log) = without.read("hub", &ReadQuery { label_groups: false, ..ReadQuery::default() });
    assert!(
        !log.all().any(|read| matches!(&*read.kind, "ClusterRoleBinding" | "StatefulSet")),
        "{:?}",
        log.paths()
    );

    let mut refused = with_scripts();
    refused.forbidden.push("rbac.authorization.k8s.io/ClusterRoleBinding");
    let (live, _) = refused.read("hub", &ReadQuery::default());
    assert_eq!(heard(&[&live], Trust::default())[0].1, Voice::OnlyWorse);
    assert_eq!(live.errors(), [], "nobody asked for them");

    let mut refused = with_scripts();
    refused.forbidden.push("rbac.authorization.k8s.io/ClusterRole");
    let (live, _) = refused.read("hub", &ReadQuery::default());
    assert_eq!(heard(&[&live], Trust::default())[0].1, Voice::OnlyWorse);
    assert_eq!(live.errors(), [], "nobody asked for them either");
}

/// An app that declares a ClusterRole has the kind listed by metadata, which does not show what roles allow.
#[test]
fn an_argo_cd_is_known_even_if_an_app_declares_cluster_roles() {
    let mut declaring = application("team", None);
    declaring["status"]["resources"] = json!([
        {"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": "none"},
        {"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRoleBinding", "name": "none"},
    ]);
    let server = Server::new(vec![
        application("argocd", None),
        argocd_cm("argocd"),
        controller("argocd"),
        binding("argocd", "gitops"),
        role("*", &["*"]),
        declaring,
    ]);
    let (live, log) = server.read("hub", &ReadQuery { label_groups: false, ..ReadQuery::default() });
    let known = ("hub argocd/argocd-cm".to_owned(), Voice::Full, Payer::Object);
    assert!(heard(&[&live], Trust::default()).contains(&known), "{:?}", log.paths());
    // That part of a kind was read again takes away nothing of what is known of all of it.
    let clusters: [&dyn Objects; 1] = [&live];
    let list = apps(&clusters, &ActiveRules::default(), NOW);
    let team = list.apps.iter().find(|app| app.app.namespace == "team").expect("the app that declares roles");
    assert!(team.resources.iter().all(|resource| resource.status == Status::NotFound), "{team:?}");
}

/// The controller namespaces that the Applications of one tenant name do not displace those that others name.
#[test]
fn controller_namespaces_are_limited_per_tenant() {
    let mut parameters = object("v1", "ConfigMap", "argocd", "argocd-cmd-params-cm");
    parameters["data"] = json!({"application.namespaces": "team-*"});
    let mut objects = vec![
        application("team-b", Some("argocd")),
        argocd_cm("argocd"),
        parameters,
        controller("argocd"),
        binding("argocd", "gitops"),
        role("*", &["*"]),
    ];
    for number in 0..30 {
        let mut app = application("team-a", Some(&format!("a{number:02}")));
        app["metadata"]["name"] = json!(format!("app-{number}"));
        objects.push(app);
    }
    let (live, _) =
        Server::new(objects).read("hub", &ReadQuery { label_groups: false, ..ReadQuery::default() });
    assert_eq!(
        heard(&[&live], Trust::default()),
        [("hub argocd/argocd-cm".to_owned(), Voice::Full, Payer::Object)]
    );
}

#[test]
fn trust_names_the_setting_that_would_enable_scripts() {
    let said = |clusters: &[&dyn Objects]| -> Vec<String> {
        let list = apps(clusters, &ActiveRules::default(), NOW);
        let asked: Vec<&App> = list.apps.iter().collect();
        let report = TrustReport::new(&asked, &list, clusters, NOW, TrustShape::default());
        let unheard = report.items.into_iter().filter(|doubt| doubt.reason == "RulesUnheard");
        unheard
            .map(|doubt| format!("{} {} {}", doubt.severity.as_str(), doubt.scope, doubt.message))
            .collect()
    };
    let mut objects = vec![application("gitops", None), argocd_cm("gitops")];
    let told = said(&[&holding("hub", &objects)]);
    assert!(told[0].contains("gitops/argocd-cm"), "{told:?}");
    assert!(told[0].contains("are ignored") && told[0].contains("argocd: [gitops]"), "{told:?}");
    objects.push(controller("gitops"));
    let told = said(&[&holding("hub", &objects)]);
    assert!(told[0].contains("never better") && told[0].contains("argocd: [gitops]"), "{told:?}");
    objects.extend([binding("gitops", "gitops"), role("*", &["*"])]);
    assert!(said(&[&holding("hub", &objects)]).is_empty());

    objects[0]["spec"]["destination"] = json!({"server": "https://prod.example.com"});
    let mut prod = holding("prod", &[]);
    prod.add_server("https://prod.example.com");
    let told = said(&[&holding("hub", &objects), &prod]);
    assert!(told[0].contains("trusted-homes: [hub]"), "{told:?}");
}

/// Rules by which a teacher's first expression decides the status of each Deployment, within its trust.
struct Obeying;

struct Taught {
    voice: Voice,
    status: Status,
}

impl ClusterRules for Obeying {
    fn with_cluster_rules<'r>(
        &'r self,
        teachers: &[Teacher<'_>],
        _: &'r TeachingTime,
    ) -> Option<Box<dyn Rules + 'r>> {
        let says = |teacher: &Teacher<'_>| {
            let said = teacher.object.at(&["spec", "healthCheckExprs"])?.items()?.next()?;
            let is_ready = said.get("current")?.is_str("true");
            let status = if is_ready { Status::Current } else { Status::Failed };
            Some(Taught { voice: teacher.voice, status })
        };
        teachers.iter().find_map(says).map(|taught| Box::new(taught) as Box<dyn Rules>)
    }
}

impl Rules for Taught {
    fn judge(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        let verdict = Taffrail.judge(object, context, now)?;
        let is_heard = self.voice == Voice::Full || self.status < verdict.status;
        if object.kind() != "Deployment" || !is_heard {
            return Ok(verdict);
        }
        Ok(Verdict::new(self.status, "as taught", "cluster/taught"))
    }
}

fn deployment(namespace: &str, is_well: bool, marks: Value) -> Value {
    let mut web = object("apps/v1", "Deployment", namespace, "web");
    web["metadata"]["generation"] = json!(1);
    for (place, marks) in marks.as_object().unwrap() {
        web["metadata"][place] = marks.clone();
    }
    web["spec"] = json!({"replicas": 1, "selector": {"matchLabels": {"app": "web"}}});
    let (number, progress) = if is_well { (1, "True") } else { (0, "False") };
    let reason = if is_well { "NewReplicaSetAvailable" } else { "ProgressDeadlineExceeded" };
    web["status"] = json!({
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": number, "availableReplicas": number,
        "conditions": [
            {"type": "Available", "status": progress},
            {"type": "Progressing", "status": progress, "reason": reason},
        ],
    });
    web
}

/// Returns an object of Flux that lists the Deployment `web` of another namespace and has a health
/// expression.
fn of_flux(kind: &str, namespace: &str, target: &str, current: Option<&str>) -> Value {
    let group = if kind == "HelmRelease" { "helm" } else { "kustomize" };
    let version = if kind == "HelmRelease" { "v2" } else { "v1" };
    let mut app =
        object(&format!("{group}.toolkit.fluxcd.io/{version}"), kind, namespace, &format!("of-{namespace}"));
    app["spec"] = json!({"releaseName": "web", "targetNamespace": target});
    if let Some(current) = current {
        app["spec"]["healthCheckExprs"] =
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "current": current}]);
    }
    app["status"] = json!({
        "inventory": {"entries": [{"id": format!("{target}_web_apps_Deployment"), "v": "v1"}]},
        "history": [{"name": "web", "namespace": target, "status": "deployed", "version": 1}],
        "conditions": [{"type": "Ready", "status": "True"}],
    });
    app
}

fn status_of_web(objects: &[Value], namespace: &str) -> Status {
    let list = apps(&[&holding("prod", objects)], &with(&Obeying, &Options::default()), NOW);
    let row = list.apps.iter().find(|row| row.app.namespace == namespace).unwrap();
    row.resources[0].status
}

#[test]
fn rules_of_an_app_improve_only_objects_beside_it_or_with_its_mark() {
    let label = |tool: &str| {
        let key = |what: &str| format!("{tool}.toolkit.fluxcd.io/{what}");
        json!({"labels": {key("namespace"): "tenant", key("name"): "of-tenant"}})
    };
    let release = json!({"annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"}});
    for (kind, target, marks, expected) in [
        ("Kustomization", "shop", json!({}), Status::Failed),
        ("Kustomization", "shop", label("kustomize"), Status::Current),
        ("Kustomization", "tenant", json!({}), Status::Current),
        ("HelmRelease", "shop", json!({}), Status::Failed),
        // Whoever writes a HelmRelease chooses the name of the release.
        ("HelmRelease", "shop", release, Status::Failed),
        ("HelmRelease", "shop", label("helm"), Status::Current),
        ("HelmRelease", "tenant", json!({}), Status::Current),
    ] {
        let words = format!("{kind} {target} {marks}");
        let objects = [of_flux(kind, "tenant", target, Some("true")), deployment(target, false, marks)];
        assert_eq!(status_of_web(&objects, "tenant"), expected, "{words}");
    }
}

#[test]
fn rules_of_an_app_affect_only_its_own_row() {
    let both = |current| {
        [
            of_flux("Kustomization", "tenant", "shop", current),
            of_flux("Kustomization", "shop", "shop", None),
            deployment("shop", true, json!({})),
        ]
    };
    assert_eq!(status_of_web(&both(Some("false")), "tenant"), Status::Failed);
    assert_eq!(status_of_web(&both(Some("false")), "shop"), Status::Current);
}

/// Rules that count how often Argo CD's settings judge an object, and who pays.
#[derive(Default)]
struct Counting {
    judged: Mutex<usize>,
    payers: Mutex<BTreeSet<String>>,
}

struct Counted<'c>(&'c Counting);

impl Rules for Counted<'_> {
    fn judge(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        *self.0.judged.lock().unwrap() += 1;
        Taffrail.judge(object, context, now)
    }
}

impl ClusterRules for Counting {
    fn with_cluster_rules<'r>(
        &'r self,
        teachers: &[Teacher<'_>],
        _: &'r TeachingTime,
    ) -> Option<Box<dyn Rules + 'r>> {
        let settings = teachers.iter().find(|teacher| teacher.object.kind() == "ConfigMap")?;
        let payer = format!("{:?} {}", settings.payer, settings.claimant);
        self.payers.lock().unwrap().insert(payer);
        Some(Box::new(Counted(self)))
    }
}

#[test]
fn an_object_listed_by_many_applications_is_judged_once_at_their_cost() {
    let judged = |tenants: usize| {
        let web = json!({"group": "", "kind": "ConfigMap", "namespace": "shop", "name": "web"});
        let listing = |namespace: &str, name: &str| {
            let mut app = application(namespace, Some("argocd"));
            app["metadata"]["name"] = json!(name);
            app["status"]["resources"] = json!([web]);
            app
        };
        let mut marked = object("v1", "ConfigMap", "shop", "web");
        marked["metadata"]["annotations"] =
            json!({"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:shop/web"});
        let mut parameters = object("v1", "ConfigMap", "argocd", "argocd-cmd-params-cm");
        parameters["data"] = json!({"application.namespaces": "*"});
        let mut objects = vec![marked, parameters, argocd_cm("argocd"), listing("argocd", "shop")];
        objects.extend((0..tenants).map(|number| listing("aaa", &format!("x{number}"))));
        let trust = Trust { argocd: vec!["argocd".to_owned()], homes: Vec::new() };
        let rules = Counting::default();
        let list = apps(&[&holding("hub", &objects)], &with(&rules, &trusting(trust)), NOW);
        assert_eq!(list.apps.iter().filter(|app| app.resources.len() == 1).count(), tenants + 1);
        (rules.judged.into_inner().unwrap(), rules.payers.into_inner().unwrap())
    };
    let (once, payers) = judged(1);
    assert!(payers.contains("Claimant aaa"), "{payers:?}");
    assert_eq!(judged(30).0, once);
}
