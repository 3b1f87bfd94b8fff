package access

import (
	"context"
	"slices"
)

// Uploads limits the projects that a caller may upload results to: the projects of the user's teams, and projects
// without a team whose first report the same user uploaded.
type Uploads struct {
	UserID int64
	teams  []int64
}

// Into reports whether the caller may upload results to a project. teams are the teams of the project. creatorID is the
// user whose upload created it, if that user had this limit.
func (u *Uploads) Into(teams []int64, creatorID *int64) bool {
	if len(teams) == 0 {
		return creatorID != nil && *creatorID == u.UserID
	}
	return slices.ContainsFunc(teams, func(id int64) bool { return slices.Contains(u.teams, id) })
}

type uploadsKey struct{}

// WithUploads limits the uploads of a request to the projects that the user sees as a team member.
func WithUploads(ctx context.Context, userID int64, teams *Teams) context.Context {
	return context.WithValue(ctx, uploadsKey{}, &Uploads{UserID: userID, teams: teams.IDs(TeamRead)})
}

// UploadsFromContext returns the limit of uploads. nil means no limit.
func UploadsFromContext(ctx context.Context) *Uploads {
	u, _ := ctx.Value(uploadsKey{}).(*Uploads)
	return u
}
