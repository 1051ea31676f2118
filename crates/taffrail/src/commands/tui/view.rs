//! One view: what it asks, its rows, and the place of the cursor in them.

use std::collections::{BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};
use taffrail_api::AppRow;
use taffrail_api::hub::{Attention, AttentionEntry, Coverage};
use taffrail_apps::{Axis, ProblemSeverity};
use taffrail_status::Status;

use super::keys::Scope;
use super::log::LogState;
use super::matrix::Board;
use super::paint::{Colours, Line, parse};
use super::question::{Answer, AppPlace, ObjectPart, ObjectPlace, Part, PartAnswer, Question, encoded};
use super::rows::{APP_COLUMNS, CLUSTER_COLUMNS, Row};
use super::words::{count, short_revision};

/// The number of rows that are read at once.
const PAGE: usize = 200;
/// Minimum time between two reads of a view that changes.
const PACE: SignedDuration = SignedDuration::from_secs(1);
/// Minimum time between two reads of a part of an app, for which the hub may have to ask the cluster.
const PART_PACE: SignedDuration = SignedDuration::from_secs(3);
/// The time after which a part of an app is read again although the hub told of no change, and any view whose last
/// question failed.
const REFRESH: SignedDuration = SignedDuration::from_secs(10);

/// Maximum number of lines of a followed log that are kept; older ones are left out.
const MAX_LOG_LINES: usize = 5_000;

/// The subject of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Attention,
    Apps {
        /// The parameters of the request beside those of the search, the sorting and `z`.
        filters: Vec<(String, String)>,
        /// True if the view is replaced by that of the app as soon as it turns out to be the only one.
        opens_single: bool,
    },
    Clusters,
    Matrix,
    App(Box<AppPlace>, Part),
    Object(Box<ObjectPlace>, ObjectPart),
    /// The actions of an object.
    Actions(Box<ObjectPlace>),
}

/// The facts of a view beside its rows.
#[derive(Debug, Clone)]
pub(super) enum Info {
    None,
    Attention(Box<Attention>),
    Board(Box<Board>),
    /// The row of an app; `None` if it is gone.
    App(Option<Box<AppRow>>),
}

/// A page of a list, as it was read last.
#[derive(Debug, Clone)]
struct Page {
    cursor: Option<String>,
    /// The place of its first row.
    from: usize,
}

pub(super) struct View {
    pub(super) id: u64,
    pub(super) kind: Kind,
    pub(super) info: Info,
    pub(super) rows: Vec<Row>,
    /// The places of the rows that the search admits.
    pub(super) shown: Vec<usize>,
    /// The place of the cursor in `shown`.
    pub(super) cursor: usize,
    /// The place in `shown` of the first row on the screen.
    pub(super) top: usize,
    /// The column of the matrix with the cursor.
    pub(super) column: usize,
    pub(super) search: String,
    pub(super) sort: usize,
    pub(super) is_unwell: bool,
    /// The ids of the rows of apps that the user chose.
    chosen: BTreeSet<String>,
    /// True if the columns of the matrix are groups of clusters; `None` if that depends on the room.
    pub(super) is_grouped: Option<bool>,
    pub(super) total: Option<usize>,
    pub(super) coverage: Option<Coverage>,
    pub(super) error: Option<String>,
    /// The number of rows that came, went or moved since the order that is shown.
    pub(super) moved: usize,
    /// True as soon as the user moved the cursor: then rows keep their order.
    is_touched: bool,
    pages: Vec<Page>,
    next: Option<String>,
    /// True if pages are read until the last one.
    wants_end: bool,
    /// The number of the last question, and the state of the fleet and the time when it was asked.
    pub(super) number: u64,
    asked: Option<(Question, u64, Timestamp)>,
    pub(super) is_waiting: bool,
    /// The lower-case text that the shown rows contain.
    pub(super) wanted: String,
    pub(super) log: LogState,
}

impl View {
    pub(super) fn new(id: u64, kind: Kind) -> View {
        View {
            id,
            kind,
            info: Info::None,
            rows: Vec::new(),
            shown: Vec::new(),
            cursor: 0,
            top: 0,
            column: 0,
            search: String::new(),
            sort: 0,
            is_unwell: false,
            chosen: BTreeSet::new(),
            is_grouped: None,
            total: None,
            coverage: None,
            error: None,
            moved: 0,
            is_touched: false,
            pages: Vec::new(),
            next: None,
            wants_end: false,
            number: 0,
            asked: None,
            is_waiting: false,
            wanted: String::new(),
            log: LogState::default(),
        }
    }

    pub(super) fn scope(&self) -> Scope {
        match self.kind {
            Kind::Matrix => Scope::Matrix,
            // Their keys include those for the object that is shown.
            Kind::App(..) | Kind::Object(..) => Scope::App,
            _ => Scope::Rows,
        }
    }

    /// Returns the fields by which the view can be sorted: their titles and their parameters.
    pub(super) fn sorts(&self) -> Vec<(&'static str, &'static str)> {
        let by = |columns: &[(&'static str, &'static str)]| {
            columns.iter().copied().filter(|(_, sort)| !sort.is_empty()).collect()
        };
        match self.kind {
            Kind::Apps { .. } => by(&APP_COLUMNS),
            // The worst first, as apps.
            Kind::Clusters => {
                let mut sorts: Vec<_> = by(&CLUSTER_COLUMNS);
                sorts.reverse();
                sorts
            }
            _ => Vec::new(),
        }
    }

    fn parameters(&self) -> String {
        let mut all: Vec<(&str, &str)> = Vec::new();
        if let Kind::Apps { filters, .. } = &self.kind {
            all.extend(filters.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        }
        let is_searched = !self.search.is_empty();
        all.retain(|(name, _)| !(is_searched && *name == "text"));
        if is_searched {
            all.push(("text", &self.search));
        }
        let is_about_problems = all.iter().any(|(name, _)| *name == "problems" || *name == "status");
        match self.kind {
            Kind::Clusters if self.is_unwell => all.push(("status", "!Ready")),
            Kind::Apps { .. } | Kind::Matrix if self.is_unwell && !is_about_problems => {
                all.push(("problems", ""))
            }
            _ => {}
        }
        if let Some((_, sort)) = self.sorts().get(self.sort) {
            all.push(("sort", sort));
        }
        let limit = if self.kind == Kind::Matrix { 500 } else { PAGE }.to_string();
        all.push(("limit", &limit));
        let each = all.into_iter().map(|(name, value)| match value {
            "" => name.to_owned(),
            value => format!("{name}={}", encoded(value)),
        });
        each.collect::<Vec<_>>().join("&")
    }

    fn question(&self, cursor: Option<String>) -> Question {
        match &self.kind {
            Kind::Attention => Question::Attention,
            Kind::Apps { .. } => Question::Apps(self.parameters(), cursor),
            Kind::Clusters => Question::Clusters(self.parameters()),
            Kind::Matrix => Question::Matrix(self.parameters()),
            Kind::App(app, part) => Question::App(app.clone(), *part, self.is_unwell),
            Kind::Object(object, part) => Question::Object(object.clone(), *part),
            Kind::Actions(object) => Question::Actions(object.clone()),
        }
    }

    /// Returns the question that is due at `now` with this state of the fleet; `None` while there is none.
    pub(super) fn due(&mut self, version: u64, now: Timestamp) -> Option<Question> {
        if self.is_waiting {
            return None;
        }
        let question = self.next_question(version, now)?;
        self.asked = Some((question.clone(), version, now));
        self.is_waiting = true;
        self.number += 1;
        Some(question)
    }

    fn next_question(&self, version: u64, now: Timestamp) -> Option<Question> {
        let whole = self.question(None);
        let is_same = |asked: &Question| match (asked, &whole) {
            (Question::Apps(asked, _), Question::Apps(whole, _)) => asked == whole,
            (asked, whole) => asked == whole,
        };
        let Some((_, at_version, at)) = self.asked.as_ref().filter(|(asked, ..)| is_same(asked)) else {
            return Some(whole);
        };
        let passed = now.duration_since(*at);
        // Pages that are needed come before changes.
        let is_near_end = self.cursor + PAGE / 2 >= self.shown.len() || self.wants_end;
        if let Some(next) = self.next.as_ref().filter(|_| is_near_end && self.error.is_none()) {
            return Some(self.question(Some(next.clone())));
        }
        let is_part = matches!(self.kind, Kind::App(..));
        let pace = if is_part { PART_PACE } else { PACE };
        // The hub tells of changes of apps, not of one object, which its API server is asked for.
        let is_object = matches!(self.kind, Kind::Object(..));
        let is_actions = matches!(self.kind, Kind::Actions(_));
        let has_changed = *at_version != version && passed >= pace && !is_object && !is_actions;
        let is_old = (is_part || is_object || self.error.is_some()) && passed >= REFRESH;
        (has_changed || is_old).then(|| self.question(self.page_on_screen().and_then(|page| page.cursor)))
    }

    /// Returns the page that has the first row on the screen.
    fn page_on_screen(&self) -> Option<Page> {
        let first = self.shown.get(self.top).copied().unwrap_or(0);
        self.pages.iter().rev().find(|page| page.from <= first).cloned()
    }

    /// Asks everything again, and takes the order that is then.
    pub(super) fn restart(&mut self) {
        (self.asked, self.is_touched, self.moved) = (None, false, 0);
        // An answer that is under way is to another question.
        (self.is_waiting, self.wants_end) = (false, false);
        self.number += 1;
    }

    /// Asks once more, because changes may have been missed.
    pub(super) fn ask_again(&mut self) {
        (self.asked, self.error) = (None, None);
    }

    /// Takes the answer to `question`, the last one that was asked.
    pub(super) fn take(&mut self, question: &Question, answer: Result<Answer, String>, colours: Colours) {
        self.is_waiting = false;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.error = Some(error);
                return;
            }
        };
        self.error = None;
        match answer {
            Answer::Attention { attention, lost, changes } => {
                self.coverage = Some(attention.coverage.clone());
                let lost = lost.into_iter().filter(|cluster| !cluster.freshness.is_live());
                let mut rows = Vec::new();
                causes(&mut rows, &attention, "Problems", ProblemSeverity::Error);
                causes(&mut rows, &attention, "Waiting", ProblemSeverity::Waiting);
                section(
                    &mut rows,
                    "Lost clusters",
                    lost.map(|cluster| Row::Lost(Box::new(cluster))).collect(),
                );
                let changes = changes.into_iter().map(|change| Row::Change(Box::new(change))).collect();
                if !self.is_unwell {
                    causes(&mut rows, &attention, "Notices", ProblemSeverity::Notice);
                    section(&mut rows, "Changed lately", changes);
                }
                self.info = Info::Attention(Box::new(attention));
                self.replace(rows);
            }
            Answer::Apps(list) => {
                self.total = Some(list.extent.total);
                self.coverage = Some(list.coverage);
                let rows = list.list.items.into_iter().map(|app| Row::App(Box::new(app))).collect();
                let cursor = match question {
                    Question::Apps(_, cursor) => cursor.clone(),
                    _ => None,
                };
                self.take_page(rows, cursor, list.extent.next);
            }
            Answer::Clusters(list) => {
                self.total = Some(list.extent.total);
                self.coverage = Some(list.coverage);
                let rows = list.list.items.into_iter().map(|cluster| Row::Cluster(Box::new(cluster)));
                self.replace(rows.collect());
            }
            Answer::Matrix(matrix) => {
                self.coverage = Some(matrix.coverage.clone());
                let is_grouped = self.is_grouped.unwrap_or(matrix.columns.len() > 40);
                let (board, cells) = Board::new(&matrix, is_grouped);
                self.column = self.column.min(board.columns().saturating_sub(1));
                self.info = Info::Board(Box::new(board));
                self.replace(cells.into_iter().map(Row::Cells).collect());
            }
            Answer::App(row, part) => {
                self.info = Info::App(row);
                let rows = match part {
                    PartAnswer::Text(text) => parse(&text, colours).into_iter().map(Row::Text).collect(),
                    PartAnswer::Objects(text, objects) => {
                        let mut objects = objects.into_iter();
                        let row = |line| match objects.next().flatten() {
                            Some(object) => Row::Object(Box::new(object), line),
                            None => Row::Text(line),
                        };
                        parse(&text, colours).into_iter().map(row).collect()
                    }
                    PartAnswer::Rows(rows) => by_revision(rows),
                    PartAnswer::Followed => return,
                };
                self.replace(rows);
                if !self.is_touched {
                    self.cursor = self.first_object().unwrap_or(self.cursor);
                }
            }
            Answer::Object(yaml, messages) => {
                // YAML has no colours of Taffrail's, so that a control sequence in it is text.
                let lines = yaml.lines().map(|line| Line::new().plain(line));
                let messages = messages.iter().flat_map(|message| parse(message, colours));
                let rows = lines.chain(messages).map(Row::Text).collect();
                self.replace(rows);
            }
            Answer::ObjectLogs(text) => {
                let rows = parse(&text, colours).into_iter().map(Row::Text).collect();
                self.replace(rows);
            }
            Answer::Followed => {}
            Answer::Actions(list) => {
                let bad = colours.status(Status::Failed);
                let actions = list.items.into_iter().map(|action| Row::Action(Box::new(action)));
                let failures = list.errors.into_iter().map(|error| {
                    Row::Text(
                        Line::new().plain(" ").add(format!("{}: {}", error.cluster, error.message), bad),
                    )
                });
                self.replace(actions.chain(failures).collect());
            }
        }
    }

    /// Returns the place of the first row that shows an object, below titles.
    fn first_object(&self) -> Option<usize> {
        self.shown.iter().position(|row| matches!(self.rows[*row], Row::Object(..)))
    }

    /// Takes rows in place of all; the cursor stays on its row, and at its place on the screen.
    fn replace(&mut self, rows: Vec<Row>) {
        let id = self.selected().and_then(Row::id).filter(|_| self.is_touched);
        let offset = self.cursor.saturating_sub(self.top);
        self.rows = rows;
        self.filter();
        if let Some(id) = id
            && let Some(place) = self.shown.iter().position(|row| self.rows[*row].id().as_ref() == Some(&id))
        {
            self.cursor = place;
            self.top = place.saturating_sub(offset);
        }
        self.clamp();
    }

    /// Takes a page of apps. Values change in place; as long as the user has not moved, the order does, too.
    fn take_page(&mut self, rows: Vec<Row>, cursor: Option<String>, next: Option<String>) {
        let is_first = cursor.is_none();
        let is_alone = self.pages.len() <= 1;
        if self.rows.is_empty() || (is_first && is_alone && !self.is_touched) {
            (self.pages, self.next, self.moved) = (vec![Page { cursor, from: 0 }], next, 0);
            self.replace(rows);
            return;
        }
        let known: HashMap<String, usize> =
            self.rows.iter().enumerate().filter_map(|(place, row)| Some((row.id()?, place))).collect();
        if cursor.is_some() && cursor == self.next {
            self.pages.push(Page { cursor, from: self.rows.len() });
            self.rows
                .extend(rows.into_iter().filter(|row| row.id().is_none_or(|id| !known.contains_key(&id))));
            self.next = next;
            self.filter();
            if self.wants_end {
                self.wants_end = self.next.is_some();
                self.go(usize::MAX, false);
            }
            return;
        }
        let from = self.pages.iter().find(|page| page.cursor == cursor).map_or(0, |page| page.from);
        let end = (from + rows.len()).min(self.rows.len());
        let before: Vec<String> = self.rows[from..end].iter().filter_map(Row::id).collect();
        let now: Vec<String> = rows.iter().filter_map(Row::id).collect();
        self.moved = moved(&before, &now);
        for (row, id) in rows.into_iter().zip(&now) {
            if let Some(place) = known.get(id) {
                self.rows[*place] = row;
            }
        }
        self.filter();
    }

    /// Searches all rows; those of lists are searched by the hub, which sends others.
    pub(super) fn search_for(&mut self, text: &str) {
        text.clone_into(&mut self.search);
        self.restart();
        self.filter();
        if self.is_by_hub() {
            (self.cursor, self.top) = (0, 0);
        }
    }

    fn is_by_hub(&self) -> bool {
        matches!(self.kind, Kind::Apps { .. } | Kind::Clusters | Kind::Matrix)
    }

    /// Finds the rows that the search admits. The hub has already searched those of lists.
    pub(super) fn filter(&mut self) {
        let wanted = if self.is_by_hub() { String::new() } else { self.search.to_lowercase() };
        self.filter_by(&wanted);
    }

    /// Shows only rows that contain `wanted`, which has no capital letters. If that is another search, the cursor stays on
    /// its row, or goes to the next one above; without one to the first.
    pub(super) fn filter_by(&mut self, wanted: &str) {
        let row = self.shown.get(self.cursor).copied().unwrap_or(0);
        self.shown = match wanted {
            "" => (0..self.rows.len()).collect(),
            _ => (0..self.rows.len()).filter(|place| self.rows[*place].contains(wanted)).collect(),
        };
        if self.wanted != wanted {
            wanted.clone_into(&mut self.wanted);
            self.cursor = self.shown.partition_point(|shown| *shown <= row).saturating_sub(1);
        }
        self.clamp();
    }

    pub(super) fn row(&self, place: usize) -> Option<&Row> {
        self.shown.get(place).and_then(|row| self.rows.get(*row))
    }

    /// Returns the rows of apps that the user chose and that are still there, in their order.
    pub(super) fn chosen(&self) -> Vec<&AppRow> {
        let chosen = self.rows.iter().filter(|row| self.is_chosen(row));
        chosen.filter_map(|row| if let Row::App(app) = row { Some(&**app) } else { None }).collect()
    }

    pub(super) fn is_chosen(&self, row: &Row) -> bool {
        !self.chosen.is_empty() && row.id().is_some_and(|id| self.chosen.contains(&id))
    }

    /// Chooses the app of the row with the cursor, or no longer, and goes to the next row.
    pub(super) fn choose_row(&mut self) {
        let Some(id) = self.selected().filter(|row| matches!(row, Row::App(_))).and_then(Row::id) else {
            return;
        };
        if !self.chosen.remove(&id) {
            self.chosen.insert(id);
        }
        self.step(1);
    }

    pub(super) fn choose_none(&mut self) {
        self.chosen.clear();
    }

    /// Begins to show another part of the app or object.
    pub(super) fn begin_part(&mut self) {
        (self.rows, self.shown, self.cursor, self.top) = (Vec::new(), Vec::new(), 0, 0);
        (self.search, self.error) = (String::new(), None);
        self.wanted.clear();
        self.choose_none();
        self.restart();
    }

    pub(super) fn selected(&self) -> Option<&Row> {
        self.row(self.cursor).filter(|row| row.is_selectable())
    }

    fn clamp(&mut self) {
        self.cursor = self.cursor.min(self.shown.len().saturating_sub(1));
        self.top = self.top.min(self.cursor);
        self.skip_headings(true);
    }

    fn skip_headings(&mut self, is_down: bool) {
        let from = self.cursor;
        let is_good = |view: &View, place: usize| view.row(place).is_some_and(Row::is_selectable);
        let down = || (from..self.shown.len()).find(|place| is_good(self, *place));
        let up = || (0..=from).rev().find(|place| is_good(self, *place));
        let found = if is_down { down().or_else(up) } else { up().or_else(down) };
        self.cursor = found.unwrap_or(0);
    }

    /// Moves the cursor by so many rows.
    pub(super) fn step(&mut self, by: isize) {
        self.go(self.cursor.saturating_add_signed(by), by > 0);
    }

    pub(super) fn go(&mut self, place: usize, is_down: bool) {
        self.is_touched = true;
        self.cursor = place.min(self.shown.len().saturating_sub(1));
        self.skip_headings(is_down);
        if self.is_at_end() {
            self.log.new_lines = 0;
        }
    }

    /// Returns true if the cursor is on the last row, or there is none.
    pub(super) fn is_at_end(&self) -> bool {
        self.cursor + 1 >= self.shown.len()
    }

    pub(super) fn go_to_end(&mut self) {
        self.wants_end = self.next.is_some();
        self.go(usize::MAX, false);
    }

    /// Scrolls so that the cursor is on a screen with so many lines for rows.
    pub(super) fn settle(&mut self, lines: usize) {
        let height = |place: usize| self.row(place).map_or(1, Row::height);
        let mut top = self.top.min(self.cursor);
        // The headings above the first row are shown with it.
        if (0..self.cursor).all(|place| self.row(place).is_some_and(|row| !row.is_selectable())) {
            top = 0;
        }
        let mut needed: usize = (top..=self.cursor).map(height).sum();
        while needed > lines.max(1) && top < self.cursor {
            needed -= height(top);
            top += 1;
        }
        // No line stays empty as long as there are rows above.
        let below: usize = (self.cursor + 1..self.shown.len()).map(height).take(lines).sum();
        let mut all = needed + below;
        while top > 0 && all + height(top - 1) <= lines {
            top -= 1;
            all += height(top);
        }
        self.top = top;
    }

    /// Returns the place of the row at this line of the rows on the screen.
    pub(super) fn at_line(&self, line: usize) -> Option<usize> {
        let mut end = 0;
        (self.top..self.shown.len()).find(|place| {
            end += self.row(*place).map_or(1, Row::height);
            end > line
        })
    }
}

impl View {
    /// Removes the lines of the log, which begins again.
    pub(super) fn begin_log(&mut self) {
        (self.rows, self.shown, self.cursor, self.top) = (Vec::new(), Vec::new(), 0, 0);
        self.log = LogState::default();
    }

    /// Adds lines at the end. The cursor stays at the end if it is there, else on its line.
    pub(super) fn add_lines(&mut self, text: &str, colours: Colours) {
        let was_at_end = self.is_at_end();
        self.rows.extend(parse(text, colours).into_iter().map(Row::Text));
        let excess = self.rows.len().saturating_sub(MAX_LOG_LINES);
        let gone = self.shown.iter().take_while(|row| **row < excess).count();
        self.rows.drain(..excess);
        let (kept, cursor) = (self.shown.len() - gone, self.cursor.saturating_sub(gone));
        self.top = self.top.saturating_sub(gone);
        let wanted = self.wanted.clone();
        self.filter_by(&wanted);
        if was_at_end {
            (self.cursor, self.log.new_lines) = (self.shown.len().saturating_sub(1), 0);
        } else {
            self.cursor = cursor;
            self.log.new_lines += self.shown.len().saturating_sub(kept);
        }
    }

    /// Returns the reason why the log of the view is no longer followed.
    pub(super) fn log_error(&self) -> Option<&String> {
        match &self.log.end {
            Some(Err(why)) if self.shows_log() => Some(why),
            _ => None,
        }
    }

    /// Returns the note about the log of the view.
    pub(super) fn log_note(&self) -> Option<String> {
        self.log.note(self.is_at_end()).filter(|_| self.shows_log())
    }

    fn shows_log(&self) -> bool {
        matches!(self.kind, Kind::App(_, Part::Logs) | Kind::Object(_, ObjectPart::Logs))
    }
}

/// Counts the rows that come, go or take another place between two orders. Rows that only shift because others did are
/// not counted: of those in both orders, the longest run that keeps its order stays.
fn moved(before: &[String], now: &[String]) -> usize {
    let places: HashMap<&String, usize> = before.iter().enumerate().map(|(place, id)| (id, place)).collect();
    let kept: Vec<usize> = now.iter().filter_map(|id| places.get(id).copied()).collect();
    // The smallest last place of a rising run of each length.
    let mut ends: Vec<usize> = Vec::new();
    for place in &kept {
        match ends.partition_point(|end| end < place) {
            at if at == ends.len() => ends.push(*place),
            at => ends[at] = *place,
        }
    }
    let (come, gone) = (now.len() - kept.len(), before.len() - kept.len());
    // A page that is full loses a row at its end for each that comes: that is one change, not two.
    come.max(gone) + (kept.len() - ends.len())
}

fn section(rows: &mut Vec<Row>, title: &str, more: Vec<Row>) {
    if !more.is_empty() {
        if !rows.is_empty() {
            rows.push(Row::Heading(String::new()));
        }
        rows.push(Row::Heading(format!("{title} {}", more.len())));
        rows.extend(more);
    }
}

fn causes(rows: &mut Vec<Row>, attention: &Attention, title: &str, severity: ProblemSeverity) {
    let is_meant = |entry: &&AttentionEntry| {
        // Lost clusters have a section of their own.
        entry.severity == severity && (entry.axis != Axis::Freshness || severity == ProblemSeverity::Notice)
    };
    let entries = attention.items.iter().filter(is_meant).map(|entry| Row::Cause(Box::new(entry.clone())));
    section(rows, title, entries.collect());
}

/// Returns the filters that come nearest to a cause: the API has none for a cause itself.
pub(super) fn filters_of(entry: &AttentionEntry) -> Vec<(String, String)> {
    let mut filters = vec![("problems".to_owned(), format!("{:?}", entry.axis).to_lowercase())];
    let is_everywhere = entry.cluster_count > entry.clusters.len();
    match entry.keys.as_slice() {
        [key] if entry.key_count == 1 => filters.push(("text".to_owned(), key.clone())),
        _ if is_everywhere => filters.push(("text".to_owned(), entry.message.clone())),
        _ => {}
    }
    if !is_everywhere {
        filters.extend(entry.clusters.iter().map(|cluster| ("cluster".to_owned(), cluster.clone())));
    }
    filters
}

/// Returns the apps in sections by the revision that runs, that of most clusters first.
fn by_revision(apps: Vec<AppRow>) -> Vec<Row> {
    let mut groups: Vec<(String, Vec<Row>)> = Vec::new();
    for app in apps {
        let revision = app.sync.applied.clone().unwrap_or_default();
        let row = Row::App(Box::new(app));
        match groups.iter_mut().find(|(known, _)| *known == revision) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((revision, vec![row])),
        }
    }
    groups.sort_by_key(|(_, rows)| std::cmp::Reverse(rows.len()));
    let mut rows = Vec::new();
    for (revision, apps) in groups {
        let revision = match revision.as_str() {
            "" => "revision not known".to_owned(),
            revision => format!("revision {}", short_revision(revision)),
        };
        if !rows.is_empty() {
            rows.push(Row::Heading(String::new()));
        }
        rows.push(Row::Heading(format!("{revision} in {}", count(apps.len(), "cluster"))));
        rows.extend(apps);
    }
    rows
}

/// Returns a line that is shown in place of rows.
pub(super) fn note(text: impl Into<String>, colours: Colours) -> Line {
    Line::new().plain(" ").add(text, colours.muted())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(count: usize) -> Vec<Row> {
        (0..count).map(|number| Row::Text(Line::new().plain(format!("line {number}")))).collect()
    }

    #[test]
    fn the_cursor_is_always_on_the_screen() {
        let mut view = View::new(1, Kind::Attention);
        view.rows = text(100);
        view.filter();
        view.go(50, true);
        view.settle(10);
        assert_eq!((view.top, view.cursor), (41, 50));
        view.go(45, false);
        view.settle(10);
        assert_eq!(view.top, 41);
        view.go_to_end();
        view.settle(10);
        assert_eq!((view.top, view.cursor), (90, 99));
        view.settle(30);
        assert_eq!(view.top, 70, "no line stays empty");
        view.filter_by("line 7");
        assert_eq!((view.shown.len(), view.cursor), (11, 10));
        view.filter_by("no such line");
        view.settle(10);
        assert_eq!((view.cursor, view.selected().is_none()), (0, true));
    }

    #[test]
    fn a_search_keeps_the_cursor_on_its_row_or_goes_to_the_one_above() {
        let mut view = View::new(1, Kind::Attention);
        view.rows = text(30);
        view.rows[0] = Row::Heading("Problems".to_owned());
        let cursor_after = |view: &mut View, wanted: &str| {
            view.filter_by(wanted);
            view.shown.get(view.cursor).copied()
        };
        view.filter();
        assert_eq!(view.cursor, 1);
        assert_eq!(cursor_after(&mut view, "line 2"), Some(2), "the first one that is found");
        view.go(5, true);
        assert_eq!(cursor_after(&mut view, "line"), Some(24), "its row");
        assert_eq!(cursor_after(&mut view, "line 1"), Some(19), "the next one above");
        assert_eq!(cursor_after(&mut view, ""), Some(19));
    }

    #[test]
    fn rows_that_came_went_or_moved_are_counted() {
        let ids = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        assert_eq!(moved(&ids("abc"), &ids("abc")), 0);
        assert_eq!(moved(&ids("abc"), &ids("abcd")), 1);
        assert_eq!(moved(&ids("abc"), &ids("acb")), 1);
        assert_eq!(moved(&ids("abc"), &ids("xyz")), 3);
    }
}
