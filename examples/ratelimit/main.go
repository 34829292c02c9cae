// Command ratelimit is a rate limiter: n requests in each interval, and a burst of them after a pause.
//
// The guard looks at the time. The object has one timer, for the time at which the next token comes; there is no goroutine that fills a
// bucket. Requests pass in order of arrival, and one whose context ends while it waits takes no token.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// bucket is a token bucket that stores one time instead of a count.
type bucket struct {
	activeobject.Clock
	every time.Duration // between two tokens
	burst int           // tokens of a full bucket
	full  time.Time     // when it is full, if no request takes a token before
}

// hasToken holds from the time at which burst-1 tokens are missing.
func (b *bucket) hasToken() bool {
	return b.Reached(b.full.Add(-time.Duration(b.burst-1) * b.every))
}

// take takes a token, so the bucket is full one token later.
func (b *bucket) take() {
	if now := b.Now(); b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(b.every)
}

var (
	buckets = activeobject.NewType[bucket]("rate limiter")
	take    = activeobject.Entry(buckets, "take", activeobject.Plain((*bucket).take)).
		WhenTime("a token is there", (*bucket).hasToken)
)

// Limiter lets n requests pass in each interval.
type Limiter struct{ object *activeobject.Object[bucket] }

// New makes a limiter of n requests for each interval, of which burst may pass at once.
func New(system *actor.System, n int, interval time.Duration, burst int, options ...activeobject.Option) (Limiter, error) {
	if n < 1 || burst < 1 {
		return Limiter{}, fmt.Errorf("rate limiter: %d requests with a burst of %d would never pass", n, burst)
	}
	object, err := activeobject.New(system, buckets, &bucket{every: interval / time.Duration(n), burst: burst}, options...)
	return Limiter{object}, err
}

// Wait waits for a token and takes it. After an error it has taken none.
func (l Limiter) Wait(ctx context.Context) error { return take.Do(ctx, l.object, nil) }

// Allow takes a token if one is there for it, and says whether it did.
func (l Limiter) Allow(ctx context.Context) (bool, error) {
	_, err := take.Try(ctx, l.object, nil)
	if errors.Is(err, activeobject.ErrRefused) {
		return false, nil
	}
	return err == nil, err
}

func main() {
	ctx, system := context.Background(), actor.NewSystem()
	defer func() { _ = system.Close(ctx) }()
	limiter, err := New(system, 10, time.Second, 3)
	if err != nil {
		panic(err)
	}
	for start, i := time.Now(), 1; i <= 6; i++ {
		if err := limiter.Wait(ctx); err != nil {
			panic(err)
		}
		fmt.Printf("request %d after %v\n", i, time.Since(start).Round(10*time.Millisecond))
	}
}
