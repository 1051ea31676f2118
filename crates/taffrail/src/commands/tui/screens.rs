//! The screens of a fake hub's fleet, and the tasks that a person does on them, by key presses.

use std::collections::VecDeque;
use std::path::Path;

use jiff::Timestamp;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_crossterm::crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use taffrail_api::AppRow;
use taffrail_api::operations::{OperationQuestion, PlanAnswer};
use taffrail_apps::Delivery;

use super::model::Model;
use super::paint::Colours;
use super::question::{Answer, AppPlace, Effect, Event, ObjectPart, Part, PartAnswer, Question, Request};

mod actions;
mod logs;
mod objects;
mod operations;

const NOW: &str = "2026-03-01T12:00:00Z";
const CLUSTERS: [&str; 9] = ["ap-1", "ap-2", "ap-3", "eu-1", "eu-2", "eu-3", "us-1", "us-2", "us-3"];
const APPS: [&str; 6] = ["accounts", "cart", "dashboards", "ledger", "search", "shop"];
const OLD: &str = "main@sha1:1111111122222222333333334444444455555555";
const NEW: &str = "main@sha1:aaaaaaaabbbbbbbbccccccccddddddddeeeeeeee";
const IMAGE: &str = "the image ghcr.io/acme/web:1.6.0 cannot be pulled: manifest unknown";
const CRASH: &str = "container valkey exited with code 1, 7 restarts: back-off 5m0s";

fn parsed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// The time so many seconds before [`NOW`].
fn before(seconds: i64) -> String {
    now().checked_sub(jiff::SignedDuration::from_secs(seconds)).unwrap().to_string()
}

/// A fleet of a fake hub; the seed moves its faults to other apps and clusters.
struct Fleet {
    seed: usize,
    version: u64,
    /// An app that fails besides, by name and cluster, and what its message is.
    more: Option<(&'static str, &'static str, &'static str)>,
    is_hostile: bool,
}

impl Fleet {
    fn new(seed: usize) -> Fleet {
        Fleet { seed, version: 1, more: None, is_hostile: false }
    }

    fn app(&self, place: usize) -> &'static str {
        APPS[(place + self.seed) % APPS.len()]
    }

    fn cluster(&self, place: usize) -> &'static str {
        CLUSTERS[(place + self.seed * 2) % CLUSTERS.len()]
    }

    /// The clusters in which the image cannot be pulled.
    fn bad_image(&self) -> [&'static str; 3] {
        [1, 3, 6].map(|place| self.cluster(place))
    }

    fn lost(&self) -> &'static str {
        self.cluster(5)
    }

    /// The clusters that do not run the new revision of the app at place 2.
    fn behind(&self) -> [&'static str; 2] {
        [0, 4].map(|place| self.cluster(place))
    }

    fn row(&self, app: &str, cluster: &str) -> Value {
        let mut row = json!({
            "key": format!("flux-kustomization/flux-system/{app}"), "cluster": cluster, "home": cluster,
            "delivery": "flux-kustomization", "namespace": "flux-system", "name": app,
            "health": "Current", "effective": "Current", "message": "",
            "counts": {"Current": 7, "InProgress": 0, "Failed": 0, "Terminating": 0, "NotFound": 0, "Unknown": 0},
            "objects": 7, "suspended": false,
            "sync": {"state": "Synced", "effective": "Synced", "applied": NEW, "desired": NEW,
                "freshness": {"state": "live", "observedAt": NOW}},
            "freshness": {"state": "live", "observedAt": NOW},
        });
        let object =
            |kind: &str, name: &str| json!({"group": "apps", "kind": kind, "namespace": app, "name": name});
        let mut fail = |status: &str, object: Value, message: &str, since: String| {
            row["health"] = json!(status);
            row["effective"] = json!(status);
            row["message"] = json!(message);
            row["worst"] = object.clone();
            row["since"] = json!(since);
            row["counts"]["Current"] = json!(6);
            row["counts"][status] = json!(1);
            row["problem"] = json!({"axis": "health", "state": status, "severity": "error", "since": since,
                "message": message, "object": object});
            row["problems"] = json!([row["problem"]]);
        };
        if app == self.app(5) && self.bad_image().contains(&cluster) {
            fail("Failed", object("Deployment", "web"), IMAGE, before(540));
        }
        if app == self.app(1) && cluster == self.cluster(2) {
            fail("Failed", object("StatefulSet", "valkey"), CRASH, before(40));
        }
        if let Some((name, place, message)) = self.more
            && (app, cluster) == (name, place)
        {
            fail("Failed", object("Deployment", "api"), message, before(5));
        }
        if app == self.app(2) && self.behind().contains(&cluster) {
            row["sync"]["applied"] = json!(OLD);
        }
        if cluster == self.lost() {
            let freshness = json!({"state": "lost", "observedAt": before(720)});
            row["freshness"] = freshness.clone();
            row["sync"]["freshness"] = freshness;
            row["effective"] = json!("Unknown");
            row["sync"]["effective"] = json!("Unknown");
        }
        if self.is_hostile {
            row["name"] = json!(format!("{app}\u{1b}[2J\u{202e}evil漢字漢字漢字\n\u{7}"));
            row["message"] = json!("\u{1b}]0;title\u{7}mess\rage \u{2066}of a tenant");
        }
        row
    }

    fn rows(&self) -> Vec<Value> {
        let pairs = CLUSTERS.iter().flat_map(|cluster| APPS.iter().map(move |app| (*app, *cluster)));
        let mut rows: Vec<Value> = pairs.map(|(app, cluster)| self.row(app, cluster)).collect();
        rows.sort_by_key(|row| (row["problem"].is_null(), row["since"].to_string()));
        rows
    }

    fn coverage(&self) -> Value {
        json!({"apiVersion": "taffrail.dev/v1alpha1", "errors": [], "state": "stale", "asOf": NOW, "clusters": 9,
            "missing": [{"cluster": self.lost(), "state": "stale", "reason": "Silent",
                "message": "it does not answer", "since": before(720)}]})
    }

    fn list<T: DeserializeOwned>(&self, kind: &str, items: &[Value]) -> T {
        let mut list = self.coverage();
        list["kind"] = json!(kind);
        list["total"] = json!(items.len());
        list["items"] = json!(items);
        parsed(list)
    }

    fn attention(&self) -> Value {
        let mut answer = self.coverage();
        let entry = |object: Value, message: &str, app: &str, clusters: &[&str], since: i64| {
            json!({"severity": "error", "axis": "health", "state": "Failed", "message": message, "object": object,
                "since": before(since), "count": clusters.len(), "keys": [format!("flux-kustomization/flux-system/{app}")],
                "keyCount": 1, "clusters": clusters, "clusterCount": clusters.len()})
        };
        let object = |kind: &str, app: &str, name: &str| json!({"group": "apps", "kind": kind, "namespace": app, "name": name});
        let (bad, crashing) = (self.app(5), self.app(1));
        let mut items = vec![
            entry(object("Deployment", bad, "web"), IMAGE, bad, &self.bad_image(), 540),
            entry(object("StatefulSet", crashing, "valkey"), CRASH, crashing, &[self.cluster(2)], 40),
        ];
        if let Some((app, cluster, message)) = self.more {
            items.insert(0, entry(object("Deployment", app, "api"), message, app, &[cluster], 5));
        }
        items.push(json!({"severity": "error", "axis": "freshness", "state": "Lost", "message": "it does not answer",
            "since": before(720), "count": 6, "keys": [], "keyCount": 6, "clusters": [self.lost()], "clusterCount": 1}));
        answer["kind"] = json!("Attention");
        answer["total"] = json!(items.len());
        answer["items"] = json!(items);
        answer["apps"] = json!(54);
        answer["problems"] = json!(10);
        answer
    }

    fn clusters(&self, only_unknown: bool) -> Vec<Value> {
        let row = |cluster: &str| {
            let is_lost = cluster == self.lost();
            let rows: Vec<Value> = self.rows().into_iter().filter(|row| row["cluster"] == cluster).collect();
            let worst = rows.iter().find(|row| row["problem"].is_object());
            let mut row = json!({"name": cluster, "health": "Current", "effective": "Current", "status": "Current",
                "message": "", "apps": 6, "problems": 0, "errors": 0, "version": "v1.34.2",
                "counts": {"Current": 6, "InProgress": 0, "Failed": 0, "Terminating": 0, "NotFound": 0, "Unknown": 0},
                "freshness": {"state": "live", "observedAt": NOW}});
            if let Some(worst) = worst {
                for name in ["health", "effective", "status"] {
                    row[name] = json!("Failed");
                }
                row["message"] = worst["message"].clone();
                row["problem"] = worst["problem"].clone();
                row["worst"] = json!({"delivery": "flux-kustomization", "namespace": "flux-system", "name": worst["name"]});
                row["problems"] = json!(1);
            }
            if is_lost {
                row["effective"] = json!("Unknown");
                row["status"] = json!("Unknown");
                row["freshness"] = json!({"state": "lost", "observedAt": before(720)});
                row["message"] = json!("it does not answer: connection refused");
            }
            row
        };
        let all = CLUSTERS.iter().map(|cluster| row(cluster));
        all.filter(|row| !only_unknown || row["effective"] == "Unknown").collect()
    }

    fn matrix(&self) -> Value {
        let columns: Vec<Value> = CLUSTERS
            .iter()
            .map(|cluster| {
                let freshness = if *cluster == self.lost() { "lost" } else { "live" };
                json!({"cluster": cluster, "freshness": freshness})
            })
            .collect();
        let code = |app: &str, cluster: &str| match self.row(app, cluster) {
            row if row["freshness"]["state"] == "lost" => 'l',
            row if row["problem"].is_object() => 'f',
            _ => 'r',
        };
        let cells = |app: &&str| CLUSTERS.iter().map(|cluster| code(app, cluster)).collect::<String>();
        let rows: Vec<Value> = APPS
            .iter()
            .map(|app| json!({"key": format!("flux-kustomization/flux-system/{app}"), "cells": cells(app)}))
            .collect();
        let mut matrix = self.coverage();
        matrix["kind"] = json!("Matrix");
        matrix["columns"] = json!(columns);
        matrix["rows"] = json!(rows);
        matrix["total"] = json!(rows.len());
        let meaning = |code: char, health: &str, effective: &str, freshness: &str, problem: bool| json!({"code": code, "health": health, "effective": effective, "freshness": freshness, "problem": problem});
        matrix["legend"] = json!([
            meaning('r', "Current", "Current", "live", false),
            meaning('f', "Failed", "Failed", "live", true),
            meaning('l', "Current", "Unknown", "lost", true),
        ]);
        matrix
    }

    fn changes(&self) -> Vec<Value> {
        let state = |status: &str, problem: Value| json!({"health": status, "effective": status, "sync": "Synced", "problem": problem});
        let change = |app: &str, cluster: &str, seconds: i64, message: &str| {
            json!({"at": before(seconds), "key": format!("flux-kustomization/flux-system/{app}"), "cluster": cluster,
                "home": cluster, "delivery": "flux-kustomization", "namespace": "flux-system", "name": app,
                "before": state("Current", Value::Null), "after": state("Failed", json!("failed")), "message": message})
        };
        vec![
            change(self.app(1), self.cluster(2), 40, CRASH),
            change(self.app(5), self.bad_image()[0], 540, IMAGE),
        ]
    }

    fn part(&self, app: &AppPlace, part: Part, is_unwell: bool) -> PartAnswer {
        let name = &*app.name;
        let text = match part {
            Part::Clusters => {
                let rows = self.rows().into_iter().filter(|row| row["name"] == *name);
                return PartAnswer::Rows(rows.map(parsed::<AppRow>).collect());
            }
            Part::Why => format!(
                "\u{1b}[1m{name}\u{1b}[0m is \u{1b}[31mFailed\u{1b}[0m\n\ncause\n  StatefulSet valkey  Failed\n  Pod valkey-0  {CRASH}\n\nchanged before\n  11:58:12  args of container valkey, by flux: (none) → --io-threads many\n"
            ),
            Part::Objects => return self.objects(app, is_unwell),
            Part::Events => "LAST  TYPE     OBJECT            REASON   MESSAGE\n30s   Warning  Pod/valkey-0      BackOff  Back-off restarting failed container valkey\n2m    Normal   Pod/web-1         Pulled   Container image was pulled in 1.2s\n".to_owned(),
            Part::History => format!("TIME      CHANGE\n11:59:20  {name} Ready → Failed\n11:58:12  sync of main@aaaaaaaa succeeded\n"),
            Part::Trust => format!("{name} has no reason to be doubted\n"),
            Part::Logs => return PartAnswer::Followed,
            Part::PreviousLogs => {
                "*** FATAL CONFIG FILE ERROR (Version 9.1.0) ***\nargument must be between 1 and 256 inclusive\n".to_owned()
            }
        };
        PartAnswer::Text(text)
    }

    fn answer(&self, question: &Question) -> Answer {
        let has = |query: &str, name: &str, value: &str| {
            let wanted = format!("{name}={}", super::question::encoded(value));
            query.split('&').any(|part| part == wanted)
        };
        match question {
            Question::Attention => Answer::Attention {
                attention: parsed(self.attention()),
                lost: self.clusters(true).into_iter().map(parsed).collect(),
                changes: self.changes().into_iter().map(parsed).collect(),
            },
            Question::Apps(query, _) => {
                let is_meant = |row: &Value| {
                    let cluster = row["cluster"].as_str().unwrap();
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    let is_here = !query.contains("cluster=") || has(query, "cluster", cluster);
                    let wanted = query.split('&').find_map(|part| part.strip_prefix("text="));
                    let contains = wanted.is_none_or(|wanted| {
                        [&row["key"], &row["cluster"], &row["message"]]
                            .iter()
                            .any(|value| super::question::encoded(&text(value)).contains(wanted))
                    });
                    is_here && contains && (!query.contains("problems") || row["problem"].is_object())
                };
                Answer::Apps(
                    self.list("AppList", &self.rows().into_iter().filter(is_meant).collect::<Vec<_>>()),
                )
            }
            Question::Clusters(_) => Answer::Clusters(self.list("ClusterList", &self.clusters(false))),
            Question::Matrix(_) => Answer::Matrix(parsed(self.matrix())),
            Question::App(app, part, is_unwell) => {
                assert_eq!(app.delivery, Delivery::FluxKustomization);
                let row = parsed(self.row(&app.name, &app.cluster));
                Answer::App(Some(Box::new(row)), self.part(app, *part, *is_unwell))
            }
            Question::Object(_, ObjectPart::Logs) => Answer::Followed,
            Question::Object(object, ObjectPart::PreviousLogs) => {
                Answer::ObjectLogs(format!("{} exited with code 1\n", object.key.name))
            }
            Question::Object(object, ObjectPart::Yaml) => Answer::Object(self.yaml(object), Vec::new()),
            Question::Actions(object) => Answer::Actions(self.actions(object)),
        }
    }

    fn frame(&self) -> Value {
        json!({"asOf": NOW, "pages": [
            {"name": "news", "version": self.version},
            {"name": "clusters", "clusters": {"live": 8, "stale": 0, "lost": 1, "state": "stale"}},
            {"name": "fleet", "apps": {"total": 54, "problems": 10, "counts": {"Current": 44, "InProgress": 0,
                "Failed": 4, "Terminating": 0, "NotFound": 0, "Unknown": 6}}},
        ]})
    }
}

/// A person at the UI of a fake hub.
struct Session {
    model: Model,
    fleet: Fleet,
    presses: usize,
    copied: Vec<String>,
    /// The runs that were asked for.
    runs: Vec<(u64, Box<OperationQuestion>, Box<PlanAnswer>)>,
    /// The logs that were followed, `None` for each time that none was any more.
    follows: Vec<(u64, Option<String>)>,
    has_quit: bool,
}

impl Session {
    fn start(size: (u16, u16), fleet: Fleet) -> Session {
        let origin = vec!["--hub".to_owned(), "https://hub.example.com".to_owned()];
        let model = Model::new(size, Colours::Sixteen, origin, now());
        let mut session = Session {
            model,
            fleet,
            presses: 0,
            copied: Vec::new(),
            runs: Vec::new(),
            follows: Vec::new(),
            has_quit: false,
        };
        session.hear();
        session
    }

    fn happen(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for effect in self.model.update(event) {
                match effect {
                    Effect::Ask(request) => events.push_back(self.answered(request)),
                    Effect::Plan(number, question) => {
                        events.push_back(Event::Planned(number, self.fleet.plan(&question)));
                    }
                    Effect::Run(number, question, plan) => self.runs.push((number, question, plan)),
                    Effect::Follow(number, name) => {
                        events.extend(name.as_ref().map(|_| logs::begin(number)));
                        self.follows.push((number, name));
                    }
                    Effect::Copy(text) => self.copied.push(text),
                    Effect::Quit => self.has_quit = true,
                }
            }
        }
    }

    fn answered(&self, request: Request) -> Event {
        let answer = Ok(self.fleet.answer(&request.question));
        Event::Answer(Box::new((request, answer)))
    }

    /// Lets the hub tell of its present state.
    fn hear(&mut self) {
        self.happen(Event::Frame(Box::new(parsed(self.fleet.frame()))));
    }

    /// Lets so many seconds pass.
    fn pass(&mut self, seconds: i64) {
        let later = now().checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap();
        self.happen(Event::Tick(later));
    }

    /// Presses keys, which spaces separate.
    fn press(&mut self, keys: &str) {
        for key in keys.split(' ') {
            let code = match key {
                "Enter" => KeyCode::Enter,
                "Esc" => KeyCode::Esc,
                "Tab" => KeyCode::Tab,
                "Left" => KeyCode::Left,
                "Right" => KeyCode::Right,
                "Space" => KeyCode::Char(' '),
                key => KeyCode::Char(key.chars().next().unwrap()),
            };
            self.presses += 1;
            self.happen(Event::Input(Input::Key(KeyEvent::new(code, KeyModifiers::NONE))));
        }
    }

    /// Types a word, which counts as one press.
    fn type_in(&mut self, text: &str) {
        self.presses += 1;
        for character in text.chars() {
            let key = KeyEvent::new(KeyCode::Char(character), KeyModifiers::NONE);
            self.happen(Event::Input(Input::Key(key)));
        }
    }

    fn buffer(&self) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, self.model.size.0, self.model.size.1));
        self.model.draw(&mut buffer);
        buffer
    }

    fn screen(&self) -> String {
        let buffer = self.buffer();
        let columns = usize::from(buffer.area().width);
        let mut text = String::new();
        for row in buffer.content().chunks(columns) {
            let mut line = String::new();
            // The cell after a wide character is its second half.
            let mut is_covered = false;
            for cell in row {
                if !is_covered {
                    line.push_str(cell.symbol());
                }
                is_covered = !is_covered && unicode_width::UnicodeWidthStr::width(cell.symbol()) > 1;
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// The line with the cursor.
    fn cursor(&self) -> String {
        let buffer = self.buffer();
        let columns = usize::from(buffer.area().width);
        let reversed = ratatui_core::style::Modifier::REVERSED;
        let row = buffer.content().chunks(columns).find(|row| row[0].modifier.contains(reversed));
        row.into_iter().flatten().map(ratatui_core::buffer::Cell::symbol).collect()
    }

    #[track_caller]
    fn shows(&self, parts: &[&str]) {
        let screen = self.screen();
        for part in parts {
            assert!(screen.contains(part), "{part:?} is not on the screen:\n{screen}");
        }
        assert!(self.presses <= 20, "{} presses", self.presses);
    }
}

/// Compares the screen after these keys, in both sizes, with what `screens` keeps; `SNAPSHOTS=overwrite` writes it.
#[track_caller]
fn assert_screen(name: &str, keys: &[&str]) {
    for size in [(80, 24), (200, 60)] {
        let mut session = Session::start(size, Fleet::new(0));
        keys.iter().for_each(|keys| session.press(keys));
        assert_kept(name, &session);
    }
}

/// Compares the screen with what `screens` keeps.
#[track_caller]
fn assert_kept(name: &str, session: &Session) {
    let (columns, rows) = session.model.size;
    let file = format!("src/commands/tui/screens/{name}-{columns}x{rows}.txt");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let kept = snapbox::Data::read_from(&path, None).raw();
    snapbox::Assert::new().action_env("SNAPSHOTS").eq(session.screen(), kept);
}

#[test]
fn each_view_has_its_screen() {
    assert_screen("attention", &[]);
    assert_screen("apps", &["g p"]);
    assert_screen("clusters", &["g c"]);
    assert_screen("matrix", &["g m"]);
    assert_screen("matrix-groups", &["g m", "b"]);
    assert_screen("help", &["?"]);
}

#[test]
fn each_part_of_an_app_has_its_screen() {
    let open = "g p Enter";
    assert_screen("app-why", &[open]);
    assert_screen("app-objects", &[open, "o"]);
    assert_screen("app-events", &[open, "e"]);
    assert_screen("app-history", &[open, "h"]);
    assert_screen("app-clusters", &[open, "i"]);
    assert_screen("app-logs", &[open, "l"]);
}

#[test]
fn tasks_are_done_in_at_most_twenty_presses() {
    for seed in 0..3 {
        let at = || Session::start((80, 24), Fleet::new(seed));
        // 1: the newest failure and its cause.
        let task = at();
        let newest = task.fleet.cluster(2);
        task.shows(&["StatefulSet valkey Failed", newest, "40s", "exited with code 1"]);
        // 2: how many clusters fail by one image, and which.
        let mut task = at();
        task.press("/");
        task.type_in("web:1.6.0");
        task.press("Enter");
        let names = task.fleet.bad_image().join(", ");
        task.shows(&[&format!("in 3 clusters: {names}"), "ghcr.io/acme/web:1.6.0"]);
        // 3: which clusters are lost, since when, and what was known.
        let task = at();
        task.shows(&[
            "1 cluster is lost for 12 min",
            &format!("{} lost, was Ready with 6 apps", task.fleet.lost()),
            "12m",
        ]);
        // 4: which clusters do not run the new revision of an app.
        let mut task = at();
        let app = task.fleet.app(2);
        task.press(":");
        task.type_in(&format!("apps {app}"));
        task.press("Enter Enter i");
        let screen = task.screen();
        let (_, old) =
            screen.split_once("revision main@11111111 in 2 clusters").unwrap_or_else(|| panic!("{screen}"));
        for cluster in task.fleet.behind() {
            assert!(old.contains(cluster), "{screen}");
        }
        task.shows(&["revision main@aaaaaaaa in 7 clusters"]);
        // 5: what changed before an app turned red.
        let mut task = at();
        task.press("j Enter");
        task.shows(&["changed before", "--io-threads many"]);
        // 6: the objects of an app that are not well, and the warnings of the worst Pod.
        let mut task = at();
        task.press("j Enter o z");
        task.shows(&["Pod valkey-0  Failed"]);
        assert!(!task.screen().contains("ConfigMap"), "{}", task.screen());
        task.press("e /");
        task.type_in("valkey-0");
        task.press("Enter");
        task.shows(&["BackOff"]);
        assert!(!task.screen().contains("Pulled"), "{}", task.screen());
    }
}

#[test]
fn the_cursor_stays_on_its_row_when_others_come() {
    let mut session = Session::start((80, 24), Fleet::new(0));
    session.press("j");
    assert!(session.cursor().contains("StatefulSet valkey"), "{}", session.screen());
    session.fleet.more = Some(("ledger", "us-3", "the quota is used up"));
    session.fleet.version += 1;
    session.pass(2);
    session.hear();
    session.shows(&["Deployment api Failed", "the quota is used up"]);
    assert!(session.cursor().contains("StatefulSet valkey"), "{}", session.screen());
}

#[test]
fn apps_keep_their_order_until_the_user_asks_for_another() {
    let mut session = Session::start((80, 24), Fleet::new(0));
    session.press("g p j");
    let before = session.cursor();
    session.fleet.more = Some(("ledger", "us-3", "the quota is used up"));
    session.fleet.version += 1;
    session.pass(2);
    session.hear();
    session.shows(&["1 changed: r shows the present order"]);
    assert_eq!(session.cursor()[..20], before[..20]);
    session.press("r");
    assert!(!session.screen().contains("changed: r"), "{}", session.screen());
    session.shows(&["the quota is used up"]);
}

#[test]
fn without_the_hub_nothing_is_known_to_be_so_now() {
    let mut session = Session::start((80, 24), Fleet::new(0));
    session.press("g p");
    session.shows(&["✓ Ready"]);
    session.happen(Event::Away("connection refused".to_owned()));
    session.shows(&[
        "No answer from the hub, as of 12:00:00; tries again: connection refused",
        "◌ hub away",
        "was Ready",
        "was Failed",
    ]);
    assert!(!session.screen().contains("✓ Ready"), "{}", session.screen());
    session.hear();
    session.shows(&["✓ Ready"]);
    assert!(!session.screen().contains("hub away"), "{}", session.screen());
}

#[test]
fn a_failed_answer_keeps_the_rows_and_is_told() {
    let mut session = Session::start((80, 24), Fleet::new(0));
    session.press("g c");
    session.fleet.version += 1;
    session.model.update(Event::Tick(now().checked_add(jiff::SignedDuration::from_secs(3)).unwrap()));
    let effects = session.model.update(Event::Frame(Box::new(parsed(session.fleet.frame()))));
    let [Effect::Ask(request)] = &effects[..] else { panic!("{effects:?}") };
    session.happen(Event::Answer(Box::new((request.clone(), Err("the hub is busy".to_owned())))));
    session.shows(&["the hub is busy", "eu-1"]);
}

#[test]
fn nothing_is_asked_while_nothing_changes() {
    let mut session = Session::start((80, 24), Fleet::new(0));
    for view in ["g a", "g p", "g c", "g m"] {
        session.press(view);
        for seconds in 0..60 {
            let at = now().checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap();
            let effects = session.model.update(Event::Tick(at));
            assert!(effects.is_empty(), "{view}: {effects:?}");
        }
    }
}

#[test]
fn hostile_text_is_escaped_and_stays_in_its_columns() {
    let mut fleet = Fleet::new(0);
    fleet.is_hostile = true;
    for size in [(80, 24), (200, 60), (20, 5), (1, 1)] {
        let mut session = Session::start(size, Fleet { seed: 0, version: 1, more: None, is_hostile: true });
        let objects = ["g p", "Enter", "o", "j y", "Esc", ".", "Enter", "Esc", "j j Enter", "Esc"];
        for keys in objects.into_iter().chain(["Esc", "c", "l", "Esc", "g c", "g m", "?"]) {
            session.press(keys);
            let buffer = session.buffer();
            for cell in buffer.content() {
                let is_bad =
                    |character: char| character.is_control() || "\u{202e}\u{2066}".contains(character);
                assert!(!cell.symbol().contains(is_bad), "{:?}", cell.symbol());
            }
        }
    }
    let mut session = Session::start((80, 24), fleet);
    session.press("g p");
    session.shows(&["evil"]);
    for line in session.screen().lines() {
        assert!(unicode_width::UnicodeWidthStr::width(line) <= 80, "{line}");
    }
}

#[test]
fn commands_of_k9s_work() {
    let mut session = Session::start((80, 24), Fleet::new(0));
    let mut run = |command: &str| {
        session.press(":");
        session.type_in(command);
        session.press("Enter");
        session.presses = 0;
        session.screen()
    };
    assert!(run("clusters").contains("WORST APP"));
    assert!(run("apps cluster=eu-1").contains("cluster eu-1"));
    assert!(run("matrix").contains("6 apps by 9 clusters"));
    assert!(run("attention").contains("Problems 2"));
    assert!(run("pods").contains("there is no command pods"));
    run("q");
    assert!(session.has_quit);
}

#[test]
fn the_command_of_a_view_is_copied() {
    let mut session = Session::start((80, 24), Fleet::new(0));
    session.press("g p Enter o c");
    let name =
        format!("{}/flux-kustomization/flux-system/{}", session.fleet.bad_image()[0], session.fleet.app(5));
    assert_eq!(session.copied, [format!("taffrail tree {name} --hub https://hub.example.com")]);
}

#[test]
fn a_screen_takes_the_same_time_however_many_apps_there_are() {
    let mut session = Session::start((200, 60), Fleet::new(0));
    session.press("g p");
    let time = |session: &Session| {
        let begun = std::time::Instant::now();
        for _ in 0..20 {
            session.buffer();
        }
        begun.elapsed() / 20
    };
    let few = time(&session);
    let view = session.model.view_mut();
    let one = view.rows.clone();
    view.rows.extend(one.iter().cycle().take(10_000).cloned());
    view.filter();
    let many = time(&session);
    assert!(many < few * 20, "{few:?}, {many:?}");
}

#[test]
fn colours_are_never_needed() {
    let mut session = Session::start((200, 60), Fleet::new(0));
    session.model.colours = Colours::None;
    session.press("g p");
    let buffer = session.buffer();
    let reset = ratatui_core::style::Color::Reset;
    assert!(buffer.content().iter().all(|cell| cell.fg == reset && cell.bg == reset));
}
