//! The lives of a session, one file for each part of them.

mod begins;
mod ends;
mod hindrances;
mod keeps;
mod losses;
mod sleeps;
