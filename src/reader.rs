//! The `reader` room.
