//! Tests scripts with the cases beside them in Argo CD's layout.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value as Tree};
use taffrail_object::{Object, yaml};

use super::layout::place;
use super::{Action, Change, Customizations, LuaError, LuaProblem, Operation, volatile};
use crate::origin::Origin;
use crate::rule_tests::{FailedCase, Fault, RuleTestReport};
use crate::yaml_rules::{Problem, RuleFileError};

/// The time at which the scripts of all test cases run.
const NOW: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// Tests scripts with the cases in `health_test.yaml` and `actions/action_test.yaml` beside them. `files` are all files
/// of a folder in the layout of `resource_customizations`, objects of cases included, given as paths in it, with `/`,
/// and texts.
pub fn test_customizations(files: &[(String, String)]) -> RuleTestReport {
    let files: BTreeMap<&str, &str> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    let scripts = Customizations::of_folder(Origin::User, files.iter().map(|(path, text)| (*path, *text)));
    let mut report = RuleTestReport::default();
    for LuaError { script, line, problem } in scripts.errors() {
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let problem = Problem::Script(format!("{line}{problem}"));
        report.errors.push(RuleFileError { file: script.clone(), kind: None, rule: None, problem });
    }
    let mut tried = BTreeSet::new();
    for (&path, &text) in &files {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if !matches!(name, "health_test.yaml" | "action_test.yaml") {
            continue;
        }
        let is_health = name == "health_test.yaml";
        let kind = if is_health { folder } else { folder.strip_suffix("/actions").unwrap_or(folder) };
        let cases = yaml::read_first::<Tree>(text).map(folded);
        let mut one =
            CaseFile { scripts: &scripts, files: &files, folder, file: path, kind, report: &mut report };
        match cases {
            Ok(Tree::Object(cases)) if is_health => one.health(&cases),
            Ok(Tree::Object(cases)) => one.actions(&cases),
            Ok(Tree::Null) => {}
            Ok(_) => {
                one.error(Problem::WrongType { key: "the top level".to_owned(), expected: "a map of cases" })
            }
            Err(error) => one.error(Problem::Yaml(error)),
        }
        tried.insert((kind, is_health));
    }
    for path in files.keys() {
        let Some((kind, file)) = place(path) else { continue };
        if !tried.contains(&(kind, matches!(file, super::layout::File::Health))) {
            report.faults.push(Fault::WithoutCase { rule: (*path).to_owned() });
        }
    }
    report
}

/// Converts the keys of a file of cases to lower case, as Go ignores their case.
fn folded(tree: Tree) -> Tree {
    match tree {
        Tree::Object(map) => {
            let fold = |(key, value): (String, Tree)| {
                // The names of parameters are not keys and stay as they are.
                let value = if key.eq_ignore_ascii_case("parameters") { value } else { folded(value) };
                (key.to_ascii_lowercase(), value)
            };
            Tree::Object(map.into_iter().map(fold).collect())
        }
        Tree::Array(list) => Tree::Array(list.into_iter().map(folded).collect()),
        other => other,
    }
}

/// A YAML file of test cases for the scripts of one kind, and the report to which their results are added.
struct CaseFile<'t> {
    scripts: &'t Customizations,
    files: &'t BTreeMap<&'t str, &'t str>,
    folder: &'t str,
    file: &'t str,
    kind: &'t str,
    report: &'t mut RuleTestReport,
}

impl CaseFile<'_> {
    fn error(&mut self, problem: Problem) {
        let (file, kind) = (self.file.to_owned(), None);
        self.report.errors.push(RuleFileError { file, kind, rule: None, problem });
    }

    fn note(&mut self, name: String, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.report.passed += 1,
            Err(why) => {
                let (file, kind) = (self.file.to_owned(), self.kind.to_owned());
                self.report.failed.push(FailedCase { file, kind, name, why });
            }
        }
    }

    fn health(&mut self, cases: &Map<String, Tree>) {
        for case in list(cases, "tests") {
            let input = text(case, "inputpath");
            let outcome = self.one_health(case, input);
            self.note(input.to_owned(), outcome);
        }
    }

    fn one_health(&self, case: &Tree, input: &str) -> Result<(), String> {
        let wanted = case.get("healthstatus").unwrap_or(&Tree::Null);
        let wanted = (text(wanted, "status"), text(wanted, "message"));
        let tree = self.object(input)?;
        let object = Object::new((&tree).into()).map_err(|error| error.to_string())?;
        let health = self.scripts.health(&object, NOW).map_err(|error| error.to_string())?;
        let found = health.as_ref().map_or(("", ""), |health| (health.word.as_str(), &*health.message));
        let told = |(word, message): (&str, &str)| match (word, message) {
            ("", "") => "nothing".to_owned(),
            (word, "") => word.to_owned(),
            (word, message) => format!("{word}, \"{message}\""),
        };
        if found == wanted {
            Ok(())
        } else {
            Err(format!("the script returns {}, not {}", told(found), told(wanted)))
        }
    }

    fn actions(&mut self, cases: &Map<String, Tree>) {
        for case in list(cases, "discoverytests") {
            let input = text(case, "inputpath");
            let outcome = self.one_discovery(case, input);
            self.note(format!("discovery of {input}"), outcome);
        }
        for case in list(cases, "actiontests") {
            let name = format!("{} of {}", text(case, "action"), text(case, "inputpath"));
            let outcome = self.one_action(case);
            self.note(name, outcome);
        }
    }

    /// Runs the discovery script on the object of a case. Returns the first action that it returns and the case does
    /// not expect as the error.
    fn one_discovery(&self, case: &Tree, input: &str) -> Result<(), String> {
        let wanted = case.get("result").and_then(Tree::as_array).map(Vec::as_slice).unwrap_or_default();
        let tree = self.object(input)?;
        let object = Object::new((&tree).into()).map_err(|error| error.to_string())?;
        let found = self.scripts.discover(&object, NOW).map_err(|error| error.to_string())?;
        let other = found.iter().find(|action| !wanted.iter().any(|wanted| is_wanted(action, wanted)));
        match other {
            None => Ok(()),
            Some(action) => {
                let disabled = if action.disabled { " (disabled)" } else { "" };
                Err(format!(
                    "the discovery offers '{}'{disabled}, which is not among the expected actions",
                    action.name
                ))
            }
        }
    }

    fn one_action(&self, case: &Tree) -> Result<(), String> {
        let source = self.object(text(case, "inputpath"))?;
        let object = Object::new((&source).into()).map_err(|error| error.to_string())?;
        let parameters = case.get("parameters").and_then(Tree::as_object).into_iter().flatten();
        let parameters = parameters.map(|(name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (name.clone(), value)
        });
        let changes = self.scripts.run(text(case, "action"), &object, &parameters.collect(), NOW);
        let error = text(case, "expectederrormessage");
        let changes = match changes {
            Ok(_) if !error.is_empty() => {
                return Err(format!("the action succeeds, but should fail with \"{error}\""));
            }
            Ok(changes) => changes,
            Err(found) if !error.is_empty() && is_error(&found, error) => return Ok(()),
            Err(found) => return Err(found.to_string()),
        };
        let wanted = self.read(text(case, "expectedoutputpath"))?;
        let wanted: Vec<&Tree> = match &wanted {
            Tree::Array(list) => list.iter().filter_map(|item| item.get("unstructuredObj")).collect(),
            object => vec![object],
        };
        changes.iter().try_for_each(|change| is_as_wanted(change, &source, &wanted))
    }

    fn object(&self, path: &str) -> Result<Tree, String> {
        self.read(path)
    }

    /// Reads a YAML file among `files`, at a path relative to the file of cases; an error if there is none or it is not
    /// YAML.
    fn read(&self, path: &str) -> Result<Tree, String> {
        let place = joined(self.folder, path);
        let text = self.files.get(&*place).ok_or_else(|| format!("there is no file {place}"))?;
        yaml::read_first(text).map_err(|error| format!("{place}: {error}"))
    }
}

fn list<'t>(cases: &'t Map<String, Tree>, key: &str) -> &'t [Tree] {
    cases.get(key).and_then(Tree::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'t>(tree: &'t Tree, key: &str) -> &'t str {
    tree.get(key).and_then(Tree::as_str).unwrap_or_default()
}

/// Joins a folder and a relative path; resolves `.` and `..`.
fn joined<'p>(folder: &'p str, path: &'p str) -> Cow<'p, str> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/").into()
}

fn is_wanted(action: &Action, wanted: &Tree) -> bool {
    let parameters = wanted.get("params").and_then(Tree::as_array).map(Vec::as_slice).unwrap_or_default();
    action.name == text(wanted, "name")
        && action.disabled == wanted.get("disabled").and_then(Tree::as_bool).unwrap_or_default()
        && action.display_name == text(wanted, "displayname")
        && action.icon_class == text(wanted, "iconclass")
        && action.params.len() == parameters.len()
        && action.params.iter().zip(parameters).all(|(found, wanted)| found.name == text(wanted, "name"))
}

/// Returns true if a script failed with this message; Argo CD puts the line before it.
fn is_error(found: &LuaError, wanted: &str) -> bool {
    let LuaProblem::Raised(words) = &found.problem else { return found.problem.to_string() == wanted };
    let positioned = found.line.map(|line| format!("<string>:{line}: {words}"));
    words == wanted || positioned.is_some_and(|positioned| positioned == wanted)
}

fn is_as_wanted(change: &Change, source: &Tree, wanted: &[&Tree]) -> Result<(), String> {
    let found = &change.object;
    let identity = |object: &Tree| {
        let metadata = object.get("metadata").unwrap_or(&Tree::Null);
        let of = |tree: &Tree, key: &str| text(tree, key).to_owned();
        let names = (of(metadata, "namespace"), of(metadata, "name"));
        (of(object, "apiVersion"), of(object, "kind"), names.0, names.1)
    };
    let own = identity(found);
    let of_source = identity(source);
    // Argo CD's own actions put the time into the names of the objects they create.
    let is_dated = matches!(
        (&*own.1, &*of_source.1),
        ("Job", "CronJob") | ("Workflow", "CronWorkflow" | "WorkflowTemplate")
    );
    let is_meant = |object: &&&Tree| {
        let other = identity(object);
        let is_name = if is_dated { other.3.starts_with(&of_source.3) } else { other.3 == own.3 };
        (&other.0, &other.1, &other.2) == (&own.0, &own.1, &own.2) && is_name
    };
    let told = format!("{} {}", own.1, own.3);
    let wanted = wanted
        .iter()
        .find(is_meant)
        .ok_or_else(|| format!("the action changes {told}, which it should not"))?;
    if change.operation == Operation::Patch && own != of_source {
        return Err(format!("the action changes {told}, which is not the object it was run for"));
    }
    let (mut wanted, mut found) = ((*wanted).clone(), found.clone());
    volatile::remove(&mut wanted);
    volatile::remove(&mut found);
    if change.operation == Operation::Create && matches!(&*own.1, "Job" | "Workflow") {
        for object in [&mut wanted, &mut found] {
            volatile::at(object, &["metadata"]).map(|metadata| metadata.remove("name"));
        }
    }
    match differs(&wanted, &found, &mut Vec::new()) {
        None => Ok(()),
        Some(place) => Err(format!("{told}: {place}")),
    }
}

/// Describes the first field in which `found` differs from `wanted`, by its path; `None` if there is none. Fields that
/// only `found` has are ignored.
fn differs(wanted: &Tree, found: &Tree, path: &mut Vec<String>) -> Option<String> {
    let is_nothing = |tree: &Tree| match tree {
        Tree::Null => true,
        Tree::Object(map) => map.is_empty(),
        Tree::Array(list) => list.is_empty(),
        _ => false,
    };
    match (wanted, found) {
        (Tree::Object(wanted), Tree::Object(found)) => wanted.iter().find_map(|(key, wanted)| {
            path.push(key.clone());
            let other = differs(wanted, found.get(key).unwrap_or(&Tree::Null), path);
            path.pop();
            other
        }),
        (Tree::Array(wanted), Tree::Array(found)) if wanted.len() == found.len() => {
            wanted.iter().zip(found).enumerate().find_map(|(at, (wanted, found))| {
                path.push(at.to_string());
                let other = differs(wanted, found, path);
                path.pop();
                other
            })
        }
        (Tree::Number(wanted), Tree::Number(found)) if wanted.as_f64() == found.as_f64() => None,
        (wanted, found) if wanted == found || is_nothing(wanted) && is_nothing(found) => None,
        (wanted, found) => Some(format!("{} is {found}, not {wanted}", path.join("."))),
    }
}
