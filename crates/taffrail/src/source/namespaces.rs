//! Warns about namespaces that the user named and that do not exist.

use std::sync::Arc;

use jiff::Timestamp;
use taffrail_apps::{Objects, Snapshot};
use taffrail_object::ObjectKeyRef;
use taffrail_observe::{FleetMembers, absent_namespaces};
use taffrail_status::Trust;
use taffrail_status::assess::Budgets;

use super::{each, members};
use crate::cli::SourceArguments;
use crate::command_error::CommandError;
use crate::program;
use crate::rule_source::RuleSource;

/// Returns a warning for each of `namespaces` that exists in none of the clusters, or of which the dumps have neither
/// the Namespace nor an object in it. Returns no warning for one of which that is not known, because the user may not
/// read it.
///
/// `read` has the snapshots that were read already. Clusters are asked only for namespaces of which these have nothing.
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
    let unknown: Vec<String> = namespaces.filter(|namespace| !is_known(namespace)).cloned().collect();
    let missing = not_existing(unknown, arguments)?;
    let names: Vec<&str> = read.iter().map(|snapshot| snapshot.name()).collect();
    let place = Place::of(arguments, &names);
    Ok(missing.iter().map(|namespace| place.lacks(namespace)).collect())
}

/// Returns those of `unseen`, namespaces of which nothing was read, that do not exist in any cluster, without those of
/// which one cluster does not tell; for dumps returns all of them.
pub(super) fn not_existing(
    unseen: Vec<String>,
    arguments: &SourceArguments,
) -> Result<Vec<String>, CommandError> {
    if unseen.is_empty() || !arguments.from.is_empty() {
        return Ok(unseen);
    }
    let FleetMembers { members, .. } = members(arguments)?;
    let now = arguments.now.unwrap_or_else(Timestamp::now);
    let rules = RuleSource::default();
    let rules = Arc::new(rules.with_options(Budgets::default(), arguments.patience(), &Trust::default()));
    let asked: Arc<[String]> = unseen.clone().into();
    let absent = each(members, arguments.limits(), move |live| {
        absent_namespaces(live, asked.clone(), now, rules.clone())
    })?;
    Ok(unseen.into_iter().filter(|name| absent.iter().all(|absent| absent.contains(name))).collect())
}

/// The place where a namespace does not exist.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'n> {
    /// The dumps that were read.
    Dumps,
    /// The cluster of this name.
    Cluster(&'n str),
    /// Several clusters; holds their number.
    Clusters(usize),
}

impl<'n> Place<'n> {
    /// Returns the place for clusters with these names, or for the dumps of `--from`.
    fn of(arguments: &SourceArguments, names: &[&'n str]) -> Place<'n> {
        match names {
            _ if !arguments.from.is_empty() => Place::Dumps,
            [only] => Place::Cluster(only),
            several => Place::Clusters(several.len()),
        }
    }

    /// Returns the warning that the place has no namespace of this name.
    pub(crate) fn lacks(self, namespace: &str) -> CommandError {
        let list = "kubectl get namespaces";
        let (what, command) = match self {
            Place::Dumps => {
                let what = format!("the dumps have no namespace '{namespace}', and no object in it");
                return CommandError::unreadable(what).harmless();
            }
            Place::Cluster(name) => {
                (format!("cluster {name} has no namespace '{namespace}'"), program::hinted_for(name, list))
            }
            Place::Clusters(number) => {
                let what = format!("none of {number} clusters has a namespace '{namespace}'");
                (what, program::hinted(list))
            }
        };
        CommandError::unreadable(what).hint(format!("{command} lists the namespaces")).harmless()
    }
}
