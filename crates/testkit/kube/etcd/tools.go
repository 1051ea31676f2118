//go:build tools

// Package etcd pins the store of the control plane. It is a module of its own because `go install` of etcd
// refuses the replace directives in etcd's own go.mod.
package etcd

import _ "go.etcd.io/etcd/server/v3"
