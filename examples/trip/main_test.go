package main

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// This process may be one that is going to be killed.
func TestMain(m *testing.M) {
	if path := os.Getenv("TRIP_TEST_DB"); path != "" {
		if err := run(context.Background(), path, 1_000_000); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func TestPlacesAndRowsAgree(t *testing.T) {
	require.NoError(t, run(t.Context(), filepath.Join(t.TempDir(), "trips.db"), 400))
}

// Wherever it is killed, the program that is started again finds as many places taken as there are rows, and no
// decision that is not carried out.
func TestKilledAndStartedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trips.db")
	for range 20 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "TRIP_TEST_DB="+path)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		_, err = out.Read(make([]byte, 1)) // it has begun: it tells its state at first, and fails if that is wrong
		require.NoError(t, err)
		time.AfterFunc(time.Duration(rand.IntN(20_000))*time.Microsecond, func() { child.Process.Kill() })
		err = child.Wait()
		require.EqualError(t, err, "signal: killed")
	}
	require.NoError(t, run(t.Context(), path, 80))
}

func TestACancellationOfNoTripTakesThePlacesAgain(t *testing.T) {
	db, err := sql.Open("sqlite", dataSource(filepath.Join(t.TempDir(), "trips.db")))
	require.NoError(t, err)
	defer db.Close()
	a, err := open(t.Context(), db)
	require.NoError(t, err)
	booked, err := a.book(t.Context(), 3)
	require.NoError(t, err)
	require.ErrorIs(t, a.cancel(t.Context(), trip{booked.id + 1, 2}), errNoTrip)
	_, err = a.book(t.Context(), capacity)
	require.ErrorIs(t, err, errSoldOut)
	require.NoError(t, a.tell(t.Context(), "now"))
	free, _, err := a.state(t.Context())
	require.NoError(t, err)
	require.Equal(t, [...]int{capacity - 3, capacity - 3, capacity - 3}, free)
	require.NoError(t, a.cancel(t.Context(), booked))
	require.NoError(t, a.close(t.Context()))
}
