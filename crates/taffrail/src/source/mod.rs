//! Reads clusters and dumps for the command line: converts arguments for [`taffrail_observe`], and shows progress and
//! statistics.

mod ask;
mod hub;
mod hub_connector;
mod hub_events;
mod hub_operation;
mod hub_stream;
mod hub_watch;
mod namespaces;
mod requests;
mod stopwatch;

use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use taffrail_apps::{AppLabels, ReadQuery, Snapshot};
use taffrail_cluster::{BootClock, ListStrategy};
use taffrail_observe::{
    ClusterConnector, ClusterSelection, DumpRequest, ExtraObjects, FleetMembers, FleetSnapshot, FleetWatcher,
    LightReach, LookRequest, Member, NO_EXTRA, TimeLimits, WatchRequest,
};
use taffrail_status::assess::Budgets;

use crate::cli::{SourceArguments, ViewArguments};
use crate::command_error::CommandError;
use crate::output::answer::Console;
use crate::output::progress::Progress;
use crate::rule_source::{RuleSource, RulesWithOptions};
use crate::runtime::block_on;

pub(crate) use ask::{ask, ask_hub};
pub(crate) use hub::{HubBudget, ask as question_hub, ask_at as ask_hub_at, get};

/// The path to which the question of an operation is posted.
pub(crate) const PLANS: &str = "/api/v1/plans";
/// The path to which the name of an object is posted, for its actions.
#[cfg(any(feature = "lua", feature = "tui"))]
pub(crate) const ACTIONS: &str = "/api/v1/actions";
pub(crate) use hub_events::{NoEvents, hub_logs};
pub(crate) use hub_operation::hub_operation;
#[cfg(feature = "tui")]
pub(crate) use hub_stream::read_stream;
pub(crate) use hub_watch::HubWatch;
pub(crate) use namespaces::{Place, missing_namespaces};
pub(crate) use requests::print_requests;

use stopwatch::Stopwatch;

/// The data source of a view, which reads once or follows clusters.
pub(crate) trait Source {
    /// Reads what `asked` needs from the clusters or dumps of `arguments`; from live clusters then also the objects
    /// that `more` returns for the snapshot of each.
    fn read(
        &mut self,
        arguments: &ViewArguments,
        asked: &ReadQuery,
        more: ExtraObjects<'_>,
    ) -> Result<&FleetSnapshot, CommandError>;

    /// Tells the source that the answer depends on the rows of apps alone, so that a source that follows clusters need
    /// not compute it again while these rows stay the same.
    fn shows_rows(&mut self) {}

    /// Returns the hub to ask for a source that follows, and true if its last answer must be shown again; `None` if the
    /// source reads once.
    fn hub(&mut self) -> Option<(&mut HubWatch, bool)> {
        None
    }
}

/// The source of a view without `-w`, which reads once and keeps the fleet.
pub(crate) struct Once<'c> {
    fleet: Option<TimedFleet>,
    console: &'c Console,
}

impl Once<'_> {
    pub(crate) fn new(console: &Console) -> Once<'_> {
        Once { fleet: None, console }
    }
}

impl Source for Once<'_> {
    fn read(
        &mut self,
        arguments: &ViewArguments,
        asked: &ReadQuery,
        more: ExtraObjects<'_>,
    ) -> Result<&FleetSnapshot, CommandError> {
        Ok(self.fleet.insert(read_with(arguments, asked, more, self.console)?))
    }
}

/// A fleet that was read, with the stopwatch of `-v`, which measures from its creation until it is dropped, when the
/// answer is complete.
pub(crate) struct TimedFleet {
    /// The stopwatch; it is dropped before the fleet, so that it does not measure the time to free that.
    _answering: Option<Stopwatch>,
    fleet: FleetSnapshot,
}

impl TimedFleet {
    fn new(fleet: FleetSnapshot, verbose: u8, console: &Console) -> TimedFleet {
        TimedFleet { _answering: Stopwatch::start(verbose, console), fleet }
    }
}

impl Deref for TimedFleet {
    type Target = FleetSnapshot;

    fn deref(&self) -> &FleetSnapshot {
        &self.fleet
    }
}

/// Reads what `asked` needs from the clusters or dumps of `arguments`, once.
pub(crate) fn read(
    arguments: &ViewArguments,
    asked: &ReadQuery,
    console: &Console,
) -> Result<TimedFleet, CommandError> {
    read_with(arguments, asked, NO_EXTRA, console)
}

/// Reads like [`read`]; from live clusters then also the objects that `more` returns for the snapshot of each.
fn read_with(
    arguments: &ViewArguments,
    asked: &ReadQuery,
    more: ExtraObjects<'_>,
    console: &Console,
) -> Result<TimedFleet, CommandError> {
    if !arguments.source.from.is_empty() {
        let (rules, labels) = (arguments.rules(), asked.app_labels.clone());
        return dumps_by(&arguments.source, &|_| asked.clone(), rules, labels, console);
    }
    block_on(look(arguments, asked, more, console))?
}

/// Reads what `asked` needs from the clusters of `arguments`, once, and then also the objects that `more` returns for
/// the snapshot of each.
pub(crate) async fn look(
    arguments: &ViewArguments,
    asked: &ReadQuery,
    more: ExtraObjects<'_>,
    console: &Console,
) -> Result<TimedFleet, CommandError> {
    let begun = Instant::now();
    let rules = arguments.rules();
    let arguments = &arguments.source;
    let now = arguments.now.unwrap_or_else(Timestamp::now);
    let members = members(arguments)?;
    let progress = waiting(&members.members);
    let answered = Arc::new(move |name: &str| progress.done(name));
    let request = LookRequest {
        members,
        limits: arguments.limits(),
        asked: asked.clone(),
        now,
        rules: Arc::new(rules.clone()),
        answered,
    };
    let (mut fleet, clusters) = taffrail_observe::look(request, more).await?;
    fleet.rules = Arc::new(rules.with_patience(arguments.patience_after(begun.elapsed())));
    print_requests(arguments.verbose, clusters.iter(), console);
    Ok(TimedFleet::new(fleet, arguments.verbose, console))
}

/// Starts to watch what `asked` needs in the clusters of `source`, to be judged by `rules`; returns before any data has
/// come.
pub(crate) fn follow(
    source: &SourceArguments,
    rules: RulesWithOptions,
    asked: &ReadQuery,
    lists: ListStrategy,
) -> Result<FleetWatcher, CommandError> {
    let request = WatchRequest { lists, ..watch_request(members(source)?, source, asked.clone(), rules) };
    block_on(FleetWatcher::start(request))
}

/// Returns the request to watch what `asked` needs of `members`, within the time limits of `source`, judged by `rules`.
pub(crate) fn watch_request(
    members: FleetMembers,
    source: &SourceArguments,
    asked: ReadQuery,
    rules: RulesWithOptions,
) -> WatchRequest {
    WatchRequest {
        members,
        timeout: source.timeout,
        request_timeout: source.request_timeout,
        asked,
        rules: Arc::new(rules),
        lists: ListStrategy::Auto,
        clock: BootClock::default(),
        light: LightReach::default(),
    }
}

/// Reads all objects of the dumps that the arguments name.
pub(crate) fn dumps(arguments: &SourceArguments, console: &Console) -> Result<TimedFleet, CommandError> {
    dumps_of(arguments, &|_| ReadQuery::default(), console)
}

/// Reads the dumps that the arguments name; `asked` returns the query for each. A scope that could not be read when a
/// dump was written is an error only if the query needs it.
pub(crate) fn dumps_of(
    arguments: &SourceArguments,
    asked: &dyn Fn(&Snapshot) -> ReadQuery,
    console: &Console,
) -> Result<TimedFleet, CommandError> {
    let rules =
        RuleSource::default().with_options(Budgets::default(), arguments.patience(), &arguments.trust);
    dumps_by(arguments, asked, rules, AppLabels::default(), console)
}

fn dumps_by(
    arguments: &SourceArguments,
    asked: &dyn Fn(&Snapshot) -> ReadQuery,
    rules: RulesWithOptions,
    labels: AppLabels,
    console: &Console,
) -> Result<TimedFleet, CommandError> {
    let started = Instant::now();
    let (paths, now) = (&*arguments.from, arguments.now);
    let request = DumpRequest { paths, now, rules: Arc::new(rules), labels };
    let fleet = taffrail_observe::read_dumps(request, asked)?;
    if arguments.verbose > 0 {
        stopwatch::tell_read(&fleet.snapshots, started.elapsed(), console);
    }
    Ok(TimedFleet::new(fleet, arguments.verbose, console))
}

/// Converts the arguments that select contexts and the kubeconfig.
fn selection(arguments: &SourceArguments) -> ClusterSelection {
    ClusterSelection {
        contexts: arguments.context.clone(),
        all_contexts: arguments.all_contexts,
        kubeconfig: arguments.kubeconfig.clone(),
    }
}

/// Returns the clusters that the arguments select: those of the named contexts, of all, or of the current one. Fails if
/// the kubeconfig cannot be read, no context matches a pattern, or none is named and the current one cannot be used. A
/// named context that does not exist or cannot be used is the failure of its member alone.
pub(crate) fn members(arguments: &SourceArguments) -> Result<FleetMembers, CommandError> {
    Ok(taffrail_observe::members(&selection(arguments))?)
}

/// Returns the names of all contexts of the kubeconfig.
pub(crate) fn contexts(arguments: &SourceArguments) -> Result<Vec<String>, CommandError> {
    Ok(taffrail_observe::contexts(&selection(arguments))?)
}

/// Calls `work` for each member, for all at the same time, within `limits` and with a progress line, and returns the
/// results in the order of the members.
pub(crate) fn each<T, F>(
    members: Vec<Member>,
    limits: TimeLimits,
    work: impl Fn(ClusterConnector) -> F,
) -> Result<Vec<T>, CommandError>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    block_on(each_here(members, limits, work))?
}

/// Does what [`each`] does, in the runtime of the caller.
pub(crate) async fn each_here<T, F>(
    members: Vec<Member>,
    limits: TimeLimits,
    work: impl Fn(ClusterConnector) -> F,
) -> Result<Vec<T>, CommandError>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let progress = waiting(&members);
    let work = |live: ClusterConnector| {
        let (name, progress) = (live.member.name.clone(), progress.clone());
        let working = work(live);
        async move {
            let result = working.await;
            progress.done(&name);
            result
        }
    };
    Ok(taffrail_observe::for_each_cluster(members, limits, work).await?)
}

/// Returns a progress line with the names of `members`, which appears after a second.
fn waiting(members: &[Member]) -> Progress {
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let text = match names.len() {
        1 => "asking".to_owned(),
        several => format!("asking {several} clusters"),
    };
    Progress::start(text, names)
}
