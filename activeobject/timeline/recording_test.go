package timeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/activeobject/timeline"
	"github.com/sluice-go/sluice/internal/picture"
	"github.com/sluice-go/sluice/synchronizer"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

// shelf is the shared object of these tests: books come and are taken, and counted. Every body
// takes a millisecond, so that in a bubble all times are known.
type shelf struct{ books int }

func (s *shelf) put(_ context.Context, n int) (int, error) {
	time.Sleep(time.Millisecond)
	s.books += n
	return s.books, nil
}

func (s *shelf) take(_ context.Context, n int) (int, error) {
	time.Sleep(time.Millisecond)
	s.books -= n
	return s.books, nil
}

func (s *shelf) count(_ context.Context, more int) (int, error) {
	time.Sleep(time.Duration(1000+more) * time.Microsecond)
	return s.books, nil
}

func (s *shelf) has(n int) bool { return s.books >= n }

var (
	shelves = activeobject.NewType[shelf]("shelf")
	put     = activeobject.ProcedureCtx(shelves, "put", (*shelf).put)
	take    = activeobject.EntryCtx(shelves, "take", (*shelf).take).WhenArg("enough", (*shelf).has)
	count   = activeobject.FunctionCtx(shelves, "count", (*shelf).count)
)

// client calls an operation at a time, in microseconds.
type client struct {
	at  int
	op  *activeobject.Operation[shelf, int, int]
	arg int
}

// record returns what is recorded while clients call an object with the given options.
func record(t *testing.T, clients []client, options ...activeobject.Option) *timeline.Recording {
	t.Helper()
	recording := timeline.New()
	object := activeobject.Must(activeobject.New(objecttest.NewSystem(t), shelves, &shelf{}, append(options, recording.Option())...))
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			time.Sleep(time.Duration(c.at) * time.Microsecond)
			_, err := c.op.Call(t.Context(), object, c.arg)
			require.NoError(t, err)
		})
	}
	all.Wait()
	return recording
}

// tell writes a panel as text: of each request when it came, why it waited from when on, when it
// had a thread, and when and since whose end it ran; in microseconds.
func tell(p *picture.Panel) string {
	var b strings.Builder
	us := func(ns int64) string { return fmt.Sprint(ns / 1000) }
	for i := range p.Requests {
		r := &p.Requests[i]
		fmt.Fprintf(&b, "%s: %s", p.Request(i), us(r.Arrived))
		for _, w := range r.Waits {
			fmt.Fprintf(&b, ", %s %s", us(w.From), w.Text)
		}
		switch {
		case r.Left:
			fmt.Fprintf(&b, ", %s left", us(r.Ended))
		case r.Started == picture.Never:
			b.WriteString(", waits")
		default:
			fmt.Fprintf(&b, ", %s to %s", us(r.Started), us(r.Ended))
		}
		if r.Held != r.Started {
			fmt.Fprintf(&b, ", thread since %s", us(r.Held))
		}
		if r.By != picture.None {
			fmt.Fprintf(&b, ", after %s", p.Request(r.By))
		}
		b.WriteString("\n")
	}
	return b.String()
}

var visitors = []client{{0, take, 2}, {100, put, 1}, {200, count, 0}, {300, count, 100}, {400, put, 1}}

func TestEveryWaitHasItsReason(t *testing.T) {
	for _, test := range []struct {
		name    string
		options []activeobject.Option
		want    string
	}{
		{"active object", []activeobject.Option{activeobject.DedicatedThread()}, `
take #1: 0, 0 guard "enough" is false, 4200 to 5200, after put #5
put #2: 100, 100 to 1100
count #3: 200, 200 conflicts with put #2, 1100 to 2100, after put #2
count #4: 300, 300 conflicts with put #2, 1100 conflicts with count #3, 2100 to 3200, after count #3
put #5: 400, 400 conflicts with put #2, 1100 conflicts with count #3, 2100 conflicts with count #4, 3200 to 4200, after count #4
`},
		{"synchronizer", []activeobject.Option{synchronizer.Goroutines()}, `
take #1: 0, 0 guard "enough" is false, 3200 to 4200, after put #5
put #2: 100, 100 to 1100
count #3: 200, 200 conflicts with put #2, 1100 to 2100, after put #2
count #4: 300, 300 conflicts with put #2, 1100 to 2200, after put #2
put #5: 400, 400 conflicts with put #2, 1100 conflicts with count #3, count #4, 2100 conflicts with count #4, 2200 to 3200, after count #4
`},
		{"monitor", []activeobject.Option{synchronizer.Goroutines(), synchronizer.Monitor()}, `
take #1: 0, 0 guard "enough" is false, 3200 to 4200, thread since 0, after put #5
put #2: 100, 100 to 1100
count #3: 200, 200 conflicts with put #2, 1100 to 2100, thread since 200, after put #2
count #4: 300, 300 conflicts with put #2, 1100 to 2200, thread since 300, after put #2
put #5: 400, 400 conflicts with put #2, 1100 conflicts with count #3, count #4, 2100 conflicts with count #4, 2200 to 3200, thread since 400, after count #4
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				panels := record(t, visitors, test.options...).Panels()
				require.Len(t, panels, 1)
				require.Equal(t, strings.TrimPrefix(test.want, "\n"), tell(panels[0]))
			})
		})
	}
}

func TestARequestThatIsWithdrawnHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recording := timeline.New()
		object := activeobject.Must(activeobject.New(objecttest.NewSystem(t), shelves, &shelf{}, recording.Option()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := take.Call(ctx, object, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, "take #1: 0, 0 guard \"enough\" is false, 1000 left\n", tell(recording.Panels()[0]))
	})
}

// Objects of one name are told apart, and can be shown together.
func TestSeveralObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recording, system := timeline.New(), objecttest.NewSystem(t)
		for _, name := range []string{"", "", "upper"} {
			options := []activeobject.Option{recording.Option()}
			if name != "" {
				options = append(options, activeobject.Name(name))
			}
			put.Call(t.Context(), activeobject.Must(activeobject.New(system, shelves, &shelf{}, options...)), 1)
		}
		var names []string
		for _, p := range recording.Panels() {
			names = append(names, p.Name)
		}
		require.Equal(t, []string{"shelf", "shelf 2", "upper"}, names)
		require.Equal(t, "shelf: put #1: 0, 0 to 1000\nshelf 2: put #1: 1000, 1000 to 2000\nupper: put #1: 2000, 2000 to 3000\n", tell(recording.Panel("all")))
	})
}

func TestItIsSavedAsAPageOrATrace(t *testing.T) {
	dir := t.TempDir()
	var recording *timeline.Recording
	synctest.Test(t, func(t *testing.T) { recording = record(t, visitors, synchronizer.Goroutines()) })
	page, trace := filepath.Join(dir, "page.html"), filepath.Join(dir, "trace.json")
	require.NoError(t, recording.Save(page))
	require.NoError(t, recording.Save(trace))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, want := range []string{"<b>shelf</b>", "5 requests, of which 4 had to wait", `guard \"enough\" is false`, "conflicts with put #2"} {
		require.Contains(t, string(text), want)
	}
	text, err = os.ReadFile(trace)
	require.NoError(t, err)
	require.True(t, json.Valid(text))
	require.Contains(t, string(text), "conflicts with put #2")
	require.Error(t, recording.Save(filepath.Join(dir, "nowhere", "page.html")))
}

func TestAnEmptyRecordingSaysSo(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, timeline.New().WritePage(&b, "nothing"))
	require.Contains(t, b.String(), "Nothing was recorded")
}

// Of very many requests that wait, some are shown without a reason.
func TestACrowdIsRecordedInTime(t *testing.T) {
	recording := timeline.New()
	object := activeobject.Must(activeobject.New(objecttest.NewSystem(t, objecttest.AllowWaiting()), shelves, &shelf{}, recording.Option()))
	const crowd = 1000
	for range crowd {
		take.Send(t.Context(), object, 1)
	}
	objecttest.Waiting(t, object, take, crowd)
	with := 0
	for _, r := range recording.Panels()[0].Requests {
		if n := len(r.Waits); n > 0 && r.Waits[n-1].Cause != picture.Unknown {
			with++
			require.Equal(t, `guard "enough" is false`, r.Waits[n-1].Text)
		}
	}
	require.Greater(t, with, 200)
	require.Less(t, with, crowd)
}

// What comes after the capacity is not recorded, and the page says so.
func TestARecordingHasABound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes tens of thousands of requests")
	}
	counters := activeobject.NewType[shelf]("counter")
	add := activeobject.Procedure(counters, "add", func(s *shelf, n int) (int, error) { s.books += n; return s.books, nil })
	recording := timeline.New()
	object := activeobject.Must(activeobject.New(objecttest.NewSystem(t), counters, &shelf{}, recording.Option()))
	const requests = timeline.Capacity/3 + 100 // each of which arrives, starts and ends
	for range requests {
		add.Call(t.Context(), object, 1)
	}
	p := recording.Panels()[0]
	require.Less(t, len(p.Requests), requests)
	require.Greater(t, len(p.Requests), timeline.Capacity/3-10)
	require.NotEmpty(t, p.Cut)
	var b bytes.Buffer
	require.NoError(t, recording.WritePage(&b, "counter"))
	require.Contains(t, b.String(), "The page shows the first 3000 requests")
}
