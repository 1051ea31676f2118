//! Output on a terminal, and its absence elsewhere.

use std::fs;
use std::process::Command;

use rustix::process::Signal;
use taffrail_testkit::server::Server;
use taffrail_testkit::terminal::Terminal;

use super::bad_clusters::kubeconfig;
use super::{NOW, clean, command, golden_app, own_app, run, taffrail};

fn of_case(name: &str, arguments: &[&str]) -> Command {
    let from = golden_app(name);
    command(&[&["get", "apps", "--from", &from, "--now", NOW], arguments].concat())
}

#[test]
fn long_answers_go_through_the_pager_and_short_ones_do_not() {
    let shown = |rows, pager: &str, arguments: &[&str]| {
        let mut command = of_case("helm-secret-damaged", arguments);
        command.env("PAGER", pager);
        Terminal::start(command, 100, rows).unwrap().end()
    };
    let (short, code) = shown(24, "sed s/^/paged:/", &[]);
    assert!(short.contains("NAMESPACE") && !short.contains("paged:"), "{short}");
    // What is told besides does not stand in the middle of the pager's screen.
    let (long, same_code) = shown(3, "sed s/^/paged:/", &[]);
    let lines: Vec<&str> = long.lines().collect();
    let paged = lines.iter().take_while(|line| line.starts_with("paged:")).count();
    assert!(paged >= 3 && lines.len() > paged, "{long}");
    assert!(lines[paged..].iter().all(|line| !line.starts_with("paged:")), "{long}");
    assert!(lines[paged].contains("error"), "{long}");
    assert_eq!(code, same_code);
    assert!(long.contains("\x1b["), "colours pass the pager: {long:?}");

    let (none, _) = shown(3, "sed s/^/paged:/", &["--no-pager"]);
    assert!(!none.contains("paged:"), "{none}");
    let (lines, _) = shown(3, "no-such-pager", &[]);
    assert!(lines.contains("fine"), "what is not there is not used: {lines}");
    // Whoever leaves the pager early has seen enough.
    let (left, code) = shown(3, "head -1", &[]);
    assert!(!left.contains("Broken pipe") && !left.contains("panicked"), "{left}");
    assert_eq!(code, same_code);
}

#[test]
fn tables_fit_the_terminal() {
    for columns in [60, 80, 120] {
        let (text, _) =
            Terminal::start(of_case("argo-failures", &["--color", "never"]), columns, 50).unwrap().end();
        for line in text.lines() {
            assert!(line.chars().count() <= columns.into(), "{columns}: {line}");
        }
    }
    let mut piped = of_case("argo-failures", &[]);
    piped.env("COLUMNS", "70");
    assert!(run(piped, b"").stdout.lines().all(|line| line.chars().count() <= 70));
}

#[test]
fn colours_default_to_terminals() {
    let coloured = |text: &str| text.contains("\x1b[");
    let piped = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = of_case("argo-failures", arguments);
        command.envs(variables.iter().copied());
        coloured(&run(command, b"").stdout)
    };
    assert!(!piped(&[], &[]));
    assert!(piped(&["--color", "always"], &[]));
    assert!(piped(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(piped(&[], &[("TAFFRAIL_COLOR", "always")]));
    assert!(piped(&["--color", "always"], &[("NO_COLOR", "1")]));
    assert!(!piped(&["-o", "json", "--color", "always"], &[]), "programs get no colours");

    let shown = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = of_case("argo-failures", arguments);
        command.envs(variables.iter().copied());
        coloured(&Terminal::start(command, 100, 50).unwrap().end().0)
    };
    assert!(shown(&[], &[]));
    assert!(!shown(&[], &[("NO_COLOR", "1")]));
    assert!(!shown(&["--color", "never"], &[]));
    assert!(!shown(&[], &[("TAFFRAIL_COLOR", "never")]));
}

#[test]
fn each_sync_state_has_its_colour() {
    let from = own_app("argo-sync-states");
    let words = ["get", "apps", "--from", &from, "--now", NOW, "--color", "always", "--columns", "name,sync"];
    let shown = taffrail(&words, "").stdout;
    let painted = |name: &str| {
        let line = shown.lines().find(|line| line.starts_with(&format!("{name} ")));
        line.and_then(|line| line.split_whitespace().last()).unwrap_or_else(|| panic!("{name}: {shown}"))
    };
    assert_eq!(painted("failed-old-synced"), "\x1b[32mSynced\x1b[0m");
    assert_eq!(painted("error"), "\x1b[31mFailed\x1b[0m");
    assert_eq!(painted("manual"), "\x1b[33mOutOfSync\x1b[0m");
    assert_eq!(painted("running"), "\x1b[33mSyncing\x1b[0m");
    assert_eq!(painted("skip"), "\x1b[33mSuspended\x1b[0m");
    assert_eq!(painted("compare-err"), "Unknown");
}

/// A kubeconfig of clusters that never answer.
fn of_hanging(servers: &[Server; 2], folder: &tempfile::TempDir) -> String {
    let text = kubeconfig(&[("slow-1", &servers[0].url()), ("slow-2", &servers[1].url())]);
    let file = folder.path().join("kubeconfig");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn progress_line_appears_and_is_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let servers = [Server::hanging(), Server::hanging()];
    let file = of_hanging(&servers, &folder);
    let arguments = ["get", "apps", "--kubeconfig", &file, "--all-contexts", "--timeout", "2s"];
    let (text, code) = Terminal::start(command(&arguments), 100, 50).unwrap().end();
    let (before, after) = text.rsplit_once("\r\x1b[K").unwrap();
    assert!(before.contains("asking 2 clusters: 0 answered, waiting for slow-1, slow-2"), "{text:?}");
    assert!(after.starts_with("\x1b[1mCLUSTER") && !after.contains("asking"), "{text:?}");
    assert_eq!(code, Some(3));

    let piped = run(command(&arguments), b"");
    assert!(!piped.stderr.contains("asking") && !piped.stderr.contains('\x1b'), "{}", piped.stderr);
}

#[test]
fn an_interrupt_leaves_the_terminal_clean() {
    let folder = tempfile::tempdir().unwrap();
    let servers = [Server::hanging(), Server::hanging()];
    let file = of_hanging(&servers, &folder);
    let arguments = [
        "get",
        "apps",
        "--kubeconfig",
        &file,
        "--all-contexts",
        "--timeout",
        "60s",
        "--request-timeout",
        "0",
    ];
    let mut terminal = Terminal::start(command(&arguments), 100, 50).unwrap();
    terminal.wait_for("waiting for slow-1");
    terminal.send(Signal::INT);
    let (text, code) = terminal.end();
    assert_eq!(code, Some(130));
    assert!(text.ends_with("\r\x1b[K\x1b[0m"), "{text:?}");
}

#[test]
fn closed_stdout_ends_a_view_silently() {
    let from = golden_app("sixty-apps");
    let program = env!("CARGO_BIN_EXE_taffrail");
    for (form, code) in [("table", 0), ("json", 0), ("table --exit-status", 1)] {
        let script = format!(
            "'{program}' get resources --from '{from}' --now {NOW} -o {form} | head -1 >/dev/null; echo ${{PIPESTATUS[0]}}"
        );
        let mut command = Command::new("bash");
        clean(&mut command);
        command.args(["-c", &script]);
        let answer = run(command, b"");
        assert_eq!((answer.stdout.trim(), answer.stderr.as_str()), (&*code.to_string(), ""), "{form}");
    }
}

#[test]
fn a_low_screen_counts_the_problems_that_it_hides() {
    let served = super::served::Served::start_verbatim(&["one"], |_, cluster| {
        cluster.apply(taffrail_testkit::objects::namespace("shop")).unwrap();
        for number in 0..9 {
            let phase = if number < 5 { "Running" } else { "Failed" };
            let name = format!("app-{number}");
            cluster
                .apply(serde_json::json!({"apiVersion": "v1", "kind": "Pod",
                    "metadata": {"namespace": "shop", "name": name, "labels": {"app.kubernetes.io/instance": name}},
                    "spec": {"containers": [{"name": "app", "image": "app:1"}]},
                    "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}}))
                .unwrap();
        }
    });
    let words = ["get", "apps", "-w", "--kubeconfig", &served.kubeconfig, "--context", "one"];
    let mut terminal = Terminal::start(command(&words), 100, 8).unwrap();
    terminal.wait_for("… 3 more lines, 3 of them with problems; narrow the view");
    terminal.send(Signal::INT);
    terminal.end();
}
