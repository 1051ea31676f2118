//! Rules that name fields whose differences do not count, in the forms of Argo CD and Flux.

use std::collections::BTreeSet;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use taffrail_merge::{FieldSet, ManagedEntry, Type};
use taffrail_object::selector::InvalidSelector;
use taffrail_object::{Glob, LabelSelector, ObjectKey};

use super::fields::{differing_fields, edit, leaves, text_at};
use super::mask::is_secret;

/// The maximum number of rules, and of fields that one rule names.
const MAX_RULES: usize = 1_000;

/// The maximum length in bytes of a pattern, pointer, expression or name in a rule.
const MAX_TEXT: usize = 4_096;

/// The maximum size in bytes of a compiled pattern.
const MAX_PATTERN: usize = 1 << 18;

/// A rule as an Argo CD `Application` has it in `spec.ignoreDifferences`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArgoIgnoreRule {
    /// A glob pattern of the API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// A glob pattern of the kind.
    pub kind: String,
    /// The name; empty for all.
    #[serde(default)]
    pub name: String,
    /// The namespace; empty for all.
    #[serde(default)]
    pub namespace: String,
    /// JSON pointers (RFC 6901) to the fields.
    #[serde(default)]
    pub json_pointers: Vec<String>,
    /// jq path expressions of the fields.
    #[serde(default)]
    pub jq_path_expressions: Vec<String>,
    /// The managers whose fields are ignored.
    #[serde(default)]
    pub managed_fields_managers: Vec<String>,
}

/// A rule as Flux has it in `spec.ignore` of a Kustomization and in `spec.driftDetection.ignore` of a HelmRelease.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FluxIgnoreRule {
    /// JSON pointers (RFC 6901) to the fields; the empty one stands for the whole object.
    pub paths: Vec<String>,
    /// The objects; all if there is none.
    #[serde(default)]
    pub target: Option<FluxIgnoreTarget>,
}

/// The objects of a [`FluxIgnoreRule`]. Names are regular expressions that match the whole text; an empty one matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FluxIgnoreTarget {
    /// The API group.
    pub group: String,
    /// The version of the API group.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The namespace.
    pub namespace: String,
    /// A selector of labels, such as `app=web`.
    pub label_selector: String,
    /// A selector of annotations, in the same form.
    pub annotation_selector: String,
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {problem}")]
pub struct InvalidIgnoreRule {
    /// The rule, such as `ignoreDifferences[2]`.
    pub rule: String,
    /// The reason.
    pub problem: IgnoreRuleProblem,
}

/// The reason why a rule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IgnoreRuleProblem {
    /// A pointer is malformed.
    #[error("'{0}' is not a JSON pointer: write /spec/replicas, with ~1 for a slash and ~0 for a tilde")]
    Pointer(String),
    /// A pattern is not a regular expression.
    #[error("'{pattern}' in '{field}' is not a regular expression")]
    Pattern {
        /// The field of the rule.
        field: &'static str,
        /// The pattern.
        pattern: String,
    },
    /// A selector is malformed.
    #[error(transparent)]
    Selector(InvalidSelector),
    /// The rule names no kind.
    #[error("'kind' is empty: name a kind, or '*' for all")]
    NoKind,
    /// The rule names no field.
    #[error("names no field: add {0}")]
    NoField(&'static str),
    /// A text is too long.
    #[error("a text is longer than {MAX_TEXT} bytes")]
    TooLong,
    /// There are too many.
    #[error("more than {MAX_RULES} rules, or fields in one rule")]
    TooMany,
}

/// Runs jq expressions, within bounds of time and memory.
pub trait JqRunner {
    /// Returns the paths that an expression names in an object, as `path(EXPRESSION)` of jq does; none if the expression
    /// fails on that object, as where a list that it iterates over is missing: Argo CD then ignores nothing.
    ///
    /// # Errors
    /// [`JqError`] if there is no answer.
    fn paths(&self, expression: &str, object: &Value) -> Result<Vec<JqPath>, JqError>;
}

/// A path of jq, from the root of an object.
pub type JqPath = Vec<JqStep>;

/// A step of a path of jq.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(untagged)]
pub enum JqStep {
    /// The field of an object.
    Field(String),
    /// The item of a list; the last one is -1.
    Item(i64),
    /// Items of a list, from `start` to before `end`, counted as [`JqStep::Item`] does.
    Items {
        /// The first item; the first of the list if it is left out.
        #[serde(default)]
        start: Option<i64>,
        /// The item behind the last one; the end of the list if it is left out.
        #[serde(default)]
        end: Option<i64>,
    },
}

/// The reason why a jq expression has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JqError {
    /// It is no expression.
    #[error("the expression cannot be compiled: {0}")]
    Compile(String),
    /// It could not be run.
    #[error("the expression failed: {0}")]
    Failed(String),
    /// It did not end in time.
    #[error("the expression took too long")]
    TimedOut,
    /// It needed too much memory.
    #[error("the expression needed too much memory")]
    OutOfMemory,
}

impl JqError {
    /// Returns the reason as text, without what may quote a value if `hides_values` is true.
    fn text(&self, hides_values: bool) -> String {
        match self {
            JqError::Compile(_) if hides_values => "the expression cannot be compiled".to_owned(),
            JqError::Failed(_) if hides_values => "the expression failed".to_owned(),
            error => error.to_string(),
        }
    }
}

/// Rules that name fields whose differences do not count.
#[derive(Debug, Clone, Default)]
pub struct IgnoreRules {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    /// Its name in messages.
    name: String,
    target: Target,
    selections: Vec<Selection>,
}

#[derive(Debug, Clone)]
enum Target {
    Argo { group: Glob, kind: Glob, name: String, namespace: String },
    Flux(Box<FluxTarget>),
    All,
}

#[derive(Debug, Clone)]
struct FluxTarget {
    /// The patterns of group, version, kind, name and namespace.
    patterns: [Option<Regex>; 5],
    labels: LabelSelector,
    annotations: LabelSelector,
}

#[derive(Debug, Clone)]
enum Selection {
    /// The names on the way to the field.
    Pointer(Vec<String>),
    Jq(String),
    Manager(String),
}

/// A rule that could not be asked about an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedRule {
    /// The rule, such as `ignoreDifferences[2]`.
    pub rule: String,
    /// The jq expression.
    pub expression: String,
    /// The reason.
    pub message: String,
}

/// The fields that a rule took from an object.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) rule: String,
    pub(super) fields: FieldSet,
}

impl IgnoreRules {
    /// Makes the rules of both forms, each known by its place: `ignoreDifferences[0]`, `ignore[0]`.
    ///
    /// # Errors
    /// All rules that cannot be used.
    pub fn new(
        argo: &[ArgoIgnoreRule],
        flux: &[FluxIgnoreRule],
    ) -> Result<IgnoreRules, Vec<InvalidIgnoreRule>> {
        let argo = argo.iter().map(read_argo).enumerate();
        let argo = argo.map(|(at, rule)| (format!("ignoreDifferences[{at}]"), rule));
        let flux = flux.iter().map(read_flux).enumerate().map(|(at, rule)| (format!("ignore[{at}]"), rule));
        let (mut rules, mut invalid) = (Vec::new(), Vec::new());
        for (name, rule) in argo.chain(flux).take(MAX_RULES + 1) {
            match rule {
                _ if rules.len() == MAX_RULES => {
                    invalid.push(InvalidIgnoreRule { rule: name, problem: IgnoreRuleProblem::TooMany });
                }
                Ok((target, selections)) => rules.push(Rule { name, target, selections }),
                Err(problem) => invalid.push(InvalidIgnoreRule { rule: name, problem }),
            }
        }
        if invalid.is_empty() { Ok(IgnoreRules { rules }) } else { Err(invalid) }
    }

    /// Returns true if there is a rule for an object.
    pub(super) fn concern(&self, key: &ObjectKey, wanted: &Value) -> bool {
        self.rules.iter().any(|rule| rule.target.matches(key, wanted))
    }

    /// Takes the fields of all rules for an object from both sides of it.
    ///
    /// # Errors
    /// All jq expressions without a result.
    pub(super) fn apply(
        &self,
        key: &ObjectKey,
        wanted: &Value,
        of: Type<'_>,
        [one, other]: [&mut Value; 2],
        entries: &[ManagedEntry],
        jq: Option<&dyn JqRunner>,
    ) -> Result<Vec<Taken>, Vec<FailedRule>> {
        let (mut all, mut failed) = (Vec::new(), Vec::new());
        let hides_values = [wanted, one, other].into_iter().any(is_secret);
        for rule in self.rules.iter().filter(|rule| rule.target.matches(key, wanted)) {
            let mut fields = FieldSet::default();
            for side in [&mut *one, &mut *other] {
                let before = side.clone();
                for selection in &rule.selections {
                    if let Err((expression, message)) = selection.take(side, entries, jq, hides_values) {
                        let failure = FailedRule { rule: rule.name.clone(), expression, message };
                        if !failed.contains(&failure) {
                            failed.push(failure);
                        }
                    }
                }
                fields = fields.union(&differing_fields(of, &before, side));
            }
            if !fields.is_empty() {
                all.push(Taken { rule: rule.name.clone(), fields });
            }
        }
        if failed.is_empty() { Ok(all) } else { Err(failed) }
    }
}

impl Target {
    fn matches(&self, key: &ObjectKey, object: &Value) -> bool {
        match self {
            Target::All => true,
            Target::Argo { group, kind, name, namespace } => {
                group.matches(&key.group)
                    && kind.matches(&key.kind)
                    && (name.is_empty() || *name == key.name)
                    && (namespace.is_empty() || *namespace == key.namespace)
            }
            Target::Flux(target) => {
                let version = text_at(object, "/apiVersion");
                let version = version.split_once('/').map_or(version, |(_, version)| version);
                let texts = [&*key.group, version, &*key.kind, &*key.name, &*key.namespace];
                let mut pairs = target.patterns.iter().zip(texts);
                let selected = |selector: &LabelSelector, pointer: &str| {
                    let labels = object.pointer(pointer);
                    selector.matches(|key| labels?.get(key)?.as_str().map(Into::into))
                };
                pairs.all(|(pattern, text)| pattern.as_ref().is_none_or(|pattern| pattern.is_match(text)))
                    && selected(&target.labels, "/metadata/labels")
                    && selected(&target.annotations, "/metadata/annotations")
            }
        }
    }
}

impl Selection {
    /// Takes the fields from an object.
    fn take(
        &self,
        object: &mut Value,
        entries: &[ManagedEntry],
        jq: Option<&dyn JqRunner>,
        hides_values: bool,
    ) -> Result<(), (String, String)> {
        match self {
            Selection::Pointer(names) => remove_at(object, names),
            Selection::Manager(manager) => {
                let owned = entries.iter().filter(|entry| entry.manager == *manager);
                let owned = owned.flat_map(|entry| leaves(&entry.fields));
                edit(object, owned.map(|path| (path, None)).collect());
            }
            Selection::Jq(expression) => {
                let failed = |message: String| (expression.clone(), message);
                let jq = jq.ok_or_else(|| failed("this program does not run jq".to_owned()))?;
                // An expression that compares values of a Secret would tell them by the fields that it names.
                let paths = match hides_values {
                    true => jq.paths(expression, &without_values(object)),
                    false => jq.paths(expression, object),
                };
                let paths = paths.map_err(|error| failed(error.text(hides_values)))?;
                remove_paths(object, &paths).map_err(|TooManyFields| failed(TOO_MANY_FIELDS.to_owned()))?;
            }
        }
        Ok(())
    }
}

/// The maximum number of fields and items that the paths of one jq expression may lead to.
const MAX_PLACES: usize = 100_000;

const TOO_MANY_FIELDS: &str = "the expression names too many fields";

/// The paths of an expression lead to more than [`MAX_PLACES`].
struct TooManyFields;

/// Returns a Secret without its values.
fn without_values(secret: &Value) -> Value {
    let mut object = secret.clone();
    for part in ["data", "stringData"] {
        for (_, value) in object.get_mut(part).and_then(Value::as_object_mut).into_iter().flatten() {
            *value = Value::String(String::new());
        }
    }
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.values_mut().for_each(|value| *value = Value::String(String::new()));
    }
    object
}

/// A step from an object or list to what is in it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Field(String),
    Item(usize),
}

/// Removes what is at paths of jq, as its `delpaths` does: all paths are meant in the object as it is before. Removes nothing
/// if one of them leads into a value that has no such fields or items.
fn remove_paths(object: &mut Value, paths: &[JqPath]) -> Result<(), TooManyFields> {
    let mut places: BTreeSet<Vec<Place>> = BTreeSet::new();
    for path in paths {
        match note_places(object, path, &mut Vec::new(), &mut places) {
            Ok(()) => {}
            Err(NoPlace::Mismatch) => return Ok(()),
            Err(NoPlace::TooMany) => return Err(TooManyFields),
        }
    }
    // Later items go first, so that the others keep their places.
    for place in places.iter().rev() {
        remove_place(object, place);
    }
    Ok(())
}

/// The reason why a path of jq cannot be removed.
enum NoPlace {
    /// It leads into a value of another type.
    Mismatch,
    /// The paths lead to more than [`MAX_PLACES`].
    TooMany,
}

/// Adds the places that a path of jq below `place` leads to; none where there is nothing.
fn note_places(
    value: &Value,
    path: &[JqStep],
    place: &mut Vec<Place>,
    places: &mut BTreeSet<Vec<Place>>,
) -> Result<(), NoPlace> {
    let Some((step, rest)) = path.split_first() else {
        if places.len() >= MAX_PLACES {
            return Err(NoPlace::TooMany);
        }
        places.insert(place.clone());
        return Ok(());
    };
    let mut go_on = |step: Place, value: &Value, rest: &[JqStep]| {
        place.push(step);
        let noted = note_places(value, rest, place, places);
        place.pop();
        noted
    };
    match (step, value) {
        (_, Value::Null) => Ok(()),
        (JqStep::Field(name), Value::Object(fields)) => match fields.get(name) {
            Some(value) => go_on(Place::Field(name.clone()), value, rest),
            None => Ok(()),
        },
        (JqStep::Item(at), Value::Array(items)) => match item(items, *at) {
            Some((at, value)) => go_on(Place::Item(at), value, rest),
            None => Ok(()),
        },
        (JqStep::Items { start, end }, Value::Array(items)) => {
            let end = end.map_or(items.len(), |end| bound(end, items.len()));
            let start = start.map_or(0, |start| bound(start, items.len())).min(end);
            let chosen = items.get(start..end).unwrap_or_default();
            match rest.split_first() {
                None => {
                    let mut chosen = chosen.iter().enumerate();
                    chosen.try_for_each(|(at, value)| go_on(Place::Item(start + at), value, rest))
                }
                // An item of these items.
                Some((JqStep::Item(at), rest)) => match item(chosen, *at) {
                    Some((at, value)) => go_on(Place::Item(start + at), value, rest),
                    None => Ok(()),
                },
                Some(_) => Err(NoPlace::Mismatch),
            }
        }
        _ => Err(NoPlace::Mismatch),
    }
}

fn remove_place(object: &mut Value, place: &[Place]) {
    let Some((last, above)) = place.split_last() else { return };
    let mut value = object;
    for step in above {
        let below = match step {
            Place::Field(name) => value.get_mut(name),
            Place::Item(at) => value.get_mut(at),
        };
        let Some(below) = below else { return };
        value = below;
    }
    match (last, value) {
        (Place::Field(name), Value::Object(fields)) => drop(fields.remove(name)),
        (Place::Item(at), Value::Array(items)) if *at < items.len() => drop(items.remove(*at)),
        _ => {}
    }
}

/// Returns an item, and its place from the beginning of the list.
fn item(items: &[Value], at: i64) -> Option<(usize, &Value)> {
    let distance = usize::try_from(at.unsigned_abs()).ok()?;
    let at = if at < 0 { items.len().checked_sub(distance)? } else { distance };
    items.get(at).map(|value| (at, value))
}

/// Returns the place of a bound of some items, within the list.
fn bound(at: i64, length: usize) -> usize {
    let distance = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX).min(length);
    if at < 0 { length - distance } else { distance }
}

fn remove_at(object: &mut Value, names: &[String]) {
    let Some((last, above)) = names.split_last() else {
        *object = Value::Object(serde_json::Map::new());
        return;
    };
    let place = |name: &str| name.parse::<usize>().ok().filter(|place| place.to_string() == name);
    let mut value = object;
    for name in above {
        let below = match value {
            Value::Object(fields) => fields.get_mut(name),
            Value::Array(items) => place(name).and_then(|place| items.get_mut(place)),
            _ => None,
        };
        let Some(below) = below else { return };
        value = below;
    }
    match value {
        Value::Object(fields) => drop(fields.remove(last)),
        Value::Array(items) => {
            if let Some(place) = place(last).filter(|place| *place < items.len()) {
                items.remove(place);
            }
        }
        _ => {}
    }
}

fn pointer(text: &str) -> Result<Selection, IgnoreRuleProblem> {
    let malformed = || IgnoreRuleProblem::Pointer(text.to_owned());
    let rest = match text.strip_prefix('/') {
        Some(rest) => rest,
        None if text.is_empty() => return Ok(Selection::Pointer(Vec::new())),
        None => return Err(malformed()),
    };
    let unescaped = |name: &str| {
        let mut parts = name.split('~');
        let mut unescaped = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (escaped, rest) = match (part.strip_prefix('0'), part.strip_prefix('1')) {
                (Some(rest), _) => ('~', rest),
                (_, Some(rest)) => ('/', rest),
                _ => return Err(malformed()),
            };
            unescaped.push(escaped);
            unescaped.push_str(rest);
        }
        Ok(unescaped)
    };
    rest.split('/').map(unescaped).collect::<Result<_, _>>().map(Selection::Pointer)
}

type Read = Result<(Target, Vec<Selection>), IgnoreRuleProblem>;

fn check_sizes<'t>(texts: impl Iterator<Item = &'t String>, fields: usize) -> Result<(), IgnoreRuleProblem> {
    let mut texts = texts;
    if fields > MAX_RULES {
        return Err(IgnoreRuleProblem::TooMany);
    }
    if texts.any(|text| text.len() > MAX_TEXT) { Err(IgnoreRuleProblem::TooLong) } else { Ok(()) }
}

fn read_argo(rule: &ArgoIgnoreRule) -> Read {
    let ArgoIgnoreRule { group, kind, name, namespace, .. } = rule;
    let fields = || {
        [&rule.json_pointers, &rule.jq_path_expressions, &rule.managed_fields_managers].into_iter().flatten()
    };
    check_sizes([group, kind, name, namespace].into_iter().chain(fields()), fields().count())?;
    if kind.is_empty() {
        return Err(IgnoreRuleProblem::NoKind);
    }
    if fields().next().is_none() {
        return Err(IgnoreRuleProblem::NoField(
            "'jsonPointers', 'jqPathExpressions' or 'managedFieldsManagers'",
        ));
    }
    let mut selections = Vec::new();
    for text in &rule.json_pointers {
        match pointer(text)? {
            // In Argo CD's form, the whole object cannot be ignored.
            Selection::Pointer(names) if names.is_empty() => {
                return Err(IgnoreRuleProblem::Pointer(text.clone()));
            }
            selection => selections.push(selection),
        }
    }
    selections.extend(rule.jq_path_expressions.iter().cloned().map(Selection::Jq));
    selections.extend(rule.managed_fields_managers.iter().cloned().map(Selection::Manager));
    let target = Target::Argo {
        group: Glob::read(group, None),
        kind: Glob::read(kind, None),
        name: name.clone(),
        namespace: namespace.clone(),
    };
    Ok((target, selections))
}

fn read_flux(rule: &FluxIgnoreRule) -> Read {
    check_sizes(rule.paths.iter(), rule.paths.len())?;
    if rule.paths.is_empty() {
        return Err(IgnoreRuleProblem::NoField("'paths'"));
    }
    let selections = rule.paths.iter().map(|text| pointer(text)).collect::<Result<_, _>>()?;
    let Some(target) = &rule.target else { return Ok((Target::All, selections)) };
    let FluxIgnoreTarget { group, version, kind, name, namespace, label_selector, annotation_selector } =
        target;
    let texts = [group, version, kind, name, namespace, label_selector, annotation_selector];
    check_sizes(texts.into_iter(), 0)?;
    let pattern = |field: &'static str, text: &String| {
        let build = || RegexBuilder::new(&format!("^(?:{text})$")).size_limit(MAX_PATTERN).build();
        let invalid = |_| IgnoreRuleProblem::Pattern { field, pattern: text.clone() };
        (!text.is_empty()).then(build).transpose().map_err(invalid)
    };
    let patterns = [
        pattern("group", group)?,
        pattern("version", version)?,
        pattern("kind", kind)?,
        pattern("name", name)?,
        pattern("namespace", namespace)?,
    ];
    let selector = |text: &String| text.parse::<LabelSelector>().map_err(IgnoreRuleProblem::Selector);
    let (labels, annotations) = (selector(label_selector)?, selector(annotation_selector)?);
    Ok((Target::Flux(Box::new(FluxTarget { patterns, labels, annotations })), selections))
}
