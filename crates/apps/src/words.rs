//! Messages and cause chains, stored once however many apps and views show them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use taffrail_status::assess::CauseStep;

/// The length in bytes above which clones of a text share its memory.
const MAX_OWNED_LENGTH: usize = 128;

/// A text that many rows may show. Cloning a text longer than `MAX_OWNED_LENGTH` copies only a pointer.
#[derive(Clone)]
pub struct Words(WordsText);

/// The text of [`Words`]: owned, or shared with equal ones.
#[derive(Clone)]
enum WordsText {
    Own(String),
    Shared(Arc<str>),
}

impl Words {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        self
    }

    /// Returns true if the text is empty.
    pub fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }

    /// Returns the allocation that the text shares with its clones; `None` for a short text that shares none.
    pub fn shared(&self) -> Option<&Arc<str>> {
        match &self.0 {
            WordsText::Own(_) => None,
            WordsText::Shared(text) => Some(text),
        }
    }
}

impl Deref for WordsText {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            WordsText::Own(text) => text,
            WordsText::Shared(text) => text,
        }
    }
}

impl Deref for Words {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for Words {
    fn from(text: String) -> Words {
        Words(if text.len() > MAX_OWNED_LENGTH {
            WordsText::Shared(text.into())
        } else {
            WordsText::Own(text)
        })
    }
}

impl From<&str> for Words {
    fn from(text: &str) -> Words {
        Words(if text.len() > MAX_OWNED_LENGTH {
            WordsText::Shared(text.into())
        } else {
            WordsText::Own(text.to_owned())
        })
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
        Words(WordsText::Own(String::new()))
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

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Words {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Words, D::Error> {
        String::deserialize(deserializer).map(Words::from)
    }
}

/// A pool of messages and cause steps, which stores equal ones once.
#[derive(Debug, Default)]
pub(crate) struct Said {
    words: HashSet<Arc<str>>,
    links: HashSet<Arc<CauseStep>>,
}

impl Said {
    /// Returns the pooled copy of an equal text, or adds this one to the pool.
    pub(crate) fn words(&mut self, Words(words): Words) -> Words {
        if let Some(known) = self.words.get(&*words) {
            return Words(WordsText::Shared(known.clone()));
        }
        let text: Arc<str> = match words {
            WordsText::Own(text) => text.into(),
            WordsText::Shared(text) => text,
        };
        self.words.insert(text.clone());
        Words(WordsText::Shared(text))
    }

    /// Replaces the steps of a cause chain by the pooled copies of equal ones.
    pub(crate) fn chain(&mut self, mut chain: Vec<Arc<CauseStep>>) -> Vec<Arc<CauseStep>> {
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

/// A shared value that is compared and hashed by its memory address: two values with equal contents but different
/// addresses differ.
#[derive(Debug)]
pub struct ByAddress<T: ?Sized>(pub Arc<T>);

impl<T: ?Sized> PartialEq for ByAddress<T> {
    fn eq(&self, other: &ByAddress<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: ?Sized> Eq for ByAddress<T> {}

impl<T: ?Sized> Hash for ByAddress<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<()>().hash(state);
    }
}
