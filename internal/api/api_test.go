// Package api keeps a record of what the library exports: one file for each package in
// testdata, which a change of the public API has to change as well. So no name is exported,
// renamed or lost by accident, and a review sees the new surface beside the code.
package api

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

const root = "../.."

// TestThePublicAPIIsThatOfTheGoldenFiles fails if an exported declaration of the library
// differs from testdata: run it with -update and commit the difference, if it is meant.
func TestThePublicAPIIsThatOfTheGoldenFiles(t *testing.T) {
	known := map[string]bool{}
	total := 0
	for _, path := range packages(t) {
		text, names := exported(t, path)
		total += names
		golden := filepath.Join("testdata", strings.ReplaceAll(path, "/", "_")+".txt")
		known[golden] = true
		if *update {
			require.NoError(t, os.WriteFile(golden, text, 0o644))
			continue
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err, "run the test with -update")
		require.Equal(t, string(want), string(text), "the API of %s; if that is meant, run the test with -update", path)
	}
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	for _, f := range files {
		require.True(t, known[f], "%s is of a package that is gone: remove it", f)
	}
	t.Logf("%d exported names", total)
}

// packages returns the directories of the library's packages, those of examples and
// internal packages excepted.
func packages(t *testing.T) (paths []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			if dir := filepath.Dir(path); strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !slices.Contains(paths, dir) {
				paths = append(paths, dir)
			}
		case path != "." && strings.HasPrefix(d.Name(), "."), d.Name() == "internal", d.Name() == "testdata", path == "examples", path == "docs":
			return fs.SkipDir
		}
		return nil
	})
	require.NoError(t, err)
	slices.Sort(paths)
	return paths
}

// exported returns the exported declarations of a package in the order of go doc, without
// bodies, comments and what is not exported, and how many names they declare.
func exported(t *testing.T, path string) (text []byte, names int) {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	sources, err := filepath.Glob(filepath.Join(root, path, "*.go"))
	require.NoError(t, err)
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(set, files, "github.com/sluice-go/sluice/"+path)
	require.NoError(t, err)

	var out bytes.Buffer
	write := func(d ast.Decl) {
		var lines bytes.Buffer
		config := printer.Config{Mode: printer.TabIndent, Tabwidth: 8}
		require.NoError(t, config.Fprint(&lines, set, d))
		for line := range bytes.Lines(lines.Bytes()) {
			if len(bytes.TrimSpace(line)) > 0 { // else a comment was there
				out.Write(line)
			}
		}
		out.WriteByte('\n')
	}
	values := func(all []*doc.Value) {
		for _, v := range all {
			names += len(v.Names)
			write(stripped(v.Decl))
		}
	}
	functions := func(all []*doc.Func) {
		for _, f := range all {
			if f.Level > 0 {
				continue // promoted from an embedded type, where it is listed
			}
			names++
			d := *f.Decl
			d.Doc, d.Body = nil, nil
			write(&d)
		}
	}
	fmt.Fprintf(&out, "package %s // %s\n\n", p.Name, path)
	values(p.Consts)
	values(p.Vars)
	functions(p.Funcs)
	for _, typ := range p.Types {
		out.WriteByte('\n')
		names++
		write(stripped(typ.Decl))
		values(typ.Consts)
		values(typ.Vars)
		functions(typ.Funcs)
		functions(typ.Methods)
	}
	return out.Bytes(), names
}

// stripped returns a declaration without its comments, and without values that are made of
// functions.
func stripped(d *ast.GenDecl) *ast.GenDecl {
	d.Doc = nil
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			n.Doc, n.Comment = nil, nil
			if slices.ContainsFunc(n.Values, hasBody) {
				n.Values = nil
			}
		case *ast.TypeSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.Field:
			n.Doc, n.Comment = nil, nil
		}
		return true
	})
	return d
}

// hasBody reports whether there is a function literal in an expression.
func hasBody(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		_, literal := n.(*ast.FuncLit)
		found = found || literal
		return !found
	})
	return found
}
