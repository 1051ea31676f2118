//! `taffrail logs`: prints the logs of an app's or object's containers.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use taffrail_api::question::{FleetFacts, concerning};
use taffrail_apps::{App, AppList, AppQuery, Dependents, ReadQuery};
use taffrail_cluster::{Cluster, LogRequest, ReadError, Reason, chain};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{Object, ObjectKey};
use taffrail_observe::logs::{
    ContainerLog, LogChoice, LogLine, LogNews, LogReader, LogTarget, LogTargets, MAX_FOLLOWED, MAX_LOG_BYTES,
    PodsOf, PodsRequest, choose, pods_of_app, pods_of_object,
};
use taffrail_observe::{ClusterConnector, Failure, FleetMembers, FleetSnapshot, Member, NO_EXTRA, ObjectArg};
use taffrail_status::Status;

use super::{get, named};
use crate::cli::{self, GroupingArguments, NameArguments, Pdb, SourceArguments, ViewArguments};
use crate::command_error::{CommandError, Exit, advise, written};
use crate::output::answer::Console;
use crate::output::{Printable, Sieve, printable, style};
use crate::program;
use crate::rule_source::RuleSource;
use crate::runtime::block_on;
use crate::source::{self, Once, Source};
use crate::{phrase, say};

/// Number of lines of each log without `--tail` and `--since`, if there are several logs, as in kubectl.
const TAIL_OF_SEVERAL: u64 = 10;
/// Maximum number of logs that are read at the same time; further ones wait. Each is kept until those before it are
/// printed.
const MAX_AHEAD: usize = 8;
/// Maximum number of failed logs that are printed one by one; the others are counted.
const MAX_TOLD: usize = 5;

/// Print the logs of the containers of an app or object; if some of them fail, by default only theirs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail logs shop                             the failing containers of the app, or all of them if none fails
  taffrail logs shop -f                          and what they write from now on
  taffrail logs deploy/web -n shop --tail 100    the last 100 lines of each of its Pods
  taffrail logs pod/web-6d4c-xk2 -n shop -c app --previous
  taffrail logs svc/web -n shop --all-pods --since 5m
  taffrail logs shop --all-contexts              in every cluster that has it

Lines begin with POD/CONTAINER where there are several. A Pod that fails hides those that are well, unless --all-pods is
given; of more than 100 containers in a cluster the rest is left out. Control characters are replaced, lines are cut at
16 KiB, and a log that is not followed at 16 MiB.

With -f each container is followed through its restarts, at most 8 in a cluster; further ones are neither printed nor
followed. Lines that cannot be printed in time are left out, the oldest first, and counted.

Exit codes: 0 answered; 2 wrong usage, no match for a name, or several apps; 3 a log or a cluster could not be read (the
rest is still shown); 130 interrupted.")]
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
}

pub(crate) fn run(arguments: &LogsArguments, console: &Console) -> Result<Exit, CommandError> {
    if !arguments.source.from.is_empty() {
        return Err(no_logs_in_dumps());
    }
    let (mut found, mut exit) = find(arguments, console)?;
    found.retain(|found| !found.pods.is_empty());
    let mut logs = Vec::new();
    let (mut well, mut left_out, mut known) = (0, 0, BTreeSet::new());
    let chosen: Vec<LogTargets> = found.iter().map(|found| found.choose(arguments)).collect();
    let worst = chosen.iter().filter_map(|chosen| chosen.status).min();
    for (found, chosen) in found.iter().zip(chosen) {
        known.extend(chosen.known);
        // Pods that fail in one cluster hide those that are well in others, too.
        let is_hidden = chosen.status == Some(Status::Current) && worst != chosen.status;
        if is_hidden && !arguments.all_pods && !found.are_named {
            well += found.pods.len();
            continue;
        }
        (well, left_out) = (well + chosen.well, left_out + chosen.left_out);
        let reader = LogReader::new(&found.cluster);
        logs.extend(chosen.targets.into_iter().map(|target| Log::new(found, &reader, target, arguments)));
    }
    if logs.is_empty() {
        if let (Some(container), false) = (&arguments.container, known.is_empty()) {
            let complaint = CommandError::usage(format!("no Pod has a container '{container}'"));
            return Err(complaint
                .hint(format!("the containers of these Pods are {}", Vec::from_iter(known).join(", "))));
        }
        if exit == Exit::Yes {
            console.tell(phrase!("{} has no Pods.\n", printable(&arguments.what)));
        }
        return Ok(exit);
    }
    name(&mut logs, arguments);
    if well > 0 && arguments.container.is_none() {
        let others =
            if well == 1 { "1 other Pod is well".to_owned() } else { format!("{well} other Pods are well") };
        advise(&format!("{others}; --all-pods prints the logs of all"), console);
    }
    if left_out > 0 {
        let what = format!("the logs of {left_out} more containers are left out");
        CommandError::unreadable(what)
            .harmless()
            .hint("to print fewer logs, name a Pod, or a container with -c")
            .print(console);
    }
    exit = exit.max(match arguments.follow {
        true => block_on(follow(logs, console))??,
        false => block_on(print(logs, console))??,
    });
    Ok(exit)
}

/// Returns the error for `--from`: a dump contains no logs.
pub(super) fn no_logs_in_dumps() -> CommandError {
    CommandError::usage("a dump holds no logs")
        .hint("omit --from, and name the cluster with --context; or print the logs where the dump was made")
}

/// One cluster, and the Pods of the app or object in it.
struct ClusterPods {
    name: String,
    cluster: Cluster,
    pods: Vec<OwnedDocument>,
    /// True if the user named the Pods themselves, not an app or objects that have Pods.
    are_named: bool,
}

impl ClusterPods {
    fn choose(&self, arguments: &LogsArguments) -> LogTargets {
        let pods: Vec<Object<'_>> = self.pods.iter().filter_map(|pod| Object::new(pod.root()).ok()).collect();
        let all_pods = arguments.all_pods || self.are_named;
        choose(&pods, &LogChoice { container: arguments.container.clone(), all_pods })
    }
}

/// Finds the Pods of the app or object that the user named, in each cluster. Prints what could not be read, and returns
/// its exit code. Fails if there is no such app or object.
fn find(arguments: &LogsArguments, console: &Console) -> Result<(Vec<ClusterPods>, Exit), CommandError> {
    let text = &arguments.what;
    let query = text.parse::<AppQuery>().ok();
    // The full name of an app has as many parts as that of an object.
    let object = match &query {
        Some(query) if query.cluster().is_some() => None,
        _ => text.parse::<ObjectArg>().ok(),
    };
    if query.is_none() && object.is_none() {
        let what = format!("'{text}' is neither the name of an app nor of an object");
        return Err(CommandError::usage(what)
            .hint("name an app as NAME or NAMESPACE/NAME, an object as KIND/NAME or [CLUSTER/]group/Kind/namespace/name"));
    }
    let (members, all) = selected(arguments, object.as_ref().and_then(ObjectArg::cluster), console)?;
    let mut exit = Exit::Yes;
    let mut declaring = None;
    let mut unread = Vec::new();
    if let Some(object) = &object {
        let objects = of_objects(arguments, object, members)?;
        let mut found = Vec::new();
        let (mut is_served, mut keys, mut notes) = (false, Vec::new(), Vec::new());
        for (name, answer) in objects {
            match answer {
                Ok((cluster, PodsOf { objects, is_served: own, pods, note })) => {
                    notes.extend(note.map(|note| format!("{name}: {note}")));
                    is_served |= own;
                    let are_named = objects.iter().all(|key| (&*key.group, &*key.kind) == ("", "Pod"));
                    keys.extend(objects);
                    found.push(ClusterPods { name, cluster, pods, are_named });
                }
                Err(failure) => unread.push((name, failure)),
            }
        }
        once_each(&mut found);
        notes.iter().for_each(|note| CommandError::unreadable(note).harmless().print(console));
        if found.iter().any(|found| !found.pods.is_empty()) || query.is_none() && !keys.is_empty() {
            return Ok((found, exit.max(tell_unread(&unread, console))));
        }
        // An object that declares an app stands for that app.
        declaring = keys.into_iter().next();
        if declaring.is_none() && (is_served || query.is_none() || !unread.is_empty()) {
            let is_an_app = query.as_ref().map(|query| of_app(arguments, query, all, console));
            return match is_an_app {
                Some(Ok(found)) => Ok(found),
                _ if !unread.is_empty() => {
                    exit = exit.max(tell_unread(&unread, console));
                    Ok((Vec::new(), exit))
                }
                _ => Err(not_found(object, is_served, arguments.all_namespaces)),
            };
        }
    }
    match (&query, declaring) {
        (_, Some(key)) => of_declaring(arguments, &key, all, console),
        (Some(query), None) => of_app(arguments, query, all, console),
        (None, None) => Ok((Vec::new(), exit)),
    }
}

fn not_found(object: &ObjectArg, is_served: bool, has_searched_all: bool) -> CommandError {
    match is_served {
        true => CommandError::usage(format!("there is no {object}")).hint(named::elsewhere(
            "logs",
            object,
            has_searched_all,
        )),
        false => CommandError::usage(format!(
            "the server has no kind for {object}, and there is no app of that name"
        ))
        .hint(format!("{} lists the kinds", program::hinted("kubectl api-resources"))),
    }
}

/// Returns the clusters that the arguments select by `--cluster`, only the one called `own` if that is given, and all
/// that they read; prints problems with contexts. Fails if a named cluster does not exist.
fn selected(
    arguments: &LogsArguments,
    own: Option<&str>,
    console: &Console,
) -> Result<(Vec<Member>, Vec<Member>), CommandError> {
    let FleetMembers { members, problems } = source::members(&arguments.source)?;
    let names: Vec<&str> = members.iter().map(|member| &*member.name).collect();
    let wanted = arguments.cluster.iter().map(String::as_str).chain(own);
    if let Some(complaint) = named::unknown_cluster(wanted, &names) {
        return Err(complaint);
    }
    for problem in &problems {
        CommandError::from(problem).print(console);
    }
    let is_chosen = |member: &&Member| {
        (arguments.cluster.is_empty() || arguments.cluster.contains(&member.name))
            && own.is_none_or(|own| own == member.name)
    };
    Ok((members.iter().filter(is_chosen).cloned().collect(), members))
}

/// The name of a cluster that could not be read, and the failure.
type Unread = (String, Failure);

/// The name of a cluster, and the result of asking it.
type OfCluster<T> = (String, Result<T, Failure>);

/// Returns for each cluster its name, and the connection with the Pods of the object, or the failure.
fn of_objects(
    arguments: &LogsArguments,
    object: &ObjectArg,
    members: Vec<Member>,
) -> Result<Vec<OfCluster<(Cluster, PodsOf)>>, CommandError> {
    let request = PodsRequest {
        object: object.clone(),
        namespace: arguments.namespace.clone(),
        all_namespaces: arguments.all_namespaces,
    };
    source::each(members, arguments.source.limits(), |connector| {
        let request = request.clone();
        async move {
            let name = connector.member.name.clone();
            let found = async {
                let cluster = connector.connect().await?;
                let pods = pods_of_object(&cluster, &request).await?;
                Ok((cluster, pods))
            };
            (name, found.await)
        }
    })
}

/// Removes the Pods whose UID an earlier entry has, so that the logs of a cluster with two contexts are printed once.
fn once_each(found: &mut [ClusterPods]) {
    let mut seen = HashSet::new();
    for found in found {
        found.pods.retain(|pod| {
            let uid = Object::new(pod.root()).map(|pod| pod.text(&["metadata", "uid"]).into_owned());
            uid.is_ok_and(|uid| uid.is_empty() || seen.insert(uid))
        });
    }
}

fn tell_unread(unread: &[Unread], console: &Console) -> Exit {
    for (name, failure) in unread {
        let hint = crate::reasons::hint(&failure.reason).map(str::to_owned);
        CommandError::unreadable(&failure.message)
            .maybe_hint(hint)
            .print_about(&format!("{name}: "), console);
    }
    if unread.is_empty() { Exit::Yes } else { Exit::Incomplete }
}

/// Finds the Pods of the app that `query` names, in each cluster that has it; prints what could not be read, and
/// returns its exit code.
fn of_app(
    arguments: &LogsArguments,
    query: &AppQuery,
    members: Vec<Member>,
    console: &Console,
) -> Result<(Vec<ClusterPods>, Exit), CommandError> {
    let mut which = NameArguments {
        namespace: arguments.namespace.clone(),
        all_namespaces: arguments.all_namespaces,
        cluster: arguments.cluster.clone(),
        grouping: GroupingArguments { app_label: arguments.grouping.app_label.clone() },
    };
    let (view, mut once) = (view(arguments), Once::new(console));
    let (fleet, list) = read(&mut once, &view, &mut which, Some(query))?;
    let apps = named::find("logs", query, (which.namespace.as_deref(), &which.cluster), &list)?;
    let errors = concerning(&list, &apps);
    let exit = get::tell_errors(&errors, &FleetFacts::of(fleet), console);
    let pods = apps.iter().map(|app| (app.app.target.clone(), pods_of_app(fleet, app))).collect();
    let (found, unread) = connected(pods, members, arguments)?;
    Ok((found, exit.max(tell_unread(&unread, console))))
}

/// Finds the Pods of the apps whose declaring object is `key`; prints what could not be read, and returns its exit
/// code.
fn of_declaring(
    arguments: &LogsArguments,
    key: &ObjectKey,
    members: Vec<Member>,
    console: &Console,
) -> Result<(Vec<ClusterPods>, Exit), CommandError> {
    let (view, mut once) = (view(arguments), Once::new(console));
    let mut which = NameArguments {
        namespace: None,
        all_namespaces: true,
        cluster: arguments.cluster.clone(),
        grouping: GroupingArguments { app_label: arguments.grouping.app_label.clone() },
    };
    let (fleet, list) = read(&mut once, &view, &mut which, None)?;
    let is_chosen = |app: &&App| which.cluster.is_empty() || which.cluster.contains(&app.app.target);
    let declared = list.apps.iter().filter(|app| app.declaring.as_ref() == Some(key));
    let apps: Vec<&App> = declared.filter(is_chosen).collect();
    let errors = concerning(&list, &apps);
    let exit = get::tell_errors(&errors, &FleetFacts::of(fleet), console);
    let pods = apps.iter().map(|app| (app.app.target.clone(), pods_of_app(fleet, app))).collect();
    let (found, unread) = connected(pods, members, arguments)?;
    Ok((found, exit.max(tell_unread(&unread, console))))
}

/// Reads the apps declared in the namespace of `which`, and the dependents of the app called `name` (of all apps
/// without one); replaces each alias in `which` by the first name of its cluster. Fails for a cluster of `which` that
/// was not read.
fn read<'s>(
    source: &'s mut Once<'_>,
    view: &ViewArguments,
    which: &mut NameArguments,
    name: Option<&AppQuery>,
) -> Result<(&'s FleetSnapshot, AppList), CommandError> {
    let query = name.map(|name| name.clone().within(which.namespace.as_deref()));
    let asked = ReadQuery {
        namespace: which.namespace.clone(),
        dependents: query.map_or(Dependents::All, Dependents::Of),
        app_labels: which.grouping.labels(),
        ..ReadQuery::default()
    };
    let fleet = source.read(view, &asked, NO_EXTRA)?;
    named::resolve_clusters(&mut which.cluster, fleet)?;
    let list = fleet.apps(&[]);
    Ok((fleet, list))
}

fn view(arguments: &LogsArguments) -> ViewArguments {
    ViewArguments {
        pdb: Pdb::Advisory,
        rules: RuleSource::default(),
        watch: false,
        source: arguments.source.clone(),
    }
}

/// Connects to those clusters in which `pods`, given with the names of their clusters, has any; returns the connections
/// and the failures.
fn connected(
    pods: Vec<(String, Vec<OwnedDocument>)>,
    members: Vec<Member>,
    arguments: &LogsArguments,
) -> Result<(Vec<ClusterPods>, Vec<Unread>), CommandError> {
    let mut wanted: Vec<(String, Vec<OwnedDocument>)> = Vec::new();
    for (name, pods) in pods.into_iter().filter(|(_, pods)| !pods.is_empty()) {
        match wanted.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => known.extend(pods),
            None => wanted.push((name, pods)),
        }
    }
    let is_wanted = |member: &Member| wanted.iter().any(|(name, _)| *name == member.name);
    let members = members.into_iter().filter(is_wanted).collect();
    let clusters = block_on(taffrail_observe::for_each_cluster(
        members,
        arguments.source.limits(),
        |connector: ClusterConnector| async move { (connector.member.name.clone(), connector.connect().await) },
    ))??;
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for (name, connected) in clusters {
        match connected {
            Ok(cluster) => {
                let pods = wanted.iter_mut().find(|(wanted, _)| *wanted == name);
                let pods = pods.map(|(_, pods)| std::mem::take(pods)).unwrap_or_default();
                found.push(ClusterPods { name, cluster, pods, are_named: false });
            }
            Err(failure) => unread.push((name, failure)),
        }
    }
    Ok((found, unread))
}

/// The log of one container, and how it is printed.
struct Log {
    cluster: String,
    reader: LogReader,
    target: LogTarget,
    request: LogRequest,
    /// The name before each line; empty for a single log without `--prefix`.
    prefix: String,
    /// The name of the log: `POD/CONTAINER`, after cluster and namespace where these differ.
    name: String,
}

impl Log {
    fn new(found: &ClusterPods, reader: &LogReader, target: LogTarget, arguments: &LogsArguments) -> Log {
        let request = LogRequest {
            namespace: target.namespace.clone(),
            pod: target.pod.clone(),
            container: target.container.clone(),
            previous: arguments.previous,
            follow: arguments.follow,
            timestamps: arguments.timestamps,
            tail: arguments.tail.and_then(|tail| u64::try_from(tail).ok()),
            since: arguments.since,
        };
        let (cluster, reader) = (found.name.clone(), reader.clone());
        Log { cluster, reader, target, request, prefix: String::new(), name: String::new() }
    }

    /// Prints a line of the log, after its prefix in the colour of the container's status, if it has one.
    fn print(&self, line: &LogLine, out: &mut impl Write) -> io::Result<()> {
        let line = shown(&line.text, line.left_out);
        if self.prefix.is_empty() {
            return say!(out, "{}", line);
        }
        let colour = style(self.target.status);
        say!(out, "{}{}{:#} {}", colour, printable(&self.prefix), colour, line)
    }

    fn complaint(&self, error: &ReadError) -> CommandError {
        CommandError::unreadable(chain(error)).maybe_hint(Some(hint(error).to_owned()))
    }
}

/// Sets the name and the prefix of each log; names begin with cluster and namespace only if the logs differ in these.
/// Limits several logs to [`TAIL_OF_SEVERAL`] lines each without `--tail` and `--since`.
fn name(logs: &mut [Log], arguments: &LogsArguments) {
    let is_one = |part: &dyn Fn(&Log) -> String| logs.iter().map(part).collect::<BTreeSet<_>>().len() < 2;
    let one_cluster = is_one(&|log| log.cluster.clone());
    let one_namespace = is_one(&|log| log.target.namespace.clone());
    let several = logs.len() > 1;
    let bounded = several && arguments.tail.is_none() && arguments.since.is_none();
    for log in logs {
        let LogTarget { namespace, pod, container, .. } = &log.target;
        let cluster = if one_cluster { String::new() } else { format!("{}/", log.cluster) };
        let namespace = if one_namespace { String::new() } else { format!("{namespace}/") };
        log.name = format!("{cluster}{namespace}{pod}/{container}");
        if several || arguments.prefix {
            log.prefix = log.name.clone();
        }
        if bounded {
            log.request.tail = Some(TAIL_OF_SEVERAL);
        }
    }
}

/// Returns the hint for a log that could not be read because of `error`.
pub(super) fn hint(error: &ReadError) -> &'static str {
    match error.reason() {
        Reason::Forbidden => "ask for a role that allows `get` on `pods/log`",
        Reason::NotFound => "the Pod is gone; run the command again to find its successor",
        Reason::BadRequest => {
            "a container that has not started has no log, and one that never ended no previous log; `taffrail explain` \
             tells why it does not start"
        }
        Reason::ServerError => {
            "the API server could not get the log from the Pod's node: is its kubelet reachable?"
        }
        reason => reason.hint(),
    }
}

/// Returns a line of a log without colours, with four spaces for each tab, and with U+FFFD for other control and
/// invisible characters. If `left_out` is not 0, the line ends with the note that so many bytes are missing.
pub(super) fn shown(line: &str, left_out: u64) -> Printable<'static> {
    let mut text = Sieve::clean(&line.replace('\t', "    "), false);
    if left_out > 0 {
        text.push_str(&format!(" … {left_out} more bytes left out"));
    }
    printable(&text).into_owned()
}

/// Counts the logs that could not be read, and prints the first [`MAX_TOLD`] failures.
#[derive(Default)]
struct Failures {
    told: usize,
}

impl Failures {
    fn add(&mut self, log: &Log, error: &ReadError, console: &Console) {
        self.told += 1;
        if self.told <= MAX_TOLD {
            log.complaint(error).print_about(&format!("{}: ", log.cluster), console);
        }
    }

    fn exit(&self, console: &Console) -> Exit {
        match self.told {
            0 => Exit::Yes,
            told => {
                if told > MAX_TOLD {
                    let more = format!("{} more logs could not be read", told - MAX_TOLD);
                    CommandError::unreadable(more).print(console);
                }
                Exit::Incomplete
            }
        }
    }
}

/// Prints the logs one after the other, the failures, and a warning of each log that was cut. Returns the exit code,
/// [`Exit::Incomplete`] if a log could not be read.
async fn print(logs: Vec<Log>, console: &Console) -> Result<Exit, CommandError> {
    let mut out = console.people();
    let mut failures = Failures::default();
    let read = |log: Log| async move {
        let answer = log.reader.read(&log.request).await;
        (log, answer)
    };
    let mut answers = stream::iter(logs.into_iter().map(read)).buffered(MAX_AHEAD);
    while let Some((log, answer)) = answers.next().await {
        let ContainerLog { lines, is_cut, failure } = match answer {
            Ok(answer) => answer,
            Err(error) => {
                failures.add(&log, &error, console);
                continue;
            }
        };
        let printed = lines.iter().try_for_each(|line| log.print(line, &mut out)).and_then(|()| out.flush());
        if is_closed(&printed) {
            return Ok(Exit::Yes);
        }
        written(printed)?;
        if is_cut {
            let what = format!(
                "{}: the log is longer than {} MiB: newer lines are left out",
                log.name,
                MAX_LOG_BYTES >> 20
            );
            CommandError::unreadable(what)
                .harmless()
                .hint("print less of the log with --tail or --since")
                .print(console);
        }
        if let Some(error) = failure {
            failures.add(&log, &error, console);
        }
    }
    Ok(failures.exit(console))
}

/// Prints the logs and what is written to them from now on, until all have ended or stdout is closed. Warns of those
/// that are left out because their cluster has more than [`MAX_FOLLOWED`]. Returns the exit code,
/// [`Exit::Incomplete`] if a log could not be read.
async fn follow(logs: Vec<Log>, console: &Console) -> Result<Exit, CommandError> {
    let mut out = console.people();
    let mut failures = Failures::default();
    let mut unfollowed = 0;
    let mut followed: Vec<BoxStream<'_, (usize, LogNews)>> = Vec::new();
    for (place, log) in logs.iter().enumerate() {
        match log.reader.follow(&log.request, &log.target) {
            Some(follows) => {
                let news = stream::unfold(follows, move |mut follows| async move {
                    let news = follows.next().await?;
                    Some(((place, news), follows))
                });
                followed.push(news.boxed());
            }
            None => unfollowed += 1,
        }
    }
    if unfollowed > 0 {
        let what =
            format!("{unfollowed} more containers are left out: with -f at most {MAX_FOLLOWED} in a cluster");
        CommandError::unreadable(what)
            .harmless()
            .hint("to print fewer logs, name a Pod, or a container with -c")
            .print(console);
    }
    let mut followed = stream::select_all(followed);
    while let Some((place, news)) = followed.next().await {
        let Some(log) = logs.get(place) else { continue };
        let printed = print_news(log, &news, &mut out);
        if is_closed(&printed) {
            return Ok(Exit::Yes);
        }
        written(printed)?;
        if news.waits {
            console.tell(phrase!("{} has ended; waiting for its next run\n", printable(&log.name)));
        }
        match &news.end {
            None => {}
            Some(Ok(())) => console.tell(phrase!("{} has ended\n", printable(&log.name))),
            Some(Err(error)) => failures.add(log, error, console),
        }
    }
    Ok(failures.exit(console))
}

fn print_news(log: &Log, news: &LogNews, out: &mut impl Write) -> io::Result<()> {
    if news.left_out > 0 {
        let lines = if news.left_out == 1 { "line" } else { "lines" };
        say!(out, "… {} {} of {} left out", news.left_out, lines, printable(&log.name))?;
    }
    news.lines.iter().try_for_each(|line| log.print(line, out))?;
    out.flush()
}

fn is_closed(result: &io::Result<()>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_containers_cannot_move_the_cursor_or_hide_text() {
        let shown = |text: &str, left_out| shown(text, left_out).to_string();
        assert_eq!(shown("\tat main \x1b[31mred\x1b[0m", 0), "    at main red");
        assert_eq!(
            shown("\x1b[2Jgone\x07 \u{202e}evil\rover", 0),
            "\u{fffd}[2Jgone\u{fffd} \u{fffd}evil\u{fffd}over"
        );
        assert_eq!(shown("\x1b]0;title", 0), "\u{fffd}]0;title");
        assert_eq!(shown("long", 7), "long … 7 more bytes left out");
    }
}
