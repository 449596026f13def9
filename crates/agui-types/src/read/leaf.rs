//! How the plain types are read.

use super::{Read, ReadError, ReadErrorKind, Reader};
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
        let offset = reader.offset();
        Self::try_from(reader.json()?).map_err(|error| {
            ReadError::new(
                ReadErrorKind::WrongType,
                offset,
                "an object",
                error.to_string(),
            )
        })
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
