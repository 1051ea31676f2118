// Command kstatus computes the status of Kubernetes objects with the stock kstatus library, as a measure for Taffrail.
//
// It reads one JSON object a line from the file named as the only argument, or from standard input, and writes one JSON
// line for each, in the order of the input:
//
//	{"group":…,"version":…,"kind":…,"namespace":…,"name":…,"status":…,"message":…,"conditions":[…]}
//
// A line that cannot be decoded or judged has status Unknown, no message, no conditions, and a last field "error".
// Memory does not grow with the input, only with its longest line.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// bufferSize is large enough that system calls do not show in a profile.
const bufferSize = 1 << 20

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kstatus:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	input := os.Stdin
	switch len(args) {
	case 0:
	case 1:
		if args[0] != "-" {
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			input = file
		}
	default:
		return errors.New("at most one argument, the file of JSON lines; without it standard input is read")
	}

	lines := bufio.NewReaderSize(input, bufferSize)
	output := bufio.NewWriterSize(os.Stdout, bufferSize)
	var long, row []byte
	for {
		line, err := lines.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			long = append(long[:0], line...)
			for err == bufio.ErrBufferFull {
				line, err = lines.ReadSlice('\n')
				long = append(long, line...)
			}
			line = long
		}
		if err != nil && err != io.EOF {
			// The results before a failure of the input are still written.
			return errors.Join(fmt.Errorf("reading %s: %w", input.Name(), err), output.Flush())
		}
		if len(line) > 0 {
			if line[len(line)-1] == '\n' {
				line = line[:len(line)-1]
			}
			row = appendAnswer(row[:0], line)
			if _, err := output.Write(row); err != nil {
				return fmt.Errorf("writing: %w", err)
			}
		}
		if err == io.EOF {
			if err := output.Flush(); err != nil {
				return fmt.Errorf("writing: %w", err)
			}
			return nil
		}
	}
}

// appendAnswer appends the result for one line of input, with a newline.
func appendAnswer(row, line []byte) []byte {
	object := &unstructured.Unstructured{}
	var result *status.Result
	err := object.UnmarshalJSON(line)
	if err == nil {
		result, err = compute(object)
	}

	gvk := object.GroupVersionKind()
	row = append(row, `{"group":`...)
	row = appendString(row, gvk.Group)
	row = append(row, `,"version":`...)
	row = appendString(row, gvk.Version)
	row = append(row, `,"kind":`...)
	row = appendString(row, gvk.Kind)
	row = append(row, `,"namespace":`...)
	row = appendString(row, object.GetNamespace())
	row = append(row, `,"name":`...)
	row = appendString(row, object.GetName())
	if err != nil {
		row = append(row, `,"status":"Unknown","message":"","conditions":[],"error":`...)
		row = appendString(row, err.Error())
		return append(row, '}', '\n')
	}
	row = append(row, `,"status":`...)
	row = appendString(row, string(result.Status))
	row = append(row, `,"message":`...)
	row = appendString(row, result.Message)
	row = append(row, `,"conditions":[`...)
	for i := range result.Conditions {
		condition := &result.Conditions[i]
		if i > 0 {
			row = append(row, ',')
		}
		row = append(row, `{"type":`...)
		row = appendString(row, string(condition.Type))
		row = append(row, `,"status":`...)
		row = appendString(row, string(condition.Status))
		row = append(row, `,"reason":`...)
		row = appendString(row, condition.Reason)
		row = append(row, `,"message":`...)
		row = appendString(row, condition.Message)
		row = append(row, '}')
	}
	return append(row, ']', '}', '\n')
}

// compute calls the library's Compute, and converts its panics on damaged objects to errors, so that one such object does
// not end the stream.
func compute(object *unstructured.Unstructured) (result *status.Result, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			result, err = nil, fmt.Errorf("panic: %v", cause)
		}
	}()
	return status.Compute(object)
}

// appendString appends text as a JSON string and escapes only what JSON asks for. encoding/json would take an
// allocation for each string, and would escape U+2028 and U+2029 too.
func appendString(row []byte, text string) []byte {
	const hex = "0123456789abcdef"
	row = append(row, '"')
	start := 0
	for i := 0; i < len(text); {
		b := text[i]
		if b >= 0x20 && b != '"' && b != '\\' && b < utf8.RuneSelf {
			i++
			continue
		}
		if b >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && size == 1 {
				row = append(row, text[start:i]...)
				row = append(row, "\uFFFD"...)
				start = i + size
			}
			i += size
			continue
		}
		row = append(row, text[start:i]...)
		switch b {
		case '"', '\\':
			row = append(row, '\\', b)
		case '\b':
			row = append(row, '\\', 'b')
		case '\f':
			row = append(row, '\\', 'f')
		case '\n':
			row = append(row, '\\', 'n')
		case '\r':
			row = append(row, '\\', 'r')
		case '\t':
			row = append(row, '\\', 't')
		default:
			row = append(row, '\\', 'u', '0', '0', hex[b>>4], hex[b&0xf])
		}
		i++
		start = i
	}
	row = append(row, text[start:]...)
	return append(row, '"')
}
