//! Objects from files and stdin, in pieces of bounded size.

mod chunks;
mod files;
mod parse;

pub use chunks::{Chunk, Chunks, InputShape};
pub use files::{InputSource, sources};
pub use parse::{Parsed, each};
