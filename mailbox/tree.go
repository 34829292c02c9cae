package mailbox

// tree holds requests, or the lines of a family, in the order of consideration:
// a treap, so that joining and leaving cost the logarithm of how many wait. It
// allocates nothing: the nodes are parts of what they order.
//
// Beyond the order it knows which nodes' guards are false. Each node carries the
// stamp of its last answer, if that was no, and the least of the stamps below it;
// so the first one that is not known to be closed is found in a logarithm of
// steps, and a change of state makes all answers old at no cost.
type tree struct{ root *node }

// node is a place in a tree.
type node struct {
	r    *Request // the request, or the first one of the line
	line *line    // nil for a request

	left, right, up *node
	weight          uint32 // of the heap: the root has the greatest
	size            int32  // of the subtree
	placed          bool   // in a tree

	no     uint64   // the stamp of its guard's answer, if that was no; else 0
	allNo  uint64   // the least no of the subtree
	eldest *Request // the first to have arrived in the subtree
}

// insert puts n in its place. If the order fails, nothing has changed.
func (t *tree) insert(n *node, before func(a, b *Request) (bool, error)) error {
	var up *node
	left := false
	for at := t.root; at != nil; {
		first, err := before(n.r, at.r)
		if err != nil {
			return err
		}
		if up, left = at, first; first {
			at = at.left
		} else {
			at = at.right
		}
	}
	n.left, n.right, n.up, n.placed = nil, nil, up, true
	n.weight = scatter(n.r.seq)
	switch {
	case up == nil:
		t.root = n
	case left:
		up.left = n
	default:
		up.right = n
	}
	n.sum()
	for n.up != nil && n.up.weight < n.weight {
		t.rotate(n)
	}
	for up := n.up; up != nil; up = up.up {
		up.sum()
	}
	return nil
}

// remove takes n out.
func (t *tree) remove(n *node) {
	for n.left != nil || n.right != nil {
		if n.right == nil || n.left != nil && n.left.weight > n.right.weight {
			t.rotate(n.left)
		} else {
			t.rotate(n.right)
		}
	}
	up := n.up
	t.replace(n, nil)
	for ; up != nil; up = up.up {
		up.sum()
	}
	n.up, n.placed, n.eldest = nil, false, nil
}

// rotate lifts n above its parent.
func (t *tree) rotate(n *node) {
	up := n.up
	t.replace(up, n)
	if up.left == n {
		if up.left = n.right; n.right != nil {
			n.right.up = up
		}
		n.right = up
	} else {
		if up.right = n.left; n.left != nil {
			n.left.up = up
		}
		n.left = up
	}
	up.up = n
	up.sum()
	n.sum()
}

// replace puts n, which may be nil, where old is in its parent.
func (t *tree) replace(old, n *node) {
	up := old.up
	switch {
	case up == nil:
		t.root = n
	case up.left == old:
		up.left = n
	default:
		up.right = n
	}
	if n != nil {
		n.up = up
	}
}

// sum brings up to date what n knows of its subtree.
func (n *node) sum() {
	n.size, n.allNo, n.eldest = 1, n.no, n.r
	for _, c := range [...]*node{n.left, n.right} {
		if c != nil {
			n.size += c.size
			n.allNo = min(n.allNo, c.allNo)
			if c.eldest.seq < n.eldest.seq {
				n.eldest = c.eldest
			}
		}
	}
}

// note records the stamp of n's guard's answer, if that was no; else 0.
func (n *node) note(no uint64) {
	for n.no = no; n != nil; n = n.up {
		if was := n.allNo; !n.placed || was == n.least() {
			return
		}
	}
}

// least recomputes allNo.
func (n *node) least() uint64 {
	n.allNo = n.no
	if n.left != nil {
		n.allNo = min(n.allNo, n.left.allNo)
	}
	if n.right != nil {
		n.allNo = min(n.allNo, n.right.allNo)
	}
	return n.allNo
}

// first returns the first node, or nil.
func (t *tree) first() *node {
	n := t.root
	for n != nil && n.left != nil {
		n = n.left
	}
	return n
}

// firstNot returns the first node whose guard has not said no since the stamp
// fresh, or nil.
func (t *tree) firstNot(fresh uint64) *node {
	n := t.root
	if n == nil || n.allNo >= fresh {
		return nil
	}
	for {
		switch {
		case n.left != nil && n.left.allNo < fresh:
			n = n.left
		case n.no < fresh:
			return n
		default:
			n = n.right // where one must be
		}
	}
}

// next returns the node after n, or nil.
func (n *node) next() *node {
	if n.right != nil {
		for n = n.right; n.left != nil; n = n.left {
		}
		return n
	}
	for ; n.up != nil; n = n.up {
		if n.up.left == n {
			return n.up
		}
	}
	return nil
}

// position counts the nodes up to n, itself included.
func (n *node) position() int {
	p := 1
	if n.left != nil {
		p += int(n.left.size)
	}
	for ; n.up != nil; n = n.up {
		if n.up.right == n {
			p++
			if l := n.up.left; l != nil {
				p += int(l.size)
			}
		}
	}
	return p
}

// scatter makes a number that looks random of one that does not, so that the
// scheduler does the same whenever it is told the same.
func scatter(x uint64) uint32 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return uint32(x >> 32)
}
