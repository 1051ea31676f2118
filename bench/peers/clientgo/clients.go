package main

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// client returns the REST client of the typed client for an API group.
func (s *server) client(group string) (rest.Interface, bool) {
	client, ok := map[string]rest.Interface{
		"":                          s.typed.CoreV1().RESTClient(),
		"apps":                      s.typed.AppsV1().RESTClient(),
		"batch":                     s.typed.BatchV1().RESTClient(),
		"autoscaling":               s.typed.AutoscalingV2().RESTClient(),
		"networking.k8s.io":         s.typed.NetworkingV1().RESTClient(),
		"policy":                    s.typed.PolicyV1().RESTClient(),
		"rbac.authorization.k8s.io": s.typed.RbacV1().RESTClient(),
		"coordination.k8s.io":       s.typed.CoordinationV1().RESTClient(),
	}[group]
	return client, ok
}

// path returns the API path of a sample. A sample called "sample" is in the namespace of the checks; others are in none.
func (s *server) path(sample runtime.Object, groupVersion, plural, name string) []string {
	path := []string{"/apis", groupVersion}
	if !strings.Contains(groupVersion, "/") {
		path[0] = "/api"
	}
	if object, err := meta.Accessor(sample); err == nil && object.GetName() == "sample" {
		path = append(path, "namespaces", s.namespace)
	}
	path = append(path, plural)
	if name != "" {
		path = append(path, name)
	}
	return path
}
