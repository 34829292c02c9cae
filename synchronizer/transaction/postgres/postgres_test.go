//go:build postgres

package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/synchronizer/transaction"
	"github.com/sluice-go/sluice/synchronizer/transaction/postgres"
	"github.com/sluice-go/sluice/synchronizer/transaction/sqlresource"
)

// dsn is the environment variable that says which server the tests use. They create and drop tables there.
const dsn = "SLUICE_POSTGRES_DSN"

var (
	_ transaction.Recoverable = (*postgres.Database)(nil)
	_ transaction.OnePhase    = (*postgres.Database)(nil)
	_ transaction.Registrar   = (*registrar)(nil)
)

// registrar stands for a transaction.
type registrar struct {
	id         uuid.UUID
	err        error
	registered int
}

func begin() *registrar { return &registrar{id: uuid.Must(uuid.NewV7())} }

func (r *registrar) ID() uuid.UUID { return r.id }
func (r *registrar) Register(transaction.Resource) error {
	r.registered++
	return r.err
}
func (r *registrar) RegisterLast(transaction.LastResource) error {
	r.registered++
	return r.err
}

// connect opens the server's database. Without the environment variable the test fails.
func connect(t *testing.T) *sql.DB {
	t.Helper()
	address := os.Getenv(dsn)
	require.NotEmpty(t, address, "%s is not set", dsn)
	db, err := sql.Open("pgx", address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// open returns the server's database with a table of its own for the test, and a resource of its own.
func open(t *testing.T) (*sql.DB, *postgres.Database, string) {
	t.Helper()
	db := connect(t)
	table := "t" + strings.ReplaceAll(uuid.NewString(), "-", "")
	_, err := db.Exec("CREATE TABLE " + table + " (name text PRIMARY KEY, UNIQUE (name) DEFERRABLE INITIALLY DEFERRED)")
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := db.Exec("DROP TABLE " + table)
		require.NoError(t, err)
	})
	d, err := postgres.New(t.Context(), db, "stock: "+table)
	require.NoError(t, err)
	t.Cleanup(func() {
		list, err := d.InDoubt(context.Background())
		require.NoError(t, err)
		require.Empty(t, list, "a test has left prepared transactions")
	})
	return db, d, table
}

func add(t *testing.T, d *postgres.Database, r transaction.Registrar, table, name string) {
	t.Helper()
	tx, err := d.Tx(t.Context(), r)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "INSERT INTO "+table+" VALUES ($1)", name)
	require.NoError(t, err)
}

func count(t *testing.T, db *sql.DB, table string) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow("SELECT count(*) FROM "+table).Scan(&n))
	return n
}

func prepare(t *testing.T, d *postgres.Database, r *registrar) {
	t.Helper()
	vote, err := d.Prepare(t.Context(), transaction.Branch{Transaction: r.id, Log: "a log: ü"})
	require.NoError(t, err)
	require.Equal(t, transaction.Prepared, vote)
}

func TestWhatIsPreparedCommitsOrRollsBack(t *testing.T) {
	db, d, table := open(t)
	r := begin()
	add(t, d, r, table, "a")
	add(t, d, r, table, "b")
	require.Equal(t, 1, r.registered)
	prepare(t, d, r)
	require.Zero(t, count(t, db, table))
	require.NoError(t, d.Commit(t.Context(), r.id))
	require.NoError(t, d.Commit(t.Context(), r.id), "told again")
	require.NoError(t, d.Rollback(t.Context(), r.id), "it does not know the transaction any more")
	require.Equal(t, 2, count(t, db, table))

	r = begin()
	add(t, d, r, table, "c")
	prepare(t, d, r)
	require.NoError(t, d.Rollback(t.Context(), r.id))
	require.NoError(t, d.Rollback(t.Context(), r.id), "told again")

	r = begin()
	add(t, d, r, table, "c")
	require.NoError(t, d.Rollback(t.Context(), r.id), "not prepared")
	require.Equal(t, 2, count(t, db, table))
}

func TestAnotherProcessFindsWhatIsPrepared(t *testing.T) {
	db, d, table := open(t)
	r, s := begin(), begin()
	add(t, d, r, table, "a")
	add(t, d, s, table, "b")
	prepare(t, d, r)
	prepare(t, d, s)
	again, err := postgres.New(t.Context(), db, d.Name())
	require.NoError(t, err)
	list, err := again.InDoubt(t.Context())
	require.NoError(t, err)
	require.Equal(t, []transaction.Branch{{Transaction: r.id, Log: "a log: ü"}, {Transaction: s.id, Log: "a log: ü"}}, list)
	other, err := postgres.New(t.Context(), db, "stock")
	require.NoError(t, err)
	list, err = other.InDoubt(t.Context())
	require.NoError(t, err)
	require.Empty(t, list, "the branches of another resource")
	require.NoError(t, other.Commit(t.Context(), r.id))
	require.NoError(t, again.Commit(t.Context(), r.id))
	require.NoError(t, again.Rollback(t.Context(), s.id))
	require.Equal(t, 1, count(t, db, table))
}

func TestADatabaseThatWasOnlyReadIsReadOnly(t *testing.T) {
	_, d, table := open(t)
	r := begin()
	tx, err := d.Tx(t.Context(), r)
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
	vote, err := d.Prepare(t.Context(), transaction.Branch{Transaction: r.id})
	require.NoError(t, err)
	require.Equal(t, transaction.ReadOnly, vote)
}

func TestAFailedTransactionDoesNotPrepare(t *testing.T) {
	db, d, table := open(t)
	for name, spoil := range map[string]func(tx *postgres.Tx) error{
		"a failed statement": func(tx *postgres.Tx) error {
			_, err := tx.ExecContext(t.Context(), "SELECT 1/0")
			if err == nil {
				return errors.New("no error")
			}
			return nil
		},
		"a deferred constraint": func(tx *postgres.Tx) error {
			_, err := tx.ExecContext(t.Context(), "ALTER TABLE "+table+" DROP CONSTRAINT "+table+"_pkey")
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(t.Context(), "INSERT INTO "+table+" VALUES ('a')")
			return err
		},
		"a lost connection": func(tx *postgres.Tx) error {
			var pid int
			if err := tx.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
				return err
			}
			_, err := db.Exec("SELECT pg_terminate_backend($1, 60000)", pid)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := begin()
			add(t, d, r, table, "a")
			tx, err := d.Tx(t.Context(), r)
			require.NoError(t, err)
			require.NoError(t, spoil(tx))
			_, err = d.Prepare(t.Context(), transaction.Branch{Transaction: r.id})
			require.Error(t, err)
			require.NotErrorIs(t, err, transaction.ErrHeuristic)
			require.NoError(t, d.Rollback(t.Context(), r.id))
			require.Zero(t, count(t, db, table))
		})
		t.Run(name+" in one phase", func(t *testing.T) {
			r := begin()
			add(t, d, r, table, "a")
			tx, err := d.Tx(t.Context(), r)
			require.NoError(t, err)
			require.NoError(t, spoil(tx))
			require.ErrorIs(t, d.CommitOnePhase(t.Context(), r.id), transaction.ErrNotCommitted)
			require.NoError(t, d.Rollback(t.Context(), r.id))
			require.Zero(t, count(t, db, table))
		})
	}
}

func TestATransactionEndedByAStatementIsHeuristic(t *testing.T) {
	_, d, table := open(t)
	for _, statement := range []string{"COMMIT", "ROLLBACK", "COMMIT AND CHAIN"} {
		r := begin()
		tx, err := d.Tx(t.Context(), r)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), "DELETE FROM "+table)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), statement)
		require.NoError(t, err)
		_, err = d.Prepare(t.Context(), transaction.Branch{Transaction: r.id})
		require.ErrorIs(t, err, transaction.ErrHeuristic)
		require.ErrorIs(t, err, postgres.ErrEnded)
		require.NoError(t, d.Rollback(t.Context(), r.id))
	}
}

func TestOnePhaseCommitsAndIsFoundOut(t *testing.T) {
	db, d, table := open(t)
	r := begin()
	add(t, d, r, table, "a")
	require.NoError(t, d.CommitOnePhase(t.Context(), r.id))
	require.Equal(t, 1, count(t, db, table))

	// Serialization failures are found at the end: the server says that nothing was committed.
	r, s := begin(), begin()
	for i, each := range []*registrar{r, s} {
		tx, err := d.Tx(t.Context(), each)
		require.NoError(t, err)
		var n int
		require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
		_, err = tx.ExecContext(t.Context(), "INSERT INTO "+table+" VALUES ($1)", fmt.Sprint("skew", i))
		require.NoError(t, err)
	}
	require.NoError(t, d.CommitOnePhase(t.Context(), r.id))
	require.ErrorIs(t, d.CommitOnePhase(t.Context(), s.id), transaction.ErrNotCommitted)
	require.NoError(t, d.Rollback(t.Context(), s.id))
	require.Equal(t, 2, count(t, db, table))
}

// holdUp makes every end of an SQL transaction that has inserted into the table wait until release.
// It runs f, with a context that is canceled when the end waits: the connection is lost, and
// the server goes on by itself.
func holdUp(t *testing.T, db *sql.DB, table string, f func(ctx context.Context)) (release func()) {
	t.Helper()
	_, err := db.Exec(`CREATE FUNCTION ` + table + `_wait() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM pg_advisory_xact_lock(hashtext('` + table + `')); RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON ` + table + ` DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ` + table + `_wait()`)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := db.Exec("DROP FUNCTION " + table + "_wait CASCADE")
		require.NoError(t, err)
	})
	lock, err := db.Conn(t.Context())
	require.NoError(t, err)
	_, err = lock.ExecContext(t.Context(), "SELECT pg_advisory_lock(hashtext($1))", table)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() {
		for waiting := 0; waiting == 0; {
			_ = db.QueryRow("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").Scan(&waiting)
		}
		cancel()
	})
	f(ctx)
	watch.Wait()
	return func() {
		_, err := lock.ExecContext(t.Context(), "SELECT pg_advisory_unlock(hashtext($1))", table)
		require.NoError(t, err)
		require.NoError(t, lock.Close())
	}
}

func TestAPrepareThatIsCutOffIsRolledBack(t *testing.T) {
	db, d, table := open(t)
	r := begin()
	release := holdUp(t, db, table, func(ctx context.Context) {
		add(t, d, r, table, "a")
		_, err := d.Prepare(ctx, transaction.Branch{Transaction: r.id})
		require.ErrorIs(t, err, context.Canceled)
	})
	require.NoError(t, d.Rollback(t.Context(), r.id))
	release()
	require.Zero(t, count(t, db, table))
}

func TestRecoveryEndsAPrepareThatAKilledProcessHasSent(t *testing.T) {
	db, d, table := open(t)
	r := begin()
	release := holdUp(t, db, table, func(ctx context.Context) {
		add(t, d, r, table, "a")
		_, err := d.Prepare(ctx, transaction.Branch{Transaction: r.id})
		require.ErrorIs(t, err, context.Canceled)
	})
	next, err := postgres.New(t.Context(), db, d.Name())
	require.NoError(t, err)
	list, err := next.InDoubt(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	release()
	list, err = next.InDoubt(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	require.Zero(t, count(t, db, table))
}

func TestACommitThatIsCutOffIsFoundOut(t *testing.T) {
	db, d, table := open(t)
	r := begin()
	release := holdUp(t, db, table, func(ctx context.Context) {
		add(t, d, r, table, "a")
		require.ErrorIs(t, d.CommitOnePhase(ctx, r.id), context.Canceled)
	})
	release()
	require.NoError(t, d.CommitOnePhase(t.Context(), r.id), "the server has committed")
	require.Equal(t, 1, count(t, db, table))
}

func TestARefusedRegistrationLeavesNothingOpen(t *testing.T) {
	db, d, table := open(t)
	db.SetMaxOpenConns(1)
	r := begin()
	r.err = errors.New("refused")
	_, err := d.Tx(t.Context(), r)
	require.ErrorIs(t, err, r.err)
	require.Zero(t, count(t, db, table))
	r.err = nil
	add(t, d, r, table, "a")
	require.NoError(t, d.Rollback(t.Context(), r.id))
}

func TestNamesThatCannotBeUsedAreRefused(t *testing.T) {
	db, d, table := open(t)
	_, err := postgres.New(t.Context(), db, "")
	require.ErrorIs(t, err, postgres.ErrName)
	_, err = postgres.New(t.Context(), db, strings.Repeat("x", 200))
	require.ErrorIs(t, err, postgres.ErrName)
	r := begin()
	add(t, d, r, table, "a")
	_, err = d.Prepare(t.Context(), transaction.Branch{Transaction: r.id, Log: strings.Repeat("x", 200)})
	require.ErrorIs(t, err, postgres.ErrName)
	require.NoError(t, d.Rollback(t.Context(), r.id))
}

// TestPostgresAsTheLastResource: also of a database that can prepare, the decision can be a row.
func TestPostgresAsTheLastResource(t *testing.T) {
	db, _, table := open(t)
	d, err := sqlresource.New(t.Context(), db, "orders", sqlresource.CreateTable(), sqlresource.Table(table+"_decisions"), sqlresource.Placeholders(sqlresource.Dollar))
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := db.Exec("DROP TABLE " + table + "_decisions")
		require.NoError(t, err)
	})
	r := begin()
	tx, err := d.Tx(t.Context(), r)
	require.NoError(t, err)
	_, err = tx.Exec("INSERT INTO "+table+" VALUES ($1)", "a")
	require.NoError(t, err)

	// The question waits for the SQL transaction that has inserted the decision, and is still open.
	var asked sync.WaitGroup
	_, err = tx.Exec("INSERT INTO "+table+"_decisions VALUES ($1, 'orders', 1, '[]')", r.id.String())
	require.NoError(t, err)
	asked.Go(func() {
		committed, err := d.Committed(t.Context(), r.id)
		assert.NoError(t, err)
		assert.True(t, committed)
	})
	for waiting := 0; waiting == 0; {
		require.NoError(t, db.QueryRow("SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted").Scan(&waiting))
	}
	require.NoError(t, tx.Commit())
	asked.Wait()
	require.ErrorIs(t, d.Rollback(t.Context(), r.id), transaction.ErrHeuristic)

	// Serializable transactions at the same time do not conflict by their decisions.
	r, s := begin(), begin()
	for i, each := range []*registrar{r, s} {
		tx, err := d.Tx(t.Context(), each)
		require.NoError(t, err)
		_, err = tx.Exec("INSERT INTO "+table+" VALUES ($1)", fmt.Sprint(i))
		require.NoError(t, err)
	}
	require.NoError(t, d.Commit(t.Context(), r.id, nil))
	require.NoError(t, d.Commit(t.Context(), s.id, []string{"x"}))
	list, err := d.Unfinished(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 3)
	for _, record := range list {
		require.NoError(t, d.Done(t.Context(), record.Transaction))
	}
	require.NoError(t, d.Flush(t.Context()))
	require.Zero(t, count(t, db, table+"_decisions"))
}
