//! The samples of a stand-in for Prometheus, and its answers to queries about them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::query::{Labels, NAME, Query, QueryFault, labels, lines};

/// The time for which a sample is found after its scrape, in seconds.
const LOOKBACK: f64 = 300.0;

/// The newest samples of targets. It reads no clock: times are given, in seconds.
#[derive(Debug, Default)]
pub struct Scrapes {
    targets: Vec<ScrapedTarget>,
}

/// A target: its own labels, and the newest sample of each series: its value and its time.
#[derive(Debug)]
struct ScrapedTarget {
    labels: Labels,
    series: BTreeMap<Labels, (f64, f64)>,
}

impl Scrapes {
    /// Replaces the samples of the target with these labels (`job="a",instance="b"`) by those of `text`, which is in the
    /// text format of metrics, as a scrape at the time `now` does: `up` is 1, and a label of a series that the target has,
    /// too, gets the prefix `exported_`.
    ///
    /// # Errors
    /// If the labels or the text cannot be parsed; then nothing changes.
    pub fn scrape(&mut self, target: &str, text: &str, now: f64) -> Result<(), QueryFault> {
        let lines = lines(text)?;
        let target = self.target(target)?;
        target.series.clear();
        for (mut series, value, at) in lines {
            for (label, own) in &target.labels {
                if let Some(exported) = series.insert(label.clone(), own.clone()) {
                    series.insert(format!("exported_{label}"), exported);
                }
            }
            // An empty label is one that the series does not have.
            series.retain(|_, text| !text.is_empty());
            target.series.insert(series, (value, at.map_or(now, |at| at / 1_000.0)));
        }
        target.up(1.0, now);
        Ok(())
    }

    /// Lets a scrape of a target fail at the time `now`: `up` is 0, and all else is gone.
    ///
    /// # Errors
    /// If the labels cannot be parsed; then nothing changes.
    pub fn fail(&mut self, target: &str, now: f64) -> Result<(), QueryFault> {
        let target = self.target(target)?;
        target.series.clear();
        target.up(0.0, now);
        Ok(())
    }

    /// Returns the target with these labels; adds it if there is none.
    fn target(&mut self, text: &str) -> Result<&mut ScrapedTarget, QueryFault> {
        let labels = labels(text)?;
        let place = self.targets.iter().position(|target| target.labels == labels);
        let place = place.unwrap_or_else(|| {
            self.targets.push(ScrapedTarget { labels, series: BTreeMap::new() });
            self.targets.len() - 1
        });
        Ok(&mut self.targets[place])
    }

    /// Returns the body of the answer to an instant query at the time `time`.
    ///
    /// # Errors
    /// If the query is not understood.
    pub fn answer(&self, query: &str, time: f64) -> Result<Value, QueryFault> {
        let (selector, of_times) = match Query::parse(query)? {
            Query::Time => return Ok(success("scalar", json!([time, number(time)]))),
            Query::Values(selector) => (selector, false),
            Query::Times(selector) => (selector, true),
        };
        let all = self.targets.iter().flat_map(|target| &target.series);
        let found =
            all.filter(|(labels, (_, at))| *at <= time && time - at < LOOKBACK && selector.selects(labels));
        let found = found.map(|(labels, (value, at))| {
            // A function drops the name.
            let metric: BTreeMap<&String, &String> =
                labels.iter().filter(|(label, _)| !of_times || *label != NAME).collect();
            json!({"metric": metric, "value": [time, number(if of_times { *at } else { *value })]})
        });
        Ok(success("vector", found.collect()))
    }
}

impl ScrapedTarget {
    fn up(&mut self, value: f64, now: f64) {
        let mut labels = self.labels.clone();
        labels.insert(NAME.to_owned(), "up".to_owned());
        self.series.insert(labels, (value, now));
    }
}

fn success(kind: &str, result: Value) -> Value {
    json!({"status": "success", "data": {"resultType": kind, "result": result}})
}

/// Formats a number as Prometheus does.
fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: &str = r#"job="argocd",cluster="eu""#;

    /// Returns the series of an answer with their values.
    fn found(scrapes: &Scrapes, query: &str, time: f64) -> Vec<(Value, String)> {
        let answer = scrapes.answer(query, time).unwrap();
        let result = answer["data"]["result"].as_array().unwrap();
        let text = |value: &Value| value["value"][1].as_str().unwrap().to_owned();
        result.iter().map(|series| (series["metric"].clone(), text(series))).collect()
    }

    #[test]
    fn samples_are_found_until_the_next_scrape_or_for_five_minutes() {
        let mut scrapes = Scrapes::default();
        scrapes.scrape(TARGET, "info{job=\"own\",name=\"a\"} 1\nold{} 2 50000", 100.0).unwrap();
        let series =
            json!({"__name__": "info", "job": "argocd", "exported_job": "own", "cluster": "eu", "name": "a"});
        assert_eq!(found(&scrapes, "info", 100.0), [(series, "1".to_owned())]);
        let times = json!({"job": "argocd", "cluster": "eu"});
        assert_eq!(found(&scrapes, "timestamp(old)", 100.0), [(times, "50".to_owned())]);
        for (query, time) in [("info", 99.0), ("old", 350.0), ("info", 400.0)] {
            assert!(found(&scrapes, query, time).is_empty(), "{query} at {time}");
        }
        assert_eq!(found(&scrapes, "up", 101.0)[0].1, "1");

        scrapes.scrape(TARGET, "other +Inf", 110.0).unwrap();
        assert!(found(&scrapes, "info", 111.0).is_empty());
        assert_eq!(found(&scrapes, "other", 111.0)[0].1, "+Inf");
        assert!(scrapes.scrape(TARGET, "what is this", 115.0).is_err());
        assert_eq!(found(&scrapes, "other", 116.0).len(), 1);
        scrapes.fail(TARGET, 120.0).unwrap();
        assert!(found(&scrapes, "other", 121.0).is_empty());
        assert_eq!(found(&scrapes, r#"up{cluster="eu"}"#, 121.0)[0].1, "0");
    }
}
