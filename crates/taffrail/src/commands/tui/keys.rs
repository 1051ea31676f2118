//! The table of keys, which `?` shows. Its words are those of the hub's page, which a test compares.

/// An effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Attention,
    Apps,
    Clusters,
    Matrix,
    Down,
    Up,
    PageDown,
    PageUp,
    First,
    Last,
    Left,
    Right,
    Open,
    Back,
    Search,
    Command,
    Problems,
    Sort,
    Reorder,
    Choose,
    CopyCommand,
    NextProblem,
    Group,
    Why,
    Objects,
    Events,
    History,
    InClusters,
    Logs,
    PreviousLogs,
    Trust,
    Reconcile,
    Suspend,
    NextTab,
    Yaml,
    Actions,
    Help,
    Quit,
}

/// The views in which a key acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Everywhere,
    Rows,
    Matrix,
    App,
}

impl Scope {
    pub(super) const ALL: [Scope; 4] = [Scope::Everywhere, Scope::Rows, Scope::Matrix, Scope::App];

    pub(super) fn title(self) -> &'static str {
        match self {
            Scope::Everywhere => "Everywhere",
            Scope::Rows => "Rows",
            Scope::Matrix => "Matrix",
            Scope::App => "App",
        }
    }
}

/// A row of the table.
pub(super) struct Key {
    pub(super) scope: Scope,
    /// The keys as they are shown: alternatives are separated by a comma, and keys that follow one another by a space.
    pub(super) keys: &'static str,
    pub(super) what: &'static str,
    pub(super) action: Action,
}

const fn key(scope: Scope, keys: &'static str, what: &'static str, action: Action) -> Key {
    Key { scope, keys, what, action }
}

pub(super) const KEYS: &[Key] = &[
    key(Scope::Everywhere, "g a", "Needs attention", Action::Attention),
    key(Scope::Everywhere, "g p", "Apps", Action::Apps),
    key(Scope::Everywhere, "g c", "Clusters", Action::Clusters),
    key(Scope::Everywhere, "g m", "Matrix", Action::Matrix),
    key(Scope::Everywhere, ":", "Command, such as :apps", Action::Command),
    key(Scope::Everywhere, "/", "Search", Action::Search),
    key(Scope::Everywhere, "z", "Problems only", Action::Problems),
    key(Scope::Everywhere, "c", "Copy the command of this view", Action::CopyCommand),
    key(Scope::Everywhere, "r", "Read again, in the present order", Action::Reorder),
    key(Scope::Everywhere, "?", "This table", Action::Help),
    key(Scope::Everywhere, "q", "Quit", Action::Quit),
    key(Scope::Rows, "j", "Next row", Action::Down),
    key(Scope::Rows, "k", "Previous row", Action::Up),
    key(Scope::Rows, "PgDn", "Next page", Action::PageDown),
    key(Scope::Rows, "PgUp", "Previous page", Action::PageUp),
    key(Scope::Rows, "g g", "First row", Action::First),
    key(Scope::Rows, "G", "Last row", Action::Last),
    key(Scope::Rows, "s", "Sort by the next column", Action::Sort),
    key(Scope::Rows, "Enter", "Open the row", Action::Open),
    key(Scope::Rows, "Space", "Choose the row", Action::Choose),
    key(Scope::Rows, "Escape", "Close", Action::Back),
    key(Scope::Matrix, "Left", "Previous cluster", Action::Left),
    key(Scope::Matrix, "Right", "Next cluster", Action::Right),
    key(Scope::Matrix, "n", "Next cell with a problem", Action::NextProblem),
    key(Scope::Matrix, "b", "Group the clusters, or not", Action::Group),
    key(Scope::App, "d", "Why", Action::Why),
    key(Scope::App, "o", "Objects", Action::Objects),
    key(Scope::App, "e", "Events", Action::Events),
    key(Scope::App, "h", "History", Action::History),
    key(Scope::App, "i", "Clusters", Action::InClusters),
    key(Scope::App, "l", "Logs", Action::Logs),
    key(Scope::App, "p", "Previous run", Action::PreviousLogs),
    key(Scope::App, "u", "Trust: reasons for doubt", Action::Trust),
    key(Scope::App, "R", "Reconcile", Action::Reconcile),
    key(Scope::App, "S", "Suspend or resume", Action::Suspend),
    key(Scope::App, "Tab", "Next part", Action::NextTab),
    key(Scope::App, "y", "YAML", Action::Yaml),
    key(Scope::App, ".", "Actions", Action::Actions),
];

/// Returns what the keys `pressed`, such as `g a`, do in a view of this scope. Those that change an app act in rows, too,
/// on the rows that are chosen.
pub(super) fn action(pressed: &str, scope: Scope) -> Option<Action> {
    let is_change = |key: &Key| matches!(key.action, Action::Reconcile | Action::Suspend);
    let acts = |key: &&Key| {
        matches!(key.scope, Scope::Everywhere | Scope::Rows)
            || key.scope == scope
            || scope == Scope::Rows && is_change(key)
    };
    KEYS.iter().filter(acts).find(|key| key.keys == pressed).map(|key| key.action)
}

/// Returns true if `pressed` begins keys that follow one another.
pub(super) fn is_prefix(pressed: &str) -> bool {
    KEYS.iter().any(|key| key.keys.strip_prefix(pressed).is_some_and(|rest| rest.starts_with(' ')))
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::KEYS;

    /// Keys of the page for the theme, which a terminal sets itself, and for what the terminal UI does not have: search
    /// and time as views, the graph, and relations.
    const PAGE_ALONE: [&str; 5] = ["t", "g s", "g t", "v", "w"];

    #[test]
    fn keys_do_the_same_as_on_the_page() {
        let web = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src");
        let written = Regex::new(r#"keys: "([^"]+)", what: "([^"]+)""#).unwrap();
        let mut compared = 0;
        for file in [
            "App.tsx",
            "parts/Grid.tsx",
            "views/app/AppPage.tsx",
            "views/apps/Chosen.tsx",
            "views/matrix/Board.tsx",
            "views/object/ObjectPage.tsx",
            "views/operation/Acting.tsx",
        ] {
            let text = std::fs::read_to_string(web.join(file)).unwrap();
            for found in written.captures_iter(&text) {
                let (keys, what) = (&found[1], &found[2]);
                // Escape closes, and chooses no row before.
                let is_own = ["Open the app of the cell", "Choose none"].contains(&what);
                if PAGE_ALONE.contains(&keys) || is_own {
                    continue;
                }
                let keys = if keys == " " { "Space" } else { keys };
                let own = KEYS.iter().find(|key| key.keys == keys);
                assert_eq!(own.map(|key| key.what), Some(what), "{file}: {keys}");
                compared += 1;
            }
        }
        assert!(compared >= 15, "{compared} keys of the page were found");
    }

    #[test]
    fn no_key_has_two_meanings_in_a_view() {
        for (place, key) in KEYS.iter().enumerate() {
            let same = KEYS[..place].iter().find(|other| other.keys == key.keys);
            assert!(same.is_none(), "{}", key.keys);
        }
    }
}
