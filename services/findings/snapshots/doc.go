// Package snapshots keeps the columns of recently used deployments in memory, and updates them with new events.
// Reports, and lists, numbers and groups of findings, are computed from them.
package snapshots

import (
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
)

// sharedKey is the key of the snapshots of a database.
type sharedKey struct{ *store.Store }

// Of returns the snapshots of a database, which all domains share.
func Of(d *server.Deps, st *store.Store) *Snapshots {
	return server.Shared(d, sharedKey{st}, func() *Snapshots { return NewSnapshots(st, int64(d.Config.ReportCache)) })
}
