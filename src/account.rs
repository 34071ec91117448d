//! The `account` room.
