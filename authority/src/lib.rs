//! What may run, and on whose word: pure decisions, no IO, no clock.
