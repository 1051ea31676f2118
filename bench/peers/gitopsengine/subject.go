package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
	"time"
)

// A subject is a measured program after it has read a cluster. It obeys commands on standard input, one per line; the
// program that sends them reads its cost from the kernel.
type subject struct {
	recorder recorder
	// answers returns the contents that are compared between programs.
	answers func() answers
	// queries measures the queries for trees and managed objects of the apps whose names begin with prefix.
	queries func(prefix string) any
	// further obeys all other words; nil if there are none.
	further func(word, rest string) any
}

// answers are the contents of a cluster as a program has them; they must be equal in all programs.
type answers struct {
	// Kinds has the number of objects by GROUP/KIND.
	Kinds map[string]int `json:"kinds"`
	// Statuses has the number of Deployments by status.
	Statuses map[string]int `json:"statuses,omitempty"`
	// Trees has by app the number of nodes and the digest of their names.
	Trees map[string]digest `json:"trees,omitempty"`
	// Managed has by app the number of managed objects and the digest of their names.
	Managed map[string]digest `json:"managed,omitempty"`
}

type digest struct {
	Count int    `json:"count"`
	Names string `json:"names"`
}

// digestOf returns the number of names and the digest of the sorted names; it sorts names in place.
func digestOf(names []string) digest {
	sort.Strings(names)
	hash := fnv.New64a()
	for _, name := range names {
		_, _ = hash.Write([]byte(name))
		_, _ = hash.Write([]byte{'\n'})
	}
	return digest{len(names), fmt.Sprintf("%016x", hash.Sum64())}
}

// recorder records when the first event about each object was seen.
type recorder struct {
	lock sync.Mutex
	on   bool
	seen map[string]int64
}

func (r *recorder) note(namespace, name string) {
	now := time.Now().UnixNano()
	r.lock.Lock()
	defer r.lock.Unlock()
	if !r.on {
		return
	}
	key := namespace + "/" + name
	if _, ok := r.seen[key]; !ok {
		r.seen[key] = now
	}
}

func (r *recorder) begin() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.on, r.seen = true, map[string]int64{}
}

func (r *recorder) report(file string) error {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.on = false
	var text strings.Builder
	for key, at := range r.seen {
		fmt.Fprintf(&text, "%s %d\n", key, at)
	}
	return os.WriteFile(file, []byte(text.String()), 0o600)
}

func say(what any) {
	text, err := json.Marshal(what)
	must(err)
	_, err = fmt.Printf("%s\n", text)
	must(err)
}

// obey prints the result of the first read, and then obeys commands until the end of standard input.
func (s *subject) obey(synced map[string]any) {
	say(synced)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		done := any(map[string]any{"done": word})
		switch word {
		case "collect":
			runtime.GC()
			debug.FreeOSMemory()
		case "answers":
			text, err := json.Marshal(s.answers())
			must(err)
			must(os.WriteFile(rest, text, 0o600))
		case "queries":
			done = s.queries(rest)
		case "events":
			s.recorder.begin()
		case "seen":
			s.recorder.lock.Lock()
			done = map[string]any{"seen": len(s.recorder.seen)}
			s.recorder.lock.Unlock()
		case "report":
			must(s.recorder.report(rest))
		default:
			if s.further == nil {
				must(fmt.Errorf("unknown word %q", word))
			}
			done = s.further(word, rest)
		}
		say(done)
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
