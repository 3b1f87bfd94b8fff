package supplychain_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/tenant"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/supplychain"
)

// Without statistics too, SQLite looks up a package by its name. It does not read all advisories of the deployment.
func TestLookUpPackageWithoutStatistics(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, nil)
	st, seen := apitest.OpenRecorded(t, s, regexp.MustCompile("FROM `?advisory_packages").MatchString)
	_, err := supplychain.NewMalwareFirewall(st, nil).LookUpPackage(tenant.NewContext(t.Context(), s.DeploymentID),
		&supplychainv1.LookUpPackageRequest{Ecosystem: "npm", Package: "left-pad", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	statements := seen.Take()
	if len(statements) != 1 {
		t.Fatalf("%d queries, want one: %v", len(statements), statements)
	}
	reader, _ := st.DB()
	plan := apitest.Explain(t, st, reader, statements[0])
	if !strings.Contains(plan, "USING INDEX advisory_packages_by_name (deployment_id=? AND ecosystem=? AND package=?)\n") || strings.Contains(plan, "t1 USING INDEX") {
		t.Errorf("the name is not looked up:\n%s\n%s", statements[0].Text, plan)
	}
}
