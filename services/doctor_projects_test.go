package services

import (
	"context"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
)

// The doctor lists projects of earlier versions whose names differ only in letter case.
func TestDoctorListsPairsOfProjects(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, on)
		found := func() Check {
			for _, c := range Doctor(t.Context(), s.Config) {
				if c.Name == "project names" {
					return c
				}
			}
			return Check{}
		}
		if c := found(); !c.OK {
			t.Errorf("without projects: %+v", c)
		}
		other := s.AddTenant(t, "globex")
		err := s.Store.Write(tenant.System(t.Context()), func(ctx context.Context, tx *ent.Tx) error {
			for deployment, names := range map[int64][]string{s.DeploymentID: {"acme/web", "Acme/Web", "acme/api"}, other.DeploymentID: {"ACME/API"}} {
				for _, name := range names {
					err := tx.Project.Create().SetDeploymentID(deployment).SetName(name).SetNameKey(strings.ToLower(name)).SetCreatedAt(1).Exec(ctx)
					if err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if c := found(); c.OK || !strings.HasSuffix(c.Detail, ": acme/web, Acme/Web") {
			t.Errorf("got %+v", c)
		}
	})
}
