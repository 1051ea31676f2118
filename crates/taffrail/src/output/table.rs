//! Prints tables in aligned columns, as kubectl does.

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Printable, printable, wrapped};

/// Maximum number of rows that are kept to compute the column widths; later rows are printed as they come.
const MAX_MEASURED_ROWS: usize = 1000;

const GAP: usize = 3;

/// Spaces between columns on screens narrower than [`NARROW_SCREEN`], if the last column has too little room otherwise.
const TIGHT_GAP: usize = 2;

/// Width of the screen, in its columns, below which it is narrow.
const NARROW_SCREEN: usize = 100;

/// Default of the width that is kept for the last column, in columns of the screen, if its text is that long.
const MIN_LAST_WIDTH: usize = 30;

/// Width down to which the column to cut is narrowed before others are; the width of its title if that is greater.
const MIN_CUT_WIDTH: usize = 10;

/// Maximum width of cells other than the last: the longest Kubernetes name. A longer one would widen every other row.
const MAX_CELL_WIDTH: usize = 253;

/// Spaces between columns if a row does not fit the screen even with every column at [`MIN_COLUMN_WIDTH`].
const MIN_GAP: usize = 1;

/// Indentation of the lines below a row.
const INDENT: usize = 4;

/// Minimum width of a column; columns that do not fit the screen even at this width are left out.
const MIN_COLUMN_WIDTH: usize = 3;

/// One cell of a table: its printable text and its colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    text: Printable<'static>,
    style: Style,
}

impl Cell {
    /// Creates a cell without colour; empty text is shown as `-`.
    pub(crate) fn new(text: impl AsRef<str>) -> Cell {
        Cell::styled(text, Style::new())
    }

    /// Creates an empty cell, for a place where `-` would be misleading.
    pub(crate) fn blank() -> Cell {
        Cell { text: printable("").into_owned(), style: Style::new() }
    }

    pub(crate) fn styled(text: impl AsRef<str>, style: Style) -> Cell {
        let text = printable(text.as_ref());
        let text = if text.is_empty() { printable("-") } else { text };
        Cell { text: text.into_owned(), style }
    }
}

/// A table that is printed while it is filled, with at most [`MAX_MEASURED_ROWS`] rows in memory.
pub(crate) struct Table<W> {
    out: W,
    titles: Vec<&'static str>,
    has_header: bool,
    /// The rows that were added before the column widths are known, which they decide; false for those that are only
    /// measured.
    waiting: Vec<(Vec<Cell>, bool)>,
    widths: Option<Vec<usize>>,
    gap: usize,
    /// Width of the terminal, which no line exceeds. If it is `None`, only cells wider than [`MAX_CELL_WIDTH`] are
    /// cut, and those of the last column and of `cut` never.
    screen: Option<usize>,
    /// Titles of the columns that may be left out while the last column has too little room, the first to go first.
    spare: &'static [&'static str],
    /// The title of a column that is hidden at first, and the titles of those that it replaces on a narrow screen.
    fold: Option<(&'static str, &'static [&'static str])>,
    /// The width that is kept for the last column, if its text is that long.
    room: usize,
    /// True to print below each row its cells in spare columns that were left out, and the last cell in full if it is
    /// cut.
    is_whole: bool,
    left_out: Vec<usize>,
    /// Indexes of the columns whose cells are printed below the row.
    below: Vec<usize>,
    /// The title of the column that is cut instead of the last one.
    cut: Option<&'static str>,
    cut_at: Option<usize>,
}

impl<W: Write> Table<W> {
    pub(crate) fn new(out: W, header: Vec<&'static str>, screen: Option<usize>) -> Table<W> {
        Table {
            out,
            titles: header,
            has_header: true,
            waiting: Vec::new(),
            widths: None,
            gap: GAP,
            screen,
            spare: &[],
            fold: None,
            room: MIN_LAST_WIDTH,
            is_whole: false,
            left_out: Vec::new(),
            below: Vec::new(),
            cut: None,
            cut_at: None,
        }
    }

    /// Sets the titles of the columns that may be left out while the last column has too little room, the first to go
    /// first.
    pub(crate) fn spare(self, spare: &'static [&'static str]) -> Table<W> {
        Table { spare, ..self }
    }

    /// Hides the column `into`, and lets it replace the columns `from` when its turn comes among the spare columns, of
    /// which it must be one.
    pub(crate) fn folding(self, into: &'static str, from: &'static [&'static str]) -> Table<W> {
        Table { fold: Some((into, from)), ..self }
    }

    /// Sets the width that is kept for the last column, if its text is that long.
    pub(crate) fn room(self, room: usize) -> Table<W> {
        Table { room, ..self }
    }

    /// Sets the title of the column that is cut to fit the screen, instead of the last one.
    pub(crate) fn cutting(self, title: &'static str) -> Table<W> {
        Table { cut: Some(title), ..self }
    }

    /// Omits the header row if `is_bare`.
    pub(crate) fn without_header(self, is_bare: bool) -> Table<W> {
        Table { has_header: !is_bare, ..self }
    }

    /// Omits the header row; only before the first rows are printed.
    pub(crate) fn hide_header(&mut self) {
        self.has_header = false;
    }

    /// If `is_whole` and the table fits a screen, prints below each row its cells in spare columns that were left out,
    /// and the last cell in full if the row cuts it.
    pub(crate) fn whole(self, is_whole: bool) -> Table<W> {
        Table { is_whole, ..self }
    }

    pub(crate) fn row(&mut self, row: Vec<Cell>) -> io::Result<()> {
        if self.widths.is_some() {
            return self.print_whole(&row);
        }
        self.wait(row, true)
    }

    /// Takes a row into account for the column widths without printing it. Does nothing once the widths are fixed.
    pub(crate) fn measure(&mut self, row: Vec<Cell>) -> io::Result<()> {
        if self.widths.is_some() { Ok(()) } else { self.wait(row, false) }
    }

    fn wait(&mut self, row: Vec<Cell>, is_printed: bool) -> io::Result<()> {
        self.waiting.push((row, is_printed));
        if self.waiting.len() == MAX_MEASURED_ROWS { self.start() } else { Ok(()) }
    }

    /// Returns true if no row was added, not even one that is only measured.
    pub(crate) fn is_empty(&self) -> bool {
        self.widths.is_none() && self.waiting.is_empty()
    }

    /// Prints the header and the rows that are still kept, and flushes the output; prints nothing if no row was added.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if self.widths.is_none() && !self.waiting.is_empty() {
            self.start()?;
        }
        self.out.flush()
    }

    fn start(&mut self) -> io::Result<()> {
        let columns = self.waiting.iter().map(|(row, _)| row.len()).max().unwrap_or(self.titles.len());
        let titles = if self.has_header { self.titles.as_slice() } else { &[] };
        let mut widths: Vec<usize> = titles.iter().map(|title| title.width()).collect();
        widths.resize(columns, 0);
        for (row, _) in &self.waiting {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.width());
            }
        }
        if let Some((_, before)) = widths.split_last_mut() {
            before.iter_mut().for_each(|width| *width = (*width).min(MAX_CELL_WIDTH));
        }
        self.left_out.extend(self.fold.and_then(|(into, _)| self.place(into)));
        // On a terminal a column without content is useless; programs expect all columns.
        let is_blank = |(row, _): &(Vec<Cell>, bool)| row.last().is_some_and(|cell| cell.text.is_empty());
        if self.screen.is_some()
            && self.waiting.len() < MAX_MEASURED_ROWS
            && self.waiting.iter().all(is_blank)
        {
            self.left_out.push(columns.saturating_sub(1));
        }
        self.leave_out(&widths);
        self.cut_at = self.cut.and_then(|title| self.place(title));
        if let Some(screen) = self.screen {
            self.fit(&mut widths, screen);
        }
        self.below.sort_unstable();
        self.widths = Some(widths);
        if self.has_header && !self.titles.is_empty() {
            let bold = Style::new().bold();
            let header: Vec<Cell> = self.titles.iter().map(|title| Cell::styled(title, bold)).collect();
            self.print(&header)?;
        }
        for (row, _) in std::mem::take(&mut self.waiting).into_iter().filter(|(_, is_printed)| *is_printed) {
            self.print_whole(&row)?;
        }
        Ok(())
    }

    fn place(&self, title: &str) -> Option<usize> {
        self.titles.iter().position(|other| *other == title)
    }

    fn shown(&self, columns: usize) -> Vec<usize> {
        (0..columns).filter(|at| !self.left_out.contains(at)).collect()
    }

    /// On a narrow screen tightens the gap if the last column has too little room. Then leaves out spare columns, empty
    /// ones first, until it has enough; instead of leaving out the folded column, shows it in place of those that it
    /// replaces. At last restores the ones with content that fit again because wider ones were left out later.
    fn leave_out(&mut self, widths: &[usize]) {
        let Some(screen) = self.screen else { return };
        if self.lacks_room(widths, screen) && screen < NARROW_SCREEN {
            self.gap = TIGHT_GAP;
        }
        let says_nothing = |at: usize| {
            let mut cells = self.waiting.iter().filter_map(|(row, _)| row.get(at));
            self.waiting.len() < MAX_MEASURED_ROWS && cells.all(|cell| matches!(&*cell.text, "" | "-"))
        };
        let empty: Vec<&'static str> =
            self.spare.iter().copied().filter(|title| self.place(title).is_some_and(says_nothing)).collect();
        let mut gone: Vec<&'static str> = Vec::new();
        for title in empty.iter().chain(self.spare) {
            if !self.lacks_room(widths, screen) {
                break;
            }
            let Some(at) = self.place(title) else { continue };
            match self.fold.filter(|(into, _)| into == title) {
                Some((_, from)) => {
                    let from: Vec<usize> = from.iter().filter_map(|title| self.place(title)).collect();
                    self.left_out.retain(|other| *other != at);
                    self.left_out.extend(from);
                }
                // The last column is cut and not left out, unless it is printed below.
                None if self.shown(widths.len()).last() == Some(&at) && !self.is_whole => continue,
                None if self.left_out.contains(&at) => continue,
                None => {
                    self.left_out.push(at);
                    self.below.push(at);
                }
            }
            if !empty.contains(title) {
                gone.push(title);
            }
        }
        for title in gone.iter().rev() {
            let Some(at) = self.place(title) else { continue };
            let now = (self.left_out.clone(), self.below.clone());
            match self.fold.filter(|(into, _)| into == title) {
                Some((_, from)) => {
                    let from: Vec<usize> = from.iter().filter_map(|title| self.place(title)).collect();
                    self.left_out.retain(|other| !from.contains(other));
                    self.left_out.push(at);
                }
                None => {
                    self.left_out.retain(|other| *other != at);
                    self.below.retain(|other| *other != at);
                }
            }
            if self.lacks_room(widths, screen) {
                (self.left_out, self.below) = now;
            }
        }
    }

    fn lacks_room(&self, widths: &[usize], screen: usize) -> bool {
        let shown = self.shown(widths.len());
        let Some((last, before)) = shown.split_last() else { return false };
        let used: usize = before.iter().map(|at| widths[*at] + self.gap).sum();
        // Text may be cut, and what is printed below the row is complete there.
        let is_of_words = *last + 1 == widths.len() || self.is_whole;
        let wanted = if is_of_words { widths[*last].min(self.room) } else { widths[*last] };
        used + wanted > screen
    }

    /// Narrows `widths` until a row fits the screen. If not even the narrowest columns fit, first narrows the gaps and
    /// leaves out columns at the right. Then narrows the column to cut (else the last one), and after it the widest
    /// ones.
    fn fit(&mut self, widths: &mut [usize], screen: usize) {
        let mut columns = self.shown(widths.len());
        let least = |widths: &[usize], columns: &[usize], gap: usize| -> usize {
            let cells: usize = columns.iter().map(|at| widths[*at].min(MIN_COLUMN_WIDTH)).sum();
            cells + gap * columns.len().saturating_sub(1)
        };
        if least(widths, &columns, self.gap) > screen {
            self.gap = MIN_GAP;
        }
        while columns.len() > 1 && least(widths, &columns, self.gap) > screen {
            let last = columns.pop();
            self.left_out.extend(last);
            self.below.extend(last);
        }
        let room = screen.saturating_sub(self.gap * columns.len().saturating_sub(1));
        let over =
            |widths: &[usize]| columns.iter().map(|at| widths[*at]).sum::<usize>().saturating_sub(room);
        if let Some(at) = self.cut_at.or(columns.last().copied()).filter(|at| columns.contains(at)) {
            let title = self.titles.get(at).map_or(0, |title| title.width());
            let least = MIN_CUT_WIDTH.max(title).min(widths[at]);
            widths[at] = widths[at].saturating_sub(over(widths)).max(least);
        }
        while over(widths) > 0 {
            let widest = columns.iter().copied().max_by_key(|at| widths[*at]).filter(|at| widths[*at] > 1);
            let Some(widest) = widest else { return };
            widths[widest] -= 1;
        }
    }

    /// Prints a row; if the table is [`whole`](Table::whole), also prints below it the cells of columns that did not
    /// fit, and the last cell in full if the row cuts it.
    fn print_whole(&mut self, row: &[Cell]) -> io::Result<()> {
        self.print(row)?;
        let Some(screen) = self.screen.filter(|_| self.is_whole) else { return Ok(()) };
        let indent = INDENT.min(screen / 8);
        let mut line = String::new();
        let mut used = 0;
        for (title, cell) in self.below.iter().filter_map(|at| Some((self.titles.get(*at)?, row.get(*at)?))) {
            if matches!(&*cell.text, "" | "-") {
                continue;
            }
            let piece = format!("{title} {}", &*cell.text);
            if used > 0 && used + GAP + piece.width() > screen {
                writeln!(self.out, "{line}")?;
                (line, used) = (String::new(), 0);
            }
            let gap = if used == 0 { indent } else { GAP };
            let piece = cut(&piece, screen.saturating_sub(used + gap));
            used += gap + piece.width();
            let style = cell.style;
            // A title that was cut has no colour.
            match piece.strip_prefix(title) {
                Some(text) => line.push_str(&format!("{:gap$}{title}{style}{text}{style:#}", "")),
                None => line.push_str(&format!("{:gap$}{piece}", "")),
            }
        }
        if used > 0 {
            writeln!(self.out, "{line}")?;
        }
        let shown = self.shown(row.len());
        let Some((last, before)) = shown.split_last() else { return Ok(()) };
        let widths = self.widths.as_deref().unwrap_or_default();
        let used: usize =
            before.iter().map(|at| widths.get(*at).copied().unwrap_or_default() + self.gap).sum();
        let Some(cell) = row.get(*last).filter(|cell| used + cell.text.width() > screen) else {
            return Ok(());
        };
        for line in wrapped(&cell.text, Some(screen), indent) {
            writeln!(self.out, "{:indent$}{}", "", cut(&line, screen.saturating_sub(indent)))?;
        }
        Ok(())
    }

    fn print(&mut self, row: &[Cell]) -> io::Result<()> {
        let widths = self.widths.as_deref().unwrap_or_default();
        let mut line = String::new();
        let mut used = 0;
        let last = (0..row.len()).rev().find(|at| !self.left_out.contains(at));
        for (at, cell) in row.iter().enumerate().filter(|(at, _)| !self.left_out.contains(at)) {
            let width = widths.get(at).copied().unwrap_or_default();
            let text = match self.screen {
                // Rows beyond the measured ones may be wider.
                Some(screen) if Some(at) == last => cut(&cell.text, screen.saturating_sub(used)),
                Some(_) => cut(&cell.text, width),
                None if Some(at) == last || Some(at) == self.cut_at => cell.text.as_ref().into(),
                None => cut(&cell.text, MAX_CELL_WIDTH),
            };
            let style = cell.style;
            line.push_str(&format!("{style}{text}{style:#}"));
            if Some(at) != last {
                let own = text.width();
                let column = width.max(own) + self.gap;
                line.extend(std::iter::repeat_n(' ', column - own));
                used += column;
            }
        }
        writeln!(self.out, "{}", line.trim_end())
    }
}

/// Returns `text` cut to this many columns, with an ellipsis if it was longer and there is room for one.
pub(crate) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    /// Maximum number of characters examined per column: combining marks take no width, but reading them takes time.
    const MAX_CHARACTERS_PER_COLUMN: usize = 4;

    if text.len() <= columns || (text.len() <= columns * MAX_CHARACTERS_PER_COLUMN && text.width() <= columns)
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let (mut width, mut end) = (0, 0);
    for character in text.chars().take(columns * MAX_CHARACTERS_PER_COLUMN) {
        width += character.width().unwrap_or(0);
        if width > columns {
            break;
        }
        out.push(character);
        if width < columns {
            end = out.len();
        }
    }
    if out.len() == text.len() && out.width() <= columns {
        return Cow::Borrowed(text);
    }
    out.truncate(end);
    // Some characters are wider together than separately.
    while out.width() >= columns.max(1) {
        out.pop();
    }
    if columns > 0 {
        out.push('…');
    }
    Cow::Owned(out)
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
    fn columns_align_and_empty_cells_are_dashes() {
        let text = print(None, &[["web", ""], ["größer-名", "well"]]);
        assert_eq!(text, "NAME        MESSAGE\nweb         -\ngrößer-名   well\n");
    }

    #[test]
    fn the_last_column_is_cut_to_the_screen() {
        let text = print(Some(20), &[["web", "a message longer than that"]]);
        assert_eq!(text, "NAME  MESSAGE\nweb   a message lon…\n");
    }

    #[test]
    fn narrow_screens_omit_spare_columns() {
        let print = |screen| {
            let mut out = Vec::new();
            let mut table =
                Table::new(&mut out, vec!["NAME", "SYNC", "MESSAGE"], Some(screen)).spare(&["SYNC"]);
            table.row(["web", "Synced", "it is well"].iter().map(Cell::new).collect()).unwrap();
            table.finish().unwrap();
            String::from_utf8(anstream::adapter::strip_bytes(&out).into_vec()).unwrap()
        };
        assert_eq!(print(26), "NAME   SYNC     MESSAGE\nweb    Synced   it is well\n");
        assert_eq!(print(24), "NAME  SYNC    MESSAGE\nweb   Synced  it is well\n");
        assert_eq!(print(23), "NAME  MESSAGE\nweb   it is well\n");
    }

    /// Prints one row of four columns.
    fn row(
        screen: usize,
        cells: [&str; 4],
        make: impl Fn(Table<&mut Vec<u8>>) -> Table<&mut Vec<u8>>,
    ) -> String {
        let mut out = Vec::new();
        let header = vec!["NAMESPACE", "NAME", "APP", "MESSAGE"];
        let mut table = make(Table::new(&mut out, header, Some(screen)));
        table.row(cells.iter().map(Cell::new).collect()).unwrap();
        table.finish().unwrap();
        String::from_utf8(anstream::adapter::strip_bytes(&out).into_vec()).unwrap()
    }

    #[test]
    fn a_short_message_needs_no_more_room_than_it_has() {
        let print = |message| row(39, ["shop", "web", "a", message], |table| table.spare(&["NAME", "APP"]));
        assert_eq!(print("well").lines().next(), Some("NAMESPACE   NAME   APP   MESSAGE"));
        assert_eq!(print("a message of words").lines().next(), Some("NAMESPACE  APP  MESSAGE"));
    }

    #[test]
    fn columns_return_when_a_wider_one_leaves_room() {
        let print = |screen| {
            let cells = ["a-namespace-that-is-long", "web", "shop", "a message of words"];
            row(screen, cells, |table| table.spare(&["NAME", "NAMESPACE"]))
        };
        assert_eq!(print(40), "NAME  APP   MESSAGE\nweb   shop  a message of words\n");
    }

    #[test]
    fn empty_columns_are_left_out_first() {
        let print = |cells| row(39, cells, |table| table.spare(&["NAME", "APP"]));
        let text = print(["shop", "web", "-", "a message of words"]);
        assert_eq!(text, "NAMESPACE  NAME  MESSAGE\nshop       web   a message of words\n");
    }

    #[test]
    fn folded_column_replaces_several_on_narrow_screens() {
        let print = |screen| {
            row(screen, ["shop", "web", "shop/web", "a message of words"], |table| {
                table.spare(&["APP"]).folding("APP", &["NAMESPACE", "NAME"])
            })
        };
        assert_eq!(print(80), "NAMESPACE   NAME   MESSAGE\nshop        web    a message of words\n");
        assert_eq!(print(30), "APP       MESSAGE\nshop/web  a message of words\n");
    }

    #[test]
    fn wide_tables_print_missing_columns_below() {
        let print = |screen| {
            row(screen, ["shop", "web", "ks", "a message of some words"], |table| {
                table.spare(&["APP", "NAMESPACE"]).whole(true)
            })
        };
        assert_eq!(print(80).lines().count(), 2);
        assert_eq!(print(29), "NAME  MESSAGE\nweb   a message of some words\n   NAMESPACE shop   APP ks\n");
        assert_eq!(
            print(24).lines().skip(1).collect::<Vec<_>>(),
            [
                "web   a message of some…",
                "   NAMESPACE shop",
                "   APP ks",
                "   a message of some",
                "   words"
            ]
        );
    }

    #[test]
    fn a_table_without_its_header_lacks_the_same_columns() {
        let text = row(30, ["shop", "web", "ks", "a message of some words"], |table| {
            table.spare(&["APP", "NAMESPACE"]).without_header(true)
        });
        assert_eq!(text, "web  a message of some words\n");
    }

    #[test]
    fn middle_column_is_cut_to_keep_later_ones_visible() {
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
            "NAME  MESSAGE                  REVISION\nweb   stored artifact for re…  main@1e64\n"
        );
        assert_eq!(print(60).lines().last(), Some("web    stored artifact for revision   main@1e64"));
        // What is still too wide is cut as well.
        assert_eq!(print(24).lines().last(), Some("web   stored …  main@1e…"));
    }

    #[test]
    fn empty_last_column_is_hidden_on_terminals() {
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

    /// Numbers that look random and are the same in each run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % end
        }

        fn text(&mut self) -> String {
            const PARTS: [&str; 14] = [
                "web",
                "-",
                "größer",
                "漢字漢",
                "🦀",
                "👩\u{200d}👩\u{200d}👧",
                "☺\u{fe0f}",
                "e\u{301}\u{301}\u{301}",
                "לחם",
                "لا",
                "\x1b[31m",
                "\u{202e}",
                "ﷺ",
                " a message of words ",
            ];
            let parts = [0, 1, 2, 5, 30, 500][self.below(6)];
            (0..parts).map(|_| PARTS[self.below(PARTS.len())]).collect()
        }
    }

    #[test]
    fn without_a_screen_no_message_is_cut() {
        let message = "m".repeat(MAX_CELL_WIDTH + 50);
        let mut out = Vec::new();
        let mut table = Table::new(&mut out, vec!["NAME", "MESSAGE", "REVISION"], None).cutting("MESSAGE");
        table.row(["a", &message, "1"].map(Cell::new).to_vec()).unwrap();
        table.row(["b", "short", "2"].map(Cell::new).to_vec()).unwrap();
        table.finish().unwrap();
        let out = String::from_utf8(anstream::adapter::strip_bytes(&out).into_vec()).unwrap();
        assert!(out.contains(&format!("\na      {message}   1\n")), "{out}");
        assert!(out.lines().all(|line| line.contains(&message) || line.len() < MAX_CELL_WIDTH + 20), "{out}");
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        const TITLES: [&str; 13] = [
            "CLUSTER",
            "NAMESPACE",
            "NAME",
            "STATUS",
            "SYNC",
            "SINCE",
            "DELIVERY",
            "REVISION",
            "SOURCE",
            "A",
            "KIND",
            "REASON",
            "MESSAGE",
        ];
        let mut numbers = Numbers(7);
        for round in 0..600 {
            let screen = [40, 80, 120, 20, 3, 200][round % 6];
            let header: Vec<&str> = TITLES[..=numbers.below(TITLES.len())].to_vec();
            let rows = [1, 3, 20, MAX_MEASURED_ROWS + 5][if round % 50 == 0 { 3 } else { numbers.below(3) }];
            let mut out = Vec::new();
            let mut table = Table::new(&mut out, header.clone(), Some(screen));
            if numbers.below(2) == 0 {
                table = table.spare(&["REVISION", "SYNC", "NAMESPACE"]);
            }
            if numbers.below(3) == 0 {
                table = table.cutting("MESSAGE");
            }
            if numbers.below(3) == 0 {
                table = table.whole(true);
            }
            if numbers.below(3) == 0 {
                table = table.spare(&["SOURCE", "A", "DELIVERY"]).folding("A", &["NAME", "STATUS"]);
            }
            if numbers.below(4) == 0 {
                table = table.without_header(true);
            }
            for _ in 0..rows {
                table.row(header.iter().map(|_| Cell::new(numbers.text())).collect()).unwrap();
            }
            table.finish().unwrap();
            let text = String::from_utf8(anstream::adapter::strip_bytes(&out).into_vec()).unwrap();
            for line in text.lines() {
                assert!(line.width() <= screen, "{} of {screen} columns: {line}", line.width());
                assert!(line.chars().all(|character| !taffrail_status::is_unseen(character)), "{line:?}");
            }
        }
    }

    #[test]
    fn measured_rows_decide_the_layout_and_are_not_printed() {
        let mut out = Vec::new();
        let mut table = Table::new(&mut out, vec!["NAME", "STATUS"], None).without_header(true);
        for (name, is_printed) in [("a-long-name", false), ("web", false), ("web", true)] {
            let row = vec![Cell::new(name), Cell::new("Ready")];
            if is_printed { table.row(row) } else { table.measure(row) }.unwrap();
        }
        table.finish().unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "web           Ready\n");
    }

    #[test]
    fn overlong_names_widen_a_column_to_253_at_most() {
        let name = "a".repeat(5 << 20);
        let mut out = Vec::new();
        let mut table = Table::new(&mut out, vec!["NAME", "STATUS", "MESSAGE"], None);
        for name in [name.as_str(), "web"] {
            table.row([name, "Ready", "m"].iter().map(Cell::new).collect()).unwrap();
        }
        table.finish().unwrap();
        assert!(out.len() < 1200, "{}", out.len());
        // The last column is as long as it is: no other is moved by it.
        assert!(print(None, &[["web", &"m".repeat(1000)]]).contains(&"m".repeat(1000)));
    }
}
