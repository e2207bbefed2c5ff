//! The two places where a sheet leaves a choice of form: a word or a mapping, one or a list.
//!
//! serde's untagged enums would do, but lose the position and the cause of an error within.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::sheet::spelling::{Phrase, Spelled};

/// A phrase, or a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordOr<W, M> {
    /// A phrase.
    Word(W),
    /// A mapping.
    Map(M),
}

impl<W: Spelled + Copy, M: Serialize> Serialize for WordOr<W, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            WordOr::Word(word) => Phrase(*word).serialize(serializer),
            WordOr::Map(map) => map.serialize(serializer),
        }
    }
}

impl<'de, W: Spelled, M: Deserialize<'de>> Deserialize<'de> for WordOr<W, M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WordOr<W, M>, D::Error> {
        struct Either<W, M>(PhantomData<(W, M)>);

        impl<'de, W: Spelled, M: Deserialize<'de>> Visitor<'de> for Either<W, M> {
            type Value = WordOr<W, M>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word or a mapping")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<WordOr<W, M>, E> {
                W::read(text).map(WordOr::Word).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WordOr<W, M>, A::Error> {
                M::deserialize(MapAccessDeserializer::new(map)).map(WordOr::Map)
            }
        }

        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// Phrases: written as one where there is one, as a list otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T: Spelled + Copy> Serialize for OneOrMany<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => Phrase(*one).serialize(serializer),
            many => serializer.collect_seq(many.iter().map(|one| Phrase(*one))),
        }
    }
}

impl<'de, T: Spelled> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OneOrMany<T>, D::Error> {
        struct Phrases<T>(PhantomData<T>);

        impl<'de, T: Spelled> Visitor<'de> for Phrases<T> {
            type Value = OneOrMany<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a phrase or a list of them")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<OneOrMany<T>, E> {
                T::read(text).map(|one| OneOrMany(vec![one])).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMany<T>, A::Error> {
                let mut many = Vec::new();
                while let Some(Phrase(one)) = list.next_element()? {
                    many.push(one);
                }
                Ok(OneOrMany(many))
            }
        }

        deserializer.deserialize_any(Phrases(PhantomData))
    }
}
