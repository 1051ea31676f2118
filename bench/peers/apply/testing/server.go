// Package testing stands in for k8s.io/kubernetes/cmd/kube-apiserver/app/testing: the tests get the API server that
// their task has started, in place of one of their own.
package testing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeconfig names the environment variable with the path of the server's kubeconfig.
const kubeconfig = "TAFFRAIL_KUBECONFIG"

// maxCleanup is the time within which all that a test created must be gone.
const maxCleanup = 30 * time.Second

// TearDownFunc ends the use of a server.
type TearDownFunc func()

// TestServerInstanceOptions are the options of a server of the tests' own; none of them applies here.
type TestServerInstanceOptions struct{}

// TestServer is a server as the tests see it.
type TestServer struct {
	ClientConfig      *restclient.Config
	TearDownFn        TearDownFunc
	EtcdClient        *clientv3.Client
	EtcdStoragePrefix string
}

// NewDefaultTestServerOptions returns the default options.
func NewDefaultTestServerOptions() *TestServerInstanceOptions { return &TestServerInstanceOptions{} }

// StartTestServerOrDie is StartTestServer for tests that cannot go on without.
func StartTestServerOrDie(t testing.TB, options *TestServerInstanceOptions, flags []string, storage *storagebackend.Config) *TestServer {
	server, err := StartTestServer(t, options, flags, storage)
	if err != nil {
		t.Fatal(err)
	}
	return &server
}

// StartTestServer returns the server, on which the next test finds nothing of this one. The task starts it with the
// flags that the tests ask for.
func StartTestServer(t testing.TB, _ *TestServerInstanceOptions, _ []string, _ *storagebackend.Config) (TestServer, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(kubeconfig))
	if err != nil {
		return TestServer{}, fmt.Errorf("%s: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = 1000, 10000
	// Reading deprecated kinds warns.
	fleeting := restclient.CopyConfig(config)
	fleeting.WarningHandler = restclient.NoWarnings{}
	before, err := everything(fleeting)
	if err != nil {
		return TestServer{}, err
	}
	isClean := false
	clean := func() {
		if isClean {
			return
		}
		isClean = true
		if err := restore(fleeting, before); err != nil {
			t.Errorf("the server keeps what the test created: %v", err)
		}
	}
	return TestServer{ClientConfig: config, TearDownFn: clean}, nil
}

type object struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// left lists the kinds that only the server itself writes, again and again.
var left = map[string]bool{"events": true, "leases": true, "componentstatuses": true}

// everything lists the objects of a server by their uid.
func everything(config *restclient.Config) (map[types.UID]object, error) {
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := discovered.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	all := map[types.UID]object{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			if left[resource.Name] {
				continue
			}
			of := version.WithResource(resource.Name)
			// A definition may have gone since.
			found, err := client.Resource(of).List(context.TODO(), metav1.ListOptions{})
			if err != nil {
				continue
			}
			for _, item := range found.Items {
				all[item.UID] = object{of, item.Namespace, item.Name}
			}
		}
	}
	return all, nil
}

// restore deletes all objects that are not in before, and waits until they are gone from the namespaces that stay.
func restore(config *restclient.Config, before map[types.UID]object) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	shared := map[string]bool{"": true}
	for _, object := range before {
		if object.resource.Resource == "namespaces" {
			shared[object.name] = true
		}
	}
	now, background := int64(0), metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &background}
	var kept error
	for end := time.Now().Add(maxCleanup); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		after, err := everything(config)
		if err != nil {
			return err
		}
		kept = nil
		for uid, object := range after {
			if _, stood := before[uid]; stood {
				continue
			}
			// What is left in a namespace that is gone disturbs no other test.
			if shared[object.namespace] {
				kept = errors.Join(kept, fmt.Errorf("%s %s/%s", object.resource.Resource, object.namespace, object.name))
			}
			at := client.Resource(object.resource).Namespace(object.namespace)
			// What cannot be deleted yet is tried again.
			_ = at.Delete(context.TODO(), object.name, options)
			switch object.resource.Resource {
			case "customresourcedefinitions":
				// The server itself removes its finalizer, after the objects.
			case "namespaces":
				// Its objects are deleted here, too, so that no controller is needed.
				finalize(core, object.name)
			default:
				unbound := []byte(`{"metadata":{"finalizers":null}}`)
				_, _ = at.Patch(context.TODO(), object.name, types.MergePatchType, unbound, metav1.PatchOptions{})
			}
		}
		if kept == nil {
			return nil
		}
	}
	return kept
}

// finalize removes what keeps a namespace; a failure shows in that it stays.
func finalize(core kubernetes.Interface, name string) {
	namespace, err := core.CoreV1().Namespaces().Get(context.TODO(), name, metav1.GetOptions{})
	if err != nil || namespace.DeletionTimestamp == nil {
		return
	}
	namespace.Spec.Finalizers = nil
	_, _ = core.CoreV1().Namespaces().Finalize(context.TODO(), namespace, metav1.UpdateOptions{})
}
