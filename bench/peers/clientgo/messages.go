package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// special has the Protobuf messages whose JSON is not an object of their fields.
var special = map[string]string{
	"meta.v1.Time":         "time",
	"meta.v1.MicroTime":    "time",
	"meta.v1.Duration":     "duration",
	"meta.v1.FieldsV1":     "raw",
	"runtime.RawExtension": "raw",
	"resource.Quantity":    "quantity",
	"intstr.IntOrString":   "either",
}

// writeTypes writes one line for each message that objects of these kinds are made of: its name, and its fields as
// NUMBER:JSON-NAME:TYPE. A type is a scalar, one of `special`, or a message; before it stands `[]` for a list and `{}`
// for a map with texts as keys; behind it `!` where the value counts even if it is zero. A field without a name is
// written into the object around it.
func writeTypes(kinds string, out io.Writer) error {
	file, err := os.Open(kinds)
	if err != nil {
		return err
	}
	defer file.Close()
	t := messages{lines: map[string]string{}}
	for _, object := range []any{metav1.DeleteOptions{}, metav1.PartialObjectMetadata{}, metav1.Status{}, autoscalingv1.Scale{}, policyv1.Eviction{}} {
		if err := t.add(reflect.TypeOf(object)); err != nil {
			return err
		}
	}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) < 5 {
			return fmt.Errorf("%s: a line with %d fields", kinds, len(fields))
		}
		kind := schema.GroupVersionKind{Group: strings.Trim(fields[0], "-"), Version: fields[1], Kind: fields[4]}
		// Definitions and registered servers are in modules of their own.
		if object, ok := scheme.Scheme.AllKnownTypes()[kind]; ok {
			if err := t.add(object); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	names := make([]string, 0, len(t.lines))
	for name := range t.lines {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if _, err := fmt.Fprintf(out, "%s%s\n", name, t.lines[name]); err != nil {
			return err
		}
	}
	return nil
}

type messages struct {
	lines map[string]string
}

// nameOf returns the name of a message, such as apps.v1.Deployment for the type Deployment of k8s.io/api/apps/v1.
func nameOf(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	if strings.Contains(t.PkgPath(), "/apis/") || strings.HasPrefix(t.PkgPath(), "k8s.io/api/") {
		parts = parts[len(parts)-2:]
	} else {
		parts = parts[len(parts)-1:]
	}
	return strings.Join(append(parts, t.Name()), ".")
}

func (t *messages) add(message reflect.Type) error {
	name := nameOf(message)
	if _, known := t.lines[name]; known {
		return nil
	}
	t.lines[name] = ""
	var line strings.Builder
	for i := range message.NumField() {
		field := message.Field(i)
		tag, ok := field.Tag.Lookup("protobuf")
		if !ok {
			continue
		}
		number := strings.Split(tag, ",")[1]
		options := strings.Split(field.Tag.Get("json"), ",")
		described, err := t.typeOf(field.Type)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", name, field.Name, err)
		}
		kept := field.Type.Kind() == reflect.Pointer
		if k := field.Type.Kind(); k == reflect.Bool || k == reflect.Int32 || k == reflect.Int64 || k == reflect.String {
			kept = !slices.Contains(options, "omitempty") && !slices.Contains(options, "omitzero")
		}
		if kept {
			described += "!"
		}
		fmt.Fprintf(&line, "\t%s:%s:%s", number, options[0], described)
	}
	t.lines[name] = line.String()
	return nil
}

func (t *messages) typeOf(field reflect.Type) (string, error) {
	switch field.Kind() {
	case reflect.Pointer:
		return t.typeOf(field.Elem())
	case reflect.Bool:
		return "bool", nil
	case reflect.Uint8, reflect.Int32, reflect.Int64:
		return "number", nil
	case reflect.String:
		return "text", nil
	case reflect.Slice:
		if field.Elem().Kind() == reflect.Uint8 {
			return "bytes", nil
		}
		// A list with a name of its own is a message around it.
		if field.Name() != "" && field.PkgPath() != "" {
			if _, ok := reflect.PointerTo(field).MethodByName("Marshal"); ok {
				inner, err := t.typeOf(field.Elem())
				return "items." + inner, err
			}
		}
		inner, err := t.typeOf(field.Elem())
		return "[]" + inner, err
	case reflect.Map:
		inner, err := t.typeOf(field.Elem())
		return "{}" + inner, err
	case reflect.Struct:
		name := nameOf(field)
		if short, ok := special[name]; ok {
			return short, nil
		}
		return name, t.add(field)
	}
	return "", fmt.Errorf("%s has no place in the table", field)
}
