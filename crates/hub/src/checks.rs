//! The results of checks that the hub holds, by app. They are evaluated again after a restart, and never saved.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use taffrail_api::checks::{EvaluatedCheck, ToldChecks};
use taffrail_api::report::{AppId, DeclaredHalf};
use taffrail_apps::{CheckAnswer, CheckResult, ClusterId, DeclaredCheck};

use crate::clock::HubTime;

/// The results of checks, of those apps that name some.
#[derive(Debug, Default)]
pub(crate) struct FleetChecks {
    of_app: HashMap<AppId, Vec<HeldCheck>>,
    /// The moments at which results stop to count. A result that was replaced leaves its moment here.
    ends: BTreeSet<(Duration, AppId)>,
    /// True if nothing evaluates checks in this hub.
    is_off: bool,
}

/// A result with the question to which it is the answer.
#[derive(Debug)]
struct HeldCheck {
    target: ClusterId,
    asked: DeclaredCheck,
    result: CheckResult,
    /// The moment at which the result stops to count.
    end: Duration,
}

impl HeldCheck {
    fn is_of(&self, target: &ClusterId, asked: &DeclaredCheck) -> bool {
        self.asked == *asked && self.target == *target
    }
}

impl FleetChecks {
    /// Sets that nothing evaluates checks in this hub. That they have no data is no problem then.
    pub(crate) fn switch_off(&mut self) {
        self.is_off = true;
    }

    /// Takes a result at a moment; returns true if the row of the app changes by it.
    pub(crate) fn take(&mut self, evaluated: EvaluatedCheck, HubTime { at, now }: HubTime) -> bool {
        let EvaluatedCheck { app, target, asked, result, age, live } = evaluated;
        let time = before(now, age);
        let end = at.saturating_add(live);
        self.ends.insert((end, AppId::clone(&app)));
        let held = self.of_app.entry(AppId::clone(&app)).or_default();
        let old = held.iter_mut().find(|it| it.asked.name == asked.name);
        let same = old.as_ref().filter(|old| old.is_of(&target, &asked) && old.end > at);
        let since = same.filter(|old| old.result.result == result.result).and_then(|old| old.result.since);
        // Without data nothing was observed, and equal results need no new row.
        let observed_at = time.filter(|_| result.result != CheckAnswer::NoData);
        let result = CheckResult { observed_at, since: since.or(time), ..result };
        let is_news = same.is_none_or(|old| old.result != result);
        let new = HeldCheck { target, asked, result, end };
        match old {
            Some(old) => *old = new,
            None => held.push(new),
        }
        is_news
    }

    /// Removes and returns the apps of which a result stopped to count until the moment `at`.
    pub(crate) fn ended(&mut self, at: Duration) -> Vec<AppId> {
        let mut apps = Vec::new();
        while let Some((_, app)) = self.ends.first().filter(|(end, _)| *end <= at) {
            apps.push(app.clone());
            self.ends.pop_first();
        }
        apps
    }

    /// Drops the results of checks that an app does not declare any more; all if it is gone.
    pub(crate) fn keep(&mut self, app: &AppId, declared: Option<&DeclaredHalf>) {
        let Some(held) = self.of_app.get_mut(app) else { return };
        let is_asked = |held: &HeldCheck, declared: &DeclaredHalf| {
            declared.checks.iter().any(|check| held.is_of(&declared.target, check))
        };
        held.retain(|held| declared.is_some_and(|declared| is_asked(held, declared)));
        if held.is_empty() {
            self.of_app.remove(app);
        }
    }

    /// Returns the results of the checks that an app declares, as they are at the moment `at`; `None` if it declares none.
    pub(crate) fn told(&self, app: &AppId, declared: &DeclaredHalf, at: Duration) -> Option<Arc<ToldChecks>> {
        if declared.checks.is_empty() {
            return None;
        }
        let held = self.of_app.get(app).map(Vec::as_slice).unwrap_or_default();
        let result = |check: &DeclaredCheck| {
            if let Some(fault) = &check.fault {
                return CheckResult::no_data(&check.name, fault.as_str());
            }
            match held.iter().find(|held| held.is_of(&declared.target, check)) {
                Some(held) if held.end > at => held.result.clone(),
                Some(held) => CheckResult {
                    observed_at: held.result.observed_at,
                    ..CheckResult::no_data(&check.name, "the last result is too old")
                },
                None if self.is_off => {
                    CheckResult::no_data(&check.name, "this hub has no checks to evaluate")
                }
                None => CheckResult::no_data(&check.name, "the check was not evaluated yet"),
            }
        };
        let results: Vec<CheckResult> = declared.checks.iter().map(result).collect();
        let problems = results.iter().filter(|_| !self.is_off).filter_map(CheckResult::problem).collect();
        Some(Arc::new(ToldChecks { results, problems }))
    }
}

fn before(now: Timestamp, age: Duration) -> Option<Timestamp> {
    now.checked_sub(SignedDuration::try_from(age).ok()?).ok()
}
