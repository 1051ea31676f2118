package main

import (
	"context"
	"net/http"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	clientmetadata "k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// counting counts the requests of a client.
type counting struct {
	inner http.RoundTripper
	count *atomic.Int64
}

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	c.count.Add(1)
	return c.inner.RoundTrip(request)
}

func counted(config *rest.Config) *atomic.Int64 {
	count := &atomic.Int64{}
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return counting{inner, count} })
	return count
}

// follow follows all kinds by informers. If whole is true, they keep whole objects, which come as Protobuf if the kind has
// a Go type; else they keep metadata alone.
func follow(config *rest.Config, whole bool) {
	count := counted(config)
	all := resources(config)
	s := &subject{queries: func(string) any { return nil }}
	handler := cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, object any) {
		if accessor, ok := object.(metav1.Object); ok {
			s.recorder.note(accessor.GetNamespace(), accessor.GetName())
		}
	}}
	binary := rest.CopyConfig(config)
	binary.ContentType = "application/vnd.kubernetes.protobuf"
	binary.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	typed, err := kubernetes.NewForConfig(binary)
	must(err)
	custom, err := dynamic.NewForConfig(config)
	must(err)
	partial, err := clientmetadata.NewForConfig(binary)
	must(err)
	typedFactory := informers.NewSharedInformerFactory(typed, 0)
	customFactory := dynamicinformer.NewDynamicSharedInformerFactory(custom, 0)
	partialFactory := metadatainformer.NewSharedInformerFactory(partial, 0)
	stores := map[string]cache.SharedIndexInformer{}
	for _, one := range all {
		var informer cache.SharedIndexInformer
		switch {
		case !whole:
			informer = partialFactory.ForResource(one.GroupVersionResource).Informer()
		case scheme.Scheme.Recognizes(one.GroupVersion().WithKind(one.kind)):
			if generic, err := typedFactory.ForResource(one.GroupVersionResource); err == nil {
				informer = generic.Informer()
			}
		}
		if informer == nil {
			informer = customFactory.ForResource(one.GroupVersionResource).Informer()
		}
		_, err := informer.AddEventHandler(handler)
		must(err)
		stores[one.name()] = informer
	}
	stop := context.Background().Done()
	typedFactory.Start(stop)
	customFactory.Start(stop)
	partialFactory.Start(stop)
	objects := 0
	for _, informer := range stores {
		cache.WaitForCacheSync(stop, informer.HasSynced)
		objects += len(informer.GetStore().ListKeys())
	}
	s.answers = func() answers {
		kinds := map[string]int{}
		for name, informer := range stores {
			kinds[name] = len(informer.GetStore().ListKeys())
		}
		return answers{Kinds: kinds}
	}
	s.obey(map[string]any{"synced": true, "objects": objects, "requests": count.Load(), "kinds": len(all)})
}
