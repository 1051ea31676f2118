//! The `taffrail` binary against real Kubernetes control planes: see `tests/it`.
