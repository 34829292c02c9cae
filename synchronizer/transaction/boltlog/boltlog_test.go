package boltlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/sluice-go/sluice/synchronizer/transaction"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("BOLTLOG_FULL_DISK"); path != "" {
		fullDisk(path)
		return
	}
	if path := os.Getenv("BOLTLOG_HOLD"); path != "" {
		l, err := Open(path, 0)
		fmt.Println(l != nil, err)
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	os.Exit(m.Run())
}

func open(t *testing.T, path string) *Log {
	t.Helper()
	l, err := Open(path, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

func committed(t *testing.T, l *Log, id uuid.UUID) bool {
	t.Helper()
	yes, err := l.Committed(t.Context(), id)
	require.NoError(t, err)
	return yes
}

func TestDecisionsAndTheNameOutliveTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := open(t, path)
	name := l.Name()
	require.NotEmpty(t, name)
	a, b, c := uuid.New(), uuid.New(), uuid.New()
	for _, id := range []uuid.UUID{a, b, c} {
		require.NoError(t, l.Commit(t.Context(), id, []string{"x", "y"}))
	}
	require.NoError(t, l.Done(t.Context(), b))
	list, err := l.Unfinished(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.Commit(t.Context(), uuid.New(), nil), transaction.ErrNotCommitted)

	l = open(t, path)
	require.Equal(t, name, l.Name())
	list, err = l.Unfinished(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []transaction.Record{{Transaction: a, Participants: []string{"x", "y"}}, {Transaction: c, Participants: []string{"x", "y"}}}, list)
	require.True(t, committed(t, l, a))
	require.False(t, committed(t, l, b))

	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left in the directory")
	require.NotEqual(t, name, open(t, path+"2").Name())
}

func TestARecordIsNotWrittenAfterItWasTakenForRolledBack(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "log"))
	id := uuid.New()
	require.False(t, committed(t, l, id))
	require.ErrorIs(t, l.Commit(t.Context(), id, nil), transaction.ErrNotCommitted)
	require.False(t, committed(t, l, id))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, l.Commit(ctx, uuid.New(), nil), transaction.ErrNotCommitted)
}

func TestDecisionsAtTheSameTimeShareSyncs(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "log"))
	const n = 64
	syncs := 0
	reached, gate := make(chan struct{}), make(chan struct{})
	l.commit = func(tx *bolt.Tx) error {
		if syncs++; syncs == 1 {
			close(reached)
			<-gate
		}
		return tx.Commit()
	}
	var all sync.WaitGroup
	ids := make([]uuid.UUID, n)
	commit := func(i int) {
		ids[i] = uuid.New()
		all.Go(func() { assert.NoError(t, l.Commit(t.Context(), ids[i], []string{"x"})) })
	}
	waiting := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.queue)
	}
	commit(0)
	<-reached
	for i := 1; i < n; i++ {
		commit(i)
	}
	for waiting() < n-1 {
		runtime.Gosched()
	}
	close(gate)
	all.Wait()
	require.Equal(t, 2, syncs)
	for _, id := range ids {
		require.True(t, committed(t, l, id))
	}
	list, err := l.Unfinished(t.Context())
	require.NoError(t, err)
	require.Len(t, list, n)
}

// TestAWriteBeforeTheMetaPageIsNoDecision: whatever fails before, there is no record.
func TestAWriteBeforeTheMetaPageIsNoDecision(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "log"))
	old := uuid.New()
	require.NoError(t, l.Commit(t.Context(), old, nil))
	require.NoError(t, l.Done(t.Context(), old))
	id, broken := uuid.New(), errors.New("broken")
	l.commit = func(tx *bolt.Tx) error { return errors.Join(broken, tx.Rollback()) }
	err := l.Commit(t.Context(), id, nil)
	require.ErrorIs(t, err, transaction.ErrNotCommitted)
	require.ErrorIs(t, err, broken)
	require.False(t, committed(t, l, id))

	l.commit = (*bolt.Tx).Commit
	require.NoError(t, l.Commit(t.Context(), uuid.New(), nil), "the log goes on")
	require.Empty(t, l.done)
}

// TestAFailedSyncOfTheMetaPageIsInDoubt until the meta pages have been synced.
func TestAFailedSyncOfTheMetaPageIsInDoubt(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "log"))
	broken := errors.New("broken")
	l.commit = func(tx *bolt.Tx) error { return errors.Join(tx.Commit(), broken) }
	l.sync = func(*os.File) error { return broken }
	id := uuid.New()
	err := l.Commit(t.Context(), id, []string{"x"})
	require.ErrorIs(t, err, broken)
	require.NotErrorIs(t, err, transaction.ErrNotCommitted)
	_, err = l.Committed(t.Context(), id)
	require.ErrorIs(t, err, broken)
	_, err = l.Unfinished(t.Context())
	require.ErrorIs(t, err, broken)
	other := uuid.New()
	require.ErrorIs(t, l.Commit(t.Context(), other, nil), transaction.ErrNotCommitted, "nothing is written meanwhile")

	l.sync, l.commit = (*os.File).Sync, (*bolt.Tx).Commit
	require.True(t, committed(t, l, id))
	require.False(t, committed(t, l, other))
	require.NoError(t, l.Commit(t.Context(), uuid.New(), nil))
}

func TestAPanicOfTheWriterIsInDoubtUntilTheFileIsOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := Open(path, 0)
	require.NoError(t, err)
	l.commit = func(tx *bolt.Tx) error {
		_ = tx.Rollback()
		panic("broken")
	}
	id := uuid.New()
	require.Panics(t, func() { _ = l.Commit(t.Context(), id, nil) })
	_, err = l.Committed(t.Context(), id)
	require.ErrorIs(t, err, errPanicked)
	require.ErrorIs(t, l.Commit(t.Context(), uuid.New(), nil), transaction.ErrNotCommitted)
	require.NoError(t, l.Close())
	require.False(t, committed(t, open(t, path), id))
}

func TestAFileThatIsNotALogIsRefusedAndUnchanged(t *testing.T) {
	directory := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(directory, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	boltFile := func(name string, options *bolt.Options, bucket string) string {
		path := filepath.Join(directory, name)
		db, err := bolt.Open(path, 0o600, options)
		require.NoError(t, err)
		require.NoError(t, db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucket([]byte(bucket))
			return errors.Join(err, b.Put([]byte("format"), []byte("sluice transaction log 2")))
		}))
		require.NoError(t, db.Close())
		return path
	}
	good := filepath.Join(directory, "good")
	l, err := Open(good, 0)
	require.NoError(t, err)
	for range 500 {
		require.NoError(t, l.Commit(t.Context(), uuid.New(), []string{"a rather long name of a resource", "and another"}))
	}
	require.NoError(t, l.Close())
	content, err := os.ReadFile(good)
	require.NoError(t, err)
	zeroed := bytes.Clone(content)
	clear(zeroed[2*os.Getpagesize():])

	for _, path := range []string{
		write("empty", nil),
		write("text", []byte("hello")),
		write("long", bytes.Repeat([]byte("not a database "), 10_000)),
		write("truncated", content[:3*os.Getpagesize()]),
		write("short", content[:100]),
		write("zeroed", zeroed),
		boltFile("other program", nil, "things"),
		boltFile("other program without free list", &bolt.Options{NoFreelistSync: true}, "things"),
		boltFile("later version", nil, "header"),
	} {
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		_, err = Open(path, 0)
		require.ErrorIs(t, err, ErrForeign, path)
		var failed *OpenError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, path, failed.Path)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, before, after, path)
		infoAfter, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, info.ModTime(), infoAfter.ModTime(), path)
	}
	open(t, good)

	pipe := filepath.Join(directory, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err = Open(pipe, 0)
	require.ErrorIs(t, err, ErrForeign)
}

func TestAPathThatCannotBeWrittenIsRefused(t *testing.T) {
	directory := t.TempDir()
	_, err := Open(filepath.Join(directory, "no such directory", "log"), 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Open(directory, 0)
	require.ErrorIs(t, err, syscall.EISDIR)
	_, err = Open("/proc/no-such-log", 0)
	var failed *OpenError
	require.ErrorAs(t, err, &failed)
}

func TestAFileInUseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := open(t, path)
	_, err := Open(path, 0)
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, l.Close())

	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "BOLTLOG_HOLD="+path)
	in, err := child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line := make([]byte, 100)
	n, err := out.Read(line)
	require.NoError(t, err)
	require.Equal(t, "true <nil>\n", string(line[:n]))
	_, err = Open(path, 100*time.Millisecond)
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, in.Close())
	require.NoError(t, child.Wait())
	open(t, path)
}

// fullDisk writes until the file cannot grow, checks what the log says, and exits.
func fullDisk(path string) {
	l, err := Open(path, 0)
	if err != nil {
		panic(err)
	}
	limit := syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		panic(err)
	}
	var ids []uuid.UUID
	for range 100_000 {
		id := uuid.New()
		if err = l.Commit(context.Background(), id, []string{string(bytes.Repeat([]byte{'x'}, 8000))}); err != nil {
			break
		}
		ids = append(ids, id)
	}
	fmt.Println(errors.Is(err, transaction.ErrNotCommitted), strings.Contains(err.Error(), syscall.EFBIG.Error()))
	for _, id := range ids {
		if yes, err := l.Committed(context.Background(), id); !yes || err != nil {
			panic(fmt.Sprint("a record is lost: ", err))
		}
	}
	// What is done is removed even so.
	_ = l.Done(context.Background(), ids[0])
	fmt.Println(len(ids) > 0)
}

func TestAFullDiskIsNoDecisionAndLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "BOLTLOG_FULL_DISK="+path)
	out, err := child.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "true true\ntrue\n", string(out))
	list, err := open(t, path).Unfinished(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, list)
}
