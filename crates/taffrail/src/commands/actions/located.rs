//! Finds the object that the arguments name, in each of the chosen clusters or dumps.

use std::sync::Arc;

use taffrail_api::ErrorRow;
use taffrail_apps::{Objects, Scope};
use taffrail_cluster::Cluster;
use taffrail_observe::operations::{LocateRequest, Located, LocatedObject, locate, locate_in_dump};
use taffrail_observe::{FleetMembers, ObjectArg};

use super::arguments::WhichArguments;
use crate::command_error::CommandError;
use crate::commands::named::{elsewhere, unknown_cluster};
use crate::output::answer::Console;
use crate::reasons;
use crate::source;

/// The objects that the arguments name, one for each cluster and namespace that has it, and the failures.
#[derive(Default)]
pub(super) struct FoundObjects {
    pub(super) objects: Vec<LocatedObject>,
    /// The failures and warnings, to print.
    pub(super) complaints: Vec<CommandError>,
    /// The clusters that could not be read, for JSON.
    pub(super) errors: Vec<ErrorRow>,
}

/// Finds the object in each of the chosen clusters or dumps. Fails if none has it and nothing went wrong, and if the
/// object is named with an unknown cluster.
pub(super) fn objects(arguments: &WhichArguments, console: &Console) -> Result<FoundObjects, CommandError> {
    let request = LocateRequest {
        object: arguments.object.clone(),
        namespace: arguments.namespace.clone(),
        all_namespaces: arguments.all_namespaces,
        trust: arguments.source.trust.clone(),
    };
    let FoundObjects { mut objects, mut complaints, mut errors } = FoundObjects::default();
    let mut add = |cluster: &str, located: Located, complaints: &mut Vec<CommandError>| {
        objects.extend(located.objects);
        let notes =
            located.notes.into_iter().map(|note| CommandError::unreadable(format!("{cluster}: {note}")));
        complaints.extend(notes.map(CommandError::harmless));
    };
    let wanted = request.object.cluster();
    if arguments.source.from.is_empty() {
        let FleetMembers { mut members, problems } = source::members(&arguments.source)?;
        complaints.extend(problems.iter().map(CommandError::from));
        let known: Vec<&str> = members.iter().map(|member| &*member.name).collect();
        unknown_cluster(wanted.into_iter(), &known).map_or(Ok(()), Err)?;
        members.retain(|member| wanted.is_none_or(|name| name == member.name));
        let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
        let shared = Arc::new(request.clone());
        let answers = source::each(members, arguments.source.limits(), |connector| {
            let request = shared.clone();
            async move { locate(&connector, &request).await }
        })?;
        for (name, answer) in names.iter().zip(answers) {
            match answer {
                Ok(located) => add(name, located, &mut complaints),
                Err(failure) => {
                    let complaint = CommandError::unreadable(format!("{name}: {}", failure.message));
                    complaints.push(complaint.maybe_hint(reasons::hint(&failure.reason).map(str::to_owned)));
                    let (cluster, scope) = (name.clone(), Scope::Cluster.to_string());
                    errors.push(ErrorRow {
                        cluster,
                        scope,
                        reason: failure.reason,
                        message: failure.message,
                    });
                }
            }
        }
    } else {
        let fleet = source::dumps(&arguments.source, console)?;
        complaints.extend(fleet.problems.iter().map(CommandError::from));
        let known: Vec<&str> = fleet.snapshots.iter().map(Objects::name).collect();
        unknown_cluster(wanted.into_iter(), &known).map_or(Ok(()), Err)?;
        for snapshot in fleet.snapshots.iter().filter(|it| wanted.is_none_or(|name| name == it.name())) {
            add(snapshot.name(), locate_in_dump(snapshot, &request), &mut complaints);
        }
    }
    if objects.is_empty() && complaints.is_empty() {
        let place = match (&arguments.object, &arguments.namespace) {
            (ObjectArg::Named { .. }, Some(namespace)) => format!(" in namespace {namespace}"),
            _ => String::new(),
        };
        let complaint = CommandError::usage(format!("there is no {}{place}", arguments.object));
        // Without -n a dump is searched in all namespaces.
        let is_of_dump = !arguments.source.from.is_empty() && arguments.namespace.is_none();
        let has_searched_all = arguments.all_namespaces || is_of_dump;
        return Err(complaint.hint(elsewhere("actions", &arguments.object, has_searched_all)));
    }
    Ok(FoundObjects { objects, complaints, errors })
}

/// Returns the connections to the clusters of the objects, one for each run of objects of one cluster; none for dumps.
pub(super) fn connections(objects: &[LocatedObject]) -> impl Iterator<Item = &Cluster> {
    let clusters = objects.chunk_by(|one, other| one.cluster == other.cluster);
    clusters.filter_map(|objects| objects.first()?.connection())
}
