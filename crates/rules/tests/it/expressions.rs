//! Tests of the cost limits of expressions of clusters: parsing and evaluation, charged to the namespace that wrote
//! them.

use std::cell::Cell;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_object::Object;
use taffrail_rules::RuleSet;
use taffrail_rules::cel::{
    InvalidExpression, MAX_LENGTH, MAX_OPERATORS, Names, Predicate, PredicateAnswer, Program, Reading,
    check_size,
};
use taffrail_status::{ClusterRules, ObjectContext, Status, Teacher, TeachingTime, Verdict};

use crate::scripts::{read, reading};

/// The cost of parsing or evaluating an expression with a slow evaluator.
const SLOW_COST: Duration = Duration::from_millis(10);

/// The number of slow expressions that may be parsed in one pass over a cluster.
const MAX_SLOW_READS: usize = 50;

thread_local! {
    static WERE_READ: Cell<usize> = const { Cell::new(0) };
}

fn slow(text: &str, names: Names) -> Reading {
    WERE_READ.set(WERE_READ.get() + 1);
    Reading { took: SLOW_COST, ..reading(text, names) }
}

#[derive(Debug)]
struct Costly(Box<dyn Predicate>);

impl Predicate for Costly {
    fn text(&self) -> &str {
        self.0.text()
    }

    fn evaluate(&self, variables: &[(&str, &Value)]) -> PredicateAnswer {
        self.0.evaluate(variables)
    }

    fn evaluate_at_cost(&self, variables: &[(&str, &Value)]) -> (PredicateAnswer, Duration) {
        (self.evaluate(variables), SLOW_COST * 10)
    }
}

fn costly(text: &str, names: Names) -> Reading {
    let expression = read(text, names).map(|expression| Box::new(Costly(expression)) as Box<dyn Predicate>);
    Reading { expression, took: Duration::ZERO }
}

fn pool() -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Pool", "metadata": {"name": "a", "namespace": "shop"},
        "status": {"phase": "Whatever"}})
}

/// Returns a Kustomization with these expressions, each for another kind; the first for a Pool.
fn kustomization(namespace: &str, expressions: impl IntoIterator<Item = String>) -> Value {
    let check = |(at, text): (usize, String)| {
        let kind = if at == 0 { "Pool".to_owned() } else { format!("Other{at}") };
        json!({"apiVersion": "example.com/v1", "kind": kind, "current": text})
    };
    let checks: Vec<Value> = expressions.into_iter().enumerate().map(check).collect();
    json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "apps", "namespace": namespace}, "spec": {"healthCheckExprs": checks}})
}

/// Judges `object` by the expressions of `teacher`.
fn said(rules: &RuleSet, teacher: &Value, object: &Value, look: &TeachingTime) -> Verdict {
    let teacher = Teacher::of_cluster("hub", Object::new(teacher.into()).unwrap());
    let taught = rules.with_cluster_rules(&[teacher], look).unwrap();
    taught
        .judge(&Object::new(object.into()).unwrap(), &ObjectContext::default(), Timestamp::UNIX_EPOCH)
        .unwrap()
}

fn numbered(number: usize) -> String {
    format!("status.phase == 'Whatever' && {number} >= 0")
}

#[test]
fn parsing_time_is_bounded_per_look_and_namespace() {
    let rules = RuleSet::bare().teachable(slow);
    let look = TeachingTime::default();
    let judge = |look: &TeachingTime, namespace: &str, number| {
        said(&rules, &kustomization(namespace, [numbered(number)]), &pool(), look)
    };
    let all: Vec<Verdict> = (0..200).map(|number| judge(&look, "tenant", number)).collect();
    let heard = all.iter().filter(|verdict| verdict.status == Status::Current).count();
    assert!((1..=MAX_SLOW_READS).contains(&heard), "{heard}");
    let last = all.last().unwrap();
    assert_eq!((last.status, &*last.rule), (Status::Unknown, "cluster/budget"));
    assert!(
        last.message.contains("the expressions of Kustomization tenant/apps were not parsed")
            && last.message.contains("namespace tenant took more than 500ms"),
        "{}",
        last.message
    );
    assert!(WERE_READ.get() <= MAX_SLOW_READS, "{}", WERE_READ.get());
    // Another namespace has time of its own, and so has another pass over the cluster; parsed expressions are cached.
    assert_eq!(judge(&look, "shop", 1_000).status, Status::Current);
    assert_eq!(judge(&look, "tenant", 0).status, Status::Current);
    assert_eq!(judge(&TeachingTime::default(), "tenant", 199).status, Status::Current);
}

#[test]
fn parsing_time_bounds_the_expressions_of_one_object_too() {
    let rules = RuleSet::bare().teachable(slow);
    let many = kustomization("tenant", (0..120).map(numbered));
    // Flux refuses all if one is invalid, so all are parsed; the next pass finds them in the cache.
    for expected in [Status::Unknown, Status::Unknown, Status::Current] {
        let before = WERE_READ.get();
        assert_eq!(said(&rules, &many, &pool(), &TeachingTime::default()).status, expected);
        assert!(WERE_READ.get() - before <= MAX_SLOW_READS);
    }
}

#[test]
fn expression_is_parsed_once_and_only_for_its_kind() {
    let rules = RuleSet::bare().teachable(slow);
    let other = json!({"apiVersion": "example.com/v1", "kind": "Unheard", "metadata": {"name": "a"}});
    for number in 0..10 {
        said(&rules, &kustomization("tenant", [numbered(number)]), &other, &TeachingTime::default());
    }
    assert_eq!(WERE_READ.get(), 0);
    for namespace in ["shop", "tenant", "shop"] {
        let said = said(&rules, &kustomization(namespace, [numbered(0)]), &pool(), &TeachingTime::default());
        assert_eq!(said.status, Status::Current);
    }
    assert_eq!(WERE_READ.get(), 1);
    // A different text is a different expression.
    said(&rules, &kustomization("shop", [numbered(1)]), &pool(), &TeachingTime::default());
    assert_eq!(WERE_READ.get(), 2);
}

fn of_flux(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": name, "namespace": "tenant"}, "spec": spec})
}

/// Lists the unmet `readyExpr`s of a Kustomization of tenant with `count` dependencies.
fn unmet(
    rules: &RuleSet,
    count: usize,
    text: &dyn Fn(usize) -> String,
    look: &TeachingTime,
    goes_on: &dyn Fn() -> bool,
) -> Vec<String> {
    let entry = |at: usize| json!({"name": format!("d{at}"), "readyExpr": text(at)});
    let entries: Vec<Value> = (0..count).map(entry).collect();
    let object = of_flux("apps", json!({ "dependsOn": entries }));
    let trees: Vec<Value> = (0..count).map(|at| of_flux(&format!("d{at}"), json!({}))).collect();
    let dependencies: Vec<_> = trees.iter().map(|tree| Object::new(tree.into()).unwrap()).collect();
    rules.unmet_dependency(&Object::new((&object).into()).unwrap(), &dependencies, look, goes_on)
}

#[test]
fn unmet_dependency_evaluates_at_most_twenty_dependencies() {
    let rules = RuleSet::bare().teachable(slow);
    let asked = Cell::new(0);
    let goes_on = || asked.replace(asked.get() + 1) < 1_000;
    let said = unmet(&rules, 1_000, &|_| "false".to_owned(), &TeachingTime::default(), &goes_on);
    assert_eq!((said.len(), asked.get(), WERE_READ.get()), (21, 20, 1));
    assert_eq!(
        said.last().unwrap(),
        "readyExpr was not evaluated for 980 more dependencies: they exceed the limits on number and time"
    );
    assert!(said[0].starts_with("readyExpr is not true of Kustomization tenant/d0"), "{}", said[0]);
}

/// An expression that cannot be evaluated is not met.
#[test]
fn ready_exprs_of_an_object_that_nests_too_deep_are_unmet() {
    let rules = RuleSet::bare().teachable(reading);
    let deep = (0..130).fold(json!({}), |inner, _| json!({ "a": inner }));
    let entries = json!([{"name": "d0", "readyExpr": "true"}]);
    let object = of_flux("apps", json!({"dependsOn": entries, "deep": deep}));
    let tree = of_flux("d0", json!({}));
    let dependencies = [Object::new((&tree).into()).unwrap()];
    let object = Object::new((&object).into()).unwrap();
    let said = rules.unmet_dependency(&object, &dependencies, &TeachingTime::default(), &|| true);
    assert_eq!(said, ["readyExpr was not evaluated: the object nests deeper than 128 levels"]);
}

#[test]
fn unmet_dependency_evaluates_nothing_after_the_deadline() {
    let rules = RuleSet::bare().teachable(reading);
    let said = unmet(&rules, 3, &|_| "false".to_owned(), &TeachingTime::default(), &|| false);
    assert_eq!(
        said,
        ["readyExpr was not evaluated for 3 more dependencies: they exceed the limits on number and time"]
    );
}

#[test]
fn dependency_expressions_are_bounded_per_look() {
    let look = TeachingTime::default();
    let rules = RuleSet::bare().teachable(slow);
    let texts = |round: usize| move |at: usize| format!("{round} * 100 + {at} < 0");
    let rounds: Vec<_> = (0..5).map(|round| unmet(&rules, 20, &texts(round), &look, &|| true)).collect();
    assert!(WERE_READ.get() <= MAX_SLOW_READS, "{}", WERE_READ.get());
    assert!(rounds[0].iter().all(|said| said.contains("is not true")), "{:?}", rounds[0]);
    let last = rounds.last().unwrap();
    assert!(last[0].contains("parsing the expressions of namespace tenant took more than 500ms"), "{last:?}");
    assert_eq!(
        last[1],
        "readyExpr was not evaluated for 19 more dependencies: they exceed the limits on number and time"
    );

    let look = TeachingTime::default();
    let rules = RuleSet::bare().teachable(costly);
    let said = unmet(&rules, 20, &|_| "false".to_owned(), &look, &|| true);
    assert!(said.iter().any(|said| said.contains("used up their computing time")), "{said:?}");
    assert!(said.len() < 12, "{said:?}");
    // Another pass over the cluster has time again.
    assert!(unmet(&rules, 1, &|_| "true".to_owned(), &TeachingTime::default(), &|| true).is_empty());
}

#[test]
fn expression_with_too_many_operators_is_refused() {
    let sum = |operators: usize| format!("1{} > 0", "+1".repeat(operators - 1));
    assert_eq!(check_size(&sum(MAX_OPERATORS)), Ok(()));
    assert_eq!(check_size(&sum(MAX_OPERATORS + 1)), Err(InvalidExpression::TooManyOperators));
    for unit in ["==1", "!", "-", "&&a", "||a", "<=1", "/1", "%1", "!=1"] {
        let many = format!("a{}", unit.repeat(MAX_OPERATORS + 1));
        assert_eq!(check_size(&many), Err(InvalidExpression::TooManyOperators), "{unit}");
        let few = format!("a{}", unit.repeat(MAX_OPERATORS));
        assert_eq!(check_size(&few), Ok(()), "{unit}");
    }
}

/// Copying the inner expressions at each level would make the cost grow with the square of the length.
#[test]
fn parsing_cost_is_linear_in_the_length_of_the_expression() {
    let chain = |length: usize| format!("a{}", ".b()".repeat(length / 4).replace("()", ""));
    let sum = |operators: usize| format!("1{} > 0", "+1".repeat(operators - 1));
    let took = |text: &str| {
        let one = || {
            let began = taffrail_rules::computed();
            Program::read(text, Names::Fields).unwrap();
            taffrail_rules::computed().zip(began).map_or(Duration::ZERO, |(now, began)| now - began)
        };
        (0..10).map(|_| one()).min().unwrap()
    };
    for [long, short] in [[sum(256), sum(32)], [chain(MAX_LENGTH), chain(MAX_LENGTH / 8)]] {
        let (long, short) = (took(&long), took(&short));
        // Eight times as much, and not 64 times.
        assert!(long < short * 24 + Duration::from_micros(200), "{long:?} for eight times {short:?}");
    }
}
