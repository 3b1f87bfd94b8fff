package findings

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
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
	log     *slog.Logger
	places  places
	shown   *shown
	imports pendingImports
}

// NewFindings serves findings from the store.
func NewFindings(st *store.Store, log *slog.Logger) *Findings {
	s := &Findings{store: st, log: log, places: newMemory(), shown: newShown()}
	if st.Postgres() {
		_, db := st.DB()
		s.places = shared{db}
	}
	return s
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
	rules, projects, err := s.shown.of(ctx, s.store.Reader, page.rows, page.revision)
	if err != nil {
		return nil, err
	}
	return page.response(rules, projects), nil
}

// listing is a list that is asked for.
type listing struct {
	*filter
	conditions []condition // the filter's
	dedup      bool
}

// chosen are the conditions of a list in the form that the database serves best. With projects a page is put together from theirs.
type chosen struct {
	where    []predicate.Finding
	projects []int64
}

func (s *Findings) chosen(ctx context.Context, of listing) (c chosen, err error) {
	if c.projects, err = of.heads(ctx, s.store.Reader, of.conditions); err != nil {
		return c, err
	}
	switch {
	case c.projects != nil:
		c.where = of.ofHeads(of.conditions)
	case s.store.Postgres():
		c.where = of.merged(of.conditions)
	default:
		c.where = of.plain(of.conditions)
	}
	if of.dedup {
		c.where = append(c.where, firstOfIdentity(of.plain(of.conditions)))
	}
	return c, nil
}

// and adds conditions.
func (c chosen) and(more ...predicate.Finding) chosen {
	c.where = append(slices.Clip(c.where), more...)
	return c
}

// newest queries so many of the newest findings.
func (c chosen) newest(db *ent.Client, rows int) *ent.FindingQuery {
	where := c.where
	if c.projects != nil {
		where = []predicate.Finding{newestOfEach(c.projects, rows, c.where)}
	}
	return db.Finding.Query().Where(where...).Order(newest(rows))
}

// page reads one page. Its beginning is known when the page before was served lately; else it is counted along the index
// that serves the list. Nil: there is no such page.
func (s *Findings) page(ctx context.Context, r *findingsv1.ListFindingsRequest, of listing) (*pageRows, error) {
	size, number := int64(defaultPageSize), r.GetPage()
	if r.PageSize != nil {
		size = r.GetPageSize()
	}
	const far = int64(1) << 40
	if number > far/size {
		return nil, nil
	}
	list, err := listOf(ctx, of.deploymentID, r)
	if err != nil {
		return nil, err
	}
	chosen, err := s.chosen(ctx, of)
	if err != nil {
		return nil, err
	}
	var start place
	if number > 0 {
		if start, err = s.places.from(ctx, list, number*size); err != nil {
			return nil, err
		}
	}
	var found []place
	var known []once
	begins := start.walk == 0
	if begins {
		start.walk = store.Now()
		known = s.places.query(list, (number+1)*size)
	}
	if start.rows < number*size && !start.end {
		if start, err = s.skip(ctx, chosen, start, number*size); err != nil {
			return nil, err
		}
		found = append(found, start)
	}
	if start.end { // a walk that has ended stays so, however far its caller goes on
		return nil, nil
	}
	page, err := s.readPage(ctx, of.filter, chosen, start.boundary, int(size), known)
	if err != nil {
		return nil, err
	}
	next := place{walk: start.walk, rows: start.rows + size, boundary: boundary{end: int64(len(page.rows)) < size}}
	if !next.end {
		last := page.rows[len(page.rows)-1]
		next.boundary = boundary{relevantSince: last.since, id: last.Id}
	}
	found = append(found, next)
	if begins {
		err = s.places.begin(ctx, list, page.place, found...)
	} else {
		err = s.places.add(ctx, list, found...)
	}
	if err != nil { // of a database that may only be read, say: the next page is counted
		s.log.WarnContext(ctx, "the end of a page was not remembered", "error", err)
	}
	return page, nil
}

// skip counts from a place to the one behind so many rows. Its boundary says if there are fewer.
func (s *Findings) skip(ctx context.Context, of chosen, from place, rows int64) (place, error) {
	if from.rows > 0 {
		of = of.and(behind(from.boundary))
	}
	var last []struct {
		RelevantSince int64 `sql:"relevant_since"`
		ID            int64 `sql:"id"`
	}
	count := int(rows - from.rows)
	err := of.newest(s.store.Reader, count).
		Offset(count-1).Limit(1).Select(finding.FieldRelevantSince, finding.FieldID).Scan(ctx, &last)
	if err != nil || len(last) == 0 {
		return place{boundary: boundary{end: true}}, err
	}
	return place{walk: from.walk, rows: rows, boundary: boundary{relevantSince: last[0].RelevantSince, id: last[0].ID}}, nil
}

// listOf says whose list it is, with the projects he sees, and which, without the number and the size of the page.
func listOf(ctx context.Context, deploymentID int64, r *findingsv1.ListFindingsRequest) (listKey, error) {
	caller := ""
	if p, ok := access.FromContext(ctx); ok {
		caller = fmt.Sprintf("%v/%d/%s", p.Kind, p.ID, tenant.Visibility(ctx))
	}
	list := proto.CloneOf(r)
	list.Page, list.PageSize = 0, nil
	canonical, err := proto.MarshalOptions{Deterministic: true}.Marshal(list)
	return newListKey(deploymentID, caller, canonical), err
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
