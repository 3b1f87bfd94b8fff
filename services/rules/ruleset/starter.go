package ruleset

import (
	"context"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/rules/starter"
)

// StarterRules is how rules that come with the product are stored. Their findings are told to the authors of pull
// requests, and block nothing.
var StarterRules = How{Origin: OriginStarter, Mode: ModeComment, Visibility: VisibilityOrgPrivate}

// looked is a deployment that this process has looked at.
type looked struct {
	store        *store.Store
	deploymentID int64
}

var seen = newSeen()

func newSeen() *lru.Cache[looked, struct{}] {
	cache, err := lru.New[looked, struct{}](1 << 14)
	if err != nil {
		panic(err) // the size is positive
	}
	return cache
}

// EnsureStarter gives the deployment of ctx the rules that come with the product when it never had a rule: versions of
// rules outlive them, so that rules that somebody deleted do not come back. It writes, so it must not be called inside
// of a transaction; it costs nothing once a process has seen the deployment.
func EnsureStarter(ctx context.Context, st *store.Store) error {
	deploymentID, known := tenant.FromContext(ctx)
	who := looked{st, deploymentID}
	if !known || seen.Contains(who) {
		return nil
	}
	had, err := st.Reader.RuleVersion.Query().Exist(ctx)
	if err != nil {
		return err
	}
	if !had {
		rules, err := starter.Rules()
		if err != nil {
			return err
		}
		// The one who happens to ask first has not stored anything: the trail names the product.
		ctx := byProduct(audit.Begin(ctx, audit.Actor{Kind: audit.KindJob, Name: "palisade"}, "rules.starter"))
		err = st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			if _, err := Turn(ctx, st, tx); err != nil {
				return err
			}
			if had, err := tx.RuleVersion.Query().Exist(ctx); err != nil || had { // another one was faster
				return err
			}
			_, err := Put(ctx, st, tx, rules, StarterRules)
			return err
		})
		if err != nil {
			return err
		}
	}
	seen.Add(who, struct{}{})
	return nil
}

type byProductKey struct{}

// byProduct marks what the product does by itself while somebody's request is served.
func byProduct(ctx context.Context) context.Context {
	return context.WithValue(ctx, byProductKey{}, true)
}

func isStarter(ctx context.Context) bool { return ctx.Value(byProductKey{}) != nil }
