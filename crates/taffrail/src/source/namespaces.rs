//! Namespaces that the user named and that do not exist.

use std::sync::Arc;

use jiff::Timestamp;
use taffrail_apps::{Objects, ReadQuery, Snapshot};
use taffrail_object::{ObjectKey, ObjectKeyRef};
use taffrail_observe::FleetMembers;
use taffrail_status::assess::Budgets;
use taffrail_status::{ClusterState as _, Presence, Trust};

use super::{each, members};
use crate::cli::SourceArguments;
use crate::command_error::CommandError;
use crate::rule_source::RuleSource;

/// Returns a warning for each of `namespaces` that does not exist: in no cluster, or in no dump, where no object of it
/// stands. None for one of which that is not known, as the user may not read it.
///
/// `read` is what was read already. Clusters are asked only for namespaces of which nothing was read.
pub(crate) fn missing_namespaces<'n>(
    namespaces: impl Iterator<Item = &'n String>,
    read: &[&Snapshot],
    arguments: &SourceArguments,
) -> Result<Vec<CommandError>, CommandError> {
    let is_known = |namespace: &str| {
        let own = |key: ObjectKeyRef<'_>| {
            key.namespace == namespace || (key.group, key.kind, key.name) == ("", "Namespace", namespace)
        };
        read.iter().any(|snapshot| snapshot.all().any(|observed| own(observed.key)))
    };
    let unknown: Vec<&String> = namespaces.filter(|namespace| !is_known(namespace)).collect();
    if unknown.is_empty() {
        return Ok(Vec::new());
    }
    if !arguments.from.is_empty() {
        let warn = |namespace| {
            CommandError::unreadable(format!("nothing that was read is in a namespace '{namespace}'"))
                .harmless()
        };
        return Ok(unknown.into_iter().map(warn).collect());
    }
    let keys: Vec<ObjectKey> =
        unknown.iter().map(|name| ObjectKey::new("", "Namespace", "", name.as_str())).collect();
    let FleetMembers { members, .. } = members(arguments)?;
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let now = arguments.now.unwrap_or_else(Timestamp::now);
    let asked = Arc::new(keys.clone());
    let patience = arguments.patience();
    let found = each(members, arguments.limits(), move |live| {
        let (asked, patience) = (asked.clone(), patience.clone());
        async move {
            let rules = RuleSource::default();
            let rules = rules.with_options(Budgets::default(), patience, &Trust::default());
            let query = ReadQuery { declarations: false, label_groups: false, ..ReadQuery::default() };
            live.read_objects(query, now, &rules.active(), |_, _| ((*asked).clone(), Vec::new()))
                .await
                .snapshot
        }
    })?;
    let is_missing = |key: &&ObjectKey| {
        found.iter().all(|snapshot| matches!(snapshot.get(key.as_ref()), Presence::Absent))
    };
    let place = match names.as_slice() {
        [only] => only.clone(),
        several => format!("none of {} clusters", several.len()),
    };
    let warn = |key: &ObjectKey| {
        let what = match names.len() {
            1 => format!("{place} has no namespace '{}'", key.name),
            _ => format!("{place} has a namespace '{}'", key.name),
        };
        CommandError::unreadable(what).hint("'kubectl get namespaces' lists those that there are").harmless()
    };
    Ok(keys.iter().filter(is_missing).map(warn).collect())
}
