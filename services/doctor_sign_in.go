package services

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/team"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
)

// checkSignIn checks the sign-in settings against the store. Without an issuer there is nothing to check.
func checkSignIn(ctx context.Context, cfg config.Config, st *store.Store) []Check {
	const role, teams = "role of new members", "teams of oidc-claim-map"
	if cfg.OIDCIssuer == "" {
		return nil
	}
	var checks []Check
	slugs, err := server.MakesAdmins(ctx, st)
	switch {
	case err != nil:
		return []Check{failed(role, err.Error(), "check the database's log")}
	case len(slugs) > 0:
		checks = append(checks, failed(role, "everybody who joins through the issuer becomes an administrator of "+strings.Join(slugs, ", "),
			"set defaultUserRole to ORG_ROLE_MEMBER (docs/sign-in.md) and review the members who have joined"))
	default:
		checks = append(checks, passed(role, "no deployment makes those who join administrators"))
	}
	signIn, err := cfg.SignIn()
	if err != nil || signIn.Admission != access.AdmitClaim { // validation of the settings reports errors
		return checks
	}
	checks = append(checks, passed("claim of members", fmt.Sprintf("%s decides; a token that leaves it out because a person has too many "+
		"groups (Entra ID: more than 200) takes nothing from members and admits nobody: assign groups to the application, or use app "+
		"roles (docs/sign-in.md)", signIn.Claim)))
	if len(signIn.Claims.Teams()) == 0 {
		return checks
	}
	absent, err := absentTeams(ctx, st, signIn.Claims.Teams())
	switch {
	case err != nil:
		return append(checks, failed(teams, err.Error(), "check the database's log"))
	case len(absent) > 0:
		return append(checks, failed(teams, fmt.Sprintf("the first deployment has no team %s", strings.Join(absent, ", ")),
			"create it, or correct --oidc-claim-map, which names teams by their slugs"))
	}
	return append(checks, passed(teams, "all exist"))
}

// absentTeams are the slugs of missing teams of the first deployment.
func absentTeams(ctx context.Context, st *store.Store, slugs []string) ([]string, error) {
	ctx = tenant.System(ctx)
	first, err := st.Reader.Deployment.Query().Order(deployment.ByID()).FirstID(ctx)
	if ent.IsNotFound(err) {
		return nil, nil // the first start creates it
	}
	if err != nil {
		return nil, err
	}
	known, err := st.Reader.Team.Query().Where(team.DeploymentID(first), store.OneOf(team.FieldSlug, slugs)).Select(team.FieldSlug).Strings(ctx)
	return slices.DeleteFunc(slices.Clone(slugs), func(slug string) bool { return slices.Contains(known, slug) }), err
}
