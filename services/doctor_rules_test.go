package services

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/rules/ruleset"
)

func TestDoctorFindsRulesThatEndScans(t *testing.T) {
	s := apitest.Start(t, func(*config.Config) {})
	cfg, st, owner := s.Config, s.Store, s.DeploymentID
	write := func(change func(ctx context.Context, tx *ent.Tx) error) {
		t.Helper()
		if err := st.Write(tenant.NewContext(t.Context(), owner), change); err != nil {
			t.Fatal(err)
		}
	}
	scan := func(status scansv1.ScanStatus) {
		write(func(ctx context.Context, tx *ent.Tx) error {
			return tx.Scan.Create().SetDeploymentID(owner).SetProjectID(1).SetRef("refs/heads/main").SetCommit("").SetStatus(status.String()).SetProducts(0).
				SetIsFullScan(true).SetUniqueID(uuid.NewString()).SetExitCode(7).SetMeta([]byte{}).SetStats(map[string]any{}).SetStartedAt(store.Now()).Exec(ctx)
		})
	}
	write(func(ctx context.Context, tx *ent.Tx) error {
		return tx.RuleDocument.Create().SetDeploymentID(owner).SetName("acme.broken").SetOrigin("import").SetProduct("sast").SetSeverity("LOW").
			SetLanguages([]string{"go"}).SetMode("block").SetVersion(3).SetQuarantinedVersion(3).SetQuarantineReason("no").SetQuarantineScanID(1).
			SetQuarantinedAt(1).SetCreatedAt(1).SetUpdatedAt(1).Exec(ctx)
	})
	scan(scansv1.ScanStatus_SCAN_STATUS_ERROR)
	scan(scansv1.ScanStatus_SCAN_STATUS_ERROR)
	checks := Doctor(t.Context(), cfg)
	if bad := failures(t, checks); !slices.Equal(bad, []string{"rules", "scans"}) {
		t.Errorf("failures: %v", bad)
	}
	for _, want := range []string{"1 in quarantine, because scanners cannot load them: acme: acme.broken", "acme since 1970-01-01 00:00:00, the last with exit code 7"} {
		if !slices.ContainsFunc(checks, func(c Check) bool { return strings.Contains(c.Detail, want) }) {
			t.Errorf("no %q in %v", want, checks)
		}
	}
	write(func(ctx context.Context, tx *ent.Tx) error {
		for i := range ruleset.MaxQuarantined - 1 {
			err := tx.RuleDocument.Create().SetDeploymentID(owner).SetName(fmt.Sprintf("acme.broken-%d", i)).SetOrigin("import").SetProduct("sast").
				SetSeverity("LOW").SetLanguages([]string{"go"}).SetMode("block").SetVersion(1).SetQuarantinedVersion(1).SetQuarantineReason("no").
				SetQuarantineScanID(1).SetQuarantinedAt(1).SetCreatedAt(1).SetUpdatedAt(1).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
	isFull := func(c Check) bool {
		return strings.Contains(c.Detail, "; the limit of 50 a deployment is reached, so scans get further broken rules: acme")
	}
	if slices.ContainsFunc(checks, isFull) {
		t.Errorf("one rule reaches the limit: %v", checks)
	}
	if checks := Doctor(t.Context(), cfg); !slices.ContainsFunc(checks, isFull) {
		t.Errorf("50 rules do not reach the limit: %v", checks)
	}
	scan(scansv1.ScanStatus_SCAN_STATUS_COMPLETED)
	if bad := failures(t, Doctor(t.Context(), cfg)); !slices.Equal(bad, []string{"rules"}) {
		t.Errorf("after a success: %v", bad)
	}
}
