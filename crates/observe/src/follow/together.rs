//! Tests of the order in which many clusters are read.

use std::time::Duration;

use taffrail_cluster::Memory;
use taffrail_sim::Fleet;
use taffrail_testkit::objects::{kustomizations, namespace};

use super::plan::BEGUN_AT_ONCE;
use super::share::tests::{app, follow, until};
use crate::look::NO_EXTRA;

#[tokio::test(flavor = "multi_thread")]
async fn few_clusters_begin_at_once_and_none_is_left_out() {
    let fleet = Fleet::builder().verbatim(true).controllers(false).start().await.unwrap();
    let mut clusters = Vec::new();
    for number in 0..2 * BEGUN_AT_ONCE {
        let cluster = fleet.cluster(&format!("cluster-{number}")).await.unwrap();
        cluster.apply(kustomizations()).unwrap();
        cluster.apply(namespace("shop")).unwrap();
        cluster.seed(app(10)).unwrap();
        clusters.push(cluster);
    }
    let mut follow = follow(&clusters, &Memory::of(64 << 20)).await;
    while follow.clusters.iter().any(|cluster| cluster.feeds.is_none()) {
        follow.next(Duration::from_millis(50)).await;
    }
    assert!(follow.plan(NO_EXTRA), "answers are awaited");
    let begun = follow.clusters.iter().filter(|cluster| cluster.plans > 0).count();
    assert!((1..=BEGUN_AT_ONCE).contains(&begun), "{begun} clusters have begun");
    assert!(follow.is_partly_planned);
    until(&mut follow, super::FleetWatcher::is_whole).await;
    assert_eq!(follow.fleet().apps(&[]).apps.len(), clusters.len());
}
