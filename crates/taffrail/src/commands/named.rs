//! Helpers of the commands about named apps: finding the apps, and the errors for names that cannot be found.

use std::fmt;

use taffrail_api::question::{self, AppSelection, QuestionError};
use taffrail_apps::command::{self, quoted};
use taffrail_apps::{AppError, FindError};
use taffrail_observe::{FleetSnapshot, ObjectArg};

use crate::cli::NameArguments;
use crate::command_error::CommandError;
use crate::commands::status::kinds;
use crate::program;
use crate::reasons;

/// Returns an error if one of `wanted` is not the name or an alias of a cluster of `fleet`.
pub(super) fn check_clusters(wanted: &[String], fleet: &FleetSnapshot) -> Result<(), CommandError> {
    resolve_clusters(&mut wanted.to_vec(), fleet)
}

/// Replaces each of `wanted`, a name or an alias of a cluster of `fleet`, by the first name of that cluster; returns an
/// error for one that is neither.
pub(super) fn resolve_clusters<'w>(
    wanted: impl IntoIterator<Item = &'w mut String>,
    fleet: &FleetSnapshot,
) -> Result<(), CommandError> {
    question::resolve_clusters(wanted, &fleet.clusters()).map_err(|error| refused("", &error))
}

/// Returns an error for the first name in `wanted` that is not in `known`, the names of the clusters; `None` if all
/// are.
pub(super) fn unknown_cluster<'w>(
    mut wanted: impl Iterator<Item = &'w str>,
    known: &[&str],
) -> Option<CommandError> {
    let wrong = wanted.find(|wanted| !known.contains(wanted))?;
    let complaint = CommandError::usage(format!("there is no cluster '{wrong}'"));
    Some(complaint.hint(others(known)))
}

/// Returns the hint that lists the clusters that were read, `known`, and the options that read others.
fn others<T: std::borrow::Borrow<str>>(known: &[T]) -> String {
    format!("the clusters read are {}; --context, --all-contexts or --from read others", known.join(", "))
}

/// Returns the error that `error`, that an app was not found, holds only for the part that could be read, because of
/// the failure `hidden_by`: exit code 3, with the hint for that failure.
fn unread(error: &dyn fmt::Display, hidden_by: &AppError) -> CommandError {
    let hint = reasons::hint(&hidden_by.error.reason).map(str::to_owned);
    CommandError::unreadable(in_part(error, hidden_by)).maybe_hint(hint)
}

/// Returns the namespace and clusters that restrict the apps, and the labels that group undeclared objects into apps.
pub(super) fn selection(which: &NameArguments) -> AppSelection {
    AppSelection {
        namespace: which.namespace.clone(),
        clusters: which.cluster.clone(),
        app_labels: which.grouping.labels(),
    }
}

/// Returns the hint for an object that was not found: the subcommand `command` with -A, which searches all namespaces,
/// or, if that was done (`has_searched_all`) or the object was named in full, how to name it in full.
pub(super) fn elsewhere(command: &str, object: &ObjectArg, has_searched_all: bool) -> String {
    match object {
        ObjectArg::Named { kind, name } if !has_searched_all => {
            let name = quoted(&format!("{kind}/{name}"));
            let command = program::hinted(&format!("taffrail {command} {name} -A"));
            format!("choose the object's namespace with -n NAMESPACE, or search all: {command}")
        }
        _ => "write group/Kind/namespace/name to name an object in full".to_owned(),
    }
}

/// Maximum number of namespaces that a hint names; the others are left out.
const MAX_NAMESPACES: usize = 5;

/// Converts the reason why a view has no answer into an error for the user, with a hint at what to ask instead; the
/// hint's command is `subcommand`.
pub(crate) fn refused(subcommand: &str, error: &QuestionError) -> CommandError {
    match error {
        QuestionError::UnknownCluster { known, .. } => CommandError::usage(error).hint(others(known)),
        QuestionError::UnknownKind { known, .. } => CommandError::usage(error).hint(match known.as_slice() {
            [] => "no app that these filters select declares any object".to_owned(),
            known => format!("the apps declare objects of these kinds: {}", known.join(", ")),
        }),
        QuestionError::NotInClusters { hidden_by: Some(hidden_by), .. } => unread(error, hidden_by),
        QuestionError::NotInClusters { clusters, hidden_by: None, .. } => {
            CommandError::usage(error).hint(format!("the app is in these clusters: {}", clusters.join(", ")))
        }
        QuestionError::NoObject { hidden_by: Some(hidden_by), .. } => {
            CommandError::unreadable(in_part(error, hidden_by))
        }
        QuestionError::NoObject { kind, name, namespaces, .. } => {
            let commands = namespaces.iter().take(MAX_NAMESPACES).filter_map(|namespace| {
                command::taffrail(&["explain", &format!("{kind}/{name}")], namespace, None)
            });
            let commands: Vec<String> = commands.map(|command| program::hinted(&command)).collect();
            CommandError::usage(error).hint(match &*commands {
                [] => {
                    "choose the object's namespace with -n NAMESPACE, or name it as group/Kind/namespace/name"
                        .to_owned()
                }
                commands => {
                    format!("an object of that name is in another namespace: {}", commands.join(" or "))
                }
            })
        }
        QuestionError::InvalidName { .. } => CommandError::usage(error).hint(
            "name an app as NAME or NAMESPACE/NAME, an object as KIND/NAME or [CLUSTER/]group/Kind/namespace/name",
        ),
        QuestionError::NoSuchObject { is_served: false, .. } => CommandError::usage(error)
            .hint(format!("{} lists the kinds", program::hinted("kubectl api-resources"))),
        QuestionError::NoSuchObject { text, has_searched_all, .. } => {
            let hint = text.parse().ok().map(|object| elsewhere(subcommand, &object, *has_searched_all));
            CommandError::usage(error).maybe_hint(hint)
        }
        QuestionError::NoContainer { known, .. } => CommandError::usage(error)
            .hint(format!("the containers of these Pods are {}", known.join(", "))),
        QuestionError::UnservedKind { kind, known } => kinds::unknown(kind, known.iter().cloned()),
        QuestionError::NothingFound => CommandError::usage(error),
        QuestionError::NotOnlyApp { .. } => {
            CommandError::unreadable(error).hint("name the app in full: DELIVERY/NAMESPACE/NAME")
        }
        QuestionError::NoneSelected => {
            CommandError::usage(error).hint(format!("{} lists all apps", program::hinted("taffrail get apps")))
        }
        QuestionError::NoSingleApp { error: error @ FindError::Ambiguous { .. }, .. } => {
            // No example name: the first of the matches may be anyone's.
            let command = program::hinted(&format!("taffrail {subcommand} NAME"));
            let hint = format!("choose one of these apps: {command} with its full name");
            CommandError::usage(error).hint(hint)
        }
        QuestionError::NoSingleApp { error, hidden_by: Some(hidden_by) } => unread(error, hidden_by),
        QuestionError::NoSingleApp { error: error @ FindError::NotFound { nearest, .. }, .. } => {
            let hint = match nearest.as_slice() {
                [] => format!(
                    "{} lists all apps; an app that another cluster declares needs the context of that cluster, too",
                    program::hinted("taffrail get apps -o name")
                ),
                names => format!("did you mean {}?", names.join(", ")),
            };
            CommandError::usage(error).hint(hint)
        }
    }
}

/// Returns what [`refused`] returns, for the answer of a hub: without the options that read other clusters, which
/// conflict with `--hub`.
pub(crate) fn refused_by_hub(subcommand: &str, error: &QuestionError) -> CommandError {
    let refusal = refused(subcommand, error);
    match error {
        QuestionError::UnknownCluster { known, .. } => {
            refusal.hint(format!("the clusters read are {}", known.join(", ")))
        }
        _ => refusal,
    }
}

/// Returns what [`refused`] returns, and adds the failure that its text contains to `told`, the failures that were
/// printed. If that one is in `told` already, returns an error without it and without a hint instead: exit code 3.
pub(super) fn refused_after(
    told: &mut Vec<AppError>,
    subcommand: &str,
    error: &QuestionError,
) -> CommandError {
    let hidden_by = match error {
        QuestionError::NoSingleApp { hidden_by, .. }
        | QuestionError::NotInClusters { hidden_by, .. }
        | QuestionError::NoObject { hidden_by, .. } => hidden_by.as_deref(),
        _ => None,
    };
    match hidden_by {
        Some(hidden_by) if told.contains(hidden_by) => {
            CommandError::unreadable(format_args!("{error} in the part that could be read"))
        }
        hidden_by => {
            told.extend(hidden_by.cloned());
            refused(subcommand, error)
        }
    }
}

/// Returns the text of `error`, that something was not found, with the addition that it holds for the part that could
/// be read, and the failure `hidden_by`.
fn in_part(error: &dyn fmt::Display, hidden_by: &AppError) -> String {
    let AppError { cluster, error: hidden } = hidden_by;
    format!("{error} in the part that could be read; {cluster}: {}", hidden.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_about_the_clusters_of_a_hub_names_no_options_that_conflict_with_it() {
        let known = vec!["eu-1".to_owned(), "lab".to_owned()];
        let error = QuestionError::UnknownCluster { name: "moon".to_owned(), known };
        let refusal = refused_by_hub("get apps", &error);
        assert_eq!(refusal.to_string(), "there is no cluster 'moon'");
        assert_eq!(refusal.hint.as_deref(), Some("the clusters read are eu-1, lab"));
    }
}
