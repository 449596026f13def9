//! The table form of a message.

/// A message whose fields are members of one type, one to one: number, name, type.
///
/// `new` names the members in the order of the type's constructor, `set` the others. A member with
/// one fixed value, which is not stored, has that value in place of a type. `event` adds the base
/// fields that every event has.
macro_rules! message {
    (event $type:ident $($rest:tt)*) => {
        message! { @define [base 1] concat!(stringify!($type), "Event"); $type $($rest)* }
    };
    ($name:literal $type:ident $($rest:tt)*) => {
        message! { @define [] $name; $type $($rest)* }
    };
    (
        @define [$($base:ident $base_number:literal)?] $name:expr;
        $type:ident new($($new:ident),*) set($($set:ident),*) {
            $($number:literal $field:ident $(: $kind:ty)? $(as $wire:literal = $literal:literal)?,)*
        }
    ) => {
        impl $crate::proto::field::Message for $type {
            const NAME: &'static str = $name;
            const FIELDS: &'static [$crate::proto::field::Field] = &[
                $($crate::proto::field::Field::message($base_number, "base_event", "BaseEvent"),)?
                $(
                    $($crate::proto::field::Field::new::<$kind>($number, stringify!($field)))?
                    $($crate::proto::field::Field::string($number, $wire))?,
                )*
            ];

            #[allow(unused_mut, unused_variables)]
            fn read_fields(
                pieces: &$crate::proto::scan::Pieces<'_>,
                cx: &mut $crate::proto::context::Context<'_>,
            ) -> Result<Self, $crate::proto::fault::Fault> {
                use $crate::proto::field::FieldType;

                $(let mut $base: Option<$crate::proto::scan::Pieces<'_>> = None;)?
                $(
                    $(let mut $field = <$kind as FieldType>::Slot::default();)?
                    $(let mut $field: Option<&[u8]> = message!(@none $literal);)?
                )*
                let mut fields = pieces.fields();
                while let Some((number, raw)) = fields.next()? {
                    match number {
                        $($base_number => $crate::proto::field::Gather::gather(&mut $base, raw, cx)?,)?
                        $($number => {
                            $(<$kind as FieldType>::occur(&mut $field, raw, cx, stringify!($field))?;)?
                            $(message!(@gather $literal $field raw cx);)?
                        })*
                        _ => {}
                    }
                }
                $(let $base = $crate::proto::base::read($base.as_ref(), Self::TYPE, pieces, cx)?;)?
                $(
                    $(let $field = <$kind as FieldType>::finish($field, cx, stringify!($field))?;)?
                    $($crate::proto::field::literal($field, $literal, cx, $wire)?;)?
                )*
                let mut value = Self::new($($new),*);
                $(value.$set = $set;)*
                $(value.$base = $base;)?
                Ok(value)
            }

            fn write_fields(
                &self,
                writer: &mut $crate::proto::write::Writer<'_>,
            ) -> Result<(), $crate::encode_error::EncodeError> {
                $($crate::proto::base::write(&self.$base, Self::TYPE, writer)?;)?
                $(
                    $(<$kind as $crate::proto::field::FieldType>::write(
                        &self.$field,
                        $number,
                        stringify!($field),
                        writer,
                    )?;)?
                    $(writer.string($number, $literal);)?
                )*
                Ok(())
            }
        }
    };
    (@none $literal:literal) => { None };
    (@gather $literal:literal $field:ident $raw:ident $cx:ident) => {
        $crate::proto::field::Gather::gather(&mut $field, $raw, $cx)?
    };
}
