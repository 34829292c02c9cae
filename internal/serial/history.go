// Package serial checks that a recorded history of transactions over append-only lists is strictly serializable.
// A test has each of its transactions append values to named lists and read lists, records what they did with a
// [Recorder], and hands the history to [Check], which reports each [Anomaly] and explains it in words.
//
// The method is that of Elle (Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental
// Observations", VLDB 2020): a list that has been read shows the order of its appends, so the dependencies between
// transactions can be inferred, and a cycle of dependencies shows that no serial order explains the history. Kinds
// of anomalies have the names of Adya ("Weak Consistency: A Generalized Theory and Optimistic Implementations for
// Distributed Transactions", 1999).
//
// Every list is empty at the beginning, and each value is appended to a list at most once in the whole history, also
// by the attempts of a transaction that is run again. Then Check reports nothing if and only if some order of the
// committed transactions, and of some of those whose outcome is unknown, explains every committed read and agrees
// with real time.
package serial

import (
	"fmt"
	"slices"
	"strings"
)

// Status is the outcome of a transaction.
type Status int

// The outcomes of a transaction.
const (
	Unknown   Status = iota // it may have committed; it has if a committed transaction read one of its appends
	Committed               // all its effects stand
	Aborted                 // it must not have had any effect; its reads are not checked
)

// Txn is a transaction of a history, and what it did in this order.
type Txn struct {
	ID     int // unique in the history
	Status Status
	// Start is a logical time before the first operation and End one after the commit; 0 where it is not known. A
	// transaction that committed before another started comes before it. Without times, Check looks for
	// serializability that is not strict.
	Start, End int64
	Ops        []Op

	late bool // recorded after its end
}

// Op is an operation of a transaction: [Append] or [Read].
type Op struct {
	read  bool
	key   string
	value int
	list  []int
}

// Append returns the operation that appends the value to the list of that name.
func Append(key string, value int) Op { return Op{key: key, value: value} }

// Read returns the operation that read the list of that name and found the values. It keeps the slice.
func Read(key string, list []int) Op { return Op{read: true, key: key, list: list} }

// String describes the operation, as in "read x=[1 2]".
func (o Op) String() string {
	if o.read {
		return fmt.Sprintf("read %s=%s", o.key, listText(o.list))
	}
	return fmt.Sprintf("append %d to %s", o.value, o.key)
}

// Kind is a kind of anomaly. The kinds of dependency cycles are ordered G0, G1c, GSingle, G2, RealTime: a set of
// transactions that depend on each other is reported once, by the first kind of cycle that it contains.
type Kind string

// The kinds of anomalies.
const (
	G0                Kind = "G0"                 // a cycle of appends (dirty write)
	G1a               Kind = "G1a"                // a read of an append of an aborted transaction (aborted read)
	G1b               Kind = "G1b"                // a read between two appends of one transaction (intermediate read)
	G1c               Kind = "G1c"                // a cycle of appends and reads of them (circular information flow)
	GSingle           Kind = "G-single"           // a cycle in which one read missed an append (read skew)
	G2                Kind = "G2"                 // a cycle in which several reads missed an append (write skew)
	RealTime          Kind = "real-time"          // a cycle that needs the real-time order: serializable, but not strictly
	LostUpdate        Kind = "lost update"        // several transactions read the same version of a list, and appended to it
	IncompatibleOrder Kind = "incompatible order" // reads of a list of which none begins with the other
	DuplicateAppend   Kind = "duplicate append"   // a value was appended twice, or read twice in one list
	Internal          Kind = "internal"           // a read contradicts what its own transaction did
	Garbage           Kind = "garbage"            // a read of a value that has not been appended
	Malformed         Kind = "malformed"          // not a history: the test is wrong
)

// Anomaly is something that no strictly serializable history contains.
type Anomaly struct {
	Kind Kind
	Txns []int  // the transactions that take part; for a cycle in its order
	Text string // the explanation
}

// String returns the kind and the explanation.
func (a Anomaly) String() string { return string(a.Kind) + ": " + a.Text }

// listText describes a list; of a long list it shows the last values.
func listText(list []int) string {
	const shown = 5
	if len(list) > shown {
		return "[… " + strings.TrimPrefix(fmt.Sprint(list[len(list)-shown:]), "[")
	}
	return fmt.Sprint(list)
}

// hasPrefix reports whether the list begins with the other one.
func hasPrefix(list, prefix []int) bool {
	return len(prefix) <= len(list) && slices.Equal(list[:len(prefix)], prefix)
}
