// Package boltlog keeps the decisions of transactions in a file: a transaction.Log on bbolt.
//
//	log, err := boltlog.Open("/var/lib/shop/decisions", time.Second)
//
// A decision is on the disk before Commit returns. Decisions that arrive while one is being
// written are written together, by one sync.
//
// # When the disk fails
//
// bbolt writes the new pages, syncs them, then writes the page that refers to them (the meta
// page), and syncs that. If anything fails before the meta page is written, such as on a
// full disk, the record does not exist: Commit returns an error that is
// transaction.ErrNotCommitted. If only the last sync fails, the record is in the file as other
// reads see it, and perhaps not on the disk: the decision is in doubt. The log then
// refuses all other work until the meta pages could be written again and synced, which every
// later call tries, Committed among them, and Open.
package boltlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/sluice-go/sluice/synchronizer/transaction"
)

// Errors to compare with errors.Is.
var (
	// ErrInUse means that another process, or this one, has the file open.
	ErrInUse = errors.New("sluice: boltlog: the file is in use")
	// ErrForeign means that the file is not a log of this package: it has another format, or
	// belongs to another program, or to a later version of this package, or is damaged.
	ErrForeign = errors.New("sluice: boltlog: not a log of transactions")
)

var errPanicked = errors.New("sluice: boltlog: a write has panicked; the log has to be opened again")

// OpenError says that a log could not be opened. A file that was there is unchanged.
type OpenError struct {
	Path string
	Err  error // ErrInUse, ErrForeign, or an error of the file system
}

// Error implements error.
func (e *OpenError) Error() string { return fmt.Sprintf("sluice: boltlog: open %s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *OpenError) Unwrap() error { return e.Err }

const format = "sluice transaction log 1"

var (
	header    = []byte("header")    // bucket: format, name
	decisions = []byte("decisions") // bucket: the names of the participants, by transaction
	formatKey = []byte("format")
	nameKey   = []byte("name")
)

// Log is a transaction.Log in a file. Its methods may be called by several goroutines.
type Log struct {
	path string
	name string

	mu      sync.Mutex // guards the fields up to the empty line
	queue   []*write
	done    []uuid.UUID        // their records are removed with the next write
	refused map[uuid.UUID]bool // Committed has returned false

	writer sync.Mutex // held while the file is written; taken before mu
	db     *bolt.DB
	file   *os.File
	failed error // the sync of the meta page has failed, and has not been made good
	broken bool  // bbolt has panicked, and may hold its locks

	commit func(*bolt.Tx) error // replaced by tests
	sync   func(*os.File) error // replaced by tests
}

// write is a decision that waits for being written.
type write struct {
	id      uuid.UUID
	value   []byte
	written bool
	err     error
}

// Open opens the log in a file, which it creates if there is none. A file that another
// process has open is waited for as long as is said. The error is an *OpenError.
func Open(path string, wait time.Duration) (*Log, error) {
	l := &Log{path: path, refused: map[uuid.UUID]bool{}, commit: (*bolt.Tx).Commit, sync: (*os.File).Sync}
	if err := l.open(max(wait, time.Nanosecond)); err != nil {
		return nil, &OpenError{Path: path, Err: err}
	}
	return l, nil
}

func (l *Log) open(wait time.Duration) error {
	info, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(l.path); err != nil {
			return err
		}
		info, err = os.Stat(l.path)
	}
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return syscall.EISDIR
	case !info.Mode().IsRegular() || info.Size() == 0:
		return ErrForeign
	}
	// bbolt may write to a file when it opens it, so it is looked at first.
	if _, _, err := l.openBolt(wait, true); err != nil {
		return err
	}
	if l.db, l.name, err = l.openBolt(wait, false); err != nil {
		return err
	}
	if err := l.settle(); err != nil {
		_ = l.db.Close()
		return err
	}
	return nil
}

// create makes a log with a name of its own. The file appears complete, or not at all; if
// one has appeared meanwhile it is left as it is.
func create(path string) (err error) {
	directory := filepath.Dir(path)
	temporary, err := os.CreateTemp(directory, filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(temporary.Name())) }()
	if err := temporary.Close(); err != nil {
		return err
	}
	db, err := bolt.Open(temporary.Name(), 0o600, nil)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		h, err := tx.CreateBucket(header)
		if err != nil {
			return err
		}
		_, err = tx.CreateBucket(decisions)
		return errors.Join(err, h.Put(formatKey, []byte(format)), h.Put(nameKey, []byte("boltlog-"+uuid.NewString())))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := os.Link(temporary.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	d, err := os.Open(directory)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// openBolt opens the file and reads the name of the log. If it is only to be looked at, it
// is closed again.
func (l *Log) openBolt(wait time.Duration, look bool) (db *bolt.DB, name string, err error) {
	// A damaged file makes bbolt panic, or read beyond the end of the file.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrForeign, r)
		}
		if db != nil && (look || err != nil) {
			err = errors.Join(err, db.Close())
		}
	}()
	options := &bolt.Options{
		Timeout:  wait,
		ReadOnly: look,
		OpenFile: func(path string, flags int, mode fs.FileMode) (*os.File, error) {
			var err error
			l.file, err = os.OpenFile(path, flags&^os.O_CREATE, mode)
			return l.file, err
		},
	}
	db, err = bolt.Open(l.path, 0o600, options)
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, "", ErrInUse
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		return nil, "", fmt.Errorf("%w: %w", ErrForeign, err)
	case err != nil:
		return nil, "", err
	}
	err = db.View(func(tx *bolt.Tx) error {
		info, err := l.file.Stat()
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("%w: the file is truncated", ErrForeign)
		}
		h := tx.Bucket(header)
		if h == nil || string(h.Get(formatKey)) != format || tx.Bucket(decisions) == nil {
			return ErrForeign
		}
		name = string(h.Get(nameKey))
		return nil
	})
	return db, name, err
}

// settle makes the meta pages durable, as they are in the file. The caller holds writer, or is
// the only user.
func (l *Log) settle() error {
	pages := make([]byte, 2*l.db.Info().PageSize)
	if _, err := l.file.ReadAt(pages, 0); err != nil {
		return err
	}
	if _, err := l.file.WriteAt(pages, 0); err != nil {
		return err
	}
	return l.sync(l.file)
}

// usable returns nil if the file is as it seems to be. The caller holds writer.
func (l *Log) usable() error {
	if l.broken {
		return errPanicked
	}
	if l.failed == nil {
		return nil
	}
	if err := l.settle(); err != nil {
		return fmt.Errorf("sluice: boltlog: %s has failed: %w", l.path, errors.Join(l.failed, err))
	}
	l.failed = nil
	return nil
}

// Name identifies the log; it was chosen when the file was created.
func (l *Log) Name() string { return l.name }

// Commit records a decision, as transaction.Log describes it. It does not watch the
// context once it writes.
func (l *Log) Commit(ctx context.Context, id uuid.UUID, participants []string) error {
	value, err := json.Marshal(participants)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return fmt.Errorf("%w: %w", transaction.ErrNotCommitted, err)
	}
	w := &write{id: id, value: value}
	l.mu.Lock()
	if l.refused[id] {
		l.mu.Unlock()
		return fmt.Errorf("%w: the transaction has been taken for rolled back", transaction.ErrNotCommitted)
	}
	l.queue = append(l.queue, w)
	l.mu.Unlock()

	// The first to get the turn writes what has come until then, for the others too.
	l.writer.Lock()
	defer l.writer.Unlock()
	if !w.written {
		l.flush()
	}
	return w.err
}

// flush writes what waits for being written, and removes what is done. The caller holds writer.
func (l *Log) flush() {
	l.mu.Lock()
	batch, done := l.queue, l.done
	l.queue, l.done = nil, nil
	l.mu.Unlock()
	err := errPanicked
	defer func() {
		l.broken = l.broken || errors.Is(err, errPanicked)
		for _, w := range batch {
			w.written, w.err = true, err
		}
		if err != nil {
			l.mu.Lock()
			l.done = append(l.done, done...)
			l.mu.Unlock()
		}
	}()
	err = l.write(batch, done)
}

// write writes and removes records in one transaction of the file.
func (l *Log) write(batch []*write, done []uuid.UUID) error {
	if err := l.usable(); err != nil {
		return fmt.Errorf("%w: %w", transaction.ErrNotCommitted, err)
	}
	tx, err := l.db.Begin(true)
	if err != nil {
		return fmt.Errorf("%w: %w", transaction.ErrNotCommitted, err)
	}
	b := tx.Bucket(decisions)
	for _, w := range batch {
		err = errors.Join(err, b.Put(w.id[:], w.value))
	}
	for _, id := range done {
		err = errors.Join(err, b.Delete(id[:]))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", transaction.ErrNotCommitted, errors.Join(err, tx.Rollback()))
	}
	written := tx.ID()
	if err = l.commit(tx); err == nil {
		return nil
	}
	// The meta page has been written if a read sees the transaction.
	seen := written
	viewErr := l.db.View(func(tx *bolt.Tx) error {
		seen = tx.ID()
		return nil
	})
	if viewErr == nil && seen < written {
		return fmt.Errorf("%w: %w", transaction.ErrNotCommitted, err)
	}
	l.failed = errors.Join(err, viewErr)
	return fmt.Errorf("sluice: boltlog: %s: the record may not be on the disk: %w", l.path, l.failed)
}

// Committed reports whether a decision is in the log. It fails while it is not known whether
// what the file says is on the disk.
func (l *Log) Committed(_ context.Context, id uuid.UUID) (committed bool, err error) {
	l.writer.Lock()
	defer l.writer.Unlock()
	if err := l.usable(); err != nil {
		return false, err
	}
	err = l.db.View(func(tx *bolt.Tx) error {
		committed = tx.Bucket(decisions).Get(id[:]) != nil
		return nil
	})
	if err == nil && !committed {
		l.mu.Lock()
		l.refused[id] = true
		l.mu.Unlock()
	}
	return committed, err
}

// Unfinished returns the decisions that are not done.
func (l *Log) Unfinished(context.Context) (list []transaction.Record, err error) {
	l.writer.Lock()
	defer l.writer.Unlock()
	if err := l.usable(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	done := make(map[uuid.UUID]bool, len(l.done))
	for _, id := range l.done {
		done[id] = true
	}
	l.mu.Unlock()
	err = l.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket(decisions).ForEach(func(k, v []byte) error {
			var r transaction.Record
			id, err := uuid.FromBytes(k)
			if err = errors.Join(err, json.Unmarshal(v, &r.Participants)); err != nil {
				return fmt.Errorf("%w: record %x: %w", ErrForeign, k, err)
			}
			r.Transaction = id
			if !done[id] {
				list = append(list, r)
			}
			return nil
		})
	})
	return list, err
}

// Done has the record of a transaction removed with the next decision that is written, or by
// Close. It returns nil.
func (l *Log) Done(_ context.Context, id uuid.UUID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused[id] {
		delete(l.refused, id)
		return nil
	}
	l.done = append(l.done, id)
	return nil
}

// Close removes the records of what is done, and closes the file. It returns an error if that
// fails: then records are left, which recovery removes. Later calls of Commit fail with
// transaction.ErrNotCommitted. To close a log again does nothing.
func (l *Log) Close() error {
	l.writer.Lock()
	defer l.writer.Unlock()
	l.mu.Lock()
	done := l.done
	l.done = nil
	l.mu.Unlock()
	var err error
	if len(done) > 0 {
		err = l.write(nil, done)
	}
	return errors.Join(err, l.db.Close())
}
