//! `docs/output.md` says what answers for programs hold, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{command, of_case, run, taffrail};

/// The content of the page: the fields of each shape.
struct Page(BTreeMap<String, BTreeMap<String, Field>>);

struct Field {
    /// `text`, `list of App`, …
    kind: String,
    optional: bool,
}

impl Page {
    fn read() -> Page {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/output.md");
        let mut shapes: BTreeMap<String, BTreeMap<String, Field>> = BTreeMap::new();
        let mut shape = String::new();
        for line in fs::read_to_string(file).unwrap().lines() {
            if let Some(name) = line.strip_prefix("## ") {
                name.clone_into(&mut shape);
            }
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            if let [_, name, kind, _, _] = *cells.as_slice()
                && name.starts_with('`')
            {
                let optional = name.ends_with('?');
                let name = name.trim_end_matches('?').trim_matches('`').to_owned();
                let field = Field { kind: kind.to_owned(), optional };
                assert!(shapes.entry(shape.clone()).or_default().insert(name, field).is_none(), "{line}");
            }
        }
        Page(shapes)
    }

    /// Compares a value with its shape, and remembers which fields were met.
    fn compare(&self, shape: &str, value: &Value, place: &str, met: &mut BTreeSet<(String, String)>) {
        match (shape, value) {
            (_, Value::Array(items)) if shape.starts_with("list of ") => {
                let inner = shape.trim_start_matches("list of ");
                items.iter().for_each(|item| self.compare(inner, item, &format!("{place}[]"), met));
            }
            ("text", Value::String(_)) | ("number", Value::Number(_)) | ("truth", Value::Bool(_)) => {}
            ("JSON", _) => {}
            ("map of text", Value::Object(fields)) => {
                assert!(fields.values().all(Value::is_string), "{place}")
            }
            ("time", Value::String(text)) => {
                assert!(text.ends_with('Z') && text.contains('T'), "{place}: {text}")
            }
            (_, Value::Object(fields)) => {
                let known =
                    self.0.get(shape).unwrap_or_else(|| panic!("{place} is of no known shape: {shape}"));
                for (name, value) in fields {
                    let place = format!("{place}.{name}");
                    let field = known.get(name).unwrap_or_else(|| panic!("{place} is not in docs/output.md"));
                    met.insert((shape.to_owned(), name.clone()));
                    if !(value.is_null() && field.optional) {
                        self.compare(&field.kind, value, &place, met);
                    }
                }
                for (name, field) in known {
                    assert!(
                        field.optional || fields.contains_key(name),
                        "{place}.{name} is always there, says docs/output.md"
                    );
                }
            }
            _ => panic!("{place} is no {shape}: {value}"),
        }
    }
}

/// The committed schemas, by the kind of the answer.
struct Schemas(BTreeMap<String, Value>);

impl Schemas {
    fn read() -> Schemas {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let read = |file: std::path::PathBuf| {
            let kind = file.file_stem().unwrap().to_str().unwrap().to_owned();
            (kind, serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap())
        };
        Schemas(files.map(read).collect())
    }

    /// Checks an answer by the schema of its kind.
    fn check(&self, answer: &Value) {
        let kind = answer["kind"].as_str().unwrap();
        let schema = self.0.get(kind).unwrap_or_else(|| panic!("{kind} has no schema"));
        let faults = faults(schema, schema, answer, "");
        assert!(faults.is_empty(), "{kind}: {faults:#?}");
    }
}

/// Returns what is wrong with a value by a schema. It knows the words that our schemas have, and no others.
fn faults(root: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let Some(words) = schema.as_object() else {
        return if schema == &Value::Bool(false) {
            vec![format!("{place} is not allowed")]
        } else {
            Vec::new()
        };
    };
    let mut found = Vec::new();
    let fault = |text: &str| vec![format!("{place} {text}: {value}")];
    for (word, of) in words {
        found.extend(match word.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" | "format" => Vec::new(),
            "$ref" => {
                let named = root.pointer(of.as_str().unwrap().trim_start_matches('#')).unwrap();
                faults(root, named, value, place)
            }
            "type" => {
                let is = |name: &Value| match name.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "number" => value.is_number(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "null" => value.is_null(),
                    other => panic!("{other} is no type"),
                };
                let is_any = of.as_array().map_or_else(|| is(of), |all| all.iter().any(is));
                if is_any { Vec::new() } else { fault(&format!("is no {of}")) }
            }
            "const" if of != value => fault(&format!("is not {of}")),
            "enum" if !of.as_array().unwrap().contains(value) => fault(&format!("is none of {of}")),
            "const" | "enum" => Vec::new(),
            "minimum" if value.as_f64().is_some_and(|number| number < of.as_f64().unwrap()) => {
                fault("is too small")
            }
            "minimum" => Vec::new(),
            "items" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                items.flat_map(|(at, item)| faults(root, of, item, &format!("{place}/{at}"))).collect()
            }
            "properties" => {
                let fields = of.as_object().unwrap().iter();
                let given = fields.filter_map(|(name, of)| Some((name, of, value.get(name)?)));
                given.flat_map(|(name, of, it)| faults(root, of, it, &format!("{place}/{name}"))).collect()
            }
            // Our schemas have no fields of their own beside these.
            "additionalProperties" => {
                let fields = value.as_object().into_iter().flatten();
                fields.flat_map(|(name, it)| faults(root, of, it, &format!("{place}/{name}"))).collect()
            }
            "required" => {
                let names = of.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                names
                    .filter(|name| value.get(name).is_none())
                    .flat_map(|name| fault(&format!("has no {name}")))
                    .collect()
            }
            "anyOf" | "oneOf" => {
                let each: Vec<_> =
                    of.as_array().unwrap().iter().map(|of| faults(root, of, value, place)).collect();
                if each.iter().any(Vec::is_empty) { Vec::new() } else { each.concat() }
            }
            "allOf" => of.as_array().unwrap().iter().flat_map(|of| faults(root, of, value, place)).collect(),
            other => panic!("{other} is not a word of our schemas"),
        });
    }
    found
}

#[test]
fn a_schema_refuses_what_is_not_as_it_says() {
    let schemas = Schemas::read();
    let schema = &schemas.0["AppList"];
    let case = of_case(&["get", "apps"], "flux-bad-image", &["-o", "json"]).json();
    assert_eq!(faults(schema, schema, &case, ""), [""; 0]);
    for (place, wrong) in
        [("/kind", "AppRow"), ("/items/0/health", "Ready"), ("/items/0/objects", "1"), ("/errors", "")]
    {
        let mut answer = case.clone();
        *answer.pointer_mut(place).unwrap() = wrong.into();
        assert!(!faults(schema, schema, &answer, "").is_empty(), "{place}");
    }
    let mut answer = case;
    answer["items"][0].as_object_mut().unwrap().remove("effective");
    assert!(!faults(schema, schema, &answer, "").is_empty());
}

#[test]
fn every_field_is_documented_and_every_documented_field_is_met() {
    let page = Page::read();
    let schemas = Schemas::read();
    let mut met = BTreeSet::new();
    let mut compare = |answer: super::Answer| {
        let json = answer.json();
        schemas.check(&json);
        let kind = json["kind"].as_str().unwrap();
        page.compare(kind, &json, kind, &mut met);
    };
    // Tools differ in what they know.
    for case in [
        "argo-multi-source",
        "config-sync-well",
        "duplicate-context",
        "flux-bad-image",
        "flux-in-motion",
        "helm-secret-damaged",
        "helmrelease-well",
        "kpt-resource-groups",
        "label-groups",
        "overlap",
    ] {
        for what in ["apps", "clusters", "resources"] {
            compare(of_case(&["get", what], case, &["-o", "json"]));
        }
        for command in ["explain", "events", "trust"] {
            compare(of_case(&[command], case, &["-o", "json"]));
        }
    }
    for (case, name) in [
        ("config-sync-well", "config-sync/team-a/repo-sync"),
        ("flux-bad-image", "shop"),
        ("flux-in-motion", "flux-kustomization/flux-system/db"),
        ("helmrelease-well", "flux-helmrelease/shop/podinfo"),
    ] {
        for command in ["app", "tree", "explain"] {
            compare(of_case(&[command, name], case, &["-o", "json"]));
        }
    }
    let well = of_case(&["get", "apps"], "helm-well", &["-o", "name"]).stdout;
    compare(of_case(&["explain", well.lines().next().unwrap()], "helm-well", &["-o", "json"]));
    // What is well, but not new, or not left to run.
    compare(of_case(&["explain", "docs"], "argo-failures", &["-o", "json"]));
    compare(of_case(&["explain", "docs", "api"], "argo-failures", &["-o", "json"]));
    // What Argo CD says object by object.
    compare(of_case(&["explain", "api"], "argo-failures", &["-o", "json"]));
    compare(of_case(&["app", "api"], "argo-failures", &["-o", "json"]));
    compare(of_case(&["get", "resources"], "argo-failures", &["-o", "json"]));
    compare(of_case(&["get", "resources", "--image", "acme"], "flux-bad-image", &["-o", "json"]));
    let suspended = |name: &str| {
        format!(
            "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: {name}, namespace: shop}}\n\
             spec: {{suspend: true}}\n---\n"
        )
    };
    let suspended = ["night", "noon"].map(suspended).concat();
    for names in [&["cronjob/night"][..], &["cronjob/night", "cronjob/noon"]] {
        compare(taffrail(&[&["explain", "--from", "-", "-o", "json"], names].concat(), &suspended));
    }
    let now = ["--from", "-", "--now", "2026-03-01T12:00:00Z", "-o", "json"];
    compare(taffrail(
        &[&["explain", "deploy/web", "-n", "shop"], &now[..]].concat(),
        super::explain::CHANGED,
    ));
    compare(taffrail(&[&["explain", "deploy/web", "-n", "shop"], &now[..]].concat(), super::explain::SCALED));
    let several = [&["explain", "deploy/web", "cm/settings", "-n", "shop"], &now[..]].concat();
    compare(taffrail(&several, super::explain::SCALED));
    super::contradictions::samples().into_iter().for_each(&mut compare);
    super::together::samples().into_iter().for_each(&mut compare);
    compare(super::trust::sample());
    compare(super::get::managed(&["get", "clusters", "-o", "json"]));
    compare(super::get::managed(&["overview", "-o", "json"]));
    super::app::related().into_iter().for_each(&mut compare);
    super::diff::samples().into_iter().for_each(&mut compare);
    super::impact::samples().into_iter().for_each(&mut compare);
    super::differs::samples().into_iter().for_each(&mut compare);
    super::logs::samples().into_iter().for_each(&mut compare);
    super::logs::overviews().into_iter().for_each(&mut compare);
    super::history::samples().into_iter().for_each(&mut compare);
    super::set_history::samples().into_iter().for_each(&mut compare);
    compare(super::orphans::sample());
    compare(super::bad_clusters::sample());
    compare(super::bad_clusters::labelled());
    let partly = ["--from", "-", "--from", "nowhere.yaml", "-o", "json"];
    for question in
        [&["get", "resources", "--image", "acme"][..], &["explain", "pod/p"], &["explain", "pod/p", "rs/web"]]
    {
        compare(taffrail(&[question, &partly].concat(), MARKED));
    }
    compare(super::following::sample());
    for names in [&["pod/p"][..], &["pod/p", "rs/web"]] {
        compare(taffrail(&[&["explain", "--from", "-", "-o", "json"], names].concat(), CLAIMED));
    }
    compare(taffrail(&["get", "apps", "--from", "-", "-o", "json"], CLAIMED));
    // What declares an app, and what belongs to one that says where it is from.
    let (declaring, declared) =
        ("kustomize.toolkit.fluxcd.io/Kustomization/flux-system/db", "apps/Deployment/shop/web");
    for names in [&[declaring][..], &[declaring, "apps/Deployment/shop/none"]] {
        compare(of_case(&[&["explain"], names].concat(), "flux-in-motion", &["-o", "json"]));
    }
    compare(of_case(&["explain", declared], "flux-bad-image", &["-o", "json"]));
    compare(super::sameness::twins());
    super::sameness::samples().into_iter().for_each(&mut compare);
    let unwell = ["tree", "shop", "--status", "!Ready"];
    compare(of_case(&unwell, "flux-bad-image", &["-o", "json"]));
    compare(super::bad_clusters::unverified(&["get", "clusters", "-o", "json"]));
    super::verbs::samples().into_iter().for_each(&mut compare);
    super::actions::samples().into_iter().for_each(&mut compare);
    super::object::samples().into_iter().for_each(&mut compare);
    compare(taffrail(&["get", "apps", "--from", "nowhere.yaml", "-o", "json"], ""));
    let objects = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, generation: 2}
status: {observedGeneration: 1}
";
    compare(taffrail(&["status", "-f", "-", "-o", "json"], objects));
    let library = concat!(env!("CARGO_MANIFEST_DIR"), "/../rules/tests/library");
    let lock = super::rules::LOCK;
    for command in [&["status"][..], &["rules", "why"]] {
        compare(taffrail(&[command, &["-f", "-", "-o", "json", "--rules", library]].concat(), lock));
    }
    let labelled = lock.replace("house}", "house, labels: {app.kubernetes.io/instance: house}}");
    compare(taffrail(&["get", "resources", "--from", "-", "-o", "json", "--rules", library], &labelled));
    compare(taffrail(&["rules", "list", "-o", "json"], ""));
    let broken = super::rules::broken();
    for command in ["test", "lint"] {
        compare(taffrail(&["rules", command, broken.path().to_str().unwrap(), "-o", "json"], ""));
    }
    let lines = taffrail(&["status", "-f", "-", "-o", "jsonl", "--input", "jsonl"], "{\"kind\": 1}\n").stdout;
    for line in lines.lines() {
        page.compare("Verdict", &serde_json::from_str(line).unwrap(), "line", &mut met);
    }
    let line: Value = serde_json::from_str(&super::watch::forbidden_everything()).unwrap();
    page.compare("ClusterList", &line, "ClusterList", &mut met);
    for line in super::wait::sample().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        schemas.check(&line);
        let kind = line["kind"].as_str().unwrap().to_owned();
        page.compare(&kind, &line, &kind, &mut met);
    }
    let [apps, clusters] = super::hub_metrics::of_flux();
    let checked = super::hub_metrics::of_checks();
    let [said, light] = super::hub_light::of_light();
    let lists = [
        ("AppList", apps),
        ("AppList", checked),
        ("AppList", said),
        ("ClusterList", clusters),
        ("ClusterList", light),
    ];
    for (kind, told) in lists {
        schemas.check(&told);
        page.compare(kind, &told, kind, &mut met);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    fs::write(&file, "timeout: 3s\n").unwrap();
    let mut view = command(&["config", "view", "-o", "json", "--config", file.to_str().unwrap()]);
    view.env("TAFFRAIL_COLOR", "never");
    let view = run(view, b"").json();
    schemas.check(&view);
    page.compare("SettingList", &view, "SettingList", &mut met);

    let mut unmet: Vec<String> = Vec::new();
    for (shape, fields) in &page.0 {
        for name in fields.keys().filter(|name| !met.contains(&(shape.clone(), (*name).clone()))) {
            unmet.push(format!("{shape}.{name}"));
        }
    }
    unmet.extend(schemas.0.into_keys().filter(|kind| !met.iter().any(|(shape, _)| shape == kind)));
    assert!(unmet.is_empty(), "no answer has {unmet:?}");
}

/// A Pod that an app lists beside it, another one from elsewhere, and that is marked for a third.
const CLAIMED: &str = "\
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, namespace: shop, uid: r1}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop, uid: p1, annotations: {argocd.argoproj.io/tracking-id: 'gone:/Pod:shop/p'},
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r1, controller: true}]}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {namespace: shop, name: own}
status: {inventory: {entries: [{id: shop_p__Pod, v: v1}]}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {namespace: tenant, name: zz}
status: {inventory: {entries: [{id: shop_p__Pod, v: v1}]}}
";

/// A Pod that is marked for an app of another cluster.
const MARKED: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop, annotations: {argocd.argoproj.io/tracking-id: 'gone:/Pod:shop/p'}}
spec: {containers: [{name: p, image: 'acme/p:1'}]}
";
