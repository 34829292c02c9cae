//go:build postgres

package transaction_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sluice-go/sluice/synchronizer/transaction"
	"github.com/sluice-go/sluice/synchronizer/transaction/postgres"
)

// fileAndPostgres are a durable resource and a database that both prepare, with a log on bbolt.
func fileAndPostgres(dir string, s *steps) banks {
	a := openFile(dir, "a", initial, s)
	ra := stepped{a, s}
	address := os.Getenv("SLUICE_POSTGRES_DSN")
	if address == "" {
		panic("SLUICE_POSTGRES_DSN is not set")
	}
	db, err := sql.Open("pgx", address)
	must(err)
	for _, statement := range []string{
		"CREATE TABLE IF NOT EXISTS crash_bank (id int PRIMARY KEY, balance int)",
		// Not ON CONFLICT: that would wait for a prepared transaction which has changed the row.
		fmt.Sprintf("INSERT INTO crash_bank SELECT 1, %d WHERE NOT EXISTS (SELECT 1 FROM crash_bank)", initial),
	} {
		_, err := db.Exec(statement)
		must(err)
	}
	pg, err := postgres.New(context.Background(), db, "crash test")
	must(err)
	rb := stepped{pg, s}
	log := openLog(dir)
	return banks{
		a: a.bank(ra),
		b: bank{
			change: func(ctx context.Context, t transaction.Registrar, by int) error {
				tx, err := pg.Tx(ctx, steppedRegistrar{t, s})
				if err != nil {
					return err
				}
				_, err = tx.ExecContext(ctx, "UPDATE crash_bank SET balance = balance + $1 WHERE id = 1", by)
				return err
			},
			balance: func() (n int) {
				must(db.QueryRow("SELECT balance FROM crash_bank WHERE id = 1").Scan(&n))
				return n
			},
		},
		log: steppedLog{log, s}, logs: []transaction.Log{steppedLog{log, s}},
		resources: []transaction.Recoverable{ra, rb},
		close: func() {
			must(log.Close())
			must(db.Close())
		},
	}
}

// steppedRegistrar registers resources so that their steps are counted.
type steppedRegistrar struct {
	transaction.Registrar
	*steps
}

func (r steppedRegistrar) Register(resource transaction.Resource) error {
	return r.Registrar.Register(stepped{resource.(transaction.Recoverable), r.steps})
}

func init() { childTests["file and PostgreSQL"] = fileAndPostgres }

func TestFileAndPostgreSQLAgreeAfterCrashesAtEveryStep(t *testing.T) {
	runCrashTest(t, "file and PostgreSQL", fileAndPostgres)
}
