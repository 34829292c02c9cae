package activeobject_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

// recorder is a slog handler that keeps what it is given, as text.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

func (r *recorder) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, string(line))
	return len(line), nil
}

// with returns the lines that contain the text.
func (r *recorder) with(text string) (lines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lines {
		if strings.Contains(l, text) {
			lines = append(lines, l)
		}
	}
	return lines
}

func (r *recorder) count(text string) int { return len(r.with(text)) }

func TestStatsCountWhatHasHappened(t *testing.T) {
	ts := newTanks()
	ts.drain.Bound(2, activeobject.Refuse)
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{}, activeobject.Counters())
		require.Equal(t, activeobject.Stats{Operation: "drain", WaitingTimes: mailbox.Histogram{}}, ts.drain.Stats(o))
		for range 3 {
			ts.fill.Call(background, o, 0)
		}
		ctx, cancel := context.WithCancel(background)
		gone := calling(ctx, o, ts.drain, nil)
		waiting(t, o, ts.drain, 1)
		stays := calling(background, o, ts.drain, nil)
		waiting(t, o, ts.drain, 2)
		_, err := ts.drain.Call(background, o, nil)
		require.ErrorIs(t, err, activeobject.ErrFull)
		_, err = ts.drain.Try(background, o, nil)
		require.ErrorIs(t, err, activeobject.ErrRefused)
		cancel()
		<-gone
		now := ts.drain.Stats(o)
		require.EqualValues(t, 0, now.Starts)
		require.EqualValues(t, 1, now.Withdrawals)
		require.EqualValues(t, 1, now.Refusals)
		require.GreaterOrEqual(t, now.Waits, uint64(2), "those that wait now included")
		require.GreaterOrEqual(t, now.Evaluations, activeobject.Count(1))
		ts.fill.Call(background, o, 1)
		require.NoError(t, soon(t, s.system, stays).err)
		// The count is there when the result is.
		require.EqualValues(t, 4, ts.fill.Stats(o).Starts)
		now = ts.drain.Stats(o)
		require.EqualValues(t, 1, now.Starts)
		require.EqualValues(t, 1, now.WaitingTimes.Count())
		require.Len(t, o.Stats(), len(ts.Type.Operations()))

		_, err = ts.fill.Send(background, o, 1).Await(background)
		require.NoError(t, err)
		_, err = ts.drain.Call(background, o, nil)
		require.NoError(t, err)
		require.EqualValues(t, 2, ts.drain.Stats(o).Starts)
		require.EqualValues(t, 1, ts.drain.Stats(o).WaitingTimes.Count(), "it did not wait")
		before := ts.drain.Stats(o).Evaluations
		_, err = ts.drain.Try(background, o, nil)
		require.Error(t, err)
		require.Equal(t, before+1, ts.drain.Stats(o).Evaluations)
	})
}

func TestStatsOfAnObjectThatDoesNotCountAreOfThoseThatWaited(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		drained := calling(background, o, ts.drain, nil)
		eventually(t, "its guard has been asked", func() bool {
			w := o.Explain().Waiting
			return len(w) == 1 && w[0].Reason.Guard != ""
		})
		ts.fill.Call(background, o, 1)
		require.NoError(t, soon(t, s.system, drained).err)
		now := ts.drain.Stats(o)
		require.Contains(t, []activeobject.Count{1, activeobject.NotCounted}, now.Starts)
		require.EqualValues(t, 1, now.Waits)
		require.Equal(t, activeobject.NotCounted, now.LongestBypass)
		require.Nil(t, now.WaitingTimes)
		require.Equal(t, activeobject.Stats{Operation: "a"}, newLedgers().a.Stats(newObject(t, s, newLedgers().Type, &ledger{})))
	})
}

func TestTheLongestBypassIsCounted(t *testing.T) {
	l := newLedgers()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, c := range []struct {
			options []activeobject.Option
			want    int
		}{
			{[]activeobject.Option{activeobject.Counters()}, 5},
			{[]activeobject.Option{activeobject.MaxBypass(3)}, 3},
			{nil, int(activeobject.NotCounted)},
		} {
			o := newObject(t, s, l.Type, &ledger{}, append(c.options, activeobject.ByLatest())...)
			release := braked(t, s, o, l.hold)
			results := l.queue(t, o, wishes("c1", "a2", "b3", "a4", "b5", "a6")...)
			release()
			for _, c := range results {
				require.NoError(t, soon(t, s.system, c).err)
			}
			require.EqualValues(t, c.want, l.c.Stats(o).LongestBypass)
		}
	})
}

func TestStatsHaveAStableFormInJSON(t *testing.T) {
	b, err := json.Marshal(activeobject.Stats{
		Operation: "drain", Starts: 1, Waits: 2, Withdrawals: 3, Refusals: 4, Evaluations: 5, LongestBypass: 6,
		WaitingTimes: mailbox.Histogram{0, 7},
	})
	require.NoError(t, err)
	require.JSONEq(t, `{"operation": "drain", "starts": 1, "waits": 2, "withdrawals": 3, "refusals": 4,
		"guard_evaluations": 5, "longest_bypass": 6, "waiting_times_us": [0, 7]}`, string(b))

	none := activeobject.Stats{Operation: "drain", Starts: activeobject.NotCounted, Evaluations: activeobject.NotCounted, LongestBypass: activeobject.NotCounted}
	b, err = json.Marshal(none)
	require.NoError(t, err)
	require.JSONEq(t, `{"operation": "drain", "starts": null, "waits": 0, "withdrawals": 0, "refusals": 0,
		"guard_evaluations": null, "longest_bypass": null}`, string(b))
	var again activeobject.Stats
	require.NoError(t, json.Unmarshal(b, &again))
	require.Equal(t, none, again)
	require.Equal(t, "1 started, not counted evaluated", fmt.Sprint(activeobject.Count(1), " started, ", none.Evaluations, " evaluated"))
}

// inBubbles runs a test for objects of every configuration, each in a bubble with a
// clock of its own. What the system logs is recorded.
func inBubbles(t *testing.T, test func(t *testing.T, s *scene, log *recorder)) {
	for name, option := range map[string]activeobject.Option{
		"default": activeobject.CallerThreads(), "without fast path": activeobject.NoFastPath(),
		"pooled": activeobject.PooledThreads(), "dedicated": activeobject.DedicatedThread(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &recorder{}
				system := actor.NewSystem(actor.Logger(log.logger()))
				defer system.Close(background)
				test(t, &scene{name: name, system: system, options: []activeobject.Option{option}}, log)
			})
		})
	}
}

func TestWaitingTimesAreMeasured(t *testing.T) {
	ts := newTanks()
	inBubbles(t, func(t *testing.T, s *scene, _ *recorder) {
		o := newObject(t, s, ts.Type, &dam{}, activeobject.Counters())
		for _, wait := range []time.Duration{time.Microsecond, time.Millisecond, time.Second, time.Hour} {
			drained := calling(background, o, ts.drain, nil)
			synctest.Wait()
			time.Sleep(wait) // the bubble's clock: it costs nothing
			ts.fill.Call(background, o, 1)
			<-drained
		}
		h := ts.drain.Stats(o).WaitingTimes
		require.EqualValues(t, 4, h.Count())
		require.EqualValues(t, 1, h[1], "a microsecond")
		require.EqualValues(t, 1, h[10], "a millisecond: from 512 µs to 1024")
		require.EqualValues(t, 1, h[20], "a second")
		require.EqualValues(t, 1, h[32], "an hour")
		require.Equal(t, 2*time.Microsecond, h.Quantile(0.25))
		require.Equal(t, 1024*time.Microsecond, h.Quantile(0.5))
		require.GreaterOrEqual(t, h.Quantile(1), time.Hour)
		require.Zero(t, mailbox.Histogram{}.Quantile(0.5))
	})
}

func TestTheWatchdogReportsALongWaitOnceAndNoShortOne(t *testing.T) {
	const late = "waits for long"
	ts := newTanks()
	inBubbles(t, func(t *testing.T, s *scene, log *recorder) {
		o := newObject(t, s, ts.Type, &dam{}, activeobject.Watchdog(time.Minute), activeobject.Name("pool"))
		short := calling(background, o, ts.drain, nil)
		synctest.Wait()
		time.Sleep(59 * time.Second)
		ts.fill.Call(background, o, 1)
		<-short
		time.Sleep(time.Hour)
		require.Zero(t, log.count(late))

		first := calling(background, o, ts.drain, nil)
		synctest.Wait()
		time.Sleep(30 * time.Second)
		second := calling(background, o, ts.drain, nil)
		synctest.Wait()
		time.Sleep(30*time.Second + 1)
		synctest.Wait()
		require.Equal(t, 1, log.count(late))
		line := log.with(late)[0]
		for _, text := range []string{"pool", "operation=drain", "age=1m0s", "position=1", `guard \"`} {
			require.Contains(t, line, text)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Equal(t, 2, log.count(late), "the other one, too")
		time.Sleep(time.Hour)
		require.Equal(t, 2, log.count(late), "each once")
		ts.fill.Call(background, o, 2)
		<-first
		<-second

		third := calling(background, o, ts.drain, nil) // perhaps with the record of one of them
		synctest.Wait()
		time.Sleep(time.Minute + 1)
		synctest.Wait()
		require.Equal(t, 3, log.count(late))
		<-o.Stop()
		<-third
	})
}

func TestTheWatchdogSaysWhatRuns(t *testing.T) {
	ts := newTanks()
	inBubbles(t, func(t *testing.T, s *scene, log *recorder) {
		o := newObject(t, s, ts.Type, &dam{}, activeobject.Watchdog(time.Second))
		b := newBrake()
		busy := calling(background, o, ts.hold, b)
		<-b.entered
		filled := calling(background, o, ts.fill, 1)
		synctest.Wait()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, log.count("waits for long"))
		require.Contains(t, log.with("waits for long")[0], "running  hold")
		close(b.let)
		<-busy
		<-filled
	})
}

func TestTheWatchdogSurvivesItsHandler(t *testing.T) {
	ts := newTanks()
	inBubbles(t, func(t *testing.T, _ *scene, _ *recorder) {
		system := actor.NewSystem(actor.Logger(slog.New(slog.NewTextHandler(bomb{}, nil))))
		defer system.Close(background)
		o := activeobject.Must(activeobject.New(system, ts.Type, &dam{}, activeobject.Watchdog(time.Second)))
		drained := calling(background, o, ts.drain, nil)
		synctest.Wait()
		time.Sleep(time.Minute)
		ts.fill.Call(background, o, 1)
		require.NoError(t, (<-drained).err)
	})
}

// bomb is a writer that panics.
type bomb struct{}

func (bomb) Write([]byte) (int, error) { panic("boom") }

// A watchdog that inspects many requests releases the mutex in between. A request that arrives then
// is inspected, too.
func TestTheWatchdogMissesNoRequestAmongMany(t *testing.T) {
	ts := newTanks()
	inBubbles(t, func(t *testing.T, s *scene, log *recorder) {
		o := newObject(t, s, ts.Type, &dam{}, activeobject.Watchdog(time.Second))
		const n = 600
		for range n {
			ts.drain.Send(background, o, nil)
		}
		synctest.Wait()
		time.Sleep(2 * time.Second)
		for range n {
			ts.drain.Send(background, o, nil)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 2*n, log.count("waits for long"))
		<-o.Stop()
	})
}

func TestWhatNeverRanIsNoStart(t *testing.T) {
	ts := newTanks()
	unsound := activeobject.Entry(ts.Type, "unsound", func(*dam, None) (None, error) { return nil, nil }).
		When("sound", func(*dam) bool { panic("cracked") })
	everywhere(t, func(t *testing.T, s *scene) {
		for _, options := range [][]activeobject.Option{nil, {activeobject.Counters()}} {
			o := newObject(t, s, ts.Type, &dam{}, options...)
			for range 3 {
				_, err := unsound.Call(background, o, nil)
				require.ErrorAs(t, err, new(*activeobject.GuardError))
				_, err = unsound.Send(background, o, nil).Await(background)
				require.ErrorAs(t, err, new(*activeobject.GuardError))
				require.ErrorAs(t, soon(t, s.system, trying(background, o, unsound, nil)).err, new(*activeobject.GuardError))
			}
			require.Contains(t, []activeobject.Count{0, activeobject.NotCounted}, unsound.Stats(o).Starts)
		}
	})
}
