//! Entry point of the operator.

fn main() {}
