//! The `registry` room.
