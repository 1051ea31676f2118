//! The command line as a person and a program meet it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[macro_use]
#[path = "../../../../tests/cases.rs"]
mod cases;

mod actions;
mod agents;
mod app;
mod bad_clusters;
mod behaviours;
mod budgets;
mod canaries;
mod completion;
mod contradictions;
mod copying;
mod demo;
mod diff;
mod diff_faults;
mod differs;
mod drill_down;
mod dump;
mod events;
mod examples;
mod explain;
mod filters;
mod following;
mod get;
mod going;
mod golden;
mod history;
mod hostile;
mod hub;
#[cfg(target_os = "linux")]
mod hub_disk;
mod hub_found;
mod hub_light;
mod hub_logs;
mod hub_metrics;
mod hub_operations;
mod impact;
mod logs;
mod manifests;
mod newcomer;
mod object;
mod one_status;
mod orphans;
mod output_docs;
mod parity;
mod printed;
mod problem;
mod rules;
mod sameness;
mod served;
mod set_history;
mod settings;
mod shown;
mod status;
mod sync;
mod terminal;
mod timeouts;
mod together;
mod traces;
mod tree;
mod trust;
mod trusted;
mod tui;
mod tui_objects;
mod verbs;
mod wait;
mod watch;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use snapbox::{Redactions, str};

/// The result of a command.
struct Answer {
    stdout: String,
    stderr: String,
    code: i32,
}

impl Answer {
    fn of(output: Output) -> Answer {
        Answer {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap(),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}\n{}\n{}", self.stdout, self.stderr))
    }
}

/// Compares what a person sees with a snapshot; `SNAPSHOTS=overwrite` in the environment writes the snapshot anew. Where what differs
/// from run to run stood, it has [UID], [TIME], [TMP] and [ROOT].
#[track_caller]
fn assert_shown(text: &str, snapshot: snapbox::data::Inline) {
    let pattern = |pattern| regex::Regex::new(pattern).unwrap();
    let mut redactions = Redactions::new();
    redactions.insert("[UID]", pattern("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")).unwrap();
    redactions.insert("[TIME]", pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")).unwrap();
    redactions.insert("[TMP]", pattern(&format!("{}/[.][^/ ]+", std::env::temp_dir().display()))).unwrap();
    redactions.insert("[ROOT]", concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    let assert = snapbox::Assert::new().action_env(snapbox::assert::DEFAULT_ACTION_ENV);
    // A backslash is no border of folders here.
    assert.normalize_paths(false).redact_with(redactions).eq(text, snapshot);
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taffrail"));
    command.args(arguments);
    clean(&mut command);
    command
}

/// Neither the clusters of whoever runs the tests nor their settings.
fn clean(command: &mut Command) {
    command.env("HOME", "/nowhere");
    // Hubs of other tests keep nothing where this one would find it.
    command.env("XDG_DATA_HOME", "/dev/null");
    for (name, _) in std::env::vars_os() {
        let is_ours = name.to_str().is_some_and(|name| name.starts_with("TAFFRAIL_"));
        if is_ours {
            command.env_remove(name);
        }
    }
    for name in [
        "KUBECONFIG",
        "XDG_CONFIG_HOME",
        "PAGER",
        "LESS",
        "COLUMNS",
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
    ] {
        command.env_remove(name);
    }
}

fn run(mut command: Command, input: &[u8]) -> Answer {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // A command that does not read its input closes it.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Answer::of(output)
}

/// Says why a test shows nothing here.
fn skip(why: &str) {
    // The test runner swallows what goes through `eprintln`.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Runs taffrail with some input.
fn taffrail(arguments: &[&str], input: &str) -> Answer {
    run(command(arguments), input.as_bytes())
}

/// Asks `command` of a golden case.
fn of_case(command: &[&str], name: &str, arguments: &[&str]) -> Answer {
    taffrail(&[command, &["--from", &golden_app(name), "--now", NOW], arguments].concat(), "")
}

/// The time at which the cases of apps are judged.
const NOW: &str = "2026-03-01T12:00:00Z";

/// The dump of a golden case of apps.
fn golden_app(name: &str) -> String {
    dump_in(&golden_apps().join(name))
}

/// The dump of a case of our own.
fn own_app(name: &str) -> String {
    dump_in(&own_apps().join(name))
}

/// The dump in the folder of a case: one cluster, or a folder of them.
fn dump_in(case: &Path) -> String {
    let one = case.join("cluster.yaml");
    let from = if one.exists() { one } else { case.join("clusters") };
    from.to_str().unwrap().to_owned()
}

fn own_apps() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/apps"))
}

/// The golden cases of apps, which are the same for the crate and for the command.
fn golden_apps() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../apps/tests/golden/apps"))
}
