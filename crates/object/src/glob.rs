//! Glob patterns, which name groups and kinds in Argo CD's settings.

/// The maximum number of alternatives that the braces of a pattern expand to; further ones are ignored.
const MAX_ALTERNATIVES: usize = 64;

/// A glob pattern: `*` stands for any text, `?` for any character, `[a-z]` for one of several characters, and `{a,b}`
/// for one of several texts.
#[derive(Debug, Clone)]
pub struct Glob {
    alternatives: Vec<Vec<Piece>>,
    /// The character that no wildcard matches; `None` if wildcards match every character.
    border: Option<char>,
}

/// A part of a glob pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Character(char),
    One,
    Any,
    OneOf { not: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// Reads a pattern; every text is one. A wildcard does not match the character `border`.
    pub fn read(text: &str, border: Option<char>) -> Glob {
        let mut texts = vec![String::new()];
        let mut rest = text;
        while let Some((before, inside)) = rest.split_once('{') {
            let Some((inside, after)) = inside.split_once('}') else { break };
            texts = texts
                .iter()
                .flat_map(|text| inside.split(',').map(move |word| format!("{text}{before}{word}")))
                .take(MAX_ALTERNATIVES)
                .collect();
            rest = after;
        }
        let pieces = |text: &String| pieces(&format!("{text}{rest}"));
        Glob { alternatives: texts.iter().map(pieces).collect(), border }
    }

    /// Returns true if the whole text matches the pattern.
    pub fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        self.alternatives.iter().any(|pieces| self.fits(pieces, &text))
    }

    fn fits(&self, pieces: &[Piece], text: &[char]) -> bool {
        let is_free = |character: char| Some(character) != self.border;
        // The positions in the text at which the rest of the pattern may match.
        let mut places = vec![false; text.len() + 1];
        if let Some(first) = places.first_mut() {
            *first = true;
        }
        for piece in pieces {
            let mut next = vec![false; text.len() + 1];
            let mut is_open = false;
            for (at, place) in places.iter().enumerate() {
                let character = text.get(at).copied();
                let reached = match piece {
                    Piece::Any => {
                        is_open |= *place;
                        if let Some(here) = next.get_mut(at) {
                            *here |= is_open;
                        }
                        is_open &= character.is_some_and(is_free);
                        continue;
                    }
                    Piece::One => character.is_some_and(is_free),
                    Piece::Character(wanted) => character == Some(*wanted),
                    Piece::OneOf { not, ranges } => character.is_some_and(|character| {
                        let is_in = ranges.iter().any(|(from, to)| (*from..=*to).contains(&character));
                        is_in != *not && is_free(character)
                    }),
                };
                if *place
                    && reached
                    && let Some(behind) = next.get_mut(at + 1)
                {
                    *behind = true;
                }
            }
            places = next;
        }
        places.last().copied().unwrap_or_default()
    }
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        let piece = match character {
            '*' if pieces.last() == Some(&Piece::Any) => continue,
            '*' => Piece::Any,
            '?' => Piece::One,
            '\\' => Piece::Character(rest.next().unwrap_or('\\')),
            '[' if rest.as_str().contains(']') => {
                let inside: String = rest.by_ref().take_while(|character| *character != ']').collect();
                one_of(&inside)
            }
            other => Piece::Character(other),
        };
        pieces.push(piece);
    }
    pieces
}

fn one_of(inside: &str) -> Piece {
    let named = inside.strip_prefix(['!', '^']);
    let characters: Vec<char> = named.unwrap_or(inside).chars().collect();
    let mut ranges = Vec::new();
    let mut rest = &*characters;
    while let [from, behind @ ..] = rest {
        rest = match behind {
            ['-', to, behind @ ..] => {
                ranges.push((*from, *to));
                behind
            }
            _ => {
                ranges.push((*from, *from));
                behind
            }
        };
    }
    Piece::OneOf { not: named.is_some(), ranges }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn glob_wildcards_match_as_in_argo_cd() {
        for (pattern, text, free, bordered) in [
            ("*.example.com/*", "a.example.com/Thing", true, true),
            ("*.example.com/*", "example.com/Thing", false, false),
            ("*/*", "a.b/C", true, true),
            ("*", "a.b/C", true, false),
            ("**", "a.b/C", true, false),
            ("a?b", "a/b", true, false),
            ("a?b", "ab", false, false),
            ("[a-c]x[!y]", "bxz", true, true),
            ("[a-c]x[!y]", "dxz", false, false),
            ("{one,two}.com/{A,B}", "two.com/A", true, true),
            ("{one,two}.com/{A,B}", "two.com/C", false, false),
            ("*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false, false),
            ("", "", true, true),
            ("[", "[", true, true),
            ("{", "{", true, true),
        ] {
            assert_eq!(Glob::read(pattern, None).matches(text), free, "{pattern} {text}");
            assert_eq!(
                Glob::read(pattern, Some('/')).matches(text),
                bordered,
                "{pattern} {text}, with a border"
            );
        }
    }
}
