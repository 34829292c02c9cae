package mailbox_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/mailbox"
)

// ending is a context that ends when it has been asked some times.
type ending struct {
	context.Context
	left int
}

func (e *ending) Err() error {
	if e.left--; e.left >= 0 {
		return nil
	}
	return context.Canceled
}

// Whoever looks at the context last, as long as no body has run, the selection ends
// with it, and has chosen nobody.
func TestASelectionEndsWithItsContextWheneverThatIs(t *testing.T) {
	for looks, ran := 0, 0; ran == 0; looks++ {
		r := newRoom(mailbox.Config{})
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		v := r.visit(tidy, "v")
		var s mailbox.Selection
		s.Begin()
		s.Add(&ending{ctx, looks}, &v.Request, &r.Mailbox, mailbox.Now(), false)
		i, err := s.Select(&ending{ctx, 0})
		if ran = v.ran; ran > 0 {
			require.Greater(t, looks, 2)
			break
		}
		require.ErrorIs(t, err, context.Canceled, "after %d looks", looks)
		require.Equal(t, -1, i, "after %d looks", looks)
	}
}
