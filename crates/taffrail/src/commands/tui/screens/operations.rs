//! Operations on the fake fleet.

use ratatui_crossterm::crossterm::event::{
    Event as Input, KeyCode, KeyEvent, KeyModifiers, MouseEvent, MouseEventKind,
};
use serde_json::{Value, json};
use taffrail_api::operations::{OperationQuestion, OperationTarget, PlanAnswer, VerbQuestion};
use taffrail_api::question::AppSelection;
use taffrail_apps::AppQuery;
use taffrail_apps::verbs::Verb;

use super::super::question::RunEnd;
use super::{Event, Fleet, NOW, Session, assert_screen, parsed};

/// The question of a run about apps.
fn verb(question: &OperationQuestion) -> &VerbQuestion {
    match question {
        OperationQuestion::Verb(question) => question,
        OperationQuestion::Action(question) => panic!("{question:?}"),
    }
}

impl Fleet {
    /// Plans a verb for the apps of a question: a write in each cluster.
    pub(super) fn plan(&self, question: &OperationQuestion) -> Result<Box<PlanAnswer>, String> {
        let question = match question {
            OperationQuestion::Verb(question) => question,
            OperationQuestion::Action(question) => return Ok(self.plan_action(question)),
        };
        let Some(name) = question.names.first().map(ToString::to_string) else {
            return Err("no app".to_owned());
        };
        let verb = question.verb.as_str();
        let name = name.rsplit('/').next().unwrap().to_owned();
        let wanted = &question.apps.clusters;
        let clusters =
            self.rows().into_iter().filter(|row| row["name"] == *name).map(|row| row["cluster"].clone());
        let clusters = clusters
            .filter(|cluster| wanted.is_empty() || wanted.iter().any(|wanted| *cluster == wanted.as_str()));
        let lines = match question.verb {
            Verb::Reconcile(_) => json!([{"context": "metadata:"}, {"context": "  annotations:"},
                {"added": "    reconcile.fluxcd.io/requestedAt: \"2026-03-01T12:00:00Z\""}]),
            Verb::Suspend => json!([{"context": "spec:"}, {"added": "  suspend: true"}]),
            Verb::Resume => {
                json!([{"context": "spec:"}, {"removed": "  suspend: true"}, {"added": "  suspend: false"}])
            }
        };
        let item = |cluster: Value| {
            let object = json!({"group": "kustomize.toolkit.fluxcd.io", "kind": "Kustomization", "namespace": "flux-system", "name": name});
            let write = json!({"object": object,
                "change": {"patch": {"patch": {"changes": []}}}, "lines": lines});
            json!({"cluster": cluster, "target": {"home": cluster, "target": cluster, "delivery": "flux-kustomization",
                "namespace": "flux-system", "name": name}, "writes": [write], "warnings": [], "unchanged": ""})
        };
        let items: Vec<Value> = clusters.map(item).collect();
        let fleet = json!({"now": NOW, "clusters": 9});
        let plan = json!({"operation": verb, "items": items, "refused": []});
        let answer = json!({"fleet": fleet, "plannedAt": NOW, "digest": "0", "plan": plan, "errors": []});
        Ok(Box::new(parsed(answer)))
    }
}

#[test]
fn operations_are_planned_confirmed_and_told() {
    let open = "g p Enter";
    assert_screen("operation-planned", &[open, "S"]);
    assert_screen("operation-everywhere", &[open, "R a s"]);
    let at = || Session::start((80, 24), Fleet::new(0));
    let end = |session: &mut Session, item: usize, outcome: Value| {
        let number = session.runs[0].0;
        let ended = parsed(json!({"event": "ended", "item": item, "outcome": outcome}));
        session.happen(Event::Ran(number, Box::new(ended)));
    };
    // 8: suspend an app, see it, resume it.
    let mut task = at();
    task.press("g p Enter S");
    task.shows(&["+   suspend: true", "y suspends · Esc cancels · a in every cluster"]);
    task.press("y");
    assert_eq!(task.runs.len(), 1);
    assert_eq!(verb(&task.runs[0].1).verb, Verb::Suspend);
    // A second press writes nothing more.
    task.press("y Enter");
    assert_eq!(task.runs.len(), 1);
    task.shows(&["waits for its turn", "Esc closes, and the hub goes on"]);
    end(&mut task, 0, json!({"result": "done"}));
    task.happen(Event::RunEnded(task.runs[0].0, RunEnd::Done));
    task.shows(&["✓ Done", "Esc closes"]);
    task.press("Esc");
    task.shows(&["d Why"]);
    // 9: reconcile with source in all clusters, and read each result.
    let mut task = at();
    task.press("g p Enter R s a");
    task.shows(&["reconcile", "in 9 clusters", "s without source"]);
    task.press("y");
    let how = verb(&task.runs[0].1).verb;
    assert!(matches!(how, Verb::Reconcile(how) if how.with_source), "{how:?}");
    assert!(verb(&task.runs[0].1).apps.clusters.is_empty());
    end(&mut task, 0, json!({"result": "ready", "afterMillis": 4200, "isOutOfSync": false, "message": ""}));
    end(&mut task, 1, json!({"result": "failed", "afterMillis": 4200, "why": "the image cannot be pulled"}));
    task.shows(&["✓ Ready", "✕ Failed the image cannot be pulled", "waits for its turn"]);
    // 10: cancel one before it is written.
    let mut task = at();
    task.press("g p Enter S Enter Esc");
    assert!(task.runs.is_empty());
    task.shows(&["d Why"]);
    // What the hub did not begin is shown again.
    let mut task = at();
    task.press("g p Enter S y");
    let refused = RunEnd::Refused("the plan has changed since it was shown, so nothing was sent".to_owned());
    task.happen(Event::RunEnded(task.runs[0].0, refused));
    task.shows(&["Nothing was written: the plan has changed", "y suspends"]);
}

#[test]
fn over_ten_apps_their_number_is_typed() {
    let mut session = Session::start((80, 24), Fleet::new(0));
    session.press("g p Enter S");
    let Some(operation) = &mut session.model.operation else { panic!("no operation") };
    let (number, app) = (operation.number, session.fleet.app(0).to_owned());
    let name: AppQuery = format!("flux-kustomization/flux-system/{app}").parse().unwrap();
    let question = OperationQuestion::Verb(VerbQuestion {
        verb: Verb::Suspend,
        names: vec![name],
        selector: None,
        apps: AppSelection::default(),
    });
    let mut plan = session.fleet.plan(&question).unwrap();
    let one = plan.plan.items[0].clone();
    plan.plan.items = (0..12)
        .map(|place| {
            let mut item = one.clone();
            let OperationTarget::App(app) = &mut item.target else { panic!("{item:?}") };
            app.name = format!("app-{place}");
            item
        })
        .collect();
    session.happen(Event::Planned(number, Ok(plan)));
    session.shows(&["type 12 and Enter to suspend"]);
    session.press("y Enter 1 1 Enter");
    assert!(session.runs.is_empty());
    session.happen(Event::Input(Input::Key(KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE))));
    session.press("2 Enter");
    assert_eq!(session.runs.len(), 1);
}

#[test]
fn apps_that_are_chosen_are_changed_together() {
    let mut none = Session::start((80, 24), Fleet::new(0));
    none.press("g p S");
    none.shows(&["Space chooses the apps to suspend; Enter opens one"]);
    let mut task = Session::start((80, 24), Fleet::new(0));
    task.press(":");
    task.type_in("apps shop");
    task.press("Enter Space Space j Space");
    task.shows(&["3 chosen (R, S; Esc chooses none)"]);
    let marked = task.screen().lines().filter(|line| line.starts_with('▌')).count();
    assert_eq!(marked, 3, "{}", task.screen());
    task.press("R s");
    task.shows(&["reconcile shop: in 3 clusters", "a in every cluster · s without source"]);
    task.press("y");
    let question = verb(&task.runs[0].1);
    assert_eq!((question.names.len(), question.apps.clusters.len()), (3, 3), "{question:?}");
    let outcomes = [
        json!({"result": "ready", "afterMillis": 4200, "isOutOfSync": false, "message": ""}),
        json!({"result": "done"}),
        json!({"result": "failed", "afterMillis": 4200, "why": "the image cannot be pulled"}),
    ];
    for (item, outcome) in outcomes.into_iter().enumerate() {
        let ended = json!({"event": "ended", "item": item, "outcome": outcome});
        task.happen(Event::Ran(task.runs[0].0, Box::new(parsed(ended))));
    }
    task.happen(Event::RunEnded(task.runs[0].0, RunEnd::Done));
    // Of several, each result has one line.
    let results = task.screen().lines().filter(|line| line.contains('✓') || line.contains('✕')).count();
    assert_eq!(results, 3, "{}", task.screen());
    assert!(!task.screen().contains("requestedAt"), "{}", task.screen());
    // They stay chosen, for the opposite.
    task.press("Esc S a");
    task.shows(&["suspend shop: in 9 clusters", "a only in those chosen"]);
    task.press("Esc Esc");
    assert!(!task.screen().contains("chosen"), "{}", task.screen());
    task.shows(&["search shop"]);
}

#[test]
fn the_wheel_scrolls_the_plan_and_not_the_rows_below() {
    let mut session = Session::start((80, 24), Fleet::new(0));
    session.press("g p Enter R a");
    let first = session.model.view().cursor;
    let turn = |session: &mut Session, kind| {
        let mouse = MouseEvent { kind, column: 5, row: 9, modifiers: KeyModifiers::NONE };
        session.happen(Event::Input(Input::Mouse(mouse)));
    };
    assert!(
        session.screen().contains(" ap-1") && !session.screen().contains(" us-3"),
        "{}",
        session.screen()
    );
    (0..20).for_each(|_| turn(&mut session, MouseEventKind::ScrollDown));
    assert!(
        !session.screen().contains(" ap-1") && session.screen().contains(" us-3"),
        "{}",
        session.screen()
    );
    (0..20).for_each(|_| turn(&mut session, MouseEventKind::ScrollUp));
    assert!(session.screen().contains(" ap-1"), "{}", session.screen());
    session.press("Esc");
    assert_eq!(session.model.view().cursor, first);
}
