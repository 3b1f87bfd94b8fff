package projects

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scmconfig"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
)

// repositoryFilter returns the conditions of a filter. Only the filter by code access needs a query of its own.
func repositoryFilter(ctx context.Context, db *ent.Client, f *projectsv1.RepoFilters) ([]predicate.Project, error) {
	if f == nil {
		f = &projectsv1.RepoFilters{}
	}
	where := slices.Concat([]predicate.Project{either(!f.GetArchived(), project.ArchivedAtIsNil())}, byScans(f), byHost(f))
	if text := strings.ToLower(f.GetSearch()); text != "" {
		where = append(where, either(!f.GetInvertSearch(), project.NameKeyContains(text)))
	}
	if len(f.GetIds()) > 0 {
		where = append(where, store.OneOf(project.FieldID, f.GetIds()))
	}
	if f.GetTagId() != 0 {
		where = append(where, tagged(f.GetTagId()))
	}
	if f.CodeAccess != nil {
		configs, err := db.ScmConfig.Query().Order(scmconfig.ByID()).All(ctx)
		if err != nil {
			return nil, err
		}
		where = append(where, either(f.GetCodeAccess(), readable(configs)))
	}
	return where, nil
}

func byScans(f *projectsv1.RepoFilters) (where []predicate.Project) {
	if f.Setup != nil {
		where = append(where, either(f.GetSetup(), setUp()))
	}
	if f.HasSmsSetup != nil {
		where = append(where, either(f.GetHasSmsSetup(), managed()))
	}
	if f.GetLastScanSince() != nil && f.GetLastScanSince().AsTime().Year() > 1 { // clients send the year 1 for "not set"
		where = append(where, project.LatestScanAtGTE(store.Micros(f.GetLastScanSince().AsTime())))
	}
	switch f.GetLatestScanStatus() {
	case projectsv1.LatestScanStatusBucket_LATEST_SCAN_STATUS_BUCKET_SUCCESSFUL:
		where = append(where, latestEnded(func(b *sql.Builder) { b.WriteString(" = ").Arg(completed) }))
	case projectsv1.LatestScanStatusBucket_LATEST_SCAN_STATUS_BUCKET_HAD_PROBLEMS:
		where = append(where, latestEnded(func(b *sql.Builder) { b.WriteString(" <> ").Arg(completed) }))
	case projectsv1.LatestScanStatusBucket_LATEST_SCAN_STATUS_BUCKET_NEVER_SCANNED:
		where = append(where, latestEnded(func(b *sql.Builder) { b.WriteString(" IS NULL") }))
	}
	return where
}

func byHost(f *projectsv1.RepoFilters) (where []predicate.Project) {
	if f.IsScmRepository != nil {
		where = append(where, either(f.GetIsScmRepository(), project.RepositoryURLNEQ("")))
	}
	if f.IsLocalScanProject != nil {
		where = append(where, either(f.GetIsLocalScanProject(), project.And(project.RepositoryURL(""), project.URL(""))))
	}
	if f.LeftHost != nil {
		where = append(where, either(f.GetLeftHost(), project.LeftHostAtNotNil()))
	}
	if f.GetScmType() != scmv1.ScmType_SCM_TYPE_UNSPECIFIED {
		where = append(where, project.ScmType(f.GetScmType().String()))
	}
	return where
}

func either(wanted bool, p predicate.Project) predicate.Project {
	if wanted {
		return p
	}
	return project.Not(p)
}

func managed() predicate.Project {
	return project.Or(project.ManagedDiffScan(true), project.ManagedFullScan(true))
}

func setUp() predicate.Project { return project.Or(project.LatestScanAtNotNil(), managed()) }

// completed is the status of a scan whose results are stored.
var completed = scansv1.ScanStatus_SCAN_STATUS_COMPLETED.String()

// endStates are the statuses of scans that have ended.
var endStates = []any{
	completed, scansv1.ScanStatus_SCAN_STATUS_CANCELLED.String(), scansv1.ScanStatus_SCAN_STATUS_ERROR.String(),
	scansv1.ScanStatus_SCAN_STATUS_NEVER_FINISHED.String(),
}

// latestEnded compares the status of the latest scan that has ended, which is null without one. It reads the newest few
// entries of an index for each project.
func latestEnded(compare func(b *sql.Builder)) predicate.Project {
	return func(p *sql.Selector) {
		ended := sql.Table(scan.Table).As("ended")
		latest := sql.Dialect(p.Dialect()).Select(ended.C(scan.FieldStatus)).From(ended).Where(sql.And(
			sql.ColumnsEQ(ended.C(scan.FieldDeploymentID), p.C(project.FieldDeploymentID)),
			sql.ColumnsEQ(ended.C(scan.FieldProjectID), p.C(project.FieldID)),
			sql.In(ended.C(scan.FieldStatus), endStates...),
		)).OrderBy(sql.Desc(ended.C(scan.FieldStartedAt)), sql.Desc(ended.C(scan.FieldID))).Limit(1)
		p.Where(sql.P(func(b *sql.Builder) {
			b.Wrap(func(b *sql.Builder) { b.Join(latest) })
			compare(b)
		}))
	}
}

// tagged selects the projects with a tag. A policy does not limit the subquery, so it names the deployment.
func tagged(tagID int64) predicate.Project {
	return func(p *sql.Selector) {
		links := sql.Table(projecttag.Table)
		p.Where(sql.Exists(sql.Dialect(p.Dialect()).Select(links.C(projecttag.FieldID)).From(links).Where(sql.And(
			sql.ColumnsEQ(links.C(projecttag.FieldDeploymentID), p.C(project.FieldDeploymentID)),
			sql.ColumnsEQ(links.C(projecttag.FieldProjectID), p.C(project.FieldID)),
			sql.EQ(links.C(projecttag.FieldTagID), tagID),
		))))
	}
}

// readable selects the projects that a connection with a credential reaches. It is connect.Reached in SQL: the
// connection with the longest namespace decides, and of several the first.
func readable(configs []*ent.ScmConfig) predicate.Project {
	configs = slices.Clone(configs)
	slices.SortStableFunc(configs, func(a, b *ent.ScmConfig) int { return len(b.Namespace) - len(a.Namespace) })
	return func(p *sql.Selector) {
		p.Where(sql.P(func(b *sql.Builder) {
			address := p.C(project.FieldRepositoryURL)
			b.WriteString("CASE WHEN " + address + " LIKE '%..%' THEN 0")
			for _, config := range configs {
				prefix := namespaceURL(config)
				b.WriteString(" WHEN SUBSTR(LOWER(RTRIM(" + address + ", '/')), 1, ").Arg(utf8.RuneCountInString(prefix)).WriteString(") = ").Arg(prefix)
				if connect.HasCredential(config) {
					b.WriteString(" THEN 1")
				} else {
					b.WriteString(" THEN 0")
				}
			}
			b.WriteString(" ELSE 0 END = 1")
		}))
	}
}

// namespaceURL is how the URLs of the repositories of a connection begin, in lower case.
func namespaceURL(config *ent.ScmConfig) string {
	base := strings.TrimRight(config.BaseURL, "/")
	if u, err := url.Parse(base); err == nil {
		base = u.Scheme + "://" + u.Host + strings.TrimRight(u.Path, "/")
	}
	return strings.ToLower(base + "/" + strings.Trim(config.Namespace, "/") + "/")
}
