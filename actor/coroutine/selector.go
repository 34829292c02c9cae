package coroutine

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/sluice-go/sluice/internal/poll"
)

// Selector does all reads of its connections on one thread, and all writes on another, while the
// coroutines that want them wait without a worker: the text's NioSelector.
//
//	coroutine ── Read ──► asked for ──► armed ──ready──► the reading thread reads ──► the coroutine goes on
//	                         ▲                                  │
//	                         └────────── there is nothing ◄─────┘            (and the same for Write)
//
// In Go a goroutine for each connection, which reads by net.Conn itself, is simpler, and an echo
// takes it half the time: see docs/performance.md. A Selector is for connections whose coroutines
// share a few workers, and for programs that want all reads in one thread.
//
// A Selector is independent of its scheduler's end: close both.
type Selector struct {
	s *Scheduler
	// reads and writes have the descriptors of the two threads.
	reads, writes *poll.Set
	threads       sync.WaitGroup

	mu     sync.Mutex
	open   map[*Connection]bool
	closed bool
}

// NewSelector makes a selector for coroutines of the scheduler, and starts its two threads. It
// fails with *activeobject.ArgumentError if the scheduler is nil, or with an error of the system,
// as when there are no descriptors left.
func NewSelector(s *Scheduler) (*Selector, error) {
	if s == nil {
		return nil, wrong("NewSelector", "s", "is nil")
	}
	reads, err := poll.New()
	if err != nil {
		return nil, err
	}
	writes, err := poll.New()
	if err != nil {
		return nil, errors.Join(err, reads.Close())
	}
	n := &Selector{s: s, reads: reads, writes: writes, open: map[*Connection]bool{}}
	n.threads.Go(func() { n.run(reads) })
	n.threads.Go(func() { n.run(writes) })
	return n, nil
}

// run is one of the two threads.
func (n *Selector) run(set *poll.Set) {
	events := make([]poll.Event, 128)
	for {
		k, err := set.Wait(events, time.Duration(-1))
		for i := range k {
			events[i].Descriptor.Owner.(*half).perform()
			events[i] = poll.Event{}
		}
		if err != nil {
			n.shut(err)
			return
		}
	}
}

// Conn is what a Selector takes: *net.TCPConn and *net.UnixConn, for example.
type Conn interface {
	net.Conn
	syscall.Conn
}

// Add takes over a connection: from now on the program reads, writes and closes it by the
// Connection that Add returns. It fails with net.ErrClosed if the selector or the connection is
// closed, with *activeobject.ArgumentError if the connection is nil, or with an error of the
// system; then the connection stays as it was.
func (n *Selector) Add(conn Conn) (*Connection, error) {
	if conn == nil {
		return nil, wrong("Add", "conn", "is nil")
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &Connection{n: n, conn: conn, raw: raw}
	c.read.init(c, "Read", poll.Read, poll.ReadFD)
	c.write.init(c, "Write", poll.Write, poll.WriteFD)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, net.ErrClosed
	}
	if failed := raw.Control(func(fd uintptr) { err = c.register(fd) }); failed != nil {
		err = net.ErrClosed
	}
	if err != nil {
		return nil, err
	}
	n.open[c] = true
	return c, nil
}

// Close closes all connections, whose coroutines are told by net.ErrClosed, and waits until the two
// threads have ended. A second Close does nothing.
func (n *Selector) Close() error {
	n.shut(net.ErrClosed)
	err := errors.Join(n.reads.Close(), n.writes.Close())
	n.threads.Wait()
	return err
}

// shut closes all connections, with the error that their coroutines are told.
func (n *Selector) shut(err error) {
	if errors.Is(err, poll.ErrClosed) {
		err = net.ErrClosed
	}
	n.mu.Lock()
	n.closed = true
	open := n.open
	n.open = nil
	n.mu.Unlock()
	for c := range open {
		_ = c.close(err)
	}
}

// Connection is a connection of a Selector.
type Connection struct {
	n           *Selector
	conn        Conn
	raw         syscall.RawConn
	read, write half
}

// half is one direction of a connection. Its descriptor is armed while there is something to do.
//
// Of what is asked for, the thread does as much as it can under mu, which it holds during a read or
// write that does not block. So when a coroutine has stopped waiting, and has taken its buffer back
// under mu, the thread does not use that any more.
type half struct {
	c          *Connection
	call       string
	interest   poll.Ready
	do         func(fd uintptr, p []byte) (int, error)
	descriptor *poll.Descriptor // set before there is a Connection to use

	free *Blocker // one coroutine at a time asks for something
	done *Blocker // and waits until it has been done

	mu     sync.Mutex
	state  progress
	buffer []byte // what is left of it
	n      int    // bytes that have been read or written
	err    error
	over   error // the connection is closed
}

// progress is how far a half is with what it has been asked for.
type progress uint8

const (
	unasked progress = iota
	asked
	finished
)

func (h *half) init(c *Connection, call string, interest poll.Ready, do func(uintptr, []byte) (int, error)) {
	h.c, h.call, h.interest, h.do = c, call, interest, do
	h.free = &Blocker{s: c.n.s, condition: func() bool { return h.progress() != unasked }}
	h.done = &Blocker{s: c.n.s, condition: func() bool { return h.progress() != finished }}
}

func (h *half) progress() progress {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state
}

// register makes the connection's descriptor one of both threads.
func (c *Connection) register(fd uintptr) (err error) {
	if c.read.descriptor, err = c.n.reads.Add(fd, &c.read, 0); err != nil {
		return err
	}
	if c.write.descriptor, err = c.n.writes.Add(fd, &c.write, 0); err != nil {
		return errors.Join(err, c.read.descriptor.Remove())
	}
	return nil
}

// Conn returns the connection that was given to Add, for its addresses and options.
func (c *Connection) Conn() Conn { return c.conn }

// Read has the coroutine wait until there is something to read, and returns how many bytes of p the
// reading thread has filled; or io.EOF at the end, net.ErrClosed if the connection is closed, or an
// error of the system. If the wait fails (see Blocker.WaitUntilNotBlocked), nothing has been read.
// If several coroutines read at the same time, they do so in turn.
func (c *Connection) Read(co *Coroutine, p []byte) (int, error) { return c.read.ask(co, p) }

// Write has the coroutine wait until the writing thread has written all of p. If it fails, it
// returns how many bytes have been written: with net.ErrClosed if the connection is closed, an
// error of the system, or what has ended the wait. If several coroutines write at the same time,
// they do so in turn.
func (c *Connection) Write(co *Coroutine, p []byte) (int, error) { return c.write.ask(co, p) }

// ask has the thread do what the half is for, and the coroutine wait meanwhile.
func (h *half) ask(co *Coroutine, p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err = h.free.until(co, h.call, func() bool { return h.begin(p) }); err != nil {
		return 0, err
	}
	h.arm()
	waited := h.done.until(co, h.call, func() bool { return h.progress() == finished })
	h.mu.Lock()
	if n, err = h.n, h.err; h.state != finished {
		err = waited // what was written until now has been
	}
	h.state, h.buffer, h.n, h.err = unasked, nil, 0, nil
	h.mu.Unlock()
	h.free.Unblocked()
	return n, err
}

// begin notes what is asked for, unless something else is.
func (h *half) begin(p []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != unasked {
		return false
	}
	h.state, h.buffer = asked, p
	if h.over != nil {
		h.state, h.err = finished, h.over
	}
	return true
}

// arm has the thread see to what is asked for when the descriptor is ready.
func (h *half) arm() {
	var err error
	if failed := h.c.raw.Control(func(uintptr) { err = h.descriptor.Arm(h.interest) }); failed != nil || errors.Is(err, poll.ErrRemoved) || errors.Is(err, poll.ErrClosed) {
		err = net.ErrClosed
	}
	if err != nil {
		h.finish(err)
	}
}

// finish ends what is asked for with an error, if there is anything.
func (h *half) finish(err error) {
	h.mu.Lock()
	if h.state == asked {
		h.state, h.err = finished, err
	}
	h.mu.Unlock()
	h.done.Unblocked()
}

// perform does what is asked for, as far as it can be done without waiting. Only the thread of the
// half calls it.
func (h *half) perform() {
	h.mu.Lock()
	if h.state != asked { // the coroutine has stopped waiting
		h.mu.Unlock()
		return
	}
	var n int
	var err error
	if failed := h.c.raw.Control(func(fd uintptr) { n, err = h.do(fd, h.buffer) }); failed != nil {
		err = net.ErrClosed
	}
	h.n += n
	h.buffer = h.buffer[n:]
	again := errors.Is(err, poll.ErrWouldBlock)
	if !again {
		h.state, h.err = finished, err
	}
	h.mu.Unlock()
	if again {
		h.arm() // if nothing is asked for any more, an event comes for nothing
	} else {
		h.done.Unblocked()
	}
}

// Close closes the connection. Coroutines that wait for it are told by net.ErrClosed. It may be
// called by any goroutine, and fails with net.ErrClosed the second time.
func (c *Connection) Close() error {
	c.n.mu.Lock()
	open := c.n.open[c]
	delete(c.n.open, c)
	c.n.mu.Unlock()
	if !open {
		return net.ErrClosed
	}
	return c.close(net.ErrClosed)
}

// close is Close of a connection that is not among the open ones any more.
func (c *Connection) close(err error) error {
	for _, h := range []*half{&c.read, &c.write} {
		h.mu.Lock()
		h.over = err
		h.mu.Unlock()
		if c.raw.Control(func(uintptr) { _ = h.descriptor.Remove() }) != nil {
			h.descriptor.Forget() // the connection was closed by other code
		}
		h.finish(err)
	}
	return c.conn.Close()
}
