//! The matrix: apps by clusters, or by groups of clusters.

use std::collections::HashMap;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};
use taffrail_api::hub::{Matrix, MatrixLegend};
use taffrail_apps::FreshnessState;
use taffrail_status::Status;

use super::paint::{Colours, Pen, glyph};
use super::words::{count, grouped, key_name};

/// Minimum width of a cell with the space after it.
const CELL: usize = 4;
const MAX_CELL: usize = 12;

/// A row of the matrix.
#[derive(Debug, Clone)]
pub(super) struct MatrixCells {
    pub(super) key: String,
    /// For each cluster the place of the meaning in the legend; `None` without the app.
    codes: Vec<Option<usize>>,
}

/// The columns of the matrix, and the meaning of its cells.
#[derive(Debug, Clone)]
pub(super) struct Board {
    legend: Vec<MatrixLegend>,
    clusters: Vec<(String, FreshnessState)>,
    /// The columns: the name of each, with the places of its clusters.
    groups: Vec<(String, Vec<usize>)>,
    pub(super) is_grouped: bool,
    pairs: usize,
    problems: usize,
    rows: usize,
    omitted: usize,
    /// The width of the longest name of an app.
    name: usize,
}

/// The clusters of a cell, by status.
struct Cell {
    worst: Option<Status>,
    problems: usize,
    is_past: bool,
    members: usize,
}

/// Returns the name of the group of a cluster: its name without the number at the end.
fn group_of(cluster: &str) -> &str {
    let name = cluster.trim_end_matches(|character: char| character.is_ascii_digit());
    let name = name.trim_end_matches(['-', '_', '.']);
    if name.is_empty() { cluster } else { name }
}

impl Board {
    /// Makes the board and its rows of the answer `matrix`, whose columns are groups if `is_grouped`.
    pub(super) fn new(matrix: &Matrix, is_grouped: bool) -> (Board, Vec<MatrixCells>) {
        let mut order: Vec<usize> = (0..matrix.columns.len()).collect();
        order.sort_by(|a, b| matrix.columns[*a].cluster.cmp(&matrix.columns[*b].cluster));
        let clusters: Vec<_> = order
            .iter()
            .map(|place| (matrix.columns[*place].cluster.clone(), matrix.columns[*place].freshness))
            .collect();
        let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
        for (place, (name, _)) in clusters.iter().enumerate() {
            let name = if is_grouped { group_of(name) } else { name };
            match groups.iter_mut().find(|(known, _)| is_grouped && known == name) {
                Some((_, places)) => places.push(place),
                None => groups.push((name.to_owned(), vec![place])),
            }
        }
        let meanings: HashMap<char, usize> =
            matrix.legend.iter().enumerate().map(|(place, meaning)| (meaning.code, place)).collect();
        let cells = |row: &taffrail_api::hub::MatrixRow| {
            let codes: Vec<char> = row.cells.chars().collect();
            let code = |place: &usize| meanings.get(codes.get(*place)?).copied();
            MatrixCells { key: row.key.clone(), codes: order.iter().map(code).collect() }
        };
        let rows: Vec<MatrixCells> = matrix.rows.iter().map(cells).collect();
        let all = || rows.iter().flat_map(|row| row.codes.iter().flatten());
        let problems = all().filter(|place| matrix.legend[**place].problem).count();
        let board = Board {
            legend: matrix.legend.clone(),
            clusters,
            groups,
            is_grouped,
            pairs: all().count(),
            problems,
            rows: matrix.extent.total,
            omitted: matrix.columns_omitted,
            name: rows.iter().map(|row| key_name(&row.key).chars().count()).max().unwrap_or(0),
        };
        (board, rows)
    }

    pub(super) fn columns(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn sentence(&self) -> String {
        let bad = match self.problems {
            0 => format!("none of {} has a problem", count(self.pairs, "pair")),
            1 => format!("1 of {} has a problem", count(self.pairs, "pair")),
            number => format!("{} of {} have problems", grouped(number), count(self.pairs, "pair")),
        };
        let omitted = match self.omitted {
            0 => String::new(),
            number => format!(" {} left out: filter to see others.", count(number, "cluster")),
        };
        let clusters = count(self.clusters.len(), "cluster");
        format!("{} by {clusters}; {bad}.{omitted}", count(self.rows, "app"))
    }

    /// Returns the clusters of a column, which are all of its group.
    pub(super) fn clusters_of(&self, column: usize) -> Vec<String> {
        let places = self.groups.get(column).map(|(_, places)| places.as_slice()).unwrap_or_default();
        places.iter().map(|place| self.clusters[*place].0.clone()).collect()
    }

    fn cell(&self, row: &MatrixCells, column: usize) -> Cell {
        let mut cell = Cell { worst: None, problems: 0, is_past: false, members: 0 };
        for place in self.groups.get(column).map(|(_, places)| places.as_slice()).unwrap_or_default() {
            let Some(meaning) = row.codes.get(*place).copied().flatten().map(|code| &self.legend[code])
            else {
                continue;
            };
            cell.members += 1;
            cell.problems += usize::from(meaning.problem);
            if cell.worst.is_none_or(|worst| meaning.effective < worst) {
                cell.worst = Some(meaning.effective);
                cell.is_past = meaning.freshness != FreshnessState::Live;
            }
        }
        cell
    }

    pub(super) fn has_problem(&self, row: &MatrixCells, column: usize) -> bool {
        self.cell(row, column).problems > 0
    }

    /// Returns the width of the names, of a cell, and the first column that is shown, such that `column` is.
    fn layout(&self, width: usize, column: usize) -> (usize, usize, usize) {
        let name = self.name.clamp(8, (width / 4).clamp(8, 32));
        let room = width.saturating_sub(name + 2).max(CELL);
        let cell = (room / self.columns().max(1)).clamp(CELL, MAX_CELL);
        let fit = (room / cell).max(1);
        (name, cell, (column + 1).saturating_sub(fit))
    }

    /// Returns the columns of the terminal, from the left, that a name and the cell in `column` take.
    pub(super) fn spans(&self, width: usize, column: usize) -> [(usize, usize); 2] {
        let (name, cell, first) = self.layout(width, column);
        let at = 2 + name + column.saturating_sub(first) * cell;
        [(0, name + 1), (at, cell.saturating_sub(1))]
    }

    /// Draws the names of the columns.
    pub(super) fn draw_header(&self, buffer: &mut Buffer, area: Rect, column: usize, colours: Colours) {
        let (name, cell, first) = self.layout(usize::from(area.width), column);
        let mut pen = Pen::new(buffer, area);
        pen.text(" ", Style::new()).column("APP", name, colours.muted());
        for (place, (title, places)) in self.groups.iter().enumerate().skip(first) {
            if pen.left() < cell {
                break;
            }
            let style =
                if place == column { Style::new().add_modifier(Modifier::BOLD) } else { colours.muted() };
            let title = match self.is_grouped && places.len() > 1 {
                true => format!("{title}×{}", places.len()),
                false => title.clone(),
            };
            // The end of a name tells more than its begin.
            let length = title.chars().count();
            let end: String = title.chars().skip(length.saturating_sub(cell - 1)).collect();
            pen.column(&end, cell - 1, style);
        }
    }

    pub(super) fn draw_cells(
        &self,
        row: &MatrixCells,
        pen: &mut Pen<'_>,
        column: usize,
        (colours, is_away): (Colours, bool),
    ) {
        let (name, cell, first) = self.layout(pen.left(), column);
        pen.text(" ", Style::new()).column(key_name(&row.key), name, Style::new());
        for place in first..self.columns() {
            if pen.left() < cell {
                break;
            }
            let (text, style) = self.cell_text(&self.cell(row, place), colours, is_away);
            pen.column(&text, cell - 1, style);
        }
    }

    fn cell_text(&self, cell: &Cell, colours: Colours, is_away: bool) -> (String, Style) {
        let Some(worst) = cell.worst else { return ("·".to_owned(), colours.muted()) };
        let is_past = cell.is_past || is_away;
        let mark = match (is_past, worst, cell.problems) {
            (true, ..) => "◌",
            (false, Status::Current, 1..) => "≠",
            (false, worst, _) => glyph(worst),
        };
        let style = match (is_past, worst, cell.problems) {
            (true, ..) => colours.status(Status::Unknown),
            (false, Status::Current, 1..) => colours.status(Status::Failed),
            (false, worst, _) => colours.status(worst),
        };
        let number = match self.is_grouped && cell.members > 1 && cell.problems > 0 {
            true => cell.problems.to_string(),
            false => String::new(),
        };
        (format!("{mark}{number}"), style)
    }

    /// Returns the cell under the cursor in words: `shop in eu-1: Failed`.
    pub(super) fn words(&self, row: &MatrixCells, column: usize) -> String {
        let cell = self.cell(row, column);
        let place = self.groups.get(column).map_or("", |(name, _)| name);
        let name = key_name(&row.key);
        match (cell.worst, cell.members) {
            (None, _) => format!("{name} is not in {place}"),
            (Some(worst), 1) if cell.is_past => format!("{name} in {place}: not live ({})", worst.word()),
            (Some(worst), 1) if worst == Status::Current && cell.problems > 0 => {
                format!("{name} in {place}: Ready, with another problem")
            }
            (Some(worst), 1) => format!("{name} in {place}: {}", worst.word()),
            (Some(worst), members) => {
                let problems = grouped(cell.problems);
                format!(
                    "{name} in {place}: {problems} of {members} have problems, the worst is {}",
                    worst.word()
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::group_of;

    #[test]
    fn clusters_are_grouped_by_their_names_without_numbers() {
        assert_eq!(group_of("eu-12"), "eu");
        assert_eq!(group_of("prod"), "prod");
        assert_eq!(group_of("42"), "42");
    }
}
