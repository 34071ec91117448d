//! The `json` room.
