//! Signs in an object that it is not ready, for kinds without rules.
//!
//! kstatus calls an object Current if it reports `Ready=True`, or nothing that kstatus knows. It is not green if it
//! also reports `Degraded`, `Failed` or `Failing` as True, or `Synced` as False; nor, without `Ready=True`, if it has
//! any other adverse condition, phase or state, such as `Available=False` or `phase: Failed`.

use std::borrow::Cow;

use jiff::Timestamp;
use taffrail_object::Object;
use taffrail_object::json::Value;

use crate::verdict::{Status, Verdict};

const RULE: &str = "generic/adverse";

/// Condition types that are adverse if their status is True, as are all types that end in `Failed`; not if negated (see
/// [`NEGATIONS`]).
const BAD_WHEN_TRUE: [&str; 4] = ["Failed", "Failing", "Degraded", "Error"];

/// Condition types that are adverse if their status is False, as are all types that end in `Ready`, except `Ready`
/// itself; not if negated.
const BAD_WHEN_FALSE: [&str; 5] = ["Available", "Synced", "Accepted", "Healthy", "Established"];

/// Types of adverse conditions that count even if `Ready=True`; for other types `Ready` is taken as the summary.
const BESIDE_READY: [&str; 4] = ["Failed", "Failing", "Degraded", "Synced"];

/// Adverse values of `status.phase` and `status.state`, in upper or lower case.
const BAD_WORDS: [&str; 4] = ["Failed", "Error", "Degraded", "Unavailable"];

/// Words that negate the type of a condition (`DNSNotReady`). Whole words count: `NodesReady` contains none of them.
const NEGATIONS: [&str; 6] = ["Not", "No", "Non", "Un", "Never", "Without"];

/// Suffixes of a condition's reason that mean that the part is switched off on purpose; such a condition is not
/// adverse.
const RESTS: [&str; 7] =
    ["Disabled", "NotRequired", "NotApplicable", "Paused", "NotNeeded", "NotEnabled", "Suspended"];

/// Returns `verdict`, or a worse one if kstatus called `object` Current only by its `Ready` condition or by default,
/// and the object has an adverse condition, phase or state. Beside `Ready=True`, only conditions of [`BESIDE_READY`]
/// count, and neither phase nor state. A condition or phase `Failed` makes it Failed, any other sign InProgress.
pub(crate) fn judge(object: &Object<'_>, verdict: Verdict) -> Verdict {
    if verdict.status != Status::Current || !matches!(&*verdict.rule, "fallback" | "generic/ready") {
        return verdict;
    }
    let condition = condition(object);
    let is_failed = |condition: &Value<'_>| text(*condition, "type") == "Failed";
    let failed = condition.as_ref().is_some_and(is_failed);
    // `Ready` covers the phase, too.
    let word = if failed || verdict.rule == "generic/ready" { None } else { word(object) };
    match (word, condition) {
        (Some((key, word)), _) if key == "phase" && word.eq_ignore_ascii_case("Failed") => {
            of_word(object, key, &word, Status::Failed)
        }
        (_, Some(condition)) => of_condition(condition, failed),
        (Some((key, word)), None) => of_word(object, key, &word, Status::InProgress),
        (None, None) => verdict,
    }
}

fn of_condition(condition: Value<'_>, is_failed: bool) -> Verdict {
    let [name, status, reason, message] =
        ["type", "status", "reason", "message"].map(|key| text(condition, key).trim().to_owned());
    let said = if message.is_empty() { reason.clone() } else { message };
    let said = if said.is_empty() { said } else { format!(": {said}") };
    let text = format!("{name} is {status}{said}");
    let reason = if reason.is_empty() { name } else { reason };
    if is_failed { Verdict::failed(reason, text, RULE) } else { Verdict::in_progress(reason, text, RULE) }
}

fn of_word(object: &Object<'_>, key: &str, word: &str, status: Status) -> Verdict {
    let said = ["message", "reason"].map(|key| object.text(&["status", key]));
    let said = said.iter().find(|text| !text.trim().is_empty());
    let said = said.map(|text| format!(": {}", text.trim())).unwrap_or_default();
    let text = format!("status.{key} is {word}{said}");
    match status {
        Status::Failed => Verdict::failed(word.to_owned(), text, RULE),
        _ => Verdict::in_progress(word.to_owned(), text, RULE),
    }
}

/// Returns the first of `status.phase` and `status.state` with an adverse value, as the field's name and the value;
/// `None` if neither has one.
fn word<'a>(object: &Object<'a>) -> Option<(&'static str, Cow<'a, str>)> {
    ["phase", "state"].into_iter().find_map(|key| {
        let word = object.at(&["status", key])?.as_str()?;
        BAD_WORDS.iter().any(|bad| bad.eq_ignore_ascii_case(&word)).then_some((key, word))
    })
}

/// Returns the adverse condition that decides: the one of type `Failed`, else the first in the list; `None` if there is
/// none. Leaves out those of an older generation, those with a reason of [`RESTS`], and beside `Ready=True` all but the
/// types in [`BESIDE_READY`].
fn condition<'a>(object: &Object<'a>) -> Option<Value<'a>> {
    let conditions = object.at(&["status", "conditions"])?;
    let is_ready = || {
        let is = |it: Value<'_>, key, word| it.get(key).is_some_and(|own: Value<'_>| own.is_str(word));
        conditions.items().into_iter().flatten().any(|it| is(it, "type", "Ready") && is(it, "status", "True"))
    };
    let generation = object.at(&["metadata", "generation"]).and_then(Value::as_i64);
    let is_over = |condition: Value<'_>| {
        let observed = condition.get("observedGeneration").and_then(Value::as_i64);
        generation.zip(observed).is_some_and(|(generation, observed)| observed < generation)
    };
    let bad: Vec<_> = conditions
        .items()?
        .filter(|condition| {
            let name = text(*condition, "type");
            is_bad(&name, &text(*condition, "status"))
                && !is_over(*condition)
                && !RESTS.iter().any(|rests| text(*condition, "reason").ends_with(rests))
        })
        .collect();
    let is_ready = !bad.is_empty() && is_ready();
    let counts = |condition: &Value<'_>| {
        !is_ready || BESIDE_READY.iter().any(|name| text(*condition, "type") == *name)
    };
    let bad = || bad.iter().copied().filter(counts);
    bad().find(|condition| text(*condition, "type") == "Failed").or_else(|| bad().next())
}

fn is_bad(name: &str, status: &str) -> bool {
    match status {
        "True" => (BAD_WHEN_TRUE.contains(&name) || name.ends_with("Failed")) && !is_negated(name),
        "False" => {
            let is_part = name.ends_with("Ready") && name != "Ready";
            (BAD_WHEN_FALSE.contains(&name) || is_part) && !is_negated(name)
        }
        _ => false,
    }
}

/// Returns true if a word of `name`, a condition type in CamelCase, is in [`NEGATIONS`].
fn is_negated(name: &str) -> bool {
    let bytes = name.as_bytes();
    let begins = |at: usize| {
        let is_upper = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_uppercase);
        let is_lower = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_lowercase);
        at == 0 || is_upper(at) && (!is_upper(at - 1) || is_lower(at + 1))
    };
    let starts: Vec<usize> = (0..bytes.len()).filter(|at| begins(*at)).collect();
    let ends = starts.iter().copied().skip(1).chain([bytes.len()]);
    starts.iter().zip(ends).any(|(start, end)| {
        bytes.get(*start..end).is_some_and(|word| NEGATIONS.iter().any(|not| not.as_bytes() == word))
    })
}

/// Returns the `lastTransitionTime` of the adverse [`condition`] of `object`; `None` without one, or if it cannot be
/// parsed.
pub(crate) fn since(object: &Object<'_>) -> Option<Timestamp> {
    text(condition(object)?, "lastTransitionTime").parse().ok()
}

fn text<'a>(condition: Value<'a>, key: &str) -> Cow<'a, str> {
    condition.get(key).and_then(Value::as_str).unwrap_or_default()
}
