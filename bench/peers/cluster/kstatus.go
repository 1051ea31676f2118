package main

import (
	"context"
	"sync"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/event"
	"github.com/fluxcd/cli-utils/pkg/kstatus/watcher"
	"github.com/fluxcd/cli-utils/pkg/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	clientmetadata "k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// followStatuses watches all Deployments with the watcher of kstatus, waits until each has a status, and obeys commands.
func followStatuses(config *rest.Config) {
	partial, err := clientmetadata.NewForConfig(config)
	must(err)
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	list, err := partial.Resource(deployments).List(context.Background(), metav1.ListOptions{ResourceVersion: "0"})
	must(err)
	var ids object.ObjMetadataSet
	for _, one := range list.Items {
		ids = append(ids, object.ObjMetadata{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: one.Namespace, Name: one.Name})
	}
	count := counted(config)
	began := time.Now()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	must(err)
	custom, err := dynamic.NewForConfig(config)
	must(err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	events := watcher.NewDefaultStatusWatcher(custom, mapper).Watch(context.Background(), ids, watcher.Options{})
	s := &subject{queries: func(string) any { return nil }}
	var lock sync.Mutex
	statuses := map[object.ObjMetadata]string{}
	all := make(chan struct{})
	told := float64(0)
	go func() {
		for one := range events {
			switch one.Type {
			case event.SyncEvent:
				lock.Lock()
				told = time.Since(began).Seconds()
				lock.Unlock()
			case event.ErrorEvent:
				must(one.Error)
			case event.ResourceUpdateEvent:
				id := one.Resource.Identifier
				s.recorder.note(id.Namespace, id.Name)
				lock.Lock()
				before := len(statuses)
				statuses[id] = string(one.Resource.Status)
				if before < len(ids) && len(statuses) == len(ids) {
					close(all)
				}
				lock.Unlock()
			}
		}
	}()
	<-all
	s.answers = func() answers {
		lock.Lock()
		defer lock.Unlock()
		found := map[string]int{}
		for _, status := range statuses {
			found[status]++
		}
		return answers{Kinds: map[string]int{"apps/Deployment": len(statuses)}, Statuses: found}
	}
	s.obey(map[string]any{"synced": true, "objects": len(ids), "requests": count.Load(), "seconds": time.Since(began).Seconds(), "sync_event": told})
}
