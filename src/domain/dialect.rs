//! Which venue's conventions a client follows: the family of its credential headers tells.

/// A family of credential headers. All three mean the same; a few values in answers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Dialect {
    /// `SERVICE_`: the interface specification to the letter.
    Service = 0,
    /// `KUEST_`.
    Kuest = 1,
    /// `POLY_`.
    Poly = 2,
}
