//! The `registrar` room.
