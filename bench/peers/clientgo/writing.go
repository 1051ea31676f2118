package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
)

var writeChecks = []check{
	{"write: typed clients send Protobuf", func(ctx context.Context, s *server) error {
		before := s.asked.count()
		if err := s.live(ctx, "sent"); err != nil {
			return err
		}
		for _, one := range s.asked.since(before) {
			if one.method == "POST" && one.contentType == runtime.ContentTypeProtobuf {
				return nil
			}
		}
		return errors.New("no body was Protobuf")
	}},
	{"write: answers in Protobuf", func(ctx context.Context, s *server) error {
		before := s.asked.count()
		if _, err := s.typed.CoreV1().Namespaces().Get(ctx, s.namespace, metav1.GetOptions{}); err != nil {
			return err
		}
		if answer := s.asked.since(before)[0].answer; answer != runtime.ContentTypeProtobuf {
			return unsupported{"the answer is " + answer + ", which clients take as well"}
		}
		return nil
	}},
	{"write: JSON when it is asked for", func(ctx context.Context, s *server) error {
		config := rest.CopyConfig(s.config)
		config.ContentType = runtime.ContentTypeJSON
		typed, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		json := *s
		json.typed = typed
		before := s.asked.count()
		if err := json.live(ctx, "json"); err != nil {
			return err
		}
		for _, one := range s.asked.since(before) {
			if one.contentType == runtime.ContentTypeProtobuf {
				return fmt.Errorf("%s %s was %s", one.method, one.url, one.contentType)
			}
		}
		return nil
	}},
	{"write: generateName", func(ctx context.Context, s *server) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "made-"}}
		made, err := s.typed.CoreV1().ConfigMaps(s.namespace).Create(ctx, object, metav1.CreateOptions{})
		if err == nil && (!strings.HasPrefix(made.Name, "made-") || len(made.Name) != 10) {
			err = errors.New(made.Name)
		}
		return err
	}},
	{"write: dry run", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "dry"}}
		if _, err := client.Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			return err
		}
		return gone(client.Get(ctx, "dry", metav1.GetOptions{}))
	}},
	{"write: what is refused", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "twice"}}
		if _, err := client.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
		if _, err := client.Create(ctx, object, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("a second one: %v", err)
		}
		object.Name = "Not A Name"
		if _, err := client.Create(ctx, object, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
			return fmt.Errorf("a bad name: %v", err)
		}
		object.Name = "nowhere"
		if _, err := s.typed.CoreV1().ConfigMaps("no-such").Create(ctx, object, metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("an absent namespace: %v", err)
		}
		if _, err := client.Update(ctx, object, metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("an update of what is not there: %v", err)
		}
		return nil
	}},
	{"write: update and conflict", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		old, err := client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "updated"}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		changed := old.DeepCopy()
		changed.Data = map[string]string{"a": "1"}
		changed.BinaryData = map[string][]byte{"b": {0, 255}}
		changed, err = client.Update(ctx, changed, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		if changed.Data["a"] != "1" || len(changed.BinaryData["b"]) != 2 || changed.UID != old.UID || changed.ResourceVersion == old.ResourceVersion {
			return fmt.Errorf("%+v", changed)
		}
		old.Data = map[string]string{"a": "2"}
		if _, err := client.Update(ctx, old, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return fmt.Errorf("an old version: %v", err)
		}
		first := true
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			if !first {
				if old, err = client.Get(ctx, "updated", metav1.GetOptions{}); err != nil {
					return err
				}
			}
			first = false
			old.Data = map[string]string{"a": "3"}
			_, err := client.Update(ctx, old, metav1.UpdateOptions{})
			return err
		})
	}},
	{"write: merge, JSON and strategic patch", func(ctx context.Context, s *server) error {
		client := s.typed.AppsV1().Deployments(s.namespace)
		object := deployment("patched", 0)
		object.Spec.Template.Spec.Containers = append(object.Spec.Template.Spec.Containers, corev1.Container{
			Name: "side", Image: "example.com/side:1",
		})
		if _, err := client.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
		var patched *appsv1.Deployment
		for _, one := range []struct {
			kind types.PatchType
			text string
		}{
			{types.MergePatchType, `{"metadata":{"labels":{"team":"a"}}}`},
			{types.JSONPatchType, `[{"op":"test","path":"/metadata/labels/team","value":"a"},{"op":"add","path":"/metadata/annotations","value":{"x":"y"}}]`},
			{types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"example.com/side:2"}]}}}}`},
		} {
			var err error
			if patched, err = client.Patch(ctx, "patched", one.kind, []byte(one.text), metav1.PatchOptions{}); err != nil {
				return err
			}
		}
		containers := patched.Spec.Template.Spec.Containers
		if patched.Labels["team"] != "a" || patched.Annotations["x"] != "y" || len(containers) != 2 || containers[1].Image != "example.com/side:2" {
			return fmt.Errorf("%+v", patched)
		}
		failing := `[{"op":"test","path":"/metadata/name","value":"other"}]`
		if _, err := client.Patch(ctx, "patched", types.JSONPatchType, []byte(failing), metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
			return fmt.Errorf("a test that fails: %v", err)
		}
		return nil
	}},
	{"write: server-side apply", func(ctx context.Context, s *server) error {
		wanted := applycorev1.ConfigMap("applied", s.namespace).WithData(map[string]string{"a": "1"})
		_, err := s.typed.CoreV1().ConfigMaps(s.namespace).Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "client-go"})
		if apierrors.IsUnsupportedMediaType(err) {
			return unsupported{err.Error()}
		}
		return err
	}},
	{"write: status", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().PersistentVolumeClaims(s.namespace)
		claim, err := client.Create(ctx, claim("status"), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		// Overwrites what controllers have written since.
		claim.ResourceVersion = ""
		claim.Status.Phase = corev1.ClaimLost
		claim.Labels = map[string]string{"from": "status"}
		if claim, err = client.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
			return err
		}
		if claim.Status.Phase != corev1.ClaimLost {
			return fmt.Errorf("%+v", claim.Status)
		}
		claim.ResourceVersion = ""
		claim.Status.Phase = corev1.ClaimBound
		if claim, err = client.Update(ctx, claim, metav1.UpdateOptions{}); err == nil && claim.Status.Phase == corev1.ClaimBound {
			err = errors.New("an update of the rest wrote the status")
		}
		return err
	}},
	{"write: dynamic client", func(ctx context.Context, s *server) error {
		resource, err := s.widgets(ctx)
		if err != nil {
			return err
		}
		client := s.dynamic.Resource(resource).Namespace(s.namespace)
		made, err := client.Create(ctx, widget(resource, "dynamic"), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if made.GetGeneration() != 1 {
			return fmt.Errorf("generation %d", made.GetGeneration())
		}
		if err := unstructured.SetNestedField(made.Object, int64(-1), "spec", "replicas"); err != nil {
			return err
		}
		if _, err := client.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
			return fmt.Errorf("a value that the schema excludes: %v", err)
		}
		_ = unstructured.SetNestedField(made.Object, int64(2), "spec", "replicas")
		if made, err = client.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
			return err
		}
		_ = unstructured.SetNestedField(made.Object, "yes", "status", "ready")
		if made, err = client.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
			return err
		}
		if made.GetGeneration() != 2 {
			return fmt.Errorf("generation %d", made.GetGeneration())
		}
		return client.Delete(ctx, "dynamic", metav1.DeleteOptions{})
	}},
	{"delete: preconditions", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		object, err := client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "precious"}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		other, old := types.UID("not-this"), "1"
		for _, preconditions := range []metav1.Preconditions{{UID: &other}, {ResourceVersion: &old}} {
			err := client.Delete(ctx, "precious", metav1.DeleteOptions{Preconditions: &preconditions})
			if !apierrors.IsConflict(err) {
				return fmt.Errorf("%v", err)
			}
		}
		if err := client.Delete(ctx, "precious", *metav1.NewPreconditionDeleteOptions(string(object.UID))); err != nil {
			return err
		}
		return gone(client.Get(ctx, "precious", metav1.GetOptions{}))
	}},
	{"delete: finalizers", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}}}
		if _, err := client.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
		if err := client.Delete(ctx, "held", metav1.DeleteOptions{}); err != nil {
			return err
		}
		held, err := client.Get(ctx, "held", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if held.DeletionTimestamp == nil {
			return errors.New("it is not marked")
		}
		held.Finalizers = nil
		if _, err := client.Update(ctx, held, metav1.UpdateOptions{}); err != nil {
			return err
		}
		return gone(client.Get(ctx, "held", metav1.GetOptions{}))
	}},
	{"delete: collection", func(ctx context.Context, s *server) error {
		if err := s.maps(ctx, "many", 3); err != nil {
			return err
		}
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		options := metav1.ListOptions{LabelSelector: "test=many"}
		if err := client.DeleteCollection(ctx, metav1.DeleteOptions{}, options); err != nil {
			return err
		}
		left, err := client.List(ctx, options)
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%d are left", len(left.Items))
		}
		return err
	}},
	{"delete: in the foreground", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().ConfigMaps(s.namespace)
		owner, err := client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		yes := true
		_, err = client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "owned", OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID, BlockOwnerDeletion: &yes,
			}},
		}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		foreground := metav1.DeletePropagationForeground
		if err := client.Delete(ctx, "owner", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
			return err
		}
		return until(ctx, "both are gone", func() (bool, error) {
			_, err := client.Get(ctx, "owner", metav1.GetOptions{})
			if err == nil || !apierrors.IsNotFound(err) {
				return false, ignore(err)
			}
			return true, gone(client.Get(ctx, "owned", metav1.GetOptions{}))
		})
	}},
}

func ignore(error) error { return nil }

// gone returns nil if err says that the object does not exist, else an error.
func gone[T any](_ T, err error) error {
	switch {
	case err == nil:
		return errors.New("it is still there")
	case apierrors.IsNotFound(err):
		return nil
	}
	return err
}

var subresourceChecks = []check{
	{"scale: typed", func(ctx context.Context, s *server) error {
		client := s.typed.AppsV1().Deployments(s.namespace)
		if _, err := client.Create(ctx, deployment("scaled", 0), metav1.CreateOptions{}); err != nil {
			return err
		}
		found, err := client.GetScale(ctx, "scaled", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if found.Status.Selector != "app=scaled" {
			return fmt.Errorf("%+v", found)
		}
		found.ResourceVersion, found.Spec.Replicas = "", 2
		if found, err = client.UpdateScale(ctx, "scaled", found, metav1.UpdateOptions{}); err != nil {
			return err
		}
		object, err := client.Get(ctx, "scaled", metav1.GetOptions{})
		if err == nil && (found.Spec.Replicas != 2 || *object.Spec.Replicas != 2 || object.Generation < 2) {
			err = fmt.Errorf("%+v", object.Spec)
		}
		return err
	}},
	{"scale: of any kind", func(ctx context.Context, s *server) error {
		resource, err := s.widgets(ctx)
		if err != nil {
			return err
		}
		if _, err := s.dynamic.Resource(resource).Namespace(s.namespace).Create(ctx, widget(resource, "scaled"), metav1.CreateOptions{}); err != nil {
			return err
		}
		mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.typed.Discovery()))
		client, err := scale.NewForConfig(s.config, mapper, dynamicPath, scale.NewDiscoveryScaleKindResolver(s.typed.Discovery()))
		if err != nil {
			return err
		}
		for _, one := range []schema.GroupResource{resource.GroupResource(), {Group: "apps", Resource: "deployments"}} {
			scales := client.Scales(s.namespace)
			// Controllers write what is scaled, too.
			err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				found, err := scales.Get(ctx, one, "scaled", metav1.GetOptions{})
				if err != nil {
					return err
				}
				found.Spec.Replicas = 3
				found, err = scales.Update(ctx, one, found, metav1.UpdateOptions{})
				if err == nil && found.Spec.Replicas != 3 {
					err = fmt.Errorf("%s: %+v", one, found)
				}
				return err
			})
			if err != nil {
				return err
			}
			patched, err := scales.Patch(ctx, one.WithVersion("v1"), "scaled", types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{})
			if err != nil {
				return err
			}
			if patched.Spec.Replicas != 1 {
				return fmt.Errorf("%s: %+v", one, patched)
			}
		}
		return nil
	}},
	{"scale: an autoscaling/v1 body alone", func(ctx context.Context, s *server) error {
		wanted := &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: "scaled", Namespace: s.namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: 0},
		}
		_, err := s.typed.AppsV1().Deployments(s.namespace).UpdateScale(ctx, "scaled", wanted, metav1.UpdateOptions{})
		return err
	}},
	{"eviction", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().Pods(s.namespace)
		if _, err := client.Create(ctx, pod("evicted"), metav1.CreateOptions{}); err != nil {
			return err
		}
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "evicted", Namespace: s.namespace}}
		if err := client.EvictV1(ctx, eviction); err != nil {
			return err
		}
		return until(ctx, "the Pod is gone", func() (bool, error) {
			_, err := client.Get(ctx, "evicted", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			return false, err
		})
	}},
	{"eviction: refused by a PodDisruptionBudget", func(ctx context.Context, s *server) error {
		zero := either(0)
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "none"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: &zero, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}},
			},
		}
		if _, err := s.typed.PolicyV1().PodDisruptionBudgets(s.namespace).Create(ctx, budget, metav1.CreateOptions{}); err != nil {
			return err
		}
		client := s.typed.CoreV1().Pods(s.namespace)
		if _, err := client.Create(ctx, pod("guarded"), metav1.CreateOptions{}); err != nil {
			return err
		}
		if err := s.running(ctx, "guarded"); err != nil {
			return err
		}
		err := client.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "guarded", Namespace: s.namespace}})
		if !apierrors.IsTooManyRequests(err) {
			return fmt.Errorf("%v", err)
		}
		return nil
	}},
	{"access: SelfSubjectAccessReview", func(ctx context.Context, s *server) error {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: s.namespace, Verb: "delete", Resource: "pods"},
		}}
		review, err := s.typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && !review.Status.Allowed {
			err = fmt.Errorf("%+v", review.Status)
		}
		return err
	}},
	{"access: SelfSubjectRulesReview", func(ctx context.Context, s *server) error {
		review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: s.namespace}}
		review, err := s.typed.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && len(review.Status.ResourceRules) == 0 {
			err = fmt.Errorf("%+v", review.Status)
		}
		return err
	}},
	{"access: SelfSubjectReview", func(ctx context.Context, s *server) error {
		review, err := s.typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err == nil && review.Status.UserInfo.Username == "" {
			err = fmt.Errorf("%+v", review.Status)
		}
		return err
	}},
	{"access: impersonation", func(ctx context.Context, s *server) error {
		config := rest.CopyConfig(s.config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "nobody-known", Groups: []string{"system:authenticated"}}
		typed, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		_, err = typed.CoreV1().Secrets(s.namespace).List(ctx, metav1.ListOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "nobody-known") {
			return fmt.Errorf("%v", err)
		}
		return nil
	}},
	{"access: a token for a ServiceAccount", func(ctx context.Context, s *server) error {
		request := &authenticationv1.TokenRequest{}
		answer, err := s.typed.CoreV1().ServiceAccounts(s.namespace).CreateToken(ctx, "default", request, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) {
			return unsupported{err.Error()}
		}
		if err == nil && answer.Status.Token == "" {
			err = errors.New("there is none")
		}
		return err
	}},
	{"events: recorder", func(ctx context.Context, s *server) error {
		broadcaster := record.NewBroadcaster(record.WithContext(ctx))
		defer broadcaster.Shutdown()
		broadcaster.StartRecordingToSink(&recordSink{s, ctx})
		recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "client-go"})
		about, err := s.typed.CoreV1().ConfigMaps(s.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "told"}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		for range 2 {
			recorder.Event(about, corev1.EventTypeWarning, "Tested", "it was looked at")
		}
		return until(ctx, "the event was counted up", func() (bool, error) {
			list, err := s.typed.CoreV1().Events(s.namespace).Search(scheme.Scheme, about)
			return err == nil && len(list.Items) == 1 && list.Items[0].Count == 2, err
		})
	}},
}

type recordSink struct {
	s   *server
	ctx context.Context
}

func (r *recordSink) Create(event *corev1.Event) (*corev1.Event, error) {
	return r.s.typed.CoreV1().Events(r.s.namespace).CreateWithEventNamespaceWithContext(r.ctx, event)
}

func (r *recordSink) Update(event *corev1.Event) (*corev1.Event, error) {
	return r.s.typed.CoreV1().Events(r.s.namespace).UpdateWithEventNamespaceWithContext(r.ctx, event)
}

func (r *recordSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	return r.s.typed.CoreV1().Events(r.s.namespace).PatchWithEventNamespaceWithContext(r.ctx, event, data)
}
