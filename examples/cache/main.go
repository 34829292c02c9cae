// Command cache loads values when they are asked for: different keys at once, each key once.
//
// The cache is a Synchronizer. Its conflict table is that of the declaration, narrowed to equal keys:
//
//	       read  load  clear
//	read         =     •
//	load   =     =     •
//	clear  •     •     •
//	= if their keys are equal
//
// So a load, which may take long, delays the requests for its own key only, and these find the value there.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer"
)

var errMissing = errors.New("cache: not loaded")

// store is what the object owns. Loads of different keys write at the same time: a sync.Map allows that, and a map does not.
type store struct {
	fetch  func(ctx context.Context, key string) (string, error)
	values sync.Map
}

func (s *store) read(key string) (string, error) {
	if v, found := s.values.Load(key); found {
		return v.(string), nil
	}
	return "", errMissing
}

// load fetches the value, unless a load of the same key has ended while this one waited.
func (s *store) load(ctx context.Context, key string) (string, error) {
	if v, err := s.read(key); err == nil {
		return v, nil
	}
	v, err := s.fetch(ctx, key)
	if err != nil {
		return "", err
	}
	s.values.Store(key, v)
	return v, nil
}

func (s *store) clear() { s.values.Clear() }

var (
	stores   = activeobject.NewType[store]("cache")
	read     = activeobject.Function(stores, "read", (*store).read)
	load     = activeobject.ProcedureCtx(stores, "load", (*store).load)
	clearAll = activeobject.Procedure(stores, "clear", activeobject.Plain((*store).clear))
)

// table is declared by a function: Conflicts needs the declaration to be complete.
func table() guards.Table {
	key := func(key string) string { return key }
	return stores.Conflicts().EqualKeys(guards.Key(load, key), guards.Key(read, key))
}

// Cache is the client side: a handle, which may be copied.
type Cache struct{ object *activeobject.Object[store] }

// New makes a cache of what fetch returns. Fetch runs for different keys at once.
func New(system *actor.System, fetch func(context.Context, string) (string, error), options ...activeobject.Option) (Cache, error) {
	object, err := synchronizer.New(system, stores, &store{fetch: fetch}, append(options, synchronizer.Conflicts(table()))...)
	return Cache{object}, err
}

// Get returns the value of the key. If it is not there, Get loads it; a load that fails leaves nothing behind.
func (c Cache) Get(ctx context.Context, key string) (string, error) {
	v, err := read.Call(ctx, c.object, key)
	if errors.Is(err, errMissing) {
		return load.Call(ctx, c.object, key)
	}
	return v, err
}

// Clear empties the cache, after the loads that run.
func (c Cache) Clear(ctx context.Context) error { return clearAll.Do(ctx, c.object, nil) }

func main() {
	system := actor.NewSystem()
	defer func() { _ = system.Close(context.Background()) }()
	cache, err := New(system, func(_ context.Context, key string) (string, error) {
		fmt.Println("load", key)
		time.Sleep(100 * time.Millisecond)
		return "value of " + key, nil
	})
	if err != nil {
		panic(err)
	}
	start := time.Now()
	var requests errgroup.Group
	for i := range 9 {
		requests.Go(func() error {
			_, err := cache.Get(context.Background(), fmt.Sprint("k", i%3))
			return err
		})
	}
	fmt.Println("9 requests, 3 keys:", requests.Wait(), "after", time.Since(start).Round(10*time.Millisecond))
}
