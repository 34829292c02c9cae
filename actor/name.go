package actor

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	proto "github.com/asynkron/protoactor-go/actor"
)

// CheckName returns a *NameError with ErrBadName if no object can have the name. The empty name,
// which asks for an automatic one, is valid.
func CheckName(name string) error {
	if !IsName(name) || isAutomatic(name) {
		return &NameError{Name: name, Cause: ErrBadName}
	}
	return nil
}

// IsName reports whether the name can be a part of an address. Automatic names can, too.
func IsName(name string) bool {
	return utf8.ValidString(name) && !strings.Contains(name, "/") && !strings.ContainsFunc(name, unicode.IsControl)
}

// isAutomatic reports whether protoactor may give the name to an unnamed actor, to a future or to
// a guardian. Protoactor assumes that no other process has it: if the name of a future is taken,
// that future never ends, and its timeout removes the process that has the name.
func isAutomatic(name string) bool {
	kind, number, found := strings.Cut(name, "$")
	if !found || number == "" || kind != "" && kind != "future" && kind != "guardian" {
		return false
	}
	return !strings.ContainsFunc(number, func(r rune) bool {
		return !('0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '~' || r == '+')
	})
}

// spawn makes an actor as a child of the parent, with an automatic name if name is empty. Actors
// that are not objects may have any name, so an automatic name may be taken. Then the next one is
// tried; their numbers grow, so a free one is found.
func spawn(actors *proto.ActorSystem, parent Spawner, props *Props, name string) (*PID, error) {
	for {
		id := name
		if id == "" {
			id = actors.ProcessRegistry.NextId()
		}
		pid, err := parent.SpawnNamed(props, id)
		switch {
		case !errors.Is(err, proto.ErrNameExists):
			return pid, err
		case name != "":
			return nil, &NameError{Name: name, Cause: err}
		}
	}
}

// Nowhere returns an address for an object of the given name that has no actor, and cannot get one
// any more. No actor has that address, in this process or another; a message to it is a dead
// letter.
func Nowhere(name string) *PID {
	// The reply registry has no waiter with this id: the numbers of waiters are random.
	return proto.NewPID(replyAddress, name)
}
