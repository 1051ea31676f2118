//! Argo CD's application controller: `argocd_app_info` and `argocd_app_sync_total`.

use std::collections::HashMap;

use taffrail_apps::{Delivery, Source, SyncState, argo_health_status};
use taffrail_status::Status;

use super::{AppPlace, CountedSyncs, Samples, Selector, Telling, Told, ToldHealth};
use crate::sample::{Series, Target};

const INFO: &str = "argocd_app_info";
const SYNCS: &str = "argocd_app_sync_total";

/// The address by which Argo CD names the cluster in which it runs.
const IN_CLUSTER: &str = "https://kubernetes.default.svc";

pub(super) fn selectors() -> Vec<Selector> {
    vec![Selector::of(INFO), Selector::of(SYNCS)]
}

pub(super) fn tell(samples: &[Option<Samples>], telling: &mut Telling<'_>) {
    for sample in samples.first().into_iter().flatten().flatten() {
        if !telling.is_number(sample) || sample.series.value != 1.0 {
            continue;
        }
        let Some(place) = place(&sample.series, telling) else { continue };
        let destination = destination(&sample.series, telling);
        if let Some(fact) = telling.add(sample, INFO, place, info(&sample.series)) {
            fact.destination = destination;
        }
    }
    // The phases of one app are series of their own; of several controllers the one that was scraped last counts.
    let mut counted: HashMap<(AppPlace, Target), (f64, CountedSyncs)> = HashMap::new();
    for sample in samples.get(1).into_iter().flatten().flatten() {
        if !telling.is_number(sample) {
            continue;
        }
        let Some(place) = place(&sample.series, telling) else { continue };
        let target = sample.series.target(&telling.config.cluster_label);
        let (at, syncs) = counted.entry((place, target)).or_insert((sample.at, CountedSyncs::default()));
        *at = at.min(sample.at);
        match sample.series.label("phase") {
            "Succeeded" => syncs.succeeded += sample.series.value,
            "Failed" | "Error" => syncs.failed += sample.series.value,
            _ => {}
        }
    }
    for ((place, target), (at, syncs)) in counted {
        telling.add_fact(SYNCS, place, at, target, Told { syncs: Some(syncs), ..Told::default() });
    }
}

fn place(series: &Series, telling: &mut Telling<'_>) -> Option<AppPlace> {
    let cluster = telling.cluster(series)?;
    let app =
        telling.app(&cluster, Delivery::ArgoApplication, series.own("namespace"), series.own("name"))?;
    Some((cluster, app))
}

/// Returns the name of the cluster that holds the objects, if the configuration has one for its address.
fn destination(series: &Series, telling: &Telling<'_>) -> Option<Box<str>> {
    let server = series.label("dest_server").trim_end_matches('/');
    let known =
        telling.config.destinations.iter().find(|(address, _)| address.trim_end_matches('/') == server);
    known.filter(|_| server != IN_CLUSTER).map(|(_, name)| name.as_str().into())
}

/// Returns what the labels of `argocd_app_info` tell.
pub(super) fn info(series: &Series) -> Told {
    let word = series.label("health_status");
    let status = match (series.label("operation"), word) {
        ("delete", _) => Some(Status::Terminating),
        // Neither did Argo CD assess it, nor does the metric have the label.
        (_, "") => None,
        _ => Some(argo_health_status(word, series.label("sync_status"))),
    };
    let words = match status {
        Some(Status::Unknown) if word == "Healthy" => {
            "health_status Healthy, and sync_status Unknown".to_owned()
        }
        Some(Status::Terminating) => "operation delete".to_owned(),
        _ => format!("health_status {word}"),
    };
    let sync = match (series.label("operation"), series.label("sync_status")) {
        (_, "") => None,
        ("sync", _) => Some(SyncState::Syncing),
        (_, "Synced") => Some(SyncState::Synced),
        (_, "OutOfSync") => Some(SyncState::OutOfSync),
        _ => Some(SyncState::Unknown),
    };
    let repository = series.label("repo");
    let source = (!repository.is_empty()).then(|| Source {
        kind: "git".to_owned(),
        namespace: None,
        name: None,
        url: Some(repository.to_owned()),
        path: None,
        reference: None,
    });
    Told {
        health: status.map(|status| ToldHealth { status, is_of_objects: true, words }),
        sync,
        source,
        ..Told::default()
    }
}
