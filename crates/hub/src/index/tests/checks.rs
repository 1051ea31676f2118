//! Results of checks in the published fleet.

use taffrail_api::AppRow;
use taffrail_api::report::Content;
use taffrail_apps::{Axis, CheckAnswer, DeclaredCheck};
use taffrail_status::Status;

use super::super::samples::{SampleFleet, app, check, declared, observed};
use super::{AppFilter, AppId, pages, rows};

/// Returns the results of the only row's checks, and its problem.
fn checked(fleet: &SampleFleet) -> String {
    fleet.index.publish();
    let view = fleet.index.view();
    let [row] = <[AppRow; 1]>::try_from(rows(&view)).unwrap();
    let results: Vec<String> = row.checks.iter().map(|it| format!("{}: {}", it.name, it.result)).collect();
    let problem =
        row.problem.as_ref().map(|it| format!("{:?} {:?} {}", it.axis, it.severity, it.message.as_str()));
    format!("{}; {}; {}", row.words(fleet.now()), results.join(", "), problem.unwrap_or_default())
}

/// A fleet of one well app with two checks.
fn fleet_with_checks() -> (SampleFleet, AppId) {
    let fleet = SampleFleet::new();
    let web = app("eu-1", "web");
    fleet.open("eu-1", "observer");
    let checks = vec![check("error-rate", "web"), check("latency", "web")];
    let declared = declared(&web, "eu-1", |half| half.checks = checks);
    fleet.snapshot("eu-1", vec![declared, observed(&web, Status::Current, "")]);
    (fleet, web)
}

#[test]
fn false_check_is_a_problem_and_never_changes_the_health() {
    let (fleet, web) = fleet_with_checks();
    let none = "error-rate: nodata, latency: nodata";
    assert_eq!(
        checked(&fleet),
        format!(
            "Ready, check error-rate without data; {none}; Check Notice error-rate: no data: the check was not evaluated yet"
        )
    );
    let on = (&web, "eu-1");
    fleet.check(on, check("error-rate", "web"), CheckAnswer::True, 60);
    fleet.check(on, check("latency", "web"), CheckAnswer::True, 60);
    assert_eq!(checked(&fleet), "Ready; error-rate: true, latency: true; ");
    fleet.pass(10);
    fleet.check(on, check("latency", "web"), CheckAnswer::False, 60);
    assert_eq!(
        checked(&fleet),
        "Ready, check latency false; error-rate: true, latency: false; Check Error latency: 3 is not below 2"
    );
    let view = fleet.index.view();
    let row = rows(&view).remove(0);
    assert_eq!((row.health, row.effective), (Status::Current, Status::Current));
    let since = row.since.unwrap();
    // The time since which it is false stays; that of the value does not.
    fleet.pass(10);
    fleet.check(on, check("latency", "web"), CheckAnswer::False, 60);
    fleet.index.publish();
    let again = rows(&fleet.index.view()).remove(0);
    assert_eq!(again.since, Some(since));
    assert_eq!(again.checks[1].observed_at, Some(fleet.now()));
    // An old result is no result.
    let pass = |seconds: u64| {
        for _ in 0..seconds {
            fleet.pass(1);
            fleet.send("eu-1", "observer", Content::Heartbeat);
        }
    };
    pass(41);
    assert_eq!(
        checked(&fleet),
        "Ready, check latency false; error-rate: nodata, latency: false; Check Error latency: 3 is not below 2"
    );
    pass(20);
    assert_eq!(
        checked(&fleet),
        format!(
            "Ready, check error-rate without data; {none}; Check Notice error-rate: no data: the last result is too old"
        )
    );
}

#[test]
fn results_of_other_questions_and_clusters_do_not_count() {
    let (fleet, web) = fleet_with_checks();
    let none = checked(&fleet);
    fleet.check((&web, "eu-1"), check("latency", "db"), CheckAnswer::True, 60);
    fleet.check((&web, "eu-2"), check("error-rate", "web"), CheckAnswer::True, 60);
    fleet.check((&app("eu-1", "other"), "eu-1"), check("error-rate", "web"), CheckAnswer::True, 60);
    assert_eq!(checked(&fleet), none);
    fleet.check((&web, "eu-1"), check("latency", "web"), CheckAnswer::False, 60);
    assert!(checked(&fleet).starts_with("Ready, check latency false"));
    // Another parameter is another question.
    let other = declared(&web, "eu-1", |half| half.checks = vec![check("latency", "db")]);
    fleet.change("eu-1", "observer", vec![other]);
    assert!(checked(&fleet).contains("latency: nodata; Check Notice"), "{}", checked(&fleet));
    // A faulty declaration tells why.
    let faulty = declared(&web, "eu-1", |half| {
        half.checks = vec![DeclaredCheck { fault: Some("no map".to_owned()), ..check("latency", "db") }];
    });
    fleet.change("eu-1", "observer", vec![faulty]);
    assert!(checked(&fleet).ends_with("latency: no data: no map"), "{}", checked(&fleet));
    // A hub that evaluates nothing has no problem with that.
    fleet.change(
        "eu-1",
        "observer",
        vec![declared(&web, "eu-1", |half| half.checks = vec![check("latency", "web")])],
    );
    fleet.index.switch_checks_off();
    assert_eq!(checked(&fleet), "Ready; latency: nodata; ");
}

#[test]
fn apps_are_found_and_grouped_by_false_checks() {
    let (fleet, web) = fleet_with_checks();
    let db = app("eu-1", "db");
    let half = declared(&db, "eu-1", |half| half.checks = vec![check("latency", "db")]);
    fleet.change("eu-1", "observer", vec![half, observed(&db, Status::Current, "")]);
    fleet.index.publish();
    for (app, service) in [(&web, "web"), (&db, "db")] {
        fleet.check((app, "eu-1"), check("latency", service), CheckAnswer::False, 60);
    }
    fleet.check((&web, "eu-1"), check("error-rate", "web"), CheckAnswer::True, 60);
    fleet.index.publish();
    let view = fleet.index.view();
    let names = |checks: &[&str]| {
        let checks = checks.iter().map(|text| text.parse().unwrap()).collect();
        let filter = AppFilter { checks, ..AppFilter::default() };
        pages(&view, &filter, None).into_iter().map(|row| row.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&["latency=false"]), ["db", "web"]);
    assert_eq!(names(&["error-rate"]), ["web"]);
    assert_eq!(names(&["error-rate=false"]), [""; 0]);
    assert_eq!(names(&["error-rate=true", "latency=nodata"]), ["web"]);
    let problems = AppFilter { problems: Some([Axis::Check].into()), ..AppFilter::default() };
    assert_eq!(pages(&view, &problems, None).len(), 2);
    let attention = view.attention(&AppFilter::default(), 10);
    let told: Vec<_> =
        attention.items.iter().map(|it| (it.axis, &*it.state, &*it.message, it.count)).collect();
    assert_eq!(told, [(Axis::Check, "latency", "latency: 3 is not below 2", 2)]);
    assert_eq!((attention.apps, attention.problems), (2, 2));
    // The apps to evaluate have the names of their cluster.
    let apps = fleet.index.checked_apps();
    assert_eq!(apps.len(), 2);
    assert!(apps.iter().all(|app| *app.names == ["eu-1".to_owned()] && app.target.0 == "eu-1"));
    fleet.open("eu-2", "observer");
    fleet.facts("eu-2", "observer", |facts| facts.aliases.push("eu-1".to_owned()), Vec::new());
    assert!(fleet.index.checked_apps().iter().all(|app| app.names.is_empty()), "two clusters have the name");
}
