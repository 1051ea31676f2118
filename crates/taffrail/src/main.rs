//! The Taffrail command line.
fn main() {}
