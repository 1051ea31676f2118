//! The published fleet beside a naive evaluation of the same reports.

mod checks;

use std::collections::{BTreeMap, BTreeSet};

use taffrail_api::diff::KeyedRow;
use taffrail_api::filter::SortField;
use taffrail_api::hub::{AnswerState, PairState};
use taffrail_api::report::{
    AppId, ClusterReport, HalfBody, HalfSide, HalfUpstream, HalfUpstreams, NotLive, Speaker,
};
use taffrail_api::{AppRow, ClusterRow, ErrorRow};
use taffrail_apps::{Axis, CheckAnswer, Problem, ProblemSeverity, RelationType, SyncState, UpstreamProblem};
use taffrail_object::ObjectKey;
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use super::page::{AppQueryPage, PageKey};
use super::page_watch::PageWatch;
use super::pair::{ListedPair, Summary};
use super::samples::{SampleFleet, app, check, declared, observed, problem};
use super::*;

const CLUSTERS: [&str; 5] = ["hub", "eu-1", "eu-2", "us-1", "us-2"];

/// Does one thing that may happen to a fleet.
pub(super) fn disturb(fleet: &SampleFleet, random: &mut fastrand::Rng) {
    let cluster = CLUSTERS[random.usize(..CLUSTERS.len())];
    let source = if cluster == "eu-1" && random.bool() { "metrics" } else { "observer" };
    let home = if random.bool() { cluster } else { "hub" };
    let named = app(home, ["a/web", "a/db", "b/web", "b/queue"][random.usize(..4)]);
    let health = Status::ALL[random.usize(..Status::ALL.len())];
    let state = [FreshnessState::Stale, FreshnessState::Lost].get(random.usize(..4)).copied();
    let age = (random.u8(..4) > 0).then(|| Duration::from_secs(random.u64(..300)));
    let not_live = state.map(|state| NotLive { state, age });
    match random.u32(..15) {
        0 => fleet.open(cluster, source),
        1 if random.u32(..4) == 0 => fleet.forget(cluster, source),
        2 => {
            let halves = [declared(&named, cluster, |_| {}), observed(&named, health, "is not ready")];
            fleet.snapshot(cluster, halves.into());
        }
        3..=5 => {
            let target = if home == "hub" { CLUSTERS[random.usize(..CLUSTERS.len())] } else { home };
            let half = declared(&named, target, |half| match random.u32(..5) {
                0 => half.problems.push(problem(Axis::Sync, ProblemSeverity::Error, "cannot apply")),
                1 => half.problems.push(problem(Axis::Source, ProblemSeverity::Notice, "suspended")),
                2 => half.sync.state = SyncState::Failed,
                3 => half.suspended = true,
                _ => half.checks = vec![check("error-rate", "web"), check("latency", "web")],
            });
            fleet.change(home, source, vec![half]);
        }
        6..=8 => fleet.change(cluster, source, vec![observed(&named, health, "is not ready")]),
        9 => {
            let side = if random.bool() { HalfSide::Declared } else { HalfSide::Observed };
            fleet.remove(if side == HalfSide::Declared { home } else { cluster }, &named, side);
        }
        10 => fleet.send(cluster, source, taffrail_api::report::Content::Heartbeat),
        11 => {
            let edit = |facts: &mut ClusterReport| {
                facts.not_live = not_live;
                let region = ["eu", "us"].get(age.map_or(2, |age| age.as_secs() as usize % 3));
                facts.labels.extend(region.map(|region| ("region".to_owned(), (*region).to_owned())));
            };
            fleet.facts(cluster, source, edit, Vec::new());
        }
        12 => {
            let mut half = observed(&named, health, "is not ready");
            if let HalfBody::Observed(body) = &mut half.body {
                body.not_live = not_live;
            }
            fleet.change(cluster, source, vec![half]);
        }
        13 => {
            let half = declared(&named, home, |half| half.not_live = not_live);
            fleet.change(home, source, vec![half]);
        }
        _ => fleet.pass(random.u64(..40)),
    }
}

/// The relation of an app that depends on another one.
fn upstream_of(app: &AppId) -> Arc<HalfUpstreams> {
    let upstream = HalfUpstream { relation: RelationType::DependsOn, app: app.clone(), is_missing: false };
    Arc::new(HalfUpstreams { apps: vec![upstream], left_out: 0 })
}

/// Evaluates a check of some app.
fn evaluate(fleet: &SampleFleet, random: &mut fastrand::Rng) {
    let home = CLUSTERS[random.usize(..CLUSTERS.len())];
    let target = if home == "hub" { CLUSTERS[random.usize(..CLUSTERS.len())] } else { home };
    let named = app(home, ["a/web", "a/db", "b/web", "b/queue"][random.usize(..4)]);
    let asked = check(["error-rate", "latency"][random.usize(..2)], "web");
    fleet.check((&named, target), asked, CheckAnswer::ALL[random.usize(..3)], random.u64(1..90));
}

/// Returns a filter for the clusters with the label `region=eu`.
fn in_eu() -> AppFilter {
    AppFilter { cluster_labels: Some("region=eu".parse().unwrap()), ..AppFilter::default() }
}

fn rows(view: &FleetView) -> Vec<AppRow> {
    let pairs = view.fleet().all().flat_map(|(_, cluster)| cluster.pairs.pairs.iter());
    pairs.map(|pair| view.row(pair)).collect()
}

fn cluster_rows(view: &FleetView) -> Vec<ClusterRow> {
    view.fleet().all().filter_map(|(place, _)| view.cluster_row(place)).collect()
}

/// Reads all pages, of two apps each.
fn pages(view: &FleetView, filter: &AppFilter, sort: Option<SortField>) -> Vec<AppRow> {
    let (mut found, mut after) = (Vec::new(), None::<PageKey>);
    loop {
        let page = view.page(&AppQueryPage { filter, sort, limit: 2, after: after.as_ref() });
        found.extend(page.pairs.iter().map(|(_, pair)| view.row(pair)));
        after = page.next;
        if after.is_none() {
            assert_eq!(found.len(), page.total);
            assert_eq!(found.iter().map(|row| row.effective).collect::<Counts>(), page.counts);
            let pressing = found.iter().filter(|row| row.problem.as_ref().is_some_and(|it| it.is_pressing()));
            assert_eq!(pressing.count(), page.problems);
            return found;
        }
    }
}

#[test]
fn published_fleet_equals_a_naive_evaluation() {
    let (mut seen, mut dark, mut answered) = (0, 0, 0);
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let fleet = SampleFleet::new();
        CLUSTERS.iter().take(3).for_each(|cluster| fleet.open(cluster, "observer"));
        let mut of_checks = fastrand::Rng::with_seed(seed);
        for step in 0..120 {
            disturb(&fleet, &mut random);
            (0..3).for_each(|_| evaluate(&fleet, &mut of_checks));
            if random.u32(..3) > 0 {
                continue;
            }
            fleet.index.publish();
            let view = fleet.index.view();
            let naive = lock(&fleet.index.owner).fleet.apps(view.moment()).items;
            let published = rows(&view);
            assert_eq!(published, naive, "seed {seed}, step {step}");
            let clusters = lock(&fleet.index.owner).fleet.clusters(view.moment()).items;
            let published_clusters = cluster_rows(&view);
            assert_eq!(published_clusters, clusters, "seed {seed}, step {step}");
            for ((place, _), row) in view.fleet().all().zip(&clusters) {
                let status = view.cluster_status(place);
                assert_eq!(status, Some((row.status, row.problems)), "seed {seed}, step {step}: {row:?}");
            }
            seen += published.len();
            dark += published.iter().filter(|row| !row.freshness.is_live()).count();
            let results = published.iter().flat_map(|row| &row.checks);
            answered += results.filter(|it| it.result != CheckAnswer::NoData).count();
        }
    }
    assert!(
        seen > 5_000 && dark > 1_000 && answered > 300,
        "{seen} rows, {dark} of them not live, with {answered} results of checks, are too few to prove something"
    );
}

#[test]
fn followed_view_answers_as_one_that_is_made_anew() {
    let (mut gaps, mut renamed) = (0, 0);
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let fleet = SampleFleet::new();
        CLUSTERS.iter().take(3).for_each(|cluster| fleet.open(cluster, "observer"));
        for step in 0..100 {
            disturb(&fleet, &mut random);
            if random.u32(..4) == 0 {
                let cluster = CLUSTERS[random.usize(..CLUSTERS.len())];
                let name = [cluster, "blue", "green"][random.usize(..3)].to_owned();
                let alias = [None, Some("blue"), Some("prod")][random.usize(..3)].map(str::to_owned);
                let (scope, reason, message) = ("apps".to_owned(), "Forbidden".to_owned(), String::new());
                let error = ErrorRow { cluster: name.clone(), scope, reason, message };
                let errors = if random.bool() { vec![error] } else { Vec::new() };
                let edit = |facts: &mut ClusterReport| {
                    facts.name = name;
                    facts.aliases.extend(alias);
                };
                fleet.facts(cluster, "observer", edit, errors);
            }
            if random.bool() {
                continue;
            }
            fleet.index.publish();
            fleet.pass(random.u64(..3) * 20);
            let view = fleet.index.view();
            let vitals = |place| {
                let owner = lock(&fleet.index.owner);
                let known = owner.fleet.all_known().find(|known| known.place == place);
                known.map_or(Vec::new(), |known| known.vitals().into_vec())
            };
            let anew = FleetView::of(Arc::clone(view.fleet()), view.moment(), vitals);
            let mut filters = vec![AppFilter::default(), in_eu()];
            for name in CLUSTERS.into_iter().chain(["blue", "green", "prod", "none"]) {
                let called: BTreeSet<Place> = view.called(name).collect();
                let named = view.fleet().all().filter(|(_, cluster)| anew.is_called(cluster, name));
                let named: BTreeSet<Place> = named.map(|(place, _)| place).collect();
                assert_eq!(called, named, "seed {seed}, step {step}, {name}");
                renamed += usize::from(!CLUSTERS.contains(&name)) * named.len();
                filters.push(AppFilter { clusters: vec![name.to_owned()], ..AppFilter::default() });
            }
            for filter in &filters {
                let answer = |view: &FleetView| (view.coverage(filter), view.errors_of(filter));
                let (found, expected) = (answer(&view), answer(&anew));
                assert_eq!(found, expected, "seed {seed}, step {step}, {:?}", filter.clusters);
                gaps += found.0.missing.len();
            }
            let all: Vec<_> = view.fleet().all().map(|(place, cluster)| (place, &cluster.pairs)).collect();
            assert_eq!(view.fleet().pairs, all.iter().map(|(_, pairs)| pairs.pairs.len()).sum::<usize>());
            assert_eq!(view.fleet().strays, all.iter().map(|(_, pairs)| pairs.strays).sum::<usize>());
            let hosts = all.iter().filter(|(_, pairs)| pairs.guests > 0).map(|(place, _)| *place);
            assert_eq!(*view.fleet().hosts, hosts.collect(), "seed {seed}, step {step}");
        }
    }
    assert!(
        gaps > 1_000 && renamed > 1_000,
        "{gaps} gaps and {renamed} names are too few to prove something"
    );
}

#[test]
fn pages_hold_every_app_once_in_the_order_asked_for() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let fleet = SampleFleet::new();
        CLUSTERS.iter().for_each(|cluster| fleet.open(cluster, "observer"));
        (0..100).for_each(|_| disturb(&fleet, &mut random));
        fleet.index.publish();
        let view = fleet.index.view();
        let all = rows(&view);
        let severity = |row: &AppRow| row.problem.as_ref().map_or(9, |problem| problem.severity as u8);
        type Key = (Option<Status>, u8, String, String);
        type KeyOf = fn(&AppRow) -> Key;
        type Admits = fn(&AppRow) -> bool;
        let keys: [(Option<SortField>, KeyOf); 4] = [
            (None, |_| (None, 0, String::new(), String::new())),
            (Some(SortField::Name), |row| (None, 0, row.name.clone(), row.namespace.clone())),
            (Some(SortField::Status), |row| (Some(row.effective), 0, String::new(), String::new())),
            (Some(SortField::Cluster), |row| (None, 0, row.cluster.clone(), String::new())),
        ];
        for (sort, key) in keys {
            let mut expected = all.clone();
            expected.sort_by_key(key);
            let found = pages(&view, &AppFilter::default(), sort);
            assert!(found.is_sorted_by_key(key), "seed {seed}, {sort:?}");
            if sort == Some(SortField::Status) {
                assert!(found.is_sorted_by_key(|row| (row.effective, severity(row))), "seed {seed}");
                expected.sort_by_key(KeyedRow::key);
                let mut found = found;
                found.sort_by_key(KeyedRow::key);
                assert_eq!(found, expected, "seed {seed}");
            } else {
                // Home is an identity in the order of the index, and a name in that of rows: here both are equal.
                assert_eq!(found, expected, "seed {seed}, {sort:?}");
            }
        }
        let labelled: BTreeMap<String, Option<String>> = view
            .fleet()
            .all()
            .map(|(_, it)| (view.name(it).to_owned(), view.labels(it).unwrap().get("region").cloned()))
            .collect();
        let region = |row: &AppRow| labelled.get(&row.cluster).cloned().flatten().unwrap_or_default();
        let expected: Vec<AppRow> = all.iter().filter(|row| region(row) == "eu").cloned().collect();
        assert_eq!(pages(&view, &in_eu(), None), expected, "seed {seed}");
        let mut counted: BTreeMap<String, usize> = BTreeMap::new();
        all.iter().for_each(|row| *counted.entry(region(row)).or_default() += 1);
        let groups = view.groups(&AppFilter::default(), &GroupBy::ClusterLabel("region".to_owned()));
        let groups: BTreeMap<String, usize> = groups.into_iter().map(|it| (it.group, it.apps)).collect();
        assert_eq!(groups, counted, "seed {seed}");
        let matrix = view.matrix(&AppFilter::default(), Some("region"), 500, None);
        for column in matrix.columns {
            let label = labelled[&column.cluster].clone().unwrap_or_default();
            assert_eq!(column.group, Some(label), "seed {seed}");
        }
        let filters: [(AppFilter, Admits); 8] = [
            (AppFilter { status: Some("Failed,Unknown".parse().unwrap()), ..AppFilter::default() }, |row| {
                matches!(row.effective, Status::Failed | Status::Unknown)
            }),
            (AppFilter { status: Some("!Ready".parse().unwrap()), ..AppFilter::default() }, |row| {
                row.effective != Status::Current || row.problem.as_ref().is_some_and(|it| it.is_pressing())
            }),
            (AppFilter { problems: Some(BTreeSet::new()), ..AppFilter::default() }, |row| {
                row.problem.is_some()
            }),
            (AppFilter { sync: Some("Failed".parse().unwrap()), ..AppFilter::default() }, |row| {
                row.sync.effective == SyncState::Failed
            }),
            (AppFilter { names: vec!["a/web".parse().unwrap()], ..AppFilter::default() }, |row| {
                (&*row.namespace, &*row.name) == ("a", "web")
            }),
            (AppFilter { clusters: vec!["eu-1".to_owned()], ..AppFilter::default() }, |row| {
                row.cluster == "eu-1"
            }),
            (AppFilter { text: "QUE".to_owned(), ..AppFilter::default() }, |row| row.name == "queue"),
            (AppFilter { text: " eu-1  Web".to_owned(), ..AppFilter::default() }, |row| {
                row.cluster == "eu-1" && row.name == "web"
            }),
        ];
        for (at, (filter, admits)) in filters.into_iter().enumerate() {
            let expected: Vec<AppRow> = all.iter().filter(|row| admits(row)).cloned().collect();
            let found = pages(&view, &filter, None);
            assert_eq!(found, expected, "seed {seed}, filter {at}");
        }
    }
}

#[test]
fn page_neither_repeats_nor_skips_an_app_that_stays() {
    let apps: Vec<String> = (10..30).map(|number| format!("shop/app-{number}")).collect();
    let all: Vec<_> = apps.iter().map(|name| (name.as_str(), Status::Current, "")).collect();
    let fleet = SampleFleet::new().with("prod", &all);
    let (filter, mut after, mut found) = (AppFilter::default(), None::<PageKey>, BTreeMap::new());
    for round in 0.. {
        let view = fleet.index.view();
        let page = view.page(&AppQueryPage { filter: &filter, sort: None, limit: 3, after: after.as_ref() });
        for (_, pair) in &page.pairs {
            *found.entry(pair.app.app.name.clone()).or_insert(0) += 1;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
        // The last app of the page goes, one comes before it, and one behind it.
        let last = AppId::clone(&page.pairs.last().unwrap().1.app);
        fleet.remove("prod", &last, HalfSide::Declared);
        let new = [app("prod", &format!("shop/aaa-{round}")), app("prod", &format!("shop/zzz-{round}"))];
        fleet.change("prod", "observer", new.iter().map(|app| declared(app, "prod", |_| {})).collect());
        fleet.index.publish();
    }
    assert!(apps.iter().all(|name| found.get(name.strip_prefix("shop/").unwrap()) == Some(&1)), "{found:?}");
    assert!(
        found.keys().any(|name| name.starts_with("zzz")) && !found.keys().any(|name| name.starts_with("aaa"))
    );
}

#[test]
fn report_about_one_cluster_shares_the_others() {
    let fleet = SampleFleet::new().with("eu-1", &[("a/web", Status::Current, "")]);
    let fleet = fleet.with("us-1", &[("a/web", Status::Current, "")]);
    let before = fleet.index.published();
    fleet.change("us-1", "observer", vec![observed(&app("us-1", "a/web"), Status::Failed, "crashes")]);
    fleet.index.publish();
    let after = fleet.index.published();
    let shared = |place| Arc::ptr_eq(before.cluster(place).unwrap(), after.cluster(place).unwrap());
    assert_eq!(before.all().map(|(place, _)| shared(place)).collect::<Vec<_>>(), [true, false]);
    fleet.index.publish();
    assert!(Arc::ptr_eq(&after, &fleet.index.published()), "nothing changed");
}

#[tokio::test(start_paused = true)]
async fn changes_are_published_within_a_tenth_of_a_second() {
    let fleet = SampleFleet::new().with("prod", &[("a/web", Status::Current, "")]);
    let index = Arc::clone(&fleet.index);
    let publisher = tokio::spawn(async move { index.run().await });
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut published = fleet.index.subscribe();
    published.mark_unchanged();
    fleet.change("prod", "observer", vec![observed(&app("prod", "a/web"), Status::Failed, "crashes")]);
    tokio::time::timeout(Duration::from_millis(100), published.changed()).await.unwrap().unwrap();
    assert_eq!(fleet.index.view().counts().failed, 1);
    publisher.abort();
}

/// Returns the kept changes with the effective status and the problem before and after, the latest first.
fn recent(fleet: &SampleFleet) -> Vec<String> {
    let told = |(_, change): &(u64, Arc<AppChange>)| {
        let words = |state: &Option<PairState>| {
            state.as_ref().map_or("none".to_owned(), |state| {
                format!("{} {}", state.effective, state.problem.as_deref().unwrap_or("well"))
            })
        };
        format!("{} {} -> {}", change.name, words(&change.before), words(&change.after))
    };
    fleet.index.recent(None).iter().map(told).collect()
}

#[test]
fn what_clusters_tell_first_of_apps_of_others_is_no_change() {
    let (web, api) = (app("hub", "argocd/web"), app("hub", "argocd/api"));
    let fleet = SampleFleet::new();
    fleet.open("hub", "observer");
    fleet.snapshot("hub", vec![declared(&web, "spoke", |_| {})]);
    fleet.index.publish();
    // The target of the app becomes known, tells its name, and then what it has of the app.
    fleet.open("spoke", "observer");
    fleet.index.publish();
    fleet.snapshot("spoke", vec![observed(&web, Status::Current, "")]);
    fleet.index.publish();
    assert_eq!(fleet.index.view().counts().current, 1);
    assert_eq!(recent(&fleet), [""; 0]);
    // From then on all counts.
    fleet.change("hub", "observer", vec![declared(&api, "spoke", |_| {})]);
    fleet.index.publish();
    fleet.change("spoke", "observer", vec![observed(&api, Status::Failed, "crashes")]);
    fleet.index.publish();
    fleet.change("spoke", "observer", vec![observed(&web, Status::Failed, "crashes")]);
    fleet.index.publish();
    let expected = [
        "web Current well -> Failed Failed",
        "api Unknown lost -> Failed Failed",
        "api none -> Unknown lost",
    ];
    assert_eq!(recent(&fleet), expected);
}

#[test]
fn changes_tell_the_state_before_and_after() {
    let fleet =
        SampleFleet::new().with("prod", &[("a/web", Status::Current, ""), ("a/db", Status::Current, "")]);
    let recent = || recent(&fleet);
    assert_eq!(recent(), [""; 0], "what a cluster tells first is no change");
    let web = app("prod", "a/web");
    fleet.change("prod", "observer", vec![observed(&web, Status::Failed, "crashes")]);
    fleet.index.publish();
    assert_eq!(recent(), ["web Current well -> Failed Failed"]);
    // Another message is no other state.
    fleet.change("prod", "observer", vec![observed(&web, Status::Failed, "crashes again")]);
    fleet.index.publish();
    assert_eq!(recent().len(), 1);
    fleet.pass(46);
    fleet.index.publish();
    assert_eq!(recent()[..2], ["web Failed Failed -> Unknown stale", "db Current well -> Unknown stale"]);
    fleet.remove("prod", &web, HalfSide::Declared);
    fleet.index.publish();
    assert_eq!(recent()[0], "web Unknown stale -> none");
}

#[test]
fn one_cause_in_many_clusters_is_one_entry_of_attention() {
    let mut fleet = SampleFleet::new();
    for number in 0..400 {
        let message = format!("cluster-{number}: image registry/web:v9 cannot be pulled, {number} attempts");
        let name = format!("cluster-{number}");
        fleet =
            fleet.with(&name, &[("shop/web", Status::Failed, &message), ("shop/db", Status::Current, "")]);
    }
    fleet.change(
        "cluster-7",
        "observer",
        vec![observed(&app("cluster-7", "shop/db"), Status::InProgress, "1 of 2 Pods")],
    );
    fleet.index.publish();
    let attention = fleet.index.view().attention(&AppFilter::default(), 10);
    let [image, slow] = &attention.items[..] else { panic!("{attention:?}") };
    assert_eq!((image.count, image.cluster_count, image.key_count), (400, 400, 1));
    assert_eq!(image.clusters, ["cluster-0", "cluster-1", "cluster-2", "cluster-3", "cluster-4"]);
    assert_eq!(image.object.as_ref().map(|object| &*object.name), Some("web"));
    assert_eq!((slow.severity, slow.count, &*slow.clusters[0]), (ProblemSeverity::Waiting, 1, "cluster-7"));
    assert_eq!((attention.apps, attention.problems, attention.total), (800, 401, 2));
    // All that are not heard any more are one entry, too.
    fleet.pass(200);
    let attention = fleet.index.view().attention(&AppFilter::default(), 10);
    let [lost] = &attention.items[..] else { panic!("{attention:?}") };
    assert_eq!((&*lost.state, lost.count, lost.cluster_count), ("Lost", 800, 400));
    assert_eq!(lost.message, "the cluster does not answer");
}

#[test]
fn app_downstream_counts_for_the_cause_upstream() {
    let fleet = SampleFleet::new().with("eu-1", &[("shop/infra", Status::Failed, "no such file")]);
    let object = ObjectKey::new("apps", "Deployment", "shop", "infra");
    let upstream = UpstreamProblem {
        app: app("eu-1", "shop/infra").app,
        axis: Axis::Health,
        state: "Failed".to_owned(),
        severity: ProblemSeverity::Error,
        message: "no such file".into(),
        object: Some(object.clone()),
    };
    let own = Problem {
        state: "InProgress".to_owned(),
        upstream: Some(Box::new(upstream)),
        ..problem(Axis::Health, ProblemSeverity::Waiting, "waits for infra, which is Failed: no such file")
    };
    let web = app("eu-1", "shop/web");
    let waiting = declared(&web, "eu-1", |body| {
        let (status, rule) = (Status::InProgress, String::new());
        body.own = Some(Box::new(Speaker { status, rule, unconfirmed: false, problem: own }));
        body.upstreams = Some(upstream_of(&app("eu-1", "shop/infra")));
    });
    fleet.change("eu-1", "observer", vec![waiting, observed(&web, Status::Current, "")]);
    fleet.index.publish();
    let attention = fleet.index.view().attention(&AppFilter::default(), 10);
    let [entry] = &attention.items[..] else { panic!("{attention:?}") };
    assert_eq!((entry.severity, entry.count, entry.key_count), (ProblemSeverity::Error, 2, 2));
    assert_eq!((&*entry.message, entry.object.as_ref()), ("no such file", Some(&object)));
    let rows = rows(&fleet.index.view());
    let row = rows.iter().find(|row| row.name == "web").unwrap();
    assert_eq!(row.effective, Status::InProgress);
    assert!(matches!(&row.upstreams[..], [one] if one.home == "eu-1" && one.app.name == "infra"), "{row:?}");
}

#[test]
fn matrix_has_a_character_for_each_app_and_cluster() {
    let fleet =
        SampleFleet::new().with("eu-1", &[("a/web", Status::Current, ""), ("b/db", Status::Failed, "x")]);
    fleet.pass(46);
    let fleet = fleet.with("us-1", &[("a/web", Status::InProgress, "x"), ("c/new", Status::Current, "")]);
    let view = fleet.index.view();
    let matrix = view.matrix(&AppFilter::default(), None, 2, None);
    let rows: Vec<_> = matrix.rows.iter().map(|row| (&*row.key, &*row.cells)).collect();
    assert_eq!(rows, [("a/web", "XP"), ("b/db", "3.")]);
    let code = |code| matrix.legend.iter().find(|legend| legend.code == code).unwrap();
    assert_eq!((code('X').health, code('X').effective), (Status::Current, Status::Unknown));
    assert_eq!((code('P').health, code('P').problem), (Status::InProgress, true));
    assert_eq!(matrix.legend.len(), 3);
    assert_eq!((matrix.extent.total, matrix.extent.next.as_deref()), (3, Some("b/db")));
    let rest = view.matrix(&AppFilter::default(), None, 2, Some("b/db"));
    assert_eq!((rest.rows.len(), rest.extent.next), (1, None));
}

#[test]
fn groups_count_the_apps_of_each_value() {
    let fleet =
        SampleFleet::new().with("eu-1", &[("a/web", Status::Failed, "x"), ("b/db", Status::Current, "")]);
    fleet.pass(46);
    let fleet = fleet.with("us-1", &[("a/web", Status::InProgress, "x")]);
    let groups = fleet.index.view().groups(&AppFilter::default(), &GroupBy::Namespace);
    let told: Vec<_> = groups.iter().map(|it| (&*it.group, it.apps, it.worst, it.stale)).collect();
    assert_eq!(told, [("a", 2, Some(Status::InProgress), 1), ("b", 1, None, 1)]);
    for (_, by) in GroupBy::ALL {
        let groups = fleet.index.view().groups(&AppFilter::default(), &by);
        assert_eq!(groups.iter().map(|group| group.apps).sum::<usize>(), 3, "{by:?}");
    }
}

#[test]
fn answers_say_which_clusters_are_missing_and_why() {
    let fleet = SampleFleet::new().with("eu-1", &[("a/web", Status::Current, "")]);
    let told = |filter: &AppFilter| {
        let coverage = fleet.index.view().coverage(filter);
        let missing =
            coverage.missing.iter().map(|it| format!("{} {} {}", it.cluster, it.reason, it.message));
        (coverage.state, missing.collect::<Vec<_>>())
    };
    let all = AppFilter::default();
    assert_eq!(told(&all), (AnswerState::Complete, Vec::new()));
    fleet.pass(46);
    fleet.index.publish();
    let silent = "eu-1 Silent has not been observed for some time".to_owned();
    assert_eq!(told(&all), (AnswerState::Stale, vec![silent.clone()]));
    let unknown = AppFilter { clusters: vec!["mars".to_owned()], ..AppFilter::default() };
    let missing = "mars UnknownCluster the hub knows no cluster 'mars'".to_owned();
    assert_eq!(told(&unknown), (AnswerState::Partial, vec![missing]));
    fleet.index.expect(["eu-1".to_owned(), "us-1".to_owned()]);
    let loading = "us-1 NotRead the apps of the cluster have not been read yet".to_owned();
    assert_eq!(told(&all), (AnswerState::Loading, vec![silent.clone(), loading.clone()]));
    let named = AppFilter { clusters: vec!["us-1".to_owned()], ..AppFilter::default() };
    assert_eq!(told(&named), (AnswerState::Loading, vec![loading.clone()]));
    // A stream tells the name of its cluster with its first report.
    fleet.index.open(&ClusterId("us-1".to_owned()), "observer", Tells::ALL);
    fleet.index.publish();
    assert_eq!(fleet.index.view().coverage(&all).clusters, 2, "one cluster is counted twice");
    assert_eq!(told(&all), (AnswerState::Loading, vec![silent.clone(), loading.clone()]));
    fleet.open("us-1", "observer");
    fleet.index.publish();
    assert_eq!(fleet.index.view().coverage(&all).clusters, 2, "one cluster is counted once");
    let loading = "us-1 NotRead the apps of the cluster have not been read yet".to_owned();
    assert_eq!(told(&all), (AnswerState::Loading, vec![silent, loading]));
    fleet.index.expect(["eu-1".to_owned(), "us-1".to_owned(), "us-2".to_owned()]);
    fleet.pass(151);
    let state = told(&all);
    assert_eq!(state.0, AnswerState::Partial);
    // The facts about us-1 were reported.
    assert_eq!(state.1[1], "us-1 Silent no source has reported all apps of the cluster since it was added");
    assert_eq!(state.1[2], "us-2 Silent no source has reported the cluster since it was added");
    let lost =
        taffrail_api::report::LostCluster { message: "refused".into(), silence: "does not answer".into() };
    fleet.facts("us-1", "observer", |facts| facts.lost = Some(lost), Vec::new());
    fleet.index.publish();
    assert_eq!(told(&all).1[1], "us-1 Unreachable does not answer");
}

#[test]
fn watched_page_equals_a_page_that_is_computed_anew() {
    let filters = [
        AppFilter::default(),
        AppFilter { status: Some("!Ready".parse().unwrap()), ..AppFilter::default() },
        AppFilter { text: "eb".to_owned(), sync: Some("!Failed".parse().unwrap()), ..AppFilter::default() },
        AppFilter { clusters: vec!["eu-1".to_owned(), "us-2".to_owned()], ..AppFilter::default() },
        in_eu(),
    ];
    let sorts = [
        None,
        Some(SortField::Name),
        Some(SortField::Status),
        Some(SortField::Cluster),
        Some(SortField::Since),
    ];
    let shown = |view: &FleetView, watch: &PageWatch| -> Vec<AppRow> {
        watch.page().iter().map(|it| view.row(&it.pair)).collect()
    };
    let (mut followed, mut searched) = (0, 0);
    for seed in 0..30 {
        let mut random = fastrand::Rng::with_seed(seed);
        let fleet = SampleFleet::new();
        CLUSTERS.iter().for_each(|cluster| fleet.open(cluster, "observer"));
        // Many that do not change.
        let many: Vec<_> = (0..300).map(|number| app("us-2", &format!("z/app-{number}"))).collect();
        let halves =
            many.iter().flat_map(|app| [declared(app, "us-2", |_| {}), observed(app, Status::Current, "")]);
        fleet.snapshot("us-2", halves.collect());
        fleet.index.publish();
        let mut seen = fleet.index.last_view();
        let mut watches: Vec<(usize, Option<SortField>, PageWatch)> = Vec::new();
        for (at, filter) in filters.iter().enumerate() {
            watches.extend(sorts.map(|sort| (at, sort, PageWatch::new(filter.clone(), sort, 3, &seen))));
        }
        for step in 0..60 {
            disturb(&fleet, &mut random);
            fleet.index.publish();
            if random.bool() {
                continue;
            }
            let view = fleet.index.last_view();
            let differences = fleet.index.differences(&seen, &view);
            for (at, sort, watch) in &mut watches {
                let (before, old) = (watch.searches, (shown(&seen, watch), watch.counts(), watch.problems()));
                let is_changed = watch.follow(&seen, &view, differences.as_deref());
                searched += watch.searches - before;
                followed += 1;
                let page =
                    view.page(&AppQueryPage { filter: &filters[*at], sort: *sort, limit: 3, after: None });
                let expected: Vec<AppRow> = page.pairs.iter().map(|(_, pair)| view.row(pair)).collect();
                let found = shown(&view, watch);
                assert_eq!(found, expected, "seed {seed}, step {step}, filter {at}, {sort:?}");
                assert_eq!(watch.counts(), page.counts);
                assert_eq!(watch.problems(), page.problems);
                let same =
                    |row: &AppRow| (row.app_name(), row.effective, row.sync.effective, row.problem.clone());
                let is_same = old.0.iter().map(same).eq(found.iter().map(same));
                let is_same = is_same && (old.1, old.2) == (watch.counts(), watch.problems());
                assert!(is_changed || is_same, "seed {seed}, step {step}, filter {at}, {sort:?}");
            }
            seen = view;
        }
    }
    assert!(searched * 3 < followed, "{searched} of {followed} pages were searched anew");
}

#[test]
fn changed_list_of_pairs_equals_one_that_is_made_again() {
    for seed in 0..10 {
        let mut random = fastrand::Rng::with_seed(seed);
        let fleet = SampleFleet::new();
        CLUSTERS.iter().for_each(|cluster| fleet.open(cluster, "observer"));
        for cluster in CLUSTERS {
            // Beside so many, the changes of one step are few.
            let many: Vec<_> = (0..50).map(|number| app(cluster, &format!("a/web-{number}"))).collect();
            let halves = many
                .iter()
                .flat_map(|app| [declared(app, cluster, |_| {}), observed(app, Status::Current, "")]);
            fleet.snapshot(cluster, halves.collect());
        }
        for step in 0..60 {
            disturb(&fleet, &mut random);
            fleet.index.publish();
            let published = fleet.index.published();
            for (_, cluster) in published.all() {
                let (found, names) = (&cluster.pairs, &mut lock(&fleet.index.owner).names);
                let expected = ClusterPairs::new(found.pairs.iter().cloned().collect(), names);
                let told = |pairs: &ClusterPairs| {
                    let apps: Vec<_> = pairs.pairs.iter().map(|pair| pair.app.clone()).collect();
                    // A list that is made again may number its classes otherwise.
                    let plain = |it: ListedPair<'_>| {
                        let Summary { class: _, namespace, name, key, messages, .. } = *it.summary;
                        format!("{:?}", (it.class, it.summary.since(), namespace, name, key, messages))
                    };
                    let summaries: Vec<String> = pairs.iter().map(plain).collect();
                    (apps, summaries, pairs.strays, pairs.guests)
                };
                assert_eq!(told(found), told(&expected), "seed {seed}, step {step}");
                let all: Vec<_> = found.classes.iter().collect();
                for (number, counted) in (0..).zip(all) {
                    let pairs = found.summaries.iter().filter(|it| it.class == number).count();
                    assert_eq!(counted.pairs, pairs, "seed {seed}, step {step}, class {number}");
                }
            }
        }
    }
}

#[test]
fn names_that_no_app_has_any_more_are_forgotten() {
    let fleet = SampleFleet::new().with("prod", &[("a/web", Status::Current, "")]);
    for round in 0..50 {
        let apps: Vec<_> =
            (0..100).map(|number| app("prod", &format!("n-{round}/app-{round}-{number}"))).collect();
        fleet.snapshot("prod", apps.iter().map(|app| declared(app, "prod", |_| {})).collect());
        fleet.index.publish();
        let view = fleet.index.view();
        assert!(view.fleet().names.len() <= 6 * 100 + MIN_NAMES);
        let filter = AppFilter { text: format!("app-{round}-7"), ..AppFilter::default() };
        assert_eq!(pages(&view, &filter, Some(SortField::Name)).len(), 11, "round {round}");
    }
}

#[test]
fn apps_of_dark_clusters_are_sorted_by_time_among_the_others() {
    let fleet = SampleFleet::new()
        .with("dark", &[("shop/db", Status::Current, "")])
        .with("live", &[("shop/web", Status::Current, "")]);
    let fail = |seconds: i64| {
        let at = fleet.index.clock().time().now - jiff::SignedDuration::from_secs(seconds);
        let mut half = observed(&app("live", "shop/web"), Status::Failed, "x");
        if let HalfBody::Observed(body) = &mut half.body
            && let Some(worst) = &mut body.worst
        {
            worst.problem.since = Some(at);
        }
        half.fingerprint = seconds as u64;
        fleet.change("live", "observer", vec![half]);
    };
    let order = || {
        fleet.index.publish();
        let view = fleet.index.view();
        let names = pages(&view, &AppFilter::default(), Some(SortField::Since));
        names.into_iter().map(|row| row.cluster).collect::<Vec<_>>()
    };
    for _ in 0..7 {
        fleet.pass(15);
        fleet.send("live", "observer", taffrail_api::report::Content::Heartbeat);
    }
    fail(30);
    assert_eq!(order(), ["dark", "live"]);
    fail(300);
    assert_eq!(order(), ["live", "dark"]);
}

#[test]
fn rows_of_a_lost_cluster_have_one_freshness_in_every_answer() {
    let apps = [("shop/db", Status::Current, ""), ("shop/web", Status::Current, "")];
    let fleet = SampleFleet::new().with("eu", &apps);
    // A watch breaks before the source finds out that the whole cluster is lost.
    let mut half = observed(&app("eu", "shop/db"), Status::Current, "");
    if let HalfBody::Observed(body) = &mut half.body {
        body.not_live = Some(NotLive { state: FreshnessState::Stale, age: Some(Duration::from_secs(30)) });
    }
    fleet.change("eu", "observer", vec![half]);
    fleet.pass(7);
    let lost = NotLive { state: FreshnessState::Lost, age: Some(Duration::from_secs(7)) };
    fleet.facts("eu", "observer", |facts| facts.not_live = Some(lost), Vec::new());
    fleet.index.publish();
    let view = fleet.index.view();
    let told: BTreeSet<_> =
        rows(&view).iter().map(|row| (row.freshness.state, row.freshness.observed_at, row.since)).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told.iter().all(|(state, ..)| *state == FreshnessState::Lost), "{told:?}");
    assert_eq!(view.counts().get(Status::Unknown), 2);
    assert_eq!(view.attention(&AppFilter::default(), 10).items.len(), 1);
}
