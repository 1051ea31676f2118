package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
)

var discoveryChecks = []check{
	{"discovery: version", func(ctx context.Context, s *server) error {
		version, err := s.typed.Discovery().ServerVersion()
		if err == nil && (version.Major != "1" || version.Minor == "") {
			err = fmt.Errorf("%+v", version)
		}
		return err
	}},
	{"discovery: aggregated", func(ctx context.Context, s *server) error {
		before := s.asked.count()
		client, err := discovery.NewDiscoveryClientForConfig(s.config)
		if err != nil {
			return err
		}
		if err := discovers(client); err != nil {
			return err
		}
		// Two responses contain the whole discovery.
		if asked := s.asked.since(before); len(asked) != 2 {
			return fmt.Errorf("%d requests were needed", len(asked))
		}
		return nil
	}},
	{"discovery: plain", func(ctx context.Context, s *server) error {
		client, err := discovery.NewDiscoveryClientForConfig(s.config)
		if err != nil {
			return err
		}
		client.UseLegacyDiscovery = true
		return discovers(client)
	}},
	{"discovery: preferred resources", func(ctx context.Context, s *server) error {
		lists, err := s.typed.Discovery().ServerPreferredResources()
		if err != nil {
			return err
		}
		watched := discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, lists)
		if len(watched) < 10 {
			return fmt.Errorf("%d groups can be watched", len(watched))
		}
		return nil
	}},
	{"discovery: RESTMapper", func(ctx context.Context, s *server) error {
		cached := memory.NewMemCacheClient(s.typed.Discovery())
		deferred := restmapper.NewDeferredDiscoveryRESTMapper(cached)
		mapping, err := deferred.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
		if err != nil {
			return err
		}
		if mapping.Resource.Resource != "deployments" || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			return fmt.Errorf("%+v", mapping)
		}
		short := restmapper.NewShortcutExpander(deferred, cached, nil)
		found, err := short.KindFor(schema.GroupVersionResource{Resource: "deploy"})
		if err == nil && found.Kind != "Deployment" {
			err = fmt.Errorf("deploy is %s", found)
		}
		if _, missing := deferred.RESTMapping(schema.GroupKind{Group: "no.such", Kind: "Thing"}); !meta.IsNoMatchError(missing) {
			return fmt.Errorf("an unknown kind: %v", missing)
		}
		return err
	}},
	{"discovery: RESTMapper finds a new kind", func(ctx context.Context, s *server) error {
		cached := memory.NewMemCacheClient(s.typed.Discovery())
		mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
		if _, err := mapper.KindFor(schema.GroupVersionResource{Resource: "pods"}); err != nil {
			return err
		}
		resource, err := s.widgets(ctx)
		if err != nil {
			return err
		}
		mapper.Reset()
		kind, err := mapper.KindFor(resource)
		if err == nil && kind.Kind != "Widget" {
			err = fmt.Errorf("%s", kind)
		}
		return err
	}},
	{"discovery: OpenAPI v3", func(ctx context.Context, s *server) error {
		paths, err := s.typed.Discovery().OpenAPIV3().Paths()
		if err != nil {
			return err
		}
		apps, ok := paths["apis/apps/v1"]
		if !ok {
			return fmt.Errorf("no apis/apps/v1 in %d paths", len(paths))
		}
		text, err := apps.Schema(runtime.ContentTypeJSON)
		if err == nil && !strings.Contains(string(text), "io.k8s.api.apps.v1.DeploymentSpec") {
			err = errors.New("the specification of Deployments is not described")
		}
		return err
	}},
	{"discovery: OpenAPI v2", func(ctx context.Context, s *server) error {
		document, err := s.typed.Discovery().OpenAPISchema()
		if err != nil {
			return err
		}
		for _, one := range document.GetDefinitions().GetAdditionalProperties() {
			if one.GetName() == "io.k8s.api.apps.v1.Deployment" {
				for _, property := range one.GetValue().GetProperties().GetAdditionalProperties() {
					if property.GetName() == "spec" && property.GetValue().GetXRef() != "" {
						return nil
					}
				}
				return fmt.Errorf("the specification of Deployments is not described")
			}
		}
		return errors.New("Deployments are not defined")
	}},
}

func discovers(client discovery.DiscoveryInterface) error {
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	for _, want := range []struct{ group, name, kind string }{
		{"v1", "pods", "Pod"}, {"v1", "pods/eviction", "Eviction"}, {"v1", "pods/log", "Pod"},
		{"apps/v1", "deployments", "Deployment"}, {"apps/v1", "deployments/scale", "Scale"}, {"batch/v1", "jobs/status", "Job"},
	} {
		found := slices.ContainsFunc(lists, func(list *metav1.APIResourceList) bool {
			return list.GroupVersion == want.group && slices.ContainsFunc(list.APIResources, func(one metav1.APIResource) bool {
				return one.Name == want.name && one.Kind == want.kind && len(one.Verbs) > 0
			})
		})
		if !found {
			return fmt.Errorf("no %s in %s", want.name, want.group)
		}
	}
	return nil
}

var listChecks = []check{
	{"list: pages", func(ctx context.Context, s *server) error {
		if err := s.maps(ctx, "page", 25); err != nil {
			return err
		}
		pages := 0
		lister := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			pages++
			options.LabelSelector = "test=page"
			return s.typed.CoreV1().ConfigMaps(s.namespace).List(ctx, options)
		})
		lister.PageSize = 10
		var names []string
		err := lister.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
			names = append(names, object.(*corev1.ConfigMap).Name)
			return nil
		})
		if err != nil {
			return err
		}
		if len(names) != 25 || pages != 3 || !slices.IsSorted(names) {
			return fmt.Errorf("%d objects in %d pages", len(names), pages)
		}
		return nil
	}},
	{"list: remainingItemCount", func(ctx context.Context, s *server) error {
		list, err := s.typed.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil && (list.Continue == "" || list.RemainingItemCount == nil || *list.RemainingItemCount < 1) {
			err = fmt.Errorf("%+v", list.ListMeta)
		}
		return err
	}},
	{"list: a page shows the state of the first one", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		options := metav1.ListOptions{Limit: 5, LabelSelector: "test=page"}
		first, err := client.List(ctx, options)
		if err != nil {
			return err
		}
		if err := client.Delete(ctx, "page-20", metav1.DeleteOptions{}); err != nil {
			return err
		}
		options.Continue, options.Limit = first.Continue, 0
		rest, err := client.List(ctx, options)
		if err == nil && (len(rest.Items) != 20 || rest.ResourceVersion != first.ResourceVersion) {
			err = fmt.Errorf("%d more, at %s and %s", len(rest.Items), first.ResourceVersion, rest.ResourceVersion)
		}
		return err
	}},
	{"list: an expired page", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		options := metav1.ListOptions{Limit: 5, LabelSelector: "test=page"}
		first, err := client.List(ctx, options)
		if err != nil {
			return err
		}
		if err := s.busy(ctx, 1200); err != nil {
			return err
		}
		options.Continue = first.Continue
		_, err = client.List(ctx, options)
		if err == nil {
			return unsupported{"the server still knows that state"}
		}
		if !apierrors.IsResourceExpired(err) {
			return err
		}
		var status *apierrors.StatusError
		if !errors.As(err, &status) || status.ErrStatus.Code != 410 || status.ErrStatus.Continue == "" {
			return fmt.Errorf("no way to go on in %+v", err)
		}
		options.Continue = status.ErrStatus.Continue
		rest, err := client.List(ctx, options)
		if err == nil && len(rest.Items) == 0 {
			err = errors.New("nothing was left")
		}
		return err
	}},
	{"list: pager starts again when a page expires", func(ctx context.Context, s *server) error {
		listed := 0
		lister := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			listed++
			if listed == 2 {
				if err := s.busy(ctx, 1200); err != nil {
					return nil, err
				}
			}
			options.LabelSelector = "test=page"
			return s.typed.CoreV1().ConfigMaps(s.namespace).List(ctx, options)
		})
		lister.PageSize = 10
		list, _, err := lister.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if all := meta.LenList(list); all != 24 {
			return fmt.Errorf("%d objects", all)
		}
		return nil
	}},
	{"list: selectors", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		for options, want := range map[metav1.ListOptions]int{
			{FieldSelector: "metadata.name=page-3"}:            1,
			{LabelSelector: "number in (page-3, page-4)"}:      2,
			{LabelSelector: "test=page,number notin (page-3)"}: 23,
			{LabelSelector: "!test,number"}:                    0,
		} {
			list, err := client.List(ctx, options)
			if err != nil {
				return err
			}
			if len(list.Items) != want {
				return fmt.Errorf("%+v: %d objects", options, len(list.Items))
			}
		}
		if _, err := client.List(ctx, metav1.ListOptions{LabelSelector: "a in"}); !apierrors.IsBadRequest(err) {
			return fmt.Errorf("a bad selector: %v", err)
		}
		return nil
	}},
	{"list: metadata only", func(ctx context.Context, s *server) error {
		resource := corev1.SchemeGroupVersion.WithResource("configmaps")
		list, err := s.metadata.Resource(resource).Namespace(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: "test=page"})
		if err != nil {
			return err
		}
		if len(list.Items) != 24 || list.Items[0].Labels["test"] != "page" || list.Items[0].UID == "" {
			return fmt.Errorf("%d objects", len(list.Items))
		}
		one, err := s.metadata.Resource(resource).Namespace(s.namespace).Get(ctx, "page-3", metav1.GetOptions{})
		if err == nil && one.Name != "page-3" {
			err = fmt.Errorf("%+v", one)
		}
		return err
	}},
	{"list: as a table", func(ctx context.Context, s *server) error {
		table := &metav1.Table{}
		err := s.typed.CoreV1().RESTClient().Get().Resource("configmaps").Namespace(s.namespace).
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Param("limit", "3").
			Do(ctx).Into(table)
		if err == nil && (len(table.Rows) != 3 || len(table.ColumnDefinitions) == 0) {
			err = fmt.Errorf("%d rows, %d columns", len(table.Rows), len(table.ColumnDefinitions))
		}
		return err
	}},
}

// maps creates count ConfigMaps with the label `test` and this value.
func (s *server) maps(ctx context.Context, test string, count int) error {
	for i := range count {
		name := fmt.Sprintf("%s-%d", test, i)
		labels := map[string]string{"test": test, "number": name}
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		if _, err := s.typed.CoreV1().ConfigMaps(s.namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// busy changes a ConfigMap this often, so that a server with a short history forgets older versions.
func (s *server) busy(ctx context.Context, changes int) error {
	client := s.typed.CoreV1().ConfigMaps(s.namespace)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "busy"}}
	if _, err := client.Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	errs := make(chan error)
	const workers = 8
	for worker := range workers {
		go func() {
			for i := range changes / workers {
				patch := fmt.Sprintf(`{"data":{"w%d":"%d-%d"}}`, worker, i, time.Now().UnixNano())
				if _, err := client.Patch(ctx, "busy", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var first error
	for range workers {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

var watchChecks = []check{
	{"watch: what happens", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		options := metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "metadata.name=watched"}
		watcher, err := client.Watch(ctx, options)
		if err != nil {
			return err
		}
		defer watcher.Stop()
		if err := s.live(ctx, "watched"); err != nil {
			return err
		}
		return expect(ctx, watcher, watch.Added, watch.Modified, watch.Deleted)
	}},
	{"watch: resumes from a resourceVersion", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if err := s.live(ctx, "resumed"); err != nil {
			return err
		}
		options := metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "metadata.name=resumed"}
		watcher, err := client.Watch(ctx, options)
		if err != nil {
			return err
		}
		defer watcher.Stop()
		return expect(ctx, watcher, watch.Added, watch.Modified, watch.Deleted)
	}},
	{"watch: an object that leaves the selection", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		if err := s.maps(ctx, "leaving", 1); err != nil {
			return err
		}
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		watcher, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "test=leaving"})
		if err != nil {
			return err
		}
		defer watcher.Stop()
		for _, value := range []string{"other", "leaving"} {
			patch := fmt.Sprintf(`{"metadata":{"labels":{"test":%q}}}`, value)
			if _, err := client.Patch(ctx, "leaving-0", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
				return err
			}
		}
		return expect(ctx, watcher, watch.Deleted, watch.Added)
	}},
	{"watch: bookmarks", func(ctx context.Context, s *server) error {
		seconds := int64(4)
		watcher, err := s.typed.CoreV1().Secrets(s.namespace).Watch(ctx, metav1.ListOptions{
			AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
		})
		if err != nil {
			return err
		}
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			if event.Type == watch.Bookmark {
				if version := event.Object.(*corev1.Secret).ResourceVersion; version == "" || version == "0" {
					return fmt.Errorf("of version %q", version)
				}
				return nil
			}
		}
		return errors.New("none came before the end")
	}},
	{"watch: ends after timeoutSeconds", func(ctx context.Context, s *server) error {
		seconds := int64(1)
		watcher, err := s.typed.CoreV1().Secrets(s.namespace).Watch(ctx, metav1.ListOptions{TimeoutSeconds: &seconds})
		if err != nil {
			return err
		}
		defer watcher.Stop()
		for {
			select {
			case event, open := <-watcher.ResultChan():
				if !open {
					return nil
				}
				if event.Type == watch.Error {
					return apierrors.FromObject(event.Object)
				}
			case <-time.After(20 * time.Second):
				return errors.New("it did not end")
			}
		}
	}},
	{"watch: from a version that is too old", func(ctx context.Context, s *server) error {
		watcher, err := s.typed.CoreV1().ConfigMaps(s.namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: "1"})
		if err == nil {
			defer watcher.Stop()
			event := <-watcher.ResultChan()
			if event.Type == watch.Added {
				return unsupported{"the server still knows that state"}
			}
			if event.Type != watch.Error {
				return fmt.Errorf("%s", event.Type)
			}
			err = apierrors.FromObject(event.Object)
		}
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return fmt.Errorf("%v", err)
		}
		return nil
	}},
	{"watch: streams what there is (sendInitialEvents)", func(ctx context.Context, s *server) error {
		yes := true
		watcher, err := s.typed.CoreV1().ConfigMaps(s.namespace).Watch(ctx, metav1.ListOptions{
			SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			LabelSelector: "test=page",
		})
		if err != nil {
			return err
		}
		defer watcher.Stop()
		for told := 0; ; told++ {
			event, open := <-watcher.ResultChan()
			if !open {
				return errors.New("it ended")
			}
			if event.Type == watch.Added {
				continue
			}
			object, err := meta.Accessor(event.Object)
			if err != nil {
				return err
			}
			if event.Type != watch.Bookmark || object.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" || told != 24 {
				return fmt.Errorf("%s after %d objects", event.Type, told)
			}
			return nil
		}
	}},
	{"watch: RetryWatcher", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, lister{
			func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				// The watch must end early, so that it is opened again.
				seconds := int64(1)
				options.TimeoutSeconds, options.FieldSelector = &seconds, "metadata.name=retried"
				return client.Watch(ctx, options)
			},
		})
		if err != nil {
			return err
		}
		defer watcher.Stop()
		time.Sleep(1500 * time.Millisecond)
		if err := s.live(ctx, "retried"); err != nil {
			return err
		}
		return expect(ctx, watcher, watch.Added, watch.Modified, watch.Deleted)
	}},
	{"watch: metadata only", func(ctx context.Context, s *server) error {
		resource := corev1.SchemeGroupVersion.WithResource("configmaps")
		client := s.metadata.Resource(resource).Namespace(s.namespace)
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		watcher, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "metadata.name=thin"})
		if err != nil {
			return err
		}
		defer watcher.Stop()
		if err := s.live(ctx, "thin"); err != nil {
			return err
		}
		return expect(ctx, watcher, watch.Added, watch.Modified, watch.Deleted)
	}},
}

type lister struct {
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func (l lister) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return l.watch(ctx, options)
}

// live creates, changes and deletes a ConfigMap.
func (s *server) live(ctx context.Context, name string) error {
	client := s.typed.CoreV1().ConfigMaps(s.namespace)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	object, err := client.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	object.Data = map[string]string{"changed": "yes"}
	if _, err := client.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return client.Delete(ctx, name, metav1.DeleteOptions{})
}

// expect fails unless the next events of a watch, apart from bookmarks, are of these types.
func expect(ctx context.Context, watcher watch.Interface, kinds ...watch.EventType) error {
	for _, kind := range kinds {
		for {
			select {
			case event, open := <-watcher.ResultChan():
				if !open {
					return fmt.Errorf("it ended before %s", kind)
				}
				if event.Type == watch.Bookmark {
					continue
				}
				if event.Type != kind {
					return fmt.Errorf("%s instead of %s", event.Type, kind)
				}
			case <-ctx.Done():
				return fmt.Errorf("waited in vain for %s", kind)
			}
			break
		}
	}
	return nil
}
