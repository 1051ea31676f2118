//! Draws the model into the cells of a terminal.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};
use taffrail_api::hub::AnswerState;
use taffrail_status::Status;

use super::keys::{KEYS, Scope};
use super::model::{Model, Prompt};
use super::operation::Operation;
use super::paint::{Line, Pen};
use super::question::{ObjectPart, Part};
use super::rows::{ACTION_COLUMNS, APP_COLUMNS, CLUSTER_COLUMNS, Drawing, Row, app_facts, widths};
use super::view::{Info, Kind, View, note};
use super::words::{self, clock, count, grouped};

/// The number of lines from which on the rows have an empty line above them.
const ROOMY: u16 = 30;

/// A line above the rows.
enum Head {
    Line(Line),
    /// The main views, and how fresh the fleet is.
    Bar,
    Titles,
    MatrixTitles,
    Tabs(Part),
}

impl Model {
    /// Returns the lines above the rows.
    fn head(&self) -> Vec<Head> {
        let view = self.view();
        let (muted, strong) = (self.colours.muted(), Style::new().add_modifier(Modifier::BOLD));
        let line = |text: String, style: Style| Head::Line(Line::new().plain(" ").add(text, style));
        if let Some(operation) = &self.operation {
            return vec![Head::Bar, line(operation.sentence(), strong), Head::Line(Line::new())];
        }
        let mut head = vec![Head::Bar, line(self.sentence(), strong)];
        if let Some((since, why)) = &self.away {
            let since = clock(*since, self.now());
            let text = format!("No answer from the hub, as of {since}; tries again: {why}");
            head.push(line(text, self.colours.status(Status::Failed)));
        } else if let Some(error) = view.error.as_ref().or_else(|| view.log_error()) {
            head.push(line(error.clone(), self.colours.status(Status::Failed)));
        }
        if let (Some(Row::Cells(cells)), Info::Board(board)) = (view.selected(), &view.info) {
            head.push(line(board.words(cells, view.column), Style::new()));
        }
        if let (Kind::App(_, part), Info::App(row)) = (&view.kind, &view.info) {
            if let Some(row) = row {
                head.push(Head::Line(app_facts(row, &self.drawing(&[]))));
            }
            head.push(Head::Tabs(*part));
        }
        let notes = self.notes();
        if !notes.is_empty() {
            head.push(line(notes.join(" · "), muted));
        }
        if self.size.1 >= ROOMY {
            head.push(Head::Line(Line::new()));
        }
        match (&view.kind, view.shown.is_empty()) {
            (_, true) => {}
            (Kind::Apps { .. } | Kind::Clusters | Kind::Actions(_), _) => head.push(Head::Titles),
            (Kind::Matrix, _) => head.push(Head::MatrixTitles),
            _ => {}
        }
        head
    }

    pub(super) fn first_line_of_rows(&self) -> usize {
        self.head().len()
    }

    pub(super) fn lines_of_rows(&self) -> usize {
        usize::from(self.size.1).saturating_sub(self.first_line_of_rows() + 1)
    }

    fn drawing<'d>(&'d self, widths: &'d [usize]) -> Drawing<'d> {
        let view = self.view();
        Drawing {
            now: self.now(),
            colours: self.colours,
            is_away: self.away.is_some(),
            widths,
            board: match &view.info {
                Info::Board(board) => Some(board),
                _ => None,
            },
            column: view.column,
        }
    }

    /// Returns the sentence that answers the question of the view.
    fn sentence(&self) -> String {
        let view = self.view();
        match (&view.kind, &view.info) {
            (Kind::Attention, Info::Attention(data)) => {
                words::attention(data, self.clusters.as_ref(), self.now())
            }
            (Kind::Attention, _) => "Needs attention".to_owned(),
            (Kind::Apps { .. }, _) => {
                let is_all = view.search.is_empty() && !view.is_unwell && view.kind == Model::every_app();
                match (view.total, &self.counts) {
                    (None, _) => "Apps".to_owned(),
                    (Some(total), Some(counts)) if is_all && total == counts.total => {
                        let problems = grouped(counts.problems);
                        let verb = if counts.problems == 1 { "has a problem" } else { "have problems" };
                        format!("{problems} of {} {verb}.", count(total, "app"))
                    }
                    (Some(total), Some(counts)) => {
                        format!("{} of {}.", grouped(total), count(counts.total, "app"))
                    }
                    (Some(total), None) => format!("{}.", count(total, "app")),
                }
            }
            (Kind::Clusters, _) => match &self.clusters {
                Some(_) if self.away.is_some() => {
                    "The hub is away; no cluster is known to be live.".to_owned()
                }
                Some(counts) => words::clusters(counts),
                None => "Clusters".to_owned(),
            },
            (Kind::Matrix, Info::Board(board)) => board.sentence(),
            (Kind::Matrix, _) => "Matrix".to_owned(),
            (Kind::App(app, _), info) => {
                let name = format!("{} in {}", app.name, app.cluster);
                match info {
                    Info::App(Some(row)) => format!("{name}: {}", words::app(row, self.now())),
                    Info::App(None) => format!("{name}: the app is gone. Its history is kept (h)."),
                    _ => name,
                }
            }
            (Kind::Object(object, part), _) => {
                let of = match part {
                    ObjectPart::Yaml => "",
                    ObjectPart::Logs => "Logs of ",
                    ObjectPart::PreviousLogs => "Logs (previous) of ",
                };
                format!("{of}{} in {}", object.title(), object.cluster)
            }
            (Kind::Actions(object), _) => format!("Actions of {} in {}", object.title(), object.cluster),
        }
    }

    /// Returns the view of all apps.
    pub(super) fn every_app() -> Kind {
        Kind::Apps { filters: Vec::new(), opens_single: false }
    }

    /// Returns what restricts the view, and what it lacks.
    fn notes(&self) -> Vec<String> {
        let view = self.view();
        let mut notes = Vec::new();
        if view.moved > 0 {
            notes.push(format!("{} changed: r shows the present order", grouped(view.moved)));
        }
        match view.chosen().len() {
            0 => {}
            chosen => notes.push(format!("{} chosen (R, S; Esc chooses none)", grouped(chosen))),
        }
        notes.extend(view.log_note());
        if let Kind::Apps { filters, .. } = &view.kind {
            let is_replaced = |name: &str| name == "text" && !view.search.is_empty();
            let each = filters.iter().filter(|(name, _)| !is_replaced(name));
            notes.extend(each.map(|(name, value)| format!("{name} {value}")));
        }
        if !view.search.is_empty() {
            notes.push(format!("search {} (Esc clears)", view.search));
        }
        if view.is_unwell {
            notes.push("problems only (z shows all)".to_owned());
        }
        if let Some(coverage) = &view.coverage {
            let missing: Vec<&str> =
                coverage.missing.iter().take(3).map(|missing| missing.cluster.as_str()).collect();
            let more = (coverage.missing.len() + coverage.missing_omitted).saturating_sub(missing.len());
            let more = if more > 0 { format!(" and {} more", grouped(more)) } else { String::new() };
            let names = format!("{}{more}", missing.join(", "));
            match coverage.state {
                AnswerState::Complete | AnswerState::Stale => {}
                AnswerState::Partial => notes.push(format!("without a part of {names}")),
                AnswerState::Loading => notes.push(format!("still reading {names}")),
            }
        }
        notes
    }

    /// Draws all of the model.
    pub(super) fn draw(&self, buffer: &mut Buffer) {
        let area = *buffer.area();
        buffer.reset();
        let row_of = |y: usize| Rect { y: u16::try_from(y).unwrap_or(u16::MAX), height: 1, ..area };
        let view = self.view();
        let columns = usize::from(area.width);
        let widths = widths(view.rows.iter().take(1000), columns);
        let head = self.head();
        for (y, line) in head.iter().enumerate() {
            match line {
                Head::Bar => self.draw_bar(buffer, row_of(y)),
                Head::Line(line) => {
                    Pen::new(buffer, row_of(y)).line(line);
                }
                Head::Titles => self.draw_titles(buffer, row_of(y), &widths),
                Head::MatrixTitles => {
                    if let Info::Board(board) = &view.info {
                        board.draw_header(buffer, row_of(y), view.column, self.colours);
                    }
                }
                Head::Tabs(part) => self.draw_tabs(buffer, row_of(y), *part),
            }
        }
        let first = head.len();
        let end = usize::from(area.height).saturating_sub(1);
        if let Some(operation) = &self.operation {
            let lines = operation.lines(self.colours);
            for (y, line) in (first..end).zip(lines.iter().skip(operation.top)) {
                Pen::new(buffer, row_of(y)).line(line);
            }
        } else if self.is_help {
            self.draw_help(buffer, first.min(2), end);
        } else {
            self.draw_rows(buffer, first, end, &self.drawing(&widths));
        }
        self.draw_foot(buffer, row_of(end));
    }

    fn draw_rows(&self, buffer: &mut Buffer, first: usize, end: usize, with: &Drawing<'_>) {
        let area = *buffer.area();
        let view = self.view();
        if view.shown.is_empty() {
            let y = u16::try_from(first).unwrap_or(u16::MAX);
            Pen::new(buffer, Rect { y, height: 1, ..area }).line(&note(self.nothing(), self.colours));
            return;
        }
        let mut y = first;
        for place in view.top..view.shown.len() {
            let Some(row) = view.row(place).filter(|_| y < end) else { break };
            let height = row.height().min(end - y);
            let (top, lines) = (u16::try_from(y).unwrap_or(u16::MAX), u16::try_from(height).unwrap_or(1));
            let at = Rect { y: top, height: lines, ..area };
            row.draw(buffer, at, with);
            if view.is_chosen(row) {
                Pen::new(buffer, Rect { width: 1, ..at }).text("▌", self.colours.accent());
            }
            if place == view.cursor && row.is_selectable() {
                let reversed = Style::reset().add_modifier(Modifier::REVERSED);
                let line = Rect { height: 1, ..at };
                match with.board {
                    Some(board) => {
                        for (from, width) in board.spans(usize::from(area.width), view.column) {
                            let cut = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
                            let span =
                                Rect { x: area.x.saturating_add(cut(from)), width: cut(width), ..line };
                            buffer.set_style(span, reversed);
                        }
                    }
                    None => buffer.set_style(line, reversed),
                }
            }
            y += height;
        }
    }

    /// Returns what is told in place of rows.
    fn nothing(&self) -> String {
        let view = self.view();
        let is_narrowed = !view.search.is_empty() || view.is_unwell;
        match (&view.kind, view.number, view.error.is_some()) {
            (_, _, true) => String::new(),
            _ if view.is_waiting && view.rows.is_empty() => "reading …".to_owned(),
            (Kind::App(_, Part::Events), ..) if !is_narrowed => "No events are known.".to_owned(),
            (Kind::App(_, Part::Logs) | Kind::Object(_, ObjectPart::Logs), ..)
                if !is_narrowed && view.log.end.is_none() =>
            {
                "No log lines yet.".to_owned()
            }
            (Kind::App(_, Part::Logs | Part::PreviousLogs) | Kind::Object(..), ..) if !is_narrowed => {
                "No log lines.".to_owned()
            }
            (Kind::Attention, ..) if !is_narrowed => {
                "Nothing needs attention. What changes appears here by itself.".to_owned()
            }
            (Kind::Actions(_), ..) if !is_narrowed => "No actions for this object.".to_owned(),
            (Kind::Clusters, ..) if !is_narrowed => "The hub follows no cluster.".to_owned(),
            (Kind::Apps { .. }, ..) if view.kind != Model::every_app() || is_narrowed => {
                "No app matches these filters.".to_owned()
            }
            (Kind::Apps { .. } | Kind::Matrix, ..) if !is_narrowed => "No app is known.".to_owned(),
            _ => "Nothing matches.".to_owned(),
        }
    }

    fn draw_bar(&self, buffer: &mut Buffer, area: Rect) {
        let (muted, accent) = (self.colours.muted(), self.colours.accent());
        let strong = accent.add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
        let root = self.views.first().map(|view| &view.kind);
        let mut line = Line::new().add(" Taffrail ", Style::new().add_modifier(Modifier::BOLD));
        let is_shown = |kind: &Kind, name: &str| match kind {
            Kind::Attention => name == "Attention",
            Kind::Apps { .. } | Kind::App(..) | Kind::Object(..) | Kind::Actions(_) => name == "Apps",
            Kind::Clusters => name == "Clusters",
            Kind::Matrix => name == "Matrix",
        };
        for name in ["Attention", "Apps", "Clusters", "Matrix"] {
            let style = if root.is_some_and(|kind| is_shown(kind, name)) { strong } else { muted };
            line = line.plain(" ").add(name, style).plain(" ");
        }
        Pen::new(buffer, area).line(&line);
        let fresh = match (&self.clusters, &self.away) {
            (_, Some(_)) => Line::new().add("◌ hub away ", self.colours.status(Status::Failed)),
            (None, None) => Line::new().add("asking the hub … ", muted),
            (Some(clusters), None) => {
                let mut line = Line::new().add(format!("● live {} ", grouped(clusters.live)), muted);
                let bad = self.colours.status(Status::Unknown);
                if clusters.stale > 0 {
                    line = line.add(format!(" ◔ stale {} ", grouped(clusters.stale)), bad);
                }
                if clusters.lost > 0 {
                    line = line.add(format!(" ◌ lost {} ", grouped(clusters.lost)), bad);
                }
                line
            }
        };
        let used = u16::try_from(line.width()).unwrap_or(area.width).min(area.width);
        let rest = Rect { x: area.x + used, width: area.width - used, ..area };
        Pen::new(buffer, rest).right(&fresh);
    }

    fn draw_tabs(&self, buffer: &mut Buffer, area: Rect, part: Part) {
        let strong = self.colours.accent().add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
        let mut line = Line::new();
        for tab in Part::TABS {
            let is_shown = tab.title() == part.title();
            let title = if is_shown && part == Part::PreviousLogs { "Logs (previous)" } else { tab.title() };
            let style = if is_shown { strong } else { Style::new() };
            line = line.add(format!(" {} ", tab.key()), self.colours.muted()).add(title, style).plain(" ");
        }
        Pen::new(buffer, area).line(&line);
    }

    fn draw_titles(&self, buffer: &mut Buffer, area: Rect, widths: &[usize]) {
        let view = self.view();
        let sorted = view.sorts().get(view.sort).map(|(title, _)| *title);
        let titles: Vec<&str> = match view.kind {
            Kind::Clusters => CLUSTER_COLUMNS.iter().map(|(title, _)| *title).collect(),
            Kind::Actions(_) => ACTION_COLUMNS.to_vec(),
            _ => APP_COLUMNS.iter().map(|(title, _)| *title).collect(),
        };
        let muted = self.colours.muted();
        let mut pen = Pen::new(buffer, area);
        pen.text(" ", muted);
        for (title, width) in titles.iter().zip(widths.iter().copied().chain([usize::MAX])) {
            let is_sorted = sorted == Some(title);
            let text =
                if is_sorted && title.len() < width { format!("{title}▾") } else { (*title).to_owned() };
            let style = if is_sorted { muted.add_modifier(Modifier::UNDERLINED) } else { muted };
            match width {
                0 => {}
                usize::MAX => drop(pen.text(&text, style)),
                // Numbers stand at the right.
                4 | 5 => drop(pen.column(&format!("{text:>width$}"), width, style)),
                width => drop(pen.column(&text, width, style)),
            }
        }
    }

    fn draw_help(&self, buffer: &mut Buffer, first: usize, end: usize) {
        let area = *buffer.area();
        let (muted, strong) = (self.colours.muted(), Style::new().add_modifier(Modifier::BOLD));
        let mut columns: [Vec<Line>; 2] = [Vec::new(), Vec::new()];
        for scope in Scope::ALL {
            let lines = &mut columns[usize::from(matches!(scope, Scope::Matrix | Scope::App))];
            lines.push(Line::new().add(format!(" {}", scope.title()), strong));
            for key in KEYS.iter().filter(|key| key.scope == scope) {
                let line = Line::new().add(format!("  {:<7}", key.keys), self.colours.accent());
                lines.push(line.plain(key.what));
            }
        }
        // On a low screen the second column goes on where the first one ends.
        let [left, right] = &mut columns;
        let excess = left.split_off(left.len().min(end.saturating_sub(first)));
        right.splice(0..0, excess);
        let y_of = |place: usize| first + place;
        for place in first..end {
            let y = u16::try_from(place).unwrap_or(u16::MAX);
            Pen::new(buffer, Rect { y, height: 1, ..area }).text(&" ".repeat(usize::from(area.width)), muted);
        }
        let half = area.width / 20 * 11;
        for (column, lines) in columns.iter().enumerate() {
            for (place, line) in lines.iter().enumerate().filter(|(place, _)| y_of(*place) < end) {
                let y = u16::try_from(y_of(place)).unwrap_or(u16::MAX);
                let at = match column {
                    0 => Rect { y, height: 1, width: half, ..area },
                    _ => Rect { x: area.x + half, y, width: area.width - half, height: 1 },
                };
                Pen::new(buffer, at).line(line);
            }
        }
    }

    fn draw_foot(&self, buffer: &mut Buffer, area: Rect) {
        let muted = self.colours.muted();
        let cursor = Style::new().add_modifier(Modifier::REVERSED);
        let mut pen = Pen::new(buffer, area);
        match (&self.prompt, &self.told) {
            (Some(Prompt::Search(text)), _) => {
                pen.text("/", self.colours.accent()).text(text, Style::new()).text(" ", cursor);
            }
            (Some(Prompt::Command(text)), _) => {
                pen.text(":", self.colours.accent()).text(text, Style::new()).text(" ", cursor);
            }
            (Some(Prompt::Parameter(form)), _) => {
                let name = form.title();
                pen.text(" ", muted).text(&name, self.colours.accent()).text(&form.text, Style::new());
                pen.text(" ", cursor).text("  Enter takes it, Esc cancels", muted);
            }
            (None, Some(told)) => {
                pen.text(" ", muted).text(told, Style::new());
            }
            (None, None) if self.operation.is_some() => {
                let keys = self.operation.as_ref().map(Operation::keys).unwrap_or_default();
                pen.text(" ", muted).text(&keys, muted);
            }
            (None, None) if self.is_help => {
                pen.text(" any key closes this table", muted);
            }
            (None, None) => {
                pen.text(&hints(self.view(), self.views.len() > 1), muted);
                let view = self.view();
                let total = view.total.unwrap_or(view.shown.len()).max(view.shown.len());
                let is_list = matches!(view.kind, Kind::Apps { .. } | Kind::Clusters | Kind::Matrix);
                if is_list && view.selected().is_some() {
                    let place = format!("{} of {} ", grouped(view.cursor + 1), grouped(total));
                    pen.right(&Line::new().add(place, muted));
                }
            }
        }
    }
}

/// Returns the keys that are of most use in a view.
fn hints(view: &View, is_below: bool) -> String {
    let own = match &view.kind {
        Kind::App(_, Part::Objects) => "y YAML  . actions  z problems only  / search",
        Kind::App(_, Part::Logs) => "p previous run  G end  / search  r read again",
        Kind::App(_, Part::PreviousLogs) => "l present run  / search  r read again",
        Kind::Object(_, ObjectPart::Yaml) => "l logs  . actions  / search  r read again",
        Kind::Object(_, ObjectPart::Logs) => "y YAML  p previous run  G end  / search  r read again",
        Kind::Object(_, ObjectPart::PreviousLogs) => "y YAML  l present run  / search  r read again",
        Kind::Actions(_) => "Enter plan the action  / search",
        Kind::App(..) => "Tab next part  R reconcile  S suspend  / search",
        Kind::Matrix => "Enter open  n next problem  b group  / search",
        Kind::Attention => "Enter open  / search  z problems only",
        Kind::Apps { .. } | Kind::Clusters => "Enter open  / search  s sort  z problems only",
    };
    let back = if is_below { "  Esc back" } else { "" };
    format!(" {own}{back}  ? keys  q quit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::tui::question::AppPlace;

    #[test]
    fn hints_name_how_to_leave() {
        let app = AppPlace {
            cluster: "eu-1".to_owned(),
            home: None,
            delivery: taffrail_apps::Delivery::Helm,
            namespace: String::new(),
            name: "web".to_owned(),
            key: "helm/web".to_owned(),
        };
        let view = View::new(1, Kind::App(Box::new(app), Part::Why));
        assert!(hints(&view, true).contains("Esc back") && hints(&view, false).contains("q quit"));
    }
}
