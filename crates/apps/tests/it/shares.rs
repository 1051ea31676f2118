//! What one namespace asks for in excess, and what of it others pay for.

use serde_json::json;
use taffrail_apps::{Asked, Body, Lookup, ObjectKey, Objects as _, Read, Target, apps};
use taffrail_status::Taffrail;

use super::dump::{NOW, release, storage};
use super::reads::{kustomization, object, values_of_secrets};
use super::server::{Log, Server};

/// The rounds in which reads were made that `is_it` tells.
fn rounds(log: &Log, is_it: impl Fn(&Read) -> bool) -> Vec<usize> {
    let rounds = log.0.iter().enumerate();
    rounds.filter(|(_, reads)| reads.iter().any(&is_it)).map(|(round, _)| round).collect()
}

/// What a tenant can create in seconds must not use up the time of all.
#[test]
fn thousands_of_releases_of_one_namespace_are_read_after_what_others_need() {
    let mut objects = vec![
        kustomization("v1", &["shop_web_apps_Deployment"]),
        object("apps/v1", "Deployment", "shop", "web"),
        release("data", "pg", 1, "deployed", ""),
    ];
    objects.extend((0..250).map(|number| storage("team-a", &format!("r{number}"), 1, &json!("eA=="))));
    let (_, log) = Server::new(objects).read("cluster", &Asked::default());
    let of = |namespace: &'static str| {
        move |read: &Read| {
            read.namespace.as_deref() == Some(namespace) && matches!(read.target, Target::Object(_))
        }
    };
    let (many, few) = (rounds(&log, of("team-a")), rounds(&log, of("data")));
    let declared = rounds(&log, |read| read.kind == "Deployment");
    assert_eq!((few, &*declared), (vec![1], &[2][..]));
    assert_eq!(many, [log.0.len() - 1], "all that is left is read in one round, the last");
    assert_eq!(log.all().filter(|read| of("team-a")(read)).count(), 250);
}

/// What names the releases of others does not put these behind.
#[test]
fn releases_are_charged_to_the_namespace_that_asks_for_them() {
    let helm_release = |namespace: &str, name: &str| {
        json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"storageNamespace": "flux-system", "releaseName": name},
            "status": {"history": [{"name": name, "version": 1, "status": "deployed"}]},
        })
    };
    let mut objects =
        vec![release("flux-system", "infra", 1, "deployed", ""), helm_release("flux-system", "infra")];
    objects.extend((0..250).map(|number| helm_release("team-a", &format!("r{number}"))));
    let mut server = Server::new(objects);
    server.forbidden.push("list /Secret");
    let (_, log) = server.read("cluster", &Asked::default());
    let of = |name: &str| {
        let name = Target::Object(format!("sh.helm.release.v1.{name}.v1"));
        rounds(&log, |read| read.target == name)
    };
    assert_eq!((of("infra"), of("r7")), (vec![1], vec![log.0.len() - 1]));
}

/// Who can write a Kustomization would else have any object read, and shown, by who may read more.
#[test]
fn only_sources_of_flux_are_read_as_sources() {
    let mut own = kustomization("v1", &[]);
    own["spec"]["sourceRef"] =
        json!({"apiVersion": "/v1", "kind": "Secret", "namespace": "team-b", "name": "token"});
    let server = Server::new(vec![own, object("v1", "Secret", "team-b", "token")]);
    let inside = Asked { namespace: Some("flux-system".to_owned()), ..Asked::default() };
    for asked in [Asked::default(), inside] {
        let (live, log) = server.read("cluster", &asked);
        assert!(values_of_secrets(&log).is_empty(), "{:?}", log.paths());
        let list = apps(&[&live], &Taffrail, NOW);
        let problems = &list.apps[0].problems;
        assert!(problems.iter().any(|it| it.message.contains("no source of Flux")), "{problems:?}");
    }
}

/// What is read by metadata alone is well live, whatever its dump says; so no kind with something to say may be.
#[test]
fn what_is_judged_by_its_body_is_read_whole() {
    for kind in ["ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"] {
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "orphan"}, "spec": {"policyName": "none"},
        });
        let id = format!("_orphan_admissionregistration.k8s.io_{kind}");
        let server = Server::new(vec![kustomization("web", &[&id]), binding]);
        let (live, _) = server.read("prod", &Asked { label_groups: false, ..Asked::default() });
        let key = ObjectKey::new("admissionregistration.k8s.io", kind, "", "orphan");
        let Lookup::Found(observed) = live.get(&key) else { panic!("{kind} was not read") };
        assert_eq!(observed.body, Body::Whole, "{kind}");
    }
}
