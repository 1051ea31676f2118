//! Behaviours of `taffrail diff` that `docs/behaviours.md` lists, on a real API server.

use std::fs;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_testkit::behaviours::{self, DiffAnswer, DiffStage, NAMESPACE};
use taffrail_testkit::kube::ControlPlane;

use crate::harness::{Answer, CLUSTER, plane, run};

/// The first cluster of the control plane, with the namespace of the scenarios.
struct Real(Arc<ControlPlane>);

/// Returns the stage of all scenarios; `None`, after a message, if there is no control plane.
fn stage() -> Option<Real> {
    static NAMESPACED: OnceLock<()> = OnceLock::new();
    let plane = plane()?;
    NAMESPACED.get_or_init(|| plane.create_namespace(CLUSTER, NAMESPACE).expect("a namespace"));
    Some(Real(plane))
}

impl Real {
    /// Runs kubectl with a file of this object.
    fn send(&self, arguments: &[&str], object: &Value) -> String {
        self.try_send(arguments, &object.to_string()).unwrap_or_else(|error| panic!("{error:#}"))
    }

    fn try_send(&self, arguments: &[&str], text: &str) -> anyhow::Result<String> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), text).expect("it can be written");
        let path = file.path().to_str().expect("it is UTF-8");
        self.0.kubectl(CLUSTER, &[arguments, &["-f", path]].concat())
    }
}

/// Returns the plural of an object's kind, as the scenarios have them.
fn plural(object: &Value) -> String {
    format!("{}s", object["kind"].as_str().expect("a kind").to_lowercase())
}

impl DiffStage for Real {
    fn apply(&self, manager: &str, object: &Value) {
        let manager = format!("--field-manager={manager}");
        self.send(&["apply", "--server-side", "--force-conflicts", &manager], object);
    }

    fn apply_on_client_side(&self, object: &Value) {
        self.send(&["apply"], object);
    }

    fn update(&self, manager: &str, object: &Value, change: &dyn Fn(&mut Value)) {
        let live = self.send(&["get", "-o", "json"], object);
        let mut live: Value = serde_json::from_str(&live).expect("an object");
        change(&mut live);
        self.send(&["replace", &format!("--field-manager={manager}")], &live);
    }

    fn define(&self, definition: &Value) {
        self.send(&["apply", "--server-side"], definition);
        let name = format!("crd/{}", definition["metadata"]["name"].as_str().expect("a name"));
        self.0.wait(CLUSTER, &["--for=condition=Established", &name]).expect("the kind is served");
    }

    /// A policy takes the place of the webhook: both change objects at the same point of a write.
    fn mutate(&self, object: &Value, fields: &[(&str, Value)]) {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).expect("a text").to_owned();
        let (name, version) = (text("/metadata/name"), text("/apiVersion"));
        let (group, version) = version.split_once('/').expect("a group");
        let patches = fields.iter().map(|(pointer, value)| {
            let value = match value {
                Value::Object(map) => {
                    let fields: Vec<String> =
                        map.iter().map(|(name, value)| format!("{name:?}: {value}")).collect();
                    format!("{{{}}}", fields.join(", "))
                }
                value => value.to_string(),
            };
            format!("JSONPatch{{op: \"add\", path: {pointer:?}, value: {value}}}")
        });
        let expression = format!("[{}]", patches.collect::<Vec<_>>().join(", "));
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": format!("behaviours-{name}")},
            "spec": {
                "failurePolicy": "Fail", "reinvocationPolicy": "Never",
                "matchConstraints": {"resourceRules": [{"apiGroups": [group], "apiVersions": [version],
                    "resources": [plural(object)], "operations": ["CREATE", "UPDATE"]}]},
                "matchConditions": [{"name": "one", "expression": format!("object.metadata.name == {name:?}")}],
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
            },
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": format!("behaviours-{name}")},
            "spec": {"policyName": format!("behaviours-{name}"),
                "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}}},
        });
        self.send(&["apply", "--server-side"], &policy);
        self.send(&["apply", "--server-side"], &binding);
        // Admission learns of its policies through watches, so this takes a moment.
        let started = Instant::now();
        let (pointer, wanted) = &fields[0];
        loop {
            let live = self.send(&["get", "-o", "json"], object);
            // Of a kind that was just defined, writes fail until admission knows it.
            let probe = self.try_send(&["replace", "--dry-run=server", "-o", "json"], &live);
            let probe = probe.map(|probe| serde_json::from_str::<Value>(&probe).expect("an object"));
            if probe.as_ref().is_ok_and(|probe| probe.pointer(pointer) == Some(wanted)) {
                break;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "{probe:?}");
        }
    }

    fn diff(&self, manifests: &str, rules: Option<&str>, more: &[&str]) -> DiffAnswer {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name).to_str().expect("it is UTF-8").to_owned();
        let (file, ignored) = (place("manifests.yaml"), place("rules.yaml"));
        fs::write(&file, manifests).expect("it can be written");
        let mut asked = vec!["diff", "--context", CLUSTER, "-f", &file];
        if let Some(rules) = rules {
            fs::write(&ignored, rules).expect("it can be written");
            asked.extend(["--ignore-rules", &ignored]);
        }
        asked.extend(more);
        let Answer { code, stdout, stderr, .. } = run(self.0.kubeconfig().as_os_str(), &asked);
        DiffAnswer { code, stdout, stderr }
    }
}

#[test]
fn equal_objects_are_unchanged() {
    let Some(stage) = stage() else { return };
    behaviours::equal_objects_are_unchanged(&stage);
}

#[test]
fn objects_of_one_side_have_defined_results() {
    let Some(stage) = stage() else { return };
    behaviours::objects_of_one_side_have_defined_results(&stage);
}

#[test]
fn each_object_is_compared_alone() {
    let Some(stage) = stage() else { return };
    behaviours::each_object_is_compared_alone(&stage);
}

#[test]
fn removed_fields_are_found_by_what_was_applied() {
    let Some(stage) = stage() else { return };
    behaviours::removed_fields_are_found_by_what_was_applied(&stage);
}

#[test]
fn live_objects_of_many_kinds_are_unchanged() {
    let Some(stage) = stage() else { return };
    behaviours::live_objects_of_many_kinds_are_unchanged(&stage);
}

#[test]
fn namespaces_of_the_destination_are_no_difference() {
    let Some(stage) = stage() else { return };
    behaviours::namespaces_of_the_destination_are_no_difference(&stage);
}

#[test]
fn unknown_fields_are_refused_by_name() {
    let Some(stage) = stage() else { return };
    behaviours::unknown_fields_are_refused_by_name(&stage);
}

#[test]
fn rules_of_aggregated_roles_are_ignored_on_demand() {
    let Some(stage) = stage() else { return };
    behaviours::rules_of_aggregated_roles_are_ignored_on_demand(&stage);
}

#[test]
fn empty_annotations_are_no_difference() {
    let Some(stage) = stage() else { return };
    behaviours::empty_annotations_are_no_difference(&stage);
}

#[test]
fn string_data_is_merged_into_data() {
    let Some(stage) = stage() else { return };
    behaviours::string_data_is_merged_into_data(&stage);
}

#[test]
fn empty_and_null_are_equal() {
    let Some(stage) = stage() else { return };
    behaviours::empty_and_null_are_equal(&stage);
}

#[test]
fn structured_merges_remove_what_is_no_longer_applied() {
    let Some(stage) = stage() else { return };
    behaviours::structured_merges_remove_what_is_no_longer_applied(&stage);
}

#[test]
fn additions_of_webhooks_count_on_demand() {
    let Some(stage) = stage() else { return };
    behaviours::additions_of_webhooks_count_on_demand(&stage);
}

#[test]
fn declared_fields_among_unknown_ones_are_kept() {
    let Some(stage) = stage() else { return };
    behaviours::declared_fields_among_unknown_ones_are_kept(&stage);
}

#[test]
fn masks_show_which_values_are_equal() {
    let Some(stage) = stage() else { return };
    behaviours::masks_show_which_values_are_equal(&stage);
}

#[test]
fn quantities_are_canonical() {
    let Some(stage) = stage() else { return };
    behaviours::quantities_are_canonical(&stage);
}

#[test]
fn ignored_fields_are_no_difference() {
    let Some(stage) = stage() else { return };
    behaviours::ignored_fields_are_no_difference(&stage);
}

#[test]
fn secrets_are_masked() {
    let Some(stage) = stage() else { return };
    behaviours::secrets_are_masked(&stage);
}

#[test]
fn versions_are_converted_by_the_server() {
    let Some(stage) = stage() else { return };
    behaviours::versions_are_converted_by_the_server(&stage);
}
