//! The gRPC edge: services, limits and how an error looks outside.

mod status;
