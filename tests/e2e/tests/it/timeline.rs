//! The file format of recordings: `tests/e2e/timelines/SCENARIO.timeline`.
//!
//! A text with sections. `begin` has the time and the Kubernetes version; `cluster NAME` the timeline of a cluster in
//! the format of `taffrail-sim`; `script` the runs of Taffrail and their answers, a line of JSON each.
//! `base.timeline` has the objects that every new cluster begins with, which are not specific to a scenario: roles,
//! definitions of custom resources.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The prefix of lines that begin a section.
const SECTION: &str = "\n=== ";

/// The head of a recording, its first line: the time at which it begins, and the version of Kubernetes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) begin: Timestamp,
    /// The version of Kubernetes.
    pub(crate) version: String,
}

/// The parts of a recording that depend on the scenario: replies of Kubernetes and runs of Taffrail.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scene {
    /// A reply of Kubernetes itself.
    Fact(Value),
    Look(Look),
}

/// A run of Taffrail: the time, the user, the arguments, and the answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Look {
    /// The time in microseconds since the beginning: between the last visible change and the next.
    pub(crate) at: u64,
    /// The time that was passed to Taffrail.
    pub(crate) now: Timestamp,
    pub(crate) who: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) struct Timelines {
    pub(crate) head: Head,
    /// The name of each cluster, and its timeline as text.
    pub(crate) clusters: Vec<(String, String)>,
    pub(crate) script: Vec<Scene>,
}

/// Returns the path of the recording called `name`.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("timelines").join(format!("{name}.timeline"))
}

pub(crate) fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| {
        panic!("{}: {error}: record it with `cargo xtask kube record-scenarios`", file.display())
    })
}

pub(crate) fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().expect("a folder")).expect("the folder of recordings");
    fs::write(file, text).expect("the recording is written");
}

impl Timelines {
    pub(crate) fn read(name: &str) -> Self {
        let text = read(&file(name));
        // Lines of JSON cannot begin like this.
        let mut sections = text.trim_start_matches(&SECTION[1..]).split(SECTION).map(|section| {
            let (title, body) = section.split_once('\n').unwrap_or((section, ""));
            (title.to_owned(), body)
        });
        let (_, head) = sections.next().expect("a head");
        let head = serde_json::from_str(head).expect("a head");
        let (mut clusters, mut script) = (Vec::new(), Vec::new());
        for (title, body) in sections {
            match title.strip_prefix("cluster ") {
                Some(cluster) => clusters.push((cluster.to_owned(), body.to_owned())),
                None => {
                    script = body
                        .lines()
                        .map(|line| serde_json::from_str(line).expect("a scene in a line"))
                        .collect();
                }
            }
        }
        Self { head, clusters, script }
    }

    pub(crate) fn write(&self, name: &str) {
        let mut text = format!("{}begin\n{}", &SECTION[1..], json(&self.head));
        for (cluster, timeline) in &self.clusters {
            text.push_str(&format!("{SECTION}cluster {cluster}\n{timeline}"));
        }
        let script: Vec<String> = self.script.iter().map(json).collect();
        text.push_str(&format!("{SECTION}script\n{}\n", script.join("\n")));
        write(&file(name), &text);
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it is JSON")
}

/// Removes from an answer the parts that depend on addresses of servers and on waiting times.
pub(crate) fn normal(text: &str, servers: &[(String, String)]) -> String {
    let text = servers.iter().fold(text.to_owned(), |text, (cluster, url)| {
        let host = url.trim_start_matches("https://");
        text.replace(host, &format!("{cluster}.example:6443"))
    });
    let mut parts = text.split(" within ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let after = part.trim_start_matches(|character: char| character.is_ascii_digit() || character == '.');
        let is_waited = after.len() < part.len() && after.starts_with(" s");
        text + " within " + if is_waited { "2.0" } else { "" } + if is_waited { after } else { part }
    })
}
