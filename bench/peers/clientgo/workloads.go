package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var dynamicPath = dynamic.LegacyAPIPathResolverFunc

func either(number int) intstr.IntOrString { return intstr.FromInt(number) }

func pointer[T any](value T) *T { return &value }

func template(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}}},
	}
}

func selector(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

func pod(name string) *corev1.Pod {
	made := template(name)
	made.Name = name
	made.Spec.TerminationGracePeriodSeconds = pointer(int64(1))
	return &corev1.Pod{ObjectMeta: made.ObjectMeta, Spec: made.Spec}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector(name), Template: template(name)},
	}
}

func claim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
		},
	}
}

// samples returns one object of each kind that people write by hand, with the fields whose encoding is special.
func samples() []runtime.Object {
	prefix := networkingv1.PathTypePrefix
	tcp := corev1.ProtocolTCP
	full := template("sample-full").Spec
	full.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "a"}, Optional: pointer(false),
			Items: []corev1.KeyToPath{{Key: "k", Path: "p", Mode: pointer(int32(0o440))}},
		}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: pointer(resource.MustParse("1Mi"))}}},
	}
	full.Containers[0].Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("32Mi")}, Limits: corev1.ResourceList{"memory": resource.MustParse("64Mi")},
	}
	full.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	full.Containers[0].Env = []corev1.EnvVar{
		{Name: "A", Value: "1"},
		{Name: "B", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k",
		}}},
	}
	full.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromString("http")}}, PeriodSeconds: 5,
		TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
	}
	full.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/etc/a", ReadOnly: true}}
	full.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsNonRoot: pointer(true), AllowPrivilegeEscalation: pointer(false)}
	full.TerminationGracePeriodSeconds = pointer(int64(0))
	// Nothing is added to what is written here.
	full.AutomountServiceAccountToken = pointer(false)
	full.NodeSelector = map[string]string{"no-such": "node"}
	full.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: pointer(int64(7))}}
	job := batchv1.JobSpec{Suspend: pointer(true), Template: template("sample")}
	job.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	surge := intstr.FromString("50%")
	rolling := deployment("sample", 0)
	rolling.Spec.Strategy = appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: pointer(either(1))},
	}
	named := metav1.ObjectMeta{Name: "sample"}
	cluster := metav1.ObjectMeta{Name: "client-go-sample"}
	return []runtime.Object{
		&corev1.ConfigMap{ObjectMeta: named, Data: map[string]string{"a": "", "b": "2"}, BinaryData: map[string][]byte{"c": {0, 1, 255}}},
		&corev1.Secret{ObjectMeta: named, Data: map[string][]byte{"k": []byte("v")}, Type: corev1.SecretTypeOpaque},
		&corev1.ServiceAccount{ObjectMeta: named, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}},
		&corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "sample"},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}, {Name: "other", Port: 81, TargetPort: either(8081)}},
		}},
		&corev1.Pod{ObjectMeta: named, Spec: full},
		claim("sample"),
		&corev1.PersistentVolume{ObjectMeta: cluster, Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{"storage": resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp/a"}},
		}},
		&corev1.ResourceQuota{ObjectMeta: named, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/widgets": resource.MustParse("5")}}},
		&corev1.LimitRange{ObjectMeta: named, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypePersistentVolumeClaim, Max: corev1.ResourceList{"storage": resource.MustParse("10Gi")},
		}}}},
		rolling,
		&appsv1.StatefulSet{ObjectMeta: named, Spec: appsv1.StatefulSetSpec{
			Replicas: pointer(int32(0)), Selector: selector("sample"), ServiceName: "sample", Template: template("sample"),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*claim("data")},
		}},
		&appsv1.DaemonSet{ObjectMeta: named, Spec: appsv1.DaemonSetSpec{Selector: selector("idle"), Template: idle()}},
		&batchv1.Job{ObjectMeta: named, Spec: job},
		&batchv1.CronJob{ObjectMeta: named, Spec: batchv1.CronJobSpec{
			Schedule: "0 4 * * *", Suspend: pointer(true), JobTemplate: batchv1.JobTemplateSpec{Spec: job},
		}},
		&networkingv1.Ingress{ObjectMeta: named, Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
			Host: "a.example.com", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{
					Path: "/", PathType: &prefix,
					Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
						Name: "sample", Port: networkingv1.ServiceBackendPort{Number: 80},
					}},
				}},
			}},
		}}}},
		&networkingv1.NetworkPolicy{ObjectMeta: named, Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *selector("sample"), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: pointer(either(80))}}}},
		}},
		&policyv1.PodDisruptionBudget{ObjectMeta: named, Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: pointer(intstr.FromString("50%")), Selector: selector("no-such"),
		}},
		&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "sample"}, MaxReplicas: 3,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: "cpu", Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: pointer(int32(80))},
			}}},
		}},
		&rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}},
		&rbacv1.RoleBinding{
			ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "sample"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "sample", Namespace: "default"}},
		},
		&rbacv1.ClusterRole{ObjectMeta: cluster, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/healthz"}, Verbs: []string{"get"}}}},
		&coordinationv1.Lease{ObjectMeta: named, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: pointer("me"), LeaseDurationSeconds: pointer(int32(15)), RenewTime: &metav1.MicroTime{Time: time.UnixMicro(1_700_000_000_123_456).UTC()},
		}},
	}
}

// idle returns a template whose Pods no node can run.
func idle() corev1.PodTemplateSpec {
	made := template("idle")
	made.Spec.NodeSelector = map[string]string{"no-such": "node"}
	return made
}

// kindChecks returns the checks that create and update each sample as Protobuf, and fail unless the server returns all
// fields that were sent.
func kindChecks() []check {
	var checks []check
	for _, sample := range samples() {
		kinds, _, err := scheme.Scheme.ObjectKinds(sample)
		if err != nil {
			panic(err)
		}
		kind := kinds[0]
		checks = append(checks, check{"create and update: " + kind.Kind, func(ctx context.Context, s *server) error {
			plural, _ := meta.UnsafeGuessKindToResource(kind)
			client, ok := s.client(kind.Group)
			if !ok {
				return fmt.Errorf("no client of group %q", kind.Group)
			}
			path := func(name string) []string { return s.path(sample, kind.GroupVersion().String(), plural.Resource, name) }
			made := reflect.New(reflect.TypeOf(sample).Elem()).Interface().(runtime.Object)
			err := client.Post().AbsPath(path("")...).UseProtobufAsDefault().Body(sample).Do(ctx).Into(made)
			if err != nil {
				return err
			}
			accessor, err := meta.Accessor(made)
			if err != nil {
				return err
			}
			defer func() {
				_ = client.Delete().AbsPath(path(accessor.GetName())...).Body(&metav1.DeleteOptions{}).Do(ctx).Error()
			}()
			if accessor.GetUID() == "" || accessor.GetResourceVersion() == "" {
				return fmt.Errorf("no identity: %+v", accessor)
			}
			if !equality.Semantic.DeepDerivative(sample, bare(sample, made)) {
				return fmt.Errorf("sent %+v, got %+v", sample, made)
			}
			accessor.SetAnnotations(map[string]string{"updated": "yes"})
			updated := reflect.New(reflect.TypeOf(sample).Elem()).Interface().(runtime.Object)
			err = client.Put().AbsPath(path(accessor.GetName())...).UseProtobufAsDefault().Body(made).Do(ctx).Into(updated)
			// A controller may have changed the object before.
			if apierrors.IsConflict(err) {
				return nil
			}
			if err != nil {
				return err
			}
			if !equality.Semantic.DeepDerivative(sample, bare(sample, updated)) {
				return fmt.Errorf("sent %+v, got %+v", sample, updated)
			}
			return nil
		}})
	}
	return checks
}

// bare returns a copy of made with the metadata of the sample, which lacks the fields that the server adds.
func bare(sample, made runtime.Object) runtime.Object {
	made = made.DeepCopyObject()
	reflect.ValueOf(made).Elem().FieldByName("ObjectMeta").Set(reflect.ValueOf(sample).Elem().FieldByName("ObjectMeta"))
	return made
}

var workloadChecks = []check{
	{"rollout: Deployment", func(ctx context.Context, s *server) error {
		client := s.typed.AppsV1().Deployments(s.namespace)
		if _, err := client.Create(ctx, deployment("rolled", 2), metav1.CreateOptions{}); err != nil {
			return err
		}
		done := func() (bool, error) {
			found, err := client.Get(ctx, "rolled", metav1.GetOptions{})
			return err == nil && found.Status.ObservedGeneration == found.Generation && found.Status.UpdatedReplicas == 2 &&
				found.Status.AvailableReplicas == 2 && found.Status.Replicas == 2, err
		}
		if err := until(ctx, "it is available", done); err != nil {
			return err
		}
		patch := `{"spec":{"template":{"metadata":{"annotations":{"restarted":"now"}}}}}`
		if _, err := client.Patch(ctx, "rolled", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return err
		}
		return until(ctx, "it is available again", done)
	}},
	{"rollout: StatefulSet", func(ctx context.Context, s *server) error {
		client := s.typed.AppsV1().StatefulSets(s.namespace)
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: appsv1.StatefulSetSpec{
			Replicas: pointer(int32(2)), Selector: selector("db"), ServiceName: "db", Template: template("db"),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*claim("data")},
		}}
		if _, err := client.Create(ctx, set, metav1.CreateOptions{}); err != nil {
			return err
		}
		classes, err := s.typed.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		err = until(ctx, "it is ready", func() (bool, error) {
			data, err := s.typed.CoreV1().PersistentVolumeClaims(s.namespace).Get(ctx, "data-db-0", metav1.GetOptions{})
			if err == nil && data.Status.Phase == corev1.ClaimPending && len(classes.Items) == 0 && time.Since(data.CreationTimestamp.Time) > 10*time.Second {
				return false, unsupported{"nothing provisions volumes"}
			}
			found, err := client.Get(ctx, "db", metav1.GetOptions{})
			return err == nil && found.Status.ReadyReplicas == 2 && found.Status.UpdateRevision != "" &&
				found.Status.ObservedGeneration == found.Generation, err
		})
		if err != nil {
			return err
		}
		first, err := s.typed.CoreV1().Pods(s.namespace).Get(ctx, "db-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if first.Labels["apps.kubernetes.io/pod-index"] != "0" {
			return fmt.Errorf("labels %v", first.Labels)
		}
		_, err = s.typed.CoreV1().PersistentVolumeClaims(s.namespace).Get(ctx, "data-db-1", metav1.GetOptions{})
		return err
	}},
	{"rollout: DaemonSet", func(ctx context.Context, s *server) error {
		client := s.typed.AppsV1().DaemonSets(s.namespace)
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: appsv1.DaemonSetSpec{
			Selector: selector("agent"), Template: template("agent"),
		}}
		if _, err := client.Create(ctx, set, metav1.CreateOptions{}); err != nil {
			return err
		}
		nodes, err := s.typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		wanted := int32(len(nodes.Items))
		return until(ctx, "it is on every node", func() (bool, error) {
			found, err := client.Get(ctx, "agent", metav1.GetOptions{})
			return err == nil && found.Status.DesiredNumberScheduled == wanted && found.Status.NumberAvailable == wanted &&
				found.Status.UpdatedNumberScheduled == wanted, err
		})
	}},
	{"rollout: Job", func(ctx context.Context, s *server) error {
		client := s.typed.BatchV1().Jobs(s.namespace)
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "once"}, Spec: batchv1.JobSpec{Template: template("once")}}
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		if _, err := client.Create(ctx, job, metav1.CreateOptions{}); err != nil {
			return err
		}
		return until(ctx, "it is complete", func() (bool, error) {
			found, err := client.Get(ctx, "once", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			for _, condition := range found.Status.Conditions {
				if condition.Type == batchv1.JobComplete && condition.Status == corev1.ConditionTrue {
					if found.Status.Succeeded != 1 || found.Status.CompletionTime == nil {
						return false, fmt.Errorf("%+v", found.Status)
					}
					return true, nil
				}
			}
			return false, nil
		})
	}},
	{"logs", func(ctx context.Context, s *server) error {
		client := s.typed.CoreV1().Pods(s.namespace)
		if _, err := client.Create(ctx, pod("talking"), metav1.CreateOptions{}); err != nil {
			return err
		}
		if err := s.running(ctx, "talking"); err != nil {
			return err
		}
		stream, err := client.GetLogs("talking", &corev1.PodLogOptions{Container: "main", TailLines: pointer(int64(1))}).Stream(ctx)
		if err != nil {
			if apierrors.IsInternalError(err) || apierrors.IsBadRequest(err) {
				return unsupported{err.Error()}
			}
			return err
		}
		defer stream.Close()
		text, err := io.ReadAll(stream)
		if err == nil && strings.Count(string(text), "\n") != 1 {
			err = fmt.Errorf("%q", text)
		}
		if err != nil {
			return err
		}
		_, err = client.GetLogs("talking", &corev1.PodLogOptions{Previous: true}).DoRaw(ctx)
		if !apierrors.IsBadRequest(err) {
			return fmt.Errorf("those of a container that never ended: %v", err)
		}
		return nil
	}},
	{"leader election", func(ctx context.Context, s *server) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		led := make(chan struct{})
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Name: "leader", Namespace: s.namespace}, Client: s.typed.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
			},
			LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 500 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { close(led) }, OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			return err
		}
		go elector.Run(ctx)
		select {
		case <-led:
		case <-ctx.Done():
			return errors.New("never led")
		}
		return until(ctx, "the lease was renewed", func() (bool, error) {
			lease, err := s.typed.CoordinationV1().Leases(s.namespace).Get(ctx, "leader", metav1.GetOptions{})
			return err == nil && lease.Spec.RenewTime.After(lease.Spec.AcquireTime.Time), err
		})
	}},
	{"delete: a namespace with all that is in it", func(ctx context.Context, s *server) error {
		namespaces := s.typed.CoreV1().Namespaces()
		home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "client-go-gone-"}}
		home, err := namespaces.Create(ctx, home, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		client := s.typed.CoreV1().ConfigMaps(home.Name)
		if _, err := client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "inside"}}, metav1.CreateOptions{}); err != nil {
			return err
		}
		if err := namespaces.Delete(ctx, home.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return until(ctx, "it is gone", func() (bool, error) {
			_, err := namespaces.Get(ctx, home.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return true, gone(client.Get(ctx, "inside", metav1.GetOptions{}))
			}
			return false, err
		})
	}},
}

// running waits until the Pod with this name is ready.
func (s *server) running(ctx context.Context, name string) error {
	return until(ctx, "Pod "+name+" is ready", func() (bool, error) {
		found, err := s.typed.CoreV1().Pods(s.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == corev1.PodReady {
				return condition.Status == corev1.ConditionTrue, nil
			}
		}
		return false, nil
	})
}
