//! The cost of differences of many pairs in memory, for `cargo xtask bench diff`.
//!
//! `diff_cost write FOLDER COUNT SEED` writes pairs of wanted and live objects, a pair a line. `diff_cost FILE` reads such a
//! file, says so, and obeys lines on its standard input: `diff MODE` compares all pairs on one thread and tells the number of
//! those that differ, `modified MODE FILE` also writes for each pair if it does.
#![expect(clippy::disallowed_methods, reason = "a bench reads and writes files, its crate does not")]
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a bench ends where its input is not as the task wrote it"
)]

mod pairs;

use std::fs;
use std::io::{self, BufRead as _, Write as _};
use std::path::Path;

use serde_json::{Value, json};
use taffrail_merge::{GroupVersionKind, OpenApi, Type, TypeRef, built_in};
use taffrail_plan::diff::{DiffInput, DiffOptions, DiffOutcome, DryRun, IgnoreRules, NoDryRun, diff};

/// The field manager of the pairs: Argo CD's.
const MANAGER: &str = "argocd-controller";

/// A pair in memory.
struct Pair {
    wanted: Value,
    live: Value,
    /// The answer of an API server to a dry run.
    answer: Option<DryRun>,
    of: (&'static OpenApi, TypeRef),
}

fn kind_of(object: &Value) -> GroupVersionKind {
    let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
    let api_version = text("apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    GroupVersionKind { group: group.to_owned(), version: version.to_owned(), kind: text("kind") }
}

fn read(file: &Path) -> Vec<Pair> {
    let text = fs::read_to_string(file).expect("the file of pairs");
    let custom: &'static OpenApi = Box::leak(Box::new(pairs::custom_types()));
    text.lines()
        .map(|line| {
            let mut pair: Value = serde_json::from_str(line).expect("a pair");
            let answer = pair["answer"].take();
            let kind = kind_of(&pair["wanted"]);
            let of = [built_in(), custom].into_iter().find_map(|api| Some((api, api.type_of(&kind)?)));
            Pair {
                wanted: pair["wanted"].take(),
                live: pair["live"].take(),
                answer: (!answer.is_null())
                    .then_some(DryRun::Answered { object: answer, conflicts: Vec::new() }),
                of: of.expect("a type"),
            }
        })
        .collect()
}

fn modified(pairs: &[Pair], mode: &str) -> Vec<bool> {
    let (rules, options) = (IgnoreRules::default(), DiffOptions::default());
    let offline = DryRun::NotRun(NoDryRun::Offline);
    let outcome = |pair: &Pair| {
        let dry_run = match mode {
            "server-side" => pair.answer.as_ref().expect("an answer"),
            _ => &offline,
        };
        let compared = diff(&DiffInput {
            wanted: Some(&pair.wanted),
            live: Some(&pair.live),
            dry_run,
            of: Type::new(&pair.of.0.schema, &pair.of.1),
            manager: MANAGER,
            applied: None,
            rules: &rules,
            jq: None,
            options: &options,
        });
        match compared.outcome {
            DiffOutcome::Change => true,
            DiffOutcome::Unchanged => false,
            other => panic!("{other:?}: {:?} {:?}", compared.reasons, compared.object),
        }
    };
    pairs.iter().map(outcome).collect()
}

fn say(what: &Value) {
    let mut out = io::stdout().lock();
    writeln!(out, "{what}").and_then(|()| out.flush()).expect("standard output");
}

fn main() {
    // Cargo adds this to the arguments of its own.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["write", folder, count, seed] => {
            let number = |text: &str| text.parse::<u64>().expect("a number");
            pairs::write(Path::new(folder), number(count), number(seed));
        }
        [file] => {
            let all = read(Path::new(file));
            say(&json!({"pairs": all.len()}));
            for line in io::stdin().lock().lines() {
                let line = line.expect("a line");
                let words: Vec<&str> = line.split(' ').collect();
                let (mode, target) = match words.as_slice() {
                    ["diff", mode] => (*mode, None),
                    ["modified", mode, target] => (*mode, Some(*target)),
                    _ => panic!("unknown words {line}"),
                };
                let found = modified(&all, mode);
                if let Some(target) = target {
                    fs::write(target, serde_json::to_string(&found).expect("JSON")).expect("a file");
                }
                say(&json!({"modified": found.iter().filter(|it| **it).count()}));
            }
        }
        // `cargo test` runs benches, too.
        _ => {}
    }
}
