//! The `catalog` room.
