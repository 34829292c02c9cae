package mailbox_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// No package for locks, goroutines, randomness or files is within the scheduler's reach, of
// package time only what needs no clock, and it has no channel or goroutine of its own,
// which need no import.
func TestSchedulerIsPure(t *testing.T) {
	allowed := []string{
		"cmp", "errors", "fmt", "iter", "slices", "strings", "sync/atomic",
		"encoding/json", "io", "math", "math/bits", "strconv", "time", // to print what it says
		"github.com/sluice-go/sluice/guards",
	}
	clockless := []string{"Duration", "Time", "Microsecond", "Millisecond", "Second"}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	looked := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		looked++
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if !slices.Contains(allowed, path) {
				t.Errorf("%s imports %s", name, path)
			}
		}
		for n := range ast.Preorder(file) {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && !slices.Contains(clockless, n.Sel.Name) {
					t.Errorf("%s uses time.%s", name, n.Sel.Name)
				}
			case *ast.GoStmt, *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
				t.Errorf("%s has a %T", name, n)
			}
		}
	}
	require.NotZero(t, looked)
}
