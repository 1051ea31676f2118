//! Arguments of `taffrail actions` and `taffrail action`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum, ValueHint};
use taffrail_observe::ObjectArg;

use crate::cli::{DryRun, HubSource, SourceArguments, TextOutput, not_with_hub};

/// List the actions of an object.
///
/// Actions are Lua scripts in Argo CD's format: your own (--rules DIR), those of Taffrail, and, as cluster/NAME, those
/// in the ConfigMap argocd-cm of an Argo CD in the cluster, for the objects that it delivers: an Application must list
/// the object, and the object must carry its mark. Taffrail trusts an Argo CD if a ClusterRoleBinding gives its
/// application controller (of a ServiceAccount other than default) a ClusterRole that may write everything (create,
/// update, patch or * on all apiGroups and resources) and both can be read, or if the setting argocd names its
/// namespace.
#[derive(Debug, Args)]
#[command(
    mut_args(not_with_hub),
    after_help = "\
Examples:
  taffrail actions deploy/web -n shop            the actions and their parameters
  taffrail actions apps/Deployment/shop/web -o json
  taffrail actions rollout/web -n shop --rules my-actions/

Exit codes: 0 answered; 2 wrong usage, or no such object; 3 some data could not be read (the rest is still shown)."
)]
pub(crate) struct ActionsArguments {
    #[command(flatten)]
    pub(crate) which: WhichArguments,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = ActionsOutput::Table)]
    pub(crate) output: ActionsOutput,
}

/// Run an action on an object: restart, scale, suspend, or another one of its kind.
///
/// The change is shown before it is written, as a merge patch that fails if another client changes the same fields. An
/// action may also create objects. A script of the cluster runs only for objects that its Argo CD delivers, asks before
/// it writes (unless --yes is given), and writes only to the object and in its namespace. Clusters are written at the
/// same time; without --request-timeout each has --timeout for its writes, but at least 30s. Where a cluster does not
/// answer in time, the change may or may not have been made; it is not sent again.
#[derive(Debug, Args)]
#[command(
    mut_args(not_with_hub),
    after_help = "\
Examples:
  taffrail action restart deploy/web -n shop
  taffrail action scale deploy/web -n shop --param replicas=3
  taffrail action create-job cronjob/night -n shop --dry-run=server
  taffrail action abort rollout/web -n shop --context prod
  taffrail action cluster/promote rollout/web -n shop --yes

With --hub the hub writes, which needs a token that allows to act, and goes on if this command ends.

Exit codes: 0 done, or nothing to do; 2 wrong usage, not confirmed, no such object, or no such action for its current
state; 3 something could not be read or written."
)]
pub(crate) struct ActionArguments {
    /// Name of the action to run; `taffrail actions OBJECT` lists the actions
    #[arg(value_name = "ACTION")]
    pub(crate) action: String,

    #[command(flatten)]
    pub(crate) which: WhichArguments,

    /// Set a parameter of the action to this value; may be given more than once. `taffrail actions OBJECT` lists the
    /// parameters
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = parameter)]
    pub(crate) parameters: Vec<(String, String)>,

    /// Do not ask for confirmation, which is needed if the object is in several clusters or namespaces, or if the
    /// script comes from a cluster. What is not confirmed is not written, and the exit code is 2, also where there is
    /// neither a terminal nor --yes
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// Let a script that comes from a cluster create objects of this kind (Job or Job.batch, in any case) in the
    /// namespace of its object, although they may run code or grant rights; may be given more than once. [default: only
    /// Events, and ConfigMaps without labels whose name does not begin with argocd-]
    #[arg(long, value_name = "KIND")]
    pub(crate) allow_create: Vec<String>,

    /// Show the change without writing it; --dry-run alone stands for --dry-run=client
    #[arg(
        long, value_enum, value_name = "BY", num_args = 0..=1, require_equals = true, default_value_t = DryRun::None,
        default_missing_value = "client"
    )]
    pub(crate) dry_run: DryRun,

    /// Output format: text prints each change when it is written, and its result; json one document at the end
    #[arg(short, long, value_enum, default_value_t = TextOutput::Text)]
    pub(crate) output: TextOutput,
}

/// The arguments that name the object, the action scripts to use, and the clusters.
#[derive(Debug, Args)]
pub(crate) struct WhichArguments {
    /// The object that has the actions: KIND/NAME or [CLUSTER/]group/Kind/namespace/name, as printed by `get resources
    /// -o name`
    #[arg(value_name = "OBJECT", value_parser = ObjectArg::from_str)]
    pub(crate) object: ObjectArg,

    /// Look for an object named KIND/NAME in this namespace [default: that of the context; in dumps any]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,

    /// Take all objects of this kind and name, in every namespace; `action` changes each of them
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Use these action scripts: taffrail for Taffrail's own, or a folder, laid out like Argo CD's
    /// resource_customizations, whose scripts are used before Taffrail's
    #[arg(long, value_name = "taffrail|DIR", default_value = "taffrail", value_parser = Whose::read, value_hint = ValueHint::DirPath)]
    pub(crate) rules: Whose,

    #[command(flatten)]
    pub(crate) source: SourceArguments,

    #[command(flatten)]
    pub(crate) hub: HubSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ActionsOutput {
    /// For people
    Table,
    Json,
    /// One name of an action per line
    Name,
}

/// The folder of the user's own action scripts; `None` for `--rules taffrail`, which uses only Taffrail's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Whose(pub(crate) Option<PathBuf>);

impl Whose {
    /// Parses `--rules` for actions. The value `kstatus` means `taffrail`, because other commands share the
    /// setting.
    fn read(text: &str) -> Result<Whose, String> {
        match text {
            "taffrail" | "kstatus" => Ok(Whose(None)),
            folder if Path::new(folder).is_dir() => Ok(Whose(Some(folder.into()))),
            _ => Err("the action scripts must be taffrail or a folder with scripts".to_owned()),
        }
    }
}

fn parameter(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("a parameter of an action must have the form NAME=VALUE".to_owned()),
    }
}
