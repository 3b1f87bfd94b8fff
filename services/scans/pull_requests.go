package scans

import (
	"cmp"
	"context"
	"net/url"
	"strconv"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/codehost"
	"github.com/palisade/palisade/services/projects/gitref"
)

// defaultPullRequests is how many pull requests a page has by default.
const defaultPullRequests = 50

// PullRequests is the service group "pull requests".
type PullRequests struct {
	scansv1.UnimplementedPullRequestsServiceServer
	store *store.Store
}

// NewPullRequests serves pull requests from the store.
func NewPullRequests(st *store.Store) *PullRequests { return &PullRequests{store: st} }

// ListPullRequests lists pull requests, the latest scan first.
func (s *PullRequests) ListPullRequests(ctx context.Context, r *scansv1.ListPullRequestsRequest) (*scansv1.ListPullRequestsResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", nil
	digest, err := page.DigestOf("pull requests"+tenant.Visibility(ctx), filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.Scan.Query().Where(scan.PullRequestNotNil(), latestOfPullRequest)
	if r.GetProject() != "" {
		of, err := findProject(ctx, s.store.Reader, r.GetProject())
		if err != nil {
			return nil, err
		}
		query.Where(scan.ProjectID(of.ID))
	}
	if continued {
		query.Where(scan.IDLT(key.ID))
	}
	limit := int(cmp.Or(r.GetLimit(), defaultPullRequests))
	rows, err := query.Order(ent.Desc(scan.FieldID)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	out := &scansv1.ListPullRequestsResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		out.Cursor = page.Encode(digest, page.Key{ID: rows[limit-1].ID})
	}
	projects, err := projectsOf(ctx, s.store.Reader, rows)
	if err != nil {
		return nil, err
	}
	blocked, err := blockedRefs(ctx, s.store.Reader, rows)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		of := projects[row.ProjectID]
		if of == nil {
			continue // deleted meanwhile
		}
		one, err := convertPullRequest(row, of)
		if err != nil {
			return nil, err
		}
		one.Blocked = blocked[refOf{row.ProjectID, row.Ref}]
		out.PullRequests = append(out.PullRequests, one)
	}
	return out, nil
}

// latestOfPullRequest selects scans that have no later scan of the same pull request.
func latestOfPullRequest(s *entsql.Selector) {
	later := entsql.Dialect(s.Dialect()).Table(scan.Table).As("later")
	s.Where(entsql.NotExists(entsql.Dialect(s.Dialect()).Select(later.C(scan.FieldID)).From(later).Where(entsql.And(
		entsql.ColumnsEQ(later.C(scan.FieldDeploymentID), s.C(scan.FieldDeploymentID)),
		entsql.ColumnsEQ(later.C(scan.FieldProjectID), s.C(scan.FieldProjectID)),
		entsql.ColumnsEQ(later.C(scan.FieldPullRequest), s.C(scan.FieldPullRequest)),
		entsql.ColumnsGT(later.C(scan.FieldID), s.C(scan.FieldID)),
	))))
}

// projectsOf reads the projects of scans.
func projectsOf(ctx context.Context, db *ent.Client, rows []*ent.Scan) (map[int64]*ent.Project, error) {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ProjectID
	}
	list, err := db.Project.Query().Where(store.OneOf(project.FieldID, ids)).All(ctx)
	byID := make(map[int64]*ent.Project, len(list))
	for _, of := range list {
		byID[of.ID] = of
	}
	return byID, err
}

func convertPullRequest(row *ent.Scan, of *ent.Project) (*scansv1.PullRequest, error) {
	meta, err := metaOf(row)
	if err != nil {
		return nil, err
	}
	number := pullRequestOf(row)
	return &scansv1.PullRequest{
		ProjectId: of.ID, Project: of.Name, Number: number, Ref: row.Ref, Title: meta.GetPullRequestTitle(), Author: meta.GetPullRequestAuthorUsername(),
		Url:    codehost.PullRequestURL(of.ScmType, cmp.Or(of.URL, meta.GetRepoUrl()), number),
		Commit: row.Commit, ScanId: row.ID, ScannedAt: timestamp(row.StartedAt), Status: scanStatus(row), Results: row.TotalCount,
	}, nil
}

// pullRequestOf is the number of the pull request of a scan; 0 if it has none. Scans of earlier versions have the
// number in their ref only.
func pullRequestOf(row *ent.Scan) int64 {
	if row.PullRequest != nil {
		return *row.PullRequest
	}
	return gitref.PullRequest(row.Ref)
}

// numberOf is the stored number of a pull request: as the CI system calls it, or as the ref does; nil if there is none.
func numberOf(ref, told string) *int64 {
	number, err := strconv.ParseInt(told, 10, 64)
	if err != nil || number <= 0 {
		number = gitref.PullRequest(ref)
	}
	if number == 0 {
		return nil
	}
	return &number
}

// pullRequestPage is the page about a pull request in the console of a deployment; empty without a number.
func pullRequestPage(console, projectName string, number int64) string {
	if number == 0 {
		return ""
	}
	query := url.Values{"project": {projectName}, "number": {strconv.FormatInt(number, 10)}}
	return console + "/pull-requests?" + query.Encode()
}
