//! Bad manifests: each is named by file and line, and everything else is still shown.

use std::fs;

use super::{command, run, taffrail};

const GOOD: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: good}\n";

/// The complaint about `text`, which stands before a good document in a file called `bad.yaml`.
fn complaint(text: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.yaml");
    fs::write(&file, [text, b"\n---\n", GOOD.as_bytes()].concat()).unwrap();
    let answer = taffrail(&["status", "-f", file.to_str().unwrap()], "");
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    assert!(
        answer.stdout.contains("good"),
        "the good document is missing:\n{}\n{}",
        answer.stdout,
        answer.stderr
    );
    answer.stderr.replace(folder.path().to_str().unwrap(), "DIR")
}

#[test]
fn half_a_document() {
    let complaint = complaint(b"apiVersion: v1\nkind: Pod\nmetadata:\n  name: [half\n");
    assert!(complaint.starts_with("error: DIR/bad.yaml:"), "{complaint}");
    assert!(complaint.contains("not YAML"), "{complaint}");
}

#[test]
fn an_object_without_kind_is_named_by_its_line() {
    let complaint = complaint(b"# first\n\napiVersion: v1\nmetadata: {name: a}");
    assert_eq!(complaint, "error: DIR/bad.yaml:3: the object has no kind\n");
}

#[test]
fn text_that_is_no_object() {
    assert_eq!(complaint(b"just words"), "error: DIR/bad.yaml:1: the value is not a JSON object\n");
}

#[test]
fn binary_data() {
    let complaint = complaint(b"kind: \xff\xfe\x00");
    assert_eq!(complaint, "error: DIR/bad.yaml:1: not text: byte 6 of the document is NUL or not UTF-8\n");
}

#[test]
fn an_alias_bomb_is_refused_and_not_expanded() {
    let mut bomb = String::from("a: &a [x,x,x,x,x,x,x,x,x,x]\n");
    for (name, of) in ('b'..='k').zip('a'..) {
        bomb.push_str(&format!("{name}: &{name} [{}]\n", vec![format!("*{of}"); 10].join(",")));
    }
    let complaint = complaint(bomb.as_bytes());
    assert!(complaint.starts_with("error: DIR/bad.yaml:"), "{complaint}");
    assert!(complaint.contains("not YAML"), "{complaint}");
}

#[test]
fn yaml_nested_without_end() {
    let complaint = complaint(format!("a: {}", "[".repeat(100_000)).as_bytes());
    assert!(complaint.contains("not YAML"), "{complaint}");
}

#[test]
fn json_that_breaks_off_is_named_by_the_line_of_the_break() {
    let input = "{\n \"kind\": \"Pod\",\n \"metadata\": {\"name\" \"a\"}\n}";
    let answer = taffrail(&["status", "-f", "-"], input);
    assert_eq!((answer.code, answer.stdout.as_str()), (3, ""));
    assert_eq!(
        answer.stderr,
        "error: stdin:3: not JSON: unexpected '\"', expected ':' after a key at byte 39\n"
    );
}

#[test]
fn misses_beyond_a_bound_are_counted() {
    let answer = taffrail(&["status", "-f", "-", "--input", "jsonl"], &"x\n".repeat(1000));
    assert_eq!(answer.stderr.lines().count(), 21);
    assert!(
        answer.stderr.ends_with("error: … and 980 more objects could not be read or judged\n"),
        "{}",
        answer.stderr
    );
}

#[test]
fn files_that_are_not_there_do_not_hide_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good.yaml");
    fs::write(&good, GOOD).unwrap();
    let missing = folder.path().join("missing.yaml");
    let answer = taffrail(&["status", "-f", missing.to_str().unwrap(), "-f", good.to_str().unwrap()], "");
    assert_eq!(answer.code, 3);
    assert!(answer.stdout.contains("good"));
    assert!(answer.stderr.contains("cannot read"), "{}", answer.stderr);
    assert!(answer.stderr.contains("missing.yaml: No such file"), "{}", answer.stderr);
}

#[test]
fn folders_are_read_in_order_and_deeper_only_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str| fs::write(folder.path().join(name), GOOD.replace("good", &name[..1])).unwrap();
    fs::create_dir(folder.path().join("d")).unwrap();
    ["b.yml", "a.yaml", "e.txt"].into_iter().for_each(write);
    fs::write(
        folder.path().join("d/c.json"),
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"c"}}"#,
    )
    .unwrap();
    let path = folder.path().to_str().unwrap();
    assert_eq!(taffrail(&["status", "-f", path, "-o", "name"], "").stdout, "/Secret//a\n/Secret//b\n");
    assert_eq!(
        taffrail(&["status", "-f", path, "-R", "-o", "name"], "").stdout,
        "/Secret//a\n/Secret//b\n/Secret//c\n"
    );
    let empty = tempfile::tempdir().unwrap();
    let answer = taffrail(&["status", "-f", empty.path().to_str().unwrap()], "");
    assert_eq!(answer.code, 3);
    assert!(answer.stderr.contains("no manifests in"), "{}", answer.stderr);
}

#[test]
fn a_file_of_fifty_megabytes_is_read_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.yaml");
    let document = format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{text: \"{}\"}}\n",
        "x".repeat(100_000)
    );
    fs::write(&file, document.repeat(500)).unwrap();
    let answer = run(command(&["status", "-o", "name", "-f", file.to_str().unwrap()]), b"");
    assert_eq!((answer.code, answer.stdout.lines().count()), (0, 500), "{}", answer.stderr);
}

#[test]
fn yaml_is_read_as_the_api_machinery_reads_it() {
    // The last of duplicate keys counts, and numbers that start with 0 are octal.
    let yaml = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 1}\nspec: {replicas: 010}\n";
    let answer = taffrail(&["status", "-f", "-", "-o", "json"], yaml).json();
    assert_eq!(answer["items"][0]["message"], "Replicas: 0/8");
}
