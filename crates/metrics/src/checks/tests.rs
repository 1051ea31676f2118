//! Rounds of checks, without a server and without a clock.

use std::path::Path;
use std::sync::Arc;

use taffrail_api::AppName;
use taffrail_api::report::DeclaredHalf;
use taffrail_apps::{CheckAnswer, Delivery};

use super::*;

const CONFIG: &str = r#"
servers:
- {name: one, url: "http://one", matchers: 'env="prod"', checksPerMinute: 10}
- {name: two, url: "http://two", clusterLabel: site, cluster: eu}
checks:
- name: error-rate
  query: sum(rate(errors_total{namespace="${namespace}",pod=~"${pod}-.*"}[5m])) / rate(all)
  below: 0.01
  servers: [one]
- name: up
  query: up{app="${app.name}",ns="${app.namespace}",c="${app.cluster}"}
  above: 0
  interval: 30s
  clusterLabel: zone
- name: own
  query: min(up)
  above: 0
  below: 2
  servers: [two]
"#;

fn second(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn rounds() -> CheckRounds {
    CheckRounds::new(&MetricsConfig::parse(CONFIG, Path::new("metrics.yaml")).unwrap())
}

fn asked(name: &str, parameters: &[(&str, &str)]) -> DeclaredCheck {
    let parameters =
        parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    DeclaredCheck { name: name.to_owned(), parameters, fault: None }
}

fn app(name: &str, names: &[&str], checks: Vec<DeclaredCheck>) -> CheckedApp {
    let target = ClusterId(names.first().copied().unwrap_or("eu").to_owned());
    let app = AppName {
        delivery: Delivery::FluxKustomization,
        namespace: "shop".to_owned(),
        name: name.to_owned(),
    };
    let state = taffrail_apps::SyncState::Synced;
    let declared = DeclaredHalf { checks, ..DeclaredHalf::new(String::new(), target.clone(), state) };
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    CheckedApp {
        app: Arc::new(AppId { home: ClusterId("hub".to_owned()), app }),
        target,
        names: names.into(),
        declared: Arc::new(declared),
    }
}

fn reply(values: &[f64], at: f64) -> Result<Reply, String> {
    let series = |value: &f64| crate::sample::Series { labels: Vec::new(), sum: 0, value: *value };
    Ok(Reply { series: values.iter().map(series).collect(), scalar: None, at: Some(at), partial: None })
}

#[test]
fn queries_have_the_cluster_in_each_selector_and_values_in_quotes() {
    let mut rounds = rounds();
    let parameters = [("namespace", "shop\"} or up{a=\""), ("pod", ".*|web")];
    let checks = vec![asked("error-rate", &parameters), asked("up", &[]), asked("own", &[])];
    assert!(rounds.set(vec![app("web", &["eu", "uid-1"], checks)], second(0)).0.is_empty());
    let mut queries = |place| {
        let all: Vec<String> = std::iter::from_fn(|| Some(rounds.next(place, second(0))?.query)).collect();
        all.join("\n").replace(" {", "{").replace(" (", "(")
    };
    assert_eq!(
        queries(0),
        r#"sum(rate(errors_total{cluster=~"eu|uid-1",env="prod",namespace="shop\"} or up{a=\"",pod=~"\\.\\*\\|web-.*"}[5m])) / rate(all{cluster=~"eu|uid-1",env="prod"})
up{zone=~"eu|uid-1",env="prod",app="web",ns="shop",c="eu"}"#
    );
    // Series without the label are about the cluster of the server.
    assert_eq!(
        queries(1),
        r#"min(up{site=~"eu|uid-1|"})
up{zone=~"eu|uid-1|",app="web",ns="shop",c="eu"}"#
    );
}

#[test]
fn declarations_that_do_not_fit_are_told_and_not_evaluated() {
    let mut rounds = rounds();
    let faulty = DeclaredCheck { fault: Some("no map".to_owned()), ..asked("taffrail.dev/checks", &[]) };
    let checks = vec![
        asked("error-rate", &[("namespace", "shop")]),
        asked("nothing", &[]),
        asked("up", &[("colour", "red")]),
        faulty,
    ];
    let apps = || vec![app("web", &["eu"], checks.clone()), app("db", &[], vec![asked("up", &[])])];
    let told = |(told, late): (Vec<EvaluatedCheck>, Vec<TooManyChecks>)| {
        assert_eq!(late, []);
        let line =
            |it: EvaluatedCheck| format!("{} {}: {}", it.app.app.name, it.result.name, &*it.result.message);
        let mut lines: Vec<String> = told.into_iter().map(line).collect();
        lines.sort();
        lines
    };
    let all = [
        "db up: the hub knows no cluster of the app that has a name of its own",
        "web error-rate: the check needs the parameter 'pod'",
        "web nothing: the hub has no such check",
        "web up: the check has no parameter 'colour'",
    ];
    assert_eq!(told(rounds.set(apps(), second(0))), all);
    assert!(rounds.next(0, second(0)).is_none());
    assert_eq!(told(rounds.set(apps(), second(5))), [""; 0], "they are known");
    assert_eq!(told(rounds.set(apps(), second(60))), all, "they are told again before they are too old");
}

#[test]
fn answer_is_true_false_or_no_data() {
    let mut rounds = rounds();
    let web = || vec![app("web", &["eu"], vec![asked("up", &[])])];
    rounds.set(web(), second(0));
    let question = rounds.next(0, second(0)).unwrap();
    let mut answer = |answer: Result<Reply, String>, at: u64| {
        let it = rounds.answer(0, &question, answer, second(at), second(at)).unwrap();
        (
            it.result.result,
            it.result.value.map(MetricValue::get),
            it.result.message.to_string(),
            it.live.as_secs(),
        )
    };
    let none = |text: &str, live| (CheckAnswer::NoData, None, text.to_owned(), live);
    let begin = 1_800_000_000.0;
    assert_eq!(answer(reply(&[1.0], begin), 0), (CheckAnswer::True, Some(1.0), String::new(), 90));
    assert_eq!(
        answer(reply(&[0.0], begin + 30.0), 30),
        (CheckAnswer::False, Some(0.0), "0 is not above 0".to_owned(), 90)
    );
    assert_eq!(answer(reply(&[], begin + 60.0), 60), none("the query returned no series", 90));
    assert_eq!(answer(reply(&[f64::NAN], begin + 61.0), 61), none("the value is not a number", 90));
    assert_eq!(
        answer(reply(&[1.0, 1.0], begin + 62.0), 62),
        none("the query returned 2 series instead of one", 90)
    );
    let partial =
        Reply { partial: Some("a store is away".to_owned()), ..reply(&[1.0], begin + 63.0).unwrap() };
    assert_eq!(answer(Ok(partial), 63), none("the answer may be partial: a store is away", 90));
    assert_eq!(answer(Err("unreachable".to_owned()), 64), none("unreachable", 90));
    let scalar = Reply { scalar: Some(0.5), ..reply(&[], begin + 65.0).unwrap() };
    assert_eq!(answer(Ok(scalar), 65), (CheckAnswer::True, Some(0.5), String::new(), 90));
    // A cache answers: its value is as old as its time says.
    assert_eq!(answer(reply(&[1.0], begin + 65.0), 95), (CheckAnswer::True, Some(1.0), String::new(), 60));
    assert_eq!(
        answer(reply(&[1.0], begin + 65.0), 165),
        none("the server answered with a value of 100 s ago", 0)
    );
    // An answer to what nobody asks any more does not count.
    rounds.set(vec![app("web", &["us"], vec![asked("up", &[])])], second(170));
    assert!(rounds.answer(0, &question, reply(&[1.0], begin + 170.0), second(170), second(170)).is_none());
}

#[test]
fn too_many_checks_for_the_budget_are_told_once() {
    let mut rounds = rounds();
    let many = |count: usize| {
        (0..count).map(|number| app(&format!("app-{number}"), &["eu"], vec![asked("up", &[])])).collect()
    };
    assert_eq!(rounds.set(many(5), second(0)).1, []);
    let late = TooManyChecks { server: "one".to_owned(), checks: 6, needed: 12, allowed: 10 };
    assert_eq!(rounds.set(many(6), second(5)).1, std::slice::from_ref(&late));
    assert_eq!(rounds.set(many(6), second(10)).1, []);
    rounds.set(many(5), second(15));
    assert_eq!(rounds.set(many(6), second(20)).1, [late]);
}

#[test]
fn many_checks_of_one_namespace_displace_none_of_others() {
    let mut rounds = rounds();
    let many = (0..MAX_OF_HOME).flat_map(|number| {
        let mut greedy = app(&format!("a-{number}"), &["eu"], vec![asked("up", &[]), asked("own", &[])]);
        Arc::make_mut(&mut greedy.app).app.namespace = "greedy".to_owned();
        [greedy]
    });
    let few = ["b", "c"].map(|name| app(name, &["eu"], vec![asked("up", &[])]));
    let (told, _) = rounds.set(many.chain(few).collect(), second(0));
    assert_eq!(rounds.wanted.len(), MAX_OF_HOME);
    let is_wanted = |name: &str| rounds.wanted.keys().any(|key| key.app.app.name == name);
    assert!(is_wanted("b") && is_wanted("c"));
    assert_eq!(told.len(), MAX_OF_HOME);
    let message = told.first().map(|told| told.result.message.to_string());
    assert_eq!(
        message.as_deref(),
        Some("the hub evaluates at most 2000 checks of a cluster, and 100000 of all")
    );
}
