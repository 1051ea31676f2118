//! Tests of real Helm releases.

use anyhow::ensure;
use taffrail_testkit::examples::install_notes;

use crate::harness::CLUSTER;
use crate::stage::Stage;

fn helm_release_from_install_to_failed_upgrade(stage: &mut Stage) {
    stage.act(|plane| install_notes(plane, CLUSTER, "notes-e2e", &[]));
    stage
        .look()
        .row(CLUSTER, "helm", "notes-e2e", "notes")
        .is("/health", "Current")
        .is("/sync/state", "Synced")
        .is("/sync/applied", "notes-1.4.0")
        .is("/message", "notes-1.4.0, revision 1")
        .is("/objects", 4);

    // helm stops waiting for crashing Pods, and records that in its storage.
    stage.act(|plane| {
        let crash = ["--set", "simulate=crash-loop", "--timeout=3s"];
        let upgrade = install_notes(plane, CLUSTER, "notes-e2e", &crash);
        ensure!(upgrade.is_err(), "helm must not call a crash loop ready");
        Ok(())
    });
    let failed = stage.look();
    let row = failed.row(CLUSTER, "helm", "notes-e2e", "notes");
    row.is("/sync/state", "Failed");
    assert_ne!(row.text("/health"), "Current", "{failed}");

    stage.act(|plane| plane.helm(CLUSTER, &["uninstall", "notes", "-n", "notes-e2e", "--wait"]).map(drop));
    let gone = stage.look();
    assert!(gone.rows().iter().all(|row| row["namespace"] != "notes-e2e"), "{gone}");
}

scenarios![1: helm_release_from_install_to_failed_upgrade];
