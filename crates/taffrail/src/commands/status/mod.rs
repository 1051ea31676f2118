//! `taffrail status`: prints the statuses of objects in manifests and clusters.
//!
//! Manifests are streamed: the input is cut into chunks, `--jobs` threads judge them independently, and the answers are
//! printed in the order of the input. Only a few chunks are in memory at a time, however long the input is.

mod alone;
#[cfg(feature = "hub")]
pub(super) mod answered;
mod arguments;
mod by_hub;
mod clusters;
mod follow;
mod judge;
pub(super) mod kinds;
mod line;
mod print;

use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use jiff::Timestamp;
use taffrail_status::Fork;
use taffrail_status::assess::Budgets;

use super::watch;
use crate::cli::{Pdb, ViewArguments};
use crate::command_error::{CommandError, Exit};
use crate::output::answer::Console;
use crate::rule_source::RulesWithOptions;
use taffrail_observe::input::{self, Chunk, Chunks, InputSource};

use arguments::KstatusFork;
pub(crate) use arguments::{InputFormat, StatusArguments, StatusOutput};
use judge::{Answers, Judge};
use print::Printer;

pub(crate) fn run(arguments: &StatusArguments, console: &Console) -> Result<Exit, CommandError> {
    if arguments.files.is_empty() && arguments.objects.is_empty() {
        let complaint = CommandError::usage("no objects are named whose status is to be shown");
        return Err(
            complaint.hint("name objects (deploy/web), or files with -f, or pipe objects in with -f -")
        );
    }
    if arguments.augment
        && !matches!(arguments.output, StatusOutput::Json | StatusOutput::Jsonl | StatusOutput::Yaml)
    {
        return Err(CommandError::usage("--augment prints whole objects, which do not fit into a table")
            .hint("with --augment, add -o json, -o jsonl or -o yaml"));
    }
    if arguments.kstatus_fork.is_some() && !arguments.rules.is_kstatus() {
        let complaint = CommandError::usage(
            "--kstatus-fork selects a variant of the rules of kstatus, and other rules apply",
        );
        return Err(complaint.hint("add --rules kstatus, or leave --kstatus-fork out"));
    }
    let judge = Judge {
        rules: rules(arguments),
        why: arguments.why,
        now: arguments.source.now,
        form: arguments.into(),
        is_pure: arguments.rules.is_kstatus(),
    };
    if arguments.watch {
        let source = arguments.source.clone();
        let view = ViewArguments { pdb: Pdb::Advisory, rules: arguments.rules.clone(), watch: true, source };
        let mut seen = follow::ListedObjects::default();
        return watch::follow(arguments.form(), console, |from, printed, console| {
            follow::look(arguments, &view, &judge, (printed, &mut seen), from, console)
        });
    }
    if let Some(url) = &arguments.hub {
        return by_hub::run(arguments, url, &judge, console);
    }
    if !arguments.objects.is_empty() {
        return clusters::run(arguments, &judge, console);
    }
    let (sources, problems) = input::sources(&arguments.files, arguments.recursive);
    let mut printer = Printer::new(arguments, false, console);
    for problem in problems {
        printer.complain(problem.into());
    }
    let jobs = arguments.jobs.map_or_else(processors, NonZeroUsize::get);
    if jobs == 1 {
        in_turn(arguments, &sources, &judge, &mut printer)?;
    } else {
        side_by_side(arguments, &sources, &judge, &mut printer, jobs)?;
    }
    printer.finish(arguments.exit_status)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

fn rules(arguments: &StatusArguments) -> RulesWithOptions {
    let fork = match arguments.kstatus_fork {
        None | Some(KstatusFork::Flux) => Fork::Flux,
        Some(KstatusFork::KubernetesSigs) => Fork::KubernetesSigs,
    };
    let source = &arguments.source;
    arguments.rules.with_options(Budgets::default(), source.patience(), &source.trust).with_fork(fork)
}

/// Calls `consume` with each chunk of the sources, or with an error for a source that cannot be read, until `consume`
/// returns [`Enough`].
fn chunks(
    arguments: &StatusArguments,
    sources: &[InputSource],
    mut consume: impl FnMut(Result<Chunk, CommandError>) -> Result<(), Enough>,
) -> Result<(), Enough> {
    for source in sources {
        let name = source.name();
        let mut chunks = match source.open() {
            Ok(reader) => Chunks::new(reader, &name, arguments.input.shape()),
            Err(error) => {
                consume(Err(error.into()))?;
                continue;
            }
        };
        loop {
            match chunks.next_chunk() {
                Ok(Some(chunk)) => consume(Ok(chunk))?,
                Ok(None) => break,
                Err(error) => {
                    consume(
                        Err(CommandError::unreadable(format!("cannot read {name}")).with_source(&error)),
                    )?;
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The reason to read no more input: stdout is closed, or writing failed.
struct Enough;

fn in_turn(
    arguments: &StatusArguments,
    sources: &[InputSource],
    judge: &Judge,
    printer: &mut Printer,
) -> Result<(), CommandError> {
    let mut parser = taffrail_object::json::Parser::new();
    let mut result = Ok(());
    let _ = chunks(arguments, sources, |chunk| {
        let more = match chunk {
            Ok(chunk) => printer.print(judge.chunk(&chunk, &mut parser)),
            Err(complaint) => {
                printer.complain(complaint);
                Ok(true)
            }
        };
        match more {
            Ok(true) => Ok(()),
            Ok(false) => Err(Enough),
            Err(complaint) => {
                result = Err(complaint);
                Err(Enough)
            }
        }
    });
    result
}

/// Judges chunks in parallel. Chunk `n` goes to thread `n % jobs`, and answers are taken in the same order.
fn side_by_side(
    arguments: &StatusArguments,
    sources: &[InputSource],
    judge: &Judge,
    printer: &mut Printer,
    jobs: usize,
) -> Result<(), CommandError> {
    type Work = Result<Chunk, CommandError>;
    type Done = Result<Answers, CommandError>;
    const MAX_QUEUED_CHUNKS: usize = 2;

    std::thread::scope(|scope| {
        let mut inputs: Vec<SyncSender<Work>> = Vec::new();
        let mut outputs: Vec<Receiver<Done>> = Vec::new();
        for _ in 0..jobs {
            let (input, work) = sync_channel::<Work>(MAX_QUEUED_CHUNKS);
            let (done, output) = sync_channel::<Done>(MAX_QUEUED_CHUNKS);
            inputs.push(input);
            outputs.push(output);
            scope.spawn(move || {
                let mut parser = taffrail_object::json::Parser::new();
                for chunk in work {
                    let answers = chunk.map(|chunk| judge.chunk(&chunk, &mut parser));
                    if done.send(answers).is_err() {
                        return;
                    }
                }
            });
        }
        scope.spawn(move || {
            let mut turn = inputs.iter().cycle();
            let _ = chunks(arguments, sources, |chunk| match turn.next() {
                Some(input) => input.send(chunk).map_err(|_| Enough),
                None => Err(Enough),
            });
        });
        for turn in 0.. {
            match outputs[turn % jobs].recv() {
                Ok(Ok(answers)) => {
                    if !printer.print(answers)? {
                        break;
                    }
                }
                Ok(Err(complaint)) => printer.complain(complaint),
                // This thread got no chunk in its turn, so there are no more.
                Err(_) => break,
            }
        }
        // Ends the threads that wait to send an answer.
        drop(outputs);
        Ok(())
    })
}

/// Returns the time at which objects are judged: `fixed` (`--now`) or the present time.
fn now(fixed: Option<Timestamp>) -> Timestamp {
    fixed.unwrap_or_else(Timestamp::now)
}
