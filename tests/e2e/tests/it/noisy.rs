//! Noisy apps, looked at again and again: the short form of `cargo xtask truth`.

use xtask::truth;

use crate::harness::{CLUSTER, built, plane};

#[test]
fn no_look_at_a_noisy_app_is_wrong() {
    let Some(plane) = plane() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let options = truth::Options {
        plane,
        context: CLUSTER,
        taffrail: built(),
        seconds: 30,
        log: &folder.path().join("looks.jsonl"),
    };
    let report = truth::look(&options).unwrap_or_else(|error| panic!("{error:#}"));
    assert!(report.wrong.is_empty(), "{report}");
    // A run in which nothing happened would have shown nothing. On a busy machine there are few looks, so any will do.
    assert!(
        ["evicted", "zero", "paused", "mended"].iter().any(|app| report.moved(app)),
        "nothing moved\n{report}"
    );
}
