//! The arguments that several commands share, and those of the views (`get`, `explain`, `app`, `tree`, `events`,
//! `trust`).

mod hub;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use taffrail_api::filter::{SortField, StatusFilter, SyncFilter};
use taffrail_apps::trust::FindingCategory;
use taffrail_apps::{AppLabel, AppLabels, AppQuery, Axis, CheckFilter, Delivery};
use taffrail_object::{LabelSelector, ObjectKey};
use taffrail_observe::{TimeBudget, TimeLimits};
use taffrail_status::Trust;
use taffrail_status::assess::{Budgets, Patience};

pub(crate) use hub::{HubFiles, HubSource, not_with_hub};
pub(crate) use values::{
    DryRun, PastTime, TableOutput, TextOutput, duration, duration_or_none, label_selector,
};

use crate::rule_source::{RuleSource, RulesWithOptions, patience};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal; without a terminal too if CLICOLOR_FORCE is set, and nowhere if NO_COLOR is set
    Auto,
    Always,
    Never,
}

/// The arguments that select the clusters or dumps to read, and bound the time for it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Clusters and dumps")]
pub(crate) struct SourceArguments {
    /// Read the clusters of these contexts of the kubeconfig: names separated by commas, in which * stands for any text
    /// ('prod-*'), or @FLEET for a fleet of the settings; may be given more than once [default: those of the setting
    /// context, else the current context]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Vec<String>,

    /// Read the clusters of all contexts of the kubeconfig
    #[arg(long, conflicts_with = "context")]
    pub(crate) all_contexts: bool,

    /// Take contexts and credentials from this kubeconfig alone, or from each file of this folder; their contexts are
    /// then called FILE, without an ending such as .yaml, or FILE/CONTEXT if a file has several [default: the files and
    /// folders in $KUBECONFIG, or ~/.kube/config, or in a Pod its service account]
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Read dumps (also any objects in YAML or JSON) instead of clusters: each file, or - for stdin, is one cluster,
    /// and a folder stands for all YAML, JSON and JSONL files directly in it; may be given more than once
    #[arg(long, value_name = "FILE|DIR", conflicts_with_all = ["context", "all_contexts", "kubeconfig"])]
    pub(crate) from: Vec<PathBuf>,

    /// Judge objects and compute ages as if this were the current time (RFC 3339), such as 2026-03-01T12:00:00Z
    /// [default: now; with --from, if every file states when it was written, the latest of these times]
    #[arg(long, value_name = "TIME")]
    pub(crate) now: Option<jiff::Timestamp>,

    /// Limit the time of the command, such as 30s or 2m (with -w: until its first answer). What was not read by then is
    /// shown as Unknown, and the exit code is 3. In this release, without --request-timeout, it instead limits the time
    /// of each cluster, and the command may take twice as long
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) timeout: Duration,

    /// Limit the time of each request to a cluster, such as 5s; a longer one fails; 0 for no limit [default: no limit
    /// but --timeout]
    #[arg(long, value_name = "TIME", value_parser = duration_or_none)]
    pub(crate) request_timeout: Option<Duration>,

    /// Print at the end to stderr how many requests each cluster got, and how long reading and answering took (not with
    /// -w); -vv: also each request; -vvv: also the purpose of each request
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// The Argo CDs and clusters whose own rules the user trusts, set from the settings `argocd` and `trusted-homes`;
    /// not an option.
    #[arg(skip)]
    pub(crate) trust: Trust,
}

impl SourceArguments {
    /// Returns the time limits of reading clusters once. In this release `--timeout` is the time for each cluster if
    /// `--request-timeout` is not given, else the time for the whole answer.
    pub(crate) fn limits(&self) -> TimeLimits {
        let total = match self.request_timeout {
            None => TimeBudget::PerCluster(self.timeout),
            Some(_) => TimeBudget::Whole(self.timeout),
        };
        TimeLimits { total, request: self.request_timeout }
    }

    /// Returns the time limit for judging the objects of one cluster while it is read, or of a dump: `--timeout` if
    /// that is the time for each cluster, else a quarter of it. It starts now.
    pub(crate) fn patience(&self) -> Patience {
        self.patience_after(self.timeout / 4 * 3)
    }

    /// Returns the time limit for judging the objects of one cluster, if `spent` has passed since the command began:
    /// `--timeout` if that is the time for each cluster, else the rest of it, but at least an eighth. It starts now.
    pub(crate) fn patience_after(&self, spent: Duration) -> Patience {
        let limit = match self.limits().total {
            TimeBudget::PerCluster(time) => time,
            TimeBudget::Whole(time) => time.saturating_sub(spent).max(time / 8),
        };
        patience(format!("--timeout {:?}", self.timeout), limit)
    }

    /// Makes the arguments that select all contexts of the kubeconfig at `path`, each with `timeout` for its cluster.
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

/// The arguments of every view: the clusters or dumps to read, and the options for judging objects.
#[derive(Debug, Args)]
pub(crate) struct ViewArguments {
    /// Choose the effect of PodDisruptionBudgets on the status of the Deployment whose Pods they protect: none
    /// (advisory), or that it is ready with as many available Pods as each of them requires (sufficient)
    #[arg(long, value_enum, value_name = "MEANING", default_value_t = Pdb::Advisory)]
    pub(crate) pdb: Pdb,

    /// Judge objects by these rules: taffrail for Taffrail's own, kstatus for those of kstatus alone, or a folder with
    /// rules that are tried before Taffrail's
    #[arg(long, value_name = "taffrail|kstatus|DIR", default_value = "taffrail", value_parser = RuleSource::read, value_hint = ValueHint::DirPath)]
    pub(crate) rules: RuleSource,

    /// Show the answer, then update it as the clusters change, until Ctrl-C: redrawn on a terminal, elsewhere as added
    /// lines
    #[arg(short, long, conflicts_with_all = ["from", "now"])]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) source: SourceArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pdb {
    /// No effect: a Deployment is ready when all of its replicas are available
    Advisory,
    /// A Deployment is ready when as many Pods are available as its budget requires
    Sufficient,
}

impl ViewArguments {
    /// Returns the rules that `--rules` selects, with the effect of `--pdb`, the time limit of `--timeout`, and the
    /// trust that the settings state.
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
#[command(
    mut_args(not_with_hub),
    after_help = "\
Examples:
  taffrail get apps                              the apps of the current context
  taffrail get apps --all-contexts -o wide       of all contexts, with revisions and sources
  taffrail get clusters --context prod --context edge
  taffrail get apps --status '!Ready' --sort since      apps that are not ready, oldest problem first
  taffrail get apps --problems=sync --exit-status     exit with 1 when a sync has failed, whatever the health
  taffrail get resources --kind deploy --image nginx   Deployments with an image, in spec or Pods
  taffrail get resources -n flux-system          all objects of the apps declared there
  taffrail get resources --orphaned -n shop      objects in that namespace that no app declares
  taffrail get apps --in-namespace shop          apps that have objects there, wherever they are declared
  taffrail get apps --from dumps/ -o json        read dump files instead of clusters
  taffrail get apps --hub http://127.0.0.1:7655 --at 2h      as they were two hours ago

Exit codes: 0 answered; 1 with --exit-status when something has a problem, or a namespace does not exist; 2 wrong
usage; 3 some data could not be read (the rest is still shown)."
)]
pub(crate) struct GetArguments {
    /// The list to show
    #[arg(value_enum)]
    pub(crate) what: What,

    /// List only these apps (with `resources`: only their objects): NAME, NAMESPACE/NAME or
    /// [CLUSTER/]DELIVERY/NAMESPACE/NAME, as printed by `get apps -o name`. A name that several apps have selects all
    /// of them; one that no app has is an error. Not with `clusters` [default: all apps]
    #[arg(value_name = "APP")]
    pub(crate) name: Vec<AppQuery>,

    /// List only apps directly upstream of this one (repeatable): it depends on them, or they deliver its declaring object
    /// or its objects
    #[arg(long, value_name = "APP")]
    pub(crate) upstream_of: Vec<AppQuery>,

    /// List only apps directly downstream of this one (repeatable)
    #[arg(long, value_name = "APP")]
    pub(crate) downstream_of: Vec<AppQuery>,

    /// List only apps declared in this namespace; with `clusters`: count only these; with `resources`: only their
    /// objects, in whichever namespace these are (see --in-namespace); with --orphaned: only objects in this namespace
    /// [default: all namespaces]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,

    /// Show the apps of all namespaces, which is the default
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Judge these objects as one app, in place of the apps that tools declare: group/Kind/namespace/name, separated by
    /// commas (the group of core kinds is empty: /Service/shop/web)
    #[arg(long, value_name = "REF,…", value_delimiter = ',', conflicts_with_all = ["namespace", "hub"])]
    pub(crate) declared: Vec<ObjectKey>,

    #[command(flatten)]
    pub(crate) grouping: GroupingArguments,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = ListOutput::Table)]
    pub(crate) output: ListOutput,

    /// Omit the header row of the table
    #[arg(long)]
    pub(crate) no_headers: bool,

    /// Exit with 1 when an app (of `clusters` and `resources`: an app of a row that is shown) has a problem of health,
    /// sync, source or freshness (with --problems=AXIS: on that axis), a cluster that is shown is not Ready, or the
    /// namespace of -n does not exist; a notice (suspended, OutOfSync without automatic sync) does not count. With
    /// --orphaned, or `resources` selected by --status, --kind, --image or --in-namespace: when an object that is shown
    /// is not Ready
    #[arg(long)]
    pub(crate) exit_status: bool,

    /// Show only these columns, in this order: names as in the header row, in any case, with - for a space, separated
    /// by commas. Only with -o table or wide [default: those of the output format]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,

    /// Sort the rows by this field [default: cluster, in the order of the contexts or dumps, then namespace and name of
    /// the app]
    #[arg(long, value_name = "FIELD", value_enum)]
    pub(crate) sort: Option<SortBy>,

    /// With `apps`: show them as they were at this time, by the history of the hub of --hub: a time (RFC 3339), such as
    /// 2026-03-01T12:00:00Z, or how long ago, such as 90m or 2h. What was not observed then is Unknown
    #[arg(long, value_name = "TIME", value_parser = PastTime::parse, conflicts_with_all = [
        "watch", "exit_status", "suspended", "selector", "in_namespace", "orphaned", "upstream_of", "downstream_of",
    ])]
    pub(crate) at: Option<PastTime>,

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
#[command(
    mut_args(not_with_hub),
    after_help = "\
Examples:
  taffrail explain                               every app that is not ready
  taffrail explain shop                          the app of this name
  taffrail explain deploy/web -n shop            an object and its app
  taffrail explain pod/web-6d4c-xk2 -n shop      a Pod, its controllers, and their app
  taffrail explain --declared apps/Deployment/shop/web,/Service/shop/web
  taffrail explain shop --logs                   and the last lines of the container that is the cause
  taffrail explain shop --from dump.yaml -o json

Exit codes: 0 answered; 1 with --exit-status when something has a problem; 2 wrong usage, no match for a name, or
several apps; 3 some data could not be read (the rest is still shown)."
)]
pub(crate) struct ExplainArguments {
    /// Apps (NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME) or objects (KIND/NAME or
    /// [CLUSTER/]group/Kind/namespace/name) to explain [default: every app with a problem of health, sync, source or
    /// freshness that is more than a notice]
    #[arg(value_name = "APP|KIND/NAME")]
    pub(crate) what: Vec<String>,

    /// Explain only apps declared in this namespace, and look there for objects named KIND/NAME [default: any for apps;
    /// for objects of live clusters that of the context, in dumps any]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,

    /// Explain apps of all namespaces, which is the default; does not apply to objects named KIND/NAME
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Explain only apps with objects in these clusters: names as in the CLUSTER column, separated by commas [default:
    /// all that are read]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cluster: Vec<String>,

    /// Without names: show one explanation for each app and cluster; by default, those that are equal in several
    /// clusters are merged into one. An app or object that is named is always explained for each cluster
    #[arg(long)]
    pub(crate) per_cluster: bool,

    /// Print also the last ten lines of the log of the container that is the cause, in the first cluster of each
    /// explanation; if the container crashed, of the run before. If a log exists but cannot be read, the exit code is
    /// 3. A hub needs a token with the right to read logs
    #[arg(long, conflicts_with = "watch")]
    pub(crate) logs: bool,

    /// Judge these objects as one app, in place of the apps that tools declare: group/Kind/namespace/name, separated by
    /// commas (the group of core kinds is empty: /Service/shop/web)
    #[arg(long, value_name = "REF,…", value_delimiter = ',', conflicts_with_all = ["what", "namespace", "hub"])]
    pub(crate) declared: Vec<ObjectKey>,

    #[command(flatten)]
    pub(crate) grouping: GroupingArguments,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = TableOutput::Table)]
    pub(crate) output: TableOutput,

    /// Exit with 1 when an explained app or object has a problem of health, sync, source or freshness; a notice
    /// (suspended, OutOfSync without automatic sync) does not count
    #[arg(long)]
    pub(crate) exit_status: bool,

    #[command(flatten)]
    pub(crate) view: ViewArguments,

    #[command(flatten)]
    pub(crate) hub: HubSource,
}

/// The option for grouping objects that no tool declares into apps.
#[derive(Debug, Args)]
pub(crate) struct GroupingArguments {
    /// Group the objects that no tool declares into apps by these labels, separated by commas: the value of the first
    /// one that an object has is the name of its app [default: app.kubernetes.io/instance, app.kubernetes.io/part-of]
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
    /// List only rows with one of these statuses, separated by commas, or after '!' with none of them: Ready,
    /// InProgress, Terminating, Failed, NotFound, Unknown. A healthy app with a problem of sync, source or freshness
    /// (also a cluster with such an app, or an object of one that is not synced) does not match Ready, but any list
    /// after '!', unless the problem is a notice (suspended, OutOfSync without automatic sync)
    #[arg(long, value_name = "LIST")]
    pub(crate) status: Option<StatusFilter>,

    /// With `apps`: list only apps with a problem, notices included, on one of these axes: --problems=sync,source;
    /// --problems alone stands for any axis. --exit-status then judges these axes alone
    #[arg(
        long, value_enum, value_name = "AXIS", num_args = 0.., require_equals = true, value_delimiter = ','
    )]
    pub(crate) problems: Option<Vec<ProblemAxis>>,

    /// With `apps`: list only apps with one of these sync states, separated by commas, or after '!' with none of them:
    /// Synced, OutOfSync, Syncing, Failed, Suspended (also the apps that --suspended selects), Unknown. Apps known only
    /// by labels have no sync state and are left out
    #[arg(long, value_name = "LIST")]
    pub(crate) sync: Option<SyncFilter>,

    /// With `apps`: list only apps with one of these results of checks, separated by commas: NAME, or NAME=false,
    /// NAME=nodata, NAME=true. Only a hub evaluates checks: add --hub
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) check: Vec<CheckFilter>,

    /// List only apps of these delivery tools, separated by commas: flux-kustomization (or ks), flux-helmrelease (hr),
    /// argo-application (argo), config-sync, kpt, porch, helm, label (apps known only by labels)
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = Delivery::of_word)]
    pub(crate) delivery: Vec<Delivery>,

    /// List only suspended apps: in Flux those with spec.suspend; in Argo CD those that it skips (annotation
    /// argocd.argoproj.io/skip-reconcile) or whose automatic sync was switched off, not those that never had it
    #[arg(long)]
    pub(crate) suspended: bool,

    /// List only apps whose declaring object (such as the Kustomization) matches this label selector, as kubectl takes
    /// it: team=web,tier!=db. For an app known only by labels, the labels that all of its objects share are compared
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = label_selector)]
    pub(crate) selector: Option<LabelSelector>,

    /// List only rows of these clusters (of apps: those that hold their objects): names as in the CLUSTER column,
    /// separated by commas [default: all that are read]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cluster: Vec<String>,

    /// List only rows of clusters whose labels match this selector: env=prod,region!=eu. A cluster has the labels of its
    /// Secret of Argo CD or Flux, of its Cluster of Cluster API, or of the extension taffrail.dev/labels of its context
    #[arg(long, value_name = "LABELS", value_parser = label_selector)]
    pub(crate) cluster_selector: Option<LabelSelector>,

    /// With `resources`: list only objects in these namespaces; with `apps`: list only apps with an object there. It
    /// does not matter where the apps are declared (see -n). Separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) in_namespace: Vec<String>,

    /// With `resources`: list only objects of these kinds, as kubectl takes them: deploy,Certificate. With -n: only
    /// those of apps declared in that namespace (for the Deployments in a namespace: --kind deploy --in-namespace
    /// shop). A kind of which none of the apps that names and -n select has an object is an error, unless something
    /// could not be read
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) kind: Vec<String>,

    /// With `resources`: list the namespaced objects that no app declares and no other object owns, instead of the
    /// objects of apps; those that controllers or Kubernetes itself make are left out. Live clusters need
    /// --in-namespace or -n; dumps are searched in all namespaces but kube-system, kube-public and kube-node-lease
    #[arg(
        long,
        conflicts_with_all = ["name", "declared", "watch", "delivery", "suspended", "selector", "sync", "check", "problems"]
    )]
    pub(crate) orphaned: bool,

    /// With `resources`: list only objects whose spec names a container image that contains one of these texts,
    /// separated by commas, or whose Pods run one; also objects of no app whose Pods run one, unless -n, a name or a
    /// condition about apps is given. With --kind pod: the Pods that run one
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    pub(crate) image: Vec<String>,
}

/// An axis on which apps have problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProblemAxis {
    /// An object of the app, or the object that declares it, is not ready
    Health,
    /// The delivery tool has not applied the desired revision, or the app is suspended
    Sync,
    /// The Git repository, OCI artifact or chart is missing or suspended, or could not be fetched
    Source,
    /// A cluster of the app does not answer, or its data is old
    Freshness,
    /// A check of the app by metrics is false, or has no data
    Check,
}

impl From<ProblemAxis> for Axis {
    fn from(axis: ProblemAxis) -> Axis {
        match axis {
            ProblemAxis::Health => Axis::Health,
            ProblemAxis::Sync => Axis::Sync,
            ProblemAxis::Source => Axis::Source,
            ProblemAxis::Freshness => Axis::Freshness,
            ProblemAxis::Check => Axis::Check,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortBy {
    /// Name, then namespace, in alphabetical order
    Name,
    /// Worst status first; in one status, apps and clusters with the most severe problem first, then apps and objects
    /// with the oldest problem
    Status,
    /// Name of the cluster, in alphabetical order
    Cluster,
    /// Oldest problem first, rows without a problem or with an unknown time last; not for clusters
    Since,
    /// Delivery tool, in the order in which --delivery lists them; objects of no app last; not for clusters
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

/// Options that restrict the apps among which a name is searched.
#[derive(Debug, Args)]
pub(crate) struct NameArguments {
    /// Take only apps declared in this namespace [default: all namespaces]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,

    /// Take apps declared in any namespace, which is the default
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Take only apps with objects in these clusters: names as in the CLUSTER column, separated by commas [default: all
    /// that are read]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cluster: Vec<String>,

    #[command(flatten)]
    pub(crate) grouping: GroupingArguments,
}

/// Show one app: its source, its last reconciliation, and the status of each of its objects.
#[derive(Debug, Args)]
#[command(
    mut_args(not_with_hub),
    after_help = "\
Examples:
  taffrail app shop
  taffrail app flux-system/shop
  taffrail app flux-helmrelease/web/cache        if other apps have the same name
  taffrail app shop --all-contexts               in every cluster that has it

Exit codes: 0 answered; 1 with --exit-status when the app has a problem; 2 wrong usage, no such app, or several; 3 some
data could not be read (the rest is still shown)."
)]
pub(crate) struct AppArguments {
    /// The app: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME. It is an error if different apps have the
    /// name; one app in several clusters is shown for each
    pub(crate) name: AppQuery,

    #[command(flatten)]
    pub(crate) which: NameArguments,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = TableOutput::Table)]
    pub(crate) output: TableOutput,

    /// Exit with 1 when the app has a problem of health, sync, source or freshness; a notice (suspended, OutOfSync
    /// without automatic sync) does not count
    #[arg(long)]
    pub(crate) exit_status: bool,

    #[command(flatten)]
    pub(crate) view: ViewArguments,

    #[command(flatten)]
    pub(crate) hub: HubSource,
}

/// Show an app, its declared objects, and their dependents, as a tree.
#[derive(Debug, Args)]
#[command(
    mut_args(not_with_hub),
    after_help = "\
Examples:
  taffrail tree shop
  taffrail tree flux-system --compact            only the apps that it delivers
  taffrail tree shop --all                       every Pod on its own line, even if many are alike
  taffrail tree shop --status '!Ready'           only objects that are not ready, and those above them
  taffrail tree shop -o dot | dot -Tsvg > shop.svg

Exit codes: 0 answered; 1 with --exit-status when the app has a problem; 2 wrong usage, no such app, or several; 3 some
data could not be read (the rest is still shown)."
)]
pub(crate) struct TreeArguments {
    /// The app: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME. It is an error if different apps have the
    /// name; one app in several clusters is shown for each
    pub(crate) name: AppQuery,

    #[command(flatten)]
    pub(crate) which: NameArguments,

    /// Show only the app and, below it, the apps that it delivers; leave out all other objects
    #[arg(long, conflicts_with = "all")]
    pub(crate) compact: bool,

    /// Show each object on its own line; by default, of five or more siblings alike in kind, status and message all but
    /// the first three share a line, and of two or more with the same note, such as old ReplicaSets, all do
    #[arg(long)]
    pub(crate) all: bool,

    /// Show only objects with one of these statuses, separated by commas, or after '!' with none of them, and the
    /// objects above them: Ready, InProgress, Terminating, Failed, NotFound, Unknown. A healthy app or object with a
    /// problem of sync, source or freshness does not match Ready, but any list after '!', unless the problem is a
    /// notice (suspended, OutOfSync without automatic sync)
    #[arg(long, value_name = "LIST")]
    pub(crate) status: Option<StatusFilter>,

    /// Output format; json has a node for each object, also for those that are alike and share a line in text
    #[arg(short, long, value_enum, default_value_t = TreeOutput::Text)]
    pub(crate) output: TreeOutput,

    /// Exit with 1 when the app has a problem of health, sync, source or freshness; a notice (suspended, OutOfSync
    /// without automatic sync) does not count
    #[arg(long)]
    pub(crate) exit_status: bool,

    #[command(flatten)]
    pub(crate) view: ViewArguments,

    #[command(flatten)]
    pub(crate) hub: HubSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TreeOutput {
    /// For people
    Text,
    Json,
    /// A graph in the language of Graphviz
    Dot,
}

/// Show the warning events about apps: about their objects and dependents, and Flux sources; newest last.
#[derive(Debug, Args)]
#[command(
    mut_args(not_with_hub),
    after_help = "\
Examples:
  taffrail events shop
  taffrail events --all-contexts                 of all apps in all clusters
  taffrail events shop --since 1h                those that occurred in the last hour

Warnings about Pods that are gone count for the workload after which they were named. Kubernetes deletes an event an
hour after it last occurred, unless the cluster is configured otherwise.

Exit codes: 0 answered; 2 wrong usage, no such app, or several; 3 some data could not be read (the rest is still
shown)."
)]
pub(crate) struct EventsArguments {
    /// The app: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME, in every cluster that has it; it is an error
    /// if different apps have the name [default: all apps]
    pub(crate) name: Option<AppQuery>,

    #[command(flatten)]
    pub(crate) which: NameArguments,

    /// Show one warning for each cluster; by default, warnings that are equal in several clusters are merged into one
    #[arg(long)]
    pub(crate) per_cluster: bool,

    /// Show only warnings whose last occurrence is at most this long ago, such as 10m or 1h [default: all that the
    /// cluster keeps]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) since: Option<Duration>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = EventsOutput::Table)]
    pub(crate) output: EventsOutput,

    /// Omit the header row of the table
    #[arg(long)]
    pub(crate) no_headers: bool,

    #[command(flatten)]
    pub(crate) view: ViewArguments,

    #[command(flatten)]
    pub(crate) hub: HubSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsOutput {
    /// For people
    Table,
    Json,
}

/// List reasons to doubt a green status: scopes that were not read, silent controllers and nodes, contradictions, and
/// switches that are off.
#[derive(Debug, Args)]
#[command(
    mut_args(not_with_hub),
    after_help = "\
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
usage, no such app, or several; 3 some data could not be read (the rest is still shown)."
)]
pub(crate) struct TrustArguments {
    /// The app: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME, in every cluster that has it; it is an error
    /// if different apps have the name [default: all apps]
    pub(crate) name: Option<AppQuery>,

    #[command(flatten)]
    pub(crate) which: NameArguments,

    /// Show one finding for each cluster; by default, findings that are equal in several clusters are merged into one
    #[arg(long)]
    pub(crate) per_cluster: bool,

    /// Show only findings of these categories, separated by commas [default: all]
    #[arg(long, value_parser = values::categories(), value_name = "LIST", value_delimiter = ',')]
    pub(crate) category: Vec<FindingCategory>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = TrustOutput::Table)]
    pub(crate) output: TrustOutput,

    /// Omit the header row of the table
    #[arg(long)]
    pub(crate) no_headers: bool,

    /// Exit with 1 when a finding of high or medium severity that is shown concerns at least one green app; findings
    /// that --category leaves out do not count
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
    /// A table with a line for each finding
    Wide,
    Json,
    Yaml,
    /// A line with category, reason, cluster and scope of each finding, to compare with an earlier run
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
    /// One row for each object that an app declares; with --orphaned, for each that none declares
    #[value(alias = "resource")]
    Resources,
}

impl What {
    /// Returns the plural of a word for a list of `get`: `apps` for `app` and `apps`. Returns any other word unchanged.
    pub(crate) fn plural(word: &str) -> &str {
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
    /// For people, as wide as the terminal
    Table,
    /// A table with all columns that apply; those that do not fit the terminal stand below their row
    Wide,
    Json,
    Yaml,
    /// The full name of each row, as other commands take it
    Name,
}
