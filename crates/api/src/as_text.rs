//! Values that go over a wire as the texts in which users write them.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{SerializeSeq, Serializer};

fn parsed<T: FromStr<Err: Display>, E: Error>(text: &str) -> Result<T, E> {
    text.parse().map_err(E::custom)
}

/// Serializes a value as the text that its `Display` writes.
pub(crate) fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Deserializes a text, and parses it with the `FromStr` of the type.
pub(crate) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    parsed(&String::deserialize(deserializer)?)
}

/// Serializes `Some` as the text of the value, and `None` as null; deserializes both.
pub(crate) mod option {
    use super::{Deserialize, Deserializer, Display, FromStr, Serializer, parsed};

    #[expect(clippy::ref_option, reason = "serde passes a reference")]
    pub(crate) fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        Option::<String>::deserialize(deserializer)?.map(|text| parsed(&text)).transpose()
    }
}

/// Serializes values as a list of their texts; deserializes such a list.
pub(crate) mod list {
    use super::{Deserialize, Deserializer, Display, FromStr, SerializeSeq, Serializer, parsed};

    pub(crate) fn serialize<T: Display, S: Serializer>(
        values: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(values.len()))?;
        values.iter().try_for_each(|value| list.serialize_element(&value.to_string()))?;
        list.end()
    }

    pub(crate) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| parsed(text)).collect()
    }
}
