package scm

import (
	"context"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scmconfig"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/codehost"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
)

// leftBatch is how many projects are compared with a list at once.
const leftBatch = 500

// listing is a complete list of repositories: their ids, and their URLs for projects that know no id.
type listing map[string]bool

func (l listing) add(r host.Repository) {
	l[r.ID], l[strings.ToLower(codehost.Plain(webURL(r.URL)))] = true, true
}

func (l listing) has(row *ent.Project) bool {
	if row.RepositoryID != nil {
		return l[*row.RepositoryID]
	}
	return l[strings.ToLower(codehost.Plain(row.RepositoryURL))]
}

// markLeft marks the projects whose repository the host listed no more, if this configuration is the one that reaches
// it. Nothing else changes: the repository may only be hidden from the credential, or come back.
func (s *repositorySync) markLeft(ctx context.Context, all listing) error {
	configs, err := s.store.Reader.ScmConfig.Query().Order(ent.Asc(scmconfig.FieldID)).All(ctx)
	if err != nil {
		return err
	}
	for after := int64(0); ; {
		rows, err := s.store.Reader.Project.Query().Where(project.IDGT(after), project.RepositoryURLNEQ(""), project.LeftHostAtIsNil()).
			Order(ent.Asc(project.FieldID)).Limit(leftBatch).All(ctx)
		if err != nil || len(rows) == 0 {
			return err
		}
		after = rows[len(rows)-1].ID
		var left []*ent.Project
		for _, row := range rows {
			if config, _, _ := connect.Reached(configs, row); config != nil && config.ID == s.config.ID && !all.has(row) {
				left = append(left, row)
			}
		}
		if len(left) == 0 {
			continue
		}
		err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error { return leave(ctx, tx, left) })
		if err != nil {
			return err
		}
	}
}

// leftAt marks the projects of a repository that the host does not find.
func (s *repositorySync) leftAt(ctx context.Context, name string) error {
	address := host.RepositoryURL(connect.TypeOf(s.config.Type), s.config.BaseURL, name)
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		rows, err := tx.Project.Query().Where(store.OneOf(project.FieldRepositoryURL, spellings(address)), project.LeftHostAtIsNil()).
			Order(ent.Asc(project.FieldID)).All(ctx)
		if err != nil {
			return err
		}
		return leave(ctx, tx, rows)
	})
}

// leave marks projects whose repository left its host, unless they were bound to another one since they were read.
func leave(ctx context.Context, tx *ent.Tx, rows []*ent.Project) error {
	if len(rows) == 0 {
		return nil
	}
	ids, read := make([]int64, len(rows)), make(map[int64]*ent.Project, len(rows))
	for i, row := range rows {
		ids[i], read[row.ID] = row.ID, row
	}
	current, err := tx.Project.Query().Where(store.WithIDs[predicate.Project](ids), project.LeftHostAtIsNil()).Order(ent.Asc(project.FieldID)).All(ctx)
	if err != nil {
		return err
	}
	var left []*ent.Project
	for _, row := range current {
		if row.RepositoryURL == read[row.ID].RepositoryURL {
			left = append(left, row)
		}
	}
	if len(left) == 0 {
		return nil
	}
	now := store.Now()
	for i, row := range left {
		ids[i] = row.ID
	}
	if err := tx.Project.Update().Where(store.WithIDs[predicate.Project](ids[:len(left)])).SetLeftHostAt(now).Exec(ctx); err != nil {
		return err
	}
	for _, row := range left {
		after := *row
		after.LeftHostAt = &now
		audit.Change(ctx, "project", row.ID, auditedProject(row), auditedProject(&after))
	}
	return nil
}
