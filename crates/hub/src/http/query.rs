//! The table of query parameters, by which requests are parsed and the OpenAPI document is made.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use taffrail_api::filter::SortField;
use taffrail_apps::{Axis, Delivery};
use taffrail_object::LabelSelector;

use super::problem::Refusal;
use crate::index::{AppFilter, GroupBy};

/// The number of rows of a page if a request has no `limit`.
const DEFAULT_LIMIT: usize = 100;

/// The greatest number of rows of a page; a greater `limit` is refused.
pub(crate) const MAX_LIMIT: usize = 500;

/// The greatest number of comma-separated values of all parameters of one request; a request with more is refused.
const MAX_VALUES: usize = 1_000;

/// The names of all JSON fields of an app's row, which `fields` may select.
pub(crate) const APP_FIELDS: &[&str] = &[
    "key",
    "cluster",
    "home",
    "delivery",
    "namespace",
    "name",
    "health",
    "effective",
    "problem",
    "problems",
    "since",
    "message",
    "worst",
    "worstUnconfirmed",
    "counts",
    "objects",
    "unconfirmed",
    "sync",
    "suspended",
    "freshness",
    "source",
    "upstreams",
    "upstreamsLeftOut",
    "checks",
    "unobserved",
    "said",
];

/// The parsed query parameters of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) filter: AppFilter,
    pub(crate) sort: Option<SortField>,
    pub(crate) limit: usize,
    pub(crate) cursor: Option<String>,
    /// The fields of rows to return; empty for all.
    pub(crate) fields: Vec<&'static str>,
    pub(crate) group_by: Option<GroupBy>,
    /// The label of clusters whose value each column of the matrix has; `None` for none.
    pub(crate) label: Option<String>,
    pub(crate) home: Option<String>,
    /// The past time to answer for; `None` for now.
    pub(crate) at: Option<Timestamp>,
    /// The range of history to answer with: from `from` (inclusive) to `to` (exclusive); `None` for no bound.
    pub(crate) from: Option<Timestamp>,
    pub(crate) to: Option<Timestamp>,
}

impl Default for Query {
    fn default() -> Query {
        Query {
            filter: AppFilter::default(),
            sort: None,
            limit: DEFAULT_LIMIT,
            cursor: None,
            fields: Vec::new(),
            group_by: None,
            label: None,
            home: None,
            at: None,
            from: None,
            to: None,
        }
    }
}

/// The definition of a query parameter.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "a test makes the OpenAPI document of it"))]
    pub(crate) about: &'static str,
    pub(crate) form: ParameterForm,
    set: fn(&mut Query, &str) -> Result<(), Why>,
}

/// The values that a query parameter accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ParameterForm {
    /// A text, in a form of the parameter's own if it has one; the parameter may be given once.
    Text,
    /// Texts, in a form of the parameter's own if it has one, separated by commas or given several times.
    List,
    /// Some of these words, separated by commas or given several times.
    Words(&'static [&'static str]),
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these words, or this prefix followed by the name of a label.
    WordOrLabel(&'static [&'static str], &'static str),
    /// A number from the first to the second bound, both inclusive.
    Number(usize, usize),
    /// `true` or `false`; an empty value counts as `true`.
    Truth,
    /// A time in RFC 3339, such as `2026-03-01T12:00:00Z`.
    Time,
}

/// The text that says why a parameter's value is wrong.
type Why = Cow<'static, str>;

fn why(error: impl fmt::Display) -> Why {
    Cow::Owned(error.to_string())
}

const SORTS: &[&str] = &["name", "status", "cluster", "since", "delivery"];
const AXES: &[&str] = &["health", "sync", "source", "freshness", "check"];
const GROUPS: &[&str] =
    &["cluster", "home", "namespace", "name", "key", "delivery", "status", "sync", "problem", "source"];

/// The prefix of the label of clusters by whose values `group-by` groups.
const CLUSTER_LABEL: &str = "cluster-label:";

/// All query parameters; each endpoint accepts those that it names.
pub(crate) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "status",
        about: "Only rows with one of these statuses, or after '!' with none: `Ready,InProgress` or `!Ready`. A healthy app with another problem does not match Ready, but any list after '!', unless the problem is a notice.",
        form: ParameterForm::Text,
        set: |query, value| {
            query.filter.status = Some(value.parse().map_err(why)?);
            Ok(())
        },
    },
    Parameter {
        name: "problems",
        about: "Only apps with a problem, notices included: on these axes, or on any if the value is empty.",
        form: ParameterForm::Words(AXES),
        set: |query, value| {
            let axes = query.filter.problems.get_or_insert_default();
            for word in words(value) {
                axes.insert(match word {
                    "health" => Axis::Health,
                    "sync" => Axis::Sync,
                    "source" => Axis::Source,
                    "freshness" => Axis::Freshness,
                    "check" => Axis::Check,
                    _ => return Err(one_of(word, AXES)),
                });
            }
            Ok(())
        },
    },
    Parameter {
        name: "sync",
        about: "Only apps with one of these sync states, or after '!' with none: `Failed,OutOfSync` or `!Synced,Syncing`. Apps known only by labels have no sync state.",
        form: ParameterForm::Text,
        set: |query, value| {
            query.filter.sync = Some(value.parse().map_err(why)?);
            Ok(())
        },
    },
    Parameter {
        name: "check",
        about: "Only apps with one of these results of checks: `NAME`, `NAME=false`, `NAME=nodata` or `NAME=true`.",
        form: ParameterForm::List,
        set: |query, value| {
            for word in words(value) {
                query.filter.checks.push(word.parse().map_err(why)?);
            }
            Ok(())
        },
    },
    Parameter {
        name: "delivery",
        about: "Only apps of these delivery tools: `flux-kustomization` or `ks`, `helm`, …",
        form: ParameterForm::List,
        set: |query, value| {
            for word in words(value) {
                query.filter.deliveries.push(Delivery::of_word(word).map_err(why)?);
            }
            Ok(())
        },
    },
    Parameter {
        name: "suspended",
        about: "Only apps that are suspended.",
        form: ParameterForm::Truth,
        set: |query, value| {
            query.filter.suspended = truth(value)?;
            Ok(())
        },
    },
    Parameter {
        name: "selector",
        about: "Only apps whose declaring object matches this label selector, as kubectl takes it: `team=web,tier!=db`.",
        form: ParameterForm::Text,
        set: |query, value| {
            query.filter.labels = Some(selector(value)?);
            Ok(())
        },
    },
    Parameter {
        name: "cluster-selector",
        about: "Only rows of clusters whose labels match this selector, as kubectl takes it: `env=prod,region!=eu`.",
        form: ParameterForm::Text,
        set: |query, value| {
            query.filter.cluster_labels = Some(selector(value)?);
            Ok(())
        },
    },
    Parameter {
        name: "cluster",
        about: "Only rows of these clusters, by name, alias or identity.",
        form: ParameterForm::List,
        set: |query, value| {
            query.filter.clusters.extend(words(value).map(str::to_owned));
            Ok(())
        },
    },
    Parameter {
        name: "namespace",
        about: "Only apps whose declaring object is in one of these namespaces.",
        form: ParameterForm::List,
        set: |query, value| {
            query.filter.namespaces.extend(words(value).map(str::to_owned));
            Ok(())
        },
    },
    Parameter {
        name: "name",
        about: "Only these apps: `NAME`, `NAMESPACE/NAME` or `DELIVERY/NAMESPACE/NAME`.",
        form: ParameterForm::List,
        set: |query, value| {
            for word in words(value) {
                query.filter.names.push(word.parse().map_err(why)?);
            }
            Ok(())
        },
    },
    Parameter {
        name: "text",
        about: "Only rows that contain each of these words, separated by spaces, in the name of the cluster; of apps also in key, namespace, name, or the message of a problem. Up to eight words count.",
        form: ParameterForm::Text,
        set: |query, value| {
            value.clone_into(&mut query.filter.text);
            Ok(())
        },
    },
    Parameter {
        name: "sort",
        about: "The field to sort by. Without it rows are in the order in which the hub learned of their clusters; then by namespace, name and delivery.",
        form: ParameterForm::Word(SORTS),
        set: |query, value| {
            query.sort = Some(match value {
                "name" => SortField::Name,
                "status" => SortField::Status,
                "cluster" => SortField::Cluster,
                "since" => SortField::Since,
                "delivery" => SortField::Delivery,
                _ => return Err(one_of(value, SORTS)),
            });
            Ok(())
        },
    },
    Parameter {
        name: "limit",
        about: "The greatest number of rows of the page.",
        form: ParameterForm::Number(1, MAX_LIMIT),
        set: |query, value| {
            let limit = value.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
            query.limit =
                limit.ok_or_else(|| why(format!("'{value}' is not a number from 1 to {MAX_LIMIT}")))?;
            Ok(())
        },
    },
    Parameter {
        name: "cursor",
        about: "The value of `next` in the page before, whose other parameters must be the same.",
        form: ParameterForm::Text,
        set: |query, value| {
            query.cursor = Some(value.to_owned());
            Ok(())
        },
    },
    Parameter {
        name: "fields",
        about: "Only these fields of each row, such as `name,cluster,effective`.",
        form: ParameterForm::Words(APP_FIELDS),
        set: |query, value| {
            for word in words(value) {
                let found = APP_FIELDS.iter().find(|field| **field == word);
                query.fields.push(found.ok_or_else(|| one_of(word, APP_FIELDS))?);
            }
            Ok(())
        },
    },
    Parameter {
        name: "group-by",
        about: "Instead of apps, the number of apps for each value of this field, or of a label of their clusters: `cluster-label:region`.",
        form: ParameterForm::WordOrLabel(GROUPS, CLUSTER_LABEL),
        set: |query, value| {
            query.group_by = match value.strip_prefix(CLUSTER_LABEL).filter(|label| !label.is_empty()) {
                Some(label) => Some(GroupBy::ClusterLabel(label.to_owned())),
                None => {
                    let found = GroupBy::ALL.into_iter().find(|(word, _)| *word == value);
                    let unknown = || why(format!("{}, or {CLUSTER_LABEL}LABEL", one_of(value, GROUPS)));
                    Some(found.ok_or_else(unknown)?.1)
                }
            };
            Ok(())
        },
    },
    Parameter {
        name: "label",
        about: "With each column the value that its cluster now has for this label, such as `region`.",
        form: ParameterForm::Text,
        set: |query, value| {
            query.label = Some(value.to_owned());
            Ok(())
        },
    },
    Parameter {
        name: "home",
        about: "The cluster that declares the app, by name, alias or identity; needed only if several declare one of this name.",
        form: ParameterForm::Text,
        set: |query, value| {
            query.home = Some(value.to_owned());
            Ok(())
        },
    },
    Parameter {
        name: "at",
        about: "Instead of the present states, those at this time, such as `2026-03-01T12:00:00Z`, as far as history reaches back. Filters by what history does not keep are refused.",
        form: ParameterForm::Time,
        set: |query, value| {
            query.at = Some(time(value)?);
            Ok(())
        },
    },
    Parameter {
        name: "from",
        about: "Only what happened at this time or later. The time of a sync is the one at which it began.",
        form: ParameterForm::Time,
        set: |query, value| {
            query.from = Some(time(value)?);
            Ok(())
        },
    },
    Parameter {
        name: "to",
        about: "Only what happened before this time.",
        form: ParameterForm::Time,
        set: |query, value| {
            query.to = Some(time(value)?);
            Ok(())
        },
    },
];

impl Query {
    /// Parses the query of a URL. Refuses a parameter whose name is not in `allowed`, one that is given twice though it
    /// is not a list, an empty list, a wrong value, and more than 1,000 values.
    pub(crate) fn read(text: &str, allowed: &[&str]) -> Result<Query, Refusal> {
        let mut query = Query::default();
        let mut given: Vec<&str> = Vec::new();
        let mut values = 0;
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            let is_allowed =
                |parameter: &&Parameter| parameter.name == name && allowed.contains(&parameter.name);
            let Some(parameter) = PARAMETERS.iter().find(is_allowed) else {
                let known = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
                let unknown = Refusal::parameter(&cut(&name), "the path has no such parameter");
                return Err(unknown.hint(format!("the path has these parameters: {known}")));
            };
            let is_list = matches!(parameter.form, ParameterForm::List | ParameterForm::Words(_));
            if !is_list && given.contains(&parameter.name) {
                return Err(Refusal::parameter(parameter.name, "the parameter is given twice"));
            }
            given.push(parameter.name);
            values += 1 + value.matches(',').count();
            if values > MAX_VALUES {
                return Err(Refusal::parameter(
                    parameter.name,
                    format!("the parameters have more than {MAX_VALUES} values"),
                ));
            }
            // Else a variable without a value would select everything; `problems` alone means any axis.
            if is_list && parameter.name != "problems" && words(&value).next().is_none() {
                return Err(Refusal::parameter(parameter.name, "the value is empty"));
            }
            (parameter.set)(&mut query, &value).map_err(|why| Refusal::parameter(parameter.name, why))?;
        }
        Ok(query)
    }
}

/// Splits a list at commas, trims white space, and drops empty words.
fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// Parses a label selector; refuses one that selects everything, as the value of an unset variable does.
fn selector(value: &str) -> Result<LabelSelector, Why> {
    let selector: LabelSelector = value.parse().map_err(why)?;
    if selector.is_everything() { Err("the value is empty".into()) } else { Ok(selector) }
}

fn truth(value: &str) -> Result<bool, Why> {
    match value {
        "" | "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(one_of(value, &["true", "false"])),
    }
}

fn time(value: &str) -> Result<Timestamp, Why> {
    let wrong = || why(format!("'{}' is not a time; write 2026-03-01T12:00:00Z", cut(value)));
    value.parse().map_err(|_| wrong())
}

fn one_of(value: &str, words: &[&str]) -> Why {
    format!("'{}' is not one of {}", cut(value), words.join(", ")).into()
}

/// Shortens a text from a request to 100 characters and `…`, for an error message.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[&str] = &["status", "problems", "cluster", "limit", "name", "suspended", "group-by"];

    fn refused(text: &str) -> String {
        Query::read(text, ALL).unwrap_err().0.detail
    }

    #[test]
    fn lists_may_be_given_with_commas_or_several_times() {
        let query = Query::read("cluster=a,b&cluster=c%2Fd&problems&limit=500&suspended", ALL).unwrap();
        assert_eq!(query.filter.clusters, ["a", "b", "c/d"]);
        assert!(query.filter.problems.unwrap().is_empty() && query.filter.suspended);
        assert_eq!((query.limit, Query::default().limit), (500, 100));
    }

    #[test]
    fn wrong_parameters_are_refused_with_the_reason() {
        assert_eq!(refused("limit=501"), "parameter 'limit': '501' is not a number from 1 to 500");
        assert_eq!(refused("limit=0"), "parameter 'limit': '0' is not a number from 1 to 500");
        assert_eq!(refused("limit=1&limit=2"), "parameter 'limit': the parameter is given twice");
        assert_eq!(refused("sort=name"), "parameter 'sort': the path has no such parameter");
        assert_eq!(
            refused("problems=sync,weather"),
            "parameter 'problems': 'weather' is not one of health, sync, source, freshness, check"
        );
        assert_eq!(
            refused(&format!("cluster={}", "a,".repeat(1_001))),
            "parameter 'cluster': the parameters have more than 1000 values"
        );
        for empty in ["cluster=", "cluster", "cluster=%20,,", "name=", "cluster=a&cluster="] {
            assert!(refused(empty).ends_with(": the value is empty"), "{empty}");
        }
        assert!(refused("status=Great").contains("'Great' is not a status"));
        assert!(refused("name=a/b/c/d").contains("write NAME, NAMESPACE/NAME"));
        assert!(refused(&format!("group-by={}", "ä".repeat(500))).len() < 400);
    }

    #[test]
    fn words_of_group_by_are_those_of_the_index() {
        assert_eq!(GroupBy::ALL.map(|(word, _)| word), GROUPS);
    }
}
