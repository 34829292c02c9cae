package serial

import (
	"fmt"
	"maps"
	"slices"
)

// Check returns the anomalies of the history; none if it is strictly serializable. Anomalies of single reads and
// lists come first, then one cycle for each set of transactions that depend on each other: a shortest one, or a
// short one where the search for a shortest would take too long. Equal histories give equal answers.
func Check(history []Txn) []Anomaly {
	c := infer(history)
	c.findCycles()
	return c.found
}

// infer returns the dependencies between the transactions, and the anomalies other than cycles.
func infer(history []Txn) *checker {
	c := &checker{txns: history, counted: make([]bool, len(history)), lists: map[string]*list{}}
	c.out = make([][]edge, len(history))
	c.collectAppends()
	c.collectReads()
	for _, l := range c.order {
		c.inferOrder(l)
		c.inferReads(l, c.inferAppends(l))
		c.findLostUpdates(l)
	}
	c.inferRealTime()
	return c
}

// checker is the state of a check. Transactions are named by their index in the history, which is also their node in
// the graph of dependencies.
type checker struct {
	txns    []Txn
	counted []bool // committed, or unknown and read by one that counts
	lists   map[string]*list
	order   []*list // in the order of their first appends and reads
	found   []Anomaly
	graph
}

// list is what the history says about one list.
type list struct {
	key     string
	appends []appended  // those of one transaction are adjacent, in program order
	index   map[int]int // from a value to its place in appends
	reads   []read
	longest []int // the longest list that a transaction that counts has read

	versions []version // the appends in it of transactions that count
	known    []int     // how many of them are among its first n values
}

// version is an append, and the list with it as its last value.
type version struct {
	writer int
	list   []int
}

func (v version) value() int { return v.list[len(v.list)-1] }

// appended is an append to a list.
type appended struct {
	value, txn int
	final      bool // the last one of its transaction to this list
	placed     bool // it is in the longest list
}

// read is a read of a list by a transaction that counts. Another with the same result is left out.
type read struct {
	txn   int
	found []int // the list that was found
	other int   // how many values at its beginning are not the transaction's own
}

// report adds an anomaly; txns are indexes.
func (c *checker) report(kind Kind, txns []int, format string, args ...any) {
	ids := make([]int, len(txns))
	for i, t := range txns {
		ids[i] = c.txns[t].ID
	}
	c.found = append(c.found, Anomaly{kind, ids, fmt.Sprintf(format, args...)})
}

// name returns the name of the transaction in explanations.
func (c *checker) name(t int) string { return fmt.Sprintf("T%d", c.txns[t].ID) }

// list returns the list of that name.
func (c *checker) list(key string) *list {
	l := c.lists[key]
	if l == nil {
		l = &list{key: key, index: map[int]int{}}
		c.lists[key] = l
		c.order = append(c.order, l)
	}
	return l
}

// collectAppends indexes all appends, also those of aborted transactions, and checks the form of the history.
func (c *checker) collectAppends() {
	ids := map[int]int{}
	for t, txn := range c.txns {
		if first, ok := ids[txn.ID]; ok {
			c.report(Malformed, []int{first, t}, "two transactions have the ID %d", txn.ID)
		}
		ids[txn.ID] = t
		switch {
		case txn.Status < Unknown || txn.Status > Aborted:
			c.report(Malformed, []int{t}, "%s has the status %d", c.name(t), txn.Status)
		case txn.End != 0 && txn.End < txn.Start:
			c.report(Malformed, []int{t}, "%s ended at %d before it started at %d", c.name(t), txn.End, txn.Start)
		case txn.late:
			c.report(Malformed, []int{t}, "%s was recorded after it had ended", c.name(t))
		}
		for _, op := range txn.Ops {
			if op.read {
				continue
			}
			l := c.list(op.key)
			if first, ok := l.index[op.value]; ok {
				by := l.appends[first].txn
				c.report(DuplicateAppend, []int{by, t}, "%s and %s both appended %d to %s",
					c.name(by), c.name(t), op.value, l.key)
				continue
			}
			l.index[op.value] = len(l.appends)
			if last := len(l.appends) - 1; last >= 0 && l.appends[last].txn == t {
				l.appends[last].final = false
			}
			l.appends = append(l.appends, appended{value: op.value, txn: t, final: true})
		}
	}
}

// collectReads decides which transactions count, and collects their reads: those of the committed ones, and of each
// unknown one of which a transaction that counts has read an append.
func (c *checker) collectReads() {
	var todo []int
	count := func(t int) {
		if !c.counted[t] {
			c.counted[t] = true
			todo = append(todo, t)
		}
	}
	for t, txn := range c.txns {
		if txn.Status == Committed {
			count(t)
		}
	}
	for len(todo) > 0 {
		t := todo[0]
		todo = todo[1:]
		views := map[string]*view{}
		for _, op := range c.txns[t].Ops {
			v := views[op.key]
			if v == nil {
				v = &view{list: c.list(op.key)}
				views[op.key] = v
			}
			if !op.read {
				v.own = append(v.own, op.value)
				continue
			}
			for _, value := range v.list.unseen(op.list) {
				i, ok := v.list.index[value]
				switch {
				case !ok:
					c.report(Garbage, []int{t}, "%s read %s=%s, but %d has not been appended",
						c.name(t), op.key, listText(op.list), value)
				case c.txns[v.list.appends[i].txn].Status == Aborted:
					by := v.list.appends[i].txn
					c.report(G1a, []int{by, t}, "%s appended %d to %s and aborted, %s read %s=%s",
						c.name(by), value, op.key, c.name(t), op.key, listText(op.list))
				default:
					count(v.list.appends[i].txn)
				}
			}
			c.collectRead(t, v, op.list)
		}
	}
}

// view is what one transaction has seen of a list so far.
type view struct {
	*list
	own   []int // its own appends
	known bool  // it has read the list
	other []int // what it read before its own appends
}

// collectRead adds a read to its list unless it says nothing new, and compares it to what the transaction has seen.
func (c *checker) collectRead(t int, v *view, found []int) {
	n := len(found) - len(v.own)
	if n < 0 || !slices.Equal(found[n:], v.own) {
		c.report(Internal, []int{t}, "%s appended %s to %s, and then read %s=%s",
			c.name(t), listText(v.own), v.key, v.key, listText(found))
		return
	}
	if n > 0 {
		if i, ok := v.index[found[n-1]]; ok && v.appends[i].txn == t {
			c.report(Internal, []int{t}, "%s read %s=%s with an append of its own that it had not made",
				c.name(t), v.key, listText(found))
		}
	}
	if v.known && slices.Equal(v.other, found[:n]) {
		return
	}
	if v.known {
		c.report(Internal, []int{t}, "%s read %s=%s before its own appends, and later %s",
			c.name(t), v.key, listText(v.other), listText(found[:n]))
	}
	v.known, v.other = true, found[:n]
	v.reads = append(v.reads, read{t, found, n})
}

// unseen returns the values of a list that was read that may not have been looked at, and keeps the longest.
func (l *list) unseen(found []int) []int {
	if hasPrefix(l.longest, found) {
		return nil
	}
	if hasPrefix(found, l.longest) {
		found, l.longest = found[len(l.longest):], found
	} else if len(found) > len(l.longest) {
		l.longest = found
	}
	return found
}

// inferOrder takes the longest list as the order of its appends, and compares it to the program order of each
// transaction.
func (c *checker) inferOrder(l *list) {
	l.known = make([]int, len(l.longest)+1)
	for n, value := range l.longest {
		l.known[n+1] = l.known[n]
		i, ok := l.index[value]
		if !ok {
			continue
		}
		a, found := &l.appends[i], listText(l.longest[:n+1])
		if a.placed {
			c.report(DuplicateAppend, []int{a.txn}, "%s appended %d to %s once, and it was read twice: %s=%s",
				c.name(a.txn), value, l.key, l.key, found)
		} else if i+1 < len(l.appends) && l.appends[i+1].txn == a.txn && l.appends[i+1].placed {
			c.report(IncompatibleOrder, []int{a.txn}, "%s appended %d and then %d to %s, and they were read as %s=%s",
				c.name(a.txn), value, l.appends[i+1].value, l.key, l.key, found)
		}
		a.placed = true
		if c.counted[a.txn] {
			l.versions = append(l.versions, version{a.txn, l.longest[:n+1]})
			l.known[n+1]++
		}
	}
}

// inferAppends adds the dependencies between the appends to the list. It returns a function that adds an edge to all
// appends that have not been read. They come after the longest list, in an order that is not known.
func (c *checker) inferAppends(l *list) (addUnread func(from int, e edge)) {
	for i := 1; i < len(l.versions); i++ {
		before, after := l.versions[i-1], l.versions[i]
		c.add(before.writer, edge{to: after.writer, kind: ww, key: l.key, before: before.list, value: after.value()})
	}
	var unread []edge
	for _, a := range l.appends {
		if c.counted[a.txn] && !a.placed && (len(unread) == 0 || unread[len(unread)-1].to != a.txn) {
			unread = append(unread, edge{to: a.txn, kind: pass, value: a.value, unread: true})
		}
	}
	addUnread = c.precede(unread)
	if n := len(l.versions); n > 0 {
		last := l.versions[n-1]
		addUnread(last.writer, edge{kind: ww, key: l.key, before: last.list})
	}
	return addUnread
}

// inferReads adds the dependencies between the reads of the list and the appends to it.
func (c *checker) inferReads(l *list, addUnread func(from int, e edge)) {
	for _, r := range l.reads {
		if !hasPrefix(l.longest, r.found) {
			c.report(IncompatibleOrder, []int{r.txn}, "%s read %s=%s, but another read is %s=%s",
				c.name(r.txn), l.key, listText(r.found), l.key, listText(l.longest))
		}
		before := r.found[:r.other]
		if r.other > 0 {
			if i, ok := l.index[before[r.other-1]]; ok && !l.appends[i].final && l.appends[i].txn != r.txn {
				by := l.appends[i].txn
				c.report(G1b, []int{by, r.txn}, "%s read %s=%s, but %s appended %d to %s next",
					c.name(r.txn), l.key, listText(before), c.name(by), l.appends[i+1].value, l.key)
			}
		}
		if !hasPrefix(l.longest, before) {
			continue
		}
		n := l.known[r.other]
		if n > 0 {
			last := l.versions[n-1]
			c.add(last.writer, edge{to: r.txn, kind: wr, key: l.key, before: before, value: last.value()})
		}
		if n < len(l.versions) {
			next := l.versions[n]
			c.add(r.txn, edge{to: next.writer, kind: rw, key: l.key, before: before, value: next.value()})
		} else {
			addUnread(r.txn, edge{kind: rw, key: l.key, before: before})
		}
	}
}

// findLostUpdates reports the transactions that read the same version of the list and appended to it.
func (c *checker) findLostUpdates(l *list) {
	appenders := map[int]bool{}
	for _, a := range l.appends {
		appenders[a.txn] = true
	}
	updates := map[int][]int{} // from the length of a version to the transactions
	for _, r := range l.reads {
		by := updates[r.other]
		if appenders[r.txn] && hasPrefix(l.longest, r.found[:r.other]) && (len(by) == 0 || by[len(by)-1] != r.txn) {
			updates[r.other] = append(by, r.txn)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(updates)) {
		if by := updates[n]; len(by) > 1 {
			names := c.name(by[0])
			for _, t := range by[1:] {
				names += ", " + c.name(t)
			}
			c.report(LostUpdate, by, "%s read %s=%s and appended to it", names, l.key, listText(l.longest[:n]))
		}
	}
}
