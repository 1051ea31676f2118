package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff/testdata"
	"github.com/go-logr/logr"
	openapi "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	openapiproto "k8s.io/kube-openapi/pkg/util/proto"
)

// manager is Argo CD's field manager.
const manager = "argocd-controller"

// pairs are wanted and live objects in memory, with the answers of an API server to dry runs.
type pairs struct {
	wanted, live []*unstructured.Unstructured
	answers      answered
}

// answered answers dry runs with what it has, by kind and name.
type answered map[string]string

func (a answered) Run(_ context.Context, object *unstructured.Unstructured, _ string) (string, error) {
	answer, ok := a[keyOf(object)]
	if !ok {
		return "", fmt.Errorf("no answer for %s", keyOf(object))
	}
	return answer, nil
}

func keyOf(object *unstructured.Unstructured) string {
	return object.GetKind() + "/" + object.GetNamespace() + "/" + object.GetName()
}

func readPairs(file string) pairs {
	input, err := os.Open(file)
	must(err)
	defer input.Close()
	all := pairs{answers: answered{}}
	lines := bufio.NewReaderSize(input, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return all
		}
		var pair struct {
			Wanted, Live map[string]any
			Answer       json.RawMessage
		}
		must(json.Unmarshal(line, &pair))
		wanted := &unstructured.Unstructured{Object: pair.Wanted}
		all.wanted = append(all.wanted, wanted)
		all.live = append(all.live, &unstructured.Unstructured{Object: pair.Live})
		if len(pair.Answer) > 0 {
			all.answers[keyOf(wanted)] = string(pair.Answer)
		}
	}
}

// custom has the type of the pairs' custom kind, as a server would tell it.
const custom = `{"swagger": "2.0", "info": {"title": "custom", "version": "1"}, "paths": {}, "definitions": {
	"com.example.bench.v1.Chart": {"type": "object",
		"x-kubernetes-group-version-kind": [{"group": "bench.example.com", "version": "v1", "kind": "Chart"}],
		"properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"},
			"metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
			"spec": {"type": "object", "properties": {"chart": {"type": "string"}, "version": {"type": "string"},
				"interval": {"type": "string"}, "values": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				"ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
					"items": {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}}}},
			"status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}`

// parser returns the types of Kubernetes' kinds and of the custom one.
func parser() *managedfields.GvkParser {
	document := &openapi.Document{}
	must(proto.Unmarshal(testdata.OpenAPIV2Doc, document))
	more, err := openapi.ParseDocument([]byte(custom))
	must(err)
	definitions := document.GetDefinitions()
	definitions.AdditionalProperties = append(definitions.GetAdditionalProperties(), more.GetDefinitions().GetAdditionalProperties()...)
	models, err := openapiproto.NewOpenAPIData(document)
	must(err)
	parser, err := managedfields.NewGVKParser(models, false)
	must(err)
	return parser
}

// compare reads the pairs of a file and obeys `diff MODE` and `modified MODE FILE`.
func compare(file string) {
	all := readPairs(file)
	types := parser()
	options := map[string][]diff.Option{
		// As Argo CD's controller compares unless an app says otherwise.
		"three-way": {},
		// As it compares apps with the option ServerSideApply.
		"structured-merge": {diff.WithStructuredMergeDiff(true)},
		// As it compares with ServerSideDiff, but that no API server is asked.
		"server-side": {diff.WithServerSideDiff(true), diff.WithServerSideDryRunner(all.answers)},
	}
	run := func(mode string) *diff.DiffResultList {
		chosen, ok := options[mode]
		if !ok {
			must(fmt.Errorf("unknown mode %q", mode))
		}
		chosen = append([]diff.Option{
			diff.WithLogr(logr.Discard()), diff.WithManager(manager), diff.WithGVKParser(types),
			diff.WithNormalizer(diff.GetNoopNormalizer()), diff.IgnoreAggregatedRoles(false),
		}, chosen...)
		result, err := diff.DiffArray(all.wanted, all.live, chosen...)
		must(err)
		return result
	}
	s := &subject{further: func(word, rest string) any {
		mode, target, _ := strings.Cut(rest, " ")
		result := run(mode)
		modified := make([]bool, 0, len(result.Diffs))
		count := 0
		for _, one := range result.Diffs {
			modified = append(modified, one.Modified)
			if one.Modified {
				count++
			}
		}
		if word == "modified" {
			text, err := json.Marshal(modified)
			must(err)
			must(os.WriteFile(target, text, 0o600))
		}
		return map[string]any{"modified": count}
	}}
	s.obey(map[string]any{"pairs": len(all.wanted)})
}
