//! `--watch`: repeats a view, redrawn in place on a terminal, and line by line elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use taffrail_apps::ReadQuery;
use taffrail_cluster::ListStrategy;
use taffrail_observe::{ExtraObjects, FleetSnapshot, FleetWatcher};

use crate::cli::{
    AppArguments, AppOutput, EventsArguments, EventsOutput, ExplainArguments, ExplainOutput, GetArguments,
    ListOutput, TreeArguments, TreeOutput, TrustArguments, TrustOutput, ViewArguments,
};
use crate::command_error::{CommandError, Exit, written};
use crate::output::screen::Screen;
use crate::output::{answer, printable};
use crate::runtime::block_on;
use crate::source::{self, Once, Source};

/// Interval at which ages are redrawn, and at which results are recomputed if the time of their next change is
/// unknown.
const TICK: Duration = Duration::from_secs(1);

/// Minimum pause after an answer, as a multiple of the time that it took, so that drawing takes at most a tenth of
/// the time.
const REST: u32 = 10;

/// The structure of an output, which determines which parts of it are new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Rows, one for each thing: prints new and changed rows, and a note for each row that is gone.
    Rows,
    /// Names, one on each line, printed like rows.
    Names,
    /// Rows, without a note of rows that are gone: events, or rows for programs.
    Lines,
    /// Sections, printed again as a whole.
    Text,
    /// One document, printed again on one line.
    Json,
    /// One document, printed again after a separator line.
    Yaml,
}

/// The source of a view that follows clusters.
#[derive(Default)]
struct Following {
    follow: Option<FleetWatcher>,
    /// True if the current state must not be updated, because two outputs must show the same state.
    held: bool,
    /// True if the view itself compares its answers, and prints only what changed.
    prints_changes: bool,
    /// True if new output follows the old one, instead of replacing it on a screen.
    appends: bool,
    /// True if the output consists of rows of apps only.
    shows_rows: bool,
}

impl Following {
    /// Pauses after an answer that took `took`: for a tick, or in proportion to that time if it is longer. Returns true
    /// when something changed.
    fn rest(&mut self, took: Duration) -> Result<bool, CommandError> {
        let Some(follow) = &mut self.follow else { return Ok(true) };
        let pause = TICK.max(took * REST);
        Ok(block_on(follow.rest(took))? || block_on(follow.next(pause.saturating_sub(took)))?)
    }

    /// Returns true if the rows of apps computed at `looked` are still right, except for ages.
    fn stands(&self, looked: Timestamp) -> bool {
        let stands = |follow: &FleetWatcher| follow.rows_stand(looked, Timestamp::now());
        self.shows_rows && self.follow.as_ref().is_some_and(stands)
    }
}

impl Source for Following {
    fn shows_rows(&mut self) {
        self.shows_rows = true;
    }

    fn prints_changes(&mut self) -> bool {
        self.prints_changes = true;
        self.appends
    }

    fn read(
        &mut self,
        arguments: &ViewArguments,
        asked: &ReadQuery,
        more: ExtraObjects<'_>,
    ) -> Result<&FleetSnapshot, CommandError> {
        if self.follow.is_none() {
            self.follow = Some(start(arguments, asked)?);
        }
        let Some(follow) = &mut self.follow else {
            return Err(CommandError::unreadable("no cluster is being watched"));
        };
        // What changed may want other evidence; without it the answer would be a doubt for a moment.
        if !self.held {
            block_on(follow.settle(more))?;
        }
        Ok(follow.fleet())
    }

    fn followed(
        &mut self,
        arguments: &ViewArguments,
        asked: &ReadQuery,
    ) -> Result<Option<(&mut FleetWatcher, bool)>, CommandError> {
        if self.follow.is_none() {
            self.follow = Some(start(arguments, asked)?);
        }
        let held = self.held;
        Ok(self.follow.as_mut().map(|follow| (follow, held)))
    }
}

fn start(arguments: &ViewArguments, asked: &ReadQuery) -> Result<FleetWatcher, CommandError> {
    source::follow(&arguments.source, arguments.rules(), asked, ListStrategy::Auto)
}

/// Shows a view once, or with `-w` again and again.
pub(crate) fn view(
    arguments: &ViewArguments,
    form: Form,
    run: &mut dyn FnMut(&mut dyn Source) -> Result<Exit, CommandError>,
) -> Result<Exit, CommandError> {
    if !arguments.watch {
        return run(&mut Once::default());
    }
    let mut source = Following::default();
    // What is wrong with the question is wrong with all answers.
    let (exit, first) = frame(&mut source, run)?;
    let screen = match form {
        Form::Rows | Form::Names | Form::Lines | Form::Text => Screen::open()
            .map_err(|error| CommandError::unreadable("cannot use the terminal").with_source(&error))?,
        Form::Json | Form::Yaml => None,
    };
    match screen {
        Some(screen) => redraw(screen, source, first, run),
        None => append(form, source, run).map(|()| exit),
    }
}

/// One output of the view: the text for stdout, and the messages for stderr.
struct Frame {
    text: String,
    told: Vec<String>,
}

fn frame(
    source: &mut Following,
    run: &mut dyn FnMut(&mut dyn Source) -> Result<Exit, CommandError>,
) -> Result<(Exit, Frame), CommandError> {
    answer::keep();
    let exit = run(source);
    let (text, mut told) = answer::kept();
    let notes = source.follow.as_ref().map(FleetWatcher::notes).unwrap_or_default();
    told.extend(notes.into_iter().map(|note| CommandError::unreadable(note).harmless().text().to_string()));
    let text = String::from_utf8_lossy(&text).into_owned();
    exit.map(|exit| (exit, Frame { text, told }))
}

/// Redraws the view in place until the user ends it.
fn redraw(
    mut screen: Screen,
    mut source: Following,
    first: Frame,
    run: &mut dyn FnMut(&mut dyn Source) -> Result<Exit, CommandError>,
) -> Result<Exit, CommandError> {
    let mut shown = first;
    let (mut took, mut looked) = (Duration::ZERO, Timestamp::now());
    loop {
        let Frame { text, told } = &shown;
        let (_, rows) = screen.size();
        let told: Vec<&str> = told.iter().flat_map(|told| told.lines()).collect();
        // What is wrong is seen however long the answer is.
        let room = rows.saturating_sub(if told.is_empty() { 0 } else { told.len() + 1 }).max(1);
        let all = text.lines().count();
        let mut lines: Vec<String> = text.lines().take(room).map(str::to_owned).collect();
        if all > room {
            lines.truncate(room.saturating_sub(1));
            lines.push(format!(
                "… {} more lines; narrow the view, or make the window higher",
                all - lines.len()
            ));
        }
        if !told.is_empty() {
            lines.push(String::new());
            lines.extend(told.into_iter().map(str::to_owned));
        }
        written(screen.draw(&lines))?;
        // Ages go on where nothing else does.
        source.held = !source.rest(took)? && source.stands(looked);
        let begun = Instant::now();
        if !source.held {
            looked = Timestamp::now();
        }
        let drawn = frame(&mut source, run);
        took = begun.elapsed();
        shown = match drawn {
            Ok((_, frame)) => frame,
            // The app that was shown is gone, say: it may come back.
            Err(complaint) => {
                Frame { text: format!("{}\n", printable(&complaint.to_string())), told: Vec::new() }
            }
        };
    }
}

/// Prints the new parts of each output until stdout is closed.
fn append(
    form: Form,
    mut source: Following,
    run: &mut dyn FnMut(&mut dyn Source) -> Result<Exit, CommandError>,
) -> Result<(), CommandError> {
    let mut out = answer::again();
    // Ages move by themselves. Whether anything else did shows when they are told from one moment.
    let moment = Timestamp::now();
    let mut before: Option<String> = None;
    let mut told: Vec<String> = Vec::new();
    source.appends = true;
    loop {
        let (begun, now) = (Instant::now(), Timestamp::now());
        let fresh = match source.prints_changes {
            true => changes(form, &mut before, || judged_at(now, now, &mut source, run)),
            false => compared(form, &mut before, [moment, now], &mut source, run),
        };
        match fresh {
            Ok(None) => {}
            Ok(Some(fresh)) => {
                if written_or_gone(out.write_all(fresh.text.as_bytes()).and_then(|()| out.flush()))? {
                    return Ok(());
                }
                for line in fresh.told.iter().filter(|line| !told.contains(line)) {
                    answer::retell(line);
                }
                told = fresh.told;
            }
            Err(complaint) => {
                let text = complaint.to_string();
                if before.as_ref() != Some(&text) {
                    complaint.print();
                    before = Some(text);
                }
            }
        }
        // Some verdicts are a matter of time.
        let mut took = begun.elapsed();
        while !source.rest(std::mem::take(&mut took))? && source.stands(now) {}
    }
}

/// Returns what a view prints that itself knows what it printed last; `None` if nothing changed. `before` is empty after
/// an answer.
fn changes(
    form: Form,
    before: &mut Option<String>,
    answer: impl FnOnce() -> Result<Frame, CommandError>,
) -> Result<Option<Frame>, CommandError> {
    let Frame { text, told } = answer()?;
    let before = before.replace(String::new());
    if text.is_empty() && before.as_deref() == Some("") {
        return Ok(None);
    }
    let text = match form {
        Form::Json | Form::Yaml => news(form, before.as_deref(), "", &text),
        Form::Rows | Form::Names | Form::Lines | Form::Text => text,
    };
    Ok(Some(Frame { text, told }))
}

/// Returns what is new in the text of an answer as of `now`; `None` if nothing is, ages counted from `moment`.
fn compared(
    form: Form,
    before: &mut Option<String>,
    [moment, now]: [Timestamp; 2],
    source: &mut Following,
    run: &mut dyn FnMut(&mut dyn Source) -> Result<Exit, CommandError>,
) -> Result<Option<Frame>, CommandError> {
    let still = judged_at(now, moment, source, run);
    source.held = true;
    let current = judged_at(now, now, source, run);
    source.held = false;
    let (still, Frame { text, told }) = (without_times(form, still?.text), current?);
    if before.as_ref() == Some(&still) {
        return Ok(None);
    }
    let mut fresh = news(form, before.as_deref(), &still, &text);
    for subject in before.as_deref().map(|before| gone(form, before, &still)).unwrap_or_default() {
        fresh.push_str(&format!("{subject}  Gone\n"));
    }
    *before = Some(still);
    Ok(Some(Frame { text: fresh, told }))
}

/// Returns the answer as of `now`, with ages counted from `aged`.
fn judged_at(
    now: Timestamp,
    aged: Timestamp,
    source: &mut Following,
    run: &mut dyn FnMut(&mut dyn Source) -> Result<Exit, CommandError>,
) -> Result<Frame, CommandError> {
    if let Some(follow) = &mut source.follow {
        follow.judge_at(now, aged);
    }
    frame(source, run).map(|(_, frame)| frame)
}

/// Returns true if stdout was closed.
fn written_or_gone(result: std::io::Result<()>) -> Result<bool, CommandError> {
    let gone = matches!(&result, Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe);
    written(result).map(|()| gone)
}

/// Removes the observation times from JSON, because a newer observation alone is not a change to print.
fn without_times(form: Form, text: String) -> String {
    match form {
        Form::Rows | Form::Names | Form::Lines | Form::Text => text,
        Form::Json | Form::Yaml => {
            let time = |line: &&str| !line.trim_start().trim_start_matches('"').starts_with("observedAt");
            text.lines().filter(time).collect::<Vec<_>>().join("\n")
        }
    }
}

/// Returns the new parts of an answer: ages in `still` and `before` are counted from one moment, those in `text` from
/// now.
fn news(form: Form, before: Option<&str>, still: &str, text: &str) -> String {
    match form {
        // Strings in JSON hold no line breaks.
        Form::Json => text.lines().map(str::trim_start).collect::<String>() + "\n",
        Form::Yaml if before.is_none() => text.to_owned(),
        Form::Yaml => format!("---\n{text}"),
        Form::Text if before.is_none() => text.to_owned(),
        Form::Text => format!("\n{text}"),
        Form::Rows | Form::Names | Form::Lines => {
            let Some(before) = before else { return text.to_owned() };
            let mut known: BTreeMap<String, usize> = BTreeMap::new();
            for line in before.lines() {
                *known.entry(plain(line)).or_default() += 1;
            }
            let mut fresh = String::new();
            // Both have the same rows, for they were made of the same.
            for (still, line) in still.lines().zip(text.lines()) {
                match known.get_mut(&plain(still)) {
                    Some(count) if *count > 0 => *count -= 1,
                    _ => {
                        fresh.push_str(line);
                        fresh.push('\n');
                    }
                }
            }
            fresh
        }
    }
}

/// The title of the column before which a row names its subject.
const STATUS: &str = "STATUS";

/// Returns the subjects (names of rows) that are in the answer `before` and not in `still`.
fn gone(form: Form, before: &str, still: &str) -> Vec<String> {
    let left: BTreeSet<String> = subjects(form, still).iter().map(|subject| plain(subject)).collect();
    let mut told = BTreeSet::new();
    let mut gone = subjects(form, before);
    gone.retain(|subject| !left.contains(&plain(subject)) && told.insert(plain(subject)));
    gone
}

/// Returns the subject of each row of a table or list of names: the text of the columns before STATUS. Empty for
/// other forms.
fn subjects(form: Form, text: &str) -> Vec<String> {
    let text = anstream::adapter::strip_str(text).to_string();
    let mut lines = text.lines();
    let width = match form {
        Form::Names => None,
        Form::Rows => match lines.next().and_then(|header| header.find(STATUS)) {
            Some(width) if width > 0 => Some(width),
            _ => return Vec::new(),
        },
        Form::Lines | Form::Text | Form::Json | Form::Yaml => return Vec::new(),
    };
    let subject = |line: &str| line.chars().take(width.unwrap_or(usize::MAX)).collect::<String>();
    let rows = lines.filter(|line| is_row(line)).map(|line| subject(line).trim_end().to_owned());
    rows.filter(|subject| !subject.is_empty()).collect()
}

/// Returns true for a row; indented lines below it contain cells that do not fit.
fn is_row(line: &str) -> bool {
    !line.starts_with(' ')
}

/// Removes repeated spaces: columns grow and shrink with the cells of other rows.
fn plain(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl From<ListOutput> for Form {
    fn from(output: ListOutput) -> Form {
        match output {
            ListOutput::Table | ListOutput::Wide => Form::Rows,
            ListOutput::Name => Form::Names,
            ListOutput::Json => Form::Json,
            ListOutput::Yaml => Form::Yaml,
        }
    }
}

impl GetArguments {
    /// The shape of its answer.
    pub(crate) fn form(&self) -> Form {
        self.output.into()
    }
}

impl ExplainArguments {
    /// The shape of its answer.
    pub(crate) fn form(&self) -> Form {
        match self.output {
            ExplainOutput::Table => Form::Text,
            ExplainOutput::Json => Form::Json,
            ExplainOutput::Yaml => Form::Yaml,
        }
    }
}

impl AppArguments {
    /// The shape of its answer.
    pub(crate) fn form(&self) -> Form {
        match self.output {
            AppOutput::Table => Form::Text,
            AppOutput::Json => Form::Json,
            AppOutput::Yaml => Form::Yaml,
        }
    }
}

impl TreeArguments {
    /// The shape of its answer.
    pub(crate) fn form(&self) -> Form {
        match self.output {
            TreeOutput::Text | TreeOutput::Dot => Form::Text,
            TreeOutput::Json => Form::Json,
        }
    }
}

impl EventsArguments {
    /// The shape of its answer.
    pub(crate) fn form(&self) -> Form {
        match self.output {
            EventsOutput::Table => Form::Lines,
            EventsOutput::Json => Form::Json,
        }
    }
}

impl TrustArguments {
    /// The shape of its answer.
    pub(crate) fn form(&self) -> Form {
        match self.output {
            TrustOutput::Table | TrustOutput::Wide => Form::Text,
            TrustOutput::Name => Form::Names,
            TrustOutput::Json => Form::Json,
            TrustOutput::Yaml => Form::Yaml,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_said_once() {
        let before = "NAMESPACE  NAME  STATUS   MESSAGE\nshop       web   Ready    3/3\nshop       api   Ready    1/1\n";
        let after = "NAMESPACE  NAME       STATUS      MESSAGE\nshop       api-longer InProgress  0/1\nshop       web        Failed      3/3\n";
        assert_eq!(gone(Form::Rows, before, after), ["shop       api"]);
        assert!(!news(Form::Lines, Some(before), after, after).contains("Gone"));
        assert_eq!(gone(Form::Names, "app/web\napp/api\n", "app/web\n"), ["app/api"]);
        assert_eq!(gone(Form::Rows, after, after), Vec::<String>::new());
        assert_eq!(gone(Form::Rows, before, ""), ["shop       web", "shop       api"]);
        let columns = ["NAME  AGE\nweb   1m\n", "NAME  AGE\nweb   2m\n"];
        assert_eq!(
            gone(Form::Rows, columns[0], columns[1]),
            Vec::<String>::new(),
            "nobody knows what it is about"
        );
    }
}
