package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// opened returns the journal in a file with the text, which must be one.
func opened(t *testing.T, text []byte) *FileJournal {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := OpenJournal(path, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// written returns a journal of some tickets, as the text of its file.
func written(t *testing.T) ([]Ticket, []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	j, err := OpenJournal(path, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var all []Ticket
	for i, buyer := range []string{"ann", "bob", "eve"} {
		ticket := Ticket{Order: fmt.Sprint(i + 1), Event: "gala", Seat: fmt.Sprintf("A%d", i+1), Buyer: buyer}
		if err := j.Append(ticket); err != nil {
			t.Fatal(err)
		}
		all = append(all, ticket)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return all, text
}

func TestAFileThatIsNoJournalStaysAsItIs(t *testing.T) {
	noise := make([]byte, 10_000)
	for i := range noise {
		noise[i] = byte(rand.Int())
	}
	_, journal := written(t)
	for name, text := range map[string][]byte{
		"noise": noise, "no line": bytes.Repeat([]byte("x"), 10_000), "a letter": []byte("x"), "JSON": []byte(`{"order":"1"}` + "\n"),
		"another version": bytes.Replace(journal, []byte("journal 1"), []byte("journal 2"), 1), "no header": journal[len(header):],
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := OpenJournal(path, quiet)
			var damaged *JournalError
			if !errors.As(err, &damaged) || damaged.Line != 1 || damaged.Path != path {
				t.Error(err)
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, text) {
				t.Errorf("%d bytes of %d are left, %v", len(now), len(text), err)
			}
		})
	}
}

// A byte that changes frees no seat: the journal is not opened, and the error says where.
func TestAChangedByteIsFoundOutWhereverItIs(t *testing.T) {
	_, text := written(t)
	for i := range text {
		changed := slices.Clone(text)
		changed[i] ^= 1
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		line := 1 + bytes.Count(text[:i], []byte{'\n'})
		_, err := OpenJournal(path, quiet)
		var damaged *JournalError
		if !errors.As(err, &damaged) || damaged.Line != line {
			t.Fatalf("byte %d, in line %d: %v", i, line, err)
		}
		if now, _ := os.ReadFile(path); !bytes.Equal(now, changed) {
			t.Fatalf("byte %d: the file is not as it was", i)
		}
	}
}

func TestALineThatIsMissingOrMovedIsFoundOut(t *testing.T) {
	_, text := written(t)
	lines := bytes.SplitAfter(text, []byte{'\n'})
	for name, c := range map[string]struct {
		text [][]byte
		line int
	}{
		"missing": {[][]byte{lines[0], lines[1], lines[3]}, 3},
		"moved":   {[][]byte{lines[0], lines[2], lines[1], lines[3]}, 2},
		"twice":   {[][]byte{lines[0], lines[1], lines[1]}, 3},
	} {
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, bytes.Join(c.text, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenJournal(path, quiet)
		var damaged *JournalError
		if !errors.As(err, &damaged) || damaged.Line != c.line {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Wherever a crash cuts the file short, the lines before are there, what is left of the last
// one is said, and what is appended then is read again.
func TestATornLineIsDroppedAndSaidToBe(t *testing.T) {
	all, text := written(t)
	for n := range len(text) + 1 {
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, text[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		whole := bytes.Count(text[:n], []byte{'\n'})
		want := all[:max(whole-1, 0)]
		last := Ticket{Order: "9", Event: "gala", Seat: "Z9"}
		for range 2 {
			var log strings.Builder
			j, err := OpenJournal(path, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if sold := j.Sold("gala"); !slices.Equal(sold, want) {
				t.Fatalf("%d bytes: sold are %v", n, sold)
			}
			torn := n > 0 && text[n-1] != '\n' && !j.Has("9")
			if said := strings.Contains(log.String(), fmt.Sprintf("line=%d ", whole+1)); said != torn {
				t.Fatalf("%d bytes: torn %v, and the log says %q", n, torn, log.String())
			}
			if !j.Has("9") {
				if err := j.Append(last); err != nil {
					t.Fatal(err)
				}
				want = append(slices.Clone(want), last)
			}
			j.Close()
		}
	}
}

func TestAJournalBelongsToOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	first, err := OpenJournal(path, quiet)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{path, link} { // the lock is the open file's, and so also keeps out the process itself
		if _, err := OpenJournal(name, quiet); !errors.Is(err, ErrInUse) {
			t.Errorf("%s: %v", name, err)
		}
	}
	first.Close()
	next, err := OpenJournal(link, quiet)
	if err != nil {
		t.Fatal(err)
	}
	next.Close()
}

func TestASeatThatTwoLinesSellIsSaidWithBoth(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := OpenJournal(path, quiet)
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range []string{"1", "2"} { // which no hall does
		if err := j.Append(Ticket{Order: order, Event: "gala", Seat: "A1"}); err != nil {
			t.Fatal(err)
		}
	}
	j.Close()
	_, err = OpenJournal(path, quiet)
	if err == nil || !strings.HasSuffix(err.Error(), "line 3 sells seat A1 of gala, which line 2 has sold") {
		t.Error(err)
	}
}
