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

// StarterRules are the options for rules that ship with the product. Their findings are comments on pull requests and
// do not block.
var StarterRules = PutOptions{Origin: OriginStarter, Mode: ModeComment, Visibility: VisibilityOrgPrivate}

// checkedKey is a deployment that this process has checked.
type checkedKey struct {
	store        *store.Store
	deploymentID int64
}

var seen = newSeen()

func newSeen() *lru.Cache[checkedKey, struct{}] {
	cache, err := lru.New[checkedKey, struct{}](1 << 14)
	if err != nil {
		panic(err) // the size is positive
	}
	return cache
}

// EnsureStarter adds the rules that ship with the product to the context's deployment if it never had a rule. Versions
// outlive rules, so deleted rules do not come back. It writes, so it must not be called in a transaction. After the
// first call a process caches that the deployment is initialized.
func EnsureStarter(ctx context.Context, st *store.Store) error {
	deploymentID, known := tenant.FromContext(ctx)
	who := checkedKey{st, deploymentID}
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
		// The first caller has not stored anything, so the audit trail names the product.
		ctx := byProduct(audit.Begin(ctx, audit.Actor{Kind: audit.KindJob, Name: "palisade"}, "rules.starter"))
		err = st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			if _, err := BeginChange(ctx, st, tx); err != nil {
				return err
			}
			if had, err := tx.RuleVersion.Query().Exist(ctx); err != nil || had { // a concurrent call won
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

// byProduct marks changes that the product makes by itself during a request.
func byProduct(ctx context.Context) context.Context {
	return context.WithValue(ctx, byProductKey{}, true)
}

func isStarter(ctx context.Context) bool { return ctx.Value(byProductKey{}) != nil }
