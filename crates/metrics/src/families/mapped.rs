//! Metrics of other tools, by the mappings of the configuration.

use taffrail_status::Status;

use super::{Samples, Telling, Told, ToldHealth};
use crate::config::{MappedWord, Mapping};
use crate::sample::Sample;

pub(super) fn tell(samples: &[Option<Samples>], telling: &mut Telling<'_>) {
    let config = telling.config;
    let Some(mapping) = config.mappings.get(telling.mapping) else { return };
    for sample in samples.first().into_iter().flatten().flatten() {
        if !telling.is_number(sample) {
            continue;
        }
        let series = &sample.series;
        let cluster = match &mapping.labels.cluster {
            Some(label) => telling.checked_cluster(series.own(label)),
            None => telling.cluster(series),
        };
        let namespace = mapping.labels.namespace.as_ref().map_or("", |label| series.own(label));
        let Some(cluster) = cluster else { continue };
        let Some(app) = telling.app(&cluster, mapping.delivery, namespace, series.own(&mapping.labels.name))
        else {
            continue;
        };
        let told = told(mapping, sample);
        if told != Told::default() {
            telling.add(sample, &mapping.metric.value, (cluster, app), told);
        }
    }
}

fn told(mapping: &Mapping, sample: &Sample) -> Told {
    let health = mapping.health.as_ref().and_then(|word| {
        let written = written(word, sample)?;
        // A word without a meaning is not known to be well.
        let status = word.values.get(&written).copied().unwrap_or(Status::Unknown);
        let words = format!("{} {written}", word.label.as_deref().unwrap_or("value"));
        Some(ToldHealth { status, is_of_objects: true, words })
    });
    let sync = mapping.sync.as_ref().and_then(|word| word.values.get(&written(word, sample)?).copied());
    let suspended =
        mapping.suspended.as_ref().and_then(|word| word.values.get(&written(word, sample)?).copied());
    let revision =
        mapping.revision.as_ref().map(|label| sample.series.own(label)).filter(|text| !text.is_empty());
    let is_told = health.is_some() || sync.is_some() || suspended.is_some();
    Told {
        health,
        sync,
        suspended,
        applied: revision.filter(|_| is_told).map(str::to_owned),
        ..Told::default()
    }
}

/// Returns the word of a sample: the value of the label if the sample says that it is so, or its own value.
fn written<T>(word: &MappedWord<T>, sample: &Sample) -> Option<String> {
    match &word.label {
        Some(label) => (sample.series.value == 1.0)
            .then(|| sample.series.own(label).to_owned())
            .filter(|it| !it.is_empty()),
        None => Some(sample.series.value.to_string()),
    }
}
