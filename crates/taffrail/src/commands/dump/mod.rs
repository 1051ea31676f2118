//! `taffrail dump`: writes the objects of clusters to files.

mod file;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueHint};
use taffrail_cluster::Cluster;
use taffrail_observe::recording::{Closing, RecordedScope, State};
use taffrail_observe::{
    ClusterConnector, Failure, FleetMembers, RecordRequest, TimeBudget, TimeLimits, record,
};
use tokio::sync::mpsc;

use self::file::{DumpTarget, Output};
use crate::cli::duration;
use crate::command_error::{CommandError, Exit};
use crate::commands::wait::ClusterArguments;
use crate::output::answer::Console;
use crate::reasons;
use crate::source;

/// Write the objects of clusters to dump files, which --from reads instead of clusters.
#[derive(Debug, Args)]
#[command(
    mut_arg("request_timeout", |it| it.help("Limit the time of each request to a cluster, such as 5s; a longer one fails; 0 for no limit [default: 30s]")),
    after_help = "\
Examples:
  taffrail dump -o prod.jsonl                    the cluster of the current context
  taffrail dump --all-contexts -o dumps/         all clusters, one file each
  taffrail dump -n shop -o shop.jsonl            one namespace, and cluster-scoped objects
  taffrail get apps --from dumps/                show the apps in the dumps

A dump contains every object that you may list in full: specs with the values of environment variables, ConfigMaps
with their data, events. Of Secrets it contains names, labels and the annotations that name their owner, but no values,
except Helm's releases, whose manifests may contain passwords given to a chart, and the addresses in kubeconfigs and in
Argo CD's cluster Secrets, without users and passwords. Copies that kubectl and kapp keep of objects are left out. The
dump records which kinds were read and which were refused, so that --from shows unread objects as Unknown.
Only its owner may read the file (mode 0600), which gets its name when it is complete.
What a cluster did not send within --timeout is recorded as not read.
In a folder, a cluster that does not answer has a file too, with the reason.

Exit codes: 0 written; 2 wrong usage; 3 some data could not be read (the rest is still written)."
)]
pub(crate) struct DumpArguments {
    /// Write the dump to this file, or - for stdout. If several clusters are selected, the name ends with / or a folder
    /// has it, it names a folder, created if missing, which gets one file per cluster [default: stdout; several
    /// clusters need -o]
    #[arg(short, long, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    output: Option<PathBuf>,

    /// Dump only the objects of this namespace, and all cluster-scoped objects [default: all namespaces]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    namespace: Option<String>,

    /// Dump the objects of all namespaces, which is the default
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// Limit the size of each cluster's dump, in MiB; objects beyond it are left out, and recorded as not read
    #[arg(long, value_name = "MIB", default_value_t = 4096)]
    max_size: u64,

    /// Limit the time of the command for each cluster, such as 30s or 10m; objects that were not sent by then are
    /// recorded as not read [default: 30m]. In this release, without --request-timeout, it limits each request instead,
    /// and each cluster has 30m, or TIME if that is longer
    #[arg(id = "whole", long = "timeout", value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) clusters: ClusterArguments,
}

/// Deletes the temporary files of dumps in progress. No dump creates a file before the returned guard is dropped, which
/// the caller keeps until the process ends.
pub(crate) fn abandon() -> impl Sized {
    file::abandon()
}

/// The time limit of one request without `--request-timeout`.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The time limit of each cluster without `--timeout`: enough for a dump of the maximum size over a slow
/// network, and an end for a server that answers in drops.
const TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Maximum number of pages of one cluster that are read but not yet written; reading waits while there are as many.
const MAX_WAITING: usize = 4;

/// Extension of dump files.
const EXTENSION: &str = "jsonl";

/// Maximum number of failed scopes of a cluster that are printed; the others are counted, and the dump lists all.
const MAX_TOLD: usize = 5;

pub(crate) fn run(arguments: &DumpArguments, console: &Console) -> Result<Exit, CommandError> {
    let (whole, request) = times(arguments.timeout, arguments.clusters.request_timeout);
    let limits = TimeLimits { total: TimeBudget::PerCluster(whole), request: Some(request) };
    let source = arguments.clusters.source(whole);
    let FleetMembers { members, problems } = source::members(&source)?;
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let targets = targets(arguments.output.as_deref(), &names)?;
    let mut waiting = targets.iter().cloned();
    let request = RecordRequest {
        namespace: arguments.namespace.clone(),
        max_bytes: arguments.max_size.saturating_mul(1 << 20),
        records_lost: false,
    };
    // Tasks are created in the order of the members, each with its own target.
    let waiting = std::sync::Mutex::new(&mut waiting);
    let results = source::each(members, limits, |live| {
        let console = console.clone();
        let target = waiting.lock().ok().and_then(|mut targets| targets.next());
        let request = request.clone();
        async move { write(&live, target.unwrap_or(DumpTarget::Stdout), request, console).await }
    })?;
    source::print_requests(
        arguments.clusters.verbose,
        results.iter().filter_map(|(_, cluster)| cluster.as_ref()),
        console,
    );
    let mut exit = Exit::Yes;
    for complaint in problems.iter().map(CommandError::from) {
        complaint.print(console);
        exit = exit.max(complaint.exit);
    }
    for (name, (result, _)) in names.iter().zip(&results) {
        let told = match result {
            Ok(written) => tell(name, &written.scopes, written.unread.len(), console),
            Err(failure) => {
                let hint = reasons::hint(&failure.reason).map(str::to_owned);
                CommandError::unreadable(format!("{name}: {}", failure.message))
                    .maybe_hint(hint)
                    .print(console);
                Exit::Incomplete
            }
        };
        exit = exit.max(told);
    }
    Ok(exit)
}

/// Returns the time limits of each cluster and of one request, from `--timeout` (`whole`) and `--request-timeout`. In
/// this release `--timeout` alone limits each request.
fn times(whole: Option<Duration>, request: Option<Duration>) -> (Duration, Duration) {
    match (whole, request) {
        // For one release, the former name of the other flag.
        (Some(former), None) => (TIMEOUT.max(former), former),
        (whole, request) => (whole.unwrap_or(TIMEOUT), request.unwrap_or(REQUEST_TIMEOUT)),
    }
}

/// Reads a cluster and writes its dump to `target`, each page while the next ones are read. Returns the end of the dump
/// or the failure, and the connection if there was one.
async fn write(
    live: &ClusterConnector,
    target: DumpTarget,
    request: RecordRequest,
    console: Console,
) -> (Result<Closing, Failure>, Option<Cluster>) {
    let records_lost = matches!(target, DumpTarget::File { in_folder: true, .. });
    let (lines, mut waiting) = mpsc::channel::<Vec<u8>>(MAX_WAITING);
    let place = target.clone();
    let writer = tokio::task::spawn_blocking(move || {
        let Some(first) = waiting.blocking_recv() else { return Ok(()) };
        let mut output = Output::open(&place, &console)?;
        output.write(&first)?;
        while let Some(text) = waiting.blocking_recv() {
            if text.is_empty() {
                return output.finish();
            }
            output.write(&text)?;
        }
        Err(std::io::Error::other("the cluster was not read to the end"))
    });
    let (recorded, cluster) = record(live, &RecordRequest { records_lost, ..request }, lines).await;
    let place = match &target {
        DumpTarget::Stdout => "stdout".to_owned(),
        DumpTarget::File { path, .. } => path.display().to_string(),
    };
    let unwritten = match writer.await {
        Ok(Ok(())) => return (recorded, cluster),
        Ok(Err(error)) => format!("cannot write {place}: {error}"),
        Err(error) => error.to_string(),
    };
    let failure = match recorded {
        Ok(_) => Failure { reason: String::new(), message: unwritten },
        Err(Failure { reason, message }) => Failure { reason, message: format!("{message}; {unwritten}") },
    };
    (Err(failure), cluster)
}

/// Prints the scopes of a cluster that could not be read, at most [`MAX_TOLD`], and that `unread` objects were not read
/// whole. Returns [`Exit::Incomplete`] if there are any, else [`Exit::Yes`].
fn tell(cluster: &str, scopes: &[RecordedScope], unread: usize, console: &Console) -> Exit {
    let failed: Vec<&RecordedScope> =
        scopes.iter().filter(|scope| matches!(scope.state, State::Forbidden | State::Failed)).collect();
    for scope in failed.iter().take(MAX_TOLD) {
        let hint = reasons::hint(&scope.reason).map(str::to_owned);
        CommandError::unreadable(format!("{cluster}: {}", scope.message)).maybe_hint(hint).print(console);
    }
    if failed.len() > MAX_TOLD {
        let more = failed.len() - MAX_TOLD;
        CommandError::unreadable(format!(
            "{cluster}: {more} more kinds could not be read; the dump names them"
        ))
        .print(console);
    }
    if unread > 0 {
        CommandError::unreadable(format!("{cluster}: {unread} objects could not be read whole"))
            .print(console);
    }
    if failed.is_empty() && unread == 0 { Exit::Yes } else { Exit::Incomplete }
}

/// Returns the target of the dump of each cluster in `names`, from `--output`: stdout, the file, or one file per
/// cluster in a folder, which it creates. Fails if several clusters would share stdout or a file, or the folder cannot
/// be created.
fn targets(output: Option<&Path>, names: &[String]) -> Result<Vec<DumpTarget>, CommandError> {
    let several = names.len() > 1;
    let Some(output) = output.filter(|output| output.as_os_str() != "-") else {
        return match several {
            false => Ok(vec![DumpTarget::Stdout]),
            true => {
                Err(CommandError::usage("stdout takes the dump of one cluster, and several are selected")
                    .hint("-o DIR/ writes one file per cluster into a folder"))
            }
        };
    };
    let is_folder = output.is_dir() || output.as_os_str().to_string_lossy().ends_with('/');
    if !several && !is_folder {
        return Ok(vec![DumpTarget::File { path: output.to_owned(), in_folder: false }]);
    }
    if output.exists() && !output.is_dir() {
        let what = format!("several clusters are selected, and {} is a file", output.display());
        return Err(CommandError::usage(what).hint("name a folder with -o DIR: it gets one file per cluster"));
    }
    file::folder(output).map_err(|error| {
        CommandError::unreadable(format!("cannot create the folder {} for the dumps", output.display()))
            .with_source(&error)
    })?;
    let mut taken = BTreeSet::new();
    let place = |name: &String| {
        let plain = file_name(name);
        let numbered = (2..).map(|number| format!("{plain}-{number}"));
        let stem = std::iter::once(plain.clone()).chain(numbered).find(|stem| taken.insert(stem.clone()));
        let path = output.join(format!("{}.{EXTENSION}", stem.unwrap_or(plain)));
        DumpTarget::File { path, in_folder: true }
    };
    Ok(names.iter().map(place).collect())
}

/// Returns a file name, without extension, for the cluster of a context, from its first 200 characters: others than
/// ASCII letters, digits and `-_.@` become `_`. The name is never empty and never begins with a dot.
fn file_name(context: &str) -> String {
    let plain = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' | '@' => character,
        _ => '_',
    };
    let name: String = context.chars().take(200).map(plain).collect();
    match name.starts_with('.') || name.is_empty() {
        true => format!("_{name}"),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_has_an_end_though_nobody_sets_one() {
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
        assert_eq!(times(None, None), (TIMEOUT, REQUEST_TIMEOUT));
        assert_eq!(times(None, Some(Duration::MAX)), (TIMEOUT, Duration::MAX));
        assert_eq!(times(Some(hour), Some(minute)), (hour, minute));
        // The former name of the other flag.
        assert_eq!((times(Some(minute), None), times(Some(hour), None)), ((TIMEOUT, minute), (hour, hour)));
    }

    #[test]
    fn names_of_files_stay_in_the_folder() {
        assert_eq!(file_name("arn:aws:eks:eu/prod"), "arn_aws_eks_eu_prod");
        assert_eq!(file_name("../../etc/passwd"), "_.._.._etc_passwd");
        assert_eq!(file_name(""), "_");
    }
}
