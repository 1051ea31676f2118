//! Names that a shell may take in: what completion offers, and what `-o name` prints for other commands.
//!
//! Names from outside may hold spaces, quotes and `$(…)`: what is written into a command line must mean the same there.

use std::io::{self, Write};

use taffrail_apps::view::is_plain;

use super::answer;
use super::printable;
use crate::{phrase, say};

/// Writes names for other commands, one in a line.
pub(crate) struct Names {
    out: Box<dyn Write>,
    left_out: usize,
    first: String,
}

impl Names {
    pub(crate) fn new(out: Box<dyn Write>) -> Names {
        Names { out, left_out: 0, first: String::new() }
    }

    /// Writes a name, unless it could be more than one word, or an option, to whoever takes it in.
    pub(crate) fn write(&mut self, name: &str) -> io::Result<()> {
        if is_plain(name.as_bytes()) && !name.starts_with('-') {
            return say!(self.out, "{}", printable(name));
        }
        if self.left_out == 0 {
            name.clone_into(&mut self.first);
        }
        self.left_out += 1;
        Ok(())
    }

    /// Tells how many were left out.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let why = "left out: with characters that shells take for more than a name";
        let first: String = self.first.chars().take(100).collect();
        match std::mem::take(&mut self.left_out) {
            0 => {}
            1 => answer::tell(phrase!("warning: the name '{}' is {}\n", printable(&first), why)),
            many => {
                answer::tell(phrase!(
                    "warning: {} names are {}; the first: '{}'\n",
                    many,
                    why,
                    printable(&first)
                ));
            }
        }
        self.out.flush()
    }

    /// Writes all of these names.
    pub(crate) fn all<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> io::Result<()> {
        let mut out = Names::new(Box::new(answer::programs()));
        names.into_iter().try_for_each(|name| out.write(name.as_ref()))?;
        out.finish()
    }
}
