//! Integration tests of the status core.
