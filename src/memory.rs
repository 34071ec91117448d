//! The `memory` room.

pub mod padded;
pub mod ring;
pub mod sync;
