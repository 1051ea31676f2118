//! Actions of an object of the fake fleet.

use serde_json::json;
use taffrail_api::ObjectActionList;
use taffrail_api::operations::{ActionQuestion, OperationQuestion, PlanAnswer};

use super::super::question::{ObjectPlace, RunEnd};
use super::{Event, Fleet, Input, KeyCode, KeyEvent, KeyModifiers, NOW, Session, assert_screen, parsed};

impl Fleet {
    pub(super) fn actions(&self, object: &ObjectPlace) -> ObjectActionList {
        let evil = if self.is_hostile { "\u{1b}[2J\u{202e}evil\u{7}\n" } else { "" };
        let action = |name: &str, display: &str, disabled: bool, parameters: serde_json::Value| {
            json!({"cluster": object.cluster, "object": object.key, "name": format!("{name}{evil}"), "origin": "taffrail",
                "displayName": format!("{display}{evil}"), "disabled": disabled, "parameters": parameters})
        };
        let items = json!([
            action("restart", "Restart", false, json!([])),
            action("resume", "Resume", true, json!([])),
            action(
                "scale",
                "Scale",
                false,
                json!([
                {"name": format!("replicas{evil}"), "value": format!("2{evil}"), "type": "string", "default": "1"},
                {"name": "reason", "type": "string", "default": "by hand"}])
            ),
        ]);
        parsed(
            json!({"apiVersion": "taffrail.dev/v1alpha1", "kind": "ObjectActionList", "items": items, "errors": []}),
        )
    }

    /// Plans an action: a write of the object.
    pub(super) fn plan_action(&self, question: &ActionQuestion) -> Box<PlanAnswer> {
        let mut parts = question.object.split('/');
        let mut part = || parts.next().unwrap();
        let cluster = part();
        let object = json!({"group": part(), "kind": part(), "namespace": part(), "name": part()});
        let replicas = question.parameters.get("replicas").map_or("2", String::as_str);
        let lines = json!([{"context": "spec:"}, {"removed": "  replicas: 2"}, {"added": format!("  replicas: {replicas}")}]);
        let write =
            json!({"object": object, "change": {"patch": {"patch": {"changes": []}}}, "lines": lines});
        let target = json!({"cluster": cluster, "object": object, "origin": "cluster",
            "scriptOf": "ConfigMap argocd/argocd-cm"});
        let item =
            json!({"cluster": cluster, "target": target, "writes": [write], "warnings": [], "unchanged": ""});
        let plan = json!({"operation": question.action, "items": [item], "refused": []});
        let fleet = json!({"now": NOW, "clusters": 9});
        Box::new(parsed(json!({"fleet": fleet, "plannedAt": NOW, "digest": "0", "plan": plan, "errors": []})))
    }
}

fn action(question: &OperationQuestion) -> &ActionQuestion {
    match question {
        OperationQuestion::Action(question) => question,
        OperationQuestion::Verb(question) => panic!("{question:?}"),
    }
}

#[test]
fn an_action_is_chosen_planned_and_confirmed() {
    assert_screen("object-actions", &["g p Enter o j ."]);
    assert_screen("object-action-parameter", &["g p Enter o j .", "j j Enter"]);
    assert_screen("object-action-planned", &["g p Enter o j .", "Enter"]);
    let mut session = Session::start((80, 24), Fleet::new(0));
    session.press("g p Enter o j . Enter");
    session.shows(&[
        "restart StatefulSet shop/valkey: in ap-2",
        "+   replicas: 2",
        "y runs restart · Esc cancels",
    ]);
    session.shows(&["restart is a script of the cluster: ConfigMap argocd/argocd-cm"]);
    // There is one object, in one cluster.
    session.press("a s Enter");
    assert!(session.runs.is_empty());
    session.press("y");
    let (number, question, _) = &session.runs[0];
    assert_eq!(action(question).object, "ap-2/apps/StatefulSet/shop/valkey");
    assert_eq!(action(question).action, "restart");
    let ended = parsed(json!({"event": "ended", "item": 0, "outcome": {"result": "done"}}));
    let number = *number;
    session.happen(Event::Ran(number, Box::new(ended)));
    session.happen(Event::RunEnded(number, RunEnd::Done));
    session.shows(&["✓ Done"]);
    session.press("Esc");
    session.shows(&["Actions of StatefulSet shop/valkey in ap-2", "PARAMETERS"]);
    session.press("c");
    assert_eq!(
        session.copied,
        ["taffrail actions ap-2/apps/StatefulSet/shop/valkey --hub https://hub.example.com"]
    );
    session.press("Esc");
    assert!(session.cursor().contains("StatefulSet valkey"), "{}", session.screen());
}

#[test]
fn parameters_begin_with_their_values_and_are_edited() {
    let backspace = |session: &mut Session| {
        session.happen(Event::Input(Input::Key(KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE))));
    };
    let mut session = Session::start((80, 24), Fleet::new(0));
    session.press("g p Enter o j . j j Enter");
    session.shows(&["scale: replicas (1 of 2) = 2"]);
    // No digit is left, and the prompt stays.
    backspace(&mut session);
    backspace(&mut session);
    session.type_in("5");
    session.press("Enter");
    session.shows(&["scale: reason (2 of 2) = by hand"]);
    session.press("Enter");
    session.shows(&[
        "scale StatefulSet shop/valkey: in ap-2",
        "-   replicas: 2",
        "+   replicas: 5",
        "y runs scale",
    ]);
    session.press("y");
    let parameters: Vec<_> = action(&session.runs[0].1).parameters.clone().into_iter().collect();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(parameters, [pair("reason", "by hand"), pair("replicas", "5")]);
}

#[test]
fn an_action_is_left_before_it_is_planned() {
    let mut session = Session::start((80, 24), Fleet::new(0));
    session.press("g p Enter o j . j Enter");
    session.shows(&["resume does not apply to the object in its present state"]);
    session.press("j Enter Esc");
    session.shows(&["Actions of StatefulSet", "Enter plan the action"]);
    assert!(session.model.operation.is_none() && session.runs.is_empty());
    // The actions of an object that is shown as YAML are those of the object.
    session.press("Esc y .");
    session.shows(&["Actions of StatefulSet shop/valkey in ap-2"]);
}
