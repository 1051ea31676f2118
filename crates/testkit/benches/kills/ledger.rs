//! The changes that a hub acknowledged, and the comparison of its history with them.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use taffrail_testkit::hub::Hub;

use crate::load::{App, Load};

/// A transition: its microsecond, in which history tells it, and the states before and after, as JSON.
type Transition = (i64, String, String);

/// The transitions of each app that a hub acknowledged: those that it showed as history, which it reads from its store,
/// and those that it showed as changes, from memory, before it said that nothing is unsaved.
#[derive(Default)]
pub(crate) struct Ledger {
    of: HashMap<String, BTreeSet<Transition>>,
}

/// The results of the comparison of history with a ledger.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) checked: usize,
    pub(crate) lost: usize,
    pub(crate) duplicates: usize,
    pub(crate) disordered: usize,
    pub(crate) broken: usize,
    pub(crate) half_written: usize,
    /// The first findings, for people.
    pub(crate) examples: Vec<String>,
}

impl Findings {
    pub(crate) fn is_clean(&self) -> bool {
        self.lost + self.duplicates + self.disordered + self.broken + self.half_written == 0
    }

    fn note(&mut self, example: String) {
        if self.examples.len() < 10 {
            self.examples.push(example);
        }
    }
}

fn transition(row: &Value) -> Transition {
    (time(row["at"].as_str().unwrap_or_default()), row["before"].to_string(), row["after"].to_string())
}

impl Ledger {
    /// Returns the number of acknowledged transitions.
    pub(crate) fn len(&self) -> usize {
        self.of.values().map(BTreeSet::len).sum()
    }

    /// Asks for the last changes, and takes them as acknowledged if the hub then says that nothing is unsaved. Returns
    /// true if there were new ones.
    pub(crate) fn changes(&mut self, hub: &Hub) -> Result<bool> {
        let list = hub.get("/api/v1/changes?limit=200")?;
        if !hub.has_saved()? {
            return Ok(false);
        }
        let before = self.len();
        for row in list["items"].as_array().context("no list of changes")? {
            let name = row["name"].as_str().unwrap_or_default();
            self.of.entry(name.to_owned()).or_default().insert(transition(row));
        }
        Ok(self.len() > before)
    }

    /// Asks for the last entries of the history of an app, which are acknowledged.
    pub(crate) fn history(&mut self, hub: &Hub, load: &Load, app: &App) -> Result<()> {
        let path = format!("/api/v1/history/{}/{}?limit=20", load.cluster(app.cluster), app.path());
        let list = hub.get(&path)?;
        for row in list["items"].as_array().context("no history")? {
            if row["type"] == "transition" {
                self.of.entry(app.name.clone()).or_default().insert(transition(row));
            }
        }
        Ok(())
    }

    /// Compares the history of an app since `from` (all of it, if empty), the earliest entry first, with what was
    /// acknowledged.
    pub(crate) fn compare(&self, app: &App, rows: &[Value], from: &str, findings: &mut Findings) {
        let mut last: Option<Transition> = None;
        let mut met = BTreeSet::new();
        for row in rows.iter().filter(|row| row["type"] == "transition") {
            let it = transition(row);
            let is_state = |state: &Value| {
                state.is_null() || ["health", "effective", "sync"].iter().all(|part| state[*part].is_string())
            };
            if it.0 == i64::MIN || !is_state(&row["before"]) || !is_state(&row["after"]) || it.1 == it.2 {
                findings.half_written += 1;
                findings.note(format!("{}: half-written {row}", app.name));
            }
            if let Some((at, _, after)) = &last {
                if *at > it.0 {
                    findings.disordered += 1;
                    findings.note(format!("{}: {at} before {}", app.name, it.0));
                }
                if *after != it.1 {
                    findings.broken += 1;
                    findings.note(format!("{}: after {at} {after}, before {} {}", app.name, it.0, it.1));
                }
            }
            if !met.insert(it.clone()) {
                findings.duplicates += 1;
                findings.note(format!("{}: twice {row}", app.name));
            }
            last = Some(it);
        }
        let acknowledged = self.of.get(&app.name).into_iter().flatten();
        for it in acknowledged.filter(|it| from.is_empty() || it.0 >= time(from)) {
            findings.checked += 1;
            if !met.contains(it) {
                findings.lost += 1;
                findings.note(format!("{}: lost {it:?}", app.name));
            }
        }
    }
}

/// Returns the microsecond of a time of an answer.
pub(crate) fn time(text: &str) -> i64 {
    text.parse::<jiff::Timestamp>().map_or(i64::MIN, |time| time.as_microsecond())
}

/// Reads the history of an app since `from` (all of it, if empty), the earliest entry first.
pub(crate) fn history(hub: &Hub, load: &Load, app: &App, from: &str) -> Result<Vec<Value>> {
    let mut path = format!("/api/v1/history/{}/{}?limit=500", load.cluster(app.cluster), app.path());
    if !from.is_empty() {
        path.push_str(&format!("&from={from}"));
    }
    let (mut rows, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = hub.get(&format!("{path}{cursor}"))?;
        let items = page["items"].as_array().context("no history")?;
        ensure!(items.len() <= 500, "{path}: more than asked for");
        rows.extend(items.iter().cloned());
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    rows.reverse();
    Ok(rows)
}
