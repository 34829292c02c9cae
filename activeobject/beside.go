package activeobject

import (
	"context"

	"github.com/sluice-go/sluice/mailbox"
)

// beside is perform for a Call at an object that fans out, if its fast path lets the request
// in: beside those that run. It reports false, and has done nothing, if not.
func (op *Operation[T, A, R]) beside(ctx context.Context, o *Object[T], arg A) (r R, err error, in bool) {
	if o.class.typ != op.species || ctx.Err() != nil || !o.box.Admit(op.index) {
		return r, nil, false
	}
	at := asking
	defer func() {
		if at != finished {
			in = true
			op.common().caught(&o.core, at, mailbox.Panicked(recover()), &err)
		}
	}()
	if op.guard != "" {
		if falsePart := op.ask(o, arg); falsePart != "" {
			at = finished
			r, err = op.queue(ctx, o, arg, falsePart, calling, nil, nil)
			return r, err, true
		}
	}
	at = running
	r, err = op.leaf(o.state, arg)
	if err != nil {
		if h, ok := err.(hopper); ok {
			at = finished
			r, err = op.onward(ctx, o, arg, mailbox.Never, h, calling, nil)
			return r, err, true
		}
	}
	at = releasing
	if !o.box.Depart(op.index) {
		op.release(ctx, o, arg, unasked, &at)
	}
	at = finished
	return r, err, true
}
