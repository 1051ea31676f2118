//! The terminal UI on a terminal: what it shows, how little it writes, and that it leaves the terminal as it was.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};
use taffrail_testkit::fake_hub::{FakeHub, ManyApps, begin_stream, list, send_json};
use taffrail_testkit::terminal::Terminal;

use super::command;
use super::demo::Demo;
use super::shown::Shown;

/// The control sequences that switch to the alternate screen, ask for the mouse, and undo both.
const ENTER: &str = "\x1b[?1049h";
const ENTER_MOUSE: &str = "\x1b[?1000h\x1b[?1006h";
const LEAVE: &str = "\x1b[?1006l\x1b[?1000l\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Starts the UI of a hub on a terminal.
fn open(url: &str, more: &[&str], variables: &[(&str, &str)], columns: u16, rows: u16) -> Terminal {
    let mut command = command(&[&["tui", "--hub", url], more].concat());
    command.envs(variables.iter().copied());
    Terminal::start(command, columns, rows).unwrap()
}

/// Waits until the process is stopped.
fn wait_until_stopped(terminal: &Terminal) {
    let pid = Pid::from_child(&terminal.child);
    let (_, status) = rustix::process::waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped(), "{status:?}");
}

#[test]
fn quitting_restores_the_terminal() {
    let many = ManyApps::start(3).unwrap();
    let mut terminal = open(&many.url, &[], &[], 80, 24);
    let before = terminal.settings().unwrap();
    terminal.wait_for("Attention");
    terminal.wait_for("live");
    assert_ne!(terminal.settings().unwrap(), before, "what is typed is not echoed");
    terminal.type_in(":apps\r");
    terminal.wait_for("app-00002");
    terminal.type_in("q");
    terminal.child.wait().unwrap();
    assert_eq!(terminal.settings().unwrap(), before);
    let (text, code) = terminal.end();
    assert!(text.starts_with(ENTER) && text.contains(ENTER_MOUSE) && text.ends_with(LEAVE), "{text:?}");
    assert_eq!(code, Some(0));
}

#[test]
fn signals_restore_the_terminal() {
    let many = ManyApps::start(3).unwrap();
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let mut terminal = open(&many.url, &[], &[], 80, 24);
        let before = terminal.settings().unwrap();
        terminal.wait_for("live");
        rustix::process::kill_process(Pid::from_child(&terminal.child), signal).unwrap();
        terminal.child.wait().unwrap();
        assert_eq!(terminal.settings().unwrap(), before, "{signal:?}");
        let (text, ended) = terminal.end();
        assert!(text.ends_with(&format!("{LEAVE}\u{1b}[0m")), "{signal:?}: {text:?}");
        assert_eq!(ended, Some(code), "{signal:?}");
    }
}

#[test]
fn a_stopped_process_restores_the_terminal_and_draws_again_when_it_goes_on() {
    let many = ManyApps::start(3).unwrap();
    let mut terminal = open(&many.url, &[], &[], 80, 24);
    let before = terminal.settings().unwrap();
    terminal.wait_for("live");
    let pid = Pid::from_child(&terminal.child);
    rustix::process::kill_process(pid, Signal::TSTP).unwrap();
    wait_until_stopped(&terminal);
    terminal.wait_for(LEAVE);
    assert_eq!(terminal.settings().unwrap(), before);
    terminal.text.clear();
    rustix::process::kill_process(pid, Signal::CONT).unwrap();
    terminal.wait_for(ENTER);
    terminal.wait_for(ENTER_MOUSE);
    terminal.wait_for("Attention");
    assert_ne!(terminal.settings().unwrap(), before);
    terminal.type_in("q");
    assert_eq!(terminal.end().1, Some(0));
}

#[test]
fn it_needs_a_terminal() {
    let answer = super::taffrail(&["tui", "--hub", "http://127.0.0.1:1"], "");
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("needs a terminal"), "{}", answer.stderr);
}

#[test]
fn a_changed_row_writes_little_and_rest_writes_nothing() {
    let many = ManyApps::start(10_000).unwrap();
    let mut terminal = open(&many.url, &[], &[], 200, 60);
    terminal.wait_for("live");
    terminal.type_in("gp");
    terminal.wait_for("app-00040");
    // The rest of that screen comes first.
    terminal.read_for(Duration::from_secs(1));
    assert_eq!(terminal.read_for(Duration::from_secs(3)), 0, "it writes at rest: {:?}", terminal.text);
    terminal.text.clear();
    many.fail_first();
    terminal.wait_for("quota");
    terminal.read_for(Duration::from_secs(2));
    let written = terminal.text.len();
    assert!((1..4096).contains(&written), "{written} bytes: {:?}", terminal.text);
    // The last of all rows is reached.
    terminal.type_in("G");
    let begun = Instant::now();
    // crossterm leaves a key that comes together with a change of the size unread until another one comes.
    while terminal.read_for(Duration::from_millis(100)) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the key has no effect");
    }
    // Only what differs is written, so a name is whole on a screen that is drawn anew.
    for columns in [190, 191].into_iter().cycle() {
        if terminal.text.contains("app-09999") {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the last row is not reached");
        terminal.resize(columns, 60);
        terminal.read_for(Duration::from_millis(300));
    }
    terminal.type_in("q");
    terminal.end();
}

/// Returns the numbers of all control sequences for styles in `text`.
fn styles(text: &str) -> BTreeSet<String> {
    let style = regex::Regex::new("\x1b\\[([0-9;]*)m").unwrap();
    style.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

#[test]
fn a_terminal_gets_the_colours_that_it_has() {
    let many = ManyApps::start(3).unwrap();
    many.fail_first();
    let shown = |more: &[&str], variables: &[(&str, &str)]| {
        let mut terminal = open(&many.url, more, variables, 80, 24);
        terminal.wait_for("live");
        terminal.type_in("gp");
        terminal.wait_for("app-00002");
        // The row with the cursor has no colours.
        let begun = std::mem::take(&mut terminal.text);
        terminal.type_in("j");
        terminal.wait_for("✕ Failed");
        terminal.type_in("q");
        let (rest, code) = terminal.end();
        assert_eq!(code, Some(0));
        let text = begun + &rest;
        // Without colours, marks and words tell the same.
        assert!(text.contains("✕ Failed") && text.contains("✓ Ready"), "{text:?}");
        styles(&text)
    };
    // Red, or green, or grey: with 256 colours by their place, with 16 by their names.
    let has = |styles: &BTreeSet<String>, wanted: &str| styles.iter().any(|style| style.contains(wanted));
    let names = regex::Regex::new("^(3[0-7]|9[0-7]);49$").unwrap();
    let many_colours = [("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("TERM", "tmux-direct")];
    for variable in many_colours {
        let styles = shown(&[], &[variable]);
        assert!(has(&styles, "38;5;203") && has(&styles, "38;5;108"), "{variable:?}: {styles:?}");
    }
    for term in ["xterm", "linux", "vt340"] {
        let styles = shown(&[], &[("TERM", term)]);
        assert!(!has(&styles, "38;") && has(&styles, "31;49") && has(&styles, "32;49"), "{term}: {styles:?}");
        let coloured = styles.iter().filter(|style| style.ends_with(";49"));
        assert!(
            coloured.clone().all(|style| names.is_match(style) || style == "39;49"),
            "{term}: {styles:?}"
        );
    }
    let always = shown(&["--color", "always"], &[("NO_COLOR", "1")]);
    assert!(has(&always, "31;49"), "{always:?}");
    for none in
        [shown(&[], &[("NO_COLOR", "1")]), shown(&["--color", "never"], &[("COLORTERM", "truecolor")])]
    {
        let is_colour = |style: &String| {
            style.split(';').any(|number| {
                number.len() == 2 && number.starts_with(['3', '4', '9']) && number != "39" && number != "49"
            })
        };
        assert!(!none.iter().any(is_colour), "{none:?}");
    }
}

#[test]
fn the_mouse_chooses_rows_and_scrolls() {
    let many = ManyApps::start(100).unwrap();
    let mut shown = Shown::start(&many.url, "");
    // Above the rows are the bar, the sentence, an empty line and the titles.
    let at = |button: u8, row: u16, end: char| format!("\u{1b}[<{button};5;{}{end}", row + 5);
    let click = |row| at(0, row, 'M') + &at(0, row, 'm');
    let (down, up) = (at(65, 7, 'M'), at(64, 7, 'M'));
    shown.press("gp", "1 of 100");
    shown.press(&click(7), "8 of 100");
    shown.press(&down, "11 of 100");
    shown.press(&up.repeat(2), "5 of 100");
    shown.press(&down.repeat(30), "95 of 100");
    shown.press(&up.repeat(40), "1 of 100");
    shown.press(&click(2), "3 of 100");
    shown.press("\r", "app-00002 in eu-1");
    shown.quit();
}

#[test]
fn resizing_draws_for_the_new_size() {
    let many = ManyApps::start(100).unwrap();
    let mut terminal = open(&many.url, &[], &[], 80, 24);
    terminal.wait_for("live");
    terminal.type_in("gp");
    terminal.wait_for("app-00010");
    assert!(!terminal.text.contains("app-00040"));
    terminal.resize(120, 60);
    terminal.wait_for("app-00040");
    terminal.type_in("q");
    terminal.end();
}

#[test]
fn a_hub_that_went_away_is_told_and_found_again() {
    let is_away = Arc::new(AtomicBool::new(false));
    let streams = Arc::new(AtomicUsize::new(0));
    let (away, opened) = (Arc::clone(&is_away), Arc::clone(&streams));
    let hub = FakeHub::start(move |path, _, stream| {
        if path.starts_with("/api/v1/stream") && !away.load(Ordering::Relaxed) {
            opened.fetch_add(1, Ordering::Relaxed);
            let _ = begin_stream(stream);
            while !away.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
            }
        } else if !path.starts_with("/api/v1/stream") {
            send_json(stream, &list("Attention", &[], 0));
        }
    })
    .unwrap();
    let mut terminal = Terminal::start(command(&["tui", "--hub", &hub.url]), 80, 24).unwrap();
    terminal.wait_for("live");
    is_away.store(true, Ordering::Relaxed);
    terminal.wait_for("away");
    terminal.text.clear();
    is_away.store(false, Ordering::Relaxed);
    terminal.wait_for("live");
    assert!(streams.load(Ordering::Relaxed) >= 2);
    terminal.type_in("q");
    assert_eq!(terminal.end().1, Some(0));
}

#[test]
fn clusters_are_shown_by_a_hub_in_the_process() {
    let demo = Demo::start(&["--hold", "--skip", "2m"]);
    let kubeconfig = demo.kubeconfig().to_str().unwrap();
    let arguments = ["tui", "--all-contexts", "--kubeconfig", kubeconfig];
    let mut terminal = Terminal::start(command(&arguments), 120, 40).unwrap();
    terminal.wait_for("Problems");
    let began = Instant::now();
    terminal.type_in(":apps shop\r");
    terminal.wait_for("MESSAGE");
    terminal.type_in("\r");
    terminal.wait_for("Why");
    terminal.type_in("o");
    terminal.wait_for("Deployment");
    assert!(began.elapsed() < Duration::from_secs(60));
    terminal.type_in("q");
    let (text, code) = terminal.end();
    assert!(text.ends_with(LEAVE), "{text:?}");
    assert_eq!(code, Some(0));
}
