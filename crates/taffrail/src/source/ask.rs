//! Gets the answers of views from clusters, dumps or a hub.

use std::time::Duration;

use serde::de::DeserializeOwned;
use taffrail_api::question::{View, ViewQuestion};
use taffrail_apps::Snapshot;

use super::{Source, hub, namespaces, read};
use crate::cli::{HubFiles, HubSource, ViewArguments};
use crate::command_error::CommandError;
use crate::commands::named;
use crate::hub_url::HubUrl;
use crate::output::answer::Console;

/// Returns the answer of `view`: from the hub that `--hub` names, else from the clusters or dumps of `arguments`, which
/// `source` reads. `command` is the subcommand that hints of errors suggest.
pub(crate) fn ask<V: View + Sync + Into<ViewQuestion>>(
    command: &str,
    view: &V,
    (arguments, hub): (&ViewArguments, &HubSource),
    source: &mut dyn Source,
    console: &Console,
) -> Result<V::Answer, CommandError> {
    if let Some(url) = &hub.hub {
        let (files, time) = (&hub.files, arguments.source.timeout);
        let question = view.clone().into();
        return match source.hub() {
            None => ask_hub(command, url, files, &question, time),
            Some((watch, is_held)) => {
                let answer = watch.ask(url, files, &question, time, is_held)?;
                answer.map_err(|error| named::refused_by_hub(command, &error))
            }
        };
    }
    if view.shows_rows() {
        source.shows_rows();
    }
    let more = |snapshot: &Snapshot, namespace: &str| view.reads_objects(snapshot, namespace);
    let fleet = source.read(arguments, &view.reads(), &more)?;
    let mut answer = view.answer(fleet).map_err(|error| named::refused(command, &error))?;
    if let Some(asked) = view.reads_more(&answer) {
        match arguments.source.from.is_empty() {
            true => view.complete(&mut answer, &*read(arguments, &asked, console)?),
            // A dump has the whole cluster.
            false => view.complete(&mut answer, fleet),
        }
    }
    if let Some(unseen) = view.unseen_namespaces(&mut answer) {
        *unseen = namespaces::not_existing(std::mem::take(unseen), &arguments.source)?;
    }
    Ok(answer)
}

/// Returns the answer of the hub at `url` to `question`. `command` is the subcommand that hints of errors suggest.
pub(crate) fn ask_hub<A: DeserializeOwned>(
    command: &str,
    url: &HubUrl,
    files: &HubFiles,
    question: &ViewQuestion,
    time: Duration,
) -> Result<A, CommandError> {
    hub::ask(url, files, question, time)?.map_err(|error| named::refused_by_hub(command, &error))
}
