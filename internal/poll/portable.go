//go:build unix || windows

package poll

import (
	"errors"
	"sync"
	"time"
)

// portable is a system over a table of descriptors that is given to the operating system with each
// wait.
//
// No event is lost. The table that a wait is given is made under mu from what is armed then. A
// descriptor that is armed later, or armed for something else, interrupts the wait under way, if it
// is in the system or about to be; then a new table is made. The interrupt is a byte in a pipe, or
// a datagram, that the table includes, and that is taken out under mu when waiting is false: so one
// that has been sent is seen by the wait that it is for, and by no other.
type portable struct {
	signal signal

	mu          sync.Mutex
	armed       []*Descriptor // in no order; each knows its place
	waiting     bool          // a table is in the system, or about to be
	interrupted bool          // the signal has been sent
	woken       bool
	closed      bool
}

// entry is a descriptor of a table: what it is to be ready for, and what it is.
type entry struct {
	fd   uintptr
	want Ready
	is   Ready
}

// signal is a descriptor that is ready for reading between send and clear.
type signal interface {
	fd() uintptr
	send()
	clear()
	close() error
}

// IsReady reports whether a descriptor is ready now for anything in r. It needs no set.
func IsReady(fd uintptr, r Ready) bool {
	table := []entry{{fd: fd, want: r}}
	n, err := wait(table, 0)
	return err == nil && n > 0
}

func newPortable() (system, error) {
	s, err := newSignal()
	if err != nil {
		return nil, err
	}
	return &portable{signal: s}, nil
}

func (p *portable) add(d *Descriptor, r Ready) error {
	if err := pollable(d.fd); err != nil {
		return err
	}
	if d.index = -1; r != 0 {
		return p.arm(d, r)
	}
	return nil
}

func (p *portable) arm(d *Descriptor, r Ready) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.armed = r; d.index < 0 {
		d.index = len(p.armed)
		p.armed = append(p.armed, d)
	}
	p.interrupt()
	return nil
}

func (p *portable) armEdge(*Descriptor) (bool, error) { return false, nil }

func (p *portable) remove(d *Descriptor) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.index >= 0 {
		p.disarm(d)
		p.interrupt() // or else the descriptor might be closed while it is in the table
	}
	return nil
}

func (p *portable) forget(d *Descriptor) error { return p.remove(d) }

// disarm takes a descriptor out of the table. The caller holds mu.
func (p *portable) disarm(d *Descriptor) {
	last := p.armed[len(p.armed)-1]
	p.armed[d.index], last.index = last, d.index
	p.armed[len(p.armed)-1] = nil
	p.armed = p.armed[:len(p.armed)-1]
	d.index = -1
}

// interrupt has the wait under way make a new table. The caller holds mu.
func (p *portable) interrupt() {
	if p.waiting && !p.interrupted {
		p.interrupted = true
		p.signal.send()
	}
}

func (p *portable) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.woken = true
	p.interrupt()
}

func (p *portable) wait(all []found, timeout time.Duration) (n int, err error) {
	end := time.Now().Add(timeout)
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return 0, ErrClosed
		}
		table, armed := make([]entry, 1, len(p.armed)+1), make([]*Descriptor, 1, len(p.armed)+1)
		table[0] = entry{fd: p.signal.fd(), want: Read}
		for _, d := range p.armed {
			table, armed = append(table, entry{fd: d.fd, want: d.armed}), append(armed, d)
		}
		left := timeout
		if timeout > 0 {
			left = max(time.Until(end), 0)
		}
		if p.woken {
			left = 0
		}
		p.waiting = true
		p.mu.Unlock()

		some, err := wait(table, left)

		p.mu.Lock()
		p.waiting = false
		if p.interrupted {
			p.interrupted = false
			p.signal.clear()
		}
		for i := 1; i < len(table) && some > 0 && n < len(all); i++ {
			e, d := &table[i], armed[i]
			// What has been armed anew meanwhile is looked at by the next wait.
			if e.is != 0 && d.index >= 0 && d.armed == e.want {
				all[n] = found{d.token, e.is}
				n++
				p.disarm(d)
			}
		}
		if p.closed {
			err = errors.Join(err, p.signal.close())
		}
		over := n > 0 || p.closed || err != nil || p.woken || timeout >= 0 && time.Now().Compare(end) >= 0
		if over {
			p.woken = false
		}
		p.mu.Unlock()
		if over {
			return n, err
		}
	}
}

// close leaves the signal open for a wait that is under way, which closes it.
func (p *portable) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed = true; p.waiting {
		p.interrupt()
		return nil
	}
	return p.signal.close()
}
