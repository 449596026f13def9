//! How the plain types are read.

use super::{Read, ReadError, Reader};
use crate::json::{Json, JsonObject, Kind};

impl Read for String {
    #[inline]
    fn read(reader: &mut Reader<'_, '_>) -> Result<Self, ReadError> {
        Ok(reader.string()?.into_owned())
    }
}

impl Read for bool {
    fn read(reader: &mut Reader<'_, '_>) -> Result<Self, ReadError> {
        reader.bool()
    }
}

impl Read for Json {
    fn read(reader: &mut Reader<'_, '_>) -> Result<Self, ReadError> {
        reader.json()
    }
}

impl Read for JsonObject {
    fn read(reader: &mut Reader<'_, '_>) -> Result<Self, ReadError> {
        reader.expect(Kind::Object, "an object")?;
        reader.json().map(Self::from_checked)
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(reader: &mut Reader<'_, '_>) -> Result<Self, ReadError> {
        reader.array()
    }
}

impl<T: Read> Read for Box<T> {
    fn read(reader: &mut Reader<'_, '_>) -> Result<Self, ReadError> {
        T::read(reader).map(Box::new)
    }
}
