package supplychain

import (
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/codehost"
)

// convertDependencies converts rows to the API's form, with two queries for any number of rows.
func convertDependencies(ctx context.Context, db *ent.Client, rows []*ent.Dependency) ([]*supplychainv1.FoundDependency, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	projectIDs, scanIDs := map[int64]bool{}, map[int64]bool{}
	for _, row := range rows {
		projectIDs[row.ProjectID], scanIDs[row.ScanID] = true, true
	}
	repositories, err := repositoriesOf(ctx, db, keys(projectIDs))
	if err != nil {
		return nil, err
	}
	scans, err := db.Scan.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(scan.FieldID), keys(scanIDs))) }).
		Select(scan.FieldID, scan.FieldCommit, scan.FieldCommitTime).All(ctx)
	if err != nil {
		return nil, err
	}
	commits := make(map[int64]*ent.Scan, len(scans))
	for _, row := range scans {
		commits[row.ID] = row
	}
	list := make([]*supplychainv1.FoundDependency, len(rows))
	for i, row := range rows {
		repository := repositories[row.ProjectID]
		if repository == nil { // just deleted
			repository = &ent.Project{ID: row.ProjectID}
		}
		reported := commits[row.ScanID]
		if reported == nil { // just deleted
			reported = &ent.Scan{}
		}
		if list[i], err = convertDependency(row, repository, reported); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// repositoriesOf reads the displayed fields of projects.
func repositoriesOf(ctx context.Context, db *ent.Client, ids []int64) (map[int64]*ent.Project, error) {
	rows, err := db.Project.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(project.FieldID), ids)) }).
		Select(project.FieldID, project.FieldName, project.FieldURL, project.FieldScmType).All(ctx)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]*ent.Project, len(rows))
	for _, row := range rows {
		byID[row.ID] = row
	}
	return byID, nil
}

func convertDependency(row *ent.Dependency, repository *ent.Project, reported *ent.Scan) (*supplychainv1.FoundDependency, error) {
	content := &storev1.DependencyContent{}
	if err := proto.Unmarshal(row.Content, content); err != nil {
		return nil, fmt.Errorf("content of dependency %d: %w", row.ID, err)
	}
	var committed *timestamppb.Timestamp
	if reported.CommitTime != nil {
		committed = timestamppb.New(store.Time(*reported.CommitTime))
	}
	place := func(path string, line int32) *supplychainv1.CodeLocation {
		return &supplychainv1.CodeLocation{
			Path: path, StartLine: int64(line), EndLine: int64(line), CommittedAt: committed,
			// If the line is unknown, link to the first one.
			Url: codehost.LineURL(repository.ScmType, repository.URL, reported.Commit, path, max(line, 1)),
		}
	}
	out := &supplychainv1.FoundDependency{
		RepositoryId: row.ProjectID,
		DefinedAt:    place(row.Lockfile, content.GetLine()),
		Transitivity: transitivities[row.Transitivity],
		Package:      &supplychainv1.Dependency{Name: row.Package, VersionSpecifier: row.Version},
		Ecosystem:    row.Ecosystem,
		Licenses:     content.GetLicenses(),
		ResolvedUrl:  content.GetResolvedUrl(),
	}
	if manifest := content.GetManifestPath(); manifest != "" {
		out.ManifestDefinition = place(manifest, 0)
	}
	return out, nil
}

func keys(set map[int64]bool) []int64 {
	list := make([]int64, 0, len(set))
	for id := range set {
		list = append(list, id)
	}
	return list
}
