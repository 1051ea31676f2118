//! Arguments of `taffrail wait`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum, ValueHint};
use taffrail_apps::wait::{InvalidUntil, Question, Until};
use taffrail_object::LabelSelector;
use taffrail_rules::cel::Names;
use taffrail_status::Trust;

use crate::cel::Interpreter;
use crate::cli::{
    GroupingArguments, Pdb, SourceArguments, ViewArguments, duration, duration_or_none, label_selector,
};
use crate::rule_source::RuleSource;

/// Wait until objects or apps meet a condition, and show what blocks them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail wait deploy/web svc/web -n shop       until they are ready or have failed
  taffrail wait app/shop --all-contexts          an app, in every cluster that has it
  taffrail wait app/shop --for revision=main@sha1:1e64462
  taffrail wait pod -l app=web -n shop --for deleted
  taffrail wait crd/widgets.example.com --for condition=Established
  taffrail wait pod/job-x7 --for jsonpath='{.status.phase}'=Succeeded
  taffrail wait deploy/web --for cel='object.status.readyReplicas >= 2'
  taffrail wait -f manifests/ --timeout 10m --stable-for 30s -o junit > wait.xml

Targets need not exist yet, nor their kinds. All targets must meet the condition at the same time.

Exit codes: 0 all targets met the condition; 1 they did not: the rest has failed, or the time is up; 2 wrong usage;
3 the time is up, and a target was never observed; 130 interrupted.")]
pub(crate) struct WaitArguments {
    /// The targets: objects, all objects of a kind, or apps.
    #[arg(
        help = "Objects or apps to wait for: KIND/NAME …, KIND NAME …, KIND,… (all of a kind, or with -l), app/[DELIVERY/][NAMESPACE/]NAME, [CLUSTER/]group/Kind/namespace/name, or a name printed by `get apps -o name` or `get resources -o name`",
        value_name = "TARGET", required_unless_present_any = ["files", "inventory"]
    )]
    pub(crate) targets: Vec<String>,

    /// Wait until all targets meet this condition: current (the status is Ready, and an app is synced), deleted (or
    /// replaced by a new object of that name), exists, failed, condition=NAME[=VALUE] (VALUE is True if left out),
    /// jsonpath='{.field}'[=VALUE] (any value if left out), cel='EXPRESSION' about `object`, or, for apps,
    /// revision=REVISION (applied, and all objects are ready)
    #[arg(long = "for", value_name = "WHAT", default_value = "current", value_parser = until)]
    pub(crate) until: Until,

    /// Wait for the objects that this file, the YAML, JSON and JSONL files directly in this folder (see -R), or stdin
    /// (-) names; may be given more than once
    #[arg(short, long = "filename", value_name = "FILE|DIR")]
    pub(crate) files: Vec<PathBuf>,

    /// With -f DIR: read also the files in its subfolders, at all depths
    #[arg(short = 'R', long, requires = "files")]
    pub(crate) recursive: bool,

    /// Wait for all objects that an inventory lists: [KIND/]NAME of a ResourceGroup, of a ConfigMap of cli-utils, of a
    /// Kustomization or HelmRelease of Flux, or of an Application of Argo CD; without KIND a ResourceGroup, or a ConfigMap where the cluster has no
    /// ResourceGroups. May be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) inventory: Vec<String>,

    /// If a target is a kind: wait only for its objects that match this label selector, such as app=web,tier!=db
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = label_selector, requires = "targets")]
    pub(crate) selector: Option<LabelSelector>,

    /// Look for the objects in this namespace [default: that of the context], and for apps declared in it [default: in
    /// any]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,

    /// If a target is a kind: wait for its objects in all namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Limit the time of the command, such as 30s, 5m or 1h; if the targets do not meet the condition by then it exits
    /// with 1, or with 3 if one of them was never observed
    #[arg(id = "deadline", long = "timeout", value_name = "TIME", default_value = "5m", value_parser = duration)]
    pub(crate) deadline: Duration,

    /// Require that all targets meet the condition for this long without a break, such as 30s [default: no time]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) stable_for: Option<Duration>,

    /// Exit with 1 as soon as all targets that do not meet the condition have failed; --fail-fast=false waits until
    /// --timeout for them to recover
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_missing_value = "true")]
    pub(crate) fail_fast: bool,

    /// Output format [default: a table on a terminal, lines elsewhere]
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<WaitOutput>,

    #[command(flatten)]
    pub(crate) grouping: GroupingArguments,

    /// Choose the effect of PodDisruptionBudgets on the status of the Deployment whose Pods they protect: none
    /// (advisory), or that it is ready with as many available Pods as each of them requires (sufficient)
    #[arg(long, value_enum, value_name = "MEANING", default_value_t = Pdb::Advisory)]
    pub(crate) pdb: Pdb,

    /// Judge objects by these rules: taffrail for Taffrail's own, kstatus for those of kstatus alone, or a folder with
    /// rules that are tried before Taffrail's
    #[arg(long, value_name = "taffrail|kstatus|DIR", default_value = "taffrail", value_parser = RuleSource::read, value_hint = ValueHint::DirPath)]
    pub(crate) rules: RuleSource,

    #[command(flatten)]
    pub(crate) clusters: ClusterArguments,
}

/// Parses the value of `--for`; fails also for an invalid CEL expression.
fn until(text: &str) -> Result<Until, InvalidUntil> {
    let interpreter = Interpreter::default();
    Until::read(text, |text| match interpreter.read(text, Names::Object) {
        Ok(expression) => Ok(Question::new(Arc::new(expression))),
        Err(error) => Err(error.to_string()),
    })
}

/// The arguments that select the live clusters to read, of commands that read no dumps.
#[derive(Debug, Args)]
#[command(next_help_heading = "Clusters")]
pub(crate) struct ClusterArguments {
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

    /// Limit the time of each request to a cluster, such as 5s; a longer one fails; 0 for no limit [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = duration_or_none)]
    pub(crate) request_timeout: Option<Duration>,

    /// Print at the end to stderr how many requests each cluster got; -vv: also each request; -vvv: also the purpose of
    /// each request
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// The Argo CDs and clusters whose own rules the user trusts, from the settings.
    #[arg(skip)]
    pub(crate) trust: Trust,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitOutput {
    /// A table of all targets, on a terminal redrawn while the command waits, elsewhere printed at the end
    Table,
    /// A line of text for each change of a target, and the result at the end
    Lines,
    /// A line of JSON for each change of a target, and one for the result
    Jsonl,
    /// A JUnit report in XML at the end, for CI systems
    Junit,
}

impl ClusterArguments {
    /// Converts these arguments, with `timeout` in place of `--timeout`, and without dumps and `--now`.
    pub(crate) fn source(&self, timeout: Duration) -> SourceArguments {
        SourceArguments {
            context: self.context.clone(),
            all_contexts: self.all_contexts,
            kubeconfig: self.kubeconfig.clone(),
            from: Vec::new(),
            now: None,
            timeout,
            request_timeout: self.request_timeout,
            verbose: self.verbose,
            trust: self.trust.clone(),
        }
    }
}

impl WaitArguments {
    /// Converts these arguments to those of a view with `-w`, which counts a cluster as unreachable that does not answer
    /// within [`super::PATIENCE`].
    pub(crate) fn view(&self) -> ViewArguments {
        let source = self.clusters.source(super::PATIENCE);
        ViewArguments { pdb: self.pdb, rules: self.rules.clone(), watch: true, source }
    }
}
