//! Something that all tests use is away for a while, so nothing runs beside these: each waits for those before it. They stand in
//! one place whose name comes first, since whatever starts between two of them is waited for, and waits.

#[path = "absence/crash.rs"]
mod crash;
#[path = "absence/outage.rs"]
mod outage;
#[path = "absence/reaching_in.rs"]
mod reaching_in;
#[path = "absence/upgrade.rs"]
mod upgrade;
