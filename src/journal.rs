//! The `journal` room.

pub mod layout;
