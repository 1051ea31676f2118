//! Measures the code: files that use each other, public names that mean two things, lines of code, and the openings of
//! doc comments.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use taffrail_testkit::binary::workspace;

/// Crates of tests and tasks, whose shape is not measured.
const NOT_MEASURED: [&str; 1] = ["testkit"];

/// Words that no doc comment should open with: the reader learns nothing of the item before the verb.
const QUESTIONS: [&str; 16] = [
    "What", "Whether", "Who", "Whom", "Whose", "How", "Where", "When", "Why", "Which", "Of", "That", "As",
    "So", "In", "By",
];

/// The words of [`QUESTIONS`] that open a question only before another of them, as in "Of which" and "In how many".
const ONLY_BEFORE_A_QUESTION: [&str; 5] = ["Of", "As", "So", "In", "By"];

/// A name that several public types share.
pub(super) struct Double {
    pub(super) name: String,
    /// The files that define it.
    pub(super) files: Vec<String>,
}

/// The measures of one crate.
#[derive(Default)]
pub(super) struct Measures {
    /// Lines without comments, blanks and tests.
    pub(super) lines: usize,
    /// Pairs of files that use each other, neither inside the other's module.
    pub(super) circles: Vec<(String, String)>,
    /// Number of doc comments.
    pub(super) docs: usize,
    /// Number of doc comments that open with a question or a relative word.
    pub(super) questions: usize,
}

/// A source file of a crate.
struct Source {
    /// The path, relative to the workspace.
    name: String,
    /// The path of its module within the crate, without `crate`.
    module: Vec<String>,
    /// The text up to its tests.
    text: String,
}

/// Measures each crate in `crates/`; returns the measures by crate, and the names that public types share.
pub(super) fn measure() -> Result<(BTreeMap<String, Measures>, Vec<Double>)> {
    let mut all = BTreeMap::new();
    let mut types: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let folder = workspace().join("crates");
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if NOT_MEASURED.contains(&name.as_str()) || !path.join("src").is_dir() {
            continue;
        }
        let sources = sources(&path.join("src"))?;
        for source in &sources {
            for name in public_types(&source.text) {
                types.entry(name.to_owned()).or_default().insert(source.name.clone());
            }
        }
        let mut measures = Measures { circles: circles(&sources), ..Measures::default() };
        for source in &sources {
            measures.lines += lines(&source.text);
            let (docs, questions) = openings(&source.text);
            measures.docs += docs;
            measures.questions += questions;
        }
        all.insert(name, measures);
    }
    let doubles = types.into_iter().filter(|(_, files)| files.len() > 1);
    let doubles = doubles.map(|(name, files)| Double { name, files: files.into_iter().collect() });
    Ok((all, doubles.collect()))
}

/// Reads the sources below `folder`, sorted by path.
fn sources(folder: &Path) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("cannot read {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !is_generated(&path) {
                found.push(source(folder, &path)?);
            }
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Returns true for a file of generated code, whose shape is that of its source.
pub(super) fn is_generated(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "generated.rs")
}

fn source(folder: &Path, path: &Path) -> Result<Source> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let inside = path.strip_prefix(folder).unwrap_or(path).with_extension("");
    let mut module: Vec<String> = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        module.pop();
    }
    let code = text.lines().take_while(|line| *line != "mod tests {");
    let name = path.strip_prefix(workspace()).unwrap_or(path);
    Ok(Source {
        name: PathBuf::from(name).display().to_string(),
        module,
        text: code.map(|line| format!("{line}\n")).collect(),
    })
}

/// Returns the names of the types, traits and aliases that are `pub` in a text.
fn public_types(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line.strip_prefix("pub ")?;
        let rest = ["struct ", "enum ", "trait ", "type "].iter().find_map(|word| rest.strip_prefix(word))?;
        rest.split(|character: char| !character.is_alphanumeric() && character != '_').next()
    })
}

/// Counts the lines that are neither blank nor comments.
fn lines(text: &str) -> usize {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// Counts the doc comments of items, and those of them that open with a question or a relative word.
fn openings(text: &str) -> (usize, usize) {
    let (mut docs, mut questions) = (0, 0);
    let mut inside = false;
    for line in text.lines().map(str::trim_start) {
        let doc = line.strip_prefix("/// ");
        if let (Some(doc), false) = (doc, inside) {
            docs += 1;
            let mut words = doc.split_whitespace();
            let first = words.next().unwrap_or_default();
            let next = words.next().unwrap_or_default();
            let asks = |word: &str| {
                let word = word.trim_end_matches([',', '.']);
                QUESTIONS.iter().any(|question| question.eq_ignore_ascii_case(word))
            };
            let is_question = QUESTIONS.contains(&first)
                && (!ONLY_BEFORE_A_QUESTION.contains(&first)
                    || asks(next) && !ONLY_BEFORE_A_QUESTION.contains(&next));
            questions += usize::from(is_question);
        }
        inside = line.starts_with("///");
    }
    (docs, questions)
}

/// Returns the pairs of files that use each other. A module and one inside it are not such a pair.
fn circles(sources: &[Source]) -> Vec<(String, String)> {
    let modules: BTreeMap<&[String], usize> =
        sources.iter().enumerate().map(|(at, source)| (source.module.as_slice(), at)).collect();
    let uses: Vec<BTreeSet<usize>> = sources
        .iter()
        .map(|source| {
            let paths = paths(&source.text);
            let found = paths.iter().filter_map(|path| {
                let path = absolute(path, &source.module)?;
                // The longest part of the path that is a file; what is re-exported counts as the file that re-exports it.
                (0..=path.len()).rev().find_map(|length| modules.get(&path[..length]).copied())
            });
            found.collect()
        })
        .collect();
    let mut pairs = Vec::new();
    for (one, used) in uses.iter().enumerate() {
        for other in used.iter().copied().filter(|other| *other > one && uses[*other].contains(&one)) {
            let (a, b) = (&sources[one], &sources[other]);
            if !a.module.starts_with(&b.module) && !b.module.starts_with(&a.module) {
                pairs.push((a.name.clone(), b.name.clone()));
            }
        }
    }
    pairs
}

/// Lists the paths in a text that begin with `crate`, `super` or `self`, each import of a group separately.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for root in ["crate::", "super::", "self::"] {
        for (at, _) in text.match_indices(root) {
            let before = text[..at].chars().next_back();
            let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
            let is_comment = text[line..].trim_start().starts_with("//");
            if is_comment || before.is_some_and(|it| it.is_alphanumeric() || matches!(it, '_' | ':')) {
                continue;
            }
            follow(&text[at..], &mut Vec::new(), &mut found);
        }
    }
    found
}

/// Reads the path, or group of paths, at the beginning of `text`; adds each to `found`, with `before` in front. Returns
/// the text behind it.
fn follow<'t>(mut text: &'t str, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'t str {
    let depth = before.len();
    loop {
        text = text.trim_start();
        if let Some(group) = text.strip_prefix('{') {
            text = group;
            loop {
                text = follow(text, before, found).trim_start();
                match text.strip_prefix(',') {
                    Some(rest) if rest.trim_start().starts_with('}') => text = rest.trim_start(),
                    Some(rest) => {
                        text = rest;
                        continue;
                    }
                    None => {}
                }
                break;
            }
            before.truncate(depth);
            return text.strip_prefix('}').unwrap_or(text);
        }
        let end = text.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(text.len());
        before.push(text[..end].to_owned());
        text = &text[end..];
        match text.strip_prefix("::") {
            Some(rest) => text = rest,
            None => {
                found.push(before.clone());
                before.truncate(depth);
                return text;
            }
        }
    }
}

/// Makes a path absolute within its crate, without `crate`, `super` and `self`; `None` if it leads out of the crate.
fn absolute(path: &[String], module: &[String]) -> Option<Vec<String>> {
    let (first, mut rest) = path.split_first()?;
    let mut full = match first.as_str() {
        "crate" => Vec::new(),
        "super" => module.split_last()?.1.to_vec(),
        _ => module.to_vec(),
    };
    while let Some((next, after)) = rest.split_first().filter(|(next, _)| *next == "super") {
        let _ = next;
        full.pop()?;
        rest = after;
    }
    full.extend(rest.iter().filter(|part| *part != "self").cloned());
    Some(full)
}

#[cfg(test)]
mod tests {
    use super::{Source, circles, lines, openings, paths};

    fn source(module: &[&str], text: &str) -> Source {
        let module: Vec<String> = module.iter().map(|part| (*part).to_owned()).collect();
        Source { name: module.join("/"), module, text: text.to_owned() }
    }

    #[test]
    fn groups_of_imports_are_taken_apart() {
        let found = paths("use crate::a::{self, b::{C, d}, E};\n// crate::no\nlet x = super::f();");
        let found: Vec<String> = found.iter().map(|path| path.join("::")).collect();
        assert_eq!(found, ["crate::a::self", "crate::a::b::C", "crate::a::b::d", "crate::a::E", "super::f"]);
    }

    #[test]
    fn files_that_use_each_other_are_found() {
        let sources = [
            source(&["a"], "use crate::b::B;"),
            source(&["b"], "fn f() { crate::a::g() }"),
            source(&["b", "inner"], "use super::B;"),
            source(&["c"], "use crate::{a, b};"),
        ];
        assert_eq!(circles(&sources), [("a".to_owned(), "b".to_owned())]);
    }

    #[test]
    fn code_and_openings_are_counted() {
        let text = "/// What it is.\nfn a() {}\n\n/// Returns it,\n/// when it can.\nfn b() {}\n/// In which it is.\n// no\n";
        assert_eq!(lines(text), 2);
        assert_eq!(openings(text), (3, 2));
    }
}
