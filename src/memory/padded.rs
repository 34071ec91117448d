//! A value alone on its cache lines.
//!
//! Two values that different cores write must not share a line, and x86 fetches lines in pairs:
//! hence 128 bytes and not 64.

/// Holds a `T` on 128 bytes (or a multiple) of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

const _: () = assert!(size_of::<Padded<u8>>() == 128, "a padded value shares no pair of lines");

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
