//! The comparison of answers about past times, and of the history of syncs, with the log of the changes.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use taffrail_testkit::hub::Hub;

use crate::ledger::{history, time};
use crate::load::{App, Load};
use crate::{Arguments, CALM, Folder};

/// The longest time from a change of an object to the moment at which the hub knows of it. A hub must show an app that
/// is worse at once, and one that is better within a second; the machine may be busy.
const RECEIPT: SignedDuration = SignedDuration::from_secs(3);

/// The time after which a hub at rest has told its store that nothing changed meanwhile: it does so each 15 s.
const UNCHANGED: Duration = Duration::from_secs(17);

/// The results of the comparisons.
#[derive(Debug, Default)]
pub(crate) struct Past {
    pub(crate) asked: usize,
    /// The number of states that were known: in the others no hub observed the app.
    pub(crate) known: usize,
    pub(crate) wrong: usize,
    pub(crate) syncs: usize,
    pub(crate) failed: usize,
    pub(crate) odd_syncs: usize,
    /// The first findings, for people.
    pub(crate) examples: Vec<String>,
}

impl Past {
    fn note(&mut self, example: String) {
        if self.examples.len() < 10 {
            self.examples.push(example);
        }
    }
}

/// Lets the hub run for a while, ends the load, and compares: as the hub runs, after a kill, and after a backup and a
/// restore.
pub(crate) fn check(
    arguments: &Arguments,
    folder: &Folder,
    load: &mut Load,
    hub: Hub,
    begun: Timestamp,
    random: &mut fastrand::Rng,
) -> Result<Past> {
    let patience = Instant::now();
    while hub.get("/api/v1/clusters")?["state"] != "complete" {
        ensure!(patience.elapsed() < Duration::from_secs(90), "the hub is never complete");
        std::thread::sleep(Duration::from_millis(100));
    }
    // What the hub shows as live it may have received a moment ago.
    let calm = Timestamp::now().checked_add(RECEIPT)?;
    load.watched();
    std::thread::sleep(CALM);
    load.end()?;
    std::thread::sleep(Duration::try_from(RECEIPT)?);
    until_saved(&hub)?;
    let end = Timestamp::now();
    // A hub that is killed knows nothing of the time since it last told the store that nothing changes.
    std::thread::sleep(UNCHANGED);
    let apps = load.apps();
    let mut past = Past::default();
    for number in 0..arguments.moments {
        // Half of the moments lie between the kills.
        let since = if number % 2 == 0 { calm } else { begun };
        random_state(&hub, load, &apps, (since, end, calm), random, &mut past)?;
    }
    syncs(&hub, load, &apps, &mut past)?;
    let whole = |hub: &Hub| -> Result<HashMap<String, Vec<Value>>> {
        // A restart adds transitions of its own afterwards.
        let rows = |app: &App| {
            let mut rows = history(hub, load, app, "")?;
            rows.retain(|row| {
                row["type"] == "sync" || row["at"].as_str().is_some_and(|at| time(at) <= end.as_microsecond())
            });
            Ok((app.name.clone(), rows))
        };
        apps.iter().map(rows).collect()
    };
    let before = whole(&hub)?;
    hub.kill()?;
    drop(hub);
    let (hub, _) = folder.hub(&arguments.program, "data")?;
    for _ in 0..arguments.moments {
        random_state(&hub, load, &apps, (begun, end, calm), random, &mut past)?;
    }
    same("after a kill", &before, &whole(&hub)?, &mut past);
    let copy = folder.0.join("copy.db");
    for (verb, data) in [("backup", "data"), ("restore", "restored")] {
        let mut command = folder.command(&arguments.program);
        command.args(["hub", verb]).arg(&copy).arg("--data").arg(folder.0.join(data));
        let done = command.output().context("cannot run `taffrail hub`")?;
        ensure!(done.status.success(), "hub {verb}: {}", String::from_utf8_lossy(&done.stderr));
    }
    drop(hub);
    let (hub, _) = folder.hub(&arguments.program, "restored")?;
    for _ in 0..arguments.moments {
        random_state(&hub, load, &apps, (begun, end, calm), random, &mut past)?;
    }
    same("after backup and restore", &before, &whole(&hub)?, &mut past);
    syncs(&hub, load, &apps, &mut past)?;
    Ok(past)
}

fn until_saved(hub: &Hub) -> Result<()> {
    let began = Instant::now();
    while !hub.has_saved()? {
        ensure!(began.elapsed() < Duration::from_secs(30), "the hub saves nothing");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn same(
    when: &str,
    before: &HashMap<String, Vec<Value>>,
    after: &HashMap<String, Vec<Value>>,
    past: &mut Past,
) {
    for (name, rows) in before {
        if after.get(name) != Some(rows) {
            past.wrong += 1;
            past.note(format!("{name}: another history {when}"));
        }
    }
}

/// Compares the state of a random app at a random moment from `since` to `end` with its history, and with the log. From
/// `calm` on it must be known.
fn random_state(
    hub: &Hub,
    load: &Load,
    apps: &[App],
    (since, end, calm): (Timestamp, Timestamp, Timestamp),
    random: &mut fastrand::Rng,
    past: &mut Past,
) -> Result<()> {
    let app = &apps[random.usize(..apps.len())];
    let at = Timestamp::from_microsecond(random.i64(since.as_microsecond()..end.as_microsecond()))?;
    let cluster = load.cluster(app.cluster);
    let list = hub.get(&format!("/api/v1/apps?limit=500&cluster={cluster}&at={at}"))?;
    let items = list["items"].as_array().context("no list of apps")?;
    let shown = items.iter().find(|row| row["name"] == app.name.as_str());
    past.asked += 1;
    // The last transition up to that moment.
    let to = at.checked_add(SignedDuration::from_micros(1))?;
    let path = format!("/api/v1/history/{cluster}/{}?limit=20&to={to}", app.path());
    let entries = hub.get(&path)?;
    let rows = entries["items"].as_array().context("no history")?;
    let last = rows.iter().find(|row| row["type"] == "transition");
    let of_history = last.map(|row| row["after"]["effective"].clone()).unwrap_or(Value::Null);
    let of_list = shown.map(|row| row["effective"].clone()).unwrap_or(Value::Null);
    if of_history != of_list {
        past.wrong += 1;
        past.note(format!("{} at {at}: {of_list} in the list, {of_history} in history", app.name));
        return Ok(());
    }
    let is_known = of_list.is_string() && of_list != "Unknown";
    if !is_known {
        if at >= calm {
            past.wrong += 1;
            past.note(format!("{} at {at}: {of_list}, though the hub followed its cluster", app.name));
        }
        return Ok(());
    }
    past.known += 1;
    let is_well = of_list == "Current";
    let earliest = at.checked_sub(RECEIPT)?;
    let mut spans = app.states.iter().zip(app.states.iter().skip(1).map(Some).chain([None]));
    let is_true = spans.any(|((from, _, state), next)| {
        *state == is_well && *from <= at && next.is_none_or(|(_, until, _)| *until >= earliest)
    });
    if !is_true {
        past.wrong += 1;
        past.note(format!("{} at {at}: {of_list}, which it was not in the 3 s before", app.name));
    }
    Ok(())
}

/// Compares the syncs in the history of each app with those that its tool recorded.
fn syncs(hub: &Hub, load: &Load, apps: &[App], past: &mut Past) -> Result<()> {
    for app in apps {
        let mut entries: BTreeMap<String, Vec<bool>> = BTreeMap::new();
        for row in history(hub, load, app, "")?.iter().filter(|row| row["type"] == "sync") {
            let revision = row["revision"].as_str().unwrap_or_default();
            let revision = revision.rsplit(':').next().unwrap_or_default().to_owned();
            entries.entry(revision).or_default().push(row["result"] == "Succeeded");
        }
        past.syncs += app.syncs.len();
        past.failed += app.syncs.values().filter(|is_success| !**is_success).count();
        for (revision, is_success) in &app.syncs {
            if entries.remove(revision).as_deref() != Some(&[*is_success]) {
                past.odd_syncs += 1;
                past.note(format!("{}: not one entry of sync {revision}", app.name));
            }
        }
        for (revision, _) in entries {
            past.odd_syncs += 1;
            past.note(format!("{}: a sync {revision} that its tool did not record", app.name));
        }
    }
    Ok(())
}
