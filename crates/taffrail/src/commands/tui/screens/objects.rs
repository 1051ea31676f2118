//! Objects of the fake fleet: the tree of an app, and an object as YAML.

use taffrail_object::ObjectKey;

use super::super::question::ObjectPlace;
use super::{AppPlace, Fleet, PartAnswer, Session, assert_screen};

impl Fleet {
    /// The tree of an app, with the object of each line.
    pub(super) fn objects(&self, app: &AppPlace, is_unwell: bool) -> PartAnswer {
        let lines = [
            (app.name.clone(), "kustomize.toolkit.fluxcd.io", "Kustomization", &*app.name, false),
            ("  StatefulSet valkey  Failed".to_owned(), "apps", "StatefulSet", "valkey", false),
            ("    Pod valkey-0  Failed  7 restarts".to_owned(), "", "Pod", "valkey-0", false),
            ("  ConfigMap settings  Ready".to_owned(), "", "ConfigMap", "settings", true),
            ("  Service web  Ready".to_owned(), "", "Service", "web", true),
        ];
        let shown = lines.into_iter().filter(|(.., is_well)| !is_well || !is_unwell);
        let (mut text, mut objects) = ("OBJECT  STATUS\n".to_owned(), vec![None]);
        for (line, group, kind, name, _) in shown {
            text.push_str(&line);
            text.push('\n');
            let key = ObjectKey::new(group, kind, "shop", name);
            objects.push(Some(ObjectPlace { cluster: app.cluster.clone(), key }));
        }
        PartAnswer::Objects(text, objects)
    }

    /// An object as YAML.
    pub(super) fn yaml(&self, object: &ObjectPlace) -> String {
        let ObjectPlace { cluster, key } = object;
        let evil = if self.is_hostile { "\u{1b}[2J\u{1b}[31m\u{202e}evil\u{7}\r\u{9b}2J" } else { "" };
        let mut yaml = format!(
            "kind: {}\nmetadata:\n  name: {}\n  namespace: {}\n  labels:\n    cluster: {cluster}\n    note: \"{evil}\"\nspec:\n",
            key.kind, key.name, key.namespace,
        );
        for number in 0..80 {
            yaml.push_str(&format!("  field{number}: {number}\n"));
        }
        yaml
    }
}

#[test]
fn an_object_is_shown_as_yaml_and_left_for_its_row() {
    assert_screen("object-yaml", &["g p Enter o j y"]);
    let mut session = Session::start((80, 24), Fleet::new(0));
    session.press("g p Enter o j");
    assert!(session.cursor().contains("StatefulSet valkey"), "{}", session.screen());
    session.press("y");
    session.shows(&["StatefulSet shop/valkey in ap-2", "kind: StatefulSet", "field0: 0", "Esc back"]);
    assert!(!session.screen().contains("field79"), "{}", session.screen());
    session.press("G");
    session.shows(&["field79: 79"]);
    session.press("c");
    assert_eq!(
        session.copied,
        ["taffrail object ap-2/apps/StatefulSet/shop/valkey --hub https://hub.example.com"]
    );
    session.press("Esc");
    assert!(session.cursor().contains("StatefulSet valkey"), "{}", session.screen());
    // Enter does the same.
    session.press("j Enter");
    session.shows(&["kind: Pod", "name: valkey-0"]);
}

#[test]
fn what_has_no_object_has_no_yaml() {
    let mut session = Session::start((80, 24), Fleet::new(0));
    session.press("g p Enter o k y");
    session.shows(&["this line is not an object", "o Objects"]);
    session.press("d y");
    session.shows(&["o lists the objects; go to one there"]);
}

#[test]
fn yaml_of_others_moves_no_cursor_and_sets_no_colour() {
    let fleet = Fleet { is_hostile: true, ..Fleet::new(0) };
    let mut session = Session::start((80, 24), fleet);
    session.press("g p Enter o j y");
    session.shows(&["[2J", "[31m", "evil"]);
    let buffer = session.buffer();
    let row = buffer.content().chunks(80).find(|row| row.iter().any(|cell| cell.symbol() == "\u{fffd}"));
    let row = row.unwrap_or_else(|| panic!("{}", session.screen()));
    assert!(row.iter().all(|cell| cell.fg == ratatui_core::style::Color::Reset), "{}", session.screen());
    for cell in buffer.content() {
        let is_bad = |character: char| character.is_control() || character == '\u{202e}';
        assert!(!cell.symbol().contains(is_bad), "{:?}", cell.symbol());
    }
}
