//! A cache of parsed expressions of clusters. Each text is parsed once, and its namespace is charged for the time.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use taffrail_status::TeachingTime;

use crate::cel::{InvalidExpression, Names, Predicate, ReadExpression, Reading, check_size};
use crate::script::{computed, computed_since};

/// The maximum number of cached expressions; the oldest are dropped first.
const MAX_CACHED: usize = 4096;

/// The maximum total length of the cached texts, in bytes; the oldest are dropped first. A parsed expression takes some
/// hundred times its text.
const MAX_CACHED_BYTES: usize = 256 << 10;

/// The parser and cache of expressions; the cache lives as long as the rules.
pub(crate) struct Expressions {
    reader: ReadExpression,
    known: Mutex<ParsedExpressions>,
}

impl fmt::Debug for Expressions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expressions").field("known", &self.known).finish_non_exhaustive()
    }
}

/// The cached results. Their keys are the whole text and the names it may use; they do not depend on the author.
#[derive(Debug, Default)]
struct ParsedExpressions {
    read: HashMap<Arc<WrittenExpression>, Result<Arc<dyn Predicate>, InvalidExpression>>,
    /// The texts in the order in which they were parsed, oldest first.
    order: VecDeque<Arc<WrittenExpression>>,
    /// The total length of the texts, in bytes.
    size: usize,
}

/// An expression before it is parsed, with the names that it may use.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WrittenExpression {
    text: String,
    names: Names,
}

/// The namespace that wrote an expression, and the record of its parsing time in the current pass over the cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Author<'a> {
    pub(crate) spent: &'a TeachingTime,
    /// The name of the cluster that contains the namespace.
    pub(crate) home: &'a str,
    pub(crate) namespace: &'a str,
}

/// The reasons why a text is not available as a parsed expression.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The text is not a valid expression and never will be.
    Invalid(InvalidExpression),
    /// The text could not be parsed this time, and may be parsed later; holds the reason, for people.
    NotNow(String),
}

impl ParsedExpressions {
    fn keep(&mut self, written: WrittenExpression, outcome: Result<Arc<dyn Predicate>, InvalidExpression>) {
        let written = Arc::new(written);
        if self.read.insert(Arc::clone(&written), outcome).is_some() {
            // Two threads parsed it at the same time.
            return;
        }
        self.size += written.text.len();
        self.order.push_back(written);
        while self.order.len() > MAX_CACHED || self.size > MAX_CACHED_BYTES {
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

    /// Returns the parsed expression from the cache, or parses it and charges `author` for the time.
    ///
    /// # Errors
    /// If the expression is invalid, the parser fails, or the author's namespace has used up its parsing time in this
    /// pass over the cluster.
    pub(crate) fn read(
        &self,
        text: &str,
        names: Names,
        author: Author<'_>,
    ) -> Result<Arc<dyn Predicate>, Unread> {
        check_size(text).map_err(Unread::Invalid)?;
        let written = WrittenExpression { text: text.to_owned(), names };
        if let Some(known) = self.known().read.get(&written) {
            return known.clone().map_err(Unread::Invalid);
        }
        let Author { spent, home, namespace } = author;
        if !spent.may_read(home, namespace) {
            let limit = TeachingTime::READING;
            return Err(Unread::NotNow(format!(
                "parsing the expressions of namespace {namespace} took more than {limit:?}"
            )));
        }
        let began = computed();
        let Reading { expression, took } = (self.reader)(text, names);
        spent.charge_reading(home, namespace, took.saturating_add(computed_since(began)));
        let outcome = match expression {
            // The failure comes from the machine rather than the text, so it is not cached.
            Err(why @ (InvalidExpression::TooSlow(_) | InvalidExpression::Broken(_))) => {
                return Err(Unread::NotNow(why.to_string()));
            }
            outcome => outcome.map(Arc::from),
        };
        self.known().keep(written, outcome.clone());
        outcome.map_err(Unread::Invalid)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, ParsedExpressions> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
