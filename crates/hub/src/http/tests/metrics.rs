//! `/metrics`.

use super::*;

async fn metrics(fleet: &SampleFleet) -> String {
    let response = open_router(fleet)
        .oneshot(http::Request::get("/metrics").body(Body::empty()).unwrap())
        .await
        .unwrap();
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn apps_have_series_of_their_own_only_while_they_are_not_well() {
    let fleet = fleet();
    let text = metrics(&fleet).await;
    let of = |family: &str| {
        let own = text.lines().filter(|line| line.starts_with(&format!("{family}{{")));
        own.filter(|line| !line.ends_with(" 0")).map(str::to_owned).collect::<Vec<_>>()
    };
    let expected = [
        "taffrail_app_units{app=\"shop/db\",state=\"Failed\"} 1",
        "taffrail_app_units{app=\"shop/web\",state=\"InProgress\"} 1",
        "taffrail_app_units{app=\"shop/web\",state=\"Current\"} 1",
    ];
    assert_eq!(of("taffrail_app_units"), expected);
    assert_eq!(of("taffrail_app_state"), ["taffrail_app_state{app=\"shop/web\",cluster=\"us-1\"} 4"]);
    assert!(text.contains("taffrail_app_state{app=\"shop/db\",cluster=\"eu-1\"} 0\n"));
    assert_eq!(of("taffrail_cluster_problems").len(), 2);
    fleet.pass(200);
    let text = metrics(&fleet).await;
    assert!(text.contains("taffrail_cluster_freshness{cluster=\"eu-1\"} 2\n"), "{text}");
    assert!(text.contains("taffrail_app_units{app=\"shop/web\",state=\"Unknown\"} 2\n"), "{text}");
}

/// Clusters may declare apps of one name for the same cluster.
#[tokio::test]
async fn two_apps_of_one_key_in_a_cluster_count_once_as_the_worse_one() {
    let fleet = fleet();
    let other = app("us-1", "shop/other");
    fleet.change("us-1", "observer", vec![declared(&other, "eu-1", |half| half.key = "shop/web".to_owned())]);
    fleet.change("eu-1", "observer", vec![observed(&other, Status::Failed, "crashes")]);
    fleet.index.publish();
    let text = metrics(&fleet).await;
    let units = |state: &str| {
        let start = format!("taffrail_app_units{{app=\"shop/web\",state=\"{state}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&start)).unwrap().to_owned()
    };
    assert_eq!(["Failed", "InProgress", "Current"].map(units), ["1", "1", "0"]);
}

#[tokio::test]
async fn time_from_change_to_answer_is_a_histogram() {
    let fleet = fleet();
    fleet.change("eu-1", "observer", vec![observed(&app("eu-1", "shop/web"), Status::Failed, "crashes")]);
    fleet.pass(2);
    fleet.index.publish();
    let text = metrics(&fleet).await;
    let at = |end: &str| {
        let start = format!("taffrail_hub_change_visible_seconds_bucket{{le=\"{end}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&start)).unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(at("2.5") - at("1"), 1, "{text}");
    assert_eq!(at("+Inf"), at("30"));
    assert!(text.contains("taffrail_hub_reports_total 5\n"), "{text}");
}

#[tokio::test]
async fn hostile_names_break_no_line_and_make_no_series_twice() {
    let fleet = SampleFleet::new().with("a\"}\n# x \\", &[("shop/web", Status::Failed, "")]);
    fleet.open("twin", "observer");
    fleet.facts("twin", "observer", |facts| facts.name = "a\"}\n# x \\".to_owned(), Vec::new());
    // The name of one is the name and identity of others.
    for (cluster, name) in [("other", "eu (9)"), ("eu", "eu"), ("9", "eu")] {
        fleet.open(cluster, "observer");
        fleet.facts(cluster, "observer", |facts| facts.name = name.to_owned(), Vec::new());
    }
    fleet.index.publish();
    let text = metrics(&fleet).await;
    assert!(text.contains("taffrail_cluster_freshness{cluster=\"a\\\"}\\n# x \\\\\"} 0\n"), "{text}");
    let series: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(' '))
        .map(|it| it.0)
        .collect();
    let different: std::collections::BTreeSet<&&str> = series.iter().collect();
    assert_eq!(series.len(), different.len());
}
