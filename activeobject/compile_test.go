package activeobject_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// exported returns an importer of packages as the compiler has exported them.
func exported(t *testing.T, packages ...string) types.Importer {
	t.Helper()
	var complaint bytes.Buffer
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}, packages...)...)
	list.Stderr = &complaint
	out, err := list.Output()
	require.NoError(t, err, complaint.String())
	files := map[string]string{}
	for _, line := range strings.Fields(string(out)) {
		path, file, _ := strings.Cut(line, "=")
		files[path] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("no export data of %q", path)
		}
		return os.Open(files[path])
	})
}

// compile type-checks a program, and returns the complaints by the lines they are
// about.
func compile(t *testing.T, imports types.Importer, text string) map[string]string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "printer.go", text, 0)
	require.NoError(t, err)
	lines, complaints := strings.Split(text, "\n"), map[string]string{}
	config := types.Config{Importer: imports, Error: func(err error) {
		e := err.(types.Error)
		complaints[strings.TrimSpace(lines[fset.Position(e.Pos).Line-1])] = e.Msg
	}}
	config.Check("printer", fset, []*ast.File{file}, nil)
	return complaints
}

// What a body returns instead of a result is a result of the same type, for the
// compiler too.
func TestTheCompilerRefusesARequeueToATargetWithAnotherResult(t *testing.T) {
	const program = `package printer

import "github.com/sluice-go/sluice/activeobject"

type printer struct{ paper int }

type job struct{ pages int }

func (p *printer) stocked() bool { return p.paper > 0 }

func (p *printer) refill(j job) (string, error) { return "printed", nil }

func (p *printer) measure(j job) (int, error) { return j.pages, nil }

var (
	printers = activeobject.NewType[printer]("printer")
	refilled = activeobject.Entry(printers, "refilled", (*printer).refill).When("stocked", (*printer).stocked)
	measured = activeobject.Procedure(printers, "measured", (*printer).measure)
	other    *activeobject.Object[printer]
)

func (p *printer) print(j job) (string, error) { %s }

var printed = activeobject.Procedure(printers, "printed", (*printer).print)
`
	imports := exported(t, "github.com/sluice-go/sluice/activeobject")
	for _, c := range []struct{ body, complaint string }{
		{`return refilled.Requeue(j)`, ""},
		{`return refilled.Requeue(j, activeobject.KeepPlace, activeobject.Commit)`, ""},
		{`return refilled.RequeueTo(other, j, activeobject.KeepPlace|activeobject.Commit)`, ""},
		{`return measured.Requeue(j)`, "cannot use measured.Requeue(j) (value of type int) as string value"},
		{`return measured.RequeueTo(other, j)`, "cannot use measured.RequeueTo(other, j) (value of type int) as string value"},
		{`return refilled.Requeue(7)`, "cannot use 7 (untyped int constant) as job value"},
		{`return refilled.RequeueTo(printers, j)`, "cannot use printers"},
	} {
		complaints := compile(t, imports, fmt.Sprintf(program, c.body))
		if c.complaint == "" {
			require.Empty(t, complaints, c.body)
			continue
		}
		require.Len(t, complaints, 1, c.body)
		for line, complaint := range complaints {
			require.Contains(t, line, c.body, "the complaint is about that line")
			require.Contains(t, complaint, c.complaint)
		}
	}
}
