package object

import "math/rand/v2"

// draw is how a caller decides what to do next: by chance, but every run and every
// model by the same.
type draw struct {
	*rand.Rand
	setting Setting
}

func newDraw(s Setting, caller int) draw {
	return draw{rand.New(rand.NewPCG(1, uint64(caller))), s}
}

// op returns the number of an operation, each as often as its share says.
func (d *draw) op() int {
	x := d.Float64()
	last := 0
	for i, share := range d.setting.Shares {
		if share == 0 {
			continue
		}
		if last = i; x < share {
			break
		}
		x -= share
	}
	return last
}

// object returns the number of an object.
func (d *draw) object() int {
	if d.setting.Objects == 1 {
		return 0
	}
	return d.IntN(d.setting.Objects)
}

// key returns a key.
func (d *draw) key() int {
	if d.setting.Keys == 1 {
		return 0
	}
	return d.IntN(d.setting.Keys)
}

// step returns a call of an operation.
func (d *draw) step(object, op int, key int, value int64) Step {
	return Step{Object: object, Op: op, Request: Request{Key: key, Value: value, Work: d.setting.Work[op]}}
}
