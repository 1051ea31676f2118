//! Expressions of clusters: each text is read once, and whose namespace wrote it pays for that.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use taffrail_status::Look;

use crate::cel::{Ask, InvalidExpression, Names, ReadExpression, Reading, check_size};
use crate::script::{computed, computed_since};

/// So many expressions are kept; what was read first goes first.
const KEPT: usize = 4096;

/// The texts of those that are kept take so much together, in bytes. What is read of one takes some hundred times as much.
const KEPT_TEXT: usize = 256 << 10;

/// Reads expressions, and keeps what was read for as long as the rules last.
pub(crate) struct Expressions {
    reader: ReadExpression,
    known: Mutex<Known>,
}

impl fmt::Debug for Expressions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expressions").field("known", &self.known).finish_non_exhaustive()
    }
}

/// What was read. It is found by all of its text, and means the same whoever has written it.
#[derive(Debug, Default)]
struct Known {
    read: HashMap<Arc<Written>, Result<Arc<dyn Ask>, InvalidExpression>>,
    /// In the order in which they were read.
    order: VecDeque<Arc<Written>>,
    /// How long the texts are together.
    size: usize,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Written {
    text: String,
    names: Names,
}

/// Who has written an expression, and the look in which it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Author<'a> {
    pub(crate) look: &'a Look,
    /// The name of the cluster.
    pub(crate) home: &'a str,
    pub(crate) namespace: &'a str,
}

/// Why an expression cannot be asked.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It is none, and will be none later.
    Invalid(InvalidExpression),
    /// It was not read this time; why, for people.
    NotNow(String),
}

impl Known {
    fn keep(&mut self, written: Written, outcome: Result<Arc<dyn Ask>, InvalidExpression>) {
        let written = Arc::new(written);
        if self.read.insert(Arc::clone(&written), outcome).is_some() {
            // Two have read it at once.
            return;
        }
        self.size += written.text.len();
        self.order.push_back(written);
        while self.order.len() > KEPT || self.size > KEPT_TEXT {
            let Some(first) = self.order.pop_front() else { break };
            self.size -= first.text.len();
            self.read.remove(&first);
        }
    }
}

impl Expressions {
    pub(crate) fn new(reader: ReadExpression) -> Expressions {
        Expressions { reader, known: Mutex::default() }
    }

    /// Reads an expression, unless it is known; `author` pays for that, and cannot have more read than that may cost.
    pub(crate) fn read(&self, text: &str, names: Names, author: Author<'_>) -> Result<Arc<dyn Ask>, Unread> {
        check_size(text).map_err(Unread::Invalid)?;
        let written = Written { text: text.to_owned(), names };
        if let Some(known) = self.known().read.get(&written) {
            return known.clone().map_err(Unread::Invalid);
        }
        let Author { look, home, namespace } = author;
        if !look.may_read(home, namespace) {
            let limit = Look::READING;
            return Err(Unread::NotNow(format!(
                "to read the expressions of namespace {namespace} took more than {limit:?} in this look"
            )));
        }
        let began = computed();
        let Reading { expression, took } = (self.reader)(text, names);
        look.charge_reading(home, namespace, took.saturating_add(computed_since(began)));
        let outcome = match expression {
            // That says more of the machine than of the text.
            Err(why @ (InvalidExpression::TooSlow(_) | InvalidExpression::Broken(_))) => {
                return Err(Unread::NotNow(why.to_string()));
            }
            outcome => outcome.map(Arc::from),
        };
        self.known().keep(written, outcome.clone());
        outcome.map_err(Unread::Invalid)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
