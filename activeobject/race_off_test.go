//go:build !race

package activeobject_test

// raced says that the race detector is on, under which pools lose records on purpose.
const raced = false
