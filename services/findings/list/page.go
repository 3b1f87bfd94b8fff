package list

import (
	"context"
	"log/slog"
	"slices"

	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/store"
)

// DefaultSize is the size of pages for which a request names none (contract, limits).
const DefaultSize = 100

// Lister makes pages. It remembers where they ended, and what their findings show of rules and projects.
type Lister struct {
	store   *store.Store
	log     *slog.Logger
	places  places
	shown   *shown
	imports pendingImports
}

// New returns a lister of the findings in the store. A server has one: all its lists share what it remembers.
func New(st *store.Store, log *slog.Logger) *Lister {
	l := &Lister{store: st, log: log, places: newMemory(), shown: newShown()}
	if st.Postgres() {
		_, db := st.DB()
		l.places = shared{db}
	}
	return l
}

// Page answers a request, which has to be valid, for one page of the findings that the caller in the context sees. It
// is empty when the list ends before the page, and when the filter names what is not there. The errors are the
// database's.
func (l *Lister) Page(
	ctx context.Context, r *findingsv1.ListFindingsRequest,
) (*findingsv1.ListFindingsResponse, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	f := filterOf(deploymentID, r)
	conditions, err := f.conditions(ctx, l.store.Reader)
	if err != nil {
		return nil, err
	}
	number, size := r.GetPage(), int64(DefaultSize)
	if r.PageSize != nil {
		size = r.GetPageSize()
	}
	const far = int64(1) << 40
	if number > far/size || slices.ContainsFunc(conditions, func(c condition) bool { return c.none }) {
		return &findingsv1.ListFindingsResponse{}, nil
	}
	key, err := keyOf(ctx, deploymentID, r)
	if err != nil {
		return nil, err
	}
	of, err := l.choose(ctx, f, conditions, r.GetDedup())
	if err != nil {
		return nil, err
	}
	page, err := l.walk(ctx, key, of, number, size)
	if err != nil || page == nil {
		return &findingsv1.ListFindingsResponse{}, err
	}
	rules, projects, err := l.shown.of(ctx, l.store.Reader, page.rows, page.revision)
	if err != nil {
		return nil, err
	}
	return page.response(rules, projects), nil
}

// filterOf is the filter of a request. Without an issue type it chooses what static analysis found.
func filterOf(deploymentID int64, r *findingsv1.ListFindingsRequest) *Filter {
	f := &Filter{
		DeploymentID:   deploymentID,
		IssueType:      r.GetIssueType(),
		Since:          r.GetSince(),
		Repos:          r.GetRepos(),
		RepositoryIDs:  r.GetRepositoryIds(),
		Ref:            r.GetRef(),
		Status:         r.GetStatus(),
		TriageReasons:  r.GetTriageReasons(),
		Severities:     r.GetSeverities(),
		ComponentTags:  r.GetComponentTags(),
		Policies:       r.GetPolicies(),
		Rules:          r.GetRules(),
		Categories:     r.GetCategories(),
		Confidence:     r.GetConfidence(),
		Verdict:        r.GetAutotriageVerdict(),
		Exposures:      r.GetExposures(),
		Transitivities: r.GetTransitivities(),
		Malicious:      r.IsMalicious,
		ClickToFix:     r.GetClickToFixPrState(),
	}
	if f.IssueType == "" {
		f.IssueType = vocabulary.SAST
	}
	return f
}
