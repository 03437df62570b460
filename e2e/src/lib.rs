//! Tests over the binaries as processes, and what they need.
