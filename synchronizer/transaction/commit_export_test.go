package transaction

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Participants are the participants of one transaction, for tests outside the package.
type Participants struct{ p *participants }

// NewParticipants begins a transaction of a given identifier.
func NewParticipants(id uuid.UUID, log Log, wait time.Duration) Participants {
	return Participants{newParticipants(id, newCommitSettings(log, wait, nil))}
}

// ID implements Registrar.
func (p Participants) ID() uuid.UUID { return p.p.id }

// Register implements Registrar.
func (p Participants) Register(r Resource) error { return p.p.register(r, false) }

// RegisterLast implements Registrar.
func (p Participants) RegisterLast(r LastResource) error { return p.p.registerLast(r) }

// Commit commits.
func (p Participants) Commit(ctx context.Context) error { return p.p.commit(ctx) }

// Rollback rolls back.
func (p Participants) Rollback(ctx context.Context) error { return p.p.rollback(ctx, nil) }
