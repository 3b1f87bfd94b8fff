package access

import (
	"context"
	"slices"
)

// Uploads limits to which projects a caller sends results: those of the teams of a user, and those that no team has and
// whose first report came from the same user.
type Uploads struct {
	UserID int64
	teams  []int64
}

// Into reports whether results of a project are taken. teams are those that the project is in, creatorID is whose
// upload made it, if it was a caller with this limit.
func (u *Uploads) Into(teams []int64, creatorID *int64) bool {
	if len(teams) == 0 {
		return creatorID != nil && *creatorID == u.UserID
	}
	return slices.ContainsFunc(teams, func(id int64) bool { return slices.Contains(u.teams, id) })
}

type uploadsKey struct{}

// WithUploads limits the uploads of a call to what a user sees as a member of teams.
func WithUploads(ctx context.Context, userID int64, teams *Teams) context.Context {
	return context.WithValue(ctx, uploadsKey{}, &Uploads{UserID: userID, teams: teams.IDs(TeamRead)})
}

// UploadsFromContext returns the limit of uploads; nil when there is none.
func UploadsFromContext(ctx context.Context) *Uploads {
	u, _ := ctx.Value(uploadsKey{}).(*Uploads)
	return u
}
