//! kapp's `waitRules`: conditions that mean success or failure, for the objects that matchers select.

use jiff::Timestamp;
use serde_json::Value as Tree;
use taffrail_object::Object;
use taffrail_object::json::Value;
use taffrail_status::{ObjectContext, Status, Verdict};

use crate::origin::Origin;
use crate::script::{Script, ScriptKind};
use crate::yaml_rules;

/// The maximum number of matchers around a matcher; a wait rule with a matcher inside of more is refused.
const MAX_MATCHER_DEPTH: usize = 8;

/// The API groups of Kubernetes whose kinds are not custom resources; its other groups end with `.k8s.io`.
const BUILT_IN: [&str; 6] = ["", "apps", "autoscaling", "batch", "extensions", "policy"];

/// The `waitRules` of a kapp configuration; the first that selects an object judges it.
#[derive(Debug)]
pub struct WaitRules {
    origin: Origin,
    rules: Vec<WaitRule>,
}

/// One entry of `waitRules`: the objects that it is for, and the conditions that it reads.
#[derive(Debug)]
struct WaitRule {
    /// The matchers; the rule applies to an object that any of them selects.
    chosen_by: Vec<Matcher>,
    observes_generation: bool,
    conditions: Vec<ConditionMatcher>,
}

/// A condition, by type and status, and what it means for the object.
#[derive(Debug)]
struct ConditionMatcher {
    name: String,
    status: String,
    meaning: Meaning,
    observes_generation: bool,
}

/// The meaning of a condition for the object that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Failure,
    Success,
    /// The object is not done, but objects that wait for it may go on.
    Unblocks,
}

/// A resource matcher of kapp, which selects objects.
#[derive(Debug)]
enum Matcher {
    Every,
    Any(Vec<Matcher>),
    All(Vec<Matcher>),
    Not(Box<Matcher>),
    ApiVersionKind(String, String),
    ApiGroupKind(String, String),
    KindNamespaceName(String, String, String),
    Annotations(Vec<String>),
    Namespaces(Vec<String>),
    CustomResource,
}

/// An error in the `waitRules` of a kapp configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("waitRules[{at}]: {problem}")]
pub struct WaitRuleError {
    /// The entry's position in the list, from 0.
    pub at: usize,
    /// The error.
    pub problem: WaitRuleProblem,
}

/// The kinds of errors in an entry of `waitRules`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitRuleProblem {
    /// An unknown key; it is refused because its effect would be missing.
    #[error("the wait rule has '{0}', which is not a known key or matcher")]
    UnknownKey(String),
    /// A rule that a function in ytt decides.
    #[error("a ytt function decides the wait rule, and Taffrail does not run ytt")]
    Ytt,
    /// A value of the wrong type: the key, and the expected type.
    #[error("'{0}' of the wait rule should be {1}")]
    Shape(&'static str, &'static str),
    /// A matcher inside of more than 8 others.
    #[error("the matchers of the wait rule nest deeper than {MAX_MATCHER_DEPTH} levels")]
    TooDeep,
}

use WaitRuleProblem::{Shape, UnknownKey};

impl WaitRules {
    /// Reads the `waitRules` of a kapp configuration; returns `None` if it has no such list. A `timeout` in them has no
    /// effect.
    ///
    /// # Errors
    /// If a rule has an unknown key, a value of the wrong type or too deep matchers, or needs ytt.
    pub fn of_config(origin: Origin, config: &Tree) -> Result<Option<WaitRules>, WaitRuleError> {
        let Some(list) = config.get("waitRules").and_then(Tree::as_array) else { return Ok(None) };
        let rules = list
            .iter()
            .enumerate()
            .map(|(at, tree)| rule(tree).map_err(|problem| WaitRuleError { at, problem }));
        Ok(Some(WaitRules { origin, rules: rules.collect::<Result<_, _>>()? }))
    }
}

fn only(tree: &Tree, known: &[&str]) -> Result<(), WaitRuleProblem> {
    let unknown = tree.as_object().into_iter().flatten().find(|(key, _)| !known.contains(&key.as_str()));
    unknown.map_or(Ok(()), |(key, _)| Err(UnknownKey(key.clone())))
}

fn list<'t>(tree: &'t Tree, key: &'static str) -> Result<&'t [Tree], WaitRuleProblem> {
    match tree.get(key) {
        None | Some(Tree::Null) => Ok(&[]),
        Some(Tree::Array(list)) => Ok(list),
        Some(_) => Err(Shape(key, "a list")),
    }
}

fn text(tree: &Tree, key: &'static str) -> Result<String, WaitRuleProblem> {
    match tree.get(key) {
        None | Some(Tree::Null) => Ok(String::new()),
        Some(Tree::String(text)) => Ok(text.clone()),
        Some(_) => Err(Shape(key, "a text")),
    }
}

fn texts(tree: &Tree, key: &'static str) -> Result<Vec<String>, WaitRuleProblem> {
    let of = |tree: &Tree| tree.as_str().map(str::to_owned).ok_or(Shape(key, "a list of texts"));
    list(tree, key)?.iter().map(of).collect()
}

fn truth(tree: &Tree, key: &'static str) -> Result<bool, WaitRuleProblem> {
    match tree.get(key) {
        None | Some(Tree::Null) => Ok(false),
        Some(Tree::Bool(truth)) => Ok(*truth),
        Some(_) => Err(Shape(key, "true or false")),
    }
}

fn rule(tree: &Tree) -> Result<WaitRule, WaitRuleProblem> {
    if tree.get("ytt").is_some_and(|ytt| !ytt.is_null()) {
        return Err(WaitRuleProblem::Ytt);
    }
    only(tree, &["resourceMatchers", "supportsObservedGeneration", "conditionMatchers", "ytt"])?;
    let mut conditions = Vec::new();
    for tree in list(tree, "conditionMatchers")? {
        const KEYS: [&str; 7] = [
            "type",
            "status",
            "success",
            "failure",
            "unblockChanges",
            "supportsObservedGeneration",
            "timeout",
        ];
        only(tree, &KEYS)?;
        let meaning = match (truth(tree, "failure")?, truth(tree, "success")?) {
            (true, _) => Meaning::Failure,
            (false, true) => Meaning::Success,
            (false, false) => Meaning::Unblocks,
        };
        conditions.push(ConditionMatcher {
            name: text(tree, "type")?,
            status: text(tree, "status")?,
            meaning,
            observes_generation: truth(tree, "supportsObservedGeneration")?,
        });
    }
    Ok(WaitRule {
        chosen_by: matchers(list(tree, "resourceMatchers")?, 0)?,
        observes_generation: truth(tree, "supportsObservedGeneration")?,
        conditions,
    })
}

fn matchers(trees: &[Tree], depth: usize) -> Result<Vec<Matcher>, WaitRuleProblem> {
    trees.iter().map(|tree| matcher(tree, depth)).collect()
}

fn matcher(tree: &Tree, depth: usize) -> Result<Matcher, WaitRuleProblem> {
    if depth > MAX_MATCHER_DEPTH {
        return Err(WaitRuleProblem::TooDeep);
    }
    let mut members = tree.as_object().into_iter().flatten();
    let (Some((name, inside)), None) = (members.next(), members.next()) else {
        return Err(Shape("resourceMatchers", "made of maps with one matcher each"));
    };
    let below = |key| matchers(list(inside, key)?, depth + 1);
    Ok(match name.as_str() {
        "allMatcher" => Matcher::Every,
        "anyMatcher" => Matcher::Any(below("matchers")?),
        "andMatcher" => Matcher::All(below("matchers")?),
        "notMatcher" => {
            let inside = inside.get("matcher").ok_or(Shape("matcher", "a matcher"))?;
            Matcher::Not(Box::new(matcher(inside, depth + 1)?))
        }
        "apiVersionKindMatcher" => {
            Matcher::ApiVersionKind(text(inside, "apiVersion")?, text(inside, "kind")?)
        }
        "apiGroupKindMatcher" => Matcher::ApiGroupKind(text(inside, "apiGroup")?, text(inside, "kind")?),
        "kindNamespaceNameMatcher" => Matcher::KindNamespaceName(
            text(inside, "kind")?,
            text(inside, "namespace")?,
            text(inside, "name")?,
        ),
        "hasAnnotationMatcher" => Matcher::Annotations(texts(inside, "keys")?),
        "hasNamespaceMatcher" => Matcher::Namespaces(texts(inside, "names")?),
        "customResourceMatcher" => Matcher::CustomResource,
        other => return Err(UnknownKey(other.to_owned())),
    })
}

impl Matcher {
    fn chooses(&self, object: &Object<'_>) -> bool {
        match self {
            Matcher::Every => true,
            Matcher::Any(any) => any.iter().any(|matcher| matcher.chooses(object)),
            Matcher::All(all) => all.iter().all(|matcher| matcher.chooses(object)),
            Matcher::Not(not) => !not.chooses(object),
            Matcher::ApiVersionKind(version, kind) => {
                object.api_version() == version && object.kind() == kind
            }
            Matcher::ApiGroupKind(group, kind) => object.group() == group && object.kind() == kind,
            Matcher::KindNamespaceName(kind, namespace, name) => {
                object.kind() == kind && object.namespace() == *namespace && object.name() == *name
            }
            Matcher::Annotations(keys) => keys
                .iter()
                .all(|key| object.at(&["metadata", "annotations"]).is_some_and(|it| it.get(key).is_some())),
            Matcher::Namespaces(names) if names.is_empty() => !object.namespace().is_empty(),
            Matcher::Namespaces(names) => names.iter().any(|name| object.namespace() == *name),
            Matcher::CustomResource => {
                !BUILT_IN.contains(&object.group()) && !object.group().ends_with(".k8s.io")
            }
        }
    }

    /// Adds the group and kind of an `apiVersionKindMatcher` or `apiGroupKindMatcher` to `found`, for an `anyMatcher`
    /// those of the matchers in it, for any other matcher `*` and `*`.
    fn kinds(&self, found: &mut Vec<(String, String)>) {
        match self {
            Matcher::Any(any) => any.iter().for_each(|matcher| matcher.kinds(found)),
            Matcher::ApiVersionKind(version, kind) => {
                let group = version.split_once('/').map_or("", |(group, _)| group);
                found.push((group.to_owned(), kind.clone()));
            }
            Matcher::ApiGroupKind(group, kind) => found.push((group.clone(), kind.clone())),
            _ => found.push(("*".to_owned(), "*".to_owned())),
        }
    }
}

impl WaitRule {
    fn judge(&self, object: &Object<'_>, rule: &str) -> Verdict {
        let generation = object.at(&["metadata", "generation"]).and_then(Value::as_i64);
        let observed = object.at(&["status", "observedGeneration"]).and_then(Value::as_i64);
        if self.observes_generation
            && let Some(generation) = generation
            && observed != Some(generation)
        {
            return yaml_rules::not_observed(object.kind(), generation, observed.unwrap_or_default());
        }
        let conditions = object.at(&["status", "conditions"]);
        let rows = conditions
            .and_then(|list| list.rows(["type", "status", "reason", "message", "observedGeneration"]));
        let rows: Vec<_> = rows.into_iter().flatten().flatten().collect();
        // Conditions that mean failure come before those that mean success.
        for meaning in [Meaning::Failure, Meaning::Success, Meaning::Unblocks] {
            for (number, matcher) in
                self.conditions.iter().enumerate().filter(|(_, it)| it.meaning == meaning)
            {
                for [name, status, reason, message, observed] in &rows {
                    let is =
                        |value: &Option<Value<'_>>, word: &str| value.is_some_and(|value| value.is_str(word));
                    if !is(name, &matcher.name) || !is(status, &matcher.status) {
                        continue;
                    }
                    if matcher.observes_generation
                        && generation.is_some()
                        && observed.and_then(Value::as_i64) != generation
                    {
                        continue;
                    }
                    let text = |value: &Option<Value<'_>>| {
                        value.and_then(Value::as_str).unwrap_or_default().into_owned()
                    };
                    let (reason, message) = (text(reason), text(message));
                    let status = match meaning {
                        Meaning::Failure => Status::Failed,
                        Meaning::Success => Status::Current,
                        Meaning::Unblocks => Status::InProgress,
                    };
                    let said = if message.is_empty() { reason.clone() } else { message };
                    return yaml_rules::verdict(
                        status,
                        said,
                        Some(reason),
                        format!("{rule}.conditionMatchers[{number}]"),
                    );
                }
            }
        }
        let message = "No failing or successful conditions found".to_owned();
        yaml_rules::verdict(Status::InProgress, message, None, rule.to_owned())
    }
}

impl Script for WaitRules {
    fn origin(&self) -> Origin {
        self.origin
    }

    fn kinds(&self) -> Vec<ScriptKind> {
        let mut kinds = Vec::new();
        self.rules.iter().flat_map(|rule| &rule.chosen_by).for_each(|matcher| matcher.kinds(&mut kinds));
        kinds.into_iter().map(|(group, kind)| ScriptKind { group, kind, language: "kapp" }).collect()
    }

    fn judge(&self, object: &Object<'_>, _: &ObjectContext<'_>, _: Timestamp) -> Option<Verdict> {
        let mut rules = self.rules.iter().enumerate();
        let (at, rule) = rules.find(|(_, rule)| rule.chosen_by.iter().any(|it| it.chooses(object)))?;
        Some(rule.judge(object, &format!("{}/kapp/waitRules[{at}]", self.origin.as_str())))
    }
}
