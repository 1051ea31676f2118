// Prints lists of objects that try to break out of their YAML: as kubectl prints them (yaml 2), as yq and others do (yaml 3), and as
// JSON, a list on each line. `go run . ..` here writes them into the folder above.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"

	yaml2 "go.yaml.in/yaml/v2"
	yaml3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

type object = map[string]any

var words = []string{
	"p\n\u2028q:", "\u2028a\nb", "\u2028", "\u2029", "\u0085", "\u2028\n", "\n\u2028", "a\u2028", "a\u2028b", "a \u2028 b\u2029\u2029c", "a\u2028\nb", "a\n\u2028\n",
	"a\n\u2028\u2028- apiVersion: v1\n  kind: Pod", "\u2028- x", "a\n\u2028kind: List\nitems: []", "it's\u2028so", "it's\u2028\u2028 \u2029so\u2028", "p\u0085\nq:", "a\n\u2029---\nb", "\u2028\n  a\n b",
	"<<", "y", "n", "yes", "on", "off", "No", "~", "null", "Null", "true", "", " ", "=", "-", "?", ":", "- a", "? a", "a: b", "a #b", "#a", "%YAML 1.1", "%a", "@a", "`a",
	"1e999", "-1e999", "1e-999", "1E400", ".inf", "-.inf", "+.INF", ".nan", ".NaN", "0x1F", "-0x1f", "0o17", "017", "08", "010", "0b11", "1_000", "0_", "1:30", "190:20:30", "1.", ".5", ".", "+1", "-0", "+.5e1",
	"123456789012345678901234567890", "18446744073709551615", "9223372036854775808", "-9223372036854775809", "1e3", "1e+21", "0x", "0xg", "1__0", "_1",
	"2001-01-01", "2001-1-1", "2001-12-14t21:59:43.10-05:00", "2026-01-01T00:00:00Z", "2001-12-14 21:59:43.10 -5", "12:30:45",
	"!!binary", "!!binary aGk=", "!foo", "!foo bar", "!", "&a", "&a b", "*a", "*a b", "{", "}", "[", "]", "{a: b}", "[a]", ",", "'", "\"", "''", "'a'", "\"a\"", "\\", "a\\nb",
	"|", ">", "|-\n  a", "a\n---\nb", "---", "--- a", "...", "a\n...\nb", "---\n", "\n---\n", "a\r\nb", "a\rb", "\r", "\r\n", "a\r\n", "\t", "\ta", "a\t", "a\tb", "\ta\n\tb", "a\n\tb", "a\n\t", "\n\ta",
	"\ufeff", "\ufeffa", "a\ufeffb\nc", "\u0000", "a\u0001b", "\u001b[2J", "\u007f", "\u00a0", "\u00a0a", "\u3000", "\ufffd", "\ufffe", "\uffff", "\U0001f600", "e\u0301", "\ue000",
	" a", "a ", " a\nb", "a \nb ", "\n", "\n\n", "\na", "a\n", "a\n\n", "a\n\n\n", "  a\nb\n", "\n  a\nb", "a\n \nb", "a\n  ", "a\n  \n", "a: |\n  b\n", "items:\n- a\nkind: List\n",
	strings.Repeat("x", 1500), strings.Repeat("long words ", 60), strings.Repeat("q\" \u2028", 60), strings.Repeat("it's ", 80) + "\u2028", strings.Repeat("a: ", 40), strings.Repeat("\n", 50), strings.Repeat("é ", 60),
}

var pieces = []string{"\u2028", "\u2029", "\u0085", "\n", "\n", "\r", "\t", " ", "  ", "a", "b c", "q:", "q: ", "- ", "#", " #", "'", "\"", "\\", "%", "---", "...", "\ufeff", "<<", "|", ">", "&a", "*a", "!t", "{", "[", "é", "\u00a0", "\U0001f600", "0", "1e999", strings.Repeat("x ", 45)}

func honest(name string) object {
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "namespace": "honest", "uid": name},
		"data": object{"a.yaml": "x: 1\ny:\n- 2\n", "n": "5", "t": "true"}}
}

func hostile(text string) []object {
	meta := func() object {
		return object{"name": "t", "namespace": "tenant", "annotations": object{"note": text}}
	}
	last := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "t", "namespace": "tenant"}, "zzz": text}
	data := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(), "data": object{"a": text, "b": "c"}}
	key := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(), "data": object{text: text}}
	list := []any{text, []any{text, object{text: []any{text}}}, 1, 1.5, true, nil, object{}, []any{}}
	values := object{text: object{text: list, "deep": object{"a": []any{object{"b": text, text: nil}}}}}
	release := object{"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": meta(), "spec": object{"values": values}}
	return []object{last, data, key, release}
}

func main() {
	random := rand.New(rand.NewSource(7))
	for range 80 {
		var text strings.Builder
		for range 1 + random.Intn(7) {
			text.WriteString(pieces[random.Intn(len(pieces))])
		}
		words = append(words, text.String())
	}
	var lines, two, three bytes.Buffer
	for at, word := range words {
		items := []any{honest(fmt.Sprint("before-", at))}
		for _, item := range hostile(word) {
			items = append(items, item)
		}
		items = append(items, honest(fmt.Sprint("after-", at)))
		list := object{"apiVersion": "v1", "kind": "List", "metadata": object{"resourceVersion": ""}, "items": items}
		line := must(json.Marshal(list))
		printed, err := yaml.JSONToYAML(line)
		if err != nil {
			// kubectl does not print it at all; others do.
			printed = must(yaml2.Marshal(list))
		}
		lines.Write(append(line, '\n'))
		two.WriteString("---\n")
		two.Write(printed)
		three.WriteString("---\n")
		three.Write(must(yaml3.Marshal(list)))
	}
	for name, text := range map[string]*bytes.Buffer{"lists.jsonl": &lines, "lists-2.yaml": &two, "lists-3.yaml": &three} {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), text.Bytes(), 0o644); err != nil {
			panic(err)
		}
	}
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}
