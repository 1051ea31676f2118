//! The reasons for which only one side reads a text.

use super::{Side, Told};
use crate::manifests::ManifestErrorKind;

/// A reason for which one side reads a text and the other refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    Rest,
    Key,
    Number,
    Anchor,
    Block,
    OldBreak,
    Mark,
    Limit,
    Utf8,
    Strict,
    Tab,
    Type,
    Lenient,
    /// None of the others: the test fails.
    Unknown,
}

impl Reason {
    pub(super) const ALL: [Reason; 13] = [
        Reason::Rest,
        Reason::Key,
        Reason::Number,
        Reason::Anchor,
        Reason::Block,
        Reason::OldBreak,
        Reason::Mark,
        Reason::Limit,
        Reason::Utf8,
        Reason::Strict,
        Reason::Tab,
        Reason::Type,
        Reason::Lenient,
    ];

    /// Returns the side that reads the text.
    pub(super) fn reader(self) -> Side {
        match self {
            Reason::Tab | Reason::Type | Reason::Lenient => Side::Taffrail,
            _ => Side::Kubectl,
        }
    }

    pub(super) fn sentence(self) -> &'static str {
        match self {
            Reason::Rest => {
                "Text stands behind a document without a separator: kubectl ignores it, and Taffrail refuses it."
            }
            Reason::Key => {
                "A key is null, or a number that kubectl writes with an exponent: Taffrail asks for quotes."
            }
            Reason::Number => {
                "A number that JSON cannot express stands where kubectl drops it, or takes it for a part of a text."
            }
            Reason::Anchor => {
                "The name of an anchor ends for kubectl in its middle, and the rest is the value."
            }
            Reason::Block => "A document is a block of text, whose end the two parsers see elsewhere.",
            Reason::OldBreak => "A text has a line break of YAML 1.1, which YAML 1.2 does not know.",
            Reason::Mark => "A line begins with a byte order mark: kubectl loses letters of the next lines.",
            Reason::Limit => "The text exceeds a limit of Taffrail.",
            Reason::Utf8 => {
                "The text is not UTF-8, and kubectl does not look at that part of it, or takes it for UTF-16."
            }
            Reason::Strict => {
                "YAML 1.2, which Taffrail's parser follows, forbids what kubectl's parser of YAML 1.1 lets pass."
            }
            Reason::Tab => "A tab stands where kubectl's parser allows none.",
            Reason::Type => "A value does not have the type of its tag !!timestamp: Taffrail reads the text.",
            Reason::Lenient => "YAML 1.2 allows what kubectl's parser of YAML 1.1 refuses.",
            Reason::Unknown => "none",
        }
    }

    /// Returns the reason for which only kubectl reads a text: `ours` is Taffrail's error.
    pub(super) fn of_ours(ours: &ManifestErrorKind, told: &Told) -> Reason {
        match ours {
            _ if told.ignores => Reason::Rest,
            ManifestErrorKind::TooDeep
            | ManifestErrorKind::Aliases
            | ManifestErrorKind::TooManyValues
            | ManifestErrorKind::FileTooLarge => Reason::Limit,
            ManifestErrorKind::NotUtf8 => Reason::Utf8,
            ManifestErrorKind::Json(message) if message.starts_with("number too large") => Reason::Number,
            ManifestErrorKind::Yaml(message) if message.starts_with("a YAML key is") => Reason::Key,
            ManifestErrorKind::Yaml(message) => match &**message {
                "JSON has neither infinity nor NaN" => Reason::Number,
                "the document is a block of text" => Reason::Block,
                message if message.starts_with("the name of an anchor") => Reason::Anchor,
                message if message.starts_with("a text has a line break of YAML 1.1") => Reason::OldBreak,
                message if message.contains("byte order mark") || message.contains("BOM") => Reason::Mark,
                _ => Reason::Strict,
            },
            _ => Reason::Unknown,
        }
    }

    /// Returns the reason for which only Taffrail reads a text.
    pub(super) fn of_theirs(told: &Told, text: &[u8]) -> Reason {
        let error = match &told.yaml {
            Some(error) => error,
            None => told.error.as_deref().unwrap_or_default(),
        };
        let has_tab = text.contains(&b'\t');
        match error {
            _ if error.contains(" as a !!timestamp") => Reason::Type,
            _ if error.contains("found a tab character") => Reason::Tab,
            _ if has_tab && error.contains("cannot start any token") => Reason::Tab,
            _ if error.starts_with("yaml: ") => Reason::Lenient,
            _ => Reason::Unknown,
        }
    }
}
