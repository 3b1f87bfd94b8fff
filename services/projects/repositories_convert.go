package projects

import (
	"context"
	"slices"

	"entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scmconfig"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
)

// related are the rows that a page of repositories shows, read in sets.
type related struct {
	tags         map[int64][]string
	scans        map[int64]*ent.Scan  // by id
	edges        map[int64]scanEdges  // by project
	dependencies map[int64]foundTotal // by project
	configs      []*ent.ScmConfig
	linked       map[string][]int64 // projects by repository
	scopes       scopes
}

// scanEdges are the first and the latest scan of a project.
type scanEdges struct {
	ID     int64  `sql:"id"`
	First  *int64 `sql:"first_scan"`
	Latest *int64 `sql:"latest_scan"`
}

// foundTotal are the dependencies of a project.
type foundTotal struct {
	counts map[string]int64
	scanID int64 // the latest scan that found any
}

// describe returns one project as a repository.
func (s *Repositories) describe(ctx context.Context, db *ent.Client, row *ent.Project) (*projectsv1.Repository, error) {
	repos, err := s.describeAll(ctx, db, []*ent.Project{row})
	if err != nil {
		return nil, err
	}
	return repos[0], nil
}

// describeAll returns projects as repositories, with the same number of queries for any number of projects.
func (s *Repositories) describeAll(ctx context.Context, db *ent.Client, rows []*ent.Project) ([]*projectsv1.Repository, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	about, err := s.related(ctx, db, rows)
	if err != nil {
		return nil, err
	}
	repos := make([]*projectsv1.Repository, len(rows))
	for i, row := range rows {
		if repos[i], err = about.convert(row); err != nil {
			return nil, err
		}
	}
	return repos, nil
}

func (s *Repositories) related(ctx context.Context, db *ent.Client, rows []*ent.Project) (about *related, err error) {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	about = &related{}
	if about.tags, err = tagsOf(ctx, db, rows...); err != nil {
		return nil, err
	}
	if about.edges, err = scanEdgesOf(ctx, db, ids); err != nil {
		return nil, err
	}
	if about.dependencies, err = dependencyCounts(ctx, db, ids); err != nil {
		return nil, err
	}
	if about.scans, err = shownScans(ctx, db, about.edges, about.dependencies); err != nil {
		return nil, err
	}
	if about.configs, err = db.ScmConfig.Query().Order(scmconfig.ByID()).All(ctx); err != nil {
		return nil, err
	}
	if about.linked, err = linkedProjects(ctx, db, rows); err != nil {
		return nil, err
	}
	about.scopes, err = s.scopesOf(ctx, ids)
	return about, err
}

// linkedProjects finds the projects that are bound to the same repositories.
func linkedProjects(ctx context.Context, db *ent.Client, rows []*ent.Project) (map[string][]int64, error) {
	var urls []string
	for _, row := range rows {
		if row.RepositoryURL != "" {
			urls = append(urls, row.RepositoryURL)
		}
	}
	if len(urls) == 0 {
		return nil, nil
	}
	found, err := db.Project.Query().Where(store.OneOf(project.FieldRepositoryURL, urls)).Order(project.ByID()).
		Select(project.FieldID, project.FieldRepositoryURL).All(ctx)
	linked := make(map[string][]int64, len(urls))
	for _, row := range found {
		linked[row.RepositoryURL] = append(linked[row.RepositoryURL], row.ID)
	}
	return linked, err
}

// scanEdgesOf finds the first and the latest scan of each project, with two searches of an index per project.
func scanEdgesOf(ctx context.Context, db *ent.Client, ids []int64) (map[int64]scanEdges, error) {
	var found []scanEdges
	err := db.Project.Query().Where(store.OneOf(project.FieldID, ids)).Modify(func(p *sql.Selector) {
		p.Select(p.C(project.FieldID)).AppendSelectExprAs(edge(p, sql.Asc), "first_scan").AppendSelectExprAs(edge(p, sql.Desc), "latest_scan")
	}).Scan(ctx, &found)
	edges := make(map[int64]scanEdges, len(found))
	for _, one := range found {
		edges[one.ID] = one
	}
	return edges, err
}

func edge(p *sql.Selector, order func(string) string) *sql.Selector {
	scans := sql.Table(scan.Table).As("edge")
	return sql.Dialect(p.Dialect()).Select(scans.C(scan.FieldID)).From(scans).Where(sql.And(
		sql.ColumnsEQ(scans.C(scan.FieldDeploymentID), p.C(project.FieldDeploymentID)),
		sql.ColumnsEQ(scans.C(scan.FieldProjectID), p.C(project.FieldID)),
	)).OrderBy(order(scans.C(scan.FieldStartedAt)), order(scans.C(scan.FieldID))).Limit(1)
}

// dependencyCounts counts the dependencies of each project by ecosystem.
func dependencyCounts(ctx context.Context, db *ent.Client, ids []int64) (map[int64]foundTotal, error) {
	var groups []struct {
		ProjectID int64  `sql:"project_id"`
		Ecosystem string `sql:"ecosystem"`
		Count     int64  `sql:"count"`
		ScanID    int64  `sql:"scan_id"`
	}
	err := db.Dependency.Query().Where(store.OneOf(dependency.FieldProjectID, ids)).Modify(func(d *sql.Selector) {
		d.Select(d.C(dependency.FieldProjectID), d.C(dependency.FieldEcosystem), sql.As(sql.Count("*"), "count"),
			sql.As(sql.Max(d.C(dependency.FieldScanID)), "scan_id")).GroupBy(d.C(dependency.FieldProjectID), d.C(dependency.FieldEcosystem))
	}).Scan(ctx, &groups)
	totals := map[int64]foundTotal{}
	for _, group := range groups {
		total := totals[group.ProjectID]
		if total.counts == nil {
			total.counts = map[string]int64{}
		}
		total.counts[group.Ecosystem], total.scanID = group.Count, max(total.scanID, group.ScanID)
		totals[group.ProjectID] = total
	}
	return totals, err
}

// shownScans reads the scans that the repositories show.
func shownScans(ctx context.Context, db *ent.Client, edges map[int64]scanEdges, dependencies map[int64]foundTotal) (map[int64]*ent.Scan, error) {
	var ids []int64
	for _, one := range edges {
		if one.Latest != nil {
			ids = append(ids, *one.Latest)
		}
	}
	for _, total := range dependencies {
		ids = append(ids, total.scanID)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := db.Scan.Query().Where(store.OneOf(scan.FieldID, ids)).
		Select(scan.FieldID, scan.FieldRef, scan.FieldStatus, scan.FieldExitCode, scan.FieldStartedAt, scan.FieldCompletedAt).All(ctx)
	found := make(map[int64]*ent.Scan, len(rows))
	for _, row := range rows {
		found[row.ID] = row
	}
	return found, err
}

func (a *related) convert(row *ent.Project) (*projectsv1.Repository, error) {
	out := &projectsv1.Repository{
		Id: row.ID, Name: row.Name, Tags: a.tags[row.ID], ProvisionedAt: timestamppb.New(store.Time(row.CreatedAt)),
		DeploymentId: row.DeploymentID, Url: row.URL, DefaultBranch: row.DefaultBranch,
		IgnoredFiles: row.IgnoredFiles, ProductIgnoredFiles: productIgnoredFiles(row.ProductIgnoredFiles),
		ManagedScans:     &projectsv1.RepositoryManagedScans{DiffScan: row.ManagedDiffScan, FullScan: row.ManagedFullScan},
		AiScans:          &projectsv1.RepositoryAiScans{FullScan: row.AiFullScan},
		IsSetup:          row.LatestScanAt != nil || row.ManagedDiffScan || row.ManagedFullScan,
		ScmType:          scmv1.ScmType(scmv1.ScmType_value[row.ScmType]),
		AuthorizedScopes: a.scopes.of(row.ID),
		ScaInfo:          &projectsv1.RepositoryScaInfo{DependencyCounts: a.dependencies[row.ID].counts},
		LeftHostAt:       store.Timestamp(row.LeftHostAt),
	}
	if row.ArchivedAt != nil {
		out.IsArchived, out.IsScmArchived, out.ArchivedAt = true, true, timestamppb.New(store.Time(*row.ArchivedAt))
	}
	if row.HostArchived != nil {
		out.IsScmArchived = *row.HostArchived
	}
	a.addScans(out, row)
	a.addRefs(out, row)
	return out, a.addHost(out, row)
}

// addHost adds what the repository's connection says.
func (a *related) addHost(out *projectsv1.Repository, row *ent.Project) error {
	if isGitHub(out.GetScmType()) {
		out.Provider = projectsv1.Provider_PROVIDER_GITHUB
	}
	if row.RepositoryURL == "" {
		return nil
	}
	for _, id := range a.linked[row.RepositoryURL] {
		if id != row.ID {
			out.LinkedRepos = append(out.LinkedRepos, id)
		}
	}
	config, _, _ := connect.Reached(a.configs, row)
	if config == nil {
		out.IsDisconnected = true
		return nil
	}
	out.HasCodeAccess = connect.HasCredential(config)
	out.RepositoryScmLinkId = config.ID
	if config.LastSuccessfulSyncAt != nil {
		out.ScmLastSyncedAt = float64(*config.LastSuccessfulSyncAt) / 1e6
	}
	if out.GetHasCodeAccess() && isGitHub(connect.TypeOf(config.Type)) && access.Permits(a.scopes.role, optionsv1.Permission_PERMISSION_MANAGE) {
		out.AuthorizedScopes = append(out.AuthorizedScopes, projectsv1.RepoScope_REPO_SCOPE_AUTOINSTALL)
	}
	var err error
	out.TokenScopes, err = connect.ScopesOf(config)
	return err
}

func isGitHub(kind scmv1.ScmType) bool {
	return kind == scmv1.ScmType_SCM_TYPE_GITHUB || kind == scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE
}

// addRefs needs the ref of the latest scan.
func (a *related) addRefs(out *projectsv1.Repository, row *ent.Project) {
	if row.DefaultBranch != "" {
		out.DefaultRef = repositoryRef(row.ID, row.DefaultBranch)
		out.PrimaryRef = &projectsv1.RepositoryPrimaryRef{Id: out.GetDefaultRef().GetId(), Ref: row.DefaultBranch}
	}
	if row.PrimaryBranch != "" {
		out.PrimaryRef = &projectsv1.RepositoryPrimaryRef{Id: issuefilter.RefID(row.ID, row.PrimaryBranch), Ref: row.PrimaryBranch, IsOverride: true}
	}
	var shown []string
	for _, ref := range []string{row.DefaultBranch, row.PrimaryBranch, out.GetLastScannedRef().GetRef()} {
		if ref == "" || slices.Contains(shown, ref) {
			continue
		}
		shown = append(shown, ref)
		out.Refs = append(out.Refs, &projectsv1.RepositoryRefItem{
			RepoRefId: issuefilter.RefID(row.ID, ref), Ref: ref, IsDefault: ref == row.DefaultBranch, IsPrimary: ref == out.GetPrimaryRef().GetRef(),
		})
	}
}

func (a *related) addScans(out *projectsv1.Repository, row *ent.Project) {
	edges := a.edges[row.ID]
	if edges.First != nil {
		out.FirstScanId = *edges.First
	}
	if edges.Latest != nil {
		if latest := a.scans[*edges.Latest]; latest != nil { // nil if it was deleted between the two queries
			out.LastScannedRef = repositoryRef(row.ID, latest.Ref)
			out.LatestScan = &projectsv1.RepositoryScan{
				Id: latest.ID, StartedAt: timestamppb.New(store.Time(latest.StartedAt)), CompletedAt: store.Timestamp(latest.CompletedAt),
				ExitCode: int64(latest.ExitCode), Status: scansv1.ScanStatus(scansv1.ScanStatus_value[latest.Status]),
			}
		}
	}
	if found := a.scans[a.dependencies[row.ID].scanID]; found != nil {
		out.LatestFullScaScanAt = store.Timestamp(found.CompletedAt)
	}
}

func repositoryRef(projectID int64, ref string) *projectsv1.RepositoryRef {
	return &projectsv1.RepositoryRef{Id: issuefilter.RefID(projectID, ref), Ref: ref}
}
