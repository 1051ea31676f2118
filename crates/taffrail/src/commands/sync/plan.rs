//! Prints what a run would do.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use taffrail_engine::SyncPlan;
use taffrail_plan::diff::DiffOutcome;
use taffrail_plan::order::{SyncStep, Task};

use crate::commands::diff::print::counts;
use crate::output::answer::Console;
use crate::output::printable;
use crate::{phrase, say};

/// Prints the steps of a run with the objects that change, and the counts of all.
pub(super) fn print(plan: &SyncPlan<'_>, cluster: Option<&str>, console: &Console) -> io::Result<()> {
    let mut out = console.people();
    let cluster = cluster.map(|name| format!("{name} ")).unwrap_or_default();
    let steps = plan.order.steps.iter().chain(&plan.order.after_failure);
    for (number, step) in steps.enumerate() {
        let lines = lines(plan, step);
        if lines.is_empty() {
            continue;
        }
        let bold = Style::new().bold();
        let title = format!("{}, wave {}", step.phase, step.wave);
        if number > 0 {
            say!(out)?;
        }
        say!(out, "{}{}{}{:#}", printable(&cluster), bold, printable(&title), bold)?;
        for (sign, style, text) in lines {
            say!(out, "  {}{} {}{:#}", style, sign, printable(&text), style)?;
        }
    }
    for (key, reason) in &plan.kept {
        let text = format!("{} {} stays: {reason}", key.kind, key.path());
        say!(out, "{}= {}", printable(&cluster), printable(&text))?;
    }
    out.flush()?;
    let outcomes = || plan.objects.iter().filter_map(|it| it.diff.map(|diff| diff.outcome));
    let count = |wanted| outcomes().filter(|outcome| *outcome == wanted).count();
    let told = counts(&[
        (count(DiffOutcome::Create), "to create"),
        (count(DiffOutcome::Change), "to change"),
        (count(DiffOutcome::Unchanged), "unchanged"),
        (plan.pruned.len(), "to delete"),
        (plan.kept.len(), "to stay"),
    ]);
    console.tell(phrase!("{}\n", printable(&told)));
    Ok(())
}

fn lines(plan: &SyncPlan<'_>, step: &SyncStep) -> Vec<(&'static str, Style, String)> {
    let tasks = step.batches.iter().flatten();
    let line = |task: &Task| {
        let named = |at: &usize| {
            let object = plan.objects.get(*at)?;
            Some((object, format!("{} {}", object.declared.key.kind, object.declared.key.path())))
        };
        Some(match task {
            Task::Prune(at) => {
                let key = plan.pruned.get(*at)?;
                ("-", AnsiColor::Red.on_default(), format!("{} {}", key.kind, key.path()))
            }
            Task::Hook(at) => (">", Style::new(), format!("{} runs as a hook", named(at)?.1)),
            Task::Apply(at) => {
                let (object, name) = named(at)?;
                match object.diff?.outcome {
                    DiffOutcome::Create => ("+", AnsiColor::Green.on_default(), name),
                    DiffOutcome::Change => ("~", AnsiColor::Yellow.on_default(), name),
                    DiffOutcome::Unknown => ("?", AnsiColor::Magenta.on_default(), name),
                    DiffOutcome::Unchanged | DiffOutcome::NotWanted => return None,
                }
            }
        })
    };
    tasks.filter_map(line).collect()
}
