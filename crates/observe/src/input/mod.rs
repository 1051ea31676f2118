//! Objects from files and stdin, in pieces of bounded size.

mod chunks;
mod files;
mod parse;

pub(crate) use chunks::{Chunk, Chunks, Shape};
pub(crate) use files::{Source, sources};
pub(crate) use parse::{Parsed, each};

use crate::commands::status::InputFormat;

impl InputFormat {
    /// The shape this stands for, or `None` where the input itself must tell.
    pub(crate) fn shape(self) -> Option<Shape> {
        match self {
            InputFormat::Auto => None,
            InputFormat::Yaml => Some(Shape::Yaml),
            InputFormat::Json => Some(Shape::Json),
            InputFormat::Jsonl => Some(Shape::Lines { exact: true }),
        }
    }
}
