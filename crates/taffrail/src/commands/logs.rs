//! `taffrail logs`: prints the logs of an app's or object's containers.
//!
//! * `find` finds the containers, `read` reads and follows their logs as events, `print` prints these. A hub does the
//!   first two for `--hub`.

pub(crate) mod find;
mod print;
pub(crate) mod read;

use std::future::Future;
use std::time::Duration;

use clap::Args;
use futures::StreamExt;
use futures::stream;
use taffrail_api::logs::LogsQuestion;
use taffrail_api::question::QuestionError;
use taffrail_apps::{AppLabels, AppQuery, Dependents, ReadQuery};
use taffrail_cluster::Cluster;
use taffrail_observe::logs::{LogReader, PodsOf, PodsRequest};
use taffrail_observe::{ClusterConnector, FleetMembers, FleetSnapshot, Member, NO_EXTRA, for_each_cluster};

pub(super) use self::print::{hint, shown};

use self::find::{LogSource, OfCluster, Told};
use self::read::ReadBounds;
use super::named;
use crate::cli::{self, GroupingArguments, HubSource, Pdb, SourceArguments, ViewArguments, not_with_hub};
use crate::command_error::{CommandError, Exit};
use crate::hub_url::HubUrl;
use crate::output::answer::Console;
use crate::rule_source::RuleSource;
use crate::runtime::block_on;
use crate::source;

/// Print the logs of the containers of an app or object; if some of them fail, by default only theirs.
#[derive(Debug, Args)]
#[command(
    mut_args(not_with_hub),
    after_help = "\
Examples:
  taffrail logs shop                             the failing containers of the app, or all of them if none fails
  taffrail logs shop -f                          and what they write from now on
  taffrail logs deploy/web -n shop --tail 100    the last 100 lines of each of its Pods
  taffrail logs pod/web-6d4c-xk2 -n shop -c app --previous
  taffrail logs svc/web -n shop --all-pods --since 5m
  taffrail logs shop --all-contexts              in every cluster that has it
  taffrail logs shop --hub http://127.0.0.1:7655 as a hub reads it, with a token that allows logs

Lines begin with POD/CONTAINER where there are several. A Pod that fails hides those that are well, unless --all-pods is
given; of more than 100 containers in a cluster the rest is left out. Control characters are replaced, lines are cut at
16 KiB, and a log that is not followed at 16 MiB.

With -f each container is followed through its restarts, at most 8 in a cluster; further ones are neither printed nor
followed. Lines that cannot be printed in time are left out, the oldest first, and counted.

Exit codes: 0 answered; 2 wrong usage, no match for a name, or several apps; 3 a log or a cluster could not be read (the
rest is still shown); 130 interrupted."
)]
pub(crate) struct LogsArguments {
    /// The app (NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME) or object (KIND/NAME or
    /// [CLUSTER/]group/Kind/namespace/name): a Pod, a workload, a Service, or an object that owns these
    #[arg(value_name = "APP|KIND/NAME")]
    pub(crate) what: String,

    /// Look in this namespace for the declaration of the app, or for an object named KIND/NAME [default: any for apps;
    /// for objects that of the context]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,

    /// Search the app or object in all namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Print only the logs of containers in these clusters: names as in the CLUSTER column, separated by commas
    /// [default: all that are read]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cluster: Vec<String>,

    /// Keep printing what the containers write, also after a restart, until all of them have ended for good or Ctrl-C;
    /// containers of Pods that start later are not followed
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// Print the log of each container's previous run, such as before a crash, instead of the present one
    #[arg(short, long)]
    pub(crate) previous: bool,

    /// Print only the logs of the containers of this name; if some Pods are not Ready, only in those with the worst
    /// status, unless --all-pods is given [default: of each Pod that is not Ready, its containers with the worst
    /// status, those that have not started only if none of them has; of a Ready one, all but init and ephemeral
    /// containers]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) container: Option<String>,

    /// Print the logs of all Pods; by default, if some Pods are not Ready, only those with the worst status, unless the
    /// Pod itself is named
    #[arg(long)]
    pub(crate) all_pods: bool,

    /// Print only this many lines from the end of each log; -1 for all lines [default: all lines of a single container
    /// or with --since; else 10 of each of several containers]
    #[arg(long, value_name = "LINES", allow_negative_numbers = true)]
    pub(crate) tail: Option<i64>,

    /// Print only lines that were written within this time before now, such as 90s or 5m [default: lines of any age]
    #[arg(long, value_name = "TIME", value_parser = cli::duration)]
    pub(crate) since: Option<Duration>,

    /// Begin each line with the time at which it was written (RFC 3339)
    #[arg(long)]
    pub(crate) timestamps: bool,

    /// Begin each line with POD/CONTAINER, which is the default only if there are several containers
    #[arg(long)]
    pub(crate) prefix: bool,

    #[command(flatten)]
    pub(crate) grouping: GroupingArguments,

    #[command(flatten)]
    pub(crate) source: SourceArguments,

    #[command(flatten)]
    pub(crate) hub: HubSource,
}

impl LogsArguments {
    /// Returns the question that the arguments ask.
    fn question(&self) -> LogsQuestion {
        LogsQuestion {
            what: self.what.clone(),
            namespace: self.namespace.clone(),
            all_namespaces: self.all_namespaces,
            clusters: self.cluster.clone(),
            follow: self.follow,
            previous: self.previous,
            container: self.container.clone(),
            all_pods: self.all_pods,
            tail: self.tail,
            since_millis: self.since.map(|since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
            timestamps: self.timestamps,
        }
    }
}

pub(crate) fn run(arguments: &LogsArguments, console: &Console) -> Result<Exit, CommandError> {
    let question = arguments.question();
    if let Some(url) = &arguments.hub.hub {
        return block_on(by_hub(arguments, url, console, || std::future::ready(())))?;
    }
    if !arguments.source.from.is_empty() {
        return Err(no_logs_in_dumps());
    }
    block_on(read_directly(arguments, &question, console))?
}

/// Has the hub at `url` read or follow the logs, and prints them. Awaits `printed` before it takes the next event: the hub
/// sends no more than that.
pub(crate) async fn by_hub<F: Future<Output = ()>>(
    arguments: &LogsArguments,
    url: &HubUrl,
    console: &Console,
    printed: impl Fn() -> F,
) -> Result<Exit, CommandError> {
    let question = arguments.question();
    let events = source::hub_logs(url, &arguments.hub.files, &question, arguments.source.timeout).await?;
    let printed = &printed;
    let taken = stream::unfold(Box::pin(events), |mut events| async move {
        printed().await;
        let event = events.next().await?;
        Some((event, events))
    });
    print::print(taken, arguments, console).await
}

/// Reads the logs of clusters, and prints them.
async fn read_directly(
    arguments: &LogsArguments,
    question: &LogsQuestion,
    console: &Console,
) -> Result<Exit, CommandError> {
    let source = Clusters { arguments, console };
    let mut told = Told::default();
    let chosen = find::pods(&source, question, &mut told)
        .await
        .and_then(|found| Ok(find::chosen(found, question, |_, cluster: &Cluster| LogReader::new(cluster))?));
    let told = told.events();
    let chosen = match chosen {
        Ok(chosen) => chosen,
        Err(refusal) => {
            // What could not be read may be why nothing was found.
            let refused = stream::iter(told.map(Ok)).chain(stream::iter([Err(refusal.0)]));
            return print::print(refused, arguments, console).await;
        }
    };
    let named: Vec<_> = told.chain(chosen.events()).collect();
    let bounds = ReadBounds::OF_COMMAND;
    let logs = match question.follow {
        true => read::follow(chosen.logs, bounds).boxed(),
        false => read::read(chosen.logs, bounds).boxed(),
    };
    print::print(stream::iter(named).chain(logs).map(Ok), arguments, console).await
}

/// Returns the error for `--from`: a dump contains no logs.
pub(super) fn no_logs_in_dumps() -> CommandError {
    CommandError::usage("a dump holds no logs")
        .hint("omit --from, and name the cluster with --context; or print the logs where the dump was made")
}

/// The clusters that the command line selects, which the command reads itself.
struct Clusters<'a> {
    arguments: &'a LogsArguments,
    console: &'a Console,
}

/// An error of finding logs, for the user.
struct Unfound(CommandError);

impl From<QuestionError> for Unfound {
    fn from(error: QuestionError) -> Unfound {
        Unfound(named::refused("logs", &error))
    }
}

impl From<CommandError> for Unfound {
    fn from(error: CommandError) -> Unfound {
        Unfound(error)
    }
}

impl LogSource for Clusters<'_> {
    type Error = Unfound;

    fn members(&self) -> Result<FleetMembers, Unfound> {
        Ok(source::members(&self.arguments.source)?)
    }

    async fn objects(
        &self,
        members: Vec<Member>,
        request: PodsRequest,
    ) -> Result<Vec<OfCluster<(Cluster, PodsOf)>>, Unfound> {
        let work = |connector: ClusterConnector| find::pods_in(connector, request.clone());
        Ok(source::each_here(members, self.arguments.source.limits(), work).await?)
    }

    async fn apps<T: Send + 'static>(
        &self,
        question: &LogsQuestion,
        name: Option<&AppQuery>,
        take: impl FnOnce(&FleetSnapshot) -> T + Send + 'static,
    ) -> Result<T, Unfound> {
        let view = ViewArguments {
            pdb: Pdb::Advisory,
            rules: RuleSource::default(),
            watch: false,
            source: self.arguments.source.clone(),
        };
        let asked = asked(question, name, self.arguments.grouping.labels());
        let fleet = source::look(&view, &asked, NO_EXTRA, self.console).await?;
        Ok(take(&fleet))
    }

    async fn connect(&self, members: Vec<Member>) -> Result<Vec<OfCluster<Cluster>>, Unfound> {
        let limits = self.arguments.source.limits();
        let connected = for_each_cluster(members, limits, find::cluster_of).await;
        Ok(connected.map_err(CommandError::from)?)
    }
}

/// Returns the query for the apps declared in the namespace of the question, and the dependents of the one called
/// `name`, of all apps if it is `None`.
pub(in crate::commands) fn asked(
    question: &LogsQuestion,
    name: Option<&AppQuery>,
    app_labels: AppLabels,
) -> ReadQuery {
    let name = name.map(|name| name.clone().within(question.namespace.as_deref()));
    ReadQuery {
        namespace: question.namespace.clone(),
        dependents: name.map_or(Dependents::All, Dependents::Of),
        app_labels,
        ..ReadQuery::default()
    }
}
