package services

import (
	"context"
	"fmt"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// maxNamed is how many names a check prints.
const maxNamed = 10

// checkRules checks that scans get all rules, and that not all scans of a deployment fail since its rules changed.
func checkRules(ctx context.Context, st *store.Store) []Check {
	const quarantine, scans = "rules", "scans"
	owners, err := st.Reader.Deployment.Query().Order(ent.Asc(deployment.FieldID)).Select(deployment.FieldID, deployment.FieldSlug).All(tenant.System(ctx))
	if err != nil {
		return []Check{failed(quarantine, err.Error(), "check the database's log")}
	}
	var held, full, failing []string
	for _, owner := range owners {
		ctx := tenant.NewContext(ctx, owner.ID)
		names, err := ruleset.Quarantined(ctx, st.Reader)
		if err != nil {
			return []Check{failed(quarantine, err.Error(), "check the database's log")}
		}
		for _, name := range names {
			held = append(held, owner.Slug+": "+name)
		}
		if len(names) >= ruleset.MaxQuarantined {
			full = append(full, owner.Slug)
		}
		found, err := ruleset.ScansFailing(ctx, st.Reader)
		if err != nil {
			return []Check{failed(scans, err.Error(), "check the database's log")}
		}
		if found != nil {
			failing = append(failing, fmt.Sprintf("%s since %s, the last with exit code %d", owner.Slug,
				store.Time(found.Since).Format("2006-01-02 15:04:05"), found.LastScan.ExitCode))
		}
	}
	checks := []Check{passed(quarantine, "no rule is in quarantine"), passed(scans, "in no deployment do all scans fail since its rules changed")}
	if len(held) > 0 {
		checks[0] = failed(quarantine, fmt.Sprintf("%d in quarantine, because scanners cannot load them: %s", len(held), named(held)),
			"palisade rules show NAME says why; import a corrected version, or: palisade rules release NAME")
	}
	if len(full) > 0 {
		checks[0].Detail += fmt.Sprintf("; the limit of %d a deployment is reached, so scans get further broken rules: %s", ruleset.MaxQuarantined, named(full))
	}
	if len(failing) > 0 {
		checks[1] = failed(scans, "all scans fail since the rules changed: "+named(failing),
			"look at the log of a job; check the rules with palisade rules validate, or leave one out with palisade rules mode off")
	}
	return checks
}

// named joins the first names.
func named(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}
