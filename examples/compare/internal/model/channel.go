package model

import "sync"

// channelServer is an object on a goroutine of its own that receives its queries
// from a channel.
type channelServer struct {
	letters chan letter[chan answer]
	replies sync.Pool // of chan answer
	ended   chan struct{}
}

func newChannelServer(s serve) *channelServer {
	c := &channelServer{
		letters: make(chan letter[chan answer], 64),
		replies: sync.Pool{New: func() any { return make(chan answer, 1) }},
		ended:   make(chan struct{}),
	}
	go c.run(s)
	return c
}

func (c *channelServer) run(s serve) {
	defer close(c.ended)
	d := desk[chan answer]{serve: s, reply: func(to chan answer, a answer) { to <- a }}
	for l := range c.letters {
		if l.from == nil {
			d.stop()
		} else {
			d.take(l.query, l.from)
		}
	}
}

// ask implements asker.
func (c *channelServer) ask(q query) (int64, error) {
	reply := c.replies.Get().(chan answer)
	c.letters <- letter[chan answer]{q, reply}
	a := <-reply
	c.replies.Put(reply)
	return a.value, a.err
}

// stop implements host: a letter without a sender.
func (c *channelServer) stop() { c.letters <- letter[chan answer]{} }

// end implements host.
func (c *channelServer) end() error {
	close(c.letters)
	<-c.ended
	return nil
}
