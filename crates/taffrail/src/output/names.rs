//! Writes names that are safe in a shell, for `-o name`.
//!
//! Names from outside may contain spaces, quotes and `$(…)`, which a command line would interpret.

use std::io::{self, Write};

use taffrail_apps::command::is_plain;

use super::answer::{Answer, Console};
use super::printable;
use crate::{phrase, say};

/// Writes names for other commands, one per line.
pub(crate) struct NameWriter {
    out: Answer,
    console: Console,
    left_out: usize,
    first: String,
}

impl NameWriter {
    pub(crate) fn new(console: &Console) -> NameWriter {
        NameWriter { out: console.programs(), console: console.clone(), left_out: 0, first: String::new() }
    }

    /// Writes a name as a line; leaves it out, and counts it, if a shell could read it as several words or an
    /// option.
    pub(crate) fn write(&mut self, name: &str) -> io::Result<()> {
        if is_word(name) {
            return say!(self.out, "{}", printable(name));
        }
        if self.left_out == 0 {
            name.clone_into(&mut self.first);
        }
        self.left_out += 1;
        Ok(())
    }

    /// Writes a line about a name that was printed before: the name and `word`, such as `Gone`. Writes nothing for a
    /// name that [`NameWriter::write`] leaves out.
    pub(crate) fn note(&mut self, name: &str, word: &str) -> io::Result<()> {
        if is_word(name) { say!(self.out, "{}  {}", printable(name), printable(word)) } else { Ok(()) }
    }

    /// Prints a warning to stderr with the number of names that [`NameWriter::write`] left out, if any, and flushes the
    /// output.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let why = "left out, because a shell would not take";
        let first: String = self.first.chars().take(100).collect();
        match std::mem::take(&mut self.left_out) {
            0 => {}
            1 => self.console.tell(phrase!(
                "warning: the name '{}' was {} it as one plain word\n",
                printable(&first),
                why
            )),
            many => {
                self.console.tell(phrase!(
                    "warning: {} names were {} each as one plain word; the first: '{}'\n",
                    many,
                    why,
                    printable(&first)
                ));
            }
        }
        self.out.flush()
    }

    /// Writes each of `names` on a line, and a warning if some were left out.
    pub(crate) fn all<N: AsRef<str>>(
        names: impl IntoIterator<Item = N>,
        console: &Console,
    ) -> io::Result<()> {
        let mut out = NameWriter::new(console);
        names.into_iter().try_for_each(|name| out.write(name.as_ref()))?;
        out.finish()
    }
}

/// Returns true if a shell reads the name as one word, and commands do not read it as an option.
fn is_word(name: &str) -> bool {
    is_plain(name.as_bytes()) && !name.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_options_are_written_nowhere() {
        let console = Console::memory();
        let mut names = NameWriter::new(&console);
        for name in ["--rules=x", "shop/web"] {
            names.write(name).unwrap();
            names.note(name, "Gone").unwrap();
        }
        names.out.flush().unwrap();
        assert_eq!(console.kept().0, "shop/web\nshop/web  Gone\n");
    }
}
