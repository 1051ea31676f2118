//! `taffrail status --hub`: prints the statuses of objects as a hub answers them.

use taffrail_api::question::{ClusterStatuses, StatusAnswer, StatusItem};
use taffrail_apps::Scope;

use super::arguments::StatusArguments;
use super::clusters::{ReadQuery, unread};
use super::judge::Judge;
use super::print::Printer;
use crate::command_error::{CommandError, Exit};
use crate::hub_url::HubUrl;
use crate::output::answer::Console;
use crate::source::{self, Place};

/// Asks the hub at `url` for the selected objects, and prints their statuses. Returns the exit code.
pub(super) fn run(
    arguments: &StatusArguments,
    url: &HubUrl,
    judge: &Judge,
    console: &Console,
) -> Result<Exit, CommandError> {
    let view = arguments.view();
    // Wrong words need no hub.
    ReadQuery::of(&view)?;
    let (files, time) = (&arguments.hub_files, arguments.source.timeout);
    let answer: StatusAnswer = source::ask_hub("status", url, files, &view.into(), time)?;
    let StatusAnswer { clusters, problems, missing_namespaces } = answer;
    let place = match clusters.as_slice() {
        [only] => Place::Cluster(&only.cluster),
        several => Place::Clusters(several.len()),
    };
    let mut printer = Printer::new(arguments, clusters.len() > 1, console);
    for problem in &problems {
        printer.complain(problem.into());
    }
    for cluster in &clusters {
        if !print(&mut printer, judge, cluster)? {
            break;
        }
    }
    for namespace in &missing_namespaces {
        printer.lacks_namespace(place.lacks(namespace));
    }
    printer.finish(arguments.exit_status)
}

/// Prints the errors and statuses that the hub told of a cluster; returns `false` once stdout is closed.
fn print(printer: &mut Printer, judge: &Judge, told: &ClusterStatuses) -> Result<bool, CommandError> {
    let ClusterStatuses { cluster, is_unobserved, errors, items } = told;
    unread(printer, cluster, errors, *is_unobserved);
    for item in items {
        match item {
            StatusItem::NoKind(kind) => {
                printer.unread(cluster, kind, "", &format!("the server has no kind called {kind}"));
            }
            StatusItem::Nothing(why) => printer.unread(cluster, Scope::Cluster, "", why),
            StatusItem::Object(row) => {
                if !printer.print(judge.told(cluster, row))? {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}
