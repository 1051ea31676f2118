//! Tests of branches, and their evaluation.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::ops::ControlFlow;

use jiff::Timestamp;
use taffrail_object::json::{Kind, Value};

use super::message::{self, Piece, ROW, Row, TestMatches};
use super::path::{self, Path, Start};
use super::pattern::{Pattern, one_matches};

/// A test of an object, or of an element of a list.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    Condition(ConditionTest),
    Field(FieldTest),
    All(Box<[Test]>),
    /// One of the lists of tests must hold entirely.
    Any(Box<[Box<[Test]>]>),
    None(Box<[Box<[Test]>]>),
    Each(Path, Box<[Test]>),
    Some(Path, Box<[Test]>),
    Count(Path, Box<[Test]>, Box<[Bound]>),
}

/// A test for a condition of one type.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ConditionTest {
    pub(super) name: Box<str>,
    /// The allowed statuses; empty allows any.
    pub(super) is: Box<[Box<str>]>,
    pub(super) reason: Option<Box<[Pattern]>>,
    pub(super) text: Option<Box<[Pattern]>>,
    /// True if a condition with an older `observedGeneration` does not count.
    pub(super) observed: bool,
}

/// A test of the value of a field.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FieldTest {
    pub(super) path: Path,
    pub(super) default: Option<Scalar>,
    pub(super) checks: Box<[Check]>,
}

/// The comparison that a test of a field makes with its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Check {
    Is(ComparedTexts),
    Not(ComparedTexts),
    Like(Box<[Pattern]>),
    Exists(bool),
    Contains(Box<str>),
    Matches(Path, Option<Scalar>),
    Bound(Bound),
}

/// The values to compare a field with: fixed texts, and templates filled from other fields.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ComparedTexts {
    pub(super) plain: Box<[Box<str>]>,
    pub(super) made: Box<[Box<[Piece]>]>,
}

impl Test {
    /// Returns true if the test reads `children`, the objects whose owner reference names this object. `in_element` is
    /// true for a test of an element of a list, in which only paths from `$` begin at the object.
    pub(super) fn asks_children(&self, in_element: bool) -> bool {
        let leads = |path: &Path| path.asks_children() && !(in_element && path.start() == Start::Here);
        let any = |tests: &[Test], in_element| tests.iter().any(|test| test.asks_children(in_element));
        let bounds_lead = |bound: &Bound| bound.path().is_some_and(leads);
        match self {
            Test::Condition(_) => false,
            Test::Field(test) => {
                let reads = |check: &Check| match check {
                    Check::Is(words) | Check::Not(words) => words.ask_children(),
                    Check::Matches(other, _) => leads(other),
                    Check::Bound(bound) => bounds_lead(bound),
                    Check::Like(_) | Check::Exists(_) | Check::Contains(_) => false,
                };
                leads(&test.path) || test.checks.iter().any(reads)
            }
            Test::All(tests) => any(tests, in_element),
            Test::Any(several) | Test::None(several) => several.iter().any(|tests| any(tests, in_element)),
            Test::Each(path, tests) | Test::Some(path, tests) => leads(path) || any(tests, true),
            Test::Count(path, tests, bounds) => {
                leads(path) || any(tests, true) || bounds.iter().any(bounds_lead)
            }
        }
    }
}

impl ComparedTexts {
    fn ask_children(&self) -> bool {
        self.made.iter().any(|pieces| message::ask_children(pieces))
    }

    fn have(&self, value: Value<'_>, scope: &Scope<'_, '_>) -> bool {
        self.plain.iter().any(|word| path::is_word(value, word))
            || self.made.iter().any(|pieces| path::is_word(value, &fill(pieces, scope)))
    }

    fn have_text(&self, text: &str, scope: &Scope<'_, '_>) -> bool {
        self.plain.iter().any(|word| **word == *text)
            || self.made.iter().any(|pieces| fill(pieces, scope) == text)
    }
}

fn fill(pieces: &[Piece], scope: &Scope<'_, '_>) -> String {
    message::fill(pieces, scope.object, &TestMatches::default())
}

/// A scalar of a rule, as text.
pub(super) type Scalar = Box<str>;

/// A comparison of a number, or of a point in time, with another.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bound {
    pub(super) how: BoundOperator,
    pub(super) other: Other,
}

/// The relation that a value must have to a [`Bound`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BoundOperator {
    AtLeast,
    AtMost,
    Above,
    Below,
    Equal,
}

/// The value with which a [`Bound`] compares.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Other {
    Number(f64),
    /// Another field, and its value if it is absent.
    Field(Path, Option<Scalar>),
}

/// The value under test (the object, or an element of one of its lists), with the object around it.
pub(super) struct Scope<'s, 'a> {
    object: Value<'a>,
    here: Value<'a>,
    generation: Option<i64>,
    conditions_at: &'s Path,
    conditions: OnceCell<Vec<Row<'a>>>,
}

impl<'s, 'a> Scope<'s, 'a> {
    pub(super) fn new(
        object: Value<'a>,
        here: Value<'a>,
        conditions_at: &'s Path,
        generation: Option<i64>,
    ) -> Scope<'s, 'a> {
        Scope { object, here, generation, conditions_at, conditions: OnceCell::new() }
    }

    /// Returns the scope of an element at `path`. If the element is a child, an object of its own, its conditions are
    /// read where those of objects are, and this object's generation does not apply to it.
    fn inside(&self, here: Value<'a>, path: &Path, elements: &'s Elements) -> Scope<'s, 'a> {
        match path.asks_children() {
            true => Scope::new(self.object, here, self.conditions_at, None),
            false => Scope::new(self.object, here, &elements.0, self.generation),
        }
    }

    fn conditions(&self) -> &[Row<'a>] {
        self.conditions.get_or_init(|| {
            let Some(rows) = self.conditions_at.first(self.here).and_then(|list| list.rows(ROW)) else {
                return Vec::new();
            };
            // Few objects have more than six; a larger block would leave the allocator's cache of small ones.
            let mut conditions = Vec::with_capacity(6);
            conditions.extend(rows.flatten());
            conditions
        })
    }

    /// Returns the value at which a path starts.
    pub(super) fn start(&self, path: &Path) -> Value<'a> {
        if path.start() == Start::Object { self.object } else { self.here }
    }
}

/// The path to the conditions inside an element of a list.
#[derive(Debug)]
pub(super) struct Elements(pub(super) Path);

/// Returns true if all tests hold; adds the first condition by which they hold, and the first element by which a test
/// `some` holds, to `found` if it has none yet.
pub(super) fn hold<'s, 'a>(
    tests: &'s [Test],
    scope: &Scope<'s, 'a>,
    elements: &'s Elements,
    found: &mut TestMatches<'a>,
) -> bool {
    tests.iter().all(|test| holds(test, scope, elements, found))
}

fn holds<'s, 'a>(
    test: &'s Test,
    scope: &Scope<'s, 'a>,
    elements: &'s Elements,
    found: &mut TestMatches<'a>,
) -> bool {
    // The matches of tests that do not hold in the end are discarded.
    let attempt = |tests: &'s [Test], scope: &Scope<'s, 'a>, found: &mut TestMatches<'a>| {
        let before = *found;
        let holds = hold(tests, scope, elements, found);
        if !holds {
            *found = before;
        }
        holds
    };
    match test {
        Test::Condition(test) => {
            let row = scope.conditions().iter().find(|row| test.holds(row, scope.generation));
            if let Some(row) = row {
                found.condition.get_or_insert(*row);
            }
            row.is_some()
        }
        Test::Field(test) => test.holds(scope),
        Test::All(tests) => attempt(tests, scope, found),
        Test::Any(any) => any.iter().any(|tests| attempt(tests, scope, found)),
        Test::None(none) => {
            !none.iter().any(|tests| hold(tests, scope, elements, &mut TestMatches::default()))
        }
        Test::Each(path, tests) => {
            let mut number = 0_usize;
            let broken = path.visit(scope.start(path), &mut |element| {
                number += 1;
                match attempt(tests, &scope.inside(element, path, elements), found) {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
            number > 0 && broken.is_continue()
        }
        Test::Some(path, tests) => path.any(scope.start(path), |element| {
            let holds = attempt(tests, &scope.inside(element, path, elements), found);
            if holds {
                found.element.get_or_insert(element);
            }
            holds
        }),
        Test::Count(path, tests, bounds) => {
            let mut number = 0_u32;
            let _ = path.visit(scope.start(path), &mut |element| {
                let inside = scope.inside(element, path, elements);
                number += u32::from(hold(tests, &inside, elements, &mut TestMatches::default()));
                ControlFlow::Continue(())
            });
            bounds.iter().all(|bound| bound.holds(Operand::Number(f64::from(number)), scope))
        }
    }
}

impl ConditionTest {
    fn holds(&self, row: &Row<'_>, generation: Option<i64>) -> bool {
        let [name, status, reason, message, observed] = *row;
        if !name.is_some_and(|name| name.is_str(&self.name)) {
            return false;
        }
        if !self.is.is_empty()
            && !status.is_some_and(|status| self.is.iter().any(|word| is_status(status, word)))
        {
            return false;
        }
        let is_old = || match (observed.and_then(Value::as_i64), generation) {
            (Some(observed), Some(generation)) => observed < generation,
            _ => false,
        };
        self.reason.as_ref().is_none_or(|patterns| one_matches(patterns, reason))
            && self.text.as_ref().is_none_or(|patterns| one_matches(patterns, message))
            && !(self.observed && is_old())
    }
}

impl FieldTest {
    fn holds(&self, scope: &Scope<'_, '_>) -> bool {
        self.checks.iter().all(|check| self.check(check, scope))
    }

    fn check(&self, check: &Check, scope: &Scope<'_, '_>) -> bool {
        let from = scope.start(&self.path);
        let default = |is_so: &dyn Fn(&str) -> bool| {
            self.default.as_ref().is_some_and(|default| is_so(default)) && self.path.first(from).is_none()
        };
        match check {
            Check::Is(words) => {
                self.path.any(from, |value| words.have(value, scope))
                    || default(&|default| words.have_text(default, scope))
            }
            Check::Not(words) => {
                !(self.path.any(from, |value| words.have(value, scope))
                    || default(&|default| words.have_text(default, scope)))
            }
            Check::Like(patterns) => {
                self.path.any(from, |value| {
                    path::text(value).is_some_and(|text| patterns.iter().any(|it| it.matches(&text)))
                }) || default(&|default| patterns.iter().any(|pattern| pattern.matches(default)))
            }
            Check::Exists(wanted) => self.path.any(from, path::is_something) == *wanted,
            Check::Contains(word) => self.path.any(from, |value| match value.items() {
                Some(mut items) => items.any(|item| path::is_word(item, word)),
                None => path::is_word(value, word),
            }),
            Check::Matches(other, other_default) => {
                let other_value = other.first(scope.start(other));
                match (self.path.first(from), other_value) {
                    (Some(one), Some(other)) => are_equal(one, other),
                    (one, other) => {
                        let of = |value: Option<Value<'_>>, default: &Option<Scalar>| match value {
                            Some(value) => path::text(value).map(|text| text.into_owned()),
                            None => default.as_ref().map(|default| default.to_string()),
                        };
                        let one = of(one, &self.default);
                        one.is_some() && one == of(other, other_default)
                    }
                }
            }
            Check::Bound(bound) => match &self.default {
                Some(default) if self.path.first(from).is_none() => {
                    bound.holds(Operand::of_text(default), scope)
                }
                _ => self.path.any(from, |value| bound.holds(Operand::of(value), scope)),
            },
        }
    }
}

/// Returns true if the status of a condition is `word`; some controllers write a boolean instead of a text.
fn is_status(status: Value<'_>, word: &str) -> bool {
    match status.as_bool() {
        Some(truth) => word == if truth { "True" } else { "False" },
        None => status.is_str(word),
    }
}

/// Returns true if two values are equal; compares scalars as text, other values as a whole.
fn are_equal(one: Value<'_>, other: Value<'_>) -> bool {
    match (path::text(one), path::text(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => matches!((one.to_tree(), other.to_tree()), (Ok(one), Ok(other)) if one == other),
        _ => false,
    }
}

/// A value in a comparison; numbers are ordered among each other, and so are times.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Operand {
    Number(f64),
    Time(Timestamp),
    Neither,
}

impl Operand {
    fn of(value: Value<'_>) -> Operand {
        match value.kind() {
            Kind::Integer | Kind::Float => value.as_f64().map_or(Operand::Neither, Operand::Number),
            Kind::String => value.as_str().map_or(Operand::Neither, |text| Operand::of_text(&text)),
            _ => Operand::Neither,
        }
    }

    fn of_text(text: &str) -> Operand {
        if let Some(number) = number(text) {
            return Operand::Number(number);
        }
        text.parse().map_or(Operand::Neither, Operand::Time)
    }
}

/// Parses a finite number; `None` for other texts and words such as `inf` and `nan`.
pub(super) fn number(text: &str) -> Option<f64> {
    let is_number = text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '.'));
    text.parse().ok().filter(|number: &f64| is_number && number.is_finite())
}

impl Bound {
    /// Returns the path of the other field; `None` if the bound is a number.
    fn path(&self) -> Option<&Path> {
        match &self.other {
            Other::Number(_) => None,
            Other::Field(path, _) => Some(path),
        }
    }

    fn holds(&self, operand: Operand, scope: &Scope<'_, '_>) -> bool {
        let other = match &self.other {
            Other::Number(number) => Operand::Number(*number),
            Other::Field(path, default) => match (path.first(scope.start(path)), default) {
                (Some(value), _) => Operand::of(value),
                (None, Some(default)) => Operand::of_text(default),
                (None, None) => return false,
            },
        };
        let order = match (operand, other) {
            (Operand::Number(one), Operand::Number(other)) => one.partial_cmp(&other),
            (Operand::Time(one), Operand::Time(other)) => Some(one.cmp(&other)),
            _ => None,
        };
        order.is_some_and(|order| match self.how {
            BoundOperator::AtLeast => order != Ordering::Less,
            BoundOperator::AtMost => order != Ordering::Greater,
            BoundOperator::Above => order == Ordering::Greater,
            BoundOperator::Below => order == Ordering::Less,
            BoundOperator::Equal => order == Ordering::Equal,
        })
    }
}
