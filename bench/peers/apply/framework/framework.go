// Package framework stands in for k8s.io/kubernetes/test/integration/framework, without an etcd: the task has started
// the server with its store.
package framework

import (
	"net/http"
	"os"
	"testing"

	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/transport"
)

// SharedEtcd returns the store of the tests, which has none of its own.
func SharedEtcd() *storagebackend.Config { return &storagebackend.Config{} }

// DefaultTestServerFlags returns no flags, since the server runs already.
func DefaultTestServerFlags() []string { return nil }

// EtcdMain runs the tests.
func EtcdMain(tests func() int) { os.Exit(tests()) }

// AssertRequestResponseAsCBOR ends a test that needs bodies in CBOR, which a server serves only with a feature gate.
func AssertRequestResponseAsCBOR(t testing.TB) transport.WrapperFunc {
	return func(inner http.RoundTripper) http.RoundTripper {
		t.Error("the server is not started with the feature gate CBORServingAndStorage")
		return inner
	}
}
