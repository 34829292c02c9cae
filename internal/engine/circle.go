package engine

import (
	"iter"
	"maps"
	"slices"

	"github.com/sluice-go/sluice/mailbox"
)

// # The search for circles
//
// A wait that begins closes a circle if what it waits for cannot end before the caller's own
// chain goes on. There has been no circle before: so each leads through the new edge, out of
// the chain by what it waits for, and back into it by another body's wait for something that
// the chain keeps. Hence two questions, of which either answer "no" will do:
//
//	 does a wait lead into the chain?             where does the new one lead?
//
//	   own chain, from inside outwards              ┌──► object ──► body ──► …
//	   f ──► called by ──► called by ──► …          f
//	   └ sought here?   └ sought here?              └──► (a way leads back to a body of the chain)
//
// Both are pursued in turn, so that the effort is that of the cheaper one: a chain that nothing
// waits for takes no walk, and a deep chain that waits for something free need not be looked at
// up to its end. Only if a wait leads into the chain, and the new one back to it, is everything
// between them looked at again, once, as follows.
//
// # What is held up
//
//	a body     cannot go on if one of those that it waits for, or that a body waits for which it
//	           has called, is held up; or if it is one of the chain
//	an object  (site) is held up for a request if one of the bodies in its way cannot go on
//	a Join     is held up if one of its parts is, if it is of all; and if all are, if it is of
//	           the first
//
// Because of the last, it does not do to follow the edges until one leads back: a way back through
// one part of a first-of is no circle if another part can go on. So everything on the way counts
// as held up at first. Then what can go on is struck out, and what can go on because of that, each
// once, with the arcs that lead to it: the effort is proportional to what has been walked. What is
// left is held up for good.

// sought counts, for each object, the waits from inside of objects for its requests, or for its
// end, as their edges say. It has no zeroes. Loose is how many edges there are that do not say it
// all, since their goal may come to follow from other requests. Restarts is how many objects wait
// for the end of their children, whose bodies keep what is waited for in another object. All are
// guarded by graph.
var (
	sought   = map[*Mailbox]int{}
	loose    int
	restarts int
)

// looked is how many bodies, objects and joins have been looked at in searches, and the arcs
// between them. It is guarded by graph; tests read it.
var looked int

// seek counts e where its goal is now.
func (e *edge) seek() {
	if r, simple := e.goal.(*Request); simple {
		r.seek(e, nil)
	} else {
		e.goal.seek(e, map[*Join]bool{})
	}
	if e.open {
		loose++
	}
}

// unseek takes back what seek has counted.
func (e *edge) unseek() {
	if e.at != nil {
		e.at.unsought()
	}
	if e.more != nil {
		for _, m := range *e.more {
			m.unsought()
		}
	}
	if e.open {
		loose--
	}
	e.at, e.more, e.open = nil, nil, false
}

func (m *Mailbox) unsought() {
	if n := sought[m]; n > 1 {
		sought[m] = n - 1
	} else {
		delete(sought, m)
	}
}

// to notes that e leads to the object.
func (e *edge) to(m *Mailbox) {
	sought[m]++
	switch {
	case e.at == nil:
		e.at = m
	case e.more == nil:
		e.more = &[]*Mailbox{m}
	default:
		*e.more = append(*e.more, m)
	}
}

func (r *Request) seek(e *edge, _ map[*Join]bool) {
	if box := r.box.Load(); box != nil {
		e.to(box)
	} else {
		e.open = true // it has not been handed in
	}
}

func (j *Join) seek(e *edge, seen map[*Join]bool) {
	if seen[j] {
		return
	}
	seen[j] = true
	parts := j.parts.Load()
	if parts == nil {
		e.open = e.open || !j.Settled() // what it follows from may yet be said, by Behind
		return
	}
	for i := range *parts {
		if p := &(*parts)[i]; p.Awaited != nil {
			p.seek(e, seen)
		}
	}
}

// seek counts the edges from f to the goal anew. The caller holds graph.
func (f *Frame) seek(goal goal) {
	for i := range f.node.waits {
		if e := &f.node.waits[i]; e.goal == goal {
			e.unseek()
			e.seek()
		}
	}
}

// foreign reports whether a wait leads into the chain of f by its innermost body: one for
// the object that the body is in, and not the one of its own caller.
func (f *Frame) foreign() bool {
	n := sought[f.box]
	if n > 0 && f.parent != nil && f.parent.waitsFor(f.r) {
		n--
	}
	return n > 0
}

// search looks for a circle through the goal of one body.
type search struct {
	frame *Frame
	// outer is the part of the chain that has not been looked at; nil if all has been, or a
	// wait has been found that leads into the chain.
	outer *Frame
	into  bool // such a wait has been found
	back  bool // the walk has come to a body of the chain

	bodies map[*Frame]*vertex
	sites  map[site]*vertex
	joins  map[*Join]*vertex
	todo   []*vertex       // of which the arcs are not known
	own    map[*Frame]bool // the bodies of the chain, when that has been asked

	// Room for what is found.
	vertices []vertex
	room     int // how many vertices there was room for when it was made last
	frames   []*Frame

	// For writing down the circle: what of it has been told, and where in the chain it begins.
	told  map[*vertex]bool
	start *Frame
	links []mailbox.Link
}

// vertex is a body, an object or a Join on the way.
type vertex struct {
	// One of these is not zero.
	body *Frame
	site site
	join *Join

	arcs  []arc
	preds []*vertex // those with arcs to it
	held  int       // arcs to what is not known to go on
	first bool      // a Join that is held up only if all its parts are
	own   bool      // a body of the chain
	free  bool      // it can go on

	// Most have one of each.
	arc  [1]arc
	pred [1]*vertex
}

// arc leads to what a vertex depends on.
type arc struct {
	to   *vertex
	goal goal // of a body's wait, or a Join's part; else nil
}

// near is how many bodies of the own chain are looked at first, and then for each step of the walk.
const near = 16

// circle returns the circle that the wait of f for the goal closes, or nil. The
// caller holds graph.
//
// Of several things of which each would do to hold up another the first is told of.
// As there was no circle before, whatever is told leads back to the chain in the end.
func (f *Frame) circle(goal goal) []mailbox.Link {
	s := &search{frame: f, outer: f, into: loose > 0 || restarts > 0}
	if s.enclosed() {
		return nil
	}
	s.bodies, s.sites = map[*Frame]*vertex{}, map[site]*vertex{}
	first := goal.vertex(s)
	for len(s.todo) > 0 {
		v := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		if s.expand(v); len(s.todo) > 0 && s.enclosed() {
			return nil
		}
	}
	if first == nil || !s.back {
		return nil
	}
	if s.strike(); first.free {
		return nil
	}
	s.told = map[*vertex]bool{}
	goal.way(s, first, f.String())
	if s.start == nil {
		return nil
	}
	// Out of the object along the own chain, and through the others back.
	return append(between(s.start, f), s.links...)
}

// enclosed looks at some more bodies of the own chain, and reports whether that is all of them,
// and no wait leads into it. A body that has returned is not in the chain any more, nor are those
// that it was called from.
func (s *search) enclosed() bool {
	if s.into {
		return false
	}
	for range near {
		f := s.outer
		if f == nil || f.over.Load() {
			return true
		}
		looked++
		if s.into = f.foreign(); s.into {
			return false
		}
		s.outer = f.parent
	}
	return false
}

// owns reports whether the body is one of the chain.
func (s *search) owns(f *Frame) bool {
	if f.node == nil || f.node.root != s.frame.node.root {
		return false
	}
	if s.own == nil {
		s.own = map[*Frame]bool{}
		for g := s.frame; g != nil && !g.over.Load(); g = g.parent {
			s.own[g] = true
			looked++
		}
	}
	return s.own[f]
}

// ofBody returns the vertex of a body, ofSite that of a site, and ofJoin that of a Join.
func (s *search) ofBody(f *Frame) *vertex {
	v := s.bodies[f]
	if v == nil {
		v = s.fresh()
		v.body, s.bodies[f] = f, v
	}
	return v
}

func (s *search) ofSite(at site) *vertex {
	v := s.sites[at]
	if v == nil {
		v = s.fresh()
		v.site, s.sites[at] = at, v
	}
	return v
}

func (s *search) ofJoin(j *Join) *vertex {
	v := s.joins[j]
	if v == nil {
		v = s.fresh()
		if s.joins == nil {
			s.joins = map[*Join]*vertex{}
		}
		v.join, s.joins[j] = j, v
	}
	return v
}

func (s *search) fresh() *vertex {
	if len(s.vertices) == 0 {
		s.room = min(max(8*s.room, 4), 64) // most searches end soon
		s.vertices = make([]vertex, s.room)
	}
	v := &s.vertices[0]
	s.vertices = s.vertices[1:]
	v.arcs, v.preds = v.arc[:0], v.pred[:0]
	s.todo = append(s.todo, v)
	return v
}

// expand finds the arcs of v.
func (s *search) expand(v *vertex) {
	looked++
	switch {
	case v.body != nil:
		f := v.body
		if s.owns(f) {
			v.own, s.back = true, true
			return // what it waits for does not matter
		}
		if f.node == nil || f.over.Load() {
			break
		}
		for _, e := range f.node.waits {
			s.arc(v, e.goal.vertex(s), e.goal)
		}
		for _, g := range f.node.below {
			if !g.over.Load() {
				s.arc(v, s.ofBody(g), nil)
			}
		}
	case v.join != nil:
		v.first = v.join.first
		for p := range v.join.left() {
			if !v.join.out(p) {
				s.arc(v, p.vertex(s), p.Awaited)
			}
		}
	default:
		s.frames = v.site.frames(s.frames[:0])
		for _, f := range s.frames {
			s.arc(v, s.ofBody(f), nil)
		}
	}
	v.free = v.free || v.held == 0
}

// arc adds an arc; a nil one leads to what can end now.
func (s *search) arc(v, to *vertex, goal goal) {
	looked++
	if to == nil {
		v.free = v.free || v.first
		return
	}
	v.arcs = append(v.arcs, arc{to, goal})
	to.preds = append(to.preds, v)
	v.held++
}

// strike strikes out what can go on: v.free says so in the end.
func (s *search) strike() {
	for _, all := range [...]iter.Seq[*vertex]{maps.Values(s.bodies), maps.Values(s.sites), maps.Values(s.joins)} {
		for v := range all {
			if v.free {
				s.todo = append(s.todo, v)
			}
		}
	}
	for len(s.todo) > 0 {
		v := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		for _, p := range v.preds {
			looked++
			if p.held--; !p.free && (p.held == 0 || p.first) {
				p.free = true
				s.todo = append(s.todo, p)
			}
		}
	}
}

// site is where requests wait for the same bodies: an object; or, as it runs several at
// once, a request at an object that fans out.
type site struct {
	box *Mailbox
	r   *Request
}

// site returns the site of r, which is in the box.
func (r *Request) site(box *Mailbox) site {
	if box.config.Parallel == nil {
		return site{box: box}
	}
	return site{box, r}
}

// frames appends the bodies that are in the way there. The caller holds graph.
func (at site) frames(frames []*Frame) []*Frame {
	if at.r == nil {
		return at.box.frames(frames)
	}
	return at.box.against(at.r, frames)
}

func (r *Request) vertex(s *search) *vertex {
	box := r.box.Load()
	if box == nil || !r.pending() { // not handed in, or ended
		return nil
	}
	return s.ofSite(r.site(box))
}

// vertex returns nil for a Join that has ended. A part that has ended cannot hold it up, even
// while its continuation is on its way to say what that means for j.
func (j *Join) vertex(s *search) *vertex {
	if j.Settled() {
		return nil
	}
	return s.ofJoin(j)
}

func (r *Request) way(s *search, to *vertex, body string) {
	s.links = append(s.links, mailbox.Link{Body: body, For: r.String()})
	s.through(to)
}

// through tells how it goes on from a site.
func (s *search) through(v *vertex) {
	if s.told[v] {
		return // and how it goes on from there
	}
	s.told[v] = true
	at := v.site
	if at.r == nil {
		if g := s.frame.within(at.box); g != nil {
			s.came(g)
			return
		}
	}
	// If there is one of the own chain, the innermost.
	in := map[*Frame]bool{}
	for _, a := range v.arcs {
		if a.to.own {
			in[a.to.body] = true
		}
	}
	for g := s.frame; g != nil && len(in) > 0; g = g.parent {
		if in[g] {
			s.came(g)
			s.links = append(s.links, g.holds(at.box)...)
			return
		}
	}
	for _, a := range v.arcs {
		if a.held() {
			f := a.to.body
			s.links = append(s.links, f.holds(at.box)...)
			s.down(f, a.to)
			return
		}
	}
}

// down tells what the body f waits for that is held up, or one that it has called.
func (s *search) down(f *Frame, v *vertex) {
	for i := slices.IndexFunc(v.arcs, arc.held); i >= 0; i = slices.IndexFunc(v.arcs, arc.held) {
		a := v.arcs[i]
		if a.goal != nil {
			g := v.body
			s.links = append(s.links, between(f, g)...)
			a.goal.way(s, a.to, g.String())
			return
		}
		v = a.to
	}
}

// held reports whether what the arc leads to is held up.
func (a arc) held() bool { return !a.to.free }

func (j *Join) way(s *search, to *vertex, body string) {
	if s.told[to] {
		return
	}
	s.told[to] = true
	for _, a := range to.arcs {
		if !a.held() {
			continue
		}
		if a.goal.way(s, a.to, body); !j.first { // else all of them are in the circle
			return
		}
	}
}

// between returns the links of a chain from one body to another that it has called,
// perhaps by way of others.
func between(outer, inner *Frame) (links []mailbox.Link) {
	for g := inner; g != outer; g = g.parent {
		links = append(links, mailbox.Link{Body: g.parent.String(), For: g.String()})
	}
	slices.Reverse(links)
	return links
}

// holds returns the link by which the body is in the way of requests of the object, if
// it does not run there.
func (f *Frame) holds(box *Mailbox) []mailbox.Link {
	if f.box == box {
		return nil
	}
	return []mailbox.Link{{Body: "the restart of " + box.host.Name(), For: f.String()}}
}

// came notes that the circle comes back to the body's chain at the link in.
func (s *search) came(in *Frame) {
	for g := in; g != nil; g = g.parent {
		if g == s.start {
			return // which is further out
		}
	}
	s.start = in
}
