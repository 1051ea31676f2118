// Package merge has an Updater that leaves all work to Taffrail. A test of taffrail-merge compiles it in place of the
// library's own file of this name (go test -overlay), so that the library's tests judge Taffrail.
//
// Each call sends one JSON document in a line to the address in TAFFRAIL_MERGE_ADDRESS, and reads the answer in one line.
// Taffrail knows no conversion: the Updater drops managers whose version the Converter does not know, and restates those
// whose objects it converts to themselves. A step whose Converter changes an object is left out, and says so.
package merge

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"sync"

	"go.yaml.in/yaml/v2"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Converter makes objects of one version those of another.
type Converter interface {
	Convert(object *typed.TypedValue, version fieldpath.APIVersion) (*typed.TypedValue, error)
	IsMissingVersionError(error) bool
}

// UpdaterBuilder holds the settings of an Updater.
type UpdaterBuilder struct {
	Converter         Converter
	IgnoreFilter      map[fieldpath.APIVersion]fieldpath.Filter
	IgnoredFields     map[fieldpath.APIVersion]*fieldpath.Set
	ReturnInputOnNoop bool
}

// BuildUpdater makes the Updater.
func (u *UpdaterBuilder) BuildUpdater() *Updater {
	return &Updater{
		Converter:     u.Converter,
		IgnoredFields: u.IgnoredFields,
		IgnoreFilter:  u.IgnoreFilter,
		returnsInput:  u.ReturnInputOnNoop,
	}
}

// Updater sends updates and applies to Taffrail.
type Updater struct {
	Converter     Converter
	IgnoredFields map[fieldpath.APIVersion]*fieldpath.Set
	IgnoreFilter  map[fieldpath.APIVersion]fieldpath.Filter
	returnsInput  bool
}

type owned struct {
	Fields  json.RawMessage `json:"fields"`
	Version string          `json:"version"`
	Applied bool            `json:"applied"`
}

type request struct {
	Schema   json.RawMessage  `json:"schema"`
	Type     json.RawMessage  `json:"type"`
	Version  string           `json:"version"`
	Ignored  json.RawMessage  `json:"ignored,omitempty"`
	Live     json.RawMessage  `json:"live"`
	Managers map[string]owned `json:"managers"`
	Manager  string           `json:"manager"`
	Object   json.RawMessage  `json:"object"`
	Force    bool             `json:"force"`
	Update   bool             `json:"update"`
}

type answer struct {
	// Missing if an apply changes nothing, and after updates.
	Object    json.RawMessage            `json:"object"`
	Managers  map[string]owned           `json:"managers"`
	Conflicts map[string]json.RawMessage `json:"conflicts"`
	Error     string                     `json:"error"`
}

// A step that says more than Taffrail can be told.
type leftOut struct{ reason string }

func (l leftOut) Error() string { return "left out: " + l.reason }

// Update records that a manager replaced the live object by the new one.
func (s *Updater) Update(live, object *typed.TypedValue, version fieldpath.APIVersion, managers fieldpath.ManagedFields, manager string) (*typed.TypedValue, fieldpath.ManagedFields, error) {
	_, after, err := s.step(live, object, version, managers, request{Manager: manager, Update: true})
	if err != nil {
		return nil, fieldpath.ManagedFields{}, err
	}
	return object, after, nil
}

// Apply merges what a manager wants into the live object.
func (s *Updater) Apply(live, object *typed.TypedValue, version fieldpath.APIVersion, managers fieldpath.ManagedFields, manager string, force bool) (*typed.TypedValue, fieldpath.ManagedFields, error) {
	merged, after, err := s.step(live, object, version, managers, request{Manager: manager, Force: force})
	if err != nil {
		return nil, fieldpath.ManagedFields{}, err
	}
	if merged == nil && s.returnsInput {
		merged = live
	}
	return merged, after, nil
}

func (s *Updater) step(live, object *typed.TypedValue, version fieldpath.APIVersion, managers fieldpath.ManagedFields, r request) (*typed.TypedValue, fieldpath.ManagedFields, error) {
	at, other := live.TypeRef(), object.TypeRef()
	if live.Schema() != object.Schema() || !at.Equals(&other) {
		return nil, nil, errors.New("the objects are not of one type")
	}
	known, err := s.known(managers, version, live, object)
	if err == nil {
		r.Ignored, err = s.ignored(version, known)
	}
	var left leftOut
	if errors.As(err, &left) {
		// The task that runs the tests counts the one that is running by this line.
		fmt.Println(left)
	}
	if err != nil {
		return nil, nil, err
	}
	r.Version, r.Managers = string(version), map[string]owned{}
	for name, set := range known {
		fields, err := set.Set().ToJSON()
		if err != nil {
			return nil, nil, err
		}
		r.Managers[name] = owned{Fields: fields, Version: string(version), Applied: set.Applied()}
	}
	for _, part := range []struct {
		of any
		to *json.RawMessage
	}{{live.Schema(), &r.Schema}, {at, &r.Type}} {
		if *part.to, err = document(part.of); err != nil {
			return nil, nil, err
		}
	}
	if r.Live, err = value.ToJSON(live.AsValue()); err != nil {
		return nil, nil, err
	}
	if r.Object, err = value.ToJSON(object.AsValue()); err != nil {
		return nil, nil, err
	}
	told, err := ask(r)
	if err != nil {
		return nil, nil, err
	}
	return read(told, live, known, r)
}

// known returns the managers whose versions exist, and fails if the objects are others at one of those.
func (s *Updater) known(managers fieldpath.ManagedFields, version fieldpath.APIVersion, objects ...*typed.TypedValue) (fieldpath.ManagedFields, error) {
	known := fieldpath.ManagedFields{}
next:
	for name, set := range managers {
		if set.APIVersion() != version {
			for _, object := range objects {
				converted, err := s.Converter.Convert(object, set.APIVersion())
				if err != nil && s.Converter.IsMissingVersionError(err) {
					continue next
				}
				if err != nil {
					return nil, leftOut{fmt.Sprintf("converts from %s to %s, which fails: %v", version, set.APIVersion(), err)}
				}
				if !same(object, converted) {
					return nil, leftOut{fmt.Sprintf("converts from %s to %s", version, set.APIVersion())}
				}
			}
		}
		known[name] = set
	}
	return known, nil
}

func same(one, other *typed.TypedValue) bool {
	if one == other {
		return true
	}
	a, b := one.TypeRef(), other.TypeRef()
	return one.Schema() == other.Schema() && a.Equals(&b) && value.Equals(one.AsValue(), other.AsValue())
}

// ignored returns the fields that belong to nobody; there must be one set for all versions that managers have.
func (s *Updater) ignored(version fieldpath.APIVersion, managers fieldpath.ManagedFields) (json.RawMessage, error) {
	if s.IgnoredFields != nil && s.IgnoreFilter != nil {
		return nil, errors.New("IgnoredFields and IgnoreFilter are both set")
	}
	fields, err := s.ignoredAt(version)
	if err != nil {
		return nil, err
	}
	for _, set := range managers {
		others, err := s.ignoredAt(set.APIVersion())
		if err != nil {
			return nil, err
		}
		if !fields.Equals(others) {
			return nil, leftOut{fmt.Sprintf("ignores other fields at %s than at %s", set.APIVersion(), version)}
		}
	}
	return fields.ToJSON()
}

func (s *Updater) ignoredAt(version fieldpath.APIVersion) (*fieldpath.Set, error) {
	if fields := s.IgnoredFields[version]; fields != nil {
		return fields, nil
	}
	filter := s.IgnoreFilter[version]
	if filter == nil {
		return fieldpath.NewSet(), nil
	}
	// The library shows no way to the fields that a filter excludes.
	of, excludes := reflect.ValueOf(filter), reflect.ValueOf(fieldpath.NewExcludeSetFilter(fieldpath.NewSet()))
	if of.Type() != excludes.Type() {
		return nil, leftOut{fmt.Sprintf("filters fields by %s", of.Type())}
	}
	return (*fieldpath.Set)(of.Field(0).UnsafePointer()), nil
}

// document returns a part of a schema as JSON, with the names that schemas in YAML have.
func document(part any) (json.RawMessage, error) {
	text, err := yaml.Marshal(part)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	return value.ToJSON(value.NewValueInterface(tree))
}

func read(told answer, live *typed.TypedValue, before fieldpath.ManagedFields, r request) (*typed.TypedValue, fieldpath.ManagedFields, error) {
	if told.Error != "" {
		return nil, nil, errors.New(told.Error)
	}
	if len(told.Conflicts) > 0 {
		sets := fieldpath.ManagedFields{}
		for name, fields := range told.Conflicts {
			set, err := fieldSet(fields)
			if err != nil {
				return nil, nil, err
			}
			sets[name] = fieldpath.NewVersionedSet(set, before[name].APIVersion(), false)
		}
		return nil, nil, ConflictsFromManagers(sets)
	}
	managers := fieldpath.ManagedFields{}
	for name, it := range told.Managers {
		set, err := fieldSet(it.Fields)
		if err != nil {
			return nil, nil, err
		}
		version := fieldpath.APIVersion(it.Version)
		if name != r.Manager {
			// It was restated above.
			version = before[name].APIVersion()
		}
		managers[name] = fieldpath.NewVersionedSet(set, version, it.Applied)
	}
	if len(told.Object) == 0 {
		return nil, managers, nil
	}
	// JSON is YAML, and numbers are of the Go types that the tests expect only if they were read as YAML.
	var tree any
	if err := yaml.Unmarshal(told.Object, &tree); err != nil {
		return nil, nil, err
	}
	object, err := typed.AsTyped(value.NewValueInterface(tree), live.Schema(), live.TypeRef(), typed.AllowDuplicates)
	return object, managers, err
}

func fieldSet(fields json.RawMessage) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	return set, set.FromJSON(bytes.NewReader(fields))
}

var (
	once       sync.Once
	connection net.Conn
	answers    *bufio.Reader
	notReached error
	line       sync.Mutex
)

func ask(r request) (told answer, err error) {
	once.Do(func() {
		connection, notReached = net.Dial("tcp", os.Getenv("TAFFRAIL_MERGE_ADDRESS"))
		answers = bufio.NewReader(connection)
	})
	if notReached != nil {
		return told, notReached
	}
	line.Lock()
	defer line.Unlock()
	if err := json.NewEncoder(connection).Encode(r); err != nil {
		return told, err
	}
	text, err := answers.ReadBytes('\n')
	if err != nil {
		return told, fmt.Errorf("Taffrail does not answer: %w", err)
	}
	return told, json.Unmarshal(text, &told)
}
