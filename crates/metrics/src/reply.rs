//! Answers of a server to instant queries.

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::error::{QueryError, shown};
use crate::sample::{KeptLabels, NAME, Series};

/// The maximum number of series in one answer.
pub(crate) const MAX_SERIES: usize = 150_000;

/// An answer to an instant query.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) series: Vec<Series>,
    /// The value of a scalar.
    pub(crate) scalar: Option<f64>,
    /// The time of the evaluation by the server's clock; `None` if the answer has no value.
    pub(crate) at: Option<f64>,
    /// The first reason why the answer may lack series; `None` if it is whole.
    pub(crate) partial: Option<String>,
}

/// The way in which answers are read.
#[derive(Clone)]
pub(crate) struct ReplyReader {
    /// The names of the labels that are kept.
    pub(crate) kept: Arc<KeptLabels>,
    /// The key by which labels are hashed: authors of labels cannot craft two sets with the same sum.
    pub(crate) key: RandomState,
}

impl ReplyReader {
    /// Reads an answer.
    ///
    /// # Errors
    /// If it is not one, reports an error, or has more than [`MAX_SERIES`] series.
    pub(crate) fn read(&self, body: &[u8]) -> Result<Reply, QueryError> {
        let mut deserializer = serde_json::Deserializer::from_slice(body);
        let read = EnvelopeSeed(self).deserialize(&mut deserializer);
        let read = read.and_then(|read| deserializer.end().map(|()| read));
        let Envelope { status, error_type, error, data, warnings, is_partial } =
            read.map_err(|source| match source.to_string().contains(TOO_MANY) {
                true => QueryError::TooManySeries { max: MAX_SERIES },
                false => QueryError::Malformed { source },
            })?;
        if status.as_deref() != Some("success") {
            let kind = shown(error_type.as_deref().unwrap_or("error"));
            let message = shown(error.as_deref().unwrap_or("the server does not say why"));
            return Err(QueryError::Refused { kind, message });
        }
        let Some(data) = data else { return Err(QueryError::NoData) };
        let partial = match warnings.first() {
            Some(warning) => Some(shown(warning)),
            None => is_partial.then(|| "the server marks its answer as partial".to_owned()),
        };
        Ok(Reply { series: data.series, scalar: data.scalar, at: data.at, partial })
    }
}

/// The text by which the reader recognises its own error.
const TOO_MANY: &str = "more series than are read";

#[derive(Default)]
struct Envelope {
    status: Option<String>,
    error_type: Option<String>,
    error: Option<String>,
    data: Option<Data>,
    warnings: Vec<String>,
    is_partial: bool,
}

#[derive(Default)]
struct Data {
    series: Vec<Series>,
    scalar: Option<f64>,
    at: Option<f64>,
}

struct EnvelopeSeed<'r>(&'r ReplyReader);

impl<'de> DeserializeSeed<'de> for EnvelopeSeed<'_> {
    type Value = Envelope;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Envelope, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EnvelopeSeed<'_> {
    type Value = Envelope;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an answer of Prometheus' API")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope, A::Error> {
        let mut read = Envelope::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &*key {
                "status" => read.status = map.next_value()?,
                "errorType" => read.error_type = map.next_value()?,
                "error" => read.error = map.next_value()?,
                "data" => read.data = map.next_value_seed(DataSeed(self.0))?,
                // `null` stands for none.
                "warnings" => read.warnings = map.next_value::<Option<Vec<String>>>()?.unwrap_or_default(),
                "isPartial" => read.is_partial = map.next_value::<Option<bool>>()?.unwrap_or_default(),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(read)
    }
}

struct DataSeed<'r>(&'r ReplyReader);

impl<'de> DeserializeSeed<'de> for DataSeed<'_> {
    type Value = Option<Data>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Data>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DataSeed<'_> {
    type Value = Option<Data>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the data of an answer")
    }

    fn visit_unit<E>(self) -> Result<Option<Data>, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Data>, A::Error> {
        let mut data = Data::default();
        let mut is_known = false;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &*key {
                "resultType" => {
                    let kind: Cow<'de, str> = map.next_value()?;
                    is_known = matches!(&*kind, "vector" | "scalar");
                    if !is_known {
                        return Err(A::Error::custom(format!("unexpected type of result: {}", shown(&kind))));
                    }
                }
                "result" => data = map.next_value_seed(ResultSeed(self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(is_known.then_some(data))
    }
}

/// The result of a query: a list of series, or a pair of a time and a value.
struct ResultSeed<'r>(&'r ReplyReader);

impl<'de> DeserializeSeed<'de> for ResultSeed<'_> {
    type Value = Data;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Data, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ResultSeed<'_> {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of series, or a scalar")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Data, A::Error> {
        let mut data = Data::default();
        while let Some(item) = seq.next_element_seed(ItemSeed(self.0))? {
            match item {
                Item::Series(..) if data.series.len() >= MAX_SERIES => {
                    return Err(A::Error::custom(TOO_MANY));
                }
                Item::Series(series, at) => {
                    data.at = at.or(data.at);
                    data.series.push(series);
                }
                Item::Time(at) => data.at = Some(at),
                Item::Value(value) => data.scalar = Some(value),
            }
        }
        Ok(data)
    }
}

enum Item {
    /// A series, and the time of its value.
    Series(Series, Option<f64>),
    /// The time of a scalar.
    Time(f64),
    /// The value of a scalar.
    Value(f64),
}

struct ItemSeed<'r>(&'r ReplyReader);

impl<'de> DeserializeSeed<'de> for ItemSeed<'_> {
    type Value = Item;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Item, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ItemSeed<'_> {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a series, or a part of a scalar")
    }

    fn visit_f64<E>(self, time: f64) -> Result<Item, E> {
        Ok(Item::Time(time))
    }

    fn visit_u64<E>(self, time: u64) -> Result<Item, E> {
        Ok(Item::Time(time as f64))
    }

    fn visit_i64<E>(self, time: i64) -> Result<Item, E> {
        Ok(Item::Time(time as f64))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Item, E> {
        number(text).map(Item::Value)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
        let (mut labels, mut sum, mut value, mut at) = (Vec::new(), 0, None, None);
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &*key {
                "metric" => (labels, sum) = map.next_value_seed(LabelsSeed(self.0))?,
                "value" => {
                    let (time, text) = map.next_value::<(f64, Cow<'de, str>)>()?;
                    // One value that is not a number costs no other series.
                    (value, at) = (text.parse().ok(), Some(time));
                }
                // A native histogram has no value.
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Item::Series(Series { labels, sum, value: value.unwrap_or(f64::NAN) }, at))
    }
}

/// Parses a number as Prometheus writes it: also `NaN`, `+Inf` and `-Inf`.
fn number<E: serde::de::Error>(text: &str) -> Result<f64, E> {
    text.parse().map_err(|_| E::custom(format!("not a number: {}", shown(text))))
}

struct LabelsSeed<'r>(&'r ReplyReader);

impl<'de> DeserializeSeed<'de> for LabelsSeed<'_> {
    type Value = (Vec<(Arc<str>, Box<str>)>, u64);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for LabelsSeed<'_> {
    type Value = (Vec<(Arc<str>, Box<str>)>, u64);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("labels")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut labels, mut sum) = (Vec::new(), 0_u64);
        while let Some((key, value)) = map.next_entry::<Cow<'de, str>, Cow<'de, str>>()? {
            if &*key != NAME {
                sum = sum.wrapping_add(self.0.key.hash_one((&*key, &*value)));
            }
            if let Some(kept) = self.0.kept.get(&*key) {
                labels.push((Arc::clone(kept), value.as_ref().into()));
            }
        }
        Ok((labels, sum))
    }
}
