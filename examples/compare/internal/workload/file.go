package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/examples/compare/internal/model"
	"github.com/sluice-go/sluice/examples/compare/internal/object"
)

// FileError says what is wrong with a workload file, and where.
type FileError struct {
	File    string
	Line    int
	Field   string // with the fields that it is in, as in operations.read.share
	Problem string
}

// Error implements error: one line.
func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d: %s: %s", e.File, e.Line, e.Field, e.Problem)
}

// Bounds keep the memory of a run within reason.
const (
	MaxCallers = 10_000
	maxObjects = 10_000 // also of objects times keys: each caller keeps the latest version of each
)

// Load reads the workloads of a file in YAML, one for each document. Its errors are
// *FileError, or that of reading the file.
//
//	name: tills
//	object: account            # or store, or buffer
//	callers: 16                # default: what the flag says
//	operations:                # the shares add up to 1
//	  withdraw: {share: 0.25}
//	  deposit:  {share: 0.25, cpu: 20us}   # what the body computes,
//	  balance:  {share: 0.5, wait: 1ms}    # and how long it sleeps
//	arrival: {pattern: poisson, rate: 2000} # or closed (default), even, bursts
//
// Besides there are objects and keys, how many of them are shared (default 1), and
// about, a sentence for the reports.
func Load(name string) ([]*Workload, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return Parse(name, text)
}

// Parse is Load for a text, of a file of that name.
func Parse(name string, text []byte) ([]*Workload, error) {
	var all []*Workload
	documents := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		err := documents.Decode(&document)
		switch {
		case errors.Is(err, io.EOF) && len(all) > 0:
			return all, nil
		case errors.Is(err, io.EOF):
			return nil, &FileError{name, 1, "name", "there is no workload"}
		case err != nil:
			return nil, syntaxError(name, err)
		}
		r := reader{file: name}
		w := r.workload(document.Content[0])
		if r.err != nil {
			return nil, r.err
		}
		for _, other := range all {
			if other.Name == w.Name {
				return nil, &FileError{name, document.Content[0].Line, "name", fmt.Sprintf("%q is there twice", w.Name)}
			}
		}
		all = append(all, w)
	}
}

var yamlLine = regexp.MustCompile(`^yaml: (?:.*?)line (\d+)(?:, column \d+)?: (.*)$`)

// syntaxError says where YAML has stopped to understand.
func syntaxError(name string, err error) *FileError {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1])
		return &FileError{name, line, "syntax", m[2]}
	}
	return &FileError{name, 1, "syntax", strings.TrimPrefix(text, "yaml: ")}
}

// reader reads the nodes of a workload, and keeps the first error.
type reader struct {
	file string
	err  error
}

// fail keeps an error.
func (r *reader) fail(at *yaml.Node, field, format string, args ...any) {
	if r.err == nil {
		r.err = &FileError{r.file, at.Line, field, fmt.Sprintf(format, args...)}
	}
}

// fields calls the function of each field of a mapping. An unknown field, or one that
// is there twice, is an error.
func (r *reader) fields(n *yaml.Node, path string, known map[string]func(value *yaml.Node, field string)) {
	if n.Kind != yaml.MappingNode {
		r.fail(n, orDocument(path), "must have fields: %s", strings.Join(names(known), ", "))
		return
	}
	var seen []string
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field := join(path, key.Value)
		read, ok := known[key.Value]
		switch {
		case !ok:
			r.fail(key, field, "is unknown; allowed are %s", strings.Join(names(known), ", "))
		case slices.Contains(seen, key.Value):
			r.fail(key, field, "is there twice")
		default:
			read(value, field)
		}
		seen = append(seen, key.Value)
	}
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

func orDocument(path string) string {
	if path == "" {
		return "document"
	}
	return path
}

func names[V any](m map[string]V) []string {
	var all []string
	for name := range m {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

type fieldReaders = map[string]func(*yaml.Node, string)

// workload reads a document.
func (r *reader) workload(n *yaml.Node) *Workload {
	w := &Workload{Objects: 1, Keys: 1}
	operations := n
	r.fields(n, "", fieldReaders{
		"name":       func(v *yaml.Node, f string) { w.Name = r.text(v, f) },
		"about":      func(v *yaml.Node, f string) { w.About = r.text(v, f) },
		"object":     func(v *yaml.Node, f string) { w.Subject = r.subject(v, f) },
		"callers":    func(v *yaml.Node, f string) { w.Callers = r.number(v, f, MaxCallers) },
		"objects":    func(v *yaml.Node, f string) { w.Objects = r.number(v, f, maxObjects) },
		"keys":       func(v *yaml.Node, f string) { w.Keys = r.number(v, f, maxObjects) },
		"arrival":    func(v *yaml.Node, f string) { w.Arrival = r.arrival(v, f) },
		"operations": func(v *yaml.Node, _ string) { operations = v },
	})
	if r.err != nil {
		return nil
	}
	switch {
	case w.Name == "":
		r.fail(n, "name", "is missing")
	case w.Subject == nil:
		r.fail(n, "object", "is missing; allowed are %s", strings.Join(subjectNames(), ", "))
	case operations == n:
		r.fail(n, "operations", "is missing: what callers do")
	case w.Keys > 1 && !w.Subject.Keyed:
		r.fail(n, "keys", "must be 1: a %s has none", w.Subject.Name)
	case w.Objects*w.Keys > maxObjects:
		r.fail(n, "keys", "must be no more than %d of all objects together", maxObjects)
	default:
		r.operations(operations, w)
	}
	if w.About == "" {
		w.About = fmt.Sprintf("From %s.", r.file)
	}
	return w
}

// operations reads the mix of a workload.
func (r *reader) operations(n *yaml.Node, w *Workload) {
	w.Shares = make([]float64, len(w.Subject.Operations))
	w.Work = make([]object.Work, len(w.Subject.Operations))
	known := fieldReaders{}
	for i, op := range w.Subject.Operations {
		known[op.Name] = func(v *yaml.Node, f string) { r.operation(v, f, &w.Shares[i], &w.Work[i]) }
	}
	r.fields(n, "operations", known)
	if r.err != nil {
		return
	}
	var sum float64
	for _, share := range w.Shares {
		sum += share
	}
	if math.Abs(sum-1) > 1e-6 {
		r.fail(n, "operations", "the shares add up to %.6g, and must to 1", sum)
		return
	}
	if err := w.Subject.Check(w.Setting(2)); err != nil {
		r.fail(n, err.Field, "%s", err.Problem)
	}
}

func (r *reader) operation(n *yaml.Node, path string, share *float64, work *object.Work) {
	r.fields(n, path, fieldReaders{
		"share": func(v *yaml.Node, f string) { *share = r.share(v, f) },
		"cpu":   func(v *yaml.Node, f string) { work.CPU = r.duration(v, f) },
		"wait":  func(v *yaml.Node, f string) { work.Wait = r.duration(v, f) },
	})
}

func (r *reader) arrival(n *yaml.Node, path string) Arrival {
	a := Arrival{Pattern: Closed}
	r.fields(n, path, fieldReaders{
		"pattern": func(v *yaml.Node, f string) { a.Pattern = r.pattern(v, f) },
		"rate":    func(v *yaml.Node, f string) { a.Rate = r.rate(v, f) },
	})
	switch {
	case a.Pattern == Closed && a.Rate > 0:
		r.fail(n, path+".rate", "means nothing for the pattern closed, in which callers make their next request when they have an answer")
	case a.Pattern != Closed && a.Rate == 0:
		r.fail(n, path+".rate", "is missing: requests per second, of all callers together")
	}
	return a
}

func (r *reader) text(n *yaml.Node, field string) string {
	if n.Kind != yaml.ScalarNode || strings.TrimSpace(n.Value) == "" {
		r.fail(n, field, "must be a text")
	}
	return strings.Join(strings.Fields(n.Value), " ")
}

func (r *reader) subject(n *yaml.Node, field string) *model.Subject {
	for _, s := range model.Subjects {
		if s.Name == n.Value {
			return s
		}
	}
	r.fail(n, field, "%q is unknown; allowed are %s", n.Value, strings.Join(subjectNames(), ", "))
	return nil
}

func subjectNames() []string {
	var all []string
	for _, s := range model.Subjects {
		all = append(all, s.Name)
	}
	return all
}

func (r *reader) number(n *yaml.Node, field string, most int) int {
	v, err := strconv.Atoi(n.Value)
	if err != nil || v < 1 || v > most {
		r.fail(n, field, "%q must be a whole number from 1 to %d", n.Value, most)
		return 1
	}
	return v
}

func (r *reader) share(n *yaml.Node, field string) float64 {
	v, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || !(v >= 0 && v <= 1) {
		r.fail(n, field, "%q must be a number from 0 to 1", n.Value)
	}
	return v
}

func (r *reader) rate(n *yaml.Node, field string) float64 {
	v, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || !(v >= 1e-3 && v <= 1e9) {
		r.fail(n, field, "%q must be a number above 0: requests per second", n.Value)
	}
	return v
}

// maxWork is how long a body may take: a run waits for those that have begun.
const maxWork = 10 * time.Second

func (r *reader) duration(n *yaml.Node, field string) time.Duration {
	if n.Value == "0" {
		return 0
	}
	v, err := time.ParseDuration(n.Value)
	if err != nil || v < 0 || v > maxWork {
		r.fail(n, field, "%q must be a time from 0 to %v, such as 20us or 1ms", n.Value, maxWork)
	}
	return v
}

func (r *reader) pattern(n *yaml.Node, field string) Pattern {
	if i := slices.Index(patterns, Pattern(n.Value)); i >= 0 {
		return patterns[i]
	}
	r.fail(n, field, "%q is unknown; allowed are closed, even, bursts, poisson", n.Value)
	return Closed
}
