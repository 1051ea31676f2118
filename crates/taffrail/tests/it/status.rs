//! `taffrail status` on files and stdin.

use super::{assert_shown, command, run, str, taffrail};

const DEPLOYMENT: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":2},"status":{"replicas":1}}"#;
const SECRET: &str = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"key","namespace":"shop"}}"#;

fn lines(arguments: &[&str], input: &str) -> Vec<String> {
    let answer =
        taffrail(&[&["status", "-f", "-", "-o", "jsonl", "--rules", "kstatus"], arguments].concat(), input);
    answer.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn one_line_answers_one_line_in_order() {
    let input = format!("{DEPLOYMENT}\nnot JSON\n\n{SECRET}\n[]\n{{\"apiVersion\":\"v1\"}}");
    for jobs in ["1", "2", "7"] {
        let lines = lines(&["--input", "jsonl", "--jobs", jobs], &input);
        assert_eq!(
            lines,
            [
                r#"{"group":"apps","version":"v1","kind":"Deployment","namespace":"shop","name":"web","status":"InProgress","message":"Replicas: 1/2","conditions":[{"type":"Reconciling","status":"True","reason":"LessReplicas","message":"Replicas: 1/2"}],"rule":"builtin/apps/Deployment"}"#,
                r#"{"group":"","version":"","kind":"","namespace":"","name":"","status":"Unknown","message":"","conditions":[],"error":"not JSON: unexpected 'o', expected true, false or null at byte 1"}"#,
                r#"{"group":"","version":"","kind":"","namespace":"","name":"","status":"Unknown","message":"","conditions":[],"error":"not JSON: unexpected end of JSON at byte 0"}"#,
                r#"{"group":"","version":"v1","kind":"Secret","namespace":"shop","name":"key","status":"Current","message":"Resource is always ready","conditions":[],"rule":"builtin/Secret"}"#,
                r#"{"group":"","version":"","kind":"","namespace":"","name":"","status":"Unknown","message":"","conditions":[],"error":"the value is not a JSON object"}"#,
                r#"{"group":"","version":"","kind":"","namespace":"","name":"","status":"Unknown","message":"","conditions":[],"error":"the object has no kind"}"#,
            ]
        );
    }
}

#[test]
fn order_holds_over_many_chunks_and_threads() {
    let mut input = String::new();
    for number in 0..20_000 {
        input.push_str(&SECRET.replace("key", &format!("key-{number}")));
        input.push('\n');
    }
    let lines = lines(&["--input", "jsonl", "--jobs", "4"], &input);
    assert_eq!(lines.len(), 20_000);
    for (number, line) in lines.iter().enumerate() {
        assert!(line.contains(&format!("\"name\":\"key-{number}\"")), "line {number}: {line}");
    }
}

#[test]
fn every_form_of_input_is_recognised() {
    let pretty =
        serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(DEPLOYMENT).unwrap())
            .unwrap();
    let list = format!(r#"{{"apiVersion":"v1","kind":"List","items":[{DEPLOYMENT},{SECRET}]}}"#);
    let typed = r#"{"apiVersion":"apps/v1","kind":"DeploymentList","items":[{"metadata":{"name":"web"}},{"metadata":{"name":"api"}}]}"#;
    let yaml = "# two\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n---\n---\nkind: Secret\napiVersion: v1\nmetadata:\n  name: key\n...\n";
    for (input, kinds) in [
        (DEPLOYMENT.to_owned(), "Deployment"),
        (format!("{DEPLOYMENT}\n\n{SECRET}\n"), "Deployment Secret"),
        (format!("{pretty}\n{pretty}{SECRET}"), "Deployment Deployment Secret"),
        (format!("[{DEPLOYMENT},{SECRET}]"), "Deployment Secret"),
        (list.clone(), "Deployment Secret"),
        (format!("{list}\n{list}\n"), "Deployment Secret Deployment Secret"),
        (typed.to_owned(), "Deployment Deployment"),
        (yaml.to_owned(), "Deployment Secret"),
        (yaml.replace('\n', "\r\n"), "Deployment Secret"),
        (String::new(), ""),
    ] {
        let lines = lines(&[], &input);
        let found: Vec<String> = lines
            .iter()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["kind"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(found.join(" "), kinds, "{input}");
    }
}

#[test]
fn tables_say_ready_and_name_what_is_missing() {
    let answer = taffrail(&["status", "-f", "-"], &format!("{DEPLOYMENT}\n{SECRET}\n"));
    assert_shown(
        &answer.stdout,
        str![[r#"
NAMESPACE   KIND         NAME   STATUS       MESSAGE
shop        Deployment   web    InProgress   Replicas: 1/2
shop        Secret       key    Ready        Resource is always ready

"#]],
    );
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
}

#[test]
fn documents_are_complete_json_and_yaml() {
    let input = format!("{DEPLOYMENT}\n{SECRET}\n");
    let json = taffrail(&["status", "-f", "-", "-o", "json"], &input).json();
    assert_eq!(json["kind"], "StatusList");
    assert_eq!(json["items"][1]["name"], "key");
    let yaml = taffrail(&["status", "-f", "-", "-o", "yaml"], &input).stdout;
    assert!(
        yaml.starts_with("apiVersion: cli.taffrail.dev/v1alpha1\nkind: StatusList\nitems:\n- "),
        "{yaml}"
    );
    assert_eq!(taffrail(&["status", "-f", "-", "-o", "json"], "").json()["items"], serde_json::json!([]));
    let names = taffrail(&["status", "-f", "-", "-o", "name"], &input).stdout;
    assert_eq!(names, "apps/Deployment/shop/web\n/Secret/shop/key\n");
}

#[test]
fn augmented_objects_carry_the_standard_conditions() {
    let arguments = ["status", "-f", "-", "--augment", "-o", "json", "--now", "2026-03-01T12:00:00Z"];
    let json = taffrail(&arguments, DEPLOYMENT).json();
    let condition = &json["items"][0]["status"]["conditions"][0];
    assert_eq!(json["kind"], "List");
    assert_eq!(condition["type"], "Reconciling");
    assert_eq!(condition["lastTransitionTime"], "2026-03-01T12:00:00Z");
    assert_eq!(taffrail(&["status", "-f", "-", "--augment"], DEPLOYMENT).code, 2);
}

#[test]
fn the_rules_decide() {
    let retrying = r#"{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":"a"},
        "status":{"conditions":[{"type":"Reconciling","status":"True","reason":"ProgressingWithRetry"},
        {"type":"Ready","status":"False","reason":"BuildFailed","message":"no such path"}]}}"#;
    let status = |rules| {
        taffrail(&["status", "-f", "-", "--rules", rules, "-o", "json"], retrying).json()["items"][0]["status"].clone()
    };
    assert_eq!(status("kstatus"), "InProgress");
    assert_eq!(status("taffrail"), "Failed");
}

#[test]
fn kstatus_fork_without_the_rules_of_kstatus_is_wrong_usage() {
    let fork = |arguments: &[&str]| {
        taffrail(&[&["status", "-f", "-", "--kstatus-fork", "kubernetes-sigs"], arguments].concat(), SECRET)
    };
    for rules in [&[] as &[&str], &["--rules", "taffrail"]] {
        let answer = fork(rules);
        assert_eq!((answer.code, &*answer.stdout), (2, ""));
        assert_shown(
            &answer.stderr,
            str![[r#"
error: --kstatus-fork selects a variant of the rules of kstatus, and other rules apply
 hint: add --rules kstatus, or leave --kstatus-fork out

"#]],
        );
    }
    assert_eq!(fork(&["--rules", "kstatus"]).code, 0);
}

#[test]
fn exit_status_flag_sets_the_exit_code() {
    let code =
        |arguments: &[&str], input: &str| taffrail(&[&["status", "-f", "-"], arguments].concat(), input).code;
    assert_eq!(code(&[], DEPLOYMENT), 0);
    assert_eq!(code(&["--exit-status"], SECRET), 0);
    assert_eq!(code(&["--exit-status"], DEPLOYMENT), 1);
    assert_eq!(code(&[], "{}"), 3);
    assert_eq!(code(&["--exit-status"], &format!("{DEPLOYMENT}\n{{}}\n")), 3);
    assert_eq!(code(&["--no-such-flag"], DEPLOYMENT), 2);
    assert_eq!(taffrail(&["status"], "").code, 2);
}

#[test]
fn closed_stdout_ends_status_quietly() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let mut command = command(&["status", "-f", "-", "-o", "jsonl"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let line = format!("{SECRET}\n").repeat(1000);
        for _ in 0..100 {
            if std::io::Write::write_all(&mut stdin, line.as_bytes()).is_err() {
                return;
            }
        }
    });
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn colours_stay_out_of_pipes() {
    let mut command = command(&["status", "-f", "-"]);
    command.env("TERM", "xterm-256color");
    assert!(!run(command, DEPLOYMENT.as_bytes()).stdout.contains('\u{1b}'));
}
