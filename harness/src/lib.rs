//! Sessions, the agent loop, HTTP and the store.
