package transaction_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/sluice-go/sluice/synchronizer/transaction"
	"github.com/sluice-go/sluice/synchronizer/transaction/boltlog"
	"github.com/sluice-go/sluice/synchronizer/transaction/sqlresource"
)

// A crash test runs a program many times in one directory: a child process, which recovers what the
// one before has left, makes transfers between two banks, and kills itself at a numbered step.
// Its parent checks now and then that both banks agree, and that what was reported is true.

// steps counts the steps of a child, and kills it at one of them.
type steps struct {
	mu sync.Mutex
	n  int
	at int // 0: never
}

func (s *steps) step() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n++; s.n == s.at {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// stepped counts a step before and after each call to a resource.
type stepped struct {
	transaction.Recoverable
	*steps
}

func (r stepped) Prepare(ctx context.Context, b transaction.Branch) (transaction.Vote, error) {
	r.step()
	defer r.step()
	return r.Recoverable.Prepare(ctx, b)
}

func (r stepped) Commit(ctx context.Context, id uuid.UUID) error {
	r.step()
	defer r.step()
	return r.Recoverable.Commit(ctx, id)
}

func (r stepped) Rollback(ctx context.Context, id uuid.UUID) error {
	r.step()
	defer r.step()
	return r.Recoverable.Rollback(ctx, id)
}

// steppedLog counts a step before and after each call to a log.
type steppedLog struct {
	transaction.Log
	*steps
}

func (l steppedLog) Commit(ctx context.Context, id uuid.UUID, participants []string) error {
	l.step()
	defer l.step()
	return l.Log.Commit(ctx, id, participants)
}

func (l steppedLog) Committed(ctx context.Context, id uuid.UUID) (bool, error) {
	l.step()
	defer l.step()
	return l.Log.Committed(ctx, id)
}

func (l steppedLog) Done(ctx context.Context, id uuid.UUID) error {
	l.step()
	defer l.step()
	return l.Log.Done(ctx, id)
}

// steppedLast counts steps of a last resource.
type steppedLast struct {
	steppedLog
	last transaction.LastResource
}

func (l steppedLast) Rollback(ctx context.Context, id uuid.UUID) error {
	l.step()
	defer l.step()
	return l.last.Rollback(ctx, id)
}

// file is a bank in a directory: a durable resource with one balance. A prepared change is a file
// of its own; the balance comes with the changes that it contains.
type file struct {
	dir, name string
	*steps

	mu      sync.Mutex
	changes map[uuid.UUID]int
}

type fileState struct {
	Balance int
	Applied []uuid.UUID
}

type filePrepared struct {
	Log    string
	Change int
}

func openFile(dir, name string, balance int, s *steps) *file {
	f := &file{dir: filepath.Join(dir, name), name: name, steps: s, changes: map[uuid.UUID]int{}}
	must(os.MkdirAll(f.dir, 0o700))
	if _, err := os.Stat(f.path("state")); errors.Is(err, fs.ErrNotExist) {
		f.write("state", fileState{Balance: balance})
	}
	return f
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (f *file) path(name string) string { return filepath.Join(f.dir, name) }

// write replaces a file in one step. There is no sync: the machine does not crash here.
func (f *file) write(name string, value any) {
	content, err := json.Marshal(value)
	must(err)
	must(os.WriteFile(f.path("new"), content, 0o600))
	f.step()
	must(os.Rename(f.path("new"), f.path(name)))
	f.step()
}

func (f *file) read(name string, value any) bool {
	content, err := os.ReadFile(f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	must(err)
	must(json.Unmarshal(content, value))
	return true
}

func (f *file) state() (s fileState) {
	f.read("state", &s)
	return s
}

func (f *file) Name() string { return f.name }

func (f *file) add(id uuid.UUID, change int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes[id] = change
}

func (f *file) Prepare(_ context.Context, b transaction.Branch) (transaction.Vote, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write(b.Transaction.String(), filePrepared{b.Log, f.changes[b.Transaction]})
	return transaction.Prepared, nil
}

func (f *file) Commit(_ context.Context, id uuid.UUID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var p filePrepared
	if !f.read(id.String(), &p) {
		return nil
	}
	s := f.state()
	if !slices.Contains(s.Applied, id) {
		f.write("state", fileState{s.Balance + p.Change, []uuid.UUID{id}})
	}
	must(os.Remove(f.path(id.String())))
	return nil
}

func (f *file) Rollback(_ context.Context, id uuid.UUID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.changes, id)
	if err := os.Remove(f.path(id.String())); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (f *file) InDoubt(context.Context) (list []transaction.Branch, err error) {
	entries, err := os.ReadDir(f.dir)
	for _, e := range entries {
		var p filePrepared
		if id, err := uuid.Parse(e.Name()); err == nil && f.read(e.Name(), &p) {
			list = append(list, transaction.Branch{Transaction: id, Log: p.Log})
		}
	}
	return list, err
}

// bank is one side of the transfers.
type bank struct {
	change  func(ctx context.Context, t transaction.Registrar, by int) error
	balance func() int
}

// banks are what a child or its parent opens.
type banks struct {
	a, b      bank
	log       transaction.Log   // for decisions; nil: the last resource
	logs      []transaction.Log // for recovery
	resources []transaction.Recoverable
	close     func()
}

func (f *file) bank(r transaction.Recoverable) bank {
	return bank{
		change: func(_ context.Context, t transaction.Registrar, by int) error {
			f.add(t.ID(), by)
			return t.Register(r)
		},
		balance: func() int { return f.state().Balance },
	}
}

func openLog(dir string) *boltlog.Log {
	log, err := boltlog.Open(filepath.Join(dir, "log"), time.Minute)
	must(err)
	return log
}

const initial = 1000

// twoFiles are two durable resources, with a log on bbolt.
func twoFiles(dir string, s *steps) banks {
	a, b := openFile(dir, "a", initial, s), openFile(dir, "b", initial, s)
	ra, rb := stepped{a, s}, stepped{b, s}
	log := openLog(dir)
	return banks{
		a: a.bank(ra), b: b.bank(rb), log: steppedLog{log, s}, logs: []transaction.Log{steppedLog{log, s}},
		resources: []transaction.Recoverable{ra, rb},
		close:     func() { must(log.Close()) },
	}
}

// fileAndSQLite are a durable resource, and a database that cannot prepare.
func fileAndSQLite(dir string, s *steps) banks {
	a := openFile(dir, "a", initial, s)
	ra := stepped{a, s}
	db, err := sql.Open("sqlite", filepath.Join(dir, "db")+"?_pragma=busy_timeout(60000)&_pragma=synchronous(off)&_txlock=immediate")
	must(err)
	for _, statement := range []string{
		"CREATE TABLE IF NOT EXISTS bank (id INTEGER PRIMARY KEY, balance INTEGER)",
		fmt.Sprintf("INSERT OR IGNORE INTO bank VALUES (1, %d)", initial),
	} {
		_, err := db.Exec(statement)
		must(err)
	}
	last, err := sqlresource.New(context.Background(), db, "sqlite", sqlresource.CreateTable())
	must(err)
	return banks{
		a: a.bank(ra),
		b: bank{
			change: func(ctx context.Context, t transaction.Registrar, by int) error {
				tx, err := last.Tx(ctx, lastStepped{t, s})
				if err != nil {
					return err
				}
				_, err = tx.ExecContext(ctx, "UPDATE bank SET balance = balance + ? WHERE id = 1", by)
				return err
			},
			balance: func() (n int) {
				must(db.QueryRow("SELECT balance FROM bank WHERE id = 1").Scan(&n))
				return n
			},
		},
		logs:      []transaction.Log{steppedLog{last, s}},
		resources: []transaction.Recoverable{ra},
		close: func() {
			must(last.Flush(context.Background()))
			must(db.Close())
		},
	}
}

// lastStepped registers last resources so that their steps are counted.
type lastStepped struct {
	transaction.Registrar
	*steps
}

func (r lastStepped) RegisterLast(last transaction.LastResource) error {
	return r.Registrar.RegisterLast(steppedLast{steppedLog{last, r.steps}, last})
}

// childTests are what a child can run, by name.
var childTests = map[string]func(dir string, s *steps) banks{
	"two files":       twoFiles,
	"file and SQLite": fileAndSQLite,
}

// The child's environment.
const (
	crashTest = "SLUICE_CRASH_TEST" // which test
	crashDir  = "SLUICE_CRASH_DIR"
	crashAt   = "SLUICE_CRASH_AT" // the step
	crashSeed = "SLUICE_CRASH_SEED"
)

// TestCrashChild is the child of the crash tests, and does nothing by itself.
func TestCrashChild(t *testing.T) {
	open := childTests[os.Getenv(crashTest)]
	if open == nil {
		return
	}
	at, err := strconv.Atoi(os.Getenv(crashAt))
	require.NoError(t, err)
	seed, err := strconv.ParseUint(os.Getenv(crashSeed), 10, 64)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(seed, 0))
	b := open(os.Getenv(crashDir), &steps{at: at})
	_, err = transaction.Recover(t.Context(), b.logs, b.resources...)
	require.NoError(t, err)
	for range 3 {
		amount := random.IntN(100) - 50
		p := transaction.NewParticipants(uuid.Must(uuid.NewV7()), b.log, time.Minute)
		require.NoError(t, b.a.change(t.Context(), p, -amount))
		require.NoError(t, b.b.change(t.Context(), p, amount))
		if random.IntN(4) == 0 {
			require.NoError(t, p.Rollback(t.Context()))
			continue
		}
		fmt.Println("transfer", amount)
		require.NoError(t, p.Commit(t.Context()))
		fmt.Println("committed")
	}
	b.close()
	fmt.Println("end")
}

func TestBanksAgreeAfterCrashesAtEveryStep(t *testing.T) {
	for _, name := range []string{"two files", "file and SQLite"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runCrashTest(t, name, childTests[name])
		})
	}
}

func runCrashTest(t *testing.T, name string, open func(string, *steps) banks) {
	const runs = 200
	dir := t.TempDir()
	possible := map[int]bool{initial: true} // balances of b
	crashed, recovered, ended := 0, 0, 0
	for run := range runs {
		at := run + 1 // every step once, then any
		if at > 60 {
			at = rand.IntN(60) + 1
		}
		child := exec.Command(os.Args[0], "-test.run=^TestCrashChild$", "-test.timeout=1m")
		child.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", crashTest+"="+name, crashDir+"="+dir, fmt.Sprintf("%s=%d", crashAt, at), fmt.Sprintf("%s=%d", crashSeed, rand.Uint64()))
		out, err := child.Output()
		killed := child.ProcessState.Sys().(syscall.WaitStatus).Signaled()
		if err != nil && !killed {
			t.Fatalf("step %d: %v\n%s", at, err, out)
		}
		if killed {
			crashed++
		} else if bytes.Contains(out, []byte("end\n")) {
			ended++
		}
		possible = afterwards(possible, out)
		if rand.IntN(2) == 0 {
			continue // the next child recovers
		}
		b := open(dir, &steps{})
		list, err := transaction.Recover(t.Context(), b.logs, b.resources...)
		require.NoError(t, err)
		recovered += len(list)
		x, y := b.a.balance(), b.b.balance()
		require.Equal(t, 2*initial, x+y, "after a crash at step %d: %d, %d", at, x, y)
		require.True(t, possible[y], "after a crash at step %d the balance is %d, and could be %v", at, y, slices.Collect(maps.Keys(possible)))
		possible = map[int]bool{y: true}
		for _, l := range b.logs {
			records, err := l.Unfinished(t.Context())
			require.NoError(t, err)
			require.Empty(t, records)
		}
		for _, r := range b.resources {
			branches, err := r.InDoubt(t.Context())
			require.NoError(t, err)
			require.Empty(t, branches)
		}
		b.close()
	}
	t.Logf("%d runs: %d were killed, %d ended, %d branches recovered by the parent", runs, crashed, ended, recovered)
	require.Greater(t, crashed, runs/4)
	require.Positive(t, recovered)
}

// afterwards returns the balances that are possible after a child has said this: a transfer that
// was reported as committed has been made, and one that was not reported may have been.
func afterwards(possible map[int]bool, out []byte) map[int]bool {
	lines := bufio.NewScanner(bytes.NewReader(out))
	under := false
	amount := 0
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "transfer "); ok {
			amount, _ = strconv.Atoi(rest)
			under = true
		}
		if lines.Text() == "committed" {
			under = false
			next := map[int]bool{}
			for n := range possible {
				next[n+amount] = true
			}
			possible = next
		}
	}
	if !under {
		return possible
	}
	next := maps.Clone(possible)
	for n := range possible {
		next[n+amount] = true
	}
	return next
}
