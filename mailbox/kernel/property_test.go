package kernel_test

import (
	"testing"

	"pgregory.net/rapid"
)

// drawn lets rapid choose.
type drawn struct{ *rapid.T }

func (d drawn) choose(n int, what string) int { return rapid.IntRange(0, n-1).Draw(d.T, what) }

// Whatever comes in, the kernel starts and fails the same requests in the same
// order as a scheduler that knows nothing but the rules.
func TestKernelDecidesAsTheRulesSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drawn{t})
		t.Repeat(map[string]func(*rapid.T){"step": func(t *rapid.T) {
			w.t, w.src = t, drawn{t}
			w.step()
		}})
		w.finish()
	})
}

// bytes chooses by the bytes of a fuzzer, and always the first when they are
// used up.
type bytes struct{ left []byte }

func (b *bytes) choose(n int, _ string) int {
	if len(b.left) == 0 {
		return 0
	}
	c := int(b.left[0]) % n
	b.left = b.left[1:]
	return c
}

func FuzzKernel(f *testing.F) {
	f.Add([]byte("an idle object"))
	f.Fuzz(func(t *testing.T, data []byte) {
		src := &bytes{data}
		w := newWorld(t, src)
		for len(src.left) > 0 {
			w.step()
		}
		w.finish()
	})
}
