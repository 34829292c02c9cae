package main

import (
	"fmt"
	"sync/atomic"
)

// presence counts who is in: readers, and writers by another unit. Of two that must not
// be in at the same time the second finds the first.
type presence struct{ sum atomic.Int64 }

const (
	reader = 1
	writer = 1 << 32
)

func (p *presence) enter(who int64) error {
	if sum := p.sum.Add(who); sum > writer {
		return fmt.Errorf("%d writers and %d readers are in", sum/writer, sum%writer)
	}
	return nil
}

func (p *presence) leave(who int64) { p.sum.Add(-who) }
