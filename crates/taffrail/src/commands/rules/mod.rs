//! `taffrail rules`: shows, tests and lints the rules that judge objects.

mod list;
mod show;
mod trial;
pub(crate) mod why;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use taffrail_status::Trust;

use crate::cli::{ListOutput, SourceArguments, TextOutput};
use crate::command_error::{CommandError, Exit};
use crate::output::answer::Console;
use crate::rule_source::RuleSource;

/// Show, explain and test the rules that judge objects.
///
/// Rules apply in this order: your own (--rules DIR), Taffrail's library, the built-in rules for Kubernetes' own kinds,
/// and the conditions that every kind may have. The first that applies decides, and each verdict names it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail rules list                            every kind that has rules
  taffrail rules show certificate                the rules of a kind, as written
  taffrail rules why certificate/web -n shop     the rule that decides about an object
  taffrail rules test my-rules/                  run the test cases of rules

Exit codes: 0 answered; 1 a case fails, or lint has findings; 2 wrong usage; 3 some data could not be read.")]
pub(crate) struct RulesArguments {
    #[command(subcommand)]
    pub(crate) command: RulesCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    List(ListArguments),
    Show(ShowArguments),
    Why(Box<WhyArguments>),
    Test(TestArguments),
    Lint(LintArguments),
}

/// List the kinds that have rules.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail rules list                            every kind
  taffrail rules list crossplane                 kinds and groups with this in their name
  taffrail rules list --rules my-rules/ -o json  including your own rules, as JSON

Exit codes: 0 answered; 2 wrong usage.")]
pub(crate) struct ListArguments {
    /// List only kinds whose full name, KIND.GROUP, contains one of these words, in any case [default: all]
    #[arg(value_name = "WORD")]
    words: Vec<String>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = ListOutput::Table)]
    output: ListOutput,

    #[command(flatten)]
    whose: Whose,
}

/// Show the rules of a kind as written.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail rules show certificate
  taffrail rules show certificates.cert-manager.io
  taffrail rules show Bucket.s3.aws.upbound.io   the rules that judge such an object

Exit codes: 0 answered; 2 wrong usage, or no rules for such a kind.")]
pub(crate) struct ShowArguments {
    /// Kinds whose rules are shown, each as Certificate, certificates or certificate.cert-manager.io
    #[arg(value_name = "KIND", required = true)]
    kinds: Vec<String>,

    #[command(flatten)]
    whose: Whose,
}

/// Show which rules apply to an object, which of them hold, and which one decides.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail rules why certificate/web -n shop     an object in the cluster
  taffrail rules why -f web.yaml                 an object in a file
  taffrail rules why -f web.yaml --rules my-rules/

Exit codes: 0 answered; 2 wrong usage; 3 some data could not be read or judged (the rest is still shown).")]
pub(crate) struct WhyArguments {
    /// Objects in the clusters: KIND/NAME …, KIND NAME …, or KIND,… for all objects of these kinds
    #[arg(value_name = "KIND/NAME", conflicts_with = "files")]
    objects: Vec<String>,

    /// Judge the objects in this file, in the YAML, JSON and JSONL files directly in this folder, or in stdin (-),
    /// instead of objects in clusters; may be given more than once
    #[arg(short, long = "filename", value_name = "FILE", conflicts_with_all = ["from", "context", "all_contexts"])]
    files: Vec<PathBuf>,

    /// Look for namespaced objects in this namespace [default: that of the context; in dumps any]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces", requires = "objects")]
    namespace: Option<String>,

    /// Judge the objects of a kind in all namespaces; an object given by name needs -n instead
    #[arg(short = 'A', long, requires = "objects")]
    all_namespaces: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = TextOutput::Text)]
    output: TextOutput,

    #[command(flatten)]
    whose: Whose,

    #[command(flatten)]
    source: SourceArguments,
}

/// Run the test cases of rules.
///
/// A folder contains rules in rules.yaml and cases in cases.yaml, or folders with these files. Argo CD's scripts, laid
/// out like its resource_customizations, are tested by their health_test.yaml and action_test.yaml.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail rules test my-rules/                  one line per failed case
  taffrail rules test my-rules/ -o json
  taffrail rules test argo-cd/resource_customizations/

Exit codes: 0 all cases hold; 1 one fails, or a file is wrong; 2 wrong usage; 3 the folder could not be read, or has no
cases.")]
pub(crate) struct TestArguments {
    /// Folder with rules.yaml and cases.yaml, or with folders that have these files
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = TextOutput::Text)]
    output: TextOutput,
}

/// Check rules for mistakes: files that cannot be read, test cases that fail or have the same name, branches that no
/// object or no test case reaches, kinds without a source, and folders without the name of their group.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail rules lint my-rules/

Exit codes: 0 no findings; 1 findings; 2 wrong usage; 3 the folder could not be read.")]
pub(crate) struct LintArguments {
    /// Folder with the rules to check, laid out as for `rules test`
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = TextOutput::Text)]
    output: TextOutput,
}

#[derive(Debug, Args)]
struct Whose {
    /// List, show or apply these rules: taffrail for Taffrail's own, or a folder with rules that are tried before
    /// Taffrail's
    #[arg(long, value_name = "taffrail|DIR", default_value = "taffrail", value_parser = RuleSource::read, value_hint = ValueHint::DirPath)]
    rules: RuleSource,
}

impl RulesArguments {
    /// Returns the contexts and the trust settings of the subcommand that reads clusters; `None` for the others.
    pub(crate) fn clusters_mut(&mut self) -> Option<(&mut Vec<String>, &mut Trust)> {
        match &mut self.command {
            RulesCommand::Why(arguments) => {
                Some((&mut arguments.source.context, &mut arguments.source.trust))
            }
            _ => None,
        }
    }
}

pub(crate) fn run(arguments: &RulesArguments, console: &Console) -> Result<Exit, CommandError> {
    match &arguments.command {
        RulesCommand::List(arguments) => list::run(arguments, console),
        RulesCommand::Show(arguments) => show::run(arguments, console),
        RulesCommand::Why(arguments) => why::run(arguments, console),
        RulesCommand::Test(arguments) => trial::test(arguments, console),
        RulesCommand::Lint(arguments) => trial::lint(arguments, console),
    }
}
