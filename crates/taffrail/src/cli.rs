//! The arguments that commands share, and those of the views.

mod values;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use taffrail_api::filter::{SortField, StatusFilter, SyncFilter};
use taffrail_apps::trust::FindingCategory;
use taffrail_apps::{AppLabel, AppLabels, AppQuery, Axis, Delivery};
use taffrail_object::{LabelSelector, ObjectKey};
use taffrail_observe::{TimeBudget, TimeLimits};
use taffrail_status::Trust;
use taffrail_status::assess::{Budgets, Patience};

pub(crate) use values::{DryRun, TextOutput, duration, duration_or_none, label_selector};

use crate::hub_url::HubUrl;
use crate::rule_source::{RuleSource, RulesWithOptions, patience};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// The clusters or dumps to read; the same for every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Clusters and dumps")]
pub(crate) struct SourceArguments {
    /// Read the clusters of these contexts: a,b or 'prod-*'; may be given more than once [default: the current context]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Vec<String>,

    /// Read the clusters of all contexts
    #[arg(long, conflicts_with = "context")]
    pub(crate) all_contexts: bool,

    /// Read this kubeconfig [default: $KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Read dumps instead of clusters: a file is a cluster, a folder a fleet
    #[arg(long, value_name = "FILE|DIR", conflicts_with_all = ["context", "all_contexts", "kubeconfig"])]
    pub(crate) from: Vec<PathBuf>,

    /// Judge as if this were the current time (RFC 3339), such as 2026-03-01T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) now: Option<jiff::Timestamp>,

    /// How long the command may take to answer, such as 30s or 2m; with -w, to answer first. In this release, without
    /// --request-timeout, this is instead how long each cluster may take
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) timeout: Duration,

    /// How long one request to a cluster may take, such as 5s; 0 for no limit [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = duration_or_none)]
    pub(crate) request_timeout: Option<Duration>,

    /// Print timings to stderr; -vv: also each request; -vvv: also the purpose of each request
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// The Argo CDs and clusters whose own rules the user trusts, from the settings `argocd` and `trusted-homes`.
    #[arg(skip)]
    pub(crate) trust: Trust,
}

impl SourceArguments {
    /// Returns the time limits of reading clusters once. For one release `--timeout` without `--request-timeout` is the
    /// time for each cluster.
    pub(crate) fn limits(&self) -> TimeLimits {
        let total = match self.request_timeout {
            None => TimeBudget::PerCluster(self.timeout),
            Some(_) => TimeBudget::Whole(self.timeout),
        };
        TimeLimits { total, request: self.request_timeout }
    }

    /// Returns the time limit for judging the objects of a cluster while it is read, or of a dump.
    pub(crate) fn patience(&self) -> Patience {
        self.patience_after(self.timeout / 4 * 3)
    }

    /// Returns the time limit for judging the objects of a cluster, `spent` after the command began.
    pub(crate) fn patience_after(&self, spent: Duration) -> Patience {
        let limit = match self.limits().total {
            TimeBudget::PerCluster(time) => time,
            TimeBudget::Whole(time) => time.saturating_sub(spent).max(time / 8),
        };
        patience(format!("--timeout {:?}", self.timeout), limit)
    }

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
            request_timeout: None,
            verbose: 0,
            trust: Trust::default(),
        }
    }
}

/// The hub to ask in place of clusters and dumps.
#[derive(Debug, Args)]
#[command(next_help_heading = "Clusters and dumps")]
pub(crate) struct HubSource {
    /// Ask the hub at this URL instead of clusters, such as https://HOST:7655, or http://127.0.0.1:7655 on this machine; the
    /// fragment may be its token: http://127.0.0.1:7655#TOKEN
    #[arg(long, value_name = "URL", value_parser = HubUrl::parse, conflicts_with_all = [
        "context", "all_contexts", "kubeconfig", "from", "now", "request_timeout", "rules", "pdb", "app_label",
    ])]
    pub(crate) hub: Option<Box<HubUrl>>,

    #[command(flatten)]
    pub(crate) files: HubFiles,
}

/// The files that are needed to ask a hub.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Clusters and dumps")]
pub(crate) struct HubFiles {
    /// Read the token of the hub from this file [default: $TAFFRAIL_HUB_TOKEN]
    #[arg(long, value_name = "FILE", requires = "hub")]
    pub(crate) hub_token_file: Option<PathBuf>,

    /// Trust the certificate of a hub at an https URL only by the authorities in this PEM file [default: those of the
    /// system]
    #[arg(long, value_name = "FILE", requires = "hub")]
    pub(crate) hub_ca_file: Option<PathBuf>,
}

impl HubSource {
    /// Returns true if commands about the clusters of an answer name the context: `source` or the hub may have others than
    /// that of the current one.
    pub(crate) fn names_contexts(&self, source: &SourceArguments) -> bool {
        // Of a hub's clusters none is that of the current context.
        let is_chosen = source.all_contexts || !source.context.is_empty();
        self.hub.is_some() || source.from.is_empty() && is_chosen
    }
}

/// The clusters or dumps to read, and the options for judging objects; the same for every view.
#[derive(Debug, Args)]
pub(crate) struct ViewArguments {
    /// Effect of a PodDisruptionBudget on the status of the Deployment whose Pods it protects
    #[arg(long, value_enum, value_name = "MEANING", default_value_t = Pdb::Advisory)]
    pub(crate) pdb: Pdb,

    /// Rules that judge objects: Taffrail's, those of kstatus, or those in a folder, which come before Taffrail's
    #[arg(long, value_name = "taffrail|kstatus|DIR", default_value = "taffrail", value_parser = RuleSource::read, value_hint = ValueHint::DirPath)]
    pub(crate) rules: RuleSource,

    /// Keep watching, and show changes until Ctrl-C
    #[arg(short, long, conflicts_with_all = ["from", "now"])]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) source: SourceArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pdb {
    /// No effect: a Deployment is ready when all its replicas are
    Advisory,
    /// A Deployment is ready when as many Pods are available as its budget requires
    Sufficient,
}

impl ViewArguments {
    /// Returns the rules of `--rules` with the options `--pdb` and `--timeout` and the trust settings.
    pub(crate) fn rules(&self) -> RulesWithOptions {
        self.rules.with_options(self.pdb.into(), self.source.patience(), &self.source.trust)
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
  taffrail get apps --all-contexts -o wide       of all contexts, with revisions and sources
  taffrail get clusters --context prod --context edge
  taffrail get apps --status '!Ready' --sort since      apps that are not ready, oldest problem first
  taffrail get apps --problems=sync --exit-status     exit with 1 when a sync has failed, whatever the health
  taffrail get resources --kind deploy --image nginx   Deployments that declare or run an image
  taffrail get resources -n flux-system          all objects of the apps declared there
  taffrail get resources --orphaned -n shop      objects in that namespace that no app declares
  taffrail get apps --in-namespace shop          apps that have objects there, wherever they are declared
  taffrail get apps --from dumps/ -o json        read dump files instead of clusters

Exit codes: 0 answered; 1 with --exit-status when something is not ready; 2 wrong usage; 3 some data could not be
read (the rest is still shown).")]
pub(crate) struct GetArguments {
    /// List to show
    #[arg(value_enum)]
    pub(crate) what: What,

    /// Only these apps, or their objects: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME, as printed by
    /// `get apps -o name` [default: all]
    #[arg(value_name = "APP")]
    pub(crate) name: Vec<AppQuery>,

    /// Only apps declared in this namespace, or their objects; see also --in-namespace [default: all]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,

    /// Apps of all namespaces, which is the default
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Treat these objects as one app: group/Kind/namespace/name,…
    #[arg(long, value_name = "REF,…", value_delimiter = ',', conflicts_with_all = ["namespace", "hub"])]
    pub(crate) declared: Vec<ObjectKey>,

    #[command(flatten)]
    pub(crate) grouping: GroupingArguments,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = ListOutput::Table)]
    pub(crate) output: ListOutput,

    /// Omit the header row
    #[arg(long)]
    pub(crate) no_headers: bool,

    /// Exit with 1 when a row that is shown has a problem of health, sync, source or freshness (with --problems=AXIS: of
    /// that one); notices are no problems
    #[arg(long)]
    pub(crate) exit_status: bool,

    /// Show only these columns, in this order; names as in the header row, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,

    /// Sort the rows by this field
    #[arg(long, value_name = "FIELD", value_enum)]
    pub(crate) sort: Option<SortBy>,

    #[command(flatten)]
    pub(crate) filters: FilterArguments,

    #[command(flatten)]
    pub(crate) view: ViewArguments,

    #[command(flatten)]
    pub(crate) hub: HubSource,
}

/// Explain why an app or an object is not ready: the root cause, the chain to it, the owning app, and commands that
/// show more.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail explain                               every app that is not ready
  taffrail explain shop                          the app of this name
  taffrail explain deploy/web -n shop            an object and its app
  taffrail explain pod/web-6d4c-xk2 -n shop      a Pod, its controllers, and their app
  taffrail explain --declared apps/Deployment/shop/web,/Service/shop/web
  taffrail explain shop --logs                   and the last lines of the container that is the cause
  taffrail explain shop --from dump.yaml -o json

Exit codes: 0 answered; 1 with --exit-status when something is not ready; 2 wrong usage, no match for a name, or
several apps; 3 some data could not be read (the rest is still shown).")]
pub(crate) struct ExplainArguments {
    /// Apps (NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME) or objects (KIND/NAME or
    /// [CLUSTER/]group/Kind/namespace/name) [default: every app that is not ready]
    #[arg(value_name = "APP|KIND/NAME")]
    pub(crate) what: Vec<String>,

    /// Only apps declared in this namespace, and objects in it [default: all; for objects of live clusters the
    /// context's]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,

    /// Apps of all namespaces, which is the default
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Only apps of these clusters, named as in the CLUSTER column
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cluster: Vec<String>,

    /// Show one entry for each cluster, instead of merging equal entries of several clusters
    #[arg(long)]
    pub(crate) per_cluster: bool,

    /// Print the last ten lines of the container that is the cause; of its previous run if that crashed
    #[arg(long, conflicts_with_all = ["watch", "hub"])]
    pub(crate) logs: bool,

    /// Treat these objects as one app: group/Kind/namespace/name,…
    #[arg(long, value_name = "REF,…", value_delimiter = ',', conflicts_with_all = ["what", "namespace", "hub"])]
    pub(crate) declared: Vec<ObjectKey>,

    #[command(flatten)]
    pub(crate) grouping: GroupingArguments,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = ExplainOutput::Table)]
    pub(crate) output: ExplainOutput,

    /// Exit with 1 when something has a problem on any axis: health, sync, source or freshness
    #[arg(long)]
    pub(crate) exit_status: bool,

    #[command(flatten)]
    pub(crate) view: ViewArguments,

    #[command(flatten)]
    pub(crate) hub: HubSource,
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
    /// Labels whose value names the app of an object that no tool declares; the first one that the object has is used
    /// [default: app.kubernetes.io/instance, app.kubernetes.io/part-of]
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub(crate) app_label: Vec<AppLabel>,
}

impl GroupingArguments {
    pub(crate) fn labels(&self) -> AppLabels {
        self.app_label.clone().into()
    }
}

/// Options that select the rows of a list; a row must meet all of them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArguments {
    /// Only rows with one of these statuses, or after '!' with none: Ready,InProgress or '!Ready'. A healthy app with
    /// another problem does not count as Ready, unless it is a notice (suspended, OutOfSync without automatic sync)
    #[arg(long, value_name = "LIST")]
    pub(crate) status: Option<StatusFilter>,

    /// Only apps with a problem, on any axis or on these: --problems=sync,source; --exit-status then judges these alone
    #[arg(
        long, value_enum, value_name = "AXIS", num_args = 0.., require_equals = true, value_delimiter = ','
    )]
    pub(crate) problems: Option<Vec<ProblemAxis>>,

    /// Only apps with one of these sync states, or after '!' with none: Failed,OutOfSync or '!Synced,Syncing'. Apps
    /// known only by labels have no sync state
    #[arg(long, value_name = "LIST")]
    pub(crate) sync: Option<SyncFilter>,

    /// Only apps of these delivery tools: flux-kustomization or ks, helm, …
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = Delivery::of_word)]
    pub(crate) delivery: Vec<Delivery>,

    /// Only apps that are suspended
    #[arg(long)]
    pub(crate) suspended: bool,

    /// Only apps whose declaring object has these labels, such as team=web
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = label_selector)]
    pub(crate) selector: Option<LabelSelector>,

    /// Only rows of these clusters, named as in the CLUSTER column
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cluster: Vec<String>,

    /// Only objects in these namespaces, or apps with objects there, wherever they are declared
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) in_namespace: Vec<String>,

    /// Only objects of these kinds, such as deploy,Certificate
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) kind: Vec<String>,

    /// List the objects that no app declares and that have no owner, instead of the objects of apps. Live clusters need
    /// --in-namespace or -n; dumps are searched in all namespaces but those of Kubernetes
    #[arg(
        long,
        conflicts_with_all = ["name", "declared", "watch", "delivery", "suspended", "selector", "sync", "problems"]
    )]
    pub(crate) orphaned: bool,

    /// Only objects that declare a container image with one of these texts in its name, or whose Pods run one; also
    /// objects of no app whose Pods run one, unless a namespace, a name or a condition about apps is given
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    pub(crate) image: Vec<String>,
}

/// An axis on which apps have problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProblemAxis {
    /// The status of the app's objects
    Health,
    /// Applying the desired revision to the cluster
    Sync,
    /// Fetching the desired revision from Git, an OCI registry or a chart repository
    Source,
    /// Reading the app's clusters: one does not answer, or its data is old
    Freshness,
}

impl From<ProblemAxis> for Axis {
    fn from(axis: ProblemAxis) -> Axis {
        match axis {
            ProblemAxis::Health => Axis::Health,
            ProblemAxis::Sync => Axis::Sync,
            ProblemAxis::Source => Axis::Source,
            ProblemAxis::Freshness => Axis::Freshness,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortBy {
    /// Name, then namespace
    Name,
    /// Worst status first
    Status,
    /// Name of the cluster
    Cluster,
    /// Oldest problem first
    Since,
    /// Name of the delivery tool
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
    /// Namespace in which the app is declared
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,

    /// Find the app in any namespace, which is the default
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Only apps of these clusters, named as in the CLUSTER column
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cluster: Vec<String>,

    #[command(flatten)]
    pub(crate) grouping: GroupingArguments,
}

/// Show one app: its source, its last reconciliation, and the status of each of its objects.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail app shop
  taffrail app flux-system/shop
  taffrail app flux-helmrelease/web/cache        if other apps have the same name
  taffrail app shop --all-contexts               in every cluster that has it

Exit codes: 0 answered; 1 with --exit-status when it is not ready; 2 wrong usage, no such app, or several; 3 some
data could not be read (the rest is still shown).")]
pub(crate) struct AppArguments {
    /// The app: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME
    pub(crate) name: AppQuery,

    #[command(flatten)]
    pub(crate) which: NameArguments,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = AppOutput::Table)]
    pub(crate) output: AppOutput,

    /// Exit with 1 when the app has a problem on any axis: health, sync, source or freshness
    #[arg(long)]
    pub(crate) exit_status: bool,

    #[command(flatten)]
    pub(crate) view: ViewArguments,

    #[command(flatten)]
    pub(crate) hub: HubSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AppOutput {
    Table,
    Json,
    Yaml,
}

/// Show an app, its declared objects, and their dependents, as a tree.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail tree shop
  taffrail tree flux-system --compact            only the apps that it delivers
  taffrail tree shop --all                       every Pod on its own line, even if many are alike
  taffrail tree shop --status '!Ready'           only objects that are not ready, and those above them
  taffrail tree shop -o dot | dot -Tsvg > shop.svg

Exit codes: 0 answered; 1 with --exit-status when it is not ready; 2 wrong usage, no such app, or several; 3 some
data could not be read (the rest is still shown).")]
pub(crate) struct TreeArguments {
    /// The app: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME
    pub(crate) name: AppQuery,

    #[command(flatten)]
    pub(crate) which: NameArguments,

    /// Show only the app and the apps that it delivers, without other objects
    #[arg(long, conflicts_with = "all")]
    pub(crate) compact: bool,

    /// Show each object on its own line, even if many are alike
    #[arg(long)]
    pub(crate) all: bool,

    /// Only objects with one of these statuses, or after '!' with none, and those above them: Failed,InProgress or
    /// '!Ready'. A healthy app or object with another problem does not count as Ready, unless it is a notice (suspended,
    /// OutOfSync without automatic sync)
    #[arg(long, value_name = "LIST")]
    pub(crate) status: Option<StatusFilter>,

    /// Output format; json contains all objects
    #[arg(short, long, value_enum, default_value_t = TreeOutput::Text)]
    pub(crate) output: TreeOutput,

    /// Exit with 1 when the app has a problem on any axis: health, sync, source or freshness
    #[arg(long)]
    pub(crate) exit_status: bool,

    #[command(flatten)]
    pub(crate) view: ViewArguments,

    #[command(flatten)]
    pub(crate) hub: HubSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TreeOutput {
    Text,
    Json,
    /// For Graphviz
    Dot,
}

/// Show the warning events of apps' objects, newest last.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail events shop
  taffrail events --all-contexts                 of all apps in all clusters
  taffrail events shop --since 1h                those that occurred in the last hour

Warnings about Pods that are gone count for the workload after which they were named. Kubernetes deletes an event an
hour after it last occurred, unless the cluster is configured otherwise.

Exit codes: 0 answered; 2 wrong usage, no such app, or several; 3 some data could not be read (the rest is still
shown).")]
pub(crate) struct EventsArguments {
    /// The app: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME [default: all]
    pub(crate) name: Option<AppQuery>,

    #[command(flatten)]
    pub(crate) which: NameArguments,

    /// Show one entry for each cluster, instead of merging equal entries of several clusters
    #[arg(long)]
    pub(crate) per_cluster: bool,

    /// Only warnings that last occurred in this time, such as 10m or 1h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) since: Option<Duration>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = EventsOutput::Table)]
    pub(crate) output: EventsOutput,

    /// Omit the header row
    #[arg(long)]
    pub(crate) no_headers: bool,

    #[command(flatten)]
    pub(crate) view: ViewArguments,

    #[command(flatten)]
    pub(crate) hub: HubSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsOutput {
    Table,
    Json,
}

/// List reasons to doubt a green status: scopes that were not read, silent controllers and nodes, contradictions, and
/// switches that are off.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail trust                                 findings about all apps
  taffrail trust shop                            about one app
  taffrail trust --category silent,disagreeing   signs that a green status is wrong now
  taffrail trust --all-contexts -o wide          in all clusters, one line per finding
  taffrail trust --from dumps/ -o json           read dump files instead of clusters

Severity: high for a sign that a green status is wrong; medium if nothing proves it right; low if it covers less than
it seems to, by choice or by nature. GREEN counts the green apps that would not be green if the finding were true.

Nodes and controllers are checked unless -n is given: their leases are in other namespaces.

Exit codes: 0 answered; 1 with --exit-status when a finding of high or medium severity concerns green apps; 2 wrong
usage, no such app, or several; 3 some data could not be read (the rest is still shown).")]
pub(crate) struct TrustArguments {
    /// The app: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME [default: all]
    pub(crate) name: Option<AppQuery>,

    #[command(flatten)]
    pub(crate) which: NameArguments,

    /// Show one entry for each cluster, instead of merging equal entries of several clusters
    #[arg(long)]
    pub(crate) per_cluster: bool,

    /// Only findings of these categories
    #[arg(long, value_parser = values::categories(), value_name = "LIST", value_delimiter = ',')]
    pub(crate) category: Vec<FindingCategory>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = TrustOutput::Table)]
    pub(crate) output: TrustOutput,

    /// Omit the header row
    #[arg(long)]
    pub(crate) no_headers: bool,

    /// Exit with 1 when a finding of high or medium severity concerns green apps
    #[arg(long)]
    pub(crate) exit_status: bool,

    #[command(flatten)]
    pub(crate) view: ViewArguments,

    #[command(flatten)]
    pub(crate) hub: HubSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrustOutput {
    /// For people
    Table,
    /// A line for each finding
    Wide,
    Json,
    Yaml,
    /// Category, reason, cluster and scope, to compare with an earlier run
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
    /// Returns the plural for the first argument of `get`, which may be singular: `apps` for `app`. Returns an
    /// unknown word unchanged.
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
