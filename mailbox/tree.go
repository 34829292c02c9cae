package mailbox

// tree keeps nodes in an order, each of which knows a sum over its subtree: a treap, so that
// insertion, removal and a search by the sums take a logarithm of steps. It allocates nothing:
// the nodes are parts of what they order.
//
// V is what a node stands for, together with the sum; see sums for the three uses.
type tree[V any, S summed[V]] struct{ root *node[V] }

// summed computes the sum over a subtree from those of its children, which may be nil.
type summed[V any] interface {
	*V
	sum(left, right *V)
}

// node is a place in a tree.
type node[V any] struct {
	v               V
	left, right, up *node[V]
	weight          uint32 // of the heap: the root has the greatest
	placed          bool   // in a tree
}

// insert puts n in its place. If the order fails, nothing has changed.
func (t *tree[V, S]) insert(n *node[V], weight uint32, before func(a, b *V) (bool, error)) error {
	var up *node[V]
	left := false
	for at := t.root; at != nil; {
		first, err := before(&n.v, &at.v)
		if err != nil {
			return err
		}
		if up, left = at, first; first {
			at = at.left
		} else {
			at = at.right
		}
	}
	n.left, n.right, n.up, n.placed, n.weight = nil, nil, up, true, weight
	switch {
	case up == nil:
		t.root = n
	case left:
		up.left = n
	default:
		up.right = n
	}
	t.sum(n)
	for n.up != nil && n.up.weight < n.weight {
		t.rotate(n)
	}
	for up := n.up; up != nil; up = up.up {
		t.sum(up)
	}
	return nil
}

// remove takes n out.
func (t *tree[V, S]) remove(n *node[V]) {
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
		t.sum(up)
	}
	n.up, n.placed = nil, false
}

// rotate lifts n above its parent.
func (t *tree[V, S]) rotate(n *node[V]) {
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
	t.sum(up)
	t.sum(n)
}

// replace puts n, which may be nil, where old is in its parent.
func (t *tree[V, S]) replace(old, n *node[V]) {
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
func (t *tree[V, S]) sum(n *node[V]) {
	var left, right *V
	if n.left != nil {
		left = &n.left.v
	}
	if n.right != nil {
		right = &n.right.v
	}
	S(&n.v).sum(left, right)
}

// first returns the first node, or nil.
func (t *tree[V, S]) first() *node[V] {
	n := t.root
	for n != nil && n.left != nil {
		n = n.left
	}
	return n
}

// next returns the node after n, or nil.
func (n *node[V]) next() *node[V] {
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

// scatter makes a number that looks random of one that does not, so that the
// scheduler does the same whenever it is told the same.
func scatter(x uint64) uint32 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return uint32(x >> 32)
}
