package serial_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/serial"
)

// store is lists that are locked in the order of their keys.
type store struct {
	locks [8]sync.Mutex
	lists [8][]int
}

func TestNothingIsFoundInTheHistoryOf64GoroutinesThatLockTheirLists(t *testing.T) {
	var (
		s        store
		recorder serial.Recorder
		wg       sync.WaitGroup
	)
	for g := range 64 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 0))
			for n := range 50 {
				keys := random.Perm(len(s.lists))[:3]
				slices.Sort(keys)
				txn := recorder.Begin()
				for _, k := range keys {
					s.locks[k].Lock()
				}
				abort := random.IntN(8) == 0
				for i, k := range keys {
					value := (g*50+n)*3 + i
					txn.Read(fmt.Sprint(k), s.lists[k])
					txn.Append(fmt.Sprint(k), value)
					if !abort {
						s.lists[k] = append(s.lists[k], value)
						txn.Read(fmt.Sprint(k), s.lists[k])
					}
				}
				for _, k := range keys {
					s.locks[k].Unlock()
				}
				if abort {
					txn.End(serial.Aborted)
				} else {
					txn.End(serial.Committed)
				}
			}
		})
	}
	for range 20 {
		for _, txn := range recorder.History() { // while transactions run
			require.NotZero(t, txn.Start)
		}
	}
	wg.Wait()
	history := recorder.History()
	require.Len(t, history, 64*50)
	require.Empty(t, serial.Check(history))
}

func TestOperationsInParallelAreRecordedInOneTransaction(t *testing.T) {
	var (
		recorder serial.Recorder
		wg       sync.WaitGroup
	)
	txn := recorder.Begin()
	for g := range 64 {
		wg.Go(func() {
			txn.Append(fmt.Sprint(g), g)
			txn.Read(fmt.Sprint(g), []int{g})
		})
	}
	wg.Wait()
	txn.End(serial.Committed)
	require.Equal(t, 1, txn.ID())
	require.Len(t, recorder.History()[0].Ops, 128)
	require.Empty(t, serial.Check(recorder.History()))
}

func TestAReadKeepsWhatWasFound(t *testing.T) {
	var recorder serial.Recorder
	list := []int{1, 2}
	txn := recorder.Begin()
	txn.Read("x", list)
	txn.Append("x", 3)
	list[0] = 9
	require.Equal(t, "[read x=[1 2] append 3 to x]", fmt.Sprint(recorder.History()[0].Ops))
}

func TestATransactionThatHasNotEndedIsUnknown(t *testing.T) {
	var recorder serial.Recorder
	recorder.Begin().Append("x", 1)
	reader := recorder.Begin()
	reader.Read("x", []int{})
	reader.End(serial.Committed)
	require.Equal(t, serial.Unknown, recorder.History()[0].Status)
	require.Empty(t, serial.Check(recorder.History()))
}

func TestWhatIsRecordedAfterTheEndIsReported(t *testing.T) {
	for name, late := range map[string]func(*serial.Recording){
		"an operation": func(r *serial.Recording) { r.Append("x", 1) },
		"another end":  func(r *serial.Recording) { r.End(serial.Aborted) },
	} {
		t.Run(name, func(t *testing.T) {
			var recorder serial.Recorder
			txn := recorder.Begin()
			txn.End(serial.Committed)
			late(txn)
			found := serial.Check(recorder.History())
			require.Len(t, found, 1)
			require.Equal(t, "malformed: T1 was recorded after it had ended", found[0].String())
		})
	}
}

func ExampleCheck() {
	var recorder serial.Recorder
	a, b := recorder.Begin(), recorder.Begin()
	a.Read("x", nil)
	b.Read("y", nil)
	a.Append("y", 1)
	b.Append("x", 2)
	a.End(serial.Committed)
	b.End(serial.Committed)
	for _, anomaly := range serial.Check(recorder.History()) {
		fmt.Println(anomaly)
	}
	// Output: G2: T1 read x=[], T2 appended 2 to x: T1 before T2; T2 read y=[], T1 appended 1 to y: T2 before T1
}
