//! Helpers of the commands about one app: finding the app by its name, and selecting the errors that concern it.

use std::collections::{BTreeSet, HashSet};

use taffrail_apps::{App, AppError, AppList, AppQuery, Dependents, FindError, ReadQuery, Scope};
use taffrail_object::ObjectKey;
use taffrail_observe::{FleetSnapshot, NO_EXTRA};
use taffrail_status::assess::UNJUDGED;

use crate::cli::{NameArguments, ViewArguments};
use crate::command_error::CommandError;
use crate::program;
use crate::reasons;
use crate::source::Source;

/// Checks that the given cluster names exist.
pub(super) fn check_clusters(wanted: &[String], fleet: &FleetSnapshot) -> Result<(), CommandError> {
    let names = taffrail_api::filter::cluster_names(&fleet.clusters());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    unknown_cluster(wanted.iter().map(String::as_str), &names).map_or(Ok(()), Err)
}

/// Returns an error for the first name in `wanted` that is not in `known`, the names of the clusters; `None` if all
/// are.
pub(super) fn unknown_cluster<'w>(
    mut wanted: impl Iterator<Item = &'w str>,
    known: &[&str],
) -> Option<CommandError> {
    let wrong = wanted.find(|wanted| !known.contains(wanted))?;
    let complaint = CommandError::usage(format!("there is no cluster '{wrong}'"));
    Some(complaint.hint(format!("there are: {}", known.join(", "))))
}

/// Reads the apps, and the dependents of the named app (of all apps where no name is given).
pub(super) fn read<'s>(
    source: &'s mut dyn Source,
    view: &ViewArguments,
    which: &NameArguments,
    name: Option<&AppQuery>,
    events: bool,
) -> Result<(&'s FleetSnapshot, AppList), CommandError> {
    let query = name.map(|name| name.clone().within(which.namespace.as_deref()));
    let asked = ReadQuery {
        namespace: which.namespace.clone(),
        dependents: query.map_or(Dependents::All, Dependents::Of),
        events,
        app_labels: which.grouping.labels(),
        ..ReadQuery::default()
    };
    let fleet = source.read(view, &asked, NO_EXTRA)?;
    check_clusters(&which.cluster, fleet)?;
    let list = fleet.apps(&[]);
    Ok((fleet, list))
}

/// Returns the app called `name` among the apps that `which` selects: one entry for each cluster that has it.
/// Returns an error if no app or several apps match.
pub(super) fn find<'l>(
    command: &str,
    name: &AppQuery,
    which: &NameArguments,
    list: &'l AppList,
) -> Result<Vec<&'l App>, CommandError> {
    let error = match name.clone().within(which.namespace.as_deref()).find_in(list, &which.cluster) {
        Ok(mut found) => {
            let inside = |app: &&App| which.cluster.is_empty() || which.cluster.contains(&app.app.target);
            let elsewhere: BTreeSet<&str> = found.iter().map(|app| &*app.app.target).collect();
            found.retain(inside);
            if !found.is_empty() {
                return Ok(found);
            }
            let elsewhere: Vec<&str> = elsewhere.into_iter().collect();
            let complaint = CommandError::usage(format!("app '{name}' is not in the selected clusters"));
            return Err(complaint.hint(format!("it is in: {}", elsewhere.join(", "))));
        }
        Err(error) => error,
    };
    Err(refused(command, &error, list))
}

/// Keeps in `list` the apps that one of the names matches; keeps all where no name is given.
pub(super) fn keep(
    command: &str,
    names: &[AppQuery],
    namespace: Option<&str>,
    list: &mut AppList,
) -> Result<(), CommandError> {
    if names.is_empty() {
        return Ok(());
    }
    let mut keys = BTreeSet::new();
    for name in names {
        let found = name.clone().within(namespace).all(list);
        let found = found.map_err(|error| refused(command, &error, list))?;
        keys.extend(found.into_iter().map(|app| app.app.clone()));
    }
    list.apps.retain(|app| keys.contains(&app.app));
    Ok(())
}

/// Returns the error for a name that matches no app, or several, with a hint at the names to use; `command` is the
/// subcommand for the hint.
pub(super) fn refused(command: &str, error: &FindError, list: &AppList) -> CommandError {
    match error {
        FindError::Ambiguous { .. } => {
            // No example name: the first of the matches may be anyone's.
            let hint = format!("choose one: {} {command} with one of these names", program::name());
            CommandError::usage(error).hint(hint)
        }
        FindError::NotFound { nearest, .. } => {
            // The app may be in a part that could not be read.
            if let Some(hidden_by) = list.errors.iter().find(|error| hides_apps(error)) {
                let hidden = format!(
                    "{error} in the part that could be read; {}: {}",
                    hidden_by.cluster, hidden_by.error.message
                );
                let hint = reasons::hint(&hidden_by.error.reason).map(str::to_owned);
                return CommandError::unreadable(hidden).maybe_hint(hint);
            }
            let hint = match nearest.as_slice() {
                [] => format!("'{} get apps -o name' lists all", program::name()),
                names => format!("did you mean {}?", names.join(", ")),
            };
            CommandError::usage(error).hint(hint)
        }
    }
}

/// Returns the apps of `list` in the namespace and clusters that -n and --cluster select; all apps without these.
pub(super) fn inside<'l>(which: &NameArguments, list: &'l AppList) -> Vec<&'l App> {
    let here = |app: &&App| {
        which.namespace.as_ref().is_none_or(|namespace| *namespace == app.app.namespace)
            && (which.cluster.is_empty() || which.cluster.contains(&app.app.target))
    };
    list.apps.iter().filter(here).collect()
}

pub(super) fn hides_apps(error: &AppError) -> bool {
    matches!(error.error.scope, Scope::Cluster | Scope::Input(_) | Scope::Kind { .. })
}

/// Returns the errors that concern these apps, so that a view of one app does not list the errors of all others.
pub(super) fn concerning(list: &AppList, shown: &[&App]) -> Vec<AppError> {
    let places = Places::of(shown);
    list.errors.iter().filter(|error| places.concerns(error)).cloned().collect()
}

/// Returns the errors to show for a view of `namespace`: those of that namespace, those of no namespace, and those
/// about the apps in `shown`. Without a namespace returns all errors.
pub(super) fn asked_for(list: &AppList, shown: &[&App], namespace: Option<&str>) -> Vec<AppError> {
    let Some(namespace) = namespace else { return list.errors.clone() };
    let places = Places::of(shown);
    let is_asked = |error: &&AppError| match &error.error.scope {
        Scope::Object(ObjectKey { namespace: own, .. }) | Scope::Namespace(own) => {
            own.is_empty() || own == namespace || places.concerns(error)
        }
        Scope::Cluster | Scope::Group(_) | Scope::Kind { .. } | Scope::Input(_) => true,
    };
    list.errors.iter().filter(is_asked).cloned().collect()
}

/// Places where an error concerns the shown apps: their clusters, their objects, and namespaces in which their
/// objects could not be judged. Each object and namespace comes with the name of its cluster.
struct Places<'l> {
    clusters: HashSet<&'l str>,
    objects: HashSet<(&'l str, &'l ObjectKey)>,
    namespaces: HashSet<(&'l str, &'l str)>,
}

impl<'l> Places<'l> {
    fn of(apps: &[&'l App]) -> Places<'l> {
        let mut places =
            Places { clusters: HashSet::new(), objects: HashSet::new(), namespaces: HashSet::new() };
        for app in apps {
            for cluster in BTreeSet::from([&*app.app.target, &*app.app.home]) {
                places.clusters.insert(cluster);
                let own = app.resources.iter().map(|own| &own.key);
                let problems = app.problems.iter().filter_map(|problem| problem.object.as_ref());
                let read = own.chain(&app.declaring).chain(&app.unreadable).chain(problems);
                places.objects.extend(read.map(|key| (cluster, key)));
                let unjudged = app.resources.iter().filter(|own| own.rule == UNJUDGED).map(|own| &own.key);
                places
                    .namespaces
                    .extend(unjudged.chain(&app.declaring).map(|key| (cluster, &*key.namespace)));
            }
        }
        places
    }

    fn concerns(&self, error: &AppError) -> bool {
        let cluster = &*error.cluster;
        match &error.error.scope {
            Scope::Cluster => true,
            Scope::Object(key) => self.objects.contains(&(cluster, key)),
            Scope::Namespace(namespace) => self.namespaces.contains(&(cluster, namespace)),
            Scope::Group(_) | Scope::Kind { .. } | Scope::Input(_) => self.clusters.contains(cluster),
        }
    }
}
