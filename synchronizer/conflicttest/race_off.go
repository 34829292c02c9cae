//go:build !race

package conflicttest

const detecting = false

func races() int { return 0 }
