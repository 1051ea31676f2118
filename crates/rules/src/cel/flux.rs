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

use super::{Answer, Ask, InvalidExpression, Names, Reader};
use crate::form;
use crate::layer::Origin;
use crate::script::{CHILDREN, Judged, Script, ScriptKind, add_children, computed, computed_since, cut};

/// Where Kustomizations and HelmReleases have them.
const FIELD: &str = "healthCheckExprs";

/// Expressions that say how objects of a kind, or of a whole group, are.
#[derive(Debug)]
pub struct HealthChecks {
    origin: Origin,
    checks: Checks<Arc<dyn Ask>>,
}

/// A list of them; `E` is an expression, as it was read or as it was written.
#[derive(Debug)]
pub(crate) struct Checks<E> {
    all: Vec<HealthCheck<E>>,
    /// The place of each in the list, by group and kind; those of no kind are for every kind of the group.
    places: HashMap<String, HashMap<Option<String>, usize>>,
}

#[derive(Debug)]
struct HealthCheck<E> {
    group: String,
    /// `None`: every kind of the group.
    kind: Option<String>,
    in_progress: Option<E>,
    failed: Option<E>,
    current: E,
}

/// Turns what is kept of an expression into one that can be asked, or says why it cannot.
type ReadKept<'r, E> = &'r dyn Fn(&E) -> Result<Arc<dyn Ask>, String>;

/// What is wrong with `healthCheckExprs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheckError {
    /// Which of them, from 0 as Flux counts.
    pub at: usize,
    /// What.
    pub problem: HealthCheckProblem,
}

/// What is wrong with one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HealthCheckProblem {
    /// It is not shaped as one.
    #[error("'{0}' should be a text")]
    Shape(&'static str),
    /// Something must be there and is not.
    #[error("'{0}' is missing")]
    Missing(&'static str),
    /// Two for one kind.
    #[error("there is another for {0} before it")]
    Duplicate(String),
    /// An expression that cannot be read.
    #[error("the expression '{field}' cannot be read")]
    Expression {
        /// Which one.
        field: &'static str,
        /// Why.
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
    /// Those of a Kustomization or HelmRelease; `None` where it has none.
    ///
    /// # Errors
    /// When one of them is not as it should be; Flux refuses them all then, and so does this.
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

    /// Reads a list of them.
    ///
    /// # Errors
    /// When one of them is not as it should be.
    pub fn read(origin: Origin, list: &[Tree], reader: Reader<'_>) -> Result<HealthChecks, HealthCheckError> {
        let checks = Checks::read(list, &|text| reader(text, Names::Fields).map(Arc::from))?;
        Ok(HealthChecks { origin, checks })
    }
}

/// Those of a Kustomization or HelmRelease, if it has any.
fn listed(object: &Tree) -> Option<&Vec<Tree>> {
    let list = object.get("spec")?.get(FIELD)?.as_array()?;
    Some(list).filter(|list| !list.is_empty())
}

impl Checks<String> {
    /// Takes those of a Kustomization or HelmRelease as they are written; `None` where it has none.
    ///
    /// # Errors
    /// When one of them is not shaped as it should be.
    pub(crate) fn written(object: &Tree) -> Result<Option<Checks<String>>, HealthCheckError> {
        listed(object).map(|list| Checks::read(list, &|text| Ok(text.to_owned()))).transpose()
    }

    /// The texts of all expressions, in their order.
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

    /// What they say of an object.
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
            let verdict = Some(form::not_observed(object.kind(), generation, observed));
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
        // To make what they are asked of costs too.
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

/// The verdict of the expressions of a kind; what they have cost on other threads is added to `took`.
fn ask(
    expressions: &[(&str, Status, Arc<dyn Ask>)],
    object: &Object<'_>,
    context: &ObjectContext<'_>,
    rule: &dyn Fn(&str) -> String,
    took: &mut Duration,
) -> Verdict {
    let Ok(mut tree) = object.root().to_tree() else {
        return Verdict::new(Status::Unknown, "the object nests too deeply", rule("current"));
    };
    if expressions.iter().any(|(_, _, expression)| expression.written().contains(CHILDREN)) {
        add_children(&mut tree, context);
    }
    let fields = tree.as_object();
    let variables: Vec<(&str, &Tree)> =
        fields.into_iter().flatten().map(|(name, field)| (name.as_str(), field)).collect();
    for (which, status, expression) in expressions {
        let (answer, cost) = expression.answer_at_cost(&variables);
        *took = took.saturating_add(cost);
        let why = match answer {
            Answer::False => continue,
            Answer::True => {
                let is_current = *status == Status::Current;
                let why = format!("'{}' holds", expression.written());
                let message = if is_current { String::new() } else { why };
                return form::verdict(*status, message, None, rule(which));
            }
            Answer::Missing(why) | Answer::Fault(why) => cut(why),
        };
        let message = format!("'{}' has no answer: {why}", expression.written());
        return Verdict::new(Status::Unknown, message, rule(which));
    }
    let current = expressions.last().map(|(_, _, expression)| expression.written()).unwrap_or_default();
    form::verdict(Status::InProgress, format!("'{current}' does not hold yet"), None, rule("none"))
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
        let expressions = |check: &HealthCheck<Arc<dyn Ask>>| {
            let others = check.in_progress.iter().chain(&check.failed);
            others.chain([&check.current]).any(|expression| expression.written().contains(CHILDREN))
        };
        self.checks.find(group, kind).is_some_and(expressions)
    }

    fn judge_at_cost(&self, object: &Object<'_>, context: &ObjectContext<'_>, _: Timestamp) -> Judged {
        self.checks.judge(self.origin, object, context, &|expression| Ok(Arc::clone(expression)))
    }
}

/// The `readyExpr` of a dependency: whether what is depended on is ready for `self`.
#[derive(Debug)]
pub struct ReadyExpr(Arc<dyn Ask>);

impl ReadyExpr {
    /// # Errors
    /// When it is no expression, or speaks of something else than `self` and `dep`.
    pub fn read(text: &str, reader: Reader<'_>) -> Result<ReadyExpr, InvalidExpression> {
        reader(text, Names::SelfAndDependency).map(|expression| ReadyExpr(Arc::from(expression)))
    }

    pub(crate) fn of(expression: Arc<dyn Ask>) -> ReadyExpr {
        ReadyExpr(expression)
    }

    /// Whether `dependency` is ready for `object`.
    pub fn ask(&self, object: &Tree, dependency: &Tree) -> Answer {
        self.ask_at_cost(object, dependency).0
    }

    /// As [`ReadyExpr::ask`], with the time that it has computed on other threads than that of the caller.
    pub(crate) fn ask_at_cost(&self, object: &Tree, dependency: &Tree) -> (Answer, Duration) {
        self.0.answer_at_cost(&[("self", object), ("dep", dependency)])
    }
}
