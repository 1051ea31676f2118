//! Prints statuses in the selected output format.

use std::io::{self, IsTerminal, Write};

use taffrail_api::ErrorRow;
use taffrail_object::ObjectKey;

use super::arguments::{StatusArguments, StatusOutput};
use super::judge::{Answers, Judged, Miss, Row};
use crate::command_error::{CommandError, Exit, written};
use crate::commands::changes::Printed;
use crate::commands::get::NOTHING_KNOWN;
use crate::commands::rows::STATUS;
use crate::output::answer::Console;
use crate::output::names::NameWriter;
use crate::output::style;
use crate::output::table::{Cell, Table};
use crate::{phrase, reasons};

/// API version and kind of the document for `--augment`: a list as kubectl prints it.
const AUGMENTED: &str = "v1 List";

/// Maximum number of objects that could not be read or judged that are printed one by one; the others are counted.
const MAX_MISSES: usize = 20;

/// A writer to stdout or to the pager.
type Out = Box<dyn Write>;

/// Writes statuses as they arrive, prints errors, and keeps the exit code.
pub(super) struct Printer {
    form: PrintForm,
    exit: Exit,
    all_current: bool,
    /// True once stdout is closed.
    closed: bool,
    misses: usize,
    /// The scopes that could not be read, for JSON and YAML.
    errors: Vec<ErrorRow>,
    console: Console,
}

/// The form in which `status` prints rows: a table, names, lines of JSON, or the items of one document.
enum PrintForm {
    /// The table; true for `-o wide`; and true if it has a CLUSTER column.
    Table(Box<Table<Out>>, bool, bool),
    /// The names, and true if they begin with the cluster.
    Names(NameWriter, bool),
    Lines(Out),
    Items(Out, ItemStyle, usize),
}

/// The form of a list of objects, with the kind of the list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemStyle {
    Json { kind: &'static str },
    Yaml { kind: &'static str },
}

impl Printer {
    pub(super) fn new(arguments: &StatusArguments, several: bool, console: &Console) -> Printer {
        let kind = match arguments.why {
            _ if arguments.augment => AUGMENTED,
            Some(_) => "cli.taffrail.dev/v1alpha1 RulingList",
            None => "cli.taffrail.dev/v1alpha1 StatusList",
        };
        let raw = || Box::new(console.programs()) as Out;
        let form = match arguments.output {
            StatusOutput::Table | StatusOutput::Wide => {
                let wide = arguments.output == StatusOutput::Wide;
                let out: Out = Box::new(console.people());
                let table = Table::new(out, columns(wide, several), crate::output::screen());
                let table = table.spare(&["RULE", "REASON", "APIVERSION"]).whole(wide);
                PrintForm::Table(Box::new(table), wide, several)
            }
            StatusOutput::Name => PrintForm::Names(NameWriter::new(console), several),
            StatusOutput::Jsonl => PrintForm::Lines(raw()),
            StatusOutput::Json => PrintForm::Items(raw(), ItemStyle::Json { kind }, 0),
            StatusOutput::Yaml => PrintForm::Items(raw(), ItemStyle::Yaml { kind }, 0),
        };
        Printer {
            form,
            exit: Exit::Yes,
            all_current: true,
            closed: false,
            misses: 0,
            errors: Vec::new(),
            console: console.clone(),
        }
    }

    /// Prints an error or a warning, and takes its exit code into account. After an error not everything is ready.
    pub(super) fn complain(&mut self, complaint: CommandError) {
        self.exit = self.exit.max(complaint.exit);
        self.all_current &= complaint.exit == Exit::Yes;
        complaint.print(&self.console);
    }

    /// Prints the warning that there is no such namespace, and notes that not everything is ready.
    pub(super) fn lacks_namespace(&mut self, warning: CommandError) {
        self.all_current = false;
        self.complain(warning);
    }

    /// Prints the error `message` about a cluster, with the hint for `reason`, and adds it with `scope` to JSON and
    /// YAML output, there with the reason NotFound if `reason` is empty.
    pub(super) fn unread(&mut self, cluster: &str, scope: impl ToString, reason: &str, message: &str) {
        self.complain_of(cluster, reason, message);
        self.note(cluster, scope, reason, message);
    }

    /// Does the same as [`Printer::unread`] for a cluster that was never observed; the printed error also says what
    /// that means.
    pub(super) fn unobserved(&mut self, cluster: &str, scope: impl ToString, reason: &str, message: &str) {
        self.complain_of(cluster, reason, &format!("{message}; {NOTHING_KNOWN}"));
        self.note(cluster, scope, reason, message);
    }

    fn complain_of(&mut self, cluster: &str, reason: &str, message: &str) {
        let complaint = CommandError::unreadable(format!("{cluster}: {message}"));
        self.complain(complaint.maybe_hint(reasons::hint(reason).map(str::to_owned)));
    }

    fn note(&mut self, cluster: &str, scope: impl ToString, reason: &str, message: &str) {
        self.errors.push(ErrorRow {
            cluster: cluster.to_owned(),
            scope: scope.to_string(),
            reason: if reason.is_empty() { "NotFound" } else { reason }.to_owned(),
            message: message.to_owned(),
        });
    }

    /// Writes the statuses of one chunk, and prints what could not be read or judged. Returns `false` once stdout is
    /// closed.
    pub(super) fn print(&mut self, answers: Answers) -> Result<bool, CommandError> {
        self.tell(&answers);
        let result = self.form.write(&answers);
        self.check(result)?;
        Ok(!self.closed)
    }

    /// Writes those of `rows` that differ from `printed`, the ones printed last, and that rows are gone; documents are
    /// written as a whole.
    pub(super) fn print_changed(
        &mut self,
        rows: &[Judged],
        printed: &mut Printed<Judged>,
    ) -> Result<(), CommandError> {
        rows.iter().for_each(|row| self.tell(&row.answers));
        let result = self.form.write_changed(rows, printed, &self.console);
        self.check(result)
    }

    /// Prints the objects that could not be read or judged, the first [`MAX_MISSES`] of all, unless lines of JSON
    /// contain them, and takes them into account in the exit code.
    fn tell(&mut self, answers: &Answers) {
        self.all_current &= answers.all_current;
        if !answers.misses.is_empty() {
            self.exit = self.exit.max(Exit::Incomplete);
        }
        // JSON lines contain the misses.
        let told = answers.told && matches!(self.form, PrintForm::Lines(_));
        if !told {
            for miss in &answers.misses {
                self.miss(&answers.source, miss);
            }
        }
    }

    fn check(&mut self, result: io::Result<()>) -> Result<(), CommandError> {
        self.closed |= result.is_err();
        written(result)
    }

    fn miss(&mut self, source: &str, miss: &Miss) {
        self.misses += 1;
        if self.misses <= MAX_MISSES {
            let place = if miss.line == 0 { source.to_owned() } else { format!("{source}:{}", miss.line) };
            CommandError::unreadable(format!("{place}: {}", miss.text)).print(&self.console);
        }
    }

    pub(super) fn finish(mut self, exit_status: bool) -> Result<Exit, CommandError> {
        if self.misses > MAX_MISSES {
            CommandError::unreadable(format!(
                "… and {} more objects could not be read or judged",
                self.misses - MAX_MISSES
            ))
            .print(&self.console);
        }
        let empty = match &self.form {
            PrintForm::Table(table, ..) => table.is_empty(),
            _ => false,
        };
        if empty && self.exit == Exit::Yes && io::stdin().is_terminal() {
            // As kubectl: silence on an empty answer would look like a failure.
            self.console.tell(phrase!("No objects found.\n"));
        }
        if !self.closed {
            written(self.form.finish(&self.errors))?;
        }
        if exit_status && !self.all_current {
            self.exit = self.exit.max(Exit::No);
        }
        Ok(self.exit)
    }
}

impl PrintForm {
    fn write_changed(
        &mut self,
        rows: &[Judged],
        printed: &mut Printed<Judged>,
        console: &Console,
    ) -> io::Result<()> {
        match self {
            PrintForm::Table(table, wide, several) => {
                let columns = columns(*wide, *several);
                let cells = |row: &Judged| -> Vec<Cell> {
                    row.answers.rows.iter().flat_map(|row| cells(row, *wide, *several)).collect()
                };
                let is_known = printed.columns == columns;
                if is_known || rows.is_empty() {
                    table.hide_header();
                }
                printed.fill(table, rows, is_known, cells)?;
                let subject = columns.iter().position(|column| *column == STATUS).unwrap_or_default();
                for gone in printed.removed(rows, &[]) {
                    let before = cells(gone.old).into_iter().take(subject);
                    table.row(before.chain([Cell::new("Gone")]).collect())?;
                }
                printed.columns = if rows.is_empty() { Vec::new() } else { columns };
                Ok(())
            }
            PrintForm::Names(_, several) => printed.names(rows, &[], *several, console),
            PrintForm::Lines(out) => printed
                .changed(rows, |row| row.answers.lines.clone())
                .try_for_each(|line| out.write_all(&line)),
            PrintForm::Items(..) => rows.iter().try_for_each(|row| self.write(&row.answers)),
        }
    }

    fn write(&mut self, answers: &Answers) -> io::Result<()> {
        match self {
            PrintForm::Table(table, wide, several) => {
                answers.rows.iter().try_for_each(|row| table.row(cells(row, *wide, *several)))
            }
            PrintForm::Names(out, several) => answers.rows.iter().try_for_each(|row| {
                let key = ObjectKey::new(&*row.group, &*row.kind, &*row.namespace, &*row.name);
                out.write(&if *several { format!("{}/{key}", row.cluster) } else { key.to_string() })
            }),
            PrintForm::Lines(out) => out.write_all(&answers.lines),
            PrintForm::Items(out, style, count) => {
                for line in answers.lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
                    style.item(out, *count, line)?;
                    *count += 1;
                }
                Ok(())
            }
        }
    }

    fn finish(self, errors: &[ErrorRow]) -> io::Result<()> {
        match self {
            PrintForm::Table(table, ..) => table.finish(),
            PrintForm::Names(mut out, _) => out.finish(),
            PrintForm::Lines(mut out) => out.flush(),
            PrintForm::Items(mut out, style, count) => {
                style.end(&mut out, count, errors)?;
                out.flush()
            }
        }
    }
}

impl ItemStyle {
    fn start(self, out: &mut Out) -> io::Result<()> {
        match self {
            ItemStyle::Json { kind } => {
                let (version, kind) = kind.split_once(' ').unwrap_or(("", kind));
                write!(out, "{{\n  \"apiVersion\": \"{version}\",\n  \"kind\": \"{kind}\",\n  \"items\": [")
            }
            ItemStyle::Yaml { kind } => {
                let (version, kind) = kind.split_once(' ').unwrap_or(("", kind));
                write!(out, "apiVersion: {version}\nkind: {kind}\nitems:")
            }
        }
    }

    /// Writes the item number `count` (from 0) of a JSON or YAML document, given as one line of JSON.
    fn item(self, out: &mut Out, count: usize, line: &[u8]) -> io::Result<()> {
        if count == 0 {
            self.start(out)?;
        }
        // Our own JSON is read back for its layout only; should that fail it is written as it is.
        let tree: Option<serde_json::Value> = serde_json::from_slice(line).ok();
        let text = String::from_utf8_lossy(line);
        match self {
            ItemStyle::Json { .. } => {
                let pretty = tree.and_then(|tree| serde_json::to_string_pretty(&tree).ok());
                let text = pretty.as_deref().unwrap_or(&text);
                let comma = if count == 0 { "" } else { "," };
                write!(out, "{comma}\n    {}", text.replace('\n', "\n    "))
            }
            ItemStyle::Yaml { .. } => {
                let yaml = tree.and_then(|tree| serde_saphyr::to_string(&tree).ok());
                let text = yaml.as_deref().unwrap_or(&text).trim_end();
                write!(out, "\n- {}", text.replace('\n', "\n  "))
            }
        }
    }

    fn end(self, out: &mut Out, count: usize, errors: &[ErrorRow]) -> io::Result<()> {
        if count == 0 {
            self.start(out)?;
        }
        match self {
            ItemStyle::Json { kind } => {
                let end = if count == 0 { "]" } else { "\n  ]" };
                let errors = serde_json::to_string_pretty(errors)?.replace('\n', "\n  ");
                let errors =
                    if kind == AUGMENTED { String::new() } else { format!(",\n  \"errors\": {errors}") };
                writeln!(out, "{end}{errors}\n}}")
            }
            ItemStyle::Yaml { kind } => {
                writeln!(out, "{}", if count == 0 { " []" } else { "" })?;
                match errors {
                    _ if kind == AUGMENTED => Ok(()),
                    [] => writeln!(out, "errors: []"),
                    _ => {
                        let errors = serde_saphyr::to_string(&errors).map_err(io::Error::other)?;
                        write!(out, "errors:\n{errors}")
                    }
                }
            }
        }
    }
}

fn columns(wide: bool, several: bool) -> Vec<&'static str> {
    let columns: &[&str] = match wide {
        true => &["NAMESPACE", "APIVERSION", "KIND", "NAME", STATUS, "REASON", "RULE", "MESSAGE"],
        false => &["NAMESPACE", "KIND", "NAME", STATUS, "MESSAGE"],
    };
    several.then_some("CLUSTER").into_iter().chain(columns.iter().copied()).collect()
}

fn cells(row: &Row, wide: bool, several: bool) -> Vec<Cell> {
    let cluster = several.then(|| Cell::new(&row.cluster));
    cluster.into_iter().chain(own_cells(row, wide)).collect()
}

fn own_cells(row: &Row, wide: bool) -> Vec<Cell> {
    let word = row.verdict.status.word();
    let word = if row.verdict.suspended { format!("{word} (suspended)") } else { word.to_owned() };
    let status = Cell::styled(word, style(row.verdict.status));
    if !wide {
        return vec![
            Cell::new(&row.namespace),
            Cell::new(&row.kind),
            Cell::new(&row.name),
            status,
            Cell::new(&row.verdict.message),
        ];
    }
    let slash = if row.group.is_empty() { "" } else { "/" };
    let reason = row.verdict.conditions.first().map(|condition| &*condition.reason).unwrap_or_default();
    vec![
        Cell::new(&row.namespace),
        Cell::new(format!("{}{slash}{}", row.group, row.version)),
        Cell::new(&row.kind),
        Cell::new(&row.name),
        status,
        Cell::new(reason),
        Cell::new(&row.verdict.rule),
        Cell::new(&row.verdict.message),
    ]
}
