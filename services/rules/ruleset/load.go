package ruleset

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"entgo.io/ent/dialect/sql"
	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/ruledocument"
	"github.com/palisade/palisade/ent/ruleversion"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// maxCached is the size of the cache of rendered rules, in bytes.
const maxCached = 64 << 20

// cacheKey is the cache key: the deployment of a database.
type cacheKey struct {
	reader       *ent.Client
	deploymentID int64
	baseURL      string
}

// state identifies a state of a deployment's rules: each change has a later time (see BeginChange), and a deletion
// changes the count.
type state struct {
	Count  int   `sql:"count"`
	Newest int64 `sql:"newest"`
}

type kept struct {
	state state
	rules []*rendered
	size  int
}

// cache keeps the rendered rules of recently requested deployments, because rendering thousands for each scan is slow.
var cache = struct {
	sync.Mutex
	entries *simplelru.LRU[cacheKey, kept]
	size    int
	loading singleflight.Group
}{entries: newEntries()}

func newEntries() *simplelru.LRU[cacheKey, kept] {
	entries, err := simplelru.NewLRU[cacheKey, kept](1<<16, nil)
	if err != nil {
		panic(err) // the size is positive
	}
	return entries
}

// load returns all rules of the context's deployment in rendered form, oldest first.
func load(ctx context.Context, reader *ent.Client, baseURL string) ([]*rendered, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	who := cacheKey{reader, deploymentID, strings.TrimRight(baseURL, "/")}
	now, err := stateOf(ctx, reader)
	if err != nil {
		return nil, err
	}
	if rules, ok := cached(who, now); ok {
		return rules, nil
	}
	key := fmt.Sprintf("%p %d %s %v", reader, deploymentID, who.baseURL, now)
	// Concurrent callers share one load. It must not end when the first caller is canceled.
	result := cache.loading.DoChan(key, func() (any, error) {
		rules, err := read(context.WithoutCancel(ctx), reader, who.baseURL)
		if err == nil {
			keep(who, now, rules)
		}
		return rules, err
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-result:
		rules, _ := r.Val.([]*rendered)
		return rules, r.Err
	}
}

func stateOf(ctx context.Context, db *ent.Client) (state, error) {
	var rows []struct {
		Count  int           `sql:"count"`
		Newest sql.NullInt64 `sql:"newest"`
	}
	err := db.RuleDocument.Query().Aggregate(ent.Count(), ent.As(ent.Max(ruledocument.FieldUpdatedAt), "newest")).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return state{}, err
	}
	return state{rows[0].Count, rows[0].Newest.Int64}, nil
}

func cached(who cacheKey, now state) ([]*rendered, bool) {
	cache.Lock()
	defer cache.Unlock()
	entry, ok := cache.entries.Get(who)
	return entry.rules, ok && entry.state == now
}

func keep(who cacheKey, now state, rules []*rendered) {
	entry := kept{state: now, rules: rules}
	for _, r := range rules {
		entry.size += len(r.json)
	}
	cache.Lock()
	defer cache.Unlock()
	if old, ok := cache.entries.Peek(who); ok {
		cache.size -= old.size
	}
	cache.entries.Add(who, entry)
	cache.size += entry.size
	for cache.size > maxCached {
		_, oldest, ok := cache.entries.RemoveOldest()
		if !ok {
			return
		}
		cache.size -= oldest.size
	}
}

// read reads and renders the rules in two queries.
func read(ctx context.Context, reader *ent.Client, baseURL string) ([]*rendered, error) {
	rows, err := reader.RuleDocument.Query().Order(ent.Asc(ruledocument.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	versions, err := reader.RuleVersion.Query().Where(newestVersions).All(ctx)
	if err != nil {
		return nil, err
	}
	of := make(map[int64]*ent.RuleVersion, len(versions))
	for _, version := range versions {
		of[version.RuleDocumentID] = version
	}
	out := make([]*rendered, 0, len(rows))
	for _, row := range rows {
		version := of[row.ID]
		if version == nil {
			continue // deleted between the two queries
		}
		r, err := render(row, version, baseURL)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", row.Name, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// newestVersions selects the newest version of each existing rule. It repeats the deployment, because the tenant policy
// does not cover the joined table.
func newestVersions(s *sql.Selector) {
	rules := sql.Table(ruledocument.Table)
	s.Join(rules).OnP(sql.And(
		sql.ColumnsEQ(s.C(ruleversion.FieldRuleDocumentID), rules.C(ruledocument.FieldID)),
		sql.ColumnsEQ(s.C(ruleversion.FieldVersion), rules.C(ruledocument.FieldVersion)),
		sql.ColumnsEQ(s.C(ruleversion.FieldDeploymentID), rules.C(ruledocument.FieldDeploymentID)),
	))
}

// Documents returns the newest documents of rules, by rule.
func Documents(ctx context.Context, reader *ent.Client, ruleIDs []int64) (map[int64][]byte, error) {
	versions, err := reader.RuleVersion.Query().Where(newestVersions, store.OneOf(ruleversion.FieldRuleDocumentID, ruleIDs)).All(ctx)
	if err != nil {
		return nil, err
	}
	of := make(map[int64][]byte, len(versions))
	for _, version := range versions {
		of[version.RuleDocumentID] = version.Document
	}
	return of, nil
}

// URL is the web page of a rule. Slashes in names are part of the path.
func URL(baseURL string, row *ent.RuleDocument) string {
	path := (&url.URL{Path: row.Name}).EscapedPath()
	return fmt.Sprintf("%s/api/rules/v1/deployments/%d/rules/%s", strings.TrimRight(baseURL, "/"), row.DeploymentID, path)
}
