package picture

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePageNeedsNothingButItself(t *testing.T) {
	var b bytes.Buffer
	_, err := fixed().WriteTo(&b)
	require.NoError(t, err)
	for _, wanted := range []string{"<h1>Models of concurrency, compared</h1>", `id="slow"`, "Thread-per-object ran one body at a time", "</html>"} {
		require.Contains(t, b.String(), wanted)
	}
	require.NotContains(t, b.String(), `src="http`)
	require.NotContains(t, b.String(), `href="http://`)
	if file := os.Getenv("PAGE"); file != "" {
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o666))
	}
}

func TestAPageWithoutCurvesHasNoLibraries(t *testing.T) {
	p := fixed()
	for i := range p.Sections {
		p.Sections[i].Charts = nil
	}
	var b bytes.Buffer
	_, err := p.WriteTo(&b)
	require.NoError(t, err)
	require.NotContains(t, b.String(), "Observable")
	require.Less(t, b.Len(), 200_000)
}

// What a program calls its objects and operations cannot end the script that it is in, or be markup.
func TestNamesAreNoMarkup(t *testing.T) {
	const name = `</script><b>"x"`
	p := &Panel{Name: name, Operations: []string{name}, Objects: []string{name}, Length: 10, Requests: []Request{{Started: 1, Ended: 2, By: None}}}
	var b bytes.Buffer
	_, err := (&Page{Title: name, Sections: []Section{{ID: "a", Panels: []*Panel{p}}}}).WriteTo(&b)
	require.NoError(t, err)
	require.NotContains(t, b.String(), name)
	require.Equal(t, 2, strings.Count(b.String(), "</script>"))
}

// A trace is an object with a list of events, each with what its phase has to have.
func TestTheTraceIsOfTheFormat(t *testing.T) {
	var b bytes.Buffer
	panels := trio(1e6, 20e6, 5e6)
	require.NoError(t, Trace(&b, panels))
	var trace struct {
		TraceEvents []map[string]any
	}
	require.NoError(t, json.Unmarshal(b.Bytes(), &trace))
	phases := map[string]int{}
	open := map[float64]float64{}
	for _, e := range trace.TraceEvents {
		phase := e["ph"].(string)
		phases[phase]++
		require.NotEmpty(t, e["name"])
		require.Positive(t, e["pid"])
		switch phase {
		case "X":
			require.GreaterOrEqual(t, e["dur"], 0.)
			require.Contains(t, []any{"wait", "run"}, e["cat"])
		case "s":
			open[e["id"].(float64)] = e["ts"].(float64)
		case "f":
			require.Equal(t, "e", e["bp"])
			from, ok := open[e["id"].(float64)]
			require.True(t, ok)
			require.LessOrEqual(t, from, e["ts"])
		case "C":
			for _, n := range e["args"].(map[string]any) {
				require.GreaterOrEqual(t, n, 0.)
			}
		case "M":
			require.NotEmpty(t, e["args"].(map[string]any)["name"])
		default:
			t.Errorf("phase %s", phase)
		}
	}
	require.Equal(t, phases["s"], phases["f"])
	for _, p := range []string{"X", "s", "C", "M"} {
		require.Positive(t, phases[p], p)
	}
	waits, runs := 0, 0
	for _, p := range panels {
		for i := range p.Requests {
			waits += len(p.Requests[i].Waits)
			if p.Requests[i].Started != Never {
				runs++
			}
		}
	}
	require.Equal(t, waits+runs, phases["X"])
}

func TestNoTwoRequestsShareALane(t *testing.T) {
	for _, p := range trio(1e6, 20e6, 5e6) {
		for i := range p.Requests {
			for j := range p.Requests[:i] {
				a, b := &p.Requests[i], &p.Requests[j]
				if a.Lane == b.Lane && a.Arrived < b.end() && b.Arrived < a.end() {
					t.Errorf("%s: %s and %s are both in lane %d", p.Name, p.Request(i), p.Request(j), a.Lane)
				}
			}
		}
	}
}

func TestAStretchOfAPanel(t *testing.T) {
	p := &Panel{
		Operations: []string{"put", "get"}, Objects: []string{"buffer"}, Length: 100,
		Requests: []Request{
			{Number: 1, Arrived: 0, Held: 0, Started: 0, Ended: 10, By: None},
			{Number: 2, Arrived: 5, Held: 20, Started: 20, Ended: 50, By: 0, Waits: []Wait{{From: 5, Cause: Conflict, For: []int{0}}, {From: 10, Cause: Guard}, {From: 15, Cause: NoThread}}},
			{Number: 3, Op: 1, Arrived: 30, Held: Never, Started: Never, Ended: 90, Left: true, By: None, Waits: []Wait{{From: 30, Cause: Conflict, For: []int{1}}}},
			{Number: 4, Arrived: 80, Held: 80, Started: 80, Ended: 95, By: None},
		},
	}
	p.Clip(12, 60)
	require.Equal(t, []Request{
		{Number: 2, Arrived: 0, Held: 8, Started: 8, Ended: 38, By: None, Waits: []Wait{{From: 0, Cause: Guard}, {From: 3, Cause: NoThread}}},
		{Number: 3, Op: 1, Arrived: 18, Held: Never, Started: Never, Ended: Never, By: None, Waits: []Wait{{From: 18, Cause: Conflict, For: []int{0}}}},
	}, p.Requests)
	require.EqualValues(t, 48, p.Length)
	shares := p.Shares()
	require.InDelta(t, 30./38, shares[Conflict], 1e-9)
	require.InDelta(t, 3./38, shares[Guard], 1e-9)
	require.InDelta(t, 5./38, shares[NoThread], 1e-9)
}
