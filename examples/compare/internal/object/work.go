package object

import (
	"sync"
	"time"
)

// Work is what a body does besides reading and writing its object.
type Work struct {
	CPU  time.Duration // that it computes
	Wait time.Duration // that it then sleeps
}

// Do does the work.
func (w Work) Do() {
	if w.CPU > 0 {
		_ = Spin(int(w.CPU * rounds / perRounds()))
	}
	if w.Wait > 0 {
		time.Sleep(w.Wait)
	}
}

// String says what the work is.
func (w Work) String() string {
	switch {
	case w.CPU == 0 && w.Wait == 0:
		return "nothing"
	case w.Wait == 0:
		return w.CPU.String() + " of CPU"
	case w.CPU == 0:
		return w.Wait.String() + " of waiting"
	}
	return w.CPU.String() + " of CPU and " + w.Wait.String() + " of waiting"
}

const rounds = 20_000

// Calibrate finds out how fast the machine spins; the first Work that computes does
// it otherwise.
func Calibrate() { perRounds() }

// perRounds is how long so many rounds of Spin take: the fastest of many short
// trials, the one that was disturbed least.
var perRounds = sync.OnceValue(func() time.Duration {
	fastest := time.Hour
	for begun := time.Now(); time.Since(begun) < 50*time.Millisecond; {
		start := time.Now()
		_ = Spin(rounds)
		fastest = min(fastest, time.Since(start))
	}
	return max(1, fastest)
})

// Spin computes nothing of interest for so many rounds, each of which needs the result of
// the one before: empty ones some processors do several at a time, now and then.
//
//go:noinline
func Spin(rounds int) (x uint64) {
	for range rounds {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}
