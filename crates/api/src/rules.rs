//! The answers of `taffrail rules`: the kinds that have rules, the rules that apply to an object, and failed cases and
//! lint findings.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use taffrail_status::Status;

use crate::{API_VERSION, ErrorRow, List, ListItem};

/// The answer of `rules list`: the kinds that have rules.
pub type RuleList = List<RuleRow>;

/// The rules of one origin for one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RuleRow {
    /// The API group of the kind; `*.` at its beginning stands for any prefix.
    pub group: String,
    /// The kind, or a pattern of kinds with `*`; `*` alone stands for all other kinds of the group.
    pub kind: String,
    /// The origin of the rules: `user`, `shipped` or `builtin`.
    pub origin: Cow<'static, str>,
    /// Number of branches of rules in YAML; 0 for scripts and built-in rules.
    pub branches: usize,
    /// The URL of the documentation of the kind's fields; for a script, its language; empty for built-in rules.
    pub source: String,
}

impl ListItem for RuleRow {
    const LIST: &'static str = "RuleList";
}

/// An object, the rule that decides its status, and all rules in YAML that apply to its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RulingRow {
    /// API group; empty for the core group.
    pub group: String,
    /// API version, without the group.
    pub version: String,
    /// Name of the kind.
    pub kind: String,
    /// Namespace of the object; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// The status of the object by the rules alone, without evidence beside the object.
    pub status: Status,
    /// True if the rules find that a user suspended the object.
    pub suspended: bool,
    /// The message of the status, for people.
    pub message: String,
    /// The name of the rule that decided; of rules in YAML with the number of the branch after `#`.
    pub rule: String,
    /// The rules in YAML for the kind, in order of evaluation.
    pub asked: Vec<AskedRules>,
}

impl ListItem for RulingRow {
    const LIST: &'static str = "RulingList";
}

/// The rules in YAML of one origin (`user` or `shipped`) that apply to an object, with the result of each branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AskedRules {
    /// The name of the rules, such as `shipped/cert-manager.io/Certificate`.
    pub rule: String,
    /// The URL of the documentation of the kind's fields.
    pub source: String,
    /// The branches, in order of evaluation.
    pub branches: Vec<AskedBranch>,
}

/// A branch of rules, and its result for an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AskedBranch {
    /// The number of the branch, from 1.
    pub number: usize,
    /// The status of an object for which this branch decides.
    pub status: Status,
    /// True if an object for which this branch decides counts as suspended.
    pub suspended: bool,
    /// True if all tests of the branch hold for the object.
    pub holds: bool,
    /// True if this branch decides the status: the first one that holds, unless other rules decided before.
    pub decides: bool,
}

/// The result of `rules test` or `rules lint`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RuleTrial {
    /// Always [`API_VERSION`].
    pub api_version: Cow<'static, str>,
    /// The kind of the answer: `RuleTest` or `RuleLint`.
    pub kind: Cow<'static, str>,
    /// Number of test cases that passed.
    pub passed: usize,
    /// Number of items: of failed cases and files that could not be read, for `RuleLint` also of lint findings.
    pub failed: usize,
    /// The failed cases and the files that could not be read; for `RuleLint` also the lint findings.
    pub items: Vec<RuleFaultRow>,
    /// Always empty.
    #[serde(default)]
    pub errors: Vec<ErrorRow>,
}

impl RuleTrial {
    /// Makes the result of kind `kind`, `RuleTest` or `RuleLint`, in which `passed` cases passed and each of `items`
    /// failed.
    pub fn new(kind: &'static str, passed: usize, items: Vec<RuleFaultRow>) -> RuleTrial {
        let (api_version, failed) = (API_VERSION.into(), items.len());
        RuleTrial { api_version, kind: kind.into(), passed, failed, items, errors: Vec::new() }
    }
}

/// A case that fails, a file that cannot be read, or a lint finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RuleFaultRow {
    /// The path of the file; left out for a lint finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The kind of objects whose rules are meant; left out if the fault is not about one kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The name of the failed test case; left out for other faults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The message, for people.
    pub message: String,
    /// Advice on how to correct the fault; left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
