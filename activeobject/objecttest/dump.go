package objecttest

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// Dump returns a text about a value, which is alike for values that are: a line for
// every part of it that is no struct, pointer or the like, unexported fields
// included, with the way there.
//
//	.balance = 5
//	.owners["ann"].name = "Ann"
//	.last = .owners["ann"]
//
// Maps are sorted; what was met before is named by the way there, so that cycles end.
// Not looked into is what belongs to others or is no state: functions and channels
// (their identity counts), locks, contexts, tests, loggers, timers, types of package
// reflect, everything of Sluice's own and of protoactor's, and the types of the values
// to ignore, each given as itself or as a pointer. A pointer to such a thing counts for the place it points to, except to
// what is ignored. Atomic values are read like others: those that somebody else writes
// meanwhile are to be ignored.
func Dump(value any, ignore ...any) string {
	d := dumper{seen: map[place]string{}, ignored: map[reflect.Type]bool{}}
	for _, v := range ignore {
		t := reflect.TypeOf(v)
		if t == nil {
			continue
		}
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		d.ignored[t] = true
	}
	v := reflect.ValueOf(value)
	if !v.IsValid() {
		return "nil"
	}
	d.value("", v)
	return strings.Join(d.lines, "\n")
}

type dumper struct {
	lines   []string
	seen    map[place]string
	ignored map[reflect.Type]bool
}

// place is what a pointer, map or slice refers to.
type place struct {
	at  unsafe.Pointer
	len int // of a slice
	typ reflect.Type
}

func (d *dumper) line(way, format string, args ...any) {
	if way == "" {
		way = "."
	}
	d.lines = append(d.lines, way+" = "+fmt.Sprintf(format, args...))
}

// met reports whether the place was met before, and if so writes where.
func (d *dumper) met(way string, p place) bool {
	if before, ok := d.seen[p]; ok {
		if before == "" {
			before = "."
		}
		d.line(way, "%s", before)
		return true
	}
	d.seen[p] = way
	return false
}

func (d *dumper) value(way string, v reflect.Value) {
	t := v.Type()
	switch {
	case d.ignored[t]:
		return
	case t == syncMapType && v.CanAddr(): // it always can: one that has been used must not be copied
		d.syncMap(way, v)
		return
	case opaque(t):
		d.line(way, "(%s)", t)
		return
	case t == timeType:
		d.line(way, "%s", moment(v))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		d.line(way, "%t", v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.line(way, "%d", v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		d.line(way, "%d", v.Uint())
	case reflect.Float32, reflect.Float64:
		d.line(way, "%v", v.Float())
	case reflect.Complex64, reflect.Complex128:
		d.line(way, "%v", v.Complex())
	case reflect.String:
		d.line(way, "%q", v.String())
	case reflect.Chan, reflect.Func, reflect.UnsafePointer:
		d.line(way, "(%s)(%#x)", t, v.Pointer())
	case reflect.Interface:
		if v.IsNil() {
			d.line(way, "nil")
			return
		}
		e := v.Elem()
		d.value(way+".("+e.Type().String()+")", e)
	case reflect.Pointer:
		d.pointer(way, v)
	case reflect.Struct:
		if v.NumField() == 0 {
			d.line(way, "{}")
		}
		for i := range v.NumField() {
			if t.Field(i).Name == "_" {
				continue // nobody can have put anything there
			}
			d.value(way+"."+t.Field(i).Name, v.Field(i))
		}
	case reflect.Array:
		d.elements(way, v)
	case reflect.Slice:
		d.slice(way, v)
	case reflect.Map:
		d.entries(way, v)
	}
}

func (d *dumper) pointer(way string, v reflect.Value) {
	switch e := v.Type().Elem(); {
	case v.IsNil():
		d.line(way, "nil")
	case d.ignored[e]:
	case opaque(e):
		d.line(way, "(%s)(%#x)", v.Type(), v.Pointer())
	case !d.met(way, place{v.UnsafePointer(), 0, v.Type()}):
		d.value(way, v.Elem())
	}
}

func (d *dumper) slice(way string, v reflect.Value) {
	switch {
	case v.IsNil():
		d.line(way, "nil")
	case v.Type().Elem().Kind() == reflect.Uint8:
		d.line(way, "%q", v.Bytes())
	case v.Len() == 0:
		d.line(way, "[]")
	case !d.met(way, place{v.UnsafePointer(), v.Len(), v.Type()}):
		d.line("len("+way+")", "%d", v.Len())
		d.elements(way, v)
	}
}

func (d *dumper) elements(way string, v reflect.Value) {
	for i := range v.Len() {
		d.value(way+"["+strconv.Itoa(i)+"]", v.Index(i))
	}
}

func (d *dumper) entries(way string, v reflect.Value) {
	switch {
	case v.IsNil():
		d.line(way, "nil")
		return
	case v.Len() == 0:
		d.line(way, "{}")
		return
	case d.met(way, place{v.UnsafePointer(), 0, v.Type()}):
		return
	}
	type entry struct {
		key   string
		value reflect.Value
	}
	var all []entry
	for i := v.MapRange(); i.Next(); {
		all = append(all, entry{key(i.Key()), i.Value()})
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	d.line("len("+way+")", "%d", v.Len())
	for _, e := range all {
		d.value(way+"["+e.key+"]", e.value)
	}
}

// syncMap writes a sync.Map as a map: it is state, and no lock.
func (d *dumper) syncMap(way string, v reflect.Value) {
	all := map[any]any{}
	reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Interface().(*sync.Map).Range(func(key, value any) bool {
		all[key] = value
		return true
	})
	d.entries(way, reflect.ValueOf(all))
}

// key writes a key of a map on one line. It does not look behind pointers, which are
// other keys if they point elsewhere.
func key(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return strconv.Quote(v.String())
	case reflect.Interface:
		if v.IsNil() {
			return "nil"
		}
		return "(" + v.Elem().Type().String() + ")" + key(v.Elem())
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
		return fmt.Sprintf("%#x", v.Pointer())
	case reflect.Struct:
		parts := make([]string, v.NumField())
		for i := range parts {
			parts[i] = key(v.Field(i))
		}
		return "{" + strings.Join(parts, " ") + "}"
	case reflect.Array:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = key(v.Index(i))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	d := dumper{}
	d.value("", v) // a number or a truth value
	return strings.TrimPrefix(strings.Join(d.lines, ""), ". = ")
}

var timeType, syncMapType = reflect.TypeFor[time.Time](), reflect.TypeFor[sync.Map]()

// moment writes a time, which may be in an unexported field.
func moment(v reflect.Value) string {
	if !v.CanInterface() {
		if !v.CanAddr() {
			return fmt.Sprintf("(time)(%d %d)", v.Field(0).Uint(), v.Field(1).Int())
		}
		v = reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
	}
	return v.Interface().(time.Time).Format(time.RFC3339Nano)
}

// opaque reports whether a type is that of something that is not looked into.
func opaque(t reflect.Type) bool {
	if t == syncMapType {
		return false
	}
	switch t.PkgPath() {
	case "sync", "context", "testing", "testing/synctest", "log", "log/slog", "reflect", "os", "net",
		"internal/sync", "github.com/asynkron/protoactor-go/actor",
		sluice + "activeobject", sluice + "activeobject/objecttest", sluice + "actor",
		sluice + "mailbox", sluice + "internal/engine", sluice + "guards":
		return t.Kind() != reflect.Interface
	case "time":
		return t.Kind() == reflect.Struct && t != timeType // timers, locations
	}
	return false
}

const sluice = "github.com/sluice-go/sluice/"
