//! `healthCheckExprs` of Flux' Kustomizations and HelmReleases, and the `readyExpr` of their dependencies.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value as Tree;
use taffrail_object::Object;
use taffrail_object::json::Value;
use taffrail_status::{ObjectContext, Status, Verdict};

use super::{InvalidExpression, Names, Predicate, PredicateAnswer, Reader};
use crate::origin::Origin;
use crate::script::{CHILDREN, Judged, Script, ScriptKind, add_children, computed, computed_since, cut};
use crate::yaml_rules;

/// The field of `spec` of Kustomizations and HelmReleases that holds the expressions.
const FIELD: &str = "healthCheckExprs";

/// The health expressions of one Kustomization or HelmRelease, each for a kind or a whole group.
#[derive(Debug)]
pub struct HealthChecks {
    origin: Origin,
    checks: Checks<Arc<dyn Predicate>>,
}

/// Health expressions by group and kind; `E` is an expression, parsed or as text.
#[derive(Debug)]
pub(crate) struct Checks<E> {
    all: Vec<HealthCheck<E>>,
    /// Positions in `all`, by group and kind; the kind `None` is for every kind of the group.
    places: HashMap<String, HashMap<Option<String>, usize>>,
}

/// The expressions of one entry of `healthCheckExprs`, which judge the objects of a kind.
#[derive(Debug)]
struct HealthCheck<E> {
    group: String,
    /// The kind; `None` means every kind of the group.
    kind: Option<String>,
    in_progress: Option<E>,
    failed: Option<E>,
    current: E,
}

/// A function that returns a kept expression, after parsing it if it is kept as text, or the reason, for people, why it
/// is not available.
type ReadKept<'r, E> = &'r dyn Fn(&E) -> Result<Arc<dyn Predicate>, String>;

/// An error in `healthCheckExprs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheckError {
    /// The entry's position in the list, from 0 as in Flux.
    pub at: usize,
    /// The error.
    pub problem: HealthCheckProblem,
}

/// The kinds of errors in an entry of `healthCheckExprs`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HealthCheckProblem {
    /// A field of the wrong type.
    #[error("the field '{0}' of a health check should be a text")]
    Shape(&'static str),
    /// A required field that is missing.
    #[error("a health check lacks the field '{0}'")]
    Missing(&'static str),
    /// A second entry for the same group and kind; the text is `group/Kind`.
    #[error("a second health check for {0}: an earlier entry of the list has one already")]
    Duplicate(String),
    /// An expression that cannot be parsed.
    #[error("the expression in the field '{field}' of a health check cannot be parsed")]
    Expression {
        /// The field that holds the expression.
        field: &'static str,
        /// The parser's error.
        #[source]
        why: InvalidExpression,
    },
}

impl fmt::Display for HealthCheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FIELD}[{}]: {}", self.at, self.problem)
    }
}

impl std::error::Error for HealthCheckError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problem.source()
    }
}

impl HealthChecks {
    /// Reads the expressions of a Kustomization or HelmRelease; returns `None` if it has none.
    ///
    /// # Errors
    /// If any entry is invalid: Flux then refuses all of them, and so does this.
    pub fn of_object(
        origin: Origin,
        object: &Tree,
        reader: Reader<'_>,
    ) -> Result<Option<HealthChecks>, HealthCheckError> {
        match listed(object) {
            Some(list) => HealthChecks::read(origin, list, reader).map(Some),
            None => Ok(None),
        }
    }

    /// Reads a list of entries of `healthCheckExprs`.
    ///
    /// # Errors
    /// If any entry is invalid.
    pub fn read(origin: Origin, list: &[Tree], reader: Reader<'_>) -> Result<HealthChecks, HealthCheckError> {
        let checks = Checks::read(list, &|text| reader(text, Names::Fields).map(Arc::from))?;
        Ok(HealthChecks { origin, checks })
    }
}

/// Returns the `healthCheckExprs` of a Kustomization or HelmRelease; `None` if it has none or an empty list.
fn listed(object: &Tree) -> Option<&Vec<Tree>> {
    let list = object.get("spec")?.get(FIELD)?.as_array()?;
    Some(list).filter(|list| !list.is_empty())
}

impl Checks<String> {
    /// Takes the expressions of a Kustomization or HelmRelease as text, without parsing them; returns `None` if it has
    /// none.
    ///
    /// # Errors
    /// If an entry lacks a required field or has one that is not a text, or two entries are for the same kind.
    pub(crate) fn written(object: &Tree) -> Result<Option<Checks<String>>, HealthCheckError> {
        listed(object).map(|list| Checks::read(list, &|text| Ok(text.to_owned()))).transpose()
    }

    /// Lists the texts of all expressions: entry by entry, and of each those for in progress, failed and current, in
    /// this order.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.all.iter().flat_map(HealthCheck::texts)
    }
}

impl<E> Checks<E> {
    fn read(
        list: &[Tree],
        read: &dyn Fn(&str) -> Result<E, InvalidExpression>,
    ) -> Result<Checks<E>, HealthCheckError> {
        let mut checks = Checks { all: Vec::with_capacity(list.len()), places: HashMap::new() };
        for (at, tree) in list.iter().enumerate() {
            let check = check(tree, read).map_err(|problem| HealthCheckError { at, problem })?;
            let kinds = checks.places.entry(check.group.clone()).or_default();
            if kinds.insert(check.kind.clone(), at).is_some() {
                let problem = HealthCheckProblem::Duplicate(check.name());
                return Err(HealthCheckError { at, problem });
            }
            checks.all.push(check);
        }
        Ok(checks)
    }

    fn find(&self, group: &str, kind: &str) -> Option<&HealthCheck<E>> {
        let kinds = self.places.get(group)?;
        let place = kinds.get(&Some(kind.to_owned())).or_else(|| kinds.get(&None))?;
        self.all.get(*place)
    }

    pub(crate) fn kinds(&self) -> Vec<ScriptKind> {
        let kind = |check: &HealthCheck<E>| ScriptKind {
            group: check.group.clone(),
            kind: check.kind.clone().unwrap_or_else(|| "*".to_owned()),
            language: "cel",
        };
        self.all.iter().map(kind).collect()
    }

    pub(crate) fn are_about(&self, object: &Object<'_>) -> bool {
        self.find(object.group(), object.kind()).is_some()
    }

    /// Judges an object by the expressions for its kind, or else for its whole group: InProgress if its controller has
    /// not observed the newest generation, Unknown if `read` fails for one of the expressions. Returns no verdict if
    /// there are none.
    pub(crate) fn judge(
        &self,
        origin: Origin,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        read: ReadKept<'_, E>,
    ) -> Judged {
        let Some(check) = self.find(object.group(), object.kind()) else { return Judged::default() };
        let number = |section: &str, key: &str| object.root().get(section)?.get(key).and_then(Value::as_i64);
        if let Some(generation) = number("metadata", "generation")
            && let Some(observed) = number("status", "observedGeneration")
            && generation != observed
        {
            let verdict = Some(yaml_rules::not_observed(object.kind(), generation, observed));
            return Judged { verdict, ..Judged::default() };
        }
        let rule = |which: &str| format!("{}/cel/{}#{which}", origin.as_str(), check.name());
        let unknown = |message: String, which: &str| Judged {
            verdict: Some(Verdict::new(Status::Unknown, message, rule(which))),
            ..Judged::default()
        };
        let mut expressions = Vec::with_capacity(3);
        for (which, status, kept) in [
            ("inProgress", Status::InProgress, check.in_progress.as_ref()),
            ("failed", Status::Failed, check.failed.as_ref()),
            ("current", Status::Current, Some(&check.current)),
        ] {
            let Some(kept) = kept else { continue };
            match read(kept) {
                Ok(expression) => expressions.push((which, status, expression)),
                Err(why) => return unknown(why, which),
            }
        }
        // Converting the object costs CPU time too.
        let began = computed();
        let mut took = Duration::ZERO;
        let verdict = ask(&expressions, object, context, &rule, &mut took);
        Judged {
            verdict: Some(verdict),
            took: took.saturating_add(computed_since(began)),
            was_stopped: false,
        }
    }
}

fn check<E>(
    tree: &Tree,
    read: &dyn Fn(&str) -> Result<E, InvalidExpression>,
) -> Result<HealthCheck<E>, HealthCheckProblem> {
    let text = |field: &'static str| match tree.get(field) {
        None | Some(Tree::Null) => Ok(None),
        Some(Tree::String(text)) if text.is_empty() => Ok(None),
        Some(Tree::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(HealthCheckProblem::Shape(field)),
    };
    let expression = |field: &'static str| match text(field)? {
        None => Ok(None),
        Some(text) => match read(text) {
            Ok(expression) => Ok(Some(expression)),
            Err(why) => Err(HealthCheckProblem::Expression { field, why }),
        },
    };
    let api_version = text("apiVersion")?.ok_or(HealthCheckProblem::Missing("apiVersion"))?;
    let group = api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
    let kind = text("kind")?.map(str::to_owned);
    let current = expression("current")?.ok_or(HealthCheckProblem::Missing("current"))?;
    Ok(HealthCheck {
        group,
        kind,
        in_progress: expression("inProgress")?,
        failed: expression("failed")?,
        current,
    })
}

impl HealthCheck<String> {
    fn texts(&self) -> impl Iterator<Item = &str> {
        let texts = [self.in_progress.as_deref(), self.failed.as_deref(), Some(&self.current)];
        texts.into_iter().flatten()
    }
}

impl<E> HealthCheck<E> {
    fn name(&self) -> String {
        let slash = if self.group.is_empty() { "" } else { "/" };
        format!("{}{slash}{}", self.group, self.kind.as_deref().unwrap_or("*"))
    }
}

/// Evaluates the expressions of a kind in their order and returns the verdict: the status of the first that is true;
/// Unknown if one before that cannot be evaluated, or the object nests deeper than 128 levels; InProgress if none is
/// true. Adds the CPU time that they spent on other threads to `took`.
fn ask(
    expressions: &[(&str, Status, Arc<dyn Predicate>)],
    object: &Object<'_>,
    context: &ObjectContext<'_>,
    rule: &dyn Fn(&str) -> String,
    took: &mut Duration,
) -> Verdict {
    let Ok(mut tree) = object.root().to_tree() else {
        return Verdict::new(
            Status::Unknown,
            "the health checks were not evaluated: the object nests deeper than 128 levels",
            rule("current"),
        );
    };
    if expressions.iter().any(|(_, _, expression)| expression.text().contains(CHILDREN)) {
        add_children(&mut tree, context);
    }
    let fields = tree.as_object();
    let variables: Vec<(&str, &Tree)> =
        fields.into_iter().flatten().map(|(name, field)| (name.as_str(), field)).collect();
    for (which, status, expression) in expressions {
        let (answer, cost) = expression.evaluate_at_cost(&variables);
        *took = took.saturating_add(cost);
        let why = match answer {
            PredicateAnswer::False => continue,
            PredicateAnswer::True => {
                let is_current = *status == Status::Current;
                let why = format!("'{}' holds", expression.text());
                let message = if is_current { String::new() } else { why };
                return yaml_rules::verdict(*status, message, None, rule(which));
            }
            PredicateAnswer::Missing(why) | PredicateAnswer::Fault(why) => cut(why),
        };
        let message = format!("'{}' cannot be evaluated: {why}", expression.text());
        return Verdict::new(Status::Unknown, message, rule(which));
    }
    let current = expressions.last().map(|(_, _, expression)| expression.text()).unwrap_or_default();
    yaml_rules::verdict(Status::InProgress, format!("'{current}' does not hold yet"), None, rule("none"))
}

impl Script for HealthChecks {
    fn origin(&self) -> Origin {
        self.origin
    }

    fn kinds(&self) -> Vec<ScriptKind> {
        self.checks.kinds()
    }

    fn judge(&self, object: &Object<'_>, context: &ObjectContext<'_>, now: Timestamp) -> Option<Verdict> {
        self.judge_at_cost(object, context, now).verdict
    }

    fn is_about(&self, object: &Object<'_>) -> bool {
        self.checks.are_about(object)
    }

    fn reads_children(&self, group: &str, kind: &str) -> bool {
        let expressions = |check: &HealthCheck<Arc<dyn Predicate>>| {
            let others = check.in_progress.iter().chain(&check.failed);
            others.chain([&check.current]).any(|expression| expression.text().contains(CHILDREN))
        };
        self.checks.find(group, kind).is_some_and(expressions)
    }

    fn judge_at_cost(&self, object: &Object<'_>, context: &ObjectContext<'_>, _: Timestamp) -> Judged {
        self.checks.judge(self.origin, object, context, &|expression| Ok(Arc::clone(expression)))
    }
}

/// A `readyExpr`: an expression that decides if the dependency `dep` is ready for the object `self`.
#[derive(Debug)]
pub struct ReadyExpr(Arc<dyn Predicate>);

impl ReadyExpr {
    /// Parses a `readyExpr`.
    ///
    /// # Errors
    /// If it is not an expression, or uses other names than `self` and `dep`.
    pub fn read(text: &str, reader: Reader<'_>) -> Result<ReadyExpr, InvalidExpression> {
        reader(text, Names::SelfAndDependency).map(|expression| ReadyExpr(Arc::from(expression)))
    }

    pub(crate) fn of(expression: Arc<dyn Predicate>) -> ReadyExpr {
        ReadyExpr(expression)
    }

    /// Evaluates the expression with `object` as `self` and `dependency` as `dep`; returns `True` if the dependency is
    /// ready.
    pub fn ask(&self, object: &Tree, dependency: &Tree) -> PredicateAnswer {
        self.ask_at_cost(object, dependency).0
    }

    /// Evaluates as [`ReadyExpr::ask`], and returns the CPU time spent on other threads than the caller's.
    pub(crate) fn ask_at_cost(&self, object: &Tree, dependency: &Tree) -> (PredicateAnswer, Duration) {
        self.0.evaluate_at_cost(&[("self", object), ("dep", dependency)])
    }
}
