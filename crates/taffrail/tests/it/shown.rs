//! The terminal UI on a terminal whose screens are drawn whole again, so that a text on them is whole.

use std::time::{Duration, Instant};

use taffrail_testkit::terminal::Terminal;

use super::command;

/// Maximum time until a screen shows something.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal UI on a terminal of its own, and the columns of that.
pub(super) struct Shown(pub(super) Terminal, u16);

impl Shown {
    /// Starts the UI of a hub.
    pub(super) fn start(url: &str, token: &str) -> Shown {
        let mut command = command(&["tui", "--hub", url]);
        command.env("TAFFRAIL_HUB_TOKEN", token);
        let mut shown = Shown(Terminal::start(command, 120, 40).unwrap(), 120);
        shown.press("", "live");
        shown
    }

    /// Types keys, and waits until the screen shows `wanted`. Only what differs is written, so a text is whole on a
    /// screen that is drawn whole again.
    #[track_caller]
    pub(super) fn press(&mut self, keys: &str, wanted: &str) {
        let begun = Instant::now();
        if !keys.is_empty() {
            self.0.type_in(keys);
            self.await_effect(begun);
        }
        loop {
            self.0.text.clear();
            self.1 = 241 - self.1;
            self.0.resize(self.1, 40);
            // The next change of the size comes when this one was handled.
            while !self.is_drawn() {
                self.0.read_for(Duration::from_millis(50));
                assert!(begun.elapsed() < PATIENCE, "nothing is drawn after {keys:?}: {:?}", self.0.text);
            }
            if self.0.text.contains(wanted) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "no {wanted:?} after {keys:?}: {:?}", self.0.text);
        }
    }

    /// Returns true if a whole screen was written.
    fn is_drawn(&self) -> bool {
        let drawn = self.0.text.split_once("\u{1b}[2J");
        drawn.is_some_and(|(_, drawn)| drawn.contains("\u{1b}[?2026l"))
    }

    /// Waits until keys have changed the screen, and a screen that changes by itself for two seconds. crossterm leaves
    /// input that comes together with a change of the size unread until more input comes.
    #[track_caller]
    fn await_effect(&mut self, begun: Instant) {
        let mut is_changed = false;
        loop {
            let written = self.0.read_for(Duration::from_millis(100));
            if is_changed && (written == 0 || begun.elapsed() > Duration::from_secs(2)) {
                return;
            }
            is_changed |= written > 0;
            assert!(begun.elapsed() < PATIENCE, "no key has an effect: {:?}", self.0.text);
        }
    }

    /// Checks that no control sequence of others reached the terminal.
    #[track_caller]
    pub(super) fn is_clean(&self) {
        let bad = ["\u{1b}]0;", "\u{7}", "\u{202e}"];
        assert!(!bad.iter().any(|bad| self.0.text.contains(bad)), "{:?}", self.0.text);
    }

    pub(super) fn quit(mut self) {
        self.0.type_in("q");
        let (text, code) = self.0.end();
        assert_eq!(code, Some(0), "{text:?}");
    }
}
