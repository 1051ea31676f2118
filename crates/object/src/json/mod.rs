//! JSON read the way Kubernetes' own decoder reads it, without building a tree.
//!
//! The API machinery is written in Go: a controller, kubectl or kstatus sees an object as Go's `encoding/json` (in the
//! fork `sigs.k8s.io/json`) decodes its bytes. A laxer or stricter reader would see another object, so this module
//! follows its rules exactly:
//!
//! * every byte is validated, also in parts that are never read;
//! * of duplicate keys the last one counts, at every level;
//! * keys are compared after unescaping and are case-sensitive;
//! * invalid UTF-8 (byte by byte) and lone surrogates read as U+FFFD;
//! * nesting is accepted to a depth of [`MAX_DEPTH`];
//! * numbers without fraction and exponent that fit are `i64`, all others `f64`, and a number that
//!   overflows `f64` is an error.
//!
//! [`Parser::parse`] validates a text in one pass and remembers where the members of the root, of its `metadata`, `spec`
//! and `status`, and of its conditions lie, and the same for each object in its `items`; a [`Value`] below that is read
//! where it lies, on demand.
//!
//! ```
//! use taffrail_object::json::Parser;
//!
//! let mut parser = Parser::new();
//! let doc = parser.parse(br#"{"kind":"Pod","spec":{"replicas":1,"replicas":2}}"#)?;
//! let replicas = doc.root().get("spec").and_then(|spec| spec.get("replicas"));
//! assert_eq!(replicas.and_then(|value| value.as_i64()), Some(2));
//! # Ok::<(), taffrail_object::json::Error>(())
//! ```

mod builder;
mod document;
mod envelope;
mod index;
#[cfg(feature = "record-parses")]
pub mod parses;
mod scan;
mod string;
mod value;

pub use builder::DocumentBuilder;
pub use document::{Document, OwnedDocument, Parser};
pub use envelope::Part;
pub use scan::{Error, ErrorKind, MAX_DEPTH};
pub use string::{write_escaped, write_string};
pub use value::{Items, Kind, Members, Rows, TooDeep, Value};
