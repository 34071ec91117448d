//! The `auth` room.
