//! The ten tasks: for each what has to be so before it begins, and the keys that do it.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use taffrail_testkit::hub::Hub;

use super::person::{Person, Region, View};
use super::truth::{
    ask, await_some, called, calm, explain, failures, full_name, is_calm, items, last_log_lines, rows_of,
    text, unwell_objects,
};

/// A person at the terminal UI of a hub.
pub(super) struct Night {
    pub(super) person: Person,
    pub(super) hub: Hub,
}

/// A task.
pub(super) struct Task {
    /// Its number in the list of tasks.
    pub(super) number: u32,
    /// The question of the person, or the aim.
    pub(super) name: &'static str,
    /// Waits until the fleet is such that the task can be done, and returns the subject of the task.
    pub(super) prepare: fn(&Night) -> Result<Value>,
    /// Does the task about this subject.
    pub(super) work: fn(&mut Night, &Value) -> Result<()>,
}

/// All tasks, in the order in which the faults of the fleet allow them soon.
pub(super) const TASKS: [Task; 10] = [
    Task { number: 1, name: "the newest failure and its cause", prepare: failure, work: newest_failure },
    Task { number: 2, name: "the clusters that fail by one image", prepare: bad_image, work: by_image },
    Task {
        number: 4,
        name: "the clusters that do not run a revision",
        prepare: revisions,
        work: by_revision,
    },
    Task { number: 5, name: "what changed before an app turned red", prepare: changed, work: changes },
    Task {
        number: 3,
        name: "the lost clusters, since when, and what was known",
        prepare: lost,
        work: lost_clusters,
    },
    Task {
        number: 6,
        name: "unwell objects, and the warnings of the worst Pod",
        prepare: crashing,
        work: warnings,
    },
    Task { number: 7, name: "that Pod's YAML, last log lines and command", prepare: crashing, work: logs },
    Task { number: 8, name: "an app is suspended, seen so, and resumed", prepare: quiet, work: suspend },
    Task { number: 9, name: "reconcile with source in three clusters", prepare: three, work: reconcile },
    Task { number: 10, name: "a restart, and a second one that is cancelled", prepare: quiet, work: restart },
];

/// The app whose revisions are compared.
const SHOP: &str = "flux-kustomization/flux-system/shop";

/// Returns an error that names the first of `wanted` that no line has.
fn has_all<T: AsRef<str>>(view: &View, wanted: &[T]) -> Result<(), String> {
    match wanted.iter().find(|wanted| !view.has(wanted.as_ref())) {
        Some(missing) => Err(format!("no {:?}", missing.as_ref())),
        None => Ok(()),
    }
}

/// Returns an error if no line has all of `wanted`.
fn has_line(view: &View, wanted: &[&str]) -> Result<(), String> {
    view.line_with(wanted).map(drop).ok_or_else(|| format!("no line with {wanted:?}"))
}

/// Returns the words of an error, for a comparison.
fn words<T>(answer: Result<T>) -> Result<T, String> {
    answer.map_err(|error| format!("{error:#}"))
}

/// Returns the first characters of a text, which a column shows in any case.
fn begin(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// Opens the app of a row from any view.
fn open_app(person: &mut Person, row: &Value) -> Result<()> {
    let (key, cluster, name) = (text(row, "/key"), text(row, "/cluster"), text(row, "/name"));
    list_apps(person, key, &format!(" cluster={cluster}"), "1 of 1")?;
    person.press(&["Enter"]);
    await_app(person, name, cluster)
}

/// Lists the apps with this key and `filter` by a command, and waits until the last line ends with `count`.
fn list_apps(person: &mut Person, key: &str, filter: &str, count: &str) -> Result<()> {
    person.press(&[":"]);
    person.type_in(&format!("apps {key}{filter}"));
    person.press(&["Enter"]);
    person.until("list of the app", |view| {
        let is_counted = view.lines.last().is_some_and(|foot| foot.ends_with(count));
        view.has(&format!("search {key}")) && view.has("MESSAGE") && is_counted
    })?;
    Ok(())
}

/// Waits until the view of an app is shown, and read.
fn await_app(person: &mut Person, name: &str, cluster: &str) -> Result<()> {
    let begin = format!(" {name} in {cluster}:");
    person.until("view of the app", |view| {
        view.lines[1].starts_with(&begin) && view.has(" d Why") && !view.has("reading …")
    })?;
    Ok(())
}

fn failure(night: &Night) -> Result<Value> {
    await_some("failure", || Ok(failures(&night.hub)?.into_iter().next()))
}

fn newest_failure(Night { person, hub }: &mut Night, _: &Value) -> Result<()> {
    let all = failures(hub)?;
    let newest = all.iter().max_by_key(|it| text(it, "/since")).context("no failure any more")?;
    let key_name = text(newest, "/keys/0").rsplit('/').next().unwrap_or_default();
    let name = newest.pointer("/object/name").and_then(Value::as_str).unwrap_or(key_name);
    let shown = format!("{name} {} in {} cluster", text(newest, "/state"), newest["clusterCount"]);
    person.press_until("j", &shown, |row| row.contains(&shown))?;
    person.press(&["Enter"]);
    let opened = person.until("app, or list of apps", |view| {
        view.has(" d Why") && view.lines[1].contains(" in ") || view.cursor().contains(" Failed")
    })?;
    if !opened.has(" d Why") {
        person.press(&["Enter"]);
    }
    let view = person.until("app", |view| view.has(" d Why") && view.lines[1].contains(": "))?;
    let (app, rest) = view.lines[1].trim().split_once(" in ").context("no app")?;
    let cluster = rest.split(':').next().unwrap_or_default();
    let rows = items(hub, &format!("apps?limit=100&cluster={cluster}"))?;
    let row = rows.iter().find(|row| row["name"] == app).with_context(|| format!("no {app} in {cluster}"))?;
    person.answer(Region::Body, |view| {
        let told = words(explain(hub, row))?;
        let cause = told["chain"].as_array().and_then(|chain| chain.last()).unwrap_or(&told);
        has_all(view, &[called(&cause["object"]), begin(text(newest, "/message"), 40)])
    })
}

fn bad_image(night: &Night) -> Result<Value> {
    await_some("bad image in several clusters", || {
        let is_meant = |it: &Value| {
            it["clusterCount"].as_u64() > Some(1) && text(it, "/message").contains("pulling image \"")
        };
        Ok(failures(&night.hub)?.into_iter().find(is_meant))
    })
}

fn by_image(Night { person, hub }: &mut Night, entry: &Value) -> Result<()> {
    let image = text(entry, "/message").split('"').nth(1).context("no image")?.to_owned();
    person.press(&["/"]);
    person.type_in(&image);
    person.press(&["Enter"]);
    person.until("search", |view| view.has(&format!("search {image}")))?;
    person.answer(Region::Cursor, |view| {
        let now = words(items(hub, "attention?limit=100"))?;
        let is_meant = |it: &&Value| text(it, "/message").contains(&image) && it["axis"] == "health";
        let now = now.iter().find(is_meant).ok_or("the hub knows no such failure any more")?;
        let clusters = now["clusters"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let number = format!(" in {} clusters:", now["clusterCount"]);
        has_line(view, &std::iter::once(&*number).chain(clusters).collect::<Vec<_>>())
    })
}

fn revisions(night: &Night) -> Result<Value> {
    await_some("app with two revisions", || {
        let rows = rows_of(&night.hub, SHOP)?;
        let revisions: BTreeSet<&str> = rows.iter().map(|row| text(row, "/sync/applied")).collect();
        Ok((revisions.len() > 1).then_some(Value::Null))
    })
}

/// Returns the clusters of an app that do not run the revision that most of them run, by the hub: with their revisions,
/// shortened as people read them.
fn others(hub: &Hub) -> Result<BTreeSet<(String, String)>> {
    let rows = rows_of(hub, SHOP)?;
    let short = |row: &Value| {
        let revision = text(row, "/sync/applied");
        let (branch, hash) = revision.split_once("@sha1:").unwrap_or((revision, ""));
        format!("{branch}@{}", begin(hash, 8))
    };
    let pairs: Vec<(String, String)> =
        rows.iter().map(|row| (text(row, "/cluster").to_owned(), short(row))).collect();
    let runs = |revision: &str| pairs.iter().filter(|(_, runs)| runs == revision).count();
    let most = pairs.iter().map(|(_, revision)| runs(revision)).max().unwrap_or_default();
    Ok(pairs.iter().filter(|(_, revision)| runs(revision) < most).cloned().collect())
}

fn by_revision(Night { person, hub }: &mut Night, _: &Value) -> Result<()> {
    list_apps(person, SHOP, "", &format!("1 of {}", rows_of(hub, SHOP)?.len()))?;
    person.press(&["Enter"]);
    person.until("view of the app", |view| view.has(" d Why"))?;
    person.press(&["i"]);
    person.answer(Region::Body, |view| {
        let wanted = words(others(hub))?;
        let (mut heading, mut groups) = (String::new(), Vec::new());
        for line in &view.lines {
            if let Some((revision, _)) =
                line.strip_prefix(" revision ").and_then(|line| line.split_once(" in "))
            {
                heading = revision.to_owned();
            } else if let Some((_, cluster)) = line.split_once(" shop flux-system ")
                && !heading.is_empty()
            {
                let cluster = cluster.split_whitespace().next().unwrap_or_default();
                groups.push((cluster.to_owned(), heading.clone()));
            }
        }
        let runs = |revision: &str| groups.iter().filter(|(_, runs)| runs == revision).count();
        let most = groups.iter().map(|(_, revision)| runs(revision)).max().unwrap_or_default();
        let shown: BTreeSet<_> =
            groups.iter().filter(|(_, revision)| runs(revision) < most).cloned().collect();
        match shown == wanted && !shown.is_empty() {
            true => Ok(()),
            false => Err(format!("{shown:?} instead of {wanted:?}")),
        }
    })
}

fn changed(night: &Night) -> Result<Value> {
    await_some("app that failed after a change", || {
        for row in items(&night.hub, "apps?status=Failed&limit=50")? {
            if explain(&night.hub, &row)?["changed"].as_array().is_some_and(|all| !all.is_empty()) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    })
}

fn changes(Night { person, hub }: &mut Night, row: &Value) -> Result<()> {
    open_app(person, row)?;
    person.answer(Region::Body, |view| {
        let told = words(explain(hub, row))?;
        let changes = told["changed"].as_array().ok_or("the hub knows no change any more")?;
        let named: Vec<String> = changes.iter().map(|change| called(&change["object"])).collect();
        has_all(view, &["Changes before"])?;
        has_all(view, &named)
    })
}

fn lost(night: &Night) -> Result<Value> {
    await_some("lost cluster", || {
        let all = items(&night.hub, "clusters?limit=100")?;
        Ok(all.into_iter().find(|row| row["freshness"]["state"] == "lost"))
    })
}

fn lost_clusters(Night { person, hub }: &mut Night, cluster: &Value) -> Result<()> {
    let name = text(cluster, "/name");
    person.press(&["g", "c"]);
    person.until("clusters", |view| view.has("WORST APP") && view.cursor().contains("/"))?;
    person.press_until("j", name, |row| row.contains(&format!("◌ {name} ")))?;
    // Its last sight as a time, and the state of its apps then.
    let at = text(cluster, "/freshness/observedAt");
    let seen = format!("last seen {} {} UTC", begin(at, 10), begin(&at[11..], 8));
    let was =
        format!("was {}", if cluster["health"] == "Current" { "Ready" } else { text(cluster, "/health") });
    let (ready, apps) = (&cluster["counts"]["Current"], &cluster["apps"]);
    let numbers = format!(" {ready}/{apps} ");
    person.answer(Region::Cursor, |view| has_line(view, &[name, &was, &numbers, &seen]))?;
    person.press(&["Enter"]);
    person.answer(Region::Body, |view| {
        for row in words(items(hub, &format!("apps?cluster={name}&limit=100")))? {
            has_line(view, &[text(&row, "/name"), "◌ was "])?;
        }
        Ok(())
    })
}

/// Waits for an app that fails because containers of a Pod crash.
fn crashing(night: &Night) -> Result<Value> {
    await_some("app with a Pod that crashes", || {
        for row in items(&night.hub, "apps?status=Failed&limit=50")? {
            let told = explain(&night.hub, &row)?;
            let cause = told["chain"].as_array().and_then(|chain| chain.last()).cloned().unwrap_or_default();
            let crashes =
                text(&row, "/problem/message").contains("back-off") && cause["object"]["kind"] == "Pod";
            if crashes && !warnings_of(&night.hub, &row, &cause["object"])?.is_empty() {
                return Ok(Some(json!({"row": row, "pod": cause["object"]})));
            }
        }
        Ok(None)
    })
}

/// Returns the reasons of the warnings about an object of an app.
fn warnings_of(hub: &Hub, row: &Value, object: &Value) -> Result<BTreeSet<String>> {
    let events = ask(hub, &json!({"view": "events", "name": full_name(row), "perCluster": true}))?;
    let of_object = events.iter().filter(|event| event["object"]["name"] == object["name"]);
    Ok(of_object.map(|event| text(event, "/reason").to_owned()).collect())
}

/// Opens the objects of an app that are not well.
fn open_unwell(person: &mut Person, row: &Value) -> Result<()> {
    open_app(person, row)?;
    person.press(&["o"]);
    person.until("tree of objects", |view| view.has("OBJECT"))?;
    person.press(&["z"]);
    person.until("tree without what is well", |view| {
        view.has("problems only (z") && view.has("are left out")
    })?;
    Ok(())
}

fn warnings(Night { person, hub }: &mut Night, subject: &Value) -> Result<()> {
    let (row, pod) = (&subject["row"], &subject["pod"]);
    open_unwell(person, row)?;
    person.answer(Region::Body, |view| {
        let unwell = words(unwell_objects(hub, row))?;
        // A column may cut the end of a name.
        unwell
            .iter()
            .try_for_each(|(kind, name)| has_line(view, &[&format!("{kind} "), &begin(name, 20)]))?;
        match unwell.is_empty() {
            true => Err("the hub knows no object that is not well any more".to_owned()),
            false => Ok(()),
        }
    })?;
    person.press(&["e"]);
    person.until("warnings", |view| view.has("REASON"))?;
    person.press(&["/"]);
    person.type_in(text(pod, "/name"));
    person.press(&["Enter"]);
    person.answer(Region::Body, |view| {
        let reasons = words(warnings_of(hub, row, pod))?;
        reasons.iter().try_for_each(|reason| has_line(view, &[&called(pod), reason]))
    })
}

fn logs(Night { person, hub }: &mut Night, subject: &Value) -> Result<()> {
    let (row, pod) = (&subject["row"], &subject["pod"]);
    let (cluster, namespace, name) = (text(row, "/cluster"), text(pod, "/namespace"), text(pod, "/name"));
    open_unwell(person, row)?;
    person.press_until("j", "the Pod", |row| row.contains("Pod ") && row.contains(&begin(name, 20)))?;
    person.press(&["y"]);
    let named = format!("  name: {name}");
    person.answer(Region::Body, |view| has_all(view, &["kind: Pod", &named]))?;
    let full = format!("{cluster}//Pod/{namespace}/{name}");
    let lines = last_log_lines(hub, &full, 3)?;
    person.press(&["l"]);
    person.answer(Region::Body, |view| {
        lines.iter().filter(|line| !line.is_empty()).try_for_each(|line| has_all(view, &[begin(line, 80)]))
    })?;
    person.press(&["c"]);
    let (address, _) = hub.access();
    let command = format!("taffrail logs --follow {full} --hub http://{address}");
    let copied = format!("copied: {}", begin(&command, 60));
    person.answer(Region::Foot, |view| has_all(view, &[&*copied]))?;
    ensure!(person.clipboard() == command, "{:?} was copied, not {command:?}", person.clipboard());
    Ok(())
}

fn quiet(night: &Night) -> Result<Value> {
    await_some("calm Kustomization", || calm(&night.hub))
}

/// Returns the row of an app now.
fn now(hub: &Hub, row: &Value) -> Result<Value> {
    let mut rows = items(hub, &format!("apps/{}", full_name(row)))?;
    ensure!(!rows.is_empty(), "{} is gone", full_name(row));
    Ok(rows.swap_remove(0))
}

fn suspend(Night { person, hub }: &mut Night, row: &Value) -> Result<()> {
    let (name, cluster) = (text(row, "/name"), text(row, "/cluster"));
    let is_suspended = |wanted: bool| match words(now(hub, row))?["suspended"] == wanted {
        true => Ok(()),
        false => Err(format!("the hub does not say that suspended is {wanted}")),
    };
    open_app(person, row)?;
    person.press(&["S"]);
    person.until("plan", |view| view.has("+   suspend: true") && view.has("y suspends"))?;
    person.press(&["y"]);
    person.until("end", |view| view.has("✓ Done") && view.has("Esc closes"))?;
    person.press(&["Escape"]);
    person.answer(Region::Sentence, |view| {
        has_line(view, &[&format!("{name} in {cluster}:"), "suspended"])?;
        is_suspended(true)
    })?;
    person.press(&["Escape"]);
    person.answer(Region::Body, |view| has_line(view, &[name, cluster, "‖", "Suspended"]))?;
    person.press(&["g", "a"]);
    person.answer(Region::Body, |view| has_line(view, &[&format!("{name} sync suspended in"), cluster]))?;
    person.press(&["/"]);
    person.type_in("suspended");
    person.press(&["Enter"]);
    person.until("search", |view| view.has("search suspended"))?;
    let is_it = |row: &str| row.contains(&format!("{name} sync suspended in")) && row.contains(cluster);
    person.press_until("j", "the suspended app", is_it)?;
    person.press(&["Enter"]);
    let opened = person.until("app, or list of apps", |view| {
        view.has(" d Why") || view.has("MESSAGE") && view.cursor().contains(name)
    })?;
    if !opened.has(" d Why") {
        person.press_until("j", "the app in its cluster", |row| row.contains(&format!(" {cluster} ")))?;
        person.press(&["Enter"]);
    }
    await_app(person, name, cluster)?;
    person.press(&["S"]);
    person.until("plan", |view| view.has("+   suspend: false") && view.has("y resumes"))?;
    person.press(&["y"]);
    person.answer(Region::Body, |view| {
        has_line(view, &[cluster, "✓ Ready"])?;
        is_suspended(false)
    })
}

fn three(night: &Night) -> Result<Value> {
    await_some("app that is calm in three clusters", || {
        for group in items(&night.hub, "apps?group-by=key&delivery=flux-kustomization&limit=100")? {
            let rows = rows_of(&night.hub, text(&group, "/group"))?;
            if rows.len() >= 3 && rows.iter().all(is_calm) {
                return Ok(Some(json!({"key": group["group"], "rows": rows.len()})));
            }
        }
        Ok(None)
    })
}

fn reconcile(Night { person, hub }: &mut Night, subject: &Value) -> Result<()> {
    let key = text(subject, "/key");
    let name = key.rsplit('/').next().unwrap_or_default();
    let before = items(hub, "operations")?.len();
    list_apps(person, key, "", &format!("1 of {}", subject["rows"]))?;
    person.press(&["Space", "Space", "Space"]);
    let view = person.until("three chosen rows", |view| view.has("3 chosen"))?;
    let chosen: Vec<String> = view.lines.iter().filter(|line| line.starts_with('▌')).cloned().collect();
    person.press(&["R"]);
    person.until("plan", |view| {
        view.has(&format!("reconcile {name}: in 3 clusters")) && view.has("y reconciles")
    })?;
    person.press(&["s"]);
    person.until("plan with the source", |view| view.has("GitRepository") && view.has("s without source"))?;
    person.press(&["y"]);
    person.answer(Region::Body, |view| {
        let operations = words(items(hub, "operations"))?;
        let last =
            operations.iter().max_by_key(|it| text(it, "/began")).filter(|_| operations.len() > before);
        let last = last.ok_or("the hub has no such operation")?;
        let results = last["items"].as_array().ok_or("no items")?;
        for item in results {
            let word = match text(item, "/outcome/result") {
                "ready" => "✓ Ready",
                "failed" => "✕ Failed",
                other => return Err(format!("{} has the result {other:?}", item["cluster"])),
            };
            let cluster = text(item, "/cluster");
            has_line(view, &[&format!(" {cluster}  "), word])?;
            if !chosen.iter().any(|line| line.contains(&format!(" {cluster} "))) {
                return Err(format!("{cluster} was not chosen: {chosen:?}"));
            }
        }
        match results.len() {
            3 => Ok(()),
            other => Err(format!("{other} results")),
        }
    })
}

fn restart(Night { person, hub }: &mut Night, row: &Value) -> Result<()> {
    let before = items(hub, "operations")?.len();
    let made = || Ok::<_, String>(words(items(hub, "operations"))?.len() - before);
    open_app(person, row)?;
    person.press(&["o"]);
    person.until("tree of objects", |view| view.has("OBJECT"))?;
    person.press(&["/"]);
    person.type_in("Deployment");
    person.press(&["Enter"]);
    person.until("a Deployment", |view| {
        view.has("search Deployment") && view.cursor().contains("Deployment ")
    })?;
    person.press(&["."]);
    person.until("actions", |view| view.has("Actions of Deployment") && view.has("restart"))?;
    person.press_until("j", "restart", |row| row.trim_start().starts_with("restart "))?;
    let is_planned = |view: &View| view.has("restartedAt") && view.has("y runs restart");
    person.press(&["Enter"]);
    person.until("plan", is_planned)?;
    person.press(&["y"]);
    person.answer(Region::Body, |view| {
        has_line(view, &[text(row, "/cluster"), "✓ Done"])?;
        match made()? {
            1 => Ok(()),
            other => Err(format!("the hub has {other} operations more")),
        }
    })?;
    person.press(&["Escape"]);
    person.until("actions", |view| view.has("Actions of Deployment"))?;
    // Within the second of the first restart a second one would write nothing.
    let second = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let first = second();
    while second() == first {
        sleep(Duration::from_millis(20));
    }
    person.press(&["Enter"]);
    person.answer(Region::Body, |view| has_line(view, &["+", "restartedAt"]))?;
    person.press(&["Escape"]);
    person.until("actions", |view| view.has("Actions of Deployment"))?;
    let made = made().map_err(anyhow::Error::msg)?;
    ensure!(made == 1, "the hub has {made} operations more, not 1");
    Ok(())
}
