package actor

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	proto "github.com/asynkron/protoactor-go/actor"
)

// CheckName returns a *NameError with ErrBadName if no object can have the name. The empty
// name, which stands for one that is free, is fine.
func CheckName(name string) error {
	if !IsName(name) || isAutomatic(name) {
		return &NameError{Name: name, Cause: ErrBadName}
	}
	return nil
}

// IsName reports whether the name can be a part of an address. It may be an automatic one.
func IsName(name string) bool {
	return utf8.ValidString(name) && !strings.Contains(name, "/") && !strings.ContainsFunc(name, unicode.IsControl)
}

// isAutomatic reports whether protoactor may give the name to an actor without one, to a
// future or to a guardian. It takes for granted that no other process has it: if that of a
// future is taken the future never ends, and its timeout removes whatever has the name.
func isAutomatic(name string) bool {
	kind, number, found := strings.Cut(name, "$")
	if !found || number == "" || kind != "" && kind != "future" && kind != "guardian" {
		return false
	}
	return !strings.ContainsFunc(number, func(r rune) bool {
		return !('0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '~' || r == '+')
	})
}

// spawn makes an actor of the parent's, with an automatic name if name is empty. Actors
// that are not objects may have any name, so that one of these may be taken; those that
// follow are higher, so that one is found.
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

// Nowhere returns an address for an object of the given name that has no actor, and cannot
// get one any more. No actor has it, here or elsewhere; what is sent to it is a dead letter.
func Nowhere(name string) *PID {
	// There is no guest at this place of the desk: the numbers of guests are random.
	return proto.NewPID(replyAddress, name)
}
