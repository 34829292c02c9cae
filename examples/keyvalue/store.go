package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer"
)

var errMissing = errors.New("no such key")

// pair is a key with its value.
type pair struct{ key, value string }

// store is what the object owns: a Synchronizer, so that requests for different keys run at once. A
// sync.Map allows that, and a map does not.
type store struct {
	values sync.Map
	size   atomic.Int64
}

func (s *store) get(key string) (string, error) {
	if v, found := s.values.Load(key); found {
		return v.(string), nil
	}
	return "", errMissing
}

func (s *store) set(p pair) {
	if _, found := s.values.Swap(p.key, p.value); !found {
		s.size.Add(1)
	}
}

func (s *store) remove(key string) error {
	if _, found := s.values.LoadAndDelete(key); !found {
		return errMissing
	}
	s.size.Add(-1)
	return nil
}

func (s *store) has(key string) bool {
	_, found := s.values.Load(key)
	return found
}

var (
	stores = activeobject.NewType[store]("store")
	get    = activeobject.Function(stores, "get", (*store).get)
	set    = activeobject.Procedure(stores, "set", activeobject.Arg((*store).set))
	remove = activeobject.Procedure(stores, "remove", activeobject.ArgError((*store).remove))
	wait   = activeobject.Function(stores, "wait", (*store).get).WhenArg("the key is there", (*store).has)
	size   = activeobject.Function(stores, "size", activeobject.Result(func(s *store) int64 { return s.size.Load() }))
)

// table lets requests run at once unless they have the same key and one of them changes it. It is
// declared by a function, as Conflicts needs the declaration to be complete.
func table() guards.Table {
	key := func(key string) string { return key }
	return stores.Conflicts().
		Compatible(set, size).Compatible(remove, size).
		EqualKeys(guards.Key(set, func(p pair) string { return p.key }), guards.Key(remove, key), guards.Key(get, key), guards.Key(wait, key))
}

// Store is the client side of a store: a handle, which may be copied.
type Store struct{ object *activeobject.Object[store] }

// NewStore makes an empty store. Its requests run on the threads of those that call it.
func NewStore(system *actor.System) (Store, error) {
	object, err := synchronizer.New(system, stores, &store{}, synchronizer.Conflicts(table()))
	return Store{object}, err
}

// Get returns the value of a key.
func (s Store) Get(ctx context.Context, key string) (string, error) {
	return get.Call(ctx, s.object, key)
}

// Set gives a key a value.
func (s Store) Set(ctx context.Context, key, value string) error {
	return set.Do(ctx, s.object, pair{key, value})
}

// Delete removes a key.
func (s Store) Delete(ctx context.Context, key string) error { return remove.Do(ctx, s.object, key) }

// Wait returns the value of a key as soon as there is one.
func (s Store) Wait(ctx context.Context, key string) (string, error) {
	return wait.Call(ctx, s.object, key)
}

// Len returns how many keys there are.
func (s Store) Len(ctx context.Context) (int64, error) { return size.Call(ctx, s.object, nil) }
