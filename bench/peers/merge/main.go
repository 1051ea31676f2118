// Applies and updates objects with the library that the Kubernetes API server uses, and tells what it makes of them.
//
// It reads one JSON document a line and answers each with one. A document with a schema begins anew with an empty object;
// the others are steps: {"manager", "object", "force", "update"}. The answer has the object, the fields of each manager,
// and the conflicts, or the error for which nothing changed.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

const version = fieldpath.APIVersion("v1")

type request struct {
	Schema  json.RawMessage `json:"schema"`
	Type    string          `json:"type"`
	Ignored json.RawMessage `json:"ignored"`
	// A schema that replaces the present one while object and managers stay.
	Keeps   bool            `json:"keeps"`
	Manager string          `json:"manager"`
	Object  json.RawMessage `json:"object"`
	Force   bool            `json:"force"`
	Update  bool            `json:"update"`
}

type owned struct {
	Fields  json.RawMessage `json:"fields"`
	Applied bool            `json:"applied"`
}

type answer struct {
	Object    any              `json:"object"`
	Managers  map[string]owned `json:"managers"`
	Conflicts []string         `json:"conflicts,omitempty"`
	Error     string           `json:"error,omitempty"`
}

// One version needs no conversion.
type same struct{}

func (same) Convert(object *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return object, nil
}

func (same) IsMissingVersionError(error) bool { return false }

type state struct {
	of       typed.ParseableType
	live     value.Value
	managers fieldpath.ManagedFields
	updater  *merge.Updater
}

func (s *state) begin(r request) error {
	parser, err := typed.NewParser(typed.YAMLObject(r.Schema))
	if err != nil {
		return err
	}
	s.of = parser.Type(r.Type)
	builder := merge.UpdaterBuilder{Converter: same{}}
	if len(r.Ignored) > 0 {
		ignored := &fieldpath.Set{}
		if err := ignored.FromJSON(bytes.NewReader(r.Ignored)); err != nil {
			return err
		}
		builder.IgnoredFields = map[fieldpath.APIVersion]*fieldpath.Set{version: ignored}
	}
	s.updater = builder.BuildUpdater()
	if !r.Keeps {
		s.live = value.NewValueInterface(map[string]any{})
		s.managers = fieldpath.ManagedFields{}
	}
	return nil
}

func (s *state) step(r request) error {
	object, err := value.FromJSON(r.Object)
	if err != nil {
		return err
	}
	live, err := typed.AsTyped(s.live, s.of.Schema, s.of.TypeRef, typed.AllowDuplicates)
	if err != nil {
		return err
	}
	managers := s.managers.Copy()
	if r.Update {
		after, err := typed.AsTyped(object, s.of.Schema, s.of.TypeRef, typed.AllowDuplicates)
		if err != nil {
			return err
		}
		after, managers, err = s.updater.Update(live, after, version, managers, r.Manager)
		if err != nil {
			return err
		}
		s.live, s.managers = after.AsValue(), managers
		return nil
	}
	config, err := typed.AsTyped(object, s.of.Schema, s.of.TypeRef)
	if err != nil {
		return err
	}
	after, managers, err := s.updater.Apply(live, config, version, managers, r.Manager, r.Force)
	if err != nil {
		return err
	}
	if after != nil {
		s.live = after.AsValue()
	}
	s.managers = managers
	return nil
}

func (s *state) tell(err error) (answer, error) {
	told := answer{Managers: map[string]owned{}}
	if s.live != nil {
		told.Object = s.live.Unstructured()
	}
	for name, set := range s.managers {
		fields, err := set.Set().ToJSON()
		if err != nil {
			return told, err
		}
		told.Managers[name] = owned{Fields: fields, Applied: set.Applied()}
	}
	var conflicts merge.Conflicts
	if errors.As(err, &conflicts) {
		for _, conflict := range conflicts {
			told.Conflicts = append(told.Conflicts, conflict.Manager+" "+conflict.Path.String())
		}
		sort.Strings(told.Conflicts)
	} else if err != nil {
		told.Error = err.Error()
	}
	return told, nil
}

func run() error {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	encoder := json.NewEncoder(out)
	state := &state{}
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out.Flush()
		} else if err != nil {
			return err
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		if len(r.Schema) > 0 {
			if err = state.begin(r); err != nil {
				return err
			}
		} else {
			err = state.step(r)
		}
		told, err := state.tell(err)
		if err != nil {
			return err
		}
		if err := encoder.Encode(told); err != nil {
			return err
		}
		// Who asks sends many steps at a time, and waits for the answers.
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "merge:", err)
		os.Exit(1)
	}
}
