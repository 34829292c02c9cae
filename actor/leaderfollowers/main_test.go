package leaderfollowers_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if at := os.Getenv(clientsOf); at != "" {
		os.Exit(clients(at))
	}
	goleak.VerifyTestMain(m)
}
