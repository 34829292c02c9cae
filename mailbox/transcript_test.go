package mailbox_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// The transcripts in testdata are conversations with a scheduler, one topic each.
// Run the test with -rewrite to write down what it answers now.
//
//	object                        declare the operations, one per line:
//	                                procedure NAME
//	                                entry NAME when GUARD
//	                                function NAME [when GUARD]
//	                              make some of them families by their argument, say
//	                              what they open, or that only the first is asked:
//	                                family NAME | opens NAME FAMILY | head-of-line NAME
//	                              and the rules:
//	                                functions compatible | compatible NAME NAME
//	                              and of what is left, that requests conflict only if
//	                              their arguments are equal, or less than 3 apart, or
//	                              both even or both odd:
//	                                keys NAME ... | near NAME ... | parity NAME NAME
//	                              and that some are called from inside of others:
//	                                reentrant
//	                              and that requests belong to transactions, between which
//	                              compatible operations commute, or need not:
//	                                transactional [commuting]
//	                                policy rotating | policy greatest number first
//	                                policy lifo | policy rank | policy user | policy choice
//	                                all-compatible | max-bypass N
//	                                bound N refuse|drop-oldest|wait [NAME]
//	                                check
//	set NAME=VALUE ...            change the state; the value panic makes guards
//	                              that look at it panic
//	arrive NAME[=ARGUMENT] ...    requests arrive; they are called NAME#ARRIVAL
//	                              The argument is the rank and the key, too.
//	inside NAME#ARRIVAL NAME[=ARGUMENT]   one arrives that the first waits for, and who
//	                              waits for that
//	in TRANSACTION NAME[=ARGUMENT] ...   requests of a transaction arrive
//	release TRANSACTION [NAME=VALUE ...]   it retains nothing any more; if there are values, it has
//	                              been undone to these
//	impatient NAME[=ARGUMENT]     one arrives that will not wait at the door
//	try NAME[=ARGUMENT]           a request arrives that will not wait
//	rerank NAME#ARRIVAL RANK      it gets another rank
//	requeue NAME#ARRIVAL NAME[=ARGUMENT] [keep]   it runs, and asks for something else
//	failed                        ask for one that has failed
//	stats NAME                    tell what has been counted
//	next                          ask for one request to start
//	run                           ask until there is none
//	complete NAME#ARRIVAL [NAME=VALUE ...]   its body sets the state and ends
//	decline, withdraw NAME#ARRIVAL
//	begin NAME, end NAME          a request the scheduler does not see
//	hold                          let nothing start
//	free [NAME=VALUE ...]         let them again; if there are values, in another state
//	close                         take no more requests
//	explain                       say of each request why it waits
//	inspect [N]                   begin a walk over those that wait, or visit N more
//
// Predicates panic if the variable predicate says so.
//
// The policy "user" prefers the least argument, and "choice" picks the number that
// the variable choice says, from 0; both panic if the variable policy says so. An
// operation that declares what it opens opens the key that the variable opened says.
//
// A GUARD is made of terms such as open, size<10, arg<=balance or put.count>=3,
// joined by "and" or by "or"; a name followed by .count is a waiting count, and
// open.arg is the variable open.7 for the argument 7.
//
// "ask" lines are evaluations of guards; there are no others.
func TestTranscripts(t *testing.T) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.IsDir() { // fuzz and rapid keep what they found there
			continue
		}
		t.Run(f.Name(), func(t *testing.T) {
			s := &scene{}
			datadriven.RunTest(t, filepath.Join("testdata", f.Name()), func(t *testing.T, d *datadriven.TestData) string {
				s.out.Reset()
				s.do(t, d)
				return s.out.String()
			})
		})
	}
}

// scene is the object of a transcript and its scheduler.
type scene struct {
	out    strings.Builder
	rules  mailbox.Rules
	guards []guards.Guard[scene, int] // per operation
	state  map[string]string
	k      *mailbox.Scheduler
	calls  []*mailbox.Request
	cursor *mailbox.Cursor
	open   map[string]*mailbox.Transaction
}

func (s *scene) printf(format string, args ...any) { fmt.Fprintf(&s.out, format, args...) }

func (s *scene) do(t *testing.T, d *datadriven.TestData) {
	queues := true
	switch d.Cmd {
	case "object":
		s.object(t, d)
		queues = false
	case "set":
		s.set(d.CmdArgs)
		queues = false
	case "arrive", "try", "impatient":
		for _, a := range d.CmdArgs {
			n := number(a.Vals)
			s.arrive(&mailbox.Request{Op: s.operation(t, a.Key), Try: d.Cmd == "try", Patient: d.Cmd == "arrive"}, n)
		}
	case "inside":
		outer, a := s.call(t, d), d.CmdArgs[1]
		r := &mailbox.Request{Op: s.operation(t, a.Key)}
		s.arrive(r, number(a.Vals), outer)
	case "in":
		for _, a := range d.CmdArgs[1:] {
			r := &mailbox.Request{Op: s.operation(t, a.Key), Claim: &mailbox.Claim{Transaction: s.transaction(d)}, Patient: true}
			s.arrive(r, number(a.Vals))
		}
	case "release":
		s.set(d.CmdArgs[1:])
		s.k.Release(s.transaction(d), len(d.CmdArgs) > 1)
	case "next":
		if !s.next() {
			s.printf("nothing\n")
		}
	case "run":
		for s.next() {
		}
	case "complete", "decline":
		r := s.call(t, d)
		if r.State() != mailbox.StateRunning {
			t.Fatalf("%s: %s does not run", d.Pos, s.name(r))
		}
		if s.set(d.CmdArgs[1:]); d.Cmd == "decline" {
			s.k.Decline(r)
		} else {
			s.k.Complete(r)
		}
	case "rerank":
		if !s.k.Rerank(s.call(t, d), int64(number([]string{d.CmdArgs[1].Key}))) {
			s.printf("it does not wait\n")
		}
	case "requeue":
		r, to := s.call(t, d), d.CmdArgs[1]
		n := number(to.Vals)
		r.Record = n
		op := s.operation(t, to.Key)
		claim := s.claim(op, n)
		if claim != nil && r.Claim != nil {
			claim.Transaction = r.Claim.Transaction
		}
		s.k.Requeue(r, op, n, claim, len(d.CmdArgs) > 2)
	case "failed":
		if r, err := s.k.Failed(); r != nil {
			s.printf("fail %s: %v\n", s.name(r), err)
		}
	case "stats":
		queues = false
		c := s.k.Stats(s.operation(t, d.CmdArgs[0].Key))
		s.printf("%s: starts %v, waits %d, withdrawals %d, refusals %d, evaluations %v, longest bypass %v\n",
			c.Operation, c.Starts, c.Waits, c.Withdrawals, c.Refusals, c.Evaluations, c.LongestBypass)
	case "withdraw":
		if !s.k.Withdraw(s.call(t, d)) {
			s.printf("it does not wait\n")
		}
	case "lapse":
		s.k.LapseOf(s.call(t, d))
	case "begin":
		s.k.Begin(s.operation(t, d.CmdArgs[0].Key))
	case "end":
		s.set(d.CmdArgs[1:])
		s.k.End(s.operation(t, d.CmdArgs[0].Key), nil)
	case "hold":
		s.k.Hold()
	case "free":
		s.set(d.CmdArgs)
		s.k.Free(len(d.CmdArgs) > 0)
	case "close":
		s.k.Close(errors.New("the object is closed"))
	case "explain":
		queues = false
		for _, r := range s.calls {
			if r.Waits() {
				s.printf("%s: %s", s.name(r), s.k.Why(r))
				if n := s.k.Bypassed(r); n > 0 {
					s.printf("; bypassed: %d", n)
				}
				s.printf("\n")
			}
		}
	case "inspect":
		queues = false
		s.inspect(d)
	default:
		t.Fatalf("%s: no such command %q", d.Pos, d.Cmd)
	}
	if queues {
		s.queues()
	}
}

func (s *scene) arrive(r *mailbox.Request, n int, outer ...*mailbox.Request) {
	var tx *mailbox.Transaction
	if r.Claim != nil {
		tx = r.Claim.Transaction
	}
	r.Key, r.Rank, r.Record, r.Claim = n, int64(n), n, s.claim(r.Op, n)
	if tx != nil {
		r.Claim.Transaction = tx
	}
	for _, o := range outer {
		r.Claim.Outer = append(slices.Clone(o.Claim.Outer), o.Claim)
	}
	s.calls = append(s.calls, r)
	s.k.Arrive(r)
}

// claim returns what a request with the argument takes up.
func (s *scene) claim(op, n int) *mailbox.Claim {
	if !s.rules.Scoped(op) {
		return nil
	}
	c := &mailbox.Claim{}
	for _, scope := range s.rules.Conflicts.Scopes() {
		e, err := scope.Extent(op, n)
		if err != nil {
			panic(err)
		}
		c.Extents = append(c.Extents, e)
	}
	return c
}

// Clash is the predicate "parity".
func (s *scene) Clash(scope int, a, b *mailbox.Request) (bool, error) {
	if s.state["predicate"] == "panic" {
		return false, errors.New("the predicate panicked")
	}
	return s.rules.Conflicts.Scopes()[scope].Predicate(a.Op, a.Record, b.Record), nil
}

func (s *scene) object(t *testing.T, d *datadriven.TestData) {
	*s = scene{state: map[string]string{}}
	var names []string
	var table []func()
	for line := range strings.Lines(d.Input) {
		f := strings.Fields(line)
		switch f[0] {
		case "procedure", "entry", "function":
			kind := map[string]mailbox.Kind{"procedure": mailbox.Procedure, "entry": mailbox.Entry, "function": mailbox.Function}[f[0]]
			g := guards.Guard[scene, int]{}
			if len(f) > 2 {
				g = parse(f[3:])
			}
			s.guards = append(s.guards, g)
			s.rules.Operations = append(s.rules.Operations, mailbox.Operation{Name: f[1], Kind: kind, Guard: g.Name(), Looks: g.Looks()})
			names = append(names, f[1])
		case "functions":
			table = append(table, func() {
				for i, a := range s.rules.Operations {
					for j, b := range s.rules.Operations {
						if a.Kind == mailbox.Function && b.Kind == mailbox.Function {
							s.rules.Conflicts = s.rules.Conflicts.Allow(i, j)
						}
					}
				}
			})
		case "compatible":
			table = append(table, func() {
				s.rules.Conflicts = s.rules.Conflicts.Allow(s.operation(t, f[1]), s.operation(t, f[2]))
			})
		case "keys":
			table = append(table, func() {
				var keys []guards.KeyOf
				for _, name := range f[1:] {
					keys = append(keys, guards.Key(guards.Name(name), func(n int) int { return n }))
				}
				s.rules.Conflicts = s.rules.Conflicts.EqualKeys(keys...)
			})
		case "near":
			table = append(table, func() {
				var intervals []guards.IntervalOf
				for _, name := range f[1:] {
					intervals = append(intervals, guards.Interval(guards.Name(name), func(n int) (int, int) { return n, n + 3 }))
				}
				s.rules.Conflicts = s.rules.Conflicts.Overlapping(intervals...)
			})
		case "parity":
			table = append(table, func() {
				pair := guards.Pair(guards.Name(f[1]), guards.Name(f[2]), func(a, b int) bool { return a%2 == b%2 })
				s.rules.Conflicts = s.rules.Conflicts.OnlyIf(pair)
			})
		case "reentrant":
			s.rules.Reentrant = true
		case "transactional":
			s.rules.Transactional, s.rules.Commuting = true, len(f) > 1
		case "policy":
			s.rules.Policy = map[string]*mailbox.Policy{
				"rotating": mailbox.Rotating, "greatest": byNumber, "lifo": mailbox.LIFO, "rank": mailbox.Ranked,
				"user":   {Name: "least argument", Within: true, Fallible: true, Before: s.least},
				"choice": {Name: "choice", Fallible: true, Choose: s.choose},
			}[f[1]]
		case "family":
			s.rules.Operations[s.operation(t, f[1])].Family = true
		case "resumes":
			s.rules.Operations[s.operation(t, f[1])].Resumes = true
		case "head-of-line":
			s.rules.Operations[s.operation(t, f[1])].HeadOfLine = true
		case "opens":
			o := &s.rules.Operations[s.operation(t, f[1])]
			o.Opens = append(o.Opens, s.operation(t, f[2]))
		case "bound":
			b := mailbox.Bound{Max: number(f[1:2]), Overflow: map[string]mailbox.Overflow{
				"refuse": mailbox.Refuse, "drop-oldest": mailbox.DropOldest, "wait": mailbox.Wait,
			}[f[2]]}
			if s.rules.Bound = b; len(f) > 3 {
				s.rules.Bound = mailbox.Bound{}
				s.rules.Operations[s.operation(t, f[3])].Bound = b
			}
		case "all-compatible":
			s.rules.AllCompatible = true
		case "check":
			s.rules.Check = true
		case "max-bypass":
			s.rules.MaxBypass = number(f[1:])
		default:
			t.Fatalf("%s: no such rule %q", d.Pos, line)
		}
	}
	s.rules.Conflicts = guards.NewExclusive(names...)
	for _, change := range table {
		change()
	}
	s.k = mailbox.New(&s.rules, s)
	s.printf("%s", s.rules.Conflicts)
}

func (s *scene) policyFails() error {
	if s.state["policy"] == "panic" {
		return errors.New("the policy panicked")
	}
	return nil
}

func (s *scene) least(a, b *mailbox.Request, _ int) (bool, error) {
	return a.Record.(int) < b.Record.(int), s.policyFails()
}

func (s *scene) choose(eligible []*mailbox.Request) (int, error) {
	var names []string
	for _, r := range eligible {
		names = append(names, s.name(r))
	}
	s.printf("choose among %s\n", strings.Join(names, " "))
	return s.value("choice", 0), s.policyFails()
}

// Opens implements mailbox.KeyOpener.
func (s *scene) Opens(_ *mailbox.Request, _ int, open func(any)) {
	if s.state["opened"] != "" {
		open(s.value("opened", 0))
	}
}

// parse makes a guard of terms joined by "and" or by "or".
func parse(words []string) guards.Guard[scene, int] {
	var terms []guards.Guard[scene, int]
	join := guards.And[scene, int]
	for _, word := range words {
		switch word {
		case "and":
		case "or":
			join = guards.Or[scene, int]
		default:
			terms = append(terms, term(word))
		}
	}
	return join(terms...)
}

func term(word string) guards.Guard[scene, int] {
	at := strings.IndexAny(word, "<>=")
	if name, ok := strings.CutSuffix(word, "arg"); ok && strings.HasSuffix(name, ".") {
		return guards.WhenArg(word, func(s *scene, arg int) bool { return s.value(fmt.Sprint(name, arg), 0) != 0 })
	}
	if at < 0 {
		return guards.Over[int](guards.When(word, func(s *scene) bool { return s.value(word, 0) != 0 }))
	}
	left, op := word[:at], strings.TrimRight(word[at:], "abcdefghijklmnopqrstuvwxyz0123456789.")
	right := word[at+len(op):]
	holds := func(s *scene, arg int) bool {
		l, r := s.value(left, arg), s.value(right, arg)
		return map[string]bool{"<": l < r, "<=": l <= r, ">": l > r, ">=": l >= r, "=": l == r}[op]
	}
	simple := func(s *scene) bool { return holds(s, 0) }
	switch {
	case strings.Contains(word, ".count"):
		return guards.Over[int](guards.WhenWaiting(word, simple))
	case left == "arg":
		return guards.WhenArg(word, holds)
	}
	return guards.Over[int](guards.When(word, simple))
}

// value is that of a number, the argument, a waiting count, or a variable.
func (s *scene) value(name string, arg int) int {
	if n, err := strconv.Atoi(name); err == nil {
		return n
	}
	if name == "arg" {
		return arg
	}
	if op, ok := strings.CutSuffix(name, ".count"); ok {
		return s.k.Waiting(slices.IndexFunc(s.rules.Operations, func(o mailbox.Operation) bool { return o.Name == op }))
	}
	switch v := s.state[name]; v {
	case "panic":
		panic(name)
	case "true":
		return 1
	case "", "false":
		return 0
	default:
		return number([]string{v})
	}
}

func number(vals []string) int {
	if len(vals) == 0 {
		return 0
	}
	n, err := strconv.Atoi(vals[0])
	if err != nil {
		panic(err)
	}
	return n
}

func (s *scene) AskState(op int) (string, error) {
	return s.ask(op, s.rules.Operations[op].Name, 0)
}

func (s *scene) AskRequest(r *mailbox.Request) (string, error) {
	return s.ask(r.Op, s.name(r), r.Record.(int))
}

func (s *scene) ask(op int, whom string, arg int) (falsePart string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("guard %q panicked", s.guards[op].Name())
			s.printf("ask %s: it panics\n", whom)
		}
	}()
	falsePart = s.guards[op].Ask(s, arg)
	if falsePart == "" {
		s.printf("ask %s: %s holds\n", whom, s.guards[op].Name())
	} else {
		s.printf("ask %s: %s is false\n", whom, falsePart)
	}
	return falsePart, nil
}

func (s *scene) next() bool {
	r, err := s.k.Next()
	switch {
	case r == nil:
		return false
	case err != nil:
		s.printf("fail %s: %v\n", s.name(r), err)
	default:
		s.printf("start %s\n", s.name(r))
	}
	return true
}

func (s *scene) inspect(d *datadriven.TestData) {
	if len(d.CmdArgs) == 0 {
		s.cursor = s.k.Inspect()
		return
	}
	more := s.cursor.Next(number([]string{d.CmdArgs[0].Key}), func(r *mailbox.Request, position int) {
		where := "admitted"
		switch r.State() {
		case mailbox.StateEntry:
			where = "in the entry queue"
		case mailbox.StateOverflow:
			where = "in the overflow queue"
		}
		s.printf("%s, %d. %s: %s\n", s.name(r), position, where, s.k.Why(r))
	})
	if !more {
		s.cursor.Close()
		s.printf("the end\n")
	}
}

func (s *scene) set(args []datadriven.CmdArg) {
	for _, a := range args {
		s.state[a.Key] = a.Vals[0]
	}
}

// queues prints where the requests are.
func (s *scene) queues() {
	var parts []string
	for _, where := range []struct {
		name  string
		state mailbox.State
	}{{"overflow", mailbox.StateOverflow}, {"entry", mailbox.StateEntry}, {"admitted", mailbox.StateAdmitted}, {"running", mailbox.StateRunning}} {
		var names []string
		for _, r := range s.calls {
			if r.State() == where.state {
				names = append(names, s.name(r))
			}
		}
		if where.state == mailbox.StateRunning {
			for op, n := range s.k.Untracked() {
				names = append(names, slices.Repeat([]string{s.rules.Operations[op].Name}, n)...)
			}
		}
		if where.state == mailbox.StateRunning {
			if held := s.retained(); held != nil {
				defer func() { s.printf("retained: %s\n", strings.Join(held, " ")) }()
			}
		}
		if names != nil {
			parts = append(parts, where.name+": "+strings.Join(names, " "))
		}
	}
	if parts == nil {
		parts = []string{"idle"}
	}
	s.printf("%s\n", strings.Join(parts, " | "))
}

// retained returns what transactions retain.
func (s *scene) retained() (names []string) {
	for r := range s.k.Running() {
		if r.State() == mailbox.StateRetained {
			names = append(names, fmt.Sprintf("%s#%d(%s)", s.rules.Operations[r.Op].Name, r.Arrival(), r.Held()))
		}
	}
	return names
}

// transaction returns the transaction that the command names, which begins with its first request, and
// again after its release.
func (s *scene) transaction(d *datadriven.TestData) *mailbox.Transaction {
	name := d.CmdArgs[0].Key
	t := s.open[name]
	if t == nil {
		if s.open == nil {
			s.open = map[string]*mailbox.Transaction{}
		}
		t = &mailbox.Transaction{Named: named(name)}
		s.open[name] = t
	}
	if d.Cmd == "release" {
		delete(s.open, name)
	}
	return t
}

func (s *scene) operation(t *testing.T, name string) int {
	i := slices.IndexFunc(s.rules.Operations, func(o mailbox.Operation) bool { return o.Name == name })
	if i < 0 {
		t.Fatalf("no operation %q", name)
	}
	return i
}

// name is what a request is called: its operation and arrival number, and its
// argument if it has one.
func (s *scene) name(r *mailbox.Request) string {
	name := fmt.Sprintf("%s#%d", s.rules.Operations[r.Op].Name, r.Arrival())
	if n := r.Record.(int); n != 0 {
		name += fmt.Sprintf("(%d)", n)
	}
	return name
}

func (s *scene) call(t *testing.T, d *datadriven.TestData) *mailbox.Request {
	name := d.CmdArgs[0].Key
	for _, r := range s.calls {
		if n, _, _ := strings.Cut(s.name(r), "("); n == name {
			return r
		}
	}
	t.Fatalf("%s: no request %q", d.Pos, name)
	return nil
}

// What docs/design.md shows of a transcript is in its file.
func TestTheDesignShowsARealTranscript(t *testing.T) {
	page, err := os.ReadFile("../docs/design.md")
	require.NoError(t, err)
	shown := regexp.MustCompile("(?s)`mailbox/testdata/(\\w+)`[^`]*```\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, shown)
	for _, one := range shown {
		file, err := os.ReadFile("testdata/" + one[1])
		require.NoError(t, err)
		require.Contains(t, string(file), one[2], one[1])
	}
}
