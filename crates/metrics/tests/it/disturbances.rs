//! Bad input: nothing that a server answers makes a row green that is not known to be.

use std::fmt::Write as _;
use std::time::Duration;

use taffrail_apps::{ClusterId, FreshnessState};
use taffrail_metrics::MetricsEvent;
use taffrail_status::Status;

use crate::stage::{Stage, TARGET};

const GREEN: &str =
    r#"argocd_app_info{namespace="argocd",name="shop",health_status="Healthy",sync_status="Synced"} 1"#;

/// A stage with one green app.
async fn green() -> Stage {
    let mut stage = Stage::new().await;
    stage.scrapes(GREEN, 4).await;
    assert_eq!(stage.state(), "live Current");
    assert!(stage.is_any_green());
    stage
}

/// Lets time pass with reads at intervals of 15 s, in which nothing is scraped.
async fn wait(stage: &mut Stage, reads: usize) {
    for _ in 0..reads {
        stage.read().await;
        stage.pass(13);
    }
}

#[tokio::test]
async fn old_data_is_stale_after_45_s_and_lost_after_150_s() {
    let mut stage = green().await;
    let scraped = stage.prometheus.state().now - 15.0;
    let mut seen = Vec::new();
    while stage.prometheus.state().now < scraped + 160.0 {
        stage.read().await;
        let age = stage.prometheus.state().now - scraped;
        seen.push((age, stage.state()));
        stage.pass(1);
    }
    for (age, state) in seen {
        let expected = match age {
            _ if age <= 45.0 => "live Current",
            _ if age <= 150.0 => "stale Unknown",
            _ => "lost Unknown",
        };
        // A change is told within two seconds.
        let is_turning = [45.0, 150.0].into_iter().any(|end| age > end && age <= end + 2.0);
        assert!(is_turning || state == expected, "{state} at the age of {age} s");
    }
}

#[tokio::test]
async fn slow_scrapes_have_a_window_of_three_intervals() {
    let mut stage = Stage::new().await;
    for _ in 0..5 {
        stage.prometheus.scrape(TARGET, GREEN);
        wait(&mut stage, 4).await;
    }
    // 60 s between two scrapes, and 60 s since the last one.
    assert_eq!(stage.state(), "live Current");
    wait(&mut stage, 7).await;
    assert_eq!(stage.state(), "live Current", "after 165 s");
    wait(&mut stage, 2).await;
    assert_eq!(stage.state(), "lost Unknown", "after 195 s");
    let told = [45, 180].map(|seconds| MetricsEvent::Window { window: Duration::from_secs(seconds) });
    assert_eq!(stage.windows[..2], told);
}

#[tokio::test]
async fn outages_of_the_server_do_not_lengthen_the_window() {
    let mut stage = green().await;
    let down = || (String::new(), 503, "no healthy upstream".to_owned());
    for _ in 0..6 {
        // The server goes on scraping, and the hub sees the last scrape alone.
        stage.prometheus.state().answers.push(down());
        wait(&mut stage, 7).await;
        stage.prometheus.state().answers.clear();
        stage.scrapes(GREEN, 2).await;
    }
    // So does a hub that slept.
    for _ in 0..6 {
        stage.pass(120);
        stage.scrape(GREEN).await;
    }
    assert_eq!(stage.windows, [MetricsEvent::Window { window: Duration::from_secs(45) }]);
    wait(&mut stage, 4).await;
    assert_eq!(stage.state(), "stale Unknown");
}

#[tokio::test]
async fn row_between_scrapes_and_reads_that_are_far_from_each_other_stays_live() {
    let mut stage = Stage::new().await;
    stage.scrapes(GREEN, 3).await;
    for _ in 0..10 {
        // Each read sees a sample of 14 s before, and the next one comes 15 s later.
        stage.prometheus.scrape(TARGET, GREEN);
        for _ in 0..12 {
            stage.pass(1);
            assert_eq!(stage.state(), "live Current");
        }
        stage.read().await;
        stage.pass(1);
    }
}

#[tokio::test]
async fn target_that_is_down_is_stale_at_once() {
    let mut stage = green().await;
    stage.prometheus.state().fail(TARGET);
    stage.read().await;
    assert_eq!(stage.state(), "stale Unknown");
    assert!(!stage.is_any_green());
    stage.scrapes(GREEN, 2).await;
    assert_eq!(stage.state(), "live Current");
}

#[tokio::test]
async fn dropped_and_renamed_series_leave_the_row_and_not_its_green() {
    for text in ["other_metric 1", &GREEN.replace("argocd_app_info", "argocd_application_info")] {
        let mut stage = green().await;
        stage.scrapes(text, 4).await;
        assert_eq!(stage.row().health, Status::Current);
        assert!(!stage.is_any_green(), "{}", stage.table());
    }
    // A renamed label tells nothing any more.
    let mut stage = green().await;
    stage.scrapes(&GREEN.replace("health_status", "health"), 4).await;
    assert_eq!(stage.row().effective, Status::Unknown);
}

#[tokio::test]
async fn absence_is_never_green() {
    let mut stage = Stage::new().await;
    stage.scrapes("", 4).await;
    assert_eq!(stage.rows(), []);
    assert!(stage.hub.is_empty());
}

#[tokio::test]
async fn newest_of_doubled_series_counts_and_of_equally_new_ones_the_worst() {
    let red = GREEN.replace("Healthy", "Degraded");
    let other = r#"job="tool",instance="10.0.0.2:80",cluster="eu""#;
    let mut stage = green().await;
    stage.prometheus.scrape(other, &red);
    stage.pass(1);
    stage.scrape(GREEN).await;
    assert_eq!(stage.state(), "live Current");
    stage.pass(1);
    stage.prometheus.scrape(other, &red);
    stage.read().await;
    assert_eq!(stage.state(), "live Failed");
    stage.prometheus.scrape(other, &red);
    stage.prometheus.scrape(TARGET, GREEN);
    stage.read().await;
    assert_eq!(stage.state(), "live Failed");
    // Both in one text, as labels that changed leave them.
    let mut stage = Stage::new().await;
    let both = format!("{GREEN}\n{}", red.replace("namespace", "project=\"x\",namespace"));
    stage.scrapes(&both, 2).await;
    assert_eq!(stage.state(), "live Failed");
}

#[tokio::test]
async fn no_other_job_makes_a_red_app_green_however_new_its_series_are() {
    let red = GREEN.replace("Healthy", "Degraded");
    let mut stage = green().await;
    for _ in 0..3 {
        stage.prometheus.scrape(r#"job="other",instance="10.0.0.3:80",cluster="eu""#, &red);
        stage.pass(1);
        stage.scrape(GREEN).await;
    }
    assert_eq!(stage.state(), "live Failed");
}

#[tokio::test]
async fn health_that_argo_cd_keeps_of_a_cluster_that_it_cannot_reach_is_unknown() {
    let mut stage = green().await;
    stage.scrape(&GREEN.replace("Synced", "Unknown")).await;
    assert_eq!(stage.state(), "live Unknown");
}

#[tokio::test]
async fn contradicting_states_of_one_object_tell_nothing() {
    let condition = |status: &str, value: u8| {
        format!(
            "gotk_reconcile_condition{{kind=\"Kustomization\",name=\"a\",namespace=\"b\",type=\"Ready\",status=\"{status}\"}} {value}\n"
        )
    };
    for (is_true, is_false) in [(1, 1), (0, 0)] {
        let mut stage = Stage::new().await;
        stage.scrapes(&(condition("True", is_true) + &condition("False", is_false)), 3).await;
        assert!(!stage.is_any_green());
    }
}

#[tokio::test]
async fn late_samples_are_as_old_as_their_times() {
    let mut stage = Stage::new().await;
    for _ in 0..3 {
        let late = (stage.prometheus.state().now - 60.0) * 1_000.0;
        stage.scrape(&format!("{GREEN} {late}")).await;
        stage.pass(13);
    }
    assert_eq!(stage.state(), "stale Unknown");
    // An older answer than the last one changes nothing.
    let mut stage = green().await;
    let late = (stage.prometheus.state().now - 20.0) * 1_000.0;
    stage.scrape(&format!("{} {late}", GREEN.replace("Healthy", "Degraded"))).await;
    assert_eq!(stage.state(), "live Current");
}

#[tokio::test]
async fn numbers_that_are_none_are_counted_and_not_green() {
    for value in ["NaN", "+Inf", "-Inf"] {
        let mut stage = Stage::new().await;
        stage
            .scrapes(
                &format!(
                    "{GREEN}\nargocd_app_info{{namespace=\"x\",name=\"y\",health_status=\"Healthy\"}} {value}"
                ),
                2,
            )
            .await;
        assert_eq!(stage.rows().len(), 1);
        assert!(stage.errors()[0].message.contains("1 series are left out"), "{:?}", stage.errors());
    }
}

#[tokio::test]
async fn million_series_are_refused_and_what_was_known_is_not_live() {
    let mut stage = green().await;
    let mut body = String::from(r#"{"status":"success","data":{"resultType":"vector","result":["#);
    for number in 0..1_000_000 {
        let comma = if number == 0 { "" } else { "," };
        write!(body, r#"{comma}{{"metric":{{"name":"a{number}"}},"value":[1,"1"]}}"#).unwrap();
    }
    body += "]}}";
    assert!(body.len() < 64 << 20);
    stage.prometheus.state().answers.push(("argocd_app_info".to_owned(), 200, body));
    stage.scrape(GREEN).await;
    assert_eq!(stage.state(), "stale Unknown");
    let [error] = &stage.errors()[..] else { panic!("{:?}", stage.errors()) };
    assert_eq!((&*error.reason, &*error.scope), ("TooManySeries", "metrics of argo-cd"));
    assert!(error.message.contains("more than 150000 series"), "{}", error.message);
    // A longer one is not even read to its end.
    let body = " ".repeat((64 << 20) + 1);
    stage.prometheus.state().answers[0] = ("argocd_app_info".to_owned(), 200, body);
    stage.scrape(GREEN).await;
    assert!(stage.errors()[0].message.contains("longer than"), "{:?}", stage.errors());
    stage.prometheus.state().answers.clear();
    stage.scrapes(GREEN, 2).await;
    assert_eq!(stage.state(), "live Current");
    assert_eq!(stage.errors(), []);
}

/// Answers that are errors: their HTTP status, body, and the reason that the hub shows.
const ERRORS: [(u16, &str, &str, &str); 8] = [
    // Prometheus and its proxies.
    (
        200,
        r#"{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}"#,
        "Refused",
        "query timed out",
    ),
    (
        503,
        r#"{"status":"error","errorType":"timeout","error":"query timed out"}"#,
        "Refused",
        "query timed out",
    ),
    (200, "<html>log in</html>", "Malformed", "not one of Prometheus' API"),
    (200, r#"{"status":"success"}"#, "Malformed", "without data"),
    (200, r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#, "Malformed", "not one of"),
    // Mimir, without and with a wrong tenant.
    (401, "no org id\n", "Forbidden", "no org id"),
    (403, "the request is not allowed for this tenant", "Forbidden", "not allowed"),
    // Thanos, if its partial responses are switched off.
    (
        500,
        r#"{"status":"error","errorType":"internal","error":"expanding series: proxy Series(): rpc error: code = Aborted desc = fetch series"}"#,
        "Refused",
        "fetch series",
    ),
];

#[tokio::test]
async fn errors_in_place_of_data_are_told_and_leave_nothing_live() {
    for (status, body, reason, text) in ERRORS {
        let mut stage = green().await;
        stage.prometheus.state().answers.push((String::new(), status, body.to_owned()));
        stage.scrape(GREEN).await;
        let errors = stage.errors();
        assert_eq!(errors[0].reason, reason, "{errors:?}");
        assert!(errors[0].message.contains(text), "{errors:?}");
        let [MetricsEvent::Failed { scope: None, message, hint }] = &stage.events[..] else {
            panic!("{:?}", stage.events)
        };
        assert!(message.contains(text) && hint.is_some() == (reason == "Forbidden"));
        wait(&mut stage, 4).await;
        assert!(!stage.is_any_green());
        assert!(stage.hub[&ClusterId("metrics:eu".to_owned())].facts().lost.is_some());
        stage.prometheus.state().answers.clear();
        stage.scrapes(GREEN, 3).await;
        assert_eq!(stage.state(), "live Current");
        assert_eq!(stage.events.last(), Some(&MetricsEvent::Recovered));
        // Only one family.
        stage.prometheus.state().answers.push((
            "timestamp(argocd_app_info".to_owned(),
            status,
            body.to_owned(),
        ));
        stage.scrape(GREEN).await;
        assert_eq!(stage.state(), "stale Unknown", "{body}");
    }
}

#[tokio::test]
async fn warnings_and_partial_answers_leave_the_scope_not_live() {
    let thanos = "receive series from Addr: 10.0.0.9:10901 LabelSets: {cluster=\\\"eu\\\"}: rpc error: code = Unavailable";
    for query in ["argocd_app_info", "timestamp(argocd_app_info"] {
        let mut stage = green().await;
        stage.prometheus.state().warnings.push((query.to_owned(), thanos.to_owned()));
        stage
            .scrape(
                &(GREEN.to_owned()
                    + "\ngotk_suspend_status{kind=\"Kustomization\",name=\"a\",namespace=\"b\"} 0"),
            )
            .await;
        let rows = stage.rows();
        let (argo, flux) = (&rows[1], &rows[0]);
        assert_eq!(argo.freshness.state, FreshnessState::Stale, "{}", stage.table());
        assert_eq!(argo.sync.freshness.state, FreshnessState::Stale);
        assert_eq!(flux.sync.freshness.state, FreshnessState::Live);
        assert_eq!(stage.errors()[0].reason, "Partial");
        stage.prometheus.state().warnings.clear();
        stage.scrapes(GREEN, 2).await;
        assert_eq!(stage.rows()[1].freshness.state, FreshnessState::Live);
    }
}

/// Answers as Thanos' querier and Mimir's query-frontend write them, to a query for values and to one for times; NOW stands
/// for the time of the server.
const WHOLE: [&str; 2] = [
    r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"argocd_app_info","cluster":"eu","health_status":"Healthy","instance":"10.0.0.1:80","job":"tool","name":"shop","namespace":"argocd","sync_status":"Synced"},"value":[NOW,"1"]}],"analysis":{}}}"#,
    r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"cluster":"eu","health_status":"Healthy","instance":"10.0.0.1:80","job":"tool","name":"shop","namespace":"argocd","sync_status":"Synced"},"value":[NOW,"NOW"]}],"analysis":{}}}"#,
];

#[tokio::test]
async fn recorded_replies_of_thanos_and_mimir_are_whole_or_partial() {
    let warned = |warnings: &str| {
        WHOLE.map(|body| body.replace("\"analysis\":{}}", &format!("\"analysis\":{{}}}},{warnings}")))
    };
    let thanos = r#""warnings":["No StoreAPIs matched for this query","fetch series for {cluster=\"eu\"} 10.0.0.9:10901: rpc error: code = Unavailable desc = connection refused"]"#;
    let mimir = r#""infos":["PromQL info: metric might not be a counter, name does not end in _total"]"#;
    for (bodies, state) in [
        (WHOLE.map(str::to_owned), "live Current"),
        (warned(thanos), "stale Unknown"),
        (warned(r#""warnings":[]"#), "live Current"),
        (warned(r#""warnings":null"#), "live Current"),
        (warned(mimir), "live Current"),
        // VictoriaMetrics, whose API is Prometheus', too.
        (warned(r#""isPartial":true"#), "stale Unknown"),
    ] {
        let mut stage = Stage::new().await;
        for _ in 0..3 {
            stage.prometheus.scrape(TARGET, "other 1");
            let now = stage.prometheus.state().now.to_string();
            let [values, times] = bodies.clone().map(|body| body.replace("NOW", &now));
            let answers = [("timestamp(argocd_app_info", times), ("argocd_app_info", values)];
            let answers = answers.map(|(query, body)| (query.to_owned(), 200, body));
            stage.prometheus.state().answers = answers.into();
            stage.read().await;
            stage.pass(13);
        }
        assert_eq!(stage.state(), state, "{}", bodies[0]);
    }
}

#[tokio::test]
async fn answer_of_a_cache_is_as_old_as_the_clock_in_it() {
    let mut stage = green().await;
    let frozen = stage.prometheus.state().now;
    let mut was_green = Vec::new();
    for _ in 0..8 {
        stage.scrape(GREEN).await;
        stage.prometheus.state().now = frozen;
        stage.pass(13);
        stage.prometheus.state().now = frozen;
        was_green.push(stage.is_any_green());
    }
    assert!(was_green[0] && was_green[4..].iter().all(|is_green| !is_green), "{was_green:?}");
}

#[tokio::test]
async fn cluster_that_a_closer_source_knows_is_joined_by_its_name_or_identity() {
    let known = [("eu", "uid-eu"), ("uid-us", "uid-us")];
    let mut stage = Stage::with("", &known).await;
    for (cluster, name) in [("eu", "shop"), ("uid-us", "pay"), ("alone", "x")] {
        let target = format!(r#"job="tool",instance="1:80",cluster="{cluster}""#);
        stage.prometheus.scrape(&target, &GREEN.replace("shop", name));
    }
    stage.read().await;
    let ids: Vec<&str> = stage.hub.keys().map(|id| &*id.0).collect();
    assert_eq!(ids, ["metrics:alone", "uid-eu", "uid-us"]);
    for row in stage.rows() {
        assert_eq!(row.effective, Status::Current);
    }
}

#[tokio::test]
async fn hostile_labels_reach_no_further_than_their_own_cluster() {
    let long = "x".repeat(10_000);
    let mut stage = green().await;
    for name in ["", "a\nb", "\u{1b}[31m", &long, "\u{0}"] {
        let name = name.replace('\n', "\\n");
        let target = format!(r#"job="tool",instance="1:80",cluster="{name}""#);
        stage.prometheus.scrape(&target, GREEN);
    }
    let text = format!(
        "{GREEN}\nargocd_app_info{{namespace=\"a\",name=\"{long}\",health_status=\"Healthy\"}} 1\n\
         argocd_app_info{{namespace=\"a\\nb\",name=\"c\",health_status=\"Healthy\"}} 1\n\
         argocd_app_info{{namespace=\"a\",name=\"\",health_status=\"Healthy\"}} 1\n\
         argocd_app_info{{namespace=\"a\",name=\"odd\",health_status=\"{long}\",sync_status=\"\\u001b\"}} 1"
    );
    stage.scrapes(&text, 2).await;
    let ids: Vec<&str> = stage.hub.keys().map(|id| &*id.0).collect();
    assert_eq!(ids, ["metrics:eu"]);
    let rows = stage.rows();
    assert_eq!(rows.len(), 2);
    assert_eq!((&*rows[0].name, rows[0].effective), ("odd", Status::Unknown));
    assert!(rows[0].message.len() <= 4_096);
    assert_eq!(rows[1].effective, Status::Current);
    // What is left out is told, and makes no cluster unknown.
    assert_eq!(stage.hub.values().next().unwrap().facts().blind, None);
    assert_eq!(stage.errors().len(), 3, "{:?}", stage.errors());
}

#[tokio::test]
async fn server_that_cannot_be_reached_is_told_and_its_clusters_become_lost() {
    let mut stage = green().await;
    stage.prometheus.stop();
    wait(&mut stage, 2).await;
    assert!(matches!(&stage.events[..], [MetricsEvent::Failed { scope: None, .. }]), "{:?}", stage.events);
    wait(&mut stage, 2).await;
    assert_eq!(stage.state(), "stale Unknown");
    wait(&mut stage, 8).await;
    assert_eq!(stage.state(), "lost Unknown");
    assert_eq!(stage.row().health, Status::Current);
}

#[tokio::test]
async fn vanished_app_is_dropped_after_an_hour_and_not_while_its_target_is_down() {
    let mut stage = green().await;
    stage.scrapes("other 1", 4).await;
    assert_eq!(stage.rows().len(), 1);
    stage.now += Duration::from_secs(3_600);
    stage.prometheus.state().now += 3_600.0;
    stage.scrapes("other 1", 2).await;
    assert_eq!(stage.rows().len(), 0);
    let mut stage = green().await;
    stage.prometheus.state().fail(TARGET);
    wait(&mut stage, 2).await;
    stage.now += Duration::from_secs(7_200);
    stage.prometheus.state().now += 7_200.0;
    stage.prometheus.state().fail(TARGET);
    wait(&mut stage, 2).await;
    assert_eq!(stage.state(), "lost Unknown");
}

#[tokio::test]
async fn failed_syncs_are_told_by_the_counter_that_grew_last() {
    let text = |status: &str, succeeded: u32, failed: u32| {
        let of = |phase: &str, count: u32| {
            format!("argocd_app_sync_total{{namespace=\"argocd\",name=\"shop\",phase=\"{phase}\"}} {count}\n")
        };
        let info = GREEN.replace("Synced", status);
        format!("{info}\n{}{}", of("Succeeded", succeeded), of("Failed", failed))
    };
    let mut stage = Stage::new().await;
    let mut states = Vec::new();
    for (status, succeeded, failed) in
        [("OutOfSync", 3, 2), ("OutOfSync", 3, 3), ("OutOfSync", 3, 3), ("OutOfSync", 4, 3), ("Synced", 4, 4)]
    {
        stage.scrapes(&text(status, succeeded, failed), 1).await;
        states.push(stage.row().sync.effective.as_str());
    }
    assert_eq!(states, ["OutOfSync", "Failed", "Failed", "OutOfSync", "Synced"]);
}

#[tokio::test]
async fn metrics_with_odd_or_many_names_cost_no_series_of_others() {
    let info = |metric: &str, name: &str| {
        format!(
            "{metric}{{customresource_kind=\"Application\",namespace=\"argocd\",name=\"{name}\",health_status=\"Healthy\",sync_status=\"Synced\"}} 1\n"
        )
    };
    let mut stage = Stage::new().await;
    let mut junk: String =
        (0..200).map(|number| info(&format!("kube_customresource_a{number:03}"), "junk")).collect();
    junk += &info("kube_customresource_ü", "odd");
    for _ in 0..3 {
        stage.prometheus.scrape(r#"job="tenant",instance="1:80",cluster="eu""#, &junk);
        stage.scrape(&info("kube_customresource_z", "shop")).await;
        stage.pass(13);
    }
    let shop = stage.rows().into_iter().find(|row| row.name == "shop").expect("it is read");
    assert_eq!((shop.freshness.state, shop.effective), (FreshnessState::Live, Status::Current));
    assert!(stage.rows().iter().all(|row| row.name != "odd"));
    assert_eq!(stage.hub.values().next().unwrap().facts().blind, None);
    let left_out = |error: &taffrail_api::ErrorRow| error.message.contains("their metrics have odd names");
    assert!(stage.errors().iter().any(left_out), "{:?}", stage.errors());
}

#[tokio::test]
async fn value_that_is_no_number_costs_its_own_series_alone() {
    let mut stage = Stage::new().await;
    for _ in 0..3 {
        stage.prometheus.scrape(TARGET, "other 1");
        let now = stage.prometheus.state().now.to_string();
        let [values, times] = WHOLE.map(|body| body.replace("NOW", &now));
        let bad = r#""result":[{"metric":{"__name__":"argocd_app_info","name":"bad"},"value":[1,"high"]},"#;
        let values = values.replace(r#""result":["#, bad);
        let answers = [("timestamp(argocd_app_info", times), ("argocd_app_info", values)];
        stage.prometheus.state().answers = answers.map(|(query, body)| (query.to_owned(), 200, body)).into();
        stage.read().await;
        stage.pass(13);
    }
    assert_eq!(stage.state(), "live Current");
}

#[tokio::test]
async fn cluster_of_which_nothing_is_told_goes_with_its_last_app() {
    let mut stage = green().await;
    stage.prometheus.scrape(r#"job="tool",instance="1:80",cluster="us""#, GREEN);
    stage.scrapes(GREEN, 1).await;
    assert_eq!(stage.hub.len(), 2);
    for _ in 0..2 {
        stage.now += Duration::from_secs(3_700);
        stage.prometheus.state().now += 3_700.0;
        stage.prometheus.scrape(r#"job="tool",instance="1:80",cluster="us""#, "other 1");
        stage.scrapes(GREEN, 2).await;
    }
    let ids: Vec<&str> = stage.hub.keys().map(|id| &*id.0).collect();
    assert_eq!(ids, ["metrics:eu"]);
    // The last one goes, too.
    for _ in 0..2 {
        stage.now += Duration::from_secs(3_700);
        stage.prometheus.state().now += 3_700.0;
        stage.scrapes("other 1", 2).await;
    }
    assert!(stage.hub.is_empty(), "{:?}", stage.hub.keys());
}

#[tokio::test]
async fn mappings_of_one_metric_are_whole_or_partial_each_for_itself() {
    let mapping = |team: &str| {
        format!(
            "  - {{metric: deploy_state, matchers: 'team=\"{team}\"', delivery: label, labels: {{name: app}}, health: {{label: state, values: {{ok: Current}}}}}}\n"
        )
    };
    let mut stage = Stage::with(&format!("  mappings:\n{}{}", mapping("a"), mapping("b")), &[]).await;
    let text = ["a", "b"]
        .map(|team| format!("deploy_state{{team=\"{team}\",app=\"{team}\",state=\"ok\"}} 1\n"))
        .concat();
    stage.scrapes(&text, 3).await;
    let states =
        |stage: &Stage| stage.rows().iter().map(|row| row.freshness.state.as_str()).collect::<Vec<_>>();
    assert_eq!(states(&stage), ["live", "live"]);
    stage
        .prometheus
        .state()
        .warnings
        .push(("deploy_state{team=\"a\"}".to_owned(), "a store is away".to_owned()));
    stage.scrapes(&text, 1).await;
    assert_eq!(states(&stage), ["stale", "live"]);
}

#[tokio::test]
async fn red_of_a_partial_answer_is_not_displaced_by_a_green_of_another_family() {
    let red = r#"kube_customresource_app{customresource_kind="Application",namespace="argocd",name="shop",health_status="Degraded",sync_status="Synced"} 1"#;
    let mut stage = Stage::new().await;
    let both = format!("{GREEN}\n{red}");
    stage.scrapes(&both, 3).await;
    assert_eq!(stage.state(), "live Failed");
    stage.prometheus.state().warnings.push(("kube_customresource".to_owned(), "a store is away".to_owned()));
    stage.scrapes(&both, 2).await;
    assert_eq!(stage.row().health, Status::Failed);
    assert!(!stage.is_any_green() || stage.row().effective == Status::Unknown, "{}", stage.table());
    assert_eq!(stage.state(), "stale Unknown");
}

#[tokio::test]
async fn app_that_is_gone_leaves_no_row_in_a_cluster_that_another_source_reads() {
    let mut stage = Stage::with("", &[("eu", "uid-eu")]).await;
    stage.scrapes(GREEN, 3).await;
    assert_eq!(stage.rows().len(), 1);
    stage.scrapes("other 1", 2).await;
    assert_eq!(stage.rows(), []);
}
