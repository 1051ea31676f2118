//! `explain` and `trust` look at the same apps and never contradict each other.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{NOW, dump_in, golden_apps, own_apps, taffrail};

/// The folders of all cases of apps: those of the golden answers, and our own.
fn cases() -> Vec<PathBuf> {
    let folders = [golden_apps(), own_apps()].map(|root| fs::read_dir(root).unwrap());
    let mut cases: Vec<PathBuf> = folders.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

struct Case {
    from: String,
}

impl Case {
    fn of(folder: &Path) -> Case {
        Case { from: dump_in(folder) }
    }

    fn ask(&self, arguments: &[&str]) -> super::Answer {
        taffrail(&[arguments, &["--from", &self.from, "--now", NOW]].concat(), "")
    }
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

fn items(list: &Value) -> Vec<Value> {
    list["items"].as_array().map_or_else(|| vec![list.clone()], Clone::clone)
}

/// The name of an app in both answers.
fn name(app: &Value) -> String {
    format!("{}/{}/{}", text(app, "delivery"), text(app, "namespace"), text(app, "name"))
}

/// Returns the output of `explain` for all apps of a case, by their names.
fn explained(case: &Case) -> BTreeMap<String, Vec<Value>> {
    let names = case.ask(&["get", "apps", "-o", "name"]).stdout;
    let names: Vec<&str> = names.lines().collect();
    let mut explained: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    if !names.is_empty() {
        let list = case.ask(&[&["explain", "-o", "json"], &names[..]].concat()).json();
        for own in items(&list) {
            explained.entry(name(&own["app"])).or_default().push(own);
        }
    }
    explained
}

fn is_green(explained: &Value) -> bool {
    text(explained, "effective") == "Current"
}

fn is_fine(explained: &Value) -> bool {
    let says_nothing = |field: &str| explained[field].as_array().is_none_or(Vec::is_empty);
    is_green(explained) && says_nothing("problems") && says_nothing("doubts")
}

#[test]
fn trust_and_explain_agree_on_doubtful_green() {
    let mut wrong = Vec::new();
    let (mut signs, mut doubtful, mut counted) = (0, 0, 0);
    for folder in cases() {
        let case = Case::of(&folder);
        let explained = explained(&case);
        let doubts = items(&case.ask(&["trust", "--per-cluster", "-o", "json"]).json());
        let place = folder.file_name().unwrap().to_string_lossy().into_owned();
        for doubt in &doubts {
            let apps = doubt["apps"].as_array().cloned().unwrap_or_default();
            let told = format!("{place}: {}: {}", text(doubt, "reason"), text(doubt, "message"));
            let of = |app: &Value| explained.get(&name(app)).map(Vec::as_slice).unwrap_or_default();
            for app in &apps {
                signs += 1;
                if of(app).is_empty() {
                    wrong.push(format!("{told}: explain knows no {}", name(app)));
                }
                if text(doubt, "severity") == "high" && of(app).iter().all(is_fine) {
                    wrong.push(format!("{told}: explain calls {} fine", name(app)));
                }
            }
            // How many of the apps are green is the same in both.
            let all: Vec<&Value> = apps.iter().flat_map(of).collect();
            if all.len() == apps.len() && doubt["appCount"] == apps.len() {
                counted += 1;
                let green = all.into_iter().filter(|own| is_green(own)).count();
                if doubt["green"] != green {
                    wrong.push(format!("{told}: {} green to trust, {green} to explain", doubt["green"]));
                }
            }
        }
        for (name, own) in explained.iter().flat_map(|(name, all)| all.iter().map(move |own| (name, own))) {
            if is_green(own) && !is_fine(own) {
                doubtful += 1;
                let is_named = |doubt: &Value| {
                    let apps = doubt["apps"].as_array().cloned().unwrap_or_default();
                    apps.len() as u64 != doubt["appCount"] || apps.iter().any(|app| self::name(app) == *name)
                };
                if !doubts.iter().any(is_named) {
                    wrong.push(format!("{place}: trust has nothing about {name}: {}", own["problems"]));
                }
            }
        }
    }
    assert!(signs >= 50 && doubtful >= 20 && counted >= 50, "{signs} {doubtful} {counted}");
    assert!(wrong.is_empty(), "{} contradictions:\n{}", wrong.len(), wrong.join("\n"));
}

/// A Deployment that Flux applied with three replicas, and `kubectl scale` set to none.
const SCALED: &str = r#"---
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: flux-system, name: shop, generation: 1},
 spec: {interval: 10m, path: ./shop, sourceRef: {kind: GitRepository, name: fleet}},
 status: {observedGeneration: 1, lastAppliedRevision: "main@sha1:1", lastAttemptedRevision: "main@sha1:1",
  conditions: [{type: Ready, status: "True", reason: ReconciliationSucceeded, observedGeneration: 1}],
  inventory: {entries: [{id: shop_web_apps_Deployment, v: v1}]}}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {namespace: flux-system, name: fleet, generation: 1},
 status: {conditions: [{type: Ready, status: "True", observedGeneration: 1}], artifact: {revision: "main@sha1:1"}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, uid: web, generation: 1,
  labels: {kustomize.toolkit.fluxcd.io/name: shop, kustomize.toolkit.fluxcd.io/namespace: flux-system},
  managedFields: [
   {manager: kustomize-controller, operation: Apply, time: "2026-03-01T10:00:00Z", fieldsV1: {"f:spec": {"f:template": {}}}},
   {manager: kubectl, operation: Update, subresource: scale, fieldsV1: {"f:spec": {"f:replicas": {}}}}]},
 spec: {replicas: 0, template: {spec: {containers: [{name: web, image: "web:1"}]}}},
 status: {observedGeneration: 1, conditions: [{type: Available, status: "True"}]}}
"#;

#[test]
fn explain_tells_what_was_changed_by_hand_although_the_app_is_green() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eu-1.yaml");
    let case = Case { from: file.to_str().unwrap().to_owned() };
    // An action of Taffrail is a change by hand like any other.
    for manager in ["kubectl", "taffrail"] {
        fs::write(&file, SCALED.replace("manager: kubectl", &format!("manager: {manager}"))).unwrap();
        let told = case.ask(&["explain", "shop"]).stdout;
        assert!(told.starts_with("flux-kustomization flux-system/shop is Ready\n"), "{told}");
        let sign = format!(
            "\nSigns that this status is wrong\n  Deployment web: the object was changed by hand since \
             kustomize-controller applied it: {manager} wrote spec.replicas (time not known)\n"
        );
        assert!(told.contains(&sign), "{told}");
    }
}

/// Answers about apps that are green, with signs that this is wrong.
pub(super) fn samples() -> Vec<super::Answer> {
    let case = Case::of(&own_apps().join("argo-health-of-objects"));
    let doubted = case.ask(&["explain", "says-degraded", "-o", "json"]);
    assert_eq!(doubted.json()["doubts"][0]["reason"], "ToolSaysUnwell", "{}", doubted.stdout);
    let text = case.ask(&["explain", "says-degraded"]).stdout;
    assert!(
        text.contains("\nSigns that this status is wrong\n")
            && text.contains("Argo CD calls the app Degraded"),
        "{text}"
    );
    vec![doubted, case.ask(&["explain", "says-degraded", "says-degraded", "-o", "json"])]
}
