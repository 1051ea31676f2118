package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

var informerChecks = []check{
	{"informer: typed, by streaming list", func(ctx context.Context, s *server) error {
		before := s.asked.count()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		factory := informers.NewSharedInformerFactoryWithOptions(s.typed, 0, informers.WithNamespace(s.namespace))
		maps := factory.Core().V1().ConfigMaps()
		if err := s.follows(ctx, maps.Informer(), func() { factory.StartWithContext(ctx) }, "typed"); err != nil {
			return err
		}
		found, err := maps.Lister().ConfigMaps(s.namespace).List(labels.SelectorFromSet(labels.Set{"test": "page"}))
		if err != nil {
			return err
		}
		if len(found) != 24 {
			return fmt.Errorf("the lister has %d objects", len(found))
		}
		streamed := false
		for _, one := range s.asked.since(before) {
			query := one.url.Query()
			streamed = streamed || query.Get("sendInitialEvents") == "true"
			// The check itself lists, too, but not from a cache.
			if query.Get("watch") == "" && query.Get("resourceVersion") == "0" {
				return fmt.Errorf("it fell back to a list: %s", one.url)
			}
		}
		if !streamed {
			return errors.New("no list was streamed")
		}
		return nil
	}},
	{"informer: typed, by list and watch", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		source := plainLists{&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return client.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return client.Watch(ctx, options)
			},
		}}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		informer := cache.NewSharedInformer(source, &corev1.ConfigMap{}, 0)
		return s.follows(ctx, informer, func() { go informer.RunWithContext(ctx) }, "listed")
	}},
	{"informer: dynamic", func(ctx context.Context, s *server) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.dynamic, 0, s.namespace, nil)
		informer := factory.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps")).Informer()
		return s.follows(ctx, informer, func() { factory.Start(ctx.Done()) }, "dynamic")
	}},
	{"informer: metadata only", func(ctx context.Context, s *server) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		factory := metadatainformer.NewFilteredSharedInformerFactory(s.metadata, 0, s.namespace, nil)
		informer := factory.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps")).Informer()
		return s.follows(ctx, informer, func() { factory.Start(ctx.Done()) }, "metadata")
	}},
	{"informer: of a custom kind", func(ctx context.Context, s *server) error {
		resource, err := s.widgets(ctx)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.dynamic, 0, s.namespace, nil)
		informer := factory.ForResource(resource).Informer()
		factory.Start(ctx.Done())
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return errors.New("it never synced")
		}
		client := s.dynamic.Resource(resource).Namespace(s.namespace)
		widget := widget(resource, "informed")
		if _, err := client.Create(ctx, widget, metav1.CreateOptions{}); err != nil {
			return err
		}
		return until(ctx, "the cache has the object", func() (bool, error) {
			_, found, err := informer.GetStore().GetByKey(s.namespace + "/informed")
			return found, err
		})
	}},
	{"informer: comes back after its version expired", func(ctx context.Context, s *server) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		if first, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: "1"}); err == nil {
			event := <-first.ResultChan()
			first.Stop()
			if event.Type == watch.Added {
				return unsupported{"the server still knows that state"}
			}
		}
		var watches, lists atomic.Int32
		source := plainLists{&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				lists.Add(1)
				return client.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				if watches.Add(1) == 1 {
					// The version is as old as after a long sleep.
					options.ResourceVersion = "1"
				}
				return client.Watch(ctx, options)
			},
		}}
		informer := cache.NewSharedInformer(source, &corev1.ConfigMap{}, 0)
		go informer.RunWithContext(ctx)
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return errors.New("it never synced")
		}
		if err := until(ctx, "it lists again", func() (bool, error) { return lists.Load() > 1, nil }); err != nil {
			return err
		}
		if err := s.maps(ctx, "late", 1); err != nil {
			return err
		}
		return until(ctx, "the cache has the object", func() (bool, error) {
			_, found, err := informer.GetStore().GetByKey(s.namespace + "/late-0")
			return found, err
		})
	}},
	{"informer: UntilWithSync", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		source := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return client.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return client.Watch(ctx, options)
			},
		}
		go func() {
			time.Sleep(200 * time.Millisecond)
			_ = s.maps(ctx, "awaited", 1)
		}()
		_, err := watchtools.UntilWithSync(ctx, source, &corev1.ConfigMap{}, nil, func(event watch.Event) (bool, error) {
			return event.Type == watch.Added && event.Object.(*corev1.ConfigMap).Name == "awaited-0", nil
		})
		return err
	}},
}

// plainLists makes a reflector list in pages: it does not stream lists.
type plainLists struct{ *cache.ListWatch }

func (plainLists) IsWatchListSemanticsUnSupported() bool { return true }

// follows starts an informer of ConfigMaps, and fails unless its cache has all of them and it reports that one is added,
// changed and deleted.
func (s *server) follows(ctx context.Context, informer cache.SharedInformer, start func(), name string) error {
	told := make(chan string, 1024)
	tell := func(what string, object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if one, ok := object.(metav1.Object); ok && one.GetName() == name {
			told <- what
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell("added", object) },
		UpdateFunc: func(_, object any) { tell("changed", object) },
		DeleteFunc: func(object any) { tell("deleted", object) },
	})
	if err != nil {
		return err
	}
	start()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("it never synced")
	}
	list, err := s.typed.CoreV1().ConfigMaps(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if have := len(informer.GetStore().List()); have != len(list.Items) {
		return fmt.Errorf("the cache has %d objects of %d", have, len(list.Items))
	}
	if err := s.live(ctx, name); err != nil {
		return err
	}
	for _, want := range []string{"added", "changed", "deleted"} {
		select {
		case got := <-told:
			if got != want {
				return fmt.Errorf("%s instead of %s", got, want)
			}
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s", want)
		}
	}
	return nil
}

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// widgets defines the kind Widget unless it is defined, waits until it is served, and returns it.
func (s *server) widgets(ctx context.Context) (schema.GroupVersionResource, error) {
	group := s.namespace + ".example.com"
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name": "widgets." + group,
		},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"subresources": map[string]any{
					"status": map[string]any{},
					"scale":  map[string]any{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
				},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{
						"spec": map[string]any{"type": "object", "properties": map[string]any{
							"replicas": map[string]any{"type": "integer", "minimum": int64(0)},
						}},
						"status": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
					},
				}},
			}},
		},
	}}
	_, err := s.dynamic.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return resource, err
	}
	return resource, until(ctx, "the kind is served", func() (bool, error) {
		_, err := s.dynamic.Resource(resource).Namespace(s.namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

func widget(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resource.GroupVersion().String(), "kind": "Widget",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"replicas": int64(1)},
	}}
}
