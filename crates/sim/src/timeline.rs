//! Timelines: recorded or written changes of a cluster, with their times, for replay.
//!
//! A timeline is YAML: a list of steps, written by a person or recorded from a real control plane.
//!
//! ```yaml
//! # Each step happens `at` a time since the timeline (or the turn of `steps`) began, or `after` the step before it.
//! - at: 0s
//!   object: {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
//! - after: 30s
//!   patch: {apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web}}
//!   with: {status: {readyReplicas: 0}}
//! - after: 1m
//!   delete: {apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: web-0}}
//! - after: 10s
//!   fault: unreachable
//! - after: 20s
//!   heal: unreachable
//! - at: 2m
//!   repeat: {every: 10m, times: 3}
//!   steps:
//!     - at: 0s
//!       object: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: beat}}
//! ```
//!
//! In texts, `${NOW}` is the time of the step and `${START}` that of the beginning of the timeline; `${NOW-90s}` and
//! `${START+5m}` are times relative to them. A text that is only `${GENERATION}` becomes the object's
//! `metadata.generation` after the step, as a number, for `observedGeneration`. `fault` is `unreachable`, `blackhole`
//! or `expired-certificate`; `heal` removes it.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use taffrail_object::duration;
use taffrail_object::yaml::{self, YamlError};

use crate::clock::{later, stamp};
use crate::fault::{Fault, Trouble};
use crate::managed::Writer;
use crate::patch;
use crate::state::Inner;

/// The reasons why a text is not a timeline.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimelineError {
    /// A text that is not YAML, or not a list of steps.
    #[error("the timeline is not YAML, or not a list of steps: {0}")]
    Yaml(YamlError),
    /// A time that is not a duration.
    #[error("step {step} of the timeline has {text:?} in place of a duration; write 90s, 5m or 1h30m")]
    Duration {
        /// The step, counted from 1 in its list.
        step: usize,
        /// The text.
        text: String,
    },
    /// A step without an action, or with more than one.
    #[error("step {0} of the timeline needs exactly one of object, patch, delete, fault, heal and steps")]
    Action(usize),
    /// A fault that timelines cannot set.
    #[error(
        "step {step} of the timeline has the unknown fault {text:?}; write unreachable, blackhole or expired-certificate"
    )]
    Fault {
        /// The step, counted from 1 in its list.
        step: usize,
        /// The text.
        text: String,
    },
}

/// A step of a [`Timeline`] that writes an object; times are still placeholders.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TimelineWrite<'t> {
    /// The time of the step since the timeline began.
    pub at: Duration,
    /// The field manager of the write; empty for the simulator's own controllers.
    pub by: &'t str,
    /// The whole object; for a patch, the identity of the patched object.
    pub object: &'t Value,
    /// The merge patch; `None` if the step writes the whole object.
    pub patch: Option<&'t Value>,
}

impl TimelineWrite<'_> {
    /// Changes `object` as this step does: replaces it, or applies the patch.
    pub fn write_into(&self, object: &mut Value) {
        match self.patch {
            Some(with) => patch::merge(object, with.clone(), true),
            None => *object = self.object.clone(),
        }
    }
}

/// The changes of a cluster, with their times, to be replayed.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    moments: Vec<Moment>,
}

#[derive(Debug, Clone)]
struct Moment {
    at: Duration,
    action: Arc<Action>,
}

#[derive(Debug)]
enum Action {
    /// Sets the whole state of an object.
    Set(Value, Writer),
    /// Applies a merge patch to an existing object.
    Change {
        object: Value,
        with: Value,
        by: Writer,
    },
    Remove(Value),
    Fault(Trouble),
    Heal(Trouble),
}

/// A step of a timeline, as the YAML file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    at: Option<String>,
    after: Option<String>,
    object: Option<Value>,
    patch: Option<Value>,
    with: Option<Value>,
    /// The field manager of the write; absent for a controller of the control plane.
    by: Option<String>,
    delete: Option<Value>,
    fault: Option<String>,
    heal: Option<String>,
    repeat: Option<Repeat>,
    steps: Option<Vec<Step>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Repeat {
    every: String,
    times: u32,
}

impl Timeline {
    /// Parses a timeline.
    ///
    /// # Errors
    /// If the text is not YAML or not a timeline.
    pub fn read(text: &str) -> Result<Timeline, TimelineError> {
        let steps = match recorded(text) {
            Some(steps) => steps,
            None => {
                let documents: Vec<Vec<Step>> = yaml::read_all(text).map_err(TimelineError::Yaml)?;
                documents.into_iter().flatten().collect()
            }
        };
        let mut timeline = Timeline::default();
        timeline.add(&steps, Duration::ZERO)?;
        // Steps at the same time happen in the order of the file.
        timeline.moments.sort_by_key(|moment| moment.at);
        Ok(timeline)
    }

    /// Returns the time from the beginning to the last step; zero without steps.
    pub fn length(&self) -> Duration {
        self.moments.last().map(|moment| moment.at).unwrap_or_default()
    }

    /// Returns the number of steps that act, repetitions included; a step with `steps` counts as these.
    pub fn len(&self) -> usize {
        self.moments.len()
    }

    /// Returns true if it has no steps.
    pub fn is_empty(&self) -> bool {
        self.moments.is_empty()
    }

    /// Lists the steps that write objects, in their order.
    pub fn writes(&self) -> impl Iterator<Item = TimelineWrite<'_>> {
        self.moments.iter().filter_map(|Moment { at, action }| match &**action {
            Action::Set(object, by) => Some(TimelineWrite { at: *at, by: &by.name, object, patch: None }),
            Action::Change { object, with, by } => {
                Some(TimelineWrite { at: *at, by: &by.name, object, patch: Some(with) })
            }
            Action::Remove(_) | Action::Fault(_) | Action::Heal(_) => None,
        })
    }

    fn add(&mut self, steps: &[Step], begin: Duration) -> Result<(), TimelineError> {
        let mut time = begin;
        for (index, step) in steps.iter().enumerate() {
            let number = index + 1;
            let parse = |text: &str| {
                duration(text).ok_or_else(|| TimelineError::Duration { step: number, text: text.to_owned() })
            };
            match (&step.at, &step.after) {
                (Some(at), _) => time = begin + parse(at)?,
                (None, Some(after)) => time += parse(after)?,
                (None, None) => {}
            }
            let (every, times) = match &step.repeat {
                Some(repeat) => (parse(&repeat.every)?, repeat.times),
                None => (Duration::ZERO, 1),
            };
            let trouble = |text: &String| {
                trouble(text).ok_or_else(|| TimelineError::Fault { step: number, text: text.clone() })
            };
            let by = step.by.as_deref().map(Writer::named).unwrap_or_default();
            let mut actions = Vec::new();
            actions.extend(step.object.clone().map(|object| Action::Set(object, by.clone())));
            if let Some(object) = step.patch.clone() {
                actions.push(Action::Change { object, by, with: step.with.clone().unwrap_or(json!({})) });
            }
            actions.extend(step.delete.clone().map(Action::Remove));
            actions.extend(step.fault.as_ref().map(trouble).transpose()?.map(Action::Fault));
            actions.extend(step.heal.as_ref().map(trouble).transpose()?.map(Action::Heal));
            if actions.len() + usize::from(step.steps.is_some()) != 1 {
                return Err(TimelineError::Action(number));
            }
            let action = actions.pop();
            let action = action.map(Arc::new);
            for turn in 0..times {
                let at = time + every.saturating_mul(turn);
                match (&action, &step.steps) {
                    (Some(action), _) => self.moments.push(Moment { at, action: action.clone() }),
                    (None, steps) => self.add(steps.as_deref().unwrap_or_default(), at)?,
                }
            }
        }
        Ok(())
    }

    /// Plans all steps of the timeline, beginning now.
    pub(crate) fn plan(&self, inner: &Arc<Inner>) {
        let begin = inner.fleet.clock.now();
        for moment in &self.moments {
            let due = later(begin, moment.at);
            let action = moment.action.clone();
            inner.plan(due, move |inner| act(inner, &action, begin));
        }
    }
}

/// Returns the fault that timelines call `name`; `None` for an unknown name.
fn trouble(name: &str) -> Option<Trouble> {
    match name {
        "unreachable" => Some(Trouble::Unreachable),
        "blackhole" => Some(Trouble::Blackhole),
        "expired-certificate" => Some(Trouble::ExpiredCertificate),
        _ => None,
    }
}

/// Plays the timeline `next(turn)` now, and plans the following ones, one after each `every`.
pub(crate) fn play_again(
    inner: &Arc<Inner>,
    every: Duration,
    turn: u64,
    next: Arc<dyn Fn(u64) -> Timeline + Send + Sync>,
) {
    next(turn).plan(inner);
    let due = later(inner.fleet.clock.now(), every);
    inner.plan(due, move |inner| play_again(inner, every, turn + 1, next));
}

/// Parses a recording, in which each line that is not empty or a comment is `- ` and a step in JSON, much faster than
/// as YAML; `None` if a line has another form.
fn recorded(text: &str) -> Option<Vec<Step>> {
    let steps = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    steps.map(|line| serde_json::from_str(line.strip_prefix("- ")?).ok()).collect()
}

/// Carries out a step of a timeline that began at `begin`. If the server refuses the write, nothing happens: a user
/// may have deleted its namespace meanwhile.
fn act(inner: &Arc<Inner>, action: &Action, begin: Timestamp) {
    let now = inner.fleet.clock.now();
    match action {
        Action::Set(object, by) => {
            let object = filled(object, now, begin);
            if let Ok(target) = inner.target_of(&object) {
                let _ = inner.impose_completed(&target, object, by, complete);
            }
        }
        Action::Change { object, with, by } => {
            let Ok(target) = inner.target_of(object) else { return };
            let changed = |mut current: Value| {
                patch::merge(&mut current, filled(with, now, begin), true);
                Some(current)
            };
            inner.impose_change(&target, by, changed, complete);
        }
        Action::Fault(trouble) => drop(inner.fault(Fault::new(trouble.clone()))),
        Action::Heal(trouble) => inner.heal_trouble(trouble),
        Action::Remove(object) => {
            if let Ok(target) = inner.target_of(object) {
                inner.remove(&target);
            }
        }
    }
}

/// Replaces `${GENERATION}` in an object by its generation.
fn complete(object: &mut Value) {
    let generation = object["metadata"]["generation"].clone();
    fill_generation(object, &generation);
}

const GENERATION: &str = "${GENERATION}";

fn fill_generation(value: &mut Value, generation: &Value) {
    match value {
        Value::String(text) if text == GENERATION => *value = generation.clone(),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_generation(item, generation)),
        Value::Object(members) => members.values_mut().for_each(|member| fill_generation(member, generation)),
        _ => {}
    }
}

/// Returns `value` with the placeholders `${…}` of times replaced in all its texts, at any depth.
fn filled(value: &Value, now: Timestamp, begin: Timestamp) -> Value {
    match value {
        Value::String(text) if text.contains("${") => Value::String(fill(text, now, begin)),
        Value::Array(items) => items.iter().map(|item| filled(item, now, begin)).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), filled(value, now, begin))).collect()
        }
        plain => plain.clone(),
    }
}

/// Returns a text in which the placeholders of times are replaced; invalid placeholders stay.
fn fill(text: &str, now: Timestamp, begin: Timestamp) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let after = &rest[start + 2..];
        let time = after.find('}').and_then(|end| Some((moment(&after[..end], now, begin)?, end)));
        match time {
            Some((time, end)) => {
                out.push_str(&rest[..start]);
                out.push_str(&stamp(time));
                rest = &after[end + 1..];
            }
            None => {
                out.push_str(&rest[..start + 2]);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Parses a placeholder of a time, `NOW`, `NOW-90s` or `START+5m`, relative to `now` and `begin`; `None` if it is
/// invalid.
fn moment(text: &str, now: Timestamp, begin: Timestamp) -> Option<Timestamp> {
    let (base, rest) = match (text.strip_prefix("NOW"), text.strip_prefix("START")) {
        (Some(rest), _) => (now, rest),
        (_, Some(rest)) => (begin, rest),
        _ => return None,
    };
    let signed = |text: &str| SignedDuration::try_from(duration(text)?).ok();
    match rest.split_at_checked(1) {
        None => Some(base),
        Some(("+", ahead)) => Some(later(base, signed(ahead)?)),
        Some(("-", ago)) => Some(later(base, -signed(ago)?)),
        _ => None,
    }
}

/// Parses a duration such as `90s`, `1h30m`, `500ms`, `1.5s` or `1d`; `None` if it is invalid.
fn duration(text: &str) -> Option<Duration> {
    duration::parse_with_days(text.trim())?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_and_invalid_ones_refused() {
        assert_eq!(duration("1h30m"), Some(Duration::from_secs(5400)));
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        for bad in ["", "5", "s", "1x", "-1s", "1..2s"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn timeline_steps_follow_each_other_and_repeat() {
        let text = "
- at: 10s
  object: {kind: A}
- after: 5s
  delete: {kind: A}
- at: 1m
  repeat: {every: 30s, times: 3}
  steps:
    - {at: 1s, object: {kind: B}}
    - {after: 1s, object: {kind: C}}
";
        let timeline = Timeline::read(text).expect("a timeline");
        let times: Vec<u64> = timeline.moments.iter().map(|moment| moment.at.as_secs()).collect();
        assert_eq!(times, [10, 15, 61, 62, 91, 92, 121, 122]);
        let writes: Vec<u64> = timeline.writes().map(|write| write.at.as_secs()).collect();
        assert_eq!(writes, [10, 61, 62, 91, 92, 121, 122], "a deletion writes no object");
        assert!(matches!(Timeline::read("- {at: 1s}"), Err(TimelineError::Action(1))));
        assert!(matches!(Timeline::read("- {at: soon, object: {}}"), Err(TimelineError::Duration { .. })));
        assert!(matches!(Timeline::read("- {at: 1s, objekt: {}}"), Err(TimelineError::Yaml(_))));
    }

    #[test]
    fn fast_recording_parser_equals_the_yaml_parser() {
        let text = "# Recorded.\n- {\"at\": \"1.5s\", \"object\": {\"kind\": \"A\"}}\n\n- {\"after\": \"1s\", \"delete\": {\"kind\": \"A\"}}\n";
        let timeline = Timeline::read(text).expect("a timeline");
        assert!(recorded(text).is_some_and(|steps| steps.len() == timeline.len()));
        assert_eq!(timeline.length(), Duration::from_millis(2500));
        // Texts of another form are left to YAML, which has the errors.
        assert!(recorded("- {at: 1s}").is_none());
        let unknown = "- {\"at\": \"1s\", \"objekt\": {}}";
        assert!(matches!(Timeline::read(unknown), Err(TimelineError::Yaml(_))));
    }

    #[test]
    fn time_placeholders_are_filled_in() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().expect("a time");
        let begin: Timestamp = "2026-01-02T03:00:00Z".parse().expect("a time");
        let fill = |text: &str| fill(text, now, begin);
        assert_eq!(fill("at ${NOW-65s} and ${NOW}"), "at 2026-01-02T03:03:00Z and 2026-01-02T03:04:05Z");
        assert_eq!(fill("${START+1m}, ${START}"), "2026-01-02T03:01:00Z, 2026-01-02T03:00:00Z");
        assert_eq!(fill("${NOW ${HOME} ${NOW*2}"), "${NOW ${HOME} ${NOW*2}");
    }
}
