// Package soak holds the tests that keep objects at work for long: a soak with a
// ledger, in which every request is accounted for; calls there and back between
// objects and actors; lives that end under load. It has no code of its own, and is
// apart from the tests of activeobject so that it is soon compiled.
//
//	go test ./activeobject/soak                            a miniature, bounded by the number of requests
//	go test -race ./activeobject/soak -soak.for=2h         for two hours
//	go test ./activeobject/soak -soak.seed=42              with the choices of an earlier run
//
// The seed can be in the environment, too, as SLUICE_SOAK_SEED. It decides what is
// asked of whom; the order in which that happens is up to the scheduler of Go. A test
// that fails says its seed.
package soak
