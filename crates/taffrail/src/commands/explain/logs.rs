//! `--logs`: the last lines of the containers that causes name.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::Style;
use taffrail_api::question::ExplainAnswer;
use taffrail_api::{CauseLog, Explanation};
use taffrail_apps::{AppError, Scope, ScopeError};
use taffrail_cluster::{Cluster, LogRequest, Reason, chain};
use taffrail_object::{Object, ObjectKey};
use taffrail_observe::logs::{
    LogChoice, LogReader, LogTarget, PodsRequest, ReadLimits, choose, pods_of_object,
};
use taffrail_observe::{ClusterConnector, Failure, ObjectArg};
use tokio::time::Instant;

use super::super::logs::{hint, shown};
use super::object;
use crate::cli::SourceArguments;
use crate::command_error::{CommandError, Exit};
use crate::output::answer::Console;
use crate::output::{indented, printable};
use crate::runtime::block_on;
use crate::source;
use crate::{reasons, say};

/// The logs of causes to read in one cluster: the number of each explanation, and the object that is its cause.
type Wanted = Vec<(usize, ObjectKey)>;

/// The log of the cause of one explanation, and true if it could not be read whole; `None` if the cause has no Pods.
type FoundLog = Option<(CauseLog, bool)>;

/// Returns the object that is the cause of each explanation and has containers, by the first cluster of the
/// explanation.
pub(in crate::commands) fn wanted(answer: &ExplainAnswer) -> BTreeMap<String, Wanted> {
    let mut wanted: BTreeMap<String, Wanted> = BTreeMap::new();
    for (place, item) in answer.items.iter().enumerate() {
        if let Some(key) = of_containers(&item.explanation) {
            let cluster = item.explanation.place.first().to_owned();
            wanted.entry(cluster).or_default().push((place, key.clone()));
        }
    }
    wanted
}

/// Reads the last lines of the container that each cause names, of the first cluster of each explanation, and adds them
/// to the answer, with the failures.
pub(super) fn add(answer: &mut ExplainAnswer, source: &SourceArguments) -> Result<(), CommandError> {
    let wanted = wanted(answer);
    let members = source::members(source)?.members;
    let members = members.into_iter().filter(|member| wanted.contains_key(&member.name)).collect();
    let read = |connector: ClusterConnector| {
        let wanted = wanted.get(&connector.member.name).cloned().unwrap_or_default();
        async move {
            // A cluster that does not answer is told already.
            let Ok(cluster) = connector.connect().await else { return Vec::new() };
            of_cluster(&cluster, &LogReader::new(&cluster), &connector.member.name, wanted, None).await
        }
    };
    let found = block_on(taffrail_observe::for_each_cluster(members, source.limits(), read))??;
    store(answer, found.into_iter().flatten());
    Ok(())
}

/// Reads the logs of causes in one cluster, which is called `name`, each with a deadline of its own and at latest by
/// `until`. Returns them with the numbers of their explanations.
pub(in crate::commands) async fn of_cluster(
    cluster: &Cluster,
    reader: &LogReader,
    name: &str,
    wanted: Wanted,
    until: Option<Instant>,
) -> Vec<(usize, Result<FoundLog, AppError>)> {
    let reads = wanted.into_iter().map(|(place, key)| async move {
        let log = last_lines(cluster, reader, &key, until).await;
        let log = log.map_err(|failure| unfound(name, &key, failure));
        (place, log)
    });
    futures::future::join_all(reads).await
}

/// Returns the error that the Pods of the cause `key` in the cluster `name` could not be read.
pub(in crate::commands) fn unfound(name: &str, key: &ObjectKey, failure: Failure) -> AppError {
    let error = ScopeError {
        scope: Scope::Object(key.clone()),
        reason: failure.reason,
        message: format!("cannot read the log of {}: {}", object(key), failure.message),
    };
    AppError { cluster: name.to_owned(), error }
}

/// Adds logs, with the numbers of their explanations, to the answer.
pub(in crate::commands) fn store(
    answer: &mut ExplainAnswer,
    found: impl IntoIterator<Item = (usize, Result<FoundLog, AppError>)>,
) {
    for (place, log) in found {
        match log {
            Err(error) => answer.log_errors.push(error),
            Ok(None) => {}
            Ok(Some((log, lacks))) => {
                answer.lacks_logs |= lacks;
                if let Some(item) = answer.items.get_mut(place) {
                    item.explanation.logs = Some(log);
                }
            }
        }
    }
}

/// Prints why the Pods of causes could not be read. Returns the exit code: [`Exit::Incomplete`] if a log or Pods could
/// not be read, unless the container has no log yet, or the cluster does not answer.
pub(super) fn tell(errors: &[AppError], lacks_logs: bool, console: &Console) -> Exit {
    let mut exit = if lacks_logs { Exit::Incomplete } else { Exit::Yes };
    for AppError { cluster, error } in errors {
        let complaint = CommandError::unreadable(format!("{cluster}: {}", error.message))
            .maybe_hint(reasons::hint(&error.reason).map(str::to_owned));
        complaint.print(console);
        exit = exit.max(complaint.exit);
    }
    exit
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
    until: Option<Instant>,
) -> Result<FoundLog, Failure> {
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
    let limits = ReadLimits::from_now();
    let limits = ReadLimits { until: until.map_or(limits.until, |until| until.min(limits.until)), ..limits };
    let (failure, log) = match reader.read(&request, limits).await {
        Ok(read) => (read.failure, log.with_lines(read.lines.into_iter().map(|line| line.text))),
        Err(error) => (Some(error), log),
    };
    Ok(Some(match failure {
        None => (log, false),
        Some(error) => {
            let reason = error.reason();
            // That a container has not started is no failure to read its log.
            let is_begun = reason != Reason::BadRequest;
            let text = match hint(reason.as_str()).filter(|_| is_begun) {
                Some(hint) => format!("{}; {hint}", chain(&error)),
                None => chain(&error),
            };
            (log.with_error(&text), is_begun)
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
