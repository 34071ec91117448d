//! The `memory` room.
