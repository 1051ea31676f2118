//! Custom resource state of kube-state-metrics: `kube_customresource_*` of objects that declare apps.
//!
//! The names are those of its configuration, so the shape tells the meaning: a label `ready`, labels `health_status` and
//! `sync_status`, or the labels `type` and `status` of a condition.

use std::collections::HashMap;

use taffrail_apps::{Delivery, SyncState};
use taffrail_status::Status;

use super::{AppPlace, Samples, Selector, Telling, Told, ToldHealth, argo, delivery_of, flux};
use crate::sample::{NAME, Sample, Series};

const KINDS: &str =
    "customresource_kind=~\"Kustomization|HelmRelease|Application|RootSync|RepoSync|ResourceGroup\"";

pub(super) fn selectors() -> Vec<Selector> {
    vec![Selector::expression("kube_customresource_.+", KINDS)]
}

pub(super) fn tell(samples: &[Option<Samples>], telling: &mut Telling<'_>) {
    let samples = samples.first().and_then(Option::as_deref).unwrap_or_default();
    let is_condition = |sample: &&Sample| {
        !sample.series.label("type").is_empty() && !sample.series.label("status").is_empty()
    };
    let (conditions, others): (Vec<&Sample>, Vec<&Sample>) = samples.iter().partition(is_condition);
    let conditions: Vec<Sample> = conditions.into_iter().cloned().collect();
    let mut kstatus: HashMap<AppPlace, [Option<(Sample, &str)>; 2]> = HashMap::new();
    for (sample, status) in telling.states(&conditions, "status") {
        let series = &sample.series;
        let Some(place) = place(series, telling) else { continue };
        let is_flux = matches!(place.1.delivery, Delivery::FluxKustomization | Delivery::FluxHelmRelease);
        match series.label("type") {
            "Ready" if is_flux => {
                let metric = series.label(NAME).to_owned();
                telling.add(&sample, &metric, place, flux::ready("status", status));
            }
            "Stalled" if !is_flux => newest(&mut kstatus.entry(place).or_default()[0], (sample, status)),
            "Reconciling" if !is_flux => newest(&mut kstatus.entry(place).or_default()[1], (sample, status)),
            _ => {}
        }
    }
    for (place, [stalled, reconciling]) in kstatus {
        let told = |status: Status, words: &str, sync| Told {
            health: Some(ToldHealth { status, is_of_objects: false, words: words.to_owned() }),
            sync,
            ..Told::default()
        };
        let (sample, told) = match (stalled, reconciling) {
            (Some((sample, "True")), _) => {
                (sample, told(Status::Failed, "condition Stalled True", Some(SyncState::Failed)))
            }
            (_, Some((sample, "True"))) => {
                (sample, told(Status::InProgress, "condition Reconciling True", Some(SyncState::Syncing)))
            }
            // One without the other proves nothing.
            (Some((one, "False")), Some((other, "False"))) => {
                let older = if one.at < other.at { one } else { other };
                (older, told(Status::Current, "", None))
            }
            (Some((sample, _)), _) | (None, Some((sample, _))) => (sample, Told::default()),
            (None, None) => continue,
        };
        let metric = sample.series.label(NAME).to_owned();
        telling.add(&sample, &metric, place, told);
    }
    for sample in others {
        if !telling.is_number(sample) || sample.series.value != 1.0 {
            continue;
        }
        let Some(place) = place(&sample.series, telling) else { continue };
        let told = match place.1.delivery {
            Delivery::ArgoApplication => argo::info(&sample.series),
            Delivery::FluxKustomization | Delivery::FluxHelmRelease => flux::info(&sample.series),
            _ => Told::default(),
        };
        if told != Told::default() {
            telling.add(sample, sample.series.label(NAME), place, told);
        }
    }
}

fn place(series: &Series, telling: &mut Telling<'_>) -> Option<AppPlace> {
    let delivery = delivery_of(series.label("customresource_kind"))?;
    let cluster = telling.cluster(series)?;
    let app = telling.app(&cluster, delivery, series.own("namespace"), series.own("name"))?;
    Some((cluster, app))
}

/// Replaces a sample by one that is newer, or as new and worse.
fn newest<'s>(held: &mut Option<(Sample, &'s str)>, new: (Sample, &'s str)) {
    let is_older = held.as_ref().is_none_or(|(held, status)| {
        held.at < new.0.at || (held.at == new.0.at && *status != "True" && new.1 != "False")
    });
    if is_older {
        *held = Some(new);
    }
}
