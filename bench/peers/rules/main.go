// Command rules judges the health of objects with Argo CD's scripts in Lua, as a measure for Taffrail.
//
// It takes a folder in the layout of Argo CD's resource_customizations, reads the objects that the health_test.yaml files
// there name, and judges all of them -rounds times. The result is one JSON document:
//
//	{"verdicts":[{"input":…,"status":…,"message":…,"error":…}],"count":…,"wall":…,"cpu":…,"peak":…}
//
// The verdicts are those of the first round; wall and cpu are the seconds that judging took, without reading the files;
// peak is the largest resident memory of the process, in KiB. With -inputs FILE it also writes what it read, a JSON line
// for each input: {"input":…,"expected":{"status":…,"message":…},"object":…}. So both programs judge the same objects,
// and only one of them reads YAML.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// input is an object that a case is about.
type input struct {
	Path     string         `json:"input"`
	Expected health         `json:"expected"`
	Object   map[string]any `json:"object"`
}

type verdict struct {
	Input   string `json:"input"`
	Status  string `json:"status"`
	Message string `json:"message"`
	Error   string `json:"error,omitempty"`
}

type answer struct {
	Verdicts []verdict `json:"verdicts"`
	Count    int       `json:"count"`
	Wall     float64   `json:"wall"`
	CPU      float64   `json:"cpu"`
	Peak     int64     `json:"peak"`
}

func main() {
	rounds := flag.Int("rounds", 1, "how often all objects are judged")
	inputs := flag.String("inputs", "", "file that the objects are written to as JSON lines")
	flag.Parse()
	if err := run(flag.Args(), *rounds, *inputs); err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(1)
	}
}

func run(args []string, rounds int, file string) error {
	if len(args) != 1 || rounds < 1 {
		return errors.New("one argument, the folder of customizations, and at least one round")
	}
	scripts, inputs, err := read(args[0])
	if err != nil {
		return err
	}
	if file != "" {
		if err := write(file, inputs); err != nil {
			return err
		}
	}
	objects := make([]*unstructured.Unstructured, len(inputs))
	for i := range inputs {
		objects[i] = &unstructured.Unstructured{Object: inputs[i].Object}
	}

	out := answer{Verdicts: make([]verdict, 0, len(inputs)), Count: rounds * len(inputs)}
	begun, before := time.Now(), cpu()
	for round := range rounds {
		for i, object := range objects {
			found, err := scripts.judge(object)
			if round > 0 {
				continue
			}
			row := verdict{Input: inputs[i].Path}
			if err != nil {
				row.Error = err.Error()
			} else if found != nil {
				row.Status, row.Message = found.Status, found.Message
			}
			out.Verdicts = append(out.Verdicts, row)
		}
	}
	out.Wall, out.CPU = time.Since(begun).Seconds(), cpu()-before
	if out.Peak, err = peak(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// read takes in the scripts below a folder, and the objects that the cases beside them are about.
func read(root string) (*customizations, []input, error) {
	scripts := newCustomizations()
	var inputs []input
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		switch entry.Name() {
		case "health.lua":
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			scripts.add(filepath.ToSlash(folder), string(text))
		case "health_test.yaml":
			cases, err := readCases(root, path, folder)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			inputs = append(inputs, cases...)
		}
		return nil
	})
	if err == nil && len(inputs) == 0 {
		err = fmt.Errorf("no health_test.yaml below %s", root)
	}
	return scripts, inputs, err
}

func readCases(root, path, folder string) ([]input, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Tests []struct {
			InputPath    string `json:"inputPath"`
			HealthStatus health `json:"healthStatus"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	var inputs []input
	for _, test := range file.Tests {
		relative := filepath.Join(folder, test.InputPath)
		text, err := os.ReadFile(filepath.Join(root, relative))
		if err != nil {
			return nil, err
		}
		object := map[string]any{}
		if err := yaml.Unmarshal(text, &object); err != nil {
			return nil, fmt.Errorf("%s: %w", test.InputPath, err)
		}
		inputs = append(inputs, input{filepath.ToSlash(relative), test.HealthStatus, object})
	}
	return inputs, nil
}

func write(path string, inputs []input) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	lines := bufio.NewWriter(file)
	encoder := json.NewEncoder(lines)
	for i := range inputs {
		if err := encoder.Encode(&inputs[i]); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	return errors.Join(lines.Flush(), file.Close())
}

// cpu is what this process has used so far, in seconds.
func cpu() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	seconds := func(time syscall.Timeval) float64 { return float64(time.Sec) + float64(time.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

// peak is the most memory that this process has had resident, in KiB.
func peak() (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			var size int64
			_, err := fmt.Sscanf(strings.TrimSpace(rest), "%d kB", &size)
			return size, err
		}
	}
	return 0, errors.New("/proc/self/status has no VmHWM")
}
