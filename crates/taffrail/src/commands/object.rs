//! `taffrail object`: prints an object as its API server returns it.

use std::io::{self, BufWriter, Write as _};
use std::str::FromStr as _;

use clap::{Args, ValueEnum};
use taffrail_api::question::{ObjectAnswer, ObjectView};
use taffrail_api::{ObjectList, ObjectRow};
use taffrail_observe::ObjectArg;

use super::watch::Form;
use super::{changes, get};
use crate::cli::{HubSource, ListOutput, ViewArguments, not_with_hub};
use crate::command_error::{CommandError, Exit, written};
use crate::output::answer::Console;
use crate::output::printable;
use crate::say;
use crate::source::{self, Source};

/// Print an object as its API server returns it, as YAML.
///
/// Prints the metadata alone of a Secret, never its values.
#[derive(Debug, Args)]
#[command(
    mut_args(not_with_hub),
    after_help = "\
Examples:
  taffrail object deploy/web -n shop
  taffrail object eu-1/apps/Deployment/shop/web --hub https://hub.example:7655
  taffrail object deploy/web -n shop -o json     with its status and events

Exit codes: 0 answered; 2 wrong usage, or no such object; 3 some data could not be read (the rest is still shown)."
)]
pub(crate) struct ObjectArguments {
    /// The object: KIND/NAME or [CLUSTER/]group/Kind/namespace/name, as printed by `get resources -o name`, in each
    /// cluster that has it
    #[arg(value_name = "OBJECT", value_parser = ObjectArg::from_str)]
    pub(crate) object: ObjectArg,

    /// Look for an object named KIND/NAME in this namespace [default: that of the context; in dumps any]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,

    /// Print all objects of this kind and name, in every namespace
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Look only in these clusters: names as in the CLUSTER column, separated by commas [default: all that are read]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cluster: Vec<String>,

    /// Also print metadata.managedFields, in which API servers record who wrote which field
    #[arg(long)]
    pub(crate) show_managed_fields: bool,

    /// Output format; json is one document with cluster, status and events of each object
    #[arg(short, long, value_enum, default_value_t = ObjectOutput::Yaml)]
    pub(crate) output: ObjectOutput,

    #[command(flatten)]
    pub(crate) view: ViewArguments,

    #[command(flatten)]
    pub(crate) hub: HubSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectOutput {
    /// The objects alone, as `kubectl apply` takes them
    Yaml,
    Json,
}

impl ObjectArguments {
    /// Returns the layout in which `-w` adds answers to the output.
    pub(crate) fn form(&self) -> Form {
        match self.output {
            ObjectOutput::Yaml => Form::Yaml,
            ObjectOutput::Json => Form::Json,
        }
    }
}

pub(crate) fn run(
    arguments: &ObjectArguments,
    printed: &mut Option<ObjectList>,
    source: &mut dyn Source,
    console: &Console,
) -> Result<Exit, CommandError> {
    let view = ObjectView {
        name: arguments.object.to_arg().parse().map_err(CommandError::usage)?,
        namespace: arguments.namespace.clone(),
        all_namespaces: arguments.all_namespaces,
        clusters: arguments.cluster.clone(),
    };
    let answer = source::ask("object", &view, (&arguments.view, &arguments.hub), source, console)?;
    let ObjectAnswer { fleet, mut items, errors } = answer;
    if !arguments.show_managed_fields {
        items.iter_mut().for_each(ObjectRow::hide_managed_fields);
    }
    // Only documents with more than the objects contain failures.
    let is_json = arguments.output == ObjectOutput::Json;
    let list = ObjectList::of(items, if is_json { &*errors } else { &[] });
    let Some(list) = changes::news(printed, list) else { return Ok(Exit::Yes) };
    written(match arguments.output {
        ObjectOutput::Json => get::document(ListOutput::Json, list, console),
        ObjectOutput::Yaml => yaml(&list.items, fleet.clusters > 1, console),
    })?;
    Ok(get::tell(&fleet, &errors, !is_json, console))
}

/// Prints the objects as YAML documents, each after a comment that names its cluster if there are `several`.
fn yaml(rows: &[ObjectRow], several: bool, console: &Console) -> io::Result<()> {
    let mut out = BufWriter::new(console.programs());
    for (place, row) in rows.iter().enumerate() {
        if place > 0 {
            out.write_all(b"---\n")?;
        }
        if several {
            say!(out, "# cluster {}", printable(&row.cluster))?;
        }
        if row.is_metadata {
            let why = match (&*row.object.group, &*row.object.kind) {
                ("", "Secret") => "Taffrail shows no values of a Secret",
                _ => "no more is known while the cluster does not answer",
            };
            say!(out, "# the metadata alone: {}", why)?;
        }
        get::yaml(&mut out, &row.body)?;
    }
    out.flush()
}
