//! Prints the output of `wait`: a redrawn table, a line for each change, lines of JSON, or a JUnit report.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use jiff::Timestamp;
use taffrail_api::{WaitChange, WaitSummary, text};
use taffrail_apps::wait::{End, Options, Row, Subject, Until, Wait, WaitState};
use taffrail_status::Status;

use super::arguments::WaitOutput;
use super::junit;
use crate::command_error::{CommandError, written};
use crate::output::answer::Console;
use crate::output::screen::Screen;
use crate::output::table::{Cell, Table};
use crate::output::{self, Phrase, indented, printable};
use crate::program;
use crate::say;

/// Time for which a target must not be observed before a line says so: connecting takes a moment.
const UNSEEN: Duration = Duration::from_secs(1);

/// The output of one run of `wait`.
pub(super) struct Output {
    form: WaitForm,
    /// True if several clusters are read, so that each name needs its cluster.
    several: bool,
    /// True if the user chose contexts, so that suggested commands need `--context`.
    is_named: bool,
    /// The line printed last about each target, by cluster and target.
    told: BTreeMap<(String, Subject), String>,
    /// The targets that are not observed now, each with the time from the start of the command to the moment that
    /// began.
    unseen: BTreeMap<(String, Subject), Duration>,
    /// The targets that meet the condition now, each with the time from the start of the command to the moment that
    /// began.
    met: BTreeMap<(String, Subject), Duration>,
    /// The notes about the watches that the last call of [`Output::note`] got, such as a fallback to polling.
    notes: Vec<String>,
    console: Console,
}

/// The form in which `wait` prints: a table redrawn on a terminal, or what `-o` names.
enum WaitForm {
    Screen(Screen),
    /// A table printed at the end.
    Table,
    Lines,
    Jsonl,
    Junit,
}

fn key(row: &Row) -> (String, Subject) {
    (row.judgement.cluster.clone(), row.judgement.subject.clone())
}

impl Output {
    pub(super) fn open(
        asked: Option<WaitOutput>,
        several: bool,
        is_named: bool,
        console: &Console,
    ) -> Result<Output, CommandError> {
        let screen = || {
            Screen::open()
                .map_err(|error| CommandError::unreadable("cannot draw on the terminal").with_source(&error))
        };
        let form = match asked {
            None => screen()?.map_or(WaitForm::Lines, WaitForm::Screen),
            Some(WaitOutput::Table) => screen()?.map_or(WaitForm::Table, WaitForm::Screen),
            Some(WaitOutput::Lines) => WaitForm::Lines,
            Some(WaitOutput::Jsonl) => WaitForm::Jsonl,
            Some(WaitOutput::Junit) => WaitForm::Junit,
        };
        let (told, unseen, met, notes) = Default::default();
        Ok(Output { form, several, is_named, told, unseen, met, notes, console: console.clone() })
    }

    /// Prints notes about the watches as warnings, without those that the last call got too; if frames are drawn, keeps
    /// them for the lines below the table.
    pub(super) fn note(&mut self, notes: Vec<String>) {
        if !matches!(self.form, WaitForm::Screen(_)) {
            let fresh = notes.iter().filter(|note| !self.notes.contains(note));
            fresh.for_each(|note| CommandError::unreadable(note).harmless().print(&self.console));
        }
        self.notes = notes;
    }

    /// As lines or JSON, prints the rows that changed, but those of unobserved targets only after [`UNSEEN`]; on a
    /// terminal redraws the table; else prints nothing. Returns `false` once stdout is closed.
    pub(super) fn show(
        &mut self,
        wait: &Wait,
        changed: &[Row],
        now: Timestamp,
        at: Duration,
        options: Options,
    ) -> Result<bool, CommandError> {
        for row in wait.rows() {
            match row.judgement.verdict {
                WaitState::Met => drop(self.met.entry(key(row)).or_insert(at)),
                _ => drop(self.met.remove(&key(row))),
            }
        }
        if let WaitForm::Screen(screen) = &mut self.form {
            let mut lines = table(wait, self.several, Some((at, options)));
            lines.push(String::new());
            lines.push(progress(wait, at, options));
            lines.extend(self.notes.iter().map(|note| printable(note).to_string()));
            return written(screen.draw(&lines)).map(|()| true);
        }
        let mut fresh: Vec<Row> = Vec::new();
        for row in wait.rows() {
            if row.judgement.verdict == WaitState::Unobserved {
                let since = *self.unseen.entry(key(row)).or_insert(at);
                if at >= since + UNSEEN {
                    fresh.push(row.clone());
                }
            } else {
                self.unseen.remove(&key(row));
            }
        }
        fresh.extend(changed.iter().filter(|row| row.judgement.verdict != WaitState::Unobserved).cloned());
        let placed = has_several_places(wait);
        for row in fresh {
            let line = self.line(wait.until(), &row, placed);
            if self.told.insert(key(&row), line.clone()).as_ref() == Some(&line) {
                continue;
            }
            let result = match &self.form {
                WaitForm::Lines => {
                    let mut out = self.console.people();
                    let time = now.strftime("%H:%M:%S");
                    say!(out, "{} {}", printable(&time.to_string()), Phrase::drawn(&line))
                        .and_then(|()| out.flush())
                }
                WaitForm::Jsonl => {
                    let change = WaitChange::new(&row, now, self.context(&row));
                    let mut out = self.console.programs();
                    json(&mut out, &change).and_then(|()| out.flush())
                }
                WaitForm::Screen(_) | WaitForm::Table | WaitForm::Junit => Ok(()),
            };
            if matches!(&result, Err(error) if error.kind() == io::ErrorKind::BrokenPipe) {
                return Ok(false);
            }
            written(result)?;
        }
        Ok(true)
    }

    fn context<'r>(&self, row: &'r Row) -> Option<&'r str> {
        self.is_named.then_some(&*row.judgement.cluster)
    }

    /// Returns a line such as `dev deployment/web InProgress: why`. It begins with the cluster if there are several;
    /// with `placed` the name has the namespace.
    fn line(&self, until: &Until, row: &Row, placed: bool) -> String {
        let judgement = &row.judgement;
        let cluster = if self.several { format!("{} ", judgement.cluster) } else { String::new() };
        let (word, style) = word(until, row);
        let why = why(row);
        let message = if why.is_empty() { String::new() } else { format!(": {}", printable(&why)) };
        let name = name(&judgement.subject, placed);
        let name = printable(&name);
        format!("{}{name} {style}{word}{style:#}{message}", printable(&cluster))
    }

    /// Prints the result of a run that ended for the reason `end` after `at`, in the selected format.
    pub(super) fn finish(
        self,
        wait: &Wait,
        end: End,
        now: Timestamp,
        at: Duration,
    ) -> Result<(), CommandError> {
        let items = wait.rows().map(|row| WaitChange::new(row, now, self.context(row))).collect();
        let summary = WaitSummary::new(wait.until(), end, at, items, now);
        match self.form {
            WaitForm::Jsonl => return written(json(&mut self.console.programs(), &summary)),
            WaitForm::Junit => {
                let met = |row: &Row| self.met.get(&key(row)).copied().unwrap_or(at);
                let rows = wait.rows().zip(&summary.items).map(|(row, item)| (row, item, met(row)));
                return written(junit::report(&mut self.console.programs(), &summary, rows));
            }
            WaitForm::Screen(_) | WaitForm::Table | WaitForm::Lines => {}
        }
        let is_table = !matches!(self.form, WaitForm::Lines);
        let several = self.several;
        // The terminal is restored before the result is printed.
        drop(self.form);
        let mut out = self.console.people();
        written((|| {
            if is_table {
                for line in table(wait, several, None) {
                    say!(out, "{}", Phrase::drawn(&line))?;
                }
                say!(out)?;
            }
            last_words(&mut out, wait, &summary, end, at, several)?;
            out.flush()
        })())
    }
}

fn json(out: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    out.write_all(&line)
}

/// Returns the word for the state of a target, and its colour: Unknown if it is not observed; if it meets the
/// condition, `Ready` for `current` and `revision`, else `Met`; if not, its status, or `Waiting` or `Failed` in place
/// of Ready.
fn word(until: &Until, row: &Row) -> (&'static str, anstyle::Style) {
    let judgement = &row.judgement;
    match (judgement.verdict, judgement.status) {
        (WaitState::Unobserved, _) | (_, None) => (Status::Unknown.word(), output::style(Status::Unknown)),
        (WaitState::Met, Some(_)) if matches!(until, Until::Current | Until::Revision(_)) => {
            (Status::Current.word(), output::style(Status::Current))
        }
        (WaitState::Met, Some(_)) => ("Met", output::style(Status::Current)),
        // The objects of an app may be ready while its sync is not.
        (WaitState::Hopeless, Some(Status::Current)) => {
            (Status::Failed.word(), output::style(Status::Failed))
        }
        (WaitState::Waiting, Some(Status::Current)) => ("Waiting", output::style(Status::InProgress)),
        (_, Some(status)) => (status.word(), output::style(status)),
    }
}

/// Returns the text that explains the state of a target on one line: reason and message; only the message if that
/// contains the reason, and of a target that met the condition or does not exist.
fn why(row: &Row) -> String {
    let judgement = &row.judgement;
    let message = text::line(&judgement.message);
    let is_said = judgement.reason.is_empty()
        || judgement.verdict == WaitState::Met
        || judgement.status == Some(Status::NotFound)
        || message.contains(&judgement.reason);
    match (is_said, message.is_empty()) {
        (true, _) => message,
        (false, true) => judgement.reason.clone(),
        (false, false) => format!("{}: {message}", judgement.reason),
    }
}

/// Returns true if the targets are in several namespaces.
fn has_several_places(wait: &Wait) -> bool {
    let places = wait.rows().map(|row| row.judgement.subject.namespace());
    let mut places = places.filter(|place| !place.is_empty());
    let first = places.next();
    places.any(|place| Some(place) != first)
}

fn name(subject: &Subject, placed: bool) -> String {
    let namespace = subject.namespace();
    match subject.to_string().split_once('/') {
        Some((kind, name)) if placed && !namespace.is_empty() => format!("{kind}/{namespace}/{name}"),
        _ => subject.to_string(),
    }
}

/// Returns the lines of the table of all targets, in a fixed order, so that redrawing does not move rows. While
/// `going`, the MET cell shows how long of `--stable-for` has passed.
fn table(wait: &Wait, several: bool, going: Option<(Duration, Options)>) -> Vec<String> {
    let placed = has_several_places(wait);
    let mut header = vec!["NAME", "STATUS", "MET", "WHY"];
    if several {
        header.insert(0, "CLUSTER");
    }
    let mut text = Vec::new();
    let mut table = Table::new(&mut text, header, output::screen()).spare(&["MET"]);
    let rows = wait.rows().map(|row| {
        let judgement = &row.judgement;
        let (word, style) = word(wait.until(), row);
        let met = match (judgement.verdict, row.met_since, going) {
            (WaitState::Met, Some(since), Some((at, options))) if at < since + options.stable_for => {
                let (so_far, all) = (at.saturating_sub(since).as_secs(), options.stable_for.as_secs());
                format!("{so_far} of {all} s")
            }
            (WaitState::Met, ..) => "yes".to_owned(),
            (WaitState::Waiting, ..) => "no".to_owned(),
            (WaitState::Hopeless, ..) => "never".to_owned(),
            (WaitState::Unobserved, ..) => "?".to_owned(),
        };
        let mut cells = vec![
            Cell::new(name(&judgement.subject, placed)),
            Cell::styled(word, style),
            Cell::new(met),
            Cell::new(why(row)),
        ];
        if several {
            cells.insert(0, Cell::new(&judgement.cluster));
        }
        cells
    });
    // Writing to memory cannot fail.
    let _ = rows.into_iter().try_for_each(|cells| table.row(cells)).and_then(|()| table.finish());
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}

/// Returns the words for targets that met the condition `until`, such as `ready` or `gone`.
fn phrase(until: &Until) -> String {
    match until {
        Until::Current => "ready".to_owned(),
        Until::Deleted => "gone".to_owned(),
        Until::Exists => "there".to_owned(),
        Until::Failed => "failed".to_owned(),
        Until::Revision(revision) => format!("ready at {revision}"),
        until => format!("with {until}"),
    }
}

fn counted(wait: &Wait) -> (usize, usize) {
    let met = wait.rows().filter(|row| row.judgement.verdict == WaitState::Met).count();
    (met, wait.rows().count())
}

/// Returns the line below the table: the number of targets that met the condition, and the elapsed and remaining
/// time.
fn progress(wait: &Wait, at: Duration, options: Options) -> String {
    let (met, all) = counted(wait);
    let left = options.deadline.saturating_sub(at);
    format!("{met} of {all} {} after {}; {} left", phrase(wait.until()), span(at), span(left))
}

fn span(time: Duration) -> String {
    match time {
        time if time < Duration::from_secs(10) => format!("{:.1} s", time.as_secs_f64()),
        time if time < Duration::from_secs(120) => format!("{} s", time.as_secs()),
        time => text::span(i64::try_from(time.as_secs()).unwrap_or(i64::MAX)),
    }
}

/// Prints the result; for each target that is not met its state, its cause chain and commands that show more.
fn last_words(
    out: &mut impl Write,
    wait: &Wait,
    summary: &WaitSummary,
    end: End,
    at: Duration,
    several: bool,
) -> io::Result<()> {
    let (met, all) = counted(wait);
    let (phrase, took) = (phrase(wait.until()), span(at));
    let (phrase, took) = (printable(&phrase), printable(&took));
    let bold = anstyle::Style::new().bold();
    match end {
        End::Met => {
            return say!(out, "{}{} of {} {} after {}{:#}", bold, met, all, phrase, &took, bold);
        }
        End::Failed => {
            say!(
                out,
                "{}Given up after {}: {} of {} {}, and the rest has failed{:#}",
                bold,
                &took,
                met,
                all,
                phrase,
                bold
            )?;
        }
        End::Deadline { .. } => {
            say!(out, "{}Time is up after {}: {} of {} {}{:#}", bold, &took, met, all, phrase, bold)?
        }
        End::Unobservable => {
            say!(
                out,
                "{}Given up after {}: {} of {} {}, and the rest cannot be read{:#}",
                bold,
                &took,
                met,
                all,
                phrase,
                bold
            )?;
        }
    }
    let placed = has_several_places(wait);
    for (row, item) in wait.rows().zip(&summary.items) {
        let judgement = &row.judgement;
        if judgement.verdict == WaitState::Met {
            continue;
        }
        let cluster = if several { format!("{} ", judgement.cluster) } else { String::new() };
        let (word, _) = word(wait.until(), row);
        let message = match why(row) {
            empty if empty.is_empty() => "nothing is known of it yet".to_owned(),
            why => why,
        };
        let told = format!("{cluster}{} is {word}: {message}", name(&judgement.subject, placed));
        indented(out, "  ", &told)?;
        // The first link of the chain is the target itself.
        for link in item.chain.iter().skip(1) {
            let reason = if link.reason.is_empty() { String::new() } else { format!(" {}", link.reason) };
            let told =
                format!("{}/{}{reason}: {}", link.object.kind.to_lowercase(), link.object.name, link.message);
            indented(out, "    caused by ", &told)?;
        }
        for command in &item.next {
            say!(out, "    {}", printable(&program::typed(command)))?;
        }
    }
    if end == End::Failed {
        say!(out, "--fail-fast=false keeps waiting for failed targets to recover")?;
    }
    Ok(())
}
