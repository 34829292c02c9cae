package objecttest_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the page shows has to compile and to do what it says; so it is quoted from
// the examples, word by word.
func TestTheSnippetsOfThePageAreOfExamples(t *testing.T) {
	var examples string
	for _, file := range []string{"example_test.go", "../../synchronizer/conflicttest/example_test.go"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		examples += string(text)
	}
	page, err := os.ReadFile("../../docs/testing.md")
	require.NoError(t, err)
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, snippets)
	for _, s := range snippets {
		require.Contains(t, flush(examples), flush(s[1]))
	}
}

// flush returns the lines of a text without what indents them.
func flush(text string) string {
	return regexp.MustCompile(`(?m)^[ \t]+`).ReplaceAllString(text, "")
}
