//! Behaviours of `taffrail diff` that `docs/behaviours.md` lists, on a simulated API server.

use std::time::Duration;

use serde_json::{Value, json};
use taffrail_cluster::{ApplyRequest, Cluster, Deadline, Kubeconfig};
use taffrail_object::GroupKind;
use taffrail_sim::{Fault, Trouble};
use taffrail_testkit::behaviours::{self, DiffAnswer, DiffStage, NAMESPACE};
use taffrail_testkit::objects;

use super::Answer;
use super::served::Served;

/// The annotation that holds what `kubectl apply` applied last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A simulated cluster.
pub(super) struct Simulated(pub(super) Served);

impl Simulated {
    pub(super) fn start() -> Simulated {
        Simulated(Served::start_with_managers(&["eu"], |_, cluster| {
            cluster.apply(objects::namespace(NAMESPACE)).unwrap();
        }))
    }

    pub(super) fn cluster(&self) -> &taffrail_sim::Cluster {
        &self.0.clusters[0]
    }
}

impl DiffStage for Simulated {
    fn apply(&self, manager: &str, object: &Value) {
        let applied = async {
            let config = Kubeconfig::load(Some(self.0.kubeconfig.as_ref()), None, None).unwrap();
            let deadline = Deadline::after(Duration::from_secs(60));
            let cluster = Cluster::connect(&config.current().unwrap(), deadline).await.unwrap();
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let (group, version) = text("/apiVersion").rsplit_once('/').unwrap_or(("", text("/apiVersion")));
            let kind = GroupKind::new(group, text("/kind"));
            let discovery = cluster.discover().await.unwrap();
            let served = discovery.kind(&kind.group, &kind.kind).unwrap_or_else(|| panic!("no {kind:?}"));
            let resource = served.in_version(version).unwrap_or_else(|| panic!("no {version} of {kind:?}"));
            let body = object.to_string();
            let request = ApplyRequest {
                resource: &resource,
                namespace: Some(NAMESPACE).filter(|_| resource.namespaced),
                name: text("/metadata/name"),
                subresource: None,
                body: body.as_bytes(),
                manager,
                force: true,
                dry_run: false,
                allow_secret: true,
            };
            cluster.apply(&request).await.unwrap_or_else(|error| panic!("{error:?}: {object:#}"));
        };
        self.0.runtime.block_on(applied);
    }

    fn apply_on_client_side(&self, object: &Value) {
        let mut annotated = object.clone();
        let annotations = &mut annotated["metadata"]["annotations"];
        annotations[LAST_APPLIED] = json!(object.to_string());
        self.cluster().apply_by(annotated, "kubectl-client-side-apply", "").unwrap();
    }

    fn update(&self, manager: &str, object: &Value, change: &dyn Fn(&mut Value)) {
        self.cluster().change_by(object, manager, "", change);
    }

    fn define(&self, definition: &Value) {
        self.cluster().apply(definition.clone()).unwrap();
    }

    fn mutate(&self, object: &Value, fields: &[(&str, Value)]) {
        let resource = match object["apiVersion"].as_str().unwrap().split_once('/') {
            Some((group, _)) => format!("{}s.{group}", object["kind"].as_str().unwrap().to_lowercase()),
            None => format!("{}s", object["kind"].as_str().unwrap().to_lowercase()),
        };
        for (pointer, value) in fields {
            let patch = pointer.rsplit('/').filter(|name| !name.is_empty());
            let patch = patch.fold(value.clone(), |value, name| json!({name: value}));
            self.cluster().fault(Fault::new(Trouble::MutatingWebhook(patch)).resource(&resource));
        }
    }

    fn diff(&self, manifests: &str, rules: Option<&str>, more: &[&str]) -> DiffAnswer {
        let place = |name: &str| self.0.folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(place("manifests.yaml"), manifests).unwrap();
        let (manifests, file) = (place("manifests.yaml"), place("rules.yaml"));
        let mut asked = vec!["diff", "-f", &manifests];
        if let Some(rules) = rules {
            std::fs::write(&file, rules).unwrap();
            asked.extend(["--ignore-rules", &file]);
        }
        asked.extend(more);
        let Answer { code, stdout, stderr } = super::taffrail(&self.0.all(&asked), "");
        DiffAnswer { code, stdout, stderr }
    }
}

#[test]
fn equal_objects_are_unchanged() {
    behaviours::equal_objects_are_unchanged(&Simulated::start());
}

#[test]
fn objects_of_one_side_have_defined_results() {
    behaviours::objects_of_one_side_have_defined_results(&Simulated::start());
}

#[test]
fn each_object_is_compared_alone() {
    behaviours::each_object_is_compared_alone(&Simulated::start());
}

#[test]
fn removed_fields_are_found_by_what_was_applied() {
    behaviours::removed_fields_are_found_by_what_was_applied(&Simulated::start());
}

#[test]
fn live_objects_of_many_kinds_are_unchanged() {
    behaviours::live_objects_of_many_kinds_are_unchanged(&Simulated::start());
}

#[test]
fn namespaces_of_the_destination_are_no_difference() {
    behaviours::namespaces_of_the_destination_are_no_difference(&Simulated::start());
}

#[test]
fn unknown_fields_are_refused_by_name() {
    behaviours::unknown_fields_are_refused_by_name(&Simulated::start());
}

#[test]
fn rules_of_aggregated_roles_are_ignored_on_demand() {
    behaviours::rules_of_aggregated_roles_are_ignored_on_demand(&Simulated::start());
}

#[test]
fn empty_annotations_are_no_difference() {
    behaviours::empty_annotations_are_no_difference(&Simulated::start());
}

#[test]
fn string_data_is_merged_into_data() {
    behaviours::string_data_is_merged_into_data(&Simulated::start());
}

#[test]
fn empty_and_null_are_equal() {
    behaviours::empty_and_null_are_equal(&Simulated::start());
}

#[test]
fn structured_merges_remove_what_is_no_longer_applied() {
    behaviours::structured_merges_remove_what_is_no_longer_applied(&Simulated::start());
}

#[test]
fn additions_of_webhooks_count_on_demand() {
    behaviours::additions_of_webhooks_count_on_demand(&Simulated::start());
}

#[test]
fn declared_fields_among_unknown_ones_are_kept() {
    behaviours::declared_fields_among_unknown_ones_are_kept(&Simulated::start());
}

#[test]
fn masks_show_which_values_are_equal() {
    behaviours::masks_show_which_values_are_equal(&Simulated::start());
}

#[test]
fn quantities_are_canonical() {
    behaviours::quantities_are_canonical(&Simulated::start());
}

#[test]
fn ignored_fields_are_no_difference() {
    behaviours::ignored_fields_are_no_difference(&Simulated::start());
}

#[test]
fn secrets_are_masked() {
    behaviours::secrets_are_masked(&Simulated::start());
}
