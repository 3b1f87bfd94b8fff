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

// DefaultSize is the page size of requests without one (contract, limits).
const DefaultSize = 100

// Lister serves pages of findings. It holds the cursors of listing sessions and caches rules and projects.
type Lister struct {
	store   *store.Store
	log     *slog.Logger
	cursors cursorStore
	catalog *catalogCache
	imports pendingImports
}

// New returns a lister of the findings in the store. A server needs one only: all lists share its cursors and caches.
func New(st *store.Store, log *slog.Logger) *Lister {
	l := &Lister{store: st, log: log, cursors: newMemoryCursors(), catalog: newCatalogCache()}
	if st.Postgres() {
		_, db := st.DB()
		l.cursors = postgresCursors{db}
	}
	return l
}

// Page returns one page of the findings that the caller in the context may see. The request must be valid. The page is
// empty if the list ends before it, or if the filter names something that does not exist.
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
	plan, err := l.plan(ctx, f, conditions, r.GetDedup())
	if err != nil {
		return nil, err
	}
	page, err := l.sessionPage(ctx, key, plan, number, size)
	if err != nil || page == nil {
		return &findingsv1.ListFindingsResponse{}, err
	}
	rules, projects, err := l.catalog.lookup(ctx, l.store.Reader, page.rows, page.revision)
	if err != nil {
		return nil, err
	}
	return page.response(rules, projects), nil
}

// filterOf returns the filter of a request. The default issue type is sast.
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
