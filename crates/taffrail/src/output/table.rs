//! Columns, as kubectl prints them.

use std::io::{self, Write};

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::printable;

/// Rows that decide the widths of the columns; later rows are printed as they come.
const MEASURED: usize = 1000;

const GAP: usize = 3;

/// The last column shall have room for a few words.
const ROOM: usize = 30;

/// Fewer columns than this are no use to a text that is cut.
const USELESS: usize = 10;

/// One field of a row.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Text in its column; `-` stands for nothing.
    pub(crate) fn new(text: impl AsRef<str>) -> Cell {
        Cell::styled(text, Style::new())
    }

    /// Nothing at all, where a dash would say too much.
    pub(crate) fn blank() -> Cell {
        Cell { text: String::new(), style: Style::new() }
    }

    pub(crate) fn styled(text: impl AsRef<str>, style: Style) -> Cell {
        let text = printable(text.as_ref());
        let text = if text.is_empty() { "-".to_owned() } else { text.into_owned() };
        Cell { text, style }
    }
}

/// A table that is printed while it is filled, in bounded memory.
pub(crate) struct Table<W> {
    out: W,
    header: Vec<&'static str>,
    waiting: Vec<Vec<Cell>>,
    widths: Option<Vec<usize>>,
    /// Columns of the terminal; the last column is cut to fit. `None` never cuts.
    screen: Option<usize>,
    /// Columns to leave out, in this order, while the last one has too little room.
    spare: &'static [&'static str],
    /// How much room the last column shall have.
    room: usize,
    left_out: Vec<usize>,
    /// The column that is cut where the last one is not, and its place.
    cut: Option<&'static str>,
    cut_at: Option<usize>,
}

impl<W: Write> Table<W> {
    pub(crate) fn new(out: W, header: Vec<&'static str>, screen: Option<usize>) -> Table<W> {
        Table {
            out,
            header,
            waiting: Vec::new(),
            widths: None,
            screen,
            spare: &[],
            room: ROOM,
            left_out: Vec::new(),
            cut: None,
            cut_at: None,
        }
    }

    /// Names the columns that a narrow screen may lack.
    pub(crate) fn spare(self, spare: &'static [&'static str]) -> Table<W> {
        Table { spare, ..self }
    }

    /// Sets how much room the last column shall have before others are left out.
    pub(crate) fn room(self, room: usize) -> Table<W> {
        Table { room, ..self }
    }

    /// Names the column that is cut to fit the screen, instead of the last one.
    pub(crate) fn cutting(self, title: &'static str) -> Table<W> {
        Table { cut: Some(title), ..self }
    }

    pub(crate) fn row(&mut self, row: Vec<Cell>) -> io::Result<()> {
        if self.widths.is_some() {
            return self.print(&row);
        }
        self.waiting.push(row);
        if self.waiting.len() == MEASURED { self.start() } else { Ok(()) }
    }

    /// Whether no row has come.
    pub(crate) fn is_empty(&self) -> bool {
        self.widths.is_none() && self.waiting.is_empty()
    }

    /// Prints what still waits; a table without rows prints nothing.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if self.widths.is_none() && !self.waiting.is_empty() {
            self.start()?;
        }
        self.out.flush()
    }

    fn start(&mut self) -> io::Result<()> {
        let columns = self.waiting.first().map_or(self.header.len(), Vec::len);
        let mut widths: Vec<usize> = self.header.iter().map(|title| title.width()).collect();
        widths.resize(columns, 0);
        for row in &self.waiting {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.width());
            }
        }
        self.leave_out(&widths);
        // To a person a title over nothing says nothing; a program wants its columns.
        let is_blank = |row: &Vec<Cell>| row.last().is_some_and(|cell| cell.text.is_empty());
        if self.screen.is_some() && self.waiting.len() < MEASURED && self.waiting.iter().all(is_blank) {
            self.left_out.push(columns.saturating_sub(1));
        }
        self.cut_at = self.cut.and_then(|title| self.header.iter().position(|other| *other == title));
        if let (Some(at), Some(screen)) = (self.cut_at, self.screen) {
            let used: usize = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
            let least = USELESS.max(self.header[at].width()).min(widths[at]);
            widths[at] = widths[at].saturating_sub(used.saturating_sub(screen)).max(least);
        }
        self.widths = Some(widths);
        let bold = Style::new().bold();
        let header: Vec<Cell> = self.header.iter().map(|title| Cell::styled(title, bold)).collect();
        if !self.header.is_empty() {
            self.print(&header)?;
        }
        for row in std::mem::take(&mut self.waiting) {
            self.print(&row)?;
        }
        Ok(())
    }

    /// Leaves columns out until the last one has room for a few words.
    fn leave_out(&mut self, widths: &[usize]) {
        let Some((screen, (_, before))) = self.screen.zip(widths.split_last()) else { return };
        let mut used: usize = before.iter().map(|width| width + GAP).sum();
        for title in self.spare {
            if used + self.room <= screen {
                return;
            }
            if let Some(at) = self.header.iter().position(|other| other == title) {
                used -= widths[at] + GAP;
                self.left_out.push(at);
            }
        }
    }

    fn print(&mut self, row: &[Cell]) -> io::Result<()> {
        let widths = self.widths.as_deref().unwrap_or_default();
        let mut used = 0;
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate().filter(|(at, _)| !self.left_out.contains(at)) {
            let last = at + 1 == row.len();
            let text = match self.screen {
                Some(_) if Some(at) == self.cut_at => {
                    cut(&cell.text, widths.get(at).copied().unwrap_or_default())
                }
                Some(screen) if last && self.cut_at.is_none() => cut(&cell.text, screen.saturating_sub(used)),
                _ => cell.text.clone(),
            };
            let width = text.width();
            let style = cell.style;
            line.push_str(&format!("{style}{text}{style:#}"));
            if !last {
                let column = widths.get(at).copied().unwrap_or_default().max(width) + GAP;
                line.extend(std::iter::repeat_n(' ', column - width));
                used += column;
            }
        }
        writeln!(self.out, "{}", line.trim_end())
    }
}

/// Cuts `text` to a number of columns; what is cut shows an ellipsis. Less than a few columns are
/// useless, so then the line wraps.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if columns < USELESS || text.width() <= columns {
        return text.to_owned();
    }
    let mut width = 1;
    let mut out = String::new();
    for character in text.chars() {
        width += character.width().unwrap_or(0);
        if width > columns {
            break;
        }
        out.push(character);
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(screen: Option<usize>, rows: &[[&str; 2]]) -> String {
        let mut out = Vec::new();
        let mut table = Table::new(&mut out, vec!["NAME", "MESSAGE"], screen);
        for row in rows {
            table.row(row.iter().map(Cell::new).collect()).unwrap();
        }
        table.finish().unwrap();
        String::from_utf8(anstream::adapter::strip_bytes(&out).into_vec()).unwrap()
    }

    #[test]
    fn columns_align_and_nothing_is_a_dash() {
        let text = print(None, &[["web", ""], ["größer-名", "well"]]);
        assert_eq!(text, "NAME        MESSAGE\nweb         -\ngrößer-名   well\n");
    }

    #[test]
    fn the_last_column_is_cut_to_the_screen() {
        let text = print(Some(20), &[["web", "a message longer than that"]]);
        assert_eq!(text, "NAME   MESSAGE\nweb    a message lo…\n");
    }

    #[test]
    fn narrow_screens_lack_what_can_be_spared() {
        let print = |screen| {
            let mut out = Vec::new();
            let mut table =
                Table::new(&mut out, vec!["NAME", "SYNC", "MESSAGE"], Some(screen)).spare(&["SYNC"]);
            table.row(["web", "Synced", "well"].iter().map(Cell::new).collect()).unwrap();
            table.finish().unwrap();
            String::from_utf8(anstream::adapter::strip_bytes(&out).into_vec()).unwrap()
        };
        assert_eq!(print(46), "NAME   SYNC     MESSAGE\nweb    Synced   well\n");
        assert_eq!(print(45), "NAME   MESSAGE\nweb    well\n");
    }

    #[test]
    fn a_column_in_the_middle_is_cut_so_that_those_behind_it_are_seen() {
        let print = |screen| {
            let mut out = Vec::new();
            let header = vec!["NAME", "MESSAGE", "REVISION"];
            let mut table = Table::new(&mut out, header, Some(screen)).cutting("MESSAGE");
            table
                .row(["web", "stored artifact for revision", "main@1e64"].iter().map(Cell::new).collect())
                .unwrap();
            table.finish().unwrap();
            String::from_utf8(anstream::adapter::strip_bytes(&out).into_vec()).unwrap()
        };
        assert_eq!(
            print(40),
            "NAME   MESSAGE                 REVISION\nweb    stored artifact for …   main@1e64\n"
        );
        assert_eq!(print(60).lines().last(), Some("web    stored artifact for revision   main@1e64"));
        assert_eq!(print(5).lines().last(), Some("web    stored ar…   main@1e64"));
    }

    #[test]
    fn a_last_column_without_words_is_no_column_for_people() {
        let print = |screen| {
            let mut out = Vec::new();
            let mut table = Table::new(&mut out, vec!["NAME", "MESSAGE"], screen);
            table.row(vec![Cell::new("web"), Cell::blank()]).unwrap();
            table.finish().unwrap();
            String::from_utf8(anstream::adapter::strip_bytes(&out).into_vec()).unwrap()
        };
        assert_eq!(print(Some(80)), "NAME\nweb\n");
        assert_eq!(print(None), "NAME   MESSAGE\nweb\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let text = print(None, &[["web", "one\n\x1b[2Jtwo\tthree"]]);
        assert_eq!(text, "NAME   MESSAGE\nweb    one \u{fffd}[2Jtwo three\n");
    }
}
