//! The `memory` room.

pub mod cells;
pub mod padded;
pub mod ring;
pub mod sync;
