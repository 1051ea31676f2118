//! The examples in README.md and `docs/`, run: blocks marked `console` show what really happens.
//!
//! In a block, `$ ` begins a command, which bash runs in the top folder of the repository, and the lines below it are
//! what it prints on stdout and stderr. `WRITE_DOCS=1` (`cargo xtask docs`) writes them anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{clean, skip};

const FENCE: &str = "```";

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The text with what its commands print in place of what it says they print; and how many there were.
fn played(text: &str) -> (String, usize) {
    let mut out = String::new();
    let mut commands = 0;
    let mut inside = false;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !inside || line == FENCE {
            inside = line == "```console";
            out.push_str(line);
            out.push('\n');
            continue;
        }
        // What is neither a command nor below one is what was printed when the text was written.
        let Some(first) = line.strip_prefix("$ ") else { continue };
        let mut script = first.to_owned();
        out.push_str(line);
        out.push('\n');
        while script.ends_with('\\') {
            let more = lines.next().unwrap();
            script.push_str(&format!("\n{more}"));
            out.push_str(more);
            out.push('\n');
        }
        out.push_str(&output(&script));
        commands += 1;
    }
    (out, commands)
}

fn output(script: &str) -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_taffrail")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(std::iter::once(folder.into()).chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new("bash");
    clean(&mut command);
    let output = command
        .args(["-c", &format!("exec 2>&1; {script}")])
        .env("PATH", path)
        .env("COLUMNS", "128")
        .current_dir(top())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[test]
fn examples_print_what_the_documents_say() {
    for tool in ["bash", "jq"] {
        if Command::new(tool).arg("--version").stdout(Stdio::null()).status().is_err() {
            return skip(&format!("the examples need `{tool}`, which is not installed"));
        }
    }
    let mut files = vec![top().join("README.md")];
    files.extend(fs::read_dir(top().join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    let mut commands = 0;
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|it| it == "md")) {
        let text = fs::read_to_string(file).unwrap();
        let (now, found) = played(&text);
        commands += found;
        if now == text {
            continue;
        }
        if std::env::var_os("WRITE_DOCS").is_some() {
            fs::write(file, now).unwrap();
            continue;
        }
        let differing = text.lines().zip(now.lines()).find(|(said, found)| said != found);
        wrong.push(format!("{}: {differing:#?}", file.display()));
    }
    assert!(commands > 5, "the examples are there: {commands}");
    assert!(wrong.is_empty(), "`cargo xtask docs` writes them anew:\n{}", wrong.join("\n"));
}
