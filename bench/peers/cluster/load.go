package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	tracking = "argocd.argoproj.io/tracking-id"
	group    = "bench.taffrail.dev"
)

var customs = []string{"Database", "Queue", "Certificate"}

var began = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

type loader struct {
	typed   kubernetes.Interface
	dynamic dynamic.Interface
}

// load creates the same objects in each run: five apps of 100 objects in each namespace; or, if dense is not 0, this
// number of apps in one namespace.
func load(config *rest.Config, namespaces, dense int) {
	config.UserAgent = "load"
	plain := rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	typed, err := kubernetes.NewForConfig(config)
	must(err)
	custom, err := dynamic.NewForConfig(plain)
	must(err)
	l := &loader{typed, custom}
	l.define(plain)

	type app struct{ namespace, name string }
	var apps []app
	for n := range namespaces {
		if dense > 0 {
			break
		}
		namespace := fmt.Sprintf("team-%03d", n)
		l.namespace(namespace)
		for a := range 5 {
			apps = append(apps, app{namespace, fmt.Sprintf("app-%03d-%d", n, a)})
		}
	}
	if dense > 0 {
		l.namespace("dense")
		for a := range dense {
			apps = append(apps, app{"dense", fmt.Sprintf("dense-%03d", a)})
		}
	}
	work := make(chan app)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for one := range work {
				l.app(one.namespace, one.name)
			}
		})
	}
	for _, one := range apps {
		work <- one
	}
	close(work)
	group.Wait()
	say(map[string]any{"apps": len(apps), "objects": 100 * len(apps)})
}

func (l *loader) namespace(name string) {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	made(l.typed.CoreV1().Namespaces().Create(context.Background(), object, metav1.CreateOptions{}))
}

func made[T any](object T, err error) T {
	if err != nil && !errors.IsAlreadyExists(err) {
		must(err)
	}
	return object
}

// define creates the definitions of the three custom kinds.
func (l *loader) define(config *rest.Config) {
	client, err := extensions.NewForConfig(config)
	must(err)
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	yes := true
	for _, kind := range customs {
		singular := strings.ToLower(kind)
		object := &extensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: singular + "s." + group},
			Spec: extensionsv1.CustomResourceDefinitionSpec{
				Group: group, Scope: extensionsv1.NamespaceScoped,
				Names: extensionsv1.CustomResourceDefinitionNames{Plural: singular + "s", Singular: singular, Kind: kind, ListKind: kind + "List"},
				Versions: []extensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true,
					Schema:       &extensionsv1.CustomResourceValidation{OpenAPIV3Schema: &extensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}},
					Subresources: &extensionsv1.CustomResourceSubresources{Status: &extensionsv1.CustomResourceSubresourceStatus{}},
				}},
			},
		}
		made(crds.Create(context.Background(), object, metav1.CreateOptions{}))
		for {
			found, err := crds.Get(context.Background(), object.Name, metav1.GetOptions{})
			must(err)
			established := false
			for _, condition := range found.Status.Conditions {
				established = established || condition.Type == extensionsv1.Established && condition.Status == extensionsv1.ConditionTrue
			}
			if established {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func metadata(namespace, app, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels: map[string]string{
			"app.kubernetes.io/instance": app, "app.kubernetes.io/name": "shop", "app.kubernetes.io/managed-by": "argocd",
			"app.kubernetes.io/part-of": "storefront", "app.kubernetes.io/version": "1.25.3", "team": namespace,
		},
		Annotations: map[string]string{"example.dev/contact": namespace + "@example.dev", "example.dev/runbook": "https://runbooks.example.dev/" + app},
	}
}

// tracked adds the annotation by which Argo CD recognizes the objects that it manages.
func tracked(object metav1.ObjectMeta, app, groupKind string) metav1.ObjectMeta {
	object.Annotations[tracking] = fmt.Sprintf("%s:%s:%s/%s", app, groupKind, object.Namespace, object.Name)
	return object
}

func owned(object metav1.ObjectMeta, apiVersion, kind string, owner metav1.Object) metav1.ObjectMeta {
	yes := true
	object.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes,
	}}
	return object
}

func podSpec(app string) corev1.PodSpec {
	quantity := resource.MustParse
	probe := func(path string, delay int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(8080)}},
			InitialDelaySeconds: delay, PeriodSeconds: 10,
		}
	}
	env := []corev1.EnvVar{
		{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: app + "-secret-0"}, Key: "password"}}},
	}
	for n := range 3 {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", n), Value: fmt.Sprintf("https://service-%d.%s.svc.cluster.local:8443/api/v2", n, app)})
	}
	settings := corev1.Volume{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: app + "-config-0"}}}}
	return corev1.PodSpec{
		ServiceAccountName: app + "-account-0",
		Volumes:            []corev1.Volume{settings, {Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		Containers: []corev1.Container{{
			Name: "app", Image: "registry.example.dev/team/shop:1.25.3", Args: []string{"serve", "--port=8080", "--config=/etc/app/settings.yaml", "--verbose"}, Env: env,
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "metrics", ContainerPort: 9090}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": quantity("100m"), "memory": quantity("128Mi")}, Limits: corev1.ResourceList{"cpu": quantity("1"), "memory": quantity("512Mi")},
			},
			LivenessProbe: probe("/live", 10), ReadinessProbe: probe("/ready", 5),
			VolumeMounts: []corev1.VolumeMount{{Name: "settings", MountPath: "/etc/app"}, {Name: "tmp", MountPath: "/tmp"}},
		}, {
			Name: "proxy", Image: "registry.example.dev/mesh/proxy:4.5.6", Args: []string{"proxy", "sidecar", "--concurrency", "2"},
			Ports: []corev1.ContainerPort{{Name: "admin", ContainerPort: 15000}},
		}},
	}
}

type fate int

const (
	ready fate = iota
	crashing
	pending
)

// fateOf decides the state of a Pod, the same in each run: 2 of 100 Pods crash, and 3 of 100 have no node.
func fateOf(namespace, app string, deployment, pod int) fate {
	number := 17
	for _, byte := range []byte(namespace + app) {
		number = (number*31 + int(byte)) % 1_000_003
	}
	switch (number + deployment*5 + pod) * 7919 % 100 {
	case 0, 1:
		return crashing
	case 2, 3, 4:
		return pending
	}
	return ready
}

func podStatus(name string, is fate) corev1.PodStatus {
	if is == pending {
		return corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", LastTransitionTime: began,
			Message: "0/100 nodes are available: 100 Insufficient cpu.",
		}}}
	}
	flag, started := corev1.ConditionTrue, true
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}
	restarts := int32(0)
	if is == crashing {
		flag, started, restarts = corev1.ConditionFalse, false, 17
		state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m0s restarting failed container=app pod=" + name}}
	}
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: began}
	}
	digest := strings.Repeat("0123456789abcdef", 4)
	container := func(name, image string, state corev1.ContainerState, ready bool, restarts int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{
			Name: name, Image: image, ImageID: image + "@sha256:" + digest, ContainerID: "containerd://" + digest, State: state, Ready: ready, Started: &ready, RestartCount: restarts,
		}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}
	return corev1.PodStatus{
		Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, HostIP: "10.1.2.3", PodIP: "10.2.3.4", PodIPs: []corev1.PodIP{{IP: "10.2.3.4"}}, HostIPs: []corev1.HostIP{{IP: "10.1.2.3"}}, StartTime: &began,
		Conditions: []corev1.PodCondition{
			condition("PodReadyToStartContainers", "True"), condition(corev1.PodInitialized, "True"), condition(corev1.PodReady, flag), condition(corev1.ContainersReady, flag), condition(corev1.PodScheduled, "True"),
		},
		ContainerStatuses: []corev1.ContainerStatus{
			container("app", "registry.example.dev/team/shop:1.25.3", state, started, restarts), container("proxy", "registry.example.dev/mesh/proxy:4.5.6", running, true, 0),
		},
	}
}

// app creates one app: 45 objects without owners, 20 of which Argo CD tracks, and the objects that they own.
func (l *loader) app(namespace, app string) {
	ctx, create, update := context.Background(), metav1.CreateOptions{}, metav1.UpdateOptions{}
	core := l.typed.CoreV1()
	for n := range 2 {
		object := metadata(namespace, app, fmt.Sprintf("%s-account-%d", app, n))
		if n == 0 {
			object = tracked(object, app, "/ServiceAccount")
		}
		made(core.ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: object}, create))
	}
	for n := range 15 {
		object := metadata(namespace, app, fmt.Sprintf("%s-config-%d", app, n))
		if n < 5 {
			object = tracked(object, app, "/ConfigMap")
		}
		data := map[string]string{"settings.yaml": strings.Repeat(fmt.Sprintf("option-%d: value\n", n), 25)}
		made(core.ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: object, Data: data}, create))
	}
	for n := range 10 {
		object := metadata(namespace, app, fmt.Sprintf("%s-secret-%d", app, n))
		data := map[string][]byte{"password": []byte(strings.Repeat("secret", 80)), "user": []byte("shop")}
		made(core.Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: object, Data: data}, create))
	}
	for _, kind := range customs {
		object := metadata(namespace, app, app+"-"+strings.ToLower(kind))
		object = tracked(object, app, group+"/"+kind)
		l.custom(object, kind)
	}
	var pods []*corev1.Pod
	for n := range 8 {
		pods = append(pods, l.deployment(namespace, app, n)...)
	}
	for n := range 5 {
		object := metadata(namespace, app, fmt.Sprintf("%s-service-%d", app, n))
		if n < 3 {
			object = tracked(object, app, "/Service")
		}
		service, err := core.Services(namespace).Create(ctx, &corev1.Service{ObjectMeta: object, Spec: corev1.ServiceSpec{
			ClusterIP: "None", Selector: map[string]string{"component": fmt.Sprintf("%s-%d", app, n)}, Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		}}, create)
		must(err)
		slice := owned(metadata(namespace, app, service.Name+"-x7k2p"), "v1", "Service", service)
		slice.Labels = map[string]string{"kubernetes.io/service-name": service.Name, "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
		yes, port, name := true, int32(8080), "http"
		var endpoints []discoveryv1.Endpoint
		for _, pod := range pods[n*8 : n*8+4] {
			endpoints = append(endpoints, discoveryv1.Endpoint{
				Addresses: []string{"10.2.3.4"}, Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes},
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: pod.Name, UID: pod.UID},
			})
		}
		made(l.typed.DiscoveryV1().EndpointSlices(namespace).Create(ctx, &discoveryv1.EndpointSlice{
			ObjectMeta: slice, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
		}, create))
	}
	path := networkingv1.PathTypePrefix
	made(l.typed.NetworkingV1().Ingresses(namespace).Create(ctx, &networkingv1.Ingress{ObjectMeta: metadata(namespace, app, app+"-web"), Spec: networkingv1.IngressSpec{
		Rules: []networkingv1.IngressRule{{Host: app + ".example.dev", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
			Path: "/", PathType: &path, Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: app + "-service-0", Port: networkingv1.ServiceBackendPort{Number: 80}}},
		}}}}}},
	}}, create))
	scalers := l.typed.AutoscalingV2().HorizontalPodAutoscalers(namespace)
	scaler, err := scalers.Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metadata(namespace, app, app+"-web"), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: app + "-deployment-0"}, MaxReplicas: 10,
	}}, create)
	must(err)
	able := func(kind autoscalingv2.HorizontalPodAutoscalerConditionType, reason string) autoscalingv2.HorizontalPodAutoscalerCondition {
		return autoscalingv2.HorizontalPodAutoscalerCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: began}
	}
	scaler.Status = autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 5, DesiredReplicas: 5, Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{
		able(autoscalingv2.AbleToScale, "ReadyForNewScale"), able(autoscalingv2.ScalingActive, "ValidMetricFound"),
	}}
	_, err = scalers.UpdateStatus(ctx, scaler, update)
	must(err)
}

func (l *loader) custom(object metav1.ObjectMeta, kind string) {
	client := l.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: strings.ToLower(kind) + "s"}).Namespace(object.Namespace)
	whole := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": kind, "spec": map[string]any{
		"size": int64(3), "storage": map[string]any{"class": "fast", "gigabytes": int64(100)}, "version": "16.2", "parameters": map[string]any{"max_connections": "200", "shared_buffers": "2GB"},
	}}}
	whole.SetName(object.Name)
	whole.SetLabels(object.Labels)
	whole.SetAnnotations(object.Annotations)
	written, err := client.Create(context.Background(), whole, metav1.CreateOptions{})
	must(err)
	at := began.UTC().Format(time.RFC3339)
	written.Object["status"] = map[string]any{"observedGeneration": int64(1), "conditions": []any{
		map[string]any{"type": "Ready", "status": "True", "reason": "Available", "message": "All is well", "lastTransitionTime": at},
		map[string]any{"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "message": "", "lastTransitionTime": at},
	}}
	_, err = client.UpdateStatus(context.Background(), written, metav1.UpdateOptions{})
	must(err)
}

// deployment creates a Deployment of five Pods; the first two Deployments of an app also have an old ReplicaSet.
func (l *loader) deployment(namespace, app string, n int) []*corev1.Pod {
	ctx, create, update := context.Background(), metav1.CreateOptions{}, metav1.UpdateOptions{}
	name := fmt.Sprintf("%s-deployment-%d", app, n)
	labels := map[string]string{"component": fmt.Sprintf("%s-%d", app, n), "app.kubernetes.io/instance": app, "app.kubernetes.io/name": "shop"}
	with := func(more map[string]string) map[string]string {
		all := map[string]string{}
		for _, some := range []map[string]string{labels, more} {
			for key, value := range some {
				all[key] = value
			}
		}
		return all
	}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"checksum/config": strings.Repeat("c0ffee", 10)}}, Spec: podSpec(app)}
	five, none := int32(5), int32(0)
	client := l.typed.AppsV1()
	deployment, err := client.Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: tracked(metadata(namespace, app, name), app, "apps/Deployment"),
		Spec:       appsv1.DeploymentSpec{Replicas: &five, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}, create)
	must(err)
	well := int32(0)
	for pod := range 5 {
		if fateOf(namespace, app, n, pod) == ready {
			well++
		}
	}
	var pods []*corev1.Pod
	sets := 1
	if n < 2 {
		sets = 2
	}
	for s := range sets {
		hash := fmt.Sprintf("%08x%d", (n+1)*0x1234567, s)
		object := owned(metadata(namespace, app, name+"-"+hash), "apps/v1", "Deployment", deployment)
		object.Labels = with(map[string]string{"pod-template-hash": hash})
		object.Annotations = map[string]string{"deployment.kubernetes.io/revision": fmt.Sprint(sets - s), "deployment.kubernetes.io/desired-replicas": "5"}
		replicas, now := &five, well
		if s > 0 {
			replicas, now = &none, 0
		}
		set, err := client.ReplicaSets(namespace).Create(ctx, &appsv1.ReplicaSet{ObjectMeta: object, Spec: appsv1.ReplicaSetSpec{
			Replicas: replicas, Selector: &metav1.LabelSelector{MatchLabels: object.Labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: object.Labels}, Spec: podSpec(app)},
		}}, create)
		must(err)
		set.Status = appsv1.ReplicaSetStatus{ObservedGeneration: set.Generation, Replicas: *replicas, FullyLabeledReplicas: *replicas, ReadyReplicas: now, AvailableReplicas: now}
		_, err = client.ReplicaSets(namespace).UpdateStatus(ctx, set, update)
		must(err)
		for p := range int(*replicas) {
			object := owned(metadata(namespace, app, fmt.Sprintf("%s-%05x", set.Name, p*7919+n)), "apps/v1", "ReplicaSet", set)
			object.Labels = set.Labels
			object.Annotations = template.Annotations
			is := fateOf(namespace, app, n, p)
			spec := podSpec(app)
			if is != pending {
				spec.NodeName = fmt.Sprintf("node-%02d", (p*13+n*7)%100)
			}
			pod, err := l.typed.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: object, Spec: spec}, create)
			must(err)
			pod.Status = podStatus(pod.Name, is)
			pod, err = l.typed.CoreV1().Pods(namespace).UpdateStatus(ctx, pod, update)
			must(err)
			pods = append(pods, pod)
		}
	}
	available := corev1.ConditionTrue
	reason, message := "MinimumReplicasAvailable", "Deployment has minimum availability."
	if well < 4 {
		available, reason, message = corev1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
	}
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: 5, UpdatedReplicas: 5, ReadyReplicas: well, AvailableReplicas: well, UnavailableReplicas: 5 - well,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: available, Reason: reason, Message: message, LastTransitionTime: began, LastUpdateTime: began},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable", Message: "ReplicaSet has successfully progressed.", LastTransitionTime: began, LastUpdateTime: began},
		},
	}
	_, err = client.Deployments(namespace).UpdateStatus(ctx, deployment, update)
	must(err)
	return pods
}
