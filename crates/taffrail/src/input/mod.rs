//! Reads objects from files and stdin in chunks of bounded size.

mod chunks;
mod files;
mod parse;

pub(crate) use chunks::{Chunk, Chunks, Shape};
pub(crate) use files::{Source, sources};
pub(crate) use parse::{Parsed, each};

use crate::commands::status::InputFormat;

impl InputFormat {
    /// Returns the shape of this format, or `None` if the input decides.
    pub(crate) fn shape(self) -> Option<Shape> {
        match self {
            InputFormat::Auto => None,
            InputFormat::Yaml => Some(Shape::Yaml),
            InputFormat::Json => Some(Shape::Json),
            InputFormat::Jsonl => Some(Shape::Lines { exact: true }),
        }
    }
}
