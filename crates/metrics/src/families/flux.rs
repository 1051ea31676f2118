//! Flux: `gotk_reconcile_condition` and `gotk_suspend_status` of its controllers, `gotk_resource_info` of
//! kube-state-metrics.

use taffrail_apps::{Delivery, SyncState};
use taffrail_status::Status;

use super::{AppPlace, Samples, Selector, Telling, Told, ToldHealth, delivery_of};
use crate::sample::Series;

const CONDITION: &str = "gotk_reconcile_condition";
const SUSPENSION: &str = "gotk_suspend_status";
const INFO: &str = "gotk_resource_info";

/// The kinds that declare apps; the others are sources and alerts.
const KINDS: &str = "kind=~\"Kustomization|HelmRelease\"";

pub(super) fn selectors() -> Vec<Selector> {
    let of = |name: &str, matchers: &str| Selector { matchers: matchers.to_owned(), ..Selector::of(name) };
    vec![
        of(CONDITION, &format!("type=\"Ready\",{KINDS}")),
        of(SUSPENSION, KINDS),
        of(INFO, &format!("customresource_{KINDS}")),
    ]
}

pub(super) fn tell(samples: &[Option<Samples>], telling: &mut Telling<'_>) {
    let of = |place: usize| samples.get(place).and_then(Option::as_deref).unwrap_or_default();
    for (sample, status) in telling.states(of(0), "status") {
        let Some(place) = place(&sample.series, sample.series.own("kind"), telling) else { continue };
        telling.add(&sample, CONDITION, place, ready("status", status));
    }
    for sample in of(1) {
        if !telling.is_number(sample) {
            continue;
        }
        let Some(place) = place(&sample.series, sample.series.own("kind"), telling) else { continue };
        let suspended = match sample.series.value {
            0.0 => false,
            1.0 => true,
            _ => continue,
        };
        telling.add(sample, SUSPENSION, place, suspension(suspended));
    }
    for sample in of(2) {
        if !telling.is_number(sample) || sample.series.value != 1.0 {
            continue;
        }
        let kind = sample.series.label("customresource_kind");
        let Some(place) = place(&sample.series, kind, telling) else { continue };
        telling.add(sample, INFO, place, info(&sample.series));
    }
}

fn place(series: &Series, kind: &str, telling: &mut Telling<'_>) -> Option<AppPlace> {
    let delivery =
        delivery_of(kind).filter(|it| matches!(it, Delivery::FluxKustomization | Delivery::FluxHelmRelease));
    let cluster = telling.cluster(series)?;
    let app = telling.app(&cluster, delivery?, series.own("namespace"), series.own("name"))?;
    Some((cluster, app))
}

/// Returns what the labels `ready`, `suspended` and `revision` of an object tell.
pub(super) fn info(series: &Series) -> Told {
    let told = ready("ready", series.label("ready"));
    let revision = series.label("revision");
    let told = Told { applied: (!revision.is_empty()).then(|| revision.to_owned()), ..told };
    match series.label("suspended") {
        "true" | "True" => Told { sync: Some(SyncState::Suspended), suspended: Some(true), ..told },
        "false" | "False" => Told { suspended: Some(false), ..told },
        _ => told,
    }
}

fn suspension(is_suspended: bool) -> Told {
    let sync = is_suspended.then_some(SyncState::Suspended);
    Told { suspended: Some(is_suspended), sync, ..Told::default() }
}

/// Returns what the status of the condition Ready of a declaring object tells; `label` has it.
pub(super) fn ready(label: &str, status: &str) -> Told {
    let (status, sync) = match status {
        "True" => (Status::Current, SyncState::Synced),
        "False" => (Status::Failed, SyncState::Failed),
        "Unknown" => (Status::InProgress, SyncState::Syncing),
        "Deleted" => (Status::Terminating, SyncState::Unknown),
        _ => return Told::default(),
    };
    let words = match status {
        Status::Terminating => format!("{label} Deleted"),
        Status::Failed => format!("{label} False of Ready"),
        _ => format!("{label} Unknown of Ready"),
    };
    Told {
        health: Some(ToldHealth { status, is_of_objects: false, words }),
        sync: Some(sync),
        ..Told::default()
    }
}
