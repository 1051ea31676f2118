//! What is known of one cluster: its objects, and those that were not looked at.

use std::borrow::Cow;

use taffrail_object::{Object, ObjectKey, Projection};

/// An object of a cluster.
#[derive(Debug, Clone)]
pub struct Observed<'a> {
    /// Its key.
    pub key: &'a ObjectKey,
    /// The part of it that was read.
    pub object: Object<'a>,
    /// How much that is.
    pub projection: Projection,
}

/// The answer to "does this object exist?".
#[derive(Debug, Clone)]
pub enum Presence<'a, T = Observed<'a>> {
    /// It exists.
    Present(T),
    /// It is known not to exist.
    Absent,
    /// It was not looked at, or could not be; with the reason, for people.
    Unobserved(Cow<'a, str>),
}

impl<T> Presence<'_, T> {
    /// Returns the object, if it exists.
    #[inline]
    pub fn present(self) -> Option<T> {
        match self {
            Presence::Present(object) => Some(object),
            Presence::Absent | Presence::Unobserved(_) => None,
        }
    }
}
