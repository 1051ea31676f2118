//! Transitions: the changes of apps that a source notes at the moment at which they happen, whether it can report or not.

use std::collections::HashMap;
use std::sync::Arc;

use taffrail_apps::Problem;
use taffrail_status::rollup::Counts;

use super::limits::Limited as _;
use super::{AppId, DeclaredHalf, HalfBody, HalfChange, HalfId, HalfMark, HalfSide, ObservedHalf, Speaker};

/// The contents of a half from some moment on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HalfThen<T> {
    /// The source had the half no more.
    Gone,
    /// The half, with what decides the state of its app alone.
    Is(Box<T>),
}

/// A change of the halves that a source has of one app, which may be a change of the app's state; with the other half, if
/// the source has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppTransition {
    /// The app.
    pub app: AppId,
    /// The declared half; `None` if the source does not have it, and did not have it before.
    pub declared: Option<HalfThen<DeclaredHalf>>,
    /// The observed half; `None` if the source does not have it, and did not have it before.
    pub observed: Option<HalfThen<ObservedHalf>>,
}

impl AppTransition {
    /// Cuts the texts to the limits of halves, as [`HalfBody::limit`] does.
    pub fn limit(&mut self) {
        if let Some(HalfThen::Is(half)) = &mut self.declared {
            half.limit();
        }
        if let Some(HalfThen::Is(half)) = &mut self.observed {
            half.limit();
        }
    }
}

/// A note of a source about one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Noted {
    /// The source has read the cluster: from now on it notes each transition.
    Begun,
    /// Apps changed.
    Changed(Vec<AppTransition>),
}

/// The halves of one cluster that changed since notes were last taken.
#[derive(Debug, Default)]
pub(super) struct HalfNotes {
    changed: Vec<(Arc<HalfId>, Option<HalfBody>)>,
    /// True once all halves of the cluster were set: what is set before is no change.
    has_begun: bool,
}

impl HalfNotes {
    /// Notes that a half is set, if it differs from that of before in more than what no state depends on.
    pub(super) fn set(
        &mut self,
        id: &Arc<HalfId>,
        before: Option<&(HalfBody, HalfMark)>,
        body: &HalfBody,
        mark: HalfMark,
    ) {
        let change = mark.change(before.map(|(_, mark)| mark));
        if matches!(change, None | Some(HalfChange::Volatile)) {
            return;
        }
        let now = body.state_alone();
        if before.is_none_or(|(before, _)| before.state_alone() != now) {
            self.changed.push((Arc::clone(id), Some(now)));
        }
    }

    /// Notes that a half is gone.
    pub(super) fn remove(&mut self, id: &Arc<HalfId>) {
        self.changed.push((Arc::clone(id), None));
    }

    /// Removes and returns the notes; `None` if there are none, or the cluster was not read.
    pub(super) fn take(&mut self, is_read: bool) -> Option<Noted> {
        let changed = std::mem::take(&mut self.changed);
        let had_begun = std::mem::replace(&mut self.has_begun, is_read);
        match (is_read, had_begun) {
            (false, _) => None,
            (true, false) => Some(Noted::Begun),
            (true, true) if changed.is_empty() => None,
            (true, true) => Some(Noted::Changed(together(changed))),
        }
    }
}

/// Joins the halves of each app: a row of which only one half is new would be shown as it never was.
fn together(changed: Vec<(Arc<HalfId>, Option<HalfBody>)>) -> Vec<AppTransition> {
    let mut places: HashMap<AppId, usize> = HashMap::new();
    let mut transitions: Vec<AppTransition> = Vec::new();
    for (id, body) in changed {
        let place = *places.entry(id.app.clone()).or_insert_with(|| {
            transitions.push(AppTransition { app: id.app.clone(), declared: None, observed: None });
            transitions.len() - 1
        });
        let Some(transition) = transitions.get_mut(place) else { continue };
        match (body, id.side) {
            (Some(HalfBody::Declared(body)), _) => transition.declared = Some(HalfThen::Is(body)),
            (Some(HalfBody::Observed(body)), _) => transition.observed = Some(HalfThen::Is(body)),
            (None, HalfSide::Declared) => transition.declared = Some(HalfThen::Gone),
            (None, HalfSide::Observed) => transition.observed = Some(HalfThen::Gone),
        }
    }
    transitions
}

impl HalfBody {
    /// Returns the parts of the half on which the state of its app depends, without messages, times and freshness.
    pub(super) fn state_alone(&self) -> HalfBody {
        match self {
            HalfBody::Declared(half) => {
                let DeclaredHalf { target, sync, suspended, own, problems, .. } = &**half;
                HalfBody::Declared(Box::new(DeclaredHalf {
                    suspended: *suspended,
                    own: own.as_deref().map(speaker_alone),
                    problems: problems.iter().map(problem_alone).collect(),
                    ..DeclaredHalf::new(String::new(), target.clone(), sync.state)
                }))
            }
            HalfBody::Observed(half) => {
                let ObservedHalf { health, worst, unmarked, .. } = &**half;
                HalfBody::Observed(Box::new(ObservedHalf {
                    worst: worst.as_deref().map(speaker_alone),
                    unmarked: unmarked.as_deref().map(problem_alone).map(Box::new),
                    ..ObservedHalf::new(*health, Counts::default())
                }))
            }
        }
    }
}

fn speaker_alone(speaker: &Speaker) -> Box<Speaker> {
    let Speaker { status, unconfirmed, problem, .. } = speaker;
    Box::new(Speaker {
        status: *status,
        rule: String::new(),
        unconfirmed: *unconfirmed,
        problem: problem_alone(problem),
    })
}

fn problem_alone(problem: &Problem) -> Problem {
    let Problem { axis, state, severity, .. } = problem;
    Problem {
        axis: *axis,
        state: state.clone(),
        severity: *severity,
        since: None,
        message: "".into(),
        object: None,
        upstream: None,
    }
}
