package main

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

type target struct{ namespace, name, patch string }

// write changes the main condition of rate objects a second, for this number of seconds, and of each object at most once.
func write(config *rest.Config, kind string, rate, seconds int) {
	config.UserAgent = "write"
	client, err := kubernetes.NewForConfig(config)
	must(err)
	var targets []target
	switch kind {
	case "pods":
		targets = pods(client)
	case "deployments":
		targets = deployments(client)
	}
	sort.Slice(targets, func(i, j int) bool {
		return targets[i].namespace+"/"+targets[i].name < targets[j].namespace+"/"+targets[j].name
	})
	wanted := rate * seconds
	if wanted > len(targets) {
		must(fmt.Errorf("%d objects are too few for %d updates", len(targets), wanted))
	}
	// Spread over all namespaces.
	step := len(targets) / wanted
	work := make(chan target, rate)
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			for one := range work {
				var err error
				patch, kindOf := []byte(one.patch), types.StrategicMergePatchType
				if kind == "pods" {
					_, err = client.CoreV1().Pods(one.namespace).Patch(context.Background(), one.name, kindOf, patch, metav1.PatchOptions{}, "status")
				} else {
					_, err = client.AppsV1().Deployments(one.namespace).Patch(context.Background(), one.name, kindOf, patch, metav1.PatchOptions{}, "status")
				}
				must(err)
			}
		})
	}
	began := time.Now()
	for n := range wanted {
		time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(rate))))
		work <- targets[n*step]
	}
	close(work)
	group.Wait()
	say(map[string]any{"written": wanted, "seconds": time.Since(began).Seconds()})
}

func other(status corev1.ConditionStatus) corev1.ConditionStatus {
	if status == corev1.ConditionTrue {
		return corev1.ConditionFalse
	}
	return corev1.ConditionTrue
}

func flip(kind string, status corev1.ConditionStatus) string {
	return fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q,"lastTransitionTime":%q}]}}`, kind, other(status), time.Now().UTC().Format(time.RFC3339))
}

// pods returns the changes of the condition Ready for the Pods whose containers run; in others the condition has no effect.
func pods(client kubernetes.Interface) []target {
	list, err := client.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{ResourceVersion: "0"})
	must(err)
	var targets []target
	for _, pod := range list.Items {
		waits := len(pod.Status.ContainerStatuses) == 0
		for _, container := range pod.Status.ContainerStatuses {
			waits = waits || container.State.Waiting != nil
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && !waits {
				targets = append(targets, target{pod.Namespace, pod.Name, flip(string(condition.Type), condition.Status)})
			}
		}
	}
	return targets
}

func deployments(client kubernetes.Interface) []target {
	list, err := client.AppsV1().Deployments("").List(context.Background(), metav1.ListOptions{ResourceVersion: "0"})
	must(err)
	var targets []target
	for _, deployment := range list.Items {
		for _, condition := range deployment.Status.Conditions {
			if condition.Type == appsv1.DeploymentAvailable {
				targets = append(targets, target{deployment.Namespace, deployment.Name, flip(string(condition.Type), condition.Status)})
			}
		}
	}
	return targets
}
