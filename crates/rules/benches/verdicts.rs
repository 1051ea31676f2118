//! Measures the cost of verdicts by Argo CD's scripts and by the library: `cargo xtask bench rules` runs it and prints
//! the result.
//!
//! `verdicts INPUTS ROUNDS [DIR]` reads objects from a file of JSON lines, `{"input":…,"object":…}`, and judges all of
//! them ROUNDS times on one thread: by the scripts in DIR if given, else by the library. It prints one JSON document,
//! as `bench/peers/rules` does: the verdicts of the first round, their number, the seconds of judging, and the peak of
//! resident memory in KiB.

#![expect(clippy::print_stdout, reason = "it answers on standard output")]
#![allow(clippy::disallowed_methods, reason = "the crate is pure, who measures it is not")]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use taffrail_object::Object;
use taffrail_object::json::OwnedDocument;
use taffrail_rules::lua::Customizations;
use taffrail_rules::{Origin, RuleSet};
use taffrail_status::{ObjectContext, Rules};

/// The rules that are measured.
enum Side {
    Lua(Customizations),
    Library(RuleSet),
}

impl Side {
    /// Judges one object: returns its health and details in the words of these rules, or `None` if they do not decide.
    fn judge(&self, object: &Object<'_>, now: Timestamp) -> Result<Option<Answer>, Box<dyn Error>> {
        Ok(match self {
            Side::Lua(scripts) => scripts.health(object, now)?.map(|health| Answer {
                status: health.word.as_str(),
                message: health.message,
                suspended: false,
            }),
            Side::Library(rules) => {
                let verdict = rules.judge(object, &ObjectContext::default(), now)?;
                Some(Answer {
                    status: verdict.status.as_str(),
                    message: verdict.message.into_owned(),
                    suspended: verdict.suspended,
                })
            }
        })
    }
}

#[derive(Default)]
struct Answer {
    status: &'static str,
    message: String,
    suspended: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (inputs, rounds, side) = match arguments.as_slice() {
        [inputs, rounds] => (inputs, rounds, Side::Library(RuleSet::shipped())),
        [inputs, rounds, folder] => (inputs, rounds, Side::Lua(scripts(Path::new(folder))?)),
        _ => return Err("verdicts INPUTS ROUNDS [DIR]".into()),
    };
    let rounds: u32 = rounds.parse()?;

    let mut names = Vec::new();
    let mut documents = Vec::new();
    for line in fs::read_to_string(inputs)?.lines() {
        let mut line: Value = serde_json::from_str(line)?;
        names.push(line["input"].take());
        documents.push(OwnedDocument::parse(line["object"].to_string().into_bytes())?);
    }
    let mut objects = Vec::new();
    for document in &documents {
        objects.push(Object::new(document.root())?);
    }

    let now = Timestamp::now();
    let mut verdicts = Vec::new();
    let (begun, before) = (Instant::now(), cpu());
    for round in 0..rounds {
        for (object, name) in objects.iter().zip(&names) {
            let answer = side.judge(object, now);
            if round > 0 {
                continue;
            }
            verdicts.push(match answer {
                Ok(answer) => {
                    let Answer { status, message, suspended } = answer.unwrap_or_default();
                    json!({"input": name, "status": status, "message": message, "suspended": suspended})
                }
                Err(error) => json!({"input": name, "status": "", "message": "", "error": error.to_string()}),
            });
        }
    }
    let (wall, cpu) = (begun.elapsed().as_secs_f64(), cpu() - before);
    let count = objects.len() * rounds as usize;
    let peak = peak()?;
    println!("{}", json!({"verdicts": verdicts, "count": count, "wall": wall, "cpu": cpu, "peak": peak}));
    Ok(())
}

/// Reads Argo CD's scripts below a folder.
fn scripts(root: &Path) -> Result<Customizations, Box<dyn Error>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "lua") {
                let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
                files.push((name, fs::read_to_string(&path)?));
            }
        }
    }
    let scripts = files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    Ok(Customizations::of_folder(Origin::User, scripts))
}

/// Returns the CPU time of this process so far, in seconds.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the peak of this process' resident memory in KiB, as Linux reports it.
fn peak() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
