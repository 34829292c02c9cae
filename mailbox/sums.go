package mailbox

import "github.com/sluice-go/sluice/guards"

// places orders requests, or the lines of a family by their first requests, and knows which
// guards are false: a node carries the stamp of its guard's last result, if that was false, and
// the least of these stamps below it. So the first that is not known to be closed is found in a
// logarithm of steps, and a change of the state makes all results old at no cost.
type places = tree[place, *place]

type placeNode = node[place]

type place struct {
	r    *Request // the request, or the first one of the line
	line *line    // of a family: the line, or that of the request, while it is a member; else nil

	no     uint64   // the stamp of the guard's result, if that was false; else 0
	allNo  uint64   // the least no of the subtree
	eldest *Request // the first to have arrived in the subtree
	size   int32    // of the subtree
}

func (p *place) sum(left, right *place) {
	p.size, p.allNo, p.eldest = 1, p.no, p.r
	if left != nil {
		p.add(left)
	}
	if right != nil {
		p.add(right)
	}
}

// add adds the sum of a child.
func (p *place) add(c *place) {
	p.size += c.size
	p.allNo = min(p.allNo, c.allNo)
	if c.eldest.seq < p.eldest.seq {
		p.eldest = c.eldest
	}
}

// noteNo records the stamp of the result of n's guard, if that was false; else 0.
func noteNo(n *placeNode, no uint64) {
	for n.v.no = no; n != nil && n.placed; n = n.up {
		least := n.v.no
		if n.left != nil {
			least = min(least, n.left.v.allNo)
		}
		if n.right != nil {
			least = min(least, n.right.v.allNo)
		}
		if n.v.allNo == least {
			return
		}
		n.v.allNo = least
	}
}

// firstNot returns the first node whose guard is not known to be false since the stamp
// fresh, or nil.
func firstNot(t *places, fresh uint64) *placeNode {
	n := t.root
	if n == nil || n.v.allNo >= fresh {
		return nil
	}
	for {
		switch {
		case n.left != nil && n.left.v.allNo < fresh:
			n = n.left
		case n.v.no < fresh:
			return n
		default:
			n = n.right // where one must be
		}
	}
}

// position counts the nodes up to n, itself included.
func position(n *placeNode) int {
	p := 1
	if n.left != nil {
		p += int(n.left.v.size)
	}
	for ; n.up != nil; n = n.up {
		if n.up.right == n {
			p++
			if l := n.up.left; l != nil {
				p += int(l.v.size)
			}
		}
	}
	return p
}

// intervals holds intervals that may overlap, in the order of their beginnings; a node knows
// the last end of its subtree. (Cormen, Leiserson, Rivest, Stein: Introduction to Algorithms, 14.3.)
type intervals = tree[interval, *interval]

type interval struct {
	guards.Extent
	last    any // the greatest end of the subtree
	compare func(a, b any) int
}

func (i *interval) sum(left, right *interval) {
	i.last = i.To
	for _, c := range [...]*interval{left, right} {
		if c != nil && i.compare(i.last, c.last) < 0 {
			i.last = c.last
		}
	}
}

// byBeginning is the order of intervals.
func byBeginning(a, b *interval) (bool, error) { return a.compare(a.From, b.From) < 0, nil }

// overlaps reports whether any of them has a point in common with e, which is not empty.
func overlaps(t *intervals, e guards.Extent) bool {
	for n := t.root; n != nil; {
		compare := n.v.compare
		switch {
		case compare(n.v.From, e.To) < 0 && compare(e.From, n.v.To) < 0:
			return true
		case n.left != nil && compare(e.From, n.left.v.last) < 0:
			// If one on the left reaches beyond e's beginning and yet does not overlap with e,
			// it begins behind e's end, and so do all on the right.
			n = n.left
		default:
			n = n.right
		}
	}
	return false
}
