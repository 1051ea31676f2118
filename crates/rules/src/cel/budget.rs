//! The cost limit of evaluations of CEL.
//!
//! The interpreter has no limit of its own. So, before an expression is kept, each call's arguments and result and each
//! range of a macro are wrapped in a call of a function of this module, which counts their cost and returns an error
//! once the budget is spent. This bounds time and memory, and the result of an expression does not depend on the speed
//! of the machine.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, operators};
use cel::common::types::{CelBool, CelBytes, CelList, CelMap, CelString, DYN_TYPE, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use regex::{Regex, RegexBuilder};

/// The budget of one evaluation, in units of about a microsecond without optimisation; one that needs more ends with an
/// error. Ordinary expressions spend some hundreds.
pub(super) const BUDGET_UNITS: u64 = 50_000;

/// The cost of a call in units of the budget, besides the sizes of its arguments and its result.
const CALL_COST: u64 = 4;

/// The number of bytes of a text that cost one unit.
const BYTES_PER_UNIT: usize = 64;

/// The largest compiled size of a pattern, in bytes; a larger one is an error of the expression.
const MAX_PATTERN_BYTES: usize = 64 << 10;

/// The cost of compiling a regular expression, in units of the budget.
const PATTERN_COST: u64 = 1_000;

/// The factor by which the search for a pattern in a text costs more than the text.
const SEARCH_FACTOR: u64 = 3;

/// The cost of one step of a macro in units of the budget, besides the expressions in it.
const STEP_COST: u64 = 4;

/// The number of compiled patterns that each thread keeps for later matches, also of other expressions; the oldest is
/// dropped for one more.
const MAX_CACHED_PATTERNS: usize = 8;

/// The counting function that charges for a call, and for its result unless that existed before, as a field of the
/// object does. No expression can contain its name, nor those of the others, because of the `@`.
const RESULT: &str = "@result_of";

/// The counting function that charges for an argument by the length of its text.
const TEXT: &str = "@text_of";

/// The counting function that charges for an argument with everything inside it.
const WHOLE: &str = "@whole_of";

/// The counting function that charges for the list or map over which a macro runs, and for its steps.
const RANGE: &str = "@range_of";

/// The counting function in place of `matches`.
const MATCHES: &str = "@matches";

/// Operators that read both of their values entirely.
const COMPARING: [&str; 3] = [operators::EQUALS, operators::NOT_EQUALS, operators::IN];

/// Operators that choose between values and read no text.
const CHOOSING: [&str; 6] = [
    operators::OPT_SELECT,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::CONDITIONAL,
    operators::NOT_STRICTLY_FALSE,
];

/// The account of the evaluation that runs on this thread. It is thread-local because the interpreter passes its
/// functions nothing but their arguments; an evaluation stays on its thread.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    left: u64,
    is_overdrawn: bool,
}

thread_local! {
    static ACCOUNT: Cell<Account> = const { Cell::new(Account { left: 0, is_overdrawn: false }) };
    static COMPILED: RefCell<VecDeque<(String, Regex)>> = const { RefCell::new(VecDeque::new()) };
}

/// Begins an evaluation with a full budget.
pub(super) fn open() {
    ACCOUNT.set(Account { left: BUDGET_UNITS, is_overdrawn: false });
}

/// Returns true if the evaluation wanted to spend more than its budget; its result must then be discarded.
pub(super) fn is_overdrawn() -> bool {
    ACCOUNT.get().is_overdrawn
}

/// Declares the counting functions in an environment.
///
/// # Errors
/// If the environment already has functions of these names.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(RESULT, RESULT, vec![DYN_TYPE], |arguments| {
        go_on()?;
        let value = only(arguments)?;
        // A borrowed value existed before and costs nothing.
        let made = if matches!(value, CowVal::Owned(_)) { weight(&*value) } else { 0 };
        spend(CALL_COST + made)?;
        Ok(value)
    })?;
    env.add_overload(TEXT, TEXT, vec![DYN_TYPE], |arguments| paid(arguments, text))?;
    env.add_overload(WHOLE, WHOLE, vec![DYN_TYPE], |arguments| paid(arguments, weight))?;
    // Each element is copied for its step.
    env.add_overload(RANGE, RANGE, vec![DYN_TYPE], |arguments| {
        paid(arguments, |range| weight(range).saturating_add(elements(range).saturating_mul(STEP_COST)))
    })?;
    env.add_overload(MATCHES, MATCHES, vec![STRING_TYPE, STRING_TYPE], matches)
}

fn only<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    arguments.into_iter().next().ok_or_else(ExecutionError::missing_argument_or_target)
}

/// Charges for a function's argument and returns it.
///
/// # Errors
/// If the budget is spent.
fn paid<'b, 'v>(
    arguments: Vec<CowVal<'b, 'v>>,
    cost: impl Fn(&dyn Val) -> u64,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    go_on()?;
    let value = only(arguments)?;
    spend(cost(&*value))?;
    Ok(value)
}

fn spend(units: u64) -> Result<(), ExecutionError> {
    let mut account = ACCOUNT.get();
    account.is_overdrawn |= units > account.left;
    account.left = account.left.saturating_sub(units);
    ACCOUNT.set(account);
    go_on()
}

/// Returns an error once the evaluation wanted to spend more than its budget. Macros go on after an error, as another
/// element may decide; so each function calls this first and then costs nothing more.
fn go_on() -> Result<(), ExecutionError> {
    match is_overdrawn() {
        true => Err(ExecutionError::function_error("budget", "evaluating the expression costs too much")),
        false => Ok(()),
    }
}

/// Matches the text in `arguments[0]` against the pattern in `arguments[1]` as CEL's own `matches`, with bounds for the
/// pattern; an error if the pattern is invalid or the budget is spent. Compiles the pattern, and charges for that,
/// unless it is one of the [`MAX_CACHED_PATTERNS`] kept on this thread.
fn matches<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    go_on()?;
    let texts: Vec<&CelString<'_>> =
        arguments.iter().filter_map(|argument| argument.downcast_ref::<CelString<'_>>()).collect();
    let [text, pattern] = texts.as_slice() else {
        return Err(ExecutionError::missing_argument_or_target());
    };
    let (text, pattern) = (text.inner(), pattern.inner());
    spend(8 + bytes(text.len()) * SEARCH_FACTOR)?;
    let matched = COMPILED.with_borrow_mut(|compiled| {
        if let Some((_, regex)) = compiled.iter().find(|(of, _)| of == pattern) {
            return Ok(regex.is_match(text));
        }
        spend(PATTERN_COST)?;
        let regex = RegexBuilder::new(pattern)
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_PATTERN_BYTES)
            .build()
            .map_err(|error| ExecutionError::function_error("matches", error))?;
        let matched = regex.is_match(text);
        compiled.truncate(MAX_CACHED_PATTERNS - 1);
        compiled.push_front((pattern.to_owned(), regex));
        Ok::<bool, ExecutionError>(matched)
    })?;
    Ok(CowVal::owned(CelBool::from(matched)))
}

fn bytes(length: usize) -> u64 {
    u64::try_from(length / BYTES_PER_UNIT).unwrap_or(u64::MAX)
}

/// Returns the cost of a text, in units of the budget; 0 for other types.
fn text(value: &dyn Val) -> u64 {
    value.downcast_ref::<CelString<'_>>().map_or(0, |text| bytes(text.inner().len()))
}

/// Returns the number of steps that a macro makes over a value: its elements; 0 if it is not a list or map.
fn elements(value: &dyn Val) -> u64 {
    let list = value.downcast_ref::<CelList<'_>>().map(|list| list.inner().len());
    let map = || value.downcast_ref::<CelMap<'_>>().map(|map| map.inner().len());
    list.or_else(map).and_then(|length| length.try_into().ok()).unwrap_or_default()
}

/// Returns the cost of a value with everything inside it, except the keys of maps, in units of the budget.
fn weight(value: &dyn Val) -> u64 {
    let inside = if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        list.inner().iter().map(|element| weight(&**element)).sum()
    } else if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        map.inner().values().map(|element| weight(&**element)).sum()
    } else {
        text(value) + value.downcast_ref::<CelBytes<'_>>().map_or(0, |some| bytes(some.inner().len()))
    };
    inside + 1
}

/// Wraps the calls in an expression, with their arguments, and the ranges of its macros in the counting functions. It
/// consumes the expression, as copies at each level would cost the square of its length.
pub(super) fn counted(expression: IdedExpr) -> IdedExpr {
    let expression = inside(expression);
    match &expression.expr {
        Expr::Call(_) => call(RESULT, expression),
        _ => expression,
    }
}

fn call(function: &str, argument: IdedExpr) -> IdedExpr {
    let id = argument.id;
    let expr = Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args: vec![argument] });
    IdedExpr { id, expr }
}

/// Replaces the expression in the variable `place` by the result of `change` on it.
fn replace(place: &mut IdedExpr, change: impl FnOnce(IdedExpr) -> IdedExpr) {
    *place = change(std::mem::take(place));
}

/// Wraps the parts of an expression, but not its own result.
fn inside(mut expression: IdedExpr) -> IdedExpr {
    let entry = |entry: &mut EntryExpr| match entry {
        EntryExpr::StructField(field) => replace(&mut field.value, counted),
        EntryExpr::MapEntry(entry) => {
            replace(&mut entry.key, counted);
            replace(&mut entry.value, counted);
        }
    };
    match &mut expression.expr {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
        Expr::Select(select) => replace(&mut select.operand, counted),
        Expr::Call(call) => {
            let looks = match call.func_name.as_str() {
                it if COMPARING.contains(&it) => Some(WHOLE),
                it if CHOOSING.contains(&it) => None,
                _ => Some(TEXT),
            };
            for argument in call.target.as_deref_mut().into_iter().chain(&mut call.args) {
                replace(argument, counted);
                if let Some(looks) = looks {
                    replace(argument, |argument| self::call(looks, argument));
                }
            }
            if call.func_name == "matches" {
                call.func_name = MATCHES.to_owned();
                if let Some(target) = call.target.take() {
                    call.args.insert(0, *target);
                }
            }
        }
        Expr::List(list) => list.elements.iter_mut().for_each(|element| replace(element, counted)),
        Expr::Map(map) => map.entries.iter_mut().for_each(|it| entry(&mut it.expr)),
        Expr::Struct(it) => it.entries.iter_mut().for_each(|it| entry(&mut it.expr)),
        Expr::Comprehension(it) => {
            replace(&mut it.iter_range, |range| call(RANGE, counted(range)));
            replace(&mut it.accu_init, counted);
            // The interpreter recognises the steps of macros by their shape.
            replace(&mut it.loop_step, |written| step(written, &it.accu_var));
            replace(&mut it.result, inside);
        }
    }
    expression
}

/// Wraps the written parts of a macro's step; leaves the parts that the macro added as they are.
fn step(mut expression: IdedExpr, accumulated: &str) -> IdedExpr {
    let is_accumulated = |it: &IdedExpr| matches!(&it.expr, Expr::Ident(name) if name == accumulated);
    match &mut expression.expr {
        Expr::Call(call) if call.args.iter().any(is_accumulated) => {
            let is_choice = call.func_name == operators::CONDITIONAL;
            for (at, argument) in call.args.iter_mut().enumerate() {
                // `x ? @result + [x] : @result`
                let is_result = is_choice && at > 0;
                replace(argument, |it| if is_result { step(it, accumulated) } else { counted(it) });
            }
            expression
        }
        _ => counted(expression),
    }
}
