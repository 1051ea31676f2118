package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/golang/groupcache/lru"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	luajson "layeh.com/gopher-json"
)

// health is the result of a script for one object.
type health struct {
	Status  string `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
}

// customizations are the scripts of a folder, run step by step as Argo CD 3.6.1 runs those that it ships: a new state with
// all libraries for each verdict, its own opened once more on top, a deadline of a second, the object copied into tables,
// the script compiled once and kept, and the answer taken through JSON. The scripts are in a map and not in an embedded
// file system, which is a little in its favour.
type customizations struct {
	scripts  map[string]string
	patterns []string
	compiled struct {
		sync.Mutex
		cache *lru.Cache
	}
	os map[string]lua.LGFunction
}

func newCustomizations() *customizations {
	c := &customizations{scripts: map[string]string{}, os: clock()}
	c.compiled.cache = lru.New(1024)
	return c
}

// clock returns the two functions of Lua's library `os` that scripts may call.
func clock() map[string]lua.LGFunction {
	state := lua.NewState()
	defer state.Close()
	library := state.GetGlobal(lua.OsLibName).(*lua.LTable)
	functions := map[string]lua.LGFunction{}
	for _, name := range []string{"time", "date"} {
		functions[name] = library.RawGetString(name).(*lua.LFunction).GFunction
	}
	return functions
}

// add adds a script, by the folder that contains it: GROUP/KIND or KIND, in which `_` means `*`.
func (c *customizations) add(folder, script string) {
	c.scripts[folder] = script
	if strings.Contains(folder, "_") {
		c.patterns = append(c.patterns, folder)
		slices.Sort(c.patterns)
	}
}

// find returns the script for the kind of an object; empty if there is none. A script for exactly this kind takes
// precedence over patterns.
func (c *customizations) find(object *unstructured.Unstructured) string {
	gvk := object.GroupVersionKind()
	key := gvk.Kind
	if gvk.Group != "" {
		key = gvk.Group + "/" + gvk.Kind
	}
	if script, ok := c.scripts[key]; ok {
		return script
	}
	for _, folder := range c.patterns {
		if doublestar.PathMatchUnvalidated(strings.ReplaceAll(folder, "_", "*"), key) {
			return c.scripts[folder]
		}
	}
	return ""
}

// judge returns the health of an object; nil if there is no script for its kind, or the script returns none.
func (c *customizations) judge(object *unstructured.Unstructured) (*health, error) {
	script := c.find(object)
	if script == "" {
		return nil, nil
	}
	state := lua.NewState()
	defer state.Close()
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{
		{lua.LoadLibName, lua.OpenPackage},
		{lua.BaseLibName, lua.OpenBase},
		{lua.TabLibName, lua.OpenTable},
		{lua.OsLibName, func(state *lua.LState) int {
			// By this name, as Argo CD does.
			state.Push(state.RegisterModule(lua.TabLibName, c.os))
			return 1
		}},
	} {
		open := lua.P{Fn: state.NewFunction(library.open), Protect: true}
		if err := state.CallByParam(open, lua.LString(library.name)); err != nil {
			return nil, err
		}
	}
	state.PreloadModule(lua.OsLibName, func(state *lua.LState) int {
		state.Push(state.SetFuncs(state.NewTable(), c.os))
		return 1
	})
	deadline, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(deadline)
	state.SetGlobal("actionParams", state.CreateTable(0, 0))
	state.SetGlobal("obj", convert(state, object.Object))

	function, err := c.load(state, script)
	if err != nil {
		return nil, err
	}
	state.Push(function)
	if err := state.PCall(0, lua.MultRet, nil); err != nil {
		return nil, err
	}
	switch result := state.Get(-1).(type) {
	case *lua.LTable:
		return decode(result)
	case *lua.LNilType:
		return nil, nil
	default:
		return nil, fmt.Errorf("a script returned a %s and no table", result.Type())
	}
}

// load returns the function of a script; it compiles the script once and keeps it.
func (c *customizations) load(state *lua.LState, script string) (*lua.LFunction, error) {
	c.compiled.Lock()
	defer c.compiled.Unlock()
	if compiled, ok := c.compiled.cache.Get(script); ok {
		return state.NewFunctionFromProto(compiled.(*lua.FunctionProto)), nil
	}
	function, err := state.LoadString(script)
	if err != nil {
		return nil, err
	}
	c.compiled.cache.Add(script, function.Proto)
	return function, nil
}

func decode(result *lua.LTable) (*health, error) {
	text, err := luajson.Encode(result)
	if err != nil {
		return nil, err
	}
	found := &health{}
	if err := json.Unmarshal(text, found); err != nil {
		// A table without fields is an array to the encoder.
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return &health{}, nil
		}
		return nil, err
	}
	switch found.Status {
	case "Unknown", "Progressing", "Suspended", "Healthy", "Degraded", "Missing":
		return found, nil
	}
	return &health{Status: "Unknown", Message: "Lua returned an invalid health status"}, nil
}

// convert copies a value of an object into the Lua state.
func convert(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	case int64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		table := state.CreateTable(len(value), 0)
		for _, item := range value {
			table.Append(convert(state, item))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(value))
		for key, item := range value {
			table.RawSetH(lua.LString(key), convert(state, item))
		}
		return table
	}
	return lua.LNil
}
