//! `taffrail rules why`: prints the rules that apply to an object, and the one that decides.

use taffrail_api::{AskedBranch, AskedRules, RulingRow};
use taffrail_object::Object;
use taffrail_rules::RuleSet;
use taffrail_status::Verdict;

use super::WhyArguments;
use crate::cli::HubFiles;
use crate::cli::TextOutput;
use crate::command_error::{CommandError, Exit};
use crate::commands::status::{self, InputFormat, StatusArguments, StatusOutput};
use crate::output::answer::Console;
use crate::output::{Phrase, printable};
use crate::phrase;

pub(super) fn run(arguments: &WhyArguments, console: &Console) -> Result<Exit, CommandError> {
    let asked = StatusArguments {
        objects: arguments.objects.clone(),
        files: arguments.files.clone(),
        selector: None,
        namespace: arguments.namespace.clone(),
        all_namespaces: arguments.all_namespaces,
        recursive: false,
        input: InputFormat::Auto,
        output: match arguments.output {
            TextOutput::Text => StatusOutput::Jsonl,
            TextOutput::Json => StatusOutput::Json,
        },
        rules: arguments.whose.rules.clone(),
        kstatus_fork: None,
        augment: false,
        exit_status: false,
        watch: false,
        jobs: None,
        source: arguments.source.clone(),
        hub: None,
        hub_files: HubFiles::default(),
        why: Some(arguments.output),
    };
    status::run(&asked, console)
}

/// Appends to `out`, as text or as a line of JSON, the rules for an object and which of them decided `verdict`. `seen`
/// is the verdict that views of apps show, for which other objects such as Pods and Events count, too; `None` if there
/// is none. Only the text tells it, if its status is another one; it also ends with the note of [`elsewhere`].
pub(crate) fn tell(
    form: TextOutput,
    set: &RuleSet,
    object: &Object<'_>,
    verdict: &Verdict,
    seen: Option<&Verdict>,
    out: &mut Vec<u8>,
) {
    let asked = set.find(object.group(), object.kind()).map(|found| {
        let rule = found.name();
        let branches = (1..).zip(found.rules.branches().zip(found.rules.holding(object)));
        let branches = branches.map(|(number, ((status, suspended), holds))| AskedBranch {
            number,
            status,
            suspended,
            holds,
            decides: verdict.rule == format!("{rule}#{number}"),
        });
        let branches = branches.collect();
        AskedRules { rule, source: found.rules.source().to_owned(), branches }
    });
    let row = RulingRow {
        group: object.group().to_owned(),
        version: object.version().to_owned(),
        kind: object.kind().to_owned(),
        namespace: object.namespace().into_owned(),
        name: object.name().into_owned(),
        status: verdict.status,
        suspended: verdict.suspended,
        message: verdict.message.to_string(),
        rule: verdict.rule.to_string(),
        asked: asked.collect(),
    };
    match form {
        TextOutput::Json => out.extend(serde_json::to_vec(&row).unwrap_or_default()),
        TextOutput::Text => {
            out.extend_from_slice(text(&row, seen).as_str().as_bytes());
            out.extend_from_slice(elsewhere(object).unwrap_or_default().as_bytes());
        }
    }
    out.push(b'\n');
}

/// Returns the note that views of apps also use rules from the cluster, and under which conditions, for an object that
/// carries the mark of Argo CD or Flux; `None` for other objects.
fn elsewhere(object: &Object<'_>) -> Option<&'static str> {
    let is_marked = |kind: &str, key: &str| !object.text(&["metadata", kind, key]).is_empty();
    if is_marked("annotations", "argocd.argoproj.io/tracking-id") {
        return Some(
            "\n  Argo CD delivers this object. Views of apps also use the scripts in its argocd-cm: without limits \
             where a ClusterRoleBinding\n  \
             gives its application controller a ClusterRole that may write everything (create, update, patch or * on all\n  \
             apiGroups and resources), both can be read, and its ServiceAccount is not default; or where\n  \
             the setting argocd: [NAMESPACE] names its namespace. Those of another cluster count without limits where\n  \
             the setting trusted-homes: [CLUSTER] names that.\n",
        );
    }
    let of_flux = ["kustomize.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/name"];
    of_flux.into_iter().any(|key| is_marked("labels", key)).then_some(
        "\n  Flux delivers this object. Views of apps also use the healthCheckExprs of the app that delivers it: \
         those of another cluster without limits\n  \
         where the setting trusted-homes: [CLUSTER] names it.\n",
    )
}

fn lines(lines: &[Phrase]) -> Phrase {
    lines.iter().fold(phrase!(""), |before, line| phrase!("{}{}\n", before, line))
}

fn text(row: &RulingRow, seen: Option<&Verdict>) -> Phrase {
    let slash = if row.namespace.is_empty() { "" } else { "/" };
    let suspended = if row.suspended { " (suspended)" } else { "" };
    let mut out = vec![phrase!(
        "{} {}{}{} is {}{}, by {}",
        printable(&row.kind),
        printable(&row.namespace),
        slash,
        printable(&row.name),
        row.status.word(),
        suspended,
        printable(&row.rule),
    )];
    if !row.message.is_empty() {
        out.push(phrase!("  {}", printable(&row.message)));
    }
    if let Some(seen) = seen.filter(|seen| seen.status != row.status) {
        out.push(phrase!("  Views show {}: {}", seen.status.word(), printable(&seen.message)));
    }
    if row.asked.is_empty() {
        out.push(match row.rule.starts_with("builtin/") {
            true => phrase!("  Only the built-in rules apply to this kind."),
            false => phrase!("  No rules apply to this kind."),
        });
    }
    let mut is_decided = false;
    for asked in &row.asked {
        out.push(phrase!("\n  {}, after {}", printable(&asked.rule), printable(&asked.source)));
        for branch in &asked.branches {
            let suspended = if branch.suspended { " (suspended)" } else { "" };
            let what = match (branch.decides, branch.holds) {
                (true, _) => "holds and decides",
                (false, true) => "holds, but comes later",
                (false, false) => "does not hold",
            };
            is_decided |= branch.decides;
            // This branch was not evaluated: an earlier rule decided.
            let what = if branch.holds && !branch.decides && !is_decided { "holds" } else { what };
            let status = format!("{}{suspended}", branch.status.word());
            out.push(phrase!("    #{:<3}{:<22}{}", branch.number, printable(&status), what));
        }
    }
    let before = match &*row.rule {
        "generic/generation" => "its controller has not seen the newest generation yet",
        "generic/first-status" => "its controller has not written a status yet",
        "generic/deletion" => "it is being deleted",
        "generic/ready" | "generic/conditions" => "its standard conditions decide",
        "generic/adverse" => "its own fields report a problem",
        "fallback" => "nothing reports a problem, so it counts as ready",
        rule if rule.starts_with("builtin/") => "the built-in rule of the kind decides",
        _ => return lines(&out),
    };
    out.push(phrase!("\n  {}: {}", printable(&row.rule), before));
    lines(&out)
}
