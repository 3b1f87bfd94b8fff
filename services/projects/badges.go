package projects

import (
	"context"
	"crypto/rand"
	"encoding/base64"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/audit"
)

// Badges is the service group "badges".
type Badges struct {
	projectsv1.UnimplementedProjectBadgesServiceServer
	projects *Projects
	base     string
}

// NewBadges serves badges of projects. base is the server's public URL.
func NewBadges(projects *Projects, base string) *Badges {
	return &Badges{projects: projects, base: base}
}

// GetProjectBadge returns the badge of a project.
func (s *Badges) GetProjectBadge(ctx context.Context, r *projectsv1.GetProjectBadgeRequest) (*projectsv1.GetProjectBadgeResponse, error) {
	row, err := findID(ctx, s.projects.store.Reader, r.GetProjectId())
	if err != nil {
		return nil, err
	}
	return &projectsv1.GetProjectBadgeResponse{Badge: s.convert(row.BadgeKey)}, nil
}

// CreateProjectBadge makes a badge with a new URL.
func (s *Badges) CreateProjectBadge(ctx context.Context, r *projectsv1.CreateProjectBadgeRequest) (*projectsv1.CreateProjectBadgeResponse, error) {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // it never fails
	key := base64.RawURLEncoding.EncodeToString(random)
	badge, err := s.set(ctx, r.GetProjectId(), &key)
	return &projectsv1.CreateProjectBadgeResponse{Badge: badge}, err
}

// DeleteProjectBadge deletes the badge.
func (s *Badges) DeleteProjectBadge(ctx context.Context, r *projectsv1.DeleteProjectBadgeRequest) (*projectsv1.DeleteProjectBadgeResponse, error) {
	_, err := s.set(ctx, r.GetProjectId(), nil)
	return &projectsv1.DeleteProjectBadgeResponse{}, err
}

// set replaces the random part of a badge's URL. The audit trail says that it changed, and not what it is.
func (s *Badges) set(ctx context.Context, id int64, key *string) (*projectsv1.ProjectBadge, error) {
	err := s.projects.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.projects.lock(ctx, tx, project.ID(id), noProjectID(id))
		if err != nil || row.BadgeKey == nil && key == nil {
			return err
		}
		change := row.Update().SetNillableBadgeKey(key)
		if key == nil {
			change.ClearBadgeKey()
		}
		audit.Change(ctx, "project_badge", id, audited(row.BadgeKey), audited(key))
		return change.Exec(ctx)
	})
	return s.convert(key), err
}

func audited(key *string) *projectsv1.ProjectBadge {
	if key == nil {
		return nil
	}
	return &projectsv1.ProjectBadge{Url: badgePath + "…" + badgeSuffix}
}

func (s *Badges) convert(key *string) *projectsv1.ProjectBadge {
	if key == nil {
		return nil
	}
	return &projectsv1.ProjectBadge{Url: s.base + badgePath + *key + badgeSuffix}
}
