//! Tests with several clusters, some of which do not respond.

use crate::harness::CLUSTER;
use crate::stage::{Stage, Who};

const SECOND: &str = "kube-2";

fn all_contexts_shows_the_rows_of_each_cluster(stage: &mut Stage) {
    for context in [CLUSTER, SECOND] {
        stage.example_on(context, "wiki");
    }
    let apps = stage.apps(Who::Admin, &["--all-contexts"]);
    assert_eq!(apps.code(), 0, "{apps}");
    for context in [CLUSTER, SECOND] {
        apps.row(context, "label", "wiki", "wiki").is("/health", "Current");
    }
}

fn silent_cluster_leaves_the_rows_of_the_other(stage: &mut Stage) {
    stage.example("wiki");
    stage.silence_second();
    let apps = stage.apps(Who::Admin, &["--all-contexts", "--timeout", "2s"]);
    assert_eq!(apps.code(), 3, "{apps}");
    apps.row(CLUSTER, "label", "wiki", "wiki").is("/health", "Current");
    assert!(
        apps.rows().iter().all(|row| row["cluster"] != SECOND || row["effective"] != "Current"),
        "{apps}"
    );
    assert!(apps.errors().iter().any(|error| error["cluster"] == SECOND), "{apps}");
}

scenarios![2: all_contexts_shows_the_rows_of_each_cluster, silent_cluster_leaves_the_rows_of_the_other];
