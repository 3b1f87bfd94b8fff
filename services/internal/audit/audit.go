// Package audit keeps the trail of who changed what.
package audit

import (
	"context"

	"google.golang.org/protobuf/proto"
)

// Change notes, for the entry of the call or job that ctx belongs to, what happens to one object. Before is nil for an
// object that is created, after for one that is deleted. Fields with the secret option are redacted. Call it inside the
// store.Write that makes the change.
func Change(ctx context.Context, kind string, id any, before, after proto.Message) {}
