//! The resources of `mooring.dev/v1alpha1`.
