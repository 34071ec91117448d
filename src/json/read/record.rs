//! Objects spread over records: one slot for each name that somebody reads. A few names that nobody reads are passed over,
//! but for one that one of ours is misspelt as: what it was to say would be lost, such as `post_only`.

/// Makes a record type and its `collect`, which fills it from an object's entries. A name that
/// stands twice is refused even if both values are equal.
macro_rules! record {
    ($name:ident { $( $field:ident = $text:literal, )* }) => {
        #[derive(Default)]
        struct $name<'t, 'b> { $( $field: $crate::json::read::tape::Value<'t, 'b>, )* }

        impl<'t, 'b> $name<'t, 'b> {
            fn collect(
                value: $crate::json::read::tape::Value<'t, 'b>,
                field: &'static str,
            ) -> Result<Self, $crate::json::read::ReadError> {
                let mut record = Self::default();
                let mut others = 0;
                for (name, value) in $crate::json::read::field::entries(value, field)? {
                    match name {
                        $( $text => $crate::json::read::field::put_once(&mut record.$field, value, $text)?, )*
                        _ => {
                            others += 1;
                            $crate::json::read::field::judge_other((name, others), field, &[$( $text, )*])?;
                        }
                    }
                }
                Ok(record)
            }
        }
    };
}

pub(super) use record;
