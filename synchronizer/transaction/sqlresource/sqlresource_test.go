package sqlresource_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/sluice-go/sluice/synchronizer/transaction"
	"github.com/sluice-go/sluice/synchronizer/transaction/sqlresource"
)

var (
	_ transaction.LastResource = (*sqlresource.Database)(nil)
	_ transaction.Registrar    = (*registrar)(nil)
)

// registrar stands for a transaction.
type registrar struct {
	id         uuid.UUID
	err        error
	registered int
}

func begin() *registrar { return &registrar{id: uuid.Must(uuid.NewV7())} }

func (r *registrar) ID() uuid.UUID                       { return r.id }
func (r *registrar) Register(transaction.Resource) error { panic("a last resource cannot prepare") }
func (r *registrar) RegisterLast(transaction.LastResource) error {
	r.registered++
	return r.err
}

// open returns a database with one table, and its resource.
func open(t *testing.T, opts ...sqlresource.Option) (*sql.DB, *sqlresource.Database) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "db")+"?_pragma=busy_timeout(60000)&_pragma=foreign_keys(1)&_pragma=synchronous(off)&_txlock=immediate")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err = db.Exec("CREATE TABLE item (name TEXT PRIMARY KEY, part TEXT REFERENCES item (name) DEFERRABLE INITIALLY DEFERRED)")
	require.NoError(t, err)
	d, err := sqlresource.New(t.Context(), db, "orders", append(opts, sqlresource.CreateTable())...)
	require.NoError(t, err)
	return db, d
}

// add inserts an item in a transaction.
func add(t *testing.T, d *sqlresource.Database, r transaction.Registrar, name string) {
	t.Helper()
	tx, err := d.Tx(t.Context(), r)
	require.NoError(t, err)
	_, err = tx.Exec("INSERT INTO item (name) VALUES (?)", name)
	require.NoError(t, err)
}

func count(t *testing.T, db *sql.DB, table string) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow("SELECT count(*) FROM "+table).Scan(&n))
	return n
}

func TestTheDecisionIsCommittedWithTheChanges(t *testing.T) {
	db, d := open(t)
	r := begin()
	add(t, d, r, "a")
	add(t, d, r, "b")
	require.Equal(t, 1, r.registered)
	require.NoError(t, d.Commit(t.Context(), r.id, []string{"x", "y"}))
	require.Equal(t, 2, count(t, db, "item"))

	again, err := sqlresource.New(t.Context(), db, "orders")
	require.NoError(t, err)
	for _, d := range []*sqlresource.Database{d, again} {
		committed, err := d.Committed(t.Context(), r.id)
		require.NoError(t, err)
		require.True(t, committed)
		list, err := d.Unfinished(t.Context())
		require.NoError(t, err)
		require.Equal(t, []transaction.Record{{Transaction: r.id, Participants: []string{"x", "y"}}}, list)
	}
	other, err := sqlresource.New(t.Context(), db, "another")
	require.NoError(t, err)
	list, err := other.Unfinished(t.Context())
	require.NoError(t, err)
	require.Empty(t, list, "the decisions of another manager")

	require.NoError(t, d.Done(t.Context(), r.id))
	list, err = d.Unfinished(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoError(t, d.Flush(t.Context()))
	require.Zero(t, count(t, db, "sluice_decisions"))
	require.NoError(t, d.Rollback(t.Context(), r.id), "it does not know the transaction any more")
}

func TestRollbackLeavesNothing(t *testing.T) {
	db, d := open(t)
	db.SetMaxOpenConns(1)
	r := begin()
	add(t, d, r, "a")
	require.NoError(t, d.Rollback(t.Context(), r.id))
	require.NoError(t, d.Rollback(t.Context(), r.id))
	require.Zero(t, count(t, db, "item"))
	require.Zero(t, count(t, db, "sluice_decisions"))
	require.ErrorIs(t, d.Commit(t.Context(), r.id, nil), transaction.ErrNotCommitted)
}

func TestATransactionTakenForRolledBackCannotCommit(t *testing.T) {
	db, d := open(t)
	r := begin()
	committed, err := d.Committed(t.Context(), r.id)
	require.NoError(t, err)
	require.False(t, committed)
	committed, err = d.Committed(t.Context(), r.id)
	require.NoError(t, err)
	require.False(t, committed, "asked again")
	add(t, d, r, "a")
	require.ErrorIs(t, d.Commit(t.Context(), r.id, nil), transaction.ErrNotCommitted)
	require.Zero(t, count(t, db, "item"))
	require.Equal(t, 1, count(t, db, "sluice_decisions"))

	// The row goes when the transaction is done, or if there is a crash before that, in the next process.
	next, err := sqlresource.New(t.Context(), db, "orders")
	require.NoError(t, err)
	list, err := next.Unfinished(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoError(t, next.Flush(t.Context()))
	require.Zero(t, count(t, db, "sluice_decisions"))
	_, err = d.Committed(t.Context(), r.id)
	require.NoError(t, err)
	require.NoError(t, d.Done(t.Context(), r.id))
	require.NoError(t, d.Flush(t.Context()))
	require.Zero(t, count(t, db, "sluice_decisions"))
}

// TestACommitThatFailsIsFoundOut: the driver's error alone does not say what has happened.
func TestACommitThatFailsIsFoundOut(t *testing.T) {
	db, d := open(t)
	db.SetMaxOpenConns(1)
	r := begin()
	tx, err := d.Tx(t.Context(), r)
	require.NoError(t, err)
	_, err = tx.Exec("INSERT INTO item VALUES ('a', 'missing')")
	require.NoError(t, err)
	err = d.Commit(t.Context(), r.id, nil)
	require.ErrorContains(t, err, "FOREIGN KEY")
	require.NotErrorIs(t, err, transaction.ErrNotCommitted)
	committed, err := d.Committed(t.Context(), r.id)
	require.NoError(t, err)
	require.False(t, committed)
	require.Zero(t, count(t, db, "item"))
}

func TestATransactionEndedByOtherCodeIsHeuristic(t *testing.T) {
	db, d := open(t)
	for _, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
		for _, commit := range []bool{true, false} {
			r := begin()
			tx, err := d.Tx(t.Context(), r)
			require.NoError(t, err)
			require.NoError(t, end(tx))
			if commit {
				err = d.Commit(t.Context(), r.id, nil)
			} else {
				err = d.Rollback(t.Context(), r.id)
			}
			require.ErrorIs(t, err, transaction.ErrHeuristic)
			require.ErrorIs(t, err, sqlresource.ErrEnded)
		}
	}
	require.Zero(t, count(t, db, "sluice_decisions"))
}

func TestTheCallersContextDoesNotEndTheTransaction(t *testing.T) {
	db, d := open(t)
	r := begin()
	ctx, cancel := context.WithCancel(t.Context())
	tx, err := d.Tx(ctx, r)
	require.NoError(t, err)
	cancel()
	_, err = tx.Exec("INSERT INTO item (name) VALUES ('a')")
	require.NoError(t, err)
	require.NoError(t, d.Commit(t.Context(), r.id, nil))
	require.Equal(t, 1, count(t, db, "item"))
}

func TestARefusedRegistrationLeavesNoTransactionOpen(t *testing.T) {
	db, d := open(t)
	db.SetMaxOpenConns(1)
	r := begin()
	r.err = errors.New("refused")
	tx, err := d.Tx(t.Context(), r)
	require.ErrorIs(t, err, r.err)
	require.Nil(t, tx)
	require.Zero(t, count(t, db, "item"), "the connection is free")
	r.err = nil
	add(t, d, r, "a")
	require.NoError(t, d.Commit(t.Context(), r.id, nil))

	require.NoError(t, db.Close())
	_, err = d.Tx(t.Context(), begin())
	require.Error(t, err)
	_, err = d.Committed(t.Context(), uuid.New())
	require.Error(t, err)
}

func TestGoroutinesOfOneTransactionShareItsTx(t *testing.T) {
	_, d := open(t)
	r := begin()
	var all sync.WaitGroup
	var got [8]*sql.Tx
	for i := range got {
		all.Go(func() {
			tx, err := d.Tx(t.Context(), r)
			assert.NoError(t, err)
			got[i] = tx
		})
	}
	all.Wait()
	for _, tx := range got {
		require.Same(t, got[0], tx)
	}
	require.Equal(t, 1, r.registered)
	require.NoError(t, d.Rollback(t.Context(), r.id))
}

func TestRowsAreRemovedManyAtATime(t *testing.T) {
	db, d := open(t)
	for range 64 {
		r := begin()
		add(t, d, r, r.id.String())
		require.NoError(t, d.Commit(t.Context(), r.id, nil))
		require.NoError(t, d.Done(t.Context(), r.id))
	}
	for count(t, db, "sluice_decisions") > 0 {
		runtime.Gosched()
	}
	require.Equal(t, 64, count(t, db, "item"))
	require.NoError(t, d.Flush(t.Context()))
}

func TestADatabaseThatCannotTakePartIsRefused(t *testing.T) {
	db, _ := open(t)
	var bad *sqlresource.OptionError
	_, err := sqlresource.New(t.Context(), nil, "orders")
	require.ErrorAs(t, err, &bad)
	_, err = sqlresource.New(t.Context(), db, "")
	require.ErrorAs(t, err, &bad)
	_, err = sqlresource.New(t.Context(), db, "orders", sqlresource.Table("a; DROP TABLE item"))
	require.ErrorAs(t, err, &bad)
	_, err = sqlresource.New(t.Context(), db, "orders", sqlresource.Placeholders(nil))
	require.ErrorAs(t, err, &bad)
	_, err = sqlresource.New(t.Context(), db, "orders", sqlresource.Table("missing"))
	require.ErrorIs(t, err, sqlresource.ErrNoTable)
	_, err = sqlresource.New(t.Context(), db, "orders", sqlresource.Table("item"), sqlresource.CreateTable())
	require.ErrorIs(t, err, sqlresource.ErrNoTable, "it has other columns")
	_, err = sqlresource.New(t.Context(), db, "orders", sqlresource.Table("main.mine"), sqlresource.CreateTable(), sqlresource.Isolation(sql.LevelDefault))
	require.NoError(t, err)
}
