//! The Argo CDs and the homes of rules that the settings trust.

use std::fs;

use serde_json::{Value, json};

use super::Answer;
use super::actions::{
    action, application, binding, config_map, controller, delivered, marked, names, served,
};

#[test]
fn the_settings_make_an_argo_cd_known() {
    let served = served(&["one"]);
    config_map(&served.clusters[0], "gitops", "argocd-cm", &action("return obj"));
    delivered(&served.clusters[0], "gitops");
    let file = served.folder.path().join("config.yaml");
    let file = |text: &str| {
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let ask = |config: &str| served.ask(&["actions", "deploy/web", "-o", "json", "--config", config]);
    let has = |answer: &Answer| names(answer).contains(&"cluster/paint cluster".to_owned());
    assert!(!has(&ask(&file("argocd: [argocd]"))));
    assert!(has(&ask(&file("argocd: [gitops]"))));
}

#[test]
fn the_settings_let_the_rules_of_a_home_improve_objects_of_another_cluster() {
    let served = served(&["one", "two"]).asked_with(&["--timeout", "30s"]);
    let [home, target] = &served.clusters[..] else { panic!("two clusters") };
    config_map(home, "argocd", "argocd-cm", "");
    let mut rules = home.get("v1", "ConfigMap", "argocd", "argocd-cm").unwrap();
    rules["data"] = json!({"resource.customizations.health.apps_Deployment":
        "return {status = 'Healthy', message = 'as its home says'}"});
    home.apply(rules).unwrap();
    controller(home, "argocd");
    binding(home, "argocd");
    let mut app = application("argocd", "shop");
    app["spec"]["destination"]["server"] = json!(target.url());
    home.apply(app).unwrap();
    target.apply(marked("shop")).unwrap();
    let file = served.folder.path().join("config.yaml");
    let unheard = |settings: &str| {
        fs::write(&file, settings).unwrap();
        let answer = served.ask(&["trust", "-o", "json", "--config", file.to_str().unwrap()]);
        let report: Value = serde_json::from_str(&answer.stdout).unwrap();
        let items = report["items"].as_array().unwrap().iter();
        let unheard = items.filter(|item| item["reason"] == "RulesUnheard");
        unheard.map(|item| item["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let told = unheard("{}");
    assert!(told.len() == 1 && told[0].contains("trusted-homes: [one]"), "{told:?}");
    assert_eq!(unheard("trusted-homes: [two]").len(), 1);
    assert_eq!(unheard("trusted-homes: [one]"), [""; 0]);
}
