//! Filters and orders of rows.

use serde_json::json;
use taffrail_api::ImageUses;
use taffrail_api::filter::{self, Filter, SortField, StatusFilter};
use taffrail_apps::{AppList, Delivery, Freshness, FreshnessState, Snapshot, apps};
use taffrail_status::{ActiveRules, Status};

use super::dump::{NOW, apps_of, holding, release};
use super::tree::{kustomization, object};

#[test]
fn status_filter_names_or_excludes_statuses() {
    for (text, admitted) in [
        ("Ready", &[Status::Current][..]),
        ("current,inprogress", &[Status::InProgress, Status::Current]),
        ("!Ready", &Status::ALL[..5]),
        ("Failed,Unknown,!Unknown", &[Status::Failed]),
        ("!Ready,InProgress", &[Status::Failed, Status::NotFound, Status::Unknown, Status::Terminating]),
    ] {
        let filter: StatusFilter = text.parse().unwrap();
        let found: Vec<Status> = Status::ALL.into_iter().filter(|status| filter.admits(*status)).collect();
        assert_eq!(found, admitted, "{text}");
    }
    assert!("Redy".parse::<StatusFilter>().unwrap_err().to_string().contains("Ready"));
    assert!("".parse::<StatusFilter>().is_err());
}

fn prod() -> Snapshot {
    let mut web = object("apps/v1", "Deployment", "web", None);
    web["spec"] = json!({"template": {"spec": {
        "containers": [{"image": "ghcr.io/acme/web:1.2"}], "initContainers": [{"image": "busybox"}],
    }}});
    let mut job = object("batch/v1", "CronJob", "job", None);
    job["spec"] = json!({"jobTemplate": {"spec": {"template": {"spec": {"containers": [{"image": "ghcr.io/acme/job:3"}]}}}}});
    let mut quiet = kustomization("quiet", &[]);
    quiet["spec"]["suspend"] = json!(true);
    quiet["metadata"]["labels"] = json!({"team": "red"});
    let ids =
        ["shop_web_apps_Deployment", "shop_job_batch_CronJob", "shop_gone__ConfigMap"].map(str::to_owned);
    let fleet = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"namespace": "shop", "name": "fleet"},
        "status": {"artifact": {"revision": "main@sha1:1"}},
    });
    holding(
        "prod",
        &[fleet, kustomization("app", &ids), quiet, release("data", "pg", 1, "deployed", ""), web, job],
    )
}

fn shown(filter: &Filter) -> Vec<String> {
    let prod = prod();
    let mut list = apps(&[&prod], &ActiveRules::default(), NOW);
    filter.apps(&mut list, &[&prod]);
    filter.by_status(&mut list);
    list.apps.into_iter().map(|app| app.app.name).collect()
}

#[test]
fn apps_are_filtered_by_their_declaring_object() {
    let all = Filter::default();
    assert_eq!(shown(&all), ["pg", "app", "quiet"]);
    assert_eq!(shown(&Filter { deliveries: vec![Delivery::Helm], ..all.clone() }), ["pg"]);
    assert_eq!(shown(&Filter { suspended: true, ..all.clone() }), ["quiet"]);
    assert_eq!(shown(&Filter { labels: Some("team=blue".parse().unwrap()), ..all.clone() }), ["app"]);
    assert_eq!(shown(&Filter { labels: Some("!team".parse().unwrap()), ..all.clone() }), ["pg"]);

    // What only labels hold together has the labels that all its objects have.
    let held = |name: &str, tier: &str| {
        let labels = json!({"app.kubernetes.io/part-of": "wiki", "team": "green", "tier": tier});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "wiki", "name": name, "labels": labels}})
    };
    let cluster = holding("prod", &[held("a", "web"), held("b", "db")]);
    for (selector, is_shown) in [
        ("team=green", true),
        ("app.kubernetes.io/part-of=wiki", true),
        ("tier", false),
        ("tier=web", false),
        ("!tier", true),
    ] {
        let mut list = apps_of(&cluster);
        let filter = Filter { labels: Some(selector.parse().unwrap()), ..all.clone() };
        filter.apps(&mut list, &[&cluster]);
        assert_eq!(list.apps.len(), usize::from(is_shown), "{selector}");
    }
    assert_eq!(shown(&Filter { clusters: vec!["edge".to_owned()], ..all.clone() }), Vec::<String>::new());
    assert_eq!(shown(&Filter { status: Some("!Ready".parse().unwrap()), ..all }), ["app"]);
}

#[test]
fn stale_apps_match_unknown_and_not_ready() {
    let prod = prod();
    let mut list = apps(&[&prod], &ActiveRules::default(), NOW);
    for app in &mut list.apps {
        app.freshness = Freshness { state: FreshnessState::Stale, observed_at: Some(NOW) };
    }
    let by = |text: &str, list: &AppList| {
        let mut list = list.clone();
        Filter { status: Some(text.parse().unwrap()), ..Filter::default() }.by_status(&mut list);
        list.apps.len()
    };
    assert_eq!((by("Ready", &list), by("Unknown", &list)), (0, 3));
}

#[test]
fn objects_are_filtered_by_kind_status_and_image() {
    let names = |filter: Filter| {
        let prod = prod();
        let mut list = apps(&[&prod], &ActiveRules::default(), NOW);
        let uses = ImageUses::of(&filter.images, &[&prod]);
        filter.resources(&mut list, Some(&uses).filter(|_| !filter.images.is_empty()));
        let resources = list.apps.into_iter().flat_map(|app| app.resources);
        resources.map(|resource| resource.key.name.clone()).collect::<Vec<_>>()
    };
    let of_kind = |kind: &str| names(Filter { kinds: vec![kind.to_owned()], ..Filter::default() });
    assert_eq!(of_kind("deploy"), ["web"]);
    assert_eq!(of_kind("Deployments"), ["web"]);
    assert_eq!(of_kind("deployment.apps"), ["web"]);
    assert_eq!(of_kind("deployment.other"), Vec::<String>::new());
    let of_image = |image: &str| names(Filter { images: vec![image.to_owned()], ..Filter::default() });
    assert_eq!(of_image("acme/web"), ["web"]);
    assert_eq!(of_image("busybox"), ["web"], "of an init container");
    assert_eq!(of_image("acme/"), ["web", "job"]);
    assert_eq!(names(Filter { status: Some("NotFound".parse().unwrap()), ..Filter::default() }), ["gone"]);
}

#[test]
fn lists_are_sorted_by_the_given_field() {
    let names = |by| {
        let mut list = apps(&[&prod()], &ActiveRules::default(), NOW);
        filter::sort_apps(&mut list.apps, by);
        list.apps.into_iter().map(|app| app.app.name).collect::<Vec<_>>()
    };
    assert_eq!(names(SortField::Name), ["app", "pg", "quiet"]);
    assert_eq!(names(SortField::Status), ["app", "quiet", "pg"]);
    assert_eq!(names(SortField::Delivery), ["app", "quiet", "pg"]);
}

#[test]
fn a_list_of_sync_states_that_begins_with_not_is_negated_as_a_whole() {
    let by = |text: &str| shown(&Filter { sync: Some(text.parse().unwrap()), ..Filter::default() });
    assert_eq!(by("!Synced"), ["app", "quiet"]);
    assert_eq!(by("!Synced,Suspended"), by("!Synced,!Suspended"));
    assert_eq!(by("!Synced,Suspended"), ["app"]);
    assert_eq!(by("!Synced,Suspended,OutOfSync"), Vec::<String>::new());
}

#[test]
fn sync_filter_never_matches_label_apps() {
    let labels = json!({"app.kubernetes.io/part-of": "wiki"});
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "wiki", "name": "a", "labels": labels}});
    let cluster = holding("prod", &[held]);
    assert_eq!(apps_of(&cluster).apps.len(), 1);
    for states in ["Unknown", "!Synced", "Unknown,Failed"] {
        let mut list = apps_of(&cluster);
        Filter { sync: Some(states.parse().unwrap()), ..Filter::default() }.apps(&mut list, &[&cluster]);
        assert_eq!(list.apps.len(), 0, "{states}");
    }
}

#[test]
fn deliveries_are_named_as_tables_show_them() {
    for (word, delivery) in [
        ("argo", Delivery::ArgoApplication),
        ("ks", Delivery::FluxKustomization),
        ("hr", Delivery::FluxHelmRelease),
        ("helm", Delivery::Helm),
        ("flux-kustomization", Delivery::FluxKustomization),
    ] {
        assert_eq!(Delivery::of_word(word), Ok(delivery));
    }
    for delivery in Delivery::ALL {
        assert_eq!(Delivery::of_word(taffrail_api::text::delivery(delivery)), Ok(delivery));
    }
    assert!(Delivery::of_word("frog").unwrap_err().to_string().contains("(argo)"));
}
