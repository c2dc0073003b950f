//! A small JSON reader for settings. `serde_json` with the paths of its errors is a third of a small
//! component, and compiling it a third of the time until a policy serves: mostly it prints floats.

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor, value::StrDeserializer,
};
use serde::forward_to_deserialize_any;

use super::error::SettingsError;
use super::number::{self, Number};
use super::text;

type Result<T> = std::result::Result<T, SettingsError>;

/// Deepest nesting of lists and objects: each level takes stack.
const DEPTH_MAX: u32 = 64;

/// Reads one value after the other.
pub(super) struct JsonReader<'de> {
    pub(super) json: &'de str,
    /// Bytes that have been read.
    pub(super) at: usize,
    depth: u32,
}

/// The entries of a list or an object.
struct Entries<'r, 'de> {
    reader: &'r mut JsonReader<'de>,
    is_first: bool,
    /// The position in a list.
    index: usize,
    /// The key whose value comes next, in an object.
    key: String,
}

/// A key of an object; numbers are read from it too.
struct Key<'k>(&'k str);

/// An enum's variant with content: `{"name": content}`.
struct Tagged<'r, 'de>(&'r mut JsonReader<'de>);

// === impl JsonReader ===

impl<'de> JsonReader<'de> {
    pub(super) fn new(json: &'de str) -> Self {
        Self {
            json,
            at: 0,
            depth: 0,
        }
    }

    /// Refuses text after the value.
    pub(super) fn end(&mut self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end")),
        }
    }

    /// The next byte that is no white space.
    #[inline(never)]
    fn peek(&mut self) -> Option<u8> {
        loop {
            let next = self.json.as_bytes().get(self.at).copied();
            if !matches!(next, Some(b' ' | b'\t' | b'\n' | b'\r')) {
                return next;
            }
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    #[inline(never)]
    fn require(&mut self, byte: u8, what: &str) -> Result<()> {
        match self.take(byte) {
            true => Ok(()),
            false => Err(self.expected(what)),
        }
    }

    #[inline(never)]
    fn take_word(&mut self, word: &str) -> bool {
        let end = self.at + word.len();
        let is_next = self.json.as_bytes().get(self.at..end) == Some(word.as_bytes());
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    #[cold]
    #[inline(never)]
    fn expected(&self, what: &str) -> SettingsError {
        let (what, place) = (what.to_owned(), self.at.to_string());
        SettingsError::new(["JSON: expected ", &what, " at byte ", &place].concat())
    }

    #[inline(never)] // One copy for all types of settings.
    fn string(&mut self) -> Result<text::Text<'de>> {
        self.require(b'"', "a string")?;
        text::read(self.json, &mut self.at).ok_or_else(|| self.expected("a string"))
    }

    fn entries<T>(
        &mut self,
        close: u8,
        read: impl FnOnce(&mut Entries<'_, 'de>) -> Result<T>,
    ) -> Result<T> {
        self.at += 1;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.expected("less nesting"));
        }
        let mut entries = Entries {
            reader: self,
            is_first: true,
            index: 0,
            key: String::new(),
        };
        let value = read(&mut entries)?;
        self.depth -= 1;
        let what = if close == b']' {
            "a comma or `]`"
        } else {
            "a comma or `}`"
        };
        self.require(close, what)?;
        Ok(value)
    }
}

impl<'de> Deserializer<'de> for &mut JsonReader<'de> {
    type Error = SettingsError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.peek() {
            Some(b'{') => self.entries(b'}', |entries| visitor.visit_map(entries)),
            Some(b'[') => self.entries(b']', |entries| visitor.visit_seq(entries)),
            Some(b'"') => match self.string()? {
                text::Text::Borrowed(text) => visitor.visit_borrowed_str(text),
                text::Text::Owned(text) => visitor.visit_string(text),
            },
            Some(b'-' | b'0'..=b'9') => match number::read(self.json.as_bytes(), &mut self.at) {
                Some(Number::Natural(number)) => visitor.visit_u64(number),
                Some(Number::Negative(number)) => visitor.visit_i64(number),
                Some(Number::Float(number)) => visitor.visit_f64(number),
                None => Err(self.expected("a finite number")),
            },
            _ if self.take_word("true") => visitor.visit_bool(true),
            _ if self.take_word("false") => visitor.visit_bool(false),
            _ if self.take_word("null") => visitor.visit_unit(),
            _ => Err(self.expected("a value")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.peek() == Some(b'n') && self.take_word("null") {
            true => visitor.visit_none(),
            false => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        if self.peek() == Some(b'{') {
            self.at += 1;
            let value = visitor.visit_enum(Tagged(self))?;
            self.require(b'}', "`}`")?;
            return Ok(value);
        }
        let name = self.string()?;
        let name: StrDeserializer<'_, SettingsError> = name.as_str().into_deserializer();
        visitor.visit_enum(name)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

// === impl Entries ===

impl Entries<'_, '_> {
    /// Whether another entry follows.
    #[inline(never)]
    fn next(&mut self, close: u8) -> Result<bool> {
        let is_first = std::mem::take(&mut self.is_first);
        if self.reader.peek() == Some(close) {
            return Ok(false);
        }
        if !is_first {
            let what = if close == b']' {
                "a comma or `]`"
            } else {
                "a comma or `}`"
            };
            self.reader.require(b',', what)?;
        }
        Ok(true)
    }
}

impl<'de> SeqAccess<'de> for &mut Entries<'_, 'de> {
    type Error = SettingsError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        if !self.next(b']')? {
            return Ok(None);
        }
        let value = seed.deserialize(&mut *self.reader);
        let value = value.map_err(|error| error.in_list(self.index))?;
        self.index += 1;
        Ok(Some(value))
    }
}

impl<'de> MapAccess<'de> for &mut Entries<'_, 'de> {
    type Error = SettingsError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        if !self.next(b'}')? {
            return Ok(None);
        }
        self.key = self.reader.string()?.into_owned();
        self.reader.require(b':', "`:`")?;
        let key = seed.deserialize(Key(&self.key));
        key.map(Some).map_err(|error| error.in_field(&self.key))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value> {
        let value = seed.deserialize(&mut *self.reader);
        value.map_err(|error| error.in_field(&self.key))
    }
}

// === impl Key ===

macro_rules! numbers_in_keys {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            let mut at = 0;
            let number = number::read(self.0.as_bytes(), &mut at);
            match number.filter(|_| at == self.0.len()) {
                Some(Number::Natural(number)) => visitor.visit_u64(number),
                Some(Number::Negative(number)) => visitor.visit_i64(number),
                _ => visitor.visit_str(self.0),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Key<'_> {
    type Error = SettingsError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let name: StrDeserializer<'_, SettingsError> = self.0.into_deserializer();
        visitor.visit_enum(name)
    }

    numbers_in_keys! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64
    }

    forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

// === impl Tagged ===

impl<'de> EnumAccess<'de> for Tagged<'_, 'de> {
    type Error = SettingsError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self)> {
        let name = self.0.string()?;
        self.0.require(b':', "`:`")?;
        let name: StrDeserializer<'_, SettingsError> = name.as_str().into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Tagged<'_, 'de> {
    type Error = SettingsError;

    fn unit_variant(self) -> Result<()> {
        serde::Deserialize::deserialize(self.0)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value> {
        self.0.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.0.deserialize_any(visitor)
    }
}
