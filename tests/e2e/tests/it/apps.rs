//! Tests of apps shaped like Flux', and of label groups.

use crate::harness::CLUSTER;
use crate::stage::Stage;

const NEWEST: &str = "main@sha1:3f1c9a7be1d84a0c5e7d2b96f80a41c2d7e5b613";
const BEFORE: &str = "main@sha1:a90d24ce7b3f41d8860f5c12e94b7a63d0f1c85e";

fn a_kustomization_that_is_well(stage: &mut Stage) {
    stage.example("shop");
    let apps = stage.look();
    apps.row(CLUSTER, "flux-kustomization", "flux-system", "shop")
        .is("/health", "Current")
        .is("/effective", "Current")
        .is("/sync/state", "Synced")
        .is("/sync/applied", NEWEST)
        .is("/objects", 4)
        .is("/suspended", false)
        .has("/message", "Applied revision: main@sha1:");
    // Objects in an inventory make no second row, whatever labels they have.
    assert!(apps.rows().iter().all(|row| row["namespace"] != "shop"), "{apps}");
}

fn a_kustomization_whose_deployment_crashes(stage: &mut Stage) {
    stage.example("checkout");
    let apps = stage.look();
    let row = apps.row(CLUSTER, "flux-kustomization", "flux-system", "checkout");
    row.is("/health", "Failed").is("/sync/state", "Failed").is("/sync/applied", BEFORE).is("/objects", 3);
    assert!(!row.text("/message").is_empty(), "{apps}");
}

fn a_kustomization_that_lost_an_object(stage: &mut Stage) {
    stage.example("billing");
    stage
        .look()
        .row(CLUSTER, "flux-kustomization", "flux-system", "billing")
        .is("/health", "NotFound")
        .is("/sync/state", "Synced")
        .is("/objects", 4)
        .speaks("", "ConfigMap", "billing", "rates");
}

fn a_suspended_kustomization_keeps_its_health(stage: &mut Stage) {
    stage.example("reports");
    stage
        .look()
        .row(CLUSTER, "flux-kustomization", "flux-system", "reports")
        .is("/health", "Current")
        .is("/sync/state", "Suspended")
        .is("/sync/applied", BEFORE)
        .is("/suspended", true)
        .is("/objects", 3);
}

fn labels_make_an_app_of_declared_objects_only(stage: &mut Stage) {
    stage.example("wiki");
    // Its ReplicaSet, Pods and EndpointSlice have the label too, but are not declared.
    stage
        .look()
        .row(CLUSTER, "label", "wiki", "wiki")
        .is("/health", "Current")
        .is("/sync/state", "Unknown")
        .is("/objects", 3);
}

scenarios![1: a_kustomization_that_is_well, a_kustomization_whose_deployment_crashes, a_kustomization_that_lost_an_object, a_suspended_kustomization_keeps_its_health, labels_make_an_app_of_declared_objects_only];
