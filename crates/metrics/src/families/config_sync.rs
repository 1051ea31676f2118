//! Config Sync: the numbers of objects of a ResourceGroup, the last sync, and the errors of a reconciler.

use std::collections::HashMap;

use taffrail_apps::{Delivery, SyncState};
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use super::{AppPlace, Samples, Selector, Telling, Told, ToldHealth};
use crate::sample::{Sample, Series, Target};

const COUNT: &str = "resource_count";
const READY: &str = "ready_resource_count";
const LAST_SYNC: &str = "last_sync_timestamp";
const ERRORS: &str = "reconciler_errors";

/// The commit of a sync that synced none.
const NO_COMMIT: &str = "NONE";

/// A value and the time of its sample.
type TimedValue = (f64, f64);

pub(super) fn selectors() -> Vec<Selector> {
    // Its OpenTelemetry collector puts a prefix before each name.
    [COUNT, READY, LAST_SYNC, ERRORS]
        .map(|name| Selector::expression(&format!("(config_sync_)?{name}"), ""))
        .into()
}

pub(super) fn tell(samples: &[Option<Samples>], telling: &mut Telling<'_>) {
    let of = |place: usize| samples.get(place).and_then(Option::as_deref).unwrap_or_default();
    numbers(of(0), of(1), telling);
    syncs(of(2), telling);
    errors(of(3), telling);
}

/// Tells by the number of objects of each ResourceGroup and that of its ready ones, of one scrape of one target.
fn numbers(all: &[Sample], ready: &[Sample], telling: &mut Telling<'_>) {
    let mut found: HashMap<(AppPlace, Target), [Option<TimedValue>; 2]> = HashMap::new();
    for (at, samples) in [all, ready].into_iter().enumerate() {
        for sample in samples {
            if !telling.is_number(sample) {
                continue;
            }
            let group = sample.series.own("resourcegroup");
            let Some((namespace, name)) = group.split_once('/') else {
                let label = telling.config.cluster_label.as_str();
                telling.refuse(sample.series.label(label), super::NO_APP);
                continue;
            };
            let Some(cluster) = telling.cluster(&sample.series) else { continue };
            let Some(app) = telling.app(&cluster, Delivery::ConfigSync, namespace, name) else { continue };
            let target = sample.series.target(&telling.config.cluster_label);
            let pair = found.entry(((cluster, app), target)).or_default();
            if let Some(number) = pair.get_mut(at)
                && number.is_none_or(|(_, before)| before < sample.at)
            {
                *number = Some((sample.series.value, sample.at));
            }
        }
    }
    for ((place, target), pair) in found {
        // One number without the other tells nothing but that the app exists.
        let alike = match pair {
            [Some((count, at)), Some((ready, ready_at))] if (at - ready_at).abs() < 1.0 => whole(count)
                .zip(whole(ready))
                .filter(|(count, ready)| ready <= count)
                .map(|it| (it, at.min(ready_at))),
            _ => None,
        };
        let Some(((count, ready), at)) = alike else {
            let newest = pair.into_iter().flatten().map(|(_, at)| at).fold(0.0, f64::max);
            telling.add_fact(COUNT, place, newest, target, Told::default());
            continue;
        };
        let status = if ready == count { Status::Current } else { Status::Unknown };
        let words = format!("{ready} of {count} objects ready");
        let mut counts = Counts::default();
        counts.add_many(Status::Current, ready);
        counts.add_many(Status::Unknown, count - ready);
        let told = Told {
            health: Some(ToldHealth { status, is_of_objects: true, words }),
            counts: Some(counts),
            ..Told::default()
        };
        telling.add_fact(READY, place, at, target, told);
    }
}

/// Returns a number of objects; `None` for one that cannot be.
fn whole(value: f64) -> Option<usize> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just before")]
    (value.fract() == 0.0 && (0.0..=1e9).contains(&value)).then_some(value as usize)
}

/// Tells by the sync that was the last by the value, among the samples of the newest scrape.
fn syncs(samples: &[Sample], telling: &mut Telling<'_>) {
    let mut last: HashMap<AppPlace, &Sample> = HashMap::new();
    for sample in samples {
        if !telling.is_number(sample) {
            continue;
        }
        let Some(place) = reconciler(&sample.series, telling) else { continue };
        let held = last.entry(place).or_insert(sample);
        // The collector keeps the series of an earlier commit for minutes.
        let key =
            |sample: &Sample| (sample.at, sample.series.value, sample.series.label("status") != "success");
        if key(sample) > key(held) {
            *held = sample;
        }
    }
    for (place, sample) in last {
        let is_success = match sample.series.own("status") {
            "success" => true,
            "error" => false,
            _ => continue,
        };
        let commit = sample.series.label("commit");
        let is_known = is_success && !commit.is_empty() && commit != NO_COMMIT;
        let told = Told {
            sync: Some(if is_success { SyncState::Synced } else { SyncState::Failed }),
            applied: is_known.then(|| commit.to_owned()),
            ..Told::default()
        };
        telling.add(sample, LAST_SYNC, place, told);
    }
}

/// Tells of reconcilers that count errors now.
fn errors(samples: &[Sample], telling: &mut Telling<'_>) {
    for sample in samples {
        if !telling.is_number(sample) || sample.series.value <= 0.0 {
            continue;
        }
        let Some(place) = reconciler(&sample.series, telling) else { continue };
        telling.add(sample, ERRORS, place, Told { sync: Some(SyncState::Failed), ..Told::default() });
    }
}

fn reconciler(series: &Series, telling: &mut Telling<'_>) -> Option<AppPlace> {
    let (namespace, name) = (series.label("configsync_sync_namespace"), series.label("configsync_sync_name"));
    let cluster = telling.cluster(series)?;
    let app = telling.app(&cluster, Delivery::ConfigSync, namespace, name)?;
    Some((cluster, app))
}
