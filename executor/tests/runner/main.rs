//! The runner over a real link, as a process of its own: nothing here is a fake.

mod confinement;
mod descriptors;
mod ending;
mod fixture;
mod shell;
mod start;
