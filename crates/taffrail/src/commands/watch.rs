//! `--watch`: shows a view again and again, redrawn in place on a terminal, and elsewhere as added lines.

use std::io::Write;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use taffrail_apps::ReadQuery;
use taffrail_cluster::ListStrategy;
use taffrail_observe::{ExtraObjects, FleetSnapshot, FleetWatcher};

use crate::cli::{
    AppArguments, EventsArguments, EventsOutput, ExplainArguments, GetArguments, ListOutput, TableOutput,
    TreeArguments, TreeOutput, TrustArguments, TrustOutput, ViewArguments,
};
use crate::command_error::{CommandError, Exit, written};
use crate::output::answer::Console;
use crate::output::printable;
use crate::output::screen::Screen;
use crate::runtime::block_on;
use crate::source::{self, HubWatch, Once, Source};

/// Interval at which ages are redrawn, and at which results are recomputed if the time of their next change is
/// unknown.
const TICK: Duration = Duration::from_secs(1);

/// Pause after an answer if nothing changes, as a multiple of the time that the answer took, so that redrawing ages
/// takes at most a tenth of the time. A hub is never asked again sooner.
const REST: u32 = 10;

/// The layout in which a watching command adds an answer to its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Lines, such as the rows of a table, which are added as they are.
    Lines,
    /// Sections of text, which are separated by an empty line.
    Text,
    /// A JSON document on one line.
    Json,
    /// YAML documents, which are separated by the line `---`.
    Yaml,
}

/// The data source of a view with `-w`: a watcher of clusters, or a hub.
#[derive(Default)]
pub(crate) struct Following {
    follow: Option<FleetWatcher>,
    /// The hub that is asked in place of clusters, with `--hub`.
    hub: HubWatch,
    /// True while nothing but ages has changed since the last output, which is only drawn again.
    held: bool,
    shows_rows: bool,
}

impl Following {
    /// Returns true if the last output is only drawn again, with newer ages: the state must not be updated for it.
    pub(crate) fn is_held(&self) -> bool {
        self.held
    }

    /// Returns the watcher of the clusters; the first call starts it with `asked`, which later calls ignore.
    pub(crate) fn watcher(
        &mut self,
        arguments: &ViewArguments,
        asked: &ReadQuery,
    ) -> Result<&mut FleetWatcher, CommandError> {
        let follow = match self.follow.take() {
            Some(follow) => follow,
            None => source::follow(&arguments.source, arguments.rules(), asked, ListStrategy::Auto)?,
        };
        Ok(self.follow.insert(follow))
    }

    /// Pauses after an answer that took `took`: for that long, and then until something changes, together for [`TICK`]
    /// or [`REST`] times `took` at most, whichever is longer. With a hub pauses for [`REST`] times `took`, and then
    /// until the hub tells of a change, for [`TICK`] at most. Returns true if something changed.
    fn rest(&mut self, took: Duration) -> Result<bool, CommandError> {
        let pause = TICK.max(took * REST);
        let Some(follow) = &mut self.follow else { return self.hub.rest(took * REST, TICK) };
        Ok(block_on(follow.rest(took))? || block_on(follow.next(pause.saturating_sub(took)))?)
    }

    /// Returns true if the rows of apps computed at `looked`, or the last answer of a hub, are still right except for
    /// ages. False for views of clusters that show more than rows of apps.
    fn stands(&self, looked: Timestamp) -> bool {
        match &self.follow {
            Some(follow) => self.shows_rows && follow.rows_stand(looked, Timestamp::now()),
            None => self.hub.stands(),
        }
    }
}

impl Source for Following {
    fn shows_rows(&mut self) {
        self.shows_rows = true;
    }

    fn hub(&mut self) -> Option<(&mut HubWatch, bool)> {
        Some((&mut self.hub, self.held))
    }

    fn read(
        &mut self,
        arguments: &ViewArguments,
        asked: &ReadQuery,
        more: ExtraObjects<'_>,
    ) -> Result<&FleetSnapshot, CommandError> {
        let held = self.held;
        let follow = self.watcher(arguments, asked)?;
        // What changed may want other evidence; without it the answer would be a doubt for a moment.
        if !held {
            block_on(follow.settle(more))?;
        }
        Ok(follow.fleet())
    }
}

/// Shows a view once, or with `-w` again and again.
///
/// `run` prints an answer. It receives the answer that was printed last, and prints nothing if the new one is the same.
/// For the first answer, and for each one that is redrawn on a terminal, it receives the default value instead.
pub(crate) fn view<P: Default>(
    arguments: &ViewArguments,
    form: Form,
    console: &Console,
    mut run: impl FnMut(&mut dyn Source, &mut P, &Console) -> Result<Exit, CommandError>,
) -> Result<Exit, CommandError> {
    match arguments.watch {
        true => follow(form, console, |source, printed, console| run(source, printed, console)),
        false => run(&mut Once::new(console), &mut P::default(), console),
    }
}

/// Shows a view again and again, as [`view`] does with `-w`.
pub(crate) fn follow<P: Default>(
    form: Form,
    console: &Console,
    mut run: impl FnMut(&mut Following, &mut P, &Console) -> Result<Exit, CommandError>,
) -> Result<Exit, CommandError> {
    let mut source = Following::default();
    let mut printed = P::default();
    let mut answer = |source: &mut Following, is_whole: bool| {
        if is_whole {
            printed = P::default();
        }
        let memory = Console::memory();
        let exit = run(source, &mut printed, &memory)?;
        let (text, told) = memory.kept();
        Ok((exit, Frame { text, told, problems: memory.noted_problems() }))
    };
    // What is wrong with the question is wrong with all answers.
    let (exit, first) = answer(&mut source, true)?;
    let screen = match form {
        Form::Lines | Form::Text => Screen::open()
            .map_err(|error| CommandError::unreadable("cannot draw on the terminal").with_source(&error))?,
        Form::Json | Form::Yaml => None,
    };
    match screen {
        Some(screen) => redraw(screen, source, first, &mut answer),
        None => append(form, source, first, console, &mut answer).map(|()| exit),
    }
}

/// A function that returns the exit code and the frame of the next answer of a view. If its flag is true the frame is
/// the whole answer, else only what differs from the last one.
type NextFrame<'f> = dyn FnMut(&mut Following, bool) -> Result<(Exit, Frame), CommandError> + 'f;

/// One answer of a view as it is printed: the text for stdout, and the messages for stderr.
struct Frame {
    text: String,
    told: Vec<String>,
    /// For each row of a table: true if it has a problem. Empty for other answers.
    problems: Vec<bool>,
}

impl Frame {
    /// Returns the frame with warnings about the watches, such as a fallback to polling, among its messages.
    fn with_notes(mut self, source: &Following) -> Frame {
        let notes = source.follow.as_ref().map(FleetWatcher::notes).unwrap_or_default();
        let notes = notes.into_iter().map(|note| CommandError::unreadable(note).harmless());
        self.told.extend(notes.map(|note| note.text().to_string()));
        self
    }
}

/// Returns the line that is shown in place of all lines of `text` after the first `shown`: their number, and how many
/// of them are rows with a problem.
fn hidden(text: &str, shown: usize, problems: &[bool]) -> String {
    let more = text.lines().count() - shown;
    // What a wide table prints below a row is indented.
    let rows: Vec<usize> =
        text.lines().enumerate().filter(|(_, line)| !line.starts_with(' ')).map(|(at, _)| at).collect();
    let titles = rows.len().saturating_sub(problems.len());
    let rows = rows.into_iter().skip(titles).zip(problems);
    let with_problems = rows.filter(|(at, has_problem)| *at >= shown && **has_problem).count();
    let with_problems = match (problems.is_empty(), with_problems) {
        (true, _) => String::new(),
        (false, 0) => ", none of them with problems".to_owned(),
        (false, number) => format!(", {number} of them with problems"),
    };
    let lines = if more == 1 { "line" } else { "lines" };
    format!("… {more} more {lines}{with_problems}; narrow the view, or make the window higher")
}

/// Redraws the view in place, until drawing fails or the process is interrupted.
fn redraw(
    mut screen: Screen,
    mut source: Following,
    first: Frame,
    next: &mut NextFrame<'_>,
) -> Result<Exit, CommandError> {
    let mut shown = first.with_notes(&source);
    let (mut took, mut looked) = (Duration::ZERO, Timestamp::now());
    loop {
        let Frame { text, told, problems } = &shown;
        let (_, rows) = screen.size();
        let told: Vec<&str> = told.iter().flat_map(|told| told.lines()).collect();
        // What is wrong is seen however long the answer is.
        let room = rows.saturating_sub(if told.is_empty() { 0 } else { told.len() + 1 }).max(1);
        let all = text.lines().count();
        let mut lines: Vec<String> = text.lines().take(room).map(str::to_owned).collect();
        if all > room {
            lines.truncate(room.saturating_sub(1));
            lines.push(hidden(text, lines.len(), problems));
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
        let drawn = next(&mut source, true);
        took = begun.elapsed();
        shown = match drawn {
            Ok((_, frame)) => frame.with_notes(&source),
            // The app that was shown is gone, say: it may come back.
            Err(complaint) => {
                let text = format!("{}\n", printable(&complaint.to_string()));
                Frame { text, told: Vec::new(), problems: Vec::new() }
            }
        };
    }
}

/// Prints `first`, and then what is new in each answer (after a failure the whole answer), until stdout is closed.
fn append(
    form: Form,
    mut source: Following,
    first: Frame,
    console: &Console,
    next: &mut NextFrame<'_>,
) -> Result<(), CommandError> {
    let mut out = console.again();
    let mut told: Vec<String> = Vec::new();
    // The failure of the last answer, after which the whole answer is printed again.
    let mut failure: Option<String> = None;
    let mut answered: Result<Frame, CommandError> = Ok(first);
    let (mut begun, mut looked) = (Instant::now(), Timestamp::now());
    let mut is_first = true;
    loop {
        match answered {
            Ok(frame) if frame.text.is_empty() && frame.told.is_empty() => failure = None,
            Ok(frame) => {
                let frame = frame.with_notes(&source);
                let text = laid_out(form, is_first, frame.text);
                if written_or_gone(out.write_all(text.as_bytes()).and_then(|()| out.flush()))? {
                    return Ok(());
                }
                for line in frame.told.iter().filter(|line| !told.contains(line)) {
                    console.message(line);
                }
                (told, failure, is_first) = (frame.told, None, false);
            }
            Err(complaint) => {
                let text = complaint.to_string();
                if failure.as_ref() != Some(&text) {
                    complaint.print(console);
                    failure = Some(text);
                }
            }
        }
        // Some verdicts are a matter of time.
        let mut took = begun.elapsed();
        while !source.rest(std::mem::take(&mut took))? && source.stands(looked) {}
        (begun, looked) = (Instant::now(), Timestamp::now());
        answered = next(&mut source, failure.is_some()).map(|(_, frame)| frame);
    }
}

/// Converts the result of writing to stdout: returns true if stdout was closed, an error for another failure.
fn written_or_gone(result: std::io::Result<()>) -> Result<bool, CommandError> {
    let gone = matches!(&result, Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe);
    written(result).map(|()| gone)
}

/// Returns the text of an answer in the layout `form`, with a separator before it unless it `is_first`.
fn laid_out(form: Form, is_first: bool, text: String) -> String {
    match form {
        _ if text.is_empty() => text,
        // Strings in JSON hold no line breaks.
        Form::Json => text.lines().map(str::trim_start).collect::<String>() + "\n",
        Form::Yaml if !is_first => format!("---\n{text}"),
        Form::Text if !is_first => format!("\n{text}"),
        Form::Lines | Form::Text | Form::Yaml => text,
    }
}

impl From<ListOutput> for Form {
    fn from(output: ListOutput) -> Form {
        match output {
            ListOutput::Table | ListOutput::Wide | ListOutput::Name => Form::Lines,
            ListOutput::Json => Form::Json,
            ListOutput::Yaml => Form::Yaml,
        }
    }
}

impl GetArguments {
    /// Returns the layout in which `-w` adds answers to the output.
    pub(crate) fn form(&self) -> Form {
        self.output.into()
    }
}

impl ExplainArguments {
    /// Returns the layout in which `-w` adds answers to the output.
    pub(crate) fn form(&self) -> Form {
        match self.output {
            TableOutput::Table => Form::Text,
            TableOutput::Json => Form::Json,
            TableOutput::Yaml => Form::Yaml,
        }
    }
}

impl AppArguments {
    /// Returns the layout in which `-w` adds answers to the output.
    pub(crate) fn form(&self) -> Form {
        match self.output {
            TableOutput::Table => Form::Text,
            TableOutput::Json => Form::Json,
            TableOutput::Yaml => Form::Yaml,
        }
    }
}

impl TreeArguments {
    /// Returns the layout in which `-w` adds answers to the output.
    pub(crate) fn form(&self) -> Form {
        match self.output {
            TreeOutput::Text | TreeOutput::Dot => Form::Text,
            TreeOutput::Json => Form::Json,
        }
    }
}

impl EventsArguments {
    /// Returns the layout in which `-w` adds answers to the output.
    pub(crate) fn form(&self) -> Form {
        match self.output {
            EventsOutput::Table => Form::Lines,
            EventsOutput::Json => Form::Json,
        }
    }
}

impl TrustArguments {
    /// Returns the layout in which `-w` adds answers to the output.
    pub(crate) fn form(&self) -> Form {
        match self.output {
            TrustOutput::Table | TrustOutput::Wide => Form::Text,
            TrustOutput::Name => Form::Lines,
            TrustOutput::Json => Form::Json,
            TrustOutput::Yaml => Form::Yaml,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::hidden;

    #[test]
    fn hidden_rows_with_problems_are_counted() {
        let problems = [true, false, false, true, true];
        let text = "NAME\na\nb\nc\nd\n  below d\ne\n";
        let told = |shown| hidden(text, shown, &problems);
        assert!(told(4).starts_with("… 3 more lines, 2 of them with problems; narrow"), "{}", told(4));
        assert!(told(6).starts_with("… 1 more line, 1 of them with problems; "), "{}", told(6));
        assert!(hidden(text, 3, &[true, false, false, false, false]).contains("4 more lines, none of them"));
        // Without titles, and of what is not a table.
        assert!(hidden("a\nb\nc\n", 1, &[true, false, true]).contains("2 more lines, 1 of them"));
        assert_eq!(hidden("a\nb\nc\n", 1, &[]), "… 2 more lines; narrow the view, or make the window higher");
    }
}
