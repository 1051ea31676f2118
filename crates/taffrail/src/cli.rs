//! The arguments of the command line.

mod values;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use taffrail_apps::filter::{SortField, StatusFilter, SyncFilter};
use taffrail_apps::view::FindingCategory;
use taffrail_apps::{AppLabel, AppLabels, AppQuery, Delivery};
use taffrail_object::{LabelSelector, ObjectKey};
use taffrail_status::Trust;
use taffrail_status::assess::Budgets;

pub(crate) use values::{duration, label_selector};

use crate::commands::actions::{ActionArguments, ActionsArguments};
use crate::commands::completion::CompletionArguments;
use crate::commands::config::ConfigArguments;
#[cfg(feature = "demo")]
use crate::commands::demo::DemoArguments;
use crate::commands::dump::DumpArguments;
use crate::commands::rules::RulesArguments;
use crate::commands::status::{StatusArguments, StatusOutput};
use crate::commands::verbs::{ReconcileArguments, ResumeArguments, SuspendArguments};
use crate::commands::wait::WaitArguments;
use crate::rule_source::{RuleSource, RulesWithOptions};

/// Is what was declared running, in every cluster, and what stands in the way where it is not?
#[derive(Debug, Parser)]
#[command(
    name = "taffrail",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  taffrail get apps                              the apps of the current context, and how they are
  taffrail get apps --all-contexts               of every cluster you know, side by side
  taffrail explain shop                          why is it not ready?
  taffrail get apps --from dumps/                of files, without a cluster
  taffrail reconcile shop                        have its tool look at it now, and follow what comes of it
  taffrail COMMAND --help                        more examples

Exit codes: 0 answered; 1 the answer is no (with --exit-status); 2 wrong usage; 3 something that was asked for could
not be read (the rest is still shown); 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Read settings from this file [default: $TAFFRAIL_CONFIG, or ~/.config/taffrail/config.yaml]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Everywhere")]
    pub(crate) config: Option<PathBuf>,

    /// When to use colours; auto: on a terminal, as NO_COLOR and CLICOLOR_FORCE say
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto, help_heading = "Everywhere")]
    pub(crate) color: Color,

    /// Print long answers at once, without $PAGER
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub(crate) no_pager: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Explain(ExplainArguments),
    Get(GetArguments),
    App(AppArguments),
    Tree(TreeArguments),
    Events(EventsArguments),
    Trust(TrustArguments),
    Status(StatusArguments),
    Wait(WaitArguments),
    Reconcile(ReconcileArguments),
    Suspend(SuspendArguments),
    Resume(ResumeArguments),
    Actions(ActionsArguments),
    Action(ActionArguments),
    Dump(DumpArguments),
    Rules(RulesArguments),
    Config(ConfigArguments),
    Completion(CompletionArguments),
    #[cfg(feature = "demo")]
    Demo(DemoArguments),
}

impl Command {
    /// Returns the contexts and the trust settings of a command that reads clusters.
    pub(crate) fn clusters_mut(&mut self) -> Option<(&mut Vec<String>, &mut Trust)> {
        let source = match self {
            Command::Explain(arguments) => &mut arguments.view.source,
            Command::Get(arguments) => &mut arguments.view.source,
            Command::App(arguments) => &mut arguments.view.source,
            Command::Tree(arguments) => &mut arguments.view.source,
            Command::Events(arguments) => &mut arguments.view.source,
            Command::Trust(arguments) => &mut arguments.view.source,
            Command::Status(arguments) => &mut arguments.source,
            Command::Wait(WaitArguments { clusters, .. }) | Command::Dump(DumpArguments { clusters, .. }) => {
                return Some((&mut clusters.context, &mut clusters.trust));
            }
            Command::Reconcile(arguments) => &mut arguments.acting.source,
            Command::Suspend(arguments) => &mut arguments.acting.source,
            Command::Resume(arguments) => &mut arguments.acting.source,
            Command::Actions(arguments) => &mut arguments.which.source,
            Command::Action(arguments) => &mut arguments.which.source,
            Command::Rules(arguments) => return arguments.clusters_mut(),
            Command::Config(_) | Command::Completion(_) => return None,
            #[cfg(feature = "demo")]
            Command::Demo(_) => return None,
        };
        Some((&mut source.context, &mut source.trust))
    }

    /// Returns true if the command runs until it is interrupted or a condition is met.
    pub(crate) fn watches(&self) -> bool {
        match self {
            Command::Explain(ExplainArguments { view, .. })
            | Command::Get(GetArguments { view, .. })
            | Command::App(AppArguments { view, .. })
            | Command::Tree(TreeArguments { view, .. })
            | Command::Events(EventsArguments { view, .. })
            | Command::Trust(TrustArguments { view, .. }) => view.watch,
            Command::Status(status) => status.watch,
            Command::Wait(_) => true,
            #[cfg(feature = "demo")]
            Command::Demo(_) => true,
            Command::Reconcile(_)
            | Command::Suspend(_)
            | Command::Resume(_)
            | Command::Actions(_)
            | Command::Action(_)
            | Command::Dump(_)
            | Command::Rules(_)
            | Command::Config(_)
            | Command::Completion(_) => false,
        }
    }

    /// Returns true if the answer may be held back for a pager. Streams of lines are printed as they come.
    pub(crate) fn is_paged(&self) -> bool {
        match self {
            // These print progress while they run.
            Command::Completion(_)
            | Command::Dump(_)
            | Command::Wait(_)
            | Command::Reconcile(_)
            | Command::Suspend(_)
            | Command::Resume(_)
            | Command::Action(_) => false,
            #[cfg(feature = "demo")]
            Command::Demo(_) => false,
            Command::Status(arguments) => {
                !matches!(arguments.output, StatusOutput::Jsonl | StatusOutput::Name)
            }
            _ => true,
        }
    }
}

/// The clusters or dumps to read; the same for every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Where from")]
pub(crate) struct SourceArguments {
    /// Ask the clusters of these contexts: a,b or 'prod-*'; may be given more than once [default: the current context]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Vec<String>,

    /// Ask the clusters of all contexts
    #[arg(long, conflicts_with = "context")]
    pub(crate) all_contexts: bool,

    /// Read this kubeconfig [default: $KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Read dumps and ask no cluster: a file is a cluster, a folder a fleet
    #[arg(long, value_name = "FILE|DIR", conflicts_with_all = ["context", "all_contexts", "kubeconfig"])]
    pub(crate) from: Vec<PathBuf>,

    /// Take this for the current time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub(crate) now: Option<jiff::Timestamp>,

    /// How long a cluster may take to answer everything, such as 5s, 500ms or 1m
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) timeout: Duration,

    /// Tell on stderr how long it took; twice: each request; three times: what each was for
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// The user's trust in rules that clusters define, from the settings.
    #[arg(skip)]
    pub(crate) trust: Trust,
}

impl SourceArguments {
    /// Reads all clusters of a kubeconfig, each for `timeout` at most.
    #[cfg(any(feature = "demo", test))]
    pub(crate) fn of_kubeconfig(path: PathBuf, timeout: Duration) -> SourceArguments {
        SourceArguments {
            context: Vec::new(),
            all_contexts: true,
            kubeconfig: Some(path),
            from: Vec::new(),
            now: None,
            timeout,
            verbose: 0,
            trust: Trust::default(),
        }
    }
}

/// The clusters or dumps to read, and the options for judging objects; the same for every view.
#[derive(Debug, Args)]
pub(crate) struct ViewArguments {
    /// What a PodDisruptionBudget means for the Deployment whose Pods it protects
    #[arg(long, value_enum, value_name = "MEANING", default_value_t = Pdb::Advisory)]
    pub(crate) pdb: Pdb,

    /// Whose rules decide: Taffrail's, kstatus', or those of a folder before Taffrail's
    #[arg(long, value_name = "taffrail|kstatus|DIR", default_value = "taffrail", value_parser = RuleSource::read, value_hint = ValueHint::DirPath)]
    pub(crate) rules: RuleSource,

    /// Go on, and show what changes as it changes, until Ctrl-C
    #[arg(short, long, conflicts_with_all = ["from", "now"])]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) source: SourceArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pdb {
    /// Nothing: a Deployment is ready when all its replicas are
    Advisory,
    /// A Deployment is ready when as many Pods are available as its budget wants
    Sufficient,
}

impl ViewArguments {
    /// Returns the rules with their options.
    pub(crate) fn rules(&self) -> RulesWithOptions {
        self.rules.with_options(self.pdb.into(), self.source.timeout, &self.source.trust)
    }
}

impl From<Pdb> for Budgets {
    fn from(pdb: Pdb) -> Budgets {
        match pdb {
            Pdb::Advisory => Budgets::Advisory,
            Pdb::Sufficient => Budgets::Sufficient,
        }
    }
}

/// List apps, clusters, or the objects of apps.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail get apps                              the apps of the current context
  taffrail get apps --all-contexts -o wide       of every cluster, with revisions and sources
  taffrail get clusters --context prod --context edge
  taffrail get apps --status '!Ready' --sort since      what is not well, for longest first
  taffrail get resources --kind deploy --image nginx   who runs an image
  taffrail get resources -n flux-system          every object that the apps declared there consist of
  taffrail get apps --in-namespace shop          apps that have objects there, wherever they are declared
  taffrail get apps --from dumps/ -o json        of files, without a cluster

Exit codes: 0 answered; 1 with --exit-status when something is not ready; 2 wrong usage; 3 when
something that was asked for could not be read (the rest is still shown).")]
pub(crate) struct GetArguments {
    /// What to list
    #[arg(value_enum)]
    pub(crate) what: What,

    /// Only these apps, or the objects of these: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME, as `get apps -o
    /// name` prints it [default: all]
    #[arg(value_name = "APP")]
    pub(crate) name: Vec<AppQuery>,

    /// Only apps declared in this namespace, or their objects; those that have objects there: --in-namespace [default: all]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,

    /// Apps of all namespaces, which is the default
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Take these objects for one app: group/Kind/namespace/name,…
    #[arg(long, value_name = "REF,…", value_delimiter = ',', conflicts_with = "namespace")]
    pub(crate) declared: Vec<ObjectKey>,

    #[command(flatten)]
    pub(crate) grouping: GroupingArguments,

    /// Form of the answer
    #[arg(short, long, value_enum, default_value_t = ListOutput::Table)]
    pub(crate) output: ListOutput,

    /// Leave out the line of titles
    #[arg(long)]
    pub(crate) no_headers: bool,

    /// Exit with 1 when something is not ready
    #[arg(long)]
    pub(crate) exit_status: bool,

    /// Show these columns, in this order
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,

    /// Sort by this
    #[arg(long, value_name = "FIELD", value_enum)]
    pub(crate) sort: Option<SortBy>,

    #[command(flatten)]
    pub(crate) filters: FilterArguments,

    #[command(flatten)]
    pub(crate) view: ViewArguments,
}

/// Tell why an app or an object is not ready: the cause, the way to it, and where to look further; and whose an object
/// is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail explain                               every app that is not ready
  taffrail explain shop                          the app of this name
  taffrail explain deploy/web -n shop            an object, and the app that it belongs to
  taffrail explain pod/web-6d4c-xk2 -n shop      a Pod, what controls it, and the app that declares that
  taffrail explain --declared apps/Deployment/shop/web,/Service/shop/web
  taffrail explain shop --from dump.yaml -o json

Exit codes: 0 answered; 1 with --exit-status when something is not ready; 2 wrong usage, nothing of that name, or
several apps; 3 when something that was asked for could not be read (the rest is still shown).")]
pub(crate) struct ExplainArguments {
    /// Apps (NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME) or objects (KIND/NAME or
    /// [CLUSTER/]group/Kind/namespace/name) [default: every app that is not ready]
    #[arg(value_name = "APP|KIND/NAME")]
    pub(crate) what: Vec<String>,

    /// Only apps declared, and objects, in this namespace [default: all; of objects of live clusters that of the
    /// context]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,

    /// Apps of all namespaces, which is the default
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Only in these clusters, by the names in the lists
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cluster: Vec<String>,

    /// An entry for each cluster, where several have the same
    #[arg(long)]
    pub(crate) per_cluster: bool,

    /// Take these objects for one app: group/Kind/namespace/name,…
    #[arg(long, value_name = "REF,…", value_delimiter = ',', conflicts_with_all = ["what", "namespace"])]
    pub(crate) declared: Vec<ObjectKey>,

    #[command(flatten)]
    pub(crate) grouping: GroupingArguments,

    /// Form of the answer
    #[arg(short, long, value_enum, default_value_t = ExplainOutput::Table)]
    pub(crate) output: ExplainOutput,

    /// Exit with 1 when something is not ready
    #[arg(long)]
    pub(crate) exit_status: bool,

    #[command(flatten)]
    pub(crate) view: ViewArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExplainOutput {
    /// For people
    Table,
    Json,
    Yaml,
}

/// Options for grouping objects that no tool declares.
#[derive(Debug, Args)]
pub(crate) struct GroupingArguments {
    /// The label whose value names the app of an object that no tool declares; of several the first that it carries
    /// counts [default: app.kubernetes.io/instance, app.kubernetes.io/part-of]
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub(crate) app_label: Vec<AppLabel>,
}

impl GroupingArguments {
    pub(crate) fn labels(&self) -> AppLabels {
        self.app_label.clone().into()
    }
}

/// The filters of a list.
#[derive(Debug, Args)]
#[command(next_help_heading = "Only")]
pub(crate) struct FilterArguments {
    /// What has one of these statuses, or none of them: Ready,InProgress or '!Ready'; what is Ready but has a problem of
    /// another axis is not Ready, unless that is a notice (suspended, OutOfSync without automatic sync)
    #[arg(long, value_name = "LIST")]
    pub(crate) status: Option<StatusFilter>,

    /// Only apps with a problem, on any axis: health, sync, source or freshness
    #[arg(long)]
    pub(crate) problems: bool,

    /// Apps whose sync has one of these states, or none of them: Failed,OutOfSync or '!Synced,Syncing'; an app that is
    /// made of labels has none that could be wrong
    #[arg(long, value_name = "LIST")]
    pub(crate) sync: Option<SyncFilter>,

    /// Apps that are delivered so: flux-kustomization or ks, helm, …
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = Delivery::of_word)]
    pub(crate) delivery: Vec<Delivery>,

    /// Apps that their tool was told to leave alone
    #[arg(long)]
    pub(crate) suspended: bool,

    /// Apps whose declaring object has these labels
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = label_selector)]
    pub(crate) selector: Option<LabelSelector>,

    /// What is in these clusters, by the names in the list
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cluster: Vec<String>,

    /// Objects in these namespaces, and the apps that have objects there, wherever they are declared
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) in_namespace: Vec<String>,

    /// Objects of these kinds
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) kind: Vec<String>,

    /// Objects that run an image with this in its name
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    pub(crate) image: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortBy {
    /// Name, then namespace
    Name,
    /// The worst first
    Status,
    /// Name of the cluster
    Cluster,
    /// What is not well for longest first
    Since,
    /// How it is delivered
    Delivery,
}

impl From<SortBy> for SortField {
    fn from(by: SortBy) -> SortField {
        match by {
            SortBy::Name => SortField::Name,
            SortBy::Status => SortField::Status,
            SortBy::Cluster => SortField::Cluster,
            SortBy::Since => SortField::Since,
            SortBy::Delivery => SortField::Delivery,
        }
    }
}

/// Options for selecting an app by name.
#[derive(Debug, Args)]
pub(crate) struct NameArguments {
    /// The app is declared in this namespace
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,

    /// It may be declared in any namespace, which is the default
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Only in these clusters, by the names in the lists
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cluster: Vec<String>,

    #[command(flatten)]
    pub(crate) grouping: GroupingArguments,
}

/// Show one app: where it comes from, how far it got, and how each of its objects is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail app shop
  taffrail app flux-system/shop
  taffrail app flux-helmrelease/web/cache        where other apps have the same name
  taffrail app shop --all-contexts               in every cluster that it is in

Exit codes: 0 answered; 1 with --exit-status when it is not ready; 2 wrong usage, no such app, or several; 3 when
something that was asked for could not be read (the rest is still shown).")]
pub(crate) struct AppArguments {
    /// The app: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME
    pub(crate) name: AppQuery,

    #[command(flatten)]
    pub(crate) which: NameArguments,

    /// Form of the answer
    #[arg(short, long, value_enum, default_value_t = AppOutput::Table)]
    pub(crate) output: AppOutput,

    /// Exit with 1 when the app is not ready
    #[arg(long)]
    pub(crate) exit_status: bool,

    #[command(flatten)]
    pub(crate) view: ViewArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AppOutput {
    Table,
    Json,
    Yaml,
}

/// Show an app, what it declares, and what controllers made of that, as a tree.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail tree shop
  taffrail tree flux-system --compact            only the apps that it delivers
  taffrail tree shop --all                       each of forty equal Pods on a line of its own
  taffrail tree shop -o dot | dot -Tsvg > shop.svg

Exit codes: 0 answered; 1 with --exit-status when it is not ready; 2 wrong usage, no such app, or several; 3 when
something that was asked for could not be read (the rest is still shown).")]
pub(crate) struct TreeArguments {
    /// The app: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME
    pub(crate) name: AppQuery,

    #[command(flatten)]
    pub(crate) which: NameArguments,

    /// Only apps, and the apps that they deliver
    #[arg(long, conflicts_with = "all")]
    pub(crate) compact: bool,

    /// Each object on a line of its own, however many are equal
    #[arg(long)]
    pub(crate) all: bool,

    /// Form of the answer; json has all objects
    #[arg(short, long, value_enum, default_value_t = TreeOutput::Text)]
    pub(crate) output: TreeOutput,

    /// Exit with 1 when the app is not ready
    #[arg(long)]
    pub(crate) exit_status: bool,

    #[command(flatten)]
    pub(crate) view: ViewArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TreeOutput {
    Text,
    Json,
    /// For Graphviz
    Dot,
}

/// Show the warnings about the objects of apps, the newest last.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail events shop
  taffrail events --all-contexts                 about all apps of all clusters

Exit codes: 0 answered; 2 wrong usage, no such app, or several; 3 when something that was asked for
could not be read (the rest is still shown).")]
pub(crate) struct EventsArguments {
    /// The app: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME [default: all]
    pub(crate) name: Option<AppQuery>,

    #[command(flatten)]
    pub(crate) which: NameArguments,

    /// An entry for each cluster, where several have the same
    #[arg(long)]
    pub(crate) per_cluster: bool,

    /// Form of the answer
    #[arg(short, long, value_enum, default_value_t = EventsOutput::Table)]
    pub(crate) output: EventsOutput,

    /// Leave out the line of titles
    #[arg(long)]
    pub(crate) no_headers: bool,

    #[command(flatten)]
    pub(crate) view: ViewArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsOutput {
    Table,
    Json,
}

/// Show every place where green may be wrong: what was not read, who is silent, who disagrees, and what is switched
/// off.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail trust                                 how far the green of all apps can be trusted
  taffrail trust shop                            of one app
  taffrail trust --category silent,disagreeing   signs that green is wrong now
  taffrail trust --all-contexts -o wide          of every cluster, a line for each finding
  taffrail trust --from dumps/ -o json           of files, without a cluster

Severity: high where there is a sign that green is wrong; medium where nothing proves that it is right;
low where it says less than it seems to, by somebody's choice or by the nature of things. GREEN counts the apps
that show green and would not if the doubt were right.

Nodes and controllers are looked at unless -n narrows the question: their leases are in other namespaces.

Exit codes: 0 answered; 1 with --exit-status when something of high or medium severity concerns green apps; 2 wrong
usage, no such app, or several; 3 when something that was asked for could not be read (the rest is still shown).")]
pub(crate) struct TrustArguments {
    /// The app: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME [default: all]
    pub(crate) name: Option<AppQuery>,

    #[command(flatten)]
    pub(crate) which: NameArguments,

    /// An entry for each cluster, where several have the same
    #[arg(long)]
    pub(crate) per_cluster: bool,

    /// Only findings of these categories
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    pub(crate) category: Vec<Category>,

    /// Form of the answer
    #[arg(short, long, value_enum, default_value_t = TrustOutput::Table)]
    pub(crate) output: TrustOutput,

    /// Leave out the line of titles
    #[arg(long)]
    pub(crate) no_headers: bool,

    /// Exit with 1 when green may be wrong: when a finding of high or medium severity concerns green apps
    #[arg(long)]
    pub(crate) exit_status: bool,

    #[command(flatten)]
    pub(crate) view: ViewArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Category {
    /// Somebody else says something else
    Disagreeing,
    /// Who should speak does not
    Silent,
    /// It could not be looked at
    Unread,
    /// Clocks differ, or nobody knows when it was looked at
    Skewed,
    /// People switched it off
    Suspended,
    /// No rule knows the kind
    Fallback,
}

impl Category {
    /// Returns true if it is the category of a finding.
    pub(crate) fn is(self, category: FindingCategory) -> bool {
        let own = match self {
            Category::Disagreeing => FindingCategory::Disagreeing,
            Category::Silent => FindingCategory::Silent,
            Category::Unread => FindingCategory::Unread,
            Category::Skewed => FindingCategory::Skewed,
            Category::Suspended => FindingCategory::Suspended,
            Category::Fallback => FindingCategory::Fallback,
        };
        own == category
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrustOutput {
    /// For people
    Table,
    /// A line for each finding
    Wide,
    Json,
    Yaml,
    /// Category, reason, cluster and scope: to compare with an earlier run
    Name,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// One row for each app in each cluster
    #[value(alias = "app")]
    Apps,
    /// One row for each cluster
    #[value(alias = "cluster")]
    Clusters,
    /// One row for each object of each app
    #[value(alias = "resource")]
    Resources,
}

impl What {
    /// Returns the plural of a list's name, which may be given in the singular.
    pub(crate) fn full_name(word: &str) -> &str {
        match What::from_str(word, false) {
            Ok(What::Apps) => "apps",
            Ok(What::Clusters) => "clusters",
            Ok(What::Resources) => "resources",
            Err(_) => word,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListOutput {
    Table,
    Wide,
    Json,
    Yaml,
    Name,
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::Cli;

    #[test]
    fn all_namespaces_can_be_said_wherever_a_namespace_can() {
        fn missing(command: &Command, lacking: &mut Vec<String>) {
            let has = |long, short| {
                command.get_arguments().any(|it| it.get_long() == Some(long) && it.get_short() == Some(short))
            };
            if has("namespace", 'n') && !has("all-namespaces", 'A') {
                lacking.push(command.get_name().to_owned());
            }
            command.get_subcommands().for_each(|below| missing(below, lacking));
        }
        let mut lacking = Vec::new();
        missing(&Cli::command(), &mut lacking);
        assert_eq!(lacking, [""; 0]);
    }
}
