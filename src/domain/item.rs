//! What events mention besides markets.

/// A kind of thing that several events share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ItemKind {
    /// A tag.
    Tag = 0,
    /// A series of events.
    Series = 1,
    /// A creator of events.
    Creator = 2,
}

impl ItemKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Tag, Self::Series, Self::Creator];

    /// The kind of a stored byte.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Tag),
            1 => Some(Self::Series),
            2 => Some(Self::Creator),
            _ => None,
        }
    }

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
