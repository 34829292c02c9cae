package activeobject_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheProgramOfTheReadmeRuns(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(readme), "```go\n")
	require.True(t, ok, "the README has a program")
	program, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	require.LessOrEqual(t, strings.Count(strings.ReplaceAll(program, "\n\n", "\n"), "\n"), 25, "lines that are not empty")

	file := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(file, []byte(program), 0o666))
	run := exec.Command("go", "run", file)
	run.Dir = ".."
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), `account-1: 0 running, 1 waiting`)
	require.Contains(t, string(out), `guard "covered" was false`)
	require.Contains(t, string(out), "50 <nil>\n")
}
