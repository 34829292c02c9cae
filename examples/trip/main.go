// Command trip books trips over three objects and a SQL database, each as one transaction. It can be killed at any
// time, and started again.
//
//	go run ./examples/trip -db trips.db -n 1000
//
// A trip takes places of a flight, a hotel and a car, which are objects in memory, and is a row in the database. The
// row and the decision are written together, by the database's own transaction; so there is no moment at which a
// kill leaves one without the other, and what is free follows from the rows when the program is started again.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"

	_ "modernc.org/sqlite"
)

func main() {
	path := flag.String("db", "", "the file of the database; none is one in memory")
	n := flag.Int("n", 1000, "how many trips to book or cancel")
	flag.Parse()
	if err := run(context.Background(), *path, *n); err != nil {
		fmt.Fprintln(os.Stderr, "trip:", err)
		os.Exit(1)
	}
}

// run opens the agency, tells its state, makes n requests of 8 customers, and tells its state again.
func run(ctx context.Context, path string, n int) error {
	if path == "" {
		path = "file:trips?mode=memory&cache=shared"
	}
	db, err := sql.Open("sqlite", dataSource(path))
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // SQLite has one writer, and this is no program of readers
	a, err := open(ctx, db)
	if err != nil {
		return err
	}
	if err := a.tell(ctx, "at first"); err != nil {
		return err
	}
	var customers sync.WaitGroup
	failures := make(chan error, 8)
	for range cap(failures) {
		customers.Go(func() { failures <- a.customer(ctx, n/cap(failures)) })
	}
	customers.Wait()
	close(failures)
	for failure := range failures {
		err = errors.Join(err, failure)
	}
	return errors.Join(err, a.tell(ctx, "in the end"), a.close(ctx))
}

// dataSource returns the name of a database for the driver.
func dataSource(path string) string {
	separator := "?"
	if strings.Contains(path, separator) {
		separator = "&"
	}
	return path + separator + "_pragma=busy_timeout(60000)&_txlock=immediate"
}

// customer books trips, and cancels some of them.
func (a *agency) customer(ctx context.Context, n int) error {
	var mine []trip
	for range n {
		if len(mine) > 0 && rand.IntN(3) == 0 {
			if err := a.cancel(ctx, mine[0]); err != nil {
				return err
			}
			mine = mine[1:]
			continue
		}
		switch t, err := a.book(ctx, 1+rand.IntN(4)); {
		case err == nil:
			mine = append(mine, t)
		case !errors.Is(err, errSoldOut):
			return err
		}
	}
	return nil
}

// tell prints what is free and booked, and fails if these do not agree.
func (a *agency) tell(ctx context.Context, when string) error {
	free, booked, err := a.state(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%-10s", when)
	for i, part := range parts {
		fmt.Printf("  %s %3d free", part, free[i])
		if free[i]+booked != capacity {
			err = errors.Join(err, fmt.Errorf("%s: %d are free and %d booked, of %d", part, free[i], booked, capacity))
		}
	}
	fmt.Printf("  %3d booked\n", booked)
	return err
}
