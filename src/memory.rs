//! The `memory` room.

pub mod arena;
pub mod bitset;
pub mod cells;
pub mod padded;
pub mod ring;
pub mod sync;
pub mod table;
