//! The manifests of Kubernetes' own sources, and mutations of them, as this reader and as kubectl's reads them
//! (`bench/peers/yaml`).
//!
//! The values must be equal where both read a text; where one of them refuses it, those of the documents before. The
//! variables `TAFFRAIL_YAML_MUTATIONS` and `TAFFRAIL_YAML_SEED` choose other mutations.
#![expect(clippy::disallowed_methods, reason = "the crate is pure, this test reads files and its settings")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fastrand::Rng;
use serde_json::Value;
use taffrail_object::json::Parser;
use taffrail_testkit::peers::{self, Process};
use taffrail_testkit::{go_modules, kube};

use self::reason::Reason;
use super::documents::Documents;
use super::{ManifestErrorKind, ManifestFile};

mod mutate;
mod reason;

/// The number of mutations of a run.
const MUTATIONS: usize = 2_000;

/// The number of files of a run that are read as they are; a run of more mutations reads all.
const FILES: usize = 100;

/// The maximum size in bytes of a JSON file that is mutated: it cannot be cut in parts.
const MAX_JSON_BYTES: usize = 8_000;

/// A side of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Taffrail,
    Kubectl,
}

/// The answer of the peer.
#[derive(Debug)]
struct Told {
    documents: Vec<Value>,
    error: Option<String>,
    /// The error of the text as YAML.
    yaml: Option<String>,
    /// True if text stands behind the end of a document.
    ignores: bool,
}

fn told(peer: &mut Process, content: &[u8]) -> Told {
    let answer = peer.ask(&BASE64.encode(content)).unwrap();
    // Not by serde_json, which reads some floats with a wrong last digit.
    let mut parser = Parser::without_items();
    let mut tree = parser.parse_first(answer.as_bytes()).unwrap().0.root().to_tree_within(20_000).unwrap();
    let Value::Array(documents) = tree["documents"].take() else { panic!("no documents: {answer}") };
    let text = |of: &Value| of.as_str().map(str::to_owned);
    Told {
        documents,
        error: text(&tree["error"]),
        yaml: text(&tree["yaml"]),
        ignores: tree["ignores"] == true,
    }
}

/// Reads documents up to the first error.
fn read(documents: Documents<'_, '_>) -> (Vec<Value>, Option<ManifestErrorKind>) {
    let mut read = Vec::new();
    for document in documents {
        match document {
            Ok(document) => read.push(document.tree),
            Err((_, kind)) => return (read, Some(kind)),
        }
    }
    (read, None)
}

/// The result of the comparisons.
#[derive(Debug, Default)]
struct Tally {
    both: usize,
    neither: usize,
    by: BTreeMap<Reason, usize>,
    /// The faults, at most ten of them.
    faults: Vec<String>,
}

impl Tally {
    fn compare(&mut self, peer: &mut Process, name: &str, content: &[u8]) {
        let file = ManifestFile { path: name, content };
        let told = told(peer, content);
        let (ours, error) = read(Documents::of(&file, &mut 0));
        let mut documents = ours.iter().zip(&told.documents);
        let different = documents.find(|(ours, theirs)| !taffrail_merge::equal(ours, theirs));
        if let Some((ours, theirs)) = different {
            self.fault(content, &format!("{name}: Taffrail reads {ours}\nkubectl reads {theirs}"));
        }
        match (error, &told.error) {
            (None, None) => {
                self.both += 1;
                if ours.len() != told.documents.len() {
                    let (ours, theirs) = (ours.len(), told.documents.len());
                    self.fault(
                        content,
                        &format!("{name}: Taffrail reads {ours} documents, kubectl {theirs}"),
                    );
                }
            }
            (Some(_), Some(_)) => self.neither += 1,
            (Some(kind), None) => {
                // Of a text that begins with a brace, the error is that of JSON.
                let of_yaml = read(Documents::of_yaml(&file, &mut 0)).1;
                let kind = of_yaml.filter(|_| matches!(kind, ManifestErrorKind::Json(_))).unwrap_or(kind);
                let reason = Reason::of_ours(&kind, &told);
                self.one_side(reason, content, &kind.to_string());
            }
            (None, Some(error)) => {
                self.one_side(
                    Reason::of_theirs(&told, content),
                    content,
                    &format!("{error}; {:?}", told.yaml),
                );
            }
        }
    }

    fn one_side(&mut self, reason: Reason, content: &[u8], error: &str) {
        if reason == Reason::Unknown {
            self.fault(content, &format!("only one side reads it, and no reason is known: {error}"));
        }
        *self.by.entry(reason).or_default() += 1;
    }

    fn fault(&mut self, content: &[u8], text: &str) {
        if self.faults.len() < 10 {
            self.faults.push(format!("{text}\n{:?}", String::from_utf8_lossy(content)));
        }
    }

    fn print(&self) {
        println!("{:>8}  both sides read it, and the values are equal", self.both);
        println!("{:>8}  neither side reads it", self.neither);
        for side in [Side::Kubectl, Side::Taffrail] {
            let reasons = Reason::ALL.into_iter().filter(|reason| reason.reader() == side);
            let counts = reasons.map(|reason| (self.by.get(&reason).copied().unwrap_or_default(), reason));
            let mut counts: Vec<(usize, Reason)> = counts.filter(|(count, _)| *count > 0).collect();
            counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
            println!("{:>8}  only {side:?} reads it:", counts.iter().map(|(count, _)| count).sum::<usize>());
            for (count, reason) in counts {
                println!("{count:>8}    {reason:?}: {}", reason.sentence());
            }
        }
    }
}

/// Finds the files of manifests below a folder.
fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        if entry.file_type().unwrap().is_dir() {
            find(&path, found);
        } else if matches!(ending, Some("yaml" | "yml" | "json")) {
            found.push(path);
        }
    }
}

#[test]
fn manifests_have_the_values_that_kubectl_reads() {
    let test = "manifests_have_the_values_that_kubectl_reads";
    if peers::skips(test, peers::without_go()).unwrap() {
        return;
    }
    let variable = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().unwrap());
    let seed = variable("TAFFRAIL_YAML_SEED").unwrap_or_else(|| Rng::new().u64(..));
    let mutations = variable("TAFFRAIL_YAML_MUTATIONS").map_or(MUTATIONS, |it| usize::try_from(it).unwrap());
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let sources = go_modules::folder("k8s.io/kubernetes", &kube::kubernetes_version().unwrap()).unwrap();
    let mut files = Vec::new();
    find(&sources, &mut files);
    files.sort();
    let mut peer = Process::start("yaml").unwrap();

    let mut whole = files.clone();
    random.shuffle(&mut whole);
    whole.truncate(if mutations > MUTATIONS { whole.len() } else { FILES });
    let mut tally = Tally::default();
    for file in &whole {
        tally.compare(&mut peer, &file.to_string_lossy(), &std::fs::read(file).unwrap());
    }
    println!("{} files of {}, as they are:", whole.len(), files.len());
    tally.print();
    let of_files = tally;

    let is_json = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "json");
    let texts = files.iter().map(|file| (is_json(file), std::fs::read(file).unwrap()));
    let texts: Vec<Vec<u8>> = texts
        .filter(|(is_json, text)| !is_json || text.len() <= MAX_JSON_BYTES)
        .map(|(_, text)| text)
        .collect();
    let mut tally = Tally::default();
    for _ in 0..mutations {
        let text = random.choice(&texts).unwrap();
        let text = mutate::part(&mut random, text);
        tally.compare(&mut peer, "a mutation", &mutate::mutant(&mut random, text));
    }
    println!("{mutations} mutations:");
    tally.print();
    let faults = [of_files.faults, tally.faults].concat();
    assert!(faults.is_empty(), "seed {seed}:\n{}", faults.join("\n\n"));
    assert!(tally.both > mutations / 5 && of_files.both > whole.len() * 9 / 10);
}
