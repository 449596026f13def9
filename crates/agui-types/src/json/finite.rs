//! Whether every number in a value is a JSON number.

use std::fmt::Display;

use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::{Error, Result};

/// Fails where a number is infinite or no number: `serde_json` writes it as `null`, and what comes
/// out is no longer what went in.
pub(super) fn check<T: Serialize + ?Sized>(value: &T) -> Result<()> {
    value.serialize(Finite)
}

/// A serialiser that writes nothing and looks at numbers only.
#[derive(Clone, Copy)]
struct Finite;

fn finite(value: f64) -> Result<()> {
    if value.is_finite() {
        return Ok(());
    }
    Err(Error::custom(format!("a JSON number must be finite, and {value} is not")))
}

macro_rules! pass {
    ($($method:ident($($type:ty),*);)*) => {$(
        fn $method(self $(, _: $type)*) -> Result<()> {
            Ok(())
        }
    )*};
}

impl Serializer for Finite {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    pass! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_i128(i128);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_u128(u128);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(&'static str);
        serialize_unit_variant(&'static str, u32, &'static str);
    }

    fn serialize_f32(self, value: f32) -> Result<()> {
        finite(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<()> {
        finite(value)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        check(value)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<()> {
        check(value)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<()> {
        check(value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self> {
        Ok(self)
    }

    fn collect_str<T: Display + ?Sized>(self, _: &T) -> Result<()> {
        Ok(())
    }
}

macro_rules! parts {
    ($($name:ident: $method:ident($($label:ty)?);)*) => {$(
        impl $name for Finite {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $(_: $label,)?
                value: &T,
            ) -> Result<()> {
                check(value)
            }

            fn end(self) -> Result<()> {
                Ok(())
            }
        }
    )*};
}

parts! {
    SerializeSeq: serialize_element();
    SerializeTuple: serialize_element();
    SerializeTupleStruct: serialize_field();
    SerializeTupleVariant: serialize_field();
    SerializeStruct: serialize_field(&'static str);
    SerializeStructVariant: serialize_field(&'static str);
}

impl SerializeMap for Finite {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Result<()> {
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        check(value)
    }

    fn end(self) -> Result<()> {
        Ok(())
    }
}
