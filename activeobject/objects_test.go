package activeobject_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// Eight shared objects, as a user would write them: first plain sequential Go,
// which can be tested without any runtime; then the declaration, once; then use.

// 1. A counter: procedures and a function.

type Counter struct{ n int }

func (c *Counter) Add(k int)  { c.n += k }
func (c *Counter) Reset()     { c.n = 0 }
func (c *Counter) Value() int { return c.n }

var (
	counters     = activeobject.NewType[Counter]("counter")
	counterAdd   = activeobject.Procedure(counters, "add", activeobject.Arg((*Counter).Add))
	counterReset = activeobject.Procedure(counters, "reset", activeobject.Plain((*Counter).Reset))
	counterValue = activeobject.Function(counters, "value", activeobject.Result((*Counter).Value))
)

func TestCounter(t *testing.T) {
	everywhere(t, func(t *testing.T, s *scene) {
		visits := newObject(t, s, counters, &Counter{})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 100 {
					counterAdd.Call(background, visits, 1)
				}
			})
		}
		all.Wait()
		n, err := counterValue.Call(background, visits, nil)
		require.NoError(t, err)
		require.Equal(t, 800, n)
		_, err = counterReset.Call(background, visits, nil)
		require.NoError(t, err)
	})
}

// 2. An account: an entry whose guard looks at the argument, and a client proxy
// for programs that prefer to call methods.

type Account struct{ balance int64 }

func (a *Account) Deposit(amount int64) (int64, error) {
	if amount < 0 {
		return a.balance, fmt.Errorf("deposit of %d", amount)
	}
	a.balance += amount
	return a.balance, nil
}

func (a *Account) Withdraw(amount int64) (int64, error) {
	a.balance -= amount
	return a.balance, nil
}

func (a *Account) Covers(amount int64) bool { return a.balance >= amount }
func (a *Account) Balance() int64           { return a.balance }

var (
	accounts        = activeobject.NewType[Account]("account")
	accountDeposit  = activeobject.Procedure(accounts, "deposit", (*Account).Deposit)
	accountWithdraw = activeobject.Entry(accounts, "withdraw", (*Account).Withdraw).WhenArg("covered", (*Account).Covers)
	accountBalance  = activeobject.Function(accounts, "balance", activeobject.Result((*Account).Balance))
)

// SharedAccount is the client proxy of an Account.
type SharedAccount struct {
	object *activeobject.Object[Account]
}

func OpenAccount(system *actor.System, balance int64, options ...activeobject.Option) (SharedAccount, error) {
	o, err := activeobject.New(system, accounts, &Account{balance: balance}, options...)
	return SharedAccount{o}, err
}

// Withdraw waits until the account covers the amount.
func (a SharedAccount) Withdraw(ctx context.Context, amount int64) (left int64, err error) {
	return accountWithdraw.Call(ctx, a.object, amount)
}

func (a SharedAccount) Deposit(ctx context.Context, amount int64) (balance int64, err error) {
	return accountDeposit.Call(ctx, a.object, amount)
}

func (a SharedAccount) Balance(ctx context.Context) (int64, error) {
	return accountBalance.Call(ctx, a.object, nil)
}

func TestAccount(t *testing.T) {
	plain := &Account{}
	plain.Deposit(10)
	require.True(t, plain.Covers(10), "it is plain Go")

	everywhere(t, func(t *testing.T, s *scene) {
		account, err := OpenAccount(s.system, 30, s.options...)
		require.NoError(t, err)
		left, err := account.Withdraw(background, 20)
		require.NoError(t, err)
		require.EqualValues(t, 10, left)

		withdrawn := make(chan int64, 1)
		go func() {
			left, _ := account.Withdraw(background, 100)
			withdrawn <- left
		}()
		waiting(t, account.object, accountWithdraw, 1)
		_, err = account.Deposit(background, -1)
		require.EqualError(t, err, "deposit of -1")
		_, err = account.Deposit(background, 95)
		require.NoError(t, err)
		require.EqualValues(t, 5, soon(t, s.system, withdrawn))
		balance, err := account.Balance(background)
		require.NoError(t, err)
		require.EqualValues(t, 5, balance)
	})
}

// 3. A bounded buffer of any type of item. The operations of a generic object are
// declared once for each type of item.

type Buffer[T any] struct {
	items    []T
	capacity int
}

func (b *Buffer[T]) Put(item T)    { b.items = append(b.items, item) }
func (b *Buffer[T]) NotFull() bool { return len(b.items) < b.capacity }
func (b *Buffer[T]) NotEmpty() bool {
	return len(b.items) > 0
}

func (b *Buffer[T]) Take() T {
	item := b.items[0]
	b.items = slices.Delete(b.items, 0, 1)
	return item
}

// Buffers are the operations of the buffers of one type of item.
type Buffers[T any] struct {
	Type *activeobject.Type[Buffer[T]]
	Put  *activeobject.Operation[Buffer[T], T, None]
	Take *activeobject.Operation[Buffer[T], None, T]
}

func DeclareBuffers[T any]() Buffers[T] {
	t := activeobject.NewType[Buffer[T]]("buffer")
	return Buffers[T]{
		Type: t,
		Put:  activeobject.Entry(t, "put", activeobject.Arg((*Buffer[T]).Put)).When("not full", (*Buffer[T]).NotFull),
		Take: activeobject.Entry(t, "take", activeobject.Result((*Buffer[T]).Take)).When("not empty", (*Buffer[T]).NotEmpty),
	}
}

var (
	wordBuffers   = DeclareBuffers[string]()
	numberBuffers = DeclareBuffers[int]()
)

func TestBuffer(t *testing.T) {
	everywhere(t, func(t *testing.T, s *scene) {
		words := newObject(t, s, wordBuffers.Type, &Buffer[string]{capacity: 1})
		wordBuffers.Put.Call(background, words, "hello")
		word, err := wordBuffers.Take.Call(background, words, nil)
		require.NoError(t, err)
		require.Equal(t, "hello", word)

		const producers, items = 4, 250
		numbers := newObject(t, s, numberBuffers.Type, &Buffer[int]{capacity: 3})
		var all sync.WaitGroup
		for p := range producers {
			all.Go(func() {
				for i := range items {
					numberBuffers.Put.Call(background, numbers, p*items+i)
				}
			})
		}
		taken := make(chan int, producers*items)
		for range producers {
			all.Go(func() {
				for range items {
					n, _ := numberBuffers.Take.Call(background, numbers, nil)
					taken <- n
				}
			})
		}
		all.Wait()
		close(taken)
		var got []int
		for n := range taken {
			got = append(got, n)
		}
		slices.Sort(got)
		for i := range producers * items {
			require.Equal(t, i, got[i])
		}
	})
}

// 4. A counting semaphore.

type Semaphore struct{ free int }

func (s *Semaphore) Acquire(n int)     { s.free -= n }
func (s *Semaphore) Release(n int)     { s.free += n }
func (s *Semaphore) Enough(n int) bool { return s.free >= n }

var (
	semaphores       = activeobject.NewType[Semaphore]("semaphore")
	semaphoreAcquire = activeobject.Entry(semaphores, "acquire", activeobject.Arg((*Semaphore).Acquire)).WhenArg("enough free", (*Semaphore).Enough)
	semaphoreRelease = activeobject.Procedure(semaphores, "release", activeobject.Arg((*Semaphore).Release))
)

func TestSemaphore(t *testing.T) {
	everywhere(t, func(t *testing.T, s *scene) {
		permits := newObject(t, s, semaphores, &Semaphore{free: 3})
		inside := make(chan struct{}, 3)
		var all sync.WaitGroup
		for n := range 3 {
			for range 4 {
				all.Go(func() {
					for range 50 {
						semaphoreAcquire.Call(background, permits, n+1)
						for range n + 1 {
							select {
							case inside <- struct{}{}:
							default:
								t.Error("more inside than there are permits")
								return
							}
						}
						for range n + 1 {
							<-inside
						}
						semaphoreRelease.Call(background, permits, n+1)
					}
				})
			}
		}
		all.Wait()
		// Many at once are acquired in one step: no caller holds some and waits for more.
		_, err := semaphoreAcquire.Try(background, permits, 3)
		require.NoError(t, err)
		_, err = semaphoreAcquire.Try(background, permits, 1)
		require.ErrorIs(t, err, activeobject.ErrRefused)
	})
}

// 5. A burst lock: release lets all requests pass that wait at that moment, and none
// that comes later. Its body reads how many wait for the operation that it belongs to.
// So that operation is assigned in init, as an initializer would make a cycle.

type BurstLock struct {
	activeobject.Queues
	open bool
}

func (b *BurstLock) Release()   { b.open = b.Waiting(burstPass) > 0 }
func (b *BurstLock) Open() bool { return b.open }

func (b *BurstLock) Pass() {
	if b.Waiting(burstPass) == 0 {
		b.open = false // the last of the burst
	}
}

var (
	bursts       = activeobject.NewType[BurstLock]("burst lock")
	burstPass    *activeobject.Operation[BurstLock, None, None]
	burstRelease *activeobject.Operation[BurstLock, None, None]
)

func init() {
	burstPass = activeobject.Entry(bursts, "pass", activeobject.Plain((*BurstLock).Pass)).When("open", (*BurstLock).Open)
	burstRelease = activeobject.Procedure(bursts, "release", activeobject.Plain((*BurstLock).Release))
}

func TestBurstLock(t *testing.T) {
	everywhere(t, func(t *testing.T, s *scene) {
		lock := newObject(t, s, bursts, &BurstLock{})
		for range 3 {
			var burst []<-chan outcome[None]
			for range 10 {
				burst = append(burst, calling(background, lock, burstPass, nil))
			}
			waiting(t, lock, burstPass, 10)
			burstRelease.Call(background, lock, nil)
			for _, c := range burst {
				require.NoError(t, soon(t, s.system, c).err)
			}
			_, err := burstPass.Try(background, lock, nil)
			require.ErrorIs(t, err, activeobject.ErrRefused, "the burst is over")
		}
	})
}

// 6. A cyclic barrier: each party that arrives waits until all have.

type Barrier struct {
	activeobject.Queues
	parties, leaving int
}

// AllHere also looks at the waiting count; the request that arrives counts, too.
func (b *Barrier) AllHere() bool { return b.leaving > 0 || b.Waiting(barrierArrive) >= b.parties }

// Leave returns how many have yet to leave: 0 for the last.
func (b *Barrier) Leave() int {
	if b.leaving == 0 {
		b.leaving = b.parties
	}
	b.leaving--
	return b.leaving
}

var (
	barriers      = activeobject.NewType[Barrier]("barrier")
	barrierArrive *activeobject.Operation[Barrier, None, int]
)

func init() {
	barrierArrive = activeobject.Entry(barriers, "arrive", activeobject.Result((*Barrier).Leave)).WhenWaiting("all are here", (*Barrier).AllHere)
}

func TestBarrier(t *testing.T) {
	everywhere(t, func(t *testing.T, s *scene) {
		const parties, rounds = 4, 100
		barrier := newObject(t, s, barriers, &Barrier{parties: parties})
		var mu sync.Mutex
		var arrived, left [rounds]int
		var all sync.WaitGroup
		for range parties {
			all.Go(func() {
				for round := range rounds {
					mu.Lock()
					arrived[round]++
					mu.Unlock()
					barrierArrive.Call(background, barrier, nil)
					mu.Lock()
					left[round]++
					if arrived[round] != parties {
						t.Errorf("one left round %d when %d had arrived", round, arrived[round])
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		require.Equal(t, parties, left[rounds-1])
	})
}

// 7. A key-value store: arguments of several parts, a result that may be missing,
// and an entry that waits for a key.

type Store struct{ values map[string]string }

type Pair struct{ Key, Value string }

func (s *Store) Set(p Pair)          { s.values[p.Key] = p.Value }
func (s *Store) Has(key string) bool { _, ok := s.values[key]; return ok }

func (s *Store) Get(key string) (string, error) {
	if !s.Has(key) {
		return "", fmt.Errorf("no key %q", key)
	}
	return s.values[key], nil
}

func (s *Store) Remove(key string) (string, error) {
	v := s.values[key]
	delete(s.values, key)
	return v, nil
}

var (
	stores      = activeobject.NewType[Store]("store")
	storeSet    = activeobject.Procedure(stores, "set", activeobject.Arg((*Store).Set))
	storeGet    = activeobject.Function(stores, "get", (*Store).Get)
	storeRemove = activeobject.Entry(stores, "remove", (*Store).Remove).WhenArg("key is there", (*Store).Has)
)

func TestStore(t *testing.T) {
	everywhere(t, func(t *testing.T, s *scene) {
		store := newObject(t, s, stores, &Store{values: map[string]string{}})
		_, err := storeGet.Call(background, store, "go")
		require.EqualError(t, err, `no key "go"`)
		a, b := calling(background, store, storeRemove, "a"), calling(background, store, storeRemove, "b")
		waiting(t, store, storeRemove, 2)
		storeSet.Call(background, store, Pair{"b", "2"})
		require.Equal(t, outcome[string]{"2", nil}, soon(t, s.system, b))
		storeSet.Call(background, store, Pair{"a", "1"})
		require.Equal(t, outcome[string]{"1", nil}, soon(t, s.system, a))
	})
}

// 8. A surgery: an entry that names its own waiting count, so that a patient who is
// called in learns how many still sit in the waiting room.

type Surgery struct {
	activeobject.Queues
	busy bool
}

func (s *Surgery) Free() bool { return !s.busy }
func (s *Surgery) Next()      { s.busy = false }

func (s *Surgery) Enter() (stillWaiting int) {
	s.busy = true
	return s.Waiting(surgeryEnter)
}

var (
	surgeries    = activeobject.NewType[Surgery]("surgery")
	surgeryEnter *activeobject.Operation[Surgery, None, int]
	surgeryNext  = activeobject.Procedure(surgeries, "next", activeobject.Plain((*Surgery).Next))
)

func init() {
	surgeryEnter = activeobject.Entry(surgeries, "enter", activeobject.Result((*Surgery).Enter)).When("doctor is free", (*Surgery).Free)
}

func TestSurgery(t *testing.T) {
	everywhere(t, func(t *testing.T, s *scene) {
		surgery := newObject(t, s, surgeries, &Surgery{})
		n, err := surgeryEnter.Call(background, surgery, nil)
		require.NoError(t, err)
		require.Zero(t, n)
		var patients []activeobject.Future[int]
		for range 3 {
			patients = append(patients, surgeryEnter.Send(background, surgery, nil))
		}
		waiting(t, surgery, surgeryEnter, 3)
		for i, p := range patients {
			surgeryNext.Call(background, surgery, nil)
			require.Equal(t, outcome[int]{2 - i, nil}, soon(t, s.system, awaiting(background, p)))
		}
	})
}
