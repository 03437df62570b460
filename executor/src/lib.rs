//! Files and commands of one environment.
