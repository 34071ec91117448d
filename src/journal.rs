//! The `journal` room.
