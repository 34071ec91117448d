//! The `book` room.
