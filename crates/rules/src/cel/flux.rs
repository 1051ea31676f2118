//! `healthCheckExprs` of Flux' Kustomizations and HelmReleases, and the `readyExpr` of their dependencies.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value as Tree;
use taffrail_status::json::Value;
use taffrail_status::{Object, Status, Surroundings, Verdict};

use super::{Answer, Ask, InvalidExpression, Names, Reader};
use crate::form;
use crate::layer::Origin;
use crate::script::{CHILDREN, Judged, Script, ScriptKind, add_children, cut};

/// Where Kustomizations and HelmReleases have them.
const FIELD: &str = "healthCheckExprs";

/// Expressions that say how objects of a kind, or of a whole group, are.
#[derive(Debug)]
pub struct HealthChecks {
    origin: Origin,
    checks: Vec<HealthCheck>,
}

#[derive(Debug)]
struct HealthCheck {
    group: String,
    /// `None`: every kind of the group.
    kind: Option<String>,
    in_progress: Option<Box<dyn Ask>>,
    failed: Option<Box<dyn Ask>>,
    current: Box<dyn Ask>,
}

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
        let list = object.get("spec").and_then(|spec| spec.get(FIELD)).and_then(Tree::as_array);
        match list {
            Some(list) if !list.is_empty() => HealthChecks::read(origin, list, reader).map(Some),
            _ => Ok(None),
        }
    }

    /// Reads a list of them.
    ///
    /// # Errors
    /// When one of them is not as it should be.
    pub fn read(origin: Origin, list: &[Tree], reader: Reader<'_>) -> Result<HealthChecks, HealthCheckError> {
        let mut checks: Vec<HealthCheck> = Vec::with_capacity(list.len());
        for (at, tree) in list.iter().enumerate() {
            let check = check(tree, reader).map_err(|problem| HealthCheckError { at, problem })?;
            if checks.iter().any(|other| (&other.group, &other.kind) == (&check.group, &check.kind)) {
                let problem = HealthCheckProblem::Duplicate(check.name());
                return Err(HealthCheckError { at, problem });
            }
            checks.push(check);
        }
        Ok(HealthChecks { origin, checks })
    }

    fn find(&self, group: &str, kind: &str) -> Option<&HealthCheck> {
        let of = |wanted: Option<&str>| {
            self.checks.iter().find(|check| check.group == group && check.kind.as_deref() == wanted)
        };
        of(Some(kind)).or_else(|| of(None))
    }
}

fn check(tree: &Tree, reader: Reader<'_>) -> Result<HealthCheck, HealthCheckProblem> {
    let text = |field: &'static str| match tree.get(field) {
        None | Some(Tree::Null) => Ok(None),
        Some(Tree::String(text)) if text.is_empty() => Ok(None),
        Some(Tree::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(HealthCheckProblem::Shape(field)),
    };
    let expression = |field: &'static str| match text(field)? {
        None => Ok(None),
        Some(text) => match reader(text, Names::Fields) {
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

impl HealthCheck {
    fn name(&self) -> String {
        let slash = if self.group.is_empty() { "" } else { "/" };
        format!("{}{slash}{}", self.group, self.kind.as_deref().unwrap_or("*"))
    }

    fn asks_children(&self) -> bool {
        let expressions = [self.in_progress.as_ref(), self.failed.as_ref(), Some(&self.current)];
        expressions.into_iter().flatten().any(|expression| expression.written().contains(CHILDREN))
    }

    /// The verdict; what it has cost is added to `took`.
    fn judge(
        &self,
        origin: Origin,
        object: &Object<'_>,
        surroundings: &Surroundings<'_>,
        took: &mut Duration,
    ) -> Verdict {
        let rule = |which: &str| format!("{}/cel/{}#{which}", origin.as_str(), self.name());
        let Ok(mut tree) = object.root().to_tree() else {
            return Verdict::new(Status::Unknown, "the object nests too deeply", rule("current"));
        };
        if self.asks_children() {
            add_children(&mut tree, surroundings);
        }
        let fields = tree.as_object();
        let variables: Vec<(&str, &Tree)> =
            fields.into_iter().flatten().map(|(name, field)| (name.as_str(), field)).collect();
        for (which, status, expression) in [
            ("inProgress", Status::InProgress, self.in_progress.as_ref()),
            ("failed", Status::Failed, self.failed.as_ref()),
            ("current", Status::Current, Some(&self.current)),
        ] {
            let Some(expression) = expression else { continue };
            let (answer, cost) = expression.answer_at_cost(&variables);
            *took = took.saturating_add(cost);
            let why = match answer {
                Answer::False => continue,
                Answer::True => {
                    let is_current = status == Status::Current;
                    let why = format!("'{}' holds", expression.written());
                    let message = if is_current { String::new() } else { why };
                    return form::verdict(status, message, None, rule(which));
                }
                Answer::Missing(why) | Answer::Fault(why) => cut(why),
            };
            let message = format!("'{}' has no answer: {why}", expression.written());
            return Verdict::new(Status::Unknown, message, rule(which));
        }
        let message = format!("'{}' does not hold yet", self.current.written());
        form::verdict(Status::InProgress, message, None, rule("none"))
    }
}

impl Script for HealthChecks {
    fn origin(&self) -> Origin {
        self.origin
    }

    fn kinds(&self) -> Vec<ScriptKind> {
        let kind = |check: &HealthCheck| ScriptKind {
            group: check.group.clone(),
            kind: check.kind.clone().unwrap_or_else(|| "*".to_owned()),
            language: "cel",
        };
        self.checks.iter().map(kind).collect()
    }

    fn judge(&self, object: &Object<'_>, surroundings: &Surroundings<'_>, now: Timestamp) -> Option<Verdict> {
        self.judge_at_cost(object, surroundings, now).verdict
    }

    fn is_about(&self, object: &Object<'_>) -> bool {
        self.find(object.group(), object.kind()).is_some()
    }

    fn judge_at_cost(&self, object: &Object<'_>, surroundings: &Surroundings<'_>, _: Timestamp) -> Judged {
        let Some(check) = self.find(object.group(), object.kind()) else { return Judged::default() };
        let number = |section: &str, key: &str| object.root().get(section)?.get(key).and_then(Value::as_i64);
        if let Some(generation) = number("metadata", "generation")
            && let Some(observed) = number("status", "observedGeneration")
            && generation != observed
        {
            let verdict = Some(form::not_observed(object.kind(), generation, observed));
            return Judged { verdict, ..Judged::default() };
        }
        let mut took = Duration::ZERO;
        let verdict = check.judge(self.origin, object, surroundings, &mut took);
        Judged { verdict: Some(verdict), took, was_stopped: false }
    }
}

/// The `readyExpr` of a dependency: whether what is depended on is ready for `self`.
#[derive(Debug)]
pub struct ReadyExpr(Box<dyn Ask>);

impl ReadyExpr {
    /// # Errors
    /// When it is no expression, or speaks of something else than `self` and `dep`.
    pub fn read(text: &str, reader: Reader<'_>) -> Result<ReadyExpr, InvalidExpression> {
        reader(text, Names::SelfAndDependency).map(ReadyExpr)
    }

    /// Whether `dependency` is ready for `object`.
    pub fn ask(&self, object: &Tree, dependency: &Tree) -> Answer {
        self.0.answer(&[("self", object), ("dep", dependency)])
    }
}
