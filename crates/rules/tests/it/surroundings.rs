//! What is known around an object: its children, and what its cluster says of health.

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_rules::cel::HealthChecks;
use taffrail_rules::lua::Customizations;
use taffrail_rules::{Layer, Origin, RuleSet};
use taffrail_status::{Object, Rules, Status, Surroundings, Verdict};

use crate::scripts::read;

const CREATED: &str = "2026-01-01T00:00:00Z";

fn judge(rules: &dyn Rules, object: &Value, surroundings: &Surroundings<'_>, now: &str) -> Verdict {
    let object = Object::new(object.into()).unwrap();
    rules.judge_within(&object, surroundings, now.parse::<Timestamp>().unwrap()).unwrap()
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
fn rules_look_at_children() {
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
    for (children, status, message) in [
        (vec![member("m0", "True"), member("m1", "True")], Status::Current, ""),
        (vec![member("m0", "True"), member("m1", "False")], Status::Failed, "m1: Full"),
        (vec![member("m0", "True")], Status::InProgress, "too few members"),
        (vec![], Status::InProgress, "too few members"),
    ] {
        let tell = || children.clone();
        let surroundings = Surroundings { children: Some(&tell), ..Surroundings::default() };
        let verdict = judge(&rules, &pool(), &surroundings, CREATED);
        assert_eq!(verdict.status, status, "{verdict:?}");
        if !message.is_empty() {
            assert_eq!(verdict.message, message);
        }
    }
    // Where nobody knows the children, nothing is said of them.
    let verdict = judge(&rules, &pool(), &Surroundings::default(), CREATED);
    assert_eq!(verdict.rule, "fallback");
}

#[test]
fn expressions_look_at_children() {
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
        let surroundings = Surroundings { children: Some(&tell), ..Surroundings::default() };
        assert_eq!(judge(&rules, &pool(), &surroundings, CREATED).status, status, "{children:?}");
    }
    let verdict = judge(&rules, &pool(), &Surroundings::default(), CREATED);
    assert_eq!(verdict.status, Status::Unknown, "{verdict:?}");
}

#[test]
fn scripts_look_at_children() {
    let script = "
        local ready = 0
        for _, child in ipairs(children or {}) do
          if child.status.role == 'primary' then ready = ready + 1 end
        end
        return {status = ready > 0 and 'Healthy' or 'Degraded', message = tostring(children and #children)}";
    let scripts = Customizations::of_folder(Origin::User, [("example.com/Pool/health.lua", script)]);
    let rules = RuleSet::bare().with_script(Box::new(scripts));
    let tell = || vec![member("m0", "True"), member("m1", "True")];
    let surroundings = Surroundings { children: Some(&tell), ..Surroundings::default() };
    let verdict = judge(&rules, &pool(), &surroundings, CREATED);
    assert_eq!((verdict.status, &*verdict.message), (Status::Current, "2"));
    let verdict = judge(&rules, &pool(), &Surroundings::default(), CREATED);
    assert_eq!((verdict.status, &*verdict.message), (Status::Failed, "nil"));
}

#[test]
fn the_settings_of_argo_cd_say_what_health_means() {
    let settings = |script: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "argocd"},
            "data": {"url": "https://argocd.example.com", "resource.customizations.health.example.com_Pool": script}})
    };
    let rules = RuleSet::bare().teachable(read);
    let teacher = settings("return {status = 'Degraded', message = obj.status.phase}");
    let taught = rules.taught_by(&[Object::new((&teacher).into()).unwrap()]).unwrap();
    let verdict = judge(&taught, &pool(), &Surroundings::default(), CREATED);
    assert_eq!((verdict.status, &*verdict.message), (Status::Failed, "Whatever"));
    assert_eq!(verdict.rule, "cluster/lua/example.com/Pool#Degraded");
    let mut silent = settings("");
    silent["data"] = json!({"url": "https://argocd.example.com"});
    assert!(rules.taught_by(&[Object::new((&silent).into()).unwrap()]).is_none());
}

#[test]
fn what_delivers_an_object_says_what_its_health_means() {
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
    let rules = RuleSet::bare().with(shipped.unwrap()).teachable(read);
    let nobody = Surroundings::default();
    assert_eq!(judge(&rules, &pool(), &nobody, CREATED).status, Status::Failed);

    let teacher = kustomization("status.phase == 'Whatever'");
    let teacher = Object::new((&teacher).into()).unwrap();
    {
        let taught = rules.taught_by(std::slice::from_ref(&teacher)).unwrap();
        let verdict = judge(&taught, &pool(), &nobody, CREATED);
        assert_eq!(
            (verdict.status, &*verdict.rule),
            (Status::Current, "cluster/cel/example.com/Pool#current")
        );
        let mut other = pool();
        other["kind"] = json!("Other");
        assert_eq!(judge(&taught, &other, &nobody, CREATED).rule, "fallback");
    }
    // What cannot be read, and what says nothing, teaches nothing.
    for silent in [kustomization("1 +"), json!({"apiVersion": "v1", "kind": "ConfigMap"})] {
        assert!(rules.taught_by(&[Object::new((&silent).into()).unwrap()]).is_none());
    }
    // The user is asked first.
    let user = kustomization("status.phase == 'Other'");
    let user = HealthChecks::of_object(Origin::User, &user, &read).unwrap().unwrap();
    let rules = rules.with_script(Box::new(user));
    let taught = rules.taught_by(&[teacher]).unwrap();
    assert_eq!(judge(&taught, &pool(), &nobody, CREATED).rule, "user/cel/example.com/Pool#none");
}

#[test]
fn what_a_dependency_lacks_is_told_with_its_expression() {
    let of = |name: &str, kind: &str, spec: serde_json::Value| {
        json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": kind,
            "metadata": {"name": name, "namespace": "flux", "labels": {"version": "2"}}, "spec": spec,
        })
    };
    let rules = RuleSet::bare().teachable(read);
    let asks = |expression: &str, dependency: &serde_json::Value| {
        let entries = json!({"dependsOn": [{"name": "other"}, {"name": "infra", "readyExpr": expression}]});
        let object = of("apps", "Kustomization", entries);
        let (object, dependency) =
            (Object::new((&object).into()).unwrap(), Object::new(dependency.into()).unwrap());
        rules.unmet_by(&object, &dependency)
    };
    let infra = of("infra", "Kustomization", json!({}));
    assert_eq!(asks("dep.metadata.labels.version == self.metadata.labels.version", &infra), None);
    assert_eq!(
        asks("dep.metadata.labels.version == '3'", &infra).unwrap(),
        "readyExpr does not hold of Kustomization flux/infra: dep.metadata.labels.version == '3'"
    );
    assert_eq!(
        asks("dep.status.phase == 'Up'", &infra).unwrap(),
        "readyExpr does not hold of Kustomization flux/infra yet, there is no 'status' yet: dep.status.phase == 'Up'"
    );
    let wrong = asks("dep.metadata.name", &infra).unwrap();
    assert!(
        wrong.starts_with("readyExpr cannot be asked of Kustomization flux/infra, it is a string"),
        "{wrong}"
    );
    let wrong = asks("object.a", &infra).unwrap();
    assert!(wrong.contains("it knows nothing called 'object'"), "{wrong}");
    // It has no say about others.
    for other in [of("other", "Kustomization", json!({})), of("infra", "HelmRelease", json!({}))] {
        assert_eq!(asks("false", &other), None);
    }
}
