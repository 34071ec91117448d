//! The `outcry` command.

fn main() {}
