package trace

import (
	"slices"
	"testing"
)

// span is a request that arrived, started and ended at the given times.
func span(caller int, arrived, started, ended int64, thread uint64) Span {
	return Span{Caller: caller, Arrived: arrived, Started: started, Ended: ended, Thread: thread, home: uint64(100 + caller), Own: thread == uint64(100+caller)}
}

// two readers beside each other, and a writer who waits for both.
func readers(threads ...uint64) []Span {
	return []Span{
		span(0, 10, 10, 30, threads[0]),
		span(1, 10, 10, 40, threads[1]),
		span(2, 20, 40, 60, threads[2]),
	}
}

func TestThreads(t *testing.T) {
	for name, test := range map[string]struct {
		spans   []Span
		rule    Rule
		objects int
		want    Threads
	}{
		"on arrival":     {readers(1, 2, 3), Rule{Assignment: OnArrival}, 1, Threads{Used: 3, Blocked: 1, Running: 2, Mean: 70. / 50}},
		"on start":       {readers(1, 2, 1), Rule{}, 1, Threads{Used: 2, Running: 2, Mean: 70. / 50}},
		"the callers'":   {readers(100, 101, 102), Rule{Callers: true}, 1, Threads{Used: 3, Blocked: 1, Running: 2, Mean: 70. / 50}},
		"one caller's":   {readers(100, 101, 101), Rule{Callers: true}, 1, Threads{Used: 2, Running: 2, Mean: 70. / 50}},
		"small pool":     {readers(1, 2, 1), Rule{Assignment: OnArrival, Pool: 2}, 1, Threads{Used: 2, Blocked: 1, Running: 2, Mean: 70. / 50}},
		"many objects":   {readers(1, 2, 1), Rule{Assignment: Fixed}, 9, Threads{Used: 9, Running: 2, Mean: 70. / 50}},
		"never started":  {[]Span{span(0, 10, 0, 0, 0)}, Rule{Assignment: OnArrival}, 1, Threads{Used: 1, Blocked: 1}},
		"no thread left": {[]Span{span(0, 10, 0, 0, 0)}, Rule{}, 1, Threads{}},
		"nothing":        {nil, Rule{}, 1, Threads{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Count(test.spans, test.rule, test.objects); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestPoolGivesThreadsInOrder expects that who arrives at a pool without a free
// thread gets the next one, and waits on with it.
func TestPoolGivesThreadsInOrder(t *testing.T) {
	spans := []Span{
		span(0, 10, 10, 30, 1),
		span(1, 11, 40, 50, 1),
		span(2, 12, 0, 0, 0), // waits for ever
	}
	if got, want := Held(spans, Rule{Assignment: OnArrival, Pool: 1}), []int64{10, 30, 50}; !slices.Equal(got, want) {
		t.Errorf("held since %v, want %v", got, want)
	}
	late := []Span{span(0, 10, 0, 0, 0), span(1, 11, 20, 30, 1)} // who came second was first
	if got, want := Held(late, Rule{Assignment: OnArrival, Pool: 1}), []int64{30, 20}; !slices.Equal(got, want) {
		t.Errorf("held since %v, want %v", got, want)
	}
	if got, want := Held(spans, Rule{Assignment: OnArrival, Pool: 2}), []int64{10, 11, 30}; !slices.Equal(got, want) {
		t.Errorf("held since %v, want %v", got, want)
	}
}

// TestLog follows two requests: one that its caller runs, and one that somebody else
// does; and expects a page that is full to say so, and to record no more.
func TestLog(t *testing.T) {
	l := New(Capacity / 2) // two requests each
	l.Begin()
	p := l.Page(3)
	own := p.Arrive(3, 0, 1)
	own.Start()
	own.End()
	other := p.Arrive(3, 0, 2)
	done := make(chan struct{})
	go func() { defer close(done); other.Start(); other.End() }()
	<-done
	select {
	case <-l.Full():
		t.Error("full before there was one too many")
	default:
	}
	if s := p.Arrive(3, 0, 0); s != nil {
		t.Error("the page takes three")
	}
	<-l.Full()
	spans := l.Spans()
	if len(spans) != 2 {
		t.Fatalf("%d spans, want 2", len(spans))
	}
	for i, own := range []bool{true, false} {
		s := spans[i]
		if s.Own != own || s.Op != i+1 || s.Arrived < 1 || s.Started < s.Arrived || s.Ended < s.Started {
			t.Errorf("span %d: %+v", i, s)
		}
	}
	var none *Page
	s := none.Arrive(0, 0, 0)
	s.Start()
	s.End()
}
