//! The output of `wait`: the state of each target after a change, and the result.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_apps::{
    Words,
    command::{of_app, taffrail},
    wait::{End, Row, Subject, Until, WaitState},
};
use taffrail_object::ObjectKey;
use taffrail_object::kinds::is_namespaced;
use taffrail_status::Status;
use taffrail_status::assess::CauseStep;

use crate::chain::awaited_in_few;
use crate::{API_VERSION, AppName};

/// The state of one target of `wait` after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WaitChange {
    /// Always [`API_VERSION`].
    pub api_version: Cow<'static, str>,
    /// Always `WaitChange`.
    pub kind: Cow<'static, str>,
    /// The time at which the state was determined.
    pub time: Timestamp,
    /// Name of the cluster in which the target is looked for; for an app, of the one that holds its objects.
    pub cluster: String,
    /// The target in short: `deployment/web`, `app/shop`.
    pub target: String,
    /// The object, if the target is an object; else left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKey>,
    /// The app, if the target is an app; else left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<AppName>,
    /// The state with respect to the condition: `Met`, `Waiting`, `Hopeless` or `Unobserved`.
    pub verdict: WaitState,
    /// The status of the target; left out if it was not observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// The reason of the status in one CamelCase word; left out if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The reason why the target meets the condition or not, or the message of the root cause, in one line; left out if
    /// there is none.
    #[serde(default, skip_serializing_if = "Words::is_empty")]
    pub message: Words,
    /// The time since when the target is not well, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The cause chain, from the object to the root cause; left out for a target that is Ready or was not observed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<Arc<CauseStep>>,
    /// Command lines that show more about the target; left out if it meets the condition, or if none helps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
}

impl WaitChange {
    /// Makes the row of a target whose state was determined at the time `now`. If `context` is given, the commands have
    /// `--context`: for an object with `context`, for an app with its home and target cluster.
    pub fn new(row: &Row, now: Timestamp, context: Option<&str>) -> WaitChange {
        let judgement = &row.judgement;
        let (object, app) = match &judgement.subject {
            Subject::Object(key) => (Some(key.clone()), None),
            Subject::App(app) => (None, Some(AppName::from(app))),
            Subject::Named(_) => (None, None),
        };
        WaitChange {
            api_version: API_VERSION.into(),
            kind: "WaitChange".into(),
            time: now,
            cluster: judgement.cluster.clone(),
            target: judgement.subject.to_string(),
            object,
            app,
            verdict: judgement.verdict,
            status: judgement.status,
            reason: judgement.reason.clone(),
            message: judgement.message.clone(),
            since: judgement.since,
            chain: judgement.chain.clone(),
            next: next(row, context).into_iter().collect(),
        }
    }
}

/// Returns the `taffrail explain` command for a target, if `context` is given with `--context`: for an object with
/// `context`, for an app with its home and target cluster. `None` if the target meets the condition, is an object that
/// does not exist, has neither an object nor an app, or has a name that could be taken for an option.
fn next(row: &Row, context: Option<&str>) -> Option<String> {
    let judgement = &row.judgement;
    if judgement.verdict == WaitState::Met {
        return None;
    }
    match &judgement.subject {
        // An object that does not exist has nothing to explain.
        Subject::Object(_) if judgement.status == Some(Status::NotFound) => None,
        Subject::Object(key) => {
            let name = format!("{}/{}", key.kind.to_lowercase(), key.name);
            // Kinds of other groups may have the same name.
            let well_known = is_namespaced(&key.group, &key.kind).is_some();
            match well_known {
                true => taffrail(&["explain", &name], &key.namespace, context),
                false => taffrail(&["explain", &key.to_string()], "", context),
            }
        }
        Subject::App(app) => of_app(&["explain"], app, context.is_some()),
        Subject::Named(_) => None,
    }
}

/// The reason why `wait` ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WaitResult {
    /// All targets meet the condition.
    Met,
    /// All targets that do not meet the condition are `Hopeless`, so that Taffrail stopped waiting before the timeout.
    Failed,
    /// The time of `--timeout` passed.
    Timeout,
    /// No target is left to wait for: of those that do not meet the condition, none can be read (but `Hopeless` ones,
    /// if waiting ends early for them).
    Unobservable,
}

/// The result of the whole command `wait`, with the final state of each target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WaitSummary {
    /// Always [`API_VERSION`].
    pub api_version: Cow<'static, str>,
    /// Always `WaitSummary`.
    pub kind: Cow<'static, str>,
    /// The time at which waiting ended.
    pub time: Timestamp,
    /// The condition, as `--for` takes it.
    pub until: String,
    /// The result of waiting: `Met`, `Failed`, `Timeout` or `Unobservable`.
    pub result: WaitResult,
    /// The duration of waiting in seconds.
    pub seconds: f64,
    /// Number of targets in all clusters.
    pub targets: usize,
    /// Number of targets that met the condition.
    pub met: usize,
    /// All targets, each with its state at the end.
    pub items: Vec<WaitChange>,
}

impl WaitSummary {
    /// Makes the summary of a run that waited for `until`, ended for the reason `end` at the time `now` after `took`,
    /// and left the targets in the states `items`. Shortens cause chains that many of them share.
    pub fn new(
        until: &Until,
        end: End,
        took: Duration,
        mut items: Vec<WaitChange>,
        now: Timestamp,
    ) -> WaitSummary {
        awaited_in_few(&mut items);
        WaitSummary {
            api_version: API_VERSION.into(),
            kind: "WaitSummary".into(),
            time: now,
            until: until.to_string(),
            result: match end {
                End::Met => WaitResult::Met,
                End::Failed => WaitResult::Failed,
                End::Deadline { .. } => WaitResult::Timeout,
                End::Unobservable => WaitResult::Unobservable,
            },
            seconds: (took.as_secs_f64() * 1000.0).round() / 1000.0,
            targets: items.len(),
            met: items.iter().filter(|item| item.verdict == WaitState::Met).count(),
            items,
        }
    }
}
