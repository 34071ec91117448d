//! The `shard` room.
