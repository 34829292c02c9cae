package activeobject_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// Like the README's program, what the page shows has to compile and to do what it
// says; so it is quoted from the examples, word by word.
func TestTheSnippetsThatTheReadmeRefersToAreOfExamples(t *testing.T) {
	var examples strings.Builder
	for _, file := range []string{"example_test.go", "example_calling_test.go", "example_suspend_test.go", "../actor/example_test.go"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		examples.WriteString(flush(string(text)))
	}
	page, err := os.ReadFile("../docs/calling.md")
	require.NoError(t, err)
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, snippets)
	for _, s := range snippets {
		require.Contains(t, examples.String(), flush(s[1]))
	}
}

// flush returns the lines of a text without what indents them.
func flush(text string) string {
	return regexp.MustCompile(`(?m)^[ \t]+`).ReplaceAllString(text, "")
}

func TestTheReadmeOfCallingHasEveryError(t *testing.T) {
	page, err := os.ReadFile("../docs/calling.md")
	require.NoError(t, err)
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	declared := regexp.MustCompile(`(?m)^(?:type |\t)([A-Z]\w*Error|Err[A-Z]\w*)\s+(?:struct|=)`)
	found := 0
	for _, file := range sources {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range declared.FindAllStringSubmatch(string(text), -1) {
			found++
			require.Regexp(t, "`\\*?"+name[1]+"`", string(page), "in %s", file)
		}
	}
	require.Greater(t, found, 15)
}

func TestTheFaultListNamesTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("../docs/embedding.md")
	require.NoError(t, err)
	tests := map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		return err
	}))
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, named)
	for _, m := range named {
		require.True(t, tests[m[1]], m[1])
	}
}
