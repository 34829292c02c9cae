package serial

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// parse reads a history: one transaction a line, "1 committed 3-5: ax1 rx[1 2]", where the times can be left out.
func parse(t *testing.T, text string) []Txn {
	var history []Txn
	for line := range strings.Lines(text) {
		head, ops, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		var txn Txn
		var status string
		n, err := fmt.Sscanf(head, "%d %s %d-%d", &txn.ID, &status, &txn.Start, &txn.End)
		require.GreaterOrEqual(t, n, 2, "%s: %v", line, err)
		txn.Status = map[string]Status{"committed": Committed, "aborted": Aborted, "unknown": Unknown}[status]
		for ops = strings.TrimSpace(ops); ops != ""; ops = strings.TrimSpace(ops) {
			kind, key := ops[0], ops[1:2]
			if kind == 'a' {
				var value int
				_, err := fmt.Sscan(ops[2:], &value)
				require.NoError(t, err)
				txn.Ops = append(txn.Ops, Append(key, value))
				_, ops, _ = strings.Cut(ops, " ")
				continue
			}
			inside, rest, _ := strings.Cut(ops[3:], "]")
			list := []int{}
			for _, field := range strings.Fields(inside) {
				var value int
				_, err := fmt.Sscan(field, &value)
				require.NoError(t, err)
				list = append(list, value)
			}
			txn.Ops, ops = append(txn.Ops, Read(key, list)), rest
		}
		history = append(history, txn)
	}
	return history
}

// Histories that are known to be right.
func TestNothingIsFoundInSerializableHistories(t *testing.T) {
	for name, history := range map[string]string{
		"empty": ``,
		"one after the other": `
			1 committed 1-2: ax1 ay1
			2 committed 3-4: rx[1] ax2 rx[1 2]
			3 committed 5-6: rx[1 2] ry[1]`,
		"recorded in another order": `
			1 committed: rx[1 2] ry[1]
			2 committed: rx[1] ax2 rx[1 2]
			3 committed: ax1 ay1`,
		"H_serial with versions in another order than time, all concurrent (Adya)": `
			1 committed 1-9: ax1 ay1
			2 committed 2-8: ax2 ay2
			3 committed 3-7: rx[2 1] ry[2 1]`,
		"an aborted transaction without a trace": `
			1 committed: ax1
			2 aborted: rx[1] ax2 ry[7]
			3 committed: rx[1] ax3
			4 committed: rx[1 3]`,
		"an unknown transaction that has committed": `
			1 unknown 1-2: rx[] ax1 ay1
			2 committed 3-4: rx[1] ry[1]`,
		"an unknown transaction that has not committed": `
			1 unknown 1-2: rx[9] ax1 ay1
			2 committed 3-4: rx[] ry[]`,
		"an unknown transaction that committed after it returned": `
			1 unknown 1-2: ax1
			2 committed 3-4: rx[]
			3 committed 5-6: rx[1]`,
		"a chain of unknown transactions": `
			1 unknown: ax1
			2 unknown: rx[1] ay2
			3 committed: ry[2]`,
		"appends that are never read": `
			1 committed 1-9: ax1
			2 committed 1-2: rx[] ax2
			3 committed 1-5: rx[2 3] ax4
			4 committed 3-4: ax3`,
		"its own appends before those that came first": `
			1 committed: ax1 rx[2 1]
			2 committed: ax2`,
		"touching times are not ordered": `
			1 committed 1-3: rx[2]
			2 committed 3-4: ax2`,
		"several appends of one transaction": `
			1 committed: ax1 ax2 rx[1 2] ax3
			2 committed: rx[1 2 3] rx[1 2 3]`,
	} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, Check(parse(t, history)))
		})
	}
}

// Histories that are known to be wrong, and all that is found in them.
func TestEachAnomalyIsFoundAndExplained(t *testing.T) {
	for _, test := range []struct{ name, history, found string }{
		{"G0: H_wcycle (Adya)", `
			1 committed: ax1 ay1
			2 committed: ax2 ay2
			3 committed: rx[1 2] ry[2 1]`, `
			G0: T1 appended 1 to x, T2 appended 2 after it: T1 before T2; T2 appended 2 to y, T1 appended 1 after it: T2 before T1`},
		{"G0 of appends between those of another transaction", `
			1 committed: ax1 ax3
			2 committed: ax2
			3 committed: rx[1 2 3]`, `
			G0: T1 appended 1 to x, T2 appended 2 after it: T1 before T2; T2 appended 2 to x, T1 appended 3 after it: T2 before T1`},
		{"G1a: H1a (Adya)", `
			1 aborted: ax1
			2 committed: rx[1]`, `
			G1a: T1 appended 1 to x and aborted, T2 read x=[1]`},
		{"G1a in the middle of a list", `
			1 aborted: ax1
			2 committed: ax2
			3 committed: rx[1 2]`, `
			G1a: T1 appended 1 to x and aborted, T3 read x=[1 2]`},
		{"G1a twice: an aborted transaction is not part of cycles", `
			1 aborted: ax1 ay1
			2 committed: ax2 ay2
			3 committed: rx[1 2] ry[2 1]`, `
			G1a: T1 appended 1 to x and aborted, T3 read x=[1 2]
			G1a: T1 appended 1 to y and aborted, T3 read y=[2 1]`},
		{"G1a by an unknown transaction that has committed", `
			1 aborted: ax1
			2 unknown: rx[1] ay1
			3 committed: ry[1]`, `
			G1a: T1 appended 1 to x and aborted, T2 read x=[1]`},
		{"G1b: H1b (Adya)", `
			1 committed: ax1 ax2
			2 committed: rx[1]
			3 committed: rx[1 2]`, `
			G1b: T2 read x=[1], but T1 appended 2 to x next
			G-single: T2 read x=[1], T1 appended 2 to x: T2 before T1; T1 appended 1 to x, T2 read x=[1]: T1 before T2`},
		{"G1b of appends that are never read", `
			1 committed: ax1 ax2
			2 committed: rx[1]`, `
			G1b: T2 read x=[1], but T1 appended 2 to x next
			G-single: T2 read x=[1], T1 appended 2 to x: T2 before T1; T1 appended 1 to x, T2 read x=[1]: T1 before T2`},
		{"G1c: H1c (Adya)", `
			1 committed: ax1 ry[2]
			2 committed: ay2 rx[1]`, `
			G1c: T1 appended 1 to x, T2 read x=[1]: T1 before T2; T2 appended 2 to y, T1 read y=[2]: T2 before T1`},
		{"G1c of an append and a read", `
			1 committed: ax1 ry[2]
			2 committed: ax2 ay2
			3 committed: rx[1 2]`, `
			G1c: T2 appended 2 to y, T1 read y=[2]: T2 before T1; T1 appended 1 to x, T2 appended 2 after it: T1 before T2`},
		{"G-single: read skew (Berenson et al., A5A)", `
			1 committed: rx[] ry[2]
			2 committed: ax2 ay2
			3 committed: rx[2]`, `
			G-single: T1 read x=[], T2 appended 2 to x: T1 before T2; T2 appended 2 to y, T1 read y=[2]: T2 before T1`},
		{"G-single in the form of Elle's first example: an append that was not seen", `
			1 committed: rx[2 1] ay5 ax4
			2 committed: ax5
			3 committed: rx[2 1 5 4]
			4 committed: ax2 ax1`, `
			G-single: T1 read x=[2 1], T2 appended 5 to x: T1 before T2; T2 appended 5 to x, T1 appended 4 after it: T2 before T1`},
		{"G-single of three transactions", `
			1 committed: rx[] rz[3]
			2 committed: ax2 ay2
			3 committed: ry[2] az3
			4 committed: rx[2]`, `
			G-single: T1 read x=[], T2 appended 2 to x: T1 before T2; T2 appended 2 to y, T3 read y=[2]: T2 before T3; T3 appended 3 to z, T1 read z=[3]: T3 before T1`},
		{"G2: write skew (Berenson et al., A5B)", `
			1 committed: rx[] ry[] ax1
			2 committed: rx[] ry[] ay2`, `
			G2: T1 read y=[], T2 appended 2 to y: T1 before T2; T2 read x=[], T1 appended 1 to x: T2 before T1`},
		{"G2: the read-only transaction anomaly (Fekete, O'Neil and O'Neil)", `
			1 committed: ry[] ay20
			2 committed: rx[] ry[] ax11
			3 committed: rx[] ry[20]`, `
			G2: T2 read y=[], T1 appended 20 to y: T2 before T1; T1 appended 20 to y, T3 read y=[20]: T1 before T3; T3 read x=[], T2 appended 11 to x: T3 before T2`},
		{"lost update (Berenson et al., P4)", `
			1 committed: rx[] ax1
			2 committed: rx[] ax2
			3 committed: rx[1 2]`, `
			lost update: T1, T2 read x=[] and appended to it
			G-single: T2 read x=[], T1 appended 1 to x: T2 before T1; T1 appended 1 to x, T2 appended 2 after it: T1 before T2`},
		{"a lost update of which one append is gone", `
			1 committed: rx[] ax1
			2 committed: rx[] ax2
			3 committed: rx[2]`, `
			lost update: T1, T2 read x=[] and appended to it
			G-single: T1 read x=[], T2 appended 2 to x: T1 before T2; T2 appended 2 to x, T1 appended 1, which is not in x=[2]: T2 before T1`},
		{"lost updates that nothing read", `
			1 committed: rx[] ax1
			2 committed: rx[] ax2
			3 committed: rx[] ax3`, `
			lost update: T1, T2, T3 read x=[] and appended to it
			G2: T1 read x=[], T2 appended 2 to x: T1 before T2; T2 read x=[], T1 appended 1 to x: T2 before T1`},
		{"incompatible order", `
			1 committed: ax1
			2 committed: ax2
			3 committed: rx[1 2]
			4 committed: rx[2]`, `
			incompatible order: T4 read x=[2], but another read is x=[1 2]`},
		{"incompatible order: the longest list decides", `
			1 committed: rx[3]
			2 committed: ax1
			3 committed: ax2
			4 committed: rx[1]
			5 committed: rx[1 2]
			6 committed: ax3`, `
			incompatible order: T1 read x=[3], but another read is x=[1 2]`},
		{"incompatible order: no dependencies follow from it", `
			1 committed: ax1 ry[4]
			2 committed: ax2
			3 committed: rx[1 2]
			4 committed: rx[2] ay4`, `
			incompatible order: T4 read x=[2], but another read is x=[1 2]`},
		{"incompatible order and G1a", `
			1 aborted: ax1
			2 committed: ax2 ax3
			3 committed: rx[2 3]
			4 committed: rx[1]`, `
			G1a: T1 appended 1 to x and aborted, T4 read x=[1]
			incompatible order: T4 read x=[1], but another read is x=[2 3]`},
		{"incompatible order within a transaction", `
			1 committed: ax1 ax2
			2 committed: rx[2 1]`, `
			incompatible order: T1 appended 1 and then 2 to x, and they were read as x=[2 1]
			G1b: T2 read x=[2 1], but T1 appended 2 to x next`},
		{"duplicate append", `
			1 committed: ax1
			2 committed: ax1`, `
			duplicate append: T1 and T2 both appended 1 to x`},
		{"an append that took effect twice", `
			1 committed: ax1
			2 committed: rx[1 1]`, `
			duplicate append: T1 appended 1 to x once, and it was read twice: x=[1 1]`},
		{"internal: its own append is not seen", `
			1 committed: ax1 rx[]`, `
			internal: T1 appended [1] to x, and then read x=[]`},
		{"internal: its own append is overtaken", `
			1 committed: ax1 rx[1 2]
			2 committed: ax2`, `
			internal: T1 appended [1] to x, and then read x=[1 2]`},
		{"internal: its own append is seen too early", `
			1 committed: rx[1] ax1`, `
			internal: T1 read x=[1] with an append of its own that it had not made`},
		{"internal: the first of its own appends is seen too early", `
			1 committed: rx[1] ax1 ax2`, `
			internal: T1 read x=[1] with an append of its own that it had not made`},
		{"internal: one transaction does not lose its own update", `
			1 committed: rx[] rx[2] rx[] ax1
			2 committed: ax2`, `
			internal: T1 read x=[] before its own appends, and later [2]
			internal: T1 read x=[2] before its own appends, and later []
			G-single: T1 read x=[], T2 appended 2 to x: T1 before T2; T2 appended 2 to x, T1 read x=[2]: T2 before T1`},
		{"internal: a read that is not repeatable (Berenson et al., P2)", `
			1 committed: rx[] rx[2]
			2 committed: ax2`, `
			internal: T1 read x=[] before its own appends, and later [2]
			G-single: T1 read x=[], T2 appended 2 to x: T1 before T2; T2 appended 2 to x, T1 read x=[2]: T2 before T1`},
		{"garbage", `
			1 committed: rx[7]`, `
			garbage: T1 read x=[7], but 7 has not been appended`},
		{"real time: a stale read", `
			1 committed 1-2: ax1
			2 committed 3-4: rx[]`, `
			real-time: T1 ended before T2 started: T1 before T2; T2 read x=[], T1 appended 1 to x: T2 before T1`},
		{"real time: a read of the future", `
			1 committed 1-2: rx[1]
			2 unknown 3-4: ax1`, `
			real-time: T1 ended before T2 started: T1 before T2; T2 appended 1 to x, T1 read x=[1]: T2 before T1`},
		{"real time: appends in the wrong order, with transactions between", `
			1 committed 1-2: ax1
			2 committed 3-4: ay1
			3 committed 5-6: ay2
			4 committed 7-8: ax2
			5 committed 1-9: rx[2 1]`, `
			real-time: T1 ended before T4 started: T1 before T4; T4 appended 2 to x, T1 appended 1 after it: T4 before T1`},
		{"real time: a committed append that is gone", `
			1 committed 1-2: ax1
			2 committed 3-4: ax2
			3 committed 5-6: rx[2]`, `
			real-time: T1 ended before T2 started: T1 before T2; T2 appended 2 to x, T1 appended 1, which is not in x=[2]: T2 before T1`},
		{"malformed", `
			1 committed 4-3: ax1
			1 committed: ax2`, `
			malformed: T1 ended at 3 before it started at 4
			malformed: two transactions have the ID 1`},
		{"one cycle for each set of transactions", `
			1 committed: ax1 ay1 rz[]
			2 committed: ax2 ay2 rz[] az2
			3 committed: rx[1 2] ry[2 1]
			4 committed: rv[] aw4
			5 committed: rw[] av5`, `
			G0: T1 appended 1 to x, T2 appended 2 after it: T1 before T2; T2 appended 2 to y, T1 appended 1 after it: T2 before T1
			G2: T4 read v=[], T5 appended 5 to v: T4 before T5; T5 read w=[], T4 appended 4 to w: T5 before T4`},
		{"long lists are cut", `
			1 committed: ax1 ax2 ax3 ax4 ax5 ax6 ax7 ax8
			2 committed: rx[1 2 3 4 5 6 7 8 9]`, `
			garbage: T2 read x=[… 5 6 7 8 9], but 9 has not been appended`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var found, expected []string
			for _, a := range Check(parse(t, test.history)) {
				found = append(found, a.String())
			}
			for line := range strings.Lines(test.found) {
				if line = strings.TrimSpace(line); line != "" {
					expected = append(expected, line)
				}
			}
			require.Equal(t, strings.Join(expected, "\n"), strings.Join(found, "\n"))
		})
	}
}

// serializable is the naive checker: whether the transactions that committed, and some of those that are unknown,
// explain all their reads in some order that agrees with real time.
func serializable(history []Txn) bool {
	var decide func(i int, in []Txn) bool
	decide = func(i int, in []Txn) bool {
		if i == len(history) {
			return ordered(in, map[string][]int{})
		}
		switch txn := history[i]; txn.Status {
		case Committed:
			return decide(i+1, append(in, txn))
		case Aborted:
			return decide(i+1, in)
		default:
			txn.End = 0 // it may commit later
			return decide(i+1, in) || decide(i+1, append(in, txn))
		}
	}
	return decide(0, nil)
}

// ordered reports whether some order of the transactions explains their reads, from the state on.
func ordered(rest []Txn, state map[string][]int) bool {
	if len(rest) == 0 {
		return true
	}
next:
	for i, txn := range rest {
		for _, other := range rest {
			if other.End != 0 && txn.Start != 0 && other.End < txn.Start {
				continue next
			}
		}
		after := map[string][]int{}
		for key, list := range state {
			after[key] = slices.Clone(list)
		}
		for _, op := range txn.Ops {
			if !op.read {
				after[op.key] = append(after[op.key], op.value)
			} else if !slices.Equal(after[op.key], op.list) {
				continue next
			}
		}
		if ordered(slices.Delete(slices.Clone(rest), i, i+1), after) {
			return true
		}
	}
	return false
}

// drawHistory draws a history that is near to a serializable one: transactions run in some order against one state,
// or against a state that some of them do not see, and then some reads are changed.
func drawHistory(t *rapid.T) []Txn {
	n := rapid.IntRange(1, 6).Draw(t, "transactions")
	keys := rapid.SampledFrom([]string{"x", "xy", "xyz"}).Draw(t, "keys")
	timed := rapid.Bool().Draw(t, "timed")
	history := make([]Txn, n)
	states := []map[string][]int{{}} // after each transaction with effect
	values := 0
	for i := range history {
		txn := Txn{ID: i + 1, Status: Committed}
		if rapid.IntRange(0, 5).Draw(t, "outcome") == 0 {
			txn.Status = rapid.SampledFrom([]Status{Aborted, Unknown}).Draw(t, "status")
		}
		if timed {
			txn.Start = int64(rapid.IntRange(max(1, 3*i-6), 3*i+3).Draw(t, "start"))
			txn.End = txn.Start + int64(rapid.IntRange(1, 6).Draw(t, "duration"))
		}
		see := len(states) - 1
		if rapid.IntRange(0, 4).Draw(t, "stale") == 0 {
			see = rapid.IntRange(0, see).Draw(t, "version")
		}
		state, after := map[string][]int{}, map[string][]int{}
		for _, key := range strings.Split(keys, "") {
			state[key], after[key] = slices.Clone(states[see][key]), slices.Clone(states[len(states)-1][key])
		}
		for range rapid.IntRange(1, 4).Draw(t, "operations") {
			key := string(keys[rapid.IntRange(0, len(keys)-1).Draw(t, "key")])
			if rapid.Bool().Draw(t, "append") {
				values++
				txn.Ops = append(txn.Ops, Append(key, values))
				state[key], after[key] = append(state[key], values), append(after[key], values)
				continue
			}
			list := slices.Clone(state[key])
			if rapid.IntRange(0, 15).Draw(t, "wrong") == 0 {
				list = rapid.SliceOfNDistinct(rapid.IntRange(1, max(values, 1)), 0, min(values, 3), rapid.ID[int]).Draw(t, "list")
			}
			txn.Ops = append(txn.Ops, Read(key, list))
		}
		if txn.Status != Aborted && (txn.Status == Committed || rapid.Bool().Draw(t, "has committed")) {
			states = append(states, after)
		}
		history[i] = txn
	}
	return rapid.Permutation(history).Draw(t, "order")
}

func TestAnomaliesAreFoundIfAndOnlyIfNoOrderExplainsTheReads(t *testing.T) {
	verdicts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		history := drawHistory(t)
		found, right := Check(history), serializable(history)
		verdicts[right]++
		if right != (len(found) == 0) {
			t.Fatalf("serializable: %v, found: %v\n%v", right, found, history)
		}
		for i, a := range Check(history) {
			if a.String() != found[i].String() {
				t.Fatalf("a second check says %v instead of %v", a, found[i])
			}
		}
	})
	require.NotZero(t, verdicts[true])
	require.NotZero(t, verdicts[false])
}

// TestTheReportedCycleIsAShortestOne compares the cycles found in random graphs with those found by trying all.
func TestTheReportedCycleIsAShortestOne(t *testing.T) {
	lengths := map[int]int{}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 9).Draw(t, "transactions")
		c := &checker{txns: make([]Txn, n), counted: make([]bool, n)}
		c.out = make([][]edge, n)
		for i := range n {
			start := int64(rapid.IntRange(1, 20).Draw(t, "start"))
			c.txns[i] = Txn{ID: i, Status: Committed, Start: start, End: start + int64(rapid.IntRange(0, 20).Draw(t, "duration"))}
			c.counted[i] = true
		}
		kinds := rapid.SampledFrom([][]dependency{{ww}, {ww, wr}, {ww, wr, rw}, {rw}, {wr, rw}}).Draw(t, "kinds")
		for range rapid.IntRange(1, n+2).Draw(t, "edges") {
			from, to := rapid.IntRange(0, n-1).Draw(t, "from"), rapid.IntRange(0, n-1).Draw(t, "to")
			c.add(from, edge{to: to, kind: rapid.SampledFrom(kinds).Draw(t, "kind"), before: []int{0}})
		}
		direct := slices.Clone(c.out)                  // without auxiliary nodes
		later := rapid.IntRange(1, n).Draw(t, "later") // transactions from here on come after some of the others
		var targets []edge
		for i := later; i < n; i++ {
			targets = append(targets, edge{to: i, kind: pass})
		}
		precede := c.precede(targets)
		for range rapid.IntRange(0, 2).Draw(t, "preceding") {
			e := edge{kind: rapid.SampledFrom(kinds).Draw(t, "kind"), before: []int{0}}
			from := rapid.IntRange(0, later-1).Draw(t, "from")
			precede(from, e)
			for e.to = later; e.to < n; e.to++ {
				direct[from] = append(slices.Clip(direct[from]), e)
			}
		}
		c.inferRealTime()
		c.findCycles()
		for i := range n {
			direct[i] = slices.Clip(direct[i])
			for j := range n {
				if c.txns[i].End < c.txns[j].Start {
					direct[i] = append(direct[i], edge{to: j, kind: rt})
				}
			}
		}
		// distance returns the fewest edges of the kinds on a path from one transaction to another; n + 1 if there is none.
		distance := func(from, to int, kinds dependency) int {
			reached := map[int]bool{from: true}
			for length := range n {
				if reached[to] {
					return length
				}
				for at := range maps.Clone(reached) {
					for _, e := range direct[at] {
						if e.kind&kinds != 0 {
							reached[e.to] = true
						}
					}
				}
			}
			return n + 1
		}
		covered := map[int]bool{}
		for _, level := range levels {
			all := level.first | level.rest
			for _, a := range c.found {
				if a.Kind != level.kind {
					continue
				}
				best := n + 1
				for i := range n {
					for _, e := range direct[i] {
						if e.kind&level.first != 0 && distance(i, a.Txns[0], all) <= n && distance(a.Txns[0], i, all) <= n {
							best = min(best, 1+distance(e.to, i, level.rest))
						}
					}
				}
				if len(a.Txns) != best {
					t.Fatalf("%v has %d transactions, not %d", a, len(a.Txns), best)
				}
				lengths[best]++
				for _, i := range a.Txns {
					covered[i] = true
				}
			}
			for i := range n { // each cycle of this level is in a component with a reported one
				for _, e := range direct[i] {
					if e.kind&level.first == 0 || distance(e.to, i, level.rest) > n {
						continue
					}
					if !slices.ContainsFunc(slices.Collect(maps.Keys(covered)), func(j int) bool { return distance(i, j, all) <= n && distance(j, i, all) <= n }) {
						t.Fatalf("the cycle from %d to %d is not reported as %s", i, e.to, level.kind)
					}
				}
			}
		}
	})
	require.NotZero(t, lengths[2])
	require.NotZero(t, lengths[3])
}

func TestAStatusThatIsNoneIsReported(t *testing.T) {
	found := Check([]Txn{{ID: 1, Status: 7, Ops: []Op{Append("x", 1)}}})
	require.Len(t, found, 1)
	require.Equal(t, "malformed: T1 has the status 7", found[0].String())
	require.Equal(t, []int{1}, found[0].Txns)
}
