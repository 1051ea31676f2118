//! Tests of the context of an object: its children, and the health rules that its cluster contains.

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_object::Object;
use taffrail_rules::cel::HealthChecks;
use taffrail_rules::lua::Customizations;
use taffrail_rules::{Layer, Origin, RuleSet};
use taffrail_status::assess::Costs;
use taffrail_status::{
    ClusterRules, ObjectContext, Payer, Rules, Status, Teacher, TeachingTime, Verdict, Voice,
};

use crate::scripts::{read, reading};

const CREATED: &str = "2026-01-01T00:00:00Z";

fn judge(rules: &dyn Rules, object: &Value, context: &ObjectContext<'_>, now: &str) -> Verdict {
    let object = Object::new(object.into()).unwrap();
    rules.judge(&object, context, now.parse::<Timestamp>().unwrap()).unwrap()
}

/// Returns a teacher with a full voice in its own cluster.
fn of(teacher: &Value) -> Teacher<'_> {
    Teacher::of_cluster("hub", Object::new(teacher.into()).unwrap())
}

fn argocd_cm(script: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "argocd"},
        "data": {"resource.customizations.health.example.com_Pool": script}})
}

fn pool() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Pool", "spec": {"size": 2},
        "metadata": {"name": "a", "creationTimestamp": CREATED}, "status": {"phase": "Whatever"},
    })
}

fn member(name: &str, ready: &str) -> Value {
    json!({"kind": "Member", "metadata": {"name": name, "generation": 7}, "status": {
        "role": if name == "m0" { "primary" } else { "replica" },
        "conditions": [{"type": "Ready", "status": ready, "reason": "Full", "observedGeneration": 1}],
    }})
}

#[test]
fn rules_read_children() {
    let text = "
group: example.com
source: https://example.com/pools
kinds:
  Pool:
    rules:
    - {status: Failed, some: 'children[*]', that: [{condition: Ready, is: 'False', observed: true}], message: '{@.metadata.name}: {reason}'}
    - {status: Current, count: {in: 'children[*]', that: [{condition: Ready, is: 'True'}], atLeast: spec.size}}
    - {status: InProgress, message: 'too few members'}
";
    let layer = Layer::read(Origin::User, [("rules.yaml", text)]);
    let rules = RuleSet::bare().with(layer.unwrap());
    assert!(rules.reads_children("example.com", "Pool") && !rules.reads_children("example.com", "Door"));
    for (children, status, message) in [
        (vec![member("m0", "True"), member("m1", "True")], Status::Current, ""),
        (vec![member("m0", "True"), member("m1", "False")], Status::Failed, "m1: Full"),
        (vec![member("m0", "True")], Status::InProgress, "too few members"),
        (vec![], Status::InProgress, "too few members"),
    ] {
        let tell = || children.clone();
        let context = ObjectContext { children: Some(&tell), ..ObjectContext::default() };
        let verdict = judge(&rules, &pool(), &context, CREATED);
        assert_eq!(verdict.status, status, "{verdict:?}");
        if !message.is_empty() {
            assert_eq!(verdict.message, message);
        }
    }
    // Rules that read the children do not decide if the children are unknown.
    let verdict = judge(&rules, &pool(), &ObjectContext::default(), CREATED);
    assert_eq!(verdict.rule, "fallback");
}

/// Every path of a rule counts, not only that of the field or list under test.
#[test]
fn any_path_of_a_yaml_rule_may_read_children() {
    let reads = |rule: &str| {
        let text = format!(
            "{{group: example.com, source: 'https://example.com', kinds: {{Pool: {{rules: [{{{rule}}}]}}}}}}"
        );
        let layer = Layer::read(Origin::User, [("rules.yaml", &*text)]).unwrap();
        RuleSet::bare().with(layer).reads_children("example.com", "Pool")
    };
    for rule in [
        "status: Failed, field: spec.first, matches: 'children[0].metadata.name'",
        "status: Failed, field: spec.size, above: 'children[0].status.size'",
        "status: Failed, field: spec.first, is: '{children[0].metadata.name}'",
        "status: Failed, field: spec.first, exists: true, message: 'the first is {children[0].metadata.name}'",
        "status: Failed, count: {in: 'spec.parts[*]', above: 'children[0].status.size'}",
        "status: Failed, some: 'spec.parts[*]', that: [{field: name, matches: '$.children[0].metadata.name'}]",
    ] {
        assert!(reads(rule), "{rule}");
    }
    for rule in [
        "status: Failed, field: spec.first, matches: 'spec.children'",
        "status: Failed, some: 'spec.parts[*]', that: [{field: 'children[0]', exists: true}], message: '{@.children}'",
    ] {
        assert!(!reads(rule), "{rule}");
    }
}

#[test]
fn expressions_read_children() {
    let checks = json!({"spec": {"healthCheckExprs": [{
        "apiVersion": "example.com/v1", "kind": "Pool",
        "failed": "!children.exists(c, c.status.role == 'primary')",
        "current": "size(children) == spec.size",
    }]}});
    let checks = HealthChecks::of_object(Origin::User, &checks, &read).unwrap().unwrap();
    let rules = RuleSet::bare().with_script(Box::new(checks));
    for (children, status) in [
        (vec![member("m0", "True"), member("m1", "True")], Status::Current),
        (vec![member("m1", "True")], Status::Failed),
        (vec![member("m0", "True")], Status::InProgress),
    ] {
        let tell = || children.clone();
        let context = ObjectContext { children: Some(&tell), ..ObjectContext::default() };
        assert_eq!(judge(&rules, &pool(), &context, CREATED).status, status, "{children:?}");
    }
    let verdict = judge(&rules, &pool(), &ObjectContext::default(), CREATED);
    assert_eq!(verdict.status, Status::Unknown, "{verdict:?}");
}

#[test]
fn scripts_read_children() {
    let script = "
        local ready = 0
        for _, child in ipairs(children or {}) do
          if child.status.role == 'primary' then ready = ready + 1 end
        end
        return {status = ready > 0 and 'Healthy' or 'Degraded', message = tostring(children and #children)}";
    let scripts = Customizations::of_folder(Origin::User, [("example.com/Pool/health.lua", script)]);
    let rules = RuleSet::bare().with_script(Box::new(scripts));
    assert!(rules.reads_children("example.com", "Pool") && !rules.reads_children("example.com", "Door"));
    assert!(!RuleSet::shipped().reads_children("example.com", "Pool"));
    let tell = || vec![member("m0", "True"), member("m1", "True")];
    let context = ObjectContext { children: Some(&tell), ..ObjectContext::default() };
    let verdict = judge(&rules, &pool(), &context, CREATED);
    assert_eq!((verdict.status, &*verdict.message), (Status::Current, "2"));
    let verdict = judge(&rules, &pool(), &ObjectContext::default(), CREATED);
    assert_eq!((verdict.status, &*verdict.message), (Status::Failed, "nil"));
}

#[test]
fn argocd_cm_scripts_decide_health() {
    let settings = |script: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "argocd"},
            "data": {"url": "https://argocd.example.com", "resource.customizations.health.example.com_Pool": script}})
    };
    let rules = RuleSet::bare().teachable(reading);
    let look = TeachingTime::default();
    let teacher = settings("return {status = 'Degraded', message = obj.status.phase}");
    let taught = rules.with_cluster_rules(&[of(&teacher)], &look).unwrap();
    let verdict = judge(&*taught, &pool(), &ObjectContext::default(), CREATED);
    assert_eq!((verdict.status, &*verdict.message), (Status::Failed, "Whatever"));
    assert_eq!(verdict.rule, "cluster/lua/example.com/Pool#Degraded");
    let mut silent = settings("");
    silent["data"] = json!({"url": "https://argocd.example.com"});
    assert!(rules.with_cluster_rules(&[of(&silent)], &look).is_none());
}

#[test]
fn health_check_expressions_decide_health_of_delivered_objects() {
    let kustomization = |expression: &str| {
        json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "spec": {"healthCheckExprs": [
            {"apiVersion": "example.com/v1", "kind": "Pool", "current": expression},
        ]}})
    };
    let shipped = Layer::read(
        Origin::Shipped,
        [(
            "rules.yaml",
            "{group: example.com, source: 'https://example.com', kinds: {Pool: {rules: [{status: Failed}]}}}",
        )],
    );
    let rules = RuleSet::bare().with(shipped.unwrap()).teachable(reading);
    let nobody = ObjectContext::default();
    let look = TeachingTime::default();
    assert_eq!(judge(&rules, &pool(), &nobody, CREATED).status, Status::Failed);

    let teacher = kustomization("status.phase == 'Whatever'");
    let teacher = of(&teacher);
    {
        let taught = rules.with_cluster_rules(std::slice::from_ref(&teacher), &look).unwrap();
        let verdict = judge(&*taught, &pool(), &nobody, CREATED);
        assert_eq!(
            (verdict.status, &*verdict.rule),
            (Status::Current, "cluster/cel/example.com/Pool#current")
        );
        let mut other = pool();
        other["kind"] = json!("Other");
        assert_eq!(judge(&*taught, &other, &nobody, CREATED).rule, "fallback");
    }
    // An object that cannot be parsed, or states nothing, has no effect.
    for silent in [kustomization("1 +"), json!({"apiVersion": "v1", "kind": "ConfigMap"})] {
        let taught = rules.with_cluster_rules(&[of(&silent)], &look);
        let verdict = taught.map(|taught| judge(&*taught, &pool(), &nobody, CREATED));
        assert!(verdict.is_none_or(|verdict| verdict.status == Status::Failed));
    }
    // The user's rules come first.
    let user = kustomization("status.phase == 'Other'");
    let user = HealthChecks::of_object(Origin::User, &user, &read).unwrap().unwrap();
    let rules = rules.with_script(Box::new(user));
    let taught = rules.with_cluster_rules(&[teacher], &look).unwrap();
    assert_eq!(judge(&*taught, &pool(), &nobody, CREATED).rule, "user/cel/example.com/Pool#none");
}

#[test]
fn unmet_ready_expression_is_quoted() {
    let of = |name: &str, kind: &str, spec: serde_json::Value| {
        json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": kind,
            "metadata": {"name": name, "namespace": "flux", "labels": {"version": "2"}}, "spec": spec,
        })
    };
    let rules = RuleSet::bare().teachable(reading);
    let asks = |expression: &str, dependency: &serde_json::Value| {
        let entries = json!({"dependsOn": [{"name": "other"}, {"name": "infra", "readyExpr": expression}]});
        let object = of("apps", "Kustomization", entries);
        let (object, dependency) =
            (Object::new((&object).into()).unwrap(), Object::new(dependency.into()).unwrap());
        let unmet = rules.unmet_dependency(&object, &[dependency], &TeachingTime::default(), &|| true);
        assert!(unmet.len() <= 1, "{unmet:?}");
        unmet.into_iter().next()
    };
    let infra = of("infra", "Kustomization", json!({}));
    assert_eq!(asks("dep.metadata.labels.version == self.metadata.labels.version", &infra), None);
    assert_eq!(
        asks("dep.metadata.labels.version == '3'", &infra).unwrap(),
        "readyExpr is not true of Kustomization flux/infra: dep.metadata.labels.version == '3'"
    );
    assert_eq!(
        asks("dep.status.phase == 'Up'", &infra).unwrap(),
        "readyExpr is not true of Kustomization flux/infra yet, because there is no 'status' yet: dep.status.phase == 'Up'"
    );
    let wrong = asks("dep.metadata.name", &infra).unwrap();
    assert!(
        wrong.starts_with(
            "readyExpr cannot be evaluated for Kustomization flux/infra, because its result is a string"
        ),
        "{wrong}"
    );
    let wrong = asks("object.a", &infra).unwrap();
    assert!(wrong.contains("the expression uses the unknown name 'object'"), "{wrong}");
    // It does not apply to other dependencies.
    for other in [of("other", "Kustomization", json!({})), of("infra", "HelmRelease", json!({}))] {
        assert_eq!(asks("false", &other), None);
    }
}

const ENDLESS: &str = "while true do end";

/// Judges a pool in a namespace by the rules of a teacher with this voice.
fn taught(rules: &RuleSet, teacher: Teacher<'_>, namespace: &str) -> Verdict {
    let mut pool = pool();
    pool["metadata"]["namespace"] = json!(namespace);
    let look = TeachingTime::default();
    let taught = rules.with_cluster_rules(&[teacher], &look).unwrap();
    judge(&*taught, &pool, &ObjectContext::default(), CREATED)
}

#[test]
fn script_stopped_twice_is_not_run_again_in_its_cluster() {
    let rules = RuleSet::bare().teachable(reading);
    let teacher = argocd_cm(ENDLESS);
    let again = "is not run again";
    for number in 0..4 {
        let verdict = taught(&rules, of(&teacher), "shop");
        assert_eq!(verdict.status, Status::Unknown);
        assert!(verdict.message.contains("stopped after 50 ms"), "{}", verdict.message);
        assert_eq!(verdict.message.contains(again), number >= 2, "{}", verdict.message);
    }
    // Another cluster's script is a different script, even with the same text.
    let elsewhere = Teacher { home: "other", ..of(&teacher) };
    assert!(!taught(&rules, elsewhere, "shop").message.contains(again));
    let mut namespace = teacher.clone();
    namespace["metadata"]["namespace"] = json!("gitops");
    assert!(!taught(&rules, of(&namespace), "shop").message.contains(again));
}

#[test]
fn user_script_is_charged_to_the_namespace_of_the_object() {
    let files = [(
        "example.com/Pool/health.lua",
        "if obj.metadata.namespace == 'tenant' then while true do end end return {status = 'Healthy'}",
    )];
    let scripts = Customizations::of_folder(Origin::User, files);
    let rules = RuleSet::bare().with_script(Box::new(scripts));
    let mut costs = Costs::default();
    let status = |costs: &Costs, namespace: &str| {
        let mut pool = pool();
        pool["metadata"]["namespace"] = json!(namespace);
        let context = ObjectContext { costs: Some(costs), ..ObjectContext::default() };
        judge(&rules, &pool, &context, CREATED)
    };
    for number in 0..200 {
        let verdict = status(&costs, "tenant");
        assert_eq!(verdict.status, Status::Unknown);
        assert_eq!(verdict.message.contains("is not run again"), number >= 2, "{}", verdict.message);
    }
    assert_eq!(status(&costs, "shop").status, Status::Current);
    // Another pass over the same cluster remembers it; a pass over another cluster does not.
    costs.begin();
    assert!(status(&costs, "tenant").message.contains("is not run again"));
    assert!(!status(&Costs::default(), "tenant").message.contains("is not run again"));
}

#[test]
fn objects_of_one_namespace_stop_scripts_for_it_alone() {
    let rules = RuleSet::bare().teachable(reading);
    let script =
        "if obj.metadata.namespace == 'tenant' then while true do end end return {status = 'Healthy'}";
    let teacher = argocd_cm(script);
    let known = || Teacher { payer: Payer::Object, ..of(&teacher) };
    for _ in 0..4 {
        assert_eq!(taught(&rules, known(), "tenant").status, Status::Unknown);
    }
    assert_eq!(taught(&rules, known(), "shop").status, Status::Current);
}

#[test]
fn script_time_is_bounded_per_look() {
    let rules = RuleSet::bare().teachable(reading);
    // Each takes some milliseconds, so none is stopped.
    let script =
        "local b = os.time() local x = 0 for i = 1, 60000 do x = x + i end return {status = 'Healthy'}";
    let teacher = argocd_cm(script);
    let look = TeachingTime::default();
    let taught =
        rules.with_cluster_rules(&[Teacher { payer: Payer::Object, ..of(&teacher) }], &look).unwrap();
    let status = |namespace: &str| {
        let mut pool = pool();
        pool["metadata"]["namespace"] = json!(namespace);
        judge(&*taught, &pool, &ObjectContext::default(), CREATED)
    };
    let mut asked = 0;
    let last = loop {
        let verdict = status("tenant");
        if verdict.status != Status::Current || asked > 5000 {
            break verdict;
        }
        asked += 1;
    };
    assert_eq!((last.status, &*last.rule), (Status::Unknown, "cluster/budget"));
    assert!(last.message.contains("ConfigMap argocd/argocd-cm"), "{}", last.message);
    assert_eq!(status("shop").status, Status::Current, "another namespace has time of its own");
}

/// The time of the scripts is charged to the app that lists the objects of others.
#[test]
fn claimant_of_foreign_objects_is_charged_for_their_scripts() {
    let rules = RuleSet::bare().teachable(reading);
    let script = "if obj.metadata.name == 'slow' then for i = 1, 1e9 do end end return {status = 'Healthy'}";
    let teacher = argocd_cm(script);
    let look = TeachingTime::default();
    let listed = Teacher { payer: Payer::Claimant, claimant: "aaa".into(), ..of(&teacher) };
    let of_others = |claimant: &'static str| Teacher { claimant: claimant.into(), ..listed.clone() };
    let status = |teacher: Teacher<'_>, name: &str| {
        let mut pool = pool();
        pool["metadata"]["namespace"] = json!("shop");
        pool["metadata"]["name"] = json!(name);
        let taught = rules.with_cluster_rules(&[teacher], &look).unwrap();
        judge(&*taught, &pool, &ObjectContext::default(), CREATED)
    };
    // A stopped script is not run again for the app that listed the objects, but it is for others.
    for _ in 0..5 {
        assert_eq!(status(of_others("aaa"), "slow").status, Status::Unknown);
    }
    assert_eq!(status(of_others("aaa"), "web").status, Status::Unknown);
    assert_eq!(status(of_others("bbb"), "web").status, Status::Current);
    let own = Teacher { payer: Payer::Object, ..of(&teacher) };
    assert_eq!(status(own, "web").status, Status::Current);
}

#[test]
fn long_script_messages_are_truncated() {
    let rules = RuleSet::bare().teachable(reading);
    for script in ["return {status = 'Degraded', message = ('ä'):rep(1e6)}", "error(('x'):rep(1e6))"] {
        let teacher = argocd_cm(script);
        let verdict = taught(&rules, of(&teacher), "shop");
        let kept = verdict.conditions.iter().map(|it| it.message.len()).chain([verdict.message.len()]);
        assert!(kept.max().unwrap() <= (4 << 10) + 3, "{}", verdict.message.len());
    }
}

#[test]
fn warning_voice_can_only_worsen_a_verdict() {
    let shipped =
        "{group: example.com, source: 'https://example.com', kinds: {Pool: {rules: [{status: InProgress}]}}}";
    let rules = || {
        let shipped = Layer::read(Origin::Shipped, [("rules.yaml", shipped)]).unwrap();
        RuleSet::bare().with(shipped).teachable(reading)
    };
    let said = |rules: &RuleSet, word: &str| {
        let teacher = argocd_cm(&format!("return {{status = '{word}', message = 'said'}}"));
        let verdict = taught(rules, Teacher { voice: Voice::OnlyWorse, ..of(&teacher) }, "shop");
        (verdict.status, verdict.rule.into_owned())
    };
    let shipped = (Status::InProgress, "shipped/example.com/Pool#1".to_owned());
    for word in ["Healthy", "Suspended", "Progressing"] {
        assert_eq!(said(&rules(), word), shipped, "{word}");
    }
    let failed = (Status::Failed, "cluster/lua/example.com/Pool#Degraded".to_owned());
    assert_eq!(said(&rules(), "Degraded"), failed);
    // The user's verdict is not changed.
    let user =
        "{group: example.com, source: 'https://example.com', kinds: {Pool: {rules: [{status: Current}]}}}";
    let user = rules().with(Layer::read(Origin::User, [("rules.yaml", user)]).unwrap());
    assert_eq!(said(&user, "Degraded").0, Status::Current);
}
