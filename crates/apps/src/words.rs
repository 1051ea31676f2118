//! What is said of objects: kept once, however many apps list them and however many views show it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use taffrail_status::assess::Link;

/// A text longer than this is worth being shared.
const LONG: usize = 128;

/// A text that many rows may show: of a long one a clone is no copy.
#[derive(Clone)]
pub struct Words(Kept);

#[derive(Clone)]
enum Kept {
    Own(String),
    Shared(Arc<str>),
}

impl Words {
    /// The text.
    pub fn as_str(&self) -> &str {
        self
    }

    /// Returns true where nothing is said.
    pub fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }

    /// The place of a long text, which its clones have in common.
    pub(crate) fn shared(&self) -> Option<&Arc<str>> {
        match &self.0 {
            Kept::Own(_) => None,
            Kept::Shared(text) => Some(text),
        }
    }
}

impl Deref for Words {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Kept::Own(text) => text,
            Kept::Shared(text) => text,
        }
    }
}

impl From<String> for Words {
    fn from(text: String) -> Words {
        Words(if text.len() > LONG { Kept::Shared(text.into()) } else { Kept::Own(text) })
    }
}

impl From<&str> for Words {
    fn from(text: &str) -> Words {
        Words(if text.len() > LONG { Kept::Shared(text.into()) } else { Kept::Own(text.to_owned()) })
    }
}

impl From<&String> for Words {
    fn from(text: &String) -> Words {
        Words::from(text.as_str())
    }
}

impl From<Cow<'_, str>> for Words {
    fn from(text: Cow<'_, str>) -> Words {
        match text {
            Cow::Borrowed(text) => Words::from(text),
            Cow::Owned(text) => Words::from(text),
        }
    }
}

impl Default for Words {
    fn default() -> Words {
        Words(Kept::Own(String::new()))
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Words) -> bool {
        **self == **other
    }
}

impl Eq for Words {}

impl PartialEq<str> for Words {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for Words {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl PartialEq<String> for Words {
    fn eq(&self, other: &String) -> bool {
        **self == **other
    }
}

impl PartialEq<Words> for String {
    fn eq(&self, other: &Words) -> bool {
        **self == **other
    }
}

impl Hash for Words {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl Serialize for Words {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

/// What was said so far: the same is kept once, whatever object led to it.
#[derive(Debug, Default)]
pub(crate) struct Said {
    words: HashSet<Arc<str>>,
    links: HashSet<Arc<Link>>,
}

impl Said {
    /// Returns the same words, from where they were said first.
    pub(crate) fn words(&mut self, words: Words) -> Words {
        let Words(Kept::Shared(text)) = &words else { return words };
        match self.words.get(text) {
            Some(known) => Words(Kept::Shared(known.clone())),
            None => {
                self.words.insert(text.clone());
                words
            }
        }
    }

    /// Returns the same chain, of the links that were said first.
    pub(crate) fn chain(&mut self, mut chain: Vec<Arc<Link>>) -> Vec<Arc<Link>> {
        for link in &mut chain {
            match self.links.get(link) {
                Some(known) => *link = known.clone(),
                None => {
                    self.links.insert(link.clone());
                }
            }
        }
        chain
    }
}

/// What is kept in one place, as that place: two that say the same are not the same.
#[derive(Debug)]
pub(crate) struct Place<T: ?Sized>(pub(crate) Arc<T>);

impl<T: ?Sized> PartialEq for Place<T> {
    fn eq(&self, other: &Place<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: ?Sized> Eq for Place<T> {}

impl<T: ?Sized> Hash for Place<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<()>().hash(state);
    }
}
