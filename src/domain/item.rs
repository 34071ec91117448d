//! What events mention besides markets.

use super::byte::byte_enum;

byte_enum! {
    /// A kind of thing that several events share.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ItemKind {
        /// A tag.
        Tag = 0,
        /// A series of events.
        Series = 1,
        /// A creator of events.
        Creator = 2,
    }
}

impl ItemKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Tag, Self::Series, Self::Creator];

    /// Its name for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Tag => "tag",
            Self::Series => "series",
            Self::Creator => "creator",
        }
    }
}
