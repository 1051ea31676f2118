//! `wait`: what is waited for and why, line by line.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use taffrail_object::ObjectKey;
use taffrail_object::kinds::is_namespaced;
use taffrail_status::Status;

use super::chain::awaited_in_few;
use super::command::{explain, taffrail};
use super::{API_VERSION, AppName, LinkRow, time};
use crate::wait::{End, Row, Subject, Until, Verdict};
use crate::words::Words;

/// What is said of one target since now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitChange {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `WaitChange`.
    pub kind: &'static str,
    /// When it was seen.
    pub time: String,
    /// Name of the cluster.
    pub cluster: String,
    /// What it is, in short: `deployment/web`, `app/shop`.
    pub target: String,
    /// Which object, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKey>,
    /// Which app, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<AppName>,
    /// How it stands to what is waited for: `Met`, `Waiting`, `Hopeless` or `Unobserved`.
    pub verdict: &'static str,
    /// Its status, where it was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// One word in CamelCase.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why, in the words of the cause.
    #[serde(skip_serializing_if = "Words::is_empty")]
    pub message: Words,
    /// Since when it is not well, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// From the object to the cause; left out where it is well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<LinkRow>,
    /// Commands that tell more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
}

impl WaitChange {
    /// What a row says at `now`. Where `context` is given, it goes into the commands.
    pub fn new(row: &Row, now: Timestamp, context: Option<&str>) -> WaitChange {
        let judgement = &row.judgement;
        let (object, app) = match &judgement.subject {
            Subject::Object(key) => (Some(key.clone()), None),
            Subject::App(app) => (None, Some(AppName::from(app))),
            Subject::Named(_) => (None, None),
        };
        WaitChange {
            api_version: API_VERSION,
            kind: "WaitChange",
            time: time(now),
            cluster: judgement.cluster.clone(),
            target: judgement.subject.to_string(),
            object,
            app,
            verdict: judgement.verdict.as_str(),
            status: judgement.status.map(Status::as_str),
            reason: judgement.reason.clone(),
            message: judgement.message.clone(),
            since: judgement.since.map(time),
            chain: judgement.chain.iter().cloned().map(LinkRow).collect(),
            next: next(row, context).into_iter().collect(),
        }
    }
}

/// The command that tells more of what is not met.
fn next(row: &Row, context: Option<&str>) -> Option<String> {
    let judgement = &row.judgement;
    if judgement.verdict == Verdict::Met {
        return None;
    }
    match &judgement.subject {
        // What is not there has nothing to explain.
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
        Subject::App(app) => explain(app, context.is_some()),
        Subject::Named(_) => None,
    }
}

/// How waiting ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitSummary {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `WaitSummary`.
    pub kind: &'static str,
    /// When it ended.
    pub time: String,
    /// What was waited for.
    pub until: String,
    /// `Met`, `Failed`, `Timeout` or `Unobservable`.
    pub result: &'static str,
    /// How long it took.
    pub seconds: f64,
    /// How many targets there were.
    pub targets: usize,
    /// How many of them were as they shall be.
    pub met: usize,
    /// All of them, as they were at the end.
    pub items: Vec<WaitChange>,
}

impl WaitSummary {
    /// How waiting until `until` for `items` ended after `took`.
    pub fn new(
        until: &Until,
        end: End,
        took: Duration,
        mut items: Vec<WaitChange>,
        now: Timestamp,
    ) -> WaitSummary {
        awaited_in_few(&mut items);
        WaitSummary {
            api_version: API_VERSION,
            kind: "WaitSummary",
            time: time(now),
            until: until.to_string(),
            result: match end {
                End::Met => "Met",
                End::Failed => "Failed",
                End::Deadline { .. } => "Timeout",
                End::Unobservable => "Unobservable",
            },
            seconds: (took.as_secs_f64() * 1000.0).round() / 1000.0,
            targets: items.len(),
            met: items.iter().filter(|item| item.verdict == Verdict::Met.as_str()).count(),
            items,
        }
    }
}
