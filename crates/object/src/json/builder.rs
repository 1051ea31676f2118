//! Builds a JSON document from parts of documents that were parsed already.

use super::document::OwnedDocument;
use super::index::Member;
use super::scan::Error;
use super::string::write_string;
use super::value::Value;

/// A JSON object under construction. Parts of indexed documents are copied with their index, so they are not parsed
/// again.
#[derive(Debug)]
pub struct DocumentBuilder {
    text: Vec<u8>,
    members: Vec<Member>,
}

impl DocumentBuilder {
    /// Starts an object whose text will be about `capacity` bytes long.
    pub fn new(capacity: usize) -> DocumentBuilder {
        let mut text = Vec::with_capacity(capacity);
        text.push(b'{');
        DocumentBuilder { text, members: vec![Member::object()] }
    }

    /// Adds a member `key` with the string `value`.
    pub fn string(&mut self, key: &str, value: &str) {
        let mut member = self.key(key);
        write_string(value, &mut self.text);
        member.end(self.text.len());
        self.members.push(member);
    }

    /// Adds a member `key` with a copy of `value`, which may belong to another document.
    pub fn value(&mut self, key: &str, value: Value<'_>) {
        let mut member = self.key(key);
        let start = self.text.len();
        match value.index() {
            Some(index) => {
                self.text.extend_from_slice(index.text());
                let from = self.members.len();
                self.members.extend(index.moved_to(start));
                if let Some(own) = self.members.get_mut(from) {
                    own.take_key(&member);
                }
            }
            None => {
                value.write(&mut self.text);
                member.end(self.text.len());
                self.members.push(member);
            }
        }
    }

    /// Adds copies of all members of `object`, which may belong to another document; adds none if it is not an object.
    /// Of equal keys the last one counts.
    pub fn members(&mut self, object: Value<'_>) {
        let Some(index) = object.index().filter(|index| !index.is_array()) else {
            for (key, value) in object.members().into_iter().flatten() {
                self.value(&key, value);
            }
            return;
        };
        let text = index.text();
        let inside = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
        if inside.trim_ascii().is_empty() {
            return;
        }
        self.comma();
        // The bracket before the members is not copied.
        let start = self.text.len() - 1;
        self.text.extend_from_slice(inside);
        self.members.extend(index.moved_to(start).skip(1));
    }

    /// Ends the object and returns it as a document.
    ///
    /// # Errors
    ///
    /// If the text is 4 GiB long or more, the limit of the parser.
    pub fn finish(mut self) -> Result<OwnedDocument, Error> {
        self.text.push(b'}');
        OwnedDocument::built(self.text, self.members)
    }

    fn comma(&mut self) {
        if self.text.len() > 1 {
            self.text.push(b',');
        }
    }

    /// Appends a key and its colon to the text, and returns its index entry, with the value starting at the end of
    /// the text.
    fn key(&mut self, key: &str) -> Member {
        self.comma();
        let start = self.text.len();
        write_string(key, &mut self.text);
        let end = self.text.len();
        self.text.push(b':');
        Member::with_key(&self.text, (start + 1, end - 1))
    }
}
