package findings

import (
	"context"
	"fmt"
	"slices"

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
	store   *store.Store
	pages   *boundaries
	marks   listMarks
	shown   *shown
	sizes   *sizes
	imports pendingImports
}

// NewFindings serves findings from the store.
func NewFindings(st *store.Store) *Findings {
	return &Findings{store: st, pages: newBoundaries(), marks: newListMarks(), shown: newShown(), sizes: newSizes()}
}

// ListFindings is operation 11 of the contract.
func (s *Findings) ListFindings(ctx context.Context, r *findingsv1.ListFindingsRequest) (*findingsv1.ListFindingsResponse, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	f := listFilter(deploymentID, r)
	list, err := f.conditions(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(list, func(c condition) bool { return c.none }) {
		return &findingsv1.ListFindingsResponse{}, nil
	}
	page, err := s.page(ctx, r, listing{filter: f, conditions: list, dedup: r.GetDedup()})
	if err != nil || page == nil {
		return &findingsv1.ListFindingsResponse{}, err
	}
	defer page.free()
	rules, projects, err := s.shown.of(ctx, s.store.Reader, page.rows, page.revision)
	if err != nil {
		return nil, err
	}
	return encodePage(ctx, f.issueType, page.rows, rules, projects)
}

// listing is a list that is asked for.
type listing struct {
	*filter
	conditions []condition // the filter's
	dedup      bool
}

// where gives the conditions of a list in the form that the database serves best.
func (s *Findings) where(ctx context.Context, of listing) ([]predicate.Finding, error) {
	where, err := s.sizes.arrange(ctx, s.store.Reader, s.store.Dialect(), of.filter, of.conditions)
	if err == nil && of.dedup {
		where = append(where, latestOfIdentity(of.plain(of.conditions)))
	}
	return where, err
}

// page reads one page. Its beginning is known when the page before was served lately; else it is counted along the index
// that serves the list. Nil: there is no such page.
func (s *Findings) page(ctx context.Context, r *findingsv1.ListFindingsRequest, of listing) (*pageRows, error) {
	size, number := int64(defaultPageSize), r.GetPage()
	if r.PageSize != nil {
		size = r.GetPageSize()
	}
	caller, canonical, err := pageIdentity(ctx, r)
	if err != nil {
		return nil, err
	}
	where, err := s.where(ctx, of)
	if err != nil {
		return nil, err
	}
	var start boundary
	if number == 0 {
		s.marks.cache.Remove(s.pages.list(caller, canonical))
	} else {
		var known bool
		start, known = s.pages.cache.Get(s.pages.key(caller, canonical, size, number-1))
		if !known {
			marks := s.marks.of(s.pages.list(caller, canonical))
			if start, err = s.skip(ctx, where, marks, s.nearest(caller, canonical, marks, number, size), number, size); err != nil {
				return nil, err
			}
		}
		if start.end {
			if known { // a walk that has ended stays so, however far its caller goes on
				s.pages.cache.Add(s.pages.key(caller, canonical, size, number), start)
			}
			return nil, nil
		}
	}
	page, err := s.readPage(ctx, of.filter, where, start, int(size))
	if err != nil {
		return nil, err
	}
	next := boundary{end: int64(len(page.rows)) < size}
	if !next.end {
		last := &page.rows[len(page.rows)-1]
		next = boundary{relevantSince: last.relevantSince, id: last.id}
	}
	s.pages.cache.Add(s.pages.key(caller, canonical, size, number), next)
	return page, nil
}

// near is how far behind a page that was served a jump may go to be counted from there.
const near = 50

// nearest is the place from which a jump to a page is counted: the end of a page shortly before it that was served lately, or else the
// last mark before it.
func (s *Findings) nearest(caller string, canonical []byte, left *marks, page, size int64) mark {
	for back := int64(2); back <= min(near, page); back++ {
		if from, known := s.pages.cache.Get(s.pages.key(caller, canonical, size, page-back)); known && !from.end {
			return mark{(page - back + 1) * size, from}
		}
	}
	return left.before(page * size)
}

// skip finds the last row of the page before a page, counts to it from a place before it, and leaves a mark there.
func (s *Findings) skip(ctx context.Context, where []predicate.Finding, left *marks, from mark, page, size int64) (boundary, error) {
	const far = int64(1) << 40
	if page > far/size {
		return boundary{end: true}, nil
	}
	rows := page * size
	if from.rows == rows {
		return from.boundary, nil
	}
	if from.rows > 0 {
		where = append(where, behind(from.boundary))
	}
	var last []struct {
		RelevantSince int64 `sql:"relevant_since"`
		ID            int64 `sql:"id"`
	}
	count := int(rows - from.rows)
	err := s.store.Reader.Finding.Query().Where(where...).Order(newest(count)).
		Offset(count-1).Limit(1).Select(finding.FieldRelevantSince, finding.FieldID).Scan(ctx, &last)
	if err != nil || len(last) == 0 {
		return boundary{end: true}, err
	}
	end := boundary{relevantSince: last[0].RelevantSince, id: last[0].ID}
	left.add(mark{rows, end})
	return end, nil
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
