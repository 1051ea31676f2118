package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// list reads all kinds in pages and keeps nothing, which is the minimum cost of reading these bytes with client-go.
func list(config *rest.Config) {
	all := resources(config)
	client, err := kubernetes.NewForConfig(config)
	must(err)
	raw := client.CoreV1().RESTClient()
	var lock sync.Mutex
	var group sync.WaitGroup
	size, requests := 0, 0
	places := make(chan struct{}, 4)
	for _, one := range all {
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			token := ""
			for {
				request := raw.Get().AbsPath(path(one.GroupVersionResource)).Param("limit", "500").SetHeader("Accept", "application/json")
				if token != "" {
					request.Param("continue", token)
				}
				body, err := request.Do(context.Background()).Raw()
				must(err)
				lock.Lock()
				size += len(body)
				requests++
				lock.Unlock()
				if token = next(body); token == "" {
					return
				}
			}
		})
	}
	group.Wait()
	s := &subject{answers: func() answers { return answers{} }, queries: func(string) any { return nil }}
	s.obey(map[string]any{"synced": true, "bytes": size, "requests": requests, "kinds": len(all)})
}

func path(resource schema.GroupVersionResource) string {
	if resource.Group == "" {
		return "/api/" + resource.Version + "/" + resource.Resource
	}
	return "/apis/" + resource.Group + "/" + resource.Version + "/" + resource.Resource
}

// next returns the token of the next page, which a list has before its items; empty on the last page.
func next(body []byte) string {
	head := body[:min(len(body), 4096)]
	_, rest, found := bytes.Cut(head, []byte(`"continue":"`))
	if !found {
		return ""
	}
	token, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(token)
}

// watchBare watches a kind, and records when events come; it reads only names and versions of objects. If a busy server
// ends the watch, it watches again from the last version.
func watchBare(config *rest.Config, kind string) {
	client, err := kubernetes.NewForConfig(config)
	must(err)
	version := schema.GroupVersionResource{Version: "v1", Resource: kind}
	if kind == "deployments" {
		version.Group = "apps"
	}
	body, err := client.CoreV1().RESTClient().Get().AbsPath(path(version)).
		Param("limit", "1").SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").Do(context.Background()).Raw()
	must(err)
	var head struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	must(json.Unmarshal(body, &head))
	seen := head.Metadata.ResourceVersion
	open := func() io.Reader {
		stream, err := client.CoreV1().RESTClient().Get().AbsPath(path(version)).
			Param("watch", "true").Param("resourceVersion", seen).
			SetHeader("Accept", "application/json").Stream(context.Background())
		must(err)
		return stream
	}
	s := &subject{answers: func() answers { return answers{} }, queries: func(string) any { return nil }}
	lines := bufio.NewReaderSize(open(), 1<<20)
	go func() {
		for {
			line, err := lines.ReadBytes('\n')
			if err == io.EOF {
				lines.Reset(open())
				continue
			}
			must(err)
			s.recorder.note(field(line, `"namespace":"`), field(line, `"name":"`))
			seen = field(line, `"resourceVersion":"`)
		}
	}()
	s.obey(map[string]any{"synced": true})
}

// field returns the first value of a key in the text of an event. Name, namespace and version of the object come first.
func field(line []byte, key string) string {
	_, rest, _ := bytes.Cut(line, []byte(key))
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return strings.Clone(string(value))
}
