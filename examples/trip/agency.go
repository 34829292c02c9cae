package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/synchronizer"
	"github.com/sluice-go/sluice/synchronizer/transaction"
	"github.com/sluice-go/sluice/synchronizer/transaction/sqlresource"
)

// stock is what an airline, a hotel and a car rental have in common: so many places.
type stock struct{ free int }

func (s *stock) take(n int)           { s.free -= n }
func (s *stock) giveBack(n int)       { s.free += n }
func (s *stock) enough(n int) bool    { return s.free >= n }
func (s *stock) left() int            { return s.free }
func (s *stock) untake(n int, _ none) { s.giveBack(n) }
func (s *stock) retake(n int, _ none) { s.take(n) }

type none = activeobject.None

var (
	stocks   = activeobject.NewType[stock]("stock")
	take     = activeobject.Entry(stocks, "take", activeobject.Arg((*stock).take)).WhenArg("enough", (*stock).enough).Undo((*stock).untake)
	giveBack = activeobject.Procedure(stocks, "give back", activeobject.Arg((*stock).giveBack)).Undo((*stock).retake)
	left     = activeobject.Function(stocks, "left", activeobject.Result((*stock).left))
)

// parts are what a trip needs.
var parts = [...]string{"flight", "hotel", "car"}

// capacity is how many places there are of each.
const capacity = 200

// agency books trips: places of three objects, and a row in a database. Each transaction calls the objects first, in
// one order, and the database last. So no two wait for each other; and a circle of waits that leads through the
// database, which tells nothing of its own, could only be ended by a lease.
type agency struct {
	system  *actor.System
	manager *transaction.Manager
	db      *sql.DB
	orders  *sqlresource.Database
	stocks  [len(parts)]*activeobject.Object[stock]
}

// open returns the agency that the database knows. The places are in memory: what is free is what has not been
// booked.
func open(ctx context.Context, db *sql.DB) (_ *agency, err error) {
	if _, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS trip (id INTEGER PRIMARY KEY, travelers INTEGER NOT NULL)"); err != nil {
		return nil, err
	}
	a := &agency{system: actor.NewSystem(), db: db}
	if a.orders, err = sqlresource.New(ctx, db, "orders", sqlresource.CreateTable()); err != nil {
		return nil, err
	}
	if a.manager, err = transaction.NewManager(a.system); err != nil {
		return nil, err
	}
	if _, err = a.manager.Recover(ctx, []transaction.Log{a.orders}); err != nil {
		return nil, err
	}
	booked, err := a.booked(ctx)
	if err != nil {
		return nil, err
	}
	for i, part := range parts {
		if a.stocks[i], err = synchronizer.New(a.system, stocks, &stock{capacity - booked}, activeobject.Name(part)); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// booked returns how many travelers the database has.
func (a *agency) booked(ctx context.Context) (n int, err error) {
	err = a.db.QueryRowContext(ctx, "SELECT coalesce(sum(travelers), 0) FROM trip").Scan(&n)
	return n, err
}

// errSoldOut fails a trip for which there is no place.
var errSoldOut = errors.New("sold out")

// trip is what has been booked.
type trip struct {
	id        int64
	travelers int
}

// book books a trip. Either the places are taken and the row is there, or neither.
func (a *agency) book(ctx context.Context, travelers int) (t trip, err error) {
	t.travelers = travelers
	err = a.manager.Run(ctx, func(ctx context.Context) error {
		for i, part := range parts {
			if _, err := take.Try(ctx, a.stocks[i], travelers); errors.Is(err, activeobject.ErrRefused) {
				return fmt.Errorf("%s: %w", part, errSoldOut)
			} else if err != nil {
				return err
			}
		}
		tx, err := a.orders.Tx(ctx, transaction.From(ctx))
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, "INSERT INTO trip (travelers) VALUES (?) RETURNING id", travelers).Scan(&t.id)
	})
	return t, err
}

// errNoTrip fails a cancellation of what has not been booked.
var errNoTrip = errors.New("there is no such trip")

// cancel cancels a trip. If there is none, the places that have been given back are taken again.
func (a *agency) cancel(ctx context.Context, t trip) error {
	return a.manager.Run(ctx, func(ctx context.Context) error {
		for _, s := range a.stocks {
			if err := giveBack.Do(ctx, s, t.travelers); err != nil {
				return err
			}
		}
		tx, err := a.orders.Tx(ctx, transaction.From(ctx))
		if err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, "DELETE FROM trip WHERE id = ? AND travelers = ?", t.id, t.travelers)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, errNoTrip)
		}
		return nil
	})
}

// state returns how many places are left of each part, and how many the database says are booked: as of one
// moment between two trips.
func (a *agency) state(ctx context.Context) (free [len(parts)]int, booked int, err error) {
	err = a.manager.Run(ctx, func(ctx context.Context) error {
		for i, s := range a.stocks {
			if free[i], err = left.Call(ctx, s, nil); err != nil {
				return err
			}
		}
		booked, err = a.booked(ctx) // all trips that have taken places have ended, rows included
		return err
	})
	return free, booked, err
}

// close ends the agency. Transactions that are open are waited for.
func (a *agency) close(ctx context.Context) error {
	return errors.Join(a.manager.Close(ctx), a.orders.Flush(ctx), a.system.Close(ctx))
}
