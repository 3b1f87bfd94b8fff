package list

import (
	"context"
	"log/slog"
	"slices"

	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/exploit"
	"github.com/palisade/palisade/services/findings/issuefilter"
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
	number, size := r.GetPage(), int64(DefaultSize)
	if r.PageSize != nil {
		size = r.GetPageSize()
	}
	plans, err := l.plans(ctx, r)
	if err != nil {
		return nil, err
	}
	const far = int64(1) << 40
	if number > far/size || len(plans) == 0 {
		return &findingsv1.ListFindingsResponse{}, nil
	}
	key, err := keyOf(ctx, r)
	if err != nil {
		return nil, err
	}
	page, err := l.sessionPage(ctx, key, plans, number, size)
	if err != nil || page == nil {
		return &findingsv1.ListFindingsResponse{}, err
	}
	rules, projects, err := l.catalog.lookup(ctx, l.store.Reader, page.rows, page.revision)
	if err != nil {
		return nil, err
	}
	exploits, err := exploit.Read(ctx, l.store.Reader, page.advisories())
	if err != nil {
		return nil, err
	}
	return page.response(rules, projects, exploits), nil
}

// plans returns a query plan for each issue type of the request; the default is sast. An issue type for which the
// filter selects nothing has none.
func (l *Lister) plans(ctx context.Context, r *findingsv1.ListFindingsRequest) (plans []queryPlan, err error) {
	types := distinct(r.GetIssueType())
	if len(types) == 0 {
		types = []string{vocabulary.SAST}
	}
	filter := filterOf(ctx, r)
	if err := filter.SplitNames(ctx, l.store.Reader, types...); err != nil {
		return nil, err
	}
	for _, issueType := range types {
		f := *filter
		f.IssueType = issueType
		conditions, err := f.conditions(ctx, l.store.Reader)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(conditions, func(c issuefilter.Condition) bool { return c.None }) {
			continue
		}
		plan, err := l.plan(ctx, &f, conditions, r.GetDedup())
		if err != nil {
			return nil, err
		}
		plans = append(plans, plan)
	}
	return plans, nil
}

// filterOf returns the filter of a request, without an issue type.
func filterOf(ctx context.Context, r *findingsv1.ListFindingsRequest) *Filter {
	deploymentID, _ := tenant.FromContext(ctx)
	return &Filter{
		DeploymentID:   deploymentID,
		Since:          r.GetSince(),
		Repos:          r.GetRepos(),
		RepositoryIDs:  r.GetRepositoryIds(),
		Refs:           r.GetRef(),
		Statuses:       r.GetStatus(),
		TriageReasons:  r.GetTriageReasons(),
		Severities:     r.GetSeverities(),
		ComponentTags:  r.GetComponentTags(),
		Policies:       r.GetPolicies(),
		Rules:          r.GetRules(),
		Categories:     r.GetCategories(),
		Confidences:    r.GetConfidence(),
		Verdicts:       r.GetAutotriageVerdict(),
		Exposures:      r.GetExposures(),
		Transitivities: r.GetTransitivities(),
		Malicious:      r.IsMalicious,
		KnownExploit:   r.KnownExploit,
		ClickToFix:     r.GetClickToFixPrState(),
	}
}
