//! The `ledger` room.
