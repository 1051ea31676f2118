//! `--logs`: the last lines of the containers that causes name.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::Style;
use taffrail_api::{CauseLog, Explanation};
use taffrail_cluster::{Cluster, LogRequest, Reason, chain};
use taffrail_object::{Object, ObjectKey};
use taffrail_observe::logs::{LogChoice, LogReader, LogTarget, PodsRequest, choose, pods_of_object};
use taffrail_observe::{ClusterConnector, Failure, ObjectArg};

use super::super::logs::{hint, shown};
use super::object;
use crate::cli::SourceArguments;
use crate::command_error::{CommandError, Exit};
use crate::output::answer::Console;
use crate::output::{indented, printable};
use crate::runtime::block_on;
use crate::source;
use crate::{reasons, say};

/// Reads the last lines of the container that each cause names, of the first cluster of each explanation; prints why the
/// Pods of a cause could not be read. Returns the exit code: [`Exit::Incomplete`] if a log or Pods could not be read,
/// unless the container has no log yet, or the cluster does not answer.
pub(super) fn add(
    explanations: &mut [&mut Explanation],
    source: &SourceArguments,
    console: &Console,
) -> Result<Exit, CommandError> {
    let mut wanted: BTreeMap<String, Vec<(usize, ObjectKey)>> = BTreeMap::new();
    for (place, explanation) in explanations.iter().enumerate() {
        if let Some(key) = of_containers(explanation) {
            wanted.entry(explanation.place.first().to_owned()).or_default().push((place, key.clone()));
        }
    }
    let members = source::members(source)?.members;
    let members = members.into_iter().filter(|member| wanted.contains_key(&member.name)).collect();
    let read = |connector: ClusterConnector| {
        let name = connector.member.name.clone();
        let wanted = wanted.get(&name).cloned().unwrap_or_default();
        async move {
            // A cluster that does not answer is told already.
            let Ok(cluster) = connector.connect().await else { return Vec::new() };
            let reader = LogReader::new(&cluster);
            let reads = wanted.into_iter().map(|(place, key)| {
                let (cluster, reader, name) = (&cluster, &reader, &name);
                async move {
                    let log = last_lines(cluster, reader, &key).await;
                    let log = log.map_err(|failure| {
                        let what =
                            format!("{name}: cannot read the log of {}: {}", object(&key), failure.message);
                        CommandError::unreadable(what)
                            .maybe_hint(reasons::hint(&failure.reason).map(str::to_owned))
                    });
                    Some((place, log.transpose()?))
                }
            });
            futures::future::join_all(reads).await.into_iter().flatten().collect()
        }
    };
    let found = block_on(taffrail_observe::for_each_cluster(members, source.limits(), read))??;
    let mut exit = Exit::Yes;
    for (place, log) in found.into_iter().flatten() {
        let (log, own) = match log {
            Ok((log, own)) => (Some(log), own),
            Err(complaint) => {
                complaint.print(console);
                (None, complaint.exit)
            }
        };
        exit = exit.max(own);
        if let Some(explanation) = explanations.get_mut(place) {
            explanation.logs = log;
        }
    }
    Ok(exit)
}

/// Returns the object of a cause that has containers: the deepest Pod of the chain, else the last object of the chain
/// if its group is `apps` or `batch`; else `None`.
fn of_containers(explanation: &Explanation) -> Option<&ObjectKey> {
    let objects = || explanation.chain.iter().rev().map(|step| &step.object);
    let pod = objects().find(|key| (&*key.group, &*key.kind) == ("", "Pod"));
    pod.or_else(|| objects().next().filter(|key| matches!(&*key.group, "apps" | "batch")))
}

/// Reads the last lines of the container of a Pod or workload that has the worst status, of its previous run if that
/// crashed. `None` if there are no Pods.
///
/// # Errors
/// Fails if the Pods cannot be read.
async fn last_lines(
    cluster: &Cluster,
    reader: &LogReader,
    key: &ObjectKey,
) -> Result<Option<(CauseLog, Exit)>, Failure> {
    let object = ObjectArg::Key { cluster: None, key: key.clone() };
    let request = PodsRequest { object, namespace: None, all_namespaces: false };
    let found = pods_of_object(cluster, &request).await?;
    let pods: Vec<Object<'_>> = found.pods.iter().filter_map(|pod| Object::new(pod.root()).ok()).collect();
    let target = choose(&pods, &LogChoice::default()).targets.into_iter().next();
    let Some(LogTarget { namespace, pod, container, has_crashed, .. }) = target else { return Ok(None) };
    let log = CauseLog::new(ObjectKey::new("", "Pod", &*namespace, &*pod), &container, has_crashed);
    let request = LogRequest {
        namespace,
        pod,
        container,
        previous: has_crashed,
        follow: false,
        timestamps: false,
        tail: Some(CauseLog::MAX_LINES as u64),
        since: None,
    };
    let (failure, log) = match reader.read(&request).await {
        Ok(read) => (read.failure, log.with_lines(read.lines.into_iter().map(|line| line.text))),
        Err(error) => (Some(error), log),
    };
    Ok(Some(match failure {
        None => (log, Exit::Yes),
        Some(error) => {
            // That a container has not started is no failure to read its log.
            let exit = if error.reason() == Reason::BadRequest { Exit::Yes } else { Exit::Incomplete };
            let text = match error.reason() {
                Reason::BadRequest => chain(&error),
                _ => format!("{}; {}", chain(&error), hint(&error)),
            };
            (log.with_error(&text), exit)
        }
    }))
}

/// Prints the last lines of the container that the cause names; nothing if the explanation has no log.
pub(super) fn print(out: &mut impl Write, explanation: &Explanation) -> io::Result<()> {
    let Some(CauseLog { pod, container, previous, lines, cut, error }) = &explanation.logs else {
        return Ok(());
    };
    let bold = Style::new().bold();
    let run = if *previous { ", before it crashed" } else { "" };
    let title = format!("Last lines of container {container} of {}{run}", object(pod));
    say!(out)?;
    say!(out, "{}{}{:#}", bold, printable(&title), bold)?;
    for line in lines {
        say!(out, "  {}", shown(line, 0))?;
    }
    if *cut {
        say!(out, "  … parts of long lines are left out")?;
    }
    match error {
        Some(error) => indented(out, "  ", error),
        None if lines.is_empty() => say!(out, "  it wrote nothing"),
        None => Ok(()),
    }
}
