// Package sqlresource lets a database take part in transactions by an ordinary SQL transaction,
// with any driver of database/sql: as the last resource, which cannot prepare.
//
//	orders, err := sqlresource.New(ctx, db, "orders", sqlresource.CreateTable())
//	…
//	tx, err := orders.Tx(ctx, t) // t is the transaction; tx is a *sql.Tx
//	_, err = tx.ExecContext(ctx, "INSERT INTO …")
//
// The SQL transaction commits when all other participants have prepared. It also inserts a row
// into a small table, the decision: so recovery asks the database whether a transaction
// was committed, and no other log is needed. Rows are removed in the background when all
// participants have been told, many at a time.
//
// Of a transaction whose commit has been answered by an error, such as a lost connection, the
// outcome is in doubt. It is found out by inserting a row of the same key, which says that the
// transaction was rolled back: the database lets only one of the two rows come to be,
// and waits for an SQL transaction that is still open.
package sqlresource

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-go/sluice/synchronizer/transaction"
	"github.com/sluice-go/sluice/synchronizer/transaction/internal/branches"
)

// Database is a transaction.LastResource: the SQL transactions of one database. Its methods may be
// called by several goroutines.
type Database struct {
	db      *sql.DB
	name    string
	options options
	insert  string
	ask     string
	list    string
	remove  string

	open branches.Set[branch]

	mu       sync.Mutex
	done     []uuid.UUID // their rows are removed by the next sweep
	sweeping bool        // by a goroutine of Done

	sweep sync.Mutex // held while rows are removed
}

// A sweep begins when so many rows can be removed, and takes no longer than that.
const (
	sweepSize = 64
	sweepTime = 10 * time.Second
)

// branch is the SQL transaction of one transaction.
type branch struct {
	conn *sql.Conn
	tx   *sql.Tx
}

type options struct {
	table       string
	create      bool
	isolation   sql.IsolationLevel
	placeholder func(int) string
}

// Option changes how a database takes part.
type Option func(*options)

// Table sets the name of the table with the decisions; it is sluice_decisions if this option is
// not given.
func Table(name string) Option { return func(o *options) { o.table = name } }

// CreateTable has New create the table if there is none. Without this option it has to be
// there, with the columns id (36 characters, the primary key), log (text), committed
// (integer) and participants (text).
func CreateTable() Option { return func(o *options) { o.create = true } }

// Isolation sets the isolation level of the SQL transactions; it is serializable if this option
// is not given. Transactions are serializable only with that level.
func Isolation(level sql.IsolationLevel) Option { return func(o *options) { o.isolation = level } }

// Placeholders sets how the driver wants the n-th argument of a statement written, counted
// from 1: Question, which is used if this option is not given, Dollar, or a function for others.
func Placeholders(f func(n int) string) Option { return func(o *options) { o.placeholder = f } }

// Question writes arguments as ?, as SQLite and MySQL do.
func Question(int) string { return "?" }

// Dollar writes arguments as $1, as PostgreSQL does.
func Dollar(n int) string { return "$" + strconv.Itoa(n) }

// Errors to compare with errors.Is.
var (
	// ErrNoTable means that the table with the decisions is not there, or has other columns.
	ErrNoTable = errors.New("sluice: sqlresource: no table for decisions")
	// ErrEnded means that the SQL transaction was committed or rolled back by other code.
	ErrEnded = errors.New("sluice: sqlresource: the SQL transaction has been ended by other code")
)

// OptionError says that New was given a name or an option that makes no sense. Nothing has happened.
type OptionError struct{ Option, Problem string }

// Error implements error.
func (e *OptionError) Error() string { return "sluice: sqlresource: " + e.Option + " " + e.Problem }

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

// New returns the resource of a database. The name is that of the log that the
// decisions are in, so it is the same after a restart, and no other process uses it. It
// returns an *OptionError, or an error that is ErrNoTable. The database stays open when
// it is not needed any more.
func New(ctx context.Context, db *sql.DB, name string, opts ...Option) (*Database, error) {
	o := options{table: "sluice_decisions", isolation: sql.LevelSerializable, placeholder: Question}
	for _, set := range opts {
		set(&o)
	}
	switch {
	case db == nil:
		return nil, &OptionError{"database", "is nil"}
	case name == "":
		return nil, &OptionError{"name", "is empty"}
	case !identifier.MatchString(o.table):
		return nil, &OptionError{"table", fmt.Sprintf("%q is not an identifier", o.table)}
	case o.placeholder == nil:
		return nil, &OptionError{"placeholders", "is nil"}
	}
	p := o.placeholder
	d := &Database{
		db: db, name: name, options: o,
		insert: fmt.Sprintf("INSERT INTO %s (id, log, committed, participants) VALUES (%s, %s, %s, %s)", o.table, p(1), p(2), p(3), p(4)),
		ask:    fmt.Sprintf("SELECT committed FROM %s WHERE id = %s", o.table, p(1)),
		list:   fmt.Sprintf("SELECT id, committed, participants FROM %s WHERE log = %s", o.table, p(1)),
		remove: fmt.Sprintf("DELETE FROM %s WHERE id = %s", o.table, p(1)),
	}
	if o.create {
		_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+o.table+
			" (id VARCHAR(36) NOT NULL PRIMARY KEY, log VARCHAR(255) NOT NULL, committed INTEGER NOT NULL, participants TEXT NOT NULL)")
		if err != nil {
			return nil, fmt.Errorf("%w: create %s: %w", ErrNoTable, o.table, err)
		}
	}
	rows, err := db.QueryContext(ctx, "SELECT id, log, committed, participants FROM "+o.table+" WHERE 1 = 0")
	if err == nil {
		err = errors.Join(rows.Err(), rows.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoTable, o.table, err)
	}
	return d, nil
}

// Name returns the name that was given to New.
func (d *Database) Name() string { return d.name }

// Tx returns the SQL transaction of a transaction. The first call begins it, and registers the
// database; it returns the database's error, or a *transaction.RegistrationError. The
// SQL transaction has a connection of its own until the transaction ends. It is not to be
// committed or rolled back by other code: then the transaction's outcome is heuristic.
func (d *Database) Tx(ctx context.Context, t transaction.Registrar) (*sql.Tx, error) {
	b, err := d.open.Begin(ctx, t.ID(), func() (*branch, error) { return d.begin(ctx, t) })
	if err != nil {
		return nil, err
	}
	return b.tx, nil
}

// begin begins the SQL transaction of a transaction.
func (d *Database) begin(ctx context.Context, t transaction.Registrar) (*branch, error) {
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	b := &branch{conn: conn}
	// The caller's context does not end the SQL transaction: its outcome is the transaction's.
	b.tx, err = conn.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{Isolation: d.options.isolation})
	if err != nil {
		b.discard()
		return nil, err
	}
	if err = t.RegisterLast(d); err != nil {
		_ = b.rollback()
		return nil, err
	}
	return b, nil
}

// rollback rolls back, and returns the connection. If that fails the connection is closed, so that
// the database rolls back.
func (b *branch) rollback() error {
	err := b.tx.Rollback()
	if err == nil {
		_ = b.conn.Close()
		return nil
	}
	b.discard()
	if errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

// discard closes the connection, rather than returning it to the pool.
func (b *branch) discard() {
	_ = b.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = b.conn.Close()
}

// take removes the SQL transaction of a transaction, or returns nil.
func (d *Database) take(id uuid.UUID) *branch {
	b := d.open.Find(id)
	d.open.Forget(id)
	return b
}

// Commit commits the SQL transaction together with the decision, as transaction.Log
// describes it. If other code has ended the SQL transaction, the error is ErrEnded and
// transaction.ErrHeuristic.
func (d *Database) Commit(ctx context.Context, id uuid.UUID, participants []string) error {
	b := d.take(id)
	if b == nil {
		return fmt.Errorf("%w: sqlresource: no SQL transaction", transaction.ErrNotCommitted)
	}
	if participants == nil {
		participants = []string{}
	}
	names, err := json.Marshal(participants)
	if err == nil {
		_, err = b.tx.ExecContext(ctx, d.insert, id.String(), d.name, 1, string(names))
	}
	if err != nil {
		if ended := b.rollback(); ended != nil {
			return fmt.Errorf("%w: %w: %w", transaction.ErrHeuristic, ErrEnded, err)
		}
		return fmt.Errorf("%w: %w", transaction.ErrNotCommitted, err)
	}
	if err := b.tx.Commit(); err != nil {
		b.discard()
		if errors.Is(err, sql.ErrTxDone) {
			return fmt.Errorf("%w: %w", transaction.ErrHeuristic, ErrEnded)
		}
		return err
	}
	_ = b.conn.Close()
	return nil
}

// Rollback rolls back the SQL transaction. If other code has ended it, the error is ErrEnded and
// transaction.ErrHeuristic.
func (d *Database) Rollback(_ context.Context, id uuid.UUID) error {
	b := d.take(id)
	if b == nil {
		return nil
	}
	if err := b.rollback(); err != nil {
		return fmt.Errorf("%w: %w", transaction.ErrHeuristic, ErrEnded)
	}
	return nil
}

// Committed reports whether the SQL transaction has been committed. If it has not, it never will:
// a row is inserted that keeps it from being.
func (d *Database) Committed(ctx context.Context, id uuid.UUID) (bool, error) {
	committed, there, err := d.row(ctx, id)
	if there || err != nil {
		return committed, err
	}
	if _, err = d.db.ExecContext(ctx, d.insert, id.String(), d.name, 0, "[]"); err == nil {
		return false, nil
	}
	committed, there, asked := d.row(ctx, id)
	if !there {
		return false, errors.Join(err, asked)
	}
	return committed, nil
}

func (d *Database) row(ctx context.Context, id uuid.UUID) (committed, there bool, err error) {
	var value int
	err = d.db.QueryRowContext(ctx, d.ask, id.String()).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return false, false, nil
	}
	return value == 1, err == nil, err
}

// Unfinished returns the decisions that are not done. Rows that have kept a transaction from being
// committed have done that, and are removed later.
func (d *Database) Unfinished(ctx context.Context) (list []transaction.Record, err error) {
	d.mu.Lock()
	done := make(map[uuid.UUID]bool, len(d.done))
	for _, id := range d.done {
		done[id] = true
	}
	d.mu.Unlock()
	rows, err := d.db.QueryContext(ctx, d.list, d.name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var old []uuid.UUID
	for rows.Next() {
		var id, names string
		var committed int
		if err := rows.Scan(&id, &committed, &names); err != nil {
			return nil, err
		}
		var r transaction.Record
		r.Transaction, err = uuid.Parse(strings.TrimSpace(id))
		if err = errors.Join(err, json.Unmarshal([]byte(names), &r.Participants)); err != nil {
			return nil, fmt.Errorf("sluice: sqlresource: %s: row %q: %w", d.options.table, id, err)
		}
		switch {
		case done[r.Transaction]:
		case committed == 1:
			list = append(list, r)
		default:
			old = append(old, r.Transaction)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.done = append(d.done, old...)
	d.mu.Unlock()
	return list, nil
}

// Done has the row of a transaction removed later, with others, by a goroutine or by Flush. It
// returns nil.
func (d *Database) Done(ctx context.Context, id uuid.UUID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = append(d.done, id)
	if len(d.done) >= sweepSize && !d.sweeping {
		d.sweeping = true
		// The caller does not wait: the database may be kept busy by other transactions.
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepTime)
			defer cancel()
			defer func() {
				d.mu.Lock()
				d.sweeping = false
				d.mu.Unlock()
			}()
			_ = d.Flush(ctx) // What is left is tried again by the next sweep.
		}()
	}
	return nil
}

// Flush removes the rows of what is done. It is useful before the database is closed; without it
// recovery removes them. If it returns an error, they are removed later.
func (d *Database) Flush(ctx context.Context) error {
	d.sweep.Lock()
	defer d.sweep.Unlock()
	d.mu.Lock()
	done := d.done
	d.mu.Unlock()
	if len(done) == 0 {
		return nil
	}
	// Not in the transactions of users: where those are serializable, a removal would conflict
	// with the insertions of others.
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, id := range done {
		if _, err := tx.ExecContext(ctx, d.remove, id.String()); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	d.mu.Lock()
	d.done = slices.Clone(d.done[len(done):])
	d.mu.Unlock()
	return nil
}
