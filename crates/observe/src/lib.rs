//! Reads and follows Kubernetes clusters, and dumps of clusters.
