// Command gitopsengine follows a cluster with the cache of Argo CD's engine, with Argo CD's settings.
package main

import (
	"encoding/json"
	"flag"
	"io"
	"os"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/cespare/xxhash/v2"
	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

const tracking = "argocd.argoproj.io/tracking-id"

// info is kept for each object, besides its references.
type info struct {
	app    string
	health *health.HealthStatus
	images []string
	labels map[string]string
	hash   uint64
}

type filter struct{}

func (filter) IsExcludedResource(group, kind, _ string) bool {
	return group == "events.k8s.io" || group == "metrics.k8s.io" || group == "" && kind == "Event"
}

// populate returns the handler of each object, which does the main part of what Argo CD's controller does.
func populate(keepNone bool) cache.OnPopulateResourceInfoHandler {
	return func(object *unstructured.Unstructured, isRoot bool) (any, bool) {
		own := &info{}
		own.health, _ = health.GetResourceHealth(object, nil)
		own.app, _, _ = strings.Cut(object.GetAnnotations()[tracking], ":")
		if object.GetKind() == "Pod" {
			own.labels = object.GetLabels()
			containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "containers")
			for _, container := range containers {
				if fields, ok := container.(map[string]any); ok {
					image, _ := fields["image"].(string)
					own.images = append(own.images, image)
				}
			}
		}
		if own.app != "" && !keepNone {
			own.hash = hash(object)
		}
		isDefinition := object.GroupVersionKind().Group == "apiextensions.k8s.io"
		return own, !keepNone && (isRoot && own.app != "" || isDefinition)
	}
}

// hash returns a hash of the object without its status and versions. Argo CD ignores updates that do not change it.
func hash(object *unstructured.Unstructured) uint64 {
	whole := object.DeepCopy()
	for _, field := range [][]string{{"status"}, {"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}} {
		unstructured.RemoveNestedField(whole.Object, field...)
	}
	text, err := json.Marshal(whole.Object)
	must(err)
	return xxhash.Sum64(text)
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "diff" {
		compare(os.Args[2])
		return
	}
	kubeconfig := flag.String("kubeconfig", "", "file with the cluster")
	keep := flag.String("keep", "apps", "of which objects the manifest is kept: apps, none")
	flag.Parse()
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	must(err)
	config.QPS, config.Burst = -1, -1
	s := &subject{}
	live := cache.NewClusterCache(config,
		cache.SetSettings(cache.Settings{ResourcesFilter: filter{}}),
		cache.SetPopulateResourceInfoHandler(populate(*keep == "none")),
		cache.SetListPageSize(500), cache.SetListPageBufferSize(1), cache.SetListSemaphore(semaphore.NewWeighted(50)),
		cache.SetResyncTimeout(0), cache.SetWatchResyncTimeout(0),
		cache.SetBatchEventsProcessing(true), cache.SetEventProcessingInterval(100*time.Millisecond),
		cache.SetLogr(logr.Discard()),
	)
	live.OnResourceUpdated(func(now, before *cache.Resource, _ map[kube.ResourceKey]*cache.Resource) {
		if now != nil && before != nil {
			s.recorder.note(now.Ref.Namespace, now.Ref.Name)
		}
	})
	must(live.EnsureSynced())
	s.answers = func() answers { return answer(live) }
	s.queries = func(prefix string) any { return query(live, prefix) }
	s.obey(map[string]any{"synced": true, "objects": live.GetClusterInfo().ResourcesCount, "kinds": live.GetClusterInfo().APIsCount})
}

func appOf(resource *cache.Resource) string {
	if own, ok := resource.Info.(*info); ok {
		return own.app
	}
	return ""
}

func name(key kube.ResourceKey) string {
	return key.Group + "/" + key.Kind + "/" + key.Namespace + "/" + key.Name
}

// apps returns the apps by name, each with the keys of its objects without owners.
func apps(live cache.ClusterCache) map[string][]kube.ResourceKey {
	found := map[string][]kube.ResourceKey{}
	for key, resource := range live.FindResources("") {
		if app := appOf(resource); app != "" && len(resource.OwnerRefs) == 0 {
			found[app] = append(found[app], key)
		}
	}
	return found
}

// targets returns the objects that Git would declare for an app: the names of its live objects, without contents.
func targets(live cache.ClusterCache, keys []kube.ResourceKey) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, key := range keys {
		resource := live.FindResources(key.Namespace, func(r *cache.Resource) bool { return r.ResourceKey() == key })[key]
		target := &unstructured.Unstructured{}
		target.SetGroupVersionKind(resource.Ref.GroupVersionKind())
		target.SetNamespace(key.Namespace)
		target.SetName(key.Name)
		all = append(all, target)
	}
	return all
}

func answer(live cache.ClusterCache) answers {
	found := answers{Kinds: map[string]int{}, Trees: map[string]digest{}, Managed: map[string]digest{}}
	for key := range live.FindResources("") {
		found.Kinds[key.Group+"/"+key.Kind]++
	}
	for app, keys := range apps(live) {
		var nodes []string
		live.IterateHierarchyV2(keys, func(resource *cache.Resource, _ map[kube.ResourceKey]*cache.Resource) bool {
			nodes = append(nodes, name(resource.ResourceKey()))
			return true
		})
		found.Trees[app] = digestOf(nodes)
		managed, err := live.GetManagedLiveObjs(targets(live, keys), func(r *cache.Resource) bool { return appOf(r) == app })
		must(err)
		var names []string
		for key := range managed {
			names = append(names, name(key))
		}
		found.Managed[app] = digestOf(names)
	}
	return found
}

// spread returns the median and the 99th percentile in microseconds.
func spread(times []time.Duration) map[string]any {
	if len(times) == 0 {
		return nil
	}
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	at := func(part float64) float64 { return times[int(float64(len(times)-1)*part)].Seconds() * 1e6 }
	return map[string]any{"p50": at(0.5), "p99": at(0.99)}
}

func query(live cache.ClusterCache, prefix string) any {
	var nodes atomic.Int64
	count := func(*cache.Resource, map[kube.ResourceKey]*cache.Resource) bool {
		nodes.Add(1)
		return true
	}
	roots := apps(live)
	var trees, managed []time.Duration
	var names []string
	for app := range roots {
		if strings.HasPrefix(app, prefix) {
			names = append(names, app)
		}
	}
	sort.Strings(names)
	for _, app := range names {
		began := time.Now()
		live.IterateHierarchyV2(roots[app], count)
		trees = append(trees, time.Since(began))
	}
	total := nodes.Load()
	for n, app := range names {
		// Every tenth app is enough, because each takes milliseconds.
		if n%10 != 0 {
			continue
		}
		wanted := targets(live, roots[app])
		began := time.Now()
		_, err := live.GetManagedLiveObjs(wanted, func(r *cache.Resource) bool { return appOf(r) == app })
		must(err)
		managed = append(managed, time.Since(began))
	}
	return map[string]any{"apps": len(names), "nodes": total, "tree_us": spread(trees), "managed_us": spread(managed)}
}
