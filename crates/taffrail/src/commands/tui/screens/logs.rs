//! Followed logs of the fake fleet.

use super::super::question::LogPiece;
use super::{Event, Fleet, Session, assert_screen};

/// The first lines of a followed log.
pub(super) fn begin(number: u64) -> Event {
    logged(
        number,
        "*** FATAL CONFIG FILE ERROR (Version 9.1.0) ***\nargument must be between 1 and 256 inclusive\n",
    )
}

fn logged(number: u64, text: &str) -> Event {
    Event::Logged(number, LogPiece { text: text.to_owned(), _place: None })
}

impl Session {
    /// Starts with the logs of the first app.
    fn with_logs() -> Session {
        let mut session = Session::start((80, 24), Fleet::new(0));
        session.press("g p Enter l");
        session
    }

    /// Lets the containers write lines with these numbers.
    fn write(&mut self, numbers: std::ops::Range<usize>) {
        let text: String = numbers.map(|number| format!("line {number}\n")).collect();
        self.happen(logged(self.follows[self.follows.len() - 1].0, &text));
    }

    fn lines(&self) -> usize {
        self.model.view().rows.len()
    }
}

#[test]
fn a_log_stays_at_its_end_until_the_user_scrolls() {
    let mut session = Session::with_logs();
    session.write(0..100);
    session.shows(&["line 99"]);
    assert!(session.cursor().contains("line 99"), "{}", session.screen());
    session.write(100..150);
    assert!(session.cursor().contains("line 149"), "{}", session.screen());
    // Who reads further above is told what came, and loses no line.
    session.press("k k");
    session.write(150..160);
    session.write(160..161);
    assert!(session.cursor().contains("line 147"), "{}", session.screen());
    session.shows(&["11 new lines (G shows the last)", "line 147"]);
    session.press("G");
    assert!(session.cursor().contains("line 160"), "{}", session.screen());
    assert!(!session.screen().contains("new line"), "{}", session.screen());
    session.write(161..162);
    assert!(session.cursor().contains("line 161"), "{}", session.screen());
    // Lines that the search leaves out are not counted.
    session.press("/");
    session.type_in("line 16");
    session.press("Enter k");
    session.write(162..172);
    session.shows(&["8 new lines (G shows the last)"]);
    assert!(!session.screen().contains("line 99"), "{}", session.screen());
    for size in [(80, 24), (200, 60)] {
        let mut session = Session::start(size, Fleet::new(0));
        session.press("g p Enter l");
        session.write(0..100);
        session.press("k");
        session.write(100..103);
        super::assert_kept("app-logs-scrolled", &session);
    }
}

#[test]
fn a_log_keeps_its_last_lines() {
    let mut session = Session::with_logs();
    session.write(0..4_000);
    session.press("k");
    let before = session.cursor();
    session.write(4_000..7_000);
    assert_eq!((session.lines(), session.cursor()), (5_000, before));
    session.press("g g");
    assert!(session.cursor().contains("line 2000"), "{}", session.screen());
    // The line of the cursor is gone: then the cursor is on the oldest one.
    session.write(7_000..7_010);
    assert!(session.cursor().contains("line 2010"), "{}", session.screen());
    session.press("G");
    session.write(7_010..13_000);
    assert_eq!(session.lines(), 5_000);
    assert!(session.cursor().contains("line 12999"), "{}", session.screen());
}

#[test]
fn a_log_is_followed_while_its_tab_is_shown() {
    let mut session = Session::with_logs();
    let [(first, Some(name))] = &session.follows[..] else { panic!("{:?}", session.follows) };
    assert_eq!(name, "ap-2/flux-kustomization/flux-system/shop");
    let first = *first;
    // It is not read again by itself.
    session.pass(60);
    session.hear();
    assert_eq!(session.follows.len(), 1);
    session.shows(&["FATAL CONFIG FILE"]);
    session.press("d");
    assert!(session.follows[1].1.is_none(), "{:?}", session.follows);
    // What comes too late is not shown.
    session.happen(logged(first, "too late\n"));
    session.press("l");
    let [.., (second, Some(_))] = &session.follows[..] else { panic!("{:?}", session.follows) };
    assert_ne!(*second, first);
    session.happen(logged(first, "too late\n"));
    session.write(0..1);
    session.shows(&["line 0"]);
    assert!(!session.screen().contains("too late"), "{}", session.screen());
    session.press("g c");
    assert!(session.follows.last().is_some_and(|(_, app)| app.is_none()), "{:?}", session.follows);
}

#[test]
fn the_previous_run_is_not_followed() {
    let mut session = Session::with_logs();
    session.press("p");
    session.shows(&["Logs (previous)", "FATAL CONFIG FILE"]);
    assert!(session.follows[1].1.is_none(), "{:?}", session.follows);
    assert_screen("app-logs-previous", &["g p Enter p"]);
    session.press("l");
    session.shows(&["FATAL CONFIG FILE"]);
    assert_eq!(session.follows.len(), 3);
}

#[test]
fn the_end_of_a_log_is_told_and_it_is_read_again_on_demand() {
    let mut session = Session::with_logs();
    let number = |session: &Session| session.follows[session.follows.len() - 1].0;
    session.happen(Event::LogEnded(number(&session), Ok(())));
    session.shows(&["the log has ended (r reads it again)", "FATAL CONFIG FILE"]);
    session.press("r");
    assert_eq!((session.follows.len(), session.lines()), (2, 2));
    assert!(!session.screen().contains("has ended"), "{}", session.screen());
    session.happen(Event::LogEnded(number(&session), Err("the token allows no logs".to_owned())));
    session.shows(&["the token allows no logs", "the log is not followed (r tries again)"]);
    // A failed log is followed again when the hub is found again.
    session.happen(Event::Away("connection refused".to_owned()));
    session.hear();
    assert_eq!((session.follows.len(), session.lines()), (3, 2));
    // The same key reads it again, too.
    session.press("l");
    assert_eq!((session.follows.len(), session.lines()), (4, 2));
}

#[test]
fn log_lines_of_others_move_no_cursor() {
    let mut session = Session::with_logs();
    let number = session.follows[0].0;
    session.happen(logged(
        number,
        "\u{1b}]0;title\u{7}\u{1b}[2J\u{1b}[5;5Hsecret\u{202e}\u{9b}31m\rover\u{8}\n",
    ));
    session.shows(&["]0;title", "over"]);
    for cell in session.buffer().content() {
        let is_bad = |character: char| character.is_control() || character == '\u{202e}';
        assert!(!cell.symbol().contains(is_bad), "{:?}", cell.symbol());
    }
}

#[test]
fn logs_of_an_object_are_followed() {
    let mut session = Session::start((80, 24), Fleet::new(0));
    session.press("g p Enter o j j y l");
    let [(_, Some(name))] = &session.follows[..] else { panic!("{:?}", session.follows) };
    assert_eq!(name, "ap-2//Pod/shop/valkey-0");
    session.shows(&["Logs of Pod shop/valkey-0 in ap-2", "FATAL CONFIG FILE", "y YAML  p previous run"]);
    session.pass(60);
    session.hear();
    assert_eq!(session.follows.len(), 1);
    session.press("c p");
    session.shows(&["Logs (previous) of Pod shop/valkey-0 in ap-2", "valkey-0 exited with code 1"]);
    assert!(session.follows[1].1.is_none(), "{:?}", session.follows);
    session.press("c y");
    session.shows(&["Pod shop/valkey-0 in ap-2", "kind: Pod"]);
    let command =
        |what: &str| format!("taffrail {what} ap-2//Pod/shop/valkey-0 --hub https://hub.example.com");
    assert_eq!(session.copied, [command("logs --follow"), command("logs --previous")]);
    session.press("Esc");
    assert!(session.cursor().contains("Pod valkey-0"), "{}", session.screen());
    for size in [(80, 24), (200, 60)] {
        let mut session = Session::start(size, Fleet::new(0));
        session.press("g p Enter o j j y l");
        super::assert_kept("object-logs", &session);
    }
}
