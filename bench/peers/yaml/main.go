// Reads manifests as kubectl does, and tells their values.
//
// It reads one text a line, in base64, and answers each with one JSON document: the values of its documents that are not
// null, and the error that ends them. An answer says, too, what the error of the text as YAML is, and if kubectl ignores a
// part of it.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"
)

// The size of the buffer in which kubectl looks for the start of JSON.
const bufferSize = 4096

type answer struct {
	Documents []any  `json:"documents"`
	Error     string `json:"error,omitempty"`
	// The error of the text as YAML, whatever it begins with.
	YAML string `json:"yaml,omitempty"`
	// True if text stands behind the end of a document, which kubectl does not read.
	Ignores bool `json:"ignores,omitempty"`
}

func read(text []byte) (told answer) {
	told.Documents = []any{}
	defer func() {
		if problem := recover(); problem != nil {
			told.Error = fmt.Sprintf("panic: %v", problem)
		}
	}()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), bufferSize)
	for {
		document := runtime.RawExtension{}
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return told
		} else if err != nil {
			told.Error = err.Error()
			return told
		}
		document.Raw = bytes.TrimSpace(document.Raw)
		if len(document.Raw) == 0 || bytes.Equal(document.Raw, []byte("null")) {
			continue
		}
		var value any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(document.Raw, &value); err != nil {
			told.Error = err.Error()
			return told
		}
		told.Documents = append(told.Documents, value)
	}
}

// explain adds what the YAML library says of the parts between the separators.
func explain(text []byte, told *answer) {
	defer func() {
		if problem := recover(); problem != nil {
			told.YAML = fmt.Sprintf("panic: %v", problem)
		}
	}()
	parts := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		part, err := parts.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			_, err = sigsyaml.YAMLToJSON(part)
		}
		if err != nil {
			told.YAML = err.Error()
			return
		}
		var value any
		decoder := goyaml.NewDecoder(bytes.NewReader(part))
		if err := decoder.Decode(&value); err == nil && !errors.Is(decoder.Decode(&value), io.EOF) {
			told.Ignores = true
		}
	}
}

func run() error {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	encoder := json.NewEncoder(out)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out.Flush()
		} else if err != nil {
			return err
		}
		text, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(line)))
		if err != nil {
			return err
		}
		told := read(text)
		explain(text, &told)
		if told.Error != "" && told.YAML == "" {
			// What follows a JSON value may be YAML.
			first := json.NewDecoder(bytes.NewReader(text))
			var value json.RawMessage
			if first.Decode(&value) == nil {
				explain(text[first.InputOffset():], &told)
			}
		}
		if err := encoder.Encode(told); err != nil {
			return err
		}
		// The other side sends many texts at a time, and waits for the answers.
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "yaml:", err)
		os.Exit(1)
	}
}
