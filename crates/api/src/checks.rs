//! Checks on their way between the hub, which knows the apps that name them, and what evaluates them.

use std::sync::Arc;
use std::time::Duration;

use taffrail_apps::{CheckResult, ClusterId, DeclaredCheck, Problem};

use crate::report::{AppId, DeclaredHalf};

/// An app that names checks.
#[derive(Debug, Clone)]
pub struct CheckedApp {
    /// The app.
    pub app: Arc<AppId>,
    /// The cluster that holds the app's objects, about which the checks ask.
    pub target: ClusterId,
    /// The names that this cluster has and no other one; empty if the hub does not have it, or it has none.
    pub names: Arc<[String]>,
    /// The declaration, with the checks.
    pub declared: Arc<DeclaredHalf>,
}

/// The result of a check of an app in a cluster, as it was just evaluated.
#[derive(Debug, Clone)]
pub struct EvaluatedCheck {
    /// The app.
    pub app: Arc<AppId>,
    /// The cluster that the check asked about.
    pub target: ClusterId,
    /// The check as the app declared it then. The result counts only while it does.
    pub asked: DeclaredCheck,
    /// The result, without times.
    pub result: CheckResult,
    /// The age of the value.
    pub age: Duration,
    /// The time from now for which the result counts; after it there is no data.
    pub live: Duration,
}

/// The results of the checks of an app as its row shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToldChecks {
    /// The results, sorted by name.
    pub results: Vec<CheckResult>,
    /// The problems that they are.
    pub problems: Vec<Problem>,
}
