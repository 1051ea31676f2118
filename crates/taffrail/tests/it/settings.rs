//! Settings in files, and their precedence.

use std::fs;

use super::bad_clusters::kubeconfig;
use super::{Answer, NOW, command, golden_app, run};

/// Runs with a file of settings at its usual place, and variables.
fn with(file: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("taffrail")).unwrap();
    fs::write(folder.path().join("taffrail/config.yaml"), file).unwrap();
    let servers =
        [("prod-eu", "http://127.0.0.1:1"), ("prod-us", "http://127.0.0.1:1"), ("lab", "http://127.0.0.1:1")];
    fs::write(folder.path().join("kubeconfig"), kubeconfig(&servers)).unwrap();
    let mut command = command(arguments);
    command.env("XDG_CONFIG_HOME", folder.path()).env("KUBECONFIG", folder.path().join("kubeconfig"));
    command.envs(variables.iter().copied());
    run(command, b"")
}

/// The value of a setting and where it is from, as `config view` says.
fn view(file: &str, variables: &[(&str, &str)], key: &str, arguments: &[&str]) -> String {
    let answer = with(file, variables, &[&["config", "view", "-o", "json"], arguments].concat());
    let json = answer.json();
    let item = json["items"].as_array().unwrap().iter().find(|item| item["key"] == key).unwrap().clone();
    let origin = &item["origin"];
    let place = origin.get("line").or(origin.get("variable")).cloned().unwrap_or_default();
    format!("{} {} {}", item["values"], origin["from"], place).replace('"', "")
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let file = "# mine\ntimeout: 8s\noutput:\n  apps: name\n";
    assert_eq!(view("", &[], "timeout", &[]), "[5s] default null");
    assert_eq!(view(file, &[], "timeout", &[]), "[8s] file 2");
    assert_eq!(
        view(file, &[("TAFFRAIL_TIMEOUT", "9s")], "timeout", &[]),
        "[9s] environment TAFFRAIL_TIMEOUT"
    );
    assert_eq!(view("", &[("PAGER", "more")], "pager", &[]), "[more] environment PAGER");
    assert_eq!(view("pager: never", &[("PAGER", "more")], "pager", &[]), "[never] file 1");

    let from = golden_app("helm-well");
    let list = |variables: &[(&str, &str)], arguments: &[&str]| {
        let all = [&["get", "app", "--from", &from, "--now", NOW], arguments].concat();
        with(file, variables, &all).stdout
    };
    assert!(list(&[], &[]).starts_with("helm/data/pg\n"), "the file");
    assert!(list(&[("TAFFRAIL_OUTPUT_APPS", "json")], &[]).starts_with('{'), "the environment");
    assert!(list(&[("TAFFRAIL_OUTPUT_APPS", "json")], &["-o", "table"]).starts_with("NAMESPACE"), "the flag");
}

#[test]
fn columns_are_for_tables_only() {
    let from = golden_app("helm-well");
    let file = "columns:\n  apps: [name, sync]\n";
    let list = |arguments: &[&str]| {
        with(file, &[], &[&["get", "apps", "--from", &from, "--now", NOW], arguments].concat())
    };
    assert_eq!(list(&[]).stdout, "NAME        SYNC\npg          Synced\ncollector   Synced\n");
    assert_eq!(list(&["-o", "name"]).stdout.lines().count(), 2);
    assert_eq!(list(&["--columns", "namespace"]).stdout, "NAMESPACE\ndata\nedge\n");
    assert_eq!(list(&["-o", "name", "--columns", "name"]).code, 2, "who asks for both is told");
}

#[test]
fn contexts_have_fleets_and_patterns() {
    let file = "context: [\"@prod\"]\nfleets:\n  prod: [\"prod-*\"]\n  all: [lab, prod-us]\n";
    let clusters = |arguments: &[&str]| {
        let answer = with(file, &[], &[&["get", "clusters", "-o", "name"], arguments].concat());
        answer.stdout.lines().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(clusters(&[]), "prod-eu prod-us");
    assert_eq!(clusters(&["--context", "@all"]), "lab prod-us");
    assert_eq!(clusters(&["--context", "*-eu", "--context", "lab"]), "prod-eu lab");
    assert_eq!(clusters(&["--all-contexts"]), "prod-eu prod-us lab");
    let from = golden_app("helm-well");
    assert_eq!(clusters(&["--from", &from]), "cluster");

    let unknown = with(file, &[], &["get", "apps", "--context", "@porod"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("no fleet '@porod'") && unknown.stderr.contains("@prod, @all"),
        "{}",
        unknown.stderr
    );
    let unlike = with(file, &[], &["get", "apps", "--context", "stage-*"]);
    assert_eq!(unlike.code, 2);
    assert!(unlike.stderr.contains("'stage-*'") && unlike.stderr.contains("prod-eu"), "{}", unlike.stderr);
}

#[test]
fn every_setting_takes_effect_or_is_an_error() {
    for (file, said) in [
        ("timeout: 5s\ntimout: 6s\n", "config.yaml:2: there is no setting 'timout'"),
        ("timout: 6s\n", "did you mean timeout?"),
        ("output: wide\n", "set one of the settings in it: output.apps"),
        ("\noutput:\n  apps: wid\n", "config.yaml:3: setting 'output.apps': 'wid' is not one of"),
        ("timeout: soon\n", "config.yaml:1: setting 'timeout'"),
        ("timeout: [5s, 6s]\n", "takes one value"),
        ("columns:\n  apps: [nam]\n", "no column 'nam'"),
        ("context: [\n", "config.yaml:1"),
        ("- timeout\n", "KEY: VALUE"),
        ("context:\n", "has no value"),
    ] {
        // Whatever is asked, and however little it depends on it.
        for arguments in [&["get", "apps"][..], &["status", "-f", "-"], &["config", "view"]] {
            let answer = with(file, &[], arguments);
            assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{file}: {}", answer.stderr);
            assert!(answer.stderr.contains(said), "{file}: {}", answer.stderr);
        }
    }
    let answer = with("", &[("TAFFRAIL_OUTPUT_APPS", "wide,name")], &["get", "apps"]);
    assert!(answer.stderr.contains("$TAFFRAIL_OUTPUT_APPS"), "{}", answer.stderr);
    let missing = with("", &[("TAFFRAIL_CONFIG", "nowhere.yaml")], &["get", "apps"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("nowhere.yaml: No such file"), "{}", missing.stderr);
}

#[test]
fn config_view_yaml_round_trips() {
    let file =
        "timeout: 7s\nfleets:\n  my prod: [a, \"b-*\"]\noutput:\n  tree: json\ncontext: [\"@my prod\"]\n";
    let first = with(file, &[], &["config", "view", "-o", "yaml"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let second = with(&first.stdout, &[], &["config", "view", "-o", "yaml"]);
    assert_eq!(second.stdout, first.stdout, "{}", second.stderr);
    assert!(first.stdout.contains("\"my prod\": [a, \"b-*\"]"), "{}", first.stdout);
    // Origins are comments.
    let third = with(file, &[], &["config", "view", "-o", "yaml", "--show-origin"]).stdout;
    assert_eq!(with(&third, &[], &["config", "view", "-o", "yaml"]).stdout, first.stdout);
}
