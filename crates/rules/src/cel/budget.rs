//! What an evaluation may cost.
//!
//! The interpreter knows no limit. So before an expression is kept, every call in it and every range of a macro is handed to a
//! function of ours that counts what came of it and refuses when that is too much: time and memory are bounded by it, and what
//! an expression answers does not depend on how fast the machine is.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, operators};
use cel::common::types::{CelBool, CelBytes, CelList, CelMap, CelString, DYN_TYPE, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use regex::{Regex, RegexBuilder};

/// What one evaluation may spend: a call costs 1, and what it may have to look at or makes costs by its size.
/// What is meant well spends some hundreds.
pub(super) const UNITS: u64 = 60_000;

/// A call may look at the whole of the largest value there is; so much of it is had with the call.
const LOOKED_AT: u64 = 256;

/// So many bytes of a text weigh as much as a value without any.
const BYTES: usize = 64;

/// A pattern that compiles to more bytes is refused.
const LARGEST_PATTERN: usize = 64 << 10;

/// What it costs to compile a pattern.
const PATTERN: u64 = 1_000;

/// How many compiled patterns are kept for the next element of a list.
const PATTERNS: usize = 8;

/// Our functions, by names that cannot be written.
const RESULT: &str = "@result_of";
const RANGE: &str = "@range_of";
const MATCHES: &str = "@matches";

/// One evaluation's account. The interpreter's functions are given nothing but their arguments; an evaluation stays on its thread.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    left: u64,
    /// What the largest value weighs that there is.
    largest: u64,
    is_overdrawn: bool,
}

thread_local! {
    static ACCOUNT: Cell<Account> = const {
        Cell::new(Account { left: 0, largest: 0, is_overdrawn: false })
    };
    static COMPILED: RefCell<VecDeque<(String, Regex)>> = const { RefCell::new(VecDeque::new()) };
}

/// Begins an evaluation over values of this weight.
pub(super) fn open(weight: u64) {
    ACCOUNT.set(Account { left: UNITS, largest: weight, is_overdrawn: false });
}

/// Whether the evaluation wanted more than it may. What it said then counts for nothing.
pub(super) fn is_overdrawn() -> bool {
    ACCOUNT.get().is_overdrawn
}

/// The functions that count.
///
/// # Errors
/// When the environment has functions of these names.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(RESULT, RESULT, vec![DYN_TYPE], |arguments| {
        let value = only(arguments)?;
        let size = own_weight(&*value);
        spend(1 + size, size)?;
        Ok(value)
    })?;
    // Each element is copied for its step.
    env.add_overload(RANGE, RANGE, vec![DYN_TYPE], |arguments| {
        let value = only(arguments)?;
        spend(weight(&*value), 0)?;
        Ok(value)
    })?;
    env.add_overload(MATCHES, MATCHES, vec![STRING_TYPE, STRING_TYPE], matches)
}

fn only<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    arguments.into_iter().next().ok_or_else(ExecutionError::missing_argument_or_target)
}

/// Pays for a value, and for a call that may have looked at the largest there is.
fn spend(units: u64, size: u64) -> Result<(), ExecutionError> {
    let mut account = ACCOUNT.get();
    let units = units.saturating_add(account.largest / LOOKED_AT);
    account.largest = account.largest.max(size);
    account.is_overdrawn |= units > account.left;
    account.left = account.left.saturating_sub(units);
    ACCOUNT.set(account);
    if account.is_overdrawn {
        return Err(ExecutionError::function_error("budget", "its evaluation costs too much"));
    }
    Ok(())
}

/// As CEL's own, with bounds for the pattern; one that is used for every element of a list is compiled once.
fn matches<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let texts: Vec<&CelString<'_>> =
        arguments.iter().filter_map(|argument| argument.downcast_ref::<CelString<'_>>()).collect();
    let [text, pattern] = texts.as_slice() else {
        return Err(ExecutionError::missing_argument_or_target());
    };
    let (text, pattern) = (text.inner(), pattern.inner());
    let matched = COMPILED.with_borrow_mut(|compiled| {
        if let Some((_, regex)) = compiled.iter().find(|(of, _)| of == pattern) {
            return Ok(regex.is_match(text));
        }
        spend(PATTERN, 0)?;
        let regex = RegexBuilder::new(pattern)
            .size_limit(LARGEST_PATTERN)
            .dfa_size_limit(LARGEST_PATTERN)
            .build()
            .map_err(|error| ExecutionError::function_error("matches", error))?;
        let matched = regex.is_match(text);
        compiled.truncate(PATTERNS - 1);
        compiled.push_front((pattern.to_owned(), regex));
        Ok::<bool, ExecutionError>(matched)
    })?;
    spend(8 + bytes(text.len()), 0)?;
    Ok(CowVal::owned(CelBool::from(matched)))
}

fn bytes(length: usize) -> u64 {
    u64::try_from(length / BYTES).unwrap_or(u64::MAX)
}

/// What a value weighs whose elements are there already.
fn own_weight(value: &dyn Val) -> u64 {
    let length = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        bytes(text.inner().len())
    } else if let Some(some) = value.downcast_ref::<CelBytes<'_>>() {
        bytes(some.inner().len())
    } else if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        length(list.inner().len())
    } else if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        length(map.inner().len())
    } else {
        0
    }
}

/// What a value weighs with all that is in it.
fn weight(value: &dyn Val) -> u64 {
    let inside = if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        list.inner().iter().map(|element| weight(&**element)).sum()
    } else if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        map.inner().values().map(|element| weight(&**element)).sum()
    } else {
        own_weight(value)
    };
    inside + 1
}

/// What a value weighs with all that is in it, before the interpreter has it.
pub(super) fn weight_of(tree: &serde_json::Value) -> u64 {
    let inside = match tree {
        serde_json::Value::String(text) => bytes(text.len()),
        serde_json::Value::Array(items) => items.iter().map(weight_of).sum(),
        serde_json::Value::Object(fields) => fields.values().map(weight_of).sum(),
        _ => 0,
    };
    inside + 1
}

/// The same expression, counted.
pub(super) fn counted(expression: &IdedExpr) -> IdedExpr {
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

/// The same expression with all that is in it counted.
fn inside(expression: &IdedExpr) -> IdedExpr {
    let mut expression = expression.clone();
    let entry = |entry: &mut EntryExpr| match entry {
        EntryExpr::StructField(field) => field.value = counted(&field.value),
        EntryExpr::MapEntry(entry) => {
            entry.key = counted(&entry.key);
            entry.value = counted(&entry.value);
        }
    };
    match &mut expression.expr {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
        Expr::Select(select) => *select.operand = counted(&select.operand),
        Expr::Call(call) => {
            if let Some(target) = &mut call.target {
                **target = counted(target);
            }
            call.args.iter_mut().for_each(|argument| *argument = counted(argument));
            if call.func_name == "matches" {
                call.func_name = MATCHES.to_owned();
                if let Some(target) = call.target.take() {
                    call.args.insert(0, *target);
                }
            }
        }
        Expr::List(list) => list.elements.iter_mut().for_each(|element| *element = counted(element)),
        Expr::Map(map) => map.entries.iter_mut().for_each(|it| entry(&mut it.expr)),
        Expr::Struct(it) => it.entries.iter_mut().for_each(|it| entry(&mut it.expr)),
        Expr::Comprehension(it) => {
            it.iter_range = call(RANGE, counted(&it.iter_range));
            it.accu_init = counted(&it.accu_init);
            // The interpreter knows the steps of macros by their shape.
            it.loop_step = step(&it.loop_step, &it.accu_var);
            it.result = inside(&it.result);
        }
    }
    expression
}

/// A step with what people wrote of it counted; what the macro added is left as it is.
fn step(expression: &IdedExpr, accumulated: &str) -> IdedExpr {
    let mut expression = expression.clone();
    let is_accumulated = |it: &IdedExpr| matches!(&it.expr, Expr::Ident(name) if name == accumulated);
    match &mut expression.expr {
        Expr::Call(call) if call.args.iter().any(is_accumulated) => {
            let is_choice = call.func_name == operators::CONDITIONAL;
            for (at, argument) in call.args.iter_mut().enumerate() {
                // `x ? @result + [x] : @result`
                *argument = if is_choice && at > 0 { step(argument, accumulated) } else { counted(argument) };
            }
            expression
        }
        _ => counted(&expression),
    }
}
