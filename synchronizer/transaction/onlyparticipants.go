package transaction

import (
	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/internal/settings"
)

// OnlyParticipants makes an object that takes no part in transactions fail requests which belong to one, with an
// *activeobject.NoPartError, instead of running them unisolated. It is for one object, or as a default for all
// of a system:
//
//	activeobject.Defaults(system, transaction.OnlyParticipants())
//
// Such an object has no fast path. At objects that take part it changes nothing.
func OnlyParticipants() activeobject.Option { return settings.Strict[activeobject.Option]() }
