// Command cluster contains the Go parts of `cargo xtask bench cluster`: it fills the cluster, writes changes, and follows
// the cluster with the libraries that Taffrail is compared with.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "file with the cluster")
	namespaces := flag.Int("namespaces", 200, "load: how many namespaces of 500 objects")
	dense := flag.Int("dense", 0, "load: how many apps of 100 objects in the namespace `dense`, and nothing else")
	rate := flag.Int("rate", 200, "write: updates a second")
	seconds := flag.Int("seconds", 60, "write: for how long")
	kind := flag.String("kind", "pods", "write, watch: what")
	flag.Parse()
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	must(err)
	// Without this, the client's own rate limits would be measured.
	config.QPS, config.Burst = -1, -1
	switch flag.Arg(0) {
	case "load":
		load(config, *namespaces, *dense)
	case "write":
		write(config, *kind, *rate, *seconds)
	case "list":
		list(config)
	case "typed":
		follow(config, true)
	case "metadata":
		follow(config, false)
	case "kstatus":
		followStatuses(config)
	case "watch":
		watchBare(config, *kind)
	default:
		fmt.Fprintln(os.Stderr, "usage: cluster -kubeconfig FILE load|write|list|typed|metadata|kstatus|watch")
		os.Exit(2)
	}
}

// leftOut returns true for the kinds that no side of the comparison follows: events and metrics.
func leftOut(group, resource string) bool {
	return group == "events.k8s.io" || group == "metrics.k8s.io" || group == "" && resource == "events"
}

type served struct {
	schema.GroupVersionResource
	kind string
}

func (r served) name() string {
	return r.Group + "/" + r.kind
}

// resources returns the preferred resources that can be listed and watched, except those that are left out.
func resources(config *rest.Config) []served {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	must(err)
	lists, err := client.ServerPreferredResources()
	must(err)
	var found []served
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		must(err)
		for _, one := range list.APIResources {
			verbs := strings.Join(one.Verbs, " ")
			if strings.Contains(one.Name, "/") || leftOut(version.Group, one.Name) ||
				!strings.Contains(verbs, "list") || !strings.Contains(verbs, "watch") {
				continue
			}
			found = append(found, served{version.WithResource(one.Name), one.Kind})
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].String() < found[j].String() })
	return found
}
