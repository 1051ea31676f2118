//! Draws text into the cells of a terminal: safe, cut by width, with as many colours as the terminal has.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use taffrail_status::Status;
use unicode_width::UnicodeWidthStr;

use crate::output::printable;
use crate::output::table::cut;

/// The colours that a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colours {
    None,
    Sixteen,
    Many,
}

impl Colours {
    /// Returns `many` of a terminal with 256 colours, else `few`; none without colours.
    fn style(self, few: Color, many: u8) -> Style {
        match self {
            Colours::None => Style::new(),
            Colours::Sixteen => Style::new().fg(few),
            Colours::Many => Style::new().fg(Color::Indexed(many)),
        }
    }

    pub(super) fn muted(self) -> Style {
        match self {
            Colours::None => Style::new().add_modifier(Modifier::DIM),
            _ => self.style(Color::DarkGray, 245),
        }
    }

    pub(super) fn accent(self) -> Style {
        self.style(Color::Cyan, 75)
    }

    /// Only failures are loud.
    pub(super) fn status(self, status: Status) -> Style {
        match status {
            Status::Failed => self.style(Color::Red, 203).add_modifier(Modifier::BOLD),
            Status::NotFound => self.style(Color::Red, 208),
            Status::InProgress => self.style(Color::Yellow, 75),
            Status::Terminating => self.style(Color::Magenta, 176),
            Status::Unknown => self.style(Color::Magenta, 245),
            Status::Current => self.style(Color::Green, 108),
        }
    }
}

/// Returns the mark of a status, which differs from the others without colours, too.
pub(super) fn glyph(status: Status) -> &'static str {
    match status {
        Status::Failed => "✕",
        Status::NotFound => "○",
        Status::InProgress => "◔",
        Status::Terminating => "⊖",
        Status::Unknown => "?",
        Status::Current => "✓",
    }
}

/// A text with a style for each of its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line(pub(super) Vec<(String, Style)>);

impl Line {
    pub(super) fn new() -> Line {
        Line::default()
    }

    pub(super) fn add(mut self, text: impl Into<String>, style: Style) -> Line {
        self.0.push((text.into(), style));
        self
    }

    pub(super) fn plain(self, text: impl Into<String>) -> Line {
        self.add(text, Style::new())
    }

    /// Returns the text without styles.
    pub(super) fn text(&self) -> String {
        self.0.iter().map(|(text, _)| text.as_str()).collect()
    }

    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| printable(text).width()).sum()
    }
}

/// The cells of a row of the terminal, into which text is written from left to right.
pub(super) struct Pen<'b> {
    buffer: &'b mut Buffer,
    x: u16,
    y: u16,
    end: u16,
}

impl Pen<'_> {
    /// Starts at `area`, a row that may lie outside of the buffer.
    pub(super) fn new(buffer: &mut Buffer, area: Rect) -> Pen<'_> {
        let area = area.intersection(*buffer.area());
        let end = if area.height == 0 { area.x } else { area.right() };
        Pen { buffer, x: area.x, y: area.y, end }
    }

    pub(super) fn left(&self) -> usize {
        usize::from(self.end.saturating_sub(self.x))
    }

    /// Writes text, made printable, and cut where the row ends.
    pub(super) fn text(&mut self, text: &str, style: Style) -> &mut Self {
        let left = self.left();
        if left == 0 {
            return self;
        }
        let text = printable(text);
        let text = cut(&text, left);
        let (x, _) = self.buffer.set_stringn(self.x, self.y, &text, left, style);
        self.x = x;
        self
    }

    /// Writes text into exactly so many columns, and a space after them.
    pub(super) fn column(&mut self, text: &str, width: usize, style: Style) -> &mut Self {
        self.cell(width, |pen| pen.text(text, style))
    }

    /// Writes what `write` does into exactly so many columns, and a space after them.
    pub(super) fn cell(
        &mut self,
        width: usize,
        write: impl for<'p> FnOnce(&'p mut Self) -> &'p mut Self,
    ) -> &mut Self {
        let end = (usize::from(self.x) + width).min(usize::from(self.end));
        let end = u16::try_from(end).unwrap_or(self.end);
        let whole = std::mem::replace(&mut self.end, end);
        write(self);
        self.end = whole;
        self.x = end.saturating_add(1).min(whole);
        self
    }

    pub(super) fn line(&mut self, line: &Line) -> &mut Self {
        for (text, style) in &line.0 {
            self.text(text, *style);
        }
        self
    }

    /// Writes a line so that it ends where the row does, if there is room for all of it.
    pub(super) fn right(&mut self, line: &Line) -> &mut Self {
        let width = line.width();
        if width <= self.left() {
            self.x = self.end.saturating_sub(u16::try_from(width).unwrap_or(0));
            self.line(line);
        }
        self
    }
}

/// Parses text with the colour sequences of the command line into lines. Without colours keeps the emphasis alone.
pub(super) fn parse(text: &str, colours: Colours) -> Vec<Line> {
    text.lines().map(|line| parse_line(line, colours)).collect()
}

fn parse_line(line: &str, colours: Colours) -> Line {
    let mut parsed = Line::new();
    let mut style = Style::new();
    let mut pieces = line.split("\u{1b}[");
    let mut push = |text: &str, style: Style| {
        if !text.is_empty() {
            parsed.0.push((text.to_owned(), style));
        }
    };
    push(pieces.next().unwrap_or_default(), style);
    for piece in pieces {
        let Some((codes, text)) = piece.split_once('m') else { continue };
        style = codes.split(';').fold(style, |style, code| styled(style, code, colours));
        push(text, style);
    }
    parsed
}

fn styled(style: Style, code: &str, colours: Colours) -> Style {
    let with = |status| style.patch(colours.status(status).remove_modifier(Modifier::BOLD));
    match code {
        "" | "0" => Style::new(),
        "1" => style.add_modifier(Modifier::BOLD),
        "2" => style.patch(colours.muted()),
        "31" | "91" => with(Status::Failed),
        "32" | "92" => with(Status::Current),
        "33" | "93" => with(Status::InProgress),
        "35" | "95" => with(Status::Terminating),
        "34" | "36" | "94" | "96" => style.patch(colours.accent()),
        "39" => Style { fg: None, ..style },
        _ => style,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_moves_no_cursor_and_stays_in_its_columns() {
        let area = Rect::new(0, 0, 12, 1);
        let mut buffer = Buffer::empty(area);
        let mut pen = Pen::new(&mut buffer, area);
        pen.column("\x1b[2Ja\u{202e}b漢字漢字", 8, Style::new()).text("end of it", Style::new());
        let shown: String = buffer.content().iter().map(ratatui_core::buffer::Cell::symbol).collect();
        assert!(!shown.contains('\x1b') && !shown.contains('\u{202e}'), "{shown:?}");
        assert!(shown.ends_with("en…") && shown.contains('…'), "{shown:?}");
    }

    #[test]
    fn colours_of_the_command_line_are_read() {
        let lines = parse("\x1b[1mNAME\x1b[0m  x\n\x1b[31mFailed\x1b[0m", Colours::Sixteen);
        assert_eq!(lines[0].text(), "NAME  x");
        assert!(lines[0].0[0].1.add_modifier.contains(Modifier::BOLD));
        assert_eq!(lines[1].0[0].1.fg, Some(Color::Red));
        let none = parse("\x1b[31mFailed\x1b[0m", Colours::None);
        assert_eq!(none[0].0[0].1.fg, None);
    }
}
