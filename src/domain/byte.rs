//! Enums that are stored as one byte.

/// Declares an enum whose variants are stored, and mostly signed or sent, as the given bytes. These never change.
macro_rules! byte_enum {
    ($(#[$about:meta])* $visibility:vis enum $name:ident {
        $( $(#[$doc:meta])* $variant:ident = $byte:literal, )*
    }) => {
        $(#[$about])*
        #[repr(u8)]
        $visibility enum $name {
            $( $(#[$doc])* $variant = $byte, )*
        }

        impl $name {
            /// The variant of a byte; none if there is no such variant.
            #[must_use]
            $visibility const fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $( $byte => Some(Self::$variant), )*
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use byte_enum;
