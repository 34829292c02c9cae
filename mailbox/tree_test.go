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
		var tree places
		var sorted, out []*placeNode
		fails, failed, seq := -1, false, uint64(0) // fails is the comparison that fails, if it is not negative
		errOrder := errors.New("no order")
		before := func(a, b *place) (bool, error) {
			if fails--; fails == -1 {
				failed = true
				return false, errOrder
			}
			return a.r.Rank < b.r.Rank || a.r.Rank == b.r.Rank && a.r.seq < b.r.seq, nil
		}
		drawNode := func() *placeNode { return sorted[rapid.IntRange(0, len(sorted)-1).Draw(t, "node")] }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case what < 3 || len(sorted) == 0:
				seq++
				n := &placeNode{}
				if len(out) > 0 { // nodes are used again
					n, out = out[0], out[1:]
				}
				n.v.r, n.v.no = &Request{seq: seq, Rank: rapid.Int64Range(0, 5).Draw(t, "rank")}, rapid.Uint64Range(0, 4).Draw(t, "no")
				failed, fails = false, rapid.IntRange(-1, 4).Draw(t, "fails")
				err := tree.insert(n, scatter(seq), before)
				if failed != (err == errOrder) || failed == n.placed {
					t.Fatalf("insert: %v, placed %v", err, n.placed)
				}
				if fails = -1; err != nil {
					out = append(out, n)
					break
				}
				i, _ := slices.BinarySearchFunc(sorted, n, func(a, b *placeNode) int {
					if first, _ := before(&a.v, &b.v); first {
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
				sorted = slices.DeleteFunc(sorted, func(o *placeNode) bool { return o == n })
				out = append(out, n)
			default:
				noteNo(drawNode(), rapid.Uint64Range(0, 6).Draw(t, "answer"))
			}
			compareTree(t, &tree, sorted)
		}
	})
}

func compareTree(t *rapid.T, tree *places, sorted []*placeNode) {
	var walked []*placeNode
	for n := tree.first(); n != nil; n = n.next() {
		walked = append(walked, n)
	}
	if !slices.Equal(walked, sorted) {
		t.Fatalf("walked %d nodes, want %d, or another order", len(walked), len(sorted))
	}
	for i, n := range sorted {
		if position(n) != i+1 {
			t.Fatalf("node %d is at position %d", i+1, position(n))
		}
		if n.up != nil && n.up.weight < n.weight {
			t.Fatalf("no heap")
		}
	}
	for fresh := range uint64(8) {
		var want *placeNode
		if i := slices.IndexFunc(sorted, func(n *placeNode) bool { return n.v.no < fresh }); i >= 0 {
			want = sorted[i]
		}
		if got := firstNot(tree, fresh); got != want {
			t.Fatalf("firstNot(%d) is %v, want %v", fresh, got, want)
		}
	}
	if (tree.root == nil) != (len(sorted) == 0) {
		t.Fatalf("root %v of %d", tree.root, len(sorted))
	}
	if tree.root != nil {
		eldest := slices.MinFunc(sorted, func(a, b *placeNode) int { return int(a.v.r.seq) - int(b.v.r.seq) })
		if tree.root.v.eldest != eldest.v.r || int(tree.root.v.size) != len(sorted) {
			t.Fatalf("eldest %d, size %d; want %d, %d", tree.root.v.eldest.seq, tree.root.v.size, eldest.v.r.seq, len(sorted))
		}
	}
}
