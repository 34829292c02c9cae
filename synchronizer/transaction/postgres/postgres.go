// Package postgres lets a PostgreSQL database take part in transactions by two-phase commit: PREPARE
// TRANSACTION, COMMIT PREPARED and ROLLBACK PREPARED. It works with every driver of
// database/sql for PostgreSQL that takes arguments as $1 (pgx, lib/pq), and with PostgreSQL 10
// and later.
//
//	stock, err := postgres.New(ctx, db, "stock")
//	…
//	tx, err := stock.Tx(ctx, t) // t is the transaction
//	_, err = tx.ExecContext(ctx, "UPDATE …")
//
// The server's max_prepared_transactions has to be at least the number of transactions at the same
// time; it is 0 if it has not been set. A prepared transaction holds its locks until
// it is told the outcome, so after a crash transaction.Recover has to be called.
//
// A database that was only read votes read-only. One that is alone in its transaction commits
// without being prepared.
package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-go/sluice/synchronizer/transaction"
	"github.com/sluice-go/sluice/synchronizer/transaction/internal/branches"
)

// Errors to compare with errors.Is.
var (
	// ErrDisabled means that the server's max_prepared_transactions is 0.
	ErrDisabled = errors.New("sluice: postgres: prepared transactions are disabled (max_prepared_transactions is 0)")
	// ErrName means that a name is empty, or too long: PostgreSQL takes 199 bytes for the names of
	// the resource and the log and the transaction's identifier.
	ErrName = errors.New("sluice: postgres: name is empty or too long")
	// ErrEnded means that the SQL transaction was committed or rolled back by a statement of the
	// user's.
	ErrEnded = errors.New("sluice: postgres: the SQL transaction has been ended by other code")
)

const (
	prefix     = "sluice:"
	maxGID     = 199
	poll       = 20 * time.Millisecond
	uuidLength = 36
)

// Database is a transaction.Recoverable and a transaction.OnePhase. Its methods may be called by
// several goroutines.
type Database struct {
	db      *sql.DB
	name    string
	begin   string
	family  string // begins the application_name of this resource's SQL transactions, in any process
	process string // the application_name in this process

	open branches.Set[branch]
}

// branch is the SQL transaction of one transaction in this process.
type branch struct {
	tx *Tx

	conn    *sql.Conn // nil when the SQL transaction has left it
	gid     string    // when PREPARE TRANSACTION has been sent
	doubt   bool      // whether PREPARE TRANSACTION has failed, and may be running
	cause   error     // why COMMIT has failed
	xid     sql.NullInt64
	backend backend
}

// backend identifies the server process of a connection.
type backend struct {
	pid   int
	start string
}

// Tx runs statements in the SQL transaction of a transaction. The SQL transaction is ended by the
// transaction, never by a statement. It has the methods of *sql.Tx that generated code and
// query builders need.
type Tx struct{ conn *sql.Conn }

// ExecContext runs a statement that returns no rows, as that of *sql.Tx.
func (t *Tx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return t.conn.ExecContext(ctx, query, args...)
}

// QueryContext runs a statement that returns rows, as that of *sql.Tx.
func (t *Tx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.conn.QueryContext(ctx, query, args...)
}

// QueryRowContext runs a statement that returns at most one row, as that of *sql.Tx.
func (t *Tx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return t.conn.QueryRowContext(ctx, query, args...)
}

// PrepareContext prepares a statement, as that of *sql.Tx.
func (t *Tx) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return t.conn.PrepareContext(ctx, query)
}

// Option changes how a database takes part.
type Option func(*Database)

// Isolation sets the isolation level of the SQL transactions, such as "REPEATABLE READ"; it is
// "SERIALIZABLE" if this option is not given. Transactions are serializable only with
// that level.
func Isolation(level string) Option {
	return func(d *Database) { d.begin = "BEGIN ISOLATION LEVEL " + level }
}

// New returns the resource of a database. The name is part of the identifiers of its prepared
// transactions: it is the same after a restart, and no other process uses it with this database.
// The error is ErrName, ErrDisabled, or the database's.
func New(ctx context.Context, db *sql.DB, name string, opts ...Option) (*Database, error) {
	hash := sha256.Sum256([]byte(name))
	d := &Database{db: db, name: name, family: prefix + hex.EncodeToString(hash[:8]) + ":"}
	d.process = d.family + hex.EncodeToString(binary.BigEndian.AppendUint64(nil, rand.Uint64()))
	Isolation("SERIALIZABLE")(d)
	for _, set := range opts {
		set(d)
	}
	if name == "" || len(d.prefix())+len(":")+uuidLength > maxGID {
		return nil, ErrName
	}
	var enabled bool
	err := db.QueryRowContext(ctx, "SELECT current_setting('max_prepared_transactions')::int > 0").Scan(&enabled)
	switch {
	case err != nil:
		return nil, err
	case !enabled:
		return nil, ErrDisabled
	}
	return d, nil
}

// Name returns the name that was given to New.
func (d *Database) Name() string { return d.name }

// prefix is what the identifiers of this resource's prepared transactions begin with.
func (d *Database) prefix() string { return prefix + url.QueryEscape(d.name) + ":" }

// gid returns the identifier of a prepared transaction. It needs no quoting.
func (d *Database) gid(b transaction.Branch) (string, error) {
	gid := d.prefix() + url.QueryEscape(b.Log) + ":" + b.Transaction.String()
	if len(gid) > maxGID {
		return "", fmt.Errorf("%w: %s", ErrName, gid)
	}
	return gid, nil
}

// Tx returns the SQL transaction of a transaction. The first call begins it, and registers the
// database; it returns the database's error, or a *transaction.RegistrationError. The
// SQL transaction has a connection of its own until the transaction is prepared or ends.
func (d *Database) Tx(ctx context.Context, t transaction.Registrar) (*Tx, error) {
	b, err := d.open.Begin(ctx, t.ID(), func() (*branch, error) { return d.beginFor(ctx, t) })
	if err != nil {
		return nil, err
	}
	return b.tx, nil
}

// beginFor begins the SQL transaction of a transaction.
func (d *Database) beginFor(ctx context.Context, t transaction.Registrar) (_ *branch, err error) {
	b, begun := new(branch), false
	defer func() {
		if !begun {
			b.discard()
		}
	}()
	if b.conn, err = d.db.Conn(ctx); err != nil {
		return nil, err
	}
	// The settings last as long as the SQL transaction: they tell here whether it is still open, and
	// a later process that this one has been killed, and its PREPARE TRANSACTION may be under way.
	_, err = b.conn.ExecContext(ctx, d.begin+"; SET LOCAL sluice.transaction = '"+t.ID().String()+"'; SET LOCAL application_name = '"+d.process+"'")
	if err == nil {
		err = t.Register(d)
	}
	if err != nil {
		return nil, err
	}
	b.tx, begun = &Tx{b.conn}, true
	return b, nil
}

// release returns the connection, which is in no SQL transaction.
func (b *branch) release() {
	_ = b.conn.Close()
	b.conn = nil
}

// discard closes the connection, so that the server rolls back what is open.
func (b *branch) discard() {
	if b.conn != nil {
		_ = b.conn.Raw(func(any) error { return driver.ErrBadConn })
		b.release()
	}
}

// inspect reads what is needed to end the SQL transaction. An error means that it has failed, or
// is not open any more. After it succeeds, COMMIT and PREPARE TRANSACTION do what they say,
// or fail: in a failed SQL transaction they would roll back, without an error.
func (b *branch) inspect(ctx context.Context, id uuid.UUID) error {
	var open string
	err := b.conn.QueryRowContext(ctx, `SELECT coalesce(current_setting('sluice.transaction', true), ''), txid_current_if_assigned(),
		pg_backend_pid(), coalesce((SELECT backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()), '')`,
	).Scan(&open, &b.xid, &b.backend.pid, &b.backend.start)
	if err == nil && open != id.String() {
		err = fmt.Errorf("%w: %w", transaction.ErrHeuristic, ErrEnded)
	}
	return err
}

// Prepare prepares the SQL transaction, or votes read-only and ends it if it has changed nothing.
func (d *Database) Prepare(ctx context.Context, branch transaction.Branch) (transaction.Vote, error) {
	b := d.open.Find(branch.Transaction)
	if b == nil || b.conn == nil {
		return 0, ErrEnded
	}
	gid, err := d.gid(branch)
	if err != nil {
		return 0, err
	}
	if err := b.inspect(ctx, branch.Transaction); err != nil {
		return 0, err
	}
	if !b.xid.Valid { // It has changed nothing. Whether what it has read is serializable is checked now.
		if _, err := b.conn.ExecContext(ctx, "COMMIT"); err != nil {
			return 0, err
		}
		b.release()
		d.open.Forget(branch.Transaction)
		return transaction.ReadOnly, nil
	}
	b.gid = gid
	if _, err := b.conn.ExecContext(ctx, "PREPARE TRANSACTION '"+gid+"'"); err != nil {
		b.doubt = true
		return 0, err
	}
	b.release()
	return transaction.Prepared, nil
}

// Commit commits the prepared transaction.
func (d *Database) Commit(ctx context.Context, id uuid.UUID) error {
	if err := d.finish(ctx, "COMMIT PREPARED", id, d.open.Find(id)); err != nil {
		return err
	}
	d.open.Forget(id)
	return nil
}

// Rollback rolls back the SQL transaction, prepared or not.
func (d *Database) Rollback(ctx context.Context, id uuid.UUID) error {
	b := d.open.Find(id)
	if b != nil && b.conn != nil {
		if _, err := b.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
			b.discard()
		} else {
			b.release()
			b.doubt = false // The statement before has ended too.
		}
	}
	if b != nil && b.gid == "" { // The server rolls back when the connection is closed.
		d.open.Forget(id)
		return nil
	}
	if b != nil && b.doubt {
		if err := d.awaitEnd(ctx, b.backend); err != nil {
			return err
		}
	}
	if err := d.finish(ctx, "ROLLBACK PREPARED", id, b); err != nil {
		return err
	}
	d.open.Forget(id)
	return nil
}

// awaitEnd ends the server process of a connection that has been closed, and waits for its end: it
// may be about to prepare.
func (d *Database) awaitEnd(ctx context.Context, p backend) error {
	return d.terminate(ctx, "pid = $1::int AND backend_start::text = $2::text", p.pid, p.start)
}

// terminate ends the server processes that meet a condition, and waits for their end.
func (d *Database) terminate(ctx context.Context, condition string, args ...any) error {
	for {
		var running bool
		err := d.db.QueryRowContext(ctx, "SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity WHERE "+condition, args...).Scan(&running)
		if err != nil || !running {
			return err
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// finish runs COMMIT PREPARED or ROLLBACK PREPARED, unless there is no such prepared transaction.
func (d *Database) finish(ctx context.Context, statement string, id uuid.UUID, b *branch) error {
	var gids []string
	if b != nil {
		gids = []string{b.gid}
	} else {
		branches, err := d.list(ctx, id.String())
		if err != nil {
			return err
		}
		gids = branches
	}
	for _, gid := range gids {
		if _, err := d.db.ExecContext(ctx, statement+" '"+gid+"'"); err != nil {
			left, asked := d.list(ctx, gid)
			if asked != nil || len(left) > 0 {
				return errors.Join(err, asked)
			}
		}
	}
	return nil
}

// list returns the identifiers of this resource's prepared transactions that end so.
func (d *Database) list(ctx context.Context, suffix string) (gids []string, err error) {
	rows, err := d.db.QueryContext(ctx, `SELECT gid FROM pg_prepared_xacts
		WHERE database = current_database() AND left(gid, length($1::text)) = $1::text AND right(gid, length($2::text)) = $2::text ORDER BY prepared`, d.prefix(), suffix)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var gid string
		if err := rows.Scan(&gid); err != nil {
			return nil, err
		}
		gids = append(gids, gid)
	}
	return gids, rows.Err()
}

// InDoubt returns the prepared transactions of this resource that the server has. Before that it ends
// what earlier processes have left open there: a PREPARE TRANSACTION that a killed process has
// sent may not have been run yet.
func (d *Database) InDoubt(ctx context.Context) ([]transaction.Branch, error) {
	err := d.terminate(ctx, "datname = current_database() AND left(application_name, length($1::text)) = $1::text AND application_name <> $2::text", d.family, d.process)
	if err != nil {
		return nil, err
	}
	gids, err := d.list(ctx, "")
	if err != nil {
		return nil, err
	}
	var list []transaction.Branch
	for _, gid := range gids {
		rest := strings.TrimPrefix(gid, d.prefix())
		log, id, _ := strings.Cut(rest, ":")
		name, err := url.QueryUnescape(log)
		if err != nil {
			continue // It is not ours.
		}
		if id, err := uuid.Parse(id); err == nil {
			list = append(list, transaction.Branch{Transaction: id, Log: name})
		}
	}
	return list, nil
}

// CommitOnePhase commits without having prepared. After an error that tells nothing it asks the
// server what has become of the SQL transaction.
func (d *Database) CommitOnePhase(ctx context.Context, id uuid.UUID) error {
	b := d.open.Find(id)
	if b == nil {
		return fmt.Errorf("%w: %w", transaction.ErrNotCommitted, ErrEnded)
	}
	if b.conn != nil {
		if err := b.inspect(ctx, id); err != nil {
			return fmt.Errorf("%w: %w", transaction.ErrNotCommitted, err)
		}
		_, err := b.conn.ExecContext(ctx, "COMMIT")
		if err == nil {
			b.release()
			d.open.Forget(id)
			return nil
		}
		b.cause = err
		b.discard()
	}
	committed, err := d.committed(ctx, b)
	switch {
	case err != nil:
		return errors.Join(b.cause, err)
	case !committed:
		return fmt.Errorf("%w: %w", transaction.ErrNotCommitted, b.cause)
	}
	d.open.Forget(id)
	return nil
}

// committed asks the server for the outcome of an SQL transaction whose COMMIT has failed, and
// waits while it has none.
func (d *Database) committed(ctx context.Context, b *branch) (bool, error) {
	if !b.xid.Valid { // It has changed nothing.
		return false, nil
	}
	for {
		var status sql.NullString
		err := d.db.QueryRowContext(ctx, "SELECT txid_status($1::bigint)", b.xid.Int64).Scan(&status)
		switch {
		case err != nil:
			return false, err
		case status.String == "committed":
			return true, nil
		case status.String == "aborted":
			return false, nil
		case !status.Valid:
			return false, errors.New("sluice: postgres: the server has forgotten the SQL transaction")
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
