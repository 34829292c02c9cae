package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/synchronizer/conflicttest"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

func TestWhatTheTableLetsRunAtOnceIsSafe(t *testing.T) {
	keys := rapid.SampledFrom([]string{"a", "b", "c"})
	states := func(t *rapid.T) func() *store {
		values := rapid.MapOf(keys, rapid.String()).Draw(t, "values")
		return func() *store {
			s := &store{fetch: func(_ context.Context, key string) (string, error) { return "new " + key, nil }}
			for k, v := range values {
				s.values.Store(k, v)
			}
			return s
		}
	}
	conflicttest.Check(t, stores, table(), states, conflicttest.Fingerprint(contents),
		conflicttest.Arguments(load, keys), conflicttest.Arguments(read, keys))
}

// contents is for the check: it does not look into a sync.Map by itself.
func contents(s *store) string {
	all := map[any]any{}
	s.values.Range(func(k, v any) bool { all[k] = v; return true })
	return fmt.Sprint(all) // sorted by key
}

// source is what the cache loads from. Each fetch sends its key, and waits for the value.
type source struct{ fetches, values chan string }

func newCache(t *testing.T) (Cache, source) {
	t.Helper()
	s := source{make(chan string), make(chan string)}
	cache, err := New(objecttest.NewSystem(t), func(_ context.Context, key string) (string, error) {
		s.fetches <- key
		return <-s.values, nil
	})
	require.NoError(t, err)
	return cache, s
}

func TestDifferentKeysAreLoadedAtOnce(t *testing.T) {
	cache, source := newCache(t)
	a, b := load.Send(t.Context(), cache.object, "a"), load.Send(t.Context(), cache.object, "b")
	assert.ElementsMatch(t, []string{"a", "b"}, []string{<-source.fetches, <-source.fetches})

	source.values <- "value"
	source.values <- "value"
	for _, f := range []activeobject.Future[string]{a, b} {
		v, err := f.Await(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "value", v)
	}
}

func TestAKeyIsLoadedOnceForAllThatWait(t *testing.T) {
	cache, source := newCache(t)
	first := load.Send(t.Context(), cache.object, "a")
	require.Equal(t, "a", <-source.fetches)
	second, reader := load.Send(t.Context(), cache.object, "a"), read.Send(t.Context(), cache.object, "a")
	objecttest.Waiting(t, cache.object, load, 1)
	objecttest.Waiting(t, cache.object, read, 1)

	source.values <- "value" // one fetch for all three
	for _, f := range []activeobject.Future[string]{first, second, reader} {
		v, err := f.Await(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "value", v)
	}
}

func TestAReadDoesNotWaitForAnotherKey(t *testing.T) {
	cache, source := newCache(t)
	loading := load.Send(t.Context(), cache.object, "a")
	require.Equal(t, "a", <-source.fetches)
	_, err := read.Call(t.Context(), cache.object, "b")
	require.ErrorIs(t, err, errMissing)
	source.values <- "value"
	_, err = loading.Await(t.Context())
	require.NoError(t, err)
}

func TestReadsRunBesideEachOther(t *testing.T) {
	cache, _ := newCache(t)
	begun, end, viewed := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() { // a read that takes long; View is another function, with the same conflicts
		viewed <- cache.object.View(t.Context(), func(*store) error { close(begun); <-end; return nil })
	}()
	<-begun
	_, err := read.Call(t.Context(), cache.object, "a")
	require.ErrorIs(t, err, errMissing)
	close(end)
	require.NoError(t, <-viewed)
}

func TestClearWaitsForLoads(t *testing.T) {
	cache, source := newCache(t)
	loading := load.Send(t.Context(), cache.object, "a")
	require.Equal(t, "a", <-source.fetches)
	clearing := clearAll.Send(t.Context(), cache.object, nil)
	objecttest.Waiting(t, cache.object, clearAll, 1)
	source.values <- "value"
	_, err := loading.Await(t.Context())
	require.NoError(t, err)
	_, err = clearing.Await(t.Context())
	require.NoError(t, err)
	_, err = read.Call(t.Context(), cache.object, "a")
	require.ErrorIs(t, err, errMissing)
}
