package findings

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
)

// defaultPageSize is the page size of lists that name none (contract, limits).
const defaultPageSize = 100

// Findings is the service group "findings".
type Findings struct {
	findingsv1.UnimplementedFindingsServiceServer
	store *store.Store
	pages *boundaries
	shown *shown
}

// NewFindings serves findings from the store.
func NewFindings(st *store.Store) *Findings {
	return &Findings{store: st, pages: newBoundaries(), shown: newShown()}
}

// ListFindings is operation 11 of the contract.
func (s *Findings) ListFindings(ctx context.Context, r *findingsv1.ListFindingsRequest) (*findingsv1.ListFindingsResponse, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	f := listFilter(deploymentID, r)
	where, err := f.predicates(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	if r.GetDedup() {
		where = append(where, latestOfIdentity(where))
	}
	rows, revision, err := s.page(ctx, r, f, where)
	if err != nil || len(rows) == 0 {
		return &findingsv1.ListFindingsResponse{}, err
	}
	rules, projects, err := s.shown.of(ctx, s.store.Reader, rows, revision)
	if err != nil {
		return nil, err
	}
	return encodePage(f.issueType, rows, rules, projects)
}

// page reads one page. Its beginning is known when the page before was served lately; else it is counted along the index
// that serves the list.
func (s *Findings) page(ctx context.Context, r *findingsv1.ListFindingsRequest, f *filter, where []predicate.Finding) (rows []listed, revision int64, err error) {
	size, number := int64(defaultPageSize), r.GetPage()
	if r.PageSize != nil {
		size = r.GetPageSize()
	}
	caller, canonical, err := pageIdentity(ctx, r)
	if err != nil {
		return nil, 0, err
	}
	if number > 0 {
		start, known := s.pages.cache.Get(s.pages.key(caller, canonical, size, number-1))
		if !known {
			if start, err = s.skip(ctx, where, number, size); err != nil {
				return nil, 0, err
			}
		}
		if start.end {
			if known { // a walk that has ended stays so, however far its caller goes on
				s.pages.cache.Add(s.pages.key(caller, canonical, size, number), start)
			}
			return nil, 0, nil
		}
		where = append(where, behind(start))
	}
	if rows, revision, err = s.readPage(ctx, f, where, int(size)); err != nil {
		return nil, 0, err
	}
	next := boundary{end: int64(len(rows)) < size}
	if !next.end {
		last := &rows[len(rows)-1]
		next = boundary{relevantSince: last.relevantSince, id: last.id}
	}
	s.pages.cache.Add(s.pages.key(caller, canonical, size, number), next)
	return rows, revision, nil
}

// skip finds the last row of the page before a page.
func (s *Findings) skip(ctx context.Context, where []predicate.Finding, page, size int64) (boundary, error) {
	const far = int64(1) << 40
	if page > far/size {
		return boundary{end: true}, nil
	}
	var last []struct {
		RelevantSince int64 `sql:"relevant_since"`
		ID            int64 `sql:"id"`
	}
	err := s.store.Reader.Finding.Query().Where(where...).Order(newestFirst).
		Offset(int(page*size)-1).Limit(1).Select(finding.FieldRelevantSince, finding.FieldID).Scan(ctx, &last)
	if err != nil || len(last) == 0 {
		return boundary{end: true}, err
	}
	return boundary{relevantSince: last[0].RelevantSince, id: last[0].ID}, nil
}

// pageIdentity says whose list it is, with the projects he sees, and which, without the number and the size of the page.
func pageIdentity(ctx context.Context, r *findingsv1.ListFindingsRequest) (caller string, canonical []byte, err error) {
	if p, ok := access.FromContext(ctx); ok {
		caller = fmt.Sprintf("%v/%d/%s", p.Kind, p.ID, tenant.Visibility(ctx))
	}
	list := proto.CloneOf(r)
	list.Page, list.PageSize = 0, nil
	canonical, err = proto.MarshalOptions{Deterministic: true}.Marshal(list)
	return caller, canonical, err
}

func listFilter(deploymentID int64, r *findingsv1.ListFindingsRequest) *filter {
	f := &filter{
		deploymentID:   deploymentID,
		issueType:      r.GetIssueType(),
		since:          r.GetSince(),
		repos:          r.GetRepos(),
		repositoryIDs:  r.GetRepositoryIds(),
		ref:            r.GetRef(),
		status:         r.GetStatus(),
		triageReasons:  r.GetTriageReasons(),
		severities:     r.GetSeverities(),
		componentTags:  r.GetComponentTags(),
		policies:       r.GetPolicies(),
		rules:          r.GetRules(),
		categories:     r.GetCategories(),
		confidence:     r.GetConfidence(),
		verdict:        r.GetAutotriageVerdict(),
		exposures:      r.GetExposures(),
		transitivities: r.GetTransitivities(),
		malicious:      r.IsMalicious,
		clickToFix:     r.GetClickToFixPrState(),
	}
	if f.issueType == "" {
		f.issueType = sast
	}
	return f
}
