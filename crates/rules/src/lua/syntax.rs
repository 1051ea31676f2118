//! Translates Lua for Argo CD to Luau, which has no `goto`: jumps to the end of a loop's body become `continue`.

use std::borrow::Cow;
use std::ops::Range;

use super::error::LuaProblem;

/// The maximum number of jumps and labels in a script; a script with more is refused, because each is compared with
/// each.
const MAX_JUMPS_AND_LABELS: usize = 400;

/// The maximum number of nested blocks around a jump or label; a script with deeper ones is refused.
const MAX_NESTED_BLOCKS: usize = 200;

/// The reasons a `goto` cannot be translated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Jump {
    /// A jump to another place than the end of a loop's body: its line, from 1, and its label.
    Elsewhere { line: u32, label: String },
    /// More than `MAX_JUMPS_AND_LABELS`, or one inside of more than `MAX_NESTED_BLOCKS`.
    TooMany,
}

impl Jump {
    pub(super) fn line(&self) -> Option<u32> {
        match self {
            Jump::Elsewhere { line, .. } => Some(*line),
            Jump::TooMany => None,
        }
    }

    pub(super) fn problem(&self) -> LuaProblem {
        match self {
            Jump::Elsewhere { label, .. } => LuaProblem::Goto(label.clone()),
            Jump::TooMany => LuaProblem::Syntax(format!(
                "the script has more than {MAX_JUMPS_AND_LABELS} jumps and labels, or one inside of more than {MAX_NESTED_BLOCKS} blocks"
            )),
        }
    }
}

/// Translates a script; each line keeps its number.
///
/// # Errors
/// If a jump leads elsewhere than to the end of the body of the innermost loop around it, or there are too many jumps
/// and labels, or one inside of too many blocks.
pub(super) fn to_luau(text: &str) -> Result<Cow<'_, str>, Jump> {
    if !text.contains("goto") && !text.contains("::") {
        return Ok(Cow::Borrowed(text));
    }
    let tokens: Vec<Token<'_>> = Tokens { text, at: 0 }.collect();
    let mut changes: Vec<(Range<usize>, &str)> = Vec::new();
    let found = read(&tokens)?;
    for label in &found.labels {
        changes.push((label.range.clone(), ""));
    }
    for jump in &found.jumps {
        let of_jump = |label: &&Label<'_>| {
            label.name == jump.label && jump.inside.get(..label.inside.len()) == Some(&*label.inside)
        };
        let label = found.labels.iter().filter(of_jump).max_by_key(|label| label.inside.len());
        let goes_on = label.is_some_and(|label| goes_on(&tokens, label, jump));
        if !goes_on {
            let line = text.get(..jump.range.start).unwrap_or_default().matches('\n').count() + 1;
            let line = line.try_into().unwrap_or(u32::MAX);
            return Err(Jump::Elsewhere { line, label: jump.label.to_owned() });
        }
        changes.push((jump.range.clone(), "do continue end"));
    }
    changes.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len() + changes.len() * 16);
    let mut from = 0;
    for (range, new) in changes {
        out.push_str(text.get(from..range.start).unwrap_or_default());
        out.push_str(new);
        // The text behind must stay on its line.
        let old = text.get(range.clone()).unwrap_or_default();
        out.extend(old.matches('\n'));
        out.push(' ');
        from = range.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Ok(Cow::Owned(out))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token<'t> {
    text: &'t str,
    start: usize,
}

impl Token<'_> {
    fn end(&self) -> usize {
        self.start + self.text.len()
    }

    fn is_name(&self) -> bool {
        self.text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
    }
}

/// An iterator over names and other single characters; it skips texts and comments.
struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Tokens<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips `[[…]]` or `[=[…]=]`; returns false if none begins here.
    fn long(&mut self) -> bool {
        let rest = self.rest();
        let Some(inside) = rest.strip_prefix('[') else { return false };
        let level = inside.len() - inside.trim_start_matches('=').len();
        if inside.as_bytes().get(level) != Some(&b'[') {
            return false;
        }
        let close = format!("]{}]", "=".repeat(level));
        self.at += rest.find(&close).map_or(rest.len(), |end| end + close.len());
        true
    }

    /// Skips a quoted text; returns false if none begins here.
    fn quoted(&mut self) -> bool {
        let bytes = self.rest().as_bytes();
        let Some(quote @ (b'"' | b'\'')) = bytes.first() else { return false };
        let mut end = 1;
        while let Some(byte) = bytes.get(end) {
            end += if *byte == b'\\' { 2 } else { 1 };
            if byte == quote {
                break;
            }
        }
        self.at += end.min(bytes.len());
        true
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        loop {
            let rest = self.rest();
            let first = rest.chars().next()?;
            if rest.starts_with("--") {
                self.at += 2;
                if !self.long() {
                    let rest = self.rest();
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
            } else if first.is_whitespace() {
                self.at += first.len_utf8();
            } else if !self.long() && !self.quoted() {
                let is_of_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
                let length = match first {
                    ':' if rest.starts_with("::") => 2,
                    _ if is_of_name(first) => rest.find(|it| !is_of_name(it)).unwrap_or(rest.len()),
                    _ => first.len_utf8(),
                };
                let token = Token { text: rest.get(..length)?, start: self.at };
                self.at += length;
                return Some(token);
            }
        }
    }
}

/// The kinds of blocks in a script, by the words that enclose them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    Function,
    Loop,
    /// The block of `if`, or between `do` and `end`.
    Plain,
    /// The head between `for` or `while` and its `do`.
    Head,
}

/// A label `::name::` in a Lua text.
struct Label<'t> {
    name: &'t str,
    range: Range<usize>,
    /// The index of the token behind the label.
    behind: usize,
    /// The numbers of the blocks around the label, the outermost first.
    inside: Vec<usize>,
}

/// A `goto` in a Lua text.
struct Goto<'t> {
    label: &'t str,
    range: Range<usize>,
    inside: Vec<usize>,
    /// The number of blocks around it down to the body of the innermost loop; 0 if it is not in a loop.
    of_loop: usize,
}

/// The labels and jumps of a Lua text.
struct LabelsAndJumps<'t> {
    labels: Vec<Label<'t>>,
    jumps: Vec<Goto<'t>>,
}

fn read<'t>(tokens: &[Token<'t>]) -> Result<LabelsAndJumps<'t>, Jump> {
    let mut found = LabelsAndJumps { labels: Vec::new(), jumps: Vec::new() };
    let mut blocks: Vec<(usize, Body)> = Vec::new();
    let mut number = 0;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        number += 1;
        let is_jump = matches!(token.text, "::" | "goto");
        if is_jump
            && (blocks.len() > MAX_NESTED_BLOCKS
                || found.labels.len() + found.jumps.len() >= MAX_JUMPS_AND_LABELS)
        {
            return Err(Jump::TooMany);
        }
        let inside = || blocks.iter().map(|(number, _)| *number).collect::<Vec<_>>();
        match token.text {
            "function" => blocks.push((number, Body::Function)),
            "for" | "while" => blocks.push((number, Body::Head)),
            "repeat" => blocks.push((number, Body::Loop)),
            "if" => blocks.push((number, Body::Plain)),
            "do" => match blocks.last_mut() {
                Some(last) if last.1 == Body::Head => *last = (number, Body::Loop),
                _ => blocks.push((number, Body::Plain)),
            },
            // Labels of one arm are not visible in another.
            "else" | "elseif" => {
                if let Some(last) = blocks.last_mut() {
                    last.0 = number;
                }
            }
            "end" | "until" => drop(blocks.pop()),
            "::" => {
                if let Some([name, close]) = tokens.get(at + 1..at + 3)
                    && close.text == "::"
                    && name.is_name()
                {
                    let range = token.start..close.end();
                    found.labels.push(Label { name: name.text, range, behind: at + 3, inside: inside() });
                    at += 2;
                }
            }
            "goto" => {
                if let Some(name) = tokens.get(at + 1)
                    && name.is_name()
                {
                    let innermost =
                        blocks.iter().rposition(|(_, body)| matches!(body, Body::Loop | Body::Function));
                    let of_loop = innermost.filter(|at| blocks.get(*at).is_some_and(|it| it.1 == Body::Loop));
                    found.jumps.push(Goto {
                        label: name.text,
                        range: token.start..name.end(),
                        inside: inside(),
                        of_loop: of_loop.map_or(0, |at| at + 1),
                    });
                    at += 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    Ok(found)
}

/// Returns true if a jump to the label goes on with the next round: only closing words, semicolons, labels and other
/// arms of an `if` stand between it and the end of the body of the innermost loop around the jump.
fn goes_on(tokens: &[Token<'_>], label: &Label<'_>, jump: &Goto<'_>) -> bool {
    if jump.of_loop == 0 || label.inside.len() < jump.of_loop {
        return false;
    }
    let mut depth = label.inside.len();
    let mut at = label.behind;
    while let Some(token) = tokens.get(at) {
        match token.text {
            ";" => {}
            "::" => at += 2,
            "end" | "until" => {
                if depth == jump.of_loop {
                    return true;
                }
                depth -= 1;
            }
            // Other arms are skipped.
            "else" | "elseif" => at = end_of_block(tokens, at + 1).saturating_sub(1),
            _ => return false,
        }
        at += 1;
    }
    false
}

/// Returns the index of the `end` of the current block; `at` is the first token in it.
fn end_of_block(tokens: &[Token<'_>], mut at: usize) -> usize {
    let mut open = 1;
    let mut heads = 0;
    while let Some(token) = tokens.get(at) {
        match token.text {
            "for" | "while" => {
                heads += 1;
                open += 1;
            }
            "do" if heads > 0 => heads -= 1,
            "function" | "repeat" | "if" | "do" => open += 1,
            "end" | "until" => open -= 1,
            _ => {}
        }
        if open == 0 {
            break;
        }
        at += 1;
    }
    at
}
