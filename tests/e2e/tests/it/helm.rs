//! Real Helm releases.

use xtask::examples::install_notes;

use crate::harness::{CLUSTER, apps, plane};

#[test]
fn a_release_from_its_install_to_an_upgrade_that_fails() {
    let Some(plane) = plane() else { return };
    install_notes(plane, CLUSTER, "notes-e2e", &[]).expect("helm installs the chart");
    apps(plane.kubeconfig(), &["--context", CLUSTER])
        .row(CLUSTER, "helm", "notes-e2e", "notes")
        .is("/health", "Current")
        .is("/sync/state", "Synced")
        .is("/sync/applied", "notes-1.4.0")
        .is("/message", "notes-1.4.0, revision 1")
        .is("/objects", 4);

    // helm gives up waiting for Pods that crash, and says so in its storage.
    let upgrade =
        install_notes(plane, CLUSTER, "notes-e2e", &["--set", "simulate=crash-loop", "--timeout=3s"]);
    assert!(upgrade.is_err(), "helm must not call a crash loop ready");
    let failed = apps(plane.kubeconfig(), &["--context", CLUSTER]);
    let row = failed.row(CLUSTER, "helm", "notes-e2e", "notes");
    row.is("/sync/state", "Failed");
    assert_ne!(row.text("/health"), "Current", "{failed}");

    plane.helm(CLUSTER, &["uninstall", "notes", "-n", "notes-e2e", "--wait"]).expect("helm uninstalls");
    let gone = apps(plane.kubeconfig(), &["--context", CLUSTER]);
    assert!(gone.rows().iter().all(|row| row["namespace"] != "notes-e2e"), "{gone}");
}
