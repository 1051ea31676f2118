//go:build tools

// Package tools pins what stands beside the control plane: kwok plays the kubelets, helm installs real charts.
package tools

import (
	_ "helm.sh/helm/v3/cmd/helm"
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
