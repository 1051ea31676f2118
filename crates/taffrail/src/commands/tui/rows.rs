//! The rows of the views: which they are, how they are found again, and how each is drawn.

use jiff::Timestamp;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};
use taffrail_api::hub::{AppChange, AttentionEntry, PairState};
use taffrail_api::{AppRow, ClusterRow, ObjectActionRow, text};
use taffrail_apps::{Axis, Freshness, FreshnessState, ProblemSeverity, SyncState};
use taffrail_status::Status;

use super::actions::present;
use super::matrix::{Board, MatrixCells};
use super::paint::{Colours, Line, Pen, glyph};
use super::question::ObjectPlace;
use super::words::{age_of, clock, count, grouped, key_name, short_revision, spaced};

/// A row of a view.
#[derive(Debug, Clone)]
pub(super) enum Row {
    /// A heading, which the cursor skips.
    Heading(String),
    Cause(Box<AttentionEntry>),
    Change(Box<AppChange>),
    Lost(Box<ClusterRow>),
    App(Box<AppRow>),
    Cluster(Box<ClusterRow>),
    Cells(MatrixCells),
    Text(Line),
    /// A line that shows an object.
    Object(Box<ObjectPlace>, Line),
    Action(Box<ObjectActionRow>),
}

/// The values, beside its own, on which the look of a row depends.
pub(super) struct Drawing<'d> {
    pub(super) now: Timestamp,
    pub(super) colours: Colours,
    /// True while the hub does not answer: then nothing is known to be so now.
    pub(super) is_away: bool,
    pub(super) widths: &'d [usize],
    pub(super) board: Option<&'d Board>,
    /// The column of the matrix with the cursor.
    pub(super) column: usize,
}

impl Row {
    /// Returns a text that identifies the row while its values change; `None` for a row that only its place identifies.
    pub(super) fn id(&self) -> Option<String> {
        Some(match self {
            Row::Heading(_) | Row::Text(_) => return None,
            Row::Object(object, _) => object.full_name(),
            Row::Action(action) => format!("{}|{}", action.origin, action.name),
            Row::Cause(entry) => {
                let object = entry.object.as_ref().map(ToString::to_string).unwrap_or_default();
                format!("{:?}|{}|{object}|{}", entry.axis, entry.state, entry.message)
            }
            Row::Change(change) => {
                format!("{}|{}|{}|{}", change.at, change.cluster, change.home, change.key)
            }
            Row::Lost(cluster) => format!("lost|{}", cluster.name),
            Row::App(app) => app_id(app),
            Row::Cluster(cluster) => cluster.name.clone(),
            Row::Cells(cells) => cells.key.clone(),
        })
    }

    pub(super) fn is_selectable(&self) -> bool {
        !matches!(self, Row::Heading(_))
    }

    /// Returns the number of lines that the row takes.
    pub(super) fn height(&self) -> usize {
        match self {
            Row::Cause(_) | Row::Lost(_) => 2,
            _ => 1,
        }
    }

    /// Returns true if the row contains `wanted`, which has no capital letters.
    pub(super) fn contains(&self, wanted: &str) -> bool {
        let has = |text: &str| text.to_lowercase().contains(wanted);
        match self {
            Row::Heading(_) => false,
            Row::Cause(entry) => {
                has(&entry.message)
                    || has(&entry.state)
                    || entry.object.as_ref().is_some_and(|object| has(&object.to_string()))
                    || entry.keys.iter().chain(&entry.clusters).any(|text| has(text))
            }
            Row::Change(change) => has(&change.key) || has(&change.cluster) || has(&change.message),
            Row::Lost(cluster) | Row::Cluster(cluster) => has(&cluster.name) || has(&cluster.message),
            Row::App(app) => {
                let problem = app.problem.as_ref().is_some_and(|problem| has(&problem.message));
                problem || has(&app.key) || has(&app.cluster) || has(&app.name) || has(&app.message)
            }
            Row::Cells(cells) => has(&cells.key),
            Row::Action(action) => has(&action.name) || has(&action.display_name),
            Row::Text(line) | Row::Object(_, line) => has(&line.text()),
        }
    }

    pub(super) fn draw(&self, buffer: &mut Buffer, area: Rect, with: &Drawing<'_>) {
        let first = Rect { height: area.height.min(1), ..area };
        let second =
            Rect { y: area.y.saturating_add(1), height: area.height.saturating_sub(1).min(1), ..area };
        let muted = with.colours.muted();
        match self {
            Row::Heading(title) => {
                let strong = Style::new().add_modifier(Modifier::BOLD);
                Pen::new(buffer, first).text(" ", strong).text(title, strong);
            }
            Row::Cause(entry) => {
                let (line, age) = cause(entry, with);
                let mut pen = Pen::new(buffer, shortened(first, age.width()));
                pen.line(&line);
                Pen::new(buffer, first).right(&age);
                Pen::new(buffer, second).text("   ", muted).text(&entry.message, muted);
            }
            Row::Change(change) => {
                Pen::new(buffer, first).line(&change_line(change, with));
            }
            Row::Lost(cluster) => {
                let state = cluster.freshness.state.as_str();
                let line = Line::new()
                    .add(" ◌ ", with.colours.status(Status::Unknown))
                    .add(cluster.name.clone(), Style::new().add_modifier(Modifier::BOLD))
                    .plain(format!(" {state}"))
                    .add(last_known(cluster), muted);
                let age = Line::new().add(age_of(cluster.freshness.observed_at, with.now), muted);
                Pen::new(buffer, shortened(first, age.width())).line(&line);
                Pen::new(buffer, first).right(&age);
                Pen::new(buffer, second).text("   ", muted).text(&cluster.message, muted);
            }
            Row::App(app) => draw_app(app, buffer, first, with),
            Row::Cluster(cluster) => draw_cluster(cluster, buffer, first, with),
            Row::Cells(cells) => {
                if let Some(board) = with.board {
                    let mut pen = Pen::new(buffer, first);
                    board.draw_cells(cells, &mut pen, with.column, (with.colours, with.is_away));
                }
            }
            Row::Action(action) => draw_action(action, buffer, first, with),
            Row::Text(line) | Row::Object(_, line) => {
                Pen::new(buffer, first).line(line);
            }
        }
    }
}

fn shortened(area: Rect, by: usize) -> Rect {
    let by = u16::try_from(by + 1).unwrap_or(u16::MAX);
    Rect { width: area.width.saturating_sub(by), ..area }
}

/// Returns a text that only this app in this cluster has.
fn app_id(app: &AppRow) -> String {
    format!("{}|{}|{}|{}|{}", app.home, app.cluster, app.delivery, app.namespace, app.name)
}

/// Returns the status that stands for the state of a cause.
fn status_of(entry: &AttentionEntry) -> Status {
    let named = Status::ALL.into_iter().find(|status| status.word() == entry.state);
    named.unwrap_or(match entry.severity {
        ProblemSeverity::Error => Status::Failed,
        ProblemSeverity::Waiting => Status::InProgress,
        ProblemSeverity::Notice => Status::Unknown,
    })
}

fn cause(entry: &AttentionEntry, with: &Drawing<'_>) -> (Line, Line) {
    let (muted, strong) = (with.colours.muted(), Style::new().add_modifier(Modifier::BOLD));
    let status = status_of(entry);
    let style = with.colours.status(status);
    let mark = match entry.axis {
        Axis::Sync | Axis::Source | Axis::Check => "≠",
        Axis::Freshness => "◌",
        Axis::Health => glyph(status),
    };
    let line = Line::new().plain(" ").add(mark, style).plain(" ");
    let line = match &entry.object {
        Some(object) => line.add(format!("{} ", object.kind), muted).add(object.name.clone(), strong),
        None => line.add(entry.keys.first().map_or("", |key| key_name(key)), strong),
    };
    let state = match entry.axis {
        Axis::Health => entry.state.clone(),
        axis => format!("{axis:?} {}", spaced(&entry.state)).to_lowercase(),
    };
    let names = entry.clusters.join(", ");
    let more = entry.cluster_count.saturating_sub(entry.clusters.len());
    let more = if more > 0 { format!(", {} more", grouped(more)) } else { String::new() };
    let keys: Vec<&str> = entry.keys.iter().map(|key| key_name(key)).collect();
    let is_named =
        entry.key_count == 1 && entry.object.as_ref().is_some_and(|object| object.name == keys.concat());
    let apps = match (is_named, entry.key_count > entry.keys.len()) {
        (true, _) => String::new(),
        (false, is_cut) => format!(" · {}{}", keys.join(", "), if is_cut { ", …" } else { "" }),
    };
    let line = line
        .add(format!(" {state}"), style)
        .add(format!(" in {}: {names}{more}", count(entry.cluster_count, "cluster")), Style::new())
        .add(apps, muted);
    (line, Line::new().add(age_of(entry.since, with.now), muted))
}

fn words_of(state: Option<&PairState>) -> String {
    match state {
        None => "-".to_owned(),
        Some(state) => {
            let word = state.effective.word();
            match state.problem.as_deref().filter(|_| state.effective == Status::Current) {
                Some(problem) => format!("{word}, {problem}"),
                None => word.to_owned(),
            }
        }
    }
}

fn change_line(change: &AppChange, with: &Drawing<'_>) -> Line {
    let muted = with.colours.muted();
    let after = change.after.as_ref().map(|state| with.colours.status(state.effective)).unwrap_or_default();
    Line::new()
        .add(format!(" {} ", clock(change.at, with.now)), muted)
        .add(change.name.clone(), Style::new().add_modifier(Modifier::BOLD))
        .plain(format!(" in {} ", change.cluster))
        .add(format!("{} → ", words_of(change.before.as_ref())), muted)
        .add(words_of(change.after.as_ref()), after)
        .add(format!("  {}", change.message), muted)
}

/// Returns what was known of a cluster that is not live: `, was 12 Ready, 1 Failed`.
fn last_known(cluster: &ClusterRow) -> String {
    let seen = cluster.freshness.observed_at.is_some();
    match (seen, cluster.apps) {
        (false, _) => ", never seen".to_owned(),
        (true, apps) => format!(", was {} with {}", cluster.health.word(), count(apps, "app")),
    }
}

/// Returns the mark and the word of a status, and their style; of what is not live the last one as past.
fn mark(
    health: Status,
    effective: Status,
    freshness: Freshness,
    with: &Drawing<'_>,
) -> (&'static str, String, Style) {
    let state = match freshness.state {
        FreshnessState::Live if with.is_away => FreshnessState::Stale,
        state => state,
    };
    match state {
        FreshnessState::Live => {
            (glyph(effective), effective.word().to_owned(), with.colours.status(effective))
        }
        state => {
            let was = match freshness.observed_at {
                Some(_) => format!("was {}", health.word()),
                None => "never seen".to_owned(),
            };
            (fresh_mark(state), was, with.colours.status(Status::Unknown))
        }
    }
}

/// Returns the mark of a freshness.
pub(super) fn fresh_mark(state: FreshnessState) -> &'static str {
    match state {
        FreshnessState::Live => "●",
        FreshnessState::Stale => "◔",
        FreshnessState::Lost => "◌",
    }
}

/// Returns the mark and word of an app's status: of a Ready app its other problem.
fn app_mark(app: &AppRow, with: &Drawing<'_>) -> (&'static str, String, Style) {
    let (mark, word, style) = mark(app.health, app.effective, app.freshness, with);
    let word = if app.suspended { format!("{word} ‖") } else { word };
    let is_ready = app.effective == Status::Current && !with.is_away;
    match app.problem.as_ref().filter(|problem| is_ready && problem.is_pressing()) {
        Some(problem) => {
            let status = match problem.severity {
                ProblemSeverity::Error => Status::Failed,
                _ => Status::InProgress,
            };
            ("≠", word, with.colours.status(status))
        }
        None => (mark, word, style),
    }
}

fn sync_words(app: &AppRow, with: &Drawing<'_>) -> (String, Style) {
    let word = spaced(app.sync.effective.as_str());
    if with.is_away {
        return (format!("was {word}"), with.colours.status(Status::Unknown));
    }
    let style = match app.sync.effective {
        SyncState::Synced => with.colours.muted(),
        SyncState::Failed => with.colours.status(Status::Failed),
        SyncState::OutOfSync | SyncState::Syncing | SyncState::Suspended => {
            with.colours.status(Status::InProgress)
        }
        SyncState::Unknown => with.colours.status(Status::Unknown),
    };
    (word, style)
}

/// The titles of the columns of apps, each with the parameter `sort` of the request; the message has the rest.
pub(super) const APP_COLUMNS: [(&str, &str); 7] = [
    ("STATUS", "status"),
    ("APP", "name"),
    ("CLUSTER", "cluster"),
    ("FOR", "since"),
    ("SYNC", ""),
    ("REVISION", ""),
    ("MESSAGE", ""),
];

/// The titles of the columns of clusters, as [`APP_COLUMNS`].
pub(super) const CLUSTER_COLUMNS: [(&str, &str); 6] = [
    ("CLUSTER", "name"),
    ("WORST APP", "status"),
    ("SEEN", ""),
    ("WELL", ""),
    ("VERSION", ""),
    ("MESSAGE", ""),
];

/// The titles of the columns of actions; what an action does has the rest.
pub(super) const ACTION_COLUMNS: [&str; 4] = ["ACTION", "FROM", "PARAMETERS", "DOES"];

/// Returns the namespace of an app as it follows its name in a table; empty if it tells no more than the name.
fn namespace(app: &AppRow) -> String {
    match app.namespace.is_empty() || app.namespace == app.name {
        true => String::new(),
        false => format!(" {}", app.namespace),
    }
}

fn well(cluster: &ClusterRow) -> String {
    format!("{}/{}", grouped(cluster.ready()), grouped(cluster.apps))
}

/// Returns the widths of the columns of these rows in a terminal with so many columns; 0 for one that is left out. The
/// last column has the rest.
pub(super) fn widths<'r>(rows: impl Iterator<Item = &'r Row> + Clone, columns: usize) -> Vec<usize> {
    let widest = |text: &dyn Fn(&Row) -> usize, least: usize, most: usize| {
        rows.clone().map(text).max().unwrap_or(0).clamp(least, most)
    };
    let length = |text: &str| text.chars().count();
    match rows.clone().find(|row| matches!(row, Row::App(_) | Row::Cluster(_) | Row::Action(_))) {
        Some(Row::App(_)) => {
            let most = columns / 4;
            let app = |part: &dyn Fn(&AppRow) -> usize, least, most| {
                widest(&|row| if let Row::App(app) = row { part(app) } else { 0 }, least, most)
            };
            let name = app(&|app| length(&app.name) + length(&namespace(app)), 8, most.max(14));
            let cluster = app(&|app| length(&app.cluster), 7, (columns / 6).max(10));
            let has_room = columns >= 110;
            let revision =
                app(&|app| length(&short_revision(app.sync.applied.as_deref().unwrap_or(""))), 8, 20);
            let sync = if has_room { 11 } else { 0 };
            vec![15, name, cluster, 4, sync, if has_room { revision } else { 0 }]
        }
        Some(Row::Cluster(_)) => {
            let cluster = |part: &dyn Fn(&ClusterRow) -> usize, least, most| {
                widest(&|row| if let Row::Cluster(cluster) = row { part(cluster) } else { 0 }, least, most)
            };
            let name = cluster(&|cluster| length(&cluster.name) + 2, 9, (columns / 3).max(12));
            let version = cluster(&|cluster| length(cluster.version.as_deref().unwrap_or("")), 7, 16);
            let apps = cluster(&|cluster| length(&well(cluster)), 5, 14);
            vec![name, 16, 4, apps, if columns >= 110 { version } else { 0 }]
        }
        Some(Row::Action(_)) => {
            let action = |part: &dyn Fn(&ObjectActionRow) -> usize, least| {
                let most = columns / 4;
                let part = |row: &Row| if let Row::Action(action) = row { part(action) } else { 0 };
                widest(&part, least, most.max(least))
            };
            vec![
                action(&|action| length(&action.name), 6),
                action(&|action| length(&action.origin), 7),
                action(&|action| length(&parameters(action)), 10),
            ]
        }
        _ => Vec::new(),
    }
}

/// Returns the parameters of an action with their values: `replicas=2`.
fn parameters(action: &ObjectActionRow) -> String {
    let each = action.parameters.iter().map(|parameter| format!("{}={}", parameter.name, present(parameter)));
    each.collect::<Vec<_>>().join(" ")
}

fn draw_action(action: &ObjectActionRow, buffer: &mut Buffer, area: Rect, with: &Drawing<'_>) {
    let [name, origin, parameter] = *with.widths else { return };
    let muted = with.colours.muted();
    let strong = if action.disabled { muted } else { Style::new().add_modifier(Modifier::BOLD) };
    let mut pen = Pen::new(buffer, area);
    pen.text(" ", muted).column(&action.name, name, strong).column(&action.origin, origin, muted).column(
        &parameters(action),
        parameter,
        Style::new(),
    );
    pen.text(&action.display_name, muted);
    if action.disabled {
        let gap = if action.display_name.is_empty() { "" } else { ", " };
        pen.text(gap, muted).text("not in its present state", with.colours.status(Status::InProgress));
    }
}

fn draw_app(app: &AppRow, buffer: &mut Buffer, area: Rect, with: &Drawing<'_>) {
    let [status, name, cluster, since, sync, revision] = *with.widths else { return };
    let muted = with.colours.muted();
    let (mark, word, style) = app_mark(app, with);
    let mut pen = Pen::new(buffer, area);
    pen.text(" ", Style::new())
        .column(&format!("{mark} {word}"), status, style)
        .cell(name, |pen| {
            pen.text(&app.name, Style::new().add_modifier(Modifier::BOLD)).text(&namespace(app), muted)
        })
        .column(&app.cluster, cluster, Style::new())
        .column(&format!("{:>since$}", age_of(app.since, with.now)), since, muted);
    if sync > 0 {
        let (word, style) = sync_words(app, with);
        pen.column(&word, sync, style);
    }
    if revision > 0 {
        pen.column(&short_revision(app.sync.applied.as_deref().unwrap_or("-")), revision, muted);
    }
    let message = app.problem.as_ref().map_or(&*app.message, |problem| &*problem.message);
    let is_pressing = app.problem.as_ref().is_some_and(taffrail_apps::Problem::is_pressing);
    pen.text(message, if is_pressing { Style::new() } else { muted });
}

fn draw_cluster(cluster: &ClusterRow, buffer: &mut Buffer, area: Rect, with: &Drawing<'_>) {
    let [name, status, seen, apps, version] = *with.widths else { return };
    let muted = with.colours.muted();
    let state = match cluster.freshness.state {
        FreshnessState::Live if with.is_away => FreshnessState::Stale,
        state => state,
    };
    let (mark, word, style) = mark(cluster.health, cluster.effective, cluster.freshness, with);
    let mark = if state == FreshnessState::Live { mark } else { " " };
    let is_well = cluster.problem.is_none() && state == FreshnessState::Live;
    let seen_at = match state {
        FreshnessState::Live => "now".to_owned(),
        _ => age_of(cluster.freshness.observed_at, with.now),
    };
    let mut pen = Pen::new(buffer, area);
    let fresh = if state == FreshnessState::Live { muted } else { with.colours.status(Status::Unknown) };
    pen.text(" ", Style::new()).text(fresh_mark(state), fresh).text(" ", Style::new());
    pen.column(&cluster.name, name.saturating_sub(2), Style::new().add_modifier(Modifier::BOLD))
        .column(&format!("{mark} {word}"), status, style)
        .column(&format!("{seen_at:>seen$}"), seen, muted)
        .column(&format!("{:>apps$}", well(cluster)), apps, Style::new());
    if version > 0 {
        pen.column(cluster.version.as_deref().unwrap_or(""), version, muted);
    }
    if let Some(worst) = cluster.worst.as_ref().filter(|_| state == FreshnessState::Live) {
        pen.text(&format!("{}: ", worst.name), muted);
    }
    pen.text(&cluster.message, if is_well { muted } else { Style::new() });
}

/// Returns the line of an app's state and revisions below its name.
pub(super) fn app_facts(app: &AppRow, with: &Drawing<'_>) -> Line {
    let muted = with.colours.muted();
    let (mark, word, style) = app_mark(app, with);
    let (sync, sync_style) = sync_words(app, with);
    let line = Line::new().plain(" ").add(format!("{mark} {word}"), style);
    let line = line.add("  sync ", muted).add(sync, sync_style);
    let part = |line: Line, name: &str, revision: Option<&str>| match revision {
        Some(revision) => line.add(format!("  {name} "), muted).plain(short_revision(revision)),
        None => line,
    };
    let line = part(line, "applied", app.sync.applied.as_deref());
    let desired = app.sync.desired.as_deref().filter(|desired| Some(*desired) != app.sync.applied.as_deref());
    let line = part(line, "wanted", desired);
    let line = line.add("  objects ", muted).plain(format!("{}/{}", app.counts.current, app.objects));
    let delivery = text::delivery(app.delivery);
    line.add(format!("  {delivery}"), muted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_not_opened() {
        assert!(!Row::Heading("Problems".to_owned()).is_selectable());
        assert_eq!(Row::Text(Line::new().plain("x")).id(), None);
    }
}
