//! Scripts by group and kind.
