package mailbox_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// gateway is an object with one guard.
type gateway struct{ open bool }

func (g *gateway) AskState(int) (string, error) {
	if g.open {
		return "", nil
	}
	return "open", nil
}
func (g *gateway) AskRequest(*mailbox.Request) (string, error) { return "", nil }

const (
	alter = iota
	pass
	peek
)

func gatewayRules(b mailbox.Bound) *mailbox.Rules {
	return &mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "alter"},
			{Name: "pass", Kind: mailbox.Entry, Guard: "open", Looks: guards.AtState},
			{Name: "peek", Kind: mailbox.Function},
		},
		Conflicts: guards.Where([]string{"alter", "pass", "peek"}, func(i, j int) bool { return i != peek || j != peek }),
		Bound:     b,
	}
}

// Who has no thread is not considered, in nobody's way, and gets one in the order of arrival.
func TestWhoHasNoThreadIsNotConsideredAndInNobodysWay(t *testing.T) {
	g := &gateway{}
	k := mailbox.New(gatewayRules(mailbox.Bound{}), g)
	var bare [3]mailbox.Request
	for i := range bare {
		bare[i].Op = []int{peek, alter, pass}[i]
		k.ArriveAwaitingThread(&bare[i])
	}
	reader := mailbox.Request{Op: peek}
	k.Arrive(&reader)
	r, err := k.Next()
	require.NoError(t, err)
	require.Same(t, &reader, r, "it passes those that came first, one of which conflicts")
	r, _ = k.Next()
	require.Nil(t, r)
	require.Equal(t, mailbox.Reason{Cause: mailbox.NoThread, Threads: "none is free"}, k.Why(&bare[1]))
	require.Equal(t, 1, k.Queued(alter))
	require.Zero(t, k.Waiting(alter))

	require.Same(t, &bare[0], k.AwaitingThread())
	k.AssignThread(&bare[0])
	require.Same(t, &bare[1], k.AwaitingThread())
	r, _ = k.Next()
	require.Same(t, &bare[0], r)
	require.True(t, k.Withdraw(&bare[1]))
	require.Same(t, &bare[2], k.AwaitingThread())
	require.Same(t, &bare[2], k.Find(bare[2].Arrival()))
	k.Complete(&reader)
	k.Complete(&bare[0])
	require.True(t, k.Waits())
	k.AssignThread(&bare[2])
	require.Nil(t, k.AwaitingThread())
	r, _ = k.Next()
	require.Nil(t, r, "its guard is false")
	require.Equal(t, mailbox.GuardFalse, k.Why(&bare[2]).Cause)
	require.True(t, k.Withdraw(&bare[2]))
	require.True(t, k.Idle())
}

func TestATryDoesNotWaitForAThread(t *testing.T) {
	k := mailbox.New(gatewayRules(mailbox.Bound{}), &gateway{})
	first, try := mailbox.Request{Op: peek}, mailbox.Request{Op: peek, Try: true}
	k.ArriveAwaitingThread(&first)
	k.ArriveAwaitingThread(&try)
	k.NoThreadToAssign()
	r, err := k.Next()
	require.Same(t, &try, r)
	require.EqualError(t, err, "peek would wait: there is no thread for it")
	r, _ = k.Next()
	require.Nil(t, r)
	require.True(t, first.Waits())

	// Nor behind somebody who does, and could start.
	k.AssignThread(&first)
	no := func(*mailbox.Request) bool { return false }
	_, err = k.NextFor(no)
	require.ErrorIs(t, err, mailbox.ErrNoThread)
	behind, barred := mailbox.Request{Op: peek, Try: true}, mailbox.Request{Op: alter, Try: true}
	k.Begin(peek)
	k.Arrive(&behind)
	k.Arrive(&barred)
	r, err = k.NextFor(no)
	require.ErrorIs(t, err, mailbox.ErrNoThread)
	require.Same(t, &first, r)
	require.True(t, k.NoThread())
	r, err = k.NextFor(no)
	require.Same(t, &behind, r)
	require.EqualError(t, err, "peek would wait: there is no thread for it")
	require.True(t, barred.Waits(), "it waits for what runs")
	_, err = k.NextFor(no)
	require.ErrorIs(t, err, mailbox.ErrNoThread)
	require.False(t, k.NoThread())
}

// Requests come with and without threads, get some, start, end, are withdrawn and turned away,
// while somebody looks on: each has one end, bounds are kept whenever the scheduler rests, nobody
// starts without a thread, and threads are given in the order of arrival.
func TestRequestsWithoutThreadsAreAccountedFor(t *testing.T) {
	for _, b := range []mailbox.Bound{{}, {Max: 3, Overflow: mailbox.Refuse}, {Max: 2, Overflow: mailbox.DropOldest}, {Max: 2, Overflow: mailbox.Wait}, {Overflow: mailbox.Wait}} {
		for seed := range uint64(200) {
			r := rand.New(rand.NewPCG(seed, uint64(b.Overflow)))
			g := &gateway{}
			k := mailbox.New(gatewayRules(b), g)
			has, ended := map[*mailbox.Request]bool{}, map[*mailbox.Request]bool{}
			var all, running []*mailbox.Request
			last := uint64(0) // arrival of who had the last thread
			end := func(q *mailbox.Request) {
				require.False(t, ended[q])
				require.True(t, q.Ended())
				ended[q] = true
			}
			settle := func() {
				for {
					q, err := k.Next()
					if q == nil {
						break
					}
					if err != nil {
						var full *mailbox.FullError
						var refused *mailbox.RefusedError
						require.True(t, errors.As(err, &full) || errors.As(err, &refused), err)
						end(q)
						continue
					}
					require.True(t, has[q], "it has no thread")
					running = append(running, q)
				}
				if b.Overflow != mailbox.Unbounded {
					waiting := 0
					for _, q := range all {
						if q.Waits() && q.State() != mailbox.StateOverflow && !q.Try {
							waiting++
						}
					}
					require.LessOrEqual(t, waiting, b.Max)
				}
			}
			for range 60 {
				switch n := r.IntN(12); {
				case n < 4:
					q := &mailbox.Request{Op: r.IntN(3), Patient: r.IntN(3) > 0, Try: r.IntN(6) == 0}
					all = append(all, q)
					if r.IntN(4) == 0 {
						has[q] = true
						k.Arrive(q)
					} else {
						k.ArriveAwaitingThread(q)
						if r.IntN(2) == 0 {
							k.NoThreadToAssign()
						}
					}
				case n < 7:
					if q := k.AwaitingThread(); q != nil {
						require.Greater(t, q.Arrival(), last)
						last, has[q] = q.Arrival(), true
						k.AssignThread(q)
					}
				case n == 7 && len(all) > 0:
					q := all[r.IntN(len(all))]
					if k.Withdraw(q) {
						end(q)
					}
				case n == 8:
					seen := map[*mailbox.Request]bool{}
					c := k.Inspect()
					for more := true; more; {
						more = c.Next(1, func(q *mailbox.Request, _ int) {
							require.False(t, seen[q])
							seen[q] = true
							require.NotEmpty(t, k.Why(q).String())
						})
						if q := k.AwaitingThread(); q != nil && q.State() == mailbox.StateAwaitingThread && r.IntN(3) == 0 {
							require.Greater(t, q.Arrival(), last)
							last, has[q] = q.Arrival(), true
							k.AssignThread(q)
						}
					}
					c.Close()
					for _, q := range all {
						if q.Waits() {
							require.True(t, seen[q])
						}
					}
				default:
					if len(running) > 0 {
						i := r.IntN(len(running))
						q := running[i]
						running = append(running[:i], running[i+1:]...)
						if q.Op == alter {
							g.open = r.IntN(2) == 0
						}
						k.Complete(q)
						end(q)
					}
				}
				settle()
			}
			if r.IntN(2) == 0 {
				stopped := errors.New("stopped")
				k.Close(stopped)
				for q, err := k.Next(); q != nil; q, err = k.Next() {
					require.ErrorIs(t, err, stopped)
					end(q)
				}
			} else {
				for q := k.AwaitingThread(); q != nil || len(running) > 0; q = k.AwaitingThread() {
					if q != nil {
						has[q] = true
						k.AssignThread(q)
					}
					settle()
					for _, q := range running {
						g.open = true
						k.Complete(q)
						end(q)
					}
					running = running[:0]
					settle()
				}
				for _, q := range all { // whose guard nobody has opened
					if k.Withdraw(q) {
						end(q)
					}
				}
			}
			for _, q := range running {
				k.Complete(q)
				end(q)
			}
			require.True(t, k.Idle())
			require.Len(t, ended, len(all))
		}
	}
}
