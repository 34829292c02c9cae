package mailbox

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A tree behaves as a sorted slice that is searched from end to end; and if the
// order fails, nothing has changed.
func TestTreeIsASortedSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tree tree
		var sorted, out []*node
		fails, failed, seq := -1, false, uint64(0) // fails is the comparison that fails, if it is not negative
		errOrder := errors.New("no order")
		before := func(a, b *Request) (bool, error) {
			if fails--; fails == -1 {
				failed = true
				return false, errOrder
			}
			return a.Rank < b.Rank || a.Rank == b.Rank && a.seq < b.seq, nil
		}
		drawNode := func() *node { return sorted[rapid.IntRange(0, len(sorted)-1).Draw(t, "node")] }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case what < 3 || len(sorted) == 0:
				seq++
				n := &node{}
				if len(out) > 0 { // nodes are used again
					n, out = out[0], out[1:]
				}
				n.r, n.no = &Request{seq: seq, Rank: rapid.Int64Range(0, 5).Draw(t, "rank")}, rapid.Uint64Range(0, 4).Draw(t, "no")
				failed, fails = false, rapid.IntRange(-1, 4).Draw(t, "fails")
				err := tree.insert(n, before)
				if failed != (err == errOrder) || failed == n.placed {
					t.Fatalf("insert: %v, placed %v", err, n.placed)
				}
				if fails = -1; err != nil {
					out = append(out, n)
					break
				}
				i, _ := slices.BinarySearchFunc(sorted, n, func(a, b *node) int {
					if first, _ := before(a.r, b.r); first {
						return -1
					}
					return 1
				})
				sorted = slices.Insert(sorted, i, n)
			case what == 3:
				n := drawNode()
				tree.remove(n)
				if n.placed || n.up != nil || n.left != nil || n.right != nil {
					t.Fatalf("a removed node is tied to others")
				}
				sorted = slices.DeleteFunc(sorted, func(o *node) bool { return o == n })
				out = append(out, n)
			default:
				drawNode().note(rapid.Uint64Range(0, 6).Draw(t, "answer"))
			}
			compareTree(t, &tree, sorted)
		}
	})
}

func compareTree(t *rapid.T, tree *tree, sorted []*node) {
	var walked []*node
	for n := tree.first(); n != nil; n = n.next() {
		walked = append(walked, n)
	}
	if !slices.Equal(walked, sorted) {
		t.Fatalf("walked %d nodes, want %d, or another order", len(walked), len(sorted))
	}
	for i, n := range sorted {
		if n.position() != i+1 {
			t.Fatalf("node %d is at position %d", i+1, n.position())
		}
		if n.up != nil && n.up.weight < n.weight {
			t.Fatalf("no heap")
		}
	}
	for fresh := range uint64(8) {
		var want *node
		if i := slices.IndexFunc(sorted, func(n *node) bool { return n.no < fresh }); i >= 0 {
			want = sorted[i]
		}
		if got := tree.firstNot(fresh); got != want {
			t.Fatalf("firstNot(%d) is %v, want %v", fresh, got, want)
		}
	}
	if (tree.root == nil) != (len(sorted) == 0) {
		t.Fatalf("root %v of %d", tree.root, len(sorted))
	}
	if tree.root != nil {
		eldest := slices.MinFunc(sorted, func(a, b *node) int { return int(a.r.seq) - int(b.r.seq) })
		if tree.root.eldest != eldest.r || int(tree.root.size) != len(sorted) {
			t.Fatalf("eldest %d, size %d; want %d, %d", tree.root.eldest.seq, tree.root.size, eldest.r.seq, len(sorted))
		}
	}
}
