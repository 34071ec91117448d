//! Structures of fixed size that everything else is built on: memory is taken once, at the start.
//!
//! | module | holds | touched by |
//! |---|---|---|
//! | [`arena`] | values in numbered slots | one thread |
//! | [`links`] | lists of slots, apart from their values | one thread |
//! | [`bitset`] | a set of small numbers in borrowed words | one thread |
//! | [`table`] | an index from hashes to numbers | one thread |
//! | [`cells`] | every wallet's collateral, and which shards hear when it falls | all shards |
//! | [`ring`] | slots from one core to one other core | two threads |
//! | [`pages`] | memory that is resident before its first use | |
//! | [`mapping`] | words in plain memory or in a file, in huge pages | all who have it mapped |
//! | [`ahead`] | prefetches of cache lines | |
//! | [`padded`] | a value alone on its cache lines | |
//! | [`sections`] | how a state becomes sections of bytes | |
//! | [`wire`] | how values become bytes, in frames and in snapshots | |
//! | [`sync`] | the atomics of all these, or loom's models of them | |

pub mod ahead;
pub mod arena;
pub mod bitset;
pub mod cells;
pub mod links;
pub mod mapping;
pub mod padded;
pub mod pages;
pub mod ring;
pub mod sections;
pub mod sync;
pub mod table;
pub mod wire;
